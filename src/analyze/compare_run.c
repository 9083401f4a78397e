/* A run as it is compared: how long its steps take, and how well that is known.
 *
 * How often a run validates, saves and begins an epoch is decided by the program; how long it takes, by chance. Drawing
 * all steps from one pot would make the first an accident too, and the intervals of most trainings useless. So the time of
 * a step is a sum: of ordinary steps, of those that begin an epoch, of validations, of checkpoints, and of what else lies
 * between steps and between epochs, where loaders start their workers; each is drawn from its own. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/write.h>

#include "analyze/compare.h"
#include "analyze/steps.h"

#define FIXED_SHARE 0.05 /* of the time, above which a single event is worth a note */
#define LONG_STEP 5.0    /* times the median */
#define LONG_SHARE 0.1   /* of the time, above which long steps are worth a note */

/* Steps that count, and room for some of their values. */
struct counted {
    const sw_summary_step **steps;
    const sw_summary_step *end; /* behind the last of the run */
    double *values;
    size_t count;
    bool epochs;     /* first steps of epochs are a kind of their own */
    unsigned inside; /* phases that steps that were watched in brief have in data_wait */
};

static int find_counted(struct counted *counted, const sw_summary *summary,
                        const sw_summary_step *steps, size_t count)
{
    size_t firsts = 0;
    counted->inside = sw__phases_inside(summary);
    counted->steps = sw__alloc_zero(count + 1, sizeof *counted->steps);
    counted->values = sw__alloc_zero(count + 1, sizeof *counted->values);
    if (!counted->steps || !counted->values) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        if (steps[i].complete && !steps[i].warmup) {
            counted->steps[counted->count++] = &steps[i];
            firsts += steps[i].epoch_first;
        }
    }
    counted->end = steps + count;
    counted->epochs = firsts > 1 && firsts < counted->count;
    return SW_OK;
}

static void counted_free(struct counted *counted)
{
    sw__free(counted->steps);
    sw__free(counted->values);
}

/* --- values of a step --- */

static double aside_of(const sw_summary_step *step, unsigned phase)
{
    const uint64_t after = phase == SW_PHASE_VALIDATION ? step->validation_after_ns
                                                        : step->checkpoint_after_ns;
    return (double)sw__add(step->phase_ns[phase], after);
}

/* Without validation and checkpoints. */
static double ordinary_of(const sw_summary_step *step)
{
    const double inside = (double)step->phase_ns[SW_PHASE_VALIDATION] +
                          (double)step->phase_ns[SW_PHASE_CHECKPOINT];
    return (double)(step->end_ns - step->begin_ns) - inside;
}

/* From its end to the next one, without validation and checkpoints; NaN where nobody knows. */
static double between_of(const struct counted *counted, const sw_summary_step *step)
{
    const sw_summary_step *next = step + 1;
    if (next == counted->end || next->number != step->number + 1) {
        return NAN;
    }
    const uint64_t gap = sw__sub(next->begin_ns, step->end_ns);
    return (double)sw__sub(gap,
                           sw__add(step->validation_after_ns, step->checkpoint_after_ns));
}

#define ORDINARY SW_PHASE_COUNT /* in the place of a phase: all of them */

static double value_of(const sw_summary_step *step, unsigned phase)
{
    return phase == ORDINARY ? ordinary_of(step) : (double)step->phase_ns[phase];
}

/* Whether steps that were watched in brief know it, too. */
static bool knows(const struct counted *counted, unsigned phase)
{
    return phase == ORDINARY || (SW_PHASES_ALWAYS >> phase & 1 &&
                                 !(counted->inside && phase == SW_PHASE_DATA_WAIT));
}

/* Phases of which steps that were watched in brief know the sum alone, the one that they do not know among them (bits). */
static unsigned together_with(const struct counted *counted, unsigned phase)
{
    const unsigned all = (1u << SW_PHASE_COUNT) - 1;
    const unsigned waiting = counted->inside | 1u << SW_PHASE_DATA_WAIT;
    return waiting >> phase & 1 ? waiting : all & ~SW_PHASES_ALWAYS & ~counted->inside;
}

