/* A place with runs, as `stepwatch run` would have left them. */
#ifndef HISTORY_FIXTURE_H
#define HISTORY_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stepwatch/history.h>

struct place {
    char path[64];
};

static inline struct place place_new(void)
{
    struct place place = {.path = "/tmp/test_history_XXXXXX"};
    assert_non_null(mkdtemp(place.path));
    return place;
}

static inline void place_free(struct place *place)
{
    char command[256];
    snprintf(command, sizeof command, "chmod -R u+rwx %s && rm -r %s", place->path,
             place->path);
    assert_int_equal(system(command), 0);
}

/* PLACE/NAME, in one of some buffers that take turns. */
static inline const char *in(const struct place *place, const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", place->path, name);
    return path;
}

static inline void write_bytes(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *path, const char *text)
{
    write_bytes(path, text, strlen(text));
}

/* Makes the folders of a path below the place. */
static inline void make_folders(const struct place *place, const char *name)
{
    char command[600];
    snprintf(command, sizeof command, "mkdir -p '%s'", in(place, name));
    assert_int_equal(system(command), 0);
}

/* What a run says of itself. What is 0 is usual: a script train.py without arguments that went well. */
struct made {
    const char *program; /* "/w/train.py" */
    const char *argument;
    double started_s; /* 1000 */
    double p50_ms;    /* 10; < 0: no steps */
    int code;
    bool incomplete, no_report;
    const char *finding;
    const char *more; /* members of run.json */
};

static inline void write_run(const struct place *place, const char *name,
                             struct made made)
{
    char path[600];
    char text[4096];
    const char *program = made.program ? made.program : "/w/train.py";
    const double p50 = made.p50_ms ? made.p50_ms : 10;
    make_folders(place, name);
    snprintf(path, sizeof path, "%s/%s/run.json", place->path, name);
    snprintf(text, sizeof text,
             "{\"schema\": \"stepwatch.run/1\", \"id\": \"id-%s\", \"name\": \"train\", "
             "\"command\": [\"python3\", \"%s\"%s%s%s], \"started_unix_s\": %.6f, "
             "\"duration_s\": 2.5, \"exit\": {\"code\": %d, \"signal\": null}, "
             "\"host\": \"h\", \"program\": {\"name\": \"%s\", \"word\": 1}, "
             "\"git\": {\"commit\": \"0123456789abcdef0123456789abcdef01234567\", "
             "\"dirty\": null}, \"config\": {\"max_mb\": \"64\"}%s}",
             name, program, made.argument ? ", \"" : "",
             made.argument ? made.argument : "", made.argument ? "\"" : "",
             made.started_s ? made.started_s : 1000, made.code, program,
             made.more ? made.more : "");
    write_text(path, text);
    if (made.no_report) {
        return;
    }
    char steps[1024] = "{\"recorded\": false, \"why\": \"none\"}";
    if (p50 > 0) {
        snprintf(steps, sizeof steps,
                 "{\"count\": 400, \"step_ms\": {\"mean\": %.6f, \"p50\": %.6f, \"p99\": "
                 "%.6f}, "
                 "\"steps_per_s\": %.6f, \"samples_per_s\": null, \"phases\": ["
                 "{\"phase\": \"data_wait\", \"ms\": 1, \"share\": 0.25}, "
                 "{\"phase\": \"loss\", \"ms\": null, \"share\": null}, "
                 "{\"phase\": \"other\", \"ms\": 3, \"share\": 0.75}]}",
                 p50, p50, 2 * p50, 1000 / p50);
    }
    char findings[256] = "[]";
    if (made.finding) {
        snprintf(findings, sizeof findings,
                 "[{\"kind\": \"%s\", \"evidence\": {\"a\": [1, {}]}, \"predicted\": "
                 "{\"step_ms\": 5, \"speedup\": 1.5}}, {\"kind\": \"gc\"}]",
                 made.finding);
    }
    snprintf(path, sizeof path, "%s/%s/report.json", place->path, name);
    snprintf(
        text, sizeof text,
        "{\"schema\": \"stepwatch.report/1\", \"run\": {\"id\": \"other\", \"name\": "
        "\"train\", "
        "\"command\": \"python3 train.py\", \"complete\": %s, \"python\": \"3.11.7\", "
        "\"frameworks\": {\"torch\": \"2.1\"}}, \"overhead\": {\"percent\": 0.5}, "
        "\"steps\": %s, \"loader\": {\"workers\": 2, \"batch_size\": 64}, "
        "\"findings\": %s, \"notes\": []}",
        made.incomplete ? "false" : "true", steps, findings);
    write_text(path, text);
}

static inline sw_history *read_history(const struct place *place, const char *program)
{
    sw_history *history;
    sw_error_info info = {0};
    if (sw_history_read(&history, place->path, program, &info) != SW_OK) {
        fail_msg("%s", info.message);
    }
    return history;
}

static inline bool has_note(const sw_history *history, const char *part)
{
    const char *note;
    for (size_t i = 0; (note = sw_history_note(history, i)) != NULL; i++) {
        if (strstr(note, part)) {
            return true;
        }
    }
    return false;
}

static inline void add(const struct place *place, const char *name)
{
    sw_error_info info = {0};
    if (sw_history_add(in(place, name), &info) != SW_OK || info.message[0]) {
        fail_msg("%s", info.message);
    }
}

#endif
