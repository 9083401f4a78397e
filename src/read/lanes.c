/* Lanes: a thread in a domain with its open sections, its call tree and the sums of
 * its steps. */
#include <stdlib.h>
#include <string.h>

#include "read/later.h"

/* A block of a lane, sorted so that those of one lane lie together, the LANE block
 * first. */
struct part {
    uint32_t thread;
    uint32_t domain;
    uint32_t block; /* index into state blocks */
    bool nodes;
};

static int compare_parts(const void *left, const void *right)
{
    const struct part *a = left;
    const struct part *b = right;
    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    if (a->domain != b->domain) {
        return a->domain < b->domain ? -1 : 1;
    }
    if (a->nodes != b->nodes) {
        return a->nodes ? 1 : -1;
    }
    return a->block < b->block ? -1 : a->block > b->block;
}

static bool is_same_lane(const struct part *a, const struct part *b)
{
    return a->thread == b->thread && a->domain == b->domain;
}

/* The node that a frame speaks of; false when it is none of this lane. */
static bool find_node(const sw_trace *trace, const struct part *part,
                      const struct sw__lane *lane, uint64_t address, uint32_t *index)
{
    uint32_t offset;
    struct sw__fmt_node node;
    const struct sw__block *block = sw__index_find(trace, address, sizeof node, &offset);
    if (!block || block->kind != SW__BLOCK_NODES || block->thread != part->thread ||
        block->domain != part->domain || offset % sizeof node != 0 ||
        sw__block_read(trace, block, offset, &node, sizeof node) != sizeof node ||
        node.index >= lane->shown.node_count) {
        return false;
    }
    *index = node.index;
    return true;
}

/* Frames from the outermost on, up to the first one without a node. A program that runs may
 * close a section while we look at it. */
static int load_frames(sw_trace *trace, const struct part *part, struct sw__lane *lane,
                       const struct sw__fmt_lane *from)
{
    uint32_t offset;
    struct sw__fmt_frame frame;
    const struct sw__block *block =
        sw__index_find(trace, from->stack, sizeof frame, &offset);
    if (!block || (block->kind != SW__BLOCK_LANE && block->kind != SW__BLOCK_STACK)) {
        if (!trace->alive) {
            sw__trace_damage(trace, "The open sections of thread %lu cannot be read.",
                             (unsigned long)lane->shown.thread);
        }
        return SW_OK;
    }
    sw_trace_open_span *open = NULL;
    size_t room = 0;
    size_t count = 0;
    bool whole = true;
    while (count < from->stack_capacity &&
           sw__block_read_room(trace, block, offset, &frame, sizeof frame) ==
               sizeof frame &&
           frame.node != 0) {
        uint32_t index;
        whole = find_node(trace, part, lane, (uint64_t)frame.node * 64, &index);
        if (!whole) {
            break;
        }
        if (count == room) {
            room = room ? room * 2 : 16;
            sw_trace_open_span *more = sw__realloc(open, room, sizeof *open);
            if (!more) {
                sw__free(open);
                return SW_ENOMEM;
            }
            open = more;
        }
        open[count].node = index;
        open[count].start_ns = sw_timeline_mono_ns(trace->timeline, frame.start);
        count++;
        offset += (uint32_t)sizeof frame;
    }
    if (whole && lane->later && lane->later->waiting && lane->later_node) {
        sw_trace_open_span *more = sw__realloc(open, count + 1, sizeof *open);
        if (!more) {
            sw__free(open);
            return SW_ENOMEM;
        }
        open = more;
        open[count++] = (sw_trace_open_span){
            .node = lane->later_node,
            .start_ns = sw_timeline_mono_ns(trace->timeline, lane->later->waiting)};
    }
    if (!whole && !trace->alive) {
        sw__trace_damage(trace, "Some open sections of thread %lu cannot be read.",
                         (unsigned long)lane->shown.thread);
    }
    int result = sw__lane_set_open(trace->arena, lane, open, count);
    sw__free(open);
    return result;
}

