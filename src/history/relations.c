#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "history/relations.h"

#define TREND_LEAST 3

static int newest_first(const void *left, const void *right)
{
    const sw_history_run *a = left;
    const sw_history_run *b = right;
    const double a_start = isnan(a->started_s) ? -1 : a->started_s;
    const double b_start = isnan(b->started_s) ? -1 : b->started_s;
    if (a_start != b_start) {
        return a_start > b_start ? -1 : 1;
    }
    return strcmp(b->directory, a->directory);
}

void sw__runs_sort(struct sw__runs *runs)
{
    if (runs->count > 1) {
        qsort(runs->run, runs->count, sizeof *runs->run, newest_first);
    }
}

bool sw__run_counts(const sw_history_run *run)
{
    const bool stepped = run->steps != SW_UNKNOWN && run->steps > 0;
    return run->complete == 1 && (run->exit_code == 0 || stepped);
}

/* What is known of a program, or of a program with its arguments, on the way from the oldest run to the newest. */
struct group {
    const sw_history_run *last; /* that counts */
    sw_history_run *best;
    size_t runs; /* that have a duration of steps */
    double first_ms, last_ms;
    double *step_ms; /* the newest of them, oldest first; NULL until the second walk */
    size_t kept;
    bool shown;
};

struct groups {
    sw__intern *names;
    struct group *group; /* by id */
    uint32_t *program;   /* of each run: ids, 0 for a run without a program */
    uint32_t *same;      /* … with its arguments */
};

static void groups_free(struct groups *groups)
{
    sw__intern_free(groups->names);
    sw__free(groups->group);
    sw__free(groups->program);
    sw__free(groups->same);
}

/* The id of "PROGRAM" or "PROGRAM NUL ARGUMENTS"; 0 when out of memory. */
static uint32_t id_of(struct groups *groups, const char *program, const char *arguments)
{
    char key[PATH_MAX + 64];
    int fresh;
    const size_t length = strnlen(program, PATH_MAX);
    size_t used = length;
    memcpy(key, program, length);
    if (arguments) {
        const size_t more = strnlen(arguments, 62);
        key[used++] = '\0';
        memcpy(key + used, arguments, more);
        used += more;
    }
    return sw__intern_put(groups->names, key, used, &fresh);
}

static int groups_make(struct groups *groups, const struct sw__runs *runs)
{
    *groups = (struct groups){
        .names = sw__intern_create(UINT32_MAX - 1),
        .program = sw__alloc_zero(runs->count + 1, sizeof *groups->program),
        .same = sw__alloc_zero(runs->count + 1, sizeof *groups->same)};
    bool failed = !groups->names || !groups->program || !groups->same;
    for (size_t i = 0; i < runs->count && !failed; i++) {
        const sw_history_run *run = &runs->run[i];
        if (!run->program) {
            continue;
        }
        groups->program[i] = id_of(groups, run->program, NULL);
        groups->same[i] =
            id_of(groups, run->program, run->arguments ? run->arguments : "");
        failed = !groups->program[i] || !groups->same[i];
    }
    if (!failed) {
        groups->group = sw__alloc_zero((size_t)sw__intern_count(groups->names) + 1,
                                       sizeof *groups->group);
    }
    return groups->group ? SW_OK : SW_ENOMEM;
}

static bool has_pace(const sw_history_run *run)
{
    return isfinite(run->step_p50_ms) && run->step_p50_ms > 0;
}

static void relate_previous(sw_history_run *run, const struct group *program,
                            const struct group *same)
{
    const sw_history_run *previous = same->last ? same->last : program->last;
    run->previous = NULL;
    run->change = NAN;
    run->previous_same_arguments = same->last != NULL;
    if (previous) {
        run->previous = previous->directory;
        run->previous_id = previous->id;
        if (run->steps_per_s > 0 && previous->steps_per_s > 0) {
            run->change = run->steps_per_s / previous->steps_per_s;
        }
    }
}

static void count_run(sw_history_run *run, struct group *program, struct group *same)
{
    if (sw__run_counts(run)) {
        program->last = run;
        same->last = run;
    }
    if (!has_pace(run)) {
        return;
    }
    same->first_ms = same->runs == 0 ? run->step_p50_ms : same->first_ms;
    same->last_ms = run->step_p50_ms;
    same->runs++;
    if (sw__run_counts(run) &&
        (!same->best || run->step_p50_ms < same->best->step_p50_ms)) {
        same->best = run;
    }
}

/* Adds the trend of a group the first time that it is met. */
static int add_trend(struct sw__trends *trends, struct group *group,
                     const sw_history_run *run, sw__arena *arena)
{
    if (group->shown || group->runs < TREND_LEAST) {
        return SW_OK;
    }
    const size_t count = group->runs < SW_HISTORY_TREND ? group->runs : SW_HISTORY_TREND;
    group->step_ms =
        sw__arena_take(arena, count * sizeof *group->step_ms, _Alignof(double));
    if (!group->step_ms) {
        return SW_ENOMEM;
    }
    group->shown = true;
    trends->trend[trends->count++] =
        (sw_history_trend){.program = run->program,
                           .arguments = run->arguments,
                           .name = run->name,
                           .runs = group->runs,
                           .step_ms = group->step_ms,
                           .count = count,
                           .first_ms = group->first_ms,
                           .last_ms = group->last_ms,
                           .best_ms = group->best ? group->best->step_p50_ms : NAN};
    return SW_OK;
}

/* From the newest run to the oldest: trends come in this order, their values from the end. */
static int make_trends(const struct sw__runs *runs, struct groups *groups,
                       struct sw__trends *trends)
{
    int result = SW_OK;
    trends->trend = sw__arena_take(runs->arena, (runs->count + 1) * sizeof *trends->trend,
                                   _Alignof(sw_history_trend));
    if (!trends->trend) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < runs->count && result == SW_OK; i++) {
        const sw_history_run *run = &runs->run[i];
        struct group *group = &groups->group[groups->same[i]];
        if (!groups->same[i] || !has_pace(run)) {
            continue;
        }
        result = add_trend(trends, group, run, runs->arena);
        const size_t room =
            group->runs < SW_HISTORY_TREND ? group->runs : SW_HISTORY_TREND;
        if (group->shown && group->kept < room) {
            group->step_ms[room - ++group->kept] = run->step_p50_ms;
        }
    }
    return result;
}

int sw__runs_relate(struct sw__runs *runs, struct sw__trends *trends)
{
    struct groups groups;
    *trends = (struct sw__trends){0};
    int result = groups_make(&groups, runs);
    for (size_t i = runs->count; i-- > 0 && result == SW_OK;) {
        if (groups.same[i]) {
            struct group *program = &groups.group[groups.program[i]];
            struct group *same = &groups.group[groups.same[i]];
            relate_previous(&runs->run[i], program, same);
            count_run(&runs->run[i], program, same);
        }
    }
    for (size_t i = 0; i < runs->count && result == SW_OK; i++) {
        const struct group *same = &groups.group[groups.same[i]];
        runs->run[i].best =
            groups.same[i] && same->runs > 1 && same->best == &runs->run[i];
    }
    if (result == SW_OK) {
        result = make_trends(runs, &groups, trends);
    }
    groups_free(&groups);
    return result;
}
