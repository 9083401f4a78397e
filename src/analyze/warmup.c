/* Which of the first steps are warm-up: compilers, caches, allocators and workers that start take their time once.
 *
 * A step is slow if it is far from the median of the rest, measured by the spread of the rest. The rest are the steps
 * beyond the window in which warm-up is looked for: a tenth of the steps, at most 10. Steps with compilation in them may
 * be warm-up beyond the window too. Only leading steps are: a step that is slow among others belongs to the program. */
#include <stdlib.h>

#include "analyze/quantiles.h"
#include "analyze/steps.h"

#define WINDOW_MOST 10
#define STEPS_LEAST 5 /* shorter runs have no warm-up of their own accord */

/* What the rest take. */
struct usual {
    uint64_t bound; /* longer is slow */
    uint64_t p90;   /* where one step in ten is slow, a first one is nothing special */
};

static uint64_t duration(const struct sw__step *step)
{
    return step->end_ns - step->begin_ns;
}

static bool counts(const struct sw__step *step)
{
    return step->complete && !step->warmup;
}

static int by_value(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

/* The rest, by their durations. Where steps are watched in brief the first ones are not, and looking takes a little: they are compared
 * with others that were looked at. */
static size_t find_rest(const struct sw__step_list *list, size_t window, bool brief,
                        uint64_t *out)
{
    size_t count = 0;
    size_t passed = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__step *step = &list->steps[i];
        if (counts(step) && passed++ >= window && (brief || !step->brief)) {
            out[count++] = duration(step);
        }
    }
    return count;
}

static struct usual find_usual(const struct sw__step_list *list, size_t window,
                               uint64_t *scratch)
{
    size_t count = find_rest(list, window, false, scratch);
    if (count < STEPS_LEAST) {
        count = find_rest(list, window, true, scratch);
    }
    qsort(scratch, count, sizeof *scratch, by_value);
    const uint64_t median = scratch[sw__rank(count, 0.5)];
    struct usual usual = {.p90 = scratch[sw__rank(count, 0.9)]};
    for (size_t i = 0; i < count; i++) {
        scratch[i] = scratch[i] > median ? scratch[i] - median : median - scratch[i];
    }
    qsort(scratch, count, sizeof *scratch, by_value);
    /* The median of the deviations is 0.67 of a standard deviation where chance alone spreads the steps. Five of those, and
     * a fifth of the step at least: less is of no interest. */
    const double spread = 5 * 1.4826 * (double)scratch[sw__rank(count, 0.5)];
    const double least = (double)median / 5;
    const double bound = (double)median + (spread > least ? spread : least);
    usual.bound = bound < 1.8e19 ? (uint64_t)bound : UINT64_MAX;
    return usual;
}

size_t sw__find_warmup(struct sw__step_list *list, uint64_t *scratch)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        count += counts(&list->steps[i]);
    }
    if (count < STEPS_LEAST) {
        return 0;
    }
    size_t window = (count + 9) / 10;
    window = window < WINDOW_MOST ? window : WINDOW_MOST;
    const struct usual usual = find_usual(list, window, scratch);
    size_t end = 0; /* one past the last step of the warm-up, by position */
    bool leading = true;
    for (size_t i = 0, seen = 0; i < list->count && (leading || seen < window); i++) {
        const struct sw__step *step = &list->steps[i];
        if (!counts(step)) {
            continue;
        }
        const bool slow = duration(step) > usual.bound;
        const bool warms =
            slow && (step->compiles || (seen < window && duration(step) > usual.p90));
        leading = leading && warms;
        /* A second compilation often follows a step or two after the first. */
        if (leading || (slow && step->compiles)) {
            end = i + 1;
        }
        seen++;
    }
    for (size_t i = 0; i < end; i++) {
        list->steps[i].warmup |= list->steps[i].complete;
    }
    return end;
}
