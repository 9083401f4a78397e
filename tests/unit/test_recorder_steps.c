/* Steps: numbers, phases that add up, usage, schedules. */
#include "recorder_util.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <stepwatch/schedule.h>

#define STEPS (1u << SW_RECORD_STEP)
#define SPANS (1u << SW_RECORD_SPAN)

static void test_numbers_and_units(void **state)
{
    (void)state;
    const int units[] = {SW_STEP_MANUAL, SW_STEP_BATCH, SW_STEP_UPDATE, SW_STEP_LOOP};
    assert_int_equal(sw_step_number(), -1);
    sw_step_begin(); /* Not recording: not a step. */
    sw_step_end();
    ru_start((sw_config){0});
    assert_int_equal(sw_step_number(), 0);
    for (int i = 0; i < 40; i++) {
        if (i == 10 || i == 30) {
            sw_epoch((uint32_t)i / 10);
        }
        sw_step_begin_unit(units[i % 4]);
        assert_int_equal(sw_step_number(), i);
        if (i % 5 == 0) {
            sw_update();
        }
        sw_step_end();
        assert_int_equal(sw_step_number(), i + 1);
    }
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 40);
    uint64_t before = 0;
    for (size_t i = 0; i < 40; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, i);
        assert_int_equal(step->unit, units[i % 4]);
        assert_int_equal(step->epoch, i < 10 ? UINT32_MAX : i < 30 ? 1 : 3);
        assert_int_equal(step->domain, 0);
        assert_int_equal(step->samples, 0);
        assert_true(step->head.flags & SW_STEP_EVENTS);
        assert_false(step->head.flags & (SW_STEP_INCOMPLETE | SW_STEP_WARMUP));
        assert_true(step->head.ticks >= before);
        before = step->end;
    }
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    assert_int_equal(lane->steps, 40);
    assert_int_equal(lane->updates, 8);
    assert_false(lane->step_open);
    ru_records_free(&steps);
    ru_free(&trace);
    /* The next recording counts from 0 again. */
    ru_start((sw_config){.out = ru_path("second")});
    assert_int_equal(sw_step_number(), 0);
    sw_step_begin();
    sw_step_end();
    trace = ru_finish();
    steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 1);
    assert_int_equal(steps.at[0].record->step.number, 0);
    assert_int_equal(steps.at[0].record->step.epoch, UINT32_MAX);
    ru_records_free(&steps);
    ru_free(&trace);
}

static void test_incomplete_steps(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    sw_step_end(); /* None is open. */
    sw_step_abandon();
    sw_step_begin(); /* 0: still open when the next begins */
    sw_step_begin(); /* 1: complete */
    sw_step_end();
    sw_step_end();
    sw_step_begin(); /* 2: left by break */
    sw_step_abandon();
    sw_step_begin(); /* 3: open at the end */
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        bool incomplete = (step->head.flags & SW_STEP_INCOMPLETE) != 0;
        assert_int_equal(step->number, i);
        assert_int_equal(incomplete, i != 1);
    }
    const sw_trace_lane *lane = ru_lane(&trace, 0, 0);
    assert_int_equal(lane->steps, 4);
    assert_int_equal(lane->steps_incomplete, 3);
    uint64_t whole = 0;
    for (unsigned i = 0; i < SW_PHASE_SLOTS; i++) {
        whole += lane->phase_ns[i];
    }
    assert_int_equal(whole, lane->step_total_ns);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* What is read and written in a step is told with it. */
