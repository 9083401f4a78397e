/* Whether of what a call gives only a part is used, told from the source. */
#ifndef SW_ANALYZE_SOURCE_PICKS_H
#define SW_ANALYZE_SOURCE_PICKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the statement that begins at `line` calls `….name(…)` and takes some rows of the result, in the same statement or in all
 * places of the function below that name it: those of a mask (`[mask]`, `[tokens == MASK]`, `[labels != -100]`; not one of
 * padding), or one position of each sequence (`[:, -1]`, `[:, 0, :]`). Lists of rows do not count: they may bring a row up many
 * times, as those of a graph do. */
bool sw__source_picks(const char *text, size_t length, uint32_t line, const char *name);

#endif
