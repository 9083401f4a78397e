#include "columns.h"

#include <stdlib.h>
#include <string.h>

/* Offsets are 32 bits wide; this is far below what they can tell. */
#define TEXT_MOST ((size_t)64 << 20)
#define BATCH 256 /* rows that are turned into columns at once */

static bool reserve(core_buffer *buffer, size_t more)
{
    if (buffer->room - buffer->used >= more) {
        return true;
    }
    size_t room = buffer->room ? buffer->room * 2 : 256;
    while (room - buffer->used < more) {
        room *= 2;
    }
    uint8_t *data = realloc(buffer->data, room);
    if (!data) {
        return false;
    }
    buffer->data = data;
    buffer->room = room;
    return true;
}

static bool append(core_buffer *buffer, const void *bytes, size_t length)
{
    if (!reserve(buffer, length)) {
        return false;
    }
    memcpy(buffer->data + buffer->used, bytes, length);
    buffer->used += length;
    return true;
}

/* Sets bit `at`, which is the next one of the bitmap. */
static bool append_bit(core_buffer *bits, size_t at, bool on)
{
    if (at % 8 == 0) {
        if (!reserve(bits, 1)) {
            return false;
        }
        bits->data[bits->used++] = 0;
    }
    bits->data[at / 8] = (uint8_t)(bits->data[at / 8] | on << at % 8);
    return true;
}

static bool append_offset(core_buffer *offsets, size_t value)
{
    const int32_t offset = (int32_t)value;
    return append(offsets, &offset, sizeof offset);
}

