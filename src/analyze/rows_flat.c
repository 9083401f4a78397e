/* Rows by name. A section that calls itself, directly or through others, contains its own time again:
 * only the outermost occurrence on each path adds to the total. */
#include <stdlib.h>
#include <string.h>

#include "analyze/quantiles.h"
#include "analyze/rows.h"

struct named {
    uint32_t domain, family, name, row;
};

static int by_name(const void *left, const void *right)
{
    const struct named *a = left;
    const struct named *b = right;
    if (a->domain != b->domain) {
        return a->domain < b->domain ? -1 : 1;
    }
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    if (a->name != b->name) {
        return a->name < b->name ? -1 : 1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

static int by_self(const void *left, const void *right)
{
    const sw_summary_section *a = left;
    const sw_summary_section *b = right;
    if (a->self_ns != b->self_ns) {
        return a->self_ns < b->self_ns ? 1 : -1;
    }
    if (a->total_ns != b->total_ns) {
        return a->total_ns < b->total_ns ? 1 : -1;
    }
    uint32_t shorter = a->name_length < b->name_length ? a->name_length : b->name_length;
    int order = shorter ? memcmp(a->name, b->name, shorter) : 0;
    if (order == 0) {
        order = (a->name_length > b->name_length) - (a->name_length < b->name_length);
    }
    if (order == 0) {
        order = (a->phase > b->phase) - (a->phase < b->phase);
    }
    return order ? order : strcmp(a->domain, b->domain);
}

/* Rows of equal domain, family and name next to each other. */
static int sort_names(const struct sw__merge *merge, struct sw__families *families,
                      struct named *named)
{
    sw__intern *domains = sw__intern_create(UINT32_MAX - 1);
    int error = domains ? SW_OK : SW_ENOMEM;
    for (uint32_t i = 0; i < merge->tree.count && !error; i++) {
        const struct sw__row *row = &merge->tree.rows[i];
        int fresh;
        uint32_t family;
        uint32_t domain =
            sw__intern_put(domains, row->s.domain, strlen(row->s.domain), &fresh);
        error = sw__family_of(families, &row->s, &family);
        named[i] = (struct named){domain, family, row->name, i};
        error = domain ? error : SW_ENOMEM;
    }
    sw__intern_free(domains);
    if (!error && merge->tree.count > 1) {
        qsort(named, merge->tree.count, sizeof *named, by_name);
    }
    return error;
}

/* Where the flat row ends that begins at `begin`, and how many names it has: a whole family, or one name. */
static size_t stretch(const struct named *named, size_t count, size_t begin,
                      uint32_t *names)
{
    const struct named *first = &named[begin];
    size_t one_name = begin + 1;
    while (one_name < count && named[one_name].domain == first->domain &&
           named[one_name].family == first->family &&
           named[one_name].name == first->name) {
        one_name++;
    }
    *names = 1;
    bool whole =
        first->family != 0 && (begin == 0 || named[begin - 1].domain != first->domain ||
                               named[begin - 1].family != first->family);
    if (!whole) {
        return one_name; /* no family, or one that has been found too small */
    }
    size_t end = one_name;
    for (; end < count && named[end].domain == first->domain &&
           named[end].family == first->family;
         end++) {
        *names += named[end].name != named[end - 1].name;
    }
    if (*names >= SW__FAMILY_LEAST) {
        return end;
    }
    *names = 1;
    return one_name;
}

/* Marks the rows that lie below another of the same flat row, on a walk in the order of the tree. */
static int mark_recursive(const struct sw__merge *merge, const uint32_t *flat_of,
                          bool *inner)
{
    const struct sw__row_list *each = &merge->summary->each;
    const uint32_t *order = merge->order;
    size_t count = merge->tree.count;
    uint32_t *active = sw__alloc_zero(count + 1, sizeof *active);
    uint32_t *path = sw__alloc_zero(count + 1, sizeof *path);
    if (!active || !path) {
        sw__free(active);
        sw__free(path);
        return SW_ENOMEM;
    }
    size_t depth = 0;
    for (size_t i = 0; i < each->count; i++) {
        while (depth > each->rows[i].depth) {
            active[path[--depth]]--;
        }
        uint32_t flat = flat_of[order[i]];
        inner[order[i]] = active[flat] > 0;
        active[flat]++;
        path[depth++] = flat;
    }
    sw__free(active);
    sw__free(path);
    return SW_OK;
}

/* One flat row of named[0…count). */
static int fill_row(struct sw__merge *merge, const struct named *named, size_t count,
                    const bool *inner, struct sw__quantiles *scratch, uint32_t *rows,
                    sw_summary_section *out)
{
    *out = merge->tree.rows[named[0].row].s;
    out->parent = SW_NO_ROW;
    out->depth = 0;
    out->calls = 0; /* all of the numbers come from adding */
    out->errors = out->unnested = out->total_ns = out->self_ns = out->open =
        out->open_ns = 0;
    for (size_t i = 0; i < count; i++) {
        sw_summary_section from = merge->tree.rows[named[i].row].s;
        rows[i] = named[i].row;
        if (inner[named[i].row]) {
            from.total_ns = 0;
            from.open_ns = 0;
        }
        sw__section_add(out, &from);
        if (out->thread && strcmp(out->thread, from.thread) != 0) {
            out->thread = NULL;
        }
    }
    return count > 1 ? sw__rows_quantiles(merge, rows, count, scratch, out) : SW_OK;
}

/* Which flat row each row belongs to; the number of flat rows. */
static uint32_t number_rows(const struct sw__merge *merge, const struct named *named,
                            uint32_t *flat_of)
{
    uint32_t flat_count = 0;
    uint32_t names;
    for (size_t i = 0, end; i < merge->tree.count; i = end) {
        end = stretch(named, merge->tree.count, i, &names);
        for (size_t k = i; k < end; k++) {
            flat_of[named[k].row] = flat_count;
        }
        flat_count++;
    }
    return flat_count;
}

static int fill_flat(struct sw__merge *merge, const struct named *named,
                     const bool *inner, struct sw__families *families)
{
    struct sw__quantiles scratch = {0};
    struct sw__row_list *list = &merge->summary->flat;
    size_t count = merge->tree.count;
    uint32_t *rows = sw__alloc_zero(count + 1, sizeof *rows);
    int error = rows ? SW_OK : SW_ENOMEM;
    for (size_t i = 0, end; i < count && !error; i = end) {
        uint32_t names;
        end = stretch(named, count, i, &names);
        sw_summary_section *out = &list->rows[list->count++];
        error = fill_row(merge, named + i, end - i, inner, &scratch, rows, out);
        if (!error && names > 1) {
            error =
                sw__family_name(families, merge->summary, named[i].family, names, out);
        }
    }
    sw__free(rows);
    sw__quantiles_free(&scratch);
    return error;
}

int sw__rows_flat(struct sw__merge *merge)
{
    sw_summary *summary = merge->summary;
    size_t count = merge->tree.count;
    struct sw__families families = {.table = sw__intern_create(UINT32_MAX - 1)};
    struct named *named = sw__alloc_zero(count + 1, sizeof *named);
    uint32_t *flat_of = sw__alloc_zero(count + 1, sizeof *flat_of);
    bool *inner = sw__alloc_zero(count + 1, sizeof *inner);
    int error = families.table && named && flat_of && inner
                    ? sort_names(merge, &families, named)
                    : SW_ENOMEM;
    uint32_t flat_count = error ? 0 : number_rows(merge, named, flat_of);
    if (!error) {
        error = mark_recursive(merge, flat_of, inner);
    }
    if (!error) {
        summary->flat.rows =
            sw__summary_take(summary, flat_count, sizeof(sw_summary_section));
        error =
            summary->flat.rows ? fill_flat(merge, named, inner, &families) : SW_ENOMEM;
    }
    if (!error && summary->flat.count > 1) {
        qsort(summary->flat.rows, summary->flat.count, sizeof *summary->flat.rows,
              by_self);
    }
    sw__free(named);
    sw__free(flat_of);
    sw__free(inner);
    sw__families_free(&families);
    return error;
}
