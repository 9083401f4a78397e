/* Rules: a model that does not learn and computes the same for the same samples in every pass over them. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/source_calls.h"
#include "analyze/source_chance.h"
#include "analyze/source_names.h"
#include "analyze/source_samples.h"
#include "analyze/summary.h"

#define FROZEN_LEAST 0.1
#define PASSES_LEAST 2
/* The samples of the line that calls a model have its time, within a factor. */
#define AS_LONG 1.5

struct sw__learning sw__learning_of(const sw_training_module *modules, size_t count,
                                    const sw_training_module *root)
{
    struct sw__learning sum = {0};
    const size_t length = strlen(root->name);
    for (size_t i = 0; i < count; i++) {
        const char *name = modules[i].name;
        if (strncmp(name, root->name, length) == 0 &&
            (name[length] == '\0' || name[length] == '.')) {
            sum.parameters = sw__add(sum.parameters, modules[i].parameters);
            sum.trainable = sw__add(sum.trainable, modules[i].trainable);
            sum.backward = sw__add(sum.backward, modules[i].backward_calls);
            const char *type = modules[i].type ? modules[i].type : "";
            sum.moody |= strstr(type, "Drop") || strstr(type, "BatchNorm");
        }
    }
    return sum;
}

bool sw__stands_still(const sw_findings *all, const char *part)
{
    size_t count;
    const sw_training_setting *list = sw_training_settings(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        if (!list[i].what || !list[i].name || strcmp(list[i].what, "still") != 0) {
            continue;
        }
        const size_t length = strlen(list[i].name); /* what it is part of, or itself */
        if (length > 0 && strncmp(part, list[i].name, length) == 0 &&
            (part[length] == '\0' || part[length] == '.')) {
            return true;
        }
    }
    return false;
}

/* A model that is called in every step and does not learn. */
struct frozen {
    const sw_training_module *root; /* NULL: there is none */
    double ns;                      /* of a step */
    bool trainable; /* its parameters could learn, but nobody goes back through it */
    bool moody;
};

/* The one with most time. */
static struct frozen find_frozen(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    struct frozen top = {0};
    bool learns = false, measured = false;
    uint64_t every;
    sw_summary_all_steps(all->it.summary, &every, &total);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    /* Validations are seen whole, whatever is left out of steps. */
    const double part = every > 0 ? (double)steps / (double)every : 1;
    for (size_t i = 0; i < count; i++) {
        learns |= modules[i].trainable > 0;
        measured |= modules[i].root && modules[i].backward_calls > 0;
    }
    for (size_t i = 0; i < count && steps > 0 && learns; i++) {
        const sw_training_module *at = &modules[i];
        const double calls = (double)at->calls + part * (double)at->validation_calls;
        const struct sw__learning learning =
            at->root && at->type && calls > 0.9 * (double)steps
                ? sw__learning_of(modules, count, at)
                : (struct sw__learning){0};
        const double each =
            ((double)at->total_ns + part * (double)at->validation_ns) / (double)steps;
        const bool aside = measured && learning.backward == 0;
        if (learning.parameters > 0 && (learning.trainable == 0 || aside) &&
            each > top.ns) {
            top = (struct frozen){.root = at,
                                  .ns = each,
                                  .trainable = learning.trainable > 0,
                                  .moody =
                                      learning.moody && !sw__stands_still(all, at->name)};
        }
    }
    return top;
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

/* Whether lines `from` to `to` - 1 leave the names as they are, and the statement at `to` draws nothing. */
static bool keeps(const struct sw__frame_source *source, uint32_t from, uint32_t to)
{
    struct sw__source_line line;
    const char *begin, *end;
    char statement[512];
    for (uint32_t i = from; i < to; i++) {
        if (!sw__source_line_get(source->text, source->length, i, &line) ||
            changes(&line)) {
            return false;
        }
    }
    if (!sw__source_statement(source->text, source->length, to, &begin, &end) ||
        (size_t)(end - begin) >= sizeof statement) {
        return false;
    }
    memcpy(statement, begin, (size_t)(end - begin));
    statement[end - begin] = '\0';
    /* What mixes samples or takes pieces of them draws, however it is called. */
    static const char *const words[] = {"mix",  "cutout",  ".sample(",
                                        "crop", "corrupt", "flip"};
    bool draws = sw__named_by_chance(statement);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        draws = draws || strstr(statement, words[i]);
    }
    return !draws;
}

/* Whether the samples of the loader come to the line of the loop as they are: nothing is assigned before it. */
static bool comes_as_it_is(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool same = source.loop > 0 && keeps(&source, source.loop + 1, at->line);
    sw__frame_source_free(&source);
    return same;
}

