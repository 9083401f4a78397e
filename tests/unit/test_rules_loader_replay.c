/* The replay against cases that can be worked out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "analyze/replay.h"

#define MS 1e6
#define STEPS 100

static struct sw__replay_step steps[STEPS];

static void all_steps(double compute, double make, double block)
{
    for (size_t i = 0; i < STEPS; i++) {
        steps[i] = (struct sw__replay_step){.compute_ns = compute * MS,
                                            .make_ns = make * MS,
                                            .block_ns = block * MS,
                                            .first = i == 0};
    }
}

static struct sw__replay_setting setting(unsigned workers, double cores)
{
    return (struct sw__replay_setting){.workers = workers,
                                       .prefetch = 2,
                                       .cores = cores,
                                       .threads = 1,
                                       .compute_scale = 1,
                                       .make_scale = 1,
                                       .block_scale = 1};
}

static double replay_ms(const struct sw__replay_setting *set, double *wait)
{
    const double ns = sw__replay(steps, STEPS, set, wait);
    *wait /= MS;
    return ns / MS;
}

static void assert_close(double is, double should)
{
    if (fabs(is - should) > 0.001 + 1e-6 * should) {
        print_error("%.6f is not %.6f\n", is, should);
        fail();
    }
}

static void without_workers_times_add_up(void **state)
{
    (void)state;
    double wait;
    all_steps(10, 5, 2);
    struct sw__replay_setting set = setting(0, 4);
    assert_close(replay_ms(&set, &wait), 1700);
    assert_close(wait, 700);
    set.make_scale = 0.1;
    assert_close(replay_ms(&set, &wait), 1250);
}

static void one_worker_overlaps(void **state)
{
    (void)state;
    double wait;
    struct sw__replay_setting set = setting(1, 4);
    all_steps(10, 5, 2);
    /* The first batch has to be made; after that the worker is always ahead. */
    assert_close(replay_ms(&set, &wait), 7 + STEPS * 10);
    assert_close(wait, 7);
    /* A worker that is slower than the loop: the loop follows it. */
    all_steps(10, 15, 5);
    assert_close(replay_ms(&set, &wait), STEPS * 20 + 10);
    assert_close(wait, 20 + (STEPS - 1) * 10);
}

static void two_workers_are_twice_as_fast(void **state)
{
    (void)state;
    double wait;
    struct sw__replay_setting set = setting(2, 4);
    all_steps(5, 20, 0);
    /* Batches come in pairs every 20 ms; the last is trained on after its partner. */
    assert_close(replay_ms(&set, &wait), STEPS / 2 * 20 + 10);
    set.workers = 4;
    /* Five threads on four cores at the beginning would be too many: the loop waits then, so four run. */
    assert_true(replay_ms(&set, &wait) < 20 + STEPS * 5 * 1.3);
}

static void threads_share_cores(void **state)
{
    (void)state;
    double wait;
    struct sw__replay_setting set = setting(1, 4);
    assert_close(sw__replay_rate(&set, 3), 1);
    assert_close(sw__replay_rate(&set, 8), 0.5);
    set.cores = 2;
    set.others = 6;
    assert_close(sw__replay_rate(&set, 2), 0.25);
    set.grouped = 1; /* a core for all of its threads */
    set.group_cores = 1;
    assert_close(sw__replay_rate(&set, 1), 1);
    assert_close(sw__replay_rate(&set, 4), 0.25);
    set.grouped = 0.5;
    assert_close(sw__replay_rate(&set, 2), (0.25 + 0.5) / 2);
    /* One core: nothing is gained, work is work. */
    set = setting(1, 1);
    all_steps(10, 10, 0);
    const double alone = STEPS * 20;
    assert_true(replay_ms(&set, &wait) >= alone - 0.01);
    /* Waiting needs no core. */
    all_steps(10, 0, 10);
    assert_close(replay_ms(&set, &wait), 10 + STEPS * 10);
    /* Compute that wants both of two cores slows down beside a worker, and the worker beside it: 3 threads, 2 cores. */
    set = setting(1, 2);
    set.threads = 2;
    all_steps(10, 10, 0);
    const double shared = replay_ms(&set, &wait);
    assert_true(shared > STEPS * 14.9 && shared < STEPS * 15 + 20);
}

