/* Summaries of traces that were composed by hand, so that every number is known beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/analyze.h>

#include "run_fixture.h"

#define START 1000000000u
#define MS 1000000u
#define SECTION 1
#define NONE 255

static const sw_summary_section *find(const sw_summary *summary,
                                      enum sw_summary_rows rows, const char *name,
                                      const char *parent)
{
    size_t count;
    const sw_summary_section *list = sw_summary_sections(summary, rows, &count);
    for (size_t i = 0; i < count; i++) {
        const char *above =
            list[i].parent == SW_NO_ROW ? NULL : list[list[i].parent].name;
        if (strcmp(list[i].name, name) == 0 &&
            (above == parent || (above && parent && strcmp(above, parent) == 0))) {
            return &list[i];
        }
    }
    return NULL;
}

/* --- sections --- */

static struct tb *two_level_trace(enum sw_clock_kind kind, uint64_t per_ns_x10)
{
    struct tb *tb = tb_new(kind);
    tb_name(tb, 1, "train", SECTION, NONE);
    tb_name(tb, 2, "forward", SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 3, "loss", SECTION, SW_PHASE_LOSS);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    tb_begin(tb, lane, 1, at);
    for (unsigned i = 1; i <= 100; i++) {
        uint64_t ticks = i * 1000 * per_ns_x10 / 10;
        call(tb, lane, 2, at, ticks);
        at += ticks;
        call(tb, lane, 3, at, 500 * per_ns_x10 / 10);
        at += 500 * per_ns_x10 / 10;
    }
    tb_end(tb, lane, at, 0);
    return tb;
}

static void processes_are_merged(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, two_level_trace(SW_CLOCK_MONOTONIC, 10));
    write_trace(fixture, two_level_trace(SW_CLOCK_TSC, 25)); /* 2.5 ticks a ns */
    const sw_summary *summary = summarise(fixture);
    assert_int_equal(sw_summary_get_run(summary)->processes, 2);
    size_t count;
    const sw_summary_section *rows = sw_summary_sections(summary, SW_ROWS_EACH, &count);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].name, "train");
    assert_string_equal(rows[1].name, "forward"); /* longer than loss */
    assert_string_equal(rows[2].name, "loss");
    assert_int_equal(rows[0].depth, 0);
    assert_int_equal(rows[1].depth, 1);
    assert_int_equal(rows[1].parent, 0);
    assert_int_equal(rows[1].phase, SW_PHASE_FORWARD);
    assert_string_equal(rows[1].thread, "main");
    assert_int_equal(rows[1].calls, 200);
    assert_true(llabs((long long)rows[1].total_ns - 2 * 5050 * 1000) <= 200);
    assert_int_equal(rows[0].total_ns - rows[0].self_ns,
                     rows[1].total_ns + rows[2].total_ns);
    const double expected[] = {50000, 90000, 99000};
    const uint64_t found[] = {rows[1].p50_ns, rows[1].p90_ns, rows[1].p99_ns};
    for (size_t i = 0; i < 3; i++) {
        assert_true(fabs((double)found[i] - expected[i]) <= 0.01 * expected[i]);
    }
    assert_int_equal(rows[1].min_ns, 1000);
    assert_int_equal(rows[1].max_ns, 100000);
    fixture_free(fixture);
}

static void recursion_is_counted_once(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "walk", SECTION, NONE);
    tb_name(tb, 2, "visit", SECTION, NONE);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    /* walk [ visit [ walk [ ] ] ], 1000 ns with 100 ns on either side of each. */
    tb_begin(tb, lane, 1, START);
    tb_begin(tb, lane, 2, START + 100);
    tb_begin(tb, lane, 1, START + 200);
    tb_end(tb, lane, START + 800, 0);
    tb_end(tb, lane, START + 900, 0);
    tb_end(tb, lane, START + 1000, SW_RECORD_ERROR);
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    const sw_summary_section *walk = find(summary, SW_ROWS_FLAT, "walk", NULL);
    const sw_summary_section *visit = find(summary, SW_ROWS_FLAT, "visit", NULL);
    assert_int_equal(walk->calls, 2);
    assert_int_equal(walk->errors, 1);
    assert_int_equal(walk->total_ns, 1000);
    assert_int_equal(walk->self_ns, 800);
    assert_int_equal(walk->min_ns, 600);
    assert_int_equal(visit->total_ns, 800);
    assert_int_equal(visit->self_ns, 200);
    size_t count;
    assert_ptr_equal(sw_summary_sections(summary, SW_ROWS_FLAT, &count), walk);
    assert_int_equal(count, 2);
    sw_summary_sections(summary, SW_ROWS_EACH, &count);
    assert_int_equal(count, 3);
    fixture_free(fixture);
}

