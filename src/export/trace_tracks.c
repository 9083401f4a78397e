/* Traces: tracks as a viewer shows them, and what nests where. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/json_put.h"
#include "export/trace_export.h"

/* Tracks for what overlaps on one thread, such as the calls of a thousand coroutines; what fits on none of them is shown on no
 * track but as an event of its own. */
#define OVERFLOW_MOST 32

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
        sw__free(it->processes[i].numbers);
        sw__free(it->processes[i].modules);
        sw__free(it->processes[i].series);
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

struct sw__track *sw__track_make(struct sw__trace_export *it, uint64_t pid,
                                 const char *name, const char *note)
{
    struct sw__track *track = sw__alloc_zero(1, sizeof *track);
    if (!track) {
        it->error = SW_ENOMEM;
        return NULL;
    }
    *track = (struct sw__track){.pid = pid,
                                .tid = it->next_tid++,
                                .place = SIZE_MAX / 2,
                                .name = name,
                                .note = note,
                                .next = it->made};
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
    char text[512], pid[32] = "";
    if (process->pid != info->pid) { /* viewers show the number that it has here */
        snprintf(pid, sizeof pid, " (pid %u)", info->pid);
    }
    snprintf(text, sizeof text, "%s%.20s%s%.200s%s%s%.100s", rank ? "rank " : "",
             rank ? rank : "", rank ? ": " : "", *info->name ? info->name : "process",
             pid, elsewhere ? " on " : "", elsewhere ? host : "");
    put_meta(it, &who, "process_name", text, 0);
    put_meta(it, &who, "process_sort_index", NULL, process->index);
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
    char text[256];
    snprintf(text, sizeof text, "%.100s%s%.100s", *track->name ? track->name : "thread",
             track->note ? " " : "", track->note ? track->note : "");
    put_meta(it, &who, "thread_name", text, 0);
    /* What overlaps is shown below the thread that it is of, tracks that no thread stands for below all. */
    put_meta(it, &who, "thread_sort_index", NULL,
             track->place < process->track_count
                 ? 2 * track->place + (track->note != NULL)
                 : 2 * process->track_count);
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
            track->overflow->place = track->place;
        }
        track = track->overflow;
    }
    return NULL;
}
