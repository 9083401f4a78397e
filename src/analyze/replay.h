/* What-if: the recorded steps once more, with another loader.
 *
 * A small simulation of the training thread, the worker processes and the queue between them. Work of the processor and
 * waiting are kept apart: threads share the usable cores, waiting takes as long as it takes. The order is that of torch's
 * loader: batch j belongs to worker j modulo workers, the loop takes batches in order, and each one taken lets one more be
 * asked for; an epoch begins with empty queues.
 *
 * Times are ns in doubles. Work is time on a processor of its own. */
#ifndef SW_ANALYZE_REPLAY_H
#define SW_ANALYZE_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Workers that a replay can have. */
#define SW__REPLAY_WORKERS 64

struct sw__replay_step {
    double compute_ns; /* of the training thread after it has the batch */
    double aside_ns;   /* the rest of the step that needs no core of its own */
    double make_ns;    /* of making the batch */
    double block_ns;   /* waiting while making it */
    bool first;        /* of an epoch */
};

struct sw__replay_setting {
    unsigned workers; /* 0: the training thread makes the batches itself */
    unsigned prefetch;
    double cores;  /* usable */
    double others; /* runnable threads of other programs, on average */
    /* Machines share cores among threads, or first among users, sessions and containers: then more threads get no more in all.
     * `grouped` is how much of the second holds, 0…1, and `group_cores` what the program gets then. */
    double grouped, group_cores;
    double threads;  /* that compute keeps busy */
    double hand_ns;  /* work of the training thread to take a batch from a worker */
    double send_ns;  /* work of a worker to hand it over */
    double start_ns; /* at the beginning of an epoch, until workers begin */
    double compute_scale, make_scale, block_scale; /* of the times in the steps */
};

/* Time of all steps; *wait_ns gets the time in which the training thread waits or makes batches itself (NULL is fine). */
double sw__replay(const struct sw__replay_step *steps, size_t count,
                  const struct sw__replay_setting *setting, double *wait_ns);

/* The part of a processor that each of `running` threads gets. */
double sw__replay_rate(const struct sw__replay_setting *setting, double running);

/* The settings `now` and `then` over resampled stretches of the steps: 95 % of the savings lie within low…high, as a share of the
 * time now. Deterministic. Nothing is known with few steps: then low and high are far apart. */
struct sw__replay_range {
    double mean, low, high;
    double least; /* of the time, what stays in any case */
};
struct sw__replay_range sw__replay_saves(const struct sw__replay_step *steps,
                                         size_t count,
                                         const struct sw__replay_setting *now,
                                         const struct sw__replay_setting *then);

#endif
