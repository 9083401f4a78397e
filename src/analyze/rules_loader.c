/* Rules about the loader: whether the loop waits for batches, why, and what to change.
 *
 * The most specific cause is told: workers that are started again, then a stage that dominates, then bursts (which need enough workers
 * on average), then waiting for files, and workers that are too few where nothing else explains it. */
#include "analyze/rules_loader.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

/* Fewer samples show nothing. */
#define SAMPLES_LEAST 20
/* So many show what is not there, too. */
#define SAMPLES_ENOUGH 50
/* Of a function's own samples outside native calls: then Python has a part in what it does. */
#define PYTHON_LEAST 0.03
/* What cheaper code has to gain, where more workers gain something. */
#define REWRITE_TIMES 1.4
/* One stage dominates from this share of making a batch on (RULE-38), waiting from this one. */
#define DOMINATES 0.5
/* What is the same in so many epochs is worth keeping; of its time so much goes then, for it is still made once. */
#define KEPT_EPOCHS 6
#define KEPT 0.95
/* Taking a batch over that waits so much longer than at its best, and so much of a step, waits for its worker. */
#define ASKED_LEAST_NS 2e6
#define ASKED_SHARE 0.1
/* Sending a batch and taking it over may cost this much: one that is made in less may be as dear from a worker. */
#define HAND_OVER_NS 2.5e6
/* The share of its time that the training thread is without a core, from which on the machine is busy with others. */
#define BUSY 0.2

enum specific {
    ANY_WORKERS = 1,
    WAITS_FOR_FILES,
    BURSTY,
    TRANSFORMS,
    COLLATES,
    RESTARTS
};

static struct sw__draft *draft_loader(sw_findings *all, enum sw_finding_kind kind,
                                      const char *rule, enum specific specific)
{
    struct sw__draft *draft = sw__draft(all, kind, rule);
    draft->group = SW__GROUP_LOADER;
    draft->specific = specific;
    return draft;
}

static void draft_saves(sw_findings *all, struct sw__draft *draft,
                        const struct sw__replay_range *range)
{
    const double all_ns = (double)all->it.steps->total_ns;
    sw__draft_saves_down_to(all, draft, range->mean * all_ns, range->low * all_ns,
                            range->high * all_ns, range->least * all_ns);
    const bool little = draft->finding.severity == SW_SEVERITY_MEDIUM;
    const bool much = draft->finding.severity == SW_SEVERITY_HIGH;
    const bool alone = !all->it.loader || all->it.loader->worker_count == 0;
    /* Little, and maybe nothing; and where others than the loader's workers have the cores, what looks like more may be nothing,
     * too. */
    if ((little && range->low <= 0) || ((little || much) && draft->finding.low <= 1 &&
                                        alone && sw__core_wait(all) > BUSY)) {
        draft->finding.severity = SW_SEVERITY_LOW;
    }
}

/* --- stages that dominate --- */

/* What cheaper code would gain: a tenth of the time is usual, a half is little, nothing is the most. */
static struct sw__replay_range cheaper(const sw_findings *all,
                                       const struct sw__loader_facts *facts, double share)
{
    share = share < 1 ? share : 1;
    const struct sw__loader_change change = {
        .workers = facts->workers,
        .prefetch = facts->prefetch,
        .make_scale = {1 - share * 0.5, 1 - share * 0.9, 1 - share}};
    return sw__loader_saves(all, facts, &change);
}

static bool worth_it(const struct sw__loader_facts *facts,
                     const struct sw__replay_range *range)
{
    const bool beside =
        facts->way == SW__LOADER_WORKERS && !(facts->late > SW__LOADER_LATE);
    return range->mean >= (beside ? SW__LOADER_REWRITE_BESIDE : SW__LOADER_REWRITE);
}

static void advise_cheaper(sw_findings *all, struct sw__draft *draft, const char *what,
                           const char *how)
{
    sw__draft_advise(all, draft,
                     "%s. The prediction is for a tenth of the time in %s; its range "
                     "is from half of it to none.",
                     how, what);
}

