/* Rules: work whose result nobody uses, or that is the same in every step. */
#include <stdlib.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_inputs.h"
#include "analyze/summary.h"

#define REDUNDANT_LEAST 0.05

const struct sw__hot_function *sw__module_code(sw_findings *all,
                                               const sw_training_module *module)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, SW__COMPUTE_PHASES, SW__HOT_ANY, false, &count);
    const size_t length = strlen(module->type);
    for (size_t i = 0; i < count; i++) {
        const char *name = strstr(list[i].frame.name, module->type);
        if (name && name[length] == '.' &&
            (name == list[i].frame.name || name[-1] == '.')) {
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

static uint64_t median(uint64_t *values, size_t count)
{
    qsort(values, count, sizeof *values, ascending);
    return values[count / 2];
}

/* How many steps have most of `ns` (over all of them) beyond the usual forward; 0: it is in every step, or nobody knows.
 * `*more_ns`: what those steps take beyond the usual in all, batches for it included. */
static size_t now_and_then(sw_findings *all, double ns, double *more_ns)
{
    /* Only these know their forward; the others are taken to be like them. */
    const sw_summary_step *steps = all->it.looked;
    const size_t count = all->it.looked_count;
    const double part = (double)count / (double)all->it.count;
    uint64_t *scratch = sw__alloc_zero(count + 1, sizeof *scratch);
    *more_ns = 0;
    if (!scratch) {
        all->failed = true;
        return 0;
    }
    for (size_t i = 0; i < count; i++) {
        scratch[i] = steps[i].phase_ns[SW_PHASE_FORWARD];
    }
    const uint64_t usual = median(scratch, count);
    for (size_t i = 0; i < count; i++) {
        scratch[i] = steps[i].end_ns - steps[i].begin_ns;
    }
    const uint64_t step = median(scratch, count);
    sw__free(scratch);
    double excess = 0;
    size_t times = 0;
    for (size_t i = 0; i < count; i++) {
        const uint64_t forward = steps[i].phase_ns[SW_PHASE_FORWARD];
        const uint64_t whole = steps[i].end_ns - steps[i].begin_ns;
        if (forward > 2 * usual) {
            excess += (double)(forward - usual);
            *more_ns += whole > step ? (double)(whole - step) : 0;
            times++;
        }
    }
    *more_ns /= part;
    return excess > 0.6 * part * ns && 2 * times < count ? (size_t)((double)times / part)
                                                         : 0;
}

/* By the words of its own name. */
static bool measures_model(const char *function)
{
    static const char *const words[] = {"valid", "eval",  "test",  "accura",
                                        "score", "check", "metric"};
    const char *dot = strrchr(function, '.');
    const char *name = dot ? dot + 1 : function;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        if (strstr(name, words[i])) {
            return true;
        }
    }
    return false;
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
    double more;
    const size_t times = now_and_then(all, time.mean * (double)all->it.count, &more);
    if (times > 0 && measures_model(at->name)) {
        struct sw__estimate whole = time;
        more /= (double)all->it.count;
        whole.mean = more > whole.mean ? more : whole.mean;
        whole.high = whole.mean > whole.high ? whole.mean : whole.high;
        validates(all, at, whole, times);
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

#define BESIDE_PHASES (SW__PHASE_BIT(SW_PHASE_OTHER) | SW__BATCH_PHASES)

/* Whether a line is work of a step outside the model, before the backward. */
static bool beside_model(const sw_findings *all, const struct sw__hot_line *line)
{
    return line->loop && !line->outside &&
           line->when & (SW__HOT_BEFORE | SW__HOT_BETWEEN) && line->as == line->phase &&
           BESIDE_PHASES & SW__PHASE_BIT(line->phase) &&
           !(sw__batches_made_inside(all) &&
             SW__BATCH_PHASES & SW__PHASE_BIT(line->phase));
}

static bool same_inputs(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool same = source.text && sw__source_same_inputs(source.text, source.length,
                                                            at->first_line, at->line);
    sw__frame_source_free(&source);
    return same;
}

struct sw__draft *sw__draft_again(sw_findings *all, const sw_stack_frame *at,
                                  const sw_stack_frame *line, struct sw__estimate time)
{
    const double step = all->it.mean_ns;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(
        all, draft,
        "%.0f %% of a step is %s, computed from the same in every step (%s:%u)",
        100 * time.mean / step, at->name, sw__file_name(line->file), line->line);
    sw__draft_number(draft, "again_ms", time.mean / 1e6);
    sw__draft_number(draft, "again_share", time.mean / step);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.7;
    return draft;
}

/* A line of the training loop that computes the same from the same in every step. */
static void same_again(sw_findings *all)
{
    struct sw__hot *hot = all->hot;
    const struct sw__hot_line *top = NULL;
    uint64_t most = 0, sum[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        uint64_t here = 0;
        for (size_t k = 0; beside_model(all, &hot->lines[i]) && k < hot->count; k++) {
            here += hot->lines[k].loop == hot->lines[i].loop &&
                            beside_model(all, &hot->lines[k])
                        ? hot->lines[k].samples
                        : 0;
        }
        if (here > most) {
            most = here;
            top = &hot->lines[i];
        }
    }
    for (size_t k = 0; top && k < hot->count; k++) {
        if (hot->lines[k].loop == top->loop && beside_model(all, &hot->lines[k])) {
            sum[hot->lines[k].phase] += hot->lines[k].samples;
            top = hot->lines[k].samples > top->samples ? &hot->lines[k] : top;
        }
    }
    const struct sw__estimate time = sw__hot_time(all, sum);
    const double step = all->it.mean_ns;
    if (!top || !(time.low / step > REDUNDANT_LEAST) || !same_inputs(top->loop)) {
        return;
    }
    const sw_stack_frame *loop = top->loop;
    for (size_t k = 0; k < hot->count; k++) {
        if (hot->lines[k].loop == loop && beside_model(all, &hot->lines[k])) {
            hot->lines[k].as = SW__HOT_TOLD;
        }
    }
    const sw_stack_frame *at = top->entry ? top->entry : top->frame;
    struct sw__draft *draft = sw__draft_again(all, at, loop, time);
    sw__draft_advise(
        all, draft,
        "Line %u of %s names nothing that differs from step to step: compute "
        "it once before the loop and keep it.",
        loop->line, sw__file_name(loop->file));
    sw__draft_saves_in_steps(all, draft, time, 0.98, 0.7, 1);
}

static bool is_forward(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *last = dot ? dot + 1 : name;
    return strcmp(last, "forward") == 0 || strcmp(last, "training_step") == 0 ||
           strcmp(last, "__call__") == 0 || strcmp(last, "<module>") == 0;
}

/* Keras comes to each layer through much Python of its own: there a forward that takes longer than its backward says nothing
 * of what learns. */
static bool called_by_keras(const sw_findings *all)
{
    return sw__fact(all, "framework.keras") != NULL;
}

/* Whether a part is told of as slow already, by its name or by that of a method of its class. It stands among those that learn and
 * is given what they make, so that it has to be computed: in a cheaper way. */
static bool told_as_slow(sw_findings *all, const char *part, const char *method)
{
    size_t count;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    for (struct sw__draft *slow = all->first; slow; slow = slow->next) {
        if (slow->finding.kind != SW_FINDING_SLOW_MODULE || !slow->finding.name) {
            continue;
        }
        bool same = part && strcmp(slow->finding.name, part) == 0;
        for (size_t i = 0; method && i < count; i++) {
            const char *type = modules[i].type ? modules[i].type : "";
            const size_t length = strlen(type);
            same =
                same || (length > 0 && strcmp(modules[i].name, slow->finding.name) == 0 &&
                         strncmp(method, type, length) == 0 && method[length] == '.');
        }
        if (same) {
            slow->finding.also |= (uint64_t)1 << SW_FINDING_REDUNDANT_WORK;
            return true;
        }
    }
    return false;
}

/* Time of a step in layers that are called with parameters none of which learns, in ns: those of a teacher, which another one's
 * may be given from step to step, so that nobody knows that it answers the same. */
static double frozen_layers(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    double ns = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *at = &modules[i];
        ns += at->parameters > 0 && at->trainable == 0 && at->backward_calls == 0
                  ? (double)at->self_ns
                  : 0;
    }
    return steps > 0 ? ns / (double)steps : 0;
}

/* A loop of Python code, not an operation that computes long. */
#define LOOPS_LEAST 0.3
static bool loops_in_python(sw_findings *all, const struct sw__hot_function *function)
{
    return sw__hot_interpreted(all, function) &&
           (double)function->interpreted > LOOPS_LEAST * (double)function->own;
}

void sw__explains_slow(sw_findings *all, struct sw__draft *draft)
{
    for (struct sw__draft **at = &all->first; *at;) {
        const sw_finding *slow = &(*at)->finding;
        if (slow->kind == SW_FINDING_SLOW_MODULE &&
            draft->finding.share > 0.7 * slow->share) {
            draft->finding.also |= slow->also | (uint64_t)1 << SW_FINDING_SLOW_MODULE;
            for (size_t i = 0; i < slow->rule_count; i++) {
                sw__draft_rule(draft, slow->rules[i]);
            }
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
}

/* What learns takes longer in the backward than in the forward. A function that is much of the forward, of a model whose
 * backward is short, depends on nothing that learns: its result is the same whenever its input is. */
static bool not_in_backward(sw_findings *all)
{
    if (called_by_keras(all)) {
        return false;
    }
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
        backward.high > 3 * (forward.mean - time.low) ||
        2 * frozen_layers(all) > time.mean) {
        return false;
    }
    const bool loops = loops_in_python(all, top);
    if (!loops && told_as_slow(all, NULL, top->frame.name)) {
        return true;
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
    if (loops) {
        sw__explains_slow(all, draft); /* it is what makes the part around it slow */
    }
    return true;
}

static bool hardly_gone_back(const sw_training_module *at)
{
    return at->backward_calls > 0 && at->backward_ns > 0 &&
           4 * (at->backward_ns / at->backward_calls) < at->self_ns / at->calls;
}

/* Whether another part of the same class is gone back through as usual: then the first is only the one that is given the batch, which
 * needs no gradient, as the first layer of every model is. */
static bool is_first_layer(const sw_training_module *modules, size_t count,
                           const sw_training_module *part)
{
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *at = &modules[i];
        if (at != part && at->calls && at->type && strcmp(at->type, part->type) == 0 &&
            at->backward_calls > 0 && !hardly_gone_back(at)) {
            return true;
        }
    }
    return false;
}

/* What the interpreter takes in some phases, in the user's own code. */
static struct sw__estimate interpreted_time(sw_findings *all, uint64_t phases)
{
    const struct sw__hot *hot = sw__hot_code(all);
    uint64_t by_phase[SW_PHASE_COUNT] = {0};
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (phases & SW__PHASE_BIT(line->phase) && !line->outside) {
            by_phase[line->phase] += line->interpreted;
        }
    }
    return sw__hot_time(all, by_phase);
}

/* A module of the user's own that takes long in the forward and next to nothing in the backward: most of what it computes
 * depends on nothing that learns. One without any backward is meant to learn nothing, such as a teacher. */
static bool module_without_backward(sw_findings *all)
{
    if (sw__has_device(all) || called_by_keras(all)) {
        return false; /* modules are timed on the host, which does not compute them */
    }
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    const sw_training_module *top = NULL;
    for (size_t i = 0; i < count && steps > 0; i++) {
        const sw_training_module *at = &modules[i];
        if (at->calls && at->type && !sw__of_torch(at->type) &&
            strcmp(at->type, "OptimizedModule") != 0 && hardly_gone_back(at) &&
            !is_first_layer(modules, count, at) && (!top || at->self_ns > top->self_ns)) {
            top = at;
        }
    }
    if (!top) {
        return false;
    }
    /* First calls, which may compile, are among those of the module, and not among the steps that count. */
    const uint64_t phases =
        SW__PHASE_BIT(SW_PHASE_FORWARD) | SW__PHASE_BIT(SW_PHASE_LOSS);
    const struct sw__estimate called = sw__phase_time(all, phases);
    const double own = (double)top->self_ns / (double)steps;
    const double ns = own < called.mean ? own : called.mean;
    const double back = (double)top->backward_ns / (double)top->backward_calls;
    const double step = all->it.mean_ns;
    if (!(ns / step > 2 * REDUNDANT_LEAST) ||
        !(4 * back * (double)top->calls < ns * (double)steps)) {
        return false;
    }
    /* Python code leaves nothing to go back through, and is told as what it is. */
    if (interpreted_time(all, phases).mean > ns / 2) {
        return false;
    }
    if (told_as_slow(all, top->name, NULL)) {
        return true;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
    sw__draft_rule(draft, "RULE-13");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 3;
    const struct sw__hot_function *at = sw__module_code(all, top);
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
    const struct sw__hot_function *code = sw__module_code(all, top);
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
    if (hot->samples >= 50 && sw__rules_held(all)) {
        return;
    }
    if (hot->samples < 50 || !hot->phase_samples[SW_PHASE_BACKWARD]) {
        sw__findings_unchecked(
            all, SW_FINDING_REDUNDANT_WORK,
            "whether inputs are the same is not recorded, and no backward shows which "
            "results are used");
        return;
    }
    same_again(all);
    if (!sw__rules_frozen(all) && !gradients_for_nobody(all) && !forward_after(all) &&
        !sw__rules_again(all) && !not_in_backward(all)) {
        (void)module_without_backward(all);
    }
}
