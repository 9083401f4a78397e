/* The part of NVIDIA's management library (NVML) that stepwatch calls, loaded by name at run time.
 *
 * No header of NVIDIA's is needed to build: the few structures are declared here. Their layout is that of a 64-bit Linux, where
 * NVML never changed it; structures that may grow carry a version, which NVML checks. Any function may be missing, for the
 * library belongs to the driver that happens to be there: its pointer is NULL then. */
#ifndef SW_WATCH_NVML_API_H
#define SW_WATCH_NVML_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <stepwatch/error.h>

/* Results of a call: number, symbol, and what it means to the reader of a report. */
#define SW__NVML_RESULT_TABLE(X)                                                         \
    X(0, OK, "it worked")                                                                \
    X(1, UNINITIALIZED, "the library was shut down by another part of the program")      \
    X(2, INVALID, "an argument was refused")                                             \
    X(3, NOT_SUPPORTED, "the device does not support it")                                \
    X(4, NO_PERMISSION, "this user has no permission")                                   \
    X(6, NOT_FOUND, "there is no such device")                                           \
    X(7, TOO_SMALL, "the answer does not fit")                                           \
    X(8, NO_POWER, "a power cable of the device is not attached")                        \
    X(9, NO_DRIVER, "the driver is not loaded")                                          \
    X(10, TIMEOUT, "the driver did not answer in time")                                  \
    X(11, IRQ, "the kernel has a problem with an interrupt of the device")               \
    X(12, NO_LIBRARY, "a library of the driver is missing")                              \
    X(13, NO_FUNCTION, "this version of the library has no such function")               \
    X(14, INFOROM, "the device's own memory of settings is corrupted")                   \
    X(15, LOST, "the device fell off the bus or cannot be reached any more")             \
    X(16, RESET, "the device needs a reset")                                             \
    X(17, BLOCKED, "the operating system or its control group blocks the device")        \
    X(18, MISMATCH, "library and kernel driver are of different versions")               \
    X(19, IN_USE, "the device is in use")                                                \
    X(20, MEMORY, "the driver has no memory left")                                       \
    X(21, NO_DATA, "there are no data yet")                                              \
    X(23, RESOURCES, "the driver has no room left")                                      \
    X(25, VERSION, "this version of the library has another structure")                  \
    X(26, DEPRECATED, "this version of the library does not offer it any more")          \
    X(27, NOT_READY, "the device is not ready")                                          \
    X(28, NO_GPU, "no GPU was found")                                                    \
    X(29, STATE, "the device is in a state that does not allow it")                      \
    X(999, UNKNOWN, "the driver reports an internal error")

enum sw__nvml_result {
#define SW__NVML_ENUM(number, symbol, text) SW__NVML_##symbol = number,
    SW__NVML_RESULT_TABLE(SW__NVML_ENUM)
#undef SW__NVML_ENUM
};

typedef struct sw__nvml_handle *sw__nvml_device; /* theirs, opaque */
typedef struct sw__nvml_gpm *sw__nvml_sample;    /* likewise */
typedef struct sw__nvml_set *sw__nvml_events;    /* likewise */

struct sw__nvml_memory {
    uint64_t total, free, used; /* used: reserved ones among them */
};
struct sw__nvml_memory2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};
struct sw__nvml_rates {
    uint32_t gpu, memory; /* percent */
};
struct sw__nvml_pci {
    char bus_short[16];
    uint32_t domain, bus, device, id, subsystem;
    char bus_id[32];
};
struct sw__nvml_process {
    uint32_t pid;
    uint64_t memory; /* UINT64_MAX: not available */
    uint32_t gpu_instance, compute_instance;
};
struct sw__nvml_event {
    sw__nvml_device device;
    uint64_t type, data;
    uint32_t gpu_instance, compute_instance;
};
struct sw__nvml_field {
    uint32_t id, scope;
    int64_t timestamp, latency;
    uint32_t type; /* 0 double, 1 u32, 2 unsigned long, 3 u64, 4 i64, 5 i32, 6 u16 */
    int32_t result;
    union {
        double real;
        uint64_t whole;
        uint32_t small;
        uint16_t tiny;
        int64_t with_sign;
        int32_t small_with_sign;
    } value;
};
struct sw__nvml_metric {
    uint32_t id;
    int32_t result;
    double value;
    const char *text[3];
};
struct sw__nvml_metrics {
    uint32_t version, count;
    sw__nvml_sample before, after;
    struct sw__nvml_metric metric[]; /* NVML's own array grows with every version */
};
struct sw__nvml_support {
    uint32_t version, supported;
};

#define SW__NVML_VERSIONED(type, number)                                                 \
    ((uint32_t)(sizeof(type) | ((uint32_t)(number) << 24)))

