/* The index of blocks: the better of two copies, addresses, and payloads. */
#include <stdlib.h>
#include <string.h>

#include "read/trace_internal.h"

struct sw__block *sw__index_add(sw_trace *trace)
{
    if (trace->block_count == trace->block_room) {
        size_t room = trace->block_room ? trace->block_room * 2 : 64;
        struct sw__block *blocks = sw__realloc(trace->blocks, room, sizeof *blocks);
        if (!blocks) {
            return NULL;
        }
        trace->blocks = blocks;
        trace->block_room = room;
    }
    struct sw__block *block = &trace->blocks[trace->block_count++];
    memset(block, 0, sizeof *block);
    return block;
}

static int order(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

/* State blocks by address; of two copies the live one comes first, else the newer
 * one. */
static int compare_state(const struct sw__block *a, const struct sw__block *b)
{
    int result = order(a->address, b->address);
    if (result == 0) {
        result = order(b->source, a->source);
    }
    return result ? result : order(b->revision, a->revision);
}

/* Chunks by name; of two copies the fuller one comes first, then the sealed one. */
static int compare_chunks(const struct sw__block *a, const struct sw__block *b)
{
    int result = order(a->kind, b->kind);
    result = result ? result : order(a->thread, b->thread);
    result = result ? result : order(a->sequence, b->sequence);
    result = result ? result : order(b->used, a->used);
    result = result ? result : order(b->sealed, a->sealed);
    return result ? result : order(a->source, b->source);
}

static int compare(const void *left, const void *right)
{
    const struct sw__block *a = left;
    const struct sw__block *b = right;
    bool a_chunk = sw__block_is_chunk(a);
    bool b_chunk = sw__block_is_chunk(b);
    int result = order(a_chunk, b_chunk);
    if (result == 0) {
        result = a_chunk ? compare_chunks(a, b) : compare_state(a, b);
    }
    return result ? result : order(a->offset, b->offset);
}

static bool is_same(const struct sw__block *a, const struct sw__block *b)
{
    if (sw__block_is_chunk(a) != sw__block_is_chunk(b)) {
        return false;
    }
    return sw__block_is_chunk(a) ? a->kind == b->kind && a->thread == b->thread &&
                                       a->sequence == b->sequence
                                 : a->address == b->address;
}

const struct sw__fmt_redo *sw__trace_redo(const sw_trace *trace, unsigned place)
{
    const struct sw__source *hot = &trace->source[SW__SOURCE_HOT];
    bool open = trace->has_hot && !trace->alive && hot->quality != SW__SUPER_NONE;
    return open && hot->super.redo[place].place ? &hot->super.redo[place] : NULL;
}

/* The writer died while it gave a chunk up for newer events: the chunk is gone. */
static void finish_giving_up(sw_trace *trace, unsigned place, uint8_t source)
{
    const struct sw__fmt_redo *redo = sw__trace_redo(trace, place);
    for (size_t i = 0; redo && i < trace->block_count; i++) {
        struct sw__block *block = &trace->blocks[i];
        if (block->source == source && block->offset == redo->place &&
            block->kind == SW__BLOCK_EVENTS && block->thread == redo->thread) {
            block->kind = SW__BLOCK_FREE;
        }
    }
}

void sw__index_merge(sw_trace *trace)
{
    size_t kept = 0;
    finish_giving_up(trace, SW__REDO_HOT, SW__SOURCE_HOT);
    finish_giving_up(trace, SW__REDO_HOME, SW__SOURCE_HOME);
    for (size_t i = 0; i < trace->block_count; i++) {
        if (trace->blocks[i].kind != SW__BLOCK_FREE) {
            trace->blocks[kept++] = trace->blocks[i];
        }
    }
    trace->block_count = kept;
    if (kept > 1) {
        qsort(trace->blocks, kept, sizeof *trace->blocks, compare);
    }
    kept = 0;
    for (size_t i = 0; i < trace->block_count; i++) {
        if (kept && is_same(&trace->blocks[kept - 1], &trace->blocks[i])) {
            continue;
        }
        trace->blocks[kept++] = trace->blocks[i];
    }
    trace->block_count = kept;
    trace->state_count = 0;
    while (trace->state_count < kept &&
           !sw__block_is_chunk(&trace->blocks[trace->state_count])) {
        trace->state_count++;
    }
}

const struct sw__block *sw__index_find(const sw_trace *trace, uint64_t address,
                                       size_t length, uint32_t *offset)
{
    size_t low = 0;
    size_t high = trace->state_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (trace->blocks[middle].address <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    const struct sw__block *block = &trace->blocks[low - 1];
    uint64_t within = address - block->address;
    if (within < SW__READ_HEADER || within >= block->size ||
        length > block->size - within) {
        return NULL;
    }
    *offset = (uint32_t)(within - SW__READ_HEADER);
    return block;
}

static size_t read_payload(const sw_trace *trace, const struct sw__block *block,
                           uint32_t limit, uint32_t offset, void *to, size_t length)
{
    if (offset >= limit) {
        return 0;
    }
    length = length < limit - offset ? length : limit - offset;
    if (block->copy) {
        memcpy(to, block->copy + offset, length);
        return length;
    }
    return sw__source_read(&trace->source[block->source], to, length,
                           block->offset + SW__READ_HEADER + offset);
}

size_t sw__block_read(const sw_trace *trace, const struct sw__block *block,
                      uint32_t offset, void *to, size_t length)
{
    return read_payload(trace, block, block->used, offset, to, length);
}

size_t sw__block_read_room(const sw_trace *trace, const struct sw__block *block,
                           uint32_t offset, void *to, size_t length)
{
    return read_payload(trace, block, block->size - SW__READ_HEADER, offset, to, length);
}

bool sw__block_is_current(const sw_trace *trace, const struct sw__block *block)
{
    struct sw__fmt_block header;
    return sw__source_read(&trace->source[block->source], &header, sizeof header,
                           block->offset) == sizeof header &&
           header.magic == SW__FMT_BLOCK_MAGIC && header.kind == block->kind &&
           header.thread == block->thread && header.sequence == block->sequence &&
           header.used >= block->used;
}

bool sw__scratch_load(struct sw__scratch *scratch, const sw_trace *trace,
                      const struct sw__block *block, size_t *length)
{
    if (block->used > scratch->room || !scratch->data) {
        size_t room = block->used < SW__FMT_CHUNK ? SW__FMT_CHUNK : block->used;
        uint8_t *data = sw__realloc(scratch->data, room, 1);
        if (!data) {
            return false;
        }
        scratch->data = data;
        scratch->room = room;
    }
    *length = sw__block_read(trace, block, 0, scratch->data, block->used);
    return true;
}
