/* Places in the program, in report.html: functions and lines that were counted or sampled, lines that wait for a device, and
 * what was compiled. */
#include <math.h>
#include <string.h>

#include <stepwatch/export.h>

#include "base/memory.h"
#include "export/function_order.h"
#include "export/html_page.h"
#include "export/report_html.h"

#define FUNCTIONS_MOST 50
#define SAMPLED_MOST 20
#define LINES_MOST 50
#define PLACES_MOST 50

/* --- functions --- */

void sw__html_functions(const struct sw__html_report *it)
{
    static const char *const headers[] = {"function", "where",   ">calls",
                                          ">self",    ">self %", ">total"};
    const sw_functions *functions = sw_summary_functions(it->summary);
    uint32_t *order =
        functions ? sw__functions_sorted(functions, SW_FUNCTIONS_BY_SELF) : NULL;
    if (!order) {
        return;
    }
    const size_t count = sw_functions_count(functions);
    const double unit = sw_functions_unit_ns(functions);
    const double whole = (double)sw_functions_sum(functions).self;
    sw__html_section_begin(it->w, "functions", "Functions by self time (exact)");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < FUNCTIONS_MOST; i++) {
        const sw_function *function = sw_functions_get(functions, order[i]);
        sw__html_row_begin(it->w);
        sw__html_name(it->w, function->qualname, function->qualname_length, 0);
        sw__html_place(it->w, function->native ? NULL : function->file, function->line);
        sw__html_count(it->w, function->totals.calls);
        sw__html_duration(it->w, (double)function->totals.self * unit);
        sw__html_percent(it->w, whole > 0 ? (double)function->totals.self / whole : NAN);
        sw__html_duration(it->w, (double)function->totals.total * unit);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > FUNCTIONS_MOST ? count - FUNCTIONS_MOST : 0,
                  "functions");
    sw__html_section_end(it->w);
    sw__free(order);
}

/* --- samples --- */

void sw__html_samples(const struct sw__html_report *it)
{
    static const char *const headers[] = {"function", "where", ">self",
                                          ">low",     ">high", ">total"};
    const sw_stacks *stacks = sw_summary_stacks(it->summary);
    const sw_stacks_filter running = {.running_only = true};
    size_t count = 0;
    sw_stacks_place *places =
        stacks ? sw_stacks_functions(stacks, &running, &count) : NULL;
    if (count > 0) {
        sw__html_section_begin(it->w, "samples", "Where Python was (sampled)");
        sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
        for (size_t i = 0; i < count && i < SAMPLED_MOST; i++) {
            const sw_stacks_place *place = &places[i];
            sw__html_row_begin(it->w);
            sw__html_name(it->w, place->frame.name, strlen(place->frame.name), 0);
            sw__html_place(it->w, place->frame.file, place->frame.first_line);
            sw__html_percent(it->w, place->self.share);
            sw__html_percent(it->w, place->self.low);
            sw__html_percent(it->w, place->self.high);
            sw__html_percent(it->w, place->total.share);
            sw__html_row_end(it->w);
        }
        sw__html_table_end(it->w);
        sw__html_more(it->w, count > SAMPLED_MOST ? count - SAMPLED_MOST : 0,
                      "functions");
        sw__html_section_end(it->w);
    }
    sw_stacks_release(places);
}

/* --- lines --- */

static void put_lines_of(const struct sw__html_report *it, sw_lines *lines, size_t index)
{
    static const char *const headers[] = {">line", "source", ">hits", ">time", ">% time"};
    const sw_lines_function *function = sw_lines_get(lines, index);
    const double whole = (double)function->total_ns;
    sw_write_text(it->w, "<h3><code>");
    sw__html_text_n(it->w, function->name, function->name_length);
    sw_write_text(it->w, "</code></h3>\n");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < function->line_count && i < LINES_MOST; i++) {
        const sw_lines_line *line = &function->lines[i];
        size_t length = 0;
        const char *source = sw_lines_source(lines, index, line->line, &length);
        sw__html_row_begin(it->w);
        sw__html_count(it->w, line->line);
        sw_write_text(it->w, "<td class=\"s\"><code>");
        sw__html_text_n(it->w, source ? source : "", source ? length : 0);
        sw_write_text(it->w, "</code></td>");
        sw__html_count(it->w, line->hits);
        sw__html_ns(it->w, line->ns);
        sw__html_percent(it->w, whole > 0 ? (double)line->ns / whole : NAN);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(
        it->w, function->line_count > LINES_MOST ? function->line_count - LINES_MOST : 0,
        "lines");
}

void sw__html_lines(const struct sw__html_report *it)
{
    sw_lines *lines = sw_summary_lines(it->summary);
    const size_t count = lines ? sw_lines_count(lines) : 0;
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "lines", "Lines (exact)");
    for (size_t i = 0; i < count && i < SAMPLED_MOST; i++) {
        put_lines_of(it, lines, i);
    }
    sw__html_more(it->w, count > SAMPLED_MOST ? count - SAMPLED_MOST : 0, "functions");
    sw__html_section_end(it->w);
}

/* --- waits and compilations --- */

void sw__html_waits(const struct sw__html_report *it)
{
    static const char *const headers[] = {"call",   "where", "kind",
                                          ">calls", ">time", ">longest"};
    size_t count;
    const sw_training_wait *waits =
        sw_training_waits(sw_summary_training(it->summary), &count);
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "waits", "Waiting for the device, and copies");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < PLACES_MOST; i++) {
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, waits[i].call);
        sw__html_place(it->w, waits[i].file, waits[i].line);
        sw__html_cell(it->w, sw_training_wait_kind_name(waits[i].kind));
        sw__html_count(it->w, waits[i].calls);
        sw__html_ns(it->w, waits[i].ns);
        sw__html_ns(it->w, waits[i].max_ns);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > PLACES_MOST ? count - PLACES_MOST : 0, "places");
    sw__html_section_end(it->w);
}

void sw__html_compilations(const struct sw__html_report *it)
{
    static const char *const headers[] = {"function", "where", ">times",
                                          ">time",    "again", "why"};
    size_t count;
    const sw_training_compilation *list =
        sw_training_compilations(sw_summary_training(it->summary), &count);
    if (count == 0) {
        return;
    }
    sw__html_section_begin(it->w, "compilations", "Compilations");
    sw__html_table_begin(it->w, headers, sizeof headers / sizeof headers[0]);
    for (size_t i = 0; i < count && i < PLACES_MOST; i++) {
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, list[i].function);
        sw__html_place(it->w, list[i].file, list[i].line);
        sw__html_count(it->w, list[i].compilations);
        sw__html_ns(it->w, list[i].ns);
        sw__html_cell(it->w, list[i].again ? "yes" : "no");
        sw__html_cell(it->w, list[i].reason);
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw__html_more(it->w, count > PLACES_MOST ? count - PLACES_MOST : 0, "compilations");
    sw__html_section_end(it->w);
}
