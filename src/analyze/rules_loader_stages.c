/* Stages that dominate making a batch: a transform, collating, a function or a line of the program's. Cheaper code is the advice. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/source_names.h"

/* Fewer samples show nothing. */
#define SAMPLES_LEAST 20
/* So many show what is not there, too. */
#define SAMPLES_ENOUGH 50
/* Of a function's own samples outside native calls: then Python has a part in what it does. */
#define PYTHON_LEAST 0.03
/* What cheaper code has to gain, where more workers gain something: they need no other code, and where cores do not slow each
 * other they gain more than is usual. Less where it is seen that the code does what it need not do. */
#define REWRITE_TIMES 1.4
#define REWRITE_SEEN 0.9
/* What is the same in so many epochs is worth keeping; of its time so much goes then, for it is still made once. */
#define KEPT_EPOCHS 6
#define KEPT 0.95

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

static double more_workers(const sw_findings *all, const struct sw__loader_facts *facts,
                           unsigned workers)
{
    const struct sw__loader_change change = {
        .workers = workers, .prefetch = facts->prefetch, .make_scale = {1, 1, 1}};
    return workers > facts->workers ? sw__loader_saves(all, facts, &change).mean : 0;
}

static bool transform_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                                const struct sw__loader_stage *part, const char *name,
                                unsigned workers)
{
    const struct sw__replay_range range = sw__loader_cheaper(all, facts, part->share);
    /* Of a stage that is half of a batch the other half stays: workers may gain far more. */
    if (!worth_it(facts, &range) ||
        REWRITE_TIMES * range.mean < more_workers(all, facts, workers)) {
        return false;
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", SW__TRANSFORMS);
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
    sw__loader_draft_saves(all, draft, &range);
    return true;
}

/* Whether a line reads a file as a whole, as its source reads. What it takes is time of files then, though the system has them in
 * memory; texts are parsed as well, and that is work. */
static bool reads_file(const sw_stack_frame *at)
{
    static const char *const calls[] = {
        "np.load(",      "numpy.load(", "torch.load(",  "jnp.load(",  "fromfile(",
        "pickle.load(",  ".read()",     "read_bytes()", "h5py.File(", "load_file(",
        "read_parquet(", "os.read(",    "os.pread("};
    struct sw__frame_source source = sw__frame_source(at);
    bool reads = false;
    for (size_t i = 0; source.line.text && i < sizeof calls / sizeof calls[0]; i++) {
        reads = reads || memmem(source.line.text, source.line.length, calls[i],
                                strlen(calls[i])) != NULL;
    }
    sw__frame_source_free(&source);
    return reads;
}

/* Adds what is said of each draft: workers, which hide a part of it, and the gain. */
static void complete(sw_findings *all, struct sw__draft *draft,
                     const struct sw__loader_facts *facts, unsigned workers,
                     const struct sw__replay_range *range)
{
    if (workers > facts->workers) {
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, range);
}

/* A stage of the dataset's that no transform of a library is: most of a batch is spent in one function, on short calls in a loop.
 * Cheaper code gains more than more workers that go on doing it. */
static bool function_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                               unsigned workers)
{
    struct sw__loader_code code;
    if (facts->blocked >= SW__DOMINATES || !sw__loader_code(all, &code) ||
        code.samples < SAMPLES_LEAST || !code.stage || !code.pieces ||
        !(code.share.low > SW__DOMINATES)) {
        return false;
    }
    const struct sw__replay_range range =
        sw__loader_cheaper(all, facts, code.share.share);
    /* That the training thread had no core meanwhile is seen, and no guess. */
    const bool crowded =
        facts->delay_ns > SW__LOADER_BUSY * (facts->compute_ns + facts->wait.mean) &&
        range.mean >= SW__LOADER_REWRITE;
    if ((!crowded && !worth_it(facts, &range)) ||
        range.mean < REWRITE_SEEN * more_workers(all, facts, workers)) {
        return false;
    }
    const sw_stack_frame *at = code.frame;
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", SW__TRANSFORMS);
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
    complete(all, draft, facts, workers, &range);
    return true;
}

/* How often a line goes through a list from its beginning to find an element: `words.index(w)`, and twice where it asks first whether it
 * is there, `words.index(w) if w in words else 0`. */
static unsigned searches_of(const struct sw__source_line *line)
{
    const char *call = line->text ? memmem(line->text, line->length, ".index(", 7) : NULL;
    if (!call) {
        return 0;
    }
    const char *list = call;
    while (list > line->text && (sw__source_in_name(list[-1]) || list[-1] == '.')) {
        list--;
    }
    const size_t size = (size_t)(call - list);
    const char *end = line->text + line->length;
    const char *at = line->text;
    while (size > 0 && (at = memmem(at, (size_t)(end - at), " in ", 4)) != NULL) {
        at += 4;
        if ((size_t)(end - at) >= size && memcmp(at, list, size) == 0 &&
            (at + size == end || !sw__source_in_name(at[size]))) {
            return 2;
        }
    }
    return 1;
}

