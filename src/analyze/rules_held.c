/* Rules: a function that is given, in every step, nothing but what an object has had since it was built; and a part of a model that
 * learns nothing and is given nothing at all, or nothing but such things. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/source_calls.h"
#include "analyze/source_holds.h"
#include "analyze/source_samples.h"
#include "analyze/summary.h"

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

static bool is_of(const sw_stack_frame *frame, const char *type)
{
    const size_t length = strlen(type);
    return strncmp(frame->name, type, length) == 0 && frame->name[length] == '.';
}

/* Whether one of a class's functions may give something else each time, though nothing differs that it is given. */
static bool goes_on(const sw_stack_frame *function)
{
    struct sw__frame_source source = sw__frame_source(function);
    const bool goes =
        !source.text ||
        sw__source_has_chance(source.text, source.length, function->first_line) ||
        sw__source_changes_self(source.text, source.length, function->first_line) ||
        !sw__source_self_stays(source.text, source.length, function->first_line);
    sw__frame_source_free(&source);
    return goes;
}

static bool is_given_nothing(const sw_stack_frame *forward)
{
    struct sw__frame_source source = sw__frame_source(forward);
    const bool nothing =
        source.text &&
        sw__source_given_nothing(source.text, source.length, forward->first_line);
    sw__frame_source_free(&source);
    return nothing;
}

/* The line of the class's functions with most samples, where its forward is given nothing and none of those that were seen changes
 * anything of the object; NULL: not so, or not known. */
static const sw_stack_frame *same_each_time(sw_findings *all, const char *type)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const struct sw__hot_line *top = NULL;
    bool nothing = false;
    for (size_t i = 0; i < hot->count; i++) {
        const sw_stack_frame *seen[] = {hot->lines[i].frame, hot->lines[i].caller};
        for (size_t k = 0; k < 2; k++) {
            if (!seen[k] || !is_of(seen[k], type)) {
                continue;
            }
            if (goes_on(seen[k])) {
                return NULL;
            }
            top = !top || hot->lines[i].samples > top->samples ? &hot->lines[i] : top;
            if (strcmp(seen[k]->name + strlen(type), ".forward") == 0) {
                if (!is_given_nothing(seen[k])) {
                    return NULL;
                }
                nothing = true;
            }
        }
    }
    return nothing ? top->frame : NULL;
}

/* A part of the model that hands out what it makes of its buffers alone. */
static bool part_given_nothing(sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    const double forward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD)).mean;
    const double step = all->it.mean_ns;
    for (size_t i = 0; i < count && steps > 0 && !sw__has_device(all); i++) {
        const sw_training_module *part = &modules[i];
        const double own = (double)part->total_ns / (double)steps;
        const double ns = own < forward ? own : forward;
        if (!part->type || part->loss || sw__of_torch(part->type) ||
            !(ns / step > HELD_LEAST)) {
            continue;
        }
        const struct sw__learning learning = sw__learning_of(modules, count, part);
        if (learning.parameters > 0 || learning.backward > 0) {
            continue;
        }
        const sw_stack_frame *at = same_each_time(all, part->type);
        if (!at) {
            continue;
        }
        const struct sw__estimate time = {.mean = ns, .low = ns, .high = ns};
        struct sw__draft *draft = sw__draft_again(all, at, at, time);
        draft->group = SW__GROUP_COMPUTE;
        draft->specific = 3;
        sw__draft_advise(all, draft,
                         "%s (%s) learns nothing and is called without arguments: what "
                         "it gives is the same in every step. Compute it once, where it "
                         "is built or after something that it holds has changed, and "
                         "keep it.",
                         part->name, part->type);
        sw__draft_saves_in_steps(all, draft, time, 0.98, 0.7, 1);
        sw__explains_slow(all, draft);
        return true;
    }
    return false;
}

/* The class of what a part is an attribute of, and the attribute's name; NULL: it is none, or not known. */
static const char *owner_of(const sw_training_module *modules, size_t count,
                            const sw_training_module *part, const char **attribute)
{
    const char *dot = strrchr(part->name, '.');
    const size_t length = dot ? (size_t)(dot - part->name) : 0;
    if (!dot || !(isalpha((unsigned char)dot[1]) || dot[1] == '_')) {
        return NULL; /* of a list, by its number */
    }
    *attribute = dot + 1;
    for (size_t i = 0; i < count; i++) {
        if (strncmp(modules[i].name, part->name, length) == 0 &&
            modules[i].name[length] == '\0') {
            return modules[i].type;
        }
    }
    return NULL;
}

