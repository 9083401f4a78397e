/* Subjects are put before the rules, and judgements into their order. */
#include "analyze/judging.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static const char *const kind_names[SW_SUBJECT_KINDS] = {
    "run", "loader", "training", "section", "sweep", "finding",
};

const char *sw_subject_kind_name(enum sw_subject_kind kind)
{
    return (unsigned)kind < SW_SUBJECT_KINDS ? kind_names[kind] : "?";
}

/* --- Numbers ---------------------------------------------------------------------- */

double sw__number(const sw_subject *subject, const char *name)
{
    for (size_t i = 0; i < subject->count; i++) {
        if (strcmp(subject->numbers[i].name, name) == 0) {
            return subject->numbers[i].value;
        }
    }
    return NAN;
}

double sw__number_or(const sw_subject *subject, const char *name, double otherwise)
{
    double value = sw__number(subject, name);
    return isnan(value) ? otherwise : value;
}

bool sw__is_on(const sw_subject *subject, const char *name)
{
    double value = sw__number(subject, name);
    return !isnan(value) && value != 0;
}

bool sw__is_off(const sw_subject *subject, const char *name)
{
    return sw__number(subject, name) == 0;
}

/* The part of a group that a number is of; NULL: it is of none. */
static const char *part_of(const char *name, const char *group)
{
    size_t length = strlen(group);
    return strncmp(name, group, length) == 0 && name[length] == ':' ? name + length + 1
                                                                    : NULL;
}

double sw__part_number(const sw_subject *subject, const char *group, const char *part,
                       double otherwise)
{
    for (size_t i = 0; i < subject->count; i++) {
        const char *each = part_of(subject->numbers[i].name, group);
        if (each && strcmp(each, part) == 0 && !isnan(subject->numbers[i].value)) {
            return subject->numbers[i].value;
        }
    }
    return otherwise;
}

const char *sw__largest_part(const sw_subject *subject, const char *group, double *value,
                             double *sum, size_t *parts)
{
    const char *largest = NULL;
    *value = *sum = 0;
    *parts = 0;
    for (size_t i = 0; i < subject->count; i++) {
        const sw_finding_number *each = &subject->numbers[i];
        const char *part = part_of(each->name, group);
        if (!part || isnan(each->value)) {
            continue;
        }
        if (!largest || each->value > *value) {
            largest = part;
            *value = each->value;
        }
        *sum += each->value;
        ++*parts;
    }
    return largest;
}

/* --- What several rules ask ------------------------------------------------------- */

#define WAIT_SHARE 0.2
#define WAIT_NOTICED_S 1e-3
#define SLOW_BATCH_S 0.1 /* where nothing but the loader was measured */

double sw__wait_share(const struct sw__bench *bench, const sw_subject *loader)
{
    double wait = sw__number(loader, "avg_batch_time");
    if (isnan(bench->step_s)) {
        return NAN;
    }
    return wait + bench->step_s > 0 ? wait / (wait + bench->step_s) : 0;
}

bool sw__is_slow(const struct sw__bench *bench, const sw_subject *loader)
{
    double wait = sw__number(loader, "avg_batch_time");
    double share = sw__wait_share(bench, loader);
    return isnan(share) ? wait > SLOW_BATCH_S
                        : share > WAIT_SHARE && wait > WAIT_NOTICED_S;
}

double sw__section_share(const struct sw__bench *bench, const sw_subject *section)
{
    double all = sw__number_or(bench->run, "total_s", 0);
    return all > 0 ? sw__number_or(section, "total_ns", 0) / 1e9 / all : 0;
}

static double transfer_share(const sw_subject *training)
{
    double step = sw__number(training, "avg_total_time");
    if (!sw__is_on(training, "on_gpu") || !(step > 0)) {
        return 0;
    }
    return sw__number_or(training, "avg_transfer_time", 0) / step;
}

/* --- Judgements ------------------------------------------------------------------- */

sw_judgement *sw__judged(struct sw__bench *bench, const sw_subject *subject,
                         const char *rule, const char *kind, enum sw_severity severity,
                         double share)
{
    sw_judgement *it;
    if (bench->used == bench->room) {
        size_t room = bench->room ? 2 * bench->room : 16;
        sw_judgement *larger = sw__realloc(bench->found, room, sizeof *larger);
        if (!larger) {
            bench->failed = true;
            bench->scratch = (sw_judgement){0};
            return &bench->scratch;
        }
        bench->found = larger;
        bench->room = room;
    }
    it = &bench->found[bench->used++];
    *it = (sw_judgement){.rule = rule,
                         .kind = kind,
                         .text = rule,
                         .severity = severity,
                         .share = share > 1   ? 1
                                  : share > 0 ? share
                                              : 0,
                         .subject = (size_t)(subject - bench->subjects)};
    return it;
}

