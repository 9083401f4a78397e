/* The report as text. First one screen: what the run was, the verdict, where a step's time goes, what to change, slow
 * steps, and what the reader should know before believing it. Then, where they are asked for, all tables. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "analyze/shares.h"
#include "export/report_parts.h"
#include "export/text_page.h"

/* Rows on the first screen: of a table beside steps, and of sections alone; slow steps; notes. */
#define SCREEN_ROWS 5
#define ROWS_USUAL 20
#define WORST_USUAL 3
#define PHASES_LEAST 3  /* that have a line of their own */
#define PHASE_TENTHS 10 /* of a percent; phases with more have one too */
#define NOTES_USUAL 4
#define ITEM 160

struct report {
    struct sw__page page;
    const sw_summary *summary;
    const sw_findings *findings; /* NULL: nobody looked */
    bool everything;             /* and the tables below the first screen */
    size_t top;
};

/* Items of a line that flows. */
struct items {
    char text[12][ITEM];
    size_t count;
};

static char *item(struct items *items)
{
    size_t last = sizeof items->text / sizeof items->text[0] - 1;
    size_t index = items->count < last ? items->count++ : last;
    return items->text[index];
}

static void flow(const struct sw__page *page, const struct items *items, size_t indent)
{
    const char *pointers[12];
    for (size_t i = 0; i < items->count; i++) {
        pointers[i] = items->text[i];
    }
    sw__page_flow(page, pointers, items->count, indent);
}

static void duration(const struct report *report, char out[24], double ns)
{
    sw_text_duration(out, ns, !report->page.unicode);
}

static void known_duration(const struct report *report, char *out, uint64_t ns)
{
    char text[24] = "-";
    if (ns != SW_UNKNOWN) {
        duration(report, text, (double)ns);
    }
    snprintf(out, SW__CELL, "%s", text);
}

static void plural(char *out, size_t size, uint64_t count, const char *one,
                   const char *many)
{
    char number[32];
    sw_text_count(number, count);
    snprintf(out, size, "%s %s", number, count == 1 ? one : many);
}

static void blank(const struct report *report)
{
    sw_write_text(report->page.writer, "\n");
}

/* --- head --- */

static void put_title(const struct report *report)
{
    const sw_summary_run *run = sw_summary_get_run(report->summary);
    struct items items = {.count = 0};
    char text[24];
    snprintf(item(&items), ITEM, "%s", run->name ? run->name : "(unnamed)");
    duration(report, text, (double)run->duration_ns);
    snprintf(item(&items), ITEM, "%s", text);
    plural(item(&items), ITEM, run->processes, "process", "processes");
    plural(item(&items), ITEM, run->threads, "thread", "threads");
    if (run->exit_signal > 0) {
        const char *name = sigabbrev_np(run->exit_signal);
        snprintf(item(&items), ITEM, "killed by SIG%s", name ? name : "?");
    } else if (run->exit_code >= 0) {
        snprintf(item(&items), ITEM, "exit %d", run->exit_code);
    } else if (!run->complete) {
        snprintf(item(&items), ITEM, "incomplete");
    }
    sw__page_style(&report->page, SW__BOLD);
    flow(&report->page, &items, 0);
    sw__page_style(&report->page, SW__PLAIN);
    if (run->command) {
        const char *command = run->command;
        sw__page_style(&report->page, SW__DIM);
        sw__page_name(&report->page, command, strlen(command), report->page.columns);
        sw__page_style(&report->page, SW__PLAIN);
        sw_write_text(report->page.writer, "\n");
    }
}

static void put_timeline(const struct report *report)
{
    struct items items = {.count = 0};
    uint64_t amounts[12] = {0};
    uint64_t tenths[12];
    size_t count = sw_summary_part_count(report->summary);
    if (!sw_summary_get_steps(report->summary) || count < 2 || count > 11) {
        return;
    }
    for (size_t i = 0; i < count; i++) {
        amounts[i] = sw_summary_get_part(report->summary, i)->ns;
    }
    sw__shares(amounts, count, 1000, tenths);
    for (size_t i = 0; i < count; i++) {
        if (tenths[i] > 0) {
            char text[24];
            duration(report, text, (double)amounts[i]);
            snprintf(item(&items), ITEM, "%s %s (%u.%u %%)",
                     sw_summary_get_part(report->summary, i)->part, text,
                     (unsigned)tenths[i] / 10, (unsigned)tenths[i] % 10);
        }
    }
    sw__page_styled(&report->page, SW__BOLD, "Run    ");
    flow(&report->page, &items, 7);
}

