/* What the monitor of a process left in its trace: rows of series and sources, looks and values. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/monitor.h"
#include "analyze/summary.h"

static double f64(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value : NAN;
}

static void *take(sw_monitor *monitor, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, size, &bytes)) {
        return NULL;
    }
    void *memory = sw__arena_take(monitor->arena, bytes, _Alignof(max_align_t));
    if (memory) {
        memset(memory, 0, bytes);
    }
    return memory;
}

static const char *name_of(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name ? name->text : NULL;
}

/* --- rows --- */

/* A monitor that was started again left rows of the same names; they are added up. */
static int read_sources(sw_monitor *monitor, const sw_trace *trace)
{
    const size_t rows = sw_trace_row_count(trace, SW_TABLE_SOURCE);
    const double ns = sw_trace_ns_per_tick(trace);
    monitor->seen = take(monitor, rows, sizeof *monitor->seen);
    if (!monitor->seen) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SOURCE, i);
        const char *name = row ? name_of(trace, row->key[0]) : NULL;
        if (!name) {
            continue;
        }
        if (row->key[3] == UINT32_MAX && strcmp(name, "monitor") == 0) {
            sw_monitor_totals *totals = &monitor->totals;
            totals->looks = sw__add(totals->looks, row->value[0]);
            totals->cpu_s += (double)row->value[1] / 1e9;
            totals->interval_s = (double)row->value[3] / 1e9;
            totals->late = sw__add(totals->late, row->value[4]);
            continue;
        }
        sw_monitor_seen *seen = NULL;
        for (size_t k = 0; k < monitor->seen_count && !seen; k++) {
            seen = strcmp(monitor->seen[k].name, name) == 0 ? &monitor->seen[k] : NULL;
        }
        seen = seen ? seen : &monitor->seen[monitor->seen_count++];
        seen->name = name;
        seen->why = name_of(trace, row->key[1]);
        seen->period_s = row->key[2] / 1e3;
        seen->looks = sw__add(seen->looks, row->value[0]);
        seen->seconds += (double)row->value[1] * ns / 1e9;
        seen->failed = sw__add(seen->failed, row->value[2]);
    }
    return SW_OK;
}

static bool better(double value, double than, bool less)
{
    return !isnan(value) && (isnan(than) || (less ? value < than : value > than));
}

static void add_row(sw_monitor_series *series, const sw_row *row)
{
    const uint64_t before = series->known;
    series->known = sw__add(series->known, row->value[0]);
    if (series->kind == SW_SERIES_GAUGE) {
        /* mean holds the sum until all rows are in */
        series->all.mean = (before ? series->all.mean : 0) + f64(row->value[1]);
        series->last = f64(row->value[4]);
    } else {
        series->growth = (before ? series->growth : 0) + f64(row->value[1]);
        series->all.mean = (before ? series->all.mean : 0) + (double)row->value[2];
    }
    const unsigned least = series->kind == SW_SERIES_GAUGE ? 2 : 3;
    const double low = row->value[0] ? f64(row->value[least]) : NAN;
    const double high = row->value[0] ? f64(row->value[least + 1]) : NAN;
    series->all.min = better(low, series->all.min, true) ? low : series->all.min;
    series->all.max = better(high, series->all.max, false) ? high : series->all.max;
}

/* Until here the mean of a gauge is a sum, that of a total the nanoseconds watched. */
static void finish_row(sw_monitor_series *series)
{
    if (series->kind == SW_SERIES_GAUGE) {
        series->all.samples = series->known;
        series->all.mean = series->known ? series->all.mean / (double)series->known : NAN;
    } else {
        const double ns = series->all.mean;
        series->all.mean = ns > 0 ? series->growth / ns * 1e9 : NAN;
        series->growth = ns > 0 ? series->growth : NAN;
        series->watched_s = ns / 1e9;
    }
}

