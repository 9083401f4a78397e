/* Traces: the pieces that the document is made of. */
#include <stdio.h>
#include <string.h>

#include <stepwatch/version.h>

#include "analyze/json_scan.h"
#include "base/writer_internal.h"
#include "export/json_put.h"
#include "export/trace_export.h"

/* Nanoseconds as microseconds with three decimals: exact, and short enough to be fast. */
static void put_us(sw_writer *w, const char *key, int64_t ns)
{
    char text[32];
    size_t at = sizeof text;
    uint64_t left = ns < 0 ? (uint64_t)0 - (uint64_t)ns : (uint64_t)ns;
    for (size_t digits = 0; digits < 5 || left; digits++) {
        if (digits == 3) {
            text[--at] = '.';
            continue;
        }
        text[--at] = (char)('0' + left % 10);
        left /= 10;
    }
    if (ns < 0) {
        text[--at] = '-';
    }
    sw_json_key(w, key);
    sw__json_raw(w, text + at, sizeof text - at);
}

struct sw__slice sw__slice_of_name(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name && name->length
               ? (struct sw__slice){.name = name->text, .length = name->length}
               : (struct sw__slice){.name = "(unnamed)", .length = 9};
}

/* Around a name there is plain ASCII. */
static void put_name(sw_writer *w, const struct sw__slice *slice)
{
    sw_json_key(w, "name");
    if (!slice->prefix && !slice->suffix) {
        sw_json_string_n(w, slice->name, slice->length);
        return;
    }
    /* What is put around a name is short, names need not be. */
    char text[1024];
    size_t used = 0;
    const char *const parts[] = {slice->prefix, slice->name, slice->suffix};
    const size_t longest[] = {60, sizeof text - 120, 60};
    for (size_t i = 0; i < 3; i++) {
        size_t length = !parts[i] ? 0 : i == 1 ? slice->length : strlen(parts[i]);
        length = length < longest[i] ? length : longest[i];
        if (length) {
            memcpy(text + used, parts[i], length);
        }
        used += length;
    }
    sw_json_string_n(w, text, used);
}

/* Where the process's clock stands on that of the whole. */
static int64_t moment(const struct sw__trace_export *it,
                      const struct sw__trace_process *process, uint64_t ns)
{
    const uint64_t shift = process ? (uint64_t)process->shift_ns : 0;
    return (int64_t)(ns + shift - it->origin_ns);
}

static void begin(struct sw__trace_export *it, const char *ph,
                  const struct sw__slice *slice)
{
    sw_writer *w = it->writer;
    if (!it->begun) {
        sw__trace_begin(it);
    }
    sw_write_bytes(w, "\n", 1);
    sw_json_object_begin(w);
    put_string(w, "ph", ph);
    if (slice->category) {
        put_string(w, "cat", slice->category);
    }
    put_name(w, slice);
    put_uint(w, "pid", slice->pid);
    put_uint(w, "tid", slice->tid);
}

/* Two events with one number: viewers draw them apart from the threads. */
static void put_async(struct sw__trace_export *it,
                      const struct sw__trace_process *process,
                      const struct sw__slice *slice)
{
    const uint64_t id = it->next_async++;
    for (int i = 0; i < 2; i++) {
        begin(it, i ? "b" : "e", slice);
        put_uint(it->writer, "id", id);
        put_us(it->writer, "ts",
               moment(it, process, i ? slice->begin_ns : slice->end_ns));
        if (!i) {
            sw_json_object_end(it->writer);
        }
    }
}

/* Kineto's tools add ts and dur as doubles. Where that is more than the same moment as the ts of another slice, they see two that
 * overlap and leave one out: then the slice ends a nanosecond early. */
static bool sum_exceeds(int64_t begin, int64_t length)
{
    int64_t end;
    if (length <= 0 || __builtin_add_overflow(begin, length, &end)) {
        return false; /* of a damaged file */
    }
    return (double)begin / 1e3 + (double)length / 1e3 > (double)end / 1e3;
}

bool sw__slice_begin(struct sw__trace_export *it, struct sw__trace_process *process,
                     struct sw__track *track, struct sw__slice *slice, uint32_t class)
{
    slice->end_ns = slice->end_ns > slice->begin_ns ? slice->end_ns : slice->begin_ns;
    const struct sw__track *on =
        sw__track_place(it, process, track, slice->begin_ns, slice->end_ns, class);
    slice->pid = on ? on->pid : track->pid;
    slice->tid = on ? on->tid : track->tid;
    it->counts.events++;
    if (!on) {
        put_async(it, process, slice);
        return false;
    }
    begin(it, "X", slice);
    const int64_t at = moment(it, process, slice->begin_ns);
    const uint64_t lasts = slice->end_ns - slice->begin_ns;
    /* Of a damaged file it may be anything, but never negative. */
    const int64_t length = lasts < INT64_MAX ? (int64_t)lasts : INT64_MAX;
    put_us(it->writer, "ts", at);
    put_us(it->writer, "dur", length - (it->kineto && sum_exceeds(at, length)));
    return true;
}

