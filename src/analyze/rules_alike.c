/* Rules: many small parts that are alike and know nothing of each other, called one after the other: members of an ensemble, heads,
 * experts that all get the same input, a table of vectors for each column. One operation on all their weights does what they do.
 *
 * A deep model has such a row, too, and each of its parts waits for the one before: whether they do is told from the source of the
 * line that calls them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/line_profile.h"
#include "analyze/rules.h"
#include "analyze/source_loops.h"
#include "analyze/summary.h"

#define LAUNCH_LEAST 0.1
#define ROW_LEAST 16
#define ROW_MOST 1024
/* A call that takes no longer than this is mostly calling. */
#define CALL_MOST_NS 40e3
/* Tables whose numbers have no such divisor in common have vectors of different lengths. */
#define VECTOR_LEAST 4
/* So much of the forward is the row, or of forward and backward what the parts with such rows take. */
#define FORWARD_LEAST 0.5
/* An update that takes no longer for a tensor is mostly calling, too. */
#define TENSOR_MOST_NS 50e3
enum { DEEPEST = 512, LISTS_MOST = 32 };

struct row {
    const sw_training_module *list;
    /* It and those of the same name in other parts of the model. */
    const sw_training_module *lists[LISTS_MOST];
    size_t list_count;
    size_t length;     /* of its name */
    unsigned parts;    /* that were called */
    double parameters; /* of all of them */
    double calls, ns;  /* of a step, in their forwards */
    bool tables;       /* of vectors, with any number of rows each */
};

/* The number after "name." of the row, or -1. */
static long number_in(const char *name, const sw_training_module *list, size_t length)
{
    if (strncmp(name, list->name, length) != 0 || name[length] != '.') {
        return -1;
    }
    char *end;
    const long number = strtol(name + length + 1, &end, 10);
    return end > name + length + 1 && (*end == '.' || *end == 0) && number >= 0 &&
                   number < ROW_MOST
               ? number
               : -1;
}

static bool is_table(const sw_training_module *module)
{
    return module->type && (strcmp(module->type, "Embedding") == 0 ||
                            strcmp(module->type, "EmbeddingBag") == 0);
}

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Fills in what the parts of a list do; false where they are not alike. Tables are alike if their vectors are as long. */
static bool read_row(const sw_training_module *modules, size_t count, uint64_t steps,
                     struct row *row)
{
    uint64_t parameters[ROW_MOST] = {0};
    bool called[ROW_MOST] = {false};
    uint64_t divisor = 0;
    row->tables = true;
    for (size_t i = 0; i < count; i++) {
        const sw_training_module *module = &modules[i];
        const long number = number_in(module->name, row->list, row->length);
        if (number < 0 || module->calls == 0) {
            continue;
        }
        parameters[number] = sw__add(parameters[number], module->parameters);
        called[number] = true;
        row->calls += (double)module->calls / (double)steps;
        row->ns += (double)module->self_ns / (double)steps;
        row->tables &= is_table(module);
        divisor = common_divisor(divisor, module->parameters);
    }
    for (size_t i = 0; i < ROW_MOST; i++) {
        if (called[i] &&
            (parameters[i] == 0 || (parameters[i] != parameters[0] && !row->tables))) {
            return false;
        }
        row->parts += called[i];
        row->parameters += (double)parameters[i];
    }
    return row->parts >= ROW_LEAST && (!row->tables || divisor >= VECTOR_LEAST);
}

static const char *last_of(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* The row with most time, and with it those of the same name in other parts: each block of a model may have one. */
static struct row find_row(const sw_findings *all)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    struct row longest = {0};
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (unsigned pass = 0; pass < 2; pass++) {
        const struct row first = longest;
        for (size_t i = 0; steps > 0 && i < count; i++) {
            struct row row = {.list = &modules[i],
                              .lists = {&modules[i]},
                              .list_count = 1,
                              .length = strlen(modules[i].name)};
            /* What is in a Sequential follows from each other. */
            if (!modules[i].type || strcmp(modules[i].type, "ModuleList") != 0 ||
                !read_row(modules, count, steps, &row)) {
                continue;
            }
            if (pass == 0) {
                longest = row.ns > longest.ns ? row : longest;
            } else if (row.list != first.list && row.parts == first.parts &&
                       strcmp(last_of(row.list->name), last_of(first.list->name)) == 0 &&
                       longest.list_count < LISTS_MOST) {
                longest.lists[longest.list_count++] = row.list;
                longest.ns += row.ns;
                longest.calls += row.calls;
                longest.parameters += row.parameters;
            }
        }
    }
    return longest;
}

static bool holds(const struct sw__source_line *line, const char *text)
{
    return memmem(line->text, line->length, text, strlen(text)) != NULL;
}

/* Whether a line calls the parts of `list` by turns without handing on what they give: a comprehension, or a loop that only
 * collects. */
