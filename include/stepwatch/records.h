/* The records of a trace, as they lie in the file (docs/FORMAT.md, "Records").
 *
 * Glossary: a *record* is what one thread wrote at one moment; it is one or more units of 32 bytes.
 * *ticks* are raw readings of the clock of the file; a timeline converts them. An *id* is the number
 * of a name defined in the file; 0 is "no name". A *node* is the index of a node of the
 * thread's call tree in the record's domain; 0 is the root.
 *
 * All integers are little-endian. A reader skips kinds and flags that it does not know. */
#ifndef STEPWATCH_RECORDS_H
#define STEPWATCH_RECORDS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_RECORD_UNIT 32

/* Number and name of every kind of record. */
#define SW_RECORD_TABLE(X)                                                               \
    X(1, SPAN, "span")                                                                   \
    X(2, COUNTER, "counter")                                                             \
    X(3, MARK, "mark")                                                                   \
    X(4, STEP, "step")                                                                   \
    X(5, BATCH, "batch")                                                                 \
    X(6, SITE, "site")                                                                   \
    X(7, SAMPLE, "sample")                                                               \
    X(8, COMPILE, "compile")                                                             \
    X(9, GC, "gc")                                                                       \
    X(10, SYNC, "sync")                                                                  \
    X(11, XFER, "xfer")                                                                  \
    X(12, COLLECTIVE, "collective")                                                      \
    X(13, ALLOC, "alloc")                                                                \
    X(14, IO, "io")                                                                      \
    X(15, MONITOR, "monitor")                                                            \
    X(16, GPU, "gpu")                                                                    \
    X(17, LOOK, "look")

enum sw_record_kind {
    SW_RECORD_NONE = 0,
#define SW_RECORD_ENUM(number, name, text) SW_RECORD_##name = number,
    SW_RECORD_TABLE(SW_RECORD_ENUM)
#undef SW_RECORD_ENUM
        SW_RECORD_KINDS
};

/* Flags that mean the same in every kind. */
#define SW_RECORD_INTERVAL                                                               \
    0x0001                     /* `end` follows `ticks`: the record covers [ticks, end] */
#define SW_RECORD_ERROR 0x0002 /* it ended by an error or an exception */
#define SW_RECORD_UNNESTED 0x0004 /* the span does not nest: inclusive time only */
#define SW_RECORD_CUT 0x0008 /* recording ended before it did: `end` is that moment */
#define SW_RECORD_PART                                                                   \
    0x0010 /* SPAN: one stretch of a call that goes on later (a generator between two items);              \
              the call is counted with its last stretch, which has not this flag */

/* Every record begins with this. */
typedef struct sw_record {
    uint8_t kind;   /* enum sw_record_kind */
    uint8_t units;  /* length in units of 32 bytes, at least 1 */
    uint16_t flags; /* SW_RECORD_… */
    uint32_t id;    /* name, see the kind */
    uint64_t ticks; /* when, or when it began */
} sw_record;

/* A section that ended. id: the section. */
typedef struct sw_record_span {
    sw_record head;
    uint64_t end;
    uint32_t node;
    uint16_t depth; /* sections open around it on its thread and domain */
    uint16_t domain;
} sw_record_span;

/* What a framework's profiler tells of a call: a span of 2 units with SW_SPAN_OPERATOR. Names are those of JSON texts. */
#define SW_SPAN_OPERATOR 0x0100
#define SW_SPAN_BACKWARD 0x0200   /* a node of autograd's graph that runs backward */
#define SW_SPAN_ANNOTATION 0x0400 /* no operator: what the framework says around some */
#define SW_SPAN_RUNTIME 0x0800    /* no operator: a call of the device's runtime */
typedef struct sw_record_operator {
    sw_record_span span;
    uint64_t
        external; /* the number by which work that it launched speaks of it; 0 none. RUNTIME: that of the operator around */
    uint64_t
        sequence; /* autograd's number: a forward and its backward have the same; UINT64_MAX none */
    uint32_t
        correlation; /* RUNTIME: the same as of the GPU record that it launched; 0 none */
    uint32_t forward; /* BACKWARD: number of the thread that ran forward; 0 unknown */
    uint32_t shapes;  /* name id: "[[4, 8], []]", of each input; 0 unknown */
    uint32_t types;   /* name id: "[\"float\", \"\"]" */
} sw_record_operator;

/* A counter took a value (COUNTER: from the program; MONITOR: from a watcher). id: the series. A series of MONITOR keeps
 * its value until its next record, or until a LOOK that begins a stretch; NaN: it is not known any more. */
typedef struct sw_record_counter {
    sw_record head;
    double value;
    uint32_t node;
    uint16_t domain;
    uint16_t reserved;
} sw_record_counter;

/* The monitor looked. The MONITOR records after it with the same ticks are what it saw. id: 0. What the training thread
 * was doing at that moment is here too; `depth` sections follow that were open on it, outermost first, at most
 * SW_LOOK_FRAMES. A moment that lies before the last look means that the whole time between was spent so. */
