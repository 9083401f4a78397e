/* One lane's tree: the levels that wait for their parents. */
#include "read/rebuild_tree.h"

static int push_level(struct sw__tree *tree, struct sw__forest *forest, uint32_t depth)
{
    if (tree->count == tree->room) {
        size_t room = tree->room ? tree->room * 2 : 8;
        struct sw__tree_level *levels = sw__realloc(tree->levels, room, sizeof *levels);
        if (!levels) {
            return SW_ENOMEM;
        }
        tree->levels = levels;
        tree->room = room;
    }
    uint32_t node = sw__forest_node(forest);
    if (node == SW__TREE_NONE) {
        return SW_ENOMEM;
    }
    tree->levels[tree->count++] = (struct sw__tree_level){.depth = depth, .node = node};
    return SW_OK;
}

int sw__tree_init(struct sw__tree *tree, struct sw__forest *forest)
{
    *tree = (struct sw__tree){0};
    return push_level(tree, forest, 0);
}

void sw__tree_free(struct sw__tree *tree)
{
    sw__free(tree->levels);
    *tree = (struct sw__tree){0};
}

/* Puts the deepest level into the one below it, whose parents it lost. */
static int lift(struct sw__tree *tree, struct sw__forest *forest)
{
    struct sw__tree_level *from = &tree->levels[tree->count - 1];
    struct sw__tree_level *to = from - 1;
    to->ticks = sw__add_saturating(to->ticks, from->ticks);
    to->last_end = from->last_end > to->last_end ? from->last_end : to->last_end;
    int result = sw__forest_adopt(forest, from->node, to->node);
    sw__forest_release(forest, from->node);
    tree->count--;
    return result;
}

/* Makes `depth` the deepest level that waits: deeper ones lost their parents. */
static int cut_to(struct sw__tree *tree, struct sw__forest *forest, uint32_t depth)
{
    int result = SW_OK;
    while (result == SW_OK && tree->levels[tree->count - 1].depth > depth) {
        if (tree->count > 1 && tree->levels[tree->count - 2].depth >= depth) {
            result = lift(tree, forest);
        } else {
            tree->levels[tree->count - 1].depth = depth;
        }
    }
    return result;
}

int sw__tree_put(struct sw__tree *tree, struct sw__forest *forest,
                 const sw_record_span *span)
{
    if (span->head.flags & SW_RECORD_UNNESTED) {
        uint32_t node = sw__forest_child(forest, tree->levels[0].node, span->head.id);
        return node == SW__TREE_NONE ? SW_ENOMEM : sw__forest_add(forest, node, span, 0);
    }
    uint32_t depth = span->depth;
    int result = cut_to(tree, forest, depth + 1);
    /* What ended before this began is not in it, whatever its depth. */
    if (result == SW_OK && tree->levels[tree->count - 1].depth == depth + 1 &&
        tree->levels[tree->count - 1].last_end < span->head.ticks) {
        result = cut_to(tree, forest, depth);
    }
    if (result) {
        return result;
    }
    struct sw__tree_level children = {.node = SW__TREE_NONE};
    if (tree->levels[tree->count - 1].depth == depth + 1) {
        children = tree->levels[--tree->count];
    }
    if (tree->levels[tree->count - 1].depth < depth) {
        result = push_level(tree, forest, depth);
        if (result) {
            return result;
        }
    }
    struct sw__tree_level *level = &tree->levels[tree->count - 1];
    uint64_t end = sw__record_end(&span->head);
    level->ticks = sw__add_saturating(level->ticks, end - span->head.ticks);
    level->last_end = end > level->last_end ? end : level->last_end;
    uint32_t node = sw__forest_child(forest, level->node, span->head.id);
    if (node == SW__TREE_NONE) {
        return SW_ENOMEM;
    }
    if (children.node != SW__TREE_NONE) {
        result = sw__forest_adopt(forest, children.node, node);
        sw__forest_release(forest, children.node);
    }
    return result ? result : sw__forest_add(forest, node, span, children.ticks);
}

int sw__tree_finish(struct sw__tree *tree, struct sw__forest *forest,
                    const uint32_t *open, size_t open_count)
{
    int result = SW_OK;
    uint32_t most = open_count < UINT16_MAX ? (uint32_t)open_count : UINT16_MAX;
    result = cut_to(tree, forest, most);
    while (result == SW_OK && tree->count > 1) {
        /* The deepest level is the children of the open section around it. */
        struct sw__tree_level top = tree->levels[tree->count - 1];
        tree->count--;
        uint32_t above = top.depth - 1;
        if (tree->levels[tree->count - 1].depth < above) {
            result = push_level(tree, forest, above);
        }
        if (result == SW_OK) {
            struct sw__tree_level *level = &tree->levels[tree->count - 1];
            uint32_t node = sw__forest_child(forest, level->node, open[above]);
            result = node == SW__TREE_NONE ? SW_ENOMEM
                                           : sw__forest_adopt(forest, top.node, node);
            if (result == SW_OK) {
                struct sw__times *times = &forest->nodes[node].times;
                times->child = sw__add_saturating(times->child, top.ticks);
            }
        }
    }
    return result;
}
