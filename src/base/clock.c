/* The choice of the clock, once for the process, and the snapshots that tie it to
 * others. */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "base/clock_read.h"
#include "base/os.h"

#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define TRIES 8

enum sw_clock_kind sw__clock_kind = SW_CLOCK_MONOTONIC;
static char why[160] = "not chosen yet";
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* A process can be forbidden to read the counter; doing so would then kill it. */
static bool may_read_counter(void)
{
    int mode = PR_TSC_ENABLE;
    return prctl(PR_GET_TSC, &mode) != 0 || mode == PR_TSC_ENABLE;
}

static bool cpu_says_invariant(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid(0x80000007u, &eax, &ebx, &ecx, &edx) && (edx & (1u << 8));
}

/* The kernel measures the counters of all CPUs against each other. When it keeps time by
 * something else than the counter, it has found them wanting. */
static bool kernel_keeps_time_by_counter(const char *source)
{
    return strcmp(source, "tsc") == 0 || strcmp(source, "tsc-early") == 0 ||
           strcmp(source, "kvm-clock") == 0 || strncmp(source, "hyperv", 6) == 0;
}

static void choose_for_machine(void)
{
    if (!may_read_counter()) {
        snprintf(why, sizeof why, "reading the TSC is forbidden to this process");
        return;
    }
    if (!cpu_says_invariant()) {
        snprintf(why, sizeof why, "the CPU does not call its TSC invariant");
        return;
    }
    char source[64];
    if (sw__os_read_file(CLOCKSOURCE, source, sizeof source) <= 0) {
        __atomic_store_n(&sw__clock_kind, SW_CLOCK_TSC, __ATOMIC_RELAXED);
        snprintf(why, sizeof why,
                 "the TSC is invariant; the kernel's clock is not known");
        return;
    }
    source[strcspn(source, "\n")] = '\0';
    if (kernel_keeps_time_by_counter(source)) {
        __atomic_store_n(&sw__clock_kind, SW_CLOCK_TSC, __ATOMIC_RELAXED);
        snprintf(why, sizeof why, "the TSC is invariant and the kernel keeps time by %s",
                 source);
    } else {
        snprintf(why, sizeof why, "the kernel keeps time by %s instead of the TSC",
                 source);
    }
}
#elif defined(__aarch64__)
static void choose_for_machine(void)
{
    __atomic_store_n(&sw__clock_kind, SW_CLOCK_CNTVCT, __ATOMIC_RELAXED);
    snprintf(why, sizeof why,
             "the virtual counter of this architecture is always steady");
}
#else
static void choose_for_machine(void)
{
    snprintf(why, sizeof why, "no counter is known for this architecture");
}
#endif

static void choose(void)
{
    const char *wish = getenv("STEPWATCH_CLOCK");
    if (wish && strcmp(wish, "monotonic") == 0) {
        snprintf(why, sizeof why, "STEPWATCH_CLOCK asks for it");
        return;
    }
#if defined(__x86_64__)
    if (wish && strcmp(wish, "tsc") == 0 && may_read_counter()) {
        __atomic_store_n(&sw__clock_kind, SW_CLOCK_TSC, __ATOMIC_RELAXED);
        snprintf(why, sizeof why, "STEPWATCH_CLOCK asks for it");
        return;
    }
#endif
    choose_for_machine();
    if (wish && *wish && strcmp(wish, "auto") != 0 &&
        strcmp(wish, sw_clock_kind_name(sw__clock_kind)) != 0) {
        size_t used = strlen(why);
        snprintf(why + used, sizeof why - used,
                 "; STEPWATCH_CLOCK could not be followed");
    }
}

void sw__clock_init(void)
{
    pthread_once(&once, choose);
}

enum sw_clock_kind sw_clock_get_kind(void)
{
    sw__clock_init();
    return sw__clock_kind;
}

const char *sw_clock_kind_name(enum sw_clock_kind kind)
{
    switch (kind) {
    case SW_CLOCK_NONE:
        return "none";
    case SW_CLOCK_TSC:
        return "tsc";
    case SW_CLOCK_MONOTONIC:
        return "monotonic";
    case SW_CLOCK_CNTVCT:
        return "cntvct";
    }
    return "unknown";
}

const char *sw_clock_why(void)
{
    sw__clock_init();
    return why;
}

uint64_t sw_clock_ticks(void)
{
    sw__clock_init();
    return sw__clock_now();
}

/* The counter may be read early or late by some instructions; a snapshot is worth
 * waiting. */
static uint64_t ticks_in_order(void)
{
#if defined(__x86_64__)
    _mm_lfence();
    uint64_t ticks = sw__clock_now();
    _mm_lfence();
    return ticks;
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
    return sw__clock_now();
#else
    return sw__clock_now();
#endif
}

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now = {0};
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sw_clock_snap(sw_clock_snapshot *out)
{
    sw__clock_init();
    *out = (sw_clock_snapshot){.error_ticks = UINT64_MAX};
    for (int i = 0; i < TRIES; i++) {
        uint64_t before = ticks_in_order();
        uint64_t mono = read_ns(CLOCK_MONOTONIC);
        uint64_t real = read_ns(CLOCK_REALTIME);
        uint64_t after = ticks_in_order();
        /* A counter that ran backwards (a move to a CPU out of step) has no midpoint: the
         * try counts only as long as there is nothing better. */
        uint64_t error = after >= before ? after - before : UINT64_MAX - 1;
        if (error < out->error_ticks) {
            out->ticks = after >= before ? before + (after - before) / 2 : after;
            out->mono_ns = mono;
            out->real_ns = real;
            out->error_ticks = error;
        }
    }
    if (sw__clock_kind == SW_CLOCK_MONOTONIC) {
        out->mono_ns = out->ticks; /* the same clock: a timeline is the identity */
    }
}
