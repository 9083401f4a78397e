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

/* Key of the nearest generator or coroutine on the calling thread's stack; 0: there is none. */
uint64_t core_activation_above(void);

/* What stepwatch.profile makes of a target, with this section. New reference. */
PyObject *core_decorate(PyObject *section, PyObject *target);

#endif
