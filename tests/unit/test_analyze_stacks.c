/* Sampled stacks: what is added comes back, functions and lines follow from it, files are not believed. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <stepwatch/analyze.h>

#include "trace_builder.h"

#define RUNNING(n) (&(sw_stack_counts){.running = (n)})

static sw_stacks *make(void)
{
    sw_stacks *stacks;
    assert_int_equal(sw_stacks_create(&stacks), 0);
    return stacks;
}

/* Adds a stack of functions named by letters, root first, each in "f.py" at the line of its letter. */
static void add(sw_stacks *stacks, const char *letters, const sw_stack_tag *tag,
                const sw_stack_counts *counts)
{
    static char names[128][2];
    sw_stack_frame frames[64];
    size_t depth = strlen(letters);
    for (size_t i = 0; i < depth; i++) {
        names[(int)letters[i]][0] = letters[i];
        frames[i] = (sw_stack_frame){.name = names[(int)letters[i]],
                                     .file = "f.py",
                                     .line = (uint32_t)(letters[i] - 'a') + 10,
                                     .first_line = 1};
    }
    assert_int_equal(sw_stacks_add(stacks, frames, depth, tag, counts), 0);
}

static const sw_stacks_place *place_in(const sw_stacks_place *places, size_t count,
                                       const char *name, uint32_t line)
{
    const sw_stacks_place *found = NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(places[i].frame.name, name) == 0 && places[i].frame.line == line) {
            assert_null(found);
            found = &places[i];
        }
    }
    return found;
}

static void check_place(const sw_stacks_place *place, uint64_t self, uint64_t total,
                        uint64_t whole)
{
    assert_non_null(place);
    assert_int_equal(place->self_running + place->self_waiting, self);
    assert_int_equal(place->total_running + place->total_waiting, total);
    assert_true(place->self.share == (double)self / (double)whole);
    assert_true(place->total.share == (double)total / (double)whole);
    assert_true(place->self.low <= place->self.share &&
                place->self.share <= place->self.high);
    assert_true(place->total.low <= place->total.share &&
                place->total.share <= place->total.high);
}

/* --- the interval --- */

static void near(double value, double expected)
{
    if (!(fabs(value - expected) < 5e-5)) {
        fail_msg("%.6f is not %.6f", value, expected);
    }
}

/* Against values of Wilson's interval worked out by hand: (p + z²/2n ± z sqrt(p(1-p)/n + z²/4n²)) / (1 + z²/n). */
static void test_interval(void **state)
{
    (void)state;
    sw_share share = sw_share_of(50, 100);
    near(share.share, 0.5);
    near(share.low, 0.40383);
    near(share.high, 0.59617);
    share = sw_share_of(1, 10);
    near(share.low, 0.01788);
    near(share.high, 0.40415);
    share = sw_share_of(0, 10);
    assert_true(share.share == 0 && share.low == 0);
    near(share.high, 0.27753);
    share = sw_share_of(10, 10);
    assert_true(share.share == 1 && share.high == 1);
    near(share.low, 0.72247);
    share = sw_share_of(0, 0);
    assert_true(isnan(share.share) && isnan(share.low) && isnan(share.high));
    share = sw_share_of(UINT64_MAX, UINT64_MAX);
    assert_true(share.share == 1 && share.high == 1 && share.low > 0.999);
    for (uint64_t n = 1; n < 300; n += 7) {
        for (uint64_t k = 0; k <= n; k++) {
            share = sw_share_of(k, n);
            assert_true(share.low >= 0 && share.low <= share.share &&
                        share.share <= share.high && share.high <= 1);
        }
    }
}

/* --- adding --- */

