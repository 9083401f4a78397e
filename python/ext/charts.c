/* stepwatch.charts: what a program wants to see, handed to the charts of the library. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <stepwatch/chart.h>
#include <stepwatch/write.h>

#include "charts.h"
#include "put_file.h"
#include "run.h"

/* A chart, or several on one page. Neither changes after it was made. */
typedef struct chart_object {
    PyObject_HEAD sw_chart *chart; /* NULL of a page */
    PyObject *parts;               /* tuple of charts; NULL of a single one */
    size_t columns;
    char *title; /* of a page; NULL: none */
} chart_object;

/* --- numbers from Python ---------------------------------------------------------- */

/* What is not known is NaN, and what is too large infinite; both are left out of charts. */
static int number_of(PyObject *item, double *out)
{
    if (item == Py_None) {
        *out = NAN;
        return 0;
    }
    *out = PyFloat_AsDouble(item);
    if (*out != -1.0 || !PyErr_Occurred()) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        *out = INFINITY;
        return 0;
    }
    return -1;
}

static int is_mapping(PyObject *data, const char *what)
{
    if (PyMapping_Check(data) && !PySequence_Check(data)) {
        return 0;
    }
    if (PyDict_Check(data)) {
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "%s must be a dict, not %.100s", what,
                 Py_TYPE(data)->tp_name);
    return -1;
}

/* A copy, for a number's own code may change the original. NULL with TypeError. */
static PyObject *items_of(PyObject *values, const char *what)
{
    if (PyUnicode_Check(values) || PyBytes_Check(values)) {
        return PyErr_Format(PyExc_TypeError, "%s must be numbers, not %.100s", what,
                            Py_TYPE(values)->tp_name);
    }
    return PySequence_Tuple(values);
}

static int fill_values(sw_chart *chart, const core_text *name, PyObject *values)
{
    PyObject *items = items_of(values, "values");
    if (!items) {
        return -1;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    double *numbers = PyMem_Calloc((size_t)count + 1, sizeof *numbers);
    int result = numbers ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && result == 0; i++) {
        result = number_of(PyTuple_GET_ITEM(items, i), &numbers[i]);
    }
    if (result == 0 && sw_chart_add_values(chart, name->data, (size_t)name->length,
                                           numbers, (size_t)count) != SW_OK) {
        PyErr_NoMemory();
        result = -1;
    } else if (!numbers) {
        PyErr_NoMemory();
    }
    PyMem_Free(numbers);
    Py_DECREF(items);
    return result;
}

/* x and y of one point. */
static int point_of(PyObject *item, double *x, double *y)
{
    PyObject *pair = PySequence_Tuple(item);
    if (!pair) {
        return -1;
    }
    int result = -1;
    if (PyTuple_GET_SIZE(pair) != 2) {
        PyErr_Format(PyExc_ValueError, "a point is (x, y), not %zd numbers",
                     PyTuple_GET_SIZE(pair));
    } else {
        result = number_of(PyTuple_GET_ITEM(pair, 0), x) ||
                         number_of(PyTuple_GET_ITEM(pair, 1), y)
                     ? -1
                     : 0;
    }
    Py_DECREF(pair);
    return result;
}

static int fill_line(sw_chart *chart, const core_text *name, PyObject *points)
{
    PyObject *items = items_of(points, "points");
    if (!items) {
        return -1;
    }
    const Py_ssize_t count = PyTuple_GET_SIZE(items);
    double *x = PyMem_Calloc((size_t)count + 1, 2 * sizeof *x);
    double *y = x ? x + count : NULL;
    int result = x ? 0 : -1;
    for (Py_ssize_t i = 0; i < count && result == 0; i++) {
        result = point_of(PyTuple_GET_ITEM(items, i), &x[i], &y[i]);
    }
    if (result == 0 && sw_chart_add_line(chart, name->data, (size_t)name->length, x, y,
                                         (size_t)count) != SW_OK) {
        PyErr_NoMemory();
        result = -1;
    } else if (!x) {
        PyErr_NoMemory();
    }
    PyMem_Free(x);
    Py_DECREF(items);
    return result;
}

