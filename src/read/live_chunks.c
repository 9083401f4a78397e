#include "read/live_chunks.h"

#include <stdlib.h>

#define COPIES_MAX ((size_t)64 << 20)

static int compare(const void *left, const void *right)
{
    const struct sw__live_limit *a = left;
    const struct sw__live_limit *b = right;
    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    return a->kind < b->kind ? -1 : a->kind > b->kind;
}

int sw__live_begin(struct sw__live *live, const sw_trace *trace)
{
    *live = (struct sw__live){.known_count = trace->block_count};
    live->limits = sw__alloc_zero(trace->block_count, sizeof *live->limits);
    if (!live->limits) {
        return SW_ENOMEM;
    }
    size_t count = 0;
    for (size_t i = 0; i < trace->block_count; i++) {
        const struct sw__block *block = &trace->blocks[i];
        if (sw__block_is_chunk(block)) {
            live->limits[count++] =
                (struct sw__live_limit){block->thread, block->kind, block->sequence};
        }
    }
    if (count > 1) {
        qsort(live->limits, count, sizeof *live->limits, compare);
    }
    for (size_t i = 0; i < count; i++) {
        struct sw__live_limit *last = live->limits + live->limit_count - 1;
        if (live->limit_count && compare(last, &live->limits[i]) == 0) {
            uint64_t sequence = live->limits[i].sequence;
            last->sequence = sequence > last->sequence ? sequence : last->sequence;
        } else {
            live->limits[live->limit_count++] = live->limits[i];
        }
    }
    return SW_OK;
}

void sw__live_end(struct sw__live *live)
{
    sw__free(live->limits);
    *live = (struct sw__live){0};
}

bool sw__live_wants(struct sw__live *live, const sw_trace *trace,
                    const struct sw__fmt_block *header, uint64_t offset)
{
    if (header->kind != SW__BLOCK_EVENTS && header->kind != SW__BLOCK_STEPS) {
        return false;
    }
    while (live->known < live->known_count &&
           trace->blocks[live->known].offset < offset) {
        live->known++;
    }
    if (live->known < live->known_count) {
        const struct sw__block *known = &trace->blocks[live->known];
        if (known->offset == offset && known->sealed && known->kind == header->kind &&
            known->thread == header->thread && known->sequence == header->sequence) {
            return false;
        }
    }
    const struct sw__live_limit key = {header->thread, header->kind, 0};
    const struct sw__live_limit *limit =
        bsearch(&key, live->limits, live->limit_count, sizeof key, compare);
    return limit && header->sequence < limit->sequence;
}

bool sw__live_copy(sw_trace *trace, struct sw__block *block, int *result)
{
    if (block->used > COPIES_MAX - trace->copied_bytes) {
        return true;
    }
    uint8_t *copy = sw__arena_take(trace->arena, block->used ? block->used : 1, 16);
    if (!copy) {
        *result = SW_ENOMEM;
        return true;
    }
    size_t got = sw__block_read(trace, block, 0, copy, block->used);
    trace->copied_bytes += block->used;
    if (got != block->used || !sw__block_is_current(trace, block)) {
        return false;
    }
    block->copy = copy;
    return true;
}
