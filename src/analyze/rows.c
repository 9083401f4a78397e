/* Merging call trees. Nodes of all lanes are visited parents first, and each is added to the row with
 * the same parent row, name and phase. All passes are loops over indexes: the depth of a tree comes
 * from a file and must not become depth of recursion. */
#include <stdlib.h>
#include <string.h>

#include "analyze/quantiles.h"
#include "analyze/rows.h"

uint32_t sw__rows_append(struct sw__row_tree *tree)
{
    if (tree->count == tree->room) {
        size_t room = tree->room ? tree->room * 2 : 128;
        struct sw__row *rows =
            room < SW_NO_ROW / 2 ? sw__realloc(tree->rows, room, sizeof *rows) : NULL;
        if (!rows) {
            return SW_NO_ROW;
        }
        tree->rows = rows;
        tree->room = room;
    }
    struct sw__row *row = &tree->rows[tree->count];
    memset(row, 0, sizeof *row);
    row->s.parent = SW_NO_ROW;
    row->s.names = 1;
    row->s.min_ns = row->s.max_ns = row->s.last_ns = SW_UNKNOWN;
    row->s.p50_ns = row->s.p90_ns = row->s.p99_ns = SW_UNKNOWN;
    row->first_source = row->last_source = SW_NO_ROW;
    return (uint32_t)tree->count++;
}

void sw__section_add(sw_summary_section *into, const sw_summary_section *from)
{
    if (from->calls > 0) {
        bool first = into->calls == 0;
        into->min_ns = first || from->min_ns < into->min_ns ? from->min_ns : into->min_ns;
        into->max_ns = first || from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
        into->last_ns =
            first || from->last_ns == into->last_ns ? from->last_ns : SW_UNKNOWN;
    }
    into->calls = sw__add(into->calls, from->calls);
    into->errors = sw__add(into->errors, from->errors);
    into->unnested = sw__add(into->unnested, from->unnested);
    into->total_ns = sw__add(into->total_ns, from->total_ns);
    into->self_ns = sw__add(into->self_ns, from->self_ns);
    into->open = sw__add(into->open, from->open);
    into->open_ns = sw__add(into->open_ns, from->open_ns);
    into->family |= from->family;
}

/* --- order --- */

struct sort_key {
    uint64_t weight;
    const char *name;
    uint32_t length, row;
};

static int by_weight(const void *left, const void *right)
{
    const struct sort_key *a = left;
    const struct sort_key *b = right;
    if (a->weight != b->weight) {
        return a->weight < b->weight ? 1 : -1;
    }
    uint32_t shorter = a->length < b->length ? a->length : b->length;
    int order = shorter ? memcmp(a->name, b->name, shorter) : 0;
    if (order == 0) {
        order = (a->length > b->length) - (a->length < b->length);
    }
    return order ? order : (a->row > b->row) - (a->row < b->row);
}

/* Children of every row, sorted: those of row r are child[first[r] … first[r + 1]); the top is the row
 * `count`, whose children are sorted by the weight of their group first. */
struct children {
    uint32_t *first; /* count + 2 */
    struct sort_key *child;
};

static uint32_t parent_slot(const struct sw__row_tree *tree, size_t row)
{
    uint32_t parent = tree->rows[row].s.parent;
    return parent == SW_NO_ROW ? (uint32_t)tree->count : parent;
}

/* Top rows of one group (thread and domain) stay together, heaviest group first. */
static int sort_top(const struct sw__row_tree *tree, struct sort_key *top, size_t count)
{
    uint32_t groups = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t group = tree->rows[top[i].row].group;
        groups = group >= groups ? group + 1 : groups;
    }
    struct sort_key *weights = sw__alloc_zero((size_t)groups + 1, sizeof *weights);
    struct sort_key *sorted = sw__alloc_zero(count + 1, sizeof *sorted);
    uint32_t *begin = sw__alloc_zero((size_t)groups + 1, sizeof *begin);
    int error = weights && sorted && begin ? SW_OK : SW_ENOMEM;
    for (uint32_t i = 0; !error && i < groups; i++) {
        weights[i].row = i;
        weights[i].name = "";
    }
    for (size_t i = 0; !error && i < count; i++) {
        struct sort_key *weight = &weights[tree->rows[top[i].row].group];
        weight->weight = sw__add(weight->weight, top[i].weight);
        weight->length++; /* until sorting: how many rows */
    }
    if (!error) {
        uint32_t *lengths = begin;
        for (uint32_t i = 0; i < groups; i++) {
            lengths[i] = weights[i].length;
            weights[i].length = 0;
        }
        qsort(weights, groups, sizeof *weights, by_weight);
        uint32_t at = 0;
        for (uint32_t i = 0; i < groups; i++) {
            uint32_t length = lengths[weights[i].row];
            begin[weights[i].row] = at;
            at += length;
        }
        for (size_t i = 0; i < count;
             i++) { /* `top` is sorted by weight: stable within a group */
            sorted[begin[tree->rows[top[i].row].group]++] = top[i];
        }
        memcpy(top, sorted, count * sizeof *top);
    }
    sw__free(weights);
    sw__free(sorted);
    sw__free(begin);
    return error;
}

