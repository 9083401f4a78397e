/* The facts that rules look at. */
#include "analyze/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"

static bool part_is(const sw_summary_part *part, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(part->part, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static uint64_t parts_ns(const sw_summary *summary, const char *const *names,
                         size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sw_summary_part_count(summary); i++) {
        const sw_summary_part *part = sw_summary_get_part(summary, i);
        if (part_is(part, names, count)) {
            sum = sw__add(sum, part->ns);
        }
    }
    return sum;
}

static void case_times(struct sw__case *it)
{
    static const char *const base[] = {"steps", "validation", "checkpoint",
                                       "between_steps", "between_epochs"};
    static const char *const warmup[] = {"warmup"};
    /* What the model is asked before the first step happens once, and is often made for all steps. */
    const uint64_t before = it->summary->validated_before_ns;
    it->base_ns =
        sw__sub(parts_ns(it->summary, base, sizeof base / sizeof base[0]), before);
    it->validation_ns = sw__sub(parts_ns(it->summary, &base[1], 1), before);
    it->checkpoint_ns = parts_ns(it->summary, &base[2], 1);
    it->warmup_ns = parts_ns(it->summary, warmup, 1);
}

static double case_cores(const sw_summary *summary)
{
    const char *text =
        sw_trace_fact(sw__summary_trace(summary, summary->step_trace), "cpus_usable");
    char *end = NULL;
    const double cores = text ? strtod(text, &end) : NAN;
    return text && end != text && cores > 0 ? cores : NAN;
}

int sw__case_begin(struct sw__case *it, const sw_summary *summary)
{
    *it = (struct sw__case){.summary = summary,
                            .steps = sw_summary_get_steps(summary),
                            .mean_ns = NAN,
                            .cores = NAN,
                            .training = sw_summary_training(summary),
                            .loader = sw_summary_main_loader(summary),
                            .wait_share = sw_summary_wait_share(summary)};
    if (!it->steps) {
        return SW_OK;
    }
    it->cores = case_cores(summary);
    case_times(it);
    int error = sw_summary_step_series(summary, &it->step, &it->count, NULL);
    size_t kept = 0;
    double sum = 0;
    for (size_t i = 0; i < it->count; i++) {
        if (it->step[i].complete && !it->step[i].warmup) {
            it->step[kept] = it->step[i];
            sum += (double)(it->step[kept].end_ns - it->step[kept].begin_ns);
            kept++;
        }
    }
    it->count = kept >= SW__CASE_LEAST ? kept : 0;
    it->mean_ns = it->count ? sum / (double)it->count : NAN;
    return error;
}

void sw__case_end(struct sw__case *it)
{
    sw_summary_steps_free(it->step);
    it->step = NULL;
    it->count = 0;
}

/* --- estimates -------------------------------------------------------------------- */

enum { BATCHES_MOST = 30 };

/* The 97.5 % point of Student's t for so many degrees of freedom, to 1 %. */
static double student(size_t freedom)
{
    static const double exact[] = {12.706, 4.303, 3.182, 2.776, 2.571,
                                   2.447,  2.365, 2.306, 2.262, 2.228};
    if (freedom == 0) {
        return INFINITY;
    }
    if (freedom <= sizeof exact / sizeof exact[0]) {
        return exact[freedom - 1];
    }
    const double n = (double)freedom;
    return 1.96 + 2.4 / n + 3.0 / (n * n);
}

/* The ratio of the means of two values of each step. Steps that follow each other are alike, so the spread is taken between
 * batches of neighbouring steps, of which there are few and long ones. */
static struct sw__estimate ratio(const struct sw__case *it,
                                 double (*above)(const sw_summary_step *, const void *),
                                 double (*below)(const sw_summary_step *, const void *),
                                 const void *context)
{
    struct sw__estimate estimate = {
        .mean = NAN, .low = NAN, .high = NAN, .count = it->count};
    if (it->count == 0) {
        return estimate;
    }
    size_t batches = (size_t)sqrt((double)it->count);
    batches = batches < BATCHES_MOST ? batches : BATCHES_MOST;
    double top[BATCHES_MOST] = {0}, bottom[BATCHES_MOST] = {0}, tops = 0, bottoms = 0;
    for (size_t i = 0; i < it->count; i++) {
        const size_t batch = i * batches / it->count;
        const double a = above(&it->step[i], context);
        const double b = below(&it->step[i], context);
        top[batch] += a;
        bottom[batch] += b;
        tops += a;
        bottoms += b;
    }
    if (!(bottoms > 0)) {
        return estimate;
    }
    estimate.mean = tops / bottoms;
    double squares = 0;
    for (size_t i = 0; i < batches; i++) {
        const double off = top[i] - estimate.mean * bottom[i];
        squares += off * off;
    }
    const double n = (double)batches;
    const double error = sqrt(squares * n / (n - 1)) / bottoms * student(batches - 1);
    estimate.low = estimate.mean - error;
    estimate.high = estimate.mean + error;
    return estimate;
}

static double one(const sw_summary_step *step, const void *context)
{
    (void)step;
    (void)context;
    return 1;
}

static double whole(const sw_summary_step *step, const void *context)
{
    (void)context;
    return (double)(step->end_ns - step->begin_ns);
}

static double in_phases(const sw_summary_step *step, const void *context)
{
    const uint64_t phases = *(const uint64_t *)context;
    double sum = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        sum += phases & SW__PHASE_BIT(p) ? (double)step->phase_ns[p] : 0;
    }
    return sum;
}

struct sw__estimate sw__case_mean(const struct sw__case *it,
                                  double (*value)(const sw_summary_step *step,
                                                  const void *context),
                                  const void *context)
{
    return ratio(it, value, one, context);
}

struct sw__estimate sw__case_share(const struct sw__case *it, uint64_t phases)
{
    return ratio(it, in_phases, whole, &phases);
}

struct sw__estimate sw__case_phases(const struct sw__case *it, uint64_t phases)
{
    return ratio(it, in_phases, one, &phases);
}