/* `place_of` maps name ids to places + 1. */
static int read_series(sw_monitor *monitor, const sw_trace *trace, uint32_t *place_of)
{
    const size_t rows = sw_trace_row_count(trace, SW_TABLE_SERIES);
    const uint32_t limit = sw_trace_name_limit(trace);
    monitor->series = take(monitor, rows, sizeof *monitor->series);
    monitor->bit = take(monitor, rows, sizeof *monitor->bit);
    monitor->first_value = take(monitor, rows + 1, sizeof *monitor->first_value);
    if (!monitor->series || !monitor->bit || !monitor->first_value) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SERIES, i);
        const char *name =
            row && row->key[0] < limit ? name_of(trace, row->key[0]) : NULL;
        if (!name) {
            continue;
        }
        uint32_t *place = &place_of[row->key[0]];
        if (!*place) {
            const sw_row *source = sw_trace_get_row(trace, SW_TABLE_SOURCE, row->key[3]);
            const char *unit = name_of(trace, row->key[1]);
            monitor->bit[monitor->series_count] =
                source && source->key[3] < 64 ? source->key[3] : 64;
            monitor->series[monitor->series_count] = (sw_monitor_series){
                .name = name,
                .unit = unit ? unit : "",
                .kind =
                    row->key[2] == SW_SERIES_TOTAL ? SW_SERIES_TOTAL : SW_SERIES_GAUGE,
                .source = source ? name_of(trace, source->key[0]) : NULL,
                .first = NAN,
                .last = NAN,
                .growth = NAN,
                .per_step = NAN,
                .p50 = NAN,
                .p95 = NAN,
                .all = {.mean = NAN, .min = NAN, .max = NAN}};
            *place = (uint32_t)++monitor->series_count;
        }
        add_row(&monitor->series[*place - 1], row);
    }
    for (size_t i = 0; i < monitor->series_count; i++) {
        finish_row(&monitor->series[i]);
    }
    return SW_OK;
}

/* --- looks and values --- */

struct reading {
    sw_monitor *monitor;
    const sw_trace *trace;
    const uint32_t *place_of;
    uint32_t name_limit;
    size_t look_room, value_room;
    sw_record_look *raw; /* one a look, for their sections */
    sw_look_frame (*frames)[SW_LOOK_FRAMES];
};

static void *grow(void *memory, size_t count, size_t *room, size_t size)
{
    if (count < *room) {
        return memory;
    }
    *room = *room ? *room * 2 : 256;
    return sw__realloc(memory, *room, size);
}

static int add_look(struct reading *reading, const sw_event *event)
{
    sw_monitor *monitor = reading->monitor;
    const sw_record_look *look = (const sw_record_look *)(const void *)event->record;
    const size_t count = monitor->look_count;
    if (count == reading->look_room) {
        size_t room = reading->look_room, same = room, again = room;
        void *looks = grow(monitor->looks, count, &room, sizeof *monitor->looks);
        monitor->looks = looks ? looks : monitor->looks;
        void *raw = grow(reading->raw, count, &same, sizeof *reading->raw);
        reading->raw = raw ? raw : reading->raw;
        void *frames = grow(reading->frames, count, &again, sizeof *reading->frames);
        reading->frames = frames ? frames : reading->frames;
        if (!looks || !raw || !frames) {
            return SW_ENOMEM;
        }
        reading->look_room = room;
    }
    reading->raw[count] = *look;
    if (look->depth > SW_LOOK_FRAMES) {
        reading->raw[count].depth = SW_LOOK_FRAMES;
    }
    memcpy(reading->frames[count], look + 1,
           reading->raw[count].depth * sizeof(sw_look_frame));
    const struct sw__look_seen *before = count ? &monitor->looks[count - 1] : NULL;
    const bool first =
        !before || (look->edge & SW_LOOK_FIRST) || look->head.ticks < before->ticks;
    const bool in_step = look->step != UINT64_MAX;
    monitor->looks[monitor->look_count++] = (struct sw__look_seen){
        .ns = event->begin_ns,
        .ticks = look->head.ticks,
        .sources = look->sources,
        .first = first,
        .in_step = in_step,
        .step_before = !first && before->in_step,
        .phase = in_step && look->phase < SW_PHASE_COUNT ? look->phase : SW_PHASE_INHERIT,
        .phase_whole = !first && look->phase_start && look->phase_start <= before->ticks};
    return SW_OK;
}

static int add_value(struct reading *reading, const sw_event *event)
{
    sw_monitor *monitor = reading->monitor;
    const sw_record_counter *value =
        (const sw_record_counter *)(const void *)event->record;
    const uint32_t id = value->head.id;
    const uint32_t place = id < reading->name_limit ? reading->place_of[id] : 0;
    /* Values stand after the look they belong to. */
    if (!place || !monitor->look_count ||
        monitor->looks[monitor->look_count - 1].ticks != value->head.ticks) {
        return SW_OK;
    }
    void *values = grow(monitor->values, monitor->value_count, &reading->value_room,
                        sizeof *monitor->values);
    if (!values) {
        return SW_ENOMEM;
    }
    monitor->values = values;
    monitor->values[monitor->value_count++] =
        (struct sw__value_seen){.series = place - 1,
                                .look = (uint32_t)(monitor->look_count - 1),
                                .value = isinf(value->value) ? NAN : value->value};
    return SW_OK;
}

