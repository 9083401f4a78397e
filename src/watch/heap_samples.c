/* Sampled blocks: which they are, the stacks that allocated them, and what of them is in use.
 *
 * A block of n bytes is sampled with the chance 1 - exp(-n / period), as if every byte were drawn by itself: distances between
 * samples are exponential, so that no pattern of sizes fools them. It then stands for n / chance bytes and 1 / chance blocks.
 * Nearly all blocks that are freed were not sampled; a filter of half a KiB, which grows with their number, says so for most.
 *
 * A sample costs a few microseconds, and how many come depends on the program. So after the first PACE_FIRST of them, where more
 * than PACE_HZ come for a while, or they take more than PACE_SHARE of the time, the period is doubled, and halved again when few
 * come: each block is weighed with the period that it was drawn with.
 *
 * All lies in pages of its own. Under `lock`: tables, tree, points. */
#include "watch/heap.h"

#include "base/memory.h"
#include "base/os.h"
#include <math.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

enum {
    LIVE = 65536,      /* places of the table of blocks, a power of two */
    LIVE_MOST = 49152, /* of these used */
    NODES = 32768,
    NODE_PLACES = 65536,
    LEAST = 1024, /* places of a table at first */
    FILTER_LEAST = 512,
    CALLERS = 4096,
    DEPTH = 64,
    POINTS = 64
};
/* A peak is looked at again when it is so much higher. */
#define PEAK_RISE 1.005
/* So many samples a second are enough; after PACE_SAMPLES of them it is looked at how long that was, and how much of it they took. */
#define PACE_HZ 1000
#define PACE_SHARE 200 /* a half percent */
#define PACE_SAMPLES 32
#define PACE_FIRST 128
/* One that takes longer was interrupted, which is no cost of ours; ns. */
#define PACE_LONGEST 50000
#define PACE_MOST 128 /* times the period that was asked for */
/* Without samples a thread looks again whether there are some after so many bytes. */
#define LOOK_AGAIN ((int64_t)SW__HEAP_FLUSH)

uint8_t sw__heap_filter[SW__HEAP_FILTER];
uint32_t sw__heap_filter_mask = FILTER_LEAST - 1;
uint64_t sw__heap_period;

struct block {
    uintptr_t address; /* 0: free */
    uint32_t node;
    float blocks;
    double bytes;
};

struct node {
    uint32_t parent; /* index plus 1 */
    sw_heap_frame frame;
    uint64_t samples;
    double allocated, blocks, live, peak;
};

/* What lies in the pages. */
struct store {
    struct block live[2][LIVE]; /* one of them; the other one is empty, to grow into */
    struct node nodes[NODES];
    uint32_t places[NODE_PLACES]; /* index plus 1 of nodes, by hash */
    float points[NODES][POINTS];
    const void *callers[CALLERS];
};

static struct {
    atomic_flag lock;
    _Atomic bool forking; /* who forks has the lock */
    struct store *store;  /* NULL: never started */
    size_t live_count, node_count;
    /* Tables grow with what is in them: few pages are touched, and these stay in caches. Places less 1, of a power of two. */
    size_t live_mask, node_mask;
    unsigned live_half; /* of store->live */
    double live, peak;  /* sums; peak: that of the nodes' `peak` */
    uint64_t step[POINTS];
    size_t points;
    uint64_t stride, next_step;
    uint64_t asked;    /* the period; sw__heap_period is this times a power of two */
    uint64_t paced_at; /* ns */
    uint64_t spent;    /* ns, since then */
    unsigned paced;    /* samples until it is looked at */
    bool stepped;      /* the first step has begun */
    sw_heap_walk walk;
    bool native_leaves;
} samples = {.lock = ATOMIC_FLAG_INIT};

/* The holder is busy, so that what it allocates while it walks a stack does not come here, and never waits. */
void sw__heap_samples_lock(void)
{
    while (atomic_flag_test_and_set_explicit(&samples.lock, memory_order_acquire)) {
        sched_yield();
    }
}

/* The lock for a hook. false: a fork has it, and waiting for that could be for ever. */
static bool lock_in_hook(const struct sw__heap_thread *thread)
{
    while (atomic_flag_test_and_set_explicit(&samples.lock, memory_order_acquire)) {
        if (thread->hasty &&
            atomic_load_explicit(&samples.forking, memory_order_relaxed)) {
            return false;
        }
        sched_yield();
    }
    return true;
}

