#include "analyze/bootstrap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/error.h>

#include "base/memory.h"

#define Z95 1.959963984540054
#define BLOCKS_LEAST 3     /* that a series is cut into */
#define BLOCKS_MOST 512    /* more tell nothing new, and take their time */
#define LAGS_LONGEST 65536 /* longer series get BLOCKS_MOST blocks without looking */
#define CORRELATION_MOST 0.97
#define INDEPENDENT_BELOW 8 /* values; too few to see whether neighbours are alike */

/* --- Student's t, by Wallace's transformation to the normal distribution, good to three digits --- */

double sw__t_bound(double freedom)
{
    if (!(freedom < 1e9)) {
        return isnan(freedom) ? NAN : Z95;
    }
    const double df = freedom > 1 ? freedom : 1;
    const double z = Z95 * (8 * df + 3) / (8 * df + 1);
    return sqrt(df * expm1(z * z / df));
}

double sw__t_probability(double t, double freedom)
{
    if (isnan(t) || isnan(freedom)) {
        return NAN;
    }
    if (isinf(t)) {
        return 0;
    }
    const double df = freedom > 1 ? (freedom < 1e9 ? freedom : 1e9) : 1;
    const double z = sqrt(df * log1p(t * t / df)) * (8 * df + 1) / (8 * df + 3);
    return erfc(z / sqrt(2));
}

/* --- correlation --- */

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i];
    }
    return sum / (double)count;
}

static double covariance(const double *values, size_t count, double mean, size_t lag)
{
    double sum = 0;
    for (size_t i = lag; i < count; i++) {
        sum += (values[i] - mean) * (values[i - lag] - mean);
    }
    return sum / (double)count;
}

/* The lag after which `run` covariances in a row are no more than chance; `most` when there is none. Fills covariances
 * 1…result + run. */
static size_t last_lag(const double *values, size_t count, double mean, size_t run,
                       size_t most, double *covariances)
{
    const double n = (double)count;
    const double bound = 2 * sqrt(log10(n) / n) * covariances[0];
    size_t quiet = 0;
    for (size_t lag = 1; lag <= most; lag++) {
        covariances[lag] = covariance(values, count, mean, lag);
        quiet = fabs(covariances[lag]) < bound ? quiet + 1 : 0;
        if (quiet == run) {
            return lag - run;
        }
    }
    return most;
}

size_t sw__block_length(const double *values, size_t count)
{
    const double n = (double)count;
    size_t run = (size_t)ceil(sqrt(log10(n > 1 ? n : 1)));
    run = run > 5 ? run : 5;
    size_t most = (size_t)ceil(sqrt(n)) + run;
    most = most < count ? most : count - 1;
    double *covariances = sw__alloc_zero(most + 1, sizeof *covariances);
    if (!covariances || count < 2) {
        sw__free(covariances);
        return 1;
    }
    const double mean = mean_of(values, count);
    covariances[0] = covariance(values, count, mean, 0);
    const size_t last = last_lag(values, count, mean, run, most, covariances);
    size_t window = 2 * (last > 1 ? last : 1);
    window = window < most ? window : most;
    double spectrum = covariances[0];
    double slope = 0;
    for (size_t lag = 1; lag <= window; lag++) {
        const double at = (double)lag / (double)window;
        const double flat = at <= 0.5 ? 1 : 2 * (1 - at);
        const double both =
            2 * flat *
            (lag <= last + run ? covariances[lag] : covariance(values, count, mean, lag));
        spectrum += both;
        slope += both * (double)lag;
    }
    sw__free(covariances);
    const double length =
        spectrum > 0 ? cbrt(1.5 * slope * slope / (spectrum * spectrum) * n) : 1;
    return length < n ? (size_t)(length + 0.5) : count;
}