static bool transform_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                                const struct sw__loader_stage *part, const char *name,
                                unsigned workers)
{
    const struct sw__replay_range range = cheaper(all, facts, part->share);
    if (!worth_it(facts, &range)) {
        return false;
    }
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", TRANSFORMS);
    sw__draft_title(all, draft,
                    "%s takes %.0f %% of making a batch, and training waits for it", name,
                    part->share * 100);
    sw__draft_number(draft, "stage_share", part->share);
    sw__draft_number(draft, "stage_call_ms",
                     (double)part->stage->ns / (double)part->stage->calls / 1e6);
    advise_cheaper(
        all, draft, name,
        sw__findings_format(all,
                            "Make %s cheaper, or do it once beforehand and keep "
                            "the result (preprocess offline, cache)",
                            name));
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_where(all, draft, name);
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    return true;
}

static double more_workers(const sw_findings *all, const struct sw__loader_facts *facts,
                           unsigned workers)
{
    const struct sw__loader_change change = {
        .workers = workers, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    /* They need no other code, and where cores do not slow each other they gain more than is usual. */
    return workers > facts->workers
               ? REWRITE_TIMES * sw__loader_saves(all, facts, &change).mean
               : 0;
}

/* A stage of the dataset's that no transform of a library is: workers spend most of a batch in one function, on short calls in a
 * loop. Cheaper code gains more than more workers that go on doing it. */
static bool function_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                               unsigned workers)
{
    struct sw__loader_code code;
    if (facts->way != SW__LOADER_WORKERS || facts->blocked >= DOMINATES ||
        !sw__loader_code(all, &code) || code.samples < SAMPLES_LEAST || !code.stage ||
        !code.pieces || !(code.share.low > DOMINATES)) {
        return false;
    }
    const struct sw__replay_range range = cheaper(all, facts, code.share.share);
    /* That the training thread had no core meanwhile is seen, and no guess. */
    const bool crowded =
        facts->delay_ns > BUSY * (facts->compute_ns + facts->wait.mean) &&
        range.mean >= SW__LOADER_REWRITE;
    if ((!crowded && !worth_it(facts, &range)) ||
        range.mean < more_workers(all, facts, workers)) {
        return false;
    }
    const sw_stack_frame *at = code.frame;
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", TRANSFORMS);
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%s takes %.0f %% of making a batch, and training waits for it",
                    at->name, code.share.share * 100);
    sw__draft_number(draft, "stage_share", code.share.share);
    sw__draft_number(draft, "samples", (double)code.samples);
    advise_cheaper(all, draft, "it",
                   sw__findings_format(all,
                                       "The loop in %s (%s, line %u) makes many small "
                                       "calls: use operations on the whole sample, or "
                                       "do it once beforehand and keep the result",
                                       at->name, sw__file_name(at->file), at->line));
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    return true;
}

/* Whether a line reads a file as a whole, as its source reads. What it takes is time of files then, though the system has them in
 * memory; texts are parsed as well, and that is work. */
static bool reads_file(const sw_stack_frame *at)
{
    static const char *const calls[] = {"np.load(",   "numpy.load(",  "torch.load(",
                                        "jnp.load(",  "fromfile(",    "pickle.load(",
                                        ".read()",    "read_bytes()", "h5py.File(",
                                        "load_file(", "read_parquet("};
    struct sw__frame_source source = sw__frame_source(at);
    bool reads = false;
    for (size_t i = 0; source.line.text && i < sizeof calls / sizeof calls[0]; i++) {
        reads = reads || memmem(source.line.text, source.line.length, calls[i],
                                strlen(calls[i])) != NULL;
    }
    sw__frame_source_free(&source);
    return reads;
}

/* One line of the user's takes most of making a batch on the training thread: cheaper code gains more than workers that go on
 * doing it. */
