/* Steps without code: which of several sources gives a thread its steps, and what is validation.
 *
 * A loader that is asked for a batch, an optimizer that has stepped, a framework's hook, a loop that was found: each says
 * here what it saw, and the strongest source that there is draws the boundaries. What is not known at the time is decided
 * later: the first batches of a loader may turn out to be those of a validation, and then their step did not happen. */
#include "brief.h"
#include "modules.h"
#include "quick.h"
#include "sampler.h"
#include "section.h"
#include "training_state.h"
#include "user_code.h"
#include <string.h>

CORE_THREAD_SHARED train_state *core_train_self;
CORE_THREAD_LOCAL unsigned train_set_aside; /* how often, see train_aside */

static sw_section *gate;
static sw_section *wait_section;
static sw_section *validation_section;
static PyObject *owner_gone; /* called when an owner is freed */
bool core_optimizer_known;
/* The thread whose training was seen last, to be compared only. */
static struct {
    const train_state *state;
    uint32_t recording;
} trainer;
static PyObject *step_watcher;
static long long step_watched = 1; /* it is told of one step in so many */
static long long step_after;       /* and of none before this one */
static long long step_newest;

/* An activation of its own: it may end out of order. */
#define VALIDATION_KEY ((uint64_t)(uintptr_t)&validation_section)

/* --- The state of a thread ----------------------------------------------------------- */

static void owner_clear(train_state *state)
{
    core_quick_settle();
    core_brief_end();
    state->owner = NULL;
    state->trains = state->by_call = false;
    Py_CLEAR(state->owner_weak);
}

static void state_reset(train_state *state)
{
    owner_clear(state);
    core_groups_clear(&state->groups);
    memset(state, 0, sizeof *state);
}

train_state *core_train_state(void)
{
    if (!SW_GATE(gate) || train_set_aside) {
        return NULL;
    }
    core_quick_settle();
    train_state *state = core_train_self;
    if (!state) {
        state = core_train_self = PyMem_RawCalloc(1, sizeof *state);
        if (!state) {
            return NULL;
        }
    }
    const uint32_t recording = sw_recording_number();
    if (state->recording != recording) {
        state_reset(state);
        state->recording = recording;
    }
    return state;
}

train_state *core_train_briefly(void)
{
    core_quick_settle();
    train_state *state = core_train_self;
    return core_brief && state && core_brief_is_trainer(state) && state->open &&
                   state->rank == state->open_rank && state->rank > TRAIN_UPDATE &&
                   !state->awaited && !state->spared && !train_set_aside &&
                   SW_GATE(gate) && state->recording == sw_recording_number()
               ? state
               : NULL;
}

/* --- Validation ------------------------------------------------------------------------ */

/* Lasts until training goes on. Where sections of the program are open it would end in the middle of them; there only the
 * calls of modules count. */
static void validation_begin(train_state *state)
{
    if (!state->validating) {
        core_brief_apart();
    }
    if (!state->validating && sw_section_depth() == 0) {
        state->validating = true;
        sw_section_begin(validation_section, VALIDATION_KEY);
    }
}

void core_train_validation_end(train_state *state)
{
    if (state->validating) {
        state->validating = false;
        sw_section_end(validation_section, VALIDATION_KEY, 0);
    }
}

/* --- Steps ------------------------------------------------------------------------------- */

static void step_forget(train_state *state)
{
    core_brief_end();
    if (state->open) {
        state->open = false;
        sw_step_cancel();
        sampler_forget_step();
    }
}

void core_train_told(void)
{
    PyObject *watcher = step_watcher;
    const long long number = watcher ? (long long)sw_step_number() : 0;
    if (!watcher) {
        return;
    }
    /* Numbers begin anew with a recording, and other threads have their own: what was said of a number holds no more. */
    step_after = number < step_newest ? 0 : step_after;
    step_newest = number;
    if (number < step_after || number % step_watched != 0 ||
        !core_in_main_interpreter()) {
        return;
    }
    Py_INCREF(watcher);
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *result = PyObject_CallFunction(watcher, "L", number);
    if (!result) {
        core_error_forget();
    }
    Py_XDECREF(result);
    Py_DECREF(watcher);
    PyErr_Restore(type, value, trace);
}

/* Whether the open step was one at all: a loader that nobody trains with gives none. The loader itself may be gone while
 * its batches are still taken. */
