/* Counters, marks and records of other kinds. */
#include "record/recorder.h"
#include <string.h>

struct sw__lane *sw__lane_enter(uint16_t domain)
{
    struct sw__lane *lane = sw__lane_here(domain);
    if (!lane) {
        return NULL;
    }
    if (sw__lane_is_busy(lane)) {
        sw__total_add(SW__TOTAL_REENTRANT, 1);
        return NULL;
    }
    sw__lane_busy(lane);
    if (atomic_load_explicit(&sw__session.state, memory_order_relaxed) !=
        SW__SESSION_ON) {
        sw__lane_idle(lane);
        return NULL;
    }
    sw__later_settle(lane);
    return lane;
}

void sw__lane_leave(struct sw__lane *lane)
{
    if (SW__UNLIKELY(lane->later.room != 0)) {
        sw__later_tell(lane);
    }
    sw__lane_idle(lane);
}

/* A record was not made because there is no memory for the thread's lane. */
static void sw__emit_missed(uint16_t domain)
{
    if (sw__lane_missing(domain)) {
        sw__total_add(SW__TOTAL_DROPPED, 1);
    }
}

#define SW__EMIT_SAMPLED 16

/* The time now for one call in 16 of a thread, 0 for the others. */
static uint64_t sw__emit_began(void)
{
    struct sw__thread *self = sw__self;
    return self != &sw__detached && self->emits++ % SW__EMIT_SAMPLED == 0
               ? sw__clock_now()
               : 0;
}

static double sw__as_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static uint64_t sw__as_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

void sw_domain_counter(sw_domain *domain, const char *name, size_t length, double value)
{
    if (!name || !sw__session_ready()) {
        return;
    }
    uint16_t index = domain ? domain->index : 0;
    uint64_t began = sw__emit_began();
    struct sw_section *section =
        sw__name_get(index, name, length, SW_PHASE_INHERIT, SW__NAME_COUNTER);
    if (!SW_GATE(section)) {
        return;
    }
    struct sw__lane *lane = sw__lane_enter(index);
    if (!lane) {
        sw__emit_missed(index);
        return;
    }
    struct sw__fmt_node *node = sw__lane_node(lane, lane->root, section);
    if (node->kind == SW__NODE_COUNTER) {
        sw__add(&node->calls, 1);
        if (value == value) {
            __atomic_store_n(&node->inclusive,
                             sw__as_bits(sw__as_double(node->inclusive) + value),
                             __ATOMIC_RELAXED);
            if (value < sw__as_double(node->minimum)) {
                __atomic_store_n(&node->minimum, sw__as_bits(value), __ATOMIC_RELAXED);
            }
            if (value > sw__as_double(node->maximum)) {
                __atomic_store_n(&node->maximum, sw__as_bits(value), __ATOMIC_RELAXED);
            }
        } else {
            sw__add(&node->errors, 1); /* not a number */
        }
        __atomic_store_n(&node->last, sw__as_bits(value), __ATOMIC_RELAXED);
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        sw_record_counter record = {.head = {.kind = SW_RECORD_COUNTER,
                                             .units = 1,
                                             .id = node->section,
                                             .ticks = sw__clock_now()},
                                    .value = value,
                                    .node = lane->node->index,
                                    .domain = lane->domain};
        sw__put_record(lane->thread, &record.head);
    }
    sw__lane_leave(lane);
    sw__cost_add(SW__TOTAL_EMIT_TICKS, began, SW__EMIT_SAMPLED);
}

void sw_counter(const char *name, double value)
{
    sw_domain_counter(NULL, name, name ? strlen(name) : 0, value);
}

void sw_mark_n(const char *text, size_t length)
{
    uint64_t began = sw__emit_began();
    uint32_t id = sw_name(text, length);
    struct sw__lane *lane = id ? sw__lane_enter(0) : NULL;
    if (!lane) {
        sw__emit_missed(0);
        return;
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        sw_record_mark record = {.head = {.kind = SW_RECORD_MARK,
                                          .units = 1,
                                          .id = id,
                                          .ticks = sw__clock_now()},
                                 .node = lane->node->index,
                                 .domain = lane->domain};
        sw__put_record(lane->thread, &record.head);
    }
    sw__lane_leave(lane);
    sw__cost_add(SW__TOTAL_EMIT_TICKS, began, SW__EMIT_SAMPLED);
}

void sw_mark(const char *text)
{
    sw_mark_n(text, text ? strlen(text) : 0);
}

void sw_record_put(const sw_record *record)
{
    if (!record || record->units == 0 || !sw__session_ready()) {
        return;
    }
    struct sw__lane *lane = sw__lane_enter(0);
    if (!lane) {
        sw__emit_missed(0);
        return;
    }
    if (atomic_load_explicit(&sw__events_on, memory_order_relaxed)) {
        sw__put_record(lane->thread, record);
    }
    sw__lane_leave(lane);
}

void sw_record_put_past(const sw_record *record)
{
    if (!record || record->units == 0 || !sw__session_ready()) {
        return;
    }
    struct sw__lane *lane = sw__lane_enter(0);
    if (!lane) {
        sw__emit_missed(0);
        return;
    }
    if (sw__session.settings.events) {
        lane->thread->wanted = true;
        sw__put_record(lane->thread, record);
    }
    sw__lane_leave(lane);
}

uint64_t sw_now(void)
{
    sw__clock_init();
    return sw__clock_now();
}
