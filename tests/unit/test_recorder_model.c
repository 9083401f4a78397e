/* Writer to reader by property: random programs run twice, once into the recorder and once into a
 * plain model in memory. What is read back equals the model: paths, counts, order, flags; and times
 * in all their places are made of the same ticks. */
#include "recorder_util.h"

#include <pthread.h>
#include <unistd.h>

#define NAMES 6
#define DEEPEST 4
#define THREADS 3
/* A thread sanitizer is some twenty times slower, and what it looks for does not need many. */
#if defined(__SANITIZE_THREAD__)
#define OPERATIONS 5000
#else
#define OPERATIONS 30000
#endif

/* A record as the model expects it. */
struct expected {
    uint8_t kind;
    uint8_t name; /* index of the section, counter or mark */
    uint16_t flags;
    uint16_t depth;
    uint16_t domain;
    uint32_t node; /* of the model's tree */
    double value;
};

/* A path. Node 0 is the root. */
struct model_node {
    uint32_t parent;
    uint32_t stored; /* index in the trace, once it is known */
    uint8_t name;
    uint8_t
        depth; /* names in its path; more than its frame's depth once one below was pulled out */
    uint64_t calls, errors, unnested;
    uint64_t ticks, least, most, last, below; /* filled in from the records */
};

struct model_frame {
    uint32_t node;
    uint8_t name;
    uint64_t key;
};

/* One thread in one of two domains. */
struct model_lane {
    struct model_node *nodes;
    size_t count, room;
    struct model_frame stack[DEEPEST];
    unsigned depth;
    uint64_t steps, incomplete;
    bool step_open;
};

struct program {
    char name[16]; /* of its thread */
    uint64_t seed;
    bool tangled; /* ends out of order and keys too */
    int operations;
    sw_section *sections[2][NAMES];
    sw_domain *domains[2];
    struct model_lane lanes[2];
    struct expected *records;
    size_t count, room;
};

static uint32_t child_of(struct model_lane *lane, uint32_t parent, uint8_t name)
{
    for (uint32_t i = 1; i < lane->count; i++) {
        if (lane->nodes[i].parent == parent && lane->nodes[i].name == name) {
            return i;
        }
    }
    if (lane->count == lane->room) {
        lane->room = lane->room ? lane->room * 2 : 64;
        lane->nodes = realloc(lane->nodes, lane->room * sizeof *lane->nodes);
        ru_must(lane->nodes != NULL);
    }
    lane->nodes[lane->count] =
        (struct model_node){.parent = parent,
                            .name = name,
                            .depth = lane->count ? lane->nodes[parent].depth + 1u : 0,
                            .least = UINT64_MAX};
    return (uint32_t)lane->count++;
}

static void expect(struct program *program, struct expected record)
{
    if (program->count == program->room) {
        program->room = program->room ? program->room * 2 : 4096;
        program->records =
            realloc(program->records, program->room * sizeof *program->records);
        ru_must(program->records != NULL);
    }
    program->records[program->count++] = record;
}

static uint32_t top_node(const struct model_lane *lane)
{
    return lane->depth ? lane->stack[lane->depth - 1].node : 0;
}

static void do_begin(struct program *program, unsigned domain, uint64_t dice)
{
    struct model_lane *lane = &program->lanes[domain];
    uint8_t name = (uint8_t)(dice % NAMES);
    uint64_t key = program->tangled ? dice / NAMES % 3 : 0;
    if (key) {
        sw_section_begin(program->sections[domain][name], key);
    } else {
        sw_begin(program->sections[domain][name]);
    }
    uint32_t node = child_of(lane, top_node(lane), name);
    lane->stack[lane->depth++] = (struct model_frame){node, name, key};
}

