/* Line events from PyEval_SetTrace (up to Python 3.11).
 *
 * A trace function is paid for by everything that runs on its thread, so it is set only while watched code runs: the code
 * of a watched function gets *hooks*, constants that it applies `+` to when it begins and after each yield. A hook sets the
 * trace function; when the last activation of watched code on the thread is over, what was there before comes back.
 * What watched code calls still pays, and nothing else does.
 *
 * A trace function of somebody else (a debugger, coverage) is called through from ours; sys.gettrace() shows theirs. */
#include "line_table.h"
#include "unseen.h"

#if PY_VERSION_HEX < 0x030c0000

/* A constant in the bytecode of watched code. */
typedef struct hook_object {
    PyObject_HEAD line_code *table;
    line_cell *cell; /* the line that goes on here; the spare one at the beginning */
    int handler; /* the beginning of an exception handler: an exception may have been thrown in */
} hook_object;

static core_frame *frame_key(PyFrameObject *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->f_frame;
#else
    return frame;
#endif
}

static PyObject *code_of(core_frame *frame)
{
    return (PyObject *)frame->f_code;
}

/* The frame object, if the frame has one already. */
static PyFrameObject *frame_object(core_frame *frame)
{
#if PY_VERSION_HEX >= 0x030b0000
    return frame->frame_obj;
#else
    return frame;
#endif
}

/* The line of a handler was counted by its hook. 3.9 tells of it once more, within the hook, if some thread ended with
 * tracing on. */
static int told_twice(line_thread *thread, const PyFrameObject *frame)
{
#if PY_VERSION_HEX < 0x030a0000
    const int after_hook = thread->after_hook;
    thread->after_hook = 0;
    return after_hook != 0 && frame->f_lasti == after_hook;
#else
    (void)thread;
    (void)frame;
    return 0;
#endif
}

static int on_event(PyObject *their_object, PyFrameObject *frame, int what,
                    PyObject *arg);

/* Sets the trace function, unless an audit hook of the program's forbids it, which is said then. -1: Ctrl-C came in that
 * hook, and is set. */
static int set_trace(PyThreadState *state, Py_tracefunc function, PyObject *object)
{
    if (_PyEval_SetTrace(state, function, object) == 0) {
        return 0;
    }
    if (!PyErr_ExceptionMatches(PyExc_Exception)) {
        return -1;
    }
    PyErr_WriteUnraisable(NULL);
    return 0;
}

static __attribute__((noinline)) int
on_any_event(PyObject *their_object, PyFrameObject *frame, int what, PyObject *arg)
{
    line_thread *thread = core_line_thread;
    core_frame *key = frame_key(frame);
    Py_tracefunc theirs = thread ? thread->theirs : NULL;
    switch (what) {
    case PyTrace_LINE:
        if (thread && line_find(thread, key, code_of(key))) {
            line_frame *top = thread->top;
            const uint32_t index = (uint32_t)frame->f_lineno - top->table->first;
            /* Before 3.10 hooks lie on a line of their own, which is none of the function's. */
            if (index < top->table->count && !told_twice(thread, frame)) {
                const uint64_t now = core_ticks();
                line_arrive(top, &top->table->cells[index], now);
                if (line_is_due(now)) {
                    core_lines_keep();
                }
            }
        }
        break;
    case PyTrace_CALL:
        /* A frame that is not ours shall not be asked for its lines; if it is, its hook takes that back. */
        if (!theirs) {
            frame->f_trace_lines = 0;
        }
        break;
    case PyTrace_RETURN:
        if (thread && line_find(thread, key, code_of(key))) {
            thread->top->table->suspended = thread->top->cell;
            line_pop(thread, core_ticks());
        } else if (!theirs) {
            frame->f_trace_lines = 1;
        }
        break;
    default:
        break;
    }
    if (thread && thread->top == thread->base) {
        PyThreadState *const state = PyThreadState_Get();
        if (state->c_tracefunc == on_event) {
            if (set_trace(state, theirs, theirs ? their_object : NULL) != 0) {
                return -1; /* The next event is another occasion. */
            }
            if (state->c_tracefunc != on_event) {
                thread->theirs = NULL;
            }
        }
    }
    return theirs ? theirs(their_object, frame, what, arg) : 0;
}

/* The usual event comes first, without a call or anything to save: a line of the newest activation. */
static int on_event(PyObject *their_object, PyFrameObject *frame, int what, PyObject *arg)
{
    line_thread *thread = core_line_thread;
    if (__builtin_expect(what == PyTrace_LINE && thread && !thread->theirs &&
                             thread->top->frame == frame_key(frame) &&
                             !thread->after_hook,
                         1)) {
        line_frame *top = thread->top;
        const line_code *table = top->table;
        const uint32_t index = (uint32_t)frame->f_lineno - table->first;
        if (__builtin_expect(index < table->count && core_ticks_register, 1)) {
            const uint64_t now = core_ticks();
            if (!line_is_due(now)) {
                line_arrive(top, &table->cells[index], now);
                return 0;
            }
        }
    }
    return on_any_event(their_object, frame, what, arg);
}

