/* A run that was opened, as the objects over it share it: the traces, the summary once somebody asked, and what tables
 * keep. It knows nothing of Python, so that streams of it may be read and given back by any thread, with the GIL or
 * without. Whoever holds a reference may call; the lock makes the calls one after the other, for cursors correct the
 * counts of the trace they walk. Nobody who holds the lock waits for the GIL. */
#ifndef STEPWATCH_EXT_SOURCE_H
#define STEPWATCH_EXT_SOURCE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/analyze.h>
#include <stepwatch/error.h>
#include <stepwatch/findings.h>
#include <stepwatch/trace.h>

/* Tables of a run; their descriptions stand in `core_tables` in this order. */
enum core_table_number {
    CORE_TABLE_SECTIONS,
    CORE_TABLE_STEPS,
    CORE_TABLE_COUNTERS,
    CORE_TABLE_MARKS,
    CORE_TABLE_SPANS,
    CORE_TABLE_SAMPLES,
    CORE_TABLE_THREADS,
    CORE_TABLE_FUNCTIONS,
    CORE_TABLE_LINES,
    CORE_TABLE_STACKS,
    CORE_TABLE_MODULES,
    CORE_TABLE_LOADERS,
    CORE_TABLE_STAGES,
    CORE_TABLE_BATCHES,
    CORE_TABLE_COMPILATIONS,
    CORE_TABLE_WAITS,
    CORE_TABLE_SITES,
    CORE_TABLE_SETTINGS,
    CORE_TABLE_OPERATORS,
    CORE_TABLE_EPOCHS,
    CORE_TABLE_FILES,
    CORE_TABLE_MONITOR,
    CORE_TABLE_MONITOR_VALUES,
    CORE_TABLE_MEMORY,
    CORE_TABLE_ALLOCATIONS,
    CORE_TABLES
};

typedef struct core_source {
    uint32_t references; /* atomic */
    pthread_mutex_t lock;
    sw_run *run; /* NULL: nothing was recorded, and every table is empty */
    sw_trace **traces;
    size_t trace_count;
    sw_summary *summary;        /* NULL until asked for */
    sw_findings *findings;      /* NULL until asked for */
    void *made[CORE_TABLES];    /* what a table's `prepare` made */
    uint64_t rows[CORE_TABLES]; /* counted rows; UINT64_MAX: not counted yet */
} core_source;

/* Opens a run; `path` NULL gives the source of nothing. 0 or a negative sw_error. */
int core_source_open(core_source **out, const char *path, sw_error_info *info);
core_source *core_source_retain(core_source *source);
void core_source_release(core_source *source); /* NULL is fine */

void core_source_lock(core_source *source);
void core_source_unlock(core_source *source);

/* The summary, made at the first call. The lock must be held, and the source be of something. */
int core_source_summary(core_source *source, sw_error_info *info);
/* What is wrong with it, likewise; the summary must be there. */
int core_source_findings(core_source *source, sw_error_info *info);

#endif
