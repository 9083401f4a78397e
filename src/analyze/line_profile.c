/* The profile is filled by appending only; one sort at the end merges what belongs together. So the order in which
 * a trace names things, which may be hostile, costs n log n at most. */
#include <stdlib.h>
#include <string.h>

#include "analyze/line_profile.h"
#include "base/memory.h"

#define NO_FUNCTION UINT32_MAX

sw_lines *sw_lines_create(void)
{
    sw_lines *lines = sw__alloc_zero(1, sizeof *lines);
    if (!lines) {
        return NULL;
    }
    lines->arena = sw__arena_create(0);
    if (!lines->arena) {
        sw__free(lines);
        return NULL;
    }
    return lines;
}

void sw_lines_free(sw_lines *lines)
{
    if (!lines) {
        return;
    }
    sw__line_sources_free(lines);
    sw__free(lines->functions);
    sw__free(lines->entries);
    sw__free(lines->rows);
    sw__arena_free(lines->arena);
    sw__free(lines);
}

int sw_lines_add_function(sw_lines *lines, const char *file, size_t file_length,
                          const char *name, size_t name_length, uint32_t first_line,
                          size_t *index)
{
    if (lines->count == lines->room) {
        size_t room = lines->room ? lines->room * 2 : 16;
        sw_lines_function *more =
            sw__realloc(lines->functions, room, sizeof *lines->functions);
        if (!more) {
            return SW_ENOMEM;
        }
        lines->functions = more;
        lines->room = room;
    }
    /* Names beyond 4 GiB cannot come from a trace; from elsewhere they are cut. */
    file_length = file_length > UINT32_MAX ? UINT32_MAX : file_length;
    name_length = name_length > UINT32_MAX ? UINT32_MAX : name_length;
    sw_lines_function *function = &lines->functions[lines->count];
    *function = (sw_lines_function){
        .file = sw__arena_copy(lines->arena, file, file_length),
        .name = sw__arena_copy(lines->arena, name, name_length),
        .file_length = (uint32_t)file_length,
        .name_length = (uint32_t)name_length,
        .first_line = first_line,
        .last_line = first_line,
    };
    if (!function->file || !function->name) {
        return SW_ENOMEM;
    }
    *index = lines->count++;
    return 0;
}

int sw_lines_add_line(sw_lines *lines, size_t function, uint32_t line, uint64_t hits,
                      uint64_t ns)
{
    if (function >= lines->count || function >= NO_FUNCTION) {
        return SW_EINVAL;
    }
    if (lines->entry_count == lines->entry_room) {
        size_t room = lines->entry_room ? lines->entry_room * 2 : 64;
        struct sw__line_entry *more =
            sw__realloc(lines->entries, room, sizeof *lines->entries);
        if (!more) {
            return SW_ENOMEM;
        }
        lines->entries = more;
        lines->entry_room = room;
    }
    lines->entries[lines->entry_count++] = (struct sw__line_entry){
        .function = (uint32_t)function, .line = {.line = line, .hits = hits, .ns = ns}};
    return 0;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    uint64_t result;
    return __builtin_add_overflow(a, b, &result) ? UINT64_MAX : result;
}

static int compare_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t shorter = a_length < b_length ? a_length : b_length;
    int order = shorter ? memcmp(a, b, shorter) : 0;
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

static int compare_place(const sw_lines_function *a, const sw_lines_function *b)
{
    int order = compare_bytes(a->file, a->file_length, b->file, b->file_length);
    if (order == 0) {
        order = (a->first_line > b->first_line) - (a->first_line < b->first_line);
    }
    if (order == 0) {
        order = compare_bytes(a->name, a->name_length, b->name, b->name_length);
    }
    return order;
}

struct place {
    const sw_lines_function *function;
    uint32_t old;
};

static int by_place(const void *left, const void *right)
{
    const struct place *a = left;
    const struct place *b = right;
    int order = compare_place(a->function, b->function);
    return order ? order : (a->old > b->old) - (a->old < b->old);
}

static int by_line(const void *left, const void *right)
{
    const struct sw__line_entry *a = left;
    const struct sw__line_entry *b = right;
    if (a->function != b->function) {
        return a->function < b->function ? -1 : 1;
    }
    return (a->line.line > b->line.line) - (a->line.line < b->line.line);
}

static int by_time(const void *left, const void *right)
{
    const sw_lines_function *a = left;
    const sw_lines_function *b = right;
    if (a->total_ns != b->total_ns) {
        return a->total_ns > b->total_ns ? -1 : 1;
    }
    return compare_place(a, b);
}

