/* The run from its beginning to its end in parts that do not overlap, and the epochs. */
#include <stdlib.h>
#include <string.h>

#include "analyze/aside.h"
#include "analyze/shares.h"
#include "analyze/steps.h"

enum part {
    STARTUP,
    WARMUP,
    STEPS,
    VALIDATION,
    CHECKPOINT,
    BETWEEN_STEPS,
    BETWEEN_EPOCHS,
    TEARDOWN,
    OTHER,
    PARTS
};
static const char *const part_names[PARTS] = {
    "startup",       "warmup",         "steps",    "validation", "checkpoint",
    "between_steps", "between_epochs", "teardown", "other"};

/* A walk along the run: everything up to `at` is in a part. */
struct walk {
    uint64_t at, end;
    uint64_t ns[PARTS];
    struct sw__gap *gaps; /* NULL: not asked for */
    size_t gap_count;
    uint64_t validated_before; /* of validation: before the first step */
};

static void walk_to(struct walk *walk, uint64_t moment, enum part part)
{
    moment = moment < walk->end ? moment : walk->end;
    if (moment > walk->at) {
        walk->ns[part] += moment - walk->at;
        if (walk->gaps && part != STEPS && part != WARMUP) {
            walk->gaps[walk->gap_count++] =
                (struct sw__gap){.begin = walk->at, .end = moment, .part = part};
        }
        walk->at = moment;
    }
}

static void walk_steps(struct walk *walk, const struct sw__step_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__step *step = &list->steps[i];
        const struct sw__step *before = i ? step - 1 : NULL;
        enum part gap = BETWEEN_STEPS;
        if (!before) {
            gap = STARTUP;
        } else if (step->number > before->number + 1) {
            gap = STEPS; /* their records were given up */
        } else if (step->epoch != before->epoch) {
            gap = BETWEEN_EPOCHS;
        }
        walk_to(walk, step->begin_ns, gap);
        walk_to(walk, step->end_ns, step->warmup ? WARMUP : STEPS);
    }
    const sw_trace_lane *lane = list->lane;
    if (lane->step_open) {
        bool next = list->count > 0 &&
                    lane->step_open_number > list->steps[list->count - 1].number + 1;
        walk_to(walk, lane->step_open_begin_ns,
                next              ? STEPS
                : list->count > 0 ? BETWEEN_STEPS
                                  : STARTUP);
        walk_to(walk, sw_trace_get_info(list->trace)->end_ns, STEPS);
    }
    walk_to(walk, walk->end, TEARDOWN);
}

/* --- validation and checkpoints --- */

/* Up to `ns` of one part become part of another; what there was not is returned. */
static uint64_t move(struct walk *walk, enum part from, enum part to, uint64_t ns)
{
    const uint64_t moved = ns < walk->ns[from] ? ns : walk->ns[from];
    walk->ns[from] -= moved;
    walk->ns[to] += moved;
    return ns - moved;
}

/* Of what the thread spent aside, `outside` lies in the gaps. Where spans do not say in which, it is taken where validation
 * and checkpoints usually are. */
static void move_outside(struct walk *walk, const struct sw__aside *aside,
                         const uint64_t outside[SW__ASIDES])
{
    static const enum part usual[] = {BETWEEN_EPOCHS, BETWEEN_STEPS, TEARDOWN, STARTUP,
                                      OTHER};
    sw__aside_place(aside, walk->gaps, walk->gap_count);
    for (unsigned kind = 0; kind < SW__ASIDES; kind++) {
        const enum part to = kind == SW__ASIDE_VALIDATION ? VALIDATION : CHECKPOINT;
        uint64_t left = outside[kind];
        for (size_t i = 0; i < walk->gap_count; i++) {
            const struct sw__gap *gap = &walk->gaps[i];
            const uint64_t here = gap->aside[kind] < left ? gap->aside[kind] : left;
            const bool before = gap->part == STARTUP && walk->ns[STEPS] > 0;
            if (before && to == CHECKPOINT) {
                left -=
                    here; /* files that are written before the first step are no state of the training */
                continue;
            }
            const uint64_t moved = here - move(walk, gap->part, to, here);
            left -= moved;
            walk->validated_before += before ? moved : 0;
        }
        for (size_t i = 0; i < sizeof usual / sizeof usual[0] && left > 0; i++) {
            left = move(walk, usual[i], to, left);
        }
    }
}

/* The thread whose timeline this is: that of the steps, or else the one that validated longest. */
static int find_aside(const sw_summary *summary, const struct sw__step_list *list,
                      struct sw__aside *aside)
{
    if (list->lane) {
        return sw__aside_find(aside, list->trace, list->lane);
    }
    *aside = (struct sw__aside){0};
    for (size_t t = 0; t < summary->traces; t++) {
        const sw_trace *trace = sw__summary_trace(summary, t);
        for (size_t l = 0; l < sw_trace_lane_count(trace); l++) {
            struct sw__aside other;
            const int error = sw__aside_find(&other, trace, sw_trace_get_lane(trace, l));
            const bool better =
                !error && sw__add(other.ns[0], other.ns[1]) >
                              (aside->lane ? sw__add(aside->ns[0], aside->ns[1]) : 0);
            sw__aside_free(better ? aside : &other);
            if (better) {
                *aside = other;
            }
            if (error) {
                sw__aside_free(aside);
                return error;
            }
        }
    }
    return SW_OK;
}

