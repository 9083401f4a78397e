/* What is read of a run directory, whatever lies in it; and what runs are to each other. */
#include "history_fixture.h"

#include <math.h>

#include "history/pairs.h"
#include "history/run_files.h"
#include "trace_builder.h"

static sw_history_run read_run(const struct place *place, const char *name,
                               sw__arena *arena, int expected)
{
    sw_history_run run;
    sw_error_info info = {0};
    assert_int_equal(sw__run_read(&run, place->path, name, arena, &info), expected);
    return run;
}

static void everything(void **state)
{
    (void)state;
    struct place place = place_new();
    sw__arena *arena = sw__arena_create(0);
    write_run(&place, "a", (struct made){.finding = "loader_workers", .argument = "x y"});
    const sw_history_run run = read_run(&place, "a", arena, SW_OK);
    assert_string_equal(run.directory, "a");
    assert_string_equal(run.id, "id-a"); /* run.json goes first */
    assert_string_equal(run.program, "/w/train.py");
    assert_string_equal(run.command, "python3 /w/train.py 'x y'");
    assert_string_equal(run.commit, "0123456789abcdef0123456789abcdef01234567");
    assert_int_equal(run.dirty, -1);
    assert_int_equal(run.exit_code, 0);
    assert_int_equal(run.exit_signal, 0);
    assert_int_equal(run.complete, 1);
    assert_int_equal(run.workers, 2);
    assert_int_equal(run.batch_size, 64);
    assert_int_equal(run.steps, 400);
    assert_true(run.started_s == 1000 && run.duration_s == 2.5);
    assert_true(run.step_p50_ms == 10 && run.step_p99_ms == 20 && run.steps_per_s == 100);
    assert_true(isnan(run.samples_per_s));
    assert_true(run.overhead_percent == 0.5);
    assert_string_equal(run.finding, "loader_workers"); /* the first of two */
    assert_true(run.speedup == 1.5);
    assert_string_equal(run.report, "a/report.json");
    assert_int_equal(run.shares.count, 2); /* what was not measured is not 0 */
    assert_string_equal(run.shares.pair[1].key, "other");
    assert_true(run.shares.pair[1].number == 0.75);
    assert_string_equal(run.frameworks.pair[0].text, "2.1");
    assert_string_equal(run.config.pair[0].key, "max_mb");
    sw__arena_free(arena);
    place_free(&place);
}

static void nothing_is_not_zero(void **state)
{
    (void)state;
    struct place place = place_new();
    sw__arena *arena = sw__arena_create(0);
    write_run(&place, "a", (struct made){.p50_ms = -1});
    sw_history_run run = read_run(&place, "a", arena, SW_OK);
    assert_true(run.steps == SW_UNKNOWN && isnan(run.step_p50_ms));
    assert_null(run.finding);
    assert_true(isnan(run.speedup));
    write_run(&place, "b", (struct made){.no_report = true});
    run = read_run(&place, "b", arena, SW_OK);
    assert_int_equal(run.complete, -1);
    assert_int_equal(run.workers, -1);
    assert_null(run.report);
    assert_null(run.frameworks.pair);
    make_folders(&place, "empty");
    read_run(&place, "empty", arena, SW_ENOTFOUND);
    assert_false(sw__run_is_there(in(&place, "empty")));
    sw__arena_free(arena);
    place_free(&place);
}

static void unwanted(void **state)
{
    (void)state;
    struct place place = place_new();
    sw__arena *arena = sw__arena_create(0);
    static const char *const words[] = {"off", "0", "False", "NO"};
    for (size_t i = 0; i < 4; i++) {
        char more[64];
        snprintf(more, sizeof more, ", \"config\": {\"%s\": \"%s\"}",
                 i % 2 ? "report" : "history", words[i]);
        write_run(&place, "a", (struct made){.more = more});
        read_run(&place, "a", arena, SW_EDISABLED);
    }
    sw__arena_free(arena);
    place_free(&place);
}

