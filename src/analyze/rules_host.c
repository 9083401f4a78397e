/* Rules: what the host does besides computing. The program's own Python code, work on batches in the training process,
 * logging, and the garbage collector; rules_waits.c has waits and copies. */
#include <math.h>
#include <string.h>

#include <stepwatch/monitor.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/source_inputs.h"
#include "analyze/summary.h"

/* Less than this share of the steps' time is not worth a finding. */
#define PYTHON_LEAST 0.03
#define BATCH_LEAST 0.05
#define ASYNCHRONOUS_LEAST 0.2 /* where it may be hidden */
#define LOGGING_LEAST 0.03
/* What the rest of a step waits for the threads of loggers, of a step: less is little. */
#define WAITS_LEAST 0.03
#define GC_LEAST 0.01
/* Fewer samples show nothing. */
#define SAMPLES_LEAST 50
/* A function that is more than this in the interpreter itself is Python, not calls of something small. */
#define MOSTLY_PYTHON 0.4
/* One without a loop that is less than this in the interpreter works on a sample with native calls. */
#define MOSTLY_NATIVE 0.2
/* The same inside the model, where calls of layers have some by themselves. */
#define PYTHON_IN_MODEL 0.65
/* Of calls of packages from such a function, what goes with it. */
#define CALLS_GONE 0.8
/* Of a step that is nothing but such code, what its replacement takes: as a rule, and at least. */
#define STAYS 0.12
#define STAYS_LEAST 0.03
/* Moving work gains nearly what making it cheaper would: then it is moved. Sooner where there are workers that it belongs to. */
#define TELL_WORK 0.9
#define TELL_WORK_TO_WORKERS 0.75
/* Share of a step that waits for batches, from which on workers have no time left. */
#define WORKERS_BUSY 0.1
#define CALLS_TOLD 0.05 /* of a step: worth a word in the title */

static double percent(double share)
{
    return share * 100;
}

/* --- the program's own Python code --- */

static uint64_t python_phases(const sw_findings *all)
{
    const uint64_t phases = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OTHER) |
                            SW__PHASE_BIT(SW_PHASE_ZERO_GRAD);
    return sw__batches_made_inside(all) ? phases : phases | SW__BATCH_PHASES;
}

/* Small operations of the framework, called one by one inside the model, or to make what the backward goes through, are
 * another finding (launch_bound). Operators of tensors look like the interpreter's where they are short: the number of nodes
 * that they left tells. */
static bool calls_operations(sw_findings *all, const struct sw__hot_function *function)
{
    uint64_t compute = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        compute += SW__COMPUTE_PHASES & SW__PHASE_BIT(p) ? function->own_by_phase[p] : 0;
    }
    const double nodes = sw__setting_number(all, "autograd", "nodes");
    if (nodes >= SW__NODES_LEAST &&
        2 * (compute > function->between ? compute : function->between) > function->own &&
        sw__hot_time(all, function->own_by_phase).mean < nodes * SW__NODE_MADE_NS) {
        return true;
    }
    return 2 * compute > function->own &&
           (double)function->interpreted < PYTHON_IN_MODEL * (double)function->own;
}

/* Interpreter time of the functions that matter, by phase; `calls`: of packages that they call outside the model. `*top`: the one with
 * most. */
#define CALLED_PHASES (SW__PHASE_BIT(SW_PHASE_OTHER) | SW__BATCH_PHASES)
static void sum_python(sw_findings *all, uint64_t sum[SW_PHASE_COUNT],
                       uint64_t calls[SW_PHASE_COUNT],
                       const struct sw__hot_function **top, size_t *functions)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, python_phases(all), SW__HOT_ANY, false, &count);
    /* Smaller ones add up to something in every program, and none of them is worth a change. */
    const double least = PYTHON_LEAST * (double)sw__hot_code(all)->samples;
    *top = NULL;
    *functions = 0;
    for (size_t i = 0; i < count; i++) {
        if ((double)list[i].own < least || !sw__hot_interpreted(all, &list[i]) ||
            calls_operations(all, &list[i])) {
            continue;
        }
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            const uint64_t own = list[i].own_by_phase[p];
            const uint64_t called = list[i].by_phase[p] - own;
            sum[p] += own;
            /* No more than that: beyond it the calls are what the function is there for. */
            calls[p] +=
                CALLED_PHASES & SW__PHASE_BIT(p) ? (called < own ? called : own) : 0;
        }
        *top = !*top || list[i].own > (*top)->own ? &list[i] : *top;
        (*functions)++;
    }
}

