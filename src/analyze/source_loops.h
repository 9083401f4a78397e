/* Loops in a program's own source, told from indentation. */
#ifndef SW_ANALYZE_SOURCE_LOOPS_H
#define SW_ANALYZE_SOURCE_LOOPS_H

#include <stddef.h>
#include <stdint.h>

/* The line of the innermost loop around a line of the function that begins at `first`, or 0. A comprehension is a loop in its
 * own line. */
uint32_t sw__source_loop(const char *text, size_t length, uint32_t first, uint32_t line);

#endif
