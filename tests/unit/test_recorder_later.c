/* Steps that are noted and told later: they are what they would have been, whoever looks and whenever. */
#include "recorder_util.h"

#include <pthread.h>
#include <signal.h>
#include <stepwatch/later.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS (1u << SW_RECORD_STEP)
#define SPANS (1u << SW_RECORD_SPAN)
#define UNIT (SW_STEP_BATCH | SW_STEP_BRIEF)

static sw_section *wait_section(void)
{
    return sw_section_get_n("data_wait", 9, SW_PHASE_DATA_WAIT);
}

/* Nothing is due but what the tests do. */
static void start(void)
{
    ru_start((sw_config){.step_usage = SW_OFF});
}

/* A step in brief is open, and steps may be noted. */
static sw_later *begin(void)
{
    sw_step_next(UNIT);
    sw_later *later = sw_later_open(wait_section(), SW_STEP_BATCH);
    ru_must(later != NULL);
    return later;
}

/* What a question for a batch is, and an update: noted where that may be. Returns how long it waited, in ticks. */
static uint64_t batch(sw_later *later)
{
    const uint64_t begun = sw_now();
    if (!sw_later_step(later, begun, true)) {
        sw_step_next(UNIT);
        sw_begin(wait_section());
        ru_spin(1000);
        sw_end(wait_section());
        sw_update();
        return 0;
    }
    ru_spin(1000);
    const uint64_t ended = sw_now();
    ru_must(sw_later_waited(later, ended));
    ru_must(sw_later_update(later));
    return ended - begun;
}

/* Steps follow one another, each in brief, with a wait and an update. */
static void check(const struct ru_trace *trace, size_t count, size_t first)
{
    struct ru_records steps = ru_read(trace, STEPS);
    assert_int_equal(steps.count, count);
    for (size_t i = 0; i < count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, i);
        assert_int_equal(step->unit, SW_STEP_BATCH);
        assert_true(step->head.flags & SW_STEP_BRIEF);
        if (i > 0) {
            assert_true(step->head.ticks == steps.at[i - 1].record->step.end);
        }
        assert_int_equal(step->phase_ticks[SW_PHASE_DATA_WAIT] >= 1000, i >= first);
        assert_int_equal(step->phase_ticks[SW_PHASE_DATA_WAIT] +
                             step->phase_ticks[SW_PHASE_LOGGING] +
                             step->phase_ticks[SW_PHASE_OTHER],
                         step->end - step->head.ticks);
    }
    ru_records_free(&steps);
}

static void test_they_are_told(void **state)
{
    (void)state;
    uint64_t waited[100], all = 0;
    start();
    sw_later *later = begin();
    for (unsigned i = 0; i < 100; i++) {
        waited[i] = batch(later);
        all += waited[i] != 0;
        assert_int_equal(sw_step_number(), i + 1);
    }
    assert_int_equal(all, 100); /* Each was told when its number was asked for. */
    sw_step_end();
    struct ru_trace trace = ru_finish();
    check(&trace, 101, 1);
    assert_int_equal(ru_lane(&trace, 0, 0)->updates, 100);
    assert_int_equal(ru_calls(&trace, "data_wait"), 100);
    struct ru_records spans = ru_read(&trace, SPANS);
    assert_int_equal(spans.count, 100);
    for (size_t i = 0; i < 100; i++) {
        const sw_record_span *span = &spans.at[i].record->span;
        assert_true(span->end - span->head.ticks == waited[i]);
    }
    ru_records_free(&spans);
    ru_free(&trace);
}

static void test_there_is_room_for_some(void **state)
{
    (void)state;
    start();
    sw_later *later = begin();
    unsigned noted = 0;
    while (batch(later)) {
        noted++;
        assert_true(noted < 1000);
    }
    assert_true(noted >= 8);
    /* Telling has made room. */
    for (unsigned i = 0; i < noted; i++) {
        assert_true(batch(later) != 0);
    }
    assert_true(batch(later) == 0);
    assert_true(batch(later) != 0);
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 2 * noted + 4);
    assert_true(steps.at[2 * noted + 3].record->step.head.flags & SW_STEP_INCOMPLETE);
    ru_records_free(&steps);
    assert_int_equal(ru_lane(&trace, 0, 0)->updates, 2 * noted + 3);
    ru_free(&trace);
}

