/* Rules: the computation itself. Optimizer, data types, compilations, mixed precision; rules_modules.c has the model, rules_tables.c what
 * an update does to tables of vectors. */
#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

/* Shares of the steps' time that are worth a finding. The second where nothing was chosen: torch's own defaults. */
#define OPTIMIZER_LEAST 0.15
#define OPTIMIZER_OWN_LEAST 0.2
#define OPTIMIZER_DEFAULT_LEAST 0.25
/* So many tensors are many. */
#define TENSORS_LEAST 50
#define COMPILE_LEAST 0.02
/* By the monitor: shares of the device, of its multiprocessors and of its matrix units. */
#define AMP_BUSY 0.7
#define AMP_SM 0.3
#define AMP_TENSOR 0.05
#define AMP_LEAST 0.3
/* Compilations of one function that no warm-up explains. */
#define COMPILE_AGAIN_LEAST 2
#define COMPILE_WARMUP_LEAST 5
/* Compilations that may stay beside the first, where sizes are made alike: for a few of them. */
#define SIZES_MORE 2
/* How much shorter than the others the one that stays may be. */
#define COMPILED_LEAST 0.7
/* So many steps without a compilation show what one takes. */
#define FREE_LEAST 5
#define SAMPLES_LEAST 50
/* What padding adds to forward and backward: with a few sizes, and with one. */
#define PADDED 0.2
#define PADDED_MOST 0.5
/* How far off what was seen of the queue may be. */
#define QUEUE_LEAST 0.6
#define QUEUE_MOST 1.5

/* --- optimizer --- */

