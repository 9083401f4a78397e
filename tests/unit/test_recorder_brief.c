/* Recordings that lie in memory and are read by their own process. Every case is a process of its own. */
#include "recorder_util.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static unsigned entries_of(const char *path)
{
    unsigned count = 0;
    DIR *list = opendir(path);
    ru_must(list != NULL);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(list);
    return count;
}

/* Starts one, and returns its descriptor. */
static int begin(void)
{
    sw_error_info info = {0};
    const sw_config config = {.name = "brief",
                              .out = ru_path("run"),
                              .policy = "stream",
                              .config = "none",
                              .quiet = SW_ON};
    ru_must(sw_init_brief(&config, sizeof config, &info) == 0);
    ru_must(sw_is_recording());
    const int fd = sw_brief_fd();
    ru_must(fd >= 0);
    return fd;
}

static void section(const char *name)
{
    sw_section *one = sw_section_get(name);
    sw_begin(one);
    sw_end(one);
}

/* How many spans of that name the trace of a descriptor has; how it ended is `end`. */
static unsigned spans_of(int fd, const char *name, enum sw_trace_end end)
{
    char path[64];
    sw_run *run;
    sw_cursor *cursor;
    sw_event event;
    unsigned count = 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ru_must(sw_run_open(&run, path, NULL) == SW_OK);
    ru_must(sw_run_count(run) == 1);
    sw_trace *trace = sw_run_trace(run, 0);
    const sw_trace_info *info = sw_trace_get_info(trace);
    ru_must(info->end == end);
    ru_must(!info->damaged && !info->hot_missing && info->dropped == 0);
    ru_must(info->pid == (uint32_t)getpid());
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_SPAN};
    ru_must(sw_cursor_open(&cursor, &trace, 1, &filter, NULL) == SW_OK);
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        const sw_trace_name *found = sw_trace_get_name(trace, event.record->id);
        count += found && strcmp(found->text, name) == 0;
    }
    sw_cursor_free(cursor);
    sw_run_free(run);
    return count;
}

static void read_while_and_after(void *arg)
{
    (void)arg;
    const unsigned before = entries_of("/proc/self/fd");
    const unsigned threads = entries_of("/proc/self/task");
    for (unsigned round = 0; round < 3; round++) {
        const int fd = begin();
        ru_must(entries_of("/proc/self/task") == threads);
        section("first");
        ru_must(spans_of(fd, "first", SW_TRACE_RUNNING) == 1);
        section("second");
        sw_shutdown();
        ru_must(!sw_is_recording());
        ru_must(sw_brief_fd() < 0);
        /* What came before belongs to an earlier recording. */
        ru_must(spans_of(fd, "first", SW_TRACE_CLOSED) == 1);
        ru_must(spans_of(fd, "second", SW_TRACE_CLOSED) == 1);
        close(fd);
    }
    ru_must(entries_of("/proc/self/fd") == before);
    ru_must(entries_of(ru_folder) == 0);
}

static void test_read_while_and_after(void **state)
{
    (void)state;
    ru_child(read_while_and_after, NULL);
}

static void read_much(void *arg)
{
    (void)arg;
    const int fd = begin();
    for (unsigned i = 0; i < 100000; i++) { /* several times the first memory */
        section("many");
    }
    sw_shutdown();
    ru_must(spans_of(fd, "many", SW_TRACE_CLOSED) == 100000);
    close(fd);
}

static void test_much(void **state)
{
    (void)state;
    ru_child(read_much, NULL);
}

/* The child records where its parent has made a folder, and nowhere else. */
static void fork_within(void *arg)
{
    const bool folder = arg != NULL;
    const int fd = begin();
    section("parent");
    if (folder) {
        ru_must(mkdir(ru_path("run"), 0700) == 0);
    }
    const pid_t child = fork();
    if (child == 0) {
        section("child");
        const bool recorded = sw_is_recording();
        sw_shutdown();
        _exit(recorded == folder ? 0 : 1);
    }
    int status = -1;
    ru_must(waitpid(child, &status, 0) == child && status == 0);
    section("parent");
    sw_shutdown();
    ru_must(spans_of(fd, "parent", SW_TRACE_CLOSED) == 2);
    ru_must(spans_of(fd, "child", SW_TRACE_CLOSED) == 0);
    close(fd);
    if (folder) {
        ru_must(entries_of(ru_path("run")) == 1);
    } else {
        ru_must(entries_of(ru_folder) == 0);
    }
}

static void test_fork_with_a_folder(void **state)
{
    (void)state;
    ru_child(fork_within, ru_folder);
}

static void test_fork_without_a_folder(void **state)
{
    (void)state;
    ru_child(fork_within, NULL);
}

/* A recording with files may follow, and has all facts. */
static void files_afterwards(void *arg)
{
    (void)arg;
    const int fd = begin();
    section("brief");
    sw_shutdown();
    close(fd);
    ru_start((sw_config){0});
    ru_must(sw_brief_fd() < 0);
    section("long");
    sw_shutdown();
    ru_must(entries_of(ru_path("run")) == 1);
}

static void test_files_afterwards(void **state)
{
    (void)state;
    ru_child(files_afterwards, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_read_while_and_after), ru_test(test_much),
        ru_test(test_fork_with_a_folder),   ru_test(test_fork_without_a_folder),
        ru_test(test_files_afterwards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