typedef struct sw_record_look {
    sw_record head;
    uint64_t step;   /* number of the open step; UINT64_MAX: none */
    uint32_t thread; /* index of the training thread; UINT32_MAX: none is known */
    uint8_t phase;   /* enum sw_phase; SW_PHASE_INHERIT outside steps */
    uint8_t depth;
    uint8_t edge; /* SW_LOOK_… */
    uint8_t reserved;
    uint64_t step_start; /* ticks; 0: unknown, like that of the phase */
    uint64_t phase_start;
    uint64_t
        sources; /* that were asked since the look written before: bits, SOURCE key 3 */
    uint64_t reserved2;
} sw_record_look;
typedef struct sw_look_frame {
    uint32_t node;
    uint32_t section; /* name id */
    uint64_t start;   /* ticks */
} sw_look_frame;
#define SW_LOOK_FRAMES 12
#define SW_LOOK_FIRST 0x01 /* the monitor started: nothing is known of the time before */
#define SW_LOOK_LAST 0x02  /* it stopped */
#define SW_LOOK_ASKED 0x04 /* the program asked for it, beside the period */

/* Something worth a line in the timeline. id: its text. */
typedef struct sw_record_mark {
    sw_record head;
    uint64_t reserved;
    uint32_t node;
    uint16_t domain;
    uint16_t reserved2;
} sw_record_mark;

/* Phases of a step, in the order of the STEP record's table. */
#define SW_PHASE_TABLE(X)                                                                \
    X(0, OTHER, "other")                                                                 \
    X(1, DATA_WAIT, "data_wait")                                                         \
    X(2, H2D, "h2d")                                                                     \
    X(3, PREPROCESS, "preprocess")                                                       \
    X(4, AUGMENT, "augment")                                                             \
    X(5, COLLATE, "collate")                                                             \
    X(6, FORWARD, "forward")                                                             \
    X(7, LOSS, "loss")                                                                   \
    X(8, BACKWARD, "backward")                                                           \
    X(9, OPTIMIZER, "optimizer")                                                         \
    X(10, ZERO_GRAD, "zero_grad")                                                        \
    X(11, COMMUNICATION, "communication")                                                \
    X(12, SYNC, "sync")                                                                  \
    X(13, LOGGING, "logging")                                                            \
    X(14, GC, "gc")                                                                      \
    X(15, COMPILE, "compile")                                                            \
    X(16, VALIDATION, "validation")                                                      \
    X(17, CHECKPOINT, "checkpoint")

enum sw_phase {
#define SW_PHASE_ENUM(number, name, text) SW_PHASE_##name = number,
    SW_PHASE_TABLE(SW_PHASE_ENUM)
#undef SW_PHASE_ENUM
        SW_PHASE_COUNT,
    SW_PHASE_SLOTS = 20, /* room in the record */
    /* Of a sample alone: in a step that is watched in brief, in none of the phases that are measured there. */
    SW_PHASE_BRIEF = 254,
    SW_PHASE_INHERIT = 255 /* a section without a phase of its own */
};

/* What one step is (report.json, "unit"). */
enum sw_step_unit {
    SW_STEP_MANUAL = 0,
    SW_STEP_BATCH = 1,
    SW_STEP_UPDATE = 2,
    SW_STEP_LOOP = 3
};

#define SW_STEP_INCOMPLETE 0x0100 /* left by break, or recording ended */
#define SW_STEP_WARMUP 0x0200     /* the schedule's warm-up */
#define SW_STEP_EVENTS 0x0400     /* events were recorded during it */
#define SW_STEP_BRIEF                                                                    \
    0x0800 /* watched in brief: of its phases only those of SW_PHASES_ALWAYS are known, `other` has the rest */
/* Phases that are measured in every step, also in brief ones, a bit each (1 << phase). */
#define SW_PHASES_ALWAYS                                                                 \
    (1u << SW_PHASE_DATA_WAIT | 1u << SW_PHASE_H2D | 1u << SW_PHASE_SYNC |               \
     1u << SW_PHASE_LOGGING | 1u << SW_PHASE_GC | 1u << SW_PHASE_COMPILE |               \
     1u << SW_PHASE_VALIDATION | 1u << SW_PHASE_CHECKPOINT)

/* A step that ended. The interval is always there. phase_ticks sum to end - ticks exactly. Usage
 * is what the kernel says the thread used over the last `usage_steps` steps, this one included;
 * 0 steps means that it was not read at this step and the usage fields are unknown. */