static int list_children(const struct sw__row_tree *tree, struct children *out)
{
    size_t count = tree->count;
    out->first = sw__alloc_zero(count + 3, sizeof *out->first);
    out->child = sw__alloc_zero(count + 1, sizeof *out->child);
    if (!out->first || !out->child) {
        return SW_ENOMEM;
    }
    uint32_t *at = out->first + 1; /* shifted by one: filling moves each to its end */
    for (size_t i = 0; i < count; i++) {
        at[parent_slot(tree, i) + 1]++;
    }
    for (size_t i = 0; i <= count; i++) {
        at[i + 1] += at[i];
    }
    for (size_t i = 0; i < count; i++) {
        const sw_summary_section *s = &tree->rows[i].s;
        out->child[at[parent_slot(tree, i)]++] = (struct sort_key){
            sw__section_weight(s), s->name, s->name_length, (uint32_t)i};
    }
    for (size_t i = 0; i <= count; i++) {
        size_t length = out->first[i + 1] - out->first[i];
        if (length > 1) {
            qsort(out->child + out->first[i], length, sizeof *out->child, by_weight);
        }
    }
    uint32_t top = out->first[count];
    return sort_top(tree, out->child + top, out->first[count + 1] - top);
}

int sw__rows_finish(sw_summary *summary, const struct sw__row_tree *tree,
                    struct sw__row_list *list, uint32_t **order)
{
    size_t count = tree->count;
    struct children children = {0};
    uint32_t *stack = sw__alloc_zero(count + 1, sizeof *stack);
    uint32_t *place = sw__alloc_zero(count + 1, sizeof *place);
    uint32_t *visited = sw__summary_take(summary, count, sizeof *visited);
    list->rows = sw__summary_take(summary, count, sizeof *list->rows);
    int error = stack && place && visited && list->rows ? list_children(tree, &children)
                                                        : SW_ENOMEM;
    size_t depth = 0;
    list->count = 0;
    for (uint32_t i = error ? 0 : children.first[count + 1]; i > 0;) {
        if (--i < children.first[count]) {
            break;
        }
        stack[depth++] = children.child[i].row;
    }
    while (!error && depth > 0) {
        uint32_t row = stack[--depth];
        sw_summary_section *out = &list->rows[list->count];
        *out = tree->rows[row].s;
        visited[list->count] = row;
        place[row] = (uint32_t)list->count++;
        if (out->parent != SW_NO_ROW) {
            out->parent = place[out->parent];
            out->depth = list->rows[out->parent].depth + 1;
        }
        for (uint32_t i = children.first[row + 1]; i > children.first[row]; i--) {
            stack[depth++] = children.child[i - 1].row;
        }
    }
    if (order) {
        *order = visited;
    }
    sw__free(children.first);
    sw__free(children.child);
    sw__free(stack);
    sw__free(place);
    return error;
}

/* --- percentiles --- */

int sw__rows_quantiles(const struct sw__merge *merge, const uint32_t *rows, size_t count,
                       struct sw__quantiles *scratch, sw_summary_section *out)
{
    sw_histogram *histogram = NULL;
    uint32_t current = UINT32_MAX;
    int error = SW_OK;
    sw__quantiles_reset(scratch);
    /* Sources of a row are in the order of the traces. Histograms of one trace count in the same
     * ticks and are added up; those of different traces are only compared in ns. */
    for (size_t r = 0; r < count && !error; r++) {
        uint32_t next = merge->tree.rows[rows[r]].first_source;
        for (; next != SW_NO_ROW && !error; next = merge->sources[next].next) {
            const struct sw__source *source = &merge->sources[next];
            if (source->trace != current) {
                if (histogram) {
                    const sw_trace *trace = sw__summary_trace(merge->summary, current);
                    error = sw__quantiles_add(scratch, histogram,
                                              sw_trace_ns_per_tick(trace));
                    sw_histogram_free(histogram);
                }
                histogram = error ? NULL : sw_histogram_create();
                current = source->trace;
            }
            if (!error) {
                error = histogram ? sw_trace_node_histogram(
                                        sw__summary_trace(merge->summary, current),
                                        source->lane, source->node, histogram)
                                  : SW_ENOMEM;
            }
            if (error && error != SW_ENOMEM) {
                error = SW_OK; /* that one has none */
            }
        }
    }
    if (histogram && !error) {
        const sw_trace *trace = sw__summary_trace(merge->summary, current);
        error = sw__quantiles_add(scratch, histogram, sw_trace_ns_per_tick(trace));
    }
    sw_histogram_free(histogram);
    if (!error && out->calls > 0) {
        sw__quantiles_sort(scratch);
        out->p50_ns = sw__quantiles_at(scratch, 0.50, out->min_ns, out->max_ns);
        out->p90_ns = sw__quantiles_at(scratch, 0.90, out->min_ns, out->max_ns);
        out->p99_ns = sw__quantiles_at(scratch, 0.99, out->min_ns, out->max_ns);
    }
    return error;
}

uint64_t sw_summary_section_self(const sw_summary_section *row)
{
    const bool apart = row->calls > 0 && row->unnested >= row->calls;
    return apart && row->self_ns == 0 ? SW_UNKNOWN : row->self_ns;
}
