/* Traces: values, marks, batches, and what the watchers of a framework tell of single calls. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/json_put.h"
#include "export/trace_export.h"

#define CLASS_RECORD 2

static void put_name_member(sw_writer *w, const char *key, const sw_trace *trace,
                            uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    if (name && name->length) {
        sw_json_key(w, key);
        sw_json_string_n(w, name->text, name->length);
    }
}

static void put_place(sw_writer *w, const sw_trace *trace, uint32_t file, uint32_t line)
{
    put_name_member(w, "file", trace, file);
    if (line) {
        put_uint(w, "line", line);
    }
}

/* Begins a slice of the thread, with its arguments open. */
static void begin_slice(struct sw__trace_export *it, struct sw__trace_process *process,
                        struct sw__track *track, struct sw__slice *slice,
                        const char *category, const sw_event *event)
{
    if (!it->kineto) {
        slice->category = category;
    } else if (!slice->category) {
        slice->category = "user_annotation";
    }
    slice->begin_ns = event->begin_ns;
    slice->end_ns = event->end_ns;
    sw__slice_begin(it, process, track, slice, CLASS_RECORD);
    sw__event_args(it);
    if (it->kineto) {
        sw__trace_put_ids(it, process, 0);
    }
}

/* --- Values and marks --- */

/* Nothing that a key of JSON's would have to escape. */
static bool plain(const sw_trace_name *name)
{
    for (size_t i = 0; i < name->length; i++) {
        const char c = name->text[i];
        if (c < ' ' || c > '~' || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

/* `unit`: what the number is of; viewers show it beside the name. */
static void put_value(struct sw__trace_export *it, struct sw__trace_process *process,
                      struct sw__track *track, struct sw__slice *slice, uint64_t ns,
                      double value, const char *unit)
{
    if (!isfinite(value)) {
        return; /* viewers have no gaps in a curve, and no such numbers */
    }
    slice->pid = track->pid;
    slice->tid = track->tid;
    slice->begin_ns = ns;
    sw__moment_begin(it, process, "C", slice);
    sw__event_args(it);
    put_double(it->writer, unit, value);
    sw__event_end(it, true);
}

/* Sums that grow are shown by their growth. */
static void put_growth(struct sw__trace_export *it, struct sw__trace_process *process,
                       struct sw__track *track, struct sw__slice *slice,
                       struct sw__trace_series *series, double value, uint64_t ns,
                       const char *unit)
{
    const struct sw__trace_series before = *series;
    char rate[40];
    series->known = isfinite(value);
    series->value = value;
    series->ns = ns;
    if (!before.known || !series->known || before.ns >= ns) {
        return;
    }
    const bool named = strcmp(unit, "value") != 0;
    slice->suffix = named ? NULL : " per second";
    snprintf(rate, sizeof rate, "%.32s%s", unit, named ? "/s" : "");
    put_value(it, process, track, slice, ns,
              (value - before.value) / ((double)(ns - before.ns) / 1e9), rate);
}

static void put_counter(struct sw__trace_export *it, struct sw__trace_process *process,
                        struct sw__track *track, const sw_record_counter *counter,
                        const sw_event *event)
{
    struct sw__slice slice = sw__slice_of_name(process->trace, counter->head.id);
    const bool monitor = counter->head.kind == SW_RECORD_MONITOR;
    slice.category = monitor ? "monitor" : "counter";
    struct sw__trace_series *series =
        monitor ? sw__trace_series_of(process, counter->head.id) : NULL;
    const sw_trace_name *name =
        series && series->unit ? sw_trace_get_name(process->trace, series->unit) : NULL;
    char unit[33] = "value";
    if (name && name->length > 0 && name->length < sizeof unit && plain(name)) {
        memcpy(unit, name->text, name->length);
        unit[name->length] = '\0';
    }
    if (series && series->total) {
        put_growth(it, process, track, &slice, series, counter->value, event->end_ns,
                   unit);
    } else {
        put_value(it, process, track, &slice, event->end_ns, counter->value,
                  strcmp(unit, "1") ? unit : "value");
    }
}

static void put_mark(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, const sw_event *event)
{
    struct sw__slice slice = sw__slice_of_name(process->trace, event->record->id);
    sw__track_name(it, process, track);
    slice.category = it->kineto ? "cpu_instant_event" : "mark";
    slice.pid = track->pid;
    slice.tid = track->tid;
    slice.begin_ns = event->begin_ns;
    sw__moment_begin(it, process, "i", &slice);
    put_string(it->writer, "s", "t");
    sw__event_end(it, false);
}

/* --- Batches --- */

static void put_batch_part(struct sw__trace_export *it, struct sw__trace_process *process,
                           struct sw__track *track, const char *what,
                           const sw_record_batch *batch, uint64_t begin, uint64_t end)
{
    sw_writer *w = it->writer;
    const sw_timeline *timeline = sw_trace_timeline(process->trace);
    struct sw__slice slice = {.name = what, .length = strlen(what)};
    const sw_event event = {.begin_ns = sw_timeline_mono_ns(timeline, begin),
                            .end_ns = sw_timeline_mono_ns(timeline, end)};
    begin_slice(it, process, track, &slice, "loader", &event);
    put_name_member(w, "loader", process->trace, batch->head.id);
    put_uint(w, "batch", batch->index);
    put_uint(w, "epoch", batch->epoch);
    if (batch->worker != UINT32_MAX) {
        put_uint(w, "worker", batch->worker);
    }
    if (batch->step != UINT64_MAX) {
        put_uint(w, "step", batch->step);
    }
    if (batch->bytes) {
        put_uint(w, "bytes", batch->bytes);
    }
    if (batch->cpu_ns) {
        put_double(w, "cpu_us", (double)batch->cpu_ns / 1e3);
    }
    sw__event_end(it, true);
}

/* The record of a batch comes later than its fetching was, and from a worker's thread that sends and not from the one that fetches:
 * tracks of their own show them. What other moments there are is that of the process that trains, and of its waiting. */
static void put_batch(struct sw__trace_export *it, struct sw__trace_process *process,
                      const sw_record_batch *batch)
{
    if (!batch->fetch_begin || batch->fetch_end < batch->fetch_begin) {
        return;
    }
    if (!process->batches) {
        process->batches = sw__track_make(it, process->pid, "fetching of batches", NULL);
        process->sending = sw__track_make(it, process->pid, "sending of batches", NULL);
    }
    if (!process->batches || !process->sending) {
        return;
    }
    put_batch_part(it, process, process->batches, "fetch batch", batch,
                   batch->fetch_begin, batch->fetch_end);
    if (batch->worker != UINT32_MAX && batch->end > batch->fetch_end) {
        put_batch_part(it, process, process->sending, "send batch", batch,
                       batch->fetch_end, batch->end);
    }
}

/* --- Single calls --- */

static void put_compile(struct sw__trace_export *it, struct sw__trace_process *process,
                        struct sw__track *track, const sw_record_compile *compile,
                        const sw_event *event)
{
    static const char *const stages[] = {"whole", "trace", "lower", "back end"};
    struct sw__slice slice = sw__slice_of_name(process->trace, compile->head.id);
    slice.prefix = "compile ";
    begin_slice(it, process, track, &slice, "compile", event);
    put_string(it->writer, "stage", compile->stage < 4 ? stages[compile->stage] : NULL);
    put_uint(it->writer, "count", compile->count);
    put_name_member(it->writer, "reason", process->trace, compile->reason);
    put_place(it->writer, process->trace, compile->file, compile->line);
    sw__event_end(it, true);
}

static void put_gc(struct sw__trace_export *it, struct sw__trace_process *process,
                   struct sw__track *track, const sw_record_gc *gc, const sw_event *event)
{
    char name[48];
    snprintf(name, sizeof name, "gc generation %u", gc->generation);
    struct sw__slice slice = {.name = name, .length = strlen(name)};
    begin_slice(it, process, track, &slice, "gc", event);
    put_uint(it->writer, "collected", gc->collected);
    sw__event_end(it, true);
}

static void put_sync(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, const sw_record_sync *sync,
                     const sw_event *event)
{
    struct sw__slice slice = sw__slice_of_name(process->trace, sync->head.id);
    begin_slice(it, process, track, &slice, "sync", event);
    put_place(it->writer, process->trace, sync->file, sync->line);
    sw__event_end(it, true);
}

static void put_transfer(struct sw__trace_export *it, struct sw__trace_process *process,
                         struct sw__track *track, const sw_record_xfer *xfer,
                         const sw_event *event)
{
    static const char *const directions[] = {NULL, "host to device", "device to host",
                                             "device to device"};
    struct sw__slice slice = sw__slice_of_name(process->trace, xfer->head.id);
    begin_slice(it, process, track, &slice, "transfer", event);
    put_uint(it->writer, "bytes", xfer->bytes);
    put_string(it->writer, "direction",
               xfer->direction < 4 ? directions[xfer->direction] : NULL);
    if (xfer->pinned < 2) {
        put_bool(it->writer, "pinned", xfer->pinned == 1);
    }
    put_place(it->writer, process->trace, xfer->file, xfer->line);
    sw__event_end(it, true);
}

/* Tools know collectives by names such as "gloo:all_reduce". */
static void put_collective(struct sw__trace_export *it, struct sw__trace_process *process,
                           struct sw__track *track, const sw_record_collective *record,
                           const sw_event *event)
{
    struct sw__slice slice = sw__slice_of_name(process->trace, record->head.id);
    slice.prefix = it->kineto && it->backend[0] ? it->backend : NULL;
    slice.category = "cpu_op";
    begin_slice(it, process, track, &slice, "collective", event);
    put_name_member(it->writer, "Collective name", process->trace, record->head.id);
    put_uint(it->writer, "bytes", record->bytes);
    put_uint(it->writer, "sequence", record->sequence);
    put_name_member(it->writer, "Process Group Name", process->trace, record->group);
    put_uint(it->writer, "Group size", record->ranks);
    sw__event_end(it, true);
}

static void put_io(struct sw__trace_export *it, struct sw__trace_process *process,
                   struct sw__track *track, const sw_record_io *io, const sw_event *event)
{
    struct sw__slice slice = sw__slice_of_name(process->trace, io->head.id);
    const char *operation = sw_io_operation_name(io->operation);
    char prefix[32];
    snprintf(prefix, sizeof prefix, "%s ", operation ? operation : "call");
    slice.prefix = prefix;
    begin_slice(it, process, track, &slice, "io", event);
    put_uint(it->writer, "bytes", io->bytes);
    if (io->result < 0) {
        put_uint(it->writer, "errno", (uint64_t) - (int64_t)io->result);
    }
    sw__event_end(it, true);
}

void sw__trace_record(struct sw__trace_export *it, struct sw__trace_process *process,
                      struct sw__track *track, const sw_event *event)
{
    const void *record = event->record;
    switch (event->record->kind) {
    case SW_RECORD_COUNTER:
    case SW_RECORD_MONITOR:
        put_counter(it, process, track, record, event);
        break;
    case SW_RECORD_MARK:
        put_mark(it, process, track, event);
        break;
    case SW_RECORD_BATCH:
        put_batch(it, process, record);
        break;
    case SW_RECORD_COMPILE:
        put_compile(it, process, track, record, event);
        break;
    case SW_RECORD_GC:
        put_gc(it, process, track, record, event);
        break;
    case SW_RECORD_SYNC:
        put_sync(it, process, track, record, event);
        break;
    case SW_RECORD_XFER:
        put_transfer(it, process, track, record, event);
        break;
    case SW_RECORD_COLLECTIVE:
        put_collective(it, process, track, record, event);
        break;
    case SW_RECORD_IO:
        put_io(it, process, track, record, event);
        break;
    case SW_RECORD_GPU:
        sw__trace_gpu(it, process, track, event);
        break;
    case SW_RECORD_ALLOC:
        sw__trace_allocation(it, process, track, event);
        break;
    case SW_RECORD_SAMPLE:
        sw__trace_sample(it, process, event);
        break;
    default: /* what is no moment of the program's own */
        break;
    }
}
