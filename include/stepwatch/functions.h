/* Function profiles: how often functions were called, by whom, and how long they took.
 *
 * A table holds functions and calls (who called whom). It is filled by hand, from a run, or from a file of Python's pstats,
 * and given to the exporters of <stepwatch/export.h>. Texts are copied; equal keys are merged by adding. */
#ifndef STEPWATCH_FUNCTIONS_H
#define STEPWATCH_FUNCTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Totals of a function, or of one function called by another. Times are in units of sw_functions_unit_ns. */
typedef struct sw_function_totals {
    uint64_t calls;
    uint64_t primitive_calls; /* of these, not inside another call of the same */
    uint64_t errors;          /* of these, left by an exception */
    uint64_t self;            /* time without callees */
    uint64_t total;           /* time with callees, outermost calls only */
} sw_function_totals;

/* A function. File, line and name are its key, as in pstats; native functions have file "~" and line 0. The qualified name
 * of the first one added stands. */
typedef struct sw_function {
    const char *file, *name, *qualname; /* NUL-terminated when read; any bytes */
    size_t file_length, name_length, qualname_length;
    uint32_t line;
    bool native;
    sw_function_totals totals;
} sw_function;

/* Calls of `callee` by `caller`, indexes of functions; SW_FUNCTION_UNKNOWN: the caller is not known. */
typedef struct sw_function_call {
    uint32_t caller, callee;
    sw_function_totals totals;
} sw_function_call;
#define SW_FUNCTION_UNKNOWN UINT32_MAX

typedef struct sw_functions sw_functions;

SW_API int sw_functions_create(sw_functions **out);
SW_API void sw_functions_free(sw_functions *functions); /* NULL is fine */
/* How many nanoseconds a unit of time is; 1 unless set. */
SW_API double sw_functions_unit_ns(const sw_functions *functions);
SW_API void sw_functions_set_unit_ns(sw_functions *functions, double unit_ns);

/* Whether the errors are known, which they are unless set otherwise: files of pstats do not tell. */
SW_API bool sw_functions_knows_errors(const sw_functions *functions);
SW_API void sw_functions_set_knows_errors(sw_functions *functions, bool known);

/* Adds a function, or its totals to the one that is there. `*index` (may be NULL) is its place. */
SW_API int sw_functions_add(sw_functions *functions, const sw_function *function,
                            uint32_t *index);
/* Adds calls between functions of the table. SW_EINVAL: there is no such function. */
SW_API int sw_functions_add_call(sw_functions *functions, const sw_function_call *call);
/* Adds all of `from`, in the units of `into`. */
SW_API int sw_functions_merge(sw_functions *into, const sw_functions *from);

SW_API size_t sw_functions_count(const sw_functions *functions);
SW_API const sw_function *sw_functions_get(const sw_functions *functions,
                                           size_t index); /* NULL past the last */
SW_API size_t sw_functions_call_count(const sw_functions *functions);
SW_API const sw_function_call *sw_functions_get_call(const sw_functions *functions,
                                                     size_t index);
/* Sums over all functions; `total` is the same as `self`. */
SW_API sw_function_totals sw_functions_sum(const sw_functions *functions);

/* The function profiles of all processes of a run, added up, in ns. A profile that ran while another one of its process
 * did is inside that one and left out. An empty table when there is none. The caller frees it. */
SW_API int sw_functions_of_run(sw_functions **out, const sw_run *run,
                               sw_error_info *info);
/* The table of a file that cProfile, pstats or stepwatch wrote (marshalled, whatever follows it), in ns. Nothing in it
 * is trusted: SW_EFORMAT or SW_ECORRUPT with a sentence. */
SW_API int sw_functions_read_pstats(sw_functions **out, const void *bytes, size_t length,
                                    sw_error_info *info);
SW_API int sw_functions_open_pstats(sw_functions **out, const char *path,
                                    sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif
