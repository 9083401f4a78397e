/* What rules look at: the steps that count, one by one, and the facts beside them. */
#ifndef SW_ANALYZE_CASE_H
#define SW_ANALYZE_CASE_H

#include <stepwatch/analyze.h>

/* Fewer steps than this show nothing. */
#define SW__CASE_LEAST 12

/* Invariants: every step in `step` is complete and outside the warm-up; `count` may be smaller than what the summary
 * counted, where records were given up. `looked` are those of them that were looked at in full: of the others only the phases of
 * SW_PHASES_ALWAYS are known, and `other` has the rest. `base_ns` is what speed is measured by: the time of all steps outside the warm-up,
 * of validation and checkpoints, and of what else lies between steps. */
struct sw__case {
    const sw_summary *summary;
    const sw_summary_steps *steps;
    sw_summary_step *step;
    size_t count;
    sw_summary_step *looked; /* `step` itself, where none was watched in brief */
    size_t looked_count;
    uint64_t
        inside; /* phases (bits) that lie in data_wait of steps that were watched in brief */
    double mean_ns; /* of `step` */
    uint64_t base_ns;
    uint64_t warmup_ns;                    /* of the steps that do not count */
    uint64_t validation_ns, checkpoint_ns; /* in all, within steps and between them */
    double cores;                          /* usable; NaN: unknown */
    const sw_training *training;
    const sw_training_loader *loader; /* that feeds the steps; NULL: none */
    double wait_share;                /* NaN: not measured */
};

/* Fills the case; the steps are freed by sw__case_end. A run without enough steps has count 0. */
int sw__case_begin(struct sw__case *it, const sw_summary *summary);
void sw__case_end(struct sw__case *it);

/* Mean over the steps with a 95 % interval that respects autocorrelation (batch means). */
struct sw__estimate {
    double mean, low, high;
    size_t count;
};
/* Of some value of each step. */
struct sw__estimate sw__case_mean(const struct sw__case *it,
                                  double (*value)(const sw_summary_step *step,
                                                  const void *context),
                                  const void *context);
/* Of the time in a set of phases (bit 1 << phase), as share of all time: ratio of sums, with its interval. Of phases that not every
 * step knows, steps that were looked at in full say which part they are of what is left beside the others. */
struct sw__estimate sw__case_share(const struct sw__case *it, uint64_t phases);
/* Mean ns a step in a set of phases. */
struct sw__estimate sw__case_phases(const struct sw__case *it, uint64_t phases);

/* The steps in which all of these phases are known: all of them, or those that were looked at in full. */
const sw_summary_step *sw__case_steps(const struct sw__case *it, uint64_t phases,
                                      size_t *count);

#define SW__PHASE_BIT(phase) ((uint64_t)1 << (phase))

#endif
