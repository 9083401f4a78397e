/* Function profiles: the table, its exporters, and reading pstats back. */
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

#include "trace_builder.h"

static uint32_t add(sw_functions *functions, const char *file, uint32_t line,
                    const char *name, sw_function_totals totals)
{
    const sw_function function = {
        .file = file,
        .file_length = strlen(file),
        .name = name,
        .name_length = strlen(name),
        .qualname = name,
        .qualname_length = strlen(name),
        .line = line,
        .native = line == 0,
        .totals = totals,
    };
    uint32_t index;
    assert_int_equal(sw_functions_add(functions, &function, &index), SW_OK);
    return index;
}

/* main calls work three times and len five times; work calls itself. */
static sw_functions *example(void)
{
    sw_functions *functions;
    assert_int_equal(sw_functions_create(&functions), SW_OK);
    const uint32_t top =
        add(functions, "a.py", 1, "main", (sw_function_totals){1, 1, 0, 100, 2000});
    const uint32_t work =
        add(functions, "a.py", 7, "work", (sw_function_totals){7, 3, 2, 1500, 1800});
    const uint32_t len = add(functions, "~", 0, "<built-in method builtins.len>",
                             (sw_function_totals){5, 5, 0, 400, 400});
    const sw_function_call calls[] = {
        {SW_FUNCTION_UNKNOWN, top, {1, 1, 0, 100, 2000}},
        {top, work, {3, 3, 1, 500, 1800}},
        {work, work, {4, 2, 1, 1000, 900}},
        {top, len, {5, 5, 0, 400, 400}},
    };
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        assert_int_equal(sw_functions_add_call(functions, &calls[i]), SW_OK);
    }
    return functions;
}

static void test_equal_keys_are_added_up(void **state)
{
    (void)state;
    sw_functions *functions = example();
    assert_int_equal(sw_functions_count(functions), 3);
    assert_int_equal(
        add(functions, "a.py", 7, "work", (sw_function_totals){1, 1, 1, 5, 6}), 1);
    assert_int_equal(sw_functions_count(functions), 3);
    const sw_function *work = sw_functions_get(functions, 1);
    assert_int_equal(work->totals.calls, 8);
    assert_int_equal(work->totals.primitive_calls, 4);
    assert_int_equal(work->totals.errors, 3);
    assert_int_equal(work->totals.self, 1505);
    assert_int_equal(work->totals.total, 1806);
    assert_int_equal(
        add(functions, "a.py", 8, "work", (sw_function_totals){0, 0, 0, 0, 0}), 3);
    const sw_function_call call = {0, 1, {2, 1, 0, 7, 8}};
    assert_int_equal(sw_functions_add_call(functions, &call), SW_OK);
    assert_int_equal(sw_functions_call_count(functions), 4);
    assert_int_equal(sw_functions_get_call(functions, 1)->totals.calls, 5);
    const sw_function_call nowhere = {0, 9, {1, 1, 0, 0, 0}};
    assert_int_equal(sw_functions_add_call(functions, &nowhere), SW_EINVAL);
    assert_null(sw_functions_get(functions, 4));
    assert_null(sw_functions_get_call(functions, 4));
    sw_functions_free(functions);
    sw_functions_free(NULL);
}

static void test_many_functions_keep_their_places(void **state)
{
    (void)state;
    sw_functions *functions;
    assert_int_equal(sw_functions_create(&functions), SW_OK);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 5000; i++) {
            char name[32];
            snprintf(name, sizeof name, "f%u", i);
            assert_int_equal(
                add(functions, "a.py", i, name, (sw_function_totals){1, 1, 0, 1, 1}), i);
            const sw_function_call call = {i, (i * 7) % (i + 1), {1, 1, 0, 1, 1}};
            assert_int_equal(sw_functions_add_call(functions, &call), SW_OK);
        }
    }
    assert_int_equal(sw_functions_count(functions), 5000);
    assert_int_equal(sw_functions_call_count(functions), 5000);
    assert_int_equal(sw_functions_sum(functions).calls, 10000);
    sw_functions_free(functions);
}

static void test_merge_converts_units(void **state)
{
    (void)state;
    sw_functions *from = example();
    sw_functions *into;
    assert_int_equal(sw_functions_create(&into), SW_OK);
    sw_functions_set_unit_ns(from, 0.5);
    assert_int_equal(sw_functions_merge(into, from), SW_OK);
    assert_int_equal(sw_functions_merge(into, from), SW_OK);
    assert_int_equal(sw_functions_count(into), 3);
    assert_int_equal(sw_functions_call_count(into), 4);
    assert_int_equal(sw_functions_get(into, 1)->totals.calls, 14);
    assert_int_equal(sw_functions_get(into, 1)->totals.self, 1500);
    assert_int_equal(sw_functions_get_call(into, 3)->totals.total, 400);
    sw_functions_free(from);
    sw_functions_free(into);
}

