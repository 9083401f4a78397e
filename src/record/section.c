/* The hot path: begin and end of a section.
 *
 * sw_section_enter and sw_section_leave are two clock reads and about a hundred other instructions: no call, no
 * lock, no allocation. Both first look whether everything is as usual, and only then change anything; whatever is not as
 * usual leaves for a cold function that can do everything, by a tail call. */
#include "record/recorder.h"
#include <string.h>

SW__TLS struct sw__thread *sw__self = &sw__detached;
SW__TLS struct sw__lane *sw__self_lane = &sw__no_lane;
SW__TLS int sw__holding;
_Atomic bool sw__events_on;
void (*_Atomic sw__sections_tell)(void);
_Atomic bool sw__sections_watched;

/* Switches the running phase at `now`, within a step. */
static void sw__phase_switch(struct sw__lane *lane, uint64_t now, uint8_t phase)
{
    now = now < lane->phase_since ? lane->phase_since : now;
    lane->phase_ticks[lane->phase] += now - lane->phase_since;
    lane->phase_since = now;
    lane->phase = phase;
    lane->phases |= 1u << phase;
}

/* The last 8 bytes of a frame in one store: it is there, or it is not. */
SW__INLINE void sw__frame_set(struct sw__fmt_frame *frame, uint64_t tail)
{
    __atomic_store_n((uint64_t *)(void *)&frame->node, tail, __ATOMIC_RELEASE);
}
SW__INLINE uint64_t sw__frame_tail(const struct sw__fmt_frame *frame)
{
    return __atomic_load_n((const uint64_t *)(const void *)&frame->node,
                           __ATOMIC_RELAXED);
}

/* Makes the lane repeat its newest frame. */
SW__INLINE void sw__lane_refresh(struct sw__lane *lane)
{
    lane->node = sw__node_at(lane, lane->top[-1].node);
    lane->start = lane->top[-1].start;
}

/* Opens a frame at the top at `now`, whatever it takes. */
static void sw__frame_open(struct sw__lane *lane, uint32_t node,
                           const struct sw_section *section, uint64_t key, uint64_t now)
{
    struct sw__fmt_frame *frame = lane->top;
    bool phased = section->phase < lane->phase_gate;
    uint64_t flags = (key ? SW__FRAME_KEYED | SW__FRAME_CHILD : 0) |
                     (phased ? SW__FRAME_PHASED | SW__FRAME_CHILD : 0);
    uint64_t tail = node | (uint64_t)(flags ? lane->phase : 0) << 32 | flags << 40;
    __atomic_store_n(&frame->key, key, __ATOMIC_RELAXED);
    __atomic_store_n(&frame->child_before, sw__node_at(lane, node)->child,
                     __ATOMIC_RELAXED);
    lane->top = frame + 1;
    lane->node = sw__node_at(lane, node);
    lane->start = now;
    __atomic_store_n(&frame->start, now, __ATOMIC_RELAXED);
    sw__frame_set(frame, tail);
    if (phased) {
        sw__phase_switch(lane, now, sw__phase_within(lane->phase, section->phase));
    }
}

/* Statistics of one call, the histogram apart: its page may be missing. */
SW__INLINE void sw__node_count(struct sw__fmt_node *node, uint64_t duration)
{
    sw__add(&node->calls, 1);
    sw__add(&node->inclusive, duration);
    __atomic_store_n(&node->last, duration, __ATOMIC_RELAXED);
    if (SW__UNLIKELY(duration < node->minimum)) {
        __atomic_store_n(&node->minimum, duration, __ATOMIC_RELAXED);
    }
    if (SW__UNLIKELY(duration > node->maximum)) {
        __atomic_store_n(&node->maximum, duration, __ATOMIC_RELAXED);
    }
}

/* Whether the gate is still open for the lane's session. Only an answer given while the lane is busy
 * holds: the end of a session closes the gates and then waits for busy lanes. */
SW__INLINE bool sw__gate_is(const struct sw_section *section, uint32_t generation)
{
    return atomic_load_explicit(&section->gate, memory_order_relaxed) == generation;
}

