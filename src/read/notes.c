/* Notes: sentences about what could not be read, at most a screenful. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "read/trace_internal.h"

static void add(sw_trace *trace, const char *format, va_list arguments)
{
    char text[512];
    if (trace->note_count >= SW__READ_NOTES) {
        trace->notes_left_out++;
        return;
    }
    vsnprintf(text, sizeof text, format, arguments);
    const char *copy = sw__arena_copy(trace->arena, text, strlen(text));
    trace->notes[trace->note_count++] = copy ? copy : "Out of memory.";
}

void sw__trace_say(sw_trace *trace, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(trace, format, arguments);
    va_end(arguments);
}

void sw__trace_say_once(sw_trace *trace, bool *told, const char *text)
{
    if (!*told) {
        *told = true;
        sw__trace_say(trace, "%s", text);
    }
}

void sw__trace_damage(sw_trace *trace, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add(trace, format, arguments);
    va_end(arguments);
    trace->info.damaged = true;
}

const char *sw_trace_note(const sw_trace *trace, size_t index)
{
    if (index < trace->note_count) {
        return trace->notes[index];
    }
    if (index == trace->note_count && trace->notes_left_out) {
        return "More of the same is left out here.";
    }
    return NULL;
}
