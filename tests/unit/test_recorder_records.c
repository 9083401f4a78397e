/* Counters, marks and records of every kind: what goes in comes out. */
#include "recorder_util.h"

#include <math.h>

static void test_counters(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    double sum = 0;
    for (int i = 1; i <= 10000; i++) {
        double value = (i * 37 % 1001) - 500.25;
        sum += value;
        sw_counter("many", value);
    }
    sw_counter("loss", 2.5);
    sw_counter("loss", NAN);
    sw_counter("loss", -1);
    sw_counter("only nan", NAN);
    sw_counter("infinite", INFINITY);
    sw_counter("infinite", 1);
    sw_counter("infinite", -INFINITY);
    sw_counter("zero", -0.0);
    sw_counter("huge", 1.7976931348623157e308);
    sw_counter(NULL, 1); /* No name, no counter. */
    /* Counters lie at the root, their records say where they were taken. */
    sw_begin(sw_section_get("around"));
    sw_counter("inside", 5);
    sw_end(sw_section_get("around"));
    struct ru_trace trace = ru_finish();

    const sw_trace_node *many = ru_node(&trace, "many");
    assert_int_equal(many->kind, 1);
    assert_int_equal(many->calls, 10000);
    assert_true(many->sum == sum);
    assert_true(many->min == -500.25 && many->max == 499.75);
    assert_true(many->last == (10000 * 37 % 1001) - 500.25);
    const sw_trace_node *loss = ru_node(&trace, "loss");
    assert_int_equal(loss->calls, 3);
    assert_int_equal(loss->errors, 1); /* values that are no numbers */
    assert_true(loss->sum == 1.5 && loss->min == -1 && loss->max == 2.5);
    assert_true(loss->last == -1);
    const sw_trace_node *nan_only = ru_node(&trace, "only nan");
    assert_int_equal(nan_only->calls, 1);
    assert_int_equal(nan_only->errors, 1);
    assert_true(isnan(nan_only->last) && nan_only->sum == 0);
    const sw_trace_node *infinite = ru_node(&trace, "infinite");
    assert_true(infinite->min == -INFINITY && infinite->max == INFINITY);
    assert_true(ru_node(&trace, "huge")->max == 1.7976931348623157e308);
    assert_true(ru_node(&trace, "inside")->last == 5);
    assert_null(ru_find(&trace, ru_lane(&trace, 0, 0), "around/inside"));

    struct ru_records records = ru_read(&trace, 1u << SW_RECORD_COUNTER);
    assert_int_equal(records.count, 10000 + 3 + 1 + 3 + 1 + 1 + 1);
    for (int i = 1; i <= 10000; i++) {
        const sw_record_counter *counter = &records.at[i - 1].record->counter;
        assert_true(counter->value == (i * 37 % 1001) - 500.25);
        assert_string_equal(ru_name(&trace, counter->head.id), "many");
        assert_int_equal(counter->node, 0);
    }
    assert_true(isnan(records.at[10001].record->counter.value));
    assert_true(signbit(records.at[10007].record->counter.value));
    const sw_record_counter *inside = &records.at[records.count - 1].record->counter;
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    assert_int_equal(inside->node, ru_node(&trace, "around") - lane->nodes);
    const sw_trace_name *name = sw_trace_get_name(trace.trace, inside->head.id);
    assert_int_equal(name->use, 2);
    ru_records_free(&records);
    ru_free(&trace);
}

static void test_marks(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sw_mark("plain");
    sw_mark("");
    sw_mark(NULL);
    sw_mark_n("with\0zero\xff", 10);
    sw_begin(sw_section_get("around"));
    sw_mark("plain");
    sw_end(sw_section_get("around"));
    struct ru_trace trace = ru_finish();
    struct ru_records records = ru_read(&trace, 1u << SW_RECORD_MARK);
    assert_int_equal(records.count, 4);
    assert_string_equal(ru_name(&trace, records.at[0].record->head.id), "plain");
    assert_int_equal(
        sw_trace_get_name(trace.trace, records.at[1].record->head.id)->length, 0);
    const sw_trace_name *odd =
        sw_trace_get_name(trace.trace, records.at[2].record->head.id);
    assert_int_equal(odd->length, 10);
    assert_memory_equal(odd->text, "with\0zero\xff", 10);
    assert_int_equal(odd->use, 0);
    assert_int_equal(records.at[3].record->head.id, records.at[0].record->head.id);
    assert_int_equal(records.at[3].record->mark.node,
                     ru_node(&trace, "around") - ru_lane(&trace, 0, 0)->nodes);
    ru_records_free(&records);
    ru_free(&trace);
}

