/* Writes the seeds of corpus/trace into the folder named on the command line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../unit/trace_builder.h"

static const char *folder;

static void save(const char *name, const void *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    tb_write(path, bytes, size);
}

static void save_home(const char *name, struct tb *tb, size_t cut)
{
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    save(name, bytes, cut && cut < size ? cut : size);
    free(bytes);
}

/* Home and hot file in one input, see fuzz_trace.c. */
static void save_pair(const char *name, struct tb *tb)
{
    size_t home_size;
    size_t hot_size;
    uint8_t *home = tb_home(tb, &home_size);
    uint8_t *hot = tb_hot(tb, &hot_size);
    uint8_t *both = malloc(home_size + hot_size + 16);
    if (!both) {
        abort();
    }
    uint64_t split = home_size;
    memcpy(both, home, home_size);
    memcpy(both + home_size, hot, hot_size);
    memcpy(both + home_size + hot_size, "SW__PAIR", 8);
    memcpy(both + home_size + hot_size + 8, &split, sizeof split);
    save(name, both, home_size + hot_size + 16);
    free(both);
    free(hot);
    free(home);
}

/* A process that was killed: open sections, a chunk that is not sealed, an open
 * step. */
static struct tb *killed(void)
{
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 4096;
    tb->super.state = SW__STATE_OPEN;
    tb->super.pid = 0;
    memset(&tb->super.end_snapshot, 0, sizeof tb->super.end_snapshot);
    strcpy(tb->super.hot_path, "/dev/shm/nowhere.hot");
    tb_name(tb, 1, "epoch", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_name(tb, 2, "step", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = 1000001000;
    tb_begin(tb, lane, 1, at);
    for (int i = 0; i < 300; i++) {
        tb_begin(tb, lane, 2, at += 100);
        tb_end(tb, lane, at += 300, 0);
    }
    tb_begin(tb, lane, 2, at + 100);
    lane->file->step_open = 301;
    lane->file->step_begin = at;
    for (size_t i = 0; i < tb->block_count; i++) {
        struct sw__fmt_block *head = tb->blocks[i].head;
        if (head->kind == SW__BLOCK_EVENTS) {
            tb->blocks[i].where = head->sequence < 2 ? TB_HOME : TB_HOT;
        }
    }
    return tb;
}

static struct tb *monotonic(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->chunk_size = 4096;
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (unsigned depth = 0; depth < 60; depth++) {
        tb_begin(tb, lane, depth % 5 + 1, 1000000100 + depth);
    }
    for (unsigned depth = 0; depth < 60; depth++) {
        tb_end(tb, lane, 1000000200 + depth, depth % 9 ? 0 : SW_RECORD_UNNESTED);
    }
    tb_seal(tb);
    return tb;
}

static struct tb *many_threads(void)
{
    struct tb *tb = tb_new(SW_CLOCK_CNTVCT);
    tb->chunk_size = 4096;
    tb->super.state = SW__STATE_FOLDED;
    for (uint32_t i = 0; i < 5; i++) {
        tb_thread(tb, i, "worker");
        sw_record_span span = {
            .head = {SW_RECORD_SPAN, 1, SW_RECORD_INTERVAL, 7, 1000000000 + i},
            .end = 1000005000 - i};
        tb_record(tb, i * (i == 4 ? 1000 : 1), &span);
    }
    return tb;
}

/* What a framework's profiler left: operators of a thread, work of a device, allocations. */
static struct tb *with_operators(bool bad)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->chunk_size = 4096;
    static const char *const names[] = {"forward", "aten::mm", "[[4, 8]]", "[\"float\"]"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_name(tb, i + 1, names[i], i == 0, SW_PHASE_INHERIT);
    }
    tb_fact(tb, "torch.device.0", bad ? "{\"id\": 0,}" : "{\"id\": 0}");
    tb_thread(tb, 0, "main");
    tb_thread(tb, 1, bad ? "operators of thread 05000" : "operators of thread 5000");
    tb_thread(tb, 2, "device 0 stream 7");
    tb_thread(tb, 3, "torch memory");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, 1000001000);
    tb_end(tb, lane, 1000009000, 0);
    for (uint32_t i = 0; i < 6; i++) {
        const uint64_t at = 1000002000 + 1000 * i;
        const uint16_t flags = (uint16_t)(SW_RECORD_INTERVAL | SW_SPAN_OPERATOR |
                                          (i == 4   ? SW_SPAN_BACKWARD
                                           : i == 5 ? SW_SPAN_RUNTIME
                                                    : 0));
        const sw_record_operator call = {
            .span = {.head = {SW_RECORD_SPAN, 2, flags, bad ? UINT32_MAX : 2, at},
                     .end = at + (bad ? 1500 : 500),
                     .depth = bad ? UINT16_MAX : 0},
            .external = bad ? UINT64_MAX : i + 1,
            .sequence = bad && i % 2 ? UINT64_MAX - 1 : i % 4,
            .correlation = bad ? UINT32_MAX : i,
            .forward = bad ? UINT32_MAX : 5000,
            .shapes = bad ? i : 3,
            .types = bad ? UINT32_MAX : 4};
        tb_record(tb, 1, &call);
        const sw_record_gpu work = {
            .head = {SW_RECORD_GPU, 2, SW_RECORD_INTERVAL, 2, at + 100},
            .end = at + 200,
            .bytes = bad ? UINT64_MAX : 64,
            .device = bad ? UINT32_MAX - i : 0,
            .stream = 7,
            .activity = bad ? 77 : 1,
            .correlation = i,
            .external = i + 1};
        tb_record(tb, 2, &work);
        const sw_record_alloc alloc = {.head = {SW_RECORD_ALLOC, 2, 0, 2, at},
                                       .bytes = bad ? INT64_MIN : 64,
                                       .node = bad ? UINT32_MAX : 5000,
                                       .allocator = bad ? UINT32_MAX : 1,
                                       .total = bad ? UINT64_MAX : 64};
        tb_record(tb, 3, &alloc);
    }
    return tb;
}

