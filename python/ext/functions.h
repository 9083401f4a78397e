/* The function profiler: an engine (one an interpreter) that has the seat of the interpreter's hooks, and the profiles that
 * run on it, any number at a time.
 *
 *   lane    what a thread keeps for an engine; found by a thread-local pointer
 *   track   the calls of one thread for one profile; hangs on a lane while the profile runs
 *
 * All of this is touched with the GIL only, apart from the end of a thread, which marks its lanes as left. */
#ifndef STEPWATCH_EXT_FUNCTIONS_H
#define STEPWATCH_EXT_FUNCTIONS_H

#include "function_calls.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stepwatch/export.h>

typedef struct functions_engine functions_engine;
typedef struct functions_profile functions_profile;

/* Most functions of ours that stand between those of the program and others. */
enum { FUNCTIONS_BETWEEN = 8 };

struct functions_track {
    struct calls calls;
    functions_profile *profile;
    bool builtins;
    struct functions_track *next;
};

/* Held by its thread and by its engine; the last of them frees it. serial == engine->serial means that its tracks are those
 * of all running profiles. */
struct functions_lane {
    uint64_t serial;
    struct calls *only; /* of its track; NULL: it has none, or several */
    struct functions_track *tracks;
    functions_engine *engine; /* NULL: it is gone */
    atomic_int holders;
    atomic_bool left;             /* by its thread */
    struct functions_lane *other; /* of the same thread, for other engines */
    struct functions_lane *next;  /* of the same engine */
};

struct functions_profile {
    PyObject_HEAD functions_engine *engine; /* strong */
    PyObject *name;                         /* str */
    PyObject *notes;                        /* list of str */
    PyObject *stats;                        /* dict for pstats, or NULL */
    functions_profile *next;                /* running */
    sw_functions *ended; /* calls of threads and runs that are over, in ticks */
    bool builtins, running;
    unsigned depth;      /* of with blocks */
    uint64_t first;      /* ticks when it was first started, 0: never */
    uint64_t begin, ran; /* ticks of this start; in all before it */
    uint64_t lost;
    struct functions_rows *rows; /* what is in the trace */
};

struct functions_engine {
    PyObject_HEAD uint64_t
        serial; /* changes when a profile starts or stops; unique in the process */
    uint64_t
        due; /* ticks; the first call that ends after it puts the counts into the trace */
    functions_profile *running;
    struct functions_lane *lanes;
    bool prepared; /* atexit and fork know it */
    bool seated;
    bool builtins; /* the seat reports native calls */
    int tool;      /* 3.12+: the monitoring tool id */
    PyObject *callback[9];
    PyObject *missing;                    /* sys.monitoring.MISSING */
    PyObject *seat_note;                  /* what went wrong with the seat, or NULL */
    PyObject *between[FUNCTIONS_BETWEEN]; /* code that is not counted, see _between */
};

extern _Thread_local struct functions_lane *functions_here
    __attribute__((tls_model("initial-exec")));

/* The calling thread's lane, up to date; NULL when out of memory. */
struct functions_lane *functions_lane_find(functions_engine *engine);

static inline struct functions_lane *functions_lane(functions_engine *engine)
{
    struct functions_lane *lane = functions_here;
    if (__builtin_expect(lane && lane->serial == engine->serial, 1)) {
        return lane;
    }
    return functions_lane_find(engine);
}

/* A function that a track has not seen yet. NULL: the call is not counted, or (*over) the tracks have changed. */
struct call_function *functions_meet_code(struct functions_lane *lane,
                                          struct functions_track *track, PyObject *code,
                                          bool *over);

/* Puts what has been counted into the trace, so that a program that is killed later leaves it. Runs no code of the
 * program, and changes no track but that its ended calls are in `ended` then. */
void functions_keep(functions_engine *engine);

