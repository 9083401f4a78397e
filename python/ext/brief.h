/* Steps that are watched in brief: hooks in what every step does leave early, so that watching short steps costs little.
 *
 * A hook costs a microsecond or two beside the sections it makes, for its code and data are in no cache between computations; a
 * step has a dozen or more. So where steps are short only some of them are looked at in full: the first ones, and then a few in
 * a row now and then. Of the others the recorder knows when they began and ended, and the phases of SW_PHASES_ALWAYS. */
#ifndef STEPWATCH_EXT_BRIEF_H
#define STEPWATCH_EXT_BRIEF_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>

struct train_state;

/* The open step is watched in brief. Read by every hook; with the GIL. */
extern bool core_brief;
/* Calls of hooks in looked-at steps, those of modules apart, for what looking at a step costs. */
extern struct core_brief_calls {
    uint32_t hooks, modules;
} core_brief_calls;

/* Whether any step may be; false for good once core_brief_never was called. */
extern bool core_brief_may;

/* A step of this thread has begun, given by a source of this rank; `anew`: by another owner than the one before. Decides whether
 * it is watched in brief. */
void core_brief_next(const struct train_state *state, int rank, bool anew);
/* Whether the next step of this thread is one more that is watched in brief, with nothing to decide; then it is counted. */
bool core_brief_goes_on(const struct train_state *state);
/* How many more there are; that so many have been. */
uint32_t core_brief_left(const struct train_state *state);
void core_brief_went_on(uint32_t steps);
/* Something happened that no usual step has, such as a validation: from here on everything is watched. */
void core_brief_end(void);
/* The same, and what is called from here to the next step is no part of what looking at a step costs. */
void core_brief_apart(void);
/* The next step is looked at in full, for it is the first of a pass. */
void core_brief_look(void);
/* Whether this thread is the one that trains, as far as steps in brief go. */
bool core_brief_is_trainer(const struct train_state *state);
/* Whether a call of this module, which is not in training mode, must be seen all the same while steps are watched in brief. */
bool core_brief_sees(PyObject *module);
/* A section was made by the program itself, or its allocations are counted by section: its paths want every hook, so steps are
 * never watched in brief. */
void core_brief_never(void);

int core_brief_add(PyObject *module);

#endif
