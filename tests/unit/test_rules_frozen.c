/* A model that nobody trains, asked about the same samples in every pass: told from its calls and from the source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/source_samples.h"
#include "rules_scene.h"

#define SET                                                                              \
    "class Pictures(Dataset):\n"                                                         \
    "    def __init__(self, count):\n"                                                   \
    "        self.pictures = torch.randn(count, 3, 32, 32)\n"                            \
    "    def __getitem__(self, index):\n"
#define GIVES SET "        return index, self.pictures[index]\n"
#define TRAINS                                                                           \
    "@torch.no_grad()\n"                                                                 \
    "def ask(teacher, pictures):\n"                                                      \
    "    return teacher(pictures)\n"                                                     \
    "def train(loader):\n"                                                               \
    "    for numbers, pictures in loader:\n"                                             \
    "        wanted = ask(teacher, pictures)\n"                                          \
    "        loss = criterion(student(pictures), wanted)\n"                              \
    "        loss.backward()\n"
#define MIXES                                                                            \
    "@torch.no_grad()\n"                                                                 \
    "def ask(teacher, pictures):\n"                                                      \
    "    return teacher(mixed(pictures))\n"                                              \
    "def train(loader):\n"                                                               \
    "    for numbers, pictures in loader:\n"                                             \
    "        wanted = ask(teacher, pictures)\n"                                          \
    "        loss = criterion(student(pictures), wanted)\n"                              \
    "        loss.backward()\n"
#define HANDED                                                                           \
    "class Pictures(Dataset):\n"                                                         \
    "    def __init__(self, count):\n"                                                   \
    "        self.pictures = load(count)\n"                                              \
    "    def __getitem__(self, index):\n"

/* What the source reads like; TRAINS begins in line 6, in all of them. */
static const struct {
    const char *text, *layer;
    double backward; /* of the teacher */
    bool again;
    const char *still;
} cases[] = {
    {GIVES TRAINS, "Dropout", 0, true, "Sequential"},
    {GIVES TRAINS, "BatchNorm2d", 0, true, "Sequential"},
    {GIVES TRAINS, "Dropout", 0, false, "Sequential 2"},
    {GIVES TRAINS, "Dropout", 6, false, "Sequential"},
    {GIVES MIXES, "Dropout", 0, false, "Sequential"},
    {GIVES TRAINS, "Conv2d", 0, true, NULL},
    {GIVES MIXES, "Conv2d", 0, false, NULL},
    {GIVES TRAINS, "Dropout", 0, false, NULL},
    {GIVES TRAINS "teacher.eval()\n", "Dropout", 0, true, NULL},
    {GIVES TRAINS, "Conv2d", 6, false, NULL}, /* somebody goes back through it */
    {SET "        return index, self.pictures[index] + torch.randn(3, 1, 1)\n" TRAINS,
     "Conv2d", 0, false, NULL},
    {HANDED "        return index, self.transform(self.pictures[index])\n" TRAINS,
     "Conv2d", 0, false, NULL},
    {HANDED "        return index, decode(self.pictures[index])\n" TRAINS, "Conv2d", 0,
     false, NULL}, /* where is that? */
    {HANDED "        return index, decode(self.pictures[index])\n" TRAINS
            "def decode(picture):\n    return picture / 255\n",
     "Conv2d", 0, true, NULL},
    {HANDED "        return index, decode(self.pictures[index])\n" TRAINS
            "def decode(picture):\n    return picture * random.random()\n",
     "Conv2d", 0, false, NULL},
    {GIVES TRAINS "        ema(teacher, student)\n", "Conv2d", 0, false, NULL},
    {GIVES TRAINS "        teacher.load_state_dict(student.state_dict())\n", "Conv2d", 0,
     false, NULL},
};

static void a_teacher_without_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, cases[i].text);
        scene_steps(scene, 100, PHASES([SW_PHASE_FORWARD] = 8, [SW_PHASE_BACKWARD] = 4));
        scene_part(scene, "Sequential", "Sequential", 6, cases[i].backward, 0);
        scene_part(scene, "Sequential.0", cases[i].layer, 6, cases[i].backward, 10000);
        scene_part(scene, "Sequential 2", "Sequential", 2, 4, 0);
        scene_part(scene, "Sequential 2.0", "Conv2d", 2, 4, 2000);
        const uint32_t loader = scene_text(scene, "loader");
        (void)scene_row(scene, SW_TABLE_SITE, 0,
                        KEY(SW_SITE_LOADER, scene_text(scene, path), 1, loader),
                        VALUE(0));
        (void)scene_row(scene, SW_TABLE_LOADER, 0,
                        KEY(loader, scene_text(scene, "Pictures"), 0, 8),
                        VALUE(0, 2, 200, 4, 1));
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES({"train", path, 9, 11}, {"ask", path, 6, 8}, TORCH("conv")),
                      600, 600);
        scene_samples(scene, SW_PHASE_FORWARD,
                      FRAMES({"train", path, 9, 12}, TORCH("conv")), 200, 200);
        scene_samples(scene, SW_PHASE_BACKWARD,
                      FRAMES({"train", path, 9, 13}, TORCH("backward")), 400, 400);
        if (cases[i].still) {
            scene_setting(scene, "still", cases[i].still, NULL, 1);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_REDUNDANT_WORK);
        const bool told = finding && strstr(finding->title, "learns nothing");
        if (told != cases[i].again) {
            print_error("case %zu: %s\n", i, finding ? finding->title : "nothing");
        }
        assert_int_equal(told, cases[i].again);
        if (told) {
            assert_string_equal(finding->name, "ask");
            assert_int_equal(finding->line, 8);
            assert_int_equal(evidence(finding, "passes"), 4);
            assert_true(finding->speedup > 1.7 && finding->speedup < 2.4);
        }
        scene_free(scene);
    }
}

static void parameters_that_move(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool moves;
    } lines[] = {{"teacher.eval()\n", false},
                 {"schema = remaining\n", false},
                 {"EMA.step()\n", true},
                 {"ema_model = build()\n", true},
                 {"old.lerp_(new, 0.01)\n", true},
                 {"teacher.load_state_dict(torch.load(path))\n", false},
                 {"target.load_state_dict(online.state_dict())\n", true}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(
            sw__source_moves_parameters(lines[i].text, strlen(lines[i].text)),
            lines[i].moves);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_teacher_without_gradients),
        cmocka_unit_test(parameters_that_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
