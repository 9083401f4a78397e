/* Statistics of measurements; nothing here knows of Python. */
#ifndef STEPWATCH_EXT_BENCH_H
#define STEPWATCH_EXT_BENCH_H

#include <stddef.h>

/* NaN: not known. */
typedef struct bench_summary {
    double total, mean, std, min, max, p50, p90, p99;
} bench_summary;

/* Quantiles are nearest ranks; `std` is that of a sample. 0, or -1: there is no memory. */
int bench_summarize(const double *values, size_t count, bench_summary *out);

/* Each of `settings` was measured once in each of `rounds`, row after row. What a round adds to all settings alike is
 * taken out; what is left is noise. Returns how far two means over the rounds may lie apart by chance, with 95 %; NaN with
 * fewer than two settings or rounds. */
double bench_rounds_noise(const double *values, size_t settings, size_t rounds);

#endif
