/* The engine of the function profiler: which profiles run, and which threads have something for them. */
#include "functions.h"
#include "unseen.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>

_Thread_local struct functions_lane *functions_here
    __attribute__((tls_model("initial-exec")));

static _Atomic uint64_t serials;
static pthread_key_t lanes_key; /* a thread's first lane */
static pthread_once_t lanes_once = PTHREAD_ONCE_INIT;
static int lanes_key_error;

/* --- Lanes ------------------------------------------------------------------------ */

static void lane_release(struct functions_lane *lane)
{
    if (atomic_fetch_sub(&lane->holders, 1) == 1) {
        free(lane);
    }
}

/* A thread ends, without the GIL: what it counted is added up by whoever looks next. */
static void thread_ended(void *first)
{
    functions_here = NULL;
    for (struct functions_lane *lane = first, *other; lane; lane = other) {
        other = lane->other;
        atomic_store(&lane->left, true);
        lane_release(lane);
    }
}

static void make_key(void)
{
    lanes_key_error = pthread_key_create(&lanes_key, thread_ended);
}

static struct functions_lane *lane_new(functions_engine *engine)
{
    pthread_once(&lanes_once, make_key);
    struct functions_lane *lane = lanes_key_error ? NULL : calloc(1, sizeof *lane);
    if (!lane) {
        return NULL;
    }
    lane->engine = engine;
    lane->other = pthread_getspecific(lanes_key);
    if (pthread_setspecific(lanes_key, lane) != 0) {
        free(lane);
        return NULL;
    }
    atomic_init(&lane->holders, 2);
    lane->next = engine->lanes;
    engine->lanes = lane;
    return lane;
}

/* Adds up what a track has counted; no code of the program runs meanwhile. */
static void track_flush(struct functions_track *track)
{
    functions_profile *const profile = track->profile;
    calls_end_open(&track->calls);
    profile->lost += track->calls.lost;
    if (calls_flush(&track->calls, profile->ended) != SW_OK) {
        profile->lost++;
    }
    track->profile = NULL;
}

/* Lets go of code objects, which may run the program's callbacks: by now nothing may lead to these tracks. */
static void tracks_free(struct functions_track *track)
{
    for (struct functions_track *next; track; track = next) {
        next = track->next;
        calls_free(&track->calls);
        free(track);
    }
}

/* Moves the lane's tracks of a profile (NULL: all) to the list `done`, added up. */
static void lane_take(struct functions_lane *lane, const functions_profile *profile,
                      struct functions_track **done)
{
    for (struct functions_track **at = &lane->tracks, *track; (track = *at) != NULL;) {
        if (profile && track->profile != profile) {
            at = &track->next;
            continue;
        }
        *at = track->next;
        track_flush(track);
        track->next = *done;
        *done = track;
    }
}

/* Adds up what threads that have ended left behind. */
static void lanes_gather(functions_engine *engine)
{
    struct functions_track *done = NULL;
    for (struct functions_lane **at = &engine->lanes, *lane; (lane = *at) != NULL;) {
        if (!atomic_load(&lane->left)) {
            at = &lane->next;
            continue;
        }
        *at = lane->next;
        lane_take(lane, NULL, &done);
        lane_release(lane);
    }
    tracks_free(done);
}

static bool lane_has(const struct functions_lane *lane, const functions_profile *profile)
{
    for (const struct functions_track *track = lane->tracks; track; track = track->next) {
        if (track->profile == profile) {
            return true;
        }
    }
    return false;
}

struct functions_lane *functions_lane_find(functions_engine *engine)
{
    pthread_once(&lanes_once, make_key);
    struct functions_lane *lane = lanes_key_error ? NULL : pthread_getspecific(lanes_key);
    while (lane && lane->engine != engine) {
        lane = lane->other;
    }
    if (!lane) {
        lanes_gather(engine);
        lane = lane_new(engine);
    }
    if (!lane) {
        return NULL;
    }
    for (functions_profile *profile = engine->running; profile; profile = profile->next) {
        if (lane_has(lane, profile)) {
            continue;
        }
        struct functions_track *track = calloc(1, sizeof *track);
        if (!track || calls_init(&track->calls, functions_methods) != 0) {
            free(track);
            return NULL;
        }
        track->profile = profile;
        track->builtins = profile->builtins;
        track->next = lane->tracks;
        lane->tracks = track;
    }
    lane->only = lane->tracks && !lane->tracks->next ? &lane->tracks->calls : NULL;
    lane->serial = engine->serial;
    functions_here = lane;
    return lane;
}

