/* What a section changed of the process's resident memory: read from the kernel where the section begins and where it ends,
 * while `memory` is on. Only then lanes have a place for it.
 *
 * A reading costs about a microsecond, and nobody knows how short sections are. So a thread has a budget: a share of the
 * time that has passed. A call whose begin finds none is not read at all, and the row says how many were. The lane knows when there
 * is time again, and which section is to be read at its end: these take the slow path, and only these. */
#include "base/memory.h"
#include "base/os.h"
#include "record/recorder.h"
#include <string.h>

/* At most one part in so many of a thread's time is for readings, and so much at once: this part of a millisecond. */
#define SW__RESIDENT_SHARE 400
#define SW__RESIDENT_BURST 4
/* A reading that takes longer was interrupted, which is no cost of ours: so many parts of a millisecond. */
#define SW__RESIDENT_LONGEST 50
#define SW__RESIDENT_DEPTH 64
/* Attempts at session.lock, which must not be waited for here: whoever ends the session holds it and waits for us. */
#define SW__RESIDENT_TRIES 64

struct sw__resident_node {
    sw_row *row; /* in the session's memory; NULL: not yet */
    uint64_t calls;
    uint64_t readings; /* also of stretches of calls that were suspended */
    int64_t sum, most, least;
    uint64_t highest;
};

struct sw__resident_open {
    uint64_t start; /* of the frame, which with its node tells it from all others */
    uint32_t node;
    uint64_t begin;   /* bytes */
    uint64_t highest; /* that was read while it was open */
};

struct sw__resident {
    int64_t budget; /* ticks */
    uint64_t paid;  /* up to then */
    uint64_t cost;  /* of the last reading */
    uint32_t depth;
    struct sw__resident_open open[SW__RESIDENT_DEPTH];
    struct sw__resident_node node[SW__NODES_HARD]; /* pages that are used only */
};

/* When there will be time for both readings of a call. */
static void sw__resident_plan(struct sw__lane *lane)
{
    const struct sw__resident *resident = lane->resident;
    const int64_t missing = (int64_t)(2 * resident->cost) - resident->budget;
    lane->resident_due =
        missing > 0 ? resident->paid + (uint64_t)missing * SW__RESIDENT_SHARE : 0;
}

static void sw__resident_newest(struct sw__lane *lane)
{
    const struct sw__resident *resident = lane->resident;
    lane->resident_open =
        resident->depth ? resident->open[resident->depth - 1].start : UINT64_MAX;
}

void sw__resident_open(struct sw__lane *lane)
{
    lane->resident = NULL;
    lane->resident_due = lane->resident_open = UINT64_MAX;
    if (sw__session.settings.memory && lane->domain == 0) {
        struct sw__resident *resident = sw__alloc_zero(1, sizeof(*resident));
        if (resident) {
            resident->budget = (int64_t)(sw__session.ticks_per_ms / SW__RESIDENT_BURST);
            resident->paid = sw__clock_now();
            lane->resident = resident;
            sw__resident_plan(lane);
        }
    }
}

void sw__resident_close(struct sw__lane *lane)
{
    sw__free(lane->resident);
    lane->resident = NULL;
    lane->resident_due = lane->resident_open = UINT64_MAX;
}

void sw__resident_reset(struct sw__lane *lane)
{
    if (lane->resident) {
        lane->resident->depth = 0;
        sw__resident_newest(lane);
    }
}

/* Whether there is time for both readings of a call. */
static bool sw__resident_may(struct sw__resident *resident, uint64_t now)
{
    if (now > resident->paid) {
        const int64_t most = (int64_t)(sw__session.ticks_per_ms / SW__RESIDENT_BURST);
        const uint64_t earned = (now - resident->paid) / SW__RESIDENT_SHARE;
        resident->paid += earned * SW__RESIDENT_SHARE;
        resident->budget += (int64_t)earned;
        resident->budget = resident->budget < most ? resident->budget : most;
    }
    return resident->budget >= (int64_t)(2 * resident->cost);
}

/* Bytes, or UINT64_MAX. */
static uint64_t sw__resident_read(struct sw__lane *lane)
{
    struct sw__resident *resident = lane->resident;
    struct sw__os_memory memory;
    const uint64_t began = sw__clock_now();
    sw__os_process_memory(&memory,
                          sw__kept_open(&lane->thread->statm, "/proc/self/statm"));
    const uint64_t took = sw__clock_now() - began;
    const uint64_t longest = sw__session.ticks_per_ms / SW__RESIDENT_LONGEST;
    resident->cost = took < longest ? took : longest;
    resident->budget -= (int64_t)resident->cost;
    sw__resident_plan(lane);
    sw__total_add(SW__TOTAL_EMIT_TICKS, resident->cost);
    return memory.resident;
}

