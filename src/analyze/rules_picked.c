/* Rules: a layer that is computed for every position, of which few are used then: the words of a language model that were not
 * masked, all but the last one of a sequence. A linear layer does for each what it does for any other, so that those which are
 * used can be taken before it. Which part is used is told from the source of the line that calls it. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_picks.h"
#include "analyze/summary.h"

/* Of forward and backward. */
#define PICKED_LEAST 0.3
/* So many lines of the program are read. */
enum { DEEPEST = 512, LINES_MOST = 256 };

static bool picks(const sw_stack_frame *at, const char *name)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool does =
        source.text && sw__source_picks(source.text, source.length, at->line, name);
    sw__frame_source_free(&source);
    return does;
}

static bool is_among(const uint32_t *list, size_t count, uint32_t one)
{
    for (size_t i = 0; i < count; i++) {
        if (list[i] == one) {
            return true;
        }
    }
    return false;
}

/* The line that calls the layer and uses a part of what it gives. */
static const sw_stack_frame *picks_from(const sw_findings *all,
                                        const sw_training_module *module)
{
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    const sw_summary_steps *of = all->it.steps;
    const char *dot = strrchr(module->name, '.');
    uint32_t seen[LINES_MOST];
    size_t count = 0;
    sw_stack stack;
    sw_stacks_cursor cursor = {0};
    while (dot && stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        if (stack.tag->phase != SW_PHASE_FORWARD || stack.tag->pid != of->pid ||
            strcmp(stack.tag->thread, of->thread) != 0) {
            continue;
        }
        uint32_t frames[DEEPEST];
        const size_t depth = sw_stacks_frames(stacks, stack.id, frames, DEEPEST);
        for (size_t i = 0; i + 1 < depth && count < LINES_MOST; i++) {
            const sw_stack_frame *at = sw_stacks_get_frame(stacks, frames[i]);
            if (!sw__user_file(at->file) ||
                sw__user_file(sw_stacks_get_frame(stacks, frames[i + 1])->file) ||
                is_among(seen, count, frames[i])) {
                continue;
            }
            seen[count++] = frames[i];
            if (picks(at, dot + 1)) {
                return at;
            }
        }
    }
    return NULL;
}

void sw__rules_picked(sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    const struct sw__estimate backward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const struct sw__estimate compute = sw__phase_time(
        all, SW__PHASE_BIT(SW_PHASE_FORWARD) | SW__PHASE_BIT(SW_PHASE_BACKWARD));
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    if (sw__has_draft(all, SW_FINDING_SLOW_MODULE) || steps == 0 || !(compute.mean > 0)) {
        return;
    }
    uint64_t roots = 0;
    for (size_t i = 0; i < count; i++) {
        roots = sw__add(roots, modules[i].root ? modules[i].backward_ns : 0);
    }
    const sw_training_module *slow = NULL;
    const sw_stack_frame *at = NULL;
    double ns = 0; /* of a step, forward and backward */
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *module = &modules[i];
        /* The backward is measured in few steps: it is the part of it that counts. */
        const double back =
            roots ? (double)module->backward_ns / (double)roots * backward.mean : 0;
        const double both = (double)module->total_ns / (double)steps + back;
        if (module->type && strcmp(module->type, "Linear") == 0 && both > ns &&
            both > PICKED_LEAST * compute.mean) {
            const sw_stack_frame *line = picks_from(all, module);
            slow = line ? module : slow;
            at = line ? line : at;
            ns = line ? both : ns;
        }
    }
    if (!slow) {
        return;
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_SLOW_MODULE, "RULE-05");
    sw__draft_rule(draft, "RULE-01");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 2;
    sw__draft_where(all, draft, at->file, at->line, slow->name);
    sw__draft_title(
        all, draft,
        "%s takes %.0f %% of forward and backward, and only a part of what it "
        "gives is used",
        slow->name, 100 * ns / compute.mean);
    sw__draft_number(draft, "module_ms", ns / 1e6);
    sw__draft_number(draft, "compute_share", ns / compute.mean);
    sw__draft_number(draft, "parameters", (double)slow->parameters);
    draft->finding.share = ns / all->it.mean_ns;
    draft->finding.confidence = 0.7;
    sw__draft_advise(all, draft,
                     "Line %u of %s takes some positions of what %s gives: take them of "
                     "what it is given, so that it computes no others.",
                     at->line, sw__file_name(at->file), slow->name);
    /* How many are used is not recorded; with masks it is a tenth to a third as a rule, of sequences one. */
    const struct sw__estimate saved = {.mean = ns, .low = ns, .high = ns};
    sw__draft_saves_in_steps(all, draft, saved, 0.8, 0.2, 0.98);
}
