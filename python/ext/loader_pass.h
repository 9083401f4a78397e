/* Passes over loaders, and how next() of their iterators is seen. */
#ifndef STEPWATCH_EXT_LOADER_PASS_H
#define STEPWATCH_EXT_LOADER_PASS_H

#include "core.h"
#include <stdbool.h>
#include <stdint.h>

typedef struct core_loader_pass {
    PyObject_HEAD PyObject *iterator; /* a weak reference, like that to the loader */
    PyObject *loader;
    PyObject *wait, *first; /* stages */
    PyObject *fetch;        /* the stage of making a batch, or None: workers do that */
    PyObject *pin;          /* a stage, or None */
    unsigned long long number;
    unsigned epoch, index;
    uint64_t began;
    /* What was put where to see how batches are made is put back while steps are watched in brief. The iterator's attribute
     * _stepwatch_exchanged is a list of (object or None for the iterator, name, what is there now, what was). */
    bool rests;
    char direct; /* nothing needs to be done around a batch but to ask and to get it */
} core_loader_pass;

extern PyObject *core_loader_pass_type;

/* Whether it is the pass of this iterator, which the caller holds. */
bool core_loader_pass_is_of(const core_loader_pass *self, const PyObject *iterator);
/* The loop asks for its next batch. No exception is left. */
void core_loader_ask(core_loader_pass *self, PyObject *iterator);
/* The batch is there; this process made it. */
void core_loader_got(core_loader_pass *self);
/* The same where the step is watched in brief: the batch is not counted. */
void core_loader_got_briefly(core_loader_pass *self);
/* So many batches of steps in brief were got, which were waited for as long as that. */
void core_loader_got_many(core_loader_pass *self, uint32_t batches, uint64_t ticks,
                          uint64_t shortest, uint64_t longest);
/* What a weak reference refers to, a new reference; NULL: it is gone, or this is none. */
PyObject *core_referred(PyObject *weak);
/* passes.get(id(iterator)), borrowed; NULL: there is none, or an exception is set. */
PyObject *core_loader_pass_find(PyObject *passes, PyObject *iterator);

/* --- loader_next.c -------------------------------------------------------------------- */

PyObject *core_loader_slots(PyObject *module, PyObject *const *args, Py_ssize_t count);
PyObject *core_loader_slot(PyObject *module, PyObject *type);
/* A pass is freed. */
void core_loader_pass_forget(const core_loader_pass *pass);

#endif
