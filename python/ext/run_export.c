/* Run.export: what a run holds, as files of other tools. Where they go is told in Python (_export.py). */
#include "run.h"
#include "unseen.h"

#include <stepwatch/export.h>
#include <stepwatch/write.h>
#include <string.h>

typedef struct export_request {
    const char *format;
    int fd;
    sw_trace_options trace;
} export_request;

static int nothing_of(const core_source *source, const char *what, sw_error_info *info)
{
    return sw_error_set(info, SW_ENOTFOUND, "%.300s holds no %s",
                        sw_run_path(source->run), what);
}

/* One of the formats of totals, which need a summary. */
static int write_totals(core_source *source, sw_writer *writer, const char *format,
                        sw_error_info *info)
{
    int error = core_source_summary(source, info);
    if (!error && strcmp(format, "json") == 0) {
        error = core_source_findings(source, info);
        if (!error) {
            sw_export_report_json(writer, source->summary, source->findings);
        }
        return error;
    }
    if (!error && strcmp(format, "pstats") == 0) {
        const sw_functions *functions = sw_summary_functions(source->summary);
        if (!functions) {
            return nothing_of(source, "function profile; stepwatch.functions() makes one",
                              info);
        }
        sw_export_stats_file(writer, functions, NULL);
        return SW_OK;
    }
    if (error) {
        return error;
    }
    const sw_stacks *stacks = sw_summary_stacks(source->summary);
    if (!stacks || sw_stacks_count(stacks, NULL).running == 0) {
        return nothing_of(source,
                          "samples of running threads; stepwatch.sample() takes "
                          "them",
                          info);
    }
    const sw_stack_options look = {.name = sw_summary_get_run(source->summary)->name};
    if (strcmp(format, "speedscope") == 0) {
        sw_export_speedscope(writer, stacks, &look);
    } else {
        sw_export_collapsed(writer, stacks, &look);
    }
    return SW_OK;
}

/* Without the GIL. */
static int write_all(core_source *source, const export_request *request,
                     sw_error_info *info)
{
    sw_writer *writer = sw_writer_to_fd(request->fd);
    if (!writer) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    const bool trace =
        strcmp(request->format, "chrome") == 0 || strcmp(request->format, "kineto") == 0;
    core_source_lock(source);
    int error = trace ? sw_export_trace(writer, source->run, &request->trace, info)
                      : write_totals(source, writer, request->format, info);
    core_source_unlock(source);
    const int unwritten = sw_writer_close(writer, error ? NULL : info);
    return error ? error : unwritten;
}

/* (first, last, stretches) or None; the stretches are freed with PyMem_Free. */
static int steps_get(PyObject *steps, sw_trace_options *options)
{
    if (steps == Py_None) {
        return 0;
    }
    unsigned long long first, last;
    PyObject *stretches;
    if (!PyArg_ParseTuple(steps, "KKO!", &first, &last, &PyTuple_Type, &stretches)) {
        return -1;
    }
    const size_t count = (size_t)PyTuple_GET_SIZE(stretches);
    sw_trace_steps *list = PyMem_New(sw_trace_steps, count + 1);
    if (!list) {
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned long long from, to;
        PyObject *pair = PyTuple_GET_ITEM(stretches, (Py_ssize_t)i);
        if (!PyArg_ParseTuple(pair, "KK", &from, &to)) {
            PyMem_Free(list);
            return -1;
        }
        list[i] = (sw_trace_steps){from, to};
    }
    options->stretches = list;
    options->stretch_count = count;
    options->some_steps = true;
    options->first_step = first;
    options->last_step = last;
    return 0;
}

/* The source of a run that recorded something. */
static core_source *recorded(PyObject *self)
{
    core_source *source = core_run_source(self);
    if (source && !source->run) {
        core_source_release(source);
        PyErr_SetString(PyExc_ValueError,
                        "nothing was recorded, so there is nothing to export");
        return NULL;
    }
    return source;
}

PyObject *core_run_export_fd(PyObject *self, PyObject *args)
{
    export_request request = {0};
    PyObject *steps;
    Py_ssize_t part;
    unsigned long long begin_ns = 0, end_ns = 0;
    int samples = 0;
    if (!PyArg_ParseTuple(args, "sinOs|KKp:_export", &request.format, &request.fd, &part,
                          &steps, &request.trace.name, &begin_ns, &end_ns, &samples) ||
        steps_get(steps, &request.trace) != 0) {
        return NULL;
    }
    request.trace.begin_ns = begin_ns;
    request.trace.end_ns = end_ns;
    request.trace.samples = samples != 0;
    request.trace.part = part > 0 ? (size_t)part : 0;
    request.trace.format =
        strcmp(request.format, "kineto") == 0 ? SW_TRACE_KINETO : SW_TRACE_CHROME;
    core_source *source = recorded(self);
    if (!source) {
        PyMem_Free((void *)request.trace.stretches);
        return NULL;
    }
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS error = write_all(source, &request, &info);
    Py_END_ALLOW_THREADS core_source_release(source);
    PyMem_Free((void *)request.trace.stretches);
    if (error) {
        return core_raise(error, &info);
    }
    Py_RETURN_NONE;
}

PyObject *core_run_trace_files(PyObject *self, PyObject *steps)
{
    sw_trace_options options = {.format = SW_TRACE_KINETO};
    if (steps_get(steps, &options) != 0) {
        return NULL;
    }
    core_source *source = recorded(self);
    PyObject *list = source ? PyList_New(0) : NULL;
    const size_t parts = list ? sw_export_trace_parts(source->run, NULL, 0) : 0;
    for (size_t i = 0; i < parts && list; i++) {
        char name[SW_TRACE_FILE_NAME];
        sw_error_info info = {0};
        int error;
        options.part = i + 1;
        Py_BEGIN_ALLOW_THREADS core_source_lock(source);
        error = sw_export_trace_file_name(name, source->run, &options, &info);
        core_source_unlock(source);
        Py_END_ALLOW_THREADS PyObject *text =
            error ? core_raise(error, &info) : PyUnicode_FromString(name);
        if (!text || PyList_Append(list, text) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(text);
    }
    core_source_release(source);
    PyMem_Free((void *)options.stretches);
    return list;
}

/* Passes its arguments on, with the run before them. */
PyObject *core_run_export(PyObject *self, PyObject *args, PyObject *kwargs)
{
    PyObject *module = core_import("stepwatch._export");
    PyObject *function = module ? PyObject_GetAttrString(module, "export") : NULL;
    PyObject *first = PyTuple_Pack(1, self);
    PyObject *all = first && function ? PySequence_Concat(first, args) : NULL;
    PyObject *result = all ? PyObject_Call(function, all, kwargs) : NULL;
    Py_XDECREF(all);
    Py_XDECREF(first);
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}
