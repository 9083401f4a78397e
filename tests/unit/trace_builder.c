#include "trace_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define START 1000000000u

static void *zeroed(size_t size)
{
    void *memory = calloc(1, size ? size : 1);
    if (!memory) {
        abort();
    }
    return memory;
}

static void *grown(void *memory, size_t size)
{
    memory = realloc(memory, size);
    if (!memory) {
        abort();
    }
    return memory;
}

uint64_t tb_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

sw_clock_snapshot tb_snapshot(const struct tb *tb, uint64_t ticks)
{
    uint64_t mono = tb->super.clock_kind == SW_CLOCK_MONOTONIC
                        ? ticks
                        : ticks * 1000 / tb->ticks_per_us;
    return (sw_clock_snapshot){ticks, mono, 1700000000000000000u + mono, 20};
}

struct tb *tb_new(enum sw_clock_kind kind)
{
    struct tb *tb = zeroed(sizeof *tb);
    struct sw__fmt_super *super = &tb->super;
    tb->ticks_per_us = 2500;
    tb->chunk_size = SW__FMT_CHUNK;
    tb->next_address = SW__FMT_PAGE;
    memcpy(super->magic, SW__FMT_MAGIC, sizeof super->magic);
    super->version = 1;
    super->endian = SW__FMT_ENDIAN;
    super->super_size = sizeof *super;
    super->role = SW__ROLE_HOME;
    memcpy(super->file_id, "0123456789abcdef", sizeof super->file_id);
    super->state = SW__STATE_CLOSED;
    super->clock_kind = (uint32_t)kind;
    super->revision = 7;
    super->pid = 4242;
    super->ppid = 4200;
    super->process_start = 1;
    super->events = 1;
    super->max_bytes = 256u << 20;
    super->keep_first = 50;
    super->keep_last = 50;
    super->keep_worst = 20;
    super->start_snapshot = tb_snapshot(tb, START);
    super->latest_snapshot[0] = tb_snapshot(tb, START + 900000000u);
    super->latest_snapshot[1] = tb_snapshot(tb, START + 1000000000u);
    super->latest = 1;
    super->end_snapshot = tb_snapshot(tb, START + 2000000000u);
    super->cost_section = 60 * 256;
    super->cost_section_low = 55 * 256;
    super->cost_section_high = 80 * 256;
    super->cost_stats = 40 * 256;
    strcpy(super->run_id, "run-1");
    strcpy(super->name, "example");
    return tb;
}

void tb_free(struct tb *tb)
{
    for (size_t i = 0; i < tb->block_count; i++) {
        free(tb->blocks[i].head);
    }
    for (size_t i = 0; i < tb->lane_count; i++) {
        free(tb->lanes[i]->nodes);
        free(tb->lanes[i]->node_addresses);
        free(tb->lanes[i]);
    }
    free(tb->blocks);
    free(tb);
}

size_t tb_block(struct tb *tb, unsigned kind, uint32_t size, uint32_t thread,
                uint32_t domain)
{
    tb->blocks = grown(tb->blocks, (tb->block_count + 1) * sizeof *tb->blocks);
    struct sw__fmt_block *head = zeroed(size);
    head->magic = SW__FMT_BLOCK_MAGIC;
    head->kind = (uint16_t)kind;
    head->size = size;
    head->address = tb->next_address;
    head->thread = thread;
    head->domain = domain;
    head->revision = 1;
    memcpy(&head->file_id, tb->super.file_id, sizeof head->file_id);
    if (kind < 16) {
        head->sequence = tb->sequence[kind]++;
    }
    tb->next_address += size;
    tb->blocks[tb->block_count] = (struct tb_block){head, TB_BOTH};
    return tb->block_count++;
}

void *tb_payload(struct tb *tb, size_t block)
{
    return tb->blocks[block].head + 1;
}

void *tb_append(struct tb *tb, size_t block, uint32_t size)
{
    struct sw__fmt_block *head = tb->blocks[block].head;
    if (sizeof *head + head->used + size > head->size) {
        return NULL;
    }
    uint8_t *at = (uint8_t *)(head + 1) + head->used;
    head->used += size;
    return at;
}

