/* Scenes for the rules: a run of steps whose phases, samples and tables a test decides. Steps jitter by a known, repeatable
 * amount, so that intervals are real. */
#ifndef RULES_SCENE_H
#define RULES_SCENE_H

#include <math.h>

#include <stepwatch/findings.h>

#include "run_fixture.h"

#define START 1000000000u
#define MS 1000000u

struct scene {
    struct fixture *fixture;
    struct tb *tb;
    struct tb_lane *lane;
    uint64_t at, random;
    uint32_t names, rows[SW_TABLES];
    double jitter;         /* relative, each phase by itself */
    uint32_t epoch;        /* of the next steps */
    uint64_t run_delay_ns; /* of each step */
    uint32_t involuntary;
    uint64_t memory_bytes; /* at the end of a step; 0: not read */
    uint32_t readings; /* every so many steps the kernel's counters are read; 0: each */
    char source[96];
    sw_findings *findings;
};

static inline uint32_t scene_text(struct scene *scene, const char *text)
{
    tb_name(scene->tb, ++scene->names, text, 0, SW_PHASE_INHERIT);
    return scene->names;
}

static inline uint32_t scene_section(struct scene *scene, const char *text,
                                     unsigned phase)
{
    tb_name(scene->tb, ++scene->names, text, 1, phase);
    return scene->names;
}

static inline void scene_process(struct scene *scene)
{
    scene->tb = tb_new(SW_CLOCK_MONOTONIC);
    scene->at = START;
    scene->names = 0;
    memset(scene->rows, 0, sizeof scene->rows);
    tb_thread(scene->tb, 0, "main");
    tb_fact(scene->tb, "cpus_usable", "4.00");
    scene->lane = tb_lane(scene->tb, 0, 0);
}

static inline struct scene *scene_new(void)
{
    struct scene *scene = calloc(1, sizeof *scene);
    scene->fixture = fixture_new();
    scene->jitter = 0.05;
    scene->random = 1;
    scene_process(scene);
    return scene;
}

static inline uint32_t scene_row(struct scene *scene, enum sw_table table, unsigned flags,
                                 const uint32_t key[4], const uint64_t value[5])
{
    sw_row row = {.table = (uint16_t)table,
                  .flags = (uint16_t)flags,
                  .index = scene->rows[table]++};
    memcpy(row.key, key, sizeof row.key);
    memcpy(row.value, value, sizeof row.value);
    tb_row(scene->tb, &row);
    return row.index;
}
#define KEY(...) ((const uint32_t[4]){__VA_ARGS__})
#define VALUE(...) ((const uint64_t[5]){__VA_ARGS__})

/* How many steps share the reading that the next step has; 0: it has none. */
static inline uint32_t scene_reading(const struct scene *scene)
{
    const uint32_t every = scene->readings ? scene->readings : 1;
    return (scene->lane->file->steps + 1) % every == 0 ? every : 0;
}

/* A step with these phases, in ms. */
static inline void scene_step(struct scene *scene, const double ms[SW_PHASE_COUNT],
                              unsigned flags)
{
    sw_record_step record = {.head = {.kind = SW_RECORD_STEP,
                                      .units = sizeof record / SW_RECORD_UNIT,
                                      .flags = (uint16_t)(SW_RECORD_INTERVAL | flags),
                                      .ticks = scene->at},
                             .number = scene->lane->file->steps,
                             .epoch = scene->epoch,
                             .unit = SW_STEP_BATCH,
                             .usage_steps = scene_reading(scene),
                             .run_delay_ns = scene->run_delay_ns,
                             .involuntary = scene->involuntary,
                             .resident_bytes = scene->memory_bytes,
                             .anonymous_bytes = scene->memory_bytes};
    uint64_t total = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        const double chance =
            (double)(tb_random(&scene->random) >> 11) / 9007199254740992.0;
        const double factor = 1 + scene->jitter * (2 * chance - 1);
        record.phase_ticks[p] = (uint64_t)(ms[p] * MS * factor);
        total += record.phase_ticks[p];
    }
    record.end = scene->at + total;
    record.cpu_ns = total > scene->run_delay_ns ? total - scene->run_delay_ns : 0;
    tb_record(scene->tb, 0, &record);
    struct sw__fmt_lane *file = scene->lane->file;
    file->steps++;
    file->step_ticks += total;
    file->step_min = total < file->step_min ? total : file->step_min;
    file->step_max = total > file->step_max ? total : file->step_max;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        file->phase_ticks[p] += record.phase_ticks[p];
    }
    tb_count(scene->tb, file->step_hist, total);
    scene->at = record.end;
}
#define PHASES(...) ((const double[SW_PHASE_COUNT]){__VA_ARGS__})

static inline void scene_steps(struct scene *scene, unsigned count,
                               const double ms[SW_PHASE_COUNT])
{
    for (unsigned i = 0; i < count; i++) {
        scene_step(scene, ms, 0);
    }
}

/* The same step watched in brief: of its phases only those are known that always are; `inside`: making batches is in data_wait. */
static inline void scene_brief(struct scene *scene, const double ms[SW_PHASE_COUNT],
                               bool inside)
{
    double known[SW_PHASE_COUNT] = {0};
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        const bool made =
            p == SW_PHASE_PREPROCESS || p == SW_PHASE_AUGMENT || p == SW_PHASE_COLLATE;
        known[SW_PHASES_ALWAYS >> p & 1 ? p
              : inside && made          ? SW_PHASE_DATA_WAIT
                                        : SW_PHASE_OTHER] += ms[p];
    }
    scene_step(scene, known, SW_STEP_BRIEF);
}

/* Steps of which those that are watched in brief are looked at at first, and later four in fifty. */
static inline void scene_mostly_brief(struct scene *scene, unsigned count,
                                      const double ms[SW_PHASE_COUNT], bool inside)
{
    for (unsigned i = 0; i < count; i++) {
        if (i < 100 || i * 7 % 50 < 4) {
            scene_step(scene, ms, 0);
        } else {
            scene_brief(scene, ms, inside);
        }
    }
}

/* Samples of the step thread, in a section or (0) in none. Frames root first; a NULL name ends them. */
struct scene_frame {
    const char *name, *file;
    uint32_t first_line, line;
};
static inline void scene_samples_in(struct scene *scene, uint32_t section, unsigned phase,
                                    const struct scene_frame *frames, uint64_t running,
                                    uint64_t waiting, uint64_t in_call)
{
    if (scene->rows[SW_TABLE_SAMPLER] == 0) {
        (void)scene_row(scene, SW_TABLE_SAMPLER, 0, KEY(100), VALUE(1000, 1000));
    }
    uint32_t parent = scene_row(scene, SW_TABLE_CONTEXT, 0, KEY(0, section, phase, 0),
                                VALUE(running, waiting));
    unsigned flags = SW_ROW_IN_CONTEXT;
    for (const struct scene_frame *at = frames; at->name; at++) {
        const uint32_t file = scene_text(scene, at->file);
        const uint32_t name = scene_text(scene, at->name);
        const uint32_t code = scene_row(scene, SW_TABLE_CODE, 0,
                                        KEY(file, name, at->first_line, name), VALUE(0));
        const bool leaf = !at[1].name;
        parent =
            scene_row(scene, SW_TABLE_STACK, flags, KEY(parent, code, at->line),
                      VALUE(leaf ? running : 0, leaf ? waiting : 0, leaf ? in_call : 0));
        flags = 0;
    }
}

/* In no section of the program's. */
static inline void scene_samples_of(struct scene *scene, unsigned phase,
                                    const struct scene_frame *frames, uint64_t running,
                                    uint64_t waiting, uint64_t in_call)
{
    scene_samples_in(scene, 0, phase, frames, running, waiting, in_call);
}

/* All of them running. */
static inline void scene_samples(struct scene *scene, unsigned phase,
                                 const struct scene_frame *frames, uint64_t samples,
                                 uint64_t in_call)
{
    scene_samples_of(scene, phase, frames, samples, 0, in_call);
}
/* A part of the model, called once in each of 100 steps; its backward was measured once. `trained`: how many of its parameters are. */
static inline void scene_part_of(struct scene *scene, const char *name, const char *type,
                                 double forward, double backward, uint64_t parameters,
                                 uint64_t trained)
{
    const bool root = !strchr(name, '.');
    const uint32_t section =
        scene_section(scene, name, root ? SW_PHASE_FORWARD : SW_PHASE_INHERIT);
    const uint32_t kind = scene_text(scene, type);
    for (unsigned i = 0; i < 100; i++) {
        call(scene->tb, scene->lane, section, START + 10 * i * MS,
             (uint64_t)(forward * MS));
    }
    (void)scene_row(scene, SW_TABLE_MODULE, root ? SW_ROW_MODEL : 0,
                    KEY(section, kind, 0, 0),
                    VALUE(parameters, parameters * 4, trained, (uint64_t)(backward * MS),
                          backward > 0));
}

