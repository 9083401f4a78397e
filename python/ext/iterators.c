/* stepwatch.steps, stepwatch.data and stepwatch.step. */
#include "core.h"

int core_iterators_add(PyObject *module)
{
    (void)module;
    return 0;
}
