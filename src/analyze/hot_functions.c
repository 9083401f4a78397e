/* The user's functions by their samples: which take the time, and whether it is the interpreter's. */
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/source_loops.h"

/* Share of a function's own samples outside native calls from which on those calls are short: some microseconds. In a loop
 * a smaller one shows it too. */
#define INTERPRETED 0.03
#define INTERPRETED_IN_LOOP 0.008

static int by_samples(const void *left, const void *right)
{
    const struct sw__hot_function *a = left;
    const struct sw__hot_function *b = right;
    if (a->samples != b->samples) {
        return a->samples < b->samples ? 1 : -1;
    }
    const int name = strcmp(a->frame.name, b->frame.name);
    return name ? name : strcmp(a->frame.file, b->frame.file);
}

struct sw__hot_function *sw__hot_functions(sw_findings *all, uint64_t phases,
                                           unsigned when, bool outside, size_t *count)
{
    const struct sw__hot *hot = sw__hot_code(all);
    *count = 0;
    struct sw__hot_function *list = sw__arena_take(
        all->arena, (hot->count + 1) * sizeof *list, _Alignof(struct sw__hot_function));
    if (!list) {
        all->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (!(phases & SW__PHASE_BIT(line->as)) || !(line->when & when) ||
            (line->outside && !outside)) {
            continue;
        }
        size_t k = 0;
        while (k < *count && !sw__same_function(&list[k].frame, line->frame)) {
            k++;
        }
        if (k == *count) {
            list[(*count)++] = (struct sw__hot_function){.frame = *line->frame};
        }
        struct sw__hot_function *function = &list[k];
        if (line->samples > function->line_samples) {
            function->line_samples = line->samples;
            function->frame = *line->frame;
            function->entry = line->entry;
        }
        function->samples += line->samples;
        function->own += line->own;
        function->interpreted += line->interpreted;
        function->copied += line->copied;
        function->by_phase[line->phase] += line->outside ? 0 : line->samples;
        function->own_by_phase[line->phase] += line->outside ? 0 : line->own;
    }
    if (*count > 1) {
        qsort(list, *count, sizeof *list, by_samples);
    }
    return *count ? list : NULL;
}

struct sw__estimate sw__hot_time(sw_findings *all,
                                 const uint64_t by_phase[SW_PHASE_COUNT])
{
    const struct sw__hot *hot = sw__hot_code(all);
    struct sw__estimate time = {.mean = 0};
    uint64_t part = 0;
    uint64_t whole = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        if (by_phase[p] && hot->phase_samples[p]) {
            const struct sw__estimate phase = sw__case_phases(&all->it, SW__PHASE_BIT(p));
            time.mean += phase.mean * (double)by_phase[p] / (double)hot->phase_samples[p];
            part += by_phase[p];
            whole += hot->phase_samples[p];
        }
    }
    const sw_share share = sw_share_of(part, whole);
    time.count = part;
    time.low = part ? time.mean * share.low / share.share : 0;
    time.high = part ? time.mean * share.high / share.share : 0;
    return time;
}

/* Where the hot line of a function stands. */
enum loop { LOOP_UNKNOWN, LOOP_NONE, LOOP_TRAINING, LOOP_INNER };

static enum loop loop_of(sw_findings *all, const sw_stack_frame *frame)
{
    const struct sw__hot *hot = sw__hot_code(all);
    size_t length = 0;
    char *text = sw__source_text(frame->file, &length);
    if (!text) {
        return LOOP_UNKNOWN;
    }
    const uint32_t around = sw__source_loop(text, length, frame->first_line, frame->line);
    enum loop loop = around ? LOOP_INNER : LOOP_NONE;
    for (size_t i = 0; i < hot->caller_count; i++) {
        const sw_stack_frame *caller = hot->callers[i];
        if (sw__same_function(caller, frame) &&
            sw__source_loop(text, length, caller->first_line, caller->line) == around) {
            loop = LOOP_TRAINING;
        }
    }
    sw__free(text);
    return loop;
}

bool sw__hot_interpreted(sw_findings *all, const struct sw__hot_function *function)
{
    const double low = sw_share_of(function->interpreted, function->own).low;
    if (function->own < 10 || function->interpreted < 3 || !(low > INTERPRETED_IN_LOOP)) {
        return false;
    }
    const enum loop loop = loop_of(all, &function->frame);
    return loop == LOOP_INNER || (loop != LOOP_TRAINING && low > INTERPRETED);
}

const struct sw__hot_function *sw__hot_where(sw_findings *all, struct sw__draft *draft,
                                             uint64_t phases, bool outside)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, phases, SW__HOT_ANY, outside, &count);
    if (list) {
        sw__draft_where(all, draft, list->frame.file, list->frame.line, list->frame.name);
    }
    return list;
}

const struct sw__hot_function *
sw__hot_where_called(sw_findings *all, struct sw__draft *draft, uint64_t phases)
{
    size_t count;
    const struct sw__hot *hot = sw__hot_code(all);
    const struct sw__hot_function *list =
        sw__hot_functions(all, phases, SW__HOT_ANY, false, &count);
    const struct sw__hot_function *found = list;
    for (size_t i = 0; i < count && 5 * list[i].samples > list->samples; i++) {
        if (!sw__hot_trains(hot, &list[i].frame)) {
            found = &list[i];
            break;
        }
    }
    if (found) {
        sw__draft_where(all, draft, found->frame.file, found->frame.line,
                        found->frame.name);
    }
    return found;
}

void sw__hot_where_loop(sw_findings *all, struct sw__draft *draft)
{
    const struct sw__hot *hot = sw__hot_code(all);
    if (hot->caller_count > 0) {
        /* Those of the first stack come first, from its root on; none of them calls another twice. */
        size_t last = 0;
        while (last + 1 < hot->caller_count &&
               !sw__same_function(hot->callers[last + 1], hot->callers[0])) {
            last++;
        }
        const sw_stack_frame *at = hot->callers[last];
        sw__draft_where(all, draft, at->file, at->line, at->name);
    }
}
