/* report.json. Keys come in the order of the contract; those it does not name come last in their
 * object. Times in ms and s are the shortest decimals that give back the integer ns they came from. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include <stepwatch/export.h>
#include <stepwatch/version.h>

#include "export/json_put.h"
#include "export/report_parts.h"

static void put_utc(sw_writer *w, const char *key, uint64_t real_ns)
{
    char text[40];
    time_t seconds = (time_t)(real_ns / 1000000000u);
    struct tm parts;
    if (real_ns == SW_UNKNOWN || !gmtime_r(&seconds, &parts)) {
        put_string(w, key, NULL);
        return;
    }
    char day[24];
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s.%03uZ", day,
             (unsigned)(real_ns % 1000000000u / 1000000u));
    put_string(w, key, text);
}

static void put_run(sw_writer *w, const sw_summary *summary)
{
    const sw_summary_run *run = sw_summary_get_run(summary);
    sw_json_key(w, "run");
    sw_json_object_begin(w);
    put_string(w, "id", run->id);
    put_string(w, "name", run->name);
    put_string(w, "command", run->command);
    put_utc(w, "started_utc", run->started_real_ns);
    put_s(w, "duration_s", run->duration_ns);
    sw_json_key(w, "exit");
    sw_json_object_begin(w);
    put_uint(w, "code", run->exit_code < 0 ? SW_UNKNOWN : (uint64_t)run->exit_code);
    put_uint(w, "signal",
             run->exit_signal <= 0 ? SW_UNKNOWN : (uint64_t)run->exit_signal);
    sw_json_object_end(w);
    put_bool(w, "complete", run->complete);
    put_string(w, "host", run->host);
    put_string(w, "python", run->python);
    sw_json_key(w, "frameworks");
    sw_json_object_begin(w);
    const char *name;
    const char *version;
    for (size_t i = 0; sw_summary_framework(summary, i, &name, &version); i++) {
        put_string(w, name, version);
    }
    sw_json_object_end(w);
    put_uint(w, "processes", run->processes);
    put_uint(w, "ranks", run->ranks);
    put_uint(w, "threads", run->threads);
    put_string(w, "version", SW_VERSION_STRING);
    sw_json_object_end(w);
}

static void put_overhead(sw_writer *w, const sw_summary *summary)
{
    const sw_summary_overhead *overhead = sw_summary_get_overhead(summary);
    sw_json_key(w, "overhead");
    sw_json_object_begin(w);
    put_double(w, "percent", overhead->percent);
    put_double(w, "low", overhead->low);
    put_double(w, "high", overhead->high);
    put_double(w, "seconds", overhead->seconds);
    put_uint(w, "events", overhead->events);
    put_uint(w, "dropped", overhead->dropped);
    put_uint(w, "overwritten", overhead->overwritten);
    put_string(w, "how", overhead->how);
    put_uint(w, "calls", overhead->calls);
    put_double(w, "helper_cpu_s", overhead->helper_cpu_s);
    sw_json_object_end(w);
}

static void put_timeline(sw_writer *w, const sw_summary *summary)
{
    sw_json_key(w, "timeline");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_summary_part_count(summary); i++) {
        const sw_summary_part *part = sw_summary_get_part(summary, i);
        sw_json_object_begin(w);
        put_string(w, "part", part->part);
        put_s(w, "s", part->ns);
        put_double(w, "share", part->share);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_phases(sw_writer *w, const sw_summary_steps *steps)
{
    sw_json_key(w, "phases");
    sw_json_array_begin(w);
    for (unsigned i = 1; i <= SW_PHASE_COUNT; i++) {
        unsigned number = i % SW_PHASE_COUNT; /* `other`, which is number 0, comes last */
        const sw_summary_phase *phase = &steps->phase[number];
        bool known = phase->measured && steps->counted > 0;
        sw_json_object_begin(w);
        put_string(w, "phase", sw_phase_name(number));
        put_double(w, "ms",
                   known ? (double)phase->total_ns / (double)steps->counted / 1e6 : NAN);
        put_double(w, "share", known ? phase->share : NAN);
        put_ms(w, "p99_ms", known ? phase->p99_ns : SW_UNKNOWN);
        put_double(w, "device_ms", NAN);
        put_bool(w, "measured", phase->measured);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_steps(sw_writer *w, const sw_summary *summary)
{
    static const char *const units[] = {"manual", "batch", "update", "loop"};
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    if (!steps) {
        put_missing(w, "steps", "The program recorded no steps.");
        return;
    }
    sw_json_key(w, "steps");
    sw_json_object_begin(w);
    put_uint(w, "count", steps->count);
    put_string(w, "unit",
               steps->unit >= 0 && steps->unit < 4 ? units[steps->unit] : NULL);
    put_uint(w, "updates", steps->updates);
    put_uint(w, "warmup", steps->warmup);
    put_uint(w, "incomplete", steps->incomplete);
    sw_json_key(w, "step_ms");
    sw_json_object_begin(w);
    put_double(w, "mean", steps->mean_ns / 1e6);
    put_ms(w, "p50", steps->p50_ns);
    put_ms(w, "p90", steps->p90_ns);
    put_ms(w, "p99", steps->p99_ns);
    put_ms(w, "min", steps->min_ns);
    put_ms(w, "max", steps->max_ns);
    put_double(w, "std", steps->std_ns / 1e6);
    sw_json_object_end(w);
    put_double(w, "steps_per_s", steps->steps_per_s);
    put_double(w, "samples_per_s", steps->samples_per_s);
    put_phases(w, steps);
    sw_json_key(w, "worst");
    sw_json_array_begin(w);
    for (size_t i = 0; i < steps->worst_count; i++) {
        const sw_summary_worst *worst = &steps->worst[i];
        sw_json_object_begin(w);
        put_uint(w, "step", worst->step);
        put_ms(w, "ms", worst->ns);
        put_string(w, "phase", sw_phase_name(worst->phase));
        put_string(w, "why", worst->why);
        put_uint(w, "read_bytes", worst->io.read_bytes);
        put_uint(w, "written_bytes", worst->io.written_bytes);
        put_uint(w, "read_calls", worst->io.read_calls);
        put_uint(w, "write_calls", worst->io.write_calls);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    put_uint(w, "counted", steps->counted);
    put_uint(w, "looked", steps->looked);
    put_bool(w, "thinned", steps->thinned);
    sw_json_key(w, "by_thread");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_summary_step_thread_count(summary); i++) {
        const sw_summary_step_thread *thread = sw_summary_get_step_thread(summary, i);
        sw_json_object_begin(w);
        put_uint(w, "pid", thread->pid);
        put_string(w, "thread", thread->thread);
        put_string(w, "domain", thread->domain);
        put_uint(w, "count", thread->count);
        put_uint(w, "incomplete", thread->incomplete);
        put_uint(w, "updates", thread->updates);
        put_ms(w, "total_ms", thread->total_ns);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

static void put_epochs(sw_writer *w, const sw_summary *summary)
{
    size_t count = sw_summary_epoch_count(summary);
    if (count == 0) {
        put_missing(w, "epochs",
                    sw_summary_get_steps(summary)
                        ? "No step was said to belong to an epoch."
                        : "The program recorded no steps.");
        return;
    }
    sw_json_key(w, "epochs");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        const sw_summary_epoch *epoch = sw_summary_get_epoch(summary, i);
        sw_json_object_begin(w);
        put_uint(w, "epoch", epoch->epoch);
        put_uint(w, "steps", epoch->steps);
        put_s(w, "seconds", epoch->ns);
        put_ms(w, "first_batch_ms", epoch->first_batch_ns);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

/* Deeper paths are cut at the top: a document whose size is the square of the depth helps nobody. */
#define PATH_MOST 256

static void put_path(sw_writer *w, const sw_summary_section *rows, size_t index)
{
    uint32_t path[PATH_MOST];
    size_t depth = 0;
    for (uint32_t i = (uint32_t)index; i != SW_NO_ROW && depth < PATH_MOST;
         i = rows[i].parent) {
        path[depth++] = i;
    }
    sw_json_key(w, "path");
    sw_json_array_begin(w);
    while (depth-- > 0) {
        sw_json_string_n(w, rows[path[depth]].name, rows[path[depth]].name_length);
    }
    sw_json_array_end(w);
}

static void put_sections(sw_writer *w, const sw_summary *summary)
{
    size_t count;
    const sw_summary_section *rows = sw_summary_sections(summary, SW_ROWS_EACH, &count);
    sw_json_key(w, "sections");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        const sw_summary_section *row = &rows[i];
        sw_json_object_begin(w);
        put_path(w, rows, i);
        sw_json_key(w, "name");
        sw_json_string_n(w, row->name, row->name_length);
        put_string(w, "phase", sw_phase_name(row->phase));
        put_string(w, "thread", row->thread);
        put_uint(w, "calls", row->calls);
        put_uint(w, "errors", row->errors);
        put_ms(w, "total_ms", row->total_ns);
        put_ms(w, "self_ms", sw_summary_section_self(row));
        put_double(w, "mean_ms",
                   row->calls ? (double)row->total_ns / (double)row->calls / 1e6 : NAN);
        put_ms(w, "min_ms", row->min_ns);
        put_ms(w, "max_ms", row->max_ns);
        put_ms(w, "p50_ms", row->p50_ns);
        put_ms(w, "p90_ms", row->p90_ns);
        put_ms(w, "p99_ms", row->p99_ns);
        put_ms(w, "last_ms", row->last_ns);
        put_string(w, "domain", row->domain);
        put_bool(w, "family", row->family);
        put_uint(w, "unnested", row->unnested);
        put_uint(w, "open", row->open);
        put_ms(w, "open_ms", row->open ? row->open_ns : SW_UNKNOWN);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_counters(sw_writer *w, const sw_summary *summary)
{
    sw_json_key(w, "counters");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_summary_counter_count(summary); i++) {
        const sw_summary_counter *counter = sw_summary_get_counter(summary, i);
        sw_json_object_begin(w);
        sw_json_key(w, "name");
        sw_json_string_n(w, counter->name, counter->name_length);
        put_string(w, "domain", counter->domain);
        put_uint(w, "count", counter->count);
        put_double(w, "min", counter->min);
        put_double(w, "max", counter->max);
        put_double(w, "mean", counter->mean);
        put_double(w, "last", counter->last);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_processes(sw_writer *w, const sw_summary *summary)
{
    static const char *const ends[] = {"running", "closed", "killed"};
    sw_json_key(w, "processes");
    sw_json_array_begin(w);
    for (size_t i = 0; i < sw_summary_process_count(summary); i++) {
        const sw_summary_process *process = sw_summary_get_process(summary, i);
        unsigned end = (unsigned)process->end;
        sw_json_object_begin(w);
        put_uint(w, "pid", process->pid);
        put_uint(w, "ppid", process->ppid);
        put_string(w, "name", process->name);
        put_string(w, "file", process->path);
        put_string(w, "end", end < 3 ? ends[end] : NULL);
        put_bool(w, "damaged", process->damaged);
        put_s(w, "recorded_s",
              process->end_ns > process->start_ns ? process->end_ns - process->start_ns
                                                  : 0);
        put_uint(w, "threads", process->threads);
        put_uint(w, "records", process->present);
        put_uint(w, "dropped", process->dropped);
        put_uint(w, "overwritten", process->overwritten);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

void sw_export_report_json(sw_writer *writer, const sw_summary *summary,
                           const sw_findings *findings)
{
    sw_writer *w = writer;
    sw_json_start(w, true);
    sw_json_object_begin(w);
    put_string(w, "schema", "stepwatch.report/1");
    put_run(w, summary);
    put_overhead(w, summary);
    put_timeline(w, summary);
    put_steps(w, summary);
    put_epochs(w, summary);
    sw__json_loader(w, summary);
    put_sections(w, summary);
    sw__json_functions(w, summary);
    sw__json_lines(w, summary);
    sw__json_modules(w, summary);
    sw__json_memory(w, summary);
    sw__json_monitor(w, summary);
    sw__json_gpu(w, summary);
    sw__json_findings(w, findings);
    sw_json_key(w, "notes");
    sw_json_array_begin(w);
    const char *note;
    for (size_t i = 0; (note = sw_summary_note(summary, i)) != NULL; i++) {
        sw_json_string(w, note);
    }
    for (size_t i = 0; findings && (note = sw_findings_note(findings, i)) != NULL; i++) {
        sw_json_string(w, note);
    }
    sw_json_array_end(w);
    put_counters(w, summary);
    put_processes(w, summary);
    sw__json_sampler(w, summary);
    sw__json_training(w, summary);
    sw__json_io(w, summary);
    sw__json_checks(w, findings);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}
