/* Rules on validation, checkpoints and slow steps, and the remarks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define USUAL                                                                            \
    [SW_PHASE_DATA_WAIT] = 0.1, [SW_PHASE_OTHER] = 0.9, [SW_PHASE_FORWARD] = 4,          \
    [SW_PHASE_BACKWARD] = 5

/* Every `period` steps `ms` of a phase more. */
static struct scene *periodic(unsigned steps, unsigned period, unsigned phase, double ms)
{
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < steps; i++) {
        double phases[SW_PHASE_COUNT] = {USUAL};
        phases[phase] += period && i % period == period - 1 ? ms : 0;
        scene_step(scene, phases, 0);
    }
    return scene;
}

/* The samples of a training loop that calls its model in line 3 of a file and the backward in line 4. */
static void trains_in(struct scene *scene, const char *path)
{
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES({"train", path, 1, 3}, TORCH("call")),
                  400, 400);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES({"train", path, 1, 4}, TORCH("b")),
                  500, 500);
}

/* A call of a section after the last step. */
static void between_steps(struct scene *scene, uint32_t section, uint64_t ns)
{
    call(scene->tb, scene->lane, section, scene->at, ns);
    scene->at += ns;
}

static void a_healthy_run_has_no_findings(void **state)
{
    (void)state;
    struct scene *scene = periodic(200, 0, 0, 0);
    scene_look(scene);
    assert_silent(scene);
    assert_non_null(strstr(sw_findings_bound(scene->findings),
                           "compute: 90 % of a step is forward and backward"));
    assert_false(remarked(scene, "steps were recorded"));
    scene_free(scene);
}

static void noise_is_no_finding(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->jitter = 0.9;
    scene_steps(scene, 200,
                PHASES(USUAL, [SW_PHASE_LOGGING] = 0.2, [SW_PHASE_GC] = 0.05,
                       [SW_PHASE_OPTIMIZER] = 1));
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

static void validation_that_takes_too_long(void **state)
{
    (void)state;
    struct scene *scene = periodic(100, 10, SW_PHASE_VALIDATION, 60);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_VALIDATION);
    assert_non_null(finding);
    assert_true(fabs(finding->share - 0.375) < 0.02);
    assert_int_equal(evidence(finding, "validations"), 10);
    /* Nine of ten are saved: 10 of 16 ms stay, and a tenth of 6. */
    assert_true(fabs(finding->speedup - relieved(16, 5.4)) < 0.05);
    assert_int_equal(finding->severity, SW_SEVERITY_HIGH);
    assert_null(found(scene, SW_FINDING_VARIANCE)); /* it is the same time */
    scene_free(scene);
}

static void validation_that_is_short_or_was_once(void **state)
{
    (void)state;
    struct scene *scene = periodic(100, 10, SW_PHASE_VALIDATION, 20);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
    scene = periodic(100, 100, SW_PHASE_VALIDATION, 600);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_VALIDATION));
    scene_free(scene);
}

/* The model is asked after each update, or before each forward. */
static void validation_in_every_step(void **state)
{
    (void)state;
    static const char text[] = "for batch in batches:\n"
                               "    play(batch)\n"
                               "    loss = model(batch)\n"
                               "    loss.backward()\n"
                               "    show(model)\n"
                               "def show(model):\n"
                               "    pictures = model(noise)\n"
                               "    write_png(pictures)\n"
                               "    return pictures.mean()\n";
    static const struct {
        uint32_t from, at;
        bool logging, validation;
    } cases[] = {{5, 8, true, false}, {5, 9, false, true}, {2, 8, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES(USUAL, [SW_PHASE_VALIDATION] = 8));
        trains_in(scene, path);
        scene_samples(scene, SW_PHASE_VALIDATION,
                      FRAMES({"train", path, 1, cases[i].from}, {"show", path, 6, 7}),
                      500, 500);
        scene_samples(
            scene, SW_PHASE_VALIDATION,
            FRAMES({"train", path, 1, cases[i].from}, {"show", path, 6, cases[i].at}),
            300, 300);
        scene_look(scene);
        const sw_finding *logging = found(scene, SW_FINDING_LOGGING);
        assert_int_equal(logging != NULL, cases[i].logging);
        assert_int_equal(found(scene, SW_FINDING_VALIDATION) != NULL,
                         cases[i].validation);
        if (logging) {
            assert_string_equal(logging->name, "show");
            assert_true(fabs(logging->share - 8.0 / 18) < 0.02);
        }
        scene_free(scene);
    }
}

