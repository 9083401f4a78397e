/* What the plain profiler of torch saw: begins, ends and allocations of each thread, as objects of torch's own. They become
 * operators with nesting, own time and phase: records of the trace, and totals by operator and shapes.
 *
 * Asking such an object anything costs more than all that is done with the answer. So what it is asked is the least that
 * tells, and everything else is here. */
#include "operators.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SPANS 200000u
#define LONGEST_SHAPES 200  /* in the table, to tell rows apart */
#define LONGEST_INPUTS 4000 /* on the timeline */
#define LONGEST_NAME 300
/* Of torch's at::RecordScope. */
#define SCOPE_BACKWARD 1
#define SCOPE_USER 7

/* What an event is asked for; in the order of `method_names`. */
enum {
    KIND,
    ELAPSED,
    HANDLE,
    NAME,
    SCOPE,
    SEQUENCE,
    FLOPS,
    SHAPES,
    THREAD,
    SIZE,
    METHODS
};
static const char *const method_names[METHODS] = {
    "kind",        "cpu_elapsed_us", "handle", "name",      "scope",
    "sequence_nr", "flops",          "shapes", "thread_id", "cpu_memory_usage",
};

/* One call of an operator. */
typedef struct operation {
    PyObject *event; /* borrowed */
    PyObject *name;  /* own */
    PyObject *text;  /* of the shapes, own; NULL: there are none */
    long long handle, begin, end, inner, allocated, flops, sequence;
    size_t number; /* in the order of begins */
    unsigned flags, depth, tid;
    int phase;
    bool shaped; /* some input has a shape */
} operation;

/* moment, bytes, bytes held, thread */
typedef struct allocation {
    long long moment, bytes, held;
    unsigned tid;
} allocation;

/* Invariant of `open`: places in `operations`, the newest last. */
typedef struct reading {
    PyObject *methods[METHODS]; /* own */
    PyObject *start;            /* the event that all times are told from; borrowed */
    long long began_ns, end_ns; /* its moment, and that of the end of the window */
    unsigned tid;               /* of the thread that opened the window */
    unsigned long torch_tid;    /* what torch calls that thread */
    operation *operations;
    size_t count, room;
    allocation *allocations;
    size_t allocation_count, allocation_room;
    size_t *open;
    size_t open_count, open_room;
    long long held;
} reading;

static bool grow(void **items, size_t *room, size_t count, size_t size)
{
    if (count < *room) {
        return true;
    }
    const size_t wanted = *room ? *room * 2 : 256;
    void *more = PyMem_Realloc(*items, wanted * size);
    if (!more) {
        PyErr_NoMemory();
        return false;
    }
    *items = more;
    *room = wanted;
    return true;
}

/* --- What events say ---------------------------------------------------------------- */

static PyObject *ask(const reading *it, int method, PyObject *event)
{
    PyObject *arguments[] = {event};
    return PyObject_Vectorcall(it->methods[method], arguments, 1, NULL);
}

static int ask_number(const reading *it, int method, PyObject *event, long long *out)
{
    PyObject *answer = ask(it, method, event);
    *out = answer ? PyLong_AsLongLong(answer) : -1;
    Py_XDECREF(answer);
    return *out == -1 && PyErr_Occurred() ? -1 : 0;
}

/* When it was, in nanoseconds of the system's clock. */
static int ask_moment(const reading *it, PyObject *event, long long *out)
{
    PyObject *arguments[] = {it->start, event};
    PyObject *answer = PyObject_Vectorcall(it->methods[ELAPSED], arguments, 2, NULL);
    const double us = answer ? PyFloat_AsDouble(answer) : -1.0;
    Py_XDECREF(answer);
    if (us == -1.0 && PyErr_Occurred()) {
        return -1;
    }
    *out = it->began_ns + llround(us * 1000.0);
    return 0;
}

/* The first letters of "push", "pop", "memory_alloc" and "mark", told apart by length; 0: none of them, -1 an exception. */
static int ask_kind(const reading *it, PyObject *event)
{
    PyObject *answer = ask(it, KIND, event);
    if (!answer) {
        return -1;
    }
    const Py_ssize_t length = PyUnicode_Check(answer) ? PyUnicode_GetLength(answer) : 0;
    const Py_UCS4 first = length ? PyUnicode_ReadChar(answer, 0) : 0;
    Py_DECREF(answer);
    return first == 'p' && length == 4    ? 'b' /* begins */
           : first == 'p' && length == 3  ? 'e' /* ends */
           : first == 'm' && length == 12 ? 'a' /* allocates */
           : first == 'm' && length == 4  ? 'm'
                                          : 0;
}

