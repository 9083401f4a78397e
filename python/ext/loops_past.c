/* Iterations before a loop is chosen: they were steps, too, and are put into the trace when it is. */
#include "loops.h"
#include "training.h"
#include <stdlib.h>

enum {
    PAST = 8192,      /* that are remembered */
    PAST_PHASES = 512 /* … with their phases */
};

void core_past_forget(core_loop *loop)
{
    free(loop->past);
    free(loop->phases);
    loop->past = NULL;
    loop->phases = NULL;
    loop->past_count = loop->past_room = loop->phases_count = 0;
}

/* Where the gradients of several batches make the first update, one step is open meanwhile, which knows the phases. */
static void phases_add(core_loop *loop)
{
    loop_phases now = {.past = loop->past_count - 1};
    now.begun = loop->phases_count < PAST_PHASES ? core_train_phases(now.ticks) : 0;
    if (now.begun && !loop->phases) {
        loop->phases = malloc(PAST_PHASES * sizeof *loop->phases);
    }
    if (now.begun && loop->phases) {
        loop->phases[loop->phases_count++] = now;
    }
}

/* The phases of one iteration: what was added to those of the step. False: they are not known. `*at`: where to look. */
static bool phases_of(const core_loop *loop, uint32_t past, uint32_t *at,
                      uint64_t ticks[SW_PHASE_COUNT])
{
    if (*at == loop->phases_count || loop->phases[*at].past != past) {
        return false;
    }
    const loop_phases *one = &loop->phases[*at];
    const loop_phases *before = *at && one[-1].begun == one->begun ? one - 1 : NULL;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        /* Time may be moved from one phase to another. */
        const uint64_t had = before ? before->ticks[p] : 0;
        ticks[p] = one->ticks[p] > had ? one->ticks[p] - had : 0;
    }
    ++*at;
    return true;
}

void core_past_add(core_loop *loop, const loop_past *past, uint32_t recording)
{
    if (recording != loop->past_recording) {
        loop->past_recording = recording;
        loop->past_count = loop->phases_count = 0;
    }
    if (!recording || loop->past_count == PAST) {
        return;
    }
    if (loop->past_count == loop->past_room) {
        const uint32_t room = loop->past_room ? 2 * loop->past_room : 32;
        loop_past *more = realloc(loop->past, room * sizeof *more);
        if (!more) {
            return;
        }
        loop->past = more;
        loop->past_room = room;
    }
    loop->past[loop->past_count++] = *past;
    phases_add(loop);
}

uint64_t core_past_put(core_loop *loop, int unit)
{
    const bool mine = loop->past_recording == sw_recording_number();
    uint32_t next = 0;
    uint64_t steps = 0;
    for (uint32_t i = 0; mine && i < loop->past_count; i++) {
        const loop_past *at = &loop->past[i];
        uint64_t ticks[SW_PHASE_COUNT];
        const bool known = phases_of(loop, i, &next, ticks);
        steps += core_train_past(unit, at->epoch, at->begin, at->end, at->wait,
                                 known ? ticks : NULL);
    }
    core_past_forget(loop);
    return steps;
}
