/* Hooks for an interpreter's allocator of small blocks.
 *
 * It gets arenas from the kernel and gives out blocks of which malloc knows nothing; larger ones, and those of no bytes, it has malloc
 * make. A hook counts a small block itself, and for another one says for whom malloc is called. When a block is freed nobody says how large it is. But all
 * blocks of a pool have one size, and a pool is a piece of address space of fixed size and alignment: so a table by pool has
 * the size of what was last given out there. A larger block that comes to lie where a pool was clears its place. Pools that nobody has
 * been given a block of since are not in the table; blocks of them are counted as freed without a size.
 *
 * A second table is what hooks look at: for every pool, by the lowest bits of its number, which pool was last there and the size of its
 * blocks, in one word that is compared as a whole. Where two pools share a place the first table knows.
 *
 * One thread of an interpreter at a time is in here, for it holds a lock. Interpreters with locks of their own have other pools: they
 * only share leaves, and words of the second table, which are whole. */
#include "watch/heap.h"

#include <sys/mman.h>

#define GRAIN 16u
#define LEAF_BITS 16u
#define ADDRESS_BITS 47u
#define NEAR_BITS 16u
#define SIZE_BITS 10u /* of a word of `near`: sizes are at most 512 */
#define SIZE_MOST ((1u << SIZE_BITS) - 1)

static struct {
    unsigned bits;
    uintptr_t highs; /* leaves there can be; 0: there are no pools */
    uint8_t *
        *top; /* leaves by the highest bits of an address; sizes in grains, by pool */
} table;

/* Number of a pool << SIZE_BITS, and the size of its blocks. The first place is never what pool 0 would have: NULL is no block. */
static uint64_t near[1u << NEAR_BITS] = {UINT64_MAX};

/* An allocator that is counted, and what it does itself. */
struct domain {
    sw_heap_allocator original;
    size_t small_most;
    /* Where a small block goes that was counted: it is freed, or first looked for among those that were sampled. */
    void (*free_next)(void *context, void *block);
};

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
    if ((pool_bits != 14 && pool_bits != 12) || (table.top && table.bits != pool_bits)) {
        return SW_EINVAL;
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
        uint8_t *leaf = pages((size_t)1 << LEAF_BITS);
        uint8_t *none = NULL;
        if (leaf && !__atomic_compare_exchange_n(&table.top[high], &none, leaf, false,
                                                 __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            (void)munmap(leaf, (size_t)1 << LEAF_BITS);
        }
    }
    return pool_at(block);
}

/* The size of a small block; 0: it is none, or nobody knows. */
SW__INLINE size_t small_size(const void *block)
{
    const uint8_t *pool = pool_at(block);
    return SW__LIKELY(pool != NULL) ? (size_t)*pool * GRAIN : 0;
}

SW__INLINE uint64_t *near_at(uintptr_t pool)
{
    return &near[pool & ((1u << NEAR_BITS) - 1)];
}

static void near_put(const void *block, size_t bytes)
{
    const uintptr_t pool = (uintptr_t)block >> table.bits;
    if (pool) {
        *near_at(pool) = (uint64_t)pool << SIZE_BITS | bytes;
    }
}

static void near_clear(const void *block)
{
    const uintptr_t pool = (uintptr_t)block >> table.bits;
    if (*near_at(pool) >> SIZE_BITS == pool) {
        *near_at(pool) = 0;
    }
}

static void *large_made(void *block)
{
    uint8_t *pool = pool_at(block);
    if (pool) {
        *pool = 0;
        near_clear(block);
    }
    return block;
}

/* --- counting --- */

static void count_specially(unsigned part, void *block, size_t bytes)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    if (thread->within == SW__HEAP_LATE) {
        sw__heap_late(part, bytes, 0);
    } else {
        sw__heap_took(thread, part, block, bytes, NULL);
    }
}

/* Counts a small block that was made, and returns it: a pool that the tables do not know so, sections that have changed, a thread
 * that ends, no block at all. */
static SW__NOINLINE void *small_specially(unsigned part, void *block, size_t bytes)
{
    if (!block) {
        return NULL;
    }
    uint8_t *pool = pool_make(block);
    if (pool) {
        *pool = (uint8_t)(bytes / GRAIN);
        near_put(block, bytes);
    }
    count_specially(part, block, bytes);
    return block;
}

static SW__NOINLINE void *small_last(void *block, size_t bytes)
{
    sw__heap_slow(sw__heap_self, block, bytes, NULL);
    return block;
}

/* There is more in use than before, or there is a trap: `bytes` were taken from `room`. */
static SW__NOINLINE void *small_above(unsigned part, void *block, size_t bytes)
{
    struct sw__heap_thread *thread = sw__heap_self;
    if (SW__UNLIKELY(!sw__heap_rise(thread))) {
        (void)sw__heap_more(&thread->room, bytes);
        return small_specially(part, block, bytes);
    }
    sw__add(&thread->part[part].allocated, bytes);
    sw__add(&thread->part[part].blocks, 1);
    return sw__heap_less(&thread->until, bytes) ? small_last(block, bytes) : block;
}