/* Room in the newest block of a kind, `*current` being 1 + its index. */
static void *room(struct tb *tb, size_t *current, unsigned kind, uint32_t size)
{
    void *at = *current ? tb_append(tb, *current - 1, size) : NULL;
    if (!at) {
        *current = 1 + tb_block(tb, kind, 4096, UINT32_MAX, 0);
        at = tb_append(tb, *current - 1, size);
    }
    if (!at) {
        abort();
    }
    return at;
}

void tb_define(struct tb *tb, const void *entry, uint32_t size)
{
    memcpy(room(tb, &tb->defs, SW__BLOCK_DEFS, size), entry, size);
}

static void define_name(struct tb *tb, unsigned kind, struct sw__fmt_name name,
                        const char *text)
{
    uint8_t entry[1024] = {0};
    name.length = (uint32_t)strlen(text);
    name.head.size = (uint32_t)(sizeof name + name.length + 7) / 8 * 8;
    name.head.kind = (uint16_t)kind;
    memcpy(entry, &name, sizeof name);
    memcpy(entry + sizeof name, text, name.length);
    tb_define(tb, entry, name.head.size);
}

void tb_name(struct tb *tb, uint32_t id, const char *text, unsigned use, unsigned phase)
{
    define_name(
        tb, SW__DEF_NAME,
        (struct sw__fmt_name){.id = id, .use = (uint16_t)use, .phase = (uint8_t)phase},
        text);
}

void tb_domain(struct tb *tb, uint32_t id, const char *text)
{
    define_name(tb, SW__DEF_DOMAIN, (struct sw__fmt_name){.id = id, .phase = 255}, text);
}

void tb_fact(struct tb *tb, const char *key, const char *value)
{
    uint8_t entry[1024] = {0};
    struct sw__fmt_fact fact = {.key_length = (uint32_t)strlen(key),
                                .value_length = (uint32_t)strlen(value)};
    fact.head.size =
        (uint32_t)(sizeof fact + fact.key_length + fact.value_length + 7) / 8 * 8;
    fact.head.kind = SW__DEF_FACT;
    memcpy(entry, &fact, sizeof fact);
    memcpy(entry + sizeof fact, key, fact.key_length);
    memcpy(entry + sizeof fact + fact.key_length, value, fact.value_length);
    tb_define(tb, entry, fact.head.size);
}

void tb_row(struct tb *tb, const sw_row *row)
{
    memcpy(room(tb, &tb->rows, SW__BLOCK_ROWS, sizeof *row), row, sizeof *row);
}

struct sw__fmt_thread *tb_thread(struct tb *tb, uint32_t index, const char *name)
{
    struct sw__fmt_thread *slot =
        room(tb, &tb->threads, SW__BLOCK_THREADS, sizeof(struct sw__fmt_thread));
    slot->index = index;
    slot->tid = 5000 + index;
    slot->incarnations = 1;
    slot->start_ticks = START + 1000 * index;
    snprintf(slot->name, sizeof slot->name, "%s", name);
    return slot;
}

static struct tb_stream *stream_of(struct tb *tb, uint32_t thread, unsigned kind)
{
    for (size_t i = 0; i < tb->stream_count; i++) {
        if (tb->streams[i].thread == thread && tb->streams[i].kind == kind) {
            return &tb->streams[i];
        }
    }
    if (tb->stream_count == sizeof tb->streams / sizeof tb->streams[0]) {
        abort();
    }
    tb->streams[tb->stream_count] =
        (struct tb_stream){.thread = thread, .kind = (uint16_t)kind};
    return &tb->streams[tb->stream_count++];
}

static void seal(struct tb *tb, struct tb_stream *stream)
{
    if (stream->block) {
        tb->blocks[stream->block - 1].head->flags |= SW__BLOCK_SEALED;
        stream->block = 0;
    }
}

void tb_seal(struct tb *tb)
{
    for (size_t i = 0; i < tb->stream_count; i++) {
        seal(tb, &tb->streams[i]);
    }
}

