/* Functions that hand their arguments to the recorder: start, stop, steps by hand, marks and counters. */
#include "loops.h"
#include "monitor.h"
#include "options.h"
#include "run.h"
#include "training.h"
#include "unseen.h"
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>
#include <unistd.h>

/* --- Profiles that options ask for -------------------------------------------------- */

/* Begun here, and to be ended. Under `stepwatch run` another part of the package does both. */
static bool has_profiles;

static bool wants_profiles(void)
{
    char text[8];
    return !getenv("STEPWATCH_RUN_ID") &&
           (sw_option_value("lines", NULL, 0) > 0 ||
            (sw_option_value("functions", text, sizeof text) &&
             strcmp(text, "on") == 0) ||
            (sw_option_value("operators", text, sizeof text) && strcmp(text, "on") == 0));
}

/* Calls a function of stepwatch._config. An exception of ours must not stop the program: one line says what it was. */
static int call_config(const char *name)
{
    PyObject *config = core_import("stepwatch._config");
    PyObject *result = config ? PyObject_CallMethod(config, name, NULL) : NULL;
    Py_XDECREF(config);
    Py_XDECREF(result);
    if (!result) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) {
            return -1;
        }
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        PyErr_NormalizeException(&type, &value, &trace);
        PySys_FormatStderr("stepwatch: there is no profile: %S\n", value);
        Py_XDECREF(type);
        Py_XDECREF(value);
        Py_XDECREF(trace);
        PyErr_Clear();
    }
    return 0;
}

/* --- The end of the interpreter ------------------------------------------------------ */

#if PY_VERSION_HEX < 0x030b0000

static void interpreter_ends(PyObject *capsule)
{
    (void)capsule;
    sw_shutdown();
}

/* Before 3.11 the main interpreter is freed, and a daemon thread that waits for the GIL goes on reading it: the process
 * crashes unless it ends at once, which it does not while exit() closes the trace. So the trace is closed by what
 * the interpreter keeps until shortly before. */
static void close_with_interpreter(void)
{
    static const char key[] = "stepwatch.end";
    PyInterpreterState *const here = PyInterpreterState_Get();
    PyObject *kept =
        here == PyInterpreterState_Main() ? PyInterpreterState_GetDict(here) : NULL;
    if (kept && !PyDict_GetItemString(kept, key)) {
        PyObject *capsule = PyCapsule_New(&has_profiles, NULL, interpreter_ends);
        if (!capsule || PyDict_SetItemString(kept, key, capsule) != 0) {
            PyErr_Clear();
        }
        Py_XDECREF(capsule);
    }
}

#else

/* An interpreter that a KeyboardInterrupt has ended kills its process by SIGINT, so that whoever started it sees that: exit() is never
 * called, and the trace is closed by the last thing that the interpreter does. */
static void close_with_interpreter(void)
{
    static bool registered;
    if (!registered && core_in_main_interpreter()) {
        registered = Py_AtExit(sw_shutdown) == 0;
    }
}

#endif

/* --- Functions -------------------------------------------------------------------- */

PyDoc_STRVAR(
    start_doc,
    "start(*, config=None, **options)\n--\n\n"
    "Start recording.\n\n"
    "The options are those of docs/configuration.md; config is a file, or a mapping\n"
    "such as OmegaConf's, that counts like a file.\n\n"
    "A wrong option raises; a recording that cannot start does not: the program\n"
    "runs on, and one line on stderr says why it is not recorded.\n\n"
    ">>> stepwatch.start(name='train', sampler_hz=100)\n"
    ">>> run = stepwatch.stop()");

typedef int (*init_function)(const sw_config *config, size_t size, sw_error_info *info);

static PyObject *start_with(PyObject *module, PyObject *args, PyObject *kwargs,
                            init_function init)
{
    if (PyTuple_GET_SIZE(args) != 0) {
        PyErr_SetString(PyExc_TypeError, "start() takes keyword arguments only");
        return NULL;
    }
    core_options options;
    if (core_options_read(&options, kwargs) != 0) {
        core_options_free(&options);
        return NULL;
    }
    sw_error_info info = {0};
    int result;
    const bool was_recording = sw_is_recording();
    Py_BEGIN_ALLOW_THREADS result = init(&options.config, sizeof options.config, &info);
    Py_END_ALLOW_THREADS core_options_free(&options);
    if (!was_recording) {
        core_lines_rebase();
    }
    if (result == 0) {
        close_with_interpreter();
        core_monitor_began();
        if (core_process_began(module) != 0) {
            return NULL;
        }
        if (wants_profiles()) {
            has_profiles = true;
            if (call_config("began") != 0) {
                return NULL;
            }
        }
        Py_RETURN_NONE;
    }
    /* A program that starts by itself may also be under `stepwatch run`, which was first. */
    const bool joined = result == SW_ESTATE && getenv("STEPWATCH_RUN_ID");
    if (result != SW_EDISABLED && !joined) {
        PySys_FormatStderr("stepwatch: not started: %s\n",
                           info.message[0] ? info.message : sw_error_text(result));
    }
    Py_RETURN_NONE;
}

