/* Rules on many small operations: autograd's graph, loops, JAX outside jit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

static void graph(struct scene *scene, double nodes, double functions)
{
    scene_setting(scene, "autograd", "nodes", NULL, nodes);
    scene_setting(scene, "autograd", "functions", NULL, functions);
}

/* 1000 nodes of 5 us; in the forward Python shows between the calls, or the framework does it all in one. */
static void many_nodes(void **state)
{
    (void)state;
    static const struct {
        double nodes, functions;
        uint64_t in_call;
        bool small;
        double ms;      /* the backward */
        double speedup; /* at least */
    } cases[] = {
        {1000, 10, 300, true, 5, 3},
        {1000, 10, 400, false, 5, 0},  /* one call: nn.GRU */
        {100, 10, 300, false, 5, 0},   /* 50 us each: worth their calls */
        {250, 10, 300, true, 5, 1.9},  /* 20 us, of which a call takes most */
        {1000, 200, 300, false, 5, 0}, /* all different: nothing to put together */
        {1000, 10, 300, false, 30, 0},
        {2500, 10, 300, true, 75, 1.5}}; /* 30 us each, but so many */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 0.8 * cases[i].ms, [SW_PHASE_BACKWARD] =
                                                                       cases[i].ms));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"),
                             {"Cell.forward", "/home/u/cell.py", 5, 9}, TORCH("linear")),
                      400, cases[i].in_call);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        graph(scene, cases[i].nodes, cases[i].functions);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].small);
        if (finding) {
            assert_string_equal(finding->name, "Cell.forward");
            assert_true(evidence(finding, "graph_nodes") == cases[i].nodes);
            assert_true(finding->speedup > cases[i].speedup);
        }
        scene_free(scene);
    }
}

/* The same of a run so short that the sampler saw next to nothing: it is told from what parts of the program's own take by themselves,
 * if the backward goes through the model. */
static void many_nodes_of_a_short_run(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double back; /* through the model, of 5 ms */
        bool small;
        unsigned samples;
    } cases[] = {{"Experts", 5, true, 3},
                 {"Experts", 5, true, 0},
                 {"GRU", 5, false, 3}, /* an operation of the framework is many nodes */
                 {"Experts", 2, false, 3}}; /* nodes that a loss has made */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5));
        scene_part(scene, "Net", cases[i].type, 4, cases[i].back, 1000);
        if (cases[i].samples) {
            scene_samples(scene, SW_PHASE_FORWARD,
                          FRAMES(TRAIN(20), TORCH("call"),
                                 {"Experts.forward", "/home/u/cell.py", 5, 9}),
                          cases[i].samples, 3);
        }
        graph(scene, 1000, 10);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].small);
        assert_int_equal(
            sw_findings_checked(scene->findings, SW_FINDING_LAUNCH_BOUND, NULL),
            cases[i].small);
        if (finding) {
            assert_string_equal(finding->name,
                                cases[i].samples ? "Experts.forward" : "Net");
            assert_true(finding->speedup > 3);
        }
        scene_free(scene);
    }
}

/* 500 nodes of 10 us beside layers of torch's that compute for long: those are none of them, and stay as they are. */
static void many_nodes_beside_large_layers(void **state)
{
    (void)state;
    static const char *const names[] = {"Net.wide", "Net.head"};
    for (unsigned large = 0; large < 2; large++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 15));
        scene_part(scene, "Net", "Net", 4, 15, 0);
        for (unsigned k = 0; k < 2; k++) {
            const uint32_t section = scene_section(scene, names[k], SW_PHASE_INHERIT);
            const uint32_t kind = scene_text(scene, large ? "Linear" : "Cells");
            for (unsigned i = 0; i < 100; i++) {
                call(scene->tb, scene->lane, section, START + (10 * i + 2 * k + 1) * MS,
                     5 * MS / 4);
            }
            (void)scene_row(scene, SW_TABLE_MODULE, 0, KEY(section, kind, 0, 0),
                            VALUE(4000000, 16000000, 4000000, 5 * MS, 1));
        }
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"),
                             {"Net.forward", "/home/u/cell.py", 5, 9}, TORCH("linear")),
                      400, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        graph(scene, 500, 5);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, large);
        if (finding) {
            /* 6.5 of 19 ms are small operations. */
            assert_true(finding->speedup > 1.3 && finding->speedup < 1.55);
        }
        scene_free(scene);
    }
}