static void test_io_of_steps(void **state)
{
    (void)state;
    static char text[50000];
    const char *path = ru_path("data");
    const int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    ru_start((sw_config){0});
    for (int i = 0; i < 10; i++) {
        sw_step_begin();
        if (i == 5) {
            assert_int_equal(pwrite(fd, text, sizeof text, 0), sizeof text);
        }
        for (int k = 0; i > 5 && k < i; k++) {
            assert_int_equal(pread(fd, text, sizeof text, 0), sizeof text);
        }
        usleep(11000); /* longer than the period of reading */
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 10);
    assert_null(sw_step_get_io(&steps.at[0].record->step)); /* nothing to compare with */
    for (size_t i = 1; i < 10; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        const sw_step_io *io = sw_step_get_io(step);
        assert_non_null(io);
        assert_int_equal(step->usage_steps, 1);
        const uint64_t reads = i > 5 ? i : 0;
        /* The recorder reads some small files, and writes to its own now and then. */
        assert_in_range(io->read_bytes, reads * sizeof text, reads * sizeof text + 5000);
        assert_in_range(io->read_calls, reads, reads + 20);
        if (i == 5) {
            assert_true(io->written_bytes >= sizeof text && io->write_calls >= 1);
        }
    }
    ru_records_free(&steps);
    ru_free(&trace);
    close(fd);
}