static void test_what_is_added_comes_back(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    char thread[] = "main", section[] = "forward";
    const sw_stack_tag tag = {
        .thread = thread, .section = section, .phase = SW_PHASE_FORWARD, .pid = 7};
    sw_stacks_set_period(stacks, 0.01);
    add(stacks, "ab", &tag, RUNNING(2));
    add(stacks, "ab", &tag, &(sw_stack_counts){.running = 1, .waiting = 4, .in_call = 3});
    add(stacks, "a", &tag, RUNNING(1));
    add(stacks, "ab", NULL, RUNNING(1));
    /* Strings were copied. */
    memset(thread, 'x', 4);
    memset(section, 'x', 7);
    assert_int_equal(sw_stacks_add(stacks, NULL, 0, &tag, RUNNING(1)), SW_EINVAL);

    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    uint32_t frames[4];
    /* A stack comes before those that go on from it. */
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.depth, 1);
    assert_int_equal(stack.running, 1);
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.depth, 2);
    assert_int_equal(stack.running, 3);
    assert_int_equal(stack.waiting, 4);
    assert_int_equal(stack.in_call, 3);
    assert_true(fabs(stack.running_s - 0.03) < 1e-12 &&
                fabs(stack.waiting_s - 0.04) < 1e-12);
    assert_string_equal(stack.tag->thread, "main");
    assert_string_equal(stack.tag->section, "forward");
    assert_int_equal(stack.tag->phase, SW_PHASE_FORWARD);
    assert_int_equal(stack.tag->pid, 7);
    assert_int_equal(sw_stacks_frames(stacks, stack.id, frames, 4), 2);
    assert_string_equal(sw_stacks_get_frame(stacks, frames[0])->name, "a");
    assert_string_equal(sw_stacks_get_frame(stacks, frames[1])->name, "b");
    assert_int_equal(sw_stacks_get_frame(stacks, frames[1])->line, 11);
    assert_int_equal(sw_stacks_frames(stacks, stack.id, frames, 1), 1);
    assert_string_equal(sw_stacks_get_frame(stacks, frames[0])->name, "a");

    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.depth, 2);
    assert_int_equal(stack.running, 1);
    assert_string_equal(stack.tag->thread, "");
    assert_false(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(sw_stacks_frame_count(stacks), 2);
    assert_null(sw_stacks_get_frame(stacks, 2));
    assert_int_equal(sw_stacks_frames(stacks, 0, frames, 4), 0);
    assert_int_equal(sw_stacks_frames(stacks, 1000, frames, 4), 0);
    assert_int_equal(sw_stacks_count(stacks, NULL).running, 5);
    assert_int_equal(sw_stacks_count(stacks, NULL).waiting, 4);
    sw_stacks_free(stacks);
    sw_stacks_free(NULL);
}

/* Names that are missing, and phases that are none. */
static void test_unknown(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const sw_stack_tag tag = {.phase = 1000};
    assert_int_equal(
        sw_stacks_add(stacks, &(sw_stack_frame){.line = 3}, 1, &tag, RUNNING(1)), 0);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_string_equal(stack.tag->thread, "");
    assert_string_equal(stack.tag->section, "");
    assert_int_equal(stack.tag->phase, SW_PHASE_INHERIT);
    assert_true(isnan(stack.running_s) && stack.waiting_s == 0);
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 1);
    assert_string_equal(places[0].frame.name, "");
    assert_string_equal(places[0].frame.file, "");
    assert_true(isnan(places[0].self_s));
    assert_true(places[0].running_share == 1);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
}

static void test_nothing(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    size_t count = 5;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_non_null(places);
    assert_int_equal(count, 0);
    sw_stacks_release(places);
    sw_stacks_thread *threads = sw_stacks_threads(stacks, &count);
    assert_non_null(threads);
    assert_int_equal(count, 0);
    sw_stacks_release(threads);
    assert_int_equal(sw_stacks_get_totals(stacks)->samplers, 0);
    assert_true(isnan(sw_stacks_get_totals(stacks)->hz));
    sw_stacks_free(stacks);
}

/* --- functions and lines --- */

static void test_self_and_total(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    sw_stacks_set_period(stacks, 0.001);
    add(stacks, "abc", NULL, RUNNING(5));
    add(stacks, "abz", NULL, &(sw_stack_counts){.running = 3, .waiting = 10});
    add(stacks, "ab", NULL, RUNNING(2));
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 4);
    assert_string_equal(places[0].frame.name, "z"); /* most self samples */
    check_place(place_in(places, count, "a", 0), 0, 20, 20);
    check_place(place_in(places, count, "b", 0), 2, 20, 20);
    check_place(place_in(places, count, "c", 0), 5, 5, 20);
    check_place(place_in(places, count, "z", 0), 13, 13, 20);
    const sw_stacks_place *z = place_in(places, count, "z", 0);
    assert_true(fabs(z->running_share - 3.0 / 13) < 1e-12);
    assert_true(fabs(z->self_s - 0.013) < 1e-12);
    assert_true(isnan(place_in(places, count, "a", 0)->running_share));
    assert_true(fabs(place_in(places, count, "a", 0)->total_s - 0.020) < 1e-12);
    assert_null(z->thread);
    assert_int_equal(z->phase, -1);
    sw_stacks_release(places);

    places =
        sw_stacks_functions(stacks, &(sw_stacks_filter){.running_only = true}, &count);
    check_place(place_in(places, count, "z", 0), 3, 3, 10);
    check_place(place_in(places, count, "a", 0), 0, 10, 10);
    assert_true(fabs(place_in(places, count, "a", 0)->total_s - 0.010) < 1e-12);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
}

