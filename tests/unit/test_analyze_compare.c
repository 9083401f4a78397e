/* Comparisons of runs that were composed by hand, so that every difference is known beforehand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <stepwatch/compare.h>
#include <stepwatch/export.h>

#include "run_fixture.h"

#define START 1000000000u
#define MS 1000000u
#define SECTION 1
#define TEXT 0
#define NONE 255

enum { DATA = 1, FORWARD, NET, LAYER, VALIDATE, LOADER_NAME, DATASET, CLASS };

/* A small training. Each step waits for data and computes; a step's parts vary by up to a tenth. */
struct plan {
    unsigned steps;
    double wait_ms, layer_ms, net_ms; /* the layer is inside the net */
    unsigned epoch_steps;             /* 0: no epochs */
    double validation_ms, gap_ms;     /* after each epoch; between steps */
    unsigned batch;
    const char *command, *host, *net;
    bool loses; /* some records were given up */
    uint64_t seed;
};

static const struct plan usual = {
    .steps = 60, .wait_ms = 4, .layer_ms = 3, .net_ms = 2, .net = "Net", .seed = 1};

static uint64_t vary(uint64_t *state, double ms)
{
    const double off = (double)(tb_random(state) % 2001) / 10000 - 0.1;
    return (uint64_t)(ms * (1 + off) * MS);
}

static void put_names(struct tb *tb, const struct plan *plan)
{
    char layer[64];
    snprintf(layer, sizeof layer, "%s.layer", plan->net);
    tb_name(tb, DATA, "data", SECTION, SW_PHASE_DATA_WAIT);
    tb_name(tb, FORWARD, "forward", SECTION, SW_PHASE_FORWARD);
    tb_name(tb, NET, plan->net, SECTION, NONE);
    tb_name(tb, LAYER, layer, SECTION, NONE);
    tb_name(tb, VALIDATE, "validate", SECTION, SW_PHASE_VALIDATION);
    tb_name(tb, LOADER_NAME, "loader", TEXT, NONE);
    tb_name(tb, DATASET, "Images", TEXT, NONE);
    tb_name(tb, CLASS, "Linear", TEXT, NONE);
    const sw_row modules[] = {{SW_TABLE_MODULE, SW_ROW_MODEL, 0, {NET, CLASS, 0, 0}, {0}},
                              {SW_TABLE_MODULE, 0, 1, {LAYER, CLASS, 0, 0}, {0}}};
    tb_row(tb, &modules[0]);
    tb_row(tb, &modules[1]);
    if (plan->batch) {
        const sw_row loader = {SW_TABLE_LOADER,
                               0,
                               0,
                               {LOADER_NAME, DATASET, 2, plan->batch},
                               {0, 2, UINT64_MAX, 1, 0}};
        const sw_row wait = {SW_TABLE_STAGE,
                             0,
                             0,
                             {LOADER_NAME, UINT32_MAX, SW_STAGE_WAIT, 0},
                             {plan->steps, MS, 0, 1, MS}};
        tb_row(tb, &loader);
        tb_row(tb, &wait);
    }
}

static struct fixture *record(const struct plan *plan)
{
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    uint64_t random = plan->seed * 7919;
    uint64_t at = START;
    put_names(tb, plan);
    tb_thread(tb, 0, "main")->dropped = plan->loses ? 5 : 0;
    tb_fact(tb, "command", plan->command ? plan->command : "[\"python\", \"train.py\"]");
    tb_fact(tb, "host", plan->host ? plan->host : "box");
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (unsigned i = 0; i < plan->steps; i++) {
        uint64_t phases[SW_PHASE_SLOTS] = {0};
        const uint64_t begin = at;
        const uint64_t wait = vary(&random, plan->wait_ms);
        const uint64_t layer = vary(&random, plan->layer_ms);
        const uint64_t net = vary(&random, plan->net_ms);
        call(tb, lane, DATA, at, wait);
        at += wait;
        tb_begin(tb, lane, FORWARD, at);
        tb_begin(tb, lane, NET, at);
        tb_begin(tb, lane, LAYER, at);
        tb_end(tb, lane, at + layer, 0);
        tb_end(tb, lane, at + layer + net, 0);
        tb_end(tb, lane, at + layer + net, 0);
        at += layer + net;
        phases[SW_PHASE_DATA_WAIT] = wait;
        phases[SW_PHASE_FORWARD] = layer + net;
        step(tb, lane, begin, phases,
             plan->epoch_steps ? i / plan->epoch_steps : UINT32_MAX, SW_STEP_EVENTS);
        at += (uint64_t)(plan->gap_ms * MS);
        if (plan->epoch_steps && (i + 1) % plan->epoch_steps == 0) {
            const uint64_t validation = vary(&random, plan->validation_ms);
            call(tb, lane, VALIDATE, at, validation);
            at += validation;
        }
    }
    tb->super.end_snapshot = tb_snapshot(tb, at);
    write_trace(fixture, tb);
    return fixture;
}

