/* report.json: functions and lines as profiles counted and the sampler saw them, and the sampler itself. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/function_order.h"
#include "export/json_put.h"
#include "export/report_parts.h"

/* Places of one thread, function and line side by side. Strings of one set of stacks are equal if their addresses
 * are. */
static int by_place(const void *left, const void *right)
{
    const sw_stacks_place *a = left;
    const sw_stacks_place *b = right;
    const uintptr_t keys[][2] = {
        {(uintptr_t)a->thread, (uintptr_t)b->thread},
        {(uintptr_t)a->frame.name, (uintptr_t)b->frame.name},
        {(uintptr_t)a->frame.file, (uintptr_t)b->frame.file},
        {a->frame.first_line, b->frame.first_line},
        {a->frame.native, b->frame.native},
        {a->frame.line, b->frame.line},
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (keys[i][0] != keys[i][1]) {
            return keys[i][0] < keys[i][1] ? -1 : 1;
        }
    }
    return 0;
}

static void put_samples(sw_writer *w, const sw_stacks_place *place)
{
    put_uint(w, "samples", place->total_running + place->total_waiting);
    put_uint(w, "self_samples", place->self_running + place->self_waiting);
    put_double(w, "self_ms", place->self_s * 1e3);
    put_double(w, "total_ms", place->total_s * 1e3);
    put_double(w, "self_share", place->self.share);
    put_double(w, "self_low", place->self.low);
    put_double(w, "self_high", place->self.high);
    put_double(w, "total_share", place->total.share);
    put_double(w, "total_low", place->total.low);
    put_double(w, "total_high", place->total.high);
    put_double(w, "running_share", place->running_share);
}

/* The part that each phase has in a place; NULL: outside steps. `parts` lie in the order of by_place. */
static void put_phases(sw_writer *w, const sw_stacks_place *place,
                       const sw_stacks_place *parts, size_t count)
{
    const sw_stacks_place *part =
        count ? bsearch(place, parts, count, sizeof *parts, by_place) : NULL;
    sw_json_key(w, "phases");
    sw_json_array_begin(w);
    while (part && part > parts && by_place(part - 1, place) == 0) {
        part--;
    }
    for (; part && part < parts + count && by_place(part, place) == 0; part++) {
        sw_json_object_begin(w);
        put_string(w, "phase",
                   part->phase >= 0 ? sw_phase_name((unsigned)part->phase) : NULL);
        put_samples(w, part);
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
}

static void put_line(sw_writer *w, const char *key, uint32_t line)
{
    put_uint(w, key, line ? line : SW_UNKNOWN);
}

/* A program that imports much has thousands of places that were seen once or twice. Those on top of the stack most often are
 * told, and those that are anywhere in it most often. */
enum { BY_SELF_MOST = 300, BY_TOTAL_MOST = 150 };

static uint64_t samples_of(const sw_stacks_place *place)
{
    return place->total_running + place->total_waiting;
}

static int descending(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a < b) - (a > b);
}

/* The samples that a place further down the list has to have. */
static uint64_t total_least(const sw_stacks_place *places, size_t count)
{
    uint64_t *totals =
        count > BY_SELF_MOST ? sw__alloc_zero(count, sizeof *totals) : NULL;
    uint64_t least = 0; /* all of them, also where memory is short */
    for (size_t i = 0; totals && i < count; i++) {
        totals[i] = samples_of(&places[i]);
    }
    if (totals) {
        qsort(totals, count, sizeof *totals, descending);
        least = totals[BY_TOTAL_MOST] + 1;
    }
    sw__free(totals);
    return least;
}

static size_t left_out(const sw_stacks *stacks, bool lines)
{
    size_t count = 0, left = 0;
    const sw_stacks_filter filter = {.by_thread = true};
    sw_stacks_place *places = lines ? sw_stacks_lines(stacks, &filter, &count)
                                    : sw_stacks_functions(stacks, &filter, &count);
    const uint64_t least = places ? total_least(places, count) : 0;
    for (size_t i = BY_SELF_MOST; places && i < count; i++) {
        left += samples_of(&places[i]) < least;
    }
    sw_stacks_release(places);
    return left;
}

