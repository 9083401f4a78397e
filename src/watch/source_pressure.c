/* Time in which tasks of the machine had to wait for CPU, memory or disks: the kernel's pressure stall information. */
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

static const char *const kinds[] = {"cpu", "memory", "io"};
#define KINDS (sizeof kinds / sizeof kinds[0])

struct pressure {
    struct sw__proc_file file[KINDS];
    uint32_t hint[KINDS][2];
};

static void pressure_close(void *state)
{
    struct pressure *pressure = state;
    for (size_t i = 0; i < KINDS; i++) {
        sw__proc_close(&pressure->file[i]);
    }
    sw__free(pressure);
}

static int pressure_open(const struct sw__source_setting *setting, void **state,
                         char *why, size_t size)
{
    struct pressure *pressure = sw__alloc_zero(1, sizeof *pressure);
    if (!pressure) {
        return SW_ENOMEM;
    }
    bool any = false;
    char text[64];
    for (size_t i = 0; i < KINDS; i++) {
        char path[64];
        snprintf(path, sizeof path, "/proc/pressure/%s", kinds[i]);
        int result = sw__proc_open(&pressure->file[i], setting->root, path, why, size);
        /* A kernel with psi=0 has the files and refuses to read them. */
        if (result == SW_OK &&
            sw__proc_read(&pressure->file[i], text, sizeof text) <= 0) {
            sw__proc_close(&pressure->file[i]);
            snprintf(why, size, "%s cannot be read: the kernel does not measure it",
                     path);
            result = SW_EREAD;
        }
        any = any || result == SW_OK;
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

static int pressure_sample(void *state, struct sw__look *look)
{
    struct pressure *pressure = state;
    for (size_t i = 0; i < KINDS; i++) {
        char text[256];
        char name[SW__SERIES_NAME];
        if (pressure->file[i].fd < 0) {
            continue;
        }
        (void)sw__proc_read(&pressure->file[i], text, sizeof text);
        snprintf(name, sizeof name, "pressure.%s", kinds[i]);
        sw__look_hint(look, &pressure->hint[i][0], name, "s", SW_SERIES_TOTAL,
                      sw__proc_value(total_of(text, "some "), 1e-6));
        /* All tasks at once wait for a CPU only where there is none, so that is not said. */
        if (i > 0) {
            snprintf(name, sizeof name, "pressure.%s_all", kinds[i]);
            sw__look_hint(look, &pressure->hint[i][1], name, "s", SW_SERIES_TOTAL,
                          sw__proc_value(total_of(text, "full "), 1e-6));
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