/* The model is asked between steps: before each of them, which is part of it, or now and then. */
static void validation_between_steps(void **state)
{
    (void)state;
    static const char text[] = "for batch in batches:\n"
                               "    wanted = teacher(batch)\n"
                               "    loss = model(batch)\n"
                               "    loss.backward()\n"
                               "    look(model)\n";
    static const struct {
        unsigned every, line;
        bool told;
    } cases[] = {{1, 2, false}, {1, 5, true}, {10, 2, true}, {10, 5, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        const uint32_t section = scene_section(scene, "validation", SW_PHASE_VALIDATION);
        for (unsigned k = 0; k < 100; k++) {
            scene_step(scene, PHASES(USUAL), 0);
            if (k % cases[i].every == cases[i].every - 1) {
                between_steps(scene, section, 6 * cases[i].every * MS);
            }
        }
        scene_step(scene, PHASES(USUAL), 0);
        trains_in(scene, path);
        scene_samples_in(scene, section, SW_PHASE_INHERIT,
                         FRAMES({"train", path, 1, cases[i].line},
                                {"call", "/v/site-packages/torch/x.py", 1, 2}),
                         600, 0, 600);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_VALIDATION) != NULL, cases[i].told);
        scene_free(scene);
    }
}

/* What the model is asked before there is anything to validate. */
static void asked_before_the_first_step(void **state)
{
    (void)state;
    for (unsigned later = 0; later < 2; later++) {
        struct scene *scene = scene_new();
        const uint32_t section = scene_section(scene, "validation", SW_PHASE_VALIDATION);
        for (unsigned k = 0; k < 8; k++) {
            if (later) {
                scene_steps(scene, 12, PHASES(USUAL));
            }
            between_steps(scene, section, 150 * MS);
        }
        scene_steps(scene, 100, PHASES(USUAL));
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_VALIDATION) != NULL, later);
        scene_free(scene);
    }
}

/* Where calls return before anything is computed no sample sees the model: then the loop that was watched is what trains, and what
 * it calls, or it, validates. */
static void validation_beside_calls_that_return(void **state)
{
    (void)state;
    const char *path = "/home/u/train.py";
    for (unsigned inside = 0; inside < 2; inside++) {
        struct scene *scene = periodic(100, 10, SW_PHASE_VALIDATION, 60);
        (void)scene_row(
            scene, SW_TABLE_SITE, 0,
            KEY(SW_SITE_LOOP, scene_text(scene, path), 56, scene_text(scene, "for")),
            VALUE(scene_text(scene, "main")));
        const struct scene_frame in_loop[] = {
            {"<module>", path, 1, 69}, {"main", path, 43, 61}, TORCH("f"), {0}};
        const struct scene_frame called[] = {{"<module>", path, 1, 69},
                                             {"main", path, 43, 61},
                                             {"evaluate", path, 30, 35},
                                             {"predict", path, 20, 25},
                                             TORCH("f"),
                                             {0}};
        scene_samples(scene, SW_PHASE_VALIDATION, inside ? in_loop : called, 600, 600);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_VALIDATION);
        assert_non_null(finding);
        assert_string_equal(finding->name, inside ? "main" : "evaluate");
        assert_int_equal(finding->line, inside ? 61 : 35);
        scene_free(scene);
    }
}

