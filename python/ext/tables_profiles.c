/* Tables of what profilers counted and the sampler saw: functions, lines, stacks. They come from the summary, all processes
 * of the run together. */
#include "table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* An array of `count` items of any kind: what `prepare` leaves in source->made[]. */
struct made {
    size_t count;
    union {
        const sw_function *function;
        struct made_line {
            size_t function;
            const sw_lines_line *line;
        } line;
        sw_stack stack;
    } items[];
};

static const struct made *made_of(const core_source *source,
                                  enum core_table_number number)
{
    return source->made[number];
}

/* Room for `count` items; NULL with `info` filled. */
static struct made *make(size_t count, sw_error_info *info)
{
    struct made *made = calloc(1, sizeof *made + count * sizeof made->items[0]);
    if (!made) {
        (void)sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    return made;
}

/* Text that lives as long as the source; "" is not known. */
static void put_name(core_cell *cell, const char *text, size_t length)
{
    core_put_bytes(cell, (core_bytes){length ? text : NULL, length});
}

static void put_number(core_cell *cell, uint32_t line)
{
    core_put_integer(cell, line ? line : SW_UNKNOWN);
}

/* NaN is not known. */
static void put_real(core_cell *cell, double value)
{
    if (isnan(value)) {
        core_put_unknown(cell);
    } else {
        core_put_real(cell, value);
    }
}

/* --- Functions -------------------------------------------------------------------- */

static const core_column function_columns[] = {
    {"name", CORE_NAME, true},         {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, true},      {"native", CORE_TRUTH, false},
    {"calls", CORE_INTEGER, false},    {"primitive_calls", CORE_INTEGER, false},
    {"errors", CORE_INTEGER, true},    {"self_ns", CORE_INTEGER, false},
    {"total_ns", CORE_INTEGER, false},
};

/* Most self time first; then in the order of the profile, whose functions lie in one array. */
static int by_self(const void *left, const void *right)
{
    const sw_function *const *a = left;
    const sw_function *const *b = right;
    if ((*a)->totals.self != (*b)->totals.self) {
        return (*a)->totals.self > (*b)->totals.self ? -1 : 1;
    }
    return (*a > *b) - (*a < *b);
}

static int functions_prepare(core_source *source, void **out, sw_error_info *info)
{
    const int error = core_source_summary(source, info);
    if (error) {
        return error;
    }
    const sw_functions *functions = sw_summary_functions(source->summary);
    const size_t count = functions ? sw_functions_count(functions) : 0;
    struct made *made = make(count, info);
    if (!made) {
        return SW_ENOMEM;
    }
    made->count = count;
    for (size_t i = 0; i < count; i++) {
        made->items[i].function = sw_functions_get(functions, i);
    }
    qsort(made->items, count, sizeof made->items[0], by_self);
    *out = made;
    return SW_OK;
}

static uint64_t functions_count(const core_source *source)
{
    return made_of(source, CORE_TABLE_FUNCTIONS)->count;
}

static int functions_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    const sw_functions *functions = sw_summary_functions(reader->source->summary);
    const double unit_ns = sw_functions_unit_ns(functions);
    const sw_function *function =
        made_of(reader->source, CORE_TABLE_FUNCTIONS)->items[index].function;
    const sw_function_totals *totals = &function->totals;
    put_name(cell++, function->qualname, function->qualname_length);
    put_name(cell++, function->file, function->native ? 0 : function->file_length);
    put_number(cell++, function->line);
    core_put_truth(cell++, function->native);
    core_put_count(cell++, totals->calls);
    core_put_count(cell++, totals->primitive_calls);
    core_put_integer(cell++,
                     sw_functions_knows_errors(functions) ? totals->errors : SW_UNKNOWN);
    core_put_count(cell++, (uint64_t)llround((double)totals->self * unit_ns));
    core_put_count(cell++, (uint64_t)llround((double)totals->total * unit_ns));
    return SW_OK;
}

const core_table_kind core_table_functions = {
    .name = "functions",
    .columns = function_columns,
    .column_count = COUNT(function_columns),
    .prepare = functions_prepare,
    .discard = free,
    .count = functions_count,
    .at = functions_at,
};

/* --- Lines ------------------------------------------------------------------------ */

static const core_column line_columns[] = {
    {"name", CORE_NAME, true},       {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, false},   {"first_line", CORE_INTEGER, true},
    {"hits", CORE_INTEGER, false},   {"time_ns", CORE_INTEGER, false},
    {"per_hit_ns", CORE_REAL, true}, {"share", CORE_REAL, true},
    {"text", CORE_NAME, true},
};

/* The lines that ran; functions by their time, each with its lines in order. */
static int lines_prepare(core_source *source, void **out, sw_error_info *info)
{
    const int error = core_source_summary(source, info);
    if (error) {
        return error;
    }
    const sw_lines *lines = sw_summary_lines(source->summary);
    const size_t functions = lines ? sw_lines_count(lines) : 0;
    size_t most = 0;
    for (size_t i = 0; i < functions; i++) {
        most += sw_lines_get(lines, i)->line_count;
    }
    struct made *made = make(most, info);
    if (!made) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < functions; i++) {
        const sw_lines_function *function = sw_lines_get(lines, i);
        for (size_t k = 0; k < function->line_count; k++) {
            const sw_lines_line *line = &function->lines[k];
            if (line->hits || line->ns) {
                made->items[made->count++].line = (struct made_line){i, line};
            }
        }
    }
    *out = made;
    return SW_OK;
}

static uint64_t lines_count(const core_source *source)
{
    return made_of(source, CORE_TABLE_LINES)->count;
}

