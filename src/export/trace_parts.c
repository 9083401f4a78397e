/* Traces: which processes make one file, and which moments are asked for. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "export/trace_export.h"

static long number_fact(const sw_trace *trace, const char *key)
{
    const char *text = sw_trace_fact(trace, key);
    char *end = NULL;
    const long value = text && *text ? strtol(text, &end, 10) : -1;
    return end && !*end && value >= 0 ? value : -1;
}

static uint64_t steps_of(const sw_trace *trace)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        steps += sw_trace_get_lane(trace, i)->steps;
    }
    return steps;
}

/* The rank that a process belongs to: its own, or the lowest one for a launcher and others that have none. */
static long rank_of(const sw_run *run, size_t index, long lowest)
{
    const long rank = number_fact(sw_run_trace(run, index), "rank");
    return rank >= 0 ? rank : lowest;
}

/* The lowest rank above `above`; -1: there is none. */
static long next_rank(const sw_run *run, long above)
{
    long found = -1;
    for (size_t i = 0; i < sw_run_count(run); i++) {
        const long rank = number_fact(sw_run_trace(run, i), "rank");
        found = rank > above && (found < 0 || rank < found) ? rank : found;
    }
    return found;
}

/* A part is known by the process of it that trains: the one with most steps, or the first. */
static sw_trace_part part_of(const sw_run *run, long rank, long lowest)
{
    const sw_trace *main = NULL;
    uint64_t most = 0;
    for (size_t i = 0; i < sw_run_count(run); i++) {
        const sw_trace *trace = sw_run_trace(run, i);
        if (rank_of(run, i, lowest) == rank && (!main || steps_of(trace) > most)) {
            main = trace;
            most = steps_of(trace);
        }
    }
    const sw_trace_info *info = sw_trace_get_info(main);
    const char *host = sw_trace_fact(main, "host");
    return (sw_trace_part){.rank = rank,
                           .world_size = number_fact(main, "world_size"),
                           .pid = info->pid,
                           .host = host ? host : "",
                           .start_real_ns = info->start_real_ns};
}

size_t sw_export_trace_parts(const sw_run *run, sw_trace_part *parts, size_t room)
{
    const long lowest = next_rank(run, -1);
    size_t count = 0;
    long rank = lowest;
    do {
        if (count < room) {
            parts[count] = part_of(run, rank, lowest);
        }
        count++;
        rank = next_rank(run, rank);
    } while (rank >= 0 && lowest >= 0);
    return count;
}

/* Which clock a machine has is told by its name; processes of one machine share it. */
static int64_t shift_of(const sw_trace *trace, const sw_trace *first)
{
    const char *host = sw_trace_fact(trace, "host");
    const char *other = sw_trace_fact(first, "host");
    const sw_trace_info *info = sw_trace_get_info(trace);
    const sw_trace_info *zero = sw_trace_get_info(first);
    if (!host || !other || strcmp(host, other) == 0 || !info->start_real_ns ||
        !zero->start_real_ns) {
        return 0;
    }
    return (int64_t)((info->start_real_ns - info->start_ns) -
                     (zero->start_real_ns - zero->start_ns));
}

int sw__trace_choose(struct sw__trace_export *it, sw_error_info *info)
{
    const size_t all = sw_run_count(it->run);
    const long lowest = next_rank(it->run, -1);
    const size_t parts = sw_export_trace_parts(it->run, NULL, 0);
    const size_t part = it->options->part;
    if (part > parts) {
        return sw_error_set(info, SW_EINVAL, "there is no part %zu of %zu", part, parts);
    }
    long rank = lowest;
    for (size_t i = 1; i < part; i++) {
        rank = next_rank(it->run, rank);
    }
    it->processes = sw__alloc_zero(all, sizeof *it->processes);
    it->traces = sw__alloc_zero(all, sizeof *it->traces);
    if (!it->processes || !it->traces) {
        return SW_ENOMEM;
    }
    const sw_trace *first = sw_run_trace(it->run, 0);
    it->origin_ns = UINT64_MAX;
    for (size_t i = 0; i < all; i++) {
        sw_trace *trace = sw_run_trace(it->run, i);
        const int64_t shift = shift_of(trace, first);
        /* All files of a run count from the same moment. */
        const uint64_t start = sw_trace_get_info(trace)->start_ns + (uint64_t)shift;
        it->origin_ns = start < it->origin_ns ? start : it->origin_ns;
        it->shifted = it->shifted || shift != 0;
        if (part == 0 || rank_of(it->run, i, lowest) == rank) {
            it->traces[it->count] = trace;
            it->processes[it->count++] =
                (struct sw__trace_process){.trace = trace, .index = i, .shift_ns = shift};
        }
    }
    const sw_trace_info *zero = sw_trace_get_info(first);
    it->origin_real_ns =
        zero->start_real_ns ? zero->start_real_ns + it->origin_ns - zero->start_ns : 0;
    it->part = part_of(it->run, rank, lowest);
    if (part == 0 && parts > 1) {
        it->part.rank = -1; /* of several ranks */
    }
    return SW_OK;
}

/* Steps of other domains have numbers of their own and count only where there are no others. */
static bool is_counted(const sw_record_step *step, bool domains)
{
    return domains || step->domain == 0;
}

struct found {
    uint64_t begin, end;      /* of the steps that are asked for */
    uint64_t lowest, highest; /* numbers that there are */
    uint64_t wanted, steps;
};

