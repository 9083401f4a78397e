/* Policies: what is kept, that it is whole, and that everything else is counted. */
#include "recorder_util.h"

#include <pthread.h>
#include <stepwatch/clock.h>

#define COUNTERS (1u << SW_RECORD_COUNTER)
#define SPANS (1u << SW_RECORD_SPAN)
#define STEPS (1u << SW_RECORD_STEP)
#define MIB 1048576u

/* Two records a round: a section and a counter with the number of the round. */
static void rounds(int from, int to)
{
    sw_section *section = sw_section_get("round");
    for (int i = from; i < to; i++) {
        sw_begin(section);
        sw_end(section);
        sw_counter("number", i);
    }
}

static void check_sums(const struct ru_trace *trace, uint64_t attempted)
{
    const sw_trace_info *info = trace->info;
    assert_int_equal(info->present + info->overwritten + info->dropped, attempted);
    assert_int_equal(ru_count(trace, 0), info->present);
    if (info->file_bytes > info->max_bytes) {
        fail_msg("%s: the file has %llu KiB of %llu", info->path,
                 (unsigned long long)info->file_bytes / 1024,
                 (unsigned long long)info->max_bytes / 1024);
    }
    assert_int_equal(ru_file_size(info->path), info->file_bytes);
    assert_int_equal(info->write_errors, 0);
}

/* The numbers of the rounds that are there, which must rise; how many are missing in between. */
static uint64_t numbers_present(const struct ru_trace *trace, double *first, double *last)
{
    struct ru_records records = ru_read(trace, COUNTERS);
    assert_true(records.count > 0);
    uint64_t missing = 0;
    for (size_t i = 1; i < records.count; i++) {
        double step =
            records.at[i].record->counter.value - records.at[i - 1].record->counter.value;
        assert_true(step >= 1);
        missing += (uint64_t)step - 1;
    }
    *first = records.at[0].record->counter.value;
    *last = records.at[records.count - 1].record->counter.value;
    ru_records_free(&records);
    return missing;
}

/* Beyond every cap below; a thread sanitizer is too slow for much more than that. */
#if defined(__SANITIZE_THREAD__)
#define ROUNDS 100000
#else
#define ROUNDS 200000
#endif

static void test_ring(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "ring", .max_mb = 2});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2 * ROUNDS);
    assert_int_equal(trace.info->policy, SW_POLICY_RING);
    assert_int_equal(trace.info->dropped, 0);
    assert_true(trace.info->overwritten > 0);
    /* A good part of the cap is used for events. */
    assert_true(trace.info->present * SW_RECORD_UNIT > MIB / 2);
    assert_int_equal(numbers_present(&trace, &first, &last), 0);
    assert_true(last == ROUNDS - 1);
    assert_int_equal(ru_calls(&trace, "round"), ROUNDS);
    assert_int_equal(ru_calls(&trace, "number"), ROUNDS);
    ru_free(&trace);
}

/* Step records take their part of the cap; the newest events still are the ones that are kept. */
static void test_ring_with_steps(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "ring", .max_mb = 2, .step_usage = SW_OFF});
    for (int i = 0; i < 2500; i++) {
        sw_step_begin();
        rounds(i * 50, i * 50 + 50);
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2500 * 100);
    assert_int_equal(trace.info->dropped, 0);
    assert_int_equal(numbers_present(&trace, &first, &last), 0);
    assert_true(last == 2500 * 50 - 1);
    assert_int_equal(ru_lane(&trace, 0, 0)->steps, 2500);
    assert_int_equal(ru_count(&trace, STEPS) + trace.info->steps_dropped, 2500);
    /* The first and the last ones are never those given up. */
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.at[0].record->step.number, 0);
    assert_int_equal(steps.at[steps.count - 1].record->step.number, 2499);
    ru_records_free(&steps);
    ru_free(&trace);
}

static void test_drop(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "drop", .max_mb = 2});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2 * ROUNDS);
    assert_int_equal(trace.info->overwritten, 0);
    assert_true(trace.info->dropped > 0);
    assert_int_equal(numbers_present(&trace, &first, &last), 0);
    assert_true(first == 0);
    assert_true(last <= (double)trace.info->present / 2);
    assert_true(trace.info->present * SW_RECORD_UNIT > MIB / 2);
    assert_int_equal(ru_calls(&trace, "round"), ROUNDS);
    ru_free(&trace);
}

