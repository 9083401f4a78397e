/* Sampled stacks in the reports and as files of other tools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <stepwatch/export.h>

#include "analyze/json_scan.h"
#include "trace_builder.h"

struct report {
    sw_run *run;
    sw_summary *summary;
};

static struct report open_report(struct tb *tb)
{
    char path[] = "/tmp/test_export_XXXXXX.stepwatch";
    struct report report;
    size_t size;
    int fd = mkstemps(path, 10);
    assert_true(fd >= 0);
    close(fd);
    tb_seal(tb);
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(path, bytes, size);
    free(bytes);
    tb_free(tb);
    assert_int_equal(sw_run_open(&report.run, path, NULL), 0);
    assert_int_equal(sw_summary_create(&report.summary, report.run, NULL), 0);
    unlink(path);
    return report;
}

static void close_report(struct report *report)
{
    sw_summary_free(report->summary);
    sw_run_free(report->run);
}

static void collapsed_is(const sw_stacks *stacks, const sw_stack_options *options,
                         const char *expected)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_collapsed(writer, stacks, options);
    assert_string_equal(sw_writer_text(writer, NULL), expected);
    assert_int_equal(sw_writer_close(writer, NULL), 0);
}

static void test_collapsed(void **state)
{
    (void)state;
    struct report report = open_report(tb_sampled());
    const sw_stacks *stacks = sw_summary_stacks(report.summary);
    collapsed_is(stacks, NULL,
                 "main (train.py);Net.fit (train.py) 40\n"
                 "main (train.py);Net.fit (train.py);matmul 50\n"
                 "main (train.py);Net.fit (train.py);Net.fit (train.py) 10\n"
                 "load (train.py) 5\n");
    collapsed_is(stacks, &(sw_stack_options){.lines = true},
                 "main (train.py:3);Net.fit (train.py:12) 30\n"
                 "main (train.py:3);Net.fit (train.py:12);matmul 50\n"
                 "main (train.py:3);Net.fit (train.py:14) 10\n"
                 "main (train.py:3);Net.fit (train.py:14);Net.fit (train.py:15) 10\n"
                 "load (train.py:57) 5\n");
    collapsed_is(
        stacks, &(sw_stack_options){.threads = true, .sections = true, .waiting = true},
        "thread main;section forward;main (train.py);Net.fit (train.py) 30\n"
        "thread main;section forward;main (train.py);Net.fit (train.py);matmul 50\n"
        "thread main;main (train.py);Net.fit (train.py) 10\n"
        "thread main;main (train.py);Net.fit (train.py);Net.fit (train.py) 10\n"
        "thread loader;load (train.py) 5\n"
        "thread loader;load (train.py);(waiting) 95\n");
    close_report(&report);
}

static const char *const nasty[] = {
    "a;b",       "two\nlines", "\x1b[31mred", "\xff\xfe", "tab\there",
    "</script>", "",           "quote\"\\",   " 12",      "\xe5\xb1\xa4",
};
#define NASTY (sizeof nasty / sizeof nasty[0])

/* One stack of all the nasty names, and one with each alone. */
static sw_stacks *nasty_stacks(void)
{
    sw_stacks *stacks;
    sw_stack_frame frames[NASTY];
    assert_int_equal(sw_stacks_create(&stacks), 0);
    for (size_t i = 0; i < NASTY; i++) {
        frames[i] = (sw_stack_frame){.name = nasty[i], .file = nasty[NASTY - 1 - i]};
        const sw_stack_tag tag = {.thread = nasty[i], .section = nasty[i], .pid = 3};
        assert_int_equal(sw_stacks_add(stacks, &frames[i], 1, &tag,
                                       &(sw_stack_counts){.running = 1, .waiting = 1}),
                         0);
    }
    assert_int_equal(sw_stacks_add(stacks, frames, NASTY, NULL,
                                   &(sw_stack_counts){.running = 7, .waiting = 1}),
                     0);
    return stacks;
}

static void test_collapsed_is_escaped(void **state)
{
    (void)state;
    sw_stacks *stacks;
    const sw_stack_frame frames[] = {{"a;b\n", "x;y.py", 0, 0, false},
                                     {"", "", 0, 0, false}};
    assert_int_equal(sw_stacks_create(&stacks), 0);
    assert_int_equal(
        sw_stacks_add(stacks, frames, 2, NULL, &(sw_stack_counts){.running = 3}), 0);
    collapsed_is(stacks, NULL, "a\\x3bb\\n (x\\x3by.py);(unknown) 3\n");
    sw_stacks_free(stacks);

    stacks = nasty_stacks();
    sw_writer *writer = sw_writer_to_memory();
    sw_export_collapsed(
        writer, stacks,
        &(sw_stack_options){.threads = true, .sections = true, .waiting = true});
    const char *text = sw_writer_text(writer, NULL);
    size_t lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
        assert_true((unsigned char)*text >= 0x20 || *text == '\n');
    }
    assert_int_equal(lines, 2 * (NASTY + 1));
    sw_writer_close(writer, NULL);
    sw_stacks_free(stacks);
}

