/* Steps without code: which of several sources gives a thread its steps, and what is validation.
 *
 * A loader that is asked for a batch, an optimizer that has stepped, a framework's hook, a loop that was found: each says
 * here what it saw, and the strongest source that there is draws the boundaries. What is not known at the time is decided
 * later: the first batches of a loader may turn out to be those of a validation, and then their step did not happen. */
#include "training.h"
#include "loops.h"
#include "modules.h"
#include "sampler.h"
#include "section.h"
#include "training_groups.h"
#include "user_code.h"
#include <string.h>

/* What a thread knows of its training. Invariants: `owner` and `group` mean something only while a pass goes on; `open`
 * is true while the recorder has a step open that somebody began here. */
typedef struct train_state {
    uint32_t recording;
    int rank;      /* source that has proved itself */
    int open_rank; /* of the step that is open */
    bool open;
    bool worked;   /* something was trained in the open step */
    bool backward; /* … up to a backward */
    bool trains;   /* the owner's batches are trained with */
    bool first;    /* the open step is the first of its owner's */
    bool forwards; /* modules are called, not tensors alone computed with */
    bool by_hand;  /* nobody updates but the program's own code */
    bool
        hosted; /* a loop in whose iterations updates are called goes before the updates */
    bool
        awaited; /* such a loop was just found: its iterations so far will be told as steps when it goes on */
    bool updated; /* an optimizer has stepped on this thread */
    bool
        evaluated; /* in the open step something ran that may validate, or be a teacher of what is trained next */
    bool validating;
    bool
        spared; /* what is computed with gradients validates, too: nobody trains with its batches */
    unsigned waiting;
    unsigned updates;  /* since the owner last asked */
    const void *owner; /* whose next question ends the open step */
    PyObject *owner_weak;
    const void *group;
    uint64_t asked_at; /* where the owner asked first, see core_user_place */
    const void *other; /* who else asked since */
    const void *other_group;
    unsigned other_updates;    /* `updates` at that time */
    const void *other_updater; /* whose the last of them was */
    const void *updater;       /* of the last update */
    loop_place place;          /* of the last update */
    loop_place gathered;       /* of the last backward */
    unsigned backwards;        /* since the last update */
    train_groups groups;
    uint32_t epoch, epochs; /* of the open step; how many have been trained */
    struct {
        uint64_t begun;   /* the pass */
        unsigned updates; /* in it */
        uint32_t count;   /* of passes */
        bool none;        /* they are parts of steps: each has one update */
    } pass;               /* over the loop around the updates */
} train_state;

CORE_THREAD_LOCAL train_state *train_self;
CORE_THREAD_LOCAL unsigned train_set_aside; /* how often, see train_aside */

static sw_section *gate;
static sw_section *wait_section;
static sw_section *validation_section;
static PyObject *owner_gone; /* called when an owner is freed */
static bool optimizer_known; /* one was built, or has stepped, in this process */
static PyObject *step_watcher;
static long long step_watched = 1; /* it is told of one step in so many */

/* An activation of its own: it may end out of order. */
#define VALIDATION_KEY ((uint64_t)(uintptr_t)&validation_section)

/* --- The state of a thread ----------------------------------------------------------- */

static void owner_clear(train_state *state)
{
    state->owner = NULL;
    state->trains = false;
    Py_CLEAR(state->owner_weak);
}

static void state_reset(train_state *state)
{
    owner_clear(state);
    core_groups_clear(&state->groups);
    memset(state, 0, sizeof *state);
}

