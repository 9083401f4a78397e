/* stepwatch.Profiler: its settings and its methods. */
#include "profiler.h"
#include "ticks.h"
#include "unseen.h"
#include <math.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>
#include <time.h>

#define MOST_VALUES 100000

static void profiler_dealloc(PyObject *object);

/* --- Made and gone ---------------------------------------------------------------- */

static uint64_t unix_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The module's state, also for a class that the program derives. */
static core_state *state_of(PyTypeObject *type)
{
    while (type && type->tp_dealloc != profiler_dealloc) {
        type = type->tp_base;
    }
    return type ? PyType_GetModuleState(type) : NULL;
}

static PyObject *profiler_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "enabled", "values", "memory", NULL};
    PyObject *name = NULL;
    int enabled = 1, memory = 0;
    Py_ssize_t values = MOST_VALUES;
    PyObject *own = NULL, *options = NULL;
    profiler_object *self = NULL;
    if (profiler_recording_split(kwargs, &own, &options) == 0 &&
        PyArg_ParseTupleAndKeywords(args, own, "|U$pnp:Profiler", keywords, &name,
                                    &enabled, &values, &memory)) {
        if (values < 0) {
            PyErr_SetString(PyExc_ValueError, "values should be 0 or more");
        } else {
            self = (profiler_object *)type->tp_alloc(type, 0);
        }
    }
    if (!self) {
        Py_XDECREF(own);
        Py_XDECREF(options);
        return NULL;
    }
    self->options = options;
    self->state = state_of(type);
    self->most_values = (size_t)values;
    self->enabled = enabled;
    self->memory = memory;
    self->started_ns = unix_ns();
    Py_XINCREF(name);
    Py_DECREF(own); /* after the name, which may be in it */
    self->name = name ? name : PyUnicode_FromString("profiler");
    self->sections = PyDict_New();
    self->series = PyDict_New();
    self->marks = PyList_New(0);
    if (profiler_calls_init(self) != 0 || !self->name || !self->sections ||
        !self->series || !self->marks || !self->state) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static int profiler_traverse(PyObject *object, visitproc visit, void *arg)
{
    const profiler_object *self = (profiler_object *)object;
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->sections);
    Py_VISIT(self->series);
    Py_VISIT(self->marks);
    Py_VISIT(self->options);
    return 0;
}

/* Statistics of all sections, with the lock; nothing here runs Python code. */
static void sections_clear(profiler_object *self)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    while (PyDict_Next(self->sections, &position, &name, &value)) {
        profiler_section *section = (profiler_section *)value;
        profiler_stats_clear(&section->stats);
        profiler_ring_clear(&section->values);
        profiler_ring_clear(&section->memory);
        section->last_node = 0;
    }
}

/* Sections that a destructor still holds go on, alone. */
static int profiler_clear(PyObject *object)
{
    profiler_object *self = (profiler_object *)object;
    if (self->sections) {
        pthread_mutex_lock(&self->lock);
        sections_clear(self);
        profiler_calls_drop(self);
        pthread_mutex_unlock(&self->lock);
        PyDict_Clear(self->sections);
    }
    return 0;
}

static void profiler_dealloc(PyObject *object)
{
    profiler_object *self = (profiler_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject_GC_UnTrack(object);
    if (self->weak) {
        PyObject_ClearWeakRefs(object);
    }
    Py_CLEAR(self->sections);
    Py_CLEAR(self->series);
    Py_CLEAR(self->marks);
    Py_CLEAR(self->options);
    Py_CLEAR(self->name);
    profiler_calls_free(self);
    type->tp_free(object);
    Py_DECREF(type);
}

/* --- Sections --------------------------------------------------------------------- */

PyDoc_STRVAR(
    section_doc,
    "section($self, name, category=None, phase=None)\n--\n\n"
    "The section of that name, one object each: a context manager and a decorator.\n\n"
    "Calls nest, recurse, run on any number of threads and in tasks; an exception is\n"
    "counted and passes. The category is kept for the rows; the phase counts while\n"
    "something is recorded, for then it is also a section of the recording.\n\n"
    "    with p.section(\"load\", category=\"data_loading\"):\n"
    "        batch = next(batches)\n");

static PyObject *profiler_section_method(PyObject *object, PyObject *const *args,
                                         Py_ssize_t count, PyObject *names)
{
    static const char *const keywords[] = {"name", "category", "phase"};
    PyObject *given[3] = {NULL, Py_None, Py_None};
    if (count > 3) {
        PyErr_Format(PyExc_TypeError, "section() takes 3 arguments, %zd given", count);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        given[i] = args[i];
    }
    for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
        PyObject *name = PyTuple_GET_ITEM(names, i);
        Py_ssize_t at = 0;
        while (at < 3 && PyUnicode_CompareWithASCIIString(name, keywords[at]) != 0) {
            at++;
        }
        if (at == 3 || at < count) {
            PyErr_Format(PyExc_TypeError,
                         at == 3 ? "section() has no argument %R"
                                 : "section() got two values for %R",
                         name);
            return NULL;
        }
        given[at] = args[count + i];
    }
    if (!given[0]) {
        PyErr_SetString(PyExc_TypeError, "section() needs a name");
        return NULL;
    }
    return profiler_section_get((profiler_object *)object, given[0], given[1], given[2]);
}

