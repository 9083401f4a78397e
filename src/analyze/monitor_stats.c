/* Statistics of the monitor's series. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/monitor.h"
#include "analyze/quantiles.h"
#include "analyze/summary.h"

/* A series as it is walked: at each look that asked its source there is a value, or the growth since the one before. */
struct walk {
    const sw_monitor *monitor;
    size_t series;
    size_t look;          /* next */
    size_t value, values; /* next record, and the end of them */
    double held;          /* value in force; NaN: none */
    double before;        /* total: value at the look that counted last; NaN: none */
    size_t before_look;
};

struct found {
    size_t look;
    double value;   /* of a gauge, or growth a second */
    double seconds; /* total: since the one before */
    bool first;
    uint32_t sections; /* bits */
    uint8_t phase;     /* SW_PHASE_INHERIT: none */
    bool in_step;
};

static struct walk walk_begin(const sw_monitor *monitor, size_t series)
{
    return (struct walk){.monitor = monitor,
                         .series = series,
                         .value = monitor->first_value[series],
                         .values = monitor->first_value[series + 1],
                         .held = NAN,
                         .before = NAN};
}

static bool asked(const struct walk *walk, size_t look)
{
    const uint32_t bit = walk->monitor->bit[walk->series];
    return bit >= 64 || walk->monitor->looks[look].sources >> bit & 1;
}

/* What was the case all the time between two looks that counted, which others may lie between. */
static void join(struct found *found, const struct walk *walk)
{
    const struct sw__look_seen *looks = walk->monitor->looks;
    found->sections = UINT32_MAX;
    found->phase = looks[found->look].phase;
    found->in_step = looks[walk->before_look].in_step;
    for (size_t i = walk->before_look + 1; i <= found->look; i++) {
        found->sections &= looks[i].whole;
        found->in_step = found->in_step && looks[i].in_step;
        if (looks[i].phase != found->phase || !looks[i].phase_whole) {
            found->phase = SW_PHASE_INHERIT;
        }
    }
}

/* The next one; false: there are no more. */
static bool walk_next(struct walk *walk, struct found *found)
{
    const sw_monitor *monitor = walk->monitor;
    const bool gauge = monitor->series[walk->series].kind == SW_SERIES_GAUGE;
    bool first = false;
    while (walk->look < monitor->look_count) {
        const size_t at = walk->look++;
        const struct sw__look_seen *look = &monitor->looks[at];
        if (look->first) {
            walk->held = NAN;
            walk->before = NAN;
        }
        first = first || look->first;
        bool written = false;
        /* Once a look; a damaged file may have more. */
        while (walk->value < walk->values && monitor->values[walk->value].look <= at) {
            walk->held = monitor->values[walk->value++].value;
            written = true;
        }
        if (isnan(walk->held) || !(written || asked(walk, at))) {
            walk->before = isnan(walk->held) ? NAN : walk->before;
            continue;
        }
        *found = (struct found){.look = at, .first = first};
        if (gauge) {
            found->value = walk->held;
            found->sections = look->open;
            found->phase = look->phase;
            found->in_step = look->in_step;
            return true;
        }
        const double grown = walk->held - walk->before;
        const uint64_t passed =
            isnan(walk->before) ? 0
                                : sw__sub(look->ns, monitor->looks[walk->before_look].ns);
        if (grown >= 0 && passed) {
            found->seconds = (double)passed / 1e9;
            found->value = grown / found->seconds;
            join(found, walk);
        }
        walk->before = walk->held;
        walk->before_look = at;
        if (grown >= 0 && passed) {
            return true;
        }
    }
    return false;
}

/* Mean holds a sum weighted by time until the end; of a gauge each value weighs the same. */
struct sum {
    sw_monitor_stats stats;
    double weight;
};

static void add(struct sum *sum, const struct found *found)
{
    const double weight = found->seconds > 0 ? found->seconds : 1;
    sw_monitor_stats *stats = &sum->stats;
    stats->min = stats->samples && stats->min <= found->value ? stats->min : found->value;
    stats->max = stats->samples && stats->max >= found->value ? stats->max : found->value;
    stats->mean += found->value * weight;
    stats->samples++;
    sum->weight += weight;
}

static sw_monitor_stats finish(const struct sum *sum)
{
    sw_monitor_stats stats = sum->stats;
    if (!stats.samples) {
        return (sw_monitor_stats){.mean = NAN, .min = NAN, .max = NAN};
    }
    stats.mean /= sum->weight;
    return stats;
}

struct weighted {
    double value, weight;
};

static int by_value(const void *a, const void *b)
{
    const double left = ((const struct weighted *)a)->value;
    const double right = ((const struct weighted *)b)->value;
    return (left > right) - (left < right);
}

/* The value below which `q` of the weight lies. Sorted, count > 0. */
static double quantile(const struct weighted *values, size_t count, double all, double q)
{
    double below = 0;
    for (size_t i = 0; i < count; i++) {
        below += values[i].weight;
        if (below >= q * all) {
            return values[i].value;
        }
    }
    return values[count - 1].value;
}

