/* What is called in place of malloc and its kin, and of mmap.
 *
 * A block counts with what it takes, before it is freed as after it was allocated: what is freed then fits what was allocated,
 * whoever asked for how much, and nothing has to be remembered of a block. The malloc of the GNU C library keeps that before each
 * block; any other (jemalloc, tcmalloc) is asked with malloc_usable_size, which belongs to the malloc in force, and has
 * hooks of its own (any_…), for what lies before its blocks must not be read. Objects that are bound to another malloc than
 * the rest keep it, and are not seen.
 *
 * Most blocks of a C++ program come from operator new, which is malloc one call further away, and delete is free two calls away.
 * Where nobody has replaced any of these (heap_new.c) the hooks stand in for the operators, and go to malloc and free themselves: what
 * counting takes is then saved on the way. */
#include "watch/heap.h"

#include "watch/plt.h"
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/mman.h>

enum {
    MALLOC,
    CALLOC,
    REALLOC,
    REALLOCARRAY,
    FREE,
    MEMALIGN,
    POSIX_MEMALIGN,
    ALIGNED_ALLOC,
    VALLOC,
    PVALLOC,
    MMAP,
    MMAP64,
    MUNMAP,
    MREMAP,
    HOOKS
};

static struct sw__plt_hook hooks[HOOKS];
static struct sw__plt_hook operators[SW__HEAP_OPERATORS];

#if SW__TSAN
#define ORIGINAL(which, type) ((type)sw__plt_original(&hooks[which]))
#else
/* Called in place, as what a relaxed load gives would not be. */
#define ORIGINAL(which, type) ((type)hooks[which].original)
#endif
#define CALLER() __builtin_return_address(0)

/* The GNU C library has had the size of a block before it for decades; the lowest bits are flags. Read only where it was seen to be
 * so. */
static bool heads;
#define HEAD_MAPPED 2u

SW__INLINE size_t size_by_head(const void *block)
{
    return *(const size_t *)((uintptr_t)block - sizeof(size_t)) & ~(size_t)7;
}

SW__INLINE size_t size_of(void *block)
{
    return SW__LIKELY(heads) ? size_by_head(block) : malloc_usable_size(block);
}

/* Whether the head says what malloc says: a block that was mapped by itself has two words of it. */
static bool is_head_right(void *block)
{
    const size_t flags = *(const size_t *)((uintptr_t)block - sizeof(size_t)) & 7;
    return size_by_head(block) ==
           malloc_usable_size(block) + (flags & HEAD_MAPPED ? 16 : 8);
}

/* Whether the malloc in force is that of the GNU C library, and its heads say what it says. */
static bool look_at_heads(void)
{
    Dl_info of_malloc, of_libc;
    bool same = dladdr(sw__plt_resolve("malloc"), &of_malloc) &&
                dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &of_libc) &&
                of_malloc.dli_fbase == of_libc.dli_fbase;
    /* A checker that stands in its place (valgrind) gives out what was asked for, and looks at who reads before a block. */
    void *least = same ? malloc(1) : NULL;
    same = least && malloc_usable_size(least) == 24;
    free(least);
    static const size_t sizes[] = {1, 24, 25, 1000, 5000, 100000, 300000, 40000000};
    for (size_t i = 0; i < SW__COUNTOF(sizes) && same; i++) {
        void *block = malloc(sizes[i]);
        same = block && is_head_right(block);
        free(block);
    }
    return same;
}

/* Where the code of a malloc lies that is part of the program itself; a library that has one is left alone (plt.c). What it
 * maps it gives out, so that is not counted twice; and it holds its locks meanwhile, so nothing may be done here. */
static uintptr_t own_malloc, own_malloc_end;

static int see_program(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size, (void)arg;
    const void *function = hooks[MALLOC].original;
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        const uintptr_t begin = (uintptr_t)(object->dlpi_addr + segment->p_vaddr);
        if (segment->p_type == PT_LOAD &&
            (uintptr_t)function - begin < segment->p_memsz) {
            own_malloc = begin;
            own_malloc_end = begin + segment->p_memsz;
        }
    }
    return 1; /* the program comes first */
}

