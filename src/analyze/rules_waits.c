/* Rules: the host waits for the device, or copies to it. Without an accelerator there is neither, except in JAX. */
#include <math.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define SYNC_LEAST 0.05
#define COPY_LEAST 0.05
/* Of a step in which the host works inside calls of what JAX compiled. Handing over takes microseconds. */
#define GIVEN_LEAST 0.2
/* Of that, what is computed may take at most so much: else it may be what is computed. */
#define COMPUTED_MOST 0.5
#define SAMPLES_LEAST 50
/* Waits that show nothing: shorter than this. */
#define WAIT_LEAST_NS 1e6
/* Share of the steps that wait, below which they do so now and then. */
#define WAITING_LEAST 0.2
/* Waits in a step from which on a loop asks for them, and bytes of a copy that is more than a value. */
#define MANY 8
#define MUCH (1u << 18)

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

/* --- waiting --- */

static bool at_line(const sw_training_wait *wait, const sw_stack_frame *frame)
{
    return wait->line == frame->line && wait->file && frame->file &&
           strcmp(wait->file, frame->file) == 0;
}

static bool is_of_kind(const sw_findings *all, unsigned kinds,
                       const sw_stack_frame *frame)
{
    size_t count;
    const sw_training_wait *list = sw_training_waits(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].kind < 8 && kinds & 1u << list[i].kind && at_line(&list[i], frame)) {
            return true;
        }
    }
    return false;
}

#define ASKED (1u << SW_WAIT_SYNC | 1u << SW_WAIT_D2H)

bool sw__copies_to_device(const sw_findings *all, const sw_stack_frame *frame)
{
    return is_of_kind(all, 1u << SW_WAIT_H2D, frame);
}

/* The function in which the longest wait lies; it is not the one that calls model and backward. */
static const struct sw__hot_function *function_of(sw_findings *all,
                                                  const sw_training_wait *wait)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const sw_stack_frame *at = NULL;
    for (size_t i = 0; i < hot->count && !at; i++) {
        at = at_line(wait, hot->lines[i].frame) ? hot->lines[i].frame : NULL;
    }
    size_t count = 0;
    const struct sw__hot_function *list =
        at && !sw__hot_trains(hot, at)
            ? sw__hot_functions(all, ~(uint64_t)0, SW__HOT_ANY, false, &count)
            : NULL;
    for (size_t i = 0; i < count; i++) {
        if (sw__same_function(&list[i].frame, at)) {
            return &list[i];
        }
    }
    return NULL;
}

const struct sw__hot_function *sw__wait_function(sw_findings *all,
                                                 struct sw__estimate *around)
{
    const struct sw__hot *hot = sw__hot_code(all);
    sw_training_wait sum;
    const sw_training_wait *wait = longest(all, ASKED, &sum);
    const struct sw__hot_function *function = wait ? function_of(all, wait) : NULL;
    uint64_t by_phase[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        const bool beside = line->phase != SW_PHASE_SYNC && !line->outside &&
                            !(SW__COMPUTE_PHASES & SW__PHASE_BIT(line->phase));
        const bool there = function ? sw__same_function(line->frame, &function->frame)
                                    : is_of_kind(all, ASKED, line->frame);
        if (beside && there) {
            by_phase[line->phase] += line->samples;
        }
    }
    *around = sw__hot_time(all, by_phase);
    return function;
}

/* What a step takes at least: the device's own time, as far as it is known. */
static double device_ns(const sw_findings *all)
{
    const struct sw__device_use use = sw__device_use(all);
    return use.looks > 0 ? use.busy * all->it.mean_ns : NAN;
}

/* The share of steps that wait noticeably: values may be kept, and asked for all at once now and then. */
static double waits_in(const sw_findings *all)
{
    double count = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        const double wait = (double)all->it.step[i].phase_ns[SW_PHASE_SYNC];
        count += wait > SYNC_LEAST * all->it.mean_ns;
    }
    return all->it.count ? count / (double)all->it.count : 0;
}

static void host_sync(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_SYNC);
    const struct sw__estimate share = sw__case_share(&all->it, phase);
    const struct sw__estimate time = sw__phase_time(all, phase);
    sw_training_wait sum;
    const sw_training_wait *wait = longest(all, ASKED, &sum);
    const double per_step = wait ? (double)sum.calls / (double)all->it.steps->count : 0;
    /* Now and then is what one is told to do. */
    if (!wait || !(share.low > SYNC_LEAST) || per_step < 0.5 ||
        waits_in(all) < WAITING_LEAST) {
        return;
    }
    /* The device needs its time anyway: what it is known to need, or else the time that it was waited for. What is gained is
     * that the host works meanwhile, and what it does around each wait. */
    struct sw__estimate around = {0};
    const struct sw__hot_function *function =
        per_step >= MANY || sum.bytes > MUCH * sum.calls ? sw__wait_function(all, &around)
                                                         : NULL;
    const double device = device_ns(all), host = all->it.mean_ns - time.mean;
    const double most = isnan(device) ? host : all->it.mean_ns - device;
    struct sw__estimate saved = {.mean = time.mean + 0.95 * around.mean,
                                 .low = time.low + 0.5 * around.low,
                                 .high = time.high + around.high};
    double *const each[] = {&saved.mean, &saved.low, &saved.high};
    for (unsigned i = 0; i < 3; i++) {
        *each[i] = *each[i] < most ? *each[i] : most;
    }
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
    if (around.mean > 0) {
        sw__draft_number(draft, "around_ms", around.mean / 1e6);
    }
    if (sum.bytes > MUCH * sum.calls) {
        sw__draft_number(draft, "mb_per_step",
                         (double)sum.bytes / (double)all->it.steps->count / 1e6);
        draft->finding.also |= (uint64_t)1 << SW_FINDING_TRANSFER;
    }
    draft->group = function ? SW__GROUP_HOST : SW__GROUP_NONE;
    draft->specific = 1;
    draft->finding.share = share.mean;
    draft->finding.confidence = 0.8;
    sw__draft_advise(
        all, draft,
        "Read the value in line %u of %s every fiftieth step, or add it up on "
        "the device and read the sum.",
        wait->line, sw__file_name(wait->file));
    if (isnan(device)) {
        sw__draft_saves_in_steps(all, draft, saved, 0.7, 0.2, 1);
    } else {
        sw__draft_saves_in_steps(all, draft, saved, 0.95, 0.5, 1);
    }
}

