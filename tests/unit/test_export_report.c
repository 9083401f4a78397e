/* Reports of composed traces: lines that fit, names that do no harm, JSON that is whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "trace_builder.h"

#define START 1000000000u

struct report {
    char path[64];
    sw_run *run;
    sw_summary *summary;
};

static struct report open_report(struct tb *tb)
{
    struct report report = {.path = "/tmp/test_export_XXXXXX.stepwatch"};
    size_t size;
    int fd = mkstemps(report.path, 10);
    assert_true(fd >= 0);
    close(fd);
    tb_seal(tb);
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(report.path, bytes, size);
    free(bytes);
    tb_free(tb);
    assert_int_equal(sw_run_open(&report.run, report.path, NULL), 0);
    assert_int_equal(sw_summary_create(&report.summary, report.run, NULL), 0);
    return report;
}

static void close_report(struct report *report)
{
    sw_summary_free(report->summary);
    sw_run_free(report->run);
    unlink(report->path);
}

/* The report as text; the caller closes the writer. */
static const char *as_text(const struct report *report, sw_writer **writer,
                           sw_text_options options)
{
    *writer = sw_writer_to_memory();
    sw_export_report_text(*writer, report->summary, NULL, &options);
    return sw_writer_text(*writer, NULL);
}

static void check_lines(const char *text, size_t columns, bool ascii)
{
    while (*text) {
        size_t length = strcspn(text, "\n");
        assert_int_equal(text[length], '\n');
        assert_true(sw_text_columns(text, length) <= columns);
        assert_true(length == 0 || text[length - 1] != ' ');
        for (size_t i = 0; i < length; i++) {
            unsigned char c = (unsigned char)text[i];
            assert_true(c >= 0x20 && c != 0x7f && (!ascii || c < 0x80));
        }
        text += length + 1;
    }
}

static void check_every_width(const struct report *report)
{
    for (size_t columns = SW_TEXT_COLUMNS_MIN; columns <= SW_TEXT_COLUMNS_MAX;
         columns += 7) {
        for (int unicode = 0; unicode < 2; unicode++) {
            sw_writer *writer;
            sw_text_options options = {
                .columns = columns, .unicode = unicode != 0, .top = SW_TEXT_ALL};
            check_lines(as_text(report, &writer, options), columns, !unicode);
            assert_int_equal(sw_writer_close(writer, NULL), 0);
        }
    }
}

static void the_example_fits_every_width(void **state)
{
    (void)state;
    struct report report = open_report(tb_example());
    check_every_width(&report);
    close_report(&report);
}

/* Names that programs might have, and some that they should not. */
static struct tb *hostile_trace(void)
{
    static const char *const names[] = {
        "",
        "\x1b[2J\x1b]0;title\x07",
        "two\nlines\ttab",
        "\xff\xfe\x80 not UTF-8",
        "\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1"
        "\xa4\xe5\xb1\xa4"
        "\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1\xa4\xe5\xb1"
        "\xa4\xe5\xb1\xa4",
        "\xc2\x9b"
        "31m C1",
        "\xe2\x80\xae"
        "right to left",
        "</script>\"\\'",
        "a name so long that no terminal of sixty columns could ever show it in a line "
        "of a table",
        "%s%n%d",
        "e\xcc\x81 combined"};
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    struct sw__fmt_thread *thread = tb_thread(tb, 0, "main");
    memcpy(thread->name, "\x1b[31mthread\n", 12);
    tb_thread(tb, 1, "other");
    strcpy(tb->super.name, "\x1b[1mbold\n");
    tb_fact(tb, "command", "./train \x1b[5m \xff --x\n");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    struct tb_lane *other = tb_lane(tb, 1, 0);
    uint64_t at = START;
    size_t count = sizeof names / sizeof names[0];
    for (size_t i = 0; i < count; i++) {
        tb_name(tb, (uint32_t)(i + 1), names[i], 1, 255);
    }
    for (size_t i = 0; i < count; i++) { /* each below the one before */
        tb_begin(tb, lane, (uint32_t)(i + 1), at += 10);
    }
    for (size_t i = 0; i < count; i++) {
        tb_end(tb, lane, at += 10, i % 2 ? SW_RECORD_ERROR : 0);
    }
    tb_begin(tb, other, 1, at);
    tb_end(tb, other, at + 5, 0);
    return tb;
}

static void hostile_names_do_no_harm(void **state)
{
    (void)state;
    struct report report = open_report(hostile_trace());
    assert_int_equal(
        sw_summary_add_note(
            report.summary,
            "A note with \x1b[0m and a_word_that_is_longer_than_any_line_could_be_"
            "because_it_is_a_path_of_some_kind_that_goes_on_and_on_and_on_and_on."),
        0);
    check_every_width(&report);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_json(writer, report.summary, NULL);
    size_t length;
    const char *text = sw_writer_text(writer, &length);
    struct sw__scan json = {.at = text, .end = text + length};
    assert_true(sw__scan_skip(&json));
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        assert_true(c >= 0x20 || c == '\n');
    }
    assert_null(strstr(text, "</"));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    close_report(&report);
}

static void deep_trees_stay_within_the_page(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "recursive_function", 1, 255);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    for (unsigned i = 0; i < 90; i++) {
        tb_begin(tb, lane, 1, at += 10);
    }
    for (unsigned i = 0; i < 90; i++) {
        tb_end(tb, lane, at += 10, 0);
    }
    struct report report = open_report(tb);
    check_every_width(&report);
    close_report(&report);
}

static void colour_is_only_colour(void **state)
{
    (void)state;
    struct report report = open_report(tb_example());
    sw_writer *plain_writer;
    sw_writer *colour_writer;
    const char *plain =
        as_text(&report, &plain_writer, (sw_text_options){.columns = 100});
    const char *colour = as_text(&report, &colour_writer,
                                 (sw_text_options){.columns = 100, .colour = true});
    assert_non_null(strchr(colour, '\x1b'));
    while (*colour) {
        if (*colour == '\x1b') {
            colour += strcspn(colour, "m") + 1;
            continue;
        }
        assert_int_equal(*colour, *plain);
        colour++;
        plain++;
    }
    assert_int_equal(*plain, '\0');
    sw_writer_close(plain_writer, NULL);
    sw_writer_close(colour_writer, NULL);
    close_report(&report);
}

static void tables_show_the_longest(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_thread(tb, 0, "main");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    for (unsigned i = 1; i <= 50; i++) {
        char name[32];
        snprintf(name, sizeof name, "section %c%c", 'a' + i % 26, 'a' + i / 26);
        tb_name(tb, i, name, 1, 255);
        tb_begin(tb, lane, i, at);
        tb_end(tb, lane, at += 1000u * i, 0);
    }
    struct report report = open_report(tb);
    sw_writer *writer;
    const char *text =
        as_text(&report, &writer, (sw_text_options){.columns = 80, .top = 3});
    assert_non_null(strstr(text, "section yb"));
    assert_non_null(strstr(text, "section wb"));
    assert_null(strstr(text, "section vb"));
    assert_non_null(strstr(text, "47 more sections"));
    sw_writer_close(writer, NULL);
    close_report(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_fits_every_width),
        cmocka_unit_test(hostile_names_do_no_harm),
        cmocka_unit_test(deep_trees_stay_within_the_page),
        cmocka_unit_test(colour_is_only_colour),
        cmocka_unit_test(tables_show_the_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
