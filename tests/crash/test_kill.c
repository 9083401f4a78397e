/* kill -9 at random moments: what was published before is there afterwards. */
#include "crash.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Removes the run directory, so that the next victim has one of its own. */
static void clear_run(void)
{
    char folder[300];
    char **paths;
    snprintf(folder, sizeof(folder), "%s/run", crash_dir);
    size_t count = list_files(folder, "", &paths);
    for (size_t i = 0; i < count; i++) {
        (void)unlink(paths[i]);
    }
    free_files(paths, count);
    (void)rmdir(folder);
}

static void fold_one(const char *path, sw_fold_result *result)
{
    sw_error_info info = {0};
    int error = sw_store_fold(path, result, &info);
    if (error) {
        crash_fail(__FILE__, __LINE__, "folding: %d, %s", error, info.message);
    }
}

/* Two processes complete the same file at the same time. Returns how many of them say that they did it. */
static unsigned fold_at_once(const char *path)
{
    pid_t children[2];
    int start[2];
    unsigned folded = 0;
    if (pipe(start)) {
        exit(99);
    }
    for (unsigned i = 0; i < 2; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            char byte;
            sw_fold_result result;
            sw_error_info info = {0};
            close(start[1]);
            (void)!read(start[0], &byte, 1);
            int error = sw_store_fold(path, &result, &info);
            _exit(error ? 2 : result.folded ? 1 : 0);
        }
    }
    close(start[0]);
    close(start[1]);
    for (unsigned i = 0; i < 2; i++) {
        int status = 0;
        (void)waitpid(children[i], &status, 0);
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        folded += WEXITSTATUS(status) == 1;
    }
    return folded;
}

/* What must hold of the one trace in the run directory, before and after folding. */
static void check_counts(const struct tally *tally, const struct run *run,
                         unsigned threads)
{
    uint64_t done = run_done(run), steps = run_steps(run);
    CHECK_EQ(tally->result, 0);
    CHECK_EQ(tally->files, 1);
    CHECK_EQ(tally->unreadable, 0);
    CHECK_EQ(tally->killed, 1);
    CHECK_EQ(tally->damaged, 0);
    CHECK_EQ(tally->nameless, 0);
    CHECK_EQ(tally->backward, 0);
    CHECK_EQ(tally->counted, tally->present);
    CHECK_BETWEEN(done, ATTEMPTED(tally), done + threads);
    CHECK_BETWEEN(steps, tally->steps + tally->steps_dropped, steps + threads);
    CHECK_BETWEEN(steps, tally->steps_counted, steps + threads);
    CHECK_EQ(tally->open_lanes, threads);
}

static void after_kill(struct run *run, unsigned threads, unsigned number)
{
    struct tally before, after;
    sw_fold_result result;
    char folder[300];
    char **paths;
    snprintf(folder, sizeof(folder), "%s/run", crash_dir);
    tally_read(&before, NULL);
    check_counts(&before, run, threads);
    CHECK_EQ(before.hot_used, 1);
    size_t count = list_files(folder, ".stepwatch", &paths);
    CHECK_EQ(count, 1);
    if (count == 1 && number % 4 == 0) {
        CHECK_EQ(fold_at_once(paths[0]), 1);
    } else if (count == 1) {
        fold_one(paths[0], &result);
        CHECK(result.folded && !result.alive && !result.hot_missing);
    }
    CHECK_EQ(hot_files(), 0);
    tally_read(&after, NULL);
    check_counts(&after, run, threads);
    CHECK_EQ(after.hot_used, 0);
    CHECK_EQ(after.digest_lanes, before.digest_lanes);
    CHECK_EQ(after.digest, before.digest);
    if (count == 1) {
        fold_one(paths[0], &result);
        CHECK(!result.folded && !result.alive && !result.hot_missing);
        tally_read(&after, NULL);
        CHECK_EQ(after.digest, before.digest);
    }
    if (number == 0 && threads == 1) {
        char *text = report_json(NULL);
        CHECK(strstr(text, "\"complete\": false") != NULL);
        CHECK(strstr(text, "\"open\": 1") != NULL);
        free(text);
    }
    free_files(paths, count);
    CHECK_EQ(run->status, SIGKILL);
    CHECK_EQ(run->err_length, 0);
}