/* What draws for most of a validation is there to draw. */
static void pictures_now_and_then(void **state)
{
    (void)state;
    for (unsigned draws = 0; draws < 2; draws++) {
        struct scene *scene = periodic(60, 5, SW_PHASE_VALIDATION, 60);
        const char *drawn = draws ? "/v/site-packages/matplotlib/figure.py"
                                  : "/v/site-packages/torch/x.py";
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 400,
                      400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_samples(scene, SW_PHASE_VALIDATION,
                      FRAMES(TRAIN(30), {"Gallery.show", "/home/u/show.py", 6, 7},
                             {"draw", drawn, 1, 2}),
                      900, 900);
        scene_samples(
            scene, SW_PHASE_VALIDATION,
            FRAMES(TRAIN(30), {"Gallery.show", "/home/u/show.py", 6, 9}, TORCH("call")),
            300, 300);
        scene_look(scene);
        const sw_finding *logging = found(scene, SW_FINDING_LOGGING);
        assert_int_equal(logging != NULL, draws);
        assert_int_equal(found(scene, SW_FINDING_VALIDATION) != NULL, !draws);
        if (logging) {
            assert_string_equal(logging->name, "Gallery.show");
            assert_non_null(strstr(logging->advice[0], "a tenth as often"));
            assert_true(fabs(logging->speedup - relieved(22, 10.8)) < 0.1);
        }
        scene_free(scene);
    }
}

/* The last state stays; one more shows no habit. */
static void few_checkpoints(void **state)
{
    (void)state;
    for (unsigned times = 2; times <= 4; times += 2) {
        struct scene *scene =
            periodic(100, 100 / times, SW_PHASE_CHECKPOINT, 500.0 / times);
        const uint32_t section = scene_section(scene, "checkpoint", SW_PHASE_CHECKPOINT);
        for (unsigned i = 1; i <= times; i++) {
            call(scene->tb, scene->lane, section,
                 START + i * (1500 / times) * MS - 400 / times * MS, 500 / times * MS);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CHECKPOINT);
        assert_int_equal(finding != NULL, times == 4);
        if (finding) { /* three of four go */
            assert_true(fabs(finding->speedup - relieved(15, 3.75)) < 0.05);
        }
        scene_free(scene);
    }
}

static void checkpoints(void **state)
{
    (void)state;
    struct scene *scene = periodic(100, 10, SW_PHASE_CHECKPOINT, 30);
    const uint32_t section = scene_section(scene, "checkpoint", SW_PHASE_CHECKPOINT);
    for (unsigned i = 0; i < 10; i++) {
        call(scene->tb, scene->lane, section, START + (100 * i + 95) * MS, 30 * MS);
    }
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_CHECKPOINT);
    assert_non_null(finding);
    assert_int_equal(evidence(finding, "checkpoints"), 10);
    assert_true(fabs(evidence(finding, "checkpoint_each_ms") - 30) < 2);
    assert_true(finding->speedup > 1.2 && finding->speedup < 1.35);
    scene_free(scene);

    scene = periodic(100, 50, SW_PHASE_CHECKPOINT, 20); /* 4 % */
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_CHECKPOINT));
    scene_free(scene);
}

/* A framework's function that saves also removes the state before, which no section tells of: that goes with it. What other functions
 * of the framework's do, called from the same line, stays. */
#define LOOP(line)                                                                       \
    TRAIN(20),                                                                           \
    {                                                                                    \
        "Loop.advance", "/v/site-packages/frame/loop.py", 40, line                       \
    }
static void removing_the_state_before(void **state)
{
    (void)state;
    static const char *const functions[] = {"Keeper._save_best", "Progress.update"};
    for (size_t i = 0; i < 2; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5,
                           [SW_PHASE_OTHER] = 4, [SW_PHASE_CHECKPOINT] = 3));
        const uint32_t section = scene_section(scene, "checkpoint", SW_PHASE_CHECKPOINT);
        for (unsigned k = 0; k < 100; k++) {
            call(scene->tb, scene->lane, section, START + (16 * k + 12) * MS, 3 * MS);
        }
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(LOOP(44), TORCH("f")), 400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(LOOP(46), TORCH("b")), 500, 500);
        scene_samples(
            scene, SW_PHASE_CHECKPOINT,
            FRAMES(LOOP(50),
                   {"Keeper._save_best", "/v/site-packages/frame/keep.py", 3, 7},
                   {"save", "/v/site-packages/torch/serialization.py", 9, 20}),
            300, 300);
        scene_samples_of(scene, SW_PHASE_OTHER,
                         FRAMES(LOOP(50),
                                {functions[i], "/v/site-packages/frame/keep.py", 3, 9},
                                {"remove", "/v/site-packages/frame/disk.py", 70, 71}),
                         50, 350, 50);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CHECKPOINT);
        assert_non_null(finding);
        assert_true(fabs(evidence(finding, "checkpoint_each_ms") - (i == 0 ? 7 : 3)) <
                    0.3);
        scene_free(scene);
    }
}

