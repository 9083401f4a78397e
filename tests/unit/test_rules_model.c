/* Rules on the model that need what torch or JAX say of themselves: tables, layers, modules that the backward leaves out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

/* A layer of the program's own that learns something, and takes far more than that is worth. */
static void a_layer_out_of_proportion(void **state)
{
    (void)state;
    static const struct {
        double forward;
        uint64_t parameters;
        bool twice, slow;
    } cases[] = {{3, 5000, false, true},
                 {3, 500000, false, false}, /* it is large */
                 {1, 5000, false, false},
                 {1.5, 5000, true, false}}; /* what the model is made of */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8));
        /* Another class has a name that ends like its own. */
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("f"),
                             {"WideKernel.forward", "/home/u/wide.py", 3, 5}),
                      300, 300);
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("f"), {"Kernel.forward", "/home/u/kernel.py", 8, 9}),
            200, 200);
        scene_part(scene, "Net", "Net", 4, 8, 0);
        scene_part(scene, "Net.kernel", "Kernel", cases[i].forward, 2 * cases[i].forward,
                   cases[i].parameters);
        if (cases[i].twice) {
            scene_part(scene, "Net.second", "Kernel", 1.5, 3, 5000);
        }
        scene_part(scene, "Net.a", "Linear", 0.3, 0.3, 10000);
        scene_part(scene, "Net.b", "Linear", 0.3, 0.3, 10000);
        scene_part(scene, "Net.c", "Linear", 0.3, 0.3, 10000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.kernel");
            assert_string_equal(finding->file, "/home/u/kernel.py"); /* its own code */
            assert_int_equal(finding->line, 9);
        }
        scene_free(scene);
    }
}

/* A layer of the program's own that learns nothing and is a quarter of the model: it has to be longer than any that learns, the only
 * one of its class, and in the program's own files. */
static void a_layer_that_learns_nothing(void **state)
{
    (void)state;
    static const struct {
        double forward, largest; /* its own, and of the slowest that learns */
        const char *second, *file;
        bool slow;
    } cases[] = {{2, 0.8, "ReLU", "/home/u/layers.py", true},
                 {2, 1.2, "ReLU", "/home/u/layers.py", false},
                 {2, 0.8, "Blur", "/home/u/layers.py", false},
                 {1, 0.4, "ReLU", "/home/u/layers.py", false}, /* it is little */
                 {2, 0.8, "ReLU", "/v/site-packages/blurs/layers.py", false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 7, [SW_PHASE_BACKWARD] = 8));
        scene_part(scene, "Net", "Net", 7, 8, 0);
        scene_part(scene, "Net.blur", "Blur", cases[i].forward, cases[i].forward, 0);
        scene_part(scene, "Net.other", cases[i].second, 0.1, 0.1, 0);
        scene_part(scene, "Net.a", "Conv2d", cases[i].largest, 2, 10000);
        scene_part(scene, "Net.b", "Conv2d", 0.3, 1, 10000);
        scene_part(scene, "Net.c", "Conv2d", 0.3, 1, 10000);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"),
                             {"Blur.forward", cases[i].file, 5, 9}, TORCH("conv2d")),
                      400, 400);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.blur");
            assert_int_equal(finding->line, 9);
            assert_non_null(strstr(finding->advice[1], "learns nothing"));
            assert_true(finding->speedup > 1.2 && finding->speedup < 1.4);
        } else {
            assert_silent(scene);
        }
        scene_free(scene);
    }
}

/* A layer over the words of a language, for every position or for those alone that are asked for. */
static void a_layer_of_which_little_is_used(void **state)
{
    (void)state;
    static const struct {
        const char *calls, *type;
        double forward;
        bool slow;
    } cases[] = {{"return self.head(x)[masked]", "Linear", 3, true},
                 {"return self.head(x)[:, -1]", "Linear", 3, true},
                 {"return self.head(x[masked])", "Linear", 3, false},
                 {"return self.head(x)", "Linear", 3, false},
                 {"return self.head(x)[masked]", "Linear", 0.6, false}, /* it is little */
                 {"return self.head(x)[masked]", "GRU", 3, false}}; /* needs them all */
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[256];
        snprintf(text, sizeof text, "class Net:\n    def forward(self, x):\n        %s\n",
                 cases[i].calls);
        const char *file = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("call"), {"Net.forward", file, 2, 3},
                             TORCH("linear")),
                      400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
        scene_part(scene, "Net", "Net", 4, 8, 0);
        scene_part(scene, "Net.head", cases[i].type, cases[i].forward,
                   2 * cases[i].forward, 500000);
        scene_part(scene, "Net.a", "Linear", 0.3, 0.6, 10000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.head");
            assert_int_equal(finding->line, 3);
            assert_true(finding->speedup > 1.8 && finding->speedup < 3);
            assert_true(finding->low < 1.3);
        }
        scene_free(scene);
    }
}

