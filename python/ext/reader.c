/* Walking over the rows of a table. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES 16384

/* Memory that rows point into, newest block first. Invariant: used <= size. */
struct core_block {
    struct core_block *next;
    size_t used, size;
    _Alignas(16) char bytes[];
};

static void blocks_free(core_reader *reader)
{
    while (reader->blocks) {
        struct core_block *next = reader->blocks->next;
        free(reader->blocks);
        reader->blocks = next;
    }
}

/* One block is kept, so that a batch that fits into it allocates nothing. */
static void blocks_reset(core_reader *reader)
{
    if (reader->blocks && (reader->blocks->next || reader->blocks->size > BLOCK_BYTES)) {
        blocks_free(reader);
    }
    if (reader->blocks) {
        reader->blocks->used = 0;
    }
}

void *core_reader_take(core_reader *reader, size_t bytes)
{
    bytes = (bytes + 15) & ~(size_t)15;
    struct core_block *block = reader->blocks;
    if (!block || block->size - block->used < bytes) {
        const size_t size = bytes > BLOCK_BYTES ? bytes : BLOCK_BYTES;
        block = malloc(sizeof *block + size);
        if (!block) {
            return NULL;
        }
        *block = (struct core_block){.next = reader->blocks, .size = size};
        reader->blocks = block;
    }
    void *taken = block->bytes + block->used;
    block->used += bytes;
    return taken;
}

static int out_of_memory(sw_error_info *info)
{
    return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
}

/* The source is locked. */
static int open_locked(core_reader *reader, sw_error_info *info)
{
    core_source *source = reader->source;
    const core_table_kind *kind = reader->kind;
    if (kind->prepare && !source->made[reader->number]) {
        const int error = kind->prepare(source, &source->made[reader->number], info);
        if (error) {
            return error;
        }
    }
    if (!kind->events) {
        return SW_OK;
    }
    const sw_cursor_filter filter = {.kinds = kind->events,
                                     .steps = (kind->events >> SW_RECORD_STEP & 1) != 0};
    return sw_cursor_open(&reader->cursor, source->traces, source->trace_count, &filter,
                          info);
}

int core_reader_open(core_reader **out, core_source *source,
                     enum core_table_number number, sw_error_info *info)
{
    *out = NULL;
    core_reader *reader = calloc(1, sizeof *reader);
    if (!reader) {
        return out_of_memory(info);
    }
    reader->source = core_source_retain(source);
    reader->kind = core_tables[number];
    reader->number = number;
    int error = SW_OK;
    if (source->run) {
        reader->phases = calloc(source->trace_count * CORE_DOMAINS + 1, sizeof(uint32_t));
        if (!reader->phases) {
            error = out_of_memory(info);
        } else {
            core_source_lock(source);
            error = open_locked(reader, info);
            core_source_unlock(source);
        }
    }
    if (error) {
        core_reader_free(reader);
        return error;
    }
    *out = reader;
    return SW_OK;
}

void core_reader_free(core_reader *reader)
{
    if (!reader) {
        return;
    }
    sw_cursor_free(reader->cursor);
    blocks_free(reader);
    free(reader->phases);
    core_source_release(reader->source);
    free(reader);
}

static int fill_events(core_reader *reader, core_cell *cells, size_t most, size_t *rows)
{
    const core_table_kind *kind = reader->kind;
    for (sw_event event; *rows < most; ++*rows) {
        const int error = sw_cursor_next(reader->cursor, &event);
        if (error) {
            return error == SW_EEND ? SW_OK : error;
        }
        kind->from_event(reader, &event, cells + *rows * kind->column_count);
    }
    return SW_OK;
}

static int fill_indexed(core_reader *reader, core_cell *cells, size_t most, size_t *rows)
{
    const core_table_kind *kind = reader->kind;
    const uint64_t count = kind->count(reader->source);
    for (; *rows < most && reader->index < count; ++*rows) {
        const int error =
            kind->at(reader, reader->index, cells + *rows * kind->column_count);
        if (error) {
            return error;
        }
        reader->index++;
    }
    return SW_OK;
}