/* The state of this thread in this recording; NULL when nothing is recorded. */
static train_state *state_now(void)
{
    if (!SW_GATE(gate) || train_set_aside) {
        return NULL;
    }
    train_state *state = train_self;
    if (!state) {
        state = train_self = PyMem_RawCalloc(1, sizeof *state);
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

/* --- Validation ------------------------------------------------------------------------ */

/* Lasts until training goes on. Where sections of the program are open it would end in the middle of them; there only the
 * calls of modules count. */
static void validation_begin(train_state *state)
{
    if (!state->validating && sw_section_depth() == 0) {
        state->validating = true;
        sw_section_begin(validation_section, VALIDATION_KEY);
    }
}

static void validation_end(train_state *state)
{
    if (state->validating) {
        state->validating = false;
        sw_section_end(validation_section, VALIDATION_KEY, 0);
    }
}

/* --- Steps ------------------------------------------------------------------------------- */

static void step_forget(train_state *state)
{
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
    if (!watcher || number % step_watched != 0 || !core_in_main_interpreter()) {
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
        if (rank == TRAIN_LOADER) {
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
 * second stage of the training. */
static void epoch_begin(train_state *state, train_group *group)
{
    if (!group->begun && group->passes < state->epochs) {
        group->before = state->epochs + 1 - group->passes;
    }
    group->begun = true;
    const uint32_t epoch = group->before + group->passes - 1;
    if (state->open && epoch != state->epoch) {
        sw_step_end(); /* It is of the epoch before. */
    }
    state->epoch = epoch;
    sw_epoch(epoch);
}

/* Ends the open step, if there is one, and begins the next. */
static void step_begin(train_state *state, int rank, PyObject *owner, const void *group,
                       int unit)
{
    validation_end(state);
    state->spared = false;
    const bool overtaken =
        state->open && (state->open_rank < rank ||
                        (state->open_rank == TRAIN_UPDATE && rank == TRAIN_LOOP));
    /* The first batch was only asked for, ahead of the loop: what is done with it follows the second question. */
    const bool ahead = state->first && !state->worked && state->owner == owner &&
                       state->open_rank == TRAIN_LOADER;
    if (state->open && (overtaken ? state->updates == 0 : ahead || !step_counts(state))) {
        step_forget(state);
    }
    state->first = !owner || state->owner != owner;
    if (state->owner != owner) {
        owner_clear(state);
        state->owner = owner;
        state->owner_weak = owner ? gone_watch(owner) : NULL;
        state->asked_at = rank == TRAIN_LOADER ? core_user_place() : 0;
    }
    train_group *known = core_group_find(&state->groups, group);
    if (known && known->passes) {
        epoch_begin(state, known);
    }
    if (core_holders_due()) {
        if (state->open) {
            sw_step_end();
        }
        core_holders_look(false);
    }
    sw_step_next(unit);
    core_allocators_step();
    core_module_slots_look((int64_t)sw_step_number());
    state->open = true;
    state->open_rank = rank;
    state->group = group;
    state->worked = state->backward = state->evaluated = false;
    state->updates = 0;
    state->other = NULL;
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
    if (!state->updated || !state->worked || state->backward || state->trains ||
        !state->open || state->owner != owner || state->open_rank != TRAIN_LOADER) {
        return NULL;
    }
    train_group *group = core_group_find(&state->groups, state->group);
    return group && group->kind == GROUP_UNKNOWN ? group : NULL;
}

/* What a question of `owner` is: 1 a step began, 0 it is part of another's step, 2 of a validation. */
static int question(train_state *state, int rank, PyObject *owner, PyObject *group,
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
    step_begin(state, rank, owner, group, unit);
    return 1;
}

static void step_left(train_state *state, bool freed)
{
    /* What follows the last update of an optimizer, such as that of another one beside it, is no step of its own. */
    const bool after = freed && state->open_rank == TRAIN_UPDATE;
    if (state->open && state->worked && !after) {
        state->open = false;
        sw_step_abandon();
    } else {
        step_forget(state);
    }
    validation_end(state);
}

/* The owner of a pass is freed: the loop was left. Called with the dead weak reference. */
static PyObject *train_owner_gone(PyObject *Py_UNUSED(module), PyObject *weak)
{
    train_state *state = train_self;
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
    train_state *state = state_now();
    if (state && state->rank != TRAIN_EXPLICIT) {
        validation_end(state);
        step_forget(state);
        owner_clear(state);
        rank_raise(state, TRAIN_EXPLICIT);
    }
}

void core_train_finish(void)
{
    train_state *state = train_self ? state_now() : NULL;
    if (state) {
        validation_end(state);
        if (state->open && state->by_hand && state->backward) {
            state->open = false;
            sw_step_abandon(); /* Nothing says where it ended. */
            sampler_forget_step();
        } else if (!state->worked || state->open_rank <= TRAIN_UPDATE) {
            step_forget(state);
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
    return !optimizer_known && (!backward || !state->forwards);
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
    train_state *state = state_now();
    if (!state || (state->spared && !backward)) {
        return;
    }
    validation_end(state);
    spared_end(state);
    state->forwards |= !backward;
    if (state->awaited && !core_loop_is_here(&state->gathered)) {
        /* That loop was left with the update: what led to it stays one step. */
        state->awaited = false;
        step_begin(state, TRAIN_UPDATE, NULL, NULL, SW_STEP_UPDATE);
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
        step_begin(state, TRAIN_UPDATE, NULL, NULL, SW_STEP_UPDATE);
    }
    state->worked = true;
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

void core_train_evaluates(bool trained)
{
    train_state *state = state_now();
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
    const train_state *state = state_now();
    return state && state->rank <= TRAIN_UPDATE;
}

bool core_train_host(void)
{
    const bool may = core_train_may_host();
    if (may && train_self->awaited) {
        /* One step so far, from the first batch to the update: each of them was one. */
        owner_clear(train_self);
        step_forget(train_self);
        train_self->awaited = false;
    }
    if (may) {
        train_self->hosted = true;
    }
    return may;
}

void core_train_resumes(void)
{
    train_state *state = state_now();
    if (state) {
        validation_end(state);
    }
}

bool core_train_past(int unit, uint32_t epoch, uint64_t begin, uint64_t end,
                     uint64_t wait, const uint64_t *phase_ticks)
{
    const train_state *state = state_now();
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
    const train_state *state = state_now();
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
    const train_state *state = state_now();
    return state && state->rank == TRAIN_FRAMEWORK;
}

bool core_train_wait_begin(void)
{
    train_state *state = state_now();
    return !state || state->waiting++ == 0;
}

bool core_train_wait_end(void)
{
    train_state *state = state_now();
    if (!state || state->waiting == 0) {
        return true;
    }
    return --state->waiting == 0;
}

/* --- What Python calls -------------------------------------------------------------------- */

static int int_of(PyObject *object)
{
    const long value = PyLong_AsLong(object);
    return value > INT_MAX || value < INT_MIN ? -1 : (int)value;
}

static int arity(const char *name, Py_ssize_t count, Py_ssize_t least, Py_ssize_t most)
{
    if (count < least || count > most) {
        PyErr_Format(PyExc_TypeError, "%s() takes from %zd to %zd arguments, %zd given",
                     name, least, most, count);
        return -1;
    }
    return 0;
}

/* The source, the owner, and what else a question has. */
typedef struct train_asked {
    int rank;
    PyObject *owner;
    PyObject *group; /* NULL: none */
} train_asked;

static int asked_get(const char *name, PyObject *const *args, Py_ssize_t count,
                     Py_ssize_t most, train_asked *out)
{
    if (arity(name, count, 2, most) != 0) {
        return -1;
    }
    out->rank = int_of(args[0]);
    if (out->rank == -1 && PyErr_Occurred()) {
        return -1;
    }
    if (out->rank < TRAIN_LOOP || out->rank > TRAIN_FRAMEWORK) {
        PyErr_Format(PyExc_ValueError, "%s(): there is no source %d of steps", name,
                     out->rank);
        return -1;
    }
    out->owner = args[1];
    out->group = count > 2 && args[2] != Py_None ? args[2] : NULL;
    return 0;
}

int core_train_ask(int source, PyObject *owner, PyObject *group, bool evaluating)
{
    train_state *state = state_now();
    if (!state || state->waiting++ > 0) {
        return 0;
    }
    const int answer = question(state, source, owner, group, evaluating, SW_STEP_BATCH);
    sw_begin(wait_section);
    return answer;
}

bool core_train_goes_on(const PyObject *owner)
{
    const train_state *state = state_now();
    return state && state->open && state->owner == owner;
}

static PyObject *train_wait(PyObject *Py_UNUSED(module), PyObject *const *args,
                            Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_wait", args, count, 4, &asked) != 0) {
        return NULL;
    }
    const bool evaluating = count > 3 && PyObject_IsTrue(args[3]) == 1;
    return PyLong_FromLong(
        core_train_ask(asked.rank, asked.owner, asked.group, evaluating));
}

/* Closes the wait. Returns the state, NULL when it was one within another or nothing is recorded. */
static train_state *wait_over(bool failed)
{
    train_state *state = state_now();
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

static PyObject *train_got(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(owner))
{
    core_train_got();
    Py_RETURN_NONE;
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

static PyObject *train_end(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_over(owner, false);
    Py_RETURN_NONE;
}

static PyObject *train_failed(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_over(owner, true);
    Py_RETURN_NONE;
}

static PyObject *train_epoch(PyObject *Py_UNUSED(module), PyObject *object)
{
    train_state *state = state_now();
    if (!state) {
        return PyLong_FromLong(0);
    }
    return PyLong_FromUnsignedLong(core_group_get(&state->groups, object)->passes++);
}

static PyObject *train_step(PyObject *Py_UNUSED(module), PyObject *const *args,
                            Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_step", args, count, 4, &asked) != 0) {
        return NULL;
    }
    int unit = SW_STEP_BATCH;
    if (count > 3) {
        unit = int_of(args[3]);
        if (unit == -1 && PyErr_Occurred()) {
            return NULL;
        }
    }
    train_state *state = state_now();
    const bool began =
        state && question(state, asked.rank, asked.owner, asked.group, false, unit) == 1;
    return PyBool_FromLong(began);
}

static PyObject *train_step_end(PyObject *Py_UNUSED(module), PyObject *const *args,
                                Py_ssize_t count)
{
    train_asked asked;
    if (asked_get("train_step_end", args, count, 3, &asked) != 0) {
        return NULL;
    }
    const bool forget = count == 3 && args[2] == Py_None;
    const bool complete = count < 3 || PyObject_IsTrue(args[2]) == 1;
    train_state *state = state_now();
    if (state && state->open && state->open_rank == asked.rank &&
        state->owner == asked.owner) {
        validation_end(state);
        state->open = false;
        if (forget) {
            sw_step_cancel();
            sampler_forget_step();
        } else if (complete) {
            sw_step_end();
        } else {
            sw_step_abandon();
        }
        core_allocators_step();
        core_holders_look(false);
    }
    Py_RETURN_NONE;
}

static PyObject *train_release(PyObject *Py_UNUSED(module), PyObject *owner)
{
    train_state *state = state_now();
    if (state && state->owner == owner) {
        owner_clear(state);
        step_left(state, false);
        if (state->rank <= TRAIN_FRAMEWORK) {
            state->rank = TRAIN_NONE;
        }
    }
    Py_RETURN_NONE;
}

static PyObject *train_works(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    if (arity("train_works", count, 0, 1) != 0) {
        return NULL;
    }
    core_train_works(count == 0 || PyObject_IsTrue(args[0]) == 1);
    Py_RETURN_NONE;
}

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

void core_train_update(PyObject *owner)
{
    train_state *state = state_now();
    if (!state) {
        return;
    }
    validation_end(state);
    sw_update();
    optimizer_known = true;
    const bool is_first = !state->updated;
    const unsigned backwards = state->backwards;
    state->by_hand = false;
    state->updated = true;
    state->updates++;
    state->updater = owner;
    if (state->other && state->other_updater == owner) {
        turns_noted(state);
    }
    state->backwards = 0;
    if (state->awaited && core_loop_is_here(&state->gathered)) {
        return; /* another optimizer for the same gradients */
    }
    state->awaited = false;
    if (state->rank <= TRAIN_UPDATE && !state->hosted &&
        (!state->owner || state->owner == owner)) {
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
        step_begin(state, TRAIN_UPDATE, owner, NULL, SW_STEP_UPDATE);
    }
}

static PyObject *train_update(PyObject *Py_UNUSED(module), PyObject *owner)
{
    core_train_update(owner);
    Py_RETURN_NONE;
}

static PyObject *train_optimizer(PyObject *Py_UNUSED(module),
                                 PyObject *Py_UNUSED(ignored))
{
    optimizer_known = true;
    Py_RETURN_NONE;
}

static PyObject *train_evaluates(PyObject *Py_UNUSED(module), PyObject *trained)
{
    core_train_evaluates(PyObject_IsTrue(trained) == 1);
    Py_RETURN_NONE;
}

bool core_train_waits(void)
{
    const train_state *state = state_now();
    return state && state->waiting > 0;
}

static PyObject *train_waits(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(core_train_waits());
}

static PyObject *train_resumes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    core_train_resumes();
    Py_RETURN_NONE;
}

/* For tests and notes: (source that gives steps, whether a step is open, whether this is validation). */
static PyObject *train_now(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const train_state *state = state_now();
    return state ? Py_BuildValue("(iOO)", state->open ? state->open_rank : state->rank,
                                 state->open ? Py_True : Py_False,
                                 state->validating ? Py_True : Py_False)
                 : Py_BuildValue("(iOO)", 0, Py_False, Py_False);
}

static PyObject *train_aside(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    if (arity("train_aside", count, 0, 1) != 0) {
        return NULL;
    }
    if (count == 1 && PyObject_IsTrue(args[0]) == 1) {
        train_set_aside++;
    } else if (count == 1) {
        train_set_aside -= train_set_aside > 0;
    }
    return PyBool_FromLong(train_set_aside > 0);
}

static PyObject *on_step(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *watcher;
    long long every = 1;
    if (!PyArg_ParseTuple(args, "O|L:on_step", &watcher, &every)) {
        return NULL;
    }
    step_watched = every > 0 ? every : 1;
    PyObject *before = step_watcher;
    step_watcher = watcher == Py_None ? NULL : watcher;
    Py_XINCREF(step_watcher);
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

#define FAST(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef training_methods[] = {
    {"train_wait", FAST(train_wait), METH_FASTCALL,
     PyDoc_STR("train_wait(source, owner, group=None, evaluating=False, /)\n--\n\n"
               "A loop asks for its next batch: 1 a step began, 0 it is part of one,\n"
               "2 of a validation.")},
    {"train_got", train_got, METH_O, PyDoc_STR("The batch is there.")},
    {"train_end", train_end, METH_O, PyDoc_STR("There is no further batch.")},
    {"train_failed", train_failed, METH_O, PyDoc_STR("Asking for the batch raised.")},
    {"train_epoch", train_epoch, METH_O,
     PyDoc_STR("A pass begins; return its number, from 0.")},
    {"train_step", FAST(train_step), METH_FASTCALL,
     PyDoc_STR("train_step(source, owner, group=None, unit=1, /)\n--\n\n"
               "Begin a step, and end the open one; tell whether this source may.")},
    {"train_step_end", FAST(train_step_end), METH_FASTCALL,
     PyDoc_STR("train_step_end(source, owner, complete=True, /)\n--\n\n"
               "End the step, and begin none; None: there was no batch, forget it.")},
    {"train_release", train_release, METH_O,
     PyDoc_STR("The owner gives no further steps; others may.")},
    {"train_works", FAST(train_works), METH_FASTCALL,
     PyDoc_STR("train_works(backward=True, /)\n--\n\nTraining happens here.")},
    {"train_update", train_update, METH_O, PyDoc_STR("An optimizer step has ended.")},
    {"train_optimizer", train_optimizer, METH_NOARGS,
     PyDoc_STR("There is an optimizer; its steps are waited for.")},
    {"train_evaluates", train_evaluates, METH_O,
     PyDoc_STR("A module is called in eval mode and without gradients.")},
    {"train_waits", train_waits, METH_NOARGS,
     PyDoc_STR("Whether this thread is making, or waiting for, a batch.")},
    {"train_resumes", train_resumes, METH_NOARGS,
     PyDoc_STR("What follows is no validation, though nothing is trained yet.")},
    {"train_now", train_now, METH_NOARGS,
     PyDoc_STR("(source, a step is open, this is validation)")},
    {"train_aside", FAST(train_aside), METH_FASTCALL,
     PyDoc_STR(
         "train_aside(begin=…, /)\n--\n\n"
         "What this thread does from here (True) to where that is taken back (False) is\n"
         "no part of the training; return whether that is so.")},
    {"on_step", on_step, METH_VARARGS,
     PyDoc_STR(
         "on_step(function, every=1, /)\n--\n\n"
         "Call this with the number of each step that begins, or of one in so many;\n"
         "None: nobody.")},
    {"_owner_gone", train_owner_gone, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

int core_training_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    wait_section = sw_section_get_n("data_wait", 9, SW_PHASE_DATA_WAIT);
    validation_section = sw_section_get_n("validation", 10, SW_PHASE_VALIDATION);
    if (PyModule_AddFunctions(module, training_methods) != 0) {
        return -1;
    }
    if (core_in_main_interpreter()) {
        owner_gone = PyObject_GetAttrString(module, "_owner_gone");
        return owner_gone ? 0 : -1;
    }
    return 0;
}
