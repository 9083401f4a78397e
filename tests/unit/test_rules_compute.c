/* Rules on the computation itself: optimizer, data types, compilations, the model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "analyze/source_inputs.h"
#include "analyze/source_loops.h"
#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5

static void optimizer_settings(struct scene *scene, const char *kind, const char *foreach,
                               const char *fused, double tensors)
{
    const uint32_t file = scene_text(scene, "/home/u/train.py");
    const uint32_t name = scene_text(scene, kind);
    (void)scene_row(scene, SW_TABLE_SITE, 0, KEY(SW_SITE_OPTIMIZER, file, 14, name),
                    VALUE(0));
    scene_setting(scene, "optimizer", "class", kind, NAN);
    if (foreach) {
        scene_setting(scene, "optimizer", "foreach", foreach, NAN);
        scene_setting(scene, "optimizer", "fused", fused, NAN);
    }
    scene_setting(scene, "optimizer", "tensors", NULL, tensors);
}

static void an_update_tensor_by_tensor(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OPTIMIZER] = 6));
    optimizer_settings(scene, "AdamW", "False", "None", 300);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
    assert_non_null(finding);
    assert_int_equal(finding->line, 14);
    assert_string_equal(finding->name, "AdamW");
    assert_non_null(strstr(finding->advice[0], "fused=True"));
    assert_true(fabs(evidence(finding, "us_per_tensor") - 20) < 1);
    assert_true(finding->speedup > 1.4 && finding->speedup < 1.6);
    scene_free(scene);
}

static void an_update_that_is_as_it_should_be(void **state)
{
    (void)state;
    static const struct {
        const char *foreach, *fused;
        double tensors, ms;
    } cases[] = {{"None", "True", 300, 6},   /* applied */
                 {"True", "None", 300, 6},   /* applied */
                 {"None", "None", 6, 6},     /* few large tensors, torch's own choice */
                 {"False", "None", 300, 1}}; /* little time */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OPTIMIZER] = cases[i].ms));
        optimizer_settings(scene, "Adam", cases[i].foreach, cases[i].fused,
                           cases[i].tensors);
        scene_look(scene);
        assert_silent(scene);
        assert_int_equal(remarked(scene, "fused=True"), i == 2);
        scene_free(scene);
    }
}

static void an_update_of_the_users_own(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OPTIMIZER] = 6));
    optimizer_settings(scene, "Lion", NULL, NULL, 300);
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 400, 400);
    scene_samples(scene, SW_PHASE_OPTIMIZER,
                  FRAMES(TRAIN(26), {"Lion.step", "/home/u/lion.py", 8, 19}), 600, 450);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
    assert_non_null(finding);
    assert_string_equal(finding->file, "/home/u/lion.py");
    assert_int_equal(finding->line, 19);
    scene_free(scene);
}

/* What a closure computes inside the optimizer's step is not the update. */
static void a_closure(void **state)
{
    (void)state;
#define IN_STEP                                                                          \
    TRAIN(26),                                                                           \
    {                                                                                    \
        "Adam.step", "/v/site-packages/torch/optim/adam.py", 200, 222                    \
    }
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OPTIMIZER] = 6));
    optimizer_settings(scene, "Adam", "False", "None", 300);
    scene_samples(
        scene, SW_PHASE_FORWARD,
        FRAMES(IN_STEP, {"training_step", "/home/u/model.py", 5, 7}, TORCH("f")), 400,
        400);
    scene_samples(scene, SW_PHASE_OPTIMIZER,
                  FRAMES(IN_STEP, {"training_step", "/home/u/model.py", 5, 9},
                         {"score", "/home/u/score.py", 2, 4}),
                  550, 50);
    scene_samples(scene, SW_PHASE_OPTIMIZER, FRAMES(IN_STEP), 50, 50);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_OPTIMIZER));
    const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
    assert_non_null(finding);
    assert_string_equal(finding->name, "score");
    assert_true(fabs(finding->share - 5.5 / 15) < 0.02);
    scene_free(scene);
}

/* --- the model --- */