/* A table of which a batch uses few rows: its gradient is as large as itself, or holds those rows alone. */
static void a_table_that_is_updated_whole(void **state)
{
    (void)state;
    for (unsigned dense = 0; dense < 2; dense++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 2, [SW_PHASE_BACKWARD] = 6,
                           [SW_PHASE_OPTIMIZER] = 9));
        scene_part(scene, "Net", "Net", 2, 6, 0);
        scene_part(scene, "Net.table", "Embedding", 0.2, dense ? 2 : 0.1, 6000000);
        scene_part(scene, "Net.more", "Embedding", 0.1, dense ? 1 : 0.1, 4000000);
        scene_part(scene, "Net.out", "Linear", 1.5, 2.5, 10000);
        const uint32_t file = scene_text(scene, "/home/u/train.py");
        const uint32_t name = scene_text(scene, "Adagrad");
        (void)scene_row(scene, SW_TABLE_SITE, 0, KEY(SW_SITE_OPTIMIZER, file, 14, name),
                        VALUE(0));
        scene_setting(scene, "optimizer", "class", "Adagrad", NAN);
        scene_setting(scene, "optimizer", "foreach", "None", NAN);
        scene_setting(scene, "optimizer", "tensors", NULL, 3);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        assert_int_equal(finding != NULL, dense);
        if (finding) {
            assert_int_equal(finding->line, 14);
            assert_non_null(strstr(finding->advice[0], "sparse=True"));
            /* 9 + 3 ms, less what a sparse update of those rows takes, of 17. */
            assert_true(finding->speedup > 1.6 && finding->speedup < 2);
        }
        scene_free(scene);
    }
}

/* Tables and the rest have an optimizer each, and that of the rest is fused; a fused update of all goes through all rows, too.
 * Where the gradients are sparse, or tables are little of the model, nothing is wrong with either. */
static void a_table_beside_a_fused_update(void **state)
{
    (void)state;
    static const struct {
        bool two, dense;
        uint64_t rest; /* parameters of the layers */
        bool whole;
    } cases[] = {{true, true, 10000, true},   {false, true, 10000, true},
                 {true, false, 10000, false}, {true, true, 20000000, false},
                 {true, true, 2000000, true}, {false, true, 2000000, true}};
    double speedup[sizeof cases / sizeof cases[0]] = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 2, [SW_PHASE_BACKWARD] = 4,
                           [SW_PHASE_OPTIMIZER] = 9));
        scene_part(scene, "Net", "Net", 2, 4, 0);
        scene_part(scene, "Net.table", "Embedding", 0.1, cases[i].dense ? 1 : 0.1,
                   6000000);
        scene_part(scene, "Net.out", "Linear", 1.5, 2.5, cases[i].rest);
        if (cases[i].two) {
            scene_setting(scene, "optimizer: Adam", "class", "Adam", NAN);
            scene_setting(scene, "optimizer: Adam", "foreach", "None", NAN);
            scene_setting(scene, "optimizer: Adam", "fused", "None", NAN);
            scene_setting(scene, "optimizer: Adam", "tensors", NULL, 1);
        }
        scene_setting(scene, "optimizer: Adam 2", "class", "Adam", NAN);
        scene_setting(scene, "optimizer: Adam 2", "foreach", "None", NAN);
        scene_setting(scene, "optimizer: Adam 2", "fused", "True", NAN);
        scene_setting(scene, "optimizer: Adam 2", "tensors", NULL, 12);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        assert_int_equal(finding != NULL, cases[i].whole);
        if (finding) {
            assert_non_null(strstr(finding->advice[0], "sparse=True"));
            assert_true(finding->speedup > 1.5);
            speedup[i] = finding->speedup;
        }
        scene_free(scene);
    }
    assert_true(speedup[0] > 1.8 && speedup[1] > 1.8);
    /* A quarter of the parameters is updated in next to no time where that is fused and the table's is not. */
    assert_true(speedup[4] > 1.1 * speedup[5]);
}

/* The update is a third of a step: with a backward that fills the gradient of all rows the table is most of it, with rows that are
 * many in a batch nothing is gained, and a short backward is none of a large gradient. */
