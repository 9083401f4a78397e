/* Rules: work whose result nobody uses, or that is the same in every step. */
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define REDUNDANT_LEAST 0.05

/* The user's function that is a module's forward: by the name of its class. */
static const struct sw__hot_function *module_code(sw_findings *all,
                                                  const sw_training_module *module)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, SW__COMPUTE_PHASES, SW__HOT_ANY, false, &count);
    const size_t length = strlen(module->type);
    for (size_t i = 0; i < count; i++) {
        const char *name = strstr(list[i].frame.name, module->type);
        if (name && name[length] == '.') {
            return &list[i];
        }
    }
    return NULL;
}

static int ascending(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* How many steps have most of `ns` (over all of them) beyond the usual forward; 0: it is in every step, or nobody knows. */
static size_t now_and_then(sw_findings *all, double ns)
{
    const struct sw__case *it = &all->it;
    uint64_t *forward = sw__alloc_zero(it->count + 1, sizeof *forward);
    all->failed |= !forward;
    for (size_t i = 0; forward && i < it->count; i++) {
        forward[i] = it->step[i].phase_ns[SW_PHASE_FORWARD];
    }
    double excess = 0;
    size_t times = 0;
    if (forward) {
        qsort(forward, it->count, sizeof *forward, ascending);
        const uint64_t usual = forward[it->count / 2];
        for (size_t i = 0; i < it->count; i++) {
            const bool more = forward[i] > 2 * usual;
            excess += more ? (double)(forward[i] - usual) : 0;
            times += more;
        }
    }
    sw__free(forward);
    return excess > 0.6 * ns && 2 * times < it->count ? times : 0;
}

/* A validation that says neither eval() nor no_grad(): the model is called over and over after the update of some steps. */
static void validates(sw_findings *all, const sw_stack_frame *at,
                      struct sw__estimate time, size_t times)
{
    const double share = time.mean / all->it.mean_ns;
    if (!(share > SW__VALIDATION_LEAST) || times < 2 ||
        sw__has_draft(all, SW_FINDING_VALIDATION)) {
        return; /* it may have that */
    }
    const double ns = time.mean * (double)all->it.steps->counted;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_VALIDATION, "RULE-62");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of the time the model is called after the update of some "
                    "steps, which trains nothing (%s:%u)",
                    share * 100, sw__file_name(at->file), at->line);
    sw__draft_number(draft, "validation_share", share);
    sw__draft_number(draft, "validation_s", ns / 1e9);
    sw__draft_number(draft, "validations", (double)times);
    sw__draft_number(draft, "steps_between", (double)all->it.count / (double)times);
    draft->finding.share = share;
    draft->finding.confidence = 0.7;
    sw__draft_advise(all, draft,
                     "Validate a tenth as often, or on a part of the data (%s, line %u).",
                     sw__file_name(at->file), at->line);
    sw__draft_advise(all, draft,
                     "Call model.eval(), and the model under torch.no_grad() or "
                     "torch.inference_mode(): nothing is kept for a backward then.");
    sw__draft_saves_in_steps(all, draft, time, 0.9, 0.5, 1);
}

/* A forward after the backward trains nothing. */
static bool forward_after(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    uint64_t after[SW_PHASE_COUNT] = {0};
    const struct sw__hot_line *top = NULL;
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (line->phase == SW_PHASE_FORWARD && line->when == SW__HOT_AFTER) {
            after[SW_PHASE_FORWARD] += line->samples;
            top = !top || line->samples > top->samples ? line : top;
        }
    }
    const struct sw__estimate time = sw__hot_time(all, after);
    const double step = all->it.mean_ns;
    if (!top || !(time.low / step > REDUNDANT_LEAST)) {
        return false;
    }
    const sw_stack_frame *at = top->entry ? top->entry : top->frame;
    const size_t times = now_and_then(all, time.mean * (double)all->it.count);
    if (times > 0) {
        validates(all, at, time, times);
        return true;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%.0f %% of a step is a forward after the backward, which trains "
                    "nothing (%s:%u)",
                    100 * time.mean / step, sw__file_name(at->file), at->line);
    sw__draft_number(draft, "forward_after_ms", time.mean / 1e6);
    sw__draft_number(draft, "forward_after_share", time.mean / step);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.6;
    sw__draft_advise(
        all, draft,
        "Use the output that the loss was computed from, instead of calling "
        "the model once more; if it is needed, call it under torch.no_grad() "
        "and not in every step.");
    sw__draft_saves_in_steps(all, draft, time, 1, 0.7, 1);
    return true;
}

