/* How fast the records of a trace are read in order of time.
 *
 *     cursor FILE ROUNDS
 */
#include "bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <stepwatch/trace.h>

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: cursor FILE ROUNDS\n");
        return 2;
    }
    unsigned rounds = (unsigned)bench_number(argv[2]);
    sw_error_info why = {0};
    sw_trace *trace;
    uint64_t begin = bench_now_ns();
    if (sw_trace_open(&trace, argv[1], &why) < 0) {
        bench_fail(why.message);
    }
    double open_ms = (double)(bench_now_ns() - begin) / 1e6;
    const sw_trace_info *info = sw_trace_get_info(trace);
    printf("{\"present\": %" PRIu64 ", \"dropped\": %" PRIu64
           ", \"overwritten\": %" PRIu64 ", \"file_bytes\": %" PRIu64
           ", \"cost_section_ns\": %.3f, "
           "\"cost_section_low_ns\": %.3f, \"cost_section_high_ns\": %.3f, "
           "\"cost_stats_ns\": %.3f, \"open_ms\": %.3f, \"million_events_per_s\": [",
           info->present, info->dropped, info->overwritten, info->file_bytes,
           info->cost_section_ns, info->cost_section_low_ns, info->cost_section_high_ns,
           info->cost_stats_ns, open_ms);
    uint64_t events = 0;
    for (unsigned round = 0; round < rounds; round++) {
        sw_cursor *cursor;
        sw_event event;
        uint64_t sum = 0;
        int result;
        events = 0;
        begin = bench_now_ns();
        if (sw_cursor_open(&cursor, &trace, 1, NULL, &why) < 0) {
            bench_fail(why.message);
        }
        while ((result = sw_cursor_next(cursor, &event)) == 0) {
            sum += event.end_ns - event.begin_ns;
            events++;
        }
        sw_cursor_free(cursor);
        double ns = (double)(bench_now_ns() - begin);
        if (result != SW_EEND || (events > 0 && sum == 0)) {
            bench_fail("the trace could not be read to its end");
        }
        printf("%s%.3f", round ? ", " : "", 1000.0 * (double)events / ns);
    }
    printf("], \"events\": %" PRIu64 ", \"rss_kib\": %" PRIu64 "}\n", events,
           bench_status_kib("VmHWM"));
    sw_trace_free(trace);
    return 0;
}
