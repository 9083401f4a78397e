/* Folding: the files of processes that were killed are completed, all others are left alone. */
#include "recorder_util.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS 5000

static void record_something(void)
{
    for (int i = 0; i < CALLS; i++) {
        sw_step_begin();
        SW_SECTION("outer") {
            sw_counter("value", i);
        }
        sw_step_end();
    }
    sw_begin(sw_section_get("open"));
    sw_step_begin();
}

/* Starts a child that records; it goes on when `hold` is written to, and then dies by SIGKILL. Gives its
 * trace's path. */
static pid_t start_victim(int hold[2], char *path, size_t size)
{
    int told[2];
    assert_int_equal(pipe(hold), 0);
    assert_int_equal(pipe(told), 0);
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        char byte;
        close(hold[1]);
        ru_start((sw_config){.policy = "stream"});
        record_something();
        char own[1100] = "";
        (void)sw_trace_path(own, sizeof own);
        ru_must(write(told[1], own, sizeof own) == (ssize_t)sizeof own);
        (void)!read(hold[0], &byte, 1);
        kill(getpid(), SIGKILL);
        _exit(1);
    }
    char name[1100];
    close(hold[0]);
    close(told[1]);
    assert_int_equal(read(told[0], name, sizeof name), sizeof name);
    close(told[0]);
    snprintf(path, size, "%s", name);
    return pid;
}

static void end_victim(pid_t pid, const int hold[2])
{
    int status;
    assert_int_equal(write(hold[1], "x", 1), 1);
    close(hold[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void read_super(const char *path, struct sw__fmt_super *super)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, super, sizeof *super, 0), sizeof *super);
    close(fd);
}

static void copy_file(const char *from, const char *to)
{
    char bytes[65536];
    int in = open(from, O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(in >= 0 && out >= 0);
    for (ssize_t got; (got = read(in, bytes, sizeof bytes)) > 0;) {
        assert_int_equal(write(out, bytes, (size_t)got), got);
    }
    close(in);
    close(out);
}

/* Whether two files hold the same bytes. */
static bool same_files(const char *left, const char *right)
{
    char a[65536], b[65536];
    int one = open(left, O_RDONLY);
    int two = open(right, O_RDONLY);
    bool same = one >= 0 && two >= 0;
    ssize_t got = same ? 1 : 0;
    while (same && got > 0) {
        got = read(one, a, sizeof a);
        same =
            read(two, b, sizeof b) == got && (got <= 0 || memcmp(a, b, (size_t)got) == 0);
    }
    close(one);
    close(two);
    return same;
}

static void check_victims_trace(const char *path, bool folded)
{
    sw_trace *trace;
    sw_error_info info = {0};
    if (sw_trace_open(&trace, path, &info)) {
        fail_msg("%s", info.message);
    }
    const sw_trace_info *facts = sw_trace_get_info(trace);
    assert_int_equal(facts->end, SW_TRACE_KILLED);
    assert_false(facts->damaged);
    assert_false(facts->hot_missing);
    assert_int_equal(facts->hot_used, !folded);
    assert_int_equal(facts->present, 2 * CALLS);
    assert_int_equal(facts->dropped, 0);
    const sw_trace_lane *lane = sw_trace_get_lane(trace, 0);
    assert_int_equal(lane->steps, CALLS);
    assert_int_equal(lane->open_count, 1);
    assert_true(lane->step_open);
    assert_int_equal(lane->step_open_number, CALLS);
    sw_trace_free(trace);
}

/* The trace of a victim that was killed, whose hot file is still there. */
static void leave_victim(char path[1100], struct sw__fmt_super *super)
{
    int hold[2];
    const pid_t pid = start_victim(hold, path, 1100);
    read_super(path, super);
    end_victim(pid, hold);
}

static void test_fold_killed(void **state)
{
    (void)state;
    int hold[2];
    char path[1100];
    struct sw__fmt_super super;
    sw_fold_result result;
    pid_t pid = start_victim(hold, path, sizeof path);
    read_super(path, &super);
    assert_int_equal(super.role, SW__ROLE_HOME);
    assert_true(super.hot_path[0] == '/');

    /* While it lives nothing is touched. */
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_true(result.alive);
    assert_false(result.folded);
    assert_int_equal(access(super.hot_path, F_OK), 0);
    end_victim(pid, hold);

    /* Dead: readable as it is, and the same once folded. */
    check_victims_trace(path, false);
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_false(result.alive);
    assert_true(result.folded);
    assert_false(result.hot_missing);
    assert_true(result.blocks > 0 && result.bytes > 0);
    assert_int_equal(access(super.hot_path, F_OK), -1);
    check_victims_trace(path, true);

    /* The second time there is nothing to do. */
    copy_file(path, ru_path("before"));
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_false(result.alive || result.folded || result.hot_missing);
    assert_int_equal(result.blocks, 0);
    assert_true(same_files(path, ru_path("before")));
}

static void test_fold_without_hot_file(void **state)
{
    (void)state;
    char path[1100];
    struct sw__fmt_super super;
    sw_fold_result result;
    leave_victim(path, &super);
    assert_int_equal(unlink(super.hot_path), 0);
    copy_file(path, ru_path("before"));
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_true(result.hot_missing);
    assert_false(result.folded || result.alive);
    assert_true(same_files(path, ru_path("before")));
    sw_trace *trace;
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    assert_true(sw_trace_get_info(trace)->hot_missing);
    sw_trace_free(trace);
}

/* A file under the name of the hot file that is not its own is neither read nor removed. */
static void test_fold_with_a_strangers_hot_file(void **state)
{
    (void)state;
    char path[1100];
    struct sw__fmt_super super;
    sw_fold_result result;
    leave_victim(path, &super);
    int fd = open(super.hot_path, O_RDWR);
    assert_true(fd >= 0);
    uint8_t id[16] = {1, 2, 3};
    assert_int_equal(pwrite(fd, id, sizeof id, 24), sizeof id);
    close(fd);
    copy_file(path, ru_path("before"));
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_true(result.hot_missing);
    assert_true(same_files(path, ru_path("before")));
    assert_int_equal(access(super.hot_path, F_OK), 0);
    assert_int_equal(unlink(super.hot_path), 0);

    /* Nor is one that is reached through a symbolic link. */
    assert_int_equal(symlink("/etc/passwd", super.hot_path), 0);
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_true(result.hot_missing);
    assert_int_equal(unlink(super.hot_path), 0);
}

/* Of a hot file that was cut, what is left is folded. */
static void test_fold_with_a_cut_hot_file(void **state)
{
    (void)state;
    char path[1100];
    struct sw__fmt_super super;
    sw_fold_result result;
    leave_victim(path, &super);
    assert_int_equal(truncate(super.hot_path, 100000), 0);
    assert_int_equal(sw_store_fold(path, &result, NULL), 0);
    assert_true(result.folded);
    sw_trace *trace;
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    assert_true(sw_trace_get_info(trace)->present <= 2 * CALLS);
    sw_trace_free(trace);
}

static void test_fold_closed(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    record_something();
    struct ru_trace trace = ru_finish();
    sw_fold_result result;
    copy_file(trace.info->path, ru_path("before"));
    assert_int_equal(sw_store_fold(trace.info->path, &result, NULL), 0);
    assert_false(result.alive || result.folded || result.hot_missing);
    assert_int_equal(sw_store_fold(trace.info->path, NULL, NULL), 0);
    assert_true(same_files(trace.info->path, ru_path("before")));
    ru_free(&trace);
}

/* The process that records may ask too. */
static void test_fold_own(void **state)
{
    (void)state;
    char path[1100];
    sw_fold_result result;
    ru_start((sw_config){0});
    (void)sw_trace_path(path, sizeof path);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(sw_store_fold(path, &result, NULL), 0);
        assert_true(result.alive);
    }
    record_something();
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_calls(&trace, "outer"), CALLS);
    ru_free(&trace);
}