static void add(sw_judgement *it, const char *name, double value, bool whole,
                bool evidence)
{
    if (it->number_count < SW_JUDGEMENT_NUMBERS) {
        it->numbers[it->number_count++] = (sw_judgement_number){
            .name = name, .value = value, .is_whole = whole, .is_evidence = evidence};
    }
}

void sw__judged_by(sw_judgement *it, const char *name, double value)
{
    add(it, name, value, false, true);
}

void sw__judged_by_count(sw_judgement *it, const char *name, double value)
{
    add(it, name, value, true, true);
}

void sw__judged_tells(sw_judgement *it, const char *name, double value)
{
    add(it, name, value, false, false);
}

void sw__judged_tells_count(sw_judgement *it, const char *name, double value)
{
    add(it, name, value, true, false);
}

/* --- The order -------------------------------------------------------------------- */

/* Where neither severity nor share decides, the order in which judgements were made does; `gain` has it meanwhile. */
static int by_severity(const void *a, const void *b)
{
    const sw_judgement *left = a, *right = b;
    if (left->severity != right->severity) {
        return left->severity > right->severity ? -1 : 1;
    }
    if (left->share != right->share) {
        return left->share > right->share ? -1 : 1;
    }
    return left->gain < right->gain ? -1 : 1;
}

static void put_in_order(sw_judgement *found, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        found[i].gain = i;
    }
    if (count) {
        qsort(found, count, sizeof *found, by_severity);
    }
    for (size_t i = 0; i < count; i++) {
        size_t place = 0;
        for (size_t j = 0; j < count; j++) {
            /* Of equal shares the graver one comes first, and that is the order there is. */
            place += found[j].share > found[i].share ||
                     (found[j].share == found[i].share && j < i);
        }
        found[i].gain = place;
    }
}

/* --- All of it -------------------------------------------------------------------- */

static void take_finding(struct sw__bench *bench, const sw_subject *finding)
{
    double severity = sw__number_or(finding, "severity", SW_SEVERITY_LOW);
    severity = severity > SW_SEVERITY_CRITICAL ? SW_SEVERITY_CRITICAL
               : severity > 0                  ? severity
                                               : 0;
    sw__judged(bench, finding, NULL, NULL, (enum sw_severity)(int)severity,
               sw__number_or(finding, "share", 0));
}

static const struct sw__judge_rule findings[] = {
    {SW_SUBJECT_FINDING, take_finding},
    {SW_SUBJECT_KINDS, NULL},
};

static const struct sw__judge_rule *const rules[] = {
    findings, sw__judge_loading, sw__judge_memory, sw__judge_gpu, sw__judge_training,
};

/* Of trainings and sweeps only the last one is judged: the others were before a change. */
static bool is_over(const struct sw__bench *bench, const sw_subject *subject)
{
    return (subject->kind == SW_SUBJECT_TRAINING && subject != bench->training) ||
           (subject->kind == SW_SUBJECT_SWEEP && subject != bench->sweep);
}

static void apply(struct sw__bench *bench, const struct sw__judge_rule *rule)
{
    for (size_t i = 0; i < bench->count; i++) {
        const sw_subject *subject = &bench->subjects[i];
        if (subject->kind == rule->kind && !is_over(bench, subject)) {
            rule->judge(bench, subject);
        }
    }
}

int sw_judge(const sw_subject *subjects, size_t subject_count, sw_judgement **found,
             size_t *count, sw_error_info *info)
{
    static const sw_subject nothing = {0};
    struct sw__bench bench = {.subjects = subjects,
                              .count = subject_count,
                              .run = &nothing,
                              .training = &nothing,
                              .sweep = &nothing};
    *found = NULL;
    *count = 0;
    for (size_t i = 0; i < subject_count; i++) {
        if ((unsigned)subjects[i].kind >= SW_SUBJECT_KINDS) {
            return sw_error_set(info, SW_EINVAL, "subject %zu is of no known kind", i);
        }
        if (subjects[i].kind == SW_SUBJECT_RUN) {
            bench.run = &subjects[i];
        } else if (subjects[i].kind == SW_SUBJECT_TRAINING) {
            bench.training = &subjects[i];
        } else if (subjects[i].kind == SW_SUBJECT_SWEEP) {
            bench.sweep = &subjects[i];
        }
    }
    bench.step_s = sw__number(bench.training, "avg_total_time");
    bench.transfer_share = transfer_share(bench.training);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        for (const struct sw__judge_rule *rule = rules[i]; rule->judge; rule++) {
            apply(&bench, rule);
        }
    }
    if (bench.failed) {
        sw__free(bench.found);
        return sw_error_set(info, SW_ENOMEM, "there is no memory to judge measurements");
    }
    put_in_order(bench.found, bench.used);
    *found = bench.found;
    *count = bench.used;
    return SW_OK;
}

void sw_judgements_free(sw_judgement *found)
{
    sw__free(found);
}