/* Field, parameters, symbol, and the older symbol of the same function (or NULL). */
#define SW__NVML_CALLS(X)                                                                \
    X(init, (void), "nvmlInit_v2", "nvmlInit")                                           \
    X(shutdown, (void), "nvmlShutdown", NULL)                                            \
    X(driver_version, (char *text, unsigned size), "nvmlSystemGetDriverVersion", NULL)   \
    X(library_version, (char *text, unsigned size), "nvmlSystemGetNVMLVersion", NULL)    \
    X(count, (unsigned *count), "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")           \
    X(by_index, (unsigned index, sw__nvml_device *device),                               \
      "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")                     \
    X(name, (sw__nvml_device device, char *text, unsigned size), "nvmlDeviceGetName",    \
      NULL)                                                                              \
    X(uuid, (sw__nvml_device device, char *text, unsigned size), "nvmlDeviceGetUUID",    \
      NULL)                                                                              \
    X(pci, (sw__nvml_device device, struct sw__nvml_pci * pci),                          \
      "nvmlDeviceGetPciInfo_v3", NULL)                                                   \
    X(memory2, (sw__nvml_device device, struct sw__nvml_memory2 * memory),               \
      "nvmlDeviceGetMemoryInfo_v2", NULL)                                                \
    X(memory, (sw__nvml_device device, struct sw__nvml_memory * memory),                 \
      "nvmlDeviceGetMemoryInfo", NULL)                                                   \
    X(rates, (sw__nvml_device device, struct sw__nvml_rates * rates),                    \
      "nvmlDeviceGetUtilizationRates", NULL)                                             \
    X(power, (sw__nvml_device device, unsigned *milliwatts), "nvmlDeviceGetPowerUsage",  \
      NULL)                                                                              \
    X(power_limit, (sw__nvml_device device, unsigned *milliwatts),                       \
      "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetPowerManagementLimit")            \
    X(power_default, (sw__nvml_device device, unsigned *milliwatts),                     \
      "nvmlDeviceGetPowerManagementDefaultLimit", NULL)                                  \
    X(energy, (sw__nvml_device device, uint64_t * millijoules),                          \
      "nvmlDeviceGetTotalEnergyConsumption", NULL)                                       \
    X(temperature, (sw__nvml_device device, int sensor, unsigned *celsius),              \
      "nvmlDeviceGetTemperature", NULL)                                                  \
    X(threshold, (sw__nvml_device device, int which, unsigned *celsius),                 \
      "nvmlDeviceGetTemperatureThreshold", NULL)                                         \
    X(clock, (sw__nvml_device device, int which, unsigned *megahertz),                   \
      "nvmlDeviceGetClockInfo", NULL)                                                    \
    X(clock_most, (sw__nvml_device device, int which, unsigned *megahertz),              \
      "nvmlDeviceGetMaxClockInfo", NULL)                                                 \
    X(reasons, (sw__nvml_device device, uint64_t * reasons),                             \
      "nvmlDeviceGetCurrentClocksEventReasons",                                          \
      "nvmlDeviceGetCurrentClocksThrottleReasons")                                       \
    X(ecc, (sw__nvml_device device, int type, int counter, uint64_t *errors),            \
      "nvmlDeviceGetTotalEccErrors", NULL)                                               \
    X(events_create, (sw__nvml_events * events), "nvmlEventSetCreate", NULL)             \
    X(events_register, (sw__nvml_device device, uint64_t types, sw__nvml_events events), \
      "nvmlDeviceRegisterEvents", NULL)                                                  \
    X(events_supported, (sw__nvml_device device, uint64_t * types),                      \
      "nvmlDeviceGetSupportedEventTypes", NULL)                                          \
    X(events_wait,                                                                       \
      (sw__nvml_events events, struct sw__nvml_event * event, unsigned milliseconds),    \
      "nvmlEventSetWait_v2", NULL)                                                       \
    X(events_free, (sw__nvml_events events), "nvmlEventSetFree", NULL)                   \
    X(pcie, (sw__nvml_device device, int counter, unsigned *kilobytes),                  \
      "nvmlDeviceGetPcieThroughput", NULL)                                               \
    X(fields, (sw__nvml_device device, int count, struct sw__nvml_field *values),        \
      "nvmlDeviceGetFieldValues", NULL)                                                  \
    X(processes,                                                                         \
      (sw__nvml_device device, unsigned *count, struct sw__nvml_process *processes),     \
      "nvmlDeviceGetComputeRunningProcesses_v3",                                         \
      "nvmlDeviceGetComputeRunningProcesses_v2")                                         \
    X(mig_mode, (sw__nvml_device device, unsigned *now, unsigned *later),                \
      "nvmlDeviceGetMigMode", NULL)                                                      \
    X(mig_most, (sw__nvml_device device, unsigned *count),                               \
      "nvmlDeviceGetMaxMigDeviceCount", NULL)                                            \
    X(mig_device, (sw__nvml_device device, unsigned index, sw__nvml_device *part),       \
      "nvmlDeviceGetMigDeviceHandleByIndex", NULL)                                       \
    X(mig_instance, (sw__nvml_device part, unsigned *instance),                          \
      "nvmlDeviceGetGpuInstanceId", NULL)                                                \
    X(gpm_support, (sw__nvml_device device, struct sw__nvml_support * support),          \
      "nvmlGpmQueryDeviceSupport", NULL)                                                 \
    X(gpm_alloc, (sw__nvml_sample * sample), "nvmlGpmSampleAlloc", NULL)                 \
    X(gpm_free, (sw__nvml_sample sample), "nvmlGpmSampleFree", NULL)                     \
    X(gpm_get, (sw__nvml_device device, sw__nvml_sample sample), "nvmlGpmSampleGet",     \
      NULL)                                                                              \
    X(gpm_get_mig, (sw__nvml_device device, unsigned instance, sw__nvml_sample sample),  \
      "nvmlGpmMigSampleGet", NULL)                                                       \
    X(gpm_metrics, (struct sw__nvml_metrics * metrics), "nvmlGpmMetricsGet", NULL)

struct sw__nvml_api {
#define SW__NVML_POINTER(field, parameters, symbol, older) int(*field) parameters;
    SW__NVML_CALLS(SW__NVML_POINTER)
#undef SW__NVML_POINTER
    char path[256]; /* what was loaded */
};

/* Loads the library: `path` alone if given, else the driver's. It stays loaded for ever. SW_EUNSUPPORTED with a sentence when
 * there is none, or when it lacks what nothing goes without. */
int sw__nvml_load(struct sw__nvml_api *api, const char *path, sw_error_info *info);
/* What a result means; never NULL. */
const char *sw__nvml_text(int result);

#endif
