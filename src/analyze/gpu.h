/* GPUs while they are put together. */
#ifndef SW_ANALYZE_GPU_H
#define SW_ANALYZE_GPU_H

#include <stepwatch/gpu.h>

#include "analyze/monitor.h"

struct sw_gpus {
    sw_gpu *list;
    size_t count, room;
    const char *why;
};

/* Fills looks, reasons and clocks of a device from what its monitor saw. 0 or SW_ENOMEM. */
int sw__gpu_reasons(sw_gpu *gpu, const sw_monitor *monitor);

#endif
