/* How long modules and sections take in each step, from the records of single sections.
 *
 * Totals tell a mean and not how it varies from step to step, and they include what lies outside the steps that count. So
 * the records of the step thread are read once. Where some of them were given up nothing is read: the steps that have kept
 * theirs are the first, the last and the slowest, and would stand for nobody. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare.h"
#include "analyze/summary.h"

#define SERIES_MOST 512 /* those with most time */
#define BINS_MOST 4096  /* steps, or means of neighbouring ones */
#define DEPTH_MOST 1024

/* What a node of the call tree is. */
struct node {
    uint32_t series;  /* + 1; 0 none */
    bool module;      /* its self time counts, else all of it */
    bool inside_same; /* within a call of the same section */
    bool validates;   /* within a validation */
};

struct chosen {
    uint32_t part;
    bool module;
    double ns;
};

struct spans {
    sw_compare_input *input;
    const sw_trace *trace;
    const sw_trace_lane *lane;
    struct node *nodes;
    struct chosen *chosen; /* by series */
    size_t chosen_count;
    uint32_t *bins; /* by step: its bin + 1, 0 none */
    size_t bin_count, steps_a_bin;
    double *sums;                  /* by series, then by bin */
    double within[DEPTH_MOST + 2]; /* ns of what has ended inside, by depth */
};

/* --- which steps, which sections --- */

/* Whether all sections of a step that counts are there. */
static bool is_usable(const sw_summary_step *step)
{
    return step->complete && !step->warmup && step->events && !step->brief;
}

static int find_bins(struct spans *spans, const sw_summary_step *steps, size_t count)
{
    size_t usable = 0;
    spans->bins = sw__alloc_zero(count + 1, sizeof *spans->bins);
    if (!spans->bins) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        usable += is_usable(&steps[i]);
    }
    spans->steps_a_bin = (usable + BINS_MOST - 1) / BINS_MOST;
    spans->bin_count = usable ? usable / spans->steps_a_bin : 0;
    for (size_t i = 0, place = 0; i < count; i++) {
        if (is_usable(&steps[i])) {
            const size_t bin = place++ / spans->steps_a_bin;
            spans->bins[i] = bin < spans->bin_count ? (uint32_t)bin + 1 : 0;
        }
    }
    return SW_OK;
}

/* The place of the part that a section is, UINT32_MAX: none. */
static uint32_t part_of(const struct spans *spans, uint32_t section, bool *module)
{
    const sw_trace_name *name = sw_trace_get_name(spans->trace, section);
    struct sw__measured like = {.name = name ? name->text : NULL};
    for (unsigned kind = SW_COMPARED_MODULE; like.name && kind <= SW_COMPARED_SECTION;
         kind++) {
        const struct sw__measured *found =
            sw__measured_find(spans->input, (enum sw_compared_kind)kind, &like);
        if (found) {
            *module = kind == SW_COMPARED_MODULE;
            return (uint32_t)(found - spans->input->parts[kind].items);
        }
    }
    return UINT32_MAX;
}

static void look_up(const struct spans *spans, size_t index)
{
    const sw_trace_node *nodes = spans->lane->nodes;
    const sw_trace_name *name = sw_trace_get_name(spans->trace, nodes[index].section);
    struct node *node = &spans->nodes[index];
    size_t up = nodes[index].parent < index ? nodes[index].parent : 0;
    node->validates =
        spans->nodes[up].validates || (name && name->phase == SW_PHASE_VALIDATION);
    while (up != 0 && !node->inside_same) {
        node->inside_same = nodes[up].section == nodes[index].section;
        up = nodes[up].parent < up ? nodes[up].parent : 0;
    }
}

static int by_time(const void *left, const void *right)
{
    const struct chosen *a = left;
    const struct chosen *b = right;
    if (a->ns != b->ns) {
        return a->ns < b->ns ? 1 : -1;
    }
    return (a->part > b->part) - (a->part < b->part);
}

static int find_series(struct spans *spans)
{
    const size_t modules = spans->input->parts[SW_COMPARED_MODULE].count;
    const size_t all = modules + spans->input->parts[SW_COMPARED_SECTION].count;
    const size_t count = spans->lane->node_count;
    uint32_t *places = sw__alloc_zero(count + all + 1, sizeof *places);
    spans->nodes = sw__alloc_zero(count + 1, sizeof *spans->nodes);
    spans->chosen = sw__alloc_zero(all + 1, sizeof *spans->chosen);
    if (!places || !spans->nodes || !spans->chosen) {
        sw__free(places);
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < all; i++) {
        spans->chosen[i].part = (uint32_t)i;
        spans->chosen[i].module = i < modules;
    }
    for (size_t i = 1; i < count; i++) {
        const sw_trace_node *node = &spans->lane->nodes[i];
        bool module = false;
        uint32_t part =
            node->kind == 0 ? part_of(spans, node->section, &module) : UINT32_MAX;
        if (part != UINT32_MAX) {
            part += module ? 0 : (uint32_t)modules;
            places[i] = part + 1;
            spans->nodes[i].module = module;
            spans->chosen[part].ns += (double)node->inclusive_ns;
        }
        look_up(spans, i);
    }
    if (all > 1) {
        qsort(spans->chosen, all, sizeof *spans->chosen, by_time);
    }
    spans->chosen_count = all < SERIES_MOST ? all : SERIES_MOST;
    uint32_t *series = places + count; /* by part: series + 1 */
    for (size_t i = 0; i < spans->chosen_count; i++) {
        series[spans->chosen[i].part] = (uint32_t)i + 1;
    }
    for (size_t i = 1; i < count; i++) {
        spans->nodes[i].series = places[i] ? series[places[i] - 1] : 0;
    }
    sw__free(places);
    return SW_OK;
}

