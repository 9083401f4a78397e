/* What tests of the recorder share: a folder of their own, recordings that go there, and two ways
 * back: through the reader, and through the bytes of the file, where times still are ticks. */
#ifndef RECORDER_UTIL_H
#define RECORDER_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/format.h"
#include <stepwatch/record.h>
#include <stepwatch/store.h>
#include <stepwatch/trace.h>

/* The folder of the running test; made by ru_setup, removed with all it holds by ru_teardown. */
extern char ru_folder[64];
int ru_setup(void **state);
int ru_teardown(void **state);
#define ru_test(function) cmocka_unit_test_setup_teardown(function, ru_setup, ru_teardown)

/* `folder`/name, in a static buffer. */
const char *ru_path(const char *name);

/* Starts a recording, quietly and into the folder "run" of the test's unless the configuration says
 * where. Fails the test when it does not start. */
void ru_start(sw_config config);

/* A recording that is over. */
struct ru_trace {
    sw_trace *trace;
    const sw_trace_info *info;
    uint8_t *bytes; /* of the home file */
    size_t size;
    const struct sw__fmt_super *super;
    const struct sw__fmt_block **blocks; /* sorted by kind, then by address */
    size_t block_count;
};
/* Ends the recording and reads it. The file must be closed and sound; then what holds for every
 * trace is checked (ru_check). */
struct ru_trace ru_finish(void);
/* The only trace in a run directory, which a child has left. */
struct ru_trace ru_open_run(const char *folder);
void ru_free(struct ru_trace *trace);
/* Relations that hold in every closed trace: histograms count all calls, children fit into their
 * parents exactly, phases add up to their step, lanes to their steps, losses to what was tried. */
void ru_check(const struct ru_trace *trace);

/* Runs `body` in a process of its own and waits for it; it must end with status 0. Checks inside it
 * are ru_must, for a failing assertion would go on with the next test there. */
void ru_child(void (*body)(void *arg), void *arg);
#define ru_must(condition) ru_must_that((condition), #condition, __FILE__, __LINE__)
void ru_must_that(bool holds, const char *text, const char *file, int line);

/* Statistics. A path is names joined by "/"; "" is the root. */
size_t ru_lane_index(const struct ru_trace *trace, uint32_t thread, uint32_t domain);
const sw_trace_lane *ru_lane(const struct ru_trace *trace, uint32_t thread,
                             uint32_t domain);
const sw_trace_node *ru_find(const struct ru_trace *trace, const sw_trace_lane *lane,
                             const char *path);
/* As above, failing the test when there is none. On the lane of thread 0 in the default domain. */
const sw_trace_node *ru_node(const struct ru_trace *trace, const char *path);
uint64_t ru_calls(const struct ru_trace *trace, const char *path);
/* Calls of all sections of all lanes. */
uint64_t ru_all_calls(const struct ru_trace *trace);
const char *ru_name(const struct ru_trace *trace, uint32_t id);

/* The same node and lane in the bytes of the file. */
const struct sw__fmt_node *ru_raw_node(const struct ru_trace *trace, uint32_t thread,
                                       uint32_t domain, uint32_t index);
const struct sw__fmt_lane *ru_raw_lane(const struct ru_trace *trace, uint32_t thread,
                                       uint32_t domain);
/* The node of a path on the lane of thread 0 in the default domain. */
const struct sw__fmt_node *ru_ticks(const struct ru_trace *trace, const char *path);
/* Counts of a histogram, summed over its pages. */
uint64_t ru_raw_histogram(const struct ru_trace *trace, const uint32_t *pages);

/* Records in the order of a cursor, copied. */
struct ru_record {
    uint32_t thread;
    uint64_t begin_ns, end_ns;
    union {
        sw_record head;
        sw_record_span span;
        sw_record_counter counter;
        sw_record_mark mark;
        sw_record_step step;
        uint8_t bytes[255 * SW_RECORD_UNIT];
    } * record;
};
struct ru_records {
    struct ru_record *at;
    size_t count;
};
/* kinds: bits as in sw_cursor_filter; 0: all but steps. */
struct ru_records ru_read(const struct ru_trace *trace, uint32_t kinds);
void ru_records_free(struct ru_records *records);
size_t ru_count(const struct ru_trace *trace, uint32_t kinds);

uint64_t ru_random(uint64_t *state);
/* Makes the clock go on by at least `ticks` of it. */
void ru_spin(uint64_t ticks);
/* Bytes of the home file on disk. */
uint64_t ru_file_size(const char *path);

#endif
