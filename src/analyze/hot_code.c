/* The user's own code in the samples of the step thread. */
#include "analyze/hot_code.h"

#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/rules.h"
#include "analyze/source_inputs.h"
#include "analyze/summary.h"

enum { DEEPEST = 512, REFERENCES = 256, CALLERS = 64, TAGS = 256 };

/* --- whose code it is --- */

static bool standard_library(const char *file)
{
    return file[0] == '<' || strstr(file, "/lib/python3") ||
           strstr(file, "/lib64/python3");
}

static bool installed(const char *file)
{
    return strstr(file, "/site-packages/") || strstr(file, "/dist-packages/") ||
           strstr(file, "/python/stepwatch/");
}

bool sw__user_file(const char *file)
{
    if (!file || !*file || installed(file)) {
        return false;
    }
    if (file[0] == '<') {
        /* Cells of notebooks and prompts are the user's, generated code is not. */
        return strncmp(file, "<ipython-input", 14) == 0 || strcmp(file, "<stdin>") == 0 ||
               strcmp(file, "<string>") == 0;
    }
    return !standard_library(file);
}

static bool in_list(const char *text, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strstr(text, list[i])) {
            return true;
        }
    }
    return false;
}
#define HAS_ONE_OF(text, list) in_list(text, list, sizeof list / sizeof list[0])

/* Whether an installed package is slow in the interpreter itself: time in it is that of whoever calls it over and over.
 * Frameworks and those around compiled code are not meant. */
static bool is_python(const char *file)
{
    static const char *const packages[] = {
        "/pandas/", "/networkx/", "/nltk/",      "/dateutil/", "/yaml/",    "/bs4/",
        "/sympy/",  "/xarray/",   "/gymnasium/", "/gym/",      "/pydantic/"};
    return HAS_ONE_OF(file, packages);
}

/* Whether a package is there to write down or to draw what happens. */
static bool logs_package(const char *file)
{
    static const char *const packages[] = {
        "/loggers/", "/wandb/",   "/mlflow/",     "/tensorboard", "/comet_ml/",
        "/neptune/", "/aim/",     "/clearml/",    "/matplotlib/", "/seaborn/",
        "/plotly/",  "/tabulate", "/prettytable", "/rich/",       "/pandas/io/formats/"};
    return installed(file) && HAS_ONE_OF(file, packages);
}

/* Whether code waits for other threads or processes of the program. */
static bool waits_for_others(const char *file)
{
    static const char *const files[] = {"/concurrent/futures/", "/threading.py",
                                        "/queue.py", "/multiprocessing/"};
    return HAS_ONE_OF(file, files);
}

/* Whether a function writes down what happens: of a package for that, or one of the user's that is named so. */
static bool writes_logs(const sw_stack_frame *frame, bool *by_name)
{
    static const char *const classes[] = {"Logger.",   "Tracker.", "Reporter.",
                                          "Recorder.", "Journal.", "Diary."};
    static const char *const values[] = {"log_prob", "log_softmax", "log_lik", "log_det",
                                         "log_sum",  "log_norm",    "log_sigm"};
    *by_name = false;
    if (!sw__user_file(frame->file)) {
        return logs_package(frame->file);
    }
    const char *inner = strstr(frame->name, ".<locals>");
    const size_t length = inner ? (size_t)(inner - frame->name) : strlen(frame->name);
    size_t last = length;
    while (last > 0 && frame->name[last - 1] != '.') {
        last--;
    }
    const char *name = frame->name + last;
    const bool is_log = strncmp(name, "log", 3) == 0 &&
                        (length - last == 3 || name[3] == '_') &&
                        !HAS_ONE_OF(name, values);
    const bool of_class = HAS_ONE_OF(frame->name, classes);
    *by_name = is_log && !of_class;
    return is_log || of_class;
}

/* --- the order of lines --- */

/* A few stacks of a phase, to compare others with. */
struct references {
    uint32_t *frames; /* REFERENCES × DEEPEST */
    size_t depth[REFERENCES];
    size_t count;
};