/* The same program is the same script with the same arguments, however it is started. */
static void identity(void **state)
{
    (void)state;
    sw__arena *arena = sw__arena_create(0);
    const char *a[] = {"/usr/bin/python3", "train.py", "--epochs", "3"};
    const char *b[] = {"/opt/python3.12", "./train.py", "--epochs", "3"};
    const char *c[] = {"/usr/bin/python3", "train.py", "--epochs", "33"};
    const char *d[] = {"/usr/bin/python3", "train.py", "--epochs3"};
    const char *m[] = {"python", "-X", "dev", "-u", "-m", "pkg.train", "x"};
    const char *e[] = {"python", "-c", "pass"};
    const char *p[] = {"./train", "x"};
    sw_history_run run[7] = {{0}};
    sw__run_identify(&run[0], a, 4, NULL, 0, "/w", arena);
    sw__run_identify(&run[1], b, 4, "/w/train.py", 1, NULL, arena);
    sw__run_identify(&run[2], c, 4, NULL, 0, "/w", arena);
    sw__run_identify(&run[3], d, 3, NULL, 0, "/w", arena);
    sw__run_identify(&run[4], m, 7, NULL, 0, "/w", arena);
    sw__run_identify(&run[5], e, 3, NULL, 0, "/w", arena);
    sw__run_identify(&run[6], p, 2, NULL, 0, "/w", arena);
    assert_string_equal(run[0].program, "/w/train.py");
    assert_string_equal(run[1].program, run[0].program);
    assert_string_equal(run[1].arguments, run[0].arguments);
    assert_int_equal(strlen(run[0].arguments), 16);
    assert_string_not_equal(run[2].arguments, run[0].arguments);
    assert_string_not_equal(run[3].arguments, run[0].arguments);
    assert_string_equal(run[4].program, "pkg.train");
    assert_string_equal(run[5].program, "python");
    assert_string_equal(run[6].program, "/w/./train");
    sw__arena_free(arena);
}

/* A run of which there are only traces. */
static void traces_alone(void **state)
{
    (void)state;
    struct place place = place_new();
    sw__arena *arena = sw__arena_create(0);
    make_folders(&place, "a");
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    size_t size;
    tb_fact(tb, "command", "[\"python3\", \"fit.py\", \"--lr\", \"1\"]");
    tb_fact(tb, "cwd", "/w");
    tb_fact(tb, "python", "3.12.0");
    tb_seal(tb);
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(in(&place, "a/x.stepwatch"), bytes, size);
    free(bytes);
    tb_free(tb);
    const sw_history_run run = read_run(&place, "a", arena, SW_OK);
    assert_string_equal(run.program, "/w/fit.py");
    assert_string_equal(run.python, "3.12.0");
    assert_int_equal(run.complete, 1);
    assert_int_equal(run.exit_code, -1);
    assert_int_equal(run.exit_signal, -1);
    assert_null(run.report);
    sw__arena_free(arena);
    place_free(&place);
}

static char *load(const char *path, size_t *length)
{
    FILE *file = fopen(path, "rb");
    char *bytes = malloc(1 << 16);
    *length = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    return bytes;
}

/* Half a file is none: then run.json still tells who and when. */
static void cut_files(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){.finding = "gc"});
    size_t report_length;
    size_t run_length;
    char *report = load(in(&place, "a/report.json"), &report_length);
    char *started = load(in(&place, "a/run.json"), &run_length);
    for (size_t length = 0; length < report_length; length++) {
        sw__arena *arena = sw__arena_create(0);
        write_bytes(in(&place, "a/report.json"), report, length);
        const sw_history_run run = read_run(&place, "a", arena, SW_OK);
        assert_true(run.steps == SW_UNKNOWN && !run.report);
        assert_string_equal(run.id, "id-a");
        sw__arena_free(arena);
    }
    for (size_t length = 0; length < run_length; length++) {
        sw__arena *arena = sw__arena_create(0);
        write_bytes(in(&place, "a/run.json"), started, length);
        read_run(&place, "a", arena, SW_ENOTFOUND);
        sw__arena_free(arena);
    }
    free(report);
    free(started);
    place_free(&place);
}

static void strange_reports(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "[]",
        "{}",
        "{\"schema\": \"stepwatch.report/2\"}",
        "{\"schema\": 1, \"steps\": {\"count\": 3}}",
    };
    static const char *const odd[] = {
        "{\"schema\": \"stepwatch.report/1\", \"steps\": 3, \"run\": [], \"loader\": "
        "null, "
        "\"findings\": {}, \"overhead\": \"x\"}",
        "{\"schema\": \"stepwatch.report/1\", \"steps\": {\"count\": -1, \"step_ms\": "
        "[], "
        "\"phases\": [1, {}, {\"phase\": 2}, {\"share\": 1}]}, \"findings\": [1, 2]}",
        "{\"schema\": \"stepwatch.report/1\", \"steps\": {\"count\": 1e300, "
        "\"phases\": {}}, \"findings\": [[]], \"run\": {\"frameworks\": [], \"exit\": "
        "1}}",
    };
    struct place place = place_new();
    sw__arena *arena = sw__arena_create(0);
    make_folders(&place, "a");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        write_text(in(&place, "a/report.json"), texts[i]);
        read_run(&place, "a", arena, SW_ENOTFOUND);
    }
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        write_text(in(&place, "a/report.json"), odd[i]);
        const sw_history_run run = read_run(&place, "a", arena, SW_OK);
        assert_true(run.steps == SW_UNKNOWN);
        assert_null(run.finding);
        assert_int_equal(run.shares.count, 0);
    }
    char *deep = malloc(200000);
    memset(deep, '[', 200000);
    write_bytes(in(&place, "a/report.json"), deep, 200000);
    free(deep);
    read_run(&place, "a", arena, SW_ENOTFOUND);
    /* Larger than any report. */
    assert_int_equal(truncate(in(&place, "a/report.json"), (off_t)1 << 32), 0);
    read_run(&place, "a", arena, SW_ENOTFOUND);
    sw__arena_free(arena);
    place_free(&place);
}