static void test_drop_with_steps(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "drop", .max_mb = 2, .step_usage = SW_OFF});
    for (int i = 0; i < 800; i++) {
        sw_step_begin();
        rounds(i * 200, i * 200 + 200);
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 800 * 400);
    assert_int_equal(numbers_present(&trace, &first, &last), 0);
    assert_true(first == 0);
    assert_int_equal(trace.info->steps_dropped, 0);
    assert_int_equal(ru_count(&trace, STEPS), 800);
    ru_free(&trace);
}

static void test_stream_below_the_cap(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "stream", .max_mb = 64});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2 * ROUNDS);
    assert_int_equal(trace.info->present, 2 * ROUNDS);
    assert_int_equal(numbers_present(&trace, &first, &last), 0);
    assert_true(first == 0 && last == ROUNDS - 1);
    ru_free(&trace);
}

static void test_stream_beyond_the_cap(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "stream", .max_mb = 3});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2 * ROUNDS);
    assert_int_equal(trace.info->overwritten, 0);
    assert_true(trace.info->dropped > 0);
    assert_int_equal(ru_calls(&trace, "round"), ROUNDS);
    (void)numbers_present(&trace, &first, &last);
    assert_true(first == 0);
    /* Five eighths of the cap are for events. */
    /* What the memory alone holds, for the helper may not have had its turn. */
    assert_true(trace.info->present * SW_RECORD_UNIT > MIB / 2);
    ru_free(&trace);
}

static void test_no_cap(void **state)
{
    (void)state;
    ru_start((sw_config){.policy = "stream", .max_mb = -1});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->max_bytes, 0);
    assert_int_equal(trace.info->present, 2 * ROUNDS);
    ru_free(&trace);
}

static void *rounds_of_thread(void *arg)
{
    (void)arg;
    rounds(0, 50000);
    return NULL;
}

static void test_four_threads_are_counted(void **state)
{
    (void)state;
    const char *const policies[] = {"auto", "stream", "ring", "drop"};
    for (size_t i = 0; i < 4; i++) {
        pthread_t threads[4];
        ru_start(
            (sw_config){.policy = policies[i], .max_mb = 3, .out = ru_path(policies[i])});
        for (int j = 0; j < 4; j++) {
            assert_int_equal(pthread_create(&threads[j], NULL, rounds_of_thread, NULL),
                             0);
        }
        for (int j = 0; j < 4; j++) {
            pthread_join(threads[j], NULL);
        }
        struct ru_trace trace = ru_finish();
        check_sums(&trace, 4 * 2 * 50000);
        assert_int_equal(ru_all_calls(&trace), 4 * 50000);
        for (uint32_t j = 0; j < 4; j++) {
            const sw_trace_thread *thread = sw_trace_get_thread(trace.trace, j);
            assert_true(thread->dropped + thread->records <= 100000);
        }
        ru_free(&trace);
    }
}

