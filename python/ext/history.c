/* stepwatch.history: earlier runs of a place. */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include <stepwatch/config.h>
#include <stepwatch/history.h>

#include "run.h"

/* The folder in which runs are made here; false when nothing was ever run there. */
static bool usual_folder(char *out, size_t size)
{
    sw_given *given = NULL;
    out[0] = '\0';
    if (sw_given_read(&given, NULL, NULL, NULL) == SW_OK) {
        sw_given_place(given, out, size);
        sw_given_free(given);
    }
    return access(out, F_OK) == 0 || errno != ENOENT;
}

/* Reads and writes without the GIL: the JSON document, in memory. */
static sw_writer *read_document(const char *folder, size_t limit, int *error,
                                sw_error_info *info)
{
    sw_history *history = NULL;
    sw_writer *writer = NULL;
    *error = sw_history_read(&history, folder, NULL, info);
    if (*error == SW_OK) {
        writer = sw_writer_to_memory();
        *error = writer ? SW_OK : SW_ENOMEM;
    }
    if (*error == SW_OK) {
        sw_history_write_json(writer, history, limit);
    }
    sw_history_free(history);
    return writer;
}

/* The list of the document as Python's objects. */
static PyObject *runs_of(sw_writer *writer)
{
    size_t length = 0;
    const char *bytes = sw_writer_text(writer, &length);
    PyObject *text = bytes ? core_decode(bytes, length) : PyErr_NoMemory();
    PyObject *json = text ? PyImport_ImportModule("json") : NULL;
    PyObject *document = json ? PyObject_CallMethod(json, "loads", "O", text) : NULL;
    PyObject *runs = document ? PyMapping_GetItemString(document, "runs") : NULL;
    Py_XDECREF(document);
    Py_XDECREF(json);
    Py_XDECREF(text);
    return runs;
}

PyDoc_STRVAR(
    history_doc,
    "history(path=None, limit=20)\n--\n\n"
    "Earlier runs of a place, newest first, as 'stepwatch history --json' gives them.\n\n"
    "path is the folder in which run directories lie, that of the configuration\n"
    "(runs/profiling) unless told; limit None gives all.\n\n"
    ">>> [(run['name'], run['steps']['steps_per_s']) for run in stepwatch.history()]\n"
    "[('train', 41.2), ('train', 31.5)]");

static PyObject *core_history(PyObject *Py_UNUSED(module), PyObject *args,
                              PyObject *kwargs)
{
    static char *keywords[] = {"path", "limit", NULL};
    PyObject *path = Py_None;
    PyObject *limit = NULL;
    PyObject *bytes = NULL;
    char usual[PATH_MAX];
    const char *folder = usual;
    size_t most = 20;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|OO:history", keywords, &path,
                                     &limit)) {
        return NULL;
    }
    if (limit == Py_None) {
        most = 0;
    } else if (limit) {
        const Py_ssize_t number = PyNumber_AsSsize_t(limit, PyExc_OverflowError);
        if (number == -1 && PyErr_Occurred()) {
            return NULL;
        }
        if (number < 1) {
            PyErr_SetString(PyExc_ValueError,
                            "limit should be at least 1, or None for all");
            return NULL;
        }
        most = (size_t)number;
    }
    if (path != Py_None) {
        if (!PyUnicode_FSConverter(path, &bytes)) {
            return NULL;
        }
        folder = PyBytes_AS_STRING(bytes);
    } else if (!usual_folder(usual, sizeof usual)) {
        return PyList_New(0);
    }
    sw_error_info info = {0};
    sw_writer *writer;
    int error;
    Py_BEGIN_ALLOW_THREADS writer = read_document(folder, most, &error, &info);
    Py_END_ALLOW_THREADS PyObject *runs =
        error == SW_OK ? runs_of(writer) : core_raise(error, &info);
    sw_writer_close(writer, NULL);
    Py_XDECREF(bytes);
    return runs;
}

static PyMethodDef history_methods[] = {
    {"history", (PyCFunction)(void (*)(void))core_history, METH_VARARGS | METH_KEYWORDS,
     history_doc},
    {NULL, NULL, 0, NULL},
};

int core_history_add(PyObject *module)
{
    return PyModule_AddFunctions(module, history_methods);
}
