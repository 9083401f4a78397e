/* stepwatch.profile: a function that runs as a section. */
#include "core.h"

int core_decorator_add(PyObject *module)
{
    (void)module;
    return 0;
}