bool sw__same_function(const sw_stack_frame *a, const sw_stack_frame *b)
{
    return a->first_line == b->first_line && strcmp(a->name, b->name) == 0 &&
           strcmp(a->file, b->file) == 0;
}

/* How a line stands to the calls of a phase. */
enum order { ORDER_UNKNOWN, ORDER_BEFORE, ORDER_AMONG, ORDER_AFTER };

/* How many frames two stacks begin with alike, of the first `most`. */
static size_t frames_alike(const uint32_t *a, const uint32_t *b, size_t most)
{
    size_t count = 0;
    while (count < most && a[count] == b[count]) {
        count++;
    }
    return count;
}

/* Told by the lines of the innermost function from which both were reached the same way; where that is one line that calls both,
 * nothing is told, whatever the functions around it say: they may have called it twice. `*at`: the frame of that function. */
static enum order order(const sw_stacks *stacks, const struct references *to,
                        const uint32_t *frames, size_t depth, size_t *at)
{
    bool before = false;
    bool after = false;
    size_t innermost = 0;
    for (size_t k = 0; k < to->count; k++) {
        const uint32_t *other = to->frames + k * DEEPEST;
        const size_t shorter = depth < to->depth[k] ? depth : to->depth[k];
        const size_t i = frames_alike(frames, other, shorter);
        const sw_stack_frame *a =
            i < shorter ? sw_stacks_get_frame(stacks, frames[i]) : NULL;
        const sw_stack_frame *b = a ? sw_stacks_get_frame(stacks, other[i]) : NULL;
        const bool told = a && sw__same_function(a, b) && a->line && b->line;
        const size_t shared = told || i == 0 ? i : i - 1;
        if (shared < innermost) {
            continue;
        }
        if (shared > innermost) {
            before = after = false;
            innermost = shared;
        }
        before = before || (told && a->line < b->line);
        after = after || (told && a->line > b->line);
    }
    *at = before || after ? innermost : 0;
    return before && after ? ORDER_AMONG
           : before        ? ORDER_BEFORE
           : after         ? ORDER_AFTER
                           : ORDER_UNKNOWN;
}

/* Whether a frame is the call of a module, on its way to what the module does. */
static bool is_call(const sw_stack_frame *frame)
{
    return strstr(frame->file, "/torch/nn/modules/module.py") ||
           strstr(frame->file, "/stepwatch/integrations/torch_modules.py");
}

/* Whether a frame is where the model is called, or autograd. */
static bool enters(const sw_stack_frame *frame)
{
    return is_call(frame) || strstr(frame->file, "/torch/_tensor.py") ||
           strstr(frame->file, "/torch/autograd/");
}

/* Each way is kept once. */
static void add_reference(struct references *references, const uint32_t *frames,
                          size_t depth)
{
    for (size_t i = 0; i < references->count; i++) {
        if (references->depth[i] == depth &&
            memcmp(references->frames + i * DEEPEST, frames, depth * sizeof *frames) ==
                0) {
            return;
        }
    }
    if (references->frames && references->count < REFERENCES) {
        memcpy(references->frames + references->count * DEEPEST, frames,
               depth * sizeof *frames);
        references->depth[references->count++] = depth;
    }
}

/* Up to the innermost frame of the user's, and what a framework does from there to call the model or autograd: it calls back to
 * the user's code from there, too. What follows tells nothing more. */
static void keep_reference(const sw_stacks *stacks, struct references *references,
                           const uint32_t *frames, size_t depth)
{
    size_t kept = depth;
    while (kept > 1 &&
           !sw__user_file(sw_stacks_get_frame(stacks, frames[kept - 1])->file)) {
        kept--;
    }
    size_t inside = kept;
    while (inside < depth && !enters(sw_stacks_get_frame(stacks, frames[inside]))) {
        inside++;
    }
    kept = inside < depth ? inside
                          : kept; /* nobody is known to be called: as short as can be */
    add_reference(references, frames, kept < depth ? kept + 1 : depth);
}

/* --- reading the samples --- */