static void a_table_that_is_much_of_two_phases(void **state)
{
    (void)state;
    static const struct {
        double forward, backward; /* of the table */
        bool whole;
    } cases[] = {{0.2, 2.5, true}, {0.05, 0.5, false}, {0.55, 2.5, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 9,
                           [SW_PHASE_OPTIMIZER] = 7));
        scene_part(scene, "Net", "Net", 4, 9, 0);
        scene_part(scene, "Net.table", "EmbeddingBag", cases[i].forward,
                   cases[i].backward, 6000000);
        scene_part(scene, "Net.out", "Linear", 3, 6, 300000);
        scene_setting(scene, "optimizer", "class", "Adam", NAN);
        scene_setting(scene, "optimizer", "foreach", "None", NAN);
        scene_setting(scene, "optimizer", "fused", "True", NAN);
        scene_setting(scene, "optimizer", "tensors", NULL, 7);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        assert_int_equal(finding != NULL, cases[i].whole);
        if (finding) { /* 6.7 + 2.5 - 3.6 of 20 ms */
            assert_non_null(strstr(finding->advice[0], "sparse=True"));
            assert_true(finding->speedup > 1.3 && finding->speedup < 1.5);
        } else {
            assert_silent(scene);
        }
        scene_free(scene);
    }
}

/* A table with its backward in two steps. */
static void scene_table(struct scene *scene, double forward, double backward,
                        unsigned looked, uint64_t numbers)
{
    const uint32_t section = scene_section(scene, "Net.table", SW_PHASE_INHERIT);
    const uint32_t kind = scene_text(scene, "Embedding");
    for (unsigned i = 0; i < 100; i++) {
        call(scene->tb, scene->lane, section, START + 10 * i * MS,
             (uint64_t)(forward * MS));
    }
    (void)scene_row(
        scene, SW_TABLE_MODULE, 0, KEY(section, kind, 0, 0),
        VALUE(numbers, 4 * numbers, numbers, looked * (uint64_t)(backward * MS), looked));
}

#define HEAD(line)                                                                       \
    "class Net(nn.Module):\n"                                                            \
    "    def __init__(self):\n"                                                          \
    "        self.table = nn.Embedding(300000, 20)\n"                                    \
    "        nn.init.normal_(self.table.weight)\n"                                       \
    "    def forward(self, rows):\n"                                                     \
    "        hidden = self.layers(self.table(rows))\n"                                   \
    "        return " line "\n"
#define SPARE HEAD("self.out(hidden)")

/* An update that is a tenth of a step, of a table that is so large that filling its gradient takes longer than that. Where a batch
 * uses many rows, or the table is small, or a head shares it, or it is sparse already, nothing is gained; and what few looks at
 * the backward or steps of all lengths say is not certain. */
static void a_large_table_that_is_some_of_two_phases(void **state)
{
    (void)state;
    static const struct {
        const char *source, *kind;
        double forward, backward; /* of the table */
        unsigned looked;
        uint64_t numbers;
        double update, jitter;
        bool whole;
    } cases[] = {
        {SPARE, "Adam", 0.06, 3.6, 2, 4000000, 1.8, 0.05, true},
        {SPARE, "Adam", 0.06, 3.6, 2, 4000000, 1.8, 0.3, true},
        {SPARE, "Adam", 0.15, 3.6, 2, 4000000, 1.8, 0.05, true},
        {SPARE, "Adam", 0.24, 3.6, 2, 4000000, 1.8, 0.05, false}, /* many of its rows */
        {SPARE, "Adam", 0.06, 1.2, 2, 4000000, 1.8, 0.05,
         false}, /* little of the backward */
        {SPARE, "Adam", 0.06, 3.6, 2, 600000, 1.8, 0.05, false},  /* small */
        {SPARE, "Adam", 0.06, 3.6, 2, 4000000, 0.6, 0.05, false}, /* a short update */
        {SPARE, "Adam", 0.06, 3.6, 1, 4000000, 1.8, 0.05, false}, /* looked at once */
        {SPARE, "Adam", 0.06, 3.6, 2, 60000000, 1.8, 0.05,
         false}, /* too short to fill it */
        {SPARE, "SparseAdam", 0.06, 3.6, 2, 4000000, 1.8, 0.05, false},
        {HEAD("hidden @ self.table.weight.T"), "Adam", 0.06, 3.6, 2, 4000000, 1.8, 0.05,
         false},
        {HEAD("F.linear(hidden, self.table.weight)"), "Adam", 0.06, 3.6, 2, 4000000, 1.8,
         0.05, false},
        {HEAD("self.out(hidden), self.other_table.weight @ hidden"), "Adam", 0.06, 3.6, 2,
         4000000, 1.8, 0.05, true},
        {SPARE, "Adam", 0.06, 0, 0, 0, 1.8, 0.05, false}, /* frozen */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, cases[i].source);
        scene->jitter = cases[i].jitter;
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4.2, [SW_PHASE_BACKWARD] = 13.2,
                           [SW_PHASE_OPTIMIZER] = cases[i].update));
        scene_part(scene, "Net", "Net", 4.2, 13.2, 0);
        scene_table(scene, cases[i].forward, cases[i].backward, cases[i].looked,
                    cases[i].numbers);
        scene_part(scene, "Net.out", "Linear", 3.6, 8.4, 60000);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), {"Net.forward", path, 5, 6}, TORCH("linear")),
                      200, 200);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 700, 700);
        scene_setting(scene, "optimizer", "class", cases[i].kind, NAN);
        scene_setting(scene, "optimizer", "foreach", "None", NAN);
        scene_setting(scene, "optimizer", "fused", "True", NAN);
        scene_setting(scene, "optimizer", "tensors", NULL, 7);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        if ((finding != NULL) != cases[i].whole) {
            print_error("case %zu: %s\n", i, finding ? finding->title : "nothing");
        }
        assert_int_equal(finding != NULL, cases[i].whole);
        if (finding) { /* 1.8 + 3.6 of 19 ms, less 1.1 or 2.7 */
            assert_non_null(strstr(finding->title, "filling of its gradient"));
            assert_non_null(strstr(finding->advice[0], "Net.table: sparse=True"));
            assert_true(finding->speedup > 1.1 && finding->speedup < 1.35);
        }
        scene_free(scene);
    }
}

