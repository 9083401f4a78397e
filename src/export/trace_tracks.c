/* Traces: processes and threads as a viewer shows them, and what nests where. */
#include <stdio.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "export/json_put.h"
#include "export/trace_export.h"

/* Kernels give no thread an id as large as this; tracks that stand for none have them. */
#define TID_MADE ((uint64_t)1 << 23)

/* Tracks for what overlaps on one thread, such as the calls of a thousand coroutines; what fits on none of them is shown on no
 * track but as an event of its own. */
#define OVERFLOW_MOST 32

/* --- Who is who --- */

static bool pid_taken(const struct sw__trace_export *it, size_t before, uint64_t pid)
{
    for (size_t i = 0; i < before; i++) {
        if (it->processes[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* What the framework's profiler saw of one thread comes with a new thread for each window. */
static bool is_joined(const char *name)
{
    return strncmp(name, "operators of thread ", 20) == 0 ||
           strncmp(name, "device ", 7) == 0;
}

/* An earlier thread that is shown in the same place, or whose id this one has. */
static const struct sw__track *earlier(const struct sw__trace_process *process,
                                       size_t before, const sw_trace_thread *thread,
                                       bool by_name)
{
    for (size_t i = 0; i < before; i++) {
        struct sw__track *track = &process->tracks[i];
        if (by_name ? !track->same && strcmp(track->name, thread->name) == 0
                    : track->tid == thread->tid) {
            return track;
        }
    }
    return NULL;
}

static int add_threads(struct sw__trace_export *it, struct sw__trace_process *process)
{
    const sw_trace *trace = process->trace;
    process->track_count = sw_trace_thread_count(trace);
    process->tracks = sw__alloc_zero(process->track_count, sizeof *process->tracks);
    process->lanes = sw__alloc_zero(process->track_count, sizeof *process->lanes);
    if (process->track_count && (!process->tracks || !process->lanes)) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < process->track_count; i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace, i);
        struct sw__track *track = &process->tracks[i];
        const char *name = thread->name ? thread->name : "";
        const bool unknown = thread->tid == 0 || earlier(process, i, thread, false);
        *track = (struct sw__track){
            .pid = process->pid,
            .tid = unknown ? it->next_tid++ : thread->tid,
            .name = name,
            .operators = strncmp(name, "operators of thread ", 20) == 0,
            .same = is_joined(name)
                        ? (struct sw__track *)earlier(process, i, thread, true)
                        : NULL};
    }
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        for (size_t t = 0; t < process->track_count && lane->domain == 0; t++) {
            if (sw_trace_get_thread(trace, t)->index == lane->thread) {
                process->lanes[t] = lane;
                break;
            }
        }
    }
    return SW_OK;
}

/* A module's calls have sections of its name, one for each phase it may stand for. */
static int add_modules(struct sw__trace_process *process)
{
    const sw_trace *trace = process->trace;
    const size_t rows = sw_trace_row_count(trace, SW_TABLE_MODULE);
    process->name_limit = sw_trace_name_limit(trace);
    process->modules = sw__alloc_zero(process->name_limit / 8 + 1, 1);
    sw__intern *names = sw__intern_create(1u << 20);
    int error = process->modules && names ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; i < rows && !error; i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_MODULE, i);
        const sw_trace_name *name = row ? sw_trace_get_name(trace, row->key[0]) : NULL;
        int fresh;
        error = !name || sw__intern_put(names, name->text, name->length, &fresh)
                    ? SW_OK
                    : SW_ENOMEM;
    }
    for (uint32_t id = 1; id < process->name_limit && rows && !error; id++) {
        const sw_trace_name *name = sw_trace_get_name(trace, id);
        if (name && name->use == 1 && sw__intern_find(names, name->text, name->length)) {
            process->modules[id / 8] |= (uint8_t)(1u << id % 8);
        }
    }
    sw__intern_free(names);
    return error;
}

/* Sums that grow are shown by their growth. */
static int add_totals(struct sw__trace_process *process)
{
    const size_t rows = sw_trace_row_count(process->trace, SW_TABLE_SERIES);
    process->totals = sw__alloc_zero(rows + 1, sizeof *process->totals);
    for (size_t i = 0; process->totals && i < rows; i++) {
        const sw_row *row = sw_trace_get_row(process->trace, SW_TABLE_SERIES, i);
        if (row && row->key[2] == SW_SERIES_TOTAL) {
            process->totals[process->total_count++].id = row->key[0];
        }
    }
    return process->totals ? SW_OK : SW_ENOMEM;
}

