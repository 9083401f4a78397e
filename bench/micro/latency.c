/* The slowest sections, not the usual ones: percentiles of single sections once the ring is
 * pre-faulted.
 *
 *     latency OUT SAMPLES
 *
 * Each sample is taken between two clock reads, of which nothing is subtracted. The same with only a
 * pair of clock reads in between shows what the machine itself does to such a loop. Blocks of
 * both alternate. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

#include <stepwatch/stepwatch.h>

enum { RING_MB = 16, RING_EVENTS = RING_MB * 1024 * 1024 / 32, BLOCK = 10000 };

static sw_section *section;
static volatile uint64_t sink;

static uint32_t clamp(uint64_t ticks)
{
    return ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
}

BENCH_LOOP void sample_clock_pair(uint32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        uint64_t inner_begin = bench_ticks();
        BENCH_BARRIER();
        sink = bench_ticks() - inner_begin;
        out[i] = clamp(bench_ticks() - begin);
    }
}

BENCH_LOOP void sample_section(uint32_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
        out[i] = clamp(bench_ticks() - begin);
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void print_percentiles(const char *name, uint32_t *samples, size_t count)
{
    qsort(samples, count, sizeof(*samples), compare);
    const struct {
        const char *name;
        double q;
    } asked[] = {
        {"p50", 0.5}, {"p99", 0.99}, {"p99_9", 0.999}, {"p99_99", 0.9999}, {"max", 1.0}};
    printf("\"%s\": {", name);
    for (size_t i = 0; i < BENCH_COUNT(asked); i++) {
        size_t rank = (size_t)(asked[i].q * (double)(count - 1));
        printf("%s\"%s\": %.1f", i ? ", " : "", asked[i].name,
               samples[rank] * bench_ns_per_tick());
    }
    printf("}");
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: latency OUT SAMPLES\n");
        return 2;
    }
    size_t count = (size_t)(bench_number(argv[2]) + BLOCK - 1) / BLOCK * BLOCK;
    bench_ns_per_tick();
    /* Every page is touched before the loops, lest they pay for it. */
    uint32_t *clock_pair = malloc(count * sizeof(*clock_pair));
    uint32_t *sections = malloc(count * sizeof(*sections));
    if (!clock_pair || !sections) {
        bench_fail("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        clock_pair[i] = sections[i] = 1;
    }
    sw_config config = {
        .name = "latency",
        .out = argv[1],
        .policy = "ring",
        .max_mb = RING_MB,
        .enabled = SW_ON,
        .quiet = SW_ON,
    };
    bench_record(&config);
    bench_pin(0); /* now, so that the recorder's helper is not bound to the same core */
    section = sw_section_get("section");
    for (size_t i = 0; i < (size_t)3 * RING_EVENTS; i += BLOCK) {
        sample_section(sections, BLOCK);
    }
    for (size_t i = 0; i < count; i += BLOCK) {
        sample_clock_pair(clock_pair + i, BLOCK);
        sample_section(sections + i, BLOCK);
    }
    sw_shutdown();
    printf("{\"samples\": %zu, ", count);
    print_percentiles("clock_pair", clock_pair, count);
    printf(", ");
    print_percentiles("section", sections, count);
    printf("}\n");
    free(clock_pair);
    free(sections);
    return 0;
}
