/* The facts that rules look at. */
#include "analyze/case.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/steps.h"

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

/* Those of the steps that were looked at in full. */
static int find_looked(struct sw__case *it)
{
    size_t looked = 0;
    for (size_t i = 0; i < it->count; i++) {
        looked += !it->step[i].brief;
    }
    it->looked = it->step;
    it->looked_count = it->count;
    if (looked == it->count) {
        return SW_OK;
    }
    it->looked = sw__alloc_zero(looked + 1, sizeof *it->looked);
    it->looked_count = 0;
    for (size_t i = 0; it->looked && i < it->count; i++) {
        if (!it->step[i].brief) {
            it->looked[it->looked_count++] = it->step[i];
        }
    }
    it->inside = sw__phases_inside(it->summary);
    return it->looked ? SW_OK : SW_ENOMEM;
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
    return error ? error : find_looked(it);
}

void sw__case_end(struct sw__case *it)
{
    if (it->looked != it->step) {
        sw__free(it->looked);
    }
    sw_summary_steps_free(it->step);
    it->step = it->looked = NULL;
    it->count = it->looked_count = 0;
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

struct steps {
    const sw_summary_step *step;
    size_t count;
};

/* The ratio of the means of two values of each step. Steps that follow each other are alike, so the spread is taken between
 * batches of neighbouring steps, of which there are few and long ones. */
static struct sw__estimate ratio(const struct steps *it,
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
    const struct steps all = {it->step, it->count};
    return ratio(&all, value, one, context);
}

/* A set of phases where not every step knows all of them: what every step knows of it, and of which sets of phases, known together
 * only, it has some. */
enum { TOGETHER = 2 };
struct phase_set {
    uint64_t known;
    uint64_t together[TOGETHER]; /* such a set; 0: none of it is wanted */
    double part[TOGETHER];       /* of it, those that are wanted */
};

static double in_set(const sw_summary_step *step, const void *context)
{
    const struct phase_set *set = context;
    double sum = in_phases(step, &set->known);
    for (size_t i = 0; i < TOGETHER; i++) {
        sum += set->together[i] ? set->part[i] * in_phases(step, &set->together[i]) : 0;
    }
    return sum;
}

/* Phases of which steps that are watched in brief know the sum alone. */
static void find_together(const struct sw__case *it, uint64_t together[TOGETHER])
{
    const uint64_t all = SW__PHASE_BIT(SW_PHASE_COUNT) - 1;
    together[0] = all & ~(uint64_t)SW_PHASES_ALWAYS & ~it->inside;
    together[1] = it->inside ? it->inside | SW__PHASE_BIT(SW_PHASE_DATA_WAIT) : 0;
}

struct wanted {
    uint64_t phases, of;
};

static double in_wanted(const sw_summary_step *step, const void *context)
{
    const struct wanted *wanted = context;
    return in_phases(step, &wanted->phases);
}

static double in_whole_set(const sw_summary_step *step, const void *context)
{
    const struct wanted *wanted = context;
    return in_phases(step, &wanted->of);
}

/* Phases by all steps and by those that were looked at in full, in time below which every step gives one value. */
static struct sw__estimate phases_of(const struct sw__case *it, uint64_t phases,
                                     double (*below)(const sw_summary_step *,
                                                     const void *))
{
    const struct steps all = {it->step, it->count};
    const struct steps looked = {it->looked, it->looked_count};
    uint64_t together[TOGETHER];
    struct phase_set set = {.known = phases};
    double off = 0; /* squared, by those parts */
    if (it->looked == it->step) {
        return ratio(&all, in_phases, below, &phases);
    }
    find_together(it, together);
    for (size_t i = 0; i < TOGETHER; i++) {
        const uint64_t some = phases & together[i];
        if (some == 0 || some == together[i]) {
            continue;
        }
        const struct wanted wanted = {some, together[i]};
        const struct sw__estimate part = ratio(&looked, in_wanted, in_whole_set, &wanted);
        const double time = ratio(&all, in_phases, below, &together[i]).mean;
        set.known &= ~together[i];
        set.together[i] = together[i];
        set.part[i] = part.mean;
        off += (part.high - part.mean) * time * (part.high - part.mean) * time;
    }
    struct sw__estimate estimate = ratio(&all, in_set, below, &set);
    const double error = estimate.high - estimate.mean;
    const double both = sqrt(error * error + off);
    estimate.low = estimate.mean - both;
    estimate.high = estimate.mean + both;
    return estimate;
}

struct sw__estimate sw__case_share(const struct sw__case *it, uint64_t phases)
{
    return phases_of(it, phases, whole);
}

struct sw__estimate sw__case_phases(const struct sw__case *it, uint64_t phases)
{
    return phases_of(it, phases, one);
}

const sw_summary_step *sw__case_steps(const struct sw__case *it, uint64_t phases,
                                      size_t *count)
{
    uint64_t together[TOGETHER];
    bool known = true;
    find_together(it, together);
    for (size_t i = 0; i < TOGETHER; i++) {
        const uint64_t some = phases & together[i];
        known = known && (some == 0 || some == together[i]);
    }
    *count = known ? it->count : it->looked_count;
    return known ? it->step : it->looked;
}
