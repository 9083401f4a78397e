/* The monitor, as Python starts and stops it. The monitor itself is the library's and knows nothing of
 * Python. */
#include "monitor.h"

#include <math.h>
#include <pthread.h>
#include <stepwatch/stepwatch.h>

/* --- Forks ------------------------------------------------------------------------ */

/* On the main thread, when os.fork has returned: Python counts threads before that, and warns. */
static int resume(void *arg)
{
    (void)arg;
    sw_watch_resume();
    return 0;
}

static void fork_parent(void)
{
    if (Py_IsInitialized() && sw_monitor_interval() > 0) {
        (void)Py_AddPendingCall(resume, NULL);
    }
}

/* After the recorder's own handlers, which come with the first recording. */
void core_monitor_began(void)
{
    static bool registered;
    if (!registered && sw_monitor_interval() > 0) {
        registered = pthread_atfork(NULL, fork_parent, NULL) == 0;
    }
}

/* --- Functions -------------------------------------------------------------------- */

PyDoc_STRVAR(
    start_doc,
    "monitor_start(interval=None, /)\n--\n\n"
    "Start the monitor; None: with the interval of the options, else 1 s. Tell whether\n"
    "it runs: it does not where nothing is recorded.");

static PyObject *core_monitor_start(PyObject *Py_UNUSED(module), PyObject *const *args,
                                    Py_ssize_t count)
{
    double interval = 0;
    if (count > 1) {
        PyErr_Format(PyExc_TypeError, "monitor_start() takes 1 argument, %zd given",
                     count);
        return NULL;
    }
    if (count == 1 && args[0] != Py_None) {
        interval = PyFloat_AsDouble(args[0]);
        if (interval == -1.0 && PyErr_Occurred()) {
            return NULL;
        }
        if (!(interval >= SW_MONITOR_LEAST_S && interval <= SW_MONITOR_MOST_S)) {
            PyErr_SetString(PyExc_ValueError,
                            "the monitor's interval should be from 0.01 to 3600 seconds");
            return NULL;
        }
    }
    sw_error_info info = {0};
    int result;
    Py_BEGIN_ALLOW_THREADS result = sw_monitor_start(interval, &info);
    Py_END_ALLOW_THREADS core_monitor_began();
    if (result != SW_OK && result != SW_ESTATE) {
        /* The program runs on without it. */
        PySys_FormatStderr("stepwatch: there is no monitor: %s\n", info.message);
    }
    return PyBool_FromLong(result == SW_OK);
}

PyDoc_STRVAR(stop_doc, "monitor_stop()\n--\n\n"
                       "Look once more and stop the monitor. Fine when it does not run.");

static PyObject *core_monitor_stop(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(ignored))
{
    Py_BEGIN_ALLOW_THREADS sw_monitor_stop();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

PyDoc_STRVAR(look_doc, "monitor_look()\n--\n\n"
                       "Let the monitor look now; tell whether it runs.");

static PyObject *core_monitor_look(PyObject *Py_UNUSED(module),
                                   PyObject *Py_UNUSED(ignored))
{
    bool runs;
    Py_BEGIN_ALLOW_THREADS runs = sw_monitor_look();
    Py_END_ALLOW_THREADS return PyBool_FromLong(runs);
}

PyDoc_STRVAR(interval_doc,
             "monitor_interval()\n--\n\n"
             "Seconds between two looks of the monitor; 0.0 when it does not run.");

static PyObject *core_monitor_interval(PyObject *Py_UNUSED(module),
                                       PyObject *Py_UNUSED(ignored))
{
    return PyFloat_FromDouble(sw_monitor_interval());
}

PyDoc_STRVAR(worker_doc, "monitor_worker(pid, /)\n--\n\n"
                         "Say that a child process makes batches.");

static PyObject *core_monitor_worker(PyObject *Py_UNUSED(module), PyObject *pid)
{
    const long number = PyLong_AsLong(pid);
    if (number == -1 && PyErr_Occurred()) {
        return NULL;
    }
    sw_monitor_worker(number);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(io_flush_doc, "io_flush()\n--\n\n"
                           "Put what was counted of calls on files and sockets into "
                           "the trace now.");

static PyObject *core_io_flush(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    sw_io_flush();
    Py_RETURN_NONE;
}

static PyMethodDef monitor_methods[] = {
    {"monitor_start", (PyCFunction)(void (*)(void))core_monitor_start, METH_FASTCALL,
     start_doc},
    {"monitor_stop", core_monitor_stop, METH_NOARGS, stop_doc},
    {"monitor_look", core_monitor_look, METH_NOARGS, look_doc},
    {"monitor_interval", core_monitor_interval, METH_NOARGS, interval_doc},
    {"monitor_worker", core_monitor_worker, METH_O, worker_doc},
    {"io_flush", core_io_flush, METH_NOARGS, io_flush_doc},
    {NULL, NULL, 0, NULL},
};

int core_monitor_add(PyObject *module)
{
    return PyModule_AddFunctions(module, monitor_methods);
}