static void test_usage(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    for (int i = 0; i < 30; i++) {
        sw_step_begin();
        /* Longer than the period of reading, in ticks of any clock there is. */
        ru_spin(50000000);
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    uint64_t covered = 0, cpu = 0;
    for (size_t i = 0; i < steps.count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        covered += step->usage_steps;
        if (step->usage_steps) {
            assert_true(step->cpu_ns > 0);
            cpu += step->cpu_ns;
        } else {
            assert_int_equal(step->cpu_ns, 0);
            assert_int_equal(step->run_delay_ns, UINT64_MAX);
        }
    }
    /* The first reading has nothing to compare with; after it no step is left out or counted twice. */
    assert_true(covered >= 25 && covered <= 29);
    uint64_t from = steps.at[0].begin_ns;
    uint64_t to = steps.at[steps.count - 1].end_ns;
    assert_true(cpu <= (to - from) + (to - from) / 4);
    ru_records_free(&steps);
    ru_free(&trace);

    ru_start((sw_config){.out = ru_path("without"), .step_usage = SW_OFF});
    for (int i = 0; i < 5; i++) {
        sw_step_begin();
        ru_spin(10000000);
        sw_step_end();
    }
    trace = ru_finish();
    steps = ru_read(&trace, STEPS);
    for (size_t i = 0; i < steps.count; i++) {
        assert_int_equal(steps.at[i].record->step.usage_steps, 0);
        assert_int_equal(steps.at[i].record->step.run_delay_ns, UINT64_MAX);
    }
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Time goes to the innermost open section that has a phase; others inherit. */
static void test_phase_of_innermost_section(void **state)
{
    (void)state;
    const uint64_t long_time = 300000;
    sw_section *forward = sw_section_get("forward");
    sw_section *loss = sw_section_get("loss");
    sw_section *plain = sw_section_get("no phase of its own");
    sw_section *chosen = sw_section_get_n("my own name", 11, SW_PHASE_COMMUNICATION);
    ru_start((sw_config){0});
    sw_begin(forward); /* Open when the step begins: counts from its first tick. */
    sw_step_begin();
    ru_spin(long_time);
    sw_begin(plain);
    ru_spin(long_time);
    sw_begin(loss);
    ru_spin(long_time);
    sw_end(loss);
    sw_end(plain);
    sw_end(forward);
    sw_begin(chosen);
    ru_spin(long_time);
    sw_step_end(); /* Still open when the step ends. */
    sw_step_begin();
    ru_spin(long_time);
    sw_end(chosen);
    ru_spin(long_time);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    const uint64_t *one = steps.at[0].record->step.phase_ticks;
    const uint64_t *two = steps.at[1].record->step.phase_ticks;
    assert_true(one[SW_PHASE_FORWARD] >= 2 * long_time);
    assert_true(one[SW_PHASE_LOSS] >= long_time);
    assert_true(one[SW_PHASE_COMMUNICATION] >= long_time);
    assert_true(two[SW_PHASE_COMMUNICATION] >= long_time);
    assert_true(two[SW_PHASE_OTHER] >= long_time);
    assert_int_equal(two[SW_PHASE_FORWARD], 0);
    /* The section's own record says how long it was; its phase cannot have been longer. */
    struct ru_records spans = ru_read(&trace, SPANS);
    for (size_t i = 0; i < spans.count; i++) {
        const sw_record_span *span = &spans.at[i].record->span;
        if (strcmp(ru_name(&trace, span->head.id), "loss") == 0) {
            assert_int_equal(one[SW_PHASE_LOSS], span->end - span->head.ticks);
        }
    }
    ru_records_free(&spans);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* A section with a phase that ends before one without, opened inside it: its phase ends with it. */
static void test_phase_of_unnested_section(void **state)
{
    (void)state;
    const uint64_t long_time = 300000;
    sw_section *forward = sw_section_get("forward");
    sw_section *loss = sw_section_get("loss");
    sw_section *plain = sw_section_get("plain");
    ru_start((sw_config){0});
    sw_step_begin();
    sw_begin(forward);
    sw_begin(plain);
    sw_end(forward);
    ru_spin(long_time);
    sw_end(plain);
    sw_step_end();
    sw_step_begin();
    sw_begin(forward);
    sw_begin(loss);
    sw_end(forward);
    sw_end(loss);
    ru_spin(long_time);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    struct ru_records spans = ru_read(&trace, SPANS);
    const sw_record_span *ended = &spans.at[0].record->span;
    const sw_record_step *step = &steps.at[0].record->step;
    assert_int_equal(step->phase_ticks[SW_PHASE_FORWARD], ended->end - ended->head.ticks);
    assert_true(step->phase_ticks[SW_PHASE_OTHER] >= long_time);
    step = &steps.at[1].record->step;
    assert_true(step->phase_ticks[SW_PHASE_OTHER] >= long_time);
    ru_records_free(&spans);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Thousands of steps with random sections; a model of the rule "the innermost phase wins" gives the
 * same ticks per phase from the records alone. */
#define DEPTH 6
#define KINDS 9
static void random_steps(uint64_t seed, int rounds)
{
    static const int phases[KINDS] = {
        SW_PHASE_INHERIT, SW_PHASE_FORWARD,   SW_PHASE_BACKWARD,
        SW_PHASE_OTHER,   SW_PHASE_INHERIT,   SW_PHASE_DATA_WAIT,
        SW_PHASE_LOSS,    SW_PHASE_OPTIMIZER, SW_PHASE_CHECKPOINT};
    sw_section *sections[KINDS];
    size_t stack[DEPTH];
    unsigned depth = 0;
    bool open = false;
    for (size_t i = 0; i < KINDS; i++) {
        char name[16];
        snprintf(name, sizeof name, "kind %zu", i);
        sections[i] = sw_section_get_n(name, strlen(name), phases[i]);
    }
    for (int i = 0; i < rounds; i++) {
        uint64_t dice = ru_random(&seed);
        if (dice % 8 == 0) {
            if (open && dice % 3 == 0) {
                sw_step_abandon();
                open = false;
            } else if (open && dice % 3 == 1) {
                sw_step_end();
                open = false;
            } else {
                sw_step_begin();
                open = true;
            }
        } else if (dice % 2 && depth < DEPTH) {
            /* Three ways on from each node, one of them recursion: the tree stays small enough
             * for every path to have a node, and a phase, of its own. */
            size_t way = (size_t)(dice >> 8) % 3;
            size_t kind =
                way == 2 && depth ? stack[depth - 1] : (depth + way * 3) % KINDS;
            sw_begin(sections[kind]);
            stack[depth++] = kind;
        } else if (depth) {
            sw_end(sections[stack[--depth]]);
        }
    }
    while (depth) {
        sw_end(sections[stack[--depth]]);
    }
    if (open) {
        sw_step_end();
    }
}

/* A moment at which the running phase may change. */
struct edge {
    uint64_t ticks;
    bool begin;
    uint16_t depth;
    int phase;
};

/* Begins and ends in the order in which they happened, which ticks alone do not tell: two may have the
 * same. Records come in the order of ends; read backwards, a span comes before all that was in it, so
 * a span's begin is where the next one that is not in it ends. Gives the number of edges; the first
 * is edges[0]. */
static size_t edges_of(const struct ru_trace *trace, const struct ru_records *spans,
                       struct edge *edges)
{
    const sw_record_span *open[DEPTH + 1];
    unsigned depth = 0;
    size_t at = spans->count * 2;
    for (size_t i = spans->count; i-- > 0 || depth;) {
        bool more = i != SIZE_MAX;
        const sw_record_span *span = more ? &spans->at[i].record->span : NULL;
        while (depth > (more ? span->depth : 0u)) {
            const sw_record_span *begun = open[--depth];
            edges[--at] =
                (struct edge){begun->head.ticks, true, begun->depth,
                              sw_trace_get_name(trace->trace, begun->head.id)->phase};
        }
        if (!more) {
            break;
        }
        assert_int_equal(span->depth, depth);
        edges[--at] =
            (struct edge){span->end, false, span->depth,
                          sw_trace_get_name(trace->trace, span->head.id)->phase};
        open[depth++] = span;
    }
    assert_int_equal(at, 0);
    return spans->count * 2;
}

static void check_phases_by_model(const struct ru_trace *trace)
{
    struct ru_records steps = ru_read(trace, STEPS);
    struct ru_records spans = ru_read(trace, SPANS);
    struct edge *edges = calloc(spans.count * 2 + 1, sizeof *edges);
    assert_non_null(edges);
    assert_int_equal(trace->info->nodes_folded, 0);
    size_t count = edges_of(trace, &spans, edges);
    int open[DEPTH + 1];
    for (unsigned i = 0; i <= DEPTH; i++) {
        open[i] = SW_PHASE_INHERIT;
    }
    size_t next = 0;
    for (size_t i = 0; i < steps.count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        uint64_t sums[SW_PHASE_SLOTS] = {0};
        uint64_t at = step->head.ticks;
        for (;;) {
            bool within = next < count && edges[next].ticks < step->end;
            uint64_t until = within ? edges[next].ticks : step->end;
            int phase = SW_PHASE_OTHER;
            for (unsigned d = 0; d <= DEPTH; d++) {
                phase = open[d] == SW_PHASE_INHERIT ? phase : open[d];
            }
            if (until > at) {
                sums[phase] += until - at;
                at = until;
            }
            if (!within) {
                break;
            }
            open[edges[next].depth] =
                edges[next].begin ? edges[next].phase : SW_PHASE_INHERIT;
            next++;
        }
        for (unsigned k = 0; k < SW_PHASE_SLOTS; k++) {
            assert_int_equal(step->phase_ticks[k], sums[k]);
        }
    }
    free(edges);
    ru_records_free(&spans);
    ru_records_free(&steps);
}

static void record_random_steps(void *arg)
{
    const uint64_t *seed = arg;
    ru_start((sw_config){.policy = "stream"});
    random_steps(*seed, 40000);
}

static void test_phases_by_property(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        char folder[16];
        snprintf(folder, sizeof folder, "run%d", (int)seed);
        ru_start((sw_config){.policy = "stream", .out = ru_path(folder)});
        random_steps(seed, 40000);
        struct ru_trace trace = ru_finish();
        assert_true(ru_lane(&trace, 0, 0)->steps > 1000);
        check_phases_by_model(&trace);
        ru_free(&trace);
    }
    /* And with the clock that takes the slow path. */
    uint64_t seed = 5;
    setenv("STEPWATCH_CLOCK", "monotonic", 1);
    ru_child(record_random_steps, &seed);
    unsetenv("STEPWATCH_CLOCK");
    struct ru_trace trace = ru_open_run(ru_path("run"));
    check_phases_by_model(&trace);
    ru_free(&trace);
}

static void record_steps(uint64_t steps)
{
    sw_section *section = sw_section_get("work");
    for (uint64_t i = 0; i < steps; i++) {
        sw_step_begin();
        for (int j = 0; j < 3; j++) {
            sw_begin(section);
            sw_end(section);
        }
        sw_counter("value", (double)i);
        sw_mark("here");
        sw_step_end();
        sw_begin(section); /* Between steps. */
        sw_end(section);
    }
}

static void test_schedules(void **state)
{
    (void)state;
    const char *const texts[] = {
        "always",
        "wait=2,warmup=1,active=3,repeat=4,every=20,skip_first=5",
        "wait=1,warmup=1,active=2",
        "every=7",
        "every=10,skip_first=25",
        "steps=0,3,4,50,99,1000",
        "wait=1000,warmup=0,active=1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char folder[16];
        sw_schedule schedule;
        assert_int_equal(sw_schedule_parse(&schedule, texts[i], NULL), 0);
        assert_int_equal(sw_schedule_check(&schedule, NULL, NULL), 0);
        snprintf(folder, sizeof folder, "run%zu", i);
        ru_start((sw_config){.out = ru_path(folder), .schedule = texts[i]});
        record_steps(100);
        struct ru_trace trace = ru_finish();
        struct ru_records steps = ru_read(&trace, STEPS);
        struct ru_records events = ru_read(&trace, 0);
        assert_int_equal(steps.count, 100);
        size_t inside = 0;
        for (size_t j = 0; j < steps.count; j++) {
            const sw_record_step *step = &steps.at[j].record->step;
            enum sw_action action = sw_schedule_action(&schedule, j);
            /* A clock that ticks slowly (cntvct) may show one tick for what is before and what is after. */
            size_t within = 0, edge = 0;
            for (size_t k = 0; k < events.count; k++) {
                uint64_t ticks = events.at[k].record->head.ticks;
                within += ticks >= step->head.ticks && ticks <= step->end;
                edge += ticks == step->head.ticks || ticks == step->end;
            }
            const size_t expected = action >= SW_ACTION_RECORD ? 5 : 0;
            assert_in_range(expected, within - edge, within);
            assert_int_equal((step->head.flags & SW_STEP_EVENTS) != 0,
                             action >= SW_ACTION_RECORD);
            assert_int_equal((step->head.flags & SW_STEP_WARMUP) != 0,
                             action == SW_ACTION_WARMUP);
            inside += expected;
        }
        /* Between steps only where everything is recorded; statistics of all, always. */
        assert_int_equal(events.count, inside + (i == 0 ? 100 : 0));
        assert_int_equal(ru_calls(&trace, "work"), 400);
        assert_int_equal(ru_calls(&trace, "value"), 100);
        assert_int_equal(trace.info->dropped, 0);
        ru_records_free(&events);
        ru_records_free(&steps);
        ru_free(&trace);
    }
}

static void test_statistics_only(void **state)
{
    (void)state;
    ru_start((sw_config){.events = SW_OFF});
    record_steps(1000);
    struct ru_trace trace = ru_finish();
    assert_false(trace.info->events);
    assert_int_equal(trace.info->present, 0);
    assert_int_equal(trace.info->dropped, 0);
    assert_int_equal(ru_count(&trace, 0), 0);
    assert_int_equal(ru_count(&trace, STEPS), 1000);
    assert_int_equal(ru_calls(&trace, "work"), 4000);
    assert_int_equal(ru_calls(&trace, "value"), 1000);
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_false(steps.at[0].record->head.flags & SW_STEP_EVENTS);
    ru_records_free(&steps);
    ru_free(&trace);

    /* A schedule does not switch events on that the tier has off. */
    ru_start(
        (sw_config){.out = ru_path("both"), .events = SW_OFF, .schedule = "every=2"});
    record_steps(10);
    trace = ru_finish();
    assert_int_equal(trace.info->present, 0);
    ru_free(&trace);
}

/* --- steps of a loop that asks for batches --- */

/* Each step ends when the next begins, to the tick. */
static void test_next(void **state)
{
    (void)state;
    sw_section *data = sw_section_get("data_wait");
    sw_section *forward = sw_section_get("forward");
    ru_start((sw_config){0});
    sw_epoch(3);
    for (int i = 0; i < 20; i++) {
        sw_step_next(SW_STEP_BATCH);
        assert_int_equal(sw_step_number(), i);
        sw_begin(data);
        ru_spin(500);
        sw_end(data);
        sw_begin(forward);
        sw_end(forward);
    }
    sw_step_end();
    sw_step_next(SW_STEP_LOOP); /* none was open */
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 21);
    for (size_t i = 0; i < 20; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, i);
        assert_int_equal(step->unit, SW_STEP_BATCH);
        assert_int_equal(step->epoch, 3);
        assert_int_equal(step->head.flags & SW_STEP_INCOMPLETE, 0);
        assert_true(step->phase_ticks[SW_PHASE_DATA_WAIT] >= 500);
        assert_true(i == 0 || steps.at[i - 1].record->step.end == step->head.ticks);
    }
    const sw_record_step *last = &steps.at[20].record->step;
    assert_int_equal(last->unit, SW_STEP_LOOP);
    assert_true(last->head.flags & SW_STEP_INCOMPLETE);
    assert_true(last->head.ticks >= steps.at[19].record->step.end);
    assert_int_equal(ru_lane(&trace, 0, 0)->steps, 21);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* A step that was cancelled never was: no record, no time, and its number goes to the next. */
static void test_cancel(void **state)
{
    (void)state;
    sw_section *forward = sw_section_get("forward");
    ru_start((sw_config){0});
    sw_step_cancel(); /* none is open */
    for (int i = 0; i < 5; i++) {
        sw_step_next(SW_STEP_BATCH);
        sw_begin(forward);
        sw_end(forward);
    }
    sw_step_next(SW_STEP_BATCH); /* asks for a batch, and there is none */
    ru_spin(1000000);
    sw_step_cancel();
    assert_int_equal(sw_step_number(), 5);
    sw_step_cancel();
    sw_begin(forward); /* between two epochs */
    sw_end(forward);
    sw_step_next(SW_STEP_BATCH);
    sw_step_cancel();
    sw_step_begin();
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, i);
        assert_int_equal(step->head.flags & SW_STEP_INCOMPLETE, 0);
        assert_true(i == 0 || i == 5 ||
                    steps.at[i - 1].record->step.end == step->head.ticks);
    }
    assert_int_equal(ru_lane(&trace, 0, 0)->steps, 6);
    assert_int_equal(ru_lane(&trace, 0, 0)->steps_incomplete, 0);
    assert_false(ru_lane(&trace, 0, 0)->step_open);
    assert_int_equal(ru_calls(&trace, "forward"), 6);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Outside recording both do nothing; with a schedule, events are those of the steps that there are. */
static void test_next_and_schedules(void **state)
{
    (void)state;
    sw_section *forward = sw_section_get("forward");
    sw_step_next(SW_STEP_BATCH);
    sw_step_cancel();
    ru_start((sw_config){.schedule = "steps=1,2"});
    for (int i = 0; i < 4; i++) {
        sw_step_next(SW_STEP_BATCH);
        sw_begin(forward);
        sw_end(forward);
    }
    sw_step_next(SW_STEP_BATCH);
    sw_step_cancel();
    sw_begin(forward);
    sw_end(forward);
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 4);
    for (size_t i = 0; i < 4; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal((step->head.flags & SW_STEP_EVENTS) != 0, i == 1 || i == 2);
    }
    assert_int_equal(ru_count(&trace, 1u << SW_RECORD_SPAN), 2);
    assert_int_equal(ru_calls(&trace, "forward"), 5);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* What is known only afterwards: a part of a step, and whole steps. */
static void test_claims(void **state)
{
    (void)state;
    sw_section *forward = sw_section_get("forward");
    sw_section *logging = sw_section_get("logging");
    ru_start((sw_config){0});
    sw_phase_mark(); /* No step is open. */
    sw_phase_claim(SW_PHASE_LOSS);
    for (int i = 0; i < 3; i++) {
        sw_step_next(SW_STEP_BATCH);
        usleep(2000);
        sw_begin(forward);
        sw_end(forward);
        if (i > 0) {
            sw_phase_mark();
        }
        usleep(4000);
        sw_begin(logging);
        usleep(1000);
        sw_end(logging);
        if (i < 2) {
            sw_phase_claim(SW_PHASE_LOSS);
            sw_phase_claim(SW_PHASE_LOSS); /* once for a mark */
        }
    }
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        uint64_t sum = 0;
        for (size_t p = 0; p < SW_PHASE_SLOTS; p++) {
            sum += step->phase_ticks[p];
        }
        assert_int_equal(sum, step->end - step->head.ticks);
        assert_int_equal(step->phase_ticks[SW_PHASE_LOSS] > 0, i == 1);
        assert_true(step->phase_ticks[SW_PHASE_OTHER] > 0);
        assert_true(step->phase_ticks[SW_PHASE_LOGGING] > 0);
    }
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Phases are counted without a step, too, for who wants them. */
static void test_watched_phases(void **state)
{
    (void)state;
    sw_section *forward = sw_section_get("forward");
    uint64_t ticks[SW_PHASE_COUNT];
    ru_start((sw_config){0});
    sw_begin(forward);
    assert_int_equal(sw_step_phases(ticks), 0);
    sw_phases_watch();
    ru_spin(1000);
    sw_end(forward);
    const uint64_t begun = sw_step_phases(ticks);
    assert_int_not_equal(begun, 0);
    assert_true(ticks[SW_PHASE_FORWARD] > 0);
    sw_phases_watch(); /* goes on */
    assert_int_equal(sw_step_phases(ticks), begun);
    assert_int_equal(sw_step_number(), 0);
    sw_step_past_phases(SW_STEP_LOOP, begun, sw_now(), 0, ticks);
    assert_int_equal(sw_step_phases(ticks), 0);
    sw_phases_watch();
    sw_step_begin();
    sw_begin(forward);
    ru_spin(1000);
    sw_end(forward);
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 2);
    for (size_t i = 0; i < 2; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        uint64_t sum = 0;
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            sum += step->phase_ticks[p];
        }
        assert_int_equal(sum, step->end - step->head.ticks);
        assert_true(step->phase_ticks[SW_PHASE_FORWARD] > 0);
    }
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Each thread has epochs of its own; one that says none has those of the others. */
static void *other_epochs(void *says)
{
    for (uint32_t i = 0; i < 3; i++) {
        if (says) {
            sw_epoch(10 + i);
        }
        sw_step_begin();
        sw_step_end();
    }
    return NULL;
}