/* A part of the model with its forward in each of the first 100 steps, and its backward in one. */
static void part(struct scene *scene, const char *name, const char *type, double ms,
                 uint64_t parameters, const char *dtype)
{
    const uint32_t section = scene_section(
        scene, name, strchr(name, '.') ? SW_PHASE_INHERIT : SW_PHASE_FORWARD);
    const uint32_t kind = scene_text(scene, type);
    const uint32_t wide = dtype ? scene_text(scene, dtype) : 0;
    for (unsigned i = 0; i < 100; i++) {
        call(scene->tb, scene->lane, section, START + 10 * i * MS, (uint64_t)(ms * MS));
    }
    (void)scene_row(
        scene, SW_TABLE_MODULE, strchr(name, '.') ? 0 : SW_ROW_MODEL,
        KEY(section, kind, wide, 0),
        VALUE(parameters, parameters * 4, parameters, (uint64_t)(ms * MS), 1));
}

/* One that takes long stands out of all others; the first of some that get smaller and smaller does not. */
static void a_block_unlike_its_siblings(void **state)
{
    (void)state;
    static const double times[3][4] = {
        {0.3, 0.3, 3, 0.3}, {2.4, 1, 0.3, 0.2}, {2.4, 0.6, 0.6, 0.4}};
    for (unsigned k = 0; k < 3; k++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        part(scene, "Net", "Net", 4, 0, NULL);
        for (unsigned i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "Net.blocks.%u", i);
            part(scene, name, "Block", times[k][i], 0, NULL);
            snprintf(name, sizeof name, "Net.blocks.%u.up", i);
            part(scene, name, "Linear", times[k][i], 100, "float32");
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding == NULL, k > 0);
        if (finding) {
            assert_string_equal(finding->name, "Net.blocks.2");
            assert_true(fabs(evidence(finding, "times_usual") - 10) < 0.5);
            /* 3 of 4 ms of each pass, made a tenth. */
            assert_true(finding->speedup > 2.5 && finding->speedup < 4);
        }
        scene_free(scene);
    }
}

static void a_convolution_unlike_the_others(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    part(scene, "Net", "Net", 4, 0, NULL);
    part(scene, "Net.stem", "Conv2d", 0.2, 100, "float32");
    part(scene, "Net.context", "Conv2d", 3.3, 100, "float32");
    part(scene, "Net.refine", "Conv2d", 0.3, 100, "float32");
    part(scene, "Net.out", "Conv2d", 0.1, 100, "float32");
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
    assert_non_null(finding);
    assert_string_equal(finding->name, "Net.context");
    assert_non_null(strstr(finding->advice[1], "kernel"));
    scene_free(scene);
}

/* Between a first layer that sees few channels and a last one that makes few lies one that has many, with a kernel as theirs. */
static void a_convolution_with_more_channels(void **state)
{
    (void)state;
    static const struct {
        double kernel; /* of the one between; 0: none is known */
        bool slow;
    } cases[] = {{0, false}, {9, false}, {25, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        part(scene, "Net", "Net", 4, 0, NULL);
        part(scene, "Net.0", "Conv2d", 0.6, 608, "float32");
        part(scene, "Net.2", "Conv2d", 3.1, 9248, "float32");
        part(scene, "Net.4", "Conv2d", 0.1, 33, "float32");
        if (cases[i].kernel > 0) {
            scene_setting(scene, "kernel", "Net.0", NULL, 9);
            scene_setting(scene, "kernel", "Net.2", NULL, cases[i].kernel);
            scene_setting(scene, "kernel", "Net.4", NULL, 1);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.2");
        }
        scene_free(scene);
    }
}

/* A kernel of 11 x 11 among some of 3 x 3 stands out by its backward, if less by its forward; with one like theirs it would take little. */
static void a_convolution_with_a_wide_kernel(void **state)
{
    (void)state;
    static const struct {
        double kernel, backward;
        bool slow;
    } cases[] = {{121, 5.6, true}, {25, 5.6, false}, {9, 5.6, false}, {121, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 6.6));
        scene_part(scene, "Net", "Net", 4, cases[i].backward + 1, 0);
        scene_part(scene, "Net.0", "Conv2d", 1, 0.8, 608);
        scene_part(scene, "Net.2", "Conv2d", 2.7, cases[i].backward, 9000);
        scene_part(scene, "Net.4", "Conv2d", 0.3, 0.2, 600);
        scene_setting(scene, "kernel", "Net.0", NULL, 9);
        scene_setting(scene, "kernel", "Net.2", NULL, cases[i].kernel);
        scene_setting(scene, "kernel", "Net.4", NULL, 9);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.2");
            /* 8.3 of 10.6 ms, of which a thirteenth stays, or what the next slowest takes. */
            assert_true(finding->speedup > 3.3 && finding->speedup < 4.3);
            assert_true(finding->low < 10.6 / (10.6 - 8.3 * 0.6));
        }
        scene_free(scene);
    }
}

