/* Remarks that are no findings: each in a run that gives reason for it, and not in the
 * same run without that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 6
#define SECOND ((uint64_t)1000 * MS)

/* A run in which nothing is remarkable, for tests to add the one thing that is. */
static struct scene *usual(void)
{
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    return scene;
}

/* Whether something is remarked on. The scene is done with. */
static bool remarks(struct scene *scene, const char *part)
{
    scene_look(scene);
    const bool is = remarked(scene, part);
    scene_free(scene);
    return is;
}

/* --- runs that take long --- */

#define LONG "The run took more than an hour"

/* The recording lasts so long, whatever its steps take. */
static struct scene *lasting(struct scene *scene, uint64_t seconds)
{
    scene->tb->super.end_snapshot = tb_snapshot(scene->tb, START + seconds * SECOND);
    return scene;
}

static void a_run_of_more_than_an_hour(void **state)
{
    (void)state;
    assert_true(remarks(lasting(usual(), 3601), LONG));
    assert_true(remarks(lasting(usual(), 3601), "a schedule"));
}

/* Where nothing tells steps apart there are none to choose from by a schedule. */
static void a_run_of_less_or_without_steps(void **state)
{
    (void)state;
    assert_false(remarks(usual(), LONG));
    assert_false(remarks(lasting(usual(), 3599), LONG));
    assert_false(remarks(lasting(scene_new(), 7200), LONG));
}

/* How long it took is what the supervisor saw, where there was one: the recording may
 * have begun late. */
static void an_hour_by_the_supervisor(void **state)
{
    (void)state;
    static const char *const documents[] = {
        "{\"schema\": \"stepwatch.run/1\", \"duration_s\": 3700}",
        "{\"schema\": \"stepwatch.run/1\", \"duration_s\": 60}"};
    for (unsigned i = 0; i < 2; i++) {
        struct scene *scene = lasting(usual(), i ? 3601 : 60);
        write_run_json(scene->fixture, documents[i]);
        assert_int_equal(remarks(scene, LONG), i == 0);
    }
}

/* --- loaders --- */

#define LOADER "The loader alone can be measured with stepwatch.benchmark_dataloader"

/* Steps of 10 ms of which so many wait for batches, from a loader that is known or not.
 * */
static struct scene *loading(unsigned steps, double wait, bool known)
{
    struct scene *scene = scene_new();
    scene_steps(
        scene, steps,
        PHASES([SW_PHASE_DATA_WAIT] = wait, [SW_PHASE_FORWARD] = 0.4 * (10 - wait),
               [SW_PHASE_BACKWARD] = 0.6 * (10 - wait)));
    if (known) {
        const uint64_t each = (uint64_t)(wait * MS);
        const uint32_t name = scene_text(scene, "train_loader");
        (void)scene_row(scene, SW_TABLE_LOADER, 0, KEY(name, name, 2, 8),
                        VALUE(SW_LOADER_PERSISTENT, 2, 8 * steps, 1, 0));
        (void)scene_row(scene, SW_TABLE_STAGE, 0,
                        KEY(name, UINT32_MAX, SW_STAGE_WAIT, name),
                        VALUE(steps, steps * each, 0, each, each));
    }
    return scene;
}

static void a_loader_that_steps_wait_for(void **state)
{
    (void)state;
    assert_true(remarks(loading(100, 2.5, true), LOADER));
}

/* Steps that do not wait much; waits for something that is no loader; steps that are too
 * few to tell. */
static void a_loader_that_keeps_up(void **state)
{
    (void)state;
    assert_false(remarks(loading(100, 1.5, true), LOADER));
    assert_false(remarks(loading(100, 2.5, false), LOADER));
    assert_false(remarks(loading(8, 2.5, true), LOADER));
}

/* --- DataParallel --- */

#define PARALLEL "The model is in DataParallel"

static struct scene *data_parallel(unsigned steps, double devices)
{
    struct scene *scene = scene_new();
    scene_steps(scene, steps, PHASES(COMPUTE));
    scene_setting(scene, "data_parallel", "devices", NULL, devices);
    return scene;
}

static void a_model_on_several_devices(void **state)
{
    (void)state;
    assert_true(remarks(data_parallel(100, 2), PARALLEL));
}

/* On a machine without a GPU DataParallel has no devices, and calls the model as it is.
 * */
static void a_model_on_no_device(void **state)
{
    (void)state;
    assert_false(remarks(data_parallel(100, 0), PARALLEL));
    assert_false(remarks(data_parallel(8, 2), PARALLEL)); /* steps that show nothing */
    struct scene *scene = usual();
    scene_setting(scene, "ddp", "devices", NULL, 2); /* of something else */
    assert_false(remarks(scene, PARALLEL));
}

/* --- phases that are not known --- */

#define UNKNOWN "No phase is known for"