SW__INLINE size_t in_grains(size_t size)
{
    return (size + GRAIN - 1) & ~(size_t)(GRAIN - 1);
}

SW__INLINE void *small_made(unsigned part, unsigned bits, void *block, size_t bytes)
{
    const uintptr_t pool = (uintptr_t)block >> bits;
    if (SW__UNLIKELY(*near_at(pool) != ((uint64_t)pool << SIZE_BITS | bytes))) {
        return small_specially(part, block, bytes);
    }
    struct sw__heap_thread *thread = sw__heap_self;
    if (sw__heap_less(&thread->room, bytes)) {
        return small_above(part, block, bytes);
    }
    sw__add(&thread->part[part].allocated, bytes);
    sw__add(&thread->part[part].blocks, 1);
    if (sw__heap_less(&thread->until, bytes)) {
        return small_last(block, bytes);
    }
    return block;
}

static SW__NOINLINE void small_gone(unsigned part, const void *block, size_t bytes)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    sw__heap_leaves(block);
    if (thread->within == SW__HEAP_LATE) {
        sw__heap_late(part, 0, bytes);
    } else {
        sw__heap_gave(thread, part, bytes);
    }
}

/* --- what hooks do --- */

SW__INLINE bool is_small(const struct domain *domain, size_t size)
{
    return size - 1 < domain->small_most;
}

static SW__NOINLINE void *make_large(const struct domain *domain, unsigned part,
                                     size_t size)
{
    const unsigned before = sw_heap_within();
    sw_heap_set_within(part);
    void *block = domain->original.malloc(domain->original.context, size);
    sw_heap_set_within(before);
    return large_made(block);
}

/* `context` is the allocator's own. */
SW__INLINE void *pools_malloc(const struct domain *domain, unsigned part, unsigned bits,
                              void *context, size_t size)
{
    if (bits == 0 || SW__UNLIKELY(!is_small(domain, size))) {
        return make_large(domain, part, size);
    }
    const size_t bytes = in_grains(size);
    void *block = domain->original.malloc(context, size);
    return small_made(part, bits, block, bytes);
}

static void *pools_calloc(const struct domain *domain, unsigned part, size_t count,
                          size_t size)
{
    const sw_heap_allocator *original = &domain->original;
    const bool fits = size != 0 && count <= domain->small_most / size;
    if (fits && is_small(domain, count * size)) {
        void *block = original->calloc(original->context, count, size);
        return small_specially(part, block, in_grains(count * size));
    }
    const unsigned before = sw_heap_within();
    sw_heap_set_within(part);
    void *block = original->calloc(original->context, count, size);
    sw_heap_set_within(before);
    return large_made(block);
}

static SW__NOINLINE void free_specially(const struct domain *domain, unsigned part,
                                        void *block)
{
    const sw_heap_allocator *original = &domain->original;
    const size_t size = small_size(block);
    if (size) {
        near_put(block, size);
        small_gone(part, block, size);
        original->free(original->context, block);
        return;
    }
    const unsigned before = sw_heap_within();
    sw_heap_set_within(part);
    original->free(original->context, block);
    sw_heap_set_within(before);
}

SW__INLINE void pools_free(const struct domain *domain, unsigned part, unsigned bits,
                           void *context, void *block)
{
    if (bits == 0) {
        free_specially(domain, part, block);
        return;
    }
    const uintptr_t pool = (uintptr_t)block >> bits;
    const uint64_t bytes = (uint64_t)pool << SIZE_BITS ^ *near_at(pool);
    if (SW__UNLIKELY(bytes > SIZE_MOST)) {
        free_specially(domain, part, block);
        return;
    }
    struct sw__heap_thread *thread = sw__heap_self;
    if (sw__heap_more(&thread->room, bytes)) {
        (void)sw__heap_less(&thread->room, bytes);
        free_specially(domain, part, block);
        return;
    }
    sw__add(&thread->part[part].freed, bytes);
    sw__add(&thread->part[part].blocks_freed, 1);
#if SW__TSAN
    __atomic_load_n(&domain->free_next, __ATOMIC_RELAXED)(context, block);
#else
    domain->free_next(context, block);
#endif
}

/* A small block that stays one, and nothing is to be looked at: it is freed and made. Where its pools are full malloc makes it, which
 * counts by itself. */
SW__INLINE void *resize_small(const struct domain *domain, struct sw__heap_thread *thread,
                              unsigned part, unsigned bits, void *old, size_t old_size,
                              size_t size)
{
    sw__heap_leaves(old);
    (void)sw__heap_more(&thread->room, old_size);
    sw__add(&thread->part[part].freed, old_size);
    sw__add(&thread->part[part].blocks_freed, 1);
    /* Malloc is called through the raw domain, or where that has no hooks as anybody calls it. */
    const uint64_t *raw = &thread->part[SW_HEAP_RAW].blocks;
    const uint64_t others = thread->blocks + *raw;
    void *block = domain->original.realloc(domain->original.context, old, size);
    if (SW__UNLIKELY(thread->blocks + *raw != others)) {
        return large_made(block);
    }
    (void)small_made(part, bits, block ? block : old,
                     !block || block == old ? old_size : in_grains(size));
    return block;
}

