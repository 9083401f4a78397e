/* Sampled stacks as they are to be written: with what the options ask for as frames. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "export/stack_view.h"

/* Frames that come on top of those of the stack: thread, section, "(deeper)", "(waiting)". */
#define EXTRA 4

struct view {
    sw_stacks *to;
    const sw_stacks *from;
    const sw_stack_options *options;
    bool by_thread;
    sw_stack_frame *frames;
    uint32_t *numbers;
};

const char *sw__stack_frame_name(const sw_stack_frame *frame)
{
    return *frame->name ? frame->name : "(unknown)";
}

static int add(struct view *view, size_t depth, const sw_stack *stack, uint64_t samples,
               double seconds)
{
    const sw_stack_tag tag = {.thread = view->by_thread ? stack->tag->thread : "",
                              .phase = SW_PHASE_INHERIT,
                              .pid = view->by_thread ? stack->tag->pid : 0};
    sw_stacks_set_period(view->to, seconds / (double)samples);
    return sw_stacks_add(view->to, view->frames, depth, &tag,
                         &(sw_stack_counts){.running = samples});
}

static int add_stack(struct view *view, const sw_stack *stack)
{
    char thread[256];
    char section[256];
    size_t depth = 0;
    if (view->options->threads) {
        snprintf(thread, sizeof thread, "thread %s",
                 *stack->tag->thread ? stack->tag->thread : "(unnamed)");
        view->frames[depth++] = (sw_stack_frame){.name = thread};
    }
    if (view->options->sections && *stack->tag->section) {
        snprintf(section, sizeof section, "section %s", stack->tag->section);
        view->frames[depth++] = (sw_stack_frame){.name = section};
    }
    const size_t count =
        sw_stacks_frames(view->from, stack->id, view->numbers, SW_STACKS_DEPTH + 1);
    for (size_t i = 0; i < count; i++) {
        sw_stack_frame frame = *sw_stacks_get_frame(view->from, view->numbers[i]);
        frame.line = view->options->lines ? frame.line : 0;
        view->frames[depth++] = frame;
    }
    int error = SW_OK;
    if (stack->running) {
        error = add(view, depth, stack, stack->running, stack->running_s);
    }
    if (stack->waiting && view->options->waiting && !error) {
        view->frames[depth++] = (sw_stack_frame){.name = "(waiting)"};
        error = add(view, depth, stack, stack->waiting, stack->waiting_s);
    }
    return error;
}

int sw__stack_view(sw_stacks **out, const sw_stacks *stacks,
                   const sw_stack_options *options, bool by_thread)
{
    struct view view = {
        .from = stacks,
        .options = options,
        .by_thread = by_thread,
        .frames = sw__alloc_zero(SW_STACKS_DEPTH + EXTRA, sizeof *view.frames),
        .numbers = sw__alloc_zero(SW_STACKS_DEPTH + 1, sizeof *view.numbers),
    };
    int error = sw_stacks_create(&view.to);
    error = view.frames && view.numbers ? error : SW_ENOMEM;
    sw_stacks_cursor cursor = {0};
    sw_stack stack;
    while (!error && sw_stacks_next(stacks, &cursor, &stack)) {
        error = add_stack(&view, &stack);
    }
    sw__free(view.frames);
    sw__free(view.numbers);
    if (error) {
        sw_stacks_free(view.to);
        view.to = NULL;
    }
    *out = view.to;
    return error;
}