struct reading {
    sw_findings *all;
    const sw_stacks *stacks;
    struct sw__hot *hot;
    size_t room;
    struct references forward, backward, saving;
    /* What the sections of tags outside steps belong to: found once each. */
    const sw_stack_tag *tag[TAGS];
    int tag_phase[TAGS];
    size_t tags;
    uint8_t *repeats; /* by number of the frame: enum repeats; found once each */
    uint8_t *gives;   /* the same: enum gives */
};

static bool of_step_thread(const sw_findings *all, const sw_stack_tag *tag)
{
    const sw_summary_steps *steps = all->it.steps;
    return tag->pid == steps->pid && strcmp(tag->thread, steps->thread) == 0;
}

/* Whether the loop from which a stack and the model were reached lies inside the step of an optimizer: then it is the
 * closure, which computes what the step needs. */
static bool in_closure(const sw_stacks *stacks, const uint32_t *frames, size_t loop)
{
    for (size_t i = 0; i < loop; i++) {
        if (strstr(sw_stacks_get_frame(stacks, frames[i])->file, "/torch/optim/")) {
            return true;
        }
    }
    return false;
}

/* Validation or checkpoint, for a section that has them above it; SW_PHASE_INHERIT otherwise. */
static int aside_of(const sw_summary *summary, const char *section)
{
    size_t count;
    const sw_summary_section *rows = sw_summary_sections(summary, SW_ROWS_EACH, &count);
    for (size_t i = 0; *section && i < count; i++) {
        if (strcmp(rows[i].name, section) != 0 ||
            (rows[i].phase != SW_PHASE_INHERIT && rows[i].phase != SW_PHASE_VALIDATION &&
             rows[i].phase != SW_PHASE_CHECKPOINT)) {
            continue; /* a collection or a print may be anywhere */
        }
        for (uint32_t at = (uint32_t)i; at != SW_NO_ROW; at = rows[at].parent) {
            if (rows[at].phase == SW_PHASE_VALIDATION ||
                rows[at].phase == SW_PHASE_CHECKPOINT) {
                return rows[at].phase;
            }
        }
    }
    return SW_PHASE_INHERIT;
}

static int aside_of_tag(struct reading *reading, const sw_stack_tag *tag)
{
    for (size_t i = 0; i < reading->tags; i++) {
        if (reading->tag[i] == tag) {
            return reading->tag_phase[i];
        }
    }
    const int phase = aside_of(reading->all->it.summary, tag->section);
    if (reading->tags < TAGS) {
        reading->tag[reading->tags] = tag;
        reading->tag_phase[reading->tags++] = phase;
    }
    return phase;
}

static void find_references(struct reading *reading)
{
    const size_t size = (size_t)REFERENCES * DEEPEST;
    reading->forward.frames = sw__alloc_zero(size, sizeof(uint32_t));
    reading->backward.frames = sw__alloc_zero(size, sizeof(uint32_t));
    reading->saving.frames = sw__alloc_zero(size, sizeof(uint32_t));
    uint32_t frames[DEEPEST];
    sw_stack stack;
    sw_stacks_cursor cursor = {0};
    while (sw_stacks_next(reading->stacks, &cursor, &stack)) {
        const int phase = stack.tag->phase;
        if ((phase != SW_PHASE_FORWARD && phase != SW_PHASE_BACKWARD &&
             phase != SW_PHASE_CHECKPOINT) ||
            !of_step_thread(reading->all, stack.tag)) {
            continue;
        }
        const size_t depth = sw_stacks_frames(reading->stacks, stack.id, frames, DEEPEST);
        if (phase == SW_PHASE_CHECKPOINT) {
            add_reference(&reading->saving, frames, depth);
        } else {
            keep_reference(reading->stacks,
                           phase == SW_PHASE_FORWARD ? &reading->forward
                                                     : &reading->backward,
                           frames, depth);
        }
    }
}

/* Whether the innermost function from which a stack and one that saves were reached is a package's, and its name says that it saves:
 * then it does here what belongs to that, such as removing the state before. */