/* The same of the arguments of a function that the loop calls, and that calls the model. */
static bool passes_on(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    struct sw__source_line head;
    uint32_t last;
    const bool same =
        source.text &&
        sw__source_head(source.text, source.length, at->first_line, &head, &last) &&
        !sw__source_by_chance(source.text, source.length, at->first_line) &&
        keeps(&source, last + 1, at->line);
    sw__frame_source_free(&source);
    return same;
}

static bool without_grad(const sw_stack_frame *at)
{
    if (!at) {
        return false;
    }
    struct sw__frame_source source = sw__frame_source(at);
    const bool without =
        source.text &&
        sw__source_without_grad(source.text, source.length, at->first_line, at->line);
    sw__frame_source_free(&source);
    return without;
}

/* Whether nobody goes back through what a line computes, as its own source or that of its callers reads. */
static bool is_aside(const struct sw__hot_line *line)
{
    return without_grad(line->frame) || without_grad(line->caller) ||
           without_grad(line->entry) || without_grad(line->loop);
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

/* The same of a container of torch's, which has no code of the user's: the line without gradients that takes as long. */
static const struct sw__hot_line *find_aside(sw_findings *all, double ns)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const struct sw__hot_line *top = NULL;
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (line->phase == SW_PHASE_FORWARD && line->loop && !line->outside &&
            (!top || line->samples > top->samples) && is_aside(line)) {
            top = line;
        }
    }
    if (!top) {
        return NULL;
    }
    const uint64_t by_phase[SW_PHASE_COUNT] = {[SW_PHASE_FORWARD] = top->samples};
    const struct sw__estimate time = sw__hot_time(all, by_phase);
    return time.mean < AS_LONG * ns && ns < AS_LONG * time.mean ? top : NULL;
}

/* Whether a sample is the same when it comes again; of data sets whose source is not at hand nobody knows. */
static bool same_samples(const sw_training_loader *loader)
{
    if (strcmp(loader->dataset, "TensorDataset") == 0) {
        return true;
    }
    const char *file = loader->site ? loader->site->file : NULL;
    size_t length = 0;
    char *text = file && !(loader->bits & SW_LOADER_ITERABLE)
                     ? sw__source_text(file, &length)
                     : NULL;
    const bool same = text && sw__source_same_samples(text, length, loader->dataset);
    sw__free(text);
    return same;
}

/* Whether the model stays what it is, as the file that trains reads: one that is given the average of another learns after all,
 * and one that drops out or goes by its batch says something else each time, unless it is told not to, or known to do neither. */
static bool stays(const sw_stack_frame *at, bool moody)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool same = source.text &&
                      !sw__source_moves_parameters(source.text, source.length) &&
                      (!moody || sw__source_evaluates(source.text, source.length));
    sw__frame_source_free(&source);
    return same;
}

static const struct sw__hot_line *call_of(sw_findings *all, const struct frozen *frozen)
{
    const struct sw__hot_line *call = find_call(all, frozen->root->type);
    if (call && sw__user_file(call->frame->file)) {
        return !frozen->trainable || is_aside(call) ? call : NULL;
    }
    call = find_aside(all, frozen->ns);
    return call && (!call->entry || sw__same_function(call->entry, call->loop) ||
                    passes_on(call->entry))
               ? call
               : NULL;
}

bool sw__rules_frozen(sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    if (sw__has_device(all) || !loader || !loader->dataset ||
        loader->passes == SW_UNKNOWN || loader->passes < PASSES_LEAST) {
        return false;
    }
    const struct frozen frozen = find_frozen(all);
    const sw_training_module *top = frozen.root;
    const double ns = frozen.ns, step = all->it.mean_ns;
    if (!top || !(ns / step > FROZEN_LEAST) || !same_samples(loader)) {
        return false;
    }
    const struct sw__hot_line *call = call_of(all, &frozen);
    if (!call || !comes_as_it_is(call->loop) || !stays(call->loop, frozen.moody)) {
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
        "and train with that: %s, and nothing changes the samples on their way to it.",
        top->name, sw__file_name(call->loop->file), call->loop->line,
        frozen.trainable ? "nobody goes back through it" : "its parameters are frozen");
    const struct sw__estimate time = {.mean = ns, .low = ns, .high = ns};
    /* Once it has to be computed: that is one of the passes. */
    sw__draft_saves_in_steps(all, draft, time, 0.97, 1 - 1 / (double)loader->passes, 1);
    return true;
}
