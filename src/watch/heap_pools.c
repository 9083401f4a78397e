/* Hooks for an interpreter's allocator of small blocks.
 *
 * It gets arenas from the kernel and gives out blocks of which malloc knows nothing; larger ones it has malloc make. A hook counts a
 * small block itself, and for a larger one says for whom malloc is called. When a block is freed nobody says how large it is. But all
 * blocks of a pool have one size, and a pool is a piece of address space of fixed size and alignment: so a table by pool has
 * the size of what was last given out there. A larger block that comes to lie where a pool was clears its place. Pools that nobody has
 * been given a block of since are not in the table; blocks of them are counted as freed without a size.
 *
 * One thread at a time is in here: interpreters hold a lock. */
#include "watch/heap.h"

#include <sys/mman.h>

#define GRAIN 16u
#define LEAF_BITS 16u
#define ADDRESS_BITS 47u

static struct {
    unsigned bits;
    uintptr_t highs; /* leaves there can be; 0: there are no pools */
    uint8_t *
        *top; /* leaves by the highest bits of an address; sizes in grains, by pool */
} table;

static void *pages(size_t size)
{
    void *found = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return found == MAP_FAILED ? NULL : found;
}

int sw_heap_pools_prepare(unsigned pool_bits)
{
    table.highs = 0;
    if (pool_bits == 0) {
        return SW_OK;
    }
    const uintptr_t highs = (uintptr_t)1 << (ADDRESS_BITS - pool_bits - LEAF_BITS);
    if (!table.top) {
        table.bits = pool_bits;
        table.top = pages(highs * sizeof(uint8_t *));
    }
    if (!table.top) {
        return SW_ENOMEM;
    }
    table.highs = highs;
    return SW_OK;
}

/* --- sizes of pools --- */

/* The place of the block's pool; NULL: there is no leaf for it. */
SW__INLINE uint8_t *pool_at(const void *block)
{
    const uintptr_t pool = (uintptr_t)block >> table.bits;
    const uintptr_t high = pool >> LEAF_BITS;
    if (SW__UNLIKELY(high >= table.highs)) {
        return NULL;
    }
    uint8_t *leaf = table.top[high];
    return SW__LIKELY(leaf != NULL) ? leaf + (uint16_t)pool : NULL;
}

/* Also where there was none before. */
static uint8_t *pool_make(const void *block)
{
    const uintptr_t high = (uintptr_t)block >> table.bits >> LEAF_BITS;
    if (high < table.highs && !table.top[high]) {
        table.top[high] = pages((size_t)1 << LEAF_BITS);
    }
    return pool_at(block);
}

/* The size of a small block; 0: it is none, or nobody knows. */
SW__INLINE size_t small_size(const void *block)
{
    const uint8_t *pool = pool_at(block);
    return SW__LIKELY(pool != NULL) ? (size_t)*pool * GRAIN : 0;
}

static void *large_made(void *block)
{
    uint8_t *pool = pool_at(block);
    if (pool) {
        *pool = 0;
    }
    return block;
}

/* --- counting --- */

static void count_specially(const sw_heap_pools *pools, void *block, size_t bytes)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    if (thread->within == SW__HEAP_LATE) {
        sw__heap_late(pools->part, bytes, 0);
    } else {
        sw__heap_took(thread, pools->part, block, bytes, NULL);
    }
}

/* Counts a small block that was made, and returns it: a pool never seen, sections that have changed, a thread that ends. */
static SW__NOINLINE void *small_specially(const sw_heap_pools *pools, void *block,
                                          size_t size)
{
    const size_t grains = (size + GRAIN - 1) / GRAIN;
    uint8_t *pool = pool_make(block);
    if (pool) {
        *pool = (uint8_t)grains;
    }
    count_specially(pools, block, grains * GRAIN);
    return block;
}

static SW__NOINLINE void *small_last(void *block, size_t bytes)
{
    sw__heap_slow(sw__heap_self, block, bytes, NULL);
    return block;
}