static sw_comparison *compare(const struct plan *before, const struct plan *after)
{
    struct fixture *fixtures[2] = {record(before), record(after)};
    const sw_summary *old = summarise(fixtures[0]);
    const sw_summary *new = summarise(fixtures[1]);
    sw_comparison *comparison;
    sw_error_info info = {0};
    assert_int_equal(sw_compare_summaries(&comparison, old, new, NULL, &info), 0);
    fixture_free(fixtures[0]);
    fixture_free(fixtures[1]);
    assert_int_equal(sw_comparison_count(comparison), 1);
    return comparison;
}

static const sw_compared_part *part(const sw_comparison *comparison,
                                    enum sw_compared_kind kind, const char *name)
{
    size_t count;
    const sw_compared_part *parts = sw_comparison_parts(comparison, 0, kind, &count);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(parts[i].name, name) == 0) {
            return &parts[i];
        }
    }
    return NULL;
}

static bool noted(const sw_comparison *comparison, const char *text)
{
    const char *note;
    for (size_t i = 0; (note = sw_comparison_note(comparison, 0, i)) != NULL; i++) {
        if (strstr(note, text)) {
            return true;
        }
    }
    return false;
}

static bool near(double value, double wanted, double within)
{
    return fabs(value - wanted) <= within;
}

/* --- what changed --- */

