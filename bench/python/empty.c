/* Two context managers in C. Empty does nothing: the least that one costs when it is written the usual way. Clock is its own
 * `__enter__` and `__exit__`, as a section is, and reads the clock in both: the least that any timer costs here. clock("name") finds one
 * without looking. As hooks of sys.monitoring, Clock() reads the clock and Clock(False) does nothing. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stddef.h>
#include <structmember.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

static uint64_t read_clock(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

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

typedef struct clock_object {
    PyObject_HEAD vectorcallfunc call;
    uint64_t ticks;
} clock_object;

static PyObject *clock_call(PyObject *self, PyObject *const *args, size_t nargsf,
                            PyObject *names)
{
    (void)args;
    (void)names;
    ((clock_object *)self)->ticks = read_clock();
    PyObject *result = PyVectorcall_NARGS(nargsf) == 0 ? self : Py_None;
    Py_INCREF(result);
    return result;
}

static PyObject *nothing_call(PyObject *self, PyObject *const *args, size_t nargsf,
                              PyObject *names)
{
    (void)self;
    (void)args;
    (void)nargsf;
    (void)names;
    Py_RETURN_NONE;
}

static PyObject *clock_new(PyTypeObject *type, PyObject *args, PyObject *names)
{
    (void)names;
    clock_object *self = (clock_object *)type->tp_alloc(type, 0);
    if (self) {
        self->call = PyTuple_GET_SIZE(args) ? nothing_call : clock_call;
    }
    return (PyObject *)self;
}

static PyMemberDef clock_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(clock_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot clock_slots[] = {
    {Py_tp_new, clock_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, clock_members},
    {0, NULL},
};

static PyType_Spec clock_spec = {
    .name = "stepwatch_bench_empty.Clock",
    .basicsize = sizeof(clock_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = clock_slots,
};

/* What the type has for its methods: it answers with the object. */
static PyObject *itself_get(PyObject *self, PyObject *object, PyObject *type)
{
    (void)type;
    PyObject *answer = object ? object : self;
    Py_INCREF(answer);
    return answer;
}

static PyType_Slot itself_slots[] = {
    {Py_tp_descr_get, itself_get},
    {0, NULL},
};

static PyType_Spec itself_spec = {
    .name = "stepwatch_bench_empty.itself",
    .basicsize = sizeof(PyObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = itself_slots,
};

static PyObject *clock_type_new(void)
{
    PyObject *type = PyType_FromSpec(&clock_spec);
    PyObject *kind = type ? PyType_FromSpec(&itself_spec) : NULL;
    PyObject *itself = kind ? PyObject_CallObject(kind, NULL) : NULL;
    if (!itself || PyObject_SetAttrString(type, "__enter__", itself) != 0 ||
        PyObject_SetAttrString(type, "__exit__", itself) != 0) {
        Py_CLEAR(type);
    }
    Py_XDECREF(itself);
    Py_XDECREF(kind);
    return type;
}

static int add(PyObject *module, const char *name, PyObject *type)
{
    if (!type || PyModule_AddObject(module, name, type) != 0) {
        Py_XDECREF(type);
        return -1;
    }
    return 0;
}

static PyObject *only_clock;

static PyObject *get_clock(PyObject *module, PyObject *name)
{
    (void)module;
    (void)name;
    Py_INCREF(only_clock);
    return only_clock;
}

static PyMethodDef module_methods[] = {
    {"clock", get_clock, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef empty_module = {
    PyModuleDef_HEAD_INIT,
    .m_name = "stepwatch_bench_empty",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit_stepwatch_bench_empty(void);

PyMODINIT_FUNC PyInit_stepwatch_bench_empty(void)
{
    PyObject *module = PyModule_Create(&empty_module);
    if (!module || add(module, "Empty", PyType_FromSpec(&empty_spec)) != 0 ||
        add(module, "Clock", clock_type_new()) != 0) {
        Py_XDECREF(module);
        return NULL;
    }
    PyObject *type = PyObject_GetAttrString(module, "Clock");
    only_clock = type ? PyObject_CallObject(type, NULL) : NULL;
    Py_XDECREF(type);
    if (!only_clock) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
