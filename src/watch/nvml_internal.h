/* What the files of NVML share. */
#ifndef SW_WATCH_NVML_INTERNAL_H
#define SW_WATCH_NVML_INTERNAL_H

#include "watch/nvml.h"

/* NVML's array of metrics grows with its version, and it clears what it believes is there: 13 kB in version 13. */
#define SW__NVML_METRICS_BYTES 32768u
#define SW__NVML_CAUSES 64

/* How asking for one group of one device went. */
struct sw__nvml_asked {
    uint64_t due_ns;
    int result;        /* of the last call; -1: not asked yet */
    unsigned failures; /* in a row */
    bool off;          /* it will never work, or something else gives the same */
    bool elsewhere;    /* … the latter: nothing is missing */
};

/* A count of bytes that only rises, and when it was read. */
struct sw__nvml_counter {
    uint64_t bytes, ns;
    bool known;
};

struct sw__nvml_gpu {
    struct sw__nvml_info info;
    sw__nvml_device handle;
    bool wanted;
    int dead; /* the result that ended it; 0: it lives */
    struct sw__nvml_asked asked[SW__NVML_GROUPS];
    double last[SW_GPU_VALUES];
    double xids; /* errors so far */
    sw__nvml_sample sample[2];
    unsigned newest;                 /* which of them */
    uint64_t sample_ns;              /* of the newest one; 0: none */
    struct sw__nvml_counter link[4]; /* PCIe sent, received, NVLink sent, received */
};

struct sw__nvml {
    struct sw__nvml_api api;
    struct sw__nvml_sink sink;
    struct sw__nvml_gpu *gpu;
    size_t count;
    char driver[80];
    char version[80];
    sw__nvml_events events; /* NULL: none */
    struct sw__nvml_metrics *metrics;
    struct sw__nvml_process *processes;
    unsigned process_room;
    bool outermost_pids; /* this process and the driver number processes alike */
    bool looked;
    bool started;      /* init without shutdown */
    int lost;          /* the library itself does not answer: the result; 0: it does */
    uint64_t retry_ns; /* when to try again */
    unsigned retries;
    bool old_memory; /* the newer call for memory is not understood */
    struct {
        uint32_t device, group;
        int result;
    } told[SW__NVML_CAUSES];
    size_t told_count;
};

/* nvml_device.c: lists the devices; with `again`, finds those of the list after the driver came back. */
int sw__nvml_list(sw__nvml *nvml, sw_error_info *info);
void sw__nvml_find_again(sw__nvml *nvml);
/* Samples are memory of the library, not of the driver: they can always be freed. */
void sw__nvml_free_samples(sw__nvml *nvml);

/* nvml_calls.c: makes the calls of one group for one device and gives values to the sink; the result of the worst call. */
int sw__nvml_call(sw__nvml *nvml, size_t device, enum sw__nvml_group group,
                  uint64_t now_ns);
/* Events of all devices at once. */
int sw__nvml_poll_events(sw__nvml *nvml);
void sw__nvml_watch_events(sw__nvml *nvml);

/* nvml.c */
void sw__nvml_give(sw__nvml *nvml, size_t device, enum sw_gpu_value value, double number);
/* Tells a sentence once for each (device, group, result); UINT32_MAX stands for all devices or no group. */
void sw__nvml_tell(sw__nvml *nvml, uint32_t device, uint32_t group, int result,
                   const char *format, ...) SW_PRINTF(5, 6);
/* "GPU 0", or "part 1 of GPU 0". */
const char *sw__nvml_title(const sw__nvml *nvml, size_t device, char *out, size_t size);

#endif
