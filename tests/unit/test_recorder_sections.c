/* Sections: what is opened and closed comes back, call by call and tick by tick. */
#include "recorder_util.h"

#define SPANS (1u << SW_RECORD_SPAN)

/* Every call has its record, unless a test says otherwise. */
static struct ru_trace finish_whole(void)
{
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->dropped, 0);
    assert_int_equal(trace.info->overwritten, 0);
    assert_int_equal(ru_count(&trace, SPANS), ru_all_calls(&trace));
    return trace;
}

static void test_nesting(void **state)
{
    (void)state;
    sw_section *outer = sw_section_get("outer");
    sw_section *inner = sw_section_get("inner");
    sw_section *leaf = sw_section_get("leaf");
    ru_start((sw_config){0});
    for (int i = 0; i < 1000; i++) {
        sw_begin(outer);
        for (int j = 0; j < 3; j++) {
            sw_begin(inner);
            sw_begin(leaf);
            sw_end(leaf);
            sw_end(inner);
        }
        sw_begin(leaf);
        sw_end(leaf);
        sw_end(outer);
    }
    struct ru_trace trace = finish_whole();
    assert_int_equal(ru_calls(&trace, "outer"), 1000);
    assert_int_equal(ru_calls(&trace, "outer/inner"), 3000);
    assert_int_equal(ru_calls(&trace, "outer/inner/leaf"), 3000);
    assert_int_equal(ru_calls(&trace, "outer/leaf"), 1000);
    assert_null(ru_find(&trace, ru_lane(&trace, 0, 0), "leaf"));
    assert_int_equal(trace.info->unmatched, 0);
    assert_int_equal(trace.info->reentrant, 0);

    /* In ticks, self is inclusive less what is directly below, exactly; the rest of a tree's time
     * is in its leaves. */
    const struct sw__fmt_node *top = ru_ticks(&trace, "outer");
    const struct sw__fmt_node *middle = ru_ticks(&trace, "outer/inner");
    assert_int_equal(top->child,
                     middle->inclusive + ru_ticks(&trace, "outer/leaf")->inclusive);
    assert_int_equal(middle->child, ru_ticks(&trace, "outer/inner/leaf")->inclusive);
    assert_int_equal(ru_ticks(&trace, "outer/leaf")->child, 0);
    assert_int_equal(ru_ticks(&trace, "")->child, top->inclusive);
    ru_free(&trace);
}

/* The records of one node tell the same as its statistics. */
static void test_statistics_are_those_of_the_records(void **state)
{
    (void)state;
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    uint64_t seed = 7;
    ru_start((sw_config){0});
    for (int i = 0; i < 5000; i++) {
        sw_begin(a);
        ru_spin(ru_random(&seed) % 2000);
        sw_begin(b);
        sw_end(b);
        if (i % 10 == 0) {
            sw_end_error(a);
        } else {
            sw_end(a);
        }
    }
    struct ru_trace trace = finish_whole();
    const struct sw__fmt_node *node = ru_ticks(&trace, "a");
    struct ru_records spans = ru_read(&trace, SPANS);
    uint64_t calls = 0, sum = 0, least = UINT64_MAX, most = 0, last = 0, errors = 0;
    sw_histogram *mirror = sw_histogram_create();
    for (size_t i = 0; i < spans.count; i++) {
        const sw_record_span *span = &spans.at[i].record->span;
        if (span->node != node->index) {
            assert_int_equal(span->depth, 1);
            continue;
        }
        uint64_t duration = span->end - span->head.ticks;
        assert_int_equal(span->head.id, node->section);
        assert_int_equal(span->depth, 0);
        assert_int_equal(span->domain, 0);
        calls++;
        sum += duration;
        last = duration;
        least = duration < least ? duration : least;
        most = duration > most ? duration : most;
        errors += (span->head.flags & SW_RECORD_ERROR) != 0;
        sw_histogram_add(mirror, duration, 1);
    }
    assert_int_equal(calls, 5000);
    assert_int_equal(node->calls, calls);
    assert_int_equal(node->inclusive, sum);
    assert_int_equal(node->minimum, least);
    assert_int_equal(node->maximum, most);
    assert_int_equal(node->last, last);
    assert_int_equal(node->errors, errors);
    assert_int_equal(errors, 500);

    sw_histogram *stored = sw_histogram_create();
    assert_int_equal(sw_trace_node_histogram(trace.trace, ru_lane_index(&trace, 0, 0),
                                             node->index, stored),
                     0);
    assert_int_equal(sw_histogram_count(stored), calls);
    for (int q = 0; q <= 100; q++) {
        assert_int_equal(sw_histogram_quantile(stored, q / 100.0),
                         sw_histogram_quantile(mirror, q / 100.0));
    }
    uint64_t middle = sw_histogram_quantile(stored, 0.5);
    assert_true(least <= middle + middle / 64 && middle <= most + most / 64);
    sw_histogram_free(stored);
    sw_histogram_free(mirror);
    ru_records_free(&spans);
    ru_free(&trace);
}

