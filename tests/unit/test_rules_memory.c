/* Memory that is kept and makes steps longer, or runs short: near the limit, swapped out, waited for; and programs that are well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rules_scene.h"

#define COMPUTE [SW_PHASE_FORWARD] = 20, [SW_PHASE_BACKWARD] = 30, [SW_PHASE_OTHER] = 5
#define MIB ((uint64_t)1 << 20)

static uint64_t bits(double value)
{
    uint64_t number;
    memcpy(&number, &value, sizeof number);
    return number;
}

/* A process that had at most `peak` while `room` was left, in MiB. */
static struct scene *process(uint64_t peak, uint64_t room, uint64_t swapped)
{
    struct scene *scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    scene_row(scene, SW_TABLE_MEMORY, 0, KEY(0),
              VALUE(peak / 2 * MIB, peak * MIB, peak * MIB,
                    room == UINT64_MAX ? UINT64_MAX : room * MIB, swapped * MIB));
    return scene;
}

/* Some program waited for memory so many of ten seconds. */
static void waited(struct scene *scene, double seconds)
{
    scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "pressure"), 0, 0, 0),
              VALUE(2, 1, 0));
    scene_row(
        scene, SW_TABLE_SERIES, 0,
        KEY(scene_text(scene, "pressure.memory"), scene_text(scene, "s"), SW_SERIES_TOTAL,
            0),
        VALUE(2, bits(seconds), 10000000000u, bits(seconds / 10), bits(seconds / 10)));
}

static const sw_finding *look(struct scene *scene)
{
    scene_look(scene);
    return found(scene, SW_FINDING_MEMORY_PRESSURE);
}

/* Why it could not be looked for. */
static const char *why_not(const struct scene *scene)
{
    const char *why = NULL;
    assert_false(sw_findings_checked(scene->findings, SW_FINDING_MEMORY_PRESSURE, &why));
    return why;
}

static void near_the_limit(void **state)
{
    (void)state;
    struct scene *scene = process(8500, 1500, 0);
    const sw_finding *finding = look(scene);
    assert_non_null(finding);
    assert_string_equal(finding->title, "85 % of the memory that it can have is in use");
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    assert_true(fabs(evidence(finding, "memory_share") - 0.85) < 1e-9);
    assert_true(fabs(evidence(finding, "least_room_mb") - 1572.864) < 1e-3);
    assert_non_null(strstr(finding->advice[0], "smaller batches"));
    assert_non_null(strstr(finding->advice[1], "--memory"));
    scene_free(scene);

    scene = process(9700, 300, 0);
    finding = look(scene);
    assert_non_null(finding);
    assert_int_equal(finding->severity, SW_SEVERITY_HIGH);
    scene_free(scene);

    /* Nothing is left at all. */
    scene = process(9700, 0, 0);
    assert_non_null(look(scene));
    scene_free(scene);
}

/* What the backward keeps need not be kept, where it is much. */
static void backward_near_the_limit(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene *scene = scene_new();
        scene_steps(
            scene, 100,
            PHASES([SW_PHASE_FORWARD] = i ? 3 : 8, [SW_PHASE_BACKWARD] = i ? 7 : 2));
        scene_row(scene, SW_TABLE_MEMORY, 0, KEY(0),
                  VALUE(100 * MIB, 8500 * MIB, 8500 * MIB, 1500 * MIB, 0));
        const sw_finding *finding = look(scene);
        bool told = false;
        assert_non_null(finding);
        for (size_t k = 0; finding->advice[k]; k++) {
            told = told || strstr(finding->advice[k], "gradient checkpointing");
        }
        assert_int_equal(told, i == 1);
        scene_free(scene);
    }
}

/* A control group's limit is known, and what the process had at its steps: the monitor looked when more was left. */
static void near_the_limit_of_a_group(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct scene *scene = process(9000, 5000, 0);
        const double limit = (i ? 9300.0 : 20000.0) * (double)MIB;
        scene_row(scene, SW_TABLE_SOURCE, 0, KEY(scene_text(scene, "cgroup"), 0, 0, 0),
                  VALUE(2, 1, 0));
        scene_row(scene, SW_TABLE_SERIES, 0,
                  KEY(scene_text(scene, "cgroup.memory_limit"), scene_text(scene, "B"),
                      SW_SERIES_GAUGE, 0),
                  VALUE(2, bits(2 * limit), bits(limit), bits(limit), bits(limit)));
        const sw_finding *finding = look(scene);
        assert_int_equal(finding != NULL, i == 1);
        if (finding) {
            assert_true(fabs(evidence(finding, "least_room_mb") - 314.5728) < 1e-3);
        }
        scene_free(scene);
    }
}

