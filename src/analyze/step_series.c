/* The steps one by one: their records, and what lies between them. */
#include <stdlib.h>
#include <string.h>

#include "analyze/aside.h"
#include "analyze/shares.h"
#include "analyze/steps.h"

#define STEP_UNITS (sizeof(sw_record_step) / SW_RECORD_UNIT)

/* --- records --- */

static sw_cursor *records_open(const sw_trace *trace, const sw_trace_lane *lane)
{
    sw_cursor *cursor = NULL;
    sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_STEP,
                               .steps = true,
                               .one_thread = true,
                               .thread = lane->thread};
    sw_trace *source = (sw_trace *)trace;
    return sw_cursor_open(&cursor, &source, 1, &filter, NULL) == SW_OK ? cursor : NULL;
}

static const sw_record_step *records_next(sw_cursor *cursor, const sw_trace_lane *lane,
                                          sw_event *event)
{
    while (sw_cursor_next(cursor, event) == SW_OK) {
        const sw_record *record = event->record;
        if (record->kind != SW_RECORD_STEP || record->units < STEP_UNITS) {
            continue;
        }
        const sw_record_step *step = (const sw_record_step *)(const void *)record;
        if (step->domain == lane->domain) {
            return step;
        }
    }
    return NULL;
}

/* Whether loops gave steps at first, and somebody else later. */
static bool somebody_else_came(const sw_trace *trace, const sw_trace_lane *lane)
{
    sw_cursor *cursor = records_open(trace, lane);
    sw_event event;
    const sw_record_step *step = cursor ? records_next(cursor, lane, &event) : NULL;
    bool came = false;
    if (step && step->unit == SW_STEP_LOOP) {
        while (!came && (step = records_next(cursor, lane, &event)) != NULL) {
            came = step->unit != SW_STEP_LOOP;
        }
    }
    sw_cursor_free(cursor);
    return came;
}

/* Steps of loops that were chosen before another one was. */
static uint64_t abandoned(const sw_trace *trace)
{
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_SETTING); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_SETTING, i);
        const sw_trace_name *name = row ? sw_trace_get_name(trace, row->key[0]) : NULL;
        if (name && name->text && strcmp(name->text, "loop.abandoned") == 0) {
            double count;
            memcpy(&count, &row->value[0], sizeof count);
            return count > 0 && count < 0x1p53 ? (uint64_t)count : 0;
        }
    }
    return 0;
}

void sw__steps_open(struct sw__step_reader *reader, const sw_trace *trace,
                    const sw_trace_lane *lane)
{
    *reader = (struct sw__step_reader){.cursor = records_open(trace, lane), .lane = lane};
    if (reader->cursor) {
        reader->no_loops = somebody_else_came(trace, lane);
        reader->to_skip = abandoned(trace);
    }
}

const sw_record_step *sw__steps_next(struct sw__step_reader *reader, sw_event *event)
{
    const sw_record_step *step;
    while ((step = records_next(reader->cursor, reader->lane, event)) != NULL) {
        if (step->unit != SW_STEP_LOOP ||
            (!reader->no_loops && reader->skipped >= reader->to_skip)) {
            return step;
        }
        reader->skipped++;
        reader->skipped_incomplete += (step->head.flags & SW_STEP_INCOMPLETE) != 0;
        reader->skipped_ns =
            sw__add(reader->skipped_ns, sw__sub(event->end_ns, event->begin_ns));
    }
    return NULL;
}

void sw__steps_close(struct sw__step_reader *reader)
{
    sw_cursor_free(reader->cursor);
    reader->cursor = NULL;
}

void sw__steps_brief(const sw_trace *trace, const sw_trace_lane *lane, uint64_t *count,
                     uint64_t *ns)
{
    sw_cursor *cursor = records_open(trace, lane);
    const sw_record_step *step;
    uint64_t present = 0, present_ns = 0;
    sw_event event;
    *count = *ns = 0;
    while (cursor && (step = records_next(cursor, lane, &event)) != NULL) {
        const unsigned flags = step->head.flags;
        const uint64_t took = sw__sub(event.end_ns, event.begin_ns);
        if (flags & (SW_STEP_INCOMPLETE | SW_RECORD_CUT)) {
            continue;
        }
        present_ns = sw__add(present_ns, took);
        present++;
        if (flags & SW_STEP_BRIEF) {
            *ns = sw__add(*ns, took);
            (*count)++;
        }
    }
    sw_cursor_free(cursor);
    const uint64_t all = sw__sub(lane->steps, lane->steps_incomplete);
    if (present < all) {
        *count = sw__steps_part(all, *count, present);
        *ns = sw__steps_part(lane->step_total_ns, *ns, present_ns);
    }
}

