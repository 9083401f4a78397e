/* Exceptions of our own calls, which are no business of the program's. */
#include "core.h"

void core_error_forget(void)
{
    if (!PyErr_Occurred()) {
        return;
    }
    const int stops = PyErr_ExceptionMatches(PyExc_KeyboardInterrupt);
    PyErr_Clear();
    if (stops) {
        PyErr_SetInterrupt();
    }
}
