/* report.json: functions, lines, and the sampler that saw them. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/json_put.h"
#include "export/report_parts.h"

static const char *const nothing_ran =
    "Neither the sampler nor a profile of functions or lines ran in this run.";

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
    for (size_t i = 0; i < count; i++) {
        const sw_stacks_place *place = &places[i];
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

/* Sources stand in the array one after the other, each element with its "source". */
static void put_array(sw_writer *w, const char *key, const sw_summary *summary,
                      bool lines)
{
    const sw_stacks *stacks = sw_summary_stacks(summary);
    if (!stacks) {
        put_missing(w, key, nothing_ran);
        return;
    }
    sw_json_key(w, key);
    sw_json_array_begin(w);
    put_places(w, stacks, lines);
    sw_json_array_end(w);
}

void sw__json_functions(sw_writer *w, const sw_summary *summary)
{
    put_array(w, "functions", summary, false);
}

void sw__json_lines(sw_writer *w, const sw_summary *summary)
{
    put_array(w, "lines", summary, true);
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
    const double rejected = (double)totals->leaf_only + (double)totals->given_up;
    sw_json_key(w, "sampler");
    sw_json_object_begin(w);
    put_double(w, "hz", totals->hz);
    put_uint(w, "looks", totals->looks);
    put_uint(w, "kept", totals->kept);
    put_uint(w, "leaf_only", totals->leaf_only);
    put_uint(w, "given_up", totals->given_up);
    put_double(w, "reject_share", totals->looks ? rejected / (double)totals->looks : NAN);
    put_double(w, "cpu_s", totals->cpu_s);
    put_uint(w, "running", counts.running);
    put_uint(w, "waiting", counts.waiting);
    put_uint(w, "damaged", totals->damaged);
    put_uint(w, "samplers", totals->samplers);
    sw_json_object_end(w);
}
