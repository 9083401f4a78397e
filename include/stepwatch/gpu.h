/* The GPUs of a run, as the monitor saw them: what they are, how they did, and what held them back. */
#ifndef STEPWATCH_GPU_H
#define STEPWATCH_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/monitor.h>
#include <stepwatch/records.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How often a reason for reduced clocks held, when the monitor looked. NaN: not known. */
typedef struct sw_gpu_reason_stats {
    double share; /* of all looks */
    double steps; /* of those within steps */
    double steps_low,
        steps_high; /* interval of 95 %, which respects that neighbouring looks are alike */
    double sm_clock_mhz; /* mean clock within steps while it held */
} sw_gpu_reason_stats;

/* A GPU, or a part of one. Numbers that are not known are NaN, or SW_UNKNOWN (UINT64_MAX); texts NULL. */
typedef struct sw_gpu {
    uint32_t pid; /* of the process that watched it */
    uint32_t
        device; /* its number in that process, by which series are named: "gpu.0.power_w" */
    uint32_t index;   /* NVML's number; of a part, that within its device */
    uint32_t part_of; /* number of the device that it is a part of; UINT32_MAX: none */
    bool divided;     /* into parts */
    bool activity;    /* it counts what its multiprocessors do (GPM) */
    int visible;      /* to the program: 1, 0; -1 unknown */
    const char *name, *uuid, *driver;
    uint64_t memory_bytes;
    double sm_clock_most_mhz, memory_clock_most_mhz;
    double power_limit_w, power_default_w;
    double slowdown_c,
        most_c; /* temperatures at which hardware and driver reduce clocks */
    const sw_monitor_series *series[SW_GPU_VALUES]; /* NULL: it has none */
    const char *missing[SW_GPU_VALUES];             /* why; NULL: nothing is said */
    uint64_t looks, step_looks; /* at which the reasons for reduced clocks were known */
    sw_gpu_reason_stats reason[SW_GPU_REASONS];
    sw_gpu_reason_stats power;   /* a cap or a brake on power, in software or hardware */
    sw_gpu_reason_stats heat;    /* heat, likewise */
    sw_gpu_reason_stats limited; /* either */
    double energy_j;             /* from the first look to the last */
    double energy_per_step_j; /* mean power within steps times the mean step of the run */
} sw_gpu;

typedef struct sw_gpus sw_gpus;

/* Devices that a program sees come first. A device that several processes watched is there once. */
SW_API const sw_gpu *sw_gpus_get(const sw_gpus *gpus, size_t *count);
/* Why nothing is known of any GPU; NULL: something is. */
SW_API const char *sw_gpus_why(const sw_gpus *gpus);

#ifdef __cplusplus
}
#endif
#endif
