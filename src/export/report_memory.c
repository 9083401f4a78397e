/* Memory of the training process, as one line of the reports. */
#include <stdio.h>
#include <string.h>

#include "export/report_parts.h"

/* A section that adds less over the run is of no interest here. */
#define ADDED_LEAST ((int64_t)16 << 20)

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
    const sw_memory_resident *adds = adds_most(memory);
    if (adds) {
        char added[24];
        sw_text_bytes(added, (uint64_t)adds->sum);
        snprintf(out + strlen(out), size - strlen(out), "; %.60s added %s",
                 adds->path[adds->depth - 1], added);
    }
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