void sw__heap_samples_before_fork(void)
{
    sw__heap_samples_lock();
    atomic_store(&samples.forking, true);
}

void sw__heap_samples_unlock(void)
{
    atomic_store_explicit(&samples.forking, false, memory_order_relaxed);
    atomic_flag_clear_explicit(&samples.lock, memory_order_release);
}

/* The lock for whoever is not in a slow path: a signal handler that allocates must not come for it. */
static struct sw__heap_thread *lock_busily(uint32_t *before)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    *before = thread->busy;
    thread->busy = 1;
    sw__heap_samples_lock();
    return thread;
}

static void unlock_busily(struct sw__heap_thread *thread, uint32_t before)
{
    sw__heap_samples_unlock();
    thread->busy = before;
}

void sw_heap_set_walk(sw_heap_walk walk, bool native_leaves)
{
    uint32_t before;
    struct sw__heap_thread *thread = lock_busily(&before);
    samples.walk = walk;
    samples.native_leaves = native_leaves;
    unlock_busily(thread, before);
}

/* --- the table of blocks --- */

static size_t block_place(uintptr_t address)
{
    return (size_t)((address >> 4) * 0xD6E8FEB86659FD93ull >> 48) & samples.live_mask;
}

/* Where the block is, or would be. */
static struct block *block_find(uintptr_t address)
{
    struct block *live = samples.store->live[samples.live_half];
    size_t at = block_place(address);
    while (live[at].address && live[at].address != address) {
        at = (at + 1) & samples.live_mask;
    }
    return &live[at];
}

static void live_grow(void)
{
    struct block *old = samples.store->live[samples.live_half];
    const size_t places = samples.live_mask + 1;
    samples.live_half ^= 1;
    samples.live_mask = 2 * places - 1;
    for (size_t i = 0; i < places; i++) {
        if (old[i].address) {
            *block_find(old[i].address) = old[i];
        }
    }
    memset(old, 0, places * sizeof *old);
}

/* Once full it stays so: it is not known any more how many there are. */
static void filter_move(uint8_t *place, int by)
{
    const uint8_t now = *place;
    if (now != UINT8_MAX) {
        __atomic_store_n(place, (uint8_t)(now + by), __ATOMIC_RELAXED);
    }
}

static void filter_change(const void *address, int by)
{
    filter_move(&sw__heap_filter[sw__heap_place(address)], by);
}

/* From now on no block is known to hooks. */
static void filter_clear(void)
{
    memset(sw__heap_filter, 0, sizeof(sw__heap_filter));
    __atomic_store_n(&sw__heap_filter_mask, FILTER_LEAST - 1, __ATOMIC_RELAXED);
}

/* Twice as many places. Meanwhile every block may be one that was sampled: whoever frees one looks in the table, which waits for the
 * lock. */
static void filter_grow(void)
{
    const struct block *live = samples.store->live[samples.live_half];
    memset(sw__heap_filter, 1, sizeof sw__heap_filter);
    sw__heap_order();
    __atomic_store_n(&sw__heap_filter_mask, 2 * sw__heap_filter_mask + 1,
                     __ATOMIC_SEQ_CST);
    for (size_t i = 0; i <= samples.live_mask; i++) {
        if (live[i].address) {
            filter_change((const void *)live[i].address, 1);
        }
    }
    for (size_t i = 0; i < sizeof sw__heap_filter; i++) {
        filter_move(&sw__heap_filter[i], -1);
    }
}

static void block_add(const void *address, uint32_t node, double bytes, double blocks)
{
    if (samples.live_count > samples.live_mask / 4 * 3 && samples.live_mask < LIVE - 1) {
        live_grow();
    }
    if (samples.live_count > sw__heap_filter_mask / 8 &&
        sw__heap_filter_mask < SW__HEAP_FILTER - 1) {
        filter_grow();
    }
    struct block *at = block_find((uintptr_t)address);
    if (at->address) {
        /* It was freed where we could not see it. */
        struct node *before = &samples.store->nodes[at->node];
        before->live -= at->bytes;
        samples.live -= at->bytes;
    } else if (samples.live_count < LIVE_MOST) {
        samples.live_count++;
        filter_change(address, 1);
    } else {
        return;
    }
    *at = (struct block){(uintptr_t)address, node, (float)blocks, bytes};
    samples.store->nodes[node].live += bytes;
    samples.live += bytes;
}

