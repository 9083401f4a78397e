/* What is checked out: .git (a folder, or a file that leads to one), HEAD, the branch that it names as a file or in
 * packed-refs. Every file is bounded, and nothing that stands in one leads out of the git folder but what git
 * itself lets lead there (gitdir, commondir). */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <stepwatch/history.h>

#include "base/memory.h"
#include "history/git.h"
#include "history/small_file.h"

#define LINE_MOST 4096          /* of files that hold one line */
#define PACKED_MOST (64u << 20) /* packed-refs of a large repository has some MB */
#define SYMBOLIC_MOST 5         /* references that lead to references */

/* The first line of a small file, without spaces at its end. */
static bool read_line(const char *folder, const char *name, char *out, size_t size)
{
    char path[PATH_MAX];
    size_t length = 0;
    char *text = sw__join_path(path, sizeof path, folder, name)
                     ? sw__small_file(path, LINE_MOST, &length)
                     : NULL;
    if (!text) {
        return false;
    }
    length = strcspn(text, "\n");
    while (length > 0 && strchr(" \t\r", text[length - 1])) {
        length--;
    }
    const bool fits = length < size;
    if (fits) {
        memcpy(out, text, length);
        out[length] = '\0';
    }
    sw__free(text);
    return fits && length > 0;
}

/* A path that a file of git holds, relative to the folder of that file. */
static bool follow(char *out, size_t size, const char *folder, const char *path)
{
    if (path[0] == '/') {
        return (size_t)snprintf(out, size, "%s", path) < size;
    }
    return sw__join_path(out, size, folder, path);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The git folder of a work tree whose top is `top`. False: it is none. */
static bool git_folder_of(const char *top, char *out, size_t size)
{
    char line[PATH_MAX];
    if (!sw__join_path(out, size, top, ".git")) {
        return false;
    }
    if (is_folder(out)) {
        return true;
    }
    /* Further work trees and submodules have a file there. */
    static const char prefix[] = "gitdir: ";
    if (!read_line(top, ".git", line, sizeof line) ||
        strncmp(line, prefix, strlen(prefix)) != 0) {
        return false;
    }
    return follow(out, size, top, line + strlen(prefix)) && is_folder(out);
}

/* Cuts the last part of a path. False: none is left. */
static bool go_up(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || (slash == path && !path[1])) {
        return false;
    }
    slash[slash == path] = '\0';
    return true;
}

static bool is_hash(const char *text, size_t length)
{
    return (length == 40 || length == 64) && strspn(text, "0123456789abcdef") >= length;
}

/* A name such as refs/heads/main, and none that climbs. In repositories with another store of references HEAD names one that
 * no repository can have. */
static bool is_reference(const char *name)
{
    return strncmp(name, "refs/", 5) == 0 && !strstr(name, "/.") && !strstr(name, "..");
}

static bool find_packed(const char *common, const char *name, char commit[65])
{
    char path[PATH_MAX];
    size_t length = 0;
    char *text = sw__join_path(path, sizeof path, common, "packed-refs")
                     ? sw__small_file(path, PACKED_MOST, &length)
                     : NULL;
    bool found = false;
    const size_t name_length = strlen(name);
    for (const char *line = text; line && *line && !found;) {
        const size_t size = strcspn(line, "\n");
        const size_t hash = strcspn(line, " \n");
        found = size == hash + 1 + name_length && is_hash(line, hash) &&
                memcmp(line + hash + 1, name, name_length) == 0;
        if (found) {
            memcpy(commit, line, hash);
            commit[hash] = '\0';
        }
        line += size + (line[size] == '\n');
    }
    sw__free(text);
    return found;
}

/* What HEAD leads to. An unborn branch has a name and no commit. */
static bool read_head(const char *folder, const char *common, sw_git_state *out)
{
    char line[LINE_MOST];
    char name[LINE_MOST] = "HEAD";
    bool known = read_line(folder, name, line, sizeof line);
    if (!known) {
        return false;
    }
    for (int i = 0; known && i < SYMBOLIC_MOST; i++) {
        if (is_hash(line, strlen(line))) {
            snprintf(out->commit, sizeof out->commit, "%s", line);
            return true;
        }
        const char *target = line + 5 + strspn(line + 5, " ");
        if (strncmp(line, "ref: ", 5) != 0 || !is_reference(target)) {
            return false;
        }
        snprintf(name, sizeof name, "%s", target);
        const char *branch = strncmp(name, "refs/heads/", 11) == 0 ? name + 11 : name;
        if (strlen(branch) < sizeof out->branch) {
            strcpy(out->branch, branch);
        }
        known = read_line(folder, name, line, sizeof line) ||
                read_line(common, name, line, sizeof line);
    }
    if (!known) {
        (void)find_packed(common, name, out->commit);
    }
    return true;
}

int sw_git_read(const char *path, sw_git_state *out)
{
    char top[PATH_MAX];
    char folder[PATH_MAX];
    char common[PATH_MAX];
    char line[PATH_MAX];
    *out = (sw_git_state){.dirty = -1};
    if (!realpath(path, top)) {
        return SW_ENOTFOUND;
    }
    if (!is_folder(top) && !go_up(top)) {
        return SW_ENOTFOUND;
    }
    while (!git_folder_of(top, folder, sizeof folder)) {
        if (!go_up(top)) {
            return SW_ENOTFOUND;
        }
    }
    if (!read_line(folder, "commondir", line, sizeof line) ||
        !follow(common, sizeof common, folder, line)) {
        snprintf(common, sizeof common, "%s", folder);
    }
    if (!read_head(folder, common, out)) {
        return SW_ENOTFOUND;
    }
    if (out->commit[0]) {
        out->dirty = sw__git_dirty(folder, top, strlen(out->commit) / 2);
    }
    return SW_OK;
}