static struct tb *family_trace(unsigned members)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 100, "batch", SECTION, NONE);
    tb_name(tb, 101, "other", SECTION, NONE);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    for (unsigned i = 0; i < members; i++) {
        char name[32];
        snprintf(name, sizeof name, "epoch_%u", i);
        tb_name(tb, 1 + i, name, SECTION, NONE);
        tb_begin(tb, lane, 1 + i, at);
        call(tb, lane, 100, at + 100, 1000);
        tb_end(tb, lane, at + 2000, 0);
        at += 3000;
    }
    call(tb, lane, 101, at, 50);
    return tb;
}

static void families_are_folded_from_nine_on(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, family_trace(9));
    const sw_summary *summary = summarise(fixture);
    size_t count;
    sw_summary_sections(summary, SW_ROWS_EACH, &count);
    assert_int_equal(count, 19);
    const sw_summary_section *rows =
        sw_summary_sections(summary, SW_ROWS_FAMILIES, &count);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].name, "epoch_*");
    assert_int_equal(rows[0].names, 9);
    assert_int_equal(rows[0].calls, 9);
    assert_int_equal(rows[0].total_ns, 9 * 2000);
    assert_int_equal(rows[0].self_ns, 9 * 1000);
    assert_string_equal(rows[1].name, "batch");
    assert_int_equal(rows[1].names, 1);
    assert_int_equal(rows[1].calls, 9);
    assert_int_equal(rows[1].parent, 0);
    assert_int_equal(rows[1].p50_ns, 1000);
    assert_string_equal(rows[2].name, "other");
    rows = sw_summary_sections(summary, SW_ROWS_FLAT, &count);
    assert_int_equal(count, 3);
    fixture_free(fixture);

    fixture = fixture_new();
    write_trace(fixture, family_trace(8));
    summary = summarise(fixture);
    sw_summary_sections(summary, SW_ROWS_FAMILIES, &count);
    assert_int_equal(count, 17);
    sw_summary_sections(summary, SW_ROWS_FLAT, &count);
    assert_int_equal(count, 10);
    fixture_free(fixture);
}

static void threads_and_domains_stay_apart(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "work", SECTION, NONE);
    tb_domain(tb, 1, "inner");
    tb_thread(tb, 0, "main");
    tb_thread(tb, 1, "loader");
    tb_thread(tb, 2, "loader");
    struct tb_lane *main_lane = tb_lane(tb, 0, 0);
    struct tb_lane *inner = tb_lane(tb, 0, 1);
    struct tb_lane *one = tb_lane(tb, 1, 0);
    struct tb_lane *two = tb_lane(tb, 2, 0);
    call(tb, main_lane, 1, START, 100);
    call(tb, inner, 1, START, 200);
    call(tb, one, 1, START, 300);
    call(tb, two, 1, START, 400);
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    size_t count;
    const sw_summary_section *rows = sw_summary_sections(summary, SW_ROWS_EACH, &count);
    assert_int_equal(count, 3);
    assert_string_equal(rows[0].thread, "loader");
    assert_int_equal(rows[0].total_ns, 700);
    assert_int_equal(rows[0].last_ns, SW_UNKNOWN); /* 300 or 400, nobody knows */
    assert_string_equal(rows[1].domain, "inner");
    assert_string_equal(rows[2].domain, "");
    rows = sw_summary_sections(summary, SW_ROWS_FLAT, &count);
    assert_int_equal(count, 2);
    assert_null(rows[0].thread);
    assert_int_equal(rows[0].total_ns, 800);
    fixture_free(fixture);
}

