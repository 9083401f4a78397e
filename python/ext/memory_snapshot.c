/* stepwatch.MemorySnapshot: what allocations were sampled up to a moment, or between two. */
#include "memory.h"

#include "user_code.h"
#include <stdlib.h>
#include <stepwatch/export.h>
#include <stepwatch/stacks.h>
#include <stepwatch/write.h>
#include <string.h>
#include <structmember.h>

typedef struct {
    PyObject_HEAD sw_heap_snapshot it;
    bool difference;
    unsigned long long allocated, freed, blocks, blocks_freed; /* exact, of all parts */
    long long in_use;
} snapshot_object;

static double value_of(const sw_heap_site *site, int view)
{
    return view == 'a' ? site->allocated : view == 'l' ? site->live : site->peak;
}

/* 'a', 'l' or 'p'; 0 with ValueError. */
static int view_get(const char *by)
{
    if (strcmp(by, "allocated") == 0 || strcmp(by, "live") == 0 ||
        strcmp(by, "peak") == 0) {
        return by[0];
    }
    PyErr_Format(PyExc_ValueError,
                 "by must be \"allocated\", \"live\" or \"peak\", not %.50s", by);
    return 0;
}

PyObject *memory_snapshot_new(PyTypeObject *type, const sw_heap_stats *stats,
                              const sw_heap_window *window)
{
    snapshot_object *self = (snapshot_object *)type->tp_alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->allocated = stats->all.allocated;
    self->freed = stats->all.freed;
    self->blocks = stats->all.blocks;
    self->blocks_freed = stats->all.blocks_freed;
    self->in_use = window->now;
    if (sw_heap_snapshot_take(&self->it) != SW_OK) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    return (PyObject *)self;
}

static void snapshot_dealloc(PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    sw_heap_snapshot_free(&((snapshot_object *)object)->it);
    type->tp_free(object);
    Py_DECREF(type);
}

/* --- sites --- */

/* Allocations of one line. */
typedef struct {
    uint32_t function, line;
    uint32_t leaf_function, leaf_line; /* the innermost frame, of its largest stack */
    double leaf_value;
    double allocated, blocks, live, peak;
} place;

typedef struct {
    place *list;
    size_t count;
} places;

static bool is_user(uint32_t function, signed char *cache, size_t room)
{
    if (function & SW_HEAP_CALLER) {
        return false;
    }
    if (function < room && cache[function]) {
        return cache[function] > 0;
    }
    memory_function it;
    bool user = false;
    if (memory_function_get(function, &it)) {
        PyObject *file =
            PyUnicode_DecodeUTF8(it.file, (Py_ssize_t)strlen(it.file), "replace");
        user = file && *it.file && core_is_user_file(file);
        Py_XDECREF(file);
        PyErr_Clear();
    }
    if (function < room) {
        cache[function] = user ? 1 : -1;
    }
    return user;
}

/* The innermost frame of the user's own code on the way to a site, else the innermost of all. */
static const sw_heap_site *user_site(const sw_heap_snapshot *it, const sw_heap_site *site,
                                     signed char *cache, size_t room)
{
    for (const sw_heap_site *at = site;; at = &it->sites[at->parent - 1]) {
        if (is_user(at->frame.function, cache, room)) {
            return at;
        }
        if (!at->parent) {
            return site;
        }
    }
}

static int places_find(const sw_heap_snapshot *it, int view, places *out)
{
    enum { CACHE = 16384 };
    signed char *cache = calloc(CACHE, 1);
    out->list = calloc(it->count + 1, sizeof *out->list);
    out->count = 0;
    if (!cache || !out->list) {
        free(cache);
        PyErr_NoMemory();
        return -1;
    }
    for (size_t i = 0; i < it->count; i++) {
        const sw_heap_site *site = &it->sites[i];
        if (site->allocated <= 0 && site->live == 0 && site->peak <= 0) {
            continue;
        }
        const sw_heap_frame frame = user_site(it, site, cache, CACHE)->frame;
        place *at = out->list;
        while (at < out->list + out->count &&
               (at->function != frame.function || at->line != frame.line)) {
            at++;
        }
        if (at == out->list + out->count) {
            out->count++;
            *at = (place){.function = frame.function, .line = frame.line};
        }
        if (at->leaf_line == 0 || value_of(site, view) > at->leaf_value) {
            at->leaf_function = site->frame.function;
            at->leaf_line = site->frame.line;
            at->leaf_value = value_of(site, view);
        }
        at->allocated += site->allocated;
        at->blocks += site->blocks;
        at->live += site->live;
        at->peak += site->peak;
    }
    free(cache);
    return 0;
}

/* How far up a line comes. In a difference, what a line has given back is as much of a change as what it has taken. */
static double place_rank(const place *at, int view, bool difference)
{
    const double value = view == 'a' ? at->allocated : view == 'l' ? at->live : at->peak;
    return difference && value < 0 ? -value : value;
}

static PyObject *text_of(const char *text)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
}

