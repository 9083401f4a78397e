/* A comparison as JSON, schema stepwatch.compare/1. */
#include <math.h>

#include <stepwatch/export.h>

#include "export/json_put.h"

static void put_ns(sw_writer *w, const char *key, double ns)
{
    put_double(w, key, ns / 1e6);
}

static void put_side(sw_writer *w, const sw_compared_side *side)
{
    put_string(w, "path", side->path);
    put_string(w, "name", side->name);
    put_string(w, "command", side->command);
    put_string(w, "host", side->host);
    put_string(w, "python", side->python);
}

static void put_pair(sw_writer *w, const char *key, double before, double after)
{
    sw_json_key(w, key);
    sw_json_object_begin(w);
    put_double(w, "before", before);
    put_double(w, "after", after);
    sw_json_object_end(w);
}

static void put_counts(sw_writer *w, const char *key, uint64_t before, uint64_t after)
{
    sw_json_key(w, key);
    sw_json_object_begin(w);
    put_uint(w, "before", before);
    put_uint(w, "after", after);
    sw_json_object_end(w);
}

static void put_part(sw_writer *w, const sw_compared_part *part,
                     enum sw_compared_kind kind)
{
    sw_json_object_begin(w);
    put_string(w, kind == SW_COMPARED_PHASE ? "phase" : "name", part->name);
    if (kind == SW_COMPARED_FUNCTION) {
        put_string(w, "file", part->file);
        put_uint(w, "line", part->line ? part->line : SW_UNKNOWN);
    }
    put_string(w, "per", part->per);
    put_ns(w, "before_ms", part->before_ns);
    put_ns(w, "after_ms", part->after_ns);
    put_ns(w, "difference_ms", part->difference_ns);
    put_ns(w, "low_ms", part->low_ns);
    put_ns(w, "high_ms", part->high_ns);
    put_double(w, "p", part->p);
    sw_json_key(w, "changed");
    if (part->changed < 0) {
        sw_json_null(w);
    } else {
        sw_json_bool(w, part->changed != 0);
    }
    if (kind != SW_COMPARED_PHASE) {
        put_counts(w, "calls", part->before_calls, part->after_calls);
    }
    sw_json_object_end(w);
}

static void put_parts(sw_writer *w, const sw_comparison *comparison, size_t index)
{
    static const char *const names[SW_COMPARED_KINDS] = {"phases", "modules", "sections",
                                                         "functions"};
    for (unsigned kind = 0; kind < SW_COMPARED_KINDS; kind++) {
        size_t count;
        const sw_compared_part *parts =
            sw_comparison_parts(comparison, index, (enum sw_compared_kind)kind, &count);
        sw_json_key(w, names[kind]);
        sw_json_array_begin(w);
        for (size_t i = 0; i < count; i++) {
            put_part(w, &parts[i], (enum sw_compared_kind)kind);
        }
        sw_json_array_end(w);
    }
}

static void put_run(sw_writer *w, const sw_comparison *comparison, size_t index)
{
    const sw_compared_side *before = sw_comparison_baseline(comparison);
    const sw_compared *run = sw_comparison_get(comparison, index);
    const sw_compared_side *after = &run->side;
    char sentence[1024];
    const char *note;
    (void)sw_comparison_sentence(comparison, index, false, sentence, sizeof sentence);
    sw_json_object_begin(w);
    put_side(w, after);
    put_string(w, "verdict", sw_verdict_name(run->verdict));
    put_string(w, "sentence", sentence);
    put_string(w, "why", run->why);
    put_string(w, "basis", sw_compare_basis_name(run->basis));
    put_bool(w, "tested", run->tested);
    put_bool(w, "regression", run->regression);
    put_double(w, "speedup", run->speedup);
    put_double(w, "low", run->low);
    put_double(w, "high", run->high);
    put_double(w, "median_speedup", run->median_speedup);
    put_double(w, "median_low", run->median_low);
    put_double(w, "median_high", run->median_high);
    put_counts(w, "steps", before->steps, after->steps);
    put_pair(w, "step_ms", before->step_ns / 1e6, after->step_ns / 1e6);
    put_pair(w, "median_ms", before->median_ns / 1e6, after->median_ns / 1e6);
    put_pair(w, "samples_per_s", before->samples_per_s, after->samples_per_s);
    put_pair(w, "batch_size", before->batch_size, after->batch_size);
    put_pair(w, "duration_s", before->duration_s, after->duration_s);
    put_parts(w, comparison, index);
    sw_json_key(w, "notes");
    sw_json_array_begin(w);
    for (size_t i = 0; (note = sw_comparison_note(comparison, index, i)) != NULL; i++) {
        sw_json_string(w, note);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

void sw_export_compare_json(sw_writer *writer, const sw_comparison *comparison)
{
    sw_writer *w = writer;
    const sw_compared_side *baseline = sw_comparison_baseline(comparison);
    sw_json_start(w, true);
    sw_json_object_begin(w);
    put_string(w, "schema", "stepwatch.compare/1");
    sw_json_key(w, "baseline");
    sw_json_object_begin(w);
    put_side(w, baseline);
    put_uint(w, "steps", baseline->steps);
    put_double(w, "step_ms", baseline->step_ns / 1e6);
    put_double(w, "median_ms", baseline->median_ns / 1e6);
    put_double(w, "samples_per_s", baseline->samples_per_s);
    put_double(w, "batch_size", baseline->batch_size);
    put_double(w, "duration_s", baseline->duration_s);
    sw_json_object_end(w);
    sw_json_key(w, "runs");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_comparison_count(comparison); i++) {
        put_run(w, comparison, i);
    }
    sw_json_array_end(w);
    put_double(w, "threshold_percent", sw_comparison_threshold(comparison));
    put_bool(w, "regression", sw_comparison_regression(comparison));
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}
