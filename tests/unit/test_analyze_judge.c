/* Judging named numbers: what fires, what is not known, and the order of what was found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include <stepwatch/judge.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define SUBJECT(subject_kind, array)                                                     \
    {                                                                                    \
        .kind = SW_SUBJECT_##subject_kind, .numbers = (array), .count = COUNT(array)     \
    }

static sw_judgement *judged(const sw_subject *subjects, size_t subject_count,
                            size_t *count)
{
    sw_judgement *found;
    sw_error_info info = {0};
    if (sw_judge(subjects, subject_count, &found, count, &info) != SW_OK) {
        fail_msg("%s", info.message);
    }
    return found;
}

static const sw_judgement *of_rule(const sw_judgement *found, size_t count,
                                   const char *rule)
{
    for (size_t i = 0; i < count; i++) {
        if (found[i].rule && strcmp(found[i].rule, rule) == 0) {
            return &found[i];
        }
    }
    return NULL;
}

static double number_of(const sw_judgement *it, const char *name)
{
    for (size_t i = 0; i < it->number_count; i++) {
        if (strcmp(it->numbers[i].name, name) == 0) {
            return it->numbers[i].value;
        }
    }
    fail_msg("%s has no %s", it->rule, name);
    return NAN;
}

static void nothing_known_says_nothing(void **state)
{
    sw_subject subjects[SW_SUBJECT_KINDS];
    size_t count;
    sw_judgement *found;
    (void)state;
    for (int kind = 0; kind < SW_SUBJECT_FINDING; kind++) {
        subjects[kind] = (sw_subject){.kind = (enum sw_subject_kind)kind};
    }
    found = judged(subjects, SW_SUBJECT_FINDING, &count);
    assert_int_equal(count, 0);
    sw_judgements_free(found);
    found = judged(NULL, 0, &count);
    assert_int_equal(count, 0);
    sw_judgements_free(found);
    sw_judgements_free(NULL);
}

static void not_a_number_is_not_known(void **state)
{
    const sw_finding_number run[] = {{"memory_share", NAN},
                                     {"gpu_memory_share", NAN},
                                     {"cpu_share", 0.99},
                                     {"gc_s", NAN}};
    const sw_finding_number loader[] = {{"avg_batch_time", NAN}, {"workers", NAN}};
    const sw_subject subjects[] = {SUBJECT(RUN, run), SUBJECT(LOADER, loader)};
    size_t count;
    sw_judgement *found = judged(subjects, COUNT(subjects), &count);
    (void)state;
    assert_int_equal(count, 0);
    sw_judgements_free(found);
}

/* Without a training a batch may take 0.1 s; with one, a fifth of the step. */
static void a_loader_is_slow_where_it_holds_training_up(void **state)
{
    static const struct {
        double wait, step;
        bool slow;
    } cases[] = {{0.1, NAN, false},  {0.11, NAN, true}, {0.11, 10, false},
                 {0.02, 0.1, false}, {0.03, 0.1, true}, {0.0009, 0.0001, false}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const sw_finding_number loader[] = {{"avg_batch_time", cases[i].wait}};
        const sw_finding_number training[] = {{"avg_total_time", cases[i].step},
                                              {"avg_forward_time", cases[i].step}};
        const sw_subject subjects[] = {SUBJECT(LOADER, loader),
                                       SUBJECT(TRAINING, training)};
        size_t count;
        sw_judgement *found =
            judged(subjects, isnan(cases[i].step) ? 1 : COUNT(subjects), &count);
        if ((of_rule(found, count, "RULE-27") != NULL) != cases[i].slow) {
            fail_msg("case %zu", i);
        }
        sw_judgements_free(found);
    }
}

static void workers_are_as_many_as_needed_and_as_there_are_cores(void **state)
{
    static const struct {
        double cores, making, wanted; /* 0: nothing is said */
    } cases[] = {{8, 0.35, 4}, {2.5, 0.35, 2}, {8, 0.05, 0}, {0.5, 0.35, 0}};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const sw_finding_number run[] = {{"cores", cases[i].cores}};
        const sw_finding_number loader[] = {{"avg_batch_time", 0.3},
                                            {"workers", 1},
                                            {"avg_making_time", cases[i].making}};
        const sw_finding_number training[] = {{"avg_total_time", 0.1},
                                              {"avg_forward_time", 0.1}};
        const sw_subject subjects[] = {SUBJECT(RUN, run), SUBJECT(LOADER, loader),
                                       SUBJECT(TRAINING, training)};
        size_t count;
        sw_judgement *found = judged(subjects, COUNT(subjects), &count);
        const sw_judgement *it = of_rule(found, count, "RULE-06");
        assert_int_equal(it != NULL, cases[i].wanted > 0);
        if (it) {
            assert_true(number_of(it, "suggested_num_workers") == cases[i].wanted);
            assert_int_equal(it->subject, 1);
        }
        sw_judgements_free(found);
    }
}

