/* Rules: the model. What its parts cost, and operations that are too small. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/model_parts.h"
#include "analyze/summary.h"

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
/* Of the forward, in parts of the program's own by themselves: then the graph is made there. */
#define OWN_PARTS_LEAST 0.5
#define BACK_THROUGH_LEAST 0.7 /* of the backward, through the model */
/* Fewer samples show nothing. */
#define SAMPLES_LEAST 50
/* Of nodes of one function so many stay, whatever is put together. */
#define STAY_LEAST 4
/* Of a node that takes longer than this the rest is what it computes: of those of 14 us nearly all went in the twins of recorded
 * programs, of those of 21 and 30 us 80 and 60 %. */
#define CALL_NS 18e3

/* --- what modules cost --- */

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
static bool is_large(const struct sw__part *part, uint64_t steps)
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

static bool find_parts(sw_findings *all, struct sw__model *model)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    count = count < PARTS_MOST ? count : PARTS_MOST;
    uint64_t roots = 0;
    for (size_t i = 0; i < count; i++) {
        roots = sw__add(roots, modules[i].root ? modules[i].backward_ns : 0);
    }
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    *model = (struct sw__model){
        .parts = sw__arena_take(all->arena, (count + 1) * sizeof *model->parts,
                                _Alignof(struct sw__part))};
    if (!model->parts || steps == 0) {
        all->failed |= !model->parts;
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *module = &modules[i];
        if (module->calls == 0 || module->loss) {
            continue;
        }
        struct sw__part *part = &model->parts[model->count++];
        model->kinds += !one_of_many(module->name);
        /* Measured in few steps: it is their part of the backward that counts. */
        const double part_of_backward =
            roots ? (double)module->backward_ns / (double)roots : 0;
        *part =
            (struct sw__part){.module = module,
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

static struct graph find_graph(sw_findings *all, const struct sw__model *model)
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

/* Where the program's own parts compute by themselves, outside their parts. */
struct own_parts {
    const sw_training_module *most; /* NULL: there are none */
    double ns;                      /* all of them, in a step */
    double back_ns;                 /* of whole models, in the backward of a step */
};

static struct own_parts find_own_parts(const struct sw__model *model)
{
    struct own_parts own = {0};
    for (size_t i = 0; i < model->count; i++) {
        const struct sw__part *part = &model->parts[i];
        const sw_training_module *at = part->module;
        if (at->total_ns == 0) {
            continue;
        }
        if (at->root && at->backward_calls) {
            const double times = part->forward_ns * (double)at->calls /
                                 (double)at->total_ns; /* it is called in a step */
            own.back_ns += times * (double)at->backward_ns / (double)at->backward_calls;
        }
        if (at->type && !sw__of_torch(at->type) &&
            strcmp(at->type, "OptimizedModule") != 0) {
            own.ns += part->forward_ns * (double)at->self_ns / (double)at->total_ns;
            own.most = !own.most || at->self_ns > own.most->self_ns ? at : own.most;
        }
    }
    return own;
}

/* Whether Python lies between the operations of the model, without samples that tell: most of the forward is what the program's own
 * parts do by themselves, the backward goes through little else, and a node is made in so few microseconds that the calls are much
 * of them. An operation of the framework that is many nodes (nn.GRU) is a part of its own. */
static bool calls_by_itself(const struct own_parts *own, double forward_ns,
                            double backward_ns, double nodes)
{
    return own->ns > OWN_PARTS_LEAST * forward_ns &&
           own->back_ns > BACK_THROUGH_LEAST * backward_ns &&
           own->ns < nodes * SW__NODE_MADE_NS;
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

static void launch_bound(sw_findings *all, const struct sw__model *model)
{
    const struct sw__hot *hot = sw__hot_code(all);
    if (eager_jax(all)) {
        return;
    }
    /* What autograd went through was counted, whatever the sampler saw. */
    const bool unseen = hot->samples < SAMPLES_LEAST;
    if (!all->it.steps->phase[SW_PHASE_FORWARD].measured) {
        sw__findings_unchecked(all, SW_FINDING_LAUNCH_BOUND, "%s",
                               unseen ? "the sampler did not run, or saw too little"
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
        !unseen && model->calls >= CALLS_LEAST && between.low > BETWEEN_CALLS_LEAST;
    const struct graph graph = find_graph(all, model);
    /* An operation of the framework may be many nodes, too (nn.GRU): then no Python lies between them. */
    const struct own_parts parts = find_own_parts(model);
    const bool idles = !unseen && sw__device_idles(all);
    const bool python = unseen ? calls_by_itself(&parts, forward.mean,
                                                 both.mean - forward.mean, graph.nodes)
                               : between.low > BETWEEN_NODES_LEAST;
    const bool by_graph =
        (python || idles) && graph.nodes >= SW__NODES_LEAST &&
        graph.node_ns < (idles                           ? NODE_LAUNCH_MOST_NS
                         : graph.nodes >= SW__NODES_MANY ? SW__NODE_OF_MANY_NS
                                                         : SW__NODE_MOST_NS) &&
        graph.again >= SW__AGAIN_LEAST && graph.nodes > NODES_A_PART_LEAST * model->kinds;
    const bool by_code = !unseen && own.low > 0.5 * forward.mean && !by_graph;
    if (unseen && !by_graph) {
        sw__findings_unchecked(all, SW_FINDING_LAUNCH_BOUND,
                               "the sampler did not run, or saw too little");
        return;
    }
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
    } else if (parts.most) {
        const sw_training_site *site =
            parts.most->site ? parts.most->site : sw__site_of(all, SW_SITE_MODEL);
        sw__draft_where(all, draft, site ? site->file : NULL, site ? site->line : 0,
                        parts.most->name);
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
    struct sw__model model;
    const bool parts = find_parts(all, &model);
    if (sw__has_device(all)) {
        /* A call that is slow waits for room in the device's queue, whoever filled it. */
        sw__findings_unchecked(
            all, SW_FINDING_SLOW_MODULE,
            "modules are timed on the host, which only hands their work "
            "to the device");
    } else if (parts) {
        sw__rules_outlier(all, &model);
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