/* What stepwatch/_decorators.py does for the module, into this profiler. */
static PyObject *decorators_call(PyObject *self, const char *function, PyObject *args,
                                 PyObject *kwargs)
{
    PyObject *helpers = core_import("stepwatch._decorators");
    PyObject *callable = helpers ? PyObject_GetAttrString(helpers, function) : NULL;
    PyObject *first = PyTuple_Pack(1, self);
    PyObject *all = first ? PySequence_Concat(first, args) : NULL;
    PyObject *result = callable && all ? PyObject_Call(callable, all, kwargs) : NULL;
    Py_XDECREF(helpers);
    Py_XDECREF(callable);
    Py_XDECREF(first);
    Py_XDECREF(all);
    return result;
}

PyDoc_STRVAR(profile_doc,
             "profile($self, target=None, /, *, name=None, category=None, phase=None)\n"
             "--\n\n"
             "Time every call of a function as a section, as stepwatch.profile does.\n\n"
             "    @p.profile\n"
             "    def augment(batch): ...\n\n"
             "    @p.profile(\"augment\", category=\"preprocessing\")\n"
             "    def flip(batch): ...\n");

static PyObject *profiler_profile(PyObject *self, PyObject *args, PyObject *kwargs)
{
    return decorators_call(self, "profile_into", args, kwargs);
}

PyDoc_STRVAR(methods_doc,
             "methods($self, cls, /)\n--\n\n"
             "Time the methods that a class defines, each as a section Class.method.\n\n"
             "The class is changed in place and returned; once more changes nothing.\n\n"
             "    @p.methods\n"
             "    class Trainer:\n"
             "        def train_epoch(self): ...\n");

static PyObject *profiler_methods(PyObject *self, PyObject *args)
{
    return decorators_call(self, "methods_into", args, NULL);
}

PyDoc_STRVAR(
    add_doc,
    "add($self, name, seconds, count=1)\n--\n\n"
    "Count calls that were timed elsewhere: so many, and what they took together.\n\n"
    "    p.add(\"kernel\", 0.0031)\n");

static PyObject *profiler_add(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"name", "seconds", "count", NULL};
    profiler_object *self = (profiler_object *)object;
    PyObject *name;
    double seconds;
    long long count = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Ud|L:add", keywords, &name, &seconds,
                                     &count)) {
        return NULL;
    }
    if (!(seconds >= 0) || seconds > 1e9) {
        PyObject *number = PyFloat_FromDouble(seconds);
        if (number) {
            PyErr_Format(PyExc_ValueError,
                         "add() seconds should be from 0 to 1e9, not %R", number);
            Py_DECREF(number);
        }
        return NULL;
    }
    if (count < 1) {
        PyErr_Format(PyExc_ValueError, "add() count should be 1 or more, not %lld",
                     count);
        return NULL;
    }
    if (profiler_is_enabled(self)) {
        PyObject *section = profiler_section_get(self, name, Py_None, Py_None);
        if (!section) {
            return NULL;
        }
        profiler_put((profiler_section *)section, (uint64_t)(seconds * 1e9 + 0.5),
                     (uint64_t)count);
        Py_DECREF(section);
    }
    Py_RETURN_NONE;
}

/* --- Series and marks ------------------------------------------------------------- */

