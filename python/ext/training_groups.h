/* Loaders, and whatever else passes are made over: what a thread knows of them. */
#ifndef STEPWATCH_EXT_TRAINING_GROUPS_H
#define STEPWATCH_EXT_TRAINING_GROUPS_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>

enum { TRAIN_GROUPS = 32 };
enum group_kind { GROUP_UNKNOWN, GROUP_TRAINS, GROUP_EVALUATES };

/* A loader, or whatever else a pass is made over. */
typedef struct train_group {
    const void *object; /* NULL: the entry is free */
    PyObject *weak;     /* NULL: it cannot have one, and its address must do */
    enum group_kind kind;
    uint32_t passes;
    uint32_t before; /* epochs that were over when its first step began */
    bool begun;      /* it has had a step */
    bool turns;      /* it takes turns with another, each for updates of their own */
    bool spares;     /* it evaluates with gradients, which nobody uses */
} train_group;

/* All zero, there are none. */
typedef struct train_groups {
    train_group list[TRAIN_GROUPS];
    unsigned newest;
    uint32_t
        passes; /* most of those that were trained on, are gone, and have given way */
} train_groups;

/* A weak reference, or NULL without an exception: the object cannot have one. */
PyObject *core_weak_of(PyObject *object, PyObject *callback);

/* The entry of a group that is known and still there, or NULL. */
train_group *core_group_find(train_groups *groups, const void *object);
/* The entry of a group; the oldest one gives way. */
train_group *core_group_get(train_groups *groups, PyObject *object);
enum group_kind core_group_kind(train_groups *groups, const void *object);
/* Lets go of what it refers to. */
void core_groups_clear(train_groups *groups);

#endif
