/* What one section, counter, mark and step costs beside a pair of clock reads.
 *
 *     section events|stats|off OUT ROUNDS
 *
 * events: ring policy, the ring filled several times over before anything is measured; stats: the
 * same without events; off: recording never started. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

enum { RING_MB = 16, RING_EVENTS = RING_MB * 1024 * 1024 / 32 };

static sw_section *plain, *outer, *inner, *again, *eight[8], *switched_off;
static volatile uint64_t sink;

BENCH_LOOP void loop_empty(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        BENCH_BARRIER();
    }
}

/* The yardstick: what anything that measures a duration has to do at least. */
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

BENCH_LOOP void loop_section(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_begin(plain);
        BENCH_BARRIER();
        sw_end(plain);
    }
}

BENCH_LOOP void loop_macro(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        SW_SECTION("macro") {
            BENCH_BARRIER();
        }
    }
}

BENCH_LOOP void loop_nested(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_begin(outer);
        sw_begin(inner);
        BENCH_BARRIER();
        sw_end(inner);
        sw_end(outer);
    }
}

BENCH_LOOP void loop_eight(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < BENCH_COUNT(eight); j++) {
            sw_begin(eight[j]);
            BENCH_BARRIER();
            sw_end(eight[j]);
        }
    }
}

__attribute__((noinline)) static void recurse(int depth)
{
    sw_begin(again);
    if (depth > 1) {
        recurse(depth - 1);
    }
    BENCH_BARRIER();
    sw_end(again);
}

BENCH_LOOP void loop_recursion(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        recurse(16);
    }
}

BENCH_LOOP void loop_switched_off(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_begin(switched_off);
        BENCH_BARRIER();
        sw_end(switched_off);
    }
}

BENCH_LOOP void loop_counter(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_counter("loss", (double)i);
    }
}

BENCH_LOOP void loop_mark(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_mark("learning rate changed");
    }
}

BENCH_LOOP void loop_step(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        sw_step_begin();
        BENCH_BARRIER();
        sw_step_end();
    }
}

static void get_sections(void)
{
    plain = sw_section_get("plain");
    outer = sw_section_get("outer");
    inner = sw_section_get("inner");
    again = sw_section_get("again");
    for (size_t i = 0; i < BENCH_COUNT(eight); i++) {
        char name[] = "eight a";
        name[6] = (char)('a' + (int)i);
        eight[i] = sw_section_get(name);
    }
    sw_domain *domain = sw_domain_get("switched off");
    switched_off = sw_domain_section(domain, "off", 3, SW_PHASE_INHERIT);
    sw_domain_enable(domain, false);
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: section events|stats|off OUT ROUNDS\n");
        return 2;
    }
    unsigned rounds = (unsigned)bench_number(argv[3]);
    bench_ns_per_tick();
    if (strcmp(argv[1], "off") != 0) {
        sw_config config = {
            .name = "section",
            .out = argv[2],
            .policy = "ring",
            .max_mb = RING_MB,
            .enabled = SW_ON,
            .events = strcmp(argv[1], "stats") == 0 ? SW_OFF : SW_ON,
            .quiet = SW_ON,
        };
        bench_record(&config);
    }
    bench_pin(0); /* now, so that the recorder's helper is not bound to the same core */
    get_sections();
    loop_section((size_t)3 * RING_EVENTS);

    const struct bench_case cases[] = {
        {"empty", loop_empty, 20000, 1},
        {"clock_pair", loop_clock_pair, 20000, 1},
        {"section", loop_section, 20000, 1},
        {"macro", loop_macro, 20000, 1},
        {"nested", loop_nested, 10000, 2},
        {"eight", loop_eight, 2500, 8},
        {"recursion", loop_recursion, 1250, 16},
        {"switched_off", loop_switched_off, 20000, 1},
        {"counter", loop_counter, 10000, 1},
        {"mark", loop_mark, 10000, 1},
        {"step", loop_step, 500, 1},
    };
    printf("{\"tier\": \"%s\", ", argv[1]);
    bench_run(cases, BENCH_COUNT(cases), rounds);
    printf("}\n");
    sw_shutdown();
    return 0;
}
