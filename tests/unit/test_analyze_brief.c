/* Steps that are watched in brief: what is known of all of them, and what of those that were looked at in full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stepwatch/compare.h>
#include <stepwatch/export.h>

#include "rules_scene.h"

#define LOOKED                                                                           \
    PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_FORWARD] = 3, [SW_PHASE_BACKWARD] = 5,    \
           [SW_PHASE_OTHER] = 1)

static const sw_summary *summary_of(struct scene *scene)
{
    if (scene->tb) {
        scene->tb->super.end_snapshot = tb_snapshot(scene->tb, scene->at + MS);
        scene_close(scene);
    }
    return scene->fixture->summary ? scene->fixture->summary : summarise(scene->fixture);
}

static uint64_t sum_of(const sw_summary_steps *steps)
{
    uint64_t sum = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        sum += steps->phase[p].total_ns;
    }
    return sum;
}

static double ratio_of(const sw_summary_steps *steps, unsigned a, unsigned b)
{
    return (double)steps->phase[a].total_ns / (double)steps->phase[b].total_ns;
}

/* --- phases --- */

static void what_is_left_is_divided(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->jitter = 0;
    for (unsigned i = 0; i < 1000; i++) {
        if (i < 100 || i % 50 < 4) {
            scene_step(scene, LOOKED, 0);
        } else {
            /* Longer ones, that wait longer. */
            scene_brief(scene, PHASES([SW_PHASE_DATA_WAIT] = 2, [SW_PHASE_FORWARD] = 18),
                        false);
        }
    }
    const sw_summary *summary = summary_of(scene);
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    const uint64_t looked = 100 + 18 * 4, brief = 1000 - looked;
    assert_int_equal(steps->count, 1000);
    assert_int_equal(steps->counted, 1000);
    assert_int_equal(steps->looked, looked);
    assert_int_equal(steps->brief, brief);
    assert_int_equal(steps->total_ns, (10 * looked + 20 * brief) * MS);
    assert_int_equal(sum_of(steps), steps->total_ns);
    double share = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        share += steps->phase[p].share;
    }
    assert_true(share == 1);
    /* What always is measured is what it was; the rest is as in steps that were looked at. */
    assert_int_equal(steps->phase[SW_PHASE_DATA_WAIT].total_ns,
                     (looked + 2 * brief) * MS);
    assert_true(fabs(ratio_of(steps, SW_PHASE_FORWARD, SW_PHASE_BACKWARD) - 0.6) < 1e-9);
    assert_true(fabs(ratio_of(steps, SW_PHASE_OTHER, SW_PHASE_BACKWARD) - 0.2) < 1e-9);
    assert_true(fabs((double)steps->phase[SW_PHASE_FORWARD].median_ns / MS - 3) < 0.1);
    assert_true(fabs((double)steps->phase[SW_PHASE_OTHER].p99_ns / MS - 1) < 0.1);
    assert_true(fabs((double)steps->phase[SW_PHASE_DATA_WAIT].median_ns / MS - 2) < 0.1);
    uint64_t count, ns;
    sw_summary_all_steps(summary, &count, &ns);
    assert_int_equal(count, 1000);
    assert_int_equal(ns, steps->total_ns);
    sw_summary_looked_steps(summary, &count, &ns);
    assert_int_equal(count, looked);
    assert_int_equal(ns, 10 * looked * MS);
    scene_free(scene);
}

static void without_them_all_is_as_measured(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_steps(scene, 50, LOOKED);
    const sw_summary *summary = summary_of(scene);
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    const sw_trace_lane *lane =
        sw_trace_get_lane(sw_run_trace(scene->fixture->run, 0), 0);
    assert_int_equal(steps->looked, steps->counted);
    assert_int_equal(steps->brief, 0);
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        assert_int_equal(steps->phase[p].total_ns, lane->phase_ns[p]);
    }
    uint64_t count, ns;
    sw_summary_looked_steps(summary, &count, &ns);
    assert_int_equal(count, 50);
    scene_free(scene);
}

/* Records were given up: what is there stands for all of it. Long steps without records must not be taken for ones that were looked at,
 * nor short ones take their time away. */