static struct scene *phases(unsigned steps, const double ms[SW_PHASE_COUNT])
{
    struct scene *scene = scene_new();
    scene_steps(scene, steps, ms);
    return scene;
}

static void steps_of_no_phase(void **state)
{
    (void)state;
    assert_true(remarks(phases(100, PHASES([SW_PHASE_OTHER] = 10)),
                        "No phase is known for 100 % of a step"));
    assert_true(remarks(phases(100, PHASES([SW_PHASE_OTHER] = 4, [SW_PHASE_LOSS] = 6)),
                        "No phase is known for 40 % of a step"));
}

/* Little that is unknown; code beside a forward, which the program has told apart
 * already; a forward that took no time. */
static void steps_whose_phases_are_known(void **state)
{
    (void)state;
    assert_false(
        remarks(phases(100, PHASES([SW_PHASE_OTHER] = 2, [SW_PHASE_LOSS] = 8)), UNKNOWN));
    assert_false(remarks(
        phases(100, PHASES([SW_PHASE_OTHER] = 4, [SW_PHASE_FORWARD] = 6)), UNKNOWN));
    assert_false(remarks(phases(8, PHASES([SW_PHASE_OTHER] = 10)), UNKNOWN));
    struct scene *scene = phases(100, PHASES([SW_PHASE_OTHER] = 10));
    (void)scene_section(scene, "forward", SW_PHASE_FORWARD);
    assert_false(remarks(scene, UNKNOWN));
}

/* --- GPUs --- */

#define UNSEEN "A GPU was at work, and nothing is known of it."

/* Steps that wait for results, as only those of torch on a device do. */
static struct scene *on_gpu(void)
{
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_SYNC] = 0.1));
    const uint32_t item = scene_text(scene, "Tensor.item");
    const uint32_t file = scene_text(scene, "/home/u/train.py");
    const uint64_t each = MS / 10;
    (void)scene_row(scene, SW_TABLE_WAIT, 0, KEY(item, file, 30, SW_WAIT_SYNC),
                    VALUE(100, 100 * each, 0, each, 0));
    return scene;
}

static void monitor(struct scene *scene, const char *gpu)
{
    (void)scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "process")),
                    VALUE(2, 1, 0));
    if (gpu) {
        tb_fact(scene->tb, "gpu", gpu);
    }
}

static void a_gpu_that_nobody_watched(void **state)
{
    (void)state;
    assert_true(remarks(on_gpu(), UNSEEN " The monitor did not run."));
    struct scene *scene = on_gpu();
    monitor(scene, "gpu is off in the configuration");
    assert_true(remarks(scene, UNSEEN " Not watched: gpu is off in the configuration."));
    scene = on_gpu();
    monitor(scene, NULL);
    assert_true(remarks(scene, UNSEEN " No GPU was watched."));
    scene = usual();
    tb_fact(scene->tb, "jax_backend", "gpu");
    assert_true(remarks(scene, UNSEEN));
}

/* No GPU at all; one that was watched; and JAX, which waits for its own threads on the
 * CPU. */
static void a_gpu_that_was_watched_or_is_not_there(void **state)
{
    (void)state;
    assert_false(remarks(usual(), UNSEEN));
    struct scene *scene = usual();
    monitor(scene, "gpu is off in the configuration");
    assert_false(remarks(scene, UNSEEN));
    scene = on_gpu();
    monitor(scene, "watched");
    (void)scene_row(scene, SW_TABLE_GPU, SW_ROW_GPU_VISIBLE,
                    KEY(0, scene_text(scene, "H200"), scene_text(scene, "GPU-1"), 0),
                    VALUE((uint64_t)141 << 30));
    assert_false(remarks(scene, UNSEEN));
    scene = on_gpu();
    tb_fact(scene->tb, "jax_backend", "cpu");
    assert_false(remarks(scene, UNSEEN));
}

/* --- steps that say little --- */

#define WARMING "All steps are warm-up"

/* The first of so many steps belong to the warm-up of a schedule. */
static struct scene *scheduled(unsigned steps, unsigned warmup)
{
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < steps; i++) {
        scene_step(scene, PHASES(COMPUTE), i < warmup ? SW_STEP_WARMUP : 0);
    }
    return scene;
}

static void a_schedule_of_nothing_but_warm_up(void **state)
{
    (void)state;
    struct scene *scene = scheduled(12, 12);
    scene_look(scene);
    assert_true(remarked(scene, WARMING));
    assert_false(remarked(scene, "Only 12 steps")); /* more of them would not help */
    assert_silent(scene);
    scene_free(scene);
}

static void a_schedule_with_steps_after_warm_up(void **state)
{
    (void)state;
    assert_false(remarks(scheduled(30, 0), WARMING));
    assert_false(remarks(scheduled(30, 10), WARMING));
    assert_false(remarks(scheduled(30, 29), WARMING));
    assert_false(remarks(scene_new(), WARMING)); /* no steps at all */
}

