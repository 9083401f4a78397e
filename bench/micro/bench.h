/* What every benchmark program needs: a clock, a core of its own, interleaved rounds, JSON.
 *
 * A program prints one JSON object. Figures are raw: one number a round and case; medians, ratios
 * and judgements are made of them by bench/run.py, so that nothing is lost on the way. */
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

/* Keeps the compiler from moving or removing what stands on either side. */
#define BENCH_BARRIER() __asm__ volatile("" ::: "memory")
/* Each measured loop is a function of its own, aligned alike: where a loop happens to lie must not
 * decide what it costs. */
#define BENCH_LOOP __attribute__((noinline, aligned(64))) static
#define BENCH_COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One read of the clock that the recorder uses on this machine, without the recorder. */
static inline uint64_t bench_ticks(void)
{
#if defined(__x86_64__)
    return __rdtsc();
#elif defined(__aarch64__)
    uint64_t value;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
    return value;
#else
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t bench_now_ns(void);
/* Length of a tick; the first call measures it for 50 ms. */
double bench_ns_per_tick(void);
/* Binds the calling thread to the nth core that the process may use, so that no round pays for a
 * move; does nothing where there are not so many. */
void bench_pin(unsigned nth);
unsigned bench_cores(void);
/* The value of a line of /proc/self/status ("VmHWM") in KiB; 0 when it is not there. */
uint64_t bench_status_kib(const char *key);
/* Reads a positive whole number or leaves with exit code 2. */
uint64_t bench_number(const char *text);
_Noreturn void bench_fail(const char *message);
/* Starts recording, or leaves with exit code 1 and the reason. */
struct sw_config;
void bench_record(const struct sw_config *config);

/* A loop under test: run(n) does the thing n × per times. */
struct bench_case {
    const char *name;
    void (*run)(size_t n);
    size_t n;   /* iterations a round */
    size_t per; /* operations an iteration */
};

/* Runs every case once a round, `rounds` times after one unmeasured round, and prints
 *   "rounds": {"NAME": [ns of one operation, …], …}
 * as part of an object. The order within a round changes from round to round: a case that comes after
 * a rest of the recorder would look better than one in the midst of its work. */
void bench_run(const struct bench_case *cases, size_t count, unsigned rounds);

#endif
