/* Rules on what the host does besides computing: Python code, and work on batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5

static void python_code_in_the_step(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(27), {"count_pairs", "/home/u/pairs.py", 3, 7}), 550, 20);
    scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(28), TORCH("f")), 50, 50);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
    assert_non_null(finding);
    assert_string_equal(finding->file, "/home/u/pairs.py");
    assert_string_equal(finding->name, "count_pairs");
    assert_int_equal(finding->line, 7);
    assert_string_equal(finding->id, "python_overhead:pairs.py:count_pairs");
    /* 5.5 of 15 ms, of which nearly all goes. */
    assert_true(fabs(finding->share - 5.5 / 15) < 0.02);
    assert_true(finding->low < 15 / 9.5 && finding->high > 15 / 9.5);
    assert_true(finding->speedup > 1.5 && finding->speedup < 1.7);
    assert_non_null(strstr(finding->advice[0], "pairs.py"));
    scene_free(scene);
}

/* A gain that is small, and may be none, is a remark; the same of which more is seen is not. */
static void little_python_code(void **state)
{
    (void)state;
    for (unsigned much = 0; much < 2; much++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = much ? 3 : 1.1));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 80, 80);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 100, 100);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(27), {"count_pairs", "/home/u/pairs.py", 3, 7}),
                      much ? 60 : 21, 1);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_non_null(finding);
        assert_true(much || (finding->speedup > 1.1 && finding->low <= 1));
        assert_int_equal(finding->severity > SW_SEVERITY_LOW, much);
        scene_free(scene);
    }
}

/* The same time in one step alone is no part of every step: it was done once. */
static void python_code_in_one_step(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 100; i++) {
        scene_step(scene, PHASES(COMPUTE, [SW_PHASE_OTHER] = i == 40 ? 550 : 0.5), 0);
    }
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(27), {"count_pairs", "/home/u/pairs.py", 3, 7}), 550, 20);
    scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(28), TORCH("f")), 50, 50);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_PYTHON_OVERHEAD));
    assert_null(found(scene, SW_FINDING_LOADER_MAIN_PROCESS));
    scene_free(scene);
}

/* Operators on arrays are no calls, and native all the same: a few samples between them show no Python, beside a call they do. */
static void operators_on_arrays(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "def forward(self, x):\n    self.y = x @ self.w\n",
        "def forward(self, x):\n    self.y = dot(x, w)\n"};
    for (unsigned calls = 0; calls < 2; calls++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, texts[calls]);
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        /* The line that calls it, in a loop of the step's, is in no file that can be read. */
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(27), {"passes", "/home/u/layers.py", 3, 7},
                             {"Layer.forward", path, 1, 2}),
                      600, 550);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, calls);
        scene_free(scene);
    }
}

/* What a loop calls goes with it: the title says where the gain comes from. */
static void python_code_and_what_it_calls(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(27), {"batch", "/home/u/batch.py", 3, 7}), 300, 20);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(27), {"batch", "/home/u/batch.py", 3, 7},
                         {"sort", "/v/lib/python3.11/site-packages/numpy/core.py", 1, 2}),
                  300, 300);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
    assert_non_null(finding);
    assert_string_equal(finding->title, "20 % of a step is Python code in batch "
                                        "(batch.py:7), 20 % more is what it calls");
    assert_true(fabs(evidence(finding, "called_ms") - 3) < 0.1);
    assert_true(finding->speedup > 1.4);
    scene_free(scene);
}

/* The standard library is at the charge of who calls it, a package is not. */
static void whose_code_it_is(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        bool theirs;
    } cases[] = {{"/usr/lib/python3.11/json/decoder.py", true},
                 {"/v/lib/python3.11/site-packages/numpy/core.py", false},
                 {"/usr/lib/python3/dist-packages/yaml.py", false},
                 {"<frozen importlib>", true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(27), {"parse", "/home/u/parse.py", 3, 7},
                             {"decode", cases[i].file, 300, 340}),
                      600, 20);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_int_equal(finding != NULL, cases[i].theirs);
        if (finding) {
            assert_string_equal(finding->name, "parse");
        }
        scene_free(scene);
    }
}