static bool is_own_malloc(const void *caller)
{
    return (uintptr_t)caller - own_malloc < own_malloc_end - own_malloc;
}

/* A call that does not count for its thread: for nobody, or the thread is ending. */
static SW__COLD void elsewhere(const struct sw__heap_thread *thread, size_t allocated,
                               size_t freed)
{
    if (thread->within == SW__HEAP_LATE) {
        sw__heap_late(SW_HEAP_NATIVE, allocated, freed);
    }
}

/* Counts a block that was given out, and returns it. An interpreter's own calls say nothing about who it is for. */
static SW__NOINLINE void *took_specially(void *block, const void *caller)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    const unsigned part = thread->within;
    if (SW__LIKELY(part < SW_HEAP_PARTS)) {
        sw__heap_took(thread, part, block, size_of(block),
                      part == SW_HEAP_NATIVE ? caller : NULL);
    } else {
        elsewhere(thread, size_of(block), 0);
    }
    return block;
}

static SW__NOINLINE void *took_last(struct sw__heap_thread *thread, void *block,
                                    const void *caller)
{
    sw__heap_slow(thread, block, size_of(block), caller);
    return block;
}

/* There is more in use than before, or there is a trap: `bytes` were taken from `room`. */
static SW__NOINLINE void *took_above(struct sw__heap_thread *thread, void *block,
                                     size_t bytes, const void *caller)
{
    if (SW__UNLIKELY(!sw__heap_rise(thread))) {
        (void)sw__heap_more(&thread->room, bytes);
        return took_specially(block, caller);
    }
    sw__add(&thread->blocks, 1);
    return sw__heap_less(&thread->until, bytes) ? took_last(thread, block, caller)
                                                : block;
}

/* Counts a block with a head, and returns it. Who called is asked for where it is wanted, so that others need not. */
SW__INLINE void *took(void *block)
{
    struct sw__heap_thread *thread = sw__heap_self;
    const size_t bytes = size_by_head(block);
    if (sw__heap_less(&thread->room, bytes)) {
        return took_above(thread, block, bytes, CALLER());
    }
    sw__add(&thread->blocks, 1);
    if (sw__heap_less(&thread->until, bytes)) {
        return took_last(thread, block, CALLER());
    }
    return block;
}

SW__HOT static void *hook_malloc(size_t size)
{
    void *block = ORIGINAL(MALLOC, void *(*)(size_t))(size);
    return SW__LIKELY(block != NULL) ? took(block) : NULL;
}

static SW__NOINLINE void free_specially(void *block)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    const unsigned part = thread->within;
    if (SW__LIKELY(part < SW_HEAP_PARTS)) {
        sw__heap_leaves(block);
        sw__heap_gave(thread, part, size_of(block));
    } else {
        elsewhere(thread, 0, size_of(block));
    }
    ORIGINAL(FREE, void (*)(void *))(block);
}

/* Where a block goes that was counted: it is freed, or first looked for among those that were sampled. */
static void (*free_next)(void *block);

static void free_sampled(void *block)
{
    sw__heap_leaves(block);
    ORIGINAL(FREE, void (*)(void *))(block);
}

void sw__heap_hooks_sampled(bool some)
{
    void *original = sw__plt_original(&hooks[FREE]);
    __atomic_store_n(&free_next, some ? free_sampled : (void (*)(void *))original,
                     __ATOMIC_RELAXED);
}

SW__HOT static void hook_free(void *block)
{
    if (SW__LIKELY(block != NULL)) {
        struct sw__heap_thread *thread = sw__heap_self;
        const size_t bytes = size_by_head(block);
        if (sw__heap_more(&thread->room, bytes)) {
            (void)sw__heap_less(&thread->room, bytes);
            free_specially(block);
            return;
        }
        sw__add(&thread->blocks_freed, 1);
    }
#if SW__TSAN
    __atomic_load_n(&free_next, __ATOMIC_RELAXED)(block);
#else
    free_next(block);
#endif
}

