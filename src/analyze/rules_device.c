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
/* A wait that begins so soon after another follows it at once. */
#define AT_ONCE_NS 1e6
#define QUEUED_LEAST 3
/* Computing takes all of a step from this part of it on. */
#define THROUGHOUT 0.97

/* Steps that were handed out one after the other while there was nothing else to compute, up to a wait for them. */
struct queue {
    uint64_t since; /* 0: nothing is known of what is computed */
    double queued;
    double ns, steps; /* of all that ended */
};

/* A wait for more than one step says that the program is ahead, and computing never stopped; a shorter one is for what was handed
 * out last alone. */
static void end_queue(struct queue *queue, uint64_t over_ns, double wait_ns)
{
    if (queue->since && over_ns > queue->since) {
        const double each = (double)(over_ns - queue->since) / queue->queued;
        queue->ns += queue->queued * (wait_ns > 1.5 * each ? each : fmin(each, wait_ns));
        queue->steps += queue->queued;
    }
    queue->since = 0;
}

/* Whether a span is a wait for the device. */
static bool is_wait(const sw_findings *all, const sw_record_span *span)
{
    const sw_trace_lane *lane = all->it.summary->step_lane;
    if (span->head.kind != SW_RECORD_SPAN || span->domain != lane->domain ||
        span->node >= lane->node_count) {
        return false;
    }
    const sw_trace_name *name = sw_trace_get_name(sw__step_trace(all->it.summary),
                                                  lane->nodes[span->node].section);
    return name && name->use == 1 && name->phase == SW_PHASE_SYNC;
}

/* The first wait after the last step, with those that follow it at once, for a list of results is waited for one by one:
 * together as `*wait_ns`, and when they were over; 0: there was none. */
static uint64_t waited_after(const sw_findings *all, uint64_t last_ns, double *wait_ns)
{
    sw_trace *trace = sw__step_trace(all->it.summary);
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_SPAN,
                                     .one_thread = true,
                                     .thread = all->it.summary->step_lane->thread,
                                     .from_ns = last_ns};
    uint64_t over = 0;
    sw_event event;
    if (sw_cursor_open(&cursor, &trace, 1, &filter, NULL) != SW_OK) {
        return 0;
    }
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        const double took = (double)(event.end_ns - event.begin_ns);
        if (event.begin_ns < last_ns ||
            !is_wait(all, (const sw_record_span *)(const void *)event.record)) {
            continue;
        }
        if (!over && took > WAIT_LEAST_NS) {
            over = event.end_ns;
            *wait_ns = took;
        } else if (over && event.begin_ns >= over &&
                   (double)(event.begin_ns - over) < AT_ONCE_NS) {
            over = event.end_ns;
            *wait_ns += took;
        } else if (over && event.begin_ns >= over) {
            break;
        }
    }
    sw_cursor_free(cursor);
    return over;
}

double sw__computed_in_queue(const sw_findings *all)
{
    sw_summary_step *list = NULL;
    size_t count = 0;
    struct queue queue = {0};
    if (!sw__is_asynchronous(all) ||
        sw_summary_step_series(all->it.summary, &list, &count, NULL) != SW_OK) {
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_summary_step *at = &list[i];
        const double wait = (double)at->phase_ns[SW_PHASE_SYNC];
        queue.queued++;
        if (!at->complete) {
            queue.since = 0;
        } else if (at->phase_ns[SW_PHASE_COMPILE] > 0) {
            /* Whatever was handed out before it is computed by now; what it compiled is yet to come. */
            queue.since = at->end_ns;
            queue.queued = 1;
        } else if (wait > WAIT_LEAST_NS &&
                   2 * wait > (double)(at->end_ns - at->begin_ns)) {
            end_queue(&queue, at->end_ns, wait);
        } else if (queue.since == 0) {
            queue.since =
                at->end_ns; /* the first that is handed out after everything was there */
            queue.queued = 1;
        }
    }
    double wait = 0;
    const uint64_t over =
        queue.since ? waited_after(all, list[count - 1].end_ns, &wait) : 0;
    end_queue(&queue, over, wait);
    sw_summary_steps_free(list);
    return queue.steps >= QUEUED_LEAST ? queue.ns / queue.steps : 0;
}

double sw__computed_meanwhile(const sw_findings *all)
{
    return fmax(sw__computed_beside(all), sw__computed_in_queue(all));
}

bool sw__computes_throughout(const sw_findings *all)
{
    return sw__computed_in_queue(all) > THROUGHOUT * all->it.mean_ns;
}
