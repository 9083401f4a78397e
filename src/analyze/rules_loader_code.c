/* The code that makes samples, by the samples of those who run it: the training thread, or the loader's workers. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/source_chance.h"
#include "analyze/source_inputs.h"
#include "analyze/source_lists.h"
#include "analyze/source_loops.h"
#include "analyze/source_names.h"

/* Share of a function's own samples outside native calls from which on those calls are short. */
#define SHORT_CALLS 0.12

enum { MAKERS = 64, DEEPEST = 512 };

struct maker {
    const sw_stack_frame *frame; /* its line with most samples of one stack */
    uint64_t samples, most;
    uint64_t own,
        interpreted; /* without what packages do for it; of these, outside native calls */
    uint64_t called; /* by another function of the user's */
};

static bool makes_batches(const sw_findings *all, const sw_stack_tag *tag)
{
    const sw_summary_steps *steps = all->it.steps;
    if (all->it.loader && all->it.loader->worker_count) {
        return tag->pid != steps->pid && tag->main;
    }
    return tag->pid == steps->pid && strcmp(tag->thread, steps->thread) == 0 &&
           tag->phase >= 0 && tag->phase < SW_PHASE_COUNT &&
           (SW__BATCH_PHASES | SW__PHASE_BIT(SW_PHASE_DATA_WAIT)) &
               SW__PHASE_BIT(tag->phase);
}

static bool is_package(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/");
}

/* Where the loader asks for a sample. */
static bool is_fetch(const sw_stack_frame *at)
{
    return strstr(at->file, "/torch/utils/data/_utils/fetch.py") != NULL;
}

/* A stack, from its innermost frame to where the loader asks for samples. */
struct way {
    const sw_stack_frame *inner; /* of the user's frames */
    bool fetches, package;
    unsigned users;
};

static struct way read_stack(const sw_stacks *stacks, uint32_t id)
{
    uint32_t frames[DEEPEST];
    size_t depth = sw_stacks_frames(stacks, id, frames, DEEPEST);
    struct way way = {0};
    while (depth-- > 0 && !way.fetches) {
        const sw_stack_frame *at = sw_stacks_get_frame(stacks, frames[depth]);
        way.fetches = is_fetch(at);
        const bool user = !way.fetches && sw__user_file(at->file);
        way.package |= !way.inner && !user && is_package(at->file);
        way.inner = !way.inner && user ? at : way.inner;
        way.users += user;
    }
    return way;
}

static bool in_loop(const sw_stack_frame *frame)
{
    size_t length = 0;
    char *text = sw__source_text(frame->file, &length);
    const uint32_t loop =
        text ? sw__source_loop(text, length, frame->first_line, frame->line) : 0;
    const bool inside = loop > 0 && !sw__source_yields(text, length, loop);
    sw__free(text);
    return inside;
}

static bool of_a_list(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool listed =
        source.text && sw__source_tensor_of_list(source.text, source.length,
                                                 frame->first_line, frame->line);
    sw__frame_source_free(&source);
    return listed;
}

