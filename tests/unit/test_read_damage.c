/* Truncated, flipped and hostile files: an error or what can be saved, never a
 * crash. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuzz/trace_walk.h"
#include "read/trace_internal.h"
#include "trace_builder.h"

static sw_trace *open_bytes(const void *bytes, size_t size, int expected,
                            const char *message)
{
    sw_trace *trace;
    sw_error_info info = {0};
    int result =
        sw__trace_open_fds(&trace, tb_memory_file(bytes, size), -1, false, "test", &info);
    assert_int_equal(result, expected);
    if (expected) {
        assert_null(trace);
        assert_non_null(strstr(info.message, message));
        assert_int_equal(info.code, expected);
    }
    return trace;
}

static sw_trace *open_home(const struct tb *tb)
{
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    sw_trace *trace = open_bytes(bytes, size, SW_OK, "");
    free(bytes);
    return trace;
}

static void walk(sw_trace *trace)
{
    struct trace_walk walked = {0};
    walk_trace(&walked, trace);
}

static void test_not_a_trace(void **state)
{
    (void)state;
    uint8_t noise[20000];
    uint64_t seed = 1;
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)tb_random(&seed);
    }
    open_bytes("", 0, SW_EFORMAT, "is empty");
    open_bytes("x", 1, SW_EFORMAT, "is not a stepwatch trace");
    open_bytes(noise, sizeof noise, SW_EFORMAT, "is not a stepwatch trace");
    memset(noise, 0, sizeof noise);
    open_bytes(noise, sizeof noise, SW_EFORMAT, "is not a stepwatch trace");
    open_bytes("STEPWTC", 7, SW_EFORMAT, "is not a stepwatch trace");
}

static void test_version_and_byte_order(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    size_t size;
    tb->super.version = 2;
    uint8_t *bytes = tb_home(tb, &size);
    open_bytes(bytes, size, SW_EVERSION, "version 2");
    free(bytes);
    tb->super.version = 1;
    tb->super.endian = 0x04030201;
    bytes = tb_home(tb, &size);
    open_bytes(bytes, size, SW_EFORMAT, "byte order");
    free(bytes);
    tb_free(tb);
}

static void test_truncated_everywhere(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    uint64_t before = 0;
    for (size_t length = 64; length < size; length += 64) {
        sw_trace *trace = open_bytes(bytes, length, SW_OK, "");
        const sw_trace_info *info = sw_trace_get_info(trace);
        assert_true(info->present >= before);
        before = info->present;
        /* Cut inside a block that uses those bytes, or inside the superblock: that
         * shows. */
        if (length < 4096) {
            assert_true(info->damaged);
            assert_non_null(sw_trace_note(trace, 0));
        }
        walk(trace);
        sw_trace_free(trace);
    }
    sw_trace *trace = open_bytes(bytes, size, SW_OK, "");
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    free(bytes);
    tb_free(tb);
}

static void test_flipped_bits(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    size_t size;
    size_t hot_size;
    uint64_t seed = 20240607;
    unsigned opened = 0;
    tb->super.state = SW__STATE_OPEN;
    tb->super.pid = 0;
    tb_begin(tb, tb->lanes[0], 1, 1100000000);
    uint8_t *home = tb_home(tb, &size);
    uint8_t *hot = tb_hot(tb, &hot_size);
    uint8_t *bytes = malloc(size);
    uint8_t *hot_bytes = malloc(hot_size);
    for (unsigned round = 0; round < 3000; round++) {
        memcpy(bytes, home, size);
        memcpy(hot_bytes, hot, hot_size);
        unsigned flips = 1 + (unsigned)(tb_random(&seed) % 40);
        for (unsigned i = 0; i < flips; i++) {
            uint8_t *target = tb_random(&seed) % 2 ? bytes : hot_bytes;
            size_t limit = target == bytes ? size : hot_size;
            /* Half of them into headers, where they hurt. */
            uint64_t at = tb_random(&seed) % limit;
            at = tb_random(&seed) % 2 ? at / 4096 * 4096 + at % 192 : at;
            target[at] ^= (uint8_t)(1u << (tb_random(&seed) % 8));
        }
        sw_trace *trace;
        int hot_fd = round % 3 ? tb_memory_file(hot_bytes, hot_size) : -1;
        int result = sw__trace_open_fds(&trace, tb_memory_file(bytes, size), hot_fd,
                                        false, "test", NULL);
        if (result == SW_OK) {
            opened++;
            walk(trace);
            sw_trace_free(trace);
        } else {
            assert_true(result == SW_EFORMAT || result == SW_EVERSION);
        }
    }
    assert_true(opened > 2500);
    free(hot_bytes);
    free(bytes);
    free(hot);
    free(home);
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

static void expect_damage(struct tb *tb, const char *about)
{
    sw_trace *trace = open_home(tb);
    walk(trace);
    assert_true(sw_trace_get_info(trace)->damaged);
    bool told = false;
    const char *note;
    for (size_t i = 0; (note = sw_trace_note(trace, i)) != NULL; i++) {
        told = told || strstr(note, about) != NULL;
    }
    if (!told) {
        fail_msg("no note about \"%s\"", about);
    }
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_bad_parents(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb->lanes[0]->nodes[1]->parent = 3; /* a cycle */
    tb->lanes[0]->nodes[3]->parent = 1;
    expect_damage(tb, "1 nodes");
    tb = tb_example();
    tb->lanes[0]->nodes[2]->parent = 2; /* its own */
    expect_damage(tb, "1 nodes");
    tb = tb_example();
    tb->lanes[0]->nodes[2]->index = 0xfffffff0;
    expect_damage(tb, "nodes");
    tb = tb_example();
    tb->lanes[0]->nodes[2]->index = 3; /* twice, and 2 is missing */
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_get_lane(trace, 0)->node_count, 4);
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[2].calls, 0);
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[2].parent, 0);
    sw_trace_free(trace);
    expect_damage(tb, "nodes");
}

