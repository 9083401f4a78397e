/* What is compared, once it has been read: figures with their spread, no steps and no files any more. */
#ifndef SW_ANALYZE_COMPARE_H
#define SW_ANALYZE_COMPARE_H

#include <stepwatch/compare.h>

#include "analyze/bootstrap.h"
#include "base/intern.h"
#include "base/memory.h"

#define SW__BETWEEN_STEPS "between_steps" /* among the phases: time in no step */

/* A phase, module, section or function of one side. */
struct sw__measured {
    const char *name, *file;
    uint32_t line;
    bool known;                    /* phases: it was measured */
    struct sw__mean step;          /* ns of a step; variance NaN: no test */
    struct sw__mean whole;         /* modules: ns of a step, by all its calls and steps */
    struct sw__mean call;          /* ns of a call */
    struct sw__mean total;         /* functions: ns in all */
    uint64_t calls;                /* SW_UNKNOWN */
    double call_sum, call_squares; /* while it is being added up */
};

/* Those of one kind, by name. */
struct sw__measured_list {
    struct sw__measured *items;
    size_t count, room;
    sw__intern *keys; /* id - 1 is the place */
};

/* Something that explains a difference: machine, versions, settings. */
struct sw__compare_fact {
    const char *key, *value;
};
#define SW__COMPARE_FACTS 64

struct sw__compare_note {
    struct sw__compare_note *next;
    const char *text;
};
struct sw__compare_notes {
    struct sw__compare_note *first, *last;
};

struct sw_compare_input {
    sw__arena *arena;
    bool functions; /* a function profile, not a run */
    bool trace;     /* a trace, which has spans and never steps */
    bool single;    /* single steps were read: draws and medians have intervals */
    bool
        spans; /* modules and sections are known step by step; those not there took no time */
    bool has_steps;
    sw_compared_side side;
    const char *unit;        /* of steps, NULL: unknown */
    double updates_per_step; /* NaN: unknown */
    double samples_per_step; /* NaN: unknown */
    double delay_ns; /* a step, in which the thread could run and no CPU was free; NaN */
    struct sw__mean step;    /* ns, with what lies between steps */
    double draws[SW__DRAWS]; /* distances from step.mean */
    struct sw__median median;
    struct sw__measured_list parts[SW_COMPARED_KINDS];
    struct sw__compare_fact facts[SW__COMPARE_FACTS];
    size_t fact_count;
    struct sw__compare_notes notes;
};

/* An empty one; NULL when out of memory. */
sw_compare_input *sw__compare_input_new(const char *path);
/* Copies into the arena; NULL stays NULL. */
const char *sw__compare_copy(sw_compare_input *input, const char *text);
/* A fact, unless the value is NULL. What does not fit is left out. 0 or SW_ENOMEM. */
int sw__compare_fact(sw_compare_input *input, const char *key, const char *value);
/* A sentence; 0 or SW_ENOMEM. */
int sw__compare_note(sw__arena *arena, struct sw__compare_notes *notes,
                     const char *format, ...) SW_PRINTF(3, 4);
/* The part of a name (and file), made if need be; NULL when out of memory. Valid until the next is made. */
struct sw__measured *sw__measured_put(sw_compare_input *input, enum sw_compared_kind kind,
                                      const char *name, const char *file, uint32_t line);
/* NULL: there is none. */
const struct sw__measured *sw__measured_find(const sw_compare_input *input,
                                             enum sw_compared_kind kind,
                                             const struct sw__measured *like);
/* Adds calls of a section: their number, mean and deviation (NaN: unknown) in ns; sw__calls_finish makes an estimate of it. */
void sw__calls_add(struct sw__measured *part, uint64_t calls, double mean,
                   double deviation);
void sw__calls_finish(struct sw__measured_list *list);

/* The facts of a run, and what there is to note of it. */
int sw__compare_run_facts(sw_compare_input *input, const sw_summary *summary);
/* Per-step times of modules and sections, from the records of single sections. `steps` are all of the run. */
int sw__compare_spans(sw_compare_input *input, const sw_summary *summary,
                      const sw_summary_step *steps, size_t count);

/* What the facts of both sides say, as notes. */
int sw__compare_facts(sw__arena *arena, struct sw__compare_notes *notes,
                      const sw_compare_input *before, const sw_compare_input *after);
/* The script, module or program that a command line runs, in at most `size` bytes; false: it does not say. */
bool sw__compare_program(const char *command, char *out, size_t size);

/* One run against the baseline. */
struct sw__result {
    sw_compared compared;
    sw_compared_part *parts[SW_COMPARED_KINDS];
    size_t part_count[SW_COMPARED_KINDS];
    struct sw__compare_notes notes;
};
struct sw_comparison {
    sw__arena *arena;
    double threshold;
    sw_compared_side baseline;
    struct sw__result *results;
    size_t count;
};

/* The parts of a result: matched by name, tested, in order. `scale` is what the times are divided by, before and after. */
int sw__compare_parts(sw_comparison *comparison, struct sw__result *result,
                      const sw_compare_input *before, const sw_compare_input *after,
                      const double scale[2]);
/* Whether both sides have a phase, module or section in common; phase `other` does not count. */
bool sw__compare_shares_parts(const sw_compare_input *before,
                              const sw_compare_input *after);

#endif
