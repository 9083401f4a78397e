/* Rows of tables: which there are, by table and index. */
#include <string.h>

#include "read/trace_internal.h"

/* Calls `visit` for every whole row of the file that is of a known table. */
static int visit_rows(sw_trace *trace,
                      void (*visit)(sw_trace *trace, const sw_row *row, size_t most),
                      size_t most)
{
    struct sw__scratch scratch = {0};
    int result = SW_OK;
    for (size_t i = 0; i < trace->state_count && result == SW_OK; i++) {
        const struct sw__block *block = &trace->blocks[i];
        if (block->kind != SW__BLOCK_ROWS) {
            continue;
        }
        size_t length;
        if (!sw__scratch_load(&scratch, trace, block, &length)) {
            result = SW_ENOMEM;
            break;
        }
        sw_row row;
        for (size_t at = 0; length - at >= sizeof row; at += sizeof row) {
            memcpy(&row, scratch.data + at, sizeof row);
            if (row.table < SW_TABLES) {
                visit(trace, &row, most);
            }
        }
    }
    sw__free(scratch.data);
    return result;
}

/* Indexes are dense, so one that is larger than the number of rows is damage. */
static void count_row(sw_trace *trace, const sw_row *row, size_t most)
{
    struct sw__rows *rows = &trace->rows[row->table];
    if (row->index < most && row->index >= rows->count) {
        rows->count = row->index + (size_t)1;
    }
}

static void keep_row(sw_trace *trace, const sw_row *row, size_t most)
{
    struct sw__rows *rows = &trace->rows[row->table];
    (void)most;
    if (row->index < rows->count) {
        rows->row[row->index] = *row;
    }
}

int sw__rows_load(sw_trace *trace)
{
    size_t most = 0;
    for (size_t i = 0; i < trace->state_count; i++) {
        if (trace->blocks[i].kind == SW__BLOCK_ROWS) {
            most += trace->blocks[i].used / sizeof(sw_row);
        }
    }
    int result = most ? visit_rows(trace, count_row, most) : SW_OK;
    size_t known = 0;
    for (unsigned table = 0; table < SW_TABLES && result == SW_OK; table++) {
        struct sw__rows *rows = &trace->rows[table];
        if (rows->count == 0) {
            continue;
        }
        rows->row = sw__arena_take(trace->arena, rows->count * sizeof *rows->row,
                                   _Alignof(sw_row));
        if (!rows->row) {
            return SW_ENOMEM;
        }
        memset(rows->row, 0, rows->count * sizeof *rows->row);
        for (size_t i = 0; i < rows->count; i++) {
            rows->row[i].table = SW_TABLES; /* not there */
        }
        known += rows->count;
    }
    if (known && result == SW_OK) {
        result = visit_rows(trace, keep_row, most);
    }
    return result;
}

size_t sw_trace_row_count(const sw_trace *trace, enum sw_table table)
{
    return (unsigned)table < SW_TABLES ? trace->rows[table].count : 0;
}

const sw_row *sw_trace_get_row(const sw_trace *trace, enum sw_table table, size_t index)
{
    if (index >= sw_trace_row_count(trace, table)) {
        return NULL;
    }
    const sw_row *row = &trace->rows[table].row[index];
    return row->table == table ? row : NULL;
}