static void test_bad_addresses(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb->lanes[0]->nodes[1]->hist[3] = 0xffffffff;
    tb->lanes[0]->nodes[1]->hist[4] = 1;
    tb->lanes[0]->nodes[1]->hist[59] = 1; /* no octave: ignored */
    expect_damage(tb, "2 histogram pages");
    tb = tb_example();
    tb->lanes[0]->file->stack = UINT64_MAX - 3;
    expect_damage(tb, "open sections");
    tb = tb_example();
    tb_begin(tb, tb->lanes[0], 1, 5);
    ((struct sw__fmt_frame *)(tb->lanes[0]->file + 1))->node += 1; /* amid a node */
    expect_damage(tb, "open sections");
    tb = tb_example();
    tb->lanes[0]->file->stack_capacity = UINT32_MAX;
    ((struct sw__fmt_frame *)(tb->lanes[0]->file + 1))->node = UINT32_MAX;
    expect_damage(tb, "open sections");
}

static void test_bad_blocks(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    first_of(tb, SW__BLOCK_THREADS)->magic = 0;
    expect_damage(tb, "cannot be read");
    tb = tb_example();
    first_of(tb, SW__BLOCK_EVENTS)->kind = 0;
    expect_damage(tb, "4096 bytes at offset");
    tb = tb_example();
    first_of(tb, SW__BLOCK_EVENTS)->used = 100000;
    expect_damage(tb, "claims more");
    tb = tb_example();
    first_of(tb, SW__BLOCK_EVENTS)->records = 1u << 30;
    expect_damage(tb, "claims more records");
    tb = tb_example();
    first_of(tb, SW__BLOCK_EVENTS)->records -= 1;
    expect_damage(tb, "some of its records");
    tb = tb_example();
    ((sw_record *)(first_of(tb, SW__BLOCK_EVENTS) + 1))[6].units = 0;
    expect_damage(tb, "some of its records");
    tb = tb_example();
    first_of(tb, SW__BLOCK_LANE)->thread = 0x80000000;
    expect_damage(tb, "description of 1 threads");
    tb = tb_example();
    ((struct sw__fmt_thread *)(first_of(tb, SW__BLOCK_THREADS) + 1))->index = 1u << 31;
    expect_damage(tb, "description of 1 threads");
    tb = tb_example();
    ((struct sw__fmt_def *)(first_of(tb, SW__BLOCK_DEFS) + 1))->size = 3;
    expect_damage(tb, "definitions");
    tb = tb_example();
    ((struct sw__fmt_name *)(first_of(tb, SW__BLOCK_DEFS) + 1))->id = UINT32_MAX;
    expect_damage(tb, "1 definitions");
    tb = tb_example();
    ((struct sw__fmt_name *)(first_of(tb, SW__BLOCK_DEFS) + 1))->length = UINT32_MAX;
    expect_damage(tb, "1 definitions");
}

