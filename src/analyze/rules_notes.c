/* What bounds the run, and remarks that are no findings. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define OVERHEAD_MOST 5.0 /* percent */
#define STEPS_LEAST 20
#define LONG_RUN_NS 3600e9
#define LOADING_MOST 0.2
#define DEVICE_BUSY 0.9 /* share of the time in which it computes */

/* --- what bounds the run --- */

/* Where time can go, as a user would say it. */
static const struct bound {
    const char *name, *what;
    uint64_t phases;
} bounds[] = {
    {"data loading", "waiting for batches or making them",
     SW__PHASE_BIT(SW_PHASE_DATA_WAIT) | SW__BATCH_PHASES},
    {"compute", "forward and backward", SW__COMPUTE_PHASES},
    {"update", "the optimizer",
     SW__PHASE_BIT(SW_PHASE_OPTIMIZER) | SW__PHASE_BIT(SW_PHASE_ZERO_GRAD)},
    {"device", "copying to the device and waiting for it",
     SW__PHASE_BIT(SW_PHASE_H2D) | SW__PHASE_BIT(SW_PHASE_SYNC)},
    {"communication", "talking to other ranks", SW__PHASE_BIT(SW_PHASE_COMMUNICATION)},
    {"compilation", "compiling", SW__PHASE_BIT(SW_PHASE_COMPILE)},
    {"logging", "logging", SW__PHASE_BIT(SW_PHASE_LOGGING)},
    {"garbage collection", "the garbage collector", SW__PHASE_BIT(SW_PHASE_GC)},
    {"the program's own code", "code that belongs to no phase",
     SW__PHASE_BIT(SW_PHASE_OTHER)},
};

/* The layer with most time in forward and backward; NULL: none is known. */
static const sw_training_module *top_module(const sw_findings *all, double *share)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *list = sw_training_modules(all->it.training, &count);
    const sw_training_module *top = NULL;
    double most = 0;
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; i < count && steps; i++) {
        const sw_training_module *module = &list[i];
        /* Backward times include what is below: of layers that do all by themselves they are their own. */
        const double backward =
            module->backward_calls && module->self_ns == module->total_ns
                ? (double)module->backward_ns / (double)module->backward_calls
                : 0;
        const double ns = (double)module->self_ns / (double)steps + backward;
        if (!module->loss && !module->root && ns > most) {
            most = ns;
            top = module;
        }
    }
    const struct sw__estimate compute = sw__phase_time(all, SW__COMPUTE_PHASES);
    *share = compute.mean > 0 ? most / compute.mean : 0;
    return *share < 1 ? top : NULL;
}

/* ", most of it in Net.conv2 (38 %)", or in a function of the program; "" where nothing is known. */
static const char *detail(sw_findings *all, const struct bound *bound, double share)
{
    double part = 0;
    /* Where a device computes, modules are timed on the host, which only hands their work out. */
    const bool here = bound->phases == SW__COMPUTE_PHASES && !sw__has_device(all);
    const sw_training_module *module = here ? top_module(all, &part) : NULL;
    if (module && part > 0.1) {
        return sw__findings_format(all, ", %s in %s (%.0f %% of a step)",
                                   part > 0.5 ? "most of it" : "the largest part",
                                   module->name, 100 * part * share);
    }
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, bound->phases, SW__HOT_ANY, false, &count);
    uint64_t samples = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        samples +=
            bound->phases & SW__PHASE_BIT(p) ? sw__hot_code(all)->phase_samples[p] : 0;
    }
    if (!list || samples < 20 || 5 * list->samples < samples) {
        return "";
    }
    return sw__findings_format(
        all, ", %s in %s (%s:%u)",
        2 * list->samples > samples ? "most of it" : "the largest part", list->frame.name,
        sw__file_name(list->frame.file), list->frame.line);
}

/* Steps that hand work to a device are bound by it, or it waits for them; phases of the host do not tell. */
static const char *device_bound(sw_findings *all, const struct bound *largest)
{
    const struct sw__device_use use = sw__device_use(all);
    const uint64_t phases = SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OPTIMIZER) |
                            SW__PHASE_BIT(SW_PHASE_SYNC);
    if (!sw__has_device(all) || use.looks < SW__DEVICE_LOOKS ||
        !(largest->phases & phases)) {
        return NULL;
    }
    if (use.busy_most >= DEVICE_BUSY) {
        return sw__findings_format(
            all, "device: it computes up to %.0f %% of the time, %.0f %% on average",
            use.busy_most * 100, use.busy * 100);
    }
    if (sw__device_idles(all)) {
        return sw__findings_format(all,
                                   "host: the device computes %.0f %% of the time and "
                                   "waits for the program in the rest%s",
                                   use.busy * 100, detail(all, largest, 0));
    }
    return NULL;
}

