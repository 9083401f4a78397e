/* Touches everything that a trace gives, so that a sanitizer sees every byte the
 * reader hands out. */
#ifndef TRACE_WALK_H
#define TRACE_WALK_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepwatch/monitor.h>
#include <stepwatch/stacks.h>
#include <stepwatch/trace.h>
#include <stepwatch/training.h>
#include <string.h>

struct trace_walk {
    uint64_t sum; /* of all bytes: keeps the reads alive */
    uint64_t records;
    uint64_t nodes;
};

static inline void walk_bytes(struct trace_walk *walk, const void *bytes, size_t length)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < length; i++) {
        walk->sum += at[i];
    }
}

#define walk_check(good)                                                                 \
    do {                                                                                 \
        if (!(good)) {                                                                   \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #good);                   \
            abort();                                                                     \
        }                                                                                \
    } while (0)

static inline void walk_lane(void *arg, const sw_trace_lane *lane)
{
    struct trace_walk *walk = arg;
    walk_check(lane->node_count >= 1);
    for (size_t i = 0; i < lane->node_count; i++) {
        walk_check(i == 0 ? lane->nodes[i].parent == 0 : lane->nodes[i].parent < i);
        walk_bytes(walk, &lane->nodes[i], sizeof lane->nodes[i]);
    }
    for (size_t i = 0; i < lane->open_count; i++) {
        walk_check(lane->open[i].node < lane->node_count);
        walk_check(lane->nodes[lane->open[i].node].open > 0);
        walk->sum += lane->open[i].start_ns;
    }
    uint64_t phases = 0;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        phases += lane->phase_ns[i];
    }
    walk_check(phases == lane->step_total_ns);
    walk->nodes += lane->node_count;
}

static inline void walk_names(struct trace_walk *walk, const sw_trace *trace)
{
    const char *text;
    const char *value;
    for (uint32_t i = 0; i < sw_trace_name_limit(trace); i++) {
        const sw_trace_name *name = sw_trace_get_name(trace, i);
        if (name) {
            walk_bytes(walk, name->text, name->length + 1u);
        }
    }
    for (size_t i = 0; sw_trace_fact_at(trace, i, &text, &value); i++) {
        walk_bytes(walk, text, strlen(text) + 1);
        walk_bytes(walk, value, strlen(value) + 1);
    }
    for (size_t i = 0; (text = sw_trace_note(trace, i)) != NULL; i++) {
        walk_bytes(walk, text, strlen(text) + 1);
    }
    for (size_t i = 0; i < sw_trace_thread_count(trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace, i);
        walk_bytes(walk, thread->name, strlen(thread->name) + 1);
    }
    walk->sum +=
        strlen(sw_trace_domain_name(trace, 0)) + strlen(sw_trace_domain_name(trace, 1));
    walk_check(!sw_trace_get_name(trace, UINT32_MAX) &&
               !sw_trace_fact(trace, "no such fact"));
}

static inline void walk_lanes(struct trace_walk *walk, sw_trace *trace)
{
    sw_histogram *histogram = sw_histogram_create();
    for (size_t i = 0; i < sw_trace_lane_count(trace) && histogram; i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        walk_check(lane->thread < sw_trace_thread_count(trace));
        walk_lane(walk, lane);
        for (size_t node = 0; node < lane->node_count; node++) {
            walk_check(sw_trace_node_histogram(trace, i, node, histogram) <= 0);
        }
        walk_check(sw_trace_step_histogram(trace, i, histogram) <= 0);
    }
    if (histogram) {
        walk->sum +=
            sw_histogram_count(histogram) + sw_histogram_quantile(histogram, 0.5);
    }
    sw_histogram_free(histogram);
}

static inline void walk_rows(struct trace_walk *walk, const sw_trace *trace)
{
    for (unsigned table = 0; table < SW_TABLES; table++) {
        for (size_t i = 0; i < sw_trace_row_count(trace, (enum sw_table)table); i++) {
            const sw_row *row = sw_trace_get_row(trace, (enum sw_table)table, i);
            walk_check(!row || (row->table == table && row->index == i));
            walk_bytes(walk, row, row ? sizeof *row : 0);
        }
        walk_check(!sw_trace_get_row(trace, (enum sw_table)table, SIZE_MAX));
    }
    walk_check(sw_trace_row_count(trace, SW_TABLES) == 0);
}

/* What follows from sampled stacks. */
static inline void walk_stacks(struct trace_walk *walk, const sw_stacks *stacks)
{
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    uint32_t frames[SW_STACKS_DEPTH + 1];
    while (sw_stacks_next(stacks, &cursor, &stack)) {
        size_t depth = sw_stacks_frames(stacks, stack.id, frames, SW_STACKS_DEPTH + 1);
        walk_check(depth == stack.depth && depth > 0);
        for (size_t i = 0; i < depth; i++) {
            walk_check(sw_stacks_get_frame(stacks, frames[i]) != NULL);
        }
        walk_bytes(walk, stack.tag->thread, strlen(stack.tag->thread));
    }
    static const sw_stacks_filter apart = {.by_thread = true, .by_phase = true};
    for (int lines = 0; lines < 2; lines++) {
        size_t count;
        sw_stacks_place *places = lines ? sw_stacks_lines(stacks, &apart, &count)
                                        : sw_stacks_functions(stacks, NULL, &count);
        for (size_t i = 0; i < count; i++) {
            const sw_stacks_place *place = &places[i];
            walk_check(place->self_running <= place->total_running);
            walk_check(place->total.share <= 1 && place->total.low >= 0);
            walk_bytes(walk, place->frame.name, strlen(place->frame.name));
            walk_bytes(walk, place->frame.file, strlen(place->frame.file));
        }
        sw_stacks_release(places);
    }
}

