/* Collapsed stacks, as flame graph tools read them: "root;child;leaf N". */
#include <string.h>

#include "base/memory.h"
#include "base/writer_internal.h"
#include "export/stack_view.h"

/* Text of a program, with nothing in it that ends a frame or a line. */
static void put_text(sw_writer *w, const char *text)
{
    while (*text) {
        const size_t plain = strcspn(text, ";");
        sw_write_visible(w, text, plain, 0, false);
        text += plain;
        if (*text) {
            sw_write_text(w, "\\x3b");
            text++;
        }
    }
}

static void put_frame(sw_writer *w, const sw_stack_frame *frame)
{
    put_text(w, sw__stack_frame_name(frame));
    if (*frame->file) {
        sw_write_text(w, " (");
        put_text(w, frame->file);
        if (frame->line) {
            sw_write_format(w, ":%u", frame->line);
        }
        sw_write_text(w, ")");
    }
}

void sw_export_collapsed(sw_writer *writer, const sw_stacks *stacks,
                         const sw_stack_options *options)
{
    static const sw_stack_options usual;
    sw_stacks *view;
    uint32_t *frames = sw__alloc_zero(SW_STACKS_DEPTH + 1, sizeof *frames);
    int error = sw__stack_view(&view, stacks, options ? options : &usual, false);
    error = frames ? error : SW_ENOMEM;
    if (error) {
        sw__writer_fail(writer, error, 0);
    }
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    while (sw__writer_is_good(writer) && sw_stacks_next(view, &cursor, &stack)) {
        const size_t depth =
            sw_stacks_frames(view, stack.id, frames, SW_STACKS_DEPTH + 1);
        for (size_t i = 0; i < depth; i++) {
            sw_write_text(writer, i ? ";" : "");
            put_frame(writer, sw_stacks_get_frame(view, frames[i]));
        }
        sw_write_format(writer, " %llu\n", (unsigned long long)stack.running);
    }
    sw_stacks_free(view);
    sw__free(frames);
}