static void swapped_out(void **state)
{
    (void)state;
    struct scene *scene = process(2000, 6000, 500);
    const sw_finding *finding = look(scene);
    assert_non_null(finding);
    assert_string_equal(finding->title, "524 MB of the program were swapped out");
    assert_int_equal(finding->severity, SW_SEVERITY_HIGH);
    assert_true(fabs(evidence(finding, "swapped_mb") - 524.288) < 1e-3);
    scene_free(scene);
}

static void waited_for(void **state)
{
    (void)state;
    struct scene *scene = process(5000, 5000, 0);
    waited(scene, 2.3);
    const sw_finding *finding = look(scene);
    assert_non_null(finding);
    assert_string_equal(finding->title,
                        "Programs of the machine waited for memory 23 % of the time");
    assert_true(fabs(evidence(finding, "stalled_share") - 0.23) < 1e-9);
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    scene_free(scene);

    /* Near the limit that comes first, with the waiting as evidence. */
    scene = process(9000, 1000, 0);
    waited(scene, 2.3);
    finding = look(scene);
    assert_non_null(finding);
    assert_string_equal(finding->title, "90 % of the memory that it can have is in use");
    assert_true(fabs(evidence(finding, "stalled_share") - 0.23) < 1e-9);
    scene_free(scene);
}

/* Steps of which the last takes `longer` times what the first does. */
static void longer_and_longer(struct scene *scene, double longer)
{
    for (unsigned k = 0; k < 100; k++) {
        const double more = 1 + (longer - 1) * k / 100;
        scene_step(scene,
                   PHASES([SW_PHASE_FORWARD] = more, [SW_PHASE_OTHER] = 0.4 * more,
                          [SW_PHASE_BACKWARD] = 2 * more),
                   0);
    }
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("f")), 400, 400);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("b")), 800, 800);
}

/* What is kept makes each step longer than the one before, where the source puts it at the end of what is there. */
static void steps_that_get_longer(void **state)
{
    (void)state;
    static const struct {
        const char *push;
        double longer; /* the last step, of the first */
        bool piles;
    } cases[] = {
        {"self.keys = torch.cat([self.keys, keys])", 4, true},
        {"self.keys = np.concatenate(\n            (self.keys, keys), axis=0\n        )",
         4, true},
        {"if self.keys is not None:\n            keys = torch.cat([self.keys, keys])\n"
         "        self.keys = keys[-self.limit :] if self.limit else keys",
         4, true},
        {"self.keys = torch.cat([self.keys, keys])", 1.2, false},
        {"both = torch.cat([both, keys])", 4, false}, /* of this step alone */
        {"self.keys = torch.cat([keys, self.keys2])", 4, false},
        {"both = torch.cat([self.keys, keys])", 4, false},
        {"both = torch.cat([self.keys, keys])\n        self.keys = both[-256:]", 4,
         false}, /* no more than so many */
        {"both = torch.cat([self.keys, keys])\n        self.last = both", 4, false},
        {"self.keys[:, 0] = torch.cat([self.keys, keys])", 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[300];
        snprintf(text, sizeof text,
                 "class Bank:\n    @torch.no_grad()\n    def push(\n        self, keys\n"
                 "    ):\n        %s\n\n    def other(self):\n"
                 "        self.b = torch.cat([self.b, self.b])\n",
                 cases[i].push);
        const char *file = scene_source(scene, text);
        longer_and_longer(scene, cases[i].longer);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(31), {"Bank.push", file, 2, 6}, TORCH("cat")), 160,
                      160);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
        assert_int_equal(finding != NULL, cases[i].piles);
        if (finding) {
            assert_string_equal(finding->name, "Bank.push");
            assert_int_equal(finding->line, strncmp(cases[i].push, "if", 2) ? 6 : 7);
            assert_true(finding->speedup > 1.6 && finding->speedup < 2.4);
            /* Copying all of it drives the rest from the caches. */
            const double alone = 1 / (1 - finding->share);
            assert_true(finding->speedup > 1.03 * alone &&
                        finding->speedup < 1.2 * alone);
            assert_non_null(strstr(finding->advice[0], "keys = "));
            assert_null(found(scene, SW_FINDING_LOGGING)); /* it is the same time */
        }
        scene_free(scene);
    }
}

/* The same where it is kept in a list, of which each step makes one tensor: not where something is taken out again, or the list is
 * another one each time, nor where steps do not get longer. */
