/* Records that are kept whatever the policy: those of steps, and those of watchers. They lie in chunks of their own. */
#include "base/os.h"
#include "record/recorder.h"
#include <string.h>

static uint32_t sw__kept_count(const struct sw__fmt_block *block, uint32_t used)
{
    const uint8_t *at = (const uint8_t *)(block + 1);
    uint32_t records = 0;
    for (uint32_t offset = 0; offset < used; records++) {
        const uint8_t units = at[offset + 1];
        offset += SW_RECORD_UNIT * (units ? units : 1u);
    }
    return records;
}

void sw__kept_seal(uint32_t chunk)
{
    const struct sw__fmt_block *block = sw__session.pool.chunks[chunk].block;
    const uint32_t used = atomic_load_explicit(&block->used, memory_order_relaxed);
    sw__pool_seal(&sw__session.pool, chunk, sw__kept_count(block, used), sw__clock_now());
}

void *sw__kept_room(struct sw__thread *thread, uint32_t bytes)
{
    struct sw__pool *pool = &sw__session.pool;
    uint32_t chunk = atomic_load_explicit(&thread->steps_chunk, memory_order_relaxed);
    struct sw__fmt_block *block = chunk != UINT32_MAX ? pool->chunks[chunk].block : NULL;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (!block || sizeof(*block) + used + bytes > block->size) {
        bool low = false;
        if (block) {
            atomic_store_explicit(&thread->steps_chunk, UINT32_MAX, memory_order_release);
            sw__kept_seal(chunk);
        }
        chunk = sw__pool_take(pool, SW__BLOCK_STEPS, thread->slot, thread->steps_sequence,
                              thread->slot->tid, &low);
        if (low) {
            sw__helper_wake();
        }
        if (chunk == UINT32_MAX) {
            sw__total_add(SW__TOTAL_STEPS_DROPPED, 1);
            return NULL;
        }
        thread->steps_sequence++;
        block = pool->chunks[chunk].block;
        used = 0;
        atomic_store_explicit(&thread->steps_chunk, chunk, memory_order_release);
    }
    return (uint8_t *)(block + 1) + used;
}

void sw__kept_publish(struct sw__thread *thread, uint32_t bytes)
{
    const uint32_t chunk =
        atomic_load_explicit(&thread->steps_chunk, memory_order_relaxed);
    struct sw__fmt_block *block = sw__session.pool.chunks[chunk].block;
    const uint32_t used = atomic_load_explicit(&block->used, memory_order_relaxed);
    atomic_store_explicit(&block->used, used + bytes, memory_order_release);
}

bool sw__kept_put(const sw_record *records, uint32_t bytes)
{
    struct sw__session *session = &sw__session;
    bool put = false;
    if (sw__holding || !sw_is_recording()) {
        return false;
    }
    sw__lock(&session->lock);
    struct sw__thread *thread =
        atomic_load(&session->state) == SW__SESSION_ON ? sw__thread_of_watchers() : NULL;
    void *room = thread ? sw__kept_room(thread, bytes) : NULL;
    if (room) {
        memcpy(room, records, bytes);
        sw__kept_publish(thread, bytes);
        put = true;
    }
    sw__unlock(&session->lock);
    return put;
}