/* A function that is in a stack twice is in that sample once; its lines are apart. */
static void test_recursion(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const sw_stack_frame frames[] = {{"a", "f.py", 5, 1, false},
                                     {"b", "f.py", 9, 8, false},
                                     {"a", "f.py", 6, 1, false},
                                     {"a", "f.py", 6, 1, false}};
    assert_int_equal(sw_stacks_add(stacks, frames, 4, NULL, RUNNING(4)), 0);
    assert_int_equal(sw_stacks_add(stacks, frames, 3, NULL, RUNNING(2)), 0);
    assert_int_equal(sw_stacks_add(stacks, frames, 2, NULL, RUNNING(1)), 0);
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 2);
    check_place(place_in(places, count, "a", 0), 6, 7, 7);
    check_place(place_in(places, count, "b", 0), 1, 7, 7);
    sw_stacks_release(places);
    places = sw_stacks_lines(stacks, NULL, &count);
    assert_int_equal(count, 3);
    check_place(place_in(places, count, "a", 5), 0, 7, 7);
    check_place(place_in(places, count, "a", 6), 6, 6, 7);
    check_place(place_in(places, count, "b", 9), 1, 7, 7);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
}

/* Functions of the same name in other files, at other lines, or native, are others. */
static void test_functions_are_told_apart(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const sw_stack_frame frames[] = {{"f", "a.py", 1, 1, false},
                                     {"f", "b.py", 1, 1, false},
                                     {"f", "a.py", 1, 2, false},
                                     {"f", "a.py", 1, 1, true}};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(sw_stacks_add(stacks, &frames[i], 1, NULL, RUNNING(i + 1)), 0);
    }
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(places[i].self_running, 4 - i);
    }
    assert_true(places[0].frame.native);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
}