static bool line_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                           unsigned workers)
{
    if (facts->way != SW__LOADER_ITSELF || facts->blocked >= DOMINATES) {
        return false;
    }
    const struct sw__hot *hot = sw__hot_code(all);
    uint64_t samples = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        samples += facts->phases & SW__PHASE_BIT(p) ? hot->phase_samples[p] : 0;
    }
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, facts->phases, SW__HOT_ANY, false, &count);
    const struct sw__hot_function *top = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!sw__hot_trains(hot, &list[i].frame) &&
            (!top || list[i].line_samples > top->line_samples)) {
            top = &list[i];
        }
    }
    const sw_share share = sw_share_of(top ? top->line_samples : 0, samples);
    if (!top || samples < SAMPLES_LEAST || !(share.low > DOMINATES)) {
        return false;
    }
    const struct sw__replay_range range = cheaper(all, facts, share.share);
    if (!worth_it(facts, &range) || range.mean < more_workers(all, facts, workers)) {
        return false;
    }
    const sw_stack_frame *at = &top->frame;
    const bool reads = reads_file(at);
    struct sw__draft *draft =
        draft_loader(all, reads ? SW_FINDING_LOADER_IO : SW_FINDING_LOADER_TRANSFORM,
                     "RULE-38", TRANSFORMS);
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(
        all, draft,
        "One line of %s (%s:%u) takes %.0f %% of making a batch, and training "
        "waits for it",
        at->name, sw__file_name(at->file), at->line, share.share * 100);
    sw__draft_number(draft, "stage_share", share.share);
    sw__draft_number(draft, "samples", (double)samples);
    advise_cheaper(all, draft, "it",
                   sw__findings_format(
                       all,
                       reads
                           ? "Line %u of %s reads a file for each sample: open it once, "
                             "and read no more of it than the sample needs "
                             "(mmap_mode=\"r\", one file a sample)"
                           : "Make line %u of %s cheaper, do it for many samples at "
                             "once, or once beforehand and keep the result",
                       at->line, sw__file_name(at->file)));
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    return true;
}

/* Something that gives the same for a sample in each of many epochs takes most of making it: kept, it costs nothing any more, and
 * that gains more than workers that go on doing it. */
static bool could_be_kept(sw_findings *all, const struct sw__loader_facts *facts,
                          unsigned workers)
{
    const sw_training_loader *loader = all->it.loader;
    struct sw__loader_code code;
    if (loader->bits & SW_LOADER_ITERABLE || loader->samples == SW_UNKNOWN ||
        loader->passes == SW_UNKNOWN || loader->passes < KEPT_EPOCHS ||
        facts->blocked >= DOMINATES || !sw__loader_repeats(all, &code) ||
        code.samples < SAMPLES_LEAST || !(code.share.low > DOMINATES)) {
        return false;
    }
    const double share = fmin(code.share.share, 1);
    const struct sw__loader_change change = {
        .workers = facts->workers,
        .prefetch = facts->prefetch,
        .make_scale = {1 - share * 0.5, 1 - share * KEPT, 1 - share}};
    const struct sw__replay_range range = sw__loader_saves(all, facts, &change);
    if (!worth_it(facts, &range) || range.mean < more_workers(all, facts, workers)) {
        return false;
    }
    const sw_stack_frame *at = code.frame;
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", TRANSFORMS);
    sw__draft_rule(draft, "RULE-13");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%s takes %.0f %% of making a batch, and gives the same for a sample "
                    "in each of %" PRIu64 " epochs",
                    at->name, share * 100, loader->passes);
    sw__draft_number(draft, "stage_share", share);
    sw__draft_number(draft, "samples", (double)code.samples);
    sw__draft_number(draft, "epochs", (double)loader->passes);
    sw__draft_number(draft, "dataset_samples", (double)loader->samples);
    sw__draft_advise(all, draft,
                     "Do what %s (%s, line %u) does once for each sample and keep the "
                     "result: in memory, or in a file that is made beforehand.",
                     at->name, sw__file_name(at->file), at->line);
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    return true;
}

/* Whether whoever makes the batches was seen at it, and computes in libraries, without a loop of its own: then nothing shows that
 * it could be cheaper. */
static bool collates_in_libraries(const sw_findings *all)
{
    struct sw__loader_code code;
    return sw__loader_code(all, &code) && code.samples >= SAMPLES_ENOUGH &&
           !code.pieces && !(code.python.low > PYTHON_LEAST);
}

/* The same of a sample, where one function that takes most of it would show where to look. */
static bool samples_in_libraries(const sw_findings *all)
{
    struct sw__loader_code code;
    const bool one =
        sw__loader_code(all, &code) && code.stage && code.share.low > DOMINATES;
    return code.samples >= SAMPLES_ENOUGH && !code.pieces && !one;
}