static int add_bar(sw_chart *chart, const core_text *name, const core_text *group,
                   PyObject *value)
{
    double number;
    if (number_of(value, &number) != 0) {
        return -1;
    }
    const int error = sw_chart_add_bar(chart, name->data, (size_t)name->length,
                                       group ? group->data : NULL,
                                       group ? (size_t)group->length : 0, number);
    if (error == SW_ELIMIT) {
        PyErr_SetString(PyExc_ValueError, "a chart has at most 64 groups of bars");
    } else if (error) {
        PyErr_NoMemory();
    }
    return error ? -1 : 0;
}

/* A value, or one for each group. */
static int fill_bars(sw_chart *chart, const core_text *name, PyObject *values)
{
    if (!PyDict_Check(values)) {
        return add_bar(chart, name, NULL, values);
    }
    PyObject *pairs = PyDict_Items(values);
    int result = pairs ? 0 : -1;
    for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        core_text group;
        result = core_text_get(PyTuple_GET_ITEM(pair, 0), "the name of a group", &group);
        if (result == 0) {
            result = add_bar(chart, name, &group, PyTuple_GET_ITEM(pair, 1));
            core_text_release(&group);
        }
    }
    Py_XDECREF(pairs);
    return result;
}

static int fill(sw_chart *chart, enum sw_chart_kind kind, PyObject *data)
{
    if (is_mapping(data, "data") != 0) {
        return -1;
    }
    PyObject *pairs = PyMapping_Items(data);
    int result = pairs ? 0 : -1;
    for (Py_ssize_t i = 0; result == 0 && i < PyList_GET_SIZE(pairs); i++) {
        PyObject *pair = PyList_GET_ITEM(pairs, i);
        core_text name;
        if (!PyTuple_Check(pair) || PyTuple_GET_SIZE(pair) != 2) {
            PyErr_SetString(PyExc_TypeError, "data must be a dict");
            result = -1;
            break;
        }
        result = core_text_get(PyTuple_GET_ITEM(pair, 0), "a name", &name);
        if (result == 0) {
            PyObject *values = PyTuple_GET_ITEM(pair, 1);
            result = kind == SW_CHART_HISTOGRAM ? fill_values(chart, &name, values)
                     : kind == SW_CHART_BARS    ? fill_bars(chart, &name, values)
                                                : fill_line(chart, &name, values);
            core_text_release(&name);
        }
    }
    Py_XDECREF(pairs);
    return result;
}

/* --- making charts ---------------------------------------------------------------- */

#define TEXTS 6

/* A word of a list as its number, or -1 with ValueError. */
static int word_of(const char *word, const char *const *words, const char *what)
{
    for (int i = 0; words[i]; i++) {
        if (strcmp(words[i], word) == 0) {
            return i;
        }
    }
    PyErr_Format(PyExc_ValueError, "%s cannot be '%.60s'", what, word);
    return -1;
}

static chart_object *chart_new(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_CHART_TYPE];
    return (chart_object *)type->tp_alloc(type, 0);
}

static PyObject *chart_make(PyObject *module, const sw_chart_options *options,
                            PyObject *data)
{
    sw_error_info info = {0};
    chart_object *self = chart_new(module);
    if (!self) {
        return NULL;
    }
    const int error = sw_chart_create(&self->chart, options, &info);
    if (error) {
        core_raise(error, &info);
    }
    if (error || fill(self->chart, options->kind, data) != 0) {
        Py_DECREF(self);
        return NULL;
    }
    return (PyObject *)self;
}