static void recurse(sw_section *section, int depth)
{
    sw_begin(section);
    if (depth > 1) {
        recurse(section, depth - 1);
    }
    sw_end(section);
}

static void test_direct_recursion(void **state)
{
    (void)state;
    const int depths[] = {10, 1000};
    for (size_t i = 0; i < 2; i++) {
        ru_start((sw_config){.out = ru_path(i ? "deep" : "run")});
        recurse(sw_section_get("self"), depths[i]);
        recurse(sw_section_get("self"), depths[i]);
        struct ru_trace trace = finish_whole();
        const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
        uint32_t at = 0;
        int levels = 0;
        for (uint32_t j = 1; j < lane->node_count; j++) {
            if (lane->nodes[j].parent == at && lane->nodes[j].calls) {
                assert_int_equal(lane->nodes[j].calls, 2);
                at = j;
                levels++;
            }
        }
        assert_int_equal(levels, depths[i]);
        assert_int_equal(trace.info->too_deep, 0);
        struct ru_records spans = ru_read(&trace, SPANS);
        for (int j = 0; j < depths[i]; j++) {
            assert_int_equal(spans.at[j].record->span.depth, depths[i] - 1 - j);
        }
        ru_records_free(&spans);
        ru_free(&trace);
    }
}

static void ping(sw_section *const pair[2], int depth)
{
    sw_begin(pair[depth % 2]);
    if (depth > 1) {
        ping(pair, depth - 1);
    }
    sw_end(pair[depth % 2]);
}

static void test_mutual_recursion(void **state)
{
    (void)state;
    sw_section *const pair[2] = {sw_section_get("ping"), sw_section_get("pong")};
    ru_start((sw_config){0});
    ping(pair, 10);
    ping(pair, 1000);
    struct ru_trace trace = finish_whole();
    assert_int_equal(ru_calls(&trace, "ping/pong/ping/pong"), 2);
    assert_int_equal(ru_all_calls(&trace), 1010);
    ru_free(&trace);
}

/* Deeper than the stack of open sections can be: what does not fit is counted, and the sections
 * that did fit are closed by their own ends. */
static void test_too_deep(void **state)
{
    (void)state;
    const int most = 65536;
    const int depth = 70000;
    sw_section *section = sw_section_get("deep");
    sw_section *other = sw_section_get("other");
    ru_start((sw_config){0});
    sw_begin(other);
    sw_end(other);
    for (int i = 0; i < depth; i++) {
        sw_begin(section);
    }
    for (int i = 0; i < depth; i++) {
        sw_end(section);
    }
    sw_begin(other);
    sw_end(other);
    struct ru_trace trace = finish_whole();
    assert_int_equal(trace.info->too_deep, depth - most);
    assert_int_equal(trace.info->unmatched, 0);
    assert_int_equal(ru_all_calls(&trace), most + 2);
    assert_int_equal(ru_calls(&trace, "other"), 2);
    struct ru_records spans = ru_read(&trace, SPANS);
    for (int i = 0; i < most; i++) {
        assert_int_equal(spans.at[i + 1].record->span.depth, most - 1 - i);
        assert_int_equal(spans.at[i + 1].record->span.domain, 0);
    }
    ru_records_free(&spans);
    ru_free(&trace);
}

