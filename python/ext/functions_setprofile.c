/* The function profiler's seat up to Python 3.11: the profile function of each thread. There is one for all comers, so one
 * that is taken is left alone, and one that is taken away from us is given up. */
#include "frames.h"
#include "functions.h"
#include "unseen.h"

#if PY_VERSION_HEX < 0x030c0000

/* The engine as a Python profile function: what threading calls in threads that are made while a profile runs. */
PyObject *functions_seat_call(PyObject *self, PyObject *args, PyObject *kwargs);

static inline PyObject *code_of(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return (PyObject *)frame->f_frame->f_code;
#else
    return (PyObject *)frame->f_code;
#endif
}

static int on_event(PyObject *self, PyFrameObject *frame, int what, PyObject *arg)
{
    functions_engine *const engine = (functions_engine *)self;
    switch (what) {
    case PyTrace_CALL:
        functions_enter_code(engine, code_of(frame));
        break;
    case PyTrace_RETURN:
        functions_leave(engine, code_of(frame), arg == NULL);
        break;
    case PyTrace_C_CALL:
        if (engine->builtins && PyCFunction_Check(arg)) {
            functions_enter_native(engine, ((PyCFunctionObject *)arg)->m_ml, arg, NULL);
        }
        break;
    case PyTrace_C_RETURN:
    case PyTrace_C_EXCEPTION:
        if (engine->builtins && PyCFunction_Check(arg)) {
            functions_leave(engine, ((PyCFunctionObject *)arg)->m_ml,
                            what == PyTrace_C_EXCEPTION);
        }
        break;
    default:
        break;
    }
    return 0;
}

/* Sets this thread's profile function. Ctrl-C that comes in an audit hook of the program's comes once more, afterwards; a hook
 * that forbids it is obeyed. */
static void set_here(PyThreadState *thread, Py_tracefunc function, PyObject *object)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool interrupted = false;
    for (int attempt = 0;
         attempt < 3 && _PyEval_SetProfile(thread, function, object) != 0; attempt++) {
        interrupted |= PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) != 0;
        PyErr_Clear();
    }
    if (interrupted) {
        PyErr_SetInterrupt();
    }
    PyErr_Restore(type, value, traceback);
}

PyObject *functions_seat_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static const struct {
        const char *name;
        int what;
    } events[] = {
        {"call", PyTrace_CALL},
        {"return", PyTrace_RETURN},
        {"c_call", PyTrace_C_CALL},
        {"c_return", PyTrace_C_RETURN},
        {"c_exception", PyTrace_C_EXCEPTION},
    };
    functions_engine *const engine = (functions_engine *)self;
    PyObject *frame, *event, *arg;
    if (kwargs && PyDict_GET_SIZE(kwargs) != 0) {
        PyErr_SetString(PyExc_TypeError, "a profile function has no keywords");
        return NULL;
    }
    if (!PyArg_ParseTuple(args, "O!UO", &PyFrame_Type, &frame, &event, &arg)) {
        return NULL;
    }
    PyThreadState *const thread = PyThreadState_Get();
    if (!engine->seated) {
        /* The profile is over, and this thread was made for it before: it needs no hook. */
        if (thread->c_profileobj == self) {
            set_here(thread, NULL, NULL);
        }
        Py_RETURN_NONE;
    }
    if (thread->c_profileobj == self && thread->c_profilefunc != on_event) {
        set_here(thread, on_event, self);
    }
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (PyUnicode_CompareWithASCIIString(event, events[i].name) == 0) {
            on_event(self, (PyFrameObject *)frame, events[i].what, arg);
        }
    }
    Py_RETURN_NONE;
}

int functions_seat_add(PyObject *module)
{
    (void)module;
    return 0;
}

/* --- The seats of threads ------------------------------------------------------------- */

static bool is_ours(const functions_engine *engine, const PyThreadState *thread)
{
    return thread->c_profileobj == (const PyObject *)engine;
}

/* "cProfile.Profile", or the repr of a function. */
static PyObject *holder_name(PyObject *holder)
{
    if (!holder) {
        return PyUnicode_FromString("a profiler written in C");
    }
    PyObject *name;
    if (PyFunction_Check(holder) || PyCFunction_Check(holder) || PyMethod_Check(holder)) {
        name = PyObject_Repr(holder);
    } else {
        PyObject *type = (PyObject *)Py_TYPE(holder);
        PyObject *module = PyObject_GetAttrString(type, "__module__");
        PyObject *qualname = PyObject_GetAttrString(type, "__qualname__");
        name =
            module && qualname ? PyUnicode_FromFormat("%S.%S", module, qualname) : NULL;
        Py_XDECREF(module);
        Py_XDECREF(qualname);
    }
    if (!name) {
        core_error_forget();
        name = PyUnicode_FromString(Py_TYPE(holder)->tp_name);
    }
    return name;
}

