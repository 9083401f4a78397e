/* Rules on the machine and on ranks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5, [SW_PHASE_OPTIMIZER] = 1

static void too_many_threads(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->run_delay_ns = 3 * MS;
    scene->involuntary = 9;
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 32);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
    assert_non_null(finding);
    assert_int_equal(evidence(finding, "threads_wanted"), 32);
    assert_int_equal(evidence(finding, "cores_usable"), 4);
    assert_non_null(strstr(finding->advice[0], "set_num_threads(4)"));
    assert_true(finding->speedup > 1.3);
    assert_null(found(scene, SW_FINDING_CPU_STARVED));
    scene_free(scene);
}

/* A backward of many times its forward shows that threads wait for each other in it. */
static void threads_that_wait_for_each_other(void **state)
{
    (void)state;
    double speedup[2];
    for (unsigned waits = 0; waits < 2; waits++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = 6 * MS;
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = waits ? 0.5 : 3.5,
                   [SW_PHASE_BACKWARD] = waits ? 9.4 : 6.4, [SW_PHASE_OPTIMIZER] = 0.1));
        scene_setting(scene, "threads", "intraop", NULL, 16);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
        assert_non_null(finding);
        speedup[waits] = finding->speedup;
        scene_free(scene);
    }
    assert_true(speedup[1] > 1.4 * speedup[0] && speedup[1] < 4 * speedup[0]);
}

/* The more threads for a core, the slower the forward is already that tells what a step would take: 4 for a core, 16, or 64. */
static void threads_that_crowd(void **state)
{
    (void)state;
    static const double threads[] = {16, 64, 256};
    double speedup[3];
    for (unsigned i = 0; i < 3; i++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = 4 * MS;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 1.4, [SW_PHASE_BACKWARD] = 8.2,
                           [SW_PHASE_OPTIMIZER] = 0.3));
        scene_setting(scene, "threads", "intraop", NULL, threads[i]);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
        assert_non_null(finding);
        speedup[i] = finding->speedup;
        scene_free(scene);
    }
    /* 4.5 ms, had the backward taken twice as long as the forward. */
    assert_true(fabs(speedup[0] - 9.9 / (4.5 / 1.2)) < 0.1);
    assert_true(fabs(speedup[1] / speedup[0] - 2) < 0.1);
    assert_true(fabs(speedup[2] / speedup[1] - 2) < 0.1);
}

/* Workers have to wait for cores, too: they took 16 ms for a batch, two of them, and computed for 1 ms of it, or for all. */
static void workers_beside_too_many_threads(void **state)
{
    (void)state;
    double speedup[2], high[2];
    for (unsigned computed = 0; computed < 2; computed++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = 6 * MS;
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 0.1));
        scene_setting(scene, "threads", "intraop", NULL, 32);
        const uint32_t loader = scene_text(scene, "DataLoader(Photos)");
        const uint32_t photos = scene_text(scene, "Photos");
        const uint32_t fetch = scene_text(scene, "fetch");
        (void)scene_row(scene, SW_TABLE_LOADER, 0, KEY(loader, photos, 2, 8),
                        VALUE(0, 2, 800, 1, 0));
        for (uint32_t worker = 0; worker < 2; worker++) {
            (void)scene_row(
                scene, SW_TABLE_STAGE, 0, KEY(loader, worker, SW_STAGE_FETCH, fetch),
                VALUE(50, 50 * 16 * MS, 50 * (computed ? 16 : 1) * MS, 16 * MS, 16 * MS));
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
        assert_non_null(finding);
        speedup[computed] = finding->speedup;
        high[computed] = finding->high;
        scene_free(scene);
    }
    assert_true(speedup[0] > 2);
    assert_true(speedup[1] < 1.4 && high[1] < 0.5 * high[0]);
}

static void threads_that_fit(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->run_delay_ns = MS / 10;
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 4);
    scene_look(scene);
    assert_silent(scene);
    assert_true(
        sw_findings_checked(scene->findings, SW_FINDING_CPU_OVERSUBSCRIBED, NULL));
    scene_free(scene);

    scene = scene_new(); /* too many, but nobody waits: most of them sleep */
    scene->run_delay_ns = MS / 10;
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 32);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

static void others_have_the_cores(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->run_delay_ns = 7 * MS;
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 2);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_CPU_STARVED);
    assert_non_null(finding);
    assert_false(finding->predicted); /* no change of the program would help */
    scene_free(scene);

    scene = scene_new();
    scene->run_delay_ns = 3 * MS;
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 2);
    scene_look(scene);
    assert_silent(scene);
    assert_true(remarked(scene, "had no core"));
    scene_free(scene);
}