static void test_pstats_bytes(void **state)
{
    (void)state;
    sw_functions *functions;
    assert_int_equal(sw_functions_create(&functions), SW_OK);
    sw_functions_set_unit_ns(functions, 1e9);
    const uint32_t index =
        add(functions, "a", 1, "f", (sw_function_totals){2, 1, 0, 1, 2});
    const sw_function_call call = {index, index, {3, 1, 0, 0, 0}};
    assert_int_equal(sw_functions_add_call(functions, &call), SW_OK);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_pstats(writer, functions);
    /* What marshal.dumps({("a", 1, "f"): (1, 2, 1.0, 2.0, {("a", 1, "f"): (3, 1, 0.0, 0.0)})}, 2) gives. */
    static const char expected[] = "{(\3\0\0\0u\1\0\0\0ai\1\0\0\0u\1\0\0\0f"
                                   "(\5\0\0\0i\1\0\0\0i\2\0\0\0"
                                   "g\0\0\0\0\0\0\xf0\x3fg\0\0\0\0\0\0\0\x40"
                                   "{(\3\0\0\0u\1\0\0\0ai\1\0\0\0u\1\0\0\0f"
                                   "(\4\0\0\0i\3\0\0\0i\1\0\0\0"
                                   "g\0\0\0\0\0\0\0\0g\0\0\0\0\0\0\0\0"
                                   "00";
    size_t length;
    const char *bytes = sw_writer_text(writer, &length);
    assert_int_equal(length, sizeof expected - 1);
    assert_memory_equal(bytes, expected, length);
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    sw_functions_free(functions);
}

static void test_pstats_and_back(void **state)
{
    (void)state;
    sw_functions *functions = example();
    add(functions, "b\xff.py", 3, "\xc3\xa4",
        (sw_function_totals){UINT64_C(1) << 45, UINT64_C(1) << 33, 0, 10, 20});
    sw_writer *writer = sw_writer_to_memory();
    sw_export_pstats(writer, functions);
    sw_write_text(writer, "\nand text after it\n");
    size_t length;
    const char *bytes = sw_writer_text(writer, &length);
    sw_functions *again;
    assert_int_equal(sw_functions_read_pstats(&again, bytes, length, NULL), SW_OK);
    assert_int_equal(sw_functions_count(again), 4);
    /* The call from nobody is not in the file. */
    assert_int_equal(sw_functions_call_count(again), 3);
    assert_false(sw_functions_knows_errors(again));
    for (size_t i = 0; i < 3; i++) {
        const sw_function *before = sw_functions_get(functions, i);
        const sw_function *after = sw_functions_get(again, i);
        assert_string_equal(before->name, after->name);
        assert_string_equal(before->file, after->file);
        assert_int_equal(before->native, after->native);
        assert_int_equal(before->totals.calls, after->totals.calls);
        assert_int_equal(before->totals.primitive_calls, after->totals.primitive_calls);
        assert_int_equal(before->totals.self, after->totals.self);
        assert_int_equal(before->totals.total, after->totals.total);
    }
    const sw_function *odd = sw_functions_get(again, 3);
    assert_string_equal(odd->file, "b\\xff.py");
    assert_string_equal(odd->name, "\xc3\xa4");
    assert_int_equal(odd->totals.calls, UINT64_C(1) << 45);
    assert_int_equal(odd->totals.primitive_calls, UINT64_C(1) << 33);
    sw_functions_free(again);
    /* Every beginning of it is refused with a sentence. */
    for (size_t cut = 0; cut < length - 20; cut++) {
        sw_error_info info = {0};
        assert_true(sw_functions_read_pstats(&again, bytes, cut, &info) < 0);
        assert_null(again);
        assert_non_null(strstr(info.message, "not a table of pstats"));
    }
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    sw_functions_free(functions);
}

static char *text_of(const sw_functions *functions,
                     const sw_functions_text_options *options)
{
    sw_writer *writer = sw_writer_to_memory();
    sw_export_functions_text(writer, functions, options);
    size_t length;
    char *copy = strdup(sw_writer_text(writer, &length));
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    assert_non_null(copy);
    return copy;
}