/* 20 samples in all, a share that may be anything. */
static void few_samples_show_nothing(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20)), 12, 12);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(27), {"count_pairs", "/home/u/pairs.py", 3, 7}), 8, 0);
    scene_look(scene);
    assert_silent(scene);
    assert_false(sw_findings_checked(scene->findings, SW_FINDING_PYTHON_OVERHEAD, NULL));
    scene_free(scene);
}

/* One long native call on a line of the user's is no interpreter time. */
static void native_work_is_not_python(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(22), {"penalty", "/home/u/pairs.py", 3, 7}), 600, 600);
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* A metric after the update whose own lines are sometimes seen between calls: it frees what it replaces. */
static const char METRIC[] = "def train(batches):\n"
                             "    for batch in batches:\n"
                             "        loss = model(batch)\n"
                             "        loss.backward()\n"
                             "        metric(loss)\n"
                             "        for row in batch:\n"
                             "            metric(row)\n"
                             "        rows = map(metric, batch)\n"
                             "\n"
                             "def metric(values):\n"
                             "    state.all = torch.cat([state.all, values])\n"
                             "    for name in state.arrays:\n"
                             "        state.arrays[name] += values * values\n"
                             "        count = count + 1\n";
#define OWN(function, first, at)                                                         \
    {                                                                                    \
        function, path, first, at                                                        \
    }

static struct scene *with_metric(const char **path)
{
    struct scene *scene = scene_new();
    *path = scene_source(scene, METRIC);
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    return scene;
}

static void model_samples(struct scene *scene, const char *path)
{
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(OWN("train", 1, 3), TORCH("call")), 400,
                  390);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(OWN("train", 1, 4), TORCH("b")), 500,
                  500);
}

static void what_a_step_does_once_is_not_python(void **state)
{
    (void)state;
    static const struct {
        unsigned called_at;
        bool python;
    } cases[] = {{5, false}, {7, true}, {8, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *path;
        struct scene *scene = with_metric(&path);
        model_samples(scene, path);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, cases[i].called_at), OWN("metric", 10, 11)),
                      600, 550);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_int_equal(finding != NULL, cases[i].python);
        if (finding) { /* It has no loop of its own. */
            assert_non_null(strstr(finding->advice[0], "over and over"));
        }
        assert_int_equal(found(scene, SW_FINDING_LOGGING) != NULL, !cases[i].python);
        scene_free(scene);
    }
}

/* Operators that end while they are looked at are no Python; lines of nothing else are. */
static void a_loop_over_few_large_arrays(void **state)
{
    (void)state;
    for (unsigned plain = 0; plain < 2; plain++) {
        const char *path;
        struct scene *scene = with_metric(&path);
        model_samples(scene, path);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 5), OWN("metric", 10, 13)), 560, 500);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 5), OWN("metric", 10, plain ? 14 : 13)), 40,
                      plain ? 0 : 40);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, plain);
        scene_free(scene);
    }
}

/* What many functions have of it is in every program. */
static void small_functions_do_not_add_up(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 1.2));
    usual_samples(scene);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(27), {names[i], "/home/u/x.py", 3, 7}), 20, 2);
    }
    scene_look(scene);
    assert_silent(scene);
    scene_free(scene);
}

/* A simulation that takes turns with the model waits for it each time; beside another loop it could be done at once. */
static void a_rollout(void **state)
{
    (void)state;
    for (unsigned turns = 0; turns < 2; turns++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, "def train(env):\n"
                                               "    for _ in range(100):\n"
                                               "        collect(env)\n"
                                               "        net(x).backward()\n"
                                               "def collect(env):\n"
                                               "    for _ in range(32):\n"
                                               "        action = net(state)\n"
                                               "        state = env.step(action)\n"
                                               "    for _ in range(32):\n"
                                               "        env.step(action)\n"
                                               "class Env:\n"
                                               "    def step(self, action):\n"
                                               "        return self.state + action\n");
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(OWN("train", 1, 3), OWN("collect", 5, 7), TORCH("call"),
                             {"Net.forward", "/home/u/net.py", 3, 5}, TORCH("linear")),
                      400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(OWN("train", 1, 4), TORCH("b")),
                      500, 500);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 3), OWN("collect", 5, turns ? 8 : 10),
                             OWN("Env.step", 12, 13)),
                      600, 250);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, !turns);
        scene_free(scene);
    }
}