static void count_series(sw_monitor *monitor, size_t index, double step_s,
                         struct weighted *values)
{
    sw_monitor_series *series = &monitor->series[index];
    struct sum all = {0}, steps = {0};
    struct sum phase[SW_PHASE_COUNT] = {0};
    struct sum section[SW_MONITOR_SECTIONS] = {0};
    struct walk walk = walk_begin(monitor, index);
    struct found found;
    size_t count = 0;
    while (walk_next(&walk, &found)) {
        values[count++] =
            (struct weighted){found.value, found.seconds > 0 ? found.seconds : 1};
        add(&all, &found);
        if (found.in_step) {
            add(&steps, &found);
        }
        if (found.phase < SW_PHASE_COUNT) {
            add(&phase[found.phase], &found);
        }
        for (size_t i = 0; i < monitor->section_count; i++) {
            if (found.sections >> i & 1) {
                add(&section[i], &found);
            }
        }
    }
    if (count) {
        qsort(values, count, sizeof *values, by_value);
        series->p50 = quantile(values, count, all.weight, 0.5);
        series->p95 = quantile(values, count, all.weight, 0.95);
    }
    /* Rows say more, for they have what no record is kept of. But those of a killed program are a second old, and short
     * runs have no rate in them. */
    const sw_monitor_stats kept = finish(&all);
    const bool total = series->kind == SW_SERIES_TOTAL;
    const bool stale = total ? all.weight > series->watched_s * 1.001 + 1e-3
                             : kept.samples > series->all.samples;
    if (kept.samples && stale) {
        series->all.mean = kept.mean;
        series->all.samples = kept.samples;
        series->all.min = fmin(series->all.min, kept.min);
        series->all.max = fmax(series->all.max, kept.max);
        series->growth = total ? all.stats.mean : NAN; /* a sum still */
        series->watched_s = total ? all.weight : 0;
    }
    series->all.min = isnan(series->all.min) ? kept.min : series->all.min;
    series->all.max = isnan(series->all.max) ? kept.max : series->all.max;
    if (total) {
        series->all.samples = kept.samples;
        /* The recorder leaves out stretches that are too short for a rate; here they weigh little, but are there. */
        series->all.min = fmin(series->all.min, series->p50);
        series->all.max = fmax(series->all.max, series->p95);
    }
    series->steps = finish(&steps);
    if (total) {
        series->per_step = series->steps.mean * step_s;
    }
    for (size_t i = 0; i < SW_PHASE_COUNT; i++) {
        series->phase[i] = finish(&phase[i]);
    }
    for (size_t i = 0; i < monitor->section_count; i++) {
        monitor->in_section[index * SW_MONITOR_SECTIONS + i] = finish(&section[i]);
    }
    for (size_t i = monitor->first_value[index]; i < monitor->first_value[index + 1];
         i++) {
        const double value = monitor->values[i].value;
        series->first = isnan(series->first) ? value : series->first;
        series->last = isnan(value) ? series->last : value;
    }
}

int sw__monitor_count(sw_monitor *monitor, double step_s)
{
    struct weighted *values = sw__alloc_zero(monitor->look_count + 1, sizeof *values);
    const size_t bytes =
        (monitor->series_count + 1) * SW_MONITOR_SECTIONS * sizeof *monitor->in_section;
    monitor->in_section = sw__arena_take(monitor->arena, bytes, _Alignof(max_align_t));
    if (!values || !monitor->in_section) {
        sw__free(values);
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < monitor->series_count; i++) {
        count_series(monitor, i, step_s, values);
    }
    sw__free(values);
    return SW_OK;
}

sw_monitor_stats sw_monitor_in_section(const sw_monitor *monitor, size_t series,
                                       size_t section)
{
    if (series >= monitor->series_count || section >= monitor->section_count) {
        return (sw_monitor_stats){.mean = NAN, .min = NAN, .max = NAN};
    }
    return monitor->in_section[series * SW_MONITOR_SECTIONS + section];
}

int sw_monitor_points(const sw_monitor *monitor, size_t series, sw_monitor_point **points,
                      size_t *count)
{
    *points = NULL;
    *count = 0;
    if (series >= monitor->series_count) {
        return SW_EINVAL;
    }
    sw_monitor_point *out = sw__alloc_zero(monitor->look_count + 1, sizeof *out);
    if (!out) {
        return SW_ENOMEM;
    }
    struct walk walk = walk_begin(monitor, series);
    struct found found;
    while (walk_next(&walk, &found)) {
        out[(*count)++] =
            (sw_monitor_point){monitor->looks[found.look].ns, found.value, found.first};
    }
    *points = out;
    return SW_OK;
}

void sw_monitor_points_free(sw_monitor_point *points)
{
    sw__free(points);
}
