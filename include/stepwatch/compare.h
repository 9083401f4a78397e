/* Comparing runs: what changed from one to the other, and whether the data can show it.
 *
 * The first run is the *baseline*; each further one is compared with it. `speedup` is the run's time over its steps,
 * validation and checkpoints included, old / new: 1.31 means 31 % more steps per second, 0.8 means 20 % fewer. All
 * percentages that texts give are of that kind, (speedup - 1) * 100. What else lies between two steps belongs to it too:
 * there loaders start their workers anew.
 *
 * Steps that count are complete and outside the warm-up. Intervals are of 95 %, from a bootstrap that takes blocks of
 * neighbouring steps, because a slow step is seldom alone; its seed is fixed, so that the same files give the same answer.
 * What is called changed has passed Holm's correction for the number of things looked at.
 *
 * NaN (NULL in strings) means that a value is not known. */
#ifndef STEPWATCH_COMPARE_H
#define STEPWATCH_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/analyze.h>
#include <stepwatch/error.h>
#include <stepwatch/functions.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_COMPARE_THRESHOLD 5.0 /* percent; a run slower by more is a regression */
#define SW_COMPARE_STEPS_LEAST 8 /* fewer steps show nothing */

/* What is compared: a run, or a function profile. It holds copies, so what it came from may be freed. The caller frees it
 * with sw_compare_input_free. */
typedef struct sw_compare_input sw_compare_input;

/* What is there, by the name of the file: a run directory, a native file, a report or a trace in Chrome's format (.json),
 * or a function profile (.stats, .prof, .pstats). */
SW_API int sw_compare_input_open(sw_compare_input **out, const char *path,
                                 sw_error_info *info);
/* A run with its single steps. `path` is what texts call it; NULL: the run's own path. */
SW_API int sw_compare_input_of_summary(sw_compare_input **out, const sw_summary *summary,
                                       const char *path, sw_error_info *info);
/* A report.json, schema stepwatch.report/1: means, not single steps. Or a trace in Chrome's format, ours or that of
 * torch.profiler: spans by name, and how long all of it took. Nothing in it is trusted: SW_EFORMAT, SW_ECORRUPT or
 * SW_EVERSION with a sentence. */
SW_API int sw_compare_input_open_report(sw_compare_input **out, const char *path,
                                        sw_error_info *info);
SW_API int sw_compare_input_read_report(sw_compare_input **out, const char *text,
                                        size_t length, const char *path,
                                        sw_error_info *info);
/* A function profile. It can be compared with function profiles only. */
SW_API int sw_compare_input_of_functions(sw_compare_input **out,
                                         const sw_functions *functions, const char *path,
                                         sw_error_info *info);
SW_API void sw_compare_input_free(sw_compare_input *input); /* NULL is fine */

typedef struct sw_compare_options {
    double threshold_percent; /* at least 0; runs slower by more are regressions */
} sw_compare_options;

/* The result. Everything that is handed out below belongs to it; it borrows nothing. */
typedef struct sw_comparison sw_comparison;

/* Compares inputs[1…] with inputs[0]; options NULL: the threshold is SW_COMPARE_THRESHOLD. SW_EINVAL, with a sentence, for
 * fewer than two inputs, a threshold that is no percentage, or runs beside function profiles. */
SW_API int sw_compare_inputs(sw_comparison **out, const sw_compare_input *const *inputs,
                             size_t count, const sw_compare_options *options,
                             sw_error_info *info);
/* The same for two runs that are open. */
SW_API int sw_compare_summaries(sw_comparison **out, const sw_summary *before,
                                const sw_summary *after,
                                const sw_compare_options *options, sw_error_info *info);
SW_API void sw_comparison_free(sw_comparison *comparison); /* NULL is fine */

