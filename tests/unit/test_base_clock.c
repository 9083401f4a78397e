/* The choice of the clock, snapshots, and timelines of honest and of hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stepwatch/clock.h>

#include "base/clock_read.h"
#include "base/timeline_fast.h"

#define MS 1000000u

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Runs `check` in a child that has STEPWATCH_CLOCK set, for a process chooses once. */
static int in_child_with(const char *wish, int (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        setenv("STEPWATCH_CLOCK", wish, 1);
        _exit(check());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int check_monotonic(void)
{
    sw_clock_snapshot snapshot;
    sw_clock_snap(&snapshot);
    return sw_clock_get_kind() != SW_CLOCK_MONOTONIC || snapshot.ticks == 0 ||
           snapshot.mono_ns != snapshot.ticks || snapshot.real_ns < snapshot.mono_ns;
}

static int report_kind(void)
{
    return (int)sw_clock_get_kind();
}

static int check_mentioned(void)
{
    return !strstr(sw_clock_why(), "STEPWATCH_CLOCK");
}

/* First of all tests: nothing here may have chosen a clock before the forks. */
static void environment_overrides(void **state)
{
    (void)state;
    assert_int_equal(in_child_with("monotonic", check_monotonic), 0);
    assert_int_equal(in_child_with("sundial", check_mentioned), 0);
    assert_int_not_equal(in_child_with("", report_kind), SW_CLOCK_NONE);
#if defined(__x86_64__)
    assert_int_equal(in_child_with("tsc", report_kind), SW_CLOCK_TSC);
#endif
}

static void *snap_in_thread(void *arg)
{
    sw_clock_snap(arg);
    return NULL;
}

static void first_use_by_several_threads(void **state)
{
    (void)state;
    pthread_t threads[8];
    sw_clock_snapshot snapshots[8];
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, snap_in_thread, &snapshots[i]),
                         0);
    }
    for (size_t i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_true(snapshots[i].ticks != 0);
    }
}

static void kind_has_name_and_reason(void **state)
{
    (void)state;
    enum sw_clock_kind kind = sw_clock_get_kind();
    assert_true(kind == SW_CLOCK_TSC || kind == SW_CLOCK_MONOTONIC ||
                kind == SW_CLOCK_CNTVCT);
    assert_int_equal(kind, sw__clock_kind);
    assert_true(strlen(sw_clock_why()) > 0);
    assert_string_equal(sw_clock_kind_name(SW_CLOCK_NONE), "none");
    assert_string_equal(sw_clock_kind_name(SW_CLOCK_TSC), "tsc");
    assert_string_equal(sw_clock_kind_name(SW_CLOCK_MONOTONIC), "monotonic");
    assert_string_equal(sw_clock_kind_name(SW_CLOCK_CNTVCT), "cntvct");
    assert_string_equal(sw_clock_kind_name((enum sw_clock_kind)77), "unknown");
}

static void snapshots_lie_within_their_bracket(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        sw_clock_snapshot snapshot;
        uint64_t before = sw_clock_ticks();
        sw_clock_snap(&snapshot);
        uint64_t after = sw_clock_ticks();
        assert_true(before <= snapshot.ticks && snapshot.ticks <= after);
        assert_true(snapshot.error_ticks <= after - before);
        assert_true(snapshot.mono_ns > 0);
        assert_true(snapshot.real_ns > (uint64_t)1600000000 * 1000000000);
    }
}