/* The same where nobody knows what is the model: a loop that is given nothing but what it left goes on, one that picks does not. */
static void a_rollout_without_a_model(void **state)
{
    (void)state;
    for (unsigned picks = 0; picks < 2; picks++) {
        struct scene *scene = scene_new();
        char text[300];
        snprintf(text, sizeof text,
                 "def train(env, rows):\n"
                 "    for _ in range(100):\n"
                 "        for t in range(32):\n"
                 "            action = choose(state)\n"
                 "            state = env.step(%s)\n"
                 "class Env:\n"
                 "    def step(self, action):\n"
                 "        return self.state + action\n",
                 picks ? "action, rows[t]" : "action");
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_OTHER] = 10));
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 4), {"f", "/v/site-packages/x.py", 3, 5}),
                      400, 400);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 5), OWN("Env.step", 7, 8)), 600, 250);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, picks);
        scene_free(scene);
    }
}

/* What takes turns with the model and is given what it gave cannot be done ahead; samples that the model is given can. */
static void work_between_calls_of_the_model(void **state)
{
    (void)state;
    for (unsigned follows = 0; follows < 2; follows++) {
        struct scene *scene = scene_new();
        const char *path =
            scene_source(scene, "def train(env):\n"
                                "    for _ in range(100):\n"
                                "        collect(env)\n"
                                "        net(x).backward()\n"
                                "def collect(env):\n"
                                "    for view in views:\n"
                                "        crop = env.step(view)\n"
                                "        policy, value = net(crop)\n"
                                "        action = policy.sample()\n"
                                "        state, reward = env.step(action)\n"
                                "class Env:\n"
                                "    def step(self, action):\n"
                                "        s = self.state + action\n"
                                "        return s\n");
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(OWN("train", 1, 3), OWN("collect", 5, 8), TORCH("call"),
                             {"Net.forward", "/home/u/net.py", 3, 5}, TORCH("linear")),
                      400, 400);
        /* One look came when the phase had not changed yet: it does not say where the model is called. */
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(OWN("train", 1, 3), OWN("collect", 5, follows ? 10 : 7),
                             OWN("Env.step", 12, 14)),
                      1, 1);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(OWN("train", 1, 4), TORCH("b")),
                      500, 500);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 3), OWN("collect", 5, follows ? 10 : 7),
                             OWN("Env.step", 12, 13)),
                      600, 600);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL, !follows);
        scene_free(scene);
    }
}

/* JAX computes in threads of its own while the program goes on: half a core here. The step cannot get shorter than that. */
static void what_is_computed_beside_stays(void **state)
{
    (void)state;
    for (unsigned jax = 0; jax < 2; jax++) {
        struct scene *scene = scene_new();
        double cpu = 0;
        if (jax) {
            tb_fact(scene->tb, "jax_backend", "cpu");
        }
        scene_steps(scene, 200, PHASES([SW_PHASE_OTHER] = 10));
        (void)scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "process")),
                        VALUE(3, 1, 0));
        const uint32_t used = scene_text(scene, "process.cpu_user");
        (void)scene_row(scene, SW_TABLE_SERIES, 0,
                        KEY(used, scene_text(scene, "s"), SW_SERIES_TOTAL, 0), VALUE(0));
        for (unsigned i = 0; i < 4; i++, cpu += 0.75) {
            const sw_record_look look = {.head = {.kind = SW_RECORD_LOOK,
                                                  .units = sizeof look / SW_RECORD_UNIT,
                                                  .ticks = START + 500 * i * MS + 5},
                                         .step = 50 * i,
                                         .edge = i ? 0 : SW_LOOK_FIRST,
                                         .sources = 1};
            const sw_record_counter value = {
                .head = {.kind = SW_RECORD_MONITOR,
                         .units = sizeof value / SW_RECORD_UNIT,
                         .id = used,
                         .ticks = look.head.ticks},
                .value = cpu};
            tb_record(scene->tb, 0, &look);
            tb_record(scene->tb, 0, &value);
        }
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(27), {"corrupt", "/home/u/x.py", 3, 7}), 950, 100);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(28), TORCH("f")), 50, 50);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_non_null(finding);
        if (jax) {
            assert_true(fabs(evidence(finding, "computed_beside_ms") - 5) < 0.3);
            assert_true(finding->speedup > 1.9 && finding->speedup < 2.3);
            assert_true(finding->high < 20);
        } else {
            /* Something has to take the place of so much. */
            assert_true(finding->speedup > 7 && finding->speedup < 10);
            assert_true(finding->high > 20);
        }
        scene_free(scene);
    }
}

