/* The user's functions by their samples: which take the time, and whether it is the interpreter's. */
#include <stdlib.h>
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"

/* Share of a function's own samples outside native calls from which on those calls are short: some microseconds. In a loop
 * a smaller one shows it too. */
#define INTERPRETED 0.03
#define INTERPRETED_IN_LOOP 0.008
/* Below this it may come from operators on arrays; of a line that has nothing else, below this. */
#define LITTLE 0.12
#define LITTLE_BETWEEN 0.08

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

/* Of the line's own samples, those in a loop inside the step: of its function, or of one that calls it. */
static uint64_t repeated_of(sw_findings *all, const struct sw__hot_line *line)
{
    if (line->own == line->repeated || line->interpreted == 0) {
        return line->repeated;
    }
    return sw__hot_loop(all, line->frame) == SW__LOOP_INNER ? line->own : line->repeated;
}

/* Whether a line makes an array or a tensor of what it is given. */
static bool makes_array(const sw_stack_frame *frame)
{
    static const char *const words[] = {"tensor(", "Tensor(", "array("};
    struct sw__frame_source source = sw__frame_source(frame);
    const struct sw__source_line line = source.line;
    bool makes = false;
    for (size_t i = 0; line.text && !makes && i < sizeof words / sizeof words[0]; i++) {
        makes = memmem(line.text, line.length, words[i], strlen(words[i])) != NULL;
    }
    sw__frame_source_free(&source);
    return makes;
}

/* A loop that gathers values in lists, and a line after it that makes an array of them: that goes through Python's objects one by
 * one as well, native though the call is, and is there only for the loop. */
static void count_gathered(sw_findings *all, const struct sw__hot_line *const *lines,
                           size_t count, struct sw__hot_function *function)
{
    const struct sw__hot_line *loop = NULL;
    uint64_t looped = 0;
    for (size_t i = 0; i < count; i++) {
        if (lines[i]->own > 0 && 2 * lines[i]->interpreted > lines[i]->own &&
            sw__hot_loop(all, lines[i]->frame) == SW__LOOP_INNER) {
            looped += lines[i]->own;
            loop = !loop || lines[i]->own > loop->own ? lines[i] : loop;
        }
    }
    if (!loop || !(sw_share_of(looped, function->own).low > LITTLE)) {
        return;
    }
    bool gathers = false;
    for (size_t i = 0; i < count; i++) {
        const struct sw__hot_line *line = lines[i];
        if (20 * line->own > function->own && 2 * line->interpreted < line->own &&
            line->frame->line > loop->frame->line && makes_array(line->frame) &&
            sw__hot_loop(all, line->frame) == SW__LOOP_NONE) {
            function->interpreted += line->own - line->interpreted;
            function->plain += line->own;
            function->repeated += line->own - line->repeated;
            gathers = true;
        }
    }
    if (gathers) {
        function->frame = *loop->frame;
        function->entry = loop->entry;
        function->caller = loop->caller;
        function->line_samples = loop->samples;
    }
}

/* The lines of a function of the list, as many as it has room for. */
enum { LINES_MOST = 64 };

static bool chosen(const struct sw__hot_line *line, uint64_t phases, unsigned when,
                   bool outside)
{
    return phases & SW__PHASE_BIT(line->as) && line->when & when &&
           (!line->outside || outside);
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
        if (!chosen(line, phases, when, outside)) {
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
            function->caller = line->caller;
        }
        function->samples += line->samples;
        function->own += line->own;
        function->interpreted += line->interpreted;
        function->copied += line->copied;
        function->repeated += repeated_of(all, line);
        function->plain += 2 * line->interpreted > line->own ? line->interpreted : 0;
        function->between +=
            line->when & (SW__HOT_BETWEEN | SW__HOT_UNKNOWN) ? line->own : 0;
        function->by_phase[line->phase] += line->outside ? 0 : line->samples;
        function->own_by_phase[line->phase] += line->outside ? 0 : line->own;
    }
    for (size_t k = 0; k < *count; k++) {
        const struct sw__hot_line *lines[LINES_MOST];
        size_t here = 0;
        for (size_t i = 0; list[k].plain > 0 && i < hot->count && here < LINES_MOST;
             i++) {
            if (chosen(&hot->lines[i], phases, when, outside) &&
                sw__same_function(&list[k].frame, hot->lines[i].frame)) {
                lines[here++] = &hot->lines[i];
            }
        }
        if (here > 1) {
            count_gathered(all, lines, here, &list[k]);
        }
    }
    if (*count > 1) {
        qsort(list, *count, sizeof *list, by_samples);
    }
    return *count ? list : NULL;
}

