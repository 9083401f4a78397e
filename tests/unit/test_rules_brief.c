/* Rules on runs in which most steps were watched in brief: they say what they would say of the same run with every step looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

enum { STEPS = 1000 };

/* The recording lasts as long as its steps. */
static void ends_here(struct scene *scene)
{
    scene->tb->super.end_snapshot = tb_snapshot(scene->tb, scene->at + MS);
}

/* The steps of a scene, all of them looked at, or most in brief. */
static void steps_of(struct scene *scene, bool brief, const double ms[SW_PHASE_COUNT],
                     bool inside)
{
    if (brief) {
        scene_mostly_brief(scene, STEPS, ms, inside);
    } else {
        scene_steps(scene, STEPS, ms);
    }
    ends_here(scene);
}

static unsigned looked_of(bool brief)
{
    unsigned looked = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        looked += !brief || i < 100 || i * 7 % 50 < 4;
    }
    return looked;
}

/* Parts of the model are seen in steps that are looked at. */
static void part_in(struct scene *scene, bool brief, const char *name, const char *type,
                    double forward, double backward, uint64_t parameters)
{
    const unsigned calls = looked_of(brief);
    scene_part(scene, name, type, forward, backward, parameters);
    for (unsigned i = 100; i < calls; i++) { /* it has had 100 of them */
        call(scene->tb, scene->lane, scene->names - 1, START + 10 * i * MS,
             (uint64_t)(forward * MS));
    }
}

/* Samples within the phases of a step: of steps in brief they know nothing else. */
static void samples_in(struct scene *scene, bool brief, unsigned phase,
                       const struct scene_frame *frames, uint64_t samples,
                       uint64_t in_call)
{
    const uint64_t looked = brief ? samples / 5 : samples;
    const uint64_t called = brief ? in_call / 5 : in_call;
    scene_samples(scene, phase, frames, looked, called);
    if (brief) {
        const bool known = SW_PHASES_ALWAYS >> phase & 1;
        scene_samples(scene, known ? phase : SW_PHASE_BRIEF, frames, samples - looked,
                      in_call - called);
    }
}

static void usual_in(struct scene *scene, bool brief)
{
    samples_in(scene, brief, SW_PHASE_FORWARD,
               FRAMES(TRAIN(20), TORCH("Module.__call__")), 400, 390);
    samples_in(scene, brief, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("backward")), 500,
               500);
}

/* Two scenes of one kind side by side: what is found in them. */
struct pair {
    struct scene *scene[2]; /* [1]: most steps in brief */
    const sw_finding *finding[2];
};

static void look_at(struct pair *pair, enum sw_finding_kind kind)
{
    for (unsigned brief = 0; brief < 2; brief++) {
        scene_look(pair->scene[brief]);
        pair->finding[brief] = found(pair->scene[brief], kind);
        assert_non_null(pair->finding[brief]);
    }
    assert_int_equal(pair->finding[0]->predicted, pair->finding[1]->predicted);
    if (pair->finding[0]->predicted) {
        const double speedup = pair->finding[0]->speedup;
        assert_true(speedup > 1.05 && speedup < 5);
        assert_true(fabs(pair->finding[1]->speedup / speedup - 1) < 0.03);
    }
}

static void check_alike(const struct pair *pair, const char *name, double off)
{
    const double all = evidence(pair->finding[0], name);
    const double brief = evidence(pair->finding[1], name);
    if (!(fabs(brief / all - 1) < off)) {
        fail_msg("%s: %g in brief, %g in full", name, brief, all);
    }
}

static void done(struct pair *pair)
{
    scene_free(pair->scene[0]);
    scene_free(pair->scene[1]);
}

