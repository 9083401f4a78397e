/* What a framework's own profiler saw, put into the trace afterwards.
 *
 * Records of a thread lie in the order of their ends, so what comes late cannot join those of the thread that did the work.
 * Each of its threads, and each stream of a device, gets a thread of its own in the trace, made for the purpose and gone
 * when it has written. */
#include "operators.h"
#include <pthread.h>
#include <stdlib.h>
#include <stepwatch/schedule.h>
#include <string.h>

static sw_section *gate;

/* The number of a name; -1 with an exception set. */
static int name_get(PyObject *name, uint32_t *id)
{
    core_text text;
    if (core_text_get(name, "name", &text) != 0) {
        return -1;
    }
    *id = sw_name(text.data, (size_t)text.length);
    core_text_release(&text);
    return 0;
}

/* None is no name. */
static int name_get_optional(PyObject *name, uint32_t *id)
{
    *id = 0;
    return name == Py_None ? 0 : name_get(name, id);
}

sw_record core_operator_head(unsigned kind, size_t size, unsigned flags,
                             unsigned long long ticks)
{
    return (sw_record){.kind = (uint8_t)kind,
                       .units = (uint8_t)(size / SW_RECORD_UNIT),
                       .flags = (uint16_t)flags,
                       .ticks = ticks};
}

/* (name, begin, end, depth, flags, external, sequence, correlation, forward, shapes, types) */
static int call_get(PyObject *item, sw_record_operator *out)
{
    PyObject *name, *shapes, *types;
    unsigned long long begin, end, external;
    long long sequence;
    unsigned depth, flags, correlation, forward;
    if (!PyArg_ParseTuple(item, "UKKIIKLIIOO", &name, &begin, &end, &depth, &flags,
                          &external, &sequence, &correlation, &forward, &shapes,
                          &types)) {
        return -1;
    }
    const unsigned known = SW_SPAN_BACKWARD | SW_SPAN_ANNOTATION | SW_SPAN_RUNTIME;
    out->span.head = core_operator_head(
        SW_RECORD_SPAN, sizeof *out,
        SW_RECORD_INTERVAL | SW_SPAN_OPERATOR | (flags & known), begin);
    out->span.end = end;
    out->span.depth = (uint16_t)(depth > UINT16_MAX ? UINT16_MAX : depth);
    out->external = external;
    out->sequence = sequence < 0 ? UINT64_MAX : (uint64_t)sequence;
    out->correlation = correlation;
    out->forward = forward;
    return name_get(name, &out->span.head.id) != 0 ||
                   name_get_optional(shapes, &out->shapes) != 0 ||
                   name_get_optional(types, &out->types) != 0
               ? -1
               : 0;
}

/* (name, begin, end, bytes, device, stream, activity, correlation, external) */
static int gpu_get(PyObject *item, sw_record_gpu *out)
{
    PyObject *name;
    unsigned long long begin, end, bytes, external;
    unsigned device, stream, activity, correlation;
    if (!PyArg_ParseTuple(item, "UKKKIIIIK", &name, &begin, &end, &bytes, &device,
                          &stream, &activity, &correlation, &external)) {
        return -1;
    }
    out->head = core_operator_head(SW_RECORD_GPU, sizeof *out, SW_RECORD_INTERVAL, begin);
    out->end = end;
    out->bytes = bytes;
    out->device = device;
    out->stream = stream;
    out->activity = activity;
    out->correlation = correlation;
    out->external = external;
    return name_get(name, &out->head.id);
}

/* (name, moment, bytes, address, total, reserved, allocator, tid) */
static int alloc_get(PyObject *item, sw_record_alloc *out)
{
    PyObject *name;
    unsigned long long moment, address, total, reserved;
    long long bytes;
    unsigned allocator, tid;
    if (!PyArg_ParseTuple(item, "UKLKKKII", &name, &moment, &bytes, &address, &total,
                          &reserved, &allocator, &tid)) {
        return -1;
    }
    out->head = core_operator_head(SW_RECORD_ALLOC, sizeof *out, 0, moment);
    out->bytes = bytes;
    out->address = address;
    out->weight = (uint64_t)(bytes < 0 ? -bytes : bytes);
    out->node = tid;
    out->allocator = allocator;
    out->total = total;
    out->reserved = reserved;
    return name_get(name, &out->head.id);
}

static int operator_get(PyObject *item, operator_record *out)
{
    memset(out, 0, sizeof *out);
    switch (PyTuple_Check(item) ? PyTuple_GET_SIZE(item) : 0) {
    case 8:
        return alloc_get(item, &out->alloc);
    case 9:
        return gpu_get(item, &out->gpu);
    case 11:
        return call_get(item, &out->call);
    default:
        PyErr_SetString(PyExc_TypeError, "an operator is a tuple of 8, 9 or 11");
        return -1;
    }
}