static bool is_forward(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;
    return strcmp(last, "forward") == 0 || strcmp(last, "training_step") == 0 ||
           strcmp(last, "__call__") == 0 || strcmp(last, "<module>") == 0;
}

/* What learns takes longer in the backward than in the forward. A function that is much of the forward, of a model whose
 * backward is short, depends on nothing that learns: its result is the same whenever its input is. */
static bool not_in_backward(sw_findings *all)
{
    const struct sw__estimate forward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD));
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    size_t count;
    const struct sw__hot_function *list = sw__hot_functions(
        all, SW__PHASE_BIT(SW_PHASE_FORWARD), SW__HOT_ANY, false, &count);
    const struct sw__hot_function *top = NULL;
    for (size_t i = 0; i < count && !top; i++) {
        top = is_forward(list[i].frame.name) ? NULL : &list[i];
    }
    const struct sw__estimate time =
        top ? sw__hot_time(all, top->by_phase) : (struct sw__estimate){0};
    const double step = all->it.mean_ns;
    if (!top || !(forward.low > 1.2 * backward.high) ||
        !(time.low > 0.3 * forward.mean) || !(time.low / step > 2 * REDUNDANT_LEAST) ||
        backward.high > 3 * (forward.mean - time.low)) {
        return false;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    const sw_stack_frame *at = &top->frame;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(
        all, draft,
        "%.0f %% of a step is %s in the forward, which no backward goes through "
        "(%s:%u)",
        100 * time.mean / step, at->name, sw__file_name(at->file), at->line);
    sw__draft_number(draft, "function_ms", time.mean / 1e6);
    sw__draft_number(draft, "forward_ms", forward.mean / 1e6);
    sw__draft_number(draft, "backward_ms", backward.mean / 1e6);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.6;
    sw__draft_advise(all, draft,
                     "%s, line %u of %s, depends on nothing that learns: if its input is "
                     "always the same, compute it once before the loop and keep it.",
                     at->name, at->line, sw__file_name(at->file));
    sw__draft_advise(all, draft,
                     "If it depends on the batch, let the loader's workers do it.");
    sw__draft_saves_in_steps(all, draft, time, 0.97, 0.6, 1);
    return true;
}

/* A module of the user's own that takes long in the forward and next to nothing in the backward: most of what it computes
 * depends on nothing that learns. One without any backward is meant to learn nothing, such as a teacher. */
static bool module_without_backward(sw_findings *all)
{
    if (sw__has_device(all)) {
        return false; /* modules are timed on the host, which does not compute them */
    }
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_all_steps(all->it.summary, &steps, &total);
    const sw_training_module *top = NULL;
    for (size_t i = 0; i < count && steps > 0; i++) {
        const sw_training_module *at = &modules[i];
        if (at->calls && at->type && !sw__of_torch(at->type) && at->backward_calls > 0 &&
            at->backward_ns > 0 &&
            4 * (at->backward_ns / at->backward_calls) < at->self_ns / at->calls &&
            (!top || at->self_ns > top->self_ns)) {
            top = at;
        }
    }
    if (!top) {
        return false;
    }
    const double ns = (double)top->self_ns / (double)steps;
    const double step = all->it.mean_ns;
    if (!(ns / step > 2 * REDUNDANT_LEAST)) {
        return false;
    }
    const double back = (double)top->backward_ns / (double)top->backward_calls;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    const struct sw__hot_function *at = module_code(all, top);
    const sw_training_site *site = top->site;
    if (at) {
        sw__draft_where(all, draft, at->frame.file, at->frame.line, at->frame.name);
    } else {
        sw__draft_where(all, draft, site ? site->file : NULL, site ? site->line : 0,
                        top->name);
    }
    sw__draft_title(
        all, draft,
        "%.0f %% of a step is the forward of %s, which the backward hardly goes "
        "through",
        100 * ns / step, top->name);
    sw__draft_number(draft, "forward_ms", ns / 1e6);
    sw__draft_number(draft, "backward_ms", back / 1e6);
    sw__draft_number(draft, "forward_share", ns / step);
    draft->finding.share = ns / step;
    draft->finding.confidence = 0.7;
    sw__draft_advise(
        all, draft,
        "Most of what %s computes depends on nothing that learns: if it is the "
        "same in every step, compute it once before the loop and keep it.",
        top->name);
    sw__draft_advise(all, draft,
                     "If it depends on the batch, let the loader's workers do it.");
    const struct sw__estimate time = {.mean = ns, .low = ns, .high = ns};
    sw__draft_saves_in_steps(all, draft, time, 0.9, 0.5, 1);
    return true;
}

