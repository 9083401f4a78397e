/* Threads and domains: every lane is alone with its sections, steps and switch. */
#include "recorder_util.h"

#include <pthread.h>

#define THREADS 4
#define ROUNDS 20000

struct work {
    int number;
    sw_section *shared, *own, *inner;
    pthread_barrier_t *together;
};

static void *record_much(void *arg)
{
    struct work *work = arg;
    char name[16];
    snprintf(name, sizeof name, "worker %d", work->number);
    sw_thread_name(name);
    pthread_barrier_wait(work->together);
    for (int i = 0; i < ROUNDS + work->number; i++) {
        sw_begin(work->shared);
        sw_begin(work->inner);
        sw_end(work->inner);
        sw_end(work->shared);
        sw_begin(work->own);
        sw_end(work->own);
    }
    return NULL;
}

static uint32_t thread_named(const struct ru_trace *trace, const char *name)
{
    for (size_t i = 0; i < sw_trace_thread_count(trace->trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace->trace, i);
        if (strcmp(thread->name, name) == 0) {
            return thread->index;
        }
    }
    fail_msg("there is no thread %s", name);
    return 0;
}

static void test_four_threads(void **state)
{
    (void)state;
    pthread_t threads[THREADS];
    struct work work[THREADS];
    pthread_barrier_t together;
    pthread_barrier_init(&together, NULL, THREADS);
    ru_start((sw_config){.policy = "stream"});
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "own %d", i);
        work[i] = (struct work){i, sw_section_get("shared"), sw_section_get(name),
                                sw_section_get("inner"), &together};
        assert_int_equal(pthread_create(&threads[i], NULL, record_much, &work[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct ru_trace trace = ru_finish();
    uint64_t all = 0;
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        uint64_t rounds = ROUNDS + (uint64_t)i;
        snprintf(name, sizeof name, "worker %d", i);
        uint32_t thread = thread_named(&trace, name);
        const sw_trace_lane *lane = ru_lane(&trace, thread, 0);
        assert_int_equal(ru_find(&trace, lane, "shared")->calls, rounds);
        assert_int_equal(ru_find(&trace, lane, "shared/inner")->calls, rounds);
        assert_null(ru_find(&trace, lane, "inner"));
        for (int j = 0; j < THREADS; j++) {
            snprintf(name, sizeof name, "own %d", j);
            const sw_trace_node *node = ru_find(&trace, lane, name);
            assert_int_equal(node ? node->calls : 0, i == j ? rounds : 0);
        }
        const sw_trace_thread *facts = sw_trace_get_thread(trace.trace, thread);
        assert_false(facts->alive);
        assert_true(facts->end_ns >= facts->start_ns && facts->start_ns > 0);
        assert_int_equal(facts->records, rounds * 3);
        assert_int_equal(facts->incarnations, 1);
        all += rounds * 3;
    }
    assert_int_equal(trace.info->present, all);
    assert_int_equal(trace.info->dropped, 0);

    /* Of each thread the records come in the order of their ends. */
    struct ru_records spans = ru_read(&trace, 0);
    uint64_t last[16] = {0};
    uint64_t before = 0;
    for (size_t i = 0; i < spans.count; i++) {
        const struct ru_record *at = &spans.at[i];
        assert_true(at->end_ns >= before);
        before = at->end_ns;
        assert_true(at->thread < 16 && at->record->span.end >= last[at->thread]);
        last[at->thread] = at->record->span.end;
    }
    ru_records_free(&spans);
    ru_free(&trace);
    pthread_barrier_destroy(&together);
}

static void *begin_two(void *arg)
{
    (void)arg;
    sw_step_begin();
    sw_begin(sw_section_get("left open"));
    sw_begin(sw_section_get("below"));
    return NULL;
}

static void test_thread_ends_with_open_sections(void **state)
{
    (void)state;
    pthread_t thread;
    ru_start((sw_config){0});
    assert_int_equal(pthread_create(&thread, NULL, begin_two, NULL), 0);
    pthread_join(thread, NULL);
    struct ru_trace trace = ru_finish();
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    assert_int_equal(ru_find(&trace, lane, "left open/below")->calls, 1);
    assert_int_equal(lane->open_count, 0);
    assert_int_equal(lane->steps, 1);
    assert_int_equal(lane->steps_incomplete, 1);
    struct ru_records spans = ru_read(&trace, 0);
    assert_int_equal(spans.count, 2);
    assert_true(spans.at[1].record->head.flags & SW_RECORD_CUT);
    ru_records_free(&spans);
    ru_free(&trace);
}

static uint32_t domain_named(const struct ru_trace *trace, const char *name)
{
    for (uint32_t i = 0; i < 64; i++) {
        const char *known = sw_trace_domain_name(trace->trace, i);
        if (known && strcmp(known, name) == 0) {
            return i;
        }
    }
    fail_msg("there is no domain %s", name);
    return 0;
}

static sw_section *in(sw_domain *domain, const char *name)
{
    return sw_domain_section(domain, name, strlen(name), SW_PHASE_INHERIT);
}

static void test_domains_do_not_mix(void **state)
{
    (void)state;
    sw_domain *a = sw_domain_get("domain a");
    sw_domain *b = sw_domain_get("domain b");
    assert_true(a && b && a != b);
    assert_ptr_equal(sw_domain_get("domain a"), a);
    assert_true(in(a, "x") != in(b, "x") && in(a, "x") != sw_section_get("x"));
    assert_ptr_equal(in(a, "x"), in(a, "x"));
    assert_ptr_equal(in(NULL, "x"), sw_section_get_n("x", 1, SW_PHASE_INHERIT));
    ru_start((sw_config){0});
    for (int i = 0; i < 100; i++) {
        sw_domain_step_begin(a, SW_STEP_BATCH);
        sw_begin(in(a, "x"));
        sw_begin(in(b, "x")); /* Open inside the other's, and no child of it. */
        sw_begin(sw_section_get("x"));
        sw_begin(in(b, "y"));
        sw_end(in(a, "x")); /* In its own domain this nests. */
        sw_end(sw_section_get("x"));
        sw_end(in(b, "y"));
        sw_end(in(b, "x"));
        sw_domain_counter(b, "value", 5, i);
        if (i % 2 == 0) {
            sw_domain_step_begin(b, SW_STEP_LOOP);
            sw_domain_step_end(b);
        }
        if (i % 10 == 9) {
            sw_domain_step_abandon(a);
        } else {
            sw_domain_step_end(a);
        }
    }
    struct ru_trace trace = ru_finish();
    uint32_t first = domain_named(&trace, "domain a");
    uint32_t second = domain_named(&trace, "domain b");
    const sw_trace_lane *lane_a = ru_lane(&trace, 0, first);
    const sw_trace_lane *lane_b = ru_lane(&trace, 0, second);
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    assert_int_equal(ru_find(&trace, lane_a, "x")->calls, 100);
    assert_int_equal(ru_find(&trace, lane_a, "x")->unnested, 0);
    assert_int_equal(ru_find(&trace, lane_b, "x")->calls, 100);
    assert_int_equal(ru_find(&trace, lane_b, "x/y")->calls, 100);
    assert_int_equal(ru_find(&trace, lane_b, "value")->calls, 100);
    assert_null(ru_find(&trace, lane_a, "value"));
    assert_int_equal(ru_find(&trace, lane, "x")->calls, 100);
    assert_null(ru_find(&trace, lane_a, "x/x"));
    assert_int_equal(lane_a->steps, 100);
    assert_int_equal(lane_a->steps_incomplete, 10);
    assert_int_equal(lane_b->steps, 50);
    assert_int_equal(lane->steps, 0);
    struct ru_records steps = ru_read(&trace, 1u << SW_RECORD_STEP);
    uint64_t next[64] = {0};
    for (size_t i = 0; i < steps.count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, next[step->domain]++);
        assert_int_equal(step->unit,
                         step->domain == first ? SW_STEP_BATCH : SW_STEP_LOOP);
    }
    ru_records_free(&steps);
    struct ru_records spans = ru_read(&trace, 1u << SW_RECORD_SPAN);
    uint64_t count[64] = {0};
    for (size_t i = 0; i < spans.count; i++) {
        count[spans.at[i].record->span.domain]++;
    }
    assert_int_equal(count[first], 100);
    assert_int_equal(count[second], 200);
    assert_int_equal(count[0], 100);
    ru_records_free(&spans);
    ru_free(&trace);
}

