/* Threads that come and go, signals that record, recordings that start and stop, plugins. */
#include "crash.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

static void run_mode(struct run *run, struct tally *tally, const char *mode)
{
    struct run plain = {0};
    run_plain(&plain, "threads", mode, NULL);
    run_whole(run, "threads", mode, NULL);
    check_same(run, &plain);
    tally_read(tally, NULL);
    check_said(run, tally->dropped != 0);
    check_whole(tally, run_done(run) + atomic_load(&run->page->extra));
    CHECK_EQ(tally->files, 1);
    CHECK_EQ(tally->calls, ATTEMPTED(tally));
    CHECK_EQ(tally->open, 0);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
}

static void thousand_come_and_go(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, &tally, "thousand");
    CHECK_EQ(ATTEMPTED(&tally), 5001);
    CHECK_EQ(tally.incarnations, 1001);
    run_free(&run);
}

static void sixty_four_at_once(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, &tally, "crowd");
    CHECK_EQ(ATTEMPTED(&tally), 64 * 2000 + 1);
    CHECK_EQ(tally.threads, 65);
    run_free(&run);
}

/* Often, and each time anew: what happens at the first record of a process happens once. */
static void first_records_at_once(void)
{
    struct run plain = {0};
    run_plain(&plain, "threads", "rush", NULL);
    for (unsigned i = 0; i < (CRASH_TSAN ? 20 : 100) && !crash_failures(); i++) {
        char out[300];
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        struct run run = {.out = out};
        struct tally tally;
        run_whole(&run, "threads", "rush", NULL);
        check_same(&run, &plain);
        check_said(&run, false);
        tally_read(&tally, out);
        check_whole(&tally, 160);
        CHECK_EQ(tally.files, 1);
        CHECK_EQ(tally.threads, 16);
        run_free(&run);
    }
    run_free(&plain);
}

static void end_inside_sections(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, &tally, "inside");
    CHECK_EQ(tally.cut, 32 * 3);
    run_free(&run);
}

static void cancelled_inside_sections(void)
{
    struct run run = {0};
    struct tally tally;
    if (CRASH_TSAN) {
        crash_skip(
            "the sanitizer forgets a cancelled thread before its keys' destructors run");
    }
    run_mode(&run, &tally, "cancel");
    CHECK_EQ(tally_calls_of(NULL, "scope"), 32);
    CHECK_EQ(tally_calls_of(NULL, "block"), 32);
    /* Unwinding ended them: they are whole. */
    CHECK_EQ(tally.cut, 0);
    run_free(&run);
}

static void destructors_record(void)
{
    struct run run = {0};
    struct tally tally;
    run_mode(&run, &tally, "keys");
    CHECK_EQ(ATTEMPTED(&tally), 64 * (5 + 3 + 3) + 1);
    run_free(&run);
}

/* Every begin and every end of the handler is part of a record, or counted: as re-entrant, and where only the begin
 * came at a bad moment, the end as unmatched. */
static void check_signals(struct run *run, struct tally *tally)
{
    uint64_t handled = atomic_load(&run->page->facts[0]);
    uint64_t calls = tally_calls_of(NULL, "handler");
    CHECK_EQ(tally->result, 0);
    CHECK_EQ(tally->damaged, 0);
    CHECK_EQ(tally->closed, tally->files);
    CHECK_EQ(tally->counted, tally->present);
    CHECK_EQ(tally->calls, ATTEMPTED(tally));
    CHECK_EQ(tally->nameless, 0);
    CHECK(handled > 0);
    CHECK(calls * 2 + tally->reentrant + tally->unmatched <= handled * 2);
}

static void handler_records(void)
{
    const char *const env[] = {"STEPWATCH_POLICY=drop", NULL};
    struct run plain = {.env = env}, run = {.env = env};
    struct tally tally;
    run_plain(&plain, "signal", "late", NULL);
    run_whole(&run, "signal", "late", NULL);
    check_same(&run, &plain);
    tally_read(&tally, NULL);
    check_said(&run, tally.dropped != 0);
    check_signals(&run, &tally);
    uint64_t calls = tally_calls_of(NULL, "handler");
    /* Nothing else is re-entrant. TSan delivers signals when it likes. */
    uint64_t handled = atomic_load(&run.page->facts[0]) * 2;
    CHECK_BETWEEN(handled - 2 * CRASH_TSAN, calls * 2 + tally.reentrant + tally.unmatched,
                  handled + 2 * CRASH_TSAN);
    CHECK_EQ(tally.calls, run_done(&run) + calls);
    run_free(&plain);
    run_free(&run);
}

/* The signals meet the recorder while it starts, attaches its threads and stops. */
static void handler_records_from_the_start(void)
{
    struct run plain = {0}, run = {.sessions = 40};
    struct tally tally;
    run_plain(&plain, "signal", "early", NULL);
    run_whole(&run, "signal", "early", NULL);
    check_same(&run, &plain);
    tally_read(&tally, NULL);
    check_said(&run, tally.dropped != 0);
    CHECK_EQ(tally.files, 40);
    check_signals(&run, &tally);
    CHECK_EQ(tally.calls, run_done(&run) + tally_calls_of(NULL, "handler"));
    run_free(&plain);
    run_free(&run);
}

