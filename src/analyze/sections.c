/* Sections and counters of all threads and processes, merged. */
#include <math.h>
#include <string.h>

#include "analyze/quantiles.h"
#include "analyze/rows.h"

/* --- identity of names and groups --- */

static uint32_t name_id(struct sw__merge *merge, const sw_trace_name *name,
                        char **scratch, size_t *room)
{
    size_t length = (size_t)name->length + 1;
    if (length > *room) {
        char *grown = sw__realloc(*scratch, length, 2);
        if (!grown) {
            return 0;
        }
        *scratch = grown;
        *room = length * 2;
    }
    (*scratch)[0] = (char)name->phase;
    memcpy(*scratch + 1, name->text, name->length);
    int fresh;
    return sw__intern_put(merge->names, *scratch, length, &fresh);
}

static uint32_t group_id(struct sw__merge *merge, const char *thread, const char *domain)
{
    char key[512];
    size_t thread_length = strnlen(thread, 200);
    size_t domain_length = strnlen(domain, 300);
    memcpy(key, thread, thread_length);
    key[thread_length] = '\0';
    memcpy(key + thread_length + 1, domain, domain_length);
    int fresh = 0;
    uint32_t id =
        sw__intern_put(merge->groups, key, thread_length + 1 + domain_length, &fresh);
    if (id == 0 || !fresh) {
        return id;
    }
    if (id > merge->group_room) {
        size_t room = merge->group_room ? merge->group_room * 2 : 64;
        const char **threads = sw__realloc(merge->group_thread, room, sizeof *threads);
        merge->group_thread = threads ? threads : merge->group_thread;
        const char **domains = sw__realloc(merge->group_domain, room, sizeof *domains);
        merge->group_domain = domains ? domains : merge->group_domain;
        if (!threads || !domains) {
            return 0;
        }
        merge->group_room = room;
    }
    merge->group_thread[id - 1] = thread;
    merge->group_domain[id - 1] = domain;
    return id;
}

/* --- rows by parent and name: open addressing, at most half full --- */

static size_t slot_of(const struct sw__merge *merge, uint64_t key)
{
    uint64_t x = (key + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 29)) * 0x94d049bb133111ebu;
    size_t i = (size_t)(x ^ (x >> 32)) & merge->slot_mask;
    while (merge->slot_rows[i] && merge->slots[i] != key) {
        i = (i + 1) & merge->slot_mask;
    }
    return i;
}

static int grow_slots(struct sw__merge *merge)
{
    size_t size = merge->slots ? (merge->slot_mask + 1) * 2 : 1024;
    struct sw__merge old = *merge;
    merge->slots = sw__alloc_zero(size, sizeof *merge->slots);
    merge->slot_rows = sw__alloc_zero(size, sizeof *merge->slot_rows);
    if (!merge->slots || !merge->slot_rows) {
        sw__free(merge->slots);
        sw__free(merge->slot_rows);
        merge->slots = old.slots;
        merge->slot_rows = old.slot_rows;
        return SW_ENOMEM;
    }
    merge->slot_mask = size - 1;
    for (size_t i = 0; old.slots && i <= old.slot_mask; i++) {
        if (old.slot_rows[i]) {
            size_t to = slot_of(merge, old.slots[i]);
            merge->slots[to] = old.slots[i];
            merge->slot_rows[to] = old.slot_rows[i];
        }
    }
    sw__free(old.slots);
    sw__free(old.slot_rows);
    return SW_OK;
}

/* The row of a name below `parent` (SW_NO_ROW: at the top of the group), made if need be. */
static uint32_t find_row(struct sw__merge *merge, uint32_t parent, uint32_t group,
                         uint32_t name, const sw_trace_name *text)
{
    if ((!merge->slots || merge->slot_used >= (merge->slot_mask + 1) / 2) &&
        grow_slots(merge)) {
        return SW_NO_ROW;
    }
    /* Rows number fewer than 2^31, so a group with the top bit set cannot be one. */
    uint64_t upper = parent == SW_NO_ROW ? 0x80000000u | group : parent;
    size_t slot = slot_of(merge, upper << 32 | name);
    if (merge->slot_rows[slot]) {
        return merge->slot_rows[slot] - 1;
    }
    uint32_t row = sw__rows_append(&merge->tree);
    if (row == SW_NO_ROW) {
        return row;
    }
    merge->slots[slot] = upper << 32 | name;
    merge->slot_rows[slot] = row + 1;
    merge->slot_used++;
    struct sw__row *fresh = &merge->tree.rows[row];
    fresh->group = group;
    fresh->name = name;
    fresh->s.parent = parent;
    fresh->s.name = text->text;
    fresh->s.name_length = text->length;
    fresh->s.phase = text->phase;
    fresh->s.thread = merge->group_thread[group - 1];
    fresh->s.domain = merge->group_domain[group - 1];
    return row;
}

