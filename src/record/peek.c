/* Looking at another thread: its open section, phase and step, for samplers. */
#include "record/recorder.h"
#include <string.h>

/* What another thread's step is in: what a step that is watched in brief spends in no phase may be of any. */
__attribute__((no_sanitize("thread"))) static uint8_t
sw__peek_phase(const struct sw__lane *lane)
{
    const uint8_t phase = __atomic_load_n(&lane->phase, __ATOMIC_RELAXED);
    if (phase < SW_PHASE_COUNT && phase != SW_PHASE_OTHER) {
        return phase;
    }
    return __atomic_load_n(&lane->step_flags, __ATOMIC_RELAXED) & SW_STEP_BRIEF
               ? SW_PHASE_BRIEF
               : SW_PHASE_OTHER;
}

/* What has been noted of another thread's steps (later.c). `last`: the newest note; NULL: none. */
struct sw__peeked_notes {
    sw_later_note *last;
    uint32_t steps;   /* that have begun */
    uint64_t begin;   /* of the last of these; 0: none has */
    uint64_t since;   /* when the last one began, or has waited */
    uint64_t waiting; /* since when it waits; 0: it does not */
    uint32_t node;    /* a reference, where it waits */
};

__attribute__((no_sanitize("thread"))) static struct sw__peeked_notes
sw__peek_notes(const struct sw__lane *lane)
{
    struct sw__peeked_notes peeked = {0};
    const uint32_t count = __atomic_load_n(&lane->later.count, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; i < count && i < SW__LATER_ROOM; i++) {
        sw_later_note *note = (sw_later_note *)(void *)(lane->notes + 1) + i;
        const uint64_t begin = __atomic_load_n(&note->begin, __ATOMIC_RELAXED);
        const uint64_t end = __atomic_load_n(&note->wait_end, __ATOMIC_RELAXED);
        peeked.last = note;
        peeked.steps += begin != 0;
        peeked.begin = begin ? begin : peeked.begin;
        peeked.since = end ? end : peeked.begin;
        peeked.waiting = end ? 0 : __atomic_load_n(&note->wait_begin, __ATOMIC_RELAXED);
    }
    peeked.node =
        peeked.waiting ? __atomic_load_n(&lane->later_node, __ATOMIC_RELAXED) : 0;
    return peeked;
}

/* The lane is its thread's own and changes meanwhile: each field is read once, and a mixture of two moments is as good
 * as either. */
__attribute__((no_sanitize("thread"))) static void
sw__peek_lane(struct sw__lane *lane, bool sampled, sw_peek *out)
{
    const struct sw__peeked_notes notes = sw__peek_notes(lane);
    const struct sw__fmt_node *node =
        notes.node ? sw__node_at(lane, notes.node)
                   : __atomic_load_n(&lane->node, __ATOMIC_RELAXED);
    out->node = node->index;
    out->section = node->section;
    const uint64_t open =
        atomic_load_explicit(&lane->file->step_open, memory_order_relaxed);
    if (open) {
        out->phase = notes.waiting ? SW_PHASE_DATA_WAIT : sw__peek_phase(lane);
        out->step = (int64_t)(open - 1 + notes.steps);
        if (sampled && notes.last) {
            __atomic_fetch_add(&notes.last->samples, 1, __ATOMIC_RELAXED);
        } else if (sampled) {
            atomic_fetch_add_explicit(&lane->samples, 1, memory_order_relaxed);
        }
    }
}

int sw_peek_thread(uint32_t tid, bool sampled, sw_peek *out)
{
    struct sw__session *session = &sw__session;
    int result = SW_ENOTFOUND;
    *out = (sw_peek){.thread = UINT32_MAX, .phase = SW_PHASE_INHERIT, .step = -1};
    if (sw__holding || !sw_is_recording()) {
        return result;
    }
    /* Lanes are freed under this lock, and the memory they point to is there as long as the session. */
    sw__lock(&session->lock);
    if (atomic_load(&session->state) == SW__SESSION_ON) {
        for (struct sw__thread *at = session->threads; at; at = at->next) {
            if (!at->dead && at->slot->tid == tid) {
                out->thread = at->slot->index;
                if (at->lane[0] != &sw__no_lane) {
                    sw__peek_lane(at->lane[0], sampled, out);
                }
                result = SW_OK;
                break;
            }
        }
    }
    sw__unlock(&session->lock);
    return result;
}