static int leave_by_return(int n)
{
    SW_SCOPE("by_return");
    if (n > 0) {
        return n;
    }
    return -1;
}

static void leave_by_goto(void)
{
    {
        SW_SCOPE("by_goto");
        goto out;
    }
out:
    return;
}

static int section_return(void)
{
    SW_SECTION("section_return") {
        return 5;
    }
    return 0;
}

static void test_scopes(void **state)
{
    (void)state;
    int after = 0;
    ru_start((sw_config){0});
    assert_int_equal(leave_by_return(3), 3);
    assert_int_equal(leave_by_return(0), -1);
    leave_by_goto();
    for (int i = 0; i < 10; i++) {
        SW_SCOPE("by_break");
        if (i == 4) {
            break;
        }
    }
    for (int i = 0; i < 4; i++) {
        SW_SCOPE("by_continue");
        if (i % 2) {
            continue;
        }
        after++;
    }
    for (int i = 0; i < 3; i++) {
        SW_SECTION("section_break") {
            if (i == 1) {
                break;
            }
            SW_SECTION("within") {
                after++;
            }
        }
        SW_SECTION("section_continue") {
            if (i == 1) {
                continue;
            }
            after++;
        }
        after += 100; /* Both leave the section only, not the loop. */
    }
    assert_int_equal(section_return(), 5);
    SW_SECTION("statement")
        after++;
    {
        SW_SCOPE("first");
        SW_SCOPE("second");
    }
    struct ru_trace trace = finish_whole();
    assert_int_equal(after, 2 + 2 + 2 + 300 + 1);
    assert_int_equal(ru_calls(&trace, "by_return"), 2);
    assert_int_equal(ru_calls(&trace, "by_goto"), 1);
    assert_int_equal(ru_calls(&trace, "by_break"), 5);
    assert_int_equal(ru_calls(&trace, "by_continue"), 4);
    assert_int_equal(ru_calls(&trace, "section_break"), 3);
    assert_int_equal(ru_calls(&trace, "section_break/within"), 2);
    assert_int_equal(ru_calls(&trace, "section_continue"), 3);
    assert_int_equal(ru_calls(&trace, "section_return"), 1);
    assert_int_equal(ru_calls(&trace, "statement"), 1);
    assert_int_equal(ru_calls(&trace, "first"), 1);
    assert_int_equal(ru_calls(&trace, "first/second"), 1);
    assert_int_equal(trace.info->unmatched, 0);
    ru_free(&trace);
}

static void test_unmatched_ends(void **state)
{
    (void)state;
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    ru_start((sw_config){0});
    sw_end(a);
    sw_begin(a);
    sw_end(b);
    sw_section_end(b, 9, 0);
    sw_end(a);
    sw_end(a);
    sw_end_error(a);
    struct ru_trace trace = finish_whole();
    assert_int_equal(trace.info->unmatched, 5);
    assert_int_equal(ru_all_calls(&trace), 1);
    assert_int_equal(ru_node(&trace, "a")->errors, 0);
    ru_free(&trace);
}

/* Ends in the order of the begins: the first two do not nest, the last one does. */
static void test_ends_out_of_order(void **state)
{
    (void)state;
    sw_section *around = sw_section_get("around");
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    sw_section *c = sw_section_get("c");
    ru_start((sw_config){0});
    sw_begin(around);
    sw_begin(a);
    sw_begin(b);
    sw_begin(c);
    ru_spin(1000);
    sw_end(a);
    sw_end(b);
    sw_end(c);
    sw_end(around);
    struct ru_trace trace = finish_whole();
    const struct sw__fmt_node *first = ru_ticks(&trace, "around/a");
    const struct sw__fmt_node *second = ru_ticks(&trace, "around/a/b");
    const struct sw__fmt_node *third = ru_ticks(&trace, "around/a/b/c");
    const struct sw__fmt_node *whole = ru_ticks(&trace, "around");
    assert_int_equal(first->unnested, 1);
    assert_int_equal(second->unnested, 1);
    assert_int_equal(third->unnested, 0);
    assert_int_equal(first->child, first->inclusive);
    assert_int_equal(second->child, second->inclusive);
    assert_int_equal(third->child, 0);
    assert_int_equal(whole->child, third->inclusive);
    assert_int_equal(ru_node(&trace, "around/a")->self_ns, 0);
    assert_true(ru_node(&trace, "around/a")->inclusive_ns > 0);
    struct ru_records spans = ru_read(&trace, SPANS);
    assert_int_equal(spans.count, 4);
    for (size_t i = 0; i < 4; i++) {
        bool flagged = (spans.at[i].record->head.flags & SW_RECORD_UNNESTED) != 0;
        assert_int_equal(flagged, i < 2);
    }
    ru_records_free(&spans);
    ru_free(&trace);
}

