/* Keyword arguments as a configuration of the recorder. What there is, and what a value may be, the recorder's own table
 * says: each argument becomes a text, as on a command line. */
#include "options.h"
#include "unseen.h"
#include <math.h>
#include <stdbool.h>
#include <string.h>

static const sw_option *option_find(const char *name)
{
    size_t count;
    const sw_option *all = sw_options(&count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(all[i].name, name) == 0) {
            return &all[i];
        }
    }
    return NULL;
}

static bool is_path(const char *name)
{
    return strcmp(name, "out") == 0 || strcmp(name, "runs_dir") == 0 ||
           strcmp(name, "hot_dir") == 0 || strcmp(name, "nvml") == 0;
}

static PyObject *bytes_of_text(PyObject *value, const char *name)
{
    core_text text;
    if (core_text_get(value, name, &text) != 0) {
        return NULL;
    }
    PyObject *bytes = PyBytes_FromStringAndSize(text.data, text.length);
    core_text_release(&text);
    return bytes;
}

static PyObject *bytes_of_number(PyObject *value, const char *name)
{
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
        return NULL;
    }
    if (!isfinite(number)) {
        PyErr_Format(PyExc_ValueError, "%s must be finite", name);
        return NULL;
    }
    /* Without an exponent, which the recorder does not read. */
    char *text = PyOS_double_to_string(number, 'r', 0, 0, NULL);
    if (text && strchr(text, 'e')) {
        PyMem_Free(text);
        text = PyOS_double_to_string(number, 'f', 9, 0, NULL);
    }
    PyObject *bytes = text ? PyBytes_FromString(text) : PyErr_NoMemory();
    PyMem_Free(text);
    return bytes;
}

/* A text with its parts separated by commas, or a sequence of texts. */
static PyObject *bytes_of_list(PyObject *value, const char *name)
{
    if (PyUnicode_Check(value)) {
        return bytes_of_text(value, name);
    }
    PyObject *comma = PyUnicode_FromString(",");
    PyObject *joined = comma ? PyUnicode_Join(comma, value) : NULL;
    Py_XDECREF(comma);
    if (!joined) {
        return NULL;
    }
    PyObject *bytes = bytes_of_text(joined, name);
    Py_DECREF(joined);
    return bytes;
}

/* The value as the recorder reads it; a new reference. */
static PyObject *bytes_of(const sw_option *option, PyObject *value)
{
    PyObject *bytes = NULL;
    if (is_path(option->name)) {
        return PyUnicode_FSConverter(value, &bytes) ? bytes : NULL;
    }
    if (strcmp(option->type, "bool") == 0 || PyBool_Check(value)) {
        if (PyUnicode_Check(value)) {
            return bytes_of_text(value, option->name);
        }
        if (strcmp(option->type, "bool") == 0 || strcmp(option->name, "progress") == 0) {
            const int truth = PyObject_IsTrue(value);
            return truth < 0 ? NULL : PyBytes_FromString(truth ? "on" : "off");
        }
    }
    if (strcmp(option->type, "number") == 0) {
        return bytes_of_number(value, option->name);
    }
    if (strcmp(option->type, "count") == 0) {
        PyObject *number = PyNumber_Index(value);
        PyObject *text = number ? PyObject_Str(number) : NULL;
        bytes = text ? PyUnicode_AsASCIIString(text) : NULL;
        Py_XDECREF(text);
        Py_XDECREF(number);
        return bytes;
    }
    return strcmp(option->type, "list") == 0 ? bytes_of_list(value, option->name)
                                             : bytes_of_text(value, option->name);
}

/* Adds "name=value" to a list. */
static const char *add_pair(core_options *options, const char *name, const char *value)
{
    PyObject *pair = PyBytes_FromFormat("%s=%s", name, value);
    if (!pair || PyList_Append(options->alive, pair) != 0) {
        Py_XDECREF(pair);
        return NULL;
    }
    Py_DECREF(pair);
    return PyBytes_AS_STRING(pair); /* the list has it */
}

/* Puts the option before the sentence of a TypeError: whoever gives several must know which it is. */
static void name_the_option(const sw_option *option)
{
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
        return;
    }
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyObject *text = value ? PyObject_Str(value) : NULL;
    const char *said = text ? PyUnicode_AsUTF8(text) : NULL;
    if (said && strncmp(said, option->name, strlen(option->name)) != 0) {
        PyErr_Format(PyExc_TypeError, "%s: %s", option->name, said);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
    } else {
        PyErr_Restore(type, value, trace);
    }
    Py_XDECREF(text);
}