/* Where a class calls a part of its objects with nothing but what these hold, in the user's file that has the class; `file` NULL: not
 * so, or not known. */
struct held_call {
    const char *file;
    uint32_t line;
    char name[160]; /* of the method */
};

static bool held_in(const char *file, const char *type, const char *attribute, bool moody,
                    struct held_call *call)
{
    size_t length = 0;
    struct sw__source_part at;
    char *text = sw__user_file(file) ? sw__source_text(file, &length) : NULL;
    const bool held = text && sw__source_part_holds(text, length, type, attribute, &at) &&
                      !sw__source_moves_parameters(text, length) &&
                      (!moody || sw__source_evaluates(text, length));
    if (held) {
        call->file = file;
        call->line = at.line;
        snprintf(call->name, sizeof call->name, "%s.%.*s", type, (int)at.method_length,
                 at.method);
    }
    sw__free(text);
    return held;
}

static struct held_call find_held_call(sw_findings *all, const char *type,
                                       const char *attribute, bool moody)
{
    struct held_call call = {0};
    const struct sw__hot *hot = sw__hot_code(all);
    const sw_training_site *site = sw__site_of(all, SW_SITE_MODEL);
    const char *tried = NULL; /* most samples are of few files */
    for (size_t i = 0; i < hot->count; i++) {
        const sw_stack_frame *seen[] = {hot->lines[i].frame, hot->lines[i].caller};
        for (size_t k = 0; k < 2; k++) {
            const char *file = seen[k] && is_of(seen[k], type) ? seen[k]->file : NULL;
            if (!file || (tried && strcmp(file, tried) == 0)) {
                continue;
            }
            tried = file;
            if (held_in(file, type, attribute, moody, &call)) {
                return call;
            }
        }
    }
    if (!tried && site && site->file) {
        (void)held_in(site->file, type, attribute, moody, &call);
    }
    return call;
}

/* A part of the model that learns nothing, and is given what the model has had since it was built: the names of all classes, to
 * an encoder of text. */
static bool part_given_what_is_held(sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    const double forward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD)).mean;
    const double step = all->it.mean_ns;
    for (size_t i = 0; i < count && steps > 0 && !sw__has_device(all); i++) {
        const sw_training_module *part = &modules[i];
        const double own = (double)part->total_ns / (double)steps;
        const double ns = own < forward ? own : forward;
        if (!part->type || part->loss || !(ns / step > HELD_LEAST) ||
            10 * part->calls <= 9 * steps) {
            continue;
        }
        const struct sw__learning learning = sw__learning_of(modules, count, part);
        const char *attribute;
        const char *type = owner_of(modules, count, part, &attribute);
        if (!type || learning.parameters == 0 || learning.trainable > 0 ||
            learning.backward > 0) {
            continue;
        }
        const bool moody = learning.moody && !sw__stands_still(all, part->name);
        const struct held_call at = find_held_call(all, type, attribute, moody);
        if (!at.file) {
            continue;
        }
        struct sw__draft *draft = sw__draft(all, SW_FINDING_REDUNDANT_WORK, "RULE-44");
        sw__draft_rule(draft, "RULE-13");
        draft->group = SW__GROUP_COMPUTE;
        draft->specific = 3;
        sw__draft_where(all, draft, at.file, at.line, at.name);
        sw__draft_title(all, draft,
                        "%.0f %% of a step is %s, which learns nothing and is given the "
                        "same each time",
                        100 * ns / step, part->name);
        sw__draft_number(draft, "module_ms", ns / 1e6);
        sw__draft_number(draft, "module_share", ns / step);
        draft->finding.share = ns / step;
        draft->finding.confidence = 0.75;
        sw__draft_advise(all, draft,
                         "%s, line %u of %s, gives it nothing but what the model has had "
                         "since it was built, and its parameters are frozen: compute "
                         "that once, when these are loaded, and keep it "
                         "(register_buffer).",
                         at.name, at.line, sw__file_name(at.file));
        const struct sw__estimate time = {.mean = ns, .low = ns, .high = ns};
        sw__draft_saves_in_steps(all, draft, time, 0.98, 0.7, 1);
        sw__explains_slow(all, draft);
        return true;
    }
    return false;
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
    return part_given_nothing(all) || part_given_what_is_held(all);
}
