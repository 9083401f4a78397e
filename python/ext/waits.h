/* Where the program waits for a device, and copies to and from it. */
#ifndef STEPWATCH_EXT_WAITS_H
#define STEPWATCH_EXT_WAITS_H

#include "core.h"
#include <stepwatch/stepwatch.h>

/* One wait or copy that is over. */
typedef struct core_wait {
    PyObject *call; /* str: "Tensor.item" */
    enum sw_wait_kind kind;
    uint64_t begin;
    uint64_t end;
    uint64_t bytes;
    bool pinned;
    bool unblocked; /* the caller asked not to wait (non_blocking=True) */
} core_wait;

/* Counts it at the place in the user's code that led here, and puts its record. Leaves no exception. */
void core_waited(const core_wait *wait);

int core_waits_add(PyObject *module);
int core_tensor_calls_add(PyObject *module);

#endif
