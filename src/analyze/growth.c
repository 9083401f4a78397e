/* Trends of series, by ranks: what a few outliers do not change. */
#include "analyze/growth.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/bootstrap.h"

enum {
    STRETCHES_MOST = 24,
    STRETCHES_LEAST = 9,
    PAIRS = STRETCHES_MOST * (STRETCHES_MOST - 1) / 2
};

#define SIGNIFICANT 0.01
#define NORMAL_95 1.96
/* What each third must show of the slope of all, and the last one. */
#define THIRD_LEAST 0.25
#define LAST_LEAST 0.5

struct floors {
    double x[STRETCHES_MOST], y[STRETCHES_MOST];
    size_t count;
};

static void find_floors(const double *x, const double *y, size_t count,
                        struct floors *out)
{
    size_t stretches = count / 2;
    stretches = stretches < STRETCHES_MOST ? stretches : STRETCHES_MOST;
    out->count = stretches;
    for (size_t i = 0; i < stretches; i++) {
        size_t least = i * count / stretches;
        for (size_t k = least; k < (i + 1) * count / stretches; k++) {
            least = y[k] < y[least] ? k : least;
        }
        out->x[i] = x[least];
        out->y[i] = y[least];
    }
}

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* All slopes between two of the floors from `first` to before `end`, in order. */
static size_t find_slopes(const struct floors *floors, size_t first, size_t end,
                          double slopes[PAIRS])
{
    size_t count = 0;
    for (size_t i = first; i < end; i++) {
        for (size_t k = i + 1; k < end; k++) {
            const double run = floors->x[k] - floors->x[i];
            if (run > 0) {
                slopes[count++] = (floors->y[k] - floors->y[i]) / run;
            }
        }
    }
    qsort(slopes, count, sizeof *slopes, by_value);
    return count;
}

static double median(const double *sorted, size_t count)
{
    if (count == 0) {
        return NAN;
    }
    return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

static double slope_within(const struct floors *floors, size_t first, size_t end)
{
    double slopes[PAIRS];
    return median(slopes, find_slopes(floors, first, end, slopes));
}

/* The chance of a slope as steep as this where neighbours are alike: the line's error, from what is left beside it, is
 * wider by how alike that is (as of the mean of an autoregressive series), and there are so many fewer values. */
static double chance_of_slope(const struct floors *floors, double slope)
{
    const double n = (double)floors->count;
    double rest[STRETCHES_MOST];
    double mean = 0;
    double middle = 0;
    for (size_t i = 0; i < floors->count; i++) {
        rest[i] = floors->y[i] - slope * floors->x[i];
        mean += rest[i] / n;
        middle += floors->x[i] / n;
    }
    double across = 0;
    double squares = 0;
    double spread = 0;
    for (size_t i = 0; i < floors->count; i++) {
        squares += (rest[i] - mean) * (rest[i] - mean);
        across += i ? (rest[i] - mean) * (rest[i - 1] - mean) : 0;
        spread += (floors->x[i] - middle) * (floors->x[i] - middle);
    }
    if (!(squares > 0)) {
        return slope == 0 ? 1 : 0;
    }
    double alike = across / squares;
    alike = alike > 0 ? (alike < 0.8 ? alike : 0.8) : 0;
    const double wider = (1 + alike) / (1 - alike);
    const double error = sqrt(squares / (n - 2) / spread * wider);
    const double freedom = n / wider - 2;
    const double both = sw__t_probability(slope / error, freedom > 1 ? freedom : 1);
    return slope > 0 ? both / 2 : 1 - both / 2;
}

/* The same where each value begins at the one before it, as of a walk at random: how alike neighbours are then says nothing, what
 * comes on top from one to the next does. A line through the origin, of these rises by how far apart they are. It holds
 * as well, and is stricter, where neighbours are less alike. */
static double chance_of_rises(const struct floors *floors)
{
    double across = 0;
    double spread = 0;
    double squares = 0;
    for (size_t i = 1; i < floors->count; i++) {
        const double run = floors->x[i] - floors->x[i - 1];
        across += run * (floors->y[i] - floors->y[i - 1]);
        spread += run * run;
    }
    if (!(spread > 0)) {
        return 1;
    }
    const double slope = across / spread;
    for (size_t i = 1; i < floors->count; i++) {
        const double run = floors->x[i] - floors->x[i - 1];
        const double rest = floors->y[i] - floors->y[i - 1] - slope * run;
        squares += rest * rest;
    }
    const double freedom = (double)floors->count - 2;
    if (!(squares > 0)) {
        return slope > 0 ? 0 : 1;
    }
    const double both =
        sw__t_probability(slope / sqrt(squares / freedom / spread), freedom);
    return slope > 0 ? both / 2 : 1 - both / 2;
}

/* Mann and Kendall's sum, and its variance without a trend. */
static double kendall(const struct floors *floors, double *variance)
{
    const double n = (double)floors->count;
    double sum = 0;
    double ties = 0;
    for (size_t i = 0; i < floors->count; i++) {
        double same = 1;
        for (size_t k = i + 1; k < floors->count; k++) {
            sum += (floors->y[k] > floors->y[i]) - (floors->y[k] < floors->y[i]);
            same += floors->y[k] == floors->y[i];
        }
        /* A group of ties is met from each of its members; this sums up to what Kendall takes away for it. */
        ties += 6 * (same * same - 1);
    }
    *variance = (n * (n - 1) * (2 * n + 5) - ties) / 18;
    *variance = *variance > 1 ? *variance : 1;
    return sum;
}

struct sw__growth sw__growth_of(const double *x, const double *y, size_t count)
{
    struct sw__growth out = {NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};
    const size_t skip = count / 5;
    if (count < SW__GROWTH_LEAST || !(x[count - 1] > x[skip])) {
        return out;
    }
    struct floors floors;
    double slopes[PAIRS];
    find_floors(x + skip, y + skip, count - skip, &floors);
    const size_t pairs = find_slopes(&floors, 0, floors.count, slopes);
    if (floors.count < STRETCHES_LEAST || pairs == 0) {
        return out;
    }
    out.slope = median(slopes, pairs);
    double variance;
    const double sum = kendall(&floors, &variance);
    const double error = sqrt(variance);
    const double order = 0.5 * erfc((sum > 1    ? sum - 1
                                     : sum < -1 ? sum + 1
                                                : 0) /
                                    error / sqrt(2));
    const double line =
        fmin(chance_of_slope(&floors, out.slope), chance_of_rises(&floors));
    out.p = order > line ? order : line;
    const double off = NORMAL_95 * error;
    const double low = ((double)pairs - off) / 2;
    const double high = ((double)pairs + off) / 2;
    out.low = slopes[low > 0 ? (size_t)low : 0];
    out.high = slopes[high < (double)pairs - 1 ? (size_t)high : pairs - 1];
    out.from = x[skip];
    out.to = x[count - 1];
    const size_t last = floors.count - 1;
    out.total = floors.y[last] - floors.y[0];
    out.grows = out.p < SIGNIFICANT && out.slope > 0 && out.low > 0;
    for (size_t i = 0; i < 3; i++) {
        const double third =
            slope_within(&floors, i * floors.count / 3, (i + 1) * floors.count / 3);
        out.grows &= third >= (i == 2 ? LAST_LEAST : THIRD_LEAST) * out.slope;
    }
    return out;
}
