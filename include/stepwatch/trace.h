/* Reading traces: one file of one process (sw_trace), all files of a run (sw_run), and cursors over
 * their records in time order.
 *
 * Readers trust no byte of a file: a damaged one gives an error or what can be saved of it, in bounded
 * time and memory, never a crash. They never write; sw_store_fold does that. A file of a process
 * that was killed, or that still runs, is read together with its hot file where that exists. */
#ifndef STEPWATCH_TRACE_H
#define STEPWATCH_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/clock.h>
#include <stepwatch/error.h>
#include <stepwatch/histogram.h>
#include <stepwatch/records.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_trace sw_trace;

/* Opens a `*.stepwatch` file. The caller frees the trace with sw_trace_free. */
SW_API int sw_trace_open(sw_trace **out, const char *path, sw_error_info *info);
SW_API void sw_trace_free(sw_trace *trace); /* NULL is fine */

/* How the file ended. */
enum sw_trace_end {
    SW_TRACE_RUNNING = 0, /* its process is alive */
    SW_TRACE_CLOSED = 1,  /* closed by its process */
    SW_TRACE_KILLED = 2   /* its process died without closing it */
};

/* Facts about the whole file. Strings live as long as the trace. Times are ns of CLOCK_MONOTONIC unless
 * they say otherwise. */
typedef struct sw_trace_info {
    const char *path;
    const char *name;
    const char *run_id;
    uint32_t pid, ppid;
    enum sw_trace_end end;
    bool damaged;     /* some part could not be read; notes say which */
    bool hot_used;    /* a hot file was read too */
    bool hot_missing; /* it should have been, and is gone: the last events are lost */
    enum sw_clock_kind clock;
    uint32_t policy; /* 0 auto, 1 stream, 2 ring, 3 drop */
    bool events;     /* false: statistics only */
    uint64_t max_bytes;
    uint32_t keep_first, keep_last, keep_worst;
    uint64_t start_ns, end_ns; /* of recording; end: the last sign of life */
    uint64_t start_real_ns;    /* since 1970 */
    size_t clock_jumps;
    /* Exact counts. published = present + overwritten; attempted = published + dropped. */
    uint64_t present; /* records in the file (events; steps are counted apart) */
    uint64_t dropped;
    uint64_t overwritten;
    uint64_t reentrant, too_deep, names_folded, nodes_folded, unmatched, bus_errors;
    uint64_t steps_dropped, write_errors, hist_missed;
    uint32_t first_error; /* errno of the first loss, 0 none */
    uint64_t helper_cpu_ns;
    /* What threads spent in calls for steps, and in those for counters and marks (estimated), in ticks. */
    uint64_t step_ticks, emit_ticks;
    /* Cost of one section as the recorder measured it at its start, ns. */
    double cost_section_ns, cost_section_low_ns, cost_section_high_ns, cost_stats_ns;
    uint64_t file_bytes;
} sw_trace_info;
SW_API const sw_trace_info *sw_trace_get_info(const sw_trace *trace);
SW_API const sw_timeline *sw_trace_timeline(const sw_trace *trace);
/* What could not be read or was lost, one sentence each; NULL past the last. */
SW_API const char *sw_trace_note(const sw_trace *trace, size_t index);

/* Facts of process and environment ("command", "host", "cwd", "env.OMP_NUM_THREADS", …). */
SW_API const char *sw_trace_fact(const sw_trace *trace,
                                 const char *key); /* NULL if unknown */
SW_API bool sw_trace_fact_at(const sw_trace *trace, size_t index, const char **key,
                             const char **value);

/* Names by id. */
typedef struct sw_trace_name {
    const char *text; /* NUL-terminated; may hold any bytes */
    uint32_t length;
    uint16_t use; /* 0 text, 1 section, 2 counter */
    uint16_t domain;
    uint8_t phase; /* enum sw_phase, 255 none */
} sw_trace_name;
SW_API const sw_trace_name *sw_trace_get_name(const sw_trace *trace,
                                              uint32_t id); /* NULL if unknown */
SW_API uint32_t sw_trace_name_limit(const sw_trace *trace); /* ids are below this */
SW_API const char *sw_trace_domain_name(const sw_trace *trace,
                                        uint32_t domain); /* "" for the default one */

/* Threads. */
typedef struct sw_trace_thread {
    uint32_t index, tid, incarnations;
    bool alive;
    uint64_t start_ns, end_ns; /* end 0: unknown */
    uint64_t records, dropped, overwritten, steps;
    const char *name;
} sw_trace_thread;
SW_API size_t sw_trace_thread_count(const sw_trace *trace);
SW_API const sw_trace_thread *sw_trace_get_thread(const sw_trace *trace, size_t index);

/* Statistics: a lane is one thread in one domain, with a call tree. Node 0 is the root; a parent always
 * has a smaller index than its children. Times in ns; histograms in ticks (convert by ns_per_tick). */