/* What one step alone has of a set of phases beyond the others, in ns a step, where that is much of the whole: something that
 * was done once, and which of the samples saw it nobody knows. */
#define ONCE_STEPS 20
#define ONCE_SHARE 0.1
#define ONCE_TIMES 10
static double done_once(const struct sw__case *it, uint64_t phases)
{
    double sum = 0;
    double most = 0;
    size_t count;
    const sw_summary_step *step = sw__case_steps(it, phases, &count);
    for (size_t i = 0; i < count; i++) {
        double ns = 0;
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            ns += phases & SW__PHASE_BIT(p) ? (double)step[i].phase_ns[p] : 0;
        }
        sum += ns;
        most = ns > most ? ns : most;
    }
    const double others = count > 1 ? (sum - most) / (double)(count - 1) : most;
    if (count < ONCE_STEPS || most < ONCE_SHARE * sum || most < ONCE_TIMES * others) {
        return 0;
    }
    return (most - others) / (double)count;
}

struct sw__estimate sw__hot_time(sw_findings *all,
                                 const uint64_t by_phase[SW_PHASE_COUNT])
{
    const struct sw__hot *hot = sw__hot_code(all);
    struct sw__estimate time = {.mean = 0};
    uint64_t part = 0;
    uint64_t whole = 0;
    double once = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        /* A loss that is written out is known to be one only when it is over: samples of it say `other`. */
        const bool pooled = p == SW_PHASE_OTHER || p == SW_PHASE_LOSS;
        const uint64_t samples = pooled ? hot->phase_samples[SW_PHASE_OTHER] +
                                              hot->phase_samples[SW_PHASE_LOSS]
                                        : hot->phase_samples[p];
        if (by_phase[p] && samples) {
            const uint64_t phases =
                pooled ? SW__PHASE_BIT(SW_PHASE_OTHER) | SW__PHASE_BIT(SW_PHASE_LOSS)
                       : SW__PHASE_BIT(p);
            const struct sw__estimate phase = sw__case_phases(&all->it, phases);
            const double single = done_once(&all->it, phases);
            once = single > once ? single : once;
            time.mean += phase.mean * (double)by_phase[p] / (double)samples;
            part += by_phase[p];
            whole += samples;
        }
    }
    const sw_share share = sw_share_of(part, whole);
    time.count = part;
    time.low = part ? time.mean * share.low / share.share - once : 0;
    time.low = time.low > 0 ? time.low : 0;
    time.high = part ? time.mean * share.high / share.share : 0;
    return time;
}

