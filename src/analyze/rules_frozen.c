/* Rules: a model that does not learn and computes the same for the same samples in every pass over them. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define FROZEN_LEAST 0.1
#define PASSES_LEAST 2

/* Parameters of a root and of its parts, and how many of them learn. */
struct learning {
    uint64_t parameters, trainable;
};

static struct learning learning_of(const sw_training_module *modules, size_t count,
                                   const sw_training_module *root)
{
    struct learning sum = {0};
    const size_t length = strlen(root->name);
    for (size_t i = 0; i < count; i++) {
        const char *name = modules[i].name;
        if (strncmp(name, root->name, length) == 0 &&
            (name[length] == '\0' || name[length] == '.')) {
            sum.parameters = sw__add(sum.parameters, modules[i].parameters);
            sum.trainable = sw__add(sum.trainable, modules[i].trainable);
        }
    }
    return sum;
}

/* The root with most time of those that are called in every step and have nothing that learns; `*ns`: of a step. */
static const sw_training_module *find_frozen(const sw_findings *all, double *ns)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    const sw_training_module *top = NULL;
    bool learns = false;
    sw_summary_all_steps(all->it.summary, &steps, &total);
    *ns = 0;
    for (size_t i = 0; i < count && steps > 0; i++) {
        const sw_training_module *at = &modules[i];
        learns |= at->trainable > 0;
        const double calls = (double)at->calls + (double)at->validation_calls;
        const struct learning learning =
            at->root && at->type && calls > 0.9 * (double)steps
                ? learning_of(modules, count, at)
                : (struct learning){0};
        const double each =
            ((double)at->total_ns + (double)at->validation_ns) / (double)steps;
        if (learning.parameters > 0 && learning.trainable == 0 && each > *ns) {
            top = at;
            *ns = each;
        }
    }
    return learns ? top : NULL;
}

/* Whether a line may give a name another value than the same somewhere else. */
static bool changes(const struct sw__source_line *line)
{
    bool assigns = false;
    bool moves = false;
    for (size_t i = 0; i < line->length && line->text[i] != '#'; i++) {
        const char *at = line->text + i;
        const size_t left = line->length - i;
        moves |= (left > 4 && memcmp(at, ".to(", 4) == 0) ||
                 (left > 6 && memcmp(at, ".cuda(", 6) == 0);
        const bool before =
            i > 0 && (at[-1] == '=' || at[-1] == '!' || at[-1] == '<' || at[-1] == '>');
        assigns |= *at == '=' && !before && !(left > 1 && at[1] == '=');
    }
    return assigns && !moves;
}

/* Whether the samples of the loader come to the line of the loop as they are: nothing is assigned before it. */
static bool comes_as_it_is(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    struct sw__source_line line;
    bool same = source.loop > 0;
    for (uint32_t i = source.loop + 1; same && i < at->line; i++) {
        same =
            sw__source_line_get(source.text, source.length, i, &line) && !changes(&line);
    }
    sw__frame_source_free(&source);
    return same;
}

/* Where the training loop calls the module, by the class whose code was seen. */
static const struct sw__hot_line *find_call(sw_findings *all, const char *type)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const size_t length = strlen(type);
    const struct sw__hot_line *top = NULL;
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        const char *name = strstr(line->frame->name, type);
        if (name && name[length] == '.' && line->loop &&
            (!top || line->samples > top->samples)) {
            top = line;
        }
    }
    return top;
}

bool sw__rules_frozen(sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    double ns;
    /* Of other data sets nobody knows whether a sample is the same when it comes again. */
    if (sw__has_device(all) || !loader || !loader->dataset ||
        strcmp(loader->dataset, "TensorDataset") != 0 || loader->passes == SW_UNKNOWN ||
        loader->passes < PASSES_LEAST) {
        return false;
    }
    const sw_training_module *top = find_frozen(all, &ns);
    const double step = all->it.mean_ns;
    if (!top || !(ns / step > FROZEN_LEAST)) {
        return false;
    }
    const struct sw__hot_line *call = find_call(all, top->type);
    if (!call || !comes_as_it_is(call->loop)) {
        return false;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    sw__draft_where(all, draft, call->frame->file, call->frame->line, call->frame->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is %s, which learns nothing and computes the same "
                    "in each of %llu passes over the samples",
                    100 * ns / step, top->name, (unsigned long long)loader->passes);
    sw__draft_number(draft, "module_ms", ns / 1e6);
    sw__draft_number(draft, "module_share", ns / step);
    sw__draft_number(draft, "passes", (double)loader->passes);
    draft->finding.share = ns / step;
    draft->finding.confidence = 0.7;
    sw__draft_advise(
        all, draft,
        "Compute what %s makes of the samples once, before the loop (%s:%u), "
        "and train with that: its parameters are frozen, and nothing changes "
        "the samples on their way to it.",
        top->name, sw__file_name(call->loop->file), call->loop->line);
    const struct sw__estimate time = {.mean = ns, .low = ns, .high = ns};
    /* Once it has to be computed: that is one of the passes. */
    sw__draft_saves_in_steps(all, draft, time, 0.97, 1 - 1 / (double)loader->passes, 1);
    return true;
}
