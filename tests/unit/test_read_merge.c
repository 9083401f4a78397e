/* Home and hot file together: which copy of a block counts, and which hot files do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuzz/trace_walk.h"
#include "base/os.h"
#include "read/trace_internal.h"
#include "trace_builder.h"

static char folder[64];
static char home_path[128];
static char hot_path[128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stepwatch-merge-XXXXXX");
    if (!mkdtemp(folder)) {
        return -1;
    }
    snprintf(home_path, sizeof home_path, "%s/a.stepwatch", folder);
    snprintf(hot_path, sizeof hot_path, "%s/a.hot", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(home_path);
    unlink(hot_path);
    return rmdir(folder);
}

static struct tb *open_state(void)
{
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 4096;
    tb->super.state = SW__STATE_OPEN;
    tb->super.pid = (uint32_t)getpid();
    tb->super.process_start = 1; /* another process that had our pid: dead */
    strcpy(tb->super.hot_path, hot_path);
    tb_name(tb, 1, "work", SW__NAME_SECTION, 255);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (unsigned i = 0; i < 400; i++) {
        tb_begin(tb, lane, 1, 1000000000 + i * 100);
        tb_end(tb, lane, 1000000050 + i * 100, 0);
    }
    return tb;
}

static void write_home(struct tb *tb)
{
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(home_path, bytes, size);
    free(bytes);
}

static void write_hot(struct tb *tb)
{
    size_t size;
    uint8_t *bytes = tb_hot(tb, &size);
    tb_write(hot_path, bytes, size);
    free(bytes);
}

static sw_trace *open_trace(void)
{
    sw_trace *trace;
    sw_error_info info = {0};
    if (sw_trace_open(&trace, home_path, &info)) {
        fail_msg("%s", info.message);
    }
    return trace;
}

static struct sw__fmt_block *chunk_of(struct tb *tb, uint64_t sequence, size_t *index)
{
    for (size_t i = 0; i < tb->block_count; i++) {
        if (tb->blocks[i].head->kind == SW__BLOCK_EVENTS &&
            tb->blocks[i].head->sequence == sequence) {
            *index = i;
            return tb->blocks[i].head;
        }
    }
    abort();
}

static uint64_t count_records(sw_trace *trace)
{
    struct trace_walk walk = {0};
    walk_records(&walk, trace, NULL);
    return walk.records;
}

/* Some chunks are only here, some only there, one is in both with more in the hot
 * file. */
