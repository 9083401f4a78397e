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

/* Counts are at most this old in the trace, as long as writing them takes a thousandth of the time. */
#define DUE_NS 2.5e8
#define SOON_NS 2e7
#define DUE_SHARE 1000

/* Any rate will do, and one that is known needs no clock. */
static uint64_t ticks_of(double ns)
{
    static _Atomic double unit_ns;
    if (unit_ns <= 0) {
        unit_ns = core_ticks_ns();
    }
    return (uint64_t)(unit_ns > 0 ? ns / unit_ns : ns);
}

uint64_t core_ticks_soon(uint64_t now)
{
    return now + ticks_of(SOON_NS);
}

uint64_t core_ticks_due(uint64_t begin, uint64_t now)
{
    const uint64_t usual = ticks_of(DUE_NS);
    const uint64_t took = now > begin ? (now - begin) * DUE_SHARE : 0;
    return now + (took > usual ? took : usual);
}