static bool collects(const sw_stack_frame *at, const char *list)
{
    static const char *const ways[] = {".append(", "+=", "] = ", "yield "};
    size_t length = 0;
    char *text = sw__source_text(at->file, &length);
    struct sw__source_line line;
    struct sw__source_line head;
    bool does = false;
    if (text && sw__source_line_get(text, length, at->line, &line)) {
        const uint32_t loop = sw__source_loop(text, length, at->first_line, at->line);
        if (loop == at->line) {
            does = !sw__source_is_loop(&line) && holds(&line, list);
        } else if (sw__source_line_get(text, length, at->line + 1, &head) &&
                   sw__source_is_loop(&head) && head.indent == line.indent) {
            does = holds(&head, list); /* a comprehension over several lines */
        } else if (loop > 0 && sw__source_line_get(text, length, loop, &head) &&
                   holds(&head, list)) {
            for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
                does |= holds(&line, ways[i]);
            }
        }
    }
    sw__free(text);
    return does;
}

/* The line from which the parts are called, where its source says that they know nothing of each other. */
static const sw_stack_frame *calls_row(const sw_findings *all, const struct row *row)
{
    const sw_stacks *stacks = sw_summary_stacks(all->it.summary);
    const sw_summary_steps *of = all->it.steps;
    const char *list = last_of(row->list->name);
    sw_stack stack;
    sw_stacks_cursor cursor = {0};
    while (stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        if (stack.tag->phase != SW_PHASE_FORWARD || stack.tag->pid != of->pid ||
            strcmp(stack.tag->thread, of->thread) != 0) {
            continue;
        }
        uint32_t frames[DEEPEST];
        const size_t depth = sw_stacks_frames(stacks, stack.id, frames, DEEPEST);
        for (size_t i = 0; i + 1 < depth; i++) {
            const sw_stack_frame *at = sw_stacks_get_frame(stacks, frames[i]);
            if (sw__user_file(at->file) &&
                !sw__user_file(sw_stacks_get_frame(stacks, frames[i + 1])->file) &&
                collects(at, list)) {
                return at;
            }
        }
    }
    return NULL;
}

/* A module's backward of a step, in ns. It is measured in few of them. */
static double backward_of(const sw_training_module *module, uint64_t steps)
{
    return module->backward_calls
               ? (double)module->backward_ns / (double)module->backward_calls *
                     (double)module->calls / (double)steps
               : 0;
}

/* What others take of the forward (`backward`: of that), in ns a step: layers outside of the row. What the part that has the
 * row does itself is there to feed it, and to put together what it gives. */
static double beside_row(const sw_findings *all, const struct row *row, bool backward)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    double sum = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; steps > 0 && i < count; i++) {
        const sw_training_module *module = &modules[i];
        const size_t length = strlen(module->name);
        const bool owner = strncmp(module->name, row->list->name, length) == 0 &&
                           row->list->name + length + 1 == last_of(row->list->name);
        if (module->loss || owner ||
            number_in(module->name, row->list, row->length) >= 0) {
            continue;
        }
        if (!backward) {
            sum += (double)module->self_ns / (double)steps;
        } else if (module->self_ns == module->total_ns) {
            sum += backward_of(module, steps);
        }
    }
    return sum;
}

/* What the part that has `list` takes of forward and backward without its other parts, in ns a step; 0: not known, or it does more
 * itself than the row. */
static double owner_time(const sw_findings *all, const sw_training_module *list,
                         double row_ns)
{
    size_t count;
    uint64_t steps;
    uint64_t total;
    const size_t length = (size_t)(last_of(list->name) - list->name);
    const sw_training_module *owner = NULL;
    double others = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    sw_summary_looked_steps(all->it.summary, &steps, &total);
    for (size_t i = 0; steps > 0 && length > 0 && i < count; i++) {
        const sw_training_module *at = &modules[i];
        if (strlen(at->name) + 1 == length &&
            strncmp(at->name, list->name, length - 1) == 0) {
            owner = at;
        } else if (strncmp(at->name, list->name, length) == 0 && at != list &&
                   !strchr(at->name + length, '.')) {
            others += (double)at->total_ns / (double)steps + backward_of(at, steps);
        }
    }
    if (!owner || owner->backward_calls == 0 ||
        (double)owner->self_ns / (double)steps > row_ns) {
        return 0;
    }
    return (double)owner->total_ns / (double)steps + backward_of(owner, steps) - others;
}

/* What of forward and backward is that of the parts that have the rows, in ns a step. */
static double time_of_owners(const sw_findings *all, const struct row *row)
{
    double sum = 0;
    for (size_t i = 0; i < row->list_count; i++) {
        sum += owner_time(all, row->lists[i], row->ns / (double)row->list_count);
    }
    return sum;
}

