/* The exact profiles' part of the text report: functions by the time they spent themselves, and the lines that took
 * longest. Files and `stepwatch stats` have all of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/export.h>

#include "base/memory.h"
#include "export/function_order.h"
#include "export/report_parts.h"

#define FUNCTIONS_USUAL 5
#define LINES_USUAL 5
#define LINE_FUNCTIONS_USUAL 2

void sw__report_cell(const struct sw__page *page, char *out, size_t size,
                     const char *bytes)
{
    struct sw__page safe = *page;
    safe.writer = sw_writer_to_memory();
    out[0] = '\0';
    if (!safe.writer) {
        return;
    }
    sw__page_name(&safe, bytes, strlen(bytes), size - 1);
    const char *text = sw_writer_text(safe.writer, NULL);
    size_t length = text ? strlen(text) : 0;
    if (length >= size) {
        length = size - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    snprintf(out, size, "%.*s", (int)length, text ? text : "");
    sw_writer_close(safe.writer, NULL);
}

void sw__report_where(const struct sw__page *page, char out[SW__CELL], const char *file,
                      uint32_t line)
{
    const char *slash = strrchr(file, '/');
    char name[20];
    sw__report_cell(page, name, sizeof name, slash ? slash + 1 : file);
    if (line && *name) {
        snprintf(out, SW__CELL, "%s:%u", name, line);
    } else {
        snprintf(out, SW__CELL, "%s", *name ? name : "-");
    }
}

/* How many of `count` are shown: the usual number, or fewer or all where the reader says so. */
static size_t shown_of(size_t count, size_t usual, size_t top)
{
    const size_t most = top == SW_TEXT_ALL || top < usual ? top : usual;
    return count < most ? count : most;
}

static void put_duration(const struct sw__page *page, char *out, double ns)
{
    char text[24];
    sw_text_duration(text, ns, !page->unicode);
    snprintf(out, SW__CELL, "%s", text);
}

static void put_count(char *out, uint64_t count)
{
    char text[32];
    sw_text_count(text, count);
    snprintf(out, SW__CELL, "%s", text);
}

/* Without the sign, which the column has. */
static void put_share(char *out, uint64_t part, uint64_t whole)
{
    sw__text_percent(out, SW__CELL, part, whole);
    char *sign = strstr(out, " %");
    if (sign) {
        *sign = '\0';
    }
}

/* --- functions --- */

static void put_function(const struct sw__page *page, struct sw__cells *cells,
                         const sw_functions *functions, const sw_function *function,
                         uint64_t whole)
{
    const double unit_ns = sw_functions_unit_ns(functions);
    const sw_function_totals *totals = &function->totals;
    cells->name = function->qualname_length ? function->qualname : "(unknown)";
    cells->name_length = strlen(cells->name);
    put_count(cells->cell[0], totals->calls);
    put_duration(page, cells->cell[1], (double)totals->self * unit_ns);
    put_share(cells->cell[2], totals->self, whole);
    put_duration(page, cells->cell[3], (double)totals->total * unit_ns);
    sw__report_where(page, cells->cell[4], function->native ? "" : function->file,
                     function->line);
}

static void put_functions(const struct sw__page *page, const sw_functions *functions,
                          size_t top)
{
    const size_t count = sw_functions_count(functions);
    const sw_function_totals sum = sw_functions_sum(functions);
    uint32_t *order = sw__functions_sorted(functions, SW_FUNCTIONS_BY_SELF);
    if (!order) {
        return;
    }
    char calls[32];
    char many[32];
    char text[128];
    sw_text_count(calls, sum.calls);
    sw_text_count(many, count);
    snprintf(text, sizeof text, "(%s call%s of %s function%s)", calls,
             sum.calls == 1 ? "" : "s", many, count == 1 ? "" : "s");
    sw_write_text(page->writer, "\n");
    sw__page_wrap(page, "Functions by self time (exact) ", SW__BOLD, text);
    struct sw__table table = {
        .title = "function",
        .column_count = 5,
        .column = {
            {"calls", 80}, {"self", 100}, {"self %", 70}, {"total", 60}, {"where", 90}}};
    for (size_t i = 0; i < shown_of(count, FUNCTIONS_USUAL, top); i++) {
        struct sw__cells *cells = sw__table_row(&table);
        if (!cells) {
            break;
        }
        put_function(page, cells, functions, sw_functions_get(functions, order[i]),
                     sum.self);
    }
    sw__table_print(&table, page);
    sw__table_free(&table);
    sw__free(order);
}