/* Of what has to be computed, none may go. */
static void may_be_needed(sw_findings *all, enum sw_finding_kind kind)
{
    for (struct sw__draft *draft = all->first; draft; draft = draft->next) {
        if (draft->finding.kind == kind) {
            draft->finding.severity = SW_SEVERITY_LOW;
            draft->finding.confidence = 0.5;
        }
    }
}

static bool collate_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                              unsigned workers)
{
    const struct sw__loader_stage *part = &facts->collate;
    const struct sw__replay_range range = part->share >= DOMINATES
                                              ? cheaper(all, facts, part->share)
                                              : (struct sw__replay_range){0};
    if (!worth_it(facts, &range)) {
        return false;
    }
    const char *name = part->stage->name ? part->stage->name : "collate_fn";
    const bool usual = strstr(name, "default_collate") != NULL;
    const bool needed = !usual && collates_in_libraries(all);
    if (needed && workers > facts->workers) {
        return false; /* more workers are the better advice */
    }
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_COLLATE, NULL, COLLATES);
    sw__draft_title(
        all, draft,
        "Collating takes %.0f %% of making a batch, and training waits for it",
        part->share * 100);
    sw__draft_number(draft, "stage_share", part->share);
    sw__draft_number(draft, "collate_ms",
                     (double)part->stage->ns / (double)part->stage->calls / 1e6);
    const char *how =
        usual ? "Let the dataset give whole batches (__getitems__), or fewer and larger "
                "tensors, so that there is less to stack"
              : sw__findings_format(
                    all,
                    "Make %s cheaper: torch.stack of whole samples, no loop "
                    "over elements, padding in the dataset",
                    name);
    advise_cheaper(all, draft, name, how);
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_where(all, draft, name);
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    if (needed) {
        may_be_needed(all, SW_FINDING_LOADER_COLLATE);
    }
    return true;
}

/* --- other settings --- */

static bool waits_for_files(sw_findings *all, const struct sw__loader_facts *facts,
                            unsigned workers)
{
    if (!(facts->blocked >= DOMINATES)) {
        return false;
    }
    const struct sw__loader_change change = {
        .workers = workers, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    const bool more = workers > facts->workers;
    /* With enough workers it is the waiting itself that has to go. */
    const struct sw__replay_range range = more ? sw__loader_saves(all, facts, &change)
                                               : cheaper(all, facts, facts->blocked);
    if (range.mean < SW__LOADER_GAIN) {
        return false;
    }
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_IO, "RULE-06", WAITS_FOR_FILES);
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
    sw__loader_where(all, draft, read->share >= DOMINATES ? read->stage->name : NULL);
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
    return true;
}

/* A batch of tensors is handed over as descriptors of shared memory, which a thread of the worker gives out when it is asked: it
 * needs the interpreter for that, and a worker that computes in Python has it. Not so where there is much to unpickle. */
static bool asks_busy_workers(const struct sw__loader_facts *facts)
{
    return facts->way == SW__LOADER_WORKERS && facts->unpack_more_ns > ASKED_LEAST_NS &&
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
        draft_loader(all, SW_FINDING_LOADER_BURSTY, "RULE-10", BURSTY);
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
    draft_saves(all, draft, &range);
    return true;
}

