/* Findings about loaders, on runs composed by hand: each cause planted once, and the same run without it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include <stepwatch/findings.h>

#include "run_fixture.h"

#define START 1000000000u
#define MS 1000000u
#define NONE UINT32_MAX
#define PID 4242 /* of the traces that the builder makes */

enum {
    N_WAIT = 1,
    N_PREPROCESS,
    N_FORWARD,
    N_H2D,
    T_FILE,
    T_LOADER,
    T_DATASET,
    T_GETITEM,
    T_DECODE,
    T_NOISE,
    T_COLLATE,
    T_FETCH,
    T_STAGE,
    T_COPY,
    T_PARSE,
    T_FETCHER,
    T_PROGRAM
};

/* A run in words. Times are ms; those of stages are means. */
struct plan {
    unsigned steps, epochs; /* steps of each epoch */
    double compute, wait;   /* of a step */
    double first;           /* wait of the first of an epoch; 0: as the others */
    double (*wait_of)(unsigned step);
    const char *cores;
    bool no_loader, no_site;
    unsigned workers, prefetch, bits, passes;
    double getitem, getitem_cpu;      /* of a batch */
    double decode, collate;           /* of these: a transform, and collating besides */
    double (*made_of)(unsigned step); /* of a batch in its worker; else the sum above */
    double start, shutdown;           /* of a pass */
    double cpu, delay;                /* of a step: on a core, and waiting for one */
    double h2d;                       /* of a step */
    double take;                      /* of a batch that is there; 0: 0.1 */
    double gc;                        /* of a step, while its batch is made */
    unsigned line, others;        /* samples of making: of one line, and of the rest */
    unsigned reads, small, times; /* calls of another process, and how often over */
    /* Samples of a worker in a function that its dataset calls, and of those in native code. */
    unsigned function, in_call;
    const char *source; /* of that function, from line 1; its hot line is the third */
    double threads;     /* of the framework; 0: it does not say */
};

static char program[128]; /* where the source of the plan is */

static double of_step(const struct plan *plan, unsigned i)
{
    return plan->wait_of                             ? plan->wait_of(i)
           : plan->first > 0 && i % plan->steps == 0 ? plan->first
                                                     : plan->wait;
}

static double made(const struct plan *plan, unsigned i)
{
    return plan->made_of ? plan->made_of(i) : plan->getitem + plan->collate;
}

static uint64_t ticks(double ms)
{
    return (uint64_t)(ms * MS + 0.5);
}

static struct tb *new_trace(void)
{
    static const struct {
        uint32_t id;
        const char *text;
        unsigned phase;
    } sections[] = {{N_WAIT, "data_wait", SW_PHASE_DATA_WAIT},
                    {N_PREPROCESS, "getitem", SW_PHASE_PREPROCESS},
                    {N_FORWARD, "forward", SW_PHASE_FORWARD},
                    {N_H2D, "h2d", SW_PHASE_H2D}};
    static const struct {
        uint32_t id;
        const char *text;
    } texts[] = {{T_FILE, "/src/train.py"},
                 {T_LOADER, "train_loader"},
                 {T_DATASET, "Images"},
                 {T_GETITEM, "getitem"},
                 {T_DECODE, "Decode"},
                 {T_NOISE, "Noise"},
                 {T_COLLATE, "pad"},
                 {T_FETCH, "fetch"},
                 {T_STAGE, "stage"},
                 {T_COPY, "Tensor.to"},
                 {T_PARSE, "parse"},
                 {T_FETCHER, "/v/site-packages/torch/utils/data/_utils/fetch.py"},
                 {T_PROGRAM, program}};
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        tb_name(tb, sections[i].id, sections[i].text, 1, sections[i].phase);
    }
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tb_name(tb, texts[i].id, texts[i].text, 0, SW_PHASE_INHERIT);
    }
    tb_thread(tb, 0, "main");
    return tb;
}

static uint32_t rows_made;

static void stage(struct tb *tb, uint32_t worker, unsigned kind, uint32_t name,
                  uint64_t calls, double each, double cpu)
{
    if (calls && each > 0) {
        const sw_row row = {
            SW_TABLE_STAGE,
            0,
            rows_made++,
            {T_LOADER, worker, kind, name},
            {calls, ticks(each) * calls, ticks(cpu) * calls, ticks(each), ticks(each)}};
        tb_row(tb, &row);
    }
}

static void settings(struct tb *tb, const struct plan *plan)
{
    const sw_row site = {
        SW_TABLE_SITE, 0, 0, {SW_SITE_LOADER, T_FILE, 41, T_LOADER}, {0}};
    const sw_row loader = {SW_TABLE_LOADER,
                           0,
                           0,
                           {T_LOADER, T_DATASET, plan->workers, 8},
                           {plan->bits, plan->prefetch ? plan->prefetch : 2, 800,
                            plan->passes ? plan->passes : plan->epochs,
                            plan->no_site ? 0 : 1}};
    tb_row(tb, &site);
    tb_row(tb, &loader);
}

