/* Tables of memory: sections by what they added and allocated, and lines by what they allocated. */
#include "table.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int memory_prepare(core_source *source, void **made, sw_error_info *info)
{
    (void)made; /* the summary is the source's own */
    return core_source_summary(source, info);
}

/* --- sections --- */

static const core_column memory_columns[] = {
    {"path", CORE_TEXTS, false},
    {"name", CORE_NAME, false},
    {"thread", CORE_NAME, true},
    {"calls", CORE_INTEGER, true},
    {"calls_read", CORE_INTEGER, false},
    {"rss_delta_bytes", CORE_INTEGER, true},
    {"rss_delta_mean_bytes", CORE_REAL, true},
    {"rss_delta_max_bytes", CORE_INTEGER, true},
    {"rss_delta_min_bytes", CORE_INTEGER, true},
    {"rss_peak_bytes", CORE_INTEGER, true},
    {"peak_bytes", CORE_INTEGER, true},
    {"allocated_bytes", CORE_INTEGER, true},
    {"blocks", CORE_INTEGER, true},
    {"freed_bytes", CORE_INTEGER, true},
    {"blocks_freed", CORE_INTEGER, true},
};

static uint64_t memory_count(const core_source *source)
{
    size_t count;
    (void)sw_memory_residents(sw_summary_memory(source->summary), &count);
    return count;
}

static int put_path(core_reader *reader, core_cell *cell, const sw_memory_resident *row)
{
    core_bytes *items = core_reader_take(reader, row->depth * sizeof *items);
    if (!items) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < row->depth; i++) {
        items[i] = (core_bytes){row->path[i], strlen(row->path[i])};
    }
    cell->known = true;
    cell->as.texts.items = items;
    cell->as.texts.count = row->depth;
    return SW_OK;
}

/* A number that may be below 0. */
static void put_change(core_cell *cell, bool known, int64_t value)
{
    cell->known = known;
    cell->as.integer = known ? value : 0;
}

static int memory_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    size_t count;
    const sw_memory_resident *row =
        sw_memory_residents(sw_summary_memory(reader->source->summary), &count) + index;
    const sw_memory_section *counted = row->counted;
    const bool read = row->read > 0;
    if (put_path(reader, cell++, row) != SW_OK) {
        return SW_ENOMEM;
    }
    core_put_text(cell++, row->path[row->depth - 1]);
    core_put_text(cell++, row->thread);
    core_put_integer(cell++, row->calls);
    core_put_count(cell++, row->read);
    put_change(cell++, read, row->sum);
    if (read) {
        core_put_real(cell++, (double)row->sum / (double)row->read);
    } else {
        core_put_unknown(cell++);
    }
    put_change(cell++, read, row->most);
    put_change(cell++, read, row->least);
    core_put_integer(cell++, row->highest);
    core_put_integer(cell++, counted ? counted->peak : SW_UNKNOWN);
    core_put_integer(cell++, counted ? counted->sum.allocated : SW_UNKNOWN);
    core_put_integer(cell++, counted ? counted->sum.blocks : SW_UNKNOWN);
    core_put_integer(cell++, counted ? counted->sum.freed : SW_UNKNOWN);
    core_put_integer(cell++, counted ? counted->sum.blocks_freed : SW_UNKNOWN);
    return SW_OK;
}

const core_table_kind core_table_memory = {
    .name = "memory",
    .columns = memory_columns,
    .column_count = COUNT(memory_columns),
    .prepare = memory_prepare,
    .count = memory_count,
    .at = memory_at,
};

/* --- lines --- */

static const core_column allocations_columns[] = {
    {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, true},
    {"function", CORE_NAME, false},
    {"own", CORE_TRUTH, false},
    {"allocated_bytes", CORE_INTEGER, false},
    {"blocks", CORE_INTEGER, false},
    {"live_bytes", CORE_INTEGER, false},
    {"peak_bytes", CORE_INTEGER, false},
    {"samples", CORE_INTEGER, false},
    {"grows", CORE_TRUTH, false},
    {"bytes_per_step", CORE_REAL, true},
};

static uint64_t allocations_count(const core_source *source)
{
    size_t count;
    (void)sw_memory_sites(sw_summary_memory(source->summary), &count);
    return count;
}

static int allocations_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    size_t count;
    const sw_memory_site *site =
        sw_memory_sites(sw_summary_memory(reader->source->summary), &count) + index;
    core_put_text(cell++, *site->file ? site->file : NULL);
    core_put_integer(cell++, site->line ? site->line : SW_UNKNOWN);
    core_put_text(cell++, site->function);
    core_put_truth(cell++, site->own);
    core_put_count(cell++, site->allocated);
    core_put_count(cell++, site->blocks);
    core_put_count(cell++, site->live);
    core_put_count(cell++, site->peak);
    core_put_count(cell++, site->samples);
    core_put_truth(cell++, site->growth.grows);
    if (site->growth.slope == site->growth.slope) {
        core_put_real(cell++, site->growth.slope);
    } else {
        core_put_unknown(cell++);
    }
    return SW_OK;
}

const core_table_kind core_table_allocations = {
    .name = "allocations",
    .columns = allocations_columns,
    .column_count = COUNT(allocations_columns),
    .prepare = memory_prepare,
    .count = allocations_count,
    .at = allocations_at,
};
