/* stepwatch.functions: a profile of all functions that are called while it runs. */
#include "functions.h"
#include "unseen.h"
#include <stepwatch/export.h>
#include <structmember.h>

PyDoc_STRVAR(
    functions_doc,
    "functions(name=None, *, builtins=True)\n--\n\n"
    "A profile of all functions called while it runs, on all threads: exact counts,\n"
    "callers and callees, time with and without callees.\n\n"
    "    with stepwatch.functions() as prof:\n"
    "        main()\n"
    "    prof.print(limit=10)\n"
    "    prof.save(\"main.stats\")      # for python -m pstats, snakeviz, cat\n\n"
    "It needs no recording; while there is one, the totals go into it too. "
    "builtins=False\n"
    "leaves out functions written in C.");

static functions_engine *engine_of(PyTypeObject *type)
{
    core_state *state = PyType_GetModuleState(type);
    return state ? (functions_engine *)state->slot[CORE_FUNCTIONS_ENGINE] : NULL;
}

static PyObject *functions_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "builtins", NULL};
    PyObject *name = Py_None;
    int builtins = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O$p:functions", keywords, &name,
                                     &builtins)) {
        return NULL;
    }
    if (name != Py_None && !PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "name must be str, not %.100s",
                     Py_TYPE(name)->tp_name);
        return NULL;
    }
    functions_engine *const engine = engine_of(type);
    functions_profile *const self =
        engine ? (functions_profile *)type->tp_alloc(type, 0) : NULL;
    if (!self) {
        return NULL;
    }
    Py_INCREF(engine);
    self->engine = engine;
    self->builtins = builtins != 0;
    if (name == Py_None) {
        self->name = PyUnicode_FromString("functions");
    } else {
        Py_INCREF(name);
        self->name = name;
    }
    self->notes = PyList_New(0);
    if (!self->name || !self->notes || sw_functions_create(&self->ended) != SW_OK) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int functions_traverse(PyObject *object, visitproc visit, void *arg)
{
    functions_profile *const self = (functions_profile *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->engine);
    Py_VISIT(self->name);
    Py_VISIT(self->notes);
    Py_VISIT(self->stats);
    return 0;
}

static int functions_clear(PyObject *object)
{
    functions_profile *const self = (functions_profile *)object;
    Py_CLEAR(self->stats);
    return 0;
}

