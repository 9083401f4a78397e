/* Processes that become many: each has a file of its own, and none touches another's. */
#include "crash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Runs a mode with and without recording; both must end alike. */
static void run_mode(struct run *run, const char *mode)
{
    struct run plain = {0};
    run_plain(&plain, "fork", mode, NULL);
    run_whole(run, "fork", mode, NULL);
    check_same(run, &plain);
    /* The number of children that ended otherwise than they should. */
    CHECK(strstr(run->out_text, "result 0000000000000000\n") != NULL);
    run_free(&plain);
}

static const sw_trace_info *info_at(const sw_run *run, size_t index)
{
    return sw_trace_get_info(sw_run_trace(run, index));
}

/* Every file but one is of a child of the process that the one belongs to. */
static void check_children(pid_t parent, size_t children, uint64_t each)
{
    char path[300];
    sw_run *run = NULL;
    sw_error_info info = {0};
    size_t found = 0;
    snprintf(path, sizeof(path), "%s/run", crash_dir);
    CHECK_EQ(sw_run_open(&run, path, &info), 0);
    for (size_t i = 0; run && i < sw_run_count(run); i++) {
        const sw_trace_info *facts = info_at(run, i);
        if (facts->pid == (uint32_t)parent) {
            CHECK_EQ(facts->ppid, getpid());
            continue;
        }
        CHECK_EQ(facts->ppid, parent);
        CHECK_EQ(facts->present, each);
        found++;
    }
    CHECK_EQ(found, children);
    sw_run_free(run);
}

static void fifty_in_a_row(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "storm");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 51);
    CHECK_EQ(tally.present, 50 + 50 * 20);
    check_children(run.pid, 50, 20);
    CHECK_EQ(hot_files(), 0);
    char *text = report_json(NULL);
    CHECK(strstr(text, "\"events\": 1050") != NULL);
    free(text);
    run_free(&run);
}

static void while_a_thread_records(void)
{
    const char *const env[] = {"STEPWATCH_POLICY=drop", NULL};
    struct run run = {.env = env};
    struct tally tally;
    run_mode(&run, "thread");
    tally_read(&tally, NULL);
    check_said(&run, tally.dropped != 0);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.calls, run_done(&run));
    CHECK_EQ(tally.files, 51);
    check_children(run.pid, 50, 20);
    CHECK_EQ(hot_files(), 0);
    run_free(&run);
}

static void from_two_threads(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "two-storms");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 51);
    check_children(run.pid, 50, 20);
    CHECK_EQ(hot_files(), 0);
    run_free(&run);
}

static void silent_children_leave_no_file(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "silent");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, 5);
    CHECK_EQ(tally.files, 1);
    CHECK_EQ(hot_files(), 0);
    run_free(&run);
}

static void grandchildren(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "descend");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, 10 + 11 + 12 + 13 + 14);
    CHECK_EQ(tally.files, 5);
    /* Each has its parent among the others, the first one has us. */
    char path[300];
    sw_run *all = NULL;
    sw_error_info info = {0};
    unsigned links = 0, ours = 0;
    snprintf(path, sizeof(path), "%s/run", crash_dir);
    CHECK_EQ(sw_run_open(&all, path, &info), 0);
    for (size_t i = 0; all && i < sw_run_count(all); i++) {
        ours += info_at(all, i)->ppid == (uint32_t)getpid();
        for (size_t j = 0; j < sw_run_count(all); j++) {
            links += info_at(all, i)->ppid == info_at(all, j)->pid;
        }
    }
    CHECK_EQ(links, 4);
    CHECK_EQ(ours, 1);
    sw_run_free(all);
    run_free(&run);
}

static void inside_a_section(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "inside");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 2);
    CHECK_EQ(tally.present, 21);
    CHECK_BETWEEN(0, tally.unmatched, 1);
    CHECK_EQ(tally.steps, 1);
    CHECK_EQ(tally.open, 0);
    CHECK_EQ(tally_calls_of(NULL, "around"), 1);
    check_children(run.pid, 1, 10);
    run_free(&run);
}

static void children_leave_by__exit(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "_exit");
    check_said(&run, false);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.files, 11);
    CHECK_EQ(tally.closed, 1);
    CHECK_EQ(tally.killed, 10);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(tally.hot_used, 10);
    CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
    uint64_t digest = tally.digest;
    CHECK_EQ(fold_all(NULL), 10);
    CHECK_EQ(hot_files(), 0);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.digest, digest);
    run_free(&run);
}

static void another_program(const char *mode)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, mode);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 2);
    CHECK_EQ(tally.present, 20 + 200);
    check_children(run.pid, 1, 200);
    CHECK_EQ(hot_files(), 0);
    run_free(&run);
}

static void vfork_and_exec(void)
{
    another_program("vfork");
}
static void spawned(void)
{
    another_program("spawn");
}

static void behind_the_library(void)
{
    if (CRASH_SANITIZED) {
        crash_skip("sanitizers do not survive a raw clone");
    }
    struct run run = {0};
    struct tally tally;
    run_mode(&run, "clone");
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 6);
    check_children(run.pid, 5, 10);
    CHECK_EQ(hot_files(), 0);
    run_free(&run);
}

static void no_helper_at_the_moment_of_fork(void)
{
    struct run run = {0};
    struct tally tally;
    if (CRASH_TSAN) {
        crash_skip("the sanitizer has a thread of its own");
    }
    run_mode(&run, "alone");
    check_said(&run, false);
    CHECK_EQ(atomic_load(&run.page->facts[1]), atomic_load(&run.page->facts[0]));
    CHECK_EQ(atomic_load(&run.page->facts[2]), atomic_load(&run.page->facts[0]));
    /* Between forks it is there: a step brings it back. */
    CHECK_EQ(atomic_load(&run.page->facts[3]), atomic_load(&run.page->facts[0]) + 1);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.files, 1);
    run_free(&run);
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(fifty_in_a_row),
        CASE(while_a_thread_records),
        CASE(from_two_threads),
        CASE(silent_children_leave_no_file),
        CASE(grandchildren),
        CASE(inside_a_section),
        CASE(children_leave_by__exit),
        CASE(vfork_and_exec),
        CASE(spawned),
        CASE(behind_the_library),
        CASE(no_helper_at_the_moment_of_fork),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
