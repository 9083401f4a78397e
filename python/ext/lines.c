/* stepwatch.lines: the line profiler. */
#include "core.h"

int core_lines_add(PyObject *module)
{
    (void)module;
    return 0;
}