static void test_text(void **state)
{
    (void)state;
    sw_functions *functions = example();
    sw_functions_set_unit_ns(functions, 1e6);
    char *text = text_of(functions, NULL);
    assert_string_equal(
        text, "               13 function calls (9 primitive calls) in 2.000 seconds\n\n"
              "   Ordered by: cumulative time\n\n"
              "   ncalls  tottime  percall  cumtime  percall errors "
              "filename:lineno(function)\n"
              "        1    0.100    0.100    2.000    2.000      0 a.py:1(main)\n"
              "      7/3    1.500    0.214    1.800    0.600      2 a.py:7(work)\n"
              "        5    0.400    0.080    0.400    0.080      0 "
              "{built-in method builtins.len}\n\n");
    free(text);
    sw_functions_text_options options = {.sort = SW_FUNCTIONS_BY_CALLS, .limit = 1};
    text = text_of(functions, &options);
    assert_non_null(strstr(text, "   Ordered by: call count\n"
                                 "   List reduced from 3 to 1\n"));
    assert_non_null(strstr(text, "(work)"));
    assert_null(strstr(text, "(main)"));
    free(text);
    sw_functions_free(functions);
}

static void test_text_fits_the_page(void **state)
{
    (void)state;
    sw_functions *functions;
    assert_int_equal(sw_functions_create(&functions), SW_OK);
    add(functions, "/usr/lib/python3/site-packages/package/module/file.py", 12,
        "function\nname", (sw_function_totals){1, 1, 0, 1, 1});
    sw_functions_text_options options = {.columns = 90};
    char *text = text_of(functions, &options);
    assert_non_null(strstr(text, " .../module/file.py:12(function\\nname)\n"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        assert_true(strlen(line) <= 90);
    }
    free(text);
    sw_functions_free(functions);
}

static void test_sort_words(void **state)
{
    (void)state;
    enum sw_functions_sort sort;
    assert_int_equal(sw_functions_sort_of("tottime", &sort), SW_OK);
    assert_int_equal(sort, SW_FUNCTIONS_BY_SELF);
    assert_int_equal(sw_functions_sort_of("nothing", &sort), SW_ENOTFOUND);
}

static void test_json(void **state)
{
    (void)state;
    sw_functions *functions = example();
    sw_writer *writer = sw_writer_to_memory();
    const sw_functions_text_options options = {.sort = SW_FUNCTIONS_BY_SELF, .limit = 1};
    sw_export_functions_json(writer, functions, &options);
    size_t length;
    const char *text = sw_writer_text(writer, &length);
    assert_non_null(strstr(text, "\"schema\": \"stepwatch.functions/1\""));
    assert_non_null(strstr(text, "\"count\": 3"));
    assert_non_null(strstr(text, "\"name\": \"work\""));
    assert_non_null(strstr(text, "\"errors\": 2"));
    assert_null(strstr(text, "\"name\": \"len\""));
    assert_int_equal(sw_writer_close(writer, NULL), SW_OK);
    sw_functions_free(functions);
}

/* --- out of a run --- */

static void put_row(struct tb *tb, size_t block, unsigned table, uint32_t index,
                    const uint32_t key[4], const uint64_t value[5])
{
    sw_row *row = tb_append(tb, block, sizeof *row);
    assert_non_null(row);
    *row = (sw_row){.table = (uint16_t)table, .index = index};
    memcpy(row->key, key, sizeof row->key);
    memcpy(row->value, value, sizeof row->value);
}

#define ROW(tb, block, table, index, k0, k1, k2, k3, ...)                                \
    put_row(tb, block, table, index, (const uint32_t[4]){k0, k1, k2, k3},                \
            (const uint64_t[5]){__VA_ARGS__})

/* Profile 0 has f (which calls g) and g; profile 1 ran inside it; profile 2 is one of lines; rows that point nowhere are
 * in between. The clock has one tick a ns. */
static sw_functions *of_run(void)
{
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "a.py", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 2, "f", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 3, "C.g", SW__NAME_TEXT, SW_PHASE_INHERIT);
    tb_name(tb, 4, "g", SW__NAME_TEXT, SW_PHASE_INHERIT);
    const size_t block = tb_block(tb, SW__BLOCK_ROWS, 4096, UINT32_MAX, 0);
    ROW(tb, block, SW_TABLE_PROFILE, 0, 1, 2, 0, 0, 1000, 500, 0, 0, 0);
    ROW(tb, block, SW_TABLE_PROFILE, 1, 1, 2, 0, 0, 1100, 100, 0, 0, 0);
    ROW(tb, block, SW_TABLE_PROFILE, 2, 2, 2, 0, 0, 1000, 500, 0, 0, 0);
    ROW(tb, block, SW_TABLE_CODE, 0, 1, 2, 10, 2, 0, 0, 0, 0, 0);
    ROW(tb, block, SW_TABLE_CODE, 1, 1, 3, 20, 4, 0, 0, 0, 0, 0);
    ROW(tb, block, SW_TABLE_CODE, 2, 77, 78, 20, 79, 0, 0, 0, 0, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 0, 0, 0, 0, 0, 3, 2, 400, 300, 1);
    ROW(tb, block, SW_TABLE_FUNCTION, 1, 0, 1, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 2, 1, 1, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 3, 2, 1, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 4, 0, 2, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 5, 0, 99999, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_FUNCTION, 6, 99999, 0, 0, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_CALL, 0, 0, UINT32_MAX, 0, 0, 3, 2, 400, 300, 1);
    ROW(tb, block, SW_TABLE_CALL, 1, 0, 0, 1, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_CALL, 2, 0, 99999, 1, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_CALL, 3, 0, 0, 99999, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_CALL, 4, 0, 2, 2, 0, 5, 5, 100, 100, 0);
    ROW(tb, block, SW_TABLE_CALL, 5, 1, 0, 1, 0, 5, 5, 100, 100, 0);
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    char path[64];
    snprintf(path, sizeof path, "functions-%d.stepwatch", (int)getpid());
    tb_write(path, bytes, size);
    free(bytes);
    tb_free(tb);
    sw_run *run;
    sw_functions *functions;
    assert_int_equal(sw_run_open(&run, path, NULL), SW_OK);
    unlink(path);
    assert_int_equal(sw_functions_of_run(&functions, run, NULL), SW_OK);
    sw_run_free(run);
    return functions;
}

