/* Opening sound traces: everything that was written comes back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../fuzz/trace_walk.h"
#include "read/trace_internal.h"
#include "trace_builder.h"

static sw_trace *open_home(const struct tb *tb)
{
    sw_trace *trace;
    sw_error_info info = {0};
    int result = sw__trace_open_fds(&trace, tb_home_fd(tb), -1, false, "test", &info);
    if (result) {
        fail_msg("%s", info.message);
    }
    return trace;
}

static void test_info(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    const sw_trace_info *info = sw_trace_get_info(trace);
    assert_string_equal(info->name, "example");
    assert_string_equal(info->run_id, "run-1");
    assert_int_equal(info->pid, 4242);
    assert_int_equal(info->ppid, 4200);
    assert_int_equal(info->end, SW_TRACE_CLOSED);
    assert_false(info->damaged);
    assert_false(info->hot_used);
    assert_false(info->hot_missing);
    assert_int_equal(info->clock, SW_CLOCK_TSC);
    assert_int_equal(info->clock_jumps, 0);
    assert_true(info->events);
    assert_int_equal(info->max_bytes, 256 << 20);
    assert_int_equal(info->start_ns, 400000000);
    assert_int_equal(info->end_ns, 1200000000);
    assert_int_equal(info->start_real_ns, 1700000000400000000);
    assert_int_equal(info->present, 20 * 7 + 15);
    assert_int_equal(info->dropped, 3 + 2 + 1);
    assert_int_equal(info->overwritten, 5 + 10);
    assert_true(info->cost_section_ns > 23.9 && info->cost_section_ns < 24.1);
    assert_true(info->cost_stats_ns > 15.9 && info->cost_stats_ns < 16.1);
    assert_null(sw_trace_note(trace, 0));
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_names_and_facts(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb_fact(tb, "host", "gpu-8"); /* newer */
    tb_name(tb, 9, "", SW__NAME_TEXT, 255);
    tb_name(tb, 2, "again", SW__NAME_TEXT, 255); /* the first one counts */
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_name_limit(trace), 10);
    const sw_trace_name *name = sw_trace_get_name(trace, 2);
    assert_string_equal(name->text, "forward");
    assert_int_equal(name->length, 7);
    assert_int_equal(name->use, SW__NAME_SECTION);
    assert_int_equal(name->phase, SW_PHASE_FORWARD);
    assert_int_equal(sw_trace_get_name(trace, 4)->use, SW__NAME_COUNTER);
    assert_int_equal(sw_trace_get_name(trace, 9)->length, 0);
    assert_null(sw_trace_get_name(trace, 8));
    assert_null(sw_trace_get_name(trace, 10));
    assert_string_equal(sw_trace_domain_name(trace, 1), "inner");
    assert_string_equal(sw_trace_domain_name(trace, 0), "");
    assert_string_equal(sw_trace_domain_name(trace, 70000), "");
    assert_string_equal(sw_trace_fact(trace, "command"), "train --epochs 3");
    assert_string_equal(sw_trace_fact(trace, "host"), "gpu-8");
    assert_null(sw_trace_fact(trace, "hos"));
    const char *key;
    const char *value;
    assert_true(sw_trace_fact_at(trace, 1, &key, &value));
    assert_string_equal(key, "command");
    assert_false(sw_trace_fact_at(trace, 3, &key, &value));
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_threads(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_thread_count(trace), 2);
    const sw_trace_thread *thread = sw_trace_get_thread(trace, 1);
    assert_int_equal(thread->index, 1);
    assert_int_equal(thread->tid, 5001);
    assert_string_equal(thread->name, "loader");
    assert_in_range(thread->end_ns, 999999999, 1000000000); /* rates are rounded down */
    assert_int_equal(thread->dropped, 1);
    assert_false(thread->alive);
    assert_int_equal(sw_trace_get_thread(trace, 0)->end_ns, 0);
    assert_null(sw_trace_get_thread(trace, 2));
    sw_trace_free(trace);
    tb_free(tb);
}

static uint64_t ns(uint64_t ticks)
{
    return (ticks * 2 + 2) / 5; /* 2.5 GHz, rounded to nearest */
}

