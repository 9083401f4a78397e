/* Member "memory" of report.json: the process as the kernel sees it, and allocations where they were counted. */
#include <stepwatch/export.h>
#include <stepwatch/memory.h>

#include "export/json_put.h"
#include "export/report_parts.h"

#define SITES_MOST 100
#define SECTIONS_MOST 200

static void put_sum(sw_writer *w, const sw_memory_sum *sum)
{
    put_uint(w, "allocated_bytes", sum->allocated);
    put_uint(w, "blocks", sum->blocks);
    put_uint(w, "freed_bytes", sum->freed);
    put_uint(w, "blocks_freed", sum->blocks_freed);
}

static void put_process(sw_writer *w, const sw_memory_process *process)
{
    put_uint(w, "pid", process->pid);
    put_uint(w, "resident_start_bytes", process->resident_start);
    put_uint(w, "resident_end_bytes", process->resident_end);
    put_uint(w, "resident_peak_bytes", process->resident_peak);
    put_uint(w, "least_room_bytes", process->least_room);
    put_uint(w, "swapped_bytes", process->swapped);
}

static void put_parts(sw_writer *w, const sw_memory_sum *part)
{
    static const char *const names[] = {
#define PART_NAME(number, name, text) [number] = text,
        SW_HEAP_PART_TABLE(PART_NAME)
#undef PART_NAME
    };
    sw_json_key(w, "parts");
    sw_json_object_begin(w);
    for (unsigned i = 0; i < SW_HEAP_PARTS; i++) {
        sw_json_key(w, names[i]);
        sw_json_object_begin(w);
        put_sum(w, &part[i]);
        sw_json_object_end(w);
    }
    sw_json_object_end(w);
}

static void put_path(sw_writer *w, const char *const *path, size_t depth)
{
    sw_json_key(w, "path");
    sw_json_array_begin(w);
    for (size_t k = 0; k < depth; k++) {
        sw_json_string(w, path[k]);
    }
    sw_json_array_end(w);
}

static void put_change(sw_writer *w, const char *key, bool known, int64_t bytes)
{
    sw_json_key(w, key);
    if (known) {
        sw_json_int(w, bytes);
    } else {
        sw_json_null(w);
    }
}

/* Who held tensors with their graphs. */
static void put_holders(sw_writer *w, const sw_memory *memory)
{
    size_t count;
    const sw_memory_holder *list = sw_memory_holders(memory, &count);
    sw_json_key(w, "holders");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "name", list[i].name);
        put_string(w, "kind", list[i].kind);
        put_string(w, "file", list[i].file);
        put_uint(w, "line", list[i].file && list[i].line ? list[i].line : SW_UNKNOWN);
        put_string(w, "function", list[i].function);
        put_uint(w, "tensors", list[i].tensors);
        put_uint(w, "additions", list[i].chain ? list[i].chain : SW_UNKNOWN);
        put_bool(w, "whole", list[i].whole);
        put_uint(w, "step", list[i].step);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