/* Moves blocks that stand behind their place for the one that is gone. */
static void block_close_gap(size_t gap)
{
    struct block *live = samples.store->live[samples.live_half];
    const size_t mask = samples.live_mask;
    for (size_t at = (gap + 1) & mask; live[at].address; at = (at + 1) & mask) {
        const size_t home = block_place(live[at].address);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            live[gap] = live[at];
            gap = at;
        }
    }
    live[gap].address = 0;
}

/* --- the peak --- */

static void peak_keep(void)
{
    for (size_t i = 0; i < samples.node_count; i++) {
        samples.store->nodes[i].peak = samples.store->nodes[i].live;
    }
    samples.peak = samples.live;
}

void sw__heap_unsample(const void *address)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    /* In a signal handler, or already inside: the block stays in the table until its place is used again. */
    if (thread->busy && thread->within != SW__HEAP_LATE) {
        return;
    }
    const uint32_t busy = thread->busy;
    thread->busy = 1;
    if (!lock_in_hook(thread)) {
        thread->busy = busy;
        return;
    }
    struct block *block =
        samples.store && address ? block_find((uintptr_t)address) : NULL;
    if (block && block->address) {
        if (samples.live > samples.peak * PEAK_RISE) {
            peak_keep();
        }
        samples.store->nodes[block->node].live -= block->bytes;
        samples.live -= block->bytes;
        samples.live_count--;
        filter_change(address, -1);
        block_close_gap((size_t)(block - samples.store->live[samples.live_half]));
    }
    sw__heap_samples_unlock();
    thread->busy = busy;
}

/* --- the tree --- */

static size_t node_place(uint32_t parent, sw_heap_frame frame)
{
    uint64_t hash = ((uint64_t)parent << 32 | frame.function) * 0x9E3779B97F4A7C15ull;
    hash = (hash ^ hash >> 29 ^ frame.line) * 0xD6E8FEB86659FD93ull;
    return (size_t)(hash >> 48) & samples.node_mask;
}

static void nodes_grow(void)
{
    struct store *store = samples.store;
    memset(store->places, 0, (samples.node_mask + 1) * sizeof store->places[0]);
    samples.node_mask = 2 * samples.node_mask + 1;
    for (size_t i = 0; i < samples.node_count; i++) {
        size_t at = node_place(store->nodes[i].parent, store->nodes[i].frame);
        while (store->places[at]) {
            at = (at + 1) & samples.node_mask;
        }
        store->places[at] = (uint32_t)i + 1;
    }
}

static uint32_t node_get(uint32_t parent, sw_heap_frame frame)
{
    struct store *store = samples.store;
    if (samples.node_count > samples.node_mask / 2 &&
        samples.node_mask < NODE_PLACES - 1) {
        nodes_grow();
    }
    for (size_t at = node_place(parent, frame);; at = (at + 1) & samples.node_mask) {
        const uint32_t place = store->places[at];
        if (place == 0) {
            if (samples.node_count == NODES) {
                return parent; /* its caller has it, then */
            }
            store->nodes[samples.node_count] =
                (struct node){.parent = parent, .frame = frame};
            const uint32_t number = (uint32_t)samples.node_count + 1;
            store->places[at] = number;
            /* Who takes a snapshot looks before it has the lock. */
            __atomic_store_n(&samples.node_count, number, __ATOMIC_RELAXED);
            return number;
        }
        const struct node *node = &store->nodes[place - 1];
        if (node->parent == parent && node->frame.function == frame.function &&
            node->frame.line == frame.line) {
            return place;
        }
    }
}

static uint32_t caller_get(const void *caller)
{
    size_t at = (size_t)(((uintptr_t)caller >> 1) * 0x9E3779B97F4A7C15ull >> 52);
    for (size_t i = 0; i < CALLERS; i++, at = (at + 1) & (CALLERS - 1)) {
        if (!samples.store->callers[at] || samples.store->callers[at] == caller) {
            samples.store->callers[at] = caller;
            return SW_HEAP_CALLER | (uint32_t)at;
        }
    }
    return SW_HEAP_CALLER | CALLERS; /* unknown */
}

void *sw_heap_caller(uint32_t function)
{
    const uint32_t at = function & ~SW_HEAP_CALLER;
    return samples.store && at < CALLERS ? (void *)(uintptr_t)samples.store->callers[at]
                                         : NULL;
}

/* --- points in time --- */

static void pace_restart(void)
{
    samples.paced = PACE_FIRST;
    samples.paced_at = sw__os_now_ns();
    samples.spent = 0;
}

