/* Intervals are checked against series whose truth is known: steps that remember the one before (AR(1)), with a fixed seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare.h"

/* --- random series --- */

static uint64_t state;

static double uniform(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return ((double)(state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
    return sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
}

/* Step times around `mean`, log-normal with deviation `spread` of the logarithm; neighbours are correlated by `memory`.
 * The mean is exact. */
static void make_steps(double *out, size_t count, double mean, double spread,
                       double memory)
{
    double x = normal();
    for (size_t i = 0; i < count; i++) {
        x = memory * x + sqrt(1 - memory * memory) * normal();
        out[i] = mean * exp(spread * x - spread * spread / 2);
    }
}

/* --- pairs of runs --- */

#define PAIRS 300
#define ALARM_PAIRS 800 /* the rate is small, so chance is large */
#define STEPS_MOST 1000

static double values[STEPS_MOST];

/* A run that has nothing but these steps. */
static sw_compare_input *run_of(const double *steps, size_t count)
{
    sw_compare_input *input = sw__compare_input_new("run");
    assert_non_null(input);
    input->has_steps = input->single = true;
    input->side.steps = count;
    assert_int_equal(sw__mean_draws(steps, count, 1, input->draws, &input->step), 0);
    assert_int_equal(sw__median_of(steps, count, &input->median), 0);
    return input;
}

struct setting {
    size_t count;
    double memory, spread;
};

static sw_compared compare_steps(const struct setting *setting, double before,
                                 double after)
{
    sw_compare_input *inputs[2];
    sw_comparison *comparison;
    const double means[2] = {before, after};
    for (size_t i = 0; i < 2; i++) {
        make_steps(values, setting->count, means[i], setting->spread, setting->memory);
        inputs[i] = run_of(values, setting->count);
    }
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    sw_compared result = *sw_comparison_get(comparison, 0);
    result.side = (sw_compared_side){0}; /* its texts go now */
    sw_comparison_free(comparison);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
    return result;
}

static const struct setting settings[] = {
    {20, 0, 0.1},    {50, 0.3, 0.1},  {100, 0, 0.5},   {100, 0.5, 0.2},
    {200, 0.7, 0.2}, {400, 0.2, 0.1}, {400, 0.85, 0.3}};
#define SETTINGS (sizeof settings / sizeof settings[0])

static void intervals_hold_the_truth(void **unused)
{
    (void)unused;
    state = 88172645463325252u;
    for (size_t i = 0; i < SETTINGS; i++) {
        double mean = 0;
        double median = 0;
        for (unsigned pair = 0; pair < PAIRS; pair++) {
            const sw_compared run = compare_steps(&settings[i], 12, 10);
            mean += run.low <= 1.2 && 1.2 <= run.high;
            median += run.median_low <= 1.2 && 1.2 <= run.median_high;
        }
        print_message("%zu steps, memory %.2f: mean %.3f, median %.3f\n",
                      settings[i].count, settings[i].memory, mean / PAIRS,
                      median / PAIRS);
        assert_true(mean >= 0.90 * PAIRS && mean <= 0.99 * PAIRS);
        assert_true(median >= 0.90 * PAIRS && median <= 0.99 * PAIRS);
    }
}

static void no_difference_is_seldom_called_one(void **unused)
{
    (void)unused;
    state = 1181783497276652981u;
    for (size_t i = 0; i < SETTINGS; i += 2) {
        unsigned alarms = 0;
        for (unsigned pair = 0; pair < ALARM_PAIRS; pair++) {
            alarms += compare_steps(&settings[i], 10, 10).verdict != SW_VERDICT_SAME;
        }
        print_message("%zu steps, memory %.2f: %u false alarms of %d\n",
                      settings[i].count, settings[i].memory, alarms, ALARM_PAIRS);
        assert_true(alarms <= 0.07 * ALARM_PAIRS);
    }
}

static void small_changes_are_found(void **unused)
{
    static const struct setting quiet = {100, 0.3, 0.02};
    (void)unused;
    state = 2685821657736338717u;
    for (unsigned pair = 0; pair < 50; pair++) {
        const sw_compared faster = compare_steps(&quiet, 10.5, 10);
        assert_int_equal(faster.verdict, SW_VERDICT_FASTER);
        assert_true(faster.tested && !faster.regression);
        assert_true(fabs(faster.speedup - 1.05) < 0.02);
        const sw_compared slower = compare_steps(&quiet, 10, 11.5);
        assert_int_equal(slower.verdict, SW_VERDICT_SLOWER);
        assert_true(slower.regression); /* by 13 %, more than 5 */
        assert_false(compare_steps(&quiet, 10, 10.3).regression);
    }
}

/* The same steps give the same interval, and a run is not different from itself. */
static void answers_can_be_had_again(void **unused)
{
    (void)unused;
    state = 42;
    make_steps(values, 200, 10, 0.2, 0.5);
    sw_compare_input *inputs[2] = {run_of(values, 200), run_of(values, 200)};
    sw_compared seen[2];
    for (size_t i = 0; i < 2; i++) {
        sw_comparison *comparison;
        assert_int_equal(sw_compare_inputs(&comparison,
                                           (const sw_compare_input *const *)inputs, 2,
                                           NULL, NULL),
                         0);
        seen[i] = *sw_comparison_get(comparison, 0);
        sw_comparison_free(comparison);
    }
    assert_true(seen[0].speedup == 1 && seen[0].median_speedup == 1);
    assert_int_equal(seen[0].verdict, SW_VERDICT_SAME);
    assert_true(seen[0].low < 0.99 && seen[0].high > 1.01);
    assert_true(seen[0].low == seen[1].low && seen[0].high == seen[1].high);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

/* Three steps of 300 times the length: the mean says nothing, the median does, and the sentence says so. */
static void long_steps_do_not_hide_a_change(void **unused)
{
    (void)unused;
    state = 7;
    sw_compare_input *inputs[2];
    for (size_t i = 0; i < 2; i++) {
        make_steps(values, 300, i ? 8 : 10, 0.05, 0.2);
        for (size_t k = 20; k < 300; k += 100) {
            values[k] *= 300;
        }
        inputs[i] = run_of(values, 300);
        inputs[i]->side.step_ns = inputs[i]->step.mean;
    }
    sw_comparison *comparison;
    char text[512];
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_SAME);
    assert_true(run->median_low > 1.2 && run->median_high < 1.3);
    (void)sw_comparison_sentence(comparison, 0, true, text, sizeof text);
    assert_non_null(strstr(text, "no difference that these data can show (-"));
    assert_non_null(strstr(text, "; the median step is faster by 2"));
    sw_comparison_free(comparison);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

/* --- pieces --- */

static void blocks_are_as_long_as_the_memory(void **unused)
{
    (void)unused;
    state = 99;
    make_steps(values, 1000, 10, 0.1, 0);
    const size_t none = sw__block_length(values, 1000);
    make_steps(values, 1000, 10, 0.1, 0.9);
    const size_t much = sw__block_length(values, 1000);
    assert_true(none <= 4);
    assert_true(much >= 12 && much <= 200);
    for (size_t i = 0; i < 100; i++) {
        values[i] = 5;
    }
    assert_int_equal(sw__block_length(values, 100), 1);
    assert_int_equal(sw__block_length(values, 1), 1);
}

static void few_values(void **unused)
{
    (void)unused;
    static const double some[] = {3, 5, 4};
    struct sw__mean mean;
    struct sw__median median;
    assert_int_equal(sw__mean_of(some, 3, &mean), 0);
    assert_true(fabs(mean.mean - 4) < 1e-12);
    assert_true(fabs(mean.variance - 1.0 / 3) < 1e-12);
    assert_true(fabs(mean.freedom - 2) < 1e-12);
    assert_int_equal(sw__mean_of(some, 1, &mean), 0);
    assert_true(mean.mean == 3 && isnan(mean.variance));
    assert_int_equal(sw__mean_of(some, 0, &mean), 0);
    assert_true(isnan(mean.mean));
    assert_int_equal(sw__median_of(some, 3, &median), 0);
    assert_true(median.value == 4 && median.low == 3 && median.high == 5);
    assert_int_equal(sw__median_of(some, 0, &median), 0);
    assert_true(isnan(median.value));
}

static void students_t(void **unused)
{
    (void)unused;
    /* From tables. */
    assert_true(fabs(sw__t_bound(5) - 2.571) < 0.01);
    assert_true(fabs(sw__t_bound(30) - 2.042) < 0.003);
    assert_true(fabs(sw__t_bound(INFINITY) - 1.96) < 0.001);
    assert_true(fabs(sw__t_probability(2.571, 5) - 0.05) < 0.002);
    assert_true(fabs(sw__t_probability(-3.646, 30) - 0.001) < 0.0002);
    assert_true(sw__t_probability(INFINITY, 5) == 0);
    assert_true(sw__t_probability(0, 5) == 1);
    assert_true(isnan(sw__t_probability(NAN, 5)));
}

static void many_tests_are_corrected(void **unused)
{
    (void)unused;
    double p[] = {0.04, NAN, 0.001, 0.03, 0.9};
    size_t order[5];
    sw__holm(p, 5, order);
    assert_true(fabs(p[2] - 0.004) < 1e-12);
    assert_true(fabs(p[3] - 0.09) < 1e-12);
    assert_true(fabs(p[0] - 0.09) < 1e-12); /* 0.08, but not below the one before */
    assert_true(p[4] == 0.9);
    assert_true(isnan(p[1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(no_difference_is_seldom_called_one),
        cmocka_unit_test(small_changes_are_found),
        cmocka_unit_test(answers_can_be_had_again),
        cmocka_unit_test(long_steps_do_not_hide_a_change),
        cmocka_unit_test(blocks_are_as_long_as_the_memory),
        cmocka_unit_test(few_values),
        cmocka_unit_test(students_t),
        cmocka_unit_test(many_tests_are_corrected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
