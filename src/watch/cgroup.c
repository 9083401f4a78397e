#include "watch/cgroup.h"

#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>

#include "base/compiler.h"
#include "base/os.h"

/* From `group` of `mount` up to the mount itself. */
static bool climb(struct sw__cgroup *out, const char *root, const char *mount,
                  const char *group, const char *file, bool (*fits)(const char *))
{
    char text[4096];
    char path[PATH_MAX + 512];
    const size_t base = strlen(mount);
    const int length = snprintf(out->folder, sizeof out->folder, "%s%s", mount,
                                strstr(group, "/..") ? "" : group);
    if (length < 0 || (size_t)length >= sizeof out->folder) {
        return false;
    }
    for (;;) {
        snprintf(path, sizeof path, "%s%s/%s", root, out->folder, file);
        if (sw__os_read_file(path, text, sizeof text) >= 0 && (!fits || fits(text))) {
            return true;
        }
        char *slash = strrchr(out->folder + base, '/');
        if (!slash) {
            return false;
        }
        *slash = '\0';
    }
}

int sw__cgroup_find(struct sw__cgroup *out, const char *root, const char *controller,
                    const char *v2, const char *v1, bool (*fits)(const char *text))
{
    char text[8192];
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    if (sw__os_read_file(path, text, sizeof text) < 0) {
        return SW_ENOTFOUND;
    }
    struct sw__os_cgroup at;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!sw__os_cgroup_parse(&at, line, controller)) {
            continue;
        }
        out->v2 = at.v2;
        for (size_t i = 0; i < SW__COUNTOF(at.mount); i++) {
            if (climb(out, root, at.mount[i], strcmp(at.group, "/") == 0 ? "" : at.group,
                      at.v2 ? v2 : v1, fits)) {
                return SW_OK;
            }
        }
    }
    return SW_ENOTFOUND;
}
