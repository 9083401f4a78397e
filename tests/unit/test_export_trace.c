/* Traces for viewers: valid whatever the names, slices that nest whatever the spans, windows, ranks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "base/memory.h"
#include "export/trace_export.h"
#include "run_fixture.h"

#define START 1000000000u /* the builder's first tick; here a tick is a nanosecond */

/* An event as a viewer would have it. */
struct shown {
    char ph, name[256], category[64];
    uint64_t pid, tid;
    double ts, dur, value;
    bool has_dur;
};

struct document {
    char *text;
    size_t length;
    struct shown *events;
    size_t count;
    char missing[2048]; /* sentences, one after the other */
};

static void scan_event(struct sw__scan *json, struct shown *out)
{
    char key[64], text[256];
    bool first = true;
    double number;
    *out = (struct shown){.value = -1};
    assert_true(sw__scan_enter(json, SW__SCAN_OBJECT));
    while (sw__scan_member(json, &first, key, sizeof key)) {
        const enum sw__scan_kind kind = sw__scan_peek(json);
        if (kind == SW__SCAN_STRING) {
            assert_true(sw__scan_string(json, text, sizeof text) >= 0);
            if (strcmp(key, "ph") == 0) {
                out->ph = text[0];
            } else if (strcmp(key, "name") == 0) {
                strcpy(out->name, text);
            } else if (strcmp(key, "cat") == 0) {
                snprintf(out->category, sizeof out->category, "%.60s", text);
            }
        } else if (kind == SW__SCAN_NUMBER) {
            assert_true(sw__scan_number(json, &number));
            if (strcmp(key, "pid") == 0) {
                out->pid = (uint64_t)number;
            } else if (strcmp(key, "tid") == 0) {
                out->tid = (uint64_t)number;
            } else if (strcmp(key, "ts") == 0) {
                out->ts = number;
            } else if (strcmp(key, "dur") == 0) {
                out->dur = number;
                out->has_dur = true;
            }
        } else {
            assert_true(sw__scan_skip(json));
        }
    }
    assert_true(out->name[0] != '\0');
}

static void scan_about(struct sw__scan *json, struct document *out)
{
    char key[64], text[512];
    bool first = true, first_text = true;
    assert_true(sw__scan_enter(json, SW__SCAN_OBJECT));
    while (sw__scan_member(json, &first, key, sizeof key)) {
        if (strcmp(key, "missing") != 0) {
            assert_true(sw__scan_skip(json));
            continue;
        }
        assert_true(sw__scan_enter(json, SW__SCAN_ARRAY));
        while (sw__scan_element(json, &first_text)) {
            assert_true(sw__scan_string(json, text, sizeof text) > 0);
            strncat(out->missing, text, sizeof out->missing - strlen(out->missing) - 1);
        }
    }
}

/* Writes, reads back and checks what holds of every trace. */
static struct document export_it(const sw_run *run, const sw_trace_options *options)
{
    struct document out = {0};
    sw_error_info info = {0};
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_trace(writer, run, options, &info), 0);
    const char *text = sw_writer_text(writer, &out.length);
    out.text = strdup(text);
    assert_int_equal(strlen(out.text), out.length);
    assert_int_equal(sw_writer_close(writer, NULL), 0);

    struct sw__scan json = {.at = out.text, .end = out.text + out.length};
    char key[64];
    bool first = true;
    size_t room = 0;
    assert_true(sw__scan_enter(&json, SW__SCAN_OBJECT));
    while (sw__scan_member(&json, &first, key, sizeof key)) {
        if (strcmp(key, "stepwatch") == 0) {
            scan_about(&json, &out);
        } else if (strcmp(key, "traceEvents") == 0) {
            bool first_event = true;
            assert_true(sw__scan_enter(&json, SW__SCAN_ARRAY));
            while (sw__scan_element(&json, &first_event)) {
                if (out.count == room) {
                    room = room ? room * 2 : 256;
                    out.events = realloc(out.events, room * sizeof *out.events);
                }
                scan_event(&json, &out.events[out.count++]);
            }
        } else {
            assert_true(sw__scan_skip(&json));
        }
    }
    assert_false(json.bad);
    return out;
}

static void document_free(struct document *it)
{
    free(it->text);
    free(it->events);
}

static int by_track_and_time(const void *left, const void *right)
{
    const struct shown *a = left, *b = right;
    if (a->pid != b->pid || a->tid != b->tid) {
        return a->pid != b->pid ? (a->pid < b->pid ? -1 : 1) : a->tid < b->tid ? -1 : 1;
    }
    if (a->ts != b->ts) {
        return a->ts < b->ts ? -1 : 1;
    }
    return a->dur > b->dur ? -1 : a->dur < b->dur;
}

