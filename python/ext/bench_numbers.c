#include "bench.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Nearest rank of sorted values, count > 0. */
static double quantile(const double *sorted, size_t count, double q)
{
    const double rank = ceil(q * (double)count - 1e-9);
    if (rank < 1) {
        return sorted[0];
    }
    return rank >= (double)count ? sorted[count - 1] : sorted[(size_t)rank - 1];
}

int bench_summarize(const double *values, size_t count, bench_summary *out)
{
    *out = (bench_summary){0, NAN, NAN, NAN, NAN, NAN, NAN, NAN};
    if (count == 0) {
        return 0;
    }
    double *sorted = malloc(count * sizeof *sorted);
    if (!sorted) {
        return -1;
    }
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    for (size_t i = 0; i < count; i++) {
        out->total += values[i];
    }
    out->mean = out->total / (double)count;
    if (count > 1) {
        double squares = 0;
        for (size_t i = 0; i < count; i++) {
            squares += (values[i] - out->mean) * (values[i] - out->mean);
        }
        out->std = sqrt(squares / (double)(count - 1));
    }
    out->min = sorted[0];
    out->max = sorted[count - 1];
    out->p50 = quantile(sorted, count, 0.50);
    out->p90 = quantile(sorted, count, 0.90);
    out->p99 = quantile(sorted, count, 0.99);
    free(sorted);
    return 0;
}

/* Student's t, two-sided 95 %. */
static double t_of(size_t freedom)
{
    static const double table[] = {
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
        2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
        2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    };
    const size_t known = sizeof table / sizeof table[0];
    return freedom <= known ? table[freedom - 1] : 1.960 + 2.5 / (double)freedom;
}

double bench_rounds_noise(const double *values, size_t settings, size_t rounds)
{
    if (settings < 2 || rounds < 2) {
        return NAN;
    }
    double all = 0;
    for (size_t i = 0; i < settings * rounds; i++) {
        all += values[i];
    }
    all /= (double)(settings * rounds);
    /* What a setting and a round explain together is their means' sum; the rest is noise. */
    double squares = 0;
    for (size_t s = 0; s < settings; s++) {
        double of_setting = 0;
        for (size_t r = 0; r < rounds; r++) {
            of_setting += values[s * rounds + r];
        }
        of_setting /= (double)rounds;
        for (size_t r = 0; r < rounds; r++) {
            double of_round = 0;
            for (size_t other = 0; other < settings; other++) {
                of_round += values[other * rounds + r];
            }
            of_round /= (double)settings;
            const double rest = values[s * rounds + r] - of_setting - of_round + all;
            squares += rest * rest;
        }
    }
    const size_t freedom = (settings - 1) * (rounds - 1);
    const double variance = squares / (double)freedom;
    return t_of(freedom) * sqrt(2 * variance / (double)rounds);
}