int core_reader_fill(core_reader *reader, core_cell *cells, size_t most, size_t *rows,
                     sw_error_info *info)
{
    *rows = 0;
    if (!reader->source->run) {
        return SW_OK;
    }
    blocks_reset(reader);
    core_source_lock(reader->source);
    const int error = reader->cursor ? fill_events(reader, cells, most, rows)
                                     : fill_indexed(reader, cells, most, rows);
    core_source_unlock(reader->source);
    reader->passed += *rows;
    return error ? sw_error_set(info, error, "%s", sw_error_text(error)) : SW_OK;
}

int core_reader_skip(core_reader *reader, uint64_t most, uint64_t *rows,
                     sw_error_info *info)
{
    *rows = 0;
    if (!reader->source->run) {
        return SW_OK;
    }
    int error = SW_OK;
    core_source_lock(reader->source);
    if (reader->cursor) {
        for (sw_event event; *rows < most && !error; *rows += !error) {
            error = sw_cursor_next(reader->cursor, &event);
        }
        error = error == SW_EEND ? SW_OK : error;
    } else {
        const uint64_t left = reader->kind->count(reader->source) - reader->index;
        *rows = most < left ? most : left;
        reader->index += *rows;
    }
    core_source_unlock(reader->source);
    reader->passed += *rows;
    return error ? sw_error_set(info, error, "%s", sw_error_text(error)) : SW_OK;
}

/* --- What rows are made of -------------------------------------------------------- */

sw_trace *core_reader_trace(const core_reader *reader, const sw_event *event)
{
    return reader->source->traces[event->trace];
}

core_bytes core_name_of(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name ? (core_bytes){name->text, name->length} : (core_bytes){NULL, 0};
}

const char *core_thread_of(const sw_trace *trace, uint32_t thread)
{
    const size_t count = sw_trace_thread_count(trace);
    /* Threads usually stand at their own index. */
    const sw_trace_thread *found =
        thread < count ? sw_trace_get_thread(trace, thread) : NULL;
    for (size_t i = 0; (!found || found->index != thread) && i < count; i++) {
        found = sw_trace_get_thread(trace, i);
    }
    return found && found->index == thread ? found->name : NULL;
}

/* Lanes are few, and events of one come in a row: a small cache finds nearly all. */
static const sw_trace_lane *lane_of(core_reader *reader, const sw_event *event,
                                    uint32_t thread, uint32_t domain)
{
    struct core_lane_entry *entry =
        &reader->lanes[(event->trace * 31u + thread * 7u + domain) % CORE_LANE_CACHE];
    if (entry->lane && entry->trace == event->trace && entry->lane->thread == thread &&
        entry->lane->domain == domain) {
        return entry->lane;
    }
    const sw_trace *trace = core_reader_trace(reader, event);
    const size_t count = sw_trace_lane_count(trace);
    for (size_t i = 0; i < count; i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        if (lane->thread == thread && lane->domain == domain) {
            *entry = (struct core_lane_entry){lane, event->trace};
            return lane;
        }
    }
    return NULL;
}

core_bytes core_section_of(core_reader *reader, const sw_event *event, uint32_t thread,
                           uint32_t domain, uint32_t node)
{
    const sw_trace_lane *lane = node ? lane_of(reader, event, thread, domain) : NULL;
    return lane && node < lane->node_count
               ? core_name_of(core_reader_trace(reader, event), lane->nodes[node].section)
               : (core_bytes){NULL, 0};
}

core_bytes core_parent_of(core_reader *reader, const sw_event *event, uint32_t thread,
                          uint32_t domain, uint32_t node)
{
    const sw_trace_lane *lane = node ? lane_of(reader, event, thread, domain) : NULL;
    return lane && node < lane->node_count
               ? core_section_of(reader, event, thread, domain, lane->nodes[node].parent)
               : (core_bytes){NULL, 0};
}

void core_put_text(core_cell *cell, const char *text)
{
    core_put_bytes(cell, (core_bytes){text, text ? strlen(text) : 0});
}
