/* Traces for viewers of some steps, of a window of time, of several processes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace_document.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_some_steps), cmocka_unit_test(test_no_such_steps),
        cmocka_unit_test(test_window),     cmocka_unit_test(test_unfinished),
        cmocka_unit_test(test_ranks),      cmocka_unit_test(test_modules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