/* Whether a loop goes through the parameters of a model, as its source reads: then it is the update, written by hand. */
static bool goes_through_parameters(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    struct sw__source_line head;
    const bool does =
        source.loop > 0 &&
        sw__source_line_get(source.text, source.length, source.loop, &head) &&
        memmem(head.text, head.length, "param", 5) != NULL;
    sw__frame_source_free(&source);
    return does;
}

/* An update that nobody calls an optimizer: operations on one parameter after the other. */
bool sw__update_by_hand(sw_findings *all, const struct sw__hot_function *top,
                        struct sw__estimate time)
{
    const sw_stack_frame *at = &top->frame;
    if (!goes_through_parameters(at)) {
        return false;
    }
    const double share = time.mean / all->it.mean_ns;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_OPTIMIZER, "RULE-23");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is a loop over parameters in %s (%s:%u)",
                    percent(share), at->name, sw__file_name(at->file), at->line);
    sw__draft_number(draft, "optimizer_ms", time.mean / 1e6);
    sw__draft_number(draft, "optimizer_share", share);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = share;
    draft->finding.confidence = 0.75;
    sw__draft_advise(
        all, draft,
        "The loop over parameters in %s, line %u of %s, makes several "
        "operations for each: use torch._foreach_* functions on the list, or an "
        "optimizer of torch.optim with fused=True or foreach=True.",
        at->name, at->line, sw__file_name(at->file));
    sw__draft_saves_in_steps(all, draft, time, 0.85, 0.5, 0.98);
    return true;
}

/* That a function learns nothing is said of it already; that it is Python says what to do about it. */
static void tell_once(sw_findings *all, struct sw__draft *python)
{
    for (struct sw__draft **at = &all->first; *at;) {
        struct sw__draft *other = *at;
        const sw_finding *finding = &other->finding;
        if (finding->kind == SW_FINDING_REDUNDANT_WORK && finding->name &&
            finding->file && python->finding.name && python->finding.file &&
            strcmp(finding->name, python->finding.name) == 0 &&
            strcmp(finding->file, python->finding.file) == 0) {
            python->finding.also |= finding->also | (uint64_t)1
                                                        << SW_FINDING_REDUNDANT_WORK;
            sw__draft_advise(all, python, "%s", finding->advice[0]);
            *at = other->next;
        } else {
            at = &other->next;
        }
    }
}

