/* Rules: steps that get longer and longer, because what they work on is kept and grows. Its memory may be too little to be seen
 * growing, or hide behind what comes and goes: then the source has to show what is put at the end of what is there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/growth.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_keeps.h"

/* What steps get longer by, of what the first take. Less may be the machine. */
#define LONGER_LEAST 0.5

/* Where something is piled up. */
struct pile {
    const sw_stack_frame *frame; /* of its function; NULL: none */
    uint32_t line;
    bool gathers; /* from a list */
    char text[81];
};

static bool find_in(sw_findings *all, const sw_stack_frame *frame, struct pile *out)
{
    if (!frame || !sw__user_file(frame->file)) {
        return false;
    }
    const bool trains = sw__hot_trains(sw__hot_code(all), frame);
    struct sw__frame_source source = sw__frame_source(frame);
    const struct sw__source_keep keep =
        source.text
            ? sw__source_piles(source.text, source.length, frame->first_line, trains)
            : (struct sw__source_keep){0};
    if (keep.line) {
        out->frame = frame;
        out->line = keep.line;
        out->gathers = keep.gathers;
        snprintf(out->text, sizeof out->text, "%.*s",
                 (int)(keep.length < 80 ? keep.length : 80), keep.text);
    }
    sw__frame_source_free(&source);
    return keep.line > 0;
}

/* Looks into the functions that the samples of the steps know. */
static struct pile find_pile(sw_findings *all)
{
    struct pile found = {0};
    const struct sw__hot *hot = sw__hot_code(all);
    for (size_t i = 0; i < hot->count && !found.frame; i++) {
        bool seen = hot->lines[i].outside;
        for (size_t k = 0; k < i && !seen; k++) {
            seen = sw__same_function(hot->lines[k].frame, hot->lines[i].frame);
        }
        if (!seen) {
            (void)find_in(all, hot->lines[i].frame, &found);
        }
    }
    for (size_t i = hot->caller_count; i-- > 0 && !found.frame;) {
        (void)find_in(all, hot->callers[i], &found);
    }
    return found;
}

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

/* The median of some of them, which it puts in order. */
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return values[count / 2];
}

/* What steps take in the first tenth, the first fifth and the fifth after it, and in the last tenth; false: they do not get longer. */
struct levels {
    double first, early, later, last, slope;
};
static bool get_longer(sw_findings *all, struct levels *out)
{
    const struct sw__case *it = &all->it;
    double *x =
        sw__arena_take(all->arena, 2 * (it->count + 1) * sizeof *x, _Alignof(double));
    if (!x) {
        all->failed = true;
        return false;
    }
    double *y = x + it->count + 1;
    if (it->count < SW__GROWTH_LEAST) {
        return false;
    }
    for (size_t i = 0; i < it->count; i++) {
        x[i] = (double)it->step[i].number;
        y[i] = (double)(it->step[i].end_ns - it->step[i].begin_ns);
    }
    const struct sw__growth found = sw__growth_of(x, y, it->count);
    const size_t tenth = it->count / 10;
    out->slope = found.slope;
    out->last = median(y + it->count - tenth, tenth);
    out->later = median(y + 2 * tenth, 2 * tenth);
    out->first = median(y, tenth);
    out->early = median(y, 2 * tenth);
    return found.grows && out->last - out->early > LONGER_LEAST * out->early;
}

/* Work after the backward that is the piling itself is the same time, and doing it less often would lose what is to be kept: it need
 * not be told of as well. */
static void explains_metrics(struct sw__draft **first, struct sw__draft *draft,
                             const struct pile *pile)
{
    for (struct sw__draft **at = first; pile->frame && *at;) {
        const struct sw__draft *other = *at;
        const sw_finding *finding = &other->finding;
        if (finding->kind == SW_FINDING_LOGGING && finding->name && finding->file &&
            strcmp(finding->name, pile->frame->name) == 0 &&
            strcmp(finding->file, pile->frame->file) == 0 &&
            (other->group == SW__GROUP_NONE || other->group == SW__GROUP_AFTER)) {
            draft->finding.also |= finding->also | (uint64_t)1 << SW_FINDING_LOGGING;
            for (size_t i = 0; i < finding->rule_count; i++) {
                sw__draft_rule(draft, finding->rules[i]);
            }
            *at = other->next;
        } else {
            at = &(*at)->next;
        }
    }
}

void sw__rules_piles(sw_findings *all, struct sw__draft *growth, enum sw__kept kept)
{
    struct levels levels;
    if (!get_longer(all, &levels)) {
        return;
    }
    /* Inputs that get longer make steps longer, too, and memory grow: something has to be kept. */
    const struct pile pile = find_pile(all);
    if (!pile.frame && !(growth && kept != SW__KEPT_UNKNOWN)) {
        return;
    }
    struct sw__draft *draft =
        growth ? growth : sw__draft(all, SW_FINDING_MEMORY_GROWTH, "RULE-31");
    const double times = levels.last / levels.first;
    if (growth) {
        sw__draft_title(all, draft, "%s, and the last steps take %.1f times the first",
                        growth->finding.title, times);
    } else {
        draft->group = SW__GROUP_MEMORY;
        draft->finding.confidence = 0.8;
        sw__draft_title(all, draft,
                        "Steps get longer and longer: the last take %.1f times the first",
                        times);
    }
    sw__draft_number(draft, "first_steps_ms", levels.first / 1e6);
    sw__draft_number(draft, "last_steps_ms", levels.last / 1e6);
    sw__draft_number(draft, "us_per_step", levels.slope / 1e3);
    if (pile.frame) {
        /* The line that copies all of it says more than one of the loop that may be what calls it. */
        if (kept != SW__KEPT_SEEN) {
            sw__draft_where(all, draft, pile.frame->file, pile.line, pile.frame->name);
        }
        sw__draft_advise(
            all, draft,
            pile.gathers ? "\"%s\" in line %u of %s copies all that was ever put "
                           "there, more in each step: keep no more than is needed, "
                           "in a deque with maxlen= or a tensor of fixed size that "
                           "is written in turn, or a running sum."
                         : "\"%s\" in line %u of %s copies all that is there to put "
                           "more at its end: keep no more than is needed, in a tensor "
                           "of fixed size that is written in turn, or a running sum.",
            pile.text, pile.line, sw__file_name(pile.frame->file));
    }
    const double mean = all->it.mean_ns;
    draft->finding.share = (mean - levels.early) / mean;
    /* How much is to be kept is not known: as much as after a tenth of the run, after a third, or next to nothing. */
    sw__draft_saves(all, draft, sw__saved_per_step(all, mean - levels.early),
                    sw__saved_per_step(all, fmax(mean - levels.later, 0)),
                    sw__saved_per_step(all, mean - 0.8 * levels.first));
    explains_metrics(&all->first, draft, &pile);
}
