/* Resident memory of sections: what a call added to the process, read at both its ends. */
#include "recorder_util.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define MB ((int64_t)1 << 20)
/* The kernel counts pages in batches, a few on each CPU, and the recorder makes room for itself a megabyte at a time. */
#define NEAR (4 * MB)

static void start(void)
{
    setenv("STEPWATCH_MEMORY", "on", 1);
    ru_start((sw_config){0});
    unsetenv("STEPWATCH_MEMORY");
}

/* Pages that are there. */
static void *take(size_t bytes)
{
    uint8_t *at =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ru_must(at != MAP_FAILED);
    for (size_t i = 0; i < bytes; i += 4096) {
        at[i] = 1;
    }
    return at;
}

/* The row of a path on the lane of a thread, or NULL. */
static const sw_row *find(const struct ru_trace *trace, uint32_t thread, const char *path)
{
    const sw_trace_node *node = ru_find(trace, ru_lane(trace, thread, 0), path);
    const sw_trace_lane *lane = ru_lane(trace, thread, 0);
    for (size_t i = 0; i < sw_trace_row_count(trace->trace, SW_TABLE_RESIDENT); i++) {
        const sw_row *row = sw_trace_get_row(trace->trace, SW_TABLE_RESIDENT, i);
        if (node && row->key[0] == thread && &lane->nodes[row->key[1]] == node) {
            return row;
        }
    }
    return NULL;
}

static void is_near(uint64_t value, int64_t truth)
{
    const int64_t off = (int64_t)value - truth;
    if (off > NEAR || off < -NEAR) {
        fail_msg("%lld bytes rather than %lld", (long long)(int64_t)value,
                 (long long)truth);
    }
}

static void test_what_calls_add(void **state)
{
    (void)state;
    sw_section *outer = sw_section_get("outer");
    sw_section *grows = sw_section_get("grows");
    sw_section *frees = sw_section_get("frees");
    void *kept[3];
    start();
    for (int i = 0; i < 3; i++) {
        sw_begin(outer);
        sw_begin(grows);
        kept[i] = take((size_t)((i + 1) * 16 * MB));
        sw_end(grows);
        sw_end(outer);
    }
    sw_begin(frees);
    munmap(kept[2], (size_t)(48 * MB));
    sw_end(frees);
    struct ru_trace trace = ru_finish();
    const sw_row *row = find(&trace, 0, "outer/grows");
    assert_non_null(row);
    assert_int_equal(row->value[0], 3);
    is_near(row->value[1], 96 * MB);
    is_near(row->value[2], 48 * MB);
    is_near(row->value[3], 16 * MB);
    const sw_row *around = find(&trace, 0, "outer");
    assert_non_null(around);
    is_near(around->value[1], 96 * MB);
    /* What was read inside it was read while it was open. */
    assert_true(around->value[4] >= row->value[4]);
    assert_true((int64_t)row->value[4] >= 96 * MB);
    const sw_row *less = find(&trace, 0, "frees");
    assert_non_null(less);
    is_near(less->value[1], -48 * MB);
    is_near(less->value[2], -48 * MB);
    is_near(less->value[3], -48 * MB);
    munmap(kept[0], (size_t)(16 * MB));
    munmap(kept[1], (size_t)(32 * MB));
    ru_free(&trace);
}

static void test_off_without_memory(void **state)
{
    (void)state;
    sw_section *section = sw_section_get("section");
    ru_start((sw_config){0});
    sw_begin(section);
    sw_end(section);
    struct ru_trace trace = ru_finish();
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_RESIDENT), 0);
    ru_free(&trace);
}

/* Sections that follow each other at once are not all read, and all are counted. */
static void test_short_sections_are_read_now_and_then(void **state)
{
    (void)state;
    enum { CALLS = 200000 };
    sw_section *section = sw_section_get("short");
    start();
    for (int i = 0; i < CALLS; i++) {
        sw_begin(section);
        sw_end(section);
    }
    struct ru_trace trace = ru_finish();
    const sw_row *row = find(&trace, 0, "short");
    assert_non_null(row);
    assert_true(row->value[0] > 0);
    assert_true(row->value[0] < CALLS / 2);
    assert_int_equal(ru_calls(&trace, "short"), CALLS);
    ru_free(&trace);
}

/* Ends in any order find their begins. */
static void test_sections_that_do_not_nest(void **state)
{
    (void)state;
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    start();
    sw_begin(a);
    sw_begin(b);
    void *kept = take((size_t)(32 * MB));
    sw_end(a);
    void *more = take((size_t)(32 * MB));
    sw_end(b);
    sw_end(b); /* without a begin */
    struct ru_trace trace = ru_finish();
    is_near(find(&trace, 0, "a")->value[1], 32 * MB);
    is_near(find(&trace, 0, "a/b")->value[1], 64 * MB);
    munmap(kept, (size_t)(32 * MB));
    munmap(more, (size_t)(32 * MB));
    ru_free(&trace);
}

