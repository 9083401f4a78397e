/* Nodes of rebuilt trees: children by hash, merging, histograms. */
#include <string.h>

#include "read/rebuild_tree.h"

struct sw__tree_pair {
    uint32_t from, to;
};

void sw__forest_free(struct sw__forest *forest)
{
    sw__free(forest->nodes);
    sw__free(forest->buckets);
    sw__free(forest->work);
    memset(forest, 0, sizeof *forest);
}

void sw__forest_clear(struct sw__forest *forest)
{
    forest->count = 0;
    forest->free_node = SW__TREE_NONE;
    forest->entries = 0;
    forest->order = 0;
    if (forest->bucket_count) {
        memset(forest->buckets, 0xff, forest->bucket_count * sizeof *forest->buckets);
    }
}

uint32_t sw__forest_node(struct sw__forest *forest)
{
    uint32_t index = forest->free_node;
    uint32_t set;
    if (index != SW__TREE_NONE) {
        forest->free_node = forest->nodes[index].next;
        set = forest->nodes[index].set;
    } else {
        if (forest->count == forest->room) {
            uint32_t room = forest->room ? forest->room * 2 : 256;
            struct sw__tree_node *nodes =
                room > forest->room ? sw__realloc(forest->nodes, room, sizeof *nodes)
                                    : NULL;
            if (!nodes) {
                return SW__TREE_NONE;
            }
            forest->nodes = nodes;
            forest->room = room;
        }
        index = forest->count++;
        set = index;
    }
    forest->nodes[index] = (struct sw__tree_node){.set = set,
                                                  .first = SW__TREE_NONE,
                                                  .next = SW__TREE_NONE,
                                                  .order = forest->order++,
                                                  .times.minimum = UINT64_MAX};
    return index;
}

void sw__forest_release(struct sw__forest *forest, uint32_t index)
{
    forest->nodes[index].next = forest->free_node;
    forest->free_node = index;
}

static uint32_t *bucket_of(const struct sw__forest *forest, uint32_t set,
                           uint32_t section)
{
    uint64_t hash = ((uint64_t)set << 32 | section) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    hash *= 0xbf58476d1ce4e5b9u;
    return &forest->buckets[(hash >> 32) & (forest->bucket_count - 1)];
}

static void link_node(struct sw__forest *forest, uint32_t index)
{
    struct sw__tree_node *node = &forest->nodes[index];
    uint32_t *bucket = bucket_of(forest, node->home_set, node->section);
    node->bucket_next = *bucket;
    *bucket = index;
}

static void unlink_node(struct sw__forest *forest, uint32_t index)
{
    const struct sw__tree_node *node = &forest->nodes[index];
    uint32_t *at = bucket_of(forest, node->home_set, node->section);
    while (*at != index) {
        at = &forest->nodes[*at].bucket_next;
    }
    *at = node->bucket_next;
}

static uint32_t find(const struct sw__forest *forest, uint32_t set, uint32_t section)
{
    if (!forest->bucket_count) {
        return SW__TREE_NONE;
    }
    uint32_t at = *bucket_of(forest, set, section);
    while (at != SW__TREE_NONE &&
           (forest->nodes[at].home_set != set || forest->nodes[at].section != section)) {
        at = forest->nodes[at].bucket_next;
    }
    return at;
}

/* Every node that is somebody's child is in the table; it has at least as many
 * buckets. */
static bool grow_table(struct sw__forest *forest)
{
    if (forest->entries < forest->bucket_count) {
        return true;
    }
    uint32_t old_count = forest->bucket_count;
    uint32_t *old = forest->buckets;
    uint32_t count = old_count ? old_count * 2 : 256;
    uint32_t *buckets = count > old_count ? sw__alloc_zero(count, sizeof *buckets) : NULL;
    if (!buckets) {
        return false;
    }
    memset(buckets, 0xff, count * sizeof *buckets);
    forest->buckets = buckets;
    forest->bucket_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        for (uint32_t at = old[i]; at != SW__TREE_NONE;) {
            uint32_t next = forest->nodes[at].bucket_next;
            link_node(forest, at);
            at = next;
        }
    }
    sw__free(old);
    return true;
}

static void attach(struct sw__forest *forest, uint32_t parent, uint32_t child)
{
    struct sw__tree_node *above = &forest->nodes[parent];
    struct sw__tree_node *below = &forest->nodes[child];
    below->home_set = above->set;
    below->next = above->first;
    above->first = child;
    above->children++;
    link_node(forest, child);
}

uint32_t sw__forest_child(struct sw__forest *forest, uint32_t parent, uint32_t section)
{
    uint32_t index = find(forest, forest->nodes[parent].set, section);
    if (index != SW__TREE_NONE) {
        return index;
    }
    index = grow_table(forest) ? sw__forest_node(forest) : SW__TREE_NONE;
    if (index != SW__TREE_NONE) {
        forest->nodes[index].section = section;
        attach(forest, parent, index);
        forest->entries++;
    }
    return index;
}

static struct sw__page *page_of(struct sw__forest *forest, struct sw__tree_node *node,
                                unsigned octave)
{
    struct sw__page *page = node->pages;
    while (page && page->octave != octave) {
        page = page->next;
    }
    if (page) {
        return page;
    }
    page = forest->free_pages;
    if (page) {
        forest->free_pages = page->next;
    } else {
        page = sw__arena_take(forest->arena, sizeof *page, _Alignof(struct sw__page));
    }
    if (page) {
        memset(page, 0, sizeof *page);
        page->octave = octave;
        page->next = node->pages;
        node->pages = page;
    }
    return page;
}

