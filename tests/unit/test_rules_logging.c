/* Rules on what is done besides training, and on waits: logging, copies of the state, collections, values for the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5

/* A copy of the weights after each update is a checkpoint, by copy.deepcopy or by name; other work is not. */
static void copies_of_the_state(void **state)
{
    (void)state;
    static const struct {
        const char *function, *inner;
        bool keeps;
    } cases[] = {{"Trainer.after", "deepcopy", true},
                 {"Trainer.keep_best", "clone", true},
                 {"Trainer.after", "clone", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 3));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(30), {cases[i].function, "/home/u/train2.py", 3, 7},
                             {cases[i].inner, "/usr/lib/python3.12/copy.py", 118, 128},
                             TORCH("Tensor.__deepcopy__")),
                      300, 300);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CHECKPOINT);
        assert_int_equal(finding != NULL, cases[i].keeps);
        if (finding) {
            assert_int_equal(finding->line, 7);
            assert_null(found(scene, SW_FINDING_LOGGING));
        }
        scene_free(scene);
    }
}

/* Samples of which the innermost frames alone were seen belong to somebody, and nobody knows to whom: what is known is the share
 * of the others. Those that begin where a program begins are somebody else's. */
static void stacks_without_their_callers(void **state)
{
    (void)state;
    for (unsigned torn = 0; torn < 2; torn++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 4));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(30), {"Tracker.log", "/home/u/track.py", 3, 7}), 200,
                      200);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES({torn ? "_iterencode" : "<module>",
                              "/usr/lib/python3.12/json/encoder.py", 414, 430},
                             {"_dict", "/usr/lib/python3.12/json/encoder.py", 334, 401},
                             {"_list", "/usr/lib/python3.12/json/encoder.py", 278, 325},
                             {"_dict", "/usr/lib/python3.12/json/encoder.py", 334, 402}),
                      200, 100);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOGGING);
        assert_non_null(finding);
        assert_true(fabs(evidence(finding, "logging_ms") - (torn ? 4 : 2)) < 0.2);
        scene_free(scene);
    }
}

/* A framework runs the loop, and calls a function of the user's after the backward: what that does is no update, though it lies in
 * the optimizer's step. Before the backward it is something else. */
#define CLOSURE(line)                                                                    \
    {"step", "/v/site-packages/torch/optim/sgd.py", 50, 60},                             \
    {                                                                                    \
        "closure", "/v/site-packages/lightning/loops.py", 100, line                      \
    }
static void journal_of_a_framework(void **state)
{
    (void)state;
    static const struct {
        uint32_t line; /* of the framework's that calls it; the backward is in line 120 */
        uint64_t samples;
        bool elsewhere; /* Python code that is called before the model */
        bool logs;
    } cases[] = {{130, 500, false, true},
                 {110, 500, false, false},
                 {130, 30, false, false},
                 {130, 500, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const double ms = (double)cases[i].samples / 100;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 2, [SW_PHASE_BACKWARD] = 3,
                           [SW_PHASE_OPTIMIZER] = ms + 0.5, [SW_PHASE_OTHER] = 1));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), CLOSURE(115),
                             {"Net.training_step", "/home/u/net.py", 5, 9}, TORCH("c")),
                      200, 200);
        scene_samples(scene, SW_PHASE_BACKWARD,
                      FRAMES(TRAIN(20), CLOSURE(120),
                             {"backward", "/v/site-packages/torch/_tensor.py", 600, 620}),
                      300, 300);
        scene_samples(scene, SW_PHASE_OPTIMIZER,
                      FRAMES(TRAIN(20), CLOSURE(cases[i].line),
                             {"Chronicle.after", "/home/u/chronicle.py", 30, 36},
                             {"Chronicle.describe", "/home/u/chronicle.py", 10, 14}),
                      cases[i].samples * 9 / 10, cases[i].samples * 9 / 10);
        scene_samples(
            scene, SW_PHASE_OPTIMIZER,
            FRAMES(TRAIN(20), {"step", "/v/site-packages/torch/optim/sgd.py", 50, 62}),
            50, 50);
        /* It also writes down what it found, which looks like Python. */
        scene_samples(scene, SW_PHASE_OPTIMIZER,
                      FRAMES(TRAIN(20), CLOSURE(cases[i].line),
                             {"Chronicle.after", "/home/u/chronicle.py", 30, 38}),
                      cases[i].samples / 10, cases[i].samples / 20);
        if (cases[i].elsewhere) {
            scene_samples(
                scene, SW_PHASE_OTHER,
                FRAMES(TRAIN(20), CLOSURE(105), {"prepare", "/home/u/net.py", 40, 44}),
                400, 40);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOGGING);
        assert_int_equal(finding != NULL, cases[i].logs);
        if (finding) {
            assert_string_equal(finding->name, "Chronicle.describe");
            /* All that is called there, and none of it is told twice. */
            assert_true(fabs(evidence(finding, "after_ms") - 5) < 0.3);
            assert_null(found(scene, SW_FINDING_PYTHON_OVERHEAD));
        }
        scene_free(scene);
    }
}

