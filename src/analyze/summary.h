/* The parts of a summary while it is being built. Everything in it lives in one arena. */
#ifndef SW_ANALYZE_SUMMARY_H
#define SW_ANALYZE_SUMMARY_H

#include <stepwatch/analyze.h>

#include "base/memory.h"

struct sw__row_list {
    sw_summary_section *rows;
    size_t count;
};

struct sw__framework {
    const char *name, *version;
};

struct sw__note {
    struct sw__note *next;
    const char *text;
};

/* Phases of the steps that count, where some were watched in brief. */
struct sw__brief_phases {
    uint64_t measured[SW_PHASE_COUNT]; /* in all of them, as far as that is measured */
    uint64_t looked[SW_PHASE_COUNT];   /* in those that were looked at in full */
};

/* What the process read and wrote in steps; the list is on the heap. */
struct sw__io_steps {
    sw_summary_io_step *list;
    size_t count, room;
    sw_summary_io_stats stats[4]; /* by enum sw_summary_io_field */
};

struct sw_summary {
    sw__arena *arena;
    const sw_run *source;
    size_t traces;

    sw_summary_run run;
    uint64_t origin_ns; /* CLOCK_MONOTONIC at the beginning of the run */
    struct sw__framework *frameworks;
    size_t framework_count;
    sw_summary_process *processes; /* as many as traces */

    struct sw__row_list each, families, flat;
    sw_summary_counter *counters;
    size_t counter_count;

    bool has_steps;
    sw_summary_steps steps;
    struct sw__brief_phases brief;
    sw_summary_step_thread *step_threads;
    size_t step_thread_count;
    size_t step_trace; /* where the step thread is */
    const sw_trace_lane *step_lane;
    size_t warmup_end; /* complete steps before this place are warm-up */
    struct sw__io_steps io_steps;
    sw_summary_epoch *epochs;
    size_t epoch_count;
    uint64_t validated_before_ns; /* of the part validation: before the first step */
    sw_summary_part *parts;
    size_t part_count;
    sw_summary_overhead overhead;
    sw_stacks *stacks;       /* NULL: no sampler ran */
    sw_functions *functions; /* NULL: none were counted, here and below */
    sw_lines *lines;
    sw_monitor **monitors; /* as many as monitor_count */
    size_t monitor_count;
    sw_training *training;
    const sw_training_loader *main_loader;
    sw_gpus *gpus;
    sw_io *io; /* NULL: calls on files were not watched */
    sw_memory *memory;

    struct sw__note *first_note, *last_note;
};

/* Each fills its part. 0 or SW_ENOMEM; a part that cannot be read is left empty, with a note. */
int sw__summary_run(sw_summary *summary);
/* Whether a process that was killed is one that its parent did away with, as pools and loaders do with workers they no longer
 * need: the program ended well, and it had no steps. */
bool sw__summary_dismissed(const sw_summary *summary, size_t index);
int sw__summary_sections(sw_summary *summary);
int sw__summary_steps(sw_summary *summary);
int sw__summary_step_io(sw_summary *summary); /* part of it */
int sw__summary_overhead(sw_summary *summary);
int sw__summary_losses(sw_summary *summary); /* the notes */
int sw__summary_samples(sw_summary *summary);
int sw__summary_profiles(sw_summary *summary);
int sw__summary_training(sw_summary *summary);
int sw__summary_monitors(sw_summary *summary);
int sw__summary_gpus(sw_summary *summary);

void sw__gpus_free(sw_gpus *gpus); /* NULL is fine */
int sw__summary_io(sw_summary *summary);
int sw__summary_memory(sw_summary *summary);

/* Zeroed memory that lives as long as the summary. */
void *sw__summary_take(sw_summary *summary, size_t count, size_t size);
const char *sw__summary_copy(sw_summary *summary, const char *text, size_t length);
const char *sw__summary_format(sw_summary *summary, const char *format, ...)
    SW_PRINTF(2, 3);
int sw__summary_note(sw_summary *summary, const char *format, ...) SW_PRINTF(2, 3);
const sw_trace *sw__summary_trace(const sw_summary *summary, size_t index);

/* Appends an argument to a command line so that a shell would read it back. The new length, at most `size`; no NUL. */
size_t sw__command_append(char *out, size_t used, size_t size, const char *argument);

/* Sums of numbers from files nobody vouches for stop at the largest value instead of wrapping. */
static inline uint64_t sw__add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
static inline uint64_t sw__sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* Name of a thread and of a domain, never NULL. */
const char *sw__thread_name(const sw_trace *trace, uint32_t thread);
const char *sw__domain_name(const sw_trace *trace, uint32_t domain);

#endif