/* Calls `visit` for the other threads of this interpreter. New ones cannot come meanwhile, for we have the GIL. */
static void for_others(functions_engine *engine,
                       void (*visit)(functions_engine *engine, PyThreadState *thread))
{
    PyThreadState *const here = PyThreadState_Get();
    for (PyThreadState *thread = PyInterpreterState_ThreadHead(here->interp); thread;
         thread = PyThreadState_Next(thread)) {
        if (thread != here) {
            visit(engine, thread);
        }
    }
}

static void take_other(functions_engine *engine, PyThreadState *thread)
{
    if (!thread->c_profilefunc &&
        _PyEval_SetProfile(thread, on_event, (PyObject *)engine) != 0) {
        core_error_forget();
    }
}

static void leave_other(functions_engine *engine, PyThreadState *thread)
{
    if (is_ours(engine, thread) && _PyEval_SetProfile(thread, NULL, NULL) != 0) {
        core_error_forget();
    }
}

/* threading's hook for new threads: `from` becomes `to`. Somebody else's stays, and 0 says so. As threading.setprofile does it, but
 * without a function of Python's, in which a signal may be handled. */
static int swap_threading_hook(PyObject *threading, PyObject *from, PyObject *to)
{
    PyObject *hook = PyObject_GetAttrString(threading, "_profile_hook");
    const int swapped =
        hook == from && PyObject_SetAttrString(threading, "_profile_hook", to) == 0;
    Py_XDECREF(hook);
    core_error_forget();
    return swapped;
}

/* Gives threading its hook back, if it was ever imported. */
static void leave_threading(functions_engine *engine)
{
    PyObject *threading = PyDict_GetItemString(PyImport_GetModuleDict(), "threading");
    if (threading) {
        Py_INCREF(threading);
        swap_threading_hook(threading, (PyObject *)engine, Py_None);
        Py_DECREF(threading);
    }
}

/* A sentence instead of what the program's audit hooks raised; but Ctrl-C is Ctrl-C. */
static void say_not_set(void)
{
    if (PyErr_ExceptionMatches(PyExc_Exception)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_RuntimeError, "the profile function could not be set");
    }
}

int functions_seat_take(functions_engine *engine)
{
    PyThreadState *const here = PyThreadState_Get();
    if (here->c_profilefunc) {
        PyObject *name = holder_name(here->c_profileobj);
        if (name) {
            PyErr_Format(
                PyExc_RuntimeError,
                "the profile function of this thread is taken by %U: stop it, or "
                "profile with one of them at a time",
                name);
            Py_DECREF(name);
        }
        return -1;
    }
    Py_CLEAR(engine->seat_note);
    PyObject *threading = core_import("threading");
    if (!threading) {
        return -1;
    }
    const int swapped = swap_threading_hook(threading, Py_None, (PyObject *)engine);
    Py_DECREF(threading);
    if (_PyEval_SetProfile(here, on_event, (PyObject *)engine) != 0) {
        say_not_set();
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        leave_threading(engine);
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    if (!swapped) {
        engine->seat_note =
            PyUnicode_FromString("threading.setprofile() is in use: threads that start "
                                 "later are not profiled");
        core_error_forget();
    }
    for_others(engine, take_other);
    return 0;
}

int functions_seat_change(functions_engine *engine)
{
    (void)engine;
    return 0;
}

void functions_seat_leave(functions_engine *engine)
{
    PyThreadState *const here = PyThreadState_Get();
    if (is_ours(engine, here)) {
        set_here(here, NULL, NULL);
    } else {
        PyObject *name = here->c_profilefunc
                             ? holder_name(here->c_profileobj)
                             : PyUnicode_FromString("a profiler that has ended");
        if (name) {
            Py_XSETREF(engine->seat_note,
                       PyUnicode_FromFormat("the profile function of this thread was "
                                            "taken over by %U: calls after that are not "
                                            "counted",
                                            name));
            Py_DECREF(name);
        }
        core_error_forget();
    }
    for_others(engine, leave_other);
    leave_threading(engine);
}

#endif
