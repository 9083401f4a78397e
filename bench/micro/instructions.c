/* A fixed number of operations for callgrind to count the instructions of.
 *
 *     instructions events|stats|off empty|section|nested|eight|counter OUT N
 *
 * Only what happens inside `counted` is looked at (--toggle-collect), on this thread. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

static sw_section *sections[8];

static void empty(void)
{
    BENCH_BARRIER();
}

static void section(void)
{
    sw_begin(sections[0]);
    BENCH_BARRIER();
    sw_end(sections[0]);
}

static void nested(void)
{
    sw_begin(sections[0]);
    section();
    sw_end(sections[0]);
}

static void eight(void)
{
    for (size_t i = 0; i < BENCH_COUNT(sections); i++) {
        sw_begin(sections[i]);
        BENCH_BARRIER();
        sw_end(sections[i]);
    }
}

static void counter(void)
{
    sw_counter("loss", 0.5);
}

static const struct {
    const char *name;
    void (*run)(void);
} things[] = {
    {"empty", empty}, {"section", section}, {"nested", nested},
    {"eight", eight}, {"counter", counter},
};

void counted(void (*run)(void), uint64_t n);

__attribute__((noinline)) void counted(void (*run)(void), uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        run();
    }
}

int main(int argc, char **argv)
{
    size_t which = 0;
    while (argc == 5 && which < BENCH_COUNT(things) &&
           strcmp(argv[2], things[which].name) != 0) {
        which++;
    }
    if (argc != 5 || which == BENCH_COUNT(things)) {
        fprintf(stderr, "usage: instructions events|stats|off "
                        "empty|section|nested|eight|counter OUT N\n");
        return 2;
    }
    if (strcmp(argv[1], "off") != 0) {
        sw_config config = {
            .name = "instructions",
            .out = argv[3],
            .policy = "ring",
            .max_mb = 16,
            .enabled = SW_ON,
            .events = strcmp(argv[1], "stats") == 0 ? SW_OFF : SW_ON,
            .quiet = SW_ON,
        };
        bench_record(&config);
    }
    for (size_t i = 0; i < BENCH_COUNT(sections); i++) {
        char name[] = "section a";
        name[8] = (char)('a' + (int)i);
        sections[i] = sw_section_get(name);
    }
    /* Chunks and histogram pages are taken before the counting begins. */
    for (int i = 0; i < 20000; i++) {
        things[which].run();
    }
    counted(things[which].run, bench_number(argv[4]));
    sw_shutdown();
    return 0;
}