static void test_fold_what_is_no_trace(void **state)
{
    (void)state;
    sw_error_info info = {0};
    sw_fold_result result;
    assert_int_equal(sw_store_fold(ru_path("missing"), &result, &info), SW_EOPEN);
    assert_non_null(strstr(info.message, "missing"));
    const struct {
        const char *name;
        size_t size;
    } files[] = {{"empty", 0}, {"short", 100}, {"long", 200000}};
    for (size_t i = 0; i < 3; i++) {
        char *bytes = malloc(files[i].size + 1);
        assert_non_null(bytes);
        memset(bytes, 'S', files[i].size);
        int fd = open(ru_path(files[i].name), O_WRONLY | O_CREAT, 0600);
        assert_int_equal(write(fd, bytes, files[i].size), files[i].size);
        close(fd);
        free(bytes);
        assert_int_equal(sw_store_fold(ru_path(files[i].name), &result, &info),
                         SW_EFORMAT);
        assert_int_equal(ru_file_size(ru_path(files[i].name)), files[i].size);
    }
    /* A folder, and a link to a trace: the caller should name the file itself. */
    assert_int_equal(sw_store_fold(ru_folder, &result, &info), SW_EOPEN);
    assert_int_equal(symlink("long", ru_path("link")), 0);
    assert_int_equal(sw_store_fold(ru_path("link"), &result, &info), SW_EOPEN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_fold_killed),
        ru_test(test_fold_without_hot_file),
        ru_test(test_fold_with_a_strangers_hot_file),
        ru_test(test_fold_with_a_cut_hot_file),
        ru_test(test_fold_closed),
        ru_test(test_fold_own),
        ru_test(test_fold_what_is_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
