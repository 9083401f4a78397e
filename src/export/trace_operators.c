/* Traces: what a framework's own profiler saw: operators on the threads that ran them, work of devices, memory that was handed
 * out, and arrows from forward to backward and from a launch to what it launched.
 *
 * Records come in the order of their ends, so that one end of an arrow is known before the other. It waits in a table of fixed
 * size; what waits for longer than many others has no arrow. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/json_put.h"
#include "export/trace_export.h"

/* Classes of fits: siblings have the same, and sections have others. */
enum { CLASS_WORK = 2, CLASS_OPERATOR = 1 << 20 };

/* --- Arrows --- */

static struct sw__flow_end *flow_slot(struct sw__trace_export *it,
                                      enum sw__flow_kind kind, uint64_t number)
{
    if (!it->flow_ends[kind]) {
        it->flow_ends[kind] = sw__alloc_zero(SW__FLOW_ENDS, sizeof **it->flow_ends);
    }
    if (!it->flow_ends[kind]) {
        it->error = SW_ENOMEM;
        return NULL;
    }
    return &it->flow_ends[kind][number % SW__FLOW_ENDS];
}

/* What waits there under that key, or NULL. */
static struct sw__flow_end *flow_find(struct sw__trace_export *it,
                                      enum sw__flow_kind kind,
                                      const struct sw__flow_end *wanted)
{
    struct sw__flow_end *slot = flow_slot(it, kind, wanted->number);
    return slot && slot->key == wanted->key && slot->number == wanted->number ? slot
                                                                              : NULL;
}

static void flow_keep(struct sw__trace_export *it, enum sw__flow_kind kind,
                      const struct sw__flow_end *end)
{
    struct sw__flow_end *slot = flow_slot(it, kind, end->number);
    if (slot) {
        *slot = *end;
    }
}

void sw__trace_flows_free(struct sw__trace_export *it)
{
    for (int i = 0; i < SW__FLOW_KINDS; i++) {
        sw__free(it->flow_ends[i]);
    }
}

/* Never 0, which is that of an empty place. */
static uint64_t key_of(const struct sw__trace_export *it,
                       const struct sw__trace_process *process, uint64_t tid)
{
    return ((uint64_t)(process - it->processes) + 1) << 32 | (tid & UINT32_MAX);
}

/* Of the operators with one number of autograd's, the innermost is the one that backward belongs to: it begins last. */
static void link_autograd(struct sw__trace_export *it, struct sw__trace_process *process,
                          uint64_t tid, const sw_record_operator *record,
                          struct sw__flow_end end)
{
    if (record->sequence == UINT64_MAX) {
        return;
    }
    end.number = record->sequence;
    end.key = key_of(it, process,
                     record->span.head.flags & SW_SPAN_BACKWARD && record->forward
                         ? record->forward
                         : tid);
    struct sw__flow_end *other = flow_find(it, SW__FLOW_FORWARD, &end);
    if (record->span.head.flags & SW_SPAN_BACKWARD) {
        if (other) {
            sw__trace_put_flow(it, process, "fwdbwd", other, &end);
            other->key = 0;
        }
    } else if (!other || other->begin_ns < end.begin_ns) {
        flow_keep(it, SW__FLOW_FORWARD, &end);
    }
}

/* A call that waits for what it launched ends after it. */
static void link_work(struct sw__trace_export *it,
                      const struct sw__trace_process *process, uint32_t correlation,
                      struct sw__flow_end end, bool launch)
{
    if (correlation == 0) {
        return;
    }
    end.number = correlation;
    end.key = key_of(it, process, 0);
    struct sw__flow_end *other =
        flow_find(it, launch ? SW__FLOW_WORK : SW__FLOW_LAUNCH, &end);
    if (other) {
        sw__trace_put_flow(it, process, "ac2g", launch ? &end : other,
                           launch ? other : &end);
        other->key = launch ? 0 : other->key; /* one launch may start several */
    }
    if (launch || !other) {
        flow_keep(it, launch ? SW__FLOW_LAUNCH : SW__FLOW_WORK, &end);
    }
}

/* --- Operators --- */

static bool begins(const struct sw__slice *name, const char *with)
{
    const size_t length = strlen(with);
    return name->length >= length && memcmp(name->name, with, length) == 0;
}

