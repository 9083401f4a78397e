/* Loops seen through sys.monitoring (Python 3.12 and later).
 *
 * JUMP tells that a loop goes back to its beginning, BRANCH at a `for` that it has its next item or none. Both are local to
 * the user's code objects that have loops, and switched off at every place that is of no interest: branches that are no
 * loop's at their first event, loops with short iterations after some more. Where the chosen loop is, BRANCH tells of ways
 * out of it too, and LINE that it is about to begin; exceptions that end it are told for all code or none.
 *
 * Which instructions are which loop is found out when code has its first event (stepwatch/_loop_code.py). */
#include "frames.h"
#include "loops.h"
#include "monitoring.h"
#include "unseen.h"

#if PY_VERSION_HEX >= 0x030c0000
#include <opcode.h>
#if PY_VERSION_HEX >= 0x030d0000
#include <opcode_ids.h>
#endif
#include <stdlib.h>
#include <string.h>

enum { NO_TOOL = -1, MOST_CODES = 20000, MOST_LOOPS = 250 };

typedef struct watched_code {
    PyObject *code; /* borrowed: this lives in its extra slot */
    struct watched_code *next;
    bool known; /* its loops are below */
    uint32_t units;
    uint8_t *head_at; /* for each unit: loop that an iteration of begins here, plus 1 */
    core_loop **loops;
    uint32_t count;
} watched_code;

static int tool = NO_TOOL;
static Py_ssize_t extra = -1;
static PyObject *disable;     /* sys.monitoring.DISABLE */
static PyObject *find_loops;  /* stepwatch._loop_code.table */
static watched_code *watched; /* all that live */
static uint32_t watched_count;
static long jump_event, branch_event, line_event, unwind_event, handled_event;
static bool sees_exceptions;

/* --- Code ----------------------------------------------------------------------------- */

static void watched_free(void *pointer)
{
    watched_code *self = pointer;
    if (!self) {
        return;
    }
    for (watched_code **at = &watched; *at; at = &(*at)->next) {
        if (*at == self) {
            *at = self->next;
            watched_count--;
            break;
        }
    }
    for (uint32_t i = 0; i < self->count; i++) {
        void *inside = (void *)(uintptr_t)self->loops[i]->inside;
        core_loop_free(self->loops[i]);
        free(inside);
    }
    free(self->loops);
    free(self->head_at);
    free(self);
}

static watched_code *watched_of(PyObject *code)
{
    void *found = NULL;
    if (extra < 0 || PyUnstable_Code_GetExtra(code, extra, &found) != 0) {
        PyErr_Clear();
        return NULL;
    }
    return found;
}

static int units_of(PyObject *tuple, uint32_t *out, uint32_t room, uint32_t *count)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple) && *count < room; i++) {
        out[(*count)++] = (uint32_t)PyLong_AsUnsignedLong(PyTuple_GET_ITEM(tuple, i));
    }
    return PyErr_Occurred() ? -1 : 0;
}

/* One row of the table that Python made. */
static int loop_take(watched_code *self, PyObject *row)
{
    unsigned line;
    int is_for, outer, counts_steps;
    PyObject *heads, *exits, *inside;
    if (!PyArg_ParseTuple(row, "IpiO!O!Sp", &line, &is_for, &outer, &PyTuple_Type, &heads,
                          &PyTuple_Type, &exits, &inside, &counts_steps)) {
        return -1;
    }
    const Py_ssize_t length = PyBytes_GET_SIZE(inside);
    uint8_t *copy = malloc((size_t)length + 1);
    core_loop *loop =
        copy ? core_loop_new((PyCodeObject *)self->code, line, is_for) : NULL;
    if (!loop) {
        free(copy);
        PyErr_NoMemory();
        return -1;
    }
    memcpy(copy, PyBytes_AS_STRING(inside), (size_t)length);
    loop->counts_steps = counts_steps;
    loop->inside = copy;
    loop->units = (uint32_t)length;
    loop->owner = self;
    self->loops[self->count++] = loop;
    if (units_of(heads, loop->head, sizeof loop->head / sizeof loop->head[0],
                 &loop->head_count) != 0 ||
        units_of(exits, loop->exit, sizeof loop->exit / sizeof loop->exit[0],
                 &loop->exit_count) != 0) {
        return -1;
    }
    for (uint32_t i = 0; i < loop->head_count; i++) {
        if (loop->head[i] < self->units) {
            self->head_at[loop->head[i]] = (uint8_t)self->count;
        }
    }
    return 0;
}

