/* Quantiles over histograms that count in different units. */
#ifndef SW_ANALYZE_QUANTILES_H
#define SW_ANALYZE_QUANTILES_H

#include <stddef.h>
#include <stdint.h>
#include <stepwatch/histogram.h>

struct sw__pair {
    double value;
    uint64_t count;
};

/* Buckets of several histograms as pairs of a value in ns and a count. All zero is empty. */
struct sw__quantiles {
    struct sw__pair *pairs;
    size_t used, room;
    uint64_t total;
    double scale; /* while adding */
    int error;
};

/* Adds the buckets of a histogram, whose unit is `scale` ns. 0 or SW_ENOMEM. */
int sw__quantiles_add(struct sw__quantiles *set, const sw_histogram *histogram,
                      double scale);
/* Puts the pairs in order; to be called once, before the first question. */
void sw__quantiles_sort(struct sw__quantiles *set);
/* Nearest rank; SW_UNKNOWN (UINT64_MAX) for an empty set. The result is held within low…high. */
uint64_t sw__quantiles_at(const struct sw__quantiles *set, double q, uint64_t low,
                          uint64_t high);
double sw__quantiles_std(const struct sw__quantiles *set, double mean);
void sw__quantiles_reset(struct sw__quantiles *set); /* empties it and keeps the memory */
void sw__quantiles_free(struct sw__quantiles *set);

/* Index of the nearest rank of `q` among `count` sorted values, count > 0. */
size_t sw__rank(size_t count, double q);

#endif
