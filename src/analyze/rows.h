/* Call trees of many threads and processes as one. */
#ifndef SW_ANALYZE_ROWS_H
#define SW_ANALYZE_ROWS_H

#include "analyze/summary.h"
#include "base/intern.h"

/* Where a row's numbers came from: a node of a lane of a trace. */
struct sw__source {
    uint32_t trace, lane, node;
    uint32_t next; /* in the same row, SW_NO_ROW at the end */
};

/* A row under construction. Parents have smaller indexes than their children. */
struct sw__row {
    sw_summary_section s;
    uint32_t group; /* thread name and domain */
    uint32_t name;  /* id of phase and name: equal for rows that have both in common */
    uint32_t first_source, last_source;
};

struct sw__row_tree {
    struct sw__row *rows;
    size_t count, room;
};

/* The merged tree of all traces, and everything it is made of. */
struct sw__merge {
    sw_summary *summary;
    struct sw__row_tree tree;
    struct sw__source *sources;
    size_t source_count, source_room;
    sw__intern *names;                         /* phase byte, then the name */
    sw__intern *groups;                        /* thread name, NUL, domain name */
    const char **group_thread, **group_domain; /* by id - 1 */
    size_t group_room;
    uint64_t *slots; /* hash of (parent or group, name) to row + 1 */
    uint32_t *slot_rows;
    size_t slot_mask, slot_used;
    uint32_t *order; /* for each row of the summary's `each`: its index in the tree */
};

/* Appends a row with nothing in it; SW_NO_ROW when out of memory. */
uint32_t sw__rows_append(struct sw__row_tree *tree);
/* Adds the numbers of `from` to those of `into`. */
void sw__section_add(sw_summary_section *into, const sw_summary_section *from);
/* Time that a row is ordered by: ended calls and open ones. */
static inline uint64_t sw__section_weight(const sw_summary_section *section)
{
    return sw__add(section->total_ns, section->open_ns);
}
/* Copies the rows into the summary in the order of the tree (see sw_summary_section), parents renumbered.
 * `order` (may be NULL) receives for each row of the list its index in the tree. */
int sw__rows_finish(sw_summary *summary, const struct sw__row_tree *tree,
                    struct sw__row_list *list, uint32_t **order);
/* Families of names: "epoch_17" belongs to "epoch_*". */
#define SW__FAMILY_LEAST 9 /* as many different names are folded */
struct sw__families {
    sw__intern *table; /* phase byte, then the family's name */
    char *scratch;
    size_t room;
};
/* Id of the family that a row's name and phase belong to; 0: none. */
int sw__family_of(struct sw__families *families, const sw_summary_section *row,
                  uint32_t *id);
/* Gives a row the name of a family that stands for so many names. */
int sw__family_name(struct sw__families *families, sw_summary *summary, uint32_t id,
                    uint32_t names, sw_summary_section *row);
void sw__families_free(struct sw__families *families);

/* The rows with families folded, and the rows by name; both after `each` is there. */
int sw__rows_families(struct sw__merge *merge);
int sw__rows_flat(struct sw__merge *merge);
/* Percentiles of one row from all nodes that the rows `rows[0…count)` of the merge came from. */
struct sw__quantiles;
int sw__rows_quantiles(const struct sw__merge *merge, const uint32_t *rows, size_t count,
                       struct sw__quantiles *scratch, sw_summary_section *out);

#endif