/* Steps so unlike each other that nobody knows how much of one is the update. */
static void a_large_table_in_noise(void **state)
{
    (void)state;
    for (unsigned few = 0; few < 2; few++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 100; i++) {
            scene_step(scene,
                       PHASES([SW_PHASE_FORWARD] = 4.2, [SW_PHASE_BACKWARD] = 13.2,
                              [SW_PHASE_OPTIMIZER] = !few     ? 2.4
                                                     : i % 33 ? 0.2
                                                              : 50),
                       0);
        }
        scene_part(scene, "Net", "Net", 4.2, 13.2, 0);
        scene_table(scene, 0.06, 3.6, 2, 6000000);
        scene_part(scene, "Net.out", "Linear", 3.6, 8.4, 60000);
        scene_setting(scene, "optimizer", "class", "Adam", NAN);
        scene_setting(scene, "optimizer", "foreach", "None", NAN);
        scene_setting(scene, "optimizer", "fused", "True", NAN);
        scene_setting(scene, "optimizer", "tensors", NULL, 7);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_OPTIMIZER) != NULL, !few);
        scene_free(scene);
    }
}

/* A loss that computes a constant takes long forward and is hardly gone back through; a teacher has no backward at all. */
static void a_module_that_the_backward_leaves_out(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double backward;
        bool constant;
        double next; /* the backward of another one of its class; 0: there is none */
    } cases[] = {
        {"NoiseLoss", 0.3, true, 0},        {"NoiseLoss", 0.3, true, 0.3},
        {"NoiseLoss", 0.3, false, 6}, /* it is given the batch, the next what it made */
        {"NoiseLoss", 3.5, false, 0},       {"Teacher", 0, false, 0},
        {"OptimizedModule", 0.3, false, 0}, /* all of a model, compiled */
        {"Dropout", 0.3, false, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = 3, [SW_PHASE_BACKWARD] = 8, [SW_PHASE_LOSS] = 3));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 300, 300);
        scene_samples(scene, SW_PHASE_LOSS,
                      FRAMES(TRAIN(21), TORCH("f"),
                             {"NoiseLoss.forward", "/home/u/losses.py", 8, 9}),
                      300, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
        scene_part(scene, "Net", "Net", 3, 8, 1000);
        scene_part(scene, "Net.part", cases[i].type, 3, cases[i].backward, 0);
        if (cases[i].next > 0) {
            scene_part(scene, "Net.next", cases[i].type, 3, cases[i].next, 0);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, cases[i].constant);
        if (finding) {
            assert_string_equal(finding->name, "NoiseLoss.forward");
            assert_int_equal(finding->line, 9);
        }
        scene_free(scene);
    }
}

/* Python code in a loss leaves nothing to go back through: it is told as what it is, and not as work that is always the same. */
static void a_loss_that_is_python_code(void **state)
{
    (void)state;
    for (unsigned python = 0; python < 2; python++) {
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = 3, [SW_PHASE_BACKWARD] = 8, [SW_PHASE_LOSS] = 9));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 300, 300);
        scene_samples(scene, SW_PHASE_LOSS,
                      FRAMES(TRAIN(21), TORCH("f"),
                             {"TripletLoss.forward", "/home/u/losses.py", 8, 9},
                             {"Miner.__call__", "/home/u/losses.py", 2, 4}),
                      900, python ? 100 : 900);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
        scene_part(scene, "Net", "Net", 3, 8, 1000);
        scene_part(scene, "TripletLoss", "TripletLoss", 9, 0.3, 0);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_REDUNDANT_WORK) == NULL, python);
        assert_int_equal(found(scene, SW_FINDING_PYTHON_OVERHEAD) != NULL, python);
        scene_free(scene);
    }
}

