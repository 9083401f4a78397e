#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/history.h>
#include <stepwatch/redact.h>
#include <stepwatch/version.h>

#include "cli/cli.h"
#include "cli/look.h"
#include "cli/run_results.h"

/* Lines of a profile that are shown; the file has all. */
#define FUNCTIONS_SHOWN 15

static int create_private(const struct run_dir *dir, const char *file)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", dir->path, file);
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void put_number(sw_writer *w, const char *key, int value, int unknown)
{
    sw_json_key(w, key);
    if (value == unknown) {
        sw_json_null(w);
    } else {
        sw_json_int(w, value);
    }
}

static void put_text(sw_writer *w, const char *key, const char *text)
{
    sw_json_key(w, key);
    sw_json_string(w, text);
}

static void put_run_json(sw_writer *w, const struct run_results *results)
{
    const struct outcome *outcome = results->outcome;
    char text[4096];
    time_t seconds = (time_t)(outcome->started_real_ns / 1000000000u);
    struct tm parts;
    sw_json_start(w, true);
    sw_json_object_begin(w);
    put_text(w, "schema", "stepwatch.run/1");
    put_text(w, "id", results->dir->id);
    put_text(w, "name", results->name);
    sw_json_key(w, "command");
    sw_json_array_begin(w);
    int flag = 0;
    for (char *const *word = results->command; *word; word++) {
        sw_redact_argument(text, sizeof text, *word, strlen(*word), &flag);
        sw_json_string(w, text);
    }
    sw_json_array_end(w);
    gmtime_r(&seconds, &parts);
    size_t used = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text + used, sizeof text - used, ".%03uZ",
             (unsigned)(outcome->started_real_ns % 1000000000u / 1000000u));
    put_text(w, "started_utc", text);
    sw_json_key(w, "started_unix_s");
    uint64_t microseconds = outcome->started_real_ns / 1000;
    sw_json_double(w, (double)microseconds / 1e6);
    sw_json_key(w, "started_monotonic_ns");
    sw_json_uint(w, outcome->started_mono_ns);
    sw_json_key(w, "duration_s");
    sw_json_double(w, (double)outcome->duration_ns / 1e9);
    sw_json_key(w, "exit");
    sw_json_object_begin(w);
    put_number(w, "code", outcome->code, -1);
    put_number(w, "signal", outcome->signal, 0);
    sw_json_object_end(w);
    if (gethostname(text, sizeof text) != 0) {
        text[0] = '\0';
    }
    text[sizeof text - 1] = '\0';
    put_text(w, "host", text[0] ? text : NULL);
    put_text(w, "version", SW_VERSION_STRING);
    run_origin_write(w, results->origin);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}

/* Writes a file of the run directory by `fill`. */
static void write_file(const struct run_dir *dir, const char *file, sw_writer **writer,
                       int *fd)
{
    *fd = create_private(dir, file);
    *writer = *fd >= 0 ? sw_writer_to_fd(*fd) : NULL;
    if (!*writer) {
        cli_complain("%s could not be written: %s", file,
                     *fd < 0 ? strerror(errno) : sw_error_text(SW_ENOMEM));
    }
}

static int finish_file(const char *file, sw_writer *writer, int fd)
{
    sw_error_info info = {0};
    int error = writer ? sw_writer_close(writer, &info) : 0;
    if (fd >= 0) {
        close(fd);
    }
    if (error) {
        cli_complain("%s could not be written: %s", file,
                     info.message[0] ? info.message : sw_error_text(error));
    }
    return error;
}

static void leave_run_json(const struct run_results *results)
{
    sw_writer *writer;
    int fd;
    write_file(results->dir, "run.json", &writer, &fd);
    if (writer) {
        put_run_json(writer, results);
    }
    (void)finish_file("run.json", writer, fd);
}

/* Shows what was asked for line by line and call by call, of all processes together; the report has the gist of it. */
static void show_profiles(sw_writer *writer, const sw_summary *summary,
                          const sw_text_options *look)
{
    const sw_functions *functions = sw_summary_functions(summary);
    sw_lines *lines = sw_summary_lines(summary);
    if (writer && functions) {
        const sw_functions_text_options options = {.limit = FUNCTIONS_SHOWN,
                                                   .columns = look->columns};
        sw_write_text(writer, "\n");
        sw_export_functions_text(writer, functions, &options);
    }
    if (writer && lines) {
        const sw_lines_text_options options = {.columns = look->columns,
                                               .unicode = look->unicode};
        sw_write_text(writer, "\n");
        sw_export_lines_text(writer, lines, &options);
    }
}

/* Leaves one report in the run directory, whole or not at all. True: it is there. */
static bool leave_file(const struct run_dir *dir, const char *file,
                       const struct cli_case *it,
                       void (*put)(sw_writer *writer, const sw_summary *summary,
                                   const sw_findings *findings))
{
    sw_writer *writer;
    int fd;
    write_file(dir, file, &writer, &fd);
    if (writer) {
        put(writer, it->summary, it->findings);
    }
    if (finish_file(file, writer, fd) != SW_OK) {
        char path[PATH_MAX + 32];
        snprintf(path, sizeof path, "%s/%s", dir->path, file);
        unlink(path);
        return false;
    }
    return writer != NULL;
}

