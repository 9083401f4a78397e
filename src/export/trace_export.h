/* Traces for other tools: what the parts of the exporter share.
 *
 * Records come from one cursor in the order of their ends and are written one by one; nothing is kept of them. What is kept is
 * a table of processes and threads, and of each thread the intervals into which a later one must not cut: slices of one track
 * have to nest, and steps, sections, other records and other domains of a thread need not.
 *
 * Glossary: a *track* is what a viewer draws as one thread. A *fit* is an interval of a track that no later event was put
 * around yet. */
#ifndef SW_EXPORT_TRACE_EXPORT_H
#define SW_EXPORT_TRACE_EXPORT_H

#include <stepwatch/export.h>
#include <stepwatch/trace.h>
#include <stepwatch/write.h>

/* Invariant of `fits`: in the order of time, disjoint; at most SW__TRACK_FITS. Those of one `class` that stand together may be
 * joined when there are too many: they are siblings. */
#define SW__TRACK_FITS 32768u
struct sw__fit {
    uint64_t begin, end;
    uint64_t inner; /* end of the last event inside; `begin` without */
    uint32_t class;
};

struct sw__track {
    uint64_t pid, tid;
    const char *name; /* of the thread */
    const char *note; /* said behind its name; NULL: nothing */
    size_t place;     /* of its thread among those of the process */
    struct sw__fit *fits;
    size_t fit_count, fit_room;
    struct sw__track *same;     /* stands for this one; NULL: itself */
    struct sw__track *overflow; /* for what does not nest here; NULL: none yet */
    struct sw__track *next;     /* of those that were made on the way */
    bool named;                 /* its metadata are written */
    bool operators;             /* what the framework's profiler saw of a thread */
    uint64_t operators_of;      /* the kernel's number of that thread; 0: not known */
    uint64_t last_ns;           /* end of the last section or operator on it */
    uint64_t *pending; /* ids that calls will have which are still going on, by depth */
    size_t pending_room;
};

struct sw__trace_process {
    sw_trace *trace;
    size_t index; /* in the run */
    uint64_t pid;
    int64_t shift_ns;         /* what leads from its clock to that of the whole */
    struct sw__track *tracks; /* by position of the thread */
    size_t track_count;
    struct sw__known_thread {
        uint64_t tid;
        size_t at;
    } * numbers; /* threads in the order of the kernel's numbers; as many */
    struct sw__track *batches, *sending; /* of a loader; NULL: none yet */
    const sw_trace_lane **lanes; /* of the default domain, by position of the thread */
    uint8_t *modules;            /* bit: the name is the section of a module */
    uint32_t name_limit;
    bool named;
    bool allocations;  /* those of the framework's allocator are there, one by one */
    uint64_t resident; /* bytes, at the last step that knows */
    struct sw__trace_series {
        uint32_t id, unit;
        bool total; /* a sum, of which the growth is shown; its last value: */
        bool known;
        uint64_t ns;
        double value;
    } * series; /* of the monitor, by id */
    size_t series_count;
};

/* One end of an arrow that waits for the other. */
struct sw__flow_end {
    uint64_t key, number; /* of what; number is that of autograd or of the driver */
    uint64_t begin_ns;    /* of the slice, on its process's clock */
    uint64_t pid, tid;
};
/* The newest of each kind, by number: what waits longer than that many others is given up. */
#define SW__FLOW_ENDS 16384u
enum sw__flow_kind { SW__FLOW_FORWARD, SW__FLOW_LAUNCH, SW__FLOW_WORK, SW__FLOW_KINDS };

/* What was written, to say what was not. */
struct sw__trace_counts {
    uint64_t events, steps, bare_steps, sections, operators, gpu, unfinished;
};

struct sw__trace_window {
    uint64_t begin, end;
};

struct sw__trace_export {
    sw_writer *writer;
    const sw_run *run;
    const sw_trace_options *options;
    bool kineto;
    struct sw__trace_process *processes; /* those of the part that is written */
    sw_trace **traces;                   /* the same, as a cursor takes them */
    size_t count;
    sw_trace_part part;
    uint64_t origin_ns, origin_real_ns;
    uint64_t from_ns, to_ns;          /* the window, on the clock of the whole */
    struct sw__trace_window *windows; /* within it, one for each stretch of steps */
    size_t window_count;
    bool shifted;           /* some process has another clock */
    struct sw__track *made; /* tracks that no thread stands for */
    uint64_t next_tid;
    uint64_t next_id; /* "External id" */
    uint64_t next_python_id, next_async, next_flow;
    struct sw__flow_end *flow_ends[SW__FLOW_KINDS]; /* NULL: none yet */
    struct sw__track *devices[64]; /* streams, where those of several processes meet */
    size_t device_count;
    char backend[32]; /* "gloo:", as collectives are called after it */
    struct sw__trace_counts counts;
    bool begun;
    int error; /* SW_ENOMEM */
};

