#include "bench.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

double bench_ns_per_tick(void)
{
    static double result;
    if (result == 0.0) {
        uint64_t begin_ns = bench_now_ns();
        uint64_t begin_ticks = bench_ticks();
        uint64_t end_ns;
        do {
            end_ns = bench_now_ns();
        } while (end_ns - begin_ns < 50000000);
        result = (double)(end_ns - begin_ns) / (double)(bench_ticks() - begin_ticks);
    }
    return result;
}

/* The cores of the process as they were before anything was bound. */
static const cpu_set_t *usable_cores(void)
{
    static cpu_set_t cores;
    static int known;
    if (!known) {
        if (sched_getaffinity(0, sizeof(cores), &cores) != 0) {
            CPU_ZERO(&cores);
        }
        known = 1;
    }
    return &cores;
}

unsigned bench_cores(void)
{
    return (unsigned)CPU_COUNT(usable_cores());
}

void bench_pin(unsigned nth)
{
    const cpu_set_t *cores = usable_cores();
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, cores) && nth-- == 0) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            sched_setaffinity(0, sizeof(one), &one);
            return;
        }
    }
}

uint64_t bench_status_kib(const char *key)
{
    FILE *file = fopen("/proc/self/status", "re");
    if (!file) {
        return 0;
    }
    char line[256];
    size_t length = strlen(key);
    uint64_t value = 0;
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            value = strtoull(line + length + 1, NULL, 10);
            break;
        }
    }
    fclose(file);
    return value;
}

uint64_t bench_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value == 0) {
        fprintf(stderr, "'%s' is not a positive whole number\n", text);
        exit(2);
    }
    return value;
}

void bench_fail(const char *message)
{
    fprintf(stderr, "%s\n", message);
    exit(1);
}

void bench_record(const struct sw_config *config)
{
    sw_error_info why = {0};
    if (sw_init_info(config, sizeof(*config), &why) < 0) {
        bench_fail(why.message);
    }
}

/* Puts 0 … count-1 into another order; always the same sequence of orders. */
static void shuffle(size_t *order, size_t count)
{
    static uint32_t state = 1;
    for (size_t i = count; i > 1; i--) {
        state = state * 1664525U + 1013904223U;
        size_t other = (size_t)(state >> 8) % i;
        size_t kept = order[i - 1];
        order[i - 1] = order[other];
        order[other] = kept;
    }
}

void bench_run(const struct bench_case *cases, size_t count, unsigned rounds)
{
    double *figures = calloc(count * rounds, sizeof(*figures));
    size_t *order = calloc(count, sizeof(*order));
    if (!figures || !order) {
        bench_fail("out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    double ns_per_tick = bench_ns_per_tick();
    for (size_t i = 0; i < count; i++) {
        cases[i].run(cases[i].n);
    }
    for (unsigned round = 0; round < rounds; round++) {
        shuffle(order, count);
        for (size_t turn = 0; turn < count; turn++) {
            size_t i = order[turn];
            uint64_t begin = bench_ticks();
            cases[i].run(cases[i].n);
            uint64_t ticks = bench_ticks() - begin;
            figures[i * rounds + round] =
                (double)ticks * ns_per_tick / ((double)cases[i].n * (double)cases[i].per);
        }
    }
    printf("\"rounds\": {");
    for (size_t i = 0; i < count; i++) {
        printf("%s\"%s\": [", i ? ", " : "", cases[i].name);
        for (unsigned round = 0; round < rounds; round++) {
            printf("%s%.4f", round ? ", " : "", figures[i * rounds + round]);
        }
        printf("]");
    }
    printf("}");
    free(figures);
    free(order);
}
