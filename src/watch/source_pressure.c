/* Time in which tasks had to wait for CPU, memory or disks: the kernel's pressure stall information, of the machine and, in
 * version 2, of the control group of the process. In a container the latter is what concerns the program. */
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>

#include "base/memory.h"
#include "watch/cgroup.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

static const char *const kinds[] = {"cpu", "memory", "io"};
#define KINDS (sizeof kinds / sizeof kinds[0])

enum { MACHINE, GROUP, WHOSE };
static const char *const names[WHOSE] = {"pressure.", "cgroup.pressure_"};

struct pressure {
    struct sw__proc_file file[WHOSE][KINDS];
    uint32_t hint[WHOSE][KINDS][2];
};

static void pressure_close(void *state)
{
    struct pressure *pressure = state;
    for (size_t i = 0; i < KINDS; i++) {
        sw__proc_close(&pressure->file[MACHINE][i]);
        sw__proc_close(&pressure->file[GROUP][i]);
    }
    sw__free(pressure);
}

/* A kernel with psi=0 has the files and refuses to read them. */
static bool open_one(struct sw__proc_file *file, const char *root, const char *path,
                     char *why, size_t size)
{
    char text[64];
    if (sw__proc_open(file, root, path, why, size) != SW_OK) {
        return false;
    }
    if (sw__proc_read(file, text, sizeof text) <= 0) {
        sw__proc_close(file);
        if (why) {
            snprintf(why, size, "%s cannot be read: the kernel does not measure it",
                     path);
        }
        return false;
    }
    return true;
}

static bool open_group(struct sw__proc_file *file, const char *root, const char *kind)
{
    struct sw__cgroup group;
    char name[32];
    char path[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s.pressure", kind);
    file->fd = -1;
    if (sw__cgroup_find(&group, root, kind, name, name, NULL) != SW_OK || !group.v2) {
        return false;
    }
    snprintf(path, sizeof path, "%s/%s", group.folder, name);
    return open_one(file, root, path, NULL, 0);
}

static int pressure_open(const struct sw__source_setting *setting, void **state,
                         char *why, size_t size)
{
    struct pressure *pressure = sw__alloc_zero(1, sizeof *pressure);
    if (!pressure) {
        return SW_ENOMEM;
    }
    bool any = false;
    for (size_t i = 0; i < KINDS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/pressure/%s", kinds[i]);
        any |= open_one(&pressure->file[MACHINE][i], setting->root, path, why, size);
        any |= open_group(&pressure->file[GROUP][i], setting->root, kinds[i]);
    }
    if (!any) {
        sw__free(pressure);
        return SW_EOPEN;
    }
    *state = pressure;
    return SW_OK;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=123", in microseconds. */
static uint64_t total_of(const char *text, const char *which)
{
    for (const char *line = text; line; line = sw__proc_next_line(line)) {
        const char *end = strchr(line, '\n');
        const char *at =
            strncmp(line, which, strlen(which)) == 0 ? strstr(line, "total=") : NULL;
        uint64_t number;
        if (at && (!end || at < end)) {
            at += strlen("total=");
            return sw__proc_number(&at, &number) ? number : SW__UNKNOWN;
        }
    }
    return SW__UNKNOWN;
}

static void put_one(struct pressure *pressure, struct sw__look *look, unsigned whose,
                    size_t kind)
{
    char text[256];
    char name[SW__SERIES_NAME];
    uint32_t *hint = pressure->hint[whose][kind];
    (void)sw__proc_read(&pressure->file[whose][kind], text, sizeof text);
    snprintf(name, sizeof name, "%s%s", names[whose], kinds[kind]);
    sw__look_hint(look, &hint[0], name, "s", SW_SERIES_TOTAL,
                  sw__proc_value(total_of(text, "some "), 1e-6));
    /* All tasks of a machine at once wait for a CPU only where there is none, so that is not said; those of a group do where
     * its quota is used up. */
    if (whose == GROUP || kind > 0) {
        snprintf(name, sizeof name, "%s%s_all", names[whose], kinds[kind]);
        sw__look_hint(look, &hint[1], name, "s", SW_SERIES_TOTAL,
                      sw__proc_value(total_of(text, "full "), 1e-6));
    }
}

static int pressure_sample(void *state, struct sw__look *look)
{
    struct pressure *pressure = state;
    for (unsigned whose = 0; whose < WHOSE; whose++) {
        for (size_t i = 0; i < KINDS; i++) {
            if (pressure->file[whose][i].fd >= 0) {
                put_one(pressure, look, whose, i);
            }
        }
    }
    return SW_OK;
}

const struct sw__source sw__source_pressure = {
    .name = "pressure",
    .period_s = 1,
    .open = pressure_open,
    .sample = pressure_sample,
    .close = pressure_close,
};
