/* Shares that sum to the whole, ranks, quantiles of mixed histograms, and the small JSON reader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/json_scan.h"
#include "analyze/quantiles.h"
#include "analyze/shares.h"

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static void shares_sum_to_the_whole(void **state)
{
    (void)state;
    uint64_t random = 1;
    for (int round = 0; round < 2000; round++) {
        uint64_t amounts[18];
        uint64_t parts[18];
        unsigned shift = (unsigned)(next_random(&random) % 64);
        uint64_t whole = 0;
        for (size_t i = 0; i < 18; i++) {
            bool some = next_random(&random) % 3 != 0;
            amounts[i] = some ? next_random(&random) >> shift : 0;
            whole |= amounts[i];
        }
        const uint64_t units[] = {1000, (uint64_t)1 << 32};
        for (size_t u = 0; u < 2; u++) {
            sw__shares(amounts, 18, units[u], parts);
            uint64_t sum = 0;
            for (size_t i = 0; i < 18; i++) {
                sum += parts[i];
                assert_true(amounts[i] > 0 || parts[i] == 0);
            }
            assert_int_equal(sum, whole ? units[u] : 0);
        }
    }
}

static void equal_amounts_differ_by_one_at_most(void **state)
{
    (void)state;
    const uint64_t amounts[] = {1, 1, 1, 1, 1, 1, 1};
    uint64_t parts[7];
    sw__shares(amounts, 7, 1000, parts);
    assert_int_equal(parts[0], 143); /* the remainder goes to the earlier ones */
    assert_int_equal(parts[5], 143);
    assert_int_equal(parts[6], 142);
}

static void rescaling_loses_nothing(void **state)
{
    (void)state;
    uint64_t random = 7;
    for (int round = 0; round < 2000; round++) {
        uint64_t amounts[20];
        uint64_t out[20];
        uint64_t from = 0;
        for (size_t i = 0; i < 20; i++) {
            amounts[i] = next_random(&random) >> 20;
            from += amounts[i];
        }
        uint64_t to = next_random(&random) >> 16;
        sw__rescale(amounts, 20, from, to, out);
        uint64_t sum = 0;
        for (size_t i = 0; i < 20; i++) {
            sum += out[i];
            double exact = (double)amounts[i] * (double)to / (double)from;
            assert_true(fabs((double)out[i] - exact) <= 1.0 + exact * 1e-9);
        }
        assert_int_equal(sum, to);
    }
    uint64_t out[2];
    sw__rescale((const uint64_t[]){0, 0}, 2, 0, 10, out);
    assert_int_equal(out[0], 10);
    assert_int_equal(out[1], 0);
}

static void ranks_are_nearest(void **state)
{
    (void)state;
    assert_int_equal(sw__rank(1, 0.5), 0);
    assert_int_equal(sw__rank(2, 0.5), 0);
    assert_int_equal(sw__rank(3, 0.5), 1);
    assert_int_equal(sw__rank(100, 0.99), 98);
    assert_int_equal(sw__rank(100, 0.07), 6);
    assert_int_equal(sw__rank(100, 1), 99);
    assert_int_equal(sw__rank(100, 0), 0);
}

/* Durations 1 … 100,000 ns, half of them counted in ns and half in ticks of 0.4 ns. */
static void quantiles_of_different_clocks_are_within_one_percent(void **state)
{
    (void)state;
    struct sw__quantiles set = {0};
    sw_histogram *ns = sw_histogram_create();
    sw_histogram *ticks = sw_histogram_create();
    for (uint64_t value = 1; value <= 100000; value++) {
        sw_histogram_add(value % 2 ? ns : ticks, value % 2 ? value : value * 5 / 2, 1);
    }
    assert_int_equal(sw__quantiles_add(&set, ns, 1), 0);
    assert_int_equal(sw__quantiles_add(&set, ticks, 0.4), 0);
    sw__quantiles_sort(&set);
    assert_int_equal(set.total, 100000);
    for (int percent = 1; percent < 100; percent++) {
        double exact = 1000.0 * percent;
        double found = (double)sw__quantiles_at(&set, percent / 100.0, 1, 100000);
        assert_true(fabs(found - exact) / exact <= 0.01);
    }
    assert_int_equal(sw__quantiles_at(&set, 1, 1, 100000), 100000);
    assert_int_equal(sw__quantiles_at(&set, 0.5, 1, 30), 30); /* held within min…max */
    assert_true(fabs(sw__quantiles_std(&set, 50000.5) - 28867.7) < 100);
    sw__quantiles_reset(&set);
    assert_int_equal(sw__quantiles_at(&set, 0.5, 1, 2), UINT64_MAX);
    sw__quantiles_free(&set);
    sw_histogram_free(ns);
    sw_histogram_free(ticks);
}

static struct sw__scan scan(const char *text)
{
    return (struct sw__scan){.at = text, .end = text + strlen(text)};
}

static void json_strings_are_decoded(void **state)
{
    (void)state;
    char out[64];
    struct sw__scan json = scan(" \"a\\n\\u00e9\\ud83d\\ude00\\\"\\u0000\\ud800\" ");
    assert_true(sw__scan_string(&json, out, sizeof out) > 0);
    assert_string_equal(out, "a\n\xc3\xa9\xf0\x9f\x98\x80\"?\xef\xbf\xbd");
    json = scan("\"abc\xc3\xa9\"");
    assert_int_equal(sw__scan_string(&json, out, 5), 5);
    assert_true(strncmp(out, "abc", 3) == 0);
}

static void json_numbers_do_not_follow_the_locale(void **state)
{
    (void)state;
    const struct {
        const char *text;
        double value;
    } cases[] = {{"0", 0},       {"-12", -12},     {"3.25", 3.25},
                 {"1e3", 1000},  {"2.5E-1", 0.25}, {"12.345678", 12.345678},
                 {"-0.5", -0.5}, {"1.5e+2", 150}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sw__scan json = scan(cases[i].text);
        double value;
        assert_true(sw__scan_number(&json, &value));
        assert_true(fabs(value - cases[i].value) <= 1e-15);
    }
}

static void json_mistakes_are_found(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",   "{",  "[1",      "[1,]x",     "\"abc", "\"\\x\"",        "\"\\u12\"",
        "tr", "-",  "{1:2}",   "{\"a\" 1}", "[1 2]", "\"\\ud800\\u\"", "nul",
        "}",  "+1", "\"a\nb\""};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct sw__scan json = scan(bad[i]);
        assert_false(sw__scan_skip(&json) && json.at == json.end);
    }
    char deep[1000];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = '\0';
    struct sw__scan json = scan(deep);
    assert_false(sw__scan_skip(&json));
    json = scan("{\"a\": [1, {\"b\": null}, \"x\"], \"c\": true, \"d\": -1.5e3}");
    assert_true(sw__scan_skip(&json));
    assert_true(json.at == json.end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_sum_to_the_whole),
        cmocka_unit_test(equal_amounts_differ_by_one_at_most),
        cmocka_unit_test(rescaling_loses_nothing),
        cmocka_unit_test(ranks_are_nearest),
        cmocka_unit_test(quantiles_of_different_clocks_are_within_one_percent),
        cmocka_unit_test(json_strings_are_decoded),
        cmocka_unit_test(json_numbers_do_not_follow_the_locale),
        cmocka_unit_test(json_mistakes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