static void own_snapshots_make_a_timeline(void **state)
{
    (void)state;
    sw_clock_snapshot snapshots[2];
    sw_timeline *timeline;
    sw_error_info info;
    sw_clock_snap(&snapshots[0]);
    usleep(2000);
    sw_clock_snap(&snapshots[1]);
    assert_int_equal(
        sw_timeline_create(&timeline, sw_clock_get_kind(), snapshots, 2, &info), SW_OK);
    assert_int_equal(sw_timeline_points(timeline), 2);
    for (size_t i = 0; i < 2; i++) {
        uint64_t ticks = snapshots[i].ticks;
        assert_true(sw_timeline_mono_ns(timeline, ticks) == snapshots[i].mono_ns);
        assert_true(sw_timeline_real_ns(timeline, ticks) == snapshots[i].real_ns);
    }
    assert_true(sw_timeline_rate_hz(timeline) > 1e5);
    assert_true(sw_timeline_rate_hz(timeline) < 1e11);
    sw_timeline_free(timeline);
}

/* Snapshots of a clock of `hz`, 100 ms apart, with reading noise. */
static void make_honest(sw_clock_snapshot *snapshots, size_t count, double hz)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t ns = 5000000000u + (uint64_t)i * 100 * MS;
        uint64_t noise = next_random() % 100;
        snapshots[i].ticks = (uint64_t)((double)ns * hz / 1e9) + noise;
        snapshots[i].mono_ns = ns;
        snapshots[i].real_ns = ns + 1700000000000000000u;
        snapshots[i].error_ticks = 100;
    }
}

static sw_timeline *create(enum sw_clock_kind kind, const sw_clock_snapshot *snapshots,
                           size_t count)
{
    sw_timeline *timeline = NULL;
    assert_int_equal(sw_timeline_create(&timeline, kind, snapshots, count, NULL), SW_OK);
    assert_non_null(timeline);
    return timeline;
}

static void check_monotone(const sw_timeline *timeline, uint64_t from, uint64_t to)
{
    uint64_t last = sw_timeline_mono_ns(timeline, from);
    uint64_t stride = (to - from) / 3000 + 1;
    for (uint64_t ticks = from; ticks <= to && ticks >= from;) {
        uint64_t now = sw_timeline_mono_ns(timeline, ticks);
        assert_true(now >= last);
        last = now;
        uint64_t next = ticks + 1 + next_random() % stride;
        if (next < ticks) {
            break;
        }
        ticks = next;
    }
    assert_true(sw_timeline_mono_ns(timeline, to) >= last);
}

/* Conversions with a memory give the same, also for ticks just outside of the last
 * piece. */
static void check_pieces(const sw_timeline *timeline, uint64_t first, uint64_t last)
{
    struct sw__timeline_piece piece = {0};
    for (int i = 0; i < 10000; i++) {
        uint64_t ticks = first + next_random() % (last - first);
        ticks = i % 4 == 1 ? piece.from - next_random() % 3 : ticks;
        ticks = i % 4 == 2 ? piece.from + piece.span - next_random() % 3 : ticks;
        ticks = i % 16 == 3 ? last + next_random() % 1000 : ticks;
        assert_true(sw__timeline_piece_ns(timeline, &piece, ticks) ==
                    sw_timeline_mono_ns(timeline, ticks));
    }
}