/* By name, of files that say nothing else. */
static unsigned flags_of_name(const struct sw__slice *name)
{
    const bool runtime =
        begins(name, "cuda") || (begins(name, "cu") && name->length > 2 &&
                                 name->name[2] >= 'A' && name->name[2] <= 'Z');
    return begins(name, "Optimizer.") || begins(name, "enumerate(") ? SW_SPAN_ANNOTATION
           : runtime                                                ? SW_SPAN_RUNTIME
                                                                    : 0;
}

/* A text that is JSON already; what is not is a string. */
static void put_json(struct sw__trace_export *it, const char *key, const sw_trace *trace,
                     uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    if (!name || name->length == 0) {
        return;
    }
    sw_json_key(it->writer, key);
    if (!sw__trace_put_raw(it, name->text, name->length, '[')) {
        sw_json_string_n(it->writer, name->text, name->length);
    }
}

void sw__trace_operator(struct sw__trace_export *it, struct sw__trace_process *process,
                        struct sw__track *track, uint64_t tid, const sw_event *event)
{
    const sw_record_operator *record =
        (const sw_record_operator *)(const void *)event->record;
    const bool known = event->record->flags & SW_SPAN_OPERATOR &&
                       event->record->units >= sizeof *record / SW_RECORD_UNIT;
    sw_writer *w = it->writer;
    struct sw__slice slice = sw__slice_of_name(process->trace, event->record->id);
    const unsigned flags = known ? event->record->flags : flags_of_name(&slice);
    slice.category = !it->kineto                  ? "operator"
                     : flags & SW_SPAN_ANNOTATION ? "user_annotation"
                     : flags & SW_SPAN_RUNTIME    ? "cuda_runtime"
                                                  : "cpu_op";
    slice.begin_ns = event->begin_ns;
    slice.end_ns = event->end_ns;
    const bool placed =
        sw__slice_begin(it, process, track, &slice, CLASS_OPERATOR + record->span.depth);
    const bool runtime = flags & SW_SPAN_RUNTIME;
    const bool args =
        it->kineto ||
        (known && (record->shapes || record->types || record->sequence != UINT64_MAX));
    if (args) {
        sw__event_args(it);
    }
    if (it->kineto && runtime && known) {
        put_uint(w, "External id", sw__trace_external(it, process, record->external));
        put_uint(w, "correlation", record->correlation);
    } else if (it->kineto) {
        sw__trace_put_ids(it, process, known ? record->external : 0);
    }
    if (known && record->sequence != UINT64_MAX) {
        put_uint(w, "Sequence number", record->sequence);
        put_uint(w, "Fwd thread id", record->forward);
    }
    if (known) {
        put_json(it, "Input Dims", process->trace, record->shapes);
        put_json(it, "Input type", process->trace, record->types);
    }
    sw__event_end(it, args);
    track->last_ns = event->end_ns > track->last_ns ? event->end_ns : track->last_ns;
    it->counts.operators++;
    const struct sw__flow_end end = {
        .begin_ns = slice.begin_ns, .pid = slice.pid, .tid = slice.tid};
    if (placed && known && runtime) {
        link_work(it, process, record->correlation, end, true);
    } else if (placed && known && !(flags & SW_SPAN_ANNOTATION)) {
        link_autograd(it, process, tid, record, end);
    }
}

/* --- Work of devices --- */

static void name_stream(struct sw__trace_export *it, const struct sw__track *track,
                        bool device)
{
    char text[48];
    struct sw__slice slice = {.name = device ? "process_name" : "thread_name",
                              .pid = track->pid,
                              .tid = device ? 0 : track->tid};
    slice.length = strlen(slice.name);
    snprintf(text, sizeof text, device ? "GPU %u" : "stream %u",
             (unsigned)(device ? track->pid : track->tid));
    sw__moment_begin(it, NULL, "M", &slice);
    sw__event_args(it);
    put_string(it->writer, "name", text);
    sw__event_end(it, true);
}