void tb_record(struct tb *tb, uint32_t thread, const void *record)
{
    sw_record head;
    memcpy(&head, record, sizeof head);
    uint32_t size = (uint32_t)head.units * SW_RECORD_UNIT;
    uint64_t end = head.ticks;
    if (head.flags & SW_RECORD_INTERVAL) {
        memcpy(&end, (const uint8_t *)record + sizeof head, sizeof end);
    }
    unsigned kind = head.kind == SW_RECORD_STEP ? SW__BLOCK_STEPS : SW__BLOCK_EVENTS;
    struct tb_stream *stream = stream_of(tb, thread, kind);
    void *at = stream->block ? tb_append(tb, stream->block - 1, size) : NULL;
    if (!at) {
        seal(tb, stream);
        stream->block = 1 + tb_block(tb, kind, tb->chunk_size, thread, 0);
        struct sw__fmt_block *fresh = tb->blocks[stream->block - 1].head;
        fresh->sequence = stream->sequence++;
        fresh->first_ticks = end;
        fresh->tid = 5000 + thread;
        fresh->snapshot = tb_snapshot(tb, end);
        at = tb_append(tb, stream->block - 1, size);
    }
    if (!at) {
        abort();
    }
    struct sw__fmt_block *chunk = tb->blocks[stream->block - 1].head;
    memcpy(at, record, size);
    chunk->records++;
    chunk->last_ticks = end > chunk->last_ticks ? end : chunk->last_ticks;
}

static uint32_t make_node(struct tb *tb, struct tb_lane *lane, uint32_t parent,
                          uint32_t section)
{
    struct sw__fmt_node *node = NULL;
    struct sw__fmt_block *head = NULL;
    for (size_t i = 0; i < tb->block_count && !node; i++) {
        head = tb->blocks[i].head;
        if (head->kind == SW__BLOCK_NODES && head->thread == lane->thread &&
            head->domain == lane->domain) {
            node = tb_append(tb, i, sizeof *node);
        }
    }
    if (!node) {
        size_t block = tb_block(tb, SW__BLOCK_NODES, 4096, lane->thread, lane->domain);
        head = tb->blocks[block].head;
        node = tb_append(tb, block, sizeof *node);
    }
    uint32_t index = lane->node_count++;
    *node = (struct sw__fmt_node){
        .section = section, .parent = parent, .index = index, .minimum = UINT64_MAX};
    lane->nodes = grown(lane->nodes, lane->node_count * sizeof *lane->nodes);
    lane->node_addresses =
        grown(lane->node_addresses, lane->node_count * sizeof *lane->node_addresses);
    lane->nodes[index] = node;
    lane->node_addresses[index] =
        head->address + (uint64_t)((uint8_t *)node - (uint8_t *)head);
    lane->file->nodes = lane->node_count;
    return index;
}

struct tb_lane *tb_lane(struct tb *tb, uint32_t thread, uint16_t domain)
{
    struct tb_lane *lane = zeroed(sizeof *lane);
    if (tb->lane_count == sizeof tb->lanes / sizeof tb->lanes[0]) {
        abort();
    }
    tb->lanes[tb->lane_count++] = lane;
    size_t block = tb_block(tb, SW__BLOCK_LANE, 4096, thread, domain);
    struct sw__fmt_block *head = tb->blocks[block].head;
    head->used = head->size - (uint32_t)sizeof *head;
    lane->file = tb_payload(tb, block);
    lane->thread = thread;
    lane->domain = domain;
    *lane->file = (struct sw__fmt_lane){
        .thread = thread,
        .domain = domain,
        .stack_capacity = 100,
        .stack = head->address + sizeof *head + sizeof *lane->file,
        .step_min = UINT64_MAX,
    };
    make_node(tb, lane, 0, 0);
    return lane;
}

static struct sw__fmt_frame *frame_at(struct tb_lane *lane, uint32_t depth)
{
    if (depth >= 100) {
        abort();
    }
    return (struct sw__fmt_frame *)(lane->file + 1) + depth;
}

