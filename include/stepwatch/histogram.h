/* Log-linear histogram of unsigned 64-bit values: 64 buckets an octave, so a value is
 * known to better than 1 % (half a bucket is 1/128 of it at most), and values below 64
 * exactly. Histograms are merged by adding buckets. The bucket arithmetic here is also
 * that of the trace format (docs/FORMAT.md, "Histogram pages"). */
#ifndef STEPWATCH_HISTOGRAM_H
#define STEPWATCH_HISTOGRAM_H

#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Buckets an octave. Octave 0 holds 0…63, octave k > 0 holds 2^(k+5) … 2^(k+6)-1. */
#define SW_HISTOGRAM_SUB 64
#define SW_HISTOGRAM_OCTAVES 59

/* Octave of a value and its bucket within that octave. */
static inline unsigned sw_histogram_octave(uint64_t value)
{
    return (63u ^ (unsigned)__builtin_clzll(value | 63)) - 5u;
}
static inline unsigned sw_histogram_bucket_in(unsigned octave, uint64_t value)
{
    return (unsigned)(value >> (octave - (octave > 0))) & (SW_HISTOGRAM_SUB - 1);
}
static inline unsigned sw_histogram_bucket(uint64_t value)
{
    return sw_histogram_bucket_in(sw_histogram_octave(value), value);
}
/* Lowest value that falls into a bucket, and how many values wide the bucket is. */
SW_API uint64_t sw_histogram_low(unsigned octave, unsigned bucket);
SW_API uint64_t sw_histogram_width(unsigned octave);

typedef struct sw_histogram sw_histogram;

SW_API sw_histogram *sw_histogram_create(void); /* NULL when out of memory */
SW_API void sw_histogram_free(sw_histogram *histogram);
SW_API int sw_histogram_add(sw_histogram *histogram, uint64_t value, uint64_t count);
/* Adds one octave page of 64 buckets, as the trace stores them. */
SW_API int sw_histogram_add_page(sw_histogram *histogram, unsigned octave,
                                 const uint64_t buckets[SW_HISTOGRAM_SUB]);
SW_API int sw_histogram_merge(sw_histogram *into, const sw_histogram *from);
SW_API uint64_t sw_histogram_count(const sw_histogram *histogram);
/* The value below or at which the fraction `q` (0…1) of the counts lies, nearest rank,
 * middle of its bucket; 0 for an empty histogram. */
SW_API uint64_t sw_histogram_quantile(const sw_histogram *histogram, double q);
/* Mean and standard deviation from bucket middles (exact sums come from elsewhere). */
SW_API double sw_histogram_mean(const sw_histogram *histogram);
SW_API double sw_histogram_std(const sw_histogram *histogram);
/* Calls `visit` for every non-empty bucket, ascending. */
SW_API void sw_histogram_each(const sw_histogram *histogram,
                              void (*visit)(void *arg, uint64_t low, uint64_t width,
                                            uint64_t count),
                              void *arg);

#ifdef __cplusplus
}
#endif
#endif