static bool belongs_to_saving(const struct reading *reading, const uint32_t *frames,
                              size_t depth)
{
    const struct references *to = &reading->saving;
    size_t innermost = 0; /* its frame, plus 1 */
    for (size_t k = 0; k < to->count; k++) {
        const uint32_t *other = to->frames + k * DEEPEST;
        const size_t shorter = depth < to->depth[k] ? depth : to->depth[k];
        const size_t i = frames_alike(frames, other, shorter);
        const bool same =
            i < shorter &&
            sw__same_function(sw_stacks_get_frame(reading->stacks, frames[i]),
                              sw_stacks_get_frame(reading->stacks, other[i]));
        const size_t shared = same ? i + 1 : i;
        innermost = shared > innermost ? shared : innermost;
    }
    const sw_stack_frame *at =
        innermost ? sw_stacks_get_frame(reading->stacks, frames[innermost - 1]) : NULL;
    return at && installed(at->file) &&
           sw__kind_by_name(at->name) == SW_FINDING_CHECKPOINT;
}

static enum sw__hot_when place_in_step(const struct reading *reading, int phase,
                                       const uint32_t *frames, size_t depth, size_t *loop)
{
    size_t at;
    const enum order backward =
        order(reading->stacks, &reading->backward, frames, depth, &at);
    *loop = at;
    if (phase == SW_PHASE_FORWARD) {
        return backward == ORDER_AFTER     ? SW__HOT_AFTER
               : backward == ORDER_UNKNOWN ? SW__HOT_UNKNOWN
                                           : SW__HOT_BETWEEN;
    }
    const enum order forward =
        order(reading->stacks, &reading->forward, frames, depth, &at);
    *loop = forward == ORDER_UNKNOWN ? *loop : at;
    if (forward == ORDER_BEFORE) {
        return SW__HOT_BEFORE;
    }
    if (backward == ORDER_AFTER ||
        (forward == ORDER_AFTER && reading->backward.count == 0)) {
        return SW__HOT_AFTER;
    }
    return forward == ORDER_UNKNOWN ? SW__HOT_UNKNOWN : SW__HOT_BETWEEN;
}

static struct sw__hot_line *line_of(struct reading *reading,
                                    const struct sw__hot_line *key)
{
    struct sw__hot *hot = reading->hot;
    for (size_t i = 0; i < hot->count; i++) {
        struct sw__hot_line *line = &hot->lines[i];
        if (line->frame == key->frame && line->phase == key->phase &&
            line->as == key->as && line->outside == key->outside &&
            line->when == key->when) {
            return line;
        }
    }
    if (hot->count == reading->room) {
        /* Grown in the arena: what was there before is given back with it. */
        const size_t room = reading->room ? reading->room * 2 : 64;
        struct sw__hot_line *grown = sw__arena_take(
            reading->all->arena, room * sizeof *grown, _Alignof(struct sw__hot_line));
        if (!grown) {
            reading->all->failed = true;
            return NULL;
        }
        if (hot->count) {
            memcpy(grown, hot->lines, hot->count * sizeof *grown);
        }
        hot->lines = grown;
        reading->room = room;
    }
    hot->lines[hot->count] = *key;
    return &hot->lines[hot->count++];
}

static bool is_caller(const struct sw__hot *hot, const sw_stack_frame *frame)
{
    for (size_t i = 0; i < hot->caller_count; i++) {
        if (hot->callers[i] == frame) {
            return true;
        }
    }
    return false;
}

bool sw__hot_trains(const struct sw__hot *hot, const sw_stack_frame *frame)
{
    for (size_t i = 0; i < hot->caller_count; i++) {
        if (sw__same_function(hot->callers[i], frame)) {
            return true;
        }
    }
    return false;
}

/* Whether a frame of a stack is the user's. "<string>" is a program given as python -c, which all of its stacks begin with, or
 * else code that a package has made as text (collections.namedtuple). */
static bool is_users(const sw_stacks *stacks, const uint32_t *frames, size_t index)
{
    const char *file = sw_stacks_get_frame(stacks, frames[index])->file;
    return sw__user_file(file) &&
           (strcmp(file, "<string>") != 0 ||
            strcmp(sw_stacks_get_frame(stacks, frames[0])->file, "<string>") == 0);
}

