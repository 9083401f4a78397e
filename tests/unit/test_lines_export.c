/* Line profiles: merged, sorted, from traces, as text and as JSON. */
#include "recorder_util.h"

#include <unistd.h>

#include <stepwatch/export.h>
#include <stepwatch/lines.h>

static size_t add(sw_lines *lines, const char *file, const char *name, uint32_t line)
{
    size_t index = 99;
    assert_int_equal(sw_lines_add_function(lines, file, strlen(file), name, strlen(name),
                                           line, &index),
                     0);
    return index;
}

/* The text; the caller closes the writer. */
static const char *as_text(sw_lines *lines, sw_writer **writer, size_t columns,
                           bool unicode)
{
    const sw_lines_text_options options = {.columns = columns, .unicode = unicode};
    *writer = sw_writer_to_memory();
    sw_export_lines_text(*writer, lines, &options);
    return sw_writer_text(*writer, NULL);
}

static const char *as_json(sw_lines *lines, sw_writer **writer)
{
    *writer = sw_writer_to_memory();
    sw_export_lines_json(*writer, lines);
    return sw_writer_text(*writer, NULL);
}

static void close_writer(sw_writer *writer)
{
    assert_int_equal(sw_writer_close(writer, NULL), 0);
}

static void test_merging(void **state)
{
    (void)state;
    sw_lines *lines = sw_lines_create();
    const size_t short_one = add(lines, "a.py", "f", 1);
    const size_t long_one = add(lines, "b.py", "g", 10);
    const size_t again = add(lines, "a.py", "f", 1);
    add(lines, "a.py", "f", 2); /* another function of the same name */
    assert_int_equal(sw_lines_add_line(lines, short_one, 3, 1, 5), 0);
    assert_int_equal(sw_lines_add_line(lines, short_one, 2, 2, 10), 0);
    assert_int_equal(sw_lines_add_line(lines, again, 3, 10, 50), 0);
    assert_int_equal(sw_lines_add_line(lines, again, 7, 0, 0), 0);
    assert_int_equal(sw_lines_add_line(lines, long_one, 11, 1, 1000), 0);
    assert_int_equal(sw_lines_add_line(lines, long_one, 11, UINT64_MAX, UINT64_MAX), 0);
    assert_int_equal(sw_lines_add_line(lines, 77, 1, 1, 1), SW_EINVAL);
    assert_int_equal(sw_lines_count(lines), 0); /* not finished yet */
    sw_lines_finish(lines);
    sw_lines_finish(lines);

    assert_int_equal(sw_lines_count(lines), 3);
    const sw_lines_function *function = sw_lines_get(lines, 0);
    assert_string_equal(function->name, "g");
    assert_true(function->total_ns == UINT64_MAX); /* held, not wrapped */
    assert_true(function->lines[0].hits == UINT64_MAX);
    function = sw_lines_get(lines, 1);
    assert_string_equal(function->name, "f");
    assert_int_equal(function->first_line, 1);
    assert_int_equal(function->last_line, 7);
    assert_int_equal(function->total_ns, 65);
    assert_int_equal(function->line_count, 3);
    assert_int_equal(function->lines[0].line, 2);
    assert_int_equal(function->lines[1].hits, 11);
    assert_int_equal(function->lines[1].ns, 55);
    assert_int_equal(sw_lines_get(lines, 2)->line_count, 0);
    assert_null(sw_lines_get(lines, 3));
    sw_lines_free(lines);
    sw_lines_free(NULL);
}

static const char source[] = "def f(x):\n"
                             "\ty = x  # \xc3\xa4\n"
                             "\n"
                             "    return \"" /* a long line follows */
                             "0123456789012345678901234567890123456789"
                             "0123456789012345678901234567890123456789\"\r\n"
                             "    # \x1b[31m end";

static sw_lines *sample(void)
{
    sw_lines *lines = sw_lines_create();
    const size_t f = add(lines, "x.py", "f", 1);
    assert_int_equal(sw_lines_set_source(lines, "x.py", 4, source, sizeof source - 1), 0);
    sw_lines_add_line(lines, f, 2, 123456789012u, 1999999999999999999u);
    sw_lines_add_line(lines, f, 4, 1, 1500);
    sw_lines_add_line(lines, f, 5, 0, 0);
    sw_lines_finish(lines);
    return lines;
}