static void honest_timeline_is_exact_and_monotone(void **state)
{
    (void)state;
    enum { COUNT = 500 };
    static sw_clock_snapshot snapshots[COUNT];
    static sw_clock_snapshot shuffled[COUNT];
    static const double rates[] = {24e6, 1e9, 2.4e9, 3.700001e9, 5e9};
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++) {
        make_honest(snapshots, COUNT, rates[r]);
        memcpy(shuffled, snapshots, sizeof shuffled);
        for (size_t i = COUNT - 1; i > 0; i--) {
            size_t k = (size_t)(next_random() % (i + 1));
            sw_clock_snapshot swap = shuffled[i];
            shuffled[i] = shuffled[k];
            shuffled[k] = swap;
        }
        sw_timeline *timeline = create(SW_CLOCK_TSC, shuffled, COUNT);
        assert_int_equal(sw_timeline_points(timeline), COUNT);
        assert_int_equal(sw_timeline_jumps(timeline), 0);
        double hz = sw_timeline_rate_hz(timeline);
        assert_true(hz > rates[r] * 0.999999 && hz < rates[r] * 1.000001);
        for (size_t i = 0; i < COUNT; i++) {
            uint64_t ticks = snapshots[i].ticks;
            assert_true(sw_timeline_mono_ns(timeline, ticks) == snapshots[i].mono_ns);
            assert_true(sw_timeline_real_ns(timeline, ticks) == snapshots[i].real_ns);
        }
        check_monotone(timeline, 0, snapshots[0].ticks);
        check_monotone(timeline, snapshots[0].ticks - 100, snapshots[9].ticks + 100);
        check_monotone(timeline, snapshots[COUNT - 2].ticks,
                       snapshots[COUNT - 1].ticks + (uint64_t)rates[r]);
        check_monotone(timeline, 0, UINT64_MAX);
        check_pieces(timeline, snapshots[0].ticks, snapshots[COUNT - 1].ticks);
        /* A second outside of the snapshots is still a second, both ways. */
        uint64_t second = (uint64_t)rates[r];
        uint64_t after =
            sw_timeline_mono_ns(timeline, snapshots[COUNT - 1].ticks + second) -
            snapshots[COUNT - 1].mono_ns;
        uint64_t before = snapshots[0].mono_ns -
                          sw_timeline_mono_ns(timeline, snapshots[0].ticks - second);
        assert_in_range(after, 999990000, 1000010000);
        assert_in_range(before, 999990000, 1000010000);
        sw_timeline_free(timeline);
    }
}

static void close_snapshots_are_thinned(void **state)
{
    (void)state;
    enum { COUNT = 1001 };
    static sw_clock_snapshot snapshots[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        snapshots[i] = (sw_clock_snapshot){.ticks = 1000000 + (uint64_t)i * 2 * MS,
                                           .mono_ns = 500000 + (uint64_t)i * MS,
                                           .error_ticks = i % 10 == 5 ? 20 : 4000};
    }
    sw_timeline *timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_in_range(sw_timeline_points(timeline), 10, 21);
    assert_int_equal(sw_timeline_jumps(timeline), 0);
    sw_timeline_free(timeline);

    /* Too short a run for 50 ms keeps both ends. */
    timeline = create(SW_CLOCK_TSC, snapshots, 30);
    assert_int_equal(sw_timeline_points(timeline), 2);
    assert_true(sw_timeline_mono_ns(timeline, snapshots[0].ticks) ==
                snapshots[0].mono_ns);
    assert_true(sw_timeline_mono_ns(timeline, snapshots[29].ticks) ==
                snapshots[29].mono_ns);
    assert_true(sw_timeline_rate_hz(timeline) == 2e9);
    assert_true(sw_timeline_real_ns(timeline, snapshots[3].ticks) == 0);
    sw_timeline_free(timeline);
}

static void one_snapshot_is_enough(void **state)
{
    (void)state;
    sw_clock_snapshot one = {.ticks = 3000000000000u, .mono_ns = 1000000000000u};
    sw_timeline *timeline = create(SW_CLOCK_TSC, &one, 1);
    assert_int_equal(sw_timeline_points(timeline), 1);
    assert_true(sw_timeline_mono_ns(timeline, one.ticks) == one.mono_ns);
    assert_true(sw_timeline_rate_hz(timeline) == 3e9);
    check_monotone(timeline, 0, UINT64_MAX);
    sw_timeline_free(timeline);

    one.ticks = 5; /* no counter since boot: a tick is taken for a nanosecond */
    timeline = create(SW_CLOCK_TSC, &one, 1);
    assert_true(sw_timeline_rate_hz(timeline) == 1e9);
    check_monotone(timeline, 0, UINT64_MAX);
    sw_timeline_free(timeline);
}

