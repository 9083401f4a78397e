/* Rules: the model. A part that is out of proportion, operations that are too small, calls whose result nobody uses.
 *
 * In most healthy models one layer takes longest: that alone is no finding. A part is out of proportion when it takes several
 * times what its siblings do, which were made to be alike, and that is much of the whole. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
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
#define OWN_LEAST 0.35
/* … or this, of one that learns nothing, where none that learns takes half as long. */
#define OWN_ALONE_LEAST 0.2
#define OWN_ALONE_TIMES 2.0
#define OWN_TIMES 8.0
/* Calls of layers in a step, and what share of the forward the interpreter has between them. */
#define CALLS_LEAST 100
#define BETWEEN_CALLS_LEAST 0.35
#define LAUNCH_LEAST 0.1
#define EAGER_LEAST 0.4
/* What a node takes at most where the device is known to wait for the host: then it is all calling. */
#define NODE_LAUNCH_MOST_NS 250e3
/* How many nodes there are for each part of the model: what is deep is meant to be, what goes round need not. */
#define NODES_A_PART_LEAST 8
#define ROW_COUNTED 8
#define BETWEEN_NODES_LEAST 0.05
/* Of nodes of one function so many stay, whatever is put together. */
#define STAY_LEAST 4
/* Of a node that takes longer than this the rest is what it computes: of those of 14 us nearly all went in the twins of recorded
 * programs, of those of 21 and 30 us 80 and 60 %. */
#define CALL_NS 18e3

/* --- what modules cost --- */

struct part {
    const sw_training_module *module;
    size_t parent_length; /* of the name up to the last dot */
    bool leaf;            /* no part of it was called by itself */
    double forward_ns;    /* of a step, all below included: exact */
    double step_ns;       /* with the backward, which is measured in few steps */
};

struct model {
    struct part *parts;
    size_t count;
    double kinds; /* parts, of those in a long row the first few */
    double calls; /* of leaves, in a step */
    double leaf_ns;
    /* Of layers of torch's that compute for long in few calls: forward and backward. They are none of many small operations. */
    double large_ns, large_back_ns;
};

static size_t parent_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (size_t)(dot - name) : 0;
}

static bool has_parts(const sw_training_module *modules, size_t count,
                      const sw_training_module *of)
{
    const size_t length = strlen(of->name);
    for (size_t i = 0; i < count; i++) {
        if (modules[i].calls && strncmp(modules[i].name, of->name, length) == 0 &&
            modules[i].name[length] == '.') {
            return true;
        }
    }
    return false;
}

/* Whether a part lies in one of many alike that stand in a row, and not in one of the first: "heads.12.query". */
static bool one_of_many(const char *name)
{
    for (const char *dot = strchr(name, '.'); dot; dot = strchr(dot + 1, '.')) {
        char *end;
        const unsigned long number = strtoul(dot + 1, &end, 10);
        if (end > dot + 1 && *end == '.' && number >= ROW_COUNTED) {
            return true;
        }
    }
    return false;
}

/* Whether a part is a layer of torch's that computes for long in few calls. A recurrent one is many operations. */
#define LARGE_CALLS_MOST 4
#define LARGE_CALL_NS 300e3
static bool is_large(const struct part *part, uint64_t steps)
{
    const sw_training_module *module = part->module;
    return part->leaf && module->type && sw__of_torch(module->type) &&
           !strstr(module->type, "RNN") && !strstr(module->type, "GRU") &&
           !strstr(module->type, "LSTM") &&
           (double)module->calls <= LARGE_CALLS_MOST * (double)steps &&
           (double)module->total_ns > LARGE_CALL_NS * (double)module->calls;
}

/* The parts that were called. Models of more than some thousand parts are looked at in part: the ones with most time. */
enum { PARTS_MOST = 2048 };

