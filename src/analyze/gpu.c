/* The GPUs of a run: rows say what they are, series of the monitor how they did. */
#include "analyze/gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/summary.h"

/* More than any machine has; a damaged file may claim anything. */
#define DEVICES_MOST 256u

static double known(uint32_t number, double unit)
{
    return number ? number / unit : NAN;
}

static const char *text_of(sw_summary *summary, const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name && name->text && name->length
               ? sw__summary_copy(summary, name->text, name->length)
               : NULL;
}

static const sw_monitor *monitor_of(const sw_summary *summary, uint32_t pid)
{
    const sw_monitor *monitor;
    for (size_t i = 0; (monitor = sw_summary_monitor(summary, i)) != NULL; i++) {
        if (sw_monitor_get_totals(monitor)->pid == pid) {
            return monitor;
        }
    }
    return NULL;
}

/* The energy counter only rises, unless the driver was loaded anew. */
static double energy_of(const sw_gpu *gpu)
{
    const sw_monitor_series *energy = gpu->series[SW_GPU_ENERGY];
    return energy && energy->known > 1 && energy->last >= energy->all.max
               ? energy->all.max - energy->all.min
               : NAN;
}

static void fill(sw_summary *summary, sw_gpu *gpu, const sw_trace *trace,
                 const sw_row *row)
{
    const uint16_t flags = row->flags;
    *gpu = (sw_gpu){.pid = sw_trace_get_info(trace)->pid,
                    .device = row->key[0],
                    .index = (uint32_t)row->value[4],
                    .part_of = row->key[3] ? row->key[3] - 1 : UINT32_MAX,
                    .divided = (flags & SW_ROW_GPU_DIVIDED) != 0,
                    .activity = (flags & SW_ROW_GPU_ACTIVITY) != 0,
                    .visible = flags & SW_ROW_GPU_VISIBLE  ? 1
                               : flags & SW_ROW_GPU_HIDDEN ? 0
                                                           : -1,
                    .name = text_of(summary, trace, row->key[1]),
                    .uuid = text_of(summary, trace, row->key[2]),
                    .driver = text_of(summary, trace, (uint32_t)(row->value[4] >> 32)),
                    .memory_bytes = row->value[0] ? row->value[0] : SW_UNKNOWN,
                    .sm_clock_most_mhz = known((uint32_t)row->value[1], 1),
                    .memory_clock_most_mhz = known((uint32_t)(row->value[1] >> 32), 1),
                    .power_limit_w = known((uint32_t)row->value[2], 1e3),
                    .power_default_w = known((uint32_t)(row->value[2] >> 32), 1e3),
                    .slowdown_c = known((uint32_t)row->value[3], 1),
                    .most_c = known((uint32_t)(row->value[3] >> 32), 1)};
}

static void find_series(sw_gpu *gpu, const sw_monitor *monitor)
{
    for (unsigned value = 0; monitor && value < SW_GPU_VALUES; value++) {
        char name[64];
        snprintf(name, sizeof name, "gpu.%u.%s", gpu->device, sw_gpu_value_name(value));
        gpu->series[value] = sw_monitor_find(monitor, name);
    }
}

static uint64_t values_of(const sw_gpu *gpu)
{
    uint64_t sum = 0;
    for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
        sum = sw__add(sum, gpu->series[value] ? gpu->series[value]->known : 0);
    }
    return sum;
}

/* The same device, seen by another process; NULL: there is none. */
static sw_gpu *find_same(const sw_gpus *gpus, const sw_gpu *fresh)
{
    for (size_t i = 0; fresh->uuid && i < gpus->count; i++) {
        if (gpus->list[i].uuid && strcmp(gpus->list[i].uuid, fresh->uuid) == 0) {
            return &gpus->list[i];
        }
    }
    return NULL;
}

static sw_gpu *next_place(sw_gpus *gpus)
{
    if (gpus->count == gpus->room) {
        const size_t room = gpus->room ? gpus->room * 2 : 16;
        sw_gpu *grown = sw__realloc(gpus->list, room, sizeof *grown);
        if (!grown) {
            return NULL;
        }
        gpus->list = grown;
        gpus->room = room;
    }
    return &gpus->list[gpus->count++];
}