typedef struct sw_record_step {
    sw_record head; /* id: 0 */
    uint64_t end;
    uint64_t number; /* from 0, per domain */
    uint32_t epoch;  /* from 0; UINT32_MAX: unknown */
    uint16_t domain;
    uint8_t unit; /* enum sw_step_unit */
    uint8_t reserved;
    uint32_t usage_steps;
    uint32_t samples; /* sampler hits within the step */
    uint64_t cpu_ns;  /* CPU time of the thread */
    uint64_t
        run_delay_ns; /* time it was runnable and waited for a CPU; UINT64_MAX: unknown */
    uint32_t voluntary;   /* context switches */
    uint32_t involuntary; /* context switches */
    uint32_t minor_faults;
    uint32_t major_faults;
    uint64_t
        resident_bytes; /* memory of the process at the end of the step; 0: not read at it */
    uint64_t anonymous_bytes; /* of it, what no file stands behind */
    uint64_t phase_ticks[SW_PHASE_SLOTS];
} sw_record_step;
/* Follows a STEP record that is a unit longer: what the process read and wrote over the last `usage_steps` steps, as the kernel
 * counts it. UINT64_MAX: unknown. */
typedef struct sw_step_io {
    uint64_t read_bytes, written_bytes;
    uint64_t read_calls, write_calls;
} sw_step_io;
/* NULL: the record has none. */
static inline const sw_step_io *sw_step_get_io(const sw_record_step *step)
{
    const size_t units = (sizeof(*step) + sizeof(sw_step_io)) / SW_RECORD_UNIT;
    return step->head.units >= units ? (const sw_step_io *)(const void *)(step + 1)
                                     : NULL;
}

/* One batch of a data loader, from being asked for to being used. id: the loader. ticks: dispatch to
 * the worker; end: delivered to the training loop. Moments that did not happen are 0. */
typedef struct sw_record_batch {
    sw_record head;
    uint64_t end;
    uint64_t fetch_begin;
    uint64_t fetch_end;
    uint64_t put;
    uint64_t receive;
    uint64_t pin;
    uint64_t cpu_ns;
    uint64_t bytes;
    uint64_t batch; /* the id under which workers and the step speak of it */
    uint32_t epoch;
    uint32_t index;
    uint32_t worker; /* UINT32_MAX: the training process itself */
    uint32_t queue_depth;
    uint64_t step; /* the step that used it; UINT64_MAX: unknown */
    uint64_t reserved[2];
} sw_record_batch;

/* Where something was built. id: the file. what: 1 loader, 2 optimizer, 3 model. */
typedef struct sw_record_site {
    sw_record head;
    uint32_t what;
    uint32_t line;
    uint32_t object;   /* name id of the thing built */
    uint32_t function; /* name id of the function around */
} sw_record_site;

/* A look at a thread's stack. id: 0. `depth` frames follow, leaf first. */
typedef struct sw_record_sample {
    sw_record head;
    uint32_t thread; /* index of the sampled thread */
    uint32_t node;
    uint8_t phase;
    uint8_t state;   /* 'R', 'S', 'D', … of /proc, 0 unknown */
    uint8_t in_call; /* 1: inside a call into native code */
    uint8_t
        leaf_only; /* 1: the leaf alone; 2: the outer frames alone, inner ones changed meanwhile */
    uint16_t depth;
    uint16_t domain;
} sw_record_sample;
typedef struct sw_record_frame {
    uint32_t code; /* index of a row of table CODE */
    uint32_t line; /* 0: unknown */
} sw_record_frame;

/* Compiled code was made. id: the function. */
typedef struct sw_record_compile {
    sw_record head;
    uint64_t end;
    uint32_t reason; /* name id */
    uint32_t stage;  /* 0 whole, 1 trace, 2 lower, 3 back end */
    uint64_t count;  /* which compilation of this function it is, from 1 */
    uint32_t file;
    uint32_t line;
    uint64_t reserved[2];
} sw_record_compile;

/* The garbage collector ran. id: 0. */
typedef struct sw_record_gc {
    sw_record head;
    uint64_t end;
    uint32_t generation;
    uint32_t collected;
} sw_record_gc;

/* The host waited for a device. id: the call. */
typedef struct sw_record_sync {
    sw_record head;
    uint64_t end;
    uint32_t file;
    uint32_t line;
} sw_record_sync;

/* Bytes moved between host and device. id: the call. */
typedef struct sw_record_xfer {
    sw_record head;
    uint64_t end;
    uint64_t bytes;
    uint32_t direction; /* 1 host to device, 2 device to host, 3 device to device */
    uint32_t pinned;    /* 0 no, 1 yes, 2 unknown */
    uint32_t file;
    uint32_t line;
    uint64_t reserved[2];
} sw_record_xfer;

/* A collective operation. id: the operation. ticks: enqueued. */
typedef struct sw_record_collective {
    sw_record head;
    uint64_t end;
    uint64_t start;
    uint64_t bytes;
    uint64_t sequence;
    uint32_t group; /* name id */
    uint32_t ranks;
    uint64_t reserved;
} sw_record_collective;