/* Whether a stack is the innermost frames alone, of which nobody knows who called them: those of a thread begin in a module,
 * or in what starts modules and threads. A few of a package's, or any that the user's code is not among. */
static bool is_torn(const sw_stacks *stacks, const uint32_t *frames, size_t depth)
{
    const sw_stack_frame *outermost = sw_stacks_get_frame(stacks, frames[0]);
    const bool package = installed(outermost->file);
    if ((!package && !standard_library(outermost->file)) ||
        strcmp(outermost->name, "<module>") == 0 || strstr(outermost->name, "main") ||
        strstr(outermost->name, "bootstrap")) {
        return false;
    }
    bool users = false;
    for (size_t i = 0; i < depth; i++) {
        users = users || is_users(stacks, frames, i);
    }
    return !users || (package && depth <= 3);
}

static bool in_jax(const sw_stacks *stacks, const uint32_t *frames, size_t depth)
{
    for (size_t i = depth; i-- > 0;) {
        const char *file = sw_stacks_get_frame(stacks, frames[i])->file;
        if (is_users(stacks, frames, i)) {
            return false;
        }
        if (strstr(file, "/jax/_src/")) {
            return true;
        }
    }
    return false;
}

/* What a frame says of how often the one that it calls is called in a step. */
enum repeats {
    REPEATS_UNSEEN,
    REPEATS_SAME,
    REPEATS_FOLLOWS, /* the same, and it is given what the model gave just now */
    REPEATS_ONCE,
    REPEATS_OFTEN
};

/* Python code through which a call goes once: of modules, of decorators, of the recorder. */
static bool passes_on(const sw_stack_frame *frame)
{
    static const char *const files[] = {"/torch/nn/modules/module.py",
                                        "/torch/utils/_contextlib.py",
                                        "/python/stepwatch/", "/stepwatch/"};
    return HAS_ONE_OF(frame->file, files);
}

/* Whether the loop around a line calls the model in another one, as a rollout does. What the line calls then takes turns with
 * the model, each waits for what the other gives, and nothing can be put together. The line that calls the model; 0: none. */
static uint32_t takes_turns(const struct reading *reading, const sw_stack_frame *frame)
{
    const struct references *from = &reading->forward;
    const uint32_t loop = sw__frame_loop(frame);
    for (size_t k = 0; loop > 0 && k < from->count; k++) {
        for (size_t i = 0; i < from->depth[k]; i++) {
            const uint32_t *at = &from->frames[k * DEEPEST + i];
            const sw_stack_frame *other = sw_stacks_get_frame(reading->stacks, at[0]);
            const bool calls = i + 1 == from->depth[k] ||
                               is_call(sw_stacks_get_frame(reading->stacks, at[1]));
            if (is_call(other)) {
                break; /* what follows is the model's own code */
            }
            if (calls && sw__same_function(other, frame) && other->line != frame->line &&
                sw__frame_loop(other) == loop) {
                return other->line;
            }
        }
    }
    return 0;
}

static bool follows_model(const sw_stack_frame *frame, uint32_t model)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool follows =
        source.text && sw__source_follows(source.text, source.length, frame->first_line,
                                          model, frame->line);
    sw__frame_source_free(&source);
    return follows;
}

/* Whether a loop simulates something: what the line calls in one round needs what it gave in the one before, and no other round can
 * be computed beside it. */
static bool simulates(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const bool does = source.text && sw__source_goes_on(source.text, source.length,
                                                        frame->first_line, frame->line);
    sw__frame_source_free(&source);
    return does;
}

static enum repeats repeats_of(struct reading *reading, uint32_t number)
{
    const sw_stack_frame *frame = sw_stacks_get_frame(reading->stacks, number);
    if (!sw__user_file(frame->file)) {
        return passes_on(frame) ? REPEATS_SAME : REPEATS_OFTEN;
    }
    const enum sw__hot_loop loop = sw__hot_loop(reading->all, frame);
    const uint32_t model = loop == SW__LOOP_INNER ? takes_turns(reading, frame) : 0;
    if (model > 0) {
        return follows_model(frame, model) ? REPEATS_FOLLOWS : REPEATS_SAME;
    }
    if (loop == SW__LOOP_INNER && simulates(frame)) {
        return REPEATS_SAME;
    }
    if (loop == SW__LOOP_UNKNOWN || loop == SW__LOOP_INNER || sw__hot_hands_over(frame)) {
        return REPEATS_OFTEN;
    }
    return loop == SW__LOOP_TRAINING ? REPEATS_ONCE : REPEATS_SAME;
}

