/* Cursors: order over threads and processes, filters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/trace_internal.h"
#include "trace_builder.h"

static sw_trace *open_home(const struct tb *tb)
{
    sw_trace *trace;
    assert_int_equal(sw__trace_open_fds(&trace, tb_home_fd(tb), -1, false, "test", NULL),
                     0);
    return trace;
}

/* A trace with `threads` threads of random spans and marks, each thread in order of
 * end. */
static struct tb *random_trace(uint64_t *seed, unsigned threads, unsigned most)
{
    struct tb *tb = tb_new(tb_random(seed) % 2 ? SW_CLOCK_TSC : SW_CLOCK_MONOTONIC);
    tb->chunk_size = 4096u << (tb_random(seed) % 3);
    tb->ticks_per_us = 1000 + tb_random(seed) % 3000;
    tb->super.start_snapshot = tb_snapshot(tb, 1000000000);
    tb->super.latest_snapshot[1] = tb_snapshot(tb, 2000000000);
    tb->super.end_snapshot = tb_snapshot(tb, 3000000000);
    for (uint32_t thread = 0; thread < threads; thread++) {
        tb_thread(tb, thread, "worker");
        uint64_t at = 1000000000 + tb_random(seed) % 1000000;
        unsigned count = (unsigned)(tb_random(seed) % (most + 1));
        for (unsigned i = 0; i < count; i++) {
            at += tb_random(seed) % 4 * (tb_random(seed) % 1000); /* often the same */
            if (tb_random(seed) % 5) {
                sw_record_span span = {.head = {SW_RECORD_SPAN, 1, SW_RECORD_INTERVAL, i,
                                                at - tb_random(seed) % 100000},
                                       .end = at,
                                       .node = thread};
                tb_record(tb, thread, &span);
            } else {
                uint64_t words[12] = {0};
                sw_record head = {SW_RECORD_MARK, (uint8_t)(1 + i % 3), 0, i, at};
                memcpy(words, &head, sizeof head);
                tb_record(tb, thread, words);
            }
        }
    }
    return tb;
}

static uint64_t key(uint32_t trace, uint32_t thread)
{
    return (uint64_t)trace << 32 | thread;
}

static void test_order(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (unsigned round = 0; round < 60; round++) {
        sw_trace *traces[5];
        struct tb *built[5];
        size_t count = 1 + tb_random(&seed) % 5;
        uint64_t expected = 0;
        for (size_t i = 0; i < count; i++) {
            built[i] = random_trace(&seed, 1 + (unsigned)(tb_random(&seed) % 9), 600);
            traces[i] = open_home(built[i]);
            expected += sw_trace_get_info(traces[i])->present;
        }
        sw_cursor *cursor;
        sw_event event;
        uint64_t records = 0;
        uint64_t last = 0;
        uint32_t next_id[5][9] = {{0}};
        uint64_t last_key = 0;
        assert_int_equal(sw_cursor_open(&cursor, traces, count, NULL, NULL), 0);
        while (sw_cursor_next(cursor, &event) == SW_OK) {
            assert_true(event.end_ns >= last);
            assert_true(event.begin_ns <= event.end_ns);
            /* Ties: by trace and thread; within a thread as written. */
            if (records && event.end_ns == last) {
                assert_true(key(event.trace, event.thread) >= last_key);
            }
            assert_int_equal(event.record->id, next_id[event.trace][event.thread]++);
            const sw_timeline *timeline = sw_trace_timeline(traces[event.trace]);
            uint64_t end = event.record->ticks;
            if (event.record->kind == SW_RECORD_SPAN) {
                end = ((const sw_record_span *)event.record)->end;
                assert_int_equal(((const sw_record_span *)event.record)->node,
                                 event.thread);
            }
            assert_int_equal(event.end_ns, sw_timeline_mono_ns(timeline, end));
            assert_int_equal(event.begin_ns,
                             sw_timeline_mono_ns(timeline, event.record->ticks));
            last = event.end_ns;
            last_key = key(event.trace, event.thread);
            records++;
        }
        assert_int_equal(records, expected);
        sw_cursor_free(cursor);
        for (size_t i = 0; i < count; i++) {
            assert_false(sw_trace_get_info(traces[i])->damaged);
            sw_trace_free(traces[i]);
            tb_free(built[i]);
        }
    }
}

