/* Trends: what grows, and what only looks as if it did. And the lines of a loop that keep things. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "analyze/growth.h"
#include "analyze/source_keeps.h"

enum { MOST = 1000 };

static double x[MOST], y[MOST];
static uint64_t seed = 7;

/* From 0 to 1. */
static double chance(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(seed >> 11) * 0x1p-53;
}

static struct sw__growth of(size_t count, double (*value)(double at))
{
    for (size_t i = 0; i < count; i++) {
        x[i] = (double)i;
        y[i] = value((double)i);
    }
    return sw__growth_of(x, y, count);
}

static double leak(double at)
{
    return 3e8 + 1e5 * at + 2e6 * chance();
}

static double line(double at)
{
    return 1e8 + 5e4 * at;
}

static void test_leak(void **state)
{
    (void)state;
    const struct sw__growth noisy = of(400, leak);
    assert_true(noisy.grows);
    assert_true(fabs(noisy.slope - 1e5) < 5e3);
    assert_true(noisy.low <= 1e5 && noisy.high >= 1e5);
    assert_true(noisy.p < 0.001);
    const struct sw__growth exact = of(30, line);
    assert_true(exact.grows);
    assert_float_equal(exact.slope, 5e4, 1);
}

/* A line is a line also if something came on top once. */
static double line_and_step(double at)
{
    return 2.4e8 + 3e5 * at + (at > 20 ? 2.4e6 : 0);
}

static void test_line_and_step(void **state)
{
    (void)state;
    const struct sw__growth found = of(45, line_and_step);
    assert_true(found.grows);
    assert_true(fabs(found.slope - 3e5) < 1.5e4);
}

static double flat(double at)
{
    (void)at;
    return 3e8 + 2e7 * chance();
}

static double constant(double at)
{
    (void)at;
    return 1e8;
}

/* Caches fill in the first tenth. */
static double warmup(double at)
{
    return 3e8 + (at < 40 ? 1e6 * at : 4e7) + 1e6 * chance();
}

static double step_up(double at)
{
    return at < 210 ? 1e8 : 2e8;
}

/* A collector comes every 50 steps. */
static double sawtooth(double at)
{
    return 1e8 + 1e6 * fmod(at, 50);
}

static double wander_at;
static double wander(double at)
{
    wander_at = at == 0 ? 0 : wander_at + chance() - 0.5;
    return 1e8 + 1e6 * wander_at;
}

static double shrinks(double at)
{
    return 1e9 - 1e5 * at;
}

static void test_healthy(void **state)
{
    (void)state;
    assert_false(of(400, flat).grows);
    assert_false(of(400, constant).grows);
    assert_false(of(400, warmup).grows);
    assert_false(of(400, step_up).grows);
    assert_false(of(400, sawtooth).grows);
    assert_false(of(400, shrinks).grows);
}

/* A walk at random goes somewhere, but is seldom believed. */
static void test_wander(void **state)
{
    (void)state;
    unsigned believed = 0;
    for (unsigned i = 0; i < 200; i++) {
        believed += of(200, wander).grows;
    }
    assert_true(believed < 20);
}

static void test_too_few(void **state)
{
    (void)state;
    const struct sw__growth few = of(SW__GROWTH_LEAST - 1, line);
    assert_false(few.grows);
    assert_true(isnan(few.slope) && isnan(few.p));
    assert_true(isnan(sw__growth_of(NULL, NULL, 0).slope));
}

static struct sw__source_keep keeps(const char *text)
{
    return sw__source_keeps(text, strlen(text), 1);
}

static void test_source(void **state)
{
    (void)state;
    assert_int_equal(
        keeps("for x in loader:\n    loss = f(x)\n    history.append(loss)\n").line, 3);
    assert_int_equal(keeps("for x in loader:\n    total += loss\n").line, 2);
    assert_true(keeps("for x in loader:\n    total += loss\n").sums);
    assert_int_equal(
        keeps("while True:\n    self.log.outputs.append(out)\nafter.append(1)\n").line,
        2);
    assert_int_equal(keeps("for x in loader:\n    seen[i] = batch\n").line, 2);
    /* Numbers, counts, and lists of the loop itself. */
    assert_int_equal(keeps("for x in loader:\n    history.append(loss.item())\n").line,
                     0);
    assert_int_equal(
        keeps("for x in loader:\n    n += 1\n    total += float(loss)\n").line, 0);
    assert_int_equal(
        keeps("for x in loader:\n    parts = []\n    parts.append(x)\n").line, 0);
    assert_int_equal(keeps("for x in loader:\n    pass\nhistory.append(loss)\n").line, 0);
    assert_int_equal(keeps("").line, 0);
    assert_int_equal(sw__source_keeps("a\n", 2, 0).line, 0);
    /* What looks most like it wins. */
    assert_int_equal(
        keeps("for x in l:\n    meter.update(x)\n    outputs.append(out)\n    q.put(x)\n")
            .line,
        3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_leak),    cmocka_unit_test(test_line_and_step),
        cmocka_unit_test(test_healthy), cmocka_unit_test(test_wander),
        cmocka_unit_test(test_too_few), cmocka_unit_test(test_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
