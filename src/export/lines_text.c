/* Line profiles for people: one table a function, the unit of the times above it. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/text_page.h"
#include <stepwatch/export.h>

/* Widths of the columns before the source; cells that need more take a shorter form. */
enum {
    WIDTH_LINE = 6,
    WIDTH_HITS = 10,
    WIDTH_TIME = 13,
    WIDTH_HIT = 11,
    WIDTH_SHARE = 8,
    WIDTH_ALL = WIDTH_LINE + WIDTH_HITS + WIDTH_TIME + WIDTH_HIT + WIDTH_SHARE + 2
};
#define TAB 8
/* What a function may show: a hostile trace may speak of lines from 1 to 4 billion. */
#define SHOWN_MAX 100000
/* Source lines without numbers between two that have some; longer stretches are left out. */
#define GAP_MAX 200

/* A number right-aligned in `width`, at least one space before it. Forms are tried from the exact to the short. */
static void put_number(sw_writer *writer, size_t width, double value, int digits)
{
    char cell[400];
    int used = snprintf(cell, sizeof cell, "%.*f", digits, value);
    for (int precision = 5; (size_t)used >= width && precision >= 1; precision--) {
        used = snprintf(cell, sizeof cell, "%.*g", precision, value);
    }
    sw_write_repeat(writer, " ", (size_t)used < width ? width - (size_t)used : 1);
    sw_write_text(writer, cell);
}

static void put_header(const struct sw__page *page, const sw_lines_function *function)
{
    sw_writer *writer = page->writer;
    const char *micro = page->unicode ? "µs" : "us";
    char total[24];
    sw_text_duration(total, (double)function->total_ns, !page->unicode);
    sw_write_text(writer, "Function: ");
    sw__page_name(page, function->name, function->name_length, 0);
    sw_write_text(writer, "\nFile: ");
    sw__page_name(page, function->file, function->file_length, 0);
    sw_write_format(writer, ":%u\nTotal time: %s\n", (unsigned)function->first_line,
                    total);
    sw_write_format(writer, "Unit of Time and Per Hit: %s (1e-06 s)\n\n", micro);
    sw_write_format(writer, "%*s%*s%*s%*s%*s  Line Contents\n", WIDTH_LINE, "Line #",
                    WIDTH_HITS, "Hits", WIDTH_TIME, "Time", WIDTH_HIT, "Per Hit",
                    WIDTH_SHARE, "% Time");
    sw_write_repeat(writer, "=", WIDTH_ALL + 13);
    sw_write_text(writer, "\n");
}

/* The source with tabs as spaces, cut to the page. */
static void put_source(const struct sw__page *page, const char *source, size_t length)
{
    size_t tabs = 0;
    for (size_t i = 0; i < length; i++) {
        tabs += source[i] == '\t';
    }
    char *text = sw__alloc(length + tabs * TAB + 1);
    if (!text) {
        return;
    }
    size_t used = 0;
    size_t column = 0;
    for (size_t i = 0; i < length; i++) {
        if (source[i] == '\t') {
            do {
                text[used++] = ' ';
            } while (++column % TAB != 0);
        } else if (source[i] != '\f') {
            text[used++] = source[i];
            /* Bytes that continue a character take no column. */
            column += ((unsigned char)source[i] & 0xc0) != 0x80;
        }
    }
    while (used > 0 && text[used - 1] == ' ') {
        used--;
    }
    size_t room = 0;
    if (page->columns) {
        room = page->columns > WIDTH_ALL + 8 ? page->columns - WIDTH_ALL : 8;
    }
    sw__page_name(page, text, used, room);
    sw__free(text);
}

static void put_row(const struct sw__page *page, sw_lines *lines, size_t index,
                    uint32_t number, const sw_lines_line *line, uint64_t total_ns)
{
    sw_writer *writer = page->writer;
    size_t length;
    const char *source = sw_lines_source(lines, index, number, &length);
    char cell[24];
    int used = snprintf(cell, sizeof cell, "%u", (unsigned)number);
    sw_write_repeat(writer, " ", used < WIDTH_LINE ? (size_t)(WIDTH_LINE - used) : 0);
    sw_write_text(writer, cell);
    if (line && (line->hits || line->ns)) {
        put_number(writer, WIDTH_HITS, (double)line->hits, 0);
        put_number(writer, WIDTH_TIME, (double)line->ns / 1e3, 1);
        if (line->hits) {
            put_number(writer, WIDTH_HIT, (double)line->ns / 1e3 / (double)line->hits, 3);
        } else {
            sw_write_repeat(writer, " ", WIDTH_HIT);
        }
        put_number(writer, WIDTH_SHARE,
                   total_ns ? 100 * (double)line->ns / (double)total_ns : 0, 1);
    } else if (source && length) {
        sw_write_repeat(writer, " ", WIDTH_ALL - WIDTH_LINE - 2);
    }
    if (source && length) {
        sw_write_text(writer, "  ");
        put_source(page, source, length);
    }
    sw_write_text(writer, "\n");
}

static void put_function(const struct sw__page *page, sw_lines *lines, size_t index)
{
    const sw_lines_function *function = sw_lines_get(lines, index);
    put_header(page, function);
    size_t length;
    const bool known = sw_lines_source(lines, index, function->first_line, &length);
    uint32_t at = function->first_line;
    size_t shown = 0;
    for (size_t i = 0; i < function->line_count && shown < SHOWN_MAX; i++, shown++) {
        const sw_lines_line *line = &function->lines[i];
        if (known && line->line > at && line->line - at <= GAP_MAX) {
            for (; at < line->line; at++) {
                put_row(page, lines, index, at, NULL, 0);
            }
        } else if (known && line->line > at) {
            sw_write_text(page->writer, "   ...\n");
        }
        if (known || line->hits || line->ns) {
            put_row(page, lines, index, line->line, line, function->total_ns);
        }
        at = line->line == UINT32_MAX ? line->line : line->line + 1;
    }
    if (shown < function->line_count) {
        sw_write_format(page->writer, "(%zu more lines)\n", function->line_count - shown);
    }
    if (!known) {
        sw_write_text(page->writer, "(the source is not there: ");
        sw__page_name(page, function->file, function->file_length, 0);
        sw_write_text(page->writer, ")\n");
    }
}

void sw_export_lines_text(sw_writer *writer, sw_lines *lines,
                          const sw_lines_text_options *options)
{
    const struct sw__page page = {
        .writer = writer, .columns = options->columns, .unicode = options->unicode};
    for (size_t i = 0; i < sw_lines_count(lines); i++) {
        if (i > 0) {
            sw_write_text(writer, "\n");
        }
        put_function(&page, lines, i);
    }
}