/* The first call of a compiled model takes seconds, and is part of no step that counts; Keras takes long to call a layer. */
static void a_module_that_is_long_in_the_forward_only(void **state)
{
    (void)state;
    for (unsigned keras = 0; keras < 2; keras++) {
        struct scene *scene = scene_new();
        if (keras) {
            tb_fact(scene->tb, "framework.keras", "3.15.1");
        }
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = keras ? 8 : 2, [SW_PHASE_BACKWARD] = 5));
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 300, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
        /* The mean of all calls: 20 ms and more, where a step has 7. */
        scene_part(scene, "Net", "Net", keras ? 8 : 20, keras ? 1 : 2.5, 1000);
        scene_look(scene);
        assert_null(found(scene, SW_FINDING_REDUNDANT_WORK));
        scene_free(scene);
    }
}

static void a_layer_of_an_unusual_kind(void **state)
{
    (void)state;
    static const char *const types[] = {"Bilinear", "Linear", "LSTM"};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8));
        scene_part(scene, "Net", "Net", 4, 8, 0);
        scene_part(scene, "Net.fuse", types[i], 2, 7, 100000);
        scene_part(scene, "Net.a", "Linear", 0.3, 0.3, 10000);
        scene_part(scene, "Net.b", "Linear", 0.3, 0.3, 10000);
        scene_part(scene, "Net.c", "Linear", 0.3, 0.3, 10000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, i == 0);
        if (finding) {
            assert_string_equal(finding->name, "Net.fuse");
        }
        scene_free(scene);
    }
}

/* A part with one layer in it, both called once in each of 100 steps. */
static void part_around_at(struct scene *scene, const char *name, const char *type,
                           double forward, double inside)
{
    char query[64];
    snprintf(query, sizeof query, "%s.query", name);
    const uint32_t outer = scene_section(scene, name, SW_PHASE_INHERIT);
    const uint32_t inner = scene_section(scene, query, SW_PHASE_INHERIT);
    const uint32_t kinds[] = {scene_text(scene, type), scene_text(scene, "Conv2d")};
    const uint64_t backward = (uint64_t)(forward * MS);
    for (unsigned i = 0; i < 100; i++) {
        const uint64_t at = START + 100 * i * MS;
        tb_begin(scene->tb, scene->lane, outer, at);
        call(scene->tb, scene->lane, inner, at + 1000, (uint64_t)(inside * MS));
        tb_end(scene->tb, scene->lane, at + (uint64_t)(forward * MS), 0);
    }
    (void)scene_row(scene, SW_TABLE_MODULE, 0, KEY(outer, kinds[0], 0, 0),
                    VALUE(0, 0, 0, backward, 1));
    (void)scene_row(scene, SW_TABLE_MODULE, 0, KEY(inner, kinds[1], 0, 0),
                    VALUE(1000, 4000, 1000, backward / 100, 1));
}

static void part_around(struct scene *scene, const char *type, double forward,
                        double inside)
{
    part_around_at(scene, "Net.context", type, forward, inside);
}

/* Two of a class share what they take, and neither is most of the model by itself. */
static void parts_that_compute_by_themselves(void **state)
{
    (void)state;
    for (unsigned slow = 0; slow < 2; slow++) {
        const double forward = slow ? 1.5 : 0.2;
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = 2 * forward + 0.6, [SW_PHASE_BACKWARD] =
                                                               2 * forward + 0.6));
        scene_part(scene, "Net", "Net", 2 * forward + 0.6, 2 * forward + 0.6, 0);
        part_around_at(scene, "Net.down", "SelfAttention", forward, 0.03);
        part_around_at(scene, "Net.up", "SelfAttention", forward + 0.05, 0.03);
        scene_part(scene, "Net.a", "Linear", 0.1, 0.1, 10000);
        scene_part(scene, "Net.b", "Linear", 0.1, 0.1, 10000);
        scene_part(scene, "Net.c", "Linear", 0.1, 0.1, 10000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.up");
            assert_int_equal(evidence(finding, "parts_alike"), 2);
            assert_non_null(strstr(finding->advice[1], "scaled_dot_product_attention"));
            /* 6.1 of 7.2 ms, of which between 0.4 and 3 stay. */
            assert_true(finding->speedup > 3.5 && finding->speedup < 6);
            assert_true(finding->low < 1.7 && finding->high > 5);
        }
        scene_free(scene);
    }
}