void sw__step_phases(const sw_record_step *record, uint64_t ns,
                     uint64_t out[SW_PHASE_COUNT])
{
    uint64_t ticks[SW_PHASE_COUNT] = {0};
    uint64_t sum = 0;
    /* In a step that was watched in brief, sections of a caller of the recorder may have had any phase: not all of it is known. */
    const bool brief = (record->head.flags & SW_STEP_BRIEF) != 0;
    for (size_t i = 0; i < SW_PHASE_SLOTS; i++) {
        const bool known = i < SW_PHASE_COUNT && (!brief || SW_PHASES_ALWAYS >> i & 1);
        uint64_t *to = &ticks[known ? i : SW_PHASE_OTHER];
        *to = sw__add(*to, record->phase_ticks[i]);
        sum = sw__add(sum, record->phase_ticks[i]);
    }
    sw__rescale(ticks, SW_PHASE_COUNT, sum, ns, out);
}

/* --- all of them --- */

struct series {
    sw_summary_step *steps;
    size_t count, room;
};

static sw_summary_step *next_place(struct series *series)
{
    if (series->count == series->room) {
        const size_t room = series->room ? series->room * 2 : 1024;
        sw_summary_step *grown = sw__realloc(series->steps, room, sizeof *grown);
        if (!grown) {
            return NULL;
        }
        series->steps = grown;
        series->room = room;
    }
    return &series->steps[series->count++];
}

sw_step_io sw__step_io(const sw_record_step *record)
{
    const sw_step_io *io = record->usage_steps ? sw_step_get_io(record) : NULL;
    return io ? *io : (sw_step_io){SW_UNKNOWN, SW_UNKNOWN, SW_UNKNOWN, SW_UNKNOWN};
}

static void fill_step(sw_summary_step *step, const sw_record_step *record,
                      const sw_event *event, bool early, const sw_summary_step *before)
{
    const bool used = record->usage_steps > 0;
    *step = (sw_summary_step){
        .number = record->number,
        .begin_ns = event->begin_ns,
        .end_ns = event->end_ns > event->begin_ns ? event->end_ns : event->begin_ns,
        .epoch = record->epoch,
        .complete = !(record->head.flags & (SW_STEP_INCOMPLETE | SW_RECORD_CUT)),
        .epoch_first =
            record->epoch != UINT32_MAX && (!before || before->epoch != record->epoch),
        .brief = (record->head.flags & SW_STEP_BRIEF) != 0,
        .events = (record->head.flags & SW_STEP_EVENTS) != 0,
        .usage_steps = record->usage_steps,
        .cpu_ns = used ? record->cpu_ns : SW_UNKNOWN,
        .run_delay_ns = used ? record->run_delay_ns : SW_UNKNOWN,
        .involuntary = used ? record->involuntary : 0,
        .minor_faults = used ? record->minor_faults : 0,
        .resident_bytes = record->resident_bytes ? record->resident_bytes : SW_UNKNOWN,
        .anonymous_bytes = record->resident_bytes ? record->anonymous_bytes : SW_UNKNOWN,
        .io = sw__step_io(record),
    };
    step->warmup =
        (record->head.flags & SW_STEP_WARMUP) != 0 || (early && step->complete);
    sw__step_phases(record, step->end_ns - step->begin_ns, step->phase_ns);
}

static int read_series(const sw_summary *summary, struct series *series)
{
    const sw_trace *trace = sw__summary_trace(summary, summary->step_trace);
    struct sw__step_reader reader;
    sw__steps_open(&reader, trace, summary->step_lane);
    sw_event event;
    const sw_record_step *record;
    int error = SW_OK;
    while (reader.cursor && !error &&
           (record = sw__steps_next(&reader, &event)) != NULL) {
        sw_summary_step *step = next_place(series);
        if (!step) {
            error = SW_ENOMEM;
            break;
        }
        const size_t place = series->count - 1;
        fill_step(step, record, &event, place < summary->warmup_end,
                  place ? step - 1 : NULL);
    }
    sw__steps_close(&reader);
    return error;
}

/* --- validation and checkpoints between steps --- */

/* The gap before the first step, those between steps, and that after the last. A gap in which steps are missing is empty:
 * nobody knows to which of them belongs what is in it. */
static void find_gaps(const sw_trace *trace, const sw_trace_lane *lane,
                      const struct series *series, struct sw__gap *gaps, bool *whole)
{
    const uint64_t end =
        lane->step_open ? lane->step_open_begin_ns : sw_trace_get_info(trace)->end_ns;
    *whole = true;
    for (size_t i = 0; i <= series->count; i++) {
        const sw_summary_step *step = &series->steps[i];
        const bool skips =
            i > 0 && i < series->count && step->number != step[-1].number + 1;
        gaps[i].begin = i ? step[-1].end_ns : 0;
        gaps[i].end = i < series->count ? step->begin_ns : end;
        if (gaps[i].end < gaps[i].begin || skips) {
            gaps[i].end = gaps[i].begin;
        }
        *whole = *whole && !skips;
    }
}

