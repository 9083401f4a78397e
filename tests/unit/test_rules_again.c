/* Rules on what is computed again from the same, as the source reads: a model that is asked twice, and what an object holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

static const char ASKED[] = "def fit(model, batches):\n"
                            "    for x in batches:\n"
                            "        loss = one(model, x) + other(model, x)\n"
                            "        loss = one(model, x) + other(model, y)\n"
                            "        loss.backward()\n"
                            "\n"
                            "def one(model, x):\n"
                            "    return far(model(x))\n"
                            "\n"
                            "def other(model, x):\n"
                            "    out = near(model(x))\n"
                            "    more = near(model(x))\n"
                            "    x = turned(x)\n"
                            "    more = near(model(x))\n"
                            "\n"
                            "class Net:\n"
                            "    def forward(self, x):\n"
                            "        return self.layer(x)\n"
                            "\n"
                            "class Other:\n"
                            "    def forward(self, x):\n"
                            "        return self.layer(x + noise(x))\n"
                            "\n"
                            "def loop(net, batches, optimizer):\n" /* 24 */
                            "    for images, labels in batches:\n"
                            "        loss = loss_of(net, images, labels)\n"
                            "        loss.backward()\n"
                            "        optimizer.step()\n"
                            "        with torch.no_grad():\n"
                            "            right = hits(net(images), labels)\n"
                            "        more = hits(net(images), labels)\n"
                            "        other = hits(net(labels), labels)\n"
                            "\n"
                            "def loss_of(model, x, y):\n" /* 34 */
                            "    return entropy(model(x), y)\n"
                            "\n"
                            "def loss_of(model, y, x):\n" /* 37 */
                            "    return entropy(model(x), y)\n";

/* A line that calls a model, from within a line of another function; `caller` may be NULL. */
struct asked {
    const char *name;
    unsigned begins, line;
    const char *caller;
    unsigned caller_begins, caller_line;
};

/* The model: its class, and the line of its own that runs; 0 for one that has layers of torch's alone. */
struct model {
    const char *class, *layer;
    unsigned body, calls; /* calls in a step */
};

static const struct model NET = {"Net", "ReLU", 18, 2};
static const struct model NET_ONCE = {"Net", "ReLU", 18, 1};
static const struct model DROPS = {"Net", "Dropout", 18, 2};
static const struct model NOISY = {"Other", "ReLU", 22, 2};
static const struct model LAYERS = {"Sequential", "ReLU", 0, 2};

static void add_model(struct scene *scene, const struct model *model)
{
    char layer[32];
    (void)snprintf(layer, sizeof layer, "%s.layer", model->class);
    const uint32_t root = scene_section(scene, model->class, SW_PHASE_FORWARD);
    const uint32_t inner = scene_section(scene, layer, SW_PHASE_INHERIT);
    for (unsigned k = 0; k < 100 * model->calls; k++) {
        call(scene->tb, scene->lane, root, START + 5 * k * MS, 4 * MS);
        call(scene->tb, scene->lane, inner, START + 5 * k * MS, MS);
    }
    (void)scene_row(scene, SW_TABLE_MODULE, SW_ROW_MODEL,
                    KEY(root, scene_text(scene, model->class), 0, 0),
                    VALUE(0, 0, 0, 8 * MS, 1));
    (void)scene_row(scene, SW_TABLE_MODULE, 0,
                    KEY(inner, scene_text(scene, model->layer), 0, 0),
                    VALUE(1000, 4000, 1000, MS, 1));
}

static void add_samples(struct scene *scene, const char *path, const struct asked *asked,
                        const struct model *model)
{
    char forward[32];
    (void)snprintf(forward, sizeof forward, "%s.forward", model->class);
    struct scene_frame frames[6] = {{0}};
    size_t count = 0;
    if (asked->caller) {
        frames[count++] = (struct scene_frame){asked->caller, path, asked->caller_begins,
                                               asked->caller_line};
    }
    frames[count++] = (struct scene_frame){asked->name, path, asked->begins, asked->line};
    frames[count++] = (struct scene_frame)TORCH("call");
    if (model->body) {
        frames[count++] =
            (struct scene_frame){forward, path, model->body - 1, model->body};
    }
    frames[count] = (struct scene_frame)TORCH("linear");
    scene_samples(scene, SW_PHASE_FORWARD, frames, 400, 400);
}

