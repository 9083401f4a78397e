/* Little address space, no threads, no time stamp counter. */
#include "crash.h"
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

/* What there is room for is recorded; what there is not is counted, or the program runs unrecorded. */
static void address_space(const char *mib, bool must_record)
{
    struct run plain = {0}, run = {0};
    struct tally tally;
    if (CRASH_SANITIZED) {
        crash_skip("sanitizers need the address space themselves");
    }
    run_plain(&plain, "files", "address-space", mib, NULL);
    run_whole(&run, "files", "address-space", mib, NULL);
    check_same(&run, &plain);
    tally_read(&tally, NULL);
    bool recorded = atomic_load(&run.page->facts[0]) != 0;
    CHECK(recorded || !must_record);
    if (recorded) {
        check_said(&run, tally.dropped != 0);
        check_whole(&tally, run_done(&run));
    } else {
        check_said(&run, true);
        CHECK_EQ(tally.files, 0);
    }
    CHECK_EQ(hot_files(), 0);
    run_free(&plain);
    run_free(&run);
}

static void address_space_64_mib(void)
{
    address_space("64", true);
}
static void address_space_32_mib(void)
{
    address_space("32", true);
}
static void address_space_4_mib(void)
{
    address_space("4", false);
}
static void address_space_1_mib(void)
{
    address_space("1", false);
}
static void address_space_none(void)
{
    address_space("0", false);
}

static void become_nobody(void *arg)
{
    (void)arg;
    if (geteuid() == 0 && (setgroups(0, NULL) || setgid(NOBODY) || setuid(NOBODY))) {
        _exit(96);
    }
}

/* No thread can be made, so the recording ones serve themselves. */
static void no_helper_thread(void)
{
    static const char *const policies[] = {"stream", "ring", "auto", "drop"};
    if (geteuid() == 0 &&
        (chown(crash_dir, NOBODY, NOBODY) || chown(crash_hot, NOBODY, NOBODY))) {
        crash_skip("cannot become nobody");
    }
    for (unsigned i = 0; i < 4; i++) {
        char policy[64], out[300];
        snprintf(policy, sizeof(policy), "STEPWATCH_POLICY=%s", policies[i]);
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        const char *const env[] = {policy, "STEPWATCH_MAX_MB=2", NULL};
        struct run plain = {.prepare = become_nobody};
        struct run run = {.env = env, .out = out, .prepare = become_nobody};
        struct tally tally;
        plain.off = true;
        run_start(&plain, "files", "no-threads", NULL);
        run_finish(&plain);
        if (WIFEXITED(plain.status) && WEXITSTATUS(plain.status) >= 96) {
            crash_skip("nobody may not run the victim where it lies");
        }
        run_whole(&run, "files", "no-threads", NULL);
        check_same(&run, &plain);
        tally_read(&tally, out);
        check_said(&run, tally.dropped != 0);
        check_whole(&tally, run_done(&run));
        CHECK_EQ(atomic_load(&run.page->facts[0]), 1);
        CHECK_EQ(atomic_load(&run.page->facts[1]), atomic_load(&plain.page->facts[1]));
        CHECK_EQ(tally.steps + tally.steps_dropped, run_steps(&run));
        CHECK(tally.present > 0);
        run_free(&plain);
        run_free(&run);
    }
}

/* The same counts with the other clock, and times that make sense. */
static void clock_without_tsc(void)
{
    const char *const env[] = {"STEPWATCH_CLOCK=monotonic", "STEPWATCH_POLICY=stream",
                               NULL};
    struct run plain = {0}, run = {.env = env};
    struct tally tally;
    run_plain(&plain, "count", "20000", NULL);
    run_whole(&run, "count", "20000", NULL);
    check_same(&run, &plain);
    check_said(&run, false);
    tally_read(&tally, NULL);
    check_whole(&tally, run_done(&run));
    CHECK_EQ(tally.present, 40000);
    CHECK_EQ(tally.calls, 40000);
    CHECK_EQ(tally.steps, run_steps(&run));
    sw_run *all = NULL;
    sw_error_info info = {0};
    char path[300];
    snprintf(path, sizeof(path), "%s/run", crash_dir);
    CHECK_EQ(sw_run_open(&all, path, &info), 0);
    if (all && sw_run_count(all) == 1) {
        const sw_trace_info *facts = sw_trace_get_info(sw_run_trace(all, 0));
        CHECK_EQ(facts->clock, SW_CLOCK_MONOTONIC);
        CHECK(facts->end_ns > facts->start_ns);
        CHECK(facts->end_ns - facts->start_ns < 60000000000u);
        const sw_trace_lane *lane = sw_trace_get_lane(sw_run_trace(all, 0), 0);
        for (size_t i = 0; lane && i < lane->node_count; i++) {
            CHECK(lane->nodes[i].inclusive_ns <= facts->end_ns - facts->start_ns);
        }
    }
    sw_run_free(all);
    run_free(&plain);
    run_free(&run);
}

/* A killed process with that clock is read like any other. */
static void clock_without_tsc_killed(void)
{
    const char *const env[] = {"STEPWATCH_CLOCK=monotonic", "STEPWATCH_POLICY=ring",
                               "STEPWATCH_MAX_MB=4", NULL};
    for (unsigned i = 0; i < 5; i++) {
        char out[300];
        snprintf(out, sizeof(out), "%s/run-%u", crash_dir, i);
        struct run run = {.env = env, .out = out};
        struct tally tally;
        run_start(&run, "spin", "1", NULL);
        CHECK(run_ready(&run));
        crash_sleep_us(crash_below(10000));
        run_kill(&run, 9);
        run_finish(&run);
        tally_read(&tally, out);
        CHECK_EQ(tally.files, 1);
        CHECK_EQ(tally.damaged, 0);
        CHECK_EQ(tally.backward, 0);
        CHECK_BETWEEN(run_done(&run), ATTEMPTED(&tally), run_done(&run) + 1);
        uint64_t digest = tally.digest;
        CHECK_EQ(fold_all(out), 1);
        tally_read(&tally, out);
        CHECK_EQ(tally.digest, digest);
        run_free(&run);
    }
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(address_space_64_mib), CASE(address_space_32_mib),
        CASE(address_space_4_mib),  CASE(address_space_1_mib),
        CASE(address_space_none),   CASE(no_helper_thread),
        CASE(clock_without_tsc),    CASE(clock_without_tsc_killed),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