typedef struct sw_trace_node {
    uint32_t section, parent;
    uint16_t kind; /* 0 section, 1 counter */
    bool family;   /* stands for many names */
    uint64_t calls, errors, unnested;
    uint64_t inclusive_ns,
        self_ns; /* sections; with stretches of calls that go on later */
    uint64_t min_ns, max_ns, last_ns; /* sections; 0 where calls is 0 */
    double sum, min, max, last;       /* counters */
    uint64_t open; /* times it is open at this moment (a killed or running program) */
} sw_trace_node;
typedef struct sw_trace_open_span {
    uint32_t node;
    uint64_t start_ns;
} sw_trace_open_span;
typedef struct sw_trace_lane {
    uint32_t thread, domain;
    const sw_trace_node *nodes;
    size_t node_count;
    const sw_trace_open_span
        *open; /* sections open at the last sign of life, outermost first */
    size_t open_count;
    uint64_t steps, steps_incomplete, updates;
    uint64_t step_total_ns, step_min_ns, step_max_ns; /* complete steps */
    uint64_t phase_ns[SW_PHASE_SLOTS];                /* sums to step_total_ns exactly */
    bool step_open;
    uint64_t step_open_number, step_open_begin_ns;
} sw_trace_lane;
SW_API size_t sw_trace_lane_count(const sw_trace *trace);
SW_API const sw_trace_lane *sw_trace_get_lane(const sw_trace *trace, size_t index);
SW_API double sw_trace_ns_per_tick(const sw_trace *trace);
/* Adds the histogram of a node (durations in ticks) to `into`. */
SW_API int sw_trace_node_histogram(const sw_trace *trace, size_t lane, size_t node,
                                   sw_histogram *into);
/* Adds the histogram of the durations of complete steps. */
SW_API int sw_trace_step_histogram(const sw_trace *trace, size_t lane,
                                   sw_histogram *into);
/* Builds the call trees anew from the SPAN records alone, for files whose statistics are lost, and
 * for checking those that are there. Replaces the lanes when `replace`, else hands the result to
 * `visit`, lane by lane. */
SW_API int sw_trace_rebuild_lanes(sw_trace *trace, bool replace,
                                  void (*visit)(void *arg, const sw_trace_lane *lane),
                                  void *arg, sw_error_info *info);

/* Rows of the tables (<stepwatch/records.h>, sw_row), by index; a row that is missing in a damaged file is NULL. */
SW_API size_t sw_trace_row_count(const sw_trace *trace, enum sw_table table);
SW_API const sw_row *sw_trace_get_row(const sw_trace *trace, enum sw_table table,
                                      size_t index);

/* All files of a run directory, or one file. */
typedef struct sw_run sw_run;
SW_API int sw_run_open(sw_run **out, const char *path, sw_error_info *info);
SW_API void sw_run_free(sw_run *run);
SW_API size_t sw_run_count(const sw_run *run);
SW_API sw_trace *sw_run_trace(const sw_run *run, size_t index); /* owned by the run */
SW_API const char *sw_run_path(const sw_run *run);
/* Files of the run that could not be opened, one sentence each; NULL past the last. */
SW_API const char *sw_run_note(const sw_run *run, size_t index);
/* How many of the notes are of files without anything in them: a process was ended while it began, and nothing is lost. */
SW_API size_t sw_run_empty_count(const sw_run *run);

/* A record met by a cursor. The record is valid until the next call. For records without an interval,
 * end_ns equals begin_ns. */
typedef struct sw_event {
    const sw_record *record;
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    uint32_t trace;            /* index into the traces given to the cursor */
    uint32_t thread;           /* thread index within that trace */
} sw_event;

/* What a cursor should give. All zero: every event record, no steps. */
typedef struct sw_cursor_filter {
    uint32_t kinds;  /* bit k: kind k; 0: all */
    bool steps;      /* STEP records too */
    bool one_thread; /* only `thread` */
    uint32_t thread;
    uint64_t from_ns, to_ns; /* by end_ns, inclusive; to_ns 0: no limit */
} sw_cursor_filter;

typedef struct sw_cursor sw_cursor;
/* Iterates over the records of `count` traces, in order of end_ns over all threads and processes; records
 * of one thread with equal end keep the order in which they were written. Memory: one chunk a thread.
 * The traces must outlive the cursor. */
SW_API int sw_cursor_open(sw_cursor **out, sw_trace *const *traces, size_t count,
                          const sw_cursor_filter *filter, sw_error_info *info);
/* 0 with `*event` filled, SW_EEND, or another error. */
SW_API int sw_cursor_next(sw_cursor *cursor, sw_event *event);
SW_API void sw_cursor_free(sw_cursor *cursor);

/* A light look at the steps of a process that records at this moment: a few small reads, however much it has recorded.
 * SW_ENOTFOUND when it has ended, or keeps no file that others can look into. */
typedef struct sw_glance sw_glance;
SW_API int sw_glance_open(sw_glance **out, const char *path);
SW_API void sw_glance_free(sw_glance *glance); /* NULL is fine */

/* The thread with the most steps. Sums are over ended, complete steps, in ticks of the process's clock. */
typedef struct sw_glance_steps {
    uint32_t pid, thread;
    bool ended;     /* the file has been closed since: these are the last figures */
    bool open;      /* a step is going on */
    uint64_t steps; /* ended ones, incomplete ones included */
    uint64_t step_ticks;
    uint64_t phase_ticks[SW_PHASE_SLOTS];
} sw_glance_steps;
/* SW_ENOTFOUND as long as there is no step. */
SW_API int sw_glance_read(sw_glance *glance, sw_glance_steps *out);

#ifdef __cplusplus
}
#endif
#endif