static void slow_steps_with_a_period(void **state)
{
    (void)state;
    struct scene *scene = periodic(120, 20, SW_PHASE_OTHER, 60);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_VARIANCE);
    assert_non_null(finding);
    assert_int_equal(evidence(finding, "period_steps"), 20);
    assert_non_null(strstr(finding->title, "Every 20 steps"));
    assert_non_null(strstr(finding->title, "other"));
    /* The others show what a step takes without: nothing of it gets faster beside that. */
    const double excess = evidence(finding, "excess_share");
    assert_true(excess > 0.2 && fabs(finding->speedup - 1 / (1 - 0.95 * excess)) < 0.02);
    scene_free(scene);
}

/* Where calls return early, a step is long now and then because too many before it are not computed yet: a wait for them says so. */
static void slow_steps_that_wait_for_room(void **state)
{
    (void)state;
    for (unsigned full = 0; full < 2; full++) {
        struct scene *scene = periodic(120, 20, SW_PHASE_OTHER, 60);
        tb_fact(scene->tb, "jax_backend", "cpu");
        if (full) {
            call(scene->tb, scene->lane, scene_section(scene, "sync", SW_PHASE_SYNC),
                 scene->at, 200 * MS);
        }
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_VARIANCE) != NULL, !full);
        scene_free(scene);
    }
}

/* Gradients of four steps are added up; the backward before the update exchanges them, or another one is slow. */
static void updates_have_to_come(void **state)
{
    (void)state;
    /* The fifth time others are somewhat slow as well. */
    for (unsigned slow = 0; slow < 5; slow++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 120; i++) {
            const bool is_slow = i % 4 == (slow < 3 ? slow : 3);
            const bool busy = slow == 4 && i % 13 == 1;
            scene_step(scene,
                       PHASES([SW_PHASE_FORWARD] = 2,
                              [SW_PHASE_BACKWARD] = is_slow ? 30
                                                    : busy  ? 20
                                                            : 5,
                              [SW_PHASE_OPTIMIZER] = i % 4 == 3 ? 1 : 0),
                       0);
        }
        scene->lane->file->updates = 30;
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_VARIANCE) != NULL, slow < 3);
        scene_free(scene);
    }
}

/* Slow steps here and there, which wait for a CPU when `delayed`; two steps share a reading of the kernel's counters. */
static struct scene *uneven(bool delayed)
{
    struct scene *scene = scene_new();
    scene->readings = 2;
    uint64_t chance = 7;
    uint64_t delay = 0;
    for (unsigned i = 0; i < 200; i++) {
        double ms[SW_PHASE_COUNT] = {[SW_PHASE_FORWARD] = 1};
        if (tb_random(&chance) % 6 == 0) {
            ms[SW_PHASE_FORWARD] = 8;
            delay += delayed ? (uint64_t)(7 * MS) : 0;
        }
        scene->run_delay_ns = delay;
        delay = i % 2 ? 0 : delay; /* the second of two has it */
        scene_step(scene, ms, 0);
    }
    return scene;
}

static void slow_steps_that_wait_for_a_core_are_not_the_programs(void **state)
{
    (void)state;
    struct scene *scene = uneven(false);
    scene_look(scene);
    assert_non_null(found(scene, SW_FINDING_VARIANCE));
    scene_free(scene);
    scene = uneven(true);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_VARIANCE));
    scene_free(scene);
}

/* A look at the step thread at a moment; `code` is the index of a CODE row. */
static void look(struct scene *scene, uint64_t at, const uint32_t *codes, unsigned count)
{
    struct {
        sw_record_sample sample;
        sw_record_frame frames[4];
    } record = {.sample = {.head = {.kind = SW_RECORD_SAMPLE, .units = 2, .ticks = at},
                           .phase = SW_PHASE_OTHER,
                           .state = 'R',
                           .depth = (uint16_t)count}};
    for (unsigned i = 0; i < count; i++) {
        record.frames[i] = (sw_record_frame){codes[i], 40 + i};
    }
    tb_record(scene->tb, 0, &record);
}