static void open_sections_are_shown(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->super.state = SW__STATE_FOLDED;
    tb->super.end_snapshot = (sw_clock_snapshot){0};
    tb_name(tb, 1, "train", SECTION, NONE);
    tb_name(tb, 2, "batch", SECTION, NONE);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, START);
    call(tb, lane, 2, START + 10, 100);
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    const sw_summary_section *train = find(summary, SW_ROWS_EACH, "train", NULL);
    assert_int_equal(train->calls, 0);
    assert_int_equal(train->open, 1);
    assert_int_equal(train->open_ns, sw_summary_get_run(summary)->duration_ns);
    assert_int_equal(train->min_ns, SW_UNKNOWN);
    assert_non_null(find(summary, SW_ROWS_EACH, "batch", "train"));
    assert_false(sw_summary_get_run(summary)->complete);
    assert_true(has_note(summary, "killed"));
    fixture_free(fixture);
}

/* --- steps --- */

/* 40 steps of 10 ms in two epochs: the first two are slow, number 30 waits for data, the last was left. */
static struct tb *steps_trace(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "data", SECTION, SW_PHASE_DATA_WAIT);
    tb_name(tb, 2, "forward", SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 3, "sync", SECTION, SW_PHASE_SYNC); /* never entered */
    struct sw__fmt_thread *thread = tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START + 100 * MS;
    for (unsigned i = 0; i < 40; i++) {
        uint64_t phases[SW_PHASE_SLOTS] = {0};
        phases[SW_PHASE_OTHER] = 1 * MS;
        phases[SW_PHASE_DATA_WAIT] = i == 30 ? 41 * MS : 3 * MS;
        phases[SW_PHASE_FORWARD] = i < 2 ? 60 * MS : 6 * MS;
        if (i == 20) {
            at += 50 * MS; /* between the epochs */
        }
        step(tb, lane, at, phases, i / 20, i == 39 ? SW_STEP_INCOMPLETE : 0);
        for (size_t p = 0; p < SW_PHASE_SLOTS; p++) {
            at += phases[p];
        }
    }
    lane->file->updates = 20;
    thread->steps = 40;
    return tb;
}

static void steps_are_counted_and_explained(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, steps_trace());
    const sw_summary *summary = summarise(fixture);
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    assert_non_null(steps);
    assert_int_equal(steps->count, 40);
    assert_int_equal(steps->incomplete, 1);
    assert_int_equal(steps->updates, 20);
    assert_int_equal(steps->unit, SW_STEP_BATCH);
    assert_int_equal(steps->warmup, 2);
    assert_int_equal(steps->counted, 37);
    assert_false(steps->thinned);
    assert_int_equal(steps->total_ns, 36 * 10 * MS + 48 * MS);
    assert_int_equal(steps->min_ns, 10 * MS);
    assert_int_equal(steps->max_ns, 48 * MS);
    assert_int_equal(steps->p50_ns, 10 * MS);
    assert_int_equal(steps->p99_ns, 48 * MS);
    assert_true(fabs(steps->steps_per_s - 37 / 0.408) < 1e-9);
    assert_true(fabs(steps->std_ns - 38e6 / sqrt(37)) < 1);

    double shares = 0;
    uint64_t total = 0;
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        shares += steps->phase[p].share;
        total += steps->phase[p].total_ns;
    }
    assert_true(shares == 1); /* exactly */
    assert_int_equal(total, steps->total_ns);
    assert_int_equal(steps->phase[SW_PHASE_DATA_WAIT].total_ns, 36 * 3 * MS + 41 * MS);
    assert_true(steps->phase[SW_PHASE_SYNC].measured);
    assert_int_equal(steps->phase[SW_PHASE_SYNC].total_ns, 0);
    assert_false(steps->phase[SW_PHASE_BACKWARD].measured);
    assert_int_equal(steps->phase[SW_PHASE_BACKWARD].p99_ns, SW_UNKNOWN);

    assert_int_equal(steps->worst_count, 5);
    assert_int_equal(steps->worst[0].step, 30);
    assert_int_equal(steps->worst[0].phase, SW_PHASE_DATA_WAIT);
    assert_non_null(strstr(steps->worst[0].why, "data_wait 41.0 ms against"));
    fixture_free(fixture);
}