/* Half of a step's forward is the one call, half the other; `gain`: the least that is predicted, 0 where nothing is to be said. */
static void look_at(const struct asked *one, const struct asked *two,
                    const struct model *model, double gain)
{
    struct scene *scene = scene_new();
    const char *path = scene_source(scene, ASKED);
    scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = 8));
    add_model(scene, model);
    add_samples(scene, path, one, model);
    add_samples(scene, path, two, model);
    scene_samples(scene, SW_PHASE_BACKWARD,
                  FRAMES({"fit", path, 1, 5}, TORCH("backward")), 800, 800);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
    assert_int_equal(finding != NULL, gain > 0);
    if (finding) {
        assert_int_equal(finding->line, one->line);
        assert_true(evidence(finding, "calls_alike") == 2);
        assert_true(finding->speedup > gain && finding->speedup < 1.25 * gain);
    } else {
        assert_silent(scene);
    }
    scene_free(scene);
}

static void in_two_functions_that_are_given_the_same(void **state)
{
    (void)state;
    const struct asked one = {"one", 7, 8, "fit", 1, 3};
    const struct asked other = {"other", 10, 11, "fit", 1, 3};
    const struct asked one_y = {"one", 7, 8, "fit", 1, 4};
    const struct asked other_y = {"other", 10, 11, "fit", 1, 4};
    look_at(&one, &other, &NET, 1.8);
    look_at(&one_y, &other_y, &NET, 0);  /* they are given x and y */
    look_at(&one, &other, &DROPS, 0);    /* never twice the same */
    look_at(&one, &other, &NOISY, 0);    /* nor here */
    look_at(&one, &other, &NET_ONCE, 0); /* by turns */
}

static void in_two_lines_of_a_function(void **state)
{
    (void)state;
    const struct asked first = {"other", 10, 11, "fit", 1, 3};
    const struct asked second = {"other", 10, 12, "fit", 1, 3};
    const struct asked third = {"other", 10, 14, "fit", 1, 3};
    look_at(&first, &second, &NET, 1.8);
    look_at(&second, &third, &NET, 0); /* x is new */
}

/* A loop that asks for the loss and once more for a metric, after the update: nobody goes back through the second, so that only its
 * forward is saved. */
static void in_a_function_and_one_that_it_calls(void **state)
{
    (void)state;
    const struct asked loss = {"loss_of", 34, 35, "loop", 24, 26};
    const struct asked turned = {"loss_of", 37, 38, "loop", 24, 26};
    const struct asked metric = {"loop", 24, 30, NULL, 0, 0};
    const struct asked trained = {"loop", 24, 31, NULL, 0, 0};
    const struct asked labels = {"loop", 24, 32, NULL, 0, 0};
    look_at(&loss, &metric, &NET, 1.25);
    look_at(&loss, &metric, &LAYERS, 1.25);
    look_at(&turned, &metric, &NET, 0); /* its x are the labels */
    look_at(&loss, &trained, &NET, 0);  /* with gradients, after the update */
    look_at(&loss, &labels, &NET, 0);
}

/* A function that a method calls in every step, with what its object has had since it was built. */
static void computed_from_what_is_held(void **state)
{
    (void)state;
    static const struct {
        const char *given, *after, *inside;
        bool again;
    } cases[] = {
        {"self.table", "", "table.mean()", true},
        {"self.table, SCALE", "", "table.mean()", true},
        {"self.table, rows", "", "table.mean()", false},
        {"self.table", "        self.table = fresh()\n", "table.mean()", false},
        {"self.table", "        self.table[0] = 1\n", "table.mean()", false},
        {"self.table", "        random.shuffle(self.table)\n", "table.mean()", false},
        {"self.table", "        self.other = self.table\n", "table.mean()", true},
        {"self.table", "", "table + noise(table)", false},
        {"self.weights", "", "table.mean()", false}, /* it may learn */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[600];
        (void)snprintf(text, sizeof text,
                       "def standardise(table, scale=1):\n"
                       "    return table - %s\n"
                       "\n"
                       "class Table:\n"
                       "    def __init__(self, rows):\n"
                       "        self.table = self.weights = read(rows)\n"
                       "\n"
                       "    def batch(self, rows):\n"
                       "        table = standardise(%s)\n"
                       "%s"
                       "        return table[rows]\n",
                       cases[i].inside, cases[i].given, cases[i].after);
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_OTHER] = 10));
        scene_samples(
            scene, SW_PHASE_OTHER,
            FRAMES(TRAIN(20), {"Table.batch", path, 8, 9}, {"standardise", path, 1, 2}),
            600, 590);
        scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(22)), 400, 390);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, cases[i].again);
        if (finding) {
            assert_string_equal(finding->name, "standardise");
            assert_true(finding->speedup > 2 && finding->speedup < 2.8);
        }
        scene_free(scene);
    }
}