static struct sw__draft *python_overhead(sw_findings *all)
{
    uint64_t sum[SW_PHASE_COUNT] = {0};
    const struct sw__hot_function *top;
    size_t functions;
    uint64_t calls[SW_PHASE_COUNT] = {0};
    sum_python(all, sum, calls, &top, &functions);
    const struct sw__estimate time = sw__hot_time(all, sum);
    const double step = all->it.mean_ns;
    if (!top || !(time.low / step > PYTHON_LEAST)) {
        return NULL;
    }
    if (sw__update_by_hand(all, top, time)) {
        return NULL;
    }
    const double beside = sw__computed_meanwhile(all);
    if (beside > 0 && step - beside < PYTHON_LEAST * step) {
        return NULL; /* it is hidden */
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_PYTHON_OVERHEAD, "RULE-48");
    draft->group = sw__asks_device(all, &top->frame) ? SW__GROUP_HOST : SW__GROUP_NONE;
    sw__draft_rule(draft, "RULE-01");
    const sw_stack_frame *at = &top->frame;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    const double calls_ns = sw__hot_time(all, calls).mean;
    const double called = calls_ns > 0 ? calls_ns : 0;
    if (called / step > CALLS_TOLD) {
        sw__draft_title(all, draft,
                        "%.0f %% of a step is Python code in %s (%s:%u), %.0f %% more is "
                        "what it calls",
                        percent(time.mean / step), at->name, sw__file_name(at->file),
                        at->line, percent(called / step));
    } else {
        sw__draft_title(all, draft, "%.0f %% of a step is Python code in %s (%s:%u)",
                        percent(time.mean / step), at->name, sw__file_name(at->file),
                        at->line);
    }
    const struct sw__estimate own = sw__hot_time(all, top->own_by_phase);
    const double interpreted = (double)top->interpreted / (double)top->own;
    sw__draft_number(draft, "python_ms", time.mean / 1e6);
    sw__draft_number(draft, "python_share", time.mean / step);
    sw__draft_number(draft, "function_ms", own.mean / 1e6);
    sw__draft_number(draft, "called_ms", called / 1e6);
    sw__draft_number(draft, "interpreter_share", interpreted);
    sw__draft_number(draft, "functions", (double)functions);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = time.count >= 100 ? 0.9 : 0.75;
    if (sw__hot_loop(all, at) == SW__LOOP_NONE) {
        sw__draft_advise(all, draft,
                         "%s, line %u of %s, is called over and over in a step, each "
                         "time for little: do it once for all of it, with operations on "
                         "whole arrays or tensors.",
                         at->name, at->line, sw__file_name(at->file));
    } else if (interpreted >= MOSTLY_PYTHON) {
        sw__draft_advise(
            all, draft,
            "Rewrite the loop in %s, line %u of %s, with operations on whole "
            "arrays or tensors.",
            at->name, at->line, sw__file_name(at->file));
    } else {
        sw__draft_advise(all, draft,
                         "%s, line %u of %s, calls something small over and over: do it "
                         "with one operation on the whole batch.",
                         at->name, at->line, sw__file_name(at->file));
    }
    sw__draft_advise(all, draft,
                     "If it must stay Python, do it in the loader's workers, or not in "
                     "every step; `stepwatch run --lines` shows its lines.");
    /* What takes its place costs something; the others may have other reasons. What a loop calls goes with it. */
    struct sw__estimate range = time;
    range.mean += CALLS_GONE * called;
    range.high += called;
    range.low = own.low < time.low ? own.low : time.low;
    /* Where there is little else in a step, what it computes is in there too, and stays. */
    range.mean = fmin(range.mean, (1 - STAYS) * step);
    range.high = fmin(range.high, (1 - STAYS_LEAST) * step);
    if (beside > 0) {
        /* Waiting for it takes the place of the code. Several cores may share it once they are free. */
        const double cores = all->it.cores > 1 ? all->it.cores : 1;
        sw__draft_number(draft, "computed_beside_ms", beside / 1e6);
        range.mean = fmin(range.mean, fmax(step - beside, 0));
        range.low = fmin(range.low, range.mean);
        range.high = fmin(range.high, fmax(step - beside / cores, 0));
    }
    sw__draft_saves_in_steps(all, draft, range, 0.98, 0.75, 1);
    tell_once(all, draft);
    return draft;
}

/* --- work on batches in the training process --- */

static bool on_batches(const sw_findings *all, const struct sw__hot_line *line)
{
    if (line->outside || line->as == SW__HOT_TOLD ||
        sw__copies_to_device(all, line->frame) || 2 * line->follows > line->samples) {
        return false; /* … or nobody can do it ahead */
    }
    if (SW__BATCH_PHASES & SW__PHASE_BIT(line->phase)) {
        return !sw__batches_made_inside(all);
    }
    return line->as == SW_PHASE_OTHER && line->when == SW__HOT_BEFORE;
}

/* Whether a function, called for one sample after the other, does with native calls what has to be done for each: it has no loop
 * that could become one operation, and workers can do it as well. */
static bool works_on_samples(sw_findings *all, const struct sw__hot_function *function)
{
    return (double)function->interpreted < MOSTLY_NATIVE * (double)function->own &&
           sw__hot_loop(all, &function->frame) == SW__LOOP_NONE;
}