/* What the process used, looked at ten times in the steps. */
static void used_by(struct scene *scene, double cores, double training)
{
    (void)scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "process")),
                    VALUE(11, 1, 0));
    const uint32_t names[] = {scene_text(scene, "process.cpu_user"),
                              scene_text(scene, "process.cpu_system"),
                              scene_text(scene, "training.cpu")};
    const double amount[] = {cores, 0, training};
    for (unsigned k = 0; k < 3; k++) {
        (void)scene_row(scene, SW_TABLE_SERIES, 0,
                        KEY(names[k], scene_text(scene, "s"), SW_SERIES_TOTAL, 0),
                        VALUE(0));
    }
    for (unsigned i = 0; i < 10; i++) {
        const sw_record_look look = {.head = {.kind = SW_RECORD_LOOK,
                                              .units = sizeof look / SW_RECORD_UNIT,
                                              .ticks = START + 90 * i * MS + 5},
                                     .step = 9 * i,
                                     .edge = i ? 0 : SW_LOOK_FIRST,
                                     .sources = 1};
        tb_record(scene->tb, 0, &look);
        for (unsigned k = 0; k < 3; k++) {
            const sw_record_counter value = {
                .head = {.kind = SW_RECORD_MONITOR,
                         .units = sizeof value / SW_RECORD_UNIT,
                         .id = names[k],
                         .ticks = look.head.ticks},
                .value = 0.09 * i * amount[k]};
            tb_record(scene->tb, 0, &value);
        }
    }
}

static void used(struct scene *scene, double cores)
{
    used_by(scene, cores, cores);
}

/* Half of a step is logging, and the rest of it waits for a core: for threads of the logger's, for those that the framework computes
 * with, or for other programs. */
static void a_logger_with_threads_of_its_own(void **state)
{
    (void)state;
    static const struct {
        double used, training, threads;
        bool own;
    } cases[] = {{1.9, 0.6, 1, true}, {1.9, 0.6, 3, false}, {0.61, 0.6, 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = 4 * MS;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 2, [SW_PHASE_BACKWARD] = 3,
                           [SW_PHASE_LOGGING] = 5));
        scene_setting(scene, "threads", "intraop", NULL, cases[i].threads);
        used_by(scene, cases[i].used, cases[i].training);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOGGING);
        assert_non_null(finding);
        /* 5 of 10 ms go, or 7. */
        assert_true(cases[i].own ? finding->speedup > 3 : finding->speedup < 2.3);
        assert_true(finding->low < 1.8);
        assert_int_equal(!isnan(evidence(finding, "waiting_for_threads_ms")),
                         cases[i].own);
        assert_int_equal(remarked(scene, "other threads of the program"), cases[i].own);
        assert_int_equal(remarked(scene, "other processes were busy"), !cases[i].own);
        scene_free(scene);
    }
}