/* Gives equal functions one number; `lines->functions` keeps one of each, in the order of places. */
static int merge_functions(sw_lines *lines)
{
    struct place *places = sw__alloc_zero(lines->count, sizeof *places);
    uint32_t *map = sw__alloc_zero(lines->count, sizeof *map);
    sw_lines_function *kept = sw__alloc_zero(lines->count, sizeof *kept);
    if (!places || !map || !kept) {
        sw__free(places);
        sw__free(map);
        sw__free(kept);
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < lines->count; i++) {
        places[i] = (struct place){&lines->functions[i], (uint32_t)i};
    }
    qsort(places, lines->count, sizeof *places, by_place);
    size_t used = 0;
    for (size_t i = 0; i < lines->count; i++) {
        if (i == 0 || compare_place(places[i - 1].function, places[i].function) != 0) {
            kept[used++] = *places[i].function;
        }
        map[places[i].old] = (uint32_t)(used - 1);
    }
    for (size_t i = 0; i < lines->entry_count; i++) {
        lines->entries[i].function = map[lines->entries[i].function];
    }
    sw__free(places);
    sw__free(map);
    sw__free(lines->functions);
    lines->functions = kept;
    lines->room = lines->count;
    lines->count = used;
    return 0;
}

void sw_lines_finish(sw_lines *lines)
{
    if (lines->finished || lines->count == 0) {
        return;
    }
    lines->finished = true;
    lines->rows = sw__alloc_zero(lines->entry_count + 1, sizeof *lines->rows);
    if (!lines->rows || merge_functions(lines) != 0) {
        lines->count = 0;
        return;
    }
    if (lines->entry_count > 1) {
        qsort(lines->entries, lines->entry_count, sizeof *lines->entries, by_line);
    }
    size_t used = 0;
    for (size_t i = 0; i < lines->entry_count; i++) {
        const struct sw__line_entry *entry = &lines->entries[i];
        sw_lines_function *function = &lines->functions[entry->function];
        if (!function->lines) {
            function->lines = &lines->rows[used];
        } else if (lines->rows[used - 1].line == entry->line.line) {
            lines->rows[used - 1].hits =
                sum(lines->rows[used - 1].hits, entry->line.hits);
            lines->rows[used - 1].ns = sum(lines->rows[used - 1].ns, entry->line.ns);
            function->total_ns = sum(function->total_ns, entry->line.ns);
            continue;
        }
        lines->rows[used++] = entry->line;
        function->line_count++;
        function->total_ns = sum(function->total_ns, entry->line.ns);
        if (entry->line.line > function->last_line) {
            function->last_line = entry->line.line;
        }
    }
    qsort(lines->functions, lines->count, sizeof *lines->functions, by_time);
}

size_t sw_lines_count(const sw_lines *lines)
{
    return lines->finished ? lines->count : 0;
}

const sw_lines_function *sw_lines_get(const sw_lines *lines, size_t index)
{
    return index < sw_lines_count(lines) ? &lines->functions[index] : NULL;
}

/* --- from a trace ----------------------------------------------------------------- */

/* The text of a name; unknown ids are the empty text. */
static const char *name_of(const sw_trace *trace, uint32_t id, size_t *length)
{
    const sw_trace_name *name = sw_trace_get_name(trace, id);
    *length = name ? name->length : 0;
    return name ? name->text : "";
}

static uint64_t to_ns(uint64_t ticks, double ns_per_tick)
{
    double ns = (double)ticks * ns_per_tick;
    if (!(ns > 0)) {
        return 0;
    }
    return ns >= 18446744073709549568.0 ? UINT64_MAX : (uint64_t)(ns + 0.5);
}

static int add_trace(sw_lines *lines, const sw_trace *trace)
{
    const size_t codes = sw_trace_row_count(trace, SW_TABLE_CODE);
    const size_t count = sw_trace_row_count(trace, SW_TABLE_LINE);
    if (count == 0 || codes == 0) {
        return 0;
    }
    uint32_t *function_of = sw__alloc_zero(codes, sizeof *function_of);
    if (!function_of) {
        return SW_ENOMEM;
    }
    memset(function_of, 0xff, codes * sizeof *function_of);
    const double scale = sw_trace_ns_per_tick(trace);
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_LINE, i);
        const sw_row *code =
            row ? sw_trace_get_row(trace, SW_TABLE_CODE, row->key[1]) : NULL;
        if (!code || row->key[1] >= codes) {
            continue;
        }
        uint32_t *function = &function_of[row->key[1]];
        if (*function == NO_FUNCTION) {
            size_t file_length;
            size_t name_length;
            size_t index = 0;
            const char *file = name_of(trace, code->key[0], &file_length);
            const char *name = name_of(trace, code->key[1], &name_length);
            result = sw_lines_add_function(lines, file, file_length, name, name_length,
                                           code->key[2], &index);
            *function = (uint32_t)index;
        }
        if (result == 0) {
            result = sw_lines_add_line(lines, *function, row->key[2], row->value[0],
                                       to_ns(row->value[1], scale));
        }
    }
    sw__free(function_of);
    return result;
}

int sw_lines_of_run(sw_lines **out, const sw_run *run, sw_error_info *info)
{
    *out = NULL;
    sw_lines *lines = sw_lines_create();
    int result = lines ? 0 : SW_ENOMEM;
    for (size_t i = 0; result == 0 && i < sw_run_count(run); i++) {
        result = add_trace(lines, sw_run_trace(run, i));
    }
    if (result != 0) {
        sw_lines_free(lines);
        return sw_error_set(info, result, "the line profile does not fit into memory");
    }
    sw_lines_finish(lines);
    *out = lines;
    return 0;
}
