/* Rules: a part of the model that is out of proportion.
 *
 * In most healthy models one layer takes longest: that alone is no finding. A part is out of proportion when it takes several
 * times what its siblings do, which were made to be alike, and that is much of the whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/model_parts.h"
#include "analyze/summary.h"

/* Of blocks that stand in a row; of layers of one type; of layers that have little to learn. */
#define BLOCK_TIMES 3.0
/* … and of the slowest sibling: where sizes halve from block to block, the first stands out of most, and not of the second. It is
 * given the largest inputs, so more is asked of it. */
#define BLOCK_NEXT_TIMES 2.5
#define BLOCK_FIRST_TIMES 5.0
#define BLOCK_LEAST 0.3
#define LAYER_TIMES 3.5
#define LAYER_LEAST 0.5
/* A convolution after a halving of the picture has a quarter of the positions of one before it. */
#define POSITIONS 5.0
/* A kernel is unlike the others if it has so many times the positions of the largest of them. One like the others may have more
 * channels, which is no fault where there are few to compare it with: the first layer sees a picture of few, the last makes few. */
#define KERNEL_TIMES 2.0
/* One with so many times the positions need only take so many times as long in the forward, if it does with its backward. */
#define WIDE_TIMES 4.0
#define WIDE_FORWARD_TIMES 2.0
#define CHANNELS_LEAST 3
#define CHANNELS_TIMES 6.0
#define OWN_LEAST 0.35
/* … or this, of one that learns nothing, where none that learns takes half as long. */
#define OWN_ALONE_LEAST 0.2
#define OWN_ALONE_TIMES 2.0
#define OWN_TIMES 8.0
#define EXCESS_TIMES 1.5

struct outlier {
    const struct sw__part *part;
    double usual_ns; /* of its forward, if it were like its siblings */
    double wide;     /* its kernel in those of its siblings, if that is why; else 0 */
    size_t siblings;
    size_t alike;    /* parts of its class that are so, it included */
    double step_ns;  /* of all those, with the backward */
    bool by_itself;  /* it is slow outside its own parts */
    const char *how; /* "its siblings" */
};

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 ? values[count / 2]
                     : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static bool same_type(const struct sw__part *a, const struct sw__part *b)
{
    return a->module->type && b->module->type &&
           strcmp(a->module->type, b->module->type) == 0;
}

static bool in_a_row(const struct sw__part *a, const struct sw__part *b)
{
    return a->parent_length == b->parent_length &&
           strncmp(a->module->name, b->module->name, a->parent_length) == 0;
}

static bool numbered(const struct sw__part *part)
{
    const char *last = part->module->name + part->parent_length;
    return *last == '.' && last[1] >= '0' && last[1] <= '9';
}

/* Blocks of one class in a row (layers.0, layers.1 …). */
static bool block_outlier(const struct sw__model *model, const struct sw__part *part,
                          double *scratch, struct outlier *out)
{
    if (part->leaf || !numbered(part)) {
        return false;
    }
    size_t count = 0;
    double slowest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other != part && same_type(part, other) && in_a_row(part, other)) {
            scratch[count++] = other->forward_ns;
            slowest = fmax(slowest, other->forward_ns);
        }
    }
    const bool first = strcmp(part->module->name + part->parent_length, ".0") == 0;
    if (count < 2 || part->forward_ns < BLOCK_NEXT_TIMES * slowest ||
        (first && part->forward_ns < BLOCK_FIRST_TIMES * median(scratch, count))) {
        return false;
    }
    *out = (struct outlier){.part = part,
                            .usual_ns = median(scratch, count),
                            .siblings = count,
                            .alike = 1,
                            .step_ns = part->step_ns,
                            .how = "the median of its siblings"};
    return part->forward_ns > BLOCK_TIMES * out->usual_ns;
}

/* Whether a convolution takes longer than another because it sees a larger picture, as the last ones of a U-Net do: it has not
 * many times as much to learn, and not much more time for each number than the other positions explain. */
static bool sees_more(const struct sw__part *part, const struct sw__part *other)
{
    const double learns = (double)part->module->parameters;
    const double others = (double)other->module->parameters;
    return others > 0 && learns < LAYER_TIMES * others &&
           part->forward_ns * others < POSITIONS * other->forward_ns * learns;
}

/* The positions of a convolution's kernel, in those of the largest of the others; 0: not known. */
static double kernel_times(const sw_findings *all, const struct sw__model *model,
                           const struct sw__part *part)
{
    double largest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other != part && same_type(part, other)) {
            largest =
                fmax(largest, sw__setting_number(all, "kernel", other->module->name));
        }
    }
    const double kernel = sw__setting_number(all, "kernel", part->module->name);
    return kernel > 0 && largest > 0 ? kernel / largest : 0;
}