/* Memory was taken (bytes > 0) or given back (bytes < 0). id: the site, or the allocator of a framework. */
typedef struct sw_record_alloc {
    sw_record head;
    int64_t bytes;
    uint64_t address;   /* 0 unknown */
    uint64_t weight;    /* bytes that this sampled record stands for */
    uint32_t node;      /* of a framework: the kernel's number of the thread */
    uint32_t allocator; /* of a framework: 1 of the host, 2 + N of device N; 0 none */
    uint64_t total;     /* bytes that the allocator has handed out then; 0 unknown */
    uint64_t reserved;  /* bytes that it holds */
} sw_record_alloc;

/* Number and name of what a call on a file or a socket does. */
#define SW_IO_OPERATION_TABLE(X)                                                         \
    X(1, READ, "read")                                                                   \
    X(2, WRITE, "write")                                                                 \
    X(3, OPEN, "open")                                                                   \
    X(4, SYNC, "sync") /* what was written reaches the disk: fsync and its kin */        \
    X(5, SEND, "send")                                                                   \
    X(6, RECEIVE, "receive")                                                             \
    X(7, OTHER, "other")                                                                 \
    X(8, MAP, "map") /* a file mapped into memory; bytes: of the mapping */              \
    X(9, CLOSE, "close")                                                                 \
    X(10, CONNECT, "connect")                                                            \
    X(11, ACCEPT, "accept")                                                              \
    X(12, WAIT, "wait") /* until something can be read or written: poll and its kin */   \
    X(13, RENAME, "rename") /* by the new name */

enum sw_io_operation {
#define SW_IO_ENUM(number, name, text) SW_IO_##name = number,
    SW_IO_OPERATION_TABLE(SW_IO_ENUM)
#undef SW_IO_ENUM
        SW_IO_OPERATIONS
};

/* Number and name of the kinds of things that calls are made on. */
#define SW_IO_KIND_TABLE(X)                                                              \
    X(1, FILE, "file")                                                                   \
    X(2, SOCKET, "socket")                                                               \
    X(3, PIPE, "pipe")                                                                   \
    X(4, DEVICE, "device") /* a terminal, /dev/null, … */                              \
    X(5, MORE, "other")    /* of the kernel's own, and what is not told apart */         \
    X(6, FOLDER, "folder") /* files of one folder that have no entry of their own */     \
    X(7, MODULE,                                                                         \
      "module") /* what imports read: Python's sources and byte code, libraries */

enum sw_io_kind {
#define SW_IO_ENUM(number, name, text) SW_IO_KIND_##name = number,
    SW_IO_KIND_TABLE(SW_IO_ENUM)
#undef SW_IO_ENUM
        SW_IO_KINDS
};

/* A call on a file or a socket. id: path or peer. */
typedef struct sw_record_io {
    sw_record head;
    uint64_t end;
    uint64_t bytes;
    uint64_t offset;    /* UINT64_MAX: at the position of the descriptor */
    uint32_t operation; /* enum sw_io_operation */
    int32_t result;     /* 0 or -errno */
    uint32_t node;
    uint32_t reserved;
    uint64_t reserved2;
} sw_record_io;

/* Work of a GPU, in the file's clock. id: kernel or operation. */
typedef struct sw_record_gpu {
    sw_record head;
    uint64_t end;
    uint64_t bytes;
    uint32_t device;
    uint32_t stream;
    uint32_t activity;    /* 1 kernel, 2 copy, 3 set, 4 wait */
    uint32_t correlation; /* the same as of the call that launched it; 0 unknown */
    uint64_t
        external; /* of the operator that launched it (sw_record_operator); 0 unknown */
    uint64_t reserved;
} sw_record_gpu;

