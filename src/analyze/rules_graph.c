/* Rules: what the backward goes through and no forward of a module has made. A loss or a filter of the program's own, computed
 * for one element after the other with small operations. */
#include <math.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_rounds.h"

#define LAUNCH_LEAST 0.1
/* So many calls of the same layers in a step could be one, with all elements in it. */
#define TIMES_LEAST 4
/* Of nodes of one function so many stay where rounds of a loop are put together: as a rule, and at best. */
#define STAY 12
#define STAY_LEAST 4

/* How often the layers of the model are called in a step, in the middle. */
static double times_called(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    double calls = 0;
    double layers = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; steps > 0 && i < count; i++) {
        if (modules[i].calls > 0 && !modules[i].loss) {
            calls += (double)modules[i].calls / (double)steps;
            layers++;
        }
    }
    return layers > 0 ? calls / layers : 0;
}

/* The time of the program's own code up to the backward that belongs to no phase, and the function with most of it; with
 * `losses` also that in losses, and what such functions call. */
static struct sw__estimate made_outside(sw_findings *all, bool losses,
                                        const struct sw__hot_function **top)
{
    size_t count;
    uint64_t sum[SW_PHASE_COUNT] = {0};
    const uint64_t phases =
        SW__PHASE_BIT(SW_PHASE_OTHER) | (losses ? SW__PHASE_BIT(SW_PHASE_LOSS) : 0);
    const struct sw__hot_function *list =
        sw__hot_functions(all, phases, SW__HOT_BETWEEN | SW__HOT_UNKNOWN, false, &count);
    *top = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!sw__hot_interpreted(all, &list[i])) {
            continue;
        }
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            if (phases & SW__PHASE_BIT(p)) {
                sum[p] += losses ? list[i].by_phase[p] : list[i].own_by_phase[p];
            }
        }
        *top = !*top || list[i].own > (*top)->own ? &list[i] : *top;
    }
    return sw__hot_time(all, sum);
}

/* Whether the loop around a line does the same for one element after the other, as its source reads. */
static bool rounds_apart(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool apart = source.text && sw__source_rounds_apart(source.text, source.length,
                                                              at->first_line, at->line);
    sw__frame_source_free(&source);
    return apart;
}

/* The backward of whole models, in ns a step: that of what they computed. */
static double backward_of_models(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    double ns = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; steps > 0 && i < count; i++) {
        if (modules[i].root && !modules[i].loss && modules[i].backward_calls > 0) {
            ns += (double)modules[i].backward_ns / (double)modules[i].backward_calls *
                  (double)modules[i].calls / (double)steps;
        }
    }
    return ns;
}

/* The model is called for all elements at once, and what follows is computed for each by itself. */
static void one_by_one(sw_findings *all, const sw_stack_frame *at, double nodes,
                       double again, struct sw__estimate made)
{
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double stays = fmin(backward_of_models(all), 0.9 * backward.mean);
    const struct sw__estimate time = {.mean = made.mean + backward.mean - stays,
                                      .low = made.low + 0.5 * (backward.low - stays),
                                      .high = made.high + backward.high - stays};
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 1;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    const double node_ns = (backward.mean - stays) / nodes;
    sw__draft_title(all, draft,
                    "%s makes many small operations, for one element after the other: "
                    "%.0f to go back through, %.0f us each",
                    at->name, nodes, node_ns / 1e3);
    sw__draft_number(draft, "made_ms", made.mean / 1e6);
    sw__draft_number(draft, "backward_ms", backward.mean / 1e6);
    sw__draft_number(draft, "backward_of_models_ms", stays / 1e6);
    sw__draft_number(draft, "graph_nodes", nodes);
    sw__draft_number(draft, "us_per_graph_node", node_ns / 1e3);
    draft->finding.share = time.mean / all->it.mean_ns;
    draft->finding.confidence = 0.75;
    sw__draft_advise(
        all, draft,
        "The loop around line %u of %s does the same for each element, and no "
        "round needs what another made: compute it for all at once, with a "
        "dimension more.",
        at->line, sw__file_name(at->file));
    sw__draft_advise(all, draft,
                     "torch.vmap makes one call of a function that is written for one "
                     "element.");
    const double part = fmax(0.3, 1 - STAY / again);
    sw__draft_saves_in_steps(all, draft, time, part, 0.6 * part,
                             fmax(part, 1 - STAY_LEAST / again));
}

