/* What findings about loaders say: places, settings, advice. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/summary.h"

const char *sw__loader_place(sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    const sw_training_site *site = loader ? loader->site : NULL;
    if (!site || !site->file) {
        return NULL;
    }
    return site->line
               ? sw__findings_format(all, "%s:%u", sw__file_name(site->file), site->line)
               : sw__findings_format(all, "%s", sw__file_name(site->file));
}

static bool goes_on(const sw_training_loader *loader)
{
    return loader->passes != SW_UNKNOWN && loader->passes > 1;
}

void sw__loader_advise_workers(sw_findings *all, struct sw__draft *draft,
                               const struct sw__loader_facts *facts, unsigned workers,
                               unsigned prefetch)
{
    const sw_training_loader *loader = all->it.loader;
    const char *place = sw__loader_place(all);
    char change[160] = "";
    size_t used = 0;
    if (workers != facts->workers) {
        used += (size_t)snprintf(change, sizeof change, "num_workers=%u", workers);
    }
    if (facts->way == SW__LOADER_WORKERS && prefetch != facts->prefetch) {
        used += (size_t)snprintf(change + used, sizeof change - used,
                                 "%sprefetch_factor=%u", used ? ", " : "", prefetch);
    }
    if (workers > 0 && goes_on(loader) && !(loader->bits & SW_LOADER_PERSISTENT)) {
        (void)snprintf(change + used, sizeof change - used, "%spersistent_workers=True",
                       used ? ", " : "");
    }
    char now[96];
    if (workers != facts->workers) {
        (void)snprintf(now, sizeof now, "num_workers=%u", facts->workers);
    } else {
        (void)snprintf(now, sizeof now, "prefetch_factor=%u", facts->prefetch);
    }
    sw__draft_advise(all, draft, "%s%sDataLoader(%s) \xE2\x86\x92 %s", place ? place : "",
                     place ? ": " : "", now, change);
    if (workers > facts->workers && loader->bits & SW_LOADER_ITERABLE) {
        sw__draft_advise(
            all, draft,
            "The dataset is iterable: let each worker give its own part of it "
            "(torch.utils.data.get_worker_info), or samples come repeatedly.");
    }
}

static bool largest(const sw_findings *all, const struct sw__loader_facts *facts)
{
    const sw_summary_steps *steps = all->it.steps;
    double wait = 0, most = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        const double ns = (double)steps->phase[p].total_ns;
        if (facts->phases & SW__PHASE_BIT(p)) {
            wait += ns;
        } else {
            most = ns > most ? ns : most;
        }
    }
    return wait > most;
}

/* Making the samples, not putting them together, is what takes the time, and each was made in several epochs (RULE-13). */
static bool made_again(const sw_training_loader *loader,
                       const struct sw__loader_facts *facts)
{
    const double making = facts->getitem.share > facts->transform.share
                              ? facts->getitem.share
                              : facts->transform.share;
    return goes_on(loader) && !(loader->bits & SW_LOADER_ITERABLE) &&
           loader->samples != SW_UNKNOWN && facts->share.mean > 0.2 && making > 0.2;
}

static void advise_keeping(sw_findings *all, struct sw__draft *draft)
{
    const sw_training_loader *loader = all->it.loader;
    sw__draft_rule(draft, "RULE-13");
    sw__draft_advise(all, draft,
                     "Its %" PRIu64 " samples are made again in each of %" PRIu64
                     " epochs: what is the same every time can be made once and kept.",
                     loader->samples, loader->passes);
}

