/* Workers that are started again in every epoch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/bootstrap.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/summary.h"

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

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left;
    const double b = *(const double *)right;
    return (a > b) - (a < b);
}

/* What the first step of an epoch computes longer than the others usually do. Workers that were just forked share the pages of the
 * training process, which has to copy each that it writes to, and the last of them still starts. With an interval of 95 % over the
 * epochs. */
static struct cost first_steps(sw_findings *all)
{
    const struct sw__case *it = &all->it;
    const uint64_t phases = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OPTIMIZER);
    double *others = sw__alloc_zero(it->count + 1, sizeof *others);
    double sum = 0, squares = 0, count = 0;
    size_t usual = 0;
    if (!others) {
        all->failed = true;
        return (struct cost){0};
    }
    for (size_t i = 0; i < it->looked_count; i++) {
        double ns = 0;
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            ns += phases & SW__PHASE_BIT(p) ? (double)it->looked[i].phase_ns[p] : 0;
        }
        if (it->looked[i].epoch_first) {
            sum += ns;
            squares += ns * ns;
            count++;
        } else {
            others[usual++] = ns;
        }
    }
    qsort(others, usual, sizeof *others, by_value);
    const double median = others[usual / 2];
    sw__free(others);
    if (count < 2 || usual < SW__CASE_LEAST) {
        return (struct cost){0};
    }
    const double mean = sum / count;
    const double spread = fmax(squares - count * mean * mean, 0) / (count - 1);
    const double error = sw__t_bound(count - 1) * sqrt(spread / count);
    return (struct cost){fmax(mean - median, 0), fmax(mean - error - median, 0),
                         fmax(mean + error - median, 0)};
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
    /* Frameworks do other things between starting workers and asking them: then the first batch is there in time, and all of it lies
     * in starting and ending them. */
    const double whole = start.mean + first.mean + end.mean;
    /* The first batch has to be made in any case. */
    const double times = (double)(epochs - 1);
    double each = whole - facts->made_ns;
    double low = start.least + first.least + end.least - facts->made_ns;
    double high = start.most + first.most + end.most;
    const double base = (double)all->it.base_ns;
    const double usual = facts->wait_p50;
    if (!(each * times > 0.02 * base) || !(low > 0) || whole < 3 * usual) {
        return false;
    }
    const struct cost cold = first_steps(all);
    if (cold.least > 0) {
        each += cold.mean;
        low += cold.least;
        high += cold.most;
    }
    const char *place = sw__loader_place(all);
    struct sw__draft *draft =
        sw__loader_draft(all, SW_FINDING_LOADER_RESTART, "RULE-08", SW__RESTARTS);
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
    sw__draft_number(draft, "first_step_ms", cold.least > 0 ? cold.mean / 1e6 : 0);
    sw__draft_number(draft, "usual_wait_ms", usual / 1e6);
    sw__draft_number(draft, "epochs", (double)epochs);
    sw__loader_where(all, draft, NULL);
    draft->finding.share = each * times / base;
    draft->finding.confidence = epochs >= 4 ? 0.9 : 0.7;
    sw__draft_saves(all, draft, each * times, low * times, high * times);
    /* Of a step itself, only what the first ones of epochs wait and compute longer. */
    const double longer =
        (first.mean > facts->made_ns ? first.mean - facts->made_ns : 0) +
        (cold.least > 0 ? cold.mean : 0);
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

void sw__loader_restart(sw_findings *all, const struct sw__loader_facts *facts)
{
    if (starts_again(all, facts)) {
        settle_restart(all);
    }
}