void tb_begin(struct tb *tb, struct tb_lane *lane, uint32_t section, uint64_t ticks)
{
    uint32_t parent = lane->depth ? lane->stack[lane->depth - 1].node : 0;
    uint32_t node = 0;
    for (uint32_t i = 1; i < lane->node_count && !node; i++) {
        if (lane->nodes[i]->parent == parent && lane->nodes[i]->section == section) {
            node = i;
        }
    }
    node = node ? node : make_node(tb, lane, parent, section);
    *frame_at(lane, lane->depth) = (struct sw__fmt_frame){
        .start = ticks, .node = (uint32_t)(lane->node_addresses[node] / 64)};
    lane->stack[lane->depth].start = ticks;
    lane->stack[lane->depth].node = node;
    lane->depth++;
}

void tb_count(struct tb *tb, uint32_t *pages, uint64_t value)
{
    unsigned octave = sw_histogram_octave(value);
    uint64_t address = (uint64_t)pages[octave] * 64;
    struct sw__fmt_page *page = NULL;
    if (!address) {
        page = room(tb, &tb->hist, SW__BLOCK_HIST, sizeof *page);
        struct sw__fmt_block *head = tb->blocks[tb->hist - 1].head;
        pages[octave] =
            (uint32_t)((head->address + (uint64_t)((uint8_t *)page - (uint8_t *)head)) /
                       64);
    }
    for (size_t i = 0; i < tb->block_count && !page; i++) {
        struct sw__fmt_block *head = tb->blocks[i].head;
        if (address >= head->address && address < head->address + head->size) {
            page = (struct sw__fmt_page *)((uint8_t *)head + (address - head->address));
        }
    }
    page->bucket[sw_histogram_bucket(value)]++;
}

void tb_end(struct tb *tb, struct tb_lane *lane, uint64_t ticks, unsigned flags)
{
    uint32_t depth = --lane->depth;
    uint64_t start = lane->stack[depth].start;
    uint64_t duration = ticks - start;
    struct sw__fmt_node *node = lane->nodes[lane->stack[depth].node];
    frame_at(lane, depth)->node = 0;
    node->inclusive += duration;
    lane->nodes[node->parent]->child += duration;
    if (!(flags & SW_RECORD_PART)) {
        node->calls++;
        node->minimum = duration < node->minimum ? duration : node->minimum;
        node->maximum = duration > node->maximum ? duration : node->maximum;
        node->last = duration;
        node->errors += (flags & SW_RECORD_ERROR) != 0;
        tb_count(tb, node->hist, duration);
    }
    sw_record_span span = {.head = {.kind = SW_RECORD_SPAN,
                                    .units = 1,
                                    .flags = (uint16_t)(SW_RECORD_INTERVAL | flags),
                                    .id = node->section,
                                    .ticks = start},
                           .end = ticks,
                           .node = node->index,
                           .depth = (uint16_t)depth,
                           .domain = lane->domain};
    tb_record(tb, lane->thread, &span);
}

void tb_step(struct tb *tb, struct tb_lane *lane, uint64_t begin, uint64_t end,
             const uint64_t *phases, unsigned flags)
{
    sw_record_step step = {.head = {.kind = SW_RECORD_STEP,
                                    .units = sizeof step / SW_RECORD_UNIT,
                                    .flags = (uint16_t)(SW_RECORD_INTERVAL | flags),
                                    .ticks = begin},
                           .end = end,
                           .number = lane->file->steps,
                           .domain = lane->domain,
                           .run_delay_ns = UINT64_MAX};
    memcpy(step.phase_ticks, phases, sizeof step.phase_ticks);
    tb_record(tb, lane->thread, &step);
    struct sw__fmt_lane *file = lane->file;
    file->steps++;
    if (flags & SW_STEP_INCOMPLETE) {
        file->steps_incomplete++;
        return;
    }
    file->step_ticks += end - begin;
    file->step_min = end - begin < file->step_min ? end - begin : file->step_min;
    file->step_max = end - begin > file->step_max ? end - begin : file->step_max;
    for (unsigned i = 0; i < SW_PHASE_SLOTS; i++) {
        file->phase_ticks[i] += phases[i];
    }
    tb_count(tb, file->step_hist, end - begin);
}

uint8_t *tb_home(const struct tb *tb, size_t *size)
{
    *size = sizeof tb->super;
    uint8_t *file = zeroed(tb->next_address);
    memcpy(file, &tb->super, sizeof tb->super);
    for (size_t i = 0; i < tb->block_count; i++) {
        if (tb->blocks[i].where & TB_HOME) {
            memcpy(file + *size, tb->blocks[i].head, tb->blocks[i].head->size);
            *size += tb->blocks[i].head->size;
        }
    }
    return file;
}

