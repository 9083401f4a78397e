#include "ticks.h"
#include <pthread.h>

int core_ticks_register;

static sw_clock_snapshot first;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    const enum sw_clock_kind kind = sw_clock_get_kind();
#if defined(__x86_64__)
    core_ticks_register = kind == SW_CLOCK_TSC;
#elif defined(__aarch64__)
    core_ticks_register = kind == SW_CLOCK_CNTVCT;
#else
    (void)kind;
#endif
    sw_clock_snap(&first);
}

void core_ticks_init(void)
{
    pthread_once(&once, choose);
}

double core_ticks_ns(void)
{
    core_ticks_init();
    if (sw_clock_get_kind() == SW_CLOCK_MONOTONIC) {
        return 1.0;
    }
    sw_clock_snapshot now;
    sw_clock_snap(&now);
    if (now.ticks <= first.ticks || now.mono_ns <= first.mono_ns) {
        return 0.0;
    }
    return (double)(now.mono_ns - first.mono_ns) / (double)(now.ticks - first.ticks);
}
