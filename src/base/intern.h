/* Interning: byte strings to small ids, 1, 2, 3, … in order of arrival. Look-ups of known
 * strings take no lock and may run beside one insertion at a time; insertions are
 * serialised inside. Entries never move and never die before the table does. */
#ifndef SW_BASE_INTERN_H
#define SW_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

typedef struct sw__intern sw__intern;

/* `limit` is the largest id that will be given out. NULL when out of memory. */
sw__intern *sw__intern_create(uint32_t limit);
void sw__intern_free(sw__intern *table);
/* Id of the string, 0 when unknown. Lock-free. */
uint32_t sw__intern_find(const sw__intern *table, const void *bytes, size_t length);
/* Id of the string, inserted if need be (a copy is kept); `*fresh` says whether it was. 0
 * when the limit or the memory is exhausted. */
uint32_t sw__intern_put(sw__intern *table, const void *bytes, size_t length, int *fresh);
/* The string of an id, NUL-terminated; NULL if unknown. Lock-free. */
const char *sw__intern_text(const sw__intern *table, uint32_t id, size_t *length);
uint32_t sw__intern_count(const sw__intern *table);
/* For a forked child: makes the table's lock free again, whoever held it. */
void sw__intern_after_fork(sw__intern *table);

/* Replaces each run of digits by one '*': "epoch_17" -> "epoch_*". Returns the length, 0
 * when nothing was replaced. `out` must hold `length` bytes. */
size_t sw__name_family(const char *bytes, size_t length, char *out);
uint64_t sw__hash_bytes(const void *bytes, size_t length);
/* The same with a seed, for tables that are filled from files nobody vouches for. */
uint64_t sw__hash_seeded(const void *bytes, size_t length, uint64_t seed);

#endif