static void save_bent(const char *name, void (*bend)(struct tb *tb))
{
    struct tb *tb = tb_example();
    bend(tb);
    save_home(name, tb, 0);
    tb_free(tb);
}

static struct sw__fmt_block *first_of(struct tb *tb, unsigned kind)
{
    for (size_t i = 0; i < tb->block_count; i++) {
        if (tb->blocks[i].head->kind == kind) {
            return tb->blocks[i].head;
        }
    }
    abort();
}

static void bend_magic(struct tb *tb)
{
    tb->super.magic[0] = 'X';
}
static void bend_version(struct tb *tb)
{
    tb->super.version = 2;
}
static void bend_snapshots(struct tb *tb)
{
    memset(&tb->super.start_snapshot, 0xff, sizeof tb->super.start_snapshot);
    tb->super.clock_kind = 77;
}
static void bend_block(struct tb *tb)
{
    first_of(tb, SW__BLOCK_THREADS)->magic = 1;
}
static void bend_used(struct tb *tb)
{
    first_of(tb, SW__BLOCK_EVENTS)->used = UINT32_MAX;
}
static void bend_parent(struct tb *tb)
{
    tb->lanes[0]->nodes[1]->parent = 3;
}
static void bend_pages(struct tb *tb)
{
    memset(tb->lanes[0]->nodes[1]->hist, 0xff, 240);
}
static void bend_kind(struct tb *tb)
{
    first_of(tb, SW__BLOCK_STEPS)->kind = 60;
}
static void bend_stack(struct tb *tb)
{
    tb->lanes[0]->file->stack = first_of(tb, SW__BLOCK_HIST)->address + 128;
}
static void bend_units(struct tb *tb)
{
    ((sw_record *)(first_of(tb, SW__BLOCK_EVENTS) + 1))->units = 0;
}

/* Rows that no recorder writes: circles, gaps, numbers that are too large. */
static void bend_rows(struct tb *tb)
{
    struct sw__fmt_block *block = first_of(tb, SW__BLOCK_ROWS);
    sw_row *rows = (sw_row *)(block + 1);
    for (uint32_t i = 0; i < block->used / sizeof *rows; i++) {
        if (rows[i].table == SW_TABLE_STACK && rows[i].index > 1) {
            rows[i].flags = 0;
            rows[i].key[0] = rows[i].index + 1 - rows[i].index % 3;
        }
        rows[i].key[1] = i % 4 ? rows[i].key[1] : UINT32_MAX;
        rows[i].value[0] = UINT64_MAX;
    }
    rows[0].table = 999;
    rows[1].index = UINT32_MAX;
    rows[2] = rows[3];
    block->used += 13;
}

/* Names, places and amounts that are not there. */
static void bend_trained(struct tb *tb)
{
    struct sw__fmt_block *block = first_of(tb, SW__BLOCK_ROWS);
    sw_row *rows = (sw_row *)(block + 1);
    for (uint32_t i = 0; i < block->used / sizeof *rows; i++) {
        rows[i].key[i % 4] = i % 2 ? UINT32_MAX : 77;
        for (uint32_t k = 0; k < 5; k++) {
            rows[i].value[k] = k % 2 ? UINT64_MAX : (uint64_t)1 << 63;
        }
    }
}

static uint64_t bits(double value)
{
    uint64_t number;
    memcpy(&number, &value, sizeof number);
    return number;
}

