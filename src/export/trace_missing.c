/* Traces: what the document says about itself, and above all what is not in it. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/version.h>

#include "export/json_put.h"
#include "export/trace_export.h"

static void say(sw_writer *w, const char *format, ...) SW_PRINTF(2, 3);

static void say(sw_writer *w, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    sw_json_string(w, text);
}

/* Events that were recorded and are not kept, or never were. */
static void say_lost(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    uint64_t dropped = 0, overwritten = 0;
    bool totals = false, killed = false, damaged = false;
    for (size_t i = 0; i < it->count; i++) {
        const sw_trace_info *info = sw_trace_get_info(it->traces[i]);
        dropped += info->dropped;
        overwritten += info->overwritten;
        totals = totals || !info->events;
        killed = killed || info->end == SW_TRACE_KILLED;
        damaged = damaged || info->damaged || info->hot_missing;
    }
    if (totals) {
        say(w, "A process recorded totals only: it has no single events.");
    }
    if (overwritten) {
        say(w,
            "%" PRIu64 " events were given up for newer ones, as the policy says; "
            "totals in the report have all.",
            overwritten);
    }
    if (dropped) {
        say(w, "%" PRIu64 " events were lost for want of room.", dropped);
    }
    if (it->counts.bare_steps) {
        say(w,
            "%" PRIu64 " of %" PRIu64
            " steps have no sections here: they have none, or only totals were kept.",
            it->counts.bare_steps, it->counts.steps);
    }
    if (it->counts.unfinished) {
        say(w,
            "%" PRIu64 " sections and steps had not ended; they are marked unfinished "
            "and end with the last sign of life.",
            it->counts.unfinished);
    }
    if (killed) {
        say(w, "A process was killed before it closed its file.");
    }
    if (damaged) {
        say(w, "A file is damaged or incomplete.");
    }
}

static bool has_rows(const struct sw__trace_export *it, enum sw_table table)
{
    for (size_t i = 0; i < it->count; i++) {
        if (sw_trace_row_count(it->traces[i], table)) {
            return true;
        }
    }
    return false;
}

/* What is known as totals, or not at all. */
static void say_not_recorded(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    if (!it->counts.operators && has_rows(it, SW_TABLE_OPERATOR)) {
        say(w, "Operators were recorded in other steps than these.");
    } else if (!it->counts.operators) {
        say(w, "Operators of the framework were not recorded ('stepwatch run "
               "--operators' does).");
    }
    if (!it->counts.gpu) {
        say(w, "Work of GPUs was not recorded.");
    }
    if (has_rows(it, SW_TABLE_STAGE)) {
        say(w, "Stages of the data loader other than fetching and sending are totals.");
    }
    if (has_rows(it, SW_TABLE_FUNCTION)) {
        say(w, "Function profiles are totals (format pstats).");
    }
    if (has_rows(it, SW_TABLE_STACK) && !it->options->samples) {
        say(w, "Samples were not asked for (option samples; formats collapsed and "
               "speedscope have their totals).");
    }
}

void sw__trace_put_about(struct sw__trace_export *it)
{
    sw_writer *w = it->writer;
    const sw_trace_options *options = it->options;
    sw_json_key(w, "stepwatch");
    sw_json_object_begin(w);
    put_string(w, "version", SW_VERSION_STRING);
    put_string(w, "run", sw_run_path(it->run));
    put_uint(w, "events", it->counts.events);
    put_uint(w, "steps", it->counts.steps);
    if (options->some_steps) {
        put_uint(w, "first_step", options->first_step);
        put_uint(w, "last_step", options->last_step);
    }
    sw_json_key(w, "missing");
    sw_json_array_begin(w);
    say_lost(it);
    say_not_recorded(it);
    sw_json_array_end(w);
    sw_json_object_end(w);
}