/* Threads that no framework speaks of: a thread that gets a tenth of a core beside others that get much more has many of them. */
static void threads_of_the_program(void **state)
{
    (void)state;
    static const struct {
        double waits_ms, used, training;
        bool told;
    } cases[] = {{9, 1.2, 0.1, true},
                 {9, 0.3, 0.1, false}, /* three, on four cores */
                 {9, 0.12, 0.1, false},
                 {1, 3.9, 0.9, false},
                 {7.5, 1.5, 0.25, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = (uint64_t)(cases[i].waits_ms * MS);
        scene_steps(scene, 100, PHASES(COMPUTE));
        used_by(scene, cases[i].used, cases[i].training);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
        assert_int_equal(finding != NULL, cases[i].told);
        if (finding) {
            const double threads = cases[i].used / (1 - cases[i].waits_ms / 10);
            assert_true(fabs(evidence(finding, "threads_wanted") - threads) < 1);
            assert_false(finding->predicted);
            assert_null(found(scene, SW_FINDING_CPU_STARVED));
        }
        scene_free(scene);
    }
}

/* Two threads on one core of four: the process says so, or never gets more than that one while it waits. */
static void threads_on_one_core(void **state)
{
    (void)state;
    static const struct {
        double said, used, threads;
        bool bound;
    } cases[] = {{1, 0, 2, true},    {2, 0, 2, false},   {1, 0, 1, false},
                 {0, 1.0, 2, true},  {0, 1.3, 2, false}, /* others have the cores */
                 {0, 1.0, 1, false}, {0, 0, 2, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = 4500000;
        scene->involuntary = 1;
        scene_steps(scene, 100, PHASES(COMPUTE));
        scene_setting(scene, "threads", "intraop", NULL, cases[i].threads);
        if (cases[i].said > 0) {
            scene_setting(scene, "threads", "cores", NULL, cases[i].said);
        }
        if (cases[i].used > 0) {
            used(scene, cases[i].used);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_CPU_OVERSUBSCRIBED);
        assert_int_equal(finding != NULL, cases[i].bound);
        if (finding) {
            assert_int_equal(evidence(finding, "cores_usable"), 1);
            assert_int_equal(evidence(finding, "cores_at_start"), 4);
            assert_non_null(strstr(finding->advice[0], "bound itself to 1 of 4"));
            assert_non_null(strstr(finding->advice[1], "set_num_threads(1)"));
            /* Half of the time it waits, and much of the other half it keeps a core for nothing. */
            assert_true(finding->low > 1.5 && finding->low < 2);
            assert_true(finding->speedup > 4 && finding->high < 60);
        } else {
            assert_true(remarked(scene, "had no core"));
        }
        scene_free(scene);
    }
}

static uint64_t bits(double value)
{
    uint64_t number;
    memcpy(&number, &value, sizeof number);
    return number;
}

/* A sum that grew by so much in ten seconds, as the monitor leaves it. */
static void grew(struct scene *scene, const char *name, double growth)
{
    scene_row(scene, SW_TABLE_SERIES, 0,
              KEY(scene_text(scene, name), scene_text(scene, "s"), SW_SERIES_TOTAL, 0),
              VALUE(2, bits(growth), 10000000000u, bits(growth / 10), bits(growth / 10)));
}

static struct scene *monitored(double waits_ms)
{
    struct scene *scene = scene_new();
    scene->run_delay_ns = (uint64_t)(waits_ms * MS);
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_setting(scene, "threads", "intraop", NULL, 2);
    scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "cpus"), 0, 0, 0),
              VALUE(2, 1, 0));
    grew(scene, "core.0.cpu", 10);
    grew(scene, "core.1.cpu", 10);
    grew(scene, "process.cpu_user", 4);
    grew(scene, "process.cpu_system", 1);
    grew(scene, "children.cpu", 0);
    return scene;
}

/* Waiting that alone would be a remark is explained by what the monitor saw. */
static void who_takes_the_cores(void **state)
{
    (void)state;
    struct scene *scene = monitored(3);
    grew(scene, "cgroup.periods", 100);
    grew(scene, "cgroup.periods_throttled", 60);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_CPU_STARVED);
    assert_non_null(finding);
    assert_true(fabs(evidence(finding, "throttled_share") - 0.6) < 1e-9);
    assert_non_null(strstr(finding->advice[0], "60 % of the limit's periods"));
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    scene_free(scene);

    scene = monitored(3);
    grew(scene, "system.steal", 6);
    scene_look(scene);
    finding = found(scene, SW_FINDING_CPU_STARVED);
    assert_non_null(finding);
    assert_true(fabs(evidence(finding, "steal_share") - 0.3) < 1e-9);
    assert_non_null(strstr(finding->advice[0], "virtual machine"));
    scene_free(scene);

    scene = monitored(7);
    grew(scene, "system.cpu", 19);
    scene_look(scene);
    finding = found(scene, SW_FINDING_CPU_STARVED);
    assert_non_null(finding);
    assert_true(fabs(evidence(finding, "cores_of_others") - 1.4) < 1e-9);
    assert_non_null(strstr(finding->advice[0], "use 1.4 cores"));
    scene_free(scene);

    /* One thread that gets a fifth of a core is not too many threads. */
    scene = scene_new();
    scene->run_delay_ns = 8 * MS;
    tb_fact(scene->tb, "cpus_usable", "0.20");
    scene_steps(scene, 100, PHASES(COMPUTE));
    grew(scene, "cgroup.periods", 100);
    grew(scene, "cgroup.periods_throttled", 100);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_CPU_OVERSUBSCRIBED));
    assert_non_null(found(scene, SW_FINDING_CPU_STARVED));
    scene_free(scene);

    scene = monitored(0.1); /* stopped, but the steps do not wait */
    grew(scene, "cgroup.periods", 100);
    grew(scene, "cgroup.periods_throttled", 60);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