/* Of the samples on batches, those that are the interpreter's own. */
static uint64_t interpreted_on_batches(sw_findings *all)
{
    size_t count;
    uint64_t sum = 0;
    const struct sw__hot_function *list =
        sw__hot_functions(all, SW__PHASE_BIT(SW_PHASE_OTHER) | SW__BATCH_PHASES,
                          SW__HOT_ANY, false, &count);
    const struct sw__hot *hot = sw__hot_code(all);
    for (size_t i = 0; i < count; i++) {
        if (!sw__hot_interpreted(all, &list[i]) || works_on_samples(all, &list[i])) {
            continue;
        }
        for (size_t k = 0; k < hot->count; k++) {
            const struct sw__hot_line *line = &hot->lines[k];
            if (on_batches(all, line) &&
                line->frame->first_line == list[i].frame.first_line &&
                strcmp(line->frame->name, list[i].frame.name) == 0) {
                sum += line->own;
            }
        }
    }
    return sum;
}

/* Whether this is JAX without a loader that could have workers, on two cores at most: then one thread or process makes the next batch
 * beside the step, and hands over all of it. Two of them gained no more where that was measured. */
static bool made_by_one(const sw_findings *all)
{
    return !all->it.loader && sw__fact(all, "jax_backend") != NULL &&
           !(all->it.cores > 2);
}

/* What takes the place of a step once workers do that work: the slowest of training, producing, and all cores together. */
static struct sw__estimate moved_to_workers(const sw_findings *all,
                                            struct sw__estimate work)
{
    const struct sw__case *it = &all->it;
    const double cores = isnan(it->cores) ? 2 : it->cores;
    const double period = sw__worker_period(all);
    const double workers = it->loader && it->loader->worker_count
                               ? (double)it->loader->worker_count
                           : made_by_one(all) ? 1
                           : cores > 2        ? cores - 1
                                              : cores;
    const double slower =
        made_by_one(all) ? sw__loader_sharing(1 + workers, cores, SW__GUESS_MIDDLE) : 1;
    const double wait = isnan(it->wait_share) ? 0 : it->wait_share * it->mean_ns;
    struct sw__estimate saved = work;
    double *const each[] = {&saved.mean, &saved.low, &saved.high};
    for (unsigned i = 0; i < 3; i++) {
        const double ns = *each[i];
        const double alone = it->mean_ns - ns;
        const double produced = period + ns / workers;
        const double shared = (it->mean_ns - wait + period * workers) / cores;
        double after = slower * (alone > produced ? alone : produced);
        after = after > shared ? after : shared;
        *each[i] = after < it->mean_ns ? it->mean_ns - after : 0;
    }
    return saved;
}

static bool depends_on_model(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool depends = source.text && sw__source_uses_model(source.text, source.length,
                                                              at->first_line, at->line);
    sw__frame_source_free(&source);
    return depends;
}

/* What is left of waiting for batches: several at once are waited for no longer than the rest of the step takes. Where threads
 * of the program ask for them already, they can only work ahead. */
static struct sw__estimate waited_at_once(sw_findings *all, struct sw__estimate time,
                                          bool pooled)
{
    const double step = all->it.mean_ns;
    double rest = step - time.mean;
    if (!pooled) {
        const double left = time.mean / SW__IO_AT_ONCE;
        time.low *= 0.5;
        time.mean = step - (left > rest ? left : rest);
        return time;
    }
    if (sw__is_asynchronous(all)) { /* what was begun is computed meanwhile */
        rest -= sw__case_phases(&all->it, SW__PHASE_BIT(SW_PHASE_SYNC)).mean;
    }
    rest = rest > 0 ? rest : 0;
    time.mean = time.mean < rest ? time.mean : rest;
    time.low = 0;
    return time;
}

