/* Lanes: the mapped stack of open sections, the call tree, histogram pages. Slow paths only. */
#include "base/memory.h"
#include "record/recorder.h"
#include <string.h>

static_assert(sizeof(struct sw__fmt_block) + sizeof(struct sw__fmt_lane) +
                      (SW__DEPTH_FIRST + 1) * sizeof(struct sw__fmt_frame) +
                      sizeof(struct sw__fmt_later) +
                      SW__LATER_ROOM * sizeof(struct sw__fmt_note) <=
                  SW__LANE_BLOCK,
              "a lane's block has room for its parts");

#define SW__SLOTS_BITS 6
#define SW__QUICK_MOST 1024u
#define SW__INFINITY_BITS 0x7ff0000000000000u
#define SW__MINUS_INFINITY_BITS 0xfff0000000000000u

static struct sw__fmt_block *sw__lane_block(const struct sw__lane *lane,
                                            enum sw__fmt_kind kind, uint32_t size)
{
    struct sw__fmt_block *block = sw__mirror_take(&sw__session.mirror, kind, size);
    if (block) {
        block->thread = lane->thread->slot->index;
        block->domain = lane->domain;
    }
    return block;
}

static size_t sw__slot_index(const struct sw__fmt_node *parent, uint32_t section,
                             unsigned bits)
{
    uint64_t key = (uint64_t)(uintptr_t)parent ^ (uint64_t)section << 40 ^ section;
    return (size_t)((key * 0x9e3779b97f4a7c15u) >> (64 - bits));
}

static void sw__slot_put(struct sw__slot *slots, unsigned bits, struct sw__slot slot)
{
    size_t mask = ((size_t)1 << bits) - 1;
    size_t at = sw__slot_index(slot.parent, slot.section, bits);
    while (slots[at].parent) {
        at = (at + 1) & mask;
    }
    slots[at] = slot;
}

static struct sw__fmt_node *
sw__slot_find(struct sw__lane *lane, const struct sw__fmt_node *parent, uint32_t section)
{
    size_t mask = ((size_t)1 << lane->slots_bits) - 1;
    size_t at = sw__slot_index(parent, section, lane->slots_bits);
    for (; lane->slots[at].parent; at = (at + 1) & mask) {
        const struct sw__slot *slot = &lane->slots[at];
        if (slot->parent == parent && slot->section == section) {
            /* The hot path looks here next time. */
            lane->quick[section & lane->quick_mask] = *slot;
            return sw__node_at(lane, slot->node);
        }
    }
    return NULL;
}

/* Gives every section id of the lane a place of its own in the quick table, up to a size. */
static void sw__quick_grow(struct sw__lane *lane, uint32_t section)
{
    size_t size = (size_t)lane->quick_mask + 1;
    if (section < size || size >= SW__QUICK_MOST) {
        return;
    }
    while (size <= section && size < SW__QUICK_MOST) {
        size *= 2;
    }
    struct sw__slot *quick = sw__alloc_zero(size, sizeof(*quick));
    if (quick) {
        sw__free(lane->quick);
        lane->quick = quick;
        lane->quick_mask = (uint32_t)size - 1;
    }
}

/* Keeps the table at most half full. */
static bool sw__slots_grow(struct sw__lane *lane)
{
    size_t size = (size_t)1 << lane->slots_bits;
    if ((size_t)lane->node_count * 2 < size) {
        return true;
    }
    struct sw__slot *slots = sw__alloc_zero(size * 2, sizeof(*slots));
    if (!slots) {
        return (size_t)lane->node_count + 1 < size;
    }
    for (size_t i = 0; i < size; i++) {
        if (lane->slots[i].parent) {
            sw__slot_put(slots, lane->slots_bits + 1u, lane->slots[i]);
        }
    }
    sw__free(lane->slots);
    lane->slots = slots;
    lane->slots_bits++;
    return true;
}

/* Room for a node in the lane's newest block, or in a new one. */
static struct sw__fmt_node *sw__node_room(struct sw__lane *lane)
{
    struct sw__fmt_block *block = lane->nodes_block;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (!block || sizeof(*block) + used + sizeof(struct sw__fmt_node) > block->size) {
        block = sw__lane_block(lane, SW__BLOCK_NODES, SW__NODES_BLOCK);
        if (!block) {
            return NULL;
        }
        lane->nodes_block = block;
        used = 0;
    }
    return (struct sw__fmt_node *)(void *)((uint8_t *)(block + 1) + used);
}

void sw__lane_add_slot(struct sw__lane *lane, struct sw__slot slot)
{
    sw__slot_put(lane->slots, lane->slots_bits, slot);
    sw__quick_grow(lane, slot.section);
    lane->quick[slot.section & lane->quick_mask] = slot;
}

