/* stepwatch.lines: the line profiler.
 *
 * A Lines object is a set of functions. Counting is done once for each code object, in its table; an entry of a Lines object
 * remembers what the table held when it began to look, so any number of objects may look at the same function
 * and the hot path does not know of them. */
#include "lines.h"
#include "line_table.h"
#include "unseen.h"
#include <stdlib.h>
#include <string.h>

/* --- entries ---------------------------------------------------------------------- */

static size_t cells_size(const line_code *table)
{
    return ((size_t)table->count + 1) * sizeof(line_cell);
}

/* Counts from before a fork belong to the parent. */
static void entry_check_fork(lines_entry *entry)
{
    if (entry->forks != core_line_forks) {
        entry->forks = core_line_forks;
        memset(entry->base, 0, cells_size(entry->table));
        memset(entry->kept, 0, cells_size(entry->table));
    }
}

/* Takes what was counted since it last looked. The tables are flushed. */
static void entry_collect(lines_entry *entry)
{
    const line_code *table = entry->table;
    entry_check_fork(entry);
    if (!entry->on) {
        return;
    }
    for (uint32_t i = 0; i <= table->count; i++) {
        entry->kept[i].hits += table->cells[i].hits - entry->base[i].hits;
        entry->kept[i].ticks += table->cells[i].ticks - entry->base[i].ticks;
    }
    memcpy(entry->base, table->cells, cells_size(table));
}

static int entry_on(lines_entry *entry)
{
    if (entry->on || core_is_off()) {
        return 0;
    }
    if (entry->table->watchers == 0 && core_line_events_switch(entry->table, 1) != 0) {
        return -1;
    }
    core_line_flush();
    entry_check_fork(entry);
    entry->table->watchers++;
    entry->on = 1;
    memcpy(entry->base, entry->table->cells, cells_size(entry->table));
    return 0;
}

static int entry_off(lines_entry *entry)
{
    if (!entry->on) {
        return 0;
    }
    core_line_flush();
    entry_collect(entry);
    entry->on = 0;
    return --entry->table->watchers == 0 ? core_line_events_switch(entry->table, 0) : 0;
}

/* Switches off and frees what the entry holds. */
static void entry_drop(lines_entry *entry)
{
    if (entry_off(entry) != 0) {
        PyErr_Clear();
    }
    /* The last one gives the functions their code back. */
    if (--entry->table->entries == 0 && entry->functions) {
        for (Py_ssize_t i = 0; i < PyList_GET_SIZE(entry->functions); i++) {
            PyObject *function = PyList_GET_ITEM(entry->functions, i);
            if (PyFunction_Check(function) &&
                PyFunction_GET_CODE(function) == entry->watched &&
                PyObject_SetAttrString(function, "__code__", entry->table->code) != 0) {
                PyErr_Clear();
            }
        }
    }
    Py_CLEAR(entry->functions);
    Py_CLEAR(entry->watched);
    core_line_code_release(entry->table);
    free(entry->base);
    free(entry->kept);
}

void core_lines_collect(lines_object *self)
{
    core_line_flush();
    for (size_t i = 0; i < self->count; i++) {
        entry_collect(&self->entries[i]);
    }
}

/* --- adding and removing ---------------------------------------------------------- */

static lines_entry *entry_find(lines_object *self, PyObject *code)
{
    for (size_t i = 0; i < self->count; i++) {
        if (self->entries[i].table->code == code || self->entries[i].watched == code) {
            return &self->entries[i];
        }
    }
    return NULL;
}

static int make_room(lines_object *self)
{
    if (self->count < self->room) {
        return 0;
    }
    const size_t room = self->room ? self->room * 2 : 8;
    lines_entry *more = realloc(self->entries, room * sizeof *more);
    if (!more) {
        PyErr_NoMemory();
        return -1;
    }
    self->entries = more;
    self->room = room;
    return 0;
}