static void a_phase_got_faster(void **state)
{
    (void)state;
    struct plan after = usual;
    after.wait_ms = 1;
    after.seed = 2;
    sw_comparison *comparison = compare(&usual, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_FASTER);
    assert_true(run->tested && !run->regression);
    assert_int_equal(run->basis, SW_BASIS_STEPS);
    assert_true(near(run->speedup, 1.5, 0.03)); /* 9 ms to 6 ms */
    assert_true(run->low > 1.4 && run->low < run->speedup);
    assert_true(run->high < 1.6 && run->high > run->speedup);
    assert_true(near(run->median_speedup, 1.5, 0.05));
    assert_true(near(sw_comparison_baseline(comparison)->step_ns, 9 * MS, 0.1 * MS));

    const sw_compared_part *wait = part(comparison, SW_COMPARED_PHASE, "data_wait");
    assert_non_null(wait);
    assert_int_equal(wait->changed, 1);
    assert_true(near(wait->difference_ns, -3.0 * MS, 0.1 * MS));
    assert_true(wait->low_ns < wait->difference_ns && wait->high_ns < 0);
    assert_true(wait->p < 0.001);
    assert_string_equal(wait->per, "step");
    size_t count;
    /* The largest change comes first. */
    assert_ptr_equal(wait, sw_comparison_parts(comparison, 0, SW_COMPARED_PHASE, &count));
    assert_int_equal(part(comparison, SW_COMPARED_PHASE, "forward")->changed, 0);

    char text[256];
    const size_t length = sw_comparison_sentence(comparison, 0, false, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_non_null(strstr(text, "faster by "));
    assert_non_null(strstr(text, "ms a step before, "));
    assert_non_null(strstr(text, ", of which data_wait \u2212"));
    sw_comparison_free(comparison);
}

static void modules_and_sections(void **state)
{
    (void)state;
    struct plan after = usual;
    after.layer_ms = 6; /* the net around it is as long as before */
    after.seed = 3;
    sw_comparison *comparison = compare(&usual, &after);
    assert_int_equal(sw_comparison_get(comparison, 0)->verdict, SW_VERDICT_SLOWER);
    assert_true(sw_comparison_regression(comparison));
    const sw_compared_part *layer = part(comparison, SW_COMPARED_MODULE, "Net.layer");
    assert_int_equal(layer->changed, 1);
    assert_true(near(layer->before_ns, 3 * MS, 0.1 * MS));
    assert_true(near(layer->difference_ns, 3 * MS, 0.2 * MS));
    assert_int_equal(layer->before_calls, 60);
    const sw_compared_part *net = part(comparison, SW_COMPARED_MODULE, "Net");
    assert_int_equal(net->changed, 0);
    assert_true(near(net->after_ns, 2 * MS, 0.1 * MS));
    /* Sections with all that is inside; modules are not listed again. */
    const sw_compared_part *forward = part(comparison, SW_COMPARED_SECTION, "forward");
    assert_int_equal(forward->changed, 1);
    assert_string_equal(forward->per, "step");
    assert_true(near(forward->before_ns, 5 * MS, 0.2 * MS));
    assert_true(near(forward->after_ns, 8 * MS, 0.3 * MS));
    assert_null(part(comparison, SW_COMPARED_SECTION, "Net.layer"));
    assert_int_equal(part(comparison, SW_COMPARED_SECTION, "data")->changed, 0);
    sw_comparison_free(comparison);
}

static void modules_that_come_and_go(void **state)
{
    (void)state;
    struct plan after = usual;
    after.net = "Other";
    sw_comparison *comparison = compare(&usual, &after);
    const sw_compared_part *gone = part(comparison, SW_COMPARED_MODULE, "Net.layer");
    const sw_compared_part *new = part(comparison, SW_COMPARED_MODULE, "Other.layer");
    assert_true(isnan(gone->after_ns) && near(gone->difference_ns, -3.0 * MS, 0.1 * MS));
    assert_true(isnan(new->before_ns) && near(new->difference_ns, 3 * MS, 0.1 * MS));
    assert_int_equal(gone->changed, 1);
    assert_int_equal(new->changed, 1);
    sw_comparison_free(comparison);
}

/* Validation is part of the time, whether it lies in a step or not, and it happens as often as the program says. */
static void validation_counts(void **state)
{
    (void)state;
    struct plan before = usual;
    before.epoch_steps = 10;
    before.validation_ms = 45;
    struct plan after = before;
    after.validation_ms = 9;
    after.seed = 5;
    sw_comparison *comparison = compare(&before, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    /* (90 + 45) to (90 + 9) for ten steps */
    assert_true(near(run->speedup, 135.0 / 99, 0.03));
    assert_int_equal(run->verdict, SW_VERDICT_FASTER);
    assert_true(run->high - run->low < 0.15);
    assert_true(near(run->median_speedup, 1, 0.05));
    const sw_compared_part *validation =
        part(comparison, SW_COMPARED_PHASE, "validation");
    assert_int_equal(validation->changed, 1);
    assert_true(near(validation->before_ns, 4.5 * MS, 0.2 * MS));
    assert_true(near(validation->difference_ns, -3.6 * MS, 0.2 * MS));
    sw_comparison_free(comparison);
}

static void time_between_steps_counts(void **state)
{
    (void)state;
    struct plan before = usual;
    before.gap_ms = 9;
    sw_comparison *comparison = compare(&before, &usual);
    assert_true(near(sw_comparison_get(comparison, 0)->speedup, 2, 0.05));
    const sw_compared_part *between =
        part(comparison, SW_COMPARED_PHASE, "between_steps");
    assert_int_equal(between->changed, 1);
    assert_true(near(between->difference_ns, -9.0 * MS, 0.4 * MS));
    sw_comparison_free(comparison);
}

static void the_same_twice(void **state)
{
    (void)state;
    struct plan after = usual;
    after.seed = 6;
    sw_comparison *comparison = compare(&usual, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_SAME);
    assert_true(run->low < 1 && run->high > 1 && run->low > 0.95 && run->high < 1.05);
    for (unsigned kind = 0; kind < SW_COMPARED_KINDS; kind++) {
        size_t count;
        const sw_compared_part *parts =
            sw_comparison_parts(comparison, 0, (enum sw_compared_kind)kind, &count);
        for (size_t i = 0; i < count; i++) {
            assert_int_not_equal(parts[i].changed, 1);
        }
    }
    char text[256];
    (void)sw_comparison_sentence(comparison, 0, true, text, sizeof text);
    assert_int_equal(strncmp(text, "no difference that these data can show (-", 41), 0);
    /* A short buffer is no overflow. */
    char tiny[8] = "xxxxxxx";
    assert_true(sw_comparison_sentence(comparison, 0, true, tiny, 4) > 4);
    assert_string_equal(tiny, "no ");
    sw_comparison_free(comparison);
}

/* Where records were given up, the totals still tell, without a test of modules and with one of calls. */
static void lost_records(void **state)
{
    (void)state;
    struct plan after = usual;
    after.layer_ms = 6;
    after.loses = true;
    sw_comparison *comparison = compare(&usual, &after);
    const sw_compared_part *layer = part(comparison, SW_COMPARED_MODULE, "Net.layer");
    assert_int_equal(layer->changed, -1);
    assert_true(isnan(layer->p) && isnan(layer->low_ns));
    assert_true(near(layer->difference_ns, 3 * MS, 0.3 * MS));
    const sw_compared_part *forward = part(comparison, SW_COMPARED_SECTION, "forward");
    assert_string_equal(forward->per, "call");
    assert_int_equal(forward->changed, 1);
    assert_int_equal(part(comparison, SW_COMPARED_SECTION, "data")->changed, 0);
    sw_comparison_free(comparison);
}

/* --- what cannot be compared --- */

static void too_few_steps(void **state)
{
    (void)state;
    struct plan after = usual;
    after.steps = 7;
    after.layer_ms = 30;
    sw_comparison *comparison = compare(&usual, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_INCOMPARABLE);
    assert_false(run->regression);
    assert_true(isnan(run->low) && !isnan(run->speedup));
    assert_string_equal(run->why, "these data can show nothing");
    assert_true(noted(comparison, "has 7 steps that count; with fewer than 8"));
    assert_int_equal(part(comparison, SW_COMPARED_PHASE, "forward")->changed, -1);
    sw_comparison_free(comparison);
}

static void runs_without_steps(void **state)
{
    (void)state;
    struct plan none = usual;
    none.steps = 0;
    sw_comparison *comparison = compare(&none, &none);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->basis, SW_BASIS_DURATION);
    assert_int_not_equal(run->verdict, SW_VERDICT_INCOMPARABLE);
    assert_false(run->tested);
    assert_true(noted(comparison, "has no steps: the durations of the whole runs"));
    sw_comparison_free(comparison);
    /* A training that failed before its first step took little time, and is not faster. */
    comparison = compare(&usual, &none);
    run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_INCOMPARABLE);
    assert_string_equal(run->why, "only one of them has steps");
    assert_true(noted(comparison, "has no steps: it did something else"));
    sw_comparison_free(comparison);
}

