/* Rules about the GPU. */
#include "analyze/judging.h"

#include <math.h>

#define GIB 1073741824.0

/* RULE-16: there is a GPU, and nobody looks. */
static void watch_gpu(struct sw__bench *bench, const sw_subject *run)
{
    if (sw__is_on(run, "gpu") && sw__is_off(run, "tracks_gpu")) {
        sw__judged(bench, run, "RULE-16", "gpu_not_tracked", SW_SEVERITY_LOW, 0);
    }
}

/* RULE-17: the GPU's memory has room, or has none left. */
static void batch_size(struct sw__bench *bench, const sw_subject *run)
{
    double memory = sw__number(run, "gpu_memory_share");
    double busy = sw__number(run, "gpu_utilization");
    sw_judgement *it;
    if (memory > 0.9) {
        it = sw__judged(bench, run, "RULE-17", "gpu_memory", SW_SEVERITY_HIGH, memory);
        sw__judged_by(it, "gpu_memory_share", memory);
    } else if (memory < 0.6 && busy < 80 && bench->training->count) {
        it = sw__judged(bench, run, "RULE-17", "gpu_underutilization", SW_SEVERITY_LOW,
                        (80 - busy) / 100);
        it->text = "RULE-17 room";
        sw__judged_by(it, "gpu_memory_share", memory);
        sw__judged_by(it, "gpu_utilization", busy);
    }
}

/* Which part of a step forward and backward are; NaN unless they compute in float32 on a GPU that is faster with less. */
static double full_precision(const sw_subject *training)
{
    double total = sw__number(training, "avg_total_time");
    double parts = sw__number_or(training, "avg_forward_time", 0) +
                   sw__number_or(training, "avg_backward_time", 0);
    if (!sw__is_on(training, "on_gpu") || !(sw__number(training, "capability") >= 7) ||
        !sw__is_off(training, "amp") ||
        !(sw__number(training, "parameters:float32") > 0)) {
        return NAN;
    }
    return total > 0 ? parts / total : 0;
}

/* RULE-18: float32 on a GPU that is faster with less. */
static void mixed_precision(struct sw__bench *bench, const sw_subject *training)
{
    double share = full_precision(training);
    if (!isnan(share)) {
        sw_judgement *it = sw__judged(bench, training, "RULE-18", "mixed_precision",
                                      SW_SEVERITY_MEDIUM, share / 3);
        sw__judged_by(it, "computing_share", share);
    }
}

/* RULE-25: the same for the training loop. */
static void automatic_precision(struct sw__bench *bench, const sw_subject *training)
{
    double share = full_precision(training);
    if (!isnan(share)) {
        sw_judgement *it = sw__judged(bench, training, "RULE-25", "mixed_precision",
                                      SW_SEVERITY_MEDIUM, share / 3);
        sw__judged_tells(it, "computing_share", share);
    }
}

/* RULE-19: copies between host and device. */
static void transfers(struct sw__bench *bench, const sw_subject *training)
{
    double share = bench->transfer_share;
    if (share > 0.1) {
        sw_judgement *it =
            sw__judged(bench, training, "RULE-19", "data_transfer",
                       share > 0.3 ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM, share);
        sw__judged_by(it, "transfer_share", share);
    }
}

/* RULE-20: torch holds much more of the GPU than it uses. */
static void held_memory(struct sw__bench *bench, const sw_subject *run)
{
    double reserved = sw__number(run, "gpu_reserved_bytes");
    double used = sw__number(run, "gpu_allocated_bytes");
    if (used > 0 && reserved > 1.5 * used && reserved - used > GIB) {
        sw_judgement *it = sw__judged(bench, run, "RULE-20", "gpu_memory",
                                      SW_SEVERITY_LOW, 1 - used / reserved);
        sw__judged_by_count(it, "reserved_bytes", reserved);
        sw__judged_by_count(it, "allocated_bytes", used);
        sw__judged_tells(it, "held_times", reserved / used);
    }
}

static bool some_loader_is_slow(const struct sw__bench *bench)
{
    for (size_t i = 0; i < bench->count; i++) {
        if (bench->subjects[i].kind == SW_SUBJECT_LOADER &&
            sw__is_slow(bench, &bench->subjects[i])) {
            return true;
        }
    }
    return false;
}

/* RULE-28: the GPU idles, and the loader is not why. */
static void underused(struct sw__bench *bench, const sw_subject *run)
{
    double busy = sw__number(run, "gpu_utilization");
    if (busy < 50 && bench->training->count && !some_loader_is_slow(bench)) {
        sw_judgement *it = sw__judged(bench, run, "RULE-28", "gpu_underutilization",
                                      busy < 30 ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM,
                                      (100 - busy) / 100);
        sw__judged_by(it, "gpu_utilization", busy);
    }
}

/* RULE-29: the CPU is at its limit while the GPU waits. */
static void busy_cpu(struct sw__bench *bench, const sw_subject *run)
{
    double cpu = sw__number(run, "cpu_share");
    double busy = sw__number(run, "gpu_utilization");
    if (cpu >= 0.9 && busy < 70) {
        sw_judgement *it = sw__judged(bench, run, "RULE-29", "cpu_bottleneck",
                                      SW_SEVERITY_HIGH, (100 - busy) / 100);
        sw__judged_by(it, "cpu_share", cpu);
        sw__judged_by(it, "gpu_utilization", busy);
    }
}

const struct sw__judge_rule sw__judge_gpu[] = {
    {SW_SUBJECT_RUN, watch_gpu},
    {SW_SUBJECT_RUN, batch_size},
    {SW_SUBJECT_TRAINING, mixed_precision},
    {SW_SUBJECT_TRAINING, automatic_precision},
    {SW_SUBJECT_TRAINING, transfers},
    {SW_SUBJECT_RUN, held_memory},
    {SW_SUBJECT_RUN, underused},
    {SW_SUBJECT_RUN, busy_cpu},
    {SW_SUBJECT_KINDS, NULL},
};
