/* Rules: a model that is asked the same more than once in a step.
 *
 * Whether two calls have the same input is not recorded. The source tells where it reads so: `model(x)` in two lines between
 * which nothing is assigned to either name; in two functions that the same function calls with the same names; or in a function and in
 * one that it gives these names to. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_calls.h"
#include "analyze/summary.h"

enum { SITES_MOST = 32, DEEPEST = 512 };
#define AGAIN_LEAST 0.1

/* A line of the user's that calls a model. */
struct site {
    const sw_stack_frame *frame, *caller,
        *inside; /* inside: what of the user's it comes to first */
    uint64_t samples;
    bool chance;
    bool no_grad; /* nobody goes back through what it computes */
    size_t group; /* the first one that asks the same */
};

struct sites {
    struct site list[SITES_MOST];
    size_t count;
    uint8_t *chance; /* of each frame, enum known */
};

enum known { UNSEEN, SURE, CHANCE };

static bool left_to_chance(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool chance = !source.text || sw__source_has_chance(source.text, source.length,
                                                              frame->first_line);
    sw__frame_source_free(&source);
    return chance;
}

static bool without_grad(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool without =
        source.text && sw__source_without_grad(source.text, source.length,
                                               frame->first_line, frame->line);
    sw__frame_source_free(&source);
    return without;
}

/* The outermost call of a model in a stack. */
static void add_stack(struct sites *sites, const sw_stacks *stacks, const sw_stack *stack)
{
    uint32_t frames[DEEPEST];
    const size_t depth = sw_stacks_frames(stacks, stack->id, frames, DEEPEST);
    size_t at = 0;
    while (at + 1 < depth &&
           !(sw__user_file(sw_stacks_get_frame(stacks, frames[at])->file) &&
             strstr(sw_stacks_get_frame(stacks, frames[at + 1])->file,
                    "/torch/nn/modules/module.py"))) {
        at++;
    }
    if (at + 1 >= depth) {
        return;
    }
    const sw_stack_frame *frame = sw_stacks_get_frame(stacks, frames[at]);
    size_t i = 0;
    while (i < sites->count && sites->list[i].frame != frame) {
        i++;
    }
    if (i == SITES_MOST) {
        return;
    }
    struct site *site = &sites->list[i];
    if (i == sites->count) {
        *site = (struct site){
            .frame = frame,
            .caller = at > 0 ? sw_stacks_get_frame(stacks, frames[at - 1]) : NULL,
            .no_grad = without_grad(frame),
            .group = i};
        sites->count++;
    }
    site->samples = sw__add(site->samples, sw__add(stack->running, stack->waiting));
    for (size_t k = at + 1; k < depth && !site->chance; k++) {
        const sw_stack_frame *below = sw_stacks_get_frame(stacks, frames[k]);
        if (sw__user_file(below->file)) {
            site->inside = site->inside ? site->inside : below;
            uint8_t *known = &sites->chance[frames[k]];
            if (*known == UNSEEN) {
                *known = left_to_chance(below) ? CHANCE : SURE;
            }
            site->chance = *known == CHANCE;
        }
    }
}

static bool same_file(const sw_stack_frame *a, const sw_stack_frame *b)
{
    return strcmp(a->file, b->file) == 0;
}