static void test_domain_switch(void **state)
{
    (void)state;
    sw_domain *domain = sw_domain_get("switched");
    sw_section *section = in(domain, "s");
    sw_section *other = sw_section_get("s");
    ru_start((sw_config){0});
    for (int round = 0; round < 4; round++) {
        bool on = round % 2 == 0;
        sw_domain_enable(domain, on);
        assert_int_equal(SW_GATE(section), on);
        for (int i = 0; i < 10; i++) {
            sw_domain_step_begin(domain, 0);
            sw_begin(section);
            sw_begin(other);
            sw_end(other);
            sw_end(section);
            sw_domain_counter(domain, "c", 1, 1);
            sw_domain_step_end(domain);
        }
        /* A section made while its domain is off is off too. */
        char name[16];
        snprintf(name, sizeof name, "new %d", round);
        sw_begin(in(domain, name));
        sw_end(in(domain, name));
    }
    sw_domain_enable(NULL, false);
    sw_begin(other);
    sw_end(other);
    sw_domain_enable(NULL, true);
    sw_domain_enable(domain, true);
    struct ru_trace trace = ru_finish();
    const sw_trace_lane *lane = ru_lane(&trace, 0, domain_named(&trace, "switched"));
    assert_int_equal(ru_find(&trace, lane, "s")->calls, 20);
    assert_int_equal(ru_find(&trace, lane, "c")->calls, 20);
    assert_int_equal(lane->steps, 20);
    assert_non_null(ru_find(&trace, lane, "new 0"));
    assert_null(ru_find(&trace, lane, "new 1"));
    assert_int_equal(ru_calls(&trace, "s"), 40);
    assert_int_equal(trace.info->unmatched, 0);
    ru_free(&trace);
}