/* Whether a convolution takes longer than the others because it has more channels, as those between the first and the last of a
 * model do: its kernel is no larger than theirs. `count`: of the others. */
static bool has_channels(const sw_findings *all, const struct sw__model *model,
                         const struct sw__part *part, size_t count)
{
    const double kernel = kernel_times(all, model, part);
    double learns = 0, slowest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other != part && same_type(part, other)) {
            learns = fmax(learns, (double)other->module->parameters);
            slowest = fmax(slowest, other->forward_ns);
        }
    }
    const double more = learns > 0 ? (double)part->module->parameters / learns : 0;
    if (!(kernel > 0)) {
        /* Not known: a larger kernel has as many times the time as the parameters. */
        return count < CHANNELS_LEAST && part->forward_ns / slowest < more / 2;
    }
    return kernel < KERNEL_TIMES && (count < CHANNELS_LEAST || more < CHANNELS_TIMES ||
                                     part->forward_ns < CHANNELS_TIMES * slowest);
}

/* A convolution against all others of its model. */
static bool layer_outlier(const sw_findings *all, const struct sw__model *model,
                          const struct sw__part *part, struct outlier *out)
{
    if (!part->leaf || !part->module->type ||
        strncmp(part->module->type, "Conv", 4) != 0) {
        return false;
    }
    size_t count = 0;
    double both = 0; /* of the others, with the backward, at most */
    const struct sw__part *next = NULL;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other != part && same_type(part, other)) {
            next = !next || other->forward_ns > next->forward_ns ? other : next;
            both = fmax(both, other->step_ns);
            count++;
        }
    }
    const double second = next ? next->forward_ns : 0;
    *out = (struct outlier){.part = part,
                            .usual_ns = second,
                            .siblings = count,
                            .alike = 1,
                            .step_ns = part->step_ns,
                            .how = "the second slowest of its type"};
    if (count < 2 || !(part->forward_ns > WIDE_FORWARD_TIMES * second)) {
        return false;
    }
    const double kernel = kernel_times(all, model, part);
    out->wide = kernel >= WIDE_TIMES ? kernel : 0;
    const bool longer = part->forward_ns > LAYER_TIMES * second ||
                        (part->step_ns > LAYER_TIMES * both && out->wide > 0);
    return longer && !sees_more(part, next) && !has_channels(all, model, part, count);
}

/* Of layers that learn and are made to be large, one may well be most of the model. */
static bool may_be_large(const char *type)
{
    static const char *const names[] = {
        "Linear", "LazyLinear", "Embedding", "EmbeddingBag", "RNN",
        "LSTM",   "GRU",        "Conv",      "Multihead",    "Transformer"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strncmp(names[i], type, strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Any other layer of the framework, against all layers. */
static bool other_outlier(const struct sw__model *model, const struct sw__part *part,
                          struct outlier *out)
{
    const char *type = part->module->type;
    if (!part->leaf || !type || !sw__of_torch(type) || may_be_large(type)) {
        return false;
    }
    size_t count = 0;
    double second = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other != part && other->leaf && other->module->parameters > 0) {
            /* With the backward: that of an unusual layer may be what is slow. */
            second = other->step_ns > second ? other->step_ns : second;
            count++;
        }
    }
    *out = (struct outlier){.part = part,
                            .usual_ns = second * part->forward_ns / part->step_ns,
                            .siblings = count,
                            .alike = 1,
                            .step_ns = part->step_ns,
                            .how = "the next slowest layer"};
    return count >= 3 && part->step_ns > LAYER_TIMES * second;
}

/* Whether a layer, the only one of its class, takes several times what any other does, and still more for each number that it
 * learns. */
static bool out_of_proportion(const struct sw__model *model, const struct sw__part *part)
{
    double most = 0, dearest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other == part || !other->leaf) {
            continue;
        }
        if (same_type(part, other)) {
            return false;
        }
        const double learns = (double)other->module->parameters;
        const double each = learns > 0 ? other->step_ns / learns : 0;
        most = other->step_ns > most ? other->step_ns : most;
        dearest = each > dearest ? each : dearest;
    }
    return part->step_ns > LAYER_TIMES * most &&
           part->step_ns / (double)part->module->parameters > LAYER_TIMES * dearest;
}

/* A layer of the program's own that has next to nothing to learn and takes longer than those that have. What is a smaller share
 * of the model has to stand out more: the only one of its class, with nothing to learn, and longer than any that learns. */