static bool step_counts(train_state *state)
{
    return state->worked || state->open_rank != TRAIN_LOADER || state->trains ||
           core_group_kind(&state->groups, state->group) == GROUP_TRAINS;
}

/* A source has proved itself. */
static void rank_raise(train_state *state, int rank)
{
    if (rank > state->rank) {
        if (state->rank == TRAIN_LOOP) {
            sampler_forget_steps(); /* It was another loop than the one that trains. */
        }
        state->rank = rank;
        trainer.state = state;
        trainer.recording = state->recording;
        if (rank >= TRAIN_LOADER) {
            core_loops_overruled();
        }
    }
}

/* Sees that this owner is freed; in other interpreters than the main one its loop says itself that it ends, or not at all. */
static PyObject *gone_watch(PyObject *owner)
{
    return core_in_main_interpreter() ? core_weak_of(owner, owner_gone) : NULL;
}

/* Two loaders that take turns in every epoch count alike. One that comes when others have had more epochs goes on from there: a
 * second stage of the training. So does what a framework trains after it has ended a training. */
void core_train_epoch_begin(train_state *state, train_group *group)
{
    const uint32_t had = group->passes < state->epochs ? state->epochs : state->over;
    if (!group->begun && group->passes <= had) {
        group->before = had + 1 - group->passes;
    }
    group->begun = true;
    const uint32_t epoch = group->before + group->passes - 1;
    if (state->open && epoch != state->epoch) {
        sw_step_end(); /* It is of the epoch before. */
    }
    state->epoch = epoch;
    sw_epoch(epoch);
}

/* Nothing has happened yet in the step that was opened. */
static void step_opened(train_state *state)
{
    state->worked = state->computed = state->backward = state->evaluated = false;
    state->updates = 0;
    state->other = NULL;
}

void core_train_step_begin(train_state *state, int rank, PyObject *owner,
                           const void *group, int unit)
{
    core_train_validation_end(state);
    state->spared = false;
    const bool overtaken =
        state->open && (state->open_rank < rank ||
                        (state->open_rank == TRAIN_UPDATE && rank == TRAIN_LOOP));
    /* The first batch was only asked for, ahead of the loop: what is done with it follows the second question. */
    const bool ahead = state->first && !state->worked && state->owner == owner &&
                       state->open_rank == TRAIN_LOADER;
    const bool updated = state->updates > 0 || (state->by_hand && state->backward);
    if (state->open && (overtaken ? !updated : ahead || !step_counts(state))) {
        step_forget(state);
    }
    const bool anew = owner && state->owner != owner;
    state->first = !owner || state->owner != owner;
    if (state->owner != owner) {
        owner_clear(state);
        state->owner = owner;
        state->owner_weak = owner ? gone_watch(owner) : NULL;
        state->asked_at = rank == TRAIN_LOADER ? core_user_place() : 0;
        state->by_call = rank == TRAIN_LOADER && !core_user_at_for();
    }
    train_group *known = core_group_find(&state->groups, group);
    if (known && known->passes) {
        core_train_epoch_begin(state, known);
    }
    if (core_holders_due()) {
        if (state->open) {
            sw_step_end();
        }
        core_holders_look(false);
    }
    sw_step_next(unit);
    core_brief_next(state, rank, anew);
    state->brief = core_brief;
    core_allocators_step();
    if (!core_brief) {
        core_module_slots_look((int64_t)sw_step_number());
    }
    state->open = true;
    state->open_rank = rank;
    state->group = group;
    state->other_asked.begin = state->done.begin = 0;
    step_opened(state);
    if (rank != TRAIN_LOADER) {
        rank_raise(state, rank);
    }
    core_train_told();
}

