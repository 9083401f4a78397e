/* Tables whose rows are events of the trace: spans, counters, marks, samples. Times are ns of CLOCK_MONOTONIC. */
#include "table.h"

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
    {"stack", CORE_TEXT, true},       {"pid", CORE_INTEGER, false},
    {"domain", CORE_NAME, true},
};

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
    core_put_count(cell++, sw_trace_get_info(trace)->pid);
    core_put_text(cell++, sw_trace_domain_name(trace, sample->domain));
}

const core_table_kind core_table_samples = {
    .name = "samples",
    .columns = sample_columns,
    .column_count = COUNT(sample_columns),
    .events = 1u << SW_RECORD_SAMPLE,
    .from_event = sample_row,
};
