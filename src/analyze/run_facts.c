/* What is known of the run as a whole: from the files of its processes and, where `stepwatch run`
 * started it, from the run.json that it left beside them. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/json_scan.h"
#include "analyze/summary.h"

#define RUN_FILE_MAX (1u << 20)

/* The supervisor's file as text, or NULL when there is none. The caller frees it. */
static char *load_run_file(sw_summary *summary, size_t *length)
{
    char path[4096];
    const char *folder = sw_run_path(summary->source);
    if (!folder ||
        snprintf(path, sizeof path, "%s/run.json", folder) >= (int)sizeof path) {
        return NULL;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return NULL; /* also when the path is a file: then there is nothing beside it */
    }
    struct stat status;
    char *text = NULL;
    size_t used = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        text = sw__alloc(RUN_FILE_MAX);
    }
    while (text && used < RUN_FILE_MAX) {
        ssize_t got = read(fd, text + used, RUN_FILE_MAX - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        used += (size_t)got;
    }
    close(fd);
    *length = used;
    return text;
}

size_t sw__command_append(char *out, size_t used, size_t size, const char *argument)
{
    bool plain =
        *argument != '\0' && !argument[strcspn(argument, " \t\n\"'\\$`!*?[](){}<>|&;~#")];
    if (used > 0 && used < size) {
        out[used++] = ' ';
    }
    if (!plain && used < size) {
        out[used++] = '\'';
    }
    for (; *argument && used < size; argument++) {
        if (*argument == '\'') {
            for (const char *quote = "'\\''"; *quote && used < size; quote++) {
                out[used++] = *quote;
            }
        } else {
            out[used++] = *argument;
        }
    }
    if (!plain && used < size) {
        out[used++] = '\'';
    }
    return used;
}

static const char *read_command(sw_summary *summary, struct sw__scan *json)
{
    char command[8192];
    char argument[4096];
    size_t used = 0;
    bool first = true;
    if (!sw__scan_enter(json, SW__SCAN_ARRAY)) {
        return NULL;
    }
    while (sw__scan_element(json, &first) &&
           sw__scan_string(json, argument, sizeof argument) >= 0) {
        used = sw__command_append(command, used, sizeof command, argument);
    }
    return json->bad ? NULL : sw__summary_copy(summary, command, used);
}

/* The command line of a process as a shell would take it; facts hold it as a JSON array. */
static const char *command_of(sw_summary *summary, const sw_trace *trace)
{
    const char *fact = sw_trace_fact(trace, "command");
    if (!fact) {
        return NULL;
    }
    struct sw__scan json = {.at = fact, .end = fact + strlen(fact)};
    const char *command = read_command(summary, &json);
    return command ? command : fact;
}

static const char *read_text(sw_summary *summary, struct sw__scan *json)
{
    char text[1024];
    if (sw__scan_peek(json) != SW__SCAN_STRING) {
        (void)sw__scan_skip(json);
        return NULL;
    }
    if (sw__scan_string(json, text, sizeof text) < 0) {
        return NULL;
    }
    return sw__summary_copy(summary, text, strlen(text));
}

/* NaN where there is no number. */
static double read_number(struct sw__scan *json)
{
    double value = NAN;
    if (sw__scan_peek(json) != SW__SCAN_NUMBER) {
        (void)sw__scan_skip(json);
    } else if (!sw__scan_number(json, &value)) {
        value = NAN;
    }
    return value;
}

static void read_exit(sw_summary_run *run, struct sw__scan *json)
{
    char key[32];
    bool first = true;
    if (sw__scan_peek(json) != SW__SCAN_OBJECT) {
        (void)sw__scan_skip(json);
        return;
    }
    (void)sw__scan_enter(json, SW__SCAN_OBJECT);
    while (sw__scan_member(json, &first, key, sizeof key)) {
        double value = read_number(json);
        if (strcmp(key, "code") == 0) {
            run->exit_code = value >= 0 && value <= 255 ? (int)value : -1;
        } else if (strcmp(key, "signal") == 0) {
            run->exit_signal = value > 0 && value <= 64 ? (int)value : 0;
        }
    }
}

