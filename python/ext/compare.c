/* What stepwatch.compare knows: a comparison of runs, reports or function profiles. */
#include "run.h"

#include <stepwatch/compare.h>
#include <stepwatch/export.h>

typedef struct comparison_object {
    PyObject_HEAD sw_comparison *comparison; /* never changes: no lock */
} comparison_object;

static void comparison_dealloc(comparison_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sw_comparison_free(self->comparison);
    type->tp_free(self);
    Py_DECREF(type);
}

/* --- What is compared ------------------------------------------------------------- */

static sw_compare_input *input_of_run(PyObject *run)
{
    core_source *source = core_run_source(run);
    sw_compare_input *input = NULL;
    sw_error_info info = {0};
    int error;
    if (!source) {
        return NULL;
    }
    if (!source->run) {
        core_source_release(source);
        PyErr_SetString(PyExc_ValueError,
                        "nothing was recorded, so there is nothing to compare");
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS core_source_lock(source);
    error = core_source_summary(source, &info);
    if (!error) {
        error = sw_compare_input_of_summary(&input, source->summary, NULL, &info);
    }
    core_source_unlock(source);
    core_source_release(source);
    Py_END_ALLOW_THREADS if (error)
    {
        core_raise(error, &info);
    }
    return input;
}

static sw_compare_input *input_of_path(PyObject *path)
{
    PyObject *bytes;
    sw_compare_input *input = NULL;
    sw_error_info info = {0};
    int error;
    if (!PyUnicode_FSConverter(path, &bytes)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS error =
        sw_compare_input_open(&input, PyBytes_AS_STRING(bytes), &info);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (error) {
        core_raise(error, &info);
    }
    return input;
}

/* --- Comparing -------------------------------------------------------------------- */

static PyObject *comparison_make(core_state *state, sw_compare_input *const *inputs,
                                 size_t count, double threshold)
{
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_COMPARISON_TYPE];
    const sw_compare_options options = {.threshold_percent = threshold};
    comparison_object *self = (comparison_object *)type->tp_alloc(type, 0);
    sw_error_info info = {0};
    int error;
    if (!self) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS error =
        sw_compare_inputs(&self->comparison, (const sw_compare_input *const *)inputs,
                          count, &options, &info);
    Py_END_ALLOW_THREADS if (error)
    {
        core_raise(error, &info);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static PyObject *core_compare(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *items;
    double threshold;
    if (!PyArg_ParseTuple(args, "O!d:_compare", &PyTuple_Type, &items, &threshold)) {
        return NULL;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    sw_compare_input **inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);
    PyObject *result = NULL;
    Py_ssize_t made = 0;
    if (!inputs) {
        return PyErr_NoMemory();
    }
    for (; made < count; made++) {
        PyObject *item = PyTuple_GET_ITEM(items, made);
        const bool run = Py_TYPE(item) == (PyTypeObject *)state->slot[CORE_RUN_TYPE];
        inputs[made] = run ? input_of_run(item) : input_of_path(item);
        if (!inputs[made]) {
            break;
        }
    }
    if (made == count) {
        result = comparison_make(state, inputs, (size_t)count, threshold);
    }
    for (Py_ssize_t i = 0; i < made; i++) {
        sw_compare_input_free(inputs[i]);
    }
    PyMem_Free(inputs);
    return result;
}

/* --- Writing ---------------------------------------------------------------------- */

static PyObject *written(const comparison_object *self, const sw_text_options *look)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_error_info info = {0};
    size_t length = 0;
    if (!writer) {
        return PyErr_NoMemory();
    }
    if (look) {
        sw_export_compare_text(writer, self->comparison, look);
    } else {
        sw_export_compare_json(writer, self->comparison);
    }
    const char *text = sw_writer_text(writer, &length);
    PyObject *result = text ? core_decode(text, length) : NULL;
    const int error = sw_writer_close(writer, &info);
    if (error || (!text && !PyErr_Occurred())) {
        Py_CLEAR(result);
        core_raise(error ? error : SW_ENOMEM, &info);
    }
    return result;
}

static PyObject *comparison_json(comparison_object *self, PyObject *Py_UNUSED(ignored))
{
    return written(self, NULL);
}

static PyObject *comparison_text(comparison_object *self, PyObject *args)
{
    Py_ssize_t columns, top;
    int colour, unicode;
    if (!PyArg_ParseTuple(args, "nppn:text", &columns, &colour, &unicode, &top)) {
        return NULL;
    }
    const sw_text_options look = {.columns = columns > 0 ? (size_t)columns : 1,
                                  .colour = colour,
                                  .unicode = unicode,
                                  .top = top < 0 ? SW_TEXT_ALL : (size_t)top};
    return written(self, &look);
}

static PyMethodDef comparison_methods[] = {
    {"json", (PyCFunction)comparison_json, METH_NOARGS,
     PyDoc_STR("The comparison as a JSON document.")},
    {"text", (PyCFunction)comparison_text, METH_VARARGS,
     PyDoc_STR("The comparison as text: columns, colour, unicode, rows a table.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot comparison_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("What changed between runs.")},
    {Py_tp_new, core_no_new},
    {Py_tp_dealloc, comparison_dealloc},
    {Py_tp_methods, comparison_methods},
    {0, NULL},
};

static PyType_Spec comparison_spec = {
    .name = "stepwatch._core._Comparison",
    .basicsize = sizeof(comparison_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = comparison_slots,
};

static PyMethodDef compare_methods[] = {
    {"_compare", core_compare, METH_VARARGS,
     PyDoc_STR("_compare(items, threshold, /)\n--\n\n"
               "Compare runs or paths with the first of them.")},
    {NULL, NULL, 0, NULL},
};

int core_compare_add(PyObject *module)
{
    if (core_type_add(module, CORE_COMPARISON_TYPE, &comparison_spec) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, compare_methods);
}