static void batch(struct tb *tb, const struct plan *plan, unsigned i, uint64_t at,
                  bool worker)
{
    const double took = made(plan, i);
    const double cpu = plan->getitem > 0 ? took * (plan->getitem_cpu + plan->collate) /
                                               (plan->getitem + plan->collate)
                                         : took;
    sw_record_batch record = {.head = {.kind = SW_RECORD_BATCH,
                                       .units = sizeof record / SW_RECORD_UNIT,
                                       .flags = SW_RECORD_INTERVAL,
                                       .id = T_LOADER,
                                       .ticks = at},
                              .end = at + ticks(took) + 1,
                              .batch =
                                  (uint64_t)(i / plan->steps) << 32 | i % plan->steps,
                              .worker = NONE,
                              .step = UINT64_MAX};
    if (worker) {
        record.worker = i % plan->workers;
        record.fetch_begin = at;
        record.fetch_end = at + ticks(took);
        record.cpu_ns = ticks(cpu);
        record.bytes = 4096;
    } else {
        const uint64_t take = ticks(plan->take > 0 ? plan->take : 0.1);
        record.end += take;
        record.receive = record.end - take;
        record.step = i;
    }
    tb_record(tb, 0, &record);
}

static void making(struct tb *tb, const struct plan *plan, uint32_t worker,
                   uint64_t calls)
{
    double sum = 0;
    for (unsigned i = 0; i < plan->steps * plan->epochs; i++) {
        sum += made(plan, i);
    }
    const double each = sum / (plan->steps * plan->epochs);
    const double part = plan->getitem > 0 ? plan->getitem_cpu / plan->getitem : 1;
    stage(tb, worker, SW_STAGE_FETCH, T_FETCH, calls, each,
          (each - plan->collate) * part + plan->collate);
    stage(tb, worker, SW_STAGE_GETITEM, T_GETITEM, calls, each - plan->collate,
          (each - plan->collate) * part);
    stage(tb, worker, SW_STAGE_TRANSFORM, T_DECODE, calls, plan->decode, plan->decode);
    stage(tb, worker, SW_STAGE_TRANSFORM, T_NOISE, calls, plan->decode * 0.01,
          plan->decode * 0.01);
    stage(tb, worker, SW_STAGE_COLLATE, T_COLLATE, calls, plan->collate, plan->collate);
}

