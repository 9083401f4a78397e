/* Training: what the tables of a run say about models, data loaders, compilations and waits, all processes together.
 *
 * A training process and the workers of its loaders write files of their own; here they are one again: rows of the same
 * thing are added up, whatever process wrote them. Ticks have become integer nanoseconds. SW_UNKNOWN (NaN in doubles, NULL in
 * strings) means that a value is not known, which is not the same as 0. Strings are NUL-terminated, may hold any bytes,
 * and live as long as the run. */
#ifndef STEPWATCH_TRAINING_H
#define STEPWATCH_TRAINING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_UNKNOWN UINT64_MAX
#define SW_NO_WORKER UINT32_MAX /* the training process itself */

typedef struct sw_training sw_training;

/* Reads the tables of all traces of a run, which must live longer than the result. The caller frees it with
 * sw_training_free. */
SW_API int sw_training_of_run(sw_training **out, const sw_run *run, sw_error_info *info);
SW_API void sw_training_free(sw_training *training); /* NULL is fine */

/* Whether any process wrote into one of the tables of training. */
SW_API bool sw_training_recorded(const sw_training *training);

/* Where something was built. */
typedef struct sw_training_site {
    unsigned what; /* enum sw_site_what */
    const char *object, *file, *function;
    uint32_t line; /* 0: unknown */
} sw_training_site;
SW_API const sw_training_site *sw_training_sites(const sw_training *training,
                                                 size_t *count);

/* A part of a model, or a loss, by the name of its section. Calls and times are those of the call trees of all threads: apart,
 * those within phase validation, and all others. Recursion counts once in total_ns. */
typedef struct sw_training_module {
    const char *name, *type, *dtype; /* dtype: NULL without parameters of its own */
    bool root, loss;
    const sw_training_site *site;          /* NULL: unknown */
    uint64_t parameters, bytes, trainable; /* its own, those of its parts not included */
    uint64_t calls, total_ns, self_ns;
    uint64_t min_ns, max_ns; /* SW_UNKNOWN without calls */
    uint64_t validation_calls, validation_ns;
    uint64_t backward_calls, backward_ns; /* of the calls whose backward was measured */
} sw_training_module;
/* Most self time first. */
SW_API const sw_training_module *sw_training_modules(const sw_training *training,
                                                     size_t *count);

/* Parameters by their type, most bytes first. */
typedef struct sw_training_dtype {
    const char *dtype;
    uint64_t modules, parameters, bytes, trainable;
} sw_training_dtype;
SW_API const sw_training_dtype *sw_training_dtypes(const sw_training *training,
                                                   size_t *count);

/* A stage of producing batches. `self_ns` leaves out stages within it: fetch without getitem and collate, getitem without
 * transforms. `share` is that of self_ns in the work of all stages of the loader; NaN for those that wait. */
typedef struct sw_training_stage {
    const char *loader, *name;
    uint32_t worker; /* SW_NO_WORKER; in the stages of a loader: always that */
    unsigned kind;   /* enum sw_stage_kind, or a number that is not known yet */
    bool waits;
    uint64_t calls, ns, self_ns;
    uint64_t cpu_ns;         /* SW_UNKNOWN where some part of it is not known */
    uint64_t min_ns, max_ns; /* SW_UNKNOWN without calls */
    double share;
} sw_training_stage;
/* Stages of all loaders, each worker for itself. */
SW_API const sw_training_stage *sw_training_stages(const sw_training *training,
                                                   size_t *count);

/* A worker of a loader. Those of a later pass with the same number are the same worker. */
typedef struct sw_training_worker {
    uint32_t worker;
    uint64_t batches;
    uint64_t busy_ns; /* producing batches */
    uint64_t idle_ns; /* waiting for work within passes; SW_UNKNOWN when not recorded */
    double busy_share;
    uint64_t getitem_calls, getitem_ns, collate_calls, collate_ns;
} sw_training_worker;

typedef struct sw_training_loader {
    const char *name, *dataset;
    bool known; /* false: only its stages were recorded, its settings were not */
    uint64_t worker_setting, batch_size, prefetch_factor, samples,
        passes;                   /* SW_UNKNOWN */
    unsigned bits;                /* SW_LOADER_… */
    const sw_training_site *site; /* NULL: unknown */
    uint64_t batches; /* that were produced; SW_UNKNOWN when nothing says so */
    uint64_t
        looked; /* of these, those whose stages were seen: not in steps watched in brief where there are no workers */
    uint64_t waits, wait_ns;         /* of the training process */
    const sw_training_stage *stages; /* over all workers, most self time first */
    size_t stage_count;
    const sw_training_worker *workers; /* by number */
    size_t worker_count;
} sw_training_loader;
SW_API const sw_training_loader *sw_training_loaders(const sw_training *training,
                                                     size_t *count);
/* The loader that feeds the steps: of those that the process of trace `trace` waited for, the one whose number of batches is
 * nearest to `steps`. NULL when there is none. */
SW_API const sw_training_loader *sw_training_main_loader(const sw_training *training,
                                                         size_t trace, uint64_t steps);

/* Compilations of one function for one reason. */
typedef struct sw_training_compilation {
    const char *function, *reason, *file;
    uint32_t line;
    bool again; /* not the first of the function */
    uint64_t compilations, ns;
    uint64_t trace_ns, lower_ns, backend_ns; /* 0: not told apart */
} sw_training_compilation;
/* Those of one function stand together, the function with most time first. */
SW_API const sw_training_compilation *
sw_training_compilations(const sw_training *training, size_t *count);

/* A place where the program waits for a device, or copies. */
typedef struct sw_training_wait {
    const char *call, *file;
    uint32_t line;
    unsigned kind;     /* enum sw_wait_kind */
    bool non_blocking; /* some calls asked not to wait */
    uint64_t calls, ns, bytes, max_ns, pinned_calls;
} sw_training_wait;
/* Longest first. */
SW_API const sw_training_wait *sw_training_waits(const sw_training *training,
                                                 size_t *count);
SW_API const char *sw_training_wait_kind_name(unsigned kind); /* NULL: unknown */
SW_API const char *sw_training_site_what_name(unsigned what); /* NULL: unknown */

typedef struct sw_training_setting {
    const char *what, *name, *text;
    double number; /* NaN: none */
} sw_training_setting;
SW_API const sw_training_setting *sw_training_settings(const sw_training *training,
                                                       size_t *count);

typedef struct sw_training_operator {
    const char *name, *shapes;
    unsigned phase;  /* enum sw_phase; SW_PHASE_INHERIT: outside steps */
    unsigned device; /* 0 CPU, 1 GPU */
    uint64_t calls, self_ns, total_ns, bytes, flops;
} sw_training_operator;
/* Most self time first. */
SW_API const sw_training_operator *sw_training_operators(const sw_training *training,
                                                         size_t *count);

#ifdef __cplusplus
}
#endif
#endif
