/* Buckets keep their own borders until the end: putting the middle of one bucket into a bucket of
 * another histogram would double the error. */
#include <math.h>
#include <stdlib.h>

#include "analyze/quantiles.h"
#include "base/memory.h"

static void add_bucket(void *arg, uint64_t low, uint64_t width, uint64_t count)
{
    struct sw__quantiles *set = arg;
    if (set->error) {
        return;
    }
    if (set->used == set->room) {
        size_t room = set->room ? set->room * 2 : 256;
        struct sw__pair *pairs = sw__realloc(set->pairs, room, sizeof *pairs);
        if (!pairs) {
            set->error = SW_ENOMEM;
            return;
        }
        set->pairs = pairs;
        set->room = room;
    }
    double middle = ((double)low + (double)(width - 1) / 2) * set->scale;
    set->pairs[set->used++] = (struct sw__pair){middle, count};
    if (__builtin_add_overflow(set->total, count, &set->total)) {
        set->total = UINT64_MAX;
    }
}

int sw__quantiles_add(struct sw__quantiles *set, const sw_histogram *histogram,
                      double scale)
{
    set->scale = scale;
    sw_histogram_each(histogram, add_bucket, set);
    return set->error;
}

static int by_value(const void *left, const void *right)
{
    const struct sw__pair *a = left;
    const struct sw__pair *b = right;
    return (a->value > b->value) - (a->value < b->value);
}

void sw__quantiles_sort(struct sw__quantiles *set)
{
    if (set->used > 1) {
        qsort(set->pairs, set->used, sizeof *set->pairs, by_value);
    }
}

size_t sw__rank(size_t count, double q)
{
    /* 0.07 · 100 is a little more than 7 in doubles and must not become rank 8. */
    double exact = q * (double)count;
    double rank = ceil(exact - exact * 1e-12);
    if (!(rank >= 1)) {
        return 0;
    }
    return rank >= (double)count ? count - 1 : (size_t)rank - 1;
}

uint64_t sw__quantiles_at(const struct sw__quantiles *set, double q, uint64_t low,
                          uint64_t high)
{
    if (set->total == 0 || set->used == 0) {
        return UINT64_MAX;
    }
    uint64_t left = sw__rank(set->total, q);
    size_t i = 0;
    while (i + 1 < set->used && left >= set->pairs[i].count) {
        left -= set->pairs[i].count;
        i++;
    }
    double value = set->pairs[i].value;
    if (value <= (double)low) {
        return low;
    }
    return value >= (double)high ? high : (uint64_t)(value + 0.5);
}

double sw__quantiles_std(const struct sw__quantiles *set, double mean)
{
    if (set->total < 2) {
        return NAN;
    }
    double sum = 0;
    for (size_t i = 0; i < set->used; i++) {
        double distance = set->pairs[i].value - mean;
        sum += distance * distance * (double)set->pairs[i].count;
    }
    return sqrt(sum / (double)(set->total - 1));
}

void sw__quantiles_reset(struct sw__quantiles *set)
{
    set->used = 0;
    set->total = 0;
    set->error = 0;
}

void sw__quantiles_free(struct sw__quantiles *set)
{
    sw__free(set->pairs);
    *set = (struct sw__quantiles){0};
}