/* A call in stretches: what others add meanwhile is not its own, and it is one call. */
static void test_stretches(void **state)
{
    (void)state;
    sw_section *section = sw_section_get("stretched");
    uint64_t spent = 0;
    start();
    sw_section_begin(section, 7);
    void *first = take((size_t)(16 * MB));
    sw_section_suspend(section, 7, &spent);
    void *others = take((size_t)(64 * MB));
    sw_section_begin(section, 7);
    void *second = take((size_t)(16 * MB));
    sw_section_finish(section, 7, 0, &spent);
    struct ru_trace trace = ru_finish();
    const sw_row *row = find(&trace, 0, "stretched");
    assert_non_null(row);
    assert_int_equal(row->value[0], 1);
    is_near(row->value[1], 32 * MB);
    munmap(first, (size_t)(16 * MB));
    munmap(others, (size_t)(64 * MB));
    munmap(second, (size_t)(16 * MB));
    ru_free(&trace);
}

static void *deep(void *arg)
{
    sw_section *section = sw_section_get("deep");
    (void)arg;
    for (int i = 0; i < 100; i++) {
        sw_begin(section);
    }
    for (int i = 0; i < 90; i++) {
        sw_end(section);
    }
    return NULL; /* The rest is cut. */
}

/* Deeper than is kept track of, on a thread that ends with sections open; then another thread with the same lane. */
static void test_deep_and_cut(void **state)
{
    (void)state;
    start();
    for (int i = 0; i < 3; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, deep, NULL), 0);
        pthread_join(thread, NULL);
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_all_calls(&trace), 300);
    uint64_t read = 0;
    for (size_t i = 0; i < sw_trace_row_count(trace.trace, SW_TABLE_RESIDENT); i++) {
        read += sw_trace_get_row(trace.trace, SW_TABLE_RESIDENT, i)->value[0];
    }
    assert_true(read > 0 && read <= 3 * 64);
    ru_free(&trace);
}

/* A forked child has its own readings, of itself. */
static void in_child(void *arg)
{
    (void)arg;
    sw_section *section = sw_section_get("section");
    setenv("STEPWATCH_MEMORY", "on", 1);
    ru_start((sw_config){0});
    sw_begin(section);
    void *kept = take((size_t)(32 * MB));
    sw_end(section);
    const pid_t pid = fork();
    if (pid == 0) {
        sw_begin(section);
        kept = take((size_t)(64 * MB));
        sw_end(section);
        sw_shutdown();
        _exit(kept == NULL);
    }
    int status;
    ru_must(waitpid(pid, &status, 0) == pid && status == 0);
    sw_shutdown();
}

static void test_fork(void **state)
{
    (void)state;
    ru_child(in_child, NULL);
    sw_run *run = NULL;
    assert_int_equal(sw_run_open(&run, ru_path("run"), NULL), SW_OK);
    assert_int_equal(sw_run_count(run), 2);
    int64_t sum = 0;
    for (size_t i = 0; i < 2; i++) {
        const sw_trace *trace = sw_run_trace(run, i);
        assert_int_equal(sw_trace_row_count(trace, SW_TABLE_RESIDENT), 1);
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_RESIDENT, 0);
        assert_int_equal(row->value[0], 1);
        sum += (int64_t)row->value[1];
    }
    is_near((uint64_t)sum, 96 * MB);
    sw_run_free(run);
}

/* Without a descriptor to spare there is nothing to read from: sections are recorded, and no row is made up. */
static void without_descriptors(void *arg)
{
    (void)arg;
    sw_section *section = sw_section_get("section");
    start();
    struct rlimit before;
    ru_must(getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit none = {0, before.rlim_max};
    ru_must(setrlimit(RLIMIT_NOFILE, &none) == 0);
    sw_begin(section);
    void *kept = take((size_t)(32 * MB));
    sw_end(section);
    ru_must(setrlimit(RLIMIT_NOFILE, &before) == 0);
    sw_begin(section);
    sw_end(section);
    munmap(kept, (size_t)(32 * MB));
    sw_shutdown();
}

static void test_nothing_to_read_from(void **state)
{
    (void)state;
    ru_child(without_descriptors, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    assert_int_equal(ru_calls(&trace, "section"), 2);
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_RESIDENT), 0);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_what_calls_add),
        ru_test(test_off_without_memory),
        ru_test(test_short_sections_are_read_now_and_then),
        ru_test(test_sections_that_do_not_nest),
        ru_test(test_stretches),
        ru_test(test_deep_and_cut),
        ru_test(test_fork),
        ru_test(test_nothing_to_read_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
