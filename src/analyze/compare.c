/* Runs against a baseline: which is faster, by how much, and whether the data can show it. */
#include "analyze/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/write.h>

#define Z95 1.959963984540054
#define UPDATES_APART 0.1 /* updates a step; less is the rest of an epoch */
#define DELAY_SHARE 0.02  /* of a step, from which on waiting for a CPU is worth a note */

/* --- the interval of the ratio --- */

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* What is known of the ratio on a logarithmic scale, where both sides weigh the same. */
static struct sw__mean log_ratio(const struct sw__mean *before,
                                 const struct sw__mean *after)
{
    struct sw__mean sum = {0, 0, INFINITY};
    const struct sw__mean sides[2] = {
        {log(before->mean), before->variance / (before->mean * before->mean),
         before->freedom},
        {log(after->mean), after->variance / (after->mean * after->mean),
         after->freedom}};
    sw__mean_add(&sum, &sides[0], 1);
    sw__mean_add(&sum, &sides[1], -1);
    return sum;
}

/* The distances of drawn ratios from the ratio: where 95 % of them are. A draw of one side meets one of the other that has
 * nothing to do with it, also when both sides are the same run. */
static int drawn_distances(const sw_compare_input *before, const sw_compare_input *after,
                           double *low, double *high)
{
    double *draws = sw__alloc_zero(SW__DRAWS, sizeof *draws);
    if (!draws) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < SW__DRAWS; i++) {
        const double old = fmax(1 + before->draws[i] / before->step.mean, 1e-9);
        const double new = fmax(
            1 + after->draws[(i + SW__DRAWS / 2) % SW__DRAWS] / after->step.mean, 1e-9);
        draws[i] = log(old / new);
    }
    qsort(draws, SW__DRAWS, sizeof *draws, by_value);
    *low = draws[SW__DRAWS / 40];
    *high = draws[SW__DRAWS - 1 - SW__DRAWS / 40];
    sw__free(draws);
    return SW_OK;
}

static int find_interval(sw_compared *compared, const sw_compare_input *before,
                         const sw_compare_input *after)
{
    const struct sw__mean ratio = log_ratio(&before->step, &after->step);
    const double bound = sw__t_bound(ratio.freedom);
    double low = -bound * sqrt(ratio.variance);
    double high = -low;
    if (before->single && after->single) {
        const int error = drawn_distances(before, after, &low, &high);
        if (error) {
            return error;
        }
        /* Draws do not know that their own width is an estimate. */
        low *= bound / Z95;
        high *= bound / Z95;
    }
    compared->low = compared->speedup * exp(low);
    compared->high = compared->speedup * exp(high);
    compared->tested = true;
    return SW_OK;
}

/* Medians, each with an interval of its own, as a ratio (the method of variance estimates recovery). */
static void compare_medians(sw_compared *compared, const struct sw__median *before,
                            const struct sw__median *after, const double scale[2])
{
    if (!(before->value > 0) || !(after->value > 0)) {
        return;
    }
    compared->median_speedup = before->value / after->value * scale[1] / scale[0];
    if (before->low > 0 && after->low > 0) {
        const double down =
            hypot(log(before->value / before->low), log(after->high / after->value));
        const double up =
            hypot(log(before->high / before->value), log(after->value / after->low));
        compared->median_low = compared->median_speedup * exp(-down);
        compared->median_high = compared->median_speedup * exp(up);
    }
}

/* --- the verdict --- */

static void judge(sw_compared *compared, double threshold)
{
    if (!(compared->speedup > 0) || isinf(compared->speedup)) {
        compared->verdict = SW_VERDICT_INCOMPARABLE;
        compared->why = "one of them took no time that could be measured";
        compared->speedup = NAN;
        return;
    }
    const double low = compared->tested ? compared->low : compared->speedup;
    const double high = compared->tested ? compared->high : compared->speedup;
    /* Without a test the threshold has to tell chance from change. */
    const double margin = compared->tested ? 0 : threshold / 100;
    compared->verdict = low > 1 + margin    ? SW_VERDICT_FASTER
                        : high < 1 - margin ? SW_VERDICT_SLOWER
                                            : SW_VERDICT_SAME;
    compared->regression = compared->verdict == SW_VERDICT_SLOWER &&
                           (1 - compared->speedup) * 100 > threshold;
}