static int move_aside(sw_summary *summary, const struct sw__step_list *list,
                      struct walk *walk)
{
    static const enum part to[SW__ASIDES] = {VALIDATION, CHECKPOINT};
    static const enum sw_phase phases[SW__ASIDES] = {SW_PHASE_VALIDATION,
                                                     SW_PHASE_CHECKPOINT};
    struct sw__aside aside;
    uint64_t outside[SW__ASIDES] = {0};
    int error = find_aside(summary, list, &aside);
    if (error || !aside.lane) {
        return error;
    }
    for (unsigned kind = 0; kind < SW__ASIDES; kind++) {
        const uint64_t warmup = list->aside_ns[kind][1];
        uint64_t steps = list->aside_ns[kind][0];
        if (list->lane && list->count + list->skipped < list->lane->steps) {
            /* Records were given up; the totals of complete steps were not. */
            const uint64_t all = list->lane->phase_ns[phases[kind]];
            steps = sw__sub(all, warmup) > steps ? sw__sub(all, warmup) : steps;
        }
        (void)move(walk, WARMUP, to[kind], warmup);
        (void)move(walk, STEPS, to[kind], steps);
        /* Sums of ticks and differences of moments are rounded apart. */
        const uint64_t rounding = 1000 + 2 * (uint64_t)list->count;
        const uint64_t inside = sw__add(warmup, steps);
        outside[kind] =
            aside.ns[kind] > sw__add(inside, rounding) ? aside.ns[kind] - inside : 0;
    }
    if (outside[0] || outside[1]) {
        move_outside(walk, &aside, outside);
    }
    /* Validation lasts until training goes on, and often the model is saved before that. */
    (void)move(walk, VALIDATION, CHECKPOINT, aside.nested_ns);
    sw__aside_free(&aside);
    return SW_OK;
}

int sw__summary_timeline(sw_summary *summary, const struct sw__step_list *list)
{
    struct walk walk = {.at = summary->origin_ns,
                        .end = sw__add(summary->origin_ns, summary->run.duration_ns)};
    /* A gap before each step, one before a step that is open, and one at the end. */
    walk.gaps = sw__alloc_zero(list->count + 3, sizeof *walk.gaps);
    summary->parts = sw__summary_take(summary, PARTS, sizeof *summary->parts);
    if (!summary->parts || !walk.gaps) {
        sw__free(walk.gaps);
        return SW_ENOMEM;
    }
    if (list->lane && (list->count > 0 || list->lane->step_open)) {
        walk_steps(&walk, list);
    } else {
        walk_to(&walk, walk.end, OTHER);
    }
    const int error = move_aside(summary, list, &walk);
    summary->validated_before_ns = walk.validated_before;
    uint64_t parts[PARTS];
    sw__shares(walk.ns, PARTS, (uint64_t)1 << 32, parts);
    for (size_t i = 0; i < PARTS && !error; i++) {
        if (walk.ns[i] > 0) {
            summary->parts[summary->part_count++] = (sw_summary_part){
                part_names[i], walk.ns[i], (double)parts[i] / 4294967296.0};
        }
    }
    sw__free(walk.gaps);
    return error;
}

/* --- epochs --- */

static int by_epoch(const void *left, const void *right)
{
    const sw_summary_epoch *a = left;
    const sw_summary_epoch *b = right;
    return (a->epoch > b->epoch) - (a->epoch < b->epoch);
}

int sw__summary_epochs(sw_summary *summary, const struct sw__step_list *list,
                       const uint64_t *waits)
{
    /* Steps of one epoch follow each other; an epoch that comes back is joined after sorting. */
    size_t room = 0;
    for (size_t i = 0; i < list->count; i++) {
        room += i == 0 || list->steps[i].epoch != list->steps[i - 1].epoch;
    }
    sw_summary_epoch *epochs = sw__summary_take(summary, room, sizeof *epochs);
    if (!epochs) {
        return SW_ENOMEM;
    }
    size_t count = 0;
    size_t unknown = 0;
    uint64_t begin = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__step *step = &list->steps[i];
        if (step->epoch == UINT32_MAX) {
            unknown++;
            continue;
        }
        if (i == 0 || step->epoch != list->steps[i - 1].epoch) {
            begin = step->begin_ns;
            epochs[count++] = (sw_summary_epoch){
                .epoch = step->epoch, .first_batch_ns = waits ? waits[i] : SW_UNKNOWN};
        }
        epochs[count - 1].steps++;
        epochs[count - 1].ns = sw__sub(step->end_ns, begin);
    }
    if (count > 1) {
        qsort(epochs, count, sizeof *epochs, by_epoch);
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (kept > 0 && epochs[kept - 1].epoch == epochs[i].epoch) {
            epochs[kept - 1].steps += epochs[i].steps;
            epochs[kept - 1].ns = sw__add(epochs[kept - 1].ns, epochs[i].ns);
        } else {
            epochs[kept++] = epochs[i];
        }
    }
    /* What was taken for the first epoch turned out to be a part of a step, as were those that followed. */
    const bool mistaken = kept == 1 && epochs[0].epoch == 0 && unknown > epochs[0].steps;
    summary->epochs = epochs;
    summary->epoch_count = mistaken ? 0 : kept;
    return SW_OK;
}
