/* Rules: GPUs. Clocks that power or heat keep down are a finding; a GPU that is little used, or full, is a remark. */
#include <math.h>
#include <stdio.h>

#include "analyze/rules.h"
#include "analyze/summary.h"

/* Looks within steps below which nothing is said. */
#define LOOKS_LEAST 12
/* Shares of the looks within steps from which on it counts; the lower end of the interval must reach them. */
#define HEAT_SHARE 0.05
#define BRAKE_SHARE 0.02
#define CAP_SHARE 0.2
/* Clocks, as share of the highest: above the first nothing is lost; at its usual limit of power a GPU may fall to the second,
 * for that is what it is built for. */
#define CLOCK_GOOD 0.97
#define CLOCK_USUAL 0.75
#define CLOCK_CAPPED 0.9
/* A limit of power below this share of the usual one was set by somebody. */
#define LIMIT_LOWERED 0.97

#define UTILISATION_LOW 50.0
#define UTILISATION_HIGH 80.0
#define MEMORY_LOW 0.6
#define MEMORY_HIGH 0.9

static double steps_mean(const sw_gpu *gpu, enum sw_gpu_value value)
{
    const sw_monitor_series *series = gpu->series[value];
    return series && series->steps.samples >= LOOKS_LEAST ? series->steps.mean : NAN;
}

static double most(const sw_gpu *gpu, enum sw_gpu_value value)
{
    const sw_monitor_series *series = gpu->series[value];
    return series && series->known ? series->all.max : NAN;
}

bool sw__gpu_is_used(const sw_gpu *gpu)
{
    const double own = most(gpu, SW_GPU_PROCESS_MEMORY);
    if (gpu->visible == 0 || gpu->part_of != UINT32_MAX) {
        return false;
    }
    return isnan(own) ? steps_mean(gpu, SW_GPU_UTILISATION) >= 5 : own > 0;
}

/* --- clocks --- */

enum cause { NOTHING, HEAT, BRAKE, CAP };

struct throttle {
    const sw_gpu *gpu;
    enum cause cause;
    const sw_gpu_reason_stats *reason;
    double clock; /* as share of the highest; NaN: unknown */
    double lost;  /* share of what could be computed in steps */
};

static double clock_share(const sw_gpu *gpu, const sw_gpu_reason_stats *reason)
{
    return reason->sm_clock_mhz / gpu->sm_clock_most_mhz; /* NaN where either is */
}

/* Whether a reason held in enough of the steps, and the clocks were down with it. */
static bool holds(const sw_gpu *gpu, const sw_gpu_reason_stats *reason, double share,
                  double clock_below)
{
    const double clock = clock_share(gpu, reason);
    return reason->steps_low > share && (isnan(clock) || clock < clock_below);
}

static struct throttle throttle_of(const sw_gpu *gpu)
{
    const sw_gpu_reason_stats *brake = &gpu->reason[SW_GPU_REASON_POWER_BRAKE];
    const sw_gpu_reason_stats *slow = &gpu->reason[SW_GPU_REASON_HW_SLOWDOWN];
    const sw_gpu_reason_stats *cap = &gpu->reason[SW_GPU_REASON_POWER_CAP];
    struct throttle found = {.gpu = gpu, .cause = NOTHING, .clock = NAN, .lost = NAN};
    const bool lowered = gpu->power_limit_w < LIMIT_LOWERED * gpu->power_default_w;
    if (gpu->step_looks < LOOKS_LEAST) {
        return found;
    }
    if (holds(gpu, &gpu->heat, HEAT_SHARE, CLOCK_GOOD)) {
        found.cause = HEAT;
        found.reason = &gpu->heat;
    } else if (holds(gpu, brake, BRAKE_SHARE, CLOCK_GOOD)) {
        found.cause = BRAKE;
        found.reason = brake;
    } else if (holds(gpu, slow, BRAKE_SHARE, CLOCK_GOOD)) {
        found.cause = BRAKE;
        found.reason = slow;
    } else if (!isnan(clock_share(gpu, cap)) &&
               holds(gpu, cap, CAP_SHARE, lowered ? CLOCK_CAPPED : CLOCK_USUAL)) {
        /* At the limit is where a busy GPU belongs: without low clocks beside it that says nothing. */
        found.cause = CAP;
        found.reason = cap;
    } else {
        return found;
    }
    found.clock = clock_share(gpu, found.reason);
    found.lost = found.reason->steps * (1 - (isnan(found.clock) ? 1 : found.clock));
    return found;
}

