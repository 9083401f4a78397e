/* Reading the clock inline: the recorder's whole budget is two of these. */
#ifndef SW_BASE_CLOCK_READ_H
#define SW_BASE_CLOCK_READ_H

#include "base/compiler.h"
#include <stdint.h>
#include <stepwatch/clock.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Set by sw__clock_init before anything is recorded, constant afterwards. */
extern enum sw_clock_kind sw__clock_kind;
void sw__clock_init(void);

/* The register, whatever the clock is; its value counts only where sw__clock_is_register. */
SW__INLINE uint64_t sw__clock_register(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    return 0;
#endif
}

/* Whether reading the clock is one instruction. */
SW__INLINE int sw__clock_is_register(void)
{
#if defined(__x86_64__)
    return __atomic_load_n(&sw__clock_kind, __ATOMIC_RELAXED) == SW_CLOCK_TSC;
#elif defined(__aarch64__)
    return __atomic_load_n(&sw__clock_kind, __ATOMIC_RELAXED) == SW_CLOCK_CNTVCT;
#else
    return 0;
#endif
}

SW__INLINE uint64_t sw__clock_now(void)
{
    if (SW__LIKELY(sw__clock_is_register())) {
        return sw__clock_register();
    }
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