int sw__lane_set_open(sw__arena *arena, struct sw__lane *lane,
                      const sw_trace_open_span *open, size_t count)
{
    if (count == 0) {
        return SW_OK;
    }
    sw_trace_open_span *copy =
        sw__arena_take(arena, count * sizeof *copy, _Alignof(sw_trace_open_span));
    if (!copy) {
        return SW_ENOMEM;
    }
    memcpy(copy, open, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        ((sw_trace_node *)&lane->shown.nodes[copy[i].node])->open++;
    }
    lane->shown.open = copy;
    lane->shown.open_count = count;
    return SW_OK;
}

/* A node's child time includes what ended under a call that is still open; the call itself is
 * not in its inclusive time yet. With the time that open calls have lasted on both sides,
 * inclusive - child is the self time so far; no more of it is shown than the inclusive time
 * of ended calls. */
void sw__lane_settle(const sw_trace *trace, struct sw__lane *lane)
{
    uint64_t end_ns = trace->info.end_ns;
    uint64_t inner = 0;
    for (size_t i = lane->shown.open_count; i-- > 0;) {
        const sw_trace_open_span *open = &lane->shown.open[i];
        uint64_t lasted = end_ns > open->start_ns ? end_ns - open->start_ns : 0;
        lane->open_ns[open->node].lasted =
            sw__add_saturating(lane->open_ns[open->node].lasted, lasted);
        lane->open_ns[open->node].child =
            sw__add_saturating(lane->open_ns[open->node].child, inner);
        inner = lasted;
    }
    for (size_t i = 0; i < lane->shown.open_count; i++) {
        uint32_t index = lane->shown.open[i].node;
        sw_trace_node *node = (sw_trace_node *)&lane->shown.nodes[index];
        uint64_t total =
            sw__add_saturating(node->inclusive_ns, lane->open_ns[index].lasted);
        uint64_t child = lane->open_ns[index].child;
        uint64_t self = total > child ? total - child : 0;
        node->self_ns = self < node->inclusive_ns ? self : node->inclusive_ns;
    }
}

/* Sums of steps. Phases become nanoseconds as differences of a running sum, so that
 * they add up to the total; phase 0 (other) takes what is left. */
static void load_steps(const sw_trace *trace, sw_trace_lane *lane,
                       const struct sw__fmt_lane *from)
{
    lane->steps = from->steps;
    lane->steps_incomplete =
        from->steps_incomplete < from->steps ? from->steps_incomplete : from->steps;
    lane->updates = from->updates;
    lane->step_open = from->step_open != 0;
    if (lane->step_open) {
        lane->step_open_number = from->step_open - 1;
        lane->step_open_begin_ns = sw__trace_moment_ns(trace, from->step_begin);
    }
    if (lane->steps == lane->steps_incomplete) {
        return;
    }
    lane->step_total_ns = sw__trace_duration_ns(trace, from->step_ticks);
    lane->step_max_ns = sw__trace_duration_ns(trace, from->step_max);
    lane->step_min_ns = sw__trace_duration_ns(trace, from->step_min);
    lane->step_min_ns =
        lane->step_min_ns < lane->step_max_ns ? lane->step_min_ns : lane->step_max_ns;
    uint64_t sum = 0;
    uint64_t before = 0;
    for (size_t i = 1; i < SW_PHASE_SLOTS; i++) {
        sum = sw__add_saturating(sum, from->phase_ticks[i]);
        sum = sum < from->step_ticks ? sum : from->step_ticks;
        uint64_t now = sw__trace_duration_ns(trace, sum);
        lane->phase_ns[i] = now - before;
        before = now;
    }
    lane->phase_ns[0] = lane->step_total_ns - before;
}

/* Waits of steps that were noted are calls of their node. */
static void load_waits(sw_trace *trace, const struct part *part, struct sw__lane *lane)
{
    const struct sw__later *later = lane->later;
    uint32_t index;
    if (!later->node ||
        !find_node(trace, part, lane, (uint64_t)later->node * 64, &index)) {
        return;
    }
    sw_trace_node *node = (sw_trace_node *)&lane->shown.nodes[index];
    lane->later_node = index;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < later->waits; i++) {
        const sw_record_span *wait = &later->wait[i];
        const uint64_t took = sw__trace_duration_ns(trace, wait->end - wait->head.ticks);
        sum = sw__add_saturating(sum, took);
        node->min_ns = node->calls == 0 || took < node->min_ns ? took : node->min_ns;
        node->max_ns = took > node->max_ns ? took : node->max_ns;
        node->last_ns = took;
        node->calls++;
    }
    node->inclusive_ns = sw__add_saturating(node->inclusive_ns, sum);
    node->self_ns = sw__add_saturating(node->self_ns, sum);
    struct sw__open_ns *around = &lane->open_ns[node->parent];
    around->child = sw__add_saturating(around->child, sum);
}

