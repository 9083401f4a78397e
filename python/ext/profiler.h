/* stepwatch.Profiler: statistics of named sections, live, without a recording.
 *
 *   profiler.c          the type: its settings, its methods
 *   profiler_section.c  a section of it: a context manager and a decorator
 *   profiler_calls.c    what is open on which thread, and what a call that ends adds
 *   profiler_stats.c    what is kept of a section: sums, extremes, quantiles, the newest values
 *   profiler_rows.c     the statistics as Python sees them
 *   profiler_loops.c    steps and waits for batches
 *   profiler_recording.c  a recording that it starts, with its options
 *
 * Glossary: a *section* is a name; a *call* is one time it was open; a *path* is a section with those it was called
 * from, each of them once: a call within a call of the same section is *recursive* and counts for the outer one's path.
 * An *entry* is a call that is open.
 *
 * One lock guards all that changes. Nothing of Python is called while it is held: a destructor may end a call. */
#ifndef STEPWATCH_EXT_PROFILER_H
#define STEPWATCH_EXT_PROFILER_H

#include "core.h"
#include "section.h"
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/histogram.h>

/* --- profiler_stats.c: with the lock --- */

/* Until there are more calls than this their durations are kept as they are. */
#define PROFILER_FEW 8

/* Times in ns. total counts no recursive calls, all else does: self <= total in sum over a thread's sections. */
typedef struct profiler_stats {
    uint64_t calls, recursive, errors;
    uint64_t total, self;
    uint64_t min, max, last;
    double mean, m2; /* of the durations of all calls */
    uint64_t few[PROFILER_FEW];
    sw_histogram *histogram; /* NULL: they are in `few` */
    /* Of the calls whose memory was looked at. */
    uint64_t looked, exact;
    int64_t memory; /* sum of changes of what is resident */
    uint64_t peak,
        peak_rss; /* most of one call beyond its begin; most that was resident */
} profiler_stats;

void profiler_stats_add(profiler_stats *stats, uint64_t ns, uint64_t count);
void profiler_stats_merge(profiler_stats *into, const profiler_stats *from);
uint64_t profiler_stats_quantile(const profiler_stats *stats, double q);
void profiler_stats_clear(profiler_stats *stats);

/* The newest numbers, `most` at most. */
typedef struct profiler_ring {
    int64_t *items;
    size_t room, count, next;
} profiler_ring;

void profiler_ring_put(profiler_ring *ring, int64_t item, size_t most);
/* The i-th of them, the oldest first. */
int64_t profiler_ring_get(const profiler_ring *ring, size_t i);
void profiler_ring_clear(profiler_ring *ring);

/* --- The objects --- */

typedef struct profiler_object profiler_object;

typedef struct profiler_section {
    PyObject_HEAD vectorcallfunc call;
    profiler_object *profiler; /* a reference */
    PyObject *name;            /* exactly a str */
    PyObject *category;        /* a str, or None */
    PyObject *weak;
    sw_section *handle; /* of the recorder; NULL until something is recorded */
    int phase;          /* enum sw_phase, or SW_PHASE_INHERIT */
    unsigned open;      /* calls of it that are open, on all threads; atomic */
    /* With the lock. */
    uint64_t order; /* of its first call among all sections' */
    uint32_t last_parent, last_node;
    profiler_stats stats;
    profiler_ring values, memory;
} profiler_section;

/* A path. Node 0 stands for the program, node 1 for all paths beyond the last that there is room for. */
typedef struct profiler_node {
    uint32_t parent;
    profiler_section *section; /* lives as long as the profiler; NULL: nodes 0 and 1 */
    profiler_stats stats;
} profiler_node;

typedef struct profiler_entry profiler_entry;
typedef struct profiler_stack profiler_stack;

struct profiler_object {
    PyObject_HEAD PyObject *name;
    PyObject *weak;
    core_state *state;  /* of the module, which its type keeps */
    PyObject *sections; /* dict: name -> section, for as long as the profiler lives */
    PyObject *series;   /* dict: name -> list of (seconds, value) */
    PyObject *marks;    /* list of (seconds, text) */
    PyObject *options;  /* dict: of recordings that it starts; NULL: none */
    unsigned long recording; /* the number of the one that it started; 0: none */
    size_t most_values;
    bool enabled, memory; /* read at each call */
    uint64_t id;          /* never used again */
    sw_section *gate;     /* tells whether something is recorded; never entered */
    uint64_t started_ns;  /* UNIX time */
    uint64_t started_tick;
    bool closed;
    double elapsed_s; /* when it was closed */
    pthread_mutex_t lock;
    /* With the lock. */
    double tick_ns; /* length of a tick, and when to measure it again */
    uint64_t measure_at;
    uint64_t serial; /* of the newest entry */
    uint64_t orders;
    profiler_node *nodes;
    uint32_t node_count, node_room;
    uint32_t *table; /* node numbers by parent and section; 0: free */
    size_t table_size;
    profiler_stack *stacks;
    profiler_entry *free_entries, *all_entries;
};