/* Sections by what the process had in memory around their calls. */
static void put_residents(sw_writer *w, const sw_memory *memory)
{
    size_t count;
    const sw_memory_resident *list = sw_memory_residents(memory, &count);
    sw_json_key(w, "sections");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && i < SECTIONS_MOST; i++) {
        const sw_memory_resident *it = &list[i];
        const bool read = it->read > 0;
        sw_json_object_begin(w);
        put_path(w, it->path, it->depth);
        put_string(w, "thread", it->thread);
        put_uint(w, "calls", it->calls);
        put_uint(w, "calls_read", it->read);
        put_change(w, "rss_delta_bytes", read, it->sum);
        put_double(w, "rss_delta_mean_bytes",
                   read ? (double)it->sum / (double)it->read : NAN);
        put_change(w, "rss_delta_max_bytes", read, it->most);
        put_change(w, "rss_delta_min_bytes", read, it->least);
        put_uint(w, "rss_peak_bytes", it->highest);
        put_string(w, "rss_peak_how", it->highest == SW_UNKNOWN ? NULL : "sampled");
        put_uint(w, "peak_bytes", it->counted ? it->counted->peak : SW_UNKNOWN);
        put_string(w, "peak_how", it->counted ? "exact" : NULL);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_sections(sw_writer *w, const sw_memory *memory)
{
    size_t count;
    const sw_memory_section *sections = sw_memory_sections(memory, &count);
    sw_json_key(w, "sections");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && i < SECTIONS_MOST; i++) {
        const sw_memory_section *section = &sections[i];
        sw_json_object_begin(w);
        put_path(w, section->path, section->depth);
        put_string(w, "thread", section->thread);
        put_uint(w, "calls", section->calls);
        put_sum(w, &section->sum);
        sw_json_key(w, "delta_bytes");
        sw_json_int(w, (int64_t)(section->sum.allocated - section->sum.freed));
        put_uint(w, "peak_bytes", section->peak);
        put_string(w, "peak_how", "exact");
        if (section->parted) {
            put_parts(w, section->part);
        } else {
            sw_json_key(w, "parts");
            sw_json_null(w);
        }
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_growth(sw_writer *w, const sw_memory_growth *growth)
{
    sw_json_key(w, "growth");
    sw_json_object_begin(w);
    put_bool(w, "grows", growth->grows);
    put_double(w, "bytes_per_step", growth->slope);
    put_double(w, "low", growth->low);
    put_double(w, "high", growth->high);
    put_double(w, "p_value", growth->p);
    sw_json_object_end(w);
}

static void put_sites(sw_writer *w, const sw_memory *memory)
{
    size_t count;
    const sw_memory_site *sites = sw_memory_sites(memory, &count);
    sw_json_key(w, "sites");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count && i < SITES_MOST; i++) {
        const sw_memory_site *site = &sites[i];
        sw_json_object_begin(w);
        put_string(w, "file", *site->file ? site->file : NULL);
        put_uint(w, "line", site->line ? site->line : SW_UNKNOWN);
        put_string(w, "function", site->function);
        put_uint(w, "allocated_bytes", site->allocated);
        put_uint(w, "blocks", site->blocks);
        put_uint(w, "live_bytes", site->live);
        put_uint(w, "peak_bytes", site->peak);
        put_uint(w, "samples", site->samples);
        put_growth(w, &site->growth);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_allocators(sw_writer *w, const sw_memory *memory)
{
    size_t count;
    const sw_memory_allocator *all = sw_memory_allocators(memory, &count);
    sw_json_key(w, "allocators");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        sw_json_object_begin(w);
        put_string(w, "name", all[i].name);
        put_uint(w, "pid", all[i].pid);
        put_uint(w, "device", all[i].device == UINT32_MAX ? SW_UNKNOWN : all[i].device);
        put_uint(w, "allocated_bytes", all[i].allocated);
        put_uint(w, "allocated_peak_bytes", all[i].allocated_peak);
        put_uint(w, "reserved_bytes", all[i].reserved);
        put_uint(w, "reserved_peak_bytes", all[i].reserved_peak);
        put_uint(w, "retries", all[i].retries);
        put_uint(w, "ooms", all[i].failed);
        put_uint(w, "inactive_split_bytes", all[i].pieces);
        put_uint(w, "inactive_split_peak_bytes", all[i].pieces_peak);
        put_double(w, "fragmentation", all[i].unused);
        put_uint(w, "readings", all[i].readings);
        put_string(w, "why",
                   all[i].allocated == SW_UNKNOWN
                       ? "It keeps no statistics; stepwatch run --memory counts its "
                         "allocations among the others."
                       : NULL);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

void sw__json_memory(sw_writer *w, const sw_summary *summary)
{
    const sw_memory *memory = sw_summary_memory(summary);
    size_t count;
    const sw_memory_process *processes = sw_memory_processes(memory, &count);
    if (count == 0 ||
        (processes[0].resident_start == SW_UNKNOWN && !processes[0].counted)) {
        put_missing(w, "memory",
                    "The kernel did not say how much memory the process had.");
        return;
    }
    const sw_memory_process *main = &processes[0];
    sw_json_key(w, "memory");
    sw_json_object_begin(w);
    put_bool(w, "recorded", true);
    put_process(w, main);
    sw_json_key(w, "processes");
    sw_json_array_begin(w);
    for (size_t i = 1; i < count; i++) {
        sw_json_object_begin(w);
        put_process(w, &processes[i]);
        put_uint(w, "allocated_bytes",
                 processes[i].counted ? processes[i].sum.allocated : SW_UNKNOWN);
        put_uint(w, "peak_bytes", processes[i].counted ? processes[i].peak : SW_UNKNOWN);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    put_allocators(w, memory);
    put_residents(w, memory);
    put_holders(w, memory);
    if (!main->counted) {
        put_missing(w, "allocations",
                    "Allocations were not counted: stepwatch run --memory does.");
        sw_json_object_end(w);
        return;
    }
    sw_json_key(w, "allocations");
    sw_json_object_begin(w);
    put_bool(w, "recorded", true);
    put_uint(w, "sample_bytes", main->sample_bytes ? main->sample_bytes : SW_UNKNOWN);
    put_sum(w, &main->sum);
    put_uint(w, "peak_bytes", main->peak);
    put_parts(w, main->part);
    put_sections(w, memory);
    put_sites(w, memory);
    sw_json_object_end(w);
    sw_json_object_end(w);
}
