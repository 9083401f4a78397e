/* A run as an event file of TensorBoard. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>
#include <stepwatch/tensorboard.h>

#include "analyze/summary.h"
#include "base/memory.h"
#include "export/report_parts.h"

#define TAG 320

struct export
{
    sw_events *events;
    const sw_summary *summary;
    const sw_findings *findings;
    sw_summary_step *steps;
    size_t step_count;
    uint64_t base_ns; /* CLOCK_MONOTONIC, and the same moment since 1970 */
    uint64_t base_real_ns;
    sw_error_info *info;
};

/* --- times --- */

static double wall_of(const struct export *it, uint64_t ns)
{
    return (double)it->base_real_ns / 1e9 + (double)(int64_t)(ns - it->base_ns) / 1e9;
}

/* The step of a moment: that which went on or had ended last, the first one before all. Without steps, milliseconds. */
static int64_t step_at(const struct export *it, uint64_t ns)
{
    if (it->step_count == 0) {
        return ns > it->base_ns ? (int64_t)((ns - it->base_ns) / 1000000) : 0;
    }
    size_t low = 0, high = it->step_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (it->steps[middle].begin_ns <= ns) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (int64_t)it->steps[low].number;
}

static int put(const struct export *it, const char *tag, int64_t step, uint64_t ns,
               double value)
{
    const sw_event_time time = {step, wall_of(it, ns)};
    return isfinite(value) ? sw_events_scalar(it->events, tag, time, value, it->info)
                           : SW_OK;
}

/* --- steps --- */

static int put_steps(const struct export *it)
{
    const sw_summary_steps *whole = sw_summary_get_steps(it->summary);
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t phases = whole ? sw__phase_lines(whole, lines) : 0;
    /* How many samples a step has is known of all steps together. */
    const double samples = whole ? whole->samples_per_s / whole->steps_per_s : NAN;
    int error = SW_OK;
    for (size_t i = 0; i < it->step_count && !error; i++) {
        const sw_summary_step *step = &it->steps[i];
        const double seconds = (double)(step->end_ns - step->begin_ns) / 1e9;
        const int64_t number = (int64_t)step->number;
        if (!step->complete) {
            continue;
        }
        error = put(it, "step/time_ms", number, step->end_ns, seconds * 1e3);
        for (size_t p = 0; p < phases && !error; p++) {
            char tag[TAG];
            snprintf(tag, sizeof tag, "phases/%s_ms", sw_phase_name(lines[p].phase));
            const uint64_t ns = sw__phase_ns(step, lines[p].phase);
            error = put(it, tag, number, step->end_ns,
                        ns == SW_UNKNOWN ? NAN : (double)ns / 1e6);
        }
        if (!error && seconds > 0) {
            error =
                put(it, "step/samples_per_s", number, step->end_ns, samples / seconds);
        }
        if (!error && step->resident_bytes != SW_UNKNOWN) {
            error = put(it, "step/resident_bytes", number, step->end_ns,
                        (double)step->resident_bytes);
        }
    }
    return error;
}

/* --- series --- */

/* Values of one step become their mean: TensorBoard shows one value a step. */
struct gathered {
    const char *tag;
    int64_t step;
    uint64_t ns;
    double sum;
    size_t count;
};

static int gathered_put(const struct export *it, struct gathered *values)
{
    const int error = values->count ? put(it, values->tag, values->step, values->ns,
                                          values->sum / (double)values->count)
                                    : SW_OK;
    values->sum = 0;
    values->count = 0;
    return error;
}

static int gather(const struct export *it, struct gathered *values, uint64_t ns,
                  double value)
{
    const int64_t step = step_at(it, ns);
    int error = SW_OK;
    if (!isfinite(value)) {
        return SW_OK;
    }
    if (values->count > 0 && values->step != step) {
        error = gathered_put(it, values);
    }
    values->step = step;
    values->ns = ns;
    values->sum += value;
    values->count++;
    return error;
}

/* The process with the steps has plain names. */
static void name_tag(char tag[TAG], const char *kind, const char *name, uint32_t pid,
                     bool main)
{
    if (main) {
        snprintf(tag, TAG, "%s/%.200s", kind, name);
    } else {
        snprintf(tag, TAG, "%s/%.200s/process %u", kind, name, pid);
    }
}

static int put_monitor(const struct export *it, const sw_monitor *monitor, bool main)
{
    const uint32_t pid = sw_monitor_get_totals(monitor)->pid;
    int error = SW_OK;
    for (size_t i = 0; i < sw_monitor_series_count(monitor) && !error; i++) {
        const sw_monitor_series *series = sw_monitor_get_series(monitor, i);
        sw_monitor_point *points = NULL;
        size_t count = 0;
        char tag[TAG];
        name_tag(tag, "monitor", series->name, pid, main);
        struct gathered values = {.tag = tag};
        error = sw_monitor_points(monitor, i, &points, &count);
        for (size_t k = 0; k < count && !error; k++) {
            error = gather(it, &values, points[k].ns, points[k].value);
        }
        error = error ? error : gathered_put(it, &values);
        sw_monitor_points_free(points);
    }
    return error;
}

/* Counters of one process, each with the mean of a step. */
struct counters {
    const sw_trace *trace;
    struct gathered *by_name; /* by the number of the name */
    char (*tags)[TAG];
    uint32_t limit;
};