static void batches_of_other_sizes(void **state)
{
    (void)state;
    struct plan before = usual;
    before.batch = 16;
    struct plan after = before;
    after.batch = 32;
    after.wait_ms = 6;
    after.layer_ms = 4; /* 12 ms for 32 instead of 9 ms for 16 */
    sw_comparison *comparison = compare(&before, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->basis, SW_BASIS_SAMPLES);
    assert_true(near(run->speedup, 1.5, 0.03));
    assert_int_equal(run->verdict, SW_VERDICT_FASTER);
    assert_true(noted(comparison, "Batch size: 16 before, 32 now."));
    const sw_compared_part *wait = part(comparison, SW_COMPARED_PHASE, "data_wait");
    assert_string_equal(wait->per, "sample");
    assert_true(near(wait->before_ns, 0.25 * MS, 0.01 * MS));
    assert_true(near(wait->after_ns, 0.1875 * MS, 0.01 * MS));
    char text[256];
    (void)sw_comparison_sentence(comparison, 0, true, text, sizeof text);
    assert_non_null(strstr(text, "samples/s before"));
    sw_comparison_free(comparison);
}

/* A program with a name and a section of its own, and nothing else. */
static struct fixture *record_other(const char *command)
{
    struct fixture *fixture = fixture_new();
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb_name(tb, 1, "sort", SECTION, NONE);
    tb_thread(tb, 0, "main");
    tb_fact(tb, "command", command);
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    for (unsigned i = 0; i < 20; i++) {
        uint64_t phases[SW_PHASE_SLOTS] = {[SW_PHASE_OTHER] = MS};
        call(tb, lane, 1, START + i * MS, MS / 2);
        step(tb, lane, START + i * MS, phases, UINT32_MAX, SW_STEP_EVENTS);
    }
    write_trace(fixture, tb);
    return fixture;
}

