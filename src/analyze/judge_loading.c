/* Rules about loaders, and about the size of batches. */
#include "analyze/judging.h"

#include <math.h>

#define VERY_SLOW_BATCH_S 0.5
#define LOW_RATE 100.0
#define VERY_LOW_RATE 50.0
#define START_NOTICED_S 0.02

/* Where no training was measured, the loader is all there is. */
static double cost(const struct sw__bench *bench, const sw_subject *loader)
{
    double share = sw__wait_share(bench, loader);
    return isnan(share) ? 1 : share;
}

static double cores(const struct sw__bench *bench)
{
    return floor(sw__number_or(bench->run, "cores", 1));
}

/* RULE-27: batches come too slowly. */
static void slow_loading(struct sw__bench *bench, const sw_subject *loader)
{
    double wait = sw__number(loader, "avg_batch_time");
    double rate = sw__number(loader, "throughput");
    double share = sw__wait_share(bench, loader);
    sw_judgement *it;
    if (!sw__is_slow(bench, loader)) {
        return;
    }
    it = sw__judged(bench, loader, "RULE-27", "slow_batch_loading",
                    wait > VERY_SLOW_BATCH_S || rate < VERY_LOW_RATE || share > 0.5
                        ? SW_SEVERITY_HIGH
                        : SW_SEVERITY_MEDIUM,
                    cost(bench, loader));
    sw__judged_by(it, "avg_batch_time", wait);
    sw__judged_by(it, "throughput", rate);
    sw__judged_by(it, "wait_share", share);
    sw__judged_tells(it, "low_rate", rate < LOW_RATE ? rate : NAN);
}

/* RULE-06: more workers, as many as batches need and never more than there are cores. */
static void workers(struct sw__bench *bench, const sw_subject *loader)
{
    double now = sw__number(loader, "workers");
    double most = fmax(1, cores(bench));
    double making = sw__number_or(loader, "avg_making_time", 0);
    double needed, wanted;
    sw_judgement *it;
    if (!sw__is_slow(bench, loader) || isnan(now)) {
        return;
    }
    if (!(making > 0)) {
        making = sw__number(loader, "avg_batch_time") * fmax(now, 1);
    }
    needed = bench->step_s > 0 ? ceil(making / bench->step_s) : most;
    wanted = fmax(1, fmin(most, needed));
    if (!(wanted > now)) {
        return;
    }
    it = sw__judged(bench, loader, "RULE-06", "slow_batch_loading", SW_SEVERITY_MEDIUM,
                    cost(bench, loader));
    sw__judged_by_count(it, "num_workers", now);
    sw__judged_by_count(it, "suggested_num_workers", wanted);
    sw__judged_tells_count(it, "cores", most);
}

/* RULE-13, RULE-38: one transform is most of making a batch, and is done anew every epoch. */
static void heavy_transform(struct sw__bench *bench, const sw_subject *loader)
{
    double making = sw__number(loader, "avg_making_time");
    double samples = sw__number_or(loader, "avg_batch_size", 0);
    double longest, all, share;
    size_t count;
    const char *name = sw__largest_part(loader, "transform", &longest, &all, &count);
    sw_judgement *it;
    if (!name || !(making > 0) || !sw__is_slow(bench, loader)) {
        return;
    }
    share = fmin(longest * (samples > 0 ? samples : 1) / making, 1);
    if (!(share > 0.5)) {
        return;
    }
    it = sw__judged(bench, loader, "RULE-13", "slow_batch_loading", SW_SEVERITY_MEDIUM,
                    cost(bench, loader) * share);
    it->text = "RULE-13 transform";
    it->part = name;
    sw__judged_by(it, "transform_share", share);
}

/* RULE-07: pinned memory for copies to the GPU. */
static void pin_memory(struct sw__bench *bench, const sw_subject *loader)
{
    double copying = bench->transfer_share;
    if (sw__is_on(bench->run, "gpu") && sw__is_off(loader, "pin_memory") &&
        copying > 0.03) {
        sw_judgement *it =
            sw__judged(bench, loader, "RULE-07", "data_transfer",
                       copying > 0.1 ? SW_SEVERITY_MEDIUM : SW_SEVERITY_LOW, copying);
        sw__judged_by(it, "transfer_share", copying);
    }
}

/* RULE-08: workers that stay between epochs. A start that nobody would notice is none. */
static void persistent(struct sw__bench *bench, const sw_subject *loader)
{
    double first = sw__number(loader, "first_batch_time");
    double usual = sw__number(loader, "p50_batch_time");
    if (sw__is_on(loader, "workers") && !sw__is_on(loader, "persistent_workers") &&
        usual > 0 && first > 3 * usual && first > START_NOTICED_S &&
        sw__is_slow(bench, loader)) {
        sw_judgement *it = sw__judged(bench, loader, "RULE-08", "slow_batch_loading",
                                      SW_SEVERITY_LOW, 0);
        sw__judged_by(it, "first_batch_time", first);
        sw__judged_by(it, "median_batch_time", usual);
    }
}

/* RULE-10: enough workers, and batches come in bursts. */
static void prefetch(struct sw__bench *bench, const sw_subject *loader)
{
    double late = sw__number(loader, "p99_batch_time");
    double usual = sw__number(loader, "p50_batch_time");
    double ahead = sw__number_or(loader, "prefetch_factor", 0);
    if (sw__is_on(loader, "workers") && sw__number(loader, "workers") >= cores(bench) &&
        late > 3 * usual && sw__is_slow(bench, loader)) {
        sw_judgement *it = sw__judged(bench, loader, "RULE-10", "slow_batch_loading",
                                      SW_SEVERITY_LOW, cost(bench, loader) / 2);
        ahead = ahead > 0 ? ahead : 2;
        sw__judged_by(it, "p50_batch_time", usual);
        sw__judged_by(it, "p99_batch_time", late);
        sw__judged_tells_count(it, "prefetch_factor", ahead);
        sw__judged_tells_count(it, "suggested_prefetch_factor", 2 * ahead);
    }
}

/* RULE-09: much of a batch's time does not depend on its size. */
static void batch_size(struct sw__bench *bench, const sw_subject *sweep)
{
    double given = sw__number(sweep, "given"), best = sw__number(sweep, "best");
    double fixed = sw__number(sweep, "fixed_share");
    if (fixed > 0.2 && (isnan(given) ? best > 0 : best > given)) {
        sw_judgement *it =
            sw__judged(bench, sweep, "RULE-09", "batch_size", SW_SEVERITY_MEDIUM, fixed);
        sw__judged_by_count(it, "batch_size", given);
        sw__judged_by_count(it, "suggested_batch_size", best);
        sw__judged_tells(it, "fixed_share", fixed);
    }
}

const struct sw__judge_rule sw__judge_loading[] = {
    {SW_SUBJECT_LOADER, slow_loading},    {SW_SUBJECT_LOADER, workers},
    {SW_SUBJECT_LOADER, heavy_transform}, {SW_SUBJECT_LOADER, pin_memory},
    {SW_SUBJECT_LOADER, persistent},      {SW_SUBJECT_LOADER, prefetch},
    {SW_SUBJECT_SWEEP, batch_size},       {SW_SUBJECT_KINDS, NULL},
};
