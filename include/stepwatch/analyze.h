/* Analysis: one summary of a run, from which every report is made.
 *
 * Times are integer nanoseconds; SW_UNKNOWN (and NaN in doubles, NULL in strings) means that the value
 * is not known, which is not the same as 0. Strings may hold any bytes, for they come from the program.
 *
 * Glossary: a *row* is a section under one path, merged over processes and over threads of the same
 * name. *total* includes what ran inside the section, *self* does not. The *step thread* is the thread whose
 * steps took the most time: the figures of steps are those of that one; the others are listed. */
#ifndef STEPWATCH_ANALYZE_H
#define STEPWATCH_ANALYZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/functions.h>
#include <stepwatch/gpu.h>
#include <stepwatch/io.h>
#include <stepwatch/lines.h>
#include <stepwatch/memory.h>
#include <stepwatch/monitor.h>
#include <stepwatch/records.h>
#include <stepwatch/stacks.h>
#include <stepwatch/trace.h>
#include <stepwatch/training.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_NO_ROW UINT32_MAX

typedef struct sw_summary sw_summary;

/* Builds the summary of a run. Borrows the run, which must live as long as the summary; the caller
 * frees the summary with sw_summary_free. A `run.json` in the run's folder, which `stepwatch run`
 * leaves there, adds command, duration and exit code. */
SW_API int sw_summary_create(sw_summary **out, const sw_run *run, sw_error_info *info);
SW_API void sw_summary_free(sw_summary *summary); /* NULL is fine */

/* The run as a whole. */
typedef struct sw_summary_run {
    const char *id, *name, *command, *host, *python; /* NULL: unknown */
    uint64_t started_real_ns;                        /* since 1970 */
    uint64_t duration_ns;
    bool supervised; /* the facts of run.json are in here */
    int exit_code;   /* -1: unknown, or killed by a signal */
    int exit_signal; /* 0: none; -1: unknown */
    bool complete;   /* every process closed its file, and all of it could be read */
    size_t processes, threads, ranks;
} sw_summary_run;
SW_API const sw_summary_run *sw_summary_get_run(const sw_summary *summary);
/* Frameworks that the processes named, with their versions. False past the last. */
SW_API bool sw_summary_framework(const sw_summary *summary, size_t index,
                                 const char **name, const char **version);

/* One process. */
typedef struct sw_summary_process {
    const char *path, *name;
    uint32_t pid, ppid;
    enum sw_trace_end end;
    bool damaged;
    uint64_t start_ns, end_ns; /* of recording, CLOCK_MONOTONIC */
    size_t threads;
    uint64_t present, dropped, overwritten;
} sw_summary_process;
SW_API size_t sw_summary_process_count(const sw_summary *summary);
SW_API const sw_summary_process *sw_summary_get_process(const sw_summary *summary,
                                                        size_t index);

/* A section. Rows stand in the order of the tree: a row's children follow it, siblings by total time (plus
 * that of calls still open), longest first. */
typedef struct sw_summary_section {
    const char *name;
    uint32_t name_length;
    uint8_t phase; /* enum sw_phase; SW_PHASE_INHERIT: none of its own */
    const char *thread,
        *domain; /* NULL in the flat list where there are several; "": default domain */
    uint32_t parent; /* index in the same list, SW_NO_ROW at the top */
    uint32_t depth;
    uint32_t
        names; /* how many names the row stands for; > 1 only where families are folded */
    bool family; /* the recorder folded many names into this one */
    uint64_t calls, errors, unnested;
    uint64_t total_ns, self_ns;
    uint64_t min_ns, max_ns; /* SW_UNKNOWN while calls is 0 */
    uint64_t last_ns;        /* SW_UNKNOWN where several threads or processes differ */
    uint64_t p50_ns, p90_ns,
        p99_ns;       /* relative error at most 1 %; SW_UNKNOWN without a histogram */
    uint64_t open;    /* calls that had not ended at the last sign of life */
    uint64_t open_ns; /* time they had taken by then; not part of total_ns */
} sw_summary_section;
/* Time without sections inside; SW_UNKNOWN where no call nested with the others, as of generators and tasks that take turns: then
 * they have inclusive time only. */