static void stood_at(struct scene *scene, const char *name, double level)
{
    scene_row(scene, SW_TABLE_SERIES, 0,
              KEY(scene_text(scene, name), scene_text(scene, "1"), SW_SERIES_GAUGE, 0),
              VALUE(2, bits(2 * level), bits(level), bits(level), bits(level)));
}

static void descriptors_that_run_out(void **state)
{
    (void)state;
    struct scene *scene = monitored(0.1);
    stood_at(scene, "process.descriptors", 900);
    stood_at(scene, "process.descriptors_limit", 1024);
    scene_look(scene);
    assert_silent(scene);
    assert_true(remarked(scene, "900 of 1024 file descriptors"));
    scene_free(scene);

    scene = monitored(0.1);
    stood_at(scene, "process.descriptors", 700);
    stood_at(scene, "process.descriptors_limit", 1024);
    scene_look(scene);
    assert_false(remarked(scene, "file descriptors"));
    scene_free(scene);
}

/* A rank with its own phases. */
static void rank(struct scene *scene, const char *number, const double *ms)
{
    if (!scene->tb) {
        scene_process(scene);
    }
    tb_fact(scene->tb, "rank", number);
    tb_fact(scene->tb, "world_size", "3");
    scene_steps(scene, 60, ms);
    scene_close(scene);
}

static void one_rank_makes_the_others_wait(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    rank(scene, "0",
         PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_COMMUNICATION] = 6));
    rank(scene, "1",
         PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 6, [SW_PHASE_COMMUNICATION] = 1));
    rank(scene, "2",
         PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_COMMUNICATION] = 6));
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_STRAGGLER);
    assert_non_null(finding);
    assert_int_equal(evidence(finding, "rank"), 1);
    assert_string_equal(finding->name, "rank 1");
    assert_non_null(strstr(finding->title, "data_wait"));
    /* 5 ms more than the others; dealt out evenly each of the three has a third of it. */
    assert_true(fabs(finding->speedup - 17 / (17 - 5 * 2.0 / 3)) < 0.03);
    assert_null(found(scene, SW_FINDING_COMMUNICATION)); /* the same time */
    scene_free(scene);
}

/* … but most of a long exchange is the exchange: without the waiting on a rank that waits, all of it on the one that is waited for. */
static void exchanges_take_longer_than_the_waiting(void **state)
{
    (void)state;
    for (unsigned slow = 0; slow < 3; slow++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 3; i++) {
            const char number[] = {(char)('0' + i), 0};
            const double late = i == slow ? 5 : 0;
            rank(scene, number,
                 PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 1 + late,
                        [SW_PHASE_COMMUNICATION] = 24 - late));
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_COMMUNICATION);
        assert_non_null(finding);
        assert_true(finding->also & (uint64_t)1 << SW_FINDING_STRAGGLER);
        assert_true(fabs(finding->share - 19.0 / 35) < 0.03);
        scene_free(scene);
    }
}

/* Longer by the clock, not by what it computes: it had no core. */
static void a_rank_without_a_core(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    rank(scene, "0", PHASES([SW_PHASE_FORWARD] = 5, [SW_PHASE_BACKWARD] = 9));
    scene->run_delay_ns = 5 * MS;
    rank(scene, "1", PHASES([SW_PHASE_FORWARD] = 10, [SW_PHASE_BACKWARD] = 4));
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_STRAGGLER));
    scene_free(scene);
}

/* DDP waits in the backward: a rank whose backward is longer has been faster before. */
static void a_long_backward_is_waiting(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    rank(scene, "0", PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 9));
    rank(scene, "1", PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 6));
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

static void ranks_that_are_alike(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 3; i++) {
        const char number[] = {(char)('0' + i), 0};
        rank(scene, number,
             PHASES(COMPUTE, [SW_PHASE_DATA_WAIT] = 0.1, [SW_PHASE_COMMUNICATION] = 0.5));
    }
    scene_look(scene);
    assert_silent(scene);
    assert_true(sw_findings_checked(scene->findings, SW_FINDING_STRAGGLER, NULL));
    scene_free(scene);
}

static void collectives_that_take_long(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 3; i++) {
        const char number[] = {(char)('0' + i), 0};
        rank(scene, number, PHASES(COMPUTE, [SW_PHASE_COMMUNICATION] = 5));
    }
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_COMMUNICATION);
    assert_non_null(finding);
    assert_true(fabs(finding->share - 1.0 / 3) < 0.02);
    assert_true(finding->speedup > 1.2);
    scene_free(scene);
}