void sw__trace_put_flow(struct sw__trace_export *it,
                        const struct sw__trace_process *process, const char *name,
                        const struct sw__flow_end *from, const struct sw__flow_end *to)
{
    struct sw__slice slice = {.name = name, .length = strlen(name), .category = name};
    const uint64_t id = ++it->next_flow;
    for (int i = 0; i < 2; i++) {
        const struct sw__flow_end *end = i ? to : from;
        slice.pid = end->pid;
        slice.tid = end->tid;
        begin(it, i ? "f" : "s", &slice);
        put_uint(it->writer, "id", id);
        put_us(it->writer, "ts", moment(it, process, end->begin_ns));
        if (i) {
            put_string(it->writer, "bp", "e"); /* to the slice around that moment */
        }
        sw_json_object_end(it->writer);
        it->counts.events++;
    }
}

void sw__moment_begin(struct sw__trace_export *it,
                      const struct sw__trace_process *process, const char *ph,
                      const struct sw__slice *slice)
{
    begin(it, ph, slice);
    if (*ph != 'M') {
        put_us(it->writer, "ts", moment(it, process, slice->begin_ns));
        it->counts.events++;
    }
}

void sw__event_args(struct sw__trace_export *it)
{
    sw_json_key(it->writer, "args");
    sw_json_object_begin(it->writer);
}

void sw__event_end(struct sw__trace_export *it, bool args)
{
    if (args) {
        sw_json_object_end(it->writer);
    }
    sw_json_object_end(it->writer);
}

/* --- The document --- */

/* Tools look for "rank": and a blank with a regular expression. */
static void put_spaced(sw_writer *w, const char *key, long value)
{
    sw_json_key(w, key);
    sw_write_text(w, " ");
    sw_json_int(w, value);
}

static void put_distributed(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    if (it->part.rank < 0) {
        return;
    }
    const char *backend = NULL;
    for (size_t i = 0; i < it->count && !backend; i++) {
        backend = sw_trace_fact(it->traces[i], "distributed.backend");
    }
    sw_write_text(w, "\n");
    sw_json_key(w, "distributedInfo");
    sw_json_object_begin(w);
    if (backend) {
        put_string(w, "backend", backend);
    }
    put_spaced(w, "rank", it->part.rank);
    if (it->part.world_size > 0) {
        put_spaced(w, "world_size", it->part.world_size);
    }
    sw_json_object_end(w);
}

bool sw__trace_put_raw(struct sw__trace_export *it, const char *text, size_t length,
                       char first)
{
    struct sw__scan json = {.at = text, .end = text + length};
    bool plain = length > 0 && text[0] == first; /* and no bytes that are no text */
    for (size_t i = 0; i < length && plain; i++) {
        plain = text[i] >= ' ' && text[i] < 0x7f;
    }
    if (!plain || !sw__scan_skip(&json) || json.bad || json.at != json.end) {
        return false;
    }
    sw__json_raw(it->writer, text, length);
    return true;
}

/* As the framework told them, an object each. How many. */
static size_t put_told_devices(struct sw__trace_export *it)
{
    size_t count = 0;
    for (unsigned id = 0; id < 64; id++) {
        char key[32];
        const char *text = NULL;
        snprintf(key, sizeof key, "torch.device.%u", id);
        for (size_t i = 0; i < it->count && !text; i++) {
            text = sw_trace_fact(it->traces[i], key);
        }
        count += text && sw__trace_put_raw(it, text, strlen(text), '{');
    }
    return count;
}

/* What is known of the GPUs that the processes saw. */
static void put_devices(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    sw_json_key(w, "deviceProperties");
    sw_json_array_begin(w);
    if (put_told_devices(it)) {
        sw_json_array_end(w);
        return;
    }
    for (size_t i = 0; i < it->count; i++) {
        const size_t rows = sw_trace_row_count(it->traces[i], SW_TABLE_GPU);
        bool any = false;
        for (size_t r = 0; r < rows; r++) {
            const sw_row *row = sw_trace_get_row(it->traces[i], SW_TABLE_GPU, r);
            if (!row || row->flags & SW_ROW_GPU_HIDDEN) {
                continue;
            }
            const struct sw__slice name = sw__slice_of_name(it->traces[i], row->key[1]);
            any = true;
            sw_json_object_begin(w);
            put_uint(w, "id", row->key[0]);
            sw_json_key(w, "name");
            sw_json_string_n(w, name.name, name.length);
            if (row->value[0]) {
                put_uint(w, "totalGlobalMem", row->value[0]);
            }
            sw_json_object_end(w);
        }
        if (any) {
            break; /* the others see the same */
        }
    }
    sw_json_array_end(w);
}

void sw__trace_begin(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    it->begun = true;
    sw_json_start(w, false);
    sw_json_object_begin(w);
    if (it->kineto) {
        put_uint(w, "schemaVersion", 1);
        put_distributed(it);
        sw_write_text(w, "\n");
        put_devices(it);
        sw_write_text(w, "\n");
    }
    put_string(w, "displayTimeUnit", "ms");
    put_uint(w, "baseTimeNanoseconds", it->origin_real_ns);
    if (it->options->name) {
        put_string(w, "traceName", it->options->name);
    }
    sw_write_text(w, "\n");
    sw_json_key(w, "traceEvents");
    sw_json_array_begin(w);
}

void sw__trace_end(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    sw_write_text(w, "\n");
    sw_json_array_end(w);
    sw_write_text(w, "\n");
    sw__trace_put_about(it);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
}