/* Sections, counters and marks between notes are of the step that they were in. */
static void test_other_things_in_between(void **state)
{
    (void)state;
    sw_section *logging = sw_section_get_n("log", 3, SW_PHASE_LOGGING);
    sw_section *plain = sw_section_get("plain");
    start();
    sw_later *later = begin();
    for (unsigned i = 0; i < 30; i++) {
        assert_true(batch(later) != 0);
        if (i % 3 == 0) {
            sw_begin(logging);
            ru_spin(500);
            sw_end(logging);
        } else if (i % 3 == 1) {
            sw_counter("loss", i);
            assert_int_equal(sw_section_depth(), 0);
        }
    }
    /* One that is open over several steps. */
    sw_begin(plain);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(batch(later) != 0);
    }
    sw_end(plain);
    assert_true(batch(later) != 0);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    check(&trace, 37, 1);
    struct ru_records steps = ru_read(&trace, STEPS);
    for (size_t i = 0; i < 30; i++) {
        const uint64_t *ticks = steps.at[i + 1].record->step.phase_ticks;
        assert_int_equal(ticks[SW_PHASE_LOGGING] >= 500, i % 3 == 0);
    }
    ru_records_free(&steps);
    assert_int_equal(ru_calls(&trace, "data_wait"), 31);
    assert_int_equal(ru_calls(&trace, "plain/data_wait"), 5);
    assert_int_equal(ru_calls(&trace, "log"), 10);
    ru_free(&trace);
}

/* A section that begins while a wait is noted is within the wait. */
static void test_within_a_wait(void **state)
{
    (void)state;
    sw_section *inner = sw_section_get("reading");
    start();
    sw_later *later = begin();
    assert_true(sw_later_step(later, sw_now(), true));
    assert_int_equal(sw_section_depth(), 1);
    sw_begin(inner);
    sw_end(inner);
    assert_false(sw_later_waited(later, sw_now())); /* The recorder has been told. */
    sw_end(wait_section());
    /* And one that begins none: a wait in the middle of a step. */
    assert_true(sw_later_wait(later, sw_now()));
    assert_true(sw_later_waited(later, sw_now()));
    assert_true(sw_later_wait(later, sw_now()));
    assert_true(sw_later_waited(later, sw_now()));
    sw_step_end();
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_count(&trace, STEPS), 2);
    assert_int_equal(ru_calls(&trace, "data_wait"), 3);
    assert_int_equal(ru_calls(&trace, "data_wait/reading"), 1);
    ru_free(&trace);
}

static void test_where_nothing_is_noted(void **state)
{
    (void)state;
    assert_null(sw_later_open(wait_section(), SW_STEP_BATCH)); /* not recording */
    sw_later_close();
    start();
    assert_null(sw_later_open(wait_section(), SW_STEP_BATCH)); /* no step */
    sw_step_next(SW_STEP_BATCH);
    assert_null(sw_later_open(wait_section(), SW_STEP_BATCH)); /* looked at in full */
    sw_step_brief();
    assert_null(sw_later_open(wait_section(), SW_STEP_LOOP)); /* another unit */
    sw_later *later = sw_later_open(wait_section(), SW_STEP_BATCH);
    assert_non_null(later);
    assert_true(sw_later_step(later, sw_now(), false));
    sw_later_close();
    assert_false(sw_later_step(later, sw_now(), false));
    assert_false(sw_later_wait(later, sw_now()));
    assert_false(sw_later_waited(later, sw_now()));
    assert_false(sw_later_update(later));
    later = sw_later_open(wait_section(), SW_STEP_BATCH);
    assert_true(sw_later_step(later, sw_now(), true));
    assert_true(sw_later_waited(later, sw_now()));
    struct ru_trace trace = ru_finish();
    assert_false(sw_later_step(later, sw_now(), false)); /* The recording is over. */
    assert_false(sw_later_update(later));
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 3);
    assert_true(steps.at[2].record->step.head.flags & SW_STEP_INCOMPLETE);
    ru_records_free(&steps);
    ru_free(&trace);
    /* With a schedule each step has to be told at once. */
    ru_start((sw_config){.out = ru_path("second"), .schedule = "every=2"});
    sw_step_next(UNIT);
    assert_null(sw_later_open(wait_section(), SW_STEP_BATCH));
    trace = ru_finish();
    ru_free(&trace);
}