/* A function that sends one tensor after the other has work of its own around the calls, which goes with them. */
static void collectives_one_by_one(void **state)
{
    (void)state;
    double speedup[2];
    for (unsigned around = 0; around < 2; around++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 2; i++) {
            const char number[] = {(char)('0' + i), 0};
            if (!scene->tb) {
                scene_process(scene);
            }
            tb_fact(scene->tb, "rank", number);
            tb_fact(scene->tb, "world_size", "2");
            const uint32_t section =
                scene_section(scene, "all_reduce", SW_PHASE_COMMUNICATION);
            for (unsigned k = 0; k < 60 * 10; k++) {
                call(scene->tb, scene->lane, section, START + 2500000 * k, MS);
            }
            scene_steps(
                scene, 60,
                PHASES(COMPUTE, [SW_PHASE_COMMUNICATION] = 10, [SW_PHASE_OTHER] = 5));
            usual_samples(scene);
            scene_samples(scene, SW_PHASE_COMMUNICATION,
                          FRAMES(TRAIN(27), {"average", "/home/u/average.py", 3, 5},
                                 {"all_reduce", "/v/site-packages/torch/x.py", 1, 2}),
                          1000, 1000);
            const char *name = around ? "average" : "measure";
            scene_samples(scene, SW_PHASE_OTHER,
                          FRAMES(TRAIN(27), {name, "/home/u/average.py", 3, 6}), 500,
                          490);
            scene_close(scene);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_COMMUNICATION);
        assert_non_null(finding);
        assert_string_equal(finding->name, "average");
        assert_true(fabs(evidence(finding, "around_collectives_ms") - (around ? 5 : 0)) <
                    0.3);
        speedup[around] = finding->speedup;
        scene_free(scene);
    }
    assert_true(speedup[1] > 1.3 * speedup[0]);
}

/* Gradients of four batches are added up. Each backward exchanges them, or that before the update alone does; without DDP's own
 * figures nothing is known. */
static void exchanges_of_added_gradients(void **state)
{
    (void)state;
    static const struct {
        double others;    /* backward of the batches without an update, ms */
        unsigned adds;    /* batches an update */
        double exchanges; /* as DDP counts them, the first ten; 0: it does not say */
        bool measured, often;
    } cases[] = {{12, 4, 0, true, true},
                 {6, 4, 0, true, false},
                 {12, 4, 0, false, false},
                 /* Too few updates to compare their steps with others. */
                 {12, 20, 10, true, true},
                 {12, 20, 4, true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        for (unsigned k = 0; k < 2; k++) {
            if (!scene->tb) {
                scene_process(scene);
            }
            tb_fact(scene->tb, "rank", k ? "1" : "0");
            tb_fact(scene->tb, "world_size", "2");
            for (unsigned step = 0; step < 80; step++) {
                const bool update = step % cases[i].adds == cases[i].adds - 1;
                scene_step(scene,
                           PHASES([SW_PHASE_FORWARD] = 4,
                                  [SW_PHASE_BACKWARD] = update ? 12 : cases[i].others,
                                  [SW_PHASE_OPTIMIZER] = update ? 1 : 0),
                           0);
            }
            scene->lane->file->updates = 80 / cases[i].adds;
            if (cases[i].exchanges > 0) {
                scene_setting(scene, "ddp", "iteration", NULL, cases[i].exchanges);
            }
            if (cases[i].measured) {
                scene_setting(scene, "ddp", "avg_backward_comm_time", NULL, 8e6);
                scene_setting(scene, "ddp", "avg_backward_compute_comm_overlap_time",
                              NULL, 2e6);
            }
            scene_close(scene);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_COMMUNICATION);
        assert_int_equal(finding != NULL, cases[i].often);
        if (finding) {
            assert_int_equal(evidence(finding, "backwards_per_update"), cases[i].adds);
            assert_non_null(strstr(finding->advice[0], "no_sync()"));
            /* Three of four exchanges or more, of 6 to 8 ms in 16. */
            assert_true(finding->speedup > 1.38 && finding->speedup < 1.9);
        }
        scene_free(scene);
    }
}

/* Where a step is an update of eight backward passes, only what DDP counts tells whether each of them exchanges. */
static void exchanges_that_ddp_counts(void **state)
{
    (void)state;
    static const struct {
        double count; /* of 70 updates: the last of a hundred, or the first ten */
        bool often;
    } cases[] = {{500, true}, {10, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        for (unsigned k = 0; k < 2; k++) {
            if (!scene->tb) {
                scene_process(scene);
            }
            tb_fact(scene->tb, "rank", k ? "1" : "0");
            tb_fact(scene->tb, "world_size", "2");
            const uint32_t backward = scene_section(scene, "backward", SW_PHASE_BACKWARD);
            for (unsigned step = 0; step < 70; step++) {
                for (unsigned pass = 0; pass < 8; pass++) {
                    call(scene->tb, scene->lane, backward, scene->at + 12 * pass * MS,
                         12 * MS);
                }
                scene_step(scene,
                           PHASES([SW_PHASE_FORWARD] = 40, [SW_PHASE_BACKWARD] = 100,
                                  [SW_PHASE_OPTIMIZER] = 2),
                           0);
            }
            scene->lane->file->updates = 70;
            scene_setting(scene, "ddp", "iteration", NULL, cases[i].count);
            scene_setting(scene, "ddp", "avg_backward_comm_time", NULL, 6e6);
            scene_setting(scene, "ddp", "avg_backward_compute_comm_overlap_time", NULL,
                          1e6);
            scene_close(scene);
        }
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_COMMUNICATION) != NULL, cases[i].often);
        scene_free(scene);
    }
}