/* When steps have gone by: what every node has in use. Twice as many steps lie between points once there are too many. */
static void point_take(void)
{
    const uint64_t step =
        atomic_load_explicit(&sw__domain_at(0)->next_step, memory_order_relaxed);
    if (step < samples.next_step) {
        return;
    }
    if (step > 0 && !samples.stepped && samples.asked) {
        /* Imports allocate far more often than steps do: the pace that they led to is not that of the steps. */
        samples.stepped = true;
        __atomic_store_n(&sw__heap_period, samples.asked, __ATOMIC_RELAXED);
        pace_restart();
    }
    struct store *store = samples.store;
    if (samples.points == POINTS) {
        for (size_t i = 0; i < POINTS / 2; i++) {
            samples.step[i] = samples.step[2 * i];
        }
        for (size_t k = 0; k < samples.node_count; k++) {
            for (size_t i = 0; i < POINTS / 2; i++) {
                store->points[k][i] = store->points[k][2 * i];
            }
            memset(&store->points[k][POINTS / 2], 0, POINTS / 2 * sizeof(float));
        }
        samples.points = POINTS / 2;
        samples.stride *= 2;
    }
    for (size_t k = 0; k < samples.node_count; k++) {
        if (store->nodes[k].samples) {
            store->points[k][samples.points] = (float)store->nodes[k].live;
        }
    }
    samples.step[samples.points++] = step;
    samples.next_step = step + samples.stride;
}

/* --- taking a sample --- */

static double draw(struct sw__heap_thread *thread)
{
    uint64_t x = thread->random ? thread->random : 1; /* xorshift64* */
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    thread->random = x;
    const double unit =
        ((double)(x * 0x2545F4914F6CDD1Dull >> 11) + 0.5) * 0x1p-53; /* above 0 */
    return -log(unit);
}

/* Draws how far it is to the next sample, with the period of this moment. */
static int64_t draw_distance(struct sw__heap_thread *thread)
{
    thread->period = __atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED);
    return (int64_t)(draw(thread) * (double)thread->period) + 1;
}

void sw__heap_samples_begin(struct sw__heap_thread *thread)
{
    const bool samples_wanted = __atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED) != 0;
    thread->sample = samples_wanted ? draw_distance(thread) : LOOK_AGAIN;
    sw__heap_ahead(thread);
}

/* Too many samples a second, or too dear: fewer from now on; few: more again. `began`: when this one did, in ns. The lock is
 * held. */
static void keep_pace(uint64_t began)
{
    const uint64_t now = sw__os_now_ns();
    const uint64_t spent = now - began;
    samples.spent += spent < PACE_LONGEST ? spent : PACE_LONGEST;
    if (--samples.paced > 0) {
        return;
    }
    const uint64_t enough = (uint64_t)PACE_SAMPLES * 1000000000u / PACE_HZ;
    const uint64_t took = now - samples.paced_at;
    uint64_t period = __atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED);
    if ((took < enough || samples.spent > took / PACE_SHARE) &&
        period < samples.asked * PACE_MOST) {
        period *= 2;
    } else if (took > 4 * enough && samples.spent < took / PACE_SHARE / 4 &&
               period > samples.asked) {
        period /= 2;
    }
    __atomic_store_n(&sw__heap_period, period, __ATOMIC_RELAXED);
    samples.paced = PACE_SAMPLES;
    samples.paced_at = now;
    samples.spent = 0;
}

void sw__heap_sample(struct sw__heap_thread *thread, const void *address, size_t bytes,
                     const void *caller)
{
    if (__atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED) == 0) {
        thread->sample = LOOK_AGAIN;
        thread->period = 0;
        return;
    }
    const double period = (double)thread->period;
    if (!(period > 0)) {
        thread->sample = draw_distance(thread);
        return;
    }
    /* Several samples may fall into one block; it is one block all the same. */
    while (thread->sample < 0) {
        const int64_t ahead = draw_distance(thread);
        thread->sample =
            (double)-thread->sample > 64 * period ? ahead : thread->sample + ahead;
    }
    const uint64_t began = sw__os_now_ns();
    sw_heap_frame frames[DEPTH + 1];
    const double chance = -expm1(-(double)bytes / period);
    const double blocks = chance > 0 ? 1 / chance : 1;
    if (!lock_in_hook(thread)) {
        return;
    }
    if (samples.store) {
        /* With the lock: so no thread is in the middle of walking when another one forks. */
        const size_t depth = samples.walk ? samples.walk(frames + 1, DEPTH) : 0;
        const bool leaf = caller && (samples.native_leaves || depth == 0);
        if (leaf) {
            frames[0] = (sw_heap_frame){caller_get(caller), 0};
        }
        uint32_t place = 0;
        for (size_t i = depth + 1; i-- > (leaf ? 0u : 1u);) {
            place = node_get(place, frames[i]);
        }
        place = place ? place : node_get(0, (sw_heap_frame){SW_HEAP_CALLER | CALLERS, 0});
        if (place) {
            point_take();
            struct node *node = &samples.store->nodes[place - 1];
            node->samples++;
            node->allocated += (double)bytes * blocks;
            node->blocks += blocks;
            block_add(address, place - 1, (double)bytes * blocks, blocks);
        }
        keep_pace(began);
    }
    sw__heap_samples_unlock();
}

