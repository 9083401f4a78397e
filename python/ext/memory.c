/* stepwatch.memory: allocations of the program while it runs, and those of a whole recording. */
#include "memory.h"
#include "brief.h"

#include "ticks.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <string.h>
#include <structmember.h>

#define SAMPLE_KB 512

PyDoc_STRVAR(
    memory_doc,
    "memory(*, sample_kb=512, native=False)\n--\n\n"
    "Count every allocation while it runs, by Python and by native code, on all "
    "threads:\n"
    "bytes and blocks allocated and freed, and the peak. About every sample_kb KiB the "
    "stack\n"
    "is taken, for the lines that allocate most; 0: counters only. native=True names "
    "the\n"
    "native function that allocated, too.\n\n"
    "    with stepwatch.memory() as mem:\n"
    "        train()\n"
    "    print(mem.peak, mem.allocated, mem.freed)\n"
    "    print(mem.top(5))\n\n"
    "It needs no recording. `stepwatch run --memory` does it for a whole program.");

typedef struct {
    PyObject_HEAD unsigned sample_kb;
    bool native, running;
    int window;
    sw_heap_stats base, ended;  /* counters at its start, and what it counted before */
    sw_heap_window last;        /* of its last stretch */
    PyObject *first, *snapshot; /* at its start and its end; NULL: never */
    PyTypeObject *snapshot_type;
} memory_object;

static unsigned running_now; /* with the GIL */

/* --- on and off --- */

static int tracking_on(unsigned sample_kb, bool native)
{
    sw_error_info info = {0};
    sw_heap_set_walk(memory_walk, native);
    core_brief_never();
    if (sw_heap_start((uint64_t)sample_kb * 1024, &info) != SW_OK) {
        PyErr_SetString(PyExc_RuntimeError, info.message);
        return -1;
    }
    memory_hooks_install();
    running_now++;
    return 0;
}

static void tracking_off(void)
{
    running_now--;
    memory_hooks_remove();
    sw_heap_stop();
}

static PyObject *memory_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"sample_kb", "native", NULL};
    Py_ssize_t sample_kb = SAMPLE_KB;
    int native = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|$np:memory", keywords, &sample_kb,
                                     &native)) {
        return NULL;
    }
    if (sample_kb < 0 || sample_kb > 1000000) {
        PyErr_SetString(PyExc_ValueError, "sample_kb should be from 0 to 1000000");
        return NULL;
    }
    const core_state *state = PyType_GetModuleState(type);
    memory_object *self = state ? (memory_object *)type->tp_alloc(type, 0) : NULL;
    if (self) {
        self->sample_kb = (unsigned)sample_kb;
        self->native = native != 0;
        self->window = -1;
        self->snapshot_type = (PyTypeObject *)state->slot[CORE_MEMORY_SNAPSHOT_TYPE];
        Py_INCREF(self->snapshot_type);
    }
    return (PyObject *)self;
}

static PyObject *snapshot_now(memory_object *self)
{
    sw_heap_stats stats;
    sw_heap_window window;
    sw_heap_read(&stats);
    sw_heap_window_read(self->window, &window);
    window.now -= window.begin;
    return memory_snapshot_new(self->snapshot_type, &stats, &window);
}

/* Has run, and counted nothing. */
static int memory_nothing(memory_object *self)
{
    const sw_heap_stats stats = {0};
    const sw_heap_window window = {0};
    PyObject *empty = memory_snapshot_new(self->snapshot_type, &stats, &window);
    if (!empty) {
        return -1;
    }
    Py_INCREF(empty);
    Py_XSETREF(self->first, empty);
    Py_XSETREF(self->snapshot, empty);
    return 0;
}