SW_API uint64_t sw_summary_section_self(const sw_summary_section *row);

enum sw_summary_rows {
    SW_ROWS_EACH = 0, /* one row for every path */
    SW_ROWS_FAMILIES =
        1, /* more than 8 siblings of one family (epoch_1, epoch_2 …) as one row "epoch_*" */
    SW_ROWS_FLAT =
        2 /* one row a name, whatever the path, families folded: total_ns counts outermost
                             calls only, so that recursion is counted once; ordered by self time */
};
SW_API const sw_summary_section *
sw_summary_sections(const sw_summary *summary, enum sw_summary_rows rows, size_t *count);

/* A series of values that the program gave. */
typedef struct sw_summary_counter {
    const char *name, *domain;
    uint32_t name_length;
    uint64_t count;
    double min, max, mean;
    double last; /* NaN where several threads, sections or processes differ */
} sw_summary_counter;
SW_API size_t sw_summary_counter_count(const sw_summary *summary);
SW_API const sw_summary_counter *sw_summary_get_counter(const sw_summary *summary,
                                                        size_t index);

/* Time of one phase in the steps that count. Where some were watched in brief (SW_STEP_BRIEF), what these spent in no phase that is
 * measured there is divided among the other phases as it was in the steps that were looked at in full; p99 and median of these
 * phases are over the latter. */
typedef struct sw_summary_phase {
    bool
        measured; /* some section has this phase, or time was spent in it; `other` always */
    uint64_t total_ns; /* over those steps; sums to total_ns of the steps exactly */
    uint64_t p99_ns;   /* of one step */
    uint64_t median_ns;
    double share; /* multiples of 2^-32 that sum to 1 exactly */
} sw_summary_phase;

/* A slow step and why it was slow. */
typedef struct sw_summary_worst {
    uint64_t step, ns;
    /* The one that grew most against the median step; SW_PHASE_COUNT: not known, for it was watched in brief. Then both
     * times are SW_UNKNOWN. */
    unsigned phase;
    uint64_t phase_ns, usual_ns;
    const char *why;
    sw_step_io io; /* of this step; all SW_UNKNOWN: not read at it, or for too many */
} sw_summary_worst;
#define SW_SUMMARY_WORST 5

/* Steps of one thread. `count` includes incomplete and warm-up steps, and one that was still open. The
 * figures below `counted` are over complete steps outside the warm-up. Warm-up is what the schedule says,
 * and, in runs of at least 5 steps, leading steps that are slow against the rest (the median and five times the spread, a
 * fifth of the median at least, and longer than nine in ten): among the first tenth of the steps, at most 10, or with
 * compilation in them. When step records were given up (`thinned`), the figures cover all complete
 * steps, warm-up included, from totals that are kept for every step. */
typedef struct sw_summary_steps {
    uint64_t count, incomplete, updates, warmup;
    int unit; /* enum sw_step_unit; -1: unknown */
    bool thinned;
    uint64_t records; /* step records present */
    uint64_t counted;
    uint64_t
        looked; /* of `counted`, those that were looked at in full: all, or but for those that were watched in brief. Where `thinned`
                 * an estimate; SW_UNKNOWN: no record is there to tell */
    uint64_t brief; /* of `count`, those that were watched in brief */
    uint64_t total_ns, min_ns, max_ns, p50_ns, p90_ns, p99_ns;
    double mean_ns, std_ns; /* std: of the sample, NaN below 2 steps */
    double steps_per_s;     /* 1 / mean */
    double samples_per_s;   /* NaN: the batch size is not known */
    sw_summary_phase phase[SW_PHASE_COUNT];
    sw_summary_worst worst[SW_SUMMARY_WORST];
    size_t worst_count;
    uint32_t pid;
    const char *thread, *domain;
} sw_summary_steps;
/* NULL when the run has no steps. */
SW_API const sw_summary_steps *sw_summary_get_steps(const sw_summary *summary);

