/* Tables of vectors in the source of a program. */
#ifndef SW_ANALYZE_SOURCE_TABLES_H
#define SW_ANALYZE_SOURCE_TABLES_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the file computes with all rows of the table of that name: `x @ self.tokens.weight.T`, or by way of another name,
 * `rows = self.tokens.weight`, which may also be that of a layer. Its gradient has all rows then. A guess: words are all that is
 * known. */
bool sw__source_whole_table(const char *text, size_t length, const char *attribute);

#endif
