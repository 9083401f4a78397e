/* Calls on files and sockets of a run, from the tables that its processes left (docs/io.md).
 *
 * Strings come from the program and may hold any bytes; they live as long as the run. SW_UNKNOWN is not the same as 0. */
#ifndef STEPWATCH_IO_H
#define STEPWATCH_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>
#include <stepwatch/records.h>
#include <stepwatch/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls of one operation. A small one moved fewer than 4 KiB. */
typedef struct sw_io_sum {
    uint64_t calls, bytes, ns, small, longest_ns;
} sw_io_sum;

/* A file, a peer, or what is not told apart. */
typedef struct sw_io_thing {
    const char *name;
    enum sw_io_kind kind;
    sw_io_sum sum
        [SW_IO_OPERATIONS]; /* by enum sw_io_operation; [0]: of all but `wait` and `accept`, which wait for others */
    uint64_t size; /* of the file, the most that was seen; SW_UNKNOWN */
    uint64_t
        again; /* bytes read beyond its size, all processes together; of a file that the program writes to, beyond what it had
                        at first and what was written; SW_UNKNOWN where that is not known */
    uint64_t failed; /* calls */
    size_t processes;
    uint64_t
        first; /* size of the file when a process saw it first, the least of all; SW_UNKNOWN */
} sw_io_thing;

/* What was called in one section and phase. */
typedef struct sw_io_section {
    const char *section; /* NULL: none was open */
    uint8_t phase;       /* enum sw_phase; SW_PHASE_INHERIT: outside steps */
    bool training; /* in a process that has steps; else in a worker or another one */
    sw_io_sum sum[SW_IO_OPERATIONS]; /* as above */
} sw_io_section;

typedef struct sw_io sw_io;

/* Sums over everything: by kind, and by operation. */
SW_API const sw_io_sum *sw_io_total(const sw_io *io, enum sw_io_kind kind,
                                    enum sw_io_operation operation);
/* Those with the most time first. */
SW_API const sw_io_thing *sw_io_things(const sw_io *io, size_t *count);
SW_API const sw_io_section *sw_io_sections(const sw_io *io, size_t *count);
/* Processes that were watched, calls that could not be counted, files opened that count for their folder. */
SW_API size_t sw_io_processes(const sw_io *io);
SW_API uint64_t sw_io_missed(const sw_io *io);
SW_API uint64_t sw_io_folded(const sw_io *io);

#ifdef __cplusplus
}
#endif
#endif
