/* What to change, in report.html, and what was looked at. */
#include <math.h>
#include <stdio.h>

#include "export/html_page.h"
#include "export/report_html.h"
#include "export/report_parts.h"

static void put_where(sw_writer *w, const sw_finding *finding)
{
    if (!finding->file && !finding->name) {
        return;
    }
    sw_write_text(w, "<p><code>");
    sw__html_text(w, finding->file);
    if (finding->file && finding->line) {
        sw_write_format(w, ":%u", finding->line);
    }
    sw_write_text(w, finding->file && finding->name ? "</code> in <code>" : "");
    sw__html_text(w, finding->name);
    sw_write_text(w, "</code></p>\n");
}

static void put_evidence(sw_writer *w, const sw_finding *finding)
{
    static const char *const headers[] = {"evidence", ">value"};
    if (finding->evidence_count == 0) {
        return;
    }
    sw_write_text(w, "<details><summary>The numbers behind it</summary>\n");
    sw__html_table_begin(w, headers, 2);
    for (size_t i = 0; i < finding->evidence_count; i++) {
        char number[SW__CELL];
        sw__text_number(number, sizeof number, finding->evidence[i].value);
        sw__html_row_begin(w);
        sw__html_cell(w, finding->evidence[i].name);
        sw__html_number(w, number);
        sw__html_row_end(w);
    }
    sw__html_table_end(w);
    sw_write_text(w, "</details>\n");
}

static void put_tags(sw_writer *w, const sw_finding *finding)
{
    const char *severity = sw_severity_name(finding->severity);
    char share[SW__CELL];
    sw_write_format(w, "<span class=\"tag %s\">%s</span>", severity, severity);
    sw_write_format(w, "<span class=\"tag\">%s</span>",
                    sw_finding_kind_name(finding->kind));
    sw_write_format(w, "<span class=\"tag\">%.0f %% sure</span>",
                    finding->confidence * 100);
    if (isfinite(finding->share) && finding->share >= 0 && finding->share <= 1) {
        sw__text_percent(share, sizeof share, (uint64_t)(finding->share * 1e6 + 0.5),
                         1000000);
        sw_write_format(w, "<span class=\"tag\">%s of the time</span>", share);
    }
    for (unsigned kind = 0; kind < SW_FINDING_KINDS; kind++) {
        if (finding->also & (uint64_t)1 << kind) {
            sw_write_format(w, "<span class=\"tag\">also %s</span>",
                            sw_finding_kind_name((enum sw_finding_kind)kind));
        }
    }
    for (size_t i = 0; i < finding->rule_count; i++) {
        sw_write_text(w, "<span class=\"tag\">");
        sw__html_text(w, finding->rules[i]);
        sw_write_text(w, "</span>");
    }
}

static void put_finding(sw_writer *w, const sw_finding *finding, size_t number)
{
    char gain[SW__GAIN];
    sw_write_format(w, "<div class=\"finding\">\n<h3>%zu. ", number);
    sw__html_text(w, finding->title);
    sw_write_text(w, "</h3>\n<p>");
    put_tags(w, finding);
    sw_write_text(w, "</p>\n");
    put_where(w, finding);
    sw__gain_text(gain, finding);
    if (*gain) {
        char step[24];
        sw_text_duration(step, (double)finding->step_ns, false);
        sw_write_format(w,
                        "<p><span class=\"gain\">%s</span>, a step would take %s</p>\n",
                        gain, step);
    }
    if (finding->advice_count > 0) {
        sw_write_text(w, "<ul>\n");
        for (size_t i = 0; i < finding->advice_count; i++) {
            sw_write_text(w, "<li>");
            sw__html_text(w, finding->advice[i]);
            sw_write_text(w, "</li>\n");
        }
        sw_write_text(w, "</ul>\n");
    }
    put_evidence(w, finding);
    sw_write_text(w, "</div>\n");
}

void sw__html_findings(const struct sw__html_report *it)
{
    size_t count = 0;
    const sw_finding *list = it->findings ? sw_findings_get(it->findings, &count) : NULL;
    sw__html_section_begin(it->w, "findings", "What to change");
    for (size_t i = 0; i < count; i++) {
        put_finding(it->w, &list[i], i + 1);
    }
    if (count == 0) {
        const char *bound = it->findings ? sw_findings_bound(it->findings) : NULL;
        sw_write_text(it->w, "<p>No finding.");
        if (bound) {
            sw_write_text(it->w, " What bounds the run: ");
            sw__html_text(it->w, bound);
            sw_write_text(it->w, ".");
        }
        sw_write_text(it->w, "</p>\n");
    }
    sw__html_section_end(it->w);
}

void sw__html_checks(const struct sw__html_report *it)
{
    static const char *const headers[] = {"kind", "checked", "why not"};
    const char *why;
    sw__html_section_begin(it->w, "checks", "What was looked for");
    if (!it->findings) {
        sw_write_text(it->w, "<p class=\"dim\">Nobody looked for findings.</p>\n");
        sw__html_section_end(it->w);
        return;
    }
    sw_write_format(it->w,
                    "<details><summary>%zu of %d kinds of problems could be looked "
                    "for</summary>\n",
                    sw__checked_count(it->findings, &why), SW_FINDING_KINDS);
    sw__html_table_begin(it->w, headers, 3);
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        const enum sw_finding_kind kind = (enum sw_finding_kind)i;
        const bool checked = sw_findings_checked(it->findings, kind, &why);
        sw__html_row_begin(it->w);
        sw__html_cell(it->w, sw_finding_kind_name(kind));
        sw__html_cell(it->w, checked ? "yes" : "no");
        sw__html_cell(it->w, why ? why : " ");
        sw__html_row_end(it->w);
    }
    sw__html_table_end(it->w);
    sw_write_text(it->w, "</details>\n");
    sw__html_section_end(it->w);
}
