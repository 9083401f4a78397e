/* The recorder's settings after struct, environment and defaults have been joined. */
#ifndef SW_RECORD_CONFIG_H
#define SW_RECORD_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/record.h>

/* Settings in force. Strings are copies inside the struct, empty when not given. */
struct sw__settings {
    bool enabled;
    bool enabled_given; /* someone said on or off, rather than the default */
    bool events;
    bool step_usage;
    bool quiet;
    bool phases, modules, loader, brief, operators, functions; /* of Python programs */
    bool report, history;                                      /* of `stepwatch run` */
    unsigned progress;                                         /* 0 auto, 1 on, 2 off */
    unsigned gpu;                                              /* likewise */
    enum sw_policy policy;
    uint64_t max_bytes; /* 0: no cap */
    unsigned keep_first, keep_last, keep_worst;
    bool memory, memory_native;
    unsigned memory_sample_kb; /* 0: allocations are counted, none is sampled */
    double sampler_hz;         /* 0: no samples */
    double monitor_interval_s; /* 0: no monitor */
    bool io;                   /* calls on files and sockets are watched */
    double monitor_pss_s;      /* 0: the monitor does not read PSS */
    sw_schedule schedule;
    char name[128];
    char out[1024];
    char runs_dir[512];
    char hot_dir[512];
    char nvml[512];
    char lines[4096];
    char run_id[64]; /* from STEPWATCH_RUN_ID, set by `stepwatch run`; may be empty */
};

/* Joins `config` (may be NULL; `size` is the caller's sizeof, older callers pass a smaller one and the
 * missing fields count as zero), the environment, a configuration file and the defaults: STEPWATCH_ENABLED=0 first, then
 * the struct, then STEPWATCH_*, then the file, then defaults. Unknown keys and values that make no sense in environment
 * and file give one warning each through `warn` (may be NULL) and are ignored; a bad value in the struct is SW_EINVAL
 * with `info`. Safe before anything else is set up. */
int sw__settings_load(struct sw__settings *out, const sw_config *config, size_t size,
                      void (*warn)(void *arg, const char *sentence), void *arg,
                      sw_error_info *info);

/* Facts about process, machine and environment for the trace: command line (values that look like
 * secrets redacted), cwd, executable, host, kernel, CPU model, usable CPUs, memory, user-visible
 * settings, allow-listed environment variables as "env.NAME". Calls `put` for each. `brief`: only what
 * tells processes, ranks and machines apart. */
void sw__facts_collect(const struct sw__settings *settings, bool brief,
                       void (*put)(void *arg, const char *key, const char *value),
                       void *arg);

/* "train.py" or "mlp": the program's name from /proc/self/exe and cmdline, without folder. */
void sw__program_name(char *out, size_t size);

#endif