static bool is_one_of(const char *text, const char *const *names, size_t count)
{
    for (size_t i = 0; text && i < count; i++) {
        if (strcmp(text, names[i]) == 0) {
            return true;
        }
    }
    return false;
}
#define ONE_OF(text, ...)                                                                \
    is_one_of(text, (const char *const[]){__VA_ARGS__},                                  \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static bool is_true(const char *text)
{
    return text && strcmp(text, "True") == 0;
}

/* What the optimizer of the steps is: of several the one with most tensors. */
struct optimizer {
    const char *what, *kind, *foreach, *fused;
    double tensors;
    bool known;   /* one of torch.optim, which has ways to choose from */
    bool fusible; /* has fused=True on a CPU as well */
    bool rereads; /* walks through its memory several times, so that one pass is faster */
    bool mixed;   /* there are others, and some of all are fused */
};

static struct optimizer find_optimizer(const sw_findings *all)
{
    struct optimizer found = {.tensors = NAN};
    unsigned fused = 0, plain = 0;
    size_t count;
    const sw_training_setting *list = sw_training_settings(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        const sw_training_setting *at = &list[i];
        if (at->what && at->name && strncmp(at->what, "optimizer", 9) == 0 &&
            strcmp(at->name, "class") == 0) {
            const double tensors = sw__setting_number(all, at->what, "tensors");
            const bool once = is_true(sw__setting_text(all, at->what, "fused"));
            fused += once;
            plain += !once;
            if (!found.what || tensors > found.tensors) {
                found.what = at->what;
                found.kind = at->text;
                found.tensors = tensors;
            }
        }
    }
    if (found.what) {
        found.foreach = sw__setting_text(all, found.what, "foreach");
        found.fused = sw__setting_text(all, found.what, "fused");
        found.known = found.foreach || found.fused;
        found.fusible = ONE_OF(found.kind, "Adam", "AdamW", "SGD", "Adagrad");
        found.rereads = !ONE_OF(found.kind, "SGD");
        found.mixed = fused > 0 && plain > 0;
    }
    return found;
}

static struct sw__estimate part_of(struct sw__estimate of, double part)
{
    of.mean *= part;
    of.low *= part;
    of.high *= part;
    return of;
}

static void own_arithmetic(sw_findings *all, struct sw__estimate share,
                           struct sw__estimate time, const struct optimizer *is,
                           const struct sw__hot_function *own)
{
    struct sw__draft *draft = sw__draft(all, SW_FINDING_OPTIMIZER, "RULE-23");
    sw__draft_title(all, draft,
                    "%.0f %% of a step is the update: what %s computes in %s (%s:%u)",
                    share.mean * 100, sw__text(is->kind), own->frame.name,
                    sw__file_name(own->frame.file), own->frame.line);
    sw__draft_where(all, draft, own->frame.file, own->frame.line, own->frame.name);
    sw__draft_number(draft, "optimizer_ms", time.mean / 1e6);
    sw__draft_number(draft, "optimizer_share", share.mean);
    sw__draft_number(draft, "tensors", is->tensors);
    draft->finding.share = share.mean;
    draft->finding.confidence = 0.6;
    sw__draft_advise(all, draft,
                     "If line %u of %s need not be done in every step (preconditioners, "
                     "decompositions, averages), do it every tenth or twentieth.",
                     own->frame.line, sw__file_name(own->frame.file));
    sw__draft_saves_in_steps(all, draft, time, 0.85, 0.3, 0.98);
}

static void optimizer(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_OPTIMIZER);
    const struct sw__hot *hot = sw__hot_code(all);
    const double updating =
        1 - (double)hot->closure / (double)(hot->phase_samples[SW_PHASE_OPTIMIZER] + 1);
    const struct sw__estimate share = part_of(sw__case_share(&all->it, phase), updating);
    const struct sw__estimate time = part_of(sw__phase_time(all, phase), updating);
    const struct optimizer is = find_optimizer(all);
    if (!all->it.steps->phase[SW_PHASE_OPTIMIZER].measured) {
        sw__findings_unchecked(all, SW_FINDING_OPTIMIZER,
                               "no update was seen apart from the rest of the step");
        return;
    }
    const bool chosen = is.foreach && strcmp(is.foreach, "False") == 0;
    if (is.known && !chosen && sw__has_device(all)) {
        /* There torch goes through the tensors in groups, unless it is told not to. */
        if (share.low > OPTIMIZER_DEFAULT_LEAST && is.fusible && !is_true(is.fused)) {
            sw__findings_note(all,
                              "The update is %.0f %% of a step: %s with fused=True needs "
                              "fewer calls.",
                              share.mean * 100, sw__text(is.kind));
        }
        return;
    }
    /* All rows are gone through, in groups or fused as well; and the table may be another optimizer's. */
    if (!is.what || sw__rules_tables(all, share, time, is.kind, is.mixed)) {
        return;
    }
    if (!(share.low >
          (chosen || !is.known ? OPTIMIZER_LEAST : OPTIMIZER_DEFAULT_LEAST)) ||
        is_true(is.foreach) || is_true(is.fused)) {
        return;
    }
    const double tensor_us = time.mean / is.tensors / 1e3;
    const bool small = tensor_us < 200; /* calls cost more than what they compute */
    size_t count;
    const struct sw__hot_function *own =
        sw__hot_functions(all, phase, SW__HOT_ANY, false, &count);
    if (!is.known && !(own && is.tensors >= 4)) {
        return; /* somebody else's way of updating: nothing is known of it */
    }
    if (!is.known && !(small || sw__hot_interpreted(all, own))) {
        /* It is the arithmetic, and that of an update of one's own can be done less often. */
        if (share.low > OPTIMIZER_OWN_LEAST) {
            own_arithmetic(all, share, time, &is, own);
        }
        return;
    }
    if (is.known && !chosen && !(small && is.tensors >= TENSORS_LEAST)) {
        if (is.fusible && is.rereads) {
            sw__findings_note(all,
                              "The update is %.0f %% of a step: %s with fused=True goes "
                              "through memory once instead of several times.",
                              share.mean * 100, sw__text(is.kind));
        }
        return; /* torch's own choice, for tensors of which each is worth its call */
    }
    const sw_training_site *site = sw__site_of(all, SW_SITE_OPTIMIZER);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_OPTIMIZER, "RULE-23");
    sw__draft_title(all, draft,
                    "%.0f %% of a step is the update: %s goes through %.0f "
                    "tensors one by one",
                    share.mean * 100, sw__text(is.kind), is.tensors);
    sw__draft_number(draft, "optimizer_ms", time.mean / 1e6);
    sw__draft_number(draft, "optimizer_share", share.mean);
    sw__draft_number(draft, "tensors", is.tensors);
    sw__draft_number(draft, "us_per_tensor", tensor_us);
    draft->finding.share = share.mean;
    draft->finding.confidence = small ? 0.85 : 0.7;
    if (is.known) {
        if (site) {
            sw__draft_where(all, draft, site->file, site->line, is.kind);
        }
        sw__draft_advise(all, draft, "Build %s with %s=True (%s:%u).", sw__text(is.kind),
                         is.fusible ? "fused" : "foreach",
                         sw__file_name(site ? site->file : NULL), site ? site->line : 0);
        if (is.fusible) {
            sw__draft_saves_in_steps(all, draft, time, small ? 0.85 : 0.6,
                                     small ? 0.6 : 0.25, small ? 0.97 : 0.85);
        } else {
            sw__draft_saves_in_steps(all, draft, time, small ? 0.6 : 0.2, small ? 0.3 : 0,
                                     small ? 0.9 : 0.5);
        }
        return;
    }
    sw__draft_where(all, draft, own->frame.file, own->frame.line, own->frame.name);
    sw__draft_advise(
        all, draft,
        "The loop over parameters in %s, line %u of %s, makes several small "
        "operations for each: use torch._foreach_* functions on the list, or keep "
        "the parameters in one flat tensor.",
        own->frame.name, own->frame.line, sw__file_name(own->frame.file));
    /* The more tensors there are, the more of it is calls. */
    sw__draft_saves_in_steps(all, draft, time, is.tensors >= TENSORS_LEAST ? 0.92 : 0.85,
                             0.5, 0.98);
}

