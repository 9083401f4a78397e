/* Bucket edges, quantiles against sorted data, merging, and counts that overflow. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/histogram.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static double uniform(void)
{
    return ((double)(next_random() >> 11) + 0.5) / 9007199254740992.0;
}

static void check_placed(uint64_t value)
{
    unsigned octave = sw_histogram_octave(value);
    unsigned bucket = sw_histogram_bucket(value);
    assert_true(octave < SW_HISTOGRAM_OCTAVES && bucket < SW_HISTOGRAM_SUB);
    uint64_t low = sw_histogram_low(octave, bucket);
    uint64_t width = sw_histogram_width(octave);
    assert_true(value >= low && value - low < width);
    assert_true(low < 64 ? width == 1 : width <= low / 64);
}

static void every_value_is_in_its_bucket(void **state)
{
    (void)state;
    for (uint64_t value = 0; value < 100000; value++) {
        check_placed(value);
    }
    for (unsigned power = 0; power < 64; power++) {
        uint64_t edge = (uint64_t)1 << power;
        check_placed(edge - 1);
        check_placed(edge);
        check_placed(edge + 1);
        for (int i = 0; i < 1000; i++) {
            check_placed(next_random() >> power);
        }
    }
    check_placed(UINT64_MAX);
}

static void buckets_follow_each_other(void **state)
{
    (void)state;
    uint64_t expected = 0;
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        for (unsigned bucket = 0; bucket < SW_HISTOGRAM_SUB; bucket++) {
            uint64_t low = sw_histogram_low(octave, bucket);
            assert_true(low == expected);
            assert_int_equal(sw_histogram_octave(low), octave);
            assert_int_equal(sw_histogram_bucket(low), bucket);
            expected = low + sw_histogram_width(octave);
        }
    }
    assert_true(expected == 0); /* all of 64 bits are covered */
    assert_true(sw_histogram_low(1000, 1000) > 0);
    assert_true(sw_histogram_width(1000) > 0);
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

enum { DISTRIBUTIONS = 9 };

static uint64_t draw(unsigned distribution)
{
    double u = uniform();
    switch (distribution) {
    case 0:
        return (uint64_t)(u * 1e9);
    case 1:
        return (uint64_t)(-log(u) * 1e6);
    case 2: /* log-normal */
        return (uint64_t)exp(14 + 2 * sqrt(-2 * log(u)) * cos(6.2831853 * uniform()));
    case 3: /* heavy tail */
        return (uint64_t)fmin(1000 / pow(u, 1.5), 9e18);
    case 4: /* two modes */
        return (uint64_t)(u < 0.9 ? 1e4 + uniform() * 100 : 5e7 + uniform() * 1e6);
    case 5:
        return 12345678;
    case 6:
        return next_random() >> (next_random() % 64);
    case 7:
        return next_random() % 70;
    default:
        return UINT64_MAX - next_random() % 1000;
    }
}

static void quantiles_are_within_one_percent(void **state)
{
    (void)state;
    static const double fractions[] = {0,   1e-9, 0.01, 0.07,  0.1,    0.25, 0.5,
                                       0.9, 0.95, 0.99, 0.999, 0.9999, 1};
    static uint64_t data[20000];
    for (unsigned round = 0; round < DISTRIBUTIONS * 4; round++) {
        size_t count = (size_t[]){1, 100, 997, 20000}[round / DISTRIBUTIONS];
        sw_histogram *histogram = sw_histogram_create();
        for (size_t i = 0; i < count; i++) {
            data[i] = draw(round % DISTRIBUTIONS);
            assert_int_equal(sw_histogram_add(histogram, data[i], 1), SW_OK);
        }
        qsort(data, count, sizeof data[0], compare);
        assert_int_equal(sw_histogram_count(histogram), count);
        for (size_t i = 0; i < sizeof fractions / sizeof fractions[0]; i++) {
            double rank = ceil(fractions[i] * (double)count * (1 - 4e-16));
            size_t index = rank < 1 ? 0 : (size_t)rank - 1;
            double truth = (double)data[index];
            double got = (double)sw_histogram_quantile(histogram, fractions[i]);
            assert_true(fabs(got - truth) <= truth * 0.01);
        }
        sw_histogram_free(histogram);
    }
}