static void do_end(struct program *program, unsigned domain, uint64_t dice)
{
    struct model_lane *lane = &program->lanes[domain];
    bool error = dice % 7 == 0;
    unsigned at = lane->depth - 1;
    if (program->tangled && dice % 5 == 0) {
        at = (unsigned)(dice / 35 % lane->depth);
    }
    struct model_frame frame = lane->stack[at];
    sw_section *section = program->sections[domain][frame.name];
    if (error || frame.key) {
        sw_section_end(section, frame.key, error ? SW_RECORD_ERROR : 0);
    } else {
        sw_end(section);
    }
    /* The recorder closes the newest of the same section and key, whichever was meant. */
    for (at = lane->depth - 1;
         lane->stack[at].name != frame.name || lane->stack[at].key != frame.key;) {
        at--;
    }
    frame = lane->stack[at];
    bool nests = at + 1 == lane->depth;
    struct model_node *node = &lane->nodes[frame.node];
    node->calls++;
    node->errors += error;
    node->unnested += !nests;
    expect(program,
           (struct expected){.kind = SW_RECORD_SPAN,
                             .name = frame.name,
                             .flags = (uint16_t)(SW_RECORD_INTERVAL |
                                                 (error ? SW_RECORD_ERROR : 0) |
                                                 (nests ? 0 : SW_RECORD_UNNESTED)),
                             .depth = (uint16_t)at,
                             .domain = (uint16_t)domain,
                             .node = frame.node});
    memmove(lane->stack + at, lane->stack + at + 1,
            (lane->depth - at - 1) * sizeof frame);
    lane->depth--;
}

static void do_step(struct program *program, unsigned domain, uint64_t dice)
{
    struct model_lane *lane = &program->lanes[domain];
    if (dice % 2 || !lane->step_open) {
        sw_domain_step_begin(program->domains[domain], SW_STEP_MANUAL);
        lane->steps += lane->step_open;
        lane->incomplete += lane->step_open;
        lane->step_open = true;
        return;
    }
    if (dice % 4) {
        sw_domain_step_abandon(program->domains[domain]);
        lane->incomplete++;
    } else {
        sw_domain_step_end(program->domains[domain]);
    }
    lane->steps++;
    lane->step_open = false;
}

static const char *const counter_names[] = {"counter 0", "counter 1", "counter 2"};
static const char *const mark_texts[] = {"mark 0", "mark 1", "mark 2"};

static void do_other(struct program *program, unsigned domain, uint64_t dice)
{
    uint8_t name = (uint8_t)(dice % 3);
    struct expected record = {.name = name};
    if (dice / 3 % 2) {
        record.kind = SW_RECORD_COUNTER;
        record.value = (double)(dice % 1000);
        record.domain = (uint16_t)domain;
        sw_domain_counter(program->domains[domain], counter_names[name],
                          strlen(counter_names[name]), record.value);
    } else {
        record.kind = SW_RECORD_MARK;
        sw_mark(mark_texts[name]);
    }
    record.node = top_node(&program->lanes[record.domain]);
    expect(program, record);
}

static void *run_program(void *arg)
{
    struct program *program = arg;
    sw_thread_name(program->name);
    for (unsigned d = 0; d < 2; d++) {
        child_of(&program->lanes[d], 0, UINT8_MAX); /* the root */
    }
    for (int i = 0; i < program->operations; i++) {
        uint64_t dice = ru_random(&program->seed);
        unsigned domain = dice % 4 == 0;
        struct model_lane *lane = &program->lanes[domain];
        unsigned what = (unsigned)(dice >> 8) % 16;
        dice >>= 16;
        if (what == 0) {
            do_step(program, domain, dice);
        } else if (what == 1) {
            do_other(program, domain, dice);
        } else if (what < 9 && lane->nodes[top_node(lane)].depth < DEEPEST) {
            do_begin(program, domain, dice);
        } else if (lane->depth) {
            do_end(program, domain, dice);
        }
    }
    for (unsigned d = 0; d < 2; d++) {
        while (program->lanes[d].depth) {
            do_end(program, d, 35 * 1000 + 1);
        }
        if (program->lanes[d].step_open) {
            sw_domain_step_end(program->domains[d]);
            program->lanes[d].steps++;
        }
    }
    return NULL;
}

/* The path of a node of the model or of the trace, as text. */
static void model_path(const struct model_lane *lane, uint32_t node, char *out)
{
    char parts[DEEPEST + 1][8];
    unsigned depth = 0;
    for (; node; node = lane->nodes[node].parent) {
        snprintf(parts[depth++], sizeof parts[0], "s%u/", lane->nodes[node].name);
    }
    *out = 0;
    while (depth) {
        strcat(out, parts[--depth]);
    }
    if (*out) {
        out[strlen(out) - 1] = 0;
    }
}