uint8_t *tb_hot(const struct tb *tb, size_t *size)
{
    *size = tb->next_address;
    uint8_t *file = zeroed(*size);
    struct sw__fmt_super super = tb->super;
    super.role = SW__ROLE_HOT;
    memset(super.hot_path, 0, sizeof super.hot_path);
    memcpy(file, &super, sizeof super);
    for (size_t i = 0; i < tb->block_count; i++) {
        struct sw__fmt_block head = *tb->blocks[i].head;
        if (tb->blocks[i].where & TB_HOT) {
            memcpy(file + head.address, tb->blocks[i].head, head.size);
        } else {
            head.kind = SW__BLOCK_FREE;
            memcpy(file + head.address, &head, sizeof head);
        }
    }
    return file;
}

void tb_write(const char *path, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, size, file) != size || fclose(file) != 0) {
        perror(path);
        abort();
    }
}

int tb_memory_file(const void *bytes, size_t size)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, bytes, size) != (ssize_t)size) {
        abort();
    }
    return fd;
}

int tb_home_fd(const struct tb *tb)
{
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    int fd = tb_memory_file(bytes, size);
    free(bytes);
    return fd;
}

int tb_hot_fd(const struct tb *tb)
{
    size_t size;
    uint8_t *bytes = tb_hot(tb, &size);
    int fd = tb_memory_file(bytes, size);
    free(bytes);
    return fd;
}