/* Makes the row of a node. The lane is busy. */
static sw_row *sw__resident_row(const struct sw__lane *lane, uint32_t index)
{
    struct sw__session *session = &sw__session;
    sw_row row = {.table = SW_TABLE_RESIDENT,
                  .key = {lane->thread->slot->index, index},
                  .value = {0, 0, 0, 0, 0}};
    for (unsigned i = 0; i < SW__RESIDENT_TRIES && !sw__holding; i++) {
        if (sw__try_lock(&session->lock)) {
            sw_row *made = atomic_load(&session->state) == SW__SESSION_ON
                               ? sw__row_keep(&row)
                               : NULL;
            sw__unlock(&session->lock);
            return made;
        }
    }
    return NULL;
}

static void sw__resident_show(struct sw__lane *lane, struct sw__resident_node *node,
                              uint32_t index)
{
    node->row = node->row ? node->row : sw__resident_row(lane, index);
    if (node->row) {
        uint64_t *value = node->row->value;
        __atomic_store_n(&value[1], (uint64_t)node->sum, __ATOMIC_RELAXED);
        __atomic_store_n(&value[2], (uint64_t)node->most, __ATOMIC_RELAXED);
        __atomic_store_n(&value[3], (uint64_t)node->least, __ATOMIC_RELAXED);
        __atomic_store_n(&value[4], node->highest, __ATOMIC_RELAXED);
        __atomic_store_n(&value[0], node->calls, __ATOMIC_RELEASE);
    }
}

uint64_t sw__resident_before(struct sw__lane *lane)
{
    struct sw__resident *resident = lane->resident;
    if (resident->depth == SW__RESIDENT_DEPTH ||
        !sw__resident_may(resident, sw__clock_now())) {
        return UINT64_MAX;
    }
    return sw__resident_read(lane);
}

void sw__resident_begin(struct sw__lane *lane, const struct sw__fmt_frame *frame,
                        uint64_t bytes)
{
    struct sw__resident *resident = lane->resident;
    if (bytes != UINT64_MAX) {
        resident->open[resident->depth++] = (struct sw__resident_open){
            .start = frame->start, .node = frame->node, .begin = bytes, .highest = bytes};
        sw__resident_newest(lane);
    }
}

/* The place of a frame among those whose begin was read; their number: it is not there. */
static uint32_t sw__resident_find(const struct sw__resident *resident,
                                  const struct sw__fmt_frame *frame)
{
    for (uint32_t i = resident->depth; i-- > 0;) {
        if (resident->open[i].start == frame->start &&
            resident->open[i].node == frame->node) {
            return i;
        }
    }
    return resident->depth;
}

void sw__resident_end(struct sw__lane *lane, const struct sw__fmt_frame *frame, bool part)
{
    struct sw__resident *resident = lane->resident;
    const uint32_t at = sw__resident_find(resident, frame);
    if (at == resident->depth) {
        return;
    }
    const uint64_t bytes = sw__resident_read(lane);
    struct sw__resident_open it = resident->open[at];
    resident->depth--;
    memmove(&resident->open[at], &resident->open[at + 1],
            (resident->depth - at) * sizeof(it));
    sw__resident_newest(lane);
    if (bytes == UINT64_MAX) {
        return;
    }
    it.highest = it.highest > bytes ? it.highest : bytes;
    if (at > 0 && resident->open[at - 1].highest < it.highest) {
        resident->open[at - 1].highest = it.highest;
    }
    const uint32_t index = sw__node_at(lane, frame->node)->index;
    if (index >= SW__NODES_HARD) {
        return;
    }
    struct sw__resident_node *node = &resident->node[index];
    const int64_t change = (int64_t)(bytes - it.begin);
    const bool first = node->readings++ == 0;
    node->sum += change;
    node->most = first || change > node->most ? change : node->most;
    node->least = first || change < node->least ? change : node->least;
    node->highest = node->highest > it.highest ? node->highest : it.highest;
    /* A call that was suspended counts with its last stretch. */
    node->calls += part ? 0 : 1;
    sw__resident_show(lane, node, index);
}