static uint32_t code(struct scene *scene, const char *name, const char *file)
{
    const uint32_t id = scene_text(scene, name);
    return scene_row(scene, SW_TABLE_CODE, 0, KEY(scene_text(scene, file), id, 30, id),
                     VALUE(0));
}

/* What slow steps do that others do not has a name, and by it a kind. */
static void slow_steps_do_something_else(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        enum sw_finding_kind kind;
    } cases[] = {{"Bank.rebuild", SW_FINDING_VARIANCE},
                 {"validate", SW_FINDING_VALIDATION},
                 {"Trainer.save_weights", SW_FINDING_CHECKPOINT}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct scene *scene = scene_new();
        const uint32_t codes[] = {code(scene, "dot", "/v/site-packages/numpy/core.py"),
                                  code(scene, cases[c].name, "/home/u/train.py"),
                                  code(scene, "main", "/home/u/train.py")};
        for (unsigned i = 0; i < 120; i++) {
            double phases[SW_PHASE_COUNT] = {[SW_PHASE_OTHER] = i % 20 == 19 ? 70 : 10};
            const uint64_t begin = scene->at;
            scene_step(scene, phases, 0);
            look(scene, begin + 5 * MS, &codes[2], 1);
            for (unsigned k = 0; i % 20 == 19 && k < 6; k++) {
                look(scene, begin + (10 + 8 * k) * MS, codes, 3);
            }
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, cases[c].kind);
        assert_non_null(finding);
        assert_string_equal(finding->name, cases[c].name);
        assert_int_equal(finding->line, 41);
        assert_true(finding->speedup > 1.2 && finding->speedup < 1.4);
        scene_free(scene);
    }
}

/* Python code in the slow steps alone is why they are slow; in all steps it is Python code. So is native work before the forward: in all
 * steps it is work on batches. */
static void work_in_slow_steps(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const unsigned always = i & 1;
        const bool native = i & 2;
        const enum sw_finding_kind kind =
            native ? SW_FINDING_LOADER_MAIN_PROCESS : SW_FINDING_PYTHON_OVERHEAD;
        struct scene *scene = scene_new();
        const uint32_t codes[] = {code(scene, "recluster", "/home/u/train.py"),
                                  code(scene, "main", "/home/u/train.py")};
        for (unsigned k = 0; k < 120; k++) {
            const bool slow = k % 20 == 19;
            double phases[SW_PHASE_COUNT] = {[SW_PHASE_OTHER] =
                                                 (slow ? 60 : 1) + (always ? 20 : 0),
                                             [SW_PHASE_FORWARD] = 9};
            const uint64_t begin = scene->at;
            scene_step(scene, phases, 0);
            for (unsigned at = 0; (slow || always) && at < (slow ? 6 : 2); at++) {
                look(scene, begin + (1 + 8 * at) * MS, codes, 2);
            }
            look(scene, begin + 25 * MS, &codes[1], 1);
        }
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES({"main", "/home/u/train.py", 30, 60}, TORCH("f")), 100, 100);
        const uint64_t samples = always ? 270 : 36;
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES({"main", "/home/u/train.py", 30, 41},
                             {"recluster", "/home/u/train.py", 10, 20}),
                      samples, native ? samples : 5);
        scene_look(scene);
        assert_int_equal(found(scene, kind) != NULL, always);
        const sw_finding *finding = found(scene, SW_FINDING_VARIANCE);
        assert_int_equal(finding != NULL, !always);
        if (finding) {
            assert_string_equal(finding->name, "recluster");
            assert_true(finding->also >> kind & 1);
        }
        scene_free(scene);
    }
}

/* A forward after the backward in some steps alone: what these take beyond the usual is known, and samples, of which there were a few
 * more by chance, do not say that it is something else. In every step it is that. */