static void a_layer_that_learns_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    part(scene, "Net", "Net", 4, 0, NULL);
    part(scene, "Net.one", "Linear", 0.3, 10000, "float32");
    part(scene, "Net.two", "Linear", 0.3, 10000, "float32");
    part(scene, "Net.three", "Linear", 0.3, 10000, "float32");
    part(scene, "Net.sort", "SortPool", 3, 0, NULL);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
    assert_non_null(finding);
    assert_string_equal(finding->name, "Net.sort");
    scene_free(scene);
}

/* In each of these one layer takes most, as it should. */
static void healthy_models(void **state)
{
    (void)state;
    static const struct {
        const char *name, *type;
        double ms;
        uint64_t parameters;
    } models[][6] = {
        {{"Net.0", "Linear", 3.4, 1500000}, /* wide at the input */
         {"Net.1", "ReLU", 0.1, 0},
         {"Net.2", "Linear", 0.3, 65000},
         {"Net.3", "ReLU", 0.1, 0},
         {"Net.4", "Linear", 0.05, 1300}},
        {{"Net.conv1", "Conv2d", 0.4, 320}, /* the first example of everybody */
         {"Net.conv2", "Conv2d", 3, 18000},
         {"Net.fc1", "Linear", 0.3, 1000000},
         {"Net.fc2", "Linear", 0.1, 1280},
         {"Net.dropout", "Dropout", 0.1, 0}},
        {{"Net.a", "Conv2d", 0.4,
          740}, /* the last one sees the whole picture, four times as much */
         {"Net.b", "Conv2d", 0.5, 7240},
         {"Net.c", "Conv2d", 2.9, 10820},
         {"Net.out", "Conv2d", 0.2, 21}},
        {{"Net.embedding", "Embedding", 0.2, 500000}, /* one layer is the network */
         {"Net.lstm", "LSTM", 3.5, 100000},
         {"Net.out", "Linear", 0.2, 1000}},
        {{"Net.c1", "Conv2d", 0.6, 500}, /* without pooling each is wider */
         {"Net.c2", "Conv2d", 0.9, 5000},
         {"Net.c3", "Conv2d", 1, 20000},
         {"Net.c4", "Conv2d", 1.3, 70000},
         {"Net.fc", "Linear", 0.1, 1000}},
    };
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        part(scene, "Net", "Net", 4, 0, NULL);
        for (unsigned k = 0; k < 6 && models[i][k].name; k++) {
            part(scene, models[i][k].name, models[i][k].type, models[i][k].ms,
                 models[i][k].parameters, "float32");
        }
        scene_look(scene);
        assert_silent(scene);
        assert_non_null(strstr(sw_findings_bound(scene->findings), "Net."));
        scene_free(scene);
    }
}

static void doubles(void **state)
{
    (void)state;
    for (unsigned wide = 0; wide < 2; wide++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        part(scene, "Net", "Net", 4, 0, NULL);
        part(scene, "Net.a", "Linear", 2, 1000, wide ? "float64" : "float32");
        part(scene, "Net.b", "Linear", 2, 10, "float64");
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_DTYPE);
        assert_int_equal(finding != NULL, wide);
        if (finding) {
            assert_true(finding->low > 1 && finding->high < 3.1);
            assert_true(finding->speedup > 1.5);
        }
        scene_free(scene);
    }
}

/* Loops over small operations inside the model. */
static void small_operations(void **state)
{
    (void)state;
    for (unsigned small = 0; small < 2; small++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("call"), {"Cell.forward", "/home/u/cell.py", 5, 9}),
            400, small ? 340 : 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, small);
        if (finding) {
            assert_string_equal(finding->name, "Cell.forward");
            assert_null(found(scene, SW_FINDING_PYTHON_OVERHEAD));
        } else {
            assert_silent(scene);
        }
        scene_free(scene);
    }
}