static void given_up_records_are_like_those_that_are_there(void **state)
{
    (void)state;
    for (unsigned long_ones = 0; long_ones < 2; long_ones++) {
        struct scene *scene = scene_new();
        scene->jitter = 0;
        for (unsigned i = 0; i < 1000; i++) {
            if (i % 10 == 0) {
                scene_step(scene, LOOKED, 0);
            } else {
                scene_brief(scene, LOOKED, false);
            }
        }
        struct sw__fmt_lane *file = scene->lane->file;
        const uint64_t each = (long_ones ? 40 : 1) * (uint64_t)MS;
        for (unsigned i = 0; i < 9000; i++) {
            file->steps++;
            file->step_ticks += each;
            file->phase_ticks[SW_PHASE_OTHER] += each;
            tb_count(scene->tb, file->step_hist, each);
        }
        scene->tb->super.total[SW__TOTAL_STEPS_DROPPED] = 9000;
        const sw_summary *summary = summary_of(scene);
        const sw_summary_steps *steps = sw_summary_get_steps(summary);
        assert_true(steps->thinned);
        uint64_t count, ns, all, all_ns;
        sw_summary_all_steps(summary, &all, &all_ns);
        sw_summary_looked_steps(summary, &count, &ns);
        assert_int_equal(all, 10000);
        assert_int_equal(count, 1000);
        assert_true(fabs((double)ns / (double)all_ns - 0.1) < 1e-6);
        assert_int_equal(steps->looked, 1000);
        sw_writer *writer = sw_writer_to_memory();
        sw_export_report_markdown(writer, summary, NULL);
        assert_non_null(strstr(sw_writer_text(writer, NULL),
                               "Phases are of about 1,000 of 10,000 steps"));
        assert_int_equal(sw_writer_close(writer, NULL), 0);
        scene_free(scene);
    }
}

static void without_records_nobody_knows_how_many(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    struct sw__fmt_lane *file = scene->lane->file;
    scene_step(scene, LOOKED, SW_STEP_INCOMPLETE); /* without it there is no lane */
    file->steps_incomplete = 1;
    for (unsigned i = 0; i < 100; i++) {
        file->steps++;
        file->step_ticks += 10 * (uint64_t)MS;
        file->phase_ticks[SW_PHASE_OTHER] += 10 * (uint64_t)MS;
        tb_count(scene->tb, file->step_hist, 10 * (uint64_t)MS);
    }
    scene->tb->super.total[SW__TOTAL_STEPS_DROPPED] = 100;
    const sw_summary_steps *steps = sw_summary_get_steps(summary_of(scene));
    assert_int_equal(steps->counted, 100);
    assert_true(steps->looked == SW_UNKNOWN);
    scene_free(scene);
}

/* Where a loader without workers makes batches, steps in brief have that in data_wait, even if the one that feeds them has workers. */
static void making_batches_is_taken_out_of_waiting(void **state)
{
    (void)state;
    for (unsigned workers = 0; workers < 2; workers++) {
        struct scene *scene = scene_new();
        scene->jitter = 0;
        scene_mostly_brief(scene, 1000,
                           PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_PREPROCESS] = 2,
                                  [SW_PHASE_COLLATE] = 1, [SW_PHASE_FORWARD] = 6),
                           true);
        const uint32_t name = scene_text(scene, "train_loader");
        (void)scene_row(scene, SW_TABLE_LOADER, 0, KEY(name, name, workers, 8),
                        VALUE(0, 2, 8000, 1, 0));
        /* It counts what was looked at. */
        (void)scene_row(scene, SW_TABLE_STAGE, 0,
                        KEY(name, UINT32_MAX, SW_STAGE_WAIT, name),
                        VALUE(172, 172 * 4 * (uint64_t)MS, 0, 4 * MS, 4 * MS));
        const sw_summary *summary = summary_of(scene);
        const sw_summary_steps *steps = sw_summary_get_steps(summary);
        assert_non_null(sw_summary_main_loader(summary));
        assert_int_equal(sum_of(steps), steps->total_ns);
        const double wait = (double)steps->phase[SW_PHASE_DATA_WAIT].total_ns / MS;
        const double forward = (double)steps->phase[SW_PHASE_FORWARD].total_ns / MS;
        assert_true(fabs(wait - 1000) < 1);
        assert_true(fabs(forward - 6000) < 1);
        assert_true(fabs(ratio_of(steps, SW_PHASE_PREPROCESS, SW_PHASE_COLLATE) - 2) <
                    0.01);
        assert_true(fabs((double)steps->phase[SW_PHASE_DATA_WAIT].median_ns / MS - 1) <
                    0.02);
        if (workers == 0) {
            assert_true(fabs(sw_summary_wait_share(summary) - 0.4) < 0.001);
            assert_true(steps->samples_per_s > 790 && steps->samples_per_s < 810);
        }
        scene_free(scene);
    }
}

