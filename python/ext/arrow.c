#include "arrow.h"

#include "columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_ROWS 65536

/* --- Schemas ---------------------------------------------------------------------- */

/* Children are ours until their release is taken over by somebody, who then sets it to NULL here. */
static void schema_release(struct ArrowSchema *schema)
{
    for (int64_t i = 0; i < schema->n_children; i++) {
        if (schema->children[i] && schema->children[i]->release) {
            schema->children[i]->release(schema->children[i]);
        }
        free(schema->children[i]);
    }
    free(schema->children);
    schema->release = NULL;
}

/* Texts are static. On failure everything made so far is released. */
static int schema_init(struct ArrowSchema *schema, const char *format, const char *name,
                       bool nullable, size_t children)
{
    *schema = (struct ArrowSchema){
        .format = format,
        .name = name,
        .flags = nullable ? ARROW_NULLABLE : 0,
        .release = schema_release,
    };
    if (children == 0) {
        return SW_OK;
    }
    schema->children = calloc(children, sizeof *schema->children);
    if (!schema->children) {
        schema->release = NULL;
        return SW_ENOMEM;
    }
    schema->n_children = (int64_t)children;
    for (size_t i = 0; i < children; i++) {
        schema->children[i] = calloc(1, sizeof *schema->children[i]);
        if (!schema->children[i]) {
            schema_release(schema);
            return SW_ENOMEM;
        }
    }
    return SW_OK;
}

static const char *format_of(enum core_column_type type)
{
    switch (type) {
    case CORE_INTEGER:
        return "l";
    case CORE_REAL:
        return "g";
    case CORE_TRUTH:
        return "b";
    case CORE_NAME:
    case CORE_TEXT:
        return "u";
    case CORE_TEXTS:
        return "+l";
    }
    return "n";
}

int core_arrow_schema(struct ArrowSchema *out, const core_table_kind *kind)
{
    int error = schema_init(out, "+s", "", false, kind->column_count);
    for (size_t i = 0; !error && i < kind->column_count; i++) {
        const core_column *column = &kind->columns[i];
        const bool list = column->type == CORE_TEXTS;
        struct ArrowSchema *child = out->children[i];
        error = schema_init(child, format_of(column->type), column->name,
                            column->nullable, list);
        if (!error && list) {
            error = schema_init(child->children[0], "u", "item", false, 0);
        }
        if (error) {
            schema_release(out);
        }
    }
    return error;
}

/* --- Arrays ----------------------------------------------------------------------- */

/* What an array owns. The buffers that `buffers` points at come from malloc. */
struct holding {
    const void *buffers[3];
};

static void array_release(struct ArrowArray *array)
{
    struct holding *holding = array->private_data;
    for (int64_t i = 0; i < array->n_children; i++) {
        if (array->children[i] && array->children[i]->release) {
            array->children[i]->release(array->children[i]);
        }
        free(array->children[i]);
    }
    for (int64_t i = 0; holding && i < array->n_buffers; i++) {
        free((void *)holding->buffers[i]);
    }
    free(array->children);
    free(holding);
    array->release = NULL;
}

static int array_init(struct ArrowArray *array, size_t length, int64_t nulls,
                      size_t buffers, size_t children)
{
    struct holding *holding = calloc(1, sizeof *holding);
    *array = (struct ArrowArray){
        .length = (int64_t)length,
        .null_count = nulls,
        .n_buffers = (int64_t)buffers,
        .buffers = holding ? holding->buffers : NULL,
        .private_data = holding,
        .release = array_release,
    };
    if (children) {
        array->children = calloc(children, sizeof *array->children);
        array->n_children = array->children ? (int64_t)children : 0;
    }
    bool whole = holding && (!children || array->children);
    for (int64_t i = 0; whole && i < array->n_children; i++) {
        array->children[i] = calloc(1, sizeof *array->children[i]);
        whole = array->children[i] != NULL;
    }
    if (!whole) {
        array_release(array);
        return SW_ENOMEM;
    }
    return SW_OK;
}

/* The buffer's memory; it is no longer the column's. */
static const void *give(core_buffer *buffer)
{
    const void *data = buffer->data;
    *buffer = (core_buffer){0};
    return data;
}

static int column_export(struct ArrowArray *out, core_values *column,
                         enum core_column_type type, size_t rows)
{
    const bool text = type == CORE_NAME || type == CORE_TEXT;
    const bool list = type == CORE_TEXTS;
    const size_t items = column->items.used / sizeof(int32_t);
    int error = array_init(out, rows, column->unknown, text ? 3 : 2, list);
    if (error) {
        return error;
    }
    if (list) {
        error = array_init(out->children[0], items - 1, 0, 3, 0);
        if (error) {
            array_release(out);
            return error;
        }
    }
    out->buffers[0] = give(&column->known);
    if (text || list) {
        out->buffers[1] = give(&column->offsets);
    }
    if (list) {
        out->children[0]->buffers[1] = give(&column->items);
        out->children[0]->buffers[2] = give(&column->values);
    } else {
        out->buffers[text ? 2 : 1] = give(&column->values);
    }
    return SW_OK;
}

static int columns_export(struct ArrowArray *out, core_columns *columns)
{
    const core_table_kind *kind = columns->kind;
    int error = array_init(out, columns->rows, 0, 1, kind->column_count);
    for (size_t i = 0; !error && i < kind->column_count; i++) {
        error = column_export(out->children[i], &columns->column[i],
                              kind->columns[i].type, columns->rows);
        if (error) {
            array_release(out);
        }
    }
    return error;
}

/* --- Streams ---------------------------------------------------------------------- */

struct stream {
    core_reader *reader;
    sw_error_info info;
};

static int stream_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    struct stream *stream = self->private_data;
    const int error = core_arrow_schema(out, stream->reader->kind);
    if (error) {
        sw_error_set(&stream->info, error, "%s", sw_error_text(error));
        return ENOMEM;
    }
    return 0;
}

static int stream_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    struct stream *stream = self->private_data;
    core_columns columns;
    *out = (struct ArrowArray){0};
    stream->info = (sw_error_info){0};
    int error = core_columns_init(&columns, stream->reader->kind);
    if (!error) {
        error = core_columns_read(&columns, stream->reader, BATCH_ROWS, &stream->info);
        if (!error && columns.rows > 0) {
            error = columns_export(out, &columns);
        }
        core_columns_free(&columns);
    }
    if (error && !stream->info.message[0]) {
        sw_error_set(&stream->info, error, "%s", sw_error_text(error));
    }
    return error == SW_OK ? 0 : error == SW_ENOMEM ? ENOMEM : EIO;
}

static const char *stream_last_error(struct ArrowArrayStream *self)
{
    const struct stream *stream = self->private_data;
    return stream->info.message[0] ? stream->info.message : NULL;
}

static void stream_release(struct ArrowArrayStream *self)
{
    struct stream *stream = self->private_data;
    core_reader_free(stream->reader);
    free(stream);
    self->release = NULL;
}

int core_arrow_stream(struct ArrowArrayStream *out, core_source *source,
                      enum core_table_number number, sw_error_info *info)
{
    struct stream *stream = calloc(1, sizeof *stream);
    if (!stream) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    const int error = core_reader_open(&stream->reader, source, number, info);
    if (error) {
        free(stream);
        return error;
    }
    *out = (struct ArrowArrayStream){
        .get_schema = stream_schema,
        .get_next = stream_next,
        .get_last_error = stream_last_error,
        .release = stream_release,
        .private_data = stream,
    };
    return SW_OK;
}
