/* What follows from sampled stacks: functions and lines, with self and total samples and how sure that is.
 *
 * One walk over the tree of each thread gives it all: the samples below a node are summed on the way up, and a function
 * takes those of its outermost node on the path, so that recursion counts once. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/stacks.h"
#include "analyze/summary.h"

#define Z 1.959963984540054 /* 95 % of a normal distribution lie within ± this */

sw_share sw_share_of(uint64_t part, uint64_t whole)
{
    if (whole == 0) {
        return (sw_share){NAN, NAN, NAN};
    }
    const double n = (double)whole;
    const double p = part < whole ? (double)part / n : 1;
    const double scale = 1 + Z * Z / n;
    const double middle = (p + Z * Z / (2 * n)) / scale;
    const double half = Z / scale * sqrt(p * (1 - p) / n + Z * Z / (4 * n * n));
    /* Rounding must not move the ends past what is possible. */
    const double low = part == 0 || middle < half ? 0 : middle - half;
    const double high = part >= whole || middle + half > 1 ? 1 : middle + half;
    return (sw_share){p, low, high};
}

void sw_stacks_release(void *array)
{
    sw__free(array);
}

/* --- which samples count --- */

static bool wanted_tag(const sw_stacks_filter *filter, const sw_stack_tag *tag)
{
    return (!filter->thread || strcmp(filter->thread, tag->thread) == 0) &&
           (!filter->pid || filter->pid == tag->pid) &&
           (!filter->one_phase || filter->phase == tag->phase) &&
           (!filter->in_steps || tag->phase != SW_PHASE_INHERIT) &&
           (!filter->section || strcmp(filter->section, tag->section) == 0);
}

static const sw_stacks_filter everything;

sw_stack_counts sw_stacks_count(const sw_stacks *stacks, const sw_stacks_filter *filter)
{
    sw_stack_counts sum = {0};
    filter = filter ? filter : &everything;
    for (size_t i = 1; i < stacks->node_count; i++) {
        const struct sw__stack_node *node = &stacks->nodes[i];
        if (wanted_tag(filter, &stacks->tags[node->tag].shown)) {
            sum.running = sw__add(sum.running, node->running);
            sum.in_call = sw__add(sum.in_call, node->in_call);
            sum.waiting = sw__add(sum.waiting, filter->running_only ? 0 : node->waiting);
        }
    }
    return sum;
}

/* --- threads --- */

/* Strings of one set of stacks are equal if their addresses are; the order is any, but fixed. */
static int order_text(const char *a, const char *b)
{
    return a == b ? 0 : strcmp(a, b);
}

static int order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int by_thread(const void *left, const void *right)
{
    const sw_stacks_thread *a = left;
    const sw_stacks_thread *b = right;
    const int text = order_text(a->thread, b->thread);
    return text ? text : order(a->pid, b->pid);
}

static int by_running(const void *left, const void *right)
{
    const sw_stacks_thread *a = left;
    const sw_stacks_thread *b = right;
    int result = order(b->running, a->running);
    result = result ? result : order(b->waiting, a->waiting);
    return result ? result : by_thread(left, right);
}

sw_stacks_thread *sw_stacks_threads(const sw_stacks *stacks, size_t *count)
{
    sw_stacks_thread *threads = sw__alloc_zero(stacks->tag_count + 1, sizeof *threads);
    *count = 0;
    if (!threads) {
        return NULL;
    }
    for (size_t i = 0; i < stacks->tag_count; i++) {
        const sw_stack_tag *tag = &stacks->tags[i].shown;
        threads[i] =
            (sw_stacks_thread){.thread = tag->thread, .pid = tag->pid, .main = tag->main};
    }
    for (size_t i = 1; i < stacks->node_count; i++) {
        const struct sw__stack_node *node = &stacks->nodes[i];
        threads[node->tag].running = sw__add(threads[node->tag].running, node->running);
        threads[node->tag].waiting = sw__add(threads[node->tag].waiting, node->waiting);
    }
    qsort(threads, stacks->tag_count, sizeof *threads, by_thread);
    size_t kept = 0;
    for (size_t i = 0; i < stacks->tag_count; i++) {
        if (threads[i].running == 0 && threads[i].waiting == 0) {
            continue;
        }
        if (kept > 0 && by_thread(&threads[kept - 1], &threads[i]) == 0) {
            sw_stacks_thread *same = &threads[kept - 1];
            same->running = sw__add(same->running, threads[i].running);
            same->waiting = sw__add(same->waiting, threads[i].waiting);
            same->main = same->main || threads[i].main;
        } else {
            threads[kept++] = threads[i];
        }
    }
    qsort(threads, kept, sizeof *threads, by_running);
    *count = kept;
    return threads;
}

/* --- places --- */