static void test_filters(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const sw_stack_tag forward = {"main", "f", SW_PHASE_FORWARD, 1, true};
    const sw_stack_tag other = {"main", "", SW_PHASE_OTHER, 1, true};
    const sw_stack_tag outside = {"main", "", SW_PHASE_INHERIT, 1, true};
    const sw_stack_tag worker = {"worker", "", SW_PHASE_INHERIT, 2, false};
    const sw_stack_tag child = {"main", "", SW_PHASE_INHERIT, 2, false};
    add(stacks, "ab", &forward, RUNNING(1));
    add(stacks, "ab", &other, RUNNING(2));
    add(stacks, "ac", &outside, RUNNING(4));
    add(stacks, "ab", &worker, &(sw_stack_counts){.running = 8, .waiting = 100});
    add(stacks, "ab", &child, RUNNING(16));
    const struct {
        sw_stacks_filter filter;
        uint64_t running, waiting;
    } cases[] = {
        {{0}, 31, 100},
        {{.running_only = true}, 31, 0},
        {{.thread = "main"}, 23, 0},
        {{.thread = "main", .pid = 1}, 7, 0},
        {{.pid = 2}, 24, 100},
        {{.one_phase = true, .phase = SW_PHASE_OTHER}, 2, 0},
        {{.one_phase = true, .phase = SW_PHASE_INHERIT}, 28, 100},
        {{.in_steps = true}, 3, 0},
        {{.section = "f"}, 1, 0},
        {{.section = ""}, 30, 100},
        {{.thread = "nobody"}, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sw_stack_counts counts = sw_stacks_count(stacks, &cases[i].filter);
        assert_int_equal(counts.running, cases[i].running);
        assert_int_equal(counts.waiting, cases[i].waiting);
        size_t count;
        uint64_t whole = counts.running + counts.waiting;
        sw_stacks_place *places = sw_stacks_functions(stacks, &cases[i].filter, &count);
        if (whole == 0) {
            assert_int_equal(count, 0);
        } else {
            check_place(place_in(places, count, "a", 0), 0, whole, whole);
        }
        sw_stacks_release(places);
    }
    size_t count;
    sw_stacks_thread *threads = sw_stacks_threads(stacks, &count);
    assert_int_equal(count, 3);
    assert_string_equal(threads[0].thread, "main");
    assert_int_equal(threads[0].pid, 2);
    assert_false(threads[0].main);
    assert_string_equal(threads[1].thread, "worker");
    assert_int_equal(threads[1].waiting, 100);
    assert_int_equal(threads[2].running, 7);
    assert_true(threads[2].main);
    sw_stacks_release(threads);
    sw_stacks_free(stacks);
}

/* Kept apart, shares are those of the thread and the phase, and sums stay. */
static void test_groups(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    uint64_t seed = 3;
    static const char *const threads[] = {"main", "loader", ""};
    for (int i = 0; i < 500; i++) {
        char letters[6] = {0};
        for (size_t k = 0; k < 1 + tb_random(&seed) % 5; k++) {
            letters[k] = (char)('a' + tb_random(&seed) % 6);
        }
        const sw_stack_tag tag = {.thread = threads[tb_random(&seed) % 3],
                                  .phase = (int)(tb_random(&seed) % 3),
                                  .pid = (uint32_t)(tb_random(&seed) % 2)};
        add(stacks, letters, &tag,
            &(sw_stack_counts){.running = tb_random(&seed) % 9,
                               .waiting = tb_random(&seed) % 3});
    }
    for (unsigned lines = 0; lines < 2; lines++) {
        sw_stacks_place *(*find)(const sw_stacks *, const sw_stacks_filter *, size_t *) =
            lines ? sw_stacks_lines : sw_stacks_functions;
        size_t all_count, count;
        sw_stacks_place *all = find(stacks, NULL, &all_count);
        sw_stacks_place *apart = find(
            stacks, &(sw_stacks_filter){.by_thread = true, .by_phase = true}, &count);
        assert_int_equal(count, all_count * 9);
        for (size_t i = 0; i < all_count; i++) {
            uint64_t self = 0, total = 0;
            for (size_t k = 0; k < count; k++) {
                if (strcmp(apart[k].frame.name, all[i].frame.name) == 0) {
                    self += apart[k].self_running;
                    total += apart[k].total_waiting;
                }
            }
            assert_int_equal(self, all[i].self_running);
            assert_int_equal(total, all[i].total_waiting);
        }
        /* Each group is what a filter gives. */
        for (size_t k = 0; k < count; k++) {
            const sw_stacks_filter filter = {
                .thread = apart[k].thread, .one_phase = true, .phase = apart[k].phase};
            size_t own_count;
            sw_stacks_place *own = find(stacks, &filter, &own_count);
            const sw_stacks_place *same =
                place_in(own, own_count, apart[k].frame.name, apart[k].frame.line);
            assert_non_null(same);
            assert_int_equal(same->self_running, apart[k].self_running);
            assert_int_equal(same->total_running, apart[k].total_running);
            assert_true(same->self.share == apart[k].self.share);
            assert_true(same->total.high == apart[k].total.high);
            sw_stacks_release(own);
        }
        sw_stacks_release(apart);
        sw_stacks_release(all);
    }
    sw_stacks_free(stacks);
}

/* Against counting stack by stack. */
static void test_totals_by_brute_force(void **state)
{
    (void)state;
    uint64_t seed = 11;
    for (int round = 0; round < 30; round++) {
        sw_stacks *stacks = make();
        uint64_t self[6] = {0}, total[6] = {0}, whole = 0;
        for (int i = 0; i < 200; i++) {
            char letters[12] = {0};
            bool met[6] = {false};
            size_t depth = 1 + tb_random(&seed) % 10;
            uint64_t samples = tb_random(&seed) % 5;
            for (size_t k = 0; k < depth; k++) {
                size_t letter = tb_random(&seed) % 6;
                letters[k] = (char)('a' + letter);
                total[letter] += met[letter] ? 0 : samples;
                met[letter] = true;
            }
            self[letters[depth - 1] - 'a'] += samples;
            whole += samples;
            add(stacks, letters, NULL, RUNNING(samples));
        }
        size_t count;
        sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
        for (char letter = 'a'; letter <= 'f'; letter++) {
            char name[2] = {letter, 0};
            check_place(place_in(places, count, name, 0), self[letter - 'a'],
                        total[letter - 'a'], whole);
        }
        for (size_t i = 1; i < count; i++) {
            assert_true(places[i - 1].self_running >= places[i].self_running);
        }
        sw_stacks_release(places);
        sw_stacks_free(stacks);
    }
}

static void test_too_deep(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const size_t depth = SW_STACKS_DEPTH + 100;
    sw_stack_frame *frames = calloc(depth, sizeof *frames);
    for (size_t i = 0; i < depth; i++) {
        frames[i] = (sw_stack_frame){.name = "f", .line = (uint32_t)i + 1};
    }
    assert_int_equal(sw_stacks_add(stacks, frames, depth, NULL, RUNNING(3)), 0);
    assert_int_equal(sw_stacks_add(stacks, frames, depth - 1, NULL, RUNNING(4)), 0);
    assert_int_equal(sw_stacks_add(stacks, frames, SW_STACKS_DEPTH, NULL, RUNNING(5)), 0);
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 2);
    check_place(place_in(places, count, "(deeper)", 0), 7, 7, 12);
    check_place(place_in(places, count, "f", 0), 5, 12, 12);
    sw_stacks_release(places);
    free(frames);
    sw_stacks_free(stacks);
}