/* What policy auto must keep of a run, by its own step records. */
static void check_auto(const struct ru_trace *trace, size_t first, size_t last,
                       size_t worst, size_t events)
{
    struct ru_records steps = ru_read(trace, STEPS);
    struct ru_records records = ru_read(trace, 0);
    size_t count = steps.count;
    bool *wanted = calloc(count, sizeof *wanted);
    size_t *present = calloc(count, sizeof *present);
    assert_true(wanted && present);
    assert_int_equal(trace->info->steps_dropped, 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(steps.at[i].record->step.number, i);
        wanted[i] = i < first || i + last >= count;
    }
    for (size_t found = 0; found < worst; found++) {
        size_t most = count;
        uint64_t longest = 0;
        for (size_t i = first; i < count; i++) {
            const sw_record_step *step = &steps.at[i].record->step;
            uint64_t duration = step->end - step->head.ticks;
            /* Marked with a 2 in `present` for the moment. */
            if (present[i] == 0 && duration > longest) {
                longest = duration;
                most = i;
            }
        }
        assert_true(most < count);
        present[most] = 2;
        wanted[most] = true;
    }
    memset(present, 0, count * sizeof *present);
    size_t at = 0;
    for (size_t i = 0; i < records.count; i++) {
        uint64_t ticks = records.at[i].record->head.ticks;
        while (at < count && steps.at[at].record->step.end < ticks) {
            at++;
        }
        if (at < count && ticks >= steps.at[at].record->head.ticks) {
            present[at]++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (wanted[i] && present[i] != events) {
            const sw_record_step *step = &steps.at[i].record->step;
            fail_msg("step %zu of %zu, %llu ticks long, has %zu of %zu events", i, count,
                     (unsigned long long)(step->end - step->head.ticks), present[i],
                     events);
        }
        assert_true(present[i] <= events);
    }
    free(wanted);
    free(present);
    ru_records_free(&records);
    ru_records_free(&steps);
}

/* Steps of a length in ticks, some of them much longer; each has a section of 10 rounds. */
static void auto_steps(int steps, uint64_t length)
{
    for (int i = 0; i < steps; i++) {
        bool slow = i == steps / 20 || i == steps / 3 || i == steps / 2 + 1;
        sw_step_begin();
        rounds(0, 5);
        if (length || slow) {
            ru_spin(slow ? 20000000 : length);
        }
        rounds(5, 10);
        sw_step_end();
    }
}

static void test_auto(void **state)
{
    (void)state;
    const struct {
        int steps;
        uint64_t length;
    } runs[] = {{2000, 100000}, {20000, 0}};
    for (size_t i = 0; i < 2; i++) {
        ru_start((sw_config){.max_mb = 64,
                             .keep_first = 5,
                             .keep_last = 7,
                             .keep_worst = 3,
                             .step_usage = SW_OFF,
                             .out = ru_path(i ? "fast" : "slow")});
        auto_steps(runs[i].steps, runs[i].length);
        struct ru_trace trace = ru_finish();
        check_sums(&trace, (uint64_t)runs[i].steps * 20);
        assert_int_equal(trace.info->policy, SW_POLICY_AUTO);
        assert_int_equal(trace.info->keep_first, 5);
        assert_int_equal(trace.info->keep_last, 7);
        assert_int_equal(trace.info->keep_worst, 3);
        assert_true(trace.info->overwritten > 0);
        assert_int_equal(ru_calls(&trace, "round"), runs[i].steps * 10);
        check_auto(&trace, 5, 7, 3, 20);
        ru_free(&trace);
    }
}

/* In little memory: chunks are given up as soon as they may be, and not sooner. */
static void test_auto_in_little_memory(void **state)
{
    (void)state;
    ru_start((sw_config){.max_mb = 8,
                         .keep_first = 3,
                         .keep_last = 3,
                         .keep_worst = 2,
                         .step_usage = SW_OFF});
    const int steps = 1000;
    for (int i = 0; i < steps; i++) {
        sw_step_begin();
        rounds(0, 500);
        if (i == 100 || i == 700) {
            ru_spin(30000000);
        }
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    check_sums(&trace, (uint64_t)steps * 1000);
    assert_int_equal(ru_calls(&trace, "round"), steps * 500);
    check_auto(&trace, 3, 3, 2, 1000);
    ru_free(&trace);
}

/* Without steps auto keeps the beginning and the end. */
static void test_auto_without_steps(void **state)
{
    (void)state;
    ru_start((sw_config){.max_mb = 4});
    rounds(0, ROUNDS);
    struct ru_trace trace = ru_finish();
    double first, last;
    check_sums(&trace, 2 * ROUNDS);
    (void)numbers_present(&trace, &first, &last);
    assert_true(first == 0);
    /* The beginning is not given up for the end, so a helper that has no turn to write it costs the
     * newest ones; they are counted then. */
    assert_true(last == ROUNDS - 1 || trace.info->dropped > 0);
    ru_free(&trace);
}

static void *late_thread(void *arg)
{
    (void)arg;
    sw_thread_name("late");
    for (int i = 0; i < 100; i++) {
        SW_SECTION("late section") {
            ru_spin(10);
        }
    }
    return NULL;
}

/* Once events fill their memory there still is room for names, threads, statistics and steps. */
static void test_statistics_when_memory_is_full(void **state)
{
    (void)state;
    const char *const policies[] = {"ring", "drop", "stream", "auto"};
    for (size_t i = 0; i < 4; i++) {
        pthread_t thread;
        ru_start(
            (sw_config){.policy = policies[i], .max_mb = 4, .out = ru_path(policies[i])});
        rounds(0, ROUNDS);
        assert_int_equal(pthread_create(&thread, NULL, late_thread, NULL), 0);
        pthread_join(thread, NULL);
        for (int j = 0; j < 200; j++) {
            char name[32];
            snprintf(name, sizeof name, "later %d", j);
            sw_begin(sw_section_get(name));
            ru_spin(1u << j % 20);
            sw_end(sw_section_get(name));
        }
        sw_step_begin();
        sw_step_end();
        struct ru_trace trace = ru_finish();
        check_sums(&trace, 2 * ROUNDS + 100 + 200);
        assert_int_equal(trace.info->nodes_folded, 0);
        assert_int_equal(trace.info->hist_missed, 0);
        for (int j = 0; j < 200; j++) {
            char name[32];
            snprintf(name, sizeof name, "later %d", j);
            assert_int_equal(ru_calls(&trace, name), 1);
        }
        const sw_trace_lane *lane = ru_lane(&trace, 1, 0);
        assert_int_equal(ru_find(&trace, lane, "late section")->calls, 100);
        assert_int_equal(ru_count(&trace, STEPS), 1);
        ru_free(&trace);
    }
}

/* Many step records and many names have their part of the cap too. */
static void test_cap_with_steps_and_names(void **state)
{
    (void)state;
    const char *const policies[] = {"ring", "drop", "stream", "auto"};
    for (size_t i = 0; i < 4; i++) {
        ru_start((sw_config){.policy = policies[i],
                             .max_mb = 4,
                             .step_usage = SW_OFF,
                             .out = ru_path(policies[i])});
        for (int j = 0; j < 20000; j++) {
            sw_step_begin();
            rounds(0, 5);
            sw_step_end();
        }
        struct ru_trace trace = ru_finish();
        check_sums(&trace, 20000 * 10);
        assert_int_equal(ru_lane(&trace, 0, 0)->steps, 20000);
        assert_int_equal(ru_count(&trace, STEPS) + trace.info->steps_dropped, 20000);
        ru_free(&trace);
    }
}

/* Steps that a schedule names are kept, though they are neither the first nor the last nor the slowest. */
static void test_scheduled_steps_are_kept(void **state)
{
    (void)state;
    ru_start((sw_config){.max_mb = 16,
                         .keep_first = 1,
                         .keep_last = 1,
                         .keep_worst = 1,
                         .schedule = "steps=20,40",
                         .step_usage = SW_OFF});
    for (int i = 0; i < 3000; i++) {
        sw_step_begin();
        rounds(0, i == 20 || i == 40 ? 5000 : 10);
        if (i == 100) {
            ru_spin(30000000); /* the slowest */
        }
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->present, 2 * 2 * 5000);
    assert_int_equal(trace.info->overwritten, 0);
    ru_free(&trace);
}

#define PAST 20000

static void *tell_the_past(void *arg)
{
    const uint32_t *id = arg;
    sw_thread_name("teller");
    for (uint64_t i = 0; i < PAST; i++) {
        const sw_record_mark mark = {
            .head = {.kind = SW_RECORD_MARK, .units = 1, .id = *id, .ticks = sw_now()}};
        sw_record_put_past(&mark.head);
    }
    return NULL;
}

/* So is what is told afterwards, whatever the schedule says of the present. */
static void test_the_past_is_kept(void **state)
{
    (void)state;
    static const char *const schedules[] = {"always", "steps=1000000"};
    for (size_t i = 0; i < 2; i++) {
        pthread_t thread;
        ru_start((sw_config){.max_mb = 16,
                             .keep_first = 1,
                             .keep_last = 1,
                             .keep_worst = 1,
                             .schedule = schedules[i],
                             .out = ru_path(schedules[i]),
                             .step_usage = SW_OFF});
        uint32_t id = sw_name("past", 4);
        for (int step = 0; step < 2000; step++) {
            sw_step_begin();
            rounds(0, 50);
            if (step == 10) {
                assert_int_equal(pthread_create(&thread, NULL, tell_the_past, &id), 0);
                assert_int_equal(pthread_join(thread, NULL), 0);
            }
            sw_step_end();
        }
        struct ru_trace trace = ru_finish();
        assert_int_equal(ru_count(&trace, 1u << SW_RECORD_MARK), PAST);
        check_sums(&trace, PAST + (i ? 0 : 2000 * 100));
        ru_free(&trace);
    }
    /* Where there are no events at all, there is no past either. */
    ru_start((sw_config){.events = SW_OFF, .out = ru_path("totals")});
    uint32_t id = sw_name("past", 4);
    tell_the_past(&id);
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->present, 0);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_ring),
        ru_test(test_ring_with_steps),
        ru_test(test_drop),
        ru_test(test_drop_with_steps),
        ru_test(test_stream_below_the_cap),
        ru_test(test_stream_beyond_the_cap),
        ru_test(test_no_cap),
        ru_test(test_four_threads_are_counted),
        ru_test(test_auto),
        ru_test(test_auto_in_little_memory),
        ru_test(test_auto_without_steps),
        ru_test(test_statistics_when_memory_is_full),
        ru_test(test_cap_with_steps_and_names),
        ru_test(test_scheduled_steps_are_kept),
        ru_test(test_the_past_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
