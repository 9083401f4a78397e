/* The code that makes samples, by the samples of those who run it: the training thread, or the loader's workers. */
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/rules_loader.h"
#include "analyze/source_loops.h"

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
        way.fetches = strstr(at->file, "/torch/utils/data/_utils/fetch.py") != NULL;
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
                                        python.low > SHORT_CALLS && in_loop(top->frame)};
    return true;
}