static struct sw__fmt_node *sw__node_make(struct sw__lane *lane,
                                          const struct sw__fmt_node *parent,
                                          uint32_t section, unsigned kind, unsigned flags)
{
    struct sw__fmt_node *node = sw__node_room(lane);
    if (!node || !sw__slots_grow(lane)) {
        return NULL;
    }
    node->section = section;
    node->parent = parent ? parent->index : 0;
    node->index = lane->node_count;
    node->kind = (uint16_t)kind;
    node->flags = (uint16_t)flags;
    node->minimum = kind == SW__NODE_COUNTER ? SW__INFINITY_BITS : UINT64_MAX;
    node->maximum = kind == SW__NODE_COUNTER ? SW__MINUS_INFINITY_BITS : 0;
    lane->node_count++;
    atomic_fetch_add_explicit(&lane->nodes_block->used, (uint32_t)sizeof(*node),
                              memory_order_release);
    atomic_store_explicit(&lane->file->nodes, lane->node_count, memory_order_release);
    if (parent) {
        const struct sw__slot slot = {
            .parent = parent, .section = section, .node = sw__node_reference(lane, node)};
        sw__lane_add_slot(lane, slot);
    }
    return node;
}

struct sw__fmt_node *sw__lane_node(struct sw__lane *lane, struct sw__fmt_node *parent,
                                   struct sw_section *section)
{
    unsigned kind =
        section->use == SW__NAME_COUNTER ? SW__NODE_COUNTER : SW__NODE_SECTION;
    struct sw__fmt_node *node = sw__slot_find(lane, parent, section->id);
    if (node) {
        return node;
    }
    if (lane->node_count < SW__NODES_MOST) {
        node = sw__node_make(lane, parent, section->id, kind, 0);
        if (node) {
            return node;
        }
    }
    /* No room for a path of its own: the family's node, else the one for all the rest. These calls take this
     * way every time, so that the table stays bounded too. */
    sw__total_add(SW__TOTAL_NODES_FOLDED, 1);
    struct sw_section *family = sw__section_family(section);
    node = sw__slot_find(lane, parent, family->id);
    if (!node && lane->node_count < SW__NODES_HARD) {
        node = sw__node_make(lane, parent, family->id, kind, SW__NODE_FAMILY);
    }
    if (!node) {
        node = kind == SW__NODE_COUNTER ? lane->root : lane->more;
    }
    return node;
}

uint32_t sw__lane_page(struct sw__lane *lane, uint32_t *refs, unsigned octave)
{
    /* The hot path finds the two lowest octaves through the second: they come as a pair. */
    const uint32_t pages = octave < 2 ? 2 : 1;
    if (sw__holding) {
        sw__total_add(SW__TOTAL_HIST_MISSED, 1);
        return 0;
    }
    const uint32_t size = pages * (uint32_t)sizeof(struct sw__fmt_page);
    struct sw__fmt_block *block = lane->hist_block;
    uint32_t used = block ? atomic_load_explicit(&block->used, memory_order_relaxed) : 0;
    if (!block || sizeof(*block) + used + size > block->size) {
        block = sw__lane_block(lane, SW__BLOCK_HIST, SW__HIST_BLOCK);
        if (!block) {
            sw__total_add(SW__TOTAL_HIST_MISSED, 1);
            return 0;
        }
        lane->hist_block = block;
        used = 0;
    }
    uint32_t reference = (uint32_t)((block->address + sizeof(*block) + used) / 64);
    atomic_store_explicit(&block->used, used + size, memory_order_release);
    if (pages == 2) {
        __atomic_store_n(&refs[0], reference, __ATOMIC_RELAXED);
        __atomic_store_n(&refs[1], reference + (uint32_t)sizeof(struct sw__fmt_page) / 64,
                         __ATOMIC_RELAXED);
    } else {
        __atomic_store_n(&refs[octave], reference, __ATOMIC_RELAXED);
    }
    return refs[octave];
}

/* A frame's depth is (frame - bottom) / 32; in the record it stands at bit 32, the domain at bit 48. */
static void sw__lane_span_bits(struct sw__lane *lane)
{
    lane->span_bits = ((uint64_t)lane->domain << 48) - ((uint64_t)lane->bottom << 27);
}