/* 2000 nodes of 3 us that a function between the model and the backward makes: for one element after the other, or in one
 * recurrence of which nothing can be put together. */
static void operations_outside_the_model(void **state)
{
    (void)state;
    for (unsigned each = 0; each < 2; each++) {
        struct scene *scene = scene_new();
        const unsigned calls = each ? 8 : 1;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 0.2, [SW_PHASE_OTHER] = 4,
                           [SW_PHASE_BACKWARD] = 6));
        const uint32_t section = scene_section(scene, "Net", SW_PHASE_FORWARD);
        const uint32_t kind = scene_text(scene, "Linear");
        for (unsigned i = 0; i < 100 * calls; i++) {
            call(scene->tb, scene->lane, section, START + i * MS, MS / 100);
        }
        (void)scene_row(scene, SW_TABLE_MODULE, SW_ROW_MODEL, KEY(section, kind, 0, 0),
                        VALUE(10, 40, 10, 0, 0));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 20, 18);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(22), {"likelihood", "/home/u/filter.py", 5, 9}), 400,
                      80);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 600, 600);
        graph(scene, 2000, 15);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, each);
        if (finding) {
            assert_string_equal(finding->name, "likelihood");
            assert_true(fabs(evidence(finding, "calls_of_a_layer_per_step") - 8) < 0.01);
            assert_true(finding->speedup > 6 && finding->speedup < 10);
        } else {
            assert_true(remarked(scene, "small operations"));
        }
        /* Operators of tensors are no Python, though they look like it. */
        assert_null(found(scene, SW_FINDING_PYTHON_OVERHEAD));
        scene_free(scene);
    }
}

/* A loss that is computed pair by pair after a model that had them all at once; and a filter that goes from one to the next. */
static void a_loss_one_by_one(void **state)
{
    (void)state;
    for (unsigned apart = 0; apart < 2; apart++) {
        struct scene *scene = scene_new();
        const char *file =
            scene_source(scene, apart ? "def loss(a, b):\n"
                                        "    for i in range(len(a)):\n"
                                        "        near = 1 - torch.dot(a[i], b[i])\n"
                                        "        out.append(near)\n"
                                      : "def loss(a, b):\n"
                                        "    for i in range(len(a)):\n"
                                        "        near = near * torch.dot(a[i], b[i])\n"
                                        "        out.append(near)\n");
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 0.5, [SW_PHASE_OTHER] = 4,
                           [SW_PHASE_BACKWARD] = 6));
        scene_part(scene, "Net", "Net", 0.5, 1, 100);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 50, 48);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(22), {"loss", file, 1, 3}), 400,
                      80);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 600, 600);
        graph(scene, 2000, 15);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, apart);
        if (finding) {
            assert_string_equal(finding->name, "loss");
            assert_int_equal(finding->line, 3);
            /* The model stays, forward and backward. */
            assert_true(fabs(evidence(finding, "backward_of_models_ms") - 1) < 0.1);
            assert_true(finding->speedup > 3.5 && finding->speedup < 7.2);
        } else {
            assert_true(remarked(scene, "small operations"));
        }
        scene_free(scene);
    }
}

/* The same beside a model that takes longer than it, with losses of the framework in the loop; or with none of it in a loop. */
static void a_loss_beside_a_model(void **state)
{
    (void)state;
    for (unsigned apart = 0; apart < 2; apart++) {
        struct scene *scene = scene_new();
        const char *file =
            scene_source(scene, apart ? "def loss(a, b):\n"
                                        "    for i in range(len(a)):\n"
                                        "        near = F.mse_loss(a[i], b[i])\n"
                                        "        total = total + near\n"
                                      : "def loss(a, b):\n"
                                        "    near = F.mse_loss(a, b)\n"
                                        "    far = near * near\n"
                                        "    return far\n");
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 1, [SW_PHASE_LOSS] = 0.4,
                           [SW_PHASE_OTHER] = 0.5, [SW_PHASE_BACKWARD] = 3.5));
        scene_part(scene, "Net", "Net", 1, 2.3, 10000);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 100, 99);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(22), {"loss", file, 1, 3}), 50,
                      20);
        scene_samples(scene, SW_PHASE_LOSS,
                      FRAMES(TRAIN(22), {"loss", file, 1, 3}, TORCH("mse_loss")), 40, 30);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 350, 350);
        graph(scene, 972, 13);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, apart);
        if (finding) {
            assert_string_equal(finding->name, "loss");
            assert_true(fabs(evidence(finding, "backward_of_models_ms") - 2.3) < 0.1);
            /* 2.1 of 5.4 ms, of which a little stays. */
            assert_true(finding->speedup > 1.3 && finding->speedup < 1.65);
        }
        scene_free(scene);
    }
}

