/* Which loop of the program is its training loop, and its steps. See loops.h. */
#include "loops.h"
#include "frames.h"
#include "sampler.h"
#include "section.h"
#include "ticks.h"
#include "training.h"
#include "user_code.h"
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

enum {
    DEPTH = 64,     /* passes within each other */
    ENOUGH = 20,    /* iterations that a training loop has at least */
    TRIALS = 32,    /* iterations after which a loop with short ones is given up */
    LONG_PASS = 50, /* a pass this long is chosen before its outer loop has gone on */
    STRANGERS = 64, /* iterations on other threads after which a loop is given up */
    SWITCHES = 3,   /* other choices that are made */
    REFUSALS = 3    /* steps that somebody else gives, after which all is given up */
};

#if PY_VERSION_HEX >= 0x030b0000
#define CORE_QUALNAME(code) ((code)->co_qualname)
#else
#define CORE_QUALNAME(code) ((code)->co_name)
#endif

bool core_loops_on;
core_loop *core_chosen;

static core_loop *loops;
static core_loop *over; /* of those whose code is gone, the one that may have trained */
static core_pass passes[DEPTH];
static unsigned depth;
static unsigned long main_thread;
static uint64_t began;       /* tick */
static uint64_t least;       /* ticks of the shortest iteration that is a step */
static uint64_t half_second; /* in ticks */
static uint64_t patience;    /* ticks of a loop before it is chosen, at least */

/* The steps of the chosen loop. Invariant: `waiting` only while `open`. */
static struct {
    PyObject *owner, *train_step, *train_step_end, *train_end, *train_failed, *source;
    PyObject *units[SW_STEP_LOOP + 1];
    sw_section *wait;
    bool open, waiting;
    bool again; /* the same recording goes on with another loop */
    unsigned refused, switches;
    uint64_t steps, skipped, abandoned;
    uint32_t recording; /* that has the rows */
    uint64_t site, settings[3];
} emit;

/* --- Loops --------------------------------------------------------------------------- */

core_loop *core_loop_new(PyCodeObject *code, uint32_t line, bool is_for)
{
    core_loop *loop = calloc(1, sizeof *loop);
    if (loop) {
        loop->file = code->co_filename;
        loop->function = CORE_QUALNAME(code);
        Py_INCREF(loop->file);
        Py_INCREF(loop->function);
        loop->line = line;
        loop->is_for = is_for;
        loop->yields = (code->co_flags & (CO_GENERATOR | CO_ASYNC_GENERATOR)) != 0;
        loop->next = loops;
        loops = loop;
    }
    return loop;
}

static bool was_training(const core_loop *loop, uint64_t now);

static void loop_drop(core_loop *loop)
{
    if (loop) {
        core_past_forget(loop);
        Py_CLEAR(loop->file);
        Py_CLEAR(loop->function);
        free(loop);
    }
}

/* Lets go of what is not its own, for one that is kept though its code is gone. */
static void loop_detach(core_loop *loop)
{
    loop->next = NULL;
    loop->parent = NULL;
    loop->owner = NULL;
    loop->inside = NULL;
    loop->units = 0;
    loop->is_gone = true;
}

/* The code of a loop is gone, as that of a script is when it has ended, and nothing was chosen: it may be at the end. */
static bool loop_keep(core_loop *loop)
{
    if (!core_loops_on || core_chosen || loop->surpassed ||
        !was_training(loop, core_ticks()) || (over && over->ticks >= loop->ticks)) {
        return false;
    }
    if (loop->parent) {
        loop->parent->surpassed = true;
    }
    loop_drop(over);
    over = loop;
    return true;
}

void core_loop_free(core_loop *loop)
{
    const bool keeps = loop_keep(loop);
    for (unsigned i = 0; i < depth; i++) {
        if (passes[i].loop == loop) {
            passes[i].loop = NULL;
        }
        for (unsigned k = 0; k < LOOP_KIDS; k++) {
            if (passes[i].kids[k].loop == loop) {
                passes[i].kids[k].loop = NULL;
            }
        }
    }
    core_loop **at = &loops;
    while (*at && *at != loop) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = loop->next;
    }
    for (core_loop *other = loops; other; other = other->next) {
        if (other->parent == loop) {
            other->parent = NULL;
        }
    }
    if (keeps) {
        loop_detach(loop);
    } else if (loop == core_chosen) {
        /* Of a notebook's cell that is gone, or a text that was run. It cannot come back, and another may be chosen. */
        core_past_forget(loop);
        loop_detach(loop);
    } else {
        loop_drop(loop);
    }
}

