/* Memory of a run: what the kernel says of each process, and what was allocated where (docs/memory.md).
 *
 * Strings come from the program and may hold any bytes; they live as long as the summary. SW_UNKNOWN is not the same as 0. */
#ifndef STEPWATCH_MEMORY_H
#define STEPWATCH_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/stacks.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_memory sw_memory;

/* What allocations add up to. */
typedef struct sw_memory_sum {
    uint64_t allocated, blocks, freed, blocks_freed;
} sw_memory_sum;

typedef struct sw_memory_process {
    uint32_t pid;
    bool main; /* the one with the steps, or the first */
    /* In bytes; SW_UNKNOWN. Room: what it could still have taken when that was least. */
    uint64_t resident_start, resident_end, resident_peak, least_room, swapped;
    bool counted; /* allocations were; else what follows is 0 */
    uint64_t sample_bytes;
    sw_memory_sum sum, part[SW_HEAP_PARTS];
    uint64_t peak; /* most in use at once, beyond what was when counting began */
} sw_memory_process;
/* The main one first; 0 processes where nothing is known. */
SW_API const sw_memory_process *sw_memory_processes(const sw_memory *memory,
                                                    size_t *count);

/* Whether allocations of the main process were counted. */
SW_API bool sw_memory_is_counted(const sw_memory *memory);

/* What a section's own thread allocated while it was open, in the main process. */
typedef struct sw_memory_section {
    const char *const *path; /* names, outermost first */
    size_t depth;
    const char *thread;
    uint64_t calls;
    sw_memory_sum sum;
    uint64_t peak; /* most of one call, beyond what the thread had at its begin */
    bool parted;   /* what follows is known */
    sw_memory_sum part[SW_HEAP_PARTS]; /* the same sums by who allocates */
} sw_memory_section;
/* Largest peak first. */
SW_API const sw_memory_section *sw_memory_sections(const sw_memory *memory,
                                                   size_t *count);

/* Resident memory of the main process around calls of a section, as the kernel says it. */
typedef struct sw_memory_resident {
    const char *const *path; /* names, outermost first */
    size_t depth;
    const char *thread; /* NULL: that of the steps, as far as the monitor saw */
    uint64_t calls;     /* SW_UNKNOWN */
    uint64_t read;      /* calls of which both ends were read */
    int64_t sum, most,
        least;        /* more at the end than at the begin; 0 where none was read */
    uint64_t highest; /* most that was seen while one was open, sampled; SW_UNKNOWN */
    const sw_memory_section
        *counted; /* what its thread allocated, exact; NULL: not counted */
} sw_memory_resident;
/* Those that added most first. */
SW_API const sw_memory_resident *sw_memory_residents(const sw_memory *memory,
                                                     size_t *count);

/* How something grew with the steps; NaN: not known. */
typedef struct sw_memory_growth {
    bool grows;
    double slope, low, high; /* bytes a step, with its interval of 95 % */
    double p;                /* the chance of such a trend without growth */
    double total;            /* bytes, over the steps that count */
} sw_memory_growth;

/* A line that allocates: of the program's own code where there is one on the stack. Bytes are estimated from samples. */
typedef struct sw_memory_site {
    const char *file, *function;
    uint32_t line; /* 0: unknown */
    bool own;      /* of the program itself */
    uint64_t allocated, blocks, live, peak, samples;
    sw_memory_growth growth;
} sw_memory_site;
/* Of the main process; largest part of the peak first. */
SW_API const sw_memory_site *sw_memory_sites(const sw_memory *memory, size_t *count);

/* An allocator of a framework, of one device; bytes, SW_UNKNOWN. */
typedef struct sw_memory_allocator {
    const char *name; /* "torch.cuda" */
    uint32_t pid;
    uint32_t device; /* UINT32_MAX: the CPU */
    uint64_t allocated, allocated_peak, reserved, reserved_peak;
    uint64_t retries; /* allocations for which it had to give up what it kept */
    uint64_t failed;  /* allocations that failed all the same */
    uint64_t pieces, pieces_peak; /* free pieces of blocks that are in use elsewhere */
    double unused;     /* largest share of `reserved` that was not in use; NaN */
    uint64_t readings; /* at ends of steps, and at the end */
} sw_memory_allocator;
SW_API const sw_memory_allocator *sw_memory_allocators(const sw_memory *memory,
                                                       size_t *count);

/* Something that held tensors with their graphs, when that was looked for between two steps; NULL: not known. */
typedef struct sw_memory_holder {
    const char *name;     /* "losses", "Trainer.losses" */
    const char *kind;     /* "list", or "Tensor" for a sum of many */
    const char *file;     /* of the program */
    const char *function; /* whose variable it is; NULL: a global one, or an attribute */
    uint32_t line;        /* that puts things there, else where the function begins */
    bool keeps;           /* it is the former */
    const char *value;    /* what is put there, where it is a plain name */
    uint64_t tensors;
    uint64_t
        chain; /* additions in the graph of one tensor, counted up to 512; 0: it is no sum */
    bool whole;    /* all objects were looked at */
    uint64_t step; /* the next one then */
} sw_memory_holder;
/* Of the main process; those that hold most first. */
SW_API const sw_memory_holder *sw_memory_holders(const sw_memory *memory, size_t *count);

enum sw_memory_view { SW_MEMORY_PEAK, SW_MEMORY_LIVE, SW_MEMORY_ALLOCATED };
/* The sampled stacks with their bytes in place of samples. The caller frees them with sw_stacks_free. */
SW_API int sw_memory_stacks(sw_stacks **out, const sw_memory *memory,
                            enum sw_memory_view view);

#ifdef __cplusplus
}
#endif
#endif
