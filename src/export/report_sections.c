/* Sections and counters in the text report: the call tree, names by self time, series of values. */
#include <stdio.h>
#include <string.h>

#include <stepwatch/export.h>

#include "base/memory.h"
#include "export/report_parts.h"

struct tables {
    const struct sw__page *page;
    const sw_summary *summary;
    size_t top;
};

static void known_duration(const struct tables *tables, char *out, uint64_t ns)
{
    char text[24] = "-";
    if (ns != SW_UNKNOWN) {
        sw_text_duration(text, (double)ns, !tables->page->unicode);
    }
    snprintf(out, SW__CELL, "%s", text);
}

static void blank(const struct tables *tables)
{
    sw_write_text(tables->page->writer, "\n");
}

enum { CALLS, TOTAL, SELF, MEAN, P50, P99, MAX, SHARE, SECTION_COLUMNS };

static struct sw__table section_table(const char *title)
{
    return (struct sw__table){.title = title,
                              .column_count = SECTION_COLUMNS,
                              .column = {[CALLS] = {"calls", 80},
                                         [TOTAL] = {"total", 100},
                                         [SELF] = {"self", 60},
                                         [MEAN] = {"mean", 70},
                                         [P50] = {"p50", 20},
                                         [P99] = {"p99", 50},
                                         [MAX] = {"max", 30},
                                         [SHARE] = {"% run", 90}}};
}

static void fill_row(const struct tables *tables, struct sw__cells *cells,
                     const sw_summary_section *row)
{
    uint64_t run_ns = sw_summary_get_run(tables->summary)->duration_ns;
    uint64_t shown = row->total_ns;
    cells->name = row->name_length ? row->name : "(no name)";
    cells->name_length = row->name_length ? row->name_length : strlen(cells->name);
    if (row->open && row->calls == 0 && row->total_ns == 0) {
        shown = row->open_ns;
    }
    char errors[32];
    sw_text_count(errors, row->errors);
    if (row->names > 1) {
        snprintf(cells->suffix, SW__CELL, " (%u names)", row->names);
    } else if (row->open) {
        snprintf(cells->suffix, SW__CELL, " (open)");
    } else if (row->errors) {
        snprintf(cells->suffix, SW__CELL, " (%.12s error%s)", errors,
                 row->errors == 1 ? "" : "s");
    }
    char number[32];
    sw_text_count(number, row->calls);
    snprintf(cells->cell[CALLS], SW__CELL, "%s", number);
    known_duration(tables, cells->cell[TOTAL], shown);
    known_duration(tables, cells->cell[SELF],
                   row->calls || row->total_ns ? sw_summary_section_self(row)
                                               : SW_UNKNOWN);
    known_duration(tables, cells->cell[MEAN],
                   row->calls ? row->total_ns / row->calls : SW_UNKNOWN);
    known_duration(tables, cells->cell[P50], row->p50_ns);
    known_duration(tables, cells->cell[P99], row->p99_ns);
    known_duration(tables, cells->cell[MAX], row->max_ns);
    sw__text_percent(cells->cell[SHARE], SW__CELL, shown, run_ns);
    /* The column says it already. */
    char *sign = strstr(cells->cell[SHARE], " %");
    if (sign) {
        *sign = '\0';
    }
}

static uint64_t weight(const sw_summary_section *row)
{
    uint64_t sum;
    return __builtin_add_overflow(row->total_ns, row->open_ns, &sum) ? UINT64_MAX : sum;
}

/* Chooses the heaviest rows and what is above them. `top` rows at least, ancestors not counted. */
static bool *choose_rows(const sw_summary_section *rows, size_t count, size_t top)
{
    bool *chosen = sw__alloc_zero(count + 1, sizeof *chosen);
    if (!chosen) {
        return NULL;
    }
    if (count <= top) {
        memset(chosen, 1, count);
        return chosen;
    }
    /* The weight of the row at place `top`, by bisection: no order has to be built. */
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2 + ((high - low) & 1);
        size_t heavier = 0;
        for (size_t i = 0; i < count; i++) {
            heavier += weight(&rows[i]) >= middle;
        }
        if (heavier >= top) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    size_t given = 0;
    for (size_t i = 0; i < count; i++) {
        given += weight(&rows[i]) > low;
        chosen[i] = weight(&rows[i]) > low;
    }
    for (size_t i = 0; i < count && given < top; i++) {
        if (weight(&rows[i]) == low) {
            chosen[i] = true;
            given++;
        }
    }
    for (size_t i = count; i-- > 0;) { /* parents come before their children */
        if (chosen[i] && rows[i].parent != SW_NO_ROW) {
            chosen[rows[i].parent] = true;
        }
    }
    return chosen;
}

static bool same_group(const sw_summary_section *a, const sw_summary_section *b)
{
    return strcmp(a->thread, b->thread) == 0 && strcmp(a->domain, b->domain) == 0;
}

