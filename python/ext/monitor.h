/* The monitor. */
#ifndef STEPWATCH_EXT_MONITOR_H
#define STEPWATCH_EXT_MONITOR_H

#include "core.h"

/* A recording began: from now on the monitor comes back after forks. */
void core_monitor_began(void);

#endif