static void epochs_begin_anew(void **state)
{
    (void)state;
    double wait;
    struct sw__replay_setting set = setting(1, 4);
    all_steps(10, 5, 0);
    steps[50].first = true;
    set.start_ns = 30 * MS;
    assert_close(replay_ms(&set, &wait), STEPS * 10 + 2 * (30 + 5));
    assert_close(wait, 70);
}

static void handing_over_costs_the_loop(void **state)
{
    (void)state;
    double wait;
    struct sw__replay_setting set = setting(1, 4);
    set.hand_ns = 2 * MS;
    set.send_ns = 1 * MS;
    all_steps(10, 5, 0);
    assert_close(replay_ms(&set, &wait), 6 + STEPS * 12);
    assert_close(wait, 6 + STEPS * 2);
}

/* Every tenth batch takes 50 ms, the others nothing: a stock of more than five steps bridges that. */
static void a_longer_queue_bridges_bursts(void **state)
{
    (void)state;
    double wait;
    all_steps(10, 0, 0);
    for (size_t i = 0; i < STEPS; i += 10) {
        steps[i].make_ns = 50 * MS;
    }
    struct sw__replay_setting set = setting(1, 4);
    set.prefetch = 8;
    assert_close(replay_ms(&set, &wait), 50 + STEPS * 10);
    set.prefetch = 2;
    /* With two in stock it begins when the loop has taken the one two before it: 50 - 20 are missing, nine times. */
    assert_close(replay_ms(&set, &wait), 50 + STEPS * 10 + 9 * 30);
}

static void ranges_hold_what_they_are_of(void **state)
{
    (void)state;
    all_steps(10, 5, 2);
    const struct sw__replay_setting now = setting(0, 4), then = setting(1, 4);
    struct sw__replay_range range = sw__replay_saves(steps, STEPS, &now, &then);
    assert_close(range.mean, 1 - 1007.0 / 1700);
    assert_true(range.low <= range.mean && range.mean <= range.high);
    assert_true(range.high - range.low < 0.02); /* all steps are the same */
    for (size_t i = 0; i < STEPS; i += 7) {
        steps[i].make_ns *= 20;
    }
    range = sw__replay_saves(steps, STEPS, &now, &then);
    assert_true(range.low < range.mean && range.mean < range.high);
    /* Nothing to draw from. */
    range = sw__replay_saves(steps, 3, &now, &then);
    assert_true(range.low <= 0);
    /* The same again: nothing is saved. */
    range = sw__replay_saves(steps, STEPS, &now, &now);
    assert_close(range.mean, 0);
    assert_close(range.low, 0);
    assert_close(range.high, 0);
}

static void borders(void **state)
{
    (void)state;
    struct sw__replay_setting set = setting(3, 0.5);
    set.prefetch = 0; /* as 1 */
    assert_true(sw__replay(steps, 0, &set, NULL) >= 0);
    all_steps(0, 0, 0);
    assert_close(sw__replay(steps, STEPS, &set, NULL), 0);
    set.workers = 1000; /* more than there is room for */
    all_steps(1, 1, 1e6);
    assert_true(sw__replay(steps, STEPS, &set, NULL) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_workers_times_add_up),
        cmocka_unit_test(one_worker_overlaps),
        cmocka_unit_test(two_workers_are_twice_as_fast),
        cmocka_unit_test(threads_share_cores),
        cmocka_unit_test(epochs_begin_anew),
        cmocka_unit_test(handing_over_costs_the_loop),
        cmocka_unit_test(a_longer_queue_bridges_bursts),
        cmocka_unit_test(ranges_hold_what_they_are_of),
        cmocka_unit_test(borders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
