/* The trace format, version 1, as C structures. docs/FORMAT.md is normative; this header and that
 * page say the same, and the static assertions below hold the layout still.
 *
 * Glossary
 *   home file   what the user keeps: `*.stepwatch` in the run directory, written with pwrite.
 *   hot file    the mapped file that the recorder writes into, in memory (tmpfs) where possible. It
 *               lives as long as the process; what it holds is folded into the home file at the
 *               end, or by the next reader when the process was killed.
 *   block       a piece of either file with a header of its own; both files are a superblock and
 *               blocks. The same block may be in both: the one with the larger `revision` counts.
 *   address     the offset of a byte in the hot file. Blocks carry theirs, so that addresses stay
 *               valid in the home file, where the same block lies elsewhere.
 *   chunk       a block of records of one thread (EVENTS, STEPS). Chunks of the hot file are used
 *               again; (kind, thread, sequence) names one for good.
 *   state       all other blocks: they change in place while the program runs.
 */
#ifndef SW_STORE_FORMAT_H
#define SW_STORE_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/clock.h>
#include <stepwatch/histogram.h>
#include <stepwatch/records.h>

#define SW__FMT_MAGIC "STEPWTCH"
#define SW__FMT_ENDIAN 0x01020304u
#define SW__FMT_BLOCK_MAGIC 0x4b4c4253u /* "SBLK" */
#define SW__FMT_PAGE 4096u              /* blocks begin and end on multiples of this */
#define SW__FMT_CHUNK 65536u            /* size of EVENTS and STEPS blocks */

enum sw__fmt_role { SW__ROLE_HOME = 1, SW__ROLE_HOT = 2 };
enum sw__fmt_state {
    SW__STATE_OPEN = 0,   /* being written, or its writer died */
    SW__STATE_CLOSED = 1, /* closed by its writer */
    SW__STATE_FOLDED = 2  /* its writer died; what the hot file held was folded in */
};

/* Losses and totals of the process, all monotone. */
enum sw__fmt_total {
    SW__TOTAL_DROPPED = 0, /* records for which there was no room */
    SW__TOTAL_OVERWRITTEN, /* records given up for newer ones (ring, or not among kept steps) */
    SW__TOTAL_REENTRANT, /* records dropped because a signal interrupted the recorder */
    SW__TOTAL_TOO_DEEP,  /* sections deeper than the stack of open spans can grow */
    SW__TOTAL_NAMES_FOLDED,  /* names that went to their family or to (more) */
    SW__TOTAL_NODES_FOLDED,  /* sections counted at a family's node or at (more) */
    SW__TOTAL_UNMATCHED,     /* ends without a begin */
    SW__TOTAL_BUS_ERRORS,    /* pages lost to SIGBUS */
    SW__TOTAL_STEPS_DROPPED, /* step records given up */
    SW__TOTAL_WRITE_ERRORS,  /* writes to the home file that failed */
    SW__TOTAL_HELPER_NS,     /* CPU time of the helper thread */
    SW__TOTAL_THREADS,       /* threads that recorded */
    SW__TOTAL_HIST_MISSED,   /* values that found no histogram page */
    SW__TOTAL_STEP_TICKS,    /* ticks that threads spent in calls for steps */
    SW__TOTAL_EMIT_TICKS, /* the same for counters, marks and other records, estimated from one in 16, and for readings of memory at sections */
    SW__TOTAL_SLOTS = 24
};

/* A chunk that is being given up for newer events at this moment: its count and its block change in two stores, and
 * this tells a reader of a process that was killed between them. place 0: none. */
struct sw__fmt_redo {
    _Atomic uint64_t place; /* offset of the block in its file */
    uint64_t before;        /* `overwritten` of the thread before */
    uint32_t thread;
    uint32_t records;
};
enum sw__fmt_redo_place { SW__REDO_HOT = 0, SW__REDO_HOME = 1, SW__REDO_PLACES = 2 };

/* The first page of either file. A 128-bit file id ties home and hot together. `revision` rises with
 * every copy to the home file. */
