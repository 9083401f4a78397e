/* Rules about memory, and about work that is done over and over. */
#include "analyze/judging.h"

#include <math.h>
#include <string.h>

#define MIB 1048576.0
#define BIG_MB 100.0
#define VERY_BIG_MB 500.0
#define FREQUENT 1000
#define TINY_NS 20e3

static const char *const wide_types[] = {"float64", "int64", "complex128", "uint64"};

/* Memory that the process has is what a size is measured by. */
static double of_memory(const struct sw__bench *bench, double mb)
{
    double all = sw__number_or(bench->run, "memory_mb", 0);
    return all > 0 ? fmin(mb / all, 1) : 0.5;
}

/* RULE-11: much memory in use, and nobody looks. */
static void watch_memory(struct sw__bench *bench, const sw_subject *run)
{
    double share = sw__number(run, "memory_share");
    if (sw__is_off(run, "tracks_memory") && share > 0.7) {
        sw_judgement *it = sw__judged(bench, run, "RULE-11", "high_memory_usage",
                                      SW_SEVERITY_MEDIUM, share);
        sw__judged_by(it, "memory_share", share);
    }
}

static bool is_wide(const char *type)
{
    for (size_t i = 0; i < sizeof wide_types / sizeof wide_types[0]; i++) {
        if (strcmp(type, wide_types[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* RULE-12: elements of eight bytes where four would do. */
static void data_types(struct sw__bench *bench, const sw_subject *loader)
{
    static const char group[] = "bytes:";
    double most = 0, wide = 0, all = 0, share;
    const char *type = NULL;
    sw_judgement *it;
    for (size_t i = 0; i < loader->count; i++) {
        const sw_finding_number *each = &loader->numbers[i];
        if (strncmp(each->name, group, sizeof group - 1) != 0) {
            continue;
        }
        all += each->value;
        if (is_wide(each->name + sizeof group - 1)) {
            wide += each->value;
            if (each->value > most) {
                most = each->value;
                type = each->name + sizeof group - 1;
            }
        }
    }
    share = all > 0 ? wide / all : 0;
    if (!(share > 0.2) || !(all > MIB)) {
        return;
    }
    it = sw__judged(bench, loader, "RULE-12", "data_types",
                    share > 0.5 ? SW_SEVERITY_MEDIUM : SW_SEVERITY_LOW, share / 2);
    it->part = type;
    sw__judged_tells(it, "wide_share", share);
    sw__judged_tells(it, "saved_mb", share * all / 2 / MIB);
}

/* RULE-13: the same arguments over and over. */
static void caching(struct sw__bench *bench, const sw_subject *section)
{
    double calls = sw__number(section, "calls");
    double repeated = sw__number_or(section, "repeated", 0);
    double share = sw__section_share(bench, section);
    if (calls >= FREQUENT && repeated > 0.5 && share * repeated > 0.01) {
        sw_judgement *it = sw__judged(bench, section, "RULE-13", "repeated_calls",
                                      share > 0.2 ? SW_SEVERITY_MEDIUM : SW_SEVERITY_LOW,
                                      share * repeated);
        sw__judged_by_count(it, "calls", calls);
        sw__judged_by(it, "repeated_share", repeated);
    }
}

/* RULE-60: so many short calls that calling is what they cost. Of repeated ones caching is the cure. */
static void tiny_calls(struct sw__bench *bench, const sw_subject *section)
{
    double calls = sw__number(section, "calls"), mean = sw__number(section, "mean_ns");
    double share = sw__section_share(bench, section);
    if (calls >= FREQUENT && mean < TINY_NS && !(sw__number(section, "repeated") > 0.5) &&
        share >= 0.02) {
        sw_judgement *it = sw__judged(bench, section, "RULE-60", "frequent_calls",
                                      SW_SEVERITY_LOW, share);
        sw__judged_by_count(it, "calls", calls);
        sw__judged_tells(it, "mean_us", mean / 1e3);
    }
}

/* RULE-14: pauses of the garbage collector, of the time in sections. */
static void collector(struct sw__bench *bench, const sw_subject *run)
{
    double paused = sw__number(run, "gc_s"), measured = 0, share;
    for (size_t i = 0; i < bench->count; i++) {
        if (bench->subjects[i].kind == SW_SUBJECT_SECTION) {
            measured += sw__number_or(&bench->subjects[i], "self_ns", 0);
        }
    }
    share = measured > 0 ? paused / (measured / 1e9) : 0;
    if (share > 0.01 && paused > 0.05) {
        sw_judgement *it = sw__judged(bench, run, "RULE-14", "garbage_collection",
                                      share > 0.2   ? SW_SEVERITY_HIGH
                                      : share > 0.1 ? SW_SEVERITY_MEDIUM
                                                    : SW_SEVERITY_LOW,
                                      share);
        sw__judged_by(it, "seconds", paused);
        sw__judged_tells(it, "gc_share", share);
    }
}

/* RULE-15: sections that take much memory for a moment, or with every call. */
static void big_sections(struct sw__bench *bench, const sw_subject *section)
{
    double delta =
        sw__number(section, "memory_bytes") / sw__number(section, "calls") / MIB;
    double peak = sw__number_or(section, "peak_bytes", 0) / MIB;
    double most = fmax(delta, peak);
    sw_judgement *it;
    if (isnan(delta) ||
        !(delta > BIG_MB || (peak > BIG_MB && peak > 2 * fmax(delta, 1)))) {
        return;
    }
    it = sw__judged(bench, section, "RULE-15", "high_memory_usage",
                    most > VERY_BIG_MB ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM,
                    of_memory(bench, most));
    sw__judged_by(it, "mean_delta_mb", delta);
    sw__judged_by(it, "peak_mb", peak);
    sw__judged_tells(it, "most_mb", most);
}

/* RULE-26: too much memory for the machine. */
static void high_memory(struct sw__bench *bench, const sw_subject *run)
{
    double share = sw__number(run, "memory_share");
    if (share > 0.8) {
        sw_judgement *it =
            sw__judged(bench, run, "RULE-26", "high_memory_usage",
                       share > 0.95 ? SW_SEVERITY_CRITICAL : SW_SEVERITY_HIGH, share);
        sw__judged_by(it, "memory_share", share);
    }
}

/* RULE-26: too much memory for a batch. */
static void big_batches(struct sw__bench *bench, const sw_subject *loader)
{
    double size = sw__number(loader, "avg_memory_per_batch");
    if (size > BIG_MB) {
        sw_judgement *it =
            sw__judged(bench, loader, "RULE-26", "high_memory_usage",
                       size > VERY_BIG_MB ? SW_SEVERITY_HIGH : SW_SEVERITY_MEDIUM,
                       of_memory(bench, size));
        it->text = "RULE-26 batch";
        sw__judged_by(it, "avg_memory_per_batch", size);
    }
}

const struct sw__judge_rule sw__judge_memory[] = {
    {SW_SUBJECT_RUN, watch_memory}, {SW_SUBJECT_LOADER, data_types},
    {SW_SUBJECT_SECTION, caching},  {SW_SUBJECT_SECTION, tiny_calls},
    {SW_SUBJECT_RUN, collector},    {SW_SUBJECT_SECTION, big_sections},
    {SW_SUBJECT_RUN, high_memory},  {SW_SUBJECT_LOADER, big_batches},
    {SW_SUBJECT_KINDS, NULL},
};
