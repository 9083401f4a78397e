/* Reports of a summary: for machines (JSON) and for people (text). */
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

#ifdef __cplusplus
}
#endif
#endif