static PyObject *core_chart(PyObject *module, PyObject *args)
{
    static const char *const kinds[] = {"histogram", "lines", "areas", "bars", NULL};
    static const char *const scales[] = {"auto", "linear", "log", NULL};
    static const char *const splits[] = {"auto", "together", "apart", NULL};
    const char *kind, *scale, *split;
    PyObject *data, *texts, *result = NULL;
    Py_ssize_t bins, top;
    int sum_others, in_order;
    sw_chart_options options = {0};
    core_text text[TEXTS] = {{0}};
    const char **fields[TEXTS] = {&options.title,  &options.x_label, &options.y_label,
                                  &options.x_unit, &options.y_unit,  &options.empty};
    if (!PyArg_ParseTuple(args, "sOO!ssnnppdd:_chart", &kind, &data, &PyTuple_Type,
                          &texts, &scale, &split, &bins, &top, &sum_others, &in_order,
                          &options.width, &options.height)) {
        return NULL;
    }
    const int numbers[] = {word_of(kind, kinds, "the kind of a chart"),
                           word_of(scale, scales, "scale"),
                           word_of(split, splits, "split")};
    if (numbers[0] < 0 || numbers[1] < 0 || numbers[2] < 0) {
        return NULL;
    }
    if (bins < 0 || top < 0 || PyTuple_GET_SIZE(texts) != TEXTS) {
        return PyErr_Format(PyExc_ValueError, "%s cannot be negative",
                            bins < 0 ? "bins" : "top");
    }
    options.kind = (enum sw_chart_kind)numbers[0];
    options.scale = (enum sw_chart_scale)numbers[1];
    options.split = (enum sw_chart_split)numbers[2];
    options.bins = (size_t)bins;
    options.top = (size_t)top;
    options.sum_others = sum_others;
    options.in_order = in_order;
    bool good = true;
    for (Py_ssize_t i = 0; i < TEXTS && good; i++) {
        PyObject *item = PyTuple_GET_ITEM(texts, i);
        if (item != Py_None) {
            good = core_text_get(item, "a text of a chart", &text[i]) == 0;
            *fields[i] = good ? text[i].data : NULL;
        }
    }
    if (good) {
        result = chart_make(module, &options, data);
    }
    for (size_t i = 0; i < TEXTS; i++) {
        core_text_release(&text[i]);
    }
    return result;
}

static PyObject *core_chart_page(PyObject *module, PyObject *args)
{
    core_state *state = PyModule_GetState(module);
    PyObject *parts, *title;
    Py_ssize_t columns;
    if (!PyArg_ParseTuple(args, "O!nO:_chart_page", &PyTuple_Type, &parts, &columns,
                          &title)) {
        return NULL;
    }
    if (columns < 1) {
        return PyErr_Format(PyExc_ValueError, "a grid has at least one column");
    }
    if (PyTuple_GET_SIZE(parts) == 0) {
        return PyErr_Format(PyExc_ValueError, "a grid has at least one chart");
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(parts); i++) {
        PyObject *part = PyTuple_GET_ITEM(parts, i);
        if (Py_TYPE(part) != (PyTypeObject *)state->slot[CORE_CHART_TYPE] ||
            !((chart_object *)part)->chart) {
            return PyErr_Format(PyExc_TypeError,
                                "a grid holds charts, not grids and not %.100s",
                                Py_TYPE(part)->tp_name);
        }
    }
    core_text text = {0};
    if (title != Py_None && core_text_get(title, "title", &text) != 0) {
        return NULL;
    }
    chart_object *self = chart_new(module);
    if (self) {
        Py_INCREF(parts);
        self->parts = parts;
        self->columns = (size_t)columns;
        self->title = text.data ? strdup(text.data) : NULL;
    }
    core_text_release(&text);
    return (PyObject *)self;
}

PyObject *core_chart_of(core_state *state, sw_chart *chart)
{
    PyTypeObject *type = (PyTypeObject *)state->slot[CORE_CHART_TYPE];
    chart_object *self = (chart_object *)type->tp_alloc(type, 0);
    if (self) {
        self->chart = chart;
    } else {
        sw_chart_free(chart);
    }
    return (PyObject *)self;
}

static void chart_dealloc(chart_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    sw_chart_free(self->chart);
    Py_CLEAR(self->parts);
    free(self->title);
    type->tp_free(self);
    Py_DECREF(type);
}

/* --- writing ---------------------------------------------------------------------- */