static int memory_begin(memory_object *self)
{
    if (self->running) {
        PyErr_SetString(PyExc_RuntimeError, "it is running already");
        return -1;
    }
    if (core_is_off()) {
        return memory_nothing(self);
    }
    if (tracking_on(self->sample_kb, self->native) != 0) {
        return -1;
    }
    if (running_now == 1) {
        sw_heap_peak_restart();
    }
    self->window = sw_heap_window_open();
    if (self->window < 0) {
        tracking_off();
        PyErr_SetString(PyExc_RuntimeError, "too many are running already");
        return -1;
    }
    PyObject *first = snapshot_now(self);
    if (!first) {
        sw_heap_window_close(self->window);
        tracking_off();
        return -1;
    }
    Py_XSETREF(self->first, first);
    Py_CLEAR(self->snapshot);
    self->running = true;
    sw_heap_read(&self->base);
    return 0;
}

static void totals_add(sw_heap_totals *to, const sw_heap_totals *now,
                       const sw_heap_totals *before)
{
    to->allocated += now->allocated - before->allocated;
    to->blocks += now->blocks - before->blocks;
    to->freed += now->freed - before->freed;
    to->blocks_freed += now->blocks_freed - before->blocks_freed;
}

/* What it counted up to now. */
static void memory_totals(const memory_object *self, sw_heap_stats *out)
{
    sw_heap_stats now;
    *out = self->ended;
    if (self->running) {
        sw_heap_read(&now);
        for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
            totals_add(&out->part[part], &now.part[part], &self->base.part[part]);
        }
        totals_add(&out->all, &now.all, &self->base.all);
    }
}

static void memory_end(memory_object *self)
{
    if (self->running) {
        memory_totals(self, &self->ended);
        sw_heap_window_read(self->window, &self->last);
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        Py_XSETREF(self->snapshot, snapshot_now(self));
        PyErr_Restore(type, value, trace);
        sw_heap_window_close(self->window);
        self->window = -1;
        self->running = false;
        tracking_off();
    }
}