/* The lane of a cold path: attached, not interrupted, busy. NULL: nothing to record. In a signal handler that
 * interrupted a thread with a lock, a section may end (it takes no lock then) but none begin. */
static struct sw__lane *sw__lane_cold(const struct sw_section *section, bool ending)
{
    uint32_t generation = atomic_load_explicit(&section->gate, memory_order_relaxed);
    bool held = ending && sw__holding && sw__self->lane[section->domain] != &sw__no_lane;
    if (generation == 0 || (!held && !sw__lane_here(section->domain))) {
        return NULL;
    }
    struct sw__lane *lane = sw__self->lane[section->domain];
    if (sw__lane_is_busy(lane)) {
        sw__total_add(SW__TOTAL_REENTRANT, 1);
        return NULL;
    }
    sw__lane_busy(lane);
    if (!sw__gate_is(section, SW__GATE_OF(lane->idle))) {
        sw__lane_idle(lane);
        return NULL;
    }
    sw__later_settle(lane);
    return lane;
}

/* Leaves a slow path in which the open sections have changed. */
static void sw__lane_changed(struct sw__lane *lane)
{
    if (!lane->overflow) {
        lane->idle = SW__GATE_OF(lane->idle) | sw__lane_slow(lane);
    }
    sw__sections_changed();
    sw__lane_leave(lane);
}

/* Begin, when something is not as usual: no lane yet, another session, a signal in the recorder, a full
 * stack, a node that is not in the table, a clock that is not a register. */
static SW__COLD void sw__begin_slow(struct sw_section *section, uint64_t key)
{
    struct sw__lane *lane = sw__lane_cold(section, false);
    if (!lane) {
        return;
    }
    if (lane->overflow || (lane->top >= lane->limit && !sw__lane_grow_stack(lane))) {
        /* Ends must find the way back: until then everything takes the slow path. */
        sw__total_add(SW__TOTAL_TOO_DEEP, 1);
        lane->overflow++;
        lane->idle |= SW__GATE_SLOW;
    } else {
        const struct sw__fmt_node *node = sw__lane_node(lane, lane->node, section);
        const uint64_t resident = lane->resident ? sw__resident_before(lane) : UINT64_MAX;
        sw__frame_open(lane, sw__node_reference(lane, node), section, key,
                       sw__clock_now());
        if (resident != UINT64_MAX) {
            sw__resident_begin(lane, lane->top - 1, resident);
        }
    }
    sw__lane_changed(lane);
}

void sw_section_begin(sw_section *section, uint64_t key)
{
    sw__begin_slow(section, key);
}

static SW__COLD void sw__enter_slow(struct sw__lane *lane, uint32_t before,
                                    struct sw_section *section)
{
    sw__lane_give(lane, before);
    sw__begin_slow(section, 0);
}

/* A section with a phase within a step, at a node that is known: no more than the hot path, and the switch of phases. */
static SW__NOINLINE void sw__enter_phased(struct sw__lane *lane,
                                          struct sw_section *section, uint64_t now)
{
    const struct sw__slot *slot = &lane->quick[section->id & lane->quick_mask];
    if (SW__UNLIKELY(slot->parent != lane->node || slot->section != section->id ||
                     lane->top >= lane->limit)) {
        sw__enter_slow(lane, lane->idle, section);
        return;
    }
    sw__frame_open(lane, slot->node, section, 0, now);
    sw__lane_idle(lane);
}

/* Opens a section on a lane; `other` is what to do when the lane is not the right one. */
SW__INLINE void sw__enter(struct sw_section *section, struct sw__lane *lane,
                          void (*other)(struct sw__lane *lane, uint32_t before,
                                        struct sw_section *section))
{
    const uint32_t generation = sw__lane_seize(lane);
    if (SW__UNLIKELY(!sw__gate_is(section, generation))) {
        other(lane, generation, section);
        return;
    }
    /* Reading the clock here costs less than reading it last, and an empty section does not get longer by it: what
     * follows runs beside whatever comes next. */
    const uint64_t now = sw__clock_register();
    struct sw__fmt_frame *frame = lane->top;
    const struct sw__slot *slot = &lane->quick[section->id & lane->quick_mask];
    if (SW__UNLIKELY(slot->parent != lane->node || slot->section != section->id ||
                     frame >= lane->limit || section->phase < lane->phase_gate)) {
        sw__enter_phased(lane, section, now);
        return;
    }
    const uint64_t tail = slot->node;
    lane->top = frame + 1;
    lane->node = sw__node_at(lane, (uint32_t)tail);
    lane->start = now;
    __atomic_store_n(&frame->start, now, __ATOMIC_RELAXED);
    sw__frame_set(frame, tail);
    sw__lane_idle(lane);
}

