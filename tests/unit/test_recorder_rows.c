/* Tables of rows, and a look at other threads: what samplers and profilers need of the recorder. */
#include "recorder_util.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STEPS (1u << SW_RECORD_STEP)

static sw_row row_of(unsigned table, uint32_t key, uint64_t value)
{
    return (sw_row){.table = (uint16_t)table,
                    .key = {key, key + 1, key + 2, key + 3},
                    .value = {value, value + 1, value + 2, value + 3, value + 4}};
}

static void is_row(const sw_trace *trace, unsigned table, uint32_t index, uint32_t key,
                   uint64_t value)
{
    const sw_row *row = sw_trace_get_row(trace, (enum sw_table)table, index);
    sw_row expected = row_of(table, key, value);
    expected.index = index;
    assert_non_null(row);
    assert_memory_equal(row, &expected, sizeof expected);
}

/* The recorder itself says in one row what memory the process has. */
static uint32_t own_rows(unsigned table)
{
    return table == SW_TABLE_MEMORY;
}

static void test_rows_come_back(void **state)
{
    (void)state;
    uint64_t handles[SW_TABLES];
    ru_start((sw_config){0});
    assert_true(sw_recording_number() > 0);
    for (unsigned table = 0; table < SW_TABLES; table++) {
        for (uint32_t i = 0; i < 300; i++) {
            sw_row row = row_of(table, i, i);
            row.index = 77; /* filled in */
            handles[table] = sw_row_put(0, &row);
            assert_true(handles[table] != 0);
            assert_int_equal(row.index, i + own_rows(table));
        }
    }
    /* Changed in place: flags and values, and nothing else. */
    for (unsigned table = 0; table < SW_TABLES; table++) {
        sw_row row = row_of(table, 12345, 1000 + table);
        row.flags = 1;
        assert_true(sw_row_put(handles[table], &row) == handles[table]);
        assert_int_equal(row.index, 299 + own_rows(table));
    }
    struct ru_trace trace = ru_finish();
    for (unsigned table = 0; table < SW_TABLES; table++) {
        const uint32_t own = own_rows(table);
        assert_int_equal(sw_trace_row_count(trace.trace, (enum sw_table)table),
                         300 + own);
        for (uint32_t i = 0; i < 299; i++) {
            is_row(trace.trace, table, i + own, i, i);
        }
        const sw_row *last =
            sw_trace_get_row(trace.trace, (enum sw_table)table, 299 + own);
        assert_int_equal(last->flags, 1);
        assert_int_equal(last->key[0], 299);
        for (unsigned i = 0; i < 5; i++) {
            assert_int_equal(last->value[i], 1000 + table + i);
        }
    }
    ru_free(&trace);
}

static void test_no_recording(void **state)
{
    (void)state;
    sw_row row = row_of(SW_TABLE_CODE, 1, 1);
    assert_int_equal(sw_recording_number(), 0);
    assert_true(sw_row_put(0, &row) == 0);
    assert_true(sw_row_put(UINT64_MAX, &row) == 0);
    ru_start((sw_config){0});
    assert_true(sw_row_put(0, NULL) == 0);
    row.table = SW_TABLES;
    assert_true(sw_row_put(0, &row) == 0);
    row.table = UINT16_MAX;
    assert_true(sw_row_put(0, &row) == 0);
    struct ru_trace trace = ru_finish();
    for (unsigned table = 0; table < SW_TABLES; table++) {
        assert_int_equal(sw_trace_row_count(trace.trace, (enum sw_table)table),
                         own_rows(table));
    }
    ru_free(&trace);
}

/* A handle of an earlier recording makes a new row; the table begins anew. */
static void test_a_second_recording(void **state)
{
    (void)state;
    uint64_t handles[3];
    ru_start((sw_config){.out = ru_path("first")});
    uint32_t number = sw_recording_number();
    for (uint32_t i = 0; i < 3; i++) {
        sw_row row = row_of(SW_TABLE_STACK, i, i);
        handles[i] = sw_row_put(0, &row);
    }
    struct ru_trace first = ru_finish();
    sw_row row = row_of(SW_TABLE_STACK, 9, 9);
    assert_true(sw_row_put(handles[2], &row) == 0);

    ru_start((sw_config){.out = ru_path("second")});
    assert_true(sw_recording_number() != number && sw_recording_number() != 0);
    row = row_of(SW_TABLE_STACK, 50, 5);
    uint64_t handle = sw_row_put(handles[2], &row);
    assert_true(handle != 0 && handle != handles[2]);
    assert_int_equal(row.index, 0);
    row = row_of(SW_TABLE_STACK, 50, 6);
    assert_true(sw_row_put(handle, &row) == handle);
    struct ru_trace second = ru_finish();
    assert_int_equal(sw_trace_row_count(first.trace, SW_TABLE_STACK), 3);
    is_row(first.trace, SW_TABLE_STACK, 2, 2, 2);
    assert_int_equal(sw_trace_row_count(second.trace, SW_TABLE_STACK), 1);
    is_row(second.trace, SW_TABLE_STACK, 0, 50, 6);
    ru_free(&first);
    ru_free(&second);
}

