/* Reading the trace of a process that records meanwhile, then dies, then is folded. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <stepwatch/record.h>
#include <stepwatch/store.h>
#include <stepwatch/trace.h>

#define INNER 10
#define THREADS 2
#define LOOKS 8

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stepwatch-live-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static void *record(void *unused)
{
    (void)unused;
    sw_section *outer = sw_section_get("outer");
    sw_section *inner = sw_section_get("inner");
    for (;;) {
        sw_begin(outer);
        for (unsigned i = 0; i < INNER; i++) {
            sw_begin(inner);
            sw_end(inner);
        }
        sw_end(outer);
        struct timespec now;
        struct timespec begin;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        do {
            clock_gettime(CLOCK_MONOTONIC, &now);
        } while (now.tv_sec == begin.tv_sec && now.tv_nsec - begin.tv_nsec < 5000);
    }
    return NULL;
}

static pid_t start(const char *policy)
{
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        alarm(60);
        sw_config config = {.out = folder,
                            .policy = policy,
                            .name = policy,
                            .max_mb = 24,
                            .quiet = SW_ON};
        if (sw_init(&config) != 0) {
            _exit(1);
        }
        pthread_t thread;
        for (unsigned i = 1; i < THREADS; i++) {
            pthread_create(&thread, NULL, record, NULL);
        }
        record(NULL);
    }
    return pid;
}

static void wait_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, NULL);
}

static sw_trace *open_one(const char *policy, char *path, size_t size)
{
    for (unsigned attempt = 0; attempt < 500; attempt++) {
        sw_run *run;
        if (sw_run_open(&run, folder, NULL) == SW_OK) {
            for (size_t i = 0; i < sw_run_count(run); i++) {
                const sw_trace_info *info = sw_trace_get_info(sw_run_trace(run, i));
                if (strcmp(info->name, policy) == 0 && info->present > 1000) {
                    snprintf(path, size, "%s", info->path);
                    sw_run_free(run);
                    sw_trace *trace;
                    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
                    return trace;
                }
            }
            sw_run_free(run);
        }
        wait_ms(10);
    }
    fail_msg("nothing was recorded");
    return NULL;
}

/* Walks all spans; gives how many outer ones did not have their inner ones before them. */
static uint64_t walk(sw_trace *trace, uint64_t *records)
{
    sw_cursor *cursor;
    sw_event event;
    uint64_t last = 0;
    uint64_t inner[64] = {0};
    bool begun[64] = {false};
    uint64_t broken = 0;
    *records = 0;
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, NULL, NULL), 0);
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        (*records)++;
        assert_true(event.end_ns >= last);
        assert_true(event.thread < 64);
        last = event.end_ns;
        if (event.record->kind != SW_RECORD_SPAN) {
            continue;
        }
        if (((const sw_record_span *)event.record)->depth == 1) {
            inner[event.thread]++;
        } else {
            broken += begun[event.thread] && inner[event.thread] != INNER;
            begun[event.thread] = true;
            inner[event.thread] = 0;
        }
    }
    sw_cursor_free(cursor);
    return broken;
}

static void say_notes(const sw_trace *trace)
{
    for (size_t i = 0; sw_trace_note(trace, i); i++) {
        print_message("%s\n", sw_trace_note(trace, i));
    }
}

static uint64_t count_calls(const sw_trace *trace)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        for (size_t node = 0; node < lane->node_count; node++) {
            calls += lane->nodes[node].calls;
        }
    }
    return calls;
}

static void watch(const char *policy)
{
    char path[4096];
    uint64_t records;
    pid_t pid = start(policy);
    for (unsigned look = 0; look < LOOKS; look++) {
        sw_trace *trace = open_one(policy, path, sizeof path);
        const sw_trace_info *info = sw_trace_get_info(trace);
        uint64_t broken = walk(trace, &records);
        if (info->damaged) {
            say_notes(trace);
        }
        assert_false(info->damaged);
        assert_true(info->hot_used);
        assert_int_equal(info->end, SW_TRACE_RUNNING);
        /* While there is room nothing may be missing in between. */
        if (info->overwritten == 0 && info->dropped == 0) {
            assert_int_equal(records, info->present);
            assert_int_equal(broken, 0);
        }
        sw_trace_free(trace);
        wait_ms(20);
    }
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);

    /* Every record is accounted for, but for one a thread in the middle of its last section. */
    sw_trace *trace;
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    const sw_trace_info *info = sw_trace_get_info(trace);
    uint64_t broken = walk(trace, &records);
    uint64_t attempted = info->present + info->overwritten + info->dropped;
    assert_false(info->damaged);
    assert_int_equal(info->end, SW_TRACE_KILLED);
    assert_int_equal(records, info->present);
    assert_in_range(count_calls(trace), attempted, attempted + THREADS);
    if (info->overwritten == 0 && info->dropped == 0) {
        assert_int_equal(broken, 0);
    }

    /* Folding changes where it lies, not what it is. */
    sw_fold_result folded;
    assert_int_equal(sw_store_fold(path, &folded, NULL), 0);
    assert_true(folded.folded);
    sw_trace *after;
    uint64_t records_after;
    assert_int_equal(sw_trace_open(&after, path, NULL), 0);
    const sw_trace_info *info_after = sw_trace_get_info(after);
    assert_int_equal(walk(after, &records_after), broken);
    if (info_after->damaged) {
        say_notes(after);
    }
    assert_false(info_after->damaged);
    assert_false(info_after->hot_used);
    assert_false(info_after->hot_missing);
    assert_int_equal(info_after->end, SW_TRACE_KILLED);
    assert_int_equal(info_after->present, info->present);
    assert_int_equal(records_after, records);
    assert_int_equal(count_calls(after), count_calls(trace));
    assert_int_equal(info_after->end_ns, info->end_ns);
    sw_trace_free(after);
    sw_trace_free(trace);
}

static void test_stream(void **state)
{
    (void)state;
    watch("stream");
}

static void test_ring(void **state)
{
    (void)state;
    watch("ring");
}

static void test_auto(void **state)
{
    (void)state;
    watch("auto");
}

static void test_drop(void **state)
{
    (void)state;
    watch("drop");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),
        cmocka_unit_test(test_ring),
        cmocka_unit_test(test_auto),
        cmocka_unit_test(test_drop),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