static double sum_of(const sw_summary_step *step, unsigned phases)
{
    double sum = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        sum += phases >> p & 1 ? (double)step->phase_ns[p] : 0;
    }
    return sum;
}

/* --- estimates --- */

/* Adds the part of the steps' time that the first `used` values are to the sum; they stand for `of` steps. */
static int add_values(const struct counted *counted, size_t used, size_t of,
                      double *draws, struct sw__mean *sum)
{
    struct sw__mean part;
    const double weight = (double)of / (double)counted->count;
    if (used == 0) {
        return SW_OK;
    }
    const int error = sw__mean_draws(counted->values, used, weight, draws, &part);
    sw__mean_add(sum, &part, weight);
    return error;
}

static int add_steps(const struct counted *counted, unsigned phase, double *draws,
                     struct sw__mean *sum)
{
    const bool known = knows(counted, phase);
    const unsigned together = known ? 0 : together_with(counted, phase);
    int error = SW_OK;
    for (int first = 0; first <= counted->epochs && !error; first++) {
        size_t used = 0, of = 0;
        double all = 0, looked = 0; /* ns of the phases that are known together */
        for (size_t i = 0; i < counted->count; i++) {
            const sw_summary_step *step = counted->steps[i];
            if (counted->epochs && step->epoch_first != (first != 0)) {
                continue;
            }
            const double rest = sum_of(step, together);
            of++;
            all += rest;
            if (!step->brief || known) {
                looked += rest;
                counted->values[used++] = value_of(step, phase);
            }
        }
        /* Steps that were looked at take longer than the others: as they are the phases would sum to more than the step. */
        const double scale =
            used < of && looked > 0 ? all / (double)of / (looked / (double)used) : 1;
        for (size_t i = 0; i < used && used < of; i++) {
            counted->values[i] *= scale;
        }
        error = add_values(counted, used, of, draws, sum);
    }
    return error;
}

static int add_asides(const struct counted *counted, unsigned phase, double *draws,
                      struct sw__mean *sum, size_t *events)
{
    size_t used = 0;
    for (size_t i = 0; i < counted->count; i++) {
        const double value = aside_of(counted->steps[i], phase);
        if (value > 0) {
            counted->values[used++] = value;
        }
    }
    *events = used;
    return add_values(counted, used, used, draws, sum);
}

static int add_between(const struct counted *counted, double *draws, struct sw__mean *sum)
{
    int error = SW_OK;
    for (int first = 0; first < 2 && !error; first++) {
        size_t used = 0;
        for (size_t i = 0; i < counted->count; i++) {
            const sw_summary_step *step = counted->steps[i];
            const double value = between_of(counted, step);
            if (!isnan(value) && step[1].epoch_first == (first != 0)) {
                counted->values[used++] = value;
            }
        }
        error = add_values(counted, used, used, draws, sum);
    }
    return error;
}

static bool is_aside(unsigned phase)
{
    return phase == SW_PHASE_VALIDATION || phase == SW_PHASE_CHECKPOINT;
}

/* What lies between steps is no phase, but has its place among the parts of the time. */
static int measure_between(sw_compare_input *input, const struct counted *counted)
{
    struct sw__measured *part =
        sw__measured_put(input, SW_COMPARED_PHASE, SW__BETWEEN_STEPS, NULL, 0);
    if (!part) {
        return SW_ENOMEM;
    }
    part->calls = SW_UNKNOWN;
    part->known = true;
    part->step = (struct sw__mean){0, 0, INFINITY};
    const int error = add_between(counted, NULL, &part->step);
    if (counted->count < SW_COMPARE_STEPS_LEAST) {
        part->step.variance = NAN;
    }
    return error;
}

static int measure_phases(sw_compare_input *input, const struct counted *counted,
                          const sw_summary_steps *steps)
{
    int error = measure_between(input, counted);
    for (unsigned p = 0; p < SW_PHASE_COUNT && !error; p++) {
        struct sw__measured *part =
            sw__measured_put(input, SW_COMPARED_PHASE, sw_phase_name(p), NULL, 0);
        size_t events;
        if (!part) {
            return SW_ENOMEM;
        }
        part->calls = SW_UNKNOWN;
        part->known = steps->phase[p].measured;
        part->step = (struct sw__mean){0, 0, INFINITY};
        error = is_aside(p) ? add_asides(counted, p, NULL, &part->step, &events)
                            : add_steps(counted, p, NULL, &part->step);
        part->known |= part->step.mean > 0; /* validation between steps */
        if (counted->count < SW_COMPARE_STEPS_LEAST) {
            part->step.variance = NAN;
        }
    }
    return error;
}