static void slow_steps_are_explained_as_far_as_they_are_known(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_mostly_brief(scene, 300, LOOKED, false);
    scene_brief(scene, PHASES([SW_PHASE_DATA_WAIT] = 91, [SW_PHASE_FORWARD] = 9), false);
    scene_brief(scene, PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_FORWARD] = 79), false);
    scene_step(scene, PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_FORWARD] = 49), 0);
    const sw_summary_steps *steps = sw_summary_get_steps(summary_of(scene));
    assert_int_equal(steps->worst[0].phase, SW_PHASE_DATA_WAIT);
    assert_non_null(strstr(steps->worst[0].why, "data_wait"));
    assert_int_equal(steps->worst[1].phase, SW_PHASE_COUNT);
    assert_non_null(strstr(steps->worst[1].why, "watched in brief"));
    assert_true(steps->worst[1].phase_ns == SW_UNKNOWN);
    assert_int_equal(steps->worst[2].phase, SW_PHASE_FORWARD);
    scene_free(scene);
}

/* The first steps are looked at, which takes a little: that is no warm-up. */
static void looking_is_no_warm_up(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 1000; i++) {
        if (i < 100 || i % 50 < 4) {
            scene_step(scene, PHASES([SW_PHASE_FORWARD] = 1.4), 0);
        } else {
            scene_brief(scene, PHASES([SW_PHASE_FORWARD] = 1), false);
        }
    }
    assert_int_equal(sw_summary_get_steps(summary_of(scene))->warmup, 0);
    scene_free(scene);
}

/* --- what recording cost --- */

static void looking_is_measured(void **state)
{
    (void)state;
    for (unsigned bursts = 0; bursts < 2; bursts++) {
        struct scene *scene = scene_new();
        const unsigned count = bursts ? 4000 : 200;
        for (unsigned i = 0; i < count; i++) {
            if (i < 100 || i % 100 < 4) {
                scene_step(scene, PHASES([SW_PHASE_FORWARD] = 1.05), 0);
            } else {
                scene_brief(scene, PHASES([SW_PHASE_FORWARD] = 1), false);
            }
        }
        /* Hooks are only reckoned with where a model was watched. */
        scene_part(scene, "Net", "Net", 1, 0, 100);
        const sw_summary_overhead *overhead = sw_summary_get_overhead(summary_of(scene));
        assert_int_equal(strstr(overhead->how, "watched in brief") != NULL, bursts);
        if (bursts) {
            /* 256 steps of 50 us more, and 6 us in each of 4000 steps, half or twice that on this machine. */
            const double looking = 256 * 50e-6, each = 4000 * 6e-6;
            assert_true(overhead->seconds > 0.9 * (looking + each / 2));
            assert_true(overhead->seconds < 1.2 * (looking + each * 2));
            assert_true(overhead->low < overhead->percent &&
                        overhead->percent < overhead->high);
        }
        scene_free(scene);
    }
}

/* The first step of a pass over a loader is looked at alone, and longer because the pass begins. */
static void first_steps_of_passes_do_not_tell_what_looking_costs(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    for (unsigned i = 0; i < 4000; i++) {
        scene->epoch = i / 100;
        if (i % 100 == 0) {
            scene_step(scene, PHASES([SW_PHASE_FORWARD] = 5), 0);
        } else if (i % 50 > 20 && i % 50 < 23) {
            scene_step(scene, PHASES([SW_PHASE_FORWARD] = 1.05), 0);
        } else {
            scene_brief(scene, PHASES([SW_PHASE_FORWARD] = 1), false);
        }
    }
    scene_part(scene, "Net", "Net", 1, 0, 100);
    const sw_summary_overhead *overhead = sw_summary_get_overhead(summary_of(scene));
    assert_non_null(strstr(overhead->how, "for looking at 200 steps in full"));
    /* 200 steps of 50 us, and what every step has; not 40 of 4 ms. */
    assert_true(overhead->seconds < 0.07);
    scene_free(scene);
}

/* --- two runs --- */