static void kill_often(const char *policy, unsigned threads, unsigned kills,
                       const char *max_mb, unsigned latest_us)
{
    char policy_text[64], max_text[64], threads_text[8];
    snprintf(policy_text, sizeof(policy_text), "STEPWATCH_POLICY=%s", policy);
    snprintf(max_text, sizeof(max_text), "STEPWATCH_MAX_MB=%s", max_mb);
    snprintf(threads_text, sizeof(threads_text), "%u", threads);
    const char *const env[] = {policy_text, max_text, NULL};
    for (unsigned i = 0; i < kills && !crash_failures(); i++) {
        struct run run = {.env = env};
        uint64_t delay = crash_below(latest_us);
        run_start(&run, "spin", threads_text, NULL);
        if (!run_ready(&run)) {
            run_finish(&run);
            crash_fail(__FILE__, __LINE__, "the victim died early: %04x %s",
                       (unsigned)run.status, run.err_text);
            return;
        }
        crash_sleep_us(delay);
        run_kill(&run, SIGKILL);
        run_finish(&run);
        after_kill(&run, threads, i);
        if (crash_failures()) {
            fprintf(
                stderr, "  policy %s, kill %u after %llu us, %llu records published\n",
                policy, i, (unsigned long long)delay, (unsigned long long)run_done(&run));
        }
        run_free(&run);
        clear_run();
    }
}

static void kill_stream(void)
{
    kill_often("stream", 1, 30, "64", 12000);
}
static void kill_ring(void)
{
    kill_often("ring", 1, 30, "4", 12000);
}
static void kill_auto(void)
{
    kill_often("auto", 1, 30, "4", 12000);
}
static void kill_drop(void)
{
    kill_often("drop", 1, 30, "4", 12000);
}
static void kill_stream_threads(void)
{
    kill_often("stream", 3, 10, "64", 12000);
}
static void kill_ring_threads(void)
{
    kill_often("ring", 3, 10, "8", 12000);
}
static void kill_auto_threads(void)
{
    kill_often("auto", 3, 10, "8", 12000);
}
static void kill_drop_threads(void)
{
    kill_often("drop", 3, 10, "8", 12000);
}
/* The home file is being written all the time. */
static void kill_heavy_streaming(void)
{
    kill_often("stream", 2, 12, "none", 60000);
}

/* At any moment from exec to the first records. The trace may be absent or empty, and nothing chokes on it. */
static void kill_at_start(void)
{
    const char *const env[] = {"STEPWATCH_POLICY=stream", NULL};
    uint64_t usual = 3000;
    for (unsigned i = 0; i < 60 && !crash_failures(); i++) {
        struct run run = {.env = env};
        struct tally tally;
        char **paths;
        char folder[300];
        snprintf(folder, sizeof(folder), "%s/run", crash_dir);
        run_start(&run, "spin", "1", NULL);
        uint64_t delay = usual / 4 + crash_below(usual);
        if (i == 0) {
            /* How long a start takes here and now. */
            for (delay = 0; !atomic_load(&run.page->ready); delay += 100) {
                crash_sleep_us(100);
            }
            usual = delay + 1000;
        } else {
            crash_sleep_us(delay);
        }
        run_kill(&run, SIGKILL);
        run_finish(&run);
        CHECK_EQ(run.status, SIGKILL);
        CHECK_EQ(run.err_length, 0);
        tally_read(&tally, NULL);
        if (tally.result == 0 && tally.files) {
            CHECK_BETWEEN(run_done(&run), ATTEMPTED(&tally), run_done(&run) + 1);
            CHECK_EQ(tally.counted, tally.present);
        } else {
            /* Nothing had been recorded, so nothing is lost. */
            CHECK_EQ(run_done(&run), 0);
        }
        size_t count = list_files(folder, ".stepwatch", &paths);
        for (size_t j = 0; j < count; j++) {
            (void)sw_store_fold(paths[j], NULL, NULL);
        }
        if (count) {
            struct run report = {0};
            const char *argv[] = {crash_command, "report", "--json", folder, NULL};
            run_start_argv(&report, argv);
            run_finish(&report);
            /* It reports, or it says in a line why it cannot. */
            CHECK(WIFEXITED(report.status));
            CHECK((report.status == 0 && report.out_text[0] == '{') ||
                  (report.status != 0 && report.err_text[0]));
            run_free(&report);
        }
        free_files(paths, count);
        tally_read(&tally, NULL);
        if (tally.result == 0 && tally.files) {
            CHECK_EQ(tally.hot_used, 0);
            CHECK_BETWEEN(run_done(&run), ATTEMPTED(&tally), run_done(&run) + 1);
        }
        run_free(&run);
        clear_run();
    }
}

