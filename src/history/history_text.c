/* The history as a table, with a line for each program that has been run often enough to show where it goes. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "export/text_page.h"
#include "history/pairs.h"

#define ROWS_USUAL 20
#define TRENDS_MOST 10
#define TREND_SHOWN 12 /* values where there are no sparks */
#define COMMIT_SHOWN 9

enum { WHEN, STEPS, STEP, PACE, CHANGE, EXIT, COMMIT, FINDING, COLUMNS };

/* What stands in the table and needs a word below it. */
struct legend {
    bool change, other_arguments, best, gone, dirty;
};

static void put_when(char *out, double seconds)
{
    char text[SW__UTC];
    sw__utc_write(text, seconds);
    snprintf(out, SW__CELL, "%.10s%s%.5s", *text ? text : "-", *text ? " " : "",
             *text ? text + 11 : "");
}

static void put_duration(char *out, double ms, bool unicode)
{
    char text[24] = "-";
    if (isfinite(ms)) {
        sw_text_duration(text, ms * 1e6, !unicode);
    }
    snprintf(out, SW__CELL, "%s", text);
}

static void put_ratio(char *out, const char *before, double ratio, bool unicode)
{
    char number[24];
    snprintf(number, sizeof number, "%.2f", ratio);
    for (char *c = number; *c; c++) {
        *c = (char)(*c == ',' ? '.' : *c); /* whatever the locale */
    }
    snprintf(out, SW__CELL, "%s%s%s", before, number, unicode ? "×" : "x");
}

/* The beginning of a text from the database, which anybody may have written: what is not plain ASCII is shown as '?'. */
static void put_plain(char *out, size_t size, const char *text)
{
    snprintf(out, size, "%s", text ? text : "-");
    for (char *at = out; *at; at++) {
        if ((unsigned char)*at < 0x20 || (unsigned char)*at >= 0x7f) {
            *at = '?';
        }
    }
}

static void put_exit(char *out, const sw_history_run *run)
{
    if (run->exit_signal > 0) {
        snprintf(out, SW__CELL, "signal %d", run->exit_signal);
    } else if (run->exit_code >= 0) {
        snprintf(out, SW__CELL, "%d", run->exit_code);
    } else {
        snprintf(out, SW__CELL, "-");
    }
}

static void fill_row(struct sw__cells *row, const sw_history_run *run, bool unicode,
                     struct legend *legend)
{
    char *const change = row->cell[CHANGE];
    char finding[21];
    row->name = run->name ? run->name : run->directory;
    row->name_length = strlen(row->name);
    row->style = run->gone                                    ? SW__DIM
                 : run->exit_signal > 0 || run->exit_code > 0 ? SW__RED
                 : run->best                                  ? SW__CYAN
                                                              : SW__PLAIN;
    snprintf(row->suffix, sizeof row->suffix, "%s%s", run->gone ? " (gone)" : "",
             !run->best ? ""
             : unicode  ? " ★"
                        : " *");
    put_when(row->cell[WHEN], run->started_s);
    snprintf(row->cell[STEPS], SW__CELL, "-");
    if (run->steps != SW_UNKNOWN) {
        sw_text_count(row->cell[STEPS], run->steps);
    }
    put_duration(row->cell[STEP], run->step_p50_ms, unicode);
    sw__text_number(row->cell[PACE], SW__CELL, run->steps_per_s);
    snprintf(change, SW__CELL, "-");
    if (isfinite(run->change)) {
        put_ratio(change, run->previous_same_arguments ? "" : "~", run->change, unicode);
        legend->change = true;
        legend->other_arguments |= !run->previous_same_arguments;
    }
    put_exit(row->cell[EXIT], run);
    put_plain(row->cell[COMMIT], COMMIT_SHOWN + 1, run->commit);
    strcat(row->cell[COMMIT], run->dirty == 1 ? "+" : "");
    put_plain(finding, sizeof finding - 1, run->finding);
    snprintf(row->cell[FINDING], SW__CELL, "%s", finding);
    if (run->finding && isfinite(run->speedup)) {
        strcat(finding, " ");
        put_ratio(row->cell[FINDING], finding, run->speedup, unicode);
    }
    legend->best |= run->best;
    legend->gone |= run->gone;
    legend->dirty |= run->dirty == 1;
}

static void put_legend(const struct sw__page *page, const struct legend *legend)
{
    char text[512];
    snprintf(text, sizeof text, "%s%s%s%s%s",
             legend->change ? "change: steps/s against the previous run of the same "
                              "program, a plain ratio without a test. "
                            : "",
             legend->other_arguments ? "~: that run had other arguments. " : "",
             !legend->best   ? ""
             : page->unicode ? "★: best so far of its program. "
                             : "*: best so far of its program. ",
             legend->dirty ? "commit+: with changes that were not committed. " : "",
             legend->gone ? "gone: the run directory was deleted." : "");
    if (*text) {
        sw_write_text(page->writer, "\n");
        sw__page_wrap(page, "", SW__PLAIN, text);
    }
}

/* --- trends --- */

/* One character a value: the lowest is the fastest. Differences of a few percent shall not look like mountains, so the height is a
 * fifth of the time at least. */