/* --- what recording took --- */

/* 60 steps of 10 ms with so many sections in each, of which one takes the recorder 10 us,
 * within a factor: a slow machine. */
static struct scene *sections(unsigned each, double factor)
{
    const double cost = 10000 * 256;
    struct scene *scene = scene_new();
    const uint32_t section = scene_section(scene, "layer", SW_PHASE_INHERIT);
    scene->tb->super.cost_section = scene->tb->super.cost_stats = (uint32_t)cost;
    scene->tb->super.cost_section_low = (uint32_t)(cost / factor);
    scene->tb->super.cost_section_high = (uint32_t)(cost * factor);
    for (unsigned i = 0; i < 60; i++) {
        const uint64_t begin = scene->at;
        scene_step(scene, PHASES(COMPUTE), 0);
        for (unsigned k = 0; k < each; k++) {
            call(scene->tb, scene->lane, section, begin + 20000 * (uint64_t)k, 10000);
        }
    }
    scene->tb->super.end_snapshot = tb_snapshot(scene->tb, scene->at);
    return scene;
}

static void sections_that_take_long_to_record(void **state)
{
    (void)state;
    assert_true(remarks(sections(200, 1.2), "% of the time: 12000 sections ended and "));
}

/* Few of them; and as many, of which a section may have taken a fifth: 2.4 % is not worth
 * a word. */
static void sections_that_take_little_or_may_not(void **state)
{
    (void)state;
    assert_false(remarks(sections(20, 1.2), "Recording took"));
    assert_false(remarks(sections(200, 5), "Recording took"));
}

/* --- clocks --- */

/* A process whose counter stood still for an hour while its machine slept, or did not:
 * 2500 ticks are a microsecond. */
static void process(struct fixture *fixture, unsigned number, bool jumps)
{
    struct tb *tb = tb_example();
    tb->super.pid += number;
    if (jumps) {
        tb->super.end_snapshot.mono_ns += 3600 * SECOND;
        tb->super.end_snapshot.real_ns += 3600 * SECOND;
    }
    write_trace(fixture, tb);
}

static void clocks_that_jump(void **state)
{
    (void)state;
    for (unsigned jumps = 0; jumps <= 2; jumps++) {
        struct fixture *fixture = fixture_new();
        process(fixture, 0, jumps > 0);
        process(fixture, 1, jumps > 1);
        const sw_summary *summary = summarise(fixture);
        assert_int_equal(has_note(summary, "The clock jumped 1 time, as when a machine"),
                         jumps == 1);
        assert_int_equal(has_note(summary, "The clock jumped 2 times, as when a machine"),
                         jumps == 2);
        /* Which of the files it was. */
        assert_int_equal(has_note(summary, "0.stepwatch: The clock jumped"), jumps > 0);
        assert_int_equal(has_note(summary, "1.stepwatch: The clock jumped"), jumps > 1);
        assert_int_equal(has_note(summary, "jumped"), jumps > 0);
        fixture_free(fixture);
    }
}

/* Times that are taken from the system's clock need no counter, and what one would have
 * missed is not missing in them. */
static void a_clock_that_is_no_counter(void **state)
{
    (void)state;
    for (unsigned counter = 0; counter < 2; counter++) {
        struct scene *scene = usual();
        scene->tb->ticks_per_us = 1000;
        scene->tb->super.clock_kind = counter ? SW_CLOCK_TSC : SW_CLOCK_MONOTONIC;
        scene->tb->super.end_snapshot.mono_ns += 3600 * SECOND;
        scene_look(scene);
        assert_int_equal(has_note(scene->fixture->summary, "jumped"), counter);
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_more_than_an_hour),
        cmocka_unit_test(a_run_of_less_or_without_steps),
        cmocka_unit_test(an_hour_by_the_supervisor),
        cmocka_unit_test(a_loader_that_steps_wait_for),
        cmocka_unit_test(a_loader_that_keeps_up),
        cmocka_unit_test(a_model_on_several_devices),
        cmocka_unit_test(a_model_on_no_device),
        cmocka_unit_test(steps_of_no_phase),
        cmocka_unit_test(steps_whose_phases_are_known),
        cmocka_unit_test(a_gpu_that_nobody_watched),
        cmocka_unit_test(a_gpu_that_was_watched_or_is_not_there),
        cmocka_unit_test(a_schedule_of_nothing_but_warm_up),
        cmocka_unit_test(a_schedule_with_steps_after_warm_up),
        cmocka_unit_test(sections_that_take_long_to_record),
        cmocka_unit_test(sections_that_take_little_or_may_not),
        cmocka_unit_test(clocks_that_jump),
        cmocka_unit_test(a_clock_that_is_no_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