/* What the loop does before it calls the model is waiting, and not work. */
static void waits_for_batch(sw_findings *all, const sw_stack_frame *at,
                            struct sw__estimate time, double waiting, bool pooled)
{
    const double share = time.mean / all->it.mean_ns;
    if (sw__computes_throughout(all)) {
        return; /* it waits for what it handed out */
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOADER_IO, "RULE-06");
    sw__draft_rule(draft, "RULE-02");
    draft->group = SW__GROUP_LOADER;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%s waits for files or the network, and training waits for it: %.0f "
                    "%% of a step",
                    at->name, percent(share));
    sw__draft_number(draft, "waiting_share", waiting);
    sw__draft_number(draft, "wait_ms", time.mean / 1e6);
    sw__draft_number(draft, "wait_share", share);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = share;
    draft->finding.confidence = time.count >= 100 ? 0.8 : 0.65;
    if (pooled) {
        sw__draft_advise(all, draft,
                         "Threads ask for many at once already: let them begin with the "
                         "next batch while this one is trained on (%s, line %u).",
                         sw__file_name(at->file), at->line);
    } else {
        sw__draft_advise(all, draft,
                         "Ask for many at once: let threads run %s (%s, line %u) ahead "
                         "for the next batches while this one is trained on. The "
                         "prediction is for %d at once.",
                         at->name, sw__file_name(at->file), at->line, SW__IO_AT_ONCE);
    }
    sw__draft_advise(all, draft,
                     "Keep what is read again in memory, or on a local disk.");
    const struct sw__estimate saved = waited_at_once(all, time, pooled);
    /* What is left is waiting, which gets no faster by itself. */
    const double least = pooled ? 0 : time.mean / SW__IO_AT_ONCE;
    sw__draft_saves_down_to(all, draft, sw__saved_per_step(all, saved.mean),
                            sw__saved_per_step(all, saved.low),
                            sw__saved_per_step(all, saved.high),
                            sw__saved_per_step(all, least));
}

/* Whether a line of the loop is its head: what it calls there makes the batches. */
static bool is_head(const sw_stack_frame *loop)
{
    if (!loop) {
        return false;
    }
    struct sw__frame_source source = sw__frame_source(loop);
    const bool head = source.line.text && sw__source_is_loop(&source.line);
    sw__frame_source_free(&source);
    return head;
}

/* One line takes most of what the loop asks its batches from, over and over for each: cheaper code gains more than moving it. */
static bool line_makes_batches(sw_findings *all, const struct sw__hot_line *top,
                               uint64_t samples, double moved)
{
    uint64_t sum[SW_PHASE_COUNT] = {0};
    sum[top->phase] = top->samples;
    const struct sw__estimate time = sw__hot_time(all, sum);
    const sw_share share = sw_share_of(top->samples, samples);
    const struct sw__hot_function made = {.frame = *top->frame,
                                          .own = top->own,
                                          .interpreted = top->interpreted,
                                          .repeated = top->repeated};
    if (!(share.low > 0.5) || !is_head(top->loop) || !(0.9 * time.mean > moved) ||
        !sw__hot_by_pieces(all, &made)) {
        return false;
    }
    const sw_stack_frame *at = top->frame;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOADER_TRANSFORM, "RULE-38");
    draft->group = SW__GROUP_LOADER;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%s makes batches while training waits: %.0f %% of a step, most of "
                    "it one line (%s:%u)",
                    at->name, percent(time.mean / all->it.mean_ns),
                    sw__file_name(at->file), at->line);
    sw__draft_number(draft, "stage_share", share.share);
    sw__draft_number(draft, "work_ms", time.mean / 1e6);
    sw__draft_number(draft, "work_share", time.mean / all->it.mean_ns);
    sw__draft_number(draft, "samples", (double)samples);
    draft->finding.share = time.mean / all->it.mean_ns;
    draft->finding.confidence = time.count >= 100 ? 0.8 : 0.65;
    sw__draft_advise(all, draft,
                     "Make line %u of %s cheaper: do it for the whole batch at once, or "
                     "once beforehand. The prediction is for a tenth of its time.",
                     at->line, sw__file_name(at->file));
    sw__draft_advise(all, draft,
                     "The training thread makes the batches itself: make the next one "
                     "in another process while this one is trained on.");
    sw__draft_saves_in_steps(all, draft, time, 0.9, 0.5, 1);
    return true;
}

