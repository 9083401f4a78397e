/* Rounds of the sampler: what its thread does over and over, or the main thread for it. */
#ifndef STEPWATCH_EXT_SAMPLER_ROUND_H
#define STEPWATCH_EXT_SAMPLER_ROUND_H

#include "sampler.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((uint64_t)1000000000)
#define STATE_BYTES 1024u /* no thread state is larger */

/* What is looked at, and where that goes. */
typedef struct sampler_subject {
    uint64_t interpreter;
    uint64_t main; /* pthread_t of the process's first thread, 0 unknown */
    sampler_tree *tree;
    tree_totals *totals;
} sampler_subject;

/* What one run of the thread works with. */
typedef struct sampler_work sampler_work;

/* NULL: no memory. `*why` is what is not as good as it could be, or NULL. */
sampler_work *round_new(const sampler_subject *subject, const char **why);
void round_free(sampler_work *work);
/* Before the first round, on the thread that makes them. */
void round_begin(sampler_work *work);
/* A look at each thread. The tree's lock is held. */
void round_look(sampler_work *work);
enum core_read_mode round_reader(const sampler_work *work);

static inline int32_t own_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

#endif