static void parts_are_named(void **state)
{
    const sw_finding_number loader[] = {
        {"avg_batch_time", 0.5},    {"avg_making_time", 0.5}, {"avg_batch_size", 4},
        {"transform:crop", 0.01},   {"transform:blur", 0.1},  {"transformer", 9},
        {"bytes:float32", 6 << 20}, {"bytes:int64", 4 << 20}};
    const sw_finding_number training[] = {
        {"avg_total_time", 0.1},      {"avg_forward_time", 0.1},
        {"gradient_time:a", 0.001},   {"gradient_time:b", 0.02},
        {"gradient_time:c", 0.001},   {"gradient_parameters:a", 50},
        {"gradient_parameters:b", 1}, {"gradient_parameters:c", 49}};
    const sw_subject subjects[] = {SUBJECT(LOADER, loader), SUBJECT(TRAINING, training)};
    size_t count;
    sw_judgement *found = judged(subjects, COUNT(subjects), &count);
    const sw_judgement *it = of_rule(found, count, "RULE-13");
    (void)state;
    assert_non_null(it);
    assert_string_equal(it->part, "blur");
    assert_true(fabs(number_of(it, "transform_share") - 0.8) < 1e-12);
    /* The type to change is the widest one there is most of, not the one there is most of. */
    it = of_rule(found, count, "RULE-12");
    assert_non_null(it);
    assert_string_equal(it->part, "int64");
    assert_true(fabs(number_of(it, "saved_mb") - 2) < 1e-12);
    it = of_rule(found, count, "RULE-22");
    assert_non_null(it);
    assert_string_equal(it->part, "b");
    assert_true(fabs(number_of(it, "parameter_share") - 0.01) < 1e-12);
    sw_judgements_free(found);
}

/* Trainings before the last one were before a change. */
static void the_last_training_counts(void **state)
{
    const sw_finding_number slow[] = {{"avg_total_time", 0.1},
                                      {"avg_forward_time", 0.03},
                                      {"avg_backward_time", 0.03},
                                      {"avg_optimizer_time", 0.04}};
    const sw_finding_number fine[] = {{"avg_total_time", 0.1},
                                      {"avg_forward_time", 0.05},
                                      {"avg_backward_time", 0.05},
                                      {"avg_optimizer_time", 0.001}};
    const sw_subject mended[] = {SUBJECT(TRAINING, slow), SUBJECT(TRAINING, fine)};
    const sw_subject spoilt[] = {SUBJECT(TRAINING, fine), SUBJECT(TRAINING, slow)};
    size_t count;
    sw_judgement *found = judged(mended, COUNT(mended), &count);
    (void)state;
    assert_int_equal(count, 0);
    sw_judgements_free(found);
    found = judged(spoilt, COUNT(spoilt), &count);
    assert_int_equal(count, 1);
    assert_string_equal(found[0].rule, "RULE-23");
    assert_int_equal(found[0].subject, 1);
    sw_judgements_free(found);
}

/* The gravest first; `gain` is the place by share, and of equal shares the graver one is before the other. */
static void findings_have_their_place(void **state)
{
    const sw_finding_number low[] = {{"severity", SW_SEVERITY_LOW}, {"share", 0.9}};
    const sw_finding_number critical[] = {{"severity", SW_SEVERITY_CRITICAL},
                                          {"share", 0.1}};
    const sw_finding_number unknown[] = {{"severity", SW_SEVERITY_HIGH}, {"share", NAN}};
    const sw_finding_number run[] = {{"memory_share", 0.9}};
    const sw_subject subjects[] = {SUBJECT(RUN, run), SUBJECT(FINDING, low),
                                   SUBJECT(FINDING, critical), SUBJECT(FINDING, unknown)};
    static const size_t subject[] = {2, 0, 3, 1}, gain[] = {2, 0, 3, 1};
    size_t count;
    sw_judgement *found = judged(subjects, COUNT(subjects), &count);
    (void)state;
    assert_int_equal(count, 4);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(found[i].subject, subject[i]);
        assert_int_equal(found[i].gain, gain[i]);
    }
    assert_null(found[0].rule);
    assert_string_equal(found[1].rule, "RULE-26");
    sw_judgements_free(found);
}

static void what_is_no_subject_is_refused(void **state)
{
    const sw_subject subject = {.kind = (enum sw_subject_kind)99};
    sw_judgement *found;
    sw_error_info info = {0};
    size_t count = 7;
    (void)state;
    assert_int_equal(sw_judge(&subject, 1, &found, &count, &info), SW_EINVAL);
    assert_null(found);
    assert_int_equal(count, 0);
    assert_string_equal(info.message, "subject 0 is of no known kind");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_known_says_nothing),
        cmocka_unit_test(not_a_number_is_not_known),
        cmocka_unit_test(a_loader_is_slow_where_it_holds_training_up),
        cmocka_unit_test(workers_are_as_many_as_needed_and_as_there_are_cores),
        cmocka_unit_test(parts_are_named),
        cmocka_unit_test(the_last_training_counts),
        cmocka_unit_test(findings_have_their_place),
        cmocka_unit_test(what_is_no_subject_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