static bool comes_in_bursts(sw_findings *all, const struct sw__loader_facts *facts)
{
    /* Enough on average, and some waits are far longer than the usual one: however few there are, they hold most of it. */
    const double each = facts->made_ns / facts->workers;
    if (facts->way != SW__LOADER_WORKERS || !facts->distinct ||
        each > 0.9 * facts->compute_ns || !(facts->bursts > DOMINATES)) {
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
    if (range.mean < SW__LOADER_GAIN || range.low <= 0) {
        return false;
    }
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_BURSTY, "RULE-10", BURSTY);
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
    draft_saves(all, draft, &range);
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
        draft_loader(all, SW_FINDING_LOADER_WORKERS, "RULE-06", ANY_WORKERS);
    sw__draft_title(all, draft, "Training waits %.0f %% of a step for batches",
                    facts->share.mean * 100);
    sw__draft_number(draft, "workers_proposed", workers);
    sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    sw__loader_where(all, draft, NULL);
    sw__loader_common(all, draft, facts);
    draft_saves(all, draft, &range);
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
        draft_loader(all, SW_FINDING_LOADER_MAIN_PROCESS, "RULE-09", RESTARTS);
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
    draft_saves(all, draft, &range);
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
        draft_loader(all, SW_FINDING_LOADER_MAIN_PROCESS, "RULE-07", RESTARTS);
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
    draft_saves(all, draft, &range);
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
        draft_loader(all, io ? SW_FINDING_LOADER_IO : SW_FINDING_LOADER_TRANSFORM,
                     io ? "RULE-06" : NULL, ANY_WORKERS);
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
        draft_loader(all, SW_FINDING_LOADER_WORKERS, NULL, ANY_WORKERS);
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
        draft_saves(all, draft, &range);
    }
}

/* The method of the dataset that gives samples. */
static const char *samples_of(sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    const bool iterable = loader->bits & SW_LOADER_ITERABLE;
    return loader->dataset ? sw__findings_format(all, "%s.%s", loader->dataset,
                                                 iterable ? "__iter__" : "__getitem__")
                           : "the dataset";
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
    told |= collate_dominates(all, facts, workers);
    if (facts->transform.share >= DOMINATES && !(facts->blocked >= DOMINATES)) {
        const char *name = facts->transform.stage->name;
        told |= transform_dominates(all, facts, &facts->transform,
                                    name ? name : "a transform", workers);
    } else if (facts->collate.share < DOMINATES) {
        told |= could_be_kept(all, facts, workers) ||
                line_dominates(all, facts, workers) ||
                function_dominates(all, facts, workers);
    }
    told |= waits_for_files(all, facts, workers);
    told |= comes_in_bursts(all, facts) || waits_for_workers(all, facts);
    told |= too_few_workers(all, facts, workers);
    if (!told && facts->getitem.share >= DOMINATES) {
        /* The cores are used up: samples have to become cheaper. */
        if (transform_dominates(all, facts, &facts->getitem, samples_of(all), 0) &&
            samples_in_libraries(all)) {
            may_be_needed(all, SW_FINDING_LOADER_TRANSFORM);
        }
    }
}

/* --- workers that are started again --- */

/* Of the longest start, the first one: below this nobody was started. */
#define STAYED 0.3

struct cost {
    double mean, least, most;
};

/* Of a call that is not the first one. Which one was first is not known; the longest is left out. */
static struct cost again(const sw_training_loader *loader, unsigned kind)
{
    for (size_t i = 0; i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        if (stage->kind == kind && stage->calls > 1 && stage->ns >= stage->max_ns) {
            return (struct cost){(double)(stage->ns - stage->max_ns) /
                                     (double)(stage->calls - 1),
                                 (double)stage->min_ns, (double)stage->max_ns};
        }
    }
    return (struct cost){0};
}

static uint64_t calls_of(const sw_training_loader *loader, unsigned kind)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < loader->stage_count; i++) {
        calls += loader->stages[i].kind == kind ? loader->stages[i].calls : 0;
    }
    return calls;
}

/* Waits for the first batch in the epochs after the first one. */
static struct cost first_batches(const sw_summary *summary)
{
    struct cost cost = {.least = INFINITY};
    double count = 0;
    for (size_t i = 1; i < sw_summary_epoch_count(summary); i++) {
        const uint64_t ns = sw_summary_get_epoch(summary, i)->first_batch_ns;
        if (ns != SW_UNKNOWN) {
            const double wait = (double)ns;
            cost.mean += wait;
            cost.least = wait < cost.least ? wait : cost.least;
            cost.most = wait > cost.most ? wait : cost.most;
            count++;
        }
    }
    cost.mean = count > 0 ? cost.mean / count : 0;
    cost.least = count > 0 ? cost.least : 0;
    return cost;
}