void sw__loader_common(sw_findings *all, struct sw__draft *draft,
                       const struct sw__loader_facts *facts)
{
    const sw_training_loader *loader = all->it.loader;
    const sw_summary_steps *steps = all->it.steps;
    const bool most = largest(all, facts);
    sw_finding *finding = &draft->finding;
    finding->share = facts->wait.mean * (double)steps->counted / (double)all->it.base_ns;
    finding->share = finding->share < 1 ? finding->share : 1;
    const double sure = facts->share.low > 0 && facts->share.mean > 0
                            ? facts->share.low / facts->share.mean
                            : 0;
    const double steps_known = (double)facts->share.count / 50;
    /* On a busy machine times say less. */
    const double busy = facts->delay > 0.05 ? 1 / (1 + facts->delay) : 1;
    finding->confidence = 0.5 + 0.45 * sure * busy * (steps_known < 1 ? steps_known : 1);
    sw__draft_rule(draft, "RULE-02");
    if (most && steps->samples_per_s < 100) {
        sw__draft_rule(draft, "RULE-27");
    }
    if (most || facts->share.mean > 0.2) {
        sw__draft_rule(draft, "RULE-36");
    }
    const double h2d = steps->phase[SW_PHASE_H2D].share;
    if (facts->gpu && facts->way != SW__LOADER_UNKNOWN && h2d > 0.03 &&
        !(loader->bits & SW_LOADER_PIN)) {
        sw__draft_rule(draft, "RULE-07");
        sw__draft_rule(draft, "RULE-37");
        sw__draft_advise(all, draft,
                         "Copies to the GPU take %.0f %% of a step: pin_memory=True.",
                         h2d * 100);
    }
    /* Where files are waited for, those that are read again are named. */
    if (finding->kind != SW_FINDING_LOADER_IO && facts->way != SW__LOADER_UNKNOWN &&
        made_again(loader, facts)) {
        advise_keeping(all, draft);
    }
    if (facts->share.mean > 0.2 && facts->way != SW__LOADER_UNKNOWN) {
        sw__draft_rule(draft, "RULE-49");
        sw__draft_advise(all, draft,
                         "See how fast it is alone: stepwatch.benchmark_dataloader(%s).",
                         loader->name ? loader->name : "loader");
    }
    sw__draft_number(draft, "wait_share", facts->share.mean);
    sw__draft_number(draft, "wait_share_low", facts->share.low);
    sw__draft_number(draft, "wait_share_high", facts->share.high);
    sw__draft_number(draft, "wait_ms", facts->wait.mean / 1e6);
    sw__draft_number(draft, "compute_ms", facts->compute_ns / 1e6);
    sw__draft_number(draft, "batch_ms", facts->made_ns / 1e6);
    sw__draft_number(draft, "batch_cpu_ms", facts->cpu_ns / 1e6);
    sw__draft_number(draft, "blocked_share", facts->blocked);
    sw__draft_number(draft, "workers",
                     facts->way == SW__LOADER_UNKNOWN ? NAN : (double)facts->workers);
    sw__draft_number(draft, "cores", all->it.cores);
    sw__draft_number(draft, "steps", (double)facts->share.count);
}

/* A frame of the stage's own code: "Decode.__call__", or the function itself. */
static bool frame_of(const sw_stack_frame *frame, const char *stage)
{
    const size_t length = strlen(stage);
    const char *at = strstr(frame->name, stage);
    if (frame->native || !at || (at != frame->name && at[-1] != '.')) {
        return false;
    }
    return at[length] == '\0' || strcmp(at + length, ".__call__") == 0 ||
           strcmp(at + length, ".forward") == 0;
}

static bool is_method_of_dataset(const char *stage)
{
    const char *dot = strrchr(stage, '.');
    return dot && (strcmp(dot, ".__getitem__") == 0 || strcmp(dot, ".__iter__") == 0);
}

void sw__loader_where(sw_findings *all, struct sw__draft *draft, const char *stage)
{
    const sw_training_loader *loader = all->it.loader;
    const sw_training_site *site = loader ? loader->site : NULL;
    const bool samples = (stage && is_method_of_dataset(stage)) ||
                         (!stage && draft->finding.kind == SW_FINDING_LOADER_IO);
    struct sw__loader_code made;
    if (samples && sw__loader_code(all, &made)) {
        sw__draft_where(all, draft, made.frame->file, made.frame->line, made.frame->name);
        return;
    }
    const sw_stacks *stacks = stage ? sw_summary_stacks(all->it.summary) : NULL;
    const sw_stack_frame *found = NULL;
    for (uint32_t i = 0; stacks && i < sw_stacks_frame_count(stacks); i++) {
        const sw_stack_frame *frame = sw_stacks_get_frame(stacks, i);
        if (frame && frame->file && frame->file[0] && frame_of(frame, stage) &&
            (!found || frame->first_line < found->first_line)) {
            found = frame;
        }
    }
    if (found) {
        sw__draft_where(all, draft, found->file, found->first_line, stage);
    } else {
        sw__draft_where(all, draft, site ? site->file : NULL, site ? site->line : 0,
                        stage    ? stage
                        : loader ? loader->name
                                 : NULL);
    }
}