/* A package computes what is written down; the few lines around that are Python, which is not what takes the time, unless there are more of
 * them. */
static void metrics_that_a_package_computes(void **state)
{
    (void)state;
    for (unsigned python = 0; python < 2; python++) {
        struct scene *scene = scene_new();
        const unsigned own = python ? 450 : 80;
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(40), {"Report.describe", "/home/u/report.py", 8, 10},
                             {"histogram", "/v/site-packages/numpy/lib/h.py", 1, 2}),
                      600 - own, 600 - own);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(40), {"Report.describe", "/home/u/report.py", 8, 12}),
                      own, own / 3);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LOGGING) != NULL, !python);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, python);
        scene_free(scene);
    }
}

/* Classes that are there to write down what happens are known by their names, before the model and after it. */
static void classes_that_log(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool logs;
    } cases[] = {{"Journal.write", true}, {"Diary.note", true}, {"Journey.write", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(17), {cases[i].name, "/home/u/words.py", 3, 7}), 600,
                      590);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LOGGING) != NULL, cases[i].logs);
        scene_free(scene);
    }
}

/* Pictures and tables are logs, too, and what is handed to who writes them is part of it. */
static void pictures_and_tables(void **state)
{
    (void)state;
    static const char *const packages[] = {
        "/v/lib/python3.12/site-packages/matplotlib/figure.py",
        "/v/lib/python3.12/site-packages/pandas/io/formats/csvs.py",
        "/v/lib/python3.12/site-packages/scipy/linalg/basic.py"};
    for (unsigned i = 0; i < 3; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 1.5));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(33), {"savefig", packages[i], 3, 7}), 80, 80);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(33), {"subplots", "/v/site-packages/x/y.py", 3, 7}),
                      70, 70);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOGGING);
        if (i < 2) {
            assert_non_null(finding);
            assert_int_equal(finding->line, 33);
            assert_true(fabs(evidence(finding, "logging_share") - 0.14) < 0.03);
        } else {
            /* Work after the update, by no name that says more. */
            assert_true(!finding || isnan(evidence(finding, "logging_share")));
        }
        scene_free(scene);
    }
}

/* In JAX the host works inside the call of a compiled step, and a wait now and then is short: it copies. Or it sleeps there, or
 * what is waited for takes as long, or nothing is waited for, so that the call may compute. */