/* As sw__enter, where changes are told, and memory is read now and then. The lane is busy. */
static SW__NOINLINE void sw__enter_watched(struct sw__lane *lane,
                                           struct sw_section *section)
{
    const uint64_t now = sw__clock_register();
    struct sw__fmt_frame *frame = lane->top;
    const struct sw__slot *slot = &lane->quick[section->id & lane->quick_mask];
    if (SW__UNLIKELY(slot->parent != lane->node || slot->section != section->id ||
                     frame >= lane->limit || now >= lane->resident_due ||
                     !sw__lane_is_watched(lane))) {
        sw__enter_slow(lane, lane->idle, section);
        return;
    }
    if (section->phase < lane->phase_gate) {
        sw__frame_open(lane, slot->node, section, 0, now);
    } else {
        const uint64_t tail = slot->node;
        lane->top = frame + 1;
        lane->node = sw__node_at(lane, (uint32_t)tail);
        lane->start = now;
        __atomic_store_n(&frame->start, now, __ATOMIC_RELAXED);
        sw__frame_set(frame, tail);
    }
    sw__sections_changed();
    sw__lane_idle(lane);
}

/* Not a section of the default domain, or something else is unusual. */
static SW__NOINLINE void sw__enter_other(struct sw__lane *lane, uint32_t before,
                                         struct sw_section *section)
{
    if (sw__gate_is(section, before ^ SW__GATE_WATCHED)) {
        sw__enter_watched(lane, section);
        return;
    }
    sw__lane_give(lane, before);
    sw__enter(section, sw__self->lane[section->domain], sw__enter_slow);
}

SW__HOT void sw_section_enter(sw_section *section)
{
    sw__enter(section, sw__self_lane, sw__enter_other);
}

static void sw__span_put(struct sw__lane *lane, const struct sw__fmt_frame *frame,
                         const struct sw__fmt_node *node, uint64_t now, unsigned flags)
{
    const sw_record_span span = {.head = {.kind = SW_RECORD_SPAN,
                                          .units = 1,
                                          .flags = (uint16_t)(flags | SW_RECORD_INTERVAL),
                                          .id = node->section,
                                          .ticks = frame->start},
                                 .end = now,
                                 .node = node->index,
                                 .depth = (uint16_t)(frame - lane->bottom),
                                 .domain = lane->domain};
    sw__put_record(lane->thread, &span.head);
}

/* Counts a call of `duration` at its node. A call that runs in stretches (`spent`) is counted with the last one. */
static void sw__frame_count(struct sw__lane *lane, struct sw__fmt_node *node,
                            uint64_t duration, unsigned flags, uint64_t *spent)
{
    const uint64_t before = spent ? *spent : 0;
    if (spent) {
        *spent = before + duration;
    }
    if (flags & SW_RECORD_PART) {
        sw__add(&node->inclusive, duration);
        return;
    }
    sw__node_count(node, before + duration);
    sw__add(&node->inclusive, 0 - before); /* Those stretches are in it already. */
    sw__hist_add(lane, node->hist, before + duration);
}