enum sw__hot_loop sw__hot_loop(sw_findings *all, const sw_stack_frame *frame)
{
    const struct sw__hot *hot = sw__hot_code(all);
    struct sw__frame_source source = sw__frame_source(frame);
    if (!source.text) {
        return SW__LOOP_UNKNOWN;
    }
    const uint32_t around = source.loop;
    enum sw__hot_loop loop = around ? SW__LOOP_INNER : SW__LOOP_NONE;
    for (size_t i = 0; i < hot->caller_count; i++) {
        const sw_stack_frame *caller = hot->callers[i];
        if (sw__same_function(caller, frame) &&
            sw__source_loop(source.text, source.length, caller->first_line,
                            caller->line) == around) {
            loop = SW__LOOP_TRAINING;
        }
    }
    /* A loop that was watched is the one that trains only where nothing says better: others are watched, too. */
    const sw_training_site *site =
        hot->caller_count == 0 ? sw__site_of(all, SW_SITE_LOOP) : NULL;
    if (around && site && site->line == around && site->file &&
        strcmp(site->file, frame->file) == 0) {
        loop = SW__LOOP_TRAINING;
    }
    sw__frame_source_free(&source);
    return loop;
}

bool sw__hot_hands_over(const sw_stack_frame *frame)
{
    static const char *const words[] = {
        "map(", "filter(", "reduce(", "key=", "apply", "vectorize(", "sorted(", ".sort("};
    struct sw__frame_source source = sw__frame_source(frame);
    const struct sw__source_line line = source.line;
    bool does = !line.text;
    for (size_t i = 0; !does && i < sizeof words / sizeof words[0]; i++) {
        does = memmem(line.text, line.length, words[i], strlen(words[i])) != NULL;
    }
    sw__frame_source_free(&source);
    return does;
}

/* Whether a line is a loop by itself: a comprehension. */
static bool comprehends(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    /* What stands in the head of a for statement is computed once. */
    const bool head = source.line.text && sw__source_is_loop(&source.line);
    const bool does = source.loop > 0 && source.loop == frame->line && !head;
    sw__frame_source_free(&source);
    return does;
}

/* Whether a line lies in a loop inside a loop, of which neither is the one that trains. */
static bool nested(sw_findings *all, const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const uint32_t outer = source.loop
                               ? sw__source_loop_around(source.text, source.length,
                                                        frame->first_line, source.loop)
                               : 0;
    sw__frame_source_free(&source);
    sw_stack_frame around = *frame;
    around.line = outer;
    return outer > 0 && sw__hot_loop(all, &around) == SW__LOOP_INNER;
}

/* Whether a line computes with operators alone. They are no calls, and of arrays native all the same. */
static bool operates(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool calls =
        !source.line.text || memchr(source.line.text, '(', source.line.length) != NULL;
    sw__frame_source_free(&source);
    return !calls;
}

bool sw__hot_interpreted(sw_findings *all, const struct sw__hot_function *function)
{
    const double low = sw_share_of(function->interpreted, function->own).low;
    if (function->own < 10 || function->interpreted < 3 || !(low > INTERPRETED_IN_LOOP)) {
        return false;
    }
    switch (sw__hot_loop(all, &function->frame)) {
    case SW__LOOP_TRAINING:
        return false;
    case SW__LOOP_INNER:
        /* A loop over few large arrays has operators, some of which end while they are looked at, but no Python between
         * them that takes time. */
        return low > LITTLE ||
               (function->plain >= 3 && 8 * function->plain >= function->own) ||
               comprehends(&function->frame) ||
               (low > INTERPRETED && nested(all, &function->frame));
    case SW__LOOP_NONE:
        /* What a step does once takes no time in the interpreter, however it looks: it frees memory, say. */
        return low > (operates(&function->frame) ? LITTLE_BETWEEN : INTERPRETED) &&
               2 * function->repeated >= function->own;
    default:
        return low > INTERPRETED;
    }
}

bool sw__hot_by_pieces(sw_findings *all, const struct sw__hot_function *function)
{
    if (sw__hot_interpreted(all, function)) {
        return true;
    }
    const sw_stack_frame *frame = &function->frame;
    struct sw__frame_source source = sw__frame_source(frame);
    const bool inside = source.loop > 0 &&
                        !sw__source_yields(source.text, source.length, source.loop) &&
                        sw__hot_loop(all, frame) == SW__LOOP_INNER;
    sw__frame_source_free(&source);
    return inside;
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