/* Where the loop with the small operations is, if it does the same for one element after the other. The function may be written
 * for one element, and what calls it goes through them. */
static const sw_stack_frame *rounds_of(const struct sw__hot_function *top)
{
    const sw_stack_frame *rounds = rounds_apart(&top->frame) ? &top->frame : top->caller;
    return rounds && (rounds == &top->frame || rounds_apart(rounds)) ? rounds : NULL;
}

/* A loss that is computed for each element, beside a model that takes its own time. */
static void beside_model(sw_findings *all, double nodes, double again)
{
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double stays = backward_of_models(all);
    const struct sw__hot_function *top;
    const struct sw__estimate made = made_outside(all, true, &top);
    const double through = backward.mean - stays;
    if (!top || !(stays > 0) || !(through > 0) || !(through / nodes < SW__NODE_MOST_NS) ||
        !(made.mean / nodes < SW__NODE_MOST_NS) ||
        !((made.low + 0.5 * through) / all->it.mean_ns > LAUNCH_LEAST) ||
        times_called(all) >= TIMES_LEAST) {
        return;
    }
    const sw_stack_frame *rounds = rounds_of(top);
    if (rounds) {
        one_by_one(all, rounds, nodes, again, made);
    }
}

void sw__rules_graph(sw_findings *all)
{
    const double nodes = sw__setting_number(all, "autograd", "nodes");
    const double functions = sw__setting_number(all, "autograd", "functions");
    const struct sw__estimate forward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD));
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double step = all->it.mean_ns;
    if (sw__has_draft(all, SW_FINDING_LAUNCH_BOUND) || !(nodes >= SW__NODES_LEAST) ||
        !(nodes >= SW__AGAIN_LEAST * functions)) {
        return;
    }
    const struct sw__hot_function *top;
    const struct sw__estimate made = made_outside(all, false, &top);
    if (!(backward.high / nodes < SW__NODE_MOST_NS) || !top ||
        !(made.low > forward.mean) || !(made.mean / nodes < SW__NODE_MADE_NS) ||
        !((made.low + backward.low) / step > LAUNCH_LEAST)) {
        beside_model(all, nodes, nodes / functions);
        return;
    }
    const sw_stack_frame *at = &top->frame;
    const double times = times_called(all);
    const struct sw__estimate time = {.mean = made.mean + forward.mean + backward.mean,
                                      .low = made.low + backward.low,
                                      .high = made.high + forward.high + backward.high};
    const sw_stack_frame *rounds = times < TIMES_LEAST ? rounds_of(top) : NULL;
    if (rounds) {
        one_by_one(all, rounds, nodes, nodes / functions, made);
        return;
    }
    if (times < TIMES_LEAST) {
        /* One thing follows from the other, as far as anybody can tell: then there is nothing to put together. */
        sw__findings_note(all,
                          "%.0f %% of a step is %.0f small operations, most of them made "
                          "in %s (%s:%u): torch.compile may put them together.",
                          100 * time.mean / step, nodes, at->name,
                          sw__file_name(at->file), at->line);
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 1;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%s makes many small operations: %.0f to go back through, %.0f us "
                    "each",
                    at->name, nodes, backward.mean / nodes / 1e3);
    sw__draft_number(draft, "made_ms", made.mean / 1e6);
    sw__draft_number(draft, "backward_ms", backward.mean / 1e6);
    sw__draft_number(draft, "graph_nodes", nodes);
    sw__draft_number(draft, "us_per_graph_node", backward.mean / nodes / 1e3);
    sw__draft_number(draft, "calls_of_a_layer_per_step", times);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.8;
    sw__draft_advise(all, draft,
                     "The model is called %.0f times in a step, and %s, line %u of %s, "
                     "goes on with each result by itself: do it once for the whole "
                     "batch.",
                     times, at->name, at->line, sw__file_name(at->file));
    sw__draft_advise(all, draft,
                     "torch.compile puts small operations together; torch.vmap makes one "
                     "call of a function that is written for one element.");
    /* Of so many calls one stays. */
    const double part = 1 - 1 / times;
    sw__draft_saves_in_steps(all, draft, time, part, 0.6 * part, 1);
}