static int add_source(struct sw__merge *merge, uint32_t row, struct sw__source source)
{
    if (row >= merge->tree.count || !merge->tree.rows) {
        return SW_EINVAL;
    }
    if (merge->source_count == merge->source_room) {
        size_t room = merge->source_room ? merge->source_room * 2 : 256;
        struct sw__source *grown =
            room < SW_NO_ROW ? sw__realloc(merge->sources, room, sizeof *grown) : NULL;
        if (!grown) {
            return SW_ENOMEM;
        }
        merge->sources = grown;
        merge->source_room = room;
    }
    uint32_t index = (uint32_t)merge->source_count++;
    merge->sources[index] = source;
    struct sw__row *to = &merge->tree.rows[row];
    if (to->last_source == SW_NO_ROW) {
        to->first_source = index;
    } else {
        merge->sources[to->last_source].next = index;
    }
    to->last_source = index;
    return SW_OK;
}

/* --- counters --- */

struct counter_table {
    sw__intern *keys;
    sw_summary_counter *counters; /* by id - 1 */
    double *sums;
    size_t room;
};

static int add_counter(struct counter_table *table, const char *domain,
                       const sw_trace_name *name, const sw_trace_node *node)
{
    char key[1024];
    size_t domain_length = strnlen(domain, 300);
    size_t name_length = name->length < 700 ? name->length : 700;
    memcpy(key, domain, domain_length);
    key[domain_length] = '\0';
    memcpy(key + domain_length + 1, name->text, name_length);
    int fresh = 0;
    uint32_t id =
        sw__intern_put(table->keys, key, domain_length + 1 + name_length, &fresh);
    if (id == 0) {
        return SW_ENOMEM;
    }
    if (id > table->room) {
        size_t room = table->room ? table->room * 2 : 32;
        sw_summary_counter *grown =
            sw__realloc(table->counters, room, sizeof *table->counters);
        table->counters = grown ? grown : table->counters;
        double *sums = sw__realloc(table->sums, room, sizeof *sums);
        table->sums = sums ? sums : table->sums;
        if (!grown || !sums) {
            return SW_ENOMEM;
        }
        table->room = room;
    }
    sw_summary_counter *counter = &table->counters[id - 1];
    if (fresh) {
        *counter = (sw_summary_counter){.name = name->text,
                                        .name_length = name->length,
                                        .domain = domain,
                                        .count = node->calls,
                                        .min = node->min,
                                        .max = node->max,
                                        .last = node->last};
        table->sums[id - 1] = node->sum;
        return SW_OK;
    }
    counter->count = sw__add(counter->count, node->calls);
    counter->min = fmin(counter->min, node->min);
    counter->max = fmax(counter->max, node->max);
    if (!(counter->last == node->last)) {
        counter->last = NAN;
    }
    table->sums[id - 1] += node->sum;
    return SW_OK;
}

static int finish_counters(sw_summary *summary, struct counter_table *table)
{
    size_t count = sw__intern_count(table->keys);
    summary->counters = sw__summary_take(summary, count, sizeof *summary->counters);
    if (!summary->counters || (count > 0 && !(table->counters && table->sums))) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        summary->counters[i] = table->counters[i];
        summary->counters[i].mean = table->sums[i] / (double)table->counters[i].count;
    }
    summary->counter_count = count;
    return SW_OK;
}

/* --- one lane --- */

static const sw_trace_name unknown_name = {
    .text = "(unknown)", .length = 9, .use = 1, .phase = SW_PHASE_INHERIT};

/* Nodes that were called, are open, or have such nodes below them. The recorder makes some in advance. */
static void find_used(const sw_trace_lane *lane, bool *used)
{
    for (size_t i = lane->node_count; i-- > 1;) {
        const sw_trace_node *node = &lane->nodes[i];
        used[i] = used[i] || (node->kind == 0 && (node->calls > 0 || node->open > 0 ||
                                                  node->inclusive_ns > 0));
        if (used[i] && node->parent < i) {
            used[node->parent] = true;
        }
    }
}