static void functions_dealloc(PyObject *object)
{
    functions_profile *const self = (functions_profile *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    functions_clear(object);
    Py_CLEAR(self->name);
    Py_CLEAR(self->notes);
    Py_CLEAR(self->engine);
    sw_functions_free(self->ended);
    functions_rows_free(self->rows);
    type->tp_free(object);
    Py_DECREF(type);
}

/* --- Running -------------------------------------------------------------------------- */

PyDoc_STRVAR(start_doc,
             "start($self, /)\n--\n\nStart counting; what was counted before stays.");

static PyObject *profile_start(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (functions_start((functions_profile *)self) != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(stop_doc,
             "stop($self, /)\n--\n\nStop counting. Calls that have not ended end here.");

static PyObject *profile_stop(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    functions_stop((functions_profile *)self);
    Py_RETURN_NONE;
}

static PyObject *profile_enter(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    functions_profile *const self = (functions_profile *)object;
    /* A with block inside another one of the same profile (a decorated function that calls itself) changes nothing. */
    if (self->depth == 0 && functions_start(self) != 0) {
        return NULL;
    }
    self->depth++;
    Py_INCREF(object);
    return object;
}

static PyObject *profile_exit(PyObject *object, PyObject *const *args, Py_ssize_t count)
{
    functions_profile *const self = (functions_profile *)object;
    (void)args;
    (void)count;
    if (self->depth && --self->depth == 0) {
        functions_stop(self);
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(clear_doc,
             "clear($self, /)\n--\n\nForget what was counted. Not while it runs.");

static PyObject *profile_clear(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    functions_profile *const self = (functions_profile *)object;
    sw_functions *fresh;
    if (self->running) {
        PyErr_SetString(PyExc_RuntimeError, "the function profile is running");
        return NULL;
    }
    if (sw_functions_create(&fresh) != SW_OK) {
        return PyErr_NoMemory();
    }
    sw_functions_free(self->ended);
    self->ended = fresh;
    self->first = self->ran = self->lost = 0;
    functions_rows_free(self->rows);
    self->rows = NULL;
    Py_CLEAR(self->stats);
    if (PyList_SetSlice(self->notes, 0, PyList_GET_SIZE(self->notes), NULL) != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- Results -------------------------------------------------------------------------- */

PyDoc_STRVAR(
    rows_doc,
    "rows($self, /)\n--\n\n"
    "A list of dicts, one a function: file, line, name, qualname, native, calls,\n"
    "primitive_calls (not inside another call of it), errors (left by an exception),\n"
    "self_s, total_s, and lists of callers and callees with the same numbers.\n\n"
    "    slowest = max(prof.rows(), key=lambda row: row[\"self_s\"])");

static PyObject *profile_rows(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    sw_functions *all = functions_collect((functions_profile *)self);
    PyObject *list = all ? functions_list(all) : NULL;
    sw_functions_free(all);
    return list;
}

/* What text(), print() and save() are told alike. */
static int options_get(PyObject *sort, PyObject *limit, sw_functions_text_options *out)
{
    *out = (sw_functions_text_options){0};
    if (functions_sort_get(sort, &out->sort) != 0) {
        return -1;
    }
    if (limit && limit != Py_None) {
        const Py_ssize_t number = PyNumber_AsSsize_t(limit, PyExc_OverflowError);
        if (number == -1 && PyErr_Occurred()) {
            return -1;
        }
        if (number < 1) {
            PyErr_SetString(PyExc_ValueError, "limit must be 1 or more, or None for all");
            return -1;
        }
        out->limit = (size_t)number;
    }
    return 0;
}

static PyObject *text_with(PyObject *self, PyObject *sort, PyObject *limit)
{
    sw_functions_text_options options;
    if (options_get(sort, limit, &options) != 0) {
        return NULL;
    }
    sw_functions *all = functions_collect((functions_profile *)self);
    PyObject *text = all ? functions_text(all, &options) : NULL;
    sw_functions_free(all);
    return text;
}

PyDoc_STRVAR(text_doc,
             "text($self, /, sort=\"cumulative\", limit=None)\n--\n\n"
             "The table that pstats prints, as a string. sort: cumulative, self, calls,\n"
             "pcalls, errors, name or file.\n\n"
             "    log.info(prof.text(sort=\"self\", limit=10))");

static PyObject *profile_text(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"sort", "limit", NULL};
    PyObject *sort = NULL, *limit = NULL;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:text", keywords, &sort, &limit)) {
        return NULL;
    }
    return text_with(self, sort, limit);
}

PyDoc_STRVAR(print_doc,
             "print($self, /, sort=\"cumulative\", limit=20, file=None)\n--\n\n"
             "Write text(sort, limit) to a file object, sys.stdout unless told.\n\n"
             "    prof.print(limit=5)");

static PyObject *profile_print(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"sort", "limit", "file", NULL};
    PyObject *sort = NULL, *limit = NULL, *file = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:print", keywords, &sort, &limit,
                                     &file)) {
        return NULL;
    }
    PyObject *twenty = limit ? NULL : PyLong_FromLong(20);
    if (!limit && !twenty) {
        return NULL;
    }
    PyObject *text = text_with(self, sort, limit ? limit : twenty);
    Py_XDECREF(twenty);
    if (file == Py_None) {
        file = PySys_GetObject("stdout"); /* borrowed */
    }
    int failed = !text;
    /* There is no stdout in some programs, and print() says nothing then. */
    if (text && file && file != Py_None) {
        Py_INCREF(file);
        failed = PyFile_WriteObject(text, file, Py_PRINT_RAW);
        Py_DECREF(file);
    }
    Py_XDECREF(text);
    if (failed) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* A name as a file name: no separators, nothing hidden. */
static PyObject *path_of_name(PyObject *name)
{
    PyObject *safe = PyUnicode_FromString("");
    const Py_ssize_t length = PyUnicode_GET_LENGTH(name);
    for (Py_ssize_t i = 0; i < length && i < 100 && safe; i++) {
        const Py_UCS4 letter = PyUnicode_READ_CHAR(name, i);
        const int plain = letter > ' ' && letter != '/' && letter != '\\' &&
                          letter != 0x7f && !(i == 0 && letter == '.');
        PyObject *longer =
            PyUnicode_FromFormat("%U%c", safe, plain && letter < 128 ? (int)letter : '_');
        Py_DECREF(safe);
        safe = longer;
    }
    PyObject *path = safe ? PyUnicode_FromFormat("%U.stats", safe) : NULL;
    Py_XDECREF(safe);
    return path;
}

PyDoc_STRVAR(
    save_doc,
    "save($self, /, path=None, sort=\"cumulative\", limit=None)\n--\n\n"
    "Write a .stats file: the table of pstats first, then the same as text, so that\n"
    "python -m pstats, snakeviz and cat all have their part. The text alone goes into\n"
    "a .txt file beside it. Without a path, the profile's name. Returns the path.\n\n"
    "    prof.save(\"train.stats\")   # and train.txt");

static PyObject *profile_save(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"path", "sort", "limit", NULL};
    PyObject *path = Py_None, *sort = NULL, *limit = NULL;
    sw_functions_text_options options;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OOO:save", keywords, &path, &sort,
                                     &limit) ||
        options_get(sort, limit, &options) != 0) {
        return NULL;
    }
    path = path == Py_None ? path_of_name(((functions_profile *)self)->name)
                           : PyOS_FSPath(path);
    if (!path) {
        return NULL;
    }
    sw_functions *all = functions_collect((functions_profile *)self);
    if (!all || functions_save(all, path, &options) != 0) {
        Py_CLEAR(path);
    }
    sw_functions_free(all);
    return path;
}

