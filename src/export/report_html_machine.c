/* Memory, the machine, GPUs and files in report.html: figures, and charts over the time of the run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "export/chart.h"
#include "export/html_page.h"
#include "export/report_html.h"
#include "export/report_parts.h"

#define ROWS_MOST 20
#define SERIES_MOST 300
#define CHART_HEIGHT 290

void sw__html_chart(const struct sw__html_report *it, enum sw_run_chart which)
{
    sw_chart *chart;
    if (sw_run_chart(&chart, which, it->summary, NULL) != SW_OK) {
        return; /* the figures are there without it */
    }
    chart->options.height = CHART_HEIGHT;
    const sw_chart *one = chart;
    (void)sw_charts_write(it->w, SW_CHART_SVG_INLINE, &one, 1, NULL, NULL);
    sw_chart_free(chart);
}

/* --- numbers --- */

static void put_bytes(sw_writer *w, uint64_t bytes)
{
    char text[24];
    sw_text_bytes(text, bytes);
    sw__html_number(w, bytes == SW_UNKNOWN ? NULL : text);
}

/* Files are not to be trusted, so that any number may come. */
static void put_value(sw_writer *w, double value, const char *unit)
{
    char text[SW__VALUE];
    sw__chart_value(text, value, unit);
    sw__html_number(w, sw__chart_is_good(value) ? text : NULL);
}

/* --- memory --- */

static void put_processes(const struct sw__html_report *it, const sw_memory_process *list,
                          size_t count)
{
    static const char *const headers[] = {
        "process",  ">at the start",        ">at the end", ">at most",
        ">swapped", ">allocations at most", ">allocated"};
    sw__html_table_begin(it->w, headers, 7);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        char name[32];
        snprintf(name, sizeof name, "%u%s", list[i].pid,
                 list[i].main ? ", training" : "");
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, name);
        put_bytes(it->w, list[i].resident_start);
        put_bytes(it->w, list[i].resident_end);
        put_bytes(it->w, list[i].resident_peak);
        put_bytes(it->w, list[i].swapped);
        put_bytes(it->w, list[i].counted ? list[i].peak : SW_UNKNOWN);
        put_bytes(it->w, list[i].counted ? list[i].sum.allocated : SW_UNKNOWN);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "processes");
}

static void put_path(const struct sw__html_report *it, const char *const *path,
                     size_t depth)
{
    sw_write_text(it->w, "<td class=\"t\">");
    for (size_t k = 0; k < depth; k++) {
        sw_write_text(it->w, k ? " / " : "");
        sw__html_text(it->w, path[k]);
    }
    sw_write_text(it->w, "</td>");
}

static void put_change(const struct sw__html_report *it, bool known, double bytes)
{
    char text[32];
    char size[24];
    sw_text_bytes(size, (uint64_t)(bytes < 0 ? -bytes : bytes));
    snprintf(text, sizeof text, "%s%s", bytes < 0 ? "-" : "", size);
    sw__html_number(it->w, known ? text : NULL);
}

static void put_residents(const struct sw__html_report *it, const sw_memory *memory)
{
    static const char *const headers[] = {
        "section",         ">calls",           ">read",           ">grew by", ">a call",
        ">most of a call", ">least of a call", ">process at most"};
    size_t count;
    const sw_memory_resident *list = sw_memory_residents(memory, &count);
    if (count == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Sections by what the process had in memory</h3>\n");
    sw__html_table_begin(it->w, headers, 8);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        const bool read = list[i].read > 0;
        sw__html_row_begin(it->w);
        put_path(it, list[i].path, list[i].depth);
        sw__html_count(it->w, list[i].calls);
        sw__html_count(it->w, list[i].read);
        put_change(it, read, (double)list[i].sum);
        put_change(it, read, read ? (double)list[i].sum / (double)list[i].read : 0);
        put_change(it, read, (double)list[i].most);
        put_change(it, read, (double)list[i].least);
        put_bytes(it->w, list[i].highest);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "sections");
}

static void put_memory_sections(const struct sw__html_report *it, const sw_memory *memory)
{
    static const char *const headers[] = {"section", ">calls", ">most of a call",
                                          ">allocated", ">blocks"};
    size_t count;
    const sw_memory_section *list = sw_memory_sections(memory, &count);
    if (count == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Sections by what they allocate</h3>\n");
    sw__html_table_begin(it->w, headers, 5);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        sw__html_row_begin(it->w);
        put_path(it, list[i].path, list[i].depth);
        sw__html_count(it->w, list[i].calls);
        put_bytes(it->w, list[i].peak);
        put_bytes(it->w, list[i].sum.allocated);
        sw__html_count(it->w, list[i].sum.blocks);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "sections");
}

