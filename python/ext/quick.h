/* Questions for the next batch, and updates, in steps that are watched in brief, at the least cost.
 *
 * What a step costs there is lines of the cache: code and data of ours that the computation has driven out. So as long as nothing
 * unusual happens a question for a batch is answered here, from one small struct, and the recorder's notes (<stepwatch/later.h>); what
 * else the extension knows of a training is told when somebody asks for it. Only with the GIL. */
#ifndef STEPWATCH_EXT_QUICK_H
#define STEPWATCH_EXT_QUICK_H

#include "loader_pass.h"
#include "ticks.h"
#include "training_state.h"
#include <stepwatch/later.h>

/* Invariants: `iterator`, `owner` and `later` are NULL, or all that is quick holds for the thread of `state`, whose open step is watched in
 * brief. What is counted below belongs to `state` and `pass` and is not told yet. */
typedef struct core_quick {
    const PyObject
        *iterator; /* whose next() is asked; like the others here, to be compared only */
    const PyObject *owner; /* whose question begins a step */
    const PyObject
        *nested; /* an iterator of torch's that the other one asks; NULL: none */
    sw_later *later;
    train_state *state;
    uint32_t left;    /* questions until one has to be looked at */
    bool waiting;     /* for a batch */
    bool by_call;     /* when the last update was is wanted */
    bool worked;      /* the open step had a backward */
    uint32_t asked;   /* questions that began a step */
    uint32_t batches; /* that were got */
    uint32_t updates; /* in the open step */
    uint64_t began;   /* the wait */
    uint64_t updated; /* when the last update was */
    const void *updater;
    uint64_t wait_ticks, shortest, longest;
    core_loader_pass *pass; /* of the iterator that is torch's; NULL: there is none */
} core_quick;

extern core_quick core_quick_now;

/* From here on, with these; the open step's batch has just been got. `pass` NULL: the iterator is not torch's. */
void core_quick_begin(train_state *state, PyObject *iterator, core_loader_pass *pass);
/* In brief this iterator of torch's was asked while another one was waited for. */
void core_quick_saw(const PyObject *iterator, core_loader_pass *pass);
/* Something happened, or is asked: nothing is quick any more. On any thread. */
void core_quick_stop(void);
/* The same on the thread whose training it is: what was counted is told. */
void core_quick_settle(void);
/* What was got is counted for its loader, before the trace ends. On any thread. */
void core_quick_put(void);
/* A pass is freed. */
void core_quick_forget(const core_loader_pass *pass);

static inline bool core_quick_is_mine(const core_quick *quick)
{
    return quick->state == core_train_self;
}

/* `owner` begins a step, and waits for a batch if it is the iterator. False: nothing was done. */
static inline bool core_quick_ask(const PyObject *owner, uint64_t now)
{
    core_quick *quick = &core_quick_now;
    if (quick->owner != owner || quick->left == 0 || quick->waiting ||
        !core_quick_is_mine(quick) ||
        !sw_later_step(quick->later, now, quick->iterator == owner)) {
        return false;
    }
    quick->left--;
    quick->asked++;
    quick->updates = 0;
    quick->worked = false;
    return true;
}

/* next() of the iterator is called. */
static inline bool core_quick_wait(const PyObject *iterator)
{
    core_quick *quick = &core_quick_now;
    if (quick->iterator != iterator) {
        return false;
    }
    const uint64_t now = core_ticks();
    if (quick->owner == iterator ? !core_quick_ask(iterator, now)
                                 : (quick->waiting || !core_quick_is_mine(quick) ||
                                    !sw_later_wait(quick->later, now))) {
        return false;
    }
    quick->began = now;
    quick->waiting = true;
    return true;
}

static inline void core_quick_count(core_quick *quick, uint64_t took)
{
    quick->batches++;
    quick->wait_ticks += took;
    quick->shortest = took < quick->shortest ? took : quick->shortest;
    quick->longest = took > quick->longest ? took : quick->longest;
}

/* Whether next() of this iterator is a part of the wait that goes on. */
static inline bool core_quick_is_nested(const PyObject *iterator)
{
    const core_quick *quick = &core_quick_now;
    return quick->nested == iterator && quick->waiting && core_quick_is_mine(quick);
}

/* The batch is there. False: somebody has asked meanwhile, and was told that it is waited for. */
static inline bool core_quick_got(void)
{
    core_quick *quick = &core_quick_now;
    const uint64_t now = core_ticks();
    if (!quick->waiting || !core_quick_is_mine(quick)) {
        return false;
    }
    quick->waiting = false;
    if (!quick->nested) {
        core_quick_count(quick, now - quick->began);
    }
    if (!sw_later_waited(quick->later, now)) {
        core_train_waited();
    }
    return true;
}

/* A backward begins. */
static inline bool core_quick_works(void)
{
    core_quick *quick = &core_quick_now;
    if (!quick->owner || quick->waiting || !core_quick_is_mine(quick)) {
        return false;
    }
    quick->worked = true;
    return true;
}

/* An optimizer has stepped. */
static inline bool core_quick_update(const PyObject *optimizer)
{
    core_quick *quick = &core_quick_now;
    if (!quick->owner || quick->waiting || !core_quick_is_mine(quick)) {
        return false;
    }
    if (!sw_later_update(quick->later)) {
        sw_update();
    }
    quick->updates++;
    quick->updater = optimizer;
    if (quick->by_call) {
        quick->updated = core_ticks();
    }
    return true;
}

#endif
