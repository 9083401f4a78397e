/* The calls that one thread made while one profile ran: functions, who called whom, and the stack of open calls.
 *
 * Only its thread writes to it, with the GIL. In steady state entering and leaving a call takes no memory: a look into a
 * hash table, one comparison for the caller, and additions.
 *
 * Code objects are found by address, so the table keeps those it knows alive: an address cannot come to mean another
 * function. (The extra slot of code objects would save that reference, but it is one for all threads, and these tables
 * are each thread's own; the look-up here costs no more than following the slot.) A table that grows large lets go
 * of code that nobody else holds, see calls_sweep. */
#ifndef STEPWATCH_EXT_FUNCTION_CALLS_H
#define STEPWATCH_EXT_FUNCTION_CALLS_H

#include "core.h"
#include "ticks.h"
#include <stepwatch/functions.h>

struct call_function;

/* Calls of one function by another. calls counts those that have ended; `active` those that have not. */
struct call_edge {
    struct call_function *caller; /* the bottom of the stack: not known */
    struct call_function *callee;
    uint64_t calls, inner, errors; /* inner: within another call of the same edge */
    uint64_t self, total;          /* ticks; total of calls that are not inner */
    uint32_t active;
    struct call_edge *next; /* of the same callee */
};

/* A function. Its calls, errors and self time are the sums over its edges. */
struct call_function {
    const void *key;        /* code object, or PyMethodDef of a native function */
    struct call_edge *last; /* the edge used last; never NULL */
    uint32_t active;        /* calls that have not ended = sum of active over its edges */
    uint64_t inner, total;  /* as in an edge, but within any call of the function */
    struct call_edge *edges;
    PyObject *what; /* the code object, or a str: a native function's name */
};

/* An open call. The lowest frame is none: its function is the bottom, with a key that no function has. */
struct call_frame {
    struct call_function *function;
    struct call_edge *edge;
    uint64_t begin;
    uint64_t inside; /* ticks in callees */
};

struct call_slot {
    const void *key; /* NULL: free */
    struct call_function *function;
};

struct calls {
    struct call_frame *top, *limit; /* frame[0] <= top < limit */
    struct call_slot *slots;        /* open addressing; mask + 1 of them */
    size_t mask;
    struct call_frame *frames;
    struct call_edge **edges; /* by caller and callee, open addressing */
    size_t edge_mask, edge_count, function_count;
    size_t sweep_at; /* function_count at which it is worth looking for dead code */
    uint64_t lost;   /* calls that were not counted, for want of memory */
    struct call_function bottom;
    const PyMethodDef *own; /* methods of the profile itself, which are not counted */
};

/* 0 or -1 (out of memory, no exception). */
int calls_init(struct calls *calls, const PyMethodDef *own);
/* Frees it without counting anything. With the GIL. */
void calls_free(struct calls *calls);
/* Ends all open calls at this moment, apart from one of `own`. */
void calls_end_open(struct calls *calls);
/* Adds the ended calls to `into` and forgets them. 0 or a negative sw_error. Keeps a pending exception. */
int calls_flush(struct calls *calls, sw_functions *into);
/* Adds the ended calls to `into`. */
int calls_add_to(const struct calls *calls, sw_functions *into);
/* Begins again at this moment: nothing has ended, open calls begin now. For a forked child. */
void calls_restart(struct calls *calls);
/* Whether calls_sweep is due, and it: flushes, then forgets functions whose code nobody else keeps. */
static inline int calls_crowded(const struct calls *calls)
{
    return calls->function_count >= calls->sweep_at;
}
int calls_sweep(struct calls *calls, sw_functions *into);

/* Slow paths of the functions below; NULL when there is no memory, and the call is counted as lost. */
struct call_function *calls_new_code(struct calls *calls, PyObject *code);
struct call_function *calls_new_native(struct calls *calls, PyMethodDef *key,
                                       PyObject *function, PyObject *self);
