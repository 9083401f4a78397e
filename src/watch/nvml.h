/* GPUs by NVML: what there is, and how it is doing.
 *
 * Everything here is called by one thread at a time. Nothing fails the program: what cannot be read is NaN, and each cause is
 * told once. A child of fork must not touch an inherited object: the driver's state is not its own. */
#ifndef SW_WATCH_NVML_H
#define SW_WATCH_NVML_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stepwatch/error.h>
#include <stepwatch/records.h>

#include "watch/nvml_api.h"

/* More devices than a machine has; MIG parts count. */
#define SW__NVML_MOST 128
#define SW__NVML_NO_PARENT UINT32_MAX

/* Calls that are made together, each set with a period of its own: X(symbol, period in ms, "what it is for"). 0: at every
 * look; these come first. Costs of one call on an H200 with driver 580 are in docs/gpu-monitor.md. */
#define SW__NVML_GROUP_TABLE(X)                                                          \
    X(MEMORY, 0, "memory")                                                               \
    X(RATES, 0, "utilisation")                                                           \
    X(POWER, 0, "power")                                                                 \
    X(TEMPERATURE, 0, "temperature")                                                     \
    X(REASONS, 0, "reasons for reduced clocks")                                          \
    X(GPM, 1000, "activity of multiprocessors and tensor cores")                         \
    X(CLOCKS, 2000, "clocks")                                                            \
    X(ERRORS, 5000, "errors (Xid)")                                                      \
    X(ENERGY, 10000, "energy")                                                           \
    X(LINKS, 10000, "traffic of PCIe and NVLink")                                        \
    X(ECC, 30000, "errors of memory (ECC)")                                              \
    X(PROCESSES, 30000, "memory of this process")                                        \
    X(PCIE, 60000, "traffic of PCIe")

enum sw__nvml_group {
#define SW__NVML_GROUP_ENUM(symbol, period, text) SW__NVML_GROUP_##symbol,
    SW__NVML_GROUP_TABLE(SW__NVML_GROUP_ENUM)
#undef SW__NVML_GROUP_ENUM
        SW__NVML_GROUPS
};

/* What is known of a device from the beginning. Numbers that are unknown are 0, texts empty. */
struct sw__nvml_info {
    uint32_t index; /* NVML's own; of a MIG part: its number within its device */
    uint32_t
        parent; /* place in the list of the device it is a part of, or SW__NVML_NO_PARENT */
    uint32_t instance; /* of a MIG part: the GPU instance */
    bool mig_on;       /* it is divided into MIG parts */
    bool gpm;          /* activity can be read */
    int visible;       /* to the program, by CUDA_VISIBLE_DEVICES: 1, 0, -1 unknown */
    char name[96];
    char uuid[96];
    char pci[32];
    uint64_t memory_bytes;
    uint32_t sm_clock_mhz, memory_clock_mhz; /* most */
    uint32_t power_limit_mw, power_default_mw;
    uint32_t slowdown_c, most_c; /* temperatures at which clocks are reduced */
};

/* Where what is found goes. */
struct sw__nvml_sink {
    /* Device `device` (a place in the list) has a new value; NaN: it is not known any more. */
    void (*value)(void *context, size_t device, enum sw_gpu_value value, double number);
    /* One sentence for the reader of the report, told once. */
    void (*note)(void *context, const char *text);
    void *context;
};

typedef struct sw__nvml sw__nvml;

/* Loads and starts NVML and lists the devices, which may take seconds. `path`: the library, NULL or empty for the driver's
 * own. SW_EUNSUPPORTED or SW_ENOTFOUND with a sentence: nothing can be watched. The caller frees it with sw__nvml_close. */
int sw__nvml_open(sw__nvml **out, const char *path, const struct sw__nvml_sink *sink,
                  sw_error_info *info);
void sw__nvml_close(sw__nvml *nvml); /* NULL is fine */

size_t sw__nvml_count(const sw__nvml *nvml);
const struct sw__nvml_info *sw__nvml_get(const sw__nvml *nvml, size_t index);
const char *sw__nvml_driver(const sw__nvml *nvml);  /* "580.65.06"; empty: unknown */
const char *sw__nvml_version(const sw__nvml *nvml); /* of the library */
const char *sw__nvml_path(const sw__nvml *nvml);    /* where it was found */
/* Says which devices the program sees. `visible`: the value of CUDA_VISIBLE_DEVICES, NULL when it is not set; `by_bus`:
 * CUDA_DEVICE_ORDER is PCI_BUS_ID. */
void sw__nvml_see(sw__nvml *nvml, const char *visible, bool by_bus);
/* Only these devices are asked from now on (by place in the list); NULL: all. */
void sw__nvml_select(sw__nvml *nvml, const bool *wanted);

/* A look at `now_ns` (CLOCK_MONOTONIC): calls are made whose period is over. It has two halves, so that what is cheap need not
 * wait for what is dear. */
#define SW__NVML_CHEAP 1u /* calls of microseconds, which have no period */
#define SW__NVML_DEAR 2u  /* the others */
#define SW__NVML_ALL 4u   /* whether they are due or not: for the last look */
void sw__nvml_look(sw__nvml *nvml, uint64_t now_ns, unsigned which);
/* Why a value of a device is not there, or NULL: it is, or has not been asked for yet. */
const char *sw__nvml_missing(const sw__nvml *nvml, size_t device,
                             enum sw__nvml_group group);
const char *sw__nvml_group_text(enum sw__nvml_group group);
/* The group that gives a value. */
enum sw__nvml_group sw__nvml_group_of(enum sw_gpu_value value);

#endif