static bool find_parts(sw_findings *all, struct model *model)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_all_steps(all->it.summary, &steps, &total);
    count = count < PARTS_MOST ? count : PARTS_MOST;
    uint64_t roots = 0;
    for (size_t i = 0; i < count; i++) {
        roots = sw__add(roots, modules[i].root ? modules[i].backward_ns : 0);
    }
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    *model = (struct model){.parts = sw__arena_take(all->arena,
                                                    (count + 1) * sizeof *model->parts,
                                                    _Alignof(struct part))};
    if (!model->parts || steps == 0) {
        all->failed |= !model->parts;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *module = &modules[i];
        if (module->calls == 0 || module->loss) {
            continue;
        }
        struct part *part = &model->parts[model->count++];
        model->kinds += !one_of_many(module->name);
        /* Measured in few steps: it is their part of the backward that counts. */
        const double part_of_backward =
            roots ? (double)module->backward_ns / (double)roots : 0;
        *part = (struct part){.module = module,
                              .parent_length = parent_length(module->name),
                              /* A wrapper's parts have names of their own. */
                              .leaf = 10 * (module->self_ns / 9) >= module->total_ns &&
                                      !has_parts(modules, count, module),
                              .forward_ns = (double)module->total_ns / (double)steps,
                              .step_ns = (double)module->total_ns / (double)steps +
                                         part_of_backward * backward.mean};
        if (part->leaf) {
            model->calls += (double)module->calls / (double)steps;
            model->leaf_ns += (double)module->total_ns / (double)steps;
        }
        if (is_large(part, steps)) {
            model->large_ns += part->forward_ns;
            model->large_back_ns += part->step_ns - part->forward_ns;
        }
    }
    return model->count > 0;
}

/* --- out of proportion --- */

