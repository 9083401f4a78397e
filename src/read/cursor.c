/* Cursors: the streams of all threads, merged by a heap.
 *
 * A stream enters the heap with a lower bound of its first key and takes a buffer
 * only when its turn comes; it gives the buffer back at its end. So a run with
 * thousands of threads that came and went needs as many buffers as there were
 * threads at one time. */
#include <string.h>

#include "read/cursor_stream.h"

/* An entry of the heap: smallest key first, then the earlier stream. */
struct entry {
    uint64_t key;
    size_t stream;
};

struct spare {
    struct spare *next;
};

struct sw_cursor {
    struct sw__want want;
    struct sw__stream *streams;
    size_t stream_count;
    struct entry *heap;
    size_t heap_count;
    struct spare *spare; /* buffers that no stream uses */
    bool given;          /* the top of the heap was given out: move on first */
};

static bool is_before(const struct entry *a, const struct entry *b)
{
    return a->key < b->key || (a->key == b->key && a->stream < b->stream);
}

static void sift_down(struct entry *heap, size_t count, size_t at)
{
    struct entry moved = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= count) {
            break;
        }
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child])) {
            child++;
        }
        if (!is_before(&heap[child], &moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

static void give_buffer(sw_cursor *cursor, struct sw__stream *stream)
{
    struct spare *spare = (struct spare *)(void *)stream->buffer;
    stream->buffer = NULL;
    if (spare) {
        spare->next = cursor->spare;
        cursor->spare = spare;
    }
}

static bool take_buffer(sw_cursor *cursor, struct sw__stream *stream)
{
    if (cursor->spare) {
        stream->buffer = (uint8_t *)cursor->spare;
        cursor->spare = cursor->spare->next;
    } else {
        stream->buffer = sw__alloc(SW__STREAM_BUFFER);
    }
    return stream->buffer != NULL;
}

/* Moves the stream at the top of the heap to its next record and the heap into
 * order. */
static void advance(sw_cursor *cursor)
{
    struct entry *top = &cursor->heap[0];
    struct sw__stream *stream = &cursor->streams[top->stream];
    if (sw__stream_next(stream, &cursor->want)) {
        top->key = stream->key;
    } else {
        give_buffer(cursor, stream);
        *top = cursor->heap[--cursor->heap_count];
    }
    if (cursor->heap_count > 1) {
        sift_down(cursor->heap, cursor->heap_count, 0);
    }
}

int sw_cursor_next(sw_cursor *cursor, sw_event *event)
{
    if (cursor->given) {
        cursor->given = false;
        advance(cursor);
    }
    while (cursor->heap_count) {
        struct sw__stream *stream = &cursor->streams[cursor->heap[0].stream];
        if (SW__UNLIKELY(!stream->buffer)) {
            if (!take_buffer(cursor, stream)) {
                return SW_ENOMEM;
            }
            advance(cursor);
            continue;
        }
        event->record = stream->record;
        event->begin_ns = stream->begin_ns;
        event->end_ns = stream->end_ns;
        event->trace = stream->trace_index;
        event->thread = stream->position;
        cursor->given = true;
        return SW_OK;
    }
    return SW_EEND;
}

/* Kinds that lie in STEPS chunks beside steps. */
#define KEPT_KINDS (1u << SW_RECORD_MONITOR | 1u << SW_RECORD_LOOK)

static bool is_wanted(const sw_cursor_filter *filter, bool kept,
                      const struct sw__block *chunk)
{
    if (chunk->kind == SW__BLOCK_STEPS && !kept) {
        return false;
    }
    return !filter->one_thread || chunk->position == filter->thread;
}

/* Counts, or adds when `cursor` has room for them, the streams of one trace. */
static size_t each_stream(sw_cursor *cursor, sw_trace *trace, size_t index,
                          const sw_cursor_filter *filter, bool kept)
{
    size_t count = 0;
    size_t begin = trace->state_count;
    while (begin < trace->block_count) {
        const struct sw__block *first = &trace->blocks[begin];
        size_t end = begin + 1;
        while (end < trace->block_count && trace->blocks[end].kind == first->kind &&
               trace->blocks[end].thread == first->thread) {
            end++;
        }
        if (is_wanted(filter, kept, first)) {
            count++;
            if (cursor->streams) {
                cursor->streams[cursor->stream_count++] =
                    (struct sw__stream){.trace = trace,
                                        .trace_index = (uint32_t)index,
                                        .position = first->position,
                                        .chunk = begin,
                                        .chunk_end = end};
            }
        }
        begin = end;
    }
    return count;
}

static void set_want(sw_cursor *cursor, const sw_cursor_filter *filter, bool steps)
{
    uint32_t known = 0;
    for (unsigned kind = 1; kind < SW_RECORD_KINDS; kind++) {
        known |= 1u << kind;
    }
    uint32_t kinds = filter->kinds ? filter->kinds & known : known;
    uint32_t step_bit = 1u << SW_RECORD_STEP;
    cursor->want.kinds = steps ? kinds | step_bit : kinds & ~step_bit;
    cursor->want.from_ns = filter->from_ns;
    cursor->want.to_ns = filter->to_ns ? filter->to_ns : UINT64_MAX;
}

int sw_cursor_open(sw_cursor **out, sw_trace *const *traces, size_t count,
                   const sw_cursor_filter *filter, sw_error_info *info)
{
    static const sw_cursor_filter everything;
    *out = NULL;
    filter = filter ? filter : &everything;
    bool steps = filter->steps || (filter->kinds & 1u << SW_RECORD_STEP);
    bool kept = steps || !filter->kinds || (filter->kinds & KEPT_KINDS);
    sw_cursor *cursor = sw__alloc_zero(1, sizeof *cursor);
    if (!cursor) {
        goto fail;
    }
    set_want(cursor, filter, steps);
    size_t streams = 0;
    for (size_t i = 0; i < count; i++) {
        streams += each_stream(cursor, traces[i], i, filter, kept);
    }
    cursor->streams = sw__alloc_zero(streams, sizeof *cursor->streams);
    cursor->heap = sw__alloc_zero(streams, sizeof *cursor->heap);
    if (!cursor->streams || !cursor->heap) {
        goto fail;
    }
    for (size_t i = 0; i < count; i++) {
        each_stream(cursor, traces[i], i, filter, kept);
    }
    for (size_t i = 0; i < streams; i++) {
        if (sw__stream_peek(&cursor->streams[i])) {
            cursor->heap[cursor->heap_count++] =
                (struct entry){cursor->streams[i].key, i};
        }
    }
    for (size_t i = cursor->heap_count / 2; i-- > 0;) {
        sift_down(cursor->heap, cursor->heap_count, i);
    }
    *out = cursor;
    return SW_OK;
fail:
    sw_cursor_free(cursor);
    return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
}

void sw_cursor_free(sw_cursor *cursor)
{
    if (!cursor) {
        return;
    }
    for (size_t i = 0; i < cursor->stream_count; i++) {
        sw__free(cursor->streams[i].buffer);
    }
    while (cursor->spare) {
        struct spare *next = cursor->spare->next;
        sw__free(cursor->spare);
        cursor->spare = next;
    }
    sw__free(cursor->heap);
    sw__free(cursor->streams);
    sw__free(cursor);
}
