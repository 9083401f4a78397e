/* Sampled stacks: what a sampler saw, put together, and what follows from it.
 *
 * Glossary: a *sample* is one look at one thread. It is *running* when the thread was on a CPU or wanted one, else
 * *waiting*. A sample's *stack* is the list of its frames, root first; the last one is the *leaf*. *self* counts the
 * samples whose leaf it is, *total* those that have it anywhere in the stack, each sample once however often a function
 * is in it (recursion). A *tag* says on whose behalf the sample was taken; stacks with different tags are kept apart.
 *
 * Shares are parts of the samples that a filter lets through. Their intervals are Wilson score intervals of 95 % on
 * the number of samples: they say how far chance alone may have moved the share, if samples fell independently of what
 * the program did. NaN is "not known": there was no sample.
 *
 * Strings are copied where they are given, may hold any bytes but NUL, and those given back live as long as the
 * stacks. One thread at a time. */
#ifndef STEPWATCH_STACKS_H
#define STEPWATCH_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_stacks sw_stacks;

/* A function at a line. A function is (name, file, first_line, native). */
typedef struct sw_stack_frame {
    const char *name;    /* qualified, "Trainer.fit"; NULL or "": not known */
    const char *file;    /* NULL or "": not known */
    uint32_t line;       /* 0: not known */
    uint32_t first_line; /* of the function; 0: not known */
    bool native;         /* not written in Python */
} sw_stack_frame;

/* Given back, no string is NULL; "" is not known or none. */
typedef struct sw_stack_tag {
    const char *thread;  /* its name; threads of one process with the same name are one */
    const char *section; /* innermost open section */
    int phase;           /* enum sw_phase; SW_PHASE_INHERIT: outside steps */
    uint32_t pid;        /* 0: not known */
    bool main;           /* the thread that the process began with */
} sw_stack_tag;

typedef struct sw_stack_counts {
    uint64_t running, waiting;
    uint64_t in_call; /* of both, those inside a call into native code */
} sw_stack_counts;

/* The caller frees the result with sw_stacks_free. SW_ENOMEM. */
SW_API int sw_stacks_create(sw_stacks **out);
SW_API void sw_stacks_free(sw_stacks *stacks); /* NULL is fine */
/* Time from one sample to the next, of the samples added from now on; NaN (as at first): not known. */
SW_API void sw_stacks_set_period(sw_stacks *stacks, double seconds);
/* Adds samples with one stack of `depth` frames, root first. Of more than SW_STACKS_DEPTH frames those nearest to
 * the root are kept, with "(deeper)" as the leaf. 0, SW_EINVAL (no frames) or SW_ENOMEM. */
SW_API int sw_stacks_add(sw_stacks *stacks, const sw_stack_frame *frames, size_t depth,
                         const sw_stack_tag *tag, const sw_stack_counts *counts);
#define SW_STACKS_DEPTH 4096

/* The samplers themselves. looks = kept + given_up; kept includes partial. */
typedef struct sw_stacks_totals {
    uint64_t samplers; /* 0: none ran */
    double hz;         /* asked for; NaN: not known, or not the same everywhere */
    uint64_t looks;    /* at a thread's stack */
    uint64_t kept;     /* looks that became samples */
    uint64_t partial; /* of these, with a part of the stack: the rest changed meanwhile */
    uint64_t given_up;
    double cpu_s;     /* CPU time that they used; NaN: not known */
    uint64_t damaged; /* samples in the files whose stacks could not be read */
} sw_stacks_totals;
SW_API void sw_stacks_add_totals(sw_stacks *stacks, const sw_stacks_totals *totals);
SW_API const sw_stacks_totals *sw_stacks_get_totals(const sw_stacks *stacks);

/* All samples in the traces of a run (tables CONTEXT, STACK, CODE and SAMPLER); empty, with totals.samplers 0, where
 * there are none. Those of steps that were watched in brief have the phase in which the same calls were seen in other
 * steps. Damaged rows are left out and counted. The caller frees it; it does not need the run any more. */
SW_API int sw_stacks_of_run(sw_stacks **out, const sw_run *run, sw_error_info *info);

