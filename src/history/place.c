#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/os.h"
#include "history/place.h"
#include "history/run_files.h"
#include "history/small_file.h"

#define FOLDERS_MOST 100000

static int name_order(const void *left, const void *right)
{
    return strcmp(*(char *const *)right, *(char *const *)left);
}

static bool is_folder(const char *path, const char *name)
{
    char whole[PATH_MAX];
    struct stat status;
    return sw__join_path(whole, sizeof whole, path, name) && stat(whole, &status) == 0 &&
           S_ISDIR(status.st_mode);
}

static int add_folder(struct sw__place *place, const char *name)
{
    if (place->count == place->room) {
        const size_t room = place->room ? place->room * 2 : 64;
        char **grown = sw__realloc(place->folder, room, sizeof *grown);
        if (!grown) {
            return SW_ENOMEM;
        }
        place->folder = grown;
        place->room = room;
    }
    char *copy = sw__strndup(name, strlen(name));
    if (!copy) {
        return SW_ENOMEM;
    }
    place->folder[place->count++] = copy;
    return SW_OK;
}

int sw__place_check(const char *folder, sw_error_info *info)
{
    struct stat status;
    char file[PATH_MAX];
    if (stat(folder, &status) != 0) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be read: %s", folder,
                            strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) {
        return sw_error_set(info, SW_EFORMAT,
                            "%.300s is a file; a history is that of a folder of runs",
                            folder);
    }
    const bool has_history = sw__join_path(file, sizeof file, folder, SW_HISTORY_FILE) &&
                             access(file, F_OK) == 0;
    if (!has_history && sw__run_is_there(folder)) {
        return sw_error_set(
            info, SW_EFORMAT,
            "%.300s is a run itself; its history is that of the folder it lies in",
            folder);
    }
    return SW_OK;
}

int sw__place_list(struct sw__place *out, const char *path, sw_error_info *info)
{
    *out = (struct sw__place){0};
    DIR *stream = opendir(path);
    if (!stream) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be read: %s", path,
                            strerror(errno));
    }
    int result = SW_OK;
    const struct dirent *entry;
    while (result == SW_OK && (entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        if (name[0] == '.' ||
            strncmp(name, SW_HISTORY_FILE, strlen(SW_HISTORY_FILE)) == 0) {
            continue;
        }
        out->others = true;
        if (out->count < FOLDERS_MOST &&
            (entry->d_type == DT_DIR ||
             ((entry->d_type == DT_UNKNOWN || entry->d_type == DT_LNK) &&
              is_folder(path, name)))) {
            result = add_folder(out, name);
        }
    }
    closedir(stream);
    if (out->count > 1) {
        qsort(out->folder, out->count, sizeof *out->folder, name_order);
    }
    if (result != SW_OK) {
        sw__place_free(out);
        return sw_error_set(info, result, "%s", sw_error_text(result));
    }
    return SW_OK;
}

void sw__place_free(struct sw__place *place)
{
    for (size_t i = 0; i < place->count; i++) {
        sw__free(place->folder[i]);
    }
    sw__free(place->folder);
    *place = (struct sw__place){0};
}

/* The directories that are known, to be looked up by name. NULL when out of memory. */
static sw__intern *known_names(const struct sw__runs *runs, size_t known)
{
    sw__intern *names = sw__intern_create(UINT32_MAX - 1);
    for (size_t i = 0; names && i < known; i++) {
        const char *name = runs->run[i].directory;
        int fresh;
        if (!sw__intern_put(names, name, strlen(name), &fresh)) {
            sw__intern_free(names);
            names = NULL;
        }
    }
    return names;
}

int sw__place_gather(const struct sw__place *place, const char *path,
                     struct sw__runs *runs, size_t known, uint64_t most_ns,
                     struct sw__passed *passed)
{
    struct sw__passed ignored;
    passed = passed ? passed : &ignored;
    *passed = (struct sw__passed){0};
    const uint64_t begin = sw__os_now_ns();
    sw__intern *names = known_names(runs, known);
    int result = names ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; result == SW_OK && i < place->count; i++) {
        const char *name = place->folder[i];
        char directory[PATH_MAX];
        sw_history_run run;
        if (most_ns && sw__os_now_ns() - begin > most_ns) {
            break;
        }
        if (sw__intern_find(names, name, strlen(name)) ||
            !sw__join_path(directory, sizeof directory, path, name) ||
            !(most_ns ? sw__run_has_report(directory) : sw__run_is_there(directory))) {
            continue;
        }
        const int read = sw__run_read(&run, path, name, runs->arena, NULL);
        if (read == SW_OK) {
            result = sw__runs_add(runs, &run);
        } else if (read == SW_ESTATE || read == SW_EDISABLED) {
            passed->unwanted++;
        } else {
            passed->unreadable++;
        }
    }
    sw__intern_free(names);
    return result;
}

int sw__place_of(const char *directory, char *place, size_t size, char *name,
                 size_t name_size, sw_error_info *info)
{
    char path[PATH_MAX];
    if (!realpath(directory, path)) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be read: %s", directory,
                            strerror(errno));
    }
    char *slash = strrchr(path, '/');
    if (!slash || !slash[1] || strlen(slash + 1) >= name_size || strlen(path) >= size) {
        return sw_error_set(info, SW_EINVAL, "%.300s cannot be a run directory",
                            directory);
    }
    strcpy(name, slash + 1);
    slash[slash == path] = '\0';
    strcpy(place, path);
    return SW_OK;
}
