/* Validation and checkpoints: how long a thread was at them, and how much of that lies between its steps. Inside them no
 * section changes the phase, so the topmost sections of these phases hold it all. */
#include "analyze/aside.h"

#include <string.h>

static int which(const sw_trace *trace, uint32_t section)
{
    const sw_trace_name *name = sw_trace_get_name(trace, section);
    if (!name || name->use != 1) {
        return -1;
    }
    return name->phase == SW_PHASE_VALIDATION   ? SW__ASIDE_VALIDATION
           : name->phase == SW_PHASE_CHECKPOINT ? SW__ASIDE_CHECKPOINT
                                                : -1;
}

int sw__aside_find(struct sw__aside *aside, const sw_trace *trace,
                   const sw_trace_lane *lane)
{
    *aside = (struct sw__aside){.trace = trace, .lane = lane};
    aside->node = sw__alloc_zero(lane->node_count + 1, sizeof *aside->node);
    /* By node: kind + 1 of the outermost such section that it is or lies in; 0 none. */
    uint8_t *within = sw__alloc_zero(lane->node_count + 1, sizeof *within);
    if (!aside->node || !within) {
        sw__free(within);
        return SW_ENOMEM;
    }
    for (size_t i = 1; i < lane->node_count; i++) {
        const sw_trace_node *node = &lane->nodes[i];
        const int kind = node->kind == 0 ? which(trace, node->section) : -1;
        within[i] = within[node->parent < i ? node->parent : 0];
        if (kind >= 0 && !within[i]) {
            aside->node[i] = within[i] = (uint8_t)(kind + 1);
            aside->ns[kind] = sw__add(aside->ns[kind], node->inclusive_ns);
        } else if (kind == SW__ASIDE_CHECKPOINT &&
                   within[i] == SW__ASIDE_VALIDATION + 1) {
            aside->nested_ns = sw__add(aside->nested_ns, node->inclusive_ns);
            within[i] = SW__ASIDE_CHECKPOINT + 1;
        }
    }
    const uint64_t end = sw_trace_get_info(trace)->end_ns;
    for (size_t i = 0; i < lane->open_count; i++) {
        const sw_trace_open_span *open = &lane->open[i];
        const uint8_t kind = open->node < lane->node_count ? aside->node[open->node] : 0;
        if (kind) {
            uint64_t *ns = &aside->ns[kind - 1];
            *ns = sw__add(*ns, sw__sub(end, open->start_ns));
        }
    }
    sw__free(within);
    return SW_OK;
}

void sw__aside_free(struct sw__aside *aside)
{
    sw__free(aside->node);
    aside->node = NULL;
}

/* The first gap that ends after `moment`. */
static size_t gap_at(const struct sw__gap *gaps, size_t count, uint64_t moment)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (gaps[middle].end > moment) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Topmost sections of a thread follow each other. What a damaged file says beyond that is cut, so that no gap is looked at
 * over and over: `*done` is where the last one ended. */
static void place(struct sw__gap *gaps, size_t count, int kind, uint64_t begin,
                  uint64_t end, uint64_t *done)
{
    begin = begin > *done ? begin : *done;
    *done = end > *done ? end : *done;
    for (size_t i = gap_at(gaps, count, begin); i < count && gaps[i].begin < end; i++) {
        const uint64_t from = begin > gaps[i].begin ? begin : gaps[i].begin;
        const uint64_t to = end < gaps[i].end ? end : gaps[i].end;
        gaps[i].aside[kind] = sw__add(gaps[i].aside[kind], sw__sub(to, from));
    }
}

/* Spans may have been given up: what they tell is where, the call tree knows how much. */
void sw__aside_place(const struct sw__aside *aside, struct sw__gap *gaps, size_t count)
{
    uint64_t done = 0;
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {
        .kinds = 1u << SW_RECORD_SPAN, .one_thread = true, .thread = aside->lane->thread};
    sw_trace *trace = (sw_trace *)aside->trace;
    if (count > 0 && sw_cursor_open(&cursor, &trace, 1, &filter, NULL) == SW_OK) {
        sw_event event;
        while (sw_cursor_next(cursor, &event) == SW_OK) {
            const sw_record_span *span =
                (const sw_record_span *)(const void *)event.record;
            if (event.record->kind == SW_RECORD_SPAN &&
                span->domain == aside->lane->domain &&
                span->node < aside->lane->node_count && aside->node[span->node]) {
                place(gaps, count, aside->node[span->node] - 1, event.begin_ns,
                      event.end_ns, &done);
            }
        }
        sw_cursor_free(cursor);
    }
    const uint64_t end = sw_trace_get_info(aside->trace)->end_ns;
    for (size_t i = 0; i < aside->lane->open_count; i++) {
        const sw_trace_open_span *open = &aside->lane->open[i];
        if (open->node < aside->lane->node_count && aside->node[open->node]) {
            place(gaps, count, aside->node[open->node] - 1, open->start_ns, end, &done);
        }
    }
}
