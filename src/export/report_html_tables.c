/* Tables of report.html: the loader, modules, sections, counters. */
#include <math.h>
#include <string.h>

#include <stepwatch/export.h>

#include "export/html_page.h"
#include "export/report_html.h"
#include "export/text_page.h"

#define ROWS_MOST 200

/* --- the loader --- */

static void put_setting(sw_writer *w, const char *name, const char *value)
{
    sw_write_format(w, "<span class=\"tag\">%s ", name);
    sw__html_text(w, value);
    sw_write_text(w, "</span>");
}

static void put_number_setting(sw_writer *w, const char *name, uint64_t value)
{
    char text[32];
    sw_text_count(text, value);
    put_setting(w, name, value == SW_UNKNOWN ? "?" : text);
}

static void put_settings(const struct sw__html_report *it,
                         const sw_training_loader *loader)
{
    const double waits = sw_summary_wait_share(it->summary);
    sw_write_text(it->w, "<p>");
    put_setting(it->w, "loader", loader->name ? loader->name : "(unnamed)");
    if (loader->known) {
        put_number_setting(it->w, "num_workers", loader->worker_setting);
        put_number_setting(it->w, "batch_size", loader->batch_size);
        put_setting(it->w, "pin_memory", loader->bits & SW_LOADER_PIN ? "True" : "False");
        put_setting(it->w, "persistent_workers",
                    loader->bits & SW_LOADER_PERSISTENT ? "True" : "False");
        if (loader->prefetch_factor != SW_UNKNOWN) {
            put_number_setting(it->w, "prefetch_factor", loader->prefetch_factor);
        }
    }
    if (isfinite(waits)) {
        char text[SW__CELL];
        sw__text_percent(text, sizeof text, (uint64_t)(waits * 1e6 + 0.5), 1000000);
        put_setting(it->w, "steps wait for it", text);
    }
    sw_write_text(it->w, "</p>\n");
}

static void put_stages(const struct sw__html_report *it, const sw_training_loader *loader)
{
    static const char *const headers[] = {"stage", ">calls", ">a batch", ">in all",
                                          ">share"};
    if (loader->stage_count == 0) {
        return;
    }
    sw__html_table_begin(it->w, headers, 5);
    for (size_t i = 0; i < loader->stage_count && i < ROWS_MOST; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, stage->name);
        sw__html_count(it->w, stage->calls);
        const uint64_t seen = stage->waits ? loader->batches : loader->looked;
        sw__html_duration(it->w, seen != SW_UNKNOWN && seen > 0
                                     ? (double)stage->self_ns / (double)seen
                                     : NAN);
        sw__html_ns(it->w, stage->self_ns);
        sw__html_percent(it->w, stage->share);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
}