/* --- reading --- */

/* The time that a span adds to its series. */
static double take_span(struct spans *spans, const sw_record_span *span, double ns)
{
    const struct node *node = &spans->nodes[span->node];
    const size_t depth = span->depth < DEPTH_MOST ? span->depth : DEPTH_MOST;
    double self = ns;
    if (!(span->head.flags & SW_RECORD_UNNESTED)) {
        self = fmax(ns - spans->within[depth + 1], 0);
        spans->within[depth + 1] = 0;
        spans->within[depth] += ns;
    }
    if (!node->series || (node->module && node->validates) ||
        (!node->module && node->inside_same)) {
        return 0;
    }
    return node->module ? self : ns;
}

static int read_spans(struct spans *spans, const sw_summary_step *steps, size_t count)
{
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {
        .kinds = 1u << SW_RECORD_SPAN, .one_thread = true, .thread = spans->lane->thread};
    sw_trace *trace = (sw_trace *)spans->trace;
    sw_event event;
    size_t at = 0;
    int error = sw_cursor_open(&cursor, &trace, 1, &filter, NULL);
    while (!error && (error = sw_cursor_next(cursor, &event)) == SW_OK) {
        const sw_record_span *span = (const sw_record_span *)(const void *)event.record;
        if (event.record->kind != SW_RECORD_SPAN || span->domain != spans->lane->domain ||
            span->node >= spans->lane->node_count) {
            continue;
        }
        const double ns =
            event.end_ns > event.begin_ns ? (double)(event.end_ns - event.begin_ns) : 0;
        const double taken = take_span(spans, span, ns);
        while (at < count && steps[at].end_ns < event.end_ns) {
            at++;
        }
        if (at == count || !spans->bins[at] || taken <= 0) {
            continue;
        }
        /* A step may begin a moment after the section that it begins with, and inside of those around it. */
        const uint64_t begin = steps[at].begin_ns;
        const double inside = event.begin_ns >= begin ? ns
                              : event.end_ns > begin  ? (double)(event.end_ns - begin)
                                                      : 0;
        if (2 * inside >= ns) {
            const size_t series = spans->nodes[span->node].series - 1;
            spans->sums[series * spans->bin_count + spans->bins[at] - 1] += taken;
        }
    }
    sw_cursor_free(cursor);
    return error == SW_EEND ? SW_OK : error;
}

static int finish(struct spans *spans)
{
    const size_t modules = spans->input->parts[SW_COMPARED_MODULE].count;
    int error = SW_OK;
    for (size_t i = 0; i < spans->chosen_count && !error; i++) {
        const struct chosen *chosen = &spans->chosen[i];
        double *values = spans->sums + i * spans->bin_count;
        double sum = 0;
        for (size_t bin = 0; bin < spans->bin_count; bin++) {
            values[bin] /= (double)spans->steps_a_bin;
            sum += values[bin];
        }
        struct sw__measured *part =
            chosen->module
                ? &spans->input->parts[SW_COMPARED_MODULE].items[chosen->part]
                : &spans->input->parts[SW_COMPARED_SECTION].items[chosen->part - modules];
        if (chosen->module || sum > 0) {
            error = sw__mean_of(values, spans->bin_count, &part->step);
        }
    }
    spans->input->spans = !error;
    return error;
}

int sw__compare_spans(sw_compare_input *input, const sw_summary *summary,
                      const sw_summary_step *steps, size_t count)
{
    const sw_trace *trace = sw__summary_trace(summary, summary->step_trace);
    const sw_trace_info *info = sw_trace_get_info(trace);
    if (!info->events || info->damaged || info->hot_missing || info->dropped > 0 ||
        info->overwritten > 0 || sw_summary_get_steps(summary)->thinned) {
        return SW_OK;
    }
    struct spans *spans = sw__alloc_zero(1, sizeof *spans);
    if (!spans) {
        return SW_ENOMEM;
    }
    spans->input = input;
    spans->trace = trace;
    spans->lane = summary->step_lane;
    int error = find_bins(spans, steps, count);
    error = error ? error : find_series(spans);
    if (!error && spans->bin_count >= SW_COMPARE_STEPS_LEAST && spans->chosen_count > 0) {
        spans->sums =
            sw__alloc_zero(spans->chosen_count * spans->bin_count, sizeof *spans->sums);
        error = spans->sums ? read_spans(spans, steps, count) : SW_ENOMEM;
        /* A file that cannot be read to its end has its totals still. */
        error = error && error != SW_ENOMEM ? SW_OK : error ? error : finish(spans);
    }
    sw__free(spans->sums);
    sw__free(spans->bins);
    sw__free(spans->nodes);
    sw__free(spans->chosen);
    sw__free(spans);
    return error;
}
