/* Why clocks were reduced, and how often. */
#include <math.h>
#include <string.h>

#include "analyze/bootstrap.h"
#include "analyze/gpu.h"

#define BIT(name) ((uint64_t)1 << SW_GPU_REASON_##name)
#define POWER_BITS (BIT(POWER_CAP) | BIT(POWER_BRAKE))
#define HEAT_BITS (BIT(SW_THERMAL) | BIT(HW_THERMAL))
/* The hardware's slowdown without the bit that says why is one or the other. */
#define LIMIT_BITS (POWER_BITS | HEAT_BITS | BIT(HW_SLOWDOWN))

/* What a gauge was at each look. */
static double *held_at_looks(const sw_monitor *monitor, const sw_monitor_series *series)
{
    double *held = sw__alloc_zero(monitor->look_count + 1, sizeof *held);
    if (!held) {
        return NULL;
    }
    const size_t place = series ? (size_t)(series - monitor->series) : 0;
    size_t next = series ? monitor->first_value[place] : 0;
    const size_t end = series ? monitor->first_value[place + 1] : 0;
    double now = NAN;
    for (size_t look = 0; look < monitor->look_count; look++) {
        now = monitor->looks[look].first ? NAN : now;
        for (; next < end && monitor->values[next].look <= look; next++) {
            now = monitor->values[next].value;
        }
        held[look] = now;
    }
    return held;
}

struct scratch {
    const sw_monitor *monitor;
    double *reasons, *clocks; /* at each look */
    double *held;             /* within steps: 1 or 0 */
};

static uint64_t bits_of(double value)
{
    return value >= 0 && value < 4503599627370496.0 ? (uint64_t)value : 0;
}

static int count(const struct scratch *scratch, uint64_t bits, sw_gpu_reason_stats *out)
{
    const sw_monitor *monitor = scratch->monitor;
    double all = 0;
    double with = 0;
    double clocks = 0;
    double clock_looks = 0;
    size_t in_steps = 0;
    *out = (sw_gpu_reason_stats){NAN, NAN, NAN, NAN, NAN};
    for (size_t i = 0; i < monitor->look_count; i++) {
        if (isnan(scratch->reasons[i])) {
            continue;
        }
        const bool holds = (bits_of(scratch->reasons[i]) & bits) != 0;
        all++;
        with += holds;
        if (!monitor->looks[i].in_step) {
            continue;
        }
        scratch->held[in_steps++] = holds;
        if (holds && !isnan(scratch->clocks[i])) {
            clocks += scratch->clocks[i];
            clock_looks++;
        }
    }
    if (all > 0) {
        out->share = with / all;
    }
    if (clock_looks > 0) {
        out->sm_clock_mhz = clocks / clock_looks;
    }
    if (in_steps == 0) {
        return SW_OK;
    }
    struct sw__mean mean;
    const int error = sw__mean_of(scratch->held, in_steps, &mean);
    if (error) {
        return error;
    }
    out->steps = mean.mean;
    /* What never changed was seen n times: what happens less often than 3 in n may still be unseen. */
    const double unseen = 3.0 / (double)in_steps;
    const double spread = mean.variance > 0 && mean.freedom > 0
                              ? sw__t_bound(mean.freedom) * sqrt(mean.variance)
                              : 0;
    out->steps_low = mean.mean - (spread > 0 ? spread : unseen);
    out->steps_high = mean.mean + (spread > 0 ? spread : unseen);
    out->steps_low = out->steps_low > 0 ? out->steps_low : 0;
    out->steps_high = out->steps_high < 1 ? out->steps_high : 1;
    return SW_OK;
}

int sw__gpu_reasons(sw_gpu *gpu, const sw_monitor *monitor)
{
    struct scratch scratch = {
        .monitor = monitor,
        .reasons = held_at_looks(monitor, gpu->series[SW_GPU_CLOCK_REASONS]),
        .clocks = held_at_looks(monitor, gpu->series[SW_GPU_SM_CLOCK]),
        .held = sw__alloc_zero(monitor->look_count + 1, sizeof *scratch.held)};
    int error = scratch.reasons && scratch.clocks && scratch.held ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; !error && i < monitor->look_count; i++) {
        if (!isnan(scratch.reasons[i])) {
            gpu->looks++;
            gpu->step_looks += monitor->looks[i].in_step;
        }
    }
    for (unsigned bit = 0; !error && bit < SW_GPU_REASONS; bit++) {
        error = count(&scratch, (uint64_t)1 << bit, &gpu->reason[bit]);
    }
    error = error ? error : count(&scratch, POWER_BITS, &gpu->power);
    error = error ? error : count(&scratch, HEAT_BITS, &gpu->heat);
    error = error ? error : count(&scratch, LIMIT_BITS, &gpu->limited);
    sw__free(scratch.reasons);
    sw__free(scratch.clocks);
    sw__free(scratch.held);
    return error;
}