static void *pools_realloc(const struct domain *domain, unsigned part, void *old,
                           size_t size)
{
    const sw_heap_allocator *original = &domain->original;
    const size_t old_size = small_size(old);
    if (old_size) {
        /* Before the place can be another's. */
        small_gone(part, old, old_size);
    }
    const struct sw__heap_count *count = &sw__heap_here_now()->part[part];
    const uint64_t calls = count->blocks + count->blocks_freed;
    const unsigned before = sw_heap_within();
    sw_heap_set_within(part);
    void *block = original->realloc(original->context, old, size);
    sw_heap_set_within(before);
    if (old_size && (!block || block == old)) {
        count_specially(part, old, old_size); /* it is as it was */
    } else if (block && block != old && is_small(domain, size) &&
               count->blocks + count->blocks_freed == calls) {
        (void)small_specially(part, block, in_grains(size));
    } else {
        (void)large_made(block);
    }
    return block;
}

/* --- hooks: the same for each domain, and for each size of pools, so that both are constants --- */

static struct domain domain_object, domain_mem;

#define HOOKS(name, part, bits)                                                          \
    SW__HOT static void *name##_malloc_##bits(void *context, size_t size)                \
    {                                                                                    \
        return pools_malloc(&domain_##name, part, bits, context, size);                  \
    }                                                                                    \
    SW__HOT static void name##_free_##bits(void *context, void *block)                   \
    {                                                                                    \
        pools_free(&domain_##name, part, bits, context, block);                          \
    }                                                                                    \
    static void *name##_realloc_##bits(void *context, void *old, size_t size)            \
    {                                                                                    \
        if (!old) {                                                                      \
            return name##_malloc_##bits(context, size);                                  \
        }                                                                                \
        struct sw__heap_thread *thread = sw__heap_self;                                  \
        const size_t before =                                                            \
            (bits) && is_small(&domain_##name, size) ? small_size(old) : 0;              \
        return before && !sw__heap_is_trapped(thread)                                    \
                   ? resize_small(&domain_##name, thread, part, bits, old, before, size) \
                   : pools_realloc(&domain_##name, part, old, size);                     \
    }
#define ALL_HOOKS(name, part)                                                            \
    static void *name##_calloc(void *context, size_t count, size_t size)                 \
    {                                                                                    \
        (void)context;                                                                   \
        return pools_calloc(&domain_##name, part, count, size);                          \
    }                                                                                    \
    static SW__NOINLINE void name##_free_found(void *context, void *block)               \
    {                                                                                    \
        sw__heap_unsample(block);                                                        \
        domain_##name.original.free(context, block);                                     \
    }                                                                                    \
    static void name##_free_sampled(void *context, void *block)                          \
    {                                                                                    \
        if (sw__heap_may_be_sampled(block)) {                                            \
            name##_free_found(context, block);                                           \
            return;                                                                      \
        }                                                                                \
        domain_##name.original.free(context, block);                                     \
    }                                                                                    \
    HOOKS(name, part, 14)                                                                \
    HOOKS(name, part, 12)                                                                \
    HOOKS(name, part, 0)
#define FUNCTIONS(name, bits)                                                            \
    (sw_heap_allocator)                                                                  \
    {                                                                                    \
        original->context, name##_malloc_##bits, name##_calloc, name##_realloc_##bits,   \
            name##_free_##bits                                                           \
    }

ALL_HOOKS(object, SW_HEAP_OBJECT)
ALL_HOOKS(mem, SW_HEAP_MEM)

void sw__heap_pools_sampled(bool some)
{
    __atomic_store_n(&domain_object.free_next,
                     some ? object_free_sampled : domain_object.original.free,
                     __ATOMIC_RELAXED);
    __atomic_store_n(&domain_mem.free_next,
                     some ? mem_free_sampled : domain_mem.original.free,
                     __ATOMIC_RELAXED);
}

sw_heap_allocator sw_heap_pools_count(unsigned part, const sw_heap_allocator *original,
                                      size_t small_most)
{
    struct domain *domain = part == SW_HEAP_OBJECT ? &domain_object : &domain_mem;
    const unsigned bits = table.highs ? table.bits : 0;
    domain->original = *original;
    domain->small_most = bits ? small_most : 0;
    sw__heap_pools_sampled(__atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED) != 0);
    if (bits == 14) {
        return part == SW_HEAP_OBJECT ? FUNCTIONS(object, 14) : FUNCTIONS(mem, 14);
    }
    if (bits == 12) {
        return part == SW_HEAP_OBJECT ? FUNCTIONS(object, 12) : FUNCTIONS(mem, 12);
    }
    return part == SW_HEAP_OBJECT ? FUNCTIONS(object, 0) : FUNCTIONS(mem, 0);
}
