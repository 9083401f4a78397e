/* sys.monitoring, as the profilers use it since 3.12. */
#ifndef STEPWATCH_EXT_MONITORING_H
#define STEPWATCH_EXT_MONITORING_H

#include "core.h"

/* The module, borrowed; NULL with an exception set. */
PyObject *core_monitoring(void);
/* The number of an event by its name, or -1 with an exception set. */
long core_monitoring_event(PyObject *monitoring, const char *name);
/* Takes a free tool id under the name `tool`. -1 with an exception set: where none is free, it says who has them and that
 * `who` needs one. */
int core_monitoring_take(PyObject *monitoring, const char *tool, const char *who);

#endif