static bool own_outlier(sw_findings *all, const struct sw__model *model,
                        const struct sw__part *part, double share, double *scratch,
                        struct outlier *out)
{
    const sw_training_module *module = part->module;
    if (!(share > OWN_ALONE_LEAST) || !part->leaf || module->root || !module->type ||
        sw__of_torch(module->type)) {
        return false;
    }
    size_t count = 0;
    uint64_t largest = 0;
    double slowest = 0;
    bool only = true;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        only = only && (other == part || !same_type(part, other));
        if (other != part && other->leaf && other->module->parameters > 0) {
            largest =
                other->module->parameters > largest ? other->module->parameters : largest;
            slowest = fmax(slowest, other->forward_ns);
            scratch[count++] = other->forward_ns;
        }
    }
    const bool alone = only && module->parameters == 0 &&
                       part->forward_ns > OWN_ALONE_TIMES * slowest &&
                       sw__module_code(all, module) != NULL;
    if (!(share > OWN_LEAST) && !alone) {
        return false;
    }
    if (count < 3 ||
        (module->parameters > largest / 10 && !out_of_proportion(model, part))) {
        return false;
    }
    *out = (struct outlier){.part = part,
                            .usual_ns = median(scratch, count),
                            .siblings = count,
                            .alike = 1,
                            .step_ns = part->step_ns,
                            .how = "the median of the layers that learn"};
    return part->forward_ns > BLOCK_TIMES * out->usual_ns;
}

/* Parts of one class of the program's own that compute more by themselves, outside their parts, than all layers together, and
 * each many times what any layer does: every position against every other one, and the like. `part` is the slowest of them. */
static bool own_work(const struct sw__model *model, const struct sw__part *part,
                     double compute_ns, struct outlier *out)
{
    const sw_training_module *module = part->module;
    /* Attentions of the framework are left out: over long sequences they are meant to be most of a model. */
    if (part->leaf || module->root || !module->type || sw__of_torch(module->type) ||
        module->self_ns < module->total_ns / 10 * 9) {
        return false;
    }
    size_t count = 0, alike = 0;
    double second = 0, sum = 0, own = 0, both = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (other->leaf && other->module->parameters > 0) {
            second = other->forward_ns > second ? other->forward_ns : second;
            sum += other->forward_ns;
            count++;
        }
    }
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        if (!same_type(part, other) || !(other->forward_ns > OWN_TIMES * second)) {
            continue;
        }
        if (other->forward_ns > part->forward_ns) {
            return false;
        }
        own += other->forward_ns;
        both += other->step_ns;
        alike++;
    }
    *out = (struct outlier){.part = part,
                            .usual_ns = second,
                            .siblings = count,
                            .alike = alike,
                            .step_ns = both,
                            .by_itself = true,
                            .how = "the slowest of its layers"};
    return count >= 4 && second > 0 && own > 1.5 * sum &&
           part->forward_ns > OWN_TIMES * second && both > LAYER_LEAST * compute_ns;
}

/* The only part of its class, of the program's own, that computes more by itself than all layers outside it together: a table that is
 * multiplied with instead of looked up in, and the like. What stands in a model several times is meant to be its work. */
static bool own_excess(sw_findings *all, const struct sw__model *model,
                       const struct sw__part *part, double share, double *scratch,
                       struct outlier *out)
{
    const sw_training_module *module = part->module;
    if (!(share > OWN_LEAST) || part->leaf || module->root || !module->type ||
        sw__of_torch(module->type) || module->parameters > 0) {
        return false;
    }
    const size_t length = strlen(module->name);
    size_t count = 0;
    double outside = 0, forward = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *other = &model->parts[i];
        const char *name = other->module->name;
        if (other != part && same_type(part, other)) {
            return false;
        }
        forward += other->module->root ? (double)other->module->total_ns : 0;
        if (other->leaf && other->module->parameters > 0 &&
            !(strncmp(name, module->name, length) == 0 && name[length] == '.')) {
            outside += (double)other->module->total_ns;
            scratch[count++] = other->forward_ns;
        }
    }
    const double self = (double)module->self_ns;
    if (count < 3 || !(self > EXCESS_TIMES * outside) || !(self > OWN_LEAST * forward) ||
        !sw__module_code(all, module)) {
        return false;
    }
    *out = (struct outlier){.part = part,
                            .usual_ns = median(scratch, count),
                            .siblings = count,
                            .alike = 1,
                            .step_ns = part->step_ns,
                            .by_itself = true,
                            .how = "the median of the layers beside it"};
    return part->forward_ns > BLOCK_TIMES * out->usual_ns;
}

static bool worse(const struct outlier *a, const struct outlier *b)
{
    return !b->part ||
           a->part->forward_ns - a->usual_ns > b->part->forward_ns - b->usual_ns;
}

