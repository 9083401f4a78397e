/* Call trees rebuilt from spans equal those that were stored. */
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

/* The child of a node with a section; 0 when there is none. */
static size_t child_of(const sw_trace_lane *lane, size_t parent, uint32_t section)
{
    for (size_t i = parent + 1; i < lane->node_count; i++) {
        if (lane->nodes[i].parent == parent && lane->nodes[i].section == section) {
            return i;
        }
    }
    return 0;
}

struct expected {
    const sw_trace *trace;
    size_t lanes;
};

static void same_histogram(const sw_trace *a, size_t lane_a, size_t node_a,
                           const sw_trace *b, size_t lane_b, size_t node_b)
{
    sw_histogram *left = sw_histogram_create();
    sw_histogram *right = sw_histogram_create();
    assert_int_equal(sw_trace_node_histogram(a, lane_a, node_a, left), 0);
    assert_int_equal(sw_trace_node_histogram(b, lane_b, node_b, right), 0);
    assert_int_equal(sw_histogram_count(left), sw_histogram_count(right));
    for (double q = 0; q <= 1; q += 0.1) {
        assert_int_equal(sw_histogram_quantile(left, q), sw_histogram_quantile(right, q));
    }
    sw_histogram_free(left);
    sw_histogram_free(right);
}

/* Compares by path: numbers differ, since spans tell of their end first. */
static void compare_lane(void *arg, const sw_trace_lane *rebuilt)
{
    struct expected *expected = arg;
    const sw_trace_lane *stored = sw_trace_get_lane(expected->trace, expected->lanes++);
    assert_int_equal(rebuilt->thread, stored->thread);
    assert_int_equal(rebuilt->domain, stored->domain);
    assert_int_equal(rebuilt->node_count, stored->node_count);
    assert_int_equal(rebuilt->steps, stored->steps);
    size_t *same = calloc(stored->node_count, sizeof *same);
    for (size_t i = 1; i < stored->node_count; i++) {
        const sw_trace_node *a = &stored->nodes[i];
        same[i] = child_of(rebuilt, same[a->parent], a->section);
        assert_true(same[i] != 0);
        const sw_trace_node *b = &rebuilt->nodes[same[i]];
        assert_int_equal(a->calls, b->calls);
        assert_int_equal(a->errors, b->errors);
        assert_int_equal(a->open, b->open);
        assert_int_equal(a->inclusive_ns, b->inclusive_ns);
        assert_int_equal(a->self_ns, b->self_ns);
        assert_int_equal(a->min_ns, b->min_ns);
        assert_int_equal(a->max_ns, b->max_ns);
        assert_int_equal(a->last_ns, b->last_ns);
    }
    assert_int_equal(rebuilt->open_count, stored->open_count);
    for (size_t i = 0; i < stored->open_count; i++) {
        assert_int_equal(rebuilt->open[i].node, same[stored->open[i].node]);
        assert_int_equal(rebuilt->open[i].start_ns, stored->open[i].start_ns);
    }
    free(same);
}

static void check(struct tb *tb)
{
    sw_trace *trace = open_home(tb);
    sw_trace *other = open_home(tb);
    struct expected expected = {.trace = other};
    assert_int_equal(sw_trace_rebuild_lanes(trace, false, compare_lane, &expected, NULL),
                     0);
    assert_int_equal(expected.lanes, sw_trace_lane_count(other));
    /* In place, twice. */
    for (unsigned times = 0; times < 2; times++) {
        assert_int_equal(sw_trace_rebuild_lanes(trace, true, NULL, NULL, NULL), 0);
        assert_int_equal(sw_trace_lane_count(trace), sw_trace_lane_count(other));
        expected.lanes = 0;
        for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
            const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
            compare_lane(&expected, lane);
            for (size_t node = 1; node < lane->node_count; node++) {
                size_t stored = 0;
                const sw_trace_lane *from = sw_trace_get_lane(other, i);
                for (size_t j = 1; j < from->node_count; j++) {
                    if (from->nodes[j].section == lane->nodes[node].section &&
                        from->nodes[j].inclusive_ns == lane->nodes[node].inclusive_ns &&
                        from->nodes[j].calls == lane->nodes[node].calls) {
                        stored =
                            stored ? SIZE_MAX : j; /* only where it is the only one */
                    }
                }
                if (stored && stored != SIZE_MAX) {
                    same_histogram(trace, i, node, other, i, stored);
                }
            }
        }
    }
    sw_trace_free(trace);
    sw_trace_free(other);
}

static void test_example(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    check(tb);
    tb_free(tb);
    tb = tb_sampled();
    check(tb);
    tb_free(tb);
}

static void check_stretches(void *arg, const sw_trace_lane *lane)
{
    (void)arg;
    size_t whole = child_of(lane, 0, 1);
    assert_int_equal(lane->nodes[whole].calls, 1);
    assert_int_equal(lane->nodes[whole].errors, 1);
    assert_int_equal(lane->nodes[whole].inclusive_ns, 100 + 200 + 50);
    assert_int_equal(lane->nodes[whole].self_ns, 100 + 200 + 50 - 30);
    assert_int_equal(lane->nodes[whole].max_ns, 50);
    size_t open = child_of(lane, 0, 3);
    assert_int_equal(lane->nodes[open].calls, 0);
    assert_int_equal(lane->nodes[open].inclusive_ns, 70);
    assert_int_equal(lane->nodes[open].self_ns, 70);
    assert_int_equal(lane->nodes[open].min_ns, 0);
    assert_int_equal(lane->nodes[open].max_ns, 0);
    assert_int_equal(lane->nodes[child_of(lane, whole, 2)].calls, 1);
}

