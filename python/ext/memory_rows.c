/* Sampled allocations as rows of the trace: tables BLOCKS and KEPT (<stepwatch/records.h>). */
#include "memory.h"

#include "code_rows.h"
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

enum { KEPT_MOST = 64, IN_ROW = 5 };

static uint32_t code_row(uint32_t function)
{
    memory_function it;
    if (!memory_function_get(function, &it)) {
        return CORE_NO_CODE;
    }
    return core_code_row(it.file, strlen(it.file), it.qualname, strlen(it.qualname),
                         it.name, strlen(it.name), it.first_line,
                         function & SW_HEAP_CALLER ? (unsigned)SW_ROW_NATIVE : 0u);
}

static uint64_t whole(double number)
{
    return number > 0 ? (uint64_t)(number + 0.5) : 0;
}

/* A series of points in rows of five. `key`: the BLOCKS index, or UINT32_MAX for the steps at which they were taken. */
static void write_points(uint32_t key, const uint64_t *points, size_t count)
{
    for (size_t at = 0; at < count; at += IN_ROW) {
        const size_t here = count - at < IN_ROW ? count - at : IN_ROW;
        sw_row row = {.table = SW_TABLE_KEPT,
                      .key = {key, (uint32_t)at, (uint32_t)here, (uint32_t)count}};
        memcpy(row.value, points + at, here * sizeof *points);
        (void)sw_row_put(0, &row);
    }
}

/* What is in use at the end of a program says little: it has given back what it kept. */
static double most_of(const sw_heap_site *site)
{
    return site->live > site->peak ? site->live : site->peak;
}

static int by_most(const void *left, const void *right)
{
    const double a = most_of(*(const sw_heap_site *const *)left);
    const double b = most_of(*(const sw_heap_site *const *)right);
    return (a < b) - (a > b);
}

static void write_kept(const sw_heap_snapshot *snapshot, const uint32_t *rows)
{
    const sw_heap_site **order = malloc((snapshot->count + 1) * sizeof *order);
    uint64_t *points = malloc((snapshot->steps + 1) * sizeof *points);
    if (order && points && snapshot->steps) {
        for (size_t i = 0; i < snapshot->count; i++) {
            order[i] = &snapshot->sites[i];
        }
        qsort(order, snapshot->count, sizeof *order, by_most);
        write_points(UINT32_MAX, snapshot->step, snapshot->steps);
        for (size_t k = 0; k < snapshot->count && k < KEPT_MOST; k++) {
            const size_t site = (size_t)(order[k] - snapshot->sites);
            if (!(most_of(order[k]) > 0) || rows[site] == 0) {
                break;
            }
            for (size_t i = 0; i < snapshot->steps; i++) {
                points[i] = whole(snapshot->points[site * snapshot->steps + i]);
            }
            write_points(rows[site] - 1, points, snapshot->steps);
        }
    }
    free(order);
    free(points);
}

void memory_rows_write(const sw_heap_snapshot *snapshot)
{
    /* Index plus 1 of each site's row; 0: it has none, and neither have those below it. */
    uint32_t *rows = calloc(snapshot->count + 1, sizeof *rows);
    if (!rows) {
        return;
    }
    for (size_t i = 0; i < snapshot->count; i++) {
        const sw_heap_site *site = &snapshot->sites[i];
        const uint32_t parent = site->parent ? rows[site->parent - 1] : 0;
        if (site->parent && !parent) {
            continue;
        }
        sw_row row = {.table = SW_TABLE_BLOCKS,
                      .key = {parent, code_row(site->frame.function), site->frame.line},
                      .value = {whole(site->allocated), whole(site->blocks),
                                whole(site->live), whole(site->peak), site->samples}};
        if (row.key[1] != CORE_NO_CODE && sw_row_put(0, &row)) {
            rows[i] = row.index + 1;
        }
    }
    write_kept(snapshot, rows);
    free(rows);
}