static void other_programs(void **state)
{
    (void)state;
    struct fixture *fixtures[2] = {record(&usual),
                                   record_other("[\"./sorter\", \"--fast\"]")};
    sw_comparison *comparison;
    assert_int_equal(sw_compare_summaries(&comparison, summarise(fixtures[0]),
                                          summarise(fixtures[1]), NULL, NULL),
                     0);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_INCOMPARABLE);
    assert_string_equal(run->why, "different programs");
    assert_true(isnan(run->speedup));
    assert_true(noted(comparison, "The programs are train.py and sorter"));
    size_t count;
    (void)sw_comparison_parts(comparison, 0, SW_COMPARED_PHASE, &count);
    assert_int_equal(count, 0);
    sw_comparison_free(comparison);
    fixture_free(fixtures[0]);
    fixture_free(fixtures[1]);
}

static void a_copy_of_the_program(void **state)
{
    (void)state;
    struct plan after = usual;
    after.command = "[\"/usr/bin/python3\", \"-u\", \"train_fast.py\", \"--lr\", \"1\"]";
    after.host = "other box";
    sw_comparison *comparison = compare(&usual, &after);
    assert_int_equal(sw_comparison_get(comparison, 0)->verdict, SW_VERDICT_SAME);
    assert_true(noted(comparison, "Program: train.py before, train_fast.py now."));
    assert_true(noted(comparison, "Machine: box before, other box now."));
    sw_comparison_free(comparison);
}

static void wrong_arguments(void **state)
{
    (void)state;
    struct fixture *fixture = record(&usual);
    const sw_summary *summary = summarise(fixture);
    sw_functions *functions;
    sw_compare_input *inputs[2];
    sw_comparison *comparison;
    sw_error_info info = {0};
    assert_int_equal(sw_functions_create(&functions), 0);
    assert_int_equal(sw_compare_input_of_summary(&inputs[0], summary, "run", &info), 0);
    assert_int_equal(
        sw_compare_input_of_functions(&inputs[1], functions, "p.stats", &info), 0);
    const sw_compare_input *const both[] = {inputs[0], inputs[1]};
    assert_int_equal(sw_compare_inputs(&comparison, both, 2, NULL, &info), SW_EINVAL);
    assert_string_equal(info.message,
                        "p.stats is a function profile and run is a run: runs are "
                        "compared with runs, and profiles with profiles");
    assert_int_equal(sw_compare_inputs(&comparison, both, 1, NULL, &info), SW_EINVAL);
    const sw_compare_input *const twice[] = {inputs[0], inputs[0]};
    const double wrong[] = {-1, NAN, INFINITY};
    for (size_t i = 0; i < 3; i++) {
        const sw_compare_options options = {wrong[i]};
        assert_int_equal(sw_compare_inputs(&comparison, twice, 2, &options, &info),
                         SW_EINVAL);
        assert_null(comparison);
    }
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
    sw_functions_free(functions);
    fixture_free(fixture);
}

/* --- reports --- */

