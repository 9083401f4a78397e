/* Rows that the training process picks from tensors in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "analyze/source_gathers.h"
#include "rules_scene.h"

static void statements_that_only_gather(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool only;
    } lines[] = {{"others = self.features[self.table[chosen]]\n", true},
                 {"x, y = images[at : at + 32], labels[order]\n", false}, /* it adds */
                 {"x, y = images[rows], labels[rows]\n", true},
                 {"x = blur(images[rows])\n", false},
                 {"x = images[rows] / 255\n", false},
                 {"x = images\n", false},
                 {"x += images[rows]\n", false},
                 {"x = [1, 2]\n", false},
                 {"images[rows]\n", false}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(sw__source_only_gathers(lines[i].text, strlen(lines[i].text), 1),
                         lines[i].only);
    }
}

/* A program without a loader: picking rows is a remark, work on them is a finding; and so is picking where a loader is at hand. */
static void rows_are_picked(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        bool loader, low;
    } cases[] = {{"x = features[table[rows]]", false, true},
                 {"x = blur(features[rows])", false, false},
                 {"x = features[table[rows]]", true, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[300];
        snprintf(text, sizeof text,
                 "def train(steps):\n"
                 "    for rows in steps:\n"
                 "        %s\n"
                 "        loss = model(x)\n"
                 "        loss.backward()\n",
                 cases[i].line);
        struct scene *scene = scene_new();
        const char *path = scene_source(scene, text);
        scene_steps(scene, 100,
                    PHASES([SW_PHASE_FORWARD] = 4, [SW_PHASE_BACKWARD] = 5,
                           [SW_PHASE_OTHER] = 6));
        if (cases[i].loader) {
            (void)scene_row(
                scene, SW_TABLE_LOADER, 0,
                KEY(scene_text(scene, "loader"), scene_text(scene, "Rows"), 0, 8),
                VALUE(0, 2, 200, 4, 0));
        }
        scene_samples(scene, SW_PHASE_OTHER, FRAMES({"train", path, 1, 3}), 590, 590);
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES({"train", path, 1, 4}, TORCH("f")),
                      400, 400);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES({"train", path, 1, 5}, TORCH("b")),
                      500, 500);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_LOADER_MAIN_PROCESS);
        assert_non_null(finding);
        assert_int_equal(finding->severity == SW_SEVERITY_LOW, cases[i].low);
        scene_free(scene);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statements_that_only_gather),
        cmocka_unit_test(rows_are_picked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