static struct sw__estimate without(struct sw__estimate of, double ns)
{
    of.mean = of.mean > ns ? of.mean - ns : 0;
    of.low = of.low > ns ? of.low - ns : 0;
    of.high = of.high > ns ? of.high - ns : 0;
    return of;
}

/* What of the update goes for each tensor and not for each number: with fewer tensors it goes. */
static struct sw__estimate update_of(const sw_findings *all, const struct row *row)
{
    size_t count;
    double parameters = 0;
    const sw_training_module *modules = sw_training_modules(all->it.training, &count);
    for (size_t i = 0; i < count; i++) {
        parameters += (double)modules[i].parameters;
    }
    const double tensors = sw__setting_number(all, "optimizer", "tensors");
    struct sw__estimate update = sw__phase_time(
        all, SW__PHASE_BIT(SW_PHASE_OPTIMIZER) | SW__PHASE_BIT(SW_PHASE_ZERO_GRAD));
    const bool small = tensors > 0 && update.mean / tensors < TENSOR_MOST_NS;
    /* Tables are one tensor each, and small beside the rest. */
    const double of = row->tables      ? row->parts / tensors
                      : parameters > 0 ? row->parameters / parameters
                                       : 0;
    const double part = small ? fmin(of, 1) : 0;
    update.mean *= part;
    update.low *= part;
    update.high *= part;
    return update;
}

bool sw__rules_alike(sw_findings *all)
{
    const struct sw__estimate forward =
        sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD));
    struct sw__estimate both = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD) |
                                                       SW__PHASE_BIT(SW_PHASE_BACKWARD));
    const double step = all->it.mean_ns;
    const struct row row = find_row(all);
    double own = row.ns;
    if (row.parts > 0 && row.tables) {
        /* A table does next to nothing: picking its column and joining the vectors are as much. */
        own = forward.mean - beside_row(all, &row, false);
        both = without(both, beside_row(all, &row, false) + beside_row(all, &row, true));
    } else if (row.parts > 0 && !(own > FORWARD_LEAST * forward.mean)) {
        /* Large layers may stand beside them in the forward; the backward has to take what the rows were given apart, too. */
        const double owners = fmin(time_of_owners(all, &row), both.mean);
        own = owners > FORWARD_LEAST * both.mean ? forward.mean : 0;
        both = without(both, both.mean - owners);
    }
    if (row.parts == 0 || !(row.ns / row.calls < CALL_MOST_NS) ||
        !(own > FORWARD_LEAST * forward.mean) || !(both.low / step > LAUNCH_LEAST) ||
        (sw__has_device(all) && !sw__device_idles(all))) {
        return false;
    }
    const sw_stack_frame *at = calls_row(all, &row);
    if (!at) {
        return false;
    }
    const struct sw__estimate update = update_of(all, &row);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LAUNCH_BOUND, "RULE-22");
    draft->group = SW__GROUP_COMPUTE;
    draft->specific = 1;
    sw__draft_where(all, draft, at->file, at->line, at->name);
    sw__draft_title(all, draft,
                    "%u parts of %s are alike and small, and are called one after the "
                    "other: %.0f us a call",
                    row.parts, row.list->name, row.ns / row.calls / 1e3);
    sw__draft_number(draft, "parts_alike", row.parts);
    sw__draft_number(draft, "forward_ms", forward.mean / 1e6);
    sw__draft_number(draft, "layer_calls_per_step", row.calls);
    sw__draft_number(draft, "us_per_layer_call", row.ns / row.calls / 1e3);
    sw__draft_number(draft, "update_ms", update.mean / 1e6);
    draft->finding.share = (both.mean + update.mean) / step;
    draft->finding.confidence = 0.8;
    if (row.tables) {
        sw__draft_advise(all, draft,
                         "Line %u of %s looks up one table after the other: keep their "
                         "rows in one table, add to the codes of each column where its "
                         "rows begin, and look all of them up at once.",
                         at->line, sw__file_name(at->file));
    } else {
        sw__draft_advise(
            all, draft,
            "Line %u of %s calls one after the other, and none needs what "
            "another gives: keep their weights in one tensor with a dimension "
            "more, and use torch.bmm or torch.baddbmm.",
            at->line, sw__file_name(at->file));
        sw__draft_advise(all, draft,
                         "torch.func.stack_module_state with torch.vmap does so without "
                         "other layers; the optimizer then has fewer tensors, too.");
    }
    /* What they compute stays, a quarter of such calls as a rule; of the tensors of the update one in so many. */
    const double fewer = 1 - 1.0 / row.parts;
    const struct sw__estimate saved = {.mean =
                                           0.75 * both.mean + 0.9 * fewer * update.mean,
                                       .low = 0.5 * both.low + 0.3 * update.low,
                                       .high = 0.85 * both.high + fewer * update.high};
    sw__draft_saves_in_steps(all, draft, saved, 1, 1, 1);
    return true;
}