/* A call that does not nest has no part in its node's self time, whatever ended inside it before.
 * Sections with a key remember what had ended below them, so the calls that do nest keep their self
 * time to the tick; plain ones only never get less than none. */
static void test_unnested_call_with_children(void **state)
{
    (void)state;
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    sw_section *c = sw_section_get("c");
    for (uint64_t key = 0; key < 2; key++) {
        ru_start((sw_config){.out = ru_path(key ? "keyed" : "plain")});
        sw_section_begin(a, key);
        ru_spin(20000);
        sw_section_end(a, key, 0);
        sw_section_begin(a, key);
        sw_begin(c);
        ru_spin(200000);
        sw_end(c);
        sw_begin(b);
        sw_section_end(a, key, 0);
        sw_end(b);
        struct ru_trace trace = finish_whole();
        struct ru_records spans = ru_read(&trace, SPANS);
        const sw_record_span *nested = &spans.at[0].record->span;
        const struct sw__fmt_node *node = ru_ticks(&trace, "a");
        assert_int_equal(node->calls, 2);
        assert_int_equal(node->unnested, 1);
        assert_true(node->child <= node->inclusive);
        if (key) {
            assert_int_equal(node->inclusive - node->child,
                             nested->end - nested->head.ticks);
        }
        ru_records_free(&spans);
        ru_free(&trace);
    }
}

static void test_keys(void **state)
{
    (void)state;
    sw_section *task = sw_section_get("task");
    ru_start((sw_config){0});
    /* Two activations that take turns: each end closes its own. */
    sw_section_begin(task, 1);
    sw_section_begin(task, 2);
    sw_section_end(task, 1, 0);
    sw_section_begin(task, 3);
    sw_section_end(task, 2, SW_RECORD_ERROR);
    sw_section_end(task, 3, 0);
    struct ru_trace trace = finish_whole();
    struct ru_records spans = ru_read(&trace, SPANS);
    assert_int_equal(spans.count, 3);
    assert_true(spans.at[0].record->head.flags & SW_RECORD_UNNESTED);
    assert_true(spans.at[1].record->head.flags & SW_RECORD_UNNESTED);
    assert_true(spans.at[1].record->head.flags & SW_RECORD_ERROR);
    assert_false(spans.at[2].record->head.flags & SW_RECORD_UNNESTED);
    /* Begun in the order of the keys, ended in it too. */
    assert_true(spans.at[0].record->head.ticks < spans.at[1].record->head.ticks);
    assert_true(spans.at[1].record->head.ticks < spans.at[2].record->head.ticks);
    assert_int_equal(ru_node(&trace, "task/task")->errors, 1);
    assert_int_equal(trace.info->unmatched, 0);
    ru_records_free(&spans);
    ru_free(&trace);
}

/* Steps come and go around sections that have keys. */
static void test_keys_across_steps(void **state)
{
    (void)state;
    sw_section *task = sw_section_get("task");
    ru_start((sw_config){0});
    sw_section_begin(task, 1);
    sw_section_begin(task, 2);
    sw_step_begin();
    sw_section_end(task, 1, 0);
    sw_step_end();
    sw_section_end(task, 2, 0);
    struct ru_trace trace = finish_whole();
    struct ru_records spans = ru_read(&trace, SPANS);
    assert_int_equal(spans.count, 2);
    assert_true(spans.at[0].record->head.ticks < spans.at[1].record->head.ticks);
    assert_true(spans.at[0].record->head.flags & SW_RECORD_UNNESTED);
    assert_false(spans.at[1].record->head.flags & SW_RECORD_UNNESTED);
    ru_records_free(&spans);
    ru_free(&trace);
}