static void put_sparks(char *out, const sw_history_trend *trend)
{
    static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double low = trend->step_ms[0];
    double high = low;
    for (size_t i = 1; i < trend->count; i++) {
        low = fmin(low, trend->step_ms[i]);
        high = fmax(high, trend->step_ms[i]);
    }
    const double span = fmax(high - low, high / 5);
    const double base = (high + low - span) / 2;
    *out = '\0';
    for (size_t i = 0; i < trend->count; i++) {
        const double height = (trend->step_ms[i] - base) / span;
        strcat(out, levels[(size_t)(fmin(fmax(height, 0), 1) * 7 + 0.5)]);
    }
}

static void put_values(char *out, size_t size, const sw_history_trend *trend)
{
    const size_t skipped = trend->count > TREND_SHOWN ? trend->count - TREND_SHOWN : 0;
    size_t used = (size_t)snprintf(out, size, "%s", skipped ? "... " : "");
    for (size_t i = skipped; i < trend->count; i++) {
        char value[SW__CELL];
        sw__text_number(value, sizeof value, trend->step_ms[i]);
        used += (size_t)snprintf(out + used, size - used, "%s%s", i > skipped ? " " : "",
                                 value);
    }
    snprintf(out + used, size - used, " ms");
}

static void put_trend(const struct sw__page *page, const sw_history_trend *trend)
{
    char shape[SW_HISTORY_TREND * 4 + 512];
    char first[SW__CELL];
    char last[SW__CELL];
    char best[SW__CELL];
    char text[1024];
    const char *name = trend->name ? trend->name : trend->program;
    put_duration(best, trend->best_ms, page->unicode);
    if (page->unicode) {
        put_sparks(shape, trend);
        put_duration(first, trend->first_ms, true);
        put_duration(last, trend->last_ms, true);
        snprintf(text, sizeof text, "%.60s %s %s → %s in %zu runs, best %s", name, shape,
                 first, last, trend->runs, best);
    } else {
        put_values(shape, sizeof shape, trend);
        snprintf(text, sizeof text, "%.60s: %s in %zu runs, best %s", name, shape,
                 trend->runs, best);
    }
    sw__page_wrap(page, "  ", SW__PLAIN, text);
}

static void put_trends(const struct sw__page *page, const sw_history *history)
{
    const size_t count = sw_history_trend_count(history);
    if (count == 0) {
        return;
    }
    sw_write_text(page->writer, "\n");
    sw__page_styled(page, SW__BOLD, "Time of a step (p50), oldest run first");
    sw_write_text(page->writer, "\n");
    for (size_t i = 0; i < count && i < TRENDS_MOST; i++) {
        put_trend(page, sw_history_get_trend(history, i));
    }
    if (count > TRENDS_MOST) {
        sw_write_format(page->writer, "  and %zu more programs\n", count - TRENDS_MOST);
    }
}

/* --- the page --- */

static void put_table(const struct sw__page *page, const sw_history *history,
                      size_t shown)
{
    struct legend legend = {0};
    struct sw__table table = {
        .title = "run",
        .column_count = COLUMNS,
        .column = {[WHEN] = {"when (UTC)", 8},
                   [STEPS] = {"steps", 4},
                   [STEP] = {"step p50", 9},
                   [PACE] = {"steps/s", 6},
                   [CHANGE] = {"change", 7},
                   [EXIT] = {"exit", 3},
                   [COMMIT] = {"commit", 1},
                   [FINDING] = {"first finding", 5}},
    };
    for (size_t i = 0; i < shown; i++) {
        struct sw__cells *row = sw__table_row(&table);
        if (row) {
            fill_row(row, sw_history_get(history, i), page->unicode, &legend);
        }
    }
    sw__table_print(&table, page);
    sw__table_free(&table);
    put_legend(page, &legend);
}

void sw_history_write_text(sw_writer *writer, const sw_history *history,
                           const sw_text_options *options)
{
    const sw_text_options usual = {0};
    const sw_text_options *look = options ? options : &usual;
    size_t columns = look->columns ? look->columns : 80;
    columns = columns < SW_TEXT_COLUMNS_MIN ? SW_TEXT_COLUMNS_MIN : columns;
    columns = columns > SW_TEXT_COLUMNS_MAX ? SW_TEXT_COLUMNS_MAX : columns;
    const struct sw__page page = {.writer = writer,
                                  .columns = columns,
                                  .colour = look->colour,
                                  .unicode = look->unicode};
    const size_t count = sw_history_count(history);
    const size_t limit = look->top ? look->top : ROWS_USUAL;
    const size_t shown = count < limit ? count : limit;
    const char *note;
    if (count > 0) {
        put_table(&page, history, shown);
        if (shown < count) {
            sw_write_format(writer, "\n%zu of %zu runs; --limit shows more.\n", shown,
                            count);
        }
        put_trends(&page, history);
    }
    for (size_t i = 0; (note = sw_history_note(history, i)) != NULL; i++) {
        sw_write_text(writer, i == 0 && count > 0 ? "\n" : "");
        sw__page_wrap(&page, "Note: ", SW__YELLOW, note);
    }
}