static void put_sites(const struct sw__html_report *it, const sw_memory *memory)
{
    static const char *const headers[] = {"line",  "function",   ">of the peak",
                                          ">live", ">allocated", ">growth a step"};
    size_t count;
    const sw_memory_site *list = sw_memory_sites(memory, &count);
    if (count == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Lines that allocate</h3>\n");
    sw__html_table_begin(it->w, headers, 6);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        sw__html_row_begin(it->w);
        sw__html_place(it->w, list[i].file, list[i].line);
        sw__html_cell(it->w, list[i].function);
        put_bytes(it->w, list[i].peak);
        put_bytes(it->w, list[i].live);
        put_bytes(it->w, list[i].allocated);
        put_value(it->w, list[i].growth.grows ? list[i].growth.slope : NAN, "B");
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "lines");
}

static void put_share(sw_writer *w, double share)
{
    char text[24];
    snprintf(text, sizeof text, "%.0f %%", share * 100);
    sw__html_number(w, share >= 0 ? text : NULL);
}

static void put_allocators(const struct sw__html_report *it, const sw_memory *memory)
{
    static const char *const headers[] = {
        "allocator",     ">device",           ">in use",    ">at most",       ">held",
        ">held at most", ">had to give back", ">in pieces", ">unused at most"};
    size_t count;
    const sw_memory_allocator *list = sw_memory_allocators(memory, &count);
    size_t known = 0;
    for (size_t i = 0; i < count; i++) {
        known += list[i].allocated != SW_UNKNOWN;
    }
    if (known == 0) {
        return;
    }
    sw_write_text(it->w, "<h3>Allocators of frameworks</h3>\n");
    sw__html_table_begin(it->w, headers, 9);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        if (list[i].allocated == SW_UNKNOWN) {
            continue;
        }
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, list[i].name);
        sw__html_count(it->w, list[i].device);
        put_bytes(it->w, list[i].allocated);
        put_bytes(it->w, list[i].allocated_peak);
        put_bytes(it->w, list[i].reserved);
        put_bytes(it->w, list[i].reserved_peak);
        sw__html_count(it->w, list[i].retries);
        put_bytes(it->w, list[i].pieces_peak);
        put_share(it->w, list[i].unused);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
}

void sw__html_memory(const struct sw__html_report *it)
{
    const sw_memory *memory = sw_summary_memory(it->summary);
    size_t count;
    const sw_memory_process *list = sw_memory_processes(memory, &count);
    if (count == 0 || list->resident_peak == SW_UNKNOWN) {
        return;
    }
    sw__html_section_begin(it->w, "memory", "Memory");
    sw__html_chart(it, SW_RUN_CHART_MEMORY);
    put_processes(it, list, count);
    put_allocators(it, memory);
    put_residents(it, memory);
    put_memory_sections(it, memory);
    put_sites(it, memory);
    if (!sw_memory_is_counted(memory)) {
        sw_write_text(it->w, "<p class=\"dim\">Allocations were not counted; "
                             "<code>stepwatch run --memory</code> does it.</p>\n");
    }
    sw__html_section_end(it->w);
}

/* --- the monitor --- */

/* GPUs have tables of their own. */
static bool is_shown(const sw_monitor_series *series)
{
    return strncmp(series->name, "gpu.", 4) != 0;
}

static void put_series(const struct sw__html_report *it, const sw_monitor *monitor)
{
    static const char *const headers[] = {"series", ">mean", ">within steps", ">p95",
                                          ">least", ">most", "kind"};
    size_t shown = 0;
    sw_write_text(it->w, "<details><summary>All series</summary>\n");
    sw__html_table_begin(it->w, headers, 7);
    for (size_t i = 0; i < sw_monitor_series_count(monitor); i++) {
        const sw_monitor_series *series = sw_monitor_get_series(monitor, i);
        if (!is_shown(series) || shown++ >= SERIES_MOST) {
            continue;
        }
        const bool total = series->kind == SW_SERIES_TOTAL;
        /* Seconds of CPU time a second are cores; "1" counts things. */
        const bool plain = series->unit && ((total && strcmp(series->unit, "s") == 0) ||
                                            strcmp(series->unit, "1") == 0);
        const char *unit = plain ? "" : series->unit;
        const double values[] = {series->all.mean,
                                 series->steps.samples ? series->steps.mean : NAN,
                                 series->p95, series->all.min, series->all.max};
        sw__html_row_begin(it->w);
        sw__html_name(it->w, series->name, strlen(series->name), 0);
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
            put_value(it->w, values[k], unit);
        }
        sw__html_cell(it->w, total ? "a second" : "level");
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw_write_text(it->w, "</details>\n");
}

void sw__html_monitor(const struct sw__html_report *it)
{
    const sw_monitor *monitor = sw_summary_monitor(it->summary, 0);
    char text[SW__LINE];
    if (!monitor) {
        return;
    }
    sw__html_section_begin(it->w, "monitor", "Machine");
    sw__monitor_line(text, sizeof text, it->summary);
    if (*text) {
        sw_write_text(it->w, "<p>");
        sw__html_text(it->w, text);
        sw_write_text(it->w, "</p>\n");
    }
    sw__html_chart(it, SW_RUN_CHART_CPU);
    put_series(it, monitor);
    sw__html_section_end(it->w);
}

/* --- GPUs --- */

static double mean_of(const sw_gpu *gpu, enum sw_gpu_value value)
{
    const sw_monitor_series *series = gpu->series[value];
    return !series ? NAN : series->steps.samples ? series->steps.mean : series->all.mean;
}