static void lists_that_get_longer(void **state)
{
    (void)state;
    static const struct {
        const char *all, *rest;
        double longer; /* the last step, of the first */
        bool piles;
    } cases[] = {{"return torch.cat(list(self.kept))", "pass", 4, true},
                 {"return torch.stack(self.kept, 1)", "self.other = []", 4, true},
                 {"return torch.cat(self.kept)", "pass", 1.2, false},
                 {"return torch.cat(self.kept)", "self.kept.clear()", 4, false},
                 {"return torch.cat(self.kept)", "self.kept = []", 4, false},
                 {"return torch.cat(self.kept)", "del self.kept[0]", 4, false},
                 {"return torch.cat(self.kept)",
                  "if self.limit is not None:\n            self.kept = self.kept[-9:]", 4,
                  true}, /* it is not given, or steps would be alike */
                 {"return torch.cat(self.kept)",
                  "if len(self.kept) > 9:\n            self.kept.pop(0)", 4, false},
                 {"return torch.cat(self.others)", "pass", 4, false},
                 {"return torch.cat([self.kept, other])", "pass", 4, false},
                 {"return torch.cat(parts)", "parts.append(1)", 4, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct scene *scene = scene_new();
        char text[400];
        snprintf(text, sizeof text,
                 "class Bank:\n    def __init__(self, limit=None):\n"
                 "        self.kept = deque(maxlen=limit)\n\n"
                 "    def add(self, keys):\n        self.kept.append(keys)\n\n"
                 "    def all(self):\n        %s\n\n    def end(self):\n        %s\n",
                 cases[i].all, cases[i].rest);
        const char *file = scene_source(scene, text);
        longer_and_longer(scene, cases[i].longer);
        scene_samples(scene, SW_PHASE_OTHER,
                      FRAMES(TRAIN(22), {"Bank.all", file, 8, 9}, TORCH("cat")), 160,
                      160);
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
        assert_int_equal(finding != NULL, cases[i].piles);
        if (finding) {
            assert_string_equal(finding->name, "Bank.all");
            assert_int_equal(finding->line, 9);
            assert_true(finding->speedup > 1.6 && finding->speedup < 2.4);
            assert_non_null(strstr(finding->advice[0], "maxlen="));
        }
        scene_free(scene);
    }
}

/* The line that puts it there is named, and what it takes after the update is no logging, though that would gain more. */
static void a_pile_is_no_metric(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    const char *file = scene_source(scene, "def train(model, batches, bank):\n"
                                           "    for batch in batches:\n"
                                           "        loss, features = model(batch)\n"
                                           "        loss.backward()\n"
                                           "        bank.add(features)\n"
                                           "class Bank:\n"
                                           "    def add(self, keys):\n"
                                           "        keys = torch.cat([self.keys, keys])\n"
                                           "        self.keys = keys\n");
    for (unsigned i = 0; i < 120; i++) {
        scene->memory_bytes = 400 * MIB + i * 300000;
        scene_step(scene,
                   PHASES([SW_PHASE_FORWARD] = 10, [SW_PHASE_BACKWARD] = 15,
                          [SW_PHASE_OTHER] = 0.5 * i),
                   0);
    }
    const struct scene_frame model = {"train", file, 1, 3}, back = {"train", file, 1, 4},
                             after = {"train", file, 1, 5},
                             add = {"Bank.add", file, 7, 8};
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(model, TORCH("forward")), 120, 120);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(back, TORCH("backward")), 180, 180);
    scene_samples(scene, SW_PHASE_OTHER, FRAMES(after, add, TORCH("cat")), 360, 360);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_string_equal(finding->name, "Bank.add");
    assert_int_equal(finding->line, 8);
    assert_true(finding->also & (uint64_t)1 << SW_FINDING_LOGGING);
    assert_null(found(scene, SW_FINDING_LOGGING));
    scene_free(scene);
}

static void healthy(void **state)
{
    (void)state;
    struct scene *scene = process(5000, 5000, 0);
    waited(scene, 0.2);
    assert_null(look(scene));
    assert_silent(scene);
    scene_free(scene);

    /* Others wait for memory, and this one has little. */
    scene = process(500, 9500, 0);
    waited(scene, 5);
    assert_null(look(scene));
    scene_free(scene);

    /* A little in swap is where the kernel puts what nobody uses; just below the limit is below it. */
    scene = process(7900, 2100, 15);
    assert_null(look(scene));
    scene_free(scene);
}

