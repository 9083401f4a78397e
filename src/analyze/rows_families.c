/* Folding families of siblings: epoch_1, epoch_2 … epoch_100 become "epoch_*", and what is below them is
 * merged by name in turn. Folded rows are made parents first; each stands for a stretch of `members`,
 * rows of the merged tree, and every row is a member of exactly one. */
#include <stdlib.h>
#include <string.h>

#include "analyze/quantiles.h"
#include "analyze/rows.h"

struct sibling {
    uint32_t group, family, name, row;
};

struct folding {
    struct sw__merge *merge;
    struct sw__row_tree tree; /* the folded one */
    uint32_t *members;        /* rows of the merged tree */
    uint32_t *begin, *end;    /* by folded row: its stretch of members */
    size_t member_count;
    uint32_t *first_child,
        *next_sibling; /* of the merged tree; first_child[count]: the top */
    struct sibling *siblings;
    struct sw__families families;
};

static int by_family(const void *left, const void *right)
{
    const struct sibling *a = left;
    const struct sibling *b = right;
    if (a->group != b->group) {
        return a->group < b->group ? -1 : 1;
    }
    if (a->family != b->family) {
        return a->family < b->family ? -1 : 1;
    }
    if (a->name != b->name) {
        return a->name < b->name ? -1 : 1;
    }
    return (a->row > b->row) - (a->row < b->row);
}

int sw__family_of(struct sw__families *families, const sw_summary_section *row,
                  uint32_t *id)
{
    size_t needed = (size_t)row->name_length + 1;
    *id = 0;
    if (needed > families->room) {
        char *grown = sw__realloc(families->scratch, needed, 2);
        if (!grown) {
            return SW_ENOMEM;
        }
        families->scratch = grown;
        families->room = needed * 2;
    }
    char *name = families->scratch + 1;
    families->scratch[0] = (char)row->phase;
    size_t length = sw__name_family(row->name, row->name_length, name);
    if (length == 0 && row->family) { /* the recorder has folded it already */
        memcpy(name, row->name, row->name_length);
        length = row->name_length;
    }
    if (length > 0) {
        int fresh;
        *id = sw__intern_put(families->table, families->scratch, length + 1, &fresh);
        return *id ? SW_OK : SW_ENOMEM;
    }
    return SW_OK;
}

int sw__family_name(struct sw__families *families, sw_summary *summary, uint32_t id,
                    uint32_t names, sw_summary_section *row)
{
    size_t length;
    const char *text = sw__intern_text(families->table, id, &length);
    row->name = sw__summary_copy(summary, text + 1, length - 1);
    row->name_length = (uint32_t)(length - 1);
    row->names = names;
    row->family = true;
    return row->name ? SW_OK : SW_ENOMEM;
}

void sw__families_free(struct sw__families *families)
{
    sw__intern_free(families->table);
    sw__free(families->scratch);
}

/* Makes one folded row of siblings[0…count), which lie below the folded row `parent`. */
static int fold_siblings(struct folding *fold, const struct sibling *siblings,
                         size_t count, uint32_t names, uint32_t parent)
{
    uint32_t folded = sw__rows_append(&fold->tree);
    if (folded == SW_NO_ROW) {
        return SW_ENOMEM;
    }
    const struct sw__row *first = &fold->merge->tree.rows[siblings[0].row];
    struct sw__row *row = &fold->tree.rows[folded];
    row->group = first->group;
    row->s = first->s;
    row->s.parent = parent;
    fold->begin[folded] = (uint32_t)fold->member_count;
    for (size_t i = 0; i < count; i++) {
        fold->members[fold->member_count++] = siblings[i].row;
        if (i > 0) {
            sw__section_add(&row->s, &fold->merge->tree.rows[siblings[i].row].s);
        }
    }
    fold->end[folded] = (uint32_t)fold->member_count;
    return names > 1 ? sw__family_name(&fold->families, fold->merge->summary,
                                       siblings[0].family, names, &row->s)
                     : SW_OK;
}