bool core_loops_here(void)
{
    return PyThread_get_thread_ident() == main_thread;
}

bool core_loop_elsewhere(core_loop *loop)
{
    if (++loop->elsewhere > STRANGERS && loop->asks == 0 &&
        loop->state == LOOP_SEARCHED) {
        loop->state = LOOP_GIVEN_UP;
    }
    return loop->state == LOOP_GIVEN_UP;
}

/* --- Steps --------------------------------------------------------------------------- */

static void call(PyObject *function, PyObject *const *args, size_t count, bool *answer)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = PyObject_Vectorcall(function, args, count, NULL);
    if (answer) {
        *answer = result == Py_True;
    }
    Py_XDECREF(result);
    core_error_forget();
    PyErr_Restore(type, value, traceback);
}

static uint32_t name_of(PyObject *object)
{
    core_text text;
    uint32_t id = 0;
    if (core_text_get(object, "name", &text) == 0) {
        id = text.length ? sw_name(text.data, (size_t)text.length) : 0;
        core_text_release(&text);
    }
    PyErr_Clear();
    return id;
}

static uint64_t setting_put(uint64_t handle, const char *what, double value)
{
    sw_row row = {.table = SW_TABLE_SETTING, .key = {sw_name(what, strlen(what))}};
    memcpy(&row.value[0], &value, sizeof value);
    return sw_row_put(handle, &row);
}

/* Where the loop is, and what went before its first step. */
static void rows_put(const core_loop *loop)
{
    emit.recording = sw_recording_number();
    sw_row row = {.table = SW_TABLE_SITE,
                  .key = {SW_SITE_LOOP, name_of(loop->file), loop->line,
                          loop->is_for ? sw_name("for", 3) : sw_name("while", 5)},
                  .value = {name_of(loop->function)}};
    emit.site = sw_row_put(emit.site, &row);
    emit.settings[0] =
        setting_put(emit.settings[0], "loop.skipped", (double)emit.skipped);
    if (emit.abandoned) {
        emit.settings[1] =
            setting_put(emit.settings[1], "loop.abandoned", (double)emit.abandoned);
    }
}

static void silence(void)
{
    core_loops_on = false;
    core_loops_unlisten();
    core_loop_events_stop();
}

static void wait_end(void)
{
    if (emit.waiting) {
        emit.waiting = false;
        if (core_train_wait_end()) {
            sw_end(emit.wait);
        }
    }
}

/* An iteration before the choice has ended. */
static void past_add(const core_pass *pass, uint64_t now)
{
    const bool within = pass > passes && (pass - 1)->loop;
    const loop_past past = {.begin = pass->asked,
                            .end = now,
                            .wait = pass->got > pass->asked ? pass->got - pass->asked : 0,
                            .epoch = within ? (pass - 1)->count : UINT32_MAX};
    core_past_add(pass->loop, &past, SW_GATE(emit.wait) ? sw_recording_number() : 0);
}

static int unit_of(const core_loop *loop)
{
    return loop->gathers ? SW_STEP_BATCH : loop->hosts ? SW_STEP_UPDATE : SW_STEP_LOOP;
}

static void step_ask(core_pass *pass)
{
    if (!SW_GATE(emit.wait)) {
        emit.open = emit.waiting = false;
        return;
    }
    if (emit.recording != sw_recording_number()) {
        emit.site = emit.settings[0] = emit.settings[1] = emit.settings[2] = 0;
        emit.open = emit.waiting = false;
        emit.abandoned = emit.again ? emit.abandoned : 0;
        emit.again = false;
        emit.steps = core_past_put(pass->loop, unit_of(pass->loop));
        emit.skipped -= emit.steps < emit.skipped ? emit.steps : emit.skipped;
        rows_put(pass->loop);
    }
    wait_end();
    PyObject *args[] = {emit.source, emit.owner, Py_None,
                        emit.units[unit_of(pass->loop)]};
    bool began_one = false;
    call(emit.train_step, args, 4, &began_one);
    if (!began_one) {
        /* Somebody who knows better gives the steps. */
        emit.open = false;
        if (++emit.refused >= REFUSALS) {
            silence();
        }
        return;
    }
    emit.refused = 0;
    /* The loop around it counts the epochs: of its own steps, for those of others are not known to be in it. */
    if (!pass->told && pass > passes && (pass - 1)->loop) {
        sw_epoch((pass - 1)->count);
    }
    pass->told = true;
    emit.open = true;
    emit.steps++;
    if (pass->loop->is_for) {
        emit.waiting = true;
        if (core_train_wait_begin()) {
            sw_begin(emit.wait);
        }
    }
}