static void advise(sw_findings *all, struct sw__draft *draft,
                   const struct throttle *worst)
{
    const sw_gpu *gpu = worst->gpu;
    switch (worst->cause) {
    case HEAT:
        sw__draft_advise(all, draft,
                         "Cool it better: look at the fans, the air's way and what runs "
                         "beside it; on a machine of others, report it.");
        break;
    case BRAKE:
        sw__draft_advise(all, draft,
                         "The machine tells the GPU to slow down, usually because its "
                         "power supply or its cooling is short: report the machine, or "
                         "take another one.");
        break;
    case CAP:
        if (gpu->power_limit_w < LIMIT_LOWERED * gpu->power_default_w) {
            sw__draft_advise(all, draft,
                             "Its limit of power is set to %.0f of usually %.0f W: "
                             "nvidia-smi -i %u -pl %.0f, as root, raises it.",
                             gpu->power_limit_w, gpu->power_default_w, gpu->index,
                             gpu->power_default_w);
        } else {
            sw__draft_advise(all, draft,
                             "It has all the power its board allows: less precision "
                             "(bfloat16, TF32) needs less of it for the same work.");
        }
        break;
    case NOTHING:
        break;
    }
    sw__draft_advise(all, draft,
                     "Compare with other runs only where the clocks are alike: they are "
                     "in the report under gpu.");
}

static void tell_throttle(sw_findings *all, const struct throttle *worst, size_t devices)
{
    static const char *const causes[] = {[HEAT] = "heat",
                                         [BRAKE] = "the hardware slows it down",
                                         [CAP] = "its power limit"};
    const sw_gpu *gpu = worst->gpu;
    const sw_gpu_reason_stats *reason = worst->reason;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_GPU_THROTTLE, "RULE-32");
    if (isnan(worst->clock)) {
        sw__draft_title(all, draft,
                        "GPU %u has reduced clocks in %.0f %% of the time of steps: %s",
                        gpu->index, reason->steps * 100, causes[worst->cause]);
    } else {
        sw__draft_title(all, draft,
                        "GPU %u runs at %.0f of %.0f MHz in %.0f %% of the time of "
                        "steps: %s",
                        gpu->index, reason->sm_clock_mhz, gpu->sm_clock_most_mhz,
                        reason->steps * 100, causes[worst->cause]);
    }
    sw__draft_number(draft, "device", gpu->device);
    sw__draft_number(draft, "devices_throttled", (double)devices);
    sw__draft_number(draft, "throttled_share", reason->steps);
    sw__draft_number(draft, "throttled_share_low", reason->steps_low);
    sw__draft_number(draft, "throttled_share_high", reason->steps_high);
    sw__draft_number(draft, "power_share", gpu->power.steps);
    sw__draft_number(draft, "heat_share", gpu->heat.steps);
    sw__draft_number(draft, "sm_clock_mhz", reason->sm_clock_mhz);
    sw__draft_number(draft, "sm_clock_max_mhz", gpu->sm_clock_most_mhz);
    sw__draft_number(draft, "temperature_c", steps_mean(gpu, SW_GPU_TEMPERATURE));
    sw__draft_number(draft, "slowdown_c",
                     isnan(gpu->most_c) ? gpu->slowdown_c : gpu->most_c);
    sw__draft_number(draft, "power_w", steps_mean(gpu, SW_GPU_POWER));
    sw__draft_number(draft, "power_limit_w", gpu->power_limit_w);
    sw__draft_number(draft, "power_default_w", gpu->power_default_w);
    sw__draft_number(draft, "looks", (double)gpu->step_looks);
    sw__draft_where(all, draft, NULL, 0, gpu->name);
    draft->finding.share = reason->steps;
    draft->finding.confidence = isnan(worst->clock) ? 0.6 : 0.85;
    /* How much faster higher clocks are depends on what bounds the kernels, which nobody has measured: no prediction. */
    const double lost = worst->lost;
    enum sw_severity severity = lost >= 0.5   ? SW_SEVERITY_CRITICAL
                                : lost >= 0.2 ? SW_SEVERITY_HIGH
                                : lost >= 0.1 ? SW_SEVERITY_MEDIUM
                                              : SW_SEVERITY_LOW;
    if (worst->cause == BRAKE && severity < SW_SEVERITY_MEDIUM) {
        severity = SW_SEVERITY_MEDIUM;
    }
    draft->finding.severity = severity;
    advise(all, draft, worst);
}