/* Whether a line does that for one element after the other, in a loop of its function or of the line that calls it: a dict knows
 * where it is. A long search is native time; short ones, which leave the interpreter most of it, are not what takes long. Of
 * two searches the interpreter makes one itself, without a call. */
static bool searches(sw_findings *all, const struct sw__hot_function *function)
{
    struct sw__frame_source source = sw__frame_source(&function->frame);
    const unsigned times = searches_of(&source.line);
    const bool loops = source.loop > 0;
    sw__frame_source_free(&source);
    const uint64_t most = times == 2 ? function->own / 2 : function->own / 10;
    return times > 0 && function->interpreted <= most &&
           (loops ||
            (function->caller && sw__hot_loop(all, function->caller) == SW__LOOP_INNER));
}

/* One line of the user's takes most of making a batch on the training thread: cheaper code gains more than workers that go on
 * doing it. */
static bool line_dominates(sw_findings *all, const struct sw__loader_facts *facts,
                           unsigned workers)
{
    if (facts->way != SW__LOADER_ITSELF || facts->blocked >= SW__DOMINATES) {
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
    if (!top || samples < SAMPLES_LEAST || !(share.low > SW__DOMINATES)) {
        return false;
    }
    const struct sw__replay_range range = sw__loader_cheaper(all, facts, share.share);
    const sw_stack_frame *at = &top->frame;
    const bool seeks = searches(all, top);
    if (!worth_it(facts, &range) || range.mean < (seeks ? REWRITE_SEEN : REWRITE_TIMES) *
                                                     more_workers(all, facts, workers)) {
        return false;
    }
    const bool called = sw__loader_calls_share(all, facts) >= SW__DOMINATES;
    const bool reads = called || reads_file(at);
    struct sw__draft *draft =
        sw__loader_draft(all, reads ? SW_FINDING_LOADER_IO : SW_FINDING_LOADER_TRANSFORM,
                         "RULE-38", SW__TRANSFORMS);
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
                       seeks ? "Line %u of %s searches a list from its beginning for one "
                               "element after the other: make a dict of their positions "
                               "once, and look them up"
                       : reads
                           ? "Line %u of %s reads a file for each sample: open it once, "
                             "and read no more of it than the sample needs "
                             "(mmap_mode=\"r\", one file a sample)"
                           : "Make line %u of %s cheaper, do it for many samples at "
                             "once, or once beforehand and keep the result",
                       at->line, sw__file_name(at->file)));
    if (reads) {
        sw__loader_calls(all, draft);
    }
    complete(all, draft, facts, workers, &range);
    return true;
}

/* Whether it gains at least so much that a share of making a sample is kept instead. */
static bool gains_if_kept(sw_findings *all, const struct sw__loader_facts *facts,
                          double share, double least, struct sw__replay_range *range)
{
    const struct sw__loader_change change = {
        .workers = facts->workers,
        .prefetch = facts->prefetch,
        .make_scale = {1 - share * 0.5, 1 - share * KEPT, 1 - share}};
    *range = sw__loader_saves(all, facts, &change);
    return worth_it(facts, range) && !(range->mean < least);
}

/* Of code whose result can be kept. */
static struct sw__draft *kept_draft(sw_findings *all, const struct sw__loader_code *code)
{
    const sw_stack_frame *at = code->frame;
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38", SW__TRANSFORMS);
    sw__draft_rule(draft, "RULE-13");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_number(draft, "stage_share", fmin(code->share.share, 1));
    sw__draft_number(draft, "samples", (double)code->samples);
    return draft;
}

/* What a line makes again for each sample takes most of it, though it is always the same. */
static bool made_again(sw_findings *all, const struct sw__loader_facts *facts,
                       unsigned workers)
{
    struct sw__loader_code code;
    /* A stream goes on from where it was, whatever it is given. */
    if (all->it.loader->bits & SW_LOADER_ITERABLE || facts->blocked >= SW__DOMINATES ||
        !sw__loader_same(all, &code) || code.samples < SAMPLES_LEAST ||
        !(code.share.low > SW__DOMINATES) ||
        reads_file(code.frame)) { /* of which a sample may need a part */
        return false;
    }
    const double share = fmin(code.share.share, 1);
    struct sw__replay_range range;
    if (!gains_if_kept(all, facts, share,
                       REWRITE_SEEN * more_workers(all, facts, workers), &range)) {
        return false;
    }
    const sw_stack_frame *at = code.frame;
    struct sw__draft *draft = kept_draft(all, &code);
    sw__draft_title(
        all, draft,
        "%s (%s:%u) makes the same again for each sample: %.0f %% of making a "
        "batch, and training waits for it",
        at->name, sw__file_name(at->file), at->line, share * 100);
    sw__draft_advise(all, draft,
                     "Line %u of %s computes from nothing that differs between samples: "
                     "do it once, in __init__ of the dataset, and keep the result.",
                     at->line, sw__file_name(at->file));
    complete(all, draft, facts, workers, &range);
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
        facts->blocked >= SW__DOMINATES || !sw__loader_repeats(all, &code) ||
        code.samples < SAMPLES_LEAST || !(code.share.low > SW__DOMINATES)) {
        return false;
    }
    const double share = fmin(code.share.share, 1);
    struct sw__replay_range range;
    if (!gains_if_kept(all, facts, share,
                       REWRITE_TIMES * more_workers(all, facts, workers), &range)) {
        return false;
    }
    const sw_stack_frame *at = code.frame;
    struct sw__draft *draft = kept_draft(all, &code);
    sw__draft_title(all, draft,
                    "%s takes %.0f %% of making a batch, and gives the same for a sample "
                    "in each of %" PRIu64 " epochs",
                    at->name, share * 100, loader->passes);
    sw__draft_number(draft, "epochs", (double)loader->passes);
    sw__draft_number(draft, "dataset_samples", (double)loader->samples);
    sw__draft_advise(all, draft,
                     "Do what %s (%s, line %u) does once for each sample and keep the "
                     "result: in memory, or in a file that is made beforehand.",
                     at->name, sw__file_name(at->file), at->line);
    complete(all, draft, facts, workers, &range);
    return true;
}

