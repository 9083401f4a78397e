/* The control groups of the process: how often its CPU quota stopped it, its memory and what limits that. */
#include <math.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>

#include "base/memory.h"
#include "base/os.h"
#include "watch/cgroup.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

/* Limits of version 1 that mean none are a little below 2^63. */
#define NO_LIMIT ((uint64_t)1 << 62)

struct groups {
    struct sw__proc_file cpu, memory, limit;
    bool cpu_v2;
    uint32_t hint[5];
};

static void groups_close(void *state)
{
    struct groups *groups = state;
    sw__proc_close(&groups->cpu);
    sw__proc_close(&groups->memory);
    sw__proc_close(&groups->limit);
    sw__free(groups);
}

/* "max 100000" in version 2, "-1" in version 1: no quota. */
static bool has_quota(const char *text)
{
    return *text >= '0' && *text <= '9';
}

static bool has_limit(const char *text)
{
    return sw__proc_nth(text, 0) < NO_LIMIT;
}

static void open_in(struct sw__proc_file *file, const struct sw__cgroup *group,
                    const char *root, const char *v2, const char *v1)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", group->folder, group->v2 ? v2 : v1);
    (void)sw__proc_open(file, root, path, NULL, 0);
}

static int groups_open(const struct sw__source_setting *setting, void **state, char *why,
                       size_t size)
{
    struct groups *groups = sw__alloc_zero(1, sizeof *groups);
    const char *root = setting->root;
    struct sw__cgroup group;
    if (!groups) {
        return SW_ENOMEM;
    }
    groups->cpu.fd = groups->memory.fd = groups->limit.fd = -1;
    /* Throttling is counted where the quota is, which may be a group above. */
    if (sw__cgroup_find(&group, root, "cpu", "cpu.max", "cpu.cfs_quota_us", has_quota) ==
            SW_OK ||
        sw__cgroup_find(&group, root, "cpu", "cpu.stat", "cpu.stat", NULL) == SW_OK) {
        open_in(&groups->cpu, &group, root, "cpu.stat", "cpu.stat");
        groups->cpu_v2 = group.v2;
    }
    if (sw__cgroup_find(&group, root, "memory", "memory.current", "memory.usage_in_bytes",
                        NULL) == SW_OK) {
        open_in(&groups->memory, &group, root, "memory.current", "memory.usage_in_bytes");
    }
    if (sw__cgroup_find(&group, root, "memory", "memory.max", "memory.limit_in_bytes",
                        has_limit) == SW_OK) {
        open_in(&groups->limit, &group, root, "memory.max", "memory.limit_in_bytes");
    }
    if (groups->cpu.fd < 0 && groups->memory.fd < 0) {
        snprintf(why, size, "the process is in no control group that can be read");
        sw__free(groups);
        return SW_ENOTFOUND;
    }
    *state = groups;
    return SW_OK;
}

static void put_cpu(struct groups *groups, struct sw__look *look)
{
    char text[1024];
    (void)sw__proc_read(&groups->cpu, text, sizeof text);
    const uint64_t throttled = groups->cpu_v2 ? sw__proc_field(text, "throttled_usec")
                                              : sw__proc_field(text, "throttled_time");
    sw__look_hint(look, &groups->hint[0], "cgroup.throttled", "s", SW_SERIES_TOTAL,
                  sw__proc_value(throttled, groups->cpu_v2 ? 1e-6 : 1e-9));
    sw__look_hint(look, &groups->hint[1], "cgroup.periods", "1", SW_SERIES_TOTAL,
                  sw__proc_value(sw__proc_field(text, "nr_periods"), 1));
    sw__look_hint(look, &groups->hint[2], "cgroup.periods_throttled", "1",
                  SW_SERIES_TOTAL,
                  sw__proc_value(sw__proc_field(text, "nr_throttled"), 1));
}

static int groups_sample(void *state, struct sw__look *look)
{
    struct groups *groups = state;
    char text[64];
    if (groups->cpu.fd >= 0) {
        put_cpu(groups, look);
    }
    if (groups->memory.fd >= 0) {
        (void)sw__proc_read(&groups->memory, text, sizeof text);
        sw__look_hint(look, &groups->hint[3], "cgroup.memory", "B", SW_SERIES_GAUGE,
                      sw__proc_value(sw__proc_nth(text, 0), 1));
    }
    if (groups->limit.fd >= 0) {
        (void)sw__proc_read(&groups->limit, text, sizeof text);
        const uint64_t limit = sw__proc_nth(text, 0);
        sw__look_hint(look, &groups->hint[4], "cgroup.memory_limit", "B", SW_SERIES_GAUGE,
                      limit < NO_LIMIT ? (double)limit : NAN);
    }
    return SW_OK;
}

const struct sw__source sw__source_cgroup = {
    .name = "cgroup",
    .period_s = 0.5,
    .open = groups_open,
    .sample = groups_sample,
    .close = groups_close,
};