/* A single step of the step thread. */
typedef struct sw_summary_step {
    uint64_t number;
    uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC */
    uint32_t epoch;            /* UINT32_MAX: unknown */
    bool complete, warmup;     /* it counts when complete and not warm-up */
    bool
        brief; /* of its phases only those of SW_PHASES_ALWAYS are known, `other` has the rest */
    bool epoch_first;                  /* the step before it belongs to another epoch */
    uint64_t phase_ns[SW_PHASE_COUNT]; /* sums to end_ns - begin_ns exactly */
    /* Validation and checkpoints after it, before the next step begins; no part of the step. */
    uint64_t validation_after_ns, checkpoint_after_ns;
    bool events; /* sections were recorded one by one during it */
    /* What the kernel says the thread used over the last `usage_steps` steps, this one included; 0: it was not
     * read at this step, and both are SW_UNKNOWN. */
    uint32_t usage_steps;
    uint64_t cpu_ns, run_delay_ns; /* delay: waiting for a CPU; SW_UNKNOWN */
    uint32_t involuntary;          /* context switches; 0 where usage was not read */
    uint32_t minor_faults;         /* pages taken without reading a file; the same */
    /* Memory of the process when it ended; SW_UNKNOWN: not read at this step. */
    uint64_t resident_bytes, anonymous_bytes;
    /* What the process read and wrote over the last `usage_steps` steps, as the kernel counts it: files, pipes, sockets, and the
     * recorder's own. All SW_UNKNOWN: not read at this step. */
    sw_step_io io;
} sw_summary_step;
/* All steps of the step thread whose records were kept, in order; `*count` may be 0. The caller frees them with
 * sw_summary_steps_free. */
SW_API int sw_summary_step_series(const sw_summary *summary, sw_summary_step **steps,
                                  size_t *count, sw_error_info *info);
SW_API void sw_summary_steps_free(sw_summary_step *steps); /* NULL is fine */

/* What the process of the step thread read and wrote in steps, warm-up left out. A reading of the kernel's counters at the end of
 * `step` stands for `steps` of them. */
typedef struct sw_summary_io_step {
    uint64_t step, steps;
    sw_step_io io;
} sw_summary_io_step;
SW_API const sw_summary_io_step *sw_summary_io_steps(const sw_summary *summary,
                                                     size_t *count);
/* For one step; quantiles and the most are over readings. */
typedef struct sw_summary_io_stats {
    uint64_t total; /* over all readings */
    double mean, p50, p99, max;
} sw_summary_io_stats;
enum sw_summary_io_field {
    SW_SUMMARY_READ_BYTES,
    SW_SUMMARY_WRITTEN_BYTES,
    SW_SUMMARY_READ_CALLS,
    SW_SUMMARY_WRITE_CALLS
};
/* NULL: nothing was read. */
SW_API const sw_summary_io_stats *sw_summary_get_io_stats(const sw_summary *summary,
                                                          enum sw_summary_io_field field);

/* Every thread that had steps, the step thread first. */
typedef struct sw_summary_step_thread {
    uint32_t pid;
    const char *thread, *domain;
    uint64_t count, incomplete, updates, total_ns; /* total: complete steps */
    /* Of the complete ones, those that were watched in brief; where records were given up, as much of all as of those that are there. */
    uint64_t brief, brief_ns;
} sw_summary_step_thread;
SW_API size_t sw_summary_step_thread_count(const sw_summary *summary);
SW_API const sw_summary_step_thread *sw_summary_get_step_thread(const sw_summary *summary,
                                                                size_t index);