static bool has_interval(unsigned kind)
{
    return kind == SW_RECORD_SPAN || kind == SW_RECORD_STEP || kind == SW_RECORD_BATCH ||
           (kind >= SW_RECORD_COMPILE && kind <= SW_RECORD_COLLECTIVE) ||
           kind == SW_RECORD_IO || kind == SW_RECORD_GPU;
}

static unsigned units_of(unsigned kind)
{
    switch (kind) {
    case SW_RECORD_STEP:
        return 8;
    case SW_RECORD_BATCH:
        return 4;
    case SW_RECORD_SAMPLE:
        return 3;
    case SW_RECORD_COMPILE:
    case SW_RECORD_XFER:
    case SW_RECORD_COLLECTIVE:
    case SW_RECORD_ALLOC:
    case SW_RECORD_IO:
    case SW_RECORD_GPU:
        return 2;
    case SW_RECORD_LOOK:
        return 3;
    default:
        return 1;
    }
}

/* Every kind with random bytes where they mean nothing to the reader. */
static void test_every_kind(void **state)
{
    (void)state;
    _Alignas(8) uint8_t sent[64 * SW_RECORD_KINDS][8 * SW_RECORD_UNIT];
    size_t count = 0;
    uint64_t seed = 11;
    ru_start((sw_config){0});
    uint32_t name = sw_name("a name", 6);
    assert_true(name != 0);
    assert_int_equal(sw_name("a name", 6), name);
    for (unsigned round = 0; round < 64; round++) {
        for (unsigned kind = 1; kind < SW_RECORD_KINDS; kind++) {
            if (kind == SW_RECORD_STEP) {
                continue; /* The next test's. */
            }
            uint8_t *bytes = sent[count++];
            for (size_t i = 0; i < sizeof sent[0]; i += 8) {
                uint64_t random = ru_random(&seed);
                memcpy(bytes + i, &random, 8);
            }
            sw_record *record = (sw_record *)(void *)bytes;
            record->kind = (uint8_t)kind;
            record->units = (uint8_t)units_of(kind);
            record->flags = has_interval(kind) ? SW_RECORD_INTERVAL : 0;
            record->id = name;
            record->ticks = sw_now();
            if (has_interval(kind)) {
                ((sw_record_span *)record)->end = sw_now();
            }
            if (kind == SW_RECORD_SAMPLE) {
                ((sw_record_sample *)record)->depth = 8;
            }
            if (kind == SW_RECORD_LOOK) {
                ((sw_record_look *)record)->depth = 2;
            }
            if (kind == SW_RECORD_SPAN) {
                ((sw_record_span *)record)->domain = 0;
            }
            sw_record_put(record);
        }
    }
    struct ru_trace trace = ru_finish();
    struct ru_records records = ru_read(&trace, 0);
    assert_int_equal(records.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_memory_equal(records.at[i].record, sent[i],
                            (size_t)sent[i][1] * SW_RECORD_UNIT);
    }
    assert_false(trace.info->damaged);
    ru_records_free(&records);
    ru_free(&trace);
}

/* STEP records of an adapter go their own way too. */
static void test_put_step(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sw_record_step step = {.head = {.kind = SW_RECORD_STEP,
                                    .units = sizeof step / SW_RECORD_UNIT,
                                    .flags = SW_RECORD_INTERVAL,
                                    .ticks = sw_now()},
                           .number = 41,
                           .epoch = 2,
                           .domain = 7};
    step.end = sw_now();
    step.phase_ticks[0] = step.end - step.head.ticks;
    sw_record_put(&step.head);
    struct ru_trace trace = ru_finish();
    struct ru_records records = ru_read(&trace, 1u << SW_RECORD_STEP);
    assert_int_equal(records.count, 1);
    assert_memory_equal(records.at[0].record, &step, sizeof step);
    ru_records_free(&records);
    ru_free(&trace);
}

