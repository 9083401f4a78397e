/* Whether chance has a hand in what a function gives, told from the source. */
#ifndef SW_ANALYZE_SOURCE_CHANCE_H
#define SW_ANALYZE_SOURCE_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the function that begins at `first` draws anything, or is given what draws. A guess: words are all that is known. True
 * also where it cannot be read. */
bool sw__source_by_chance(const char *text, size_t length, uint32_t first);

/* Whether the statement at `line` of that function uses something that was drawn: in it, or before it in the function. */
bool sw__source_uses_chance(const char *text, size_t length, uint32_t first,
                            uint32_t line);

/* Whether a name, of a function or a file, is one of something that draws. */
bool sw__named_by_chance(const char *name);

#endif