/* A part of a model that makes something of its buffers, for nobody's question; and parts that are asked, learn, draw or go on. */
static void part_that_is_given_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *head, *inside;
        double backward;
        uint64_t parameters;
        bool again;
    } cases[] = {
        {"def forward(self):", "a[self.edges] = self.length.exp()", 0, 0, true},
        {"def forward(self) -> Tensor:", "a = self.length.exp()", 0, 0, true},
        {"def forward(self, x):", "a = self.length.exp()", 0, 0, false},
        {"def forward(self, *given):", "a = self.length.exp()", 0, 0, false},
        {"def forward(self):", "a = self.length.exp()", 0, 1000, false},
        {"def forward(self):", "a = self.length.exp()", 5, 0, false},
        {"def forward(self):", "a = torch.randn(self.size)", 0, 0, false},
        {"def forward(self):", "self.length = self.length * 0.9", 0, 0, false},
        {"def forward(self):", "self.length.mul_(0.9)", 0, 0, false},
        {"def forward(self):", "a = next(self.rows)", 0, 0, false},
        {"def forward(self):", "a = self.moved.exp()", 0, 0,
         false}, /* by another method */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[400];
        (void)snprintf(text, sizeof text,
                       "class Town(nn.Module):\n"
                       "    def operators(self):\n"
                       "        a = torch.eye(self.size)\n"
                       "        %s\n"
                       "        return a @ a\n"
                       "\n"
                       "    %s\n"
                       "        return self.operators()\n"
                       "\n"
                       "    def follow(self, x):\n"
                       "        self.moved.lerp_(x, 0.1)\n",
                       cases[i].inside, cases[i].head);
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = 9));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), TORCH("f"), {"Net.forward", path, 20, 22},
                             TORCH("f"), {"Town.forward", path, 7, 8},
                             {"Town.operators", path, 2, 5}),
                      500, 500);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 300, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 900, 900);
        scene_part(scene, "Net", "Net", 0.1, 6, 10);
        scene_part(scene, "Net.town", "Town", 5, cases[i].backward, cases[i].parameters);
        scene_part(scene, "Net.one", "Linear", 0.5, 1, 5000);
        scene_part(scene, "Net.two", "Linear", 0.5, 1, 5000);
        scene_part(scene, "Net.three", "Linear", 0.5, 1, 5000);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        assert_int_equal(finding != NULL, cases[i].again);
        if (finding) {
            assert_string_equal(finding->name, "Town.operators");
            assert_non_null(strstr(finding->advice[0], "without arguments"));
            assert_null(found(scene, SW_FINDING_SLOW_MODULE)); /* it is why */
            assert_true(finding->speedup > 1.3 && finding->speedup < 1.6);
        }
        scene_free(scene);
    }
}

