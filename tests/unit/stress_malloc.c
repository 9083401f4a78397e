/* A malloc that signal handlers may call: an address that only grows, and nothing that waits. What a test finds waiting with it
 * is therefore not the malloc. Blocks are not used again; untouched pages cost nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SPACE ((size_t)64 << 30)

struct head {
    size_t size, unused;
};

static _Atomic(char *) space;
static _Atomic size_t used;

static char *space_get(void)
{
    char *at = atomic_load(&space);
    if (at) {
        return at;
    }
    char *mine = mmap(NULL, SPACE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mine == MAP_FAILED) {
        abort();
    }
    if (!atomic_compare_exchange_strong(&space, &at, mine)) {
        munmap(mine, SPACE);
        return at;
    }
    return mine;
}

static void *take(size_t alignment, size_t size)
{
    char *base = space_get();
    alignment = alignment < 16 ? 16 : alignment;
    if (size > SPACE / 2) {
        errno = ENOMEM;
        return NULL;
    }
    const size_t whole = (size + sizeof(struct head) + alignment + 15) & ~(size_t)15;
    const size_t at = atomic_fetch_add(&used, whole);
    if (at + whole > SPACE) {
        errno = ENOMEM;
        return NULL;
    }
    const uintptr_t block =
        ((uintptr_t)(base + at) + sizeof(struct head) + alignment - 1) & ~(alignment - 1);
    ((struct head *)block)[-1].size = size;
    return (void *)block;
}

void *malloc(size_t size)
{
    return take(16, size);
}

void free(void *block)
{
    (void)block;
}

void *calloc(size_t count, size_t size)
{
    size_t whole;
    return __builtin_mul_overflow(count, size, &whole) ? NULL : take(16, whole);
}

size_t malloc_usable_size(void *block)
{
    return block ? ((struct head *)block)[-1].size : 0;
}

void *realloc(void *old, size_t size)
{
    void *block = take(16, size);
    if (old && block) {
        const size_t before = malloc_usable_size(old);
        memcpy(block, old, before < size ? before : size);
    }
    return block;
}

void *memalign(size_t alignment, size_t size)
{
    return take(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return take(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = take(alignment, size);
    return *out ? 0 : ENOMEM;
}