/* Whether the loop that `owner` drives may draw a boundary now, as somebody else has a step open. */
static bool may_take_over(train_state *state, int rank, PyObject *owner,
                          const void *group)
{
    if (!state->open || state->open_rank < rank || state->owner == owner ||
        !state->owner) {
        return true;
    }
    if (state->open_rank > rank) {
        return false;
    }
    if (state->group == group && group) {
        return true; /* Another pass over the same, such as next(iter(loader)) for every batch. */
    }
    if (core_group_kind(&state->groups, state->group) != GROUP_TRAINS && !state->worked &&
        core_group_kind(&state->groups, group) == GROUP_TRAINS) {
        return true;
    }
    if (rank == TRAIN_LOADER && state->updates > 0) {
        /* What was taken before is trained: these loaders take turns in one loop. */
        const train_group *known = core_group_find(&state->groups, group);
        if ((known && known->turns) || state->asked_at == core_user_place()) {
            return true;
        }
    }
    /* Asked twice with an update in between, while the one that had the step did not ask: it no longer drives the loop. */
    const bool drives = state->other == owner && state->updates > state->other_updates;
    if (state->other != owner) {
        if (rank == TRAIN_LOADER && state->updates > 0) {
            core_moment_take(state, &state->other_asked);
        }
        state->other = owner;
        state->other_group = group;
        state->other_updates = state->updates;
        state->other_updater = state->updates ? state->updater : NULL;
    }
    return drives;
}

/* The loader of the open step is one to validate with. */
static void group_evaluates(train_state *state)
{
    train_group *group = core_group_find(&state->groups, state->group);
    if (group && state->open_rank == TRAIN_LOADER) {
        group->kind = GROUP_EVALUATES;
        owner_clear(state);
    }
    step_forget(state);
    validation_begin(state);
}

/* The loader of the open step, if its batch was computed with and not trained with, after others were: a validation need
 * neither say eval() nor no_grad(). */
static train_group *untrained(train_state *state, const PyObject *owner)
{
    if (!state->updated || !(state->worked || state->computed) || state->backward ||
        state->trains || !state->open || state->owner != owner ||
        state->open_rank != TRAIN_LOADER) {
        return NULL;
    }
    train_group *group = core_group_find(&state->groups, state->group);
    return group && group->kind == GROUP_UNKNOWN ? group : NULL;
}

/* Whether this thread takes batches that another one trains with, as a thread that loads ahead does: its steps are none, and
 * their numbers are the other's. */
static bool is_idle(train_state *state, int rank, const PyObject *owner)
{
    if (!state->idle && rank == TRAIN_LOADER && state->rank == TRAIN_NONE &&
        state->open && state->owner == owner && !state->worked && trainer.state &&
        trainer.state != state && trainer.recording == state->recording) {
        step_forget(state);
        state->idle = true;
    }
    return state->idle;
}

int core_train_question(train_state *state, int rank, PyObject *owner, PyObject *group,
                        bool evaluating, int unit)
{
    if (state->evaluated && state->owner == owner && !step_counts(state)) {
        group_evaluates(state); /* Nothing was trained with the batch. */
        return 2;
    }
    train_group *spares = untrained(state, owner);
    if (spares) {
        spares->spares = state->spared = true;
        group_evaluates(state);
        return 2;
    }
    const bool goes_on = state->open && state->owner == owner;
    if (!goes_on && rank == TRAIN_LOADER && state->rank == TRAIN_LOADER) {
        core_brief_end(); /* Another loader. */
    }
    if (!goes_on && rank <= TRAIN_LOADER &&
        (evaluating || core_group_kind(&state->groups, group) == GROUP_EVALUATES)) {
        if (state->open && !step_counts(state)) {
            step_forget(state);
        }
        const train_group *known =
            state->open ? NULL : core_group_find(&state->groups, group);
        if (known && known->spares) {
            state->spared = true;
            state->group = group;
        }
        validation_begin(state);
        return 2;
    }
    const bool hosts = rank == TRAIN_LOOP && state->hosted && state->rank == TRAIN_UPDATE;
    if (!hosts && (state->rank > rank || !may_take_over(state, rank, owner, group))) {
        return 0;
    }
    if (is_idle(state, rank, owner)) {
        return 0;
    }
    if (state->other_asked.begin) {
        core_turns_split(state, owner);
    }
    core_train_step_begin(state, rank, owner, group, unit);
    return 1;
}

static void step_left(train_state *state, bool freed)
{
    /* What follows the last update of an optimizer, such as that of another one beside it, is no step of its own. */
    const bool after = freed && state->open_rank == TRAIN_UPDATE;
    if (state->open && state->worked && !after) {
        if (!core_step_done(state)) {
            state->open = false;
            /* The loop has got all that it goes through (islice, zip), though this loader has more. */
            if (freed && core_user_at_for()) {
                sw_step_end();
            } else {
                sw_step_abandon();
            }
        }
    } else {
        step_forget(state);
    }
    core_train_validation_end(state);
}

