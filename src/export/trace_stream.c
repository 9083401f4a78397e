/* Traces: from the records of a run to one document. */
#include <stdio.h>
#include <string.h>

#include "base/writer_internal.h"
#include "export/trace_export.h"

/* Looks of the monitor and sites are no moments of the program's own. */
#define KINDS                                                                            \
    (1u << SW_RECORD_SPAN | 1u << SW_RECORD_COUNTER | 1u << SW_RECORD_MARK |             \
     1u << SW_RECORD_STEP | 1u << SW_RECORD_BATCH | 1u << SW_RECORD_COMPILE |            \
     1u << SW_RECORD_GC | 1u << SW_RECORD_SYNC | 1u << SW_RECORD_XFER |                  \
     1u << SW_RECORD_COLLECTIVE | 1u << SW_RECORD_IO | 1u << SW_RECORD_MONITOR |         \
     1u << SW_RECORD_GPU | 1u << SW_RECORD_ALLOC)

static int write_events(struct sw__trace_export *it, sw_error_info *info)
{
    sw_cursor_filter filter = {.kinds = KINDS, .steps = true};
    filter.kinds |= it->options->samples ? 1u << SW_RECORD_SAMPLE : 0;
    if (!it->shifted) {
        filter.from_ns = it->from_ns;
        filter.to_ns = it->to_ns == UINT64_MAX ? 0 : it->to_ns;
    }
    sw_cursor *cursor;
    sw_event event;
    int error = sw_cursor_open(&cursor, it->traces, it->count, &filter, info);
    while (!error && !it->error && sw__writer_is_good(it->writer) &&
           (error = sw_cursor_next(cursor, &event)) == SW_OK) {
        sw__trace_event(it, &event);
    }
    sw_cursor_free(cursor);
    error = error == SW_EEND ? SW_OK : error;
    return error ? error : it->error;
}

static int nothing(const struct sw__trace_export *it, sw_error_info *info)
{
    const bool window =
        it->options->some_steps || it->options->begin_ns || it->options->end_ns;
    return sw_error_set(info, SW_ENOTFOUND,
                        "%.300s holds no single events%s; only totals were recorded.",
                        sw_run_path(it->run), window ? " of that time" : "");
}

int sw_export_trace(sw_writer *writer, const sw_run *run, const sw_trace_options *options,
                    sw_error_info *info)
{
    static const sw_trace_options usual;
    struct sw__trace_export it = {
        .writer = writer, .run = run, .options = options ? options : &usual};
    it.kineto = it.options->format == SW_TRACE_KINETO;
    int error = sw__trace_choose(&it, info);
    error = error ? error : sw__trace_tracks(&it);
    error = error ? error : sw__trace_window(&it, info);
    for (size_t i = 0; i < it.count && !error && !it.backend[0]; i++) {
        const char *backend = sw_trace_fact(it.traces[i], "distributed.backend");
        if (backend && *backend) {
            snprintf(it.backend, sizeof it.backend, "%.20s:", backend);
        }
    }
    error = error ? error : write_events(&it, info);
    if (!error) {
        sw__trace_unfinished(&it);
        error = it.error;
    }
    if (!error && it.begun) {
        sw__trace_end(&it);
    } else if (!error) {
        error = nothing(&it, info);
    }
    sw__trace_flows_free(&it);
    sw__trace_tracks_free(&it);
    if (error == SW_ENOMEM) {
        sw__writer_fail(writer, error, 0);
        sw_error_set(info, error, "%s", sw_error_text(error));
    }
    return error;
}