static void test_totals_of_samplers(void **state)
{
    (void)state;
    sw_stacks *stacks = make();
    const sw_stacks_totals one = {.samplers = 1,
                                  .hz = 100,
                                  .looks = 10,
                                  .kept = 8,
                                  .partial = 1,
                                  .given_up = 2,
                                  .cpu_s = 0.5};
    sw_stacks_add_totals(stacks, &one);
    sw_stacks_add_totals(stacks, &one);
    const sw_stacks_totals *sum = sw_stacks_get_totals(stacks);
    assert_true(sum->hz == 100 && sum->cpu_s == 1);
    assert_int_equal(sum->looks, 20);
    assert_int_equal(sum->kept, 16);
    assert_int_equal(sum->partial, 2);
    assert_int_equal(sum->given_up, 4);
    sw_stacks_totals other = one;
    other.hz = 200;
    sw_stacks_add_totals(stacks, &other);
    assert_true(isnan(sum->hz));
    assert_int_equal(sum->samplers, 3);
    sw_stacks_free(stacks);
}

/* --- from files --- */

/* Writes the trace, opens it as a run and gives its samples; the builder is used up. */
static sw_stacks *stacks_of(struct tb *tb, sw_summary **summary, sw_run **run)
{
    char path[] = "/tmp/test_stacks_XXXXXX.stepwatch";
    int fd = mkstemps(path, 10);
    assert_true(fd >= 0);
    close(fd);
    size_t size;
    tb_seal(tb);
    uint8_t *bytes = tb_home(tb, &size);
    tb_write(path, bytes, size);
    free(bytes);
    tb_free(tb);
    assert_int_equal(sw_run_open(run, path, NULL), 0);
    unlink(path);
    assert_int_equal(sw_summary_create(summary, *run, NULL), 0);
    sw_stacks *stacks;
    assert_int_equal(sw_stacks_of_run(&stacks, *run, NULL), 0);
    return stacks;
}

static bool has_note(const sw_summary *summary, const char *text)
{
    const char *note;
    for (size_t i = 0; (note = sw_summary_note(summary, i)) != NULL; i++) {
        if (strstr(note, text)) {
            return true;
        }
    }
    return false;
}