static void a_forward_after_the_backward(void **state)
{
    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 200, 200);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        /* Two calls before the backward may be two views of a batch. */
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(again ? 29 : 22), TORCH("f")),
                      200, 200);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, again);
        if (finding) {
            assert_int_equal(finding->line, 29);
            assert_true(fabs(finding->share - 2.0 / 9) < 0.02);
        }
        scene_free(scene);
    }
}

/* Two trainings one after the other: the forward of the second is no forward after the backward of the first, even where one
 * line of the function does both. */
static void a_training_after_another(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    for (unsigned line = 50; line < 52; line++) {
        const struct scene_frame module = {"<module>", "/home/u/main.py", 1, line};
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(module, TRAIN(20), TORCH("f")), 200,
                      200);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(module, TRAIN(20), TORCH("b")),
                      250, 250);
    }
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_REDUNDANT_WORK));
    scene_free(scene);
}

/* The model over and over after some of the updates is a validation, whatever it says of itself. */
static void forwards_after_some_backwards(void **state)
{
    (void)state;
    for (unsigned often = 0; often < 2; often++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 100; i++) {
            const bool now = i % (often ? 5 : 50) == 4;
            scene_step(scene,
                       PHASES([SW_PHASE_FORWARD] = now ? 44 : 4, [SW_PHASE_BACKWARD] = 5),
                       0);
        }
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(29), {"accuracy", "/home/u/test.py", 3, 6}, TORCH("f")),
            often ? 800 : 80, often ? 800 : 80);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_VALIDATION);
        assert_int_equal(finding != NULL, often);
        assert_null(found(scene, SW_FINDING_REDUNDANT_WORK));
        if (finding) {
            assert_string_equal(finding->name, "accuracy");
            assert_true(fabs(finding->share - 8.0 / 17) < 0.03);
            assert_int_equal(evidence(finding, "validations"), 20);
            assert_null(found(scene, SW_FINDING_VARIANCE));
        }
        scene_free(scene);
    }
}

/* A constant that is computed in every forward. */
static void work_outside_the_backward(void **state)
{
    (void)state;
    for (unsigned constant = 0; constant < 2; constant++) {
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = constant ? 3 : 14));
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("f"), {"Net.forward", "/home/u/net.py", 5, 7}), 200,
            200);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("f"),
                             {"Net.forward", "/home/u/net.py", 5, 6},
                             {"normalize", "/home/u/graph.py", 3, 4}),
                      600, 600);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 300, 300);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, constant);
        if (finding) {
            assert_string_equal(finding->name, "normalize");
        } else {
            assert_silent(scene);
        }
        scene_free(scene);
    }
}

/* --- compilations --- */

static void compiled(struct scene *scene, const char *function, const char *reason,
                     uint64_t times, uint64_t ms, bool again)
{
    const uint32_t name = scene_text(scene, function);
    const uint32_t why = scene_text(scene, reason);
    const uint32_t file = scene_text(scene, "/home/u/train.py");
    (void)scene_row(scene, SW_TABLE_COMPILED, again ? SW_ROW_AGAIN : 0,
                    KEY(name, why, file, 3), VALUE(times, ms * MS));
}

static void compiled_again_and_again(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 100; i++) {
        scene_step(scene, PHASES(COMPUTE, [SW_PHASE_COMPILE] = i % 5 ? 0 : 50), 0);
    }
    compiled(scene, "train_step", "the first call", 1, 50, false);
    compiled(scene, "train_step", "argument 2 ('rate'): static 1 -> static 2", 10, 500,
             true);
    compiled(scene, "train_step", "argument 2 ('rate'): static 2 -> static 3", 9, 450,
             true);
    compiled(scene, "init", "another shape", 2, 600, true); /* before the steps */
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_RECOMPILE);
    assert_non_null(finding);
    assert_string_equal(finding->name, "train_step");
    assert_int_equal(evidence(finding, "compilations_again"), 19);
    assert_non_null(strstr(finding->advice[1], "static"));
    assert_true(finding->low < 19.0 / 9 && finding->high > 19.0 / 9 - 0.1);
    scene_free(scene);
}

