/* A summary from its parts: what the run was, its sections, its steps, what recording cost and what
 * was lost. Each part has a file of its own. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "analyze/io_calls.h"
#include "analyze/steps.h"
#include "analyze/summary.h"

void *sw__summary_take(sw_summary *summary, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count ? count : 1, size, &bytes)) {
        return NULL;
    }
    void *memory = sw__arena_take(summary->arena, bytes, _Alignof(max_align_t));
    if (memory) {
        memset(memory, 0, bytes);
    }
    return memory;
}

const char *sw__summary_copy(sw_summary *summary, const char *text, size_t length)
{
    return sw__arena_copy(summary->arena, text, length);
}

static const char *format_copy(sw_summary *summary, const char *format, va_list arguments)
{
    char text[1024];
    int length = vsnprintf(text, sizeof text, format, arguments);
    if (length < 0) {
        return NULL;
    }
    size_t used = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    return sw__arena_copy(summary->arena, text, used);
}

const char *sw__summary_format(sw_summary *summary, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_copy(summary, format, arguments);
    va_end(arguments);
    return text;
}

static int append_note(sw_summary *summary, const char *text)
{
    struct sw__note *note = sw__summary_take(summary, 1, sizeof *note);
    if (!note || !text) {
        return SW_ENOMEM;
    }
    note->text = text;
    if (summary->last_note) {
        summary->last_note->next = note;
    } else {
        summary->first_note = note;
    }
    summary->last_note = note;
    return SW_OK;
}

int sw__summary_note(sw_summary *summary, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const char *text = format_copy(summary, format, arguments);
    va_end(arguments);
    return append_note(summary, text);
}

int sw_summary_add_note(sw_summary *summary, const char *text)
{
    return append_note(summary, sw__arena_copy(summary->arena, text, strlen(text)));
}

const sw_trace *sw__summary_trace(const sw_summary *summary, size_t index)
{
    return sw_run_trace(summary->source, index);
}

const char *sw__thread_name(const sw_trace *trace, uint32_t thread)
{
    size_t count = sw_trace_thread_count(trace);
    for (size_t i = thread < count ? thread : 0, tried = 0; tried < count; tried++) {
        const sw_trace_thread *found = sw_trace_get_thread(trace, i);
        if (found && found->index == thread) {
            return found->name ? found->name : "";
        }
        i = i + 1 < count ? i + 1 : 0;
    }
    return "";
}

const char *sw__domain_name(const sw_trace *trace, uint32_t domain)
{
    const char *name = sw_trace_domain_name(trace, domain);
    return name ? name : "";
}

int sw_summary_create(sw_summary **out, const sw_run *run, sw_error_info *info)
{
    *out = NULL;
    sw_summary *summary = sw__alloc_zero(1, sizeof *summary);
    if (!summary) {
        return sw_error_set(info, SW_ENOMEM, "Out of memory.");
    }
    summary->arena = sw__arena_create(0);
    summary->source = run;
    summary->traces = sw_run_count(run);

    int (*const parts[])(sw_summary *) = {
        sw__summary_run,      sw__summary_sections, sw__summary_steps,
        sw__summary_overhead, sw__summary_losses,   sw__summary_samples,
        sw__summary_profiles, sw__summary_training, sw__summary_monitors,
        sw__summary_gpus,     sw__summary_io,       sw__summary_memory};
    int error = summary->arena ? SW_OK : SW_ENOMEM;
    for (size_t i = 0; !error && i < sizeof parts / sizeof parts[0]; i++) {
        error = parts[i](summary);
    }
    if (error) {
        sw_summary_free(summary);
        return sw_error_set(info, error, "The run could not be summarised: %s.",
                            sw_error_text(error));
    }
    *out = summary;
    return SW_OK;
}

void sw_summary_free(sw_summary *summary)
{
    if (summary) {
        sw_stacks_free(summary->stacks);
        sw_functions_free(summary->functions);
        sw_lines_free(summary->lines);
        sw__gpus_free(summary->gpus);
        sw_training_free(summary->training);
        for (size_t i = 0; i < summary->monitor_count; i++) {
            sw_monitor_free(summary->monitors[i]);
        }
        sw__io_free(summary->io);
        sw__free(summary->io_steps.list);
        sw__arena_free(summary->arena);
        sw__free(summary);
    }
}

const sw_summary_run *sw_summary_get_run(const sw_summary *summary)
{
    return &summary->run;
}

bool sw_summary_framework(const sw_summary *summary, size_t index, const char **name,
                          const char **version)
{
    if (index >= summary->framework_count) {
        return false;
    }
    *name = summary->frameworks[index].name;
    *version = summary->frameworks[index].version;
    return true;
}

size_t sw_summary_process_count(const sw_summary *summary)
{
    return summary->traces;
}

const sw_summary_process *sw_summary_get_process(const sw_summary *summary, size_t index)
{
    return index < summary->traces ? &summary->processes[index] : NULL;
}

const sw_summary_section *sw_summary_sections(const sw_summary *summary,
                                              enum sw_summary_rows rows, size_t *count)
{
    const struct sw__row_list *list = rows == SW_ROWS_FLAT       ? &summary->flat
                                      : rows == SW_ROWS_FAMILIES ? &summary->families
                                                                 : &summary->each;
    *count = list->count;
    return list->rows;
}

size_t sw_summary_counter_count(const sw_summary *summary)
{
    return summary->counter_count;
}

const sw_summary_counter *sw_summary_get_counter(const sw_summary *summary, size_t index)
{
    return index < summary->counter_count ? &summary->counters[index] : NULL;
}

const sw_summary_steps *sw_summary_get_steps(const sw_summary *summary)
{
    return summary->has_steps ? &summary->steps : NULL;
}

size_t sw_summary_step_thread_count(const sw_summary *summary)
{
    return summary->step_thread_count;
}

const sw_summary_step_thread *sw_summary_get_step_thread(const sw_summary *summary,
                                                         size_t index)
{
    return index < summary->step_thread_count ? &summary->step_threads[index] : NULL;
}

size_t sw_summary_epoch_count(const sw_summary *summary)
{
    return summary->epoch_count;
}

const sw_summary_epoch *sw_summary_get_epoch(const sw_summary *summary, size_t index)
{
    return index < summary->epoch_count ? &summary->epochs[index] : NULL;
}

size_t sw_summary_part_count(const sw_summary *summary)
{
    return summary->part_count;
}

const sw_summary_part *sw_summary_get_part(const sw_summary *summary, size_t index)
{
    return index < summary->part_count ? &summary->parts[index] : NULL;
}

const sw_summary_overhead *sw_summary_get_overhead(const sw_summary *summary)
{
    return &summary->overhead;
}

const sw_stacks *sw_summary_stacks(const sw_summary *summary)
{
    return summary->stacks;
}

const sw_functions *sw_summary_functions(const sw_summary *summary)
{
    return summary->functions;
}

sw_lines *sw_summary_lines(const sw_summary *summary)
{
    return summary->lines;
}

const char *sw_summary_note(const sw_summary *summary, size_t index)
{
    const struct sw__note *note = summary->first_note;
    while (note && index > 0) {
        note = note->next;
        index--;
    }
    return note ? note->text : NULL;
}
