/* What a function profile gives back: dicts, text, files. */
#include "functions.h"
#include "put_file.h"
#include "unseen.h"
#include <errno.h>
#include <stepwatch/export.h>

static PyObject *text_of(const char *bytes, size_t length)
{
    return PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "backslashreplace");
}

static int put(PyObject *dict, const char *key, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

static int put_totals(PyObject *dict, const sw_functions *functions,
                      const sw_function_totals *totals)
{
    const double unit_s = sw_functions_unit_ns(functions) / 1e9;
    return put(dict, "calls", PyLong_FromUnsignedLongLong(totals->calls)) ||
           put(dict, "primitive_calls",
               PyLong_FromUnsignedLongLong(totals->primitive_calls)) ||
           put(dict, "errors", PyLong_FromUnsignedLongLong(totals->errors)) ||
           put(dict, "self_s", PyFloat_FromDouble((double)totals->self * unit_s)) ||
           put(dict, "total_s", PyFloat_FromDouble((double)totals->total * unit_s));
}

static int put_key(PyObject *dict, const sw_function *function)
{
    return put(dict, "file", text_of(function->file, function->file_length)) ||
           put(dict, "line", PyLong_FromUnsignedLong(function->line)) ||
           put(dict, "name", text_of(function->name, function->name_length));
}

static PyObject *row_of(const sw_functions *functions, const sw_function *function)
{
    PyObject *row = PyDict_New();
    if (row &&
        (put_key(row, function) ||
         put(row, "qualname", text_of(function->qualname, function->qualname_length)) ||
         put(row, "native", PyBool_FromLong(function->native)) ||
         put_totals(row, functions, &function->totals) ||
         put(row, "callers", PyList_New(0)) || put(row, "callees", PyList_New(0)))) {
        Py_CLEAR(row);
    }
    return row;
}

/* Adds `other` of a call to the list `key` of a row. */
static int put_call(PyObject *row, const char *key, const sw_functions *functions,
                    const sw_function *other, const sw_function_totals *totals)
{
    PyObject *list = PyDict_GetItemString(row, key); /* borrowed */
    PyObject *entry = PyDict_New();
    const int failed = !list || !entry || put_key(entry, other) ||
                       put_totals(entry, functions, totals) || PyList_Append(list, entry);
    Py_XDECREF(entry);
    return failed ? -1 : 0;
}

static int put_calls(PyObject *list, const sw_functions *functions)
{
    for (size_t i = 0; i < sw_functions_call_count(functions); i++) {
        const sw_function_call *call = sw_functions_get_call(functions, i);
        if (call->caller == SW_FUNCTION_UNKNOWN) {
            continue;
        }
        PyObject *caller = PyList_GET_ITEM(list, (Py_ssize_t)call->caller);
        PyObject *callee = PyList_GET_ITEM(list, (Py_ssize_t)call->callee);
        if (put_call(callee, "callers", functions,
                     sw_functions_get(functions, call->caller), &call->totals) != 0 ||
            put_call(caller, "callees", functions,
                     sw_functions_get(functions, call->callee), &call->totals) != 0) {
            return -1;
        }
    }
    return 0;
}

PyObject *functions_list(const sw_functions *functions)
{
    const size_t count = sw_functions_count(functions);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; i < count && list; i++) {
        PyObject *row = row_of(functions, sw_functions_get(functions, i));
        if (row) {
            PyList_SET_ITEM(list, (Py_ssize_t)i, row);
        } else {
            Py_CLEAR(list);
        }
    }
    if (list && put_calls(list, functions) != 0) {
        Py_CLEAR(list);
    }
    return list;
}

PyObject *functions_pstats(const sw_functions *functions)
{
    sw_writer *writer = sw_writer_to_memory();
    size_t length = 0;
    sw_export_pstats(writer, functions);
    const char *bytes = writer ? sw_writer_text(writer, &length) : NULL;
    PyObject *marshal = core_import("marshal");
    PyObject *stats = NULL;
    if (!bytes) {
        PyErr_NoMemory();
    } else if (marshal) {
        stats = PyObject_CallMethod(marshal, "loads", "y#", bytes, (Py_ssize_t)length);
    }
    Py_XDECREF(marshal);
    sw_writer_close(writer, NULL);
    return stats;
}

PyObject *functions_text(const sw_functions *functions,
                         const sw_functions_text_options *options)
{
    sw_writer *writer = sw_writer_to_memory();
    size_t length = 0;
    sw_export_functions_text(writer, functions, options);
    const char *bytes = writer ? sw_writer_text(writer, &length) : NULL;
    PyObject *text = bytes ? text_of(bytes, length) : PyErr_NoMemory();
    sw_writer_close(writer, NULL);
    return text;
}

int functions_sort_get(PyObject *word, enum sw_functions_sort *sort)
{
    *sort = SW_FUNCTIONS_BY_TOTAL;
    if (!word) {
        return 0;
    }
    core_text text;
    if (core_text_get(word, "sort", &text) != 0) {
        return -1;
    }
    const int found = sw_functions_sort_of(text.data, sort);
    core_text_release(&text);
    if (found != 0) {
        PyErr_Format(
            PyExc_ValueError,
            "sort must be cumulative, self, calls, pcalls, errors, name or file, "
            "not %R",
            word);
        return -1;
    }
    return 0;
}

/* One file, private to the user; raises OSError. An earlier one stays as it is until this one is complete. */
static int write_file(const char *path, const sw_functions *functions, bool pstats,
                      const sw_functions_text_options *options)
{
    int error = ENOMEM;
    Py_BEGIN_ALLOW_THREADS;
    sw_writer *writer = sw_writer_to_memory();
    if (pstats) {
        sw_export_stats_file(writer, functions, options);
    } else {
        sw_export_functions_text(writer, functions, options);
    }
    size_t length = 0;
    const char *bytes = writer ? sw_writer_text(writer, &length) : NULL;
    if (bytes) {
        error = put_file(path, bytes, length, 0666);
    }
    sw_writer_close(writer, NULL);
    Py_END_ALLOW_THREADS;
    if (!error) {
        return 0;
    }
    errno = error;
    PyErr_SetFromErrnoWithFilename(PyExc_OSError, path);
    return -1;
}

/* The text's own file: name.stats has name.txt beside it. */
int functions_save(const sw_functions *functions, PyObject *path,
                   const sw_functions_text_options *options)
{
    PyObject *bytes = NULL;
    if (!PyUnicode_FSConverter(path, &bytes)) {
        return -1;
    }
    const char *const stats = PyBytes_AS_STRING(bytes);
    const size_t length = (size_t)PyBytes_GET_SIZE(bytes);
    const bool ends = length > 6 && strcmp(stats + length - 6, ".stats") == 0;
    PyObject *beside =
        PyBytes_FromStringAndSize(stats, (Py_ssize_t)(ends ? length - 6 : length));
    if (beside) {
        PyBytes_ConcatAndDel(&beside, PyBytes_FromString(".txt"));
    }
    int result = -1;
    if (beside) {
        result = write_file(stats, functions, true, options);
    }
    if (result == 0) {
        result = write_file(PyBytes_AS_STRING(beside), functions, false, options);
    }
    Py_XDECREF(beside);
    Py_DECREF(bytes);
    return result;
}