static void refuse(sw_compared *compared, const char *why)
{
    compared->verdict = SW_VERDICT_INCOMPARABLE;
    compared->why = why;
}

/* One run against another, while it is being done. */
struct pair {
    sw_comparison *comparison;
    struct sw__result *result;
    const sw_compare_input *before, *after;
    double scale[2];
};

#define NOTE(pair, ...)                                                                  \
    sw__compare_note((pair)->comparison->arena, &(pair)->result->notes, __VA_ARGS__)

/* --- by time of a whole --- */

static int compare_durations(struct pair *pair)
{
    sw_compared *compared = &pair->result->compared;
    const sw_compare_input *lacking =
        pair->before->has_steps ? pair->after : pair->before;
    const bool functions = pair->before->functions;
    compared->basis = functions ? SW_BASIS_FUNCTIONS : SW_BASIS_DURATION;
    compared->speedup = pair->before->side.duration_s / pair->after->side.duration_s;
    if (pair->before->has_steps != pair->after->has_steps && !lacking->trace) {
        refuse(compared, "only one of them has steps");
        return NOTE(pair, "%s has no steps: it did something else, or ended too early.",
                    lacking->side.path);
    }
    judge(compared, pair->comparison->threshold);
    if (functions) {
        return NOTE(pair, "A profile has one time for each function and no spread: "
                          "nothing was tested, and differences of less than the "
                          "threshold count as none.");
    }
    return NOTE(pair,
                "%s has no steps: the durations of the whole runs were compared, without "
                "a test.",
                lacking->side.path);
}

/* --- by time of a step --- */

/* Steps with different numbers of samples are compared by samples. */
static int choose_basis(struct pair *pair)
{
    const sw_compare_input *const sides[2] = {pair->before, pair->after};
    const double was = pair->before->side.batch_size;
    const double is = pair->after->side.batch_size;
    if (isnan(was) || isnan(is) || was == is) {
        return SW_OK;
    }
    for (size_t i = 0; i < 2; i++) {
        const double samples = sides[i]->samples_per_step;
        pair->scale[i] = samples > 0 && !isinf(samples)  ? samples
                         : sides[i]->side.batch_size > 0 ? sides[i]->side.batch_size
                                                         : 1;
    }
    pair->result->compared.basis = SW_BASIS_SAMPLES;
    return NOTE(pair,
                "Batch size: %.0f before, %.0f now. Samples per second were compared, "
                "not steps.",
                was, is);
}

static int note_steps(struct pair *pair)
{
    const sw_compared *compared = &pair->result->compared;
    int error = SW_OK;
    if (compared->tested && !(pair->before->single && pair->after->single)) {
        error = NOTE(pair, "A report.json has no single steps: the interval comes from "
                           "mean, deviation and number, as if steps were independent of "
                           "each other, and may be too narrow.");
    } else if (!compared->tested) {
        error = NOTE(pair, "No test is possible: a report.json has no single steps, and "
                           "here not even a deviation.");
    }
    const double apart = pair->before->updates_per_step - pair->after->updates_per_step;
    if (!error && fabs(apart) > UPDATES_APART) {
        error = NOTE(pair, "The optimizer is called more often in one of them: a step "
                           "does not do the same in both.");
    }
    /* Said where the mean says nothing, or something else. */
    const bool faster = compared->median_low > 1;
    const bool slower = compared->median_high < 1;
    if (!error && ((faster && compared->verdict == SW_VERDICT_SLOWER) ||
                   (slower && compared->verdict == SW_VERDICT_FASTER))) {
        error = NOTE(pair,
                     "The median step is %s, the mean step %s: a few long steps "
                     "decide the mean.",
                     faster ? "faster" : "slower", faster ? "slower" : "faster");
    }
    return error;
}

/* Other programs on the machine make steps slow too, and are no change of this one. */
static int note_delay(struct pair *pair)
{
    const double was = pair->before->delay_ns;
    const double is = pair->after->delay_ns;
    const double step = fmin(pair->before->step.mean, pair->after->step.mean);
    char texts[2][24];
    if (!(fabs(is - was) > DELAY_SHARE * step)) {
        return SW_OK;
    }
    sw_text_duration(texts[0], was, true);
    sw_text_duration(texts[1], is, true);
    return NOTE(pair,
                "In a step the thread waits %s for a CPU before and %s now: part of the "
                "difference is other work on the machine.",
                texts[0], texts[1]);
}

