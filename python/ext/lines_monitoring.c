/* Line events from sys.monitoring (Python 3.12 and later).
 *
 * Events that tell of lines, starts, resumes, returns and yields are local to the watched code objects: other code runs as
 * if we were not there. That a frame is left by an exception, or a generator resumed with one, is told for all code or
 * none; those two callbacks look at the code object's extra slot first.
 *
 * A callback is an object with a vectorcall, which the interpreter calls with (code, line or offset, …). */
#include "line_table.h"
#include "monitoring.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <structmember.h>

#define NO_TOOL (-1)

static int tool = NO_TOOL;
static Py_ssize_t extra = -1;
static unsigned switched_on; /* codes whose events are on */

static line_code *table_of(PyObject *code)
{
    void *found = NULL;
    if (extra < 0 || PyUnstable_Code_GetExtra(code, extra, &found) != 0) {
        PyErr_Clear();
        return NULL;
    }
    return found;
}

/* --- callbacks -------------------------------------------------------------------- */

/* A line of a frame whose beginning we did not see: it ran when its code began to be watched, or was resumed in a way that is
 * not told. */
static void line_unexpected(core_frame *frame, PyObject *code, uint32_t line)
{
    line_code *table = table_of(code);
    line_thread *thread = table && table->watchers ? line_thread_now() : NULL;
    if (!thread) {
        return;
    }
    const uint64_t now = core_ticks();
    line_cell *cell = line_cell_at(table, line);
    if (core_line_find(thread, frame, code)) {
        line_arrive(thread->top, cell, now);
    } else {
        line_push(thread, frame, table, cell, now);
        cell->hits++;
    }
}

static PyObject *on_line(PyObject *Py_UNUSED(self), PyObject *const *args,
                         size_t Py_UNUSED(count), PyObject *Py_UNUSED(names))
{
    line_thread *thread = core_line_thread;
    core_frame *frame = core_frame_now();
    PyLongObject *number = (PyLongObject *)args[1];
    /* A line number has one digit of 30 bits; whoever calls us with something else gets nothing. */
    const uint32_t line = PyUnstable_Long_IsCompact(number)
                              ? (uint32_t)PyUnstable_Long_CompactValue(number)
                              : 0;
    if (__builtin_expect(
            thread && thread->top->frame == frame && thread->top->code == args[0], 1)) {
        line_frame *top = thread->top;
        const uint64_t now = core_ticks();
        line_arrive(top, line_cell_at(top->table, line), now);
        if (line_is_due(now)) {
            core_lines_keep();
        }
    } else {
        line_unexpected(frame, args[0], line);
    }
    Py_RETURN_NONE;
}

static PyObject *on_start(PyObject *Py_UNUSED(self), PyObject *const *args,
                          size_t Py_UNUSED(count), PyObject *Py_UNUSED(names))
{
    line_code *table = table_of(args[0]);
    line_thread *thread = table && table->watchers ? line_thread_now() : NULL;
    if (thread) {
        /* What passes before the first line belongs to the line of the `def`, which is no line of the body: to nobody. */
        line_push(thread, core_frame_now(), table, &table->cells[table->count],
                  core_ticks());
    }
    Py_RETURN_NONE;
}

/* Goes on where it was suspended; PY_THROW, with an exception, is told of all code. */
static PyObject *on_resume(PyObject *Py_UNUSED(self), PyObject *const *args,
                           size_t Py_UNUSED(count), PyObject *Py_UNUSED(names))
{
    line_code *table = table_of(args[0]);
    line_thread *thread = table && table->watchers ? line_thread_now() : NULL;
    if (thread) {
        /* With line events on, the interpreter has this number in a table. */
        const int line =
            PyCode_Addr2Line((PyCodeObject *)args[0], (int)PyLong_AsLong(args[1]));
        line_push(thread, core_frame_now(), table,
                  line_cell_at(table, line > 0 ? (uint32_t)line : 0), core_ticks());
    }
    Py_RETURN_NONE;
}

static PyObject *on_leave(PyObject *Py_UNUSED(self), PyObject *const *args,
                          size_t Py_UNUSED(count), PyObject *Py_UNUSED(names))
{
    line_thread *thread = core_line_thread;
    if (thread && line_find(thread, core_frame_now(), args[0])) {
        line_pop(thread, core_ticks());
    }
    Py_RETURN_NONE;
}

/* Told of all code: most of it is not ours. */
static PyObject *on_unwind(PyObject *self, PyObject *const *args, size_t count,
                           PyObject *names)
{
    line_thread *thread = core_line_thread;
    if (!thread || thread->top == thread->base ||
        (thread->top->code != args[0] && !table_of(args[0]))) {
        Py_RETURN_NONE;
    }
    return on_leave(self, args, count, names);
}

/* --- the seat --------------------------------------------------------------------- */

typedef struct callback_object {
    PyObject_HEAD vectorcallfunc call;
} callback_object;