/* DDP has measured exchanges that are longer than a backward takes: ranks waited for each other at first. */
static void exchanges_last_no_longer_than_the_backward(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned k = 0; k < 2; k++) {
        if (!scene->tb) {
            scene_process(scene);
        }
        tb_fact(scene->tb, "rank", k ? "1" : "0");
        tb_fact(scene->tb, "world_size", "2");
        for (unsigned step = 0; step < 80; step++) {
            scene_step(scene,
                       PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 12,
                              [SW_PHASE_OPTIMIZER] = step % 20 == 19 ? 1 : 0),
                       0);
        }
        scene->lane->file->updates = 4;
        scene_setting(scene, "ddp", "iteration", NULL, 10);
        scene_setting(scene, "ddp", "avg_backward_comm_time", NULL, 17e6);
        scene_setting(scene, "ddp", "avg_backward_compute_comm_overlap_time", NULL, 3e6);
        scene_close(scene);
    }
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_COMMUNICATION);
    assert_non_null(finding);
    /* 6 to 8 ms of 16. */
    assert_true(finding->speedup > 1.5 && finding->speedup < 1.9);
    assert_true(finding->high < 3);
    scene_free(scene);
}

static void what_was_not_watched_is_not_checked(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_look(scene);
    static const enum sw_finding_kind kinds[] = {
        SW_FINDING_MEMORY_GROWTH, SW_FINDING_MEMORY_PRESSURE, SW_FINDING_GPU_THROTTLE,
        SW_FINDING_AMP,           SW_FINDING_STRAGGLER,       SW_FINDING_COMMUNICATION,
        SW_FINDING_TRANSFER,      SW_FINDING_PYTHON_OVERHEAD, SW_FINDING_SLOW_MODULE};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *why = NULL;
        assert_false(sw_findings_checked(scene->findings, kinds[i], &why));
        assert_non_null(why);
    }
    assert_true(sw_findings_checked(scene->findings, SW_FINDING_VALIDATION, NULL));
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_many_threads),
        cmocka_unit_test(threads_that_wait_for_each_other),
        cmocka_unit_test(threads_that_crowd),
        cmocka_unit_test(workers_beside_too_many_threads),
        cmocka_unit_test(threads_that_fit),
        cmocka_unit_test(others_have_the_cores),
        cmocka_unit_test(a_logger_with_threads_of_its_own),
        cmocka_unit_test(threads_on_one_core),
        cmocka_unit_test(threads_of_the_program),
        cmocka_unit_test(who_takes_the_cores),
        cmocka_unit_test(descriptors_that_run_out),
        cmocka_unit_test(one_rank_makes_the_others_wait),
        cmocka_unit_test(exchanges_take_longer_than_the_waiting),
        cmocka_unit_test(a_rank_without_a_core),
        cmocka_unit_test(a_long_backward_is_waiting),
        cmocka_unit_test(ranks_that_are_alike),
        cmocka_unit_test(collectives_that_take_long),
        cmocka_unit_test(collectives_one_by_one),
        cmocka_unit_test(exchanges_of_added_gradients),
        cmocka_unit_test(exchanges_that_ddp_counts),
        cmocka_unit_test(exchanges_last_no_longer_than_the_backward),
        cmocka_unit_test(what_was_not_watched_is_not_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
