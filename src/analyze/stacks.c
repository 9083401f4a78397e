/* Sampled stacks, put together. */
#include <math.h>
#include <string.h>

#include "analyze/stacks.h"
#include "analyze/summary.h"
#include "base/intern.h"

/* --- numbers by hash --- */

/* Whether the thing with that number is the one that is looked for. */
typedef bool same_call(const sw_stacks *stacks, uint32_t number, const void *key);

static bool finder_grow(struct sw__finder *finder)
{
    size_t room = finder->room ? finder->room * 2 : 64;
    struct sw__finder_slot *slots = sw__alloc_zero(room, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (size_t i = 0; i < finder->room; i++) {
        if (finder->slots[i].number) {
            size_t at = finder->slots[i].hash & (room - 1);
            while (slots[at].number) {
                at = (at + 1) & (room - 1);
            }
            slots[at] = finder->slots[i];
        }
    }
    sw__free(finder->slots);
    finder->slots = slots;
    finder->room = room;
    return true;
}

static uint32_t shortened(uint64_t hash)
{
    return (uint32_t)(hash ^ hash >> 32);
}

/* Where a thing is among the slots, or the free one where it would go. There are some, and not all are taken. */
static size_t slot_of(const sw_stacks *stacks, const struct sw__finder *finder,
                      uint64_t hash, same_call *same, const void *key)
{
    size_t at = shortened(hash) & (finder->room - 1);
    while (finder->slots[at].number &&
           !(finder->slots[at].hash == shortened(hash) &&
             same(stacks, finder->slots[at].number - 1, key))) {
        at = (at + 1) & (finder->room - 1);
    }
    return at;
}

/* The slot of a thing, or the free one where it would go; NULL when out of memory. */
static struct sw__finder_slot *find(const sw_stacks *stacks, struct sw__finder *finder,
                                    uint64_t hash, same_call *same, const void *key)
{
    if (finder->used * 2 >= finder->room && !finder_grow(finder)) {
        return NULL;
    }
    struct sw__finder_slot *slot =
        &finder->slots[slot_of(stacks, finder, hash, same, key)];
    slot->hash = shortened(hash);
    return slot;
}

static uint32_t take_slot(struct sw__finder *finder, struct sw__finder_slot *slot,
                          size_t number)
{
    slot->number = (uint32_t)number + 1;
    finder->used++;
    return (uint32_t)number;
}

/* The array, moved where it was full and could grow. */
static void *roomier(void *array, size_t count, size_t *room, size_t size)
{
    const size_t more = *room ? *room * 2 : 16;
    void *grown =
        count == *room && more < SW__STACKS_FAIL ? sw__realloc(array, more, size) : NULL;
    if (grown) {
        *room = more;
    }
    return grown ? grown : array;
}
/* Whether there is room for one more. */
#define RESERVE(stacks, thing)                                                           \
    ((stacks)->thing##s = roomier((void *)(stacks)->thing##s, (stacks)->thing##_count,   \
                                  &(stacks)->thing##_room, sizeof *(stacks)->thing##s),  \
     (stacks)->thing##_count < (stacks)->thing##_room)

/* --- strings, functions, frames, tags, nodes --- */

struct text {
    const char *bytes;
    size_t length;
};

static bool same_string(const sw_stacks *stacks, uint32_t number, const void *key)
{
    const struct text *text = key;
    return strcmp(stacks->strings[number], text->bytes) == 0;
}

/* The one copy of a string, or NULL when out of memory. */
static const char *string_of(sw_stacks *stacks, const char *bytes)
{
    struct text text = {bytes ? bytes : "", bytes ? strlen(bytes) : 0};
    uint64_t hash = sw__hash_seeded(text.bytes, text.length, stacks->seed);
    struct sw__finder_slot *slot =
        find(stacks, &stacks->string_finder, hash, same_string, &text);
    if (!slot) {
        return NULL;
    }
    if (!slot->number) {
        char *copy = RESERVE(stacks, string)
                         ? sw__arena_copy(stacks->arena, text.bytes, text.length)
                         : NULL;
        if (!copy) {
            return NULL;
        }
        stacks->strings[stacks->string_count] = copy;
        (void)take_slot(&stacks->string_finder, slot, stacks->string_count++);
    }
    return stacks->strings[slot->number - 1];
}

static bool same_function(const sw_stacks *stacks, uint32_t number, const void *key)
{
    return memcmp(&stacks->functions[number], key, sizeof stacks->functions[0]) == 0;
}

uint32_t sw__stacks_function(sw_stacks *stacks, const char *name, const char *file,
                             uint32_t first_line, bool native)
{
    const struct sw__stack_function wanted = {
        string_of(stacks, name), string_of(stacks, file), first_line, native};
    if (!wanted.name || !wanted.file) {
        return SW__STACKS_FAIL;
    }
    uint64_t hash = sw__hash_seeded(&wanted, sizeof wanted, stacks->seed);
    struct sw__finder_slot *slot =
        find(stacks, &stacks->function_finder, hash, same_function, &wanted);
    if (!slot || (!slot->number && !RESERVE(stacks, function))) {
        return SW__STACKS_FAIL;
    }
    if (!slot->number) {
        stacks->functions[stacks->function_count] = wanted;
        return take_slot(&stacks->function_finder, slot, stacks->function_count++);
    }
    return slot->number - 1;
}

static bool same_frame(const sw_stacks *stacks, uint32_t number, const void *key)
{
    const uint32_t *wanted = key;
    return stacks->frames[number].function == wanted[0] &&
           stacks->frames[number].shown.line == wanted[1];
}

uint32_t sw__stacks_frame(sw_stacks *stacks, uint32_t function, uint32_t line)
{
    const uint32_t wanted[2] = {function, line};
    uint64_t hash = sw__hash_seeded(wanted, sizeof wanted, stacks->seed);
    struct sw__finder_slot *slot =
        find(stacks, &stacks->frame_finder, hash, same_frame, wanted);
    if (!slot || (!slot->number && !RESERVE(stacks, frame))) {
        return SW__STACKS_FAIL;
    }
    if (!slot->number) {
        const struct sw__stack_function *of = &stacks->functions[function];
        stacks->frames[stacks->frame_count] =
            (struct sw__stack_frame){{.name = of->name,
                                      .file = of->file,
                                      .line = line,
                                      .first_line = of->first_line,
                                      .native = of->native != 0},
                                     function};
        return take_slot(&stacks->frame_finder, slot, stacks->frame_count++);
    }
    return slot->number - 1;
}

static bool same_tag(const sw_stacks *stacks, uint32_t number, const void *key)
{
    const sw_stack_tag *a = &stacks->tags[number].shown;
    const sw_stack_tag *b = key;
    return a->thread == b->thread && a->section == b->section && a->phase == b->phase &&
           a->pid == b->pid && a->main == b->main;
}

uint32_t sw__stacks_tag(sw_stacks *stacks, const sw_stack_tag *tag)
{
    const bool known =
        tag->phase >= 0 && (tag->phase < SW_PHASE_COUNT || tag->phase == SW_PHASE_BRIEF);
    const sw_stack_tag wanted = {
        .thread = string_of(stacks, tag->thread),
        .section = string_of(stacks, tag->section),
        .phase = known ? tag->phase : SW_PHASE_INHERIT,
        .pid = tag->pid,
        .main = tag->main,
    };
    if (!wanted.thread || !wanted.section) {
        return SW__STACKS_FAIL;
    }
    const uint64_t parts[] = {(uint64_t)(uintptr_t)wanted.thread,
                              (uint64_t)(uintptr_t)wanted.section, (uint64_t)wanted.phase,
                              (uint64_t)wanted.pid << 1 | wanted.main};
    uint64_t hash = sw__hash_seeded(parts, sizeof parts, stacks->seed);
    struct sw__finder_slot *slot =
        find(stacks, &stacks->tag_finder, hash, same_tag, &wanted);
    if (!slot || (!slot->number && !RESERVE(stacks, tag))) {
        return SW__STACKS_FAIL;
    }
    if (!slot->number) {
        stacks->tags[stacks->tag_count] = (struct sw__stack_tag){.shown = wanted};
        return take_slot(&stacks->tag_finder, slot, stacks->tag_count++);
    }
    return slot->number - 1;
}

static bool same_node(const sw_stacks *stacks, uint32_t number, const void *key)
{
    const uint32_t *wanted = key;
    const struct sw__stack_node *node = &stacks->nodes[number];
    return node->tag == wanted[0] && node->parent == wanted[1] &&
           node->frame == wanted[2];
}

uint32_t sw__stacks_find_node(const sw_stacks *stacks, uint32_t tag, uint32_t parent,
                              uint32_t frame)
{
    const uint32_t wanted[3] = {tag, parent, frame};
    const uint64_t hash = sw__hash_seeded(wanted, sizeof wanted, stacks->seed);
    const struct sw__finder *finder = &stacks->node_finder;
    const uint32_t number =
        finder->room
            ? finder->slots[slot_of(stacks, finder, hash, same_node, wanted)].number
            : 0;
    return number ? number - 1 : SW__STACKS_FAIL;
}

uint32_t sw__stacks_node(sw_stacks *stacks, uint32_t tag, uint32_t parent, uint32_t frame)
{
    uint32_t depth = parent ? stacks->nodes[parent].depth + 1 : 1;
    if (depth > SW_STACKS_DEPTH) {
        if (depth > SW_STACKS_DEPTH + 1) {
            return parent;
        }
        uint32_t function = sw__stacks_function(stacks, "(deeper)", "", 0, false);
        frame = function == SW__STACKS_FAIL ? SW__STACKS_FAIL
                                            : sw__stacks_frame(stacks, function, 0);
        if (frame == SW__STACKS_FAIL) {
            return SW__STACKS_FAIL;
        }
    }
    const uint32_t wanted[3] = {tag, parent, frame};
    uint64_t hash = sw__hash_seeded(wanted, sizeof wanted, stacks->seed);
    struct sw__finder_slot *slot =
        find(stacks, &stacks->node_finder, hash, same_node, wanted);
    if (!slot || (!slot->number && !RESERVE(stacks, node))) {
        return SW__STACKS_FAIL;
    }
    if (!slot->number) {
        uint32_t *first =
            parent ? &stacks->nodes[parent].first_child : &stacks->tags[tag].first_child;
        stacks->nodes[stacks->node_count] = (struct sw__stack_node){
            .parent = parent, .frame = frame, .tag = tag, .next = *first, .depth = depth};
        *first = take_slot(&stacks->node_finder, slot, stacks->node_count++);
        return *first;
    }
    return slot->number - 1;
}

void sw__stacks_count(sw_stacks *stacks, uint32_t node, const sw_stack_counts *counts)
{
    struct sw__stack_node *to = &stacks->nodes[node];
    to->running = sw__add(to->running, counts->running);
    to->waiting = sw__add(to->waiting, counts->waiting);
    to->in_call = sw__add(to->in_call, counts->in_call);
    /* No sample takes no time, whatever the period. */
    if (counts->running) {
        to->running_s += (double)counts->running * stacks->period_s;
    }
    if (counts->waiting) {
        to->waiting_s += (double)counts->waiting * stacks->period_s;
    }
}

/* --- public --- */

int sw_stacks_create(sw_stacks **out)
{
    *out = NULL;
    sw_stacks *stacks = sw__alloc_zero(1, sizeof *stacks);
    if (!stacks) {
        return SW_ENOMEM;
    }
    stacks->arena = sw__arena_create(0);
    stacks->seed = (uint64_t)(uintptr_t)stacks * 0x9e3779b97f4a7c15u;
    stacks->period_s = NAN;
    stacks->totals.hz = NAN;
    stacks->totals.cpu_s = NAN;
    if (!stacks->arena || !RESERVE(stacks, node)) {
        sw_stacks_free(stacks);
        return SW_ENOMEM;
    }
    stacks->nodes[stacks->node_count++] = (struct sw__stack_node){0};
    *out = stacks;
    return SW_OK;
}

void sw_stacks_free(sw_stacks *stacks)
{
    if (!stacks) {
        return;
    }
    sw__free(stacks->strings);
    sw__free(stacks->functions);
    sw__free(stacks->frames);
    sw__free(stacks->tags);
    sw__free(stacks->nodes);
    sw__free(stacks->string_finder.slots);
    sw__free(stacks->function_finder.slots);
    sw__free(stacks->frame_finder.slots);
    sw__free(stacks->tag_finder.slots);
    sw__free(stacks->node_finder.slots);
    sw__arena_free(stacks->arena);
    sw__free(stacks);
}

void sw_stacks_set_period(sw_stacks *stacks, double seconds)
{
    stacks->period_s = isfinite(seconds) && seconds > 0 ? seconds : NAN;
}

int sw_stacks_add(sw_stacks *stacks, const sw_stack_frame *frames, size_t depth,
                  const sw_stack_tag *tag, const sw_stack_counts *counts)
{
    static const sw_stack_tag nobody = {.phase = SW_PHASE_INHERIT};
    if (depth == 0) {
        return SW_EINVAL;
    }
    uint32_t at = sw__stacks_tag(stacks, tag ? tag : &nobody);
    if (at == SW__STACKS_FAIL) {
        return SW_ENOMEM;
    }
    uint32_t node = 0;
    for (size_t i = 0; i < depth && i <= SW_STACKS_DEPTH; i++) {
        const sw_stack_frame *given = &frames[i];
        uint32_t frame = sw__stacks_function(stacks, given->name, given->file,
                                             given->first_line, given->native);
        frame = frame == SW__STACKS_FAIL ? frame
                                         : sw__stacks_frame(stacks, frame, given->line);
        node =
            frame == SW__STACKS_FAIL ? frame : sw__stacks_node(stacks, at, node, frame);
        if (node == SW__STACKS_FAIL) {
            return SW_ENOMEM;
        }
    }
    sw__stacks_count(stacks, node, counts);
    return SW_OK;
}

void sw_stacks_add_totals(sw_stacks *stacks, const sw_stacks_totals *totals)
{
    sw_stacks_totals *to = &stacks->totals;
    if (totals->samplers > 0) {
        const bool first = to->samplers == 0;
        to->hz = first || to->hz == totals->hz ? totals->hz : NAN;
        to->cpu_s = first ? totals->cpu_s : to->cpu_s + totals->cpu_s;
    }
    to->samplers = sw__add(to->samplers, totals->samplers);
    to->looks = sw__add(to->looks, totals->looks);
    to->kept = sw__add(to->kept, totals->kept);
    to->partial = sw__add(to->partial, totals->partial);
    to->given_up = sw__add(to->given_up, totals->given_up);
    to->damaged = sw__add(to->damaged, totals->damaged);
}

const sw_stacks_totals *sw_stacks_get_totals(const sw_stacks *stacks)
{
    return &stacks->totals;
}

bool sw_stacks_next(const sw_stacks *stacks, sw_stacks_cursor *cursor, sw_stack *out)
{
    while (cursor->next < stacks->node_count) {
        const uint32_t number = cursor->next++;
        const struct sw__stack_node *node = &stacks->nodes[number];
        if (node->running || node->waiting) {
            *out = (sw_stack){
                .tag = &stacks->tags[node->tag].shown,
                .depth = node->depth,
                .running = node->running,
                .waiting = node->waiting,
                .in_call = node->in_call,
                .running_s = node->running_s,
                .waiting_s = node->waiting_s,
                .id = number,
            };
            return true;
        }
    }
    return false;
}

size_t sw_stacks_frames(const sw_stacks *stacks, uint32_t id, uint32_t *frames,
                        size_t room)
{
    if (id == 0 || id >= stacks->node_count) {
        return 0;
    }
    const size_t depth = stacks->nodes[id].depth;
    for (; id; id = stacks->nodes[id].parent) {
        const size_t place = stacks->nodes[id].depth - (size_t)1;
        if (place < room) {
            frames[place] = stacks->nodes[id].frame;
        }
    }
    return depth < room ? depth : room;
}

size_t sw_stacks_frame_count(const sw_stacks *stacks)
{
    return stacks->frame_count;
}

const sw_stack_frame *sw_stacks_get_frame(const sw_stacks *stacks, uint32_t number)
{
    return number < stacks->frame_count ? &stacks->frames[number].shown : NULL;
}