static int merge_lane(struct sw__merge *merge, struct counter_table *counters,
                      size_t trace_index, size_t lane_index, char **scratch, size_t *room)
{
    const sw_trace *trace = sw__summary_trace(merge->summary, trace_index);
    const sw_trace_lane *lane = sw_trace_get_lane(trace, lane_index);
    uint64_t end_ns = sw_trace_get_info(trace)->end_ns;
    const char *domain = sw__domain_name(trace, lane->domain);
    uint32_t group = group_id(merge, sw__thread_name(trace, lane->thread), domain);
    uint32_t *row_of = sw__alloc_zero(lane->node_count + 1, sizeof *row_of);
    bool *used = sw__alloc_zero(lane->node_count + 1, sizeof *used);
    int error = group && row_of && used ? SW_OK : SW_ENOMEM;
    if (!error) {
        row_of[0] = SW_NO_ROW;
        find_used(lane, used);
    }
    for (size_t i = 1; i < lane->node_count && !error; i++) {
        const sw_trace_node *node = &lane->nodes[i];
        const sw_trace_name *name = sw_trace_get_name(trace, node->section);
        uint32_t parent = row_of[node->parent < i ? node->parent : 0];
        name = name ? name : &unknown_name;
        if (node->kind == 1 || !used[i]) {
            row_of[i] = parent;
            error = node->kind == 1 && node->calls
                        ? add_counter(counters, domain, name, node)
                        : SW_OK;
            continue;
        }
        uint32_t id = name_id(merge, name, scratch, room);
        uint32_t row = id ? find_row(merge, parent, group, id, name) : SW_NO_ROW;
        row_of[i] = row;
        if (row == SW_NO_ROW) {
            error = SW_ENOMEM;
            break;
        }
        sw_summary_section from = {.calls = node->calls,
                                   .errors = node->errors,
                                   .unnested = node->unnested,
                                   .total_ns = node->inclusive_ns,
                                   .self_ns = node->self_ns,
                                   .min_ns = node->min_ns,
                                   .max_ns = node->max_ns,
                                   .last_ns = node->last_ns,
                                   .open = node->open,
                                   .family = node->family};
        sw__section_add(&merge->tree.rows[row].s, &from);
        error =
            add_source(merge, row,
                       (struct sw__source){(uint32_t)trace_index, (uint32_t)lane_index,
                                           (uint32_t)i, SW_NO_ROW});
    }
    for (size_t i = 0; i < lane->open_count && !error; i++) {
        const sw_trace_open_span *open = &lane->open[i];
        if (open->node > 0 && open->node < lane->node_count &&
            row_of[open->node] != SW_NO_ROW) {
            sw_summary_section *s = &merge->tree.rows[row_of[open->node]].s;
            s->open_ns = sw__add(s->open_ns, sw__sub(end_ns, open->start_ns));
        }
    }
    sw__free(row_of);
    sw__free(used);
    return error;
}

static int merge_all(struct sw__merge *merge, struct counter_table *counters)
{
    char *scratch = NULL;
    size_t room = 0;
    int error = SW_OK;
    for (size_t t = 0; t < merge->summary->traces && !error; t++) {
        size_t lanes = sw_trace_lane_count(sw__summary_trace(merge->summary, t));
        for (size_t l = 0; l < lanes && !error; l++) {
            error = merge_lane(merge, counters, t, l, &scratch, &room);
        }
    }
    sw__free(scratch);
    return error;
}

static int all_quantiles(struct sw__merge *merge)
{
    struct sw__quantiles scratch = {0};
    int error = SW_OK;
    for (uint32_t i = 0; i < merge->tree.count && !error; i++) {
        error = sw__rows_quantiles(merge, &i, 1, &scratch, &merge->tree.rows[i].s);
    }
    sw__quantiles_free(&scratch);
    return error;
}

int sw__summary_sections(sw_summary *summary)
{
    struct sw__merge merge = {.summary = summary};
    struct counter_table counters = {0};
    merge.names = sw__intern_create(UINT32_MAX - 1);
    merge.groups = sw__intern_create(UINT32_MAX / 4);
    counters.keys = sw__intern_create(UINT32_MAX - 1);
    int error = SW_ENOMEM;
    if (merge.names && merge.groups && counters.keys) {
        error = merge_all(&merge, &counters);
    }
    if (!error) {
        error = finish_counters(summary, &counters);
    }
    if (!error) {
        error = all_quantiles(&merge);
    }
    if (!error) {
        error = sw__rows_finish(summary, &merge.tree, &summary->each, &merge.order);
    }
    if (!error) {
        error = sw__rows_families(&merge);
    }
    if (!error) {
        error = sw__rows_flat(&merge);
    }
    sw__intern_free(merge.names);
    sw__intern_free(merge.groups);
    sw__intern_free(counters.keys);
    sw__free(counters.counters);
    sw__free(counters.sums);
    sw__free(merge.tree.rows);
    sw__free(merge.sources);
    sw__free(merge.group_thread);
    sw__free(merge.group_domain);
    sw__free(merge.slots);
    sw__free(merge.slot_rows);
    return error;
}
