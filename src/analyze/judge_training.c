/* Rules about training steps, and about sections that are slow. */
#include "analyze/judging.h"

#include <math.h>

#define SLOW_SECTION_S 1.0
#define LAYERS_LEAST 3
#define BACKWARD_LEAST_S 5e-3
#define UPDATE_LEAST_S 0.01

/* RULE-21: much of a step is not told apart. */
static void parts_unknown(struct sw__bench *bench, const sw_subject *training)
{
    static const char *const parts[] = {"avg_forward_time", "avg_backward_time",
                                        "avg_optimizer_time"};
    double total = sw__number(training, "avg_total_time");
    double known = 0, share;
    bool missing = false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        double part = sw__number(training, parts[i]);
        missing = missing || isnan(part);
        known += isnan(part) ? 0 : part;
    }
    known += sw__number_or(training, "avg_loss_time", 0);
    share = total > 0 ? 1 - known / total : 0;
    if (missing && share > 0.3) {
        sw_judgement *it = sw__judged(bench, training, "RULE-21", "unknown_time",
                                      SW_SEVERITY_LOW, share / 2);
        sw__judged_by(it, "unexplained_share", share);
    }
}

/* RULE-22: a layer out of proportion to what it learns. */
static void heavy_layer(struct sw__bench *bench, const sw_subject *training)
{
    double longest, all, most, learned, size, share;
    size_t layers, sized;
    const char *layer =
        sw__largest_part(training, "gradient_time", &longest, &all, &layers);
    sw_judgement *it;
    sw__largest_part(training, "gradient_parameters", &most, &learned, &sized);
    if (!layer || layers < LAYERS_LEAST || all < BACKWARD_LEAST_S || !(learned > 0)) {
        return;
    }
    share = longest / all;
    size = sw__part_number(training, "gradient_parameters", layer, 0) / learned;
    if (!(share > 0.5) || !(share > 3 * size)) {
        return;
    }
    it = sw__judged(bench, training, "RULE-22", "slow_layer", SW_SEVERITY_MEDIUM,
                    share / 2);
    it->part = layer;
    sw__judged_by(it, "backward_share", share);
    sw__judged_by(it, "parameter_share", size);
}

/* RULE-23: the update takes too much of a step. */
static void heavy_update(struct sw__bench *bench, const sw_subject *training)
{
    double update = sw__number(training, "avg_optimizer_time");
    double total = sw__number(training, "avg_total_time");
    double share = total > 0 ? update / total : 0;
    if (share > 0.15 && update > UPDATE_LEAST_S) {
        sw_judgement *it =
            sw__judged(bench, training, "RULE-23", "slow_optimizer",
                       share > 0.4 ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM, share);
        sw__judged_by(it, "optimizer_share", share);
        sw__judged_tells(it, "update_ms", update * 1e3);
    }
}

/* RULE-24: larger batches would be faster, and do not fit. */
static void accumulate(struct sw__bench *bench, const sw_subject *sweep)
{
    double failed = sw__number(sweep, "does_not_fit");
    double best = sw__number(sweep, "best");
    if (best > 0 && failed <= 4 * best) {
        sw_judgement *it =
            sw__judged(bench, sweep, "RULE-24", "batch_size", SW_SEVERITY_LOW, 0.1);
        sw__judged_by_count(it, "batch_size", best);
        sw__judged_by_count(it, "does_not_fit", failed);
        sw__judged_tells_count(it, "every", fmax(2, floor(failed / best)));
    }
}

/* RULE-59: a section of more than a second a call, where nothing else explains it. */
static void slow_section(struct sw__bench *bench, const sw_subject *section)
{
    double seconds = sw__number(section, "mean_ns") / 1e9;
    if (seconds > SLOW_SECTION_S && !sw__is_on(section, "holds_steps")) {
        double share = sw__section_share(bench, section);
        sw_judgement *it =
            sw__judged(bench, section, "RULE-59", "slow_section",
                       share > 0.3 ? SW_SEVERITY_MEDIUM : SW_SEVERITY_LOW, share);
        sw__judged_by_count(it, "calls", sw__number(section, "calls"));
        sw__judged_by(it, "average_s", seconds);
    }
}

const struct sw__judge_rule sw__judge_training[] = {
    {SW_SUBJECT_TRAINING, parts_unknown}, {SW_SUBJECT_TRAINING, heavy_layer},
    {SW_SUBJECT_TRAINING, heavy_update},  {SW_SUBJECT_SWEEP, accumulate},
    {SW_SUBJECT_SECTION, slow_section},   {SW_SUBJECT_KINDS, NULL},
};
