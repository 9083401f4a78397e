/* Traces for viewers: valid whatever the names, slices that nest whatever the spans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "base/memory.h"
#include "export/trace_export.h"
#include "trace_document.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),     cmocka_unit_test(test_times),
        cmocka_unit_test(test_odd_names),      cmocka_unit_test(test_no_nan),
        cmocka_unit_test(test_anything_nests), cmocka_unit_test(test_many_siblings),
        cmocka_unit_test(test_bounded_memory), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_absurd_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