static void not_known(void **state)
{
    (void)state;
    struct scene *scene = process(5000, UINT64_MAX, 500);
    assert_null(look(scene));
    assert_non_null(strstr(why_not(scene), "not recorded"));
    scene_free(scene);

    scene = scene_new();
    scene_steps(scene, 100, PHASES(COMPUTE));
    assert_null(look(scene));
    assert_non_null(why_not(scene));
    scene_free(scene);
}

/* Memory that grows by 300 KB a step, while batches differ in size (or not): every one takes as long as it is large. */
static struct scene *growing_from(uint64_t bytes, bool differ, const char *source)
{
    struct scene *scene = scene_new();
    uint64_t chance = 5;
    for (unsigned i = 0; i < 120; i++) {
        const double size = differ ? 0.5 + (double)(tb_random(&chance) % 100) / 50 : 1;
        scene->memory_bytes = bytes + i * 300000;
        scene_step(scene,
                   PHASES([SW_PHASE_FORWARD] = 20 * size, [SW_PHASE_BACKWARD] = 30 * size,
                          [SW_PHASE_OTHER] = 5),
                   0);
    }
    if (source) {
        const struct scene_frame at = {"train", scene_source(scene, source), 1, 3};
        scene_samples(scene, SW_PHASE_FORWARD, FRAMES(at, TORCH("forward")), 200, 200);
        scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(at, TORCH("backward")), 300, 300);
    }
    return scene;
}

static struct scene *growing(bool differ, const char *source)
{
    return growing_from(400 * MIB, differ, source);
}

static void slight_growth_may_be_pieces(void **state)
{
    (void)state;
    struct scene *scene = growing_from(800 * MIB, false, NULL);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->severity, SW_SEVERITY_LOW);
    assert_non_null(strstr(finding->advice[1], "levels off"));
    scene_free(scene);

    /* Unless a line keeps something. */
    scene = growing_from(800 * MIB, false,
                         "def train(model, batches, kept):\n"
                         "    for batch in batches:\n"
                         "        loss = model(batch)\n"
                         "        loss.backward()\n"
                         "        kept.append(loss)\n");
    scene_look(scene);
    finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    scene_free(scene);
}

/* A block of 9 MiB now and then, at one of six readings, is no room for one more; as much at every second one is kept. */
static void growth_in_few_jumps_may_level_off(void **state)
{
    (void)state;
    for (unsigned often = 0; often < 2; often++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 72; i++) {
            scene->memory_bytes =
                400 * MIB + (often ? i / 2 * 3 * MIB / 2 : i / 6 * 9 * MIB);
            scene_step(scene, PHASES(COMPUTE), 0);
        }
        scene_look(scene);
        const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
        assert_non_null(finding);
        assert_int_equal(finding->severity, often ? SW_SEVERITY_MEDIUM : SW_SEVERITY_LOW);
        scene_free(scene);
    }
}

static void growth_with_new_sizes_may_level_off(void **state)
{
    (void)state;
    struct scene *scene = growing(false, NULL);
    scene_look(scene);
    const sw_finding *finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    scene_free(scene);

    scene = growing(true, NULL);
    scene_look(scene);
    finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->severity, SW_SEVERITY_LOW);
    assert_non_null(strstr(finding->advice[1], "differ in size"));
    scene_free(scene);

    /* A line that keeps something explains it better. */
    scene = growing(true, "def train(model, batches, kept):\n"
                          "    for batch in batches:\n"
                          "        loss = model(batch)\n"
                          "        loss.backward()\n"
                          "        kept.append(loss)\n");
    scene_look(scene);
    finding = found(scene, SW_FINDING_MEMORY_GROWTH);
    assert_non_null(finding);
    assert_int_equal(finding->line, 5);
    assert_int_equal(finding->severity, SW_SEVERITY_MEDIUM);
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(near_the_limit),
        cmocka_unit_test(backward_near_the_limit),
        cmocka_unit_test(near_the_limit_of_a_group),
        cmocka_unit_test(swapped_out),
        cmocka_unit_test(waited_for),
        cmocka_unit_test(healthy),
        cmocka_unit_test(steps_that_get_longer),
        cmocka_unit_test(lists_that_get_longer),
        cmocka_unit_test(a_pile_is_no_metric),
        cmocka_unit_test(slight_growth_may_be_pieces),
        cmocka_unit_test(not_known),
        cmocka_unit_test(growth_in_few_jumps_may_level_off),
        cmocka_unit_test(growth_with_new_sizes_may_level_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
