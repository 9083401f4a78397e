/* The control groups of this process, version 1 and 2. */
#ifndef SW_WATCH_CGROUP_H
#define SW_WATCH_CGROUP_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

struct sw__cgroup {
    char folder[PATH_MAX]; /* below the root of sw__source_setting */
    bool v2;
};

/* The nearest group with that controller, from the process's own upwards, whose file `v2` or `v1` is there and passes
 * `fits` (NULL: any does). A group above counts where that of the process has no such file: in a container the path is often
 * that of the host. SW_ENOTFOUND where there is none. */
int sw__cgroup_find(struct sw__cgroup *out, const char *root, const char *controller,
                    const char *v2, const char *v1, bool (*fits)(const char *text));

#endif