SW__INLINE void *small_made(const sw_heap_pools *pools, void *block, size_t size)
{
    struct sw__heap_thread *thread = sw__heap_self;
    uint8_t *pool = pool_at(block);
    if (SW__UNLIKELY(pool == NULL) || !sw__heap_is_plain(thread)) {
        return small_specially(pools, block, size);
    }
    const size_t grains = (size + GRAIN - 1) / GRAIN;
    *pool = (uint8_t)grains;
    if (sw__heap_add(thread, pools->part, grains * GRAIN)) {
        return small_last(block, grains * GRAIN);
    }
    return block;
}

static SW__NOINLINE void small_gone(const sw_heap_pools *pools, const void *block,
                                    size_t bytes)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    sw__heap_leaves(block);
    if (thread->within == SW__HEAP_LATE) {
        sw__heap_late(pools->part, 0, bytes);
    } else {
        sw__heap_gave(thread, pools->part, bytes);
    }
}

/* --- hooks --- */

static SW__NOINLINE void *make_large(const sw_heap_pools *pools, size_t size)
{
    if (size == 0 && pools->small_most) {
        void *block = pools->malloc(pools->context, 0);
        return block ? small_made(pools, block, 1) : NULL;
    }
    const unsigned before = sw_heap_within();
    sw_heap_set_within(pools->part);
    void *block = pools->malloc(pools->context, size);
    sw_heap_set_within(before);
    return large_made(block);
}

void *sw_heap_pools_malloc(void *context, size_t size)
{
    const sw_heap_pools *pools = context;
    /* 0 is none of them. */
    if (SW__UNLIKELY(size - 1 >= pools->small_most)) {
        return make_large(pools, size);
    }
    void *block = pools->malloc(pools->context, size);
    return SW__LIKELY(block != NULL) ? small_made(pools, block, size) : NULL;
}

void *sw_heap_pools_calloc(void *context, size_t count, size_t size)
{
    const sw_heap_pools *pools = context;
    const bool fits = size == 0 || count <= pools->small_most / size;
    if (fits && pools->small_most) {
        void *block = pools->calloc(pools->context, count, size);
        const size_t bytes = count * size;
        return block ? small_made(pools, block, bytes > 0 ? bytes : 1) : NULL;
    }
    const unsigned before = sw_heap_within();
    sw_heap_set_within(pools->part);
    void *block = pools->calloc(pools->context, count, size);
    sw_heap_set_within(before);
    return large_made(block);
}

static SW__NOINLINE void free_specially(const sw_heap_pools *pools, void *block)
{
    const size_t size = small_size(block);
    if (size) {
        small_gone(pools, block, size);
        pools->free(pools->context, block);
        return;
    }
    const unsigned before = sw_heap_within();
    sw_heap_set_within(pools->part);
    pools->free(pools->context, block);
    sw_heap_set_within(before);
}

void sw_heap_pools_free(void *context, void *block)
{
    const sw_heap_pools *pools = context;
    struct sw__heap_thread *thread = sw__heap_self;
    const size_t size = small_size(block); /* 0 also for NULL */
    if (SW__UNLIKELY(size == 0) || !sw__heap_is_plain(thread) ||
        sw__heap_may_be_sampled(block)) {
        free_specially(pools, block);
        return;
    }
    sw__heap_sub(thread, pools->part, size);
    pools->free(pools->context, block);
}

void *sw_heap_pools_realloc(void *context, void *old, size_t size)
{
    const sw_heap_pools *pools = context;
    if (!old) {
        return sw_heap_pools_malloc(context, size);
    }
    const size_t old_size = small_size(old);
    if (old_size) {
        /* Before the place can be another's. */
        small_gone(pools, old, old_size);
    }
    const struct sw__heap_count *count = &sw__heap_here_now()->part[pools->part];
    const uint64_t calls = count->blocks + count->blocks_freed;
    const unsigned before = sw_heap_within();
    sw_heap_set_within(pools->part);
    void *block = pools->realloc(pools->context, old, size);
    sw_heap_set_within(before);
    if (old_size && (!block || block == old)) {
        count_specially(pools, old, old_size); /* it is as it was */
    } else if (block && block != old && size <= pools->small_most && pools->small_most &&
               count->blocks + count->blocks_freed == calls) {
        (void)small_made(pools, block, size ? size : 1);
    } else {
        (void)large_made(block);
    }
    return block;
}