/* The side with fewer steps, if they are too few. */
static const sw_compare_input *too_short(const struct pair *pair)
{
    const uint64_t was = pair->before->side.steps;
    const uint64_t is = pair->after->side.steps;
    const sw_compare_input *shorter = was <= is ? pair->before : pair->after;
    return shorter->side.steps < SW_COMPARE_STEPS_LEAST ? shorter : NULL;
}

static int compare_steps(struct pair *pair)
{
    sw_compared *compared = &pair->result->compared;
    const sw_compare_input *before = pair->before;
    const sw_compare_input *after = pair->after;
    int error = choose_basis(pair);
    if (error) {
        return error;
    }
    compared->speedup =
        before->step.mean / after->step.mean * pair->scale[1] / pair->scale[0];
    const sw_compare_input *shorter = too_short(pair);
    if (shorter) {
        refuse(compared, "these data can show nothing");
        if (!(before->median.value > 0) || !(after->median.value > 0)) {
            return SW_OK;
        }
        compared->median_speedup =
            before->median.value / after->median.value * pair->scale[1] / pair->scale[0];
        return NOTE(pair,
                    "%s has %llu step%s that count%s; with fewer than %d nothing can be "
                    "shown.",
                    shorter->side.path, (unsigned long long)shorter->side.steps,
                    shorter->side.steps == 1 ? "" : "s",
                    shorter->side.steps == 1 ? "s" : "", SW_COMPARE_STEPS_LEAST);
    }
    compare_medians(compared, &before->median, &after->median, pair->scale);
    if (compared->speedup > 0 && !isnan(before->step.variance) &&
        !isnan(after->step.variance)) {
        error = find_interval(compared, before, after);
    }
    judge(compared, pair->comparison->threshold);
    error = error ? error : note_steps(pair);
    return error ? error : note_delay(pair);
}

/* --- one against another --- */

static int copy_notes(struct pair *pair, const struct sw__compare_notes *from)
{
    int error = SW_OK;
    for (const struct sw__compare_note *note = from->first; note && !error;
         note = note->next) {
        error = NOTE(pair, "%s", note->text);
    }
    return error;
}

/* Two programs that have nothing in common cannot be compared; copies of one under another name can. */
static int check_programs(struct pair *pair)
{
    char was[256];
    char is[256];
    if (!sw__compare_program(pair->before->side.command, was, sizeof was) ||
        !sw__compare_program(pair->after->side.command, is, sizeof is) ||
        strcmp(was, is) == 0) {
        return SW_OK;
    }
    if (!sw__compare_shares_parts(pair->before, pair->after)) {
        refuse(&pair->result->compared, "different programs");
        return NOTE(pair,
                    "The programs are %s and %s, and they have no phase, module or "
                    "section in common.",
                    was, is);
    }
    return NOTE(pair, "Program: %s before, %s now.", was, is);
}

static int check_units(struct pair *pair)
{
    const char *was = pair->before->unit;
    const char *is = pair->after->unit;
    if (!pair->before->has_steps || !pair->after->has_steps || !was || !is ||
        strcmp(was, is) == 0) {
        return SW_OK;
    }
    refuse(&pair->result->compared, "different kinds of steps");
    return NOTE(pair, "A step is of kind %s before and %s now.", was, is);
}

/* Phases that only one side measured: there their time is in another phase. */
static int note_phases(struct pair *pair)
{
    const struct sw__measured_list *list = &pair->before->parts[SW_COMPARED_PHASE];
    char names[2][512] = {"", ""};
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__measured *part = &list->items[i];
        const struct sw__measured *twin =
            sw__measured_find(pair->after, SW_COMPARED_PHASE, part);
        if (!twin || part->known == twin->known) {
            continue;
        }
        char *text = names[part->known ? 1 : 0];
        const size_t room = sizeof names[0] - strlen(text) - 1;
        if (strlen(part->name) + 2 <= room) {
            strcat(text, text[0] ? ", " : "");
            strcat(text, part->name);
        }
    }
    const sw_compare_input *const sides[2] = {pair->before, pair->after};
    int error = SW_OK;
    for (size_t i = 0; i < 2 && !error; i++) {
        if (names[i][0]) {
            error =
                NOTE(pair, "Not measured in %s, where it is part of other phases: %s.",
                     sides[i]->side.path, names[i]);
        }
    }
    return error;
}