enum sw_verdict {
    SW_VERDICT_SAME = 0, /* no difference that these data can show */
    SW_VERDICT_FASTER,
    SW_VERDICT_SLOWER,
    SW_VERDICT_INCOMPARABLE /* the notes say why */
};
SW_API const char *sw_verdict_name(enum sw_verdict verdict); /* "same", … */

/* What the speedup is about. */
enum sw_compare_basis {
    SW_BASIS_STEPS = 0, /* time per step */
    SW_BASIS_SAMPLES,   /* time per sample: the batch sizes differ */
    SW_BASIS_DURATION,  /* time of the whole run: a run has no steps */
    SW_BASIS_FUNCTIONS  /* time of all functions of a profile */
};
SW_API const char *sw_compare_basis_name(enum sw_compare_basis basis); /* "steps", … */

/* One of the things that are compared. */
typedef struct sw_compared_side {
    const char *path, *name, *command, *host, *python;
    uint64_t steps; /* that count; SW_UNKNOWN: there are none in such a file */
    double
        step_ns; /* mean, with validation, checkpoints and what else lies between steps */
    double median_ns;
    double batch_size, samples_per_s;
    double duration_s; /* of the run, or of all functions */
} sw_compared_side;

enum sw_compared_kind {
    SW_COMPARED_PHASE = 0, /* also "between_steps", the time in no step */
    SW_COMPARED_MODULE,    /* time without the modules inside it */
    SW_COMPARED_SECTION,
    SW_COMPARED_FUNCTION, /* time without the functions it calls */
    SW_COMPARED_KINDS
};

/* A part of the time, before and after. */
typedef struct sw_compared_part {
    const char *name;
    const char *file; /* functions; NULL */
    uint32_t line;
    const char *per; /* what the times are of: "step", "sample", "call" or "run" */
    /* NaN: not measured there, or not there at all; then `difference_ns` takes it as 0 where that is what it means */
    double before_ns, after_ns;
    double difference_ns, low_ns, high_ns; /* low, high: NaN without a test */
    double p;                              /* corrected by Holm; NaN without a test */
    int changed;                           /* 1 yes, 0 not shown, -1 no test */
    uint64_t before_calls, after_calls;    /* SW_UNKNOWN */
} sw_compared_part;

/* A run against the baseline. */
typedef struct sw_compared {
    sw_compared_side side;
    enum sw_verdict verdict;
    enum sw_compare_basis basis;
    bool tested;     /* false: the verdict rests on two numbers, without a test */
    bool regression; /* slower by more than the threshold */
    const char *why; /* it is not comparable, in a few words; NULL otherwise */
    double speedup, low, high;
    double median_speedup, median_low, median_high;
} sw_compared;

SW_API const sw_compared_side *sw_comparison_baseline(const sw_comparison *comparison);
SW_API double sw_comparison_threshold(const sw_comparison *comparison);
SW_API bool sw_comparison_regression(const sw_comparison *comparison); /* of any run */
SW_API size_t sw_comparison_count(const sw_comparison *comparison);
/* NULL past the last, here and below. */
SW_API const sw_compared *sw_comparison_get(const sw_comparison *comparison,
                                            size_t index);
/* Parts of one kind: those that changed first, the largest difference in front. */
SW_API const sw_compared_part *sw_comparison_parts(const sw_comparison *comparison,
                                                   size_t index,
                                                   enum sw_compared_kind kind,
                                                   size_t *count);
/* What the reader should know before believing it, a sentence each. */
SW_API const char *sw_comparison_note(const sw_comparison *comparison, size_t index,
                                      size_t note);

/* The answer in one sentence without its full stop: "faster by 31 % (28…34): 12.1 ms a step before, 9.24 ms now, of which
 * data_wait −3.1 ms". `ascii` avoids other characters. Cut to `size` bytes, NUL included; returns the length it would have. */
SW_API size_t sw_comparison_sentence(const sw_comparison *comparison, size_t index,
                                     bool ascii, char *out, size_t size);

#ifdef __cplusplus
}
#endif
#endif