/* What a monitor leaves: sources, two series, looks with an open section, and their values. */
static struct tb *monitored(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    static const char *const names[] = {"epoch", "monitor", "process", "rss",
                                        "cpu",   "B",       "s"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_name(tb, i + 1, names[i], i == 0, SW_PHASE_INHERIT);
    }
    tb_thread(tb, 0, "main");
    tb_thread(tb, 1, "stepwatch");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, 1000000000);
    const sw_row rows[] = {
        {.table = SW_TABLE_SOURCE, .index = 0, .key = {3, 0, 0, 0}, .value = {6, 100, 0}},
        {.table = SW_TABLE_SOURCE,
         .index = 1,
         .key = {2, 0, 0, UINT32_MAX},
         .value = {6, 5000, 0, 100000000, 1}},
        {.table = SW_TABLE_SERIES,
         .index = 0,
         .key = {4, 6, SW_SERIES_GAUGE, 0},
         .value = {6, bits(600), bits(50), bits(150), bits(150)}},
        {.table = SW_TABLE_SERIES,
         .index = 1,
         .key = {5, 7, SW_SERIES_TOTAL, 0},
         .value = {6, bits(0.5), 500000000, bits(0.9), bits(1.1)}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    for (unsigned i = 0; i < 6; i++) {
        const uint64_t at = 1010000000 + i * 10000000u;
        struct {
            sw_record_look look;
            sw_look_frame frame[2];
        } look = {.look = {.head = {.kind = SW_RECORD_LOOK, .units = 3, .ticks = at},
                           .step = i % 2 ? 7 : UINT64_MAX,
                           .phase = i % 2 ? SW_PHASE_FORWARD : SW_PHASE_INHERIT,
                           .depth = 1,
                           .edge = i == 0   ? SW_LOOK_FIRST
                                   : i == 5 ? SW_LOOK_LAST
                                            : 0,
                           .sources = 1,
                           .phase_start = at - 1000},
                  .frame = {{.node = 1, .section = 1, .start = 1000000000}}};
        sw_record_counter value = {
            .head = {.kind = SW_RECORD_MONITOR, .units = 1, .id = 4, .ticks = at},
            .value = 50 + 20.0 * i};
        tb_record(tb, 1, &look);
        tb_record(tb, 1, &value);
        value.head.id = 5;
        value.value = 0.1 * i;
        tb_record(tb, 1, &value);
    }
    return tb;
}

/* Places, kinds and numbers that no monitor writes. */
static void bend_monitored(struct tb *tb)
{
    sw_row *rows = (sw_row *)(first_of(tb, SW__BLOCK_ROWS) + 1);
    rows[2].value[1] = rows[2].value[3] = UINT64_MAX;
    rows[2].key[3] = 9;
    rows[3].key[2] = 77;
    rows[3].value[2] = UINT64_MAX;
    struct sw__fmt_block *block = first_of(tb, SW__BLOCK_EVENTS);
    uint8_t *at = (uint8_t *)(block + 1);
    sw_record_look *second = (sw_record_look *)(void *)(at + 5 * SW_RECORD_UNIT);
    second->thread = 55;
    second->phase = 200;
    second->head.ticks = 0;
    second->sources = UINT64_MAX;
    ((sw_look_frame *)(second + 1))->node = UINT32_MAX;
    ((sw_record_counter *)(void *)(at + 3 * SW_RECORD_UNIT))->value = INFINITY;
    ((sw_record_counter *)(void *)(at + 4 * SW_RECORD_UNIT))->head.id = UINT32_MAX;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus FOLDER\n");
        return 2;
    }
    folder = argv[1];
    struct tb *tb = tb_example();
    save_home("example", tb, 0);
    save_home("cut_in_superblock", tb, 1000);
    save_home("cut_in_block", tb, 4096 * 3 + 1777);
    tb_free(tb);
    tb = tb_sampled();
    save_home("sampled", tb, 0);
    bend_rows(tb);
    save_home("bad_rows", tb, 0);
    tb_free(tb);
    tb = tb_trained();
    save_home("trained", tb, 0);
    bend_trained(tb);
    save_home("bad_trained", tb, 0);
    tb_free(tb);
    tb = monitored();
    save_home("monitored", tb, 0);
    bend_monitored(tb);
    save_home("bad_monitored", tb, 0);
    tb_free(tb);
    tb = killed();
    save_pair("killed_pair", tb);
    save_home("killed_alone", tb, 0);
    tb->super.magic[3] = 0;
    save_home("killed_bad_superblock", tb, 0);
    tb_free(tb);
    tb = monotonic();
    save_home("monotonic", tb, 0);
    tb_free(tb);
    tb = many_threads();
    save_home("many_threads", tb, 0);
    tb_free(tb);
    tb = with_operators(false);
    save_home("operators", tb, 0);
    tb_free(tb);
    tb = with_operators(true);
    save_home("bad_operators", tb, 0);
    tb_free(tb);
    tb = tb_new(SW_CLOCK_TSC);
    save_home("only_superblock", tb, 0);
    tb_free(tb);
    save_bent("bad_magic", bend_magic);
    save_bent("bad_version", bend_version);
    save_bent("bad_snapshots", bend_snapshots);
    save_bent("bad_block", bend_block);
    save_bent("bad_used", bend_used);
    save_bent("bad_parent", bend_parent);
    save_bent("bad_pages", bend_pages);
    save_bent("bad_kind", bend_kind);
    save_bent("bad_stack", bend_stack);
    save_bent("bad_units", bend_units);
    return 0;
}