/* 0 when the file is there and good; anything else leaves the caller with what the traces say. */
static void read_run_file(sw_summary *summary)
{
    size_t length = 0;
    char *text = load_run_file(summary, &length);
    if (!text) {
        return;
    }
    struct sw__scan json = {.at = text, .end = text + length};
    sw_summary_run run = summary->run;
    double started = NAN;
    double duration = NAN;
    bool first = true;
    bool ours = false;
    char key[64];
    (void)sw__scan_enter(&json, SW__SCAN_OBJECT);
    while (sw__scan_member(&json, &first, key, sizeof key)) {
        if (strcmp(key, "schema") == 0) {
            const char *schema = read_text(summary, &json);
            ours = schema && strcmp(schema, "stepwatch.run/1") == 0;
        } else if (strcmp(key, "id") == 0) {
            run.id = read_text(summary, &json);
        } else if (strcmp(key, "name") == 0) {
            run.name = read_text(summary, &json);
        } else if (strcmp(key, "host") == 0) {
            run.host = read_text(summary, &json);
        } else if (strcmp(key, "command") == 0 &&
                   sw__scan_peek(&json) == SW__SCAN_ARRAY) {
            run.command = read_command(summary, &json);
        } else if (strcmp(key, "started_monotonic_ns") == 0) {
            started = read_number(&json);
        } else if (strcmp(key, "started_unix_s") == 0) {
            double unix_s = read_number(&json);
            run.started_real_ns = unix_s > 0 && unix_s < 1e10
                                      ? (uint64_t)(unix_s * 1e6 + 0.5) * 1000
                                      : run.started_real_ns;
        } else if (strcmp(key, "duration_s") == 0) {
            duration = read_number(&json);
        } else if (strcmp(key, "exit") == 0) {
            read_exit(&run, &json);
        } else {
            (void)sw__scan_skip(&json);
        }
    }
    sw__free(text);
    if (json.bad || !ours) {
        (void)sw__summary_note(summary, "run.json could not be read, so command and exit "
                                        "code are not known.");
        return;
    }
    run.supervised = true;
    if (duration >= 0 && duration < 1e9) {
        run.duration_ns = (uint64_t)(duration * 1e9 + 0.5);
        if (started > 0 && started < 9e18) {
            summary->origin_ns = (uint64_t)started;
        }
    }
    summary->run = run;
}

