/* Sampled allocations: the lines that they come from, how these grew, and their stacks. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/growth.h"
#include "analyze/hot_code.h"
#include "analyze/memory.h"

enum { POINTS_MOST = 64, IN_ROW = 5 };

static const char *text_of(const sw_trace *trace, uint32_t id)
{
    const sw_trace_name *name = id ? sw_trace_get_name(trace, id) : NULL;
    return name && name->text ? name->text : "";
}

static int read_nodes(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_BLOCKS);
    memory->nodes = sw__summary_take(summary, count + 1, sizeof *memory->nodes);
    if (!memory->nodes) {
        return SW_ENOMEM;
    }
    memory->node_count = count;
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_BLOCKS, i);
        struct sw__memory_node *node = &memory->nodes[i];
        const sw_row *code =
            row ? sw_trace_get_row(trace, SW_TABLE_CODE, row->key[1]) : NULL;
        *node = (struct sw__memory_node){.file = "", .name = "?"};
        if (!row) {
            continue;
        }
        /* A parent comes before its children: so no path is a circle. */
        node->parent = row->key[0] <= i ? row->key[0] : 0;
        node->line = row->key[2];
        node->allocated = row->value[0];
        node->blocks = row->value[1];
        node->live = row->value[2];
        node->peak = row->value[3];
        node->samples = row->value[4];
        if (code) {
            node->file = text_of(trace, code->key[0]);
            node->name = text_of(trace, code->key[1]);
            node->first_line = code->key[2];
            node->native = (code->flags & SW_ROW_NATIVE) != 0;
        }
    }
    return SW_OK;
}

/* --- sites --- */

/* The innermost place of the program's own code on the way to a node, else the node itself. */
static const struct sw__memory_node *
own_place(const sw_memory *memory, const struct sw__memory_node *node, bool *own)
{
    for (const struct sw__memory_node *at = node;; at = &memory->nodes[at->parent - 1]) {
        *own = !at->native && sw__user_file(at->file);
        if (*own) {
            return at;
        }
        if (!at->parent) {
            return node;
        }
    }
}

static sw_memory_site *site_of(sw_memory *memory, const struct sw__memory_node *at,
                               bool own)
{
    for (size_t i = 0; i < memory->site_count; i++) {
        sw_memory_site *site = &memory->sites[i];
        if (site->line == at->line && strcmp(site->file, at->file) == 0 &&
            strcmp(site->function, at->name) == 0) {
            return site;
        }
    }
    sw_memory_site *site = &memory->sites[memory->site_count++];
    *site = (sw_memory_site){.file = at->file,
                             .function = at->name,
                             .line = at->line,
                             .own = own,
                             .growth = {false, NAN, NAN, NAN, NAN, NAN}};
    return site;
}

/* --- growth --- */

struct points {
    double step[POINTS_MOST];
    size_t count;
    double *of_site; /* POINTS_MOST each */
};

static void read_steps(const sw_trace *trace, struct points *points)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_KEPT);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_KEPT, i);
        if (!row || row->key[0] != UINT32_MAX) {
            continue;
        }
        for (size_t k = 0; k < IN_ROW && k < row->key[2]; k++) {
            const size_t at = (size_t)row->key[1] + k;
            if (at < POINTS_MOST) {
                points->step[at] = (double)row->value[k];
                points->count = at + 1 > points->count ? at + 1 : points->count;
            }
        }
    }
}

/* Adds the points of all nodes to those of their sites. */
static void read_points(const sw_trace *trace, const sw_memory *memory,
                        const uint32_t *site_of_node, struct points *points)
{
    const size_t count = sw_trace_row_count(trace, SW_TABLE_KEPT);
    for (size_t i = 0; i < count; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_KEPT, i);
        if (!row || row->key[0] >= memory->node_count ||
            site_of_node[row->key[0]] == UINT32_MAX) {
            continue;
        }
        double *to = points->of_site + (size_t)site_of_node[row->key[0]] * POINTS_MOST;
        for (size_t k = 0; k < IN_ROW && k < row->key[2]; k++) {
            const size_t at = (size_t)row->key[1] + k;
            if (at < POINTS_MOST) {
                to[at] += (double)row->value[k];
            }
        }
    }
}

/* How far off the growth of a site may be because few blocks of it were sampled, with 95 % confidence, as a share of it: each
 * sampled block stands for as many bytes, and more of them had to be taken by chance the smaller they are. */
