/* The source around the line of a frame. */
#include "analyze/frame_source.h"

#include "analyze/line_profile.h"

struct sw__frame_source sw__frame_source(const sw_stack_frame *frame)
{
    struct sw__frame_source source = {.length = 0};
    source.text = sw__source_text(frame->file, &source.length);
    if (source.text) {
        sw__source_line_get(source.text, source.length, frame->line, &source.line);
        source.loop =
            sw__source_loop(source.text, source.length, frame->first_line, frame->line);
    }
    return source;
}

void sw__frame_source_free(struct sw__frame_source *source)
{
    sw__free(source->text);
    *source = (struct sw__frame_source){.length = 0};
}

uint32_t sw__frame_loop(const sw_stack_frame *frame)
{
    struct sw__frame_source source = sw__frame_source(frame);
    const uint32_t loop = source.loop;
    sw__frame_source_free(&source);
    return loop;
}