/* Samples of the training thread while it makes batches: one line of a function, and four of another. */
static void sampled(struct tb *tb, const struct plan *plan)
{
    const uint64_t all = plan->line + plan->others;
    const sw_row rows[] = {
        {.table = SW_TABLE_SAMPLER, .key = {100}, .value = {1000, 1000}},
        {.table = SW_TABLE_CONTEXT, .key = {0, 0, SW_PHASE_PREPROCESS}, .value = {all}},
        {.table = SW_TABLE_CODE, .key = {T_FILE, T_PARSE, 60, T_PARSE}},
        {.table = SW_TABLE_CODE, .index = 1, .key = {T_FILE, T_GETITEM, 70, T_GETITEM}},
        {.table = SW_TABLE_STACK,
         .flags = SW_ROW_IN_CONTEXT,
         .key = {0, 0, 61},
         .value = {plan->line, 0, plan->line}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    for (uint32_t i = 1; i <= 4; i++) {
        const uint64_t part = plan->others / 4;
        const sw_row row = {.table = SW_TABLE_STACK,
                            .index = i,
                            .flags = SW_ROW_IN_CONTEXT,
                            .key = {0, 1, 70 + i},
                            .value = {part, 0, part}};
        tb_row(tb, &row);
    }
}

/* Samples of a worker: the loader asks the dataset, which calls a function. */
static void sampled_worker(struct tb *tb, const struct plan *plan)
{
    const uint64_t all = plan->function + 10;
    const sw_row rows[] = {
        {.table = SW_TABLE_SAMPLER, .key = {100}, .value = {1000, 1000}},
        {.table = SW_TABLE_CONTEXT, .key = {0, 0, SW_PHASE_INHERIT}, .value = {all}},
        {.table = SW_TABLE_CODE, .key = {T_FETCHER, T_FETCH, 40, T_FETCH}},
        {.table = SW_TABLE_CODE, .index = 1, .key = {T_FILE, T_GETITEM, 70, T_GETITEM}},
        {.table = SW_TABLE_CODE, .index = 2, .key = {T_PROGRAM, T_PARSE, 1, T_PARSE}},
        {.table = SW_TABLE_STACK, .flags = SW_ROW_IN_CONTEXT, .key = {0, 0, 41}},
        {.table = SW_TABLE_STACK, .index = 1, .key = {0, 1, 71}, .value = {10, 0, 10}},
        {.table = SW_TABLE_STACK,
         .index = 2,
         .key = {1, 2, 3},
         .value = {plan->function, 0, plan->in_call}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
}

static struct tb *training_trace(const struct plan *plan)
{
    struct tb *tb = new_trace();
    struct tb_lane *lane = tb_lane(tb, 0, 0);
    uint64_t at = START;
    const unsigned all = plan->steps * plan->epochs;
    if (plan->cores) {
        tb_fact(tb, "cpus_usable", plan->cores);
    }
    for (unsigned i = 0; i < all; i++) {
        uint64_t phases[SW_PHASE_SLOTS] = {0};
        const bool itself = plan->workers == 0 && !plan->no_loader;
        phases[itself ? SW_PHASE_PREPROCESS : SW_PHASE_DATA_WAIT] =
            ticks(of_step(plan, i));
        phases[SW_PHASE_DATA_WAIT] += ticks(0.01);
        phases[SW_PHASE_FORWARD] = ticks(plan->compute * (1 + 0.002 * (i % 5)));
        phases[SW_PHASE_H2D] = ticks(plan->h2d);
        phases[SW_PHASE_GC] = ticks(plan->gc);
        at += i && i % plan->steps == 0 ? ticks(plan->start + plan->shutdown) : 0;
        if (plan->workers) {
            batch(tb, plan, i, at, false);
        }
        step_used(tb, lane, at, phases, i / plan->steps, 0, ticks(plan->cpu),
                  ticks(plan->delay));
        for (unsigned p = 0; p < SW_PHASE_SLOTS; p++) {
            at += phases[p];
        }
    }
    tb->super.end_snapshot = tb_snapshot(tb, at + MS);
    if (!plan->no_loader) {
        settings(tb, plan);
        stage(tb, NONE, SW_STAGE_WAIT, T_STAGE, all, plan->wait > 0 ? plan->wait : 0.01,
              0);
        stage(tb, NONE, SW_STAGE_FIRST, T_STAGE, plan->epochs,
              plan->first > 0 ? plan->first : plan->wait, 0);
        stage(tb, NONE, SW_STAGE_START, T_STAGE, plan->epochs, plan->start, 0);
        stage(tb, NONE, SW_STAGE_SHUTDOWN, T_STAGE, plan->epochs, plan->shutdown, 0);
        if (plan->workers == 0) {
            making(tb, plan, NONE, all);
        }
    }
    if (plan->line + plan->others > 0) {
        sampled(tb, plan);
    }
    if (plan->threads > 0) {
        uint64_t bits;
        memcpy(&bits, &plan->threads, sizeof bits);
        tb_name(tb, T_PROGRAM + 1, "threads", 0, SW_PHASE_INHERIT);
        tb_name(tb, T_PROGRAM + 2, "intraop", 0, SW_PHASE_INHERIT);
        const sw_row row = {.table = SW_TABLE_SETTING,
                            .key = {T_PROGRAM + 1, T_PROGRAM + 2},
                            .value = {bits}};
        tb_row(tb, &row);
    }
    if (plan->h2d > 0) {
        const sw_row row = {SW_TABLE_WAIT,
                            0,
                            0,
                            {T_COPY, T_FILE, 50, SW_WAIT_H2D},
                            {all, ticks(plan->h2d) * all, 4096, ticks(plan->h2d), 0}};
        tb_row(tb, &row);
    }
    return tb;
}

static struct tb *worker_trace(const struct plan *plan, uint32_t worker)
{
    struct tb *tb = new_trace();
    uint64_t at = START, calls = 0;
    /* Samples count where the thread is the one that its process began with. */
    tb->super.pid = plan->function ? 5000 : PID + 1 + worker;
    tb->super.ppid = PID;
    for (unsigned i = 0; i < plan->steps * plan->epochs; i++) {
        if (i % plan->workers == worker) {
            batch(tb, plan, i, at, true);
            at += ticks(made(plan, i)) + 2;
            calls++;
        }
    }
    making(tb, plan, worker, calls);
    if (plan->function) {
        sampled_worker(tb, plan);
    }
    return tb;
}

struct result {
    struct fixture *fixture;
    sw_findings *findings;
    const sw_finding *list;
    size_t count;
};

static struct result look_at(struct fixture *fixture)
{
    struct result result = {.fixture = fixture};
    sw_error_info info = {0};
    assert_int_equal(sw_findings_of_summary(&result.findings, summarise(fixture), &info),
                     0);
    result.list = sw_findings_get(result.findings, &result.count);
    for (size_t i = 0; i < result.count; i++) {
        const sw_finding *it = &result.list[i];
        assert_non_null(it->title);
        assert_true(it->advice_count > 0 && it->rule_count > 0);
        assert_true(it->confidence >= 0 && it->confidence <= 1);
        assert_true(!it->predicted ||
                    (it->low <= it->speedup && it->speedup <= it->high));
    }
    return result;
}

/* A process that reads /data/train.bin, 8 MB, and was watched while it did. */
static struct tb *io_trace(const struct plan *plan)
{
    enum { PATH = 1 };
    const uint64_t size = 8000000, bytes = size * plan->times;
    struct tb *tb = tb_new(SW_CLOCK_MONOTONIC);
    tb->super.pid = 5000;
    tb_thread(tb, 0, "main");
    tb_name(tb, PATH, "/data/train.bin", 0, SW_PHASE_INHERIT);
    const sw_row rows[] = {
        {.table = SW_TABLE_WATCHED, .value = {100, 0, 0, 0, 1000000}},
        {.table = SW_TABLE_IO,
         .key = {0, SW_PHASE_INHERIT, SW_IO_KIND_FILE, SW_IO_READ},
         .value = {plan->reads, bytes, ticks(1500), plan->small, ticks(5)}},
        {.table = SW_TABLE_THING,
         .key = {PATH, SW_IO_KIND_FILE, SW_IO_READ},
         .value = {plan->reads, bytes, ticks(1500), plan->small, ticks(5)}},
        {.table = SW_TABLE_THING,
         .index = 1,
         .key = {PATH, SW_IO_KIND_FILE, 0},
         .value = {size}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    return tb;
}

static struct result find(const struct plan *plan)
{
    struct fixture *fixture = fixture_new();
    rows_made = 0;
    snprintf(program, sizeof program, "%s/data.py", fixture->folder);
    if (plan->source) {
        tb_write(program, plan->source, strlen(plan->source));
    }
    write_trace(fixture, training_trace(plan));
    for (uint32_t i = 0; i < plan->workers && !plan->no_loader; i++) {
        rows_made = 0;
        write_trace(fixture, worker_trace(plan, i));
    }
    if (plan->reads) {
        write_trace(fixture, io_trace(plan));
    }
    return look_at(fixture);
}

static void done(struct result *result)
{
    sw_findings_free(result->findings);
    fixture_free(result->fixture);
}

/* Findings about loaders; the rules of other matters are none of our business here. */
static size_t about_loaders(const struct result *result, const sw_finding **first)
{
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++) {
        if (result->list[i].kind <= SW_FINDING_LOADER_MAIN_PROCESS) {
            *first = count++ ? *first : &result->list[i];
        }
    }
    return count;
}

static void assert_none(const struct plan *plan)
{
    struct result result = find(plan);
    const sw_finding *first = NULL;
    const size_t count = about_loaders(&result, &first);
    if (count) {
        print_error("%s\n", first->title);
    }
    assert_int_equal(count, 0);
    done(&result);
}

static const sw_finding *assert_one(const struct result *result,
                                    enum sw_finding_kind kind)
{
    const sw_finding *first = NULL;
    const size_t count = about_loaders(result, &first);
    assert_int_equal(count, 1);
    assert_string_equal(sw_finding_kind_name(first->kind), sw_finding_kind_name(kind));
    return first;
}

static bool has_rule(const sw_finding *finding, const char *rule)
{
    for (size_t i = 0; i < finding->rule_count; i++) {
        if (strcmp(finding->rules[i], rule) == 0) {
            return true;
        }
    }
    return false;
}

static bool advises(const sw_finding *finding, const char *part)
{
    for (size_t i = 0; i < finding->advice_count; i++) {
        if (strstr(finding->advice[i], part)) {
            return true;
        }
    }
    return false;
}

static double number(const sw_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->evidence_count; i++) {
        if (strcmp(finding->evidence[i].name, name) == 0) {
            return finding->evidence[i].value;
        }
    }
    return NAN;
}

/* --- too few workers --- */

/* A batch takes as long to make as to train on: one worker makes it twice as fast. */
static const struct plan slow_samples = {.steps = 30,
                                         .epochs = 2,
                                         .compute = 30,
                                         .wait = 30,
                                         .cores = "4.00",
                                         .getitem = 29.5,
                                         .getitem_cpu = 29.5,
                                         .collate = 0.5};

static void workers_make_batches_ahead(void **state)
{
    (void)state;
    struct result result = find(&slow_samples);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->predicted);
    assert_true(it->speedup > 1.8 && it->speedup < 2.17);
    assert_true(it->low > 1.15);
    assert_int_equal(it->severity, SW_SEVERITY_HIGH);
    assert_string_equal(it->file, "/src/train.py");
    assert_int_equal(it->line, 41);
    assert_string_equal(it->name, "train_loader");
    assert_true(
        advises(it, "train.py:41: DataLoader(num_workers=0) \xE2\x86\x92 num_workers="));
    assert_true(advises(it, "persistent_workers=True"));
    assert_true(advises(it, "benchmark_dataloader(train_loader)"));
    assert_true(advises(it, "made again in each of"));
    assert_false(advises(it, "pin_memory"));
    assert_true(has_rule(it, "RULE-02") && has_rule(it, "RULE-06") &&
                has_rule(it, "RULE-13") && has_rule(it, "RULE-36") &&
                has_rule(it, "RULE-49"));
    assert_false(has_rule(it, "RULE-07"));
    assert_true(fabs(number(it, "wait_share") - 0.5) < 0.01);
    assert_true(fabs(number(it, "compute_ms") - 30.1) < 0.2);
    assert_true(number(it, "workers") == 0);
    assert_true(number(it, "workers_proposed") <= 4);
    assert_true(it->confidence > 0.9);
    done(&result);
}

/* Nothing was made twice: there is nothing to keep. */
static void one_epoch_makes_nothing_again(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.passes = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "made again in each of"));
    assert_false(has_rule(it, "RULE-13"));
    done(&result);
}

static void more_workers_than_before(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.workers = 1;
    plan.getitem = plan.getitem_cpu = 59.5; /* twice what training takes */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 1.6 && it->speedup < 2.05);
    assert_true(advises(it, "DataLoader(num_workers=1) \xE2\x86\x92 num_workers="));
    done(&result);
}