/* Whether a loop inside the step comes to the innermost of the user's functions, which is frame `inner` - 1; what is not known
 * may be one. `*follows`: what comes to it is given what the model gave. */
static bool comes_again(struct reading *reading, const uint32_t *frames, size_t inner,
                        bool *follows)
{
    const sw_stack_frame *at = sw_stacks_get_frame(reading->stacks, frames[inner - 1]);
    bool often = false;
    for (size_t i = 0; reading->repeats && i + 1 < inner; i++) {
        uint8_t *known = &reading->repeats[frames[i]];
        if (*known == REPEATS_UNSEEN) {
            *known = (uint8_t)repeats_of(reading, frames[i]);
        }
        *follows = *follows || *known == REPEATS_FOLLOWS;
        const bool same = *known == REPEATS_SAME || *known == REPEATS_FOLLOWS;
        often = *known == REPEATS_OFTEN || (often && same) ||
                sw__same_function(sw_stacks_get_frame(reading->stacks, frames[i]), at);
    }
    return often || !reading->repeats || at->name[0] == '<' ||
           strstr(at->name, ".<") != NULL;
}

enum gives { GIVES_UNSEEN, GIVES_NOTHING, GIVES_VALUE };

/* Whether a function gives back what it computes, as its source reads. */
static bool gives_value(struct reading *reading, uint32_t number)
{
    uint8_t unseen = GIVES_UNSEEN;
    uint8_t *known = reading->gives ? &reading->gives[number] : &unseen;
    if (*known == GIVES_UNSEEN) {
        const sw_stack_frame *frame = sw_stacks_get_frame(reading->stacks, number);
        struct sw__frame_source source = sw__frame_source(frame);
        *known = source.text &&
                         sw__source_returns(source.text, source.length, frame->first_line)
                     ? GIVES_VALUE
                     : GIVES_NOTHING;
        sw__frame_source_free(&source);
    }
    return *known == GIVES_VALUE;
}

/* Whether what a frame calls, or does, is there to be written down. The logarithm of something is named like that, too: it is
 * computed for the model or its loss, and given back. */
static bool logs_here(struct reading *reading, uint32_t number, enum sw__hot_when when)
{
    bool by_name;
    return writes_logs(sw_stacks_get_frame(reading->stacks, number), &by_name) &&
           !(by_name && (when == SW__HOT_BEFORE || when == SW__HOT_BETWEEN) &&
             gives_value(reading, number));
}

/* How many frames of a stack, from its root on, run the training where no sample has seen the model called (calls that return before
 * anything is computed take no time): up to that of the loop that was watched. */
static size_t frames_training(const struct reading *reading, const uint32_t *frames,
                              size_t depth)
{
    const sw_training_site *site =
        reading->hot->caller_count == 0 ? sw__site_of(reading->all, SW_SITE_LOOP) : NULL;
    while (depth > 0 && site && site->file && site->function) {
        const sw_stack_frame *frame =
            sw_stacks_get_frame(reading->stacks, frames[depth - 1]);
        const char *dot = strrchr(frame->name, '.');
        const bool named = strcmp(frame->name, site->function) == 0 ||
                           (dot && strcmp(dot + 1, site->function) == 0);
        if (named && frame->first_line <= site->line &&
            strcmp(frame->file, site->file) == 0) {
            return depth;
        }
        depth--;
    }
    return 0;
}