/* Whether there are workers, who have time left: what is done with their batches afterwards could be theirs. */
static bool workers_wait(const sw_findings *all)
{
    return all->it.loader && all->it.loader->worker_count > 0 &&
           !(all->it.wait_share > WORKERS_BUSY);
}

/* Of Python code and work on batches that are one and the same, one is told: the work, unless moving it gains less. */
static void tell_work(sw_findings *all, struct sw__draft *work, struct sw__draft *python)
{
    const sw_finding *finding = &python->finding;
    bool same = false;
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, python_phases(all), SW__HOT_BEFORE, false, &count);
    for (size_t i = 0; i < count && !same; i++) {
        same = finding->name && strcmp(list[i].frame.name, finding->name) == 0 &&
               strcmp(list[i].frame.file, finding->file) == 0 &&
               (workers_wait(all) || works_on_samples(all, &list[i]));
    }
    if (!same) {
        return;
    }
    struct sw__draft *told = work, *left = python;
    const double least = workers_wait(all) ? TELL_WORK_TO_WORKERS : TELL_WORK;
    if (work->finding.speedup < least * finding->speedup) {
        told = python;
        left = work;
    }
    told->finding.also |= (uint64_t)1 << left->finding.kind;
    for (struct sw__draft **at = &all->first; *at; at = &(*at)->next) {
        if (*at == left) {
            *at = left->next;
            return;
        }
    }
}

static void loader_main_process(sw_findings *all, struct sw__draft *python)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const struct sw__hot_line *top = NULL;
    uint64_t sum[SW_PHASE_COUNT] = {0};
    uint64_t samples = 0, waiting = 0, pooled = 0;
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (on_batches(all, line)) {
            pooled += line->pooled;
            sum[line->phase] += line->samples;
            samples += line->samples;
            waiting += line->waiting;
            top = !top || line->samples > top->samples ? line : top;
        }
    }
    const struct sw__estimate time = sw__hot_time(all, sum);
    const double step = all->it.mean_ns;
    if (!top || !(time.low / step > BATCH_LEAST)) {
        return;
    }
    if (sw__is_asynchronous(all)) {
        /* The device may compute meanwhile. Not while it is waited for in every step: then that is the reason. Without a core
         * of its own nobody can tell. */
        for (struct sw__draft *sync = all->first; sync; sync = sync->next) {
            if (sync->finding.kind == SW_FINDING_HOST_SYNC) {
                sync->finding.also |= (uint64_t)1 << SW_FINDING_LOADER_MAIN_PROCESS;
                return;
            }
        }
        if (!(time.low / step > ASYNCHRONOUS_LEAST) || !(sw__core_wait(all) < 0.3)) {
            return;
        }
    }
    if (top->loop && depends_on_model(top->loop)) {
        return; /* nobody can do it ahead */
    }
    if (sw_share_of(waiting, samples).low > 0.5) {
        waits_for_batch(all, top->frame, time, (double)waiting / (double)samples,
                        2 * pooled > waiting);
        return;
    }
    if (python && !workers_wait(all) && 2 * interpreted_on_batches(all) > samples) {
        /* Making it fast gains more than moving it. */
        python->finding.also |= (uint64_t)1 << SW_FINDING_LOADER_MAIN_PROCESS;
        return;
    }
    struct sw__estimate saved = moved_to_workers(all, time);
    const double computed = sw__computed_meanwhile(all);
    if (computed > 0) {
        saved.mean = fmin(saved.mean, fmax(step - computed, 0));
        saved.low = fmin(saved.low, saved.mean);
        if (saved.mean < BATCH_LEAST * step) {
            return; /* it is hidden */
        }
    }
    if (line_makes_batches(all, top, samples, saved.mean)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOADER_MAIN_PROCESS, "RULE-29");
    sw__draft_rule(draft, "RULE-02");
    const sw_stack_frame *at = top->entry ? top->entry : top->frame;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is work on the batch in the training process, in "
                    "%s (%s:%u)",
                    percent(time.mean / step), at->name, sw__file_name(at->file),
                    at->line);
    sw__draft_number(draft, "work_ms", time.mean / 1e6);
    sw__draft_number(draft, "work_share", time.mean / step);
    sw__draft_number(draft, "samples", (double)samples);
    sw__draft_number(draft, "workers",
                     all->it.loader ? (double)all->it.loader->worker_count : NAN);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = time.count >= 100 ? 0.8 : 0.65;
    if (made_by_one(all)) {
        sw__draft_advise(
            all, draft,
            "Let a thread or a process of its own do what line %u of %s does "
            "for the next batch while this one is computed.",
            at->line, sw__file_name(at->file));
    } else {
        sw__draft_advise(
            all, draft,
            "Do what line %u of %s does in the dataset or in collate_fn%s, so "
            "that workers do it while the step before is computed.",
            at->line, sw__file_name(at->file),
            all->it.loader && all->it.loader->worker_count ? ""
                                                           : ", with num_workers > 0");
    }
    sw__draft_advise(all, draft,
                     "If it is the same for every epoch, do it once before training.");
    /* Done once beforehand, it costs nothing; cores that are free then may share what is computed. */
    const double cores = all->it.cores > 1 ? all->it.cores : 1;
    saved.high = fmax(saved.mean, fmin(time.high, step - computed / cores));
    if (computed > 0) {
        sw__draft_number(draft, "computed_beside_ms", computed / 1e6);
    }
    sw__draft_saves(all, draft, sw__saved_per_step(all, saved.mean),
                    0.6 * sw__saved_per_step(all, saved.low),
                    sw__saved_per_step(all, saved.high));
    if (python) {
        tell_work(all, draft, python);
    }
}

