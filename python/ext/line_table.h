/* What the line profiler counts: a table for each watched code object, and for each thread the activations of watched code
 * that run on it.
 *
 * Everything here is done with the GIL. No function below runs Python code or lets go of the GIL while it changes tables or
 * stacks, so whoever holds the GIL may look at those of every thread. */
#ifndef STEPWATCH_EXT_LINE_TABLE_H
#define STEPWATCH_EXT_LINE_TABLE_H

#include "frames.h"
#include "ticks.h"
#include <stdint.h>

typedef struct line_cell {
    uint64_t hits;  /* times the interpreter arrived at the line */
    uint64_t ticks; /* spent there, callees included */
} line_cell;

/* A watched code object. Lives while anybody uses it: `users` are entries of Lines objects and hooks in bytecode. Invariant:
 * open > 0 only while watchers > 0. */
typedef struct line_code {
    struct line_code *next;
    PyObject *code; /* the code as the program made it; owned */
    PyObject *name; /* qualified name; owned */
    PyObject *
        watched; /* the code that runs in its place: before 3.12 one with hooks, borrowed, NULL when it is gone */
    unsigned users;
    unsigned entries;  /* those of the users that are Lines objects */
    unsigned watchers; /* enabled Lines objects that contain it */
    unsigned open;     /* activations on stacks of threads */
    uint32_t first;    /* line of cells[0] */
    uint32_t count;    /* cells; one more follows for lines out of range */
    uint32_t last;     /* last line of the function's text, nested functions included */
    line_cell
        *suspended; /* where a generator of this code was last suspended (before 3.12) */
    line_cell *cells;
    unsigned char *has_line; /* count: 1 where code lies on the line */
    /* The trace: rows of the recording `number`, counted from `base`. */
    uint32_t number;
    line_cell *base;
    uint64_t *handles;
} line_code;

/* One activation that runs. `cell` is the line it is on, since `since`. */
typedef struct line_frame {
    core_frame *frame;
    PyObject *code; /* table->watched, for a quick look */
    line_code *table;
    line_cell *cell;
    uint64_t since;
} line_frame;

/* Activations of one thread; base[0] is a sentinel that no frame matches; `top` is the newest. */
typedef struct line_thread {
    struct line_thread *next, **link;
    line_frame *top;
    line_frame *base;
    line_frame *end; /* one past the room */
#if PY_VERSION_HEX < 0x030c0000
    Py_tracefunc theirs; /* trace function that was there before ours */
    int after_hook; /* offset behind a handler's hook in 3.9, 0 none: a line told there was counted */
#endif
} line_thread;

extern __thread line_thread *core_line_thread __attribute__((tls_model("initial-exec")));

static inline line_cell *line_cell_at(const line_code *table, uint32_t line)
{
    const uint32_t index = line - table->first;
    return &table->cells[index < table->count ? index : table->count];
}

/* The calling thread's stack; NULL when out of memory. */
line_thread *core_line_thread_make(void);
static inline line_thread *line_thread_now(void)
{
    line_thread *thread = core_line_thread;
    return __builtin_expect(thread != NULL, 1) ? thread : core_line_thread_make();
}

/* Makes room for one more, throwing out activations whose frames are gone. 0 or -1. */
int core_line_make_room(line_thread *thread, core_frame *now);

/* A new activation on top. Any older one of the same frame is over: its end was not told. */
static inline void line_push(line_thread *thread, core_frame *frame, line_code *table,
                             line_cell *cell, uint64_t now)
{
    if (thread->top->frame == frame) {
        thread->top->table->open--;
        thread->top--;
    }
    if (thread->top + 1 == thread->end && core_line_make_room(thread, frame) != 0) {
        return;
    }
    *++thread->top = (line_frame){frame, table->watched, table, cell, now};
    table->open++;
}

/* Makes the frame's activation the newest, forgetting those above it, which ended without being told. False: there is
 * none. */
int core_line_find(line_thread *thread, core_frame *frame, PyObject *code);
static inline int line_find(line_thread *thread, core_frame *frame, PyObject *code)
{
    if (__builtin_expect(thread->top->frame == frame && thread->top->code == code, 1)) {
        return 1;
    }
    return core_line_find(thread, frame, code);
}

/* Ticks; the first line after it puts the counts into the trace, so that a program that is killed later leaves them. */
extern uint64_t core_line_due;
/* Does so. Runs no code of the program, and moves no activation. */
void core_lines_keep(void);
static inline int line_is_due(uint64_t now)
{
    return __builtin_expect(now > core_line_due, 0) != 0;
}

/* Ends the newest activation. */
static inline void line_pop(line_thread *thread, uint64_t now)
{
    line_frame *top = thread->top--;
    top->cell->ticks += now - top->since;
    top->table->open--;
}

/* Arrival of the newest activation at a line. */
static inline void line_arrive(line_frame *top, line_cell *cell, uint64_t now)
{
    top->cell->ticks += now - top->since;
    top->since = now;
    top->cell = cell;
    cell->hits++;
}

/* Adds what running activations have spent on their lines up to now. */
void core_line_flush(void);
/* Ends the activations of a code on all threads. */
void core_line_end_all(line_code *table);

/* The table of a code object, made when `make`; counts as one more user. `code` may be the one that runs in its place. NULL
 * with an exception set, or without one when there is none and `make` is 0. */
line_code *core_line_code(PyObject *code, PyObject *name, int make);
void core_line_code_release(line_code *table);
extern line_code *core_line_codes; /* all of them */
/* How often this process came from a fork: counts of before that are not its own. */
extern unsigned core_line_forks;

/* How the interpreter tells us (lines_monitoring.c from 3.12 on, lines_settrace.c before). */
/* Whether lines can be watched here; sets RuntimeError if not. 0 or -1. */
int core_line_events_check(void);
/* Lets a code object be watched: gives the code that runs in its place, a new reference. */
PyObject *core_line_events_prepare(line_code *table);
/* Switches events of a code on or off. 0, or -1 with an exception set. */
int core_line_events_switch(line_code *table, int on);

#endif
