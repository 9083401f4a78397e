/* Hooks in Python's allocators.
 *
 * Python's allocator for small blocks gets arenas from the kernel and gives out blocks of up to 512 bytes, of which malloc knows
 * nothing; larger ones it has malloc make. A hook counts a small block itself, and for a larger one says for whom malloc is
 * called. When a block is freed, Python does not say how large it is. But all blocks of a pool have one size, and a pool is
 * a piece of address space of fixed size and alignment: so a table by pool has the size of what was last given out there. A larger
 * block that comes to lie where a pool was clears its place. Pools that nobody has been given a block of since
 * are not in the table; blocks of them are counted as freed without a size.
 *
 * The GIL is held, but in the raw domain, whose hooks use nothing that is shared. */
#include "memory.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_MOST 512u
#define GRAIN 16u
#if PY_VERSION_HEX >= 0x030a0000
#define POOL_BITS 14u
#else
#define POOL_BITS 12u
#endif
#define LEAF_BITS 16u
#define TOP_BITS (47u - POOL_BITS - LEAF_BITS)

static struct {
    unsigned wanted;
    bool installed, pools; /* pools: small blocks come from Python's own allocator */
    PyMemAllocatorEx raw, mem, obj;
    PyObjectArenaAllocator arena;
    uint8_t **top; /* leaves by the highest bits of an address */
} hooks;

/* --- sizes of pools --- */

static uint8_t *pool_at(const void *block, bool make)
{
    const uintptr_t pool = (uintptr_t)block >> POOL_BITS;
    const uintptr_t high = pool >> LEAF_BITS;
    if (high >> TOP_BITS) {
        return NULL;
    }
    uint8_t *leaf = hooks.top[high];
    if (!leaf) {
        if (!make) {
            return NULL;
        }
        leaf = mmap(NULL, (size_t)1 << LEAF_BITS, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (leaf == MAP_FAILED) {
            return NULL;
        }
        hooks.top[high] = leaf;
    }
    return &leaf[pool & (((uintptr_t)1 << LEAF_BITS) - 1)];
}

static inline size_t size_of_class(uint8_t class)
{
    return (size_t) class * GRAIN;
}

static inline uint8_t class_of(size_t size)
{
    return (uint8_t)(size ? (size + GRAIN - 1) / GRAIN : 1);
}

static inline bool is_small(size_t size)
{
    return size <= SMALL_MOST && hooks.pools;
}

static void small_made(unsigned part, const void *block, size_t size)
{
    const uint8_t class = class_of(size);
    uint8_t *pool = pool_at(block, true);
    if (pool) {
        *pool = class;
    }
    sw_heap_add(part, block, size_of_class(class));
}

/* The size of a small block; 0: it is none, or nobody knows. */
static inline size_t small_size(const void *block)
{
    const uint8_t *pool = hooks.pools ? pool_at(block, false) : NULL;
    return pool ? size_of_class(*pool) : 0;
}

static void large_made(const void *block)
{
    uint8_t *pool = block && hooks.pools ? pool_at(block, false) : NULL;
    if (pool) {
        *pool = 0;
    }
}

/* --- the domains of objects and of small buffers --- */

struct domain {
    unsigned part;
    PyMemAllocatorEx *original;
};
static struct domain domain_mem = {SW_HEAP_MEM, &hooks.mem};
static struct domain domain_obj = {SW_HEAP_OBJECT, &hooks.obj};

static void *hook_malloc(void *context, size_t size)
{
    const struct domain *domain = context;
    PyMemAllocatorEx *original = domain->original;
    if (is_small(size)) {
        void *block = original->malloc(original->ctx, size);
        if (block) {
            small_made(domain->part, block, size);
        }
        return block;
    }
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    here->within = domain->part;
    void *block = original->malloc(original->ctx, size);
    here->within = before;
    large_made(block);
    return block;
}

static void *hook_calloc(void *context, size_t count, size_t size)
{
    const struct domain *domain = context;
    PyMemAllocatorEx *original = domain->original;
    const bool fits = size == 0 || count <= SMALL_MOST / size;
    if (fits && is_small(count * size)) {
        void *block = original->calloc(original->ctx, count, size);
        if (block) {
            small_made(domain->part, block, count * size);
        }
        return block;
    }
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    here->within = domain->part;
    void *block = original->calloc(original->ctx, count, size);
    here->within = before;
    large_made(block);
    return block;
}

static void hook_free(void *context, void *block)
{
    const struct domain *domain = context;
    PyMemAllocatorEx *original = domain->original;
    const size_t size = block ? small_size(block) : 0;
    if (size) {
        sw_heap_sub(domain->part, block, size);
        original->free(original->ctx, block);
        return;
    }
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    here->within = domain->part;
    original->free(original->ctx, block);
    here->within = before;
}

static void *hook_realloc(void *context, void *old, size_t size)
{
    const struct domain *domain = context;
    PyMemAllocatorEx *original = domain->original;
    if (!old) {
        return hook_malloc(context, size);
    }
    const size_t old_size = small_size(old);
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    if (old_size) {
        /* Before the place can be another's. */
        sw_heap_sub(domain->part, old, old_size);
    }
    const uint64_t calls = sw_heap_calls(domain->part);
    here->within = domain->part;
    void *block = original->realloc(original->ctx, old, size);
    here->within = before;
    if (old_size && (!block || block == old)) {
        sw_heap_add(domain->part, old, old_size); /* it is as it was */
    } else if (block && block != old && is_small(size) &&
               sw_heap_calls(domain->part) == calls) {
        small_made(domain->part, block, size);
    } else {
        large_made(block);
    }
    return block;
}

/* --- the raw domain, and arenas --- */

/* What malloc is called for by Python, unless it is for another domain. */
static inline sw_heap_here *raw_begin(uint32_t *before)
{
    sw_heap_here *here = sw_heap_get_here();
    *before = here->within;
    if (*before == SW_HEAP_NATIVE) {
        here->within = SW_HEAP_RAW;
    }
    return here;
}

static void *raw_malloc(void *context, size_t size)
{
    (void)context;
    uint32_t before;
    sw_heap_here *here = raw_begin(&before);
    void *block = hooks.raw.malloc(hooks.raw.ctx, size);
    here->within = before;
    return block;
}

static void *raw_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    uint32_t before;
    sw_heap_here *here = raw_begin(&before);
    void *block = hooks.raw.calloc(hooks.raw.ctx, count, size);
    here->within = before;
    return block;
}