static void put_workers(const struct sw__html_report *it,
                        const sw_training_loader *loader)
{
    static const char *const headers[] = {">worker", ">batches", ">busy", ">getitem",
                                          ">collate"};
    if (loader->worker_count == 0) {
        return;
    }
    sw__html_table_begin(it->w, headers, 5);
    for (size_t i = 0; i < loader->worker_count && i < ROWS_MOST; i++) {
        const sw_training_worker *worker = &loader->workers[i];
        sw__html_row_begin(it->w);
        sw__html_count(it->w,
                       worker->worker == SW_NO_WORKER ? SW_UNKNOWN : worker->worker);
        sw__html_count(it->w, worker->batches);
        sw__html_percent(it->w, worker->busy_share);
        sw__html_ns(it->w, worker->getitem_calls ? worker->getitem_ns : SW_UNKNOWN);
        sw__html_ns(it->w, worker->collate_calls ? worker->collate_ns : SW_UNKNOWN);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
}

void sw__html_loader(const struct sw__html_report *it)
{
    const sw_training_loader *loader = sw_summary_main_loader(it->summary);
    if (loader) {
        sw__html_section_begin(it->w, "loader", "Loader");
        put_settings(it, loader);
        put_stages(it, loader);
        put_workers(it, loader);
        sw__html_section_end(it->w);
    }
}

/* --- modules --- */

void sw__html_modules(const struct sw__html_report *it)
{
    static const char *const headers[] = {"module",   "class",       ">calls",
                                          ">a step",  ">% of steps", ">parameters",
                                          ">backward"};
    size_t count;
    uint64_t steps;
    uint64_t steps_ns;
    const sw_training_module *modules =
        sw_training_modules(sw_summary_training(it->summary), &count);
    sw_summary_looked_steps(it->summary, &steps, &steps_ns);
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "modules", "Modules");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        const sw_training_module *module = &modules[i];
        const double self = (double)module->self_ns;
        sw__html_row_begin(it->w);
        sw__html_name(it->w, module->name, strlen(module->name), 0);
        sw__html_cell(it->w, module->type);
        sw__html_count(it->w, module->calls);
        sw__html_duration(it->w, steps ? self / (double)steps : NAN);
        sw__html_percent(it->w, steps_ns == 0                ? NAN
                                : module->self_ns < steps_ns ? self / (double)steps_ns
                                                             : 1);
        sw__html_count(it->w, module->parameters);
        sw__html_duration(it->w, module->backward_calls
                                     ? (double)module->backward_ns /
                                           (double)module->backward_calls
                                     : NAN);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "modules");
    sw__html_section_end(it->w);
}

/* --- sections --- */

static void put_section(const struct sw__html_report *it, const sw_summary_section *row)
{
    const uint64_t run_ns = sw_summary_get_run(it->summary)->duration_ns;
    sw__html_row_begin(it->w);
    sw__html_name(it->w, row->name, row->name_length, row->depth);
    sw__html_cell(it->w, row->thread);
    sw__html_count(it->w, row->calls);
    sw__html_count(it->w, row->errors);
    sw__html_ns(it->w, row->total_ns);
    sw__html_ns(it->w, sw_summary_section_self(row));
    sw__html_duration(it->w,
                      row->calls ? (double)row->total_ns / (double)row->calls : NAN);
    sw__html_ns(it->w, row->p50_ns);
    sw__html_ns(it->w, row->p99_ns);
    sw__html_ns(it->w, row->max_ns);
    sw__html_percent(it->w, run_ns ? (double)row->total_ns / (double)run_ns : NAN);
    sw__html_row_end(it->w);
}

void sw__html_sections(const struct sw__html_report *it)
{
    static const char *const headers[] = {"section", "thread", ">calls", ">errors",
                                          ">total",  ">self",  ">mean",  ">p50",
                                          ">p99",    ">max",   ">% run"};
    size_t count;
    const sw_summary_section *rows =
        sw_summary_sections(it->summary, SW_ROWS_FAMILIES, &count);
    sw__html_section_begin(it->w, "sections", "Sections");
    if (count == 0) {
        sw_write_text(it->w, "<p class=\"dim\">The program recorded no sections.</p>\n");
    } else {
        sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
        for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
            put_section(it, &rows[i]);
        }
        sw__html_table_end(it->w);
        sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "sections");
    }
    sw__html_section_end(it->w);
}

/* --- counters --- */

void sw__html_counters(const struct sw__html_report *it)
{
    static const char *const headers[] = {"counter", ">values", ">mean",
                                          ">min",    ">max",    ">last"};
    const size_t count = sw_summary_counter_count(it->summary);
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "counters", "Counters");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < ROWS_MOST; i++) {
        const sw_summary_counter *counter = sw_summary_get_counter(it->summary, i);
        const double values[] = {counter->mean, counter->min, counter->max,
                                 counter->last};
        sw__html_row_begin(it->w);
        sw__html_name(it->w, counter->name, counter->name_length, 0);
        sw__html_count(it->w, counter->count);
        for (size_t v = 0; v < 4; v++) {
            char text[SW__CELL];
            sw__text_number(text, sizeof text, values[v]);
            sw__html_number(it->w, text);
        }
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > ROWS_MOST ? count - ROWS_MOST : 0, "counters");
    sw__html_section_end(it->w);
}
