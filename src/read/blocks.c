/* Finding the blocks of a file.
 *
 * Blocks follow one another, so a scan is a chain of headers. Where a header is not
 * plausible the scan goes on page by page until one is: at most one look for every
 * 4096 bytes of the file. */
#include <string.h>

#include "read/live_chunks.h"

#define ATTEMPTS 16

struct scan {
    sw_trace *trace;
    struct sw__source *source;
    enum sw__read_source which;
    struct sw__live *live; /* the second scan of a file that is being written */
    bool unfinished;       /* its writer may have been cut short, or writes on */
    bool after_empty;      /* the page before was empty */
    uint64_t bad_from;     /* start of the unreadable stretch, 0 none */
    uint64_t quiet_until;  /* what lies before this is no damage */
    uint64_t empty_from;   /* start of a stretch of zeros, 0 none */
    uint64_t empty_bytes;  /* such stretches that were followed by something */
};

/* Nothing yet: zeros, or a block of the hot file whose header was not finished, for the
 * magic is stored last. */
static bool is_empty(const struct scan *scan, const struct sw__fmt_block *header)
{
    if (header->magic != 0 || scan->which == SW__SOURCE_HOT) {
        return header->magic == 0;
    }
    const uint8_t *bytes = (const uint8_t *)header;
    size_t zeros = 0;
    while (zeros < sizeof *header && bytes[zeros] == 0) {
        zeros++;
    }
    return zeros == sizeof *header;
}

static bool is_plausible(const struct scan *scan, const struct sw__fmt_block *header,
                         uint64_t offset)
{
    if (header->magic != SW__FMT_BLOCK_MAGIC || header->kind == 0 ||
        header->size < SW__FMT_PAGE || header->size % SW__FMT_PAGE != 0 ||
        header->size > SW__READ_BLOCK_MAX) {
        return false;
    }
    return scan->which != SW__SOURCE_HOT || header->address == offset;
}

static void end_bad(struct scan *scan, uint64_t offset)
{
    if (scan->bad_from && !scan->live) {
        sw__trace_damage(scan->trace, "%llu bytes at offset %llu of %s cannot be read.",
                         (unsigned long long)(offset - scan->bad_from),
                         (unsigned long long)scan->bad_from, scan->source->path);
    }
    scan->bad_from = 0;
}

static void end_empty(struct scan *scan, uint64_t offset)
{
    if (scan->empty_from) {
        scan->empty_bytes += offset - scan->empty_from;
        scan->empty_from = 0;
    }
}

/* Believes no more of `used` than the file holds. A file that is being written
 * grows. */
static void cut_to_file(struct scan *scan, struct sw__block *block)
{
    uint64_t begin = block->offset + SW__READ_HEADER;
    if (scan->source->size - begin < block->used && scan->trace->alive) {
        sw__source_refresh(scan->source);
    }
    uint64_t held = scan->source->size > begin ? scan->source->size - begin : 0;
    if (held < block->used) {
        sw__trace_damage(scan->trace, "%s ends inside a block; the rest is missing.",
                         scan->source->path);
        block->used = (uint32_t)held;
        block->cut = true;
    }
}

/* SW_ESTATE: the block changed while it was read; nothing was added. */
static int add_block(struct scan *scan, const struct sw__fmt_block *header,
                     uint64_t offset)
{
    struct sw__block *block = sw__index_add(scan->trace);
    if (!block) {
        return SW_ENOMEM;
    }
    block->offset = offset;
    block->address = header->address;
    block->sequence = header->sequence;
    block->revision = header->revision;
    block->first_ticks = header->first_ticks;
    block->last_ticks = header->last_ticks;
    block->snapshot = header->snapshot;
    block->size = header->size;
    block->used = header->used;
    block->records = header->records;
    block->thread = header->thread;
    block->domain = header->domain;
    block->kind = header->kind;
    block->source = (uint8_t)scan->which;
    block->sealed = (header->flags & SW__BLOCK_SEALED) != 0;

    uint32_t room = header->size - SW__READ_HEADER;
    if (block->used > room) {
        sw__trace_damage(scan->trace,
                         "The block at offset %llu of %s claims more than it has.",
                         (unsigned long long)offset, scan->source->path);
        block->used = room;
        block->cut = true;
    }
    cut_to_file(scan, block);
    if (scan->which == SW__SOURCE_HOT && scan->trace->alive &&
        sw__block_is_chunk(block)) {
        int result = SW_OK;
        if (!sw__live_copy(scan->trace, block, &result)) {
            scan->trace->block_count--;
            return SW_ESTATE;
        }
        return result;
    }
    return SW_OK;
}