static void a_forward_after_in_slow_steps(void **state)
{
    (void)state;
    for (unsigned always = 0; always < 2; always++) {
        struct scene *scene = scene_new();
        const uint32_t codes[] = {code(scene, "Bank.rebuild", "/home/u/train.py"),
                                  code(scene, "main", "/home/u/train.py")};
        for (unsigned k = 0; k < 120; k++) {
            const bool slow = k % 20 == 19;
            const uint64_t begin = scene->at;
            scene_step(scene,
                       PHASES([SW_PHASE_FORWARD] = 4 + (slow ? 60 : 0) + (always ? 6 : 0),
                              [SW_PHASE_BACKWARD] = 6),
                       0);
            for (unsigned at = 0; (slow || always) && at < (slow ? 6 : 1); at++) {
                look(scene, begin + (2 + 8 * at) * MS, codes, 2);
            }
            look(scene, begin + MS, &codes[1], 1);
        }
        const char *path = "/home/u/train.py";
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES({"main", path, 30, 60}, TORCH("f")),
                      40, 40);
        scene_samples(scene, SW_PHASE_BACKWARD,
                      FRAMES({"main", path, 30, 62}, TORCH("b")), 72, 72);
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES({"main", path, 30, 65}, {"Bank.rebuild", path, 10, 20}, TORCH("f")),
            always ? 120 : 55, always ? 120 : 55);
        scene_look(scene);
        const enum sw_finding_kind kind =
            always ? SW_FINDING_REDUNDANT_WORK : SW_FINDING_VARIANCE;
        const sw_finding *finding = found(scene, kind);
        assert_non_null(finding);
        assert_string_equal(finding->name, "Bank.rebuild");
        assert_true(always || finding->also >> SW_FINDING_REDUNDANT_WORK & 1);
        assert_true(always || !found(scene, SW_FINDING_REDUNDANT_WORK));
        scene_free(scene);
    }
}

static void slow_steps_that_are_warm_up(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 5, PHASES([SW_PHASE_FORWARD] = 400, [SW_PHASE_LOGGING] = 100));
    scene_steps(scene, 100, PHASES(USUAL));
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* A few steps were slow in everything: the machine had something else to do. */
static void slow_steps_by_chance(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 200; i++) {
        const double more =
            i == 31 || i == 57 || i == 120 || i == 133 || i == 190 ? 3 : 1;
        scene_step(scene,
                   PHASES([SW_PHASE_OTHER] = more, [SW_PHASE_FORWARD] = 4 * more,
                          [SW_PHASE_BACKWARD] = 5 * more),
                   0);
    }
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* A few inputs are far longer than the others; five steps in a row are one event, and waiting is no computing. */
static void a_few_steps_that_compute_far_more(void **state)
{
    (void)state;
    static const unsigned long_ones[] = {11, 38, 39, 60, 71, 85},
                          row[] = {50, 51, 52, 53, 54, 55};
    for (unsigned c = 0; c < 3; c++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 100; i++) {
            bool slow = false;
            for (unsigned k = 0; k < 6; k++) {
                slow |= i == (c == 1 ? row : long_ones)[k];
            }
            scene->run_delay_ns = slow && c == 2 ? 100 * MS : 0;
            scene_step(scene,
                       PHASES([SW_PHASE_OTHER] = 1, [SW_PHASE_FORWARD] = slow ? 70 : 2,
                              [SW_PHASE_BACKWARD] = slow ? 130 : 3),
                       0);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_VARIANCE);
        assert_int_equal(finding != NULL, c == 0);
        if (finding) {
            assert_non_null(strstr(finding->title, "8 times as long"));
            assert_true(finding->speedup > 2.2 && finding->low >= 1);
        }
        scene_free(scene);
    }
}