PyObject *core_train_owner_gone(PyObject *Py_UNUSED(module), PyObject *weak)
{
    core_quick_settle();
    train_state *state = core_train_self;
    if (state && state->owner_weak == weak) {
        owner_clear(state);
        if (SW_GATE(gate) && state->recording == sw_recording_number()) {
            step_left(state, true);
        }
    }
    Py_RETURN_NONE;
}

void core_train_explicit(void)
{
    train_state *state = core_train_state();
    if (state && state->rank != TRAIN_EXPLICIT) {
        core_train_validation_end(state);
        step_forget(state);
        owner_clear(state);
        rank_raise(state, TRAIN_EXPLICIT);
    }
}

void core_train_finish(void)
{
    train_state *state = core_train_self ? core_train_state() : NULL;
    if (state) {
        core_train_validation_end(state);
        if (state->open && state->by_hand && state->backward) {
            state->open = false;
            sw_step_abandon(); /* Nothing says where it ended. */
            sampler_forget_step();
        } else if (!state->worked || state->open_rank <= TRAIN_UPDATE) {
            step_forget(state);
        } else {
            (void)core_step_done(state);
        }
        owner_clear(state);
    }
}

/* Whether nobody but updates could give steps now: there is no loader, or its batches have all been taken and training
 * goes on, as with itertools.cycle or where the next batch is asked for ahead. */
static bool without_loader(const train_state *state)
{
    return state->rank <= TRAIN_UPDATE ||
           (state->rank == TRAIN_LOADER && !state->owner && !state->waiting);
}

/* Whether a forward or a backward begins a step where no loader does. */
static bool work_begins_step(const train_state *state, bool backward)
{
    if (!state->open) {
        return state->rank <= TRAIN_UPDATE || !backward;
    }
    if (state->open_rank != TRAIN_UPDATE || state->owner) {
        return false;
    }
    if (!state->backward) {
        return !backward && !state->by_hand;
    }
    return !core_optimizer_known && (!backward || !state->forwards);
}

/* A backward: what was taken for a validation trains after all, some batches at a time. */
static void spared_end(train_state *state)
{
    train_group *group =
        state->spared ? core_group_find(&state->groups, state->group) : NULL;
    state->spared = false;
    if (group) {
        group->spares = false;
        group->kind = GROUP_TRAINS;
    }
}

void core_train_works(bool backward)
{
    train_state *state = core_train_state();
    if (!state || (state->spared && !backward)) {
        return;
    }
    if (core_brief && backward && state->trains && state->open &&
        state->open_rank == TRAIN_LOADER && !state->validating && !state->spared &&
        !state->awaited) {
        /* All else is known since the first step of this pass. */
        state->worked = state->backward = true;
        state->epochs = state->epoch >= state->epochs ? state->epoch + 1 : state->epochs;
        return;
    }
    core_train_validation_end(state);
    spared_end(state);
    state->forwards |= !backward;
    if (state->awaited && !core_loop_is_here(&state->gathered)) {
        /* That loop was left with the update: what led to it stays one step. */
        state->awaited = false;
        core_train_step_begin(state, TRAIN_UPDATE, NULL, NULL, SW_STEP_UPDATE);
    }
    if (backward && state->rank <= TRAIN_UPDATE && !state->hosted) {
        core_loop_backward(&state->gathered);
        state->backwards++;
    }
    if (without_loader(state) && !state->awaited && work_begins_step(state, backward)) {
        if (state->open && state->backward) {
            state->by_hand = true; /* There is no optimizer that would say so. */
        } else {
            /* The step begins with the forward that the first backward follows; those before were trials. */
            step_forget(state);
        }
        core_train_step_begin(state, TRAIN_UPDATE, NULL, NULL, SW_STEP_UPDATE);
    }
    state->worked = true;
    state->idle = false;
    if (state->open && state->epoch >= state->epochs) {
        state->epochs = state->epoch + 1;
    }
    state->backward |= backward;
    if (state->open && state->open_rank == TRAIN_LOADER && state->rank < TRAIN_LOADER) {
        rank_raise(state, TRAIN_LOADER);
    }
    state->trains |= backward && state->open && state->open_rank == TRAIN_LOADER;
    if (state->open && state->group && backward) {
        train_group *group = core_group_find(&state->groups, state->group);
        if (group) {
            group->kind = GROUP_TRAINS;
        }
    }
}

