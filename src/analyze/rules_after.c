/* Rules: what comes after the backward and is no part of the update. Metrics, and copies of the state. */
#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"

#define METRICS_LEAST 0.10
/* Fewer samples show nothing. */
#define SAMPLES_LEAST 50

static double percent(double share)
{
    return share * 100;
}

bool sw__asks_device(sw_findings *all, const sw_stack_frame *frame)
{
    struct sw__estimate around;
    const struct sw__hot_function *waits =
        sw__has_draft(all, SW_FINDING_HOST_SYNC) ? sw__wait_function(all, &around) : NULL;
    return waits && sw__same_function(&waits->frame, frame);
}

double sw__log_every(double share)
{
    const double every = ceil(share / 0.01);
    return every <= 10 ? 10 : every <= 50 ? 50 : 100;
}

#define AFTER_PHASES                                                                     \
    (SW__PHASE_BIT(SW_PHASE_OTHER) | SW__PHASE_BIT(SW_PHASE_COMMUNICATION) |             \
     SW__PHASE_BIT(SW_PHASE_CHECKPOINT))

/* Whether a function that runs after the backward may be about metrics: one that exchanges gradients, saves or updates
 * weights is not. */
static bool measures(const struct sw__hot_function *function)
{
    static const char *const updates[] = {"ema",  "EMA",  "average", "clip",
                                          "sync", "grad", "polyak",  "soft_update"};
    for (size_t i = 0; i < sizeof updates / sizeof updates[0]; i++) {
        if (strstr(function->frame.name, updates[i])) {
            return false;
        }
    }
    return 10 * (function->by_phase[SW_PHASE_COMMUNICATION] +
                 function->by_phase[SW_PHASE_CHECKPOINT]) <
           function->samples;
}

/* Whether a function copies weights to keep them: copy.deepcopy, or its name says so. */
static bool keeps_state(const struct sw__hot_function *function)
{
    return 2 * function->copied > function->samples ||
           sw__kind_by_name(function->frame.name) == SW_FINDING_CHECKPOINT ||
           (function->entry &&
            sw__kind_by_name(function->entry->name) == SW_FINDING_CHECKPOINT);
}

static void copies_of_state(sw_findings *all, const sw_stack_frame *at,
                            struct sw__estimate time)
{
    const double share = time.mean / all->it.mean_ns;
    if (sw__has_draft(all, SW_FINDING_CHECKPOINT)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_CHECKPOINT, "RULE-62");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is keeping copies of the state (%s:%u)",
                    percent(share), sw__file_name(at->file), at->line);
    sw__draft_number(draft, "copy_ms", time.mean / 1e6);
    sw__draft_number(draft, "copy_share", share);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = share;
    draft->finding.confidence = 0.7;
    sw__draft_advise(all, draft,
                     "Keep the state a twentieth as often (%s, line %u), such as after a "
                     "validation that was better.",
                     sw__file_name(at->file), at->line);
    sw__draft_advise(all, draft,
                     "Copy into tensors that are there already (Tensor.copy_), not into "
                     "new ones.");
    sw__draft_saves_in_steps(all, draft, time, 0.95, 0.5, 1);
}

/* All that the loop, or a framework, comes to by the same call as to a function: what it does besides goes with it. */
static struct sw__estimate time_of_entry(sw_findings *all,
                                         const struct sw__hot_function *of)
{
    uint64_t sum[SW_PHASE_COUNT] = {0};
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, AFTER_PHASES, SW__HOT_AFTER, false, &count);
    for (size_t i = 0; i < count; i++) {
        const bool same = sw__same_function(&list[i].frame, &of->frame) ||
                          (of->entry && list[i].entry && measures(&list[i]) &&
                           sw__same_function(list[i].entry, of->entry));
        for (unsigned p = 0; same && p < SW_PHASE_COUNT; p++) {
            sum[p] += list[i].by_phase[p];
        }
    }
    return sw__hot_time(all, sum);
}

/* What is told of Python code. */
static struct sw__draft *python_draft(sw_findings *all)
{
    struct sw__draft *draft = all->first;
    while (draft && draft->finding.kind != SW_FINDING_PYTHON_OVERHEAD) {
        draft = draft->next;
    }
    return draft;
}

/* Whether a finding is about a function that the same call comes to. */
static bool has_entry(sw_findings *all, const sw_finding *finding,
                      const sw_stack_frame *entry)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, AFTER_PHASES, SW__HOT_AFTER, false, &count);
    for (size_t i = 0; entry && finding->file && i < count; i++) {
        if (strcmp(list[i].frame.name, finding->name) == 0 &&
            strcmp(list[i].frame.file, finding->file) == 0) {
            return list[i].entry && sw__same_function(list[i].entry, entry);
        }
    }
    return false;
}

/* Native work after the update that no phase claims: metrics and the like. */
void sw__rules_metrics(sw_findings *all)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, AFTER_PHASES, SW__HOT_AFTER, false, &count);
    const struct sw__hot *hot = sw__hot_code(all);
    while (count > 0 && !measures(list)) {
        list++;
        count--;
    }
    /* A few lines of Python around what a package computes are not what takes the time. */
    const bool python_itself =
        count > 0 && 4 * list->own > list->samples && sw__hot_interpreted(all, list);
    if (count == 0 || hot->samples < SAMPLES_LEAST ||
        !hot->phase_samples[SW_PHASE_BACKWARD] || python_itself) {
        return;
    }
    /* Python code elsewhere is the reason; beside it, it is a part of the same. */
    struct sw__draft *python = python_draft(all);
    if (python && !has_entry(all, &python->finding, list->entry)) {
        return;
    }
    const struct sw__estimate time = time_of_entry(all, list);
    const double step = all->it.mean_ns;
    if (!(time.low / step > METRICS_LEAST)) {
        return;
    }
    const sw_stack_frame *at = &list->frame;
    if (keeps_state(list)) {
        copies_of_state(all, at, time);
        return;
    }
    /* Where no optimizer of torch's updates, this may be what does. */
    if (all->it.steps->updates == 0 && sw__update_by_hand(all, list, time)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOGGING, "RULE-44");
    draft->group = sw__asks_device(all, at) ? SW__GROUP_HOST : SW__GROUP_NONE;
    if (python && python->group == SW__GROUP_NONE && draft->group == SW__GROUP_NONE) {
        python->group = draft->group = SW__GROUP_AFTER;
    }
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step comes after the backward and is no part of the "
                    "update: %s (%s:%u)",
                    percent(time.mean / step), at->name, sw__file_name(at->file),
                    at->line);
    sw__draft_number(draft, "after_ms", time.mean / 1e6);
    sw__draft_number(draft, "after_share", time.mean / step);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.5;
    const double n = sw__log_every(time.mean / step);
    sw__draft_advise(all, draft,
                     "If line %u of %s computes metrics, do it every %.0f steps, or keep "
                     "what it needs and compute them once in an epoch.",
                     at->line, sw__file_name(at->file), n);
    sw__draft_saves_in_steps(all, draft, time, 1 - 1 / n, 0.3, 1);
    if (sw__has_device(all) && draft->group != SW__GROUP_HOST) {
        draft->finding.severity = SW_SEVERITY_LOW; /* the host only hands it out */
    }
}
