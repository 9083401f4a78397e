/* Whether the rounds of a loop know nothing of each other, told from the source. */
#ifndef SW_ANALYZE_SOURCE_ROUNDS_H
#define SW_ANALYZE_SOURCE_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Looks at the innermost `for` around `line`, of the function that begins at `first`. Its rounds are apart where each uses only
 * what it made itself or what the loop does not change, and hands on nothing but what it adds to a list or to a sum. A round that
 * may be the last one, objects that go on from where they were, and parts of `self` are never taken to be so. A comprehension in
 * the line is such a loop too. False also where there is none, or it cannot be read. */
bool sw__source_rounds_apart(const char *text, size_t length, uint32_t first,
                             uint32_t line);

/* The same, where the one thing that the statement at `line` calls besides functions of the file and of packages is a model, which keeps
 * nothing from call to call. */
bool sw__source_asks_apart(const char *text, size_t length, uint32_t first,
                           uint32_t line);

#endif
