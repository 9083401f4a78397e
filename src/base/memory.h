/* The one seam through which stepwatch takes heap memory, and an arena for things that
 * live and die together. */
#ifndef SW_BASE_MEMORY_H
#define SW_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

void *sw__alloc(size_t size);                            /* NULL when out of memory */
void *sw__alloc_zero(size_t count, size_t size);         /* overflow-checked */
void *sw__realloc(void *old, size_t count, size_t size); /* overflow-checked */
char *sw__strndup(const char *text, size_t length);
void sw__free(void *memory);
/* Number of calls that took memory since the process began; lets a test prove a path free
 * of them. */
uint64_t sw__alloc_count(void);

typedef struct sw__arena sw__arena;
/* `limit` bounds the bytes it may ever take from the heap (0: none). */
sw__arena *sw__arena_create(size_t limit);
void sw__arena_free(sw__arena *arena);
/* NULL when out of memory or over the limit. */
void *sw__arena_take(sw__arena *arena, size_t size, size_t align);
/* A NUL-terminated copy, or NULL likewise. */
char *sw__arena_copy(sw__arena *arena, const char *bytes, size_t length);

#endif