bool sw__loader_code(const sw_findings *all, struct sw__loader_code *out)
{
    struct maker makers[MAKERS] = {0};
    size_t count = 0;
    uint64_t sum = 0;
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    while (stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        if (!makes_batches(all, stack.tag)) {
            continue;
        }
        const struct way way = read_stack(stacks, stack.id);
        const uint64_t samples = stack.running + stack.waiting;
        if (!way.fetches) {
            continue;
        }
        sum += samples;
        size_t i = 0;
        while (way.inner && i < count && !sw__same_function(makers[i].frame, way.inner)) {
            i++;
        }
        if (!way.inner || i == MAKERS) {
            continue;
        }
        count = i == count ? count + 1 : count;
        struct maker *maker = &makers[i];
        maker->samples += samples;
        maker->own += way.package ? 0 : samples;
        maker->interpreted +=
            way.package || stack.in_call > samples ? 0 : samples - stack.in_call;
        maker->called += way.users > 1 ? samples : 0;
        if (samples >= maker->most) {
            maker->most = samples;
            maker->frame = way.inner;
        }
    }
    const struct maker *top = NULL;
    for (size_t i = 0; i < count; i++) {
        top = !top || makers[i].samples > top->samples ? &makers[i] : top;
    }
    if (!top || top->samples < 10 || 5 * top->samples <= 2 * sum) {
        *out = (struct sw__loader_code){.samples = sum};
        return false;
    }
    const sw_share python = sw_share_of(top->interpreted, top->own);
    *out = (struct sw__loader_code){.frame = top->frame,
                                    .share = sw_share_of(top->samples, sum),
                                    .python = python,
                                    .samples = sum,
                                    .stage = 2 * top->called > top->samples,
                                    .pieces =
                                        python.low > SHORT_CALLS && in_loop(top->frame),
                                    .listed = of_a_list(top->frame)};
    return true;
}

/* --- what could be kept --- */

/* What the source says of a frame; the file is read once for each. */
struct reading {
    const sw_stack_frame *frame;
    bool chance; /* its function draws */
    bool given;  /* what the line calls is given something that was drawn */
    bool same;   /* its line computes from nothing that differs between calls */
};

struct repeats {
    struct reading readings[MAKERS];
    size_t reading_count;
    struct repeat {
        const sw_stack_frame *frame; /* its line with most samples of one stack */
        uint64_t samples, most;
        bool chance; /* something that it calls draws */
    } list[MAKERS];
    size_t count;
};

/* Never NULL: where there is no room left, everything is taken to be drawn. */
static const struct reading *read_frame(struct repeats *of, const sw_stack_frame *frame)
{
    static const struct reading unknown = {.chance = true, .given = true};
    for (size_t i = 0; i < of->reading_count; i++) {
        if (of->readings[i].frame == frame) {
            return &of->readings[i];
        }
    }
    if (of->reading_count == MAKERS) {
        return &unknown;
    }
    struct sw__frame_source source = sw__frame_source(frame);
    struct reading *made = &of->readings[of->reading_count++];
    *made = (struct reading){
        .frame = frame,
        .chance = !source.text ||
                  sw__source_by_chance(source.text, source.length, frame->first_line),
        .given = !source.text || sw__source_uses_chance(source.text, source.length,
                                                        frame->first_line, frame->line),
        .same = source.text && !sw__source_starts(&source.line, "self.") /* kept */ &&
                sw__source_same_inputs(source.text, source.length, frame->first_line,
                                       frame->line)};
    sw__frame_source_free(&source);
    return made;
}

/* The one of a function, or of that line of it alone. */
static struct repeat *repeat_of(struct repeats *of, const sw_stack_frame *frame,
                                bool line)
{
    for (size_t i = 0; i < of->count; i++) {
        if (sw__same_function(of->list[i].frame, frame) &&
            (!line || of->list[i].frame->line == frame->line)) {
            return &of->list[i];
        }
    }
    if (of->count == MAKERS) {
        return NULL;
    }
    of->list[of->count] = (struct repeat){.frame = frame};
    return &of->list[of->count++];
}

/* The user's functions on the way to a sample, from the dataset's inwards. One that comes after something drawn is no repetition,
 * and neither is one that calls what draws, be it a package's. */