/* Rows until there is no room: those that were taken are there, the rest is refused, and handles keep working. */
static void test_no_room(void **state)
{
    (void)state;
    sw_section *section = sw_section_get("before");
    ru_start((sw_config){.max_mb = 4, .policy = "drop"});
    sw_begin(section);
    sw_end(section);
    uint64_t first = 0;
    uint32_t kept = 0;
    for (; kept < 1u << 20; kept++) {
        sw_row row = row_of(SW_TABLE_STACK, kept, kept);
        uint64_t handle = sw_row_put(0, &row);
        if (handle == 0) {
            break;
        }
        assert_int_equal(row.index, kept);
        first = first ? first : handle;
    }
    assert_true(kept > 1000 && kept < 1u << 20);
    sw_row row = row_of(SW_TABLE_CODE, 0, 0);
    assert_true(sw_row_put(0, &row) == 0);
    row = row_of(SW_TABLE_STACK, 0, 4711);
    assert_true(sw_row_put(first, &row) == first);
    /* Statistics still have room: rows leave some of what is set aside for them. */
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "after %c%c", 'a' + i / 20, 'a' + i % 20);
        sw_section *after = sw_section_get(name);
        sw_begin(after);
        sw_end(after);
    }
    sw_begin(section);
    sw_end(section);
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->nodes_folded + trace.info->names_folded, 0);
    assert_int_equal(ru_calls(&trace, "after aa"), 1);
    assert_int_equal(ru_calls(&trace, "after jt"), 1);
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_STACK), kept);
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_CODE), 0);
    is_row(trace.trace, SW_TABLE_STACK, 0, 0, 4711);
    for (uint32_t i = 1; i < kept; i++) {
        is_row(trace.trace, SW_TABLE_STACK, i, i, i);
    }
    assert_int_equal(ru_calls(&trace, "before"), 2);
    ru_free(&trace);
}

#define THREADS 4
#define ROWS 2000