static void jax_is_given_arrays_of_the_host(void **state)
{
    (void)state;
    static const struct {
        double wait_ms;
        bool sleeps, copies;
    } cases[] = {
        {2, false, true}, {2, true, false}, {9, false, false}, {0, false, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        tb_fact(scene->tb, "jax_backend", "cpu");
        for (unsigned k = 0; k < 100; k++) {
            scene_step(scene,
                       PHASES([SW_PHASE_OPTIMIZER] = 10, [SW_PHASE_OTHER] = 1,
                              [SW_PHASE_SYNC] = k % 25 == 12 ? cases[i].wait_ms : 0),
                       0);
        }
        scene_samples_of(scene, SW_PHASE_OPTIMIZER, FRAMES(TRAIN(20)),
                         cases[i].sleeps ? 40 : 1000, cases[i].sleeps ? 960 : 0, 1000);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(17)), 100, 50);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_TRANSFER);
        assert_int_equal(finding != NULL, cases[i].copies);
        if (finding) {
            assert_int_equal(finding->line, 20);
            assert_true(fabs(finding->share - 0.9) < 0.05);
            assert_true(finding->speedup > 4 && finding->speedup < 6); /* to 2 ms */
        }
        scene_free(scene);
    }
}

/* The logarithm of something is made for the model and given back; what is written down is not, or comes after. */
static void logarithms_are_no_logs(void **state)
{
    (void)state;
    static const struct {
        const char *body;
        uint32_t line; /* of the loop */
        bool logs;
    } cases[] = {
        {"    return np.log(frames)\n", 17, false},
        {"    print(frames)\n", 17, true},
        {"    def sink(x):\n        return x\n    print(sink(frames))\n", 17, true},
        {"    return print(frames)\n", 33, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[200];
        snprintf(text, sizeof text, "@timed\ndef log_mel(\n    frames,\n):\n%s",
                 cases[i].body);
        const char *file = scene_source(scene, text);
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(cases[i].line), {"log_mel", file, 1, 5}), 590, 585);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LOGGING) != NULL, cases[i].logs);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL,
                         !cases[i].logs);
        scene_free(scene);
    }
}

static void logging_in_steps(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_LOGGING] = 1));
    const uint32_t print = scene_section(scene, "print", SW_PHASE_LOGGING);
    for (unsigned i = 0; i < 100; i++) {
        call(scene->tb, scene->lane, print, START + 10 * i * MS, MS);
    }
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_LOGGING, FRAMES(TRAIN(31)), 100, 100);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_LOGGING);
    assert_non_null(finding);
    assert_int_equal(finding->line, 31);
    assert_int_equal(evidence(finding, "calls_per_step"), 1);
    assert_true(fabs(evidence(finding, "logging_share") - 0.1) < 0.01);
    assert_true(finding->low >= 1 && finding->low < 1.06 && finding->high < 1.25);
    assert_non_null(strstr(finding->title, "print"));
    scene_free(scene);

    scene = scene_new(); /* now and then */
    for (unsigned i = 0; i < 200; i++) {
        scene_step(scene, PHASES(COMPUTE, [SW_PHASE_LOGGING] = i % 50 ? 0 : 2), 0);
    }
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* Whole collections in every step. */
static struct scene *collecting(void)
{
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_GC] = 3));
    for (unsigned i = 0; i < 100; i++) {
        const sw_record_gc record = {.head = {.kind = SW_RECORD_GC,
                                              .units = 1,
                                              .flags = SW_RECORD_INTERVAL,
                                              .ticks = START + 12 * i * MS},
                                     .end = START + (12 * i + 3) * MS,
                                     .generation = 2};
        tb_record(scene->tb, 0, &record);
    }
    usual_samples(scene);
    return scene;
}

static void collections_that_the_program_asks_for(void **state)
{
    (void)state;
    struct scene *scene = collecting();
    scene_samples(scene, SW_PHASE_GC, FRAMES(TRAIN(33)), 300, 300);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_GC);
    assert_non_null(finding);
    assert_int_equal(finding->line, 33);
    assert_non_null(strstr(finding->advice[0], "gc.collect()"));
    assert_true(fabs(finding->speedup - relieved(12, 2.94)) < 0.03);
    scene_free(scene);
}