/* Tables: totals that are kept whole, whatever becomes of the events. A row is 64 bytes; `index` counts the rows of its
 * table from 0 in this file. Key fields never change, values may grow in place while the program runs. Times are
 * ticks; convert durations by ns_per_tick.
 *
 *   CODE      a function. key: file (name id), qualified name (name id), first line, short name (name id). flags 1: native
 *   FUNCTION  a function's calls. key: profile, CODE index. value: calls, primitive calls (not inside itself), ticks with
 *             callees (outermost calls only), ticks without, calls that ended by an exception
 *   CALL      calls of one function by another. key: profile, CODE index of the caller (UINT32_MAX: not known), of the
 *             callee. value: as FUNCTION, of the callee when called from there
 *   LINE      a line of a function. key: profile, CODE index, line. value: hits, ticks
 *   CONTEXT   what a sampled thread was doing for the program. key: thread index, section (name id, 0 none), phase
 *             (enum sw_phase; SW_PHASE_INHERIT: outside steps; SW_PHASE_BRIEF), domain. value: samples running, samples
 *             waiting
 *   STACK     a sampled call path: a tree below a CONTEXT. key: parent (STACK index, or CONTEXT index with flag 1), CODE
 *             index, line. value: samples that ended here, running; the same, waiting; of these, inside a native call
 *   SAMPLER   the sampler itself, one row a thread of it. key: asked for, in Hz. value: looks, samples kept, of these
 *             kept in part (the leaf or the outer frames only), looks given up, ticks of CPU time
 *   PROFILE   a profile by its number (which is the row's index). key: kind (1 functions, 2 lines), name (name id). value:
 *             ticks at its start, ticks it ran in all, events seen, events lost
 *
 * Tables of training. "site" is the index of a SITE row plus 1, 0 unknown.
 *
 *   SITE      where something was built. key: what (enum sw_site_what), file (name id), line, class of the object (name
 *             id). value: the function around (name id)
 *   MODULE    a part of a model. key: section (name id: "Net.conv1"), class (name id), dtype of its own parameters (name
 *             id, 0 none), site. value: own parameters (elements), their bytes, trainable ones, ticks of its backward
 *             where that was measured, and how many times it was. flags 1: root of a model, 2: a loss
 *   LOADER    a data loader. key: name (name id), class of the dataset (name id), workers, batch size (0 unknown). value:
 *             SW_LOADER_… bits, prefetch factor, samples of the dataset (UINT64_MAX unknown), passes begun, site
 *   STAGE     a stage of producing batches. key: loader (name id), worker (UINT32_MAX: the training process), kind (enum
 *             sw_stage_kind), stage (name id). value: calls, ticks, ns of CPU time (0 unknown), shortest and longest
 *             call in ticks
 *   COMPILED  compilations of one function for one reason. key: function, reason, file (name ids), line. value:
 *             compilations, ticks in all, of these ticks tracing, lowering, in the back end. flags 1: not the
 *             first of the function
 *   WAIT      the program waits for a device at one place. key: call, file (name ids), line, kind (enum sw_wait_kind).
 *             value: calls, ticks, bytes, longest call in ticks, calls with pinned memory. flags 1: some calls asked not
 *             to wait (non_blocking)
 *   SETTING   a setting of the framework. key: what, name, value as text (name ids). value: as a number (bits of an
 *             IEEE 754 double; NaN, or 0 beside a text: none)
 *   OPERATOR  an operator of the framework, as its own profiler saw it. key: name, shapes (name ids), phase (enum sw_phase;
 *             SW_PHASE_INHERIT: outside steps), device (0 CPU, 1 GPU). value: calls, ns without and with what it
 *             called (nanoseconds, not ticks), bytes, floating-point operations
 *
 * Tables of memory, all in bytes.
 *
 *   MEMORY    the process, as the kernel sees it; one row. value: resident at the start, at the last look, at most; least
 *             that it could still have taken (UINT64_MAX unknown); most that was swapped out
 *   HEAP      what was allocated by one part of the process. key: part (enum sw_heap_part; SW_HEAP_ALL: all of them), bytes
 *             between two samples (0: none). value: bytes allocated, blocks allocated, bytes freed, blocks freed, most bytes
 *             in use at once beyond those at the start (of all of them only)
 *   ALLOCATIONS  what was allocated while a section was open, by its thread, callees included. key: thread index, node. value:
 *             bytes allocated, blocks allocated, bytes freed, blocks freed, most beyond those in use at its begin. Rows that
 *             follow it, with a part (enum sw_heap_part) and one in the key, have the first four of that part
 *   BLOCKS    sampled allocations with one stack: a tree as STACK is, below no CONTEXT. key: parent (BLOCKS index plus 1, 0
 *             none), CODE index (UINT32_MAX: native code), line. value: bytes allocated, blocks allocated, bytes in use at the
 *             end, bytes in use at the peak, all estimated from samples that ended here; samples
 *   KEPT      what one stack had in use at some steps, five points a row. key: BLOCKS index (UINT32_MAX: the numbers of
 *             these steps themselves), number of the first point, points in the row, points in all. value: the points
 *   ALLOCATOR  an allocator of a framework, UINT64_MAX is unknown. key: name (name id), device (UINT32_MAX: the CPU), what
 *             (enum sw_allocator_row). value of BYTES: bytes in use at the end, at most; bytes reserved at the end, at most;
 *             allocations that had to be tried again. value of PIECES: bytes in free pieces of reserved blocks at the end,
 *             at most; allocations that failed; largest share of reserved bytes that was not in use, in millionths; readings
 *   RESIDENT  resident memory of the process around calls of a section. key: thread index, node. value: calls of which both
 *             ends were read; by how much the process had more at their ends than at their begins, summed (two's
 *             complement), of the call with most, with least; most that was read while one was open
 *   HOLDER    something that held tensors with their graphs when it was looked for. key: its name (name id, 0 none), file
 *             (name id) and line where the function with that variable begins, kind (name id). value: tensors; additions in
 *             the longest chain of one; function (name id); 1: there was no time to look at all; number of the next step
 *
 * Tables of the monitor. Numbers marked f64 are the bits of an IEEE 754 double.
 *
 *   SERIES    a series of MONITOR records and all its values, also those of which no record is kept. key: name, unit (name
 *             ids), kind (enum sw_series_kind), SOURCE index. value of a GAUGE: values known, their sum, least,
 *             greatest, newest (f64). value of a TOTAL: values known, what it grew by while watched (f64), nanoseconds
 *             watched, least and greatest growth a second between two looks (f64; NaN: there were none)
 *   SOURCE    where series come from. key: name, why it has nothing (name ids; 0: it has), its least period in ms, its bit
 *             in LOOK records (UINT32_MAX: none).
 *             value: looks, ticks they took, looks that failed. The one called "monitor" is the monitor itself; its ticks
 *             are nanoseconds of CPU time, its fourth value the period that was asked for in nanoseconds, its fifth the
 *             looks that were late by more than a tenth of it
 *
 * Tables of GPUs.
 *
 *   GPU       a GPU, or a part of one (MIG). key: place in the list of its process, from 0; name, UUID (name ids); place of
 *             the device that it is a part of plus 1, 0 none. value: bytes of memory; highest clocks in MHz, of the
 *             multiprocessors + 2^32 × of the memory; limit of power in mW + 2^32 × the usual one; temperatures in
 *             °C at which clocks are reduced, by the hardware + 2^32 × by the driver; number that NVML gives it + 2^32 ×
 *             version of the driver (name id). 0 is unknown, in each half. flags: SW_ROW_GPU_…
 *   GPUNOTE   why something of a GPU is not known. key: place of the GPU (UINT32_MAX: all), what (enum sw_gpu_value;
 *             UINT32_MAX: a remark for the reader), text (name id)
 *
 * Tables of calls on files and sockets. A small call moved fewer than 4 KiB.
 *
 *   IO        calls in one section. key: section (name id, 0 none), phase (enum sw_phase; SW_PHASE_INHERIT: outside steps),
 *             kind (enum sw_io_kind), operation (enum sw_io_operation). value: calls, bytes, ticks, small calls, longest
 *             call in ticks
 *   THING     calls on one file or peer. key: path or peer (name id), kind, operation. value: as IO. Of operation 0: bytes of
 *             the file, the most that were seen (UINT64_MAX unknown), calls that failed, bytes that it had when it was seen
 *             first and one more (0 unknown)
 *   WATCHED   the watching itself, one row. value: import entries patched, entries that could not be, calls not counted, files
 *             opened that had no entry left and count for their folder, ticks from which a call has an IO record */