static void epochs_and_timeline(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, steps_trace());
    const sw_summary *summary = summarise(fixture);
    assert_int_equal(sw_summary_epoch_count(summary), 2);
    const sw_summary_epoch *first = sw_summary_get_epoch(summary, 0);
    const sw_summary_epoch *second = sw_summary_get_epoch(summary, 1);
    assert_int_equal(first->steps, 20);
    assert_int_equal(first->ns, 18 * 10 * MS + 2 * 64 * MS);
    assert_int_equal(first->first_batch_ns, 3 * MS);
    assert_int_equal(second->steps, 20);

    uint64_t sum = 0;
    double shares = 0;
    uint64_t between = 0;
    uint64_t startup = 0;
    for (size_t i = 0; i < sw_summary_part_count(summary); i++) {
        const sw_summary_part *part = sw_summary_get_part(summary, i);
        sum += part->ns;
        shares += part->share;
        between += strcmp(part->part, "between_epochs") == 0 ? part->ns : 0;
        startup += strcmp(part->part, "startup") == 0 ? part->ns : 0;
    }
    assert_int_equal(sum, sw_summary_get_run(summary)->duration_ns);
    assert_true(shares == 1);
    assert_int_equal(between, 50 * MS);
    assert_int_equal(startup, 100 * MS);
    fixture_free(fixture);
}

static void given_up_step_records_leave_totals(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = steps_trace();
    struct sw__fmt_lane *lane = tb->lanes[0]->file;
    /* 60 more steps of 10 ms without records. */
    for (unsigned i = 0; i < 60; i++) {
        lane->steps++;
        lane->step_ticks += 10 * MS;
        lane->phase_ticks[SW_PHASE_FORWARD] += 10 * MS;
        tb_count(tb, lane->step_hist, 10 * MS);
    }
    tb->super.total[SW__TOTAL_STEPS_DROPPED] = 60;
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    assert_true(steps->thinned);
    assert_int_equal(steps->count, 100);
    assert_int_equal(steps->records, 40);
    assert_int_equal(steps->counted, 99);
    assert_int_equal(steps->warmup, 0);
    assert_int_equal(steps->total_ns, 96 * 10 * MS + 48 * MS + 2 * 64 * MS);
    assert_true(fabs((double)steps->p50_ns - 10e6) <= 0.01 * 10e6);
    double shares = 0;
    for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
        shares += steps->phase[p].share;
    }
    assert_true(shares == 1);
    assert_true(has_note(summary, "40 of 100 steps"));
    fixture_free(fixture);
}

static void the_schedule_says_what_is_warm_up(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t phases[SW_PHASE_SLOTS] = {10 * MS};
    for (unsigned i = 0; i < 4; i++) {
        step(tb, lane, START + i * 10 * MS, phases, UINT32_MAX,
             i == 1 ? SW_STEP_WARMUP : 0);
    }
    lane->file->step_open = 5;
    lane->file->step_begin = START + 40 * MS;
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    assert_int_equal(steps->count, 5); /* one was open */
    assert_int_equal(steps->incomplete, 1);
    assert_int_equal(steps->warmup, 1);
    assert_int_equal(steps->counted, 3);
    assert_int_equal(sw_summary_epoch_count(summary), 0);
    fixture_free(fixture);
}

/* --- the rest --- */

static void an_empty_trace_has_a_summary(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, tb_new(SW_CLOCK_MONOTONIC));
    const sw_summary *summary = summarise(fixture);
    size_t count;
    sw_summary_sections(summary, SW_ROWS_EACH, &count);
    assert_int_equal(count, 0);
    sw_summary_sections(summary, SW_ROWS_FAMILIES, &count);
    assert_int_equal(count, 0);
    sw_summary_sections(summary, SW_ROWS_FLAT, &count);
    assert_int_equal(count, 0);
    assert_null(sw_summary_get_steps(summary));
    assert_null(sw_summary_get_counter(summary, 0));
    assert_null(sw_summary_get_process(summary, 1));
    assert_int_equal(sw_summary_part_count(summary), 1);
    assert_string_equal(sw_summary_get_part(summary, 0)->part, "other");
    assert_true(sw_summary_get_run(summary)->complete);
    assert_int_equal(sw_summary_get_run(summary)->exit_code, -1);
    assert_int_equal(sw_summary_get_run(summary)->ranks, 1);
    fixture_free(fixture);
}