static void times(void **state)
{
    (void)state;
    char text[SW__UTC];
    sw__utc_write(text, 1794773392.091444);
    assert_string_equal(text, "2026-11-15T20:09:52.091444Z");
    assert_true(fabs(sw__utc_read(text) - 1794773392.091444) < 1e-6);
    assert_true(sw__utc_read("2026-11-15T20:09:52Z") == 1794773392);
    static const char *const wrong[] = {"",
                                        "2026",
                                        "2026-11-15 20:09:52Z",
                                        "x",
                                        "2026-11-15T20:09:52",
                                        "2026-11-15T20:09:Z"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_true(isnan(sw__utc_read(wrong[i])));
    }
    assert_true(isnan(sw__utc_read(NULL)));
    sw__utc_write(text, NAN);
    assert_string_equal(text, "");
    sw__utc_write(text, 1e300);
    assert_string_equal(text, "");
}

/* --- what runs are to each other --- */

static const sw_history_run *by_id(const sw_history *history, const char *id)
{
    for (size_t i = 0; i < sw_history_count(history); i++) {
        if (strcmp(sw_history_get(history, i)->id, id) == 0) {
            return sw_history_get(history, i);
        }
    }
    fail_msg("no run %s", id);
    return NULL;
}

static void relations(void **state)
{
    (void)state;
    struct place place = place_new();
    write_run(&place, "a", (struct made){.started_s = 1, .p50_ms = 10});
    write_run(&place, "b", (struct made){.started_s = 2, .p50_ms = 5});
    write_run(&place, "c",
              (struct made){.started_s = 3, .p50_ms = 1, .incomplete = true});
    write_run(&place, "d", (struct made){.started_s = 4, .p50_ms = -1, .code = 1});
    write_run(&place, "e", (struct made){.started_s = 5, .p50_ms = 8, .code = 1});
    write_run(&place, "f", (struct made){.started_s = 6, .p50_ms = 4, .argument = "x"});
    write_run(&place, "g", (struct made){.started_s = 7, .p50_ms = 6});
    write_run(&place, "h", (struct made){.started_s = 8, .program = "/w/other.py"});
    sw_history *history = read_history(&place, NULL);
    assert_int_equal(sw_history_count(history), 8);
    assert_string_equal(sw_history_get(history, 0)->id, "id-h");
    assert_string_equal(sw_history_get(history, 7)->id, "id-a");
    assert_null(by_id(history, "id-a")->previous);
    assert_true(isnan(by_id(history, "id-a")->change));
    assert_string_equal(by_id(history, "id-b")->previous, "a");
    assert_true(by_id(history, "id-b")->change == 2); /* twice as fast */
    /* What was killed, or failed before its first step, is no measure. */
    assert_string_equal(by_id(history, "id-d")->previous, "b");
    assert_true(isnan(by_id(history, "id-d")->change));
    assert_string_equal(by_id(history, "id-e")->previous, "b");
    assert_string_equal(by_id(history, "id-f")->previous, "e");
    assert_false(by_id(history, "id-f")->previous_same_arguments);
    assert_string_equal(by_id(history, "id-g")->previous, "e");
    assert_true(by_id(history, "id-g")->previous_same_arguments);
    assert_null(by_id(history, "id-h")->previous);
    for (size_t i = 0; i < 8; i++) {
        const sw_history_run *run = sw_history_get(history, i);
        assert_int_equal(run->best, strcmp(run->id, "id-b") == 0);
    }
    assert_int_equal(sw_history_trend_count(history), 1);
    const sw_history_trend *trend = sw_history_get_trend(history, 0);
    const double expected[] = {10, 5, 1, 8, 6};
    assert_int_equal(trend->runs, 5);
    assert_int_equal(trend->count, 5);
    assert_memory_equal(trend->step_ms, expected, sizeof expected);
    assert_true(trend->best_ms == 5 && trend->first_ms == 10 && trend->last_ms == 6);
    sw_history_free(history);
    history = read_history(&place, "other");
    assert_int_equal(sw_history_count(history), 1);
    assert_int_equal(sw_history_trend_count(history), 0);
    sw_history_free(history);
    place_free(&place);
}

