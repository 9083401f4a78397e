/* Run directories: completing their files, and reading them. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stepwatch/store.h>

#include "cli/cli.h"

#define NOTES_MOST 20 /* of processes that could not be recorded; more say nothing new */

void cli_sentences_add(struct cli_sentences *list, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    char **grown = realloc(list->text, (list->count + 1) * sizeof *grown);
    char *copy = strdup(text);
    list->text = grown ? grown : list->text;
    if (!grown || !copy) {
        free(copy); /* out of memory: there are worse losses than a remark */
        return;
    }
    list->text[list->count++] = copy;
}

void cli_sentences_free(struct cli_sentences *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->text[i]);
    }
    free(list->text);
    *list = (struct cli_sentences){0};
}

static void fold_file(const char *path, struct cli_sentences *problems)
{
    sw_fold_result result = {0};
    sw_error_info info = {0};
    int error = sw_store_fold(path, &result, &info);
    /* Files that are no traces are the reader's business, which says so. */
    if (error && error != SW_EFORMAT && error != SW_EVERSION && error != SW_ECORRUPT) {
        const char *slash = strrchr(path, '/');
        cli_sentences_add(problems, "%.200s could not be completed: %s",
                          slash ? slash + 1 : path,
                          info.message[0] ? info.message : sw_error_text(error));
    }
}

static void fold_folder(const char *folder, bool deep, struct cli_sentences *problems)
{
    DIR *stream = opendir(folder);
    if (!stream) {
        return; /* the reader will say why */
    }
    const struct dirent *entry;
    while ((entry = readdir(stream)) != NULL) {
        char path[4096];
        int length = snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (length < 0 || (size_t)length >= sizeof path) {
            continue;
        }
        if (fnmatch("?*.stepwatch", entry->d_name, FNM_PERIOD) == 0) {
            fold_file(path, problems);
        } else if (deep && (fnmatch("rank*", entry->d_name, 0) == 0 ||
                            fnmatch("node*", entry->d_name, 0) == 0)) {
            fold_folder(path, false, problems);
        }
    }
    closedir(stream);
}

void cli_fold_run(const char *path, struct cli_sentences *problems)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return;
    }
    if (S_ISDIR(status.st_mode)) {
        fold_folder(path, true, problems);
    } else if (S_ISREG(status.st_mode)) {
        fold_file(path, problems);
    }
}

void cli_read_notes(const char *path, struct cli_sentences *notes)
{
    char file[4096];
    char line[1024];
    int length = snprintf(file, sizeof file, "%s/notes.txt", path);
    int fd = length > 0 && (size_t)length < sizeof file
                 ? open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
                 : -1;
    FILE *stream = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (!stream) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    while (notes->count < NOTES_MOST && fgets(line, sizeof line, stream)) {
        line[strcspn(line, "\n")] = '\0';
        bool known = !*line;
        for (size_t i = 0; i < notes->count && !known; i++) {
            known = strcmp(notes->text[i], line) == 0;
        }
        if (!known) {
            cli_sentences_add(notes, "%s", line);
        }
    }
    fclose(stream);
}

int cli_summarise(const char *path, sw_run **run, sw_summary **summary,
                  sw_error_info *info)
{
    struct cli_sentences problems = {0};
    cli_fold_run(path, &problems);
    cli_read_notes(path, &problems);
    int error = sw_run_open(run, path, info);
    if (!error) {
        error = sw_summary_create(summary, *run, info);
        if (error) {
            sw_run_free(*run);
            *run = NULL;
        }
    }
    for (size_t i = 0; !error && i < problems.count; i++) {
        error = sw_summary_add_note(*summary, problems.text[i]);
        if (error) {
            sw_summary_free(*summary);
            sw_run_free(*run);
        }
    }
    cli_sentences_free(&problems);
    return error;
}

int cli_case_open(struct cli_case *out, const char *path, sw_error_info *info)
{
    *out = (struct cli_case){0};
    int error = cli_summarise(path, &out->run, &out->summary, info);
    if (error) {
        *out = (struct cli_case){0};
        return error;
    }
    error = sw_findings_of_summary(&out->findings, out->summary, info);
    if (error) {
        cli_case_free(out);
    }
    return error;
}

void cli_case_free(struct cli_case *it)
{
    sw_findings_free(it->findings);
    sw_summary_free(it->summary);
    sw_run_free(it->run);
    *it = (struct cli_case){0};
}