struct call_edge *calls_find_edge(struct calls *calls, struct call_function *caller,
                                  struct call_function *callee);
int calls_deepen(struct calls *calls);
/* The open call of `key` that the top is not, made the top by ending those above it; 0 when there is none. */
int calls_unwind_to(struct calls *calls, const void *key, uint64_t now);

static inline size_t calls_hash(const void *key)
{
    const uint64_t hash = (uint64_t)(uintptr_t)key * 0x9e3779b97f4a7c15u;
    return (size_t)(hash >> 24);
}

/* NULL: not known yet, or only at another place; the slow path looks properly. */
static inline struct call_function *calls_find(const struct calls *calls, const void *key)
{
    const struct call_slot *slot = &calls->slots[calls_hash(key) & calls->mask];
    if (__builtin_expect(slot->key == key, 1)) {
        return slot->function;
    }
    while (slot->key) {
        slot = slot == &calls->slots[calls->mask] ? calls->slots : slot + 1;
        if (slot->key == key) {
            return slot->function;
        }
    }
    return NULL;
}

/* Opens a call in the frame above the top, which there is. */
static inline void calls_push(struct calls *calls, struct call_function *function,
                              struct call_edge *edge)
{
    struct call_frame *top = calls->top + 1;
    top->function = function;
    top->edge = edge;
    top->inside = 0;
    function->active++;
    edge->active++;
    calls->top = top;
    /* Last, so that the caller pays for what is above, as it pays for making the call. */
    top->begin = core_ticks();
}

/* What calls_enter does in steady state: the function is known, its caller is the one of last time, and there is room. False: it is
 * something else, and nothing has been done. */
static inline bool calls_enter_known(struct calls *calls, const void *key)
{
    struct call_frame *const top = calls->top;
    struct call_function *function = top->function;
    if (function->key != key) { /* it does not call itself */
        const struct call_slot *slot = &calls->slots[calls_hash(key) & calls->mask];
        function = slot->function;
        if (slot->key != key) {
            return false;
        }
    }
    if (function->last->caller != top->function || top + 1 == calls->limit) {
        return false;
    }
    calls_push(calls, function, function->last);
    return true;
}

static inline void calls_enter(struct calls *calls, struct call_function *function)
{
    struct call_frame *const top = calls->top;
    struct call_edge *edge = function->last;
    if (__builtin_expect(edge->caller != top->function, 0)) {
        edge = calls_find_edge(calls, top->function, function);
        if (!edge) {
            return;
        }
        function->last = edge;
    }
    if (__builtin_expect(top + 1 == calls->limit, 0) && calls_deepen(calls) != 0) {
        return;
    }
    calls_push(calls, function, edge);
}

/* Ends the top call, which is not the bottom. */
static inline void calls_pop(struct calls *calls, uint64_t now, unsigned error)
{
    struct call_frame *top = calls->top;
    struct call_function *function = top->function;
    struct call_edge *edge = top->edge;
    const uint64_t ticks = now - top->begin;
    calls->top = top - 1;
    top[-1].inside += ticks;
    edge->self += ticks - top->inside;
    edge->calls++;
    edge->errors += error;
    if (--edge->active == 0) {
        edge->total += ticks;
    } else {
        edge->inner++;
    }
    if (--function->active == 0) {
        function->total += ticks;
    } else {
        function->inner++;
    }
}

/* A call of `key` ended. When it is not the top one, an exit was not reported (3.13 forgets closed generators) or the
 * entry was before the profile: the stack is put right. Returns the time that it was. */
static inline uint64_t calls_leave(struct calls *calls, const void *key, unsigned error)
{
    const uint64_t now = core_ticks();
    if (__builtin_expect(calls->top->function->key == key, 1) ||
        calls_unwind_to(calls, key, now)) {
        calls_pop(calls, now, error);
    }
    return now;
}

#endif
