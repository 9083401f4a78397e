/* What it costs to look at a step in full: a step that was takes longer than those before and after it that were watched in brief.
 *
 * Steps are looked at some in a row, at places that the program knows nothing of. Each such burst gives one difference, of medians,
 * so that a step that was slow by chance does not count; of the differences the outer fifths are left out (Yuen). */
#include "analyze/looking.h"

#include <math.h>
#include <stdlib.h>

#include "analyze/bootstrap.h"

enum {
    LOOKED_LEAST = 30,
    BRIEF_LEAST = 30,
    BURSTS_LEAST = 6,
    BURST_MOST = 16, /* steps of a burst that count */
    BESIDE = 8       /* steps before it, and after it, that it is compared with */
};
#define TRIMMED 0.2 /* of the differences, at either end */

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Without what comes now and then and takes long. */
static double usual_ns(const sw_summary_step *step)
{
    const uint64_t aside = sw__add(
        sw__add(step->phase_ns[SW_PHASE_VALIDATION], step->phase_ns[SW_PHASE_CHECKPOINT]),
        sw__add(step->phase_ns[SW_PHASE_COMPILE], step->phase_ns[SW_PHASE_GC]));
    return (double)sw__sub(step->end_ns - step->begin_ns, aside);
}

static bool counts(const sw_summary_step *step, bool brief)
{
    return step->complete && !step->warmup && step->brief == brief;
}

/* Steps from `from` on, at most `most`, that were watched in brief; -1: backwards. */
static size_t beside(const sw_summary_step *steps, size_t count, size_t from, int way,
                     double *out)
{
    size_t used = 0;
    for (size_t i = from; i < count && used < BESIDE && counts(&steps[i], true);
         i += (size_t)way) {
        out[used++] = usual_ns(&steps[i]);
    }
    return used;
}

/* The burst that begins at a step: what its steps take longer than those beside it. NaN: it cannot be told. The first step of a pass
 * over a loader is left out: it is always looked at, and longer because workers begin and nothing was fetched ahead. */
static double difference(const sw_summary_step *steps, size_t count, size_t begin,
                         size_t end, struct sw__looking *sum)
{
    double looked[BURST_MOST], brief[2 * BESIDE];
    size_t used = 0;
    for (size_t i = begin; i < end && used < BURST_MOST; i++) {
        if (!steps[i].epoch_first) {
            looked[used++] = usual_ns(&steps[i]);
        }
    }
    const size_t before = begin > 0 ? beside(steps, count, begin - 1, -1, brief) : 0;
    /* The first one after it finds other things in the caches than they usually do. */
    const size_t after =
        end + 1 < count ? beside(steps, count, end + 1, 1, brief + before) : 0;
    if (used == 0 || before == 0 || after == 0) {
        return NAN;
    }
    sum->looked += used;
    sum->brief += before + after;
    return median(looked, used) - median(brief, before + after);
}

/* Their mean without the outer ones, with its interval. */
static void finish(double *values, size_t count, struct sw__looking *out)
{
    const size_t cut = (size_t)(TRIMMED * (double)count);
    const double kept = (double)(count - 2 * cut);
    double sum = 0, all = 0, squares = 0;
    qsort(values, count, sizeof *values, by_value);
    for (size_t i = 0; i < count; i++) {
        /* Those that are left out count as the last that is not. */
        const size_t place = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
        sum += place == i ? values[i] : 0;
        all += values[place];
    }
    for (size_t i = 0; i < count; i++) {
        const size_t place = i < cut ? cut : i >= count - cut ? count - cut - 1 : i;
        const double off = values[place] - all / (double)count;
        squares += off * off;
    }
    const double error = sqrt(squares / (kept * (kept - 1)));
    const double half = sw__t_bound(kept - 1) * error;
    out->ns = fmax(sum / kept, 0);
    out->low = fmax(sum / kept - half, 0);
    out->high = fmax(sum / kept + half, 0);
}

int sw__looking_cost(const sw_summary *summary, struct sw__looking *out)
{
    sw_summary_step *steps = NULL;
    size_t count = 0, used = 0;
    *out = (struct sw__looking){.ns = NAN, .low = NAN, .high = NAN};
    int error = sw_summary_step_series(summary, &steps, &count, NULL);
    double *values = error ? NULL : sw__alloc_zero(count + 1, sizeof *values);
    error = error || !values ? SW_ENOMEM : SW_OK;
    for (size_t i = 0; !error && i < count; i++) {
        size_t end = i;
        while (end < count && counts(&steps[end], false)) {
            end++;
        }
        if (end > i) {
            values[used] = difference(steps, count, i, end, out);
            used += isnan(values[used]) ? 0 : 1;
            i = end;
        }
    }
    if (!error && used >= BURSTS_LEAST && out->looked >= LOOKED_LEAST &&
        out->brief >= BRIEF_LEAST) {
        finish(values, used, out);
    }
    sw__free(values);
    sw_summary_steps_free(steps);
    return error;
}
