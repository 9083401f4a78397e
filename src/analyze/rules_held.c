/* Rules: a function that is given, in every step, nothing but what an object has had since it was built. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_calls.h"
#include "analyze/source_holds.h"

#define HELD_LEAST 0.1
/* Not of a model's: what it holds may learn. */
#define HELD_PHASES (SW__PHASE_BIT(SW_PHASE_OTHER) | SW__BATCH_PHASES)

/* Whether a function of the file gives the same whenever it is given the same, as its source reads. */
static bool is_plain(const sw_stack_frame *function)
{
    struct sw__frame_source source = sw__frame_source(function);
    const bool plain =
        source.text && !strchr(function->name, '.') &&
        !sw__source_has_chance(source.text, source.length, function->first_line);
    sw__frame_source_free(&source);
    return plain;
}

static bool given_what_is_held(const struct sw__hot_function *function)
{
    const sw_stack_frame *caller = function->caller;
    struct sw__source_call call;
    if (!caller || !sw__user_file(caller->file) || !is_plain(&function->frame)) {
        return false;
    }
    struct sw__frame_source source = sw__frame_source(caller);
    const bool held = source.text &&
                      sw__source_call_get(source.text, source.length, caller->line,
                                          function->frame.name, &call) &&
                      sw__source_call_holds(source.text, source.length, &call);
    sw__frame_source_free(&source);
    return held;
}

bool sw__rules_held(sw_findings *all)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, HELD_PHASES, SW__HOT_ANY, false, &count);
    const double step = all->it.mean_ns;
    for (size_t i = 0; i < count; i++) {
        const struct sw__estimate time = sw__hot_time(all, list[i].by_phase);
        if (!(time.low / step > HELD_LEAST) || !given_what_is_held(&list[i])) {
            continue;
        }
        const sw_stack_frame *at = &list[i].frame, *caller = list[i].caller;
        struct sw__draft *draft = sw__draft_again(all, at, at, time);
        sw__draft_advise(
            all, draft,
            "%s, line %u of %s, gives %s nothing but what it has had since "
            "it was built: compute that once, where it is built, and keep it.",
            caller->name, caller->line, sw__file_name(caller->file), at->name);
        sw__draft_saves_in_steps(all, draft, time, 0.98, 0.7, 1);
        return true;
    }
    return false;
}