static void a_loader_that_keeps_up_is_fine(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 1;
    plan.getitem = plan.getitem_cpu = 0.5;
    assert_none(&plan);
    plan.workers = 2;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.getitem = plan.getitem_cpu = 40; /* hidden behind training */
    plan.wait = 0.2;
    assert_none(&plan);
}

static double now_and_then(unsigned i)
{
    return i == 31 || i == 47 ? 60 : 0.5;
}

static double at_first(unsigned i)
{
    return i < 4 ? 300 : 0.2;
}

static void chance_and_warm_up_are_no_evidence(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait_of = now_and_then; /* 7 % on average, from two steps */
    assert_none(&plan);
    plan.wait_of = at_first;
    assert_none(&plan);
}

/* Making a batch takes 1 ms of a core and waits 9 ms for one; the rest of the step sleeps. */
static void a_busy_machine_is_no_fault_of_the_loader(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 10;
    plan.getitem = 10;
    plan.getitem_cpu = 0.9;
    plan.collate = 0.1;
    plan.cpu = 1;
    plan.delay = 9.2;
    assert_none(&plan);
    plan.cpu = 30; /* a core of its own: the samples wait for something else */
    plan.delay = 0;
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_IO);
    done(&result);
}

/* What workers may gain or not is worth a word on a quiet machine, and little where others have the cores. */
static void a_busy_machine_makes_gains_doubtful(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.wait = 14;
    plan.getitem = plan.getitem_cpu = 10.5;
    plan.collate = 3.5;
    plan.cores = "2.00";
    plan.cpu = 44;
    struct result result = find(&plan);
    assert_true(assert_one(&result, SW_FINDING_LOADER_WORKERS)->severity >
                SW_SEVERITY_LOW);
    done(&result);
    plan.cpu = 25;
    plan.delay = 19;
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_int_equal(it->severity, SW_SEVERITY_LOW);
    done(&result);
}

