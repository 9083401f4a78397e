/* The source around the line of a frame, where it can still be read. */
#ifndef SW_ANALYZE_FRAME_SOURCE_H
#define SW_ANALYZE_FRAME_SOURCE_H

#include <stepwatch/stacks.h>

#include "analyze/source_loops.h"

struct sw__frame_source {
    char *text; /* the whole file; NULL: it could not be read, and the rest is 0 */
    size_t length;
    struct sw__source_line line; /* text NULL: the file has no such line (any more) */
    uint32_t loop;               /* line of the innermost loop around it, or 0 */
};

/* Reads it. The caller gives it to sw__frame_source_free, whatever is in it. */
struct sw__frame_source sw__frame_source(const sw_stack_frame *frame);
void sw__frame_source_free(struct sw__frame_source *source);

/* The line of the innermost loop around the frame's; 0: there is none, or it is not known. */
uint32_t sw__frame_loop(const sw_stack_frame *frame);

#endif
