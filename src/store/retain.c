/* What policy auto keeps: what was asked for, and the first steps, the last ones and the slowest ones, whole. */
#include "base/memory.h"
#include "store/pool.h"
#include <string.h>

static bool sw__retain_touches(const struct sw__extent *worst, unsigned count,
                               uint64_t first, uint64_t last)
{
    for (unsigned i = 0; i < count; i++) {
        if (first <= worst[i].end && last >= worst[i].start) {
            return true;
        }
    }
    return false;
}

void sw__retain_prune(struct sw__pool *pool)
{
    struct sw__extent worst[SW__WORST_MAX];
    pthread_mutex_lock(&pool->lock);
    bool changed = pool->worst_changed;
    unsigned count = pool->worst_count;
    pool->worst_changed = false;
    memcpy(worst, pool->worst, sizeof(worst));
    pthread_mutex_unlock(&pool->lock);
    if (!changed) {
        return;
    }
    size_t kept = 0;
    for (size_t i = 0; i < pool->kept_count; i++) {
        struct sw__kept *entry = &pool->kept[i];
        if (sw__retain_touches(worst, count, entry->first, entry->last)) {
            pool->kept[kept++] = *entry;
            continue;
        }
        /* The check first: it may find that the file was cut, and the chunk lost with that. */
        if (sw__home_check(pool->home) && sw__home_knows(pool->home, entry->slot)) {
            struct sw__fmt_redo *redo = &sw__hot_super(pool->hot)->redo[SW__REDO_HOME];
            sw__redo_begin(redo, entry->slot, entry->owner, entry->records);
            (void)sw__home_release(pool->home, entry->slot);
            sw__redo_end(redo);
        } else {
            (void)sw__home_release(pool->home, entry->slot);
        }
        pthread_mutex_lock(&pool->lock);
        pool->worst_bytes -= SW__FMT_CHUNK;
        pthread_mutex_unlock(&pool->lock);
    }
    pool->kept_count = kept;
}

/* The least of the slowest steps, by its place. lock held. */
static unsigned sw__retain_least(const struct sw__pool *pool)
{
    unsigned least = 0;
    for (unsigned i = 1; i < pool->worst_count; i++) {
        if (pool->worst[i].end - pool->worst[i].start <
            pool->worst[least].end - pool->worst[least].start) {
            least = i;
        }
    }
    return least;
}

static void sw__retain_add_worst(struct sw__pool *pool, uint64_t start, uint64_t end)
{
    unsigned at = pool->worst_count;
    if (at < pool->config.keep_worst) {
        pool->worst_count++;
    } else {
        at = sw__retain_least(pool);
        if (end - start <= pool->worst[at].end - pool->worst[at].start) {
            return;
        }
        pool->worst_changed = true;
    }
    pool->worst[at] = (struct sw__extent){.start = start, .end = end};
    if (pool->worst_count == pool->config.keep_worst) {
        at = sw__retain_least(pool);
        atomic_store_explicit(&pool->least_worst,
                              pool->worst[at].end - pool->worst[at].start,
                              memory_order_relaxed);
    }
}