/* An encoder that stays as it is, within a model that is trained: what it is given is told from the source of the model. */
static void frozen_part_that_is_given_what_is_held(void **state)
{
    (void)state;
    static const struct {
        const char *given, *elsewhere, *layer;
        uint64_t trained;
        bool again;
        const char *before, *still;
    } cases[] = {
        {"self.prompts", "", "Dropout", 0, true, NULL, "Clip.text"},
        {"self.prompts", "", "Dropout", 0, true, NULL, "Clip"},
        {"self.prompts", "", "Dropout", 0, false, NULL, "Clip.texts"},
        {"self.prompts", "", "Dropout", 0, false, NULL, "Clip.text.1"},
        {"images", "", "Dropout", 0, false, NULL, "Clip.text"},
        {"self.prompts", "", "Dropout", 1000, false, NULL, "Clip.text"},
        {"self.prompts, mask=mask", "", "Linear", 0, true,
         "mask = (self.prompts > 0).long()", NULL},
        {"self.prompts, mask", "", "Linear", 0, true,
         "mask = torch.ones_like(self.prompts, dtype=torch.long)", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, true,
         "wide = len(self.prompts)\n        mask = self.mask[:wide]", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "pass", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "mask = images > 0", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "mask = self.drawn()", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "mask = self.mask.take()",
         NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "mask = read(self.mask)",
         NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask = len(self.image.weight)", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask = torch.rand_like(self.prompts)", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask = self.prompts > 0\n        mask[0] = self.count", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask = self.prompts > 0\n        mask = images", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask = self.prompts > 0\n        mask.copy_(images)", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "mask, rest = self.prompts, images", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false,
         "for mask in images:\n            pass", NULL},
        {"self.prompts, mask=mask", "", "Linear", 0, false, "mask = mask + self.mask",
         NULL},
        {"self.prompts", "", "Linear", 0, true, NULL, NULL},
        {"self.prompts, mask=self.mask, scale=2", "", "Linear", 0, true, NULL, NULL},
        {"\n            self.prompts,\n        ", "", "Linear", 0, true, NULL, NULL},
        {"self.prompts", "        self.text(self.mask)\n", "Linear", 0, true, NULL, NULL},
        {"images", "", "Linear", 0, false, NULL, NULL},
        {"self.prompts[images]", "", "Linear", 0, false, NULL, NULL},
        {"embed(self.prompts)", "", "Linear", 0, false, NULL, NULL},
        {"self.prompts", "", "Linear", 1000, false, NULL, NULL},
        {"self.prompts", "        self.text(images)\n", "Linear", 0, false, NULL, NULL},
        {"self.prompts", "        self.prompts = images\n", "Linear", 0, false, NULL,
         NULL},
        {"self.prompts) + self.text(images", "", "Linear", 0, false, NULL, NULL},
        {"self.prompts", "        self.mask.copy_(images)\n", "Linear", 0, false, NULL,
         NULL},
        {"self.prompts", "", "Dropout", 0, false, NULL, NULL},
        {"self.prompts", "        self.text.eval()\n", "Dropout", 0, true, NULL, NULL},
        {"self.prompts", "", NULL, 0, false, NULL,
         NULL}, /* its class is not in the file */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[900];
        (void)snprintf(text, sizeof text,
                       "class %s(nn.Module):\n"
                       "    def __init__(self, names, mask):\n"
                       "        self.text, self.prompts = Text(), tokens(names)\n"
                       "        self.mask = mask\n"
                       "        print(self.text(names))\n"
                       "\n"
                       "    @torch.no_grad()\n"
                       "    def vectors(self):\n"
                       "        %s\n"
                       "        return F.normalize(self.text(%s))\n"
                       "\n"
                       "    def forward(self, images):\n"
                       "        vectors = self.vectors()\n"
                       "%s"
                       "        return self.image(images) @ vectors.T\n",
                       cases[i].layer ? "Clip" : "Clipper",
                       cases[i].before ? cases[i].before : "print()", cases[i].given,
                       cases[i].elsewhere);
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = 4));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), {"Clip.forward", path, 12, 13},
                             {"Clip.vectors", path, 7, 10}, TORCH("linear")),
                      500, 500);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES(TRAIN(20), {"Clip.forward", path, 12, 14}, TORCH("conv")),
                      300, 300);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 400, 400);
        scene_part(scene, "Clip", "Clip", 0.1, 4, 10);
        scene_part_of(scene, "Clip.text", "Text", 5, 0, 0, 0);
        scene_part_of(scene, "Clip.text.0", cases[i].layer ? cases[i].layer : "Linear",
                      2.5, 0, 9000, cases[i].trained);
        scene_part_of(scene, "Clip.text.1", "Linear", 2.5, 0, 9000, 0);
        scene_part(scene, "Clip.image", "Conv2d", 3, 4, 2000);
        if (cases[i].still) {
            scene_setting(scene, "still", cases[i].still, NULL, 1);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        const bool told = finding && strstr(finding->title, "given the same");
        if (told != cases[i].again) {
            print_error("case %zu: %s\n", i, finding ? finding->title : "nothing");
        }
        assert_int_equal(told, cases[i].again);
        if (told) {
            assert_string_equal(finding->name, "Clip.vectors");
            size_t lines = 10; /* of the call */
            for (const char *c = cases[i].before; c && *c; c++) {
                lines += *c == '\n';
            }
            assert_int_equal(finding->line, lines);
            assert_true(finding->speedup > 1.5 && finding->speedup < 1.8);
        }
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_two_functions_that_are_given_the_same),
        cmocka_unit_test(in_two_lines_of_a_function),
        cmocka_unit_test(in_a_function_and_one_that_it_calls),
        cmocka_unit_test(computed_from_what_is_held),
        cmocka_unit_test(part_that_is_given_nothing),
        cmocka_unit_test(frozen_part_that_is_given_what_is_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
