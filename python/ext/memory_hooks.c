/* Hooks in Python's allocators: those for the domains of objects and of small buffers, which are the core's
 * (sw_heap_pools_count), and for the raw domain and arenas. The GIL is held, but in the raw domain, whose hooks use nothing that is shared. */
#include "memory.h"

#include <dlfcn.h>
#include <string.h>

#define SMALL_MOST 512u
#if PY_VERSION_HEX >= 0x030a0000
#define POOL_BITS 14u
#else
#define POOL_BITS 12u
#endif

static struct {
    unsigned wanted;
    bool installed, pools; /* pools: small blocks come from Python's own allocator */
    PyMemAllocatorEx raw, mem, obj;
    PyObjectArenaAllocator arena;
} hooks;

/* --- the raw domain, and arenas --- */

/* What malloc is called for by Python, unless it is for another domain. */
static unsigned raw_begin(void)
{
    const unsigned before = sw_heap_within();
    if (before == SW_HEAP_NATIVE) {
        sw_heap_set_within(SW_HEAP_RAW);
    }
    return before;
}

static void *raw_malloc(void *context, size_t size)
{
    (void)context;
    const unsigned before = raw_begin();
    void *block = hooks.raw.malloc(hooks.raw.ctx, size);
    sw_heap_set_within(before);
    return block;
}

static void *raw_calloc(void *context, size_t count, size_t size)
{
    (void)context;
    const unsigned before = raw_begin();
    void *block = hooks.raw.calloc(hooks.raw.ctx, count, size);
    sw_heap_set_within(before);
    return block;
}

static void *raw_realloc(void *context, void *old, size_t size)
{
    (void)context;
    const unsigned before = raw_begin();
    void *block = hooks.raw.realloc(hooks.raw.ctx, old, size);
    sw_heap_set_within(before);
    return block;
}

static void raw_free(void *context, void *block)
{
    (void)context;
    const unsigned before = raw_begin();
    hooks.raw.free(hooks.raw.ctx, block);
    sw_heap_set_within(before);
}

static void *arena_alloc(void *context, size_t size)
{
    (void)context;
    const unsigned before = sw_heap_within();
    sw_heap_set_within(SW_HEAP_NOBODY);
    void *arena = hooks.arena.alloc(hooks.arena.ctx, size);
    sw_heap_set_within(before);
    return arena;
}

static void arena_free(void *context, void *arena, size_t size)
{
    (void)context;
    const unsigned before = sw_heap_within();
    sw_heap_set_within(SW_HEAP_NOBODY);
    hooks.arena.free(hooks.arena.ctx, arena, size);
    sw_heap_set_within(before);
}

/* --- on and off --- */

static PyMemAllocatorEx own_raw = {NULL, raw_malloc, raw_calloc, raw_realloc, raw_free};
static PyMemAllocatorEx own_mem, own_obj;
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

static PyMemAllocatorEx counted(unsigned part, const PyMemAllocatorEx *original)
{
    const sw_heap_allocator theirs = {original->ctx, original->malloc, original->calloc,
                                      original->realloc, original->free};
    const sw_heap_allocator ours =
        sw_heap_pools_count(part, &theirs, hooks.pools ? SMALL_MOST : 0);
    return (PyMemAllocatorEx){ours.context, ours.malloc, ours.calloc, ours.realloc,
                              ours.free};
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
    if (sw_heap_pools_prepare(hooks.pools ? POOL_BITS : 0) != SW_OK) {
        return;
    }
    own_mem = counted(SW_HEAP_MEM, &hooks.mem);
    own_obj = counted(SW_HEAP_OBJECT, &hooks.obj);
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
