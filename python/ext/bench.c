/* What the sweeps of stepwatch measure with: calls one by one, their statistics, and the memory of processes.
 *
 * Times are doubles in buffers that Python made (array.array("d")), in seconds. */
#include "bench.h"
#include "core.h"
#include "ticks.h"
#include <stepwatch/host.h>
#if defined(__GLIBC__)
#include <malloc.h>
#endif

static PyObject *none(void)
{
    Py_INCREF(Py_None);
    return Py_None;
}

/* --- Calls ------------------------------------------------------------------------------ */

/* Calls once, and waits for what the call has set going. 0, or -1 with the exception of whoever raised. */
static int call_once(PyObject *function, PyObject *args, PyObject *kwargs, PyObject *wait)
{
    PyObject *result = PyObject_Call(function, args, kwargs);
    if (result && wait != Py_None) {
        PyObject *done = PyObject_CallOneArg(wait, result);
        Py_XDECREF(done);
        if (!done) {
            Py_CLEAR(result);
        }
    }
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static PyObject *time_calls(PyObject *Py_UNUSED(module), PyObject *arguments)
{
    PyObject *function, *args, *kwargs, *wait;
    Py_buffer out;
    if (!PyArg_ParseTuple(arguments, "OO!O!Ow*:time_calls", &function, &PyTuple_Type,
                          &args, &PyDict_Type, &kwargs, &wait, &out)) {
        return NULL;
    }
    double *times = out.buf;
    const Py_ssize_t count = out.len / (Py_ssize_t)sizeof *times;
    PyObject *answer = NULL;
    PyObject *named = PyDict_GET_SIZE(kwargs) ? kwargs : NULL;
    core_ticks_init();
    for (Py_ssize_t i = 0; i < count; i++) {
        const uint64_t begin = core_ticks();
        if (call_once(function, args, named, wait) != 0) {
            goto out;
        }
        const uint64_t end = core_ticks();
        times[i] = end > begin ? (double)(end - begin) : 0.0;
        /* Functions of C never look whether the user wants to stop. */
        if (PyErr_CheckSignals() != 0) {
            goto out;
        }
    }
    const double unit = core_ticks_ns() * 1e-9;
    for (Py_ssize_t i = 0; i < count; i++) {
        times[i] *= unit;
    }
    answer = none();
out:
    PyBuffer_Release(&out);
    return answer;
}

/* --- Statistics --------------------------------------------------------------------------- */

static PyObject *or_none(double value)
{
    return value == value ? PyFloat_FromDouble(value) : none();
}

static PyObject *summarize(PyObject *Py_UNUSED(module), PyObject *given)
{
    Py_buffer view;
    if (PyObject_GetBuffer(given, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
        return NULL;
    }
    PyObject *answer = NULL;
    const size_t count = (size_t)view.len / sizeof(double);
    if (view.itemsize != sizeof(double) || !view.format || view.format[0] != 'd') {
        PyErr_SetString(PyExc_TypeError, "summarize() takes an array of doubles");
        goto out;
    }
    bench_summary summary;
    if (bench_summarize(view.buf, count, &summary) != 0) {
        PyErr_NoMemory();
        goto out;
    }
    answer = Py_BuildValue(
        "{s:n,s:d,s:N,s:N,s:N,s:N,s:N,s:N,s:N}", "count", (Py_ssize_t)count, "total",
        summary.total, "mean", or_none(summary.mean), "std", or_none(summary.std), "min",
        or_none(summary.min), "max", or_none(summary.max), "p50", or_none(summary.p50),
        "p90", or_none(summary.p90), "p99", or_none(summary.p99));
out:
    PyBuffer_Release(&view);
    return answer;
}

/* Reads rows of the same length into one array, row after row. 0, or -1 with an exception set. */
static int rows_get(PyObject *rows, double **values, size_t *settings, size_t *rounds)
{
    PyObject *outer = PySequence_Fast(rows, "rounds_noise() takes a sequence of rows");
    if (!outer) {
        return -1;
    }
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(outer);
    Py_ssize_t width = 0;
    PyObject *inner = NULL;
    *values = NULL;
    for (Py_ssize_t i = 0; i < count; i++) {
        Py_XSETREF(inner, PySequence_Fast(PySequence_Fast_GET_ITEM(outer, i),
                                          "rounds_noise() takes rows of numbers"));
        if (!inner) {
            goto failed;
        }
        if (i == 0) {
            width = PySequence_Fast_GET_SIZE(inner);
            *values = PyMem_Calloc((size_t)(count * width) + 1, sizeof **values);
            if (!*values) {
                PyErr_NoMemory();
                goto failed;
            }
        }
        if (PySequence_Fast_GET_SIZE(inner) != width) {
            PyErr_SetString(PyExc_ValueError, "rounds_noise() takes rows of one length");
            goto failed;
        }
        for (Py_ssize_t j = 0; j < width; j++) {
            const double value = PyFloat_AsDouble(PySequence_Fast_GET_ITEM(inner, j));
            if (value == -1.0 && PyErr_Occurred()) {
                goto failed;
            }
            (*values)[i * width + j] = value;
        }
    }
    Py_XDECREF(inner);
    Py_DECREF(outer);
    *settings = (size_t)count;
    *rounds = (size_t)width;
    return 0;
failed:
    PyMem_Free(*values);
    Py_XDECREF(inner);
    Py_DECREF(outer);
    return -1;
}

static PyObject *rounds_noise(PyObject *Py_UNUSED(module), PyObject *rows)
{
    double *values;
    size_t settings, rounds;
    if (rows_get(rows, &values, &settings, &rounds) != 0) {
        return NULL;
    }
    const double width = bench_rounds_noise(values, settings, rounds);
    PyMem_Free(values);
    return or_none(width);
}

/* --- The machine ---------------------------------------------------------------------------- */

static PyObject *known(uint64_t value)
{
    return value == UINT64_MAX ? none() : PyLong_FromUnsignedLongLong(value);
}

static PyObject *resident(PyObject *Py_UNUSED(module), PyObject *pids)
{
    PyObject *fast = PySequence_Fast(pids, "resident() takes a sequence of processes");
    if (!fast) {
        return NULL;
    }
    uint64_t sum = 0;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast); i++) {
        const long long pid = PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast, i));
        if (pid == -1 && PyErr_Occurred()) {
            Py_DECREF(fast);
            return NULL;
        }
        /* A worker may have ended meanwhile: it has nothing any more. */
        const uint64_t bytes = sw_host_resident(pid);
        sum += bytes == UINT64_MAX ? 0 : bytes;
    }
    Py_DECREF(fast);
    return PyLong_FromUnsignedLongLong(sum);
}