static PyObject *core_start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return start_with(module, args, kwargs, sw_init_info);
}

static PyObject *core_start_brief(PyObject *module, PyObject *args, PyObject *kwargs)
{
    return start_with(module, args, kwargs, sw_init_brief);
}

/* The run that a brief recording becomes, and the descriptor that keeps it: the caller closes it after the run. */
static PyObject *core_brief_run(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    const int fd = sw_brief_fd();
    if (fd < 0) {
        Py_RETURN_NONE;
    }
    PyObject *path = PyUnicode_FromFormat("/proc/self/fd/%d", fd);
    PyObject *run = path ? core_run_new(PyModule_GetState(module), path) : NULL;
    Py_XDECREF(path);
    if (!run) {
        close(fd);
        return NULL;
    }
    return Py_BuildValue("(Ni)", run, fd);
}

/* The run that is being recorded, not opened yet; None when nothing is. */
static PyObject *run_now(PyObject *module)
{
    if (!sw_is_recording()) {
        Py_RETURN_NONE;
    }
    const size_t length = sw_run_dir(NULL, 0);
    char *text = PyMem_Malloc(length + 1);
    if (!text) {
        return PyErr_NoMemory();
    }
    sw_run_dir(text, length + 1);
    PyObject *path = PyUnicode_DecodeFSDefault(text);
    PyMem_Free(text);
    PyObject *run = path ? core_run_new(PyModule_GetState(module), path) : NULL;
    Py_XDECREF(path);
    return run;
}

static PyObject *core_nothing(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    return core_run_new(PyModule_GetState(module), Py_None);
}

PyDoc_STRVAR(
    stop_doc,
    "stop()\n--\n\n"
    "Stop recording and return the Run.\n\n"
    "Where nothing was recorded, because it is switched off for example, the Run is\n"
    "empty, false, and says so. A run is opened when it is first looked at, so\n"
    "stopping stays cheap.\n\n"
    ">>> stepwatch.start(name='train')\n"
    ">>> print(stepwatch.stop().report())");

static PyObject *core_stop(PyObject *module, PyObject *Py_UNUSED(ignored))
{
    if (sw_is_recording()) {
        if (has_profiles) {
            has_profiles = false;
            if (call_config("ends") != 0) {
                return NULL;
            }
        }
        core_loops_finish();
        core_train_finish();
        core_process_ends(module);
        core_lines_sync();
        core_stages_flush();
        core_jit_waits_flush();
        core_functions_flush(module);
        core_memory_flush();
    }
    PyObject *run = run_now(module);
    if (run == Py_None) {
        Py_DECREF(run);
        run = core_nothing(module, NULL);
    }
    /* Recording stops even when its path could not be told. */
    Py_BEGIN_ALLOW_THREADS sw_shutdown();
    Py_END_ALLOW_THREADS core_memory_ended();
    return run;
}

/* What record() needs to know: whether it is the outer one that goes on. Under `stepwatch run`, and in the child of a
 * process that records, recording starts with the first record; asking for the step's number is one. With
 * STEPWATCH_ENABLED alone it is up to the program, which is just about to say how. */
static PyObject *core_recording(PyObject *module, PyObject *argument)
{
    const long first = PyLong_AsLong(argument);
    if (first == -1 && PyErr_Occurred()) {
        return NULL;
    }
    if (!sw_is_recording() && (first != (long)getpid() || getenv("STEPWATCH_RUN_ID") ||
                               !getenv("STEPWATCH_ENABLED"))) {
        Py_BEGIN_ALLOW_THREADS(void) sw_step_number();
        Py_END_ALLOW_THREADS
    }
    PyObject *run = run_now(module);
    return run ? Py_BuildValue("(Nk)", run, (unsigned long)sw_recording_number()) : NULL;
}

PyDoc_STRVAR(version_doc, "version()\n--\n\nVersion of the library.\n\n"
                          ">>> print(stepwatch.version())");

static PyObject *core_version(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyUnicode_FromString(SW_VERSION_STRING);
}

PyDoc_STRVAR(is_recording_doc,
             "is_recording()\n--\n\nTell whether anything is being recorded.\n\n"
             ">>> if stepwatch.is_recording():\n"
             "...     stepwatch.counter('loss', 0.3)");

static PyObject *core_is_recording(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(ignored))
{
    return PyBool_FromLong(sw_is_recording());
}

PyDoc_STRVAR(step_begin_doc, "step_begin()\n--\n\n"
                             "Begin a step on this thread; one that is open ends.\n\n"
                             ">>> stepwatch.step_begin()\n"
                             ">>> stepwatch.step_end()");