static sw_compare_input *reported(const struct plan *plan)
{
    struct fixture *fixture = record(plan);
    sw_writer *writer = sw_writer_to_memory();
    sw_compare_input *input;
    sw_error_info info = {0};
    size_t length;
    sw_export_report_json(writer, summarise(fixture), NULL);
    const char *text = sw_writer_text(writer, &length);
    assert_int_equal(
        sw_compare_input_read_report(&input, text, length, "report.json", &info), 0);
    sw_writer_close(writer, NULL);
    fixture_free(fixture);
    return input;
}

static void reports_say_the_same(void **state)
{
    (void)state;
    struct plan before = usual;
    before.epoch_steps = 10;
    before.validation_ms = 45;
    before.gap_ms = 1;
    before.batch = 16;
    struct plan after = before;
    after.wait_ms = 1;
    sw_compare_input *inputs[2] = {reported(&before), reported(&after)};
    sw_comparison *comparison;
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    sw_comparison *single = compare(&before, &after);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    const sw_compared *exact = sw_comparison_get(single, 0);
    assert_true(near(run->speedup, exact->speedup, 0.01));
    assert_true(run->tested && run->low > 1.1 && run->high < 1.4);
    assert_true(noted(comparison, "as if steps were independent of each other"));
    assert_true(isnan(run->median_low) && near(run->median_speedup, 1.5, 0.05));
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = {"data_wait", "forward", "validation",
                                            "between_steps"};
        const sw_compared_part *rough = part(comparison, SW_COMPARED_PHASE, names[i]);
        const sw_compared_part *fine = part(single, SW_COMPARED_PHASE, names[i]);
        assert_true(near(rough->before_ns, fine->before_ns, 0.1 * MS));
        assert_int_equal(rough->changed, -1);
    }
    assert_true(near(part(comparison, SW_COMPARED_MODULE, "Net.layer")->before_ns, 3 * MS,
                     0.1 * MS));
    assert_string_equal(part(comparison, SW_COMPARED_SECTION, "data")->per, "call");
    sw_comparison_free(comparison);
    sw_comparison_free(single);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

static void bad_reports(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int error;
    } cases[] = {{"", SW_EFORMAT},
                 {"[]", SW_EFORMAT},
                 {"{}", SW_EFORMAT},
                 {"{\"traceEvents\": []}", SW_EFORMAT},
                 {"{\"schema\": 1}", SW_EFORMAT},
                 {"{\"schema\": \"stepwatch.report/2\"}", SW_EVERSION},
                 {"{\"schema\": \"stepwatch.report/1\"", SW_ECORRUPT},
                 {"{\"schema\": \"stepwatch.report/1\"} x", SW_ECORRUPT},
                 {"{\"schema\": \"stepwatch.report/1\", \"steps\": {\"count\": 1,}}",
                  SW_ECORRUPT}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sw_compare_input *input;
        sw_error_info info = {0};
        assert_int_equal(sw_compare_input_read_report(&input, cases[i].text,
                                                      strlen(cases[i].text), "x.json",
                                                      &info),
                         cases[i].error);
        assert_null(input);
        assert_int_equal(strncmp(info.message, "x.json ", 7), 0);
    }
}

/* Numbers that are none are unknown; what is left is compared as far as it goes. */
static void odd_reports(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"schema\": \"stepwatch.report/1\"}",
        "{\"schema\": \"stepwatch.report/1\", \"steps\": {\"recorded\": false}}",
        "{\"schema\": \"stepwatch.report/1\", \"run\": {\"duration_s\": -1}, \"steps\": "
        "{\"count\": 1e300, \"counted\": 20, \"step_ms\": {\"mean\": 5, \"std\": null}, "
        "\"phases\": [{\"phase\": \"forward\", \"ms\": \"x\", \"measured\": true}, 7, "
        "{}]}, \"sections\": {\"a\": [1]}, \"modules\": [null]}"};
    for (size_t i = 0; i < 3; i++) {
        sw_compare_input *input;
        sw_comparison *comparison;
        assert_int_equal(
            sw_compare_input_read_report(&input, texts[i], strlen(texts[i]), NULL, NULL),
            0);
        const sw_compare_input *const twice[] = {input, input};
        assert_int_equal(sw_compare_inputs(&comparison, twice, 2, NULL, NULL), 0);
        const sw_compared *run = sw_comparison_get(comparison, 0);
        assert_false(run->tested || run->regression);
        assert_int_equal(run->verdict, i < 2 ? SW_VERDICT_INCOMPARABLE : SW_VERDICT_SAME);
        sw_comparison_free(comparison);
        sw_compare_input_free(input);
    }
}