static void step_end(enum pass_end how)
{
    if (!emit.open) {
        return;
    }
    if (core_chosen && emit.recording == sw_recording_number()) {
        /* How much of the program its training loop is: little says that it may be none. */
        const double share = (double)core_chosen->ticks / (double)(core_ticks() - began);
        emit.settings[2] = setting_put(emit.settings[2], "loop.share", share);
    }
    emit.open = false;
    if (emit.waiting) {
        emit.waiting = false;
        emit.steps--;
        call(how == PASS_ENDED ? emit.train_end : emit.train_failed, &emit.owner, 1,
             NULL);
        return;
    }
    PyObject *args[] = {emit.source, emit.owner, how == PASS_LEFT ? Py_False : Py_True};
    call(emit.train_step_end, args, 3, NULL);
}

/* --- The choice ---------------------------------------------------------------------- */

static double share_of(const core_loop *loop)
{
    const core_loop *parent = loop->parent;
    const uint64_t whole = parent ? parent->ticks - loop->parent_base : 0;
    return whole ? (double)loop->in_parent / (double)whole : 0.0;
}

/* Whether a loop runs in most iterations of the one around it, as batches do in epochs. One that does not is something that
 * is done now and then, such as a validation. */
static bool is_regular(const core_loop *loop)
{
    const core_loop *parent = loop->parent;
    const uint64_t whole = parent ? parent->intervals - loop->parent_intervals : 0;
    return whole < 2 || 10 * loop->parent_ran > 6 * whole;
}

static bool is_long(const core_loop *loop)
{
    /* One iteration in which the machine did something else does not make a loop long. */
    return loop->intervals >= ENOUGH && loop->ticks >= loop->intervals * least &&
           loop->longs >= loop->intervals / 4;
}

/* How much of its outer loop a loop must fill to be the step loop rather than a part of a step: loops over a model's layers
 * have few iterations, and others beside them. */
static double needed(const core_loop *loop)
{
    return loop->longest >= ENOUGH ? 0.5 : 0.8;
}

/* Two loops within each other of which neither has many iterations at a time are parts of a step, where the loop around both has
 * many: an episode of some moves, each of some smaller ones. */
static bool are_few(const core_loop *inner, const core_loop *outer,
                    const core_loop *around)
{
    return around && around->longest >= ENOUGH && outer->parent == around &&
           outer->longest < ENOUGH && inner->parent == outer && inner->longest < ENOUGH;
}

/* Whether a loop of few iterations in another one of few is a part of a step with it, as is that over the parameters of each
 * layer: the outer one does not fill the loop around it. */
static bool is_within_part(const core_pass *pass)
{
    for (; pass - passes >= 2 && pass->loop->longest < ENOUGH; pass--) {
        const core_loop *outer = pass[-1].loop, *around = pass[-2].loop;
        if (!outer || !around || outer->longest >= ENOUGH) {
            return false;
        }
        if (are_few(pass->loop, outer, around)) {
            return true;
        }
        if (outer->parent == around && around->intervals >= 2 &&
            share_of(outer) < needed(outer)) {
            return true;
        }
    }
    return false;
}

/* Whether the loop is part of what a step computes, by the names of the functions between it and the outermost loop around
 * it: nobody trains within a forward, a loss or a backward. `frame` is its own. */
static bool is_within_computing(const core_frame *frame)
{
    const core_loop *outermost = depth > 1 ? passes[0].loop : NULL;
    for (; outermost && frame; frame = core_frame_back(frame)) {
        PyCodeObject *code = core_frame_code(frame);
        if (!code) {
            continue;
        }
        if (code->co_filename == outermost->file &&
            PyUnicode_Compare(CORE_QUALNAME(code), outermost->function) == 0) {
            return false;
        }
        Py_ssize_t length = 0;
        const char *name = PyUnicode_AsUTF8AndSize(code->co_name, &length);
        const int phase =
            name ? sw_phase_of_name(name, (size_t)length) : SW_PHASE_INHERIT;
        PyErr_Clear();
        if (phase == SW_PHASE_FORWARD || phase == SW_PHASE_LOSS ||
            phase == SW_PHASE_BACKWARD) {
            return true;
        }
    }
    return false;
}

