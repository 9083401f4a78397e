/* What the files of the extension share. */
#ifndef STEPWATCH_EXT_CORE_H
#define STEPWATCH_EXT_CORE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

/* State of one module object; every interpreter has its own. */
typedef struct core_state {
    PyObject *section_type;
    PyObject *sections; /* name -> section: one object per name, made once */
} core_state;

/* A string as UTF-8 that any text has, lone surrogates included: what a program says about itself
 * must not be able to raise. `owner` keeps the bytes alive; release it with text_release. */
typedef struct core_text {
    const char *data;
    Py_ssize_t length;
    PyObject *owner;
} core_text;

/* 0, or -1 with TypeError (not a string) or MemoryError set. */
int core_text_get(PyObject *object, const char *what, core_text *out);
void core_text_release(core_text *text);

/* stepwatch.section; a new reference, or NULL with an exception set. */
PyObject *core_section_type_new(PyObject *module);

#endif