/* Every position against every other one: a part of the program's own computes most by itself, or hands it to its parts. */
static void a_part_that_computes_by_itself(void **state)
{
    (void)state;
    static const struct {
        const char *type;
        double forward, inside;
        bool slow;
    } cases[] = {{"NonLocal", 30, 0.5, true},
                 {"NonLocal", 30, 20, false}, /* it is one of its layers */
                 {"NonLocal", 24, 6, true},   /* most of it is not */
                 {"NonLocal", 3, 0.5, false},
                 {"MultiheadAttention", 30, 0.5, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double forward = cases[i].forward;
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = forward + 6, [SW_PHASE_BACKWARD] = forward + 6));
        scene_part(scene, "Net", "Net", forward + 6, forward + 6, 0);
        part_around(scene, cases[i].type, forward, cases[i].inside);
        scene_part(scene, "Net.a", "Linear", 1, 1, 10000);
        scene_part(scene, "Net.b", "Linear", 1, 1, 10000);
        scene_part(scene, "Net.c", "Linear", 1, 1, 10000);
        scene_part(scene, "Net.d", "Linear", 1, 1, 10000);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("c"),
                             {"NonLocal.forward", "/home/u/context.py", 5, 9}),
                      400, 400);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(finding != NULL, cases[i].slow);
        if (finding) {
            assert_string_equal(finding->name, "Net.context");
            assert_string_equal(finding->file, "/home/u/context.py");
            assert_int_equal(finding->line, 9);
            assert_true(finding->speedup > 3);
        }
        scene_free(scene);
    }
}

/* A codebook that is slow and hardly gone back through stands in the middle of the model: it is slow, and no repetition. A loss by
 * itself may be computed once. */
static void a_slow_part_that_the_backward_leaves_out(void **state)
{
    (void)state;
    for (unsigned inside = 0; inside < 2; inside++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 0.9));
        scene_part(scene, "Net", "Net", 0.01, 0.9, 0);
        const char *name = inside ? "Net.codes" : "Codes";
        const uint32_t outer =
            scene_section(scene, name, inside ? SW_PHASE_INHERIT : SW_PHASE_FORWARD);
        const uint32_t kind = scene_text(scene, "Codes");
        for (unsigned i = 0; i < 100; i++) {
            call(scene->tb, scene->lane, outer, START + 5 * i * MS, 3 * MS);
        }
        (void)scene_row(scene, SW_TABLE_MODULE, inside ? 0 : SW_ROW_LOSS,
                        KEY(outer, kind, 0, 0), VALUE(0, 0, 0, MS / 10, 1));
        for (unsigned i = 0; i < 4; i++) {
            char layer[16];
            snprintf(layer, sizeof layer, "Net.%u", i);
            scene_part(scene, layer, "Linear", 0.1, 0.2, 10000);
        }
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 90, 90);
        scene_look(scene);
        const sw_finding *slow = found(scene, SW_FINDING_SLOW_MODULE);
        assert_int_equal(slow != NULL, inside);
        assert_int_equal(found(scene, SW_FINDING_REDUNDANT_WORK) != NULL, !inside);
        assert_true(!slow || slow->also >> SW_FINDING_REDUNDANT_WORK & 1);
        scene_free(scene);
    }
}

/* A function that asks a teacher is much of the forward, and no backward goes through it: its parameters follow those that learn. One
 * without layers computes a constant. */
static void a_teacher_in_a_function(void **state)
{
    (void)state;
    for (unsigned teacher = 0; teacher < 2; teacher++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = 4));
        scene_part(scene, "Net", "Net", 8, 4, 0);
        scene_part(scene, "Net.encoder", "Linear", 2, 3, 100000);
        if (teacher) {
            const uint32_t section = scene_section(scene, "Net.target", SW_PHASE_INHERIT);
            const uint32_t kind = scene_text(scene, "Linear");
            for (unsigned i = 0; i < 100; i++) {
                call(scene->tb, scene->lane, section, START + 10 * i * MS, 2 * MS);
            }
            (void)scene_row(scene, SW_TABLE_MODULE, 0, KEY(section, kind, 0, 0),
                            VALUE(100000, 400000, 0, 0, 0));
        }
        scene_samples(
            scene, SW_PHASE_FORWARD,
            FRAMES(TRAIN(20), TORCH("f"), {"Net.forward", "/home/u/net.py", 5, 7}), 450,
            450);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("f"),
                             {"Net.forward", "/home/u/net.py", 5, 8},
                             {"Net.keys", "/home/u/net.py", 12, 14}, TORCH("linear")),
                      350, 350);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 400, 400);
        scene_look(scene);
        assert_int_equal(found(scene, SW_FINDING_REDUNDANT_WORK) != NULL, !teacher);
        scene_free(scene);
    }
}

/* What makes a part slow is a loop of Python in a function that it calls, of which no backward knows: the function is told of, and
 * the part is not. */