struct outlier {
    const struct part *part;
    double usual_ns; /* of its forward, if it were like its siblings */
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

static bool same_type(const struct part *a, const struct part *b)
{
    return a->module->type && b->module->type &&
           strcmp(a->module->type, b->module->type) == 0;
}

static bool in_a_row(const struct part *a, const struct part *b)
{
    return a->parent_length == b->parent_length &&
           strncmp(a->module->name, b->module->name, a->parent_length) == 0;
}

static bool numbered(const struct part *part)
{
    const char *last = part->module->name + part->parent_length;
    return *last == '.' && last[1] >= '0' && last[1] <= '9';
}

/* Blocks of one class in a row (layers.0, layers.1 …). */
static bool block_outlier(const struct model *model, const struct part *part,
                          double *scratch, struct outlier *out)
{
    if (part->leaf || !numbered(part)) {
        return false;
    }
    size_t count = 0;
    double slowest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct part *other = &model->parts[i];
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
static bool sees_more(const struct part *part, const struct part *other)
{
    const double learns = (double)part->module->parameters;
    const double others = (double)other->module->parameters;
    return others > 0 && learns < LAYER_TIMES * others &&
           part->forward_ns * others < POSITIONS * other->forward_ns * learns;
}

/* A convolution against all others of its model. */
static bool layer_outlier(const struct model *model, const struct part *part,
                          struct outlier *out)
{
    if (!part->leaf || !part->module->type ||
        strncmp(part->module->type, "Conv", 4) != 0) {
        return false;
    }
    size_t count = 0;
    const struct part *next = NULL;
    for (size_t i = 0; i < model->count; i++) {
        const struct part *other = &model->parts[i];
        if (other != part && same_type(part, other)) {
            next = !next || other->forward_ns > next->forward_ns ? other : next;
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
    return count >= 2 && part->forward_ns > LAYER_TIMES * second &&
           !sees_more(part, next);
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
static bool other_outlier(const struct model *model, const struct part *part,
                          struct outlier *out)
{
    const char *type = part->module->type;
    if (!part->leaf || !type || !sw__of_torch(type) || may_be_large(type)) {
        return false;
    }
    size_t count = 0;
    double second = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct part *other = &model->parts[i];
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
static bool out_of_proportion(const struct model *model, const struct part *part)
{
    double most = 0, dearest = 0;
    for (size_t i = 0; i < model->count; i++) {
        const struct part *other = &model->parts[i];
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
static bool own_outlier(sw_findings *all, const struct model *model,
                        const struct part *part, double share, double *scratch,
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
        const struct part *other = &model->parts[i];
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
static bool own_work(const struct model *model, const struct part *part,
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
        const struct part *other = &model->parts[i];
        if (other->leaf && other->module->parameters > 0) {
            second = other->forward_ns > second ? other->forward_ns : second;
            sum += other->forward_ns;
            count++;
        }
    }
    for (size_t i = 0; i < model->count; i++) {
        const struct part *other = &model->parts[i];
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

static bool worse(const struct outlier *a, const struct outlier *b)
{
    return !b->part ||
           a->part->forward_ns - a->usual_ns > b->part->forward_ns - b->usual_ns;
}

static void slow_module(sw_findings *all, const struct model *model)
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
        const struct part *part = &model->parts[i];
        const double share = part->step_ns / compute.mean;
        struct outlier found;
        const bool is =
            (share > BLOCK_LEAST && block_outlier(model, part, scratch, &found)) ||
            (share > LAYER_LEAST && layer_outlier(model, part, &found)) ||
            (share > LAYER_LEAST && other_outlier(model, part, &found)) ||
            own_outlier(all, model, part, share, scratch, &found) ||
            own_work(model, part, compute.mean, &found);
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
              "smaller resolution, a window), or, if it is an attention, use "
              "torch.nn.functional.scaled_dot_product_attention."
        : module->parameters == 0 && module->type && !sw__of_torch(module->type)
            ? "It learns nothing: compute the same in a cheaper way (channel by channel "
              "with groups=, one axis after the other, at a smaller resolution), or "
              "before the loop if its input is always the same."
            : "Make it as wide as its siblings, or use a cheaper kind of "
              "layer.");
    /* The backward of modules is measured in few steps. */
    const double excess = worst.step_ns - alike * usual_ns;
    const double most = compute.high < excess ? compute.high : excess;
    const struct sw__estimate saved = {.mean = most, .low = most, .high = most};
    /* What it computes may have to be computed, in a cheaper way. */
    sw__draft_saves_in_steps(all, draft, saved, 1, worst.by_itself ? 0.5 : 0.8, 1.04);
}

/* --- operations that are too small --- */

/* Time of the user's functions that call small operations one by one inside the model. */
static struct sw__estimate small_calls(sw_findings *all,
                                       const struct sw__hot_function **top)
{
    size_t count;
    uint64_t sum[SW_PHASE_COUNT] = {0};
    const struct sw__hot_function *list =
        sw__hot_functions(all, SW__COMPUTE_PHASES & ~SW__PHASE_BIT(SW_PHASE_BACKWARD),
                          SW__HOT_ANY, false, &count);
    *top = NULL;
    for (size_t i = 0; i < count; i++) {
        const double python = (double)list[i].interpreted / (double)(list[i].own + 1);
        if (sw__hot_interpreted(all, &list[i]) && python < 0.4) {
            for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
                sum[p] += list[i].own_by_phase[p];
            }
            *top = !*top || list[i].own > (*top)->own ? &list[i] : *top;
        }
    }
    return sw__hot_time(all, sum);
}

/* What autograd goes back through; all 0 where it was not looked at. */
struct graph {
    double nodes;
    double node_ns;
    double again; /* how often the same function comes on average */
};

static struct graph find_graph(sw_findings *all, const struct model *model)
{
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double nodes = sw__setting_number(all, "autograd", "nodes");
    const double functions = sw__setting_number(all, "autograd", "functions");
    struct graph graph = {0};
    /* What the thread waited for a core is no part of them. */
    const double wait = sw__core_wait(all);
    const double ran = wait > 0 && wait < 1 ? 1 - wait : 1;
    const double small = fmax(0.1 * backward.high, backward.high - model->large_back_ns);
    if (nodes > 0 && functions > 0 && backward.mean > 0) {
        graph = (struct graph){
            .nodes = nodes, .node_ns = small * ran / nodes, .again = nodes / functions};
    }
    return graph;
}

/* JAX outside jit: every operation is a call of its own, and Python's. */
static bool eager_jax(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    /* Its stacks are deep and change all the time, so that often only the innermost frames are seen: enough for this, where
     * there is little else. */
    const bool few = hot->samples < 50;
    const uint64_t samples = hot->samples + (few ? hot->torn : 0);
    const sw_share eager = sw_share_of(hot->eager + (few ? hot->torn_eager : 0), samples);
    if (samples < 50 || !(eager.low > EAGER_LEAST) || sw__computes_throughout(all)) {
        return false;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    const struct sw__hot_function *at =
        sw__hot_where_called(all, draft, SW__PHASE_BIT(SW_PHASE_OTHER));
    draft->group = SW__GROUP_HOST;
    sw__draft_title(all, draft,
                    "%.0f %% of a step is JAX calling operations one by one, outside jit",
                    eager.share * 100);
    sw__draft_number(draft, "eager_share", eager.share);
    sw__draft_number(draft, "samples", (double)samples);
    draft->finding.share = eager.share;
    draft->finding.confidence = 0.85;
    sw__draft_advise(
        all, draft, "Put jax.jit on the function that does a step%s%s%s.", at ? " (" : "",
        at ? sw__findings_format(all, "%s, line %u of %s", at->frame.name, at->frame.line,
                                 sw__file_name(at->frame.file))
           : "",
        at ? ")" : "");
    /* The program's own code between those calls goes with them, once it is traced. */
    const double other =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_OTHER)).mean / all->it.mean_ns;
    const double traced = other > eager.share ? 0.8 * (other - eager.share) : 0;
    /* Where the thread sleeps, others compute what was compiled: that stays. Compiled together it goes through memory less often,
     * and cores that are free then may share it. */
    const double step = all->it.mean_ns;
    const sw_share asleep = sw_share_of(hot->phase_waiting[SW_PHASE_OTHER], hot->samples);
    const double stays = fmin(asleep.share * step, sw__computed_beside(all));
    const double cores = all->it.cores > 1 ? all->it.cores : 1;
    if (stays > 0) {
        sw__draft_number(draft, "computed_beside_ms", stays / 1e6);
    }
    const struct sw__estimate time = {.mean = (eager.share + traced) * step - 0.5 * stays,
                                      .low = eager.low * step - stays,
                                      .high = step - 0.5 * stays / cores};
    sw__draft_saves_in_steps(all, draft, time, 0.96, 0.7, 0.99);
    return true;
}

static void launch_bound(sw_findings *all, const struct model *model)
{
    const struct sw__hot *hot = sw__hot_code(all);
    if (eager_jax(all)) {
        return;
    }
    if (hot->samples < 50 || !all->it.steps->phase[SW_PHASE_FORWARD].measured) {
        sw__findings_unchecked(all, SW_FINDING_LAUNCH_BOUND, "%s",
                               hot->samples < 50
                                   ? "the sampler did not run, or saw too little"
                                   : "no forward was seen");
        return;
    }
    const struct sw__estimate forward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD));
    const struct sw__estimate both = sw__phase_time(
        all, SW__PHASE_BIT(SW_PHASE_FORWARD) | SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const sw_share between = sw_share_of(hot->phase_interpreted[SW_PHASE_FORWARD],
                                         hot->phase_samples[SW_PHASE_FORWARD]);
    const struct sw__hot_function *top;
    const struct sw__estimate own = small_calls(all, &top);
    const bool by_modules =
        model->calls >= CALLS_LEAST && between.low > BETWEEN_CALLS_LEAST;
    const struct graph graph = find_graph(all, model);
    /* An operation of the framework may be many nodes, too (nn.GRU): then no Python lies between them. */
    const bool idles = sw__device_idles(all);
    const bool by_graph =
        (between.low > BETWEEN_NODES_LEAST || idles) && graph.nodes >= SW__NODES_LEAST &&
        graph.node_ns < (idles                           ? NODE_LAUNCH_MOST_NS
                         : graph.nodes >= SW__NODES_MANY ? SW__NODE_OF_MANY_NS
                                                         : SW__NODE_MOST_NS) &&
        graph.again >= SW__AGAIN_LEAST && graph.nodes > NODES_A_PART_LEAST * model->kinds;
    const bool by_code = own.low > 0.5 * forward.mean && !by_graph;
    if ((!by_modules && !by_code && !by_graph) ||
        !(both.low / all->it.mean_ns > LAUNCH_LEAST)) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 1;
    size_t count;
    const struct sw__hot_function *list = sw__hot_functions(
        all, SW__PHASE_BIT(SW_PHASE_FORWARD), SW__HOT_ANY, false, &count);
    const sw_stack_frame *at = by_code ? &top->frame : list ? &list->frame : NULL;
    if (at) {
        sw__draft_where(all, draft, at->file, at->line, at->name);
    }
    if (by_graph) {
        sw__draft_title(
            all, draft,
            "The model is many small operations: %.0f to go back through, %.0f us "
            "each",
            graph.nodes, graph.node_ns / 1e3);
    } else {
        sw__draft_title(
            all, draft,
            "The model is many small operations: %.0f %% of its forward passes "
            "between them",
            between.share * 100);
    }
    sw__draft_number(draft, "forward_ms", forward.mean / 1e6);
    sw__draft_number(draft, "between_operations_share", between.share);
    sw__draft_number(draft, "layer_calls_per_step", model->calls);
    sw__draft_number(draft, "us_per_layer_call",
                     model->calls > 0 ? model->leaf_ns / model->calls / 1e3 : NAN);
    draft->finding.share = both.mean / all->it.mean_ns;
    draft->finding.confidence = by_graph ? 0.8 : by_code ? 0.7 : 0.6;
    if (graph.nodes > 0) {
        sw__draft_number(draft, "graph_nodes", graph.nodes);
        sw__draft_number(draft, "us_per_graph_node", graph.node_ns / 1e3);
    }
    if ((by_code || by_graph) && at) {
        sw__draft_advise(all, draft,
                         "Take the loop in %s, line %u of %s, out: one operation on the "
                         "whole batch or sequence instead of one for each element.",
                         at->name, at->line, sw__file_name(at->file));
    }
    sw__draft_advise(all, draft,
                     "torch.compile puts small operations together, also where each turn "
                     "of a loop needs the one before; larger batches make each of them "
                     "worth its call.");
    if (by_graph) {
        /* The repeated ones become one; some stay, and the mathematics. */
        const double calls =
            graph.node_ns > CALL_NS && !idles ? CALL_NS / graph.node_ns : 1;
        const double stay =
            idles ? 4 : 12; /* a device that waits has little to compute */
        const double most = (1 - stay / graph.again) * calls;
        const double usual = most < 0.3 ? 0.3 : most;
        const double few = 1 - STAY_LEAST / graph.again;
        const double large = fmin(model->large_ns + model->large_back_ns, 0.9 * both.low);
        const struct sw__estimate small = {both.mean - large, both.low - large,
                                           both.high - large, both.count};
        sw__draft_saves_in_steps(all, draft, small, usual, 0.5 * usual,
                                 few > usual ? few : usual);
    } else {
        sw__draft_saves_in_steps(all, draft, both, by_code ? 0.93 : 0.4,
                                 by_code ? 0.5 : 0.1, by_code ? 0.99 : 0.7);
    }
}

void sw__rules_modules(sw_findings *all)
{
    struct model model;
    const bool parts = find_parts(all, &model);
    if (sw__has_device(all)) {
        /* A call that is slow waits for room in the device's queue, whoever filled it. */
        sw__findings_unchecked(
            all, SW_FINDING_SLOW_MODULE,
            "modules are timed on the host, which only hands their work "
            "to the device");
    } else if (parts) {
        slow_module(all, &model);
        sw__rules_picked(all);
    } else {
        sw__findings_unchecked(all, SW_FINDING_SLOW_MODULE, "no modules were recorded");
    }
    if (!sw__rules_alike(all)) {
        launch_bound(all, &model);
    }
    sw__rules_graph(all);
    sw__rules_asked(all);
    sw__rules_redundant(all);
}
