/* How much faster two threads record than one.
 *
 *     threads OUT ROUNDS
 *
 * The same is done with clock reads alone: two cores of a virtual machine may be one core of the real
 * one, and then nothing doubles. Prints sections a microsecond. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <stepwatch/stepwatch.h>

enum { RING_MB = 32, RING_EVENTS = RING_MB * 1024 * 1024 / 32, ITERATIONS = 200000 };

static sw_section *section;
static volatile uint64_t sinks[2][8]; /* a cache line for each thread */

BENCH_LOOP void loop_section(size_t n, unsigned thread)
{
    (void)thread;
    for (size_t i = 0; i < n; i++) {
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
    }
}

BENCH_LOOP void loop_clock_pair(size_t n, unsigned thread)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        BENCH_BARRIER();
        sum += bench_ticks() - begin;
    }
    sinks[thread][0] = sum;
}

/* The second thread waits at `gate` for its next task. NULL ends it. */
static void (*task)(size_t n, unsigned thread);
static size_t task_n;
static pthread_barrier_t gate;
static uint64_t begin_ticks[2], end_ticks[2];

static void work(unsigned thread)
{
    begin_ticks[thread] = bench_ticks();
    task(task_n, thread);
    end_ticks[thread] = bench_ticks();
}

static void *second_main(void *argument)
{
    (void)argument;
    bench_pin(1);
    for (;;) {
        pthread_barrier_wait(&gate);
        if (!task) {
            return NULL;
        }
        work(1);
        pthread_barrier_wait(&gate);
    }
}

/* Operations a microsecond of one thread. */
static double rate_of_one(void (*run)(size_t n, unsigned thread), size_t n)
{
    task = run;
    task_n = n;
    work(0);
    double ns = (double)(end_ticks[0] - begin_ticks[0]) * bench_ns_per_tick();
    return 1000.0 * (double)n / ns;
}

/* … and of two together, from the first one's start to the last one's end. */
static double rate_of_two(void (*run)(size_t n, unsigned thread), size_t n)
{
    task = run;
    task_n = n;
    pthread_barrier_wait(&gate);
    work(0);
    pthread_barrier_wait(&gate);
    uint64_t begin = begin_ticks[0] < begin_ticks[1] ? begin_ticks[0] : begin_ticks[1];
    uint64_t end = end_ticks[0] > end_ticks[1] ? end_ticks[0] : end_ticks[1];
    return 1000.0 * 2.0 * (double)n / ((double)(end - begin) * bench_ns_per_tick());
}

static void print_rates(const char *name, const double *rates, unsigned count,
                        const char *after)
{
    printf("\"%s\": [", name);
    for (unsigned i = 0; i < count; i++) {
        printf("%s%.5f", i ? ", " : "", rates[i]);
    }
    printf("]%s", after);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: threads OUT ROUNDS\n");
        return 2;
    }
    unsigned rounds = (unsigned)bench_number(argv[2]);
    if (bench_cores() < 2) {
        printf("{\"cores\": %u}\n", bench_cores());
        return 0;
    }
    bench_ns_per_tick();
    sw_config config = {
        .name = "threads",
        .out = argv[1],
        .policy = "ring",
        .max_mb = RING_MB,
        .enabled = SW_ON,
        .quiet = SW_ON,
    };
    bench_record(&config);
    section = sw_section_get("section");

    double *rates = calloc((size_t)4 * rounds, sizeof(*rates));
    pthread_t second;
    if (!rates || pthread_barrier_init(&gate, NULL, 2) != 0 ||
        pthread_create(&second, NULL, second_main, NULL) != 0) {
        bench_fail("no second thread could be started");
    }
    bench_pin(0);
    rate_of_two(loop_section, (size_t)2 * RING_EVENTS);
    for (unsigned round = 0; round < rounds; round++) {
        rates[0 * rounds + round] = rate_of_one(loop_clock_pair, ITERATIONS);
        rates[1 * rounds + round] = rate_of_two(loop_clock_pair, ITERATIONS);
        rates[2 * rounds + round] = rate_of_one(loop_section, ITERATIONS);
        rates[3 * rounds + round] = rate_of_two(loop_section, ITERATIONS);
    }
    task = NULL;
    pthread_barrier_wait(&gate);
    pthread_join(second, NULL);
    sw_shutdown();

    printf("{\"cores\": %u, \"rates\": {", bench_cores());
    print_rates("clock_1", rates, rounds, ", ");
    print_rates("clock_2", rates + rounds, rounds, ", ");
    print_rates("section_1", rates + (size_t)2 * rounds, rounds, ", ");
    print_rates("section_2", rates + (size_t)3 * rounds, rounds, "}}\n");
    free(rates);
    return 0;
}
