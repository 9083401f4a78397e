/* A comparison as text: the answer, the runs side by side, and what the change is made of. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "base/memory.h"
#include "export/text_page.h"

#define ROWS_USUAL 20
#define PATH_SHOWN 40 /* bytes of a path in the table */

struct compare_page {
    struct sw__page page;
    const sw_comparison *comparison;
    size_t top;
};

static void blank(const struct compare_page *out)
{
    sw_write_text(out->page.writer, "\n");
}

static void put_duration(const struct compare_page *out, char *cell, double ns)
{
    char text[24] = "-";
    if (!isnan(ns)) {
        sw_text_duration(text, ns, !out->page.unicode);
    }
    snprintf(cell, SW__CELL, "%s", text);
}

/* With its sign, which a difference of 0 does not have. */
static void put_signed(const struct compare_page *out, char *cell, size_t size, double ns)
{
    char text[24];
    if (isnan(ns)) {
        snprintf(cell, size, "-");
        return;
    }
    /* Of two means of millions of ns, less is what sums are rounded by. */
    ns = fabs(ns) < 0.005 ? 0 : ns;
    sw_text_duration(text, fabs(ns), !out->page.unicode);
    const char *minus = out->page.unicode ? "\u2212" : "-";
    snprintf(cell, size, "%s%s", ns < 0 ? minus : ns > 0 ? "+" : "", text);
}

static const char *range(const struct compare_page *out)
{
    return out->page.unicode ? "\u2026" : " to ";
}

/* Two decimals; not %.2f, whose decimal point follows the program's locale. */
static void put_ratio(char *text, size_t size, double value)
{
    if (!(value < 1e6)) {
        snprintf(text, size, "-");
        return;
    }
    const unsigned hundredths = (unsigned)(value * 100 + 0.5);
    snprintf(text, size, "%u.%02u", hundredths / 100, hundredths % 100);
}

/* --- the answer --- */

static enum sw__style style_of(const sw_compared *run)
{
    return run->regression                           ? SW__RED
           : run->verdict == SW_VERDICT_FASTER       ? SW__CYAN
           : run->verdict == SW_VERDICT_INCOMPARABLE ? SW__YELLOW
                                                     : SW__PLAIN;
}

static void put_answer(const struct compare_page *out, size_t index)
{
    const sw_compared_side *before = sw_comparison_baseline(out->comparison);
    const sw_compared *run = sw_comparison_get(out->comparison, index);
    char text[1200];
    snprintf(text, sizeof text, "%.500s against %.500s", run->side.path, before->path);
    sw__page_style(&out->page, SW__BOLD);
    sw__page_wrap(&out->page, "", SW__PLAIN, text);
    sw__page_style(&out->page, SW__PLAIN);
    const size_t length = sw_comparison_sentence(
        out->comparison, index, !out->page.unicode, text, sizeof text - 64);
    if (length < sizeof text - 64) {
        char percent[24];
        sw__text_number(percent, sizeof percent,
                        sw_comparison_threshold(out->comparison));
        snprintf(text + length, sizeof text - length, ".%s%s%s",
                 run->regression ? " A regression of more than " : "",
                 run->regression ? percent : "", run->regression ? " %." : "");
    }
    sw__page_style(&out->page, style_of(run));
    sw__page_wrap(&out->page, "  ", SW__PLAIN, text);
    sw__page_style(&out->page, SW__PLAIN);
}

/* --- the runs --- */

enum { STEPS, MEAN, MEDIAN, SAMPLES, DURATION, SPEEDUP, INTERVAL, VERDICT, RUN_COLUMNS };

/* Paths differ at their end, so that is what is kept of a long one. */
static void put_path(const struct compare_page *out, struct sw__cells *cells,
                     const char *path)
{
    const size_t length = strlen(path);
    const char *tail = length > PATH_SHOWN ? path + length - PATH_SHOWN : NULL;
    const char *slash = tail ? strchr(tail, '/') : NULL;
    if (slash && slash[1]) {
        snprintf(cells->label, sizeof cells->label, "%s%s",
                 out->page.unicode ? "…" : "...", slash);
    } else {
        cells->name = path;
        cells->name_length = length;
    }
}

static struct sw__cells *put_side(const struct compare_page *out, struct sw__table *table,
                                  const sw_compared_side *side)
{
    struct sw__cells *cells = sw__table_row(table);
    char number[32];
    if (!cells) {
        return NULL;
    }
    put_path(out, cells, side->path);
    if (side->steps != SW_UNKNOWN) {
        sw_text_count(number, side->steps);
        snprintf(cells->cell[STEPS], SW__CELL, "%s", number);
    }
    if (table->column[MEAN].header[0]) {
        put_duration(out, cells->cell[MEAN], side->step_ns);
        put_duration(out, cells->cell[MEDIAN], side->median_ns);
    }
    if (side->samples_per_s < 1e18) {
        sw_text_count(number, (uint64_t)(side->samples_per_s + 0.5));
        snprintf(cells->cell[SAMPLES], SW__CELL, "%s", number);
    }
    put_duration(out, cells->cell[DURATION], side->duration_s * 1e9);
    return cells;
}