#define SW_TABLE_TABLE(X)                                                                \
    X(0, CODE, "code")                                                                   \
    X(1, FUNCTION, "function")                                                           \
    X(2, CALL, "call")                                                                   \
    X(3, LINE, "line")                                                                   \
    X(4, CONTEXT, "context")                                                             \
    X(5, STACK, "stack")                                                                 \
    X(6, SAMPLER, "sampler")                                                             \
    X(7, PROFILE, "profile")                                                             \
    X(8, SITE, "site")                                                                   \
    X(9, MODULE, "module")                                                               \
    X(10, LOADER, "loader")                                                              \
    X(11, STAGE, "stage")                                                                \
    X(12, COMPILED, "compiled")                                                          \
    X(13, WAIT, "wait")                                                                  \
    X(14, SETTING, "setting")                                                            \
    X(15, OPERATOR, "operator")                                                          \
    X(16, SERIES, "series")                                                              \
    X(17, SOURCE, "source")                                                              \
    X(18, GPU, "gpu")                                                                    \
    X(19, GPUNOTE, "gpunote")                                                            \
    X(20, IO, "io")                                                                      \
    X(21, THING, "thing")                                                                \
    X(22, WATCHED, "watched")                                                            \
    X(24, MEMORY, "memory")                                                              \
    X(25, HEAP, "heap")                                                                  \
    X(26, ALLOCATIONS, "allocations")                                                    \
    X(27, BLOCKS, "blocks")                                                              \
    X(28, KEPT, "kept")                                                                  \
    X(29, ALLOCATOR, "allocator")                                                        \
    X(32, RESIDENT, "resident")                                                          \
    X(33, HOLDER, "holder")

enum sw_table {
#define SW_TABLE_ENUM(number, name, text) SW_TABLE_##name = number,
    SW_TABLE_TABLE(SW_TABLE_ENUM)
#undef SW_TABLE_ENUM
        SW_TABLES
};
#define SW_ROW_NATIVE 0x0001       /* CODE: not written in Python */
#define SW_ROW_IN_CONTEXT 0x0001   /* STACK: the parent is a CONTEXT */
#define SW_ROW_NO_STEP 0x0001      /* CONTEXT: its steps turned out to be none */
#define SW_ROW_MODEL 0x0001        /* MODULE: root of a model */
#define SW_ROW_LOSS 0x0002         /* MODULE: a loss */
#define SW_ROW_AGAIN 0x0001        /* COMPILED: not the first of the function */
#define SW_ROW_UNBLOCKED 0x0001    /* WAIT: some calls asked not to wait */
#define SW_ROW_GPU_VISIBLE 0x0001  /* GPU: the program sees it (CUDA_VISIBLE_DEVICES) */
#define SW_ROW_GPU_HIDDEN 0x0002   /* GPU: it does not; neither: nobody knows */
#define SW_ROW_GPU_ACTIVITY 0x0004 /* GPU: it counts what its multiprocessors do (GPM) */
#define SW_ROW_GPU_DIVIDED 0x0008  /* GPU: it is divided into parts (MIG) */
#define SW_ROW_GPU_ASIDE 0x0010    /* GPU: another process of the run watches it */

