/* A small writer of traces, made from docs/FORMAT.md and independent of the
 * recorder: tests of the reader compose home and hot files with it, sound ones and
 * others.
 *
 * Blocks are made once and lie in both files unless `where` says otherwise.
 * Everything may be changed between making and writing. Failures abort: this is for
 * tests. */
#ifndef TRACE_BUILDER_H
#define TRACE_BUILDER_H

#include "store/format.h"
#include <stdbool.h>

enum tb_where { TB_HOME = 1, TB_HOT = 2, TB_BOTH = 3 };

struct tb_block {
    struct sw__fmt_block *head; /* the payload follows it */
    unsigned where;
};

/* A lane as the builder sees it. */
struct tb_lane {
    struct sw__fmt_lane *file;
    uint32_t thread;
    uint16_t domain;
    struct sw__fmt_node **nodes;
    uint64_t *node_addresses;
    uint32_t node_count;
    struct {
        uint64_t start;
        uint32_t node;
    } stack[256];
    uint32_t depth;
    uint64_t last_begin;
};

struct tb_stream {
    uint32_t thread;
    uint16_t kind;
    uint64_t sequence;
    size_t block; /* 1 + index of the open one, 0 none */
};

struct tb {
    struct sw__fmt_super super;
    struct tb_block *blocks;
    size_t block_count;
    uint64_t next_address;
    uint32_t chunk_size;              /* of new chunks */
    size_t defs, threads, hist, rows; /* 1 + index of the block with room */
    uint64_t sequence[16];            /* of state blocks, by kind */
    struct tb_stream streams[1024];
    size_t stream_count;
    struct tb_lane *lanes[256];
    size_t lane_count;
    uint64_t ticks_per_us; /* of the snapshots that are made */
};

/* A trace of the process 4242 that was closed, with clock `kind`; ticks begin at
 * 10^9. */
struct tb *tb_new(enum sw_clock_kind kind);
void tb_free(struct tb *tb);
sw_clock_snapshot tb_snapshot(const struct tb *tb, uint64_t ticks);

/* A block of `size` bytes in all; its index. */
size_t tb_block(struct tb *tb, unsigned kind, uint32_t size, uint32_t thread,
                uint32_t domain);
void *tb_payload(struct tb *tb, size_t block);
/* `size` bytes at the end of what the block uses, NULL when it is full. */
void *tb_append(struct tb *tb, size_t block, uint32_t size);

void tb_name(struct tb *tb, uint32_t id, const char *text, unsigned use, unsigned phase);
void tb_domain(struct tb *tb, uint32_t id, const char *text);
void tb_fact(struct tb *tb, const char *key, const char *value);
/* Any definition: the bytes of a whole entry. */
void tb_define(struct tb *tb, const void *entry, uint32_t size);
struct sw__fmt_thread *tb_thread(struct tb *tb, uint32_t index, const char *name);

/* A row of a table, whatever it says. */
void tb_row(struct tb *tb, const sw_row *row);

/* Appends a record to the chunks of a thread; STEP records go to their own. */
void tb_record(struct tb *tb, uint32_t thread, const void *record);
void tb_seal(struct tb *tb); /* all open chunks */

/* A little recorder: call tree, histograms, SPAN records. */
struct tb_lane *tb_lane(struct tb *tb, uint32_t thread, uint16_t domain);
void tb_begin(struct tb *tb, struct tb_lane *lane, uint32_t section, uint64_t ticks);
void tb_end(struct tb *tb, struct tb_lane *lane, uint64_t ticks, unsigned flags);
/* A step that ended; phases: SW_PHASE_SLOTS ticks that sum to end - begin. */
void tb_step(struct tb *tb, struct tb_lane *lane, uint64_t begin, uint64_t end,
             const uint64_t *phases, unsigned flags);
void tb_count(struct tb *tb, uint32_t *pages, uint64_t value); /* into a histogram */

/* The files as bytes; the caller frees. */
uint8_t *tb_home(const struct tb *tb, size_t *size);
uint8_t *tb_hot(const struct tb *tb, size_t *size);
void tb_write(const char *path, const void *bytes, size_t size);
/* Descriptors of files in memory, for sw__trace_open_fds. */
int tb_memory_file(const void *bytes, size_t size);
int tb_home_fd(const struct tb *tb);
int tb_hot_fd(const struct tb *tb);

/* A typical small trace: two threads, two domains, every kind of record, open
 * sections. */
struct tb *tb_example(void);

/* The same with a call in stretches on thread loader, and with samples, at 100 Hz. Thread main: in phase forward 30 running in main > Net.fit:12 and 50, all in a native
 * call, in main > Net.fit > matmul; in phase other 10 in main > Net.fit:14 and 10 in main > Net.fit:14 > Net.fit:15.
 * Thread loader, outside steps: 5 running and 95 waiting in load:57. */
struct tb *tb_sampled(void);

/* The example with a row in every table of training: module "forward" and the loader "train" with two stages in worker 0,
 * both built in train.py. */
struct tb *tb_trained(void);

uint64_t tb_random(uint64_t *state);

#endif