static void test_chunks_from_both(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    size_t at;
    chunk_of(tb, 0, &at);
    tb->blocks[at].where = TB_HOME;
    chunk_of(tb, 2, &at);
    tb->blocks[at].where = TB_HOT;
    write_hot(tb);
    struct sw__fmt_block *shared = chunk_of(tb, 1, &at);
    shared->used = 320;
    shared->records = 10;
    shared->flags = 0;
    write_home(tb);
    sw_trace *trace = open_trace();
    const sw_trace_info *info = sw_trace_get_info(trace);
    assert_true(info->hot_used);
    assert_false(info->hot_missing);
    assert_false(info->damaged);
    assert_int_equal(info->end, SW_TRACE_KILLED);
    assert_int_equal(info->present, 400);
    assert_int_equal(count_records(trace), 400);
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[1].calls, 400);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A sealed copy in the home file is fuller than what is left of it in the hot one. */
static void test_home_chunk_wins(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    size_t at;
    write_home(tb);
    struct sw__fmt_block *chunk = chunk_of(tb, 0, &at);
    chunk->used = 0;
    chunk->flags = 0;
    write_hot(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(count_records(trace), 400);
    sw_trace_free(trace);
    tb_free(tb);
}

/* State of the hot file is newer, whatever its revision. */
static void test_hot_state_wins(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    struct sw__fmt_node *node = tb->lanes[0]->nodes[1];
    node->calls = 1000;
    tb->super.total[SW__TOTAL_UNMATCHED] = 5;
    write_hot(tb);
    node->calls = 300;
    tb->super.total[SW__TOTAL_UNMATCHED] = 4;
    for (size_t i = 0; i < tb->block_count; i++) {
        tb->blocks[i].head->revision = 100;
    }
    write_home(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[1].calls, 1000);
    assert_int_equal(sw_trace_get_info(trace)->unmatched, 5);
    assert_int_equal(sw_trace_lane_count(trace), 1);
    assert_int_equal(sw_trace_thread_count(trace), 1);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Two copies in the home file: the larger revision. */
static void test_revision_wins(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    tb->super.state = SW__STATE_CLOSED;
    struct sw__fmt_block *nodes = NULL;
    for (size_t i = 0; i < tb->block_count; i++) {
        if (tb->blocks[i].head->kind == SW__BLOCK_NODES) {
            nodes = tb->blocks[i].head;
        }
    }
    size_t copy = tb_block(tb, SW__BLOCK_NODES, nodes->size, 0, 0);
    memcpy(tb->blocks[copy].head, nodes, nodes->size);
    tb->blocks[copy].head->revision = 9;
    ((struct sw__fmt_node *)tb_payload(tb, copy))[1].calls = 77;
    write_home(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[1].calls, 77);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_hot_missing(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    unlink(hot_path);
    write_home(tb);
    sw_trace *trace = open_trace();
    const sw_trace_info *info = sw_trace_get_info(trace);
    assert_true(info->hot_missing);
    assert_false(info->hot_used);
    assert_int_equal(info->end, SW_TRACE_KILLED);
    assert_non_null(strstr(sw_trace_note(trace, 0), "is gone"));
    sw_trace_free(trace);
    /* The end of recording is the newest of snapshots and records. */
    tb->super.hot_path[0] = 0;
    write_home(tb);
    trace = open_trace();
    assert_true(sw_trace_get_info(trace)->hot_missing);
    assert_int_equal(count_records(trace), 400);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_closed_needs_no_hot(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    for (unsigned closed = SW__STATE_CLOSED; closed <= SW__STATE_FOLDED; closed++) {
        tb->super.state = closed;
        write_home(tb);
        write_hot(tb);
        sw_trace *trace = open_trace();
        assert_false(sw_trace_get_info(trace)->hot_used);
        assert_int_equal(sw_trace_get_info(trace)->end,
                         closed == SW__STATE_CLOSED ? SW_TRACE_CLOSED : SW_TRACE_KILLED);
        sw_trace_free(trace);
    }
    tb_free(tb);
}

static void test_running(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    tb->super.process_start = sw__os_process_start(getpid());
    size_t at;
    chunk_of(tb, 0, &at);
    tb->blocks[at].where = TB_HOME;
    write_home(tb);
    write_hot(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(sw_trace_get_info(trace)->end, SW_TRACE_RUNNING);
    assert_true(sw_trace_get_info(trace)->hot_used);
    /* What was read stays as it was, though the writer uses its room again. */
    tb->blocks[at].where = TB_BOTH;
    for (size_t i = 0; i < tb->block_count; i++) {
        if (tb->blocks[i].head->kind == SW__BLOCK_EVENTS) {
            memset(tb->blocks[i].head + 1, 0xaa, 3000);
        }
    }
    write_hot(tb);
    assert_int_equal(count_records(trace), 400);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A file in the place of the hot file that is not this trace's. */
static void expect_rejected(struct tb *tb)
{
    sw_trace *trace = open_trace();
    assert_false(sw_trace_get_info(trace)->hot_used);
    assert_true(sw_trace_get_info(trace)->hot_missing);
    sw_trace_free(trace);
    (void)tb;
}

static void test_foreign_hot(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    write_home(tb);
    tb->super.file_id[15] ^= 1;
    write_hot(tb);
    expect_rejected(tb);
    tb->super.file_id[15] ^= 1;
    size_t size;
    uint8_t *home = tb_home(tb, &size); /* its role is not HOT */
    tb_write(hot_path, home, size);
    free(home);
    expect_rejected(tb);
    tb_write(hot_path, "", 0);
    expect_rejected(tb);
    unlink(hot_path);
    char target[160];
    snprintf(target, sizeof target, "%s/real", folder);
    uint8_t *hot = tb_hot(tb, &size);
    tb_write(target, hot, size);
    free(hot);
    assert_int_equal(symlink(target, hot_path), 0);
    expect_rejected(tb);
    unlink(hot_path);
    unlink(target);
    assert_int_equal(mkfifo(hot_path, 0600), 0);
    expect_rejected(tb);
    unlink(hot_path);
    if (geteuid() == 0) {
        write_hot(tb);
        assert_int_equal(chown(hot_path, 12345, 12345), 0);
        expect_rejected(tb);
    }
    unlink(hot_path);
    tb_free(tb);
}

/* Blocks that an earlier file left behind in the same room. */
static void test_stale_blocks(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    size_t at;
    struct sw__fmt_block *chunk = chunk_of(tb, 1, &at);
    chunk->file_id ^= 1;
    tb->super.state = SW__STATE_CLOSED;
    write_home(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(count_records(trace), 400 - 124);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Room that was given up in the home file: a FREE block with nothing else in its
 * header. */
static void test_free_blocks(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    size_t at;
    struct sw__fmt_block *chunk = chunk_of(tb, 1, &at);
    uint32_t size = chunk->size;
    memset(chunk, 0, sizeof *chunk);
    chunk->magic = SW__FMT_BLOCK_MAGIC;
    chunk->kind = SW__BLOCK_FREE;
    chunk->size = size;
    chunk->thread = UINT32_MAX;
    tb->super.state = SW__STATE_CLOSED;
    write_home(tb);
    sw_trace *trace = open_trace();
    assert_int_equal(count_records(trace), 400 - 124);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* The superblock of the home file is lost, that of the hot one is not. */
static void test_home_superblock_lost(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    sw_trace *trace;
    size_t size;
    uint8_t *home = tb_home(tb, &size);
    memset(home, 0, 4096);
    int result = sw__trace_open_fds(&trace, tb_memory_file(home, size), tb_hot_fd(tb),
                                    false, "test", NULL);
    assert_int_equal(result, 0);
    assert_true(sw_trace_get_info(trace)->hot_used);
    assert_true(sw_trace_get_info(trace)->damaged);
    assert_int_equal(sw_trace_get_info(trace)->pid, getpid());
    assert_int_equal(count_records(trace), 400);
    sw_trace_free(trace);
    /* And that one too: blocks alone. */
    assert_int_equal(
        sw__trace_open_fds(&trace, tb_memory_file(home, size), -1, false, "test", NULL),
        0);
    assert_int_equal(count_records(trace), 400);
    assert_int_equal(sw_trace_get_lane(trace, 0)->nodes[1].calls, 400);
    assert_int_equal(sw_trace_get_info(trace)->end, SW_TRACE_KILLED);
    sw_trace_free(trace);
    free(home);
    tb_free(tb);
}

/* A hot file is a trace of its own when it is all that is left. */
static void test_hot_alone(void **state)
{
    (void)state;
    struct tb *tb = open_state();
    sw_trace *trace;
    assert_int_equal(sw__trace_open_fds(&trace, tb_hot_fd(tb), -1, false, "test", NULL),
                     0);
    assert_int_equal(count_records(trace), 400);
    sw_trace_free(trace);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks_from_both),
        cmocka_unit_test(test_home_chunk_wins),
        cmocka_unit_test(test_hot_state_wins),
        cmocka_unit_test(test_revision_wins),
        cmocka_unit_test(test_hot_missing),
        cmocka_unit_test(test_closed_needs_no_hot),
        cmocka_unit_test(test_running),
        cmocka_unit_test(test_foreign_hot),
        cmocka_unit_test(test_stale_blocks),
        cmocka_unit_test(test_free_blocks),
        cmocka_unit_test(test_home_superblock_lost),
        cmocka_unit_test(test_hot_alone),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
