/* Rows as columns in memory, in the layout of Arrow: a bitmap of what is known, values, offsets of texts. Knows nothing of
 * Python. */
#ifndef STEPWATCH_EXT_COLUMNS_H
#define STEPWATCH_EXT_COLUMNS_H

#include "table.h"

/* A growing piece of memory from malloc. Invariant: used <= room. */
typedef struct core_buffer {
    uint8_t *data;
    size_t used, room;
} core_buffer;

/* One column. `offsets` has one entry more than there are texts (or lists); `values` holds numbers, a bitmap of truths, or the
 * bytes of the texts. `items` are the offsets of the texts of a list column, whose lists `offsets` separate. */
typedef struct core_values {
    core_buffer known; /* bit i: row i is known; empty while all are */
    core_buffer values;
    core_buffer offsets;
    core_buffer items;
    int64_t unknown; /* rows that are not known */
} core_values;

typedef struct core_columns {
    const core_table_kind *kind;
    core_values *column; /* kind->column_count */
    size_t rows;
    size_t text_bytes; /* of all columns */
} core_columns;

int core_columns_init(core_columns *columns, const core_table_kind *kind);
void core_columns_free(core_columns *columns);
/* Appends rows. 0 or SW_ENOMEM, after which the columns can only be freed. */
int core_columns_add(core_columns *columns, const core_cell *cells, size_t rows);
/* Reads on until `most` rows or about 64 MiB of text are there, or the table ends. */
int core_columns_read(core_columns *columns, core_reader *reader, size_t most,
                      sw_error_info *info);

#endif