static PyObject *core_step_begin(PyObject *Py_UNUSED(module),
                                 PyObject *Py_UNUSED(ignored))
{
    core_train_explicit();
    sw_step_begin();
    core_train_told();
    Py_RETURN_NONE;
}

PyDoc_STRVAR(step_end_doc, "step_end()\n--\n\n"
                           "End the step of this thread, if one is open.\n\n"
                           ">>> stepwatch.step_begin()\n"
                           ">>> stepwatch.step_end()");

static PyObject *core_step_end(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    sw_step_end();
    core_allocators_step();
    core_holders_look(false);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(mark_doc, "mark(text, /)\n--\n\nPut a remark into the timeline.\n\n"
                       ">>> stepwatch.mark('learning rate changed')");

/* A section that is never entered: its gate tells whether a record would go anywhere. It is also open where the first
 * record starts the recording. */
static sw_section *gate;

static PyObject *core_mark(PyObject *Py_UNUSED(module), PyObject *object)
{
    core_text text;
    if (PyUnicode_Check(object) && !SW_GATE(gate)) {
        Py_RETURN_NONE;
    }
    if (core_text_get(object, "mark() argument", &text) != 0) {
        return NULL;
    }
    sw_mark_n(text.data, (size_t)text.length);
    core_text_release(&text);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(
    counter_doc,
    "counter(name, value, /)\n--\n\nRecord a value of a series.\n\n"
    "The value is anything that float() takes, but text: also a scalar of numpy\n"
    "or a tensor of one element. It is not looked at while nothing is recorded.\n\n"
    ">>> stepwatch.counter('loss', 0.3)");

/* Whether float() may take it, told without asking it: a tensor on a device would have to wait. */
static bool may_be_float(PyObject *object)
{
    const PyNumberMethods *number = Py_TYPE(object)->tp_as_number;
    return number && (number->nb_float || number->nb_index);
}

/* 0, or -1 with TypeError for what is no number. A number that a float cannot hold, or that its object fails to tell, must not
 * stop the program: it is recorded as infinite or as not a number. */
static int counter_value(PyObject *object, double *value)
{
    *value = PyFloat_AsDouble(object);
    if (*value != -1.0 || !PyErr_Occurred()) {
        return 0;
    }
    if (PyErr_ExceptionMatches(PyExc_TypeError) ||
        !PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    const bool large = PyErr_ExceptionMatches(PyExc_OverflowError) != 0;
    PyErr_Clear();
    *value = NAN;
    if (large && PyLong_Check(object)) {
        int overflow = 0;
        (void)PyLong_AsLongAndOverflow(object, &overflow);
        *value = overflow < 0 ? -INFINITY : INFINITY;
    }
    return 0;
}

static PyObject *core_counter(PyObject *Py_UNUSED(module), PyObject *const *args,
                              Py_ssize_t count)
{
    if (count != 2) {
        PyErr_Format(PyExc_TypeError, "counter() takes 2 arguments, %zd given", count);
        return NULL;
    }
    if (PyUnicode_Check(args[0]) && !SW_GATE(gate) && may_be_float(args[1])) {
        Py_RETURN_NONE;
    }
    double value;
    core_text name;
    if (counter_value(args[1], &value) != 0 ||
        core_text_get(args[0], "counter() name", &name) != 0) {
        return NULL;
    }
    sw_domain_counter(NULL, name.data, (size_t)name.length, value);
    core_text_release(&name);
    Py_RETURN_NONE;
}

static PyMethodDef control_methods[] = {
    {"start", (PyCFunction)(void (*)(void))core_start, METH_VARARGS | METH_KEYWORDS,
     start_doc},
    {"stop", core_stop, METH_NOARGS, stop_doc},
    {"_start_brief", (PyCFunction)(void (*)(void))core_start_brief,
     METH_VARARGS | METH_KEYWORDS,
     PyDoc_STR("As start, for a recording in memory that this process reads.")},
    {"_brief_run", core_brief_run, METH_NOARGS,
     PyDoc_STR(
         "The run of a brief recording and the descriptor that keeps it, or None.")},
    {"_recording", core_recording, METH_O,
     PyDoc_STR("The run that is being recorded and its number.")},
    {"_nothing", core_nothing, METH_NOARGS,
     PyDoc_STR("The run of which nothing was recorded.")},
    {"version", core_version, METH_NOARGS, version_doc},
    {"is_recording", core_is_recording, METH_NOARGS, is_recording_doc},
    {"step_begin", core_step_begin, METH_NOARGS, step_begin_doc},
    {"step_end", core_step_end, METH_NOARGS, step_end_doc},
    {"mark", core_mark, METH_O, mark_doc},
    {"counter", (PyCFunction)(void (*)(void))core_counter, METH_FASTCALL, counter_doc},
    {NULL, NULL, 0, NULL},
};

int core_control_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    return PyModule_AddFunctions(module, control_methods);
}