/* A stretch is time without a call, also where the call never ended. */
static void test_stretches(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, 1000000000);
    tb_begin(tb, lane, 2, 1000000010);
    tb_end(tb, lane, 1000000040, 0);
    tb_end(tb, lane, 1000000100, SW_RECORD_PART);
    tb_begin(tb, lane, 3, 1000001000);
    tb_end(tb, lane, 1000001070, SW_RECORD_PART);
    tb_begin(tb, lane, 1, 1000002000);
    tb_end(tb, lane, 1000002200, SW_RECORD_PART);
    tb_begin(tb, lane, 1, 1000003000);
    tb_end(tb, lane, 1000003050, SW_RECORD_ERROR);
    check(tb);
    sw_trace *trace = open_home(tb);
    check_stretches(NULL, sw_trace_get_lane(trace, 0));
    assert_int_equal(sw_trace_rebuild_lanes(trace, false, check_stretches, NULL, NULL),
                     0);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Random programs, some of which were killed with sections open. */
static void test_random_programs(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (unsigned round = 0; round < 60; round++) {
        struct tb *tb = tb_new(SW_CLOCK_TSC);
        tb->chunk_size = 4096;
        unsigned sections = 1 + (unsigned)(tb_random(&seed) % 8);
        unsigned deepest = 1 + (unsigned)(tb_random(&seed) % 12);
        for (uint32_t thread = 0; thread < 2; thread++) {
            tb_thread(tb, thread, "main");
            struct tb_lane *lanes[2] = {tb_lane(tb, thread, 0), tb_lane(tb, thread, 1)};
            uint64_t at = 1000000000;
            for (unsigned i = 0; i < 1000; i++) {
                struct tb_lane *lane = lanes[tb_random(&seed) % 2];
                at += tb_random(&seed) % 3 * (tb_random(&seed) % 100);
                if (lane->depth && (lane->depth == deepest || tb_random(&seed) % 2)) {
                    /* Some are stretches of calls that go on later. */
                    unsigned chance = (unsigned)(tb_random(&seed) % 18);
                    tb_end(tb, lane, at,
                           chance < 2   ? SW_RECORD_ERROR
                           : chance < 6 ? SW_RECORD_PART
                                        : 0);
                } else {
                    tb_begin(tb, lane, 1 + (uint32_t)(tb_random(&seed) % sections), at);
                }
            }
            while (round % 2 && (lanes[0]->depth || lanes[1]->depth)) {
                at += 7;
                tb_end(tb, lanes[0]->depth ? lanes[0] : lanes[1], at, 0);
            }
        }
        /* Of two spans that end in the same tick either may be told to be in the
         * other. */
        check(tb);
        tb_free(tb);
    }
}

static void count_lane(void *arg, const sw_trace_lane *lane)
{
    sw_trace_lane *copy = arg;
    *copy = *lane;
    assert_int_equal(lane->node_count, 2);
    assert_int_equal(lane->nodes[1].calls, 3);
    assert_int_equal(lane->nodes[1].unnested, 1);
    assert_int_equal(lane->nodes[1].inclusive_ns, 10 + 20 + 500);
    assert_int_equal(lane->nodes[1].self_ns, 10 + 20);
}

/* Without any lane in the file; and an unnested span has inclusive time only. */
static void test_statistics_lost(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    const uint64_t lengths[] = {10, 20, 500};
    for (unsigned i = 0; i < 3; i++) {
        sw_record_span span = {
            .head = {SW_RECORD_SPAN, 1,
                     (uint16_t)(SW_RECORD_INTERVAL | (i == 2 ? SW_RECORD_UNNESTED : 0)),
                     5, 1000001000 * (i + 1)},
            .end = 1000001000 * (i + 1) + lengths[i],
            .depth = i == 2 ? 4 : 0};
        tb_record(tb, 3, &span);
    }
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_lane_count(trace), 0);
    sw_trace_lane lane;
    assert_int_equal(sw_trace_rebuild_lanes(trace, false, count_lane, &lane, NULL), 0);
    assert_int_equal(sw_trace_get_thread(trace, lane.thread)->index, 3);
    assert_int_equal(sw_trace_rebuild_lanes(trace, true, NULL, NULL, NULL), 0);
    assert_int_equal(sw_trace_lane_count(trace), 1);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Children whose parent is lost do not become those of the next section. */
static void check_orphans(void *arg, const sw_trace_lane *lane)
{
    (void)arg;
    size_t parent = child_of(lane, 0, 1);
    assert_true(parent != 0);
    assert_int_equal(lane->nodes[parent].self_ns, 1000);
    assert_int_equal(child_of(lane, parent, 2), 0);
    assert_true(child_of(lane, 0, 2) != 0);
}

static void test_lost_parent(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    sw_record_span orphan = {
        .head = {SW_RECORD_SPAN, 1, SW_RECORD_INTERVAL, 2, 1000001000},
        .end = 1000002000,
        .depth = 1};
    sw_record_span later = {
        .head = {SW_RECORD_SPAN, 1, SW_RECORD_INTERVAL, 1, 1000003000},
        .end = 1000004000};
    tb_record(tb, 0, &orphan);
    tb_record(tb, 0, &later);
    sw_trace *trace = open_home(tb);
    assert_int_equal(sw_trace_rebuild_lanes(trace, false, check_orphans, NULL, NULL), 0);
    sw_trace_free(trace);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),         cmocka_unit_test(test_stretches),
        cmocka_unit_test(test_random_programs), cmocka_unit_test(test_statistics_lost),
        cmocka_unit_test(test_lost_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
