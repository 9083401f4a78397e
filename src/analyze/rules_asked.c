/* Rules: a model that is asked for one element after the other, by a loop that knows all of them beforehand: one call for all of
 * them does the same. Nobody need go back through it: agents that act, features that are kept. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_holds.h"
#include "analyze/source_rounds.h"
#include "analyze/summary.h"

#define LAUNCH_LEAST 0.1
/* So many times in a step. */
#define TIMES_LEAST 8
/* A call of a layer that takes no longer than this is mostly calling. */
#define CALL_MOST_NS 40e3
enum { DEEPEST = 512 };

/* How often the model is called in a step, and what a call of one of its parts takes on average. */
struct asked {
    const sw_training_module *model; /* NULL: none is called so often */
    double times, part_ns;
};

static struct asked find_asked(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    struct asked found = {0};
    double calls = 0;
    double ns = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; steps > 0 && i < count; i++) {
        const double times = (double)modules[i].calls / (double)steps;
        if (modules[i].root && !modules[i].loss && times >= TIMES_LEAST &&
            times > found.times) {
            found.model = &modules[i];
            found.times = times;
        }
    }
    const size_t length = found.model ? strlen(found.model->name) : 0;
    for (size_t i = 0; found.model && i < count; i++) {
        const char *name = modules[i].name;
        if (strncmp(name, found.model->name, length) == 0 &&
            (name[length] == '\0' || name[length] == '.')) {
            calls += (double)modules[i].calls;
            ns += (double)modules[i].self_ns;
        }
    }
    found.part_ns = calls > 0 ? ns / calls : 0;
    return found;
}

/* A stack of the thread that makes the steps. */
struct seen {
    const sw_stacks *stacks;
    sw_stack stack;
    uint32_t frames[DEEPEST];
    size_t depth;
};

static bool next_seen(const sw_findings *all, sw_stacks_cursor *cursor, struct seen *out)
{
    const sw_summary_steps *of = all->it.steps;
    out->stacks = sw_summary_stacks(all->it.summary);
    while (out->stacks && sw_stacks_next(out->stacks, cursor, &out->stack)) {
        const sw_stack_tag *tag = out->stack.tag;
        if (tag->phase >= 0 && tag->phase < SW_PHASE_COUNT && tag->pid == of->pid &&
            strcmp(tag->thread, of->thread) == 0) {
            out->depth =
                sw_stacks_frames(out->stacks, out->stack.id, out->frames, DEEPEST);
            return true;
        }
    }
    return false;
}

static const sw_stack_frame *frame_at(const struct seen *seen, size_t i)
{
    return sw_stacks_get_frame(seen->stacks, seen->frames[i]);
}

static uint64_t samples_of(const struct seen *seen)
{
    return sw__add(seen->stack.running, seen->stack.waiting);
}

/* The place in a stack of the user's line that calls the first of all modules; the depth: there is none. */
static size_t find_asker(const struct seen *seen)
{
    for (size_t i = 0; i + 1 < seen->depth; i++) {
        if (strstr(frame_at(seen, i + 1)->file, "/torch/nn/modules/module.py")) {
            return sw__user_file(frame_at(seen, i)->file) ? i : seen->depth;
        }
    }
    return seen->depth;
}

/* The line from which most of the forward is asked for; NULL: nobody knows. */
static const sw_stack_frame *most_asking(const sw_findings *all)
{
    enum { ASKERS = 16 };
    struct {
        const sw_stack_frame *line;
        uint64_t samples;
    } list[ASKERS] = {{0}};
    struct seen seen;
    sw_stacks_cursor cursor = {0};
    size_t most = 0;
    while (next_seen(all, &cursor, &seen)) {
        const size_t at =
            seen.stack.tag->phase == SW_PHASE_FORWARD ? find_asker(&seen) : seen.depth;
        const sw_stack_frame *line = at < seen.depth ? frame_at(&seen, at) : NULL;
        size_t i = 0;
        while (i < ASKERS && list[i].line && list[i].line != line) {
            i++;
        }
        if (line && i < ASKERS) {
            list[i].line = line;
            list[i].samples += samples_of(&seen);
            most = list[i].samples > list[most].samples ? i : most;
        }
    }
    return list[most].line;
}

