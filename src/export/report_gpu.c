/* What the monitor saw of GPUs, as a line each in the text report. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/report_parts.h"

/* More would push everything else from the screen. */
#define SHOWN_MOST 8

/* Within steps where there are any, else over the run. */
static double mean_of(const sw_gpu *gpu, enum sw_gpu_value value)
{
    const sw_monitor_series *series = gpu->series[value];
    return !series ? NAN : series->steps.samples ? series->steps.mean : series->all.mean;
}

static void append(char *text, size_t size, const char *before, const char *words)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used ? before : "", words);
}

static void add_activity(char *text, size_t size, const sw_gpu *gpu)
{
    static const struct {
        enum sw_gpu_value value;
        const char *words;
    } kinds[] = {{SW_GPU_UTILISATION, "busy"},
                 {SW_GPU_SM_ACTIVE, "multiprocessors"},
                 {SW_GPU_TENSOR_ACTIVE, "tensor cores"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const double mean = mean_of(gpu, kinds[i].value);
        char words[64];
        if (!isnan(mean)) {
            snprintf(words, sizeof words, "%s %.0f %%", kinds[i].words, mean);
            append(text, size, ", ", words);
        }
    }
}

static void add_memory(char *text, size_t size, const sw_gpu *gpu)
{
    const sw_monitor_series *used = gpu->series[SW_GPU_MEMORY_USED];
    char most[32];
    char all[32];
    char words[128];
    if (!used || !(used->all.max >= 0)) {
        return;
    }
    sw_text_bytes(most, (uint64_t)used->all.max);
    snprintf(words, sizeof words, "memory up to %s", most);
    if (gpu->memory_bytes != SW_UNKNOWN) {
        sw_text_bytes(all, gpu->memory_bytes);
        snprintf(words, sizeof words, "memory up to %s of %s", most, all);
    }
    append(text, size, "; ", words);
}

static void add_of(char *text, size_t size, const char *before, double value, double most,
                   const char *unit)
{
    char words[64];
    if (isnan(value)) {
        return;
    }
    snprintf(words, sizeof words, "%.0f %s", value, unit);
    if (!isnan(most)) {
        snprintf(words, sizeof words, "%.0f of %.0f %s", value, most, unit);
    }
    append(text, size, before, words);
}

/* Loading a library for GPUs is enough to have them watched; what an idle one has to say is nothing of the program. */
static bool is_idle(const sw_gpu *gpu)
{
    const sw_monitor_series *busy = gpu->series[SW_GPU_UTILISATION];
    return busy && busy->all.max < 1;
}

void sw__gpu_line(char *text, size_t size, const sw_gpu *gpu, bool unicode)
{
    *text = '\0';
    if (is_idle(gpu)) {
        append(text, size, "", "idle");
        return;
    }
    add_activity(text, size, gpu);
    add_memory(text, size, gpu);
    add_of(text, size, "; ", mean_of(gpu, SW_GPU_POWER), gpu->power_limit_w, "W");
    add_of(text, size, ", ", mean_of(gpu, SW_GPU_SM_CLOCK), gpu->sm_clock_most_mhz,
           "MHz");
    add_of(text, size, ", ", mean_of(gpu, SW_GPU_TEMPERATURE), NAN, unicode ? "°C" : "C");
    if (!isnan(gpu->energy_per_step_j)) {
        char words[64];
        snprintf(words, sizeof words, "%.3g J a step", gpu->energy_per_step_j);
        append(text, size, "; ", words);
    }
}

bool sw__gpu_is_shown(const sw_gpu *gpu)
{
    /* Those that the program does not see are in report.json. */
    return gpu->visible != 0 && gpu->part_of == UINT32_MAX;
}

static void put_device(const struct sw__page *page, const sw_gpu *gpu)
{
    char label[24];
    char name[48];
    char text[SW__LINE];
    char line[640];
    sw__gpu_line(text, sizeof text, gpu, page->unicode);
    if (!*text) {
        return;
    }
    snprintf(label, sizeof label, "GPU %-5u", gpu->index);
    sw__report_cell(page, name, sizeof name, gpu->name ? gpu->name : "(unnamed)");
    snprintf(line, sizeof line, "%s: %s", name, text);
    sw__page_wrap(page, label, SW__BOLD, line);
}

void sw__report_gpus(const struct sw__page *page, const sw_summary *summary)
{
    size_t count;
    const sw_gpu *list = sw_gpus_get(sw_summary_gpus(summary), &count);
    size_t shown = 0;
    for (size_t i = 0; i < count && shown < SHOWN_MOST; i++) {
        if (sw__gpu_is_shown(&list[i])) {
            put_device(page, &list[i]);
            shown++;
        }
    }
}
