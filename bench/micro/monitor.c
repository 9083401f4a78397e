/* CPU time of the monitor's looks, one period apart as in a program: in between caches belong to others, so that looks one
 * after the other would say too little. Prints one JSON object. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "watch/monitor.h"
#include <stepwatch/stepwatch.h>

static double cpu_s(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec * 1e-9;
}

static int complain(void)
{
    fprintf(stderr, "usage: monitor OUT INTERVAL LOOKS basic|all\n");
    return 2;
}

int main(int argc, char **argv)
{
    /* CPU, memory, I/O and switches: what the cost of the monitor is promised for. */
    static const struct sw__source *const basic[] = {&sw__source_process, &sw__source_io,
                                                     &sw__source_training, NULL};
    const struct sw__source_setting setting = {.root = ""};
    if (argc != 5) {
        return complain();
    }
    const double interval = strtod(argv[2], NULL);
    const long looks = strtol(argv[3], NULL, 10);
    const bool all = strcmp(argv[4], "all") == 0;
    if (!(interval >= SW_MONITOR_LEAST_S) || looks < 2) {
        return complain();
    }
    if (sw_init(&(sw_config){.name = "bench", .out = argv[1], .quiet = SW_ON})) {
        return 3;
    }
    SW_SCOPE("training");
    struct sw__looker *looker =
        sw__looker_open(all ? sw__sources : basic, &setting, interval);
    if (!looker) {
        return 3;
    }
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    const struct timespec began = next;
    sw__looker_look(looker, SW_LOOK_FIRST, false, false);
    const double before = cpu_s();
    for (long i = 0; i < looks; i++) {
        next.tv_nsec += (long)(interval * 1e9 + 0.5) % 1000000000;
        next.tv_sec += (time_t)interval + next.tv_nsec / 1000000000;
        next.tv_nsec %= 1000000000;
        /* Waking up is part of it. */
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
        sw__looker_look(looker, 0, false, false);
    }
    const double used = cpu_s() - before;
    clock_gettime(CLOCK_MONOTONIC, &next);
    const double passed = (double)(next.tv_sec - began.tv_sec) +
                          (double)(next.tv_nsec - began.tv_nsec) * 1e-9;
    sw__looker_look(looker, SW_LOOK_LAST, false, true);
    sw__looker_close(looker);
    sw_shutdown();
    printf("{\"looks\": %ld, \"us_per_look\": %.3f, \"percent\": %.6f}\n", looks,
           used * 1e6 / (double)looks, 100 * used / passed);
    return 0;
}