static lines_entry *entry_make(lines_object *self, PyObject *code, PyObject *name)
{
    lines_entry entry = {.table = core_line_code(code, name, 1),
                         .forks = core_line_forks};
    if (!entry.table) {
        return NULL;
    }
    entry.table->entries++;
    entry.base = calloc(1, cells_size(entry.table));
    entry.kept = calloc(1, cells_size(entry.table));
    entry.functions = PyList_New(0);
    if (!entry.base || !entry.kept) {
        PyErr_NoMemory();
    } else if (entry.functions) {
        entry.watched = core_line_events_prepare(entry.table);
    }
    /* Preparing may run Python code, and that may have added the same function or another. */
    lines_entry *found = entry.watched ? entry_find(self, code) : NULL;
    if (!entry.watched || found || make_room(self) != 0 ||
        (self->enabled && entry_on(&entry) != 0)) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        entry_drop(&entry);
        PyErr_Restore(type, value, traceback);
        return found;
    }
    self->entries[self->count] = entry;
    return &self->entries[self->count++];
}

/* Chooses a code object; gives the code that has to run in its place (borrowed), or NULL. */
static PyObject *add_code(lines_object *self, PyObject *code, PyObject *name)
{
    if (core_line_events_check() != 0) {
        return NULL;
    }
    lines_entry *entry = entry_find(self, code);
    if (!entry) {
        entry = entry_make(self, code, name);
    }
    return entry ? entry->watched : NULL;
}

static int add_function(lines_object *self, PyObject *function)
{
    if (!PyFunction_Check(function)) {
        PyErr_Format(PyExc_TypeError, "lines needs a Python function, not %.100s",
                     Py_TYPE(function)->tp_name);
        return -1;
    }
    PyObject *code = PyFunction_GET_CODE(function);
    PyObject *watched =
        add_code(self, code, ((PyFunctionObject *)function)->func_qualname);
    if (!watched) {
        return -1;
    }
#if PY_VERSION_HEX < 0x030c0000
    lines_entry *entry = entry_find(self, code);
    if (PySequence_Contains(entry->functions, function) == 1) {
        return 0;
    }
    if (watched != code && PyObject_SetAttrString(function, "__code__", watched) != 0) {
        return -1;
    }
    return PyList_Append(entry->functions, function);
#else
    return 0;
#endif
}

/* The functions that an object stands for, a list. */
static PyObject *functions_of(PyObject *object)
{
    if (PyFunction_Check(object)) {
        PyObject *dict = ((PyFunctionObject *)object)->func_dict;
        if (!dict || PyDict_GET_SIZE(dict) == 0) {
            return Py_BuildValue("[O]", object);
        }
    }
    PyObject *module = core_import("stepwatch._line_targets");
    PyObject *list =
        module ? PyObject_CallMethod(module, "functions_of", "O", object) : NULL;
    Py_XDECREF(module);
    if (list && !PyList_Check(list)) {
        Py_CLEAR(list);
        PyErr_SetString(PyExc_SystemError, "functions_of gave no list");
    }
    return list;
}

static int register_exit(void);

static int add_object(lines_object *self, PyObject *object)
{
    PyObject *list = functions_of(object);
    if (!list || register_exit() != 0) {
        Py_XDECREF(list);
        return -1;
    }
    int result = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list) && result == 0; i++) {
        result = add_function(self, PyList_GET_ITEM(list, i));
    }
    Py_DECREF(list);
    return result;
}

PyDoc_STRVAR(add_doc,
             "add($self, /, *objects)\n--\n\n"
             "Choose functions: each object is a function, a method, a class (its own "
             "functions)\nor a module (the functions and classes written in it).\n\n"
             "    stepwatch.lines.add(model.forward, mypackage.losses)");

static PyObject *lines_add(lines_object *self, PyObject *args)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        if (add_object(self, PyTuple_GET_ITEM(args, i)) != 0) {
            return NULL;
        }
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(remove_doc,
             "remove($self, /, *objects)\n--\n\n"
             "Choose functions no longer, and forget what was counted of them.\n\n"
             "    stepwatch.lines.remove(model.forward)");

