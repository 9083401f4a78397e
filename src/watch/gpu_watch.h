/* A thread that asks NVML, and the box in which it leaves what it heard.
 *
 * Calls into a driver may take milliseconds, its start seconds, and one that hangs never comes back. The monitor, whose period
 * is a promise, therefore does not make them: it rings, waits a moment for what is cheap, and takes what lies in the box. */
#ifndef SW_WATCH_GPU_WATCH_H
#define SW_WATCH_GPU_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "watch/nvml.h"

struct sw__gpu_wish {
    char library[512];  /* empty: the driver's own */
    char visible[1024]; /* CUDA_VISIBLE_DEVICES */
    bool has_visible;   /* … is set */
    bool by_bus;        /* CUDA_DEVICE_ORDER is PCI_BUS_ID */
    long local_rank;    /* among the processes of a launcher on this machine; -1: none */
};

enum sw__gpu_state {
    SW__GPU_STARTING, /* nothing is known yet */
    SW__GPU_WATCHING,
    SW__GPU_FAILED
};

struct sw__gpu_watch;

/* NULL: no memory. No thread runs yet. */
struct sw__gpu_watch *sw__gpu_watch_create(const struct sw__gpu_wish *wish);
/* Rings: the thread, which is started where there is none, looks once. Waits for the cheap half of it, with `last` for all of it,
 * at most so long. */
void sw__gpu_watch_look(struct sw__gpu_watch *watch, bool last, uint64_t patience_ns);
/* Ends the thread before a fork, or gives up after a while. The next look starts it again. */
void sw__gpu_watch_pause(struct sw__gpu_watch *watch);
/* Ends the thread and frees everything. A thread that hangs in the driver keeps its memory for ever. `child`: in a forked
 * process, where nothing can be done. */
void sw__gpu_watch_free(struct sw__gpu_watch *watch, bool child);

/* In a forked process: forgets what was its parent's. */
void sw__gpu_watch_forked(void);

/* What is in the box. `why`: a sentence where the state is FAILED. */
enum sw__gpu_state sw__gpu_watch_state(struct sw__gpu_watch *watch, char *why,
                                       size_t size);
/* Devices, once the state is WATCHING; they do not change after that. */
size_t sw__gpu_watch_devices(struct sw__gpu_watch *watch, struct sw__nvml_info *out,
                             bool *aside, size_t most);
void sw__gpu_watch_driver(struct sw__gpu_watch *watch, char *out, size_t size);
/* Takes a value that came since the last time. False: none did. */
bool sw__gpu_watch_take(struct sw__gpu_watch *watch, size_t device,
                        enum sw_gpu_value value, double *out);
/* Takes the next remark. False: there is none. */
bool sw__gpu_watch_note(struct sw__gpu_watch *watch, char *out, size_t size);
/* Why a value of a device is not there, as it was at the last look. False: it is there. */
bool sw__gpu_watch_missing(struct sw__gpu_watch *watch, size_t device,
                           enum sw_gpu_value value, char *out, size_t size);

#endif
