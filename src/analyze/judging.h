/* What the rules of judge.h share. */
#ifndef SW_ANALYZE_JUDGING_H
#define SW_ANALYZE_JUDGING_H

#include <stepwatch/judge.h>

/* What is known while subjects are judged. Derived numbers are NaN where they are not known. */
struct sw__bench {
    const sw_subject *subjects;
    size_t count;
    const sw_subject *run, *training, *sweep; /* never NULL: an empty one */
    double step_s;                            /* a step without waiting for its batch */
    double transfer_share;                    /* of that step; 0 without a GPU */
    sw_judgement *found;
    size_t used, room;
    sw_judgement scratch; /* where memory is short: written, never read */
    bool failed;          /* memory ran out */
};

/* A number of a subject; NaN: not known. */
double sw__number(const sw_subject *subject, const char *name);
/* The same; `otherwise` where it is not known. */
double sw__number_or(const sw_subject *subject, const char *name, double otherwise);
/* Whether a switch is known to be on, or known to be off. */
bool sw__is_on(const sw_subject *subject, const char *name);
bool sw__is_off(const sw_subject *subject, const char *name);
/* The part with the largest number of a group, the first of equals, and the sum of all; NULL: there is none. */
const char *sw__largest_part(const sw_subject *subject, const char *group, double *value,
                             double *sum, size_t *parts);

/* A number of a part; `otherwise` where it is not known. */
double sw__part_number(const sw_subject *subject, const char *group, const char *part,
                       double otherwise);

/* Which part of a training step waiting for this loader would be; NaN: no training was measured. */
double sw__wait_share(const struct sw__bench *bench, const sw_subject *loader);
/* Whether a loader holds training up, or seems to where no training was measured. */
bool sw__is_slow(const struct sw__bench *bench, const sw_subject *loader);
/* Which part of all time the calls of a section took; 0 where that is not known. */
double sw__section_share(const struct sw__bench *bench, const sw_subject *section);

/* A new judgement of `subject`; never NULL: where memory is short a scratch one is given and `failed` is set. */
sw_judgement *sw__judged(struct sw__bench *bench, const sw_subject *subject,
                         const char *rule, const char *kind, enum sw_severity severity,
                         double share);
void sw__judged_by(sw_judgement *it, const char *name, double value); /* evidence */
void sw__judged_by_count(sw_judgement *it, const char *name, double value);
void sw__judged_tells(sw_judgement *it, const char *name,
                      double value); /* for the text */
void sw__judged_tells_count(sw_judgement *it, const char *name, double value);

/* A rule looks at one subject of its kind. */
struct sw__judge_rule {
    enum sw_subject_kind kind;
    void (*judge)(struct sw__bench *bench, const sw_subject *subject);
};

extern const struct sw__judge_rule sw__judge_loading[]; /* each ends with .judge NULL */
extern const struct sw__judge_rule sw__judge_memory[];
extern const struct sw__judge_rule sw__judge_gpu[];
extern const struct sw__judge_rule sw__judge_training[];

#endif
