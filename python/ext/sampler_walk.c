/* One look at one thread's stack, while the thread runs on.
 *
 * A frame takes a few tens of nanoseconds to come and go, reading memory through the kernel half a microsecond. So all of
 * the stack that matters is copied by one call, and twice: copy, innermost frame, copy again. What earlier looks needed is
 * copied on suspicion (`extents`); when that was not enough the rest is read piece by piece, only to know what to copy next time, and
 * the look is repeated.
 *
 * The stack is then read from the second copy, beginning at the innermost frame. Where a function and its caller are the
 * same in both copies, it was there all the time, or came and went as it does in a loop. Let k be the outermost frame of
 * which that is not so: it was called by the one below, and what lies above it may belong to the function that was in its
 * place before. So the sample is the frames up to k. If k is the innermost frame the stack is whole. */
#include "sampler.h"

#include <stdlib.h>
#include <string.h>

#define COPY_BYTES (384u * 1024u)
#define CHUNK_MOST (64u * 1024u) /* of a piece of the data stack, nearest its end */
#define CHUNK_GRAIN 4096u
#define CHUNKS_MOST 8u
#define MARGIN 1024u     /* the stack may grow before the next look */
#define FORGET_AFTER 64u /* looks without need for an extent */

struct sampler_walker {
    core_memory *reader;
    uint64_t interpreter;
    uint8_t *first, *second; /* the two copies */
    size_t used;             /* bytes of each */
    uint32_t hint;           /* extent that was needed last */
    uint8_t before[1024], after[1024], cframe[64];
    uint64_t leaf; /* innermost frame between the copies */
    layout_thread thread;
    core_extent plan[2 * WALK_EXTENTS + 8];
    walk_frame chain[2 * WALK_FRAMES];
};

sampler_walker *walker_new(core_memory *reader, uint64_t interpreter)
{
    sampler_walker *walker = calloc(1, sizeof *walker);
    if (!walker || layout_thread_size > sizeof walker->before ||
        layout_cframe_size > sizeof walker->cframe) {
        free(walker);
        return NULL;
    }
    walker->reader = reader;
    walker->interpreter = interpreter;
    walker->first = malloc(COPY_BYTES);
    walker->second = malloc(COPY_BYTES);
    if (!walker->first || !walker->second) {
        walker_free(walker);
        return NULL;
    }
    return walker;
}

void walker_free(sampler_walker *walker)
{
    if (walker) {
        free(walker->first);
        free(walker->second);
        free(walker);
    }
}

void walk_thread_clear(walk_thread *thread)
{
    free(thread->extents);
    *thread = (walk_thread){0};
}

/* The extent that holds all of [address, address + size), or NULL. */
static walk_extent *extent_of(sampler_walker *walker, walk_thread *thread,
                              uint64_t address, size_t size)
{
    uint32_t at = walker->hint < thread->count ? walker->hint : 0;
    for (uint32_t i = 0; i < thread->count;
         i++, at = at + 1 < thread->count ? at + 1 : 0) {
        walk_extent *extent = &thread->extents[at];
        /* Addresses come from memory that may be anything by now: nothing is added to them. */
        if (address >= extent->address && size <= extent->size &&
            address - extent->address <= extent->size - size) {
            walker->hint = at;
            extent->used = thread->looks;
            return extent;
        }
    }
    return NULL;
}

static bool frame_at(sampler_walker *walker, walk_thread *thread, uint64_t address,
                     walk_frame *out)
{
    const walk_extent *extent = extent_of(walker, thread, address, layout_frame_size);
    if (!extent) {
        return false;
    }
    out->address = address;
    layout_frame_parse(walker->second + extent->offset + (address - extent->address),
                       &out->frame);
    return true;
}

/* Adds memory to what is copied and reads it now. */
static bool extent_add(sampler_walker *walker, walk_thread *thread, uint64_t address,
                       uint64_t size)
{
    if (thread->count >= WALK_EXTENTS || size > COPY_BYTES - walker->used ||
        core_read(walker->reader, address, walker->second + walker->used, size) != 0) {
        return false;
    }
    thread->extents[thread->count++] =
        (walk_extent){address, (uint32_t)size, (uint32_t)walker->used, thread->looks};
    walker->used += (size + 7) / 8 * 8;
    return true;
}