static void *put_rows(void *arg)
{
    uint32_t number = *(uint32_t *)arg;
    for (uint32_t i = 0; i < ROWS; i++) {
        sw_row row = row_of(number % 2 ? SW_TABLE_LINE : SW_TABLE_STACK, 0, 0);
        uint64_t handle = sw_row_put(0, &row);
        row = row_of(row.table, 0, (uint64_t)number << 32 | i);
        (void)sw_row_put(handle, &row);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    uint32_t numbers[THREADS];
    ru_start((sw_config){0});
    for (uint32_t i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, put_rows, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct ru_trace trace = ru_finish();
    for (unsigned table = SW_TABLE_LINE; table <= SW_TABLE_STACK; table += 2) {
        uint32_t next[THREADS] = {0};
        size_t count = sw_trace_row_count(trace.trace, (enum sw_table)table);
        assert_int_equal(count, THREADS / 2 * ROWS);
        for (size_t i = 0; i < count; i++) { /* each thread's in its own order */
            const sw_row *row = sw_trace_get_row(trace.trace, (enum sw_table)table, i);
            assert_non_null(row);
            uint32_t number = (uint32_t)(row->value[0] >> 32);
            assert_true(number < THREADS);
            assert_int_equal((uint32_t)row->value[0], next[number]++);
        }
    }
    ru_free(&trace);
}

/* A forked child has tables of its own. */
static void test_fork(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sw_row row = row_of(SW_TABLE_CODE, 1, 100);
    uint64_t handle = sw_row_put(0, &row);
    row = row_of(SW_TABLE_CODE, 2, 200);
    assert_true(sw_row_put(0, &row) != 0);
    pid_t child = fork();
    if (child == 0) {
        sw_section *section = sw_section_get("child");
        sw_begin(section);
        sw_end(section);
        row = row_of(SW_TABLE_CODE, 3, 300);
        handle = sw_row_put(handle, &row);
        sw_shutdown();
        _Exit(handle != 0 && row.index == 0 ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    row = row_of(SW_TABLE_CODE, 1, 101);
    assert_true(sw_row_put(handle, &row) == handle);
    sw_shutdown();
    sw_run *run;
    assert_int_equal(sw_run_open(&run, ru_path("run"), NULL), 0);
    assert_int_equal(sw_run_count(run), 2);
    for (size_t i = 0; i < 2; i++) {
        sw_trace *trace = sw_run_trace(run, i);
        if (sw_trace_get_info(trace)->pid == (uint32_t)getpid()) {
            assert_int_equal(sw_trace_row_count(trace, SW_TABLE_CODE), 2);
            is_row(trace, SW_TABLE_CODE, 0, 1, 101);
            is_row(trace, SW_TABLE_CODE, 1, 2, 200);
        } else {
            assert_int_equal(sw_trace_row_count(trace, SW_TABLE_CODE), 1);
            is_row(trace, SW_TABLE_CODE, 0, 3, 300);
        }
    }
    sw_run_free(run);
}

/* --- a look at other threads --- */

struct sampled {
    _Atomic int at, allowed; /* how far it is, and how far it may go */
    uint32_t tid;
};

static void pause_at(struct sampled *sampled, int place)
{
    atomic_store(&sampled->at, place);
    while (atomic_load(&sampled->allowed) < place) {
        usleep(100);
    }
}

static void look_at(struct sampled *sampled, int place)
{
    while (atomic_load(&sampled->at) < place) {
        usleep(100);
    }
}

static void *be_sampled(void *arg)
{
    struct sampled *sampled = arg;
    sw_section *outer = sw_section_get("outer");
    sw_section *forward = sw_section_get("forward");
    sw_section *wait = sw_section_get("data_wait");
    sampled->tid = (uint32_t)syscall(SYS_gettid);
    pause_at(sampled, 1); /* has recorded nothing */
    sw_begin(outer);
    pause_at(sampled, 2); /* in a section, outside steps */
    sw_step_begin();
    pause_at(sampled, 3); /* in a step */
    sw_begin(forward);
    pause_at(sampled, 4); /* in a section with a phase */
    sw_end(forward);
    sw_step_end();
    sw_step_begin();
    sw_step_brief();
    pause_at(sampled, 5); /* in a step that is watched in brief */
    sw_begin(wait);
    pause_at(sampled, 6); /* in a phase that is measured there */
    sw_end(wait);
    sw_step_end();
    sw_end(outer);
    pause_at(sampled, 7); /* in nothing */
    return NULL;
}

static void test_peek(void **state)
{
    (void)state;
    struct sampled sampled = {0};
    sw_peek peek = {.thread = 5};
    assert_int_equal(sw_thread_adopt((uint32_t)syscall(SYS_gettid)), SW_ENOTFOUND);
    assert_int_equal(sw_peek_thread((uint32_t)syscall(SYS_gettid), true, &peek),
                     SW_ENOTFOUND);
    assert_int_equal(peek.thread, UINT32_MAX);
    ru_start((sw_config){0});
    pthread_t thread;
    pthread_create(&thread, NULL, be_sampled, &sampled);

    look_at(&sampled, 1);
    assert_int_equal(sw_peek_thread(sampled.tid, false, &peek), SW_ENOTFOUND);
    assert_int_equal(peek.thread, UINT32_MAX);
    assert_int_equal(peek.phase, SW_PHASE_INHERIT);
    assert_int_equal(peek.step, -1);
    /* It gets a place before it records, and keeps it when it does. */
    assert_int_equal(sw_thread_adopt(sampled.tid), 0);
    assert_int_equal(sw_thread_adopt(sampled.tid), 0);
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), 0);
    const uint32_t index = peek.thread;
    assert_true(index != UINT32_MAX);
    assert_int_equal(peek.section, 0);
    assert_int_equal(peek.step, -1);
    atomic_store(&sampled.allowed, 1);

    look_at(&sampled, 2);
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), 0);
    const uint32_t outer = peek.section;
    assert_int_equal(peek.thread, index);
    assert_true(outer != 0);
    assert_int_equal(peek.phase, SW_PHASE_INHERIT);
    assert_int_equal(peek.step, -1);
    assert_true(peek.node != 0);
    atomic_store(&sampled.allowed, 2);

    look_at(&sampled, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(sw_peek_thread(sampled.tid, i < 2, &peek), 0);
        assert_int_equal(peek.phase, SW_PHASE_OTHER);
        assert_int_equal(peek.step, 0);
        assert_int_equal(peek.section, outer);
        assert_int_equal(peek.thread, index);
    }
    atomic_store(&sampled.allowed, 3);

    look_at(&sampled, 4);
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), 0);
    assert_int_equal(peek.phase, SW_PHASE_FORWARD);
    const uint32_t forward = peek.section;
    assert_true(forward != outer && forward != 0);
    atomic_store(&sampled.allowed, 4);

    for (int i = 5; i < 7; i++) {
        look_at(&sampled, i);
        assert_int_equal(sw_peek_thread(sampled.tid, false, &peek), 0);
        assert_int_equal(peek.phase, i == 5 ? SW_PHASE_BRIEF : SW_PHASE_DATA_WAIT);
        assert_int_equal(peek.step, 1);
        atomic_store(&sampled.allowed, i);
    }

    look_at(&sampled, 7);
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), 0);
    assert_int_equal(peek.section, 0);
    assert_int_equal(peek.node, 0);
    assert_int_equal(peek.step, -1);
    atomic_store(&sampled.allowed, 7);
    pthread_join(thread, NULL);
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), SW_ENOTFOUND);
    assert_int_equal(sw_peek_thread(0, true, &peek), SW_ENOTFOUND);

    struct ru_trace trace = ru_finish();
    assert_string_equal(ru_name(&trace, outer), "outer");
    assert_string_equal(ru_name(&trace, forward), "forward");
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 2);
    assert_int_equal(steps.at[0].thread, index);
    assert_int_equal(steps.at[0].record->step.samples, 3);
    assert_int_equal(steps.at[1].record->step.samples, 0);
    assert_int_equal(steps.at[0].record->head.flags & SW_STEP_BRIEF, 0);
    assert_int_equal(steps.at[1].record->head.flags & SW_STEP_BRIEF, SW_STEP_BRIEF);
    ru_records_free(&steps);
    ru_free(&trace);
}