static int measure_steps(sw_compare_input *input, const struct counted *counted)
{
    static const enum sw_phase asides[] = {SW_PHASE_VALIDATION, SW_PHASE_CHECKPOINT};
    struct sw__mean *sum = &input->step;
    *sum = (struct sw__mean){0, 0, INFINITY};
    int error = add_steps(counted, ORDINARY, input->draws, sum);
    error = error ? error : add_between(counted, input->draws, sum);
    for (size_t i = 0; i < 2 && !error; i++) {
        size_t events;
        const double before = sum->mean;
        error = add_asides(counted, asides[i], input->draws, sum, &events);
        if (!error && events == 1 && sum->mean - before > FIXED_SHARE * sum->mean) {
            error = sw__compare_note(
                input->arena, &input->notes,
                "%s has one %s among its steps: how much its time varies is not known, "
                "and the interval takes it as fixed.",
                input->side.path, sw_phase_name(asides[i]));
        }
    }
    return error;
}

/* A few very long steps make the mean uncertain; the reader should know that it is they. */
static int note_long_steps(sw_compare_input *input, const struct counted *counted)
{
    double sum = 0;
    double longer = 0;
    size_t count = 0;
    for (size_t i = 0; i < counted->count; i++) {
        const double ns = counted->values[i];
        sum += ns;
        if (ns > LONG_STEP * input->median.value) {
            longer += ns;
            count++;
        }
    }
    if (count == 0 || longer < LONG_SHARE * sum) {
        return SW_OK;
    }
    char number[32];
    sw_text_count(number, count);
    return sw__compare_note(input->arena, &input->notes,
                            "In %s %s step%s longer than five times the median take%s "
                            "%.0f %% of the time of all steps.",
                            input->side.path, number, count == 1 ? "" : "s",
                            count == 1 ? "s" : "", 100 * longer / sum);
}

static int measure_median(sw_compare_input *input, const struct counted *counted)
{
    for (size_t i = 0; i < counted->count; i++) {
        counted->values[i] =
            (double)(counted->steps[i]->end_ns - counted->steps[i]->begin_ns);
    }
    int error = sw__median_of(counted->values, counted->count, &input->median);
    if (!error && counted->count >= SW_COMPARE_STEPS_LEAST) {
        error = note_long_steps(input, counted);
    }
    return error;
}

/* How long a step waits for a CPU. Usage is read every few steps and stands for those since. */
static double find_delay(const struct counted *counted)
{
    double sum = 0;
    double steps = 0;
    for (size_t i = 0; i < counted->count; i++) {
        const sw_summary_step *step = counted->steps[i];
        if (step->usage_steps > 0 && step->run_delay_ns != SW_UNKNOWN) {
            sum += (double)step->run_delay_ns;
            steps += step->usage_steps;
        }
    }
    return steps > 0 ? sum / steps : NAN;
}

/* --- modules and sections without single steps --- */

static int measure_modules(sw_compare_input *input, const sw_summary *summary)
{
    uint64_t steps;
    uint64_t steps_ns;
    size_t count;
    const sw_training_module *modules =
        sw_training_modules(sw_summary_training(summary), &count);
    sw_summary_looked_steps(summary, &steps, &steps_ns);
    for (size_t i = 0; i < count; i++) {
        struct sw__measured *part =
            sw__measured_put(input, SW_COMPARED_MODULE, modules[i].name, NULL, 0);
        if (!part) {
            return SW_ENOMEM;
        }
        part->calls = modules[i].calls;
        part->step.mean = steps ? (double)modules[i].self_ns / (double)steps : NAN;
        part->whole = (struct sw__mean){part->step.mean, NAN, NAN};
    }
    return SW_OK;
}

