/* report.json: what was found in a run. */
#include <math.h>
#include <string.h>

#include "history/pairs.h"
#include "history/run_files.h"

static int64_t whole(double value)
{
    return value >= 0 && value < 9e15 ? (int64_t)value : -1;
}

static void keep_text(const char **into, const char *text)
{
    *into = *into ? *into : text;
}

static void scan_exit(sw_history_run *out, struct sw__scan *json)
{
    char key[32];
    bool first = true;
    const bool known = out->exit_code >= 0 || out->exit_signal >= 0;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const double value = sw__scan_double(json);
        if (!known && strcmp(key, "code") == 0 && value >= 0 && value <= 255) {
            out->exit_code = (int)value;
            out->exit_signal = 0;
        } else if (!known && strcmp(key, "signal") == 0 && value > 0 && value <= 64) {
            out->exit_signal = (int)value;
        }
    }
}

static void scan_run(sw_history_run *out, struct sw__scan *json, sw__arena *arena)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "id") == 0) {
            keep_text(&out->id, sw__scan_text(json, arena));
        } else if (strcmp(key, "name") == 0) {
            keep_text(&out->name, sw__scan_text(json, arena));
        } else if (strcmp(key, "command") == 0) {
            keep_text(&out->command, sw__scan_text(json, arena));
        } else if (strcmp(key, "host") == 0) {
            keep_text(&out->host, sw__scan_text(json, arena));
        } else if (strcmp(key, "python") == 0) {
            keep_text(&out->python, sw__scan_text(json, arena));
        } else if (strcmp(key, "started_utc") == 0) {
            const double started = sw__utc_read(sw__scan_text(json, arena));
            out->started_s = isnan(out->started_s) ? started : out->started_s;
        } else if (strcmp(key, "duration_s") == 0) {
            const double duration = sw__scan_double(json);
            out->duration_s = isnan(out->duration_s) ? duration : out->duration_s;
        } else if (strcmp(key, "exit") == 0) {
            scan_exit(out, json);
        } else if (strcmp(key, "complete") == 0) {
            out->complete = sw__scan_truth(json);
        } else if (strcmp(key, "frameworks") == 0) {
            out->frameworks = sw__pairs_scan(json, arena);
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

static void scan_step_ms(sw_history_run *out, struct sw__scan *json)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const double value = sw__scan_double(json);
        if (strcmp(key, "mean") == 0) {
            out->step_mean_ms = value;
        } else if (strcmp(key, "p50") == 0) {
            out->step_p50_ms = value;
        } else if (strcmp(key, "p99") == 0) {
            out->step_p99_ms = value;
        }
    }
}

/* One phase: its name, and its share or NaN. */
static sw_history_pair scan_phase(struct sw__scan *json, sw__arena *arena)
{
    sw_history_pair phase = {.number = NAN};
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return phase;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "phase") == 0) {
            phase.key = sw__scan_text(json, arena);
        } else if (strcmp(key, "share") == 0) {
            phase.number = sw__scan_double(json);
        } else {
            (void)sw__scan_skip(json);
        }
    }
    return phase;
}

/* Those that were measured. */
static void scan_phases(sw_history_run *out, struct sw__scan *json, sw__arena *arena)
{
    sw_history_pair *kept;
    size_t count = 0;
    bool first = true;
    if (sw__scan_peek(json) != SW__SCAN_ARRAY) {
        (void)sw__scan_skip(json);
        return;
    }
    kept =
        sw__arena_take(arena, SW_PHASE_SLOTS * sizeof *kept, _Alignof(sw_history_pair));
    (void)sw__scan_enter(json, SW__SCAN_ARRAY);
    while (sw__scan_element(json, &first)) {
        const sw_history_pair phase = scan_phase(json, arena);
        if (kept && phase.key && !isnan(phase.number) && count < SW_PHASE_SLOTS) {
            kept[count++] = phase;
        }
    }
    if (kept) {
        out->shares = (sw_history_pairs){kept, count};
    }
}

