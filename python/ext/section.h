/* A section as the other files of the extension see it. */
#ifndef STEPWATCH_EXT_SECTION_H
#define STEPWATCH_EXT_SECTION_H

#include "core.h"
#include <stepwatch/record.h>

typedef struct core_section {
    PyObject_HEAD vectorcallfunc call;
    sw_section *handle; /* of the recorder; for ever */
    PyObject *name;     /* exactly a str */
    PyObject *weak;
    int phase; /* enum sw_phase, or SW_PHASE_INHERIT */
} core_section;

/* On 3.14 `with` calls methods without binding them. */
#define CORE_PLAIN_METHODS (PY_VERSION_HEX >= 0x030e0000)

/* What an exception's class that leaves a section counts as. A generator that is closed while it waits inside one did
 * nothing wrong. */
unsigned core_exit_flags(PyObject *exception);

/* Gives a type __enter__ and __exit__ such that `with` calls the object itself, see section.c, and makes it immutable.
 * 0 or -1. */
int core_with_add(PyTypeObject *type, PyMethodDef *enter, PyMethodDef *leave);

/* Number of a phase by its name; -1 with an exception that names all. */
int core_phase_number(PyObject *phase);

/* Key of the nearest generator or coroutine on the calling thread's stack; 0: there is none. */
uint64_t core_activation_above(void);

/* What stepwatch.profile makes of a target, with this section. New reference. */
PyObject *core_decorate(PyObject *section, PyObject *target);

#endif
