/* Objects that stand for an iterable or an iterator of the program: length, truth and what they do not have themselves are
 * those of what they stand for. */
#ifndef STEPWATCH_EXT_STAND_IN_H
#define STEPWATCH_EXT_STAND_IN_H

#include "core.h"

/* How the struct of such a type begins. */
typedef struct core_stand_in {
    PyObject_HEAD PyObject *inner; /* NULL: it is used up */
} core_stand_in;

#define CORE_STANDS_IN(type, member)                                                     \
    _Static_assert(offsetof(type, member) == offsetof(core_stand_in, inner),             \
                   "a " #type " begins as every stand-in")

Py_ssize_t core_stand_in_length(PyObject *object);
int core_stand_in_bool(PyObject *object);
PyObject *core_stand_in_length_hint(PyObject *object, PyObject *ignored);
PyObject *core_stand_in_getattr(PyObject *object, PyObject *name);
/* What `close` of an iterator of the program returns; None where it has none, or there is no iterator (NULL). */
PyObject *core_stand_in_close(PyObject *inner);

#endif