/* Not shorter than the cube root of n, where nothing is to be seen, and enough blocks. */
static size_t choose_length(const double *values, size_t count)
{
    if (count < INDEPENDENT_BELOW) {
        return 1;
    }
    size_t length = count > LAGS_LONGEST ? 1 : sw__block_length(values, count);
    const size_t least = (size_t)(cbrt((double)count) + 0.5);
    length = length > least ? length : least;
    const size_t most = (size_t)(3 * sqrt((double)count));
    length = length < most ? length : most;
    length = length < count / BLOCKS_LEAST ? length : count / BLOCKS_LEAST;
    return length > count / BLOCKS_MOST ? length : count / BLOCKS_MOST;
}

/* --- blocks --- */

/* Sums of the first i deviations from the mean, twice around, so that blocks may reach beyond the end. */
struct circle {
    double *sums;
    size_t count, length;
};

static int circle_make(struct circle *circle, const double *values, size_t count,
                       double mean)
{
    circle->count = count;
    circle->length = choose_length(values, count);
    circle->sums = sw__alloc_zero(2 * count + 1, sizeof *circle->sums);
    if (!circle->sums) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < 2 * count; i++) {
        circle->sums[i + 1] = circle->sums[i] + values[i < count ? i : i - count] - mean;
    }
    return SW_OK;
}

/* What the bootstrap's variance of the mean would be after endless drawing. A block knows its distance from the mean of the
 * series only, hence the factor. */
static double block_variance(const struct circle *circle)
{
    const double n = (double)circle->count;
    const double length = (double)circle->length;
    double squares = 0;
    for (size_t i = 0; i < circle->count; i++) {
        const double sum = circle->sums[i + circle->length] - circle->sums[i];
        squares += sum * sum;
    }
    return squares / (n * n * length) * n / (n - length);
}

/* The variance of the mean if each value only remembers the one before. Blocks that are short against the memory of the
 * series miss part of it; so does the correlation of a short series, which is corrected (Kendall). */
static double remembered_variance(const double *values, size_t count, double mean)
{
    const double n = (double)count;
    const double plain = covariance(values, count, mean, 0);
    double correlation = plain > 0 ? covariance(values, count, mean, 1) / plain : 0;
    correlation += (1 + 3 * correlation) / n;
    correlation = correlation < CORRELATION_MOST ? correlation : CORRELATION_MOST;
    if (correlation <= 0) {
        return 0;
    }
    return plain / (n - 1) * (1 + correlation) / (1 - correlation);
}

static void find_variance(const struct circle *circle, const double *values,
                          struct sw__mean *out)
{
    const double n = (double)circle->count;
    const double plain = covariance(values, circle->count, out->mean, 0) / n;
    if (circle->count < INDEPENDENT_BELOW) {
        out->variance = plain * n / (n - 1);
        out->freedom = n - 1;
        return;
    }
    const double blocks = block_variance(circle);
    const double remembered = remembered_variance(values, circle->count, out->mean);
    out->variance = blocks > remembered ? blocks : remembered;
    /* As many independent values would give that variance. */
    const double independent = out->variance > 0 ? n * plain / out->variance : n;
    out->freedom = (independent < n ? independent : n) - 1;
    out->freedom = out->freedom > 2 ? out->freedom : 2;
}

/* --- drawing --- */

/* splitmix64: a fixed beginning, so that the same data give the same answer. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double draw_mean(const struct circle *circle, uint64_t *random)
{
    double sum = 0;
    for (size_t left = circle->count; left > 0;) {
        const size_t length = left < circle->length ? left : circle->length;
        const size_t begin =
            (size_t)(((unsigned __int128)next_random(random) * circle->count) >> 64);
        sum += circle->sums[begin + length] - circle->sums[begin];
        left -= length;
    }
    return sum / (double)circle->count;
}

static void draw(const struct circle *circle, double variance, double weight,
                 double draws[SW__DRAWS])
{
    double drawn[SW__DRAWS];
    double squares = 0;
    uint64_t random = 20260101;
    for (size_t i = 0; i < SW__DRAWS; i++) {
        drawn[i] = draw_mean(circle, &random);
        squares += drawn[i] * drawn[i];
    }
    /* Their shape is the data's, their width the best that is known of it. */
    const double width = squares > 0 ? sqrt(variance * SW__DRAWS / squares) : 0;
    for (size_t i = 0; i < SW__DRAWS; i++) {
        draws[i] += weight * width * drawn[i];
    }
}