struct sw__fmt_super {
    char magic[8];
    uint32_t version;    /* 1; a reader refuses larger ones */
    uint32_t endian;     /* SW__FMT_ENDIAN */
    uint32_t super_size; /* 4096 */
    uint32_t role;       /* enum sw__fmt_role */
    uint8_t file_id[16];
    _Atomic uint32_t state; /* enum sw__fmt_state */
    uint32_t clock_kind;    /* enum sw_clock_kind */
    uint64_t revision;
    uint32_t pid;
    uint32_t ppid;
    uint64_t process_start; /* kernel start time of pid: tells it from a recycled pid */
    uint32_t policy;        /* 0 auto, 1 stream, 2 ring, 3 drop */
    uint32_t events;        /* 1 events and statistics, 0 statistics only */
    uint64_t max_bytes;     /* configured cap, 0 none */
    uint32_t keep_first;    /* steps, policy auto */
    uint32_t keep_last;
    uint32_t keep_worst;
    _Atomic uint32_t error;  /* first loss: errno, 0 none */
    _Atomic uint32_t latest; /* which of latest_snapshot is whole: 0 or 1 */
    uint32_t exit_reason;    /* 0 unknown, 1 shutdown, 2 exit, 3 forked child's end */
    sw_clock_snapshot start_snapshot;
    sw_clock_snapshot latest_snapshot[2];
    sw_clock_snapshot end_snapshot; /* ticks 0 until closed */
    /* What the recorder found that it costs itself, in ticks × 256. */
    uint64_t cost_section; /* begin + end, events and statistics */
    uint64_t cost_section_low;
    uint64_t cost_section_high;
    uint64_t cost_stats; /* begin + end, statistics only */
    _Atomic uint64_t total[SW__TOTAL_SLOTS];
    char run_id[64];
    char name[128];
    char hot_path
        [1024]; /* in the home file: where the hot file is; empty when there is none */
    char home_path[1024]; /* in the hot file: where the home file is */
    struct sw__fmt_redo
        redo[SW__REDO_PLACES]; /* by where the chunk is: in the hot or the home file */
    uint64_t home_end; /* length of a home file that was closed or folded; 0: not known */
    uint8_t reserved[1336];
};

enum sw__fmt_kind {
    SW__BLOCK_DEFS = 1,    /* definitions */
    SW__BLOCK_THREADS = 2, /* struct sw__fmt_thread, as many as fit */
    SW__BLOCK_LANE = 3,    /* struct sw__fmt_lane, then open frames */
    SW__BLOCK_STACK = 4,   /* open frames, when the lane's own did not suffice */
    SW__BLOCK_NODES = 5,   /* struct sw__fmt_node, as many as fit */
    SW__BLOCK_HIST = 6,    /* octave pages of 64 × u64 */
    SW__BLOCK_EVENTS = 7,  /* records */
    SW__BLOCK_STEPS = 8,   /* STEP records */
    SW__BLOCK_FREE = 9,    /* room; skip it */
    SW__BLOCK_ROWS = 10,   /* struct sw_row, as many as fit, of any tables */
    SW__BLOCK_KINDS
};

/* Header of every block, 128 bytes. `used` counts the bytes after the header that are whole; it
 * is the last thing stored when something is added, and 128 + used ≤ size always. */
struct sw__fmt_block {
    uint32_t magic;
    uint16_t kind;
    uint16_t flags; /* SW__BLOCK_SEALED, SW__BLOCK_WANTED */
    uint32_t size;  /* header included, a multiple of SW__FMT_PAGE */
    _Atomic uint32_t used;
    uint64_t address;  /* offset in the hot file */
    uint64_t sequence; /* chunks: of the thread, from 0; state blocks: of the kind */
    uint32_t thread;   /* thread index; UINT32_MAX: none */
    uint32_t domain;
    uint64_t revision; /* copies to the home file */
    uint64_t file_id;  /* first 8 bytes of the superblock's */
    /* Chunks only. */
    uint64_t first_ticks;
    uint64_t last_ticks; /* valid when sealed */
    uint32_t records;    /* valid when sealed; else count them */
    uint32_t tid;        /* kernel thread id of the writer */
    sw_clock_snapshot snapshot;
    uint64_t dropped; /* records this thread had dropped when the chunk was opened */
    uint64_t reserved;
};
#define SW__BLOCK_SEALED 0x0001
#define SW__BLOCK_WANTED 0x0002 /* asked for by step: policy auto keeps it */

