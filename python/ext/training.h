/* Who gives a thread its steps: what the other files of the extension need to know. */
#ifndef STEPWATCH_EXT_TRAINING_H
#define STEPWATCH_EXT_TRAINING_H

#include "core.h"
#include <stdbool.h>

/* Sources of steps; a higher one wins. */
enum train_source {
    TRAIN_NONE = 0,
    TRAIN_LOOP = 1,      /* a loop of the program, found by watching it */
    TRAIN_UPDATE = 2,    /* calls of an optimizer, or of a compiled update */
    TRAIN_LOADER = 3,    /* batches of a data loader */
    TRAIN_FRAMEWORK = 4, /* a framework's own word */
    TRAIN_EXPLICIT = 5   /* the program's own calls */
};

/* An optimizer was built, or has stepped, in this process. */
extern bool core_optimizer_known;

/* The program itself says what a step is: from now on nobody else does on this thread. */
void core_train_explicit(void);
/* Tells who watches steps that one has begun. */
void core_train_told(void);
/* The recording ends: a step that had only just begun did not happen. */
void core_train_finish(void);
/* A training forward (false) or a backward (true) begins on this thread. */
void core_train_works(bool backward);
/* Whether this thread is the one whose steps are watched in brief. */
bool core_train_in_brief(void);
/* A module is called in eval mode, but with gradients: that may be either. */
void core_train_computes(void);
/* A module is called in eval mode without gradients; `trained`: it was trained before. */
void core_train_evaluates(bool trained);
/* An iteration of a loop that is over was a step, as it turns out, of this epoch (UINT32_MAX: of none that is known); false: somebody
 * else gives the steps. */
bool core_train_past(int unit, uint32_t epoch, uint64_t begin, uint64_t end,
                     uint64_t wait, const uint64_t *phase_ticks);
/* Ticks of each phase in the step that leads to the first update, which may turn out to be several, or, where nobody has given a
 * step yet, since they are counted: see sw_step_phases. */
uint64_t core_train_phases(uint64_t *phase_ticks);
/* Whether nobody gives steps but who knows of updates, or of loops. */
bool core_train_may_host(void);
/* Then a loop in whose iterations updates are called gives this thread its steps from now on, and goes before them. */
bool core_train_host(void);
/* An optimizer has stepped, or another `owner` of updates says that there was one. */
void core_train_update(PyObject *owner);
/* The same; short where the step is watched in brief. */
void core_train_updated(PyObject *owner);
/* Whether this thread is making, or waiting for, a batch. */
bool core_train_waits(void);
/* What follows is no validation. */
void core_train_resumes(void);
/* What this thread does is no part of the training: it gives no steps, and calls of modules and optimizers are not told. */
bool core_train_aside(void);
/* Whether a framework gives this thread its steps. */
bool core_train_by_framework(void);
/* A loop asks for its next batch: 1 a step began, 0 it is part of one, 2 of a validation. `group`: NULL or what the pass
 * is over. */
int core_train_ask(int source, PyObject *owner, PyObject *group, bool evaluating);
/* The same, where steps are watched in brief and this one is as the one before; false: it is not, and nothing was done. */
bool core_train_ask_briefly(const PyObject *owner);
/* Whether this owner's loop has a step open, so that its next question ends that. */
bool core_train_goes_on(const PyObject *owner);
/* The batch is there. */
void core_train_got(void);
/* There is no further batch, or asking for it raised. An exception stays. */
void core_train_over(PyObject *owner, bool failed);
/* Waits nest: only the outermost one of a thread is a section. Returns whether this one is. */
bool core_train_wait_begin(void);
bool core_train_wait_end(void);

int core_training_add(PyObject *module);

#endif
