/* A context manager in C that does nothing: the least that one costs when it is written the usual way. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

static PyObject *empty_enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    Py_INCREF(self);
    return self;
}

static PyObject *empty_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)self;
    (void)args;
    (void)count;
    Py_RETURN_NONE;
}

static PyMethodDef empty_methods[] = {
    {"__enter__", empty_enter, METH_NOARGS, NULL},
    {"__exit__", (PyCFunction)(void (*)(void))empty_exit, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot empty_slots[] = {
    {Py_tp_methods, empty_methods},
    {0, NULL},
};

static PyType_Spec empty_spec = {
    .name = "stepwatch_bench_empty.Empty",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = empty_slots,
};

static struct PyModuleDef empty_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stepwatch_bench_empty",
    .m_size = -1,
};

PyMODINIT_FUNC PyInit_stepwatch_bench_empty(void);

PyMODINIT_FUNC PyInit_stepwatch_bench_empty(void)
{
    PyObject *module = PyModule_Create(&empty_module);
    PyObject *type = module ? PyType_FromSpec(&empty_spec) : NULL;
    if (!type || PyModule_AddObject(module, "Empty", type) != 0) {
        Py_XDECREF(type);
        Py_XDECREF(module);
        return NULL;
    }
    return module;
}
