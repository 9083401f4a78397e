/* stepwatch.open: a run that was recorded, and its tables. */
#include "run.h"
#include "unseen.h"

#include <errno.h>
#include <stepwatch/export.h>
#include <stepwatch/write.h>
#include <string.h>

typedef struct run_object {
    PyObject_HEAD PyObject *path; /* str; None: nothing was recorded */
    pthread_mutex_t guard;        /* of what is below; nothing is waited for inside */
    core_source *source;          /* NULL until opened, and when closed */
    bool closed;
} run_object;

/* --- Errors ----------------------------------------------------------------------- */

PyObject *core_no_new(PyTypeObject *type, PyObject *Py_UNUSED(args),
                      PyObject *Py_UNUSED(kwargs))
{
    return PyErr_Format(PyExc_TypeError, "%s objects are made by stepwatch only",
                        type->tp_name);
}

PyObject *core_raise(int error, const sw_error_info *info)
{
    const char *text = info->message[0] ? info->message : sw_error_text(error);
    PyObject *type = PyExc_ValueError;
    if (error == SW_ENOMEM) {
        return PyErr_NoMemory();
    }
    if (info->os_errno == ENOENT || info->os_errno == ENOTDIR) {
        type = PyExc_FileNotFoundError;
    } else if (info->os_errno == EACCES || info->os_errno == EPERM) {
        type = PyExc_PermissionError;
    } else if (info->os_errno || error == SW_EREAD) {
        type = PyExc_OSError;
    }
    PyObject *message = core_decode(text, strlen(text));
    PyObject *made = message ? PyObject_CallFunctionObjArgs(type, message, NULL) : NULL;
    if (made && type != PyExc_ValueError && info->os_errno) {
        PyObject *number = PyLong_FromLong(info->os_errno);
        if (!number || PyObject_SetAttrString(made, "errno", number) != 0) {
            PyErr_Clear();
        }
        Py_XDECREF(number);
    }
    if (made) {
        PyErr_SetObject(type, made);
    }
    Py_XDECREF(made);
    Py_XDECREF(message);
    return NULL;
}

/* --- The source ------------------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text);
    const size_t tail = strlen(end);
    return length >= tail && strcmp(text + length - tail, end) == 0;
}

/* Opens without the GIL. `path` is the file system's form of it, NULL for nothing. */
static core_source *source_open(const char *path)
{
    core_source *source;
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS error = core_source_open(&source, path, &info);
    Py_END_ALLOW_THREADS if (error == SW_EFORMAT &&
                             (ends_with(path, ".json") || ends_with(path, ".json.gz")))
    {
        sw_error_set(&info, error,
                     "%s is a JSON file: traces of torch.profiler cannot be read by this "
                     "version, only what stepwatch recorded",
                     path);
    }
    if (error) {
        core_raise(error, &info);
    }
    return source;
}

static core_source *open_path(PyObject *path)
{
    if (path == Py_None) {
        return source_open(NULL);
    }
    PyObject *bytes = PyUnicode_EncodeFSDefault(path);
    if (!bytes) {
        return NULL;
    }
    core_source *source = source_open(PyBytes_AS_STRING(bytes));
    Py_DECREF(bytes);
    return source;
}

/* What is there already; the caller releases it. */
static core_source *source_now(run_object *self, bool *closed)
{
    pthread_mutex_lock(&self->guard);
    core_source *source = self->source ? core_source_retain(self->source) : NULL;
    *closed = self->closed;
    pthread_mutex_unlock(&self->guard);
    return source;
}

int core_run_check(PyObject *run)
{
    run_object *self = (run_object *)run;
    if (__atomic_load_n(&self->closed, __ATOMIC_RELAXED)) {
        PyErr_Format(PyExc_ValueError, "the run %R is closed", self->path);
        return -1;
    }
    return 0;
}

core_source *core_run_source(PyObject *run)
{
    run_object *self = (run_object *)run;
    bool closed;
    core_source *source = source_now(self, &closed);
    if (closed) {
        core_source_release(source);
        core_run_check(run);
        return NULL;
    }
    if (source) {
        return source;
    }
    source = open_path(self->path);
    if (!source) {
        return NULL;
    }
    /* Another thread may have opened it meanwhile: all shall see the same. */
    pthread_mutex_lock(&self->guard);
    core_source *spare = NULL;
    if (self->source) {
        spare = source;
        source = core_source_retain(self->source);
    } else if (!self->closed) {
        self->source = core_source_retain(source);
    }
    pthread_mutex_unlock(&self->guard);
    core_source_release(spare);
    return source;
}