/* Definitions: entries of a multiple of 8 bytes, in order of their making. */
enum sw__fmt_def_kind {
    SW__DEF_NAME = 1,  /* struct sw__fmt_name */
    SW__DEF_FACT = 2,  /* struct sw__fmt_fact */
    SW__DEF_DOMAIN = 3 /* struct sw__fmt_name with id = the domain's number */
};
struct sw__fmt_def {
    uint32_t size; /* of the whole entry */
    uint16_t kind;
    uint16_t flags;
};
/* What a name is for. Sections, counters and plain strings share one number space. */
enum sw__fmt_name_use { SW__NAME_TEXT = 0, SW__NAME_SECTION = 1, SW__NAME_COUNTER = 2 };
struct sw__fmt_name {
    struct sw__fmt_def head;
    uint32_t id;
    uint16_t use;
    uint16_t domain;
    uint8_t phase; /* enum sw_phase, 255 none */
    uint8_t reserved[3];
    uint32_t length; /* of the text that follows; padded with NULs to 8 */
};
struct sw__fmt_fact {
    struct sw__fmt_def head;
    uint32_t key_length; /* key and value follow, not terminated, padded with NULs to 8 */
    uint32_t value_length;
};

/* A thread that recorded. Slots of ended threads may be taken over when there are very many
 * threads: then `incarnations` > 1 and statistics are those of all of them together. */
struct sw__fmt_thread {
    uint32_t index;
    uint32_t tid;
    uint32_t incarnations; /* 0: the slot is empty */
    _Atomic uint32_t alive;
    uint64_t start_ticks;
    _Atomic uint64_t end_ticks; /* 0 while it runs */
    _Atomic uint64_t records;   /* in sealed chunks */
    _Atomic uint64_t dropped;
    _Atomic uint64_t overwritten;
    _Atomic uint64_t steps; /* STEP records written */
    char name[32];          /* NUL-padded */
    uint64_t reserved[4];
};

/* An open section. */
struct sw__fmt_frame {
    uint64_t start;        /* ticks */
    uint64_t child_before; /* with flag 4: `child` of its node when it began */
    uint64_t key; /* which activation opened it (a frame, a task), if flag 2 is set */
    uint32_t
        node; /* address of its node / 64; 0: this frame and those after it are not open */
    uint8_t phase_before; /* with flag 1: the phase that its end goes back to */
    uint8_t flags; /* 1: it has a phase, 2: it has a key, 4: child_before is there */
    uint16_t reserved;
};

/* A thread in a domain: its open sections, its call tree, its steps. Frames follow the struct at the
 * address `stack`; nodes are those of all NODES blocks with this thread and domain. */
struct sw__fmt_lane {
    uint32_t thread;
    uint32_t domain;
    uint32_t reserved0;
    uint32_t stack_capacity; /* frames */
    _Atomic uint64_t stack;  /* address of the frames */
    _Atomic uint32_t nodes;  /* nodes in use, the root included */
    uint32_t reserved;
    _Atomic uint64_t step_open;  /* 1 + number of the step that is open, 0 none */
    _Atomic uint64_t step_begin; /* its ticks */
    _Atomic uint64_t steps;      /* ended steps, incomplete ones included */
    _Atomic uint64_t steps_incomplete;
    _Atomic uint64_t updates; /* optimizer steps */
    uint64_t step_ticks;      /* sum over ended, complete steps */
    uint64_t step_min;
    uint64_t step_max;
    uint64_t phase_ticks[SW_PHASE_SLOTS]; /* sums over ended, complete steps */
    uint32_t step_hist[60];               /* addresses / 64 of octave pages, 0 none */
    uint64_t later;                       /* address of a struct sw__fmt_later, 0 none */
    uint8_t padding[72];
};

/* Steps that were noted and are not counted yet (<stepwatch/later.h>): `count` notes follow. The first ends the step `base`, the next one the
 * step after it, and so on, but for those that begin none. Where `step_open` says another number than base + 1, the steps before it have been
 * told already, and their notes do not count any more. Ended steps have `flags`, `unit` and `epoch`; all waits are calls of one node. */
