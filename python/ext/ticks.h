/* The recorder's clock, read inline: a call into the library costs as much as the reading itself. */
#ifndef STEPWATCH_EXT_TICKS_H
#define STEPWATCH_EXT_TICKS_H

#include <stdint.h>
#include <stepwatch/clock.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Set once by core_ticks_init, before anything is timed; 1: the clock is a register of the CPU. */
extern int core_ticks_register;
void core_ticks_init(void);
/* Nanoseconds a tick, measured since the first core_ticks_init of the process. */
double core_ticks_ns(void);

/* When what profilers counted goes into the trace next, for programs that are killed: a part of a second after `now`, and later where
 * the last time, which began at `begin`, took long. */
uint64_t core_ticks_due(uint64_t begin, uint64_t now);
/* When to write for the first time: a process may be ended soon. */
uint64_t core_ticks_soon(uint64_t now);

static inline uint64_t core_ticks(void)
{
    if (__builtin_expect(core_ticks_register, 1)) {
#if defined(__x86_64__)
        return __rdtsc();
#elif defined(__aarch64__)
        uint64_t value;
        __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
        return value;
#endif
    }
    return sw_clock_ticks();
}

#endif
