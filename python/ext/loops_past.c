/* Iterations before a loop is chosen: they were steps, too, and are put into the trace when it is. */
#include "loops.h"
#include "training.h"
#include <stdlib.h>

enum { PAST = 8192 }; /* that are remembered */

void core_past_forget(core_loop *loop)
{
    free(loop->past);
    free(loop->phases);
    loop->past = NULL;
    loop->phases = NULL;
    loop->past_count = loop->past_room = loop->phases_count = loop->phases_room = 0;
}

void core_past_begin(core_loop *loop)
{
    loop->base.begun = core_train_phases(loop->base.ticks);
}

/* Keeps the phases of the iteration that was added last: what has come to those that are counted since it began. Where it
 * leads to the first update one step is open meanwhile, which may have begun in it. */
static void phases_add(core_loop *loop)
{
    loop_phases now = {.past = loop->past_count - 1};
    now.begun = core_train_phases(now.ticks);
    loop_phases one = now;
    const bool goes_on = now.begun == loop->base.begun;
    bool any = false;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        /* Time may be moved from one phase to another. */
        const uint64_t had = goes_on ? loop->base.ticks[p] : 0;
        one.ticks[p] = now.ticks[p] > had ? now.ticks[p] - had : 0;
        any |= p != SW_PHASE_OTHER && one.ticks[p];
    }
    loop->base = now;
    const bool known = goes_on || now.begun >= loop->past[now.past].begin;
    if (!any || !now.begun || !known) {
        return;
    }
    if (loop->phases_count == loop->phases_room) {
        const uint32_t room = loop->phases_room ? 2 * loop->phases_room : 32;
        loop_phases *more = realloc(loop->phases, room * sizeof *more);
        if (!more) {
            return;
        }
        loop->phases = more;
        loop->phases_room = room;
    }
    loop->phases[loop->phases_count++] = one;
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
        const bool known = next < loop->phases_count && loop->phases[next].past == i;
        const uint64_t *ticks = known ? loop->phases[next++].ticks : NULL;
        steps += core_train_past(unit, at->epoch, at->begin, at->end, at->wait, ticks);
    }
    core_past_forget(loop);
    return steps;
}