static int read_records(struct reading *reading, sw_trace *trace, sw_error_info *info)
{
    const sw_cursor_filter filter = {.kinds =
                                         1u << SW_RECORD_LOOK | 1u << SW_RECORD_MONITOR};
    sw_cursor *cursor = NULL;
    sw_event event;
    int result = sw_cursor_open(&cursor, &trace, 1, &filter, info);
    while (result == SW_OK && (result = sw_cursor_next(cursor, &event)) == SW_OK) {
        result = event.record->kind == SW_RECORD_LOOK ? add_look(reading, &event)
                                                      : add_value(reading, &event);
    }
    sw_cursor_free(cursor);
    return result == SW_EEND ? SW_OK : result;
}

static int by_series(const void *a, const void *b)
{
    const struct sw__value_seen *left = a;
    const struct sw__value_seen *right = b;
    return left->series != right->series
               ? (left->series > right->series) * 2 - 1
               : (left->look > right->look) - (left->look < right->look);
}

static void index_values(sw_monitor *monitor)
{
    if (monitor->value_count) {
        qsort(monitor->values, monitor->value_count, sizeof *monitor->values, by_series);
    }
    size_t at = 0;
    for (size_t i = 0; i <= monitor->series_count; i++) {
        while (at < monitor->value_count && monitor->values[at].series < i) {
            at++;
        }
        monitor->first_value[i] = at;
    }
}

/* --- sections --- */

struct node_seen {
    uint32_t thread, node;
    uint64_t looks;
};

static int by_node(const void *a, const void *b)
{
    const struct node_seen *left = a;
    const struct node_seen *right = b;
    return left->thread != right->thread
               ? (left->thread > right->thread) * 2 - 1
               : (left->node > right->node) - (left->node < right->node);
}

static int by_looks(const void *a, const void *b)
{
    const struct node_seen *left = a;
    const struct node_seen *right = b;
    return left->looks != right->looks ? (left->looks < right->looks) * 2 - 1
                                       : by_node(a, b);
}

static const sw_trace_lane *lane_of(const sw_trace *trace, uint32_t thread)
{
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        if (lane && lane->thread == thread && lane->domain == 0) {
            return lane;
        }
    }
    return NULL;
}

/* The path of a node; false: it is not in the tree, or there is no memory. */
static bool fill_section(sw_monitor *monitor, const sw_trace *trace,
                         const struct node_seen *seen, sw_monitor_section *out)
{
    const sw_trace_lane *lane = lane_of(trace, seen->thread);
    size_t depth = 0;
    for (uint32_t at = seen->node; lane && at && at < lane->node_count && depth < 256;
         at = lane->nodes[at].parent) {
        depth++;
    }
    const char **path = depth ? take(monitor, depth, sizeof *path) : NULL;
    if (!path) {
        return false;
    }
    uint32_t at = seen->node;
    for (size_t i = depth; i-- > 0; at = lane->nodes[at].parent) {
        const char *name = name_of(trace, lane->nodes[at].section);
        path[i] = name ? name : "?";
    }
    *out = (sw_monitor_section){path, depth, seen->looks};
    return true;
}

/* Which sections were seen most, and in which of them each look lies. */
static int read_sections(struct reading *reading)
{
    sw_monitor *monitor = reading->monitor;
    size_t all = 0;
    for (size_t i = 0; i < monitor->look_count; i++) {
        all += reading->raw[i].depth;
    }
    monitor->sections = take(monitor, SW_MONITOR_SECTIONS, sizeof *monitor->sections);
    struct node_seen *seen = sw__alloc_zero(all + 1, sizeof *seen);
    if (!seen || !monitor->sections) {
        sw__free(seen);
        return SW_ENOMEM;
    }
    size_t used = 0;
    for (size_t i = 0; i < monitor->look_count; i++) {
        for (unsigned k = 0; k < reading->raw[i].depth; k++) {
            seen[used++] =
                (struct node_seen){reading->raw[i].thread, reading->frames[i][k].node, 1};
        }
    }
    qsort(seen, used, sizeof *seen, by_node);
    size_t different = 0;
    for (size_t i = 0; i < used; i++) {
        if (different && by_node(&seen[different - 1], &seen[i]) == 0) {
            seen[different - 1].looks++;
        } else {
            seen[different++] = seen[i];
        }
    }
    qsort(seen, different, sizeof *seen, by_looks);
    size_t chosen = 0;
    for (size_t i = 0; i < different && chosen < SW_MONITOR_SECTIONS; i++) {
        if (fill_section(monitor, reading->trace, &seen[i], &monitor->sections[chosen])) {
            seen[chosen++] = seen[i];
        }
    }
    monitor->section_count = chosen;
    for (size_t i = 0; i < monitor->look_count; i++) {
        struct sw__look_seen *look = &monitor->looks[i];
        for (unsigned k = 0; k < reading->raw[i].depth; k++) {
            const sw_look_frame *frame = &reading->frames[i][k];
            for (size_t s = 0; s < chosen; s++) {
                if (seen[s].thread == reading->raw[i].thread &&
                    seen[s].node == frame->node) {
                    look->open |= 1u << s;
                    const bool whole = !look->first && frame->start &&
                                       frame->start <= monitor->looks[i - 1].ticks;
                    look->whole |= whole ? 1u << s : 0;
                }
            }
        }
    }
    sw__free(seen);
    return SW_OK;
}