static bool any_known(const sw_comparison *comparison,
                      double (*value)(const sw_compared_side *side))
{
    bool known = !isnan(value(sw_comparison_baseline(comparison)));
    for (size_t i = 0; i < sw_comparison_count(comparison) && !known; i++) {
        known = !isnan(value(&sw_comparison_get(comparison, i)->side));
    }
    return known;
}

static double step_ns(const sw_compared_side *side)
{
    return side->step_ns;
}

static double samples_per_s(const sw_compared_side *side)
{
    return side->samples_per_s;
}

static void put_runs(const struct compare_page *out)
{
    /* A column without a header and without cells is not there. */
    const bool steps = any_known(out->comparison, step_ns);
    const bool samples = any_known(out->comparison, samples_per_s);
    struct sw__table table = {.title = "Runs",
                              .column_count = RUN_COLUMNS,
                              .column = {[STEPS] = {steps ? "steps" : "", 50},
                                         [MEAN] = {steps ? "mean step" : "", 90},
                                         [MEDIAN] = {steps ? "median" : "", 70},
                                         [SAMPLES] = {samples ? "samples/s" : "", 40},
                                         [DURATION] = {"in all", steps ? 30 : 90},
                                         [SPEEDUP] = {"speedup", 100},
                                         [INTERVAL] = {steps ? "95 %" : "", 60},
                                         [VERDICT] = {"verdict", 80}}};
    struct sw__cells *cells =
        put_side(out, &table, sw_comparison_baseline(out->comparison));
    if (cells) {
        snprintf(cells->cell[VERDICT], SW__CELL, "baseline");
    }
    for (size_t i = 0; i < sw_comparison_count(out->comparison); i++) {
        const sw_compared *run = sw_comparison_get(out->comparison, i);
        cells = put_side(out, &table, &run->side);
        if (!cells) {
            break;
        }
        put_ratio(cells->cell[SPEEDUP], SW__CELL, run->speedup);
        if (!isnan(run->low)) {
            char low[16];
            char high[16];
            put_ratio(low, sizeof low, run->low);
            put_ratio(high, sizeof high, run->high);
            snprintf(cells->cell[INTERVAL], SW__CELL, "%s%s%s", low, range(out), high);
        }
        snprintf(cells->cell[VERDICT], SW__CELL, "%s", sw_verdict_name(run->verdict));
        cells->style = style_of(run);
    }
    blank(out);
    sw__table_print(&table, &out->page);
    sw__table_free(&table);
}

/* --- what the change is made of --- */

enum { CALLS, BEFORE, AFTER, CHANGE, BETWEEN, CHANGED, PART_COLUMNS };

static void fill_part(const struct compare_page *out, struct sw__cells *cells,
                      const sw_compared_part *part)
{
    char low[40];
    char high[40];
    if (part->file) {
        const char *slash = strrchr(part->file, '/');
        snprintf(cells->label, sizeof cells->label, "%.80s (%.30s:%u)", part->name,
                 slash ? slash + 1 : part->file, part->line);
    } else {
        cells->name = part->name;
        cells->name_length = strlen(part->name);
    }
    if (strcmp(part->per, "call") == 0) {
        snprintf(cells->suffix, SW__CELL, " (a call)");
    }
    if (part->before_calls != SW_UNKNOWN && part->after_calls != SW_UNKNOWN &&
        part->file) {
        sw_text_count(low, part->before_calls);
        sw_text_count(high, part->after_calls);
        snprintf(cells->cell[CALLS], SW__CELL, "%.12s%s%.12s", low,
                 out->page.unicode ? "→" : "->", high);
    }
    put_duration(out, cells->cell[BEFORE], part->before_ns);
    put_duration(out, cells->cell[AFTER], part->after_ns);
    put_signed(out, cells->cell[CHANGE], SW__CELL, part->difference_ns);
    if (!isnan(part->low_ns)) {
        put_signed(out, low, sizeof low, part->low_ns);
        put_signed(out, high, sizeof high, part->high_ns);
        snprintf(cells->cell[BETWEEN], SW__CELL, "%.12s%s%.12s", low, range(out), high);
    }
    if (!part->file) { /* nothing of a profile is ever tested */
        snprintf(cells->cell[CHANGED], SW__CELL, "%s",
                 part->changed > 0    ? "changed"
                 : part->changed == 0 ? "not shown"
                                      : "no test");
    }
}