/* Traces of Chrome's format, in both of its forms: 8 spans of 2 ms against 8 of 1 ms. */
static void traces(void **state)
{
    (void)state;
    sw_compare_input *inputs[2];
    sw_comparison *comparison;
    for (size_t side = 0; side < 2; side++) {
        char text[4096];
        size_t used = (size_t)snprintf(
            text, sizeof text,
            "%s{\"ph\": \"M\", \"name\": \"process_name\", \"args\": {\"name\": \"x\"}}",
            side ? "[" : "{\"schemaVersion\": 1, \"traceEvents\": [");
        for (int i = 0; i < 8; i++) {
            used += (size_t)snprintf(
                text + used, sizeof text - used,
                ", {\"ph\": \"X\", \"name\": \"decoding\", \"ts\": %d.5, \"dur\": %d}",
                1700000000 + i * 2000, side ? 1000 : 2000);
        }
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 ", {\"ph\": \"X\", \"name\": \"bad\", \"dur\": -1}, "
                                 "{\"ph\": \"X\", \"name\": \"bad\", \"ts\": -1e308, "
                                 "\"dur\": 1}, {\"ph\": \"X\", \"name\": \"bad\", "
                                 "\"ts\": 1e308, \"dur\": 1}, 7%s",
                                 side ? "]" : "]}");
        assert_int_equal(
            sw_compare_input_read_report(&inputs[side], text, used, "t.json", NULL), 0);
    }
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    size_t count;
    const sw_compared_part *part =
        sw_comparison_parts(comparison, 0, SW_COMPARED_SECTION, &count);
    assert_int_equal(run->basis, SW_BASIS_DURATION);
    assert_int_equal(run->verdict, SW_VERDICT_FASTER);
    assert_true(fabs(run->speedup - 16.0 / 15) < 1e-6);
    assert_int_equal(count, 1);
    assert_string_equal(part->name, "decoding");
    assert_true(part->before_ns == 2e6 && part->after_ns == 1e6);
    assert_true(part->before_calls == 8 && part->changed == 1);
    sw_comparison_free(comparison);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

static void steps_of_other_kinds(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "{\"schema\": \"stepwatch.report/1\", \"steps\": {\"counted\": 20, \"unit\": "
        "\"batch\", \"step_ms\": {\"mean\": 5, \"std\": 1}}}",
        "{\"schema\": \"stepwatch.report/1\", \"steps\": {\"counted\": 20, \"unit\": "
        "\"update\", \"step_ms\": {\"mean\": 20, \"std\": 1}}}"};
    sw_compare_input *inputs[2];
    sw_comparison *comparison;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(sw_compare_input_read_report(&inputs[i], texts[i],
                                                      strlen(texts[i]), NULL, NULL),
                         0);
    }
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->verdict, SW_VERDICT_INCOMPARABLE);
    assert_false(run->regression);
    assert_true(noted(comparison, "A step is of kind batch before and update now."));
    sw_comparison_free(comparison);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

/* --- single steps --- */

