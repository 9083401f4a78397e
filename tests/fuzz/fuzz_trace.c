/* The reader of traces on arbitrary bytes. An input is a home file; one that ends
 * with the eight bytes "SW__PAIR" and a length is a home file of that length,
 * followed by its hot file. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <stepwatch/export.h>

#include "analyze/aside.h"
#include "analyze/json_scan.h"
#include "analyze/stacks.h"
#include "analyze/training.h"
#include "read/trace_internal.h"
#include "trace_walk.h"

#define TRAILER 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int make_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    return fd;
}

/* Validation and checkpoints of each thread, looked for in two gaps. */
static void walk_asides(struct trace_walk *walk, const sw_trace *trace)
{
    const sw_trace_info *info = sw_trace_get_info(trace);
    const uint64_t middle = info->start_ns + (info->end_ns - info->start_ns) / 2;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        struct sw__gap gaps[] = {{.begin = info->start_ns, .end = middle},
                                 {.begin = middle, .end = info->end_ns}};
        struct sw__aside aside;
        walk_check(sw__aside_find(&aside, trace, sw_trace_get_lane(trace, i)) == SW_OK);
        sw__aside_place(&aside, gaps, 2);
        for (size_t k = 0; k < 2; k++) {
            walk_check(gaps[k].aside[0] <= gaps[k].end - gaps[k].begin);
        }
        walk_bytes(walk, gaps, sizeof gaps);
        sw__aside_free(&aside);
    }
}

/* What viewers get of it is valid, or there is an error. A run is opened by its name. */
static void walk_viewers(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/fuzz_trace_XXXXXX.stepwatch";
    const int fd = mkstemps(path, 10);
    walk_check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
    close(fd);
    sw_run *run;
    const int error = sw_run_open(&run, path, NULL);
    unlink(path);
    for (int i = 0; i < 4 && !error; i++) {
        const sw_trace_options options = {.format =
                                              i % 2 ? SW_TRACE_KINETO : SW_TRACE_CHROME,
                                          .part = (size_t)(i % 2),
                                          .samples = i<2, .some_steps = i> 1,
                                          .first_step = 3,
                                          .last_step = 12};
        char name[SW_TRACE_FILE_NAME];
        sw_error_info info = {0};
        sw_writer *writer = sw_writer_to_memory();
        if (sw_export_trace(writer, run, &options, &info) == SW_OK) {
            struct sw__scan json = {0};
            size_t length;
            json.at = sw_writer_text(writer, &length);
            json.end = json.at + length;
            walk_check(sw__scan_skip(&json) && !json.bad);
        } else {
            walk_check(info.message[0] != '\0');
        }
        walk_check(sw_writer_close(writer, NULL) == SW_OK);
        (void)sw_export_trace_file_name(name, run, &options, NULL);
    }
    if (!error) {
        sw_run_free(run);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int hot = -1;
    size_t home_size = size;
    if (size >= TRAILER && memcmp(data + size - TRAILER, "SW__PAIR", 8) == 0) {
        uint64_t split;
        memcpy(&split, data + size - 8, sizeof split);
        if (split <= size - TRAILER) {
            home_size = (size_t)split;
            hot = make_file(data + home_size, size - TRAILER - home_size);
        }
    }
    int home = make_file(data, home_size);
    sw_trace *trace;
    sw_error_info info;
    if (sw__trace_open_fds(&trace, home, hot, false, "input", &info) == SW_OK) {
        struct trace_walk walk = {0};
        walk_trace(&walk, trace);
        sw_stacks *stacks;
        if (sw_stacks_create(&stacks) == SW_OK) {
            walk_check(sw__stacks_add_trace(stacks, trace) == SW_OK);
            walk_stacks(&walk, stacks);
            sw_stacks_free(stacks);
        }
        sw_training *training;
        const sw_trace *const twice[] = {trace, trace};
        walk_check(sw__training_of_traces(&training, twice, 2) == SW_OK);
        walk_training(&walk, training);
        sw_training_free(training);
        walk_asides(&walk, trace);
        sw_monitor *monitor;
        walk_check(sw_monitor_of_trace(&monitor, trace, NULL) == SW_OK);
        walk_monitor(&walk, monitor);
        sw_monitor_free(monitor);
        sw_trace_free(trace);
        walk_viewers(data, home_size);
    }
    return 0;
}