/* The image in memory; the caller closes the writer. NULL with an exception. */
static sw_writer *image_of(const chart_object *self, enum sw_chart_format format)
{
    const size_t count = self->parts ? (size_t)PyTuple_GET_SIZE(self->parts) : 1;
    const sw_chart **charts = PyMem_Calloc(count, sizeof *charts);
    sw_writer *writer = sw_writer_to_memory();
    const sw_chart_page page = {.columns = self->columns, .title = self->title};
    sw_error_info info = {0};
    int error = SW_ENOMEM;
    if (charts && writer) {
        for (size_t i = 0; i < count; i++) {
            PyObject *part =
                self->parts ? PyTuple_GET_ITEM(self->parts, (Py_ssize_t)i) : NULL;
            charts[i] = part ? ((chart_object *)part)->chart : self->chart;
        }
        Py_BEGIN_ALLOW_THREADS;
        error = sw_charts_write(writer, format, charts, count, &page, &info);
        error = error ? error : sw_writer_flush(writer);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(charts);
    if (error) {
        sw_writer_close(writer, NULL);
        core_raise(error, &info);
        return NULL;
    }
    return writer;
}

static PyObject *chart_svg(chart_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_writer *writer = image_of(self, SW_CHART_SVG);
    size_t length = 0;
    if (!writer) {
        return NULL;
    }
    const char *text = sw_writer_text(writer, &length);
    PyObject *result = core_decode(text, length);
    sw_writer_close(writer, NULL);
    return result;
}

static PyObject *chart_png(chart_object *self, PyObject *Py_UNUSED(ignored))
{
    sw_writer *writer = image_of(self, SW_CHART_PNG);
    size_t length = 0;
    if (!writer) {
        return NULL;
    }
    const char *bytes = sw_writer_text(writer, &length);
    PyObject *result = PyBytes_FromStringAndSize(bytes, (Py_ssize_t)length);
    sw_writer_close(writer, NULL);
    return result;
}

PyObject *core_chart_png(core_state *state, PyObject *object)
{
    return Py_TYPE(object) == (PyTypeObject *)state->slot[CORE_CHART_TYPE]
               ? chart_png((chart_object *)object, NULL)
               : NULL;
}

/* 1: SVG, 2: PNG, 0: neither. */
static int format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    return !dot                           ? 0
           : strcasecmp(dot, ".svg") == 0 ? 1
           : strcasecmp(dot, ".png") == 0 ? 2
                                          : 0;
}

static PyObject *chart_write(chart_object *self, PyObject *path)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(path, &bytes)) {
        return NULL;
    }
    const char *name = PyBytes_AS_STRING(bytes);
    const int format = format_of(name);
    sw_writer *writer = NULL;
    PyObject *result = NULL;
    if (format == 0) {
        PyErr_Format(PyExc_ValueError,
                     "the name of an image must end in .svg or .png, not %R", path);
        goto out;
    }
    writer = image_of(self, format == 1 ? SW_CHART_SVG : SW_CHART_PNG);
    if (!writer) {
        goto out;
    }
    size_t length = 0;
    const char *text = sw_writer_text(writer, &length);
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = put_file(name, text, length, 0666);
    Py_END_ALLOW_THREADS;
    if (error) {
        errno = error;
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path);
    } else {
        result = PyUnicode_DecodeFSDefault(name);
    }
out:
    sw_writer_close(writer, NULL);
    Py_DECREF(bytes);
    return result;
}

static PyMethodDef chart_methods[] = {
    {"svg", (PyCFunction)chart_svg, METH_NOARGS,
     PyDoc_STR("svg($self, /)\n--\n\nThe chart as the text of an SVG file.")},
    {"png", (PyCFunction)chart_png, METH_NOARGS,
     PyDoc_STR("png($self, /)\n--\n\nThe chart as the bytes of a PNG file.")},
    {"write", (PyCFunction)chart_write, METH_O,
     PyDoc_STR("write($self, path, /)\n--\n\nWrite the chart to a file whose name ends "
               "in .svg or "
               ".png, and return the name.")},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot chart_slots[] = {
    {Py_tp_doc, (void *)PyDoc_STR("A chart, or a grid of charts, as SVG or PNG.")},
    {Py_tp_new, core_no_new},
    {Py_tp_dealloc, chart_dealloc},
    {Py_tp_methods, chart_methods},
    {0, NULL},
};

static PyType_Spec chart_spec = {
    .name = "stepwatch.charts.Chart",
    .basicsize = sizeof(chart_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = chart_slots,
};

static PyMethodDef module_methods[] = {
    {"_chart", core_chart, METH_VARARGS,
     PyDoc_STR("_chart(kind, data, texts, scale, split, bins, top, sum_others, in_order, "
               "width, height, /)\n--\n\nMake a chart.")},
    {"_chart_page", core_chart_page, METH_VARARGS,
     PyDoc_STR("_chart_page(charts, columns, title, /)\n--\n\nCharts side by side.")},
    {NULL, NULL, 0, NULL},
};

int core_charts_add(PyObject *module)
{
    if (core_type_add(module, CORE_CHART_TYPE, &chart_spec) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, module_methods);
}
