/* What other files know of charts. */
#ifndef STEPWATCH_EXT_CHARTS_H
#define STEPWATCH_EXT_CHARTS_H

#include <stepwatch/chart.h>

#include "core.h"

/* A Chart object that takes ownership of `chart`, also when it fails. NULL with an exception. */
PyObject *core_chart_of(core_state *state, sw_chart *chart);
/* A new reference to the bytes of its PNG file; NULL with an exception, or without one where `object` is no chart. */
PyObject *core_chart_png(core_state *state, PyObject *object);

#endif