static void long_trend(void **state)
{
    (void)state;
    struct place place = place_new();
    for (int i = 0; i < SW_HISTORY_TREND + 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%02d", i);
        write_run(&place, name, (struct made){.started_s = i + 1, .p50_ms = i + 1});
    }
    sw_history *history = read_history(&place, NULL);
    const sw_history_trend *trend = sw_history_get_trend(history, 0);
    assert_int_equal(trend->runs, SW_HISTORY_TREND + 5);
    assert_int_equal(trend->count, SW_HISTORY_TREND);
    for (int i = 0; i < SW_HISTORY_TREND; i++) {
        assert_true(trend->step_ms[i] == i + 6);
    }
    assert_true(trend->first_ms == 1);
    sw_history_free(history);
    place_free(&place);
}

static void earlier_run(void **state)
{
    (void)state;
    struct place place = place_new();
    sw_history_earlier earlier;
    write_run(&place, "a", (struct made){.started_s = 1});
    add(&place, "a");
    assert_int_equal(sw_history_previous(in(&place, "a"), &earlier, NULL), SW_ENOTFOUND);
    write_run(&place, "b", (struct made){.started_s = 2, .argument = "x"});
    add(&place, "b");
    assert_int_equal(sw_history_previous(in(&place, "b"), &earlier, NULL), SW_OK);
    assert_string_equal(earlier.id, "id-a");
    assert_false(earlier.same_arguments);
    write_run(&place, "c", (struct made){.started_s = 3});
    /* It need not be in the history itself. */
    assert_int_equal(sw_history_previous(in(&place, "c"), &earlier, NULL), SW_OK);
    assert_string_equal(earlier.id, "id-a");
    assert_true(earlier.same_arguments);
    char real[PATH_MAX];
    assert_string_equal(earlier.directory, realpath(in(&place, "a"), real));
    add(&place, "c");
    assert_int_equal(sw_history_previous(in(&place, "c"), &earlier, NULL), SW_OK);
    assert_string_equal(earlier.id, "id-a");
    /* One that began later is none, nor one that was killed, nor one that is gone. */
    write_run(&place, "d", (struct made){.started_s = 2.5, .incomplete = true});
    add(&place, "d");
    assert_int_equal(sw_history_previous(in(&place, "c"), &earlier, NULL), SW_OK);
    assert_string_equal(earlier.id, "id-a");
    char command[200];
    snprintf(command, sizeof command, "rm -r %s", in(&place, "a"));
    assert_int_equal(system(command), 0);
    assert_int_equal(sw_history_previous(in(&place, "c"), &earlier, NULL), SW_OK);
    assert_string_equal(earlier.id, "id-b");
    assert_false(earlier.same_arguments);
    assert_int_equal(sw_history_previous(in(&place, "a"), &earlier, NULL), SW_EOPEN);
    place_free(&place);
}

/* Tables that fit, whatever runs are called. */
static void text(void **state)
{
    (void)state;
    struct place place = place_new();
    for (int i = 0; i < 5; i++) {
        char name[16];
        snprintf(name, sizeof name, "r%d", i);
        write_run(&place, name,
                  (struct made){.started_s = i + 1,
                                .p50_ms = 10 - i,
                                .finding = "loader_workers\\u001b[2J",
                                .more = ", \"name\": \"\\u001b[31m\\u4e2d\\u6587"
                                        "a name that is much too long for any table\""});
    }
    sw_history *history = read_history(&place, NULL);
    for (size_t columns = 60; columns <= 200; columns += 7) {
        for (int unicode = 0; unicode < 2; unicode++) {
            sw_writer *writer = sw_writer_to_memory();
            const sw_text_options look = {
                .columns = columns, .unicode = unicode, .top = 3};
            sw_history_write_text(writer, history, &look);
            const char *line = sw_writer_text(writer, NULL);
            assert_non_null(strstr(line, "3 of 5 runs"));
            assert_non_null(strstr(line, unicode ? "▁" : "oldest run first"));
            while (*line) {
                const size_t length = strcspn(line, "\n");
                assert_true(sw_text_columns(line, length) <= columns);
                for (size_t i = 0; i < length; i++) {
                    const unsigned char c = (unsigned char)line[i];
                    assert_true(c >= 0x20 && c != 0x7f && (unicode || c < 0x80));
                }
                line += length + 1;
            }
            sw_writer_close(writer, NULL);
        }
    }
    sw_history_free(history);
    place_free(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything),      cmocka_unit_test(nothing_is_not_zero),
        cmocka_unit_test(unwanted),        cmocka_unit_test(identity),
        cmocka_unit_test(traces_alone),    cmocka_unit_test(cut_files),
        cmocka_unit_test(strange_reports), cmocka_unit_test(times),
        cmocka_unit_test(relations),       cmocka_unit_test(long_trend),
        cmocka_unit_test(earlier_run),     cmocka_unit_test(text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