/* What the thread uses is read where it is due: that step is told at once. */
static void test_usage_is_read(void **state)
{
    (void)state;
    unsigned noted = 0, told = 0;
    ru_start((sw_config){0});
    sw_step_next(UNIT);
    const uint64_t begun = sw_now();
    sw_later *later = NULL;
    sw_clock_snapshot first, now;
    sw_clock_snap(&first);
    do {
        if (!later || batch(later) == 0) {
            told += later != NULL;
            sw_step_next(UNIT);
            later = sw_later_open(wait_section(), SW_STEP_BATCH);
            assert_non_null(later);
        } else {
            noted++;
        }
        usleep(1000);
        sw_clock_snap(&now);
    } while (now.mono_ns - first.mono_ns < 400u * 1000 * 1000);
    assert_true(sw_now() > begun && noted > told && told > 1);
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    uint64_t with = 0, steps_of = 0;
    for (size_t i = 0; i < steps.count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        with += step->usage_steps != 0;
        steps_of += step->usage_steps;
    }
    assert_true(with > 0);
    assert_in_range(steps_of, steps.count / 2, steps.count);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* What another thread sees. */
static void test_a_look_from_outside(void **state)
{
    (void)state;
    sw_peek seen;
    const uint32_t tid = (uint32_t)syscall(SYS_gettid);
    start();
    sw_later *later = begin();
    for (unsigned i = 0; i < 5; i++) {
        assert_true(batch(later) != 0);
    }
    assert_int_equal(sw_peek_thread(tid, true, &seen), 0);
    assert_int_equal(seen.step, 5);
    assert_int_equal(seen.phase, SW_PHASE_BRIEF);
    assert_int_equal(seen.section, 0);
    assert_true(sw_later_step(later, sw_now(), true));
    assert_int_equal(sw_peek_thread(tid, true, &seen), 0);
    assert_int_equal(sw_peek_thread(tid, true, &seen), 0);
    assert_int_equal(seen.step, 6);
    assert_int_equal(seen.phase, SW_PHASE_DATA_WAIT);
    char name[32];
    (void)sw_name_text(seen.section, name, sizeof name);
    assert_string_equal(name, "data_wait");
    assert_true(sw_later_waited(later, sw_now()));
    assert_int_equal(sw_peek_thread(tid, false, &seen), 0);
    assert_int_equal(seen.phase, SW_PHASE_BRIEF);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    for (size_t i = 0; i < steps.count; i++) {
        const unsigned samples = steps.at[i].record->step.samples;
        assert_int_equal(samples, i == 5 ? 1 : i == 6 ? 2 : 0);
    }
    assert_int_equal(steps.count, 7);
    ru_records_free(&steps);
    ru_free(&trace);
}

static void check_read(sw_trace *trace, enum sw_trace_end end, uint64_t noted)
{
    const sw_trace_info *info = sw_trace_get_info(trace);
    const sw_trace_lane *lane = sw_trace_get_lane(trace, 0);
    assert_int_equal(info->end, end);
    assert_false(info->damaged);
    assert_int_equal(lane->steps, noted + 1);
    assert_int_equal(lane->updates, noted);
    assert_true(lane->step_open);
    assert_int_equal(lane->step_open_number, noted + 1);
    uint64_t sum = 0;
    for (unsigned i = 0; i < SW_PHASE_SLOTS; i++) {
        sum += lane->phase_ns[i];
    }
    assert_true(sum == lane->step_total_ns && lane->phase_ns[SW_PHASE_DATA_WAIT] > 0);
    sw_histogram *all = sw_histogram_create(), *waits = sw_histogram_create();
    assert_true(all && waits);
    assert_int_equal(sw_trace_step_histogram(trace, 0, all), 0);
    assert_int_equal(sw_histogram_count(all), noted + 1);
    sw_cursor *cursor;
    const sw_cursor_filter filter = {.kinds = STEPS | SPANS};
    assert_int_equal(sw_cursor_open(&cursor, &trace, 1, &filter, NULL), 0);
    uint64_t steps = 0, spans = 0;
    for (sw_event event; sw_cursor_next(cursor, &event) == 0;) {
        const sw_record_step *step = (const sw_record_step *)event.record;
        if (event.record->kind == SW_RECORD_STEP) {
            assert_true(step->number == steps++);
            assert_true(step->head.flags & SW_STEP_BRIEF);
        } else {
            spans++;
        }
    }
    sw_cursor_free(cursor);
    assert_int_equal(steps, noted + 1);
    for (uint32_t i = 1; i < lane->node_count; i++) {
        if (lane->nodes[i].calls) {
            /* One is open: its batch has not come. */
            assert_int_equal(lane->nodes[i].calls, noted);
            assert_int_equal(lane->nodes[i].open, 1);
            assert_int_equal(sw_trace_node_histogram(trace, 0, i, waits), 0);
        }
    }
    assert_int_equal(spans, noted);
    assert_int_equal(sw_histogram_count(waits), noted);
    sw_histogram_free(all);
    sw_histogram_free(waits);
}

enum { NOTED = 12 };

static void record_some(void)
{
    sw_later *later = begin();
    for (unsigned i = 0; i < NOTED; i++) {
        ru_must(batch(later) != 0);
    }
    ru_must(sw_later_step(later, sw_now(), true));
}

static void test_who_reads_a_process_that_runs(void **state)
{
    (void)state;
    char path[1100];
    sw_trace *trace;
    sw_glance *glance;
    sw_glance_steps seen;
    start();
    record_some();
    assert_true(sw_trace_path(path, sizeof path) < sizeof path);
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    check_read(trace, SW_TRACE_RUNNING, NOTED);
    sw_trace_free(trace);
    assert_int_equal(sw_glance_open(&glance, path), 0);
    assert_int_equal(sw_glance_read(glance, &seen), 0);
    assert_int_equal(seen.steps, NOTED + 1);
    assert_true(seen.open && seen.phase_ticks[SW_PHASE_DATA_WAIT] > 0);
    sw_glance_free(glance);
    struct ru_trace closed = ru_finish();
    assert_int_equal(ru_lane(&closed, 0, 0)->steps, NOTED + 2);
    ru_free(&closed);
}

static void be_killed(void *path)
{
    int *to = path;
    char text[1100] = "";
    start();
    record_some();
    ru_must(sw_trace_path(text, sizeof text) < sizeof text);
    ru_must(write(*to, text, sizeof text) == (ssize_t)sizeof text);
    raise(SIGKILL);
}

static void test_a_process_that_is_killed(void **state)
{
    (void)state;
    int ends[2], status;
    char path[1100];
    sw_trace *trace;
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        be_killed(&ends[1]);
    }
    assert_int_equal(read(ends[0], path, sizeof path), sizeof path);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    close(ends[0]);
    close(ends[1]);
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    check_read(trace, SW_TRACE_KILLED, NOTED);
    sw_trace_free(trace);
    sw_fold_result folded;
    assert_int_equal(sw_store_fold(path, &folded, NULL), 0);
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    check_read(trace, SW_TRACE_KILLED, NOTED);
    sw_trace_free(trace);
}

