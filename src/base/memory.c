/* The heap seam. It counts, so that a test can prove a path free of allocation. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static _Atomic uint64_t calls;

/* The one way to the heap. A request for nothing still gets an address, so that NULL
 * means one thing only; one beyond PTRDIFF_MAX is refused here, for a sanitizer's heap
 * aborts. */
static void *take(void *old, size_t count, size_t size, bool zero)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX) {
        return NULL;
    }
    bytes = bytes ? bytes : 1;
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return zero ? calloc(1, bytes) : realloc(old, bytes);
}

void *sw__alloc(size_t size)
{
    return take(NULL, size, 1, false);
}

void *sw__alloc_zero(size_t count, size_t size)
{
    return take(NULL, count, size, true);
}

void *sw__realloc(void *old, size_t count, size_t size)
{
    return take(old, count, size, false);
}

char *sw__strndup(const char *text, size_t length)
{
    if (length == SIZE_MAX) {
        return NULL;
    }
    char *copy = sw__alloc(length + 1);
    if (copy) {
        if (length) {
            memcpy(copy, text, length);
        }
        copy[length] = '\0';
    }
    return copy;
}

void sw__free(void *memory)
{
    free(memory);
}

uint64_t sw__alloc_count(void)
{
    return atomic_load_explicit(&calls, memory_order_relaxed);
}