bool core_train_in_brief(void)
{
    return core_brief_is_trainer(core_train_self);
}

void core_train_computes(void)
{
    train_state *state = core_train_state();
    if (state) {
        state->computed = true;
    }
}

void core_train_evaluates(bool trained)
{
    train_state *state = core_train_state();
    if (!state || state->validating) {
        return;
    }
    if (state->open && !trained &&
        (state->open_rank == TRAIN_LOADER ||
         (state->open_rank == TRAIN_UPDATE && state->updated))) {
        /* A teacher, an encoder whose weights stay: what is trained comes after it. Or a validation before anything was
         * trained, as the next question will tell. */
        state->evaluated = true;
        return;
    }
    if (state->open && !state->worked &&
        (state->open_rank == TRAIN_UPDATE || !step_counts(state))) {
        group_evaluates(state);
    } else if (!state->open || trained) {
        validation_begin(state);
    }
}

bool core_train_may_host(void)
{
    const train_state *state = core_train_state();
    return state && state->rank <= TRAIN_UPDATE;
}

bool core_train_host(void)
{
    const bool may = core_train_may_host();
    if (may && core_train_self->awaited) {
        /* One step so far, from the first batch to the update: each of them was one. */
        owner_clear(core_train_self);
        step_forget(core_train_self);
        core_train_self->awaited = false;
    }
    if (may) {
        core_train_self->hosted = true;
    }
    return may;
}

void core_train_resumes(void)
{
    train_state *state = core_train_state();
    if (state) {
        core_train_validation_end(state);
    }
}

bool core_train_past(int unit, uint32_t epoch, uint64_t begin, uint64_t end,
                     uint64_t wait, const uint64_t *phase_ticks)
{
    const train_state *state = core_train_state();
    if (!state || state->open ||
        state->rank > (state->hosted ? TRAIN_UPDATE : TRAIN_LOOP)) {
        return false;
    }
    if (epoch != UINT32_MAX) {
        sw_epoch(epoch);
    }
    sw_step_past_phases(unit, begin, end, wait, phase_ticks);
    return true;
}

uint64_t core_train_phases(uint64_t *phase_ticks)
{
    const train_state *state = core_train_state();
    if (state && !state->open && state->rank <= TRAIN_LOOP) {
        const uint64_t begun = sw_step_phases(phase_ticks);
        if (!begun) {
            sw_phases_watch();
        }
        return begun ? begun : sw_step_phases(phase_ticks);
    }
    const bool may_be_several = state && state->open &&
                                state->open_rank == TRAIN_UPDATE &&
                                (state->awaited || !state->updated);
    return may_be_several ? sw_step_phases(phase_ticks) : 0;
}

bool core_train_aside(void)
{
    return train_set_aside > 0;
}

bool core_train_by_framework(void)
{
    const train_state *state = core_train_state();
    return state && state->rank == TRAIN_FRAMEWORK;
}

bool core_train_wait_begin(void)
{
    train_state *state = core_train_state();
    return !state || state->waiting++ == 0;
}

bool core_train_wait_end(void)
{
    train_state *state = core_train_state();
    if (!state || state->waiting == 0) {
        return true;
    }
    return --state->waiting == 0;
}

void core_train_set_aside(bool begin)
{
    if (begin) {
        train_set_aside++;
    } else {
        train_set_aside -= train_set_aside > 0;
    }
}

void core_train_release(const PyObject *owner)
{
    train_state *state = core_train_state();
    if (state && state->owner == owner) {
        owner_clear(state);
        step_left(state, false);
        state->over = state->epochs;
        if (state->rank <= TRAIN_FRAMEWORK) {
            state->rank = TRAIN_NONE;
        }
    }
}

void core_train_watch(PyObject *watcher, long long every, long long after)
{
    step_watched = every > 0 ? every : 1;
    step_after = after;
    PyObject *before = step_watcher;
    step_watcher = watcher == Py_None ? NULL : watcher;
    Py_XINCREF(step_watcher);
    Py_XDECREF(before);
}

void core_train_prepare(PyObject *gone)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    wait_section = sw_section_get_n("data_wait", 9, SW_PHASE_DATA_WAIT);
    validation_section = sw_section_get_n("validation", 10, SW_PHASE_VALIDATION);
    if (gone) {
        owner_gone = gone;
    }
}