/* Makes folded rows of all siblings below `parent`. */
static int fold_children(struct folding *fold, size_t count, uint32_t parent)
{
    struct sibling *s = fold->siblings;
    qsort(s, count, sizeof *s, by_family);
    int error = SW_OK;
    for (size_t i = 0, next; i < count && !error; i = next) {
        uint32_t names = 1;
        for (next = i + 1;
             next < count && s[next].group == s[i].group && s[next].family == s[i].family;
             next++) {
            names += s[next].name != s[next - 1].name;
        }
        if (s[i].family != 0 && names >= SW__FAMILY_LEAST) {
            error = fold_siblings(fold, s + i, next - i, names, parent);
            continue;
        }
        for (size_t k = i, after; k < next && !error; k = after) {
            for (after = k + 1; after < next && s[after].name == s[k].name;) {
                after++;
            }
            error = fold_siblings(fold, s + k, after - k, 1, parent);
        }
    }
    return error;
}

static int add_sibling(struct folding *fold, size_t *count, uint32_t row)
{
    const struct sw__row *from = &fold->merge->tree.rows[row];
    uint32_t family;
    int error = sw__family_of(&fold->families, &from->s, &family);
    fold->siblings[(*count)++] = (struct sibling){from->group, family, from->name, row};
    return error;
}

static int fold_all(struct folding *fold)
{
    size_t rows = fold->merge->tree.count;
    for (size_t i = 0; i <= rows; i++) {
        fold->first_child[i] = SW_NO_ROW;
    }
    for (size_t i = rows; i-- > 0;) {
        uint32_t parent = fold->merge->tree.rows[i].s.parent;
        uint32_t *head = &fold->first_child[parent == SW_NO_ROW ? rows : parent];
        fold->next_sibling[i] = *head;
        *head = (uint32_t)i;
    }
    size_t count = 0;
    int error = SW_OK;
    for (uint32_t c = fold->first_child[rows]; c != SW_NO_ROW && !error;
         c = fold->next_sibling[c]) {
        error = add_sibling(fold, &count, c);
    }
    if (!error) {
        error = fold_children(fold, count, SW_NO_ROW);
    }
    for (uint32_t folded = 0; folded < fold->tree.count && !error; folded++) {
        count = 0;
        for (uint32_t m = fold->begin[folded]; m < fold->end[folded] && !error; m++) {
            for (uint32_t c = fold->first_child[fold->members[m]];
                 c != SW_NO_ROW && !error; c = fold->next_sibling[c]) {
                error = add_sibling(fold, &count, c);
            }
        }
        if (!error) {
            error = fold_children(fold, count, folded);
        }
    }
    return error;
}

static int folded_quantiles(struct folding *fold)
{
    struct sw__quantiles scratch = {0};
    int error = SW_OK;
    for (size_t i = 0; i < fold->tree.count && !error; i++) {
        size_t members = fold->end[i] - fold->begin[i];
        if (members > 1) {
            error = sw__rows_quantiles(fold->merge, fold->members + fold->begin[i],
                                       members, &scratch, &fold->tree.rows[i].s);
        }
    }
    sw__quantiles_free(&scratch);
    return error;
}

int sw__rows_families(struct sw__merge *merge)
{
    size_t rows = merge->tree.count;
    struct folding fold = {.merge = merge};
    fold.members = sw__alloc_zero(rows + 1, sizeof *fold.members);
    fold.begin = sw__alloc_zero(rows + 1, sizeof *fold.begin);
    fold.end = sw__alloc_zero(rows + 1, sizeof *fold.end);
    fold.first_child = sw__alloc_zero(rows + 1, sizeof *fold.first_child);
    fold.next_sibling = sw__alloc_zero(rows + 1, sizeof *fold.next_sibling);
    fold.siblings = sw__alloc_zero(rows + 1, sizeof *fold.siblings);
    fold.families.table = sw__intern_create(UINT32_MAX - 1);
    int error = SW_ENOMEM;
    if (fold.members && fold.begin && fold.end && fold.first_child && fold.next_sibling &&
        fold.siblings && fold.families.table) {
        error = fold_all(&fold);
    }
    if (!error && fold.tree.count == rows) {
        merge->summary->families = merge->summary->each; /* nothing was folded */
    } else if (!error) {
        error = folded_quantiles(&fold);
        if (!error) {
            error = sw__rows_finish(merge->summary, &fold.tree, &merge->summary->families,
                                    NULL);
        }
    }
    sw__free(fold.members);
    sw__free(fold.begin);
    sw__free(fold.end);
    sw__free(fold.first_child);
    sw__free(fold.next_sibling);
    sw__free(fold.siblings);
    sw__free(fold.tree.rows);
    sw__families_free(&fold.families);
    return error;
}