/* Adds the newest pieces of the data stack. */
static bool chunks_add(sampler_walker *walker, walk_thread *thread)
{
    uint64_t chunk = walker->thread.chunk;
    for (unsigned i = 0; chunk && i < CHUNKS_MOST; i++) {
        layout_chunk head;
        uint8_t bytes[64];
        if (layout_chunk_size > sizeof bytes ||
            core_read(walker->reader, chunk, bytes, layout_chunk_size) != 0) {
            return false;
        }
        layout_chunk_parse(bytes, &head);
        uint64_t size = head.used;
        if (i == 0) {
            size = walker->thread.top - chunk + MARGIN;
            size = (size + CHUNK_GRAIN - 1) / CHUNK_GRAIN * CHUNK_GRAIN;
        }
        size = size < head.size ? size : head.size;
        const uint64_t skip = size > CHUNK_MOST ? (size - CHUNK_MOST) / 8 * 8 : 0;
        if (size <= layout_chunk_size || size > (uint64_t)1 << 32) {
            return false;
        }
        if (!extent_of(walker, thread, chunk + skip, size - skip)) {
            for (uint32_t k = 0; k < thread->count; k++) {
                if (thread->extents[k].address == chunk + skip) {
                    thread->extents[k].size = 0; /* the larger one replaces it */
                }
            }
            if (!extent_add(walker, thread, chunk + skip, size - skip)) {
                return i > 0; /* older ones are read frame by frame, if at all */
            }
        }
        chunk = head.previous;
    }
    return true;
}

/* Finds out what the stack consists of, so that the next look copies it. */
static bool discover(sampler_walker *walker, walk_thread *thread)
{
    uint8_t bytes[1024];
    if (!thread->extents) {
        thread->extents = malloc(WALK_EXTENTS * sizeof *thread->extents);
        if (!thread->extents) {
            return false;
        }
    }
    if (thread->count > WALK_EXTENTS / 2 || walker->used > COPY_BYTES / 2) {
        thread->count = 0;
        walker->used = 0;
    }
    if (core_read(walker->reader, thread->state, bytes, layout_thread_size) != 0) {
        return false;
    }
    layout_thread_parse(bytes, &walker->thread);
    uint64_t address = walker->thread.frame;
    thread->cframe = walker->thread.cframe;
    if (layout_cframe_size) {
        if (core_read(walker->reader, thread->cframe, bytes, layout_cframe_size) != 0) {
            return false;
        }
        address = layout_cframe_parse(bytes);
    }
    if (!chunks_add(walker, thread)) {
        return false;
    }
    uint32_t depth = 0;
    walk_frame found;
    for (; address && depth < WALK_INNER && thread->count < WALK_EXTENTS - WALK_OUTER;
         depth++) {
        if (!frame_at(walker, thread, address, &found) &&
            (!extent_add(walker, thread, address, layout_frame_size) ||
             !frame_at(walker, thread, address, &found))) {
            break;
        }
        if (found.frame.kind == LAYOUT_BAD) {
            return false;
        }
        address = found.frame.previous;
    }
    for (uint32_t i = 0; address && i < thread->outer_count; i++) {
        if (!extent_of(walker, thread, thread->outer[i], layout_frame_size)) {
            (void)extent_add(walker, thread, thread->outer[i], layout_frame_size);
        }
    }
    return depth > 0 || address == 0;
}

/* Drops what was not needed for long, and lays out the copies anew. */
static void plan_tidy(sampler_walker *walker, walk_thread *thread)
{
    uint32_t kept = 0;
    size_t used = 0;
    for (uint32_t i = 0; i < thread->count; i++) {
        walk_extent extent = thread->extents[i];
        if (thread->looks - extent.used > FORGET_AFTER || extent.size == 0 ||
            extent.size > COPY_BYTES - used) {
            continue;
        }
        extent.offset = (uint32_t)used;
        used += (extent.size + 7u) / 8 * 8;
        thread->extents[kept++] = extent;
    }
    thread->count = kept;
    walker->used = used;
}

