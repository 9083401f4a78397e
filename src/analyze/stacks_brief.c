/* Samples taken in steps that are watched in brief: the recorder knew of no phase that they are part of.
 *
 * The same calls were seen in steps that were looked at in full, and there the phase is known. So a stack is given the phase of those
 * that begin like it for longest. Where these are of several phases they part above all of them, at a line that calls one after the
 * other: then the stack lies between, and is `other`. */
#include <string.h>

#include "analyze/stacks.h"
#include "analyze/summary.h"

struct settling {
    sw_stacks *stacks;
    uint64_t *samples;  /* by node: its own, and of those below it */
    size_t tags, nodes; /* that were there before */
};

static uint64_t samples_of(const struct sw__stack_node *node)
{
    return sw__add(node->running, node->waiting);
}

/* A node's parent has a smaller number. */
static void sum_samples(struct settling *it)
{
    const struct sw__stack_node *nodes = it->stacks->nodes;
    for (size_t i = it->nodes; i-- > 1;) {
        it->samples[i] = sw__add(it->samples[i], samples_of(&nodes[i]));
        if (nodes[i].parent) {
            uint64_t *above = &it->samples[nodes[i].parent];
            *above = sw__add(*above, it->samples[i]);
        }
    }
}

/* Whether stacks with this tag may say what those of `brief` are part of: phases that are measured in every step they are not. */
static bool may_tell(const sw_stack_tag *tag, const sw_stack_tag *brief)
{
    return tag->phase < SW_PHASE_COUNT && !(SW_PHASES_ALWAYS >> tag->phase & 1) &&
           tag->pid == brief->pid && tag->thread == brief->thread;
}

/* How many frames of a stack a tree has from its root on; `*last`: the node of the last of them. Nodes that were made by settling, whose
 * numbers are larger, say nothing: nobody saw their phase. */
static size_t frames_in(const struct settling *it, uint32_t tag, const uint32_t *frames,
                        size_t depth, uint32_t *last)
{
    size_t known = 0;
    uint32_t at = 0;
    while (known < depth) {
        const uint32_t next = sw__stacks_find_node(it->stacks, tag, at, frames[known]);
        if (next >= it->nodes) {
            break; /* so is SW__STACKS_FAIL */
        }
        at = next;
        known++;
    }
    *last = at;
    return known;
}

static unsigned phase_of(const struct settling *it, const sw_stack_tag *brief,
                         const uint32_t *frames, size_t depth)
{
    uint64_t samples[SW_PHASE_COUNT] = {0};
    size_t longest = 1;
    for (size_t t = 0; t < it->tags; t++) {
        const sw_stack_tag *tag = &it->stacks->tags[t].shown;
        uint32_t last;
        if (!may_tell(tag, brief)) {
            continue;
        }
        const size_t known = frames_in(it, (uint32_t)t, frames, depth, &last);
        if (known < longest || it->samples[last] == 0) {
            continue;
        }
        if (known > longest) {
            longest = known;
            memset(samples, 0, sizeof samples);
        }
        samples[tag->phase] = sw__add(samples[tag->phase], it->samples[last]);
    }
    unsigned most = SW_PHASE_OTHER, phases = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        phases += samples[p] > 0;
        most = samples[p] > samples[most] ? p : most;
    }
    return phases > 1 && longest < depth ? SW_PHASE_OTHER : most;
}

/* Moves the samples of a node to the same stack with another phase. */
static int move(struct settling *it, uint32_t node, const uint32_t *frames, size_t depth,
                unsigned phase)
{
    sw_stacks *stacks = it->stacks;
    sw_stack_tag tag = stacks->tags[stacks->nodes[node].tag].shown;
    tag.phase = (int)phase;
    const uint32_t to = sw__stacks_tag(stacks, &tag);
    uint32_t at = 0;
    for (size_t i = 0; i < depth && to != SW__STACKS_FAIL && at != SW__STACKS_FAIL; i++) {
        at = sw__stacks_node(stacks, to, at, frames[i]);
    }
    if (to == SW__STACKS_FAIL || at == SW__STACKS_FAIL) {
        return SW_ENOMEM;
    }
    struct sw__stack_node *from = &stacks->nodes[node], *into = &stacks->nodes[at];
    into->running = sw__add(into->running, from->running);
    into->waiting = sw__add(into->waiting, from->waiting);
    into->in_call = sw__add(into->in_call, from->in_call);
    into->running_s += from->running_s;
    into->waiting_s += from->waiting_s;
    from->running = from->waiting = from->in_call = 0;
    from->running_s = from->waiting_s = 0;
    return SW_OK;
}

static int settle_node(struct settling *it, uint32_t node)
{
    const size_t depth = it->stacks->nodes[node].depth;
    uint32_t *frames = sw__alloc_zero(depth, sizeof *frames);
    if (!frames) {
        return SW_ENOMEM;
    }
    (void)sw_stacks_frames(it->stacks, node, frames, depth);
    const sw_stack_tag brief = it->stacks->tags[it->stacks->nodes[node].tag].shown;
    const unsigned phase = phase_of(it, &brief, frames, depth);
    const int error = move(it, node, frames, depth, phase);
    sw__free(frames);
    return error;
}

static bool is_brief(const sw_stacks *stacks, size_t tag)
{
    return stacks->tags[tag].shown.phase == SW_PHASE_BRIEF;
}

int sw__stacks_settle(sw_stacks *stacks)
{
    struct settling it = {
        .stacks = stacks, .tags = stacks->tag_count, .nodes = stacks->node_count};
    bool any = false;
    int error = SW_OK;
    for (size_t t = 0; t < it.tags; t++) {
        any = any || is_brief(stacks, t);
    }
    if (!any) {
        return SW_OK;
    }
    it.samples = sw__alloc_zero(it.nodes, sizeof *it.samples);
    if (!it.samples) {
        return SW_ENOMEM;
    }
    sum_samples(&it);
    for (size_t i = 1; i < it.nodes && !error; i++) {
        const struct sw__stack_node *node = &stacks->nodes[i];
        if (is_brief(stacks, node->tag) && samples_of(node) > 0) {
            error = settle_node(&it, (uint32_t)i);
        }
    }
    for (size_t t = 0; t < it.tags && !error; t++) {
        if (is_brief(stacks, t)) {
            stacks->tags[t].first_child = 0; /* nothing is left in it */
        }
    }
    sw__free(it.samples);
    return error;
}
