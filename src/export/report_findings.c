/* Findings in the text report: the verdict, what to change, and what was looked at. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/report_parts.h"

/* On one screen: so many in full, and so many with their titles. */
#define FULL_USUAL 3
#define TITLES_USUAL 6
#define ADVICE_USUAL 2
#define ITEM 200

static enum sw__style severity_style(enum sw_severity severity)
{
    static const enum sw__style styles[] = {SW__DIM, SW__YELLOW, SW__RED, SW__RED};
    return (unsigned)severity < 4 ? styles[severity] : SW__PLAIN;
}

void sw__report_verdict(const struct sw__page *page, const sw_summary *summary,
                        const sw_findings *findings)
{
    sw_writer *sentence = findings ? sw_writer_to_memory() : NULL;
    if (!sentence) {
        return;
    }
    const enum sw__verdict verdict = sw__put_verdict(sentence, summary, findings);
    const char *text = sw_writer_text(sentence, NULL);
    if (text) {
        sw_write_text(page->writer, "\n");
        sw__page_wrap(page, "Verdict  ",
                      verdict == SW__VERDICT_GOOD     ? SW__GREEN
                      : verdict == SW__VERDICT_CHANGE ? SW__RED
                                                      : SW__BOLD,
                      text);
    }
    sw_writer_close(sentence, NULL);
}

/* What is gained, where, and how sure that is. */
static void put_facts(const struct sw__page *page, const sw_finding *finding)
{
    char texts[3][ITEM];
    const char *items[3];
    size_t count = 0;
    sw__gain_text(texts[0], finding);
    if (texts[0][0]) {
        items[count] = texts[count];
        count++;
    }
    if (finding->file || finding->name) {
        char where[SW__CELL] = "";
        char name[80] = "";
        if (finding->file) {
            sw__report_where(page, where, finding->file, finding->line);
        }
        if (finding->name) {
            sw__report_cell(page, name, sizeof name, finding->name);
        }
        snprintf(texts[count], ITEM, "%s%s%s", where, *where && *name ? ", " : "", name);
        items[count] = texts[count];
        count++;
    }
    const double sure = finding->confidence * 100;
    snprintf(texts[count], ITEM, "%s, %.0f %% sure", sw_severity_name(finding->severity),
             sure > 0 ? (sure < 100 ? sure : 100) : 0);
    items[count] = texts[count];
    count++;
    sw_write_text(page->writer, "     ");
    sw__page_flow(page, items, count, 5);
}

/* The numbers that it stands on. */
static void put_evidence(const struct sw__page *page, const sw_finding *finding)
{
    char texts[SW_FINDING_NUMBERS][80];
    const char *items[SW_FINDING_NUMBERS];
    for (size_t i = 0; i < finding->evidence_count; i++) {
        char number[SW__CELL];
        sw__text_number(number, sizeof number, finding->evidence[i].value);
        snprintf(texts[i], sizeof texts[i], "%.40s %s", finding->evidence[i].name,
                 number);
        items[i] = texts[i];
    }
    if (finding->evidence_count > 0) {
        sw_write_text(page->writer, "     ");
        sw__page_style(page, SW__DIM);
        sw__page_flow(page, items, finding->evidence_count, 5);
        sw__page_style(page, SW__PLAIN);
    }
}

static void put_finding(const struct sw__page *page, const sw_finding *finding,
                        size_t number, bool full, bool everything)
{
    char first[24];
    snprintf(first, sizeof first, "%3zu  ", number);
    sw__page_wrap(page, first, severity_style(finding->severity),
                  finding->title ? finding->title : "?");
    if (!full) {
        return;
    }
    put_facts(page, finding);
    const size_t most = everything ? SW_FINDING_ADVICE : number == 1 ? ADVICE_USUAL : 1;
    for (size_t i = 0; i < finding->advice_count && i < most; i++) {
        sw__page_wrap(page, page->unicode ? "     → " : "     -> ", SW__CYAN,
                      finding->advice[i]);
    }
    if (everything) {
        put_evidence(page, finding);
    }
}

void sw__report_findings(const struct sw__page *page, const sw_findings *findings,
                         bool everything)
{
    size_t count = 0;
    const sw_finding *list = findings ? sw_findings_get(findings, &count) : NULL;
    if (count == 0) {
        return;
    }
    sw_write_text(page->writer, "\n");
    sw__page_styled(page, SW__BOLD, "What to change");
    sw_write_text(page->writer, "\n");
    for (size_t i = 0; i < count && (everything || i < TITLES_USUAL); i++) {
        put_finding(page, &list[i], i + 1, everything || i < FULL_USUAL, everything);
    }
    if (!everything && count > TITLES_USUAL) {
        char text[64];
        snprintf(text, sizeof text, "  %s %zu more findings", page->unicode ? "…" : "...",
                 count - TITLES_USUAL);
        sw__page_styled(page, SW__DIM, text);
        sw_write_text(page->writer, "\n");
    }
}

/* --- what was looked at --- */

/* Kinds that share a reason are told together. */
static void put_unchecked(const struct sw__page *page, const sw_findings *findings)
{
    const char *whys[SW_FINDING_KINDS];
    bool told[SW_FINDING_KINDS] = {false};
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        (void)sw_findings_checked(findings, (enum sw_finding_kind)i, &whys[i]);
    }
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        sw_writer *line = whys[i] && !told[i] ? sw_writer_to_memory() : NULL;
        if (!line) {
            continue;
        }
        const char *before = "";
        for (unsigned k = i; k < SW_FINDING_KINDS; k++) {
            if (whys[k] && strcmp(whys[k], whys[i]) == 0) {
                sw_write_format(line, "%s%s", before,
                                sw_finding_kind_name((enum sw_finding_kind)k));
                before = ", ";
                told[k] = true;
            }
        }
        sw_write_format(line, ": %s", whys[i]);
        const char *text = sw_writer_text(line, NULL);
        if (text) {
            sw__page_wrap(page, "  not ", SW__DIM, text);
        }
        sw_writer_close(line, NULL);
    }
}

void sw__report_checks(const struct sw__page *page, const sw_findings *findings,
                       bool everything)
{
    const char *why;
    const size_t checked = findings ? sw__checked_count(findings, &why) : 0;
    if (!findings || (checked == 0 && !everything)) {
        return;
    }
    char text[128];
    snprintf(text, sizeof text, "%zu of %d kinds of problems could be looked for",
             checked, SW_FINDING_KINDS);
    sw__page_wrap(page, "Checked    ", SW__BOLD, text);
    if (everything) {
        put_unchecked(page, findings);
    }
}