struct call_function *functions_meet_code(struct functions_lane *lane,
                                          struct functions_track *track, PyObject *code,
                                          bool *over)
{
    functions_engine *const engine = lane->engine;
    for (size_t i = 0; i < FUNCTIONS_BETWEEN && engine->between[i]; i++) {
        if (engine->between[i] == code) {
            return NULL; /* What it calls, its caller calls; an end without a beginning is none. */
        }
    }
    if (calls_crowded(&track->calls)) {
        /* Dying code may run the program's callbacks, and they or other threads may stop the profile. */
        calls_sweep(&track->calls, track->profile->ended);
        if (lane->serial != engine->serial) {
            *over = true;
            return NULL;
        }
    }
    return calls_new_code(&track->calls, code);
}

/* --- Profiles --------------------------------------------------------------------- */

void functions_note(functions_profile *profile, const char *format, ...)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    va_list arguments;
    va_start(arguments, format);
    PyObject *text = PyUnicode_FromFormatV(format, arguments);
    va_end(arguments);
    if (text) {
        (void)PyList_Append(profile->notes, text);
        Py_DECREF(text);
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static void engine_changed(functions_engine *engine)
{
    engine->serial = atomic_fetch_add(&serials, 1) + 1;
    engine->builtins = false;
    for (functions_profile *profile = engine->running; profile; profile = profile->next) {
        engine->builtins |= profile->builtins;
    }
}

/* Calls os.register_at_fork(after_in_child=engine._forked) and atexit.register(engine._finish), once. */
static int engine_prepare(functions_engine *engine)
{
    if (engine->prepared) {
        return 0;
    }
    int result = -1;
    PyObject *os = core_import("os");
    PyObject *atexit = os ? core_import("atexit") : NULL;
    PyObject *finish =
        atexit ? PyObject_GetAttrString((PyObject *)engine, "_finish") : NULL;
    PyObject *forked =
        finish ? PyObject_GetAttrString((PyObject *)engine, "_forked") : NULL;
    if (forked) {
        PyObject *done = PyObject_CallMethod(atexit, "register", "O", finish);
        PyObject *call = done ? PyObject_GetAttrString(os, "register_at_fork") : NULL;
        PyObject *none = PyTuple_New(0);
        PyObject *keywords = Py_BuildValue("{s:O}", "after_in_child", forked);
        PyObject *too =
            call && none && keywords ? PyObject_Call(call, none, keywords) : NULL;
        result = too ? 0 : -1;
        Py_XDECREF(done);
        Py_XDECREF(call);
        Py_XDECREF(none);
        Py_XDECREF(keywords);
        Py_XDECREF(too);
    }
    Py_XDECREF(os);
    Py_XDECREF(atexit);
    Py_XDECREF(finish);
    Py_XDECREF(forked);
    engine->prepared = result == 0;
    return result;
}

int functions_start(functions_profile *profile)
{
    functions_engine *const engine = profile->engine;
#ifdef Py_GIL_DISABLED
    PyErr_SetString(
        PyExc_RuntimeError,
        "functions() needs the GIL, which this build of Python does not have");
    return -1;
#endif
    if (profile->running) {
        PyErr_SetString(PyExc_RuntimeError, "this function profile is running already");
        return -1;
    }
    if (core_is_off()) {
        return 0;
    }
    if (engine_prepare(engine) != 0) {
        return -1;
    }
    core_ticks_init();
    lanes_gather(engine);
    if (!engine->seated) {
        engine->builtins = profile->builtins;
        if (functions_seat_take(engine) != 0) {
            return -1;
        }
        engine->seated = true;
    }
    Py_CLEAR(profile->stats);
    Py_INCREF(profile);
    profile->running = true;
    profile->next = engine->running;
    engine->running = profile;
    const bool builtins = engine->builtins;
    engine_changed(engine);
    if (engine->builtins != builtins && functions_seat_change(engine) != 0) {
        functions_note(profile, "calls of native functions could not be switched on");
        core_error_forget();
    }
    profile->begin = core_ticks();
    if (engine->running == profile && !profile->next) {
        engine->due = core_ticks_soon(profile->begin);
    }
    profile->first = profile->first ? profile->first : profile->begin;
    return 0;
}

/* Ends the profile's tracks of all threads. */
static void profile_gather(functions_profile *profile)
{
    struct functions_track *done = NULL;
    for (struct functions_lane *lane = profile->engine->lanes; lane; lane = lane->next) {
        lane_take(lane, profile, &done);
    }
    tracks_free(done);
}

void functions_stop(functions_profile *profile)
{
    functions_engine *const engine = profile->engine;
    functions_profile **at = &engine->running;
    PyObject *type, *value, *traceback;
    if (!profile->running) {
        return;
    }
    PyErr_Fetch(&type, &value, &traceback);
    profile->ran += core_ticks() - profile->begin;
    profile->running = false;
    while (*at != profile) {
        at = &(*at)->next;
    }
    *at = profile->next;
    profile->next = NULL;
    const bool builtins = engine->builtins;
    engine_changed(engine);
    profile_gather(profile);
    if (!engine->running && engine->seated) {
        engine->seated = false;
        functions_seat_leave(engine);
    } else if (engine->builtins != builtins) {
        functions_seat_change(engine);
    }
    core_error_forget();
    if (engine->seat_note) {
        functions_note(profile, "%U", engine->seat_note);
        Py_CLEAR(engine->seat_note);
    }
    if (profile->lost) {
        functions_note(profile, "out of memory: %llu calls were not counted",
                       (unsigned long long)profile->lost);
    }
    sw_functions_set_unit_ns(profile->ended, core_ticks_ns());
    functions_rows_write(profile);
    PyErr_Restore(type, value, traceback);
    Py_DECREF(profile);
}

/* The trace gets what has been counted up to now; nothing ends. */
static void engine_flush(functions_engine *engine)
{
    for (struct functions_lane *lane = engine->lanes; lane; lane = lane->next) {
        for (struct functions_track *track = lane->tracks; track; track = track->next) {
            (void)calls_flush(&track->calls, track->profile->ended);
        }
    }
    for (functions_profile *profile = engine->running; profile; profile = profile->next) {
        const uint64_t ran = profile->ran;
        profile->ran += core_ticks() - profile->begin;
        functions_rows_write(profile);
        profile->ran = ran;
    }
}

void functions_keep(functions_engine *engine)
{
    const uint64_t begin = core_ticks();
    if (sw_is_recording()) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        engine_flush(engine);
        PyErr_Restore(type, value, traceback);
    }
    engine->due = core_ticks_due(begin, core_ticks());
}