/* --- lines --- */

/* Longest first; lines of the same time in their order. */
static int by_time(const void *left, const void *right)
{
    const sw_lines_line *a = left;
    const sw_lines_line *b = right;
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return (a->line > b->line) - (a->line < b->line);
}

/* The source without its indentation; tabs within it appear as spaces would. */
static void put_source(struct sw__cells *cells, sw_lines *lines, size_t index,
                       uint32_t line)
{
    size_t length = 0;
    const char *source = sw_lines_source(lines, index, line, &length);
    while (source && length && (*source == ' ' || *source == '\t' || *source == '\f')) {
        source++;
        length--;
    }
    if (source && length) {
        cells->name = source;
        cells->name_length = length;
    } else {
        snprintf(cells->label, sizeof cells->label, "(no source)");
    }
}

static void put_line(const struct sw__page *page, struct sw__cells *cells,
                     const sw_lines_function *function, const sw_lines_line *line)
{
    snprintf(cells->cell[0], SW__CELL, "%u", (unsigned)line->line);
    put_count(cells->cell[1], line->hits);
    put_duration(page, cells->cell[2], (double)line->ns);
    if (line->hits) {
        put_duration(page, cells->cell[3], (double)line->ns / (double)line->hits);
    } else {
        snprintf(cells->cell[3], SW__CELL, "-");
    }
    put_share(cells->cell[4], line->ns, function->total_ns);
}

/* "augment (train.py:12), 1.2 s", in one line. */
static void put_line_head(const struct sw__page *page, const sw_lines_function *function)
{
    char where[SW__CELL];
    char total[SW__CELL];
    char rest[2 * SW__CELL + 16];
    sw__report_where(page, where, function->file, function->first_line);
    put_duration(page, total, (double)function->total_ns);
    snprintf(rest, sizeof rest, " (%s), %s", where, total);
    const size_t used = sw_text_columns(rest, strlen(rest));
    sw_write_text(page->writer, "  ");
    sw__page_style(page, SW__DIM);
    sw__page_name(page, function->name, function->name_length,
                  page->columns > used + 10 ? page->columns - used - 2 : 8);
    sw_write_text(page->writer, rest);
    sw__page_style(page, SW__PLAIN);
    sw_write_text(page->writer, "\n");
}

static void put_lines_of(const struct sw__page *page, sw_lines *lines, size_t index,
                         size_t top)
{
    const sw_lines_function *function = sw_lines_get(lines, index);
    sw_lines_line *sorted = sw__alloc_zero(function->line_count + 1, sizeof *sorted);
    if (!sorted) {
        return;
    }
    if (function->line_count) {
        memcpy(sorted, function->lines, function->line_count * sizeof *sorted);
    }
    qsort(sorted, function->line_count, sizeof *sorted, by_time);
    struct sw__table table = {
        .title = "source",
        .column_count = 5,
        .column = {
            {"line", 100}, {"hits", 70}, {"time", 90}, {"per hit", 60}, {"% time", 80}}};
    for (size_t i = 0; i < shown_of(function->line_count, LINES_USUAL, top); i++) {
        struct sw__cells *cells =
            sorted[i].hits || sorted[i].ns ? sw__table_row(&table) : NULL;
        if (!cells) {
            break;
        }
        put_source(cells, lines, index, sorted[i].line);
        put_line(page, cells, function, &sorted[i]);
    }
    put_line_head(page, function);
    sw__table_print(&table, page);
    sw__table_free(&table);
    sw__free(sorted);
}

static void put_lines(const struct sw__page *page, sw_lines *lines, size_t top)
{
    sw_write_text(page->writer, "\n");
    sw__page_styled(page, SW__BOLD, "Lines by time (exact)");
    sw_write_text(page->writer, "\n");
    const size_t shown = shown_of(sw_lines_count(lines), LINE_FUNCTIONS_USUAL, top);
    for (size_t i = 0; i < shown; i++) {
        put_lines_of(page, lines, i, top);
    }
}

void sw__report_profiles(const struct sw__page *page, const sw_summary *summary,
                         size_t top)
{
    const sw_functions *functions = sw_summary_functions(summary);
    sw_lines *lines = sw_summary_lines(summary);
    if (functions) {
        put_functions(page, functions, top);
    }
    if (lines) {
        put_lines(page, lines, top);
    }
}
