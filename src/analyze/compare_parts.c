/* The parts of a run's time against those of the baseline: which of them changed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/compare.h"

#define BELIEVED 0.05 /* p below which a part is called changed */

struct match {
    sw_comparison *comparison;
    struct sw__result *result;
    const sw_compare_input *before, *after;
    const double *scale;
    sw_compared_part *parts;
    size_t count;
};

static const struct sw__mean nothing = {0, 0, INFINITY};
static const struct sw__mean unknown = {NAN, NAN, NAN};

static void set_times(sw_compared_part *part, const struct sw__mean *before,
                      const struct sw__mean *after, const double scale[2])
{
    struct sw__mean sum = nothing;
    part->before_ns = before->mean / scale[0];
    part->after_ns = after->mean / scale[1];
    sw__mean_add(&sum, before, -1 / scale[0]);
    sw__mean_add(&sum, after, 1 / scale[1]);
    part->difference_ns = sum.mean;
    part->low_ns = part->high_ns = part->p = NAN;
    part->changed = -1;
    if (isnan(sum.mean) || isnan(before->variance) || isnan(after->variance)) {
        return;
    }
    const double half =
        sum.variance > 0 ? sw__t_bound(sum.freedom) * sqrt(sum.variance) : 0;
    part->low_ns = sum.mean - half;
    part->high_ns = sum.mean + half;
    part->p = sum.mean == 0 ? 1
              : sum.variance > 0
                  ? sw__t_probability(sum.mean / sqrt(sum.variance), sum.freedom)
                  : 0;
}

static bool is_module(const struct match *match, const struct sw__measured *part)
{
    return sw__measured_find(match->before, SW_COMPARED_MODULE, part) ||
           sw__measured_find(match->after, SW_COMPARED_MODULE, part);
}

/* A step's time where it is known, nothing where it would be. */
static const struct sw__mean *step_of(const sw_compare_input *input,
                                      const struct sw__measured *part)
{
    return part && !isnan(part->step.mean) ? &part->step
           : input->spans                  ? &nothing
                                           : &unknown;
}

static bool set_phase(const struct match *match, sw_compared_part *out,
                      const struct sw__measured *before, const struct sw__measured *after)
{
    const bool was = before && before->known;
    const bool is = after && after->known;
    if (!was && !is) {
        return false;
    }
    set_times(out, was ? &before->step : &unknown, is ? &after->step : &unknown,
              match->scale);
    return out->before_ns != 0 || out->after_ns != 0;
}

static bool set_module(const struct match *match, sw_compared_part *out,
                       const struct sw__measured *before,
                       const struct sw__measured *after)
{
    const bool single = match->before->spans && match->after->spans;
    if (single) {
        set_times(out, before ? step_of(match->before, before) : &nothing,
                  after ? step_of(match->after, after) : &nothing, match->scale);
    } else {
        /* One of them has no single steps, and so no warm-up to leave out: both are taken whole. */
        set_times(out, before ? &before->whole : &nothing,
                  after ? &after->whole : &nothing, match->scale);
    }
    return !(out->before_ns == 0 && out->after_ns == 0);
}

static bool set_section(const struct match *match, sw_compared_part *out,
                        const struct sw__measured *before,
                        const struct sw__measured *after)
{
    static const double one[2] = {1, 1};
    const struct sw__measured *any = before ? before : after;
    if (is_module(match, any)) {
        return false;
    }
    const bool in_steps =
        (before && before->step.mean > 0) || (after && after->step.mean > 0);
    if (match->before->spans && match->after->spans && in_steps) {
        set_times(out, step_of(match->before, before), step_of(match->after, after),
                  match->scale);
        return true;
    }
    out->per = "call";
    set_times(out, before ? &before->call : &unknown, after ? &after->call : &unknown,
              one);
    return !isnan(out->before_ns) || !isnan(out->after_ns);
}

static bool set_function(const struct match *match, sw_compared_part *out,
                         const struct sw__measured *before,
                         const struct sw__measured *after)
{
    out->per = "run";
    set_times(out, before ? &before->total : &nothing, after ? &after->total : &nothing,
              match->scale);
    return true;
}

/* Adds the part, unless there is nothing to say of it. */
static int add(struct match *match, enum sw_compared_kind kind,
               const struct sw__measured *before, const struct sw__measured *after)
{
    bool (*const set[SW_COMPARED_KINDS])(
        const struct match *, sw_compared_part *, const struct sw__measured *,
        const struct sw__measured *) = {set_phase, set_module, set_section, set_function};
    const struct sw__measured *any = after ? after : before;
    sw_compared_part *part = &match->parts[match->count];
    *part = (sw_compared_part){
        .line = any->line,
        .per = match->result->compared.basis == SW_BASIS_SAMPLES ? "sample" : "step",
        .before_calls = before ? before->calls : SW_UNKNOWN,
        .after_calls = after ? after->calls : SW_UNKNOWN};
    if (!set[kind](match, part, before, after)) {
        return SW_OK;
    }
    if (!before) {
        part->before_ns = NAN;
    }
    if (!after) {
        part->after_ns = NAN;
    }
    sw__arena *arena = match->comparison->arena;
    part->name = sw__arena_copy(arena, any->name, strlen(any->name));
    part->file = any->file ? sw__arena_copy(arena, any->file, strlen(any->file)) : NULL;
    match->count++;
    return part->name && (part->file || !any->file) ? SW_OK : SW_ENOMEM;
}

