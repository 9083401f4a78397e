/* Where a program waits for results that are still being computed: which call, in which line of the user's, how long.
 *
 * A wait within another one, as reading an array waits for it, belongs to the outer one. Arrays in main memory give their
 * bytes by the buffer protocol, which no Python function sees: there the pointer of the type leads here. */
#include "section.h"
#include "ticks.h"
#include "user_code.h"
#include <stepwatch/stepwatch.h>
#include <string.h>

enum { PLACES = 512, KIND_SYNC = 1, KIND_H2D = 2 };

/* One row of the WAIT table. The name and the code object are references, so that their addresses stay theirs. */
typedef struct wait_place {
    PyObject *name; /* NULL: free */
    PyCodeObject *code;
    int line;
    uint32_t recording;
    uint32_t kind;
    uint64_t row, due; /* when it is next put into the trace */
    uint32_t name_id, file_id;
    uint64_t calls, ticks, bytes, most;
} wait_place;

static wait_place places[PLACES]; /* with the GIL */
static size_t place_count;
static sw_section *sync_section;
static sw_section *h2d_section;
static PyObject *buffer_name;

/* The type whose buffers are watched, and what gave them. */
static PyTypeObject *buffer_type;
static getbufferproc buffer_get;

/* The wait that is open on this thread; NULL: none is. */
CORE_THREAD_LOCAL wait_place *waiting;

/* --- Places -------------------------------------------------------------------------------------- */

static uint32_t name_id(PyObject *text)
{
    Py_ssize_t length = 0;
    const char *data = text ? PyUnicode_AsUTF8AndSize(text, &length) : NULL;
    if (!data) {
        PyErr_Clear();
        return 0;
    }
    return sw_name(data, (size_t)length);
}

/* The place of this call and line; the last one serves all when there are too many. */
static wait_place *place_get(PyObject *name, PyCodeObject *code, int line)
{
    size_t at = ((size_t)(uintptr_t)name >> 4) * 31 +
                ((size_t)(uintptr_t)code >> 4) * 17 + (size_t)line;
    at %= PLACES - 1;
    while (places[at].name && (places[at].name != name || places[at].code != code ||
                               places[at].line != line)) {
        at = (at + 1) % (PLACES - 1);
    }
    wait_place *place = &places[at];
    if (!place->name) {
        if (place_count > PLACES / 4 * 3) {
            place = &places[PLACES - 1];
            code = NULL;
            line = 0;
        }
        if (!place->name) {
            place_count++;
            Py_INCREF(name);
            Py_XINCREF(code);
            place->name = name;
            place->code = code;
            place->line = line;
        }
    }
    const uint32_t recording = sw_recording_number();
    if (place->recording != recording) {
        place->recording = recording;
        place->row = place->due = 0;
        place->calls = place->ticks = place->bytes = place->most = 0;
        place->name_id = name_id(place->name);
        place->file_id = place->code ? name_id(place->code->co_filename) : 0;
    }
    return place;
}

static void place_put(wait_place *place)
{
    sw_row row = {
        .table = SW_TABLE_WAIT,
        .key = {place->name_id, place->file_id, (uint32_t)place->line, place->kind},
        .value = {place->calls, place->ticks, place->bytes, place->most, 0},
    };
    place->row = sw_row_put(place->row, &row);
}

/* Adds a wait. A row takes a lock, and so it is put now and then, and when the recording ends. */
static void place_add(wait_place *place, uint32_t kind, uint64_t begin, uint64_t end,
                      uint64_t bytes)
{
    const uint64_t ticks = end - begin;
    place->kind = kind;
    place->calls++;
    place->ticks += ticks;
    place->bytes += bytes;
    place->most = ticks > place->most ? ticks : place->most;
    if (end >= place->due) {
        place_put(place);
        place->due = core_ticks_due(end, core_ticks());
    }
}

void core_jit_waits_flush(void)
{
    const uint32_t recording = sw_recording_number();
    for (size_t i = 0; i < PLACES; i++) {
        wait_place *place = &places[i];
        if (place->name && place->recording == recording && place->calls) {
            place_put(place);
        }
    }
}

static void record_put(const wait_place *place, uint32_t kind, uint64_t begin,
                       uint64_t end, uint64_t bytes)
{
    const sw_record head = {
        .flags = SW_RECORD_INTERVAL, .id = place->name_id, .ticks = begin};
    if (kind == KIND_SYNC) {
        sw_record_sync record = {.head = head,
                                 .end = end,
                                 .file = place->file_id,
                                 .line = (uint32_t)place->line};
        record.head.kind = SW_RECORD_SYNC;
        record.head.units = sizeof record / SW_RECORD_UNIT;
        sw_record_put(&record.head);
        return;
    }
    sw_record_xfer record = {.head = head,
                             .end = end,
                             .bytes = bytes,
                             .direction = 1,
                             .pinned = 2,
                             .file = place->file_id,
                             .line = (uint32_t)place->line};
    record.head.kind = SW_RECORD_XFER;
    record.head.units = sizeof record / SW_RECORD_UNIT;
    sw_record_put(&record.head);
}

/* --- A wait --------------------------------------------------------------------------------------- */

/* Opens it, in the line of the user's that runs: while the result is still being computed there is time to look for that. 0: it is
 * within another one, or nothing is recorded, and needs no end. */
static uint64_t wait_open(sw_section *section, PyObject *name)
{
    if (!SW_GATE(section) || waiting) {
        return 0;
    }
    core_user_site site = {.code = NULL, .line = 0};
    const bool found = core_user_site_find(&site);
    waiting = place_get(name, found ? site.code : NULL, found ? site.line : 0);
    if (found) {
        Py_DECREF(site.code);
    }
    sw_section_enter(section);
    return sw_now();
}