static int watched_learn(watched_code *self)
{
    self->known = true;
    if (!find_loops) {
        PyObject *finder = core_import("stepwatch._loop_code");
        find_loops = finder ? PyObject_GetAttrString(finder, "table") : NULL;
        Py_XDECREF(finder);
        if (!find_loops) {
            return -1;
        }
    }
    PyObject *table = PyObject_CallOneArg(find_loops, self->code);
    if (!table || !PyList_Check(table)) {
        Py_XDECREF(table);
        return -1;
    }
    const Py_ssize_t count = PyList_GET_SIZE(table);
    int result = 0;
    if (count > 0 && count < MOST_LOOPS) {
        self->units = (uint32_t)Py_SIZE(self->code);
        self->head_at = calloc(self->units + 1, 1);
        self->loops = calloc((size_t)count, sizeof *self->loops);
        result = self->head_at && self->loops ? 0 : -1;
        for (Py_ssize_t i = 0; i < count && result == 0; i++) {
            result = loop_take(self, PyList_GET_ITEM(table, i));
        }
        if (result != 0) {
            self->units = 0;
        }
    }
    Py_DECREF(table);
    return result;
}

/* The loops of the code, learnt at the first event. NULL: there are none. */
static watched_code *watched_known(PyObject *code)
{
    watched_code *self = watched_of(code);
    if (self && !self->known && watched_learn(self) != 0) {
        core_error_forget();
    }
    return self && self->units ? self : NULL;
}

static bool inside(const core_loop *loop, int64_t unit)
{
    return unit >= 0 && unit < (int64_t)loop->units && loop->inside[unit];
}

/* --- Passes ---------------------------------------------------------------------------- */

static int64_t unit_of(core_frame *frame)
{
    PyCodeObject *code = core_frame_code(frame);
#if PY_VERSION_HEX >= 0x030d0000
    return code ? frame->instr_ptr - _PyCode_CODE(code) : -1;
#else
    return code ? frame->prev_instr - _PyCode_CODE(code) : -1;
#endif
}

/* Whether a pass goes on while `frame` runs at `unit`: its frame is there, and within the loop. */
static bool is_going_on(const core_pass *pass, core_frame *frame, int64_t unit)
{
    if (!pass->loop) {
        return false;
    }
    const watched_code *owner = pass->loop->owner;
    for (core_frame *one = frame; one; one = one->previous) {
        if (one == pass->key) {
            return (PyObject *)core_frame_code(one) == owner->code &&
                   inside(pass->loop, one == frame ? unit : unit_of(one));
        }
    }
    return false;
}

/* The pass of this loop in this frame, the newest one then; NULL: there is none. */
static core_pass *pass_find(const core_loop *loop, core_frame *frame)
{
    core_pass *top = core_pass_top();
    if (top && top->key == frame && top->loop == loop) {
        return top;
    }
    for (unsigned i = core_pass_depth(); i-- > 0;) {
        core_pass *pass = core_pass_at(i);
        if (pass->key == frame && pass->loop == loop) {
            if (i + 1 < core_pass_depth()) {
                core_pass_end(core_pass_at(i + 1), PASS_FORGOTTEN);
            }
            return pass;
        }
    }
    return NULL;
}

/* Those that ended without a word are taken away before another begins. */
static core_pass *pass_new(core_loop *loop, core_frame *frame, int64_t unit, bool late)
{
    for (unsigned i = 0; i < core_pass_depth(); i++) {
        core_pass *pass = core_pass_at(i);
        if (!is_going_on(pass, frame, unit)) {
            core_pass_end(pass, PASS_LEFT);
            break;
        }
    }
    return core_pass_begin(loop, frame, late);
}