static int load_head(sw_trace *trace, const struct part *part, struct sw__lane *lane)
{
    const struct sw__block *block = &trace->blocks[part->block];
    struct sw__fmt_lane head;
    if (sw__block_read_room(trace, block, 0, &head, sizeof head) != sizeof head) {
        sw__trace_damage(trace, "The steps of thread %lu cannot be read.",
                         (unsigned long)lane->shown.thread);
        return SW_OK;
    }
    lane->later = sw__later_of(trace, part->thread, part->domain);
    if (lane->later) {
        sw__later_add(lane->later, &head);
        load_waits(trace, part, lane);
    }
    load_steps(trace, &lane->shown, &head);
    lane->steps = (struct sw__place){part->block + 1,
                                     (uint32_t)offsetof(struct sw__fmt_lane, step_hist)};
    return load_frames(trace, part, lane, &head);
}

static int load_lane(sw_trace *trace, const struct part *parts, size_t count,
                     uint32_t *indexes)
{
    struct sw__lane *lane = &trace->lanes[trace->lane_count];
    size_t heads = 0;
    size_t nodes = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].nodes) {
            indexes[nodes++] = parts[i].block;
        } else {
            heads++;
        }
    }
    memset(lane, 0, sizeof *lane);
    lane->shown.thread = sw__thread_position(trace, parts[0].thread);
    lane->shown.domain = parts[0].domain;
    int result = sw__nodes_load(trace, lane, indexes, nodes);
    if (result == SW_OK && heads) {
        result = load_head(trace, &parts[0], lane);
    }
    if (heads != 1 && !trace->alive) {
        sw__trace_damage(trace, "The lane of thread %lu is not there exactly once.",
                         (unsigned long)lane->shown.thread);
    }
    trace->lane_count += result == SW_OK;
    return result;
}

int sw__lanes_load(sw_trace *trace)
{
    size_t count = 0;
    size_t lanes = 0;
    int result = SW_ENOMEM;
    struct part *parts = sw__alloc_zero(trace->state_count, sizeof *parts);
    uint32_t *indexes = sw__alloc_zero(trace->state_count, sizeof *indexes);
    if (!parts || !indexes) {
        goto out;
    }
    for (size_t i = 0; i < trace->state_count; i++) {
        const struct sw__block *block = &trace->blocks[i];
        bool whole = block->used != 0; /* else its writer had only just taken it */
        if (whole && (block->kind == SW__BLOCK_LANE || block->kind == SW__BLOCK_NODES)) {
            parts[count++] = (struct part){block->thread, block->domain, (uint32_t)i,
                                           block->kind == SW__BLOCK_NODES};
        }
    }
    if (count > 1) {
        qsort(parts, count, sizeof *parts, compare_parts);
    }
    for (size_t i = 0; i < count; i++) {
        lanes += i == 0 || !is_same_lane(&parts[i - 1], &parts[i]);
    }
    trace->lanes = sw__arena_take(trace->arena, lanes * sizeof *trace->lanes + 1,
                                  _Alignof(struct sw__lane));
    if (!trace->lanes) {
        goto out;
    }
    result = SW_OK;
    for (size_t i = 0; i < count && result == SW_OK;) {
        size_t end = i + 1;
        while (end < count && is_same_lane(&parts[i], &parts[end])) {
            end++;
        }
        result = load_lane(trace, &parts[i], end - i, indexes);
        i = end;
    }
out:
    sw__free(indexes);
    sw__free(parts);
    return result;
}

size_t sw_trace_lane_count(const sw_trace *trace)
{
    return trace->lane_count;
}

const sw_trace_lane *sw_trace_get_lane(const sw_trace *trace, size_t index)
{
    return index < trace->lane_count ? &trace->lanes[index].shown : NULL;
}