static void test_tree(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_lane_count(trace), 3);
    const sw_trace_lane *lane = sw_trace_get_lane(trace, 0);
    assert_int_equal(lane->thread, 0);
    assert_int_equal(lane->domain, 0);
    assert_int_equal(lane->node_count, 4);
    assert_int_equal(lane->open_count, 0);
    for (uint32_t i = 1; i < 4; i++) {
        const sw_trace_node *node = &lane->nodes[i];
        const struct sw__fmt_node *written = tb->lanes[0]->nodes[i];
        assert_int_equal(node->section, i);
        assert_int_equal(node->parent, i - 1);
        assert_int_equal(node->calls, i == 3 ? 60 : 20);
        assert_int_equal(node->errors, i == 2 ? 3 : 0);
        assert_int_equal(node->inclusive_ns, ns(written->inclusive));
        assert_int_equal(node->self_ns, ns(written->inclusive) - ns(written->child));
        assert_int_equal(node->min_ns, ns(written->minimum));
        assert_int_equal(node->max_ns, ns(written->maximum));
        assert_int_equal(node->last_ns, ns(written->last));
        sw_histogram *histogram = sw_histogram_create();
        assert_int_equal(sw_trace_node_histogram(trace, 0, i, histogram), 0);
        assert_int_equal(sw_histogram_count(histogram), written->calls);
        uint64_t median = sw_histogram_quantile(histogram, 0.5);
        assert_true(median >= written->minimum * 99 / 100);
        assert_true(median <= written->maximum * 101 / 100);
        sw_histogram_free(histogram);
    }
    assert_int_equal(lane->nodes[0].calls, 0);
    assert_int_equal(sw_trace_get_lane(trace, 1)->domain, 1);
    assert_int_equal(sw_trace_get_lane(trace, 2)->thread, 1);
    assert_null(sw_trace_get_lane(trace, 3));
    sw_histogram *histogram = sw_histogram_create();
    assert_int_equal(sw_trace_node_histogram(trace, 0, 4, histogram), SW_EINVAL);
    assert_int_equal(sw_trace_node_histogram(trace, 3, 0, histogram), SW_EINVAL);
    assert_int_equal(sw_trace_step_histogram(trace, 3, histogram), SW_EINVAL);
    assert_int_equal(sw_trace_step_histogram(trace, 0, histogram), 0);
    assert_int_equal(sw_histogram_count(histogram), 19);
    sw_histogram_free(histogram);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_steps(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    const sw_trace_lane *lane = sw_trace_get_lane(trace, 0);
    const struct sw__fmt_lane *written = tb->lanes[0]->file;
    assert_int_equal(lane->steps, 20);
    assert_int_equal(lane->steps_incomplete, 1);
    assert_int_equal(lane->updates, 20);
    assert_int_equal(lane->step_total_ns, ns(written->step_ticks));
    assert_int_equal(lane->step_min_ns, ns(written->step_min));
    assert_int_equal(lane->step_max_ns, ns(written->step_max));
    uint64_t sum = 0;
    for (unsigned i = 0; i < SW_PHASE_SLOTS; i++) {
        sum += lane->phase_ns[i];
    }
    assert_int_equal(sum, lane->step_total_ns);
    assert_in_range(lane->phase_ns[SW_PHASE_FORWARD], 19 * 3200 - 1, 19 * 3200 + 1);
    assert_false(lane->step_open);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_counter_nodes(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 4, 1000000100);
    struct sw__fmt_node *node = lane->nodes[1];
    lane->depth = 0;
    ((struct sw__fmt_frame *)(lane->file + 1))->node = 0;
    const double values[] = {6.0, 1.0, 3.0, 2.0};
    node->kind = SW__NODE_COUNTER;
    node->flags = SW__NODE_FAMILY;
    node->calls = 3;
    memcpy(&node->inclusive, &values[0], 8);
    memcpy(&node->minimum, &values[1], 8);
    memcpy(&node->maximum, &values[2], 8);
    memcpy(&node->last, &values[3], 8);
    sw_trace *trace = open_home(tb);
    const sw_trace_node *read = &sw_trace_get_lane(trace, 0)->nodes[1];
    assert_int_equal(read->kind, 1);
    assert_true(read->family);
    assert_true(read->sum == 6.0 && read->min == 1.0 && read->max == 3.0 &&
                read->last == 2.0);
    assert_int_equal(read->inclusive_ns, 0);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Every kind of record comes back byte for byte. */
static void test_every_kind(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_trace *trace = open_home(tb);
    const sw_cursor_filter filter = {.steps = true};
    sw_cursor *cursor;
    sw_event event;
    unsigned seen[SW_RECORD_KINDS] = {0};
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, &filter, NULL), 0);
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        const sw_record *record = event.record;
        size_t size = (size_t)record->units * SW_RECORD_UNIT;
        bool found = false;
        for (size_t i = 0; i < tb->block_count && !found; i++) {
            const struct sw__fmt_block *head = tb->blocks[i].head;
            const uint8_t *at = (const uint8_t *)(head + 1);
            for (uint32_t used = 0; used < head->used && !found; used += 32) {
                found =
                    (head->kind == SW__BLOCK_EVENTS || head->kind == SW__BLOCK_STEPS) &&
                    head->used - used >= size && memcmp(at + used, record, size) == 0;
            }
        }
        assert_true(found);
        assert_true(record->kind < SW_RECORD_KINDS);
        seen[record->kind]++;
        assert_int_equal(event.begin_ns,
                         sw_timeline_mono_ns(sw_trace_timeline(trace), record->ticks));
        if (record->kind == SW_RECORD_SAMPLE) {
            const sw_record_frame *frames =
                (const sw_record_frame *)((const sw_record_sample *)record + 1);
            assert_int_equal(frames[2].line, 30);
        }
    }
    for (unsigned kind = 1; kind < SW_RECORD_KINDS; kind++) {
        assert_true(seen[kind] > 0);
    }
    assert_int_equal(seen[SW_RECORD_STEP], 20);
    sw_cursor_free(cursor);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A killed process: what was open at the end. */