/* The stretch that a step belongs to, as an index; the number of stretches: none. */
static size_t stretch_of(const sw_trace_options *options, uint64_t number)
{
    size_t low = 0;
    size_t high = options->stretch_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (options->stretches[middle].last < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const bool inside =
        low < options->stretch_count && options->stretches[low].first <= number;
    return inside ? low : options->stretch_count;
}

static void window_add(struct sw__trace_window *window, uint64_t begin, uint64_t end)
{
    window->begin = window->end == 0 || begin < window->begin ? begin : window->begin;
    window->end = end > window->end ? end : window->end;
}

bool sw__trace_in_stretch(const struct sw__trace_export *it, uint64_t begin, uint64_t end)
{
    size_t low = 0;
    size_t high = it->window_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (it->windows[middle].end < end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return it->window_count == 0 ||
           (low < it->window_count && it->windows[low].begin <= begin);
}

/* Stretches of which there is no step are left out. */
static void windows_close(struct sw__trace_export *it)
{
    for (size_t i = 0; i < it->options->stretch_count; i++) {
        if (it->windows[i].end) {
            it->windows[it->window_count++] = it->windows[i];
        }
    }
}

static int find_steps(struct sw__trace_export *it, bool domains, struct found *found,
                      sw_error_info *info)
{
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_STEP, .steps = true};
    sw_cursor *cursor;
    sw_event event;
    int error = sw_cursor_open(&cursor, it->traces, it->count, &filter, info);
    *found = (struct found){.begin = UINT64_MAX, .lowest = UINT64_MAX};
    while (!error && (error = sw_cursor_next(cursor, &event)) == SW_OK) {
        const sw_record_step *step = (const sw_record_step *)(const void *)event.record;
        if (!is_counted(step, domains)) {
            continue;
        }
        const uint64_t number = step->number;
        found->steps++;
        found->lowest = number < found->lowest ? number : found->lowest;
        found->highest = number > found->highest ? number : found->highest;
        if (number < it->options->first_step || number > it->options->last_step) {
            continue;
        }
        const uint64_t shift = (uint64_t)it->processes[event.trace].shift_ns;
        const uint64_t begin = event.begin_ns + shift, end = event.end_ns + shift;
        if (it->options->stretch_count) {
            const size_t stretch = stretch_of(it->options, number);
            if (stretch == it->options->stretch_count) {
                continue;
            }
            window_add(&it->windows[stretch], begin, end);
        }
        found->wanted++;
        found->begin = begin < found->begin ? begin : found->begin;
        found->end = end > found->end ? end : found->end;
    }
    sw_cursor_free(cursor);
    return error == SW_EEND ? SW_OK : error;
}

int sw__trace_window(struct sw__trace_export *it, sw_error_info *info)
{
    const sw_trace_options *options = it->options;
    it->from_ns = options->begin_ns;
    it->to_ns = options->end_ns ? options->end_ns : UINT64_MAX;
    if (!options->some_steps) {
        return SW_OK;
    }
    if (options->stretch_count) {
        it->windows = sw__alloc_zero(options->stretch_count, sizeof *it->windows);
        if (!it->windows) {
            return SW_ENOMEM;
        }
    }
    struct found found;
    int error = find_steps(it, false, &found, info);
    if (!error && found.steps == 0) {
        error = find_steps(it, true, &found, info);
    }
    if (error) {
        return error;
    }
    if (found.steps == 0) {
        return sw_error_set(info, SW_ENOTFOUND, "%.300s holds no steps.",
                            sw_run_path(it->run));
    }
    if (found.wanted == 0) {
        return sw_error_set(info, SW_ENOTFOUND,
                            "there is no step %" PRIu64
                            " in %.300s; its steps are %" PRIu64 " to %" PRIu64 ".",
                            options->first_step, sw_run_path(it->run), found.lowest,
                            found.highest);
    }
    it->from_ns = found.begin > it->from_ns ? found.begin : it->from_ns;
    it->to_ns = found.end < it->to_ns ? found.end : it->to_ns;
    windows_close(it);
    return SW_OK;
}

/* Characters that a file name may have everywhere; the last underscore comes before the number of the process. */
static void put_host(char out[128], const char *host)
{
    size_t used = 0;
    for (; *host && used < 127; host++) {
        const char c = *host;
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.';
        out[used++] = plain ? c : '-';
    }
    out[used] = '\0';
}

int sw_export_trace_file_name(char out[SW_TRACE_FILE_NAME], const sw_run *run,
                              const sw_trace_options *options, sw_error_info *info)
{
    struct sw__trace_export it = {.run = run, .options = options};
    int error = sw__trace_choose(&it, info);
    error = error ? error : sw__trace_window(&it, info);
    if (!error) {
        const uint64_t late = it.from_ns > it.origin_ns ? it.from_ns - it.origin_ns : 0;
        const uint64_t start = late ? it.origin_real_ns + late : it.part.start_real_ns;
        char host[128];
        put_host(host, *it.part.host && *it.part.host != '.' ? it.part.host : "host");
        snprintf(out, SW_TRACE_FILE_NAME, "%s_%" PRIu32 ".%" PRIu64 ".pt.trace.json",
                 host, it.part.pid, start / 1000000);
    }
    sw__free(it.windows);
    sw__free(it.processes);
    sw__free(it.traces);
    return error;
}