/* The operator itself is wanted only where there is no memory: it calls the program's handler, and throws. */
static SW__NOINLINE void *new_fails(size_t size)
{
    void *const operator_new = sw__plt_original(&operators[SW__HEAP_NEW]);
    return ((void *(*)(size_t))operator_new)(size);
}

SW__HOT static void *hook_new(size_t size)
{
    void *block = ORIGINAL(MALLOC, void *(*)(size_t))(size);
    return SW__LIKELY(block != NULL) ? took(block) : new_fails(size);
}

static void *hook_calloc(size_t count, size_t size)
{
    void *block = ORIGINAL(CALLOC, void *(*)(size_t, size_t))(count, size);
    return block ? took(block) : NULL;
}

/* The rest of realloc and reallocarray. A block that stays where it is has changed its size all the same. */
static void resized(void *old, size_t before, void *block, bool freed, const void *caller)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    const unsigned part = thread->within;
    const bool gone = old && (block || freed);
    if (part >= SW_HEAP_PARTS) {
        elsewhere(thread, block ? size_of(block) : 0, gone ? before : 0);
        return;
    }
    if (gone) {
        sw__heap_gave(thread, part, before);
    }
    if (block) {
        sw__heap_took(thread, part, block, size_of(block),
                      part == SW_HEAP_NATIVE ? caller : NULL);
    }
}

/* Before the block is given up: another thread may get its address at once. */
static size_t leaving(void *block)
{
    if (!block) {
        return 0;
    }
    sw__heap_leaves(block);
    return size_of(block);
}

static void *hook_realloc(void *old, size_t size)
{
    const size_t before = leaving(old);
    void *block = ORIGINAL(REALLOC, void *(*)(void *, size_t))(old, size);
    resized(old, before, block, size == 0, CALLER());
    return block;
}

static void *hook_reallocarray(void *old, size_t count, size_t size)
{
    const size_t before = leaving(old);
    void *block =
        ORIGINAL(REALLOCARRAY, void *(*)(void *, size_t, size_t))(old, count, size);
    resized(old, before, block, count == 0 || size == 0, CALLER());
    return block;
}

static void *hook_memalign(size_t alignment, size_t size)
{
    void *block = ORIGINAL(MEMALIGN, void *(*)(size_t, size_t))(alignment, size);
    return block ? took(block) : NULL;
}

static SW__NOINLINE int aligned_above(struct sw__heap_thread *thread, void *block,
                                      size_t bytes, const void *caller)
{
    (void)took_above(thread, block, bytes, caller);
    return 0;
}

static SW__NOINLINE int aligned_last(struct sw__heap_thread *thread, void *block,
                                     const void *caller)
{
    (void)took_last(thread, block, caller);
    return 0;
}

SW__HOT static int hook_posix_memalign(void **out, size_t alignment, size_t size)
{
    const int error =
        ORIGINAL(POSIX_MEMALIGN, int (*)(void **, size_t, size_t))(out, alignment, size);
    if (SW__UNLIKELY(error != 0)) {
        return error;
    }
    /* As in took, but that what is returned is no block. */
    struct sw__heap_thread *thread = sw__heap_self;
    const size_t bytes = size_by_head(*out);
    if (sw__heap_less(&thread->room, bytes)) {
        return aligned_above(thread, *out, bytes, CALLER());
    }
    sw__add(&thread->blocks, 1);
    if (sw__heap_less(&thread->until, bytes)) {
        return aligned_last(thread, *out, CALLER());
    }
    return error;
}

static void *hook_aligned_alloc(size_t alignment, size_t size)
{
    void *block = ORIGINAL(ALIGNED_ALLOC, void *(*)(size_t, size_t))(alignment, size);
    return block ? took(block) : NULL;
}

/* --- those of a malloc whose blocks have no head that is known, and those that hardly anybody calls --- */

static void *any_took(void *block, const void *caller)
{
    return block ? took_specially(block, caller) : NULL;
}

static void *any_malloc(size_t size)
{
    return any_took(ORIGINAL(MALLOC, void *(*)(size_t))(size), CALLER());
}

static void *any_calloc(size_t count, size_t size)
{
    return any_took(ORIGINAL(CALLOC, void *(*)(size_t, size_t))(count, size), CALLER());
}