/* --- Waiting for batches ------------------------------------------------------------ */

int core_train_ask(int source, PyObject *owner, PyObject *group, bool evaluating)
{
    train_state *state = core_train_state();
    if (!state || state->waiting++ > 0) {
        return 0;
    }
    if (core_updates_by_hand) {
        core_update_claim();
    }
    const int answer =
        core_train_question(state, source, owner, group, evaluating, SW_STEP_BATCH);
    sw_begin(wait_section);
    return answer;
}

/* Whether the open step is not as most are. */
static bool is_unusual(const train_state *state)
{
    return !state->open || state->open_rank != state->rank || state->validating ||
           state->evaluated || state->spared || state->awaited || state->idle ||
           state->other || train_set_aside || core_updates_by_hand;
}

sw_later *core_train_later(train_state *state)
{
    const bool usual = core_brief && state->brief && !state->waiting &&
                       ((state->rank == TRAIN_LOADER && state->trains) ||
                        state->rank == TRAIN_FRAMEWORK);
    const int unit = SW_STEP_BATCH;
    return usual && !is_unusual(state) ? sw_later_open(wait_section, unit) : NULL;
}

void core_train_nested(void)
{
    train_state *state = core_train_state();
    if (state) {
        state->waiting++;
    }
}

void core_train_waited(void)
{
    sw_end(wait_section);
}

void core_train_settle(train_state *state, const core_quick *quick)
{
    if (quick->asked) {
        step_opened(state);
        state->first = false;
        state->brief = true;
        state->done.begin = 0;
        state->briefly += quick->asked;
        core_brief_went_on(quick->asked);
    }
    if (quick->worked) {
        core_train_works(true);
    }
    if (quick->updates) {
        core_train_did(state, quick->updates, quick->updater, quick->updated);
    }
    state->waiting += quick->waiting;
}

uint32_t core_train_untold(void)
{
    const long long next = step_watcher ? (long long)sw_step_number() + 1 : 0;
    if (!step_watcher) {
        return UINT32_MAX;
    }
    long long told = next > step_after ? next : step_after;
    told += (step_watched - told % step_watched) % step_watched;
    return told - next < UINT32_MAX ? (uint32_t)(told - next) : UINT32_MAX;
}

/* Every so many steps in brief allocators and what holds memory are looked at, if that is due. */
enum { BRIEF_LOOKS = 8 };

bool core_train_ask_briefly(const PyObject *owner)
{
    core_quick_settle();
    train_state *state = core_train_self;
    if (!state || !SW_GATE(gate) || state->owner != owner ||
        state->recording != sw_recording_number()) {
        return false;
    }
    const bool usual = state->trains && state->worked && state->rank == TRAIN_LOADER;
    if (!usual || state->waiting || is_unusual(state) || !core_brief_goes_on(state)) {
        return false;
    }
    if (++state->briefly % BRIEF_LOOKS == 0) {
        if (core_holders_due()) {
            sw_step_end();
            core_holders_look(false);
        }
        core_allocators_step();
    }
    sw_step_next(SW_STEP_BATCH | SW_STEP_BRIEF);
    step_opened(state);
    state->first = false;
    state->brief = true;
    if (state->by_call) {
        state->done.begin = 0;
    }
    state->waiting = 1;
    core_train_told();
    sw_begin(wait_section);
    return true;
}

bool core_train_goes_on(const PyObject *owner)
{
    const train_state *state = core_train_state();
    return state && state->open && state->owner == owner;
}

/* Closes the wait. Returns the state, NULL when it was one within another or nothing is recorded. */
static train_state *wait_over(bool failed)
{
    train_state *state = core_train_state();
    if (!state || state->waiting == 0 || --state->waiting > 0) {
        return NULL;
    }
    if (failed) {
        sw_end_error(wait_section);
    } else {
        sw_end(wait_section);
    }
    return state;
}

void core_train_got(void)
{
    wait_over(false);
}

void core_train_over(PyObject *owner, bool failed)
{
    train_state *state = wait_over(failed);
    if (state) {
        state->spared = false;
    }
    if (state && state->owner == owner) {
        owner_clear(state);
        step_forget(state);
    }
}

bool core_train_waits(void)
{
    const train_state *state = core_train_state();
    return state && state->waiting > 0;
}