/* A network in NumPy: what stands in the head of the loop over its weights is computed once, and is most of the time; or the loop
 * goes through values one by one. */
static void a_loop_over_few_arrays(void **state)
{
    (void)state;
    for (unsigned many = 0; many < 2; many++) {
        struct scene *scene = scene_new();
        const char *file =
            scene_source(scene, "def step(self, x):\n"
                                "    a = np.maximum(x @ self.w, 0)\n"
                                "    for w, g in zip(self.ws, (x.T @ a, a.T @ x)):\n"
                                "        w -= g\n"
                                "    return a\n");
        scene_steps(scene, 100, PHASES([SW_PHASE_OTHER] = 10));
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(20), {"step", file, 1, 2}), 380,
                      378);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(20), {"step", file, 1, 3}), 400,
                      many ? 100 : 396);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(20), {"step", file, 1, 4}), 6,
                      2);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, many);
        scene_free(scene);
    }
}

/* A function for one element, which a comprehension calls for each, or once for all of them. */
static void a_function_for_one_element(void **state)
{
    (void)state;
    for (unsigned each = 0; each < 2; each++) {
        struct scene *scene = scene_new();
        const char *file = scene_source(
            scene, each ? "def cost(a, b):\n"
                          "    return 1 - torch.dot(a, b)\n"
                          "def loss(a, b):\n"
                          "    return sum([cost(x, y) for x, y in zip(a, b)])\n"
                        : "def cost(a, b):\n"
                          "    return 1 - torch.dot(a, b)\n"
                          "def loss(a, b):\n"
                          "    return cost(a, b).sum()\n");
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 0.5, [SW_PHASE_OTHER] = 4,
                           [SW_PHASE_BACKWARD] = 6));
        scene_part(scene, "Net", "Net", 0.5, 1, 100);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("call")), 50, 48);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(20), {"loss", file, 3, 4}, {"cost", file, 1, 2}), 400,
                      80);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 600, 600);
        graph(scene, 2000, 15);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, each);
        if (finding) {
            assert_string_equal(finding->name, "loss");
            assert_int_equal(finding->line, 4);
        }
        scene_free(scene);
    }
}

/* 16 heads in a row are one thing 16 times; three layers of a block are three things. */
static void rows_of_small_parts(void **state)
{
    (void)state;
    for (unsigned row = 0; row < 2; row++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"),
                             {"Head.forward", "/home/u/head.py", 5, 9}, TORCH("linear")),
                      400, 350);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_part(scene, "Net", "Net", 4, 5, 0);
        for (unsigned i = 0; i < 40; i++) {
            char name[40];
            snprintf(name, sizeof name, row ? "Net.heads.%u.query" : "Net.part%u.query",
                     i);
            scene_part(scene, name, "Linear", 0.05, 0, 100);
        }
        graph(scene, 300, 10);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LAUNCH_BOUND) != NULL, row);
        scene_free(scene);
    }
}

