/* What the files of `read` share.
 *
 * Glossary
 *   source    one of the two files that a trace is read from: home or hot
 *             (store/format.h).
 *   block     an entry of the index of blocks: where a block lies, and its header as
 *             far as it was believed. Payloads are read when they are needed.
 *   position  index of a thread in sw_trace.threads. In a sound file it equals the
 *             thread's own index; in a damaged one threads that have no slot get
 *             positions behind the others.
 *   note      a sentence about what could not be read.
 *
 * Nothing in a file is trusted: `used` of a block is cut to what its file holds, indexes
 * are compared with bounds that come from the size of the file, and all that lives as
 * long as the trace comes from one arena whose limit is a multiple of that size. */
#ifndef SW_READ_TRACE_INTERNAL_H
#define SW_READ_TRACE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/trace.h>
#include <sys/types.h>

#include "base/memory.h"
#include "store/format.h"

/* Limits of format version 1 (docs/FORMAT.md, "Limits"). */
#define SW__READ_BLOCK_MAX (64u << 20) /* bytes of a block */
#define SW__READ_NAME_MAX (1u << 20)   /* ids */
#define SW__READ_NODE_MAX 65536u       /* nodes of a lane */
#define SW__READ_HEADER 128u           /* bytes of a block's header */
#define SW__READ_NOTES 32u

enum sw__read_source { SW__SOURCE_HOME = 0, SW__SOURCE_HOT = 1, SW__SOURCES };

/* How good a superblock is. */
enum sw__read_super {
    SW__SUPER_NONE = 0, /* not recognisable */
    SW__SUPER_DAMAGED,  /* its fields are used with care */
    SW__SUPER_GOOD
};

struct sw__source {
    int fd;       /* -1: opened anew for every read, for want of descriptors */
    bool counted; /* fd is one of those that are kept open */
    char *path;   /* heap */
    dev_t device;
    ino_t inode;
    uid_t uid;
    uint64_t size; /* when it was opened */
    enum sw__read_super quality;
    struct sw__fmt_super super;
};

struct sw__block {
    uint64_t offset; /* of the header in its source */
    uint64_t address;
    uint64_t sequence;
    uint64_t revision;
    uint64_t first_ticks;
    uint64_t last_ticks;
    sw_clock_snapshot snapshot;
    uint32_t size;
    uint32_t used;    /* 128 + used ≤ size, and the source holds it */
    uint32_t records; /* EVENTS: how many there are */
    uint32_t thread;
    uint32_t domain;
    uint32_t position;   /* chunks: of the thread */
    const uint8_t *copy; /* chunks of a running process: the payload, else NULL */
    uint16_t kind;
    uint8_t source; /* enum sw__read_source */
    bool sealed;
    bool cut; /* the source holds less than the header said */
};

/* Where a node, or the step histogram of a lane, has its addresses of pages. */
struct sw__place {
    uint32_t block;  /* index into state blocks + 1; 0: nowhere */
    uint32_t offset; /* in the payload, of the first of 60 addresses */
};

/* Histogram pages made by a rebuild. */
struct sw__page {
    struct sw__page *next;
    unsigned octave;
    uint64_t bucket[SW_HISTOGRAM_SUB];
};

/* Of a node, in ns: time in its children, and how long its open calls have lasted. */
struct sw__open_ns {
    uint64_t child;
    uint64_t lasted;
};

struct sw__lane {
    sw_trace_lane shown;
    struct sw__open_ns *open_ns; /* of its nodes */
    struct sw__place *places;    /* of its nodes; NULL after a rebuild */
    struct sw__page **pages;     /* of its nodes; only after a rebuild */
    uint64_t *singles; /* the only value of a node that was called but has no page */
    struct sw__place steps;
    const struct sw__later *later; /* what was noted of its steps; NULL: nothing */
    uint32_t later_node;           /* index of the node of the waits; 0: none */
};

/* Rows of one table, by index; one that is missing has table SW_TABLES. */
struct sw__rows {
    sw_row *row;
    size_t count;
};

struct sw__fact {
    const char *key;
    const char *value;
};

