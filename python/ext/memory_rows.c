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

/* Rows that were made, by site: sites keep their numbers as long as it is counted. They are changed in place, so that a program
 * that is killed leaves what it had when they were last written. */
static struct {
    uint32_t recording;
    size_t count; /* sites that have a place here */
    struct kept {
        uint64_t handle;      /* 0: it has none, and neither have those below it */
        uint32_t parent, row; /* index plus 1, index */
        sw_heap_frame frame;
        uint64_t value[5];
    } * list;
} kept;

static void write_kept(const sw_heap_snapshot *snapshot)
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
            if (!(most_of(order[k]) > 0) || !kept.list[site].handle) {
                break;
            }
            for (size_t i = 0; i < snapshot->steps; i++) {
                points[i] = whole(snapshot->points[site * snapshot->steps + i]);
            }
            write_points(kept.list[site].row, points, snapshot->steps);
        }
    }
    free(order);
    free(points);
}

/* Whether the rows are of this recording and these sites; else they are forgotten. */
static void rows_check(const sw_heap_snapshot *snapshot)
{
    const uint32_t recording = sw_recording_number();
    bool same = kept.recording == recording && kept.count <= snapshot->count;
    for (size_t i = 0; same && i < kept.count; i++) {
        same = kept.list[i].parent == snapshot->sites[i].parent &&
               kept.list[i].frame.function == snapshot->sites[i].frame.function &&
               kept.list[i].frame.line == snapshot->sites[i].frame.line;
    }
    if (!same) {
        free(kept.list);
        kept.list = NULL;
        kept.count = 0;
        kept.recording = recording;
    }
}

static void write_site(const sw_heap_site *site, struct kept *place)
{
    const struct kept *above = site->parent ? &kept.list[site->parent - 1] : NULL;
    sw_row row = {.table = SW_TABLE_BLOCKS,
                  .key = {above ? above->row + 1 : 0, 0, site->frame.line},
                  .value = {whole(site->allocated), whole(site->blocks),
                            whole(site->live), whole(site->peak), site->samples}};
    if (above && !above->handle) {
        return;
    }
    if (place->handle && memcmp(place->value, row.value, sizeof row.value) == 0) {
        return;
    }
    row.key[1] = place->handle ? 0 : code_row(site->frame.function);
    if (row.key[1] != CORE_NO_CODE) {
        place->handle = sw_row_put(place->handle, &row);
        place->row = row.index;
        memcpy(place->value, row.value, sizeof row.value);
    }
}

void memory_rows_write(const sw_heap_snapshot *snapshot, bool last)
{
    rows_check(snapshot);
    struct kept *more = realloc(kept.list, (snapshot->count + 1) * sizeof *kept.list);
    if (!more) {
        return;
    }
    kept.list = more;
    for (size_t i = 0; i < snapshot->count; i++) {
        const sw_heap_site *site = &snapshot->sites[i];
        if (i >= kept.count) {
            kept.list[i] = (struct kept){.parent = site->parent, .frame = site->frame};
            kept.count = i + 1;
        }
        write_site(site, &kept.list[i]);
    }
    if (last) {
        write_kept(snapshot);
        free(kept.list);
        memset(&kept, 0, sizeof kept);
    }
}