static void a_slow_part_that_loops(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    const char *path = scene_source(scene, "def table(length, width):\n"
                                           "    found = zeros(length, width)\n"
                                           "    for row in range(length):\n"
                                           "        for at in range(width):\n"
                                           "            found[row, at] = wave(row / at)\n"
                                           "    return found\n");
    scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 0.9));
    scene_part(scene, "Net", "Net", 0.01, 0.9, 0);
    scene_part(scene, "Net.places", "Places", 3.2, 0, 0);
    for (unsigned i = 0; i < 4; i++) {
        char layer[16];
        snprintf(layer, sizeof layer, "Net.%u", i);
        scene_part(scene, layer, "Linear", 0.1, 0.2, 10000);
    }
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), {"table", path, 1, 5}), 300,
                  150);
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 100, 100);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 90, 90);
    scene_look(scene);
    assert_null(found(scene, SW_FINDING_SLOW_MODULE));
    const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
    assert_non_null(finding);
    assert_string_equal(finding->name, "table");
    assert_true(finding->also >> SW_FINDING_SLOW_MODULE & 1);
    scene_free(scene);
}

/* A teacher whose parameters want gradients, of which no optimizer knows. */
static void a_backward_for_nobody(void **state)
{
    (void)state;
    static const struct {
        const char *unowned;
        double backward;
        bool wasted;
    } cases[] = {{"Loss.teacher", 6, true},
                 {"Loss.teacher", 0, false}, /* it is under no_grad */
                 {NULL, 6, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const double more = cases[i].backward;
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 6, [SW_PHASE_BACKWARD] = 6 + more));
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 500, 500);
        scene_part(scene, "Net", "Net", 3, 6, 10000);
        scene_part(scene, "Loss", "Loss", 3, more, 0);
        scene_part(scene, "Loss.teacher", "Net", 3, more, 10000);
        if (cases[i].unowned) {
            scene_setting(scene, "unowned", cases[i].unowned, NULL, 10000);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, cases[i].wasted);
        if (finding) {
            assert_string_equal(finding->name, "Loss.teacher");
            assert_non_null(strstr(finding->advice[0], "torch.no_grad()"));
            assert_true(finding->speedup > 1.2 && finding->speedup < 1.9);
        }
        scene_free(scene);
    }
}

/* A backbone that is called in every step: frozen or not, over samples that come again as they were or not. */
static void a_frozen_model(void **state)
{
    (void)state;
    static const struct {
        const char *dataset, *line;
        uint64_t passes, trainable;
        bool again;
    } cases[] = {{"TensorDataset", "pass", 4, 0, true},
                 {"TensorDataset", "x = x.to(device)", 4, 0, true},
                 {"TensorDataset", "x = shift(x)", 4, 0, false},
                 {"TensorDataset", "pass", 1, 0, false},
                 {"TensorDataset", "pass", 4, 10000, false},
                 {"Photos", "pass", 4, 0, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "def train(loader):\n"
                 "    for x, y in loader:\n"
                 "        %s\n"
                 "        loss = head(backbone(x), y)\n"
                 "        loss.backward()\n",
                 cases[i].line);
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 7, [SW_PHASE_BACKWARD] = 6));
        scene_part(scene, "Head", "Head", 1, 6, 10000);
        const uint32_t section = scene_section(scene, "Backbone", SW_PHASE_FORWARD);
        for (unsigned k = 0; k < 100; k++) {
            call(scene->tb, scene->lane, section, START + (10 * k + 2) * MS, 6 * MS);
        }
        (void)scene_row(scene, SW_TABLE_MODULE, SW_ROW_MODEL,
                        KEY(section, scene_text(scene, "Backbone"), 0, 0),
                        VALUE(10000, 40000, cases[i].trainable, 0, 0));
        (void)scene_row(
            scene, SW_TABLE_LOADER, 0,
            KEY(scene_text(scene, "loader"), scene_text(scene, cases[i].dataset), 0, 8),
            VALUE(0, 2, 200, cases[i].passes, 0));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES({"train", path, 1, 4}, TORCH("call"),
                             {"Backbone.forward", "/home/u/backbone.py", 3, 7},
                             TORCH("conv")),
                      500, 500);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES({"train", path, 1, 5}, TORCH("b")),
                      500, 500);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, cases[i].again);
        if (finding) {
            assert_string_equal(finding->name, "Backbone.forward");
            assert_int_equal(evidence(finding, "passes"), 4);
            assert_true(finding->speedup > 1.6 && finding->speedup < 2);
        }
        scene_free(scene);
    }
}

/* An optimizer of the program's own that computes: in few and large calls, so that no Python shows. */
static void an_update_that_computes(void **state)
{
    (void)state;
    for (unsigned large = 0; large < 2; large++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 8,
                           [SW_PHASE_OPTIMIZER] = large ? 6 : 0.8));
        scene_setting(scene, "optimizer", "class", "Shampoo", NAN);
        scene_setting(scene, "optimizer", "tensors", NULL, 14);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 400, 400);
        scene_samples(
            scene, SW_PHASE_OPTIMIZER,
            FRAMES(TRAIN(26), {"root", "/home/u/shampoo.py", 6, 7}, TORCH("eigh")), 600,
            600);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_OPTIMIZER);
        assert_int_equal(finding != NULL, large);
        if (finding) {
            assert_string_equal(finding->file, "/home/u/shampoo.py");
            assert_int_equal(finding->line, 7);
            assert_true(finding->speedup > 1.2 && finding->speedup < 1.8);
        }
        scene_free(scene);
    }
}