static const char *last_part(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Two functions that one function calls with the same names. */
static bool called_alike(const struct site *a, const struct site *b)
{
    struct sw__source_call first, second;
    if (!a->caller || !b->caller || !sw__same_function(a->caller, b->caller) ||
        !sw__user_file(a->caller->file)) {
        return false;
    }
    struct sw__frame_source source = sw__frame_source(a->caller);
    const uint32_t from =
        a->caller->line < b->caller->line ? a->caller->line : b->caller->line;
    const uint32_t to =
        a->caller->line < b->caller->line ? b->caller->line : a->caller->line;
    const bool alike = source.text &&
                       sw__source_call_get(source.text, source.length, a->caller->line,
                                           last_part(a->frame->name), &first) &&
                       sw__source_call_get(source.text, source.length, b->caller->line,
                                           last_part(b->frame->name), &second) &&
                       first.inside_length == second.inside_length &&
                       memcmp(first.inside, second.inside, first.inside_length) == 0 &&
                       sw__source_call_keeps(source.text, source.length, from, to, &first,
                                             a->no_grad || b->no_grad);
    sw__frame_source_free(&source);
    return alike;
}

/* Whether function `outer` calls a model, and function `inner` to which it gives the same. */
static bool passed_on(const struct site *outer, const struct site *inner,
                      const struct sw__frame_source *source)
{
    struct sw__source_call ask, call, asked;
    const sw_stack_frame *at = outer->frame, *caller = inner->caller;
    if (!caller || !sw__same_function(caller, at) || caller->line == at->line ||
        !sw__source_call_get(source->text, source->length, at->line, NULL, &ask) ||
        !sw__source_call_get(source->text, source->length, inner->frame->line, NULL,
                             &asked) ||
        !sw__source_call_get(source->text, source->length, caller->line,
                             last_part(inner->frame->name), &call)) {
        return false;
    }
    const uint32_t from = caller->line < at->line ? caller->line : at->line;
    const uint32_t to = caller->line < at->line ? at->line : caller->line;
    return sw__source_call_passed(source->text, source->length, inner->frame->first_line,
                                  &asked, &call, &ask) &&
           sw__source_call_keeps(source->text, source->length,
                                 inner->frame->first_line + 1, inner->frame->line, &asked,
                                 false) &&
           sw__source_call_keeps(source->text, source->length, from, to, &ask,
                                 outer->no_grad || inner->no_grad);
}

/* Whether two lines come to the same model: to the same function of the user's, or to layers of torch's alone. */
static bool same_model(const struct site *a, const struct site *b)
{
    return a->inside && b->inside ? sw__same_function(a->inside, b->inside)
                                  : !a->inside && !b->inside;
}

static bool asks_the_same(const struct site *a, const struct site *b)
{
    struct sw__source_call call, other;
    const sw_stack_frame *one = a->frame, *two = b->frame;
    const bool metric = a->no_grad || b->no_grad;
    if (!same_file(one, two) || a->chance || b->chance || !same_model(a, b)) {
        return false;
    }
    struct sw__frame_source source = sw__frame_source(one);
    const char *text = source.text;
    const size_t length = source.length;
    bool same = text && sw__source_call_get(text, length, one->line, NULL, &call) &&
                sw__source_call_get(text, length, two->line, NULL, &other) &&
                sw__source_call_same(&call, &other);
    if (same && sw__same_function(one, two)) {
        const uint32_t from = one->line < two->line ? one->line : two->line;
        const uint32_t to = one->line < two->line ? two->line : one->line;
        same = from < to && sw__source_call_keeps(text, length, from, to, &call, metric);
    } else if (same) {
        same = sw__source_call_given(text, length, one->first_line, two->first_line,
                                     &call) &&
               sw__source_call_keeps(text, length, one->first_line + 1, one->line, &call,
                                     false) &&
               sw__source_call_keeps(text, length, two->first_line + 1, two->line, &call,
                                     false) &&
               called_alike(a, b);
    }
    same = same || (text && (passed_on(a, b, &source) || passed_on(b, a, &source)));
    sw__frame_source_free(&source);
    return same;
}

/* How often models of a class are called in a step, and their part of the backward. */
struct calls {
    double least, sum; /* of the one that is called least; of all of them */
    double backward;
};

static bool is_called(const sw_training_module *module)
{
    return module->root && module->calls > 0 && module->type && module->type[0];
}

/* Whether a function is a method of the module's class. */
static bool has_method(const sw_training_module *module, const char *function)
{
    const size_t length = strlen(module->type);
    return strncmp(function, module->type, length) == 0 && function[length] == '.';
}

/* `function`: the first of the user's that a call comes to, or NULL. A container of torch's has none: then it is the only model there is. */
static struct calls calls_of(const sw_findings *all, const char *function)
{
    size_t count, models = 0, own = 0;
    uint64_t steps, total, roots = 0, here = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    struct calls of = {0};
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; i < count; i++) {
        models += is_called(&modules[i]);
        own += is_called(&modules[i]) && function && has_method(&modules[i], function);
    }
    for (size_t i = 0; i < count && steps > 0; i++) {
        const sw_training_module *at = &modules[i];
        roots = sw__add(roots, at->root ? at->backward_ns : 0);
        if (!is_called(at) || (own > 0 ? !has_method(at, function) : models > 1)) {
            continue;
        }
        const double calls = (double)at->calls / (double)steps;
        of.least = of.least > 0 && of.least < calls ? of.least : calls;
        of.sum += calls;
        here = sw__add(here, at->backward_ns);
    }
    of.backward = roots ? (double)here / (double)roots : 0;
    return of;
}

/* A layer that leaves something to chance gives something else each time. */
static bool drops_out(const sw_findings *all)
{
    size_t count;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (modules[i].calls && modules[i].type &&
            (strstr(modules[i].type, "Drop") || strstr(modules[i].type, "Noise"))) {
            return true;
        }
    }
    return false;
}