/* Steps, then age: the older ones are further down in the list. session.lock held. */
static struct sw__thread *sw__training_thread(void)
{
    struct sw__thread *best = NULL;
    uint64_t best_steps = 0;
    for (struct sw__thread *at = sw__session.threads; at; at = at->next) {
        const struct sw__lane *lane = at->lane[0];
        if (at->dead || at->slot->tid == 0) {
            continue;
        }
        uint64_t steps = atomic_load_explicit(&at->slot->steps, memory_order_relaxed);
        if (lane != &sw__no_lane &&
            atomic_load_explicit(&lane->file->step_open, memory_order_relaxed)) {
            steps += UINT64_MAX / 2;
        }
        if (!best || steps >= best_steps) {
            best = at;
            best_steps = steps;
        }
    }
    return best;
}

/* As sw__peek_lane: what is read may be of two moments. Frames lie in the hot file, whose memory stays. */
__attribute__((no_sanitize("thread"))) static void
sw__peek_stack(const struct sw__lane *lane, struct sw__peeked *out)
{
    const struct sw__fmt_frame *bottom = __atomic_load_n(&lane->bottom, __ATOMIC_RELAXED);
    const struct sw__peeked_notes notes = sw__peek_notes(lane);
    const uint64_t open =
        atomic_load_explicit(&lane->file->step_open, memory_order_relaxed);
    if (open) {
        out->look.step = open - 1 + notes.steps;
        out->look.phase = notes.waiting ? SW_PHASE_DATA_WAIT : sw__peek_phase(lane);
        out->look.step_start = notes.begin ? notes.begin
                                           : atomic_load_explicit(&lane->file->step_begin,
                                                                  memory_order_relaxed);
        out->look.phase_start =
            notes.waiting ? notes.waiting
            : notes.since ? notes.since
                          : __atomic_load_n(&lane->phase_since, __ATOMIC_RELAXED);
    }
    uint8_t depth = 0;
    for (; depth < SW_LOOK_FRAMES; depth++) {
        const struct sw__fmt_frame *frame = &bottom[depth];
        const uint32_t reference = __atomic_load_n(&frame->node, __ATOMIC_RELAXED);
        if (!reference) {
            break;
        }
        const struct sw__fmt_node *node = sw__node_at(lane, reference);
        out->frames[depth] =
            (sw_look_frame){.node = node->index,
                            .section = node->section,
                            .start = __atomic_load_n(&frame->start, __ATOMIC_RELAXED)};
    }
    if (notes.node && depth < SW_LOOK_FRAMES) {
        const struct sw__fmt_node *node = sw__node_at(lane, notes.node);
        out->frames[depth++] = (sw_look_frame){
            .node = node->index, .section = node->section, .start = notes.waiting};
    }
    out->look.depth = depth;
}

void sw__peek_training(struct sw__peeked *out)
{
    struct sw__session *session = &sw__session;
    out->tid = 0;
    out->look = (sw_record_look){
        .step = UINT64_MAX, .thread = UINT32_MAX, .phase = SW_PHASE_INHERIT};
    if (sw__holding || !sw_is_recording()) {
        return;
    }
    sw__lock(&session->lock);
    const struct sw__thread *thread =
        atomic_load(&session->state) == SW__SESSION_ON ? sw__training_thread() : NULL;
    if (thread) {
        out->tid = thread->slot->tid;
        out->look.thread = thread->slot->index;
        if (thread->lane[0] != &sw__no_lane) {
            sw__peek_stack(thread->lane[0], out);
        }
    }
    sw__unlock(&session->lock);
}

size_t sw_name_text(uint32_t id, char *out, size_t size)
{
    const struct sw_section *section = id ? sw__section_by_id(id) : NULL;
    const size_t length = section ? section->length : 0;
    if (size > 0) {
        const size_t kept = length < size ? length : size - 1;
        if (kept > 0) {
            memcpy(out, section->text, kept);
        }
        out[kept] = '\0';
    }
    return length;
}