/* Closes `frame`, the newest one, whatever it takes. The lane is busy. */
void sw__frame_end(struct sw__lane *lane, struct sw__fmt_frame *frame, uint64_t now,
                   unsigned flags, uint64_t *spent)
{
    struct sw__fmt_node *node = sw__node_at(lane, frame->node);
    now = now < frame->start ? frame->start : now;
    uint64_t duration = now - frame->start;
    sw__frame_count(lane, node, duration, flags, spent);
    sw__add(&sw__node_at(lane, frame[-1].node)->child, duration);
    if (flags & SW_RECORD_ERROR) {
        sw__add(&node->errors, 1);
    }
    if (frame->flags & SW__FRAME_PHASED) {
        sw__phase_switch(lane, now, frame->phase_before);
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        sw__span_put(lane, frame, node, now, flags);
    }
    if (lane->resident) {
        sw__resident_end(lane, frame, (flags & SW_RECORD_PART) != 0);
    }
    lane->top = frame;
    sw__lane_refresh(lane);
    sw__frame_set(frame, 0);
}

/* Whether a frame was opened by this section: its node may be that of a family. */
static bool sw__frame_is(const struct sw__lane *lane, const struct sw__fmt_frame *frame,
                         struct sw_section *section)
{
    const struct sw__fmt_node *node = sw__node_at(lane, frame->node);
    if (node->section == section->id) {
        return true;
    }
    if (!(node->flags & SW__NODE_FAMILY)) {
        return false;
    }
    return node->section == sw__section_family(section)->id ||
           node->section == sw__section_more(section->domain)->id;
}

/* What a call that does not nest would add to its node's self time: all but what ended inside it. */
static uint64_t sw__frame_self(const struct sw__fmt_frame *frame,
                               const struct sw__fmt_node *node, uint64_t duration)
{
    uint64_t inside =
        frame->flags & SW__FRAME_CHILD ? node->child - frame->child_before : 0;
    uint64_t self = duration > inside ? duration - inside : 0;
    uint64_t most = node->inclusive > node->child ? node->inclusive - node->child : 0;
    return self < most ? self : most;
}

/* Takes a frame out of the middle of the stack: the section does not nest, so it has inclusive time and no
 * part in anybody's self time. */
static void sw__frame_pull(struct sw__lane *lane, struct sw__fmt_frame *frame,
                           uint64_t now, unsigned flags, uint64_t *spent)
{
    struct sw__fmt_node *node = sw__node_at(lane, frame->node);
    now = now < frame->start ? frame->start : now;
    uint64_t duration = now - frame->start;
    sw__frame_count(lane, node, duration, flags, spent);
    sw__add(&node->child, sw__frame_self(frame, node, duration));
    sw__add(&node->unnested, flags & SW_RECORD_PART ? 0 : 1);
    if (flags & SW_RECORD_ERROR) {
        sw__add(&node->errors, 1);
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        sw__span_put(lane, frame, node, now, flags | SW_RECORD_UNNESTED);
    }
    if (lane->resident) {
        sw__resident_end(lane, frame, (flags & SW_RECORD_PART) != 0);
    }
    if (frame->flags & SW__FRAME_PHASED) {
        /* The next one above inherits what this one would have restored; with none, it is restored now. */
        struct sw__fmt_frame *above = frame + 1;
        while (above < lane->top && !(above->flags & SW__FRAME_PHASED)) {
            above++;
        }
        if (above < lane->top) {
            __atomic_store_n(&above->phase_before, frame->phase_before, __ATOMIC_RELAXED);
        } else {
            sw__phase_switch(lane, now, frame->phase_before);
        }
    }
    for (struct sw__fmt_frame *at = frame; at + 1 < lane->top; at++) {
        sw__copy_to_shared(at, at + 1, sizeof(*at));
    }
    lane->top--;
    sw__lane_refresh(lane);
    sw__frame_set(lane->top, 0);
}