/* Between the loader and the model. */
static void work_on_batches(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(17), {"augment", "/home/u/augment.py", 3, 7},
                         {"blur", "/home/u/augment.py", 30, 37}),
                  590, 590);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_LOADER_MAIN_PROCESS);
    assert_non_null(finding);
    assert_string_equal(finding->name, "augment"); /* what the loop calls */
    assert_true(fabs(finding->share - 0.4) < 0.02);
    assert_non_null(strstr(finding->advice[0], "num_workers"));
    assert_true(finding->high > 1.5);
    scene_free(scene);
}

/* Steps of JAX that another function of the user's takes most of; `waits_ms`: now and then it is waited for what was computed
 * meanwhile. */
static struct scene *beside_jax_on(const char *cores, double waits_ms,
                                   struct scene_frame function, unsigned native)
{
    struct scene *scene = scene_new();
    tb_fact(scene->tb, "cpus_usable", cores);
    tb_fact(scene->tb, "jax_backend", "cpu");
    for (unsigned i = 0; i < 100; i++) {
        scene_step(scene,
                   PHASES([SW_PHASE_FORWARD] = 1, [SW_PHASE_OTHER] = 6,
                          [SW_PHASE_SYNC] = i % 25 == 24 ? waits_ms : 0),
                   0);
    }
    scene_samples(scene, SW_PHASE_FORWARD,
                  FRAMES(TRAIN(20), {"step", "/v/site-packages/jax/_src/pjit.py", 1, 2}),
                  100, 100);
    scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(17), function), 590, native);
    scene_look(scene);
    return scene;
}

static struct scene *beside_jax(double waits_ms, struct scene_frame function,
                                unsigned native)
{
    return beside_jax_on("4.00", waits_ms, function, native);
}

/* In JAX the step before is computed while a batch is made, and waited for now and then: it takes 8 ms, or hardly any. */
static void work_on_batches_beside_jax(void **state)
{
    (void)state;
    const struct scene_frame cut = {"cut", "/home/u/patches.py", 3, 7};
    for (unsigned hidden = 0; hidden < 2; hidden++) {
        struct scene *scene = beside_jax(hidden ? 25 : 0, cut, 590);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL, !hidden);
        scene_free(scene);
    }
}

/* On two cores one thread makes the next batch beside the step: the longer of both stays, and all cores that compute are slower. */
static void work_on_batches_beside_jax_on_two_cores(void **state)
{
    (void)state;
    const struct scene_frame cut = {"cut", "/home/u/patches.py", 3, 7};
    for (unsigned two = 0; two < 2; two++) {
        struct scene *scene = beside_jax_on(two ? "2.00" : "4.00", 0, cut, 590);
        const sw_finding *finding = found(scene, SW_FINDING_LOADER_MAIN_PROCESS);
        assert_non_null(finding);
        assert_int_equal(finding->severity == SW_SEVERITY_LOW, two);
        assert_int_equal(strstr(finding->advice[0], "thread or a process") != NULL, two);
        scene_free(scene);
    }
}

/* The same of Python code: once JAX computes as long as a step takes, nothing is gained. */
static void python_beside_jax(void **state)
{
    (void)state;
    const struct scene_frame count = {"count", "/home/u/words.py", 3, 7};
    for (unsigned hidden = 0; hidden < 2; hidden++) {
        struct scene *scene = beside_jax(hidden ? 100 : 0, count, 100);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, !hidden);
        scene_free(scene);
    }
}

