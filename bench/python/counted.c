/* Tells callgrind what to count: counted(function, *arguments) calls the function, and what that takes on the calling thread
 * is written to a file of its own. Without valgrind around it, it calls the function and nothing more. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <valgrind/callgrind.h>

/* callgrind is told the name of this function: --toggle-collect=stepwatch_counted. */
__attribute__((noinline)) PyObject *stepwatch_counted(PyObject *function,
                                                      PyObject *steps);

__attribute__((noinline)) PyObject *stepwatch_counted(PyObject *function, PyObject *steps)
{
    return PyObject_CallFunctionObjArgs(function, steps, NULL);
}

static PyObject *counted(PyObject *module, PyObject *args)
{
    (void)module;
    const char *name;
    PyObject *function, *steps;
    if (!PyArg_ParseTuple(args, "sOO:counted", &name, &function, &steps)) {
        return NULL;
    }
    /* What is running while counting begins is not counted right: it has been called uncounted. */
    CALLGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    PyObject *result = stepwatch_counted(function, steps);
    CALLGRIND_DUMP_STATS_AT(name);
    CALLGRIND_STOP_INSTRUMENTATION;
    return result;
}

static PyMethodDef counted_methods[] = {
    {"counted", counted, METH_VARARGS,
     PyDoc_STR(
         "counted(name, function, steps, /)\n--\n\nCall function(steps), counted.")},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef counted_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stepwatch_bench_counted",
    .m_size = -1,
    .m_methods = counted_methods,
};

PyMODINIT_FUNC PyInit_stepwatch_bench_counted(void);

PyMODINIT_FUNC PyInit_stepwatch_bench_counted(void)
{
    return PyModule_Create(&counted_module);
}
