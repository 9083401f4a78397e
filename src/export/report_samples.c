/* The sampler's part of the text report: in which functions the training thread ran, and on which lines it spent what
 * no phase explains. */
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "export/report_parts.h"

#define FUNCTIONS_USUAL 5
#define LINES_USUAL 3

struct samples {
    const sw_summary *summary;
    const struct sw__page *page;
    const sw_stacks *stacks;
    size_t top;
    sw_stacks_filter thread; /* the one that is shown, running */
};

/* Tenths of a percent, without the locale's comma. */
static void put_percent(char *out, double share)
{
    const unsigned tenths = (unsigned)(share * 1000 + 0.5);
    snprintf(out, SW__CELL, "%u.%u", tenths / 10, tenths % 10);
}

static void put_row(const struct samples *samples, struct sw__cells *cells,
                    const sw_stacks_place *place, bool lines)
{
    char low[SW__CELL];
    char high[SW__CELL];
    cells->name = *place->frame.name ? place->frame.name : "(unknown)";
    cells->name_length = strlen(cells->name);
    put_percent(cells->cell[0], place->self.share);
    put_percent(low, place->self.low);
    put_percent(high, place->self.high);
    snprintf(cells->cell[1], SW__CELL, "%.8s to %.8s", low, high);
    put_percent(cells->cell[2], place->total.share);
    sw__report_where(samples->page, cells->cell[3], place->frame.file,
                     lines ? place->frame.line : place->frame.first_line);
}

/* The places that have most self samples, as a table. */
static void put_table(const struct samples *samples, const char *title,
                      const sw_stacks_filter *filter, bool lines, size_t usual)
{
    size_t count = 0;
    sw_stacks_place *places = lines
                                  ? sw_stacks_lines(samples->stacks, filter, &count)
                                  : sw_stacks_functions(samples->stacks, filter, &count);
    const size_t most =
        samples->top == SW_TEXT_ALL || samples->top < usual ? samples->top : usual;
    struct sw__table table = {
        .title = title,
        .column_count = 4,
        .column = {{"self %", 100}, {"95 % range", 60}, {"total %", 50}, {"where", 90}}};
    for (size_t i = 0; i < count && i < most; i++) {
        struct sw__cells *cells = places[i].self_running ? sw__table_row(&table) : NULL;
        if (!cells) {
            break;
        }
        put_row(samples, cells, &places[i], lines);
    }
    if (table.count > 0) {
        sw__table_print(&table, samples->page);
    }
    sw__table_free(&table);
    sw_stacks_release(places);
}

/* The thread whose steps are reported; without steps, or samples of it, the busiest first thread of a process. */
static bool choose_thread(struct samples *samples, const sw_summary *summary)
{
    const sw_summary_steps *steps = sw_summary_get_steps(summary);
    size_t count = 0;
    sw_stacks_thread *threads = sw_stacks_threads(samples->stacks, &count);
    const sw_stacks_thread *chosen = NULL;
    for (size_t i = 0; i < count; i++) {
        if (steps && threads[i].pid == steps->pid &&
            strcmp(threads[i].thread, steps->thread) == 0) {
            chosen = &threads[i];
            break;
        }
        if (!chosen || (threads[i].main && !chosen->main)) {
            chosen = &threads[i];
        }
    }
    if (chosen) {
        samples->thread = (sw_stacks_filter){
            .thread = chosen->thread, .pid = chosen->pid, .running_only = true};
    }
    sw_stacks_release(threads);
    return chosen != NULL;
}

static void put_head(const struct samples *samples)
{
    const sw_stacks_totals *totals = sw_stacks_get_totals(samples->stacks);
    sw_stacks_filter all = samples->thread;
    all.running_only = false;
    const sw_stack_counts counts = sw_stacks_count(samples->stacks, &all);
    char text[256];
    char number[32];
    char percent[SW__CELL] = "-";
    char running[SW__CELL];
    char name[SW__CELL];
    sw_text_count(number, counts.running + counts.waiting);
    if (totals->looks) {
        sw__text_percent(percent, sizeof percent, totals->partial + totals->given_up,
                         totals->looks);
    }
    sw__report_cell(samples->page, name, 24,
                    *samples->thread.thread ? samples->thread.thread : "(unnamed)");
    sw__text_percent(running, sizeof running, counts.running,
                     counts.running + counts.waiting);
    char process[48] = "";
    if (sw_summary_process_count(samples->summary) > 1 && samples->thread.pid) {
        snprintf(process, sizeof process, " of process %u", samples->thread.pid);
    }
    const int used = snprintf(
        text, sizeof text, "(thread %s%s, sampled %s time%s, %s rejected; ", name,
        process, number, counts.running + counts.waiting == 1 ? "" : "s", percent);
    char *rest = text + used;
    const size_t room = sizeof text - (size_t)used;
    if (counts.running) {
        snprintf(rest, room, "shares are of the %s in which it was running)", running);
    } else {
        snprintf(rest, room, "it was waiting in all of them)");
    }
    sw_write_text(samples->page->writer, "\n");
    sw__page_wrap(samples->page, "Where Python was ", SW__BOLD, text);
}

void sw__report_samples(const struct sw__page *page, const sw_summary *summary,
                        size_t top)
{
    struct samples samples = {.page = page,
                              .summary = summary,
                              .stacks = sw_summary_stacks(summary),
                              .top = top};
    if (!samples.stacks || !choose_thread(&samples, summary)) {
        return;
    }
    put_head(&samples);
    put_table(&samples, "by function", &samples.thread, false, FUNCTIONS_USUAL);
    sw_stacks_filter other = samples.thread;
    other.one_phase = true;
    other.phase = SW_PHASE_OTHER;
    put_table(&samples, "in 'other', by line", &other, true, LINES_USUAL);
}