/* Whether whoever makes the batches was seen at it, and computes in libraries, without a loop of its own: then nothing shows that
 * it could be cheaper. */
static bool collates_in_libraries(const struct sw__loader_code *code)
{
    return code->frame && code->samples >= SAMPLES_ENOUGH && !code->pieces &&
           !code->listed && !(code->python.low > PYTHON_LEAST);
}

/* What makes a batch of samples cheaper. */
static const char *collate_cheaper(sw_findings *all, const char *name, bool usual,
                                   const struct sw__loader_code *code)
{
    if (usual) {
        return "Let the dataset give whole batches (__getitems__), or fewer and larger "
               "tensors, so that there is less to stack";
    }
    if (code->frame && code->listed) {
        return sw__findings_format(
            all,
            "Line %u of %s makes a tensor of a list, element by element: stack arrays "
            "first, torch.from_numpy(np.stack(…)), or torch.stack tensors",
            code->frame->line, sw__file_name(code->frame->file));
    }
    return sw__findings_format(all,
                               "Make %s cheaper: torch.stack of whole samples, no loop "
                               "over elements, padding in the dataset",
                               name);
}

/* The same of a sample, where one function that takes most of it would show where to look. */
static bool samples_in_libraries(const sw_findings *all)
{
    struct sw__loader_code code;
    const bool one =
        sw__loader_code(all, &code) && code.stage && code.share.low > SW__DOMINATES;
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
    const struct sw__replay_range range =
        part->share >= SW__DOMINATES ? sw__loader_cheaper(all, facts, part->share)
                                     : (struct sw__replay_range){0};
    if (!worth_it(facts, &range)) {
        return false;
    }
    const char *name = part->stage->name ? part->stage->name : "collate_fn";
    const bool usual = strstr(name, "default_collate") != NULL;
    struct sw__loader_code code;
    (void)sw__loader_code(all, &code);
    const bool needed = !usual && collates_in_libraries(&code);
    if (needed && workers > facts->workers) {
        return false; /* more workers are the better advice */
    }
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_COLLATE, NULL, SW__COLLATES);
    sw__draft_title(
        all, draft,
        "Collating takes %.0f %% of making a batch, and training waits for it",
        part->share * 100);
    sw__draft_number(draft, "stage_share", part->share);
    sw__draft_number(draft, "collate_ms",
                     (double)part->stage->ns / (double)part->stage->calls / 1e6);
    advise_cheaper(all, draft, name, collate_cheaper(all, name, usual, &code));
    if (workers > facts->workers) { /* which hides a part of it */
        sw__loader_advise_workers(all, draft, facts, workers, facts->prefetch);
    }
    sw__loader_where(all, draft, name);
    sw__loader_common(all, draft, facts);
    sw__loader_draft_saves(all, draft, &range);
    if (needed) {
        may_be_needed(all, SW_FINDING_LOADER_COLLATE);
    }
    return true;
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

bool sw__loader_stages(sw_findings *all, const struct sw__loader_facts *facts,
                       unsigned workers)
{
    bool told = collate_dominates(all, facts, workers);
    if (facts->transform.share >= SW__DOMINATES && !(facts->blocked >= SW__DOMINATES)) {
        const char *name = facts->transform.stage->name;
        told |= transform_dominates(all, facts, &facts->transform,
                                    name ? name : "a transform", workers);
    } else if (facts->collate.share < SW__DOMINATES) {
        told |= made_again(all, facts, workers) || could_be_kept(all, facts, workers) ||
                line_dominates(all, facts, workers) ||
                function_dominates(all, facts, workers);
    }
    return told;
}

void sw__loader_samples(sw_findings *all, const struct sw__loader_facts *facts)
{
    if (facts->getitem.share >= SW__DOMINATES &&
        transform_dominates(all, facts, &facts->getitem, samples_of(all), 0) &&
        samples_in_libraries(all)) {
        may_be_needed(all, SW_FINDING_LOADER_TRANSFORM);
    }
}