static bool has_few_inside(const core_loop *outer, const core_loop *around)
{
    for (const core_loop *inner = loops; inner; inner = inner->next) {
        if (are_few(inner, outer, around) && share_of(inner) >= needed(inner)) {
            return true;
        }
    }
    return false;
}

/* Whether a loop within this one is the better choice. */
static bool has_better_inside(const core_loop *loop)
{
    for (const core_loop *other = loops; other; other = other->next) {
        if (other->parent == loop && other->state == LOOP_SEARCHED && is_long(other) &&
            is_regular(other) && share_of(other) >= needed(other) &&
            !has_few_inside(other, loop)) {
            return true;
        }
    }
    return false;
}

/* Ticks that a loop has to take to be chosen now. */
static uint64_t ticks_needed(uint64_t now)
{
    uint64_t threshold = (now - began) / 8;
    if (threshold > half_second) {
        threshold = half_second;
    }
    return threshold < patience ? patience : threshold;
}

static bool qualifies(const core_pass *pass, uint64_t now)
{
    const core_loop *loop = pass->loop;
    if (!is_long(loop) || loop->ticks < ticks_needed(now)) {
        return false;
    }
    if (has_better_inside(loop)) {
        return false; /* It will be chosen. */
    }
    const core_loop *parent = pass > passes ? (pass - 1)->loop : NULL;
    if (!parent) {
        return true;
    }
    const bool known = parent == loop->parent && parent->intervals >= 2;
    if (known) {
        return is_regular(loop) && share_of(loop) >= needed(loop) &&
               !is_within_part(pass);
    }
    return pass->count >= LONG_PASS;
}

static bool is_around(const core_loop *outer, const core_loop *inner)
{
    for (unsigned i = 0; inner && i < DEPTH; i++) {
        inner = inner->parent;
        if (inner == outer) {
            return true;
        }
    }
    return false;
}

/* Whether the chosen loop is that of a notebook's cell, and this one of another cell, or of the same one run again: each cell
 * that trains has its turn. */
static bool is_other_cell(const core_loop *loop)
{
    const char *file = PyUnicode_AsUTF8(core_chosen->file);
    if (!file) {
        PyErr_Clear();
        return false;
    }
    return (strncmp(file, "<ipython-input", 14) == 0 || strstr(file, "/ipykernel_")) &&
           (PyUnicode_Compare(core_chosen->file, loop->file) != 0 ||
            core_chosen->line == loop->line);
}

/* Below which share of this loop, that is around the chosen one, the chosen one is a part of its steps. A loop that is
 * itself within another has batches more likely than epochs: of epochs, little is not spent with their batches. */
static double part_of_step(const core_pass *pass)
{
    if (pass->loop->counts_steps && !core_chosen->counts_steps) {
        return 2; /* The program says so. */
    }
    return pass > passes && pass->loop->longest >= ENOUGH ? 0.85 : 0.3;
}

/* Whether this loop should take the place of the chosen one, whose pass does not go on. */
static bool is_better(const core_pass *pass, uint64_t now)
{
    const core_loop *loop = pass->loop;
    if (!core_chosen || core_chosen->is_gone || is_other_cell(loop)) {
        return qualifies(pass, now);
    }
    if (emit.switches >= SWITCHES) {
        return false;
    }
    if (core_chosen->parent && are_few(core_chosen, core_chosen->parent, loop)) {
        return qualifies(pass, now);
    }
    if (is_around(loop, core_chosen)) {
        return loop == core_chosen->parent && loop->intervals >= ENOUGH &&
               (share_of(core_chosen) < part_of_step(pass) || !is_regular(core_chosen)) &&
               qualifies(pass, now);
    }
    return loop->ticks > core_chosen->ticks && qualifies(pass, now);
}