static void *raw_realloc(void *context, void *old, size_t size)
{
    (void)context;
    uint32_t before;
    sw_heap_here *here = raw_begin(&before);
    void *block = hooks.raw.realloc(hooks.raw.ctx, old, size);
    here->within = before;
    return block;
}

static void raw_free(void *context, void *block)
{
    (void)context;
    uint32_t before;
    sw_heap_here *here = raw_begin(&before);
    hooks.raw.free(hooks.raw.ctx, block);
    here->within = before;
}

static void *arena_alloc(void *context, size_t size)
{
    (void)context;
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    here->within = SW_HEAP_NOBODY;
    void *arena = hooks.arena.alloc(hooks.arena.ctx, size);
    here->within = before;
    return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
    (void)context;
    sw_heap_here *here = sw_heap_get_here();
    const uint32_t before = here->within;
    here->within = SW_HEAP_NOBODY;
    hooks.arena.free(hooks.arena.ctx, arena, size);
    here->within = before;
}

/* --- on and off --- */

static PyMemAllocatorEx own_raw = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
static PyMemAllocatorEx own_mem = {&domain_mem, hook_malloc, hook_calloc, hook_realloc,
                                   hook_free};
static PyMemAllocatorEx own_obj = {&domain_obj, hook_malloc, hook_calloc, hook_realloc,
                                   hook_free};
static PyObjectArenaAllocator own_arena = {NULL, arena_alloc, arena_free};

/* Whether small blocks come from pools. Where somebody else has hooks already nobody says; then those of malloc would be the
 * same for both domains. With debug hooks blocks are larger than what is asked for, and their sizes are not known. */
static bool has_pools(void)
{
#ifdef Py_GIL_DISABLED
    return false;
#else
    const char *(*name_of)(void) = NULL;
    *(void **)&name_of = dlsym(RTLD_DEFAULT, "_PyMem_GetCurrentAllocatorName");
    const char *name = name_of ? name_of() : NULL;
    return name ? strcmp(name, "pymalloc") == 0 : hooks.obj.malloc != hooks.raw.malloc;
#endif
}

void memory_hooks_install(void)
{
    if (hooks.wanted++ > 0 || hooks.installed) {
        return;
    }
    PyMem_GetAllocator(PYMEM_DOMAIN_RAW, &hooks.raw);
    PyMem_GetAllocator(PYMEM_DOMAIN_MEM, &hooks.mem);
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &hooks.obj);
    PyObject_GetArenaAllocator(&hooks.arena);
    hooks.pools = has_pools();
    if (hooks.pools && !hooks.top) {
        void *pages = mmap(NULL, sizeof(uint8_t *) << TOP_BITS, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) {
            return;
        }
        hooks.top = pages;
    }
    PyMem_SetAllocator(PYMEM_DOMAIN_RAW, &own_raw);
#ifndef Py_GIL_DISABLED
    PyMem_SetAllocator(PYMEM_DOMAIN_MEM, &own_mem);
    PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &own_obj);
    if (hooks.pools) {
        PyObject_SetArenaAllocator(&own_arena);
    }
#endif
    hooks.installed = true;
}

static void put_back(PyMemAllocatorDomain domain, const PyMemAllocatorEx *own,
                     PyMemAllocatorEx *original)
{
    PyMemAllocatorEx now;
    PyMem_GetAllocator(domain, &now);
    if (now.malloc == own->malloc && now.ctx == own->ctx) {
        PyMem_SetAllocator(domain, original);
    }
}

/* Where somebody else came after us (tracemalloc), our hooks stay under theirs, and count nothing that is read. */
void memory_hooks_remove(void)
{
    if (hooks.wanted == 0 || --hooks.wanted > 0 || !hooks.installed) {
        return;
    }
    PyMemAllocatorEx now;
    PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &now);
#ifndef Py_GIL_DISABLED
    if (now.malloc != own_obj.malloc || now.ctx != own_obj.ctx) {
        return;
    }
    if (hooks.pools) {
        PyObject_SetArenaAllocator(&hooks.arena);
    }
    put_back(PYMEM_DOMAIN_OBJ, &own_obj, &hooks.obj);
    put_back(PYMEM_DOMAIN_MEM, &own_mem, &hooks.mem);
#endif
    put_back(PYMEM_DOMAIN_RAW, &own_raw, &hooks.raw);
    hooks.installed = false;
}
