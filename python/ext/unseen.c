/* What runs of ours without being asked for: around imports of the program, and in its audit events. */
#include "unseen.h"
#include <pthread.h>
#include <signal.h>
#include <structmember.h>

/* As Python does it around its own audit hooks. */
void core_unseen_begin(void)
{
    PyThreadState *const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030b0000
    PyThreadState_EnterTracing(thread);
#elif PY_VERSION_HEX >= 0x030a0000
    thread->tracing++;
    thread->cframe->use_tracing = 0;
#else
    thread->tracing++;
    thread->use_tracing = 0;
#endif
}

void core_unseen_end(void)
{
    PyThreadState *const thread = PyThreadState_Get();
#if PY_VERSION_HEX >= 0x030b0000
    PyThreadState_LeaveTracing(thread);
#elif PY_VERSION_HEX >= 0x030a0000
    thread->cframe->use_tracing = thread->c_tracefunc || thread->c_profilefunc ? 255 : 0;
    thread->tracing--;
#else
    thread->use_tracing = thread->c_tracefunc || thread->c_profilefunc;
    thread->tracing--;
#endif
}

/* All signals but those that say that the program is broken. */
static void hold_signals(sigset_t *before)
{
    static const int broken[] = {SIGSEGV, SIGBUS,  SIGFPE, SIGILL,
                                 SIGTRAP, SIGABRT, SIGSYS};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        sigdelset(&held, broken[i]);
    }
    pthread_sigmask(SIG_BLOCK, &held, before);
}

/* Past an __import__ that the program has put in the place of Python's. */
static PyObject *import(const char *name)
{
    PyObject *from = Py_BuildValue("(s)", "__name__"); /* else it gives the package */
    PyObject *module =
        from ? PyImport_ImportModuleLevel(name, NULL, NULL, from, 0) : NULL;
    Py_XDECREF(from);
    return module;
}

PyObject *core_import(const char *name)
{
    if (PyDict_GetItemString(PyImport_GetModuleDict(), name)) {
        return import(name); /* Another thread may not be done with it. */
    }
    sigset_t before;
    hold_signals(&before);
    core_unseen_begin();
    PyObject *module = import(name);
    core_unseen_end();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return module;
}

/* --- A function of ours that is called from code of others --------------------------------- */

/* An object that can be called is no function to profilers: not even the call itself is seen. */
typedef struct unseen_object {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function;
} unseen_object;

static PyObject *unseen_call(PyObject *self, PyObject *const *args, size_t count,
                             PyObject *names)
{
    PyObject *const function = ((unseen_object *)self)->function;
    Py_INCREF(function);
    core_unseen_begin();
    PyObject *result = PyObject_Vectorcall(function, args, count, names);
    core_unseen_end();
    Py_DECREF(function);
    return result;
}

static PyObject *unseen_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    PyObject *function;
    if (kwargs && PyDict_GET_SIZE(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "_unseen() takes no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O:_unseen", &function)) {
        return NULL;
    }
    unseen_object *const self = (unseen_object *)type->tp_alloc(type, 0);
    if (self) {
        Py_INCREF(function);
        self->function = function;
        self->call = unseen_call;
    }
    return (PyObject *)self;
}

static int unseen_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((unseen_object *)self)->function);
    return 0;
}

/* Nothing is cleared: it has no function otherwise, and the functions of a module can be. */
static void unseen_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    Py_CLEAR(((unseen_object *)self)->function);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef unseen_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(unseen_object, call), READONLY, NULL},
    {"__wrapped__", T_OBJECT_EX, offsetof(unseen_object, function), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot unseen_slots[] = {
    {Py_tp_doc, "A function that runs without being told to profilers and debuggers."},
    {Py_tp_new, unseen_new},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, unseen_members},
    {Py_tp_traverse, unseen_traverse},
    {Py_tp_dealloc, unseen_dealloc},
    {0, NULL},
};

static PyType_Spec unseen_spec = {
    .name = "stepwatch._core._unseen",
    .basicsize = sizeof(unseen_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .slots = unseen_slots,
};

int core_unseen_add(PyObject *module)
{
    return core_type_add(module, CORE_UNSEEN_TYPE, &unseen_spec);
}
