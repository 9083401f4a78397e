/* Sources of the monitor: how a new one is added.
 *
 * A source is a name, a least period and four functions. To add one: write its file, declare it below, put it into the
 * table of sources.c. All functions run in the monitor's thread alone (open and close also in the thread that asks
 * what there is), so they need no locks; they must not touch Python, and should take microseconds or have a period.
 *
 *     static void sample(void *state, struct sw__look *look)
 *     {
 *         sw__look_put(look, "gpu.0.power", "W", SW_SERIES_GAUGE, watts);
 *     }
 *
 * A series comes into being with its first value. What is not put at a look that the source had keeps its last value;
 * put NAN for what is not known any more. Never put 0 for unknown. */
#ifndef SW_WATCH_SOURCES_H
#define SW_WATCH_SOURCES_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/records.h>

struct sw__look; /* one look of the monitor */

/* What a source may want to know when it is opened. */
struct sw__source_setting {
    const char *root; /* before /proc and /sys: "" but in tests */
    double pss_s;     /* period of PSS; 0: not wanted */
};

struct sw__source {
    const char *name;
    double period_s; /* seconds between its looks at least; 0: at every look */
    /* Opens what stays open. 0 with `*state`, or a negative sw_error with a sentence in `why`, which is stated once; the
     * source is then left alone until the monitor starts again. SW_EDISABLED: not wanted, nothing is said. */
    int (*open)(const struct sw__source_setting *setting, void **state, char *why,
                size_t size);
    /* Puts what it sees. Returns 0, or a negative sw_error: this look failed, and the series of the source are unknown
     * until the next that does not. */
    int (*sample)(void *state, struct sw__look *look);
    void (*close)(
        void *state); /* not in a forked child: files of proc_file.h are closed there */
    /* The period where it depends on the setting, or NULL. */
    double (*period)(const struct sw__source_setting *setting);
};

/* A value of a series. `name` and `unit` may be on the stack; the name is at most SW__SERIES_NAME - 1 bytes long. */
#define SW__SERIES_NAME 64
void sw__look_put(struct sw__look *look, const char *name, const char *unit,
                  enum sw_series_kind kind, double value);
/* The same with a hint, which the caller sets to 0 before the first time and keeps: the name is then compared once. */
void sw__look_hint(struct sw__look *look, uint32_t *hint, const char *name,
                   const char *unit, enum sw_series_kind kind, double value);
/* Kernel id of the training thread: that with steps, else the first. */
uint32_t sw__look_training_tid(const struct sw__look *look);

/* Ends with NULL. */
extern const struct sw__source *const sw__sources[];

extern const struct sw__source sw__source_process;
extern const struct sw__source sw__source_io;
extern const struct sw__source sw__source_training;
extern const struct sw__source sw__source_status;
extern const struct sw__source sw__source_descriptors;
extern const struct sw__source sw__source_pss;
extern const struct sw__source sw__source_cpus;
extern const struct sw__source sw__source_system;
extern const struct sw__source sw__source_cgroup;
extern const struct sw__source sw__source_pressure;
extern const struct sw__source sw__source_disks;
extern const struct sw__source sw__source_network;
extern const struct sw__source sw__source_children;

#endif