bool sw__lane_open(struct sw__lane *lane, struct sw__thread *thread, uint16_t domain)
{
    lane->thread = thread;
    lane->domain = domain;
    lane->base = sw__session.hot.base;
    struct sw__fmt_block *block = sw__lane_block(lane, SW__BLOCK_LANE, SW__LANE_BLOCK);
    if (!block) {
        return false;
    }
    lane->file = (struct sw__fmt_lane *)(void *)(block + 1);
    lane->file->thread = thread->slot->index;
    lane->file->domain = domain;
    lane->file->step_min = UINT64_MAX;
    /* One frame before the bottom stands for the root, so that the hot path need not ask. */
    struct sw__fmt_frame *frames = (struct sw__fmt_frame *)(void *)(lane->file + 1);
    lane->bottom = frames + 1;
    lane->limit = lane->bottom + SW__DEPTH_FIRST;
    lane->top = lane->bottom;
    lane->file->stack_capacity = SW__DEPTH_FIRST;
    atomic_store_explicit(&lane->file->stack,
                          (uint64_t)((uint8_t *)lane->bottom - lane->base),
                          memory_order_relaxed);
    lane->notes = (struct sw__fmt_later *)(void *)lane->limit;
    lane->notes->room = SW__LATER_ROOM;
    lane->file->later = (uint64_t)((uint8_t *)lane->notes - lane->base);
    atomic_store_explicit(&block->used, SW__LANE_BLOCK - (uint32_t)sizeof(*block),
                          memory_order_release);
    lane->slots_bits = SW__SLOTS_BITS;
    lane->slots = sw__alloc_zero((size_t)1 << SW__SLOTS_BITS, sizeof(*lane->slots));
    lane->quick = sw__alloc_zero((size_t)1 << SW__SLOTS_BITS, sizeof(*lane->quick));
    lane->quick_mask = (1u << SW__SLOTS_BITS) - 1;
    if (!lane->slots || !lane->quick) {
        return false;
    }
    lane->root = sw__node_make(lane, NULL, 0, SW__NODE_SECTION, 0);
    if (!lane->root) {
        return false;
    }
    /* The last resort of sw__lane_node, made while there is room. */
    lane->more = sw__node_make(lane, lane->root, sw__section_more(domain)->id,
                               SW__NODE_SECTION, SW__NODE_FAMILY);
    if (!lane->root || !lane->more) {
        return false;
    }
    __atomic_store_n(&lane->bottom[-1].node, sw__node_reference(lane, lane->root),
                     __ATOMIC_RELAXED);
    lane->node = lane->root;
    sw__lane_span_bits(lane);
    sw__resident_open(lane);
    lane->idle = atomic_load(&sw__domain_at(domain)->gate) | sw__lane_slow(lane);
    sw__lane_idle(lane);
    return true;
}

/* Doubles the stack of open sections into a block of its own. */
bool sw__lane_grow_stack(struct sw__lane *lane)
{
    uint32_t capacity = lane->file->stack_capacity * 2;
    size_t depth = (size_t)(lane->top - lane->bottom);
    if (lane->file->stack_capacity >= SW__DEPTH_MOST) {
        return false;
    }
    capacity = capacity > SW__DEPTH_MOST ? SW__DEPTH_MOST : capacity;
    uint64_t size = sizeof(struct sw__fmt_block) + ((uint64_t)capacity + 2) * 32;
    size = (size + SW__FMT_PAGE - 1) / SW__FMT_PAGE * SW__FMT_PAGE;
    struct sw__fmt_block *block = sw__lane_block(lane, SW__BLOCK_STACK, (uint32_t)size);
    if (!block) {
        return false;
    }
    struct sw__fmt_frame *frames = (struct sw__fmt_frame *)(void *)(block + 1);
    memcpy(frames, lane->bottom - 1, (depth + 1) * sizeof(*frames));
    atomic_store_explicit(&block->used, (uint32_t)(size - sizeof(*block)),
                          memory_order_release);
    lane->bottom = frames + 1;
    lane->top = lane->bottom + depth;
    lane->limit = lane->bottom + capacity;
    sw__lane_span_bits(lane);
    __atomic_store_n(&lane->file->stack_capacity, capacity, __ATOMIC_RELAXED);
    atomic_store_explicit(&lane->file->stack,
                          (uint64_t)((uint8_t *)lane->bottom - lane->base),
                          memory_order_release);
    return true;
}

/* Makes the lane of an ended thread ready for the next one: an empty stack, the same tree. */
void sw__lane_reset(struct sw__lane *lane)
{
    while (lane->top > lane->bottom) {
        lane->top--;
        __atomic_store_n(&lane->top->node, 0, __ATOMIC_RELEASE);
    }
    lane->node = lane->root;
    lane->start = 0;
    lane->phase_gate = 0;
    sw__later_end(lane);
    lane->idle = SW__GATE_OF(lane->idle) | sw__lane_slow(lane);
    sw__resident_reset(lane);
    lane->overflow = 0;
    lane->epoch = 0;
    atomic_store_explicit(&lane->file->step_open, 0, memory_order_release);
    sw__lane_idle(lane);
}

void sw__hist_add(struct sw__lane *lane, uint32_t *refs, uint64_t value)
{
    unsigned octave = sw_histogram_octave(value);
    uint32_t reference = __atomic_load_n(&refs[octave], __ATOMIC_RELAXED);
    if (reference == 0) {
        reference = sw__lane_page(lane, refs, octave);
    }
    if (reference) {
        struct sw__fmt_page *page =
            (struct sw__fmt_page *)(void *)(lane->base + (uint64_t)reference * 64);
        sw__add(&page->bucket[sw_histogram_bucket(value)], 1);
    }
}