/* The document is sound; what it says is checked by the tests of the command. */
static void check_json(sw_writer *writer)
{
    size_t length;
    const char *text = sw_writer_text(writer, &length);
    struct sw__scan json = {.at = text, .end = text + length};
    assert_true(sw__scan_skip(&json));
    for (size_t i = 0; i < length; i++) {
        assert_true((unsigned char)text[i] >= 0x20 || text[i] == '\n');
    }
    assert_null(strstr(text, "</"));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}

static void test_speedscope(void **state)
{
    (void)state;
    sw_stacks *stacks = nasty_stacks();
    sw_writer *writer = sw_writer_to_memory();
    sw_export_speedscope(writer, stacks,
                         &(sw_stack_options){.name = nasty[0], .waiting = true});
    check_json(writer);
    /* Without a period, weights are samples. */
    assert_non_null(strstr(sw_writer_text(writer, NULL), "\"unit\":\"none\""));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    sw_stacks_free(stacks);

    struct report report = open_report(tb_sampled());
    writer = sw_writer_to_memory();
    sw_export_speedscope(writer, sw_summary_stacks(report.summary), NULL);
    check_json(writer);
    const char *text = sw_writer_text(writer, NULL);
    assert_non_null(strstr(text, "\"unit\":\"seconds\""));
    assert_non_null(strstr(text, "\"name\":\"main (pid 4242)\""));
    assert_null(strstr(text, "(waiting)"));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    close_report(&report);
}

/* An error sticks, and nothing is lost on the way. */
static int refuse(void *arg, const char *bytes, size_t length)
{
    (void)arg;
    (void)bytes;
    (void)length;
    return SW_ENOSPACE;
}

static void test_a_sink_that_refuses(void **state)
{
    (void)state;
    sw_stacks *stacks = nasty_stacks();
    sw_writer *writer = sw_writer_to_callback(refuse, NULL);
    sw_export_collapsed(writer, stacks, NULL);
    assert_int_equal(sw_writer_close(writer, NULL), SW_ENOSPACE);
    writer = sw_writer_to_callback(refuse, NULL);
    sw_export_speedscope(writer, stacks, NULL);
    assert_int_equal(sw_writer_close(writer, NULL), SW_ENOSPACE);
    sw_stacks_free(stacks);
}

/* --- reports --- */

static const char *as_text(const struct report *report, sw_writer **writer,
                           sw_text_options options)
{
    *writer = sw_writer_to_memory();
    sw_export_report_text(*writer, report->summary, NULL, &options);
    return sw_writer_text(*writer, NULL);
}

static void check_every_width(const struct report *report)
{
    for (size_t columns = SW_TEXT_COLUMNS_MIN; columns <= SW_TEXT_COLUMNS_MAX;
         columns += 7) {
        for (int unicode = 0; unicode < 2; unicode++) {
            sw_writer *writer;
            sw_text_options options = {
                .columns = columns, .unicode = unicode != 0, .top = SW_TEXT_ALL};
            const char *text = as_text(report, &writer, options);
            while (*text) {
                size_t length = strcspn(text, "\n");
                if (sw_text_columns(text, length) > columns) {
                    fail_msg("wider than %zu: %.*s", columns, (int)length, text);
                }
                assert_true(length == 0 || text[length - 1] != ' ');
                for (size_t i = 0; i < length; i++) {
                    unsigned char c = (unsigned char)text[i];
                    assert_true(c >= 0x20 && c != 0x7f && (unicode || c < 0x80));
                }
                text += length + (text[length] == '\n');
            }
            assert_int_equal(sw_writer_close(writer, NULL), 0);
        }
    }
}