/* Every slice lies within the one around it or beside it. Sorts the events. How many slices there are. */
static size_t check_nesting(struct document *it)
{
    uint64_t *stack = calloc(it->count + 1, sizeof *stack);
    size_t depth = 0, slices = 0;
    const struct shown *last = NULL;
    qsort(it->events, it->count, sizeof *it->events, by_track_and_time);
    for (size_t i = 0; i < it->count; i++) {
        const struct shown *event = &it->events[i];
        if (event->ph != 'X') {
            continue;
        }
        assert_true(event->has_dur && event->dur >= 0);
        if (!last || last->pid != event->pid || last->tid != event->tid) {
            depth = 0;
        }
        last = event;
        const uint64_t begin = (uint64_t)(event->ts * 1000 + 0.5);
        const uint64_t end = begin + (uint64_t)(event->dur * 1000 + 0.5);
        while (depth && stack[depth - 1] <= begin) {
            depth--;
        }
        if (depth && end > stack[depth - 1]) {
            fail_msg("%s cuts into its neighbour", event->name);
        }
        stack[depth++] = end;
        slices++;
    }
    free(stack);
    return slices;
}

static const struct shown *find(const struct document *it, const char *name)
{
    for (size_t i = 0; i < it->count; i++) {
        if (strcmp(it->events[i].name, name) == 0) {
            return &it->events[i];
        }
    }
    return NULL;
}

static size_t count_of(const struct document *it, char ph, const char *name)
{
    size_t count = 0;
    for (size_t i = 0; i < it->count; i++) {
        count +=
            it->events[i].ph == ph && (!name || strcmp(it->events[i].name, name) == 0);
    }
    return count;
}

static void open_run(struct fixture *fixture)
{
    assert_int_equal(sw_run_open(&fixture->run, fixture->folder, NULL), 0);
}