/* Training that waits for its device leaves its core to the worker: two cores are enough for all of the gain. */
static void steps_that_sleep_need_no_core(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.cpu = 60; /* computes all the time */
    struct result result = find(&plan);
    const double busy = assert_one(&result, SW_FINDING_LOADER_WORKERS)->speedup;
    done(&result);
    plan.cpu = 31; /* 30 of them to make the batch */
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > busy + 0.1);
    assert_true(it->speedup > 1.8);
    done(&result);
}

static void one_core_has_no_room_for_workers(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "1.00";
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "Images.__getitem__");
    assert_false(advises(it, "num_workers"));
    done(&result);
}

/* As many workers as cores, and they compute: nothing to gain from more. */
static void cores_that_are_used_up(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 2;
    plan.getitem = plan.getitem_cpu = 100;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_false(advises(it, "num_workers"));
    done(&result);
}

/* --- stages --- */

static void a_transform_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.decode = 25;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "Decode");
    assert_string_equal(it->file, "/src/train.py"); /* no sample knows better */
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(has_rule(it, "RULE-38") && has_rule(it, "RULE-02"));
    /* 60 ms a step, of which a tenth of 25 stays; a half; none. */
    assert_true(fabs(it->speedup - relieved(60, 22.5)) < 0.03);
    assert_true(it->low < 60.0 / (60 - 12.5) + 0.02);
    assert_true(it->high > 60.0 / (60 - 25.0) - 0.02);
    assert_true(advises(it, "a tenth"));
    done(&result);
    plan.decode = 5; /* among others */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.workers = 4; /* hidden behind training */
    plan.bits = SW_LOADER_PERSISTENT;
    plan.decode = 25;
    plan.wait = 0.2;
    assert_none(&plan);
}

/* A function that the dataset calls in a worker: many short calls in a loop, a few long ones, no loop at all. */
static void a_function_dominates(void **state)
{
    (void)state;
    static const char loop[] = "def parse(x):\n    for y in x:\n        out += f(y)\n";
    static const char plain[] = "def parse(x):\n    y = g(x)\n    out = f(y)\n";
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 1;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.compute = 5;
    plan.wait = 25;
    plan.function = 490;
    plan.in_call = 350;
    plan.source = loop;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_int_equal(it->line, 3);
    assert_true(fabs(number(it, "stage_share") - 0.98) < 0.01);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > 3);
    done(&result);
    plan.in_call = 485; /* each call takes its time */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.in_call = 350;
    plan.source = plain;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.source = loop; /* workers in time: nothing to tell */
    plan.compute = 40;
    plan.wait = 0.2;
    assert_none(&plan);
}