/* One record of every kind, 100 ticks apart. */
static void put_every_kind(struct tb *tb, uint32_t thread, uint64_t at)
{
    const uint16_t interval = SW_RECORD_INTERVAL;
#define HEAD(name, type, flag, number)                                                   \
    .head = {SW_RECORD_##name, sizeof(type) / SW_RECORD_UNIT, flag, number, at}
#define PUT(type, ...)                                                                   \
    do {                                                                                 \
        type record = {__VA_ARGS__};                                                     \
        tb_record(tb, thread, &record);                                                  \
        at += 100;                                                                       \
    } while (0)
    PUT(sw_record_counter, HEAD(COUNTER, sw_record_counter, 0, 4), .value = 0.25);
    PUT(sw_record_mark, HEAD(MARK, sw_record_mark, 0, 5));
    PUT(sw_record_batch, HEAD(BATCH, sw_record_batch, interval, 5), .end = at + 50,
        .batch = 17, .worker = 3, .step = UINT64_MAX);
    PUT(sw_record_site, HEAD(SITE, sw_record_site, 0, 5), .what = 1, .line = 12);
    struct {
        sw_record_sample sample;
        sw_record_frame frames[4];
    } sample = {
        .sample = {.head = {SW_RECORD_SAMPLE, 2, 0, 0, at}, .state = 'R', .depth = 3},
        .frames = {{1, 10}, {2, 20}, {3, 30}}};
    tb_record(tb, thread, &sample);
    at += 100;
    PUT(sw_record_compile, HEAD(COMPILE, sw_record_compile, interval, 5), .end = at + 50,
        .count = 1);
    PUT(sw_record_gc, HEAD(GC, sw_record_gc, interval, 0), .end = at + 50,
        .generation = 2);
    PUT(sw_record_sync, HEAD(SYNC, sw_record_sync, interval, 5), .end = at + 50);
    PUT(sw_record_xfer, HEAD(XFER, sw_record_xfer, interval, 5), .end = at + 50,
        .bytes = 4096, .direction = 1);
    PUT(sw_record_collective, HEAD(COLLECTIVE, sw_record_collective, interval, 5),
        .end = at + 50, .ranks = 8);
    PUT(sw_record_alloc, HEAD(ALLOC, sw_record_alloc, 0, 5), .bytes = -64);
    PUT(sw_record_io, HEAD(IO, sw_record_io, interval, 5), .end = at + 50, .result = -5);
    PUT(sw_record_counter, HEAD(MONITOR, sw_record_counter, 0, 4), .value = 99.5);
    PUT(sw_record_gpu, HEAD(GPU, sw_record_gpu, interval, 5), .end = at + 50,
        .stream = 7);
    PUT(sw_record_look, HEAD(LOOK, sw_record_look, 0, 0), .step = 3, .phase = 6,
        .edge = SW_LOOK_FIRST, .sources = 1);
#undef PUT
#undef HEAD
}

struct tb *tb_example(void)
{
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 4096;
    tb->super.total[SW__TOTAL_DROPPED] = 3;
    tb->super.total[SW__TOTAL_OVERWRITTEN] = 5;
    tb->super.total[SW__TOTAL_THREADS] = 2;
    tb_name(tb, 1, "step", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_name(tb, 2, "forward", SW__NAME_SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 3, "layer_*", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_name(tb, 4, "loss", SW__NAME_COUNTER, SW_PHASE_INHERIT);
    tb_name(tb, 5, "train.py", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_domain(tb, 1, "inner");
    tb_fact(tb, "host", "gpu-7");
    tb_fact(tb, "command", "train --epochs 3");
    struct sw__fmt_thread *main_thread = tb_thread(tb, 0, "main");
    struct sw__fmt_thread *loader = tb_thread(tb, 1, "loader");
    main_thread->dropped = 2;
    main_thread->overwritten = 10;
    loader->dropped = 1;
    loader->end_ticks = START + 1500000000u;
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    struct tb_lane *inner = tb_lane(tb, 0, 1);
    struct tb_lane *other = tb_lane(tb, 1, 0);
    uint64_t at = START + 1000000;
    for (unsigned step = 0; step < 20; step++) {
        uint64_t phases[SW_PHASE_SLOTS] = {0};
        uint64_t begin = at;
        tb_begin(tb, lane, 1, at);
        tb_begin(tb, lane, 2, at + 1000);
        for (unsigned layer = 0; layer < 3; layer++) {
            tb_begin(tb, lane, 3, at + 2000 + layer * 1000);
            tb_end(tb, lane, at + 2700 + layer * 1000 + step, 0);
        }
        tb_end(tb, lane, at + 9000, step % 7 == 0 ? SW_RECORD_ERROR : 0);
        tb_begin(tb, inner, 2, at + 500);
        tb_end(tb, inner, at + 9500, 0);
        tb_end(tb, lane, at + 10000 + step * 10, 0);
        tb_begin(tb, other, 5, at + 100);
        tb_end(tb, other, at + 5100, 0);
        at += 1000000 + step * 10;
        phases[SW_PHASE_FORWARD] = 8000;
        phases[SW_PHASE_LOSS] = 333;
        phases[SW_PHASE_OTHER] = at - begin - 8333;
        tb_step(tb, lane, begin, at, phases, step == 19 ? SW_STEP_INCOMPLETE : 0);
        lane->file->updates++;
    }
    put_every_kind(tb, 1, at);
    tb_seal(tb);
    return tb;
}

struct tb *tb_sampled(void)
{
    static const char *const names[] = {"train.py", "main", "Net.fit", "matmul", "load"};
    static const sw_row rows[] = {
        /* file, qualified name, first line, name */
        {SW_TABLE_CODE, 0, 0, {11, 12, 1, 12}, {0}},
        {SW_TABLE_CODE, 0, 1, {11, 13, 10, 13}, {0}},
        {SW_TABLE_CODE, SW_ROW_NATIVE, 2, {0, 14, 0, 14}, {0}},
        {SW_TABLE_CODE, 0, 3, {11, 15, 50, 15}, {0}},
        /* thread, section, phase, domain */
        {SW_TABLE_CONTEXT, 0, 0, {0, 2, SW_PHASE_FORWARD, 0}, {80, 0}},
        {SW_TABLE_CONTEXT, 0, 1, {0, 0, SW_PHASE_OTHER, 0}, {20, 0}},
        {SW_TABLE_CONTEXT, 0, 2, {1, 0, SW_PHASE_INHERIT, 0}, {5, 95}},
        /* parent, code, line */
        {SW_TABLE_STACK, SW_ROW_IN_CONTEXT, 0, {0, 0, 3}, {0}},
        {SW_TABLE_STACK, 0, 1, {0, 1, 12}, {30, 0, 0}},
        {SW_TABLE_STACK, 0, 2, {1, 2, 0}, {50, 0, 50}},
        {SW_TABLE_STACK, SW_ROW_IN_CONTEXT, 3, {1, 0, 3}, {0}},
        {SW_TABLE_STACK, 0, 4, {3, 1, 14}, {10, 0, 0}},
        {SW_TABLE_STACK, 0, 5, {4, 1, 15}, {10, 0, 0}},
        {SW_TABLE_STACK, SW_ROW_IN_CONTEXT, 6, {2, 3, 57}, {5, 95, 0}},
        {SW_TABLE_SAMPLER, 0, 0, {100}, {210, 200, 6, 10, 2500000}},
    };
    struct tb *tb = tb_example();
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_name(tb, 11 + i, names[i], SW__NAME_TEXT, SW_PHASE_INHERIT);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    /* The loader is a generator: one call in three stretches, and one that never ended. */
    struct tb_lane *lane = tb->lanes[2];
    for (unsigned i = 0; i < 4; i++) {
        uint64_t at = START + 30000000u + i * 1000;
        tb_begin(tb, lane, 2, at);
        tb_begin(tb, lane, 3, at + 100);
        tb_end(tb, lane, at + 150, 0);
        tb_end(tb, lane, at + 300 + i, i == 2 ? 0 : SW_RECORD_PART);
    }
    tb_seal(tb);
    return tb;
}

struct tb *tb_trained(void)
{
    static const char *const names[] = {
        "Linear",      "float32", "train", "Images",   "RandomCrop", "shapes differ",
        "Tensor.item", "amp",     "dtype", "bfloat16", "aten::mm",   "[8, 8]"};
    enum {
        LINEAR = 21,
        FLOAT32,
        TRAIN,
        IMAGES,
        CROP,
        DIFFER,
        ITEM,
        AMP,
        DTYPE,
        BF16,
        MM,
        SHAPES
    };
    static const sw_row rows[] = {
        {SW_TABLE_SITE, 0, 0, {SW_SITE_LOADER, 5, 30, IMAGES}, {1}},
        {SW_TABLE_SITE, 0, 1, {SW_SITE_MODEL, 5, 12, LINEAR}, {1}},
        {SW_TABLE_MODULE,
         SW_ROW_MODEL,
         0,
         {2, LINEAR, FLOAT32, 2},
         {110, 440, 100, 900, 3}},
        {SW_TABLE_LOADER,
         0,
         0,
         {TRAIN, IMAGES, 1, 16},
         {SW_LOADER_PIN | SW_LOADER_SHUFFLED, 2, UINT64_MAX, 3, 1}},
        {SW_TABLE_STAGE,
         0,
         0,
         {TRAIN, 0, SW_STAGE_GETITEM, IMAGES},
         {80, 8000, 7000, 90, 200}},
        {SW_TABLE_STAGE,
         0,
         1,
         {TRAIN, 0, SW_STAGE_TRANSFORM, CROP},
         {80, 6000, 0, 70, 90}},
        {SW_TABLE_STAGE,
         0,
         2,
         {TRAIN, UINT32_MAX, SW_STAGE_WAIT, 0},
         {20, 4000, 0, 100, 300}},
        {SW_TABLE_COMPILED,
         SW_ROW_AGAIN,
         0,
         {2, DIFFER, 5, 14},
         {2, 5000, 1000, 1000, 3000}},
        {SW_TABLE_WAIT, 0, 0, {ITEM, 5, 40, SW_WAIT_SYNC}, {20, 2000, 80, 150, 0}},
        {SW_TABLE_SETTING, 0, 0, {AMP, DTYPE, BF16, 0}, {0}},
        {SW_TABLE_OPERATOR,
         0,
         0,
         {MM, SHAPES, SW_PHASE_FORWARD, 0},
         {20, 500, 700, 64, 1024}},
    };
    struct tb *tb = tb_example();
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_name(tb, LINEAR + i, names[i], SW__NAME_TEXT, SW_PHASE_INHERIT);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    tb_seal(tb);
    return tb;
}