static void test_text(void **state)
{
    (void)state;
    sw_lines *lines = sample();
    sw_writer *writer;
    const char *text = as_text(lines, &writer, 80, true);
    assert_non_null(strstr(text, "Function: f\nFile: x.py:1\nTotal time: "));
    assert_non_null(strstr(text, "Unit of Time and Per Hit: µs (1e-06 s)\n"));
    assert_non_null(strstr(text, "Line #      Hits         Time    Per Hit  % Time  "
                                 "Line Contents\n"));
    /* Cells that do not fit take a shorter form and stay apart. */
    assert_non_null(strstr(text, "     2 1.235e+11        2e+15  16200.000   100.0  "
                                 "        y = x  # ä\n"));
    assert_non_null(strstr(text, "     4         1          1.5      1.500     0.0  "
                                 "    return \"01"));
    assert_non_null(strstr(text, "\n     3\n"));
    assert_non_null(strstr(text, "# \\x1b[31m end\n")); /* harmless */
    assert_null(strchr(text, '\t'));
    for (const char *at = text; *at;) {
        const size_t length = strcspn(at, "\n");
        assert_true(sw_text_columns(at, length) <= 80);
        at += length + 1;
    }
    close_writer(writer);

    text = as_text(lines, &writer, 0, false);
    assert_non_null(strstr(text, "Unit of Time and Per Hit: us (1e-06 s)\n"));
    assert_non_null(strstr(text, "y = x  # ?\n"));
    assert_non_null(strstr(text, "6789\"\n")); /* not cut */
    for (const char *at = text; *at; at++) {
        assert_true((unsigned char)*at < 0x80);
    }
    close_writer(writer);
    sw_lines_free(lines);
}

static void test_json(void **state)
{
    (void)state;
    sw_lines *lines = sample();
    sw_writer *writer;
    const char *text = as_json(lines, &writer);
    assert_non_null(strstr(text, "\"schema\": \"stepwatch.lines/1\""));
    assert_non_null(strstr(text, "\"unit\": \"ns\""));
    assert_non_null(strstr(text, "\"per_hit_ns\": 1500"));
    assert_non_null(strstr(text, "\"source\": \"\\ty = x  # ä\""));
    assert_null(strstr(text, "\"line\": 5")); /* never ran */
    close_writer(writer);
    sw_lines_free(lines);

    lines = sw_lines_create();
    sw_lines_finish(lines);
    text = as_json(lines, &writer);
    assert_non_null(strstr(text, "\"functions\": []"));
    close_writer(writer);
    sw_lines_free(lines);
}

static void test_source_files(void **state)
{
    (void)state;
    FILE *file = fopen(ru_path("source.py"), "w");
    assert_non_null(file);
    fputs("one\ntwo\r\nthree", file);
    fclose(file);
    char path[256];
    snprintf(path, sizeof path, "%s", ru_path("source.py"));
    sw_lines *lines = sw_lines_create();
    sw_lines_add_line(lines, add(lines, path, "a", 1), 3, 1, 4);
    sw_lines_add_line(lines, add(lines, "/dev/zero", "b", 1), 1, 1, 3);
    sw_lines_add_line(lines, add(lines, ru_folder, "c", 1), 1, 1, 2);
    sw_lines_add_line(lines, add(lines, "<stdin>", "d", 1), 1, 1, 1);
    sw_lines_finish(lines);
    size_t length;
    const char *text = sw_lines_source(lines, 0, 2, &length);
    assert_int_equal(length, 3);
    assert_memory_equal(text, "two", 3);
    text = sw_lines_source(lines, 0, 3, &length);
    assert_memory_equal(text, "three", 5);
    assert_null(sw_lines_source(lines, 0, 4, &length));
    assert_null(sw_lines_source(lines, 0, 0, &length));
    for (size_t i = 1; i <= 4; i++) {
        assert_null(sw_lines_source(lines, i, 1, &length));
    }
    sw_writer *writer;
    assert_non_null(strstr(as_text(lines, &writer, 100, true),
                           "(the source is not there: <stdin>)\n"));
    close_writer(writer);
    sw_lines_free(lines);
}