/* --- Events ---------------------------------------------------------------------------- */

static PyObject *nothing(void)
{
    Py_RETURN_NONE;
}

static PyObject *no_more(void)
{
    return Py_NewRef(disable);
}

static int64_t unit_argument(PyObject *offset)
{
    const long value = PyLong_AsLong(offset);
    return value / (long)sizeof(_Py_CODEUNIT);
}

static PyObject *on_jump(PyObject *Py_UNUSED(self), PyObject *const *args,
                         Py_ssize_t Py_UNUSED(count))
{
    watched_code *code = core_loops_on ? watched_known(args[0]) : NULL;
    const int64_t from = unit_argument(args[1]);
    const int64_t to = unit_argument(args[2]);
    const unsigned number =
        code && to >= 0 && to < (int64_t)code->units ? code->head_at[to] : 0;
    core_loop *loop = number ? code->loops[number - 1] : NULL;
    if (!loop || loop->state == LOOP_GIVEN_UP || !inside(loop, from)) {
        return no_more();
    }
    if (!core_loops_here()) {
        return core_loop_elsewhere(loop) ? no_more() : nothing();
    }
    core_frame *frame = core_frame_now();
    core_pass *pass = pass_find(loop, frame);
    if (!pass) {
        /* A while loop has no first item that is told. */
        loop->asks++;
        (void)pass_new(loop, frame, to, true);
        return nothing();
    }
    return core_pass_ask(pass) ? nothing() : no_more();
}

static bool is_exit(const core_loop *loop, int64_t unit)
{
    for (uint32_t i = 0; i < loop->exit_count; i++) {
        if (loop->exit[i] == unit) {
            return true;
        }
    }
    return false;
}

/* A branch that is no loop's own; those that lead out of the chosen loop are of interest. */
static PyObject *on_other_branch(const watched_code *code, int64_t from, int64_t to)
{
    core_loop *loop = core_chosen;
    if (!loop || loop->owner != code || !is_exit(loop, from)) {
        return no_more();
    }
    if (!inside(loop, to) && core_loops_here()) {
        core_pass *pass = pass_find(loop, core_frame_now());
        if (pass) {
            /* A while loop ends one way or the other; a for loop that does not come to its end is left. */
            core_pass_end(pass, loop->is_for ? PASS_LEFT : PASS_COMPLETE);
        }
    }
    return nothing();
}

static PyObject *on_branch(PyObject *Py_UNUSED(self), PyObject *const *args,
                           Py_ssize_t Py_UNUSED(count))
{
    watched_code *code = core_loops_on ? watched_known(args[0]) : NULL;
    const int64_t from = unit_argument(args[1]);
    const int64_t to = unit_argument(args[2]);
    if (!code || from < 0 || from >= (int64_t)code->units) {
        return no_more();
    }
    const unsigned number = code->head_at[from];
    core_loop *loop = number ? code->loops[number - 1] : NULL;
    if (!loop || !loop->is_for) {
        return on_other_branch(code, from, to);
    }
    if (loop->state == LOOP_GIVEN_UP) {
        return no_more();
    }
    if (!core_loops_here()) {
        return nothing();
    }
    core_frame *frame = core_frame_now();
    core_pass *pass = pass_find(loop, frame);
    if (!inside(loop, to)) {
        if (pass) {
            core_pass_end(pass, PASS_ENDED);
        }
    } else if (pass) {
        core_pass_got(pass);
    } else {
        pass = pass_new(loop, frame, from, false);
        if (pass) {
            core_pass_got(pass);
        }
    }
    return nothing();
}

/* Told where the chosen loop is: its line is reached from outside, so it is about to begin. */
static PyObject *on_line(PyObject *Py_UNUSED(self), PyObject *const *args,
                         Py_ssize_t Py_UNUSED(count))
{
    const watched_code *code = core_loops_on ? watched_of(args[0]) : NULL;
    core_loop *loop = core_chosen;
    if (!code || !loop || loop->owner != code ||
        PyLong_AsLong(args[1]) != (long)loop->line) {
        return no_more();
    }
    if (!core_loops_here()) {
        return nothing();
    }
    core_frame *frame = core_frame_now();
    const int64_t unit = unit_of(frame);
    if (loop->is_for && inside(loop, unit)) {
        return no_more(); /* It is reached once more for each item. */
    }
    const core_pass *pass = pass_find(loop, frame);
    if (!pass) {
        (void)pass_new(loop, frame, unit, false);
    }
    return nothing();
}