static struct tb *plain_trace(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->super.pid = 4242;
    tb_thread(tb, 0, "main");
    tb_name(tb, 1, "outer", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_name(tb, 2, "forward", SW__NAME_SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 3, "data", SW__NAME_SECTION, SW_PHASE_DATA_WAIT);
    tb_name(tb, 4, "loss", SW__NAME_COUNTER, SW_PHASE_INHERIT);
    return tb;
}

static const sw_trace_options kineto = {.format = SW_TRACE_KINETO};

static void test_every_kind(void **state)
{
    (void)state;
    struct tb *(*const make[])(void) = {tb_example, tb_sampled, tb_trained};
    for (size_t i = 0; i < 3; i++) {
        struct fixture *fixture = fixture_new();
        write_trace(fixture, make[i]());
        open_run(fixture);
        for (int form = 0; form < 2; form++) {
            struct document it = export_it(fixture->run, form ? &kineto : NULL);
            assert_int_equal(count_of(&it, 'X', "ProfilerStep#0"), 1);
            assert_int_equal(count_of(&it, 'X', "ProfilerStep#19"), 1);
            assert_string_equal(find(&it, "ProfilerStep#7")->category,
                                form ? "user_annotation" : "step");
            assert_true(check_nesting(&it) > 100);
            assert_non_null(strstr(it.missing, "events were given up for newer ones"));
            assert_non_null(
                strstr(it.text, form ? "\"schemaVersion\":1" : "\"step\":19"));
            document_free(&it);
        }
        fixture_free(fixture);
    }
}

/* Looks of the sampler are moments of the thread that was looked at, where they are asked for. */
static void test_samples(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    enum { DEPTH = 100 };
    union {
        sw_record_sample sample;
        sw_record_frame frame[4 * (1 + DEPTH / 4)];
    } record = {0};
    tb_name(tb, 10, "train.py", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 11, "Net.fit", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 12, "main", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_row(tb, &(sw_row){.table = SW_TABLE_CODE, .index = 0, .key = {10, 11, 5, 11}});
    tb_row(tb, &(sw_row){.table = SW_TABLE_CODE, .index = 1, .key = {10, 0, 1, 12}});
    tb_thread(tb, 1, "sampler");
    record.sample = (sw_record_sample){
        .head = {.kind = SW_RECORD_SAMPLE, .units = 1 + DEPTH / 4, .ticks = START + 1000},
        .state = 'R',
        .depth = DEPTH};
    record.frame[4] = (sw_record_frame){.code = 0, .line = 7};
    for (unsigned i = 1; i < DEPTH; i++) {
        record.frame[4 + i] = (sw_record_frame){.code = i < 50 ? 1 : 77};
    }
    tb_record(tb, 1, &record);
    call(tb, tb_lane(tb, 0, 0), 1, START + 900, 1000);
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_int_equal(count_of(&it, 'i', NULL), 0);
    document_free(&it);
    it = export_it(fixture->run, &(sw_trace_options){.samples = true});
    assert_int_equal(count_of(&it, 'i', "Net.fit"), 1);
    assert_int_equal(find(&it, "Net.fit")->tid, find(&it, "outer")->tid);
    assert_non_null(strstr(it.text, "\"file\":\"train.py\",\"line\":7,\"running\":true,"
                                    "\"stack\":[\"(more)\",\"(unnamed)\""));
    assert_non_null(strstr(it.text, "\"main\",\"Net.fit\"]"));
    document_free(&it);
    fixture_free(fixture);
}

/* Times are exact to the nanosecond. */
static void test_times(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, START + 1234567);
    tb_begin(tb, lane, 2, START + 1234568);
    tb_end(tb, lane, START + 1234569, SW_RECORD_ERROR);
    tb_end(tb, lane, START + 987654321, 0);
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_non_null(strstr(it.text, "\"name\":\"outer\",\"pid\":4242,\"tid\":"));
    assert_non_null(strstr(it.text, "\"ts\":1234.567,\"dur\":986419.754}"));
    assert_non_null(
        strstr(it.text, "\"ts\":1234.568,\"dur\":0.001,\"args\":{\"error\":true}}"));
    assert_string_equal(find(&it, "forward")->category, "section,forward");
    document_free(&it);
    fixture_free(fixture);
}

static const char *const nasty[] = {
    "quote\"\\",    "two\nlines", "\x1b[31mred",  "\xff\xfe",
    "tab\there",    "</script>",  "\xed\xa0\x80", "",
    "\xe5\xb1\xa4", "nul",        "{\"a\":[1}",   "\xf4\x90\x80\x80",
};
#define NASTY (sizeof nasty / sizeof nasty[0])

static void test_odd_names(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    char longest[960]; /* more than what is shown with something around it */
    memset(longest, 'n', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (uint32_t i = 0; i <= NASTY; i++) {
        const char *name = i < NASTY ? nasty[i] : longest;
        tb_name(tb, 10 + 2 * i, name, SW__NAME_SECTION, SW_PHASE_INHERIT);
        tb_name(tb, 11 + 2 * i, name, SW__NAME_SECTION, SW_PHASE_DATA_WAIT);
        call(tb, lane, 10 + 2 * i, START + 1000 * (i + 1), 10);
        call(tb, lane, 11 + 2 * i, START + 1000 * (i + 1) + 20, 10);
        const sw_record_mark mark = {.head = {.kind = SW_RECORD_MARK,
                                              .units = 1,
                                              .id = 10 + 2 * i,
                                              .ticks = START + 1000 * (i + 1) + 40}};
        tb_record(tb, 0, &mark);
    }
    call(tb, lane, 9999, START + 900000, 10); /* a name that nobody defined */
    tb_thread(tb, 1, "\"\\\xff\n");
    call(tb, tb_lane(tb, 1, 0), 1, START + 1000, 10);
    tb_fact(tb, "rank", "not a number\"");
    write_trace(fixture, tb);
    open_run(fixture);
    for (int form = 0; form < 2; form++) {
        struct document it = export_it(fixture->run, form ? &kineto : NULL);
        assert_int_equal(check_nesting(&it), 2 * (NASTY + 1) + 2);
        assert_int_equal(count_of(&it, 'i', NULL), NASTY + 1);
        assert_non_null(find(&it, "(unnamed)"));
        assert_non_null(find(&it, "quote\"\\"));
        assert_non_null(
            find(&it, "\xef\xbf\xbd\xef\xbf\xbd")); /* two bytes of no UTF-8 */
        document_free(&it);
    }
    fixture_free(fixture);
}

static void test_no_nan(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    const double values[] = {0.5, NAN, INFINITY, -INFINITY, -0.0, 1e308};
    for (unsigned i = 0; i < 6; i++) {
        const sw_record_counter counter = {.head = {.kind = SW_RECORD_COUNTER,
                                                    .units = 1,
                                                    .id = 4,
                                                    .ticks = START + 1000 * i},
                                           .value = values[i]};
        tb_record(tb, 0, &counter);
    }
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_int_equal(count_of(&it, 'C', "loss"), 3);
    assert_null(strstr(it.text, "nan"));
    assert_null(strstr(it.text, "inf"));
    assert_null(strstr(it.text, "null"));
    document_free(&it);
    fixture_free(fixture);
}

/* Moments out of this world: what comes of them is still a document. */
static void test_absurd_moments(void **state)
{
    (void)state;
    const uint64_t moments[] = {0,
                                1,
                                START,
                                START + 10,
                                (uint64_t)INT64_MAX - 7,
                                (uint64_t)INT64_MAX + START,
                                UINT64_MAX - 3,
                                UINT64_MAX};
    const size_t count = sizeof moments / sizeof moments[0];
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    for (size_t begin = 0; begin < count; begin++) {
        for (size_t end = begin; end < count; end++) {
            const sw_record_span span = {.head = {.kind = SW_RECORD_SPAN,
                                                  .units = 1,
                                                  .flags = SW_RECORD_INTERVAL,
                                                  .id = 1,
                                                  .ticks = moments[begin]},
                                         .end = moments[end]};
            tb_record(tb, 0, &span);
        }
    }
    write_trace(fixture, tb);
    open_run(fixture);
    for (int form = 0; form < 2; form++) {
        struct document it = export_it(fixture->run, form ? &kineto : NULL);
        assert_int_equal(count_of(&it, 'X', "outer") + count_of(&it, 'b', "outer"),
                         count * (count + 1) / 2);
        for (size_t i = 0; i < it.count; i++) {
            assert_true(it.events[i].dur >= 0);
        }
        document_free(&it);
    }
    fixture_free(fixture);
}

/* --- Nesting --- */

static sw_record_span span_of(uint32_t id, uint64_t begin, uint64_t end, unsigned depth)
{
    return (sw_record_span){.head = {.kind = SW_RECORD_SPAN,
                                     .units = 1,
                                     .flags = SW_RECORD_INTERVAL,
                                     .id = id,
                                     .ticks = begin},
                            .end = end,
                            .depth = (uint16_t)depth};
}

static int by_end(const void *left, const void *right)
{
    const sw_record_span *a = left, *b = right;
    return a->end < b->end ? -1 : a->end > b->end;
}

/* Spans that lie across each other anyhow, as those of coroutines and of several domains do. */
static void test_anything_nests(void **state)
{
    (void)state;
    enum { SPANS = 20000 };
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct fixture *fixture = fixture_new();
        struct tb *tb = plain_trace();
        sw_record_span *spans = calloc(SPANS, sizeof *spans);
        uint64_t random = seed;
        const uint64_t longest = seed % 2 ? 50 : 5000; /* few at once, and far too many */
        for (size_t i = 0; i < SPANS; i++) {
            const uint64_t begin = START + 1000 + tb_random(&random) % 1000000;
            spans[i] = span_of(1 + i % 2, begin, begin + tb_random(&random) % longest, 0);
        }
        qsort(spans, SPANS, sizeof *spans, by_end);
        for (size_t i = 0; i < SPANS; i++) {
            tb_record(tb, 0, &spans[i]);
        }
        write_trace(fixture, tb);
        open_run(fixture);
        struct document it = export_it(fixture->run, NULL);
        const size_t beside = count_of(&it, 'b', NULL);
        assert_int_equal(beside, count_of(&it, 'e', NULL));
        assert_int_equal(check_nesting(&it) + beside, SPANS); /* nothing is lost */
        assert_true(longest > 100 ? beside > 0 : beside == 0);
        document_free(&it);
        free(spans);
        fixture_free(fixture);
    }
}

/* More siblings than are remembered, and then what was around all of them. */
static void test_many_siblings(void **state)
{
    (void)state;
    enum { CALLS = 3 * SW__TRACK_FITS };
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START + 1000;
    for (unsigned round = 0; round < 2; round++) {
        tb_begin(tb, lane, 1, at++);
        for (unsigned i = 0; i < CALLS; i++, at += 10) {
            call(tb, lane, 2, at, 5);
        }
        tb_end(tb, lane, at++, 0);
    }
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_int_equal(check_nesting(&it), 2 * CALLS + 2);
    /* They are still around them, and not on a track of their own. */
    assert_int_equal(find(&it, "outer")->tid, find(&it, "forward")->tid);
    assert_null(strstr(it.text, "(overlapping)"));
    document_free(&it);
    fixture_free(fixture);
}

static int throw_away(void *arg, const char *bytes, size_t length)
{
    (void)bytes;
    *(uint64_t *)arg += length;
    return 0;
}

/* Memory does not grow with the events. */
static void test_bounded_memory(void **state)
{
    (void)state;
    uint64_t taken[2];
    for (unsigned round = 0; round < 2; round++) {
        struct fixture *fixture = fixture_new();
        struct tb *tb = plain_trace();
        struct tb_lane *lane = tb_lane(tb, 0, 0);
        const unsigned calls = round ? 200000 : 2000;
        uint64_t written = 0;
        tb_begin(tb, lane, 1, START + 1);
        for (unsigned i = 0; i < calls; i++) {
            call(tb, lane, 2, START + 100 * (i + 1), 50);
        }
        tb_end(tb, lane, START + 100 * (calls + 2), 0);
        write_trace(fixture, tb);
        open_run(fixture);
        const uint64_t before = sw__alloc_count();
        sw_writer *writer = sw_writer_to_callback(throw_away, &written);
        assert_int_equal(sw_export_trace(writer, fixture->run, NULL, NULL), 0);
        assert_int_equal(sw_writer_close(writer, NULL), 0);
        taken[round] = sw__alloc_count() - before;
        assert_true(written > 80 * calls);
        fixture_free(fixture);
    }
    assert_true(taken[1] <= taken[0] + 12); /* the fits have doubled a few times */
}

/* --- Steps --- */

static struct fixture *stepped(void)
{
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t phases[SW_PHASE_SLOTS] = {[SW_PHASE_OTHER] = 600, [SW_PHASE_FORWARD] = 400};
    tb_begin(tb, lane, 1, START + 10); /* around all steps */
    for (unsigned i = 0; i < 100; i++) {
        const uint64_t at = START + 1000 * (i + 1);
        call(tb, lane, 3, at, 100);
        call(tb, lane, 2, at + 200, 400);
        step(tb, lane, at, phases, 0, 0);
    }
    tb_end(tb, lane, START + 200000, 0);
    write_trace(fixture, tb);
    open_run(fixture);
    return fixture;
}

static void test_some_steps(void **state)
{
    (void)state;
    struct fixture *fixture = stepped();
    sw_trace_options options = {.some_steps = true, .first_step = 40, .last_step = 42};
    for (int form = 0; form < 2; form++) {
        options.format = form ? SW_TRACE_KINETO : SW_TRACE_CHROME;
        struct document it = export_it(fixture->run, &options);
        assert_int_equal(check_nesting(&it), 9);
        assert_int_equal(count_of(&it, 'X', "forward"), 3);
        assert_int_equal(
            count_of(&it, 'X', form ? "enumerate(DataLoader)#data.__next__" : "data"), 3);
        assert_non_null(find(&it, "ProfilerStep#40"));
        assert_non_null(find(&it, "ProfilerStep#42"));
        assert_null(find(&it, "outer"));
        document_free(&it);
    }
    /* One that ends beyond the last step is what there is of it. */
    options.first_step = 98;
    options.last_step = UINT64_MAX;
    struct document it = export_it(fixture->run, &options);
    assert_int_equal(check_nesting(&it), 6);
    document_free(&it);
    fixture_free(fixture);
}

static void test_no_such_steps(void **state)
{
    (void)state;
    struct fixture *fixture = stepped();
    const sw_trace_options options = {
        .some_steps = true, .first_step = 100, .last_step = 200};
    sw_error_info info = {0};
    size_t length;
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_trace(writer, fixture->run, &options, &info),
                     SW_ENOTFOUND);
    assert_non_null(strstr(info.message, "no step 100"));
    assert_non_null(strstr(info.message, "0 to 99"));
    sw_writer_text(writer, &length);
    assert_int_equal(length, 0);
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    fixture_free(fixture);

    fixture = fixture_new(); /* nothing at all */
    write_trace(fixture, plain_trace());
    open_run(fixture);
    writer = sw_writer_to_memory();
    assert_int_equal(sw_export_trace(writer, fixture->run, NULL, &info), SW_ENOTFOUND);
    assert_non_null(strstr(info.message, "no single events"));
    assert_int_equal(sw_export_trace(writer, fixture->run, &options, &info),
                     SW_ENOTFOUND);
    assert_non_null(strstr(info.message, "holds no steps"));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    fixture_free(fixture);
}