/* One thread computes, as torch was told: the other core is free for a worker. */
static void threads_that_torch_tells_of(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    struct result result = find(&plan);
    const double unknown = assert_one(&result, SW_FINDING_LOADER_WORKERS)->speedup;
    done(&result);
    plan.threads = 1;
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(it->speedup > unknown + 0.1);
    assert_true(fabs(it->speedup - relieved(60, 28.5)) < 0.1);
    done(&result);
}

/* One line of a sample that gains more than workers do. */
static void a_line_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.compute = 5;
    plan.cores = "2.00";
    plan.line = 900;
    plan.others = 100;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_TRANSFORM);
    assert_string_equal(it->name, "parse");
    assert_int_equal(it->line, 61);
    assert_true(fabs(number(it, "stage_share") - 0.9) < 0.01);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    assert_true(fabs(it->speedup - relieved(35, 0.81 * 30)) < 0.1);
    done(&result);
    plan.line = 400; /* of many */
    plan.others = 600;
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
    plan.line = 600; /* workers hide it all */
    plan.others = 400;
    plan.compute = 30;
    plan.cores = "16.00";
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* What is collected while a batch is made goes with what made it. */
static void garbage_of_making(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.getitem = plan.getitem_cpu = 1;
    plan.collate = 39;
    plan.gc = 10;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_true(fabs(it->speedup - relieved(70, 0.9 * 39)) < 0.1);
    done(&result);
    plan.collate = 29; /* it comes elsewhere in the step */
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_true(fabs(it->speedup - relieved(70, 0.9 * 29)) < 0.1);
    done(&result);
}

static void collating_dominates(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.getitem = plan.getitem_cpu = 5;
    plan.collate = 25;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_COLLATE);
    assert_string_equal(it->name, "pad");
    assert_true(fabs(it->speedup - relieved(60, 22.5)) < 0.03);
    assert_true(it->also & (uint64_t)1 << SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* Workers that are nearly in time use up the cores: that alone is worth no other code, unless very much is gained. */
static void workers_that_are_nearly_in_time(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.workers = 2;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.wait = 2.5;
    plan.getitem = plan.getitem_cpu = 2;
    plan.collate = 30;
    assert_none(&plan);
    plan.collate = 120;
    plan.wait = 7;
    struct result result = find(&plan);
    (void)assert_one(&result, SW_FINDING_LOADER_COLLATE);
    done(&result);
}

static void samples_wait_for_files(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.cores = "2.00";
    plan.compute = 10;
    plan.wait = 60;
    plan.getitem = 59.5;
    plan.getitem_cpu = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(number(it, "workers_proposed") > 2); /* more than cores */
    assert_true(number(it, "blocked_share") > 0.9);
    assert_true(it->speedup > 4);
    assert_true(advises(it, "DataLoader(num_workers=0)"));
    done(&result);
    /* Calls that were watched say more: that they are small, and that all is read again. */
    plan.reads = 4000;
    plan.small = 3600;
    plan.times = 1;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(fabs(number(it, "io_s") - 1.5) < 0.01);
    assert_true(fabs(number(it, "io_read_mb") - 8) < 0.01);
    assert_true(fabs(number(it, "io_small_share") - 0.9) < 0.01);
    assert_true(advises(it, "90 % of the 4000 reads moved fewer than 4 KiB"));
    assert_true(advises(it, "/data/train.bin"));
    assert_false(advises(it, "times over"));
    done(&result);
    plan.small = 0;
    plan.times = 3;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_IO);
    assert_true(fabs(number(it, "io_times_read") - 3) < 0.01);
    assert_true(advises(it, "3.0 times over"));
    assert_true(has_rule(it, "RULE-13"));
    done(&result);
    plan.reads = 0;
    plan.getitem_cpu = plan.getitem; /* it computes */
    result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

/* Small batches from workers: handing them over takes longer than making them. */
static void batches_too_small_to_hand_over(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.workers = 2;
    plan.compute = 1;
    plan.wait = 1;
    plan.take = 0.95;
    plan.getitem = plan.getitem_cpu = 0.2;
    plan.collate = 0.01;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_MAIN_PROCESS);
    assert_true(has_rule(it, "RULE-09"));
    assert_true(advises(it, "DataLoader(num_workers=2) \xE2\x86\x92 num_workers=0"));
    assert_true(advises(it, "batch_size=8 \xE2\x86\x92 32"));
    assert_false(advises(it, "persistent_workers"));
    assert_true(it->speedup > 1.3 && it->speedup < 1.8);
    done(&result);
    plan.getitem = plan.getitem_cpu = 1.5; /* dear enough to make elsewhere */
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_MAIN_PROCESS);
    assert_false(advises(it, "num_workers=0"));
    done(&result);
}

/* --- epochs --- */