static void test_errors(void **state)
{
    (void)state;
    sw_section *risky = sw_section_get("risky");
    ru_start((sw_config){0});
    for (int i = 0; i < 100; i++) {
        sw_begin(risky);
        if (i % 4 == 0) {
            sw_end_error(risky);
        } else {
            sw_end(risky);
        }
    }
    struct ru_trace trace = finish_whole();
    assert_int_equal(ru_node(&trace, "risky")->calls, 100);
    assert_int_equal(ru_node(&trace, "risky")->errors, 25);
    ru_free(&trace);
}

static const sw_trace_name *name_of(const struct ru_trace *trace, sw_section *section)
{
    /* A handle's number is not public; its call is the only one, so its node says it. */
    (void)section;
    const sw_trace_lane *lane = ru_lane(trace, 0, 0);
    for (size_t i = 1; i < lane->node_count; i++) {
        if (lane->nodes[i].calls) {
            return sw_trace_get_name(trace->trace, lane->nodes[i].section);
        }
    }
    fail_msg("nothing was called");
    return NULL;
}

static void test_odd_names(void **state)
{
    (void)state;
    char *huge = malloc(5000);
    assert_non_null(huge);
    memset(huge, 'x', 5000);
    const struct {
        const char *text;
        size_t length;
        size_t kept;
    } names[] = {
        {"", 0, 0},
        {"a\0b", 3, 3},
        {"\xff\xfe\x80 invalid \xc3", 13, 13},
        {"/slash/ and \n newline \x1b[31m", 28, 28},
        {"na\xc3\xafve \xf0\x9f\x9a\x80", 11, 11},
        {huge, 999, 999},
        {huge, 1000, 1000},
        {huge, 1001, 1000},
        {huge, 5000, 1000},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char folder[16];
        snprintf(folder, sizeof folder, "run%zu", i);
        ru_start((sw_config){.out = ru_path(folder)});
        sw_section *section =
            sw_section_get_n(names[i].text, names[i].length, SW_PHASE_INHERIT);
        assert_non_null(section);
        assert_ptr_equal(
            section, sw_section_get_n(names[i].text, names[i].length, SW_PHASE_INHERIT));
        sw_begin(section);
        sw_end(section);
        struct ru_trace trace = finish_whole();
        const sw_trace_name *name = name_of(&trace, section);
        assert_int_equal(name->length, names[i].kept);
        assert_memory_equal(name->text, names[i].text, names[i].kept);
        assert_int_equal(name->phase, SW_PHASE_INHERIT);
        ru_free(&trace);
    }
    free(huge);
    assert_non_null(sw_section_get(NULL));
    assert_ptr_equal(sw_section_get(NULL), sw_section_get(""));
}

static void test_phase_makes_another_section(void **state)
{
    (void)state;
    sw_section *loss = sw_section_get_n("x", 1, SW_PHASE_LOSS);
    sw_section *sync = sw_section_get_n("x", 1, SW_PHASE_SYNC);
    sw_section *none = sw_section_get_n("x", 1, SW_PHASE_INHERIT);
    assert_true(loss != sync && sync != none && loss != none);
    /* A phase that does not exist is none. */
    assert_ptr_equal(sw_section_get_n("x", 1, 77), none);
    assert_ptr_equal(sw_section_get_n("x", 1, -3), none);
    /* By name alone the table of usual names decides. */
    assert_ptr_equal(sw_section_get("forward"),
                     sw_section_get_n("forward", 7, SW_PHASE_FORWARD));
    ru_start((sw_config){0});
    sw_section *const all[] = {loss, sync, none};
    for (size_t i = 0; i < 3; i++) {
        for (size_t j = 0; j <= i; j++) {
            sw_begin(all[i]);
            sw_end(all[i]);
        }
    }
    struct ru_trace trace = finish_whole();
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    const int phases[] = {SW_PHASE_LOSS, SW_PHASE_SYNC, SW_PHASE_INHERIT};
    size_t met = 0;
    for (size_t i = 1; i < lane->node_count; i++) {
        if (lane->nodes[i].calls) {
            const sw_trace_name *name =
                sw_trace_get_name(trace.trace, lane->nodes[i].section);
            assert_string_equal(name->text, "x");
            assert_int_equal(name->phase, phases[met]);
            assert_int_equal(lane->nodes[i].calls, met + 1);
            met++;
        }
    }
    assert_int_equal(met, 3);
    ru_free(&trace);
}