static int measure_lane(sw_compare_input *input, const sw_trace *trace, size_t index,
                        sw_histogram **scratch)
{
    const sw_trace_lane *lane = sw_trace_get_lane(trace, index);
    for (size_t n = 1; n < lane->node_count; n++) {
        const sw_trace_node *node = &lane->nodes[n];
        const sw_trace_name *name = sw_trace_get_name(trace, node->section);
        struct sw__measured like = {.name = name ? name->text : NULL};
        if (node->kind != 0 || !like.name || node->calls == 0 ||
            sw__measured_find(input, SW_COMPARED_MODULE, &like)) {
            continue;
        }
        struct sw__measured *part =
            sw__measured_put(input, SW_COMPARED_SECTION, like.name, NULL, 0);
        sw_histogram_free(*scratch);
        *scratch = sw_histogram_create();
        if (!part || !*scratch) {
            return SW_ENOMEM;
        }
        const bool known = sw_trace_node_histogram(trace, index, n, *scratch) == SW_OK &&
                           sw_histogram_count(*scratch) == node->calls;
        sw__calls_add(part, node->calls, (double)node->inclusive_ns / (double)node->calls,
                      known ? sw_histogram_std(*scratch) * sw_trace_ns_per_tick(trace)
                            : NAN);
    }
    return SW_OK;
}

static int measure_sections(sw_compare_input *input, const sw_summary *summary)
{
    sw_histogram *scratch = NULL;
    int error = SW_OK;
    for (size_t t = 0; t < summary->traces && !error; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        for (size_t l = 0; l < sw_trace_lane_count(trace) && !error; l++) {
            error = measure_lane(input, trace, l, &scratch);
        }
    }
    sw_histogram_free(scratch);
    sw__calls_finish(&input->parts[SW_COMPARED_SECTION]);
    return error;
}

/* --- all of it --- */

static int measure_run(sw_compare_input *input, const sw_summary *summary,
                       const sw_summary_steps *totals, sw_error_info *info)
{
    static const char *const units[] = {"manual", "batch", "update", "loop"};
    sw_summary_step *steps;
    size_t count;
    struct counted counted = {0};
    int error = sw_summary_step_series(summary, &steps, &count, info);
    if (error) {
        return error;
    }
    error = find_counted(&counted, summary, steps, count);
    if (!error && counted.count > 0) {
        input->has_steps = true;
        input->single = true;
        error = measure_steps(input, &counted);
        error = error ? error : measure_phases(input, &counted, totals);
        error = error ? error : measure_median(input, &counted);
        input->delay_ns = find_delay(&counted);
        error = error ? error : sw__compare_spans(input, summary, steps, count);
    }
    if (!error && totals->thinned) {
        error = sw__compare_note(input->arena, &input->notes,
                                 "Records of %llu of %llu steps of %s were kept; they "
                                 "stand for the others.",
                                 (unsigned long long)totals->records,
                                 (unsigned long long)totals->count, input->side.path);
    }
    input->unit = totals->unit >= 0 && totals->unit < 4 ? units[totals->unit] : NULL;
    input->side.steps = counted.count;
    input->side.step_ns = input->step.mean;
    input->side.median_ns = input->median.value;
    input->side.samples_per_s = totals->samples_per_s;
    input->samples_per_step = totals->samples_per_s / totals->steps_per_s;
    input->updates_per_step = totals->updates && totals->count
                                  ? (double)totals->updates / (double)totals->count
                                  : NAN;
    counted_free(&counted);
    sw_summary_steps_free(steps);
    return error;
}

int sw_compare_input_of_summary(sw_compare_input **out, const sw_summary *summary,
                                const char *path, sw_error_info *info)
{
    const sw_summary_steps *totals = sw_summary_get_steps(summary);
    sw_compare_input *input =
        sw__compare_input_new(path ? path : sw_run_path(summary->source));
    *out = NULL;
    int error = input ? sw__compare_run_facts(input, summary) : SW_ENOMEM;
    error = error ? error : measure_modules(input, summary);
    error = error ? error : measure_sections(input, summary);
    if (!error && totals) {
        error = measure_run(input, summary, totals, info);
    }
    if (error) {
        sw_compare_input_free(input);
        return sw_error_set(info, error, "The run could not be compared: %s.",
                            sw_error_text(error));
    }
    *out = input;
    return SW_OK;
}
