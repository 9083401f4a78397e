/* Keyword arguments as a configuration of the recorder. */
#ifndef STEPWATCH_EXT_OPTIONS_H
#define STEPWATCH_EXT_OPTIONS_H

#include "core.h"
#include <stepwatch/stepwatch.h>

typedef struct core_options {
    sw_config config;
    PyObject *alive;      /* owns the texts */
    const char **set;     /* config.set points here */
    const char **presets; /* … and config.presets here */
} core_options;

/* 0, or -1 with TypeError (no such option, wrong type) or ValueError. Free it in both cases. */
int core_options_read(core_options *options, PyObject *kwargs);
void core_options_free(core_options *options);

#endif