/* What JAX was handed is computed while it compiles. A wait shows how long that takes: 11 steps in 4.5 ms. */
static void compiled_beside_what_is_computed(void **state)
{
    (void)state;
    double speedup[2];
    for (unsigned jax = 0; jax < 2; jax++) {
        struct scene *scene = scene_new();
        if (jax) {
            tb_fact(scene->tb, "jax_backend", "cpu");
        }
        for (unsigned i = 0; i < 200; i++) {
            scene_step(
                scene,
                PHASES([SW_PHASE_FORWARD] = 0.05, [SW_PHASE_COMPILE] = i % 20 ? 0 : 40,
                       [SW_PHASE_SYNC] = i % 20 == 10 ? 4 : 0),
                0);
        }
        compiled(scene, "train_step", "the first call", 1, 40, false);
        compiled(scene, "train_step", "argument 2 ('rate'): static 1 -> static 2", 9, 360,
                 true);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_RECOMPILE);
        assert_non_null(finding);
        speedup[jax] = finding->speedup;
        if (jax) {
            assert_true(fabs(evidence(finding, "computed_ms") - 4.5 / 11) < 0.02);
            assert_true(finding->low < 4.2 && finding->high > 6);
        }
        scene_free(scene);
    }
    /* 200 steps in 450 ms, of which 360 go, or 0.41 a step stay beside one compilation. */
    assert_true(fabs(speedup[0] - 450.0 / 90) < 0.3);
    assert_true(fabs(speedup[1] - 450 / (40 + 199 * 4.5 / 11)) < 0.3);
}

/* The same, and nothing is waited for but after the last step, for all at once or one by one: what it tells are the steps since the
 * last compilation. */
static void waited_for_at_the_end(unsigned waits)
{
    struct scene *scene = scene_new();
    tb_fact(scene->tb, "jax_backend", "cpu");
    for (unsigned i = 0; i < 200; i++) {
        scene_step(
            scene,
            PHASES([SW_PHASE_FORWARD] = 0.05, [SW_PHASE_COMPILE] = i % 20 ? 0 : 40), 0);
    }
    /* 20 steps, one of them the one that compiled: 0.95 ms to hand the others out, 9 of waiting. */
    const uint32_t sync = scene_section(scene, "sync", SW_PHASE_SYNC);
    for (unsigned i = 0; i < waits; i++) {
        const uint64_t wait = 9 * MS / waits;
        call(scene->tb, scene->lane, sync, scene->at + i * (wait + 1000), wait);
    }
    /* What is waited for later is something else. */
    call(scene->tb, scene->lane, sync, scene->at + 60 * MS, 5 * MS);
    compiled(scene, "train_step", "the first call", 1, 40, false);
    compiled(scene, "train_step", "argument 2 ('rate'): static 1 -> static 2", 9, 360,
             true);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_RECOMPILE);
    assert_non_null(finding);
    assert_true(fabs(evidence(finding, "computed_ms") - 9.95 / 20) < 0.02);
    assert_true(fabs(finding->speedup - 410 / (40 + 199 * 9.95 / 20)) < 0.3);
    scene_free(scene);
}

static void compiled_and_waited_for_at_the_end(void **state)
{
    (void)state;
    waited_for_at_the_end(1);
    waited_for_at_the_end(6);
}

/* Compilations that are nearly all of the time: a program that compiles once is as many times as fast as there were, whether the first
 * one was the first step's or came before any step was seen; where sizes are the reason, a few may stay. */
static void compiled_once_after_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        const bool seen = i & 1, sizes = i & 2;
        struct scene *scene = scene_new();
        for (unsigned k = 0; k < 200; k++) {
            const bool compiles = k ? k % 25 == 0 : seen;
            scene_step(
                scene,
                PHASES([SW_PHASE_FORWARD] = 0.1, [SW_PHASE_COMPILE] = compiles ? 200 : 0),
                0);
        }
        compiled(scene, "train_step", "the first call", 1, 200, false);
        compiled(scene, "train_step",
                 sizes ? "argument 2 ('x'): float32[12,104] → float32[12,108]"
                       : "argument 2 ('rate'): static 1 -> static 2",
                 7, 1400, true);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_RECOMPILE);
        assert_non_null(finding);
        assert_true(fabs(evidence(finding, "compile_once_s") - 0.2) < 0.01);
        assert_true(fabs(finding->speedup - 1.62 / 0.22) < 0.2);
        assert_true(finding->low < (sizes ? 1.62 / 0.6 : 1.62 / 0.24));
        assert_true(finding->low > (sizes ? 1.62 / 0.8 : 1.62 / 0.4));
        assert_true(finding->high > 1.62 / 0.18 && finding->high < 1.62 / 0.12);
        scene_free(scene);
    }
}

