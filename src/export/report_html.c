/* report.html: one page that needs nothing else, no script and no other file. The template has the looks; what is
 * between {{ and }} in it is filled in here. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <stepwatch/export.h>
#include <stepwatch/version.h>

#include "analyze/summary.h"
#include "export/html_page.h"
#include "export/report_html.h"
#include "export/report_parts.h"

extern const char sw__html_template[]; /* html/report.html */

/* --- head --- */

static void put_title(const struct sw__html_report *it)
{
    const sw_summary_run *run = sw_summary_get_run(it->summary);
    sw__html_text(it->w, run->name ? run->name : "(unnamed)");
    sw_write_text(it->w, " - stepwatch");
}

static void put_version(const struct sw__html_report *it)
{
    sw_write_text(it->w, SW_VERSION_STRING);
}

static void put_end(const struct sw__html_report *it)
{
    const sw_summary_run *run = sw_summary_get_run(it->summary);
    if (run->exit_signal > 0) {
        const char *name = sigabbrev_np(run->exit_signal);
        sw_write_format(it->w, " · <b>killed by SIG%s</b>", name ? name : "?");
    } else if (run->exit_code >= 0) {
        sw_write_format(it->w, " · exit %d", run->exit_code);
    }
    if (!run->complete) {
        sw_write_text(it->w, " · <b>incomplete</b>");
    }
}

static void put_started(const struct sw__html_report *it)
{
    const sw_summary_run *run = sw_summary_get_run(it->summary);
    const time_t seconds = (time_t)(run->started_real_ns / 1000000000u);
    struct tm parts;
    char text[40];
    if (run->started_real_ns != SW_UNKNOWN && gmtime_r(&seconds, &parts)) {
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
        sw_write_format(it->w, " · %s", text);
    }
}

/* Whether the page has a part; most are always there. */
static bool is_there(const struct sw__html_report *it, const char *id)
{
    char text[SW__LINE] = "?";
    if (strcmp(id, "memory") == 0) {
        sw__memory_line(text, sizeof text, it->summary);
    }
    return *text && (strcmp(id, "monitor") != 0 || sw_summary_monitor(it->summary, 0));
}

static void put_head(const struct sw__html_report *it)
{
    static const char *const links[][2] = {{"findings", "What to change"},
                                           {"phases", "Phases"},
                                           {"steps", "Steps"},
                                           {"sections", "Sections"},
                                           {"memory", "Memory"},
                                           {"monitor", "Machine"},
                                           {"checks", "Checked"},
                                           {"notes", "Notes"},
                                           {"environment", "Environment"}};
    const sw_summary_run *run = sw_summary_get_run(it->summary);
    char text[32];
    sw_write_text(it->w, "<h1>");
    sw__html_text(it->w, run->name ? run->name : "(unnamed)");
    sw_write_text(it->w, "</h1>\n<p class=\"dim\">");
    sw_text_duration(text, (double)run->duration_ns, false);
    sw_write_format(it->w, "%s · %zu process%s · %zu thread%s", text, run->processes,
                    run->processes == 1 ? "" : "es", run->threads,
                    run->threads == 1 ? "" : "s");
    put_end(it);
    put_started(it);
    sw_write_text(it->w, "</p>\n");
    if (run->command) {
        sw_write_text(it->w, "<p class=\"dim\"><code>");
        sw__html_text(it->w, run->command);
        sw_write_text(it->w, "</code></p>\n");
    }
    sw_write_text(it->w, "<nav>");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        if (is_there(it, links[i][0])) {
            sw_write_format(it->w, "<a href=\"#%s\">%s</a>", links[i][0], links[i][1]);
        }
    }
    sw_write_text(it->w, "</nav>");
}

static void put_verdict(const struct sw__html_report *it)
{
    static const char *const classes[] = {
        [SW__VERDICT_GOOD] = "verdict good",
        [SW__VERDICT_CHANGE] = "verdict change",
        [SW__VERDICT_UNKNOWN] = "verdict",
    };
    sw_writer *sentence = sw_writer_to_memory();
    if (!sentence) {
        return;
    }
    const enum sw__verdict verdict = sw__put_verdict(sentence, it->summary, it->findings);
    sw_write_format(it->w, "<div class=\"%s\">", classes[verdict]);
    sw__html_text(it->w, sw_writer_text(sentence, NULL));
    sw_write_text(it->w, "</div>");
    sw_writer_close(sentence, NULL);
}

/* --- figures --- */

static void put_figure(const struct sw__html_report *it, const char *name,
                       const char *value)
{
    sw_write_text(it->w, "<div><b>");
    sw__html_text(it->w, value);
    sw_write_format(it->w, "</b><span class=\"dim\">%s</span></div>\n", name);
}

static void put_rate(const struct sw__html_report *it, const char *name, double rate)
{
    char text[40];
    if (!isfinite(rate) || rate >= 1e18) {
        return;
    }
    if (rate >= 1000) {
        sw_text_count(text, (uint64_t)(rate + 0.5));
    } else {
        sw__text_number(text, sizeof text, rate);
    }
    put_figure(it, name, text);
}