/* A window of time, without steps. */
static void test_window(void **state)
{
    (void)state;
    struct fixture *fixture = stepped();
    const sw_trace_info *info = sw_trace_get_info(sw_run_trace(fixture->run, 0));
    const sw_trace_options options = {.begin_ns = info->start_ns + 10000,
                                      .end_ns = info->start_ns + 20000};
    struct document it = export_it(fixture->run, &options);
    assert_int_equal(count_of(&it, 'X', NULL), 30);
    assert_non_null(find(&it, "ProfilerStep#9"));
    assert_null(find(&it, "ProfilerStep#8"));
    document_free(&it);
    fixture_free(fixture);
}

/* What a killed program had open is there, and said to be unfinished. */
static void test_unfinished(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_begin(tb, lane, 1, START + 1000);
    call(tb, lane, 2, START + 1100, 50);
    tb_begin(tb, lane, 2, START + 2000);
    lane->file->step_open = 1 + 7;
    lane->file->step_begin = START + 1500;
    tb->super.state = SW__STATE_FOLDED;
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_int_equal(check_nesting(&it), 4);
    assert_int_equal(count_of(&it, 'X', "forward"), 2);
    assert_int_equal(count_of(&it, 'X', "ProfilerStep#7"), 1);
    assert_non_null(strstr(it.missing, "3 sections and steps had not ended"));
    assert_non_null(strstr(it.text, "\"unfinished\":true"));
    document_free(&it);
    fixture_free(fixture);
}

