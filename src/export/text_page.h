/* Text for people: lines that never grow wider than the page, tables that drop columns before they
 * wrap, and names from programs made harmless. */
#ifndef SW_EXPORT_TEXT_PAGE_H
#define SW_EXPORT_TEXT_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/write.h>

struct sw__page {
    sw_writer *writer;
    size_t columns;
    bool colour, unicode;
};

enum sw__style { SW__PLAIN, SW__BOLD, SW__DIM, SW__CYAN, SW__YELLOW, SW__RED, SW__GREEN };

/* Text in a style; nothing but the text where there is no colour. */
void sw__page_styled(const struct sw__page *page, enum sw__style style, const char *text);
void sw__page_style(const struct sw__page *page,
                    enum sw__style style); /* SW__PLAIN ends it */
/* Bytes from a program in at most `columns` columns (0: no limit). Returns the columns used. */
size_t sw__page_name(const struct sw__page *page, const char *bytes, size_t length,
                     size_t columns);
/* Items one after the other with a separator, on as many lines as they need; later lines are
 * indented. `column` is where the first begins, and where the line ends in the end. Items may hold
 * any bytes. */
void sw__page_flow(const struct sw__page *page, const char *const *items, size_t count,
                   size_t indent);
/* A sentence in lines broken at spaces, with `first` before the first and spaces before the others. */
void sw__page_wrap(const struct sw__page *page, const char *first, enum sw__style style,
                   const char *text);
/* Two spaces and a bar of a share (0…1) of `width` columns; nothing where there is nothing to show. */
void sw__page_bar(const struct sw__page *page, double share, size_t width);

/* --- tables --- */

#define SW__TABLE_COLUMNS 10
#define SW__CELL 32

struct sw__cells {
    const char *name; /* NULL: `label` */
    size_t name_length;
    char label[128];
    size_t indent;         /* columns */
    char suffix[SW__CELL]; /* follows the name and is never cut */
    enum sw__style style;
    char cell[SW__TABLE_COLUMNS][SW__CELL];
};

struct sw__table {
    const char *title;
    size_t column_count;
    struct {
        const char *header;
        unsigned keep; /* columns with a small number are dropped first */
    } column[SW__TABLE_COLUMNS];
    struct sw__cells *rows;
    size_t count, room;
    bool failed; /* out of memory: rows are missing */
};

/* A new row, zeroed; NULL when out of memory. Valid until the next. */
struct sw__cells *sw__table_row(struct sw__table *table);
void sw__table_print(struct sw__table *table, const struct sw__page *page);
void sw__table_free(struct sw__table *table);

/* --- cells --- */

void sw__text_percent(char *out, size_t size, uint64_t amount, uint64_t whole);
/* A percentage with two significant digits, without its sign. */
void sw__text_small(char *out, size_t size, double percent);
/* A number with four significant digits. */
void sw__text_number(char *out, size_t size, double value);

#endif
