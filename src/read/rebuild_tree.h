/* A call tree that is built from spans in the order in which they ended.
 *
 * Children end before their parents. So what has ended at depth d + 1 waits in a
 * list, as a forest already summed up by section, until a span at depth d ends: that
 * is its parent. Forests are merged small into large, so that n spans take O(n log
 * n) steps whatever a file says. */
#ifndef SW_READ_REBUILD_TREE_H
#define SW_READ_REBUILD_TREE_H

#include "read/trace_internal.h"

#define SW__TREE_NONE UINT32_MAX

/* A node. Its children are the list at `first`, and the entries of the hash table
 * with its `set`. Merging may swap the children of two nodes: then first, set and
 * children change hands together. */
struct sw__tree_node {
    uint32_t section;
    uint32_t set;
    uint32_t first, next; /* child, sibling */
    uint32_t bucket_next; /* in the hash table */
    uint32_t home_set;    /* set that it is a child of */
    uint32_t children;
    uint32_t order; /* when it was first met */
    uint64_t calls, errors, unnested;
    uint64_t newest; /* number of its newest span, from 1 */
    struct sw__times times;
    uint64_t one; /* its only duration so far, when has_one */
    bool has_one;
    struct sw__page *pages; /* else: its histogram */
};

/* Nodes of all trees of one thread. */
struct sw__forest {
    sw__arena *arena; /* of the histogram pages */
    struct sw__page *free_pages;
    struct sw__tree_node *nodes;
    uint32_t count, room, free_node;
    uint32_t *buckets;
    uint32_t bucket_count, entries; /* a power of two, or 0 */
    uint32_t order;
    uint64_t spans;             /* so far */
    struct sw__tree_pair *work; /* pairs of nodes that are still to be merged */
    size_t work_count, work_room;
};

/* What has ended at one depth and waits for its parent. */
struct sw__tree_level {
    uint32_t depth;
    uint32_t node; /* its children are the forest */
    uint64_t last_end;
    uint64_t ticks; /* sum of the durations of the nested ones */
};

/* Invariants: levels[0].depth = 0, depths rise strictly. */
struct sw__tree {
    struct sw__tree_level *levels;
    size_t count, room;
};

void sw__forest_free(struct sw__forest *forest);
void sw__forest_clear(struct sw__forest *forest); /* for the next thread */
/* The child of `parent` with that section, made if need be; SW__TREE_NONE when out
 * of memory. */
uint32_t sw__forest_child(struct sw__forest *forest, uint32_t parent, uint32_t section);
uint32_t sw__forest_node(struct sw__forest *forest); /* a new one */
/* Gives back a node that has no children and is nobody's child. Its set goes with
 * it: sets are unique. */
void sw__forest_release(struct sw__forest *forest, uint32_t node);
/* Moves the children of `from` to `to`. */
int sw__forest_adopt(struct sw__forest *forest, uint32_t from, uint32_t to);
int sw__forest_add(struct sw__forest *forest, uint32_t node, const sw_record_span *span,
                   uint64_t child_ticks);

int sw__tree_init(struct sw__tree *tree, struct sw__forest *forest);
void sw__tree_free(struct sw__tree *tree);
int sw__tree_put(struct sw__tree *tree, struct sw__forest *forest,
                 const sw_record_span *span);
/* Puts all that still waits into the tree: below the sections that were open at the
 * end, `open[0 … open_count)` from the outside in, and else as high as it must. The
 * root is levels[0].node. */
int sw__tree_finish(struct sw__tree *tree, struct sw__forest *forest,
                    const uint32_t *open, size_t open_count);

#endif
