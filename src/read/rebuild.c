/* sw_trace_rebuild_lanes: call trees from SPAN records alone. */
#include <stdlib.h>
#include <string.h>

#include "read/cursor_stream.h"
#include "read/rebuild_tree.h"

#define DOMAINS 65536u

struct rebuild {
    sw_trace *trace;
    sw__arena *arena; /* of what is made */
    struct sw__forest forest;
    struct sw__tree *trees; /* of the current thread, in order of their first span */
    uint16_t *tree_domain;
    size_t tree_count, tree_room;
    uint32_t *tree_of; /* by domain: 1 + index, 0 none */
    uint8_t *buffer;
    struct sw__lane *lanes; /* what has been made */
    size_t lane_count, lane_room;
    uint8_t *done; /* by stored lane */
};

static const struct sw__lane *stored_lane(const struct rebuild *rebuild, uint32_t thread,
                                          uint32_t domain)
{
    const sw_trace *trace = rebuild->trace;
    size_t low = 0;
    size_t high = trace->lane_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const sw_trace_lane *lane = &trace->lanes[middle].shown;
        if (lane->thread < thread || (lane->thread == thread && lane->domain < domain)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const struct sw__lane *lane = &trace->lanes[low];
    return low < trace->lane_count && lane->shown.thread == thread &&
                   lane->shown.domain == domain
               ? lane
               : NULL;
}

static int tree_for(struct rebuild *rebuild, uint16_t domain, struct sw__tree **tree)
{
    uint32_t known = rebuild->tree_of[domain];
    if (known) {
        *tree = &rebuild->trees[known - 1];
        return SW_OK;
    }
    if (rebuild->tree_count == rebuild->tree_room) {
        size_t room = rebuild->tree_room ? rebuild->tree_room * 2 : 4;
        struct sw__tree *trees = sw__realloc(rebuild->trees, room, sizeof *trees);
        if (!trees) {
            return SW_ENOMEM;
        }
        rebuild->trees = trees;
        uint16_t *domains = sw__realloc(rebuild->tree_domain, room, sizeof *domains);
        if (!domains) {
            return SW_ENOMEM;
        }
        rebuild->tree_domain = domains;
        rebuild->tree_room = room;
    }
    *tree = &rebuild->trees[rebuild->tree_count];
    int result = sw__tree_init(*tree, &rebuild->forest);
    rebuild->tree_domain[rebuild->tree_count] = domain;
    rebuild->tree_of[domain] = (uint32_t)++rebuild->tree_count;
    return result;
}

static void clear_trees(struct rebuild *rebuild)
{
    for (size_t i = 0; i < rebuild->tree_count; i++) {
        rebuild->tree_of[rebuild->tree_domain[i]] = 0;
        sw__tree_free(&rebuild->trees[i]);
    }
    rebuild->tree_count = 0;
    sw__forest_clear(&rebuild->forest);
}

struct ordered {
    uint32_t node;
    uint32_t order;
    uint32_t parent; /* index in the lane */
};

static int compare_orders(const void *left, const void *right)
{
    const struct ordered *a = left;
    const struct ordered *b = right;
    return a->order < b->order ? -1 : a->order > b->order;
}

/* Numbers the nodes level by level, siblings in the order of their first meeting.
 * `list` has room for all nodes of the forest. */
static uint32_t number_nodes(const struct sw__forest *forest, uint32_t root,
                             struct ordered *list)
{
    uint32_t count = 1;
    list[0] = (struct ordered){.node = root};
    for (uint32_t at = 0; at < count; at++) {
        uint32_t begin = count;
        uint32_t child = forest->nodes[list[at].node].first;
        for (; child != SW__TREE_NONE; child = forest->nodes[child].next) {
            list[count++] = (struct ordered){child, forest->nodes[child].order, at};
        }
        qsort(list + begin, count - begin, sizeof *list, compare_orders);
    }
    return count;
}

static int fill_nodes(struct rebuild *rebuild, struct sw__lane *lane,
                      const struct ordered *list, uint32_t count)
{
    sw_trace_node *nodes =
        sw__arena_take(rebuild->arena, count * sizeof *nodes, _Alignof(sw_trace_node));
    lane->pages = sw__arena_take(rebuild->arena, count * sizeof(struct sw__page *),
                                 _Alignof(struct sw__page *));
    lane->singles =
        sw__arena_take(rebuild->arena, count * sizeof *lane->singles, _Alignof(uint64_t));
    lane->open_ns = sw__arena_take(rebuild->arena, count * sizeof *lane->open_ns,
                                   _Alignof(struct sw__open_ns));
    if (!nodes || !lane->pages || !lane->singles || !lane->open_ns) {
        return SW_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct sw__tree_node *from = &rebuild->forest.nodes[list[i].node];
        nodes[i] = (sw_trace_node){.section = i ? from->section : 0,
                                   .parent = list[i].parent,
                                   .calls = from->calls,
                                   .errors = from->errors,
                                   .unnested = from->unnested};
        if (from->calls || from->times.inclusive) {
            sw__node_times(rebuild->trace, &nodes[i], &from->times);
        }
        lane->pages[i] = from->pages;
        lane->singles[i] = from->one;
        lane->open_ns[i] = (struct sw__open_ns){
            .child = sw__trace_duration_ns(rebuild->trace, from->times.child)};
    }
    lane->shown.nodes = nodes;
    lane->shown.node_count = count;
    return SW_OK;
}

/* Sections that are open: `path` is their nodes in the forest. */
static int fill_open(struct rebuild *rebuild, struct sw__lane *lane,
                     const struct ordered *list, const uint32_t *path, size_t depth,
                     const sw_trace_open_span *stored)
{
    int result = SW_ENOMEM;
    sw_trace_open_span *open = sw__alloc_zero(depth, sizeof *open);
    uint32_t *index_of = sw__alloc_zero(rebuild->forest.count, sizeof *index_of);
    if (open && index_of) {
        for (uint32_t i = 0; i < lane->shown.node_count; i++) {
            index_of[list[i].node] = i;
        }
        for (size_t i = 0; i < depth; i++) {
            open[i].node = index_of[path[i]];
            open[i].start_ns = stored[i].start_ns;
        }
        result = sw__lane_set_open(rebuild->arena, lane, open, depth);
    }
    if (result == SW_OK) {
        sw__lane_settle(rebuild->trace, lane);
    }
    sw__free(index_of);
    sw__free(open);
    return result;
}

/* Ends a tree and makes the lane of it. `stored` (may be NULL) gives steps and open
 * sections. */
static int make_lane(struct rebuild *rebuild, struct sw__tree *tree,
                     const struct sw__lane *stored, struct sw__lane *lane)
{
    struct sw__forest *forest = &rebuild->forest;
    size_t depth = stored ? stored->shown.open_count : 0;
    struct ordered *list = NULL;
    int result = SW_ENOMEM;
    uint32_t *sections = sw__alloc_zero(depth, sizeof *sections);
    uint32_t *path = sw__alloc_zero(depth, sizeof *path);
    if (!sections || !path) {
        goto out;
    }
    for (size_t i = 0; i < depth; i++) {
        sections[i] = stored->shown.nodes[stored->shown.open[i].node].section;
    }
    result = sw__tree_finish(tree, forest, sections, depth);
    uint32_t at = tree->levels[0].node;
    for (size_t i = 0; i < depth && result == SW_OK; i++) {
        at = sw__forest_child(forest, at, sections[i]);
        path[i] = at;
        result = at == SW__TREE_NONE ? SW_ENOMEM : SW_OK;
    }
    if (result) {
        goto out;
    }
    list = sw__alloc_zero(forest->count, sizeof *list);
    if (!list) {
        result = SW_ENOMEM;
        goto out;
    }
    uint32_t count = number_nodes(forest, tree->levels[0].node, list);
    result = fill_nodes(rebuild, lane, list, count);
    if (result == SW_OK && depth) {
        result = fill_open(rebuild, lane, list, path, depth, stored->shown.open);
    }
out:
    sw__free(list);
    sw__free(path);
    sw__free(sections);
    return result;
}

static int add_lane(struct rebuild *rebuild, uint32_t thread, uint32_t domain,
                    struct sw__tree *tree)
{
    if (rebuild->lane_count == rebuild->lane_room) {
        size_t room = rebuild->lane_room ? rebuild->lane_room * 2 : 16;
        struct sw__lane *lanes = sw__realloc(rebuild->lanes, room, sizeof *lanes);
        if (!lanes) {
            return SW_ENOMEM;
        }
        rebuild->lanes = lanes;
        rebuild->lane_room = room;
    }
    const struct sw__lane *stored = stored_lane(rebuild, thread, domain);
    struct sw__lane *lane = &rebuild->lanes[rebuild->lane_count];
    memset(lane, 0, sizeof *lane);
    if (stored) {
        *lane = *stored;
        lane->places = NULL;
        lane->pages = NULL;
        lane->shown.open = NULL;
        lane->shown.open_count = 0;
        rebuild->done[stored - rebuild->trace->lanes] = 1;
    }
    lane->shown.thread = thread;
    lane->shown.domain = domain;
    int result = make_lane(rebuild, tree, stored, lane);
    rebuild->lane_count += result == SW_OK;
    return result;
}

/* All spans of one thread, the chunks [begin, end) of the index. */
static int read_thread(struct rebuild *rebuild, size_t begin, size_t end)
{
    static const struct sw__want want = {.kinds = 1u << SW_RECORD_SPAN,
                                         .to_ns = UINT64_MAX};
    struct sw__stream stream = {.trace = rebuild->trace,
                                .chunk = begin,
                                .chunk_end = end,
                                .buffer = rebuild->buffer};
    int result = SW_OK;
    while (result == SW_OK && sw__stream_next(&stream, &want)) {
        const sw_record_span *span = (const sw_record_span *)stream.record;
        struct sw__tree *tree;
        result = tree_for(rebuild, span->domain, &tree);
        result = result ? result : sw__tree_put(tree, &rebuild->forest, span);
    }
    for (size_t i = 0; i < rebuild->tree_count && result == SW_OK; i++) {
        result = add_lane(rebuild, rebuild->trace->blocks[begin].position,
                          rebuild->tree_domain[i], &rebuild->trees[i]);
    }
    clear_trees(rebuild);
    return result;
}

/* Lanes without any span keep their steps and what is open. */
static int add_silent_lanes(struct rebuild *rebuild)
{
    int result = SW_OK;
    for (size_t i = 0; i < rebuild->trace->lane_count && result == SW_OK; i++) {
        const sw_trace_lane *lane = &rebuild->trace->lanes[i].shown;
        if (!rebuild->done[i]) {
            struct sw__tree tree;
            result = sw__tree_init(&tree, &rebuild->forest);
            result =
                result ? result : add_lane(rebuild, lane->thread, lane->domain, &tree);
            sw__tree_free(&tree);
            sw__forest_clear(&rebuild->forest);
        }
    }
    return result;
}

static int compare_lanes(const void *left, const void *right)
{
    const sw_trace_lane *a = &((const struct sw__lane *)left)->shown;
    const sw_trace_lane *b = &((const struct sw__lane *)right)->shown;
    if (a->thread != b->thread) {
        return a->thread < b->thread ? -1 : 1;
    }
    return a->domain < b->domain ? -1 : a->domain > b->domain;
}

static int read_all(struct rebuild *rebuild)
{
    const sw_trace *trace = rebuild->trace;
    int result = SW_OK;
    for (size_t begin = trace->state_count;
         begin < trace->block_count && result == SW_OK;) {
        size_t end = begin + 1;
        while (end < trace->block_count &&
               trace->blocks[end].kind == trace->blocks[begin].kind &&
               trace->blocks[end].thread == trace->blocks[begin].thread) {
            end++;
        }
        if (trace->blocks[begin].kind == SW__BLOCK_EVENTS) {
            result = read_thread(rebuild, begin, end);
        }
        begin = end;
    }
    result = result ? result : add_silent_lanes(rebuild);
    if (result == SW_OK && rebuild->lane_count > 1) {
        qsort(rebuild->lanes, rebuild->lane_count, sizeof *rebuild->lanes, compare_lanes);
    }
    return result;
}

/* Makes the result the trace's own. */
static int replace_lanes(struct rebuild *rebuild)
{
    sw_trace *trace = rebuild->trace;
    struct sw__lane *lanes =
        sw__arena_take(rebuild->arena, rebuild->lane_count * sizeof *lanes + 1,
                       _Alignof(struct sw__lane));
    if (!lanes) {
        return SW_ENOMEM;
    }
    if (rebuild->lane_count) {
        memcpy(lanes, rebuild->lanes, rebuild->lane_count * sizeof *lanes);
    }
    trace->lanes = lanes;
    trace->lane_count = rebuild->lane_count;
    sw__arena_free(trace->rebuilt);
    trace->rebuilt = rebuild->arena;
    rebuild->arena = NULL;
    return SW_OK;
}

int sw_trace_rebuild_lanes(sw_trace *trace, bool replace,
                           void (*visit)(void *arg, const sw_trace_lane *lane), void *arg,
                           sw_error_info *info)
{
    struct rebuild rebuild = {.trace = trace};
    int result = SW_ENOMEM;
    rebuild.arena = sw__arena_create(0);
    rebuild.forest.arena = rebuild.arena;
    rebuild.forest.free_node = SW__TREE_NONE;
    rebuild.tree_of = sw__alloc_zero(DOMAINS, sizeof *rebuild.tree_of);
    rebuild.buffer = sw__alloc(SW__STREAM_BUFFER);
    rebuild.done = sw__alloc_zero(trace->lane_count, 1);
    if (rebuild.arena && rebuild.tree_of && rebuild.buffer && rebuild.done) {
        result = read_all(&rebuild);
    }
    if (result == SW_OK && replace) {
        result = replace_lanes(&rebuild);
    }
    for (size_t i = 0; i < rebuild.lane_count && result == SW_OK && !replace && visit;
         i++) {
        visit(arg, &rebuild.lanes[i].shown);
    }
    if (rebuild.tree_of) {
        clear_trees(&rebuild);
    }
    sw__forest_free(&rebuild.forest);
    sw__free(rebuild.done);
    sw__free(rebuild.lanes);
    sw__free(rebuild.buffer);
    sw__free(rebuild.tree_of);
    sw__free(rebuild.tree_domain);
    sw__free(rebuild.trees);
    sw__arena_free(rebuild.arena);
    return result ? sw_error_set(info, result, "%s", sw_error_text(result)) : SW_OK;
}
