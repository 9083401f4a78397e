/* A recording that a profiler makes: what stepwatch.start, stop and record do, with its name and the options it was made with. */
#include "options.h"
#include "profiler.h"
#include "run.h"
#include "unseen.h"

/* Keywords that are the profiler's own. */
static bool is_own(PyObject *name)
{
    static const char *const own[] = {"name", "enabled", "values", "memory"};
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        if (PyUnicode_CompareWithASCIIString(name, own[i]) == 0) {
            return true;
        }
    }
    return false;
}

int profiler_recording_split(PyObject *kwargs, PyObject **own, PyObject **options)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;
    core_options read;
    *own = PyDict_New();
    *options = PyDict_New();
    if (!*own || !*options) {
        return -1;
    }
    while (kwargs && PyDict_Next(kwargs, &position, &name, &value)) {
        if (PyDict_SetItem(is_own(name) ? *own : *options, name, value) != 0) {
            return -1;
        }
    }
    /* What is wrong is said now, and not when it starts. */
    const int error = core_options_read(&read, *options);
    core_options_free(&read);
    return error;
}

/* The name, the options of the profiler, and those of this call, which come last. New reference. */
static PyObject *merged(const profiler_object *self, PyObject *kwargs)
{
    PyObject *settings = Py_BuildValue("{sO}", "name", self->name);
    if (!settings || (self->options && PyDict_Update(settings, self->options) != 0) ||
        (!self->enabled && PyDict_SetItemString(settings, "enabled", Py_False) != 0) ||
        (kwargs && PyDict_Update(settings, kwargs) != 0)) {
        Py_XDECREF(settings);
        return NULL;
    }
    return settings;
}

static PyObject *call_with(PyObject *callable, PyObject *settings)
{
    PyObject *none = PyTuple_New(0);
    PyObject *result =
        none && callable && settings ? PyObject_Call(callable, none, settings) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(callable);
    Py_XDECREF(settings);
    return result;
}

static PyObject *function_of(const profiler_object *self, const char *name)
{
    PyObject *module =
        PyType_GetModule((PyTypeObject *)self->state->slot[CORE_PROFILER_TYPE]);
    return module ? PyObject_GetAttrString(module, name) : NULL;
}

PyObject *profiler_start(PyObject *object, PyObject *args, PyObject *kwargs)
{
    profiler_object *self = (profiler_object *)object;
    if (PyTuple_GET_SIZE(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "start() takes keyword arguments only");
        return NULL;
    }
    const bool was = sw_is_recording();
    PyObject *result = call_with(function_of(self, "start"), merged(self, kwargs));
    if (result && !was && sw_is_recording()) {
        self->recording = sw_recording_number();
    }
    return result;
}

PyObject *profiler_stop(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    profiler_object *self = (profiler_object *)object;
    const bool mine =
        self->recording && sw_is_recording() && sw_recording_number() == self->recording;
    self->recording = 0;
    if (!mine) {
        return core_run_new(self->state, Py_None);
    }
    PyObject *stop = function_of(self, "stop");
    PyObject *run = stop ? PyObject_CallObject(stop, NULL) : NULL;
    Py_XDECREF(stop);
    return run;
}

PyObject *profiler_record(PyObject *object, PyObject *args, PyObject *kwargs)
{
    const profiler_object *self = (const profiler_object *)object;
    if (PyTuple_GET_SIZE(args) > 1) {
        PyErr_SetString(PyExc_TypeError, "record() takes a name, and keyword arguments");
        return NULL;
    }
    PyObject *settings = merged(self, kwargs);
    if (settings && PyTuple_GET_SIZE(args) == 1 &&
        PyDict_SetItemString(settings, "name", PyTuple_GET_ITEM(args, 0)) != 0) {
        Py_CLEAR(settings);
    }
    PyObject *module = settings ? core_import("stepwatch._record") : NULL;
    PyObject *record = module ? PyObject_GetAttrString(module, "record") : NULL;
    Py_XDECREF(module);
    return call_with(record, settings);
}

int profiler_recording_add(PyObject *module)
{
    static const char *const shared[] = {"functions", "lines", "sample"};
    core_state *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_PROFILER_TYPE];
    for (size_t i = 0; i < sizeof shared / sizeof shared[0]; i++) {
        PyObject *found = PyObject_GetAttrString(module, shared[i]);
        const int error =
            found ? PyDict_SetItemString(type->tp_dict, shared[i], found) : -1;
        Py_XDECREF(found);
        if (error) {
            return -1;
        }
    }
    PyType_Modified(type);
    return 0;
}
