/* Trace files on disk: finding them and folding what a dead process left in memory into them. */
#ifndef STEPWATCH_STORE_H
#define STEPWATCH_STORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What folding a file found. */
typedef struct sw_fold_result {
    bool alive;       /* its process still runs: nothing was touched */
    bool folded;      /* the hot file was folded in and removed */
    bool hot_missing; /* the file is open, its process dead, and the hot file is gone */
    uint64_t blocks;  /* blocks copied from the hot file */
    uint64_t bytes;
} sw_fold_result;

/* Completes the home file `path` of a process that was killed: copies what its hot file holds and
 * removes the hot file. A closed file, and one whose process is alive, are left as they are.
 * Only files of the caller's own user are touched, and only a hot file whose id matches. */
SW_API int sw_store_fold(const char *path, sw_fold_result *result, sw_error_info *info);

#ifdef __cplusplus
}
#endif
#endif
