#include <dirent.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <stepwatch/export.h>

#include "analyze/summary.h"
#include "history/pairs.h"
#include "history/run_files.h"
#include "history/small_file.h"

#define REPORT_MOST (64u << 20)
#define COMMAND_MOST 8192
#define WORDS_MOST 1024

void sw__run_unknown(sw_history_run *out)
{
    *out = (sw_history_run){.dirty = -1,
                            .started_s = NAN,
                            .duration_s = NAN,
                            .exit_code = -1,
                            .exit_signal = -1,
                            .complete = -1,
                            .batch_size = -1,
                            .workers = -1,
                            .steps = SW_UNKNOWN,
                            .step_mean_ms = NAN,
                            .step_p50_ms = NAN,
                            .step_p99_ms = NAN,
                            .steps_per_s = NAN,
                            .samples_per_s = NAN,
                            .overhead_percent = NAN,
                            .speedup = NAN,
                            .change = NAN};
}

/* --- the program --- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Which word of a command names the program, where nobody says: of a Python the script, or the module after -m. */
static size_t find_operand(const char *const *words, size_t count)
{
    if (count == 0 || strncmp(last_part(words[0]), "python", 6) != 0) {
        return 0;
    }
    for (size_t i = 1; i < count; i++) {
        const char *word = words[i];
        if (strcmp(word, "-c") == 0) {
            return 0;
        }
        if (strcmp(word, "-m") == 0) {
            return i + 1 < count ? i + 1 : 0;
        }
        if (strcmp(word, "-W") == 0 || strcmp(word, "-X") == 0) {
            i++;
        } else if (word[0] != '-') {
            return i;
        }
    }
    return 0;
}

/* A script as a path that is the same wherever it is started from; names stay names. */
static const char *absolute(const char *word, const char *folder, sw__arena *arena)
{
    char joined[PATH_MAX];
    char real[PATH_MAX];
    const char *path = word;
    const size_t length = strlen(word);
    const bool script = length > 3 && strcmp(word + length - 3, ".py") == 0;
    if (word[0] != '/' && folder && (script || strchr(word, '/')) &&
        sw__join_path(joined, sizeof joined, folder, word)) {
        path = joined;
    }
    if (path[0] == '/' && realpath(path, real)) {
        path = real;
    }
    return sw__arena_copy(arena, path, strlen(path));
}

/* FNV-1a over the words with their NULs, without what is started and what it runs: those have a column of their own. */
static const char *hash_arguments(const char *const *words, size_t count, size_t operand,
                                  sw__arena *arena)
{
    uint64_t hash = 0xcbf29ce484222325u;
    char text[20];
    for (size_t i = 1; i < count; i++) {
        const size_t length = i == operand ? 0 : strlen(words[i]) + 1;
        for (size_t k = 0; k < length; k++) {
            hash = (hash ^ (unsigned char)words[i][k]) * 0x100000001b3u;
        }
    }
    const int length = snprintf(text, sizeof text, "%016" PRIx64, hash);
    return sw__arena_copy(arena, text, (size_t)length);
}

static const char *join_words(const char *const *words, size_t count, sw__arena *arena)
{
    char text[COMMAND_MOST];
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        used = sw__command_append(text, used, sizeof text, words[i]);
    }
    return sw__arena_copy(arena, text, used);
}

void sw__run_identify(sw_history_run *out, const char *const *words, size_t count,
                      const char *program, size_t operand, const char *folder,
                      sw__arena *arena)
{
    if (count == 0) {
        return;
    }
    if (!program) {
        operand = find_operand(words, count);
        program = absolute(words[operand], folder, arena);
    }
    out->program = program;
    out->arguments = hash_arguments(words, count, operand, arena);
    out->command = join_words(words, count, arena);
}

/* --- traces --- */

static bool is_running(const sw_summary *summary)
{
    for (size_t i = 0; i < sw_summary_process_count(summary); i++) {
        if (sw_summary_get_process(summary, i)->end == SW_TRACE_RUNNING) {
            return true;
        }
    }
    return false;
}

/* What the first process says of its command. */
static void identify_by_trace(sw_history_run *out, const sw_run *run, sw__arena *arena)
{
    const char *words[WORDS_MOST];
    size_t count = 0;
    const sw_trace *trace = sw_run_trace(run, 0);
    const char *command = trace ? sw_trace_fact(trace, "command") : NULL;
    if (out->program || !command) {
        return;
    }
    struct sw__scan json = {.at = command, .end = command + strlen(command)};
    bool first = true;
    (void)sw__scan_enter(&json, SW__SCAN_ARRAY);
    while (sw__scan_element(&json, &first)) {
        const char *word = sw__scan_text(&json, arena);
        if (word && count < WORDS_MOST) {
            words[count++] = word;
        }
    }
    if (!json.bad) {
        sw__run_identify(out, words, count, NULL, 0, sw_trace_fact(trace, "cwd"), arena);
    }
}

