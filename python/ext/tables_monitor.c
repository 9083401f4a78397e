/* Tables of the monitor: series with their statistics, and their values one by one. */
#include "table.h"

#include <math.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static const char *kind_name(const sw_monitor_series *series)
{
    return series->kind == SW_SERIES_GAUGE ? "gauge" : "total";
}

/* NaN is not known. */
static void put_real(core_cell *cell, double value)
{
    if (isnan(value)) {
        core_put_unknown(cell);
    } else {
        core_put_real(cell, value);
    }
}

/* --- Series ----------------------------------------------------------------------- */

static const core_column series_columns[] = {
    {"name", CORE_NAME, false},       {"unit", CORE_NAME, false},
    {"kind", CORE_NAME, false},       {"source", CORE_NAME, true},
    {"samples", CORE_INTEGER, false}, {"first", CORE_REAL, true},
    {"last", CORE_REAL, true},        {"growth", CORE_REAL, true},
    {"mean", CORE_REAL, true},        {"min", CORE_REAL, true},
    {"max", CORE_REAL, true},         {"p50", CORE_REAL, true},
    {"p95", CORE_REAL, true},         {"steps_mean", CORE_REAL, true},
    {"per_step", CORE_REAL, true},    {"pid", CORE_INTEGER, false},
};

static int series_prepare(core_source *source, void **made, sw_error_info *info)
{
    (void)made; /* the summary is the source's own */
    return core_source_summary(source, info);
}

static uint64_t series_count(const core_source *source)
{
    uint64_t count = 0;
    const sw_monitor *monitor;
    for (size_t i = 0; (monitor = sw_summary_monitor(source->summary, i)); i++) {
        count += sw_monitor_series_count(monitor);
    }
    return count;
}

static int series_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    size_t place = 0;
    const sw_monitor *monitor = sw_summary_monitor(reader->source->summary, place);
    while (index >= sw_monitor_series_count(monitor)) {
        index -= sw_monitor_series_count(monitor);
        monitor = sw_summary_monitor(reader->source->summary, ++place);
    }
    const sw_monitor_series *series = sw_monitor_get_series(monitor, (size_t)index);
    core_put_text(cell++, series->name);
    core_put_text(cell++, series->unit);
    core_put_text(cell++, kind_name(series));
    core_put_text(cell++, series->source);
    core_put_count(cell++, series->all.samples);
    put_real(cell++, series->first);
    put_real(cell++, series->last);
    put_real(cell++, series->growth);
    put_real(cell++, series->all.mean);
    put_real(cell++, series->all.min);
    put_real(cell++, series->all.max);
    put_real(cell++, series->p50);
    put_real(cell++, series->p95);
    put_real(cell++, series->steps.mean);
    put_real(cell++, series->per_step);
    core_put_count(cell++, sw_monitor_get_totals(monitor)->pid);
    return SW_OK;
}

const core_table_kind core_table_monitor = {
    .name = "monitor",
    .columns = series_columns,
    .column_count = COUNT(series_columns),
    .prepare = series_prepare,
    .count = series_count,
    .at = series_at,
};

/* --- Values ----------------------------------------------------------------------- */

static const core_column value_columns[] = {
    {"name", CORE_NAME, false},  {"unit", CORE_NAME, false},
    {"kind", CORE_NAME, false},  {"time_ns", CORE_INTEGER, false},
    {"value", CORE_REAL, false}, {"pid", CORE_INTEGER, false},
};

/* The points of one series. */
struct series_values {
    const sw_monitor_series *series;
    uint32_t pid;
    sw_monitor_point *points;
    size_t count;
    uint64_t before; /* values of the series before it */
};

struct values {
    struct series_values *list;
    size_t count;
    uint64_t all;
};

static void values_discard(void *made)
{
    struct values *values = made;
    for (size_t i = 0; values && i < values->count; i++) {
        sw_monitor_points_free(values->list[i].points);
    }
    if (values) {
        free(values->list);
        free(values);
    }
}

static int values_prepare(core_source *source, void **made, sw_error_info *info)
{
    int result = core_source_summary(source, info);
    if (result != SW_OK || *made) {
        return result;
    }
    const uint64_t series = series_count(source);
    struct values *values = calloc(1, sizeof *values);
    if (values) {
        values->list = calloc((size_t)series + 1, sizeof *values->list);
    }
    if (!values || !values->list) {
        values_discard(values);
        return sw_error_set(info, SW_ENOMEM, "Out of memory.");
    }
    const sw_monitor *monitor;
    for (size_t i = 0; (monitor = sw_summary_monitor(source->summary, i)); i++) {
        for (size_t k = 0; k < sw_monitor_series_count(monitor); k++) {
            struct series_values *next = &values->list[values->count++];
            next->series = sw_monitor_get_series(monitor, k);
            next->pid = sw_monitor_get_totals(monitor)->pid;
            next->before = values->all;
            result = sw_monitor_points(monitor, k, &next->points, &next->count);
            if (result != SW_OK) {
                values_discard(values);
                return sw_error_set(info, result, "Out of memory.");
            }
            values->all += next->count;
        }
    }
    *made = values;
    return SW_OK;
}

static uint64_t values_count(const core_source *source)
{
    const struct values *values = source->made[CORE_TABLE_MONITOR_VALUES];
    return values->all;
}

static int values_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const struct values *values = reader->source->made[CORE_TABLE_MONITOR_VALUES];
    size_t low = 0, high = values->count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (values->list[middle].before <= index) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct series_values *at = &values->list[low];
    const sw_monitor_point *point = &at->points[index - at->before];
    core_put_text(cell++, at->series->name);
    core_put_text(cell++, at->series->unit);
    core_put_text(cell++, kind_name(at->series));
    core_put_count(cell++, point->ns);
    core_put_real(cell++, point->value);
    core_put_count(cell++, at->pid);
    return SW_OK;
}

const core_table_kind core_table_monitor_values = {
    .name = "monitor_values",
    .columns = value_columns,
    .column_count = COUNT(value_columns),
    .prepare = values_prepare,
    .discard = values_discard,
    .count = values_count,
    .at = values_at,
};