static int copy_side(sw_comparison *comparison, const sw_compared_side *from,
                     sw_compared_side *to)
{
    const char **const texts[] = {&to->path, &to->name, &to->command, &to->host,
                                  &to->python};
    *to = *from;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const char *text = *texts[i];
        *texts[i] = text ? sw__arena_copy(comparison->arena, text, strlen(text)) : NULL;
        if (text && !*texts[i]) {
            return SW_ENOMEM;
        }
    }
    return SW_OK;
}

static int compare_pair(struct pair *pair)
{
    sw_compared *compared = &pair->result->compared;
    *compared = (sw_compared){.speedup = NAN,
                              .low = NAN,
                              .high = NAN,
                              .median_speedup = NAN,
                              .median_low = NAN,
                              .median_high = NAN};
    const bool functions = pair->before->functions;
    int error = copy_side(pair->comparison, &pair->after->side, &compared->side);
    if (!error && !functions) {
        error = check_programs(pair);
        error = error ? error : check_units(pair);
    }
    if (!error && compared->verdict != SW_VERDICT_INCOMPARABLE) {
        error = pair->before->has_steps && pair->after->has_steps
                    ? compare_steps(pair)
                    : compare_durations(pair);
        error = error ? error
                      : sw__compare_parts(pair->comparison, pair->result, pair->before,
                                          pair->after, pair->scale);
        error = error || functions ? error : note_phases(pair);
    }
    error = error ? error
                  : sw__compare_facts(pair->comparison->arena, &pair->result->notes,
                                      pair->before, pair->after);
    error = error ? error : copy_notes(pair, &pair->before->notes);
    return error ? error : copy_notes(pair, &pair->after->notes);
}

/* --- all of them --- */

static int check_inputs(const sw_compare_input *const *inputs, size_t count,
                        double threshold, sw_error_info *info)
{
    if (count < 2) {
        return sw_error_set(info, SW_EINVAL, "Comparing needs two runs at least");
    }
    if (!(threshold >= 0) || threshold > 1e6) {
        return sw_error_set(info, SW_EINVAL, "The threshold is no percentage");
    }
    for (size_t i = 1; i < count; i++) {
        if (inputs[i]->functions != inputs[0]->functions) {
            const size_t profile = inputs[i]->functions ? i : 0;
            return sw_error_set(info, SW_EINVAL,
                                "%s is a function profile and %s is a run: runs are "
                                "compared with runs, and profiles with profiles",
                                inputs[profile]->side.path,
                                inputs[profile ? 0 : i]->side.path);
        }
    }
    return SW_OK;
}

int sw_compare_inputs(sw_comparison **out, const sw_compare_input *const *inputs,
                      size_t count, const sw_compare_options *options,
                      sw_error_info *info)
{
    const double threshold = options ? options->threshold_percent : SW_COMPARE_THRESHOLD;
    *out = NULL;
    int error = check_inputs(inputs, count, threshold, info);
    if (error) {
        return error;
    }
    sw_comparison *comparison = sw__alloc_zero(1, sizeof *comparison);
    error = comparison ? SW_OK : SW_ENOMEM;
    if (!error) {
        comparison->threshold = threshold;
        comparison->count = count - 1;
        comparison->arena = sw__arena_create(0);
        comparison->results = sw__alloc_zero(count, sizeof *comparison->results);
        error = comparison->arena && comparison->results
                    ? copy_side(comparison, &inputs[0]->side, &comparison->baseline)
                    : SW_ENOMEM;
    }
    for (size_t i = 1; i < count && !error; i++) {
        struct pair pair = {
            comparison, &comparison->results[i - 1], inputs[0], inputs[i], {1, 1}};
        error = compare_pair(&pair);
    }
    if (error) {
        sw_comparison_free(comparison);
        return sw_error_set(info, error, "%s", sw_error_text(error));
    }
    *out = comparison;
    return SW_OK;
}

int sw_compare_summaries(sw_comparison **out, const sw_summary *before,
                         const sw_summary *after, const sw_compare_options *options,
                         sw_error_info *info)
{
    sw_compare_input *inputs[2] = {NULL, NULL};
    *out = NULL;
    int error = sw_compare_input_of_summary(&inputs[0], before, NULL, info);
    error = error ? error : sw_compare_input_of_summary(&inputs[1], after, NULL, info);
    error = error ? error
                  : sw_compare_inputs(out, (const sw_compare_input *const *)inputs, 2,
                                      options, info);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
    return error;
}