/* --- Processes --- */

static void add_rank(struct fixture *fixture, const char *rank, uint32_t pid,
                     const char *host, bool steps)
{
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t phases[SW_PHASE_SLOTS] = {[SW_PHASE_OTHER] = 1000};
    tb->super.pid = pid;
    if (rank) {
        tb_fact(tb, "rank", rank);
        tb_fact(tb, "world_size", "2");
    }
    tb_fact(tb, "host", host);
    for (unsigned i = 0; i < 3; i++) {
        call(tb, lane, 2, START + 1000 * (i + 1), 400);
        if (steps) {
            step(tb, lane, START + 1000 * (i + 1), phases, 0, 0);
        }
    }
    write_trace(fixture, tb);
}

static void test_ranks(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    add_rank(fixture, NULL, 100, "node/a b", false); /* the launcher */
    add_rank(fixture, "0", 101, "node/a b", true);
    add_rank(fixture, "0", 102, "node/a b", false); /* a worker of its loader */
    add_rank(fixture, "1", 101, "node-b", true);
    open_run(fixture);
    sw_trace_part parts[4];
    assert_int_equal(sw_export_trace_parts(fixture->run, NULL, 0), 2);
    assert_int_equal(sw_export_trace_parts(fixture->run, parts, 4), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(parts[i].rank, i);
        assert_int_equal(parts[i].world_size, 2);
        assert_int_equal(parts[i].pid, 101);
    }
    sw_trace_options options = {.format = SW_TRACE_KINETO, .part = 1};
    char name[SW_TRACE_FILE_NAME];
    assert_int_equal(sw_export_trace_file_name(name, fixture->run, &options, NULL), 0);
    assert_ptr_equal(strstr(name, "node-a-b_101."), name);
    assert_non_null(strstr(name, ".pt.trace.json"));
    struct document it = export_it(fixture->run, &options);
    assert_int_equal(check_nesting(&it), 3 + 6 + 3);
    assert_non_null(
        strstr(it.text, "\"distributedInfo\":{\"rank\": 0,\"world_size\": 2}"));
    document_free(&it);
    options.part = 2;
    it = export_it(fixture->run, &options);
    assert_int_equal(check_nesting(&it), 6);
    assert_non_null(strstr(it.text, "\"rank\": 1"));
    document_free(&it);
    options.part = 3;
    sw_error_info info = {0};
    assert_int_equal(sw_export_trace_file_name(name, fixture->run, &options, &info),
                     SW_EINVAL);

    /* All in one: processes of two machines with one number are two. */
    it = export_it(fixture->run, NULL);
    assert_int_equal(check_nesting(&it), 3 + 6 + 3 + 6);
    assert_int_equal(count_of(&it, 'M', "process_name"), 4);
    for (size_t i = 0; i < it.count; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_false(it.events[i].ph == 'M' && it.events[j].ph == 'M' &&
                         strcmp(it.events[i].name, "process_name") == 0 &&
                         strcmp(it.events[j].name, "process_name") == 0 &&
                         it.events[i].pid == it.events[j].pid);
        }
    }
    document_free(&it);
    fixture_free(fixture);
}