/* Whether one of the forwards that a line was seen to call may keep something for the next call, as its source reads. */
static bool model_goes_on(const sw_findings *all, const sw_stack_frame *line)
{
    struct seen seen;
    sw_stacks_cursor cursor = {0};
    const sw_stack_frame *known = NULL;
    while (next_seen(all, &cursor, &seen)) {
        const size_t at =
            seen.stack.tag->phase == SW_PHASE_FORWARD ? find_asker(&seen) : seen.depth;
        for (size_t i = at + 1; i < seen.depth && frame_at(&seen, at) == line; i++) {
            const sw_stack_frame *frame = frame_at(&seen, i);
            if (!sw__user_file(frame->file) ||
                (known && sw__same_function(frame, known))) {
                continue;
            }
            known = frame;
            struct sw__frame_source source = sw__frame_source(frame);
            const bool goes_on =
                !source.text ||
                sw__source_changes_self(source.text, source.length, frame->first_line);
            sw__frame_source_free(&source);
            if (goes_on) {
                return true;
            }
        }
    }
    return false;
}

static bool asks_apart(const sw_stack_frame *line)
{
    struct sw__frame_source source = sw__frame_source(line);
    const bool apart = source.text && sw__source_asks_apart(source.text, source.length,
                                                            line->first_line, line->line);
    sw__frame_source_free(&source);
    return apart;
}

/* All that the loop around the line does in forwards and outside of phases, in ns a step. */
static struct sw__estimate time_of_loop(sw_findings *all, const sw_stack_frame *line)
{
    uint64_t sum[SW_PHASE_COUNT] = {0};
    const uint32_t loop = sw__frame_loop(line);
    struct seen seen;
    sw_stacks_cursor cursor = {0};
    const sw_stack_frame *known = NULL; /* as neighbours have the same */
    bool inside = false;
    while (next_seen(all, &cursor, &seen)) {
        const int phase = seen.stack.tag->phase;
        if (phase != SW_PHASE_FORWARD && phase != SW_PHASE_OTHER) {
            continue;
        }
        for (size_t i = 0; i < seen.depth; i++) {
            const sw_stack_frame *frame = frame_at(&seen, i);
            if (!sw__same_function(frame, line)) {
                continue;
            }
            if (frame != known) {
                known = frame;
                inside = sw__frame_loop(frame) == loop;
            }
            sum[phase] += inside ? samples_of(&seen) : 0;
            break;
        }
    }
    return sw__hot_time(all, sum);
}

/* Others need not tell of the same lines. */
static void mark_told(sw_findings *all, const sw_stack_frame *line)
{
    const uint32_t loop = sw__frame_loop(line);
    (void)sw__hot_code(all);
    for (size_t i = 0; i < all->hot->count; i++) {
        struct sw__hot_line *at = &all->hot->lines[i];
        if (sw__same_function(at->frame, line) && sw__frame_loop(at->frame) == loop) {
            at->as = SW__HOT_TOLD;
        }
    }
}

void sw__rules_asked(sw_findings *all)
{
    const struct asked asked = find_asked(all);
    const struct sw__hot *hot = sw__hot_code(all);
    if (!asked.model || !(asked.part_ns < CALL_MOST_NS) || hot->samples < 50 ||
        sw__has_draft(all, SW_FINDING_LAUNCH_BOUND) ||
        (sw__has_device(all) && !sw__device_idles(all))) {
        return;
    }
    const sw_stack_frame *line = most_asking(all);
    if (!line || sw__hot_loop(all, line) != SW__LOOP_INNER || !asks_apart(line) ||
        model_goes_on(all, line)) {
        return;
    }
    const struct sw__estimate time = time_of_loop(all, line);
    const double step = all->it.mean_ns;
    if (!(time.low / step > LAUNCH_LEAST)) {
        return;
    }
    mark_told(all, line);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 1;
    sw__draft_where(all, draft, line->file, line->line, line->name);
    sw__draft_title(all, draft,
                    "%s asks %s for one element after the other: %.0f calls a step, "
                    "%.0f us for one of its layers",
                    line->name, asked.model->name, asked.times, asked.part_ns / 1e3);
    sw__draft_number(draft, "loop_ms", time.mean / 1e6);
    sw__draft_number(draft, "calls_of_the_model_per_step", asked.times);
    sw__draft_number(draft, "us_per_layer_call", asked.part_ns / 1e3);
    sw__draft_number(draft, "samples", (double)time.count);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = 0.75;
    sw__draft_advise(all, draft,
                     "The loop around line %u of %s knows all elements before it begins, "
                     "and no round needs what another gave: call %s once, with all of "
                     "them in one tensor.",
                     line->line, sw__file_name(line->file), asked.model->name);
    /* How many rounds become one is not known; what they compute stays, and some of what is done for each. */
    sw__draft_saves_in_steps(all, draft, time, 0.8, 0.4, 0.97);
}
