#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/text_page.h"

void sw__page_style(const struct sw__page *page, enum sw__style style)
{
    static const char *const codes[] = {
        [SW__PLAIN] = "\033[0m", [SW__BOLD] = "\033[1m",    [SW__DIM] = "\033[2m",
        [SW__CYAN] = "\033[36m", [SW__YELLOW] = "\033[33m", [SW__RED] = "\033[31m",
        [SW__GREEN] = "\033[32m"};
    if (page->colour) {
        sw_write_text(page->writer, codes[style]);
    }
}

void sw__page_styled(const struct sw__page *page, enum sw__style style, const char *text)
{
    if (style != SW__PLAIN) {
        sw__page_style(page, style);
    }
    sw_write_text(page->writer, text);
    if (style != SW__PLAIN) {
        sw__page_style(page, SW__PLAIN);
    }
}

/* Characters that our own sentences use, and what stands for them in ASCII, never longer. */
static const struct stand_in {
    const char *text, *ascii;
} stand_ins[] = {{"×", "x"}, {"→", "->"}, {"…", "..."}, {"µ", "u"}, {"–", "-"}};

static const struct stand_in *stand_in_for(const char *bytes, size_t length)
{
    for (size_t i = 0; i < sizeof stand_ins / sizeof stand_ins[0]; i++) {
        const size_t size = strlen(stand_ins[i].text);
        if (size <= length && memcmp(bytes, stand_ins[i].text, size) == 0) {
            return &stand_ins[i];
        }
    }
    return NULL;
}

size_t sw__page_name(const struct sw__page *page, const char *bytes, size_t length,
                     size_t columns)
{
    if (page->unicode) {
        return sw_write_visible(page->writer, bytes, length, columns, false);
    }
    /* One '?' for each character that ASCII lacks. */
    char *plain = length ? sw__alloc(length) : NULL;
    if (!plain) {
        return 0;
    }
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        const struct stand_in *stand_in = stand_in_for(bytes + i, length - i);
        if (stand_in) {
            memcpy(plain + used, stand_in->ascii, strlen(stand_in->ascii));
            used += strlen(stand_in->ascii);
            i += strlen(stand_in->text) - 1;
        } else if (c < 0x80) {
            plain[used++] = bytes[i];
        } else if (c >= 0xc0 || i == 0 || (unsigned char)bytes[i - 1] < 0x80) {
            plain[used++] = '?';
        }
    }
    size_t result = sw_write_visible(page->writer, plain, used, columns, true);
    sw__free(plain);
    return result;
}

/* Columns that a name takes on this page. */
static size_t name_columns(const struct sw__page *page, const char *bytes, size_t length)
{
    struct sw__page measure = *page;
    measure.writer = sw_writer_to_memory();
    if (!measure.writer) {
        return 0;
    }
    size_t columns = sw__page_name(&measure, bytes, length, 0);
    sw_writer_close(measure.writer, NULL);
    return columns;
}

void sw__page_flow(const struct sw__page *page, const char *const *items, size_t count,
                   size_t indent)
{
    const char *separator = page->unicode ? " · " : " | ";
    size_t at = indent;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(items[i]);
        size_t width = name_columns(page, items[i], length);
        if (i > 0 && at + 3 + width > page->columns) {
            sw_write_text(page->writer, "\n");
            sw_write_repeat(page->writer, " ", indent);
            at = indent;
        } else if (i > 0) {
            sw__page_styled(page, SW__DIM, separator);
            at += 3;
        }
        at += sw__page_name(page, items[i], length, page->columns - at);
    }
    sw_write_text(page->writer, "\n");
}

/* Length of the UTF-8 character that `text` begins with; the text is known to be good. */
static size_t character(const char *text)
{
    size_t length = 1;
    while (((unsigned char)text[length] & 0xc0) == 0x80) {
        length++;
    }
    return length;
}

/* How much of a word fits into `columns`, at least one character. */
static size_t fitting(const char *word, size_t length, size_t columns)
{
    size_t fits = character(word);
    while (fits < length) {
        size_t next = fits + character(word + fits);
        if (sw_text_columns(word, next) > columns) {
            break;
        }
        fits = next;
    }
    return fits;
}

