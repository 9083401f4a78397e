/* Whether a series grows, and how fast. */
#ifndef SW_ANALYZE_GROWTH_H
#define SW_ANALYZE_GROWTH_H

#include <stdbool.h>
#include <stddef.h>

/* Fewer points than this show nothing. */
#define SW__GROWTH_LEAST 20

/* The floor of the series, its least value in each of some stretches of equal length, is what is looked at: what is taken and
 * given back within a stretch is no growth, and stretches depend on each other less than points do. */
struct sw__growth {
    double
        slope; /* a unit of x: the median of all slopes between two stretches (Theil and Sen) */
    double low, high; /* its interval of 95 % */
    double
        p; /* one-sided chance of it without a trend: of the order (Mann and Kendall) and of the slope, with what
                 neighbours have in common; the larger of both */
    double total;    /* what the floor grew by, from the first stretch to the last */
    double from, to; /* x of the first and the last point that counts */
    bool
        grows; /* with significance, and in every third of the series: a step up is no growth */
};

/* `y` at places `x`, which rise. The first fifth is left out: programs fill their caches at first. All NaN and false where
 * there are too few points. */
struct sw__growth sw__growth_of(const double *x, const double *y, size_t count);

#endif