static void add_stack(struct reading *reading, const sw_stack *stack, int phase,
                      bool outside)
{
    uint32_t frames[DEEPEST];
    const size_t depth = sw_stacks_frames(reading->stacks, stack->id, frames, DEEPEST);
    const uint64_t samples = sw__add(stack->running, stack->waiting);
    struct sw__hot *hot = reading->hot;
    const bool eager = phase == SW_PHASE_OTHER && in_jax(reading->stacks, frames, depth);
    if (depth > 0 && is_torn(reading->stacks, frames, depth)) {
        hot->torn += outside ? 0 : samples;
        hot->torn_eager += eager && !outside ? samples : 0;
        return;
    }
    if (!outside) {
        hot->samples += samples;
        hot->phase_samples[phase] += samples;
        hot->phase_interpreted[phase] += sw__sub(samples, stack->in_call);
        hot->phase_waiting[phase] += stack->waiting;
        hot->eager += eager ? samples : 0;
    }
    size_t loop = 0;
    enum sw__hot_when when = SW__HOT_UNKNOWN;
    if (outside ? phase == SW_PHASE_VALIDATION : phase != SW_PHASE_BACKWARD) {
        when = place_in_step(reading, phase, frames, depth, &loop);
    }
    const bool closure =
        phase == SW_PHASE_OPTIMIZER && in_closure(reading->stacks, frames, loop);
    reading->hot->closure += closure ? samples : 0;
    bool package = depth < stack->depth; /* what was left out is deep in something */
    bool machinery = false;
    bool copies = false;
    bool logs = false;
    bool pools = false;
    size_t inner = depth;
    while (inner > 0) {
        const sw_stack_frame *frame =
            sw_stacks_get_frame(reading->stacks, frames[inner - 1]);
        const char *file = frame->file;
        if (is_users(reading->stacks, frames, inner - 1)) {
            break;
        }
        copies = copies || strcmp(frame->name, "deepcopy") == 0;
        logs = logs || logs_package(file);
        pools = pools || waits_for_others(file);
        package = package || !*file || (installed(file) && !is_python(file));
        machinery = machinery || strstr(file, "/torch/utils/data/") ||
                    strstr(file, "/stepwatch/integrations/");
        inner--;
    }
    if (inner == 0) {
        return;
    }
    struct sw__hot_line key = {
        .frame = sw_stacks_get_frame(reading->stacks, frames[inner - 1]),
        .phase = phase,
        .as = closure ? SW_PHASE_OTHER : phase,
        .outside = outside,
        .when = when};
    if (inner > 1 && is_users(reading->stacks, frames, inner - 2)) {
        key.caller = sw_stacks_get_frame(reading->stacks, frames[inner - 2]);
    }
    if (when != SW__HOT_UNKNOWN) {
        const sw_stack_frame *caller = sw_stacks_get_frame(reading->stacks, frames[loop]);
        key.loop = sw__user_file(caller->file) ? caller : NULL;
        /* The first of the user's functions on the way from there. */
        for (size_t i = loop + 1; !outside && i < inner && !key.entry; i++) {
            const sw_stack_frame *frame = sw_stacks_get_frame(reading->stacks, frames[i]);
            key.entry = sw__user_file(frame->file) ? frame : NULL;
        }
    }
    if (!key.entry && phase == SW_PHASE_VALIDATION) {
        /* What is called to validate, and not the model that it calls. */
        for (size_t i = frames_training(reading, frames, inner); i < inner && !key.entry;
             i++) {
            const sw_stack_frame *frame = sw_stacks_get_frame(reading->stacks, frames[i]);
            key.entry = sw__user_file(frame->file) && !sw__hot_trains(reading->hot, frame)
                            ? frame
                            : NULL;
        }
    }
    for (size_t i = loop + 1; key.as == SW_PHASE_OTHER && i < depth; i++) {
        const sw_stack_frame *frame = sw_stacks_get_frame(reading->stacks, frames[i]);
        if (logs_here(reading, frames[i], when)) {
            key.as = SW_PHASE_LOGGING;
            key.frame = i < inner ? frame : key.frame;
        }
    }
    if (key.as == SW_PHASE_OTHER && (machinery || is_caller(reading->hot, key.frame))) {
        hot->saving +=
            !outside && belongs_to_saving(reading, frames, depth) ? samples : 0;
        return; /* the time of a loader, of the recorder, or of what calls the model: not the user's */
    }
    struct sw__hot_line *line = line_of(reading, &key);
    if (line) {
        bool follows = false;
        const bool again = comes_again(reading, frames, inner, &follows);
        line->samples += samples;
        line->follows += follows ? samples : 0;
        line->own += package ? 0 : samples;
        line->interpreted += package ? 0 : sw__sub(samples, stack->in_call);
        line->copied += copies ? samples : 0;
        line->waiting += stack->waiting;
        line->pooled += pools ? stack->waiting : 0;
        line->logged += logs && phase == SW_PHASE_VALIDATION ? samples : 0;
        line->repeated += !package && again ? samples : 0;
    }
}