/* Copies everything: extents, innermost frame, extents. */
static enum walk_result copy(sampler_walker *walker, walk_thread *thread)
{
    size_t count = 0;
    core_extent *plan = walker->plan;
    const core_extent before = {thread->state, (uint32_t)layout_thread_size,
                                walker->before};
    /* A cframe is on the C stack, and the thread's own only as long as the thread points to it: that is read first and
     * last. Where there is none, the thread state itself says which frame it is. */
    if (layout_cframe_size) {
        plan[count++] = before;
    }
    for (uint32_t i = 0; i < thread->count; i++) {
        const walk_extent *extent = &thread->extents[i];
        plan[count++] =
            (core_extent){extent->address, extent->size, walker->first + extent->offset};
    }
    plan[count++] =
        layout_cframe_size
            ? (core_extent){thread->cframe, (uint32_t)layout_cframe_size, walker->cframe}
            : before;
    for (uint32_t i = 0; i < thread->count; i++) {
        const walk_extent *extent = &thread->extents[i];
        plan[count++] =
            (core_extent){extent->address, extent->size, walker->second + extent->offset};
    }
    if (layout_cframe_size) {
        plan[count++] =
            (core_extent){thread->state, (uint32_t)layout_thread_size, walker->after};
    }
    const size_t done = core_read_all(walker->reader, plan, count);
    if (done < count) {
        /* Something that was needed once is not there any more. */
        thread->count = 0;
        walker->used = 0;
        return plan[done].address == thread->state ? WALK_GONE : WALK_FAILED;
    }
    layout_thread_parse(walker->before, &walker->thread);
    if (walker->thread.interpreter != walker->interpreter ||
        walker->thread.id != thread->id) {
        return WALK_GONE;
    }
    walker->leaf = walker->thread.frame;
    if (layout_cframe_size) {
        layout_thread after;
        layout_thread_parse(walker->after, &after);
        if (walker->thread.cframe != thread->cframe || after.cframe != thread->cframe) {
            return WALK_FAILED;
        }
        walker->leaf = layout_cframe_parse(walker->cframe);
    }
    return walker->leaf ? WALK_WHOLE : WALK_EMPTY;
}

/* Whether the same function, called from the same frame, was at an address in both copies. Its variables and its instruction
 * may have changed meanwhile: a function that calls others all the time is where it was. What a frame that has ended
 * left behind counts as well, as the one that takes its place is nearly always another call of the same function. */
static bool stayed(sampler_walker *walker, walk_thread *thread, uint64_t address)
{
    const walk_extent *extent = extent_of(walker, thread, address, layout_frame_size);
    if (!extent) {
        return false;
    }
    const size_t at = extent->offset + (size_t)(address - extent->address);
    layout_frame a, b;
    layout_frame_parse(walker->first + at, &a);
    layout_frame_parse(walker->second + at, &b);
    return a.kind == b.kind && a.code == b.code && a.previous == b.previous;
}

/* Follows the frames of the second copy into walker->chain, leaf first. How many, 0 when they are none. `*cut`: where
 * frames are missing. */
static uint32_t follow(sampler_walker *walker, walk_thread *thread, uint32_t *cut)
{
    walk_frame *chain = walker->chain;
    uint32_t depth = 0, mark = 0;
    uint64_t address = walker->leaf;
    *cut = 0;
    for (; address && depth < WALK_INNER; depth++) {
        if (address % sizeof(void *) != 0 ||
            !frame_at(walker, thread, address, &chain[depth])) {
            break;
        }
        if (chain[depth].frame.kind == LAYOUT_BAD ||
            (depth > 0 && (chain[depth].frame.idle || address == chain[mark].address))) {
            return 0; /* no frame, one that cannot have called another, or a circle */
        }
        if ((depth & (depth - 1)) == 0) {
            mark = depth;
        }
        address = chain[depth].frame.previous;
    }
    if (!address) {
        /* A frame that is just being freed has lost its caller. */
        return depth == 1 && chain[0].frame.idle ? 0 : depth;
    }
    if (depth < WALK_INNER / 4) {
        return 0;
    }
    /* Too deep: the outermost frames are those that were there when all of them could be seen. */
    *cut = depth;
    for (uint32_t i = 0; i < thread->outer_count; i++) {
        walk_frame *at = &chain[depth + i];
        const uint64_t next = i + 1 < thread->outer_count ? thread->outer[i + 1] : 0;
        if (!frame_at(walker, thread, thread->outer[i], at) ||
            at->frame.kind == LAYOUT_BAD || at->frame.previous != next) {
            return depth;
        }
    }
    return depth + thread->outer_count;
}