/* Elements of an array: what the sampler saw, thread by thread. */
static void put_places(sw_writer *w, const sw_stacks *stacks, bool lines)
{
    sw_stacks_place *(*const find)(const sw_stacks *, const sw_stacks_filter *,
                                   size_t *) =
        lines ? sw_stacks_lines : sw_stacks_functions;
    size_t count = 0;
    size_t part_count = 0;
    sw_stacks_place *places =
        find(stacks, &(sw_stacks_filter){.by_thread = true}, &count);
    sw_stacks_place *parts = find(
        stacks, &(sw_stacks_filter){.by_thread = true, .by_phase = true}, &part_count);
    if (!places || !parts) {
        sw__writer_fail(w, SW_ENOMEM, 0);
        count = 0;
    } else {
        qsort(parts, part_count, sizeof *parts, by_place);
    }
    const uint64_t least = count ? total_least(places, count) : 0;
    for (size_t i = 0; i < count; i++) {
        const sw_stacks_place *place = &places[i];
        if (i >= BY_SELF_MOST && samples_of(place) < least) {
            continue;
        }
        sw_json_object_begin(w);
        put_string(w, "name", *place->frame.name ? place->frame.name : NULL);
        put_string(w, "file", *place->frame.file ? place->frame.file : NULL);
        if (lines) {
            put_line(w, "line", place->frame.line);
            put_line(w, "first_line", place->frame.first_line);
        } else {
            put_line(w, "line", place->frame.first_line);
        }
        put_string(w, "source", "sampler");
        put_string(w, "thread", place->thread);
        put_bool(w, "native", place->frame.native);
        put_samples(w, place);
        put_uint(w, "in_call_samples", place->self_in_call);
        put_phases(w, place, parts, part_count);
        sw_json_object_end(w);
    }
    sw_stacks_release(places);
    sw_stacks_release(parts);
}

static void put_text(sw_writer *w, const char *key, const char *bytes, size_t length)
{
    sw_json_key(w, key);
    if (length) {
        sw_json_string_n(w, bytes, length);
    } else {
        sw_json_null(w);
    }
}

/* Elements of an array: exact calls, most self time first. */
static void put_functions(sw_writer *w, const sw_functions *functions)
{
    const double ms = sw_functions_unit_ns(functions) / 1e6;
    const bool errors = sw_functions_knows_errors(functions);
    uint32_t *order = sw__functions_sorted(functions, SW_FUNCTIONS_BY_SELF);
    if (!order) {
        sw__writer_fail(w, SW_ENOMEM, 0);
    }
    for (size_t i = 0; order && i < sw_functions_count(functions); i++) {
        const sw_function *function = sw_functions_get(functions, order[i]);
        const sw_function_totals *totals = &function->totals;
        sw_json_object_begin(w);
        put_text(w, "name", function->qualname, function->qualname_length);
        /* pstats writes "~" for "none". */
        put_text(w, "file", function->file, function->native ? 0 : function->file_length);
        put_line(w, "line", function->line);
        put_string(w, "source", "profile");
        put_bool(w, "native", function->native);
        put_uint(w, "calls", totals->calls);
        put_uint(w, "primitive_calls", totals->primitive_calls);
        put_uint(w, "errors", errors ? totals->errors : SW_UNKNOWN);
        put_double(w, "self_ms", (double)totals->self * ms);
        put_double(w, "total_ms", (double)totals->total * ms);
        sw_json_object_end(w);
    }
    sw__free(order);
}

struct timed_line {
    const sw_lines_function *function;
    const sw_lines_line *line;
};

/* Longest first; then as they stand in the profile, whose arrays do not move. */
static int by_time(const void *left, const void *right)
{
    const struct timed_line *a = left;
    const struct timed_line *b = right;
    if (a->line->ns != b->line->ns) {
        return a->line->ns > b->line->ns ? -1 : 1;
    }
    if (a->function != b->function) {
        return a->function < b->function ? -1 : 1;
    }
    return (a->line > b->line) - (a->line < b->line);
}