static bool known_framework(const sw_summary *summary, const char *name)
{
    for (size_t i = 0; i < summary->framework_count; i++) {
        if (strcmp(summary->frameworks[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

#define FRAMEWORK_PREFIX "framework."
#define FRAMEWORKS_MAX 64

static int collect_frameworks(sw_summary *summary, const sw_trace *trace)
{
    const char *key;
    const char *value;
    size_t prefix = strlen(FRAMEWORK_PREFIX);
    if (!summary->frameworks) {
        summary->frameworks =
            sw__summary_take(summary, FRAMEWORKS_MAX, sizeof *summary->frameworks);
    }
    if (!summary->frameworks) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; sw_trace_fact_at(trace, i, &key, &value); i++) {
        if (strncmp(key, FRAMEWORK_PREFIX, prefix) == 0 &&
            summary->framework_count < FRAMEWORKS_MAX &&
            !known_framework(summary, key + prefix)) {
            summary->frameworks[summary->framework_count++] =
                (struct sw__framework){key + prefix, value};
        }
    }
    return SW_OK;
}

/* As text; traces of earlier versions have only the variable. */
static const char *rank_of(const sw_summary *summary, size_t index)
{
    const sw_trace *trace = sw__summary_trace(summary, index);
    const char *rank = sw_trace_fact(trace, "rank");
    return rank ? rank : sw_trace_fact(trace, "env.RANK");
}

/* Processes with different ranks; 1 when no process says that it has one. */
static size_t count_ranks(const sw_summary *summary)
{
    size_t ranks = 0;
    for (size_t i = 0; i < summary->traces; i++) {
        const char *rank = rank_of(summary, i);
        bool fresh = rank != NULL;
        for (size_t k = 0; fresh && k < i; k++) {
            const char *other = rank_of(summary, k);
            fresh = !other || strcmp(other, rank) != 0;
        }
        ranks += fresh;
    }
    return ranks ? ranks : 1;
}

static const char *unless_empty(const char *text)
{
    return text && *text ? text : NULL;
}

/* Threads of the program: the place of the watchers has no kernel id. */
static size_t count_threads(const sw_trace *trace)
{
    size_t count = 0;
    for (size_t i = 0; i < sw_trace_thread_count(trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace, i);
        count += thread && thread->tid != 0;
    }
    return count;
}

bool sw__summary_dismissed(const sw_summary *summary, size_t index)
{
    const sw_trace *trace = sw__summary_trace(summary, index);
    const sw_trace_info *info = sw_trace_get_info(trace);
    bool works = sw_trace_row_count(trace, SW_TABLE_PROFILE) > 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        works = works || lane->steps > 0 || lane->step_open;
    }
    /* One that was ended before its first page was whole. */
    const bool began = info->damaged && info->pid == 0 && sw_trace_lane_count(trace) == 0;
    return summary->run.exit_code == 0 && info->end == SW_TRACE_KILLED &&
           !info->hot_missing && !works &&
           (began || (!info->damaged && info->start_ns > summary->origin_ns));
}

/* Whether files of the run could not be read. One with nothing in it is that of a process that somebody ended while it began, as
 * pools do with their workers: where the program ended well, nothing of it is lacking. */
static bool lacks_files(const sw_summary *summary)
{
    const size_t fine =
        summary->run.exit_code == 0 ? sw_run_empty_count(summary->source) : 0;
    return sw_run_note(summary->source, fine) != NULL;
}

int sw__summary_run(sw_summary *summary)
{
    sw_summary_run *run = &summary->run;
    *run = (sw_summary_run){.started_real_ns = SW_UNKNOWN,
                            .exit_code = -1,
                            .exit_signal = -1,
                            .complete = true,
                            .processes = summary->traces};
    summary->processes =
        sw__summary_take(summary, summary->traces, sizeof *summary->processes);
    if (!summary->processes) {
        return SW_ENOMEM;
    }

    uint64_t begin = UINT64_MAX;
    uint64_t end = 0;
    for (size_t i = 0; i < summary->traces; i++) {
        const sw_trace *trace = sw__summary_trace(summary, i);
        const sw_trace_info *info = sw_trace_get_info(trace);
        size_t threads = count_threads(trace);
        summary->processes[i] = (sw_summary_process){
            .path = info->path,
            .name = info->name,
            .pid = info->pid,
            .ppid = info->ppid,
            .end = info->end,
            .damaged = info->damaged || info->hot_missing,
            .start_ns = info->start_ns,
            .end_ns = info->end_ns,
            .threads = threads,
            .present = info->present,
            .dropped = info->dropped,
            .overwritten = info->overwritten,
        };
        run->threads += threads;
        if (info->start_ns < begin) { /* the first process speaks for the run */
            begin = info->start_ns;
            run->started_real_ns = info->start_real_ns ? info->start_real_ns : SW_UNKNOWN;
            run->id = unless_empty(info->run_id);
            run->name = unless_empty(info->name);
            run->command = command_of(summary, trace);
            run->host = sw_trace_fact(trace, "host");
            run->python = sw_trace_fact(trace, "python");
        }
        end = info->end_ns > end ? info->end_ns : end;
        if (collect_frameworks(summary, trace)) {
            return SW_ENOMEM;
        }
    }
    if (summary->traces > 0) {
        run->duration_ns = sw__sub(end, begin);
        summary->origin_ns = begin;
    }
    run->ranks = count_ranks(summary);
    read_run_file(summary);
    if (lacks_files(summary)) {
        run->complete = false;
    }
    for (size_t i = 0; i < summary->traces; i++) {
        const sw_summary_process *process = &summary->processes[i];
        if ((process->end != SW_TRACE_CLOSED || process->damaged) &&
            !sw__summary_dismissed(summary, i)) {
            run->complete = false;
        }
    }
    return SW_OK;
}