/* Batches of similar sizes put long inputs together: as many as they fill stay long. */
static void long_inputs_put_together(void **state)
{
    (void)state;
    static const unsigned sizes[] = {0, 2, 8, 64};
    static const double goes[] = {0.95, 0.5, 11.0 / 12, 0.95};
    for (unsigned c = 0; c < 4; c++) {
        struct scene *scene = scene_new();
        const uint32_t loader = scene_text(scene, "loader");
        (void)scene_row(scene, SW_TABLE_LOADER, 0, KEY(loader, loader, 0, sizes[c]),
                        VALUE(0, 2, 800, 1, 0));
        for (unsigned i = 0; i < 120; i++) {
            const bool slow = i % 17 == 3 || i % 29 == 11 || i == 64;
            scene_step(scene,
                       PHASES([SW_PHASE_OTHER] = 0.2, [SW_PHASE_DATA_WAIT] = 0.05,
                              [SW_PHASE_FORWARD] = slow ? 20 : 0.6,
                              [SW_PHASE_BACKWARD] = slow ? 40 : 0.9),
                       0);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_VARIANCE);
        assert_non_null(finding);
        assert_int_equal(evidence(finding, "slow_steps"), 12);
        const double excess = evidence(finding, "excess_share");
        const double gain = goes[c] * excess;
        assert_true(fabs(finding->speedup - 1 / ((1 - gain) * (1 - 0.15 * gain))) < 0.05);
        scene_free(scene);
    }
}

/* Inputs of all sizes, small ones among them, are as they are; a few that are long stand out from many that are alike. */
static void inputs_of_all_sizes(void **state)
{
    (void)state;
    for (unsigned spread = 0; spread < 2; spread++) {
        struct scene *scene = scene_new();
        uint64_t chance = 3;
        for (unsigned i = 0; i < 200; i++) {
            const double part = (double)(tb_random(&chance) % 1000) / 1000;
            const double size = 8 + 150 * part * part * part * part;
            const double other = 11 + 2 * part;
            const double ms = (spread || size > 90 ? size : other) / 4;
            scene_step(scene,
                       PHASES([SW_PHASE_OTHER] = 0.2, [SW_PHASE_FORWARD] = 0.3 * ms,
                              [SW_PHASE_BACKWARD] = 0.7 * ms),
                       0);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_VARIANCE);
        assert_int_equal(finding != NULL, !spread);
        scene_free(scene);
    }
}

static void few_steps_show_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 8, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_LOGGING] = 40));
    scene_look(scene);
    assert_silent(scene);
    assert_true(remarked(scene, "Only 8 steps"));
    const char *why;
    assert_false(sw_findings_checked(scene->findings, SW_FINDING_LOGGING, &why));
    assert_non_null(why);
    scene_free(scene);
}

static void what_recording_took_is_blamed_on_what_took_it(void **state)
{
    (void)state;
    for (int torch = 0; torch < 2; torch++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 60, PHASES([SW_PHASE_FORWARD] = 10));
        if (torch) {
            scene_setting(scene, "operators", "overhead_seconds", NULL, 0.3);
        }
        scene_look(scene);
        assert_int_equal(remarked(scene, "end and read torch's profiler (0.30 s)"),
                         torch);
        assert_false(remarked(scene, "sections"));
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_healthy_run_has_no_findings),
        cmocka_unit_test(noise_is_no_finding),
        cmocka_unit_test(validation_that_takes_too_long),
        cmocka_unit_test(validation_that_is_short_or_was_once),
        cmocka_unit_test(validation_in_every_step),
        cmocka_unit_test(validation_between_steps),
        cmocka_unit_test(asked_before_the_first_step),
        cmocka_unit_test(validation_beside_calls_that_return),
        cmocka_unit_test(pictures_now_and_then),
        cmocka_unit_test(few_checkpoints),
        cmocka_unit_test(checkpoints),
        cmocka_unit_test(removing_the_state_before),
        cmocka_unit_test(slow_steps_with_a_period),
        cmocka_unit_test(slow_steps_that_wait_for_room),
        cmocka_unit_test(updates_have_to_come),
        cmocka_unit_test(slow_steps_that_wait_for_a_core_are_not_the_programs),
        cmocka_unit_test(slow_steps_do_something_else),
        cmocka_unit_test(work_in_slow_steps),
        cmocka_unit_test(a_forward_after_in_slow_steps),
        cmocka_unit_test(slow_steps_that_are_warm_up),
        cmocka_unit_test(slow_steps_by_chance),
        cmocka_unit_test(a_few_steps_that_compute_far_more),
        cmocka_unit_test(long_inputs_put_together),
        cmocka_unit_test(inputs_of_all_sizes),
        cmocka_unit_test(few_steps_show_nothing),
        cmocka_unit_test(what_recording_took_is_blamed_on_what_took_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
