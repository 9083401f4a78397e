/* GPUs as a source of the monitor: series "gpu.0.power_w", rows that say what the devices are. */
#ifndef SW_WATCH_SOURCE_GPU_H
#define SW_WATCH_SOURCE_GPU_H

#include "record/watchers.h"

/* Stops the thread of the source for forks; what else there is to do, the monitor does. */
extern const struct sw__watcher sw__gpu_watcher;

#endif