static void monotonic_is_the_identity(void **state)
{
    (void)state;
    static sw_clock_snapshot snapshots[10];
    for (size_t i = 0; i < 10; i++) {
        uint64_t ns = (i + 1) * 100 * MS;
        snapshots[i] = (sw_clock_snapshot){ns, ns, ns + (i < 5 ? 1000 : 2000), 30};
    }
    sw_timeline *timeline = create(SW_CLOCK_MONOTONIC, snapshots, 10);
    const uint64_t samples[] = {0, 1, 12345, 550 * MS, UINT64_MAX};
    for (size_t i = 0; i < 5; i++) {
        assert_true(sw_timeline_mono_ns(timeline, samples[i]) == samples[i]);
    }
    assert_true(sw_timeline_rate_hz(timeline) == 1e9);
    assert_int_equal(sw_timeline_jumps(timeline), 0);
    /* The offset is the nearest snapshot's. */
    assert_true(sw_timeline_real_ns(timeline, 0) == 1000);
    assert_true(sw_timeline_real_ns(timeline, 549 * MS) == 549 * MS + 1000);
    assert_true(sw_timeline_real_ns(timeline, 551 * MS) == 551 * MS + 2000);
    assert_true(sw_timeline_real_ns(timeline, UINT64_MAX) == UINT64_MAX);
    sw_timeline_free(timeline);
}

static void jumps_are_seen(void **state)
{
    (void)state;
    enum { COUNT = 100 };
    static sw_clock_snapshot snapshots[COUNT];

    /* The machine moved: the counter leaps ahead. */
    make_honest(snapshots, COUNT, 2e9);
    for (size_t i = 50; i < COUNT; i++) {
        snapshots[i].ticks += 10000000000u;
    }
    sw_timeline *timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_int_equal(sw_timeline_jumps(timeline), 1);
    double hz = sw_timeline_rate_hz(timeline);
    assert_true(hz > 1.9999e9 && hz < 2.0001e9);
    assert_true(sw_timeline_mono_ns(timeline, snapshots[70].ticks) ==
                snapshots[70].mono_ns);
    sw_timeline_free(timeline);

    /* It falls back, so that two moments share a count: the larger part is kept. */
    make_honest(snapshots, COUNT, 2e9);
    for (size_t i = 70; i < COUNT; i++) {
        snapshots[i].ticks -= 9000000000u;
    }
    timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_true(sw_timeline_jumps(timeline) >= 1);
    check_monotone(timeline, 0, UINT64_MAX);
    sw_timeline_free(timeline);

    /* One torn snapshot does not spoil the others. */
    make_honest(snapshots, COUNT, 2e9);
    uint64_t truth = snapshots[31].mono_ns;
    snapshots[0].mono_ns = UINT64_MAX;
    timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_int_equal(sw_timeline_jumps(timeline), 1);
    assert_int_equal(sw_timeline_points(timeline), COUNT - 1);
    assert_true(sw_timeline_mono_ns(timeline, snapshots[31].ticks) == truth);
    sw_timeline_free(timeline);

    /* A wide bracket excuses a deviation of its size. */
    make_honest(snapshots, COUNT, 2e9);
    snapshots[40].ticks += 500000;
    timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_int_equal(sw_timeline_jumps(timeline), 2);
    sw_timeline_free(timeline);
    snapshots[40].error_ticks = 600000;
    timeline = create(SW_CLOCK_TSC, snapshots, COUNT);
    assert_int_equal(sw_timeline_jumps(timeline), 0);
    sw_timeline_free(timeline);
}

