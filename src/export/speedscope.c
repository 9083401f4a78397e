/* Sampled stacks as speedscope reads them: one document with the frames, and for each thread its stacks with weights. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <stepwatch/version.h>

#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/json_put.h"
#include "export/stack_view.h"

#define SCHEMA "https://www.speedscope.app/file-format-schema.json"

static void put_frames(sw_writer *w, const sw_stacks *view)
{
    sw_json_key(w, "shared");
    sw_json_object_begin(w);
    sw_json_key(w, "frames");
    sw_json_array_begin(w);
    for (uint32_t i = 0; i < sw_stacks_frame_count(view); i++) {
        const sw_stack_frame *frame = sw_stacks_get_frame(view, i);
        const uint32_t line = frame->line ? frame->line : frame->first_line;
        sw_json_object_begin(w);
        put_string(w, "name", sw__stack_frame_name(frame));
        if (*frame->file) {
            put_string(w, "file", frame->file);
        }
        if (line) {
            put_uint(w, "line", line);
        }
        sw_json_object_end(w);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

static bool of_thread(const sw_stack *stack, const sw_stacks_thread *thread)
{
    return stack->tag->pid == thread->pid &&
           strcmp(stack->tag->thread, thread->thread) == 0;
}

static void put_profile(sw_writer *w, const sw_stacks *view,
                        const sw_stacks_thread *thread, uint32_t *frames)
{
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    double seconds = 0;
    while (sw_stacks_next(view, &cursor, &stack)) {
        seconds += of_thread(&stack, thread) ? stack.running_s : 0;
    }
    const bool timed = !isnan(seconds);
    const char *name = *thread->thread ? thread->thread : "(unnamed)";
    char title[512];
    snprintf(title, sizeof title, thread->pid ? "%s (pid %u)" : "%s", name, thread->pid);

    sw_json_object_begin(w);
    put_string(w, "type", "sampled");
    put_string(w, "name", title);
    put_string(w, "unit", timed ? "seconds" : "none");
    put_uint(w, "startValue", 0);
    put_double(w, "endValue", timed ? seconds : (double)thread->running);
    sw_json_key(w, "samples");
    sw_json_array_begin(w);
    cursor = (sw_stacks_cursor){0};
    while (sw_stacks_next(view, &cursor, &stack)) {
        if (of_thread(&stack, thread)) {
            const size_t depth =
                sw_stacks_frames(view, stack.id, frames, SW_STACKS_DEPTH + 1);
            sw_json_array_begin(w);
            for (size_t i = 0; i < depth; i++) {
                sw_json_uint(w, frames[i]);
            }
            sw_json_array_end(w);
        }
    }
    sw_json_array_end(w);
    sw_json_key(w, "weights");
    sw_json_array_begin(w);
    cursor = (sw_stacks_cursor){0};
    while (sw_stacks_next(view, &cursor, &stack)) {
        if (of_thread(&stack, thread)) {
            sw_json_double(w, timed ? stack.running_s : (double)stack.running);
        }
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
}

void sw_export_speedscope(sw_writer *writer, const sw_stacks *stacks,
                          const sw_stack_options *options)
{
    static const sw_stack_options usual;
    sw_writer *w = writer;
    sw_stacks *view;
    size_t count = 0;
    options = options ? options : &usual;
    uint32_t *frames = sw__alloc_zero(SW_STACKS_DEPTH + 1, sizeof *frames);
    int error = sw__stack_view(&view, stacks, options, true);
    sw_stacks_thread *threads = error ? NULL : sw_stacks_threads(view, &count);
    if (error || !threads || !frames) {
        sw__writer_fail(w, SW_ENOMEM, 0);
        count = 0;
    }
    sw_json_start(w, false);
    sw_json_object_begin(w);
    put_string(w, "$schema", SCHEMA);
    put_string(w, "exporter", "stepwatch " SW_VERSION_STRING);
    if (options->name) {
        put_string(w, "name", options->name);
    }
    put_uint(w, "activeProfileIndex", 0);
    if (view) {
        put_frames(w, view);
    }
    sw_json_key(w, "profiles");
    sw_json_array_begin(w);
    for (size_t i = 0; i < count; i++) {
        put_profile(w, view, &threads[i], frames);
    }
    sw_json_array_end(w);
    sw_json_object_end(w);
    sw_write_text(w, "\n");
    sw_stacks_release(threads);
    sw_stacks_free(view);
    sw__free(frames);
}