static void memory_dealloc(PyObject *object)
{
    memory_object *self = (memory_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    memory_end(self);
    Py_CLEAR(self->first);
    Py_CLEAR(self->snapshot);
    Py_CLEAR(self->snapshot_type);
    type->tp_free(object);
    Py_DECREF(type);
}

PyDoc_STRVAR(start_doc, "start($self, /)\n--\n\nStart counting.");
PyDoc_STRVAR(stop_doc, "stop($self, /)\n--\n\nStop counting; what was counted stays.");

static PyObject *memory_start(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (memory_begin((memory_object *)self) != 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *memory_stop(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    memory_end((memory_object *)self);
    Py_RETURN_NONE;
}

static PyObject *memory_enter(PyObject *self, PyObject *Py_UNUSED(ignored))
{
    if (memory_begin((memory_object *)self) != 0) {
        return NULL;
    }
    Py_INCREF(self);
    return self;
}

static PyObject *memory_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    (void)args;
    (void)count;
    memory_end((memory_object *)self);
    Py_RETURN_NONE;
}

/* --- results --- */

static void window_of(const memory_object *self, sw_heap_window *out)
{
    *out = self->last;
    if (self->running) {
        sw_heap_window_read(self->window, out);
    }
}

static PyObject *get_peak(PyObject *self, void *Py_UNUSED(closure))
{
    sw_heap_window window;
    window_of((memory_object *)self, &window);
    return PyLong_FromLongLong(window.peak - window.begin);
}

static PyObject *get_in_use(PyObject *self, void *Py_UNUSED(closure))
{
    sw_heap_window window;
    window_of((memory_object *)self, &window);
    return PyLong_FromLongLong(window.now - window.begin);
}

static PyObject *get_total(PyObject *self, void *closure)
{
    sw_heap_stats stats;
    memory_totals((memory_object *)self, &stats);
    uint64_t value;
    memcpy(&value, (const char *)&stats.all + (size_t)(uintptr_t)closure, sizeof value);
    return PyLong_FromUnsignedLongLong(value);
}

PyDoc_STRVAR(
    parts_doc,
    "The same by who allocates, as dicts with allocated, blocks, freed and\n"
    "blocks_freed: python_obj, python_mem, python_raw (Python's domains), native\n"
    "(malloc and its kin), mmap. They do not overlap.");

static PyObject *get_parts(PyObject *self, void *Py_UNUSED(closure))
{
    static const char *const names[] = {
#define PART_NAME(number, name, text) [number] = text,
        SW_HEAP_PART_TABLE(PART_NAME)
#undef PART_NAME
    };
    sw_heap_stats stats;
    memory_totals((memory_object *)self, &stats);
    PyObject *parts = PyDict_New();
    for (unsigned i = 0; parts && i < SW_HEAP_PARTS; i++) {
        const sw_heap_totals *at = &stats.part[i];
        PyObject *part = Py_BuildValue(
            "{s:K,s:K,s:K,s:K}", "allocated", (unsigned long long)at->allocated, "blocks",
            (unsigned long long)at->blocks, "freed", (unsigned long long)at->freed,
            "blocks_freed", (unsigned long long)at->blocks_freed);
        if (!part || PyDict_SetItemString(parts, names[i], part) != 0) {
            Py_CLEAR(parts);
        }
        Py_XDECREF(part);
    }
    return parts;
}

PyDoc_STRVAR(
    snapshot_doc,
    "snapshot($self, /)\n--\n\n"
    "What was sampled up to now, or up to its end. later - earlier is what came in\n"
    "between; top() has the lines, collapsed() the stacks.\n\n"
    "    before = mem.snapshot()\n"
    "    step()\n"
    "    print((mem.snapshot() - before).top(5, by=\"live\"))");

static PyObject *memory_snapshot(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    memory_object *self = (memory_object *)object;
    if (self->running) {
        return snapshot_now(self);
    }
    if (!self->snapshot) {
        PyErr_SetString(PyExc_RuntimeError, "it has not run yet");
        return NULL;
    }
    Py_INCREF(self->snapshot);
    return self->snapshot;
}

PyDoc_STRVAR(difference_doc, "difference($self, /)\n--\n\n"
                             "The snapshot of what came since its start.");

static PyObject *memory_difference(PyObject *object, PyObject *Py_UNUSED(ignored))
{
    PyObject *now = memory_snapshot(object, NULL);
    PyObject *result =
        now ? memory_snapshot_since(now, ((memory_object *)object)->first) : NULL;
    Py_XDECREF(now);
    return result;
}

PyDoc_STRVAR(top_doc,
             "top($self, /, limit=10, by=\"allocated\")\n--\n\n"
             "The lines that allocated most since its start; see MemorySnapshot.top.");

static PyObject *memory_top(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"limit", "by", NULL};
    Py_ssize_t limit = 10;
    const char *by = "allocated";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ns:top", keywords, &limit, &by)) {
        return NULL;
    }
    PyObject *since = memory_difference(self, NULL);
    PyObject *rows = since ? memory_snapshot_top(since, limit, by) : NULL;
    Py_XDECREF(since);
    return rows;
}

static PyObject *memory_repr(PyObject *object)
{
    const memory_object *self = (const memory_object *)object;
    sw_heap_window window;
    window_of(self, &window);
    return PyUnicode_FromFormat("<stepwatch.memory, peak %lld bytes%s>",
                                (long long)(window.peak - window.begin),
                                self->running ? ", running" : "");
}

static PyMethodDef memory_methods[] = {
    {"start", memory_start, METH_NOARGS, start_doc},
    {"stop", memory_stop, METH_NOARGS, stop_doc},
    {"__enter__", memory_enter, METH_NOARGS, start_doc},
    {"__exit__", (PyCFunction)(void (*)(void))memory_exit, METH_FASTCALL, stop_doc},
    {"snapshot", memory_snapshot, METH_NOARGS, snapshot_doc},
    {"difference", memory_difference, METH_NOARGS, difference_doc},
    {"top", (PyCFunction)(void (*)(void))memory_top, METH_VARARGS | METH_KEYWORDS,
     top_doc},
    {NULL, NULL, 0, NULL},
};

