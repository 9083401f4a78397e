/* Steps from plain loops: which loop of the program is its training loop.
 *
 *   loops.c             what is known of each loop, the choice, the steps of the chosen one
 *   loops_past.c        its iterations before the choice
 *   loops_audit.c       the program's modules, before they run
 *   loops_monitoring.c  how loops are seen from Python 3.12 on: events of sys.monitoring
 *   loops_hooks.c       how they are seen before: hooks in the code (stepwatch/_loop_code.py puts them there)
 *
 * Glossary: a *pass* is one way through a loop, from its beginning to its end. To *ask* is to want the next iteration: the
 * step ends and the next begins. A loop is *given up* when its iterations are too short for steps.
 *
 * All of it is done with the GIL, and by the main thread. */
#ifndef STEPWATCH_EXT_LOOPS_H
#define STEPWATCH_EXT_LOOPS_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/stepwatch.h>

enum loop_state { LOOP_SEARCHED, LOOP_GIVEN_UP, LOOP_CHOSEN };

/* An iteration of a loop that nobody has chosen yet: it was a step, if the loop is chosen later. */
typedef struct loop_past {
    uint64_t begin, end, wait; /* ticks */
    uint32_t epoch;            /* UINT32_MAX: there is no loop around it */
} loop_past;

/* The phases of such an iteration, or all that are counted so far. */
typedef struct loop_phases {
    uint32_t past;  /* which iteration */
    uint64_t begun; /* the counting: a tick; 0: they are not known */
    uint64_t ticks[SW_PHASE_COUNT];
} loop_phases;

typedef struct core_loop {
    struct core_loop *next; /* all loops that live */
    PyObject *file, *function;
    uint32_t line;
    bool is_for;
    bool is_gone;      /* its code was freed */
    bool surpassed;    /* one within it was kept as what may have trained */
    bool counts_steps; /* its item is called a step, a batch … */
    bool yields; /* it is a generator's: what happens meanwhile need not be within it */
    enum loop_state state;
    uint64_t asks;      /* iterations that ended */
    uint64_t intervals; /* those whose time is known, and their time */
    uint64_t ticks;
    uint64_t longs;            /* those that are long enough for a step */
    uint32_t longest;          /* iterations of the longest pass */
    uint32_t elsewhere;        /* iterations on other threads */
    struct core_loop *parent;  /* the loop that it last ran in */
    uint64_t parent_base;      /* ticks of the parent before it ran in it */
    uint64_t in_parent;        /* its own share of the parent's ticks since */
    uint64_t parent_intervals; /* iterations of the parent before it ran in it */
    uint64_t parent_ran;       /* those since in which it ran */
    bool hosts;                /* an update is called once in each of its iterations */
    const void *hosted; /* … by whom, to be compared only: the place that it noted */
    bool gathers;       /* … or a backward is, and an update in some */
    loop_past *past;
    uint32_t past_count, past_room, past_recording;
    loop_phases *phases; /* of those that had any */
    uint32_t phases_count, phases_room;
    loop_phases base; /* when the iteration that goes on began */
    /* For the engine. */
    void *owner; /* what the loop is part of */
    const uint8_t *inside;
    uint32_t units, head[2], exit[16], head_count, exit_count;
} core_loop;

#define LOOP_KIDS 4

typedef struct core_pass {
    core_loop *loop; /* NULL: it was freed meanwhile */
    const void *key; /* frame or iterator that the pass belongs to */
    uint64_t begun, asked, got;
    uint32_t count; /* iterations that ended */
    bool emits;     /* gives the steps */
    bool told;      /* of the epoch */
    struct {
        core_loop *loop;
        uint64_t ticks;
    } kids[LOOP_KIDS]; /* loops that ran in the iteration that goes on */
} core_pass;

/* --- loops.c ------------------------------------------------------------------------ */

extern bool core_loops_on;     /* looked for, or chosen */
extern core_loop *core_chosen; /* NULL: none yet */