/* The step thread's functions while it ran, and the lines of what no phase explains. */
static void test_text(void **state)
{
    (void)state;
    struct report report = open_report(tb_sampled());
    sw_writer *writer;
    const char *text =
        as_text(&report, &writer, (sw_text_options){.columns = 90, .top = 20});
    const char *block = strstr(text, "Where Python was (thread ");
    assert_non_null(block);
    assert_non_null(strstr(block, "sampled 100 times, 7.6 % rejected;"));
    assert_non_null(strstr(block, "100.0"));
    const char *fit = strstr(block, "Net.fit");
    assert_non_null(fit);
    assert_non_null(strstr(fit, "50.0  40.4 to 59.6"));
    assert_non_null(strstr(fit, "train.py:10"));
    const char *lines = strstr(block, "in 'other', by line");
    assert_non_null(lines);
    assert_non_null(strstr(lines, "train.py:14"));
    assert_non_null(strstr(lines, "train.py:15"));
    assert_null(strstr(lines, "train.py:12"));
    assert_null(strstr(block, "load ")); /* another thread's */
    sw_writer_close(writer, NULL);
    check_every_width(&report);

    sw_writer *plain_writer, *colour_writer;
    const char *plain =
        as_text(&report, &plain_writer, (sw_text_options){.columns = 80, .top = 20});
    const char *colour =
        as_text(&report, &colour_writer,
                (sw_text_options){.columns = 80, .colour = true, .top = 20});
    for (; *colour; colour++) {
        if (*colour == '\x1b') {
            colour += strcspn(colour, "m");
        } else {
            assert_int_equal(*colour, *plain++);
        }
    }
    assert_int_equal(*plain, '\0');
    sw_writer_close(plain_writer, NULL);
    sw_writer_close(colour_writer, NULL);
    close_report(&report);
}

static void test_no_block_without_samples(void **state)
{
    (void)state;
    struct report report = open_report(tb_example());
    sw_writer *writer;
    const char *text =
        as_text(&report, &writer, (sw_text_options){.columns = 90, .top = 20});
    assert_null(strstr(text, "Where Python was"));
    sw_writer_close(writer, NULL);
    close_report(&report);
}

/* A thread that never ran has no shares to show. */
static void test_a_thread_that_waited(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_row(tb, &(sw_row){.table = SW_TABLE_SAMPLER, .key = {10}, .value = {1, 1}});
    tb_row(tb, &(sw_row){.table = SW_TABLE_CONTEXT, .key = {UINT32_MAX, 0, 255}});
    tb_row(tb, &(sw_row){
                   .table = SW_TABLE_STACK, .flags = SW_ROW_IN_CONTEXT, .value = {0, 1}});
    struct report report = open_report(tb);
    sw_writer *writer;
    const char *text =
        as_text(&report, &writer, (sw_text_options){.columns = 200, .top = 20});
    assert_non_null(strstr(text,
                           "(thread (unnamed), sampled 1 time, 0.0 % rejected; it was "
                           "waiting in all of them)"));
    assert_null(strstr(text, "by function"));
    sw_writer_close(writer, NULL);
    check_every_width(&report);
    close_report(&report);
}

/* Names of functions, files and threads that programs should not have. */
static void test_hostile_names(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    struct sw__fmt_thread *thread = tb_thread(tb, 0, "main");
    memcpy(thread->name, "\x1b[31m\xe5\xb1\xa4\n", 9);
    for (uint32_t i = 0; i < NASTY; i++) {
        tb_name(tb, 1 + i, nasty[i], SW__NAME_TEXT, SW_PHASE_INHERIT);
        tb_row(tb, &(sw_row){.table = SW_TABLE_CODE,
                             .index = i,
                             .key = {(uint32_t)NASTY - i, i + 1, UINT32_MAX, i + 1}});
        tb_row(tb,
               &(sw_row){.table = SW_TABLE_CONTEXT, .index = i, .key = {0, i + 1, i, 0}});
        tb_row(tb, &(sw_row){.table = SW_TABLE_STACK,
                             .flags = SW_ROW_IN_CONTEXT,
                             .index = i,
                             .key = {i, i, UINT32_MAX - i},
                             .value = {i + 1, 1}});
    }
    tb_row(tb, &(sw_row){.table = SW_TABLE_SAMPLER, .value = {3, 2, 2, 2}});
    struct report report = open_report(tb);
    assert_non_null(sw_summary_stacks(report.summary));
    check_every_width(&report);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_json(writer, report.summary, NULL);
    check_json(writer);
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    close_report(&report);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_collapsed),
        cmocka_unit_test(test_collapsed_is_escaped),
        cmocka_unit_test(test_speedscope),
        cmocka_unit_test(test_a_sink_that_refuses),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_no_block_without_samples),
        cmocka_unit_test(test_a_thread_that_waited),
        cmocka_unit_test(test_hostile_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