static const struct plan again = {.steps = 10,
                                  .epochs = 6,
                                  .compute = 20,
                                  .wait = 0.2,
                                  .first = 100,
                                  .cores = "4.00",
                                  .workers = 2,
                                  .getitem = 8,
                                  .getitem_cpu = 8,
                                  .collate = 0.5,
                                  .start = 60,
                                  .shutdown = 20};

static void workers_are_started_again(void **state)
{
    (void)state;
    struct result result = find(&again);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(has_rule(it, "RULE-08"));
    assert_true(advises(it, "train.py:41: DataLoader(num_workers=2) \xE2\x86\x92 "
                            "persistent_workers=True"));
    assert_true(fabs(number(it, "restart_ms") - (60 + 20 + 100 - 8.5)) < 0.1);
    assert_true(number(it, "restarts") == 5);
    assert_true(it->speedup > 1.3 && it->speedup < 2.5);
    done(&result);
}

static void workers_that_stay_are_fine(void **state)
{
    (void)state;
    struct plan plan = again;
    plan.bits = SW_LOADER_PERSISTENT;
    plan.first = 9;
    plan.start = 1;
    plan.shutdown = 0;
    assert_none(&plan);
    plan = again; /* one epoch has no second start */
    plan.steps = 60;
    plan.epochs = 1;
    assert_none(&plan);
}

static void a_loader_built_in_every_epoch(void **state)
{
    (void)state;
    struct plan plan = again;
    plan.bits = SW_LOADER_PERSISTENT; /* and yet they start */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_RESTART);
    assert_true(advises(it, "build it once"));
    assert_false(advises(it, "persistent_workers"));
    done(&result);
}

/* --- bursts --- */

/* Every 20 batches four come that take long: two workers with two batches each in stock cannot bridge that. */
static double burst_made(unsigned i)
{
    return i % 20 < 4 ? 80 : 5;
}

static double burst_wait(unsigned i)
{
    return i >= 20 && i % 20 == 0 ? 60 : i >= 20 && i % 20 == 2 ? 60 : 0.2;
}

static const struct plan bursts = {.steps = 200,
                                   .epochs = 1,
                                   .compute = 20,
                                   .wait_of = burst_wait,
                                   .wait = 6,
                                   .cores = "4.00",
                                   .workers = 2,
                                   .getitem = 20,
                                   .getitem_cpu = 20,
                                   .made_of = burst_made};

static void batches_come_in_bursts(void **state)
{
    (void)state;
    struct result result = find(&bursts);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(has_rule(it, "RULE-10"));
    assert_true(
        advises(it, "DataLoader(prefetch_factor=2) \xE2\x86\x92 prefetch_factor="));
    assert_true(number(it, "wait_p95_ms") > 3 * number(it, "wait_p50_ms"));
    assert_true(it->speedup > 1.05 && it->speedup < 1.5);
    done(&result);
}

/* The same from files: workers are enough on average, so it is the bursts that are told. */
static void bursts_of_waiting(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.getitem_cpu = 1;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(number(it, "blocked_share") > 0.5);
    done(&result);
}

/* One long batch in fifty: no quantile shows it, and it is nearly all of the waiting. */
static double seldom_made(unsigned i)
{
    return i % 50 < 2 ? 400 : 1;
}

static double seldom_wait(unsigned i)
{
    return i >= 50 && i % 50 == 0 ? 330 : 0.2;
}

static void bursts_that_are_few(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.steps = 400;
    plan.made_of = seldom_made;
    plan.wait_of = seldom_wait;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_BURSTY);
    assert_true(number(it, "bursts_share") > 0.9);
    assert_true(number(it, "prefetch_proposed") >= 8);
    done(&result);
}

static void bursts_that_the_queue_bridges(void **state)
{
    (void)state;
    struct plan plan = bursts;
    plan.prefetch = 16;
    plan.wait_of = NULL;
    plan.wait = 0.2;
    assert_none(&plan);
}

/* --- what is not known --- */

static void a_loader_of_someone_else(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_loader = true; /* a loop that says what is waiting, no more */
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "DataLoader") || advises(it, "num_workers"));
    assert_null(it->file);
    assert_int_equal(it->severity, SW_SEVERITY_HIGH);
    done(&result);
    plan = slow_samples;
    plan.bits = SW_LOADER_FOREIGN;
    plan.workers = 0;
    result = find(&plan);
    const sw_finding *first = NULL;
    if (about_loaders(&result, &first)) {
        assert_false(advises(first, "DataLoader") || advises(first, "num_workers"));
    }
    done(&result);
}

/* Handing a batch over costs as much as making it. */
static void a_short_wait_for_someone_elses_loader(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_loader = true;
    plan.compute = 2;
    plan.wait = 0.25;
    plan.cpu = 2.25;
    assert_none(&plan);
    plan.compute = 20;
    plan.wait = 5;
    plan.cpu = 25;
    struct result result = find(&plan);
    assert_one(&result, SW_FINDING_LOADER_WORKERS);
    done(&result);
}

