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

static bool names(const char *list, const char *word)
{
    const size_t length = strlen(word);
    for (const char *at = list; (at = strstr(at, word)); at += length) {
        if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ',')) {
            return true;
        }
    }
    return false;
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
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        /* "<number>:<controllers>:<path>"; the unified hierarchy has no controllers. */
        char *controllers = strchr(line, ':');
        char *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group) {
            continue;
        }
        *group++ = '\0';
        controllers++;
        out->v2 = !*controllers;
        if (!out->v2 && !names(controllers, controller)) {
            continue;
        }
        /* A mount of version 1 is called after its controller, or after all it has. */
        const char *const places[2] = {out->v2 ? "" : controller,
                                       out->v2 ? "/unified" : controllers};
        for (size_t i = 0; i < SW__COUNTOF(places); i++) {
            char mount[256];
            snprintf(mount, sizeof mount, "/sys/fs/cgroup%s%s", out->v2 ? "" : "/",
                     places[i]);
            if (climb(out, root, mount, strcmp(group, "/") == 0 ? "" : group,
                      out->v2 ? v2 : v1, fits)) {
                return SW_OK;
            }
        }
    }
    return SW_ENOTFOUND;
}
