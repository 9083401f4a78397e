/* Resident memory of sections: what was read at their ends, and what the monitor saw while they were open. */
#include "analyze/memory.h"

#include <stdlib.h>
#include <string.h>

static bool same_path(const char *const *a, size_t a_depth, const char *const *b,
                      size_t b_depth)
{
    for (size_t i = 0; a_depth == b_depth && i < a_depth; i++) {
        if (strcmp(a[i], b[i]) != 0) {
            return false;
        }
    }
    return a_depth == b_depth;
}

static sw_memory_resident *add(sw_memory *memory, const sw_memory_section *place)
{
    sw_memory_resident *made = &memory->residents[memory->resident_count++];
    *made = (sw_memory_resident){.path = place->path,
                                 .depth = place->depth,
                                 .thread = place->thread,
                                 .calls = place->calls,
                                 .highest = SW_UNKNOWN};
    return made;
}

static void raise_highest(sw_memory_resident *it, uint64_t bytes)
{
    it->highest = it->highest == SW_UNKNOWN || it->highest < bytes ? bytes : it->highest;
}

/* Joins what was counted of allocations, also of sections of which nothing was read. */
static void join_counted(sw_memory *memory)
{
    const size_t read = memory->resident_count;
    for (size_t i = 0; i < memory->section_count; i++) {
        const sw_memory_section *section = &memory->sections[i];
        sw_memory_resident *to = NULL;
        for (size_t k = 0; k < read && !to; k++) {
            sw_memory_resident *at = &memory->residents[k];
            to = strcmp(section->thread, at->thread) == 0 && !at->counted &&
                         same_path(section->path, section->depth, at->path, at->depth)
                     ? at
                     : NULL;
        }
        (to ? to : add(memory, section))->counted = section;
    }
}

static void read_rows(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_RESIDENT); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_RESIDENT, i);
        sw_memory_section place;
        /* A row without calls was made, and the program ended before the first one did. */
        if (!row || row->value[0] == 0 ||
            !sw__memory_place(summary, trace, row->key[0], row->key[1], &place)) {
            continue;
        }
        sw_memory_resident *to = add(memory, &place);
        to->read = row->value[0];
        to->sum = (int64_t)row->value[1];
        to->most = (int64_t)row->value[2];
        to->least = (int64_t)row->value[3];
        raise_highest(to, row->value[4]);
    }
}

/* The monitor of the main process, or NULL. */
static const sw_monitor *monitor_of(const sw_summary *summary, const sw_trace *trace)
{
    const sw_monitor *monitor = sw_summary_monitor(summary, 0);
    return monitor && sw_monitor_get_totals(monitor)->pid == sw_trace_get_info(trace)->pid
               ? monitor
               : NULL;
}

static sw_memory_resident *find(sw_memory *memory, const sw_monitor_section *section)
{
    for (size_t i = 0; i < memory->resident_count; i++) {
        sw_memory_resident *at = &memory->residents[i];
        if (same_path(at->path, at->depth, section->path, section->depth)) {
            return at;
        }
    }
    const sw_memory_section place = {
        .path = section->path, .depth = section->depth, .calls = SW_UNKNOWN};
    return add(memory, &place);
}

static void read_monitor(sw_memory *memory, const sw_monitor *monitor)
{
    size_t series = 0;
    while (series < sw_monitor_series_count(monitor) &&
           strcmp(sw_monitor_get_series(monitor, series)->name, "process.rss") != 0) {
        series++;
    }
    for (size_t i = 0; series < sw_monitor_series_count(monitor) &&
                       i < sw_monitor_section_count(monitor);
         i++) {
        const sw_monitor_stats seen = sw_monitor_in_section(monitor, series, i);
        if (seen.samples && seen.max >= 0 && seen.max < 0x1p63) {
            raise_highest(find(memory, sw_monitor_get_section(monitor, i)),
                          (uint64_t)seen.max);
        }
    }
}

static int by_sum(const void *left, const void *right)
{
    const sw_memory_resident *a = left;
    const sw_memory_resident *b = right;
    if (a->sum != b->sum) {
        return a->sum < b->sum ? 1 : -1;
    }
    /* What is unknown comes last: it is 0 with one more. */
    return (a->highest + 1 < b->highest + 1) - (a->highest + 1 > b->highest + 1);
}

int sw__memory_residents(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    const sw_monitor *monitor = monitor_of(summary, trace);
    const size_t most = sw_trace_row_count(trace, SW_TABLE_RESIDENT) +
                        memory->section_count +
                        (monitor ? sw_monitor_section_count(monitor) : 0);
    memory->residents = sw__summary_take(summary, most + 1, sizeof *memory->residents);
    if (!memory->residents) {
        return SW_ENOMEM;
    }
    read_rows(summary, memory, trace);
    join_counted(memory);
    if (monitor) {
        read_monitor(memory, monitor);
    }
    qsort(memory->residents, memory->resident_count, sizeof *memory->residents, by_sum);
    return SW_OK;
}

const sw_memory_resident *sw_memory_residents(const sw_memory *memory, size_t *count)
{
    *count = memory->resident_count;
    return memory->residents;
}