/* --- data types --- */

/* A loop without a framework over arrays of 64 bits, which NumPy makes unless it is told otherwise. Whether so many are needed
 * nobody can tell, so it is a remark, and made only where there is nothing else to say. */
#define NATIVE_LEAST 0.5
void sw__rules_wide_arrays(sw_findings *all)
{
    const double wide = sw__setting_number(all, "numpy", "float64_elements");
    const double single = sw__setting_number(all, "numpy", "float32_elements");
    const double narrow = single > 0 ? single : 0;
    const struct sw__hot *hot = sw__hot_code(all);
    const uint64_t samples = hot->phase_samples[SW_PHASE_OTHER];
    if (all->first || !(wide > narrow) || samples < SAMPLES_LEAST) {
        return;
    }
    const sw_share native =
        sw_share_of(samples - hot->phase_interpreted[SW_PHASE_OTHER], samples);
    const struct sw__estimate other = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_OTHER));
    if (!(native.low * other.mean / all->it.mean_ns > NATIVE_LEAST)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_DTYPE, "RULE-12");
    sw__hot_where_called(all, draft, SW__PHASE_BIT(SW_PHASE_OTHER));
    sw__draft_title(
        all, draft,
        "%.0f %% of the numbers in the arrays that the loop computes with are "
        "float64",
        100 * wide / (wide + narrow));
    sw__draft_number(draft, "float64_elements", wide);
    sw__draft_number(draft, "float32_elements", narrow);
    sw__draft_number(draft, "mb_saved", 4 * wide / 1e6);
    sw__draft_number(draft, "native_share", native.share);
    draft->finding.share = native.share * other.mean / all->it.mean_ns;
    draft->finding.confidence = 0.5;
    sw__draft_advise(all, draft,
                     "NumPy makes float64 unless it is told otherwise: make weights and "
                     "batches with dtype=np.float32 or .astype(np.float32), if that is "
                     "precise enough.");
    const struct sw__estimate time = {.mean = native.share * other.mean,
                                      .low = native.low * other.low,
                                      .high = native.high * other.high};
    sw__draft_saves_in_steps(all, draft, time, 0.5, 0, 0.62);
    draft->finding.severity = SW_SEVERITY_LOW;
}

/* In JAX the step thread sleeps while others compute. A library may wait inside its call of the compiled step (Equinox does):
 * that is time of no phase. As shares of a step. */
static struct sw__estimate waits_inside(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const sw_share asleep = sw_share_of(hot->phase_waiting[SW_PHASE_OTHER], hot->samples);
    return hot->samples < SAMPLES_LEAST ? (struct sw__estimate){0}
                                        : (struct sw__estimate){.mean = asleep.share,
                                                                .low = asleep.low,
                                                                .high = asleep.high};
}