/* The loop waits for its batches, and JAX computes meanwhile what it was handed: a wait of 200 ms at the end says so. */
static void batches_made_while_computing(void **state)
{
    (void)state;
    for (unsigned ahead = 0; ahead < 2; ahead++) {
        struct scene *scene = scene_new();
        tb_fact(scene->tb, "jax_backend", "cpu");
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 5, [SW_PHASE_DATA_WAIT] = 2));
        if (ahead) {
            call(scene->tb, scene->lane, scene_section(scene, "sync", SW_PHASE_SYNC),
                 scene->at, 200 * MS);
        }
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LOADER_WORKERS) != NULL, !ahead);
        scene_free(scene);
    }
}

/* Shapes that are made alike have padding, which is computed as well. */
static void compiled_for_each_shape(void **state)
{
    (void)state;
    double speedup[2];
    for (unsigned shapes = 0; shapes < 2; shapes++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 100; i++) {
            scene_step(scene, PHASES(COMPUTE, [SW_PHASE_COMPILE] = i % 5 ? 0 : 50), 0);
        }
        compiled(scene, "forward", "the first call", 1, 50, false);
        compiled(scene, "forward",
                 shapes ? "tensor 'x' size mismatch at index 1. expected 7, actual 9"
                        : "a new function object",
                 19, 950, true);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_RECOMPILE);
        assert_non_null(finding);
        speedup[shapes] = finding->speedup;
        scene_free(scene);
    }
    assert_true(speedup[1] < 0.9 * speedup[0] && speedup[1] > 0.7 * speedup[0]);
}