static void test_open_sections(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->super.state = SW__STATE_FOLDED;
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, 1000000000);
    tb_begin(tb, lane, 2, 1000002500);
    tb_end(tb, lane, 1000003000, 0);
    tb_begin(tb, lane, 2, 1000005000);
    tb_begin(tb, lane, 1, 1000007500);
    lane->file->step_open = 12;
    lane->file->step_begin = 1000000000;
    sw_trace *trace = open_home(tb);
    const sw_trace_lane *read = sw_trace_get_lane(trace, 0);
    assert_int_equal(sw_trace_get_info(trace)->end, SW_TRACE_KILLED);
    assert_int_equal(read->open_count, 3);
    assert_int_equal(read->open[0].node, 1);
    assert_int_equal(read->open[1].node, 2);
    assert_int_equal(read->open[2].node, 3);
    assert_in_range(read->open[1].start_ns, 400001999, 400002000);
    assert_int_equal(read->nodes[2].open, 1);
    assert_int_equal(read->nodes[2].calls, 1);
    assert_true(read->step_open);
    assert_int_equal(read->step_open_number, 11);
    assert_int_equal(read->step_open_begin_ns, 400000000);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Children that ended under a call that is still open do not eat up the self time of others. */
static void test_self_of_open_section(void **state)
{
    (void)state;
    const uint64_t begin = 1000000000;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->super.state = SW__STATE_FOLDED;
    tb->super.latest_snapshot[1] = tb_snapshot(tb, begin + 2500);
    memset(&tb->super.end_snapshot, 0, sizeof tb->super.end_snapshot);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, begin);
    tb_begin(tb, lane, 2, begin + 100);
    tb_end(tb, lane, begin + 500, 0);
    tb_end(tb, lane, begin + 1000, 0);
    tb_begin(tb, lane, 1, begin + 2000);
    tb_begin(tb, lane, 2, begin + 2100);
    tb_end(tb, lane, begin + 2400, 0);
    sw_trace *trace = open_home(tb);
    const sw_trace_node *node = &sw_trace_get_lane(trace, 0)->nodes[1];
    assert_int_equal(sw_trace_get_info(trace)->end_ns, begin + 2500);
    assert_int_equal(node->open, 1);
    assert_int_equal(node->inclusive_ns, 1000);
    assert_int_equal(node->self_ns, 600 + 200);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Frames that moved to a block of their own. */