/* A tensor made of what a loop gathered is part of the loop, though most of the time is in one native call. Without a loop it is
 * not, nor is a call that makes no tensor of lists. */
static void a_tensor_of_what_a_loop_gathered(void **state)
{
    (void)state;
    static const char text[] = "def audible(tokens):\n"
                               "    masks = []\n"
                               "    for row in tokens.tolist():\n"
                               "        for token in row:\n"
                               "            masks.append(token == 1)\n"
                               "    found = torch.tensor(masks)\n"
                               "    return spread(found)\n";
    static const struct {
        unsigned line, looped;
        bool python;
    } cases[] = {{6, 120, true}, {6, 0, false}, {7, 120, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        const unsigned looped = cases[i].looped;
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 10, [SW_PHASE_BACKWARD] = 5));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), OWN("audible", 1, cases[i].line)), 480 - looped,
                      480 - looped);
        if (looped) {
            scene_samples(scene, SW_PHASE_FORWARD,
                          FRAMES(TRAIN(20), OWN("audible", 1, 5)), looped, looped / 4);
        }
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 120,
                      120);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 300, 300);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_int_equal(finding != NULL, cases[i].python);
        if (finding) {
            assert_null(found(scene, SW_FINDING_REDUNDANT_WORK));
            assert_int_equal(finding->line, 5);
            assert_true(fabs(finding->share - 8.0 / 15) < 0.02);
            assert_true(finding->also >> SW_FINDING_REDUNDANT_WORK & 1);
        }
        scene_free(scene);
    }
}

/* Where Python itself is what takes the time, that is what is told. */
static void python_on_batches(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
    usual_samples(scene);
    scene_samples(scene, SW_PHASE_OTHER,
                  FRAMES(TRAIN(17), {"tokenise", "/home/u/text.py", 3, 7}), 590, 100);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_PYTHON_OVERHEAD);
    assert_non_null(finding);
    assert_true(finding->also >> SW_FINDING_LOADER_MAIN_PROCESS & 1);
    assert_null(found(scene, SW_FINDING_LOADER_MAIN_PROCESS));
    scene_free(scene);
}

/* A function that works on one sample after the other with native calls is work to move; with Python between its calls, or a loop
 * of its own, it is Python. */
static void native_work_on_samples(void **state)
{
    (void)state;
    static const char text[] = "def augment(picture):\n"
                               "    picture = picture / 255\n"
                               "    return picture ** 0.7\n"
                               "\n"
                               "def flips(picture):\n"
                               "    for row in picture:\n"
                               "        row[:] = row[::-1]\n";
    static const struct {
        const char *name;
        unsigned first, line, native;
        bool python;
    } cases[] = {{"augment", 1, 3, 520, false},
                 {"augment", 1, 3, 350, true},
                 {"flips", 5, 7, 500, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples(
            scene, SW_PHASE_OTHER,
            FRAMES(TRAIN(17), OWN(cases[i].name, cases[i].first, cases[i].line)), 590,
            cases[i].native);
        scene_look(scene);
        const sw_finding *work = found(scene, SW_FINDING_LOADER_MAIN_PROCESS);
        const sw_finding *python = found(scene, SW_FINDING_PYTHON_OVERHEAD);
        assert_int_equal(python != NULL, cases[i].python);
        assert_int_equal(work != NULL, !cases[i].python);
        if (work) {
            assert_string_equal(work->name, "augment");
            assert_true(work->also >> SW_FINDING_PYTHON_OVERHEAD & 1);
        }
        scene_free(scene);
    }
}

/* What comes before the model: work, or waiting for something. */
static void waiting_before_the_model(void **state)
{
    (void)state;
    for (unsigned waits = 0; waits < 2; waits++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        usual_samples(scene);
        scene_samples_of(scene, SW_PHASE_OTHER,
                         FRAMES(TRAIN(17), {"Store.get", "/home/u/store.py", 3, 7}),
                         waits ? 60 : 540, waits ? 540 : 60, 600);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOADER_IO);
        assert_int_equal(finding != NULL, waits);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL, !waits);
        if (finding) {
            assert_string_equal(finding->name, "Store.get");
            assert_true(fabs(finding->share - 0.4) < 0.03);
        }
        scene_free(scene);
    }
}

/* What is waited for one after the other is asked for at once; what threads ask for already can only come earlier. */
static void waiting_for_many(void **state)
{
    (void)state;
    for (unsigned pooled = 0; pooled < 2; pooled++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 0.4, [SW_PHASE_BACKWARD] = 0.5,
                           [SW_PHASE_OTHER] = 9.1));
        usual_samples(scene);
        const char *inner = pooled ? "/usr/lib/python3.12/concurrent/futures/_base.py"
                                   : "/usr/lib/python3.12/socket.py";
        scene_samples_of(scene, SW_PHASE_OTHER,
                         FRAMES(TRAIN(17), {"Store.batch", "/home/u/store.py", 3, 7},
                                {"result", inner, 10, 20}),
                         100, 9000, 9100);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOADER_IO);
        assert_non_null(finding);
        /* 0.9 of 10 ms are not waiting: an eighth of 9.1 is more, and it gets no faster. */
        assert_true(pooled ? finding->speedup < 1.2
                           : fabs(finding->speedup - 8 * 10 / 9.1) < 0.3);
        assert_int_equal(strstr(finding->advice[0], "already") != NULL, pooled);
        assert_true(!pooled || finding->severity == SW_SEVERITY_LOW);
        scene_free(scene);
    }
}

/* What the loop goes through makes the batches: one line that it does over and over for each, or once for a batch. */
static void a_line_that_makes_batches(void **state)
{
    (void)state;
    static const char text[] = "def train():\n"
                               "    for batch in batches():\n"
                               "        batch = cut(batch)\n"
                               "        loss = model(batch)\n"
                               "        loss.backward()\n"
                               "def batches():\n"
                               "    for _ in range(n):\n"
                               "        while len(chosen) < size:\n"
                               "            chosen.append(order.pop(0))\n"
                               "        x = rng.normal(shape)\n"
                               "        yield x\n";
    static const struct {
        unsigned from, at;
        bool told;
    } cases[] = {{2, 9, true}, {3, 9, false}, {2, 10, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 25, PHASES(COMPUTE, [SW_PHASE_OTHER] = 60));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(OWN("train", 1, 4), TORCH("call")),
                      400, 390);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(OWN("train", 1, 5), TORCH("b")),
                      500, 500);
        scene_samples(
            scene, SW_PHASE_OTHER,
            FRAMES(OWN("train", 1, cases[i].from), OWN("batches", 6, cases[i].at)), 5990,
            5990);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOADER_TRANSFORM);
        assert_int_equal(finding != NULL, cases[i].told);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL,
                         !cases[i].told);
        if (finding) {
            assert_int_equal(finding->line, 9);
            assert_true(finding->speedup > 2);
        }
        scene_free(scene);
    }
}

/* Calls that are short in a loop inside a loop are many. */
static void a_loop_in_a_loop(void **state)
{
    (void)state;
    for (unsigned nested = 0; nested < 2; nested++) {
        struct scene *scene = scene_new();
        char text[300];
        snprintf(text, sizeof text,
                 "def train(batches):\n"
                 "    for batch in batches:\n"
                 "        loss = model(batch)\n"
                 "        loss.backward()\n"
                 "        count(batch)\n"
                 "def count(rows):\n"
                 "    %s row in rows:\n"
                 "        for j in row:\n"
                 "            sums[j] += row[j]\n",
                 nested ? "for" : "if");
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        model_samples(scene, path);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(OWN("train", 1, 5), OWN("count", 6, 9)), 600, 560);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, nested);
        scene_free(scene);
    }
}