static void source_drop(run_object *self, bool close)
{
    pthread_mutex_lock(&self->guard);
    core_source *source = self->source;
    self->source = NULL;
    if (close) {
        __atomic_store_n(&self->closed, true, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&self->guard);
    core_source_release(source);
}

/* As core_run_source, with the summary made. A source of nothing has none. */
static core_source *summarised(run_object *self)
{
    core_source *source = core_run_source((PyObject *)self);
    if (!source || !source->run) {
        return source;
    }
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS core_source_lock(source);
    error = core_source_summary(source, &info);
    core_source_unlock(source);
    Py_END_ALLOW_THREADS if (error)
    {
        core_source_release(source);
        core_raise(error, &info);
        return NULL;
    }
    return source;
}

/* --- Making runs ------------------------------------------------------------------ */

static run_object *run_make(PyTypeObject *type, PyObject *path)
{
    run_object *self = (run_object *)type->tp_alloc(type, 0);
    if (self) {
        pthread_mutex_init(&self->guard, NULL);
        Py_INCREF(path);
        self->path = path;
    }
    return self;
}

PyObject *core_run_new(core_state *state, PyObject *path)
{
    return (PyObject *)run_make((PyTypeObject *)state->slot[CORE_RUN_TYPE], path);
}

static void run_dealloc(run_object *self)
{
    PyTypeObject *type = Py_TYPE(self);
    core_source_release(self->source);
    pthread_mutex_destroy(&self->guard);
    Py_CLEAR(self->path);
    type->tp_free(self);
    Py_DECREF(type);
}

PyDoc_STRVAR(
    open_doc,
    "open(path, /)\n--\n\n"
    "Open what was recorded: a run directory, or one *.stepwatch file.\n\n"
    "Runs of programs that were killed can be read, and those that still run.\n\n"
    ">>> run = stepwatch.open('runs/profiling/2026-01-01T120000-train')\n"
    ">>> len(run.steps), run.complete\n"
    "(400, True)");

static PyObject *core_open(PyObject *module, PyObject *argument)
{
    PyObject *bytes;
    if (!PyUnicode_FSConverter(argument, &bytes)) {
        return NULL;
    }
    core_state *state = PyModule_GetState(module);
    PyObject *path = PyUnicode_DecodeFSDefaultAndSize(PyBytes_AS_STRING(bytes),
                                                      PyBytes_GET_SIZE(bytes));
    PyObject *run = path ? core_run_new(state, path) : NULL;
    if (run) {
        ((run_object *)run)->source = source_open(PyBytes_AS_STRING(bytes));
        if (!((run_object *)run)->source) {
            Py_CLEAR(run);
        }
    }
    Py_XDECREF(path);
    Py_DECREF(bytes);
    return run;
}

/* --- Attributes ------------------------------------------------------------------- */

static PyObject *text_or_none(const char *text)
{
    if (!text) {
        Py_RETURN_NONE;
    }
    return core_decode(text, strlen(text));
}

enum run_fact {
    FACT_NAME,
    FACT_ID,
    FACT_COMMAND,
    FACT_DURATION,
    FACT_COMPLETE,
    FACT_PROCESSES
};

static PyObject *fact_make(enum run_fact fact, const sw_summary_run *run)
{
    switch (fact) {
    case FACT_NAME:
        return text_or_none(run->name);
    case FACT_ID:
        return text_or_none(run->id);
    case FACT_COMMAND:
        return text_or_none(run->command);
    case FACT_DURATION:
        return PyFloat_FromDouble((double)run->duration_ns / 1e9);
    case FACT_COMPLETE:
        return PyBool_FromLong(run->complete);
    case FACT_PROCESSES:
        return PyLong_FromSize_t(run->processes);
    }
    Py_RETURN_NONE;
}

static PyObject *run_get_fact(run_object *self, void *closure)
{
    static const sw_summary_run nothing = {0};
    core_source *source = summarised(self);
    if (!source) {
        return NULL;
    }
    PyObject *value =
        fact_make((enum run_fact)(uintptr_t)closure,
                  source->summary ? sw_summary_get_run(source->summary) : &nothing);
    core_source_release(source);
    return value;
}

static PyObject *run_get_path(run_object *self, void *Py_UNUSED(closure))
{
    Py_INCREF(self->path);
    return self->path;
}

static PyObject *run_get_recorded(run_object *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(self->path != Py_None);
}

/* A run of which nothing was recorded is false. */
static int run_bool(run_object *self)
{
    return self->path != Py_None;
}

static PyObject *run_get_closed(run_object *self, void *Py_UNUSED(closure))
{
    return PyBool_FromLong(__atomic_load_n(&self->closed, __ATOMIC_RELAXED));
}

static PyObject *run_get_notes(run_object *self, void *Py_UNUSED(closure))
{
    core_source *source = summarised(self);
    PyObject *list = source ? PyList_New(0) : NULL;
    const char *note;
    if (list && !source->summary) {
        PyObject *text = PyUnicode_FromString("Nothing was recorded.");
        if (!text || PyList_Append(list, text) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(text);
    }
    for (size_t i = 0;
         list && source->summary && (note = sw_summary_note(source->summary, i)) != NULL;
         i++) {
        PyObject *text = text_or_none(note);
        if (!text || PyList_Append(list, text) != 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(text);
    }
    core_source_release(source);
    return list;
}

/* Puts a new reference under a key; NULL is an error that is passed on. */
static int put(PyObject *dict, const char *key, PyObject *value)
{
    const int result = value ? PyDict_SetItemString(dict, key, value) : -1;
    Py_XDECREF(value);
    return result;
}

/* A number as int; `known` false gives None. */
static PyObject *number_or_none(bool known, uint64_t value)
{
    if (!known) {
        Py_RETURN_NONE;
    }
    return PyLong_FromUnsignedLongLong(value);
}

/* What the first process of the run says about itself. */
static PyObject *facts_make(const core_source *source)
{
    PyObject *dict = PyDict_New();
    const char *key;
    const char *value;
    for (size_t i = 0; dict && source->trace_count > 0 &&
                       sw_trace_fact_at(source->traces[0], i, &key, &value);
         i++) {
        PyObject *name = core_decode(key, strlen(key));
        PyObject *text = core_decode(value, strlen(value));
        if (!name || !text || PyDict_SetItem(dict, name, text) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(name);
        Py_XDECREF(text);
    }
    return dict;
}

static PyObject *frameworks_make(const sw_summary *summary)
{
    PyObject *dict = PyDict_New();
    const char *name;
    const char *version;
    for (size_t i = 0; dict && sw_summary_framework(summary, i, &name, &version); i++) {
        PyObject *key = core_decode(name, strlen(name));
        PyObject *text = text_or_none(version);
        if (!key || !text || PyDict_SetItem(dict, key, text) != 0) {
            Py_CLEAR(dict);
        }
        Py_XDECREF(key);
        Py_XDECREF(text);
    }
    return dict;
}

static int info_fill(PyObject *dict, const core_source *source)
{
    const sw_summary_run *run = sw_summary_get_run(source->summary);
    const bool started = run->started_real_ns != SW_UNKNOWN;
    const uint64_t begin =
        source->trace_count ? sw_trace_get_info(source->traces[0])->start_ns : 0;
    return put(dict, "id", text_or_none(run->id)) ||
           put(dict, "name", text_or_none(run->name)) ||
           put(dict, "command", text_or_none(run->command)) ||
           put(dict, "started_unix_ns", number_or_none(started, run->started_real_ns)) ||
           put(dict, "begin_ns", number_or_none(source->trace_count > 0, begin)) ||
           put(dict, "duration_s", PyFloat_FromDouble((double)run->duration_ns / 1e9)) ||
           put(dict, "exit_code",
               number_or_none(run->exit_code >= 0, (uint64_t)run->exit_code)) ||
           put(dict, "exit_signal",
               number_or_none(run->exit_signal > 0, (uint64_t)run->exit_signal)) ||
           put(dict, "complete", PyBool_FromLong(run->complete)) ||
           put(dict, "host", text_or_none(run->host)) ||
           put(dict, "python", text_or_none(run->python)) ||
           put(dict, "frameworks", frameworks_make(source->summary)) ||
           put(dict, "processes", PyLong_FromSize_t(run->processes)) ||
           put(dict, "threads", PyLong_FromSize_t(run->threads)) ||
           put(dict, "ranks", PyLong_FromSize_t(run->ranks)) ||
           put(dict, "facts", facts_make(source));
}

static PyObject *run_get_info(run_object *self, void *Py_UNUSED(closure))
{
    core_source *source = summarised(self);
    PyObject *dict = source ? PyDict_New() : NULL;
    if (dict && source->summary && info_fill(dict, source) != 0) {
        Py_CLEAR(dict);
    }
    core_source_release(source);
    return dict;
}

static PyObject *run_get_table(run_object *self, void *closure)
{
    if (core_run_check((PyObject *)self) != 0) {
        return NULL;
    }
    return core_table_new(PyType_GetModuleState(Py_TYPE(self)), (PyObject *)self,
                          (enum core_table_number)(uintptr_t)closure);
}

/* --- Reports ---------------------------------------------------------------------- */

enum report_form { FORM_JSON, FORM_HTML, FORM_MARKDOWN, FORM_TEXT };

/* A report as a str; `look` is that of text. */
static PyObject *written(core_source *source, enum report_form form,
                         const sw_text_options *look)
{
    sw_writer *writer = sw_writer_to_memory();
    if (!writer) {
        return PyErr_NoMemory();
    }
    size_t length = 0;
    const char *text;
    sw_error_info info = {0};
    int error;
    Py_BEGIN_ALLOW_THREADS core_source_lock(source);
    error = core_source_findings(source, &info);
    if (!error && form == FORM_TEXT) {
        sw_export_report_text(writer, source->summary, source->findings, look);
    } else if (!error) {
        (form == FORM_HTML ? sw_export_report_html
         : form == FORM_MARKDOWN
             ? sw_export_report_markdown
             : sw_export_report_json)(writer, source->summary, source->findings);
    }
    core_source_unlock(source);
    text = sw_writer_text(writer, &length);
    Py_END_ALLOW_THREADS PyObject *result = text ? core_decode(text, length) : NULL;
    const int unwritten = sw_writer_close(writer, error ? NULL : &info);
    error = error ? error : unwritten;
    if (error || (!text && !PyErr_Occurred())) {
        Py_CLEAR(result);
        core_raise(error ? error : SW_ENOMEM, &info);
    }
    return result;
}

static PyObject *run_report_json(run_object *self, PyObject *Py_UNUSED(ignored))
{
    core_source *source = summarised(self);
    PyObject *text = NULL;
    if (source && source->summary) {
        text = written(source, FORM_JSON, NULL);
    } else if (source) {
        text = PyUnicode_FromString(
            "{\"schema\": \"stepwatch.report/1\", \"recorded\": false, \"why\": "
            "\"Nothing was recorded.\", \"sections\": [], \"findings\": [], \"notes\": "
            "[\"Nothing was recorded.\"]}");
    }
    core_source_release(source);
    return text;
}

/* A page or Markdown; where nothing was recorded, a document that says so. */
static PyObject *report_document(run_object *self, enum report_form form,
                                 const char *nothing)
{
    core_source *source = summarised(self);
    PyObject *text = NULL;
    if (source && source->summary) {
        text = written(source, form, NULL);
    } else if (source) {
        text = PyUnicode_FromString(nothing);
    }
    core_source_release(source);
    return text;
}

static PyObject *run_report_html(run_object *self, PyObject *Py_UNUSED(ignored))
{
    return report_document(
        self, FORM_HTML,
        "<!DOCTYPE html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
        "<title>stepwatch</title><p>Nothing was recorded.</p></html>\n");
}

static PyObject *run_report_markdown(run_object *self, PyObject *Py_UNUSED(ignored))
{
    return report_document(self, FORM_MARKDOWN, "Nothing was recorded.\n");
}

static PyObject *run_report_text(run_object *self, PyObject *args)
{
    Py_ssize_t columns, top;
    int colour, unicode;
    if (!PyArg_ParseTuple(args, "nppn:_report_text", &columns, &colour, &unicode, &top)) {
        return NULL;
    }
    core_source *source = summarised(self);
    PyObject *text = NULL;
    if (source && source->summary) {
        const sw_text_options look = {.columns = columns > 0 ? (size_t)columns : 1,
                                      .colour = colour,
                                      .unicode = unicode,
                                      .top = top < 0 ? SW_TEXT_ALL : (size_t)top};
        text = written(source, FORM_TEXT, &look);
    } else if (source) {
        text = PyUnicode_FromString("Nothing was recorded.\n");
    }
    core_source_release(source);
    return text;
}

PyDoc_STRVAR(report_doc, "report($self, /)\n--\n\nThe verdict on this run, which stays "
                         "when the run is closed.\n\n"
                         ">>> print(stepwatch.open(path).report())");

/* The report gets a run of its own over the same source. */
static PyObject *run_report(run_object *self, PyObject *Py_UNUSED(ignored))
{
    core_source *source = summarised(self);
    if (!source) {
        return NULL;
    }
    run_object *twin = run_make(Py_TYPE(self), self->path);
    if (!twin) {
        core_source_release(source);
        return NULL;
    }
    twin->source = source;
    PyObject *module = core_import("stepwatch._report");
    PyObject *report = module ? PyObject_CallMethod(module, "Report", "O", twin) : NULL;
    Py_XDECREF(module);
    Py_DECREF(twin);
    return report;
}

PyDoc_STRVAR(
    export_doc,
    "export($self, /, format, path, steps=None, window=None, *, samples=False)\n--\n\n"
    "Write the run as another tool reads it, and return the path of what was written.\n\n"
    "Formats: chrome and kineto (single events on a timeline), collapsed, json, pstats,\n"
    "speedscope, tensorboard (a folder). steps, a number or (first, last) or a list of\n"
    "such pairs, takes these alone (chrome, kineto); window, two moments of\n"
    "time.monotonic_ns(), what lies between them; samples adds looks of the sampler.\n"
    "A kineto trace goes into the folder path, one file a rank, unless it ends in "
    ".json.\n\n"
    ">>> run.export('chrome', 'trace.json', steps=(100, 102))\n"
    "'trace.json'");

PyDoc_STRVAR(chart_doc, "chart($self, name, /)\n--\n\n"
                        "A chart of the run: steps, phases, memory, cpu or gpu.\n\n"
                        ">>> run.chart('memory').write('memory.png')");

/* --- Methods ---------------------------------------------------------------------- */

PyDoc_STRVAR(
    close_doc,
    "close($self, /)\n--\n\nLet go of the files. Using the run or its tables afterwards "
    "raises ValueError.");

static PyObject *run_close(run_object *self, PyObject *Py_UNUSED(ignored))
{
    source_drop(self, true);
    Py_RETURN_NONE;
}

static PyObject *run_renew(run_object *self, PyObject *Py_UNUSED(ignored))
{
    source_drop(self, false);
    Py_RETURN_NONE;
}

static PyObject *run_enter(run_object *self, PyObject *Py_UNUSED(ignored))
{
    if (core_run_check((PyObject *)self) != 0) {
        return NULL;
    }
    Py_INCREF(self);
    return (PyObject *)self;
}

static PyObject *run_exit(run_object *self, PyObject *Py_UNUSED(args))
{
    source_drop(self, true);
    Py_RETURN_NONE;
}

static PyObject *run_fspath(run_object *self, PyObject *Py_UNUSED(ignored))
{
    if (self->path == Py_None) {
        PyErr_SetString(PyExc_ValueError, "nothing was recorded, so there is no path");
        return NULL;
    }
    Py_INCREF(self->path);
    return self->path;
}

/* Never raises for what may be wrong with the files. */
static PyObject *run_repr(run_object *self)
{
    if (self->path == Py_None) {
        return PyUnicode_FromString("<stepwatch.Run: nothing was recorded>");
    }
    if (__atomic_load_n(&self->closed, __ATOMIC_RELAXED)) {
        return PyUnicode_FromFormat("<stepwatch.Run %R: closed>", self->path);
    }
    core_source *source = summarised(self);
    if (!source) {
        core_error_forget();
        return PyUnicode_FromFormat("<stepwatch.Run %R: cannot be read>", self->path);
    }
    const sw_summary_run *run = sw_summary_get_run(source->summary);
    const sw_summary_steps *steps = sw_summary_get_steps(source->summary);
    char duration[24], count[32];
    sw_text_duration(duration, (double)run->duration_ns, true);
    sw_text_count(count, steps ? steps->count : 0);
    PyObject *name = text_or_none(run->name);
    PyObject *text =
        name ? PyUnicode_FromFormat("<stepwatch.Run %R: %R, %s, %zu process%s, %s "
                                    "steps%s>",
                                    self->path, name, duration, run->processes,
                                    run->processes == 1 ? "" : "es", count,
                                    run->complete ? "" : ", not complete")
             : NULL;
    Py_XDECREF(name);
    core_source_release(source);
    return text;
}

static PyMethodDef run_methods[] = {
    {"report", (PyCFunction)run_report, METH_NOARGS, report_doc},
    {"export", (PyCFunction)(void (*)(void))core_run_export, METH_VARARGS | METH_KEYWORDS,
     export_doc},
    {"_export", (PyCFunction)core_run_export_fd, METH_VARARGS,
     PyDoc_STR("Write to a descriptor: format, descriptor, part, steps, name, begin_ns, "
               "end_ns.")},
    {"_trace_files", (PyCFunction)core_run_trace_files, METH_O,
     PyDoc_STR("Names of the files that a kineto trace of these steps is made of.")},
    {"chart", (PyCFunction)core_run_chart, METH_O, chart_doc},
    {"_tensorboard", (PyCFunction)core_run_tensorboard, METH_O,
     PyDoc_STR("Write an event file of TensorBoard into a folder.")},
    {"close", (PyCFunction)run_close, METH_NOARGS, close_doc},
    {"_renew", (PyCFunction)run_renew, METH_NOARGS,
     PyDoc_STR("Look at the files anew at the next use.")},
    {"_report_json", (PyCFunction)run_report_json, METH_NOARGS,
     PyDoc_STR("The report as a JSON document.")},
    {"_report_html", (PyCFunction)run_report_html, METH_NOARGS,
     PyDoc_STR("The report as a page that needs nothing else.")},
    {"_report_markdown", (PyCFunction)run_report_markdown, METH_NOARGS,
     PyDoc_STR("The report as Markdown.")},
    {"_report_text", (PyCFunction)run_report_text, METH_VARARGS,
     PyDoc_STR("The report as text: columns, colour, unicode, rows a table.")},
    {"__enter__", (PyCFunction)run_enter, METH_NOARGS, PyDoc_STR("The run itself.")},
    {"__exit__", (PyCFunction)run_exit, METH_VARARGS, PyDoc_STR("Close the run.")},
    {"__fspath__", (PyCFunction)run_fspath, METH_NOARGS,
     PyDoc_STR("The path, for open() and os.path.")},
    {NULL, NULL, 0, NULL},
};

#define FACT(number) (void *)(uintptr_t)(number)
#define TABLE(name, number, doc)                                                         \
    {                                                                                    \
        name, (getter)run_get_table, NULL, PyDoc_STR(doc), (void *)(uintptr_t)(number)   \
    }

static PyGetSetDef run_getset[] = {
    {"path", (getter)run_get_path, NULL,
     PyDoc_STR("Run directory or file; None when nothing was recorded."), NULL},
    {"recorded", (getter)run_get_recorded, NULL,
     PyDoc_STR("Whether anything was recorded at all."), NULL},
    {"closed", (getter)run_get_closed, NULL, PyDoc_STR("Whether close() was called."),
     NULL},
    {"name", (getter)run_get_fact, NULL, PyDoc_STR("Name of the run."), FACT(FACT_NAME)},
    {"id", (getter)run_get_fact, NULL, PyDoc_STR("Its id, None where there is none."),
     FACT(FACT_ID)},
    {"command", (getter)run_get_fact, NULL,
     PyDoc_STR("Command line, as a shell would take it."), FACT(FACT_COMMAND)},
    {"duration_s", (getter)run_get_fact, NULL, PyDoc_STR("How long it took."),
     FACT(FACT_DURATION)},
    {"complete", (getter)run_get_fact, NULL,
     PyDoc_STR("Whether every process closed its file, and all of it could be read."),
     FACT(FACT_COMPLETE)},
    {"processes", (getter)run_get_fact, NULL, PyDoc_STR("Number of processes."),
     FACT(FACT_PROCESSES)},
    {"notes", (getter)run_get_notes, NULL,
     PyDoc_STR("What was lost or could not be recorded or read, a sentence each."), NULL},
    {"info", (getter)run_get_info, NULL,
     PyDoc_STR("What is known of program and machine, as a dict."), NULL},
    TABLE("sections", CORE_TABLE_SECTIONS,
          "Statistics of sections by path, as in report.json, and in nanoseconds."),
    TABLE("steps", CORE_TABLE_STEPS, "Steps, with the time of each phase."),
    TABLE("counters", CORE_TABLE_COUNTERS, "Values of counters."),
    TABLE("marks", CORE_TABLE_MARKS, "Remarks in the timeline."),
    TABLE("spans", CORE_TABLE_SPANS, "Sections one by one, in the order they ended."),
    TABLE("samples", CORE_TABLE_SAMPLES, "Looks of the sampler at the stacks."),
    TABLE("threads", CORE_TABLE_THREADS, "Threads that recorded something."),
    TABLE("functions", CORE_TABLE_FUNCTIONS,
          "Functions of the exact profile, most self time first."),
    TABLE("lines", CORE_TABLE_LINES, "Lines of the exact profile that ran."),
    TABLE("stacks", CORE_TABLE_STACKS, "Different stacks that the sampler saw."),
    TABLE("modules", CORE_TABLE_MODULES, "Parts of models, most self time first."),
    TABLE("loaders", CORE_TABLE_LOADERS, "Data loaders and their settings."),
    TABLE("stages", CORE_TABLE_STAGES,
          "Stages of producing batches, each worker for itself."),
    TABLE("batches", CORE_TABLE_BATCHES,
          "Batches one by one, in the order they were delivered."),
    TABLE("compilations", CORE_TABLE_COMPILATIONS,
          "Compilations by function and reason."),
    TABLE("waits", CORE_TABLE_WAITS,
          "Places where the program waits for a device, longest first."),
    TABLE("sites", CORE_TABLE_SITES,
          "Where loaders, optimizers, models and datasets were built."),
    TABLE("settings", CORE_TABLE_SETTINGS, "Settings of the framework."),
    TABLE("operators", CORE_TABLE_OPERATORS,
          "Operators of the framework, where they were asked for."),
    TABLE("files", CORE_TABLE_FILES,
          "Files and peers, where calls on them were watched."),
    TABLE("epochs", CORE_TABLE_EPOCHS, "Epochs of the training thread."),
    TABLE(
        "monitor", CORE_TABLE_MONITOR,
        "Series of the monitor with their statistics; those of sums are of their growth "
        "a second."),
    TABLE("monitor_values", CORE_TABLE_MONITOR_VALUES,
          "Values of the monitor's series; of sums the growth a second up to then."),
    TABLE("memory", CORE_TABLE_MEMORY,
          "Sections by what they added to the memory of the process and what they "
          "allocated."),
    TABLE("allocations", CORE_TABLE_ALLOCATIONS,
          "Lines that allocate, where allocations were counted."),
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(run_doc,
             "What was recorded: its facts and its tables.\n\n"
             "Nothing of the trace is held in Python; rows are read when asked for.\n\n"
             ">>> with stepwatch.open(path) as run:\n"
             "...     print(run.name, len(run.steps), run.report())");

static PyType_Slot run_slots[] = {
    {Py_tp_doc, (void *)run_doc}, {Py_tp_new, core_no_new},
    {Py_tp_dealloc, run_dealloc}, {Py_tp_repr, run_repr},
    {Py_nb_bool, run_bool},       {Py_tp_methods, run_methods},
    {Py_tp_getset, run_getset},   {0, NULL},
};

static PyType_Spec run_spec = {
    .name = "stepwatch.Run",
    .basicsize = sizeof(run_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = run_slots,
};

static PyMethodDef open_methods[] = {
    {"open", core_open, METH_O, open_doc},
    {NULL, NULL, 0, NULL},
};

int core_run_add(PyObject *module)
{
    if (core_type_add(module, CORE_RUN_TYPE, &run_spec) != 0 ||
        core_table_add(module) != 0) {
        return -1;
    }
    return PyModule_AddFunctions(module, open_methods);
}
