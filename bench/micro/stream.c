/* Many events into a file: what each costs when none is given up, and whether the writer waits.
 *
 *     stream record|plain OUT EVENTS
 *
 * plain does the same with pairs of clock reads and no recorder. The clock is read after every 64 sections; the
 * longest time between two such reads is the largest gap. Whether the thread ever waited is told by
 * its voluntary context switches, which no noise of the machine can fake. */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <stepwatch/stepwatch.h>

enum { GROUP = 64, MAX_MB = 600 };

static sw_section *section;
static volatile uint64_t sink;

struct result {
    uint64_t ticks, largest_gap;
    uint64_t long_gaps; /* above 100 µs */
    long waits, faults;
};

static void do_sections(void)
{
    for (int i = 0; i < GROUP; i++) {
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
    }
}

static void do_clock_pairs(void)
{
    uint64_t sum = 0;
    for (int i = 0; i < GROUP; i++) {
        uint64_t begin = bench_ticks();
        BENCH_BARRIER();
        sum += bench_ticks() - begin;
    }
    sink = sum;
}

static struct result measure(void (*group)(void), uint64_t groups)
{
    struct result result = {0};
    struct rusage before, after;
    const uint64_t long_ticks = (uint64_t)(100000.0 / bench_ns_per_tick());
    getrusage(RUSAGE_THREAD, &before);
    uint64_t begin = bench_ticks();
    uint64_t last = begin;
    for (uint64_t i = 0; i < groups; i++) {
        group();
        uint64_t now = bench_ticks();
        uint64_t gap = now - last;
        result.largest_gap = gap > result.largest_gap ? gap : result.largest_gap;
        result.long_gaps += gap > long_ticks;
        last = now;
    }
    result.ticks = last - begin;
    getrusage(RUSAGE_THREAD, &after);
    result.waits = after.ru_nvcsw - before.ru_nvcsw;
    result.faults = after.ru_minflt - before.ru_minflt;
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: stream record|plain OUT EVENTS\n");
        return 2;
    }
    uint64_t groups = (bench_number(argv[3]) + GROUP - 1) / GROUP;
    int record = strcmp(argv[1], "record") == 0;
    /* Not bound to a core: the thread that writes the file out needs one too, and where there are
     * two the kernel has to be free to put them apart. */
    double ns_per_tick = bench_ns_per_tick();
    char path[4096] = "";
    if (record) {
        sw_config config = {
            .name = "stream",
            .out = argv[2],
            .policy = "stream",
            .max_mb = MAX_MB,
            .enabled = SW_ON,
            .quiet = SW_ON,
        };
        bench_record(&config);
        section = sw_section_get("section");
        sw_trace_path(path, sizeof(path));
    }
    struct result result = measure(record ? do_sections : do_clock_pairs, groups);
    uint64_t begin = bench_now_ns();
    sw_shutdown();
    uint64_t shutdown_ns = bench_now_ns() - begin;
    printf("{\"events\": %" PRIu64 ", \"ns_per_event\": %.3f, \"largest_gap_us\": %.1f, "
           "\"long_gaps\": %" PRIu64 ", \"waits\": %ld, \"faults\": %ld, "
           "\"shutdown_ms\": %.2f, \"path\": \"%s\"}\n",
           groups * GROUP, (double)result.ticks * ns_per_tick / (double)(groups * GROUP),
           (double)result.largest_gap * ns_per_tick / 1e3, result.long_gaps, result.waits,
           result.faults, (double)shutdown_ns / 1e6, path);
    return 0;
}