static void test_handles_outlive_recordings(void **state)
{
    (void)state;
    sw_section *section = sw_section_get("again");
    for (int i = 0; i < 5; i++) {
        char folder[16];
        sw_begin(section); /* Nothing records: nothing happens. */
        snprintf(folder, sizeof folder, "run%d", i);
        ru_start((sw_config){.out = ru_path(folder)});
        sw_end(section); /* Its begin was not seen. */
        assert_ptr_equal(sw_section_get("again"), section);
        for (int j = 0; j <= i; j++) {
            sw_begin(section);
            sw_end(section);
        }
        struct ru_trace trace = finish_whole();
        assert_int_equal(ru_calls(&trace, "again"), i + 1);
        assert_int_equal(trace.info->unmatched, 1);
        sw_end(section);
        ru_free(&trace);
    }
}

static void test_open_at_the_end_is_cut(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sw_begin(sw_section_get("a"));
    sw_begin(sw_section_get("b"));
    struct ru_trace trace = finish_whole();
    struct ru_records spans = ru_read(&trace, SPANS);
    assert_int_equal(spans.count, 2);
    assert_true(spans.at[0].record->head.flags & SW_RECORD_CUT);
    assert_true(spans.at[1].record->head.flags & SW_RECORD_CUT);
    assert_int_equal(spans.at[0].record->span.end, spans.at[1].record->span.end);
    assert_int_equal(ru_calls(&trace, "a/b"), 1);
    ru_records_free(&spans);
    ru_free(&trace);
}

/* --- calls in stretches --- */

/* Spans of a section, in order; how many. */
static size_t spans_of(const struct ru_trace *trace, const char *name,
                       sw_record_span *out, size_t room)
{
    size_t count = 0;
    struct ru_records spans = ru_read(trace, SPANS);
    for (size_t i = 0; i < spans.count; i++) {
        const sw_record_span *span = &spans.at[i].record->span;
        if (strcmp(ru_name(trace, span->head.id), name) == 0) {
            assert_true(count < room);
            out[count++] = *span;
        }
    }
    ru_records_free(&spans);
    return count;
}

/* A generator of four items: one call, as long as its stretches together. */
static void test_a_call_in_stretches(void **state)
{
    (void)state;
    sw_section *loop = sw_section_get("loop");
    sw_section *generator = sw_section_get("generator");
    sw_section *item = sw_section_get("item");
    uint64_t spent = 0;
    ru_start((sw_config){0});
    sw_begin(loop);
    for (int i = 0; i < 5; i++) {
        sw_section_begin(generator, 1);
        sw_begin(item);
        ru_spin(1000);
        sw_end(item);
        if (i < 4) {
            sw_section_suspend(generator, 1, &spent);
        } else {
            sw_section_finish(generator, 1, SW_RECORD_ERROR, &spent);
        }
        ru_spin(5000); /* not the generator's */
    }
    sw_end(loop);
    struct ru_trace trace = ru_finish();
    sw_record_span spans[8];
    assert_int_equal(spans_of(&trace, "generator", spans, 8), 5);
    uint64_t sum = 0;
    for (int i = 0; i < 5; i++) {
        sum += spans[i].end - spans[i].head.ticks;
        assert_int_equal((spans[i].head.flags & SW_RECORD_PART) != 0, i < 4);
        assert_int_equal((spans[i].head.flags & SW_RECORD_ERROR) != 0, i == 4);
        assert_int_equal(spans[i].depth, 1);
    }
    assert_int_equal(spent, sum);
    const struct sw__fmt_node *node = ru_ticks(&trace, "loop/generator");
    assert_int_equal(node->calls, 1);
    assert_int_equal(node->errors, 1);
    assert_int_equal(node->unnested, 0);
    assert_int_equal(node->inclusive, sum);
    assert_int_equal(node->minimum, sum);
    assert_int_equal(node->maximum, sum);
    assert_int_equal(node->last, sum);
    assert_int_equal(node->child, ru_ticks(&trace, "loop/generator/item")->inclusive);
    assert_int_equal(ru_ticks(&trace, "loop")->child, sum);
    assert_int_equal(ru_calls(&trace, "loop/generator/item"), 5);
    assert_int_equal(trace.info->unmatched, 0);
    ru_free(&trace);
}

