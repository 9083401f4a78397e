/* What the tables of memory say: processes and sections. */
#include "analyze/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void read_heap(const sw_trace *trace, sw_memory_process *process)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_HEAP);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_HEAP, i);
        if (!row || (row->key[0] >= SW_HEAP_PARTS && row->key[0] != SW_HEAP_ALL)) {
            continue;
        }
        sw_memory_sum *to =
            row->key[0] == SW_HEAP_ALL ? &process->sum : &process->part[row->key[0]];
        /* A recording may have begun and ended counting more than once. */
        to->allocated = sw__add(to->allocated, row->value[0]);
        to->blocks = sw__add(to->blocks, row->value[1]);
        to->freed = sw__add(to->freed, row->value[2]);
        to->blocks_freed = sw__add(to->blocks_freed, row->value[3]);
        process->peak = row->value[4] > process->peak ? row->value[4] : process->peak;
        process->sample_bytes = row->key[1];
        process->counted = true;
    }
}

static void read_process(const sw_trace *trace, bool main, sw_memory_process *out)
{
    const sw_row *row = sw_trace_get_row(trace, SW_TABLE_MEMORY, 0);
    *out = (sw_memory_process){.pid = sw_trace_get_info(trace)->pid,
                               .main = main,
                               .resident_start = row ? row->value[0] : SW_UNKNOWN,
                               .resident_end = row ? row->value[1] : SW_UNKNOWN,
                               .resident_peak = row ? row->value[2] : SW_UNKNOWN,
                               .least_room = row ? row->value[3] : SW_UNKNOWN,
                               .swapped = row ? row->value[4] : SW_UNKNOWN};
    read_heap(trace, out);
}

/* The monitor looks once a second. A program that fills what its control group may have reaches its peak in between, and may be ended
 * there: it had no more room then than the limit leaves. What is resident of shared files may be another group's. */
static void limit_room(const sw_monitor *monitor, sw_memory_process *process)
{
    const sw_monitor_series *limit =
        monitor ? sw_monitor_find(monitor, "cgroup.memory_limit") : NULL;
    if (!limit || !(limit->last > 0) || !(limit->last < 1e18) ||
        process->resident_peak == SW_UNKNOWN) {
        return;
    }
    const uint64_t room = sw__sub((uint64_t)limit->last, process->resident_peak);
    if (process->least_room == SW_UNKNOWN || room < process->least_room) {
        process->least_room = room;
    }
}

/* --- sections --- */

static const sw_trace_lane *lane_of(const sw_trace *trace, uint32_t thread)
{
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        if (lane->thread == thread && lane->domain == 0) {
            return lane;
        }
    }
    return NULL;
}

static const char *thread_name(const sw_trace *trace, uint32_t index)
{
    for (size_t i = 0; i < sw_trace_thread_count(trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace, i);
        if (thread->index == index) {
            return thread->name;
        }
    }
    return "";
}

/* The names from the root to a node. */
static bool find_path(sw_summary *summary, const sw_trace *trace,
                      const sw_trace_lane *lane, size_t node, sw_memory_section *out)
{
    size_t depth = 0;
    for (size_t at = node; at > 0; at = lane->nodes[at].parent) {
        if (lane->nodes[at].parent >= at) {
            return false;
        }
        depth++;
    }
    const char **path = sw__summary_take(summary, depth, sizeof *path);
    if (!path || depth == 0) {
        return false;
    }
    out->path = path;
    out->depth = depth;
    for (size_t at = node; at > 0; at = lane->nodes[at].parent) {
        const sw_trace_name *name = sw_trace_get_name(trace, lane->nodes[at].section);
        path[--depth] = name ? name->text : "?";
    }
    return true;
}

bool sw__memory_place(sw_summary *summary, const sw_trace *trace, uint32_t thread,
                      uint32_t node, sw_memory_section *out)
{
    const sw_trace_lane *lane = lane_of(trace, thread);
    if (!lane || node >= lane->node_count ||
        !find_path(summary, trace, lane, node, out)) {
        return false;
    }
    out->thread = thread_name(trace, thread);
    out->calls = lane->nodes[node].calls;
    return true;
}

static int by_peak(const void *left, const void *right)
{
    const sw_memory_section *a = left;
    const sw_memory_section *b = right;
    if (a->peak != b->peak) {
        return a->peak < b->peak ? 1 : -1;
    }
    return (a->sum.allocated < b->sum.allocated) - (a->sum.allocated > b->sum.allocated);
}

static int read_sections(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_ALLOCATIONS);
    memory->sections = sw__summary_take(summary, count + 1, sizeof *memory->sections);
    if (!memory->sections) {
        return SW_ENOMEM;
    }
    const sw_row *whole = NULL; /* of the newest section */
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_ALLOCATIONS, i);
        if (!row) {
            continue;
        }
        const sw_memory_sum sum = {row->value[0], row->value[1], row->value[2],
                                   row->value[3]};
        if (row->key[2] > 0) {
            if (whole && row->key[0] == whole->key[0] && row->key[1] == whole->key[1] &&
                row->key[2] <= SW_HEAP_PARTS) {
                sw_memory_section *last = &memory->sections[memory->section_count - 1];
                last->part[row->key[2] - 1] = sum;
                last->parted = true;
            }
            continue;
        }
        sw_memory_section *section = &memory->sections[memory->section_count];
        whole = NULL;
        if (sw__memory_place(summary, trace, row->key[0], row->key[1], section)) {
            whole = row;
            section->sum = sum;
            section->peak = row->value[4];
            memory->section_count++;
        }
    }
    qsort(memory->sections, memory->section_count, sizeof *memory->sections, by_peak);
    return SW_OK;
}

