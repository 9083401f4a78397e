/* Allocations of open sections. Sections that begin or end only set a trap (heap.h): the next hook finds it, and brings the marks
 * in line with the thread's stack of open sections, before it counts. Between two calls of the allocator no counter
 * changes, so the counters are those at the moment when the section began or ended; a section within which nothing was
 * allocated or freed is never seen, and has nothing to tell. */
#include "watch/heap.h"

#include <string.h>
#include <sys/mman.h>

static struct sw__heap_count count_now(const struct sw__heap_thread *thread)
{
    const uint64_t allocated = (uint64_t)sw__heap_allocated(thread);
    struct sw__heap_count sum = {.allocated = allocated,
                                 .freed = allocated - (uint64_t)sw__heap_net(thread),
                                 .blocks = thread->blocks,
                                 .blocks_freed = thread->blocks_freed};
#pragma GCC unroll 8
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        sum.blocks += thread->part[part].blocks;
        sum.blocks_freed += thread->part[part].blocks_freed;
    }
    return sum;
}

static struct sw__heap_node *node_at(struct sw__heap_thread *thread, uint32_t index)
{
    if (!thread->nodes && index < SW__NODES_HARD) {
        void *pages = mmap(NULL, SW__NODES_HARD * sizeof(struct sw__heap_node),
                           PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) {
            return NULL;
        }
        __atomic_store_n(&thread->nodes, pages, __ATOMIC_RELEASE);
    }
    return index < SW__NODES_HARD ? &thread->nodes[index] : NULL;
}

static void add_since(struct sw__heap_count *to, const struct sw__heap_count *now,
                      const struct sw__heap_count *then)
{
    sw__add(&to->allocated, now->allocated - then->allocated);
    sw__add(&to->blocks, now->blocks - then->blocks);
    sw__add(&to->freed, now->freed - then->freed);
    sw__add(&to->blocks_freed, now->blocks_freed - then->blocks_freed);
}

/* Adds what a mark has to tell to its node. */
static void tell(struct sw__heap_thread *thread, const struct sw__heap_mark *mark,
                 const struct sw__heap_count *now, int64_t peak)
{
    struct sw__heap_node *node = node_at(thread, mark->index);
    if (!node) {
        return;
    }
    add_since(&node->count, now, &mark->at);
#pragma GCC unroll 8
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        const struct sw__heap_count *at = &thread->part[part];
        /* Most sections have blocks of one or two parts. No bytes come without a block. */
        if (part != SW_HEAP_NATIVE &&
            (at->blocks != mark->part[part].blocks ||
             at->blocks_freed != mark->part[part].blocks_freed)) {
            add_since(&node->part[part], at, &mark->part[part]);
        }
    }
    sw__add(&node->calls, 1);
    const int64_t above = peak - mark->net;
    if (above > 0 && (uint64_t)above > node->peak) {
        __atomic_store_n(&node->peak, (uint64_t)above, __ATOMIC_RELAXED);
    }
}

/* The most of the thread while mark `depth` was open: its own and that of those inside. */
static int64_t peak_of(const struct sw__heap_thread *thread, uint32_t depth)
{
    int64_t peak = sw__heap_word(&thread->top);
    for (uint32_t i = depth; i < thread->depth; i++) {
        peak = thread->marks[i].peak > peak ? thread->marks[i].peak : peak;
    }
    return peak;
}

/* What the thread had at most counts for the newest mark. */
static void raise_peak(struct sw__heap_thread *thread, int64_t peak)
{
    struct sw__heap_mark *mark = &thread->marks[thread->depth - 1];
    mark->peak = peak > mark->peak ? peak : mark->peak;
}

static void pop(struct sw__heap_thread *thread, const struct sw__heap_count *now)
{
    const struct sw__heap_mark *mark = &thread->marks[thread->depth - 1];
    tell(thread, mark, now, mark->peak);
    thread->depth--;
    if (thread->depth > 0) {
        raise_peak(thread, mark->peak);
    }
}

static void push(struct sw__heap_thread *thread, const struct sw__lane *lane,
                 const struct sw__fmt_frame *frame, const struct sw__heap_count *now)
{
    struct sw__heap_mark *mark = &thread->marks[thread->depth++];
    mark->start = frame->start;
    mark->node = frame->node;
    mark->index = sw__node_at(lane, frame->node)->index;
    mark->net = mark->peak = (int64_t)(now->allocated - now->freed);
    mark->at = *now;
    memcpy(mark->part, thread->part, sizeof mark->part);
}

/* Brings the marks in line with the sections that are open. The lane is busy. */
static void follow(struct sw__heap_thread *thread, const struct sw__lane *lane)
{
    size_t open = (size_t)(lane->top - lane->bottom);
    open = open < SW__HEAP_MARKS ? open : SW__HEAP_MARKS;
    uint32_t same = 0;
    while (same < thread->depth && same < open &&
           thread->marks[same].start == lane->bottom[same].start &&
           thread->marks[same].node == lane->bottom[same].node) {
        same++;
    }
    if (thread->depth == same && open == same) {
        return;
    }
    const struct sw__heap_count now = count_now(thread);
    if (thread->depth > 0) {
        raise_peak(thread, sw__heap_word(&thread->top));
    }
    while (thread->depth > same) {
        pop(thread, &now);
    }
    for (size_t i = same; i < open; i++) {
        push(thread, lane, &lane->bottom[i], &now);
    }
    sw__heap_level(thread);
}