/* --- steps --- */

static void put_step_line(const struct report *report, const sw_summary_steps *steps)
{
    static const char *const units[][2] = {{"step", "steps"},
                                           {"step (batch)", "steps (batches)"},
                                           {"step (update)", "steps (updates)"},
                                           {"step (loop)", "steps (loop)"}};
    struct items items = {.count = 0};
    char text[SW__CELL];
    size_t unit = steps->unit >= 0 && steps->unit < 4 ? (size_t)steps->unit : 0;
    plural(item(&items), ITEM, steps->count, units[unit][0], units[unit][1]);
    if (steps->counted > 0) {
        duration(report, text, steps->mean_ns);
        snprintf(item(&items), ITEM, "mean %s", text);
        const struct {
            const char *name;
            uint64_t ns;
        } figures[] = {
            {"p50", steps->p50_ns}, {"p99", steps->p99_ns}, {"max", steps->max_ns}};
        for (size_t i = 0; i < 3; i++) {
            known_duration(report, text, figures[i].ns);
            snprintf(item(&items), ITEM, "%s %s", figures[i].name, text);
        }
        if (!isnan(steps->steps_per_s)) {
            if (steps->steps_per_s >= 1000) {
                sw_text_count(text, (uint64_t)(steps->steps_per_s + 0.5));
            } else {
                sw__text_number(text, sizeof text, steps->steps_per_s);
            }
            snprintf(item(&items), ITEM, "%s steps/s", text);
        }
        if (!isnan(steps->samples_per_s) && steps->samples_per_s < 1e18) {
            sw_text_count(text, (uint64_t)(steps->samples_per_s + 0.5));
            snprintf(item(&items), ITEM, "%s samples/s", text);
        }
    }
    if (steps->warmup) {
        plural(item(&items), ITEM, steps->warmup, "warm-up left out", "warm-up left out");
    }
    if (steps->incomplete) {
        plural(item(&items), ITEM, steps->incomplete, "incomplete", "incomplete");
    }
    if (steps->updates) {
        plural(item(&items), ITEM, steps->updates, "update", "updates");
    }
    sw__page_styled(&report->page, SW__BOLD, "Steps  ");
    flow(&report->page, &items, 7);
}

/* Phases that were measured and took no time, in one line: what is not named was not measured. */
static void put_idle(const struct report *report, const sw_summary_steps *steps)
{
    char text[SW_PHASE_COUNT * 20] = "";
    size_t used = 0;
    for (unsigned p = 1; p < SW_PHASE_COUNT; p++) {
        if (steps->phase[p].measured && steps->phase[p].total_ns == 0) {
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     used ? ", " : "", sw_phase_name(p));
        }
    }
    if (used > 0) {
        sw__page_wrap(&report->page, "  no time in ", SW__PLAIN, text);
    }
}

static void put_phase(const struct report *report, const char *name, double ns,
                      unsigned tenths, double bar)
{
    const struct sw__page *page = &report->page;
    const size_t width = page->columns > 80 ? 40 : page->columns - 37;
    char text[24];
    duration(report, text, ns);
    sw_write_format(page->writer, "  %-13s", name);
    const size_t columns = sw_text_columns(text, strlen(text));
    sw_write_repeat(page->writer, " ", columns < 10 ? 10 - columns : 0);
    sw_write_format(page->writer, "%s  %3u.%u %%", text, tenths / 10, tenths % 10);
    sw__page_bar(page, bar, width);
    blank(report);
}

