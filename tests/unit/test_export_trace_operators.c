/* Traces for viewers: what a framework's profiler saw, operators and the work of GPUs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace_document.h"

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
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_absurd_operators),
        cmocka_unit_test(test_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
