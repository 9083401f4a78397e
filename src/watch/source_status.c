/* Slower things of the process: swap, threads, descriptors of the limit, and PSS where it is asked for. */
#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

struct status {
    struct sw__proc_file file;
    uint32_t hint[2];
};

static void status_close(void *state)
{
    struct status *status = state;
    sw__proc_close(&status->file);
    sw__free(status);
}

static int open_file(struct status **out, const char *root, const char *path, char *why,
                     size_t size)
{
    struct status *status = sw__alloc_zero(1, sizeof *status);
    if (!status) {
        return SW_ENOMEM;
    }
    const int result = sw__proc_open(&status->file, root, path, why, size);
    if (result != SW_OK) {
        sw__free(status);
        return result;
    }
    *out = status;
    return SW_OK;
}

static int status_open(const struct sw__source_setting *setting, void **state, char *why,
                       size_t size)
{
    struct status *status = NULL;
    const int result = open_file(&status, setting->root, "/proc/self/status", why, size);
    *state = status;
    return result;
}

static int status_sample(void *state, struct sw__look *look)
{
    struct status *status = state;
    char text[4096];
    if (sw__proc_read(&status->file, text, sizeof text) <= 0) {
        return SW_EREAD;
    }
    sw__look_hint(look, &status->hint[0], "process.swap", "B", SW_SERIES_GAUGE,
                  sw__proc_value(sw__proc_field(text, "VmSwap:"), 1024));
    sw__look_hint(look, &status->hint[1], "process.threads", "1", SW_SERIES_GAUGE,
                  sw__proc_value(sw__proc_field(text, "Threads:"), 1));
    return SW_OK;
}

const struct sw__source sw__source_status = {
    .name = "status",
    .period_s = 1,
    .open = status_open,
    .sample = status_sample,
    .close = status_close,
};

/* PSS: the kernel walks all pages of the process for it, and holds up its mmap meanwhile. */
static int pss_open(const struct sw__source_setting *setting, void **state, char *why,
                    size_t size)
{
    struct status *pss = NULL;
    if (setting->pss_s <= 0) {
        return SW_EDISABLED;
    }
    const int result =
        open_file(&pss, setting->root, "/proc/self/smaps_rollup", why, size);
    *state = pss;
    return result;
}

static int pss_sample(void *state, struct sw__look *look)
{
    struct status *pss = state;
    char text[2048];
    if (sw__proc_read(&pss->file, text, sizeof text) <= 0) {
        return SW_EREAD;
    }
    sw__look_hint(look, &pss->hint[0], "process.pss", "B", SW_SERIES_GAUGE,
                  sw__proc_value(sw__proc_field(text, "Pss:"), 1024));
    return SW_OK;
}

static double pss_period(const struct sw__source_setting *setting)
{
    return setting->pss_s;
}

const struct sw__source sw__source_pss = {
    .name = "pss",
    .open = pss_open,
    .sample = pss_sample,
    .close = status_close,
    .period = pss_period,
};

/* Descriptors. Since Linux 6.2 the folder's size is their number; before that they are counted one by one. */
struct descriptors {
    char path[PATH_MAX];
    uint32_t hint[2];
};

static int descriptors_open(const struct sw__source_setting *setting, void **state,
                            char *why, size_t size)
{
    struct descriptors *descriptors = sw__alloc_zero(1, sizeof *descriptors);
    if (!descriptors) {
        return SW_ENOMEM;
    }
    snprintf(descriptors->path, sizeof descriptors->path, "%s/proc/self/fd",
             setting->root);
    DIR *folder = opendir(descriptors->path);
    if (!folder) {
        snprintf(why, size, "/proc/self/fd cannot be read");
        sw__free(descriptors);
        return SW_EOPEN;
    }
    closedir(folder);
    *state = descriptors;
    return SW_OK;
}

static double count_descriptors(const char *path)
{
    struct stat facts;
    if (stat(path, &facts) == 0 && facts.st_size > 0) {
        return (double)facts.st_size;
    }
    DIR *folder = opendir(path);
    if (!folder) {
        return NAN;
    }
    double count = -1; /* the folder itself is open while it is read */
    for (const struct dirent *at; (at = readdir(folder));) {
        count += at->d_name[0] != '.';
    }
    closedir(folder);
    return count;
}

static int descriptors_sample(void *state, struct sw__look *look)
{
    struct descriptors *descriptors = state;
    struct rlimit limit;
    sw__look_hint(look, &descriptors->hint[0], "process.descriptors", "1",
                  SW_SERIES_GAUGE, count_descriptors(descriptors->path));
    const bool known =
        getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    sw__look_hint(look, &descriptors->hint[1], "process.descriptors_limit", "1",
                  SW_SERIES_GAUGE, known ? (double)limit.rlim_cur : NAN);
    return SW_OK;
}

static void descriptors_close(void *state)
{
    sw__free(state);
}

const struct sw__source sw__source_descriptors = {
    .name = "descriptors",
    .period_s = 5,
    .open = descriptors_open,
    .sample = descriptors_sample,
    .close = descriptors_close,
};