/* End, when something is not as usual. */
static SW__COLD void sw__end_slow(struct sw_section *section, uint64_t key,
                                  unsigned flags, uint64_t now, uint64_t *spent)
{
    struct sw__lane *lane = sw__lane_cold(section, true);
    if (!lane) {
        if (sw__lane_missing(section->domain)) {
            sw__total_add(SW__TOTAL_DROPPED, 1);
        }
        return;
    }
    if (lane->overflow) {
        lane->overflow--;
        sw__lane_changed(lane);
        return;
    }
    struct sw__fmt_frame *match = NULL;
    struct sw__fmt_frame *newest = NULL;
    for (struct sw__fmt_frame *at = lane->top; at-- > lane->bottom && !match;) {
        if (sw__frame_is(lane, at, section)) {
            newest = newest ? newest : at;
            match = (at->flags & SW__FRAME_KEYED ? at->key : 0) == key ? at : NULL;
        }
    }
    match = match ? match : newest;
    if (!match) {
        /* Its begin was refused for the same lock. */
        sw__total_add(sw__holding ? SW__TOTAL_REENTRANT : SW__TOTAL_UNMATCHED, 1);
    } else if (match + 1 == lane->top) {
        sw__frame_end(lane, match, now, flags, spent);
    } else {
        sw__frame_pull(lane, match, now, flags, spent);
    }
    sw__lane_changed(lane);
}

void sw__section_later(struct sw__lane *lane, struct sw__fmt_node *node,
                       const sw_section *section, uint64_t begin, uint64_t end)
{
    begin = begin < lane->phase_since ? lane->phase_since : begin;
    sw__frame_open(lane, sw__node_reference(lane, node), section, 0, begin);
    if (end) {
        sw__frame_end(lane, lane->top - 1, end, 0, NULL);
    }
}

unsigned sw_section_depth(void)
{
    const struct sw__lane *lane = sw__self_lane;
    if (SW__UNLIKELY(lane->later.count != 0)) {
        struct sw__lane *told = sw__lane_enter(0);
        if (told) {
            sw__lane_leave(told);
        }
    }
    return (unsigned)(lane->top - lane->bottom) + lane->overflow;
}

void sw_section_end(sw_section *section, uint64_t key, unsigned flags)
{
    sw__end_slow(section, key, flags & SW_RECORD_ERROR, sw__clock_now(), NULL);
}

void sw_section_suspend(sw_section *section, uint64_t key, uint64_t *spent)
{
    sw__end_slow(section, key, SW_RECORD_PART, sw__clock_now(), spent);
}

void sw_section_finish(sw_section *section, uint64_t key, unsigned flags, uint64_t *spent)
{
    sw__end_slow(section, key, flags & SW_RECORD_ERROR, sw__clock_now(), spent);
}

/* The clock was read as a register before anything was known; another clock is read here. */
static SW__COLD void sw__leave_slow(struct sw__lane *lane, uint32_t before,
                                    struct sw_section *section, uint64_t now)
{
    sw__lane_give(lane, before);
    sw__end_slow(section, 0, 0, sw__clock_is_register() ? now : sw__clock_now(), NULL);
}

static SW__NOINLINE void sw__leave_phased(struct sw__lane *lane,
                                          struct sw_section *section, uint64_t now);

/* The chunk was full: writes the record of a section whose statistics are done, and leaves the lane. */
static SW__COLD void sw__leave_event(struct sw__lane *lane, const uint64_t first,
                                     uint64_t start, uint64_t now, uint64_t last)
{
    const uint64_t words[4] = {first, start, now, last};
    sw__put_record(lane->thread, (const sw_record *)(const void *)words);
    sw__lane_idle(lane);
}

/* Closes a section on a lane that is busy, and the right one. `phased`: it may have switched the phase of the step; `watched`:
 * somebody wants to know. */
