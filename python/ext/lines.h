/* The Lines object, for the files that make it. */
#ifndef STEPWATCH_EXT_LINES_H
#define STEPWATCH_EXT_LINES_H

#include "line_table.h"
#include <structmember.h>

/* A function of a Lines object. What it counted is kept + (table's cells - base) while `on`, else kept. */
typedef struct lines_entry {
    line_code *table;
    PyObject *watched;   /* code that runs; owned */
    PyObject *functions; /* list: those whose code was replaced (before 3.12) */
    line_cell *base, *kept;
    unsigned forks;
    int on;
} lines_entry;

typedef struct lines_object {
    PyObject_HEAD vectorcallfunc vectorcall;
    lines_entry *entries;
    size_t count, room;
    int enabled;
    int told; /* to count or not to; else it counts since it was made */
} lines_object;

/* Brings `kept` of all entries up to date. */
void core_lines_collect(lines_object *self);

PyObject *core_lines_rows(lines_object *self, PyObject *ignored);
PyObject *core_lines_text(lines_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_lines_to_json(lines_object *self, PyObject *ignored);
PyObject *core_lines_to_dict(lines_object *self, PyObject *ignored);
PyObject *core_lines_print(lines_object *self, PyObject *args, PyObject *kwargs);
PyObject *core_lines_save(lines_object *self, PyObject *path);
extern const char core_lines_rows_doc[], core_lines_text_doc[], core_lines_to_json_doc[],
    core_lines_to_dict_doc[], core_lines_print_doc[], core_lines_save_doc[];

#define CORE_LINES_OUTPUT_METHODS                                                        \
    {"rows", (PyCFunction)core_lines_rows, METH_NOARGS, core_lines_rows_doc},            \
        {"text", (PyCFunction)(void (*)(void))core_lines_text,                           \
         METH_VARARGS | METH_KEYWORDS, core_lines_text_doc},                             \
        {"to_json", (PyCFunction)core_lines_to_json, METH_NOARGS,                        \
         core_lines_to_json_doc},                                                        \
        {"to_dict", (PyCFunction)core_lines_to_dict, METH_NOARGS,                        \
         core_lines_to_dict_doc},                                                        \
        {"print", (PyCFunction)(void (*)(void))core_lines_print,                         \
         METH_VARARGS | METH_KEYWORDS, core_lines_print_doc},                            \
    {                                                                                    \
        "save", (PyCFunction)core_lines_save, METH_O, core_lines_save_doc                \
    }

#endif