/* Samples of a node and all below it. */
struct sum {
    uint64_t running, waiting;
    double seconds;
};

struct walk {
    const sw_stacks *stacks;
    const sw_stacks_filter *filter;
    bool lines;
    struct sum *below; /* by node */
    uint32_t *open;    /* by key: nodes of that key on the path to here */
    uint32_t
        *row; /* by key: its place in `places` + 1; up to `first`: of an earlier group */
    uint32_t *tags; /* numbers of the tags that count, group by group */
    size_t tag_count;
    sw_stacks_place *places;
    size_t count, room;
    size_t first; /* place of this group */
};

/* What places are told apart by: functions, or frames. */
static uint32_t key_of(const struct walk *walk, uint32_t frame)
{
    return walk->lines ? frame : walk->stacks->frames[frame].function;
}

static sw_stacks_place *place_of(struct walk *walk, const struct sw__stack_node *node)
{
    const uint32_t key = key_of(walk, node->frame);
    if (walk->row[key] <= walk->first) {
        if (walk->count == walk->room) {
            const size_t room = walk->room ? walk->room * 2 : 64;
            sw_stacks_place *grown =
                sw__realloc(walk->places, room, sizeof *walk->places);
            if (!grown) {
                return NULL;
            }
            walk->places = grown;
            walk->room = room;
        }
        const sw_stack_tag *tag = &walk->stacks->tags[node->tag].shown;
        sw_stacks_place *place = &walk->places[walk->count++];
        *place = (sw_stacks_place){
            .frame = walk->stacks->frames[node->frame].shown,
            .thread = walk->filter->by_thread ? tag->thread : NULL,
            .phase = walk->filter->by_phase ? tag->phase : -1,
        };
        place->frame.line = walk->lines ? place->frame.line : 0;
        walk->row[key] = (uint32_t)walk->count;
    }
    return &walk->places[walk->row[key] - 1];
}

static bool enter(struct walk *walk, uint32_t number)
{
    const struct sw__stack_node *node = &walk->stacks->nodes[number];
    const bool all = !walk->filter->running_only;
    sw_stacks_place *place = place_of(walk, node);
    if (!place) {
        return false;
    }
    const struct sum own = {node->running, all ? node->waiting : 0,
                            node->running_s + (all ? node->waiting_s : 0)};
    walk->below[number] = own;
    walk->open[key_of(walk, node->frame)]++;
    place->self_running = sw__add(place->self_running, own.running);
    place->self_waiting = sw__add(place->self_waiting, own.waiting);
    place->self_in_call = sw__add(place->self_in_call, node->in_call);
    place->self_s += own.seconds;
    return true;
}

static void leave(struct walk *walk, uint32_t number)
{
    const struct sw__stack_node *node = &walk->stacks->nodes[number];
    const struct sum *sum = &walk->below[number];
    const uint32_t key = key_of(walk, node->frame);
    if (--walk->open[key] == 0) {
        sw_stacks_place *place = &walk->places[walk->row[key] - 1];
        place->total_running = sw__add(place->total_running, sum->running);
        place->total_waiting = sw__add(place->total_waiting, sum->waiting);
        place->total_s += sum->seconds;
    }
    if (node->parent) {
        struct sum *above = &walk->below[node->parent];
        above->running = sw__add(above->running, sum->running);
        above->waiting = sw__add(above->waiting, sum->waiting);
        above->seconds += sum->seconds;
    }
}

/* Walks the tree of a tag, each node once down and once up. Adds its samples to `whole`. */
static bool walk_tag(struct walk *walk, const struct sw__stack_tag *tag, uint64_t *whole)
{
    const struct sw__stack_node *nodes = walk->stacks->nodes;
    uint32_t at = tag->first_child;
    while (at) {
        if (!enter(walk, at)) {
            return false;
        }
        if (nodes[at].first_child) {
            at = nodes[at].first_child;
            continue;
        }
        for (;;) {
            const uint32_t parent = nodes[at].parent;
            leave(walk, at);
            if (!parent) {
                *whole = sw__add(
                    *whole, sw__add(walk->below[at].running, walk->below[at].waiting));
            }
            if (nodes[at].next || !parent) {
                at = nodes[at].next;
                break;
            }
            at = parent;
        }
    }
    return true;
}

static int order_group(const sw_stacks_filter *filter, const sw_stack_tag *a,
                       const sw_stack_tag *b)
{
    const int text = filter->by_thread ? order_text(a->thread, b->thread) : 0;
    return text || !filter->by_phase ? text
                                     : order((uint64_t)a->phase, (uint64_t)b->phase);
}

