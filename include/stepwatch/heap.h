/* Allocations of this process: exact counters, and sampled stacks (docs/memory.md).
 *
 * While it is on, the entries through which loaded objects call malloc and its kin lead through here; allocators of
 * interpreters that give out memory in pieces do so through functions of sw_heap_pools_count. Counters belong to threads and
 * are plain additions. Where a section is open on the thread, they are also counted for it.
 *
 * Glossary: a *part* is who allocates (enum sw_heap_part); parts do not overlap. Bytes are those that a block takes, which is
 * a little more than was asked for. *In use* is allocated less freed since it was switched on. */
#ifndef STEPWATCH_HEAP_H
#define STEPWATCH_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Switches it on, or counts one more who wants it. `sample_bytes`: a stack is taken about every so many bytes; 0: none. The
 * first who asks for samples decides how many. 0, or SW_EUNSUPPORTED on other processors. */
SW_API int sw_heap_start(uint64_t sample_bytes, sw_error_info *info);
/* The last one switches it off. Blocks that are freed later are not seen. */
SW_API void sw_heap_stop(void);
SW_API bool sw_heap_is_on(void);

typedef struct sw_heap_totals {
    uint64_t allocated, blocks, freed, blocks_freed;
} sw_heap_totals;
typedef struct sw_heap_stats {
    sw_heap_totals part[SW_HEAP_PARTS];
    sw_heap_totals all; /* their sum */
} sw_heap_stats;
/* Since it was switched on first, over all threads. */
SW_API void sw_heap_read(sw_heap_stats *out);
/* Puts what was counted since the recording began into it; also done when it ends. */
SW_API void sw_heap_totals_write(void);

/* A stretch of time of which the peak is wanted. `number` from 0; -1: too many are open (16). */
SW_API int sw_heap_window_open(void);
/* Bytes in use at its begin, now, and at most meanwhile. A thread tells what it has after every 64 KiB that it
 * allocates, so the peak is exact to that for each thread that allocates. */
typedef struct sw_heap_window {
    int64_t begin, now, peak;
} sw_heap_window;
SW_API void sw_heap_window_read(int number, sw_heap_window *out);
SW_API void sw_heap_window_close(int number);

/* --- for allocators of interpreters --- */

/* The part that the calling thread calls malloc for. SW_HEAP_NOBODY: nobody, for the memory is given out again in pieces that
 * are counted. Else SW_HEAP_NATIVE. */
#define SW_HEAP_NOBODY 15u
SW_API unsigned sw_heap_within(void);
SW_API void sw_heap_set_within(unsigned part);

/* The functions of an allocator, each with its context as first argument. */
typedef struct sw_heap_allocator {
    void *context;
    void *(*malloc)(void *context, size_t size);
    void *(*calloc)(void *context, size_t count, size_t size);
    void *(*realloc)(void *context, void *block, size_t size);
    void (*free)(void *context, void *block);
} sw_heap_allocator;
/* Before the next. A pool has 1 << pool_bits bytes (12 or 14), begins at a multiple of that, and all its blocks have one size, a
 * multiple of 16; 0: there are none. SW_OK, SW_EINVAL or SW_ENOMEM. */
SW_API int sw_heap_pools_prepare(unsigned pool_bits);
/* Of an allocator that cuts small blocks, those of 1 to `small_most` bytes (512 at most), out of pools which malloc knows nothing
 * of, and has malloc make all others: functions to put in the place of its own, which call these and count for `part`,
 * SW_HEAP_OBJECT or SW_HEAP_MEM. Their context is the allocator's. One thread at a time calls them; there is one
 * allocator a part. */
SW_API sw_heap_allocator sw_heap_pools_count(unsigned part,
                                             const sw_heap_allocator *original,
                                             size_t small_most);

/* --- samples --- */

/* A frame of a stack. Functions are numbers of whoever walks stacks; those with the bit SW_HEAP_CALLER stand for a place in
 * native code, which is there where no other frame is, and as a leaf where that is asked for. */
#define SW_HEAP_CALLER 0x80000000u
typedef struct sw_heap_frame {
    uint32_t function, line;
} sw_heap_frame;
/* Fills the calling thread's stack, leaf first; how many frames. Is called in the middle of an allocation: it must not wait
 * for anything that the thread may hold. One thread at a time, and none while a process forks. NULL: none. */
typedef size_t (*sw_heap_walk)(sw_heap_frame *out, size_t most);
SW_API void sw_heap_set_walk(sw_heap_walk walk, bool native_leaves);

/* What the samples say: a tree of calls. Numbers are estimates, of allocations made at this very place. */
typedef struct sw_heap_site {
    uint32_t parent; /* index plus 1; 0: none */
    sw_heap_frame frame;
    uint64_t samples;
    double allocated, blocks; /* over all time */
    double live;              /* in use now */
    double peak;              /* in use when most was */
} sw_heap_site;
typedef struct sw_heap_snapshot {
    sw_heap_site *sites; /* a parent comes before its children */
    size_t count;
    double live, peak; /* sums; peak: the most there was */
    /* In use at some steps, at most 64: points[site * steps + i] at step[i]. */
    uint64_t *step;
    float *points;
    size_t steps;
} sw_heap_snapshot;
/* The caller frees it with sw_heap_snapshot_free. SW_ENOMEM. */
SW_API int sw_heap_snapshot_take(sw_heap_snapshot *out);
SW_API void sw_heap_snapshot_free(sw_heap_snapshot *snapshot);
/* The peak counts from now on. */
SW_API void sw_heap_peak_restart(void);
/* The address in native code that a function with SW_HEAP_CALLER stands for; NULL: not known. */
SW_API void *sw_heap_caller(uint32_t function);

#ifdef __cplusplus
}
#endif
#endif
