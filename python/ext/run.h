/* What Run, Table and the control functions know of each other. */
#ifndef STEPWATCH_EXT_RUN_H
#define STEPWATCH_EXT_RUN_H

#include "core.h"

#include "table.h"

/* A Run that is opened when it is first looked at. `path` None: nothing was recorded. */
PyObject *core_run_new(core_state *state, PyObject *path);
/* The source of a run, opened if need be; the caller releases it. NULL with an exception. */
core_source *core_run_source(PyObject *run);
/* 0, or -1 with ValueError when the run was closed. */
int core_run_check(PyObject *run);

/* Methods of Run: run_export.c. */
PyObject *core_run_export(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *core_run_export_fd(PyObject *self, PyObject *args);
PyObject *core_run_trace_files(PyObject *self, PyObject *steps);

/* Methods of a run: see tensorboard.c. */
PyObject *core_run_tensorboard(PyObject *self, PyObject *folder);
PyObject *core_run_chart(PyObject *self, PyObject *name);

/* tp_new of types that only the library makes. */
PyObject *core_no_new(PyTypeObject *type, PyObject *args, PyObject *kwargs);

PyObject *core_table_new(core_state *state, PyObject *run, enum core_table_number number);
int core_table_add(PyObject *module);

/* Raises what an error of the library is in Python, with its sentence. Always NULL. */
PyObject *core_raise(int error, const sw_error_info *info);

/* Text of a program: what is not UTF-8 becomes U+FFFD. */
static inline PyObject *core_decode(const char *data, size_t length)
{
    return PyUnicode_DecodeUTF8(data, (Py_ssize_t)length, "replace");
}

#endif