/* A record too short for its kind is stepped over; the ones around it are not. */
static void test_short_records(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb_thread(tb, 0, "main");
    for (unsigned kind = 1; kind < SW_RECORD_KINDS; kind++) {
        uint64_t words[4] = {0};
        sw_record head = {(uint8_t)(kind == SW_RECORD_STEP ? SW_RECORD_MARK : kind), 1, 0,
                          1, 1000000000 + kind};
        memcpy(words, &head, sizeof head);
        tb_record(tb, 0, words);
    }
    sw_record_sample sample = {.head = {SW_RECORD_SAMPLE, 1, 0, 0, 1000000100},
                               .depth = 60000};
    tb_record(tb, 0, &sample);
    const sw_record_look look = {
        .head = {SW_RECORD_LOOK, 2, 0, 0, 1000000101}, .thread = 0, .depth = 12};
    tb_record(tb, 0, &look);
    sw_trace *trace = open_home(tb);
    struct trace_walk walked = {0};
    const sw_cursor_filter looks = {.kinds = 1u << SW_RECORD_LOOK};
    walk_records(&walked, trace, &looks);
    assert_int_equal(walked.records, 0); /* frames that the record does not have */
    walk_records(&walked, trace, NULL);
    assert_int_equal(walked.records,
                     16 - 7); /* batch, compile, xfer, collective, alloc, io, gpu */
    assert_true(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Counts and times out of this world add up to something, without overflow. */
static void test_absurd_numbers(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    for (unsigned i = 0; i < SW__TOTAL_SLOTS; i++) {
        tb->super.total[i] = UINT64_MAX;
    }
    for (size_t lane = 0; lane < tb->lane_count; lane++) {
        struct sw__fmt_lane *file = tb->lanes[lane]->file;
        memset(file->phase_ticks, 0xff, sizeof file->phase_ticks);
        file->step_ticks = UINT64_MAX;
        file->step_max = UINT64_MAX;
        file->steps = UINT64_MAX;
        for (uint32_t i = 0; i < tb->lanes[lane]->node_count; i++) {
            struct sw__fmt_node *node = tb->lanes[lane]->nodes[i];
            node->calls = node->inclusive = node->maximum = node->last = UINT64_MAX;
            node->errors = node->unnested = UINT64_MAX;
        }
    }
    ((struct sw__fmt_thread *)(first_of(tb, SW__BLOCK_THREADS) + 1))->dropped =
        UINT64_MAX;
    memset(first_of(tb, SW__BLOCK_HIST) + 1, 0xff, 3000);
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_get_info(trace)->dropped, UINT64_MAX);
    walk(trace);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A writer that was killed between a block's body and its header left nothing that counts. */
static void test_unfinished_block(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb->chunk_size = 3 * 4096;
    sw_record_mark mark = {.head = {SW_RECORD_MARK, 1, 0, 1, 1100000000}};
    for (unsigned i = 0; i < 300; i++) {
        tb_record(tb, 0, &mark);
    }
    struct sw__fmt_block *last = tb->blocks[tb->block_count - 1].head;
    memset(last, 0, sizeof *last);
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    size += 3 * 4096;
    bytes = realloc(bytes, size);
    memset(bytes + size - 3 * 4096, 0, 4096);
    memset(bytes + size - 2 * 4096, 0x11, 2 * 4096);
    for (unsigned written = SW__STATE_OPEN; written <= SW__STATE_FOLDED; written++) {
        memcpy(bytes + offsetof(struct sw__fmt_super, state), &written, 4);
        sw_trace *trace = open_bytes(bytes, size, SW_OK, "");
        assert_int_equal(sw_trace_get_info(trace)->damaged, written == SW__STATE_CLOSED);
        assert_int_equal(sw_trace_get_info(trace)->present, 20 * 7 + 15);
        sw_trace_free(trace);
    }
    free(bytes);
    tb_free(tb);
}

static void test_no_snapshots(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    memset(&tb->super.start_snapshot, 0, 4 * sizeof(sw_clock_snapshot));
    for (size_t i = 0; i < tb->block_count; i++) {
        memset(&tb->blocks[i].head->snapshot, 0, sizeof(sw_clock_snapshot));
    }
    expect_damage(tb, "times are in ticks");
}

/* A file that claims to be enormous costs neither time nor memory: its holes are
 * stepped over. */
static void test_sparse_giant(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    int fd = tb_home_fd(tb);
    struct timespec begin;
    struct timespec end;
    if (ftruncate(fd, (off_t)1 << 42) != 0) {
        skip();
    }
    clock_gettime(CLOCK_MONOTONIC, &begin);
    sw_trace *trace;
    assert_int_equal(sw__trace_open_fds(&trace, fd, -1, false, "test", NULL), 0);
    clock_gettime(CLOCK_MONOTONIC, &end);
    assert_true(end.tv_sec - begin.tv_sec < 5);
    assert_int_equal(sw_trace_get_info(trace)->present, 20 * 7 + 15);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Trees that are as bad as can be to rebuild. */
static void test_rebuild_is_bounded(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb_thread(tb, 0, "main");
    uint64_t seed = 5;
    for (unsigned i = 0; i < 60000; i++) {
        uint64_t word = tb_random(&seed);
        sw_record_span span = {.head = {SW_RECORD_SPAN, 1, SW_RECORD_INTERVAL,
                                        (uint32_t)(i < 20000 ? i : word % 5), 1000000000},
                               .end = 1000000000 + i,
                               .depth = (uint16_t)(i < 20000   ? 65535
                                                   : i < 40000 ? 65535 - i
                                                               : word >> 20),
                               .domain = (uint16_t)(i < 59000 ? 0 : word >> 40)};
        tb_record(tb, 0, &span);
    }
    sw_trace *trace = open_home(tb);
    walk(trace);
    sw_trace_free(trace);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_not_a_trace),
        cmocka_unit_test(test_version_and_byte_order),
        cmocka_unit_test(test_truncated_everywhere),
        cmocka_unit_test(test_flipped_bits),
        cmocka_unit_test(test_bad_parents),
        cmocka_unit_test(test_bad_addresses),
        cmocka_unit_test(test_bad_blocks),
        cmocka_unit_test(test_short_records),
        cmocka_unit_test(test_absurd_numbers),
        cmocka_unit_test(test_unfinished_block),
        cmocka_unit_test(test_no_snapshots),
        cmocka_unit_test(test_sparse_giant),
        cmocka_unit_test(test_rebuild_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