struct churn {
    _Atomic uint32_t tid;
    _Atomic bool stop;
};

static void *churn_inner(void *arg)
{
    struct churn *churn = arg;
    sw_section *a = sw_section_get("forward");
    sw_section *b = sw_section_get("deep");
    atomic_store(&churn->tid, (uint32_t)syscall(SYS_gettid));
    for (int i = 0; i < 300; i++) {
        sw_step_begin();
        sw_begin(a);
        sw_begin(b);
        sw_end(b);
        sw_end(a);
        sw_step_end();
    }
    return NULL;
}

static void *wait_for_end(void *arg)
{
    struct sampled *sampled = arg;
    sampled->tid = (uint32_t)syscall(SYS_gettid);
    (void)pthread_setname_np(pthread_self(), "quiet one");
    pause_at(sampled, 1);
    return NULL;
}

/* A thread that never records is in the trace all the same. */
static void test_adopt_only(void **state)
{
    (void)state;
    struct sampled sampled = {0};
    ru_start((sw_config){0});
    pthread_t thread;
    pthread_create(&thread, NULL, wait_for_end, &sampled);
    look_at(&sampled, 1);
    assert_int_equal(sw_thread_adopt(sampled.tid), 0);
    sw_peek peek;
    assert_int_equal(sw_peek_thread(sampled.tid, true, &peek), 0);
    atomic_store(&sampled.allowed, 1);
    pthread_join(thread, NULL);
    struct ru_trace trace = ru_finish();
    const sw_trace_thread *found = sw_trace_get_thread(trace.trace, peek.thread);
    assert_non_null(found);
    assert_string_equal(found->name, "quiet one");
    assert_int_equal(found->tid, sampled.tid);
    assert_int_equal(found->records, 0);
    ru_free(&trace);
}

static void *churn_threads(void *arg)
{
    struct churn *churn = arg;
    while (!atomic_load(&churn->stop)) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, churn_inner, churn) == 0) {
            pthread_join(thread, NULL);
        }
    }
    return NULL;
}

/* Threads come and go while they are looked at: each look gives something that exists, or nothing. */
static void test_peek_while_threads_come_and_go(void **state)
{
    (void)state;
    struct churn churn = {0};
    pthread_t thread;
    unsigned found = 0;
    ru_start((sw_config){0});
    pthread_create(&thread, NULL, churn_threads, &churn);
    for (unsigned i = 0; found < 2000 && i < 4000000; i++) {
        sw_peek peek;
        int result = sw_peek_thread(atomic_load(&churn.tid), true, &peek);
        assert_true(result == 0 || result == SW_ENOTFOUND);
        if (result == 0) {
            found++;
            assert_true(peek.thread != UINT32_MAX);
            assert_true(peek.phase == SW_PHASE_INHERIT || peek.phase < SW_PHASE_COUNT);
            assert_true((peek.phase == SW_PHASE_INHERIT) == (peek.step == -1));
        } else {
            sched_yield(); /* The other one has to get a CPU and the lock. */
        }
    }
    atomic_store(&churn.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(found, 2000);
    struct ru_trace trace = ru_finish();
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_rows_come_back),
        ru_test(test_no_recording),
        ru_test(test_a_second_recording),
        ru_test(test_no_room),
        ru_test(test_many_threads),
        ru_test(test_fork),
        ru_test(test_peek),
        ru_test(test_adopt_only),
        ru_test(test_peek_while_threads_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