#define TOTAL(field) (void *)offsetof(sw_heap_totals, field)
static PyGetSetDef memory_getters[] = {
    {"peak", get_peak, NULL, "Most bytes in use at once, beyond those at its start.",
     NULL},
    {"in_use", get_in_use, NULL,
     "Bytes in use now, or at its end, beyond those at its start.", NULL},
    {"allocated", get_total, NULL, "Bytes allocated.", TOTAL(allocated)},
    {"freed", get_total, NULL, "Bytes freed.", TOTAL(freed)},
    {"blocks", get_total, NULL, "Blocks allocated.", TOTAL(blocks)},
    {"blocks_freed", get_total, NULL, "Blocks freed.", TOTAL(blocks_freed)},
    {"parts", get_parts, NULL, parts_doc, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef memory_members[] = {
    {"running", T_BOOL, offsetof(memory_object, running), READONLY, "Whether it counts."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot memory_slots[] = {
    {Py_tp_doc, (void *)memory_doc}, {Py_tp_new, memory_new},
    {Py_tp_dealloc, memory_dealloc}, {Py_tp_methods, memory_methods},
    {Py_tp_getset, memory_getters},  {Py_tp_members, memory_members},
    {Py_tp_repr, memory_repr},       {0, NULL},
};

static PyType_Spec memory_spec = {
    .name = "stepwatch._core.memory",
    .basicsize = sizeof(memory_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = memory_slots,
};

/* --- a whole recording --- */

static bool of_recording; /* counts for the recording that runs; with the GIL */
static _Atomic uint64_t written_due = UINT64_MAX; /* ticks when rows are written next */
static _Atomic bool write_asked;                  /* of the main thread */

int core_memory_began(void)
{
    char text[32];
    sw_option_value("memory", text, sizeof text);
    if (strcmp(text, "on") != 0 || of_recording) {
        return 0;
    }
    sw_option_value("memory_native", text, sizeof text);
    const bool native = strcmp(text, "on") == 0;
    sw_option_value("memory_sample_kb", text, sizeof text);
    if (tracking_on((unsigned)atoi(text), native) != 0) {
        return -1;
    }
    of_recording = true;
    atomic_store(&written_due, core_ticks_soon(core_ticks()));
    return 0;
}

/* What was sampled so far, for programs that are killed. With the GIL. */
static void write_so_far(void)
{
    const uint64_t began = core_ticks();
    sw_heap_snapshot snapshot;
    atomic_store(&written_due, UINT64_MAX);
    if (sw_heap_snapshot_take(&snapshot) == SW_OK) {
        memory_rows_write(&snapshot, false);
        sw_heap_snapshot_free(&snapshot);
    }
    sw_heap_totals_write();
    atomic_store(&written_due, core_ticks_due(began, core_ticks()));
}

static int write_pending(void *Py_UNUSED(arg))
{
    atomic_store(&write_asked, false);
    core_memory_step();
    return 0;
}

void core_memory_step(void)
{
    if (of_recording && core_ticks() >= atomic_load(&written_due) && sw_is_recording()) {
        write_so_far();
    }
}

bool core_memory_tick(void)
{
    if (core_ticks() < atomic_load(&written_due) || atomic_exchange(&write_asked, true)) {
        return false;
    }
    const bool asked = Py_AddPendingCall(write_pending, NULL) == 0;
    atomic_store(&write_asked, asked);
    return asked;
}

void core_memory_flush(void)
{
    core_allocators_flush();
    core_holders_look(true);
    sw_heap_snapshot snapshot;
    if (of_recording && sw_heap_snapshot_take(&snapshot) == SW_OK) {
        memory_rows_write(&snapshot, true);
        sw_heap_snapshot_free(&snapshot);
    }
}

void core_memory_ended(void)
{
    if (of_recording) {
        of_recording = false;
        atomic_store(&written_due, UINT64_MAX);
        tracking_off();
    }
}

int core_memory_add(PyObject *module)
{
    if (memory_snapshot_add(module) != 0) {
        return -1;
    }
    return core_type_add(module, CORE_MEMORY_TYPE, &memory_spec);
}