static uint64_t count_with(sw_trace *trace, sw_cursor_filter filter)
{
    sw_cursor *cursor;
    sw_event event;
    uint64_t records = 0;
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, &filter, NULL), 0);
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        records++;
        assert_true(event.end_ns >= filter.from_ns);
        assert_true(!filter.to_ns || event.end_ns <= filter.to_ns);
        assert_true(!filter.one_thread || event.thread == filter.thread);
        assert_true(!filter.kinds || filter.kinds >> event.record->kind & 1 ||
                    (filter.steps && event.record->kind == SW_RECORD_STEP));
    }
    sw_cursor_free(cursor);
    return records;
}

static void test_filters(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    uint64_t all = 20 * 7 + 15;
    uint32_t spans = 1u << SW_RECORD_SPAN;
    uint32_t steps = 1u << SW_RECORD_STEP;
    assert_int_equal(count_with(trace, (sw_cursor_filter){0}), all);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.steps = true}), all + 20);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.kinds = spans}), 140);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.kinds = steps}), 20);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.kinds = spans, .steps = true}),
                     160);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.kinds = 1u << 31}), 0);
    assert_int_equal(
        count_with(trace, (sw_cursor_filter){.one_thread = true, .thread = 1}), 35);
    assert_int_equal(
        count_with(trace, (sw_cursor_filter){.one_thread = true, .thread = 9}), 0);
    /* Every window, over chunk borders: two halves make the whole. */
    const sw_trace_info *info = sw_trace_get_info(trace);
    for (uint64_t cut = info->start_ns + 1; cut < info->start_ns + 10000000;
         cut += 99991) {
        uint64_t before = count_with(trace, (sw_cursor_filter){.to_ns = cut - 1});
        uint64_t after = count_with(trace, (sw_cursor_filter){.from_ns = cut});
        assert_int_equal(before + after, all);
    }
    assert_false(info->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A thread whose records go back in time: they come, and others are not held up. */
static void test_backwards(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "a");
    tb_thread(tb, 1, "b");
    const uint64_t times[] = {100, 900, 200, 950};
    for (unsigned i = 0; i < 4; i++) {
        sw_record_mark mark = {.head = {SW_RECORD_MARK, 1, 0, i, 1000000000 + times[i]}};
        tb_record(tb, 0, &mark);
    }
    sw_record_mark other = {.head = {SW_RECORD_MARK, 1, 0, 7, 1000000500}};
    tb_record(tb, 1, &other);
    sw_trace *trace = open_home(tb);
    const uint32_t expected[] = {0, 7, 1, 2, 3};
    sw_cursor *cursor;
    sw_event event;
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, NULL, NULL), 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(sw_cursor_next(cursor, &event), 0);
        assert_int_equal(event.record->id, expected[i]);
    }
    assert_int_equal(sw_cursor_next(cursor, &event), SW_EEND);
    assert_int_equal(sw_cursor_next(cursor, &event), SW_EEND);
    sw_cursor_free(cursor);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Threads that came and went share buffers. */
static void test_many_threads(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 4096;
    for (uint32_t thread = 0; thread < 1000; thread++) {
        tb_thread(tb, thread, "worker");
        for (unsigned i = 0; i < 3; i++) {
            sw_record_mark mark = {
                .head = {SW_RECORD_MARK, 1, 0, i, 1000000000 + thread * 10000 + i}};
            tb_record(tb, thread, &mark);
        }
    }
    sw_trace *trace = open_home(tb);
    uint64_t before = sw__alloc_count();
    assert_int_equal(count_with(trace, (sw_cursor_filter){0}), 3000);
    assert_true(sw__alloc_count() - before < 10);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_nothing(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    sw_trace *trace = open_home(tb);
    assert_int_equal(count_with(trace, (sw_cursor_filter){.steps = true}), 0);
    assert_int_equal(sw_trace_lane_count(trace), 0);
    sw_cursor *cursor;
    sw_event event;
    assert_int_equal(sw_cursor_open(&cursor, NULL, 0, NULL, NULL), 0);
    assert_int_equal(sw_cursor_next(cursor, &event), SW_EEND);
    sw_cursor_free(cursor);
    sw_cursor_free(NULL);
    sw_trace_free(trace);
    sw_trace_free(NULL);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),     cmocka_unit_test(test_filters),
        cmocka_unit_test(test_backwards), cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