static void read_repeats(struct repeats *of, const sw_stacks *stacks,
                         const sw_stack *stack, bool *fetches)
{
    uint32_t frames[DEEPEST];
    const size_t depth = sw_stacks_frames(stacks, stack->id, frames, DEEPEST);
    struct repeat *through[DEEPEST];
    size_t count = 0;
    bool drawn = false;
    *fetches = false;
    for (size_t i = 0; i < depth; i++) {
        const sw_stack_frame *at = sw_stacks_get_frame(stacks, frames[i]);
        if (is_fetch(at)) {
            *fetches = true;
            count = 0;
            drawn = false;
            continue;
        }
        if (!*fetches) {
            continue;
        }
        const bool user = sw__user_file(at->file);
        const struct reading *said = user ? read_frame(of, at) : NULL;
        if (user ? said->chance
                 : sw__named_by_chance(at->name) ||
                       strstr(at->file, "/random.py") != NULL) {
            for (size_t k = 0; k < count; k++) {
                through[k]->chance = true;
            }
        }
        struct repeat *repeat =
            user && !drawn && !said->chance ? repeat_of(of, at, false) : NULL;
        if (repeat) {
            const uint64_t samples = stack->running + stack->waiting;
            bool met = false; /* one that calls itself counts once */
            for (size_t k = 0; k < count; k++) {
                met = met || through[k] == repeat;
            }
            if (!met) {
                through[count++] = repeat;
                repeat->samples += samples;
            }
            if (samples >= repeat->most) {
                repeat->most = samples;
                repeat->frame = at;
            }
        }
        drawn = drawn || (user && said->given);
    }
}

static bool draws(struct repeats *of, const sw_stack_frame *at)
{
    return sw__user_file(at->file)
               ? read_frame(of, at)->chance
               : sw__named_by_chance(at->name) || strstr(at->file, "/random.py") != NULL;
}

/* The outermost line on the way to a sample that computes the same each time; what it calls must not draw. */
static void read_same(struct repeats *of, const sw_stacks *stacks, const sw_stack *stack,
                      bool *fetches)
{
    uint32_t frames[DEEPEST];
    const size_t depth = sw_stacks_frames(stacks, stack->id, frames, DEEPEST);
    struct repeat *line = NULL;
    *fetches = false;
    for (size_t i = 0; i < depth; i++) {
        const sw_stack_frame *at = sw_stacks_get_frame(stacks, frames[i]);
        if (is_fetch(at)) {
            *fetches = true;
        } else if (line) {
            line->chance = line->chance || draws(of, at);
        } else if (*fetches && sw__user_file(at->file) && read_frame(of, at)->same) {
            line = repeat_of(of, at, true);
        }
    }
    if (line) {
        line->samples += stack->running + stack->waiting;
    }
}

bool sw__loader_same(const sw_findings *all, struct sw__loader_code *out)
{
    struct repeats of = {.count = 0};
    uint64_t sum = 0;
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    while (stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        bool fetches = false;
        if (makes_batches(all, stack.tag)) {
            read_same(&of, stacks, &stack, &fetches);
        }
        sum += fetches ? stack.running + stack.waiting : 0;
    }
    const struct repeat *top = NULL;
    for (size_t i = 0; i < of.count; i++) {
        const struct repeat *it = &of.list[i];
        top = !it->chance && (!top || it->samples > top->samples) ? it : top;
    }
    if (!top) {
        return false;
    }
    *out = (struct sw__loader_code){
        .frame = top->frame, .share = sw_share_of(top->samples, sum), .samples = sum};
    return true;
}

bool sw__loader_repeats(const sw_findings *all, struct sw__loader_code *out)
{
    struct repeats of = {.count = 0};
    uint64_t sum = 0;
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    while (stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        bool fetches = false;
        if (makes_batches(all, stack.tag)) {
            read_repeats(&of, stacks, &stack, &fetches);
        }
        sum += fetches ? stack.running + stack.waiting : 0;
    }
    /* The innermost of those with nearly all of the most: a method that hands it on says less. */
    const struct repeat *top = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < of.count; i++) {
        most =
            !of.list[i].chance && of.list[i].samples > most ? of.list[i].samples : most;
    }
    for (size_t i = 0; i < of.count; i++) {
        top =
            !of.list[i].chance && 10 * of.list[i].samples > 9 * most ? &of.list[i] : top;
    }
    if (!top || most == 0) {
        return false;
    }
    *out = (struct sw__loader_code){
        .frame = top->frame, .share = sw_share_of(most, sum), .samples = sum};
    return true;
}
