/* How much faster two threads record than one.
 *
 *     threads OUT ROUNDS
 *
 * Two cores of a virtual machine may be two halves of a real one, and then nothing doubles. So the
 * same is done by hand, without a recorder: two clock reads, some sums, a histogram and a record of
 * 32 bytes, all in memory that only the thread itself knows. What two threads reach with that is what this
 * machine can do. Prints operations a microsecond. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

enum { RING_MB = 32, RING_EVENTS = RING_MB * 1024 * 1024 / 32, ITERATIONS = 200000 };

static sw_section *section;

/* What one thread keeps by hand. */
struct private
{
    uint64_t calls, sum, least, most, last;
    uint64_t buckets[64][64];
    size_t next;
    uint64_t records[RING_EVENTS / 2][4];
};
static struct private *privates[2];

BENCH_LOOP void loop_section(size_t n, unsigned thread)
{
    (void)thread;
    for (size_t i = 0; i < n; i++) {
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
    }
}

BENCH_LOOP void loop_private(size_t n, unsigned thread)
{
    struct private *own = privates[thread];
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        BENCH_BARRIER();
        uint64_t end = bench_ticks();
        uint64_t ticks = end - begin;
        own->calls++;
        own->sum += ticks;
        own->least = ticks < own->least ? ticks : own->least;
        own->most = ticks > own->most ? ticks : own->most;
        own->last = ticks;
        unsigned bit = 63u - (unsigned)__builtin_clzll(ticks | 64);
        own->buckets[bit][ticks >> (bit - 6) & 63]++;
        uint64_t *record = own->records[own->next];
        record[0] = i;
        record[1] = begin;
        record[2] = end;
        record[3] = thread;
        own->next = own->next + 1 < BENCH_COUNT(own->records) ? own->next + 1 : 0;
        BENCH_BARRIER();
    }
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
    for (unsigned i = 0; i < 2; i++) {
        privates[i] = malloc(sizeof(*privates[i]));
        if (!privates[i]) {
            bench_fail("out of memory");
        }
        memset(privates[i], 1, sizeof(*privates[i]));
        privates[i]->next = 0;
    }
    pthread_t second;
    if (!rates || pthread_barrier_init(&gate, NULL, 2) != 0 ||
        pthread_create(&second, NULL, second_main, NULL) != 0) {
        bench_fail("no second thread could be started");
    }
    bench_pin(0);
    rate_of_two(loop_section, (size_t)2 * RING_EVENTS);
    for (unsigned round = 0; round < rounds; round++) {
        rates[0 * rounds + round] = rate_of_one(loop_private, ITERATIONS);
        rates[1 * rounds + round] = rate_of_two(loop_private, ITERATIONS);
        rates[2 * rounds + round] = rate_of_one(loop_section, ITERATIONS);
        rates[3 * rounds + round] = rate_of_two(loop_section, ITERATIONS);
    }
    task = NULL;
    pthread_barrier_wait(&gate);
    pthread_join(second, NULL);
    sw_shutdown();

    printf("{\"cores\": %u, \"rates\": {", bench_cores());
    print_rates("private_1", rates, rounds, ", ");
    print_rates("private_2", rates + rounds, rounds, ", ");
    print_rates("section_1", rates + (size_t)2 * rounds, rounds, ", ");
    print_rates("section_2", rates + (size_t)3 * rounds, rounds, "}}\n");
    free(rates);
    free(privates[0]);
    free(privates[1]);
    return 0;
}
