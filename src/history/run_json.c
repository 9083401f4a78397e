/* run.json, which `stepwatch run` leaves in the run directory. */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "history/pairs.h"
#include "history/run_files.h"
#include "history/small_file.h"

#define FILE_MOST (1u << 20)
#define WORDS_MOST 1024

/* What stands in the file and says more together than alone. */
struct start {
    const char *words[WORDS_MOST]; /* the command */
    size_t count;
    const char *program; /* NULL: older versions do not say */
    size_t operand;      /* which word names it */
    const char *folder;  /* where the command was started */
};

static void scan_words(struct start *start, struct sw__scan *json, sw__arena *arena)
{
    bool first = true;
    if (sw__scan_peek(json) != SW__SCAN_ARRAY) {
        (void)sw__scan_skip(json);
        return;
    }
    (void)sw__scan_enter(json, SW__SCAN_ARRAY);
    while (sw__scan_element(json, &first)) {
        const char *word = sw__scan_text(json, arena);
        if (word && start->count < WORDS_MOST) {
            start->words[start->count++] = word;
        }
    }
}

static void scan_exit(sw_history_run *out, struct sw__scan *json)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    out->exit_signal = 0;
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const double value = sw__scan_double(json);
        if (strcmp(key, "code") == 0) {
            out->exit_code = value >= 0 && value <= 255 ? (int)value : -1;
        } else if (strcmp(key, "signal") == 0) {
            out->exit_signal = value > 0 && value <= 64 ? (int)value : 0;
        }
    }
}

static void scan_program(struct start *start, struct sw__scan *json, sw__arena *arena)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "name") == 0) {
            start->program = sw__scan_text(json, arena);
        } else if (strcmp(key, "word") == 0) {
            const double word = sw__scan_double(json);
            start->operand = word >= 0 && word < WORDS_MOST ? (size_t)word : 0;
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

static void scan_git(sw_history_run *out, struct sw__scan *json, sw__arena *arena)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "commit") == 0) {
            out->commit = sw__scan_text(json, arena);
        } else if (strcmp(key, "dirty") == 0) {
            out->dirty = sw__scan_truth(json);
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

static void scan_member(sw_history_run *out, struct start *start, const char *key,
                        struct sw__scan *json, sw__arena *arena)
{
    if (strcmp(key, "id") == 0) {
        out->id = sw__scan_text(json, arena);
    } else if (strcmp(key, "name") == 0) {
        out->name = sw__scan_text(json, arena);
    } else if (strcmp(key, "host") == 0) {
        out->host = sw__scan_text(json, arena);
    } else if (strcmp(key, "started_unix_s") == 0) {
        out->started_s = sw__scan_double(json);
    } else if (strcmp(key, "duration_s") == 0) {
        out->duration_s = sw__scan_double(json);
    } else if (strcmp(key, "exit") == 0) {
        scan_exit(out, json);
    } else if (strcmp(key, "command") == 0) {
        scan_words(start, json, arena);
    } else if (strcmp(key, "program") == 0) {
        scan_program(start, json, arena);
    } else if (strcmp(key, "folder") == 0) {
        start->folder = sw__scan_text(json, arena);
    } else if (strcmp(key, "git") == 0) {
        scan_git(out, json, arena);
    } else if (strcmp(key, "config") == 0) {
        out->config = sw__pairs_scan(json, arena);
    } else {
        (void)sw__scan_skip(json);
    }
}

int sw__run_json_read(sw_history_run *out, const char *directory, sw__arena *arena)
{
    char path[PATH_MAX];
    size_t length = 0;
    if (!sw__join_path(path, sizeof path, directory, "run.json")) {
        return SW_ENOTFOUND;
    }
    char *text = sw__small_file(path, FILE_MOST, &length);
    struct start *start = text ? sw__alloc_zero(1, sizeof *start) : NULL;
    int result = text && !start ? SW_ENOMEM : SW_ENOTFOUND;
    if (!start) {
        goto out;
    }
    struct sw__scan json = {.at = text, .end = text + length};
    sw_history_run run = *out;
    char key[64];
    bool first = true;
    bool ours = false;
    (void)sw__scan_enter(&json, SW__SCAN_OBJECT);
    while (sw__scan_member(&json, &first, key, sizeof key)) {
        if (strcmp(key, "schema") == 0) {
            const char *schema = sw__scan_text(&json, arena);
            ours = schema && strcmp(schema, "stepwatch.run/1") == 0;
        } else {
            scan_member(&run, start, key, &json, arena);
        }
    }
    if (!json.bad && ours) {
        sw__run_identify(&run, start->words, start->count, start->program, start->operand,
                         start->folder, arena);
        *out = run;
        result = SW_OK;
    }
out:
    sw__free(start);
    sw__free(text);
    return result;
}