/* Watched code begins or goes on. */
static PyObject *hook_apply(PyObject *self)
{
    hook_object *hook = (hook_object *)self;
    line_code *table = hook->table;
    line_thread *thread = table->watchers ? line_thread_now() : NULL;
    PyThreadState *state = PyThreadState_Get();
    Py_INCREF(self);
    /* Inside of a trace function nothing is traced. */
    if (!thread || state->tracing) {
        return self;
    }
    core_frame *frame = core_frame_now();
    const int expected =
        thread->top->frame == frame && thread->top->code == code_of(frame);
    if (state->c_tracefunc != on_event) {
        if (thread->top > thread->base) {
            /* Somebody replaced our function; activations that ended meanwhile were not told. */
            (void)core_line_make_room(thread, frame);
        }
        thread->theirs = state->c_tracefunc;
        const int interrupted = set_trace(state, on_event, state->c_traceobj) != 0;
        if (state->c_tracefunc != on_event) {
            thread->theirs = NULL; /* forbidden by an audit hook, which said so */
            if (interrupted) {
                Py_CLEAR(self); /* the program's exception */
            }
            return self;
        }
    }
    PyFrameObject *object = frame_object(frame);
    if (object && !thread->theirs) {
        object->f_trace_lines = 1;
    }
    if (hook->handler && expected) {
        return self;
    }
    /* The line of the handler was reached before we were. 3.9 tells of it even if it is the line of the yield. */
    if (hook->handler &&
        (PY_VERSION_HEX < 0x030a0000 || hook->cell != table->suspended)) {
        hook->cell->hits++;
#if PY_VERSION_HEX < 0x030a0000
        thread->after_hook = frame->f_lasti + 2;
#endif
    }
    line_push(thread, frame, table, hook->cell, core_ticks());
    return self;
}

static void hook_dealloc(PyObject *self)
{
    hook_object *hook = (hook_object *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (hook->table) {
        /* All hooks of a code die with the code that holds them. */
        hook->table->watched = NULL;
        core_line_code_release(hook->table);
    }
    type->tp_free(self);
    Py_DECREF(type);
}

/* Code that is copied to another process by value takes no hook along: +0 does nothing. */
static PyObject *hook_reduce(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(ignored))
{
    return Py_BuildValue("O()", &PyLong_Type);
}

static PyObject *hook_repr(PyObject *Py_UNUSED(self))
{
    return PyUnicode_FromString("<stepwatch line hook>");
}

static PyMethodDef hook_methods[] = {
    {"__reduce__", hook_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot hook_slots[] = {
    {Py_nb_positive, hook_apply},
    {Py_tp_dealloc, hook_dealloc},
    {Py_tp_methods, hook_methods},
    {Py_tp_repr, hook_repr},
    {0, NULL},
};

static PyType_Spec hook_spec = {
    .name = "stepwatch._core.line_hook",
    .basicsize = sizeof(hook_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = hook_slots,
};

/* make(line, handler) for the rewriter: a hook of the table in `capsule`. Line 0: the beginning. */
static PyObject *hook_make(PyObject *capsule, PyObject *args)
{
    unsigned line;
    int handler;
    line_code *table = PyCapsule_GetPointer(capsule, "stepwatch.line_code");
    PyTypeObject *type = table ? PyCapsule_GetContext(capsule) : NULL;
    if (!type || !PyArg_ParseTuple(args, "Ip:make", &line, &handler)) {
        return NULL;
    }
    hook_object *hook = (hook_object *)type->tp_alloc(type, 0);
    if (hook) {
        hook->table = table;
        table->users++;
        hook->cell = line_cell_at(table, line);
        hook->handler = handler;
    }
    return (PyObject *)hook;
}

int core_line_events_check(void)
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the line profiler works in the main interpreter only");
        return -1;
    }
    return 0;
}

PyObject *core_line_events_prepare(line_code *table)
{
    static PyMethodDef make = {"make", hook_make, METH_VARARGS, NULL};
    if (table->watched) {
        Py_INCREF(table->watched);
        return table->watched;
    }
    PyObject *module = core_import("stepwatch._line_hooks");
    PyObject *type = module ? PyType_FromSpec(&hook_spec) : NULL;
    PyObject *capsule = type ? PyCapsule_New(table, "stepwatch.line_code", NULL) : NULL;
    PyObject *maker = NULL;
    PyObject *result = NULL;
    if (capsule && PyCapsule_SetContext(capsule, type) == 0) {
        maker = PyCFunction_New(&make, capsule);
    }
    if (maker) {
        result = PyObject_CallMethod(module, "with_hooks", "OO", table->code, maker);
    }
    if (result && !PyCode_Check(result)) {
        Py_CLEAR(result);
        PyErr_SetString(PyExc_SystemError, "with_hooks gave no code");
    }
    table->watched = result;
    Py_XDECREF(maker);
    Py_XDECREF(capsule);
    Py_XDECREF(type);
    Py_XDECREF(module);
    return result;
}

int core_line_events_switch(line_code *table, int on)
{
    if (!on) {
        core_line_end_all(table);
    }
    return 0;
}
#endif