/* --- logging --- */

/* What loggers do of which no section tells. */
static struct sw__estimate unseen_logging(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    uint64_t sum[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (line->as == SW_PHASE_LOGGING && line->phase != SW_PHASE_LOGGING &&
            !line->outside) {
            sum[line->phase] += line->samples;
        }
    }
    return sw__hot_time(all, sum);
}

static void logging_in_steps(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_LOGGING);
    struct sw__estimate time = sw__phase_time(all, phase);
    const struct sw__estimate unseen = unseen_logging(all);
    const double step = all->it.mean_ns;
    time.mean += unseen.mean;
    time.low += unseen.low;
    time.high += unseen.high;
    const double share = time.mean / step;
    if (!(time.low / step > LOGGING_LEAST)) {
        return;
    }
    const char *name;
    const uint64_t calls = sw__phase_calls(all, SW_PHASE_LOGGING, &name);
    const bool seen = 2 * unseen.mean < time.mean;
    const double per_step = (double)calls / (double)all->it.steps->count;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOGGING, "RULE-54");
    sw__draft_rule(draft, "RULE-44");
    const struct sw__hot_function *at = sw__hot_where(all, draft, phase, false);
    name = seen ? name : at ? at->frame.name : NULL;
    sw__draft_title(all, draft, "%.0f %% of a step is logging%s%s", percent(share),
                    name ? ", most of it " : "", name ? name : "");
    sw__draft_number(draft, "logging_ms", time.mean / 1e6);
    sw__draft_number(draft, "logging_share", share);
    sw__draft_number(draft, "calls_per_step", seen ? per_step : NAN);
    draft->finding.share = share;
    draft->finding.confidence = seen ? 0.95 : 0.8;
    const double n = sw__log_every(share);
    if (at) {
        sw__draft_advise(all, draft,
                         "Log every %.0f steps in %s, line %u, not in every one.", n,
                         sw__file_name(at->frame.file), at->frame.line);
    } else {
        sw__draft_advise(all, draft, "Log every %.0f steps, not in every one.", n);
    }
    sw__draft_advise(all, draft,
                     "Gather values in a list or a tensor, and write them together.");
    /* Loggers write in threads of their own, and libraries compute for them in others: what the rest of a step waits for those
     * goes with them. */
    const double waits = sw__core_wait_of_own(all) * fmax(0, step - time.mean);
    if (waits > WAITS_LEAST * step) {
        sw__draft_number(draft, "waiting_for_threads_ms", waits / 1e6);
        time.mean += waits;
        time.high += waits;
    }
    sw__draft_saves_in_steps(all, draft, time, 1 - 1 / n, 0.8, 1);
}

