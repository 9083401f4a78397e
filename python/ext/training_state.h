/* What a thread knows of its training: for the files that decide what a step is, and nobody else.
 *
 *   training.c         sources of steps, validation
 *   training_calls.c   what Python calls
 *   training_update.c  updates, their loops and epochs, loaders that take turns
 *   training_groups.c  loaders and their passes */
#ifndef STEPWATCH_EXT_TRAINING_STATE_H
#define STEPWATCH_EXT_TRAINING_STATE_H

#include "loops.h"
#include "training.h"
#include "training_groups.h"
#include <stepwatch/stepwatch.h>

/* A moment of the open step that may turn out to be its end. */
typedef struct train_moment {
    uint64_t begin, end; /* of what may be the step, in ticks; begin 0: there is none */
    uint64_t phase_ticks[SW_PHASE_COUNT];
    bool brief; /* the step was watched so */
} train_moment;

/* What a thread knows of its training. Invariants: `owner` and `group` mean something only while a pass goes on; `open`
 * is true while the recorder has a step open that somebody began here. */
typedef struct train_state {
    uint32_t recording;
    int rank;      /* source that has proved itself */
    int open_rank; /* of the step that is open */
    bool open;
    bool worked;   /* something was trained in the open step */
    bool computed; /* a module was called with gradients, and not to be trained */
    bool backward; /* … up to a backward */
    bool trains;   /* the owner's batches are trained with */
    bool first;    /* the open step is the first of its owner's */
    bool brief;    /* … is watched in brief, or was to be */
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
    bool idle; /* it takes batches that another thread trains with */
    bool
        spared; /* what is computed with gradients validates, too: nobody trains with its batches */
    unsigned waiting;
    unsigned updates;  /* since the owner last asked */
    const void *owner; /* whose next question ends the open step */
    PyObject *owner_weak;
    const void *group;
    uint64_t asked_at; /* where the owner asked first, see core_user_place */
    bool by_call;      /* the owner is asked by next(), and not by a for loop */
    const void *other; /* who else asked since */
    const void *other_group;
    unsigned other_updates;    /* `updates` at that time */
    const void *other_updater; /* whose the last of them was */
    const void *updater;       /* of the last update */
    unsigned backwards;        /* since the last update */
    uint32_t epoch, epochs;    /* of the open step; how many have been trained */
    uint32_t over;             /* … when a framework's training had ended */
    uint32_t
        briefly; /* questions that were answered in brief; what is above is all that they need */
    loop_place place;         /* of the last update */
    loop_place gathered;      /* of the last backward */
    train_moment other_asked; /* first, where what was taken before was trained with */
    train_moment done;        /* the last update, where the owner is asked by next() */
    train_groups groups;
    struct {
        uint64_t begun;   /* the pass */
        unsigned updates; /* in it */
        uint32_t count;   /* of passes */
        bool none;        /* they are parts of steps: each has one update */
    } pass;               /* over the loop around the updates */
} train_state;

/* What this thread has; NULL: nothing yet. Of an earlier recording, perhaps. */
extern CORE_THREAD_SHARED train_state *core_train_self;

/* The state of this thread in this recording; NULL when nothing is recorded. */
train_state *core_train_state(void);
/* The same where this thread's open step is watched in brief and its owner gives the steps; else NULL. */
train_state *core_train_briefly(void);
/* Ends the open step, if there is one, and begins the next. */
void core_train_step_begin(train_state *state, int rank, PyObject *owner,
                           const void *group, int unit);
void core_train_validation_end(train_state *state);
/* What was answered quickly is told: steps, updates, and whether it waits. */
struct core_quick;
void core_train_settle(train_state *state, const struct core_quick *quick);
/* Where the steps of this state may be noted; NULL: nowhere. */
struct sw_later *core_train_later(train_state *state);
/* How many steps begin before somebody is told of one (core_train_watch). */
uint32_t core_train_untold(void);
/* Updates in a step that is watched in brief; `at`: when the last was, 0: now. */
void core_train_did(train_state *state, unsigned updates, const void *updater,
                    uint64_t at);
/* One more wait, within the one that goes on, has begun. */
void core_train_nested(void);
/* Nothing but the recorder knows that a batch is there. */
void core_train_waited(void);
/* A step of a pass over this begins. */
void core_train_epoch_begin(train_state *state, train_group *group);

/* What a question of `owner` is: 1 a step began, 0 it is part of another's step, 2 of a validation. */
int core_train_question(train_state *state, int rank, PyObject *owner, PyObject *group,
                        bool evaluating, int unit);
/* The owner gives no further steps. */
void core_train_release(const PyObject *owner);
/* What this thread does is no part of the training, from here to where that is taken back. */
void core_train_set_aside(bool begin);
/* Tells this function, or None, of one step in so many, and of none below `after` unless numbers begin anew. */
void core_train_watch(PyObject *watcher, long long every, long long after);
/* The owner of a pass is freed: the loop was left. Called with the dead weak reference. */
PyObject *core_train_owner_gone(PyObject *module, PyObject *weak);
/* Before anything else; `gone` is that function, NULL in other interpreters than the main one. */
void core_train_prepare(PyObject *gone);

/* --- training_update.c ----------------------------------------------------------------- */

/* Notes that the open step may turn out to end here. */
void core_moment_take(const train_state *state, train_moment *moment);
/* `owner` is about to begin a step: where the open one has a batch of each of two loaders that take turns, it was two. */
void core_turns_split(train_state *state, const PyObject *owner);
/* Nobody will ask for the next batch: whether the open step ended with its update, and is put so. */
bool core_step_done(train_state *state);

#endif