void core_functions_flush(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    functions_engine *const engine =
        state ? (functions_engine *)state->slot[CORE_FUNCTIONS_ENGINE] : NULL;
    if (!engine || !engine->running) {
        return;
    }
    lanes_gather(engine);
    engine_flush(engine);
}

sw_functions *functions_collect(functions_profile *profile)
{
    sw_functions *all = NULL;
    int error = sw_functions_create(&all);
    if (!error) {
        lanes_gather(profile->engine);
        const double unit_ns = core_ticks_ns();
        sw_functions_set_unit_ns(profile->ended, unit_ns);
        sw_functions_set_unit_ns(all, unit_ns);
        error = sw_functions_merge(all, profile->ended);
    }
    for (struct functions_lane *lane = profile->engine->lanes; lane && !error;
         lane = lane->next) {
        for (struct functions_track *track = lane->tracks; track && !error;
             track = track->next) {
            error = track->profile == profile ? calls_add_to(&track->calls, all) : SW_OK;
        }
    }
    if (error) {
        sw_functions_free(all);
        PyErr_NoMemory();
        return NULL;
    }
    return all;
}

/* --- The engine as an object -------------------------------------------------------- */

/* At the interpreter's exit, profiles that still run are written down. */
static PyObject *engine_finish(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    functions_engine *const engine = (functions_engine *)self;
    while (engine->running) {
        functions_profile *const profile = engine->running;
        functions_note(profile, "the program ended while the profile ran");
        functions_stop(profile);
    }
    Py_RETURN_NONE;
}

static bool lane_is_mine(const struct functions_lane *lane)
{
    const struct functions_lane *mine =
        lanes_key_error ? NULL : pthread_getspecific(lanes_key);
    while (mine && mine != lane) {
        mine = mine->other;
    }
    return mine != NULL;
}

/* A forked child has one thread, and counts only what it does itself: its parent counts the rest. */
static PyObject *engine_forked(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    functions_engine *const engine = (functions_engine *)self;
    struct functions_track *gone = NULL;
    pthread_once(&lanes_once, make_key);
    for (struct functions_lane **at = &engine->lanes, *lane; (lane = *at) != NULL;) {
        if (lane_is_mine(lane)) {
            for (struct functions_track *track = lane->tracks; track;
                 track = track->next) {
                calls_restart(&track->calls);
            }
            at = &lane->next;
            continue;
        }
        /* Its thread is not here and cannot let go of it: the lane itself stays. */
        *at = lane->next;
        lane->engine = NULL;
        while (lane->tracks) {
            struct functions_track *const track = lane->tracks;
            lane->tracks = track->next;
            track->next = gone;
            gone = track;
        }
    }
    for (functions_profile *profile = engine->running; profile; profile = profile->next) {
        sw_functions *fresh;
        if (sw_functions_create(&fresh) == SW_OK) {
            sw_functions_free(profile->ended);
            profile->ended = fresh;
        }
        profile->begin = profile->first = core_ticks();
        profile->ran = profile->lost = 0;
        functions_rows_free(profile->rows);
        profile->rows = NULL;
    }
    const uint64_t now = core_ticks();
    engine->due = core_ticks_soon(now);
    tracks_free(gone);
    Py_RETURN_NONE;
}

