/* stepwatch.functions: the function profiler. */
#include "core.h"

int core_functions_add(PyObject *module)
{
    (void)module;
    return 0;
}