static void say_bound(sw_findings *all)
{
    const struct bound *largest = NULL;
    double most = 0;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        const double share = sw__case_share(&all->it, bounds[i].phases).mean;
        if (share > most) {
            most = share;
            largest = &bounds[i];
        }
    }
    const double base = (double)all->it.base_ns;
    const double validation = (double)all->it.validation_ns / base;
    const double checkpoint = (double)all->it.checkpoint_ns / base;
    const double aside = validation > checkpoint ? validation : checkpoint;
    if (aside > 0.5) {
        all->bound = sw__findings_format(
            all, "%s: %.0f %% of the time is no training",
            validation > checkpoint ? "validation" : "saving state", aside * 100);
    } else if (largest) {
        all->bound = device_bound(all, largest);
    }
    if (largest && !all->bound) {
        all->bound =
            sw__findings_format(all, "%s: %.0f %% of a step is %s%s", largest->name,
                                most * 100, largest->what, detail(all, largest, most));
    }
}

/* --- remarks --- */

static void remark_on_steps(sw_findings *all)
{
    const sw_summary_steps *steps = all->it.steps;
    if (!steps) {
        return;
    }
    if (steps->counted == 0 && steps->count > steps->incomplete) {
        sw__findings_note(all, "All steps are warm-up: what they show says little about "
                               "training.");
    } else if (steps->count < STEPS_LEAST) {
        sw__findings_note(all, "Only %llu step%s recorded: a longer run says more.",
                          (unsigned long long)steps->count,
                          steps->count == 1 ? " was" : "s were");
    }
    if (all->it.count && steps->phase[SW_PHASE_OTHER].share > 0.3 &&
        !steps->phase[SW_PHASE_FORWARD].measured) {
        sw__findings_note(all,
                          "No phase is known for %.0f %% of a step: sections named "
                          "forward, backward and so on would tell it apart.",
                          steps->phase[SW_PHASE_OTHER].share * 100);
    }
}

static void remark_on_recording(sw_findings *all)
{
    const sw_summary_overhead *overhead = sw_summary_get_overhead(all->it.summary);
    const sw_summary_run *run = sw_summary_get_run(all->it.summary);
    const double torch_s = sw__setting_number(all, "operators", "overhead_seconds");
    if (overhead->low > OVERHEAD_MOST && torch_s > overhead->seconds / 2) {
        sw__findings_note(all,
                          "Recording took %.1f %% of the time, most of it to begin, end "
                          "and read torch's profiler (%.2f s): fewer steps with "
                          "operators cost less.",
                          overhead->percent, torch_s);
    } else if (overhead->low > OVERHEAD_MOST) {
        sw__findings_note(all,
                          "Recording took %.1f %% of the time: %llu sections ended and "
                          "%llu records were "
                          "written; fewer of them, or a schedule, cost less.",
                          overhead->percent, (unsigned long long)overhead->calls,
                          (unsigned long long)overhead->events);
    }
    if (all->it.steps && (double)run->duration_ns > LONG_RUN_NS) {
        sw__findings_note(all,
                          "The run took more than an hour: a schedule that records some "
                          "steps now and then is enough for a production run.");
    }
}

static void remark_on_loading(sw_findings *all)
{
    if (all->it.count && all->it.loader && all->it.wait_share > LOADING_MOST) {
        sw__findings_note(
            all, "The loader alone can be measured with "
                 "stepwatch.benchmark_dataloader(loader), and with several batch "
                 "sizes.");
    }
}

static void remark_on_ranks(sw_findings *all)
{
    if (all->it.count && sw__setting_number(all, "data_parallel", "devices") > 1) {
        sw__findings_note(all,
                          "The model is in DataParallel, which copies it in every step: "
                          "DistributedDataParallel does not.");
    }
}

void sw__rules_notes(sw_findings *all)
{
    if (all->it.count) {
        say_bound(all);
    }
    remark_on_steps(all);
    remark_on_recording(all);
    remark_on_loading(all);
    remark_on_ranks(all);
    sw__rules_io(all);
}
