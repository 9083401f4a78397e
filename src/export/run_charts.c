/* Charts of a run, made from its summary. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "analyze/summary.h"
#include "base/memory.h"
#include "export/report_parts.h"

/* The newest of very many steps. */
#define STEPS_MOST 100000

const char *sw_run_chart_name(enum sw_run_chart which)
{
    static const char *const names[SW_RUN_CHARTS] = {
        [SW_RUN_CHART_STEPS] = "steps",   [SW_RUN_CHART_PHASES] = "phases",
        [SW_RUN_CHART_MEMORY] = "memory", [SW_RUN_CHART_CPU] = "cpu",
        [SW_RUN_CHART_GPU] = "gpu",
    };
    return (unsigned)which < SW_RUN_CHARTS ? names[which] : NULL;
}

/* --- steps --- */

static int add_steps(sw_chart *chart, const sw_summary_step *steps, size_t count)
{
    double *seconds = sw__alloc_zero(count, sizeof *seconds);
    size_t used = 0;
    if (!seconds) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (steps[i].complete && !steps[i].warmup) {
            seconds[used++] = (double)(steps[i].end_ns - steps[i].begin_ns) / 1e9;
        }
    }
    const int error = sw_chart_add_values(chart, "", 0, seconds, used);
    sw__free(seconds);
    return error;
}

static int add_phases(sw_chart *chart, const sw_summary_steps *whole,
                      const sw_summary_step *steps, size_t count)
{
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t phases = sw__phase_lines(whole, lines);
    double *numbers = sw__alloc_zero(count, 2 * sizeof *numbers);
    int error = numbers ? SW_OK : SW_ENOMEM;
    for (size_t p = 0; p < phases && !error; p++) {
        const char *name = sw_phase_name(lines[p].phase);
        size_t used = 0;
        for (size_t i = 0; i < count; i++) {
            /* What those have in their phases that were watched in brief is not known. */
            if (!steps[i].brief) {
                numbers[used] = (double)steps[i].number;
                numbers[count + used++] = (double)steps[i].phase_ns[lines[p].phase] / 1e9;
            }
        }
        error =
            sw_chart_add_line(chart, name, strlen(name), numbers, numbers + count, used);
    }
    sw__free(numbers);
    return error;
}

/* What the kernel said at the ends of steps, where no monitor ran. */
static int add_step_memory(sw_chart *chart, const sw_summary *summary,
                           const sw_summary_step *steps, size_t count)
{
    double *numbers = sw__alloc_zero(count, 2 * sizeof *numbers);
    size_t used = 0;
    if (!numbers) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (steps[i].resident_bytes != SW_UNKNOWN) {
            numbers[used] = (double)(int64_t)(steps[i].end_ns - summary->origin_ns) / 1e9;
            numbers[count + used++] = (double)steps[i].resident_bytes;
        }
    }
    const int error =
        used ? sw_chart_add_line(chart, "resident", 8, numbers, numbers + count, used)
             : SW_OK;
    sw__free(numbers);
    return error;
}

static int fill_from_steps(sw_chart *chart, enum sw_run_chart which,
                           const sw_summary *summary, sw_error_info *info)
{
    const sw_summary_steps *whole = sw_summary_get_steps(summary);
    sw_summary_step *steps = NULL;
    size_t count = 0;
    if (!whole) {
        return SW_OK;
    }
    int error = sw_summary_step_series(summary, &steps, &count, info);
    if (error) {
        return error;
    }
    const size_t left = count > STEPS_MOST ? count - STEPS_MOST : 0;
    const sw_summary_step *first = steps + left;
    count -= left;
    if (which == SW_RUN_CHART_STEPS) {
        error = add_steps(chart, first, count);
    } else if (which == SW_RUN_CHART_PHASES) {
        error = add_phases(chart, whole, first, count);
    } else {
        error = add_step_memory(chart, summary, first, count);
    }
    sw_summary_steps_free(steps);
    return error;
}

/* --- the monitor --- */

/* A series as a line over the seconds of the run. Where nothing was seen the line is interrupted. */
static int add_series(sw_chart *chart, const sw_summary *summary,
                      const sw_monitor *monitor, size_t series, const char *name)
{
    sw_monitor_point *points = NULL;
    size_t count = 0, used = 0;
    int error = sw_monitor_points(monitor, series, &points, &count);
    double *numbers = error ? NULL : sw__alloc_zero(count, 4 * sizeof *numbers);
    if (!error && !numbers) {
        error = SW_ENOMEM;
    }
    for (size_t i = 0; i < count && !error; i++) {
        const double at = (double)(int64_t)(points[i].ns - summary->origin_ns) / 1e9;
        if (points[i].first && used > 0) {
            numbers[used] = at;
            numbers[2 * count + used++] = NAN;
        }
        numbers[used] = at;
        numbers[2 * count + used++] = points[i].value;
    }
    if (!error && used > 0) {
        error = sw_chart_add_line(chart, name, strlen(name), numbers, numbers + 2 * count,
                                  used);
    }
    sw__free(numbers);
    sw_monitor_points_free(points);
    return error;
}

/* Series that a chart shows, by their names in the monitor. */
struct shown {
    const char *series, *name;
};

