/* Rules: the host waits for the device, or copies to it. Without an accelerator there is neither. */
#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define SYNC_LEAST 0.05
#define COPY_LEAST 0.05

/* The longest wait of a kind (bits) in the user's own code, and their sum. */
static const sw_training_wait *longest(const sw_findings *all, unsigned kinds,
                                       sw_training_wait *sum)
{
    size_t count;
    const sw_training_wait *list = sw_training_waits(all->it.training, &count);
    const sw_training_wait *found = NULL;
    *sum = (sw_training_wait){0};
    for (size_t i = 0; i < count; i++) {
        if (list[i].kind < 8 && kinds & 1u << list[i].kind) {
            sum->calls = sw__add(sum->calls, list[i].calls);
            sum->ns = sw__add(sum->ns, list[i].ns);
            sum->bytes = sw__add(sum->bytes, list[i].bytes);
            sum->pinned_calls = sw__add(sum->pinned_calls, list[i].pinned_calls);
            sum->non_blocking |= list[i].non_blocking;
            found = found ? found : &list[i];
        }
    }
    return found;
}

static void host_sync(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_SYNC);
    const struct sw__estimate share = sw__case_share(&all->it, phase);
    const struct sw__estimate time = sw__phase_time(all, phase);
    sw_training_wait sum;
    const sw_training_wait *wait =
        longest(all, 1u << SW_WAIT_SYNC | 1u << SW_WAIT_D2H, &sum);
    const double per_step = wait ? (double)sum.calls / (double)all->it.steps->count : 0;
    /* Now and then is what one is told to do. */
    if (!wait || !(share.low > SYNC_LEAST) || per_step < 0.5) {
        return;
    }
    /* The device needs its time anyway. What is gained is that the host works meanwhile. */
    const double host = all->it.mean_ns - time.mean;
    struct sw__estimate saved = time;
    saved.mean = time.mean < host ? time.mean : host;
    saved.high = time.high < host ? time.high : host;
    if (!(saved.mean / all->it.mean_ns > SYNC_LEAST)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_HOST_SYNC, "RULE-19");
    sw__draft_where(all, draft, wait->file, wait->line, wait->call);
    sw__draft_title(
        all, draft,
        "%.0f %% of a step the host waits for the device, because %s asks for "
        "a value (%s:%u)",
        share.mean * 100, sw__text(wait->call), sw__file_name(wait->file), wait->line);
    sw__draft_number(draft, "sync_ms", time.mean / 1e6);
    sw__draft_number(draft, "sync_share", share.mean);
    sw__draft_number(draft, "calls_per_step", per_step);
    draft->finding.share = share.mean;
    draft->finding.confidence = 0.8;
    sw__draft_advise(
        all, draft,
        "Read the value in line %u of %s every fiftieth step, or add it up on "
        "the device and read the sum.",
        wait->line, sw__file_name(wait->file));
    sw__draft_saves_in_steps(all, draft, saved, 0.7, 0.2, 1);
}

static void transfer(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_H2D);
    const struct sw__estimate share = sw__case_share(&all->it, phase);
    const struct sw__estimate time = sw__phase_time(all, phase);
    sw_training_wait sum;
    const sw_training_wait *copy = longest(all, 1u << SW_WAIT_H2D, &sum);
    const bool pinned = sum.calls && 2 * sum.pinned_calls > sum.calls;
    if (!copy || !(share.low > COPY_LEAST) || (pinned && sum.non_blocking)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_TRANSFER, "RULE-03");
    sw__draft_rule(draft, pinned ? "RULE-19" : "RULE-07");
    sw__draft_where(all, draft, copy->file, copy->line, copy->call);
    sw__draft_title(all, draft, "%.0f %% of a step is copying to the device (%s:%u)",
                    share.mean * 100, sw__file_name(copy->file), copy->line);
    const double steps = (double)all->it.steps->count;
    sw__draft_number(draft, "h2d_ms", time.mean / 1e6);
    sw__draft_number(draft, "h2d_share", share.mean);
    sw__draft_number(draft, "copies_per_step", (double)sum.calls / steps);
    sw__draft_number(draft, "mb_per_step", (double)sum.bytes / steps / 1e6);
    sw__draft_number(draft, "pinned_calls", (double)sum.pinned_calls);
    draft->finding.share = share.mean;
    draft->finding.confidence = 0.8;
    if (!pinned && all->it.loader && !(all->it.loader->bits & SW_LOADER_PIN)) {
        const sw_training_site *site = all->it.loader->site;
        sw__draft_advise(all, draft, "Build the loader with pin_memory=True (%s:%u).",
                         sw__file_name(site ? site->file : NULL), site ? site->line : 0);
    }
    sw__draft_advise(
        all, draft,
        "Copy with .to(device, non_blocking=True) from pinned memory in line "
        "%u of %s, so that the copy runs beside the computation.",
        copy->line, sw__file_name(copy->file));
    sw__draft_saves_in_steps(all, draft, time, 0.7, 0.3, 1);
}

void sw__rules_waits(sw_findings *all)
{
    if (sw__is_asynchronous(all)) {
        host_sync(all);
    } else {
        sw__findings_unchecked(all, SW_FINDING_HOST_SYNC,
                               "no accelerator was used, so nothing waits for one");
    }
    if (!sw__has_device(all)) {
        sw__findings_unchecked(all, SW_FINDING_TRANSFER,
                               "no accelerator was used, so nothing is copied to one");
        return;
    }
    transfer(all);
}
