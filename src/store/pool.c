/* Lists of chunks, and the servant's round. */
#include "store/pool.h"
#include "base/clock_read.h"
#include "base/compiler.h"
#include "base/memory.h"
#include <sched.h>
#include <string.h>
#include <time.h>

#define SW__TARGET_FIRST 8
#define SW__TARGET_MOST 256
#define SW__NONE UINT32_MAX
#define SW__SPINS 200 /* some 100 µs */

int sw__pool_init(struct sw__pool *pool, struct sw__hot *hot, struct sw__home *home,
                  struct sw__mirror *mirror, const struct sw__pool_config *config)
{
    memset(pool, 0, sizeof(*pool));
    pool->hot = hot;
    pool->home = home;
    pool->mirror = mirror;
    pool->config = *config;
    if (pool->config.keep_worst > SW__WORST_MAX) {
        pool->config.keep_worst = SW__WORST_MAX;
    }
    pool->capacity = (uint32_t)(hot->limit / SW__FMT_CHUNK + 1);
    pool->chunks = sw__alloc_zero(pool->capacity, sizeof(*pool->chunks));
    pool->recent = sw__alloc_zero(pool->capacity, sizeof(*pool->recent));
    pool->steps_full = sw__alloc_zero(pool->capacity, sizeof(*pool->steps_full));
    pool->last_starts =
        sw__alloc_zero(config->keep_last + 1u, sizeof(*pool->last_starts));
    pool->target = SW__TARGET_FIRST;
    pool->first_end = UINT64_MAX;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_mutex_init(&pool->serve_lock, NULL);
    if (!pool->chunks || !pool->recent || !pool->steps_full || !pool->last_starts) {
        sw__pool_free(pool);
        return SW_ENOMEM;
    }
    return 0;
}

void sw__pool_free(struct sw__pool *pool)
{
    sw__free(pool->chunks);
    sw__free(pool->recent);
    sw__free(pool->steps_full);
    sw__free(pool->last_starts);
    sw__free(pool->kept);
    sw__free(pool->step_slots);
    sw__free(pool->step_records);
    memset(pool, 0, sizeof(*pool));
}

static void sw__list_push(struct sw__pool *pool, _Atomic uint64_t *list, uint32_t chunk)
{
    uint64_t old = atomic_load_explicit(list, memory_order_relaxed);
    uint64_t fresh;
    do {
        atomic_store_explicit(&pool->chunks[chunk].next, (uint32_t)old,
                              memory_order_relaxed);
        fresh = ((old >> 32) + 1) << 32 | (chunk + 1u);
    } while (!atomic_compare_exchange_weak_explicit(
        list, &old, fresh, memory_order_acq_rel, memory_order_relaxed));
}

static uint32_t sw__list_pop(struct sw__pool *pool, _Atomic uint64_t *list)
{
    uint64_t old = atomic_load_explicit(list, memory_order_acquire);
    uint64_t fresh;
    do {
        if ((uint32_t)old == 0) {
            return SW__NONE;
        }
        uint32_t next = atomic_load_explicit(&pool->chunks[(uint32_t)old - 1].next,
                                             memory_order_relaxed);
        fresh = ((old >> 32) + 1) << 32 | next;
    } while (!atomic_compare_exchange_weak_explicit(
        list, &old, fresh, memory_order_acq_rel, memory_order_acquire));
    return (uint32_t)old - 1;
}

static uint32_t sw__pool_take_free(struct sw__pool *pool)
{
    uint32_t chunk = sw__list_pop(pool, &pool->free_list);
    if (chunk != SW__NONE) {
        atomic_fetch_sub_explicit(&pool->free_count, 1, memory_order_relaxed);
    }
    return chunk;
}

/* Gives a new block of the hot file a number. */
static uint32_t sw__pool_adopt(struct sw__pool *pool, struct sw__fmt_block *block)
{
    uint32_t chunk = atomic_fetch_add_explicit(&pool->count, 1, memory_order_relaxed);
    if (chunk >= pool->capacity) {
        atomic_fetch_sub_explicit(&pool->count, 1, memory_order_relaxed);
        return SW__NONE;
    }
    pool->chunks[chunk].block = block;
    return chunk;
}

/* A chunk that did not exist before, in no list yet. */
static uint32_t sw__pool_grow(struct sw__pool *pool, bool *busy)
{
    struct sw__fmt_block *block =
        sw__hot_try_take(pool->hot, SW__BLOCK_FREE, SW__FMT_CHUNK, busy);
    return block ? sw__pool_adopt(pool, block) : SW__NONE;
}

static void sw__pool_discard(struct sw__pool *pool, uint32_t chunk);
static void sw__pool_collect(struct sw__pool *pool);

static void sw__pool_remove_recent(struct sw__pool *pool, uint32_t at)
{
    pool->recent_count--;
    memmove(pool->recent + at, pool->recent + at + 1,
            (pool->recent_count - at) * sizeof(*pool->recent));
}

/* Frees the oldest chunk that nobody wants to keep, without writing anything. */
static void sw__pool_make_room(struct sw__pool *pool)
{
    sw__pool_collect(pool);
    for (uint32_t i = 0; i < pool->recent_count; i++) {
        uint32_t chunk = pool->recent[i];
        if (pool->config.policy == SW__POOL_RING ||
            (pool->config.policy == SW__POOL_AUTO &&
             sw__retain_fate(pool, chunk, true) == SW__FATE_DISCARD)) {
            sw__pool_remove_recent(pool, i);
            sw__pool_discard(pool, chunk);
            return;
        }
    }
}