/* Two generators of one section take turns, and one is resumed elsewhere; each is one call with its own time. */
static void test_generators_that_take_turns(void **state)
{
    (void)state;
    sw_section *generator = sw_section_get("generator");
    sw_section *elsewhere = sw_section_get("elsewhere");
    uint64_t spent[2] = {0};
    ru_start((sw_config){0});
    for (int i = 0; i < 3; i++) {
        for (uint64_t which = 0; which < 2; which++) {
            sw_section_begin(generator, 10 + which);
            ru_spin(1000 * (which + 1));
            sw_section_suspend(generator, 10 + which, &spent[which]);
        }
    }
    sw_section_begin(generator, 10);
    sw_section_finish(generator, 10, 0, &spent[0]);
    sw_begin(elsewhere);
    sw_section_begin(generator, 11);
    ru_spin(500);
    sw_section_finish(generator, 11, 0, &spent[1]);
    sw_end(elsewhere);
    struct ru_trace trace = ru_finish();
    const struct sw__fmt_node *here = ru_ticks(&trace, "generator");
    const struct sw__fmt_node *there = ru_ticks(&trace, "elsewhere/generator");
    assert_int_equal(here->calls, 1);
    assert_int_equal(there->calls, 1);
    assert_int_equal(here->last, spent[0]);
    assert_int_equal(there->last, spent[1]); /* all of its stretches */
    assert_int_equal(here->inclusive + there->inclusive, spent[0] + spent[1]);
    assert_true(there->inclusive < spent[1]);
    assert_int_equal(ru_ticks(&trace, "elsewhere")->child, there->inclusive);
    ru_free(&trace);
}

/* A stretch that ends below a section begun later does not nest; the call is counted so once, at its end. */
static void test_stretches_that_do_not_nest(void **state)
{
    (void)state;
    sw_section *generator = sw_section_get("generator");
    sw_section *inner = sw_section_get("inner");
    uint64_t spent = 0;
    ru_start((sw_config){0});
    for (int i = 0; i < 2; i++) {
        sw_section_begin(generator, 1);
        sw_begin(inner);
        ru_spin(500);
        if (i == 0) {
            sw_section_suspend(generator, 1, &spent);
        } else {
            sw_section_finish(generator, 1, 0, &spent);
        }
        sw_end(inner);
    }
    struct ru_trace trace = ru_finish();
    const struct sw__fmt_node *node = ru_ticks(&trace, "generator");
    assert_int_equal(node->calls, 1);
    assert_int_equal(node->unnested, 1);
    assert_int_equal(node->inclusive, spent);
    assert_int_equal(node->last, spent);
    sw_record_span spans[4];
    assert_int_equal(spans_of(&trace, "generator", spans, 4), 2);
    assert_true(spans[0].head.flags & SW_RECORD_UNNESTED);
    assert_true(spans[0].head.flags & SW_RECORD_PART);
    assert_true(spans[1].head.flags & SW_RECORD_UNNESTED);
    assert_false(spans[1].head.flags & SW_RECORD_PART);
    ru_free(&trace);
}