/* What was tested and did not change is of no interest, except among phases, which are few and make up the step. */
static void put_parts(const struct compare_page *out, size_t index,
                      enum sw_compared_kind kind)
{
    static const char *const titles[][2] = {{"Phases, a step", "Phases, a sample"},
                                            {"Modules, a step", "Modules, a sample"},
                                            {"Sections, a step", "Sections, a sample"},
                                            {"Functions, self", "Functions, self"}};
    static const char *const names[] = {"phases", "modules", "sections", "functions"};
    const bool samples =
        sw_comparison_get(out->comparison, index)->basis == SW_BASIS_SAMPLES;
    const bool functions = kind == SW_COMPARED_FUNCTION;
    struct sw__table table = {.title = titles[kind][samples ? 1 : 0],
                              .column_count = PART_COLUMNS,
                              .column = {[CALLS] = {functions ? "calls" : "", 50},
                                         [BEFORE] = {"before", 80},
                                         [AFTER] = {"after", 90},
                                         [CHANGE] = {"change", 100},
                                         [BETWEEN] = {functions ? "" : "95 %", 60},
                                         [CHANGED] = {"", 70}}};
    size_t count;
    const sw_compared_part *parts =
        sw_comparison_parts(out->comparison, index, kind, &count);
    size_t hidden = 0;
    for (size_t i = 0; i < count; i++) {
        if (table.count == out->top ||
            (parts[i].changed == 0 && kind != SW_COMPARED_PHASE)) {
            hidden++;
            continue;
        }
        struct sw__cells *cells = sw__table_row(&table);
        if (!cells) {
            break;
        }
        fill_part(out, cells, &parts[i]);
    }
    if (table.count > 0) {
        blank(out);
        sw__table_print(&table, &out->page);
    }
    if (hidden > 0) {
        char number[32];
        char text[96];
        sw_text_count(number, hidden);
        if (table.count == 0) {
            blank(out);
        }
        snprintf(text, sizeof text, "%s %s %s%s, %s", out->page.unicode ? "  …" : "  ...",
                 number, table.count ? "more " : "", names[kind],
                 table.count == out->top ? "not listed" : "without a change to be shown");
        sw__page_styled(&out->page, SW__DIM, text);
        blank(out);
    }
    sw__table_free(&table);
}

/* --- notes --- */

/* Whether an earlier run has the same note: the baseline's come with every run. */
static bool told(const sw_comparison *comparison, size_t run, size_t note)
{
    const char *text = sw_comparison_note(comparison, run, note);
    for (size_t r = 0; r <= run; r++) {
        const char *other;
        for (size_t n = 0; (other = sw_comparison_note(comparison, r, n)) != NULL; n++) {
            if (r == run && n == note) {
                return false;
            }
            if (strcmp(other, text) == 0) {
                return true;
            }
        }
    }
    return false;
}

static void put_notes(const struct compare_page *out, size_t run)
{
    const char *note;
    bool begun = false;
    for (size_t i = 0; (note = sw_comparison_note(out->comparison, run, i)) != NULL;
         i++) {
        if (!told(out->comparison, run, i)) {
            if (!begun) {
                blank(out);
            }
            begun = true;
            sw__page_wrap(&out->page, "Note  ", SW__YELLOW, note);
        }
    }
}

void sw_export_compare_text(sw_writer *writer, const sw_comparison *comparison,
                            const sw_text_options *options)
{
    size_t columns = options->columns ? options->columns : 80;
    columns = columns < SW_TEXT_COLUMNS_MIN ? SW_TEXT_COLUMNS_MIN : columns;
    columns = columns > SW_TEXT_COLUMNS_MAX ? SW_TEXT_COLUMNS_MAX : columns;
    const struct compare_page out = {
        .page = {writer, columns, options->colour, options->unicode},
        .comparison = comparison,
        .top = options->top ? options->top : ROWS_USUAL,
    };
    const size_t count = sw_comparison_count(comparison);
    for (size_t i = 0; i < count; i++) {
        put_answer(&out, i);
    }
    put_runs(&out);
    for (size_t i = 0; i < count; i++) {
        if (count > 1) {
            blank(&out);
            sw__page_style(&out.page, SW__BOLD);
            const char *path = sw_comparison_get(comparison, i)->side.path;
            sw__page_name(&out.page, path, strlen(path), columns);
            sw__page_style(&out.page, SW__PLAIN);
            blank(&out);
        }
        for (unsigned kind = 0; kind < SW_COMPARED_KINDS; kind++) {
            put_parts(&out, i, (enum sw_compared_kind)kind);
        }
        put_notes(&out, i);
    }
}
