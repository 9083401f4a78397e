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
    bool brief;    /* it was watched in brief */
};

struct sw__step_list {
    struct sw__step *steps; /* in order of their end */
    size_t count, room;
    const sw_trace *trace;
    const sw_trace_lane *lane;
    size_t lane_index, trace_index;
    int unit;
    uint64_t skipped; /* records that are no steps */
    /* Validation and checkpoints (enum sw__aside_kind) within steps: [1] of the warm-up, [0] of the others. */
    uint64_t aside_ns[2][2];
};

/* Reads the step records of a lane, in order of their end, but for those that turned out to be no steps: of loops that were
 * taken for the training loop until another was found, or until somebody who knows better gave the steps. */
struct sw__step_reader {
    sw_cursor *cursor; /* NULL: they cannot be read */
    const sw_trace_lane *lane;
    bool no_loops;    /* those of loops are none */
    uint64_t to_skip; /* of the first ones of loops */
    uint64_t skipped, skipped_ns, skipped_incomplete;
};
/* The caller closes it, whether or not records can be read. */
void sw__steps_open(struct sw__step_reader *reader, const sw_trace *trace,
                    const sw_trace_lane *lane);
/* NULL past the last. */
const sw_record_step *sw__steps_next(struct sw__step_reader *reader, sw_event *event);
void sw__steps_close(struct sw__step_reader *reader);
/* Phases of a step in ns that sum to its duration exactly. Slots beyond the known phases count as
 * `other`. */
void sw__step_phases(const sw_record_step *record, uint64_t ns,
                     uint64_t out[SW_PHASE_COUNT]);
/* Complete steps of a lane that were watched in brief, and their time, as far as records are there: where some were given up, they
 * stand for the others. */
void sw__steps_brief(const sw_trace *trace, const sw_trace_lane *lane, uint64_t *count,
                     uint64_t *ns);
/* Of a total over all steps, what falls to some of them, by the records that are there: `part` of `present`. Never more than the total,
 * so that it can be taken from it. 0 where there are none. */
uint64_t sw__steps_part(uint64_t all, uint64_t part, uint64_t present);
/* Phases that lie in asking a loader without workers, a bit each. */
#define SW__PHASES_INSIDE                                                                \
    (1u << SW_PHASE_PREPROCESS | 1u << SW_PHASE_AUGMENT | 1u << SW_PHASE_COLLATE)
/* Those of them that steps that were watched in brief have in data_wait: all where steps that were looked at make batches, else 0. */
unsigned sw__phases_inside(const sw_summary *summary);
/* What it says of reading and writing; all SW_UNKNOWN where it says nothing. */
sw_step_io sw__step_io(const sw_record_step *record);

/* Marks the warm-up. `scratch` has room for all steps. The complete steps before the place that it gives are warm-up,
 * beside those that the schedule calls so. */
size_t sw__find_warmup(struct sw__step_list *list, uint64_t *scratch);

/* The parts of the run's duration, from the steps (`list->count` may be 0). */
int sw__summary_timeline(sw_summary *summary, const struct sw__step_list *list);
/* The epochs. `first_wait` gives, by position, the data_wait of each step, or is NULL. */
int sw__summary_epochs(sw_summary *summary, const struct sw__step_list *list,
                       const uint64_t *waits);

#endif
