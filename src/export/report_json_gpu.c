/* Member "gpu" of report.json. */
#include "export/json_put.h"
#include "export/report_parts.h"

static void put_stats(sw_writer *w, const sw_monitor_stats *stats)
{
    put_uint(w, "samples", stats->samples);
    put_double(w, "mean", stats->mean);
    put_double(w, "min", stats->min);
    put_double(w, "max", stats->max);
}

/* Bits have no mean, and are told by reason. */
static bool is_told(unsigned value)
{
    return value != SW_GPU_CLOCK_REASONS;
}

static void put_series(sw_writer *w, const sw_gpu *gpu)
{
    sw_json_key(w, "series");
    sw_json_array_begin(w);
    for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
        const sw_monitor_series *series = gpu->series[value];
        if (!series || !series->known || !is_told(value)) {
            continue;
        }
        sw_json_object_begin(w);
        put_string(w, "name", sw_gpu_value_name(value));
        put_string(w, "unit", series->unit);
        put_double(w, "first", series->first);
        put_double(w, "last", series->last);
        put_stats(w, &series->all);
        put_double(w, "p50", series->p50);
        put_double(w, "p95", series->p95);
        sw_json_key(w, "steps");
        sw_json_object_begin(w);
        put_stats(w, &series->steps);
        sw_json_object_end(w);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_key(w, "missing");
    sw_json_array_begin(w);
    for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
        const sw_monitor_series *series = gpu->series[value];
        if (!gpu->missing[value] || (series && series->known)) {
            continue;
        }
        sw_json_object_begin(w);
        put_string(w, "name", sw_gpu_value_name(value));
        put_string(w, "why", gpu->missing[value]);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_reason(sw_writer *w, const sw_gpu_reason_stats *reason)
{
    put_double(w, "share", reason->share);
    put_double(w, "steps_share", reason->steps);
    put_double(w, "steps_low", reason->steps_low);
    put_double(w, "steps_high", reason->steps_high);
    put_double(w, "sm_clock_mhz", reason->sm_clock_mhz);
}

static void put_reasons(sw_writer *w, const sw_gpu *gpu)
{
    static const char *const names[] = {"power", "heat", "limited"};
    const sw_gpu_reason_stats *const groups[] = {&gpu->power, &gpu->heat, &gpu->limited};
    sw_json_key(w, "clock_reasons");
    sw_json_object_begin(w);
    put_uint(w, "looks", gpu->looks);
    put_uint(w, "step_looks", gpu->step_looks);
    for (size_t i = 0; i < 3; i++) {
        sw_json_key(w, names[i]);
        sw_json_object_begin(w);
        put_reason(w, groups[i]);
        sw_json_object_end(w);
    }
    sw_json_key(w, "by_reason");
    sw_json_array_begin(w);
    for (unsigned bit = 0; bit < SW_GPU_REASONS; bit++) {
        /* Those that never held are not told. */
        if (gpu->looks == 0 || !(gpu->reason[bit].share > 0)) {
            continue;
        }
        sw_json_object_begin(w);
        put_string(w, "reason", sw_gpu_reason_name(bit));
        put_reason(w, &gpu->reason[bit]);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

static void put_device(sw_writer *w, const sw_gpu *gpu)
{
    sw_json_object_begin(w);
    put_uint(w, "device", gpu->device);
    put_uint(w, "index", gpu->index);
    put_uint(w, "part_of", gpu->part_of == UINT32_MAX ? SW_UNKNOWN : gpu->part_of);
    put_uint(w, "pid", gpu->pid);
    put_string(w, "name", gpu->name);
    put_string(w, "uuid", gpu->uuid);
    sw_json_key(w, "visible");
    if (gpu->visible < 0) {
        sw_json_null(w);
    } else {
        sw_json_bool(w, gpu->visible == 1);
    }
    put_bool(w, "divided", gpu->divided);
    put_bool(w, "activity", gpu->activity);
    put_uint(w, "memory_bytes", gpu->memory_bytes);
    put_double(w, "sm_clock_max_mhz", gpu->sm_clock_most_mhz);
    put_double(w, "memory_clock_max_mhz", gpu->memory_clock_most_mhz);
    put_double(w, "power_limit_w", gpu->power_limit_w);
    put_double(w, "power_default_w", gpu->power_default_w);
    put_double(w, "slowdown_c", gpu->slowdown_c);
    put_double(w, "max_c", gpu->most_c);
    put_double(w, "energy_j", gpu->energy_j);
    put_double(w, "energy_per_step_j", gpu->energy_per_step_j);
    put_series(w, gpu);
    put_reasons(w, gpu);
    sw_json_object_end(w);
}

void sw__json_gpu(sw_writer *w, const sw_summary *summary)
{
    size_t count;
    const sw_gpus *gpus = sw_summary_gpus(summary);
    const sw_gpu *list = sw_gpus_get(gpus, &count);
    if (count == 0) {
        put_missing(w, "gpu", sw_gpus_why(gpus));
        return;
    }
    sw_json_key(w, "gpu");
    sw_json_object_begin(w);
    put_string(w, "driver", list[0].driver);
    sw_json_key(w, "devices");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        put_device(w, &list[i]);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}
