/* Rows of tables, from sound files and from others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "read/trace_internal.h"
#include "trace_builder.h"

static sw_trace *open_files(const struct tb *tb, bool hot)
{
    sw_trace *trace;
    assert_int_equal(sw__trace_open_fds(&trace, tb_home_fd(tb), hot ? tb_hot_fd(tb) : -1,
                                        false, "test", NULL),
                     0);
    return trace;
}

static sw_row row_of(unsigned table, uint32_t index, uint64_t value)
{
    return (sw_row){.table = (uint16_t)table,
                    .flags = (uint16_t)(index & 1),
                    .index = index,
                    .key = {index, index + 1, index + 2, index + 3},
                    .value = {value, value + 1, value + 2, value + 3, value + 4}};
}

static void is_row(const sw_trace *trace, unsigned table, uint32_t index, uint64_t value)
{
    const sw_row *row = sw_trace_get_row(trace, (enum sw_table)table, index);
    const sw_row expected = row_of(table, index, value);
    assert_non_null(row);
    assert_memory_equal(row, &expected, sizeof expected);
}

static void test_every_table(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    /* More than a block of each, and all of them mixed. */
    for (uint32_t i = 0; i < 100; i++) {
        for (unsigned table = 0; table < SW_TABLES; table++) {
            if (i < 100 - table) {
                sw_row row = row_of(table, i, i * 10 + table);
                tb_row(tb, &row);
            }
        }
    }
    sw_trace *trace = open_files(tb, false);
    assert_false(sw_trace_get_info(trace)->damaged);
    for (unsigned table = 0; table < SW_TABLES; table++) {
        assert_int_equal(sw_trace_row_count(trace, (enum sw_table)table), 100 - table);
        for (uint32_t i = 0; i < 100 - table; i++) {
            is_row(trace, table, i, i * 10 + table);
        }
        assert_null(sw_trace_get_row(trace, (enum sw_table)table, 100 - table));
        assert_null(sw_trace_get_row(trace, (enum sw_table)table, SIZE_MAX));
    }
    assert_int_equal(sw_trace_row_count(trace, SW_TABLES), 0);
    assert_int_equal(sw_trace_row_count(trace, (enum sw_table) - 1), 0);
    assert_null(sw_trace_get_row(trace, SW_TABLES, 0));
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_no_rows(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb_block(tb, SW__BLOCK_ROWS, 4096, UINT32_MAX, 0); /* only just taken */
    sw_trace *trace = open_files(tb, false);
    for (unsigned table = 0; table < SW_TABLES; table++) {
        assert_int_equal(sw_trace_row_count(trace, (enum sw_table)table), 0);
        assert_null(sw_trace_get_row(trace, (enum sw_table)table, 0));
    }
    assert_false(sw_trace_get_info(trace)->damaged);
    sw_trace_free(trace);
    tb_free(tb);
}

static void test_rows_that_nobody_wrote(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    sw_row rows[] = {
        row_of(SW_TABLE_CODE, 0, 1),
        row_of(SW_TABLE_CODE, UINT32_MAX, 2),     /* far away */
        row_of(SW_TABLE_CODE, UINT32_MAX - 1, 2), /* 256 GiB of rows */
        row_of(SW_TABLES, 0, 3),                  /* a table of later versions */
        row_of(UINT16_MAX, 0, 4),
        row_of(SW_TABLE_CODE, 3, 5), /* 1 and 2 are missing */
        row_of(SW_TABLE_STACK, 0, 6),
        row_of(SW_TABLE_STACK, 0, 6), /* twice */
    };
    const size_t count = sizeof rows / sizeof rows[0];
    for (size_t i = 0; i < count; i++) {
        tb_row(tb, &rows[i]);
    }
    /* Half a row is none. */
    memset(tb_append(tb, tb->rows - 1, 40), 0xff, 40);
    sw_trace *trace = open_files(tb, false);
    assert_int_equal(sw_trace_row_count(trace, SW_TABLE_CODE), 4);
    is_row(trace, SW_TABLE_CODE, 0, 1);
    assert_null(sw_trace_get_row(trace, SW_TABLE_CODE, 1));
    assert_null(sw_trace_get_row(trace, SW_TABLE_CODE, 2));
    is_row(trace, SW_TABLE_CODE, 3, 5);
    assert_int_equal(sw_trace_row_count(trace, SW_TABLE_STACK), 1);
    is_row(trace, SW_TABLE_STACK, 0, 6);
    sw_trace_free(trace);
    tb_free(tb);
}

/* Of a row that has two places one is taken, and nothing is mixed. */
static void test_duplicates(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    for (uint64_t value = 1; value <= 200; value++) {
        sw_row row = row_of(SW_TABLE_LINE, 0, value);
        tb_row(tb, &row);
    }
    sw_trace *trace = open_files(tb, false);
    assert_int_equal(sw_trace_row_count(trace, SW_TABLE_LINE), 1);
    is_row(trace, SW_TABLE_LINE, 0, sw_trace_get_row(trace, SW_TABLE_LINE, 0)->value[0]);
    sw_trace_free(trace);
    tb_free(tb);
}

/* `used` that reaches beyond the block, or a file that was cut in a block. */
static void test_cut(void **state)
{
    (void)state;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < 62; i++) { /* as many as fit */
        sw_row row = row_of(SW_TABLE_CODE, i, i);
        tb_row(tb, &row);
    }
    size_t size;
    uint8_t *bytes = tb_home(tb, &size);
    for (size_t kept = size - 4096; kept <= size; kept += 32) {
        sw_trace *trace;
        int fd = tb_memory_file(bytes, kept);
        assert_int_equal(sw__trace_open_fds(&trace, fd, -1, false, "test", NULL), 0);
        size_t whole = kept > size - 4096 + 128 ? (kept - (size - 4096 + 128)) / 64 : 0;
        assert_int_equal(sw_trace_row_count(trace, SW_TABLE_CODE), whole);
        for (uint32_t i = 0; i < whole; i++) {
            is_row(trace, SW_TABLE_CODE, i, i);
        }
        sw_trace_free(trace);
    }
    free(bytes);
    tb->blocks[tb->rows - 1].head->used = UINT32_MAX;
    sw_trace *trace = open_files(tb, false);
    assert_int_equal(sw_trace_row_count(trace, SW_TABLE_CODE), 62);
    sw_trace_free(trace);
    tb_free(tb);
}

/* A process that was killed: the copy in its memory is newer than the one in the file. */
static void test_hot_rows_count(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb->super.state = SW__STATE_OPEN;
    tb->super.pid = 0;
    sw_row row = row_of(SW_TABLE_STACK, 0, 7);
    tb_row(tb, &row);
    int home = tb_home_fd(tb);
    /* What happened since the last copy. */
    sw_row *place = tb_payload(tb, tb->rows - 1);
    *place = row_of(SW_TABLE_STACK, 0, 1000);
    row = row_of(SW_TABLE_STACK, 1, 8);
    tb_row(tb, &row);
    sw_trace *trace;
    assert_int_equal(sw__trace_open_fds(&trace, home, tb_hot_fd(tb), false, "test", NULL),
                     0);
    assert_int_equal(sw_trace_row_count(trace, SW_TABLE_STACK), 2);
    is_row(trace, SW_TABLE_STACK, 0, 1000);
    is_row(trace, SW_TABLE_STACK, 1, 8);
    sw_trace_free(trace);
    tb_free(tb);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table),
        cmocka_unit_test(test_no_rows),
        cmocka_unit_test(test_rows_that_nobody_wrote),
        cmocka_unit_test(test_duplicates),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_hot_rows_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
