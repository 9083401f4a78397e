/* A stream: the chunks of one kind of one thread, record after record. */
#ifndef SW_READ_CURSOR_STREAM_H
#define SW_READ_CURSOR_STREAM_H

#include "base/timeline_fast.h"
#include "read/trace_internal.h"

#define SW__STREAM_BUFFER 65536u

/* What a cursor was asked for, as the loop over records needs it. */
struct sw__want {
    uint32_t kinds; /* bit k: kind k */
    uint64_t from_ns, to_ns;
};

/* Invariants: pos ≤ length ≤ SW__STREAM_BUFFER; the buffer holds payload of `chunk`
 * that ends at `loaded`; `key` never falls. */
struct sw__stream {
    sw_trace *trace;
    uint32_t trace_index;
    uint32_t position; /* of the thread */
    size_t chunk,
        chunk_end;   /* into the trace's blocks; chunk == chunk_end: it has ended */
    uint8_t *buffer; /* NULL until its turn comes */
    size_t pos, length;
    uint32_t loaded;
    uint32_t walked; /* records of the chunk so far */
    bool verify;     /* the chunk may be recycled under us: look again after reading */

    /* The record that is next. */
    const sw_record *record;
    uint64_t begin_ns, end_ns;
    uint64_t key; /* largest end_ns so far: what streams are merged by */

    struct sw__timeline_piece begin_piece, end_piece;
};

/* Sets `key` to a lower bound from the first record, reading only that. False: it is
 * empty. */
bool sw__stream_peek(struct sw__stream *stream);
/* Goes to the next record that is wanted; false at the end. Needs a buffer. */
bool sw__stream_next(struct sw__stream *stream, const struct sw__want *want);

#endif
