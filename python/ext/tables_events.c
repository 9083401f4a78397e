/* Tables whose rows are events of the trace: spans, counters, marks, samples. Times are ns of CLOCK_MONOTONIC. */
#include "table.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static uint64_t length_of(const sw_event *event)
{
    return event->end_ns > event->begin_ns ? event->end_ns - event->begin_ns : 0;
}

static bool has(const sw_event *event, unsigned flag)
{
    return (event->record->flags & flag) != 0;
}

/* --- Spans ------------------------------------------------------------------------ */

static const core_column span_columns[] = {
    {"name", CORE_NAME, true},
    {"parent", CORE_NAME, true},
    {"phase", CORE_NAME, true},
    {"begin_ns", CORE_INTEGER, false},
    {"duration_ns", CORE_INTEGER, false},
    {"depth", CORE_INTEGER, false},
    {"thread", CORE_NAME, true},
    {"pid", CORE_INTEGER, false},
    {"domain", CORE_NAME, true},
    {"error", CORE_TRUTH, false},
    {"unnested", CORE_TRUTH, false},
    {"cut", CORE_TRUTH, false},
    {"part", CORE_TRUTH, false},
};

static void span_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_span *span = (const sw_record_span *)(const void *)event->record;
    const sw_trace *trace = core_reader_trace(reader, event);
    const sw_trace_name *name = sw_trace_get_name(trace, span->head.id);
    core_put_bytes(cell++, core_name_of(trace, span->head.id));
    core_put_bytes(
        cell++, core_parent_of(reader, event, event->thread, span->domain, span->node));
    core_put_text(cell++, name ? sw_phase_name(name->phase) : NULL);
    core_put_count(cell++, event->begin_ns);
    core_put_count(cell++, length_of(event));
    core_put_count(cell++, span->depth);
    core_put_text(cell++, core_thread_of(trace, event->thread));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, span->domain));
    core_put_truth(cell++, has(event, SW_RECORD_ERROR));
    core_put_truth(cell++, has(event, SW_RECORD_UNNESTED));
    core_put_truth(cell++, has(event, SW_RECORD_CUT));
    core_put_truth(cell++, has(event, SW_RECORD_PART));
}

const core_table_kind core_table_spans = {
    .name = "spans",
    .columns = span_columns,
    .column_count = COUNT(span_columns),
    .events = 1u << SW_RECORD_SPAN,
    .from_event = span_row,
};

/* --- Counters and marks ----------------------------------------------------------- */

static const core_column counter_columns[] = {
    {"name", CORE_NAME, true},   {"time_ns", CORE_INTEGER, false},
    {"value", CORE_REAL, false}, {"section", CORE_NAME, true},
    {"thread", CORE_NAME, true}, {"pid", CORE_INTEGER, false},
    {"domain", CORE_NAME, true},
};

static void counter_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_counter *counter =
        (const sw_record_counter *)(const void *)event->record;
    const sw_trace *trace = core_reader_trace(reader, event);
    core_put_bytes(cell++, core_name_of(trace, counter->head.id));
    core_put_count(cell++, event->begin_ns);
    core_put_real(cell++, counter->value);
    core_put_bytes(cell++, core_section_of(reader, event, event->thread, counter->domain,
                                           counter->node));
    core_put_text(cell++, core_thread_of(trace, event->thread));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, counter->domain));
}

const core_table_kind core_table_counters = {
    .name = "counters",
    .columns = counter_columns,
    .column_count = COUNT(counter_columns),
    .events = 1u << SW_RECORD_COUNTER,
    .from_event = counter_row,
};

static const core_column mark_columns[] = {
    {"text", CORE_NAME, true},    {"time_ns", CORE_INTEGER, false},
    {"section", CORE_NAME, true}, {"thread", CORE_NAME, true},
    {"pid", CORE_INTEGER, false}, {"domain", CORE_NAME, true},
};