/* One line takes so much memory that the collector runs there by itself. */
static void collections_that_a_line_causes(void **state)
{
    (void)state;
    for (unsigned asks = 0; asks < 2; asks++) {
        struct scene *scene = collecting();
        const char *path = scene_source(
            scene, asks ? "gc.collect()\n" : "table = [[0, 0] for _ in range(n)]\n");
        scene_samples(scene, SW_PHASE_GC, FRAMES(TRAIN(20), {"pad", path, 1, 1}), 300,
                      300);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_GC);
        assert_non_null(finding);
        assert_int_equal(strstr(finding->advice[0], "gc.collect()") != NULL, asks);
        scene_free(scene);
    }
}

static void collections_that_come_by_themselves(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 200; i++) {
        scene_step(scene, PHASES(COMPUTE, [SW_PHASE_GC] = i % 10 ? 0 : 5), 0);
    }
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_GC);
    assert_non_null(finding);
    assert_null(finding->file);
    assert_non_null(strstr(finding->advice[0], "gc.freeze()"));
    scene_free(scene);

    scene = scene_new();
    scene_steps(scene, 200, PHASES(COMPUTE, [SW_PHASE_GC] = 0.05));
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

static void wait_row(struct scene *scene, const char *call_name, unsigned kind,
                     uint64_t calls, uint64_t pinned, unsigned flags)
{
    const uint32_t name = scene_text(scene, call_name);
    const uint32_t file = scene_text(scene, "/home/u/train.py");
    (void)scene_row(scene, SW_TABLE_WAIT, flags, KEY(name, file, 40, kind),
                    VALUE(calls, calls * MS, calls * 1000, MS, pinned));
}

static void values_that_the_host_asks_for(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_SYNC] = 6));
    wait_row(scene, "Tensor.item", SW_WAIT_SYNC, 100, 0, 0);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_HOST_SYNC);
    assert_non_null(finding);
    assert_int_equal(finding->line, 40);
    assert_string_equal(finding->name, "Tensor.item");
    assert_true(finding->speedup > 1.2);
    scene_free(scene);

    /* Every fiftieth step, as advised; also where all values that were kept are asked for then. */
    for (unsigned all = 0; all < 2; all++) {
        scene = scene_new();
        for (unsigned i = 0; i < 200; i++) {
            scene_step(scene, PHASES(COMPUTE, [SW_PHASE_SYNC] = i % 20 ? 0 : 40), 0);
        }
        wait_row(scene, "Tensor.item", SW_WAIT_SYNC, all ? 200 : 4, 0, 0);
        scene_look(scene);
        assert_null(found(scene, SW_FINDING_HOST_SYNC));
        scene_free(scene);
    }

    scene =
        scene_new(); /* no device: asking costs nothing that would not be spent anyway */
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_SYNC] = 6));
    scene_look(scene);
    assert_silent(scene);
    assert_false(sw_findings_checked(scene->findings, SW_FINDING_HOST_SYNC, NULL));
    scene_free(scene);
}

static void copies_to_the_device(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_H2D] = 3));
    wait_row(scene, "Tensor.to", SW_WAIT_H2D, 200, 0, 0);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_TRANSFER);
    assert_non_null(finding);
    assert_int_equal(evidence(finding, "copies_per_step"), 2);
    scene_free(scene);

    scene = scene_new(); /* pinned, and beside the computation */
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_H2D] = 3));
    wait_row(scene, "Tensor.to", SW_WAIT_H2D, 200, 200, SW_ROW_UNBLOCKED);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_of_the_state),
        cmocka_unit_test(stacks_without_their_callers),
        cmocka_unit_test(journal_of_a_framework),
        cmocka_unit_test(metrics_that_a_package_computes),
        cmocka_unit_test(classes_that_log),
        cmocka_unit_test(pictures_and_tables),
        cmocka_unit_test(logarithms_are_no_logs),
        cmocka_unit_test(logging_in_steps),
        cmocka_unit_test(collections_that_the_program_asks_for),
        cmocka_unit_test(collections_that_a_line_causes),
        cmocka_unit_test(collections_that_come_by_themselves),
        cmocka_unit_test(values_that_the_host_asks_for),
        cmocka_unit_test(copies_to_the_device),
        cmocka_unit_test(jax_is_given_arrays_of_the_host),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