/* --- copying --- */

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
    /* What else the same lines do, such as giving back the memory of the batch before, goes with the copy. */
    const struct sw__hot *hot = sw__hot_code(all);
    uint64_t beside[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (line->phase == SW_PHASE_OTHER && sw__copies_to_device(all, line->frame)) {
            beside[line->phase] += line->samples;
        }
    }
    const struct sw__estimate more = sw__hot_time(all, beside);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_TRANSFER, "RULE-03");
    sw__draft_rule(draft, pinned ? "RULE-19" : "RULE-07");
    sw__draft_where(all, draft, copy->file, copy->line, copy->call);
    sw__draft_title(all, draft, "%.0f %% of a step is copying to the device (%s:%u)",
                    share.mean * 100, sw__file_name(copy->file), copy->line);
    const double steps = (double)all->it.steps->count;
    sw__draft_number(draft, "h2d_ms", time.mean / 1e6);
    sw__draft_number(draft, "h2d_share", share.mean);
    if (more.mean > 0) {
        sw__draft_number(draft, "around_ms", more.mean / 1e6);
    }
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
    if (!all->it.loader) {
        sw__draft_advise(all, draft,
                         "If the data fit there, put them on the device once, before the "
                         "loop.");
    }
    sw__draft_advise(
        all, draft,
        "Copy with .to(device, non_blocking=True) from pinned memory in line "
        "%u of %s, so that the copy runs beside the computation.",
        copy->line, sw__file_name(copy->file));
    const struct sw__estimate both = {
        .mean = time.mean + more.mean, .low = time.low, .high = time.high + more.high};
    sw__draft_saves_in_steps(all, draft, both, all->it.loader ? 0.7 : 0.95, 0.3, 1);
}

/* What a step takes to compute at most, in ns: a wait is for one step or for several. 0: nothing was waited for, and maybe calls
 * compute before they return. */
static double computed_most(const sw_findings *all)
{
    double sum = 0, count = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        const double wait = (double)all->it.step[i].phase_ns[SW_PHASE_SYNC];
        if (wait > WAIT_LEAST_NS) {
            sum += wait;
            count++;
        }
    }
    return fmax(sw__computed_in_queue(all), count > 0 ? sum / count : 0);
}

/* JAX hands out what it compiled and returns; where it has too much to do, the host sleeps. A host that works inside of such a
 * call, for longer than waits show a step to be computed, copies what the call was given: arrays of NumPy's, each time anew. */
static void given_from_host(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const uint64_t phases = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OPTIMIZER);
    const struct sw__hot_line *most = NULL;
    uint64_t by_phase[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        /* Native code that the line calls itself: what is compiled is called without Python in between. */
        const uint64_t other = sw__add(line->interpreted, line->waiting);
        if (phases & SW__PHASE_BIT(line->phase) && !line->outside && line->own > other) {
            by_phase[line->phase] += line->own - other;
            most = !most || line->own > most->own ? line : most;
        }
    }
    const struct sw__estimate time = sw__hot_time(all, by_phase);
    const double step = all->it.mean_ns;
    const double computed = computed_most(all);
    if (!most || hot->samples < SAMPLES_LEAST || !(time.low / step > GIVEN_LEAST) ||
        !(computed > 0) || !(computed < COMPUTED_MOST * time.mean)) {
        return;
    }
    const sw_stack_frame *at = most->frame;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_TRANSFER, "RULE-03");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(
        all, draft,
        "%.0f %% of a step JAX copies what the call in line %u of %s is given",
        time.mean / step * 100, at->line, sw__file_name(at->file));
    sw__draft_number(draft, "copied_ms", time.mean / 1e6);
    sw__draft_number(draft, "copied_share", time.mean / step);
    sw__draft_number(draft, "computed_ms", computed / 1e6);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.75;
    sw__draft_advise(all, draft,
                     "If it is given the same large array of NumPy's in every step, make "
                     "it one of JAX's once, before the loop: jax.device_put or "
                     "jnp.asarray.");
    sw__draft_advise(all, draft,
                     "If the array is another one each time, give it only the rows that "
                     "the step uses, or put the next one there while this one is "
                     "computed.");
    /* What is computed is waited for then. */
    const struct sw__estimate saved = {.mean = fmin(time.mean, step - computed),
                                       .low = fmin(time.low, step - computed),
                                       .high = fmin(time.high, step - computed / 2)};
    sw__draft_saves_in_steps(all, draft, saved, 1, 0.5, 1);
}

void sw__rules_waits(sw_findings *all)
{
    if (sw__is_asynchronous(all)) {
        host_sync(all);
    } else {
        sw__findings_unchecked(all, SW_FINDING_HOST_SYNC,
                               "no accelerator was used, so nothing waits for one");
    }
    if (!sw__has_device(all) && sw__is_asynchronous(all)) {
        given_from_host(all);
        return;
    }
    if (!sw__has_device(all)) {
        sw__findings_unchecked(all, SW_FINDING_TRANSFER,
                               "no accelerator was used, so nothing is copied to one");
        return;
    }
    transfer(all);
}