static void dtype(sw_findings *all)
{
    size_t count;
    const sw_training_dtype *list = sw_training_dtypes(all->it.training, &count);
    uint64_t parameters = 0;
    uint64_t wide = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        parameters = sw__add(parameters, list[i].parameters);
        if (list[i].dtype && (strcmp(list[i].dtype, "float64") == 0 ||
                              strcmp(list[i].dtype, "torch.float64") == 0)) {
            wide = sw__add(wide, list[i].parameters);
            bytes = sw__add(bytes, list[i].bytes);
        }
    }
    const double jax_wide = sw__setting_number(all, "jax", "float64_elements");
    const bool jax = parameters == 0 && jax_wide >= 0 && jax_wide < 1e15;
    if (jax) {
        const double narrow = sw__setting_number(all, "jax", "float32_elements");
        wide = (uint64_t)jax_wide;
        parameters = wide + (narrow >= 0 && narrow < 1e15 ? (uint64_t)narrow : 0);
        bytes = 8 * wide;
    }
    if (parameters == 0) {
        if (isnan(sw__setting_number(all, "numpy", "float64_elements")) &&
            isnan(sw__setting_number(all, "numpy", "float32_elements"))) {
            sw__findings_unchecked(all, SW_FINDING_DTYPE,
                                   "no model was seen whose parameters have a type");
        }
        return;
    }
    /* What was handed out is waited for. */
    const uint64_t phases = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OPTIMIZER) |
                            (jax ? SW__PHASE_BIT(SW_PHASE_SYNC) : 0);
    const struct sw__estimate asleep = jax ? waits_inside(all) : (struct sw__estimate){0};
    struct sw__estimate share = sw__case_share(&all->it, phases);
    share.mean += asleep.mean;
    share.low += asleep.low;
    struct sw__estimate time = sw__phase_time(all, phases);
    time.mean += asleep.mean * all->it.mean_ns;
    time.low += asleep.low * all->it.mean_ns;
    time.high += asleep.high * all->it.mean_ns;
    if (2 * wide <= parameters || !(share.low > 0.1)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_DTYPE, "RULE-12");
    const sw_training_site *site = sw__site_of(all, SW_SITE_MODEL);
    if (site) {
        sw__draft_where(all, draft, site->file, site->line, site->object);
    } else {
        sw__hot_where_loop(all, draft); /* a framework has built it */
    }
    sw__draft_title(all, draft, "%.0f %% of the %s are float64",
                    100 * (double)wide / (double)parameters,
                    jax ? "numbers that a step updates" : "parameters");
    sw__draft_number(draft, "float64_parameters", (double)wide);
    sw__draft_number(draft, "parameters", (double)parameters);
    sw__draft_number(draft, "mb_saved", (double)bytes / 2e6);
    sw__draft_number(draft, "compute_ms", time.mean / 1e6);
    sw__draft_number(draft, "compute_share", share.mean);
    draft->finding.share = share.mean;
    draft->finding.confidence = 0.85;
    if (jax) {
        sw__draft_advise(all, draft,
                         "Leave jax_enable_x64 off, or cast parameters and batches with "
                         ".astype(jnp.float32) where double precision is not needed.");
        sw__draft_saves_in_steps(all, draft, time, 0.55, 0.2, 0.7);
        return;
    }
    sw__draft_advise(all, draft,
                     "Train in float32: model.float() where the model is built%s%s, and "
                     ".float() on the inputs (NumPy arrays are float64 by default).",
                     site ? ", " : "", site ? sw__file_name(site->file) : "");
    sw__draft_advise(all, draft,
                     "torch.set_default_dtype(torch.float64), .double() and "
                     "torch.from_numpy are the usual reasons.");
    /* Half the bytes, twice as many numbers in a vector; what is overhead stays. */
    if (sw__has_device(all)) {
        /* Between a half and a sixtieth of the speed of float32, as the device may be. */
        sw__draft_saves_in_steps(all, draft, time, 0.75, 0.2, 0.95);
    } else {
        sw__draft_saves_in_steps(all, draft, time, 0.5, 0.2, 0.62);
    }
}

/* --- compilations --- */