SW__INLINE void sw__leave_on(struct sw_section *section, struct sw__lane *lane,
                             uint64_t now, bool phased, bool watched)
{
    struct sw__fmt_node *node = lane->node;
    const uint64_t duration = now - lane->start;
    /* The two lowest octaves lie one behind the other, so that both are found through the second: a bucket is
     * (duration >> shift) - 64 from the start of its page. */
    const unsigned bit = 63u ^ (unsigned)__builtin_clzll(duration | SW_HISTOGRAM_SUB);
    const uint64_t page = (uint64_t)node->hist[bit - 5] * 64;
    struct sw__fmt_frame *frame = lane->top - 1;
    /* A key or a phase is for another path. A clock that went backwards gives a huge duration, and no such octave
     * has a page. */
    if (SW__UNLIKELY(node->section != section->id || sw__frame_tail(frame) >> 32 != 0 ||
                     page == 0)) {
        if (!phased) {
            sw__leave_phased(lane, section, now);
            return;
        }
        if (node->section != section->id || frame->flags & SW__FRAME_KEYED || page == 0) {
            sw__leave_slow(lane, lane->idle, section, now);
            return;
        }
        sw__phase_switch(lane, now, frame->phase_before);
    }
    sw__add((uint64_t *)(void *)(lane->base + page) + (duration >> (bit - 6)) -
                SW_HISTOGRAM_SUB,
            1);
    sw__node_count(node, duration);
    struct sw__fmt_node *around = sw__node_at(lane, frame[-1].node);
    lane->node = around;
    sw__add(&around->child, duration);
    lane->start = frame[-1].start;
    lane->top = frame;
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        struct sw__lane *main = sw__self_lane;
        const uint64_t last = ((uint64_t)frame << 27) + lane->span_bits + node->index;
        uint64_t *record = (uint64_t *)(void *)main->cursor;
        if (SW__UNLIKELY(main->cursor >= main->end)) {
            sw__frame_set(frame, 0);
            if (watched) {
                sw__sections_changed();
            }
            sw__leave_event(lane, section->head, now - duration, now, last);
            return;
        }
        /* The line after next is on its way while this one is filled. Word by word: a copy of a local record would
         * wait for its own stores. */
        __builtin_prefetch(record + 64, 1);
        record[0] = section->head;
        record[1] = now - duration;
        record[2] = now;
        record[3] = last;
        sw__chunk_publish(main, (uint8_t *)(record + 4));
    }
    sw__frame_set(frame, 0);
    if (watched) {
        sw__sections_changed();
    }
    sw__lane_idle(lane);
}

/* Closes a section on a lane; `other` as above. */
SW__INLINE void sw__leave(struct sw_section *section, struct sw__lane *lane, uint64_t now,
                          bool phased,
                          void (*other)(struct sw__lane *lane, uint32_t before,
                                        struct sw_section *section, uint64_t now))
{
    const uint32_t generation = sw__lane_seize(lane);
    if (SW__UNLIKELY(!sw__gate_is(section, generation))) {
        other(lane, generation, section, now);
        return;
    }
    sw__leave_on(section, lane, now, phased, false);
}

static SW__NOINLINE void sw__leave_watched(struct sw__lane *lane,
                                           struct sw_section *section, uint64_t now)
{
    if (SW__UNLIKELY(lane->start == lane->resident_open || !sw__lane_is_watched(lane))) {
        sw__leave_slow(lane, lane->idle, section, now);
        return;
    }
    sw__leave_on(section, lane, now, true, true);
}

static SW__NOINLINE void sw__leave_other(struct sw__lane *lane, uint32_t before,
                                         struct sw_section *section, uint64_t now)
{
    if (sw__gate_is(section, before ^ SW__GATE_WATCHED)) {
        sw__leave_watched(lane, section, now);
        return;
    }
    sw__lane_give(lane, before);
    sw__leave(section, sw__self->lane[section->domain], now, true, sw__leave_slow);
}

/* The newest section, with a phase; or something else is unusual. */
static void sw__leave_phased(struct sw__lane *lane, struct sw_section *section,
                             uint64_t now)
{
    sw__lane_give(lane, lane->idle);
    sw__leave(section, lane, now, true, sw__leave_slow);
}

SW__HOT void sw_section_leave(sw_section *section)
{
    struct sw__lane *lane = sw__self_lane;
    /* Where the lane is, is looked up before the clock is read: the clock would wait for it later anyway. */
    __asm__ volatile("" ::"r"(lane));
    sw__leave(section, lane, sw__clock_register(), false, sw__leave_other);
}

void sw__put_record(struct sw__thread *thread, const sw_record *record)
{
    struct sw__lane *main = thread->lane[0];
    size_t size = (size_t)record->units * SW_RECORD_UNIT;
    if ((size_t)(main->end - main->cursor) < size && !sw__thread_new_chunk(thread)) {
        return;
    }
    memcpy(main->cursor, record, size);
    thread->extra_units += record->units - 1u;
    sw__chunk_publish(main, main->cursor + size);
}
