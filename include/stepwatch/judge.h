/* Judging measurements that a program has taken itself: named numbers go in, what the rules say about them comes out.
 *
 * A subject is something that was measured: the run, a loader, a training step, a section. Its numbers have names; one that is
 * missing, or NaN, is not known, and no rule fires on what is not known. docs/compatibility/guide1.md lists the names. Texts are
 * not made here: who asks knows the subjects by their names. */
#ifndef STEPWATCH_JUDGE_H
#define STEPWATCH_JUDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>
#include <stepwatch/findings.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sw_subject_kind {
    SW_SUBJECT_RUN,      /* the machine, and everything together; one at most */
    SW_SUBJECT_LOADER,   /* waits for its batches */
    SW_SUBJECT_TRAINING, /* a mean step and its parts; the last one counts */
    SW_SUBJECT_SECTION,  /* calls of one name */
    SW_SUBJECT_SWEEP,    /* batch sizes that were tried; the last one counts */
    SW_SUBJECT_FINDING, /* found elsewhere: "severity" and "share" place it among the others */
    SW_SUBJECT_KINDS
};
SW_API const char *sw_subject_kind_name(enum sw_subject_kind kind); /* "loader" */

typedef struct sw_subject {
    enum sw_subject_kind kind;
    const sw_finding_number
        *numbers; /* borrowed; a number of a part is named "group:part" */
    size_t count;
} sw_subject;

/* A number that a judgement stands on. */
typedef struct sw_judgement_number {
    const char *name;
    double value;     /* NaN: unknown */
    bool is_whole;    /* a count, not a measurement */
    bool is_evidence; /* else it is for the text alone */
} sw_judgement_number;

#define SW_JUDGEMENT_NUMBERS 6

typedef struct sw_judgement {
    const char *rule; /* "RULE-27"; NULL: a finding that was handed in */
    const char
        *kind; /* "slow_batch_loading": judgements of one kind are about one problem */
    const char *text; /* which text of the rule; each has its own */
    enum sw_severity severity;
    double share;   /* 0…1 of the time, or of the memory */
    size_t subject; /* index of what was judged */
    const char *
        part; /* of the subject: a transform, a layer; lives as long as its number; NULL */
    size_t gain; /* place among all when the largest share comes first */
    sw_judgement_number numbers[SW_JUDGEMENT_NUMBERS];
    size_t number_count;
} sw_judgement;

/* Judges all subjects. `*found` has `*count` judgements, the gravest first, then the largest share, then the order of the rules;
 * the caller frees it with sw_judgements_free. 0, SW_EINVAL or SW_ENOMEM. */
SW_API int sw_judge(const sw_subject *subjects, size_t subject_count,
                    sw_judgement **found, size_t *count, sw_error_info *info);
SW_API void sw_judgements_free(sw_judgement *found); /* NULL is fine */

#ifdef __cplusplus
}
#endif
#endif