static int by_room(const void *left, const void *right)
{
    const struct sw__gap *a = *(const struct sw__gap *const *)left;
    const struct sw__gap *b = *(const struct sw__gap *const *)right;
    const uint64_t x = a->end - a->begin;
    const uint64_t y = b->end - b->begin;
    return x != y ? (x < y ? 1 : -1) : (a > b) - (a < b);
}

/* Of some of it the spans were given up, and with them where it was: it goes to the longest gaps between steps, for it makes
 * them long, and then to the end. */
static int place_rest(struct sw__gap *gaps, size_t count, const uint64_t rest[SW__ASIDES])
{
    struct sw__gap **longest = sw__alloc_zero(count, sizeof *longest);
    if (!longest) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        longest[i] = &gaps[i];
    }
    if (count > 2) {
        qsort(longest, count - 1, sizeof *longest, by_room);
    }
    for (unsigned kind = 0; kind < SW__ASIDES; kind++) {
        uint64_t left = rest[kind];
        for (size_t i = 0; i < count && left > 0; i++) {
            struct sw__gap *gap = longest[i];
            const uint64_t taken = sw__add(gap->aside[0], gap->aside[1]);
            const uint64_t room = sw__sub(gap->end - gap->begin, taken);
            const uint64_t here = room < left ? room : left;
            gap->aside[kind] = sw__add(gap->aside[kind], here);
            left -= here;
        }
    }
    sw__free(longest);
    return SW_OK;
}

/* What of it lies neither within steps nor where spans say. */
static bool find_rest(const struct sw__aside *aside, const struct series *series,
                      const struct sw__gap *gaps, uint64_t rest[SW__ASIDES])
{
    static const enum sw_phase phases[SW__ASIDES] = {SW_PHASE_VALIDATION,
                                                     SW_PHASE_CHECKPOINT};
    for (unsigned kind = 0; kind < SW__ASIDES; kind++) {
        /* Sums of ticks and differences of moments are rounded apart. */
        uint64_t known = 1000 + 2 * (uint64_t)series->count;
        for (size_t i = 0; i < series->count; i++) {
            known = sw__add(known, series->steps[i].phase_ns[phases[kind]]);
        }
        for (size_t i = 0; i <= series->count; i++) {
            known = sw__add(known, gaps[i].aside[kind]);
        }
        rest[kind] = sw__sub(aside->ns[kind], known);
    }
    return rest[0] > 0 || rest[1] > 0;
}

static int place_asides(const sw_summary *summary, struct series *series)
{
    const sw_trace *trace = sw__summary_trace(summary, summary->step_trace);
    struct sw__aside aside;
    struct sw__gap *gaps = sw__alloc_zero(series->count + 1, sizeof *gaps);
    uint64_t rest[SW__ASIDES];
    bool whole;
    int error = sw__aside_find(&aside, trace, summary->step_lane);
    error = gaps ? error : SW_ENOMEM;
    if (!error && find_rest(&aside, series, gaps, rest)) {
        find_gaps(trace, summary->step_lane, series, gaps, &whole);
        sw__aside_place(&aside, gaps, series->count + 1);
        if (find_rest(&aside, series, gaps, rest) && whole) {
            error = place_rest(gaps + 1, series->count, rest);
        }
        for (size_t i = 0; i < series->count; i++) {
            series->steps[i].validation_after_ns =
                gaps[i + 1].aside[SW__ASIDE_VALIDATION];
            series->steps[i].checkpoint_after_ns =
                gaps[i + 1].aside[SW__ASIDE_CHECKPOINT];
        }
    }
    sw__aside_free(&aside);
    sw__free(gaps);
    return error;
}

int sw_summary_step_series(const sw_summary *summary, sw_summary_step **steps,
                           size_t *count, sw_error_info *info)
{
    struct series series = {0};
    int error = SW_OK;
    *steps = NULL;
    *count = 0;
    if (summary->has_steps) {
        error = read_series(summary, &series);
    }
    if (!error && series.count > 0) {
        error = place_asides(summary, &series);
    }
    if (error) {
        sw__free(series.steps);
        return sw_error_set(info, error, "The steps could not be read: %s.",
                            sw_error_text(error));
    }
    *steps = series.steps;
    *count = series.count;
    return SW_OK;
}

void sw_summary_steps_free(sw_summary_step *steps)
{
    sw__free(steps);
}
