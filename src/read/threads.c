/* Threads: their slots, and those that only their chunks tell of. */
#include <stdlib.h>
#include <string.h>

#include "read/trace_internal.h"

static int compare_indexes(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

uint32_t sw__thread_position(const sw_trace *trace, uint32_t index)
{
    if (index < trace->thread_count && trace->threads[index].index == index) {
        return index;
    }
    /* Threads without a slot lie behind the others, by index. */
    size_t low = 0;
    size_t high = trace->thread_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->threads[middle].index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < trace->thread_count && trace->threads[low].index == index ? (uint32_t)low
                                                                           : UINT32_MAX;
}

/* Whether the block tells of a thread. One that its writer had only just taken does
 * not yet. */
static bool has_thread(const struct sw__block *block)
{
    return block->used && (sw__block_is_chunk(block) || block->kind == SW__BLOCK_LANE ||
                           block->kind == SW__BLOCK_NODES);
}

static size_t slots_in(const struct sw__block *block)
{
    return block->used / sizeof(struct sw__fmt_thread);
}

static int fill_slot(sw_trace *trace, const struct sw__fmt_thread *slot, size_t limit,
                     size_t *bad)
{
    if (slot->incarnations == 0) {
        return SW_OK;
    }
    if (slot->index >= limit) {
        (*bad)++;
        return SW_OK;
    }
    sw_trace_thread *thread = &trace->threads[slot->index];
    if (thread->incarnations) {
        (*bad)++;
        return SW_OK;
    }
    const char *name =
        sw__arena_copy(trace->arena, slot->name, strnlen(slot->name, sizeof slot->name));
    if (!name) {
        return SW_ENOMEM;
    }
    *thread = (sw_trace_thread){
        .index = slot->index,
        .tid = slot->tid,
        .incarnations = slot->incarnations,
        .alive = slot->alive != 0 && trace->alive,
        .start_ns = sw__trace_moment_ns(trace, slot->start_ticks),
        .end_ns = sw__trace_moment_ns(trace, slot->end_ticks),
        .records = slot->records,
        .dropped = slot->dropped,
        .overwritten = slot->overwritten,
        .steps = slot->steps,
        .name = name,
    };
    for (unsigned place = 0; place < SW__REDO_PLACES; place++) {
        const struct sw__fmt_redo *redo = sw__trace_redo(trace, place);
        if (redo && redo->thread == slot->index && redo->before == slot->overwritten) {
            thread->overwritten = sw__add_saturating(thread->overwritten, redo->records);
        }
    }
    if (slot->index >= trace->thread_count) {
        trace->thread_count = slot->index + 1u;
    }
    return SW_OK;
}

static int load_slots(sw_trace *trace, size_t limit, size_t *bad)
{
    struct sw__scratch scratch = {0};
    int result = SW_OK;
    for (size_t i = 0; i < trace->state_count && result == SW_OK; i++) {
        const struct sw__block *block = &trace->blocks[i];
        if (block->kind != SW__BLOCK_THREADS) {
            continue;
        }
        size_t length;
        if (!sw__scratch_load(&scratch, trace, block, &length)) {
            result = SW_ENOMEM;
            break;
        }
        struct sw__fmt_thread slot;
        for (size_t at = 0; length - at >= sizeof slot && result == SW_OK;
             at += sizeof slot) {
            memcpy(&slot, scratch.data + at, sizeof slot);
            result = fill_slot(trace, &slot, limit, bad);
        }
    }
    sw__free(scratch.data);
    return result;
}

/* Gives every thread that blocks speak of a place behind the known ones. */
static void add_unknown(sw_trace *trace, uint32_t *found)
{
    size_t count = 0;
    for (size_t i = 0; i < trace->block_count; i++) {
        if (has_thread(&trace->blocks[i]) &&
            trace->blocks[i].thread >= trace->thread_count) {
            found[count++] = trace->blocks[i].thread;
        }
    }
    if (count == 0) {
        return;
    }
    qsort(found, count, sizeof *found, compare_indexes);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || found[i] != found[i - 1]) {
            trace->threads[trace->thread_count++] =
                (sw_trace_thread){.index = found[i], .name = ""};
        }
    }
}

int sw__threads_load(sw_trace *trace)
{
    size_t slots = 0;
    size_t users = 0;
    size_t bad = 0;
    for (size_t i = 0; i < trace->block_count; i++) {
        if (trace->blocks[i].kind == SW__BLOCK_THREADS) {
            slots += slots_in(&trace->blocks[i]);
        }
        users += has_thread(&trace->blocks[i]);
    }
    size_t room = slots + users;
    trace->threads = sw__arena_take(trace->arena, room * sizeof *trace->threads + 1,
                                    _Alignof(sw_trace_thread));
    uint32_t *found = sw__alloc_zero(users, sizeof *found);
    int result = trace->threads && found ? SW_OK : SW_ENOMEM;
    if (result == SW_OK) {
        for (size_t i = 0; i < room; i++) {
            trace->threads[i] = (sw_trace_thread){.index = (uint32_t)i, .name = ""};
        }
        result = load_slots(trace, slots, &bad);
    }
    if (result == SW_OK) {
        size_t known = trace->thread_count;
        add_unknown(trace, found);
        bad += trace->alive ? 0 : trace->thread_count - known;
        for (size_t i = trace->state_count; i < trace->block_count; i++) {
            trace->blocks[i].position =
                sw__thread_position(trace, trace->blocks[i].thread);
        }
    }
    if (result == SW_OK && bad) {
        sw__trace_damage(trace, "The description of %zu threads cannot be read.", bad);
    }
    sw__free(found);
    return result;
}

size_t sw_trace_thread_count(const sw_trace *trace)
{
    return trace->thread_count;
}

const sw_trace_thread *sw_trace_get_thread(const sw_trace *trace, size_t index)
{
    return index < trace->thread_count ? &trace->threads[index] : NULL;
}