static void two_hundred_restarts(void)
{
    /* Two hundred sessions must not leave memory behind either. */
    const char *const env[] = {"ASAN_OPTIONS=detect_leaks=1", NULL};
    struct run plain = {0}, run = {.env = CRASH_ASAN ? env : NULL};
    struct tally tally;
    run_plain(&plain, "restart", "200", NULL);
    run_whole(&run, "restart", "200", NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    CHECK_EQ(atomic_load(&run.page->facts[0]), 200);
    CHECK_EQ(atomic_load(&run.page->facts[1]), 0);
    tally_read(&tally, NULL);
    check_whole(&tally, 2000);
    CHECK_EQ(tally.files, 200);
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

static void restarts_while_others_record(void)
{
    const char *const env[] = {"STEPWATCH_POLICY=ring", "STEPWATCH_MAX_MB=4", NULL};
    struct run plain = {0}, run = {.env = env};
    struct tally tally;
    run_plain(&plain, "restart", "200", "3", NULL);
    run_whole(&run, "restart", "200", "3", NULL);
    check_same(&run, &plain);
    CHECK_EQ(atomic_load(&run.page->facts[0]), 200);
    CHECK_EQ(atomic_load(&run.page->facts[1]), 0);
    tally_read(&tally, NULL);
    /* Each recording says for itself what it lost. */
    uint64_t lines = 0;
    for (const char *at = run.err_text; *at; lines++) {
        CHECK(strncmp(at, "stepwatch: ", 11) == 0);
        at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "";
    }
    CHECK_EQ(lines, tally.losers);
    CHECK_EQ(tally.files, 200);
    CHECK_EQ(tally.unreadable, 0);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(tally.closed, 200);
    CHECK_EQ(tally.counted, tally.present);
    CHECK_EQ(tally.nameless, 0);
    CHECK_EQ(tally.backward, 0);
    /* What a thread did while nothing recorded is in no file; what is, is in both counts, but for a call that is just
     * being counted when a recording ends. */
    CHECK_BETWEEN(ATTEMPTED(&tally), tally.calls, ATTEMPTED(&tally) + 3);
    CHECK_BETWEEN(2000, ATTEMPTED(&tally), run_done(&run));
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

/* Names that are made while a recording starts are known to it. */
static void restarts_while_others_make_names(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "restart", "100", "3", "names", NULL);
    run_whole(&run, "restart", "100", "3", "names", NULL);
    check_same(&run, &plain);
    tally_read(&tally, NULL);
    CHECK_EQ(tally.files, 100);
    CHECK_EQ(tally.unreadable, 0);
    CHECK_EQ(tally.damaged, 0);
    CHECK_EQ(tally.nameless, 0);
    CHECK_EQ(tally.counted, tally.present);
    CHECK_EQ(tally.calls, ATTEMPTED(&tally));
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

static void stopped_inside_sections(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "restart", "20", "0", "open", NULL);
    run_whole(&run, "restart", "20", "0", "open", NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run) + atomic_load(&run.page->extra));
    CHECK_EQ(tally.files, 20);
    CHECK_EQ(tally.cut, 60);
    CHECK_EQ(tally.open, 0);
    CHECK_EQ(tally.steps, 20);
    CHECK_EQ(tally.unmatched, 0);
    run_free(&plain);
    run_free(&run);
}

static void plugin_comes_and_goes(void)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    run_plain(&plain, "plugin", crash_plugin, NULL);
    run_whole(&run, "plugin", crash_plugin, NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally_calls_of(NULL, "in the plugin"), 300);
    CHECK_EQ(tally_calls_of(NULL, "host"), 30);
    char *text = report_json(NULL);
    CHECK(strstr(text, "\"in the plugin\"") != NULL);
    free(text);
    run_free(&plain);
    run_free(&run);
}

/* Nobody but the plugin needs the library: it stays when the plugin goes. */
static void plugin_brings_the_library(void)
{
    const char *const env[] = {"STEPWATCH_ENABLED=1", NULL};
    const char *argv[] = {crash_host, crash_plugin, NULL};
    struct run plain = {.off = true}, run = {.env = env};
    struct tally tally;
    if (CRASH_SANITIZED) {
        crash_skip("a sanitizer's runtime must come with the program");
    }
    run_start_argv(&plain, argv);
    run_finish(&plain);
    run_start_argv(&run, argv);
    run_finish(&run);
    CHECK_EQ(plain.status, 7 << 8);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, 100);
    CHECK_EQ(tally_calls_of(NULL, "in the plugin"), 100);
    run_free(&plain);
    run_free(&run);
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(thousand_come_and_go),
        CASE(sixty_four_at_once),
        CASE(first_records_at_once),
        CASE(end_inside_sections),
        CASE(cancelled_inside_sections),
        CASE(destructors_record),
        CASE(handler_records),
        CASE(handler_records_from_the_start),
        CASE(two_hundred_restarts),
        CASE(restarts_while_others_record),
        CASE(restarts_while_others_make_names),
        CASE(stopped_inside_sections),
        CASE(plugin_comes_and_goes),
        CASE(plugin_brings_the_library),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