static int add_shown(sw_chart *chart, const sw_summary *summary,
                     const struct shown *shown, size_t count)
{
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    int error = SW_OK;
    for (size_t i = 0; monitor && i < count && !error; i++) {
        for (size_t k = 0; k < sw_monitor_series_count(monitor) && !error; k++) {
            const sw_monitor_series *series = sw_monitor_get_series(monitor, k);
            const bool idle =
                strncmp(series->name, "workers.", 8) == 0 && series->all.max == 0;
            if (strcmp(series->name, shown[i].series) == 0 && !idle) {
                error = add_series(chart, summary, monitor, k, shown[i].name);
            }
        }
    }
    return error;
}

static int add_memory(sw_chart *chart, const sw_summary *summary, sw_error_info *info)
{
    static const struct shown shown[] = {{"process.rss", "resident"},
                                         {"process.rss_anon", "anonymous"},
                                         {"workers.rss", "workers"}};
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    if (!monitor || !sw_monitor_find(monitor, "process.rss")) {
        return fill_from_steps(chart, SW_RUN_CHART_MEMORY, summary, info);
    }
    return add_shown(chart, summary, shown, sizeof shown / sizeof shown[0]);
}

static int add_gpus(sw_chart *chart, const sw_summary *summary)
{
    static const char end[] = ".utilisation_percent";
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    int error = SW_OK;
    for (size_t i = 0; monitor && i < sw_monitor_series_count(monitor) && !error; i++) {
        const char *name = sw_monitor_get_series(monitor, i)->name;
        const char *tail = strncmp(name, "gpu.", 4) == 0 ? strstr(name, end) : NULL;
        if (tail && strcmp(tail, end) == 0) {
            char label[32];
            snprintf(label, sizeof label, "GPU %.*s", (int)(tail - name - 4), name + 4);
            error = add_series(chart, summary, monitor, i, label);
        }
    }
    return error;
}

/* --- all of them --- */

static sw_chart_options options_of(enum sw_run_chart which, const sw_summary *summary)
{
    const bool watched = sw_summary_monitor(summary, 0) != NULL;
    static const char *const no_steps = "The program recorded no steps.";
    static const char *const no_monitor = "No monitor ran.";
    switch (which) {
    case SW_RUN_CHART_STEPS:
        return (sw_chart_options){.kind = SW_CHART_HISTOGRAM,
                                  .title = "Time of a step",
                                  .x_label = "time of a step",
                                  .y_label = "steps",
                                  .x_unit = "s",
                                  .empty = sw_summary_get_steps(summary)
                                               ? "No step after the warm-up was complete."
                                               : no_steps};
    case SW_RUN_CHART_PHASES:
        return (sw_chart_options){.kind = SW_CHART_AREAS,
                                  .title = "Phases of each step",
                                  .x_label = "step",
                                  .y_label = "time",
                                  .y_unit = "s",
                                  .top = 10,
                                  .empty = no_steps};
    case SW_RUN_CHART_MEMORY:
        return (sw_chart_options){.kind = SW_CHART_LINES,
                                  .title = "Memory over time",
                                  .x_label = "time since the start",
                                  .y_label = "memory",
                                  .x_unit = "s",
                                  .y_unit = "B",
                                  .empty = watched ? "Memory was not read." : no_monitor};
    case SW_RUN_CHART_CPU:
        return (sw_chart_options){.kind = SW_CHART_LINES,
                                  .title = "Cores in use over time",
                                  .x_label = "time since the start",
                                  .y_label = "cores",
                                  .x_unit = "s",
                                  .empty =
                                      watched ? "CPU time was not read." : no_monitor};
    default:
        return (sw_chart_options){.kind = SW_CHART_LINES,
                                  .title = "GPUs in use over time",
                                  .x_label = "time since the start",
                                  .y_label = "share of the time",
                                  .x_unit = "s",
                                  .y_unit = "%",
                                  .empty = watched ? "No GPU was watched." : no_monitor};
    }
}

int sw_run_chart(sw_chart **out, enum sw_run_chart which, const sw_summary *summary,
                 sw_error_info *info)
{
    static const struct shown cpu[] = {{"process.cpu_user", "program"},
                                       {"process.cpu_system", "kernel for it"},
                                       {"workers.cpu", "workers"},
                                       {"system.cpu", "the machine"}};
    *out = NULL;
    if ((unsigned)which >= SW_RUN_CHARTS) {
        return sw_error_set(info, SW_EINVAL, "there is no such chart of a run");
    }
    const sw_chart_options options = options_of(which, summary);
    sw_chart *chart;
    int error = sw_chart_create(&chart, &options, info);
    if (error) {
        return error;
    }
    if (which == SW_RUN_CHART_MEMORY) {
        error = add_memory(chart, summary, info);
    } else if (which == SW_RUN_CHART_CPU) {
        error = add_shown(chart, summary, cpu, sizeof cpu / sizeof cpu[0]);
    } else if (which == SW_RUN_CHART_GPU) {
        error = add_gpus(chart, summary);
    } else {
        error = fill_from_steps(chart, which, summary, info);
    }
    if (error) {
        sw_chart_free(chart);
        return sw_error_set(info, error, "%s", sw_error_text(error));
    }
    *out = chart;
    return SW_OK;
}
