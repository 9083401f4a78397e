/* BATCH records of the training process and of its workers, joined by the number of the batch. */
#include "analyze/batches.h"

#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"

#define BATCH_UNITS (sizeof(sw_record_batch) / SW_RECORD_UNIT)

struct reading {
    const sw_summary *summary;
    const char *loader;
    sw_trace **traces;
    size_t trace_count;
    struct sw__batch *list;
    size_t count, room;
};

/* The process of the steps, and those that it started: numbers of batches mean something there only. */
static int choose_traces(struct reading *it)
{
    const sw_summary *summary = it->summary;
    const size_t count = summary->traces;
    it->traces = sw__alloc_zero(count + 1, sizeof *it->traces);
    if (!it->traces) {
        return SW_ENOMEM;
    }
    const sw_trace *own = sw__summary_trace(summary, summary->step_trace);
    const uint32_t pid = sw_trace_get_info(own)->pid;
    for (size_t i = 0; i < count; i++) {
        const sw_trace *trace = sw__summary_trace(summary, i);
        if (i == summary->step_trace || sw_trace_get_info(trace)->ppid == pid) {
            it->traces[it->trace_count++] = (sw_trace *)trace;
        }
    }
    return SW_OK;
}

static bool of_loader(const struct reading *it, const sw_event *event)
{
    const sw_trace_name *name =
        sw_trace_get_name(it->traces[event->trace], event->record->id);
    return name && name->text && it->loader && strcmp(name->text, it->loader) == 0;
}

/* Ticks from one moment to another as ns; SW_UNKNOWN where one is missing or they are not in order. */
static uint64_t between(const sw_trace *trace, uint64_t from, uint64_t to)
{
    const double ns = (double)(to - from) * sw_trace_ns_per_tick(trace);
    return from && to >= from && ns < 9e18 ? (uint64_t)ns : SW_UNKNOWN;
}

static struct sw__batch batch_of(const sw_trace *trace, const sw_record_batch *record)
{
    const bool made = record->fetch_end != 0;
    return (struct sw__batch){
        .id = record->batch,
        .step = record->step,
        .make_ns =
            made ? between(trace, record->fetch_begin, record->fetch_end) : SW_UNKNOWN,
        .cpu_ns = made && record->cpu_ns ? record->cpu_ns : SW_UNKNOWN,
        .bytes = record->bytes ? record->bytes : SW_UNKNOWN,
        /* A batch that another thread received and pinned lies ready until the loop wants it. */
        .unpack_ns = record->receive && !record->pin
                         ? between(trace, record->receive, record->end)
                         : SW_UNKNOWN,
        .worker = record->worker,
        .depth = record->queue_depth,
        /* The loop writes the record of a batch that it has, a worker that of one that it made. */
        .taken = record->worker == SW_NO_WORKER,
    };
}

static int by_id(const void *left, const void *right)
{
    const struct sw__batch *a = left, *b = right;
    return a->id != b->id ? (a->id < b->id ? -1 : 1) : (int)a->taken - (int)b->taken;
}

/* What two records of one batch say. */
static void join(struct sw__batch *into, const struct sw__batch *from)
{
    into->step = into->step == SW_UNKNOWN ? from->step : into->step;
    into->make_ns = into->make_ns == SW_UNKNOWN ? from->make_ns : into->make_ns;
    into->cpu_ns = into->cpu_ns == SW_UNKNOWN ? from->cpu_ns : into->cpu_ns;
    into->bytes = into->bytes == SW_UNKNOWN ? from->bytes : into->bytes;
    into->unpack_ns = into->unpack_ns == SW_UNKNOWN ? from->unpack_ns : into->unpack_ns;
    into->worker = into->worker == SW_NO_WORKER ? from->worker : into->worker;
    into->depth = into->depth > from->depth ? into->depth : from->depth;
    into->taken |= from->taken;
}

static void join_all(struct reading *it)
{
    size_t kept = 0;
    qsort(it->list, it->count, sizeof *it->list, by_id);
    for (size_t i = 0; i < it->count; i++) {
        if (kept > 0 && it->list[kept - 1].id == it->list[i].id) {
            join(&it->list[kept - 1], &it->list[i]);
        } else {
            it->list[kept++] = it->list[i];
        }
    }
    it->count = kept;
}

static int read_records(struct reading *it, sw_cursor *cursor)
{
    sw_event event;
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        if (event.record->kind != SW_RECORD_BATCH || event.record->units < BATCH_UNITS ||
            !of_loader(it, &event)) {
            continue;
        }
        if (it->count == it->room) {
            const size_t room = it->room ? it->room * 2 : 1024;
            struct sw__batch *grown = sw__realloc(it->list, room, sizeof *grown);
            if (!grown) {
                return SW_ENOMEM;
            }
            it->list = grown;
            it->room = room;
        }
        it->list[it->count++] = batch_of(
            it->traces[event.trace], (const sw_record_batch *)(const void *)event.record);
        if (it->count >= 4 * (size_t)SW__BATCHES_MOST) {
            /* Records come in order of time: the newer half. */
            it->count = 2 * (size_t)SW__BATCHES_MOST;
            memmove(it->list, it->list + it->count, it->count * sizeof *it->list);
        }
    }
    return SW_OK;
}

int sw__batches_read(const sw_summary *summary, const sw_training_loader *loader,
                     struct sw__batch **out, size_t *count)
{
    struct reading it = {.summary = summary, .loader = loader->name};
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_BATCH};
    *out = NULL;
    *count = 0;
    int error = choose_traces(&it);
    if (!error &&
        sw_cursor_open(&cursor, it.traces, it.trace_count, &filter, NULL) == SW_OK) {
        error = read_records(&it, cursor);
    }
    if (!error && it.count) {
        join_all(&it);
        *out = it.list;
        *count = it.count;
        it.list = NULL;
    }
    sw_cursor_free(cursor);
    sw__free(it.list);
    sw__free(it.traces);
    return error;
}

static int by_step(const void *left, const void *right)
{
    const struct sw__batch *a = left, *b = right;
    return (a->step > b->step) - (a->step < b->step);
}

void sw__batches_by_step(struct sw__batch *list, size_t count)
{
    if (count > 1) {
        qsort(list, count, sizeof *list, by_step);
    }
}

const struct sw__batch *sw__batches_of_step(const struct sw__batch *list, size_t count,
                                            uint64_t step)
{
    size_t low = 0, high = count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list[middle].step < step) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < count && list[low].step == step && step != SW_UNKNOWN ? &list[low]
                                                                       : NULL;
}