static int add_device(sw_summary *summary, const sw_trace *trace, const sw_row *row)
{
    sw_gpu fresh;
    fill(summary, &fresh, trace, row);
    const sw_monitor *monitor = monitor_of(summary, fresh.pid);
    find_series(&fresh, monitor);
    sw_gpu *place = find_same(summary->gpus, &fresh);
    if (place) {
        /* Of several processes one watched it best; that a program sees it, each of them may say. */
        const bool seen = place->visible == 1 || fresh.visible == 1;
        const bool better = values_of(&fresh) > values_of(place);
        fresh.visible = seen ? 1 : fresh.visible;
        place->visible = seen ? 1 : place->visible;
        if (!better) {
            return SW_OK;
        }
    } else if (summary->gpus->count < DEVICES_MOST) {
        place = next_place(summary->gpus);
    } else {
        return SW_OK;
    }
    if (!place) {
        return SW_ENOMEM;
    }
    fresh.energy_j = energy_of(&fresh);
    const sw_monitor_series *power = fresh.series[SW_GPU_POWER];
    fresh.energy_per_step_j =
        power && power->steps.samples && summary->has_steps && summary->steps.counted
            ? power->steps.mean * summary->steps.mean_ns / 1e9
            : NAN;
    *place = fresh;
    return monitor ? sw__gpu_reasons(place, monitor) : SW_OK;
}

static int add_notes(sw_summary *summary, const sw_trace *trace)
{
    const uint32_t pid = sw_trace_get_info(trace)->pid;
    const size_t count = sw_trace_row_count(trace, SW_TABLE_GPUNOTE);
    int error = SW_OK;
    for (size_t i = 0; i < count && !error; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_GPUNOTE, i);
        const char *text = row ? text_of(summary, trace, row->key[2]) : NULL;
        if (!text) {
            continue;
        }
        if (row->key[1] >= SW_GPU_VALUES) {
            error = sw_summary_add_note(summary, text);
            continue;
        }
        for (size_t j = 0; j < summary->gpus->count; j++) {
            sw_gpu *gpu = &summary->gpus->list[j];
            if (gpu->pid == pid && gpu->device == row->key[0]) {
                gpu->missing[row->key[1]] = text;
            }
        }
    }
    return error;
}

static int by_use(const void *left, const void *right)
{
    const sw_gpu *a = left;
    const sw_gpu *b = right;
    if ((a->visible == 1) != (b->visible == 1)) {
        return a->visible == 1 ? -1 : 1;
    }
    if (a->device != b->device) {
        return a->device < b->device ? -1 : 1;
    }
    return (a->pid > b->pid) - (a->pid < b->pid);
}

static const char *why_not(sw_summary *summary)
{
    if (!sw_summary_monitor(summary, 0)) {
        return "The monitor did not run.";
    }
    for (size_t i = 0; i < summary->traces; i++) {
        const size_t trace = summary->has_steps && i == 0 ? summary->step_trace : i;
        const char *fact = sw_trace_fact(sw__summary_trace(summary, trace), "gpu");
        if (fact && strcmp(fact, "watched") != 0) {
            return sw__summary_format(summary, "Not watched: %s.", fact);
        }
    }
    return "No GPU was watched.";
}

int sw__summary_gpus(sw_summary *summary)
{
    int error = SW_OK;
    summary->gpus = sw__alloc_zero(1, sizeof *summary->gpus);
    if (!summary->gpus) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < summary->traces && !error; i++) {
        const sw_trace *trace = sw__summary_trace(summary, i);
        const size_t count = sw_trace_row_count(trace, SW_TABLE_GPU);
        for (size_t j = 0; j < count && !error; j++) {
            const sw_row *row = sw_trace_get_row(trace, SW_TABLE_GPU, j);
            if (row && row->key[0] < DEVICES_MOST) {
                error = add_device(summary, trace, row);
            }
        }
        error = error ? error : add_notes(summary, trace);
    }
    if (summary->gpus->count > 1) {
        qsort(summary->gpus->list, summary->gpus->count, sizeof *summary->gpus->list,
              by_use);
    }
    summary->gpus->why = summary->gpus->count ? NULL : why_not(summary);
    return error;
}

void sw__gpus_free(sw_gpus *gpus)
{
    if (gpus) {
        sw__free(gpus->list);
        sw__free(gpus);
    }
}

const sw_gpus *sw_summary_gpus(const sw_summary *summary)
{
    return summary->gpus;
}

const sw_gpu *sw_gpus_get(const sw_gpus *gpus, size_t *count)
{
    *count = gpus->count;
    return gpus->list;
}

const char *sw_gpus_why(const sw_gpus *gpus)
{
    return gpus->why;
}