static double elapsed(const profiler_object *self)
{
    return self->closed
               ? self->elapsed_s
               : (double)(core_ticks() - self->started_tick) * core_ticks_ns() * 1e-9;
}

/* Keeps the newest: the older half goes when there are twice as many as there should be. 0 or -1. */
static int list_put(profiler_object *self, PyObject *list, PyObject *item)
{
    int result = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    const Py_ssize_t most = (Py_ssize_t)self->most_values;
    if (result == 0 && PyList_Size(list) / 2 >= (most ? most : 1)) {
        result = PyList_SetSlice(list, 0, PyList_Size(list) - most, NULL);
    }
    return result;
}

/* Calls a function of the module, for the recording. 0 or -1. */
static int module_call(profiler_object *self, const char *function, PyObject *args)
{
    if (!SW_GATE(self->gate)) {
        return 0;
    }
    PyObject *module =
        PyType_GetModule((PyTypeObject *)self->state->slot[CORE_PROFILER_TYPE]);
    PyObject *callable = module ? PyObject_GetAttrString(module, function) : NULL;
    PyObject *result = callable ? PyObject_CallObject(callable, args) : NULL;
    Py_XDECREF(callable);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

PyDoc_STRVAR(counter_doc, "counter($self, name, value, /)\n--\n\n"
                          "Keep a value of a series, and record it.\n\n"
                          "    p.counter(\"loss\", 0.3)\n");

static PyObject *profiler_counter(PyObject *object, PyObject *args)
{
    profiler_object *self = (profiler_object *)object;
    PyObject *name, *value;
    if (!PyArg_ParseTuple(args, "UO:counter", &name, &value)) {
        return NULL;
    }
    if (!profiler_is_enabled(self)) {
        Py_RETURN_NONE;
    }
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    /* The collector may run, and somebody's destructor reset the profiler: hence references. */
    PyObject *kept = profiler_name_kept(self->series, name);
    PyObject *made = kept ? PyList_New(0) : NULL;
    PyObject *list = made ? PyDict_SetDefault(self->series, kept, made) : NULL;
    Py_XINCREF(list);
    Py_XDECREF(kept);
    Py_XDECREF(made);
    const int error =
        !list || list_put(self, list, Py_BuildValue("dd", elapsed(self), number)) != 0 ||
        module_call(self, "counter", args) != 0;
    Py_XDECREF(list);
    if (error) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(counters_doc,
             "counters($self)\n--\n\n"
             "The series: name -> [(seconds since the start, value), ...].\n\n"
             "    p.counters()[\"loss\"][-1]\n");

/* The newest of a list, as many as are kept. */
static PyObject *list_newest(const profiler_object *self, PyObject *list)
{
    const Py_ssize_t length = PyList_Size(list);
    const Py_ssize_t most = (Py_ssize_t)self->most_values;
    Py_INCREF(list);
    PyObject *newest = PyList_GetSlice(list, length > most ? length - most : 0, length);
    Py_DECREF(list);
    return newest;
}

static PyObject *profiler_counters(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *self = (profiler_object *)object;
    PyObject *all = PyDict_New();
    PyObject *names = PyDict_Keys(self->series);
    for (Py_ssize_t i = 0; all && names && i < PyList_GET_SIZE(names); i++) {
        PyObject *name = PyList_GET_ITEM(names, i);
        PyObject *list = PyDict_GetItemWithError(self->series, name);
        if (!list && !PyErr_Occurred()) {
            continue; /* it was reset meanwhile */
        }
        PyObject *newest = list ? list_newest(self, list) : NULL;
        if (!newest || PyDict_SetItem(all, name, newest) != 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(newest);
    }
    if (!names) {
        Py_CLEAR(all);
    }
    Py_XDECREF(names);
    return all;
}

PyDoc_STRVAR(mark_doc, "mark($self, text, /)\n--\n\n"
                       "Keep a remark with its time, and record it.\n\n"
                       "    p.mark(\"learning rate changed\")\n");

static PyObject *profiler_mark(PyObject *object, PyObject *args)
{
    profiler_object *self = (profiler_object *)object;
    PyObject *text;
    if (!PyArg_ParseTuple(args, "U:mark", &text)) {
        return NULL;
    }
    if (!profiler_is_enabled(self)) {
        Py_RETURN_NONE;
    }
    PyObject *marks = self->marks;
    Py_INCREF(marks);
    const int error =
        list_put(self, marks, Py_BuildValue("dO", elapsed(self), text)) != 0 ||
        module_call(self, "mark", args) != 0;
    Py_DECREF(marks);
    if (error) {
        return NULL;
    }
    Py_RETURN_NONE;
}

PyDoc_STRVAR(marks_doc, "marks($self)\n--\n\n"
                        "The remarks: [(seconds since the start, text), ...].\n\n"
                        "    p.marks()[-1]\n");

static PyObject *profiler_marks(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *self = (profiler_object *)object;
    return list_newest(self, self->marks);
}

/* --- On and off ------------------------------------------------------------------- */

PyDoc_STRVAR(reset_doc,
             "reset($self)\n--\n\n"
             "Forget all that was counted. What is open counts from now on.\n\n"
             "    p.reset()\n");

static PyObject *profiler_reset(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *self = (profiler_object *)object;
    pthread_mutex_lock(&self->lock);
    sections_clear(self);
    profiler_calls_reset(self);
    self->started_ns = unix_ns();
    self->elapsed_s = 0;
    pthread_mutex_unlock(&self->lock);
    PyDict_Clear(self->series);
    PyObject *marks = PyList_New(0);
    if (!marks) {
        return NULL;
    }
    Py_SETREF(self->marks, marks);
    Py_RETURN_NONE;
}

static int profiler_set_enabled(PyObject *object, PyObject *value,
                                void *Py_UNUSED(closure))
{
    profiler_object *self = (profiler_object *)object;
    const int on = value ? PyObject_IsTrue(value) : -1;
    if (on < 0) {
        if (!value) {
            PyErr_SetString(PyExc_AttributeError, "enabled cannot be deleted");
        }
        return -1;
    }
    if (on) {
        self->closed = false;
    }
    __atomic_store_n(&self->enabled, on != 0, __ATOMIC_RELAXED);
    return 0;
}

PyDoc_STRVAR(close_doc,
             "close($self)\n--\n\n"
             "Switch it off and stop its clock; all that was counted stays.\n\n"
             "    p.close()\n");

static PyObject *profiler_close(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *self = (profiler_object *)object;
    __atomic_store_n(&self->enabled, false, __ATOMIC_RELAXED);
    self->elapsed_s = elapsed(self);
    self->closed = true;
    Py_RETURN_NONE;
}

static PyObject *profiler_enter_method(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    Py_INCREF(object);
    return object;
}

static PyObject *profiler_exit_method(PyObject *object, PyObject *Py_UNUSED(args))
{
    return profiler_close(object, NULL);
}

static PyObject *profiler_repr(PyObject *object)
{
    profiler_object *self = (profiler_object *)object;
    PyObject *name, *value;
    Py_ssize_t position = 0;
    unsigned long long calls = 0, used = 0;
    pthread_mutex_lock(&self->lock);
    while (PyDict_Next(self->sections, &position, &name, &value)) {
        const uint64_t more = ((profiler_section *)value)->stats.calls;
        calls += more;
        used += more != 0;
    }
    pthread_mutex_unlock(&self->lock);
    return PyUnicode_FromFormat("<stepwatch.Profiler %R: %llu sections, %llu calls%s>",
                                self->name, used, calls,
                                self->closed    ? ", closed"
                                : self->enabled ? ""
                                                : ", off");
}

/* A copy, also in another process, has the settings and no statistics. */
static PyObject *profiler_reduce(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    const profiler_object *self = (profiler_object *)object;
    PyObject *partial = NULL, *made = NULL;
    PyObject *functools = PyImport_ImportModule("functools");
    PyObject *args = Py_BuildValue("(OO)", Py_TYPE(object), self->name);
    PyObject *settings = Py_BuildValue(
        "{sOsnsO}", "enabled", self->enabled ? Py_True : Py_False, "values",
        (Py_ssize_t)self->most_values, "memory", self->memory ? Py_True : Py_False);
    if (settings && self->options && PyDict_Update(settings, self->options) != 0) {
        Py_CLEAR(settings);
    }
    PyObject *function = functools ? PyObject_GetAttrString(functools, "partial") : NULL;
    if (function && args && settings) {
        partial = PyObject_Call(function, args, settings);
    }
    if (partial) {
        made = Py_BuildValue("N()", partial);
    }
    Py_XDECREF(functools);
    Py_XDECREF(function);
    Py_XDECREF(args);
    Py_XDECREF(settings);
    return made;
}

PyDoc_STRVAR(
    start_doc,
    "start($self, /, **options)\n--\n\n"
    "Start a recording, as stepwatch.start does, named after the profiler.\n\n"
    "Options are those that the profiler was made with, and these. Where something\n"
    "is being recorded already, that goes on.\n\n"
    "    p = stepwatch.Profiler(\"train\", sampler_hz=0)\n"
    "    p.start()\n"
    "    run = p.stop()\n");

PyDoc_STRVAR(
    stop_doc,
    "stop($self)\n--\n\n"
    "Stop the recording that this profiler started, and return its Run.\n\n"
    "Where it started none the Run is empty and false; the recording of somebody\n"
    "else goes on.\n\n"
    "    p.start()\n"
    "    print(p.stop().report())\n");

PyDoc_STRVAR(record_doc, "record($self, name=None, /, **options)\n--\n\n"
                         "Record what runs inside a block, as stepwatch.record does.\n\n"
                         "    with p.record() as run:\n"
                         "        pass\n");

/* --- The type --------------------------------------------------------------------- */

static PyObject *profiler_get_enabled(PyObject *object, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(profiler_is_enabled((profiler_object *)object));
}

static PyObject *profiler_elapsed(PyObject *object, void *Py_UNUSED(closure))
{
    return PyFloat_FromDouble(elapsed((profiler_object *)object));
}

static PyGetSetDef profiler_getset[] = {
    {"enabled", profiler_get_enabled, profiler_set_enabled,
     PyDoc_STR("Whether calls are counted; may be set at any time."), NULL},
    {"elapsed_s", profiler_elapsed, NULL,
     PyDoc_STR("Seconds since it was made or reset, until it was closed."), NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef profiler_members[] = {
    {"name", T_OBJECT_EX, offsetof(profiler_object, name), READONLY,
     PyDoc_STR("Name of the profiler.")},
    {"memory", T_BOOL, offsetof(profiler_object, memory), 0,
     PyDoc_STR("Whether the memory of each call is looked at; may be set at any time.")},
    {"started_ns", T_ULONGLONG, offsetof(profiler_object, started_ns), READONLY,
     PyDoc_STR("When it was made or reset, as time.time_ns() counts.")},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(profiler_object, weak), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

PyDoc_STRVAR(
    rows_doc,
    "rows($self, families=False, *, under=None)\n--\n\n"
    "Statistics of all sections, one dict a name, the longest total first.\n\n"
    "With families=True names that differ in numbers only are one row: epoch_*.\n"
    "With under=\"epoch_3\" only what was called inside of that section counts, and\n"
    "itself.\n\n"
    "    for row in p.rows():\n"
    "        print(row[\"name\"], row[\"calls\"], row[\"total_ns\"] / 1e9)\n");
PyDoc_STRVAR(
    paths_doc,
    "paths($self, *, under=None)\n--\n\n"
    "The same, one dict a call path: \"path\" lists the sections, outermost first.\n\n"
    "    [row[\"path\"] for row in p.paths()]\n");
PyDoc_STRVAR(row_doc, "row($self, name, /)\n--\n\n"
                      "Statistics of one section, or None if it was never called.\n\n"
                      "    p.row(\"load\")[\"p95_ns\"]\n");
PyDoc_STRVAR(calls_doc, "calls($self, name, /)\n--\n\n"
                        "How many calls of a section have ended.\n\n"
                        "    p.calls(\"load\")\n");
PyDoc_STRVAR(values_doc,
             "values($self, name, /)\n--\n\n"
             "Seconds that the newest calls took, the oldest of them first.\n\n"
             "    max(p.values(\"load\"))\n");
PyDoc_STRVAR(memory_values_doc,
             "memory_values($self, name, /)\n--\n\n"
             "Change of resident memory of the newest calls, in bytes.\n\n"
             "    sum(p.memory_values(\"load\"))\n");
PyDoc_STRVAR(data_doc, "data($self, iterable, name=\"data_wait\")\n--\n\n"
                       "Go through batches and time the waiting for each.\n\n"
                       "    for batch in p.data(loader):\n"
                       "        validate(batch)\n");
PyDoc_STRVAR(steps_doc,
             "steps($self, iterable, /)\n--\n\n"
             "Go through batches; each is a call of the section step, and waiting for\n"
             "it one of data_wait.\n\n"
             "    for batch in p.steps(loader):\n"
             "        train(batch)\n");
PyDoc_STRVAR(step_doc, "step($self)\n--\n\n"
                       "One step, by hand: a context manager around a call of step.\n\n"
                       "    with p.step():\n"
                       "        train(batch)\n");

#define KEYWORDS(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef profiler_methods_table[] = {
    {"section", KEYWORDS(profiler_section_method), METH_FASTCALL | METH_KEYWORDS,
     section_doc},
    {"profile", KEYWORDS(profiler_profile), METH_VARARGS | METH_KEYWORDS, profile_doc},
    {"methods", profiler_methods, METH_VARARGS, methods_doc},
    {"data", KEYWORDS(profiler_data), METH_VARARGS | METH_KEYWORDS, data_doc},
    {"steps", profiler_steps, METH_O, steps_doc},
    {"step", profiler_step, METH_NOARGS, step_doc},
    {"add", KEYWORDS(profiler_add), METH_VARARGS | METH_KEYWORDS, add_doc},
    {"counter", profiler_counter, METH_VARARGS, counter_doc},
    {"counters", profiler_counters, METH_NOARGS, counters_doc},
    {"mark", profiler_mark, METH_VARARGS, mark_doc},
    {"marks", profiler_marks, METH_NOARGS, marks_doc},
    {"rows", KEYWORDS(profiler_rows), METH_VARARGS | METH_KEYWORDS, rows_doc},
    {"paths", KEYWORDS(profiler_paths), METH_VARARGS | METH_KEYWORDS, paths_doc},
    {"row", profiler_row, METH_O, row_doc},
    {"calls", profiler_count, METH_O, calls_doc},
    {"values", profiler_values, METH_O, values_doc},
    {"memory_values", profiler_memory_values, METH_O, memory_values_doc},
    {"start", KEYWORDS(profiler_start), METH_VARARGS | METH_KEYWORDS, start_doc},
    {"stop", profiler_stop, METH_NOARGS, stop_doc},
    {"record", KEYWORDS(profiler_record), METH_VARARGS | METH_KEYWORDS, record_doc},
    {"reset", profiler_reset, METH_NOARGS, reset_doc},
    {"close", profiler_close, METH_NOARGS, close_doc},
    {"__enter__", profiler_enter_method, METH_NOARGS, NULL},
    {"__exit__", profiler_exit_method, METH_VARARGS, NULL},
    {"__reduce__", profiler_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    profiler_doc,
    "Profiler(name=\"profiler\", *, enabled=True, values=100000, memory=False,\n"
    "         **options)\n--\n\n"
    "Statistics of named sections, live, whether or not anything is recorded.\n\n"
    "Any number of profilers live side by side. values is how many durations are\n"
    "kept of each section; memory=True also looks at the memory of each call.\n\n"
    "    p = stepwatch.Profiler()\n"
    "    with p.section(\"load\"):\n"
    "        batch = next(batches)\n"
    "    print(p.row(\"load\"))\n");

static PyType_Slot profiler_slots[] = {
    {Py_tp_doc, (void *)profiler_doc},       {Py_tp_new, profiler_new},
    {Py_tp_traverse, profiler_traverse},     {Py_tp_clear, profiler_clear},
    {Py_tp_dealloc, profiler_dealloc},       {Py_tp_repr, profiler_repr},
    {Py_tp_methods, profiler_methods_table}, {Py_tp_members, profiler_members},
    {Py_tp_getset, profiler_getset},         {0, NULL},
};

static PyType_Spec profiler_spec = {
    .name = "stepwatch.Profiler",
    .basicsize = sizeof(profiler_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = profiler_slots,
};

int core_profiler_add(PyObject *module)
{
    if (core_type_add(module, CORE_PROFILER_TYPE, &profiler_spec) != 0 ||
        profiler_section_add(module) != 0) {
        return -1;
    }
    if (profiler_recording_add(module) != 0) {
        return -1;
    }
    return profiler_loops_add(module);
}