static size_t put_long(char *out, long long value)
{
    char digits[24];
    size_t count = 0, used = 0;
    unsigned long long left =
        value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value;
    do {
        digits[count++] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (value < 0) {
        out[used++] = '-';
    }
    while (count) {
        out[used++] = digits[--count];
    }
    return used;
}

/* Lists of lists of numbers as str() writes them, which JSON does too. NULL without an exception: it is something else, or
 * long. */
static PyObject *shapes_text(PyObject *shapes, bool *shaped)
{
    char text[1024];
    size_t used = 0;
    const Py_ssize_t inputs = PyList_GET_SIZE(shapes);
    text[used++] = '[';
    for (Py_ssize_t i = 0; i < inputs; i++) {
        PyObject *input = PyList_GET_ITEM(shapes, i);
        const Py_ssize_t sizes = PyList_Check(input) ? PyList_GET_SIZE(input) : -1;
        if (sizes < 0 || used + 8 > sizeof text) {
            return NULL;
        }
        *shaped = *shaped || sizes > 0;
        if (i) {
            text[used++] = ',';
            text[used++] = ' ';
        }
        text[used++] = '[';
        for (Py_ssize_t j = 0; j < sizes; j++) {
            PyObject *size = PyList_GET_ITEM(input, j);
            if (!PyLong_CheckExact(size) || used + 40 > sizeof text) {
                return NULL;
            }
            int overflow = 0;
            const long long value = PyLong_AsLongLongAndOverflow(size, &overflow);
            if (overflow) {
                return NULL;
            }
            if (j) {
                text[used++] = ',';
                text[used++] = ' ';
            }
            used += put_long(text + used, value);
        }
        text[used++] = ']';
    }
    text[used++] = ']';
    return PyUnicode_FromStringAndSize(text, (Py_ssize_t)used);
}

/* 0, or -1 with an exception set. */
static int read_shapes(const reading *it, operation *one)
{
    PyObject *shapes = ask(it, SHAPES, one->event);
    if (!shapes) {
        return -1;
    }
    const bool listed = PyList_Check(shapes);
    if (!listed || PyList_GET_SIZE(shapes)) {
        one->text = listed ? shapes_text(shapes, &one->shaped) : NULL;
        if (!one->text && !PyErr_Occurred()) {
            one->text = PyObject_Str(shapes);
            one->shaped = true;
        }
        if (!one->text || ask_number(it, FLOPS, one->event, &one->flops) != 0) {
            Py_DECREF(shapes);
            return -1;
        }
        one->flops = one->flops > 0 ? one->flops : 0;
    }
    Py_DECREF(shapes);
    return 0;
}

static int read_begin(reading *it, PyObject *event, long long handle, long long moment,
                      unsigned tid)
{
    if (!grow((void **)&it->operations, &it->room, it->count, sizeof *it->operations) ||
        !grow((void **)&it->open, &it->open_room, it->open_count, sizeof *it->open)) {
        return -1;
    }
    operation *one = &it->operations[it->count];
    long long scope;
    *one = (operation){.event = event,
                       .handle = handle,
                       .begin = moment,
                       .end = moment,
                       .tid = tid,
                       .number = it->count,
                       .sequence = -1};
    one->name = ask(it, NAME, event);
    it->count++;
    if (!one->name || ask_number(it, SCOPE, event, &scope) != 0 ||
        ask_number(it, SEQUENCE, event, &one->sequence) != 0 ||
        read_shapes(it, one) != 0) {
        return -1;
    }
    if (PyUnicode_Check(one->name) && PyUnicode_GetLength(one->name) == 0 &&
        ask_kind(it, event) != 'b') {
        Py_CLEAR(one->name); /* the end of what began before */
        Py_CLEAR(one->text);
        it->count--;
        return PyErr_Occurred() ? -1 : 0;
    }
    if (!PyUnicode_Check(one->name)) {
        PyErr_SetString(PyExc_TypeError, "the name of an operator is no text");
        return -1;
    }
    if (PyUnicode_GetLength(one->name) > LONGEST_NAME) {
        PyObject *shorter = PyUnicode_Substring(one->name, 0, LONGEST_NAME);
        if (!shorter) {
            return -1;
        }
        Py_SETREF(one->name, shorter);
    }
    one->flags = scope == SCOPE_USER       ? SW_SPAN_ANNOTATION
                 : scope == SCOPE_BACKWARD ? SW_SPAN_BACKWARD
                                           : 0;
    it->open[it->open_count++] = it->count - 1;
    return 0;
}

/* The place of an open operation among those that are open, or -1. Nearly always it is the newest; annotations may end in any
 * order, also on another thread. */
static Py_ssize_t find_open(const reading *it, long long handle)
{
    Py_ssize_t at = (Py_ssize_t)it->open_count - 1;
    while (at >= 0 && it->operations[it->open[at]].handle != handle) {
        at--;
    }
    return at;
}

static void read_end(reading *it, size_t at, long long moment)
{
    it->operations[it->open[at]].end = moment;
    it->open_count--;
    memmove(it->open + at, it->open + at + 1, (it->open_count - at) * sizeof *it->open);
}

/* What has no number is an allocation, or a mark. */
static int read_allocation(reading *it, PyObject *event, unsigned tid)
{
    long long bytes, moment;
    if (!grow((void **)&it->allocations, &it->allocation_room, it->allocation_count,
              sizeof *it->allocations) ||
        ask_number(it, SIZE, event, &bytes) != 0) {
        return -1;
    }
    const int kind = bytes == 0 ? ask_kind(it, event) : 'a';
    if (kind < 0 || (kind == 'a' && ask_moment(it, event, &moment) != 0)) {
        return -1;
    }
    if (kind == 'a') {
        it->held += bytes;
        it->allocations[it->allocation_count++] =
            (allocation){.moment = moment,
                         .bytes = bytes,
                         .held = it->held > 0 ? it->held : 0,
                         .tid = tid};
    }
    return 0;
}

/* One event. Its number tells what it is, for the end of an operation has that of its begin: one question less. */
static int read_event(reading *it, PyObject *event, unsigned tid)
{
    long long handle, moment;
    if (ask_number(it, HANDLE, event, &handle) != 0) {
        return -1;
    }
    if (handle == 0) {
        return read_allocation(it, event, tid);
    }
    if (ask_moment(it, event, &moment) != 0) {
        return -1;
    }
    const Py_ssize_t at = find_open(it, handle);
    if (at >= 0) {
        read_end(it, (size_t)at, moment);
        return 0;
    }
    return read_begin(it, event, handle, moment, tid);
}

/* The events of one thread. */
static int read_thread(reading *it, PyObject *events)
{
    const Py_ssize_t count = PyList_Check(events) ? PyList_GET_SIZE(events) : 0;
    long long thread = -1;
    it->open_count = 0;
    /* Of other threads only torch's own number is known, which no thread of ours has. */
    if (count && ask_number(it, THREAD, PyList_GET_ITEM(events, 0), &thread) != 0) {
        return -1;
    }
    const unsigned tid = (unsigned long)thread == it->torch_tid ? it->tid : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (read_event(it, PyList_GET_ITEM(events, i), tid) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < it->open_count; i++) {
        operation *one = &it->operations[it->open[i]];
        one->end = one->begin > it->end_ns ? one->begin : it->end_ns;
    }
    return 0;
}

/* Finds the event that all times are told from, the first mark. 1: there is none. */
static int find_start(reading *it, PyObject *threads)
{
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(threads); i++) {
        PyObject *events = PyList_GET_ITEM(threads, i);
        if (!PyList_Check(events) || PyList_GET_SIZE(events) == 0) {
            continue;
        }
        PyObject *first = PyList_GET_ITEM(events, 0);
        for (int j = 0; j < METHODS && !it->methods[j]; j++) {
            it->methods[j] =
                PyObject_GetAttrString((PyObject *)Py_TYPE(first), method_names[j]);
            if (!it->methods[j]) {
                return -1;
            }
        }
        const int kind = ask_kind(it, first);
        if (kind < 0) {
            return -1;
        }
        if (kind == 'm') {
            PyObject *us = PyObject_CallMethod(first, "start_us", NULL);
            const double began = us ? PyFloat_AsDouble(us) : -1.0;
            long long thread;
            Py_XDECREF(us);
            if (PyErr_Occurred() || ask_number(it, THREAD, first, &thread) != 0) {
                return -1;
            }
            it->start = first;
            it->began_ns = llround(began * 1000.0);
            it->torch_tid = (unsigned long)thread;
            return 0;
        }
    }
    return 1;
}