static void check_record(const struct ru_trace *trace, struct program *program,
                         const struct expected *want, const struct ru_record *got,
                         const sw_trace_lane *const lanes[2])
{
    char path[64];
    char name[16];
    assert_int_equal(got->record->head.kind, want->kind);
    uint32_t node = 0;
    uint16_t domain = 0;
    if (want->kind == SW_RECORD_SPAN) {
        const sw_record_span *span = &got->record->span;
        snprintf(name, sizeof name, "s%u", want->name);
        assert_int_equal(span->head.flags, want->flags);
        assert_int_equal(span->depth, want->depth);
        assert_true(span->end >= span->head.ticks);
        node = span->node;
        domain = span->domain;
    } else if (want->kind == SW_RECORD_COUNTER) {
        snprintf(name, sizeof name, "%s", counter_names[want->name]);
        assert_true(got->record->counter.value == want->value);
        node = got->record->counter.node;
        domain = got->record->counter.domain;
    } else {
        snprintf(name, sizeof name, "%s", mark_texts[want->name]);
        node = got->record->mark.node;
        domain = got->record->mark.domain;
    }
    assert_string_equal(ru_name(trace, got->record->head.id), name);
    const char *domain_name = sw_trace_domain_name(trace->trace, domain);
    assert_string_equal(domain_name, want->domain ? "model" : "");
    struct model_node *model = &program->lanes[want->domain].nodes[want->node];
    if (want->node && !model->stored) {
        const sw_trace_lane *lane = lanes[want->domain];
        model_path(&program->lanes[want->domain], want->node, path);
        const sw_trace_node *found = ru_find(trace, lane, path);
        assert_non_null(found);
        model->stored = (uint32_t)(found - lane->nodes);
    }
    assert_int_equal(model->stored, node);
}

/* Adds a span to the times of its path, as statistics should have. */
static void add_times(struct program *program, const struct expected *want,
                      const sw_record_span *span)
{
    struct model_lane *lane = &program->lanes[want->domain];
    struct model_node *node = &lane->nodes[want->node];
    uint64_t duration = span->end - span->head.ticks;
    node->ticks += duration;
    node->last = duration;
    node->least = duration < node->least ? duration : node->least;
    node->most = duration > node->most ? duration : node->most;
    lane->nodes[node->parent].below += duration;
}

static void check_lane(const struct ru_trace *trace, struct program *program,
                       unsigned domain, const sw_trace_lane *lane)
{
    const struct model_lane *model = &program->lanes[domain];
    uint64_t called = 0;
    for (uint32_t i = 1; i < model->count; i++) {
        char path[64];
        model_path(model, i, path);
        const sw_trace_node *node = ru_find(trace, lane, path);
        assert_non_null(node);
        const struct sw__fmt_node *raw = ru_raw_node(trace, lane->thread, lane->domain,
                                                     (uint32_t)(node - lane->nodes));
        assert_int_equal(node->calls, model->nodes[i].calls);
        assert_int_equal(node->errors, model->nodes[i].errors);
        assert_int_equal(node->unnested, model->nodes[i].unnested);
        assert_int_equal(raw->inclusive, model->nodes[i].ticks);
        assert_int_equal(raw->minimum, model->nodes[i].least);
        assert_int_equal(raw->maximum, model->nodes[i].most);
        assert_int_equal(raw->last, model->nodes[i].last);
        if (!program->tangled) {
            assert_int_equal(raw->child, model->nodes[i].below);
        }
        called++;
    }
    /* And nothing else was ever called. */
    for (size_t i = 1; i < lane->node_count; i++) {
        called -= lane->nodes[i].kind == 0 && lane->nodes[i].calls;
    }
    assert_int_equal(called, 0);
    assert_int_equal(lane->steps, model->steps);
    assert_int_equal(lane->steps_incomplete, model->incomplete);
}

struct rebuilt {
    const struct ru_trace *trace;
    size_t lanes;
    uint64_t calls;
};

/* A lane made from events alone is the one that statistics tell, node by node. */
static void compare_lane(void *arg, const sw_trace_lane *lane)
{
    struct rebuilt *rebuilt = arg;
    const sw_trace_lane *kept = ru_lane(rebuilt->trace, lane->thread, lane->domain);
    uint32_t *same = calloc(lane->node_count, sizeof *same);
    assert_non_null(same);
    rebuilt->lanes++;
    for (uint32_t i = 1; i < lane->node_count; i++) {
        const sw_trace_node *node = &lane->nodes[i];
        for (uint32_t j = 1; j < kept->node_count && !same[i]; j++) {
            if (kept->nodes[j].section == node->section &&
                kept->nodes[j].parent == same[node->parent] && kept->nodes[j].kind == 0) {
                same[i] = j;
            }
        }
        assert_true(same[i] != 0);
        const sw_trace_node *other = &kept->nodes[same[i]];
        assert_int_equal(node->calls, other->calls);
        assert_int_equal(node->errors, other->errors);
        assert_int_equal(node->inclusive_ns, other->inclusive_ns);
        assert_int_equal(node->self_ns, other->self_ns);
        assert_int_equal(node->min_ns, other->min_ns);
        assert_int_equal(node->max_ns, other->max_ns);
        assert_int_equal(node->last_ns, other->last_ns);
        rebuilt->calls += node->calls;
    }
    free(same);
}