/* Unique stacks with samples: same frames, same tag. A stack comes before those that go on from it. */
typedef struct sw_stack {
    const sw_stack_tag *tag;
    size_t depth; /* frames, at least 1 */
    uint64_t running, waiting, in_call;
    double running_s, waiting_s; /* NaN: the period is not known */
    uint32_t id;                 /* for sw_stacks_frames */
} sw_stack;
typedef struct sw_stacks_cursor {
    uint32_t next; /* 0 to begin */
} sw_stacks_cursor;
/* The next one; false past the last. */
SW_API bool sw_stacks_next(const sw_stacks *stacks, sw_stacks_cursor *cursor,
                           sw_stack *out);
/* Its frames, root first, as numbers for sw_stacks_get_frame; at most `room` of those nearest to the root. Returns how
 * many. */
SW_API size_t sw_stacks_frames(const sw_stacks *stacks, uint32_t id, uint32_t *frames,
                               size_t room);
/* Different frames, numbered from 0; strings are never NULL. NULL past the last. */
SW_API size_t sw_stacks_frame_count(const sw_stacks *stacks);
SW_API const sw_stack_frame *sw_stacks_get_frame(const sw_stacks *stacks,
                                                 uint32_t number);

/* Which samples count. All zero: all of them. */
typedef struct sw_stacks_filter {
    const char *thread;       /* only threads of this name; NULL: all */
    uint32_t pid;             /* only this process; 0: all */
    bool one_phase;           /* only `phase` */
    int phase;                /* enum sw_phase, SW_PHASE_INHERIT: outside steps */
    bool in_steps;            /* only those within steps */
    const char *section;      /* only this innermost section; NULL: all */
    bool running_only;        /* waiting samples do not count */
    bool by_thread, by_phase; /* places are kept apart by name of thread, by phase */
} sw_stacks_filter;

/* Samples that a filter lets through. `filter` may be NULL, here and below. */
SW_API sw_stack_counts sw_stacks_count(const sw_stacks *stacks,
                                       const sw_stacks_filter *filter);

/* Threads with samples, by pid and name, the one with most running samples first. */
typedef struct sw_stacks_thread {
    const char *thread;
    uint32_t pid;
    bool main;
    uint64_t running, waiting;
} sw_stacks_thread;
/* The caller frees the array with sw_stacks_release; NULL when out of memory. */
SW_API sw_stacks_thread *sw_stacks_threads(const sw_stacks *stacks, size_t *count);
SW_API void sw_stacks_release(void *array);

/* A share with its interval. */
typedef struct sw_share {
    double share, low, high;
} sw_share;
/* `part` of `whole` samples. */
SW_API sw_share sw_share_of(uint64_t part, uint64_t whole);

/* A function, or a line of one (frame.line; 0 in a list of functions), in the samples that a filter lets through.
 * Without `running_only`, shares are of running and waiting samples together. */
typedef struct sw_stacks_place {
    sw_stack_frame frame;
    const char *thread;                  /* with by_thread, else NULL */
    int phase;                           /* with by_phase, else -1 */
    uint64_t self_running, self_waiting; /* waiting ones are 0 with running_only */
    uint64_t total_running, total_waiting;
    uint64_t self_in_call;  /* running or waiting, whatever the filter says of these */
    double self_s, total_s; /* samples × period; NaN: the period is not known */
    sw_share self,
        total; /* of the samples of its thread and phase, where those are kept apart */
    double
        running_share; /* self_running / (self_running + self_waiting); NaN without samples */
} sw_stacks_place;

/* Functions, and lines (file, line, function), most self samples first, then most total. The caller frees the array
 * with sw_stacks_release; NULL when out of memory. */
SW_API sw_stacks_place *sw_stacks_functions(const sw_stacks *stacks,
                                            const sw_stacks_filter *filter,
                                            size_t *count);
SW_API sw_stacks_place *sw_stacks_lines(const sw_stacks *stacks,
                                        const sw_stacks_filter *filter, size_t *count);

#ifdef __cplusplus
}
#endif
#endif
