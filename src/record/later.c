/* Steps that are noted and told later: see <stepwatch/later.h>. */
#include "record/recorder.h"
#include <string.h>

static_assert(sizeof(struct sw__fmt_note) == sizeof(sw_later_note) &&
                  offsetof(struct sw__fmt_note, samples) ==
                      offsetof(sw_later_note, samples),
              "a note in the trace is the one of the public header");

/* What every note has in common, and what the open step has so far, for who reads the trace. */
void sw__later_tell(struct sw__lane *lane)
{
    struct sw__fmt_later *notes = lane->notes;
    notes->base = lane->step_number;
    notes->wait = lane->node == lane->later_parent ? lane->later_node : 0;
    notes->epoch = lane->epoch ? lane->epoch - 1
                               : atomic_load_explicit(&sw__domain_at(lane->domain)->epoch,
                                                      memory_order_relaxed);
    notes->unit = lane->step_unit;
    notes->flags = (uint16_t)(SW_STEP_BRIEF | (lane->step_flags & SW_STEP_EVENTS));
    sw__copy_to_shared(notes->phase_ticks, lane->phase_ticks, sizeof(notes->phase_ticks));
}

/* Finds the node of the waits: under what is open now, which does not change while steps are noted. */
static struct sw__fmt_node *sw__later_node(struct sw__lane *lane)
{
    struct sw__fmt_node *node = sw__lane_node(lane, lane->node, lane->later_wait);
    lane->later_parent = lane->node;
    lane->later_node = sw__node_reference(lane, node);
    return node;
}

void sw__later_flush(struct sw__lane *lane)
{
    sw_later *later = &lane->later;
    struct sw__fmt_node *node = sw__later_node(lane);
    for (uint32_t i = 0; i < later->count; i++) {
        const sw_later_note *note = &later->note[i];
        if (note->begin) {
            lane->thread->usage_steps++; /* Others are counted where that is read. */
            (void)sw__step_end_at(lane, 0, note->begin, true);
            sw__step_open_at(lane, lane->step_unit | SW_STEP_BRIEF, lane->phase_since);
        }
        if (note->updates) {
            atomic_fetch_add_explicit(&lane->file->updates, note->updates,
                                      memory_order_relaxed);
        }
        atomic_fetch_add_explicit(&lane->samples,
                                  __atomic_load_n(&note->samples, __ATOMIC_RELAXED),
                                  memory_order_relaxed);
        if (note->wait_begin) {
            sw__section_later(lane, node, lane->later_wait, note->wait_begin,
                              note->wait_end);
        }
    }
    later->count = 0;
    atomic_store_explicit(&lane->notes->count, 0, memory_order_release);
    sw__later_tell(lane);
}

void sw__later_end(struct sw__lane *lane)
{
    lane->later.count = lane->later.room = 0;
    lane->later_wait = NULL;
    lane->later_parent = NULL;
    if (lane->notes) {
        atomic_store_explicit(&lane->notes->count, 0, memory_order_release);
    }
}

static void sw__later_stop(struct sw__lane *lane)
{
    sw__later_end(lane);
    if (!lane->overflow) {
        lane->idle = SW__GATE_OF(lane->idle) | sw__lane_slow(lane);
    }
}

/* Whether all that is to be known of such steps can be noted. */
static bool sw__later_may(const struct sw__lane *lane)
{
    const struct sw__settings *settings = &sw__session.settings;
    return lane->notes && lane->step_flags & SW_STEP_BRIEF &&
           atomic_load_explicit(&lane->file->step_open, memory_order_relaxed) != 0 &&
           lane->domain == 0 && !lane->overflow && lane->top < lane->limit &&
           !sw__lane_is_watched(lane) && settings->schedule.form == SW_SCHEDULE_ALWAYS;
}

sw_later *sw_later_open(sw_section *wait, int unit)
{
    struct sw__lane *lane = wait && SW_GATE(wait) ? sw__step_lane(NULL) : NULL;
    if (!lane) {
        return NULL;
    }
    sw_later *later = NULL;
    sw__later_stop(lane);
    if (sw__later_may(lane) && wait->domain == 0 &&
        (unit & ~SW_STEP_BRIEF) == lane->step_unit) {
        const uint64_t now = sw__clock_now();
        struct sw__fmt_later *notes = lane->notes;
        later = &lane->later;
        lane->later_wait = wait;
        (void)sw__later_node(lane);
        *later = (sw_later){
            .busy = (uint32_t *)(void *)&lane->generation,
            .gate = (const uint32_t *)(const void *)wait,
            .open = SW__GATE_OF(lane->idle),
            .room = notes->room,
            .due = sw__usage_due(lane->thread, now - lane->step_start, now),
            .note = (sw_later_note *)(void *)(notes + 1),
            .shown = (uint32_t *)(void *)&notes->count,
        };
        lane->idle |= SW__GATE_SLOW;
        later->idle = lane->idle;
    }
    sw__lane_leave(lane);
    return later;
}

void sw_later_close(void)
{
    struct sw__lane *lane = sw__self_lane->later.room ? sw__step_lane(NULL) : NULL;
    if (lane) {
        sw__later_stop(lane);
        sw__lane_leave(lane);
    }
}