static void check_program(const struct ru_trace *trace, struct program *program,
                          uint32_t thread, const struct ru_records *records)
{
    const sw_trace_lane *lanes[2] = {NULL, NULL};
    for (size_t i = 0; i < sw_trace_lane_count(trace->trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace->trace, i);
        if (lane->thread == thread) {
            lanes[lane->domain != 0] = lane;
        }
    }
    size_t next = 0;
    for (size_t i = 0; i < records->count; i++) {
        if (records->at[i].thread != thread) {
            continue;
        }
        assert_true(next < program->count);
        const struct expected *want = &program->records[next++];
        check_record(trace, program, want, &records->at[i], lanes);
        if (want->kind == SW_RECORD_SPAN) {
            add_times(program, want, &records->at[i].record->span);
        }
    }
    assert_int_equal(next, program->count);
    for (unsigned d = 0; d < 2; d++) {
        assert_non_null(lanes[d]);
        check_lane(trace, program, d, lanes[d]);
    }
}

static void free_program(struct program *program)
{
    free(program->lanes[0].nodes);
    free(program->lanes[1].nodes);
    free(program->records);
}

static void run_and_compare(uint64_t seed, bool tangled)
{
    struct program *programs = calloc(THREADS, sizeof *programs);
    pthread_t threads[THREADS];
    assert_non_null(programs);
    sw_domain *domain = sw_domain_get("model");
    for (size_t i = 0; i < THREADS; i++) {
        struct program *program = &programs[i];
        program->seed = seed * 1000 + i;
        snprintf(program->name, sizeof program->name, "program %zu", i);
        program->tangled = tangled;
        program->operations = OPERATIONS;
        program->domains[1] = domain;
        for (uint8_t j = 0; j < NAMES; j++) {
            char name[8];
            snprintf(name, sizeof name, "s%u", j);
            /* Some have a phase, so that steps take their other ways too. */
            int phase = j % 3 == 0 ? SW_PHASE_FORWARD + j : SW_PHASE_INHERIT;
            for (unsigned d = 0; d < 2; d++) {
                program->sections[d][j] =
                    sw_domain_section(program->domains[d], name, strlen(name), phase);
            }
        }
    }
    char folder[32];
    snprintf(folder, sizeof folder, "run-%d-%d", (int)seed, tangled);
    ru_start((sw_config){.policy = "stream", .out = ru_path(folder)});
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_program, &programs[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(trace.info->dropped, 0);
    assert_int_equal(trace.info->unmatched, 0);
    assert_int_equal(trace.info->nodes_folded, 0);
    struct ru_records records = ru_read(&trace, 0);
    for (size_t i = 0; i < THREADS; i++) {
        uint32_t thread = 0;
        while (strcmp(sw_trace_get_thread(trace.trace, thread)->name, programs[i].name) !=
               0) {
            thread++;
        }
        check_program(&trace, &programs[i], thread, &records);
    }
    if (!tangled) {
        struct rebuilt rebuilt = {.trace = &trace};
        assert_int_equal(
            sw_trace_rebuild_lanes(trace.trace, false, compare_lane, &rebuilt, NULL), 0);
        assert_int_equal(rebuilt.lanes, 2 * THREADS);
        assert_int_equal(rebuilt.calls, ru_all_calls(&trace));
    }
    ru_records_free(&records);
    ru_free(&trace);
    for (size_t i = 0; i < THREADS; i++) {
        free_program(&programs[i]);
    }
    free(programs);
}

static void test_nested_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        run_and_compare(seed, false);
    }
}

static void test_tangled_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed <= 14; seed++) {
        run_and_compare(seed, true);
    }
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        ru_test(test_nested_programs),
        ru_test(test_tangled_programs),
    };
    (void)count;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (!failed && !getenv("STEPWATCH_CLOCK") && !getenv("TEST_EMULATED")) {
        /* Once more with the clock that takes no fast path; a process keeps the clock it began with. */
        setenv("STEPWATCH_CLOCK", "monotonic", 1);
        execv("/proc/self/exe", arguments);
        failed = 1;
    }
    return failed;
}