/* An epoch of the step thread. */
typedef struct sw_summary_epoch {
    uint32_t epoch;
    uint64_t steps;
    uint64_t ns; /* from the beginning of its first step to the end of its last */
    uint64_t
        first_batch_ns; /* data_wait of its first step; SW_UNKNOWN where that is not measured */
} sw_summary_epoch;
SW_API size_t sw_summary_epoch_count(const sw_summary *summary);
SW_API const sw_summary_epoch *sw_summary_get_epoch(const sw_summary *summary,
                                                    size_t index);

/* A part of the run's duration; the parts sum to it exactly. */
typedef struct sw_summary_part {
    const char *part;
    uint64_t ns;
    double share; /* multiples of 2^-32 that sum to 1 exactly */
} sw_summary_part;
SW_API size_t sw_summary_part_count(const sw_summary *summary);
SW_API const sw_summary_part *sw_summary_get_part(const sw_summary *summary,
                                                  size_t index);

/* What the tables of training say; never NULL. Owned by the summary. */
SW_API const sw_training *sw_summary_training(const sw_summary *summary);
/* Calls on files and sockets of all processes; NULL: they were not watched. Owned by the summary. */
SW_API const sw_io *sw_summary_io(const sw_summary *summary);
/* Memory of all processes, and allocations where they were counted. Never NULL; owned by the summary. */
SW_API const sw_memory *sw_summary_memory(const sw_summary *summary);
/* The loader that feeds the steps; NULL: none was recorded. */
SW_API const sw_training_loader *sw_summary_main_loader(const sw_summary *summary);
/* The share of the steps' time that is spent in asking it: data_wait, and without workers also preprocess, augment and
 * collate, which happen there. NaN: not measured. */
SW_API double sw_summary_wait_share(const sw_summary *summary);
/* How many complete steps there were, and how long they took, over all processes (ranks). */
SW_API void sw_summary_all_steps(const sw_summary *summary, uint64_t *count,
                                 uint64_t *total_ns);
/* The same of those that were looked at in full: what the calls and times of modules are to be compared with, for in the others
 * they were not seen. */
SW_API void sw_summary_looked_steps(const sw_summary *summary, uint64_t *count,
                                    uint64_t *total_ns);

/* What recording cost: the number of section ends and records, times what the recorder measured at its
 * start that one costs. Percent of the time that was recorded, summed over threads and processes. */
typedef struct sw_summary_overhead {
    double percent, low, high; /* NaN: not calibrated */
    double seconds;
    double
        helper_cpu_s; /* CPU time of the recorder's own thread, not part of `seconds` */
    uint64_t calls;   /* section ends */
    uint64_t events;  /* records attempted: present + overwritten + dropped */
    uint64_t dropped, overwritten;
    const char *how;
} sw_summary_overhead;
SW_API const sw_summary_overhead *sw_summary_get_overhead(const sw_summary *summary);

/* What samplers saw in all processes; NULL when none ran. Owned by the summary. */
SW_API const sw_stacks *sw_summary_stacks(const sw_summary *summary);

/* What monitors saw, process by process, that of the step thread first; NULL past the last. Owned by the summary. */
SW_API const sw_monitor *sw_summary_monitor(const sw_summary *summary, size_t index);

/* The GPUs that monitors watched; never NULL. Owned by the summary. */
SW_API const sw_gpus *sw_summary_gpus(const sw_summary *summary);

/* The exact profiles of all processes, as sw_functions_of_run and sw_lines_of_run give them; NULL when none ran or counted
 * anything. Owned by the summary. The lines are not const, for their sources are read when they are asked for. */
SW_API const sw_functions *sw_summary_functions(const sw_summary *summary);
SW_API sw_lines *sw_summary_lines(const sw_summary *summary);

/* What was lost or could not be recorded or read, one sentence each; NULL past the last. */
SW_API const char *sw_summary_note(const sw_summary *summary, size_t index);
/* Adds a note (copied). For callers that know of a loss the files do not show. */
SW_API int sw_summary_add_note(sw_summary *summary, const char *text);

#ifdef __cplusplus
}
#endif
#endif