/* A source file of its own, removed at the end. */
static char source_path[64];
static void write_source(const char *text)
{
    strcpy(source_path, "/tmp/test_rules_XXXXXX.py");
    const int fd = mkstemps(source_path, 3);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* A loop over parameters after the backward is the update, written by hand; over anything else it is Python. */
static void a_loop_over_parameters(void **state)
{
    (void)state;
    /* Small operations, between which Python shows; and large ones, after the backward, where nothing else updates. */
    static const struct {
        const char *over;
        uint64_t in_call;
        unsigned updates; /* by an optimizer of torch's */
        bool update, logs;
    } cases[] = {{"parameters", 500, 0, true, false},
                 {"history", 500, 0, false, false},
                 {"parameters", 600, 0, true, false},
                 {"history", 600, 0, false, true},
                 {"parameters", 600, 100, false, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "def after(net):\n"
                 "    for p in net.%s():\n"
                 "        p -= 0.1 * p.grad\n",
                 cases[i].over);
        write_source(text);
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        scene->lane->file->updates = cases[i].updates;
        usual_samples(scene);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(30), {"after", source_path, 1, 3}), 600,
                      cases[i].in_call);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        const bool python = !cases[i].update && !cases[i].logs;
        assert_int_equal(finding != NULL, cases[i].update);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, python);
        assert_int_equal(found(scene, SW_FINDING_LOGGING) != NULL, cases[i].logs);
        if (finding) {
            assert_int_equal(finding->line, 3);
        }
        scene_free(scene);
        unlink(source_path);
    }
}

/* The same from the same in every step. */
static void the_same_again(void **state)
{
    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        char text[400];
        snprintf(text, sizeof text,
                 "def train(loader, graph):\n"
                 "    for x, y in loader:\n"
                 "        k = kernel(%s)\n"
                 "        loss = net(x, k)\n"
                 "        loss.backward()\n",
                 again ? "graph" : "graph, x");
        write_source(text);
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES(COMPUTE, [SW_PHASE_OTHER] = 6));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES({"train", source_path, 1, 4}, TORCH("f")), 400, 390);
        scene_samples(scene, SW_PHASE_BACKWARD,
                      FRAMES({"train", source_path, 1, 5}, TORCH("b")), 500, 500);
        scene_samples(
            scene, SW_PHASE_OTHER,
            FRAMES({"train", source_path, 1, 3}, {"kernel", "/home/u/kernel.py", 3, 8}),
            600, 590);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, again);
        assert_int_equal(found(scene, SW_FINDING_LOADER_MAIN_PROCESS) != NULL, !again);
        if (finding) {
            assert_string_equal(finding->name, "kernel");
            assert_true(fabs(finding->share - 0.4) < 0.03);
        }
        scene_free(scene);
        unlink(source_path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(python_code_in_the_step),
        cmocka_unit_test(little_python_code),
        cmocka_unit_test(python_code_in_one_step),
        cmocka_unit_test(operators_on_arrays),
        cmocka_unit_test(python_code_and_what_it_calls),
        cmocka_unit_test(whose_code_it_is),
        cmocka_unit_test(few_samples_show_nothing),
        cmocka_unit_test(native_work_is_not_python),
        cmocka_unit_test(what_a_step_does_once_is_not_python),
        cmocka_unit_test(a_loop_over_few_large_arrays),
        cmocka_unit_test(small_functions_do_not_add_up),
        cmocka_unit_test(a_rollout),
        cmocka_unit_test(a_rollout_without_a_model),
        cmocka_unit_test(work_between_calls_of_the_model),
        cmocka_unit_test(what_is_computed_beside_stays),
        cmocka_unit_test(work_on_batches),
        cmocka_unit_test(work_on_batches_beside_jax),
        cmocka_unit_test(work_on_batches_beside_jax_on_two_cores),
        cmocka_unit_test(python_beside_jax),
        cmocka_unit_test(a_tensor_of_what_a_loop_gathered),
        cmocka_unit_test(python_on_batches),
        cmocka_unit_test(native_work_on_samples),
        cmocka_unit_test(waiting_before_the_model),
        cmocka_unit_test(a_loop_over_parameters),
        cmocka_unit_test(the_same_again),
        cmocka_unit_test(waiting_for_many),
        cmocka_unit_test(a_line_that_makes_batches),
        cmocka_unit_test(a_loop_in_a_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