static void put_phases(const struct report *report, const sw_summary_steps *steps)
{
    struct sw__phase_line lines[SW_PHASE_COUNT];
    const size_t count = sw__phase_lines(steps, lines);
    char text[SW__CELL];
    if (count == 0) {
        return;
    }
    blank(report);
    sw__page_styled(&report->page, SW__BOLD, "Where a step's time goes");
    sw_text_count(text, steps->counted);
    sw_write_format(report->page.writer, " (mean of %s)\n", text);
    size_t shown = 0;
    for (; shown < count; shown++) {
        /* What is small is told together, if it is more than one. */
        if (!report->everything && shown >= PHASES_LEAST && shown + 1 < count &&
            lines[shown].tenths < PHASE_TENTHS) {
            break;
        }
        const struct sw__phase_line *line = &lines[shown];
        put_phase(report, sw_phase_name(line->phase), line->mean_ns, line->tenths,
                  line->mean_ns / lines[0].mean_ns);
    }
    if (shown < count) {
        double ns = 0;
        unsigned tenths = 0;
        snprintf(text, sizeof text, "%zu more", count - shown);
        for (; shown < count; shown++) {
            ns += lines[shown].mean_ns;
            tenths += lines[shown].tenths;
        }
        put_phase(report, text, ns, tenths, ns / lines[0].mean_ns);
    }
    if (report->everything) {
        put_idle(report, steps);
    }
    char note[SW__PHASES_NOTE];
    if (sw__phases_note(steps, note, sizeof note)) {
        sw__page_wrap(&report->page, "  ", SW__PLAIN, note);
    }
}

/* Slow steps are worth a line when they are slower than the others. */
static bool is_slow(const sw_summary_steps *steps, size_t index)
{
    return index < steps->worst_count && steps->p50_ns != SW_UNKNOWN &&
           (double)steps->worst[index].ns > 1.2 * (double)steps->p50_ns;
}

static void put_worst(const struct report *report, const sw_summary_steps *steps)
{
    if (!is_slow(steps, 0)) {
        return;
    }
    blank(report);
    sw__page_styled(&report->page, SW__BOLD, "Slowest steps");
    blank(report);
    for (size_t i = 0; is_slow(steps, i) && (report->everything || i < WORST_USUAL);
         i++) {
        const sw_summary_worst *worst = &steps->worst[i];
        char first[64];
        char text[24];
        duration(report, text, (double)worst->ns);
        size_t columns = sw_text_columns(text, strlen(text));
        int used =
            snprintf(first, sizeof first, "  %-8llu", (unsigned long long)worst->step);
        snprintf(first + used, sizeof first - (size_t)used, "%*s%s  ",
                 columns < 8 ? (int)(8 - columns) : 0, "", text);
        sw__page_wrap(&report->page, first, SW__PLAIN, worst->why);
    }
}

/* --- foot --- */

static void put_overhead(const struct report *report)
{
    const sw_summary_overhead *overhead = sw_summary_get_overhead(report->summary);
    char text[512];
    char events[32];
    sw_text_count(events, overhead->events);
    if (isnan(overhead->percent)) {
        snprintf(text, sizeof text, "cost not known; %s event%s", events,
                 overhead->events == 1 ? "" : "s");
    } else {
        char percent[24];
        char low[24];
        char high[24];
        sw__text_small(percent, sizeof percent, overhead->percent);
        sw__text_small(low, sizeof low, overhead->low);
        sw__text_small(high, sizeof high, overhead->high);
        snprintf(text, sizeof text, "cost %s %% of the time (%s to %s %%); %s event%s",
                 percent, low, high, events, overhead->events == 1 ? "" : "s");
    }
    char lost[32];
    if (overhead->dropped) {
        sw_text_count(lost, overhead->dropped);
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %s dropped", lost);
    }
    if (overhead->overwritten) {
        sw_text_count(lost, overhead->overwritten);
        snprintf(text + strlen(text), sizeof text - strlen(text), ", %s given up", lost);
    }
    if (!overhead->dropped && !overhead->overwritten && overhead->events) {
        snprintf(text + strlen(text), sizeof text - strlen(text), ", none lost");
    }
    blank(report);
    sw__page_wrap(&report->page, "Recording  ", SW__BOLD, text);
}

static void put_memory(const struct report *report)
{
    char text[SW__LINE];
    sw__memory_line(text, sizeof text, report->summary);
    if (*text) {
        sw__page_wrap(&report->page, "Memory     ", SW__BOLD, text);
    }
}

