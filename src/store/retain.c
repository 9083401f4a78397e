/* What policy auto keeps: the first steps, the last ones and the slowest ones, whole. */
#include "base/memory.h"
#include "store/pool.h"
#include <string.h>

void sw__pool_step(struct sw__pool *pool, uint64_t number, uint64_t start, uint64_t end)
{
    uint64_t at = atomic_fetch_add_explicit(&pool->extent_write, 1, memory_order_relaxed);
    size_t slot = at % SW__EXTENTS;
    /* A servant that is a whole ring behind misses steps; it only decides what is kept. */
    atomic_store_explicit(&pool->extents[slot].sequence, 0, memory_order_relaxed);
    atomic_store_explicit(&pool->extents[slot].number, number, memory_order_release);
    atomic_store_explicit(&pool->extents[slot].start, start, memory_order_release);
    atomic_store_explicit(&pool->extents[slot].end, end, memory_order_release);
    atomic_store_explicit(&pool->extents[slot].sequence, at + 1, memory_order_release);
}

static bool sw__retain_touches_worst(const struct sw__pool *pool, uint64_t first, uint64_t last)
{
    for (unsigned i = 0; i < pool->worst_count; i++) {
        if (first <= pool->worst[i].end && last >= pool->worst[i].start) {
            return true;
        }
    }
    return false;
}

/* Chunks kept for a step that is no longer among the slowest make room for others. */
static void sw__retain_prune(struct sw__pool *pool)
{
    size_t kept = 0;
    for (size_t i = 0; i < pool->kept_count; i++) {
        struct sw__kept *entry = &pool->kept[i];
        if (sw__retain_touches_worst(pool, entry->first, entry->last)) {
            pool->kept[kept++] = *entry;
            continue;
        }
        sw__home_release(pool->home, entry->slot);
        atomic_fetch_add_explicit(&entry->owner->overwritten, entry->records,
                                  memory_order_relaxed);
    }
    pool->kept_count = kept;
}

/* lock held. Returns whether a step left the slowest ones. */
static bool sw__retain_add_step(struct sw__pool *pool, const struct sw__extent *step)
{
    if (pool->config.keep_last) {
        pool->last_steps[pool->steps_seen % pool->config.keep_last] = *step;
    }
    pool->steps_seen++;
    if (step->number + 1 == pool->config.keep_first) {
        pool->first_end = step->end;
    }
    if (step->number < pool->config.keep_first || !pool->config.keep_worst) {
        return false;
    }
    if (pool->worst_count < pool->config.keep_worst) {
        pool->worst[pool->worst_count++] = *step;
        return false;
    }
    unsigned least = 0;
    for (unsigned i = 1; i < pool->worst_count; i++) {
        if (pool->worst[i].end - pool->worst[i].start <
            pool->worst[least].end - pool->worst[least].start) {
            least = i;
        }
    }
    if (step->end - step->start <= pool->worst[least].end - pool->worst[least].start) {
        return false;
    }
    pool->worst[least] = *step;
    return true;
}

void sw__retain_drain_steps(struct sw__pool *pool)
{
    uint64_t write = atomic_load_explicit(&pool->extent_write, memory_order_acquire);
    bool left = false;
    if (write == pool->extent_read) {
        return;
    }
    pthread_mutex_lock(&pool->lock);
    if (write - pool->extent_read > SW__EXTENTS) {
        pool->extent_read = write - SW__EXTENTS;
    }
    for (; pool->extent_read < write; pool->extent_read++) {
        size_t slot = pool->extent_read % SW__EXTENTS;
        uint64_t sequence =
            atomic_load_explicit(&pool->extents[slot].sequence, memory_order_acquire);
        struct sw__extent step = {
            .number = atomic_load_explicit(&pool->extents[slot].number, memory_order_acquire),
            .start = atomic_load_explicit(&pool->extents[slot].start, memory_order_acquire),
            .end = atomic_load_explicit(&pool->extents[slot].end, memory_order_acquire),
        };
        if (sequence < pool->extent_read + 1) {
            break; /* Its writer is not done; next time. */
        }
        if (sequence == pool->extent_read + 1 &&
            atomic_load_explicit(&pool->extents[slot].sequence, memory_order_acquire) ==
                sequence) {
            left |= sw__retain_add_step(pool, &step);
        }
    }
    pthread_mutex_unlock(&pool->lock);
    if (left) {
        sw__retain_prune(pool);
    }
}

/* Start of the oldest of the last steps that stay; UINT64_MAX while there are fewer. */
static uint64_t sw__retain_cutoff(const struct sw__pool *pool)
{
    unsigned keep = pool->config.keep_last;
    if (pool->steps_seen < keep || pool->steps_seen == 0) {
        return 0;
    }
    return keep ? pool->last_steps[pool->steps_seen % keep].start : UINT64_MAX;
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
    pool->kept[pool->kept_count++] = (struct sw__kept){.slot = slot,
                                                       .first = block->first_ticks,
                                                       .last = block->last_ticks,
                                                       .records = block->records,
                                                       .owner = pool->chunks[chunk].owner};
}

enum sw__fate sw__retain_fate(const struct sw__pool *pool, uint32_t chunk, bool tight)
{
    const struct sw__fmt_block *block = pool->chunks[chunk].block;
    const uint64_t first_most =
        pool->config.max_bytes ? pool->config.max_bytes / 4 : (uint64_t)64 << 20;
    if (block->first_ticks <= pool->first_end && pool->config.keep_first &&
        pool->first_bytes < first_most) {
        return SW__FATE_WRITE;
    }
    if (block->last_ticks >= sw__retain_cutoff(pool) && !tight) {
        return SW__FATE_STAY;
    }
    return sw__retain_touches_worst(pool, block->first_ticks, block->last_ticks)
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
        sw__home_release(pool->home, pool->step_slots[middle]);
        atomic_fetch_add_explicit(&sw__hot_super(pool->hot)->total[SW__TOTAL_STEPS_DROPPED],
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
