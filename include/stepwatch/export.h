/* Reports of a summary, for machines (JSON) and for people (text), and files for other tools. */
#ifndef STEPWATCH_EXPORT_H
#define STEPWATCH_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/analyze.h>
#include <stepwatch/error.h>
#include <stepwatch/write.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One JSON document, schema stepwatch.report/1, and a newline. What a run does not hold is null or
 * {"recorded": false, "why": "…"}. Errors stick to the writer. */
SW_API void sw_export_report_json(sw_writer *writer, const sw_summary *summary);

/* How a text report looks. All zero: 80 columns, no colour, ASCII, 20 rows a table. */
typedef struct sw_text_options {
    size_t columns; /* no line is wider; held within 60…200 */
    bool colour;    /* ANSI sequences */
    bool unicode;   /* box characters and bars; false: ASCII only, also in names */
    size_t top;     /* rows of a table; 0: 20, SW_TEXT_ALL: all */
} sw_text_options;
#define SW_TEXT_ALL ((size_t)-1)
#define SW_TEXT_COLUMNS_MIN 60
#define SW_TEXT_COLUMNS_MAX 200

SW_API void sw_export_report_text(sw_writer *writer, const sw_summary *summary,
                                  const sw_text_options *options);

/* How sampled stacks are written. All zero: running samples only, functions without lines. */
typedef struct sw_stack_options {
    bool waiting;  /* waiting samples too, each below its stack as a leaf "(waiting)" */
    bool lines;    /* frames of one function at different lines are different */
    bool threads;  /* collapsed: the name of the thread is the first frame */
    bool sections; /* the innermost section is a frame before the others */
    const char *name; /* speedscope: of the whole; NULL: none */
} sw_stack_options;

/* One line a stack: "root;child;leaf N", N samples. A frame is "name (file)", with lines "name (file:line)"; bytes that
 * would break a line appear as \xNN, newlines as \n. Errors stick to the writer, here and below. */
SW_API void sw_export_collapsed(sw_writer *writer, const sw_stacks *stacks,
                                const sw_stack_options *options);
/* One JSON document for speedscope: a profile of kind "sampled" for each thread of each process, busiest first. Weights
 * are seconds, or samples where the period is not known. */
SW_API void sw_export_speedscope(sw_writer *writer, const sw_stacks *stacks,
                                 const sw_stack_options *options);

#ifdef __cplusplus
}
#endif
#endif