static void doubles_in_jax(void **state)
{
    (void)state;
    for (unsigned wide = 0; wide < 2; wide++) {
        struct scene *scene = scene_new();
        tb_fact(scene->tb, "jax_backend", "cpu");
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 1, [SW_PHASE_SYNC] = 8));
        scene_setting(scene, "jax", "float64_elements", NULL, wide ? 400000 : 100);
        scene_setting(scene, "jax", "float32_elements", NULL, wide ? 10 : 400000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_DTYPE);
        assert_int_equal(finding != NULL, wide);
        if (finding) {
            assert_non_null(strstr(finding->advice[0], "jax_enable_x64"));
            assert_true(finding->speedup > 1.5);
        }
        scene_free(scene);
    }
}

/* The step thread sleeps in a call that belongs to no phase, while others compute; or it works there. */
/* Arrays of 64 bits in a loop without a framework: a remark, where most of it is computed with them and nothing else is told. */
static void doubles_in_numpy(void **state)
{
    (void)state;
    static const struct {
        double wide, narrow;
        uint64_t in_call;
        bool told;
    } cases[] = {{1e6, 0, 490, true}, {0, 1e6, 490, false}, {1e6, 2e6, 490, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        scene_steps(scene, 100, PHASES([SW_PHASE_OTHER] = 5));
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(20), {"step", "/home/u/net.py", 3, 9}), 500,
                      cases[i].in_call);
        scene_setting(scene, "numpy", "float64_elements", NULL, cases[i].wide);
        scene_setting(scene, "numpy", "float32_elements", NULL, cases[i].narrow);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_DTYPE);
        assert_int_equal(finding != NULL, cases[i].told);
        if (finding) {
            assert_string_equal(finding->name, "step");
            assert_int_equal(finding->severity, SW_SEVERITY_LOW);
            assert_true(finding->speedup > 1.6 && finding->speedup < 2.2);
            assert_true(finding->low <= 1);
        }
        scene_free(scene);
    }
}

static void doubles_that_are_waited_for_inside(void **state)
{
    (void)state;
    for (unsigned sleeps = 0; sleeps < 2; sleeps++) {
        struct scene *scene = scene_new();
        tb_fact(scene->tb, "jax_backend", "cpu");
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 0.2, [SW_PHASE_OTHER] = 9));
        scene_setting(scene, "jax", "float64_elements", NULL, 400000);
        scene_samples_of(
            scene, SW_PHASE_OTHER,
            FRAMES(TRAIN(20), {"call", "/v/site-packages/equinox/_jit.py", 200, 229}),
            sleeps ? 50 : 950, sleeps ? 900 : 0, 0);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_DTYPE);
        assert_int_equal(finding != NULL, sleeps);
        if (finding) {
            assert_true(finding->speedup > 1.7 && finding->speedup < 2.4);
        }
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_out_of_proportion),
        cmocka_unit_test(a_layer_that_learns_nothing),
        cmocka_unit_test(a_layer_of_which_little_is_used),
        cmocka_unit_test(a_large_table_that_is_some_of_two_phases),
        cmocka_unit_test(a_large_table_in_noise),
        cmocka_unit_test(a_table_that_is_updated_whole),
        cmocka_unit_test(a_table_beside_a_fused_update),
        cmocka_unit_test(a_table_that_is_much_of_two_phases),
        cmocka_unit_test(a_module_that_the_backward_leaves_out),
        cmocka_unit_test(a_loss_that_is_python_code),
        cmocka_unit_test(a_module_that_is_long_in_the_forward_only),
        cmocka_unit_test(a_layer_of_an_unusual_kind),
        cmocka_unit_test(a_part_that_computes_by_itself),
        cmocka_unit_test(parts_that_compute_by_themselves),
        cmocka_unit_test(a_slow_part_that_the_backward_leaves_out),
        cmocka_unit_test(a_slow_part_that_loops),
        cmocka_unit_test(a_frozen_model),
        cmocka_unit_test(a_teacher_in_a_function),
        cmocka_unit_test(a_backward_for_nobody),
        cmocka_unit_test(an_update_that_computes),
        cmocka_unit_test(doubles_in_jax),
        cmocka_unit_test(doubles_in_numpy),
        cmocka_unit_test(doubles_that_are_waited_for_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