/* A generator that is never finished has its time and no call; one that recording cuts has both. */
static void test_stretches_without_an_end(void **state)
{
    (void)state;
    sw_section *given_up = sw_section_get("given up");
    sw_section *cut = sw_section_get("cut");
    uint64_t spent = 0, other = 0;
    ru_start((sw_config){0});
    sw_section_begin(given_up, 1);
    ru_spin(1000);
    sw_section_suspend(given_up, 1, &spent);
    sw_section_begin(cut, 2);
    sw_section_suspend(cut, 2, &other);
    sw_section_begin(cut, 2);
    struct ru_trace trace = ru_finish();
    const struct sw__fmt_node *node = ru_ticks(&trace, "given up");
    assert_int_equal(node->calls, 0);
    assert_int_equal(node->inclusive, spent);
    const sw_trace_node *shown = ru_node(&trace, "given up");
    assert_true(shown->inclusive_ns > 0 && shown->self_ns == shown->inclusive_ns);
    assert_int_equal(shown->max_ns, 0);
    assert_int_equal(ru_calls(&trace, "cut"), 1);
    assert_true(ru_ticks(&trace, "cut")->inclusive >= other);
    sw_record_span spans[4];
    assert_int_equal(spans_of(&trace, "cut", spans, 4), 2);
    assert_true(spans[1].head.flags & SW_RECORD_CUT);
    ru_free(&trace);
}

/* What was recorded in stretches comes out of the records alone, too. */
static void compare_stretches(void *arg, const sw_trace_lane *rebuilt)
{
    const sw_trace_lane *stored = arg;
    size_t used = 1;
    for (size_t i = 1; i < stored->node_count; i++) {
        const sw_trace_node *a = &stored->nodes[i];
        size_t found = 0;
        if (a->inclusive_ns == 0) {
            continue; /* made in advance */
        }
        used++;
        for (size_t k = 1; k < rebuilt->node_count; k++) {
            found = rebuilt->nodes[k].section == a->section ? k : found;
        }
        assert_true(found != 0);
        assert_int_equal(rebuilt->nodes[found].calls, a->calls);
        assert_int_equal(rebuilt->nodes[found].inclusive_ns, a->inclusive_ns);
        assert_int_equal(rebuilt->nodes[found].self_ns, a->self_ns);
    }
    assert_int_equal(rebuilt->node_count, used);
}

static void test_stretches_are_rebuilt(void **state)
{
    (void)state;
    sw_section *outer = sw_section_get("outer");
    sw_section *generator = sw_section_get("generator");
    sw_section *inner = sw_section_get("inner");
    ru_start((sw_config){0});
    for (uint64_t call = 0; call < 50; call++) {
        uint64_t spent = 0;
        sw_begin(outer);
        for (uint64_t i = 0; i <= call % 7; i++) {
            sw_section_begin(generator, call);
            sw_begin(inner);
            sw_end(inner);
            if (i < call % 7 || call % 11 == 10) {
                sw_section_suspend(generator, call, &spent);
            } else {
                sw_section_finish(generator, call, 0, &spent);
            }
        }
        sw_end(outer);
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(ru_calls(&trace, "outer/generator"), 50 - 4);
    assert_int_equal(sw_trace_rebuild_lanes(trace.trace, false, compare_stretches,
                                            (void *)(uintptr_t)ru_lane(&trace, 0, 0),
                                            NULL),
                     0);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_nesting),
        ru_test(test_statistics_are_those_of_the_records),
        ru_test(test_direct_recursion),
        ru_test(test_mutual_recursion),
        ru_test(test_too_deep),
        ru_test(test_scopes),
        ru_test(test_unmatched_ends),
        ru_test(test_ends_out_of_order),
        ru_test(test_unnested_call_with_children),
        ru_test(test_keys),
        ru_test(test_keys_across_steps),
        ru_test(test_errors),
        ru_test(test_odd_names),
        ru_test(test_phase_makes_another_section),
        ru_test(test_handles_outlive_recordings),
        ru_test(test_open_at_the_end_is_cut),
        ru_test(test_a_call_in_stretches),
        ru_test(test_generators_that_take_turns),
        ru_test(test_stretches_that_do_not_nest),
        ru_test(test_stretches_without_an_end),
        ru_test(test_stretches_are_rebuilt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
