/* Memory of a process that records far more than its cap holds.
 *
 *     cap record|plain OUT SECTIONS MAX_MB
 *
 * plain does the same without recording: what the two differ by is the recorder's. */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/stepwatch.h>

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: cap record|plain OUT SECTIONS MAX_MB\n");
        return 2;
    }
    uint64_t sections = bench_number(argv[3]);
    char path[4096] = "";
    if (strcmp(argv[1], "record") == 0) {
        sw_config config = {
            .name = "cap",
            .out = argv[2],
            .policy = "ring",
            .max_mb = (double)bench_number(argv[4]),
            .enabled = SW_ON,
            .quiet = SW_ON,
        };
        bench_record(&config);
        sw_trace_path(path, sizeof(path));
    }
    sw_section *section = sw_section_get("section");
    uint64_t begin = bench_now_ns();
    for (uint64_t i = 0; i < sections; i++) {
        sw_begin(section);
        BENCH_BARRIER();
        sw_end(section);
    }
    double ns = (double)(bench_now_ns() - begin) / (double)sections;
    uint64_t shared = bench_status_kib("RssShmem");
    sw_shutdown();
    printf("{\"sections\": %" PRIu64
           ", \"ns_per_section\": %.3f, \"peak_rss_kib\": %" PRIu64
           ", \"shared_kib\": %" PRIu64 ", \"path\": \"%s\"}\n",
           sections, ns, bench_status_kib("VmHWM"), shared, path);
    return 0;
}