void sw__rules_outlier(sw_findings *all, const struct sw__model *model)
{
    const struct sw__estimate compute = sw__phase_time(
        all, SW__PHASE_BIT(SW_PHASE_FORWARD) | SW__PHASE_BIT(SW_PHASE_BACKWARD));
    double *scratch = sw__arena_take(all->arena, (model->count + 1) * sizeof *scratch,
                                     _Alignof(double));
    struct outlier worst = {0};
    if (!scratch || !(compute.mean > 0)) {
        all->failed |= !scratch;
        return;
    }
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *part = &model->parts[i];
        const double share = part->step_ns / compute.mean;
        struct outlier found;
        const bool is =
            (share > BLOCK_LEAST && block_outlier(model, part, scratch, &found)) ||
            (share > LAYER_LEAST && layer_outlier(all, model, part, &found)) ||
            (share > LAYER_LEAST && other_outlier(model, part, &found)) ||
            own_outlier(all, model, part, share, scratch, &found) ||
            own_work(model, part, compute.mean, &found) ||
            own_excess(all, model, part, share, scratch, &found);
        if (is && worse(&found, &worst)) {
            worst = found;
        }
    }
    if (!worst.part) {
        return;
    }
    const sw_training_module *module = worst.part->module;
    const double share = worst.step_ns / compute.mean;
    const double times = worst.part->forward_ns / worst.usual_ns;
    const double usual_ns = worst.part->step_ns / times;
    const double alike = (double)worst.alike;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_SLOW_MODULE, "RULE-05");
    sw__draft_rule(draft, "RULE-01");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 2;
    const sw_training_site *site =
        module->site ? module->site : sw__site_of(all, SW_SITE_MODEL);
    const struct sw__hot_function *code =
        module->type && !sw__of_torch(module->type) ? sw__module_code(all, module) : NULL;
    sw__draft_where(all, draft,
                    code   ? code->frame.file
                    : site ? site->file
                           : NULL,
                    code   ? code->frame.line
                    : site ? site->line
                           : 0,
                    module->name);
    if (worst.alike > 1) {
        sw__draft_title(all, draft,
                        "%s and %zu more of class %s take %.0f %% of forward and "
                        "backward, each up to %.0f times %s",
                        module->name, worst.alike - 1, sw__text(module->type),
                        share * 100, times, worst.how);
        sw__draft_number(draft, "parts_alike", alike);
    } else {
        sw__draft_title(all, draft,
                        "%s takes %.0f %% of forward and backward, %.0f times %s",
                        module->name, share * 100, times, worst.how);
    }
    sw__draft_number(draft, "module_ms", worst.step_ns / 1e6);
    sw__draft_number(draft, "usual_ms", usual_ns / 1e6);
    sw__draft_number(draft, "compute_share", share);
    sw__draft_number(draft, "times_usual", times);
    sw__draft_number(draft, "siblings", (double)worst.siblings);
    sw__draft_number(draft, "parameters", (double)module->parameters);
    draft->finding.share = worst.step_ns / all->it.mean_ns;
    draft->finding.confidence = 0.75;
    sw__draft_advise(all, draft,
                     "Look at %s (%s)%s%s: is it meant to be %.0f times as costly as "
                     "the others?",
                     module->name, sw__text(module->type), site ? ", built in " : "",
                     site ? sw__file_name(site->file) : "", times);
    sw__draft_advise(
        all, draft, "%s",
        strncmp(sw__text(module->type), "Conv", 4) == 0
            ? "A smaller kernel, several small ones in a row, or a depthwise "
              "convolution computes much less."
        : worst.by_itself
            ? "Most of it is computed outside its layers: give it fewer positions (a "
              "smaller resolution, a window); if it is an attention, use "
              "torch.nn.functional.scaled_dot_product_attention, if it multiplies "
              "one_hot() with a table, nn.Embedding."
        : module->parameters == 0 && module->type && !sw__of_torch(module->type)
            ? "It learns nothing: compute the same in a cheaper way (channel by channel "
              "with groups=, one axis after the other, at a smaller resolution), or "
              "before the loop if its input is always the same."
            : "Make it as wide as its siblings, or use a cheaper kind of "
              "layer.");
    /* The backward of modules is measured in few steps. */
    const double excess = worst.step_ns - alike * usual_ns;
    const double most = compute.high < excess ? compute.high : excess;
    struct sw__estimate saved = {.mean = most, .low = most, .high = most};
    if (worst.wide > 0) {
        /* With a kernel like the others' it computes as much less. */
        saved.mean = fmax(saved.mean, worst.step_ns * (1 - 1 / worst.wide));
        saved.high = fmax(saved.high, worst.step_ns);
        saved.mean = fmin(saved.mean, compute.high);
        saved.high = fmin(saved.high, compute.high);
    }
    /* What it computes may have to be computed, in a cheaper way. */
    sw__draft_saves_in_steps(all, draft, saved, 1, worst.by_itself ? 0.5 : 0.8, 1.04);
}