static void a_part_out_of_proportion(void **state)
{
    (void)state;
    struct pair pair;
    for (unsigned brief = 0; brief < 2; brief++) {
        struct scene *scene = pair.scene[brief] = scene_new();
        steps_of(scene, brief, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8),
                 false);
        samples_in(
            scene, brief, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("f"), {"Kernel.forward", "/home/u/kernel.py", 8, 9}),
            400, 400);
        part_in(scene, brief, "Net", "Net", 4, 8, 0);
        part_in(scene, brief, "Net.kernel", "Kernel", 3, 6, 5000);
        part_in(scene, brief, "Net.a", "Linear", 0.3, 0.3, 10000);
        part_in(scene, brief, "Net.b", "Linear", 0.3, 0.3, 10000);
        part_in(scene, brief, "Net.c", "Linear", 0.3, 0.3, 10000);
    }
    look_at(&pair, SW_FINDING_SLOW_MODULE);
    assert_string_equal(pair.finding[1]->name, "Net.kernel");
    assert_true(fabs(pair.finding[1]->share / pair.finding[0]->share - 1) < 0.03);
    done(&pair);
}

static void a_loader_without_workers(void **state)
{
    (void)state;
    struct pair pair;
    for (unsigned brief = 0; brief < 2; brief++) {
        struct scene *scene = pair.scene[brief] = scene_new();
        const uint64_t looked = looked_of(brief);
        steps_of(scene, brief,
                 PHASES([SW_PHASE_DATA_WAIT] = 0.5, [SW_PHASE_PREPROCESS] = 9,
                        [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 6),
                 true);
        const uint32_t name = scene_text(scene, "train_loader");
        (void)scene_row(scene, SW_TABLE_LOADER, 0, KEY(name, name, 0, 8),
                        VALUE(0, 2, 8 * STEPS, 1, 0));
        const uint64_t fetch = (uint64_t)(9.4 * MS), get = 9 * MS;
        (void)scene_row(scene, SW_TABLE_STAGE, 0,
                        KEY(name, UINT32_MAX, SW_STAGE_WAIT, name),
                        VALUE(looked, looked * fetch, 0, fetch, fetch));
        (void)scene_row(scene, SW_TABLE_STAGE, 0,
                        KEY(name, UINT32_MAX, SW_STAGE_FETCH, name),
                        VALUE(looked, looked * fetch, looked * fetch, fetch, fetch));
        (void)scene_row(scene, SW_TABLE_STAGE, 0,
                        KEY(name, UINT32_MAX, SW_STAGE_GETITEM, name),
                        VALUE(8 * looked, looked * get, looked * get, get / 8, get / 8));
        usual_in(scene, brief);
    }
    look_at(&pair, SW_FINDING_LOADER_WORKERS);
    check_alike(&pair, "wait_share", 0.02);
    check_alike(&pair, "compute_ms", 0.02);
    check_alike(&pair, "workers_proposed", 0.01);
    done(&pair);
}

static void the_collector(void **state)
{
    (void)state;
    struct pair pair;
    for (unsigned brief = 0; brief < 2; brief++) {
        struct scene *scene = pair.scene[brief] = scene_new();
        steps_of(
            scene, brief,
            PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5, [SW_PHASE_GC] = 3),
            false);
        for (unsigned i = 0; i < STEPS; i++) {
            const sw_record_gc record = {.head = {.kind = SW_RECORD_GC,
                                                  .units = 1,
                                                  .flags = SW_RECORD_INTERVAL,
                                                  .ticks = START + 12 * i * MS},
                                         .end = START + (12 * i + 3) * MS,
                                         .generation = 2};
            tb_record(scene->tb, 0, &record);
        }
        usual_in(scene, brief);
        samples_in(scene, brief, SW_PHASE_GC, FRAMES(TRAIN(33)), 300, 300);
    }
    look_at(&pair, SW_FINDING_GC);
    assert_int_equal(pair.finding[1]->line, 33); /* asked for in every step */
    check_alike(&pair, "gc_ms", 0.01);
    check_alike(&pair, "collections_kept", 0.001);
    assert_true(fabs(pair.finding[1]->speedup - relieved(12, 2.98)) < 0.03);
    done(&pair);
}

