/* Calls on files and sockets, joined over processes: rows IO by section, rows THING by path. */
#include "analyze/io_calls.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"
#include "analyze/training.h"

struct sw_io {
    struct sw__bag_key key; /* scratch */
    struct sw__bag things;  /* sw_io_thing */
    struct sw__bag sections;
    sw_io_sum total[SW_IO_KINDS][SW_IO_OPERATIONS];
    size_t processes;
    uint64_t missed, folded;
};

static struct sw__bag_key *key_begin(sw_io *io)
{
    io->key.used = 0;
    io->key.failed = false;
    return &io->key;
}

static void add_row(sw_io_sum *sum, const struct sw__training_source *source,
                    const sw_row *row)
{
    const uint64_t longest = sw__row_ns(source, row->value[4]);
    sum->calls = sw__add(sum->calls, row->value[0]);
    sum->bytes = sw__add(sum->bytes, row->value[1]);
    sum->ns = sw__add(sum->ns, sw__row_ns(source, row->value[2]));
    sum->small = sw__add(sum->small, row->value[3]);
    sum->longest_ns = longest > sum->longest_ns ? longest : sum->longest_ns;
}

static void add_operation(sw_io_sum *sums, unsigned operation,
                          const struct sw__training_source *source, const sw_row *row)
{
    add_row(&sums[operation], source, row);
    if (operation != SW_IO_WAIT && operation != SW_IO_ACCEPT) {
        add_row(&sums[0], source, row);
    }
}

/* Numbers outside the tables come from a newer version, or from nowhere. */
static unsigned kind_of(uint32_t number)
{
    return number > 0 && number < SW_IO_KINDS ? number : SW_IO_KIND_MORE;
}

static unsigned operation_of(uint32_t number)
{
    return number > 0 && number < SW_IO_OPERATIONS ? number : SW_IO_OTHER;
}

static int take_section(sw_io *io, const struct sw__training_source *source,
                        const sw_row *row, bool training)
{
    const char *name = sw__row_text(source->trace, row->key[0]);
    const unsigned operation = operation_of(row->key[3]);
    const uint8_t phase =
        row->key[1] < SW_PHASE_COUNT ? (uint8_t)row->key[1] : SW_PHASE_INHERIT;
    bool fresh;
    struct sw__bag_key *key = key_begin(io);
    sw__key_text(key, name);
    sw__key_number(key, (uint64_t)phase << 1 | training);
    sw_io_section *section = sw__bag_put(&io->sections, key, &fresh);
    if (!section) {
        return SW_ENOMEM;
    }
    section->section = name;
    section->phase = phase;
    section->training = training;
    add_operation(section->sum, operation, source, row);
    add_row(&io->total[kind_of(row->key[2])][operation], source, row);
    return SW_OK;
}

static int take_thing(sw_io *io, const struct sw__training_source *source,
                      const sw_row *row)
{
    const char *name = sw__row_text(source->trace, row->key[0]);
    const unsigned kind = kind_of(row->key[1]);
    bool fresh;
    struct sw__bag_key *key = key_begin(io);
    sw__key_text(key, name);
    sw__key_number(key, kind);
    sw_io_thing *thing = sw__bag_put(&io->things, key, &fresh);
    if (!thing) {
        return SW_ENOMEM;
    }
    if (fresh) {
        thing->name = name ? name : "(unnamed)";
        thing->kind = (enum sw_io_kind)kind;
        thing->size = SW_UNKNOWN;
        thing->first = SW_UNKNOWN;
    }
    if (row->key[2] == 0) {
        const uint64_t size = row->value[0];
        if (size != SW_UNKNOWN && (thing->size == SW_UNKNOWN || size > thing->size)) {
            thing->size = size;
        }
        if (row->value[2] && row->value[2] - 1 < thing->first) {
            thing->first = row->value[2] - 1;
        }
        thing->failed = sw__add(thing->failed, row->value[1]);
        thing->processes++;
        return SW_OK;
    }
    add_operation(thing->sum, operation_of(row->key[2]), source, row);
    return SW_OK;
}

static int take_trace(sw_io *io, const struct sw__training_source *source, bool training)
{
    int error = SW_OK;
    const sw_trace *trace = source->trace;
    const sw_row *row = sw_trace_get_row(trace, SW_TABLE_WATCHED, 0);
    if (row) {
        io->processes++;
        io->missed = sw__add(io->missed, row->value[2]);
        io->folded = sw__add(io->folded, row->value[3]);
    }
    const size_t sections = sw_trace_row_count(trace, SW_TABLE_IO);
    for (size_t i = 0; !error && i < sections; i++) {
        row = sw_trace_get_row(trace, SW_TABLE_IO, i);
        error = row ? take_section(io, source, row, training) : SW_OK;
    }
    const size_t things = sw_trace_row_count(trace, SW_TABLE_THING);
    for (size_t i = 0; !error && i < things; i++) {
        row = sw_trace_get_row(trace, SW_TABLE_THING, i);
        error = row ? take_thing(io, source, row) : SW_OK;
    }
    return error;
}