/* An exception leaves a frame, or is caught in one. Told of all code: most of it is not ours. */
static PyObject *on_exception(PyObject *const *args, bool caught)
{
    core_loop *loop = core_chosen;
    if (core_loops_on && loop && loop->owner &&
        ((watched_code *)loop->owner)->code == args[0] && core_loops_here()) {
        core_frame *frame = core_frame_now();
        const int64_t handler = caught ? unit_argument(args[1]) : -1;
        if (!inside(loop, handler)) {
            core_pass *pass = pass_find(loop, frame);
            if (pass) {
                core_pass_end(pass, PASS_LEFT);
            }
        }
    }
    return nothing();
}

static PyObject *on_unwind(PyObject *Py_UNUSED(self), PyObject *const *args,
                           Py_ssize_t Py_UNUSED(count))
{
    return on_exception(args, false);
}

static PyObject *on_handled(PyObject *Py_UNUSED(self), PyObject *const *args,
                            Py_ssize_t Py_UNUSED(count))
{
    return on_exception(args, true);
}

/* --- The seat --------------------------------------------------------------------------- */

#define FAST(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef callbacks[] = {
    {"loop_jump", FAST(on_jump), METH_FASTCALL, NULL},
    {"loop_branch", FAST(on_branch), METH_FASTCALL, NULL},
    {"loop_line", FAST(on_line), METH_FASTCALL, NULL},
    {"loop_unwind", FAST(on_unwind), METH_FASTCALL, NULL},
    {"loop_handled", FAST(on_handled), METH_FASTCALL, NULL},
};
enum { EVENTS = sizeof callbacks / sizeof callbacks[0] };

static const struct {
    const char *name;
    long *number;
} events[EVENTS] = {
    {"JUMP", &jump_event},
    {"BRANCH", &branch_event},
    {"LINE", &line_event},
    {"PY_UNWIND", &unwind_event},
    {"EXCEPTION_HANDLED", &handled_event},
};

static int register_callbacks(PyObject *monitoring, bool on)
{
    for (int i = 0; i < EVENTS; i++) {
        *events[i].number = core_monitoring_event(monitoring, events[i].name);
        PyObject *callback =
            on ? PyCFunction_New(&callbacks[i], NULL) : Py_NewRef(Py_None);
        PyObject *old = *events[i].number >= 0 && callback
                            ? PyObject_CallMethod(monitoring, "register_callback", "ilO",
                                                  tool, *events[i].number, callback)
                            : NULL;
        Py_XDECREF(callback);
        if (!old) {
            return -1;
        }
        Py_DECREF(old);
    }
    return 0;
}

static int set_events(PyObject *monitoring, PyObject *code, long set)
{
    PyObject *done =
        code ? PyObject_CallMethod(monitoring, "set_local_events", "iOl", tool, code, set)
             : PyObject_CallMethod(monitoring, "set_events", "il", tool, set);
    Py_XDECREF(done);
    return done ? 0 : -1;
}

int core_loop_events_start(PyObject *Py_UNUSED(module))
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(PyExc_RuntimeError,
                    "loops are not seen on a free-threaded Python yet");
    return -1;
#else
    PyObject *monitoring = core_monitoring();
    if (!monitoring) {
        return -1;
    }
    if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
        PyErr_SetString(PyExc_RuntimeError,
                        "loops are seen in the main interpreter only");
        return -1;
    }
    if (extra < 0) {
        extra = PyUnstable_Eval_RequestCodeExtraIndex(watched_free);
    }
    if (extra < 0) {
        PyErr_SetString(PyExc_RuntimeError,
                        "loops are not seen: there is no free slot in code objects");
        return -1;
    }
    if (!disable) {
        disable = PyObject_GetAttrString(monitoring, "DISABLE");
        if (!disable) {
            return -1;
        }
    }
    tool = core_monitoring_take(monitoring, "stepwatch.loops", "the search for loops");
    if (tool == NO_TOOL) {
        return -1;
    }
    if (register_callbacks(monitoring, true) != 0) {
        PyObject *type, *value, *traceback;
        PyErr_Fetch(&type, &value, &traceback);
        core_loop_events_stop();
        PyErr_Restore(type, value, traceback);
        return -1;
    }
    return 0;
