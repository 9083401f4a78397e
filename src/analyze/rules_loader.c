/* Rules about the loader: whether the loop waits for batches, why, and what to change.
 *
 * The most specific cause is told: workers that are started again, then a stage that dominates, then bursts (which need enough workers
 * on average), then waiting for files, and workers that are too few where nothing else explains it. */
#include "analyze/rules_loader.h"

#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

/* Fewer samples show nothing. */
#define SAMPLES_LEAST 20
/* Taking a batch over that waits so much longer than at its best, and so much of a step, waits for its worker. */
#define ASKED_LEAST_NS 2e6
#define ASKED_SHARE 0.1
/* Sending a batch and taking it over may cost this much: one that is made in less may be as dear from a worker. */
#define HAND_OVER_NS 2.5e6

/* --- other settings --- */

static bool waits_for_files(sw_findings *all, const struct sw__loader_facts *facts,
                            unsigned workers)
{
    if (!(facts->blocked >= SW__DOMINATES)) {
        return false;
    }
    const struct sw__loader_change change = {
        .workers = workers, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    const bool more = workers > facts->workers;
    /* With enough workers it is the waiting itself that has to go. */
    const struct sw__replay_range range =
        more ? sw__loader_saves(all, facts, &change)
             : sw__loader_cheaper(all, facts, facts->blocked);
    if (range.mean < SW__LOADER_GAIN) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_IO, "RULE-06", SW__WAITS_FOR_FILES);
    sw__draft_title(all, draft,
                    "Making a batch waits for files or network %.0f %% of its time",
                    facts->blocked * 100);
    if (more) {
        sw__draft_number(draft, "workers_proposed", workers);
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__draft_advise(
        all, draft,
        more ? "Workers that wait need no core: more of them than cores is fine."
             : "Read less often: larger files, a local copy, or keep what was "
               "read in memory.");
    sw__loader_calls(all, draft);
    const struct sw__loader_stage *read = &facts->transform;
    sw__loader_where(all, draft, read->share >= SW__DOMINATES ? read->stage->name : NULL);
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

/* A batch of tensors is handed over as descriptors of shared memory, which a thread of the worker gives out when it is asked: it
 * needs the interpreter for that, and a worker that computes in Python has it. Not so where there is much to unpickle, and not one
 * that waits most of the time: if that is late, it had no core. */
static bool asks_busy_workers(const struct sw__loader_facts *facts)
{
    return facts->way == SW__LOADER_WORKERS && facts->unpack_more_ns > ASKED_LEAST_NS &&
           !(facts->blocked >= SW__DOMINATES) &&
           !(facts->send_ns > facts->unpack_more_ns / 2);
}

static void advise_sharing(sw_findings *all, struct sw__draft *draft,
                           const struct sw__loader_facts *facts)
{
    sw__draft_number(draft, "take_waits_ms", facts->unpack_more_ns / 1e6);
    sw__draft_advise(
        all, draft,
        "Taking a batch over waits %.1f ms for its worker, which is asked for the memory "
        "while it computes in Python: torch.multiprocessing.set_sharing_strategy("
        "\"file_system\") before the loader is made needs no asking.",
        facts->unpack_more_ns / 1e6);
}

/* Batches that are made in time and wait in their workers. */
static bool waits_for_workers(sw_findings *all, const struct sw__loader_facts *facts)
{
    const double step = facts->wait.mean + facts->compute_ns;
    /* They have to be made in any case. */
    const double most = fmin(facts->unpack_more_ns,
                             step - 1.1 * facts->made_ns / fmax(facts->workers, 1));
    if (!asks_busy_workers(facts) || !(most > ASKED_SHARE * step)) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_BURSTY, "RULE-10", SW__BURSTY);
    sw__draft_title(
        all, draft,
        "Batches are made in time, and taking one over waits %.0f %% of a step "
        "for its worker",
        facts->unpack_more_ns / step * 100);
    advise_sharing(all, draft, facts);
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    const struct sw__replay_range range = {
        .mean = 0.85 * most / step, .low = 0.4 * most / step, .high = most / step};
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

static bool comes_in_bursts(sw_findings *all, const struct sw__loader_facts *facts)
{
    /* Some waits are far longer than the usual one: however few there are, they hold most of it. */
    if (facts->way != SW__LOADER_WORKERS || !facts->distinct ||
        !(facts->bursts > SW__DOMINATES)) {
        return false;
    }
    struct sw__replay_range range = {0};
    unsigned prefetch = facts->prefetch;
    for (unsigned next = prefetch * 2; next <= 32; next *= 2) {
        const struct sw__loader_change change = {
            .workers = facts->workers, .prefetch = next, .make_scale = {1, 1, 1}};
        const struct sw__replay_range more = sw__loader_saves(all, facts, &change);
        if (more.mean > range.mean + 0.01) { /* a long burst needs many */
            range = more;
            prefetch = next;
        }
    }
    /* Enough on average: with room, or so that a longer queue alone takes most of the waiting away. */
    const bool enough = facts->made_ns / facts->workers <= 0.9 * facts->compute_ns ||
                        range.mean > SW__DOMINATES * facts->share.mean;
    if (!enough || range.mean < SW__LOADER_GAIN || range.low <= 0) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_BURSTY, "RULE-10", SW__BURSTY);
    sw__draft_title(
        all, draft,
        "Batches come in bursts: there are enough workers, yet training waits");
    sw__draft_number(draft, "wait_p50_ms", facts->wait_p50 / 1e6);
    sw__draft_number(draft, "wait_p95_ms", facts->wait_p95 / 1e6);
    sw__draft_number(draft, "bursts_share", facts->bursts);
    sw__draft_number(draft, "prefetch_proposed", prefetch);
    sw__loader_advise_workers(all, draft, facts, facts->workers, prefetch);
    if (asks_busy_workers(facts)) { /* else there are more batches, and as long to wait */
        advise_sharing(all, draft, facts);
    }
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

static bool too_few_workers(sw_findings *all, const struct sw__loader_facts *facts,
                            unsigned workers)
{
    if (workers <= facts->workers) {
        return false;
    }
    const struct sw__loader_change change = {
        .workers = workers, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    const struct sw__replay_range range = sw__loader_saves(all, facts, &change);
    if (range.mean < SW__LOADER_GAIN) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_WORKERS, "RULE-06", SW__ANY_WORKERS);
    sw__draft_title(all, draft, "Training waits %.0f %% of a step for batches",
                    facts->share.mean * 100);
    sw__draft_number(draft, "workers_proposed", workers);
    sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, &range);
    const bool dear = facts->way != SW__LOADER_WORKERS && draft->finding.low <= 1 &&
                      facts->made_ns < HAND_OVER_NS;
    /* Training and its workers want more cores than there are: a little more of them is a guess. */
    const double blocked = facts->blocked > 0 ? facts->blocked : 0;
    const bool crowded = draft->finding.severity == SW_SEVERITY_MEDIUM &&
                         1 + workers * (1 - blocked) > facts->cores;
    if (dear || crowded) {
        draft->finding.severity = SW_SEVERITY_LOW;
    }
    return true;
}

/* Batches that are made fast and cost the training thread as much to take over: fewer and larger ones, or no workers. */
static bool costs_to_take(sw_findings *all, const struct sw__loader_facts *facts)
{
    const double each = facts->unpack_ns, step = facts->wait.mean + facts->compute_ns;
    if (facts->way != SW__LOADER_WORKERS || !(each > 0.2 * step) ||
        each < 0.5 * facts->wait.mean) {
        return false;
    }
    const sw_training_loader *loader = all->it.loader;
    const struct sw__loader_change change = {
        .workers = 0, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    struct sw__replay_range range = sw__loader_saves(all, facts, &change);
    const bool none = range.mean >= SW__LOADER_GAIN;
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_MAIN_PROCESS, "RULE-09", SW__RESTARTS);
    sw__draft_title(all, draft, "Taking a batch from its worker costs %.0f %% of a step",
                    each / step * 100);
    sw__draft_number(draft, "take_ms", each / 1e6);
    sw__draft_number(draft, "batch_bytes", facts->bytes);
    if (none) {
        sw__loader_advise_workers(all, draft, facts, 0, facts->prefetch);
    } else {
        /* Four times the batch, a quarter of the batches. */
        range = (struct sw__replay_range){
            .mean = 0.75 * each / step, .low = 0.5 * each / step, .high = each / step};
    }
    if (loader->batch_size != SW_UNKNOWN && loader->batch_size < 1u << 20) {
        sw__draft_advise(
            all, draft,
            "Larger batches need fewer hand-overs: batch_size=%u \xE2\x86\x92 %u%s.",
            (unsigned)loader->batch_size, (unsigned)loader->batch_size * 4,
            none ? "" : " (the prediction is for this)");
    } else {
        sw__draft_advise(all, draft, "Larger batches need fewer hand-overs.");
    }
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

/* Batches that are there, but pass through the one thread that pins them too slowly. */
static bool costs_to_pin(sw_findings *all, const struct sw__loader_facts *facts)
{
    const double each = facts->pin_ns, step = facts->wait.mean + facts->compute_ns;
    const double made = facts->workers > 0 ? facts->made_ns / facts->workers : NAN;
    if (facts->way != SW__LOADER_WORKERS || !(each > 0.6 * step) || !(made < each)) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_MAIN_PROCESS, "RULE-07", SW__RESTARTS);
    sw__draft_title(
        all, draft,
        "The thread that pins batches needs %.0f ms for each, %.0f %% of a step",
        each / 1e6, each / step * 100);
    sw__draft_number(draft, "pin_ms", each / 1e6);
    sw__draft_number(draft, "batch_bytes", facts->bytes);
    sw__draft_advise(
        all, draft,
        "Make batches smaller in bytes: hand over what the samples are stored as "
        "(uint8, float16) and convert it on the device.");
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    /* Half the bytes, down to what is next to hold the loop up. */
    const double next = made > facts->compute_ns ? made : facts->compute_ns;
    const double half = (each - next < each / 2 ? each - next : each / 2) / step;
    const struct sw__replay_range range = {
        .mean = half, .low = 0.3 * half, .high = (each - next) / step};
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

/* What the samples know of waiting for a loader that is not known otherwise: a function of the user's that makes the
 * batches on the training thread, and whether it computes or waits for something itself. */
static bool loader_in_samples(sw_findings *all, const struct sw__loader_facts *facts)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const uint64_t samples = hot->phase_samples[SW_PHASE_DATA_WAIT];
    size_t count;
    const struct sw__hot_function *top = sw__hot_functions(
        all, SW__PHASE_BIT(SW_PHASE_DATA_WAIT), SW__HOT_ANY, false, &count);
    const sw_share made = sw_share_of(top ? top->samples : 0, samples);
    const sw_share waiting = sw_share_of(hot->phase_waiting[SW_PHASE_DATA_WAIT], samples);
    const bool io = waiting.low > 0.5;
    if (samples < SAMPLES_LEAST || !(made.low > 0.4) || (!io && waiting.high > 0.4)) {
        return false;
    }
    const double share = facts->share.mean * made.share;
    const bool pieces = !io && sw__hot_by_pieces(all, top);
    struct sw__replay_range range = {.mean = 0.9 * share,
                                     .low = 0.5 * facts->share.low * made.low,
                                     .high = facts->share.high};
    if (io) {
        /* What is left of it where several are waited for at once, while the step before is trained on. */
        const double left = share / SW__IO_AT_ONCE, rest = 1 - share;
        range.mean = 1 - (left > rest ? left : rest);
    } else if (!pieces) {
        /* Nothing says that it could be faster, but another process may do it. */
        const double most = range.high;
        const struct sw__loader_change change = {
            .workers = 1, .prefetch = 2, .make_scale = {1, 1, 1}};
        range = sw__loader_saves(all, facts, &change);
        range.high = most > range.high ? most : range.high;
        if (range.mean < SW__LOADER_REWRITE) {
            return true;
        }
    }
    struct sw__draft *draft =
        sw__loader_draft(all, io ? SW_FINDING_LOADER_IO : SW_FINDING_LOADER_TRANSFORM,
                         io ? "RULE-06" : NULL, SW__ANY_WORKERS);
    const char *file = sw__file_name(top->frame.file);
    sw__draft_title(all, draft,
                    io ? "%s waits for files or the network, and training waits for it: "
                         "%.0f %% of a step"
                       : "%s makes batches while training waits: %.0f %% of a step",
                    top->frame.name, facts->share.mean * made.share * 100);
    sw__draft_where(all, draft, top->frame.file, top->frame.line, top->frame.name);
    sw__draft_number(draft, "waiting_share", waiting.share);
    sw__draft_number(draft, "function_share", made.share);
    if (io) {
        sw__draft_advise(all, draft,
                         "Ask for many at once: let threads run %s (%s, line %u) ahead "
                         "for the next batches while this one is trained on. The "
                         "prediction is for %d at once.",
                         top->frame.name, file, top->frame.line, SW__IO_AT_ONCE);
        sw__draft_advise(all, draft,
                         "Keep what is read again in memory, or on a local disk.");
    } else {
        if (pieces) {
            sw__draft_advise(all, draft,
                             "Make %s (%s, line %u) cheaper, or do it once beforehand "
                             "and keep the result.",
                             top->frame.name, file, top->frame.line);
        }
        sw__draft_advise(
            all, draft,
            "The training thread makes the batches itself: make the next one "
            "in another process while this one is trained on.");
    }
    sw__loader_common(all, draft, facts);
    const double all_ns = (double)all->it.steps->total_ns;
    /* Waiting that is left gets no faster by itself. */
    sw__draft_saves_down_to(all, draft, range.mean * all_ns, range.low * all_ns,
                            range.high * all_ns,
                            io ? share / SW__IO_AT_ONCE * all_ns : 0);
    return true;
}

/* Nothing is known of the loader but that the loop waits for it. */
static void unknown_loader(sw_findings *all, const struct sw__loader_facts *facts)
{
    /* Batches are made while what was handed out before is computed: nothing waits for them. */
    if (sw__computes_throughout(all) || loader_in_samples(all, facts)) {
        return;
    }
    double cpu = 0, time = 0, wait = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        const sw_summary_step *step = &all->it.step[i];
        cpu += step->cpu_ns != SW_UNKNOWN ? (double)step->cpu_ns : 0;
        time += (double)(step->end_ns - step->begin_ns);
        wait += (double)step->phase_ns[SW_PHASE_DATA_WAIT];
    }
    /* The thread was busy while it waited: it makes the batches itself. */
    const bool itself = wait > 0 && cpu > time - wait / 2;
    const struct sw__loader_change change = {
        .workers = 1, .prefetch = 2, .make_scale = {1, 1, 1}};
    struct sw__replay_range range = {0};
    if (itself) {
        range = sw__loader_saves(all, facts, &change);
        range.low = range.low < 0 ? range.low : 0;
        if (range.mean < SW__LOADER_GAIN) {
            return; /* handing batches over costs as much */
        }
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_WORKERS, NULL, SW__ANY_WORKERS);
    sw__draft_title(all, draft, "Training waits %.0f %% of a step for batches",
                    facts->share.mean * 100);
    sw__draft_advise(
        all, draft,
        itself
            ? "The training thread makes the batches itself: make the next one in "
              "another "
              "process while this one is trained on."
            : "Batches come too late: let whatever makes them work ahead, or make each "
              "one cheaper.");
    sw__draft_advise(all, draft,
                     "The settings of this loader are not known to stepwatch.");
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    /* By what is waited, where no gain can be told. */
    draft->finding.severity = facts->share.mean > 0.5   ? SW_SEVERITY_CRITICAL
                              : facts->share.mean > 0.2 ? SW_SEVERITY_HIGH
                              : facts->share.mean > 0.1 ? SW_SEVERITY_MEDIUM
                                                        : SW_SEVERITY_LOW;
    if (itself) {
        sw__loader_draft_saves(all, draft, &range);
    }
}