/* Calls of modules know their callers, though these end later. */
static void test_modules(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    tb_name(tb, 5, "Net", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 6, "Net.conv", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 7, "Net", SW__NAME_SECTION, SW_PHASE_FORWARD);
    tb_name(tb, 8, "Net.conv", SW__NAME_SECTION, SW_PHASE_INHERIT);
    tb_row(tb, &(sw_row){.table = SW_TABLE_MODULE, .index = 0, .key = {5}});
    tb_row(tb, &(sw_row){.table = SW_TABLE_MODULE, .index = 1, .key = {6}});
    tb_begin(tb, lane, 7, START + 1000);
    tb_begin(tb, lane, 1, START + 1100); /* no module */
    call(tb, lane, 8, START + 1200, 10);
    tb_end(tb, lane, START + 1300, 0);
    tb_end(tb, lane, START + 1400, 0);
    call(tb, lane, 7, START + 2000, 100);
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, &kineto);
    const char *conv = strstr(it.text, "nn.Module: Net.conv");
    const char *net = strstr(it.text, "\"name\":\"nn.Module: Net\"");
    assert_non_null(conv);
    assert_non_null(net);
    unsigned own, parent, outer;
    assert_int_equal(sscanf(strstr(conv, "\"Python id\""),
                            "\"Python id\":%u,\"Python parent id\":%u", &own, &parent),
                     2);
    assert_int_equal(sscanf(strstr(net, "\"Python id\""), "\"Python id\":%u", &outer), 1);
    assert_int_equal(parent, outer);
    assert_int_not_equal(own, outer);
    assert_non_null(strstr(net, "\"Python parent id\":null"));
    assert_int_equal(count_of(&it, 'X', "nn.Module: Net"), 2);
    document_free(&it);
    fixture_free(fixture);
}

/* --- what a framework's profiler saw --- */