/* Switched off while a section is open: its end is not seen, so nothing is known of it, and what is
 * recorded later is not below it. */
static void test_domain_off_within_a_section(void **state)
{
    (void)state;
    sw_domain *domain = sw_domain_get("off within");
    ru_start((sw_config){0});
    sw_begin(in(domain, "outer"));
    sw_domain_step_begin(domain, 0);
    sw_domain_enable(domain, false);
    sw_end(in(domain, "outer"));
    sw_domain_step_end(domain);
    sw_domain_enable(domain, true);
    sw_begin(in(domain, "later"));
    sw_end(in(domain, "later"));
    sw_domain_step_begin(domain, 0);
    sw_domain_step_end(domain);
    struct ru_trace trace = ru_finish();
    const sw_trace_lane *lane = ru_lane(&trace, 0, domain_named(&trace, "off within"));
    const sw_trace_node *later = ru_find(&trace, lane, "later");
    assert_non_null(later);
    assert_int_equal(later->calls, 1);
    assert_int_equal(lane->steps, 2);
    assert_int_equal(lane->steps_incomplete, 1);
    ru_free(&trace);
}

static void take_all_domains(void *arg)
{
    (void)arg;
    ru_start((sw_config){0});
    /* The default one is the first of 64. */
    for (int i = 1; i < 64; i++) {
        char name[16];
        snprintf(name, sizeof name, "d%d", i);
        sw_domain *domain = sw_domain_get(name);
        ru_must(domain != NULL);
        sw_begin(in(domain, "s"));
        sw_end(in(domain, "s"));
    }
    ru_must(sw_domain_get("one too many") == NULL);
    ru_must(sw_domain_get("d63") != NULL);
    ru_must(sw_domain_get("") != NULL);
    /* NULL is the default domain, so a program that does not look records there. */
    sw_begin(in(sw_domain_get("another"), "s"));
    sw_end(in(sw_domain_get("another"), "s"));
}

static void test_64_domains(void **state)
{
    (void)state;
    ru_child(take_all_domains, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    assert_int_equal(sw_trace_lane_count(trace.trace), 64);
    for (uint32_t i = 0; i < 64; i++) {
        assert_int_equal(ru_find(&trace, ru_lane(&trace, 0, i), "s")->calls, 1);
    }
    ru_free(&trace);
}

static void *tell(void *name)
{
    sw_thread_stand_for(name);
    const sw_record_span span = {.head = {.kind = SW_RECORD_SPAN,
                                          .units = 1,
                                          .flags = SW_RECORD_INTERVAL,
                                          .id = sw_name("told", 4),
                                          .ticks = sw_now()},
                                 .end = sw_now()};
    sw_record_put_past(&span.head);
    return NULL;
}

static void *plain(void *arg)
{
    (void)arg;
    sw_begin(sw_section_get("plain"));
    sw_end(sw_section_get("plain"));
    return NULL;
}

static void run_thread(void *(*body)(void *), void *arg)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, body, arg), 0);
    pthread_join(thread, NULL);
}

/* What is no thread has one place, however often it is told of, and no thread takes it over. */
static void test_what_is_no_thread(void **state)
{
    (void)state;
    static char names[2][32] = {"device 0 stream 7", "device 0 stream 8"};
    ru_start((sw_config){.policy = "stream"});
    for (int i = 0; i < 400; i++) {
        run_thread(tell, names[i % 2]);
        run_thread(plain, NULL);
    }
    struct ru_trace trace = ru_finish();
    size_t streams[2] = {0};
    for (size_t i = 0; i < sw_trace_thread_count(trace.trace); i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace.trace, i);
        const int which = strcmp(thread->name, names[0]) == 0   ? 0
                          : strcmp(thread->name, names[1]) == 0 ? 1
                                                                : 2;
        if (which < 2) {
            streams[which]++;
            assert_int_equal(thread->records, 200);
            assert_int_equal(thread->tid, 0);
        }
    }
    assert_int_equal(streams[0], 1);
    assert_int_equal(streams[1], 1);
    assert_int_equal(ru_all_calls(&trace), 400);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: domains live until the process ends, and a child has those of its parent. */
        ru_test(test_64_domains),
        ru_test(test_what_is_no_thread),
        ru_test(test_four_threads),
        ru_test(test_thread_ends_with_open_sections),
        ru_test(test_domains_do_not_mix),
        ru_test(test_domain_switch),
        ru_test(test_domain_off_within_a_section),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