struct sw__fmt_later {
    _Atomic uint32_t count;
    uint32_t room;
    uint64_t base;
    uint32_t wait; /* address of the node / 64 */
    uint32_t epoch;
    uint16_t flags; /* of STEP records */
    uint8_t unit;
    uint8_t reserved[5];
    uint64_t phase_ticks[SW_PHASE_SLOTS]; /* of the step `base`, so far */
};
/* One of them: struct sw_later_note. */
struct sw__fmt_note {
    uint64_t begin;      /* ticks; 0: no step begins */
    uint64_t wait_begin; /* 0: none */
    uint64_t wait_end;   /* 0: it still waits */
    uint32_t updates;
    uint32_t samples;
};

/* A node of a call tree: one section under one path. Times in ticks; self = inclusive - child. */
struct sw__fmt_node {
    uint32_t section; /* name id; 0: the root */
    uint32_t parent;  /* index of the parent; the root's is 0 */
    uint32_t index;   /* from 0 (the root), dense per lane */
    uint16_t kind;    /* 0 section, 1 counter: then the four times hold doubles */
    uint16_t flags;   /* 1: stands for many names (family or (more)) */
    uint64_t calls;
    uint64_t inclusive; /* counter: sum */
    uint64_t
        child; /* of sections that ended directly under it, also while it is open; counter: unused */
    uint64_t minimum; /* UINT64_MAX before the first call (counters: +infinity) */
    uint64_t maximum; /* (counters: -infinity before the first value) */
    uint64_t last;
    uint64_t errors;
    uint64_t unnested; /* calls that did not nest: inclusive time only */
    uint32_t hist[60]; /* addresses / 64 of octave pages, 0 none */
};
#define SW__NODE_SECTION 0
#define SW__NODE_COUNTER 1
#define SW__NODE_FAMILY 0x0001

/* One octave of a histogram; counts. */
struct sw__fmt_page {
    uint64_t bucket[SW_HISTOGRAM_SUB];
};

static_assert(sizeof(struct sw__fmt_super) == 4096, "superblock is one page");
static_assert(offsetof(struct sw__fmt_super, file_id) == 24, "superblock layout");
static_assert(offsetof(struct sw__fmt_super, start_snapshot) == 112, "superblock layout");
static_assert(offsetof(struct sw__fmt_super, total) == 272, "superblock layout");
static_assert(offsetof(struct sw__fmt_super, run_id) == 464, "superblock layout");
static_assert(sizeof(struct sw__fmt_block) == 128, "block header");
static_assert(offsetof(struct sw__fmt_block, used) == 12, "block header layout");
static_assert(sizeof(struct sw__fmt_thread) == 128, "thread slot");
static_assert(sizeof(struct sw__fmt_frame) == 32, "frame");
static_assert(sizeof(struct sw__fmt_lane) == 576, "lane");
static_assert(sizeof(struct sw__fmt_later) == 192, "notes");
static_assert(sizeof(struct sw__fmt_note) == 32, "note");
static_assert(sizeof(struct sw__fmt_node) == 320, "node");
static_assert(sizeof(struct sw__fmt_page) == 512, "histogram page");
static_assert(sizeof(sw_record) == 16 && sizeof(sw_record_span) == 32, "record");
static_assert(sizeof(sw_row) == 64, "row");
static_assert(sizeof(sw_record_step) == 256, "step record");
static_assert(sizeof(sw_record_batch) == 128, "batch record");
static_assert(sizeof(sw_record_compile) == 64 && sizeof(sw_record_xfer) == 64, "record");
static_assert(sizeof(sw_record_collective) == 64 && sizeof(sw_record_alloc) == 64,
              "record");
static_assert(sizeof(sw_record_io) == 64 && sizeof(sw_record_gpu) == 64, "record");
static_assert(sizeof(sw_record_site) == 32 && sizeof(sw_record_sample) == 32, "record");
static_assert(sizeof(sw_record_look) == 64 && sizeof(sw_look_frame) == 16, "record");
static_assert(sizeof(sw_record_gc) == 32 && sizeof(sw_record_sync) == 32, "record");

#endif