static void nothing_usable_is_an_error(void **state)
{
    (void)state;
    static const sw_clock_snapshot zeros[3];
    static const sw_clock_snapshot differing = {.ticks = 5, .mono_ns = 500};
    sw_timeline *timeline = (sw_timeline *)&timeline;
    sw_error_info info;
    assert_int_equal(sw_timeline_create(&timeline, SW_CLOCK_TSC, NULL, 0, &info),
                     SW_ECORRUPT);
    assert_null(timeline);
    assert_true(strlen(info.message) > 0);
    assert_int_equal(sw_timeline_create(&timeline, SW_CLOCK_TSC, zeros, 3, NULL),
                     SW_ECORRUPT);
    assert_int_equal(
        sw_timeline_create(&timeline, SW_CLOCK_MONOTONIC, &differing, 1, NULL),
        SW_ECORRUPT);
    assert_int_equal(sw_timeline_create(&timeline, SW_CLOCK_NONE, &differing, 1, NULL),
                     SW_EINVAL);
    assert_int_equal(
        sw_timeline_create(&timeline, (enum sw_clock_kind)99, &differing, 1, NULL),
        SW_EINVAL);
    sw_timeline_free(NULL);
}

/* A number such as a forger would choose. */
static uint64_t nasty(void)
{
    switch (next_random() % 7) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX - next_random() % 3;
    case 2:
        return next_random() % 4;
    case 3:
        return (uint64_t)1 << (next_random() % 64);
    case 4:
        return 1000000000u + next_random() % 1000;
    default:
        return next_random() >> (next_random() % 64);
    }
}

static void hostile_snapshots_do_no_harm(void **state)
{
    (void)state;
    static sw_clock_snapshot snapshots[64];
    static const enum sw_clock_kind kinds[] = {SW_CLOCK_TSC, SW_CLOCK_CNTVCT,
                                               SW_CLOCK_MONOTONIC};
    for (int round = 0; round < 3000; round++) {
        size_t count = (size_t)(next_random() % 64);
        make_honest(snapshots, count, 1e9);
        for (size_t i = 0; i < count; i++) {
            if (round % 4 && next_random() % 4) {
                continue; /* mostly honest ones, with forged ones among them */
            }
            snapshots[i] = (sw_clock_snapshot){nasty(), nasty(), nasty(), nasty()};
            if (next_random() % 4 == 0 && i > 0) {
                snapshots[i] = snapshots[i - 1];
            }
        }
        sw_timeline *timeline;
        int result =
            sw_timeline_create(&timeline, kinds[round % 3], snapshots, count, NULL);
        if (result != SW_OK) {
            assert_int_equal(result, SW_ECORRUPT);
            assert_null(timeline);
            continue;
        }
        assert_true(sw_timeline_rate_hz(timeline) > 0);
        assert_true(sw_timeline_jumps(timeline) <= 2 * count);
        uint64_t samples[200];
        for (size_t i = 0; i < 200; i++) {
            samples[i] = i < count ? snapshots[i].ticks : nasty();
        }
        struct sw__timeline_piece piece = {0};
        for (size_t i = 0; i < 200; i++) {
            uint64_t a = samples[i];
            assert_true(sw__timeline_piece_ns(timeline, &piece, a) ==
                        sw_timeline_mono_ns(timeline, a));
            uint64_t b = samples[next_random() % 200];
            uint64_t low = sw_timeline_mono_ns(timeline, a < b ? a : b);
            assert_true(low <= sw_timeline_mono_ns(timeline, a < b ? b : a));
            (void)sw_timeline_real_ns(timeline, a);
        }
        sw_timeline_free(timeline);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_overrides),
        cmocka_unit_test(first_use_by_several_threads),
        cmocka_unit_test(kind_has_name_and_reason),
        cmocka_unit_test(snapshots_lie_within_their_bracket),
        cmocka_unit_test(own_snapshots_make_a_timeline),
        cmocka_unit_test(honest_timeline_is_exact_and_monotone),
        cmocka_unit_test(close_snapshots_are_thinned),
        cmocka_unit_test(one_snapshot_is_enough),
        cmocka_unit_test(monotonic_is_the_identity),
        cmocka_unit_test(jumps_are_seen),
        cmocka_unit_test(nothing_usable_is_an_error),
        cmocka_unit_test(hostile_snapshots_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