static sw_record_operator operator_of(uint32_t id, uint64_t begin, uint64_t end,
                                      unsigned flags)
{
    return (sw_record_operator){
        .span = {.head = {.kind = SW_RECORD_SPAN,
                          .units = 2,
                          .flags =
                              (uint16_t)(SW_RECORD_INTERVAL | SW_SPAN_OPERATOR | flags),
                          .id = id,
                          .ticks = START + begin},
                 .end = START + end},
        .sequence = UINT64_MAX};
}

static sw_record_gpu work_of(uint32_t id, uint64_t begin, uint64_t end,
                             uint32_t correlation)
{
    return (sw_record_gpu){.head = {.kind = SW_RECORD_GPU,
                                    .units = 2,
                                    .flags = SW_RECORD_INTERVAL,
                                    .id = id,
                                    .ticks = START + begin},
                           .end = START + end,
                           .stream = 7,
                           .activity = 1,
                           .correlation = correlation,
                           .external = 40,
                           .bytes = 3000};
}

static size_t arrows(const struct document *it, const char *name)
{
    const size_t from = count_of(it, 's', name);
    assert_int_equal(from, count_of(it, 'f', name));
    return from;
}

/* Every arrow begins where a slice begins on its track, and ends where another does. */
static void check_arrows(const struct document *it)
{
    for (size_t i = 0; i < it->count; i++) {
        const struct shown *arrow = &it->events[i];
        bool bound = arrow->ph != 's' && arrow->ph != 'f';
        for (size_t j = 0; j < it->count && !bound; j++) {
            const struct shown *slice = &it->events[j];
            bound = slice->ph == 'X' && slice->pid == arrow->pid &&
                    slice->tid == arrow->tid && slice->ts == arrow->ts;
        }
        assert_true(bound);
    }
}

static struct tb *traced_by_framework(void)
{
    struct tb *tb = plain_trace();
    const char *const names[] = {
        "aten::linear", "aten::addmm",  "AddmmBackward0",    "cudaLaunchKernel",
        "gemm",         "[[4, 8], []]", "[\"float\", \"\"]", "Optimizer.step#SGD.step"};
    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        tb_name(tb, 20 + i, names[i], SW__NAME_TEXT, SW_PHASE_INHERIT);
    }
    tb_thread(tb, 1, "operators of thread 5000");
    tb_thread(tb, 2, "operators of thread 78"); /* of a thread that recorded nothing */
    tb_thread(tb, 3, "device 0 stream 7");
    call(tb, tb_lane(tb, 0, 0), 2, START + 1000, 8000);
    return tb;
}

/* Operators lie on their thread, within its sections; arrows lead from forward to backward and from a launch to its work. */
static void test_operators(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = traced_by_framework();
    sw_record_operator inner = operator_of(21, 1200, 1800, 0);
    sw_record_operator launch = operator_of(23, 1500, 1600, SW_SPAN_RUNTIME);
    sw_record_operator outer = operator_of(20, 1100, 1900, 0);
    sw_record_operator back = operator_of(22, 3000, 3500, SW_SPAN_BACKWARD);
    sw_record_operator wait = operator_of(23, 4000, 7000, SW_SPAN_RUNTIME);
    inner.sequence = outer.sequence = back.sequence = 9;
    inner.shapes = 25;
    inner.types = 26;
    inner.external = 40;
    back.forward = 5000;
    launch.correlation = 5;
    launch.external = 40;
    wait.correlation = 6;
    tb_record(tb, 1, &launch);
    tb_record(tb, 1, &inner);
    tb_record(tb, 1, &outer);
    tb_record(tb, 1, &wait);
    tb_record(tb, 2, &back);
    tb_record(tb, 3, &(sw_record_gpu[]){work_of(24, 2000, 2500, 5)});
    tb_record(tb, 3, &(sw_record_gpu[]){work_of(24, 2600, 2700, 5)});
    tb_record(tb, 3,
              &(sw_record_gpu[]){work_of(24, 5000, 6000, 6)}); /* before its call ends */
    write_trace(fixture, tb);
    open_run(fixture);
    for (int form = 0; form < 2; form++) {
        struct document it = export_it(fixture->run, form ? &kineto : NULL);
        assert_int_equal(check_nesting(&it), 9);
        assert_int_equal(arrows(&it, "fwdbwd"), 1);
        assert_int_equal(arrows(&it, "ac2g"), 3);
        check_arrows(&it);
        /* From the innermost of those with the number. */
        for (size_t i = 0; i < it.count; i++) {
            if (it.events[i].ph == 's' && strcmp(it.events[i].name, "fwdbwd") == 0) {
                assert_true(it.events[i].ts == find(&it, "aten::addmm")->ts);
            }
        }
        assert_int_equal(find(&it, "aten::addmm")->tid, find(&it, "forward")->tid);
        assert_int_equal(find(&it, "AddmmBackward0")->tid, 78);
        assert_non_null(strstr(it.text, "\"Input Dims\":[[4, 8], []],"
                                        "\"Input type\":[\"float\", \"\"]"));
        assert_non_null(strstr(it.text, "\"Sequence number\":9"));
        assert_string_equal(find(&it, "aten::linear")->category,
                            form ? "cpu_op" : "operator");
        if (form) {
            assert_string_equal(find(&it, "cudaLaunchKernel")->category, "cuda_runtime");
            assert_non_null(strstr(it.text, "\"External id\":40,\"correlation\":5"));
            assert_int_equal(find(&it, "gemm")->pid, 0);
            assert_int_equal(find(&it, "gemm")->tid, 7);
            assert_non_null(strstr(it.text, "\"memory bandwidth (GB/s)\":6"));
        }
        document_free(&it);
    }
    fixture_free(fixture);
}