/* Code in no phase, whose time steps in brief have together with that of all other phases. */
static void python_code(void **state)
{
    (void)state;
    struct pair pair;
    for (unsigned brief = 0; brief < 2; brief++) {
        struct scene *scene = pair.scene[brief] = scene_new();
        steps_of(
            scene, brief,
            PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5, [SW_PHASE_OTHER] = 6),
            false);
        usual_in(scene, brief);
        samples_in(scene, brief, SW_PHASE_OTHER,
                   FRAMES(TRAIN(27), {"count_pairs", "/home/u/pairs.py", 3, 7}), 600, 20);
    }
    look_at(&pair, SW_FINDING_PYTHON_OVERHEAD);
    assert_string_equal(pair.finding[1]->name, "count_pairs");
    check_alike(&pair, "python_ms", 0.03);
    check_alike(&pair, "samples", 0.001);
    done(&pair);
}

/* Every twentieth step is long, in code of no phase. */
static void steps_that_are_long_now_and_then(void **state)
{
    (void)state;
    struct pair pair;
    for (unsigned brief = 0; brief < 2; brief++) {
        struct scene *scene = pair.scene[brief] = scene_new();
        for (unsigned i = 0; i < STEPS; i++) {
            const double more = i % 20 == 19 ? 60 : 0;
            const double *ms = PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 6,
                                      [SW_PHASE_OTHER] = more);
            if (!brief || i < 100 || i * 7 % 50 < 4) {
                scene_step(scene, ms, 0);
            } else {
                scene_brief(scene, ms, false);
            }
        }
        ends_here(scene);
        usual_in(scene, brief);
    }
    look_at(&pair, SW_FINDING_VARIANCE);
    assert_non_null(strstr(pair.finding[1]->title, "Every 20 steps"));
    assert_non_null(strstr(pair.finding[1]->title, "other"));
    check_alike(&pair, "phase_part", 0.15);
    check_alike(&pair, "excess_share", 0.02);
    done(&pair);
}

/* Steps in brief are long for a reason that those that were looked at do not have: these were long for another one, and what they have
 * in the other phases is next to nothing in sum, longer here and shorter there. That says nothing of the others. */
static void steps_that_are_long_for_another_reason(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->jitter = 0;
    for (unsigned i = 0; i < STEPS; i++) {
        const bool slow = i % 20 == 19;
        if (i < 100 || i * 7 % 50 < 4) {
            scene_step(scene,
                       PHASES([SW_PHASE_DATA_WAIT] = slow ? 15 : 0,
                              [SW_PHASE_FORWARD] = slow ? 9 : 4,
                              [SW_PHASE_BACKWARD] = slow ? 1.1 : 6),
                       0);
        } else {
            scene_brief(scene, PHASES([SW_PHASE_FORWARD] = slow ? 70 : 10), false);
        }
    }
    ends_here(scene);
    usual_in(scene, true);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_VARIANCE));
    scene_free(scene);
}

/* That they take a little longer is no finding, and what is known of few steps is not taken for more. */
static void looking_is_no_finding(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < STEPS; i++) {
        if (i < 100 || i * 7 % 50 < 4) {
            scene_step(scene, PHASES([SW_PHASE_FORWARD] = 0.5, [SW_PHASE_BACKWARD] = 0.6),
                       0);
        } else {
            scene_brief(scene, PHASES([SW_PHASE_FORWARD] = 1), false);
        }
    }
    ends_here(scene);
    usual_in(scene, true);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_out_of_proportion),
        cmocka_unit_test(a_loader_without_workers),
        cmocka_unit_test(the_collector),
        cmocka_unit_test(python_code),
        cmocka_unit_test(steps_that_are_long_now_and_then),
        cmocka_unit_test(steps_that_are_long_for_another_reason),
        cmocka_unit_test(looking_is_no_finding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