static void find_gaps(sw_monitor *monitor)
{
    sw_monitor_totals *totals = &monitor->totals;
    totals->kept = monitor->look_count;
    totals->longest_gap_s = NAN;
    for (size_t i = 1; i < monitor->look_count; i++) {
        const double gap =
            (double)sw__sub(monitor->looks[i].ns, monitor->looks[i - 1].ns) / 1e9;
        if (!monitor->looks[i].first) {
            totals->watched_s += gap;
            totals->longest_gap_s =
                better(gap, totals->longest_gap_s, false) ? gap : totals->longest_gap_s;
        }
    }
}

/* Mean length of the complete steps of the trace, in seconds. */
static double step_length(const sw_trace *trace)
{
    double steps = 0, ns = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        if (lane && lane->domain == 0) {
            steps += (double)sw__sub(lane->steps, lane->steps_incomplete);
            ns += (double)lane->step_total_ns;
        }
    }
    return steps > 0 ? ns / steps / 1e9 : NAN;
}

int sw_monitor_of_trace(sw_monitor **out, sw_trace *trace, sw_error_info *info)
{
    *out = NULL;
    if (sw_trace_row_count(trace, SW_TABLE_SOURCE) == 0) {
        return SW_OK;
    }
    const uint32_t limit = sw_trace_name_limit(trace);
    sw_monitor *monitor = sw__alloc_zero(1, sizeof *monitor);
    uint32_t *place_of = sw__alloc_zero((size_t)limit + 1, sizeof *place_of);
    int result = monitor && place_of ? SW_OK : SW_ENOMEM;
    struct reading reading = {
        .monitor = monitor, .trace = trace, .place_of = place_of, .name_limit = limit};
    if (result == SW_OK) {
        monitor->arena = sw__arena_create(0);
        monitor->totals.pid = sw_trace_get_info(trace)->pid;
        result = monitor->arena ? read_sources(monitor, trace) : SW_ENOMEM;
    }
    result = result ? result : read_series(monitor, trace, place_of);
    result = result ? result : read_records(&reading, trace, info);
    if (result == SW_OK) {
        index_values(monitor);
        find_gaps(monitor);
        result = read_sections(&reading);
    }
    result = result ? result : sw__monitor_count(monitor, step_length(trace));
    sw__free(reading.raw);
    sw__free(reading.frames);
    sw__free(place_of);
    if (result != SW_OK) {
        sw_monitor_free(monitor);
        return result == SW_ENOMEM ? sw_error_set(info, result, "Out of memory.")
                                   : result;
    }
    *out = monitor;
    return SW_OK;
}

void sw_monitor_free(sw_monitor *monitor)
{
    if (monitor) {
        sw__free(monitor->looks);
        sw__free(monitor->values);
        sw__arena_free(monitor->arena);
        sw__free(monitor);
    }
}

const sw_monitor_totals *sw_monitor_get_totals(const sw_monitor *monitor)
{
    return &monitor->totals;
}

size_t sw_monitor_series_count(const sw_monitor *monitor)
{
    return monitor->series_count;
}

const sw_monitor_series *sw_monitor_get_series(const sw_monitor *monitor, size_t index)
{
    return index < monitor->series_count ? &monitor->series[index] : NULL;
}

const sw_monitor_series *sw_monitor_find(const sw_monitor *monitor, const char *name)
{
    for (size_t i = 0; monitor && i < monitor->series_count; i++) {
        if (strcmp(monitor->series[i].name, name) == 0) {
            return &monitor->series[i];
        }
    }
    return NULL;
}

size_t sw_monitor_section_count(const sw_monitor *monitor)
{
    return monitor->section_count;
}

const sw_monitor_section *sw_monitor_get_section(const sw_monitor *monitor, size_t index)
{
    return index < monitor->section_count ? &monitor->sections[index] : NULL;
}

size_t sw_monitor_seen_count(const sw_monitor *monitor)
{
    return monitor->seen_count;
}

const sw_monitor_seen *sw_monitor_get_seen(const sw_monitor *monitor, size_t index)
{
    return index < monitor->seen_count ? &monitor->seen[index] : NULL;
}
