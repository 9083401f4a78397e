/* What rules ask of the accelerator: how busy it is while steps are made, by what the monitor saw. */
#include <math.h>

#include <stepwatch/monitor.h>

#include "analyze/rules.h"
#include "analyze/summary.h"

#define IDLE_MOST 0.5

/* Looks that fall into steps may still speak of what was before the first of them, so that the mean is too low. */
static void take(double *mean, double *most, const sw_monitor_series *series)
{
    if (series && series->steps.samples > 0) {
        *mean =
            fmax(*mean, series->steps.mean / 100); /* fmax: a number rather than NaN */
        *most = fmax(*most, series->steps.max / 100);
    }
}

struct sw__device_use sw__device_use(const sw_findings *all)
{
    struct sw__device_use use = {.busy = NAN,
                                 .busy_most = NAN,
                                 .sm = NAN,
                                 .sm_most = NAN,
                                 .tensor = NAN,
                                 .tensor_most = NAN};
    const sw_gpus *gpus = sw_summary_gpus(all->it.summary);
    size_t count;
    const sw_gpu *list = sw_gpus_get(gpus, &count);
    for (size_t i = 0; i < count; i++) {
        const sw_monitor_series *busy = list[i].series[SW_GPU_UTILISATION];
        if (!sw__gpu_is_used(&list[i]) || !busy) {
            continue;
        }
        use.looks = busy->steps.samples > use.looks ? busy->steps.samples : use.looks;
        take(&use.busy, &use.busy_most, busy);
        take(&use.sm, &use.sm_most, list[i].series[SW_GPU_SM_ACTIVE]);
        take(&use.tensor, &use.tensor_most, list[i].series[SW_GPU_TENSOR_ACTIVE]);
    }
    return use;
}

bool sw__device_idles(const sw_findings *all)
{
    const struct sw__device_use use = sw__device_use(all);
    return use.looks >= SW__DEVICE_LOOKS && use.busy_most < IDLE_MOST;
}

double sw__computed_beside(const sw_findings *all)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *user =
        monitor ? sw_monitor_find(monitor, "process.cpu_user") : NULL;
    if (!user || user->steps.samples < 2 || !sw__is_asynchronous(all) ||
        sw__has_device(all)) {
        return 0;
    }
    double own = 0;
    double steps = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        const sw_summary_step *at = &all->it.step[i];
        own += at->usage_steps ? (double)at->cpu_ns : 0;
        steps += at->usage_steps;
    }
    const double beside =
        user->steps.mean * all->it.mean_ns - (steps > 0 ? own / steps : 0);
    return steps > 0 && beside > 0 ? beside : 0;
}

/* Waits that show nothing: shorter than this. */
#define WAIT_LEAST_NS 1e6
#define QUEUED_LEAST 3

double sw__computed_in_queue(const sw_findings *all)
{
    sw_summary_step *list = NULL;
    size_t count = 0;
    double ns = 0, steps = 0, queued = 0;
    uint64_t since = 0;
    if (!sw__is_asynchronous(all) ||
        sw_summary_step_series(all->it.summary, &list, &count, NULL) != SW_OK) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_summary_step *at = &list[i];
        const bool waits = (double)at->phase_ns[SW_PHASE_SYNC] > WAIT_LEAST_NS &&
                           2 * at->phase_ns[SW_PHASE_SYNC] > at->end_ns - at->begin_ns;
        queued++;
        if (!at->complete) {
            since = 0;
        } else if (at->phase_ns[SW_PHASE_COMPILE] > 0) {
            /* Whatever was handed out before it is computed by now; what it compiled is yet to come. */
            since = at->end_ns;
            queued = 1;
        } else if (waits) {
            ns += since ? (double)(at->end_ns - since) : 0;
            steps += since ? queued : 0;
            since = 0;
        } else if (since == 0) {
            since =
                at->end_ns; /* the first that is handed out after everything was there */
            queued = 1;
        }
    }
    sw_summary_steps_free(list);
    return steps >= QUEUED_LEAST ? ns / steps : 0;
}