/* The lines that ran, longest first; NULL when out of memory. Freed with sw__free. */
static struct timed_line *sorted_lines(const sw_lines *lines, size_t *count)
{
    size_t room = 0;
    for (size_t i = 0; i < sw_lines_count(lines); i++) {
        room += sw_lines_get(lines, i)->line_count;
    }
    struct timed_line *sorted = sw__alloc_zero(room + 1, sizeof *sorted);
    *count = 0;
    for (size_t i = 0; sorted && i < sw_lines_count(lines); i++) {
        const sw_lines_function *function = sw_lines_get(lines, i);
        for (size_t k = 0; k < function->line_count; k++) {
            const sw_lines_line *line = &function->lines[k];
            if (line->hits || line->ns) {
                sorted[(*count)++] = (struct timed_line){function, line};
            }
        }
    }
    if (sorted) {
        qsort(sorted, *count, sizeof *sorted, by_time);
    }
    return sorted;
}

/* Elements of an array: exact hits of lines. */
static void put_lines(sw_writer *w, const sw_lines *lines)
{
    size_t count;
    struct timed_line *sorted = sorted_lines(lines, &count);
    if (!sorted) {
        sw__writer_fail(w, SW_ENOMEM, 0);
    }
    for (size_t i = 0; i < count; i++) {
        const sw_lines_function *function = sorted[i].function;
        const sw_lines_line *line = sorted[i].line;
        const double ns = (double)line->ns;
        sw_json_object_begin(w);
        put_text(w, "name", function->name, function->name_length);
        put_text(w, "file", function->file, function->file_length);
        put_line(w, "line", line->line);
        put_line(w, "first_line", function->first_line);
        put_string(w, "source", "profile");
        put_uint(w, "hits", line->hits);
        put_double(w, "time_ms", ns / 1e6);
        put_double(w, "per_hit_us", line->hits ? ns / 1e3 / (double)line->hits : NAN);
        put_double(w, "share",
                   function->total_ns ? ns / (double)function->total_ns : NAN);
        sw_json_object_end(w);
    }
    sw__free(sorted);
}

/* Sources stand in the array one after the other, each element with its "source". */
void sw__json_functions(sw_writer *w, const sw_summary *summary)
{
    const sw_stacks *stacks = sw_summary_stacks(summary);
    const sw_functions *functions = sw_summary_functions(summary);
    if (!stacks && !functions) {
        put_missing(w, "functions", "Neither the sampler nor a function profile ran.");
        return;
    }
    sw_json_key(w, "functions");
    sw_json_array_begin(w);
    if (functions) {
        put_functions(w, functions);
    }
    if (stacks) {
        put_places(w, stacks, false);
    }
    sw_json_array_end(w);
}

void sw__json_lines(sw_writer *w, const sw_summary *summary)
{
    const sw_stacks *stacks = sw_summary_stacks(summary);
    const sw_lines *lines = sw_summary_lines(summary);
    if (!stacks && !lines) {
        put_missing(w, "lines", "Neither the sampler nor a line profile ran.");
        return;
    }
    sw_json_key(w, "lines");
    sw_json_array_begin(w);
    if (lines) {
        put_lines(w, lines);
    }
    if (stacks) {
        put_places(w, stacks, true);
    }
    sw_json_array_end(w);
}

void sw__json_sampler(sw_writer *w, const sw_summary *summary)
{
    const sw_stacks *stacks = sw_summary_stacks(summary);
    if (!stacks) {
        put_missing(w, "sampler", "The sampler did not run.");
        return;
    }
    const sw_stacks_totals *totals = sw_stacks_get_totals(stacks);
    const sw_stack_counts counts = sw_stacks_count(stacks, NULL);
    const double rejected = (double)totals->partial + (double)totals->given_up;
    sw_json_key(w, "sampler");
    sw_json_object_begin(w);
    put_double(w, "hz", totals->hz);
    put_uint(w, "looks", totals->looks);
    put_uint(w, "kept", totals->kept);
    put_uint(w, "partial", totals->partial);
    put_uint(w, "given_up", totals->given_up);
    put_double(w, "reject_share", totals->looks ? rejected / (double)totals->looks : NAN);
    put_double(w, "cpu_s", totals->cpu_s);
    put_uint(w, "running", counts.running);
    put_uint(w, "waiting", counts.waiting);
    put_uint(w, "damaged", totals->damaged);
    put_uint(w, "samplers", totals->samplers);
    put_uint(w, "functions_left_out", left_out(stacks, false));
    put_uint(w, "lines_left_out", left_out(stacks, true));
    sw_json_object_end(w);
}
