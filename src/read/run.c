/* A run: all traces of a directory, or one file. */
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "read/trace_internal.h"

struct list {
    char **items; /* heap strings */
    size_t count, room;
};

struct sw_run {
    char *path;
    sw_trace **traces;
    size_t count;
    struct list notes;
    size_t empty; /* of the notes: files without anything in them */
};

static bool list_add(struct list *list, const char *text)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        char **items = sw__realloc(list->items, room, sizeof *items);
        if (!items) {
            return false;
        }
        list->items = items;
        list->room = room;
    }
    char *copy = sw__strndup(text, strlen(text));
    if (copy) {
        list->items[list->count++] = copy;
    }
    return copy != NULL;
}

static void list_free(struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        sw__free(list->items[i]);
    }
    sw__free(list->items);
    *list = (struct list){0};
}

static int compare_texts(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* Adds the traces of a folder, and of its sub-folders rank* and node* when `deep`. A
 * folder that cannot be read is told of in `notes`. False when out of memory. */
static bool collect(struct list *files, struct list *notes, const char *folder, bool deep)
{
    DIR *stream = opendir(folder);
    if (!stream) {
        char text[1024];
        snprintf(text, sizeof text, "%.900s cannot be read: %s.", folder,
                 strerror(errno));
        return list_add(notes, text);
    }
    bool ok = true;
    const struct dirent *entry;
    while (ok && (entry = readdir(stream)) != NULL) {
        const char *name = entry->d_name;
        bool trace = fnmatch("?*.stepwatch", name, FNM_PERIOD) == 0;
        bool below =
            deep && (fnmatch("rank*", name, 0) == 0 || fnmatch("node*", name, 0) == 0);
        if (!trace && !below) {
            continue;
        }
        size_t length = strlen(folder) + strlen(name) + 2;
        char *path = sw__alloc(length);
        ok = path != NULL;
        if (!ok) {
            break;
        }
        snprintf(path, length, "%s/%s", folder, name);
        if (is_folder(path)) {
            ok = !below || collect(files, notes, path, false);
        } else if (trace) {
            ok = list_add(files, path);
        }
        sw__free(path);
    }
    closedir(stream);
    return ok;
}

/* By start, then by pid. */
static int compare_traces(const void *left, const void *right)
{
    const sw_trace_info *a = sw_trace_get_info(*(sw_trace *const *)left);
    const sw_trace_info *b = sw_trace_get_info(*(sw_trace *const *)right);
    if (a->start_real_ns != b->start_real_ns) {
        return a->start_real_ns < b->start_real_ns ? -1 : 1;
    }
    if (a->pid != b->pid) {
        return a->pid < b->pid ? -1 : 1;
    }
    return strcmp(a->path, b->path);
}

static int open_all(sw_run *run, struct list *files, sw_error_info *info)
{
    sw_error_info first = {0};
    run->traces = sw__alloc_zero(files->count, sizeof(sw_trace *));
    if (!run->traces) {
        return SW_ENOMEM;
    }
    qsort(files->items, files->count, sizeof *files->items, compare_texts);
    for (size_t i = 0; i < files->count; i++) {
        sw_error_info why = {0};
        int result = sw_trace_open(&run->traces[run->count], files->items[i], &why);
        if (result == SW_OK) {
            run->count++;
            continue;
        }
        if (result == SW_ENOMEM || !list_add(&run->notes, why.message)) {
            return SW_ENOMEM;
        }
        struct stat about;
        run->empty += stat(files->items[i], &about) == 0 && about.st_size == 0;
        why.code = result;
        first = first.code ? first : why;
    }
    if (run->count == 0) {
        if (info) {
            *info = first;
        }
        return first.code;
    }
    qsort(run->traces, run->count, sizeof(sw_trace *), compare_traces);
    return SW_OK;
}

/* A folder that may not be read is another matter than one that is empty. */
static int no_traces(const char *path, sw_error_info *info)
{
    DIR *stream = opendir(path);
    int error = errno;
    if (stream) {
        closedir(stream);
        return sw_error_set(info, SW_ENOTFOUND, "%s holds no stepwatch traces", path);
    }
    int result =
        sw_error_set(info, SW_EOPEN, "%s cannot be opened: %s", path, strerror(error));
    if (info) {
        info->os_errno = error;
    }
    return result;
}

static int open_folder(sw_run *run, const char *path, sw_error_info *info)
{
    struct list files = {0};
    int result = SW_ENOMEM;
    if (!collect(&files, &run->notes, path, true)) {
        goto out;
    }
    if (files.count == 0) {
        result = no_traces(path, info);
        goto out;
    }
    result = open_all(run, &files, info);
out:
    list_free(&files);
    return result;
}

static int open_file(sw_run *run, const char *path, sw_error_info *info)
{
    run->traces = sw__alloc_zero(1, sizeof(sw_trace *));
    if (!run->traces) {
        return SW_ENOMEM;
    }
    int result = sw_trace_open(&run->traces[0], path, info);
    run->count = result == SW_OK;
    return result;
}

int sw_run_open(sw_run **out, const char *path, sw_error_info *info)
{
    *out = NULL;
    int result = SW_ENOMEM;
    sw_run *run = sw__alloc_zero(1, sizeof *run);
    if (run) {
        run->path = sw__strndup(path, strlen(path));
    }
    if (run && run->path) {
        result =
            is_folder(path) ? open_folder(run, path, info) : open_file(run, path, info);
    }
    if (result == SW_ENOMEM) {
        sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    if (result) {
        sw_run_free(run);
        return result;
    }
    *out = run;
    return SW_OK;
}

void sw_run_free(sw_run *run)
{
    if (!run) {
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        sw_trace_free(run->traces[i]);
    }
    list_free(&run->notes);
    sw__free(run->traces);
    sw__free(run->path);
    sw__free(run);
}

size_t sw_run_count(const sw_run *run)
{
    return run->count;
}

sw_trace *sw_run_trace(const sw_run *run, size_t index)
{
    return index < run->count ? run->traces[index] : NULL;
}

const char *sw_run_path(const sw_run *run)
{
    return run->path;
}

const char *sw_run_note(const sw_run *run, size_t index)
{
    return index < run->notes.count ? run->notes.items[index] : NULL;
}

size_t sw_run_empty_count(const sw_run *run)
{
    return run->empty;
}