/* Steps that are looked at take longer: phases of a compared step sum to it all the same. */
static void phases_of_a_compared_step_sum_to_it(void **state)
{
    (void)state;
    for (unsigned inside = 0; inside < 2; inside++) {
        struct scene *scene = scene_new();
        for (unsigned i = 0; i < 1000; i++) {
            scene->epoch = i / 250;
            if (i < 100 || i % 250 == 0 || i * 7 % 50 < 4) {
                scene_step(
                    scene,
                    PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_PREPROCESS] = 2.0 * inside,
                           [SW_PHASE_FORWARD] = 3.5, [SW_PHASE_BACKWARD] = 5.5),
                    0);
            } else {
                scene_brief(
                    scene,
                    PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_PREPROCESS] = 1.8 * inside,
                           [SW_PHASE_FORWARD] = 3, [SW_PHASE_BACKWARD] = 5),
                    inside);
            }
        }
        const sw_summary *summary = summary_of(scene);
        sw_comparison *comparison;
        sw_error_info info = {0};
        assert_int_equal(sw_compare_summaries(&comparison, summary, summary, NULL, &info),
                         0);
        const double step_ns = sw_comparison_baseline(comparison)->step_ns;
        size_t count;
        const sw_compared_part *parts =
            sw_comparison_parts(comparison, 0, SW_COMPARED_PHASE, &count);
        double sum = 0, wait = 0;
        for (size_t i = 0; i < count; i++) {
            sum += isnan(parts[i].before_ns) ? 0 : parts[i].before_ns;
            wait = strcmp(parts[i].name, "data_wait") == 0 ? parts[i].before_ns : wait;
        }
        assert_true(fabs(sum / step_ns - 1) < 1e-6);
        assert_true(fabs(wait / MS - (inside ? 0.94 : 1)) < 0.02);
        sw_comparison_free(comparison);
        scene_free(scene);
    }
}

/* --- samples --- */

static uint64_t samples_in(const sw_summary *summary, int phase)
{
    const sw_stacks_filter filter = {.one_phase = true, .phase = phase};
    return sw_stacks_count(sw_summary_stacks(summary), &filter).running;
}

static void samples_are_of_the_phase_of_the_same_calls(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_mostly_brief(scene, 300, LOOKED, false);
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("a")), 10, 10);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("backward")), 10, 10);
    scene_samples(scene, SW_PHASE_OTHER, FRAMES(TRAIN(27)), 5, 0);
    scene_samples(scene, SW_PHASE_GC, FRAMES(TRAIN(29)), 5, 0);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(20), TORCH("a")), 100, 90);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(20), TORCH("new")), 7, 0);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(25), TORCH("backward")), 50, 50);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(27)), 30, 0);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(28)), 3, 0); /* never seen */
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(29)), 2, 0);
    scene_samples(scene, SW_PHASE_INHERIT, FRAMES(TRAIN(20), TORCH("a")), 4, 0);
    const sw_summary *summary = summary_of(scene);
    assert_int_equal(samples_in(summary, SW_PHASE_FORWARD), 117);
    assert_int_equal(samples_in(summary, SW_PHASE_BACKWARD), 60);
    assert_int_equal(samples_in(summary, SW_PHASE_OTHER), 40);
    assert_int_equal(samples_in(summary, SW_PHASE_GC), 5);
    assert_int_equal(samples_in(summary, SW_PHASE_BRIEF), 0);
    assert_int_equal(samples_in(summary, SW_PHASE_INHERIT), 4);
    const sw_stacks_filter steps = {.in_steps = true};
    assert_int_equal(sw_stacks_count(sw_summary_stacks(summary), &steps).running, 222);
    assert_int_equal(sw_stacks_count(sw_summary_stacks(summary), &steps).in_call, 160);
    scene_free(scene);
}

/* Both stacks are in a call that was not seen in any step that was looked at: the first makes its place, which then says nothing of
 * the second. */