static PyObject *row_of(const place *at)
{
    memory_function it = {"", "?", "?", 0}, leaf = {"", "?", "?", 0};
    (void)memory_function_get(at->function, &it);
    (void)memory_function_get(at->leaf_function, &leaf);
    return Py_BuildValue(
        "{s:N,s:N,s:N,s:L,s:L,s:L,s:L,s:N}", "file", text_of(it.file), "line",
        at->line ? PyLong_FromUnsignedLong(at->line) : (Py_INCREF(Py_None), Py_None),
        "function", text_of(it.qualname), "allocated", (long long)at->allocated, "blocks",
        (long long)(at->blocks + 0.5), "live", (long long)at->live, "peak",
        (long long)at->peak, "leaf",
        PyUnicode_FromFormat("%s (%s:%u)", leaf.qualname, leaf.file, at->leaf_line));
}

PyObject *memory_snapshot_top(PyObject *object, Py_ssize_t limit, const char *by)
{
    const snapshot_object *self = (const snapshot_object *)object;
    const int view = view_get(by);
    places found = {0};
    if (!view || places_find(&self->it, view, &found) != 0) {
        free(found.list);
        return NULL;
    }
    PyObject *rows = PyList_New(0);
    while (rows && (limit < 0 || PyList_GET_SIZE(rows) < limit)) {
        place *most = NULL;
        for (size_t i = 0; i < found.count; i++) {
            const double rank = place_rank(&found.list[i], view, self->difference);
            if (rank >= 1 && (!most || rank > place_rank(most, view, self->difference))) {
                most = &found.list[i];
            }
        }
        PyObject *row = most ? row_of(most) : NULL;
        if (!most) {
            break;
        }
        if (!row || PyList_Append(rows, row) != 0) {
            Py_CLEAR(rows);
        }
        Py_XDECREF(row);
        *most = (place){0};
    }
    free(found.list);
    return rows;
}

PyDoc_STRVAR(
    top_doc,
    "top($self, /, limit=10, by=\"allocated\")\n--\n\n"
    "The lines that allocate most, as dicts: file, line, function, allocated, blocks,\n"
    "live (bytes in use), peak (bytes in use when most was), leaf (where the innermost\n"
    "call was). A line is one of your own code where there is one on the stack. Numbers\n"
    "are estimated from samples. by: allocated, live or peak. In a difference of two\n"
    "snapshots, lines by \"live\" are also those that have less: live is negative.\n\n"
    "    for site in mem.snapshot().top(5, by=\"live\"):\n"
    "        print(site[\"live\"], site[\"file\"], site[\"line\"])");

static PyObject *snapshot_top(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"limit", "by", NULL};
    Py_ssize_t limit = 10;
    const char *by = "allocated";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|ns:top", keywords, &limit, &by)) {
        return NULL;
    }
    return memory_snapshot_top(self, limit, by);
}

/* --- differences --- */

PyObject *memory_snapshot_since(PyObject *later, PyObject *earlier)
{
    snapshot_object *a = (snapshot_object *)later, *b = (snapshot_object *)earlier;
    if (b->it.count > a->it.count) {
        PyErr_SetString(
            PyExc_ValueError,
            "the second snapshot is newer, or from another stretch of counting");
        return NULL;
    }
    snapshot_object *self =
        (snapshot_object *)Py_TYPE(later)->tp_alloc(Py_TYPE(later), 0);
    if (!self) {
        return NULL;
    }
    self->difference = true;
    self->it.sites = calloc(a->it.count + 1, sizeof *self->it.sites);
    if (!self->it.sites) {
        Py_DECREF(self);
        return PyErr_NoMemory();
    }
    self->it.count = a->it.count;
    for (size_t i = 0; i < a->it.count; i++) {
        sw_heap_site *to = &self->it.sites[i];
        *to = a->it.sites[i];
        if (i < b->it.count) {
            const sw_heap_site *from = &b->it.sites[i];
            if (from->frame.function != to->frame.function ||
                from->parent != to->parent) {
                Py_DECREF(self);
                PyErr_SetString(PyExc_ValueError,
                                "the snapshots are from different stretches of counting");
                return NULL;
            }
            to->allocated -= from->allocated;
            to->blocks -= from->blocks;
            to->live -= from->live;
            to->samples -= from->samples;
        }
    }
    self->it.live = a->it.live - b->it.live;
    self->it.peak = a->it.peak;
    self->allocated = a->allocated - b->allocated;
    self->freed = a->freed - b->freed;
    self->blocks = a->blocks - b->blocks;
    self->blocks_freed = a->blocks_freed - b->blocks_freed;
    self->in_use = a->in_use - b->in_use;
    return (PyObject *)self;
}

static PyObject *snapshot_subtract(PyObject *left, PyObject *right)
{
    if (Py_TYPE(left) != Py_TYPE(right)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return memory_snapshot_since(left, right);
}

/* --- flame graphs --- */

static int stack_add(sw_stacks *stacks, const sw_heap_snapshot *it, size_t index,
                     uint64_t bytes)
{
    enum { MOST = 80 };
    sw_stack_frame frames[MOST];
    size_t depth = 0;
    for (size_t at = index + 1; at && depth < MOST; at = it->sites[at - 1].parent) {
        depth++;
    }
    size_t left = depth;
    for (size_t at = index + 1; at && left > 0; at = it->sites[at - 1].parent) {
        const sw_heap_frame frame = it->sites[at - 1].frame;
        memory_function function = {"", "?", "?", 0};
        (void)memory_function_get(frame.function, &function);
        frames[--left] =
            (sw_stack_frame){function.qualname, function.file, frame.line,
                             function.first_line, (frame.function & SW_HEAP_CALLER) != 0};
    }
    const sw_stack_tag tag = {"", "", SW_PHASE_INHERIT, 0, true};
    const sw_stack_counts counts = {bytes, 0, 0};
    return sw_stacks_add(stacks, frames, depth, &tag, &counts);
}

static PyObject *export_stacks(PyObject *object, int view)
{
    const sw_heap_snapshot *it = &((snapshot_object *)object)->it;
    sw_stacks *stacks = NULL;
    int error = sw_stacks_create(&stacks);
    for (size_t i = 0; i < it->count && !error; i++) {
        const double value = value_of(&it->sites[i], view);
        if (value >= 1) {
            error = stack_add(stacks, it, i, (uint64_t)value);
        }
    }
    sw_writer *writer = error ? NULL : sw_writer_to_memory();
    PyObject *text = NULL;
    if (writer) {
        const sw_stack_options options = {.lines = true};
        sw_export_collapsed(writer, stacks, &options);
        size_t length;
        const char *bytes = sw_writer_text(writer, &length);
        text = bytes ? PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)length, "replace")
                     : PyErr_NoMemory();
        sw_writer_close(writer, NULL);
    }
    sw_stacks_free(stacks);
    return writer ? text : PyErr_NoMemory();
}

PyDoc_STRVAR(collapsed_doc,
             "collapsed($self, /, by=\"peak\")\n--\n\n"
             "The stacks with their bytes, one a line, for flame graph tools. by: peak\n"
             "(what was in use when most was), live or allocated.\n\n"
             "    open(\"peak.txt\", \"w\").write(mem.snapshot().collapsed())");

static PyObject *snapshot_collapsed(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *keywords[] = {"by", NULL};
    const char *by = "peak";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|s:collapsed", keywords, &by)) {
        return NULL;
    }
    const int view = view_get(by);
    return view ? export_stacks(self, view) : NULL;
}

static PyMethodDef snapshot_methods[] = {
    {"top", (PyCFunction)(void (*)(void))snapshot_top, METH_VARARGS | METH_KEYWORDS,
     top_doc},
    {"collapsed", (PyCFunction)(void (*)(void))snapshot_collapsed,
     METH_VARARGS | METH_KEYWORDS, collapsed_doc},
    {NULL, NULL, 0, NULL},
};

static PyObject *snapshot_repr(PyObject *object)
{
    const snapshot_object *self = (const snapshot_object *)object;
    return PyUnicode_FromFormat("<stepwatch.MemorySnapshot%s, %lld bytes in use>",
                                self->difference ? " difference" : "", self->in_use);
}

static PyMemberDef snapshot_members[] = {
    {"allocated", T_ULONGLONG, offsetof(snapshot_object, allocated), READONLY,
     "Bytes allocated since counting began, or between two snapshots; exact."},
    {"freed", T_ULONGLONG, offsetof(snapshot_object, freed), READONLY, "Bytes freed."},
    {"blocks", T_ULONGLONG, offsetof(snapshot_object, blocks), READONLY,
     "Blocks allocated."},
    {"blocks_freed", T_ULONGLONG, offsetof(snapshot_object, blocks_freed), READONLY,
     "Blocks freed."},
    {"in_use", T_LONGLONG, offsetof(snapshot_object, in_use), READONLY,
     "Bytes in use beyond those when counting began."},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot snapshot_slots[] = {
    {Py_tp_doc,
     "What was sampled of allocations up to a moment. later - earlier gives what "
     "came in between.\n\n"
     ">>> with stepwatch.memory() as allocations:\n"
     "...     before = allocations.snapshot()\n"
     "...     kept = [bytes(1000) for _ in range(1000)]\n"
     "...     print((allocations.snapshot() - before).allocated)"},
    {Py_tp_dealloc, snapshot_dealloc},
    {Py_tp_methods, snapshot_methods},
    {Py_tp_members, snapshot_members},
    {Py_tp_repr, snapshot_repr},
    {Py_nb_subtract, snapshot_subtract},
    {0, NULL},
};

static PyType_Spec snapshot_spec = {
    .name = "stepwatch._core.MemorySnapshot",
    .basicsize = sizeof(snapshot_object),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = snapshot_slots,
};

int memory_snapshot_add(PyObject *module)
{
    return core_type_add(module, CORE_MEMORY_SNAPSHOT_TYPE, &snapshot_spec);
}
