/* What slow steps do that others do not, from the samples that have a moment. */
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/slow_code.h"
#include "analyze/summary.h"
#include "analyze/training.h"

/* Samples in slow steps, and how much more often a function must be in them. */
#define SAMPLES_LEAST 10
#define MORE_LEAST 0.3

/* By index of the CODE row. */
struct code_count {
    uint64_t slow, usual;
    uint64_t seen; /* the sample that last had it, plus 1 */
    uint32_t line; /* in the last slow sample */
};

struct counting {
    const sw_findings *all;
    struct code_count *codes;
    size_t code_count;
    uint64_t slow, usual, samples;
};

static uint64_t duration(const sw_summary_step *step)
{
    return step->end_ns - step->begin_ns;
}

/* The step that this moment lies in; NULL: none that counts. */
static const sw_summary_step *step_at(const struct sw__case *it, uint64_t ns)
{
    size_t low = 0;
    size_t high = it->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (it->step[middle].end_ns <= ns) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < it->count && it->step[low].begin_ns <= ns ? &it->step[low] : NULL;
}

static void count_sample(struct counting *counting, const sw_record_sample *sample,
                         bool slow)
{
    const size_t room =
        ((size_t)sample->head.units - 1) * (SW_RECORD_UNIT / sizeof(sw_record_frame));
    const sw_record_frame *frames =
        (const sw_record_frame *)(const void *)((const uint8_t *)sample + SW_RECORD_UNIT);
    counting->samples++;
    *(slow ? &counting->slow : &counting->usual) += 1;
    for (size_t i = 0; i < sample->depth && i < room; i++) {
        const uint32_t code = frames[i].code;
        if (code >= counting->code_count ||
            counting->codes[code].seen == counting->samples) {
            continue;
        }
        struct code_count *at = &counting->codes[code];
        at->seen = counting->samples;
        if (slow) {
            at->slow++;
            at->line = frames[i].line ? frames[i].line : at->line;
        } else {
            at->usual++;
        }
    }
}

static void count_samples(struct counting *counting, double bound_ns)
{
    const struct sw__case *it = &counting->all->it;
    const sw_trace_lane *lane = it->summary->step_lane;
    sw_trace *trace = sw__step_trace(it->summary);
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_SAMPLE};
    if (sw_cursor_open(&cursor, &trace, 1, &filter, NULL) != SW_OK) {
        return;
    }
    sw_event event;
    while (sw_cursor_next(cursor, &event) == SW_OK) {
        const sw_record *head = event.record;
        const sw_record_sample *sample = (const sw_record_sample *)(const void *)head;
        if (head->kind != SW_RECORD_SAMPLE || head->units < 2 ||
            sample->thread != lane->thread || sample->leaf_only == 1) {
            continue;
        }
        const sw_summary_step *step = step_at(it, event.begin_ns);
        if (step) {
            count_sample(counting, sample, (double)duration(step) > bound_ns);
        }
    }
    sw_cursor_free(cursor);
}

bool sw__slow_code(sw_findings *all, double bound_ns, struct sw__slow_code *out)
{
    const sw_trace *trace = sw__step_trace(all->it.summary);
    struct counting counting = {.all = all,
                                .code_count = sw_trace_row_count(trace, SW_TABLE_CODE)};
    counting.codes = sw__alloc_zero(counting.code_count + 1, sizeof *counting.codes);
    if (!counting.codes) {
        all->failed = true;
        return false;
    }
    count_samples(&counting, bound_ns);
    double best = MORE_LEAST;
    *out = (struct sw__slow_code){0};
    /* Twice: of those that are nearly the best, the one on most stacks called the others. */
    for (unsigned round = 0; round < 2 && counting.slow >= SAMPLES_LEAST; round++) {
        for (size_t i = 0; i < counting.code_count; i++) {
            const struct code_count *at = &counting.codes[i];
            const double slow = (double)at->slow / (double)counting.slow;
            const double usual =
                counting.usual ? (double)at->usual / (double)counting.usual : 0;
            const sw_row *row =
                at->slow ? sw_trace_get_row(trace, SW_TABLE_CODE, i) : NULL;
            if (!row || !sw__user_file(sw__row_text(trace, row->key[0]))) {
                continue;
            }
            if (round == 0) {
                best = slow - usual > best ? slow - usual : best;
            } else if (slow - usual >= 0.9 * best && slow - usual > MORE_LEAST &&
                       slow > out->slow_share) {
                *out = (struct sw__slow_code){.file = sw__row_text(trace, row->key[0]),
                                              .name = sw__row_text(trace, row->key[1]),
                                              .line = at->line,
                                              .slow_share = slow,
                                              .usual_share = usual};
            }
        }
    }
    sw__free(counting.codes);
    return out->name != NULL;
}
