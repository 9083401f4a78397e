/* Memory of the training process, as one line of the reports. */
#include <stdio.h>
#include <string.h>

#include "export/report_parts.h"

/* A section that adds less over the run is of no interest here. */
#define ADDED_LEAST ((int64_t)16 << 20)

/* What calls of a section left behind. */
static int64_t kept(const sw_memory_section *section)
{
    return (int64_t)(section->sum.allocated - section->sum.freed);
}

/* The innermost section that has nearly all of what was allocated in any and not freed there; NULL: none kept much. */
static const sw_memory_section *keeps_most(const sw_memory *memory)
{
    size_t count;
    const sw_memory_section *list = sw_memory_sections(memory, &count);
    const sw_memory_section *most = NULL;
    int64_t largest = ADDED_LEAST;
    for (size_t i = 0; i < count; i++) {
        largest = kept(&list[i]) > largest ? kept(&list[i]) : largest;
    }
    for (size_t i = 0; i < count; i++) {
        if (kept(&list[i]) >= largest / 10 * 9 &&
            (!most || list[i].depth > most->depth)) {
            most = &list[i];
        }
    }
    return most;
}

/* The innermost section that has nearly all of what any added to the process; NULL: none added much. */
static const sw_memory_resident *adds_most(const sw_memory *memory)
{
    size_t count;
    const sw_memory_resident *list = sw_memory_residents(memory, &count);
    const sw_memory_resident *most = NULL;
    for (size_t i = 0; i < count && list[i].sum >= ADDED_LEAST; i++) {
        if (list[i].sum >= list[0].sum / 10 * 9 &&
            (!most || list[i].depth > most->depth)) {
            most = &list[i];
        }
    }
    return most;
}

/* Where allocations are counted, pages say less: what one section keeps may lie where another one gave memory back, which then takes
 * new pages. */
static void put_section(char *out, size_t size, const sw_memory *memory, bool counted)
{
    const sw_memory_section *keeps = counted ? keeps_most(memory) : NULL;
    const sw_memory_resident *adds = counted ? NULL : adds_most(memory);
    char bytes[24];
    if (keeps) {
        sw_text_bytes(bytes, (uint64_t)kept(keeps));
        snprintf(out, size, "; %.60s kept %s", keeps->path[keeps->depth - 1], bytes);
    } else if (adds) {
        sw_text_bytes(bytes, (uint64_t)adds->sum);
        snprintf(out, size, "; %.60s added %s", adds->path[adds->depth - 1], bytes);
    }
}

void sw__memory_line(char *out, size_t size, const sw_summary *summary)
{
    size_t count;
    const sw_memory *memory = sw_summary_memory(summary);
    const sw_memory_process *main = sw_memory_processes(memory, &count);
    *out = '\0';
    if (count == 0 || main->resident_peak == SW_UNKNOWN) {
        return;
    }
    char peak[24];
    char end[24];
    sw_text_bytes(peak, main->resident_peak);
    sw_text_bytes(end, main->resident_end);
    snprintf(out, size, "%s at most, %s at the end", peak, end);
    put_section(out + strlen(out), size - strlen(out), memory, main->counted);
    const sw_memory_site *site = sw_memory_sites(memory, &count);
    if (main->counted) {
        char heap[24];
        sw_text_bytes(heap, main->peak);
        snprintf(out + strlen(out), size - strlen(out), "; allocations %s at most", heap);
    }
    if (main->counted && count && site->peak && site->line) {
        const char *slash = strrchr(site->file, '/');
        char part[24];
        /* An estimate from samples: of all that there was, it is no more than that. */
        sw_text_bytes(part, site->peak < main->peak ? site->peak : main->peak);
        snprintf(out + strlen(out), size - strlen(out), ", %s of it in %.60s:%u", part,
                 slash ? slash + 1 : site->file, site->line);
    }
}