/* Kinds that this reader does not know are stepped over, and what follows them is found. */
static void test_unknown_kinds(void **state)
{
    (void)state;
    _Alignas(8) uint8_t bytes[255 * SW_RECORD_UNIT] = {0};
    sw_record *record = (sw_record *)(void *)bytes;
    ru_start((sw_config){0});
    for (unsigned kind = SW_RECORD_KINDS; kind <= 255; kind++) {
        record->kind = (uint8_t)kind;
        record->units = (uint8_t)(kind % 255 + 1);
        record->ticks = sw_now();
        sw_record_put(record);
        sw_counter("after", kind);
    }
    record->units = 0; /* Has no length: refused. */
    sw_record_put(record);
    sw_record_put(NULL);
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->dropped, 0);
    assert_int_equal(trace.info->overwritten, 0);
    assert_int_equal(trace.info->present, 2 * (256 - SW_RECORD_KINDS));
    struct ru_records records = ru_read(&trace, 0);
    assert_int_equal(records.count, 256 - SW_RECORD_KINDS);
    for (size_t i = 0; i < records.count; i++) {
        assert_true(records.at[i].record->counter.value == (double)(SW_RECORD_KINDS + i));
    }
    assert_int_equal(trace.info->present, 2 * records.count);
    ru_records_free(&records);
    ru_free(&trace);
}

/* Samples of all lengths, so that ends of chunks are met in every position. */
static void test_all_lengths(void **state)
{
    (void)state;
    _Alignas(8) uint8_t bytes[255 * SW_RECORD_UNIT];
    sw_record_sample *sample = (sw_record_sample *)(void *)bytes;
    uint64_t seed = 3;
    uint64_t units = 0;
    const size_t rounds = 4;
    ru_start((sw_config){.policy = "stream"});
    for (size_t i = 0; i < 255 * rounds; i++) {
        for (size_t j = 0; j < sizeof bytes; j += 8) {
            uint64_t random = ru_random(&seed);
            memcpy(bytes + j, &random, 8);
        }
        sample->head = (sw_record){.kind = SW_RECORD_SAMPLE,
                                   .units = (uint8_t)(i % 255 + 1),
                                   .id = (uint32_t)i,
                                   .ticks = sw_now()};
        sample->depth = (uint16_t)(i % 255 * 4);
        units += i % 255 + 1;
        sw_record_put(&sample->head);
        if (i % 3 == 0) {
            SW_SECTION("between") {
                units++;
            }
        }
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->present, 255 * rounds + 255 * rounds / 3);
    assert_true(units * SW_RECORD_UNIT > 10 * SW__FMT_CHUNK);
    struct ru_records records = ru_read(&trace, 1u << SW_RECORD_SAMPLE);
    assert_int_equal(records.count, 255 * rounds);
    seed = 3;
    for (size_t i = 0; i < records.count; i++) {
        for (size_t j = 0; j < sizeof bytes; j += 8) {
            uint64_t random = ru_random(&seed);
            memcpy(bytes + j, &random, 8);
        }
        const sw_record *record = &records.at[i].record->head;
        assert_int_equal(record->id, i);
        assert_int_equal(record->units, i % 255 + 1);
        assert_memory_equal(records.at[i].record->bytes + SW_RECORD_UNIT,
                            bytes + SW_RECORD_UNIT,
                            (size_t)(record->units - 1) * SW_RECORD_UNIT);
    }
    assert_int_equal(ru_calls(&trace, "between"), 255 * rounds / 3);
    ru_records_free(&records);
    ru_free(&trace);
}

static void test_nothing_while_off(void **state)
{
    (void)state;
    const sw_record record = {.kind = SW_RECORD_GC, .units = 1};
    assert_int_equal(sw_name("off", 3), 0);
    sw_counter("off", 1);
    sw_mark("off");
    sw_record_put(&record);
    sw_thread_name("off");
    sw_epoch(3);
    sw_update();
    assert_int_equal(sw_trace_path(NULL, 0), 0);
    char path[8] = "x";
    assert_int_equal(sw_run_dir(path, sizeof path), 0);
    assert_string_equal(path, "");
    assert_true(sw_now() > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_counters),          ru_test(test_marks),
        ru_test(test_every_kind),        ru_test(test_put_step),
        ru_test(test_unknown_kinds),     ru_test(test_all_lengths),
        ru_test(test_nothing_while_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