/* --- allocators of frameworks, of all processes --- */

/* An allocator has two rows; the one with its bytes comes first. */
static void read_allocator(sw_memory *memory, const sw_trace *trace, const sw_row *row)
{
    const sw_trace_name *name = sw_trace_get_name(trace, row->key[0]);
    const char *text = name ? name->text : "?";
    const uint32_t pid = sw_trace_get_info(trace)->pid;
    if (row->key[2] == SW_ALLOCATOR_BYTES) {
        memory->allocators[memory->allocator_count++] =
            (sw_memory_allocator){.name = text,
                                  .pid = pid,
                                  .device = row->key[1],
                                  .allocated = row->value[0],
                                  .allocated_peak = row->value[1],
                                  .reserved = row->value[2],
                                  .reserved_peak = row->value[3],
                                  .retries = row->value[4],
                                  .failed = SW_UNKNOWN,
                                  .pieces = SW_UNKNOWN,
                                  .pieces_peak = SW_UNKNOWN,
                                  .unused = NAN,
                                  .readings = SW_UNKNOWN};
        return;
    }
    for (size_t i = memory->allocator_count;
         i-- > 0 && row->key[2] == SW_ALLOCATOR_PIECES;) {
        sw_memory_allocator *at = &memory->allocators[i];
        if (at->pid == pid && at->device == row->key[1] && strcmp(at->name, text) == 0) {
            at->pieces = row->value[0];
            at->pieces_peak = row->value[1];
            at->failed = row->value[2];
            at->unused = row->value[3] <= 1000000 ? (double)row->value[3] / 1e6 : NAN;
            at->readings = row->value[4];
            return;
        }
    }
}

static int read_allocators(sw_summary *summary, sw_memory *memory)
{
    size_t count = 0;
    for (size_t i = 0; i < summary->traces; i++) {
        count += sw_trace_row_count(sw__summary_trace(summary, i), SW_TABLE_ALLOCATOR);
    }
    memory->allocators = sw__summary_take(summary, count + 1, sizeof *memory->allocators);
    if (!memory->allocators) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < summary->traces; i++) {
        const sw_trace *trace = sw__summary_trace(summary, i);
        for (size_t k = 0; k < sw_trace_row_count(trace, SW_TABLE_ALLOCATOR); k++) {
            const sw_row *row = sw_trace_get_row(trace, SW_TABLE_ALLOCATOR, k);
            if (row) {
                read_allocator(memory, trace, row);
            }
        }
    }
    return SW_OK;
}

const sw_memory_allocator *sw_memory_allocators(const sw_memory *memory, size_t *count)
{
    *count = memory->allocator_count;
    return memory->allocators;
}

/* --- all of it --- */

int sw__summary_memory(sw_summary *summary)
{
    sw_memory *memory = sw__summary_take(summary, 1, sizeof *memory);
    sw_memory_process *processes =
        sw__summary_take(summary, summary->traces + 1, sizeof *processes);
    if (!memory || !processes) {
        return SW_ENOMEM;
    }
    const size_t main = summary->has_steps ? summary->step_trace : 0;
    for (size_t i = 0; i < summary->traces; i++) {
        /* The main one first, the others in their order. */
        const size_t place = i == main ? 0 : i < main ? i + 1 : i;
        read_process(sw__summary_trace(summary, i), i == main, &processes[place]);
    }
    limit_room(sw_summary_monitor(summary, 0), &processes[0]);
    memory->processes = processes;
    memory->process_count = summary->traces;
    summary->memory = memory;
    if (summary->traces == 0) {
        return SW_OK;
    }
    const sw_trace *trace = sw__summary_trace(summary, main);
    int error = read_sections(summary, memory, trace);
    error = error ? error : sw__memory_residents(summary, memory, trace);
    error = error ? error : read_allocators(summary, memory);
    error = error ? error : sw__memory_holders(summary, memory, trace);
    return error ? error : sw__memory_sites(summary, memory, trace);
}

const sw_memory *sw_summary_memory(const sw_summary *summary)
{
    return summary->memory;
}

const sw_memory_process *sw_memory_processes(const sw_memory *memory, size_t *count)
{
    *count = memory->process_count;
    return memory->processes;
}

bool sw_memory_is_counted(const sw_memory *memory)
{
    return memory->process_count > 0 && memory->processes[0].counted;
}

const sw_memory_section *sw_memory_sections(const sw_memory *memory, size_t *count)
{
    *count = memory->section_count;
    return memory->sections;
}

const sw_memory_site *sw_memory_sites(const sw_memory *memory, size_t *count)
{
    *count = memory->site_count;
    return memory->sites;
}
