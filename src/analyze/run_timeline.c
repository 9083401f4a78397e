/* The run from its beginning to its end in parts that do not overlap, and the epochs. */
#include <stdlib.h>

#include "analyze/shares.h"
#include "analyze/steps.h"

enum part {
    STARTUP,
    WARMUP,
    STEPS,
    BETWEEN_STEPS,
    BETWEEN_EPOCHS,
    TEARDOWN,
    OTHER,
    PARTS
};
static const char *const part_names[PARTS] = {
    "startup", "warmup", "steps", "between_steps", "between_epochs", "teardown", "other"};

/* A walk along the run: everything up to `at` is in a part. */
struct walk {
    uint64_t at, end;
    uint64_t ns[PARTS];
};

static void walk_to(struct walk *walk, uint64_t moment, enum part part)
{
    moment = moment < walk->end ? moment : walk->end;
    if (moment > walk->at) {
        walk->ns[part] += moment - walk->at;
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

int sw__summary_timeline(sw_summary *summary, const struct sw__step_list *list)
{
    struct walk walk = {.at = summary->origin_ns,
                        .end = sw__add(summary->origin_ns, summary->run.duration_ns)};
    if (list->lane && (list->count > 0 || list->lane->step_open)) {
        walk_steps(&walk, list);
    } else {
        walk_to(&walk, walk.end, OTHER);
    }
    uint64_t parts[PARTS];
    sw__shares(walk.ns, PARTS, (uint64_t)1 << 32, parts);
    summary->parts = sw__summary_take(summary, PARTS, sizeof *summary->parts);
    if (!summary->parts) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < PARTS; i++) {
        if (walk.ns[i] > 0) {
            summary->parts[summary->part_count++] = (sw_summary_part){
                part_names[i], walk.ns[i], (double)parts[i] / 4294967296.0};
        }
    }
    return SW_OK;
}

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
    uint64_t begin = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct sw__step *step = &list->steps[i];
        if (step->epoch == UINT32_MAX) {
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
    summary->epochs = epochs;
    summary->epoch_count = kept;
    return SW_OK;
}