static int put_counter(const struct export *it, struct counters *counters,
                       const sw_event *event, bool main)
{
    const sw_record_counter *counter =
        (const sw_record_counter *)(const void *)event->record;
    const sw_trace_name *name = sw_trace_get_name(counters->trace, counter->head.id);
    if (counter->head.id >= counters->limit || !name || !name->text) {
        return SW_OK;
    }
    struct gathered *values = &counters->by_name[counter->head.id];
    if (!values->tag) {
        values->tag = counters->tags[counter->head.id];
        name_tag(counters->tags[counter->head.id], "counters", name->text,
                 sw_trace_get_info(counters->trace)->pid, main);
    }
    return gather(it, values, event->begin_ns, counter->value);
}

static int put_counters(const struct export *it, size_t index)
{
    sw_trace *trace = (sw_trace *)sw__summary_trace(it->summary, index);
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_COUNTER};
    const bool main = index == it->summary->step_trace;
    struct counters counters = {.trace = trace, .limit = sw_trace_name_limit(trace)};
    sw_cursor *cursor = NULL;
    sw_event event;
    int error = sw_cursor_open(&cursor, &trace, 1, &filter, it->info);
    if (error) {
        return error;
    }
    counters.by_name = sw__alloc_zero(counters.limit, sizeof *counters.by_name);
    counters.tags = sw__alloc_zero(counters.limit, sizeof *counters.tags);
    error = counters.by_name && counters.tags ? SW_OK : SW_ENOMEM;
    while (!error && (error = sw_cursor_next(cursor, &event)) == SW_OK) {
        error = put_counter(it, &counters, &event, main);
    }
    error = error == SW_EEND ? SW_OK : error;
    for (uint32_t i = 0; i < counters.limit && !error; i++) {
        error = gathered_put(it, &counters.by_name[i]);
    }
    sw__free(counters.by_name);
    sw__free(counters.tags);
    sw_cursor_free(cursor);
    return error;
}

/* --- charts and the report --- */

static int put_chart(const struct export *it, enum sw_run_chart which, sw_event_time time)
{
    sw_chart *chart = NULL;
    sw_writer *image = sw_writer_to_memory();
    char tag[TAG];
    size_t length;
    int error = image ? sw_run_chart(&chart, which, it->summary, it->info) : SW_ENOMEM;
    if (!error) {
        const sw_chart *one = chart;
        error = sw_charts_write(image, SW_CHART_PNG, &one, 1, NULL, it->info);
    }
    if (!error) {
        const char *bytes = sw_writer_text(image, &length);
        snprintf(tag, sizeof tag, "charts/%s", sw_run_chart_name(which));
        error = sw_events_image(it->events, tag, time, bytes, length, it->info);
    }
    sw_writer_close(image, NULL);
    sw_chart_free(chart);
    return error;
}

static int put_report(const struct export *it, sw_event_time time)
{
    sw_writer *text = sw_writer_to_memory();
    size_t length;
    if (!text) {
        return SW_ENOMEM;
    }
    sw_export_report_markdown(text, it->summary, it->findings);
    const char *bytes = sw_writer_text(text, &length);
    const int error = sw_events_text(it->events, "report", time, bytes, length, it->info);
    sw_writer_close(text, NULL);
    return error;
}

static int put_all(const struct export *it)
{
    const uint64_t end_ns = it->base_ns + sw_summary_get_run(it->summary)->duration_ns;
    const sw_event_time last = {step_at(it, end_ns), wall_of(it, end_ns)};
    const sw_monitor *monitor;
    int error = put_steps(it);
    for (size_t i = 0; (monitor = sw_summary_monitor(it->summary, i)) && !error; i++) {
        error = put_monitor(it, monitor, i == 0);
    }
    for (size_t i = 0; i < it->summary->traces && !error; i++) {
        error = put_counters(it, i);
    }
    size_t gpus;
    (void)sw_gpus_get(sw_summary_gpus(it->summary), &gpus);
    for (unsigned i = 0; i < SW_RUN_CHARTS && !error; i++) {
        if (i == SW_RUN_CHART_GPU && gpus == 0) {
            continue;
        }
        error = put_chart(it, (enum sw_run_chart)i, last);
    }
    return error ? error : put_report(it, last);
}

int sw_export_tensorboard(const char *folder, const sw_summary *summary,
                          const sw_findings *findings, sw_error_info *info)
{
    struct export it = {.summary = summary, .findings = findings, .info = info};
    if (sw_summary_get_steps(summary)) {
        const int error =
            sw_summary_step_series(summary, &it.steps, &it.step_count, info);
        if (error) {
            return error;
        }
    }
    if (summary->traces > 0) {
        const sw_trace_info *clock =
            sw_trace_get_info(sw__summary_trace(summary, summary->step_trace));
        it.base_ns = clock->start_ns;
        it.base_real_ns = clock->start_real_ns;
    }
    int error = sw_events_create(&it.events, folder, info);
    if (!error) {
        error = put_all(&it);
        if (error && info && !info->message[0]) {
            sw_error_set(info, error, "%s", sw_error_text(error));
        }
        const int closing = sw_events_close(it.events, error ? NULL : info);
        error = error ? error : closing;
    }
    sw_summary_steps_free(it.steps);
    return error;
}
