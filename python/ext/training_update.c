/* Updates: the loop around them and its epochs, loaders that take turns, and where the last step of a loop ends. See
 * training.c. */
#include "brief.h"
#include "quick.h"
#include "training_state.h"

/* Where nobody asks for batches, the passes of the loop around the updates are epochs, if that loop is within another. */
static void pass_noted(train_state *state)
{
    if (state->pass.none || !core_loop_is_inner(&state->place)) {
        return;
    }
    if (state->pass.begun != state->place.begun) {
        state->pass.none = state->pass.count && state->pass.updates < 2;
        state->pass.begun = state->place.begun;
        state->pass.updates = 0;
        state->epoch = state->pass.none ? 0 : state->pass.count++;
        sw_epoch(state->pass.none ? UINT32_MAX : state->epoch);
    }
    state->pass.updates++;
}

/* Another optimizer steps where the iteration with the last update is over: the loop around that one is a part of what this
 * one steps for, such as the turns of a critic, and its passes are no epochs. */
static void pass_judged(train_state *state)
{
    if (state->pass.count && !state->pass.none && !core_loop_is_here(&state->place)) {
        state->pass.none = true;
        state->epoch = 0;
        sw_epoch(UINT32_MAX);
    }
}

/* One optimizer has stepped for a batch of each of two loaders: from now on each of them gives steps. */
static void turns_noted(train_state *state)
{
    const void *both[] = {state->group, state->other_group};
    for (size_t i = 0; i < 2; i++) {
        train_group *group = core_group_find(&state->groups, both[i]);
        if (group) {
            group->turns = true;
        }
    }
}

/* --- Steps that are known to have ended when they are over ---------------------------- */

void core_moment_take(const train_state *state, train_moment *moment)
{
    moment->begin = sw_step_phases(moment->phase_ticks);
    moment->end = sw_now();
    moment->brief = state->brief;
}

static void moment_put(const train_moment *moment)
{
    sw_step_past_phases(SW_STEP_BATCH | (moment->brief ? SW_STEP_BRIEF : 0),
                        moment->begin, moment->end,
                        moment->phase_ticks[SW_PHASE_DATA_WAIT], moment->phase_ticks);
}

void core_turns_split(train_state *state, const PyObject *owner)
{
    train_group *group = core_group_find(&state->groups, state->other_group);
    const bool turns = state->other == owner || (group && group->turns);
    train_moment first = state->other_asked, second;
    state->other_asked.begin = 0;
    if (!turns || !state->open || state->open_rank != TRAIN_LOADER ||
        state->updates <= state->other_updates) {
        return;
    }
    core_moment_take(state, &second);
    if (second.begin != first.begin || second.end <= first.end) {
        return;
    }
    state->open = false;
    sw_step_cancel();
    moment_put(&first);
    if (group && group->passes) {
        core_train_epoch_begin(state, group);
    }
    second.begin = first.end;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        /* Time may be moved from one phase to another. */
        const uint64_t had = first.phase_ticks[p];
        second.phase_ticks[p] -=
            had < second.phase_ticks[p] ? had : second.phase_ticks[p];
    }
    moment_put(&second);
}

bool core_step_done(train_state *state)
{
    train_moment now;
    if (!state->open || !state->done.begin) {
        return false;
    }
    core_moment_take(state, &now);
    if (now.begin != state->done.begin) {
        return false;
    }
    state->open = false;
    sw_step_cancel();
    moment_put(&state->done);
    return true;
}

/* --- Updates ------------------------------------------------------------------------------ */

void core_train_update(PyObject *owner)
{
    train_state *state = core_train_state();
    if (!state) {
        return;
    }
    core_train_validation_end(state);
    sw_update();
    core_optimizer_known = true;
    const bool is_first = !state->updated;
    const unsigned backwards = state->backwards;
    state->by_hand = false;
    state->updated = true;
    state->updates++;
    state->updater = owner;
    if (state->by_call && state->open) {
        core_moment_take(state, &state->done);
    }
    if (state->other && state->other_updater == owner) {
        turns_noted(state);
    }
    state->backwards = 0;
    if (state->awaited && core_loop_is_here(&state->gathered)) {
        return; /* another optimizer for the same gradients */
    }
    state->awaited = false;
    const bool gives_way = state->owner && state->owner != owner;
    if (state->rank <= TRAIN_UPDATE && !state->hosted && gives_way) {
        pass_judged(state);
    } else if (state->rank <= TRAIN_UPDATE && !state->hosted) {
        core_loop_noted(&state->place);
        pass_noted(state);
        const bool gathers = core_loop_hosts_gathering(&state->gathered, backwards);
        if (gathers && is_first) {
            state->awaited = true;
            return;
        }
        (void)(gathers || core_loop_hosts_waiting(&state->place));
    }
    const bool gives = state->rank <= TRAIN_UPDATE ||
                       (state->rank == TRAIN_LOADER && state->open && state->backward);
    if (gives && (state->rank != TRAIN_LOOP || !state->open) &&
        (!state->open || state->open_rank == TRAIN_UPDATE) &&
        (!state->owner || state->owner == owner)) {
        core_train_step_begin(state, TRAIN_UPDATE, owner, NULL, SW_STEP_UPDATE);
    }
}

void core_train_did(train_state *state, unsigned updates, const void *updater,
                    uint64_t at)
{
    state->worked = state->backward = true;
    state->updates += updates;
    state->updater = updater;
    state->backwards = 0;
    state->epochs = state->epoch >= state->epochs ? state->epoch + 1 : state->epochs;
    if (state->by_call) {
        core_moment_take(state, &state->done);
        state->done.end = at ? at : state->done.end;
    }
}

void core_train_updated(PyObject *owner)
{
    if (core_quick_update(owner)) {
        return;
    }
    train_state *state = core_train_briefly();
    if (!state || state->validating || state->other) {
        core_train_update(owner);
        return;
    }
    sw_update();
    core_train_did(state, 1, owner, 0);
}