/* What was compiled again in one function, all reasons together; the rows of a function stand together. */
struct again {
    const sw_training_compilation *longest; /* of its reasons; NULL: nothing was */
    uint64_t times, ns;
};

static struct again most_compiled(const sw_findings *all)
{
    size_t count;
    const sw_training_compilation *list =
        sw_training_compilations(all->it.training, &count);
    struct again most = {0};
    struct again here = {0};
    for (size_t i = 0; i < count; i++) {
        const bool same = i > 0 && list[i].line == list[i - 1].line && list[i].function &&
                          list[i - 1].function &&
                          strcmp(list[i].function, list[i - 1].function) == 0;
        here = same ? here : (struct again){0};
        if (list[i].again) {
            here.times = sw__add(here.times, list[i].compilations);
            here.ns = sw__add(here.ns, list[i].ns);
            here.longest =
                !here.longest || list[i].ns > here.longest->ns ? &list[i] : here.longest;
        }
        most = here.ns > most.ns ? here : most;
    }
    return most;
}

/* Steps in which something was compiled, and how long that took; [1]: the warm-up included. `more_ns`: what steps with a
 * compilation take beyond it and beyond a step without, for all of them. */
struct compiling {
    uint64_t steps[2];
    double ns[2];
    double more_ns;
};

static struct compiling find_compiling(const sw_findings *all)
{
    struct compiling sum = {0};
    sw_summary_step *list = NULL;
    size_t count = 0;
    double rest[2] = {0}, steps[2] = {0}; /* of steps that count, without and with one */
    if (sw_summary_step_series(all->it.summary, &list, &count, NULL) == SW_OK) {
        for (size_t i = 0; i < count; i++) {
            const uint64_t ns = list[i].complete ? list[i].phase_ns[SW_PHASE_COMPILE] : 0;
            for (unsigned k = list[i].warmup; k < 2; k++) {
                sum.steps[k] += ns > 0;
                sum.ns[k] += (double)ns;
            }
            if (list[i].complete && !list[i].warmup) {
                rest[ns > 0] += (double)(list[i].end_ns - list[i].begin_ns) - (double)ns;
                steps[ns > 0]++;
            }
        }
    }
    sw_summary_steps_free(list);
    if (steps[0] >= FREE_LEAST && steps[1] > 0) {
        const double more = rest[1] - steps[1] * rest[0] / steps[0];
        sum.more_ns = more > 0 ? more : 0;
    }
    return sum;
}

/* Whether sizes that differ are the reason. */
static bool by_shape(const sw_training_compilation *at)
{
    return at->reason && (strstr(at->reason, "size") || strstr(at->reason, "shape"));
}

/* The same of JAX, which names arrays: "float32[12,104,2] → float32[12,108,2]". */
static bool by_array(const sw_training_compilation *at)
{
    return at->reason && (strstr(at->reason, "] → ") || strstr(at->reason, "] -> "));
}

static void advise_compiled(sw_findings *all, struct sw__draft *draft,
                            const sw_training_compilation *at)
{
    const char *reason = at->reason ? at->reason : "unknown";
    sw__draft_advise(all, draft, "Why it was compiled again: %s.", reason);
    if (strstr(reason, "static")) {
        sw__draft_advise(
            all, draft,
            "Pass what changes from step to step as an array, not as a static "
            "argument of %s.",
            at->function);
    } else if (strstr(reason, "new function object")) {
        sw__draft_advise(all, draft,
                         "Make the compiled function once, before the loop, not in it.");
    } else {
        sw__draft_advise(
            all, draft,
            "Keep shapes the same from step to step: pad to a few fixed sizes, "
            "drop the last smaller batch (drop_last=True), or mark that "
            "dimension dynamic.");
    }
}

/* A program that compiles no more than it has to does so once, while training begins, and that is no small part of its time then. So
 * it is the time of all steps that gets shorter here, those of the warm-up among them, and one compilation stays. */
