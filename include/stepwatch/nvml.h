/* What NVIDIA's management library (NVML) says of the GPUs here. For `doctor`, and for programs that want to know before they
 * start; the monitor has the same by itself (docs/gpu-monitor.md). */
#ifndef STEPWATCH_NVML_H
#define STEPWATCH_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_nvml_device {
    unsigned index; /* NVML's own; of a part: its number within its device */
    bool part;      /* a MIG part of the device before it */
    bool divided;   /* into such parts */
    int visible;    /* to CUDA programs started here: 1, 0, -1 unknown */
    bool activity;  /* it counts what its multiprocessors do (GPM), and says so */
    char name[96];  /* empty: unknown, like those below */
    char uuid[96];
    char pci[32];
    uint64_t memory_bytes; /* 0: unknown */
    char missing[400];     /* what it does not say, and why; empty: nothing is missing */
    bool forbidden;        /* … some of it for lack of permission */
} sw_nvml_device;

#define SW_NVML_DEVICES 128

typedef struct sw_nvml_view {
    char library[256]; /* that was loaded */
    char driver[80];   /* versions; empty: unknown */
    char version[80];
    size_t count;
    sw_nvml_device device[SW_NVML_DEVICES];
} sw_nvml_view;

/* Asks everything once, which takes some tenths of a second. `library`: in place of the driver's own; NULL or empty: that.
 * SW_EUNSUPPORTED or SW_ENOTFOUND with a clause in `info`: there is nothing to watch. */
SW_API int sw_nvml_probe(const char *library, sw_nvml_view *out, sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif
