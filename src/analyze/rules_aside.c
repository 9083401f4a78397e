/* Rules: what is not training: validation, checkpoints, and steps that are far slower than the rest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/slow_code.h"
#include "analyze/summary.h"

#define CHECKPOINT_LEAST 0.05
/* In so many steps it is part of the step, and nothing that comes now and then. */
#define EACH_STEP 0.9
/* Of it, on lines that write something: then it is there to be written. */
#define WRITES_LEAST 0.1
/* Of these lines, in packages that draw or keep logs: then that is what it is for. */
#define LOGS_LEAST 0.5
/* As often as this it must have happened before doing it less often makes sense: the last one stays, and one alone shows no
 * habit. */
#define TIMES_LEAST 3
/* What slow steps take beyond the usual, as share of all time. */
#define EXCESS_LEAST 0.1
#define EXCESS_PERIODIC_LEAST 0.05
#define SLOW_TIMES 2.0
/* Steps of so many times the usual are no matter of a busy machine: a few of them are enough. */
#define FAR_TIMES 8.0
#define FAR_LEAST 5
/* Steps for each update, where gradients are added up. */
#define ADDED_LEAST 1.9
/* … of what slow steps take beyond the usual, which those with an update have then. */
#define UPDATES_MOST 0.6

/* --- validation and checkpoints --- */

/* Steps that have a phase. */
static uint64_t steps_with(const sw_findings *all, unsigned phase)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        steps += all->it.step[i].phase_ns[phase] > 0;
    }
    return steps;
}

/* Steps before which something as long as half of what a step has of it, on average, lies between it and the one before. What
 * comes now and then makes few gaps longer than that. */
static uint64_t gaps_with(const sw_findings *all, double outside_ns)
{
    const double least = 0.5 * outside_ns / (double)all->it.count;
    uint64_t gaps = 0;
    for (size_t i = 1; i < all->it.count && outside_ns > 0; i++) {
        const sw_summary_step *step = &all->it.step[i];
        const double gap = (double)step->begin_ns - (double)step[-1].end_ns;
        gaps += step->number == step[-1].number + 1 && gap > least;
    }
    return gaps;
}

/* In the steps or right between them. */
static bool in_each_step(const sw_findings *all, unsigned phase, double ns)
{
    const double most = EACH_STEP * (double)(all->it.count - 1);
    double inside = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        inside += (double)all->it.step[i].phase_ns[phase];
    }
    return (double)steps_with(all, phase) > most ||
           (2 * inside < ns && (double)gaps_with(all, ns - inside) > most);
}

/* Times that it happened: stretches of steps that have the phase, and gaps between steps that hold it. */
static uint64_t happened(const sw_findings *all, unsigned phase, bool each)
{
    uint64_t times = 0;
    bool before = false;
    if (each) {
        return all->it.count;
    }
    for (size_t i = 0; i < all->it.count; i++) {
        const bool here = all->it.step[i].phase_ns[phase] > 0;
        times += here && !before;
        before = here;
    }
    if (times == 0) {
        /* Between steps, or between epochs. */
        const char *name;
        const uint64_t calls = sw__phase_calls(all, phase, &name);
        const uint64_t epochs = sw_summary_epoch_count(all->it.summary);
        times = calls > epochs ? calls : epochs;
    }
    return times;
}

/* What is in validation and is none: compilations, which come once; and, where calls return before their results are there,
 * waiting for the training before it, which is what its waits take beyond the usual one. */
static double not_validation(const sw_findings *all)
{
    size_t count;
    double excess = 0;
    const sw_summary_section *rows =
        sw_summary_sections(all->it.summary, SW_ROWS_EACH, &count);
    const bool asynchronous = sw__is_asynchronous(all);
    for (size_t i = 0; i < count; i++) {
        bool validates = false;
        for (uint32_t at = rows[i].parent; at != SW_NO_ROW; at = rows[at].parent) {
            validates |= rows[at].phase == SW_PHASE_VALIDATION;
        }
        if (validates && rows[i].phase == SW_PHASE_COMPILE) {
            excess += (double)rows[i].total_ns;
        }
        if (validates && asynchronous && rows[i].phase == SW_PHASE_SYNC &&
            rows[i].p50_ns != SW_UNKNOWN) {
            const double usual = (double)rows[i].p50_ns * (double)rows[i].calls;
            excess +=
                (double)rows[i].total_ns > usual ? (double)rows[i].total_ns - usual : 0;
        }
    }
    return excess;
}

/* What goes of it when it is done once where it was done `every` times: the last one stays in any case. */
static double less_often(double every, uint64_t times)
{
    const double left = 1 / every, last = 1 / (double)times;
    return 1 - (left > last ? left : last);
}

/* Of what is saved, only the part that lies in steps makes them shorter. */
static void saves_aside(sw_findings *all, struct sw__draft *draft, unsigned phase,
                        double ns, double part)
{
    sw__draft_saves(all, draft, part * ns, 0.5 * part * ns, ns);
    const struct sw__estimate inside = sw__phase_time(all, SW__PHASE_BIT(phase));
    const double step =
        all->it.steps->mean_ns - (inside.mean > 0 ? part * inside.mean : 0);
    draft->finding.step_ns = step > 0 ? (uint64_t)step : 0;
}

/* Whether a line of the program writes something, as its source reads. */
static bool writes(const sw_stack_frame *frame)
{
    static const char *const words[] = {"write", "save", "dump(", "savefig", "print("};
    struct sw__frame_source source = sw__frame_source(frame);
    const struct sw__source_line line = source.line;
    bool does = false;
    for (size_t i = 0; line.text && !does && i < sizeof words / sizeof words[0]; i++) {
        does = memmem(line.text, line.length, words[i], strlen(words[i])) != NULL;
    }
    sw__frame_source_free(&source);
    return does;
}

/* What the samples say of validation: how many there are, come after the backward, write, and are in packages for that. */
struct validated {
    uint64_t samples, after, writes, logged;
};

static struct validated look_at_validation(sw_findings *all)
{
    struct validated sum = {0};
    const struct sw__hot *hot = sw__hot_code(all);
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (line->phase == SW_PHASE_VALIDATION) {
            sum.samples += line->samples;
            sum.after += line->when == SW__HOT_AFTER ? line->samples : 0;
            sum.writes += writes(line->frame) ? line->samples : 0;
            sum.logged += line->logged;
        }
    }
    return sum;
}

/* The model is asked for something that is then written or drawn: pictures, samples of text. */
static void samples_of_model(sw_findings *all, const sw_stack_frame *at, double ns,
                             double share, uint64_t times, bool each)
{
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOGGING, "RULE-44");
    sw__draft_rule(draft, "RULE-62");
    draft->finding.also |= (uint64_t)1 << SW_FINDING_VALIDATION;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of the time is what %s (%s:%u) computes and writes after "
                    "%s",
                    share * 100, at->name, sw__file_name(at->file), at->line,
                    each ? "every step" : "some steps");
    sw__draft_number(draft, "logging_share", share);
    sw__draft_number(draft, "logging_s", ns / 1e9);
    sw__draft_number(draft, "steps_between",
                     (double)all->it.steps->counted / (double)times);
    draft->finding.share = share;
    draft->finding.confidence = 0.75;
    if (each) {
        sw__draft_advise(all, draft,
                         "Do it every 50 steps in %s, line %u, not in every one.",
                         sw__file_name(at->file), at->line);
    } else {
        sw__draft_advise(all, draft, "Do it a tenth as often in %s, line %u.",
                         sw__file_name(at->file), at->line);
    }
    saves_aside(all, draft, SW_PHASE_VALIDATION, ns, less_often(each ? 50 : 10, times));
}

static void validation(sw_findings *all)
{
    const double training = not_validation(all);
    const double ns = (double)all->it.validation_ns > training
                          ? (double)all->it.validation_ns - training
                          : 0;
    /* Of a short run, what comes once is much. */
    const double steady = (double)all->it.base_ns - training;
    const double share = steady > 0 ? ns / steady : 0;
    const bool each = in_each_step(all, SW_PHASE_VALIDATION, ns);
    const uint64_t times = happened(all, SW_PHASE_VALIDATION, each);
    if (!(share > SW__VALIDATION_LEAST) || times < TIMES_LEAST) {
        return;
    }
    size_t count;
    const struct sw__hot_function *top = sw__hot_functions(
        all, SW__PHASE_BIT(SW_PHASE_VALIDATION), SW__HOT_ANY, true, &count);
    const sw_stack_frame *at = top && top->entry ? top->entry : top ? &top->frame : NULL;
    const struct validated seen = look_at_validation(all);
    if (each && (2 * seen.after <= seen.samples || !at)) {
        return; /* what the step trains on may be made so: moves in a game, labels, what a teacher says */
    }
    if (at && ((each && sw_share_of(seen.writes, seen.samples).low > WRITES_LEAST) ||
               sw_share_of(seen.logged, seen.samples).low > LOGS_LEAST)) {
        samples_of_model(all, at, ns, share, times, each);
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_VALIDATION, "RULE-62");
    if (at) {
        sw__draft_where(all, draft, at->file, at->line, at->name);
    }
    sw__draft_title(all, draft, "%.0f %% of the time is validation", share * 100);
    sw__draft_number(draft, "validation_share", share);
    sw__draft_number(draft, "validation_s", ns / 1e9);
    sw__draft_number(draft, "validations", (double)times);
    sw__draft_number(draft, "validation_each_ms", ns / (double)times / 1e6);
    sw__draft_number(draft, "steps_between",
                     (double)all->it.steps->counted / (double)times);
    draft->finding.share = share;
    draft->finding.confidence = 0.85;
    if (at) {
        sw__draft_advise(all, draft,
                         "Validate a tenth as often, or on a part of the data (%s, line "
                         "%u).",
                         sw__file_name(at->file), at->line);
    } else {
        sw__draft_advise(all, draft,
                         "Validate a tenth as often, or on a part of the data.");
    }
    sw__draft_advise(all, draft,
                     "Larger batches and torch.inference_mode() make it cheaper, for "
                     "nothing is kept for a backward.");
    saves_aside(all, draft, SW_PHASE_VALIDATION, ns, less_often(10, times));
}

/* Whether a function of the user's saves, and is no part of what trains: then what else it does (making folders, fsync,
 * renaming) is part of saving. */
static bool saves(const struct sw__hot *hot, const struct sw__hot_function *function)
{
    return function->by_phase[SW_PHASE_CHECKPOINT] > 0 &&
           !sw__hot_trains(hot, &function->frame);
}

#define SAVING_PHASES (SW__PHASE_BIT(SW_PHASE_CHECKPOINT) | SW__PHASE_BIT(SW_PHASE_OTHER))

/* What functions that save take in a step beside the saving itself: the user's, and those of frameworks. */
static double beside_saving(sw_findings *all)
{
    size_t count;
    uint64_t beside[SW_PHASE_COUNT] = {0};
    const struct sw__hot *hot = sw__hot_code(all);
    beside[SW_PHASE_OTHER] = hot->saving;
    const struct sw__hot_function *list =
        sw__hot_functions(all, SAVING_PHASES, SW__HOT_ANY, false, &count);
    for (size_t i = 0; i < count; i++) {
        if (saves(hot, &list[i])) {
            beside[SW_PHASE_OTHER] += list[i].by_phase[SW_PHASE_OTHER];
        }
    }
    return beside[SW_PHASE_OTHER] ? sw__hot_time(all, beside).mean : 0;
}

static void checkpoint(sw_findings *all)
{
    const double ns = (double)all->it.checkpoint_ns +
                      beside_saving(all) * (double)all->it.steps->counted;
    const double share = ns / (double)all->it.base_ns;
    const char *name;
    const uint64_t times = sw__phase_calls(all, SW_PHASE_CHECKPOINT, &name);
    if (!(share > CHECKPOINT_LEAST) || times < TIMES_LEAST) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_CHECKPOINT, "RULE-62");
    const struct sw__hot_function *at =
        sw__hot_where(all, draft, SW__PHASE_BIT(SW_PHASE_CHECKPOINT), true);
    sw__draft_title(all, draft, "%.0f %% of the time is saving state", share * 100);
    sw__draft_number(draft, "checkpoint_share", share);
    sw__draft_number(draft, "checkpoint_s", ns / 1e9);
    sw__draft_number(draft, "checkpoints", (double)times);
    sw__draft_number(draft, "checkpoint_each_ms", ns / (double)times / 1e6);
    sw__draft_number(draft, "steps_between",
                     (double)all->it.steps->counted / (double)times);
    draft->finding.share = share;
    draft->finding.confidence = 0.9;
    sw__draft_advise(all, draft, "Save a twentieth as often%s%s%s.", at ? " (" : "",
                     at ? sw__findings_format(all, "%s, line %u",
                                              sw__file_name(at->frame.file),
                                              at->frame.line)
                        : "",
                     at ? ")" : "");
    sw__draft_advise(all, draft,
                     "Copy the state and write it in a thread beside training "
                     "(torch.distributed.checkpoint.async_save), and to a fast disk.");
    sw__checkpoint_calls(all, draft);
    saves_aside(all, draft, SW_PHASE_CHECKPOINT, ns, less_often(20, times));
}

/* --- slow steps --- */

static uint64_t duration(const sw_summary_step *step)
{
    return step->end_ns - step->begin_ns;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

/* What the steps that are slow have in common. */
struct tail {
    double usual, bound, p95;
    double fast; /* what is longer than a tenth of them */
    size_t slow;
    size_t far; /* of them, FAR_TIMES the usual and more; neighbours are one event */
    double far_excess;               /* ns of these beyond the usual */
    double excess;                   /* ns of all slow steps beyond the usual */
    double by_phase[SW_PHASE_COUNT]; /* of that */
    double delay;                    /* they waited for a CPU, as far as known */
    uint64_t period;                 /* every so many steps; 0: no period */
};

static double usual_phase(const struct sw__case *it, unsigned phase, double *scratch)
{
    for (size_t i = 0; i < it->looked_count; i++) {
        scratch[i] = (double)it->looked[i].phase_ns[phase];
    }
    qsort(scratch, it->looked_count, sizeof *scratch, by_value);
    return it->looked_count ? scratch[it->looked_count / 2] : 0;
}

/* Of what slow steps have beyond the usual in phases that not all steps know, those that were looked at have at least this much of
 * their part by number: less does not tell how it divides in the others. */
#define TELLING 0.2

/* What slow steps have beyond the usual of each phase. Those that were watched in brief know it of some phases; the rest of what they
 * take beyond the usual is divided among the phases in which the others take longer, or is in none where hardly another is slow. */
static void find_phases(const struct sw__case *it, struct tail *tail, double *scratch)
{
    double usual[SW_PHASE_COUNT];
    double looked = 0,
           brief = 0;  /* ns beyond the usual, of phases that not all steps know */
    double inside = 0; /* what is usual and lies in data_wait of those in brief */
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        usual[p] = usual_phase(it, p, scratch);
        inside += it->inside & SW__PHASE_BIT(p) ? usual[p] : 0;
    }
    for (size_t i = 0; i < it->count; i++) {
        const sw_summary_step *step = &it->step[i];
        if ((double)duration(step) <= tail->bound) {
            continue;
        }
        double rest = (double)duration(step) - tail->usual;
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            const bool waits = step->brief && p == SW_PHASE_DATA_WAIT;
            const double more =
                (double)step->phase_ns[p] - usual[p] - (waits ? inside : 0);
            const bool known = SW_PHASES_ALWAYS >> p & 1;
            /* Those in brief have it in data_wait, where it was just counted. */
            const bool made = it->inside & SW__PHASE_BIT(p);
            tail->by_phase[p] += known || !step->brief ? more : 0;
            rest -= known || (made && !step->brief) ? more : 0;
        }
        *(step->brief ? &brief : &looked) += rest;
    }
    const uint64_t divided =
        ~(uint64_t)SW_PHASES_ALWAYS & ~it->inside & (SW__PHASE_BIT(SW_PHASE_COUNT) - 1);
    double longer = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        longer += divided & SW__PHASE_BIT(p) ? fmax(tail->by_phase[p], 0) : 0;
    }
    const double part = it->count ? (double)it->looked_count / (double)it->count : 0;
    if (!(brief > 0) || !(looked > 0) || looked < TELLING * part * (looked + brief) ||
        !(longer > 0)) {
        return;
    }
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        const bool grows = divided & SW__PHASE_BIT(p) && tail->by_phase[p] > 0;
        tail->by_phase[p] += grows ? brief * tail->by_phase[p] / longer : 0;
    }
}

enum { PERIOD_MOST = 500, PERIOD_STEPS = 4000 };

static double beyond(const struct sw__case *it, const struct tail *tail, size_t i)
{
    const double ns = (double)duration(&it->step[i]);
    return ns > tail->bound ? ns - tail->usual : 0;
}

/* The shortest period whose steps are nearly all slow, and have most of the excess; 0: none. Steps without records would
 * shift it: then none is looked for beyond them. */
static uint64_t find_period(const struct sw__case *it, const struct tail *tail)
{
    const size_t first = it->count > PERIOD_STEPS ? it->count - PERIOD_STEPS : 0;
    const size_t count = it->count - first;
    double all = 0;
    for (size_t i = first; i < it->count; i++) {
        all += beyond(it, tail, i);
    }
    for (size_t period = 2; period <= PERIOD_MOST && period * 4 <= count; period++) {
        for (size_t offset = 0; offset < period; offset++) {
            size_t due = 0;
            size_t slow = 0;
            double caught = 0;
            for (size_t i = first + offset; i < it->count; i += period) {
                const double excess = beyond(it, tail, i);
                due++;
                slow += excess > 0;
                caught += excess;
            }
            if (due >= 4 && slow * 10 >= due * 8 && caught > 0.7 * all) {
                return period;
            }
        }
    }
    return 0;
}

/* How much of the excess the slow steps waited for a CPU. Short steps share one reading of the kernel's counters, which the
 * last of them has. */
static double delay_of(const struct sw__case *it, const struct tail *tail)
{
    double delay = 0;
    for (size_t i = 0; i < it->count; i++) {
        const sw_summary_step *step = &it->step[i];
        if (step->run_delay_ns == SW_UNKNOWN || step->usage_steps == 0) {
            continue;
        }
        double excess = 0;
        for (uint64_t k = 0; k < step->usage_steps && k <= i; k++) {
            excess += beyond(it, tail, i - k);
        }
        const double waited = (double)step->run_delay_ns;
        delay += waited < excess ? waited : excess;
    }
    return delay;
}

static bool find_tail(const sw_findings *all, struct tail *tail)
{
    const struct sw__case *it = &all->it;
    double *scratch = sw__alloc_zero(it->count, sizeof *scratch);
    *tail = (struct tail){0};
    if (!scratch) {
        return false;
    }
    for (size_t i = 0; i < it->count; i++) {
        scratch[i] = (double)duration(&it->step[i]);
    }
    qsort(scratch, it->count, sizeof *scratch, by_value);
    tail->usual = scratch[it->count / 2];
    tail->p95 = scratch[(size_t)(0.95 * (double)(it->count - 1))];
    tail->fast = scratch[(size_t)(0.1 * (double)(it->count - 1))];
    tail->bound = SLOW_TIMES * tail->usual;
    find_phases(it, tail, scratch);
    sw__free(scratch);
    for (size_t i = 0; i < it->count; i++) {
        const sw_summary_step *step = &it->step[i];
        if ((double)duration(step) <= tail->bound) {
            continue;
        }
        tail->slow++;
        tail->excess += (double)duration(step) - tail->usual;
        if ((double)duration(step) > FAR_TIMES * tail->usual) {
            tail->far += i == 0 || (double)duration(step - 1) <= tail->bound;
            tail->far_excess += (double)duration(step) - tail->usual;
        }
    }
    tail->delay = delay_of(it, tail);
    tail->period = find_period(it, tail);
    return tail->slow > 0;
}

static double excess_of(const sw_summary_step *step, const void *context)
{
    const struct tail *tail = context;
    const double ns = (double)duration(step);
    return ns > tail->bound ? ns - tail->usual : 0;
}

/* What events that come by chance, of which `count` were seen, come to at least, as part of that: the lower end of Poisson's
 * interval of 95 % (Wilson and Hilferty). Batch means know nothing of so few. */
static double least_of(size_t count)
{
    const double n = (double)count;
    const double root = 1 - 1 / (9 * n) - 1.96 / (3 * sqrt(n));
    return count > 0 && root > 0 ? root * root * root : 0;
}

static bool tell(sw_findings *all, const enum sw_finding_kind *kinds, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        for (struct sw__draft *draft = all->first; draft; draft = draft->next) {
            if (draft->finding.kind == kinds[i]) {
                draft->finding.also |= (uint64_t)1 << SW_FINDING_VARIANCE;
                return true;
            }
        }
    }
    return false;
}
#define TELL(...)                                                                        \
    tell(all, (const enum sw_finding_kind[]){__VA_ARGS__},                               \
         sizeof((const enum sw_finding_kind[]){__VA_ARGS__}) /                           \
             sizeof(enum sw_finding_kind))