PyDoc_STRVAR(create_stats_doc,
             "create_stats($self, /)\n--\n\n"
             "Stop, and make the attribute stats: what pstats.Stats(prof) asks for.");

static PyObject *profile_create_stats(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    functions_profile *const self = (functions_profile *)object;
    functions_stop(self);
    sw_functions *all = functions_collect(self);
    PyObject *stats = all ? functions_pstats(all) : NULL;
    sw_functions_free(all);
    if (!stats) {
        return NULL;
    }
    Py_XSETREF(self->stats, stats);
    Py_RETURN_NONE;
}

/* Decorating needs a Python function, so that its name, signature and kind (coroutine, generator) stay. */
static PyObject *functions_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *function;
    if (kwargs && PyDict_GET_SIZE(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "a function profile decorates one function");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O:functions", &function)) {
        return NULL;
    }
    PyObject *helper = core_import("stepwatch._functions");
    PyObject *decorated =
        helper ? PyObject_CallMethod(helper, "decorate", "OO", self, function) : NULL;
    Py_XDECREF(helper);
    return decorated;
}

static PyObject *functions_repr(PyObject *object)
{
    functions_profile *const self = (functions_profile *)object;
    return PyUnicode_FromFormat("<stepwatch.functions %R%s>", self->name,
                                self->running ? ", running" : "");
}

PyMethodDef functions_methods[] = {
    {"start", profile_start, METH_NOARGS, start_doc},
    {"stop", profile_stop, METH_NOARGS, stop_doc},
    {"__enter__", profile_enter, METH_NOARGS, start_doc},
    {"__exit__", (PyCFunction)(void (*)(void))profile_exit, METH_FASTCALL, stop_doc},
    {"clear", profile_clear, METH_NOARGS, clear_doc},
    {"rows", profile_rows, METH_NOARGS, rows_doc},
    {"text", (PyCFunction)(void (*)(void))profile_text, METH_VARARGS | METH_KEYWORDS,
     text_doc},
    {"print", (PyCFunction)(void (*)(void))profile_print, METH_VARARGS | METH_KEYWORDS,
     print_doc},
    {"save", (PyCFunction)(void (*)(void))profile_save, METH_VARARGS | METH_KEYWORDS,
     save_doc},
    {"create_stats", profile_create_stats, METH_NOARGS, create_stats_doc},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef functions_members[] = {
    {"name", T_OBJECT_EX, offsetof(functions_profile, name), READONLY,
     "The profile's name."},
    {"notes", T_OBJECT_EX, offsetof(functions_profile, notes), READONLY,
     "What could not be counted, one sentence each."},
    {"stats", T_OBJECT_EX, offsetof(functions_profile, stats), 0,
     "The table of pstats, after create_stats()."},
    {"running", T_BOOL, offsetof(functions_profile, running), READONLY,
     "Whether it counts."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot functions_slots[] = {
    {Py_tp_doc, (void *)functions_doc},   {Py_tp_new, functions_new},
    {Py_tp_traverse, functions_traverse}, {Py_tp_clear, functions_clear},
    {Py_tp_dealloc, functions_dealloc},   {Py_tp_methods, functions_methods},
    {Py_tp_members, functions_members},   {Py_tp_call, functions_call},
    {Py_tp_repr, functions_repr},         {0, NULL},
};

static PyType_Spec functions_spec = {
    .name = "stepwatch._core.functions",
    .basicsize = sizeof(functions_profile),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .slots = functions_slots,
};

int core_functions_add(PyObject *module)
{
    if (functions_engine_add(module) != 0 || functions_seat_add(module) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_FUNCTIONS_TYPE, &functions_spec);
}