static void find_groups(struct sites *sites)
{
    for (size_t i = 1; i < sites->count; i++) {
        for (size_t k = 0; k < i; k++) {
            if (sites->list[k].group == k &&
                asks_the_same(&sites->list[k], &sites->list[i])) {
                sites->list[i].group = k;
                break;
            }
        }
    }
}

/* The other line of a group, that with the most samples of them. */
static const struct site *second_of(const struct sites *sites, const struct site *first)
{
    const struct site *second = first;
    for (size_t i = 0; i < sites->count; i++) {
        const struct site *site = &sites->list[i];
        if (site->group == first->group && site != first &&
            (second == first || site->samples > second->samples)) {
            second = site;
        }
    }
    return second;
}

bool sw__rules_again(sw_findings *all)
{
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    struct sites sites = {.count = 0};
    sw_stack stack;
    sw_stacks_cursor cursor = {0};
    if (!stacks || sw__has_device(all) || drops_out(all)) {
        return false;
    }
    sites.chance = sw__alloc_zero(sw_stacks_frame_count(stacks) + 1, 1);
    if (!sites.chance) {
        all->failed = true;
        return false;
    }
    while (sw_stacks_next(stacks, &cursor, &stack)) {
        if (stack.tag->phase == SW_PHASE_FORWARD) {
            add_stack(&sites, stacks, &stack);
        }
    }
    sw__free(sites.chance);
    find_groups(&sites);
    double again = 0, part_of_backward = 0, times = 0;
    uint64_t most = 0;
    const struct site *top = NULL;
    for (size_t i = 0; i < sites.count; i++) {
        uint64_t samples = 0,
                 aside = 0; /* aside: of calls that nobody goes back through */
        double asked = 0, all_sites = 0, trained = 0;
        for (size_t k = 0; k < sites.count; k++) {
            const struct site *site = &sites.list[k];
            all_sites += same_model(site, &sites.list[i]);
            if (site->group == i) {
                asked += 1;
                trained += !site->no_grad;
                samples += site->samples;
                aside += site->no_grad ? site->samples : 0;
            }
        }
        if (sites.list[i].group != i || asked < 2) {
            continue;
        }
        /* Fewer calls than lines: it is one or the other of them. */
        const sw_stack_frame *inside = sites.list[i].inside;
        const struct calls of = calls_of(all, inside ? inside->name : NULL);
        if (of.least < 0.95 * asked || of.sum < 0.95 * all_sites) {
            continue;
        }
        /* The one that stays is one that is gone back through, where there is such. */
        again += trained > 0
                     ? (double)aside + (double)(samples - aside) * (1 - 1 / trained)
                     : (double)samples * (1 - 1 / asked);
        const double gone_back = of.least - (asked - trained);
        const double goes =
            trained > 1 && gone_back > 0 ? of.backward * (trained - 1) / gone_back : 0;
        part_of_backward = goes > part_of_backward ? goes : part_of_backward;
        times = asked > times ? asked : times;
        if (samples > most) {
            most = samples;
            top = &sites.list[i];
        }
    }
    const uint64_t by_phase[SW_PHASE_COUNT] = {[SW_PHASE_FORWARD] = (uint64_t)again};
    struct sw__estimate time = sw__hot_time(all, by_phase);
    const double step = all->it.mean_ns;
    if (!top || !(time.low / step > AGAIN_LEAST)) {
        return false;
    }
    const double forward = time.mean;
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    time.mean += part_of_backward * backward.mean;
    time.high += part_of_backward * backward.high;
    const sw_stack_frame *at = top->frame;
    const struct site *other = second_of(&sites, top);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is a model that is asked the same %.0f times, "
                    "first in %s (%s:%u)",
                    100 * time.mean / step, times, at->name, sw__file_name(at->file),
                    at->line);
    sw__draft_number(draft, "again_ms", time.mean / 1e6);
    sw__draft_number(draft, "again_forward_ms", forward / 1e6);
    sw__draft_number(draft, "calls_alike", times);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.7;
    sw__draft_advise(all, draft,
                     "Call the model once, and give what it says to all that need it: by "
                     "their names, line %u of %s and line %u ask the same.",
                     at->line, sw__file_name(at->file), other->frame->line);
    if (other->no_grad != top->no_grad) {
        const uint32_t asks = other->no_grad ? other->frame->line : at->line;
        sw__draft_advise(
            all, draft,
            "Line %u does so without gradients: what the training pass gave, "
            "with .detach(), tells as much.",
            asks);
    }
    sw__draft_saves_in_steps(all, draft, time, 0.95, 0.6, 1.05);
    return true;
}
