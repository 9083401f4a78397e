/* One section by stepwatch, by LTTng-UST and by what people write themselves: clock_gettime twice
 * and a line of JSON.
 *
 *     rival OUT JSON_FILE ROUNDS
 *
 * All loops have the same shape and stand in one program. LTTng-UST is measured where the program was
 * built with it and a session has its tracepoints enabled; bench/lttng.py sees to that. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <stepwatch/stepwatch.h>
#ifdef HAVE_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "rival_tracepoints.h"
#endif

enum { RING_MB = 16, RING_EVENTS = RING_MB * 1024 * 1024 / 32 };

static sw_section *section;
static FILE *json;
static int process;
static volatile uint64_t sink;

BENCH_LOOP void loop_empty(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        BENCH_BARRIER();
    }
}

BENCH_LOOP void loop_clock_pair(size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t begin = bench_ticks();
        BENCH_BARRIER();
        sum += bench_ticks() - begin;
    }
    sink = sum;
}

BENCH_LOOP void loop_stepwatch(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
    }
}

static double microseconds(const struct timespec *time)
{
    return (double)time->tv_sec * 1e6 + (double)time->tv_nsec / 1e3;
}

/* A line of a Chrome trace: what people write who want to see their sections in a viewer. */
BENCH_LOOP void loop_fprintf(size_t n)
{
    rewind(json);
    for (size_t i = 0; i < n; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        BENCH_BARRIER();
        clock_gettime(CLOCK_MONOTONIC, &end);
        double us = microseconds(&begin);
        fprintf(
            json,
            "{\"name\": \"%s\", \"ph\": \"X\", \"ts\": %.3f, \"dur\": %.3f, \"pid\": %d, "
            "\"tid\": %d},\n",
            "forward", us, microseconds(&end) - us, process, process);
    }
}

/* The shortest line that still says what took how long. No viewer reads it. */
BENCH_LOOP void loop_fprintf_short(size_t n)
{
    rewind(json);
    for (size_t i = 0; i < n; i++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        BENCH_BARRIER();
        clock_gettime(CLOCK_MONOTONIC, &end);
        long ns =
            (long)(end.tv_sec - begin.tv_sec) * 1000000000 + end.tv_nsec - begin.tv_nsec;
        fprintf(json, "{\"name\": \"%s\", \"ns\": %ld}\n", "forward", ns);
    }
}

#ifdef HAVE_LTTNG
BENCH_LOOP void loop_lttng(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        lttng_ust_tracepoint(stepwatch_bench, begin, 1);
        BENCH_BARRIER();
        lttng_ust_tracepoint(stepwatch_bench, end, 1);
    }
}
#endif

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: rival OUT JSON_FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = (unsigned)bench_number(argv[3]);
    json = fopen(argv[2], "we");
    if (!json) {
        bench_fail("the JSON file cannot be opened");
    }
    process = (int)getpid();
    bench_ns_per_tick();
    sw_config config = {
        .name = "rival",
        .out = argv[1],
        .policy = "ring",
        .max_mb = RING_MB,
        .enabled = SW_ON,
        .quiet = SW_ON,
    };
    bench_record(&config);
    bench_pin(0); /* now, so that the recorder's helper is not bound to the same core */
    section = sw_section_get("forward");
    loop_stepwatch((size_t)3 * RING_EVENTS);

    struct bench_case cases[6] = {
        {"empty", loop_empty, 20000, 1},
        {"clock_pair", loop_clock_pair, 20000, 1},
        {"stepwatch", loop_stepwatch, 20000, 1},
        {"fprintf", loop_fprintf, 20000, 1},
        {"fprintf_short", loop_fprintf_short, 20000, 1},
    };
    size_t count = 5;
    const char *lttng = "not built in: liblttng-ust-dev was not found";
#ifdef HAVE_LTTNG
    if (lttng_ust_tracepoint_enabled(stepwatch_bench, begin)) {
        cases[count++] = (struct bench_case){"lttng", loop_lttng, 20000, 1};
        lttng = "on";
    } else {
        lttng = "no session has the tracepoints enabled";
    }
#endif
    printf("{\"lttng\": \"%s\", ", lttng);
    bench_run(cases, count, rounds);
    printf("}\n");
    fclose(json);
    sw_shutdown();
    return 0;
}
