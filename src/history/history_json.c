/* The history as a JSON document, schema stepwatch.history/1. */
#include <math.h>

#include "export/json_put.h"
#include "history/pairs.h"

static void put_int(sw_writer *w, const char *key, int64_t value)
{
    put_uint(w, key, value >= 0 ? (uint64_t)value : SW_UNKNOWN);
}

static void put_truth(sw_writer *w, const char *key, int truth)
{
    sw_json_key(w, key);
    if (truth < 0) {
        sw_json_null(w);
    } else {
        sw_json_bool(w, truth != 0);
    }
}

static void put_pairs(sw_writer *w, const char *key, sw_history_pairs pairs)
{
    sw_json_key(w, key);
    if (pairs.pair) {
        sw__pairs_write(w, pairs);
    } else {
        sw_json_null(w);
    }
}

static void put_utc(sw_writer *w, const char *key, double seconds)
{
    char text[SW__UTC];
    sw__utc_write(text, seconds);
    put_string(w, key, *text ? text : NULL);
}

static void put_steps(sw_writer *w, const sw_history_run *run)
{
    if (run->steps == SW_UNKNOWN) {
        put_missing(w, "steps", "The program recorded no steps.");
        return;
    }
    sw_json_key(w, "steps");
    sw_json_object_begin(w);
    put_uint(w, "count", run->steps);
    sw_json_key(w, "step_ms");
    sw_json_object_begin(w);
    put_double(w, "mean", run->step_mean_ms);
    put_double(w, "p50", run->step_p50_ms);
    put_double(w, "p99", run->step_p99_ms);
    sw_json_object_end(w);
    put_double(w, "steps_per_s", run->steps_per_s);
    put_double(w, "samples_per_s", run->samples_per_s);
    put_pairs(w, "shares", run->shares);
    sw_json_object_end(w);
}

static void put_git(sw_writer *w, const sw_history_run *run)
{
    sw_json_key(w, "git");
    if (!run->commit) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_string(w, "commit", run->commit);
    put_truth(w, "dirty", run->dirty);
    sw_json_object_end(w);
}

static void put_finding(sw_writer *w, const sw_history_run *run)
{
    sw_json_key(w, "finding");
    if (!run->finding) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_string(w, "kind", run->finding);
    put_double(w, "speedup", run->speedup);
    sw_json_object_end(w);
}

static void put_previous(sw_writer *w, const sw_history_run *run)
{
    sw_json_key(w, "previous");
    if (!run->previous) {
        sw_json_null(w);
        return;
    }
    sw_json_object_begin(w);
    put_string(w, "id", run->previous_id);
    put_string(w, "directory", run->previous);
    put_bool(w, "same_arguments", run->previous_same_arguments);
    put_double(w, "steps_per_s_ratio", run->change);
    sw_json_object_end(w);
}

static void put_run(sw_writer *w, const sw_history_run *run)
{
    sw_json_object_begin(w);
    put_string(w, "id", run->id);
    put_string(w, "name", run->name);
    put_string(w, "directory", run->directory);
    put_bool(w, "gone", run->gone);
    put_string(w, "program", run->program);
    put_string(w, "arguments_hash", run->arguments);
    put_string(w, "command", run->command);
    put_utc(w, "started_utc", run->started_s);
    put_double(w, "duration_s", run->duration_s);
    sw_json_key(w, "exit");
    sw_json_object_begin(w);
    put_int(w, "code", run->exit_code);
    put_int(w, "signal", run->exit_signal > 0 ? run->exit_signal : -1);
    sw_json_object_end(w);
    put_truth(w, "complete", run->complete);
    put_string(w, "host", run->host);
    put_string(w, "python", run->python);
    put_pairs(w, "frameworks", run->frameworks);
    put_git(w, run);
    put_pairs(w, "config", run->config);
    put_int(w, "batch_size", run->batch_size);
    put_int(w, "workers", run->workers);
    put_steps(w, run);
    put_double(w, "overhead_percent", run->overhead_percent);
    put_finding(w, run);
    put_string(w, "report", run->report);
    put_bool(w, "best", run->best);
    put_previous(w, run);
    sw_json_object_end(w);
}

static void put_trend(sw_writer *w, const sw_history_trend *trend)
{
    sw_json_object_begin(w);
    put_string(w, "program", trend->program);
    put_string(w, "arguments_hash", trend->arguments);
    put_string(w, "name", trend->name);
    put_uint(w, "runs", trend->runs);
    put_double(w, "best_ms", trend->best_ms);
    sw_json_key(w, "step_ms");
    sw_json_array_begin(w);
    for (size_t i = 0; i < trend->count; i++) {
        sw_json_double(w, trend->step_ms[i]);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

void sw_history_write_json(sw_writer *writer, const sw_history *history, size_t limit)
{
    sw_writer *w = writer;
    const size_t count = sw_history_count(history);
    sw_json_start(w, true);
    sw_json_object_begin(w);
    put_string(w, "schema", "stepwatch.history/1");
    put_string(w, "folder", sw_history_folder(history));
    put_uint(w, "total", count);
    sw_json_key(w, "runs");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && (limit == 0 || i < limit); i++) {
        put_run(w, sw_history_get(history, i));
    }
    sw_json_array_end(w);
    sw_json_key(w, "trends");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_history_trend_count(history); i++) {
        put_trend(w, sw_history_get_trend(history, i));
    }
    sw_json_array_end(w);
    sw_json_key(w, "notes");
    sw_json_array_begin(w);
    const char *note;
    for (size_t i = 0; (note = sw_history_note(history, i)) != NULL; i++) {
        sw_json_string(w, note);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}