/* Whether a finding that is there already tells of the phase that grows; it then names this one too. */
static bool told(sw_findings *all, unsigned phase)
{
    switch (phase) {
    case SW_PHASE_DATA_WAIT:
    case SW_PHASE_PREPROCESS:
    case SW_PHASE_AUGMENT:
    case SW_PHASE_COLLATE:
        return TELL(SW_FINDING_LOADER_BURSTY, SW_FINDING_LOADER_WORKERS,
                    SW_FINDING_LOADER_RESTART, SW_FINDING_LOADER_TRANSFORM,
                    SW_FINDING_LOADER_COLLATE, SW_FINDING_LOADER_IO);
    case SW_PHASE_COMMUNICATION:
        return true; /* waiting for others, who have reasons of their own */
    case SW_PHASE_VALIDATION:
        return true; /* it has a rule of its own, and a share that it may have */
    case SW_PHASE_FORWARD:
        return TELL(SW_FINDING_VALIDATION); /* without eval() and no_grad() */
    case SW_PHASE_CHECKPOINT:
        return TELL(SW_FINDING_CHECKPOINT);
    case SW_PHASE_GC:
        return TELL(SW_FINDING_GC);
    case SW_PHASE_LOGGING:
        return TELL(SW_FINDING_LOGGING);
    case SW_PHASE_COMPILE:
        return TELL(SW_FINDING_RECOMPILE);
    case SW_PHASE_OTHER:
        return TELL(SW_FINDING_PYTHON_OVERHEAD, SW_FINDING_LOADER_MAIN_PROCESS,
                    SW_FINDING_LOGGING);
    default:
        return false;
    }
}

static bool told_by_others(const sw_findings *all)
{
    return sw__has_draft(all, SW_FINDING_LOGGING) ||
           sw__has_draft(all, SW_FINDING_LOADER_MAIN_PROCESS);
}

/* Takes a finding out that is about the slow steps and nothing else, for what they have in common says more. `name`: the function that
 * it has to be about; NULL: any. */
static bool take_over(sw_findings *all, enum sw_finding_kind kind, const char *name,
                      double share)
{
    for (struct sw__draft **at = &all->first; *at; at = &(*at)->next) {
        if ((*at)->finding.kind == kind) {
            const char *about = (*at)->finding.name;
            const bool same = share > 0.7 * (*at)->finding.share &&
                              (!name || (about && strcmp(about, name) == 0));
            *at = same ? (*at)->next : *at;
            return same;
        }
    }
    return false;
}

/* Whether the slow steps are those that update, where gradients of several steps are added up first: what comes with an update
 * has to come then, and in a run of several processes the exchange before it. */
static bool updates_then(const sw_findings *all, const struct tail *tail, unsigned phase)
{
    const double steps = (double)all->it.steps->count;
    const double updates = (double)all->it.steps->updates;
    const uint64_t with_update = SW__PHASE_BIT(SW_PHASE_BACKWARD) |
                                 SW__PHASE_BIT(SW_PHASE_OPTIMIZER) |
                                 SW__PHASE_BIT(SW_PHASE_ZERO_GRAD);
    if (!(with_update & SW__PHASE_BIT(phase)) || !(updates > 0) ||
        steps / updates < ADDED_LEAST) {
        return false;
    }
    /* By time: on a busy machine others are somewhat slow as well. */
    double excess = 0, whole = 0;
    for (size_t i = 0; i < all->it.looked_count; i++) {
        const double more = excess_of(&all->it.looked[i], tail);
        const bool update = all->it.looked[i].phase_ns[SW_PHASE_OPTIMIZER] > 0;
        excess += update ? more : 0;
        whole += more;
    }
    return excess > UPDATES_MOST * whole;
}

/* Of what long inputs take beyond the usual, the part that goes where the longest are limited, or batches are of similar sizes: one in a
 * batch makes all of it long, and as many batches as they fill when they are put together stay. */
static double put_together(const sw_findings *all, const struct tail *tail)
{
    const sw_training_loader *loader = all->it.loader;
    const uint64_t size = loader ? loader->batch_size : 0;
    if (size < 2 || size == SW_UNKNOWN) {
        return 0.95;
    }
    const double stay = (double)(tail->slow / size) / (double)tail->slow;
    return fmin(0.95, 1 - stay);
}