static void losses_become_notes(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = two_level_trace(SW_CLOCK_MONOTONIC, 10);
    tb->super.total[SW__TOTAL_DROPPED] = 1;
    tb->super.total[SW__TOTAL_OVERWRITTEN] = 1234567;
    tb->super.total[SW__TOTAL_NAMES_FOLDED] = 3;
    tb->super.total[SW__TOTAL_STEPS_DROPPED] = 429; /* the monitor's among them */
    tb->super.error = 28;                           /* ENOSPC */
    write_trace(fixture, tb);
    const sw_summary *summary = summarise(fixture);
    assert_true(has_note(summary, "1 event was dropped"));
    assert_true(has_note(summary, "1,234,567 events were given up"));
    assert_true(has_note(summary, "3 names were folded"));
    assert_true(has_note(summary, "429 records of steps and watchers were given up"));
    assert_true(has_note(summary, "No space left on device"));
    const sw_summary_overhead *overhead = sw_summary_get_overhead(summary);
    assert_int_equal(overhead->dropped, 1);
    assert_int_equal(overhead->overwritten, 1234567);
    assert_int_equal(overhead->events, 201 + 1 + 1234567);
    assert_true(overhead->low < overhead->percent && overhead->percent < overhead->high);
    assert_int_equal(sw_summary_add_note(fixture->summary, "One more."), 0);
    assert_true(has_note(summary, "One more."));
    fixture_free(fixture);
}

/* What the program waited for torch's profiler is part of what recording cost. */
static void operators_are_paid_for(void **state)
{
    (void)state;
    double seconds[2];
    for (unsigned with = 0; with < 2; with++) {
        struct fixture *fixture = fixture_new();
        struct tb *tb = two_level_trace(SW_CLOCK_MONOTONIC, 10);
        const double spent = 0.25;
        sw_row row = {.table = SW_TABLE_SETTING, .key = {61, 62}};
        memcpy(&row.value[0], &spent, sizeof spent);
        tb_name(tb, 61, "operators", 0, SW_PHASE_INHERIT);
        tb_name(tb, 62, with ? "overhead_seconds" : "window_seconds", 0,
                SW_PHASE_INHERIT);
        tb_row(tb, &row);
        write_trace(fixture, tb);
        const sw_summary_overhead *overhead = sw_summary_get_overhead(summarise(fixture));
        seconds[with] = overhead->seconds;
        assert_int_equal(strstr(overhead->how, "250 ms in which torch's") != NULL, with);
        assert_true(overhead->low <= overhead->percent);
        fixture_free(fixture);
    }
    assert_true(fabs(seconds[1] - seconds[0] - 0.25) < 1e-9);
}

/* Hooks in a framework take more than the sections that they make. */
static void hooks_are_paid_for(void **state)
{
    (void)state;
    double seconds[2];
    uint64_t calls = 0;
    for (unsigned with = 0; with < 2; with++) {
        struct fixture *fixture = fixture_new();
        struct tb *tb = two_level_trace(SW_CLOCK_MONOTONIC, 10);
        if (with) {
            const sw_row row = {.table = SW_TABLE_MODULE, .key = {1}};
            tb_row(tb, &row);
        }
        write_trace(fixture, tb);
        const sw_summary *summary = summarise(fixture);
        const sw_summary_overhead *overhead = sw_summary_get_overhead(summary);
        seconds[with] = overhead->seconds;
        calls = overhead->calls;
        assert_int_equal(strstr(overhead->how, "hooks in the framework") != NULL, with);
        assert_true(overhead->low < overhead->percent);
        assert_true(overhead->percent < overhead->high);
        fixture_free(fixture);
    }
    /* At least those of modules, and no more than if all were hooks, in steps. */
    assert_true(seconds[1] > seconds[0] + 1e-6);
    assert_true(seconds[1] < seconds[0] + (double)calls * 30e-6);
}