static void predict_compiled(sw_findings *all, struct sw__draft *draft,
                             const struct again *again, const struct compiling *sum,
                             double steps_ns)
{
    const double counted = (double)all->it.steps->counted;
    const double base = (double)all->it.base_ns;
    const double warmup = (double)all->it.warmup_ns;
    /* Steps that compile also trace and look things up, for which there is no section. */
    const double more_ns = sum->more_ns * counted / (double)all->it.count;
    const double rest = base - steps_ns - more_ns;
    /* Of the warm-up, what is no step as the others are: compilations again, which have rows, and the first one. */
    const double warming =
        fmax(warmup - rest / counted * ((double)all->it.steps->count - counted), 0);
    const double again_first = fmin(fmax((double)again->ns - steps_ns, 0), warming);
    const double one = (double)again->ns / (double)again->times;
    const double first = warming - again_first;
    /* It may have come before any step was seen: then it is time of both. Else what it took and what the others did are two
     * measurements of what stays. */
    const bool unseen = first < 0.5 * one;
    const double stays = unseen ? one : (first + one) / 2;
    const double before = base + warmup + (unseen ? one - first : 0);
    const bool shapes = by_shape(again->longest);
    /* Shapes that are made alike are larger ones: some of what a step computes then is padding. */
    const double padded =
        shapes ? sw__phase_time(all, SW__COMPUTE_PHASES).mean * counted : 0;
    /* What was handed out is computed while something compiles, and is waited for when nothing does. */
    const double queue = sw__computed_in_queue(all);
    const double left = sw__saved_per_step(all, queue);
    if (queue > 0) {
        sw__draft_number(draft, "computed_ms", queue / 1e6);
    }
    sw__draft_number(draft, "compile_once_s", stays / 1e9);
    const double usual = rest + fmax(warmup - warming, 0);
    const double sizes = shapes || by_array(again->longest)
                             ? fmin(SIZES_MORE, (double)(again->times / 2))
                             : 0;
    const double after = stays + fmax(0.002 * steps_ns + usual + PADDED * padded, left);
    const double most =
        stays + sizes * one +
        fmax(0.05 * steps_ns + more_ns + usual + PADDED_MOST * padded, QUEUE_MOST * left);
    const double least = COMPILED_LEAST * stays + fmax(usual, QUEUE_LEAST * left);
    sw__draft_saves(all, draft, base * (1 - after / before), base * (1 - most / before),
                    base * (1 - least / before));
}

static void recompile(sw_findings *all)
{
    if (!all->it.steps->phase[SW_PHASE_COMPILE].measured) {
        return; /* nothing was compiled */
    }
    const struct again again = most_compiled(all);
    const sw_training_compilation *at = again.longest;
    const struct compiling sum = find_compiling(all);
    if (!at) {
        return;
    }
    /* Steps without records are like those that have them. */
    const double steps_ns =
        sum.ns[0] * (double)all->it.steps->counted / (double)all->it.count;
    const double share = steps_ns / (double)all->it.base_ns;
    const bool later = sum.steps[0] >= COMPILE_AGAIN_LEAST &&
                       again.times >= COMPILE_AGAIN_LEAST && share > COMPILE_LEAST;
    /* Compilations without end are no warm-up, even where all of them came first. */
    const bool leading = sum.steps[1] >= COMPILE_WARMUP_LEAST &&
                         again.times >= COMPILE_WARMUP_LEAST &&
                         sum.ns[1] > 0.1 * ((double)all->it.base_ns + sum.ns[1]);
    if (!later && !leading) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_RECOMPILE, "RULE-41");
    sw__draft_where(all, draft, at->file, at->line, at->function);
    sw__draft_title(all, draft, "%s was compiled again %llu times%s",
                    sw__text(at->function), (unsigned long long)again.times,
                    later ? " while training went on" : " while training began");
    sw__draft_number(draft, "compilations_again", (double)again.times);
    sw__draft_number(draft, "compile_again_s", (double)again.ns / 1e9);
    sw__draft_number(draft, "steps_with_compilation", (double)sum.steps[1]);
    sw__draft_number(draft, "compile_share", share);
    draft->finding.share = share;
    draft->finding.confidence = 0.95;
    advise_compiled(all, draft, at);
    if (later) {
        predict_compiled(all, draft, &again, &sum, steps_ns);
    } else {
        draft->finding.share = NAN;
        draft->finding.severity =
            sum.ns[1] > (double)all->it.base_ns ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM;
    }
}

/* --- mixed precision --- */