static int by_time(const sw_io_sum *a, const sw_io_sum *b)
{
    if (a->ns != b->ns) {
        return a->ns > b->ns ? -1 : 1;
    }
    return (a->calls < b->calls) - (a->calls > b->calls);
}

static int order_things(const void *left, const void *right)
{
    const sw_io_thing *a = left, *b = right;
    const int order = by_time(a->sum, b->sum);
    return order ? order : strcmp(a->name, b->name);
}

static int order_sections(const void *left, const void *right)
{
    const sw_io_section *a = left, *b = right;
    const int order = by_time(a->sum, b->sum);
    if (order) {
        return order;
    }
    return strcmp(a->section ? a->section : "", b->section ? b->section : "");
}

/* Bytes that were read of a file although they had been read before. */
static uint64_t read_again(const sw_io_thing *thing)
{
    const uint64_t read = thing->sum[SW_IO_READ].bytes;
    const uint64_t written = thing->sum[SW_IO_WRITE].bytes;
    if (thing->kind != SW_IO_KIND_FILE || thing->size == SW_UNKNOWN) {
        return SW_UNKNOWN;
    }
    if (written > 0) {
        /* What there was to read is what it had, and what came. */
        return read > 0 && thing->first != SW_UNKNOWN
                   ? sw__sub(read, sw__add(thing->first, written))
                   : SW_UNKNOWN;
    }
    /* Files of the kernel's own say that they are empty. */
    return thing->size > 0 || read == 0 ? sw__sub(read, thing->size) : SW_UNKNOWN;
}

static void finish(sw_io *io)
{
    for (size_t i = 0; i < io->things.count; i++) {
        sw_io_thing *thing = sw__bag_at(&io->things, i);
        thing->again = read_again(thing);
    }
    if (io->things.count > 1) {
        qsort(io->things.items, io->things.count, io->things.size, order_things);
    }
    if (io->sections.count > 1) {
        qsort(io->sections.items, io->sections.count, io->sections.size, order_sections);
    }
}

int sw__io_of_traces(sw_io **out, const sw_trace *const *traces, const bool *training,
                     size_t count)
{
    *out = NULL;
    sw_io *io = sw__alloc_zero(1, sizeof *io);
    int error = io ? sw__bag_init(&io->things, sizeof(sw_io_thing)) : SW_ENOMEM;
    error = error ? error : sw__bag_init(&io->sections, sizeof(sw_io_section));
    for (size_t i = 0; !error && i < count; i++) {
        const struct sw__training_source source = {.trace = traces[i],
                                                   .index = i,
                                                   .ns_per_tick =
                                                       sw_trace_ns_per_tick(traces[i])};
        error = take_trace(io, &source, training[i]);
    }
    if (error || io->processes == 0) {
        sw__io_free(io);
        return error;
    }
    finish(io);
    *out = io;
    return SW_OK;
}

void sw__io_free(sw_io *io)
{
    if (io) {
        sw__bag_free(&io->things);
        sw__bag_free(&io->sections);
        sw__free(io->key.bytes);
        sw__free(io);
    }
}

int sw__summary_io(sw_summary *summary)
{
    const sw_trace **traces = sw__alloc_zero(summary->traces + 1, sizeof *traces);
    bool *training = sw__alloc_zero(summary->traces + 1, sizeof *training);
    int error = traces && training ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; !error && i < summary->traces; i++) {
        traces[i] = sw__summary_trace(summary, i);
        for (size_t k = 0; k < summary->step_thread_count; k++) {
            training[i] =
                training[i] || summary->step_threads[k].pid == summary->processes[i].pid;
        }
    }
    if (!error) {
        error = sw__io_of_traces(&summary->io, traces, training, summary->traces);
    }
    sw__free(traces);
    sw__free(training);
    return error;
}

const sw_io *sw_summary_io(const sw_summary *summary)
{
    return summary->io;
}

const sw_io_sum *sw_io_total(const sw_io *io, enum sw_io_kind kind,
                             enum sw_io_operation operation)
{
    static const sw_io_sum none;
    return (unsigned)kind < SW_IO_KINDS && (unsigned)operation < SW_IO_OPERATIONS
               ? &io->total[kind][operation]
               : &none;
}

const sw_io_thing *sw_io_things(const sw_io *io, size_t *count)
{
    *count = io->things.count;
    return sw__bag_at(&io->things, 0);
}

const sw_io_section *sw_io_sections(const sw_io *io, size_t *count)
{
    *count = io->sections.count;
    return sw__bag_at(&io->sections, 0);
}

size_t sw_io_processes(const sw_io *io)
{
    return io->processes;
}

uint64_t sw_io_missed(const sw_io *io)
{
    return io->missed;
}

uint64_t sw_io_folded(const sw_io *io)
{
    return io->folded;
}
