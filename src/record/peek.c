/* Looking at another thread: its open section, phase and step, for samplers. */
#include "record/recorder.h"
#include <string.h>

/* The lane is its thread's own and changes meanwhile: each field is read once, and a mixture of two moments is as good
 * as either. */
__attribute__((no_sanitize("thread"))) static void
sw__peek_lane(struct sw__lane *lane, bool sampled, sw_peek *out)
{
    const struct sw__fmt_node *node = __atomic_load_n(&lane->node, __ATOMIC_RELAXED);
    out->node = node->index;
    out->section = node->section;
    const uint64_t open =
        atomic_load_explicit(&lane->file->step_open, memory_order_relaxed);
    if (open) {
        const uint8_t phase = __atomic_load_n(&lane->phase, __ATOMIC_RELAXED);
        out->phase = phase < SW_PHASE_COUNT ? phase : SW_PHASE_OTHER;
        out->step = (int64_t)open - 1;
        if (sampled) {
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
