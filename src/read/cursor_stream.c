/* Walking the chunks of one thread.
 *
 * A chunk is read at once. Blocks that are larger than usual are read in pieces, a
 * record that is cut by the end of a piece is moved to the front of the next. */
#include "read/cursor_stream.h"

#include <string.h>

static struct sw__block *current(const struct sw__stream *stream)
{
    return &stream->trace->blocks[stream->chunk];
}

static void enter_next(struct sw__stream *stream)
{
    stream->chunk++;
    stream->pos = 0;
    stream->length = 0;
    stream->loaded = 0;
    stream->walked = 0;
    stream->verify = false;
}

/* Ends the current chunk: did it hold what it claimed? One that was recycled tells
 * nothing. */
static void leave_chunk(struct sw__stream *stream)
{
    struct sw__block *chunk = current(stream);
    if (stream->walked != chunk->records && !stream->verify) {
        sw__chunk_correct(stream->trace, chunk, stream->walked);
    }
    enter_next(stream);
}

/* Reads on in the current chunk; false when there is nothing more in it. */
static bool fill(struct sw__stream *stream)
{
    struct sw__block *chunk = current(stream);
    if (stream->loaded >= chunk->used) {
        return false;
    }
    size_t rest = stream->length - stream->pos;
    memmove(stream->buffer, stream->buffer + stream->pos, rest);
    stream->pos = 0;
    stream->length = rest;
    size_t got = sw__block_read(stream->trace, chunk, stream->loaded,
                                stream->buffer + rest, SW__STREAM_BUFFER - rest);
    /* Places in the kept file are written again, too, where step records have to give way. */
    stream->verify = stream->trace->alive && !chunk->copy;
    if (stream->verify && !sw__block_is_current(stream->trace, chunk)) {
        sw__trace_say_once(stream->trace, &stream->trace->told_recycled,
                           "The process went on recording: some events were overwritten "
                           "while they were read.");
        got = 0;
    }
    stream->loaded += (uint32_t)got;
    stream->length += got;
    return got != 0;
}

/* Whether a chunk can hold anything that is wanted. Records are written when they
 * end, so none of a sealed chunk ended after its last moment. */
static bool may_hold(const struct sw__stream *stream, const struct sw__want *want)
{
    const struct sw__block *chunk = current(stream);
    return want->from_ns == 0 || !chunk->sealed || chunk->cut ||
           sw_timeline_mono_ns(stream->trace->timeline, chunk->last_ticks) >=
               want->from_ns;
}

/* The next whole record of any kind, NULL at the end of the stream. */
static const sw_record *step(struct sw__stream *stream, const struct sw__want *want)
{
    for (;;) {
        size_t size =
            sw__record_length(stream->buffer + stream->pos, stream->length - stream->pos);
        if (SW__LIKELY(size != 0)) {
            const sw_record *record = (const sw_record *)(stream->buffer + stream->pos);
            stream->pos += size;
            stream->walked++;
            return record;
        }
        if (stream->chunk == stream->chunk_end) {
            return NULL;
        }
        if (stream->loaded == 0 && !may_hold(stream, want)) {
            enter_next(stream);
        } else if (!fill(stream)) {
            leave_chunk(stream);
        }
    }
}

bool sw__stream_next(struct sw__stream *stream, const struct sw__want *want)
{
    const sw_timeline *timeline = stream->trace->timeline;
    const sw_record *record;
    while ((record = step(stream, want)) != NULL) {
        unsigned kind = record->kind;
        if (SW__UNLIKELY(kind >= 32 || !(want->kinds >> kind & 1))) {
            continue;
        }
        if (SW__UNLIKELY(record->units < sw__record_units[kind] ||
                         kind == SW_RECORD_SAMPLE || kind == SW_RECORD_LOOK) &&
            !sw__record_is_whole(record)) {
            stream->trace->info.damaged = true;
            continue;
        }
        uint64_t end = sw__record_end(record);
        stream->end_ns = sw__timeline_piece_ns(timeline, &stream->end_piece, end);
        if (SW__UNLIKELY(stream->end_ns < want->from_ns ||
                         stream->end_ns > want->to_ns)) {
            continue;
        }
        stream->begin_ns =
            end == record->ticks
                ? stream->end_ns
                : sw__timeline_piece_ns(timeline, &stream->begin_piece, record->ticks);
        stream->record = record;
        stream->key = stream->end_ns > stream->key ? stream->end_ns : stream->key;
        return true;
    }
    stream->record = NULL;
    return false;
}

bool sw__stream_peek(struct sw__stream *stream)
{
    for (; stream->chunk < stream->chunk_end; stream->chunk++) {
        _Alignas(8) uint8_t first[SW_RECORD_UNIT];
        if (sw__block_read(stream->trace, current(stream), 0, first, sizeof first) ==
            sizeof first) {
            uint64_t end = sw__record_end((const sw_record *)first);
            stream->key = sw_timeline_mono_ns(stream->trace->timeline, end);
            return true;
        }
    }
    return false;
}