/* Nearly all steps leave a store and a comparison here; only those that are kept take the lock. */
void sw__pool_step(struct sw__pool *pool, uint64_t number, uint64_t start, uint64_t end)
{
    const struct sw__pool_config *config = &pool->config;
    uint64_t seen = atomic_fetch_add_explicit(&pool->steps_seen, 1, memory_order_relaxed);
    if (config->keep_last) {
        atomic_store_explicit(&pool->last_starts[seen % config->keep_last], start,
                              memory_order_relaxed);
    }
    bool first = number < config->keep_first;
    bool slow =
        !first && config->keep_worst &&
        end - start > atomic_load_explicit(&pool->least_worst, memory_order_relaxed);
    if (number + 1 != config->keep_first && !slow) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    if (number + 1 == config->keep_first) {
        pool->first_end = end;
    }
    if (slow) {
        sw__retain_add_worst(pool, start, end);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* Start of the oldest of the last steps that stay; 0 while there are fewer. */
static uint64_t sw__retain_cutoff(const struct sw__pool *pool)
{
    unsigned keep = pool->config.keep_last;
    uint64_t seen = atomic_load_explicit(&pool->steps_seen, memory_order_relaxed);
    if (seen < keep || seen == 0) {
        return 0;
    }
    return keep ? atomic_load_explicit(&pool->last_starts[seen % keep],
                                       memory_order_relaxed)
                : UINT64_MAX;
}

void sw__retain_remember(struct sw__pool *pool, uint32_t chunk, uint64_t slot)
{
    const struct sw__fmt_block *block = pool->chunks[chunk].block;
    if (pool->kept_count == pool->kept_capacity) {
        size_t capacity = pool->kept_capacity ? pool->kept_capacity * 2 : 64;
        struct sw__kept *kept = sw__realloc(pool->kept, capacity, sizeof(*kept));
        if (!kept) {
            return; /* It stays in the file for good. */
        }
        pool->kept = kept;
        pool->kept_capacity = capacity;
    }
    pool->kept[pool->kept_count++] =
        (struct sw__kept){.slot = slot,
                          .first = block->first_ticks,
                          .last = block->last_ticks,
                          .records = block->records,
                          .owner = pool->chunks[chunk].owner};
}

enum sw__fate sw__retain_fate(const struct sw__pool *pool, uint32_t chunk, bool tight)
{
    const struct sw__fmt_block *block = pool->chunks[chunk].block;
    /* Three times this, and what is kept in memory for the last steps, is what events may take of the cap. */
    const uint64_t most =
        pool->config.max_bytes ? pool->config.max_bytes / 8 : (uint64_t)64 << 20;
    if (block->flags & SW__BLOCK_WANTED && pool->wanted_bytes < most) {
        return SW__FATE_WRITE;
    }
    if (block->first_ticks <= pool->first_end && pool->config.keep_first &&
        pool->first_bytes < most) {
        return SW__FATE_WRITE;
    }
    if (block->last_ticks >= sw__retain_cutoff(pool) && !tight) {
        return SW__FATE_STAY;
    }
    return pool->worst_bytes < most &&
                   sw__retain_touches(pool->worst, pool->worst_count, block->first_ticks,
                                      block->last_ticks)
               ? SW__FATE_WRITE_WORST
               : SW__FATE_DISCARD;
}

/* Step records are always kept, in a quarter of the cap: the first half for good, then the newest. */
bool sw__retain_steps(struct sw__pool *pool, uint64_t slot, uint32_t records)
{
    const uint64_t most =
        pool->config.max_bytes ? pool->config.max_bytes / 4 / SW__FMT_CHUNK : UINT64_MAX;
    if (pool->step_count == pool->step_capacity) {
        size_t capacity = pool->step_capacity ? pool->step_capacity * 2 : 64;
        uint64_t *slots = sw__realloc(pool->step_slots, capacity, sizeof(*slots));
        pool->step_slots = slots ? slots : pool->step_slots;
        uint32_t *counts = sw__realloc(pool->step_records, capacity, sizeof(*counts));
        pool->step_records = counts ? counts : pool->step_records;
        if (!slots || !counts) {
            return false;
        }
        pool->step_capacity = capacity;
    }
    pool->step_slots[pool->step_count] = slot;
    pool->step_records[pool->step_count] = records;
    pool->step_count++;
    if (pool->step_count > most && most >= 2) {
        size_t middle = (size_t)(most / 2);
        (void)sw__home_release(pool->home, pool->step_slots[middle]);
        atomic_fetch_add_explicit(
            &sw__hot_super(pool->hot)->total[SW__TOTAL_STEPS_DROPPED],
            pool->step_records[middle], memory_order_relaxed);
        size_t after = pool->step_count - middle - 1;
        memmove(pool->step_slots + middle, pool->step_slots + middle + 1,
                after * sizeof(*pool->step_slots));
        memmove(pool->step_records + middle, pool->step_records + middle + 1,
                after * sizeof(*pool->step_records));
        pool->step_count--;
    }
    return true;
}