/* trace_parts.c: which processes belong together, and the window of the chosen steps. */
int sw__trace_choose(struct sw__trace_export *it, sw_error_info *info);
int sw__trace_window(struct sw__trace_export *it, sw_error_info *info);
/* Whether what lies within the window lies within one of the stretches too. */
bool sw__trace_in_stretch(const struct sw__trace_export *it, uint64_t begin,
                          uint64_t end);

/* trace_threads.c */
int sw__trace_tracks(struct sw__trace_export *it);
/* The track of the thread with that number; NULL: there is none. */
struct sw__track *sw__track_of_thread(struct sw__trace_process *process, uint32_t index);
/* That of the thread which the kernel knows by a number. */
struct sw__track *sw__track_of_number(struct sw__trace_process *process, uint64_t tid);
/* The track itself, or the one that it is shown on. */
struct sw__track *sw__track_shown(struct sw__track *track);
/* The series of the monitor with that name; NULL: there is none. */
struct sw__trace_series *sw__trace_series_of(struct sw__trace_process *process,
                                             uint32_t id);

/* trace_tracks.c */
void sw__trace_tracks_free(struct sw__trace_export *it);
/* A track of its own. NULL when out of memory, which the exporter remembers. */
struct sw__track *sw__track_make(struct sw__trace_export *it, uint64_t pid,
                                 const char *name, const char *note);
/* The track on which [begin, end] nests: `track` or one of those that take what does not; its names are written. NULL: there is
 * none, or no memory. */
struct sw__track *sw__track_place(struct sw__trace_export *it,
                                  struct sw__trace_process *process,
                                  struct sw__track *track, uint64_t begin, uint64_t end,
                                  uint32_t class);
/* Writes who the track is, unless that was done. */
void sw__track_name(struct sw__trace_export *it, struct sw__trace_process *process,
                    struct sw__track *track);

/* trace_events.c: one record. */
void sw__trace_event(struct sw__trace_export *it, const sw_event *event);
/* Sections that were open at the last sign of life. */
void sw__trace_unfinished(struct sw__trace_export *it);

/* The numbers by which tools of Kineto's tell events apart. `external`: that of the framework's profiler, 0 none. */
void sw__trace_put_ids(struct sw__trace_export *it,
                       const struct sw__trace_process *process, uint64_t external);

/* A number of the framework's profiler, as no other process of the trace has it; 0: none. */
uint64_t sw__trace_external(const struct sw__trace_export *it,
                            const struct sw__trace_process *process, uint64_t external);

/* trace_records.c: those that are neither steps nor sections. */
void sw__trace_record(struct sw__trace_export *it, struct sw__trace_process *process,
                      struct sw__track *track, const sw_event *event);

/* trace_operators.c: what a framework's profiler saw. */
void sw__trace_operator(struct sw__trace_export *it, struct sw__trace_process *process,
                        struct sw__track *track, uint64_t tid, const sw_event *event);
void sw__trace_gpu(struct sw__trace_export *it, struct sw__trace_process *process,
                   struct sw__track *track, const sw_event *event);
void sw__trace_allocation(struct sw__trace_export *it, struct sw__trace_process *process,
                          struct sw__track *track, const sw_event *event);
void sw__trace_flows_free(struct sw__trace_export *it);

/* trace_samples.c: a look at a stack. */
void sw__trace_sample(struct sw__trace_export *it, struct sw__trace_process *process,
                      const sw_event *event);

/* trace_write.c: the pieces of an event. An event is begun, may get arguments, and is ended. */
struct sw__slice {
    const char *name;
    size_t length;               /* of the name */
    const char *prefix, *suffix; /* around the name; NULL: nothing */
    const char *category;
    uint64_t pid, tid;
    uint64_t begin_ns, end_ns; /* of the process's clock */
};
/* On a track where it nests, which `pid` and `tid` of the slice become; as an event beside the tracks where there is none: false. */
bool sw__slice_begin(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, struct sw__slice *slice, uint32_t class);
/* Any other kind of event, "i", "C" or "M", on the track that the slice says. */
void sw__moment_begin(struct sw__trace_export *it,
                      const struct sw__trace_process *process, const char *ph,
                      const struct sw__slice *slice);
/* An arrow from the begin of one slice to that of another; both are written. */
void sw__trace_put_flow(struct sw__trace_export *it,
                        const struct sw__trace_process *process, const char *name,
                        const struct sw__flow_end *from, const struct sw__flow_end *to);
void sw__event_args(struct sw__trace_export *it); /* "args": { */
void sw__event_end(struct sw__trace_export *it, bool args);
/* Text of a name, never NULL. */
struct sw__slice sw__slice_of_name(const sw_trace *trace, uint32_t id);
/* A value that was recorded as JSON, an object or an array as `first` says. False: it is none, and nothing was written. */
bool sw__trace_put_raw(struct sw__trace_export *it, const char *text, size_t length,
                       char first);
void sw__trace_begin(struct sw__trace_export *it); /* the document, up to the events */
void sw__trace_end(struct sw__trace_export *it);

/* trace_missing.c: the member "stepwatch" of the document. */
void sw__trace_put_about(struct sw__trace_export *it);

#endif