/* In Kineto's files a device is a process and a stream a thread, whichever process of the program used it. */
static struct sw__track *stream_of(struct sw__trace_export *it, struct sw__track *track,
                                   const sw_record_gpu *gpu)
{
    bool known = false;
    for (size_t i = 0; i < it->device_count; i++) {
        struct sw__track *stream = it->devices[i];
        if (stream->pid == gpu->device && stream->tid == gpu->stream) {
            return stream;
        }
        known = known || stream->pid == gpu->device;
    }
    if (it->device_count == sizeof it->devices / sizeof it->devices[0]) {
        return track; /* no such machine; a damaged file */
    }
    struct sw__track *stream = sw__track_make(it, gpu->device, track->name, NULL);
    if (!stream) {
        return track;
    }
    stream->tid = gpu->stream;
    stream->named = true;
    it->devices[it->device_count++] = stream;
    if (!known) {
        name_stream(it, stream, true);
    }
    name_stream(it, stream, false);
    return stream;
}

void sw__trace_gpu(struct sw__trace_export *it, struct sw__trace_process *process,
                   struct sw__track *track, const sw_event *event)
{
    static const char *const categories[] = {"gpu", "kernel", "gpu_memcpy", "gpu_memset",
                                             "gpu_wait"};
    const sw_record_gpu *gpu = (const sw_record_gpu *)(const void *)event->record;
    sw_writer *w = it->writer;
    struct sw__slice slice = sw__slice_of_name(process->trace, gpu->head.id);
    slice.category = gpu->activity < 5 ? categories[gpu->activity] : categories[0];
    slice.begin_ns = event->begin_ns;
    slice.end_ns = event->end_ns;
    track = it->kineto ? stream_of(it, track, gpu) : track;
    const bool placed = sw__slice_begin(it, process, track, &slice, CLASS_WORK);
    sw__event_args(it);
    put_uint(w, "device", gpu->device);
    put_uint(w, "stream", gpu->stream);
    if (gpu->correlation) {
        put_uint(w, "correlation", gpu->correlation);
    }
    if (it->kineto) {
        put_uint(w, "External id", sw__trace_external(it, process, gpu->external));
    }
    if (gpu->bytes) {
        put_uint(w, "bytes", gpu->bytes);
        if (event->end_ns > event->begin_ns) { /* bytes in a nanosecond */
            put_double(w, "memory bandwidth (GB/s)",
                       (double)gpu->bytes / (double)(event->end_ns - event->begin_ns));
        }
    }
    sw__event_end(it, true);
    it->counts.gpu++;
    if (placed) {
        const struct sw__flow_end end = {
            .begin_ns = slice.begin_ns, .pid = slice.pid, .tid = slice.tid};
        link_work(it, process, gpu->correlation, end, false);
    }
}

/* --- Memory --- */

/* Of the framework's allocator; `node` is the number of the thread. Those of others have no moment that a trace could show. */
void sw__trace_allocation(struct sw__trace_export *it, struct sw__trace_process *process,
                          struct sw__track *track, const sw_event *event)
{
    const sw_record_alloc *alloc = (const sw_record_alloc *)(const void *)event->record;
    const bool device = alloc->allocator >= 2;
    sw_writer *w = it->writer;
    if (!process->allocations || alloc->allocator == 0) {
        return;
    }
    struct sw__track *thread = sw__track_of_number(process, alloc->node);
    track = thread ? sw__track_shown(thread) : track;
    struct sw__slice slice = {.name = it->kineto ? "[memory]"
                                      : device   ? "torch memory (device)"
                                                 : "torch memory (cpu)",
                              .category = it->kineto ? "cpu_instant_event" : "memory",
                              .pid = track->pid,
                              .tid = track->tid,
                              .begin_ns = event->begin_ns};
    slice.length = strlen(slice.name);
    sw__track_name(it, process, track);
    sw__moment_begin(it, process, it->kineto ? "i" : "C", &slice);
    if (it->kineto) {
        put_string(w, "s", "t");
    }
    sw__event_args(it);
    if (it->kineto) {
        put_uint(w, "Total Reserved", alloc->reserved);
        put_uint(w, "Total Allocated", alloc->total);
        sw_json_key(w, "Bytes");
        sw_json_int(w, alloc->bytes);
        sw_json_key(w, "Device Id");
        sw_json_int(w, device ? (int64_t)alloc->allocator - 2 : -1);
        put_uint(w, "Device Type", device);
        put_uint(w, "Addr", alloc->address);
    } else {
        put_uint(w, "bytes", alloc->total);
    }
    sw__event_end(it, true);
}
