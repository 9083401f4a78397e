/* Line profiles: how often each line of chosen functions ran, and how long.
 *
 * The time of a line goes from the moment the interpreter arrives at it to the moment it arrives at the next line of the
 * same activation or leaves it, so it includes what the line calls. Times are integer nanoseconds. */
#ifndef STEPWATCH_LINES_H
#define STEPWATCH_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_lines sw_lines;

typedef struct sw_lines_line {
    uint32_t line;
    uint64_t hits; /* times the interpreter arrived at the line */
    uint64_t ns;
} sw_lines_line;

/* Strings are NUL-terminated, may hold any bytes, and live as long as the profile. */
typedef struct sw_lines_function {
    const char *file, *name;
    uint32_t file_length, name_length;
    uint32_t first_line;        /* where the function begins, decorators included */
    uint32_t last_line;         /* the last line that was added, at least first_line */
    uint64_t total_ns;          /* sum over the lines */
    const sw_lines_line *lines; /* ascending; lines that never ran may be among them */
    size_t line_count;
} sw_lines_function;

/* An empty profile; NULL when out of memory. The caller frees it with sw_lines_free. */
SW_API sw_lines *sw_lines_create(void);
SW_API void sw_lines_free(sw_lines *lines); /* NULL is fine */

/* Adds a function; `*index` names it to sw_lines_add_line. 0 or SW_ENOMEM. */
SW_API int sw_lines_add_function(sw_lines *lines, const char *file, size_t file_length,
                                 const char *name, size_t name_length,
                                 uint32_t first_line, size_t *index);
/* Adds to a line. A line that never ran (0 hits, 0 ns) says that the function reaches as far as this. */
SW_API int sw_lines_add_line(sw_lines *lines, size_t function, uint32_t line,
                             uint64_t hits, uint64_t ns);
/* Gives the text of a source file that is not on disk under this name (copied). */
SW_API int sw_lines_set_source(sw_lines *lines, const char *file, size_t file_length,
                               const char *text, size_t length);
/* Call once after the last function and line: sorts, merges what is the same function (file, name and first line) and adds
 * up. Functions then stand by their total time, longest first. */
SW_API void sw_lines_finish(sw_lines *lines);

/* The line profiles that are in a run, over all its processes and profiles. A run without any gives an empty one. */
SW_API int sw_lines_of_run(sw_lines **out, const sw_run *run, sw_error_info *info);

/* After sw_lines_finish. */
SW_API size_t sw_lines_count(const sw_lines *lines);
SW_API const sw_lines_function *sw_lines_get(const sw_lines *lines, size_t index);
/* A line of the function's source without its end, from what was given or from the file; NULL when there is none. Valid as long
 * as the profile. Files above 16 MiB are not read. */
SW_API const char *sw_lines_source(sw_lines *lines, size_t index, uint32_t line,
                                   size_t *length);

#ifdef __cplusplus
}
#endif
#endif
