/* What a framework's own profiler saw, put into the trace afterwards.
 *
 * Records of a thread lie in the order of their ends, so what comes late cannot join those of the thread that did the work.
 * Each of its threads, and each stream of a device, gets a thread of its own in the trace, made for the purpose and gone
 * when it has written. */
#include "core.h"
#include <pthread.h>
#include <stdlib.h>
#include <stepwatch/schedule.h>
#include <stepwatch/stepwatch.h>
#include <string.h>

typedef union operator_record {
    sw_record head;
    sw_record_span span;
    sw_record_gpu gpu;
    sw_record_counter counter;
} operator_record;

typedef struct operator_list {
    const char *thread;
    operator_record *records;
    size_t count;
} operator_list;

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

/* (name, moment, value) of something that is counted. */
static int counter_get(PyObject *item, operator_record *out)
{
    PyObject *name;
    unsigned long long moment;
    double value;
    uint32_t id;
    if (!PyArg_ParseTuple(item, "UKd", &name, &moment, &value) ||
        name_get(name, &id) != 0) {
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->counter.head = (sw_record){.kind = SW_RECORD_COUNTER,
                                    .units = sizeof out->counter / SW_RECORD_UNIT,
                                    .id = id,
                                    .ticks = moment};
    out->counter.value = value;
    return 0;
}

/* (name, begin, end, depth) of an operator; (name, begin, end, bytes, device, stream, activity) of work of a device. */
static int operator_get(PyObject *item, operator_record *out)
{
    PyObject *name;
    unsigned long long begin, end, bytes = 0;
    unsigned depth = 0, device = 0, stream = 0, activity = 0;
    uint32_t id;
    const Py_ssize_t size = PyTuple_Check(item) ? PyTuple_GET_SIZE(item) : 0;
    if (size == 3) {
        return counter_get(item, out);
    }
    if (size != 4 && size != 7) {
        PyErr_SetString(PyExc_TypeError, "an operator is a tuple of 3, 4 or 7");
        return -1;
    }
    if (size == 4 ? !PyArg_ParseTuple(item, "UKKI", &name, &begin, &end, &depth)
                  : !PyArg_ParseTuple(item, "UKKKIII", &name, &begin, &end, &bytes,
                                      &device, &stream, &activity)) {
        return -1;
    }
    if (name_get(name, &id) != 0) {
        return -1;
    }
    memset(out, 0, sizeof *out);
    out->head =
        (sw_record){.kind = size == 4 ? SW_RECORD_SPAN : SW_RECORD_GPU,
                    .units = (uint8_t)((size == 4 ? sizeof out->span : sizeof out->gpu) /
                                       SW_RECORD_UNIT),
                    .flags = SW_RECORD_INTERVAL,
                    .id = id,
                    .ticks = begin};
    if (size == 4) {
        out->span.end = end;
        out->span.depth = (uint16_t)(depth > UINT16_MAX ? UINT16_MAX : depth);
    } else {
        out->gpu.end = end;
        out->gpu.bytes = bytes;
        out->gpu.device = device;
        out->gpu.stream = stream;
        out->gpu.activity = activity;
    }
    return 0;
}

static uint64_t operator_end(const operator_record *record)
{
    return record->head.kind == SW_RECORD_COUNTER ? record->head.ticks
           : record->head.kind == SW_RECORD_SPAN  ? record->span.end
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
    sw_thread_name(list->thread);
    for (size_t i = 0; i < list->count; i++) {
        sw_record_put_past(&list->records[i].head);
    }
    return NULL;
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
    int failed;
    Py_BEGIN_ALLOW_THREADS qsort(list.records, count, sizeof *list.records,
                                 operator_compare);
    pthread_t thread;
    failed = pthread_create(&thread, NULL, operators_write, &list);
    if (!failed) {
        pthread_join(thread, NULL);
    }
    Py_END_ALLOW_THREADS PyMem_RawFree(list.records);
    return PyLong_FromSize_t(failed ? 0 : count);
}

static PyObject *schedule_action(PyObject *Py_UNUSED(module), PyObject *args)
{
    const char *text;
    unsigned long long step;
    if (!PyArg_ParseTuple(args, "sK:schedule_action", &text, &step)) {
        return NULL;
    }
    sw_schedule schedule;
    sw_error_info info = {0};
    if (sw_schedule_parse(&schedule, text, &info) != 0) {
        PyErr_SetString(PyExc_ValueError, info.message);
        return NULL;
    }
    return PyLong_FromLong((long)sw_schedule_action(&schedule, step));
}

static PyMethodDef operators_methods[] = {
    {"put_operators", put_operators, METH_VARARGS,
     PyDoc_STR(
         "put_operators(thread, operators, /)\n--\n\n"
         "Put (name, begin, end, depth) of operators, (name, begin, end, bytes, "
         "device, stream,\nactivity) of a device's work, or (name, moment, value) of "
         "something counted,\ninto the trace under a thread of that name; return how "
         "many.")},
    {"schedule_action", schedule_action, METH_VARARGS,
     PyDoc_STR(
         "schedule_action(schedule, step, /)\n--\n\n"
         "What a schedule says of a step: 0 nothing, 1 warm up, 2 record, 3 record the "
         "last of a cycle.")},
    {NULL, NULL, 0, NULL},
};

int core_operators_add(PyObject *module)
{
    gate = sw_section_get_n("", 0, SW_PHASE_INHERIT);
    return PyModule_AddFunctions(module, operators_methods);
}
