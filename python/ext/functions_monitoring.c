/* The function profiler's seat from Python 3.12 on: sys.monitoring. Its events come from all threads. */
#include "functions.h"
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000

/* --- Callbacks ---------------------------------------------------------------------- */

/* An object that is called by vectorcall directly: a builtin function would cost a third more. */
typedef struct functions_callback {
    PyObject_HEAD vectorcallfunc call;
    functions_engine *engine; /* outlives it: it drops its callbacks before it goes */
} functions_callback;

static inline functions_engine *engine_of(PyObject *callback)
{
    return ((functions_callback *)callback)->engine;
}

/* What is not the steady state is apart, so that what is saves no registers for it. */
static CORE_NOINLINE PyObject *enter_any(functions_engine *engine, PyObject *code)
{
    functions_enter_code(engine, code);
    Py_RETURN_NONE;
}

static CORE_NOINLINE PyObject *leave_any(functions_engine *engine, const void *key)
{
    functions_leave(engine, key, 0);
    Py_RETURN_NONE;
}

/* (code, offset, …) */
static PyObject *on_enter(PyObject *self, PyObject *const *args, size_t count,
                          PyObject *names)
{
    (void)names;
    if (PyVectorcall_NARGS(count) >= 1 &&
        !functions_enter_known(engine_of(self), args[0])) {
        return enter_any(engine_of(self), args[0]);
    }
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *self, PyObject *const *args, size_t count,
                          PyObject *names)
{
    (void)names;
    if (PyVectorcall_NARGS(count) >= 1 &&
        !functions_leave_known(engine_of(self), args[0])) {
        return leave_any(engine_of(self), args[0]);
    }
    Py_RETURN_NONE;
}

static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t count,
                           PyObject *names)
{
    (void)names;
    if (PyVectorcall_NARGS(count) >= 1) {
        functions_leave(engine_of(self), args[0], 1);
    }
    Py_RETURN_NONE;
}

/* The method table entry of a native function, NULL for everything else that can be called. A method descriptor counts
 * when it is called with an object of its type. */
static inline PyMethodDef *native_method(const functions_engine *engine,
                                         PyObject *callable, PyObject *self)
{
    PyTypeObject *const type = Py_TYPE(callable);
    if (type == &PyFunction_Type) {
        return NULL;
    }
    if (type == &PyMethodDescr_Type) {
        PyMethodDescrObject *const descriptor = (PyMethodDescrObject *)callable;
        return self != engine->missing &&
                       PyObject_TypeCheck(self, PyDescr_TYPE(descriptor))
                   ? descriptor->d_method
                   : NULL;
    }
    if (type == &PyCFunction_Type || PyType_IsSubtype(type, &PyCFunction_Type)) {
        return ((PyCFunctionObject *)callable)->m_ml;
    }
    return NULL;
}

/* (code, offset, callable, first argument) */
static PyObject *on_call(PyObject *self, PyObject *const *args, size_t count,
                         PyObject *names)
{
    (void)names;
    if (PyVectorcall_NARGS(count) >= 4) {
        functions_engine *const engine = engine_of(self);
        PyMethodDef *method = native_method(engine, args[2], args[3]);
        if (method) {
            functions_enter_native(engine, method, args[2], args[3]);
        }
    }
    Py_RETURN_NONE;
}

static inline void native_leave(PyObject *self, PyObject *const *args, size_t count,
                                unsigned error)
{
    if (PyVectorcall_NARGS(count) >= 4) {
        functions_engine *const engine = engine_of(self);
        PyMethodDef *method = native_method(engine, args[2], args[3]);
        if (method) {
            functions_leave(engine, method, error);
        }
    }
}

static PyObject *on_native_return(PyObject *self, PyObject *const *args, size_t count,
                                  PyObject *names)
{
    (void)names;
    native_leave(self, args, count, 0);
    Py_RETURN_NONE;
}

static PyObject *on_native_raise(PyObject *self, PyObject *const *args, size_t count,
                                 PyObject *names)
{
    (void)names;
    native_leave(self, args, count, 1);
    Py_RETURN_NONE;
}