static void loop_waits(sw_findings *all, const struct sw__loader_facts *facts)
{
    if (facts->way == SW__LOADER_UNKNOWN) {
        unknown_loader(all, facts);
        return;
    }
    unsigned prefetch;
    const unsigned workers = sw__loader_best(all, facts, &prefetch);
    bool told = costs_to_take(all, facts) || costs_to_pin(all, facts);
    if (!(facts->late > SW__LOADER_LEAST)) {
        return; /* batches are there in time */
    }
    told |= sw__loader_stages(all, facts, workers);
    told |= waits_for_files(all, facts, workers);
    told |= comes_in_bursts(all, facts) || waits_for_workers(all, facts);
    told |= too_few_workers(all, facts, workers);
    if (!told) {
        sw__loader_samples(
            all, facts); /* the cores are used up: they have to become cheaper */
    }
}

void sw__rules_loader(sw_findings *all)
{
    static const enum sw_finding_kind kinds[] = {
        SW_FINDING_LOADER_WORKERS, SW_FINDING_LOADER_TRANSFORM, SW_FINDING_LOADER_COLLATE,
        SW_FINDING_LOADER_IO,      SW_FINDING_LOADER_RESTART,   SW_FINDING_LOADER_BURSTY};
    struct sw__loader_facts facts;
    const char *why;
    if (!sw__loader_begin(all, &facts, &why)) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
            sw__findings_unchecked(all, kinds[i], "%s", why);
        }
        sw__loader_end(&facts);
        return;
    }
    if (!(facts.made_ns > 0)) {
        for (size_t i = 1; i < sizeof kinds / sizeof kinds[0]; i++) {
            sw__findings_unchecked(all, kinds[i],
                                   "how the batches are made was not recorded");
        }
    }
    if (facts.steady && facts.share.low > SW__LOADER_LEAST) {
        loop_waits(all, &facts);
    }
    sw__loader_restart(all, &facts);
    sw__loader_end(&facts);
}