static void compiled_when_training_began(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_step(scene, PHASES(COMPUTE, [SW_PHASE_COMPILE] = 900), 0);
    scene_step(scene, PHASES(COMPUTE, [SW_PHASE_COMPILE] = 400), 0);
    scene_steps(scene, 100, PHASES(COMPUTE));
    compiled(scene, "train_step", "the first call", 1, 900, false);
    compiled(scene, "train_step", "another shape", 1, 400, true);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* --- loops in the source --- */

static bool same(const char *text, uint32_t first, uint32_t line)
{
    return sw__source_same_inputs(text, strlen(text), first, line);
}

/* What a line of a loop is computed from, and whether that differs from step to step. */
static void inputs_of_a_line(void **state)
{
    (void)state;
    static const char *const constant[] = {
        "P = normalize(A)",
        "P = normalize(A, power=-0.5)  # of the graph",
        "mean, std = X.mean(0), X.std(0)",
        "table = sinusoid(LENGTH, 64)",
        "P = (A + torch.eye(len(A))).matrix_power(3)",
    };
    static const char *const differs[] = {
        "x = augment(x)",                /* of the loop itself */
        "x = augment(images[i])",        /* … */
        "ids = tokenize(texts)",         /* made in it */
        "kept = summary(losses)",        /* grows in it */
        "penalty = l1(net)",             /* is trained in it */
        "x = make()",                    /* nobody knows */
        "x = make(rng)",                 /* chance */
        "x = A[torch.randperm(len(A))]", /* chance */
        "x = next(stream)",
        "total += cost(A)",
        "for row in A:",
        "x = [f(a) for a in A]",
        "writer.write(A)",       /* for what it does */
        "x = data.draw()",       /* goes on from where it was */
        "x = play(game, agent)", /* … */
        "pass",
    };
    char text[600];
    for (unsigned other = 0; other < 2; other++) {
        const char *const *list = other ? differs : constant;
        const size_t count = other ? sizeof differs / sizeof differs[0]
                                   : sizeof constant / sizeof constant[0];
        for (size_t i = 0; i < count; i++) {
            snprintf(text, sizeof text,
                     "def train(A, X):\n"
                     "    for i, (x, y) in enumerate(loader):\n"
                     "        texts = read(i)\n"
                     "        %s\n"
                     "        losses.append(loss)\n"
                     "        loss = F.mse_loss(net(x), y)\n"
                     "    print(A)\n",
                     list[i]);
            assert_int_equal(same(text, 1, 4), !other);
        }
    }
    static const char loop[] = "def train(net, game):\n"
                               "    for i in range(9):\n"
                               "        x = play(game, net)\n"
                               "        y = resize(game)\n"
                               "        loss = net(x)\n";
    assert_true(sw__source_uses_model(loop, sizeof loop - 1, 1, 3));
    assert_false(sw__source_uses_model(loop, sizeof loop - 1, 1, 4));
    static const char method[] = "class Net:\n"
                                 "    def step(self, batch,\n"
                                 "             scale):\n"
                                 "        P = normalize(self.A,\n"
                                 "                      self.power)\n"
                                 "        x = encode(batch)\n"
                                 "        self.seen = count(self.seen)\n"
                                 "        y = self.draw()\n";
    assert_true(same(method, 2, 4));
    assert_false(same(method, 2, 5)); /* the middle of a statement */
    assert_false(same(method, 2, 6));
    assert_false(same(method, 2, 7));
    assert_false(same(method, 2, 8));
    assert_false(same(method, 2, 0));
    assert_false(same(method, 2, 99));
    assert_false(same("x = f(\"", 1, 1));
    assert_false(same("", 1, 1));
}

static void loops_around_a_line(void **state)
{
    (void)state;
    static const char text[] = "import x\n"               /* 1 */
                               "def f(a):\n"              /* 2 */
                               "    for b in a:\n"        /* 3 */
                               "        g(b)\n"           /* 4 */
                               "        # for\n"          /* 5 */
                               "\n"                       /* 6 */
                               "        while b:\n"       /* 7 */
                               "            b = h(\n"     /* 8 */
                               "                b)\n"     /* 9 */
                               "    c = [i for i in a]\n" /* 10 */
                               "    return c";            /* 11 */
    static const uint32_t around[] = {0, 0, 3, 3, 0, 0, 7, 7, 7, 10, 0};
    for (uint32_t line = 1; line <= 11; line++) {
        if (line != 5 && line != 6) {
            assert_int_equal(sw__source_loop(text, sizeof text - 1, 2, line),
                             around[line - 1]);
        }
    }
    assert_int_equal(sw__source_loop(text, sizeof text - 1, 2, 12), 0);
    assert_int_equal(sw__source_loop(text, 0, 2, 3), 0);
    assert_int_equal(sw__source_loop(text, sizeof text - 1, 2, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_update_tensor_by_tensor),
        cmocka_unit_test(an_update_that_is_as_it_should_be),
        cmocka_unit_test(an_update_of_the_users_own),
        cmocka_unit_test(a_closure),
        cmocka_unit_test(a_block_unlike_its_siblings),
        cmocka_unit_test(a_convolution_unlike_the_others),
        cmocka_unit_test(a_convolution_with_more_channels),
        cmocka_unit_test(a_convolution_with_a_wide_kernel),
        cmocka_unit_test(a_layer_that_learns_nothing),
        cmocka_unit_test(healthy_models),
        cmocka_unit_test(doubles),
        cmocka_unit_test(small_operations),
        cmocka_unit_test(a_forward_after_the_backward),
        cmocka_unit_test(a_training_after_another),
        cmocka_unit_test(forwards_after_some_backwards),
        cmocka_unit_test(work_outside_the_backward),
        cmocka_unit_test(compiled_again_and_again),
        cmocka_unit_test(compiled_beside_what_is_computed),
        cmocka_unit_test(compiled_and_waited_for_at_the_end),
        cmocka_unit_test(compiled_once_after_all),
        cmocka_unit_test(batches_made_while_computing),
        cmocka_unit_test(compiled_for_each_shape),
        cmocka_unit_test(compiled_when_training_began),
        cmocka_unit_test(loops_around_a_line),
        cmocka_unit_test(inputs_of_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
