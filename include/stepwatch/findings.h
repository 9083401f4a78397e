/* Findings: what is wrong with a run, what to change, and how much faster it will be.
 *
 * A finding stands on the recorded steps: it has numbers, a place in the user's own files where one is known, and, where
 * a replay of the steps can tell, a prediction with a range. A healthy run has none; then the sentence of
 * sw_findings_bound says what its time goes to, and the checks say what was looked at. */
#ifndef STEPWATCH_FINDINGS_H
#define STEPWATCH_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/analyze.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The user's problems. Names are public: X(symbol, "name", "what is checked"). Add at the end, never rename. */
#define SW_FINDING_TABLE(X)                                                              \
    X(LOADER_WORKERS, "loader_workers", "whether batches are produced fast enough")      \
    X(LOADER_TRANSFORM, "loader_transform",                                              \
      "whether one stage of producing a sample dominates")                               \
    X(LOADER_COLLATE, "loader_collate", "whether collating dominates")                   \
    X(LOADER_IO, "loader_io", "whether producing a sample waits for files or network")   \
    X(LOADER_RESTART, "loader_restart", "whether workers are started again every epoch") \
    X(LOADER_BURSTY, "loader_bursty", "whether batches come in bursts")                  \
    X(LOADER_MAIN_PROCESS, "loader_main_process",                                        \
      "whether work on batches in the training process stalls the step")                 \
    X(HOST_SYNC, "host_sync", "whether the step waits because the host asks for values") \
    X(TRANSFER, "transfer", "copies between host and device")                            \
    X(LAUNCH_BOUND, "launch_bound", "whether operations are too many and too small")     \
    X(PYTHON_OVERHEAD, "python_overhead", "interpreter time in the program's own code")  \
    X(SLOW_MODULE, "slow_module", "whether one module dominates compute")                \
    X(OPTIMIZER, "optimizer", "the share of the update itself")                          \
    X(DTYPE, "dtype", "whether data is needlessly wide")                                 \
    X(RECOMPILE, "recompile", "compilations after the warm-up")                          \
    X(LOGGING, "logging", "logging and printing inside steps")                           \
    X(CHECKPOINT, "checkpoint", "the share of saving state")                             \
    X(VALIDATION, "validation", "the share of evaluation")                               \
    X(GC, "gc", "pauses of the garbage collector")                                       \
    X(MEMORY_GROWTH, "memory_growth", "whether memory grows with steps")                 \
    X(MEMORY_PRESSURE, "memory_pressure", "whether memory is near its limit")            \
    X(CPU_OVERSUBSCRIBED, "cpu_oversubscribed", "more runnable threads than cores")      \
    X(CPU_STARVED, "cpu_starved", "whether the process gets the CPU it wants")           \
    X(STRAGGLER, "straggler", "whether one rank makes the others wait")                  \
    X(COMMUNICATION, "communication", "the share of collectives")                        \
    X(GPU_THROTTLE, "gpu_throttle", "clocks reduced by power or heat")                   \
    X(AMP, "amp", "full-precision work where mixed precision would be faster")           \
    X(REDUNDANT_WORK, "redundant_work", "work repeated with the same input")             \
    X(VARIANCE, "variance", "steps that are far slower than the rest")

enum sw_finding_kind {
#define SW_FINDING_ENUM(symbol, name, check) SW_FINDING_##symbol,
    SW_FINDING_TABLE(SW_FINDING_ENUM)
#undef SW_FINDING_ENUM
        SW_FINDING_KINDS
};
SW_API const char *sw_finding_kind_name(enum sw_finding_kind kind); /* "loader_workers" */

enum sw_severity {
    SW_SEVERITY_LOW,
    SW_SEVERITY_MEDIUM,
    SW_SEVERITY_HIGH,
    SW_SEVERITY_CRITICAL
};
SW_API const char *sw_severity_name(enum sw_severity severity); /* "low" */

/* A number that a finding stands on; the name carries its unit ("wait_ms", "wait_share"). NaN: unknown. */
typedef struct sw_finding_number {
    const char *name;
    double value;
} sw_finding_number;

#define SW_FINDING_NUMBERS 16
#define SW_FINDING_ADVICE 4
#define SW_FINDING_RULES 8

/* Invariant: low <= speedup <= high where `predicted`. */
typedef struct sw_finding {
    const char *id; /* the same for the same problem in another run of the program */
    enum sw_finding_kind kind;
    uint64_t also; /* kinds that it covers: bit 1 << kind */
    const char *title;
    enum sw_severity severity;
    double confidence; /* 0…1 */
    double
        share; /* of the time over the steps, validation and checkpoints included; NaN: unknown */
    sw_finding_number evidence[SW_FINDING_NUMBERS];
    size_t evidence_count;
    const char *file, *name; /* where; NULL: unknown */
    uint32_t line;           /* 0: unknown */
    const char *advice[SW_FINDING_ADVICE];
    size_t advice_count;
    bool predicted;
    uint64_t step_ns;                    /* mean step after the change */
    double speedup, low, high;           /* time over the steps, old / new */
    const char *rules[SW_FINDING_RULES]; /* "RULE-02" */
    size_t rule_count;
} sw_finding;

typedef struct sw_findings sw_findings;

/* Looks at a summary, which must live as long as the findings. The caller frees them with sw_findings_free. */
SW_API int sw_findings_of_summary(sw_findings **out, const sw_summary *summary,
                                  sw_error_info *info);
SW_API void sw_findings_free(sw_findings *findings); /* NULL is fine */

/* Largest predicted gain first, then those without a prediction by severity. */
SW_API const sw_finding *sw_findings_get(const sw_findings *findings, size_t *count);
/* What bounds the run, one sentence: "compute: 61 % of a step is in Net.conv2". NULL: nothing can be said. */
SW_API const char *sw_findings_bound(const sw_findings *findings);
/* Whether a kind could be looked for in what was recorded; `why`: the reason if not, else NULL. */
SW_API bool sw_findings_checked(const sw_findings *findings, enum sw_finding_kind kind,
                                const char **why);
/* General remarks, one sentence each; NULL past the last. */
SW_API const char *sw_findings_note(const sw_findings *findings, size_t index);

#ifdef __cplusplus
}
#endif
#endif