/* Parts of the process that allocate; they do not overlap. */
enum sw_allocator_row { SW_ALLOCATOR_BYTES = 0, SW_ALLOCATOR_PIECES = 1 };

#define SW_HEAP_PART_TABLE(X)                                                            \
    X(0, OBJECT, "python_obj") /* objects of Python */                                   \
    X(1, MEM, "python_mem")    /* buffers of Python */                                   \
    X(2, RAW, "python_raw")    /* what Python takes without its lock */                  \
    X(3, NATIVE, "native")     /* malloc and its kin, from native code */                \
    X(4, MAPPED, "mmap")       /* anonymous mappings, Python's arenas not counted */

enum sw_heap_part {
#define SW_HEAP_ENUM(number, name, text) SW_HEAP_##name = number,
    SW_HEAP_PART_TABLE(SW_HEAP_ENUM)
#undef SW_HEAP_ENUM
        SW_HEAP_PARTS,
    SW_HEAP_ALL = 255
};

enum sw_site_what {
    SW_SITE_LOADER = 1,
    SW_SITE_OPTIMIZER = 2,
    SW_SITE_MODEL = 3,
    SW_SITE_DATASET = 4,
    SW_SITE_LOOP = 5 /* found by watching; "class": for or while */
};

#define SW_LOADER_PIN 0x01        /* pin_memory */
#define SW_LOADER_PERSISTENT 0x02 /* persistent_workers */
#define SW_LOADER_DROP_LAST 0x04  /* drop_last */
#define SW_LOADER_SHUFFLED 0x08
#define SW_LOADER_ITERABLE 0x10 /* the dataset is iterable-style */
#define SW_LOADER_FOREIGN 0x20  /* not the framework's own loader */

/* Number and name of the stages of producing a batch. */
#define SW_STAGE_TABLE(X)                                                                \
    X(1, GETITEM, "getitem")     /* a sample of the dataset */                           \
    X(2, TRANSFORM, "transform") /* a step of a chain of transforms, by name */          \
    X(3, COLLATE, "collate")                                                             \
    X(4, FETCH, "fetch")         /* a whole batch in its worker */                       \
    X(5, SERIALISE, "serialise") /* put into the queue */                                \
    X(6, ROOM, "room")           /* the worker waits for room in the queue */            \
    X(7, INDEX, "index")         /* the worker waits for work */                         \
    X(8, WAIT, "wait")           /* the training process waits for the batch */          \
    X(9, UNPICKLE, "unpickle")                                                           \
    X(10, PIN, "pin")                                                                    \
    X(11, START, "start") /* making the iterator */                                      \
    X(12, FIRST, "first") /* the first batch of a pass */                                \
    X(13, SHUTDOWN, "shutdown")

enum sw_stage_kind {
#define SW_STAGE_ENUM(number, name, text) SW_STAGE_##name = number,
    SW_STAGE_TABLE(SW_STAGE_ENUM)
#undef SW_STAGE_ENUM
        SW_STAGE_KINDS
};

enum sw_wait_kind {
    SW_WAIT_SYNC = 1, /* the host asked for a value */
    SW_WAIT_H2D = 2,  /* copy to the device */
    SW_WAIT_D2H = 3   /* copy from the device */
};

/* Number and name of what is watched of a GPU; MONITOR records name their series "gpu.DEVICE.NAME", DEVICE being the
 * number of the GPU row. A value holds until the next one of its series; NaN: it is not known from there on. */
#define SW_GPU_VALUE_TABLE(X)                                                            \
    X(0, MEMORY_USED, "memory_used_bytes")                                               \
    X(1, PROCESS_MEMORY, "process_memory_bytes")                                         \
    X(2, UTILISATION, "utilisation_percent")                                             \
    X(3, MEMORY_UTILISATION, "memory_utilisation_percent")                               \
    X(4, SM_ACTIVE, "sm_active_percent")                                                 \
    X(5, SM_OCCUPANCY, "sm_occupancy_percent")                                           \
    X(6, TENSOR_ACTIVE, "tensor_active_percent")                                         \
    X(7, DRAM_ACTIVE, "dram_active_percent")                                             \
    X(8, POWER, "power_w")                                                               \
    X(9, ENERGY, "energy_j") /* since the driver was loaded */                           \
    X(10, TEMPERATURE, "temperature_c")                                                  \
    X(11, SM_CLOCK, "sm_clock_mhz")                                                      \
    X(12, MEMORY_CLOCK, "memory_clock_mhz")                                              \
    X(13, CLOCK_REASONS, "clock_reasons") /* bits: enum sw_gpu_reason */                 \
    X(14, PCIE_SENT, "pcie_sent_bytes_per_s")                                            \
    X(15, PCIE_RECEIVED, "pcie_received_bytes_per_s")                                    \
    X(16, NVLINK_SENT, "nvlink_sent_bytes_per_s")                                        \
    X(17, NVLINK_RECEIVED, "nvlink_received_bytes_per_s")                                \
    X(18, ECC_CORRECTED, "ecc_corrected") /* since the driver was loaded */              \
    X(19, ECC_UNCORRECTED, "ecc_uncorrected")                                            \
    X(20, XID, "xid_errors") /* since watching began */