/* Length of the well-formed UTF-8 sequence at the start of `text`; 0, and how many bytes to pass over, where there is none. */
static size_t sequence(const unsigned char *text, size_t length, size_t *broken)
{
    const unsigned first = text[0];
    *broken = 1;
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    const size_t need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
    unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
    for (size_t i = 1; i < need; i++) {
        if (i >= length || text[i] < low || text[i] > high) {
            *broken = i;
            return 0;
        }
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

/* Text of a program may be any bytes, a column of texts is UTF-8: what is none becomes U+FFFD. */
static bool append_text(core_buffer *values, const char *bytes, size_t length)
{
    const unsigned char *text = (const unsigned char *)bytes;
    size_t good = 0; /* from here on nothing was copied yet */
    size_t at = 0;
    while (at < length) {
        size_t broken;
        const size_t valid = sequence(text + at, length - at, &broken);
        if (valid) {
            at += valid;
            continue;
        }
        if (!append(values, bytes + good, at - good) ||
            !append(values, "\xef\xbf\xbd", 3)) {
            return false;
        }
        at += broken;
        good = at;
    }
    return append(values, bytes + good, at - good);
}

/* The cells of one column in a batch of rows, which are `stride` cells apart. */
struct strip {
    const core_cell *cell;
    size_t stride, rows;
    size_t first; /* number of the first of these rows in the column */
};

/* From the first row that is not known on, there is a bitmap. */
static bool add_known(core_values *column, const struct strip *strip)
{
    const core_cell *cell = strip->cell;
    for (size_t i = 0; i < strip->rows; i++, cell += strip->stride) {
        const size_t row = strip->first + i;
        if (cell->known && column->unknown == 0) {
            continue;
        }
        if (column->unknown == 0) {
            if (!reserve(&column->known, row / 8 + 1)) {
                return false;
            }
            memset(column->known.data, 0xff, row / 8 + 1);
            column->known.used = (row + 7) / 8;
            if (row % 8) {
                column->known.data[row / 8] = (uint8_t)((1u << row % 8) - 1);
            }
        }
        column->unknown += !cell->known;
        if (!append_bit(&column->known, row, cell->known)) {
            return false;
        }
    }
    return true;
}

/* Integers and reals: eight bytes each, 0 where not known. */
static bool add_numbers(core_values *column, const struct strip *strip)
{
    if (!reserve(&column->values, strip->rows * sizeof(int64_t))) {
        return false;
    }
    uint8_t *to = column->values.data + column->values.used;
    const core_cell *cell = strip->cell;
    for (size_t i = 0; i < strip->rows; i++, cell += strip->stride) {
        memcpy(to, &cell->as.integer, sizeof(int64_t));
        to += sizeof(int64_t);
    }
    column->values.used += strip->rows * sizeof(int64_t);
    return true;
}

static bool add_truths(core_values *column, const struct strip *strip)
{
    const core_cell *cell = strip->cell;
    for (size_t i = 0; i < strip->rows; i++, cell += strip->stride) {
        if (!append_bit(&column->values, strip->first + i,
                        cell->known && cell->as.truth)) {
            return false;
        }
    }
    return true;
}

static bool add_texts(core_values *column, const struct strip *strip)
{
    const core_cell *cell = strip->cell;
    /* Names repeat: what was found to be UTF-8 a row before is copied as it is. */
    core_bytes last = {NULL, 0};
    size_t last_at = 0;
    for (size_t i = 0; i < strip->rows; i++, cell += strip->stride) {
        const core_bytes *text = &cell->as.text;
        const size_t at = column->values.used;
        bool done = true;
        if (cell->known && text->data == last.data && text->length == last.length) {
            done = reserve(&column->values, text->length);
            if (done) {
                memcpy(column->values.data + at, column->values.data + last_at,
                       text->length);
                column->values.used += text->length;
            }
        } else if (cell->known) {
            done = append_text(&column->values, text->data, text->length);
            if (done && column->values.used - at == text->length) {
                last = *text;
                last_at = at;
            }
        }
        if (!done || !append_offset(&column->offsets, column->values.used)) {
            return false;
        }
    }
    return true;
}

static bool add_lists(core_values *column, const struct strip *strip)
{
    const core_cell *cell = strip->cell;
    for (size_t i = 0; i < strip->rows; i++, cell += strip->stride) {
        for (size_t k = 0; cell->known && k < cell->as.texts.count; k++) {
            const core_bytes *item = &cell->as.texts.items[k];
            if (!append_text(&column->values, item->data, item->length) ||
                !append_offset(&column->items, column->values.used)) {
                return false;
            }
        }
        if (!append_offset(&column->offsets, column->items.used / sizeof(int32_t) - 1)) {
            return false;
        }
    }
    return true;
}

static bool add_strip(core_values *column, enum core_column_type type,
                      const struct strip *strip)
{
    if (!add_known(column, strip)) {
        return false;
    }
    switch (type) {
    case CORE_INTEGER:
    case CORE_REAL:
        return add_numbers(column, strip);
    case CORE_TRUTH:
        return add_truths(column, strip);
    case CORE_NAME:
    case CORE_TEXT:
        return add_texts(column, strip);
    case CORE_TEXTS:
        return add_lists(column, strip);
    }
    return false;
}

int core_columns_init(core_columns *columns, const core_table_kind *kind)
{
    *columns = (core_columns){.kind = kind};
    columns->column = calloc(kind->column_count, sizeof *columns->column);
    if (!columns->column) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < kind->column_count; i++) {
        core_values *column = &columns->column[i];
        const enum core_column_type type = kind->columns[i].type;
        const bool texts = type == CORE_TEXTS;
        const bool text = texts || type == CORE_NAME || type == CORE_TEXT;
        /* No buffer of a batch is a null pointer, also where it has no bytes. */
        if (!reserve(&column->values, 1) ||
            (text && !append_offset(&column->offsets, 0)) ||
            (texts && !append_offset(&column->items, 0))) {
            core_columns_free(columns);
            return SW_ENOMEM;
        }
    }
    return SW_OK;
}

void core_columns_free(core_columns *columns)
{
    for (size_t i = 0; columns->column && i < columns->kind->column_count; i++) {
        core_values *column = &columns->column[i];
        free(column->known.data);
        free(column->values.data);
        free(column->offsets.data);
        free(column->items.data);
    }
    free(columns->column);
    columns->column = NULL;
    columns->rows = 0;
}

int core_columns_add(core_columns *columns, const core_cell *cells, size_t rows)
{
    const core_table_kind *kind = columns->kind;
    columns->text_bytes = 0;
    for (size_t i = 0; i < kind->column_count; i++) {
        const struct strip strip = {cells + i, kind->column_count, rows, columns->rows};
        core_values *column = &columns->column[i];
        if (!add_strip(column, kind->columns[i].type, &strip)) {
            return SW_ENOMEM;
        }
        if (column->offsets.used > 0) {
            columns->text_bytes += column->values.used;
        }
    }
    columns->rows += rows;
    return SW_OK;
}

int core_columns_read(core_columns *columns, core_reader *reader, size_t most,
                      sw_error_info *info)
{
    core_cell *cells = calloc(BATCH * columns->kind->column_count, sizeof *cells);
    int error = cells ? SW_OK : SW_ENOMEM;
    while (!error && columns->rows < most && columns->text_bytes < TEXT_MOST) {
        const size_t left = most - columns->rows;
        size_t rows;
        error = core_reader_fill(reader, cells, left < BATCH ? left : BATCH, &rows, info);
        if (error || rows == 0) {
            break;
        }
        error = core_columns_add(columns, cells, rows);
    }
    free(cells);
    if (error && info && !info->message[0]) {
        sw_error_set(info, error, "%s", sw_error_text(error));
    }
    return error;
}