static int read_option(core_options *options, const sw_option *option, PyObject *value,
                       size_t *used)
{
    PyObject *bytes = bytes_of(option, value);
    char *text = NULL;
    if (!bytes) {
        name_the_option(option);
        return -1;
    }
    /* With no length asked for, this refuses embedded null bytes. */
    if (PyBytes_AsStringAndSize(bytes, &text, NULL) != 0) {
        Py_DECREF(bytes);
        return -1;
    }
    sw_error_info info = {0};
    const char *pair = NULL;
    int result = 0;
    if (!*text) {
        /* says nothing, as an empty variable does */
    } else if (sw_option_check(option->name, text, &info) != SW_OK) {
        PyErr_SetString(PyExc_ValueError, info.message);
        result = -1;
    } else if ((pair = add_pair(options, option->name, text)) != NULL) {
        options->set[(*used)++] = pair;
    } else {
        result = -1;
    }
    Py_DECREF(bytes);
    return result;
}

/* A path is a configuration file; anything else is a mapping, which Python takes apart. */
static int read_config(core_options *options, PyObject *value)
{
    PyObject *bytes = NULL;
    if (PyUnicode_Check(value) || PyBytes_Check(value) ||
        PyObject_HasAttrString(value, "__fspath__")) {
        if (!PyUnicode_FSConverter(value, &bytes)) {
            return -1;
        }
        int result = PyList_Append(options->alive, bytes);
        Py_DECREF(bytes);
        options->config.config = PyBytes_AS_STRING(bytes);
        return result;
    }
    PyObject *module = core_import("stepwatch._config");
    PyObject *pairs = module ? PyObject_CallMethod(module, "pairs_of", "O", value) : NULL;
    Py_XDECREF(module);
    if (!pairs) {
        return -1;
    }
    if (PyList_Append(options->alive, pairs) != 0 || !PyList_Check(pairs)) {
        Py_DECREF(pairs);
        return -1;
    }
    Py_DECREF(pairs);
    const Py_ssize_t count = PyList_GET_SIZE(pairs);
    options->presets = PyMem_Calloc((size_t)count + 1, sizeof *options->presets);
    if (!options->presets) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *encoded = bytes_of_text(PyList_GET_ITEM(pairs, i), "config");
        char *text = NULL;
        if (!encoded || PyList_Append(options->alive, encoded) != 0 ||
            PyBytes_AsStringAndSize(encoded, &text, NULL) != 0) {
            Py_XDECREF(encoded);
            return -1;
        }
        Py_DECREF(encoded);
        options->presets[i] = text;
    }
    options->config.presets = options->presets;
    return 0;
}

int core_options_read(core_options *options, PyObject *kwargs)
{
    PyObject *key, *value;
    Py_ssize_t position = 0;
    size_t used = 0;
    const size_t room = kwargs ? (size_t)PyDict_GET_SIZE(kwargs) : 0;
    memset(options, 0, sizeof *options);
    options->alive = PyList_New(0);
    options->set = PyMem_Calloc(room + 1, sizeof *options->set);
    if (!options->alive || !options->set) {
        PyErr_NoMemory();
        return -1;
    }
    while (kwargs && PyDict_Next(kwargs, &position, &key, &value)) {
        const char *name = PyUnicode_AsUTF8(key);
        if (!name) {
            return -1;
        }
        const bool file = strcmp(name, "config") == 0;
        const sw_option *option = option_find(name);
        if (option && option->flags & SW_OPTION_ENVIRONMENT) {
            PyErr_Format(
                PyExc_TypeError,
                "start() has no option '%U': it can be given by its variable only", key);
            return -1;
        }
        if (!option && !file) {
            const char *nearest = sw_option_nearest(name);
            PyErr_Format(PyExc_TypeError,
                         nearest ? "start() has no option '%U'; did you mean '%s'?"
                                 : "start() has no option '%U'",
                         key, nearest);
            return -1;
        }
        /* None is "not given", so that callers can pass their own defaults on. */
        if (value == Py_None) {
            continue;
        }
        if (file ? read_config(options, value) != 0
                 : read_option(options, option, value, &used) != 0) {
            return -1;
        }
    }
    options->config.set = options->set;
    return 0;
}

void core_options_free(core_options *options)
{
    PyMem_Free(options->set);
    PyMem_Free(options->presets);
    Py_XDECREF(options->alive);
    memset(options, 0, sizeof *options);
}

/* --- for Python --------------------------------------------------------------------- */

static PyObject *list_options(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    size_t count;
    const sw_option *all = sw_options(&count);
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *row = Py_BuildValue("(ssssI)", all[i].name, all[i].type,
                                      all[i].default_value, all[i].help, all[i].flags);
        if (!row || PyList_Append(list, row) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(row);
    }
    return list;
}

static PyMethodDef options_methods[] = {
    {"_options", list_options, METH_NOARGS,
     PyDoc_STR("The table of options: name, type, default, help and flags of each.")},
    {NULL, NULL, 0, NULL},
};

int core_options_add(PyObject *module)
{
    return PyModule_AddFunctions(module, options_methods);
}