/* Numbers and texts of a damaged file. */
static void test_absurd_operators(void **state)
{
    (void)state;
    struct fixture *fixture = fixture_new();
    struct tb *tb = traced_by_framework();
    tb_name(tb, 40, "[1, \xff]", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 41, "[1, ", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_thread(tb, 4, "operators of thread 078");
    tb_thread(tb, 5, "operators of thread 99999999999999999999");
    tb_thread(tb, 6, "operators of thread 78"); /* once more */
    tb_thread(tb, 7, "torch memory");
    uint64_t random = 3;
    for (uint64_t i = 1; i < 20000; i++) {
        const unsigned flags = (unsigned)tb_random(&random) & 0xe00;
        const uint64_t begin = i * 10;
        sw_record_operator one =
            operator_of((uint32_t)(20 + i % 5), begin, begin + i % 40, flags);
        one.sequence = tb_random(&random) % 4 ? i % 50 : tb_random(&random);
        one.correlation = (uint32_t)(i % 3);
        one.forward = i % 2 ? 5000 : (uint32_t)tb_random(&random);
        one.shapes = (uint32_t)(38 + i % 5);
        one.types = (uint32_t)(22 + i % 20);
        one.external = tb_random(&random);
        tb_record(tb, (uint32_t[]){1, 2, 4, 5, 6}[i % 5], &one);
        sw_record_gpu work = work_of(24, begin, begin + 5, (uint32_t)(i % 4));
        work.device = (uint32_t)(i % 90);
        work.stream = (uint32_t)(i % 7);
        tb_record(tb, 3, &work);
        tb_record(
            tb, 7,
            &(sw_record_alloc){
                .head = {.kind = SW_RECORD_ALLOC, .units = 2, .ticks = START + begin},
                .bytes = INT64_MIN,
                .total = UINT64_MAX,
                .node = (uint32_t)tb_random(&random),
                .allocator = (uint32_t)(i % 4)});
    }
    write_trace(fixture, tb);
    open_run(fixture);
    for (int form = 0; form < 2; form++) {
        struct document it = export_it(fixture->run, form ? &kineto : NULL);
        const size_t beside = count_of(&it, 'b', NULL);
        assert_int_equal(check_nesting(&it) + beside, 2 * 19999 + 1);
        assert_true(arrows(&it, "ac2g") > 0);
        assert_null(strstr(it.text, "[1, \xff]"));
        document_free(&it);
    }
    fixture_free(fixture);
}

/* More threads than anybody could look at for each of them. */
static void test_many_threads(void **state)
{
    (void)state;
    enum { THREADS = 100000 };
    struct fixture *fixture = fixture_new();
    struct tb *tb = plain_trace();
    for (uint32_t i = 1; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, i % 2 ? "operators of thread %u" : "worker", i);
        tb_thread(tb, i, name)->tid = i % 3 ? i : 5;
    }
    call(tb, tb_lane(tb, 0, 0), 1, START + 1000, 10);
    const sw_record_operator last = operator_of(2, 2000, 3000, 0);
    tb_record(tb, THREADS - 1, &last);
    write_trace(fixture, tb);
    open_run(fixture);
    struct document it = export_it(fixture->run, NULL);
    assert_int_equal(check_nesting(&it), 2);
    document_free(&it);
    fixture_free(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),     cmocka_unit_test(test_absurd_operators),
        cmocka_unit_test(test_many_threads),  cmocka_unit_test(test_every_kind),
        cmocka_unit_test(test_times),         cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_no_nan),        cmocka_unit_test(test_anything_nests),
        cmocka_unit_test(test_many_siblings), cmocka_unit_test(test_bounded_memory),
        cmocka_unit_test(test_some_steps),    cmocka_unit_test(test_no_such_steps),
        cmocka_unit_test(test_window),        cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_ranks),         cmocka_unit_test(test_modules),
        cmocka_unit_test(test_samples),       cmocka_unit_test(test_absurd_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