void sw__page_wrap(const struct sw__page *page, const char *first, enum sw__style style,
                   const char *text)
{
    struct sw__page safe = *page;
    safe.writer = sw_writer_to_memory();
    if (!safe.writer) {
        return;
    }
    sw__page_name(&safe, text, strlen(text), 0);
    size_t indent = sw_text_columns(first, strlen(first));
    size_t at = indent;
    sw__page_styled(page, style, first);
    const char *rest = sw_writer_text(safe.writer, NULL);
    for (bool begun = false; rest && *rest; begun = true) {
        size_t length = strcspn(rest, " ");
        size_t width = sw_text_columns(rest, length);
        size_t space = begun ? 1 : 0;
        if (begun && at + 1 + width > page->columns) {
            sw_write_text(page->writer, "\n");
            sw_write_repeat(page->writer, " ", indent);
            at = indent;
            space = 0;
        }
        sw_write_repeat(page->writer, " ", space);
        at += space;
        /* A word that is wider than the page, a path perhaps, goes on in the next line. */
        while (at + width > page->columns) {
            size_t part = fitting(rest, length, page->columns - at);
            sw_write_bytes(page->writer, rest, part);
            sw_write_text(page->writer, "\n");
            sw_write_repeat(page->writer, " ", indent);
            at = indent;
            rest += part;
            length -= part;
            width = sw_text_columns(rest, length);
        }
        sw_write_bytes(page->writer, rest, length);
        at += width;
        rest += length;
        rest += strspn(rest, " ");
    }
    sw_write_text(page->writer, "\n");
    sw_writer_close(safe.writer, NULL);
}

void sw__page_bar(const struct sw__page *page, double share, size_t width)
{
    static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    share = share > 0 ? (share < 1 ? share : 1) : 0;
    size_t steps = page->unicode ? 8 : 1;
    size_t units = (size_t)(share * (double)(width * steps) + 0.5);
    if (units == 0) {
        return;
    }
    sw_write_text(page->writer, "  ");
    sw__page_style(page, SW__CYAN);
    sw_write_repeat(page->writer, page->unicode ? "█" : "#", units / steps);
    sw_write_text(page->writer, eighths[units % steps]);
    sw__page_style(page, SW__PLAIN);
}

/* --- tables --- */

struct sw__cells *sw__table_row(struct sw__table *table)
{
    if (table->count == table->room) {
        size_t room = table->room ? table->room * 2 : 32;
        struct sw__cells *rows = sw__realloc(table->rows, room, sizeof *rows);
        if (!rows) {
            table->failed = true;
            return NULL;
        }
        table->rows = rows;
        table->room = room;
    }
    struct sw__cells *row = &table->rows[table->count++];
    memset(row, 0, sizeof *row);
    return row;
}

void sw__table_free(struct sw__table *table)
{
    sw__free(table->rows);
    table->rows = NULL;
    table->count = table->room = 0;
}

#define GAP 2
#define NAME_LEAST 20
#define NAME_MOST 64

struct shape {
    size_t name;                     /* width of the name column */
    size_t width[SW__TABLE_COLUMNS]; /* 0: not shown */
};

static size_t text_width(const char *text)
{
    return sw_text_columns(text, strlen(text));
}

static const char *row_name(const struct sw__cells *row, size_t *length)
{
    *length = row->name ? row->name_length : strlen(row->label);
    return row->name ? row->name : row->label;
}

/* Columns of indentation, name and suffix. */
static size_t row_width(const struct sw__page *page, const struct sw__cells *row)
{
    size_t length;
    const char *name = row_name(row, &length);
    return row->indent + name_columns(page, name, length) + text_width(row->suffix);
}

