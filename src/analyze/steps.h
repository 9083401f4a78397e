/* The steps of one thread while they are being counted. */
#ifndef SW_ANALYZE_STEPS_H
#define SW_ANALYZE_STEPS_H

#include "analyze/summary.h"

/* One step record. */
struct sw__step {
    uint64_t number;
    uint64_t begin_ns, end_ns;
    uint32_t epoch; /* UINT32_MAX: unknown */
    bool complete, warmup;
    bool compiles; /* something was compiled in it */
};

struct sw__step_list {
    struct sw__step *steps; /* in order of their end */
    size_t count, room;
    const sw_trace *trace;
    const sw_trace_lane *lane;
    size_t lane_index, trace_index;
    int unit;
    /* Validation and checkpoints (enum sw__aside_kind) within steps: [1] of the warm-up, [0] of the others. */
    uint64_t aside_ns[2][2];
};

/* Marks the warm-up. `scratch` has room for all steps. */
void sw__find_warmup(struct sw__step_list *list, uint64_t *scratch);

/* The parts of the run's duration, from the steps (`list->count` may be 0). */
int sw__summary_timeline(sw_summary *summary, const struct sw__step_list *list);
/* The epochs. `first_wait` gives, by position, the data_wait of each step, or is NULL. */
int sw__summary_epochs(sw_summary *summary, const struct sw__step_list *list,
                       const uint64_t *waits);

#endif
