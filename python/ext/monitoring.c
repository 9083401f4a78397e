#include "monitoring.h"

PyObject *core_monitoring(void)
{
    PyObject *monitoring = PySys_GetObject("monitoring"); /* borrowed */
    if (!monitoring) {
        PyErr_SetString(PyExc_RuntimeError, "this Python has no sys.monitoring");
    }
    return monitoring;
}

long core_monitoring_event(PyObject *monitoring, const char *name)
{
    PyObject *events = PyObject_GetAttrString(monitoring, "events");
    PyObject *number = events ? PyObject_GetAttrString(events, name) : NULL;
    const long event = number ? PyLong_AsLong(number) : -1;
    Py_XDECREF(events);
    Py_XDECREF(number);
    return event;
}

/* 1 taken, 0 somebody has it, who is added to `*holders`, -1 with an exception set. */
static int take(PyObject *monitoring, int id, const char *tool, PyObject **holders)
{
    PyObject *holder = PyObject_CallMethod(monitoring, "get_tool", "i", id);
    if (holder == Py_None) {
        Py_DECREF(holder);
        PyObject *done = PyObject_CallMethod(monitoring, "use_tool_id", "is", id, tool);
        if (done) {
            Py_DECREF(done);
            return 1;
        }
        PyErr_Clear(); /* Another thread was faster. */
        holder = PyObject_CallMethod(monitoring, "get_tool", "i", id);
    }
    if (!holder) {
        return -1;
    }
    PyObject *longer = *holders
                           ? PyUnicode_FromFormat("%U, %d by %S", *holders, id, holder)
                           : PyUnicode_FromFormat("%d by %S", id, holder);
    Py_DECREF(holder);
    Py_XSETREF(*holders, longer);
    return longer ? 0 : -1;
}

int core_monitoring_take(PyObject *monitoring, const char *tool, const char *who)
{
    /* cProfile and those who imitate it (torch's compile profiler among them) know only id 2 and fail when it is taken,
     * coverage knows 1, debuggers know 0; nobody asks for 3, 4 or 5 by number. So what the program starts while it is
     * profiled goes on working. An id that is taken is never taken away. */
    static const int wishes[] = {3, 4, 5, 2, 1, 0};
    PyObject *holders = NULL;
    int taken = 0;
    int id = -1;
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0] && taken == 0; i++) {
        taken = take(monitoring, wishes[i], tool, &holders);
        id = wishes[i];
    }
    if (taken == 0) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s needs a tool id of sys.monitoring and none is free: %U", who,
                     holders);
    }
    Py_XDECREF(holders);
    return taken == 1 ? id : -1;
}