static void any_free(void *block)
{
    if (block) {
        free_specially(block);
    }
}

static void *any_memalign(size_t alignment, size_t size)
{
    return any_took(ORIGINAL(MEMALIGN, void *(*)(size_t, size_t))(alignment, size),
                    CALLER());
}

static int any_posix_memalign(void **out, size_t alignment, size_t size)
{
    const int error =
        ORIGINAL(POSIX_MEMALIGN, int (*)(void **, size_t, size_t))(out, alignment, size);
    if (error == 0) {
        (void)any_took(*out, CALLER());
    }
    return error;
}

static void *any_aligned_alloc(size_t alignment, size_t size)
{
    return any_took(ORIGINAL(ALIGNED_ALLOC, void *(*)(size_t, size_t))(alignment, size),
                    CALLER());
}

static void *hook_valloc(size_t size)
{
    return any_took(ORIGINAL(VALLOC, void *(*)(size_t))(size), CALLER());
}

static void *hook_pvalloc(size_t size)
{
    return any_took(ORIGINAL(PVALLOC, void *(*)(size_t))(size), CALLER());
}

/* --- mappings --- */

/* Anonymous mappings that were counted, so that unmapping a file is not taken for giving memory back. They are few and
 * change seldom: a list under a lock that is held for a moment. */
enum { MAPPINGS = 4096 };
struct mapping {
    uintptr_t begin, end;
};
static struct {
    atomic_flag lock;
    size_t count;
    struct mapping list[MAPPINGS];
} mapped = {.lock = ATOMIC_FLAG_INIT};

static void mapped_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&mapped.lock, memory_order_acquire)) {
    }
}

static void mapped_unlock(void)
{
    atomic_flag_clear_explicit(&mapped.lock, memory_order_release);
}

static bool map_add(uintptr_t begin, uintptr_t end)
{
    const bool room = mapped.count < MAPPINGS;
    if (room) {
        mapped.list[mapped.count++] = (struct mapping){begin, end};
    }
    return room;
}

/* Takes a range out of the list. The bytes of it that were there. */
static size_t map_remove(uintptr_t begin, uintptr_t end)
{
    size_t bytes = 0;
    for (size_t i = 0; i < mapped.count;) {
        struct mapping *at = &mapped.list[i];
        const struct mapping whole = *at;
        const uintptr_t from = begin > whole.begin ? begin : whole.begin;
        const uintptr_t to = end < whole.end ? end : whole.end;
        if (from >= to) {
            i++;
            continue;
        }
        bytes += to - from;
        *at = mapped.list[--mapped.count];
        if (whole.begin < from) {
            (void)map_add(whole.begin, from);
        }
        if (to < whole.end) {
            (void)map_add(to, whole.end);
        }
    }
    return bytes;
}

static bool map_has(uintptr_t address)
{
    for (size_t i = 0; i < mapped.count; i++) {
        if (address >= mapped.list[i].begin && address < mapped.list[i].end) {
            return true;
        }
    }
    return false;
}

static size_t whole_pages(size_t length)
{
    return (length + 4095) & ~(size_t)4095;
}

/* A signal handler that maps memory while its thread is in the list would wait for itself: `busy` says so. */
static void map_changed(const void *gone, size_t gone_length, const void *made,
                        size_t made_length, const void *caller)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    if (thread->busy || thread->within >= SW_HEAP_PARTS) {
        return;
    }
    thread->busy = 1;
    mapped_lock();
    const uintptr_t begin = (uintptr_t)gone;
    const size_t bytes = gone ? map_remove(begin, begin + whole_pages(gone_length)) : 0;
    if (made) {
        /* What the list has there went while nobody looked, or the place would not be free. */
        (void)map_remove((uintptr_t)made, (uintptr_t)made + whole_pages(made_length));
    }
    const bool added =
        made && map_add((uintptr_t)made, (uintptr_t)made + whole_pages(made_length));
    mapped_unlock();
    thread->busy = 0;
    const bool hasty = thread->hasty;
    thread->hasty = true;
    if (bytes) {
        sw__heap_leaves(gone);
        sw__heap_gave(thread, SW_HEAP_MAPPED, bytes);
    }
    if (added) {
        sw__heap_took(thread, SW_HEAP_MAPPED, made, whole_pages(made_length), caller);
    }
    thread->hasty = hasty;
}

