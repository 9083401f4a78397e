/* Runs: folders of traces. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/trace_internal.h"
#include "trace_builder.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/stepwatch-run-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static const char *path_of(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_trace(const char *name, uint32_t pid, uint64_t start_real)
{
    struct tb *tb = tb_new(SW_CLOCK_TSC);
    tb->chunk_size = 4096;
    tb->super.pid = pid;
    tb->super.start_snapshot.real_ns = start_real;
    tb_thread(tb, 0, "main");
    sw_record_mark mark = {.head = {SW_RECORD_MARK, 1, 0, pid, 1000000000 + pid}};
    tb_record(tb, 0, &mark);
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(path_of(name), bytes, size);
    free(bytes);
    tb_free(tb);
}

static void expect_error(const char *path, int code, const char *message)
{
    sw_run *run;
    sw_error_info info = {0};
    assert_int_equal(sw_run_open(&run, path, &info), code);
    assert_null(run);
    if (!strstr(info.message, message)) {
        fail_msg("\"%s\" does not say \"%s\"", info.message, message);
    }
    assert_int_equal(sw_run_open(&run, path, NULL), code);
}

static void test_errors(void **state)
{
    (void)state;
    expect_error(path_of("nothing"), SW_EOPEN, "does not exist");
    expect_error(path_of("nothing.stepwatch"), SW_EOPEN, "does not exist");
    expect_error(folder, SW_ENOTFOUND, "holds no stepwatch traces");
    tb_write(path_of("broken.stepwatch"), "hello", 5);
    tb_write(path_of("zero.stepwatch"), "", 0);
    expect_error(folder, SW_EFORMAT, "broken.stepwatch is not a stepwatch trace");
    expect_error(path_of("zero.stepwatch"), SW_EFORMAT, "is empty");
    sw_trace *trace;
    sw_error_info info;
    assert_int_equal(sw_trace_open(&trace, folder, &info), SW_EOPEN);
    assert_non_null(strstr(info.message, "is a folder"));
    assert_int_equal(mkfifo(path_of("pipe.stepwatch"), 0600), 0);
    assert_int_equal(sw_trace_open(&trace, path_of("pipe.stepwatch"), &info), SW_EOPEN);
    unlink(path_of("pipe.stepwatch"));
}

static void test_folder(void **state)
{
    (void)state;
    write_trace("b.stepwatch", 3, 2000);
    write_trace("a.stepwatch", 2, 3000);
    write_trace("c.stepwatch", 1, 2000);
    write_trace("notes.txt", 9, 1);
    write_trace(".hidden.stepwatch", 9, 1);
    assert_int_equal(mkdir(path_of("rank1"), 0700), 0);
    write_trace("rank1/d.stepwatch", 4, 1000);
    assert_int_equal(mkdir(path_of("rank1/rank2"), 0700), 0);
    write_trace("rank1/rank2/deep.stepwatch", 9, 1000);
    assert_int_equal(mkdir(path_of("other"), 0700), 0);
    write_trace("other/e.stepwatch", 9, 1000);
    assert_int_equal(mkdir(path_of("odd.stepwatch"), 0700), 0);
    sw_run *run;
    assert_int_equal(sw_run_open(&run, folder, NULL), 0);
    assert_int_equal(sw_run_count(run), 4);
    const uint32_t order[] = {4, 1, 3, 2};
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(sw_trace_get_info(sw_run_trace(run, i))->pid, order[i]);
    }
    assert_null(sw_run_trace(run, 4));
    assert_string_equal(sw_run_path(run), folder);
    assert_non_null(strstr(sw_run_note(run, 0), "broken.stepwatch"));
    assert_non_null(strstr(sw_run_note(run, 1), "zero.stepwatch"));
    assert_null(sw_run_note(run, 2));
    assert_int_equal(sw_run_empty_count(run), 1);
    sw_run_free(run);
    sw_run_free(NULL);
    assert_int_equal(sw_run_open(&run, path_of("b.stepwatch"), NULL), 0);
    assert_int_equal(sw_run_count(run), 1);
    sw_run_free(run);
}

/* More files than descriptors. */
static void test_many_files(void **state)
{
    (void)state;
    char name[64];
    struct rlimit limit;
    assert_int_equal(mkdir(path_of("many"), 0700), 0);
    for (uint32_t i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "many/%u.stepwatch", i);
        write_trace(name, i + 1, 1000 + i);
    }
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct rlimit less = {300, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &less), 0);
    sw_run *run;
    sw_error_info info = {0};
    if (sw_run_open(&run, path_of("many"), &info)) {
        fail_msg("%s", info.message);
    }
    assert_int_equal(sw_run_count(run), 400);
    assert_null(sw_run_note(run, 0));
    sw_trace *traces[400];
    for (unsigned i = 0; i < 400; i++) {
        traces[i] = sw_run_trace(run, i);
    }
    sw_cursor *cursor;
    sw_event event;
    uint32_t count = 0;
    assert_int_equal(sw_cursor_open(&cursor, traces, 400, NULL, NULL), 0);
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        assert_int_equal(event.record->id, ++count);
        assert_int_equal(event.trace, count - 1);
    }
    assert_int_equal(count, 400);
    sw_cursor_free(cursor);
    sw_run_free(run);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_many_files),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
