#include "columns.h"

#include <stdlib.h>
#include <string.h>

/* Offsets are 32 bits wide; this is far below what they can tell. */
#define TEXT_MOST ((size_t)64 << 20)
#define BATCH 256

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

/* From the first row that is not known on, there is a bitmap. */
static bool append_known(core_values *column, size_t row, bool known)
{
    if (known && column->unknown == 0) {
        return true;
    }
    if (column->unknown == 0) {
        const size_t bytes = row / 8 + 1;
        if (!reserve(&column->known, bytes)) {
            return false;
        }
        memset(column->known.data, 0xff, bytes);
        column->known.used = (row + 7) / 8;
        if (row % 8) {
            column->known.data[row / 8] = (uint8_t)((1u << row % 8) - 1);
        }
    }
    column->unknown += !known;
    return append_bit(&column->known, row, known);
}

static bool append_texts(core_columns *columns, core_values *column,
                         const core_cell *cell)
{
    for (size_t i = 0; cell->known && i < cell->as.texts.count; i++) {
        const core_bytes *item = &cell->as.texts.items[i];
        const size_t before = column->values.used;
        if (!append_text(&column->values, item->data, item->length) ||
            !append_offset(&column->items, column->values.used)) {
            return false;
        }
        columns->text_bytes += column->values.used - before;
    }
    return append_offset(&column->offsets, column->items.used / sizeof(int32_t) - 1);
}

static bool append_cell(core_columns *columns, core_values *column,
                        enum core_column_type type, const core_cell *cell)
{
    if (!append_known(column, columns->rows, cell->known)) {
        return false;
    }
    switch (type) {
    case CORE_INTEGER:
        return append(&column->values, &cell->as.integer, sizeof cell->as.integer);
    case CORE_REAL: {
        const double real = cell->known ? cell->as.real : 0;
        return append(&column->values, &real, sizeof real);
    }
    case CORE_TRUTH:
        return append_bit(&column->values, columns->rows,
                          cell->known && cell->as.truth);
    case CORE_NAME:
    case CORE_TEXT: {
        const size_t before = column->values.used;
        if (cell->known && !append_text(&column->values, cell->as.text.data,
                                        cell->as.text.length)) {
            return false;
        }
        columns->text_bytes += column->values.used - before;
        return append_offset(&column->offsets, column->values.used);
    }
    case CORE_TEXTS:
        return append_texts(columns, column, cell);
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
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < kind->column_count; i++) {
            if (!append_cell(columns, &columns->column[i], kind->columns[i].type,
                             cells++)) {
                return SW_ENOMEM;
            }
        }
        columns->rows++;
    }
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