/* The section of a name in this profiler. `category` and `phase` are Python objects; None keeps what it has. New
 * reference. */
PyObject *profiler_section_get(profiler_object *self, PyObject *name, PyObject *category,
                               PyObject *phase);
/* As above with a name of ours. Borrowed: the profiler keeps it. NULL with an exception. */
profiler_section *profiler_section_named(profiler_object *self, const char *name);
/* The family of a name ("epoch_*"), else `otherwise`. New reference. NULL with an exception. */
PyObject *profiler_family(PyObject *name, PyObject *otherwise);
/* What a new name is called in a dict that does not grow without end: itself, its family, or "(more)". Likewise. */
PyObject *profiler_name_kept(PyObject *dict, PyObject *name);
int profiler_section_add(PyObject *module);
int profiler_loops_add(PyObject *module);

/* --- profiler_calls.c --- */

/* Which call it is that ends. */
typedef struct profiler_key {
    const void
        *where; /* the frame, or another address that is the call's own while it lasts */
    bool suspends; /* other calls may begin and end meanwhile: a generator, a coroutine */
} profiler_key;

int profiler_calls_init(profiler_object *self);
void profiler_calls_free(profiler_object *self);

/* Opens a call, whether or not the profiler is enabled. `record`: also in the recording, if there is one. */
void profiler_enter(profiler_section *section, profiler_key key, bool record);
/* Closes it; nothing where none is open. `flags`: SW_RECORD_ERROR. */
void profiler_leave(profiler_section *section, profiler_key key, unsigned flags);
/* Forgets it, as if it had not begun. */
void profiler_forget(profiler_section *section, profiler_key key);
/* For a call that runs in stretches, each between an enter and one of these; `*spent` adds them up. */
void profiler_suspend(profiler_section *section, profiler_key key, uint64_t *spent);
void profiler_finish(profiler_section *section, profiler_key key, unsigned flags,
                     uint64_t *spent);
/* A measurement taken elsewhere: `count` calls that took `ns` together. */
void profiler_put(profiler_section *section, uint64_t ns, uint64_t count);
/* With the lock, and the sections' own statistics cleared: there are no paths. What is open counts from now on. */
void profiler_calls_reset(profiler_object *self);
/* With the lock: nothing is open and there are no paths. */
void profiler_calls_drop(profiler_object *self);

static inline bool profiler_is_open(profiler_section *section)
{
    return __atomic_load_n(&section->open, __ATOMIC_RELAXED) != 0;
}
static inline bool profiler_is_enabled(const profiler_object *self)
{
    return __atomic_load_n(&self->enabled, __ATOMIC_RELAXED);
}

/* --- profiler_rows.c --- */

PyObject *profiler_rows(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *profiler_paths(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *profiler_row(PyObject *self, PyObject *name);
PyObject *profiler_count(PyObject *self, PyObject *name);
PyObject *profiler_values(PyObject *self, PyObject *name);
PyObject *profiler_memory_values(PyObject *self, PyObject *name);

/* --- profiler_loops.c --- */

PyObject *profiler_data(PyObject *self, PyObject *args, PyObject *kwargs);
PyObject *profiler_steps(PyObject *self, PyObject *iterable);
PyObject *profiler_step(PyObject *self, PyObject *ignored);

/* --- profiler_recording.c --- */

/* Two new dicts: what is the profiler's own, and options of a recording. 0, or -1 with an exception; the caller lets go of them in
 * both cases. */
int profiler_recording_split(PyObject *kwargs, PyObject **own, PyObject **options);
PyObject *profiler_start(PyObject *object, PyObject *args, PyObject *kwargs);
PyObject *profiler_stop(PyObject *object, PyObject *ignored);
PyObject *profiler_record(PyObject *object, PyObject *args, PyObject *kwargs);
int profiler_recording_add(PyObject *module);

#endif