/* The user's frames above the calls of a phase. */
static void find_callers(struct reading *reading)
{
    const struct references *from =
        reading->backward.count ? &reading->backward : &reading->forward;
    struct sw__hot *hot = reading->hot;
    hot->callers = sw__arena_take(reading->all->arena, CALLERS * sizeof *hot->callers,
                                  _Alignof(const sw_stack_frame *));
    reading->all->failed |= !hot->callers;
    for (size_t k = 0; hot->callers && k < from->count; k++) {
        for (size_t i = 0; i + 1 < from->depth[k]; i++) {
            const sw_stack_frame *frame =
                sw_stacks_get_frame(reading->stacks, from->frames[k * DEEPEST + i]);
            bool known = !sw__user_file(frame->file);
            for (size_t c = 0; c < hot->caller_count; c++) {
                known |= hot->callers[c] == frame;
            }
            if (!known && hot->caller_count < CALLERS) {
                hot->callers[hot->caller_count++] = frame;
            }
        }
    }
}

/* A line that writes logs through a package also makes what it hands over. */
static void join_logging(struct sw__hot *hot)
{
    for (size_t i = 0; i < hot->count; i++) {
        struct sw__hot_line *line = &hot->lines[i];
        uint64_t logs = 0;
        for (size_t k = 0; line->as == SW_PHASE_OTHER && k < hot->count; k++) {
            const struct sw__hot_line *other = &hot->lines[k];
            logs += other->as == SW_PHASE_LOGGING && other->frame == line->frame &&
                            other->phase == line->phase && other->when == line->when &&
                            other->outside == line->outside
                        ? other->samples
                        : 0;
        }
        if (2 * logs > line->samples) {
            line->as = SW_PHASE_LOGGING;
        }
    }
}

const struct sw__hot *sw__hot_code(sw_findings *all)
{
    static const struct sw__hot nothing;
    if (all->hot) {
        return all->hot;
    }
    struct reading reading = {.all = all, .stacks = sw_summary_stacks(all->it.summary)};
    reading.hot =
        sw__arena_take(all->arena, sizeof *reading.hot, _Alignof(struct sw__hot));
    if (!reading.hot) {
        all->failed = true;
        return &nothing;
    }
    *reading.hot = nothing;
    all->hot = reading.hot;
    if (!reading.stacks || !all->it.steps) {
        return all->hot;
    }
    find_references(&reading);
    find_callers(&reading);
    reading.repeats = sw__alloc_zero(sw_stacks_frame_count(reading.stacks) + 1, 1);
    reading.gives = sw__alloc_zero(sw_stacks_frame_count(reading.stacks) + 1, 1);
    sw_stack stack;
    sw_stacks_cursor cursor = {0};
    while (sw_stacks_next(reading.stacks, &cursor, &stack)) {
        if (!of_step_thread(all, stack.tag)) {
            continue;
        }
        if (stack.tag->phase >= 0 && stack.tag->phase < SW_PHASE_COUNT) {
            add_stack(&reading, &stack, stack.tag->phase, false);
        } else {
            const int phase = aside_of_tag(&reading, stack.tag);
            if (phase != SW_PHASE_INHERIT) {
                add_stack(&reading, &stack, phase, true);
            }
        }
    }
    sw__free(reading.forward.frames);
    sw__free(reading.backward.frames);
    sw__free(reading.saving.frames);
    sw__free(reading.repeats);
    sw__free(reading.gives);
    join_logging(reading.hot);
    return all->hot;
}
