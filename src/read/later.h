/* Steps that were noted and not told yet, as the reader has them. */
#ifndef SW_READ_LATER_H
#define SW_READ_LATER_H

#include "read/trace_internal.h"

enum { SW__LATER_MOST = 64 }; /* notes of a lane that are looked at */

/* What the notes of one lane say. Times in ticks. */
struct sw__later {
    struct sw__later *next;
    uint32_t thread, domain;
    uint32_t node;    /* address of the node of the waits / 64; 0: not known */
    uint32_t updates; /* of the open step, too */
    uint64_t open;    /* number of the step that is open after them */
    uint64_t open_begin;
    uint64_t waiting; /* since when it waits; 0: it does not */
    uint64_t step_ticks, step_min, step_max;
    uint64_t phase_ticks[SW_PHASE_SLOTS];
    uint32_t steps, waits; /* that have ended */
    bool spans;            /* waits are events, too */
    sw_record_step record[SW__LATER_MOST];
    sw_record_span wait[SW__LATER_MOST];
};

/* From `count` notes, at most SW__LATER_MOST, behind `head`. SW_ENOTFOUND: there is nothing in them. */
int sw__later_parse(const struct sw__fmt_lane *lane, const struct sw__fmt_later *head,
                    const struct sw__fmt_note *notes, uint32_t count,
                    struct sw__later *out);
/* Finds those of all lanes, and adds their steps to the index. */
int sw__later_load(sw_trace *trace);
const struct sw__later *sw__later_of(const sw_trace *trace, uint32_t thread,
                                     uint32_t domain);
/* Adds them to the sums of a lane. */
void sw__later_add(const struct sw__later *later, struct sw__fmt_lane *lane);
/* Adds durations of steps, or of waits. `later` may be NULL. */
int sw__later_histogram(const struct sw__later *later, bool steps, sw_histogram *into);

#endif