static void test_epochs_of_threads(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    for (uint32_t i = 0; i < 2; i++) {
        pthread_t thread;
        sw_epoch(i);
        sw_step_begin();
        assert_int_equal(pthread_create(&thread, NULL, other_epochs, i ? "" : NULL), 0);
        pthread_join(thread, NULL);
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 8);
    const uint32_t epoch[] = {0, 0, 0, 0, 1, 10, 11, 12}; /* by number */
    for (size_t i = 0; i < steps.count; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_in_range(step->number, 0, 7);
        assert_int_equal(step->epoch, epoch[step->number]);
    }
    ru_records_free(&steps);
    ru_free(&trace);
}

static void test_past_steps(void **state)
{
    (void)state;
    ru_start((sw_config){0});
    const uint64_t now = sw_now();
    usleep(2000);
    sw_epoch(3);
    sw_step_past(SW_STEP_LOOP, now, now + 1000, 300);
    sw_step_past(SW_STEP_LOOP, now + 1000, now + 1000, 0); /* nothing */
    sw_step_past(SW_STEP_LOOP, now + 1000, now + 2000,
                 1001); /* waits longer than it is */
    sw_step_past(SW_STEP_LOOP, now + 1000, now + 2000, 1000);
    sw_step_next(SW_STEP_LOOP);
    sw_step_past(SW_STEP_LOOP, now + 2000, now + 3000, 0); /* one is open */
    sw_step_end();
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    assert_int_equal(steps.count, 3);
    for (size_t i = 0; i < 2; i++) {
        const sw_record_step *step = &steps.at[i].record->step;
        assert_int_equal(step->number, i);
        assert_int_equal(step->epoch, 3);
        assert_int_equal(step->head.ticks, now + i * 1000);
        assert_int_equal(step->end, now + (i + 1) * 1000);
        assert_int_equal(step->phase_ticks[SW_PHASE_DATA_WAIT], i ? 1000 : 300);
        assert_int_equal(step->phase_ticks[SW_PHASE_OTHER], i ? 0 : 700);
        assert_int_equal(step->usage_steps, 0);
    }
    assert_int_equal(ru_lane(&trace, 0, 0)->steps, 3);
    ru_records_free(&steps);
    ru_free(&trace);
}