static uint64_t operator_end(const operator_record *record)
{
    return record->head.kind == SW_RECORD_ALLOC  ? record->head.ticks
           : record->head.kind == SW_RECORD_SPAN ? record->call.span.end
                                                 : record->gpu.end;
}

static int operator_compare(const void *one, const void *other)
{
    const uint64_t a = operator_end(one), b = operator_end(other);
    return (a > b) - (a < b);
}

static void *operators_write(void *argument)
{
    const operator_list *list = argument;
    sw_thread_stand_for(list->thread);
    for (size_t i = 0; i < list->count; i++) {
        sw_record_put_past(&list->records[i].head);
    }
    return NULL;
}

bool core_operators_wanted(void)
{
    return SW_GATE(gate);
}

bool core_operators_put(operator_list *list)
{
    pthread_t thread;
    qsort(list->records, list->count, sizeof *list->records, operator_compare);
    if (pthread_create(&thread, NULL, operators_write, list) != 0) {
        return false;
    }
    pthread_join(thread, NULL);
    return true;
}

static PyObject *put_operators(PyObject *Py_UNUSED(module), PyObject *args)
{
    operator_list list = {0};
    PyObject *items;
    if (!PyArg_ParseTuple(args, "sO!:put_operators", &list.thread, &PyList_Type,
                          &items)) {
        return NULL;
    }
    const size_t count = (size_t)PyList_GET_SIZE(items);
    if (!SW_GATE(gate) || count == 0) {
        return PyLong_FromLong(0);
    }
    list.records = PyMem_RawMalloc(count * sizeof *list.records);
    if (!list.records) {
        return PyErr_NoMemory();
    }
    for (size_t i = 0; i < count; i++) {
        if (operator_get(PyList_GET_ITEM(items, (Py_ssize_t)i), &list.records[i]) != 0) {
            PyMem_RawFree(list.records);
            return NULL;
        }
    }
    list.count = count;
    bool done;
    Py_BEGIN_ALLOW_THREADS done = core_operators_put(&list);
    Py_END_ALLOW_THREADS PyMem_RawFree(list.records);
    return PyLong_FromSize_t(done ? count : 0);
}

/* 0, or -1 with an exception set. */
static int schedule_get(PyObject *args, const char *format, sw_schedule *schedule,
                        unsigned long long *step)
{
    const char *text;
    sw_error_info info = {0};
    if (!PyArg_ParseTuple(args, format, &text, step)) {
        return -1;
    }
    if (sw_schedule_parse(schedule, text, &info) != 0) {
        PyErr_SetString(PyExc_ValueError, info.message);
        return -1;
    }
    return 0;
}

static PyObject *schedule_action(PyObject *Py_UNUSED(module), PyObject *args)
{
    sw_schedule schedule;
    unsigned long long step;
    if (schedule_get(args, "sK:schedule_action", &schedule, &step) != 0) {
        return NULL;
    }
    return PyLong_FromLong((long)sw_schedule_action(&schedule, step));
}

/* A schedule may have none: then who asks is to ask again, which costs a microsecond in a thousand steps. */
static PyObject *schedule_next(PyObject *Py_UNUSED(module), PyObject *args)
{
    enum { FAR_AHEAD = 1000 };
    sw_schedule schedule;
    unsigned long long step;
    if (schedule_get(args, "sK:schedule_next", &schedule, &step) != 0) {
        return NULL;
    }
    for (int i = 0; i < FAR_AHEAD; i++) {
        if (sw_schedule_action(&schedule, ++step) >= SW_ACTION_RECORD) {
            break;
        }
    }
    return PyLong_FromUnsignedLongLong(step);
}

static PyMethodDef operators_methods[] = {
    {"put_operators", put_operators, METH_VARARGS,
     PyDoc_STR(
         "put_operators(thread, operators, /)\n--\n\n"
         "Put what a framework's profiler saw into the trace under a thread of that "
         "name; "
         "return how\nmany. An operator is (name, begin, end, depth, flags, external, "
         "sequence, correlation,\nforward, shapes, types), a device's work (name, begin, "
         "end, bytes, device, stream, activity,\ncorrelation, external), an allocation "
         "(name, moment, bytes, address, total, reserved,\nallocator, tid).")},
    {"schedule_action", schedule_action, METH_VARARGS,
     PyDoc_STR(
         "schedule_action(schedule, step, /)\n--\n\n"
         "What a schedule says of a step: 0 nothing, 1 warm up, 2 record, 3 record the "
         "last of a cycle.")},
    {"schedule_next", schedule_next, METH_VARARGS,
     PyDoc_STR("schedule_next(schedule, step, /)\n--\n\n"
               "The first step after this one that the schedule records, or one far "
               "ahead before which it records none.")},
    {NULL, NULL, 0, NULL},
};

int core_operators_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    return PyModule_AddFunctions(module, operators_methods);
}