static void put(enum sw_table table, uint32_t a, uint32_t b, uint32_t c, uint32_t d,
                uint64_t hits, uint64_t ticks)
{
    sw_row row = {.table = (uint16_t)table, .key = {a, b, c, d}, .value = {hits, ticks}};
    assert_int_not_equal(sw_row_put(0, &row), 0);
}

static void test_of_run(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    char folder[512];
    sw_run_dir(folder, sizeof folder);
    const uint32_t file = sw_name("t.py", 4);
    const uint32_t name = sw_name("f", 1);
    put(SW_TABLE_CODE, file, name, 5, name, 0, 0);
    put(SW_TABLE_CODE, 4000000, 4000001, UINT32_MAX, 0, 0,
        0); /* names that are not there */
    put(SW_TABLE_PROFILE, 2, name, 0, 0, 0, 0);
    put(SW_TABLE_LINE, 0, 0, 7, 0, 3, 1000);
    put(SW_TABLE_LINE, 0, 0, 6, 0, 1, 500);
    put(SW_TABLE_LINE, 1, 0, 6, 0, 1, 500); /* the same line in another profile */
    put(SW_TABLE_LINE, 0, 1, UINT32_MAX, 0, UINT64_MAX, UINT64_MAX);
    put(SW_TABLE_LINE, 0, 1, 1, 0, 1, 1);
    put(SW_TABLE_LINE, 0, 2, 6, 0, 1, 500);          /* no such function */
    put(SW_TABLE_LINE, 0, UINT32_MAX, 6, 0, 1, 500); /* nor this */
    sw_shutdown();

    sw_run *run;
    sw_lines *lines;
    assert_int_equal(sw_run_open(&run, folder, NULL), 0);
    assert_int_equal(sw_lines_of_run(&lines, run, NULL), 0);
    assert_int_equal(sw_lines_count(lines), 2);
    const sw_lines_function *function = sw_lines_get(lines, 1);
    const double scale = sw_trace_ns_per_tick(sw_run_trace(run, 0));
    assert_string_equal(function->name, "f");
    assert_int_equal(function->first_line, 5);
    assert_int_equal(function->line_count, 2);
    assert_int_equal(function->lines[0].hits, 2);
    assert_int_equal(function->lines[0].ns, 2 * (uint64_t)(500 * scale + 0.5));
    assert_int_equal(function->lines[1].hits, 3);
    function = sw_lines_get(lines, 0);
    assert_string_equal(function->name, "");
    sw_writer *writer;
    assert_true(strlen(as_text(lines, &writer, 80, true)) < 4000);
    close_writer(writer);
    sw_lines_free(lines);

    sw_summary *summary;
    assert_int_equal(sw_summary_create(&summary, run, NULL), 0);
    assert_int_equal(sw_lines_count(sw_summary_lines(summary)), 2);
    assert_null(sw_summary_functions(summary));
    writer = sw_writer_to_memory();
    sw_export_report_text(writer, summary, NULL,
                          &(sw_text_options){.columns = 60, .top = 20});
    const char *report = sw_writer_text(writer, NULL);
    assert_non_null(strstr(report, "Lines by time (exact)"));
    assert_non_null(strstr(report, "f (t.py:5), "));
    assert_null(strstr(report, "Functions by self time"));
    for (const char *line = report; *line; line += strcspn(line, "\n") + 1) {
        assert_true(strcspn(line, "\n") <= 60);
    }
    close_writer(writer);
    writer = sw_writer_to_memory();
    sw_export_report_json(writer, summary, NULL);
    const char *json = sw_writer_text(writer, NULL);
    assert_non_null(strstr(json, "\"source\": \"profile\""));
    assert_non_null(strstr(json, "\"functions\": {"));
    close_writer(writer);
    sw_summary_free(summary);
    sw_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merging), cmocka_unit_test(test_text),
        cmocka_unit_test(test_json),    ru_test(test_source_files),
        ru_test(test_of_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
