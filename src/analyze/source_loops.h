/* Loops in a program's own source, told from indentation. */
#ifndef SW_ANALYZE_SOURCE_LOOPS_H
#define SW_ANALYZE_SOURCE_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of a text, without its indentation. */
struct sw__source_line {
    const char *text;
    size_t length, indent;
};
/* Line `number`, from 1; false past the last. */
bool sw__source_line_get(const char *text, size_t length, uint32_t number,
                         struct sw__source_line *out);
bool sw__source_is_loop(const struct sw__source_line *line);

/* The line of the innermost loop around a line of the function that begins at `first`, or 0. A comprehension is a loop in its
 * own line. */
uint32_t sw__source_loop(const char *text, size_t length, uint32_t first, uint32_t line);

/* The same, but a line that is a loop by itself does not count: the next loop around it. */
uint32_t sw__source_loop_around(const char *text, size_t length, uint32_t first,
                                uint32_t line);

/* Whether the loop in line `loop` gives something to whoever goes through it: a pass of it is a sample or a batch. */
bool sw__source_yields(const char *text, size_t length, uint32_t loop);

/* Whether the function that begins at `first`, maybe with decorators, gives a value back to whoever calls it. */
bool sw__source_returns(const char *text, size_t length, uint32_t first);

#endif
