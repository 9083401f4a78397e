/* What a change of the loader would gain: settings of the replay, and the best number of workers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/summary.h"

#define MS 1e6
/* Cores have caches, memory or units in common: what each takes longer once all of them compute, and where more want to compute
 * than there are cores. By guess. */
static const double together[3] = {1.2, 1.1, 1};
static const double crowded[3] = {1.3, 1.2, 1};

/* Threads that compute keeps busy: between one and all that the framework may use, by its own word or by that of OpenMP. */
static double threads(const sw_findings *all, const struct sw__loader_facts *facts,
                      double cores, enum sw__guess guess)
{
    const sw_summary *summary = all->it.summary;
    const char *text = sw_trace_fact(sw__summary_trace(summary, summary->step_trace),
                                     "env.OMP_NUM_THREADS");
    const double set = sw__setting_number(all, "threads", "intraop");
    const double said = set >= 1 ? set : text ? strtod(text, NULL) : 0;
    double most = said >= 1 && said < cores ? said : cores;
    most = facts->gpu || most < 1 ? 1 : most;
    return guess == SW__GUESS_LOW ? most : guess == SW__GUESS_HIGH ? 1 : (1 + most) / 2;
}

/* The cores that the program was seen to use, workers included; 0: not known. */
static double cores_used(const struct sw__loader_facts *facts, double elapsed)
{
    const double used = facts->used_ns + facts->cpu_ns; /* NaN: one is not known */
    return facts->way == SW__LOADER_WORKERS && used > 0 && elapsed > 0 ? used / elapsed
                                                                       : 0;
}

/* The first of three values by guess. */
static double guessed(double known, const double by_guess[3], enum sw__guess guess)
{
    return known >= 0 ? known : by_guess[guess];
}

/* What the first batch of an epoch waits for besides being made. */
static double start_of(const sw_findings *all, const struct sw__loader_facts *facts,
                       enum sw__guess guess)
{
    static const double unknown[3] = {20 * MS, 3 * MS, 1 * MS};
    if (facts->way != SW__LOADER_WORKERS) {
        return unknown[guess];
    }
    const sw_training_loader *loader = all->it.loader;
    for (size_t i = 0; i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        if (stage->kind == SW_STAGE_FIRST && stage->calls) {
            const double extra =
                (double)stage->ns / (double)stage->calls - facts->made_ns;
            return extra > 0 ? extra : 0;
        }
    }
    return 0;
}

double sw__loader_sharing(double wanted, double cores, enum sw__guess guess)
{
    return wanted < cores ? 1 : wanted < cores + 0.5 ? together[guess] : crowded[guess];
}

/* The part of a step's own time in which workers compute, once they make the batches: a thread gets slower by what others compute
 * beside it for as long as they do. At worst that is all of it. */
static double overlap(const struct sw__loader_facts *facts, enum sw__guess guess)
{
    if (guess == SW__GUESS_LOW) {
        return 1;
    }
    const double made = facts->made_ns > 0 ? facts->made_ns : facts->wait.mean;
    const double work = made * (facts->blocked > 0 ? 1 - facts->blocked : 1);
    return work < facts->compute_ns ? work / facts->compute_ns : 1;
}

struct sw__replay_setting sw__loader_setting(const sw_findings *all,
                                             const struct sw__loader_facts *facts,
                                             unsigned workers, unsigned prefetch,
                                             enum sw__guess guess)
{
    static const double hand[3] = {1.5 * MS, 0.5 * MS, 0.2 * MS};
    static const double send[3] = {1.0 * MS, 0.3 * MS, 0.1 * MS};
    /* In a worker a sample takes another time than in the training process: its framework has one thread there, and caches and
     * the interpreter for itself. */
    static const double moved[3] = {1.15, 1, 0.85};
    const double cores = all->it.cores >= 1 ? all->it.cores : 1;
    const double busy = threads(all, facts, cores, guess);
    /* Workers that wait need no core. */
    const double computes =
        facts->blocked > 0 && guess != SW__GUESS_LOW ? 1 - facts->blocked : 1;
    const double delay = facts->crowd > 0.05 ? facts->crowd : 0;
    /* With workers, what was recorded is what they met on average: the loop computes in a part of the time only. */
    const double elapsed = facts->compute_ns + facts->wait.mean;
    const double runnable = facts->making > 0 && elapsed > 0
                                ? busy * facts->compute_ns / elapsed + facts->making
                                : busy;
    /* Whatever this program has of the cores, others have not: where it has them all, its own workers are who the training
     * thread waits for. */
    const double used = cores_used(facts, elapsed);
    const double wanted = delay > 0 ? cores * (1 + delay) - runnable : 0;
    const double others = used > 0 ? fmin(wanted, (cores - used) * (1 + delay)) : wanted;
    /* The cores that it had, were they all there is; threads on other cores may get as much there. */
    const double least = runnable / (1 + delay), most = cores / (1 + delay);
    const double had =
        fmax(used, guess == SW__GUESS_LOW || most < least ? least : (least + most) / 2);
    static const double grouped[3] = {1, 0.5, 0};
    const bool moves = workers > 0 && facts->way != SW__LOADER_WORKERS;
    struct sw__replay_setting setting = {
        .workers = workers,
        .prefetch = prefetch,
        .cores = cores,
        .others = others > 0 ? others : 0,
        .grouped = others > 0 ? grouped[guess] : 0,
        .group_cores = had > 0.05 ? had : 0.05,
        .threads = busy,
        .block_scale =
            guess == SW__GUESS_LOW && workers > facts->workers && workers > 1 ? 1.25 : 1,
    };
    setting.compute_scale = facts->delay > 0.05 ? 1 / (1 + facts->delay) : 1;
    /* The processor time of a worker is known; of the training thread, the time it took as it was. */
    setting.make_scale = facts->way == SW__LOADER_WORKERS && facts->cpu_ns >= 0
                             ? 1
                             : sw__replay_rate(&setting, 1 + facts->making);
    const double slower = sw__loader_sharing(1 + workers * computes, cores, guess) /
                          sw__loader_sharing(1 + facts->workers * computes, cores, guess);
    if (slower > 1) {
        setting.compute_scale *= 1 + (slower - 1) * overlap(facts, guess);
        setting.make_scale *= slower;
    }
    if (workers > 0) {
        setting.hand_ns = guessed(facts->unpack_ns * setting.compute_scale, hand, guess);
        setting.send_ns = guessed(facts->send_ns, send, guess);
        setting.start_ns = start_of(all, facts, guess);
        setting.make_scale *= moves ? moved[guess] : 1;
    }
    return setting;
}