static void mark_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_mark *mark = (const sw_record_mark *)(const void *)event->record;
    const sw_trace *trace = core_reader_trace(reader, event);
    core_put_bytes(cell++, core_name_of(trace, mark->head.id));
    core_put_count(cell++, event->begin_ns);
    core_put_bytes(
        cell++, core_section_of(reader, event, event->thread, mark->domain, mark->node));
    core_put_text(cell++, core_thread_of(trace, event->thread));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, mark->domain));
}

const core_table_kind core_table_marks = {
    .name = "marks",
    .columns = mark_columns,
    .column_count = COUNT(mark_columns),
    .events = 1u << SW_RECORD_MARK,
    .from_event = mark_row,
};

/* --- Samples ---------------------------------------------------------------------- */

static const core_column sample_columns[] = {
    {"time_ns", CORE_INTEGER, false}, {"thread", CORE_NAME, true},
    {"phase", CORE_NAME, true},       {"section", CORE_NAME, true},
    {"state", CORE_TEXT, true},       {"in_call", CORE_TRUTH, false},
    {"leaf_only", CORE_TRUTH, false}, {"outer_only", CORE_TRUTH, false},
    {"name", CORE_NAME, true},        {"file", CORE_NAME, true},
    {"line", CORE_INTEGER, true},     {"depth", CORE_INTEGER, false},
    {"stack", CORE_TEXT, true},       {"step", CORE_INTEGER, true},
    {"pid", CORE_INTEGER, false},     {"domain", CORE_NAME, true},
};

/* Steps of the run, by trace, thread, domain and end. A loop may turn out to train only after some of its steps, so a look
 * at a stack cannot know its step; who reads can. */
struct sampled_step {
    uint32_t trace, thread, domain;
    uint64_t begin_ns, end_ns, number;
};

struct sampled_steps {
    size_t count, room;
    struct sampled_step *list;
};

static void sampled_discard(void *made)
{
    struct sampled_steps *steps = made;
    free(steps->list);
    free(steps);
}

static int sampled_order(const void *a, const void *b)
{
    const struct sampled_step *x = a, *y = b;
    if (x->trace != y->trace) {
        return x->trace < y->trace ? -1 : 1;
    }
    if (x->thread != y->thread) {
        return x->thread < y->thread ? -1 : 1;
    }
    if (x->domain != y->domain) {
        return x->domain < y->domain ? -1 : 1;
    }
    return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int sampled_add(struct sampled_steps *steps, const sw_event *event)
{
    const sw_record_step *step = (const sw_record_step *)(const void *)event->record;
    if (steps->count == steps->room) {
        const size_t room = steps->room ? steps->room * 2 : 1024;
        struct sampled_step *more = realloc(steps->list, room * sizeof *more);
        if (!more) {
            return SW_ENOMEM;
        }
        steps->list = more;
        steps->room = room;
    }
    steps->list[steps->count++] = (struct sampled_step){.trace = event->trace,
                                                        .thread = event->thread,
                                                        .domain = step->domain,
                                                        .begin_ns = event->begin_ns,
                                                        .end_ns = event->end_ns,
                                                        .number = step->number};
    return SW_OK;
}

static int sampled_prepare(core_source *source, void **made, sw_error_info *info)
{
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_STEP, .steps = true};
    struct sampled_steps *steps = calloc(1, sizeof *steps);
    sw_cursor *cursor = NULL;
    if (!steps) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    int result =
        sw_cursor_open(&cursor, source->traces, source->trace_count, &filter, info);
    sw_event event;
    while (result == SW_OK && sw_cursor_next(cursor, &event) == SW_OK) {
        if (sampled_add(steps, &event) != SW_OK) {
            result = sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
        }
    }
    sw_cursor_free(cursor);
    if (result != SW_OK) {
        sampled_discard(steps);
        return result;
    }
    if (steps->count) {
        qsort(steps->list, steps->count, sizeof *steps->list, sampled_order);
    }
    *made = steps;
    return SW_OK;
}