static int64_t step_over_empty(struct scan *scan, uint64_t offset)
{
    end_bad(scan, offset);
    scan->after_empty = true;
    scan->empty_from = scan->empty_from ? scan->empty_from : offset;
    uint64_t next = sw__source_next_data(scan->source, offset + SW__FMT_PAGE);
    next -= next % SW__FMT_PAGE;
    return next > offset ? (int64_t)(next - offset) : (int64_t)SW__FMT_PAGE;
}

/* In the home file a block's body is written before its header: an empty page and then
 * something is a block that did not get that far. It is still in the hot file. */
static void note_bad(struct scan *scan, uint64_t offset)
{
    bool torn = scan->after_empty && scan->unfinished;
    if (offset >= scan->quiet_until && !scan->bad_from && !torn) {
        scan->bad_from = offset;
    }
}

/* Whether the block is of this file; one of an earlier use of the same room is not. */
static bool is_ours(struct scan *scan, const struct sw__fmt_block *header)
{
    sw_trace *trace = scan->trace;
    if (header->kind == SW__BLOCK_FREE) {
        return true;
    }
    if (!trace->file_id_known) {
        trace->file_id_known = true;
        trace->file_id = header->file_id;
    }
    return header->file_id == trace->file_id;
}

/* Looks at what is at `offset`; gives the bytes to go on by, or a negative error. */
static int64_t look(struct scan *scan, uint64_t offset)
{
    struct sw__fmt_block header;
    for (int attempt = 0;; attempt++) {
        if (sw__source_read(scan->source, &header, sizeof header, offset) !=
            sizeof header) {
            return INT64_MAX;
        }
        if (is_empty(scan, &header)) {
            return step_over_empty(scan, offset);
        }
        end_empty(scan, offset);
        if (!is_plausible(scan, &header, offset)) {
            note_bad(scan, offset);
            return SW__FMT_PAGE;
        }
        scan->after_empty = false;
        if (!is_ours(scan, &header)) {
            scan->quiet_until = offset + header.size;
            return SW__FMT_PAGE;
        }
        end_bad(scan, offset);
        /* Kinds that are not known yet are stepped over, like free room. */
        bool wanted =
            header.kind < SW__BLOCK_KINDS && header.kind != SW__BLOCK_FREE &&
            (!scan->live || sw__live_wants(scan->live, scan->trace, &header, offset));
        int result = wanted ? add_block(scan, &header, offset) : SW_OK;
        if (result == SW_OK || (result == SW_ESTATE && attempt == ATTEMPTS)) {
            return header.size;
        }
        if (result != SW_ESTATE) {
            return result;
        }
    }
}

static int run(struct scan *scan)
{
    uint64_t offset = SW__FMT_PAGE;
    while (offset < scan->source->size &&
           scan->source->size - offset >= SW__READ_HEADER) {
        int64_t step = look(scan, offset);
        if (step < 0) {
            return (int)step;
        }
        if ((uint64_t)step >= scan->source->size - offset) {
            break;
        }
        offset += (uint64_t)step;
    }
    end_bad(scan, scan->source->size);
    return SW_OK;
}

/* The second scan of the hot file of a running process. */
static int scan_again(sw_trace *trace)
{
    struct sw__live live;
    struct scan scan = {.trace = trace,
                        .source = &trace->source[SW__SOURCE_HOT],
                        .which = SW__SOURCE_HOT,
                        .live = &live};
    int result = sw__live_begin(&live, trace);
    if (result == SW_OK) {
        sw__source_refresh(scan.source);
        result = run(&scan);
    }
    sw__live_end(&live);
    return result;
}

int sw__blocks_scan(sw_trace *trace, enum sw__read_source which)
{
    bool closed = trace->super && trace->super->state == SW__STATE_CLOSED;
    struct scan scan = {.trace = trace,
                        .source = &trace->source[which],
                        .which = which,
                        .unfinished = !closed};
    int result = run(&scan);
    if (result == SW_OK && which == SW__SOURCE_HOT && trace->alive) {
        result = scan_again(trace);
    }
    if (scan.empty_bytes && which == SW__SOURCE_HOME && closed) {
        sw__trace_damage(trace, "%llu bytes of %s were never written.",
                         (unsigned long long)scan.empty_bytes, scan.source->path);
    }
    return result;
}