/* The part of a model that gets gradients though no optimizer has its parameters: a teacher that was not frozen. */
static bool gradients_for_nobody(sw_findings *all)
{
    size_t count, settings;
    uint64_t roots = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    const sw_training_setting *list = sw_training_settings(all->it.training, &settings);
    const sw_training_module *top = NULL;
    for (size_t i = 0; i < count; i++) {
        roots = sw__add(roots, modules[i].root ? modules[i].backward_ns : 0);
        for (size_t k = 0; k < settings; k++) {
            if (list[k].what && strcmp(list[k].what, "unowned") == 0 && list[k].name &&
                strcmp(list[k].name, modules[i].name) == 0 &&
                (!top || modules[i].backward_ns > top->backward_ns)) {
                top = &modules[i];
            }
        }
    }
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double part = top && roots ? (double)top->backward_ns / (double)roots : 0;
    const double step = all->it.mean_ns, ns = part * backward.mean;
    if (!(part < 1) || !(ns / step > 2 * REDUNDANT_LEAST)) {
        return false; /* a root alone: it is the model */
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    const sw_training_site *site =
        top->site ? top->site : sw__site_of(all, SW_SITE_MODEL);
    const struct sw__hot_function *code = module_code(all, top);
    if (code) {
        sw__draft_where(all, draft, code->frame.file, code->frame.line, top->name);
    } else {
        sw__draft_where(all, draft, site ? site->file : NULL, site ? site->line : 0,
                        top->name);
    }
    sw__draft_title(all, draft,
                    "%.0f %% of a step is the backward through %s, whose parameters no "
                    "optimizer has",
                    100 * ns / step, top->name);
    sw__draft_number(draft, "backward_ms", ns / 1e6);
    sw__draft_number(draft, "backward_share", part);
    sw__draft_number(draft, "parameters", (double)top->parameters);
    draft->finding.share = ns / step;
    draft->finding.confidence = 0.7;
    sw__draft_advise(
        all, draft,
        "If %s is not meant to learn, call it under torch.no_grad(), or once "
        "requires_grad_(False) on it: then nothing is kept for its backward.",
        top->name);
    sw__draft_advise(all, draft,
                     "If it is, give its parameters to the optimizer: they stay as they "
                     "are.");
    const struct sw__estimate time = {.mean = ns, .low = 0.8 * ns, .high = 1.1 * ns};
    sw__draft_saves_in_steps(all, draft, time, 1, 0.8, 1);
    return true;
}

void sw__rules_redundant(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    if (hot->samples < 50 || !hot->phase_samples[SW_PHASE_BACKWARD]) {
        sw__findings_unchecked(
            all, SW_FINDING_REDUNDANT_WORK,
            "whether inputs are the same is not recorded, and no backward shows which "
            "results are used");
        return;
    }
    if (!gradients_for_nobody(all) && !forward_after(all) && !not_in_backward(all)) {
        (void)module_without_backward(all);
    }
}