static void test_a_run_with_samples(void **state)
{
    (void)state;
    sw_run *run;
    sw_summary *summary;
    sw_stacks *stacks = stacks_of(tb_sampled(), &summary, &run);
    assert_non_null(sw_summary_stacks(summary));
    assert_true(has_note(summary, "gave up 10 of its 210 looks (4.8 %)"));
    sw_summary_free(summary);
    sw_run_free(run); /* the stacks do not need it */
    const sw_stacks_totals *totals = sw_stacks_get_totals(stacks);
    assert_true(totals->hz == 100);
    assert_int_equal(totals->samplers, 1);
    assert_int_equal(totals->looks, 210);
    assert_int_equal(totals->kept, 200);
    assert_int_equal(totals->partial, 6);
    assert_int_equal(totals->given_up, 10);
    assert_int_equal(totals->damaged, 0);
    assert_true(fabs(totals->cpu_s - 0.001) < 1e-5); /* 2500 ticks a microsecond */

    const sw_stacks_filter main_thread = {.thread = "main", .pid = 4242};
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, &main_thread, &count);
    assert_int_equal(count, 3);
    check_place(place_in(places, count, "main", 0), 0, 100, 100);
    check_place(place_in(places, count, "Net.fit", 0), 50, 100, 100);
    check_place(place_in(places, count, "matmul", 0), 50, 50, 100);
    const sw_stacks_place *matmul = place_in(places, count, "matmul", 0);
    assert_true(matmul->frame.native);
    assert_int_equal(matmul->self_in_call, 50);
    assert_true(fabs(matmul->self_s - 0.5) < 1e-9);
    const sw_stacks_place *fit = place_in(places, count, "Net.fit", 0);
    assert_string_equal(fit->frame.file, "train.py");
    assert_int_equal(fit->frame.first_line, 10);
    sw_stacks_release(places);

    const sw_stacks_filter other = {.one_phase = true, .phase = SW_PHASE_OTHER};
    places = sw_stacks_lines(stacks, &other, &count);
    check_place(place_in(places, count, "Net.fit", 14), 10, 20, 20);
    check_place(place_in(places, count, "Net.fit", 15), 10, 10, 20);
    check_place(place_in(places, count, "main", 3), 0, 20, 20);
    assert_int_equal(count, 3);
    sw_stacks_release(places);

    const sw_stacks_filter section = {.section = "forward"};
    assert_int_equal(sw_stacks_count(stacks, &section).running, 80);
    const sw_stacks_filter loader = {.thread = "loader"};
    assert_int_equal(sw_stacks_count(stacks, &loader).waiting, 95);
    sw_stacks_free(stacks);
}

static void test_a_run_without_samples(void **state)
{
    (void)state;
    sw_run *run;
    sw_summary *summary;
    sw_stacks *stacks = stacks_of(tb_example(), &summary, &run);
    assert_null(sw_summary_stacks(summary));
    assert_null(sw_summary_functions(summary));
    assert_null(sw_summary_lines(summary));
    assert_int_equal(sw_stacks_get_totals(stacks)->samplers, 0);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    assert_false(sw_stacks_next(stacks, &cursor, &stack));
    sw_stacks_free(stacks);
    sw_summary_free(summary);
    sw_run_free(run);
}

/* Rates that differ within a trace: time is that of the mean period. */
static void test_two_rates(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb_row(tb, &(sw_row){.table = SW_TABLE_SAMPLER, .key = {100}, .value = {30, 30}});
    tb_row(tb,
           &(sw_row){
               .table = SW_TABLE_SAMPLER, .index = 1, .key = {200}, .value = {10, 10}});
    tb_row(tb, &(sw_row){.table = SW_TABLE_CONTEXT, .key = {0, 0, SW_PHASE_INHERIT}});
    tb_row(tb,
           &(sw_row){.table = SW_TABLE_STACK, .flags = SW_ROW_IN_CONTEXT, .value = {40}});
    sw_run *run;
    sw_summary *summary;
    sw_stacks *stacks = stacks_of(tb, &summary, &run);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_true(fabs(stack.running_s - (0.30 + 0.05)) < 1e-9);
    assert_true(isnan(sw_stacks_get_totals(stacks)->hz));
    assert_false(has_note(summary, "gave up"));
    sw_stacks_free(stacks);
    sw_summary_free(summary);
    sw_run_free(run);
}

