/* Pauses of Python's garbage collector: what gc.callbacks calls.
 *
 * It is called on the thread that collects, whichever that is, before and after. A collection that had begun before the
 * recording did has no beginning here and is left out. */
#include "core.h"
#include <stepwatch/stepwatch.h>

static sw_section *section;

/* Of the collection that runs on this thread. */
static _Thread_local uint64_t began;
static _Thread_local uint32_t began_in; /* the recording */

static uint32_t number_of(PyObject *info, const char *key)
{
    PyObject *value = PyDict_Check(info) ? PyDict_GetItemString(info, key) : NULL;
    const unsigned long number = value ? PyLong_AsUnsignedLong(value) : 0;
    if (PyErr_Occurred()) {
        PyErr_Clear();
        return 0;
    }
    return number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
}

static void collection_ended(PyObject *info)
{
    const uint64_t begin = began;
    began = 0;
    if (!begin || began_in != sw_recording_number()) {
        return;
    }
    sw_end(section);
    const sw_record_gc record = {.head = {.kind = SW_RECORD_GC,
                                          .units = sizeof record / SW_RECORD_UNIT,
                                          .flags = SW_RECORD_INTERVAL,
                                          .ticks = begin},
                                 .end = sw_now(),
                                 .generation = number_of(info, "generation"),
                                 .collected = number_of(info, "collected")};
    sw_record_put(&record.head);
}

static PyObject *collector(PyObject *Py_UNUSED(module), PyObject *const *args,
                           Py_ssize_t count)
{
    if (count == 2 && SW_GATE(section) && PyUnicode_Check(args[0])) {
        if (PyUnicode_CompareWithASCIIString(args[0], "start") == 0) {
            began = sw_now();
            began_in = sw_recording_number();
            sw_begin(section);
        } else if (PyUnicode_CompareWithASCIIString(args[0], "stop") == 0) {
            collection_ended(args[1]);
        }
    }
    Py_RETURN_NONE;
}

static PyMethodDef collector_methods[] = {
    {"collector", (PyCFunction)(void (*)(void))collector, METH_FASTCALL,
     PyDoc_STR("collector(phase, info, /)\n--\n\nFor gc.callbacks.")},
    {NULL, NULL, 0, NULL},
};

int core_collector_add(PyObject *module)
{
    section = sw_section_get_n("gc", 2, SW_PHASE_GC);
    return PyModule_AddFunctions(module, collector_methods);
}