int sw__trace_tracks(struct sw__trace_export *it)
{
    int error = SW_OK;
    it->next_tid = TID_MADE;
    for (size_t i = 0; i < it->count && !error; i++) {
        struct sw__trace_process *process = &it->processes[i];
        process->pid = sw_trace_get_info(process->trace)->pid;
        while (pid_taken(it, i, process->pid)) {
            process->pid += TID_MADE; /* of another machine, or a number used again */
        }
        error = add_threads(it, process);
        error = error ? error : add_modules(process);
        error = error ? error : add_totals(process);
    }
    return error;
}

static void track_free(struct sw__track *track)
{
    sw__free(track->fits);
    sw__free(track->pending);
}

void sw__trace_tracks_free(struct sw__trace_export *it)
{
    for (size_t i = 0; i < it->count; i++) {
        for (size_t t = 0; it->processes[i].tracks && t < it->processes[i].track_count;
             t++) {
            track_free(&it->processes[i].tracks[t]);
        }
        sw__free(it->processes[i].tracks);
        sw__free(it->processes[i].lanes);
        sw__free(it->processes[i].modules);
        sw__free(it->processes[i].totals);
    }
    while (it->made) {
        struct sw__track *next = it->made->next;
        track_free(it->made);
        sw__free(it->made);
        it->made = next;
    }
    sw__free(it->windows);
    sw__free(it->processes);
    sw__free(it->traces);
}

struct sw__track *sw__track_of_thread(struct sw__trace_process *process, uint32_t index)
{
    for (size_t i = 0; i < process->track_count; i++) {
        if (sw_trace_get_thread(process->trace, i)->index == index) {
            return &process->tracks[i];
        }
    }
    return NULL;
}

struct sw__track *sw__track_make(struct sw__trace_export *it, uint64_t pid,
                                 const char *name, const char *note)
{
    struct sw__track *track = sw__alloc_zero(1, sizeof *track);
    if (!track) {
        it->error = SW_ENOMEM;
        return NULL;
    }
    *track = (struct sw__track){
        .pid = pid, .tid = it->next_tid++, .name = name, .note = note, .next = it->made};
    it->made = track;
    return track;
}

/* --- Metadata --- */

static void put_meta(struct sw__trace_export *it, const struct sw__slice *who,
                     const char *what, const char *text, uint64_t number)
{
    struct sw__slice slice = *who;
    slice.name = what;
    slice.length = strlen(what);
    sw__moment_begin(it, NULL, "M", &slice);
    sw__event_args(it);
    if (text) {
        put_string(it->writer, "name", text);
    } else {
        put_uint(it->writer, "sort_index", number);
    }
    sw__event_end(it, true);
}

static void name_process(struct sw__trace_export *it, struct sw__trace_process *process)
{
    const struct sw__slice who = {.pid = process->pid};
    const sw_trace_info *info = sw_trace_get_info(process->trace);
    const char *rank = sw_trace_fact(process->trace, "rank");
    const char *host = sw_trace_fact(process->trace, "host");
    const char *first = sw_trace_fact(it->traces[0], "host");
    const bool elsewhere = host && first && strcmp(host, first) != 0;
    char text[512];
    snprintf(text, sizeof text, "%s%.20s%s%.200s (pid %u%s%.100s)", rank ? "rank " : "",
             rank ? rank : "", rank ? ": " : "", *info->name ? info->name : "process",
             info->pid, elsewhere ? " on " : "", elsewhere ? host : "");
    put_meta(it, &who, "process_name", text, 0);
    put_meta(it, &who, "process_sort_index", NULL, process->index);
}

/* A thread's operators are shown below it. */
static size_t place_of(const struct sw__trace_process *process,
                       const struct sw__track *track, const char **of)
{
    unsigned long tid;
    *of = NULL;
    for (size_t i = 0; i < process->track_count; i++) {
        const struct sw__track *other = &process->tracks[i];
        if (other == track) {
            if (sscanf(track->name, "operators of thread %lu", &tid) != 1) {
                return 2 * i;
            }
            for (size_t t = 0; t < process->track_count; t++) {
                if (process->tracks[t].tid == tid && *process->tracks[t].name) {
                    *of = process->tracks[t].name;
                    return 2 * t + 1;
                }
            }
            return 2 * i + 1;
        }
    }
    return 2 * process->track_count + 1;
}