/* Phases of a step that turns out to be several: read while it is open, given to those that take its place. */
static void test_phases_of_past_steps(void **state)
{
    (void)state;
    sw_section *forward = sw_section_get("forward");
    uint64_t seen[SW_PHASE_COUNT] = {0};
    ru_start((sw_config){0});
    assert_int_equal(sw_step_phases(seen), 0);
    const uint64_t before = sw_now();
    sw_step_next(SW_STEP_UPDATE);
    sw_begin(forward);
    usleep(1000);
    const uint64_t begun = sw_step_phases(seen);
    sw_end(forward);
    const uint64_t now = sw_now();
    assert_true(begun >= before && begun <= now);
    assert_true(seen[SW_PHASE_FORWARD] > 0 && seen[SW_PHASE_FORWARD] <= now - begun);
    sw_step_cancel();
    usleep(2000);
    const uint64_t ticks[SW_PHASE_COUNT] = {
        [SW_PHASE_FORWARD] = 400, [SW_PHASE_BACKWARD] = 500};
    sw_step_past_phases(SW_STEP_BATCH, now, now + 1000, 60, ticks);
    /* A phase within the wait, and more than there is. */
    sw_step_past_phases(SW_STEP_BATCH, now + 1000, now + 2000, 300, ticks);
    sw_step_past_phases(SW_STEP_BATCH, now + 2000, now + 2700, 10, ticks);
    struct ru_trace trace = ru_finish();
    struct ru_records steps = ru_read(&trace, STEPS);
    static const uint64_t expected[3][4] = {
        {60, 400, 500, 40}, {100, 400, 500, 0}, {0, 400, 300, 0}};
    assert_int_equal(steps.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const uint64_t *phases = steps.at[i].record->step.phase_ticks;
        assert_int_equal(phases[SW_PHASE_DATA_WAIT], expected[i][0]);
        assert_int_equal(phases[SW_PHASE_FORWARD], expected[i][1]);
        assert_int_equal(phases[SW_PHASE_BACKWARD], expected[i][2]);
        assert_int_equal(phases[SW_PHASE_OTHER], expected[i][3]);
    }
    ru_records_free(&steps);
    ru_free(&trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_phases_of_past_steps),
        ru_test(test_numbers_and_units),
        ru_test(test_incomplete_steps),
        ru_test(test_usage),
        ru_test(test_io_of_steps),
        ru_test(test_phase_of_innermost_section),
        ru_test(test_phase_of_unnested_section),
        ru_test(test_phases_by_property),
        ru_test(test_schedules),
        ru_test(test_statistics_only),
        ru_test(test_next),
        ru_test(test_cancel),
        ru_test(test_next_and_schedules),
        ru_test(test_claims),
        ru_test(test_watched_phases),
        ru_test(test_epochs_of_threads),
        ru_test(test_past_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