static inline void walk_text(struct trace_walk *walk, const char *text)
{
    walk_bytes(walk, text, text ? strlen(text) : 0);
}

static inline void walk_loader(struct trace_walk *walk, const sw_training_loader *loader)
{
    walk_text(walk, loader->name);
    walk_text(walk, loader->dataset);
    walk_text(walk, loader->site ? loader->site->file : NULL);
    double shares = 0;
    for (size_t i = 0; i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        walk_text(walk, stage->name);
        walk_check(stage->self_ns <= stage->ns);
        shares += stage->share >= 0 ? stage->share : 0; /* not if it is NaN */
    }
    walk_check(shares < 1.000001);
    for (size_t i = 0; i < loader->worker_count; i++) {
        walk_check(!(loader->workers[i].busy_share > 1));
        walk_check(i == 0 || loader->workers[i].worker > loader->workers[i - 1].worker);
    }
}

/* What follows from the tables of training. */
static inline void walk_training(struct trace_walk *walk, const sw_training *training)
{
    size_t count;
    const sw_training_module *modules = sw_training_modules(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_check(modules[i].name != NULL);
        walk_text(walk, modules[i].name);
        walk_text(walk, modules[i].type);
        walk_text(walk, modules[i].site ? modules[i].site->function : NULL);
        walk_check(i == 0 || modules[i].self_ns <= modules[i - 1].self_ns);
    }
    const sw_training_dtype *dtypes = sw_training_dtypes(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, dtypes[i].dtype);
    }
    const sw_training_loader *loaders = sw_training_loaders(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_loader(walk, &loaders[i]);
    }
    (void)sw_training_main_loader(training, 0, 20);
    const sw_training_stage *stages = sw_training_stages(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, stages[i].loader);
        walk_check(stages[i].self_ns <= stages[i].ns);
    }
    const sw_training_compilation *compiled = sw_training_compilations(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, compiled[i].function);
        walk_text(walk, compiled[i].reason);
    }
    const sw_training_wait *waits = sw_training_waits(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, waits[i].call);
        walk_text(walk, waits[i].file);
    }
    const sw_training_setting *settings = sw_training_settings(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, settings[i].text);
    }
    const sw_training_operator *operators = sw_training_operators(training, &count);
    for (size_t i = 0; i < count; i++) {
        walk_text(walk, operators[i].shapes);
        walk_check(operators[i].phase < SW_PHASE_COUNT ||
                   operators[i].phase == SW_PHASE_INHERIT);
    }
}

static inline void walk_monitor(struct trace_walk *walk, const sw_monitor *monitor)
{
    for (size_t i = 0; monitor && i < sw_monitor_series_count(monitor); i++) {
        const sw_monitor_series *series = sw_monitor_get_series(monitor, i);
        sw_monitor_point *points;
        size_t count;
        walk_text(walk, series->name);
        walk_text(walk, series->unit);
        walk_check(!isinf(series->first) && !isinf(series->last));
        walk_check(sw_monitor_points(monitor, i, &points, &count) == SW_OK);
        walk_check(count <= sw_monitor_get_totals(monitor)->kept);
        walk_bytes(walk, points, count * sizeof *points);
        sw_monitor_points_free(points);
        for (size_t k = 0; k < sw_monitor_section_count(monitor); k++) {
            const sw_monitor_stats stats = sw_monitor_in_section(monitor, i, k);
            walk_check(stats.samples <= count);
        }
    }
    for (size_t i = 0; monitor && i < sw_monitor_section_count(monitor); i++) {
        const sw_monitor_section *section = sw_monitor_get_section(monitor, i);
        for (size_t k = 0; k < section->depth; k++) {
            walk_text(walk, section->path[k]);
        }
    }
}

static inline void walk_records(struct trace_walk *walk, sw_trace *trace,
                                const sw_cursor_filter *filter)
{
    sw_cursor *cursor;
    sw_event event;
    int result = sw_cursor_open(&cursor, &trace, 1, filter, NULL);
    walk_check(result == SW_OK);
    while ((result = sw_cursor_next(cursor, &event)) == SW_OK) {
        walk_check(event.begin_ns <= event.end_ns);
        walk_check(event.thread < sw_trace_thread_count(trace));
        walk_check(event.record->units > 0);
        walk_bytes(walk, event.record, (size_t)event.record->units * SW_RECORD_UNIT);
        walk->records++;
    }
    walk_check(result == SW_EEND);
    sw_cursor_free(cursor);
}

static inline void walk_trace(struct trace_walk *walk, sw_trace *trace)
{
    static const sw_cursor_filter with_steps = {.steps = true};
    walk_names(walk, trace);
    walk_lanes(walk, trace);
    walk_rows(walk, trace);
    walk_records(walk, trace, &with_steps);
    const sw_trace_info *info = sw_trace_get_info(trace);
    const sw_cursor_filter late = {.from_ns = info->start_ns +
                                              (info->end_ns - info->start_ns) / 2,
                                   .kinds = 1u << SW_RECORD_SPAN};
    walk_records(walk, trace, &late);
    walk_check(info->start_ns <= info->end_ns);
    walk_bytes(walk, info->name, strlen(info->name));
    walk_bytes(walk, info->run_id, strlen(info->run_id));
    walk_check(sw_trace_rebuild_lanes(trace, false, walk_lane, walk, NULL) == SW_OK);
    walk_check(sw_trace_rebuild_lanes(trace, true, NULL, NULL, NULL) == SW_OK);
    walk_lanes(walk, trace);
}

#endif
