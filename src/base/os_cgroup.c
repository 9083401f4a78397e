/* What the control groups that this process is in allow it, version 1 and version 2. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/os.h"

int sw__os_cgroup_text(const char *folder, const char *file, char *to, size_t size)
{
    char path[PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    return sw__os_read_file(path, to, size);
}

/* The least from a group up to the root of its mount: a group has at most what those
 * above it have. In a container the path may be that of the host and lead nowhere; then
 * the mount's root is the container's own group, and the walk ends there. */
static uint64_t least_upwards(const char *mount, const char *group,
                              uint64_t (*limit)(const char *))
{
    char folder[PATH_MAX];
    size_t root = strlen(mount);
    size_t length = strlen(group);
    bool leaves_mount = strstr(group, "/..") != NULL;
    if (leaves_mount || root + length >= sizeof folder) {
        return limit(mount);
    }
    memcpy(folder, mount, root);
    memcpy(folder + root, group, length + 1);
    uint64_t least = UINT64_MAX;
    for (;;) {
        uint64_t here = limit(folder);
        least = here < least ? here : least;
        char *slash = strrchr(folder + root, '/');
        if (!slash) {
            return least;
        }
        *slash = '\0';
    }
}

/* Whether a controller is among the comma-separated ones of a line. */
static bool names_controller(const char *line, const char *controller)
{
    size_t length = strlen(controller);
    while (*line) {
        size_t word = strcspn(line, ",");
        if (word == length && memcmp(line, controller, length) == 0) {
            return true;
        }
        line += word + (line[word] == ',');
    }
    return false;
}

bool sw__os_cgroup_parse(struct sw__os_cgroup *out, char *line, const char *controller)
{
    /* "<number>:<controllers>:<path>"; the unified hierarchy has no controllers. */
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group) {
        return false;
    }
    *group++ = '\0';
    controllers++;
    out->group = group;
    out->v2 = !*controllers;
    if (!out->v2 && !names_controller(controllers, controller)) {
        return false;
    }
    /* A mount of version 1 is called after its controller, or after all it has. */
    const char *const names[2] = {out->v2 ? "" : controller,
                                  out->v2 ? "unified" : controllers};
    for (size_t i = 0; i < SW__COUNTOF(names); i++) {
        snprintf(out->mount[i], sizeof out->mount[i], "/sys/fs/cgroup%s%s",
                 *names[i] ? "/" : "", names[i]);
    }
    return true;
}

uint64_t sw__os_cgroup_least(const char *controller, uint64_t (*v2)(const char *),
                             uint64_t (*v1)(const char *))
{
    char text[8192];
    if (sw__os_read_file("/proc/self/cgroup", text, sizeof text) < 0) {
        text[0] = '\0';
    }
    uint64_t least = UINT64_MAX;
    struct sw__os_cgroup at;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        if (!sw__os_cgroup_parse(&at, line, controller)) {
            continue;
        }
        for (size_t i = 0; i < SW__COUNTOF(at.mount); i++) {
            uint64_t here = least_upwards(at.mount[i], at.group, at.v2 ? v2 : v1);
            least = here < least ? here : least;
        }
    }
    return least;
}
