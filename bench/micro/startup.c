/* What starting and ending the recorder costs a program that does nothing else.
 *
 *     startup OUT
 */
#include "bench.h"

#include <stdio.h>

#include <stepwatch/stepwatch.h>

static double us_since(uint64_t begin_ns)
{
    return (double)(bench_now_ns() - begin_ns) / 1e3;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: startup OUT\n");
        return 2;
    }
    sw_config config = {
        .name = "startup",
        .out = argv[1],
        .enabled = SW_ON,
        .quiet = SW_ON,
    };
    uint64_t begin = bench_now_ns();
    bench_record(&config);
    double init = us_since(begin);

    begin = bench_now_ns();
    sw_section *section = sw_section_get("section");
    sw_begin(section);
    sw_end(section);
    double first = us_since(begin);

    begin = bench_now_ns();
    sw_begin(section);
    sw_end(section);
    double second = us_since(begin);

    char path[4096];
    sw_trace_path(path, sizeof(path));
    begin = bench_now_ns();
    sw_shutdown();
    double shutdown = us_since(begin);

    printf("{\"init_us\": %.2f, \"first_section_us\": %.2f, \"second_section_us\": %.2f, "
           "\"shutdown_us\": %.2f, \"path\": \"%s\"}\n",
           init, first, second, shutdown, path);
    return 0;
}