static PyObject *lines_remove(lines_object *self, PyObject *args)
{
    core_lines_sync();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); i++) {
        PyObject *list = functions_of(PyTuple_GET_ITEM(args, i));
        if (!list) {
            return NULL;
        }
        for (Py_ssize_t j = 0; j < PyList_GET_SIZE(list); j++) {
            PyObject *function = PyList_GET_ITEM(list, j);
            lines_entry *entry = PyFunction_Check(function)
                                     ? entry_find(self, PyFunction_GET_CODE(function))
                                     : NULL;
            if (entry) {
                lines_entry old = *entry;
                *entry = self->entries[--self->count];
                entry_drop(&old);
            }
        }
        Py_DECREF(list);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(add_by_name_doc,
             "add_by_name($self, name, /)\n--\n\n"
             "Choose a function by its name, also before its module is imported.\n\n"
             "    stepwatch.lines.add_by_name(\"mypackage.losses:Focal.forward\")");

static PyObject *lines_add_by_name(lines_object *self, PyObject *name)
{
    PyObject *module = core_import("stepwatch._line_targets");
    PyObject *result = NULL;
    if (module && register_exit() == 0) {
        result = PyObject_CallMethod(module, "add_by_name", "OO", self, name);
    }
    Py_XDECREF(module);
    return result;
}

PyDoc_STRVAR(add_code_doc, "_add_code($self, code, name, /)\n--\n\n"
                           "Choose a code object; returns the code to run in its place.");

static PyObject *lines_add_code(lines_object *self, PyObject *args)
{
    PyObject *code, *name;
    if (!PyArg_ParseTuple(args, "O!U:_add_code", &PyCode_Type, &code, &name)) {
        return NULL;
    }
    PyObject *watched = add_code(self, code, name);
    Py_XINCREF(watched);
    return watched;
}

static PyObject *lines_call(PyObject *self, PyObject *const *args, size_t count,
                            PyObject *names)
{
    if (PyVectorcall_NARGS(count) != 1 || names) {
        PyErr_SetString(PyExc_TypeError,
                        "lines takes one function; write @stepwatch.lines above it");
        return NULL;
    }
    if (add_object((lines_object *)self, args[0]) != 0) {
        return NULL;
    }
    Py_INCREF(args[0]);
    return args[0];
}

/* --- switching -------------------------------------------------------------------- */

PyDoc_STRVAR(enable_doc, "enable($self, /)\n--\n\n"
                         "Count; a new object does, until a `with` block of it ends.\n\n"
                         "    stepwatch.lines.enable()");

static PyObject *lines_enable(lines_object *self, PyObject *Py_UNUSED(ignored))
{
    if (core_line_events_check() != 0) {
        return NULL;
    }
    for (size_t i = 0; i < self->count; i++) {
        if (entry_on(&self->entries[i]) != 0) {
            return NULL;
        }
    }
    self->enabled = self->told = 1;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(disable_doc, "disable($self, /)\n--\n\n"
                          "Stop counting; the functions run as if nobody watched. What "
                          "was counted stays.\n\n"
                          "    stepwatch.lines.disable()");

static PyObject *lines_disable(lines_object *self, PyObject *Py_UNUSED(ignored))
{
    core_lines_sync();
    self->enabled = 0;
    self->told = 1;
    int result = 0;
    for (size_t i = 0; i < self->count; i++) {
        if (entry_off(&self->entries[i]) != 0) {
            result = -1;
        }
    }
    if (result != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_doc, "clear($self, /)\n--\n\n"
                        "Forget what was counted; the functions stay chosen.\n\n"
                        "    stepwatch.lines.clear()");

static PyObject *lines_clear(lines_object *self, PyObject *Py_UNUSED(ignored))
{
    core_lines_sync();
    core_lines_collect(self);
    for (size_t i = 0; i < self->count; i++) {
        memset(self->entries[i].kept, 0, cells_size(self->entries[i].table));
    }
    Py_RETURN_NONE;
}

/* A block counts what runs inside of it, not what ran between making the object and the block. */
static PyObject *lines_enter(lines_object *self, PyObject *ignored)
{
    PyObject *done = self->told ? NULL : lines_clear(self, ignored);
    Py_XDECREF(done);
    done = lines_enable(self, ignored);
    if (!done) {
        return NULL;
    }
    Py_DECREF(done);
    Py_INCREF(self);
    return (PyObject *)self;
}

static PyObject *lines_exit(lines_object *self, PyObject *Py_UNUSED(args))
{
    return lines_disable(self, NULL);
}

/* --- the end of the program ------------------------------------------------------- */

static PyObject *at_exit(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    core_lines_sync();
    Py_RETURN_NONE;
}

static PyMethodDef at_exit_method = {"stepwatch_lines_at_exit", at_exit, METH_NOARGS,
                                     NULL};

/* Once: totals go into the trace before the interpreter ends. */
static int register_exit(void)
{
    static int done;
    if (done) {
        return 0;
    }
    PyObject *module = core_import("atexit");
    PyObject *function = module ? PyCFunction_New(&at_exit_method, NULL) : NULL;
    PyObject *result =
        function ? PyObject_CallMethod(module, "register", "O", function) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(module);
    if (!result) {
        return -1;
    }
    Py_DECREF(result);
    done = 1;
    return 0;
}

/* --- the type --------------------------------------------------------------------- */

static PyObject *lines_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    if (kwargs && PyDict_GET_SIZE(kwargs)) {
        PyErr_SetString(PyExc_TypeError, "Lines() takes functions only");
        return NULL;
    }
    lines_object *self = (lines_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->vectorcall = lines_call;
    self->enabled = 1;
    PyObject *done = lines_add(self, args);
    if (!done) {
        Py_DECREF(self);
        return NULL;
    }
    Py_DECREF(done);
    return (PyObject *)self;
}

static int lines_traverse(lines_object *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    for (size_t i = 0; i < self->count; i++) {
        Py_VISIT(self->entries[i].functions);
    }
    return 0;
}

static int lines_gc_clear(lines_object *self)
{
    /* An object may go while an exception passes. */
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    while (self->count > 0) {
        lines_entry entry = self->entries[--self->count];
        entry_drop(&entry);
    }
    PyErr_Restore(type, value, traceback);
    return 0;
}

static void lines_dealloc(lines_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (self->count > 0) {
        core_lines_sync();
    }
    lines_gc_clear(self);
    free(self->entries);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *lines_repr(lines_object *self)
{
    return PyUnicode_FromFormat("<stepwatch.Lines: %zu function%s%s>", self->count,
                                self->count == 1 ? "" : "s",
                                self->enabled ? "" : ", disabled");
}

static PyObject *lines_get_enabled(lines_object *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->enabled);
}

static PyMethodDef lines_methods[] = {
    {"add", (PyCFunction)lines_add, METH_VARARGS, add_doc},
    {"remove", (PyCFunction)lines_remove, METH_VARARGS, remove_doc},
    {"add_by_name", (PyCFunction)lines_add_by_name, METH_O, add_by_name_doc},
    {"_add_code", (PyCFunction)lines_add_code, METH_VARARGS, add_code_doc},
    {"enable", (PyCFunction)lines_enable, METH_NOARGS, enable_doc},
    {"disable", (PyCFunction)lines_disable, METH_NOARGS, disable_doc},
    {"clear", (PyCFunction)lines_clear, METH_NOARGS, clear_doc},
    {"__enter__", (PyCFunction)lines_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)lines_exit, METH_VARARGS, NULL},
    CORE_LINES_OUTPUT_METHODS,
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef lines_getset[] = {
    {"enabled", (getter)lines_get_enabled, NULL, PyDoc_STR("Whether lines are counted."),
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef lines_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(lines_object, vectorcall), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    lines_doc,
    "Lines(*functions)\n--\n\n"
    "Counts how often each line of chosen functions runs, and how long.\n\n"
    "`stepwatch.lines` is one such object. As a decorator it returns the very function\n"
    "it was given, and watches it:\n\n"
    "    @stepwatch.lines\n"
    "    def train_step(batch):\n"
    "        ...\n\n"
    "    stepwatch.lines.print()");

static PyType_Slot lines_slots[] = {
    {Py_tp_doc, (void *)lines_doc},
    {Py_tp_new, lines_new},
    {Py_tp_dealloc, lines_dealloc},
    {Py_tp_traverse, lines_traverse},
    {Py_tp_clear, lines_gc_clear},
    {Py_tp_repr, lines_repr},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_methods, lines_methods},
    {Py_tp_getset, lines_getset},
    {Py_tp_members, lines_members},
    {0, NULL},
};

#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL _Py_TPFLAGS_HAVE_VECTORCALL
#endif

static PyType_Spec lines_spec = {
    .name = "stepwatch.Lines",
    .basicsize = sizeof(lines_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = lines_slots,
};

int core_lines_add(PyObject *module)
{
    core_ticks_init();
    if (core_type_add(module, CORE_LINES_TYPE, &lines_spec) != 0) {
        return -1;
    }
    core_state *state = PyModule_GetState(module);
    PyObject *lines = PyObject_CallNoArgs(state->slot[CORE_LINES_TYPE]);
    if (!lines) {
        return -1;
    }
    ((lines_object *)lines)->told = 1; /* it is everybody's: no block forgets */
    if (PyModule_AddObject(module, "lines", lines) != 0) {
        Py_DECREF(lines);
        return -1;
    }
    return 0;
}