/* Writes and shows the report. True: the traces hold calls of functions. */
static bool leave_report(const struct run_results *results)
{
    const struct run_dir *dir = results->dir;
    struct cli_case it;
    sw_error_info info = {0};
    int error = cli_case_open(&it, dir->path, &info);
    if (error) {
        cli_complain("no report could be made: %s",
                     info.message[0] ? info.message : sw_error_text(error));
        return false;
    }
    const bool json = leave_file(dir, "report.json", &it, sw_export_report_json);
    const bool html = leave_file(dir, "report.html", &it, sw_export_report_html);

    sw_text_options look =
        cli_text_options(STDERR_FILENO, 0, "auto", CLI_CHARACTERS_AUTO, 0);
    sw_writer *writer = sw_writer_to_fd(STDERR_FILENO);
    if (writer) {
        sw_write_text(writer, "\n");
        sw_export_report_text(writer, it.summary, it.findings, &look);
    }
    show_profiles(writer, it.summary, &look);
    /* In a file it is one line each, for whoever looks for them. */
    const size_t columns = isatty(STDERR_FILENO) ? look.columns : 0;
    if (writer && (json || html)) {
        char text[120];
        snprintf(text, sizeof text, "Report: %s%s%s; tables: stepwatch report --top 20",
                 html ? "report.html" : "", html && json ? ", " : "",
                 json ? "report.json" : "");
        look_wrap(writer, text, columns);
    }
    if (writer && results->history) {
        run_compare_previous(dir, it.summary, writer, !look.unicode, columns);
    }
    sw_writer_close(writer, NULL);
    const bool functions = sw_summary_functions(it.summary) != NULL;
    cli_case_free(&it);
    return functions;
}

/* Whether the program left STEM.TYPE, and how many of its children STEM-PID.TYPE. */
static bool find_profiles(const struct run_dir *dir, const char *stem, const char *type,
                          size_t *children)
{
    bool own = false;
    DIR *folder = opendir(dir->path);
    *children = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        const char *name = entry->d_name;
        const size_t length = strlen(name);
        if (strncmp(name, stem, strlen(stem)) != 0 || length < strlen(type) ||
            strcmp(name + length - strlen(type), type) != 0) {
            continue;
        }
        own |= length == strlen(stem) + strlen(type);
        *children += name[strlen(stem)] == '-';
    }
    if (folder) {
        closedir(folder);
    }
    return own;
}

/* Says which files of a profile there are; they lie in the directory that is named last. True: there are some. */
static bool mention(const struct run_dir *dir, const char *what, const char *stem,
                    const char *type)
{
    size_t children;
    const bool own = find_profiles(dir, stem, type, &children);
    if (!own && children == 0) {
        return false;
    }
    fprintf(stderr, "%s: ", what);
    if (own) {
        fprintf(stderr, "%s%s, %s.txt%s", stem, type, stem, children ? "; " : "");
    }
    if (children) {
        fprintf(stderr, "%s-PID%s, %s-PID.txt of %zu child process%s", stem, type, stem,
                children, children == 1 ? "" : "es");
    }
    fprintf(stderr, "\n");
    return true;
}

/* Nothing was recorded: why, as far as that can be known. */
static void complain_nothing(const struct run_results *results)
{
    struct cli_sentences notes = {0};
    char itself[64];
    snprintf(itself, sizeof itself, "process %ld)", results->outcome->process);
    cli_read_notes(results->dir->path, &notes);
    bool known = notes.count > 0 || results->told;
    for (size_t i = 0; i < notes.count; i++) {
        if (!strstr(notes.text[i],
                    itself)) { /* what the program could say itself, it has */
            cli_complain("%s", notes.text[i]);
        }
    }
    cli_sentences_free(&notes);
    if (known) {
        return;
    }
    if (results->python) {
        cli_complain(
            "%.100s recorded nothing; a Python that is started with -I, -E or -S "
            "does not see the recorder.",
            results->shown_name);
    } else {
        cli_complain(
            "%.100s recorded nothing; link it with the library (pkg-config --cflags "
            "--libs stepwatch) and call sw_init, or open a section.",
            results->shown_name);
    }
}

/* Whatever goes wrong there is a sentence: the run has its results. */
static void leave_in_history(const struct run_results *results)
{
    sw_error_info info = {0};
    const int error = sw_history_add(results->dir->path, &info);
    if (error) {
        cli_complain("the run was not added to the history: %s",
                     info.message[0] ? info.message : sw_error_text(error));
    } else if (info.message[0]) {
        cli_complain("%s", info.message);
    }
}

void run_results_leave(const struct run_results *results)
{
    const struct run_dir *dir = results->dir;
    bool counted = false;
    leave_run_json(results);
    if (!run_dir_has_traces(dir->path)) {
        complain_nothing(results);
    } else if (results->report) {
        counted = leave_report(results);
    } else {
        struct cli_sentences problems = {0};
        cli_fold_run(dir->path, &problems);
        for (size_t i = 0; i < problems.count; i++) {
            cli_complain("%s", problems.text[i]);
        }
        cli_sentences_free(&problems);
    }
    if (!mention(dir, "Function profile", "functions", ".stats") && counted &&
        results->functions) {
        cli_complain(
            "no functions.stats was written; 'stepwatch export %.300s --to pstats' "
            "writes one from the traces.",
            dir->path);
    }
    mention(dir, "Line profile", "lines", ".json");
    if (results->report && results->history) {
        leave_in_history(results);
    }
    fprintf(stderr, "%s\n", dir->path);
}
