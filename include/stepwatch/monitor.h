/* What the monitor saw in a process: series of values, and their statistics over the run, its steps, phases and sections.
 *
 * A *gauge* is a level, such as memory: its statistics are those of the values. A *total* is a sum that grows, such as CPU
 * time: its statistics are those of its growth a second, between two looks; CPU time in seconds gives cores in use.
 * A value counts for a phase or a section that was open on the training thread when the monitor looked; growth counts for
 * it only where it was open from one look to the next. NaN: not known. */
#ifndef STEPWATCH_MONITOR_H
#define STEPWATCH_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_monitor sw_monitor;

/* Reads what the monitor of a process left. `*out` becomes NULL where none ran. Borrows the trace. */
SW_API int sw_monitor_of_trace(sw_monitor **out, sw_trace *trace, sw_error_info *info);
SW_API void sw_monitor_free(sw_monitor *monitor); /* NULL is fine */

typedef struct sw_monitor_totals {
    uint32_t pid;
    double interval_s;    /* that was asked for; the newest, where it was started again */
    uint64_t looks, late; /* late: by more than a tenth of the interval */
    uint64_t kept;        /* looks whose values are in the trace */
    double cpu_s;         /* CPU time of the monitor's thread */
    double watched_s;     /* from its starts to its stops */
    double longest_gap_s; /* between two looks that are kept; NaN: there is one at most */
} sw_monitor_totals;
SW_API const sw_monitor_totals *sw_monitor_get_totals(const sw_monitor *monitor);

typedef struct sw_monitor_stats {
    uint64_t samples; /* values of a gauge, stretches between two looks of a total */
    double mean, min, max;
} sw_monitor_stats;

typedef struct sw_monitor_series {
    const char *name, *unit; /* of a total: of what grows */
    enum sw_series_kind kind;
    const char *source;
    uint64_t known;     /* values that were read, also those that are not kept */
    double first, last; /* values, also of a total */
    double growth;      /* of a total, while watched */
    double watched_s;   /* of a total: for so long; 0 of a gauge */
    sw_monitor_stats all;
    double p50, p95;        /* of what is kept */
    sw_monitor_stats steps; /* while a step was open */
    double per_step;        /* of a total: growth in a step of mean length */
    sw_monitor_stats phase[SW_PHASE_COUNT];
} sw_monitor_series;
SW_API size_t sw_monitor_series_count(const sw_monitor *monitor);
/* NULL past the last. In the order in which they came. */
SW_API const sw_monitor_series *sw_monitor_get_series(const sw_monitor *monitor,
                                                      size_t index);
/* By name; NULL: there is none. */
SW_API const sw_monitor_series *sw_monitor_find(const sw_monitor *monitor,
                                                const char *name);

/* Sections that were open when the monitor looked, those seen most often first, at most SW_MONITOR_SECTIONS. */
#define SW_MONITOR_SECTIONS 32
typedef struct sw_monitor_section {
    const char *const *path; /* outermost first */
    size_t depth;
    uint64_t looks;
} sw_monitor_section;
SW_API size_t sw_monitor_section_count(const sw_monitor *monitor);
SW_API const sw_monitor_section *sw_monitor_get_section(const sw_monitor *monitor,
                                                        size_t index);
/* Statistics of a series in a section. */
SW_API sw_monitor_stats sw_monitor_in_section(const sw_monitor *monitor, size_t series,
                                              size_t section);

/* The values of a series that are kept, as they are plotted: those of a gauge, and the growth a second of a total, each up to
 * its moment. The caller frees them with sw_monitor_points_free. */
typedef struct sw_monitor_point {
    uint64_t ns; /* CLOCK_MONOTONIC */
    double value;
    bool first; /* nothing is known of the time between this and the point before */
} sw_monitor_point;
SW_API int sw_monitor_points(const sw_monitor *monitor, size_t series,
                             sw_monitor_point **points, size_t *count);
SW_API void sw_monitor_points_free(sw_monitor_point *points); /* NULL is fine */

/* Sources, the monitor itself not among them. */
typedef struct sw_monitor_seen {
    const char *name;
    const char *why; /* it has nothing; NULL: it has, or was not wanted */
    double period_s;
    uint64_t looks, failed;
    double seconds; /* that its looks took */
} sw_monitor_seen;
SW_API size_t sw_monitor_seen_count(const sw_monitor *monitor);
SW_API const sw_monitor_seen *sw_monitor_get_seen(const sw_monitor *monitor,
                                                  size_t index);

#ifdef __cplusplus
}
#endif
#endif