/* Waits for whoever holds a lock: a moment at first, then longer. */
static void sw__pool_pause(unsigned attempt)
{
    if (attempt > SW__SPINS) {
        struct timespec nap = {.tv_nsec = 50000};
        nanosleep(&nap, NULL);
        return;
    }
    for (unsigned spin = 0; spin < 16; spin++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
}

/* Nothing was free: makes or frees a chunk here and now rather than lose events. Only a lack of room loses them; for
 * a lock, which is never held during a write, the thread waits some milliseconds at most. */
static SW__COLD uint32_t sw__pool_take_hard(struct sw__pool *pool)
{
    atomic_fetch_add_explicit(&pool->starved, 1, memory_order_relaxed);
    for (unsigned attempt = 0; attempt < SW__SPINS + 200; attempt++) {
        bool busy = false;
        uint32_t chunk = sw__pool_grow(pool, &busy);
        if (chunk == SW__NONE && !busy) {
            if (pthread_mutex_trylock(&pool->lock) == 0) {
                sw__pool_make_room(pool);
                pthread_mutex_unlock(&pool->lock);
            } else {
                busy = true;
            }
        }
        if (chunk == SW__NONE) {
            chunk = sw__pool_take_free(pool);
        }
        if (chunk == SW__NONE && !busy &&
            !atomic_load_explicit(&pool->attended, memory_order_relaxed)) {
            (void)sw__pool_serve(pool);
            chunk = sw__pool_take_free(pool);
        }
        if (chunk != SW__NONE || (!busy && attempt > 16)) {
            return chunk;
        }
        sw__pool_pause(attempt);
    }
    return SW__NONE;
}

/* Step records are kept even where there is no room for events. */
static SW__COLD uint32_t sw__pool_take_reserve(struct sw__pool *pool)
{
    struct sw__fmt_block *block = sw__hot_take(pool->hot, SW__BLOCK_FREE, SW__FMT_CHUNK);
    return block ? sw__pool_adopt(pool, block) : SW__NONE;
}

/* One bracketed reading: enough for a chunk, of which there are many. */
static void sw__pool_snapshot(sw_clock_snapshot *out)
{
    struct timespec mono, real;
    uint64_t before = sw__clock_now();
    clock_gettime(CLOCK_MONOTONIC, &mono);
    uint64_t after = sw__clock_now();
    clock_gettime(CLOCK_REALTIME, &real);
    out->ticks = before + (after - before) / 2;
    out->error_ticks = after - before;
    out->mono_ns = (uint64_t)mono.tv_sec * 1000000000u + (uint64_t)mono.tv_nsec;
    out->real_ns = (uint64_t)real.tv_sec * 1000000000u + (uint64_t)real.tv_nsec;
}

uint32_t sw__pool_take(struct sw__pool *pool, enum sw__fmt_kind kind,
                       struct sw__fmt_thread *owner, uint64_t sequence, uint32_t tid,
                       bool *low)
{
    uint32_t chunk = SW__NONE;
    if (SW__LIKELY(kind == SW__BLOCK_STEPS ||
                   !atomic_load_explicit(&pool->full, memory_order_relaxed))) {
        chunk = sw__pool_take_free(pool);
        if (SW__UNLIKELY(chunk == SW__NONE)) {
            chunk = sw__pool_take_hard(pool);
        }
    }
    if (SW__UNLIKELY(chunk == SW__NONE && pool->config.policy == SW__POOL_DROP)) {
        atomic_store_explicit(&pool->full, true, memory_order_relaxed);
    }
    if (SW__UNLIKELY(chunk == SW__NONE && kind == SW__BLOCK_STEPS)) {
        chunk = sw__pool_take_reserve(pool);
    }
    *low = atomic_load_explicit(&pool->free_count, memory_order_relaxed) < 4;
    if (chunk == SW__NONE) {
        return SW__NONE;
    }
    struct sw__fmt_block *block = pool->chunks[chunk].block;
    pool->chunks[chunk].owner = owner;
    atomic_store_explicit(&block->used, 0, memory_order_relaxed);
    block->flags = 0;
    block->sequence = sequence;
    block->thread = owner->index;
    block->domain = 0;
    block->revision = 0;
    block->last_ticks = 0;
    block->records = 0;
    block->tid = tid;
    block->dropped = atomic_load_explicit(&owner->dropped, memory_order_relaxed);
    sw__pool_snapshot(&block->snapshot);
    block->first_ticks = block->snapshot.ticks;
    /* Until now the block was free in the eyes of a reader; the header is whole before it is not. */
    __atomic_store_n(&block->kind, (uint16_t)kind, __ATOMIC_RELEASE);
    return chunk;
}

void sw__pool_seal(struct sw__pool *pool, uint32_t chunk, uint32_t records,
                   uint64_t last_ticks)
{
    struct sw__chunk *entry = &pool->chunks[chunk];
    entry->block->last_ticks = last_ticks;
    entry->block->records = records;
    entry->block->flags |= SW__BLOCK_SEALED;
    if (entry->block->kind == SW__BLOCK_EVENTS) {
        atomic_fetch_add_explicit(&entry->owner->records, records, memory_order_relaxed);
    }
    sw__list_push(pool, &pool->sealed_list, chunk);
}

/* Makes a chunk free; what it held counts no more. */
static void sw__pool_release(struct sw__pool *pool, uint32_t chunk)
{
    __atomic_store_n(&pool->chunks[chunk].block->kind, (uint16_t)SW__BLOCK_FREE,
                     __ATOMIC_RELEASE);
    sw__list_push(pool, &pool->free_list, chunk);
    atomic_fetch_add_explicit(&pool->free_count, 1, memory_order_relaxed);
}

void sw__redo_begin(struct sw__fmt_redo *redo, uint64_t place,
                    struct sw__fmt_thread *owner, uint32_t records)
{
    redo->before = atomic_load_explicit(&owner->overwritten, memory_order_relaxed);
    redo->thread = owner->index;
    redo->records = records;
    atomic_store_explicit(&redo->place, place, memory_order_release);
    atomic_fetch_add_explicit(&owner->overwritten, records, memory_order_release);
}

void sw__redo_end(struct sw__fmt_redo *redo)
{
    atomic_store_explicit(&redo->place, 0, memory_order_release);
}

/* Gives a chunk up for newer events. lock held: there is one note of what is being given up. */
static void sw__pool_discard(struct sw__pool *pool, uint32_t chunk)
{
    struct sw__chunk *entry = &pool->chunks[chunk];
    struct sw__fmt_redo *redo = &sw__hot_super(pool->hot)->redo[SW__REDO_HOT];
    sw__redo_begin(redo, entry->block->address, entry->owner, entry->block->records);
    __atomic_store_n(&entry->block->kind, (uint16_t)SW__BLOCK_FREE, __ATOMIC_RELEASE);
    sw__redo_end(redo);
    sw__pool_release(pool, chunk);
}

static void sw__pool_count(struct sw__pool *pool, enum sw__fmt_total which,
                           uint64_t amount)
{
    atomic_fetch_add_explicit(&sw__hot_super(pool->hot)->total[which], amount,
                              memory_order_relaxed);
}

/* Gives a chunk up because it could not be written. */
static void sw__pool_lose(struct sw__pool *pool, uint32_t chunk)
{
    struct sw__chunk *entry = &pool->chunks[chunk];
    if (entry->block->kind == SW__BLOCK_STEPS) {
        sw__pool_count(pool, SW__TOTAL_STEPS_DROPPED, entry->block->records);
    } else {
        /* The thread's own count is the thread's alone. */
        sw__pool_count(pool, SW__TOTAL_DROPPED, entry->block->records);
    }
    sw__pool_release(pool, chunk);
}

/* Writes a sealed chunk to the home file, the names it may use before it. */
static bool sw__pool_write(struct sw__pool *pool, uint32_t chunk, uint64_t *slot,
                           bool shrink)
{
    struct sw__fmt_block *block = pool->chunks[chunk].block;
    if (!sw__home_check(pool->home)) {
        return false;
    }
    (void)sw__mirror_copy(pool->mirror, true);
    uint32_t used = atomic_load_explicit(&block->used, memory_order_acquire);
    return sw__home_put(pool->home, block, block + 1, used, slot, shrink) == 0;
}

/* Moves sealed chunks to the end of `recent`, in the order in which they were sealed. lock held. */
static void sw__pool_collect(struct sw__pool *pool)
{
    uint64_t old = atomic_load_explicit(&pool->sealed_list, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(
        &pool->sealed_list, &old, ((old >> 32) + 1) << 32, memory_order_acq_rel,
        memory_order_relaxed)) {
    }
    /* Stacks give the newest first: turn the list round. */
    uint32_t forward = 0;
    for (uint32_t at = (uint32_t)old; at;) {
        struct sw__chunk *entry = &pool->chunks[at - 1];
        uint32_t next = atomic_load_explicit(&entry->next, memory_order_relaxed);
        atomic_store_explicit(&entry->next, forward, memory_order_relaxed);
        forward = at;
        at = next;
    }
    while (forward) {
        uint32_t chunk = forward - 1;
        pool->collected++;
        forward = atomic_load_explicit(&pool->chunks[chunk].next, memory_order_relaxed);
        if (pool->chunks[chunk].block->kind == SW__BLOCK_STEPS) {
            pool->steps_full[pool->steps_full_count++] = chunk;
        } else {
            pool->recent[pool->recent_count++] = chunk;
        }
    }
}

/* Free chunks up to the target, as long as the hot file may grow; in a ring the oldest give way. */
static void sw__pool_refill(struct sw__pool *pool)
{
    uint32_t starved = atomic_exchange_explicit(&pool->starved, 0, memory_order_relaxed);
    uint32_t most = pool->capacity / 4 + 1;
    if (starved && pool->target < SW__TARGET_MOST && pool->target * 2 <= most) {
        pool->target *= 2;
    }
    while (atomic_load_explicit(&pool->free_count, memory_order_relaxed) < pool->target) {
        bool busy = false;
        uint32_t chunk = sw__pool_grow(pool, &busy);
        if (chunk == SW__NONE) {
            break;
        }
        sw__pool_release(pool, chunk);
    }
    if (pool->config.policy == SW__POOL_RING || pool->config.policy == SW__POOL_AUTO) {
        pthread_mutex_lock(&pool->lock);
        uint32_t spare = pool->target < most ? pool->target : most;
        while (pool->recent_count > spare &&
               atomic_load_explicit(&pool->free_count, memory_order_relaxed) < spare &&
               !sw__hot_has_room(pool->hot, SW__FMT_CHUNK)) {
            uint32_t before = pool->recent_count;
            sw__pool_make_room(pool);
            if (pool->recent_count >= before) {
                break;
            }
        }
        pthread_mutex_unlock(&pool->lock);
    }
}

/* The next full chunk that has to go somewhere, taken out of its list; UINT32_MAX: none. */
static uint32_t sw__pool_next(struct sw__pool *pool, bool everything, enum sw__fate *fate)
{
    uint32_t chunk = SW__NONE;
    pthread_mutex_lock(&pool->lock);
    sw__pool_collect(pool);
    *fate = SW__FATE_WRITE;
    if (pool->steps_full_count) {
        chunk = pool->steps_full[0];
        pool->steps_full_count--;
        memmove(pool->steps_full, pool->steps_full + 1,
                pool->steps_full_count * sizeof(*pool->steps_full));
    } else if (pool->recent_count) {
        if (pool->config.policy == SW__POOL_AUTO) {
            *fate = sw__retain_fate(pool, pool->recent[0], false);
        } else if (pool->config.policy != SW__POOL_STREAM) {
            *fate = SW__FATE_STAY;
        }
        if (everything && *fate == SW__FATE_STAY) {
            *fate = SW__FATE_WRITE;
        }
        if (*fate != SW__FATE_STAY) {
            chunk = pool->recent[0];
            sw__pool_remove_recent(pool, 0);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    return chunk;
}

/* Does what has to be done with a chunk. serve_lock held. */
static void sw__pool_settle(struct sw__pool *pool, uint32_t chunk, enum sw__fate fate)
{
    struct sw__fmt_block *block = pool->chunks[chunk].block;
    bool steps = block->kind == SW__BLOCK_STEPS;
    /* Only what may be given up later gets a slot of full size, so that others fit into it. */
    bool shrink = !steps && fate != SW__FATE_WRITE_WORST;
    uint64_t slot = 0;
    if (fate == SW__FATE_DISCARD) {
        pthread_mutex_lock(&pool->lock);
        sw__pool_discard(pool, chunk);
        pthread_mutex_unlock(&pool->lock);
        return;
    }
    if (!sw__pool_write(pool, chunk, &slot, shrink)) {
        sw__pool_lose(pool, chunk);
        return;
    }
    if (steps) {
        (void)sw__retain_steps(pool, slot, block->records);
    } else if (fate == SW__FATE_WRITE_WORST) {
        pthread_mutex_lock(&pool->lock);
        pool->worst_bytes += SW__FMT_CHUNK;
        pthread_mutex_unlock(&pool->lock);
        sw__retain_remember(pool, chunk, slot);
    } else if (pool->config.policy == SW__POOL_AUTO) {
        pthread_mutex_lock(&pool->lock);
        uint64_t *bytes =
            block->flags & SW__BLOCK_WANTED ? &pool->wanted_bytes : &pool->first_bytes;
        *bytes +=
            sizeof(*block) + atomic_load_explicit(&block->used, memory_order_relaxed);
        pthread_mutex_unlock(&pool->lock);
    }
    sw__pool_release(pool, chunk);
}

bool sw__pool_serve(struct sw__pool *pool)
{
    enum sw__fate fate;
    pthread_mutex_lock(&pool->serve_lock);
    /* Room first: allocating memory is several times faster than writing to a file. */
    sw__pool_refill(pool);
    sw__retain_prune(pool);
    for (uint32_t chunk; (chunk = sw__pool_next(pool, false, &fate)) != SW__NONE;) {
        sw__pool_settle(pool, chunk, fate);
        sw__pool_refill(pool);
    }
    pthread_mutex_lock(&pool->lock);
    bool any = pool->collected != pool->collected_before;
    pool->collected_before = pool->collected;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->serve_lock);
    return any;
}

void sw__pool_finish(struct sw__pool *pool, const uint32_t *open, size_t open_count)
{
    enum sw__fate fate;
    pthread_mutex_lock(&pool->serve_lock);
    sw__retain_prune(pool);
    for (uint32_t chunk; (chunk = sw__pool_next(pool, true, &fate)) != SW__NONE;) {
        sw__pool_settle(pool, chunk, fate);
    }
    for (size_t i = 0; i < open_count; i++) {
        struct sw__fmt_block *block = pool->chunks[open[i]].block;
        uint32_t used = atomic_load_explicit(&block->used, memory_order_acquire);
        uint64_t slot = 0;
        if (used && sw__home_check(pool->home) &&
            sw__home_put(pool->home, block, block + 1, used, &slot, true)) {
            /* Records of an open chunk are not all one unit long; count what is there. */
            const uint8_t *at = (const uint8_t *)(block + 1);
            uint32_t records = 0;
            for (uint32_t offset = 0; offset < used; records++) {
                uint8_t units = at[offset + 1];
                offset += SW_RECORD_UNIT * (units ? units : 1u);
            }
            if (block->kind == SW__BLOCK_EVENTS) {
                sw__pool_count(pool, SW__TOTAL_DROPPED, records);
            } else {
                sw__pool_count(pool, SW__TOTAL_STEPS_DROPPED, records);
            }
            /* Counted as lost, it is not to be found in a hot file that stays. */
            __atomic_store_n(&block->kind, (uint16_t)SW__BLOCK_FREE, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&pool->serve_lock);
}
