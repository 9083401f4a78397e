/* Chunks of a process that records while we read.
 *
 * Its writer takes room, fills it and gives it back while the scan of the hot file
 * goes from front to back, so one scan may see a thread's chunk n + 2 and not n + 1,
 * which was taken behind its back; or the first half of n, and n + 1. A second scan
 * looks for all that came before the newest chunk of the first one. What it does not
 * find in the hot file has reached the home file, which is scanned last, or was
 * given up. */
#ifndef SW_READ_LIVE_CHUNKS_H
#define SW_READ_LIVE_CHUNKS_H

#include "read/trace_internal.h"

struct sw__live_limit {
    uint32_t thread;
    uint16_t kind;
    uint64_t sequence; /* of the newest chunk of the first scan */
};

struct sw__live {
    struct sw__live_limit *limits;
    size_t limit_count;
    size_t known, known_count; /* blocks of the first scan, in the order of the file */
};

/* After the first scan. SW_ENOMEM is the only error. */
int sw__live_begin(struct sw__live *live, const sw_trace *trace);
void sw__live_end(struct sw__live *live);
/* Whether the second scan should take the block at `offset`; offsets rise from call
 * to call. */
bool sw__live_wants(struct sw__live *live, const sw_trace *trace,
                    const struct sw__fmt_block *header, uint64_t offset);
/* Copies the payload of a chunk before it is recycled, as long as there is room for
 * copies. False when it was recycled already. */
bool sw__live_copy(sw_trace *trace, struct sw__block *block, int *result);

#endif