/* --- What follows from it ----------------------------------------------------------- */

/* By thread, then by begin; of those that begin together the longest first. */
static int operation_compare(const void *left, const void *right)
{
    const operation *a = left, *b = right;
    if (a->tid != b->tid) {
        return a->tid < b->tid ? 1 : -1;
    }
    if (a->begin != b->begin) {
        return a->begin < b->begin ? -1 : 1;
    }
    if (a->end != b->end) {
        return a->end > b->end ? -1 : 1;
    }
    return a->number < b->number ? -1 : a->number > b->number;
}

static int allocation_compare(const void *left, const void *right)
{
    const allocation *a = left, *b = right;
    return a->moment != b->moment ? (a->moment < b->moment ? -1 : 1)
                                  : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

static bool begins_with(const operation *one, const char *text)
{
    const char *name = PyUnicode_AsUTF8(one->name);
    if (!name) {
        PyErr_Clear();
        return false;
    }
    return strncmp(name, text, strlen(text)) == 0;
}

/* The phase, from what lies around and from torch's own annotations. */
static int phase_of(const operation *one, const operation *around)
{
    if (begins_with(one, "autograd::engine::")) {
        return SW_PHASE_BACKWARD;
    }
    if (begins_with(one, "Optimizer.step#")) {
        return SW_PHASE_OPTIMIZER;
    }
    if (begins_with(one, "Optimizer.zero_grad#")) {
        return SW_PHASE_ZERO_GRAD;
    }
    if (begins_with(one, "enumerate(DataLoader)#")) {
        return SW_PHASE_DATA_WAIT;
    }
    if (around) {
        /* A closure that an optimizer calls runs forward and backward; its own work is not numbered. */
        return around->phase == SW_PHASE_OPTIMIZER && one->sequence >= 0
                   ? SW_PHASE_FORWARD
                   : around->phase;
    }
    if (one->flags & SW_SPAN_BACKWARD) {
        return SW_PHASE_BACKWARD;
    }
    /* Operators that autograd has numbered are those of a forward, the loss among them. */
    return one->sequence >= 0 ? SW_PHASE_FORWARD : SW_PHASE_OTHER;
}

/* Finds what lies within what on one thread, and gives each allocation to the innermost operator that was open. `stack` has
 * room for all. */
static void nest(reading *it, size_t from, size_t to, operation **stack)
{
    size_t depth = 0;
    for (size_t i = from; i < to; i++) {
        operation *one = &it->operations[i];
        while (depth && stack[depth - 1]->end <= one->begin) {
            depth--;
        }
        operation *around = depth ? stack[depth - 1] : NULL;
        one->depth = (unsigned)depth;
        one->phase = phase_of(one, around);
        if (around) {
            around->inner +=
                (one->end < around->end ? one->end : around->end) - one->begin;
        }
        stack[depth++] = one;
    }
    depth = 0;
    size_t next = from;
    for (size_t i = 0; i < it->allocation_count && to > from; i++) {
        const allocation *memory = &it->allocations[i];
        if (memory->tid != it->operations[from].tid || memory->bytes <= 0) {
            continue;
        }
        while (next < to && it->operations[next].begin <= memory->moment) {
            stack[depth++] = &it->operations[next++];
        }
        while (depth && stack[depth - 1]->end < memory->moment) {
            depth--;
        }
        if (depth) {
            stack[depth - 1]->allocated += memory->bytes;
        }
    }
}

/* {(name, shapes, phase, 0): [calls, ns without and with inner ones, bytes, flops]}, a new reference */
static PyObject *totals(const reading *it)
{
    PyObject *found = PyDict_New();
    PyObject *empty = PyUnicode_FromStringAndSize(NULL, 0);
    long long(*sums)[5] = PyMem_Calloc(it->count + 1, sizeof *sums);
    PyObject **keys = PyMem_Calloc(it->count + 1, sizeof *keys);
    Py_ssize_t rows = 0;
    bool failed = !found || !empty || !sums || !keys;
    for (size_t i = 0; i < it->count && !failed; i++) {
        const operation *one = &it->operations[i];
        PyObject *text = one->shaped ? one->text : empty;
        const bool cut = one->shaped && PyUnicode_GetLength(text) > LONGEST_SHAPES;
        text = cut ? PyUnicode_Substring(text, 0, LONGEST_SHAPES) : text;
        PyObject *key =
            text ? Py_BuildValue("(OOii)", one->name, text, one->phase, 0) : NULL;
        if (cut) {
            Py_XDECREF(text);
        }
        PyObject *row = key ? PyDict_GetItemWithError(found, key) : NULL;
        Py_ssize_t at = row ? PyLong_AsSsize_t(row) : rows;
        failed = !key || PyErr_Occurred();
        if (!row && !failed) {
            PyObject *place = PyLong_FromSsize_t(rows);
            failed = !place || PyDict_SetItem(found, key, place) != 0;
            Py_INCREF(key);
            keys[rows++] = key;
            Py_XDECREF(place);
        }
        Py_XDECREF(key);
        if (!failed) {
            const long long took = one->end - one->begin;
            sums[at][0]++;
            sums[at][1] += took > one->inner ? took - one->inner : 0;
            sums[at][2] += took;
            sums[at][3] += one->allocated;
            sums[at][4] += one->flops;
        }
    }
    for (Py_ssize_t i = 0; i < rows; i++) {
        PyObject *values = failed ? NULL
                                  : Py_BuildValue("[LLLLL]", sums[i][0], sums[i][1],
                                                  sums[i][2], sums[i][3], sums[i][4]);
        failed = !values || PyDict_SetItem(found, keys[i], values) != 0;
        Py_XDECREF(values);
        Py_DECREF(keys[i]);
    }
    PyMem_Free(sums);
    PyMem_Free(keys);
    Py_XDECREF(empty);
    if (failed) {
        if (!PyErr_Occurred()) {
            PyErr_NoMemory();
        }
        Py_CLEAR(found);
    }
    return found;
}

/* --- Into the trace ----------------------------------------------------------------- */

/* Our clock and the system's at both ends of the window. */
typedef struct clocks {
    unsigned long long begin_ticks, begin_ns, end_ticks, end_ns;
} clocks;

static uint64_t ticks_at(const clocks *at, long long ns)
{
    const __int128 length = (__int128)(at->end_ns - at->begin_ns);
    const __int128 since = (__int128)ns - (__int128)at->begin_ns;
    const __int128 ticks = since * (__int128)(at->end_ticks - at->begin_ticks);
    return (uint64_t)((__int128)at->begin_ticks + ticks / (length > 0 ? length : 1));
}

static int name_of(PyObject *text, uint32_t *id)
{
    core_text name;
    if (core_text_get(text, "name", &name) != 0) {
        return -1;
    }
    *id = sw_name(name.data, (size_t)name.length);
    core_text_release(&name);
    return 0;
}

static int call_of(const reading *it, const operation *one, const clocks *at,
                   sw_record_operator *out)
{
    out->span.head = core_operator_head(
        SW_RECORD_SPAN, sizeof *out, SW_RECORD_INTERVAL | SW_SPAN_OPERATOR | one->flags,
        ticks_at(at, one->begin));
    out->span.end = ticks_at(at, one->end);
    out->span.depth = (uint16_t)(one->depth > UINT16_MAX ? UINT16_MAX : one->depth);
    out->sequence = one->sequence < 0 ? UINT64_MAX : (uint64_t)one->sequence;
    out->forward = one->flags & SW_SPAN_BACKWARD ? it->tid : 0;
    return name_of(one->name, &out->span.head.id) != 0 ||
                   (one->text && PyUnicode_GetLength(one->text) <= LONGEST_INPUTS &&
                    name_of(one->text, &out->shapes) != 0)
               ? -1
               : 0;
}

static int put(operator_list *list)
{
    Py_BEGIN_ALLOW_THREADS(void) core_operators_put(list);
    Py_END_ALLOW_THREADS return 0;
}

static int put_operations(const reading *it, size_t from, size_t to, const clocks *at,
                          operator_record *records)
{
    char thread[64];
    operator_list list = {.thread = thread, .records = records};
    PyOS_snprintf(thread, sizeof thread, "operators of thread %u",
                  it->operations[from].tid);
    memset(records, 0, (to - from) * sizeof *records);
    for (size_t i = from; i < to; i++) {
        if (call_of(it, &it->operations[i], at, &records[list.count++].call) != 0) {
            return -1;
        }
    }
    return put(&list);
}

static int put_allocations(const reading *it, size_t most, const clocks *at,
                           operator_record *records)
{
    static const char name[] = "torch memory";
    operator_list list = {.thread = name, .records = records};
    const uint32_t id = sw_name(name, sizeof name - 1);
    for (size_t i = 0; i < it->allocation_count && i < most; i++) {
        const allocation *one = &it->allocations[i];
        sw_record_alloc *out = &records[list.count++].alloc;
        memset(out, 0, sizeof *out);
        out->head = core_operator_head(SW_RECORD_ALLOC, sizeof *out, 0,
                                       ticks_at(at, one->moment));
        out->head.id = id;
        out->bytes = one->bytes;
        out->weight = (uint64_t)(one->bytes < 0 ? -one->bytes : one->bytes);
        out->node = one->tid;
        out->allocator = 1;
        out->total = (uint64_t)one->held;
    }
    return list.count ? put(&list) : 0;
}

/* Nests, thread by thread, and puts all of it into the trace. */
static int finish(reading *it, const clocks *at)
{
    const size_t most =
        it->count > it->allocation_count ? it->count : it->allocation_count;
    operation **stack = PyMem_Calloc(it->count + 1, sizeof(operation *));
    operator_record *records = PyMem_Malloc((most + 1) * sizeof *records);
    const bool wanted = core_operators_wanted();
    size_t left = MOST_SPANS;
    int result = 0;
    if (!stack || !records) {
        PyErr_NoMemory();
        result = -1;
        goto out;
    }
    qsort(it->operations, it->count, sizeof *it->operations, operation_compare);
    qsort(it->allocations, it->allocation_count, sizeof *it->allocations,
          allocation_compare);
    for (size_t from = 0, to; from < it->count && result == 0; from = to) {
        for (to = from;
             to < it->count && it->operations[to].tid == it->operations[from].tid;) {
            to++;
        }
        nest(it, from, to, stack);
        const size_t kept = to - from < left ? to - from : left;
        left -= kept;
        if (wanted && kept) {
            result = put_operations(it, from, from + kept, at, records);
        }
    }
    if (wanted && result == 0) {
        result = put_allocations(it, left, at, records);
    }
out:
    PyMem_Free(stack);
    PyMem_Free(records);
    return result;
}

static PyObject *put_torch_events(PyObject *Py_UNUSED(module), PyObject *args)
{
    reading it = {0};
    clocks at;
    PyObject *threads, *result = NULL;
    if (!PyArg_ParseTuple(args, "O!I(KK)(KK):put_torch_events", &PyList_Type, &threads,
                          &it.tid, &at.begin_ticks, &at.begin_ns, &at.end_ticks,
                          &at.end_ns)) {
        return NULL;
    }
    it.end_ns = (long long)at.end_ns;
    const int found = find_start(&it, threads);
    bool failed = found < 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(threads) && !failed && !found; i++) {
        failed = read_thread(&it, PyList_GET_ITEM(threads, i)) != 0;
    }
    if (!failed && finish(&it, &at) == 0) {
        result = totals(&it);
    }
    for (size_t i = 0; i < it.count; i++) {
        Py_XDECREF(it.operations[i].name);
        Py_XDECREF(it.operations[i].text);
    }
    for (int i = 0; i < METHODS; i++) {
        Py_XDECREF(it.methods[i]);
    }
    PyMem_Free(it.operations);
    PyMem_Free(it.allocations);
    PyMem_Free(it.open);
    return result;
}

static PyMethodDef torch_events_methods[] = {
    {"put_torch_events", put_torch_events, METH_VARARGS,
     PyDoc_STR(
         "put_torch_events(threads, tid, begin, end, /)\n--\n\n"
         "Put what torch's plain profiler saw into the trace, and return its totals:\n"
         "{(name, shapes, phase, 0): [calls, ns without and with inner ones, bytes, "
         "flops]}.\n\ntid is the thread that opened it; begin and end are our clock "
         "and the system's at both ends.")},
    {NULL, NULL, 0, NULL},
};

int core_torch_events_add(PyObject *module)
{
    return PyModule_AddFunctions(module, torch_events_methods);
}
