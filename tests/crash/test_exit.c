/* Ways out of a process: nothing that was recorded is lost, and nobody notices that it was. */
#include "crash.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that dies without closing its file, inside three sections. */
static void die(const char *mode)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "exit", mode, NULL);
    run_whole(&run, "exit", mode, NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.files, 1);
    CHECK_EQ(tally.killed, 1);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(tally.open, 3);
    CHECK_EQ(tally.present, 1000);
    CHECK_EQ(tally.calls, 1000);
    CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
    uint64_t digest = tally.digest;
    CHECK_EQ(fold_all(NULL), 1);
    CHECK_EQ(hot_files(), 0);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.digest, digest);
    run_free(&plain);
    run_free(&run);
}

static void without_shutdown(void)
{
    die("_exit");
}
static void quickly(void)
{
    die("quick");
}
static void by_abort(void)
{
    die("abort");
}
static void by_segv(void)
{
    die("segv");
}
static void by_sigterm(void)
{
    die("term");
}

/* The sections that are open are cut, each with a record. */
static void inside_sections(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "exit", "inside", NULL);
    run_whole(&run, "exit", "inside", NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run) + 3);
    CHECK_EQ(tally.cut, 3);
    CHECK_EQ(tally.calls, 1003);
    CHECK_EQ(tally.open, 0);
    CHECK_EQ(hot_files(), 0);
    char *text = report_json(NULL);
    CHECK(strstr(text, "\"complete\": true") != NULL);
    CHECK(strstr(text, "\"events\": 1003") != NULL);
    free(text);
    run_free(&plain);
    run_free(&run);
}

/* Others go on recording while the process ends. What was done before the end began is there; each record
 * is counted in the statistics and as an event, or in neither. */
static void with_others(const char *mode)
{
    struct run plain = {0};
    run_plain(&plain, "exit", mode, NULL);
    for (unsigned i = 0; i < 10 && !crash_failures(); i++) {
        const char *const env[] = {
            i % 2 ? "STEPWATCH_POLICY=drop" : "STEPWATCH_POLICY=stream", NULL};
        char out[300];
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        struct run run = {.out = out, .env = env};
        struct tally tally;
        run_whole(&run, "exit", mode, NULL);
        check_same(&run, &plain);
        tally_read(&tally, out);
        check_said(&run, tally.dropped != 0);
        check_whole(&tally, ATTEMPTED(&tally));
        CHECK_BETWEEN(atomic_load(&run.page->before), ATTEMPTED(&tally),
                      run_done(&run) + 8);
        CHECK_EQ(tally.calls, ATTEMPTED(&tally));
        CHECK_EQ(hot_files(), 0);
        run_free(&run);
    }
    run_free(&plain);
}

static void return_while_others_record(void)
{
    with_others("return");
}
static void from_second_thread(void)
{
    with_others("second");
}

/* The first thread is gone and the process is not: for /proc it is a zombie, for us it is alive. */
static void first_thread_leaves(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    if (CRASH_TSAN) {
        crash_skip("the sanitizer has a thread of its own, which never ends");
    }
    run_plain(&plain, "exit", "main-leaves", NULL);
    run_start(&run, "exit", "main-leaves", NULL);
    CHECK(run_ready(&run));
    crash_sleep_us(10000);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.running, 1);
    CHECK_EQ(fold_all(NULL), 0);
    CHECK_EQ(hot_files(), 1);
    run_go(&run);
    run_finish(&run);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run) + 3);
    CHECK_EQ(tally.cut, 3);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

/* The process becomes another program, which records too: two files. */
static void by_exec(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "exit", "exec", NULL);
    run_whole(&run, "exit", "exec", NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.files, 2);
    CHECK_EQ(tally.closed, 1);
    CHECK_EQ(tally.killed, 1);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(tally.open, 3);
    CHECK_EQ(ATTEMPTED(&tally), run_done(&run));
    CHECK_EQ(tally.present, 1200);
    CHECK_EQ(fold_all(NULL), 1);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(without_shutdown),
        CASE(quickly),
        CASE(by_abort),
        CASE(by_segv),
        CASE(by_sigterm),
        CASE(inside_sections),
        CASE(from_second_thread),
        CASE(return_while_others_record),
        CASE(first_thread_leaves),
        CASE(by_exec),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