static PyObject *resident_peak(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return known(sw_host_resident_peak());
}

static PyObject *process_io(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    sw_host_io io;
    sw_host_io_read(&io);
    const uint64_t values[] = {io.read_bytes,        io.written_bytes,
                               io.read_calls,        io.write_calls,
                               io.device_read_bytes, io.device_written_bytes};
    const Py_ssize_t count = (Py_ssize_t)(sizeof values / sizeof values[0]);
    if (values[0] == UINT64_MAX) {
        Py_RETURN_NONE;
    }
    PyObject *numbers = PyTuple_New(count);
    for (Py_ssize_t i = 0; numbers && i < count; i++) {
        PyObject *number = known(values[i]);
        if (!number) {
            Py_CLEAR(numbers);
            break;
        }
        PyTuple_SET_ITEM(numbers, i, number);
    }
    return numbers;
}

static PyObject *memory_available(PyObject *Py_UNUSED(module),
                                  PyObject *Py_UNUSED(ignored))
{
    return known(sw_host_memory_available());
}

static PyObject *cpus_usable(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
    return PyFloat_FromDouble(sw_host_cpus_percent() / 100.0);
}

static PyObject *memory_trim(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(ignored))
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
    Py_RETURN_NONE;
}

static PyMethodDef bench_methods[] = {
    {"time_calls", time_calls, METH_VARARGS,
     PyDoc_STR("time_calls(function, args, kwargs, wait, out, /)\n--\n\n"
               "Call as often as the array has places, and put the seconds of each call "
               "there;\n"
               "wait(result), if not None, is part of a call.")},
    {"summarize", summarize, METH_O,
     PyDoc_STR("summarize(values, /)\n--\n\n"
               "Statistics of an array of doubles; None for what is not known.")},
    {"rounds_noise", rounds_noise, METH_O,
     PyDoc_STR(
         "rounds_noise(rows, /)\n--\n\n"
         "How far two means of rows may lie apart by chance (95 %); each row has the\n"
         "value of every round. None where that cannot be told.")},
    {"resident", resident, METH_O,
     PyDoc_STR("resident(pids, /)\n--\n\n"
               "Bytes of these processes in memory together; 0 is this one.")},
    {"resident_peak", resident_peak, METH_NOARGS,
     PyDoc_STR("The most that this process ever had in memory, or None.")},
    {"process_io", process_io, METH_NOARGS,
     PyDoc_STR(
         "What this process has read and written: bytes, calls, bytes of devices, each\n"
         "in and out; None where the kernel does not tell.")},
    {"memory_available", memory_available, METH_NOARGS,
     PyDoc_STR("Bytes that this process could still take, or None.")},
    {"cpus_usable", cpus_usable, METH_NOARGS,
     PyDoc_STR("Processors that this process may use: affinity and quota.")},
    {"memory_trim", memory_trim, METH_NOARGS,
     PyDoc_STR("Give freed memory back to the system, where that can be asked for.")},
    {NULL, NULL, 0, NULL},
};

int core_bench_add(PyObject *module)
{
    core_ticks_init();
    return PyModule_AddFunctions(module, bench_methods);
}