static bool is_matrix(const char *name)
{
    return name && (strstr(name, "mm") || strstr(name, "conv") || strstr(name, "gemm") ||
                    strstr(name, "linear") || strstr(name, "attention"));
}

/* Whether the parameters are float32 and nothing computes with less. */
static bool is_full(const sw_findings *all)
{
    size_t count;
    const sw_training_setting *settings = sw_training_settings(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (settings[i].what && strcmp(settings[i].what, "amp") == 0) {
            return false;
        }
    }
    const sw_training_dtype *types = sw_training_dtypes(all->it.training, &count);
    return count > 0 && types[0].dtype && strstr(types[0].dtype, "float32") != NULL;
}

static struct sw__draft *draft_amp(sw_findings *all, double share)
{
    struct sw__draft *draft = sw__draft(all, SW_FINDING_AMP, "RULE-18");
    sw__draft_rule(draft, "RULE-25");
    sw__draft_rule(draft, "RULE-40");
    const sw_training_site *site = sw__site_of(all, SW_SITE_MODEL);
    if (site) {
        sw__draft_where(all, draft, site->file, site->line, site->object);
    }
    draft->finding.share = share;
    draft->finding.confidence = 0.6;
    sw__draft_advise(all, draft,
                     "Compute forward and loss under torch.autocast(\"cuda\", "
                     "dtype=torch.bfloat16).");
    return draft;
}

/* Without operators: a device that is busy and does not use its matrix units, while the model is mostly matrices. */
static bool full_precision(sw_findings *all)
{
    const struct sw__device_use use = sw__device_use(all);
    if (use.looks < SW__DEVICE_LOOKS || !(use.busy > AMP_BUSY) ||
        !(use.sm_most > AMP_SM) || !(use.tensor_most < AMP_TENSOR) || !is_full(all)) {
        return false;
    }
    struct sw__draft *draft = draft_amp(all, use.busy);
    sw__draft_title(
        all, draft,
        "The device computes %.0f %% of a step in float32, and its matrix units "
        "do next to nothing",
        use.busy * 100);
    sw__draft_number(draft, "device_busy_share", use.busy);
    sw__draft_number(draft, "sm_active_share", use.sm);
    sw__draft_number(draft, "tensor_active_share", use.tensor);
    sw__draft_number(draft, "looks", (double)use.looks);
    sw__draft_advise(
        all, draft,
        "Or torch.set_float32_matmul_precision(\"high\"), which keeps float32 "
        "and multiplies with TF32.");
    const struct sw__estimate time = {.mean = use.busy * all->it.mean_ns,
                                      .low = use.busy * all->it.mean_ns,
                                      .high = all->it.mean_ns};
    sw__draft_saves_in_steps(all, draft, time, 0.65, 0.3, 0.85);
    return true;
}

static void amp(sw_findings *all)
{
    size_t count;
    uint64_t device = 0;
    uint64_t matrix = 0;
    const sw_training_operator *list = sw_training_operators(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].device == 1) {
            device = sw__add(device, list[i].self_ns);
            matrix = sw__add(matrix, is_matrix(list[i].name) ? list[i].self_ns : 0);
        }
    }
    if (device == 0 && full_precision(all)) {
        return;
    }
    if (device == 0) {
        sw__findings_unchecked(all, SW_FINDING_AMP, "%s",
                               sw__has_device(all)
                                   ? "operators were not recorded (--operators)"
                                   : "no accelerator was used");
        return;
    }
    const double share = (double)matrix / (double)device;
    if (!is_full(all) || share < AMP_LEAST) {
        return;
    }
    struct sw__draft *draft = draft_amp(all, share);
    sw__draft_title(all, draft, "%.0f %% of the device's time is matrix work in float32",
                    share * 100);
    sw__draft_number(draft, "matrix_share", share);
    sw__draft_number(draft, "device_s", (double)device / 1e9);
    const struct sw__estimate compute =
        sw__phase_time(all, SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_SYNC));
    sw__draft_saves_in_steps(all, draft, compute, 0.4 * share, 0.1 * share, 0.65 * share);
}

void sw__rules_compute(sw_findings *all)
{
    optimizer(all);
    dtype(all);
    recompile(all);
    amp(all);
    sw__rules_modules(all);
}
