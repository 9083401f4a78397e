/* Runs with loaders, composed by hand: a plan says what takes how long, and the traces of the training and of its workers are
 * made of it. */
#ifndef LOADER_PLAN_H
#define LOADER_PLAN_H

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
    double cold;            /* what the first of an epoch computes longer */
    double (*wait_of)(unsigned step);
    const char *cores;
    bool no_loader, no_site;
    unsigned workers, prefetch, bits, passes;
    double getitem, getitem_cpu;      /* of a batch */
    double decode, collate;           /* of these: a transform, and collating besides */
    double (*made_of)(unsigned step); /* of a batch in its worker; else the sum above */
    double start, shutdown;           /* of a pass */
    double cpu, delay;                /* of a step: on a core, and waiting for one */
    unsigned faults;                  /* of a step: pages that the kernel gives out */
    double h2d;                       /* of a step */
    double take;                      /* of a batch that is there; 0: 0.1 */
    double asked; /* the same on average, from workers that are busy; 0: not known */
    double gc;    /* of a step, while its batch is made */
    unsigned line, others;        /* samples of making: of one line, and of the rest */
    unsigned reads, small, times; /* calls of another process, and how often over */
    /* Samples of whoever makes batches in a function that the dataset calls, and of those in native code. */
    unsigned function, in_call;
    unsigned itself;    /* and of the dataset itself, in native code; 0: 10 */
    unsigned asleep;    /* and of the function, while it waits */
    const char *source; /* of that function, from line 1; its hot line is the third */
    unsigned caller; /* the line there where what calls it begins; 0: in another file */
    double threads;  /* of the framework; 0: it does not say */
    double bound;    /* cores while it trains; 0: it does not say, with threads */
};

static char program[128]; /* where the source of the plan is */

static inline double of_step(const struct plan *plan, unsigned i)
{
    return plan->wait_of                             ? plan->wait_of(i)
           : plan->first > 0 && i % plan->steps == 0 ? plan->first
                                                     : plan->wait;
}

static inline double made(const struct plan *plan, unsigned i)
{
    return plan->made_of ? plan->made_of(i) : plan->getitem + plan->collate;
}

static inline uint64_t ticks(double ms)
{
    return (uint64_t)(ms * MS + 0.5);
}

static inline struct tb *new_trace(void)
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
                 {T_FETCH, "_MapDatasetFetcher.fetch"},
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

static inline void stage(struct tb *tb, uint32_t worker, unsigned kind, uint32_t name,
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

static inline void settings(struct tb *tb, const struct plan *plan)
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

static inline void batch(struct tb *tb, const struct plan *plan, unsigned i, uint64_t at,
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

static inline void making(struct tb *tb, const struct plan *plan, uint32_t worker,
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
static inline void sampled(struct tb *tb, const struct plan *plan)
{
    const uint64_t all = plan->line + plan->others;
    const sw_row rows[] = {
        {.table = SW_TABLE_SAMPLER, .key = {100}, .value = {1000, 1000}},
        {.table = SW_TABLE_CONTEXT, .key = {0, 0, SW_PHASE_PREPROCESS}, .value = {all}},
        {.table = SW_TABLE_CODE,
         .key = {plan->source ? T_PROGRAM : T_FILE, T_PARSE, plan->source ? 1 : 60,
                 T_PARSE}},
        {.table = SW_TABLE_CODE, .index = 1, .key = {T_FILE, T_GETITEM, 70, T_GETITEM}},
        {.table = SW_TABLE_CODE,
         .index = 2,
         .key = {T_PROGRAM, T_GETITEM, plan->caller, T_GETITEM}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    const sw_row caller = {.table = SW_TABLE_STACK,
                           .flags = SW_ROW_IN_CONTEXT,
                           .key = {0, 2, plan->caller + 1}};
    const sw_row line = {
        .table = SW_TABLE_STACK,
        .index = plan->caller ? 5 : 0,
        .flags = plan->caller ? 0 : SW_ROW_IN_CONTEXT,
        .key = {0, 0, plan->source ? 3 : 61},
        .value = {plan->line, 0, plan->in_call ? plan->in_call : plan->line}};
    if (plan->caller) {
        tb_row(tb, &caller);
    }
    tb_row(tb, &line);
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

/* Samples of a worker, or of the training thread: the loader asks the dataset, which calls a function. */
static inline void sampled_making(struct tb *tb, const struct plan *plan)
{
    const uint64_t itself = plan->itself ? plan->itself : 10;
    const uint64_t all = plan->function + itself;
    const sw_row rows[] = {
        {.table = SW_TABLE_SAMPLER, .key = {100}, .value = {1000, 1000}},
        {.table = SW_TABLE_CONTEXT,
         .key = {0, 0, plan->workers ? SW_PHASE_INHERIT : SW_PHASE_PREPROCESS},
         .value = {all, plan->asleep}},
        {.table = SW_TABLE_CODE, .key = {T_FETCHER, T_FETCH, 40, T_FETCH}},
        {.table = SW_TABLE_CODE,
         .index = 1,
         .key = {plan->caller ? T_PROGRAM : T_FILE, T_GETITEM,
                 plan->caller ? plan->caller : 70, T_GETITEM}},
        {.table = SW_TABLE_CODE, .index = 2, .key = {T_PROGRAM, T_PARSE, 1, T_PARSE}},
        {.table = SW_TABLE_STACK, .flags = SW_ROW_IN_CONTEXT, .key = {0, 0, 41}},
        {.table = SW_TABLE_STACK,
         .index = 1,
         .key = {0, 1, (plan->caller ? plan->caller : 70) + 1},
         .value = {itself, 0, itself}},
        {.table = SW_TABLE_STACK,
         .index = 2,
         .key = {1, 2, 3},
         .value = {plan->function, plan->asleep, plan->in_call}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
}

static inline struct tb *training_trace(const struct plan *plan)
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
        phases[SW_PHASE_FORWARD] = ticks(plan->compute * (1 + 0.002 * (i % 5)) +
                                         (i % plan->steps == 0 ? plan->cold : 0));
        phases[SW_PHASE_H2D] = ticks(plan->h2d);
        phases[SW_PHASE_GC] = ticks(plan->gc);
        at += i && i % plan->steps == 0 ? ticks(plan->start + plan->shutdown) : 0;
        if (plan->workers) {
            batch(tb, plan, i, at, false);
        }
        step_counted(tb, lane, at, phases, i / plan->steps, 0, ticks(plan->cpu),
                     ticks(plan->delay), plan->faults);
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
        if (plan->asked > 0) {
            const sw_row row = {
                SW_TABLE_STAGE,
                0,
                rows_made++,
                {T_LOADER, NONE, SW_STAGE_UNPICKLE, T_STAGE},
                {all, ticks(plan->asked) * all, 0, ticks(0.1), ticks(10 * plan->asked)}};
            tb_row(tb, &row);
        }
        if (plan->workers == 0) {
            making(tb, plan, NONE, all);
        }
    }
    if (plan->line + plan->others > 0) {
        sampled(tb, plan);
    } else if (plan->workers == 0 && plan->function) {
        sampled_making(tb, plan);
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
        memcpy(&bits, &plan->bound, sizeof bits);
        tb_name(tb, T_PROGRAM + 3, "cores", 0, SW_PHASE_INHERIT);
        const sw_row cores = {.table = SW_TABLE_SETTING,
                              .index = 1,
                              .key = {T_PROGRAM + 1, T_PROGRAM + 3},
                              .value = {bits}};
        tb_row(tb, &cores);
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

static inline struct tb *worker_trace(const struct plan *plan, uint32_t worker)
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
        sampled_making(tb, plan);
    }
    return tb;
}

struct result {
    struct fixture *fixture;
    sw_findings *findings;
    const sw_finding *list;
    size_t count;
};

static inline struct result look_at(struct fixture *fixture)
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
static inline struct tb *io_trace(const struct plan *plan)
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

static inline struct result find(const struct plan *plan)
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

static inline void done(struct result *result)
{
    sw_findings_free(result->findings);
    fixture_free(result->fixture);
}

/* Findings about loaders; the rules of other matters are none of our business here. */
static inline size_t about_loaders(const struct result *result, const sw_finding **first)
{
    size_t count = 0;
    for (size_t i = 0; i < result->count; i++) {
        if (result->list[i].kind <= SW_FINDING_LOADER_MAIN_PROCESS) {
            *first = count++ ? *first : &result->list[i];
        }
    }
    return count;
}

static inline void assert_none(const struct plan *plan)
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

static inline const sw_finding *assert_one(const struct result *result,
                                           enum sw_finding_kind kind)
{
    const sw_finding *first = NULL;
    const size_t count = about_loaders(result, &first);
    assert_int_equal(count, 1);
    assert_string_equal(sw_finding_kind_name(first->kind), sw_finding_kind_name(kind));
    return first;
}

static inline bool has_rule(const sw_finding *finding, const char *rule)
{
    for (size_t i = 0; i < finding->rule_count; i++) {
        if (strcmp(finding->rules[i], rule) == 0) {
            return true;
        }
    }
    return false;
}

static inline bool advises(const sw_finding *finding, const char *part)
{
    for (size_t i = 0; i < finding->advice_count; i++) {
        if (strstr(finding->advice[i], part)) {
            return true;
        }
    }
    return false;
}

static inline double number(const sw_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->evidence_count; i++) {
        if (strcmp(finding->evidence[i].name, name) == 0) {
            return finding->evidence[i].value;
        }
    }
    return NAN;
}

/* A batch takes as long to make as to train on: one worker makes it twice as fast. */
static const struct plan slow_samples = {.steps = 30,
                                         .epochs = 2,
                                         .compute = 30,
                                         .wait = 30,
                                         .cores = "4.00",
                                         .getitem = 29.5,
                                         .getitem_cpu = 29.5,
                                         .collate = 0.5};

#endif