/* 48 members that all get the same input, or of which each gets what the one before gave, or that are worth their calls. */
static void parts_that_are_alike(void **state)
{
    (void)state;
    static const struct {
        const char *calls, *list;
        double forward; /* of a member, in ms */
        bool last_differs, together;
        unsigned rows; /* among which they are divided */
    } cases[] = {{"        return stack([part(x) for part in self.parts])\n",
                  "ModuleList", 0.02, false, true, 1},
                 {"        return stack([part(x) for part in self.parts])\n",
                  "ModuleList", 0.02, false, true, 2},
                 /* All in one line: nobody can tell. */
                 {"        for part in self.parts: out.append(part(x))\n", "ModuleList",
                  0.02, false, false, 1},
                 {"        x = part(x)\n", "ModuleList", 0.02, false, false, 1},
                 {"        return stack([part(x) for part in self.parts])\n",
                  "Sequential", 0.02, false, false, 1},
                 {"        return stack([part(x) for part in self.parts])\n",
                  "ModuleList", 0.2, false, false, 1},
                 {"        return stack([part(x) for part in self.parts])\n",
                  "ModuleList", 0.02, true, false, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[256];
        snprintf(text, sizeof text, "class Net:\n    def forward(self, x):\n%s",
                 cases[i].calls);
        const char *file = scene_source(scene, text);
        const double forward = 48 * cases[i].forward * 1.2;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = forward,
                           [SW_PHASE_BACKWARD] = 2 * forward, [SW_PHASE_OPTIMIZER] = 2));
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("call"), {"Net.forward", file, 2, 3}, TORCH("c")),
            400, 380);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_setting(scene, "optimizer", "tensors", NULL, 96);
        scene_part(scene, "Net", "Net", 0.01, 0, 0);
        const uint32_t kind = scene_text(scene, cases[i].list);
        char name[40];
        for (unsigned k = 0; k < cases[i].rows; k++) {
            snprintf(name, sizeof name, "Net.block%u.parts", k);
            const uint32_t list = scene_section(scene, name, SW_PHASE_INHERIT);
            (void)scene_row(scene, SW_TABLE_MODULE, 0, KEY(list, kind, 0, 0), VALUE(0));
        }
        for (unsigned k = 0; k < 48; k++) {
            snprintf(name, sizeof name, "Net.block%u.parts.%u", k % cases[i].rows,
                     k / cases[i].rows);
            scene_part(scene, name, "Linear", cases[i].forward, 0,
                       cases[i].last_differs && k == 47 ? 200 : 100);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].together);
        if (finding) {
            assert_string_equal(finding->name, "Net.forward");
            assert_int_equal(finding->line, 3);
            assert_true(evidence(finding, "parts_alike") == 48.0 / cases[i].rows);
            /* Three quarters of the model, and the update of so many tensors. */
            assert_true(finding->speedup > 3.5 && finding->speedup < 8);
            assert_true(finding->low > 1.5 && finding->high < 40);
        }
        scene_free(scene);
    }
}

/* 48 heads beside a layer that takes most of the forward: the backward takes apart what they were given, or it does not; or the part that
 * has them does more itself. */
static void parts_that_are_alike_beside_a_layer(void **state)
{
    (void)state;
    static const struct {
        double own, backward; /* of the part that has them, in ms */
        bool together;
    } cases[] = {{0.3, 7, true}, {0.3, 2, false}, {0.3, 0, false}, {1.2, 7, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *file =
            scene_source(scene, "class Bank:\n    def forward(self, x):\n"
                                "        for i, part in enumerate(self.parts):\n"
                                "            out.append(part(x[:, i]))\n");
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8));
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("call"), {"Bank.forward", file, 2, 4}, TORCH("c")),
            400, 380);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
        scene_part(scene, "Net", "Net", 0.01, 8, 0);
        scene_part(scene, "Net.mix", "Linear", 2.5, 1, 100);
        scene_part(scene, "Net.bank", "Bank", cases[i].own, cases[i].backward, 0);
        const uint32_t list = scene_section(scene, "Net.bank.parts", SW_PHASE_INHERIT);
        (void)scene_row(scene, SW_TABLE_MODULE, 0,
                        KEY(list, scene_text(scene, "ModuleList"), 0, 0), VALUE(0));
        for (unsigned k = 0; k < 48; k++) {
            char name[40];
            snprintf(name, sizeof name, "Net.bank.parts.%u", k);
            scene_part(scene, name, "Linear", 0.02, 0, 100);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].together);
        if (finding) {
            assert_string_equal(finding->name, "Bank.forward");
            assert_int_equal(finding->line, 4);
            /* Three quarters of what the bank takes. */
            assert_true(finding->speedup > 1.6 && finding->speedup < 2.2);
        }
        scene_free(scene);
    }
}

/* A table for each of 48 columns, of as many rows as the column has values; or of vectors of several lengths; or beside a model
 * that takes most of the forward. */