/* Widths from what the cells hold; columns are dropped until the name has room. */
static struct shape shape_of(const struct sw__table *table, const struct sw__page *page)
{
    struct shape shape = {.name = text_width(table->title)};
    size_t wanted = shape.name;
    for (size_t i = 0; i < table->count; i++) {
        size_t width = row_width(page, &table->rows[i]);
        wanted = width > wanted ? width : wanted;
    }
    wanted = wanted < NAME_MOST ? wanted : NAME_MOST;
    size_t least = wanted < NAME_LEAST ? wanted : NAME_LEAST;
    size_t total = 0;
    for (size_t c = 0; c < table->column_count; c++) {
        shape.width[c] = text_width(table->column[c].header);
        for (size_t i = 0; i < table->count; i++) {
            size_t width = text_width(table->rows[i].cell[c]);
            shape.width[c] = width > shape.width[c] ? width : shape.width[c];
        }
        total += shape.width[c] + GAP;
    }
    while (least + total > page->columns) {
        size_t worst = table->column_count;
        for (size_t c = 0; c < table->column_count; c++) {
            if (shape.width[c] && (worst == table->column_count ||
                                   table->column[c].keep < table->column[worst].keep)) {
                worst = c;
            }
        }
        if (worst == table->column_count) {
            break;
        }
        total -= shape.width[worst] + GAP;
        shape.width[worst] = 0;
    }
    size_t room = page->columns - total;
    shape.name = wanted < room ? wanted : room;
    return shape;
}

static void put_cells(const struct sw__page *page, const struct sw__table *table,
                      const struct shape *shape, size_t used, const struct sw__cells *row)
{
    size_t owed =
        shape->name > used ? shape->name - used : 0; /* spaces, none at the end */
    for (size_t c = 0; c < table->column_count; c++) {
        if (shape->width[c] == 0) {
            continue;
        }
        const char *text = row ? row->cell[c] : table->column[c].header;
        size_t width = text_width(text);
        owed += GAP + shape->width[c] - width;
        if (width > 0) {
            sw_write_repeat(page->writer, " ", owed);
            sw_write_text(page->writer, text);
            owed = 0;
        }
    }
    sw_write_text(page->writer, "\n");
}

void sw__table_print(struct sw__table *table, const struct sw__page *page)
{
    struct shape shape = shape_of(table, page);
    sw__page_style(page, SW__BOLD);
    sw_write_text(page->writer, table->title);
    put_cells(page, table, &shape, text_width(table->title), NULL);
    sw__page_style(page, SW__PLAIN);
    for (size_t i = 0; i < table->count; i++) {
        const struct sw__cells *row = &table->rows[i];
        size_t suffix = text_width(row->suffix);
        size_t length;
        const char *name = row_name(row, &length);
        size_t indent = row->indent;
        if (row_width(page, row) >
            shape.name) { /* rather less indentation than no name */
            size_t most = shape.name > suffix + 12 ? shape.name - suffix - 12 : 0;
            indent = indent < most ? indent : most;
        }
        size_t room = shape.name > indent + suffix ? shape.name - indent - suffix : 1;
        sw_write_repeat(page->writer, " ", indent);
        if (row->style != SW__PLAIN) {
            sw__page_style(page, row->style);
        }
        size_t used = indent + sw__page_name(page, name, length, room);
        if (row->style != SW__PLAIN) {
            sw__page_style(page, SW__PLAIN);
        }
        if (suffix) {
            sw__page_styled(page, SW__DIM, row->suffix);
            used += suffix;
        }
        put_cells(page, table, &shape, used, row);
    }
}

/* --- cells --- */

void sw__text_percent(char *out, size_t size, uint64_t amount, uint64_t whole)
{
    if (whole == 0) {
        snprintf(out, size, "-");
        return;
    }
    unsigned __int128 tenths = ((unsigned __int128)amount * 1000 + whole / 2) / whole;
    unsigned long shown = tenths < 10000000 ? (unsigned long)tenths : 10000000;
    snprintf(out, size, "%lu.%lu %%", shown / 10, shown % 10);
}

void sw__text_number(char *out, size_t size, double value)
{
    if (!isfinite(value)) {
        snprintf(out, size, "%s", isnan(value) ? "-" : value > 0 ? "inf" : "-inf");
        return;
    }
    snprintf(out, size, "%.4g", value);
    for (char *c = out; *c; c++) {
        if (*c == ',') { /* whatever the locale of the program */
            *c = '.';
        }
    }
}

void sw__text_small(char *out, size_t size, double percent)
{
    if (!isfinite(percent)) {
        snprintf(out, size, "?");
        return;
    }
    snprintf(out, size, percent >= 10 ? "%.0f" : percent >= 1 ? "%.1f" : "%.2g", percent);
    if (strchr(out, 'e')) {
        snprintf(out, size, "0.0001");
    }
    for (char *c = out; *c; c++) {
        if (*c == ',') {
            *c = '.';
        }
    }
}