static void samples_that_go_on_alike_where_none_was_seen(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene_mostly_brief(scene, 300, LOOKED, false);
    scene_samples(scene, SW_PHASE_FORWARD, FRAMES(TRAIN(20), TORCH("a")), 10, 10);
    scene_samples(scene, SW_PHASE_BACKWARD, FRAMES(TRAIN(25), TORCH("backward")), 10, 10);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(20), TORCH("new")), 7, 0);
    scene_samples(scene, SW_PHASE_BRIEF, FRAMES(TRAIN(20), TORCH("new"), TORCH("b")), 5,
                  0);
    scene_samples(scene, SW_PHASE_BRIEF,
                  FRAMES(TRAIN(20), TORCH("new"), TORCH("b"), TORCH("c")), 3, 0);
    const sw_summary *summary = summary_of(scene);
    assert_int_equal(samples_in(summary, SW_PHASE_FORWARD), 25);
    assert_int_equal(samples_in(summary, SW_PHASE_BACKWARD), 10);
    assert_int_equal(samples_in(summary, SW_PHASE_BRIEF), 0);
    scene_free(scene);
}

/* --- what is shown --- */

static struct scene *shown(void)
{
    struct scene *scene = scene_new();
    scene_mostly_brief(scene, 300, LOOKED, false);
    scene_brief(scene, PHASES([SW_PHASE_FORWARD] = 90), false);
    (void)summary_of(scene);
    return scene;
}

static char *finished(sw_writer *writer)
{
    char *copy = strdup(sw_writer_text(writer, NULL));
    assert_int_equal(sw_writer_close(writer, NULL), 0);
    return copy;
}

#define SENTENCE                                                                         \
    "Phases are of 116 of 301 steps that were looked at in full; the others were "       \
    "watched in brief (option brief)."

static void reports_say_so(void **state)
{
    (void)state;
    struct scene *scene = shown();
    const sw_summary *summary = scene->fixture->summary;
    for (unsigned kind = 0; kind < 4; kind++) {
        sw_writer *writer = sw_writer_to_memory();
        if (kind == 0) {
            sw_export_report_text(writer, summary, NULL,
                                  &(sw_text_options){.columns = 200});
        } else if (kind == 1) {
            sw_export_report_markdown(writer, summary, NULL);
        } else if (kind == 2) {
            sw_export_report_html(writer, summary, NULL);
        } else {
            sw_export_report_json(writer, summary, NULL);
        }
        char *text = finished(writer);
        if (kind < 3) {
            assert_non_null(strstr(text, SENTENCE));
        } else {
            assert_non_null(strstr(text, "\"looked\": 116"));
            assert_non_null(strstr(text, "\"phase\": null"));
        }
        if (kind == 2) {
            assert_non_null(strstr(text, "is divided as in the others"));
            assert_non_null(strstr(text, "in brief</td>"));
        }
        free(text);
    }
    scene_free(scene);
}

/* The highest bar of a phase in the picture of the steps. */
static long highest(const char *html, const char *phase)
{
    char begin[64];
    snprintf(begin, sizeof begin, "<path class=\"p-%s\"", phase);
    const char *at = strstr(html, begin);
    const char *end = at ? strchr(at, '>') : NULL;
    long most = 0;
    for (at = at ? strstr(at, " d=") : NULL; at && (at = strchr(at, 'v')) && at < end;
         at++) {
        const long height = labs(strtol(at + 1, NULL, 10));
        most = height > most ? height : most;
    }
    return most;
}

/* Steps in brief wait for batches that a loader without workers makes; in the picture that is making them. */
static void the_picture_divides_waiting(void **state)
{
    (void)state;
    struct scene *scene = scene_new();
    scene->jitter = 0;
    scene_mostly_brief(scene, 500,
                       PHASES([SW_PHASE_DATA_WAIT] = 1, [SW_PHASE_PREPROCESS] = 4,
                              [SW_PHASE_FORWARD] = 4, [SW_PHASE_OTHER] = 1),
                       true);
    sw_writer *writer = sw_writer_to_memory();
    sw_export_report_html(writer, summary_of(scene), NULL);
    char *text = finished(writer);
    const long forward = highest(text, "forward");
    assert_true(forward > 20);
    assert_true(labs(highest(text, "preprocess") - forward) <= 2);
    assert_true(labs(4 * highest(text, "data_wait") - forward) <= 4);
    assert_true(labs(4 * highest(text, "other") - forward) <= 4);
    free(text);
    scene_free(scene);
}

/* The field of a row of CSV, from 0. */
static void field_of(const char *row, unsigned index, char out[64])
{
    while (index-- > 0) {
        row = strchr(row, ',') + 1;
    }
    const size_t length = strcspn(row, ",\r");
    memcpy(out, row, length);
    out[length] = '\0';
}