static void choose(core_pass *pass)
{
    if (core_chosen && core_chosen->is_gone) {
        core_loop *gone = core_chosen;
        core_chosen = NULL;
        core_loop_free(gone);
    } else if (core_chosen) {
        core_chosen->state = LOOP_SEARCHED;
        if (!is_other_cell(pass->loop)) {
            emit.switches++;
            emit.abandoned += emit.steps;
            emit.again = emit.recording == sw_recording_number();
            sampler_forget_steps();
        }
    }
    loop_drop(over);
    over = NULL;
    emit.skipped = pass->loop->asks;
    emit.recording = 0;
    core_chosen = pass->loop;
    core_chosen->state = LOOP_CHOSEN;
    pass->emits = true;
    core_loop_events_choose(core_chosen);
}

/* --- Passes -------------------------------------------------------------------------- */

core_pass *core_pass_top(void)
{
    return depth ? &passes[depth - 1] : NULL;
}

unsigned core_pass_depth(void)
{
    return depth;
}

core_pass *core_pass_at(unsigned index)
{
    return &passes[index];
}

/* The pass that gives the steps now. */
static const core_pass *emitting(void)
{
    for (unsigned i = depth; i-- > 0;) {
        if (passes[i].emits) {
            return &passes[i];
        }
    }
    return NULL;
}

core_pass *core_pass_begin(core_loop *loop, const void *key, bool late)
{
    if (depth == DEPTH || !core_loops_on) {
        return NULL;
    }
    const bool in_step = emitting() != NULL;
    if (in_step && loop->state == LOOP_SEARCHED) {
        /* A loop within a step is a part of it, whatever it does elsewhere. */
        loop->state = LOOP_GIVEN_UP;
        return NULL;
    }
    core_pass *pass = &passes[depth];
    const uint64_t now = core_ticks();
    *pass = (core_pass){.loop = loop, .key = key, .begun = now, .asked = now};
    /* Within a step the chosen loop is a part of it, if the function calls itself. */
    if (loop == core_chosen && !in_step) {
        pass->emits = true;
        depth++;
        step_ask(pass);
        pass->count = late;
        return core_loops_on ? pass : NULL;
    }
    pass->count = late;
    depth++;
    if (loop->state == LOOP_SEARCHED) {
        core_past_begin(loop);
    }
    return pass;
}

/* Time that passes in an inner loop is part of the iteration that goes on outside. */
static void kid_add(core_pass *outer, core_loop *loop, uint64_t ticks)
{
    for (unsigned i = 0; i < LOOP_KIDS; i++) {
        if (!outer->kids[i].loop || outer->kids[i].loop == loop) {
            outer->kids[i].loop = loop;
            outer->kids[i].ticks += ticks;
            return;
        }
    }
}

static void kids_count(core_pass *pass, uint64_t interval)
{
    for (unsigned i = 0; i < LOOP_KIDS && pass->kids[i].loop; i++) {
        core_loop *kid = pass->kids[i].loop;
        if (kid->parent != pass->loop) {
            kid->parent = pass->loop;
            kid->parent_base = pass->loop->ticks - interval;
            kid->in_parent = 0;
            kid->parent_intervals = pass->loop->intervals - 1;
            kid->parent_ran = 0;
        }
        kid->in_parent += pass->kids[i].ticks;
        kid->parent_ran++;
    }
    memset(pass->kids, 0, sizeof pass->kids);
}

/* Takes the newest pass away; its end may be known to be now. */
static void pop(bool now_known)
{
    core_pass *pass = &passes[--depth];
    core_loop *loop = pass->loop;
    if (loop && depth && passes[depth - 1].loop && passes[depth - 1].loop != loop) {
        uint64_t end = core_ticks();
        if (!now_known) {
            /* Left without a word: the last iteration lasted as the others did. */
            end = pass->asked +
                  (pass->count ? (pass->asked - pass->begun) / pass->count : 0);
        }
        kid_add(&passes[depth - 1], loop, end - pass->begun);
    }
    pass->emits = false;
}

void core_pass_end(core_pass *pass, enum pass_end how)
{
    const unsigned index = (unsigned)(pass - passes);
    while (depth > index) {
        core_pass *top = &passes[depth - 1];
        if (top->emits) {
            step_end(depth - 1 == index ? how : PASS_LEFT);
        }
        pop(depth - 1 == index && how != PASS_FORGOTTEN);
    }
}

static void loop_give_up(core_loop *loop)
{
    loop->state = LOOP_GIVEN_UP;
    core_past_forget(loop);
}