static inline void scene_part(struct scene *scene, const char *name, const char *type,
                              double forward, double backward, uint64_t parameters)
{
    scene_part_of(scene, name, type, forward, backward, parameters, parameters);
}

#define FRAMES(...) ((const struct scene_frame[]){__VA_ARGS__, {0}})
#define TRAIN(at)                                                                        \
    {                                                                                    \
        "train", "/home/u/train.py", 10, at                                              \
    }
#define TORCH(function)                                                                  \
    {                                                                                    \
        function, "/v/site-packages/torch/nn/modules/module.py", 100, 110                \
    }

/* What every sampled run of these has: the model at line 20 of train, the backward at line 25. */
static inline void usual_samples(struct scene *scene)
{
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("Module.__call__")),
                  400, 390);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("backward")), 500,
                  500);
}

/* A file of the program in the scene's folder, which rules may read; its path lives as long as the scene. */
static inline const char *scene_source(struct scene *scene, const char *text)
{
    snprintf(scene->source, sizeof scene->source, "%s/program.py",
             scene->fixture->folder);
    tb_write(scene->source, text, strlen(text));
    return scene->source;
}

static inline void scene_setting(struct scene *scene, const char *what, const char *name,
                                 const char *text, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    const uint32_t key[4] = {scene_text(scene, what), scene_text(scene, name),
                             text ? scene_text(scene, text) : 0};
    (void)scene_row(scene, SW_TABLE_SETTING, 0, key, VALUE(bits));
}

static inline void scene_close(struct scene *scene)
{
    write_trace(scene->fixture, scene->tb);
    scene->tb = NULL;
}

static inline const sw_findings *scene_look(struct scene *scene)
{
    if (scene->tb) {
        scene_close(scene);
    }
    const sw_summary *summary = summarise(scene->fixture);
    sw_error_info info = {0};
    assert_int_equal(sw_findings_of_summary(&scene->findings, summary, &info), 0);
    size_t count;
    const sw_finding *list = sw_findings_get(scene->findings, &count);
    for (size_t i = 0; i < count; i++) { /* what holds of every finding */
        assert_non_null(list[i].title);
        assert_non_null(list[i].id);
        assert_true(list[i].advice_count > 0);
        assert_true(list[i].evidence_count > 0);
        assert_true(list[i].rule_count > 0);
        assert_true(list[i].confidence > 0 && list[i].confidence <= 1);
        assert_false(list[i].also >> list[i].kind & 1);
        if (list[i].predicted) {
            assert_true(list[i].low <= list[i].speedup);
            assert_true(list[i].speedup <= list[i].high);
        }
    }
    return scene->findings;
}

static inline const sw_finding *found(const struct scene *scene,
                                      enum sw_finding_kind kind)
{
    size_t count;
    const sw_finding *list = sw_findings_get(scene->findings, &count);
    for (size_t i = 0; i < count; i++) {
        if (list[i].kind == kind) {
            return &list[i];
        }
    }
    return NULL;
}

static inline double evidence(const sw_finding *finding, const char *name)
{
    for (size_t i = 0; i < finding->evidence_count; i++) {
        if (strcmp(finding->evidence[i].name, name) == 0) {
            return finding->evidence[i].value;
        }
    }
    return NAN;
}

static inline bool remarked(const struct scene *scene, const char *part)
{
    const char *text;
    for (size_t i = 0; (text = sw_findings_note(scene->findings, i)) != NULL; i++) {
        if (strstr(text, part)) {
            return true;
        }
    }
    return false;
}

static inline void assert_silent(const struct scene *scene)
{
    size_t count;
    const sw_finding *list = sw_findings_get(scene->findings, &count);
    if (count > 0) {
        print_error("%s: %s\n", list[0].id, list[0].title);
    }
    assert_int_equal(count, 0);
}

static inline void scene_free(struct scene *scene)
{
    if (scene->tb) {
        tb_free(scene->tb);
    }
    sw_findings_free(scene->findings);
    fixture_free(scene->fixture);
    free(scene);
}

#endif
