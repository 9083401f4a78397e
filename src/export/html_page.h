/* Pieces of a page: text that cannot become markup, and tables. */
#ifndef SW_EXPORT_HTML_PAGE_H
#define SW_EXPORT_HTML_PAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/write.h>

/* Bytes of a program as text, in elements and in attributes within quotes: what would be markup is escaped; control characters,
 * marks of direction and invalid UTF-8 appear as \xNN. NULL is nothing. */
void sw__html_text(sw_writer *w, const char *text);
void sw__html_text_n(sw_writer *w, const char *bytes, size_t length);

/* A part of the page with a heading; `id` is for links within the page. */
void sw__html_section_begin(sw_writer *w, const char *id, const char *title);
void sw__html_section_end(sw_writer *w);

/* A table. A header that begins with '>' is that of a column of numbers. */
void sw__html_table_begin(sw_writer *w, const char *const *headers, size_t count);
void sw__html_table_end(sw_writer *w);
void sw__html_row_begin(sw_writer *w);
void sw__html_row_end(sw_writer *w);
void sw__html_cell(sw_writer *w, const char *text);   /* NULL: a dash */
void sw__html_number(sw_writer *w, const char *text); /* likewise, at the right */
void sw__html_count(sw_writer *w, uint64_t count);    /* SW_UNKNOWN: a dash */
void sw__html_duration(sw_writer *w, double ns);      /* NaN: a dash */
void sw__html_ns(sw_writer *w, uint64_t ns);          /* SW_UNKNOWN: a dash */
void sw__html_percent(sw_writer *w, double share);    /* NaN: a dash */
/* A name of the program, indented by its depth; and a place, "train.py:12", the folders left out (NULL: a dash). */
void sw__html_name(sw_writer *w, const char *bytes, size_t length, unsigned depth);
void sw__html_place(sw_writer *w, const char *file, uint32_t line);
/* "N more …" below a table that was cut. */
void sw__html_more(sw_writer *w, size_t hidden, const char *what);

#endif