static double sampling_error(const sw_memory_site *site, double total)
{
    const double sampled = (double)site->samples;
    const double behind = total * sampled / (double)site->allocated;
    const double chance =
        sampled < (double)site->blocks ? sampled / (double)site->blocks : 1;
    return behind > 0 ? 1.96 * sqrt((1 - chance) / behind) : 0;
}

static void find_growth(sw_memory *memory, const struct points *points)
{
    for (size_t i = 0; i < memory->site_count; i++) {
        const struct sw__growth growth =
            sw__growth_of(points->step, points->of_site + i * POINTS_MOST, points->count);
        const double error =
            growth.slope * sampling_error(&memory->sites[i], growth.total);
        memory->sites[i].growth =
            (sw_memory_growth){growth.grows,
                               growth.slope,
                               growth.slope - hypot(growth.slope - growth.low, error),
                               growth.slope + hypot(growth.high - growth.slope, error),
                               growth.p,
                               growth.total};
    }
}

static int by_peak(const void *left, const void *right)
{
    const sw_memory_site *a = left;
    const sw_memory_site *b = right;
    if (a->peak != b->peak) {
        return a->peak < b->peak ? 1 : -1;
    }
    return (a->allocated < b->allocated) - (a->allocated > b->allocated);
}

int sw__memory_sites(sw_summary *summary, sw_memory *memory, const sw_trace *trace)
{
    int error = read_nodes(summary, memory, trace);
    const size_t count = memory->node_count;
    memory->sites = sw__summary_take(summary, count + 1, sizeof *memory->sites);
    uint32_t *site_of_node = sw__alloc_zero(count + 1, sizeof *site_of_node);
    struct points points = {0};
    if (error || !memory->sites || !site_of_node) {
        error = SW_ENOMEM;
        goto out;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sw__memory_node *node = &memory->nodes[i];
        site_of_node[i] = UINT32_MAX;
        if (node->samples == 0) {
            continue;
        }
        bool own;
        const struct sw__memory_node *place = own_place(memory, node, &own);
        sw_memory_site *site = site_of(memory, place, own);
        site_of_node[i] = (uint32_t)(site - memory->sites);
        site->allocated = sw__add(site->allocated, node->allocated);
        site->blocks = sw__add(site->blocks, node->blocks);
        site->live = sw__add(site->live, node->live);
        site->peak = sw__add(site->peak, node->peak);
        site->samples = sw__add(site->samples, node->samples);
    }
    points.of_site =
        sw__alloc_zero((memory->site_count + 1) * POINTS_MOST, sizeof(double));
    if (!points.of_site) {
        error = SW_ENOMEM;
        goto out;
    }
    read_steps(trace, &points);
    read_points(trace, memory, site_of_node, &points);
    find_growth(memory, &points);
    qsort(memory->sites, memory->site_count, sizeof *memory->sites, by_peak);
out:
    sw__free(points.of_site);
    sw__free(site_of_node);
    return error;
}

/* --- stacks --- */

int sw_memory_stacks(sw_stacks **out, const sw_memory *memory, enum sw_memory_view view)
{
    enum { DEEPEST = 256 };
    sw_stack_frame frames[DEEPEST];
    int error = sw_stacks_create(out);
    for (size_t i = 0; !error && i < memory->node_count; i++) {
        const struct sw__memory_node *node = &memory->nodes[i];
        const uint64_t bytes = view == SW_MEMORY_PEAK   ? node->peak
                               : view == SW_MEMORY_LIVE ? node->live
                                                        : node->allocated;
        if (bytes == 0) {
            continue;
        }
        size_t depth = 1;
        for (const struct sw__memory_node *at = node; at->parent && depth < DEEPEST;
             at = &memory->nodes[at->parent - 1]) {
            depth++;
        }
        const struct sw__memory_node *at = node;
        for (size_t k = depth; k-- > 0; at = k ? &memory->nodes[at->parent - 1] : at) {
            frames[k] = (sw_stack_frame){at->name, at->file, at->line, at->first_line,
                                         at->native};
        }
        const sw_stack_tag tag = {.thread = "", .section = "", .phase = SW_PHASE_INHERIT};
        const sw_stack_counts counts = {.running = bytes};
        error = sw_stacks_add(*out, frames, depth, &tag, &counts);
    }
    if (error) {
        sw_stacks_free(*out);
        *out = NULL;
    }
    return error;
}