/* A new loop that belongs to nobody yet; NULL: no memory. The texts are the code's. */
core_loop *core_loop_new(PyCodeObject *code, uint32_t line, bool is_for);
void core_loop_free(core_loop *loop);
/* Whether this thread is the one whose loops count. */
bool core_loops_here(void);
/* Counts an iteration of another thread; true: the loop is given up. */
bool core_loop_elsewhere(core_loop *loop);

/* The passes that go on, outermost first. */
core_pass *core_pass_top(void);
unsigned core_pass_depth(void);
core_pass *core_pass_at(unsigned index);

/* A pass begins; the first iteration is asked for, or, `late`, one has ended already. NULL: there are too many. */
core_pass *core_pass_begin(core_loop *loop, const void *key, bool late);
/* The next iteration is asked for. False: the loop is given up; the pass is over. */
bool core_pass_ask(core_pass *pass);
/* It began. */
void core_pass_got(core_pass *pass);
/* There is none (ended), or the loop was left: with its work done (complete), or not. Passes within it end, too. */
enum pass_end { PASS_ENDED, PASS_LEFT, PASS_COMPLETE, PASS_FORGOTTEN };
void core_pass_end(core_pass *pass, enum pass_end how);

/* Where an update was called last: the iteration of the innermost loop around it. */
typedef struct loop_place {
    core_loop *loop; /* to be compared only */
    uint64_t begun;  /* the pass */
    uint32_t count;  /* the iteration */
    uint32_t often;  /* iterations of this loop with one call so far */
} loop_place;

/* Something is called here, on this thread, that may turn out to be an update. */
void core_loop_noted(loop_place *place);
/* Whether this thread still is in that iteration, or in a loop within it. */
bool core_loop_is_here(const loop_place *place);
/* Whether the loop of that place goes on here, within another one. */
bool core_loop_is_inner(const loop_place *place);
/* A backward begins here. */
void core_loop_backward(loop_place *place);
/* It is one. Tells whether a loop gives the steps that the call is part of: one in whose iterations the update is called once
 * each. `*open`: such a step is open. */
bool core_loop_hosts(const loop_place *place, bool *open);

/* The same for updates that are known where they happen: a loop that waits for what it goes through hosts them. */
bool core_loop_hosts_waiting(const loop_place *place);
/* The same where gradients of several batches make an update, which happens here: `backward` is where the last of `count` was
 * called since the update before. Each batch is an iteration of the loop around both. */
bool core_loop_hosts_gathering(const loop_place *backward, unsigned count);
/* The recording ends: if nobody gave steps, and one of the loops that are over would have, its iterations were steps. */
void core_loops_finish(void);
/* A loader gives the steps: no loop will. */
void core_loops_overruled(void);

/* --- loops_past.c -------------------------------------------------------------------- */

/* A pass over a loop that is not chosen begins. */
void core_past_begin(core_loop *loop);
/* An iteration of a loop that is not chosen has ended; `recording`: number of the one that goes on, 0: none does. */
void core_past_add(core_loop *loop, const loop_past *past, uint32_t recording);
/* Puts them into the trace as steps, and returns how many these are. */
uint64_t core_past_put(core_loop *loop, int unit);
void core_past_forget(core_loop *loop);

/* --- the engine ---------------------------------------------------------------------- */

/* Begins to see loops. 0, or -1 with an exception set. */
int core_loop_events_start(PyObject *module);
/* Sees the loops of this code, and of the functions in it, which is about to run for the first time. 0 or -1. */
int core_loop_events_watch(PyObject *module, PyObject *code);
/* One was chosen: it has to be seen whole. */
void core_loop_events_choose(core_loop *loop);
/* No loop is of interest any more. */
void core_loop_events_stop(void);
int core_loop_events_add(PyObject *module);

/* See modules of the program before they run, until nobody looks for loops. 0, or -1 with an exception set. */
int core_loops_listen(PyObject *module);
void core_loops_unlisten(void);
bool core_loops_listens(void);
/* _await_main(function): calls it with the code of each module that is about to run, until it returns True. */
PyObject *core_await_main(PyObject *module, PyObject *function);

#endif