bool core_pass_ask(core_pass *pass)
{
    const unsigned index = (unsigned)(pass - passes);
    while (depth > index + 1) {
        core_pass_end(&passes[depth - 1], PASS_FORGOTTEN);
    }
    core_loop *loop = pass->loop;
    const uint64_t now = core_ticks();
    const uint64_t interval = now - pass->asked;
    if (loop->state == LOOP_SEARCHED) {
        past_add(pass, now);
    }
    pass->asked = now;
    pass->count++;
    loop->asks++;
    loop->intervals++;
    loop->ticks += interval;
    loop->longs += interval >= least;
    if (pass->count > loop->longest) {
        loop->longest = pass->count;
    }
    if (pass->emits) {
        step_ask(pass);
        memset(pass->kids, 0, sizeof pass->kids);
        return core_loops_on;
    }
    kids_count(pass, interval);
    const bool too_short = !loop->hosts && loop->intervals >= TRIALS &&
                           loop->ticks < loop->intervals * least;
    if (loop->state == LOOP_SEARCHED && too_short) {
        loop_give_up(loop);
        core_pass_end(pass, PASS_COMPLETE);
        return false;
    }
    if (loop->state == LOOP_SEARCHED &&
        (loop->hosts ? core_train_host()
                     : loop->intervals >= ENOUGH && is_better(pass, now))) {
        if (!loop->hosts && is_within_computing(core_frame_now())) {
            loop_give_up(loop);
            core_pass_end(pass, PASS_COMPLETE);
            return false;
        }
        choose(pass);
        step_ask(pass);
        return core_loops_on;
    }
    return true;
}

void core_pass_got(core_pass *pass)
{
    if (pass->emits) {
        wait_end();
    } else if (pass->loop && pass->loop->state == LOOP_SEARCHED) {
        pass->got = core_ticks();
    }
}

/* --- Updates ---

 * Who knows of updates draws steps from one to the next, and does not see what comes before the first, after the last, and
 * which part of it is waiting for data. The loop that calls the update once in each iteration does. */

enum {
    HOSTED = 2, /* calls in iterations of their own after which a loop is believed */
    GATHERED =
        2, /* backwards in iterations of their own that lead to one update, at least */
    WAITED = 3, /* iterations whose waiting is looked at, at least and at most */
    WAITED_MOST = 64
};

/* The innermost pass that this thread is in. */
static const core_pass *around(void)
{
    for (unsigned i = core_loops_on && core_loops_here() ? depth : 0; i-- > 0;) {
        if (!passes[i].loop || !passes[i].loop->yields) {
            return &passes[i];
        }
    }
    return NULL;
}

static bool is_same_iteration(const loop_place *place, const core_pass *pass)
{
    return pass->loop == place->loop && pass->begun == place->begun &&
           pass->count == place->count;
}

/* The pass whose iteration this is, if it goes on. */
static const core_pass *place_pass(const loop_place *place)
{
    for (unsigned i = core_loops_on && core_loops_here() ? depth : 0; i-- > 0;) {
        if (passes[i].loop && is_same_iteration(place, &passes[i])) {
            return &passes[i];
        }
    }
    return NULL;
}

bool core_loop_is_here(const loop_place *place)
{
    return place_pass(place) != NULL;
}

bool core_loop_is_inner(const loop_place *place)
{
    const core_pass *pass = place->loop ? place_pass(place) : NULL;
    while (pass && pass > passes) {
        pass--;
        if (pass->loop && !pass->loop->yields) {
            return true;
        }
    }
    return false;
}

/* Notes where this is; false: for the second time in one iteration. */
static bool place_take(loop_place *place)
{
    const core_pass *pass = around();
    core_loop *loop = pass ? pass->loop : NULL;
    if (!loop) {
        *place = (loop_place){.loop = NULL};
        return true;
    }
    if (is_same_iteration(place, pass)) {
        place->often = 0;
        return false;
    }
    *place = (loop_place){.loop = loop,
                          .begun = pass->begun,
                          .count = pass->count,
                          .often = loop == place->loop ? place->often + 1 : 1};
    return true;
}

void core_loop_noted(loop_place *place)
{
    if (!place_take(place) && place->loop->hosted == place) {
        place->loop->hosts = place->loop->hosts && place->loop == core_chosen;
    }
}