/* Marks and nodes belong to one recording. */
static void renew(struct sw__heap_thread *thread, const struct sw__lane *lane)
{
    if (thread->nodes) {
        (void)madvise(thread->nodes, SW__NODES_HARD * sizeof(struct sw__heap_node),
                      MADV_DONTNEED);
    }
    thread->depth = 0;
    thread->gate = SW__GATE_OF(lane->idle);
    thread->thread = lane->thread->slot->index;
}

void sw__heap_sections(struct sw__heap_thread *thread, const struct sw__lane *lane)
{
    if (thread->busy) {
        return;
    }
    if (lane == &sw__no_lane) {
        /* It records no more. */
        thread->start = lane->start;
        thread->depth = 0;
        return;
    }
    thread->busy = 1;
    /* The lane is made busy, so that nobody takes the recording's memory away; within the recorder it is so already, and
     * its own allocations are not for any section. */
    struct sw__lane *own = (struct sw__lane *)lane;
    const uint32_t before = sw__lane_seize(own);
    const uint32_t gate =
        atomic_load_explicit(&sw__domain_at(0)->gate, memory_order_relaxed);
    if (before != 0 && gate != 0 && gate == SW__GATE_OF(lane->idle)) {
        if (thread->gate != gate) {
            renew(thread, lane);
        }
        follow(thread, lane);
    }
    if (before == 0) {
        sw__lane_give(own, before);
    } else {
        thread->start = lane->start;
        /* From now on its sections set the trap. One of another recording cannot change before it is this one's. */
        if (gate == SW__GATE_OF(lane->idle) && sw_heap_is_on()) {
            own->idle |= sw__lane_slow(own);
        }
        sw__lane_idle(own);
    }
    thread->busy = 0;
}

/* --- rows --- */

/* What the parts have of a node; native code has what is left. False: there is no room for more. */
static bool write_parts(const struct sw__heap_thread *thread, uint32_t index,
                        const struct sw__heap_node *node)
{
    struct sw__heap_count part[SW_HEAP_PARTS];
    memcpy(part, node->part, sizeof part);
    struct sw__heap_count rest = node->count;
    for (unsigned i = 0; i < SW_HEAP_PARTS; i++) {
        if (i != SW_HEAP_NATIVE) {
            rest.allocated -= part[i].allocated;
            rest.blocks -= part[i].blocks;
            rest.freed -= part[i].freed;
            rest.blocks_freed -= part[i].blocks_freed;
        }
    }
    part[SW_HEAP_NATIVE] = rest;
    for (unsigned i = 0; i < SW_HEAP_PARTS; i++) {
        const struct sw__heap_count *at = &part[i];
        sw_row row = {.table = SW_TABLE_ALLOCATIONS,
                      .key = {thread->thread, index, i + 1},
                      .value = {at->allocated, at->blocks, at->freed, at->blocks_freed}};
        if ((at->blocks || at->blocks_freed) && !sw_row_put(0, &row)) {
            return false;
        }
    }
    return true;
}

static void write_thread(struct sw__heap_thread *thread)
{
    struct sw__heap_node *nodes = __atomic_load_n(&thread->nodes, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; nodes && i < SW__NODES_HARD; i++) {
        const struct sw__heap_node *node = &nodes[i];
        if (__atomic_load_n(&node->calls, __ATOMIC_RELAXED) == 0) {
            continue;
        }
        sw_row row = {.table = SW_TABLE_ALLOCATIONS,
                      .key = {thread->thread, i},
                      .value = {node->count.allocated, node->count.blocks,
                                node->count.freed, node->count.blocks_freed, node->peak}};
        if (!sw_row_put(0, &row) || !write_parts(thread, i, node)) {
            return;
        }
    }
}

void sw__heap_sections_write(void)
{
    const uint32_t gate =
        atomic_load_explicit(&sw__domain_at(0)->gate, memory_order_relaxed);
    for (struct sw__heap_thread *at = sw__heap_threads(); at; at = at->next) {
        if (at->gate == 0 || at->gate != gate) {
            continue;
        }
        if (at == sw__heap_self) {
            sw__heap_look(at);
        }
        /* Sections that are still open, or closed since the thread last allocated, tell what they have so far. Those of
         * other threads may be changing: their marks are left as they are. */
        const struct sw__heap_count now = count_now(at);
        const uint32_t depth = at->depth < SW__HEAP_MARKS ? at->depth : SW__HEAP_MARKS;
        for (uint32_t i = 0; i < depth; i++) {
            tell(at, &at->marks[i], &now, peak_of(at, i));
        }
        write_thread(at);
        /* Nothing is told twice. */
        at->gate = 0;
        at->start = 0;
        if (at == sw__heap_self) {
            sw__heap_trap(at);
        }
    }
}