static void scan_steps(sw_history_run *out, struct sw__scan *json, sw__arena *arena)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "count") == 0) {
            const int64_t count = whole(sw__scan_double(json));
            out->steps = count >= 0 ? (uint64_t)count : SW_UNKNOWN;
        } else if (strcmp(key, "step_ms") == 0) {
            scan_step_ms(out, json);
        } else if (strcmp(key, "steps_per_s") == 0) {
            out->steps_per_s = sw__scan_double(json);
        } else if (strcmp(key, "samples_per_s") == 0) {
            out->samples_per_s = sw__scan_double(json);
        } else if (strcmp(key, "phases") == 0) {
            scan_phases(out, json, arena);
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

static void scan_loader(sw_history_run *out, struct sw__scan *json)
{
    char key[32];
    bool first = true;
    if (!sw__scan_object(json)) {
        return;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "batch_size") == 0) {
            out->batch_size = whole(sw__scan_double(json));
        } else if (strcmp(key, "workers") == 0) {
            out->workers = whole(sw__scan_double(json));
        } else {
            (void)sw__scan_skip(json);
        }
    }
}

/* One number of an object, the others are taken too. */
static double scan_number_of(struct sw__scan *json, const char *name)
{
    char key[32];
    bool first = true;
    double found = NAN;
    if (!sw__scan_object(json)) {
        return NAN;
    }
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const double value = sw__scan_double(json);
        found = strcmp(key, name) == 0 ? value : found;
    }
    return found;
}

/* The first finding is the one whose fix gains most. */
static void scan_findings(sw_history_run *out, struct sw__scan *json, sw__arena *arena)
{
    char key[32];
    bool first = true;
    if (sw__scan_peek(json) != SW__SCAN_ARRAY) {
        (void)sw__scan_skip(json);
        return;
    }
    (void)sw__scan_enter(json, SW__SCAN_ARRAY);
    for (size_t i = 0; sw__scan_element(json, &first); i++) {
        bool first_member = true;
        if (i > 0 || !sw__scan_object(json)) {
            (void)(i > 0 && sw__scan_skip(json));
            continue;
        }
        while (sw__scan_member(json, &first_member, key, sizeof key)) {
            if (strcmp(key, "kind") == 0) {
                out->finding = sw__scan_text(json, arena);
            } else if (strcmp(key, "predicted") == 0) {
                out->speedup = scan_number_of(json, "speedup");
            } else {
                (void)sw__scan_skip(json);
            }
        }
    }
}

int sw__run_report_read(sw_history_run *out, const char *text, size_t length,
                        sw__arena *arena)
{
    struct sw__scan json = {.at = text, .end = text + length};
    sw_history_run run = *out;
    char key[64];
    bool first = true;
    bool ours = false;
    (void)sw__scan_enter(&json, SW__SCAN_OBJECT);
    while (sw__scan_member(&json, &first, key, sizeof key)) {
        if (strcmp(key, "schema") == 0) {
            const char *schema = sw__scan_text(&json, arena);
            ours = schema && strcmp(schema, "stepwatch.report/1") == 0;
        } else if (strcmp(key, "run") == 0) {
            scan_run(&run, &json, arena);
        } else if (strcmp(key, "overhead") == 0) {
            run.overhead_percent = scan_number_of(&json, "percent");
        } else if (strcmp(key, "steps") == 0) {
            scan_steps(&run, &json, arena);
        } else if (strcmp(key, "loader") == 0) {
            scan_loader(&run, &json);
        } else if (strcmp(key, "findings") == 0) {
            scan_findings(&run, &json, arena);
        } else {
            (void)sw__scan_skip(&json);
        }
    }
    if (json.bad || !ours) {
        return SW_EFORMAT;
    }
    *out = run;
    return SW_OK;
}