static void map_made(void *block, size_t length, int prot, int flags, const void *caller)
{
    if (block == MAP_FAILED || is_own_malloc(caller)) {
        return;
    }
    /* Address space that nobody may touch is no memory; a mapping at a fixed place replaces what was there. */
    const bool counts = (flags & MAP_ANONYMOUS) && prot != PROT_NONE;
    if (counts || (flags & MAP_FIXED)) {
        map_changed(flags & MAP_FIXED ? block : NULL, length, counts ? block : NULL,
                    length, caller);
    }
}

static void *hook_mmap(void *address, size_t length, int prot, int flags, int fd,
                       off_t offset)
{
    void *block = ORIGINAL(MMAP, void *(*)(void *, size_t, int, int, int, off_t))(
        address, length, prot, flags, fd, offset);
    map_made(block, length, prot, flags, CALLER());
    return block;
}

static void *hook_mmap64(void *address, size_t length, int prot, int flags, int fd,
                         off64_t offset)
{
    void *block = ORIGINAL(MMAP64, void *(*)(void *, size_t, int, int, int, off64_t))(
        address, length, prot, flags, fd, offset);
    map_made(block, length, prot, flags, CALLER());
    return block;
}

static int hook_munmap(void *address, size_t length)
{
    /* First, for another thread may get the place at once. A call that fails had a wrong address, as a rule. */
    if (!is_own_malloc(CALLER())) {
        map_changed(address, length, NULL, 0, NULL);
    }
    return ORIGINAL(MUNMAP, int (*)(void *, size_t))(address, length);
}

static void *hook_mremap(void *old, size_t before, size_t after, int flags, void *place)
{
    void *block = ORIGINAL(MREMAP, void *(*)(void *, size_t, size_t, int, ...))(
        old, before, after, flags, place);
    if (block == MAP_FAILED || is_own_malloc(CALLER())) {
        return block;
    }
    struct sw__heap_thread *thread = sw__heap_here_now();
    if (!thread->busy) {
        thread->busy = 1;
        mapped_lock();
        const bool ours = map_has((uintptr_t)old);
        mapped_unlock();
        thread->busy = 0;
        if (ours) {
            map_changed(old, before, block, after, CALLER());
        }
    }
    return block;
}

/* --- the set --- */

