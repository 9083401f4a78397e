/* The log-linear histogram: one page of 64 counters an octave, taken when the octave is
 * first used; durations of one section rarely touch more than four. */
#include <math.h>

#include <stepwatch/histogram.h>

#include "base/memory.h"

struct sw_histogram {
    uint64_t *pages[SW_HISTOGRAM_OCTAVES];
    uint64_t count; /* sum of all buckets; both stop at UINT64_MAX instead of wrapping */
};

/* Counts may come from a damaged file; a sum that is too large must not become a small
 * one. */
static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

uint64_t sw_histogram_low(unsigned octave, unsigned bucket)
{
    bucket &= SW_HISTOGRAM_SUB - 1;
    if (octave == 0) {
        return bucket;
    }
    octave = octave < SW_HISTOGRAM_OCTAVES ? octave : SW_HISTOGRAM_OCTAVES - 1;
    return (uint64_t)(SW_HISTOGRAM_SUB + bucket) << (octave - 1);
}

uint64_t sw_histogram_width(unsigned octave)
{
    octave = octave < SW_HISTOGRAM_OCTAVES ? octave : SW_HISTOGRAM_OCTAVES - 1;
    return octave ? (uint64_t)1 << (octave - 1) : 1;
}

sw_histogram *sw_histogram_create(void)
{
    return sw__alloc_zero(1, sizeof(sw_histogram));
}

void sw_histogram_free(sw_histogram *histogram)
{
    if (!histogram) {
        return;
    }
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        sw__free(histogram->pages[octave]);
    }
    sw__free(histogram);
}

static uint64_t *page_of(sw_histogram *histogram, unsigned octave)
{
    if (!histogram->pages[octave]) {
        histogram->pages[octave] = sw__alloc_zero(SW_HISTOGRAM_SUB, sizeof(uint64_t));
    }
    return histogram->pages[octave];
}

static void add_bucket(sw_histogram *histogram, uint64_t *bucket, uint64_t count)
{
    *bucket = add_saturating(*bucket, count);
    histogram->count = add_saturating(histogram->count, count);
}

int sw_histogram_add(sw_histogram *histogram, uint64_t value, uint64_t count)
{
    if (count == 0) {
        return SW_OK;
    }
    uint64_t *page = page_of(histogram, sw_histogram_octave(value));
    if (!page) {
        return SW_ENOMEM;
    }
    add_bucket(histogram, &page[sw_histogram_bucket(value)], count);
    return SW_OK;
}

int sw_histogram_add_page(sw_histogram *histogram, unsigned octave,
                          const uint64_t buckets[SW_HISTOGRAM_SUB])
{
    if (octave >= SW_HISTOGRAM_OCTAVES) {
        return SW_EINVAL;
    }
    uint64_t *page = page_of(histogram, octave);
    if (!page) {
        return SW_ENOMEM;
    }
    for (unsigned i = 0; i < SW_HISTOGRAM_SUB; i++) {
        add_bucket(histogram, &page[i], buckets[i]);
    }
    return SW_OK;
}

int sw_histogram_merge(sw_histogram *into, const sw_histogram *from)
{
    /* All memory first, so that a merge happens wholly or not at all. */
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        if (from->pages[octave] && !page_of(into, octave)) {
            return SW_ENOMEM;
        }
    }
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        if (from->pages[octave]) {
            (void)sw_histogram_add_page(into, octave, from->pages[octave]);
        }
    }
    return SW_OK;
}

uint64_t sw_histogram_count(const sw_histogram *histogram)
{
    return histogram->count;
}

/* The nearest rank, from 1. A fraction like 0.07 is a little more than it says as a
 * double, and 0.07 · 100 must not become rank 8; hence the small step down before
 * rounding up. */
static uint64_t rank_of(uint64_t count, double q)
{
    if (!(q > 0)) {
        return 1;
    }
    if (q >= 1) {
        return count;
    }
    long double exact = (long double)q * (long double)count;
    long double rank = ceill(exact - exact * 4e-16L);
    if (rank < 1) {
        return 1;
    }
    return rank >= (long double)count ? count : (uint64_t)rank;
}

uint64_t sw_histogram_quantile(const sw_histogram *histogram, double q)
{
    if (histogram->count == 0) {
        return 0;
    }
    uint64_t rank = rank_of(histogram->count, q);
    uint64_t seen = 0;
    uint64_t middle = 0;
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        const uint64_t *page = histogram->pages[octave];
        for (unsigned i = 0; page && i < SW_HISTOGRAM_SUB; i++) {
            if (page[i] == 0) {
                continue;
            }
            middle = sw_histogram_low(octave, i) + sw_histogram_width(octave) / 2;
            seen = add_saturating(seen, page[i]);
            if (seen >= rank) {
                return middle;
            }
        }
    }
    return middle;
}

void sw_histogram_each(const sw_histogram *histogram,
                       void (*visit)(void *arg, uint64_t low, uint64_t width,
                                     uint64_t count),
                       void *arg)
{
    for (unsigned octave = 0; octave < SW_HISTOGRAM_OCTAVES; octave++) {
        const uint64_t *page = histogram->pages[octave];
        for (unsigned i = 0; page && i < SW_HISTOGRAM_SUB; i++) {
            if (page[i]) {
                visit(arg, sw_histogram_low(octave, i), sw_histogram_width(octave),
                      page[i]);
            }
        }
    }
}

/* Weighted sums over bucket middles; the second pass knows the mean, which keeps the
 * variance of a narrow distribution far from zero exact. */
struct moments {
    double weight;
    double sum;
    double mean;
    double squares;
};

static double middle_of(uint64_t low, uint64_t width)
{
    return (double)low + (double)(width - 1) / 2;
}

static void visit_sum(void *arg, uint64_t low, uint64_t width, uint64_t count)
{
    struct moments *moments = arg;
    moments->weight += (double)count;
    moments->sum += (double)count * middle_of(low, width);
}

static void visit_squares(void *arg, uint64_t low, uint64_t width, uint64_t count)
{
    struct moments *moments = arg;
    double distance = middle_of(low, width) - moments->mean;
    moments->squares += (double)count * distance * distance;
}

double sw_histogram_mean(const sw_histogram *histogram)
{
    struct moments moments = {0};
    sw_histogram_each(histogram, visit_sum, &moments);
    return moments.weight > 0 ? moments.sum / moments.weight : 0;
}

double sw_histogram_std(const sw_histogram *histogram)
{
    struct moments moments = {0};
    sw_histogram_each(histogram, visit_sum, &moments);
    if (!(moments.weight > 0)) {
        return 0;
    }
    moments.mean = moments.sum / moments.weight;
    sw_histogram_each(histogram, visit_squares, &moments);
    return sqrt(moments.squares / moments.weight);
}
