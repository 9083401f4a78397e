/* Chunks: where they come from, and what becomes of them when they are full.
 *
 * Threads take empty chunks and seal full ones without locks. One servant at a time (the helper thread, or
 * a writer that found nothing free) decides by policy what is written to the home file, what is kept in
 * memory and what is given up for newer events, and counts every record it gives up. */
#ifndef SW_STORE_POOL_H
#define SW_STORE_POOL_H

#include "store/home.h"
#include "store/hot.h"
#include "store/mirror.h"
#include <pthread.h>
#include <stdbool.h>

enum sw__pool_policy { SW__POOL_AUTO, SW__POOL_STREAM, SW__POOL_RING, SW__POOL_DROP };

/* A chunk of the hot file as this process sees it. */
struct sw__chunk {
    struct sw__fmt_block *block;
    struct sw__fmt_thread *owner; /* slot of the thread that wrote it */
    _Atomic uint32_t next;        /* 1 + index of the next chunk in its list */
};

/* A step's extent. */
struct sw__extent {
    uint64_t start, end;
};

/* A chunk that policy auto wrote to the home file for the sake of a slow step. */
struct sw__kept {
    uint64_t slot, first, last;
    uint32_t records;
    struct sw__fmt_thread *owner;
};

#define SW__WORST_MAX 256

struct sw__pool_config {
    enum sw__pool_policy policy;
    uint64_t max_bytes; /* 0: no cap */
    unsigned keep_first, keep_last, keep_worst;
};

struct sw__pool {
    struct sw__hot *hot;
    struct sw__home *home;
    struct sw__mirror *mirror;
    struct sw__pool_config config;
    struct sw__chunk *chunks;
    uint32_t capacity;
    _Atomic uint32_t count;
    /* Lists are stacks: tag in the upper half against reuse, 1 + index in the lower. */
    _Atomic uint64_t free_list, sealed_list;
    _Atomic uint32_t free_count;
    _Atomic uint32_t starved; /* times a thread found nothing free */
    _Atomic bool attended;    /* a helper thread serves; otherwise writers do */
    _Atomic bool
        full; /* policy drop: no more events, or there would be a hole among them */
    uint32_t target;      /* free chunks the servant aims at */
    pthread_mutex_t lock; /* never held during a write; what follows: */
    uint32_t *recent;     /* indices of full chunks, oldest first */
    uint32_t recent_count;
    uint64_t collected, collected_before; /* full chunks so far, and at the last round */
    uint32_t *steps_full;                 /* the same for STEPS chunks */
    uint32_t steps_full_count;
    uint64_t first_bytes;  /* written for the first steps */
    uint64_t wanted_bytes; /* written because it was asked for */
    uint64_t worst_bytes;  /* written for the slowest ones */
    uint64_t first_end;    /* ticks at which the first steps ended; UINT64_MAX: not yet */
    struct sw__extent worst[SW__WORST_MAX];
    unsigned worst_count;
    bool
        worst_changed; /* what was kept for a step that is not among them any more may go */
    pthread_mutex_t
        serve_lock; /* of the servant: the home file, its copies, and what follows */
    struct sw__kept *kept;
    size_t kept_count, kept_capacity;
    uint64_t *step_slots; /* home slots of STEPS chunks */
    uint32_t *step_records;
    size_t step_count, step_capacity;
    /* Steps: written by the threads that run them. */
    _Atomic uint64_t steps_seen;
    _Atomic uint64_t *last_starts; /* ring of keep_last: when the last steps began */
    _Atomic uint64_t least_worst;  /* ticks a step must exceed to be among the slowest */
};

int sw__pool_init(struct sw__pool *pool, struct sw__hot *hot, struct sw__home *home,
                  struct sw__mirror *mirror, const struct sw__pool_config *config);
void sw__pool_free(struct sw__pool *pool);

/* An empty chunk for `owner`, its header ready but for sequence; UINT32_MAX when there is none. No lock is waited
 * for and no system call made unless nothing was free. `*low` becomes true when the servant should be woken. */
uint32_t sw__pool_take(struct sw__pool *pool, enum sw__fmt_kind kind,
                       struct sw__fmt_thread *owner, uint64_t sequence, uint32_t tid,
                       bool *low);
/* Hands a full chunk, or that of an ended thread, to the servant. */
void sw__pool_seal(struct sw__pool *pool, uint32_t chunk, uint32_t records,
                   uint64_t last_ticks);
/* A step ended (policy auto). */
void sw__pool_step(struct sw__pool *pool, uint64_t number, uint64_t start, uint64_t end);
/* The servant's work: sealed chunks by policy, then free ones up to the target. Returns whether any
 * chunk was filled since the last time. */
bool sw__pool_serve(struct sw__pool *pool);
/* At the end: writes everything that is kept, and the chunks in `open` (still being written by their
 * threads), to the home file. */
void sw__pool_finish(struct sw__pool *pool, const uint32_t *open, size_t open_count);

/* Between these two a chunk is given up: its records are counted, its block is still to be made free. */
void sw__redo_begin(struct sw__fmt_redo *redo, uint64_t place,
                    struct sw__fmt_thread *owner, uint32_t records);
void sw__redo_end(struct sw__fmt_redo *redo);

/* Between pool.c and retain.c. What is to be done with a full chunk. */
enum sw__fate { SW__FATE_STAY, SW__FATE_WRITE, SW__FATE_WRITE_WORST, SW__FATE_DISCARD };
/* Policy auto, lock held: the fate of a chunk; `tight` when room is needed now. */
enum sw__fate sw__retain_fate(const struct sw__pool *pool, uint32_t chunk, bool tight);
/* Gives up what was kept for steps that are no longer among the slowest. */
void sw__retain_prune(struct sw__pool *pool);
/* Remembers that a chunk was written for the sake of a slow step. */
void sw__retain_remember(struct sw__pool *pool, uint32_t chunk, uint64_t slot);
/* Remembers a written STEPS chunk, and gives an older one up when there are too many. */
bool sw__retain_steps(struct sw__pool *pool, uint64_t slot, uint32_t records);

#endif