/* The number of the step that a thread was in, SW_UNKNOWN outside of steps. */
static uint64_t sampled_step_of(const core_reader *reader, const sw_event *event,
                                const sw_record_sample *sample)
{
    const struct sampled_steps *steps = reader->source->made[CORE_TABLE_SAMPLES];
    const struct sampled_step at = {.trace = event->trace,
                                    .thread = sample->thread,
                                    .domain = sample->domain,
                                    .end_ns = event->begin_ns};
    size_t low = 0, high = steps->count;
    while (low < high) { /* the first that has not ended then */
        const size_t middle = low + (high - low) / 2;
        if (sampled_order(&steps->list[middle], &at) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == steps->count) {
        return SW_UNKNOWN;
    }
    const struct sampled_step *found = &steps->list[low];
    const bool inside = found->trace == at.trace && found->thread == at.thread &&
                        found->domain == at.domain && found->begin_ns <= at.end_ns;
    return inside ? found->number : SW_UNKNOWN;
}

/* The name of the function that a frame runs, as qualified as it is known. */
static core_bytes function_of(const sw_trace *trace, const sw_record_frame *frame)
{
    const sw_row *code = sw_trace_get_row(trace, SW_TABLE_CODE, frame->code);
    core_bytes name = core_name_of(trace, code ? code->key[1] : 0);
    return name.data ? name : core_name_of(trace, code ? code->key[3] : 0);
}

/* "outermost;…;leaf", as collapsed stacks are written. */
static core_bytes stack_of(core_reader *reader, const sw_trace *trace,
                           const sw_record_frame *frames, size_t depth)
{
    static const core_bytes unknown = {"?", 1};
    size_t length = 0;
    for (size_t i = 0; i < depth; i++) {
        const core_bytes name = function_of(trace, &frames[i]);
        length += (name.data ? name.length : unknown.length) + 1;
    }
    char *text = length ? core_reader_take(reader, length) : NULL;
    if (!text) {
        return (core_bytes){NULL, 0};
    }
    char *at = text;
    for (size_t i = depth; i-- > 0;) {
        core_bytes name = function_of(trace, &frames[i]);
        name = name.data ? name : unknown;
        memcpy(at, name.data, name.length);
        at += name.length;
        *at++ = ';';
    }
    return (core_bytes){text, length - 1};
}

static void sample_row(core_reader *reader, const sw_event *event, core_cell *cell)
{
    const sw_record_sample *sample =
        (const sw_record_sample *)(const void *)event->record;
    /* The cursor has made sure that all of them lie within the record. */
    const sw_record_frame *frames = (const sw_record_frame *)(const void *)(sample + 1);
    const sw_trace *trace = core_reader_trace(reader, event);
    const sw_row *code =
        sample->depth ? sw_trace_get_row(trace, SW_TABLE_CODE, frames[0].code) : NULL;
    char *state = sample->state ? core_reader_take(reader, 1) : NULL;
    if (state) {
        *state = (char)sample->state;
    }
    core_put_count(cell++, event->begin_ns);
    core_put_text(cell++, core_thread_of(trace, sample->thread));
    core_put_text(cell++, sw_phase_name(sample->phase));
    core_put_bytes(cell++, core_section_of(reader, event, sample->thread, sample->domain,
                                           sample->node));
    core_put_bytes(cell++, (core_bytes){state, 1});
    core_put_truth(cell++, sample->in_call != 0);
    core_put_truth(cell++, sample->leaf_only == 1);
    core_put_truth(cell++, sample->leaf_only == 2);
    core_put_bytes(cell++, sample->depth ? function_of(trace, &frames[0])
                                         : (core_bytes){NULL, 0});
    core_put_bytes(cell++, core_name_of(trace, code ? code->key[0] : 0));
    core_put_integer(cell++,
                     sample->depth && frames[0].line ? frames[0].line : SW_UNKNOWN);
    core_put_count(cell++, sample->depth);
    core_put_bytes(cell++, stack_of(reader, trace, frames, sample->depth));
    core_put_integer(cell++, sampled_step_of(reader, event, sample));
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, sample->domain));
}

const core_table_kind core_table_samples = {
    .name = "samples",
    .columns = sample_columns,
    .column_count = COUNT(sample_columns),
    .events = 1u << SW_RECORD_SAMPLE,
    .from_event = sample_row,
    .prepare = sampled_prepare,
    .discard = sampled_discard,
};