/* A process that is ended while it begins leaves a file with nothing in it. Only where the program ended well is that all right. */
static void a_file_without_anything(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 2; code++) {
        struct fixture *fixture = fixture_new();
        char path[512];
        write_trace(fixture, two_level_trace(SW_CLOCK_MONOTONIC, 10));
        snprintf(path, sizeof path, "%s/worker-7.stepwatch", fixture->folder);
        tb_write(path, "", 0);
        write_run_json(
            fixture, code ? "{\"schema\": \"stepwatch.run/1\", \"exit\": {\"code\": 1}}"
                          : "{\"schema\": \"stepwatch.run/1\", \"exit\": {\"code\": 0}}");
        const sw_summary *summary = summarise(fixture);
        assert_int_equal(sw_summary_get_run(summary)->exit_code, code);
        assert_int_equal(sw_summary_get_run(summary)->complete, code == 0);
        fixture_free(fixture);
    }
}

static void the_supervisor_knows_more(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    write_trace(fixture, steps_trace());
    write_run_json(
        fixture,
        "{\"schema\": \"stepwatch.run/1\", \"id\": \"the id\", \"name\": \"\\u00e9t\","
        " \"command\": [\"./train me\", \"--lr=3\", \"it's\"], \"unknown\": [{}, 1],"
        " \"started_unix_s\": 1700000000.25, \"started_monotonic_ns\": 900000000,"
        " \"duration_s\": 3.5, \"exit\": {\"code\": null, \"signal\": 9},"
        " \"host\": null}");
    const sw_summary *summary = summarise(fixture);
    const sw_summary_run *run = sw_summary_get_run(summary);
    assert_true(run->supervised);
    assert_string_equal(run->id, "the id");
    assert_string_equal(run->name, "\xc3\xa9t");
    assert_string_equal(run->command, "'./train me' --lr=3 'it'\\''s'");
    assert_int_equal(run->duration_ns, 3500 * MS);
    assert_int_equal(run->exit_code, -1);
    assert_int_equal(run->exit_signal, 9);
    assert_int_equal(run->started_real_ns, 1700000000250000000u);
    assert_string_equal(sw_summary_get_part(summary, 0)->part, "startup");
    assert_int_equal(sw_summary_get_part(summary, 0)->ns, 200 * MS);
    fixture_free(fixture);
}

static void counters_are_merged(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    for (unsigned i = 0; i < 2; i++) {
        struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
        tb_name(tb, 1, "loss", 2, NONE);
        tb_thread(tb, 0, "main");
        struct tb_lane *lane = tb_lane(tb, 0, 0);
        tb_begin(tb, lane, 1, START);
        tb_end(tb, lane, START + 1, 0);
        struct sw__fmt_node *node = lane->nodes[1];
        const double values[2][4] = {{6, 1, 3, 3},
                                     {10, -1, 6, 6}}; /* sum, min, max, last */
        node->kind = SW__NODE_COUNTER;
        node->calls = 3;
        memcpy(&node->inclusive, &values[i][0], 8);
        memcpy(&node->minimum, &values[i][1], 8);
        memcpy(&node->maximum, &values[i][2], 8);
        memcpy(&node->last, &values[i][3], 8);
        write_trace(fixture, tb);
    }
    const sw_summary *summary = summarise(fixture);
    assert_int_equal(sw_summary_counter_count(summary), 1);
    const sw_summary_counter *counter = sw_summary_get_counter(summary, 0);
    assert_string_equal(counter->name, "loss");
    assert_int_equal(counter->count, 6);
    assert_true(counter->min == -1 && counter->max == 6);
    assert_true(fabs(counter->mean - 16.0 / 6) < 1e-12);
    assert_true(isnan(counter->last));
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_are_merged),
        cmocka_unit_test(recursion_is_counted_once),
        cmocka_unit_test(families_are_folded_from_nine_on),
        cmocka_unit_test(threads_and_domains_stay_apart),
        cmocka_unit_test(open_sections_are_shown),
        cmocka_unit_test(steps_are_counted_and_explained),
        cmocka_unit_test(epochs_and_timeline),
        cmocka_unit_test(given_up_step_records_leave_totals),
        cmocka_unit_test(the_schedule_says_what_is_warm_up),
        cmocka_unit_test(an_empty_trace_has_a_summary),
        cmocka_unit_test(losses_become_notes),
        cmocka_unit_test(operators_are_paid_for),
        cmocka_unit_test(hooks_are_paid_for),
        cmocka_unit_test(a_file_without_anything),
        cmocka_unit_test(the_supervisor_knows_more),
        cmocka_unit_test(counters_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