/* The thread ends, or another one ends the recording, while steps are noted. */
static void *on_a_thread(void *arg)
{
    int *step = arg;
    record_some();
    __atomic_store_n(step, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(step, __ATOMIC_ACQUIRE) == 1) {
        usleep(1000);
    }
    return NULL;
}

static void threads(bool ends_first)
{
    pthread_t thread;
    int step = 0;
    start();
    assert_int_equal(pthread_create(&thread, NULL, on_a_thread, &step), 0);
    while (__atomic_load_n(&step, __ATOMIC_ACQUIRE) == 0) {
        usleep(1000);
    }
    char path[1100];
    assert_true(sw_trace_path(path, sizeof path) < sizeof path);
    if (ends_first) {
        __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
        pthread_join(thread, NULL);
        struct ru_trace trace = ru_finish();
        assert_int_equal(ru_lane(&trace, 0, 0)->steps, NOTED + 2);
        assert_int_equal(ru_lane(&trace, 0, 0)->updates, NOTED);
        ru_free(&trace);
        return;
    }
    sw_shutdown();
    sw_trace *trace;
    assert_int_equal(sw_trace_open(&trace, path, NULL), 0);
    check_read(trace, SW_TRACE_CLOSED, NOTED);
    sw_trace_free(trace);
    __atomic_store_n(&step, 2, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
}

static void test_a_thread_that_ends(void **state)
{
    (void)state;
    threads(true);
}

static void test_a_recording_that_others_end(void **state)
{
    (void)state;
    threads(false);
}

/* A child has what its parent noted in no way. */
static void in_the_child(void *arg)
{
    sw_later *later = arg;
    ru_must(!sw_later_step(later, sw_now(), true));
    ru_must(!sw_later_update(later));
    sw_step_next(UNIT);
    sw_step_end();
}

static void test_a_fork(void **state)
{
    (void)state;
    start();
    sw_later *later = begin();
    assert_true(batch(later) != 0);
    ru_child(in_the_child, later);
    assert_true(batch(later) != 0);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    check(&trace, 3, 1);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_they_are_told),
        ru_test(test_there_is_room_for_some),
        ru_test(test_other_things_in_between),
        ru_test(test_within_a_wait),
        ru_test(test_where_nothing_is_noted),
        ru_test(test_usage_is_read),
        ru_test(test_a_look_from_outside),
        ru_test(test_who_reads_a_process_that_runs),
        ru_test(test_a_process_that_is_killed),
        ru_test(test_a_thread_that_ends),
        ru_test(test_a_recording_that_others_end),
        ru_test(test_a_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