static bool starts_again(sw_findings *all, const struct sw__loader_facts *facts)
{
    const sw_training_loader *loader = all->it.loader;
    size_t epochs = sw_summary_epoch_count(all->it.summary);
    if (facts->way != SW__LOADER_WORKERS || loader->passes == SW_UNKNOWN ||
        loader->passes < 2) {
        return false;
    }
    const struct cost start = again(loader, SW_STAGE_START);
    const bool kept = loader->bits & SW_LOADER_PERSISTENT;
    if (kept && (start.mean < STAYED * start.most ||
                 calls_of(loader, SW_STAGE_SHUTDOWN) + 1 < loader->passes)) {
        return false; /* workers that stay are only told of the new epoch, and not ended */
    }
    struct cost first = first_batches(all->it.summary);
    if (epochs < 2) {
        /* A new loader for every epoch: no step knows which it belongs to. */
        epochs = loader->passes < 1u << 30 ? (size_t)loader->passes : 0;
        first = again(loader, SW_STAGE_FIRST);
        if (epochs < 2 || start.mean == 0) {
            return false;
        }
    }
    const struct cost end = again(loader, SW_STAGE_SHUTDOWN);
    /* The first batch has to be made in any case. */
    const double times = (double)(epochs - 1);
    const double each = start.mean + first.mean + end.mean - facts->made_ns;
    const double low = start.least + first.least + end.least - facts->made_ns;
    const double high = start.most + first.most + end.most;
    const double base = (double)all->it.base_ns;
    const double usual = facts->wait_p50;
    if (!(each * times > 0.02 * base) || !(low > 0) || first.mean < 3 * usual) {
        return false;
    }
    const char *place = sw__loader_place(all);
    struct sw__draft *draft =
        draft_loader(all, SW_FINDING_LOADER_RESTART, "RULE-08", RESTARTS);
    sw__draft_title(all, draft,
                    "Workers are started again in every epoch: %.0f ms each time",
                    each / 1e6);
    if (kept) {
        sw__draft_advise(all, draft,
                         "%s%sthe loader is built anew for every epoch: build it once, "
                         "before the epochs.",
                         place ? place : "", place ? ": " : "");
    } else {
        sw__draft_advise(
            all, draft,
            "%s%sDataLoader(num_workers=%u) \xE2\x86\x92 persistent_workers=True, "
            "and build it once, before the epochs.",
            place ? place : "", place ? ": " : "", facts->workers);
    }
    sw__draft_number(draft, "restart_ms", each / 1e6);
    sw__draft_number(draft, "restarts", times);
    sw__draft_number(draft, "start_ms", start.mean / 1e6);
    sw__draft_number(draft, "first_batch_ms", first.mean / 1e6);
    sw__draft_number(draft, "shutdown_ms", end.mean / 1e6);
    sw__draft_number(draft, "usual_wait_ms", usual / 1e6);
    sw__draft_number(draft, "epochs", (double)epochs);
    sw__loader_where(all, draft, NULL);
    draft->finding.share = each * times / base;
    draft->finding.confidence = epochs >= 4 ? 0.9 : 0.7;
    sw__draft_saves(all, draft, each * times, low * times, high * times);
    /* Of a step itself, only what the first ones of epochs wait longer. */
    const double longer = first.mean > facts->made_ns ? first.mean - facts->made_ns : 0;
    const double step =
        all->it.steps->mean_ns - longer * times / (double)all->it.steps->counted;
    draft->finding.step_ns = step > 0 ? (uint64_t)step : 0;
    return true;
}

/* Starting again and waiting within epochs are different times. Where starting again costs more it is told first and names the
 * other, which it may well cause; else both are told. */
static void settle_restart(sw_findings *all)
{
    struct sw__draft *restart = NULL;
    double most = 0;
    for (struct sw__draft *draft = all->first; draft; draft = draft->next) {
        if (draft->finding.kind == SW_FINDING_LOADER_RESTART) {
            restart = draft;
        } else if (draft->group == SW__GROUP_LOADER && draft->finding.predicted) {
            most = draft->finding.speedup > most ? draft->finding.speedup : most;
        }
    }
    if (restart && most > restart->finding.speedup) {
        restart->group = SW__GROUP_NONE;
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
    if (starts_again(all, &facts)) {
        settle_restart(all);
    }
    sw__loader_end(&facts);
}