static const struct {
    const char *event;
    vectorcallfunc call;
    bool native; /* only where native calls are wanted */
} hooks[] = {
    {"PY_START", on_enter, false},
    {"PY_RESUME", on_enter, false},
    {"PY_THROW", on_enter, false},
    {"PY_RETURN", on_leave, false},
    {"PY_YIELD", on_leave, false},
    {"PY_UNWIND", on_unwind, false},
    {"CALL", on_call, true},
    {"C_RETURN", on_native_return, true},
    {"C_RAISE", on_native_raise, true},
};
#define HOOKS (sizeof hooks / sizeof hooks[0])
_Static_assert(HOOKS == sizeof(((functions_engine *)0)->callback) / sizeof(PyObject *),
               "an engine keeps one callback a hook");

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", Py_T_PYSSIZET, offsetof(functions_callback, call),
     Py_READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot callback_slots[] = {
    {Py_tp_doc, "A hook of the function profiler."},
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_members, callback_members},
    {Py_tp_dealloc, callback_dealloc},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "stepwatch._core.functions_hook",
    .basicsize = sizeof(functions_callback),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

int functions_seat_add(PyObject *module)
{
    core_state *state = PyModule_GetState(module);
    functions_engine *engine = (functions_engine *)state->slot[CORE_FUNCTIONS_ENGINE];
    PyObject *type = PyType_FromModuleAndSpec(module, &callback_spec, NULL);
    if (!type) {
        return -1;
    }
    for (size_t i = 0; i < HOOKS; i++) {
        functions_callback *callback = (functions_callback *)((PyTypeObject *)type)
                                           ->tp_alloc((PyTypeObject *)type, 0);
        if (!callback) {
            Py_DECREF(type);
            return -1;
        }
        callback->call = hooks[i].call;
        callback->engine = engine;
        engine->callback[i] = (PyObject *)callback;
    }
    Py_DECREF(type);
    return 0;
}

/* --- The seat ----------------------------------------------------------------------- */

static int register_hooks(functions_engine *engine, PyObject *monitoring, bool on)
{
    for (size_t i = 0; i < HOOKS; i++) {
        const long event = core_monitoring_event(monitoring, hooks[i].event);
        PyObject *before = event < 0
                               ? NULL
                               : PyObject_CallMethod(monitoring, "register_callback",
                                                     "ilO", engine->tool, event,
                                                     on ? engine->callback[i] : Py_None);
        if (!before) {
            return -1;
        }
        Py_DECREF(before);
    }
    return 0;
}

static int set_events(functions_engine *engine, PyObject *monitoring, bool on)
{
    long events = 0;
    for (size_t i = 0; i < HOOKS && on; i++) {
        if (!hooks[i].native || engine->builtins) {
            const long event = core_monitoring_event(monitoring, hooks[i].event);
            if (event < 0) {
                return -1;
            }
            events |= event;
        }
    }
    PyObject *done =
        PyObject_CallMethod(monitoring, "set_events", "il", engine->tool, events);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int functions_seat_take(functions_engine *engine)
{
    PyObject *monitoring = core_monitoring();
    if (!monitoring) {
        return -1;
    }
    if (!engine->missing) {
        engine->missing = PyObject_GetAttrString(monitoring, "MISSING");
    }
    engine->tool = engine->missing
                       ? core_monitoring_take(monitoring, "stepwatch.functions",
                                              "the function profiler")
                       : -1;
    if (engine->tool < 0) {
        return -1;
    }
    if (register_hooks(engine, monitoring, true) == 0 &&
        set_events(engine, monitoring, true) == 0) {
        return 0;
    }
    PyObject *raised = PyErr_GetRaisedException();
    functions_seat_leave(engine);
    PyErr_SetRaisedException(raised);
    return -1;
}

int functions_seat_change(functions_engine *engine)
{
    PyObject *monitoring = core_monitoring();
    return monitoring ? set_events(engine, monitoring, true) : -1;
}

void functions_seat_leave(functions_engine *engine)
{
    PyObject *monitoring = core_monitoring();
    if (monitoring && engine->tool >= 0) {
        /* Somebody who frees the ids of others (there are such tools) has ended our events too. */
        PyObject *holder = PyObject_CallMethod(monitoring, "get_tool", "i", engine->tool);
        const bool ours =
            holder && PyUnicode_Check(holder) &&
            PyUnicode_CompareWithASCIIString(holder, "stepwatch.functions") == 0;
        if (ours) {
            set_events(engine, monitoring, false);
            core_error_forget();
            register_hooks(engine, monitoring, false);
            core_error_forget();
            PyObject *done =
                PyObject_CallMethod(monitoring, "free_tool_id", "i", engine->tool);
            Py_XDECREF(done);
        } else if (holder) {
            Py_XSETREF(engine->seat_note,
                       PyUnicode_FromFormat(
                           "tool id %d of sys.monitoring was taken away by %R: calls "
                           "after that are not counted",
                           engine->tool, holder));
        }
        Py_XDECREF(holder);
    }
    core_error_forget();
    engine->tool = -1;
}

#endif