static void throttling(sw_findings *all, const sw_gpu *list, size_t count)
{
    struct throttle worst = {.cause = NOTHING, .lost = -1};
    size_t throttled = 0;
    size_t checked = 0;
    uint64_t looks = 0;
    for (size_t i = 0; i < count; i++) {
        if (!sw__gpu_is_used(&list[i])) {
            continue;
        }
        const struct throttle found = throttle_of(&list[i]);
        checked += list[i].step_looks >= LOOKS_LEAST;
        looks = list[i].step_looks > looks ? list[i].step_looks : looks;
        throttled += found.cause != NOTHING;
        if (found.cause != NOTHING && found.lost > worst.lost) {
            worst = found;
        }
    }
    if (worst.cause != NOTHING) {
        tell_throttle(all, &worst, throttled);
    } else if (!checked) {
        sw__findings_unchecked(all, SW_FINDING_GPU_THROTTLE,
                               count ? "the clocks of GPUs that the program uses were "
                                       "seen %llu times within steps, which is too few"
                                     : "clocks of accelerators were not watched",
                               (unsigned long long)looks);
    }
}

/* --- remarks --- */

static bool loader_is_slow(const sw_findings *all)
{
    static const enum sw_finding_kind kinds[] = {
        SW_FINDING_LOADER_WORKERS, SW_FINDING_LOADER_TRANSFORM, SW_FINDING_LOADER_COLLATE,
        SW_FINDING_LOADER_IO, SW_FINDING_LOADER_MAIN_PROCESS};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (sw__has_draft(all, kinds[i])) {
            return true;
        }
    }
    return false;
}

/* Memory of a device in use, as share of what it has; NaN: unknown. */
static double memory_share(const sw_gpu *gpu)
{
    return gpu->memory_bytes != SW_UNKNOWN
               ? most(gpu, SW_GPU_MEMORY_USED) / (double)gpu->memory_bytes
               : NAN;
}

static void remark_use(sw_findings *all, const sw_gpu *gpu)
{
    const double busy = steps_mean(gpu, SW_GPU_UTILISATION);
    const double active = steps_mean(gpu, SW_GPU_SM_ACTIVE);
    const double memory = memory_share(gpu);
    char detail[80] = "";
    if (!(busy < UTILISATION_HIGH) || loader_is_slow(all)) {
        return;
    }
    if (!isnan(active)) {
        snprintf(detail, sizeof detail, " (its multiprocessors %.0f %%)", active);
    }
    if (memory < MEMORY_LOW) {
        sw__findings_note(all,
                          "GPU %u computes %.0f %% of the time of steps%s and has at "
                          "most %.0f %% of its memory in use: a larger batch may fit, "
                          "and give it more to do at once (stepwatch.find_batch_size).",
                          gpu->index, busy, detail, memory * 100);
    } else if (busy < UTILISATION_LOW) {
        sw__findings_note(all,
                          "GPU %u computes %.0f %% of the time of steps%s: the rest of "
                          "the time it waits for the program.",
                          gpu->index, busy, detail);
    }
}

static void remark_memory(sw_findings *all, const sw_gpu *gpu)
{
    const double memory = memory_share(gpu);
    if (memory > MEMORY_HIGH) {
        sw__findings_note(all,
                          "Of the memory of GPU %u, up to %.0f %% was in use, what "
                          "frameworks keep for later included: a larger batch may not "
                          "fit; a smaller one, or recomputing activations, makes room.",
                          gpu->index, memory * 100);
    }
}

static void remark_errors(sw_findings *all, const sw_gpu *gpu)
{
    const sw_monitor_series *errors = gpu->series[SW_GPU_ECC_UNCORRECTED];
    if (errors && errors->known > 1 && errors->all.max > errors->all.min) {
        sw__findings_note(all,
                          "GPU %u had %.0f errors of memory that could not be corrected: "
                          "results of this run may be wrong.",
                          gpu->index, errors->all.max - errors->all.min);
    }
}

void sw__rules_gpu(sw_findings *all)
{
    size_t count;
    const sw_gpus *gpus = sw_summary_gpus(all->it.summary);
    const sw_gpu *list = sw_gpus_get(gpus, &count);
    throttling(all, list, count);
    for (size_t i = 0; i < count; i++) {
        if (sw__gpu_is_used(&list[i])) {
            remark_use(all, &list[i]);
            remark_memory(all, &list[i]);
            remark_errors(all, &list[i]);
        }
    }
    if (count == 0 && sw__has_device(all)) {
        sw__findings_note(all, "A GPU was at work, and nothing is known of it. %s",
                          sw_gpus_why(gpus));
    }
}