static void tables_leave_out_what_is_not_known(void **state)
{
    (void)state;
    struct scene *scene = shown();
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_csv(writer, SW_CSV_STEPS, scene->fixture->summary, NULL),
                     0);
    char *text = finished(writer), field[64];
    const char *looked = strchr(text, '\n') + 1, *brief = NULL;
    for (const char *row = looked; *row; row = strchr(row, '\n') + 1) {
        brief = row; /* the last one */
    }
    const unsigned columns = 6 + SW_PHASE_COUNT + 5;
    unsigned long long sum = 0;
    field_of(text, columns - 1, field);
    assert_string_equal(field, "brief");
    field_of(looked, columns - 1, field);
    assert_string_equal(field, "false");
    field_of(brief, columns - 1, field);
    assert_string_equal(field, "true");
    for (unsigned p = 1; p <= SW_PHASE_COUNT; p++) {
        const unsigned phase = p % SW_PHASE_COUNT;
        field_of(brief, 5 + p, field);
        const bool known = phase == SW_PHASE_DATA_WAIT;
        /* What it has in none of the known ones is there, so that the row sums to the step. */
        assert_int_equal(field[0] != '\0', known || phase == SW_PHASE_OTHER);
        sum += strtoull(field, NULL, 10);
        field_of(looked, 5 + p, field);
        assert_int_equal(field[0] != '\0', known || phase == SW_PHASE_FORWARD ||
                                               phase == SW_PHASE_BACKWARD ||
                                               phase == SW_PHASE_OTHER);
    }
    field_of(brief, 5, field);
    assert_int_equal(sum, strtoull(field, NULL, 10));
    free(text);
    scene_free(scene);
}

static void phases_say_how_many_were_looked_at(void **state)
{
    (void)state;
    struct scene *scene = shown();
    sw_writer *writer = sw_writer_to_memory();
    assert_int_equal(sw_export_csv(writer, SW_CSV_PHASES, scene->fixture->summary, NULL),
                     0);
    char *text = finished(writer), field[64];
    field_of(text, 8, field);
    assert_string_equal(field, "looked");
    const char *row = strchr(text, '\n') + 1;
    field_of(row, 2, field);
    assert_string_equal(field, "301");
    field_of(row, 8, field);
    assert_string_equal(field, "116");
    free(text);
    scene_free(scene);
}

static void traces_mark_them(void **state)
{
    (void)state;
    struct scene *scene = shown();
    for (unsigned form = 0; form < 2; form++) {
        const sw_trace_options options = {
            .format = form ? SW_TRACE_KINETO : SW_TRACE_CHROME, .part = form};
        sw_writer *writer = sw_writer_to_memory();
        sw_error_info info = {0};
        assert_int_equal(sw_export_trace(writer, scene->fixture->run, &options, &info),
                         0);
        char *text = finished(writer);
        unsigned marked = 0;
        for (const char *at = text; (at = strstr(at, "\"watched\"")) != NULL; at++) {
            const char *end = strchr(at, '}');
            marked++;
            assert_non_null(strstr(at, "in brief"));
            assert_true(strstr(at, "\"other\"") == NULL || strstr(at, "\"other\"") > end);
        }
        assert_int_equal(marked, 185);
        free(text);
    }
    scene_free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_left_is_divided),
        cmocka_unit_test(without_them_all_is_as_measured),
        cmocka_unit_test(given_up_records_are_like_those_that_are_there),
        cmocka_unit_test(without_records_nobody_knows_how_many),
        cmocka_unit_test(making_batches_is_taken_out_of_waiting),
        cmocka_unit_test(slow_steps_are_explained_as_far_as_they_are_known),
        cmocka_unit_test(looking_is_no_warm_up),
        cmocka_unit_test(looking_is_measured),
        cmocka_unit_test(first_steps_of_passes_do_not_tell_what_looking_costs),
        cmocka_unit_test(phases_of_a_compared_step_sum_to_it),
        cmocka_unit_test(samples_are_of_the_phase_of_the_same_calls),
        cmocka_unit_test(samples_that_go_on_alike_where_none_was_seen),
        cmocka_unit_test(reports_say_so),
        cmocka_unit_test(the_picture_divides_waiting),
        cmocka_unit_test(tables_leave_out_what_is_not_known),
        cmocka_unit_test(phases_say_how_many_were_looked_at),
        cmocka_unit_test(traces_mark_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
