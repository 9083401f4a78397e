/* Samples as text for other tools: collapsed stacks and speedscope, by the exporters of the library. */
#include "core.h"

#include "sampler.h"

#include <math.h>
#include <stdlib.h>
#include <stepwatch/export.h>
#include <stepwatch/stacks.h>
#include <stepwatch/stepwatch.h>
#include <unistd.h>

/* Adds one path of the tree. 0, or a negative sw_error. */
static int add_path(sw_stacks *stacks, const tree_copy *copy, size_t index,
                    const char *thread)
{
    sw_stack_frame frames[WALK_FRAMES];
    char section[1024];
    size_t depth = 0;
    const tree_node *node = &copy->nodes[index];
    /* Paths are as long as walks at most; they are given from the root, so they are filled in from behind. */
    for (;; node = &copy->nodes[node->parent]) {
        const tree_function *function = &copy->functions[node->function];
        depth++;
        frames[WALK_FRAMES - depth] =
            (sw_stack_frame){.name = function->qualname.data,
                             .file = function->file.data,
                             .line = node->line,
                             .first_line = function->first_line};
        if (node->top || depth == WALK_FRAMES) {
            break;
        }
    }
    const tree_context *context = &copy->contexts[node->top ? node->parent : 0];
    (void)sw_name_text(context->section, section, sizeof section);
    const sw_stack_tag tag = {.thread = thread,
                              .section = section,
                              .phase = context->phase,
                              .pid = (uint32_t)getpid(),
                              .main = context->tid == (uint32_t)getpid()};
    const tree_counts *all = &copy->nodes[index].all;
    const sw_stack_counts counts = {
        .running = all->running, .waiting = all->waiting, .in_call = all->native};
    return sw_stacks_add(stacks, frames + WALK_FRAMES - depth, depth, &tag, &counts);
}

static uint32_t tid_of(const tree_copy *copy, size_t index)
{
    const tree_node *node = &copy->nodes[index];
    while (!node->top) {
        node = &copy->nodes[node->parent];
    }
    return copy->contexts[node->parent].tid;
}

static int add_all(sw_stacks *stacks, const tree_copy *copy, sampler_thread_name name,
                   void *arg)
{
    for (size_t i = 0; i < copy->node_count; i++) {
        const tree_counts *all = &copy->nodes[i].all;
        if (all->running + all->waiting == 0) {
            continue;
        }
        PyObject *thread = name(arg, tid_of(copy, i));
        core_text text;
        if (!thread || core_text_get(thread, "name", &text) != 0) {
            Py_XDECREF(thread);
            return -1;
        }
        const int result = add_path(stacks, copy, i, text.data);
        core_text_release(&text);
        Py_DECREF(thread);
        if (result != 0) {
            PyErr_NoMemory();
            return -1;
        }
    }
    return 0;
}

PyObject *sampler_export(const tree_copy *copy, double period, sampler_thread_name name,
                         void *arg, bool speedscope, const sw_stack_options *options)
{
    sw_stacks *stacks = NULL;
    PyObject *result = NULL;
    if (sw_stacks_create(&stacks) != 0) {
        return PyErr_NoMemory();
    }
    sw_stacks_set_period(stacks, period);
    sw_writer *writer = sw_writer_to_memory();
    if (!writer) {
        PyErr_NoMemory();
    } else if (add_all(stacks, copy, name, arg) == 0) {
        size_t length = 0;
        if (speedscope) {
            sw_export_speedscope(writer, stacks, options);
        } else {
            sw_export_collapsed(writer, stacks, options);
        }
        const char *text = sw_writer_text(writer, &length);
        result =
            text ? PyBytes_FromStringAndSize(text, (Py_ssize_t)length) : PyErr_NoMemory();
    }
    if (writer) {
        (void)sw_writer_close(writer, NULL);
    }
    sw_stacks_free(stacks);
    return result;
}