static void pages_are_pinned_for_a_gpu_only(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.h2d = 5;
    struct result result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_true(advises(it, "pin_memory=True"));
    assert_true(has_rule(it, "RULE-07") && has_rule(it, "RULE-37"));
    done(&result);
    plan.bits = SW_LOADER_PIN;
    result = find(&plan);
    it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_false(advises(it, "pin_memory") || has_rule(it, "RULE-07"));
    done(&result);
}

static void missing_places_and_sizes(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.no_site = true;
    plan.cores = NULL; /* as one */
    plan.bits = SW_LOADER_ITERABLE;
    struct result result = find(&plan);
    const sw_finding *first = NULL;
    about_loaders(&result, &first);
    done(&result);
    plan.cores = "8.00";
    result = find(&plan);
    const sw_finding *it = assert_one(&result, SW_FINDING_LOADER_WORKERS);
    assert_null(it->file);
    assert_true(advises(it, "get_worker_info"));
    assert_true(strncmp(it->advice[0], "DataLoader(", 11) == 0);
    done(&result);
}

static void too_few_steps_say_nothing(void **state)
{
    (void)state;
    struct plan plan = slow_samples;
    plan.steps = 4;
    struct result result = find(&plan);
    const char *why;
    assert_int_equal(result.count, 0);
    assert_false(sw_findings_checked(result.findings, SW_FINDING_LOADER_WORKERS, &why));
    assert_non_null(why);
    done(&result);
}

/* Workers whose files are gone, batches that were never made, numbers that no recorder writes. */
static void nonsense_does_no_harm(void **state)
{
    (void)state;
    const uint64_t huge[] = {0, 1, UINT64_MAX, UINT64_MAX / 2, (uint64_t)1 << 53};
    for (size_t i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        for (unsigned workers = 0; workers < 3; workers++) {
            struct plan plan = slow_samples;
            plan.workers = workers;
            plan.bits = UINT16_MAX & ~(unsigned)SW_LOADER_FOREIGN;
            rows_made = 0;
            struct tb *tb = training_trace(&plan);
            for (unsigned kind = 0; kind < SW_STAGE_KINDS + 1; kind++) {
                const sw_row row = {SW_TABLE_STAGE,
                                    0,
                                    rows_made++,
                                    {T_LOADER, workers ? 0 : NONE, kind, T_DECODE},
                                    {huge[i], huge[i], huge[i], huge[i], huge[i]}};
                tb_row(tb, &row);
            }
            sw_record_batch record = {.head = {.kind = SW_RECORD_BATCH,
                                               .units = sizeof record / SW_RECORD_UNIT,
                                               .flags = SW_RECORD_INTERVAL,
                                               .id = T_LOADER,
                                               .ticks = START},
                                      .end = START + 5,
                                      .fetch_begin = huge[i],
                                      .fetch_end = huge[4 - i],
                                      .receive = huge[i],
                                      .cpu_ns = huge[i],
                                      .bytes = huge[i],
                                      .step = huge[i],
                                      .worker = (uint32_t)huge[i]};
            tb_record(tb, 0, &record);
            struct fixture *fixture = fixture_new();
            write_trace(fixture, tb);
            struct result result = look_at(fixture);
            done(&result);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_make_batches_ahead),
        cmocka_unit_test(one_epoch_makes_nothing_again),
        cmocka_unit_test(more_workers_than_before),
        cmocka_unit_test(a_loader_that_keeps_up_is_fine),
        cmocka_unit_test(chance_and_warm_up_are_no_evidence),
        cmocka_unit_test(a_busy_machine_is_no_fault_of_the_loader),
        cmocka_unit_test(a_busy_machine_makes_gains_doubtful),
        cmocka_unit_test(steps_that_sleep_need_no_core),
        cmocka_unit_test(one_core_has_no_room_for_workers),
        cmocka_unit_test(cores_that_are_used_up),
        cmocka_unit_test(a_transform_dominates),
        cmocka_unit_test(a_line_dominates),
        cmocka_unit_test(a_function_dominates),
        cmocka_unit_test(threads_that_torch_tells_of),
        cmocka_unit_test(garbage_of_making),
        cmocka_unit_test(collating_dominates),
        cmocka_unit_test(workers_that_are_nearly_in_time),
        cmocka_unit_test(samples_wait_for_files),
        cmocka_unit_test(batches_too_small_to_hand_over),
        cmocka_unit_test(workers_are_started_again),
        cmocka_unit_test(workers_that_stay_are_fine),
        cmocka_unit_test(a_loader_built_in_every_epoch),
        cmocka_unit_test(batches_come_in_bursts),
        cmocka_unit_test(bursts_of_waiting),
        cmocka_unit_test(bursts_that_are_few),
        cmocka_unit_test(bursts_that_the_queue_bridges),
        cmocka_unit_test(a_loader_of_someone_else),
        cmocka_unit_test(a_short_wait_for_someone_elses_loader),
        cmocka_unit_test(pages_are_pinned_for_a_gpu_only),
        cmocka_unit_test(missing_places_and_sizes),
        cmocka_unit_test(too_few_steps_say_nothing),
        cmocka_unit_test(nonsense_does_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