enum sw_gpu_value {
#define SW_GPU_VALUE_ENUM(number, name, text) SW_GPU_##name = number,
    SW_GPU_VALUE_TABLE(SW_GPU_VALUE_ENUM)
#undef SW_GPU_VALUE_ENUM
        SW_GPU_VALUES
};

/* Why a GPU does not run at its highest clocks: bit, symbol, name. */
#define SW_GPU_REASON_TABLE(X)                                                           \
    X(0, IDLE, "idle")                                                                   \
    X(1, SETTING, "applications_clocks_setting")                                         \
    X(2, POWER_CAP, "sw_power_cap")                                                      \
    X(3, HW_SLOWDOWN, "hw_slowdown")                                                     \
    X(4, SYNC_BOOST, "sync_boost")                                                       \
    X(5, SW_THERMAL, "sw_thermal_slowdown")                                              \
    X(6, HW_THERMAL, "hw_thermal_slowdown")                                              \
    X(7, POWER_BRAKE, "hw_power_brake_slowdown")                                         \
    X(8, DISPLAY, "display_clock_setting")

enum sw_gpu_reason {
#define SW_GPU_REASON_ENUM(bit, name, text) SW_GPU_REASON_##name = bit,
    SW_GPU_REASON_TABLE(SW_GPU_REASON_ENUM)
#undef SW_GPU_REASON_ENUM
        SW_GPU_REASONS
};

enum sw_series_kind {
    SW_SERIES_GAUGE = 0, /* a level */
    SW_SERIES_TOTAL = 1  /* a sum that grows; its growth is what counts */
};

typedef struct sw_row {
    uint16_t table; /* enum sw_table */
    uint16_t flags; /* SW_ROW_… */
    uint32_t index;
    uint32_t key[4];
    uint64_t value[5];
} sw_row;

/* Names of kinds, phases, stages, and values and reasons of GPUs; NULL for numbers outside the table. */
static inline const char *sw_record_kind_name(unsigned kind)
{
    switch (kind) {
#define SW_RECORD_CASE(number, name, text)                                               \
    case number:                                                                         \
        return text;
        SW_RECORD_TABLE(SW_RECORD_CASE)
#undef SW_RECORD_CASE
    default:
        return 0;
    }
}
static inline const char *sw_phase_name(unsigned phase)
{
    switch (phase) {
#define SW_PHASE_CASE(number, name, text)                                                \
    case number:                                                                         \
        return text;
        SW_PHASE_TABLE(SW_PHASE_CASE)
#undef SW_PHASE_CASE
    default:
        return 0;
    }
}
static inline const char *sw_gpu_value_name(unsigned value)
{
    switch (value) {
#define SW_GPU_VALUE_CASE(number, name, text)                                            \
    case number:                                                                         \
        return text;
        SW_GPU_VALUE_TABLE(SW_GPU_VALUE_CASE)
#undef SW_GPU_VALUE_CASE
    default:
        return 0;
    }
}
static inline const char *sw_gpu_reason_name(unsigned bit)
{
    switch (bit) {
#define SW_GPU_REASON_CASE(number, name, text)                                           \
    case number:                                                                         \
        return text;
        SW_GPU_REASON_TABLE(SW_GPU_REASON_CASE)
#undef SW_GPU_REASON_CASE
    default:
        return 0;
    }
}
static inline const char *sw_stage_kind_name(unsigned kind)
{
    switch (kind) {
#define SW_STAGE_CASE(number, name, text)                                                \
    case number:                                                                         \
        return text;
        SW_STAGE_TABLE(SW_STAGE_CASE)
#undef SW_STAGE_CASE
    default:
        return 0;
    }
}
static inline const char *sw_io_operation_name(unsigned operation)
{
    switch (operation) {
#define SW_IO_CASE(number, name, text)                                                   \
    case number:                                                                         \
        return text;
        SW_IO_OPERATION_TABLE(SW_IO_CASE)
    default:
        return 0;
    }
}
static inline const char *sw_io_kind_name(unsigned kind)
{
    switch (kind) {
        SW_IO_KIND_TABLE(SW_IO_CASE)
#undef SW_IO_CASE
    default:
        return 0;
    }
}

#ifdef __cplusplus
}
#endif
#endif