int sw__mean_draws(const double *values, size_t count, double weight,
                   double draws[SW__DRAWS], struct sw__mean *out)
{
    *out = (struct sw__mean){NAN, NAN, NAN};
    if (count == 0) {
        return SW_OK;
    }
    out->mean = mean_of(values, count);
    if (count < 2) {
        return SW_OK;
    }
    struct circle circle;
    const int error = circle_make(&circle, values, count, out->mean);
    if (error) {
        return error;
    }
    find_variance(&circle, values, out);
    if (draws && out->variance > 0) {
        draw(&circle, out->variance, weight, draws);
    }
    sw__free(circle.sums);
    return SW_OK;
}

int sw__mean_of(const double *values, size_t count, struct sw__mean *out)
{
    return sw__mean_draws(values, count, 0, NULL, out);
}

void sw__mean_add(struct sw__mean *into, const struct sw__mean *from, double weight)
{
    into->mean += weight * from->mean;
    if (isnan(from->variance)) {
        return;
    }
    const double more = weight * weight * from->variance;
    const double sum = into->variance + more;
    /* Degrees of freedom of what has no variance yet are of no weight. */
    const double shares =
        (into->variance > 0 ? into->variance * into->variance / into->freedom : 0) +
        (more > 0 ? more * more / from->freedom : 0);
    into->freedom = shares > 0 ? sum * sum / shares : from->freedom;
    into->variance = sum;
}

/* --- median --- */

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* The value at a fraction of the sorted values, between the two nearest. */
static double value_at(const double *sorted, size_t count, double fraction)
{
    const double at = fraction * (double)count - 0.5;
    if (at <= 0) {
        return sorted[0];
    }
    const size_t below = (size_t)at;
    if (below + 1 >= count) {
        return sorted[count - 1];
    }
    return sorted[below] + (at - (double)below) * (sorted[below + 1] - sorted[below]);
}

int sw__median_of(const double *values, size_t count, struct sw__median *out)
{
    *out = (struct sw__median){NAN, NAN, NAN};
    if (count == 0) {
        return SW_OK;
    }
    double *sorted = sw__alloc_zero(2 * count, sizeof *sorted);
    if (!sorted) {
        return SW_ENOMEM;
    }
    double *below = sorted + count;
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    out->value = value_at(sorted, count, 0.5);
    /* The share of values below the median is a mean, whose spread is known; it is read off the sorted values. */
    struct sw__mean share;
    for (size_t i = 0; i < count; i++) {
        below[i] = values[i] < out->value ? 1 : values[i] > out->value ? 0 : 0.5;
    }
    const int error = sw__mean_of(below, count, &share);
    if (!error && !isnan(share.variance)) {
        const double half = sw__t_bound(share.freedom) * sqrt(share.variance);
        out->low = value_at(sorted, count, 0.5 - half);
        out->high = value_at(sorted, count, 0.5 + half);
    }
    sw__free(sorted);
    return error;
}

/* --- many tests --- */

static int by_p(const void *left, const void *right, void *arg)
{
    const double *p = arg;
    const double a = p[*(const size_t *)left];
    const double b = p[*(const size_t *)right];
    return (a > b) - (a < b);
}

void sw__holm(double *p, size_t count, size_t *order)
{
    size_t tests = 0;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(p[i])) {
            order[tests++] = i;
        }
    }
    if (tests > 1) {
        qsort_r(order, tests, sizeof *order, by_p, p);
    }
    double worst = 0;
    for (size_t i = 0; i < tests; i++) {
        const double corrected = p[order[i]] * (double)(tests - i);
        worst = corrected > worst ? corrected : worst;
        p[order[i]] = worst < 1 ? worst : 1;
    }
}
