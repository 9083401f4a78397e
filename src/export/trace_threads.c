/* Traces: which processes and threads there are, and what of them is shown in one place.
 *
 * Files may claim any number of threads: nothing here looks at all of them for each. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/memory.h"
#include "export/trace_export.h"

/* Kernels give no thread an id as large as this; tracks that stand for none have them. */
#define TID_MADE ((uint64_t)1 << 23)

#define OPERATORS "operators of thread "

struct named {
    const char *name;
    size_t at;
};

static int by_tid(const void *left, const void *right)
{
    const struct sw__known_thread *a = left, *b = right;
    if (a->tid != b->tid) {
        return a->tid < b->tid ? -1 : 1;
    }
    return a->at < b->at ? -1 : a->at > b->at;
}

static int by_name(const void *left, const void *right)
{
    const struct named *a = left, *b = right;
    const int order = strcmp(a->name, b->name);
    return order ? order : a->at < b->at ? -1 : a->at > b->at;
}

static bool pid_taken(const struct sw__trace_export *it, size_t before, uint64_t pid)
{
    for (size_t i = 0; i < before; i++) {
        if (it->processes[i].pid == pid) {
            return true;
        }
    }
    return false;
}

/* Of what the framework's profiler saw there was a thread for each window, in older files. */
static bool is_joined(const char *name)
{
    return strncmp(name, OPERATORS, strlen(OPERATORS)) == 0 ||
           strncmp(name, "device ", 7) == 0;
}

/* Every thread gets a number of its own: the kernel's, unless that is not known or another has it. */
static void number_threads(struct sw__trace_export *it, struct sw__trace_process *process)
{
    const size_t count = process->track_count;
    struct sw__known_thread *known = process->numbers;
    for (size_t i = 0; i < count; i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(process->trace, i);
        known[i] = (struct sw__known_thread){.tid = thread->tid, .at = i};
    }
    qsort(known, count, sizeof *known, by_tid);
    for (size_t i = 0; i < count; i++) {
        const bool again = i && known[i - 1].tid == known[i].tid;
        const uint64_t tid = known[i].tid;
        process->tracks[known[i].at].tid = again || tid >= TID_MADE ? 0 : tid;
    }
    for (size_t i = 0; i < count; i++) {
        struct sw__track *track = &process->tracks[i];
        track->tid = track->tid ? track->tid : it->next_tid++;
    }
}

struct sw__track *sw__track_of_number(struct sw__trace_process *process, uint64_t tid)
{
    const struct sw__known_thread *known = process->numbers;
    size_t low = 0, high = process->track_count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (known[middle].tid < tid) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return tid && low < process->track_count && known[low].tid == tid
               ? &process->tracks[known[low].at]
               : NULL;
}

/* Operators are shown on the track of the thread that ran them, below its sections; where that recorded nothing itself, on one of
 * their own that has its number. */
static void join_operators(struct sw__trace_process *process)
{
    for (size_t i = 0; i < process->track_count; i++) {
        struct sw__track *track = &process->tracks[i];
        unsigned long tid = 0;
        char name[64];
        if (!track->operators || sscanf(track->name, OPERATORS "%lu", &tid) != 1 ||
            tid == 0 || tid >= TID_MADE) {
            continue;
        }
        snprintf(name, sizeof name, OPERATORS "%lu", tid);
        if (strcmp(name, track->name) != 0) {
            continue; /* "05": two would get one number */
        }
        struct sw__track *thread = sw__track_of_number(process, tid);
        track->operators_of = tid;
        if (!thread) {
            track->tid = track->same ? track->tid : tid;
        } else if (!thread->operators) {
            track->same = thread;
        }
    }
}

/* Threads of one name that are shown in one place. */
static void join_names(struct sw__trace_process *process, struct named *known)
{
    size_t count = 0;
    for (size_t i = 0; i < process->track_count; i++) {
        if (is_joined(process->tracks[i].name)) {
            known[count++] = (struct named){.name = process->tracks[i].name, .at = i};
        }
    }
    qsort(known, count, sizeof *known, by_name);
    for (size_t i = 1, first = 0; i < count; i++) {
        if (strcmp(known[first].name, known[i].name) == 0) {
            process->tracks[known[i].at].same = &process->tracks[known[first].at];
        } else {
            first = i;
        }
    }
}

static size_t position_of(const struct sw__trace_process *process, uint32_t index)
{
    size_t low = 0,
           high = process->track_count; /* they lie in the order of their index */
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (sw_trace_get_thread(process->trace, middle)->index < index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < process->track_count &&
                   sw_trace_get_thread(process->trace, low)->index == index
               ? low
               : SIZE_MAX;
}

struct sw__track *sw__track_of_thread(struct sw__trace_process *process, uint32_t index)
{
    const size_t at = position_of(process, index);
    return at == SIZE_MAX ? NULL : &process->tracks[at];
}

struct sw__track *sw__track_shown(struct sw__track *track)
{
    while (track->same) {
        track = track->same;
    }
    return track;
}

static int add_threads(struct sw__trace_export *it, struct sw__trace_process *process)
{
    const sw_trace *trace = process->trace;
    const size_t count = sw_trace_thread_count(trace);
    process->track_count = count;
    process->tracks = sw__alloc_zero(count, sizeof *process->tracks);
    process->lanes = sw__alloc_zero(count, sizeof *process->lanes);
    process->numbers = sw__alloc_zero(count, sizeof *process->numbers);
    struct named *known = sw__alloc_zero(count, sizeof *known);
    if (count && (!process->tracks || !process->lanes || !process->numbers || !known)) {
        sw__free(known);
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        const sw_trace_thread *thread = sw_trace_get_thread(trace, i);
        const char *name = thread->name ? thread->name : "";
        process->tracks[i] = (struct sw__track){
            .pid = process->pid,
            .place = i,
            .name = name,
            .operators = strncmp(name, OPERATORS, strlen(OPERATORS)) == 0};
        process->allocations = process->allocations || strcmp(name, "torch memory") == 0;
    }
    if (count) {
        join_names(process, known);
        number_threads(it, process);
        join_operators(process);
    }
    sw__free(known);
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        const sw_trace_lane *lane = sw_trace_get_lane(trace, i);
        const size_t at =
            lane->domain == 0 ? position_of(process, lane->thread) : SIZE_MAX;
        if (at != SIZE_MAX) {
            process->lanes[at] = lane;
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

static int by_id(const void *left, const void *right)
{
    const struct sw__trace_series *a = left, *b = right;
    return a->id < b->id ? -1 : a->id > b->id;
}

static int add_series(struct sw__trace_process *process)
{
    const size_t rows = sw_trace_row_count(process->trace, SW_TABLE_SERIES);
    process->series = sw__alloc_zero(rows + 1, sizeof *process->series);
    if (!process->series) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < rows; i++) {
        const sw_row *row = sw_trace_get_row(process->trace, SW_TABLE_SERIES, i);
        if (row) {
            process->series[process->series_count++] =
                (struct sw__trace_series){.id = row->key[0],
                                          .unit = row->key[1],
                                          .total = row->key[2] == SW_SERIES_TOTAL};
        }
    }
    qsort(process->series, process->series_count, sizeof *process->series, by_id);
    return SW_OK;
}

struct sw__trace_series *sw__trace_series_of(struct sw__trace_process *process,
                                             uint32_t id)
{
    const struct sw__trace_series wanted = {.id = id};
    return bsearch(&wanted, process->series, process->series_count, sizeof wanted, by_id);
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
        error = error ? error : add_series(process);
    }
    return error;
}