void sw__track_name(struct sw__trace_export *it, struct sw__trace_process *process,
                    struct sw__track *track)
{
    if (!process->named) {
        process->named = true;
        name_process(it, process);
    }
    if (track->named) {
        return;
    }
    track->named = true;
    const struct sw__slice who = {.pid = track->pid, .tid = track->tid};
    const char *of;
    const size_t place = place_of(process, track, &of);
    char text[256];
    snprintf(text, sizeof text, "%s%.100s%s%.100s", of ? "operators of " : "",
             of             ? of
             : *track->name ? track->name
                            : "thread",
             track->note ? " " : "", track->note ? track->note : "");
    put_meta(it, &who, "thread_name", text, 0);
    put_meta(it, &who, "thread_sort_index", NULL, place);
}

/* --- Nesting --- */

/* The first fit that ends after `moment`. */
static size_t first_after(const struct sw__track *track, uint64_t moment)
{
    size_t low = 0, high = track->fit_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (track->fits[middle].end > moment) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* The first fit from `low` on that does not begin before `moment`. Not one by one: of what lies across many of them, as calls of
 * coroutines do, every track is asked. */
static size_t first_not_before(const struct sw__track *track, size_t low, uint64_t moment)
{
    size_t high = track->fit_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (track->fits[middle].begin >= moment) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Joins neighbours of one class among the older half; where that frees nothing, all of them. An event that begins between two
 * that were joined will not be seen to fit, and is moved to another track: less neat, never wrong. */
static void join_old(struct sw__track *track)
{
    for (int all = 0; all < 2 && track->fit_count > SW__TRACK_FITS * 3 / 4; all++) {
        const size_t old = track->fit_count / 2;
        size_t kept = 0;
        for (size_t i = 0; i < track->fit_count; i++) {
            const struct sw__fit *next = &track->fits[i];
            struct sw__fit *last = kept ? &track->fits[kept - 1] : NULL;
            if (last && i < old && (all || last->class == next->class)) {
                last->end = next->end;
                last->inner = next->end;
            } else {
                track->fits[kept++] = *next;
            }
        }
        track->fit_count = kept;
    }
}

static bool make_room(struct sw__track *track)
{
    if (track->fit_count == SW__TRACK_FITS) {
        join_old(track);
    }
    if (track->fit_count < track->fit_room) {
        return true;
    }
    const size_t room = track->fit_room ? track->fit_room * 2 : 64;
    struct sw__fit *fits = sw__realloc(track->fits, room, sizeof *fits);
    if (fits) {
        track->fits = fits;
        track->fit_room = room;
    }
    return fits != NULL;
}

/* Whether [begin, end] cuts into nothing on the track; then it is part of it. -1: out of memory. */
static int fit(struct sw__track *track, uint64_t begin, uint64_t end, uint32_t class)
{
    if (!make_room(track)) {
        return -1;
    }
    /* Those that it touches: from the first that ends after its begin, as long as they begin before its end. Of length 0, at
     * either end, is within and beside alike. */
    const size_t from = first_after(track, begin);
    const size_t to = first_not_before(track, from, end);
    struct sw__fit *first = &track->fits[from];
    if (to > from && first->begin < begin) {
        if (to == from + 1 && first->inner <= begin && end <= first->end) {
            first->inner = end; /* one more inside */
            return 1;
        }
        return 0;
    }
    if (to > from && track->fits[to - 1].end > end) {
        if (to == from + 1 && first->begin == begin && first->inner <= begin) {
            first->inner = end;
            return 1;
        }
        return 0;
    }
    const uint64_t inner = to > from ? track->fits[to - 1].end : begin;
    memmove(&track->fits[from + 1], &track->fits[to],
            (track->fit_count - to) * sizeof *track->fits);
    track->fits[from] =
        (struct sw__fit){.begin = begin, .end = end, .inner = inner, .class = class};
    track->fit_count = track->fit_count - (to - from) + 1;
    return 1;
}

struct sw__track *sw__track_place(struct sw__trace_export *it,
                                  struct sw__trace_process *process,
                                  struct sw__track *track, uint64_t begin, uint64_t end,
                                  uint32_t class)
{
    const char *name = track->name;
    for (unsigned i = 0; i < OVERFLOW_MOST; i++) {
        const int fits = fit(track, begin, end, class);
        if (fits < 0) {
            it->error = SW_ENOMEM;
            return NULL;
        }
        if (fits) {
            sw__track_name(it, process, track);
            return track;
        }
        if (!track->overflow) {
            track->overflow = sw__track_make(it, track->pid, name, "(overlapping)");
            if (!track->overflow) {
                return NULL;
            }
        }
        track = track->overflow;
    }
    return NULL;
}