static void steps_one_by_one(void **state)
{
    (void)state;
    struct plan plan = usual;
    plan.epoch_steps = 20;
    plan.validation_ms = 30;
    plan.gap_ms = 1;
    struct fixture *fixture = record(&plan);
    const sw_summary *summary = summarise(fixture);
    sw_summary_step *steps;
    size_t count;
    uint64_t validation = 0;
    assert_int_equal(sw_summary_step_series(summary, &steps, &count, NULL), 0);
    assert_int_equal(count, 60);
    for (size_t i = 0; i < count; i++) {
        uint64_t sum = 0;
        for (size_t p = 0; p < SW_PHASE_COUNT; p++) {
            sum += steps[i].phase_ns[p];
        }
        assert_int_equal(steps[i].number, i);
        assert_int_equal(sum, steps[i].end_ns - steps[i].begin_ns);
        assert_int_equal(steps[i].epoch, i / 20);
        assert_int_equal(steps[i].epoch_first, i % 20 == 0);
        assert_true(steps[i].complete && !steps[i].warmup && steps[i].events);
        assert_int_equal(steps[i].validation_after_ns > 0, i % 20 == 19);
        assert_int_equal(steps[i].checkpoint_after_ns, 0);
        validation += steps[i].validation_after_ns;
        if (i > 0) {
            assert_true(steps[i].begin_ns >= steps[i - 1].end_ns + MS);
        }
    }
    assert_true(near((double)validation, 90 * MS, 9 * MS));
    sw_summary_steps_free(steps);
    fixture_free(fixture);
}

/* --- functions --- */

static sw_compare_input *profile(const char *file, uint64_t self)
{
    sw_functions *functions;
    sw_compare_input *input;
    assert_int_equal(sw_functions_create(&functions), 0);
    for (unsigned i = 0; i < 2; i++) {
        const sw_function function = {.file = file,
                                      .file_length = strlen(file),
                                      .name = i ? "load" : "decode",
                                      .name_length = i ? 4 : 6,
                                      .line = 10 + i,
                                      .totals = {.calls = 5, .self = i ? 1000 : self}};
        assert_int_equal(sw_functions_add(functions, &function, NULL), 0);
    }
    assert_int_equal(sw_compare_input_of_functions(&input, functions, file, NULL), 0);
    sw_functions_free(functions);
    return input;
}

static void function_profiles(void **state)
{
    (void)state;
    /* In another file, as a copy of the program has it. */
    sw_compare_input *inputs[2] = {profile("/a/before.py", 3000),
                                   profile("/b/after.py", 1000)};
    sw_comparison *comparison;
    assert_int_equal(sw_compare_inputs(&comparison,
                                       (const sw_compare_input *const *)inputs, 2, NULL,
                                       NULL),
                     0);
    const sw_compared *run = sw_comparison_get(comparison, 0);
    assert_int_equal(run->basis, SW_BASIS_FUNCTIONS);
    assert_int_equal(run->verdict, SW_VERDICT_FASTER);
    assert_true(run->speedup == 2 && !run->tested && isnan(run->low));
    size_t count;
    const sw_compared_part *parts =
        sw_comparison_parts(comparison, 0, SW_COMPARED_FUNCTION, &count);
    assert_int_equal(count, 2);
    assert_string_equal(parts[0].name, "decode");
    assert_true(parts[0].before_ns == 3000 && parts[0].difference_ns == -2000);
    assert_string_equal(parts[0].per, "run");
    char text[256];
    (void)sw_comparison_sentence(comparison, 0, true, text, sizeof text);
    assert_string_equal(text, "faster by 100 % (no test): 4.00 us in functions before, "
                              "2.00 us now, of which decode -2.00 us");
    sw_comparison_free(comparison);
    sw_compare_input_free(inputs[0]);
    sw_compare_input_free(inputs[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_got_faster),
        cmocka_unit_test(modules_and_sections),
        cmocka_unit_test(modules_that_come_and_go),
        cmocka_unit_test(validation_counts),
        cmocka_unit_test(time_between_steps_counts),
        cmocka_unit_test(the_same_twice),
        cmocka_unit_test(lost_records),
        cmocka_unit_test(too_few_steps),
        cmocka_unit_test(runs_without_steps),
        cmocka_unit_test(batches_of_other_sizes),
        cmocka_unit_test(other_programs),
        cmocka_unit_test(a_copy_of_the_program),
        cmocka_unit_test(wrong_arguments),
        cmocka_unit_test(reports_say_the_same),
        cmocka_unit_test(bad_reports),
        cmocka_unit_test(odd_reports),
        cmocka_unit_test(steps_of_other_kinds),
        cmocka_unit_test(traces),
        cmocka_unit_test(steps_one_by_one),
        cmocka_unit_test(function_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