static int lines_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    sw_lines *lines = sw_summary_lines(reader->source->summary);
    const struct made_line *item =
        &made_of(reader->source, CORE_TABLE_LINES)->items[index].line;
    const sw_lines_function *function = sw_lines_get(lines, item->function);
    const sw_lines_line *line = item->line;
    const double ns = (double)line->ns;
    size_t length = 0;
    const char *text = sw_lines_source(lines, item->function, line->line, &length);
    put_name(cell++, function->name, function->name_length);
    put_name(cell++, function->file, function->file_length);
    core_put_count(cell++, line->line);
    put_number(cell++, function->first_line);
    core_put_count(cell++, line->hits);
    core_put_count(cell++, line->ns);
    put_real(cell++, line->hits ? ns / (double)line->hits : NAN);
    put_real(cell++, function->total_ns ? ns / (double)function->total_ns : NAN);
    core_put_bytes(cell++, (core_bytes){text, length});
    return SW_OK;
}

const core_table_kind core_table_lines = {
    .name = "lines",
    .columns = line_columns,
    .column_count = COUNT(line_columns),
    .prepare = lines_prepare,
    .discard = free,
    .count = lines_count,
    .at = lines_at,
};

/* --- Stacks ----------------------------------------------------------------------- */

static const core_column stack_columns[] = {
    {"thread", CORE_NAME, true},      {"pid", CORE_INTEGER, true},
    {"phase", CORE_NAME, true},       {"section", CORE_NAME, true},
    {"running", CORE_INTEGER, false}, {"waiting", CORE_INTEGER, false},
    {"in_call", CORE_INTEGER, false}, {"running_ms", CORE_REAL, true},
    {"waiting_ms", CORE_REAL, true},  {"name", CORE_NAME, true},
    {"file", CORE_NAME, true},        {"line", CORE_INTEGER, true},
    {"depth", CORE_INTEGER, false},   {"stack", CORE_TEXT, true},
};

static int stacks_prepare(core_source *source, void **out, sw_error_info *info)
{
    const int error = core_source_summary(source, info);
    if (error) {
        return error;
    }
    const sw_stacks *stacks = sw_summary_stacks(source->summary);
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    size_t count = 0;
    while (stacks && sw_stacks_next(stacks, &cursor, &stack)) {
        count++;
    }
    struct made *made = make(count, info);
    if (!made) {
        return SW_ENOMEM;
    }
    cursor = (sw_stacks_cursor){0};
    while (made->count < count && sw_stacks_next(stacks, &cursor, &stack)) {
        made->items[made->count++].stack = stack;
    }
    *out = made;
    return SW_OK;
}

static uint64_t stacks_count(const core_source *source)
{
    return made_of(source, CORE_TABLE_STACKS)->count;
}

static const char *shown(const sw_stack_frame *frame)
{
    return *frame->name ? frame->name : "?";
}

/* "outermost;…;leaf", as collapsed stacks are written; the leaf in `*leaf`. */
static int stack_text(core_reader *reader, const sw_stacks *stacks, const sw_stack *stack,
                      core_bytes *text, const sw_stack_frame **leaf)
{
    uint32_t *frames = core_reader_take(reader, stack->depth * sizeof *frames);
    if (!frames) {
        return SW_ENOMEM;
    }
    const size_t depth = sw_stacks_frames(stacks, stack->id, frames, stack->depth);
    size_t length = 0;
    for (size_t i = 0; i < depth; i++) {
        length += strlen(shown(sw_stacks_get_frame(stacks, frames[i]))) + 1;
    }
    char *bytes = core_reader_take(reader, length + 1);
    if (!bytes) {
        return SW_ENOMEM;
    }
    char *end = bytes;
    for (size_t i = 0; i < depth; i++) {
        *leaf = sw_stacks_get_frame(stacks, frames[i]);
        const size_t part = strlen(shown(*leaf));
        memcpy(end, shown(*leaf), part);
        end += part;
        *end++ = ';';
    }
    *text = (core_bytes){bytes, length ? length - 1 : 0};
    return SW_OK;
}

static int stacks_at(core_reader *reader, uint64_t index, core_cell *cell)
{
    static const sw_stack_frame nothing = {.name = "", .file = ""};
    const sw_stacks *stacks = sw_summary_stacks(reader->source->summary);
    const sw_stack *stack =
        &made_of(reader->source, CORE_TABLE_STACKS)->items[index].stack;
    const sw_stack_tag *tag = stack->tag;
    const sw_stack_frame *leaf = &nothing;
    core_bytes text;
    if (stack_text(reader, stacks, stack, &text, &leaf) != SW_OK) {
        return SW_ENOMEM;
    }
    put_name(cell++, tag->thread, strlen(tag->thread));
    put_number(cell++, tag->pid);
    core_put_text(cell++, tag->phase >= 0 ? sw_phase_name((unsigned)tag->phase) : NULL);
    put_name(cell++, tag->section, strlen(tag->section));
    core_put_count(cell++, stack->running);
    core_put_count(cell++, stack->waiting);
    core_put_count(cell++, stack->in_call);
    put_real(cell++, stack->running_s * 1e3);
    put_real(cell++, stack->waiting_s * 1e3);
    put_name(cell++, leaf->name, strlen(leaf->name));
    put_name(cell++, leaf->file, strlen(leaf->file));
    put_number(cell++, leaf->line);
    core_put_count(cell++, stack->depth);
    core_put_bytes(cell++, text);
    return SW_OK;
}

const core_table_kind core_table_stacks = {
    .name = "stacks",
    .columns = stack_columns,
    .column_count = COUNT(stack_columns),
    .prepare = stacks_prepare,
    .discard = free,
    .count = stacks_count,
    .at = stacks_at,
};