/* --- functions in other files --- */

/* The only part of that name which has no twin by name and file; NULL: there is none, or several. */
static const struct sw__measured *lonely(const sw_compare_input *input,
                                         const sw_compare_input *other, const char *name)
{
    const struct sw__measured_list *list = &input->parts[SW_COMPARED_FUNCTION];
    const struct sw__measured *found = NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].name, name) != 0 ||
            sw__measured_find(other, SW_COMPARED_FUNCTION, &list->items[i])) {
            continue;
        }
        if (found) {
            return NULL;
        }
        found = &list->items[i];
    }
    return found;
}

#define LONELY_MOST 2000 /* functions; the search is of all against all */

/* The same function on the other side. A file that was copied or renamed has the same functions still. */
static const struct sw__measured *twin_of(const sw_compare_input *own,
                                          const sw_compare_input *other,
                                          enum sw_compared_kind kind,
                                          const struct sw__measured *part)
{
    const struct sw__measured *found = sw__measured_find(other, kind, part);
    if (found || kind != SW_COMPARED_FUNCTION || own->parts[kind].count > LONELY_MOST ||
        other->parts[kind].count > LONELY_MOST) {
        return found;
    }
    return lonely(own, other, part->name) == part ? lonely(other, own, part->name) : NULL;
}

/* --- order and correction --- */

static int by_weight(const void *left, const void *right)
{
    const sw_compared_part *a = left;
    const sw_compared_part *b = right;
    if ((a->changed == 1) != (b->changed == 1)) {
        return a->changed == 1 ? -1 : 1;
    }
    const double x = isnan(a->difference_ns) ? -1 : fabs(a->difference_ns);
    const double y = isnan(b->difference_ns) ? -1 : fabs(b->difference_ns);
    if (x != y) {
        return x > y ? -1 : 1;
    }
    const int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

/* All tests of a run are one family. */
static int correct(struct sw__result *result)
{
    size_t count = 0;
    for (size_t kind = 0; kind < SW_COMPARED_KINDS; kind++) {
        count += result->part_count[kind];
    }
    double *p = sw__alloc_zero(count + 1, sizeof *p);
    size_t *order = sw__alloc_zero(count + 1, sizeof *order);
    if (!p || !order) {
        sw__free(p);
        sw__free(order);
        return SW_ENOMEM;
    }
    for (int back = 0; back < 2; back++) {
        size_t at = 0;
        for (size_t kind = 0; kind < SW_COMPARED_KINDS; kind++) {
            for (size_t i = 0; i < result->part_count[kind]; i++, at++) {
                sw_compared_part *part = &result->parts[kind][i];
                if (!back) {
                    p[at] = part->p;
                    continue;
                }
                part->p = p[at];
                part->changed = isnan(p[at]) ? -1 : p[at] < BELIEVED;
            }
        }
        if (!back) {
            sw__holm(p, count, order);
        }
    }
    sw__free(p);
    sw__free(order);
    return SW_OK;
}

int sw__compare_parts(sw_comparison *comparison, struct sw__result *result,
                      const sw_compare_input *before, const sw_compare_input *after,
                      const double scale[2])
{
    int error = SW_OK;
    for (size_t kind = 0; kind < SW_COMPARED_KINDS && !error; kind++) {
        const struct sw__measured_list *old = &before->parts[kind];
        const struct sw__measured_list *new = &after->parts[kind];
        struct match match = {comparison, result, before, after, scale, NULL, 0};
        match.parts = sw__arena_take(comparison->arena,
                                     (old->count + new->count + 1) * sizeof *match.parts,
                                     _Alignof(max_align_t));
        error = match.parts ? SW_OK : SW_ENOMEM;
        for (size_t i = 0; i < old->count && !error; i++) {
            const struct sw__measured *part = &old->items[i];
            error = add(&match, (enum sw_compared_kind)kind, part,
                        twin_of(before, after, (enum sw_compared_kind)kind, part));
        }
        for (size_t i = 0; i < new->count && !error; i++) {
            const struct sw__measured *part = &new->items[i];
            if (!twin_of(after, before, (enum sw_compared_kind)kind, part)) {
                error = add(&match, (enum sw_compared_kind)kind, NULL, part);
            }
        }
        result->parts[kind] = match.parts;
        result->part_count[kind] = match.count;
    }
    error = error ? error : correct(result);
    for (size_t kind = 0; kind < SW_COMPARED_KINDS && !error; kind++) {
        if (result->part_count[kind] > 1) {
            qsort(result->parts[kind], result->part_count[kind], sizeof(sw_compared_part),
                  by_weight);
        }
    }
    return error;
}

bool sw__compare_shares_parts(const sw_compare_input *before,
                              const sw_compare_input *after)
{
    for (size_t kind = 0; kind < SW_COMPARED_KINDS; kind++) {
        for (size_t i = 0; i < before->parts[kind].count; i++) {
            const struct sw__measured *part = &before->parts[kind].items[i];
            const struct sw__measured *twin =
                sw__measured_find(after, (enum sw_compared_kind)kind, part);
            const bool counts =
                kind != SW_COMPARED_PHASE ||
                (part->known && twin && twin->known && strcmp(part->name, "other") != 0 &&
                 strcmp(part->name, SW__BETWEEN_STEPS) != 0);
            if (twin && counts) {
                return true;
            }
        }
    }
    return false;
}