static void variance(sw_findings *all)
{
    struct tail tail;
    if (!find_tail(all, &tail)) {
        return;
    }
    unsigned phase = 0;
    for (unsigned p = 1; p < SW_PHASE_COUNT; p++) {
        phase = tail.by_phase[p] > tail.by_phase[phase] ? p : phase;
    }
    if (phase == SW_PHASE_OTHER &&
        beside_saving(all) > 0.3 * tail.by_phase[phase] / (double)all->it.count) {
        phase = SW_PHASE_CHECKPOINT; /* Both grow in the same steps. */
        tail.by_phase[phase] += tail.by_phase[SW_PHASE_OTHER];
    }
    const uint64_t compute = SW__COMPUTE_PHASES;
    double grown = tail.by_phase[phase];
    for (unsigned p = 0; compute & SW__PHASE_BIT(phase) && p < SW_PHASE_COUNT; p++) {
        /* What makes one of them long makes the others long, too. */
        grown += p != phase && compute & SW__PHASE_BIT(p) && tail.by_phase[p] > 0
                     ? tail.by_phase[p]
                     : 0;
    }
    const double concentrated = grown / tail.excess;
    const struct sw__estimate excess = sw__case_mean(&all->it, excess_of, &tail);
    const double step = all->it.mean_ns;
    const bool periodic = tail.period > 0 && concentrated > 0.5 &&
                          excess.mean / step > EXCESS_PERIODIC_LEAST;
    /* Without a period it may be the machine: then all phases grow, and steps wait for a CPU. */
    const double delayed = excess.low / step > 0.25 ? 0.5 : 0.2;
    /* Where the usual step is as much longer than the fast ones as slow ones are than it, none is usual: inputs are of all sizes, and
     * no few of them stand out. */
    const bool stand_out = tail.usual < SLOW_TIMES * tail.fast;
    const bool heavy = stand_out && tail.p95 > 2 * step && tail.slow >= 8 &&
                       concentrated > 0.7 && tail.delay < delayed * tail.excess &&
                       excess.low / step > EXCESS_LEAST;
    /* A few that are very long, where nothing but what they compute is: inputs of another size. */
    const double far_low =
        least_of(tail.far) * tail.far_excess / (double)all->it.count / step;
    const bool far = stand_out && tail.far >= FAR_LEAST &&
                     compute & SW__PHASE_BIT(phase) && concentrated > 0.9 &&
                     tail.delay < 0.1 * tail.excess && far_low > EXCESS_LEAST;
    /* Where calls return early, one that waits now and then waits for many: for a value, or for room among those that were handed
     * out, which is told from what they take to compute. */
    const uint64_t waiting = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_SYNC) |
                             SW__PHASE_BIT(SW_PHASE_OPTIMIZER);
    if ((!periodic && !heavy && !far) || updates_then(all, &tail, phase) ||
        (waiting & SW__PHASE_BIT(phase) && sw__is_asynchronous(all)) ||
        sw__computes_throughout(all)) {
        return;
    }
    struct sw__slow_code code = {0};
    const bool seen = sw__slow_code(all, tail.bound, &code);
    const bool apart = periodic && seen && phase == SW_PHASE_OTHER;
    /* What a batch needs is done for each of them. */
    const bool no_batch = apart && take_over(all, SW_FINDING_LOADER_MAIN_PROCESS,
                                             code.name, excess.mean / step);
    const bool python =
        apart && !told_by_others(all) &&
        take_over(all, SW_FINDING_PYTHON_OVERHEAD, NULL, excess.mean / step);
    const bool instead = no_batch || python;
    if (!instead && told(all, phase)) {
        return;
    }
    /* The same work: samples tell roughly how long it takes, and these steps exactly. */
    const bool again =
        periodic && seen &&
        take_over(all, SW_FINDING_REDUNDANT_WORK, code.name, excess.mean / step);
    const enum sw_finding_kind kind =
        seen ? sw__kind_by_name(code.name) : SW_FINDING_VARIANCE;
    struct sw__draft *draft =
        sw__draft(all, kind, kind == SW_FINDING_VARIANCE ? "RULE-61" : "RULE-62");
    if (kind != SW_FINDING_VARIANCE) {
        draft->finding.also |= (uint64_t)1 << SW_FINDING_VARIANCE;
    }
    if (instead) {
        draft->finding.also |= (uint64_t)1 << (no_batch ? SW_FINDING_LOADER_MAIN_PROCESS
                                                        : SW_FINDING_PYTHON_OVERHEAD);
    }
    if (again) {
        draft->finding.also |= (uint64_t)1 << SW_FINDING_REDUNDANT_WORK;
        sw__draft_rule(draft, "RULE-44");
    }
    const char *name = sw_phase_name(phase);
    if (periodic && seen) {
        sw__draft_title(all, draft, "Every %llu steps %s makes one %.0f times as long",
                        (unsigned long long)tail.period, code.name,
                        1 + tail.excess / (double)tail.slow / tail.usual);
    } else if (periodic) {
        sw__draft_title(all, draft,
                        "Every %llu steps one is %.0f times as long, in phase %s",
                        (unsigned long long)tail.period,
                        1 + tail.excess / (double)tail.slow / tail.usual, name);
    } else if (!heavy) {
        sw__draft_title(all, draft,
                        "%zu of %zu steps are more than %.0f times as long, in phase %s",
                        tail.far, all->it.count, FAR_TIMES, name);
    } else {
        sw__draft_title(all, draft,
                        "%zu of %zu steps are more than twice as long, in phase %s",
                        tail.slow, all->it.count, name);
    }
    sw__draft_number(draft, "slow_steps", (double)tail.slow);
    sw__draft_number(draft, "usual_ms", tail.usual / 1e6);
    sw__draft_number(draft, "p95_ms", tail.p95 / 1e6);
    sw__draft_number(draft, "excess_ms_per_slow_step",
                     tail.excess / (double)tail.slow / 1e6);
    sw__draft_number(draft, "excess_share", excess.mean / step);
    sw__draft_number(draft, "phase_part", concentrated);
    sw__draft_number(draft, "period_steps", tail.period ? (double)tail.period : NAN);
    draft->finding.share = excess.mean / step;
    draft->finding.confidence = periodic ? 0.85 : 0.6;
    draft->apart = periodic && kind == SW_FINDING_VARIANCE;
    const struct sw__hot_function *at =
        seen ? NULL : sw__hot_where_called(all, draft, SW__PHASE_BIT(phase));
    if (compute & SW__PHASE_BIT(phase)) {
        sw__draft_advise(all, draft,
                         "If inputs differ in size, limit the longest, or make batches "
                         "of similar sizes: a batch is padded to the longest in it.");
    }
    if (seen) {
        sw__draft_where(all, draft, code.file, code.line, code.name);
        sw__draft_advise(
            all, draft,
            "%s, line %u of %s, is what those steps do and others do not: do "
            "it less often, in a thread, or in the workers.",
            code.name, code.line, sw__file_name(code.file));
    } else if (at) {
        sw__draft_advise(
            all, draft,
            "Look at what %s, line %u of %s, does in those steps: do it less "
            "often, in a thread, or in the workers.",
            at->frame.name, at->frame.line, sw__file_name(at->frame.file));
    } else {
        sw__draft_advise(all, draft,
                         "Look at what the program does in phase %s of "
                         "those steps.",
                         name);
    }
    /* What they took is known; how it would be next time is not, but not by so much. */
    struct sw__estimate range = excess;
    range.high = range.high < 1.15 * range.mean ? range.high : 1.15 * range.mean;
    range.low = far && far_low * step > range.low ? far_low * step : range.low;
    const bool sizes = !periodic && compute & SW__PHASE_BIT(phase);
    sw__draft_saves_in_steps(all, draft, range, sizes ? put_together(all, &tail) : 0.95,
                             0.5, 1);
    for (struct sw__draft *other = all->first; other; other = other->next) {
        if (other->finding.kind == SW_FINDING_REDUNDANT_WORK) {
            /* The same work: now and then, if it is this one that gains more. */
            other->group = SW__GROUP_HOST;
            draft->group = SW__GROUP_HOST;
        }
    }
}

void sw__rules_aside(sw_findings *all)
{
    validation(all);
    checkpoint(all);
    variance(all);
    if (!sw__has_draft(all, SW_FINDING_VARIANCE)) {
        sw__rules_metrics(all);
    }
}