/* What both copies agree on. */
static enum walk_result judge(sampler_walker *walker, walk_thread *thread,
                              walk_stack *out)
{
    uint32_t cut = 0;
    const uint32_t depth = follow(walker, thread, &cut);
    if (depth == 0) {
        return WALK_FAILED;
    }
    /* A stack seldom gets another root, and one that was cut off by a frame just being freed seems to: look again. */
    const uint64_t root = walker->chain[depth - 1].address;
    if (!cut && thread->root != root) {
        const bool first = thread->root == 0;
        thread->root = root;
        if (!first) {
            return WALK_FAILED;
        }
    }
    uint32_t leaf = 0;
    for (uint32_t i = depth - 1; i > 0 && leaf == 0; i--) {
        if (!stayed(walker, thread, walker->chain[i].address)) {
            leaf = i;
        }
    }
    if (leaf == 0 && depth > 1 && !stayed(walker, thread, walker->chain[0].address)) {
        leaf = 1; /* It may be what another call left there. */
    }
    layout_frame before;
    const walk_extent *extent =
        extent_of(walker, thread, walker->chain[0].address, layout_frame_size);
    if (!extent) {
        return WALK_FAILED;
    }
    layout_frame_parse(walker->first + extent->offset +
                           (walker->chain[0].address - extent->address),
                       &before);
    out->still = leaf == 0 && before.instruction == walker->chain[0].frame.instruction;
    out->depth = 0;
    out->cut_at = 0;
    for (uint32_t i = leaf; i < depth; i++) {
        if (cut && i == cut) {
            out->cut_at = out->depth;
        }
        if (walker->chain[i].frame.kind == LAYOUT_PYTHON) {
            out->frames[out->depth++] = walker->chain[i];
        }
    }
    if (cut && cut == depth) {
        out->cut_at = out->depth;
    }
    if (!cut) {
        thread->outer_count = depth < WALK_OUTER ? depth : WALK_OUTER;
        for (uint32_t i = 0; i < thread->outer_count; i++) {
            thread->outer[i] = walker->chain[depth - thread->outer_count + i].address;
        }
    }
    if (out->depth == 0) {
        return WALK_EMPTY;
    }
    return leaf == 0 ? WALK_WHOLE : WALK_OUTER_ONLY;
}

enum walk_result walker_look(sampler_walker *walker, walk_thread *thread, walk_stack *out)
{
    enum walk_result result = WALK_FAILED;
    thread->looks++;
    if (walker->reader->mode == CORE_READ_GIL) {
        /* Only what is there now may be read directly. */
        thread->count = 0;
        thread->outer_count = 0;
    }
    plan_tidy(walker, thread);
    for (out->retries = 0; out->retries < 4; out->retries++) {
        if (out->retries > 0 || thread->count == 0) {
            if (!discover(walker, thread)) {
                continue;
            }
            plan_tidy(walker, thread);
        }
        result = copy(walker, thread);
        if (result == WALK_WHOLE) {
            result = judge(walker, thread, out);
        }
        if (result != WALK_FAILED) {
            break;
        }
    }
    return result;
}

enum walk_result walker_leaf(sampler_walker *walker, walk_thread *thread, walk_stack *out)
{
    uint8_t bytes[1024];
    layout_thread state;
    if (core_read(walker->reader, thread->state, bytes, layout_thread_size) != 0) {
        return WALK_GONE;
    }
    layout_thread_parse(bytes, &state);
    if (state.interpreter != walker->interpreter || state.id != thread->id) {
        return WALK_GONE;
    }
    uint64_t address = state.frame;
    if (layout_cframe_size) {
        if (core_read(walker->reader, state.cframe, bytes, layout_cframe_size) != 0) {
            return WALK_FAILED;
        }
        address = layout_cframe_parse(bytes);
    }
    /* Shims have no code; the frame below a shim is as good. */
    for (int i = 0; i < 2 && address % sizeof(void *) == 0; i++) {
        walk_frame *leaf = &out->frames[0];
        if (!address) {
            return WALK_EMPTY;
        }
        if (core_read(walker->reader, address, bytes, layout_frame_size) != 0) {
            return WALK_FAILED;
        }
        leaf->address = address;
        layout_frame_parse(bytes, &leaf->frame);
        if (leaf->frame.kind == LAYOUT_PYTHON) {
            out->depth = 1;
            out->cut_at = 0;
            out->still = false;
            return WALK_LEAF_ONLY;
        }
        address = leaf->frame.kind == LAYOUT_SHIM ? leaf->frame.previous : 1;
    }
    return WALK_FAILED;
}