static void put_figures(const struct sw__html_report *it)
{
    const sw_summary_steps *steps = sw_summary_get_steps(it->summary);
    const sw_summary_overhead *overhead = sw_summary_get_overhead(it->summary);
    char text[40];
    sw_write_text(it->w, "<div class=\"figures\">\n");
    if (steps) {
        sw_text_count(text, steps->count);
        put_figure(it, steps->count == 1 ? "step" : "steps", text);
        if (steps->counted > 0) {
            sw_text_duration(text, steps->mean_ns, false);
            put_figure(it, "a step, mean", text);
            sw_text_duration(text, (double)steps->p99_ns, false);
            put_figure(it, "a step, p99", steps->p99_ns == SW_UNKNOWN ? "-" : text);
            put_rate(it, "steps/s", steps->steps_per_s);
            put_rate(it, "samples/s", steps->samples_per_s);
        }
    }
    if (isfinite(overhead->percent)) {
        sw__text_small(text, sizeof text - 2, overhead->percent);
        strcat(text, " %");
        put_figure(it, "recording cost", text);
    }
    sw_text_count(text, overhead->events);
    put_figure(it, "events", text);
    if (overhead->dropped || overhead->overwritten) {
        sw_text_count(text, overhead->dropped + overhead->overwritten);
        put_figure(it, "of them not kept", text);
    }
    sw_write_text(it->w, "</div>");
}

/* --- notes and environment --- */

static void put_note(const struct sw__html_report *it, const char *note)
{
    sw_write_text(it->w, "<li>");
    sw__html_text(it->w, note);
    sw_write_text(it->w, "</li>\n");
}

static void put_notes(const struct sw__html_report *it)
{
    const char *note;
    sw__html_section_begin(it->w, "notes", "Notes");
    if (!sw_summary_note(it->summary, 0) &&
        !(it->findings && sw_findings_note(it->findings, 0))) {
        sw_write_text(it->w, "<p class=\"dim\">None.</p>\n");
    } else {
        sw_write_text(it->w, "<ul>\n");
        for (size_t i = 0; (note = sw_summary_note(it->summary, i)) != NULL; i++) {
            put_note(it, note);
        }
        for (size_t i = 0;
             it->findings && (note = sw_findings_note(it->findings, i)) != NULL; i++) {
            put_note(it, note);
        }
        sw_write_text(it->w, "</ul>\n");
    }
    sw__html_section_end(it->w);
}

static void put_fact(const struct sw__html_report *it, const char *name,
                     const char *value)
{
    if (value) {
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, name);
        sw__html_cell(it->w, value);
        sw__html_row_end(it->w);
    }
}

/* Facts that stand elsewhere on the page, or that tell nothing about time. */
static bool is_told(const char *key)
{
    static const char *const told[] = {"command",       "pid",  "ppid",
                                       "uid",           "host", "python",
                                       "started_utc",   "name", "stepwatch_version",
                                       "format_version"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (strcmp(key, told[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void put_environment(const struct sw__html_report *it)
{
    static const char *const headers[] = {"what", "value"};
    const sw_summary_run *run = sw_summary_get_run(it->summary);
    const sw_summary_overhead *overhead = sw_summary_get_overhead(it->summary);
    const char *key;
    const char *value;
    sw__html_section_begin(it->w, "environment", "Environment");
    sw__html_table_begin(it->w, headers, 2);
    put_fact(it, "run", run->id);
    put_fact(it, "host", run->host);
    put_fact(it, "Python", run->python);
    for (size_t i = 0; sw_summary_framework(it->summary, i, &key, &value); i++) {
        put_fact(it, key, value);
    }
    const sw_trace *trace = it->summary->traces
                                ? sw__summary_trace(it->summary, it->summary->step_trace)
                                : NULL;
    for (size_t i = 0; trace && sw_trace_fact_at(trace, i, &key, &value); i++) {
        if (!is_told(key)) {
            put_fact(it, key, value);
        }
    }
    put_fact(it, "recording cost", overhead->how);
    put_fact(it, "stepwatch", SW_VERSION_STRING);
    sw__html_table_end(it->w);
    sw__html_section_end(it->w);
}

/* --- the page --- */

static const struct part {
    const char *name;
    void (*put)(const struct sw__html_report *it);
} parts[] = {
    {"title", put_title},
    {"version", put_version},
    {"head", put_head},
    {"verdict", put_verdict},
    {"figures", put_figures},
    {"phases", sw__html_phases},
    {"findings", sw__html_findings},
    {"steps", sw__html_steps},
    {"loader", sw__html_loader},
    {"modules", sw__html_modules},
    {"sections", sw__html_sections},
    {"functions", sw__html_functions},
    {"lines", sw__html_lines},
    {"waits", sw__html_waits},
    {"compilations", sw__html_compilations},
    {"samples", sw__html_samples},
    {"counters", sw__html_counters},
    {"memory", sw__html_memory},
    {"monitor", sw__html_monitor},
    {"gpu", sw__html_gpus},
    {"io", sw__html_io},
    {"checks", sw__html_checks},
    {"notes", put_notes},
    {"environment", put_environment},
};

/* What is not known stays as it is, so that a mistake in a template can be seen. */
static bool put_part(const struct sw__html_report *it, const char *name, size_t length)
{
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        if (strlen(parts[i].name) == length && memcmp(parts[i].name, name, length) == 0) {
            parts[i].put(it);
            return true;
        }
    }
    return false;
}

void sw_export_report_html(sw_writer *writer, const sw_summary *summary,
                           const sw_findings *findings)
{
    const struct sw__html_report it = {writer, summary, findings};
    const char *at = sw__html_template;
    for (const char *open; (open = strstr(at, "{{")) != NULL;) {
        const char *close = strstr(open, "}}");
        if (!close) {
            break;
        }
        sw_write_bytes(writer, at, (size_t)(open - at));
        if (!put_part(&it, open + 2, (size_t)(close - open) - 2)) {
            sw_write_bytes(writer, open, (size_t)(close - open) + 2);
        }
        at = close + 2;
    }
    sw_write_text(writer, at);
}