struct sw_trace {
    sw__arena *arena;
    sw_trace_info info;
    struct sw__source source[SW__SOURCES];
    const struct sw__fmt_super *super; /* the newer one; NULL: both are lost */
    bool has_hot;
    bool alive;
    bool file_id_known;
    uint64_t file_id;

    /* The index: state blocks by address, then chunks by kind, thread and sequence. */
    struct sw__block *blocks;
    size_t block_count;
    size_t block_room;
    size_t state_count;  /* blocks[0 … state_count) are state blocks */
    size_t copied_bytes; /* taken by copies of chunks */

    sw_timeline *timeline;
    double ns_per_tick;

    const sw_trace_name **names; /* by id */
    uint32_t name_limit;
    const char **domains; /* by number */
    uint32_t domain_limit;
    struct sw__fact *facts;
    size_t fact_count;
    sw_trace_thread *threads;
    size_t thread_count;
    struct sw__lane *lanes;
    size_t lane_count;
    struct sw__later *later; /* of lanes that have any */
    struct sw__rows rows[SW_TABLES];
    sw__arena *rebuilt; /* what sw_trace_rebuild_lanes replaced them by lives here */

    const char *notes[SW__READ_NOTES + 1];
    size_t note_count;
    size_t notes_left_out;
    bool told_recycled; /* that chunks were recycled under a cursor */
};

/* --- block_index.c --- */
/* What a writer was giving up in the hot or the home file when it died, else NULL. */
const struct sw__fmt_redo *sw__trace_redo(const sw_trace *trace, unsigned place);

/* --- notes.c --- */
/* Adds a sentence. Past SW__READ_NOTES they are only counted. */
void sw__trace_say(sw_trace *trace, const char *format, ...) SW_PRINTF(2, 3);
void sw__trace_say_once(sw_trace *trace, bool *told, const char *text);
/* As sw__trace_say, and the trace is damaged. */
void sw__trace_damage(sw_trace *trace, const char *format, ...) SW_PRINTF(2, 3);

/* --- source.c --- */
/* Takes ownership of `fd`. SW_EOPEN where it is no regular file. */
int sw__source_adopt(struct sw__source *source, int fd, const char *path,
                     sw_error_info *info);
int sw__source_open(struct sw__source *source, const char *path, sw_error_info *info);
void sw__source_refresh(struct sw__source *source); /* its size */
void sw__source_close(struct sw__source *source);
/* Bytes that could be read, less than `length` at the end of the file or after an
 * error. */
size_t sw__source_read(const struct sw__source *source, void *to, size_t length,
                       uint64_t offset);
/* Closes the descriptor when too many are open already; reads then open it anew. */
void sw__source_settle(struct sw__source *source);
/* Where data begins again at or after `offset` (holes of sparse files are skipped). */
uint64_t sw__source_next_data(const struct sw__source *source, uint64_t offset);

/* --- superblock.c --- */
/* Reads and judges the superblock. SW_EVERSION and SW_EFORMAT (byte order) are
 * final. */
int sw__super_load(struct sw__source *source, sw_error_info *info);
/* Finds the hot file where one should be read, `hot_fd` (owned, -1 none) before the
 * path that the superblock names, which is followed only when `follow`. */
int sw__super_find_hot(sw_trace *trace, int hot_fd, bool follow, sw_error_info *info);
/* The snapshot that was refreshed last and is whole; all zero when there is none. */
sw_clock_snapshot sw__super_latest(const struct sw__fmt_super *super);

/* --- blocks.c --- */
/* Adds the blocks of a source to the index. */
int sw__blocks_scan(sw_trace *trace, enum sw__read_source which);

/* --- block_index.c --- */
/* Merges what both sources gave: sorts, and keeps the better of two copies. */
void sw__index_merge(sw_trace *trace);
struct sw__block *sw__index_add(sw_trace *trace); /* zeroed; NULL when out of memory */
/* The state block that holds `length` bytes of payload at an address, and the offset
 * of that payload; NULL when there is none. */
const struct sw__block *sw__index_find(const sw_trace *trace, uint64_t address,
                                       size_t length, uint32_t *offset);
/* Reads payload; gives the bytes got. Reading past `used` gives less. */
size_t sw__block_read(const sw_trace *trace, const struct sw__block *block,
                      uint32_t offset, void *to, size_t length);