/* --- start, end, reading --- */

static void forget(void)
{
    samples.live_count = samples.points = 0;
    samples.live_mask = samples.node_mask = LEAST - 1;
    __atomic_store_n(&samples.node_count, 0, __ATOMIC_RELAXED);
    samples.live = samples.peak = 0;
    samples.stride = 1;
    samples.next_step = 0;
    samples.stepped = false;
    pace_restart();
    filter_clear();
    if (samples.store) {
        /* Pages of zeros come in their place. */
        (void)madvise(samples.store, sizeof(*samples.store), MADV_DONTNEED);
    }
}

bool sw__heap_samples_start(uint64_t bytes)
{
    uint32_t before;
    struct sw__heap_thread *thread = lock_busily(&before);
    if (bytes && !samples.store) {
        void *pages = mmap(NULL, sizeof(struct store), PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        samples.store = pages == MAP_FAILED ? NULL : pages;
    }
    const bool can = !bytes || samples.store;
    if (bytes) {
        forget();
    } else {
        /* What was seen can still be read; what is freed from now on is not seen. */
        filter_clear();
    }
    samples.asked = can ? bytes : 0;
    __atomic_store_n(&sw__heap_period, samples.asked, __ATOMIC_RELAXED);
    sw__heap_hooks_sampled(samples.asked != 0);
    sw__heap_pools_sampled(samples.asked != 0);
    /* Other threads begin when they look again. */
    if (bytes && thread->within != SW__HEAP_LATE) {
        sw__heap_samples_begin(thread);
    }
    unlock_busily(thread, before);
    return can;
}

void sw__heap_samples_forked(void)
{
    sw__heap_samples_unlock();
}

void sw_heap_peak_restart(void)
{
    uint32_t before;
    struct sw__heap_thread *thread = lock_busily(&before);
    if (samples.store) {
        peak_keep();
    }
    unlock_busily(thread, before);
}

int sw_heap_snapshot_take(sw_heap_snapshot *out)
{
    *out = (sw_heap_snapshot){0};
    const size_t room = __atomic_load_n(&samples.node_count, __ATOMIC_RELAXED) +
                        256; /* some may come meanwhile */
    out->sites = sw__alloc_zero(room, sizeof(*out->sites));
    out->points = sw__alloc_zero(room * POINTS, sizeof(*out->points));
    out->step = sw__alloc_zero(POINTS, sizeof(*out->step));
    if (!out->sites || !out->points || !out->step) {
        sw_heap_snapshot_free(out);
        return SW_ENOMEM;
    }
    uint32_t before;
    struct sw__heap_thread *thread = lock_busily(&before);
    if (samples.store && samples.live > samples.peak) {
        peak_keep();
    }
    out->count = samples.node_count < room ? samples.node_count : room;
    out->steps = samples.points;
    out->live = samples.live;
    out->peak = samples.peak;
    memcpy(out->step, samples.step, sizeof(samples.step));
    for (size_t i = 0; i < out->count; i++) {
        const struct node *node = &samples.store->nodes[i];
        out->sites[i] =
            (sw_heap_site){node->parent,    node->frame,  node->samples,
                           node->allocated, node->blocks, node->live > 0 ? node->live : 0,
                           node->peak};
        if (node->samples) {
            memcpy(out->points + i * samples.points, samples.store->points[i],
                   samples.points * sizeof(float));
        }
    }
    unlock_busily(thread, before);
    return SW_OK;
}

void sw_heap_snapshot_free(sw_heap_snapshot *snapshot)
{
    sw__free(snapshot->sites);
    sw__free(snapshot->points);
    sw__free(snapshot->step);
    *snapshot = (sw_heap_snapshot){0};
}
