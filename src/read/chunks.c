/* Records within chunks: how long they are, and how many there are. */
#include <string.h>

#include "read/trace_internal.h"

#define UNITS(type) ((uint8_t)((sizeof(type) + SW_RECORD_UNIT - 1) / SW_RECORD_UNIT))

const uint8_t sw__record_units[256] = {
    [SW_RECORD_SPAN] = UNITS(sw_record_span),
    [SW_RECORD_COUNTER] = UNITS(sw_record_counter),
    [SW_RECORD_MARK] = UNITS(sw_record_mark),
    [SW_RECORD_STEP] = UNITS(sw_record_step),
    [SW_RECORD_BATCH] = UNITS(sw_record_batch),
    [SW_RECORD_SITE] = UNITS(sw_record_site),
    [SW_RECORD_SAMPLE] = UNITS(sw_record_sample),
    [SW_RECORD_COMPILE] = UNITS(sw_record_compile),
    [SW_RECORD_GC] = UNITS(sw_record_gc),
    [SW_RECORD_SYNC] = UNITS(sw_record_sync),
    [SW_RECORD_XFER] = UNITS(sw_record_xfer),
    [SW_RECORD_COLLECTIVE] = UNITS(sw_record_collective),
    [SW_RECORD_ALLOC] = UNITS(sw_record_alloc),
    [SW_RECORD_IO] = UNITS(sw_record_io),
    [SW_RECORD_MONITOR] = UNITS(sw_record_counter),
    [SW_RECORD_GPU] = UNITS(sw_record_gpu),
    [SW_RECORD_LOOK] = UNITS(sw_record_look),
};

bool sw__record_is_whole(const sw_record *record)
{
    unsigned least = sw__record_units[record->kind];
    if (record->units < least) {
        return false;
    }
    if (record->kind == SW_RECORD_SAMPLE) {
        const sw_record_sample *sample = (const sw_record_sample *)record;
        size_t length = sizeof *sample + sample->depth * sizeof(sw_record_frame);
        return length <= (size_t)record->units * SW_RECORD_UNIT;
    }
    if (record->kind == SW_RECORD_LOOK) {
        const sw_record_look *look = (const sw_record_look *)record;
        size_t length = sizeof *look + look->depth * sizeof(sw_look_frame);
        return length <= (size_t)record->units * SW_RECORD_UNIT;
    }
    return true;
}

void sw__chunk_correct(sw_trace *trace, struct sw__block *chunk, uint32_t records)
{
    if (chunk->kind == SW__BLOCK_EVENTS) {
        trace->info.present += records;
        trace->info.present -= chunk->records;
    }
    chunk->records = records;
    sw__trace_damage(trace,
                     "A block of thread %lu is damaged: some of its records are lost.",
                     (unsigned long)chunk->thread);
}

/* Counts the records of one payload; also the latest moment it speaks of. */
static uint32_t walk(const uint8_t *bytes, size_t length, uint64_t *last_ticks,
                     bool *whole)
{
    uint32_t records = 0;
    while (length) {
        size_t size = sw__record_length(bytes, length);
        if (size == 0) {
            *whole = false;
            break;
        }
        uint64_t end = sw__record_end((const sw_record *)bytes);
        *last_ticks = end > *last_ticks ? end : *last_ticks;
        records++;
        bytes += size;
        length -= size;
    }
    return records;
}

/* Sealed chunks say how many they hold, and a cursor verifies it; others are counted
 * here. */
int sw__chunks_count(sw_trace *trace)
{
    struct sw__scratch scratch = {0};
    int result = SW_OK;
    for (size_t i = trace->state_count; i < trace->block_count; i++) {
        struct sw__block *chunk = &trace->blocks[i];
        if (!chunk->sealed || chunk->cut) {
            size_t length;
            bool whole = true;
            if (!sw__scratch_load(&scratch, trace, chunk, &length)) {
                result = SW_ENOMEM;
                break;
            }
            chunk->last_ticks = 0;
            chunk->records = walk(scratch.data, length, &chunk->last_ticks, &whole);
            /* Of a program that runs, it may have been taken for other records meanwhile. */
            const bool current =
                !trace->alive || chunk->copy || sw__block_is_current(trace, chunk);
            if (!whole && !chunk->cut && current) {
                sw__trace_damage(trace,
                                 "A block of thread %lu is damaged: some of its records "
                                 "are lost.",
                                 (unsigned long)chunk->thread);
            }
        } else if (chunk->records > chunk->used / SW_RECORD_UNIT) {
            sw__trace_damage(trace,
                             "A block of thread %lu claims more records than it has.",
                             (unsigned long)chunk->thread);
            chunk->records = chunk->used / SW_RECORD_UNIT;
        }
        if (chunk->kind == SW__BLOCK_EVENTS) {
            trace->info.present += chunk->records;
        }
    }
    sw__free(scratch.data);
    return result;
}