static void tables_of_columns(void **state)
{
    (void)state;
    static const struct {
        unsigned width;
        double rest; /* in ms */
        bool together;
    } cases[] = {{8, 0.2, true}, {1, 0.2, false}, {8, 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *file = scene_source(
            scene,
            "class Net:\n    def forward(self, x):\n"
            "        return cat([t(x[:, i]) for i, t in enumerate(self.tables)])\n");
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 1.2 + cases[i].rest,
                           [SW_PHASE_BACKWARD] = 2.4 + 2 * cases[i].rest,
                           [SW_PHASE_OPTIMIZER] = 0.5));
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("call"), {"Net.forward", file, 2, 3}, TORCH("c")),
            400, 380);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_setting(scene, "optimizer", "tensors", NULL, 50);
        scene_part(scene, "Net", "Net", 0.01, 0, 0);
        scene_part(scene, "Net.columns", "Columns", 0.5, 0, 0); /* picks and joins */
        scene_part(scene, "Net.mlp", "Linear", cases[i].rest, 2 * cases[i].rest, 100000);
        const uint32_t list =
            scene_section(scene, "Net.columns.tables", SW_PHASE_INHERIT);
        (void)scene_row(scene, SW_TABLE_MODULE, 0,
                        KEY(list, scene_text(scene, "ModuleList"), 0, 0), VALUE(0));
        for (unsigned k = 0; k < 48; k++) {
            char name[40];
            snprintf(name, sizeof name, "Net.columns.tables.%u", k);
            scene_part(scene, name, "Embedding", 0.014, 0, cases[i].width * (5 + k));
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].together);
        if (finding) {
            assert_int_equal(finding->line, 3);
            /* Three quarters of what is no part of the rest, and the update of 48 of 50 tensors. */
            assert_true(finding->speedup > 2.5 && finding->speedup < 4.5);
            assert_non_null(strstr(finding->advice[0], "one table"));
        }
        scene_free(scene);
    }
}

/* A layer that is called so many times in a step, 17 us each. */
static void called_often(struct scene *scene, const char *name, const char *type,
                         unsigned times)
{
    const bool root = !strchr(name, '.');
    const uint32_t section =
        scene_section(scene, name, root ? SW_PHASE_FORWARD : SW_PHASE_INHERIT);
    for (unsigned i = 0; i < 100 * times; i++) {
        call(scene->tb, scene->lane, section, START + i * MS / 10, 17000);
    }
    (void)scene_row(scene, SW_TABLE_MODULE, root ? SW_ROW_MODEL : 0,
                    KEY(section, scene_text(scene, type), 0, 0),
                    VALUE(1000, 4000, 1000, 0, 0));
}

/* An agent that asks its model for one row after the other, all of which are there; or for what its last answer led to; or a model
 * that remembers; or one that is asked a few times. */
static void asked_for_one_element_after_the_other(void **state)
{
    (void)state;
    static const struct {
        const char *each, *forward;
        unsigned times;
        bool apart;
    } cases[] = {
        {"given = self.policy(torch.from_numpy(row))", "return self.body(x)", 100, true},
        {"given = model(row)", "return self.body(x)", 100, true},
        {"given = self.policy(row)", "return self.body(x)", 4, false},
        {"given = row = self.policy(given)", "return self.body(x)", 100, false},
        {"given = self.world.step(self.policy(row))", "return self.body(x)", 100, false},
        {"given = self.policy(self.see(row))", "return self.body(x)", 100, false},
        {"given = self.policy(row)", "self.last = self.body(x, self.last)", 100, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[400];
        snprintf(text, sizeof text,
                 "from torch.distributions import Categorical\n"
                 "class Agent:\n    def act(self, rows, model, given):\n"
                 "        actions = []\n        for row in rows:\n            %s\n"
                 "            actions.append(Categorical(logits=given).sample())\n"
                 "        return actions\n"
                 "class Policy:\n    def forward(self, x):\n        %s\n",
                 cases[i].each, cases[i].forward);
        const char *file = scene_source(scene, text);
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 5, [SW_PHASE_BACKWARD] = 2,
                           [SW_PHASE_OTHER] = 5));
        const struct scene_frame model = {"Agent.act", file, 3, 6},
                                 draw = {"Agent.act", file, 3, 7};
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), model, TORCH("call"),
                             {"Policy.forward", file, 10, 11}, TORCH("linear")),
                      500, 450);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(20), draw, TORCH("sample")),
                      400, 350);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(21), TORCH("cat")), 100, 100);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 200, 200);
        called_often(scene, "Policy", "Policy", cases[i].times);
        called_often(scene, "Policy.body", "Linear", cases[i].times);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].apart);
        if (finding) {
            assert_string_equal(finding->name, "Agent.act");
            assert_int_equal(finding->line, 6);
            assert_true(evidence(finding, "calls_of_the_model_per_step") == 100);
            /* Four fifths of 9 of 12 ms. */
            assert_true(finding->speedup > 2.2 && finding->speedup < 3.2);
            assert_null(found(scene, SW_FINDING_LOADER_MAIN_PROCESS));
        }
        scene_free(scene);
    }
}