/* --- the garbage collector --- */

struct collections {
    uint64_t count, full;
};

static struct collections count_collections(const sw_findings *all)
{
    struct collections sum = {0};
    const sw_summary *summary = all->it.summary;
    sw_trace *trace = sw__step_trace(summary);
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_GC};
    if (sw_cursor_open(&cursor, &trace, 1, &filter, NULL) == SW_OK) {
        sw_event event;
        while (sw_cursor_next(cursor, &event) == SW_OK) {
            const sw_record_gc *gc = (const sw_record_gc *)(const void *)event.record;
            sum.count++;
            sum.full += gc->generation >= 2;
        }
        sw_cursor_free(cursor);
    }
    return sum;
}

/* Whether a line may call the collector, as far as its source can be read; one of a package may do it for the line. */
static bool may_collect(const struct sw__hot_function *at)
{
    struct sw__frame_source source = sw__frame_source(&at->frame);
    const struct sw__source_line line = source.line;
    const bool may = !line.text || 2 * at->own < at->samples ||
                     memmem(line.text, line.length, "collect", 7) != NULL;
    sw__frame_source_free(&source);
    return may;
}

static void garbage(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_GC);
    const struct sw__estimate share = sw__case_share(&all->it, phase);
    const struct sw__estimate time = sw__phase_time(all, phase);
    if (!(share.low > GC_LEAST)) {
        return;
    }
    size_t count;
    const struct sw__hot_function *at =
        sw__hot_functions(all, phase, SW__HOT_ANY, false, &count);
    const struct collections sum = count_collections(all);
    const uint64_t samples = sw__hot_code(all)->phase_samples[SW_PHASE_GC];
    /* The collector starts by itself wherever memory is taken, and seldom through all generations; one line, over and
     * over, has asked for it. */
    const bool asked =
        at && samples >= 5 && 10 * at->line_samples >= 7 * samples &&
        (2 * sum.full >= sum.count || 10 * sum.full >= all->it.steps->count) &&
        may_collect(at);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_GC, "RULE-14");
    draft->group = SW__GROUP_GC;
    sw__draft_title(all, draft, "%.1f %% of a step is the garbage collector%s",
                    percent(share.mean), asked ? ", which the program asks to run" : "");
    sw__draft_number(draft, "gc_ms", time.mean / 1e6);
    sw__draft_number(draft, "gc_share", share.mean);
    sw__draft_number(draft, "collections_kept", (double)sum.count);
    sw__draft_number(draft, "full_collections_kept", (double)sum.full);
    draft->finding.share = share.mean;
    draft->finding.confidence = asked ? 0.95 : 0.85;
    if (asked) {
        sw__draft_where(all, draft, at->frame.file, at->frame.line, at->frame.name);
        sw__draft_advise(all, draft,
                         "Take gc.collect() out of line %u of %s, or call it once in an "
                         "epoch.",
                         at->frame.line, sw__file_name(at->frame.file));
        sw__draft_saves_in_steps(all, draft, time, 0.995, 0.85, 1);
        return;
    }
    sw__draft_advise(all, draft,
                     "Call gc.freeze() once the model and the data are built: what is "
                     "there then is not looked at again.");
    sw__draft_advise(all, draft,
                     "Or gc.disable() before the loop and gc.collect() once in an "
                     "epoch.");
    sw__draft_saves_in_steps(all, draft, time, 0.9, 0.6, 1);
}

void sw__rules_host(sw_findings *all)
{
    logging_in_steps(all);
    garbage(all);
    sw__rules_waits(all);
    if (sw__hot_code(all)->samples < SAMPLES_LEAST) {
        const char *why = sw_summary_stacks(all->it.summary)
                              ? "the sampler saw too little of the steps"
                              : "the sampler did not run";
        sw__findings_unchecked(all, SW_FINDING_PYTHON_OVERHEAD, "%s", why);
        sw__findings_unchecked(all, SW_FINDING_LOADER_MAIN_PROCESS, "%s", why);
        return;
    }
    struct sw__draft *python = python_overhead(all);
    loader_main_process(all, python);
}