/* How many sentences a source of them has. */
static size_t note_count(const struct report *report)
{
    size_t count = 0;
    while (report->findings && sw_findings_note(report->findings, count)) {
        count++;
    }
    for (size_t i = 0; sw_summary_note(report->summary, i); i++) {
        count++;
    }
    return count;
}

static void put_notes(const struct report *report)
{
    const size_t most = report->everything ? SIZE_MAX : NOTES_USUAL;
    size_t shown = 0;
    const char *note;
    for (size_t i = 0;
         shown < most && (note = sw_summary_note(report->summary, i)) != NULL;
         i++, shown++) {
        sw__page_wrap(&report->page, "Note  ", SW__YELLOW, note);
    }
    for (size_t i = 0; report->findings && shown < most &&
                       (note = sw_findings_note(report->findings, i)) != NULL;
         i++, shown++) {
        sw__page_wrap(&report->page, "Note  ", SW__YELLOW, note);
    }
    const size_t count = note_count(report);
    if (count > shown) {
        char text[64];
        snprintf(text, sizeof text, "%s %zu more notes",
                 report->page.unicode ? "…" : "...", count - shown);
        sw__page_wrap(&report->page, "      ", SW__DIM, text);
    }
}

static void put_nothing(const struct report *report)
{
    size_t sections;
    (void)sw_summary_sections(report->summary, SW_ROWS_EACH, &sections);
    if (sections == 0 && sw_summary_counter_count(report->summary) == 0) {
        blank(report);
        sw__page_wrap(&report->page, "", SW__PLAIN,
                      "No sections, steps or counters were recorded.");
    }
}

/* All tables, below the first screen. */
static void put_tables(const struct report *report)
{
    const struct sw__page *page = &report->page;
    sw__report_training(page, report->summary, report->top);
    sw__report_section_tables(page, report->summary, report->top);
    sw__report_profiles(page, report->summary, report->top);
    sw__report_io(page, report->summary, report->top);
    sw__report_samples(page, report->summary, report->top);
    sw__report_counters(page, report->summary, report->top);
}

/* The tables of the first screen: modules where there is a model, else sections; what was counted exactly, for that was asked
 * for; without steps also what samples say. */
static void put_few_tables(const struct report *report)
{
    const struct sw__page *page = &report->page;
    const bool steps = sw_summary_get_steps(report->summary) != NULL;
    size_t modules;
    (void)sw_training_modules(sw_summary_training(report->summary), &modules);
    sw__report_training(page, report->summary, SCREEN_ROWS);
    if (modules == 0) {
        sw__report_sections(page, report->summary, steps ? SCREEN_ROWS : ROWS_USUAL);
    }
    sw__report_profiles(page, report->summary, SCREEN_ROWS);
    sw__report_io(page, report->summary, SCREEN_ROWS);
    if (!steps) {
        sw__report_samples(page, report->summary, SCREEN_ROWS);
    }
}

void sw_export_report_text(sw_writer *writer, const sw_summary *summary,
                           const sw_findings *findings, const sw_text_options *options)
{
    size_t columns = options->columns ? options->columns : 80;
    columns = columns < SW_TEXT_COLUMNS_MIN ? SW_TEXT_COLUMNS_MIN : columns;
    columns = columns > SW_TEXT_COLUMNS_MAX ? SW_TEXT_COLUMNS_MAX : columns;
    const struct report report = {
        .page = {writer, columns, options->colour, options->unicode},
        .summary = summary,
        .findings = findings,
        .everything = options->top != 0,
        .top = options->top,
    };
    const sw_summary_steps *steps = sw_summary_get_steps(summary);

    put_title(&report);
    sw__report_verdict(&report.page, summary, findings);
    if (steps) {
        if (findings) {
            blank(&report);
        }
        put_step_line(&report, steps);
        put_timeline(&report);
        put_phases(&report, steps);
    }
    sw__report_findings(&report.page, findings, report.everything);
    if (steps) {
        put_worst(&report, steps);
    } else {
        put_nothing(&report);
    }
    if (!report.everything) {
        put_few_tables(&report);
    }
    put_overhead(&report);
    put_memory(&report);
    sw__report_monitor(&report.page, summary);
    sw__report_gpus(&report.page, summary);
    sw__report_checks(&report.page, findings, report.everything);
    put_notes(&report);
    if (report.everything) {
        put_tables(&report);
    }
}
