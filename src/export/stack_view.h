/* Sampled stacks as they are to be written. */
#ifndef SW_EXPORT_STACK_VIEW_H
#define SW_EXPORT_STACK_VIEW_H

#include <stepwatch/export.h>

/* The same samples with the frames that `options` ask for, and equal ones put together; tags are told apart by process
 * and thread if `by_thread`, else not at all. Every sample is running. The caller frees it. 0 or SW_ENOMEM. */
int sw__stack_view(sw_stacks **out, const sw_stacks *stacks,
                   const sw_stack_options *options, bool by_thread);

/* What a frame is called: its name, or "(unknown)". */
const char *sw__stack_frame_name(const sw_stack_frame *frame);

#endif