static void callback_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef callback_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(callback_object, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot callback_slots[] = {
    {Py_tp_call, PyVectorcall_Call},
    {Py_tp_dealloc, callback_dealloc},
    {Py_tp_members, callback_members},
    {0, NULL},
};

static PyType_Spec callback_spec = {
    .name = "stepwatch._core.line_event",
    .basicsize = sizeof(callback_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION,
    .slots = callback_slots,
};

static const struct {
    const char *name;
    vectorcallfunc call;
    int local;
} events[] = {
    {"LINE", on_line, 1},        {"PY_START", on_start, 1}, {"PY_RESUME", on_resume, 1},
    {"PY_RETURN", on_leave, 1},  {"PY_YIELD", on_leave, 1}, {"PY_THROW", on_resume, 0},
    {"PY_UNWIND", on_unwind, 0},
};
enum { EVENTS = sizeof events / sizeof events[0] };

static long event_set(PyObject *module, int local)
{
    long set = 0;
    for (int i = 0; i < EVENTS; i++) {
        if (events[i].local == local) {
            const long number = core_monitoring_event(module, events[i].name);
            if (number < 0) {
                return -1;
            }
            set |= number;
        }
    }
    return set;
}

static int register_callbacks(PyObject *module, int id, int on)
{
    PyObject *type = on ? PyType_FromSpec(&callback_spec) : NULL;
    if (on && !type) {
        return -1;
    }
    int result = 0;
    for (int i = 0; i < EVENTS && result == 0; i++) {
        const long number = core_monitoring_event(module, events[i].name);
        PyObject *callback = Py_NewRef(Py_None);
        if (on) {
            Py_SETREF(callback,
                      ((PyTypeObject *)type)->tp_alloc((PyTypeObject *)type, 0));
            if (callback) {
                ((callback_object *)callback)->call = events[i].call;
            }
        }
        PyObject *old = number >= 0 && callback
                            ? PyObject_CallMethod(module, "register_callback", "ilO", id,
                                                  number, callback)
                            : NULL;
        result = old ? 0 : -1;
        Py_XDECREF(old);
        Py_XDECREF(callback);
    }
    Py_XDECREF(type);
    return result;
}

static int set_global(PyObject *module, int id, long set)
{
    PyObject *done =
        set < 0 ? NULL : PyObject_CallMethod(module, "set_events", "il", id, set);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

static void leave_seat(PyObject *module, int id)
{
    if (set_global(module, id, 0) != 0 || register_callbacks(module, id, 0) != 0) {
        PyErr_Clear();
    }
    PyObject *done = PyObject_CallMethod(module, "free_tool_id", "i", id);
    if (!done) {
        PyErr_Clear();
    }
    Py_XDECREF(done);
}

static int sit_down(PyObject *module)
{
    const int id = core_monitoring_take(module, "stepwatch.lines", "the line profiler");
    if (id == NO_TOOL) {
        return -1;
    }
    if (register_callbacks(module, id, 1) != 0 ||
        set_global(module, id, event_set(module, 0)) != 0) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        leave_seat(module, id);
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    tool = id;
    return 0;
}

/* --- what lines.c asks for -------------------------------------------------------- */

int core_line_events_check(void)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_RuntimeError,
                    "the line profiler does not work on a free-threaded Python yet");
    return -1;
#else
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "the line profiler works in the main interpreter only");
        return -1;
    }
    if (extra < 0) {
        extra = PyUnstable_Eval_RequestCodeExtraIndex(NULL);
        if (extra < 0) {
            PyErr_SetString(PyExc_RuntimeError,
                            "the line profiler found no free slot in code objects");
            return -1;
        }
    }
    return 0;
#endif
}

PyObject *core_line_events_prepare(line_code *table)
{
    table->watched = table->code;
    return Py_NewRef(table->code);
}

/* 3.12 and 3.13 insist on LINE for the rest; one call sets all. */
static int set_local(PyObject *module, PyObject *code, long set)
{
    PyObject *done =
        set < 0 ? NULL
                : PyObject_CallMethod(module, "set_local_events", "iOl", tool, code, set);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int core_line_events_switch(line_code *table, int on)
{
    PyObject *module = core_monitoring();
    if (!module) {
        return -1;
    }
    if (on) {
        if (tool == NO_TOOL && sit_down(module) != 0) {
            return -1;
        }
        if (PyUnstable_Code_SetExtra(table->code, extra, table) != 0 ||
            set_local(module, table->code, event_set(module, 1)) != 0) {
            if (switched_on == 0) {
                PyObject *type, *value, *traceback;
                PyErr_Fetch(&type, &value, &traceback);
                leave_seat(module, tool);
                tool = NO_TOOL;
                PyErr_Restore(type, value, traceback);
            }
            return -1;
        }
        switched_on++;
        return 0;
    }
    const int result = set_local(module, table->code, 0);
    (void)PyUnstable_Code_SetExtra(table->code, extra, NULL);
    core_line_end_all(table);
    if (--switched_on == 0) {
        leave_seat(module, tool);
        tool = NO_TOOL;
    }
    return result;
}
#endif
