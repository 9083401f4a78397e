/* Statements that pick rows of arrays, told from the source. */
#ifndef SW_ANALYZE_SOURCE_GATHERS_H
#define SW_ANALYZE_SOURCE_GATHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether the statement at `line` does nothing but index: `others = self.features[self.table[chosen]]`, or several of these with
 * commas between them. It calls nothing and computes nothing. */
bool sw__source_only_gathers(const char *text, size_t length, uint32_t line);

#endif