/* What a thread waits for a core makes no operation longer. */
static void small_nodes_on_a_busy_machine(void **state)
{
    (void)state;
    for (unsigned busy = 0; busy < 2; busy++) {
        struct scene *scene = scene_new();
        scene->run_delay_ns = busy ? 24 * MS : 0;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 16, [SW_PHASE_BACKWARD] = 20));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"),
                             {"Cell.forward", "/home/u/cell.py", 5, 9}, TORCH("linear")),
                      400, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        graph(scene, 500, 10); /* 40 us, or a third of that on a core */
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_LAUNCH_BOUND) != NULL, busy);
        scene_free(scene);
    }
}

#define JAX(function)                                                                    \
    {                                                                                    \
        function, "/v/site-packages/jax/_src/dispatch.py", 80, 90                        \
    }
static void jax_outside_jit(void **state)
{
    (void)state;
    for (unsigned eager = 0; eager < 3; eager++) { /* 2: it waits for what it computes */
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_OTHER] = eager ? 9 : 1, [SW_PHASE_FORWARD] = eager ? 1 : 9));
        scene_samples(scene, eager ? SW_PHASE_OTHER : SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), {"update", "/home/u/train.py", 5, 7},
                             JAX("apply_primitive")),
                      500, 200);
        /* A method of a named tuple is text that collections has made. */
        scene_samples(scene, eager ? SW_PHASE_OTHER : SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), {"update", "/home/u/train.py", 5, 7},
                             JAX("apply_primitive"), {"<lambda>", "<string>", 1, 1}),
                      900, 200);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(22)), 50, 50);
        if (eager == 2) {
            tb_fact(scene->tb, "jax_backend", "cpu");
            call(scene->tb, scene->lane, scene_section(scene, "sync", SW_PHASE_SYNC),
                 scene->at, 100 * MS);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, eager == 1);
        if (finding) {
            assert_string_equal(finding->name, "update");
            assert_non_null(strstr(finding->advice[0], "jax.jit"));
        }
        scene_free(scene);
    }
}

/* A short run, and of most stacks only the innermost frames were seen: of JAX called one by one, of a step that it compiled, or
 * of another package. */
static void jax_outside_jit_of_torn_stacks(void **state)
{
    (void)state;
    static const struct {
        unsigned phase;
        const char *file;
        bool eager;
    } cases[] = {{SW_PHASE_OTHER, "/v/site-packages/jax/_src/core.py", true},
                 {SW_PHASE_FORWARD, "/v/site-packages/jax/_src/core.py", false},
                 {SW_PHASE_OTHER, "/v/site-packages/scipy/fft/basic.py", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 50, PHASES([SW_PHASE_OTHER] = 20, [SW_PHASE_FORWARD] = 1));
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(20), {"update", "/home/u/train.py", 5, 7},
                             {"bind", cases[i].file, 3, 9}),
                      30, 20);
        scene_samples(
            scene, cases[i].phase,
            FRAMES({"bind", cases[i].file, 3, 9}, {"call", cases[i].file, 5, 9}), 70, 40);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LAUNCH_BOUND);
        assert_int_equal(finding != NULL, cases[i].eager);
        if (finding) {
            assert_string_equal(finding->name, "update");
        }
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(many_nodes_of_a_short_run),
        cmocka_unit_test(many_nodes_beside_large_layers),
        cmocka_unit_test(operations_outside_the_model),
        cmocka_unit_test(a_loss_one_by_one),
        cmocka_unit_test(a_loss_beside_a_model),
        cmocka_unit_test(a_loop_over_few_arrays),
        cmocka_unit_test(a_function_for_one_element),
        cmocka_unit_test(rows_of_small_parts),
        cmocka_unit_test(parts_that_are_alike),
        cmocka_unit_test(parts_that_are_alike_beside_a_layer),
        cmocka_unit_test(tables_of_columns),
        cmocka_unit_test(asked_for_one_element_after_the_other),
        cmocka_unit_test(small_nodes_on_a_busy_machine),
        cmocka_unit_test(jax_outside_jit),
        cmocka_unit_test(jax_outside_jit_of_torn_stacks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
