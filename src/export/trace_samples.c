/* Traces: looks of the sampler, as moments of the thread that it looked at. */
#include "export/json_put.h"
#include "export/trace_export.h"

/* Frames of a stack that are shown; what called them is left out, and said so. */
#define FRAMES_MOST 64u

static const sw_row *code_of(const sw_trace *trace, uint32_t code)
{
    return sw_trace_get_row(trace, SW_TABLE_CODE, code);
}

/* The function's full name, or the short one. */
static struct sw__slice function_of(const sw_trace *trace, uint32_t code)
{
    const sw_row *row = code_of(trace, code);
    return sw__slice_of_name(trace, !row ? 0 : row->key[1] ? row->key[1] : row->key[3]);
}

/* Outermost first, as a reader expects it. */
static void put_stack(sw_writer *w, const sw_trace *trace, const sw_record_frame *frames,
                      size_t depth)
{
    const size_t shown = depth < FRAMES_MOST ? depth : FRAMES_MOST;
    sw_json_key(w, "stack");
    sw_json_array_begin(w);
    if (shown < depth) {
        sw_json_string(w, "(more)");
    }
    for (size_t i = shown; i-- > 0;) {
        const struct sw__slice name = function_of(trace, frames[i].code);
        sw_json_string_n(w, name.name, name.length);
    }
    sw_json_array_end(w);
}

void sw__trace_sample(struct sw__trace_export *it, struct sw__trace_process *process,
                      const sw_event *event)
{
    const sw_record_sample *sample =
        (const sw_record_sample *)(const void *)event->record;
    const sw_record_frame *frames = (const sw_record_frame *)(const void *)(sample + 1);
    struct sw__track *track = sw__track_of_thread(process, sample->thread);
    sw_writer *w = it->writer;
    if (!track || sample->depth == 0) {
        return;
    }
    struct sw__slice slice = function_of(process->trace, frames[0].code);
    slice.category = it->kineto ? "cpu_instant_event" : "sample";
    slice.pid = track->pid;
    slice.tid = track->tid;
    slice.begin_ns = event->begin_ns;
    sw__track_name(it, process, track);
    sw__moment_begin(it, process, "i", &slice);
    put_string(w, "s", "t");
    sw__event_args(it);
    const sw_row *code = code_of(process->trace, frames[0].code);
    if (code && code->key[0]) {
        const struct sw__slice file = sw__slice_of_name(process->trace, code->key[0]);
        sw_json_key(w, "file");
        sw_json_string_n(w, file.name, file.length);
    }
    if (frames[0].line) {
        put_uint(w, "line", frames[0].line);
    }
    if (sample->state) {
        put_bool(w, "running", sample->state == 'R');
    }
    put_stack(w, process->trace, frames, sample->depth);
    sw__event_end(it, true);
}
