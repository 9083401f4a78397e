/* An arena: a list of blocks, each cut from its front. Blocks double up to a limit, so
 * that a small arena stays small and a large one calls the heap rarely. What does not fit
 * the usual block size gets a block of its own, behind the current one, which keeps
 * serving.
 *
 * Every change becomes visible by one store (`used`, `next` or `current`) made last, so
 * an arena that is copied by a fork in the middle of a call is still whole in the
 * child. */
#include <stdbool.h>
#include <string.h>

#include "base/memory.h"

#define FIRST_BLOCK ((size_t)4096)
#define LARGEST_BLOCK ((size_t)1 << 20)

struct block {
    struct block *next; /* older ones */
    size_t size;        /* of data */
    size_t used;        /* ≤ size */
    char data[];
};

struct sw__arena {
    struct block *current;
    size_t taken; /* from the heap, headers included; ≤ limit where that is not 0 */
    size_t limit;
    size_t next_size; /* of the next usual block, header included */
};

sw__arena *sw__arena_create(size_t limit)
{
    sw__arena *arena = sw__alloc_zero(1, sizeof *arena);
    if (arena) {
        arena->limit = limit;
        arena->next_size = FIRST_BLOCK;
    }
    return arena;
}

void sw__arena_free(sw__arena *arena)
{
    if (!arena) {
        return;
    }
    for (struct block *block = arena->current; block;) {
        struct block *next = block->next;
        sw__free(block);
        block = next;
    }
    sw__free(arena);
}

/* Cuts `size` bytes from a block; NULL when it has not got them. */
static void *cut(struct block *block, size_t size, size_t align)
{
    uintptr_t start = (uintptr_t)(block->data + block->used);
    size_t skip = (size_t)(-start & (align - 1));
    size_t room = block->size - block->used;
    if (skip > room || size > room - skip) {
        return NULL;
    }
    void *memory = block->data + block->used + skip;
    block->used += skip + size;
    return memory;
}

/* Takes a block of `total` bytes, header included, or of as few as `least` where the
 * limit does not allow more. */
static struct block *take_block(sw__arena *arena, size_t total, size_t least)
{
    if (arena->limit) {
        size_t left = arena->limit - arena->taken;
        if (left < least) {
            return NULL;
        }
        total = total < left ? total : left;
    }
    struct block *block = sw__alloc(total);
    if (!block && total > least) {
        total = least;
        block = sw__alloc(total);
    }
    if (block) {
        block->next = NULL;
        block->size = total - sizeof *block;
        block->used = 0;
        arena->taken += total;
    }
    return block;
}

void *sw__arena_take(sw__arena *arena, size_t size, size_t align)
{
    if (align == 0 || (align & (align - 1)) != 0) {
        return NULL;
    }
    void *memory = arena->current ? cut(arena->current, size, align) : NULL;
    if (memory) {
        return memory;
    }
    /* The worst case of alignment is assumed; it is only a few bytes. */
    size_t least;
    if (__builtin_add_overflow(size, sizeof(struct block) + (align - 1), &least)) {
        return NULL;
    }
    bool usual = least <= arena->next_size;
    struct block *block = take_block(arena, usual ? arena->next_size : least, least);
    if (!block) {
        return NULL;
    }
    memory = cut(block, size, align);
    if (usual || !arena->current) {
        block->next = arena->current;
        arena->current = block;
    } else {
        block->next = arena->current->next;
        arena->current->next = block;
    }
    if (usual && arena->next_size < LARGEST_BLOCK) {
        arena->next_size *= 2;
    }
    return memory;
}

char *sw__arena_copy(sw__arena *arena, const char *bytes, size_t length)
{
    if (length == SIZE_MAX) {
        return NULL;
    }
    char *copy = sw__arena_take(arena, length + 1, 1);
    if (copy) {
        if (length) {
            memcpy(copy, bytes, length);
        }
        copy[length] = '\0';
    }
    return copy;
}
