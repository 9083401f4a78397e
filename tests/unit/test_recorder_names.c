/* Very many names: what does not fit goes to its family, and no call is lost from the totals. */
#include "recorder_util.h"

#include <pthread.h>
#include <sys/resource.h>

/* Nodes that a lane has of its own: the limit less the root and "(more)". */
#define OWN_NODES (4096 - 2)
#define NAMES_MOST 65536

static void section_of(const char *name, int calls)
{
    sw_section *section = sw_section_get(name);
    for (int i = 0; i < calls; i++) {
        sw_begin(section);
        sw_end(section);
    }
}

static void record_10000(void *arg)
{
    (void)arg;
    ru_start((sw_config){0});
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "epoch_%d", i);
        section_of(name, i % 3 + 1);
    }
    section_of("no family", 5);
    /* Below a node of its own, and below one of the family. */
    sw_begin(sw_section_get("epoch_3"));
    section_of("below_1", 1);
    sw_end(sw_section_get("epoch_3"));
    sw_begin(sw_section_get("epoch_9999"));
    section_of("below_2", 1);
    sw_end(sw_section_get("epoch_9999"));
}

static void test_10000_names(void **state)
{
    (void)state;
    ru_child(record_10000, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    uint64_t own = 0, folded = 0, calls = 0;
    for (int i = 0; i < 10000; i++) {
        calls += (uint64_t)(i % 3 + 1);
        folded += i >= OWN_NODES ? (uint64_t)(i % 3 + 1) : 0;
    }
    for (size_t i = 1; i < lane->node_count; i++) {
        const sw_trace_name *name =
            sw_trace_get_name(trace.trace, lane->nodes[i].section);
        int number;
        if (!lane->nodes[i].family && sscanf(name->text, "epoch_%d", &number) == 1) {
            assert_int_equal(lane->nodes[i].parent, 0);
            assert_int_equal(lane->nodes[i].calls, number % 3 + 1 + (number == 3));
            own++;
        }
    }
    assert_int_equal(own, OWN_NODES);
    const sw_trace_node *family = ru_find(&trace, lane, "epoch_*");
    assert_non_null(family);
    assert_true(family->family);
    assert_int_equal(family->calls, folded + 1);
    /* "no family" has none: it goes to (more). */
    assert_int_equal(ru_find(&trace, lane, "(more)")->calls, 5);
    assert_int_equal(ru_find(&trace, lane, "epoch_3/below_*")->calls, 1);
    assert_int_equal(ru_find(&trace, lane, "epoch_*/below_*")->calls, 1);
    assert_int_equal(trace.info->nodes_folded, folded + 5 + 1 + 1 + 1);
    assert_int_equal(trace.info->names_folded, 0);
    assert_int_equal(ru_all_calls(&trace), calls + 5 + 4);
    assert_int_equal(trace.info->present, calls + 5 + 4);
    assert_int_equal(trace.info->unmatched, 0);
    assert_int_equal(trace.info->hist_missed, 0);
    assert_int_equal(trace.info->dropped, 0);
    /* Every record has a name that the file knows. */
    struct ru_records spans = ru_read(&trace, 0);
    for (size_t i = 0; i < spans.count; i++) {
        assert_non_null(sw_trace_get_name(trace.trace, spans.at[i].record->head.id));
    }
    ru_records_free(&spans);
    ru_free(&trace);
}

static void record_70000(void *arg)
{
    (void)arg;
    ru_start((sw_config){.policy = "stream"});
    struct rusage before, after;
    for (int i = 0; i < 70000; i++) {
        char name[32];
        snprintf(name, sizeof name, i % 2 ? "shard_%d_of" : "epoch_%d", i);
        section_of(name, 1);
    }
    getrusage(RUSAGE_SELF, &before);
    for (int i = 70000; i < 300000; i++) {
        char name[32];
        snprintf(name, sizeof name, i % 2 ? "shard_%d_of" : "epoch_%d", i);
        section_of(name, 1);
    }
    getrusage(RUSAGE_SELF, &after);
    /* Once names are all taken, new ones take no memory; the hot file is all that may still grow. */
    ru_must(after.ru_maxrss - before.ru_maxrss < 80 * 1024);
}

static void test_70000_names(void **state)
{
    (void)state;
    ru_child(record_70000, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    const uint64_t calls = 300000;
    assert_true(lane->node_count <= 4096 + 256);
    assert_int_equal(ru_all_calls(&trace), calls);
    assert_int_equal(trace.info->present + trace.info->dropped, calls);
    assert_int_equal(trace.info->unmatched, 0);
    /* Asked for once each: the names that found no place, to the last one. Families were made when the
     * nodes ran out, and "(more)" is a name too; those three count among the 65,536. */
    assert_true(trace.info->names_folded >= calls - NAMES_MOST);
    assert_true(trace.info->names_folded <= calls - NAMES_MOST + 8);
    /* All but those with nodes of their own are in the two families. */
    const sw_trace_node *epochs = ru_find(&trace, lane, "epoch_*");
    const sw_trace_node *shards = ru_find(&trace, lane, "shard_*_of");
    assert_non_null(epochs);
    assert_non_null(shards);
    assert_int_equal(epochs->calls, calls / 2 - OWN_NODES / 2);
    assert_int_equal(shards->calls, calls / 2 - OWN_NODES / 2);
    assert_int_equal(ru_find(&trace, lane, "(more)")->calls, 0);
    assert_true(sw_trace_name_limit(trace.trace) <= NAMES_MOST + 4096 + 1);
    ru_free(&trace);
}

/* Names without numbers have no family: they end in "(more)", which may be inside itself. */
static void record_deep_more(void *arg)
{
    (void)arg;
    ru_start((sw_config){0});
    for (int i = 0; i < 6000; i++) {
        char name[32];
        snprintf(name, sizeof name, "n %c%c%c", 'a' + i % 26, 'a' + i / 26 % 26,
                 'a' + i / 676);
        sw_begin(sw_section_get(name));
        sw_begin(sw_section_get("inner"));
        sw_end(sw_section_get("inner"));
        sw_end(sw_section_get(name));
    }
}

static void test_names_without_family(void **state)
{
    (void)state;
    ru_child(record_deep_more, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    assert_int_equal(ru_all_calls(&trace), 12000);
    assert_int_equal(trace.info->unmatched, 0);
    /* 4,094 nodes are 2,047 names with their "inner". */
    assert_int_equal(trace.info->nodes_folded, (6000 - 2047) * 2);
    ru_free(&trace);
}

static void count_10000(void *arg)
{
    (void)arg;
    ru_start((sw_config){0});
    for (int i = 0; i < 10000; i++) {
        char name[32];
        snprintf(name, sizeof name, "loss_%d", i);
        sw_counter(name, i);
    }
}

static void test_10000_counters(void **state)
{
    (void)state;
    ru_child(count_10000, NULL);
    struct ru_trace trace = ru_open_run(ru_path("run"));
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    const sw_trace_node *family = ru_find(&trace, lane, "loss_*");
    assert_non_null(family);
    assert_int_equal(family->kind, 1);
    assert_int_equal(family->calls, 10000 - OWN_NODES);
    assert_true(family->min == OWN_NODES && family->max == 9999 && family->last == 9999);
    assert_int_equal(trace.info->nodes_folded, 10000 - OWN_NODES);
    assert_int_equal(trace.info->present, 10000);
    ru_free(&trace);
}

static void *name_many(void *arg)
{
    int offset = *(const int *)arg;
    for (int i = 0; i < 4000; i++) {
        char name[32];
        /* Half of the names are everybody's. */
        snprintf(name, sizeof name, "t %c%d", i % 2 ? 's' : 'a' + offset, i);
        section_of(name, 1);
    }
    return NULL;
}

static void test_names_from_many_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int offsets[4] = {0, 1, 2, 3};
    ru_start((sw_config){0});
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, name_many, &offsets[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_all_calls(&trace), 16000);
    assert_int_equal(trace.info->present, 16000);
    assert_int_equal(trace.info->nodes_folded, 0);
    /* No name twice: every text has one id. */
    struct ru_records spans = ru_read(&trace, 0);
    uint32_t ids[4000] = {0};
    for (size_t i = 0; i < spans.count; i++) {
        uint32_t id = spans.at[i].record->head.id;
        char letter;
        int number;
        assert_int_equal(sscanf(ru_name(&trace, id), "t %c%d", &letter, &number), 2);
        if (letter == 's') {
            assert_true(ids[number] == 0 || ids[number] == id);
            ids[number] = id;
        }
    }
    ru_records_free(&spans);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_10000_names),
        ru_test(test_70000_names),
        ru_test(test_names_without_family),
        ru_test(test_10000_counters),
        ru_test(test_names_from_many_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