/* The same up to the end of the block, for LANE, STACK and HIST, whose content is
 * not counted by `used`. */
size_t sw__block_read_room(const sw_trace *trace, const struct sw__block *block,
                           uint32_t offset, void *to, size_t length);
/* Whether a chunk of a running process is still the one that was indexed. */
bool sw__block_is_current(const sw_trace *trace, const struct sw__block *block);
static inline bool sw__block_is_chunk(const struct sw__block *block)
{
    return block->kind == SW__BLOCK_EVENTS || block->kind == SW__BLOCK_STEPS;
}

/* A buffer that holds the payload of one block after the other; zero-initialise,
 * free `data`. */
struct sw__scratch {
    uint8_t *data;
    size_t room;
};
/* Loads the payload; the bytes go to `*length`. False when out of memory. */
bool sw__scratch_load(struct sw__scratch *scratch, const sw_trace *trace,
                      const struct sw__block *block, size_t *length);

/* --- trace_clock.c --- */
int sw__clock_build(sw_trace *trace, sw_error_info *info);
/* A duration in ticks, rounded; saturates. */
uint64_t sw__trace_duration_ns(const sw_trace *trace, uint64_t ticks);
/* A moment; 0 stays 0, the mark of "unknown". */
uint64_t sw__trace_moment_ns(const sw_trace *trace, uint64_t ticks);

/* --- defs.c, threads.c, chunks.c, lanes.c, lane_nodes.c, trace_info.c --- */
int sw__defs_load(sw_trace *trace);
int sw__threads_load(sw_trace *trace);
int sw__chunks_count(sw_trace *trace);
int sw__lanes_load(sw_trace *trace);
int sw__rows_load(sw_trace *trace);
/* Makes a copy of `open` the open sections of a lane. */
int sw__lane_set_open(sw__arena *arena, struct sw__lane *lane,
                      const sw_trace_open_span *open, size_t count);
/* Self times of nodes that are open; once, when the end of the trace is known. */
void sw__lane_settle(const sw_trace *trace, struct sw__lane *lane);
/* The nodes of one lane, from the NODES blocks `indexes` (into state blocks). */
int sw__nodes_load(sw_trace *trace, struct sw__lane *lane, const uint32_t *indexes,
                   size_t count);
/* Times in ticks as the five times of a node. */
struct sw__times {
    uint64_t inclusive, child, minimum, maximum, last;
};
void sw__node_times(const sw_trace *trace, sw_trace_node *to,
                    const struct sw__times *from);
void sw__info_fill(sw_trace *trace);
/* Position of the thread with this index; UINT32_MAX: unknown. */
uint32_t sw__thread_position(const sw_trace *trace, uint32_t index);

/* --- records --- */
/* Smallest length in units of a known kind, 0 for others. */
extern const uint8_t sw__record_units[256];
/* Bytes of the record at `bytes`, 0 when it is no record or does not fit into
 * `room`. */
static inline size_t sw__record_length(const uint8_t *bytes, size_t room)
{
    if (room < SW_RECORD_UNIT) {
        return 0;
    }
    size_t length = (size_t)bytes[1] * SW_RECORD_UNIT;
    return length <= room ? length : 0;
}
/* Whether a record of a known kind is as long as its fields need. */
bool sw__record_is_whole(const sw_record *record);
/* When it was over: `end` of intervals, else `ticks`. */
static inline uint64_t sw__record_end(const sw_record *record)
{
    if (record->flags & SW_RECORD_INTERVAL) {
        uint64_t end;
        __builtin_memcpy(&end, (const uint8_t *)record + sizeof *record, sizeof end);
        return end > record->ticks ? end : record->ticks;
    }
    return record->ticks;
}
/* A chunk was walked and has not the number of records that it claimed. */
void sw__chunk_correct(sw_trace *trace, struct sw__block *chunk, uint32_t records);

static inline uint64_t sw__add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* --- open.c: the seam for tests and fuzzers --- */
/* Opens from descriptors (owned from now on); `hot_fd` -1: none. Without `follow` no
 * path from inside a file is opened. */
int sw__trace_open_fds(sw_trace **out, int home_fd, int hot_fd, bool follow,
                       const char *path, sw_error_info *info);

#endif