#define HOOK(which, function)                                                            \
    [which] = {.name = #function, .replacement = (void *)hook_##function}
static struct sw__plt_hook hooks[HOOKS] = {
    HOOK(MALLOC, malloc),
    HOOK(CALLOC, calloc),
    HOOK(REALLOC, realloc),
    HOOK(REALLOCARRAY, reallocarray),
    HOOK(FREE, free),
    HOOK(MEMALIGN, memalign),
    HOOK(POSIX_MEMALIGN, posix_memalign),
    HOOK(ALIGNED_ALLOC, aligned_alloc),
    HOOK(VALLOC, valloc),
    HOOK(PVALLOC, pvalloc),
    HOOK(MMAP, mmap),
    HOOK(MMAP64, mmap64),
    HOOK(MUNMAP, munmap),
    HOOK(MREMAP, mremap),
};
static struct sw__plt_set set = {.hooks = hooks, .count = HOOKS};

/* The size that delete may be told is not the block's, and is not looked at. */
static struct sw__plt_hook operators[SW__HEAP_OPERATORS] = {
    [SW__HEAP_NEW] = {.name = "_Znwm", .replacement = (void *)hook_new},
    [SW__HEAP_DELETE] = {.name = "_ZdlPv", .replacement = (void *)hook_free},
    [SW__HEAP_DELETE_SIZED] = {.name = "_ZdlPvm", .replacement = (void *)hook_free},
};
static struct sw__plt_set operator_set = {.hooks = operators,
                                          .count = SW__HEAP_OPERATORS};

/* malloc and free themselves. */
static void *own_functions[2];

static void choose_hooks(void)
{
    heads = look_at_heads();
    own_functions[0] = sw__plt_resolve("malloc");
    own_functions[1] = sw__plt_resolve("free");
    hooks[MALLOC].replacement = heads ? (void *)hook_malloc : (void *)any_malloc;
    hooks[CALLOC].replacement = heads ? (void *)hook_calloc : (void *)any_calloc;
    hooks[FREE].replacement = heads ? (void *)hook_free : (void *)any_free;
    hooks[MEMALIGN].replacement = heads ? (void *)hook_memalign : (void *)any_memalign;
    hooks[POSIX_MEMALIGN].replacement =
        heads ? (void *)hook_posix_memalign : (void *)any_posix_memalign;
    hooks[ALIGNED_ALLOC].replacement =
        heads ? (void *)hook_aligned_alloc : (void *)any_aligned_alloc;
    free_next = (void (*)(void *))own_functions[1];
}

/* --- operators, whose library may come later --- */

static struct {
    atomic_flag looking; /* one thread is at it */
    _Atomic enum sw__heap_operators_are are;
    _Atomic bool wanted;      /* the hooks are there */
    _Atomic uint64_t objects; /* at the last look */
} cxx = {.looking = ATOMIC_FLAG_INIT};

static enum sw__heap_operators_are operators_now(void)
{
    enum sw__heap_operators_are are = atomic_load(&cxx.are);
    if (are == SW__HEAP_OPERATORS_ABSENT && heads) {
        const struct sw__heap_stand_ins ours = {own_functions[0], own_functions[1],
                                                hooks[MALLOC].replacement,
                                                hooks[FREE].replacement};
        atomic_store(&cxx.objects, sw__heap_objects());
        are = sw__heap_operators(operators, &ours);
        atomic_store(&cxx.are, are);
    }
    return are;
}

/* Before an object is asked for something, which was perhaps loaded just now, with the library. */
static void operators_later(void)
{
    if (atomic_load_explicit(&cxx.are, memory_order_relaxed) !=
            SW__HEAP_OPERATORS_ABSENT ||
        !atomic_load(&cxx.wanted) || sw__heap_objects() == atomic_load(&cxx.objects) ||
        atomic_flag_test_and_set(&cxx.looking)) {
        return;
    }
    if (operators_now() == SW__HEAP_OPERATORS_PLAIN) {
        if (sw__plt_try_add(&operator_set) != 0) {
            /* Another thread is at it, and may wait for this one: at the next call, then. */
            atomic_store(&cxx.are, SW__HEAP_OPERATORS_ABSENT);
            atomic_store(&cxx.objects, 0);
        } else if (!atomic_load(&cxx.wanted)) {
            sw__plt_remove(&operator_set);
        }
    }
    atomic_flag_clear(&cxx.looking);
}

int sw__heap_hooks_add(sw_error_info *info)
{
    static bool chosen;
    /* Once: which malloc is in force does not change, and calls may still be inside a hook. */
    if (!chosen) {
        choose_hooks();
        chosen = true;
    }
    struct sw__plt_set *const sets[] = {&set, &operator_set};
    const bool looks = !atomic_flag_test_and_set(&cxx.looking);
    const bool plain = looks && operators_now() == SW__HEAP_OPERATORS_PLAIN;
    int result = sw__plt_add_all(sets, plain ? 2 : 1, info);
    if (result != 0 && plain) {
        result = sw__plt_add(&set, info);
    }
    if (looks) {
        atomic_flag_clear(&cxx.looking);
    }
    if (result == 0) {
        dl_iterate_phdr(see_program, NULL);
        atomic_store(&cxx.wanted, heads);
        atomic_store(&sw__plt_asking, heads ? operators_later : NULL);
    }
    return result;
}

void sw__heap_hooks_remove(void)
{
    struct sw__plt_set *const sets[] = {&operator_set, &set};
    /* Who finds the operators right now looks at this once they are there. */
    atomic_store(&cxx.wanted, false);
    sw__plt_remove_all(sets, 2);
}

void sw__heap_hooks_forked(void)
{
    mapped_unlock();
    atomic_flag_clear(&cxx.looking);
}