static void wait_close(uint64_t begin, uint32_t kind, uint64_t bytes)
{
    const uint64_t end = sw_now();
    wait_place *place = waiting;
    waiting = NULL;
    sw_end(kind == KIND_H2D ? h2d_section : sync_section);
    /* Another recording may have begun. */
    if (place && place->recording == sw_recording_number()) {
        place_add(place, kind, begin, end, bytes);
        record_put(place, kind, begin, end, bytes);
    }
}

static PyObject *wait_begin(PyObject *name, sw_section *section)
{
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "a name is expected");
        return NULL;
    }
    return PyLong_FromUnsignedLongLong(wait_open(section, name));
}

static PyObject *jit_wait_begin(PyObject *Py_UNUSED(module), PyObject *name)
{
    return wait_begin(name, sync_section);
}

static PyObject *jit_put_begin(PyObject *Py_UNUSED(module), PyObject *name)
{
    return wait_begin(name, h2d_section);
}

static PyObject *wait_end(PyObject *const *args, Py_ssize_t count, uint32_t kind)
{
    if (count < 1 || count > 2) {
        PyErr_SetString(PyExc_TypeError, "a begin and perhaps bytes are expected");
        return NULL;
    }
    const uint64_t begin = PyLong_AsUnsignedLongLongMask(args[0]);
    const uint64_t bytes = count > 1 ? PyLong_AsUnsignedLongLongMask(args[1]) : 0;
    if (PyErr_Occurred()) {
        waiting = NULL;
        return NULL;
    }
    if (begin) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        wait_close(begin, kind, bytes);
        PyErr_Restore(type, value, trace);
    }
    Py_RETURN_NONE;
}

static PyObject *jit_wait_end(PyObject *Py_UNUSED(module), PyObject *const *args,
                              Py_ssize_t count)
{
    return wait_end(args, count, KIND_SYNC);
}

static PyObject *jit_put_end(PyObject *Py_UNUSED(module), PyObject *const *args,
                             Py_ssize_t count)
{
    return wait_end(args, count, KIND_H2D);
}

/* --- Buffers --------------------------------------------------------------------------------------- */

static int buffer_get_recorded(PyObject *object, Py_buffer *view, int flags)
{
    getbufferproc get = buffer_get;
    const uint64_t begin = wait_open(sync_section, buffer_name);
    const int result = get(object, view, flags);
    if (begin) {
        PyObject *type, *value, *trace;
        PyErr_Fetch(&type, &value, &trace);
        wait_close(begin, KIND_SYNC, 0);
        PyErr_Restore(type, value, trace);
    }
    return result;
}

static void buffer_unwatch(void)
{
    if (buffer_type && buffer_type->tp_as_buffer->bf_getbuffer == buffer_get_recorded) {
        buffer_type->tp_as_buffer->bf_getbuffer = buffer_get;
    }
}

static PyObject *jit_watch_buffers(PyObject *Py_UNUSED(module), PyObject *object)
{
    if (object == Py_None) {
        buffer_unwatch();
        Py_RETURN_TRUE;
    }
    if (!PyType_Check(object) ||
        !PyType_HasFeature((PyTypeObject *)object, Py_TPFLAGS_HEAPTYPE)) {
        Py_RETURN_FALSE;
    }
    PyBufferProcs *procedures = ((PyTypeObject *)object)->tp_as_buffer;
    if (!procedures || !procedures->bf_getbuffer ||
        (buffer_type && buffer_type != (PyTypeObject *)object)) {
        Py_RETURN_FALSE;
    }
    if (procedures->bf_getbuffer != buffer_get_recorded) {
        if (!buffer_type) {
            Py_INCREF(
                object); /* The pointer outlives a removal: a call may be under way. */
            buffer_type = (PyTypeObject *)object;
        }
        buffer_get = procedures->bf_getbuffer;
        procedures->bf_getbuffer = buffer_get_recorded;
    }
    Py_RETURN_TRUE;
}

#define FAST(function) (PyCFunction)(void (*)(void)) function

static PyMethodDef wait_methods[] = {
    {"jit_wait_begin", jit_wait_begin, METH_O,
     PyDoc_STR("jit_wait_begin(name, /)\n--\n\n"
               "The program begins to wait for a result; 0: it does already.")},
    {"jit_wait_end", FAST(jit_wait_end), METH_FASTCALL,
     PyDoc_STR("jit_wait_end(begin, bytes=0, /)\n--\n\nThe result is there.")},
    {"jit_put_begin", jit_put_begin, METH_O,
     PyDoc_STR("jit_put_begin(name, /)\n--\n\n"
               "The program begins to copy to a device; 0: it does already.")},
    {"jit_put_end", FAST(jit_put_end), METH_FASTCALL,
     PyDoc_STR("jit_put_end(begin, bytes=0, /)\n--\n\nThe copy was made.")},
    {"jit_watch_buffers", jit_watch_buffers, METH_O,
     PyDoc_STR("Who takes a buffer of this type waits; None: not any more.")},
    {NULL, NULL, 0, NULL},
};

int core_jit_waits_add(PyObject *module)
{
    sync_section = sw_section_get_n("sync", 4, SW_PHASE_SYNC);
    h2d_section = sw_section_get_n("h2d", 3, SW_PHASE_H2D);
    if (!buffer_name && core_in_main_interpreter()) {
        buffer_name = PyUnicode_InternFromString("numpy.asarray(Array)");
        if (!buffer_name) {
            return -1;
        }
    }
    return PyModule_AddFunctions(module, wait_methods);
}