void sw__html_gpus(const struct sw__html_report *it)
{
    static const char *const headers[] = {
        "GPU",    ">busy",  ">SMs",         ">tensor cores", ">memory", ">of",
        ">power", ">clock", ">temperature", ">limited",      ">a step"};
    size_t count;
    const sw_gpu *list = sw_gpus_get(sw_summary_gpus(it->summary), &count);
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "gpu", "GPUs");
    sw_write_text(
        it->w, "<p class=\"dim\">Means within steps where there are any; memory at most; "
               "limited: looks at which power or heat reduced clocks.</p>\n");
    sw__html_chart(it, SW_RUN_CHART_GPU);
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        const sw_gpu *gpu = &list[i];
        const sw_monitor_series *memory = gpu->series[SW_GPU_MEMORY_USED];
        char name[96];
        snprintf(name, sizeof name, "%u %.80s", gpu->index, gpu->name ? gpu->name : "");
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, name);
        put_value(it->w, mean_of(gpu, SW_GPU_UTILISATION), "%");
        put_value(it->w, mean_of(gpu, SW_GPU_SM_ACTIVE), "%");
        put_value(it->w, mean_of(gpu, SW_GPU_TENSOR_ACTIVE), "%");
        put_value(it->w, memory ? memory->all.max : NAN, "B");
        put_bytes(it->w, gpu->memory_bytes);
        put_value(it->w, mean_of(gpu, SW_GPU_POWER), "W");
        put_value(it->w, mean_of(gpu, SW_GPU_SM_CLOCK), "MHz");
        put_value(it->w, mean_of(gpu, SW_GPU_TEMPERATURE), "°C");
        sw__html_percent(it->w, gpu->limited.steps);
        put_value(it->w, gpu->energy_per_step_j, "J");
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "GPUs");
    sw__html_section_end(it->w);
}

/* --- files and sockets --- */

static void put_io_sums(const struct sw__html_report *it, const sw_io *io)
{
    static const char *const headers[] = {"what",         ">calls", ">bytes",
                                          ">below 4 KiB", ">time",  ">longest"};
    static const struct {
        enum sw_io_kind kind;
        const char *name;
    } kinds[] = {{SW_IO_KIND_FILE, "files"},
                 {SW_IO_KIND_FOLDER, "folders"},
                 {SW_IO_KIND_SOCKET, "sockets"}};
    sw__html_table_begin(it->w, headers, 6);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        for (unsigned operation = 1; operation < SW_IO_OPERATIONS; operation++) {
            const sw_io_sum *sum =
                sw_io_total(io, kinds[k].kind, (enum sw_io_operation)operation);
            char name[64];
            if (sum->calls == 0) {
                continue;
            }
            snprintf(name, sizeof name, "%s: %s", kinds[k].name,
                     sw_io_operation_name(operation));
            sw__html_row_begin(it->w);
            sw__html_cell(it->w, name);
            sw__html_count(it->w, sum->calls);
            put_bytes(it->w, sum->bytes);
            sw__html_count(it->w, sum->small);
            sw__html_ns(it->w, sum->ns);
            sw__html_ns(it->w, sum->longest_ns);
            sw__html_row_end(it->w);
        }
    }
    sw__html_table_end(it->w);
}

static void put_io_things(const struct sw__html_report *it, const sw_io *io)
{
    static const char *const headers[] = {"file or peer", ">time",      ">read",
                                          ">written",     ">reads",     ">small",
                                          ">opens",       ">read again"};
    size_t count, shown = 0, hidden = 0;
    const sw_io_thing *list = sw_io_things(io, &count);
    sw__html_table_begin(it->w, headers, 8);
    for (size_t i = 0; i < count; i++) {
        const sw_io_thing *thing = &list[i];
        const sw_io_sum *in = &thing->sum[SW_IO_READ], *got = &thing->sum[SW_IO_RECEIVE];
        if (thing->kind != SW_IO_KIND_FILE && thing->kind != SW_IO_KIND_FOLDER &&
            thing->kind != SW_IO_KIND_SOCKET) {
            continue;
        }
        if (shown == ROWS_MOST) {
            hidden++;
            continue;
        }
        shown++;
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, thing->name);
        sw__html_ns(it->w, thing->sum[0].ns);
        put_bytes(it->w, in->bytes + got->bytes);
        put_bytes(it->w, thing->sum[SW_IO_WRITE].bytes + thing->sum[SW_IO_SEND].bytes);
        sw__html_count(it->w, in->calls + got->calls);
        sw__html_count(it->w, in->small + got->small);
        sw__html_count(it->w, thing->sum[SW_IO_OPEN].calls);
        put_bytes(it->w, thing->again);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, hidden, "files and peers");
}

void sw__html_io(const struct sw__html_report *it)
{
    const sw_io *io = sw_summary_io(it->summary);
    if (!io) {
        return;
    }
    sw__html_section_begin(it->w, "io", "Files and sockets");
    put_io_sums(it, io);
    put_io_things(it, io);
    sw__html_section_end(it->w);
}
