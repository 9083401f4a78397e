/* Batches of a loader, one by one: what the worker that made one and the loop that took it wrote, put together. */
#ifndef SW_ANALYZE_BATCHES_H
#define SW_ANALYZE_BATCHES_H

#include <stepwatch/analyze.h>

/* Invariant: make_ns is SW_UNKNOWN, or the time from the beginning to the end of making it. */
struct sw__batch {
    uint64_t id;
    uint64_t step;    /* that used it; SW_UNKNOWN */
    uint64_t make_ns; /* SW_UNKNOWN */
    uint64_t cpu_ns;  /* of making it; SW_UNKNOWN */
    uint64_t bytes;   /* SW_UNKNOWN */
    uint64_t
        unpack_ns; /* from its bytes being there to the loop having it; SW_UNKNOWN, also where a thread of its own pins it */
    uint32_t worker; /* SW_NO_WORKER */
    uint32_t depth;  /* others that had come before their turn */
    bool taken;      /* the loop had it */
};

/* At most so many are kept, the newest. */
#define SW__BATCHES_MOST 100000

/* Reads the batches of a loader that the process of the steps took, by id. Records that were given up are missing. The caller
 * frees `*out` with sw__free; NULL and 0 when there are none. 0 or SW_ENOMEM. */
int sw__batches_read(const sw_summary *summary, const sw_training_loader *loader,
                     struct sw__batch **out, size_t *count);
/* The batch that a step used; NULL: not recorded. `list` must be sorted by sw__batches_by_step. */
void sw__batches_by_step(struct sw__batch *list, size_t count);
const struct sw__batch *sw__batches_of_step(const struct sw__batch *list, size_t count,
                                            uint64_t step);

#endif