static void rank_is_the_nearest(void **state)
{
    (void)state;
    sw_histogram *histogram = sw_histogram_create();
    assert_int_equal(sw_histogram_quantile(histogram, 0.5), 0);
    for (uint64_t value = 1; value <= 50; value++) {
        sw_histogram_add(histogram, value, 1);
    }
    for (unsigned percent = 2; percent <= 100; percent += 2) {
        assert_int_equal(sw_histogram_quantile(histogram, percent / 100.0), percent / 2);
    }
    assert_int_equal(sw_histogram_quantile(histogram, -1), 1);
    assert_int_equal(sw_histogram_quantile(histogram, NAN), 1);
    assert_int_equal(sw_histogram_quantile(histogram, INFINITY), 50);
    assert_true(sw_histogram_mean(histogram) == 25.5);
    assert_true(fabs(sw_histogram_std(histogram) - sqrt(2499 / 12.0)) < 1e-9);
    sw_histogram_free(histogram);
}

struct collected {
    uint64_t lows[4000];
    uint64_t counts[4000];
    size_t used;
};

static void collect(void *arg, uint64_t low, uint64_t width, uint64_t count)
{
    struct collected *collected = arg;
    assert_true(width > 0 && count > 0);
    assert_true(collected->used == 0 || collected->lows[collected->used - 1] < low);
    collected->lows[collected->used] = low;
    collected->counts[collected->used++] = count;
}

static void merging_is_adding(void **state)
{
    (void)state;
    sw_histogram *one = sw_histogram_create();
    sw_histogram *two = sw_histogram_create();
    sw_histogram *both = sw_histogram_create();
    for (int i = 0; i < 20000; i++) {
        uint64_t value = draw((unsigned)(next_random() % DISTRIBUTIONS));
        uint64_t count = next_random() % 5;
        sw_histogram_add(i % 3 ? one : two, value, count);
        sw_histogram_add(both, value, count);
    }
    assert_int_equal(sw_histogram_merge(one, two), SW_OK);
    static struct collected left;
    static struct collected right;
    sw_histogram_each(one, collect, &left);
    sw_histogram_each(both, collect, &right);
    assert_memory_equal(&left, &right, sizeof left);
    assert_int_equal(sw_histogram_count(one), sw_histogram_count(both));
    assert_int_equal(sw_histogram_merge(one, one), SW_OK);
    assert_int_equal(sw_histogram_count(one), 2 * sw_histogram_count(both));
    sw_histogram_free(one);
    sw_histogram_free(two);
    sw_histogram_free(both);
    sw_histogram_free(NULL);
}

static void pages_are_added_and_checked(void **state)
{
    (void)state;
    sw_histogram *histogram = sw_histogram_create();
    uint64_t page[SW_HISTOGRAM_SUB] = {0};
    page[0] = 3;
    page[63] = 4;
    assert_int_equal(sw_histogram_add_page(histogram, 1, page), SW_OK);
    assert_int_equal(sw_histogram_count(histogram), 7);
    assert_int_equal(sw_histogram_quantile(histogram, 0), 64);
    assert_int_equal(sw_histogram_quantile(histogram, 1), 127);
    assert_int_equal(sw_histogram_add_page(histogram, SW_HISTOGRAM_OCTAVES, page),
                     SW_EINVAL);
    assert_int_equal(sw_histogram_add_page(histogram, UINT32_MAX, page), SW_EINVAL);
    assert_int_equal(sw_histogram_count(histogram), 7);
    sw_histogram_free(histogram);
}

static void counts_stop_at_the_top(void **state)
{
    (void)state;
    sw_histogram *histogram = sw_histogram_create();
    sw_histogram_add(histogram, 10, UINT64_MAX);
    sw_histogram_add(histogram, 10, UINT64_MAX);
    sw_histogram_add(histogram, 20, UINT64_MAX);
    assert_true(sw_histogram_count(histogram) == UINT64_MAX);
    assert_int_equal(sw_histogram_quantile(histogram, 0.5), 10);
    assert_true(isfinite(sw_histogram_mean(histogram)));
    assert_true(isfinite(sw_histogram_std(histogram)));
    sw_histogram_free(histogram);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_value_is_in_its_bucket),
        cmocka_unit_test(buckets_follow_each_other),
        cmocka_unit_test(quantiles_are_within_one_percent),
        cmocka_unit_test(rank_is_the_nearest),
        cmocka_unit_test(merging_is_adding),
        cmocka_unit_test(pages_are_added_and_checked),
        cmocka_unit_test(counts_stop_at_the_top),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
