/* What recording costs: the recorder times itself on scratch memory at its start, well under a millisecond, and
 * every report multiplies that by what was recorded. */
#include "base/memory.h"
#include "record/recorder.h"
#include <stdlib.h>
#include <string.h>

#define SW__BATCHES 24
#define SW__PAIRS 32
#define SW__SCRATCH_GATE 1

/* A lane, a thread and a chunk that belong to no file. */
struct sw__scratch {
    uint8_t memory[SW__FMT_CHUNK] SW__ALIGNED(
        64); /* lane, frames, nodes, one histogram page */
    uint8_t chunk[SW__FMT_CHUNK] SW__ALIGNED(64);
    struct sw__lane lane;
    struct sw__thread thread;
    struct sw__fmt_thread slot;
    struct sw__slot slots[64], quick[64];
    struct sw_section section;
};

static void sw__scratch_rewind(struct sw__scratch *scratch)
{
    scratch->lane.data = scratch->chunk + sizeof(struct sw__fmt_block);
    scratch->lane.cursor = scratch->lane.data;
    scratch->lane.end = scratch->chunk + SW__FMT_CHUNK;
}

static void sw__scratch_fill(struct sw__scratch *scratch)
{
    struct sw__lane *lane = &scratch->lane;
    struct sw__fmt_node *root = (struct sw__fmt_node *)(void *)(scratch->memory + 16384);
    struct sw__fmt_node *node = root + 1;
    lane->base = scratch->memory;
    lane->file = (struct sw__fmt_lane *)(void *)scratch->memory;
    lane->bottom = (struct sw__fmt_frame *)(void *)(scratch->memory + 1024);
    lane->top = lane->bottom;
    lane->limit = lane->bottom + 64;
    lane->bottom[-1].node = sw__node_reference(lane, root);
    lane->root = root;
    lane->thread = &scratch->thread;
    lane->node = root;
    lane->slots = scratch->slots;
    lane->slots_bits = 6;
    lane->quick = scratch->quick;
    lane->quick_mask = 63;
    uint32_t generation = atomic_load(&sw__session.generation);
    lane->idle = SW__SCRATCH_GATE | (sw__clock_is_register() ? 0 : SW__GATE_SLOW);
    lane->resident_due = lane->resident_open = UINT64_MAX;
    atomic_store(&lane->generation, lane->idle);
    scratch->section.id = 1;
    atomic_store(&scratch->section.gate, SW__SCRATCH_GATE);
    scratch->section.phase = SW_PHASE_INHERIT;
    node->section = 1;
    node->index = 1;
    node->minimum = UINT64_MAX;
    for (unsigned i = 0; i < SW_HISTOGRAM_OCTAVES; i++) {
        node->hist[i] = (32768 + 512) / 64;
    }
    sw__lane_add_slot(lane, (struct sw__slot){.parent = root,
                                              .section = 1,
                                              .node = sw__node_reference(lane, node)});
    for (unsigned i = 0; i < SW__DOMAINS; i++) {
        scratch->thread.lane[i] = lane;
    }
    scratch->thread.slot = &scratch->slot;
    scratch->thread.generation = generation;
    sw__scratch_rewind(scratch);
    atomic_store(&scratch->thread.chunk, UINT32_MAX);
}

static int sw__compare_u64(const void *a, const void *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof(left));
    memcpy(&right, b, sizeof(right));
    return left < right ? -1 : left > right;
}

/* Ticks × 256 per section: least, median and nine tenths of the batches. */
static void sw__calibrate_tier(struct sw__scratch *scratch, bool events, uint64_t out[3])
{
    uint64_t costs[SW__BATCHES];
    atomic_store_explicit(&sw__events_on, events, memory_order_relaxed);
    for (unsigned i = 0; i < SW__BATCHES; i++) {
        uint64_t before = sw__clock_now();
        for (unsigned j = 0; j < SW__PAIRS; j++) {
            sw_begin(&scratch->section);
            sw_end(&scratch->section);
        }
        uint64_t after = sw__clock_now();
        costs[i] = after > before ? (after - before) * 256 / SW__PAIRS : 0;
    }
    qsort(costs, SW__BATCHES, sizeof(costs[0]), sw__compare_u64);
    out[0] = costs[0];
    out[1] = costs[SW__BATCHES / 2];
    out[2] = costs[SW__BATCHES * 9 / 10];
}

void sw__calibrate(struct sw__fmt_super *super, bool known)
{
    static uint64_t full[3], statistics[3]; /* under session.lock */
    struct sw__scratch *scratch = NULL;
    if (known && full[1]) {
        goto tell;
    }
    if (posix_memalign((void **)&scratch, 64, sizeof(*scratch))) {
        return; /* Unknown stays 0 and is reported as unknown. */
    }
    memset(scratch, 0, sizeof(*scratch));
    sw__scratch_fill(scratch);
    struct sw__thread *self = sw__self;
    bool events = atomic_load(&sw__events_on);
    int holding = sw__holding;
    sw__holding = 0; /* The slow path of a slow clock asks for both. */
    atomic_store(&sw__domain_at(0)->gate, SW__SCRATCH_GATE);
    sw__become(&scratch->thread);
    sw__calibrate_tier(scratch, true, full); /* Warms caches and branches. */
    sw__scratch_rewind(scratch);
    sw__calibrate_tier(scratch, true, full);
    sw__calibrate_tier(scratch, false, statistics);
    sw__become(self);
    sw__holding = holding;
    atomic_store(&sw__events_on, events);
    free(scratch);
tell:
    super->cost_section_low = full[0];
    super->cost_section = full[1];
    super->cost_section_high = full[2];
    super->cost_stats = statistics[1];
}