static int count_value(struct sw__forest *forest, struct sw__tree_node *node,
                       uint64_t value)
{
    struct sw__page *page = page_of(forest, node, sw_histogram_octave(value));
    if (!page) {
        return SW_ENOMEM;
    }
    page->bucket[sw_histogram_bucket(value)]++;
    return SW_OK;
}

/* Most nodes that wait have one call and are merged soon: they need no page. */
static int add_value(struct sw__forest *forest, struct sw__tree_node *node,
                     uint64_t value)
{
    if (!node->has_one && !node->pages) {
        node->has_one = true;
        node->one = value;
        return SW_OK;
    }
    int result = SW_OK;
    if (node->has_one) {
        node->has_one = false;
        result = count_value(forest, node, node->one);
    }
    return result ? result : count_value(forest, node, value);
}

static int merge_pages(struct sw__forest *forest, struct sw__tree_node *from,
                       struct sw__tree_node *to)
{
    if (from->has_one) {
        return add_value(forest, to, from->one);
    }
    int result = SW_OK;
    if (from->pages && to->has_one) {
        to->has_one = false;
        result = count_value(forest, to, to->one);
    }
    while (from->pages && result == SW_OK) {
        struct sw__page *page = from->pages;
        struct sw__page *into = page_of(forest, to, page->octave);
        if (!into) {
            return SW_ENOMEM;
        }
        for (unsigned i = 0; i < SW_HISTOGRAM_SUB; i++) {
            into->bucket[i] += page->bucket[i];
        }
        from->pages = page->next;
        page->next = forest->free_pages;
        forest->free_pages = page;
    }
    return result;
}

static int merge_sums(struct sw__forest *forest, struct sw__tree_node *from,
                      struct sw__tree_node *to)
{
    to->calls += from->calls;
    to->errors += from->errors;
    to->unnested += from->unnested;
    struct sw__times *a = &to->times;
    const struct sw__times *b = &from->times;
    a->inclusive = sw__add_saturating(a->inclusive, b->inclusive);
    a->child = sw__add_saturating(a->child, b->child);
    a->minimum = b->minimum < a->minimum ? b->minimum : a->minimum;
    a->maximum = b->maximum > a->maximum ? b->maximum : a->maximum;
    if (from->newest > to->newest) {
        to->newest = from->newest;
        a->last = b->last;
    }
    to->order = from->order < to->order ? from->order : to->order;
    return merge_pages(forest, from, to);
}

static void swap_children(struct sw__tree_node *a, struct sw__tree_node *b)
{
    struct sw__tree_node kept = *a;
    a->first = b->first;
    a->set = b->set;
    a->children = b->children;
    b->first = kept.first;
    b->set = kept.set;
    b->children = kept.children;
}

static int push_work(struct sw__forest *forest, uint32_t from, uint32_t to)
{
    if (forest->work_count == forest->work_room) {
        size_t room = forest->work_room ? forest->work_room * 2 : 64;
        struct sw__tree_pair *work = sw__realloc(forest->work, room, sizeof *work);
        if (!work) {
            return SW_ENOMEM;
        }
        forest->work = work;
        forest->work_room = room;
    }
    forest->work[forest->work_count++] = (struct sw__tree_pair){from, to};
    return SW_OK;
}

/* Moves the children of one node to another; those that meet their like are merged,
 * and their own children become work. When the pair came from such a meeting
 * (`spent`), `from` is done with. */
static int move_children(struct sw__forest *forest, uint32_t from, uint32_t to,
                         bool spent)
{
    struct sw__tree_node *source = &forest->nodes[from];
    if (source->children > forest->nodes[to].children) {
        swap_children(source, &forest->nodes[to]);
    }
    uint32_t at = source->first;
    source->first = SW__TREE_NONE;
    source->children = 0;
    while (at != SW__TREE_NONE) {
        uint32_t next = forest->nodes[at].next;
        unlink_node(forest, at);
        uint32_t like = find(forest, forest->nodes[to].set, forest->nodes[at].section);
        if (like == SW__TREE_NONE) {
            attach(forest, to, at);
        } else {
            int result = merge_sums(forest, &forest->nodes[at], &forest->nodes[like]);
            result = result ? result : push_work(forest, at, like);
            if (result) {
                return result;
            }
            forest->entries--;
        }
        at = next;
    }
    if (spent) {
        sw__forest_release(forest, from);
    }
    return SW_OK;
}

int sw__forest_adopt(struct sw__forest *forest, uint32_t from, uint32_t to)
{
    int result = move_children(forest, from, to, false);
    while (forest->work_count && result == SW_OK) {
        struct sw__tree_pair pair = forest->work[--forest->work_count];
        result = move_children(forest, pair.from, pair.to, true);
    }
    return result;
}

int sw__forest_add(struct sw__forest *forest, uint32_t index, const sw_record_span *span,
                   uint64_t child_ticks)
{
    struct sw__tree_node *node = &forest->nodes[index];
    struct sw__times *times = &node->times;
    uint64_t duration = sw__record_end(&span->head) - span->head.ticks;
    bool unnested = (span->head.flags & SW_RECORD_UNNESTED) != 0;
    times->inclusive = sw__add_saturating(times->inclusive, duration);
    times->child = sw__add_saturating(times->child, unnested ? duration : child_ticks);
    if (span->head.flags & SW_RECORD_PART) {
        return SW_OK; /* the call is counted with its last stretch */
    }
    node->calls++;
    node->errors += (span->head.flags & SW_RECORD_ERROR) != 0;
    node->unnested += unnested;
    times->minimum = duration < times->minimum ? duration : times->minimum;
    times->maximum = duration > times->maximum ? duration : times->maximum;
    times->last = duration;
    node->newest = ++forest->spans;
    return add_value(forest, node, duration);
}
