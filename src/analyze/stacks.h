/* How sampled stacks lie in memory: below each tag a tree of frames, so that memory and time are in proportion to the
 * number of different call paths, whatever their depth.
 *
 * Invariants: a node's parent has a smaller number than the node. Node, function, frame, tag and string numbers index
 * their arrays; node 0 is nobody. A node has the tag of its parent. Strings are equal if and only if their addresses
 * are. */
#ifndef SW_ANALYZE_STACKS_H
#define SW_ANALYZE_STACKS_H

#include <stepwatch/stacks.h>

#include "base/memory.h"

/* Numbers found by hash. */
struct sw__finder {
    struct sw__finder_slot {
        uint32_t hash;
        uint32_t number; /* + 1; 0: free */
    } * slots;
    size_t room, used;
};

struct sw__stack_function {
    const char *name, *file;
    uint32_t first_line;
    uint32_t native;
};

struct sw__stack_frame {
    sw_stack_frame shown;
    uint32_t function;
};

struct sw__stack_tag {
    sw_stack_tag shown;
    uint32_t first_child; /* node */
};

struct sw__stack_node {
    uint32_t parent, frame, tag;
    uint32_t first_child, next; /* node; next of the same parent */
    uint32_t depth;             /* frames from the root, this one included */
    uint64_t running, waiting, in_call;
    double running_s, waiting_s;
};

struct sw_stacks {
    sw__arena *arena;
    uint64_t seed;
    double period_s;
    sw_stacks_totals totals;

    const char **strings;
    struct sw__stack_function *functions;
    struct sw__stack_frame *frames;
    struct sw__stack_tag *tags;
    struct sw__stack_node *nodes;
    size_t string_count, function_count, frame_count, tag_count, node_count;
    size_t string_room, function_room, frame_room, tag_room, node_room;
    struct sw__finder string_finder, function_finder, frame_finder, tag_finder,
        node_finder;
};

#define SW__STACKS_FAIL UINT32_MAX

/* Each gives the number of a thing, made if need be, or SW__STACKS_FAIL when out of memory. */
uint32_t sw__stacks_function(sw_stacks *stacks, const char *name, const char *file,
                             uint32_t first_line, bool native);
uint32_t sw__stacks_frame(sw_stacks *stacks, uint32_t function, uint32_t line);
uint32_t sw__stacks_tag(sw_stacks *stacks, const sw_stack_tag *tag);
/* The node of `frame` below `parent` (0: at the root of `tag`). Below SW_STACKS_DEPTH it is a node "(deeper)" for all
 * that is there. */
uint32_t sw__stacks_node(sw_stacks *stacks, uint32_t tag, uint32_t parent,
                         uint32_t frame);
/* The same, but only if it is there already; SW__STACKS_FAIL: it is not. */
uint32_t sw__stacks_find_node(const sw_stacks *stacks, uint32_t tag, uint32_t parent,
                              uint32_t frame);
/* Gives samples of steps that were watched in brief (SW_PHASE_BRIEF) a phase: what sw_stacks_of_run does when all traces are in. 0
 * or SW_ENOMEM. */
int sw__stacks_settle(sw_stacks *stacks);
/* Adds the samples of a trace. 0 or SW_ENOMEM. */
int sw__stacks_add_trace(sw_stacks *stacks, const sw_trace *trace);
void sw__stacks_count(sw_stacks *stacks, uint32_t node, const sw_stack_counts *counts);

#endif