/* Rows of the one trace in the run directory: how many there are, and the value that is raised. */
static void read_rows(uint64_t *rows, uint64_t *raised)
{
    char folder[300];
    sw_run *run;
    snprintf(folder, sizeof(folder), "%s/run", crash_dir);
    *rows = *raised = UINT64_MAX;
    if (sw_run_open(&run, folder, NULL)) {
        crash_fail(__FILE__, __LINE__, "the run cannot be opened");
        return;
    }
    CHECK_EQ(sw_run_count(run), 1);
    const sw_trace *trace = sw_run_trace(run, 0);
    CHECK(!sw_trace_get_info(trace)->damaged);
    *rows = sw_trace_row_count(trace, SW_TABLE_CODE);
    for (uint32_t i = 0; i < *rows; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_CODE, i);
        if (!row || row->key[0] != i || row->key[1] != ~i || row->value[0] != i * 3u) {
            crash_fail(__FILE__, __LINE__, "row %u is not what it was", i);
            break;
        }
    }
    const sw_row *row = sw_trace_get_row(trace, SW_TABLE_STACK, 0);
    CHECK(row && row->key[0] == 7 && row->key[1] == 8 && row->key[2] == 9);
    *raised = row ? row->value[0] : UINT64_MAX;
    sw_run_free(run);
}

/* Rows and their last values outlive a kill, whatever becomes of the events. */
static void kill_rows(void)
{
    static const char *const policies[] = {
        "STEPWATCH_POLICY=stream", "STEPWATCH_POLICY=ring", "STEPWATCH_POLICY=auto",
        "STEPWATCH_POLICY=drop"};
    for (unsigned i = 0; i < 24 && !crash_failures(); i++) {
        const char *const env[] = {policies[i % 4], "STEPWATCH_MAX_MB=16", NULL};
        struct run run = {.env = env};
        uint64_t rows, raised, rows_after, raised_after;
        run_start(&run, "rows", NULL);
        CHECK(run_ready(&run));
        /* Every other one long enough for copies to the home file. */
        crash_sleep_us(crash_below(i % 2 ? 250000 : 12000));
        run_kill(&run, SIGKILL);
        run_finish(&run);
        CHECK_EQ(run.status, SIGKILL);
        const uint64_t put = atomic_load(&run.page->done[0]);
        const uint64_t told = atomic_load(&run.page->done[1]);
        read_rows(&rows, &raised);
        CHECK_BETWEEN(put, rows, put + 1);
        CHECK_BETWEEN(told, raised, told + 1);
        CHECK_EQ(fold_all(NULL), 1);
        CHECK_EQ(hot_files(), 0);
        read_rows(&rows_after, &raised_after);
        CHECK_EQ(rows_after, rows);
        CHECK_EQ(raised_after, raised);
        run_free(&run);
        clear_run();
    }
}

/* A file whose process is alive is read, and not touched by folding. */
static void fold_alive(void)
{
    const char *const env[] = {"STEPWATCH_POLICY=drop", "STEPWATCH_MAX_MB=4", NULL};
    struct run run = {.env = env};
    struct tally tally;
    char folder[300];
    char **paths;
    snprintf(folder, sizeof(folder), "%s/run", crash_dir);
    run_start(&run, "spin", "2", NULL);
    CHECK(run_ready(&run));
    size_t count = list_files(folder, ".stepwatch", &paths);
    CHECK_EQ(count, 1);
    for (unsigned i = 0; i < 10; i++) {
        uint64_t done = run_done(&run);
        sw_fold_result result;
        fold_one(paths[0], &result);
        CHECK(result.alive && !result.folded);
        tally_read(&tally, NULL);
        CHECK_EQ(tally.running, 1);
        CHECK_EQ(tally.damaged, 0);
        CHECK(ATTEMPTED(&tally) >= done);
    }
    CHECK_EQ(hot_files(), 1);
    run_kill(&run, SIGKILL);
    run_finish(&run);
    after_kill(&run, 2, 1);
    free_files(paths, count);
    run_free(&run);
}

int main(int argc, char **argv)
{
    static const struct crash_case cases[] = {
        CASE(kill_stream),       CASE(kill_ring),           CASE(kill_auto),
        CASE(kill_drop),         CASE(kill_stream_threads), CASE(kill_ring_threads),
        CASE(kill_auto_threads), CASE(kill_drop_threads),   CASE(kill_heavy_streaming),
        CASE(kill_at_start),     CASE(kill_rows),           CASE(fold_alive),
    };
    return crash_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