static void test_of_run(void **state)
{
    (void)state;
    sw_functions *functions = of_run();
    assert_int_equal(sw_functions_count(functions), 2);
    const sw_function *f = sw_functions_get(functions, 0);
    const sw_function *g = sw_functions_get(functions, 1);
    assert_string_equal(f->file, "a.py");
    assert_string_equal(f->name, "f");
    assert_int_equal(f->line, 10);
    assert_int_equal(f->totals.calls, 3);
    assert_int_equal(f->totals.primitive_calls, 2);
    assert_int_equal(f->totals.total, 400);
    assert_int_equal(f->totals.self, 300);
    assert_int_equal(f->totals.errors, 1);
    assert_string_equal(g->qualname, "C.g");
    assert_int_equal(g->totals.calls, 5);
    assert_int_equal(sw_functions_call_count(functions), 2);
    const sw_function_call *call = sw_functions_get_call(functions, 1);
    assert_int_equal(call->caller, 0);
    assert_int_equal(call->callee, 1);
    assert_int_equal(call->totals.calls, 5);
    sw_functions_free(functions);
}

static void test_a_stats_file_is_both(void **state)
{
    (void)state;
    sw_functions *functions = example();
    sw_writer *both = sw_writer_to_memory();
    sw_writer *apart = sw_writer_to_memory();
    size_t both_length;
    size_t apart_length;
    sw_export_stats_file(both, functions, NULL);
    sw_export_pstats(apart, functions);
    sw_write_text(apart, "\n");
    sw_export_functions_text(apart, functions, NULL);
    const char *one = sw_writer_text(both, &both_length);
    const char *other = sw_writer_text(apart, &apart_length);
    assert_int_equal(both_length, apart_length);
    assert_memory_equal(one, other, both_length);
    sw_functions *back;
    assert_int_equal(sw_functions_read_pstats(&back, one, both_length, NULL), SW_OK);
    assert_int_equal(sw_functions_count(back), 3);
    sw_functions_free(back);
    sw_writer_close(both, NULL);
    sw_writer_close(apart, NULL);
    sw_functions_free(functions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_keys_are_added_up),
        cmocka_unit_test(test_many_functions_keep_their_places),
        cmocka_unit_test(test_merge_converts_units),
        cmocka_unit_test(test_pstats_bytes),
        cmocka_unit_test(test_pstats_and_back),
        cmocka_unit_test(test_a_stats_file_is_both),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_text_fits_the_page),
        cmocka_unit_test(test_sort_words),
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_of_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