void core_loop_backward(loop_place *place)
{
    (void)place_take(place);
}

bool core_loop_hosts(const loop_place *place, bool *open)
{
    if (!core_train_may_host()) {
        return false;
    }
    *open = emit.open && core_chosen && core_chosen->hosts && core_loops_here();
    if (*open) {
        return true;
    }
    const core_pass *pass = around();
    core_loop *loop = pass && pass->loop == place->loop ? pass->loop : NULL;
    if (!loop || loop->state == LOOP_GIVEN_UP || emitting()) {
        return false;
    }
    if (!loop->hosts && place->often >= HOSTED) {
        loop->hosts = true;
        loop->hosted = place;
    }
    return loop->hosts;
}

bool core_loop_hosts_waiting(const loop_place *place)
{
    if (place->often > WAITED_MOST) {
        return false;
    }
    const core_pass *pass = around();
    const core_loop *loop = pass && pass->loop == place->loop ? pass->loop : NULL;
    uint64_t waited = 0, all = 0;
    for (uint32_t i = 0; loop && i < loop->past_count && i < WAITED_MOST; i++) {
        waited += loop->past[i].wait;
        all += loop->past[i].end - loop->past[i].begin;
    }
    bool open;
    return loop && loop->past_count >= WAITED && waited >= all / 20 &&
           core_loop_hosts(place, &open);
}

bool core_loop_hosts_gathering(const loop_place *backward, unsigned count)
{
    const core_pass *pass = place_pass(backward);
    core_loop *loop = pass ? pass->loop : NULL;
    /* Where the update follows a loop over the parts of a batch, that loop is over. */
    if (count < GATHERED || backward->often < count || !loop || loop == core_chosen ||
        loop->state != LOOP_SEARCHED || emitting() || !core_train_may_host()) {
        return false;
    }
    loop->hosts = loop->gathers = true;
    loop->hosted = backward;
    return true;
}

/* Whether this loop, whose passes are over, was the training loop. What is asked of one that goes on is asked here of what is
 * kept of it. */
static bool was_training(const core_loop *loop, uint64_t now)
{
    if (loop->state != LOOP_SEARCHED || loop->is_gone || loop->yields ||
        loop->past_count < ENOUGH || !is_long(loop) || loop->ticks < ticks_needed(now) ||
        has_better_inside(loop)) {
        return false;
    }
    const core_loop *parent = loop->parent;
    if (parent && !(is_regular(loop) && share_of(loop) >= needed(loop))) {
        return false;
    }
    /* Of few iterations in a loop of few, which does not fill the one around it: a part of a step. */
    return !(parent && parent->parent && loop->longest < ENOUGH &&
             parent->longest < ENOUGH && share_of(parent) < needed(parent));
}

void core_loops_finish(void)
{
    if (!core_loops_on || core_chosen || !core_loops_here() || !SW_GATE(emit.wait)) {
        return;
    }
    const uint64_t now = core_ticks();
    core_loop *best = NULL;
    for (core_loop *loop = loops; loop; loop = loop->next) {
        if (was_training(loop, now) && (!best || loop->ticks > best->ticks)) {
            best = loop;
        }
    }
    if (over && (!best || over->ticks > best->ticks)) {
        best = over;
    }
    if (!best || emitting()) {
        return;
    }
    emit.skipped = best->asks;
    emit.site = emit.settings[0] = emit.settings[1] = emit.settings[2] = 0;
    emit.steps = core_past_put(best, unit_of(best));
    if (emit.steps) {
        emit.skipped -= emit.steps < emit.skipped ? emit.steps : emit.skipped;
        core_chosen = best;
        over = best == over ? NULL : over;
        best->state = LOOP_CHOSEN;
        rows_put(best);
    }
}

void core_loops_overruled(void)
{
    if (core_loops_on && core_loops_here()) {
        silence();
    }
}

/* --- What Python calls ---------------------------------------------------------------- */