/* Tags by group: a merge sort, for qsort hands no context to its order. */
static void sort_tags(const struct walk *walk, uint32_t *tags, uint32_t *spare,
                      size_t count)
{
    if (count < 2) {
        return;
    }
    const size_t half = count / 2;
    sort_tags(walk, tags, spare, half);
    sort_tags(walk, tags + half, spare, count - half);
    memcpy(spare, tags, half * sizeof *tags);
    size_t left = 0;
    size_t right = half;
    for (size_t to = 0; left < half; to++) {
        const struct sw__stack_tag *all = walk->stacks->tags;
        tags[to] = right < count && order_group(walk->filter, &all[tags[right]].shown,
                                                &all[spare[left]].shown) < 0
                       ? tags[right++]
                       : spare[left++];
    }
}

static uint64_t total_of(const sw_stacks_place *place)
{
    return sw__add(place->total_running, place->total_waiting);
}

static uint64_t self_of(const sw_stacks_place *place)
{
    return sw__add(place->self_running, place->self_waiting);
}

static void set_shares(sw_stacks_place *place, uint64_t whole)
{
    const uint64_t self = self_of(place);
    place->self = sw_share_of(self, whole);
    place->total = sw_share_of(total_of(place), whole);
    place->running_share = self ? (double)place->self_running / (double)self : NAN;
}

static int by_self(const void *left, const void *right)
{
    const sw_stacks_place *a = left;
    const sw_stacks_place *b = right;
    int result = order(self_of(b), self_of(a));
    result = result ? result : order(total_of(b), total_of(a));
    result = result ? result : order_text(a->frame.name, b->frame.name);
    result = result ? result : order_text(a->frame.file, b->frame.file);
    result = result ? result : order(a->frame.line, b->frame.line);
    result = result ? result : order(a->frame.first_line, b->frame.first_line);
    result = result ? result : order(a->frame.native, b->frame.native);
    result = result || !a->thread ? result : order_text(a->thread, b->thread);
    return result ? result : (a->phase > b->phase) - (a->phase < b->phase);
}

static bool walk_groups(struct walk *walk)
{
    const struct sw__stack_tag *all = walk->stacks->tags;
    size_t i = 0;
    while (i < walk->tag_count) {
        const size_t begin = i;
        uint64_t whole = 0;
        walk->first = walk->count;
        for (; i < walk->tag_count && order_group(walk->filter, &all[walk->tags[i]].shown,
                                                  &all[walk->tags[begin]].shown) == 0;
             i++) {
            if (!walk_tag(walk, &all[walk->tags[i]], &whole)) {
                return false;
            }
        }
        for (size_t k = walk->first; k < walk->count; k++) {
            set_shares(&walk->places[k], whole);
        }
    }
    return true;
}

static sw_stacks_place *places(const sw_stacks *stacks, const sw_stacks_filter *filter,
                               size_t *count, bool lines)
{
    const size_t keys = lines ? stacks->frame_count : stacks->function_count;
    struct walk walk = {
        .stacks = stacks,
        .filter = filter ? filter : &everything,
        .lines = lines,
        .below = sw__alloc_zero(stacks->node_count, sizeof *walk.below),
        .open = sw__alloc_zero(keys + 1, sizeof *walk.open),
        .row = sw__alloc_zero(keys + 1, sizeof *walk.row),
        .tags = sw__alloc_zero(stacks->tag_count + 1, 2 * sizeof *walk.tags),
        .places = sw__alloc_zero(16, sizeof *walk.places),
        .room = 16,
    };
    *count = 0;
    bool good = walk.below && walk.open && walk.row && walk.tags && walk.places;
    for (size_t i = 0; good && i < stacks->tag_count; i++) {
        if (wanted_tag(walk.filter, &stacks->tags[i].shown)) {
            walk.tags[walk.tag_count++] = (uint32_t)i;
        }
    }
    if (good) {
        sort_tags(&walk, walk.tags, walk.tags + stacks->tag_count, walk.tag_count);
        good = walk_groups(&walk);
    }
    if (good) {
        /* Places on the way to samples that do not count are none. */
        for (size_t i = 0; i < walk.count; i++) {
            if (total_of(&walk.places[i]) > 0) {
                walk.places[(*count)++] = walk.places[i];
            }
        }
        qsort(walk.places, *count, sizeof *walk.places, by_self);
    } else {
        sw__free(walk.places);
        walk.places = NULL;
    }
    sw__free(walk.below);
    sw__free(walk.open);
    sw__free(walk.row);
    sw__free(walk.tags);
    return walk.places;
}

sw_stacks_place *sw_stacks_functions(const sw_stacks *stacks,
                                     const sw_stacks_filter *filter, size_t *count)
{
    return places(stacks, filter, count, false);
}

sw_stacks_place *sw_stacks_lines(const sw_stacks *stacks, const sw_stacks_filter *filter,
                                 size_t *count)
{
    return places(stacks, filter, count, true);
}