static inline void functions_enter_code(functions_engine *engine, PyObject *code)
{
    struct functions_lane *lane = functions_lane(engine);
    struct functions_track *track = lane ? lane->tracks : NULL;
    for (; track; track = track->next) {
        struct call_function *function = calls_find(&track->calls, code);
        if (__builtin_expect(!function, 0)) {
            bool over = false;
            function = functions_meet_code(lane, track, code, &over);
            if (over) {
                return;
            }
        }
        if (function) {
            calls_enter(&track->calls, function);
        }
    }
}

static inline void functions_leave(functions_engine *engine, const void *key,
                                   unsigned error)
{
    struct functions_lane *lane = functions_lane(engine);
    struct functions_track *track = lane ? lane->tracks : NULL;
    uint64_t now = 0;
    for (; track; track = track->next) {
        now = calls_leave(&track->calls, key, error);
    }
    if (__builtin_expect(now > engine->due, 0)) {
        functions_keep(engine);
    }
}

/* Both as above, in steady state: one profile runs. False: it is something else, and nothing has been done. */
static inline bool functions_enter_known(const functions_engine *engine, PyObject *code)
{
    const struct functions_lane *lane = functions_here;
    return __builtin_expect(lane && lane->serial == engine->serial && lane->only, 1) &&
           calls_enter_known(lane->only, code);
}

static inline bool functions_leave_known(const functions_engine *engine, const void *key)
{
    const struct functions_lane *lane = functions_here;
    if (__builtin_expect(!lane || lane->serial != engine->serial || !lane->only, 0) ||
        lane->only->top->function->key != key) {
        return false;
    }
    const uint64_t now = core_ticks();
    if (__builtin_expect(now > engine->due, 0)) {
        return false;
    }
    calls_pop(lane->only, now, 0);
    return true;
}

/* `function` is a builtin function, or a method descriptor called with `self`. */
static inline void functions_enter_native(functions_engine *engine, PyMethodDef *method,
                                          PyObject *function, PyObject *self)
{
    struct functions_lane *lane = functions_lane(engine);
    struct functions_track *track = lane ? lane->tracks : NULL;
    for (; track; track = track->next) {
        if (!track->builtins) {
            continue;
        }
        struct call_function *known = calls_find(&track->calls, method);
        if (__builtin_expect(!known, 0)) {
            known = calls_new_native(&track->calls, method, function, self);
        }
        if (known) {
            calls_enter(&track->calls, known);
        }
    }
}

/* Makes the module's engine. */
int functions_engine_add(PyObject *module);
/* 0, or -1 with an exception set. */
int functions_start(functions_profile *profile);
/* Ends the open calls and adds everything up. Never fails; keeps a pending exception. */
void functions_stop(functions_profile *profile);
/* All that has ended up to now, in ticks; NULL with an exception set. The caller frees it. */
sw_functions *functions_collect(functions_profile *profile);
/* A sentence among the profile's notes. */
void functions_note(functions_profile *profile, const char *format, ...);
/* Methods of the type; the profiler does not count calls of them at its end. */
extern PyMethodDef functions_methods[];

/* The seat, one way a version. `take` is called by the first profile, `change` when others come and go, `leave` by the
 * last. take: 0, or -1 with an exception set, which says who has the seat. */
int functions_seat_take(functions_engine *engine);
int functions_seat_change(functions_engine *engine);
void functions_seat_leave(functions_engine *engine);
int functions_seat_add(PyObject *module);

/* Puts what was counted into the trace, if something is recorded. */
void functions_rows_write(functions_profile *profile);
void functions_rows_free(struct functions_rows *rows);

/* Output. */
PyObject *functions_list(const sw_functions *functions);
PyObject *functions_pstats(const sw_functions *functions);
PyObject *functions_text(const sw_functions *functions,
                         const sw_functions_text_options *options);
int functions_save(const sw_functions *functions, PyObject *path,
                   const sw_functions_text_options *options);
/* 0, or -1 with an exception set. */
int functions_sort_get(PyObject *word, enum sw_functions_sort *sort);

#endif