/* The report that a run without one would have, made from its traces. */
static int read_traces(sw_history_run *out, const char *directory, sw__arena *arena,
                       sw_error_info *info)
{
    sw_run *run = NULL;
    sw_summary *summary = NULL;
    sw_findings *findings = NULL;
    sw_writer *writer = NULL;
    int result = sw_run_open(&run, directory, info);
    if (result == SW_OK) {
        result = sw_summary_create(&summary, run, info);
    }
    if (result != SW_OK) {
        goto out;
    }
    if (is_running(summary)) {
        result =
            sw_error_set(info, SW_ESTATE, "the run in %.300s still goes on", directory);
        goto out;
    }
    result = sw_findings_of_summary(&findings, summary, info);
    writer = sw_writer_to_memory();
    if (result == SW_OK && writer) {
        size_t length;
        sw_export_report_json(writer, summary, findings);
        const char *text = sw_writer_text(writer, &length);
        result = text ? sw__run_report_read(out, text, length, arena) : SW_ENOMEM;
        identify_by_trace(out, run, arena);
    } else if (result == SW_OK) {
        result = SW_ENOMEM;
    }
out:
    sw_writer_close(writer, NULL);
    sw_findings_free(findings);
    sw_summary_free(summary);
    sw_run_free(run);
    return result;
}

/* --- the directory --- */

static bool has_traces(const char *directory, bool deep)
{
    DIR *stream = opendir(directory);
    bool found = false;
    const struct dirent *entry;
    while (stream && !found && (entry = readdir(stream)) != NULL) {
        char path[PATH_MAX];
        const char *name = entry->d_name;
        found = fnmatch("?*.stepwatch", name, FNM_PERIOD) == 0;
        /* A run of several ranks may have a folder for each. */
        if (!found && deep &&
            (fnmatch("rank*", name, 0) == 0 || fnmatch("node*", name, 0) == 0) &&
            sw__join_path(path, sizeof path, directory, name)) {
            found = has_traces(path, false);
        }
    }
    if (stream) {
        closedir(stream);
    }
    return found;
}

static bool has_file(const char *directory, const char *name)
{
    char path[PATH_MAX];
    return sw__join_path(path, sizeof path, directory, name) && access(path, F_OK) == 0;
}

bool sw__run_is_there(const char *directory)
{
    return has_file(directory, "run.json") || has_file(directory, "report.json") ||
           has_traces(directory, true);
}

bool sw__run_has_report(const char *directory)
{
    return has_file(directory, "report.json");
}

static bool is_off(const sw_history_run *run, const char *option)
{
    static const char *const words[] = {"off", "0", "false", "no"};
    for (size_t i = 0; i < run->config.count; i++) {
        const sw_history_pair *pair = &run->config.pair[i];
        for (size_t k = 0; pair->text && k < 4 && strcmp(pair->key, option) == 0; k++) {
            if (strcasecmp(pair->text, words[k]) == 0) {
                return true;
            }
        }
    }
    return false;
}

static int read_report(sw_history_run *out, const char *directory, sw__arena *arena)
{
    char path[PATH_MAX];
    size_t length = 0;
    char *text = sw__join_path(path, sizeof path, directory, "report.json")
                     ? sw__small_file(path, REPORT_MOST, &length)
                     : NULL;
    const int result =
        text ? sw__run_report_read(out, text, length, arena) : SW_ENOTFOUND;
    sw__free(text);
    return result;
}

int sw__run_read(sw_history_run *out, const char *folder, const char *name,
                 sw__arena *arena, sw_error_info *info)
{
    char directory[PATH_MAX];
    char report[PATH_MAX];
    sw__run_unknown(out);
    if (!sw__join_path(directory, sizeof directory, folder, name) ||
        !sw__join_path(report, sizeof report, name, "report.json")) {
        return sw_error_set(info, SW_EINVAL, "the path of the run %.100s is too long",
                            name);
    }
    const bool supervised = sw__run_json_read(out, directory, arena) == SW_OK;
    if (is_off(out, "history") || is_off(out, "report")) {
        return SW_EDISABLED;
    }
    const bool reported = read_report(out, directory, arena) == SW_OK;
    if (reported) {
        out->report = sw__arena_copy(arena, report, strlen(report));
    }
    if ((!reported || !out->program) && has_traces(directory, true)) {
        const int result = read_traces(out, directory, arena, info);
        if (result != SW_OK && !reported && !supervised) {
            return result;
        }
    } else if (!reported && !supervised) {
        return sw_error_set(info, SW_ENOTFOUND, "%.300s holds no run", directory);
    }
    out->directory = sw__arena_copy(arena, name, strlen(name));
    return out->directory ? SW_OK : SW_ENOMEM;
}