/* Rows that a sound recorder never writes: each bad one is left out with all below it, and counted. */
static void test_hostile_rows(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    const sw_row rows[] = {
        {SW_TABLE_CONTEXT, 0, 0, {UINT32_MAX, UINT32_MAX, 77, 9}, {0}},
        {SW_TABLE_STACK,
         SW_ROW_IN_CONTEXT,
         0,
         {0, UINT32_MAX, 1},
         {1}},                                                   /* no such code */
        {SW_TABLE_STACK, 0, 1, {1, 0, 1}, {2}},                  /* its own parent */
        {SW_TABLE_STACK, 0, 2, {3, 0, 1}, {4}},                  /* parent after it */
        {SW_TABLE_STACK, 0, 3, {2, 0, 1}, {8}},                  /* a circle */
        {SW_TABLE_STACK, 0, 4, {UINT32_MAX, 0, 1}, {16}},        /* far away */
        {SW_TABLE_STACK, SW_ROW_IN_CONTEXT, 5, {1, 0, 1}, {32}}, /* no such context */
        {SW_TABLE_STACK, 0, 7, {6, 0, 1}, {64}},                 /* parent missing */
        {SW_TABLE_STACK, 0, 8, {0, 0, 1}, {128, 1}},             /* good */
        {SW_TABLE_STACK, 0, 9, {8, 0, 1}, {UINT64_MAX, UINT64_MAX, UINT64_MAX}},
        {SW_TABLE_SAMPLER, 0, 0, {0}, {0, UINT64_MAX, 0, UINT64_MAX, UINT64_MAX}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tb_row(tb, &rows[i]);
    }
    sw_run *run;
    sw_summary *summary;
    sw_stacks *stacks = stacks_of(tb, &summary, &run);
    assert_int_equal(sw_stacks_get_totals(stacks)->damaged, 2 + 4 + 8 + 16 + 32 + 64);
    assert_true(has_note(summary, "(126)"));
    assert_true(isnan(sw_stacks_get_totals(stacks)->hz));
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.depth, 1);
    assert_int_equal(stack.running, 1);
    assert_int_equal(stack.tag->phase, SW_PHASE_INHERIT);
    assert_string_equal(stack.tag->thread, "");
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.depth, 2);
    assert_int_equal(stack.running, 128);
    assert_true(sw_stacks_next(stacks, &cursor, &stack));
    assert_int_equal(stack.running, UINT64_MAX);
    assert_false(sw_stacks_next(stacks, &cursor, &stack));
    size_t count;
    sw_stacks_place *places = sw_stacks_lines(stacks, NULL, &count);
    assert_true(count >= 1 && places[0].total_running == UINT64_MAX);
    assert_true(places[0].total.share <= 1);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
    sw_summary_free(summary);
    sw_run_free(run);
}

/* A chain of rows as long as a file can hold costs no more than its length. */
static void test_endless_recursion(void **state)
{
    (void)state;
    struct tb *tb = tb_example();
    tb_row(tb, &(sw_row){.table = SW_TABLE_CONTEXT, .key = {0, 0, SW_PHASE_INHERIT}});
    const uint32_t rows = 100000;
    for (uint32_t i = 0; i < rows; i++) {
        tb_row(tb, &(sw_row){.table = SW_TABLE_STACK,
                             .flags = i ? 0 : SW_ROW_IN_CONTEXT,
                             .index = i,
                             .key = {i ? i - 1 : 0, 0, i % 7},
                             .value = {1}});
    }
    sw_run *run;
    sw_summary *summary;
    sw_stacks *stacks = stacks_of(tb, &summary, &run);
    assert_int_equal(sw_stacks_count(stacks, NULL).running, rows);
    assert_int_equal(sw_stacks_get_totals(stacks)->damaged, 0);
    size_t count;
    sw_stacks_place *places = sw_stacks_functions(stacks, NULL, &count);
    assert_int_equal(count, 2);
    check_place(place_in(places, count, "(deeper)", 0), rows - SW_STACKS_DEPTH,
                rows - SW_STACKS_DEPTH, rows);
    check_place(place_in(places, count, "", 0), SW_STACKS_DEPTH, rows, rows);
    sw_stacks_release(places);
    sw_stacks_free(stacks);
    sw_summary_free(summary);
    sw_run_free(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interval),
        cmocka_unit_test(test_what_is_added_comes_back),
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_self_and_total),
        cmocka_unit_test(test_recursion),
        cmocka_unit_test(test_functions_are_told_apart),
        cmocka_unit_test(test_filters),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_totals_by_brute_force),
        cmocka_unit_test(test_too_deep),
        cmocka_unit_test(test_totals_of_samplers),
        cmocka_unit_test(test_a_run_with_samples),
        cmocka_unit_test(test_a_run_without_samples),
        cmocka_unit_test(test_two_rates),
        cmocka_unit_test(test_hostile_rows),
        cmocka_unit_test(test_endless_recursion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