static void test_stack_block(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->super.state = SW__STATE_FOLDED;
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (unsigned i = 0; i < 90; i++) {
        tb_begin(tb, lane, i + 1, 1000000000 + i);
    }
    size_t block = tb_block(tb, SW__BLOCK_STACK, 4096, 0, 0);
    memcpy(tb_payload(tb, block), lane->file + 1, 90 * sizeof(struct sw__fmt_frame));
    memset(lane->file + 1, 0, 90 * sizeof(struct sw__fmt_frame));
    tb->blocks[block].head->used = 4096 - 128;
    lane->file->stack = tb->blocks[block].head->address + 128;
    sw_trace *trace = open_home(tb);
    const sw_trace_lane *read = sw_trace_get_lane(trace, 0);
    assert_int_equal(read->open_count, 90);
    assert_int_equal(read->open[89].node, 90);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* What a later version may add is stepped over in silence. */
static void test_unknown_things(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    uint64_t kinds[] = {SW_RECORD_KINDS, 31, 32, 200, 255};
    for (unsigned i = 0; i < 5; i++) {
        uint8_t record[96];
        memset(record, 0xff, sizeof record);
        sw_record head = {(uint8_t)kinds[i], 3, 0xfff0, 1, 1100000000};
        memcpy(record, &head, sizeof head);
        tb_record(tb, 0, record);
    }
    sw_record_span longer[2] = {
        {.head = {SW_RECORD_SPAN, 2, 0xff01, 1, 1100000000}, .end = 1100000001}};
    tb_record(tb, 0, longer);
    tb_seal(tb);
    size_t block = tb_block(tb, 77, 8192, 0, 0);
    memset(tb_payload(tb, block), 0xee, 8192 - 128);
    struct sw__fmt_def def = {.size = 16, .kind = 99};
    uint8_t entry[16] = {0};
    memcpy(entry, &def, sizeof def);
    tb_define(tb, entry, sizeof entry);
    uint8_t long_name[40] = {0}; /* fields behind the text */
    struct sw__fmt_name name = {
        .head = {.size = 40, .kind = SW__DEF_NAME, .flags = 0x8000},
        .id = 20,
        .length = 2};
    memcpy(long_name, &name, sizeof name);
    memcpy(long_name + sizeof name, "ab", 2);
    tb_define(tb, long_name, sizeof long_name);
    sw_trace *trace = open_home(tb);
    assert_false(sw_trace_get_info(trace)->damaged);
    assert_int_equal(sw_trace_get_info(trace)->present, 20 * 7 + 15 + 6);
    assert_string_equal(sw_trace_get_name(trace, 20)->text, "ab");
    struct trace_walk walk = {0};
    walk_records(&walk, trace, NULL);
    assert_int_equal(walk.records, 20 * 7 + 15 + 1);
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Blocks larger than a chunk are walked in pieces. */
static void test_large_block(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 1 << 20;
    tb_thread(tb, 0, "main");
    for (unsigned i = 0; i < 4000; i++) {
        uint64_t words[32 * 4] = {0};
        sw_record head = {SW_RECORD_MARK, (uint8_t)(i % 7 + 1), 0, i, 1000000000 + i};
        memcpy(words, &head, sizeof head);
        tb_record(tb, 0, words);
    }
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_get_info(trace)->present, 4000);
    sw_cursor *cursor;
    sw_event event;
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, NULL, NULL), 0);
    for (unsigned i = 0; i < 4000; i++) {
        assert_int_equal(sw_cursor_next(cursor, &event), 0);
        assert_int_equal(event.record->id, i);
    }
    assert_int_equal(sw_cursor_next(cursor, &event), SW_EEND);
    sw_cursor_free(cursor);
    sw_trace_free(trace);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_names_and_facts),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_counter_nodes),
        cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_open_sections),
        cmocka_unit_test(test_self_of_open_section),
        cmocka_unit_test(test_stack_block),
        cmocka_unit_test(test_unknown_things),
        cmocka_unit_test(test_large_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