#endif
}

static bool has_jumps_back(PyObject *code)
{
    PyObject *bytes = PyObject_GetAttrString(code, "co_code");
    bool found = false;
    if (bytes && PyBytes_Check(bytes)) {
        const unsigned char *data = (const unsigned char *)PyBytes_AS_STRING(bytes);
        for (Py_ssize_t i = 0; i < PyBytes_GET_SIZE(bytes) && !found; i += 2) {
            found = data[i] == JUMP_BACKWARD;
        }
    }
    Py_XDECREF(bytes);
    PyErr_Clear();
    return found;
}

static int watch_one(PyObject *monitoring, PyObject *code)
{
    if (watched_of(code) || watched_count >= MOST_CODES || !has_jumps_back(code)) {
        return 0;
    }
    watched_code *self = calloc(1, sizeof *self);
    if (!self) {
        PyErr_NoMemory();
        return -1;
    }
    self->code = code;
    if (PyUnstable_Code_SetExtra(code, extra, self) != 0) {
        free(self);
        return -1;
    }
    self->next = watched;
    watched = self;
    watched_count++;
    return set_events(monitoring, code, jump_event | branch_event);
}

static int watch(PyObject *monitoring, PyObject *code)
{
    PyObject *constants = ((PyCodeObject *)code)->co_consts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constants); i++) {
        PyObject *constant = PyTuple_GET_ITEM(constants, i);
        if (PyCode_Check(constant) && watch(monitoring, constant) != 0) {
            return -1;
        }
    }
    return watch_one(monitoring, code);
}

int core_loop_events_watch(PyObject *Py_UNUSED(module), PyObject *code)
{
    PyObject *monitoring = core_monitoring();
    return monitoring && tool != NO_TOOL ? watch(monitoring, code) : -1;
}

void core_loop_events_choose(core_loop *loop)
{
    PyObject *monitoring = core_monitoring();
    PyObject *code = ((watched_code *)loop->owner)->code;
    /* Off and on again: what was switched off in this code is on again. */
    if (!monitoring || set_events(monitoring, code, 0) != 0 ||
        set_events(monitoring, code, jump_event | branch_event | line_event) != 0) {
        PyErr_Clear();
    }
    if (!sees_exceptions && monitoring) {
        sees_exceptions = set_events(monitoring, NULL, unwind_event | handled_event) == 0;
        PyErr_Clear();
    }
}

void core_loop_events_stop(void)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *monitoring = core_monitoring();
    if (monitoring && tool != NO_TOOL) {
        for (watched_code *one = watched; one; one = one->next) {
            if (set_events(monitoring, one->code, 0) != 0) {
                PyErr_Clear();
            }
        }
        if (set_events(monitoring, NULL, 0) != 0 ||
            register_callbacks(monitoring, false) != 0) {
            PyErr_Clear();
        }
        PyObject *done = PyObject_CallMethod(monitoring, "free_tool_id", "i", tool);
        Py_XDECREF(done);
        tool = NO_TOOL;
        sees_exceptions = false;
    }
    PyErr_Clear();
    PyErr_Restore(type, value, traceback);
}

static PyObject *same_code(PyObject *Py_UNUSED(module), PyObject *code)
{
    return Py_NewRef(code);
}

static PyMethodDef methods[] = {
    {"_loops_code", same_code, METH_O,
     PyDoc_STR("The code that runs in the place of this one.")},
    {NULL, NULL, 0, NULL},
};

int core_loop_events_add(PyObject *module)
{
    return PyModule_AddFunctions(module, methods);
}
#endif