/* Whether rows of more than one thread or domain are in the list. */
static bool many_groups(const sw_summary_section *rows, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (rows[i].parent == SW_NO_ROW && !same_group(&rows[i], &rows[0])) {
            return true;
        }
    }
    return false;
}

static void put_more(const struct tables *tables, size_t hidden, const char *what)
{
    if (hidden > 0) {
        char number[32];
        char text[96];
        sw_text_count(number, hidden);
        snprintf(text, sizeof text, "  %s %s more %s",
                 tables->page->unicode ? "…" : "...", number, what);
        sw__page_styled(tables->page, SW__DIM, text);
        blank(tables);
    }
}

static void put_tree(const struct tables *tables)
{
    size_t count;
    const sw_summary_section *rows =
        sw_summary_sections(tables->summary, SW_ROWS_FAMILIES, &count);
    bool *chosen = count ? choose_rows(rows, count, tables->top) : NULL;
    if (!chosen) {
        return;
    }
    bool grouped = many_groups(rows, count);
    struct sw__table table = section_table("Sections");
    size_t hidden = 0;
    const sw_summary_section *last = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!chosen[i]) {
            hidden++;
            continue;
        }
        struct sw__cells *cells;
        if (grouped && (!last || !same_group(last, &rows[i]))) {
            cells = sw__table_row(&table);
            if (!cells) {
                break;
            }
            cells->style = SW__DIM;
            snprintf(cells->label, sizeof cells->label, "thread %.48s%s%.48s",
                     *rows[i].thread ? rows[i].thread : "(unnamed)",
                     *rows[i].domain ? ", domain " : "", rows[i].domain);
        }
        last = &rows[i];
        cells = sw__table_row(&table);
        if (!cells) {
            break;
        }
        fill_row(tables, cells, &rows[i]);
        cells->indent = 2 * ((size_t)rows[i].depth + (grouped ? 1 : 0));
    }
    blank(tables);
    sw__table_print(&table, tables->page);
    put_more(tables, hidden, hidden == 1 ? "section" : "sections");
    sw__table_free(&table);
    sw__free(chosen);
}

static void put_flat(const struct tables *tables)
{
    size_t count;
    size_t tree_count;
    const sw_summary_section *rows =
        sw_summary_sections(tables->summary, SW_ROWS_FLAT, &count);
    const sw_summary_section *tree =
        sw_summary_sections(tables->summary, SW_ROWS_FAMILIES, &tree_count);
    bool nested = many_groups(tree, tree_count);
    for (size_t i = 0; i < tree_count && !nested; i++) {
        nested = tree[i].parent != SW_NO_ROW;
    }
    if (!nested) {
        return; /* it would be the same table again */
    }
    struct sw__table table = section_table("By self time");
    table.column[SELF].keep = 110;
    size_t shown = tables->top > 10 && tables->top != SW_TEXT_ALL ? 10 : tables->top;
    for (size_t i = 0; i < count && i < shown; i++) {
        struct sw__cells *cells = sw__table_row(&table);
        if (cells) {
            fill_row(tables, cells, &rows[i]);
        }
    }
    blank(tables);
    sw__table_print(&table, tables->page);
    put_more(tables, count > shown ? count - shown : 0,
             count - shown == 1 ? "name" : "names");
    sw__table_free(&table);
}

static void put_counters(const struct tables *tables)
{
    size_t count = sw_summary_counter_count(tables->summary);
    if (count == 0) {
        return;
    }
    struct sw__table table = {
        .title = "Counters",
        .column_count = 5,
        .column = {
            {"values", 50}, {"mean", 100}, {"min", 80}, {"max", 70}, {"last", 90}}};
    for (size_t i = 0; i < count && i < tables->top; i++) {
        const sw_summary_counter *counter = sw_summary_get_counter(tables->summary, i);
        struct sw__cells *cells = sw__table_row(&table);
        if (!cells) {
            break;
        }
        char number[32];
        cells->name = counter->name;
        cells->name_length = counter->name_length;
        sw_text_count(number, counter->count);
        snprintf(cells->cell[0], SW__CELL, "%s", number);
        const double values[] = {counter->mean, counter->min, counter->max,
                                 counter->last};
        for (size_t c = 0; c < 4; c++) {
            sw__text_number(cells->cell[c + 1], SW__CELL, values[c]);
        }
    }
    blank(tables);
    sw__table_print(&table, tables->page);
    put_more(tables, count > tables->top ? count - tables->top : 0, "counters");
    sw__table_free(&table);
}

void sw__report_sections(const struct sw__page *page, const sw_summary *summary,
                         size_t top)
{
    put_tree(&(struct tables){page, summary, top});
}

void sw__report_section_tables(const struct sw__page *page, const sw_summary *summary,
                               size_t top)
{
    const struct tables tables = {page, summary, top};
    put_tree(&tables);
    put_flat(&tables);
}

void sw__report_counters(const struct sw__page *page, const sw_summary *summary,
                         size_t top)
{
    put_counters(&(struct tables){page, summary, top});
}
