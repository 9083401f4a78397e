/* The call tree of one lane.
 *
 * A node keeps its index, since records speak of it. Nodes that are missing between
 * others become empty ones under the root; how many of those there may be depends on
 * how many nodes there are. */
#include <string.h>

#include "read/trace_internal.h"

#define NODE_SIZE sizeof(struct sw__fmt_node)

struct load {
    sw_trace *trace;
    struct sw__lane *lane;
    const uint32_t *indexes;
    size_t count;
    struct sw__scratch scratch;
    uint32_t limit; /* indexes are below this */
    uint32_t nodes; /* 1 + largest index met */
    uint8_t *seen;
    size_t bad;
    size_t lost_pages;
};

static uint32_t index_limit(const struct load *load)
{
    uint64_t present = 0;
    for (size_t i = 0; i < load->count; i++) {
        present += load->trace->blocks[load->indexes[i]].used / NODE_SIZE;
    }
    uint64_t limit = present * 16 + 64;
    return limit < SW__READ_NODE_MAX ? (uint32_t)limit : SW__READ_NODE_MAX;
}

static double as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void fill_counter(sw_trace_node *to, const struct sw__fmt_node *from)
{
    if (from->calls) {
        to->sum = as_double(from->inclusive);
        to->min = as_double(from->minimum);
        to->max = as_double(from->maximum);
        to->last = as_double(from->last);
    }
}

void sw__node_times(const sw_trace *trace, sw_trace_node *to,
                    const struct sw__times *from)
{
    uint64_t child = sw__trace_duration_ns(trace, from->child);
    to->inclusive_ns = sw__trace_duration_ns(trace, from->inclusive);
    to->self_ns = to->inclusive_ns > child ? to->inclusive_ns - child : 0;
    if (!to->calls) {
        return; /* stretches of calls that have not ended yet: time, and no call */
    }
    to->max_ns = sw__trace_duration_ns(trace, from->maximum);
    to->min_ns = sw__trace_duration_ns(trace, from->minimum);
    to->min_ns = to->min_ns < to->max_ns ? to->min_ns : to->max_ns;
    to->last_ns = sw__trace_duration_ns(trace, from->last);
}

static void fill_section(const sw_trace *trace, sw_trace_node *to,
                         const struct sw__fmt_node *from)
{
    if (from->calls || from->inclusive) {
        sw__node_times(trace, to,
                       &(struct sw__times){from->inclusive, from->child, from->minimum,
                                           from->maximum, from->last});
    }
}

static void check_pages(struct load *load, const struct sw__fmt_node *node)
{
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        uint32_t offset;
        if (node->hist[octave]) {
            const struct sw__block *block =
                sw__index_find(load->trace, (uint64_t)node->hist[octave] * 64,
                               sizeof(struct sw__fmt_page), &offset);
            load->lost_pages += !block || block->kind != SW__BLOCK_HIST;
        }
    }
}

static void fill_node(struct load *load, const struct sw__fmt_node *from, uint32_t block,
                      uint32_t offset)
{
    uint32_t index = from->index;
    if (load->seen[index]) {
        load->bad += index != 0 || from->section != 0 || from->calls != 0;
        return;
    }
    load->seen[index] = 1;
    sw_trace_node *to = (sw_trace_node *)&load->lane->shown.nodes[index];
    *to = (sw_trace_node){
        .section = index ? from->section : 0,
        .parent = from->parent,
        .kind = from->kind == SW__NODE_COUNTER ? SW__NODE_COUNTER : SW__NODE_SECTION,
        .family = (from->flags & SW__NODE_FAMILY) != 0,
        .calls = from->calls,
        .errors = from->errors,
        .unnested = from->unnested,
    };
    if (index && from->parent >= index) {
        to->parent = 0;
        load->bad++;
    } else if (index == 0) {
        to->parent = 0;
    }
    if (to->kind == SW__NODE_COUNTER) {
        fill_counter(to, from);
    } else {
        fill_section(load->trace, to, from);
    }
    load->lane->places[index] = (struct sw__place){
        block + 1, offset + (uint32_t)offsetof(struct sw__fmt_node, hist)};
    load->lane->open_ns[index].child =
        to->kind == SW__NODE_SECTION ? sw__trace_duration_ns(load->trace, from->child)
                                     : 0;
    check_pages(load, from);
}

/* One pass over all nodes: first finds the largest index, then fills. */
static int pass(struct load *load, bool fill)
{
    for (size_t i = 0; i < load->count; i++) {
        const struct sw__block *block = &load->trace->blocks[load->indexes[i]];
        size_t length;
        if (!sw__scratch_load(&load->scratch, load->trace, block, &length)) {
            return SW_ENOMEM;
        }
        struct sw__fmt_node node;
        for (size_t at = 0; length - at >= NODE_SIZE; at += NODE_SIZE) {
            memcpy(&node, load->scratch.data + at, NODE_SIZE);
            if (node.index >= load->limit) {
                load->bad += fill;
            } else if (!fill) {
                load->nodes = node.index >= load->nodes ? node.index + 1 : load->nodes;
            } else if (node.index < load->nodes) {
                fill_node(load, &node, load->indexes[i], (uint32_t)at);
            }
        }
    }
    return SW_OK;
}

int sw__nodes_load(sw_trace *trace, struct sw__lane *lane, const uint32_t *indexes,
                   size_t count)
{
    struct load load = {
        .trace = trace, .lane = lane, .indexes = indexes, .count = count, .nodes = 1};
    load.limit = index_limit(&load);
    int result = pass(&load, false);
    if (result) {
        goto out;
    }
    sw_trace_node *nodes =
        sw__arena_take(trace->arena, load.nodes * sizeof *nodes, _Alignof(sw_trace_node));
    lane->places = sw__arena_take(trace->arena, load.nodes * sizeof *lane->places,
                                  _Alignof(struct sw__place));
    lane->open_ns = sw__arena_take(trace->arena, load.nodes * sizeof *lane->open_ns,
                                   _Alignof(struct sw__open_ns));
    load.seen = sw__alloc_zero(load.nodes, 1);
    if (!nodes || !lane->places || !lane->open_ns || !load.seen) {
        result = SW_ENOMEM;
        goto out;
    }
    memset(nodes, 0, load.nodes * sizeof *nodes);
    memset(lane->places, 0, load.nodes * sizeof *lane->places);
    memset(lane->open_ns, 0, load.nodes * sizeof *lane->open_ns);
    lane->shown.nodes = nodes;
    lane->shown.node_count = load.nodes;
    result = pass(&load, true);
    for (uint32_t i = 0; i < load.nodes && !trace->alive; i++) {
        load.bad += !load.seen[i] && count;
    }
    if (load.bad) {
        sw__trace_damage(trace,
                         "%zu nodes of the call tree of thread %lu cannot be read.",
                         load.bad, (unsigned long)lane->shown.thread);
    }
    if (load.lost_pages && !trace->alive) {
        sw__trace_damage(trace, "%zu histogram pages of thread %lu cannot be read.",
                         load.lost_pages, (unsigned long)lane->shown.thread);
    }
out:
    sw__free(load.seen);
    sw__free(load.scratch.data);
    return result;
}
