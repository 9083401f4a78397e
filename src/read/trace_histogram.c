/* Histograms of nodes and of steps: octave pages, read when they are asked for. */
#include "read/later.h"

static int add_pages(const sw_trace *trace, struct sw__place place, sw_histogram *into)
{
    uint32_t addresses[SW_HISTOGRAM_OCTAVES];
    if (place.block == 0) {
        return SW_OK;
    }
    if (sw__block_read_room(trace, &trace->blocks[place.block - 1], place.offset,
                            addresses, sizeof addresses) != sizeof addresses) {
        return SW_OK;
    }
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        struct sw__fmt_page page;
        uint32_t offset;
        if (addresses[octave] == 0) {
            continue;
        }
        /* Pages that are lost were told of when the trace was opened. */
        const struct sw__block *block =
            sw__index_find(trace, (uint64_t)addresses[octave] * 64, sizeof page, &offset);
        if (!block || block->kind != SW__BLOCK_HIST ||
            sw__block_read_room(trace, block, offset, &page, sizeof page) !=
                sizeof page) {
            continue;
        }
        int result = sw_histogram_add_page(into, octave, page.bucket);
        if (result) {
            return result;
        }
    }
    return SW_OK;
}

int sw_trace_node_histogram(const sw_trace *trace, size_t lane, size_t node,
                            sw_histogram *into)
{
    if (lane >= trace->lane_count || node >= trace->lanes[lane].shown.node_count) {
        return SW_EINVAL;
    }
    const struct sw__lane *from = &trace->lanes[lane];
    if (from->places) {
        const int added = add_pages(trace, from->places[node], into);
        const bool waits = node && node == from->later_node;
        return added || !waits ? added : sw__later_histogram(from->later, false, into);
    }
    const struct sw__page *page = from->pages[node];
    if (!page && from->shown.nodes[node].calls) {
        return sw_histogram_add(into, from->singles[node], 1);
    }
    int result = SW_OK;
    for (; page && result == SW_OK; page = page->next) {
        result = sw_histogram_add_page(into, page->octave, page->bucket);
    }
    return result;
}

int sw_trace_step_histogram(const sw_trace *trace, size_t lane, sw_histogram *into)
{
    if (lane >= trace->lane_count) {
        return SW_EINVAL;
    }
    const int added = add_pages(trace, trace->lanes[lane].steps, into);
    return added ? added : sw__later_histogram(trace->lanes[lane].later, true, into);
}