static int emit_prepare(PyObject *module)
{
    emit.wait = sw_section_get_n("data_wait", 9, SW_PHASE_DATA_WAIT);
    emit.train_step = PyObject_GetAttrString(module, "train_step");
    emit.train_step_end = PyObject_GetAttrString(module, "train_step_end");
    emit.train_end = PyObject_GetAttrString(module, "train_end");
    emit.train_failed = PyObject_GetAttrString(module, "train_failed");
    emit.source = PyLong_FromLong(TRAIN_LOOP);
    bool all = true;
    for (int unit = 0; unit <= SW_STEP_LOOP; unit++) {
        emit.units[unit] = PyLong_FromLong(unit);
        all = all && emit.units[unit];
    }
    /* It has to bear a weak reference. */
    emit.owner = PySet_New(NULL);
    return all && emit.train_step && emit.train_step_end && emit.train_end &&
                   emit.train_failed && emit.source && emit.owner
               ? 0
               : -1;
}

static PyObject *loops_start(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    if (core_loops_on) {
        Py_RETURN_NONE;
    }
    if (!emit.owner && emit_prepare(module) != 0) {
        return NULL;
    }
    core_ticks_init();
    const double ns = core_ticks_ns();
    least = (uint64_t)(100e3 / ns);
    half_second = (uint64_t)(0.5e9 / ns);
    began = core_ticks();
    main_thread = PyThread_get_thread_ident();
    depth = 0;
    emit.refused = 0;
    emit.open = emit.waiting = false;
    if (core_loop_events_start(module) != 0) {
        return NULL;
    }
    core_loops_on = true;
    Py_RETURN_NONE;
}

static PyObject *loops_patience(PyObject *Py_UNUSED(module), PyObject *seconds)
{
    const double value = PyFloat_AsDouble(seconds);
    if (value == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    core_ticks_init();
    patience = value > 0 ? (uint64_t)(value * 1e9 / core_ticks_ns()) : 0;
    Py_RETURN_NONE;
}

static PyObject *loops_stop(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (core_loops_on) {
        if (depth) {
            core_pass_end(&passes[0], PASS_COMPLETE);
        }
        silence();
    }
    Py_RETURN_NONE;
}

/* In a child of fork: what its parent's loops did is over, and its own are those of a worker. */
static PyObject *loops_forked(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    if (core_loops_on) {
        depth = 0;
        emit.open = emit.waiting = false;
        silence();
    }
    Py_RETURN_NONE;
}

static PyObject *loops_watch(PyObject *module, PyObject *code)
{
    if (!PyCode_Check(code)) {
        return PyErr_Format(PyExc_TypeError, "code expected, not %.100s",
                            Py_TYPE(code)->tp_name);
    }
    if (core_loops_on && core_is_user_code((PyCodeObject *)code) &&
        core_loop_events_watch(module, code) != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *loops_listen(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    if (core_loops_listen(module) != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *loops_now(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    const core_loop *loop = core_chosen;
    PyObject *on = core_loops_on ? Py_True : Py_False;
    PyObject *listens = core_loops_listens() ? Py_True : Py_False;
    if (!loop) {
        return Py_BuildValue("{sOsOsO}", "on", on, "listens", listens, "file", Py_None);
    }
    return Py_BuildValue(
        "{sOsOsOsIsssKsKsK}", "on", on, "listens", listens, "file", loop->file, "line",
        loop->line, "kind", loop->is_for ? "for" : "while", "steps",
        (unsigned long long)emit.steps, "skipped", (unsigned long long)emit.skipped,
        "abandoned", (unsigned long long)emit.abandoned);
}

static PyMethodDef loops_methods[] = {
    {"_loops_start", loops_start, METH_NOARGS, PyDoc_STR("Look for the training loop.")},
    {"_loops_patience", loops_patience, METH_O,
     PyDoc_STR("Seconds that a loop has to take before it is chosen.")},
    {"_loops_stop", loops_stop, METH_NOARGS, PyDoc_STR("Look no more.")},
    {"_loops_forked", loops_forked, METH_NOARGS, PyDoc_STR("In a child of fork.")},
    {"_loops_watch", loops_watch, METH_O,
     PyDoc_STR("See the loops of this code, which has not run yet.")},
    {"_await_main", core_await_main, METH_O,
     PyDoc_STR("Call a function with code that is about to run, until it says True.")},
    {"_loops_listen", loops_listen, METH_NOARGS,
     PyDoc_STR("See the user's modules before they run, from now on.")},
    {"_loops_now", loops_now, METH_NOARGS, PyDoc_STR("What was chosen.")},
    {NULL, NULL, 0, NULL},
};

int core_loops_add(PyObject *module)
{
    if (core_loop_events_add(module) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, loops_methods);
}