static void both(const sw_findings *all, const struct sw__loader_facts *facts,
                 const struct sw__loader_change *change, enum sw__guess guess,
                 struct sw__replay_setting out[2])
{
    out[0] = sw__loader_setting(all, facts, facts->workers, facts->prefetch, guess);
    out[1] = sw__loader_setting(all, facts, change->workers, change->prefetch, guess);
    out[1].make_scale *= change->make_scale[guess];
    out[1].block_scale *= change->make_scale[guess];
}

/* Where other programs take the cores away, workers are late through no fault of the loader: what would the change save on a
 * machine of its own? */
static double saves_alone(const struct sw__loader_facts *facts,
                          const struct sw__replay_setting set[2])
{
    struct sw__replay_setting alone[2] = {set[0], set[1]};
    alone[0].others = alone[1].others = 0;
    alone[0].grouped = alone[1].grouped = 0;
    const double now = sw__replay(facts->steps, facts->count, &alone[0], NULL);
    const double then = sw__replay(facts->steps, facts->count, &alone[1], NULL);
    return now > 0 ? 1 - then / now : 0;
}

/* What all cores together need for a step with its batch, as a share of a step as it was. */
static double all_together(const struct sw__loader_facts *facts,
                           const struct sw__replay_setting set[2])
{
    double work = 0;
    for (size_t i = 0; i < facts->count; i++) {
        work += facts->steps[i].compute_ns * set[1].compute_scale +
                facts->steps[i].make_ns * set[1].make_scale + set[1].send_ns +
                set[1].hand_ns;
    }
    const double now = sw__replay(facts->steps, facts->count, &set[0], NULL);
    return set[1].workers > 0 && now > 0 ? work / set[1].cores / now : 0;
}

struct sw__replay_range sw__loader_saves(const sw_findings *all,
                                         const struct sw__loader_facts *facts,
                                         const struct sw__loader_change *change)
{
    struct sw__replay_setting set[2];
    both(all, facts, change, SW__GUESS_MIDDLE, set);
    struct sw__replay_range range =
        sw__replay_saves(facts->steps, facts->count, &set[0], &set[1]);
    /* Cheaper code leaves more of the caches to the rest; the same work elsewhere does not. */
    range.least = change->make_scale[SW__GUESS_MIDDLE] < 1 ? 0 : all_together(facts, set);
    const double below = range.mean - range.low, above = range.high - range.mean;
    if (set[0].others > 0 && facts->way == SW__LOADER_WORKERS &&
        saves_alone(facts, set) < SW__LOADER_GAIN) {
        return (struct sw__replay_range){0};
    }
    for (unsigned guess = SW__GUESS_LOW; guess <= SW__GUESS_HIGH; guess += 2) {
        both(all, facts, change, (enum sw__guess)guess, set);
        const double now = sw__replay(facts->steps, facts->count, &set[0], NULL);
        const double then = sw__replay(facts->steps, facts->count, &set[1], NULL);
        const double share = now > 0 ? 1 - then / now : 0;
        range.low = share - below < range.low ? share - below : range.low;
        range.high = share + above > range.high ? share + above : range.high;
    }
    if (facts->gpu && range.low > 0.4 * range.mean) {
        range.low =
            0.4 * range.mean; /* the device may have worked while the loop waited */
    }
    return range;
}

/* Work that waits leaves its core to others, so more workers than cores may be right. */
static unsigned workers_most(const struct sw__loader_facts *facts)
{
    const double blocked = facts->blocked > 0.3 ? facts->blocked : 0;
    const double most =
        blocked < 0.97 ? floor(facts->cores / (1 - blocked) + 0.01) : SW__REPLAY_WORKERS;
    return most < 32 ? (unsigned)most : 32;
}

unsigned sw__loader_best(const sw_findings *all, const struct sw__loader_facts *facts,
                         unsigned *prefetch)
{
    static const unsigned candidates[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
    const unsigned most = workers_most(facts);
    double time[sizeof candidates / sizeof candidates[0]], least = INFINITY;
    *prefetch = facts->prefetch;
    for (size_t i = 0; i < sizeof candidates / sizeof candidates[0]; i++) {
        const struct sw__replay_setting setting = sw__loader_setting(
            all, facts, candidates[i], facts->prefetch, SW__GUESS_MIDDLE);
        time[i] = candidates[i] > facts->workers && candidates[i] <= most
                      ? sw__replay(facts->steps, facts->count, &setting, NULL)
                      : INFINITY;
        least = time[i] < least ? time[i] : least;
    }
    const struct sw__replay_setting now =
        sw__loader_setting(all, facts, facts->workers, facts->prefetch, SW__GUESS_MIDDLE);
    if (!(least < 0.98 * sw__replay(facts->steps, facts->count, &now, NULL))) {
        return facts->workers;
    }
    size_t best = 0;
    while (time[best] > least * 1.02) {
        best++;
    }
    return candidates[best];
}