static PyMethodDef engine_methods[] = {
    {"_finish", engine_finish, METH_NOARGS, NULL},
    {"_forked", engine_forked, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static int engine_traverse(PyObject *self, visitproc visit, void *arg)
{
    functions_engine *const engine = (functions_engine *)self;
    Py_VISIT(Py_TYPE(self));
    for (functions_profile *profile = engine->running; profile; profile = profile->next) {
        Py_VISIT(profile);
    }
    for (size_t i = 0; i < sizeof engine->callback / sizeof engine->callback[0]; i++) {
        Py_VISIT(engine->callback[i]);
    }
    for (size_t i = 0; i < FUNCTIONS_BETWEEN; i++) {
        Py_VISIT(engine->between[i]);
    }
    Py_VISIT(engine->missing);
    return 0;
}

static int engine_clear(PyObject *self)
{
    functions_engine *const engine = (functions_engine *)self;
    while (engine->running) {
        functions_stop(engine->running);
    }
    for (size_t i = 0; i < sizeof engine->callback / sizeof engine->callback[0]; i++) {
        Py_CLEAR(engine->callback[i]);
    }
    for (size_t i = 0; i < FUNCTIONS_BETWEEN; i++) {
        Py_CLEAR(engine->between[i]);
    }
    Py_CLEAR(engine->missing);
    Py_CLEAR(engine->seat_note);
    return 0;
}

static void engine_dealloc(PyObject *self)
{
    functions_engine *const engine = (functions_engine *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    engine_clear(self);
    while (engine->lanes) {
        struct functions_lane *const lane = engine->lanes;
        engine->lanes = lane->next;
        lane->engine = NULL;
        lane->serial = 0;
        lane_release(lane);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *functions_seat_call(PyObject *self, PyObject *args, PyObject *kwargs);

static PyType_Slot engine_slots[] = {
    {Py_tp_doc, "The holder of the interpreter's profiling hooks for stepwatch."},
    {Py_tp_methods, engine_methods},
    {Py_tp_traverse, engine_traverse},
    {Py_tp_clear, engine_clear},
    {Py_tp_dealloc, engine_dealloc},
#if PY_VERSION_HEX < 0x030c0000
    {Py_tp_call, functions_seat_call},
#endif
    {0, NULL},
};

static PyType_Spec engine_spec = {
    .name = "stepwatch._core.functions_engine",
    .basicsize = sizeof(functions_engine),
#if PY_VERSION_HEX >= 0x030a0000
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
#else
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
#endif
    .slots = engine_slots,
};

/* Functions of ours that Python calls in the place of others, and that call those: with them the profile is the one that the program
 * has without. Code is known by its address, and kept. */
static PyObject *engine_between(PyObject *module, PyObject *function)
{
    core_state *state = PyModule_GetState(module);
    functions_engine *const engine =
        (functions_engine *)state->slot[CORE_FUNCTIONS_ENGINE];
    if (!engine || !PyFunction_Check(function)) {
        PyErr_SetString(PyExc_TypeError, "_between() takes a function");
        return NULL;
    }
    PyObject *code = PyFunction_GET_CODE(function);
    for (size_t i = 0; i < FUNCTIONS_BETWEEN; i++) {
        if (!engine->between[i]) {
            Py_INCREF(code);
            engine->between[i] = code;
            break;
        }
    }
    Py_INCREF(function);
    return function;
}

static PyMethodDef module_methods[] = {
    {"_between", engine_between, METH_O,
     PyDoc_STR("Leave a function out of function profiles, but not what it calls.")},
    {NULL, NULL, 0, NULL},
};

int functions_engine_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    PyObject *type = PyType_FromModuleAndSpec(module, &engine_spec, NULL);
    if (!type) {
        return -1;
    }
#if PY_VERSION_HEX < 0x030a0000
    ((PyTypeObject *)type)->tp_new = NULL;
#endif
    functions_engine *engine =
        (functions_engine *)((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0);
    Py_DECREF(type);
    if (!engine) {
        return -1;
    }
    engine->tool = -1;
    engine->serial = atomic_fetch_add(&serials, 1) + 1;
    state->slot[CORE_FUNCTIONS_ENGINE] = (PyObject *)engine;
    return PyModule_AddFunctions(module, module_methods);
}
