/* Between the files that count allocations.
 *
 *   heap.c           switching on and off, threads, totals, windows, what the recorder tells
 *   heap_hooks.c     what is called in place of malloc and its kin
 *   heap_new.c       whether operator new and delete are malloc and free
 *   heap_pools.c     what an interpreter's allocator of small blocks calls
 *   heap_sections.c  counters for open sections
 *   heap_samples.c   which blocks are sampled, their stacks, what of them is in use
 *
 * Rules: a hook is on the way of every allocation of the program, so it may be called with any lock held, in a signal handler,
 * before and after a thread lives. It never waits but for `lock` in heap_samples.c, which is held for a moment only and never
 * while anything is called that allocates, but for a fork: that wants the locks of malloc, so whoever may hold one (a handler
 * of a signal that maps memory, on top of malloc) does not wait for it and has its sample dropped. A thread that is inside one of the slow paths has `busy` set; what it (or a signal
 * handler on top of it) allocates meanwhile is counted, no more. */
#ifndef SW_WATCH_HEAP_H
#define SW_WATCH_HEAP_H

#include "record/recorder.h"
#include <stepwatch/heap.h>

#define SW__HEAP_FLUSH (64 * 1024)
#define SW__HEAP_LATE 14u /* `within`: counts, but not for the thread */
#define SW__HEAP_TRAP ((int64_t)1 << 60)
#define SW__HEAP_MARKS 64 /* sections that are open one inside the other */
#define SW__HEAP_WINDOWS 16

struct sw__heap_count {
    uint64_t allocated, blocks, freed, blocks_freed;
};

/* What was counted for a node of the call tree. */
struct sw__heap_node {
    struct sw__heap_count count; /* all parts */
    uint64_t peak;
    uint64_t calls;                            /* 0: never seen */
    struct sw__heap_count part[SW_HEAP_PARTS]; /* nothing for native code */
};

/* An open section as the thread last saw it. */
struct sw__heap_mark {
    uint64_t start;
    uint32_t node;  /* reference */
    uint32_t index; /* in the call tree */
    int64_t net;    /* of the thread when it was seen first */
    int64_t
        peak; /* most of `net` while it was open, but for what sw__heap_thread.room tells */
    struct sw__heap_count at;                  /* counters then */
    struct sw__heap_count part[SW_HEAP_PARTS]; /* and those of the parts */
};

/* A thread that allocates. What every hook writes comes first, in one line of the cache, and as little as there can be: for one that
 * makes a block three additions, for one that frees it two. All else follows from these.
 *
 *   allocated, all parts    end - until
 *   in use (net)            top - room, where `top` is the most of it since the marks last changed
 *   freed, all parts        allocated - net
 *   bytes of native code    what is not in `part`
 *
 * `room` is also where hooks are stopped: with a trap set it is so far below zero that every addition leaves it there, and a
 * hook whose addition has a negative result looks why. Either there is more in use than ever before, or there is something
 * to be looked at before counting: the thread is not attached, its sections may be others, malloc is called for somebody in
 * particular. Only its own thread writes here, each time with one instruction, so that handlers of signals may come between any two.
 *
 * Invariants: without a trap the thread is attached, `within` is SW_HEAP_NATIVE, marks[0…depth) are the sections that
 * are open, and whatever changes them sets it (sw__sections_tell). `change` is odd while two words that belong together are
 * written. `within` is SW__HEAP_LATE in the one that threads have which are ending. */
struct sw__heap_thread {
    int64_t room;
    int64_t until; /* bytes to allocate until the thread tells what it has, or samples */
    uint64_t blocks, blocks_freed;             /* of native code */
    struct sw__heap_count part[SW_HEAP_PARTS]; /* nothing for native code */
    int64_t end, top;
    uint64_t change;
    uint32_t within; /* the part that malloc is called for */
    uint32_t busy;
    uint64_t start; /* of the newest section, when sections were last looked at */
    bool
        hasty; /* inside a hook of mmap: it may hold a lock of malloc, so it does not wait for who forks */
    int64_t told;    /* of net */
    int64_t sample;  /* bytes until the next sample, beyond what `until` stands for */
    uint64_t period; /* that the distance to the next sample was drawn with */
    uint64_t random;
    uint32_t depth;
    uint32_t gate;   /* of the recording that marks and nodes belong to */
    uint32_t thread; /* index in the trace */
    struct sw__heap_mark marks[SW__HEAP_MARKS];
    struct sw__heap_node *nodes; /* by index; SW__NODES_HARD of them, or NULL */
    bool used;                   /* some thread has it */
    struct sw__heap_thread *next;
};

/* Never NULL: sw__heap_nobody, which has a trap, until the thread is attached. */
extern SW__TLS struct sw__heap_thread *sw__heap_self;
extern SW__HIDDEN struct sw__heap_thread sw__heap_nobody;
extern _Atomic bool sw__heap_on;

/* heap.c */
struct sw__heap_thread *sw__heap_attach(void); /* never NULL */
void sw__heap_flush(struct sw__heap_thread *thread);
void sw__heap_late(unsigned part, uint64_t allocated, uint64_t freed);
/* heap_hooks.c */
int sw__heap_hooks_add(sw_error_info *info);
/* Whether blocks that are freed are looked for among those that were sampled; so in heap_pools.c. */
void sw__heap_hooks_sampled(bool some);
void sw__heap_pools_sampled(bool some);
void sw__heap_hooks_remove(void);
void sw__heap_hooks_forked(void);
/* heap_new.c */
enum { SW__HEAP_NEW, SW__HEAP_DELETE, SW__HEAP_DELETE_SIZED, SW__HEAP_OPERATORS };
struct sw__plt_hook;
enum sw__heap_operators_are {
    SW__HEAP_OPERATORS_ABSENT, /* their library is not loaded */
    SW__HEAP_OPERATORS_OTHER,
    SW__HEAP_OPERATORS_PLAIN /* those of the library, which call malloc and free */
};
/* The functions themselves, and what entries for them may lead to because of us. */
struct sw__heap_stand_ins {
    void *malloc, *free, *hook_malloc, *hook_free;
};
/* Says which functions the operators are, by their names, and what they are. It waits for the linker, with no lock held; one thread at
 * a time. */
enum sw__heap_operators_are sw__heap_operators(struct sw__plt_hook *operators,
                                               const struct sw__heap_stand_ins *ours);
/* A number that changes when an object is loaded. */
uint64_t sw__heap_objects(void);
/* heap_sections.c */
void sw__heap_sections(struct sw__heap_thread *thread, const struct sw__lane *lane);
void sw__heap_sections_write(void); /* rows of all threads */
/* Sets how far it is to the next slow path. */
void sw__heap_ahead(struct sw__heap_thread *thread);
/* heap_samples.c */
void sw__heap_sample(struct sw__heap_thread *thread, const void *address, size_t bytes,
                     const void *caller);
void sw__heap_samples_begin(struct sw__heap_thread *thread); /* draws its first */
void sw__heap_unsample(const void *address);
bool sw__heap_samples_start(uint64_t bytes);
void sw__heap_samples_lock(void);
void sw__heap_samples_unlock(void);
void sw__heap_samples_before_fork(void); /* the lock is held from now on */
void sw__heap_samples_forked(void);      /* in a child */
/* How many sampled blocks have a place, which is a hash of their address. There are more places when there are many blocks; few
 * of them stay in the nearest cache. */
#define SW__HEAP_FILTER 8192u /* at most; a power of two */
extern SW__HIDDEN uint8_t sw__heap_filter[SW__HEAP_FILTER];
extern SW__HIDDEN uint32_t sw__heap_filter_mask; /* places less 1 */
extern uint64_t sw__heap_period;                 /* 0: no samples */

struct sw__heap_thread *
sw__heap_threads(void); /* list of all, newest first; only grows */

/* --- on the way of every allocation --- */

SW__INLINE struct sw__heap_thread *sw__heap_here_now(void)
{
    struct sw__heap_thread *thread = sw__heap_self;
    return SW__LIKELY(thread != &sw__heap_nobody) ? thread : sw__heap_attach();
}

/* Takes from a word or adds to it, in one instruction where that can be; whether the result is negative. */
SW__INLINE bool sw__heap_less(int64_t *word, size_t bytes)
{
#if defined(__x86_64__) && !SW__TSAN
    bool negative;
    __asm__("subq %2, %0" : "+m"(*word), "=@ccs"(negative) : "er"(bytes));
    return SW__UNLIKELY(negative);
#else
    const int64_t now = __atomic_load_n(word, __ATOMIC_RELAXED) - (int64_t)bytes;
    __atomic_store_n(word, now, __ATOMIC_RELAXED);
    return SW__UNLIKELY(now < 0);
#endif
}

SW__INLINE bool sw__heap_more(int64_t *word, size_t bytes)
{
#if defined(__x86_64__) && !SW__TSAN
    bool negative;
    __asm__("addq %2, %0" : "+m"(*word), "=@ccs"(negative) : "er"(bytes));
    return SW__UNLIKELY(negative);
#else
    const int64_t now = __atomic_load_n(word, __ATOMIC_RELAXED) + (int64_t)bytes;
    __atomic_store_n(word, now, __ATOMIC_RELAXED);
    return SW__UNLIKELY(now < 0);
#endif
}

SW__INLINE int64_t sw__heap_word(const int64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

SW__INLINE bool sw__heap_is_trapped(const struct sw__heap_thread *thread)
{
    return sw__heap_word(&thread->room) < -SW__HEAP_TRAP / 2;
}

/* The value says whether there is a trap, so that a handler of a signal that sets or takes one at the same time does no harm. */
SW__INLINE void sw__heap_trap(struct sw__heap_thread *thread)
{
    if (!sw__heap_is_trapped(thread)) {
        (void)sw__heap_less(&thread->room, (size_t)SW__HEAP_TRAP);
    }
}

SW__INLINE void sw__heap_untrap(struct sw__heap_thread *thread)
{
    while (sw__heap_is_trapped(thread)) {
        (void)sw__heap_more(&thread->room, (size_t)SW__HEAP_TRAP);
    }
}

/* `room` without the trap. */
SW__INLINE int64_t sw__heap_room(const struct sw__heap_thread *thread)
{
    int64_t room = sw__heap_word(&thread->room);
    while (room < -SW__HEAP_TRAP / 2) {
        room += SW__HEAP_TRAP;
    }
    return room;
}

/* Of the calling thread: bytes allocated by all parts, and in use. */
SW__INLINE int64_t sw__heap_allocated(const struct sw__heap_thread *thread)
{
    return sw__heap_word(&thread->end) - sw__heap_word(&thread->until);
}

/* What comes before is seen before what comes after. All are atomic where threads are checked, which knows no fences. */
SW__INLINE void sw__heap_order(void)
{
#if SW__TSAN
    atomic_signal_fence(memory_order_seq_cst);
#else
    atomic_thread_fence(memory_order_acq_rel);
#endif
}

/* In this order, for sw__heap_rise. */
SW__INLINE int64_t sw__heap_net(const struct sw__heap_thread *thread)
{
    const int64_t top = sw__heap_word(&thread->top);
    sw__heap_order();
    return top - sw__heap_room(thread);
}

/* Two words change, and what follows from them does not. */
SW__INLINE void sw__heap_shift(struct sw__heap_thread *thread, int64_t *one, int64_t *two,
                               int64_t by)
{
    sw__add(&thread->change, 1);
    sw__heap_order();
    (void)sw__heap_more(one, (size_t)by);
    (void)sw__heap_more(two, (size_t)by);
    sw__heap_order();
    sw__add(&thread->change, 1);
}

/* What is in use now is the most. */
SW__INLINE void sw__heap_level(struct sw__heap_thread *thread)
{
    sw__heap_shift(thread, &thread->top, &thread->room, -sw__heap_room(thread));
}

/* The same after a block was taken from `room`, which is negative now: there is more in use than ever before. False: no, it is a trap.
 * Whoever looks in between sees what was in use without the block, or with it. */
SW__INLINE bool sw__heap_rise(struct sw__heap_thread *thread)
{
    const int64_t room = sw__heap_word(&thread->room);
    if (room < -SW__HEAP_TRAP / 2) {
        return false;
    }
    (void)sw__heap_less(&thread->room, (size_t)room);
    sw__heap_order();
    (void)sw__heap_less(&thread->top, (size_t)room);
    return true;
}

/* Whether the sections that are open are those that were open at the last look, and a change will be told. */
SW__INLINE bool sw__heap_is_settled(const struct sw__heap_thread *thread)
{
    const struct sw__lane *lane = sw__self_lane;
    return lane->start == thread->start &&
           (lane == &sw__no_lane ||
            (lane->idle & (SW__GATE_SLOW | SW__GATE_WATCHED)) != 0 ||
            lane->idle !=
                atomic_load_explicit(&sw__domain_at(0)->gate, memory_order_relaxed));
}

/* Looks at the sections that are open, before counting. The moment when the newest one began tells it from all others. */
SW__INLINE void sw__heap_look(struct sw__heap_thread *thread)
{
    if (!sw__heap_is_settled(thread)) {
        sw__heap_sections(thread, sw__self_lane);
    }
    if (thread->within == SW_HEAP_NATIVE && sw__heap_is_settled(thread)) {
        sw__heap_untrap(thread);
    }
}

SW__COLD void sw__heap_slow(struct sw__heap_thread *thread, const void *address,
                            size_t bytes, const void *caller);

/* Counts bytes that were allocated, by whatever part. Whether sw__heap_slow is to be called. */
SW__INLINE bool sw__heap_add(struct sw__heap_thread *thread, size_t bytes)
{
    (void)sw__heap_less(&thread->room, bytes);
    if (sw__heap_room(thread) < 0) {
        sw__heap_level(thread);
    }
    return sw__heap_less(&thread->until, bytes);
}

/* `part` is one that counts. */
SW__INLINE void sw__heap_took(struct sw__heap_thread *thread, unsigned part,
                              const void *address, size_t bytes, const void *caller)
{
    sw__heap_look(thread);
    const bool slow = sw__heap_add(thread, bytes);
    if (part == SW_HEAP_NATIVE) {
        sw__add(&thread->blocks, 1);
    } else {
        sw__add(&thread->part[part].allocated, bytes);
        sw__add(&thread->part[part].blocks, 1);
    }
    if (slow) {
        sw__heap_slow(thread, address, bytes, caller);
    }
}

SW__INLINE uint32_t sw__heap_place(const void *address)
{
    const uint32_t hash = (uint32_t)(uintptr_t)address * 0x9E3779B1u >> 19;
#if SW__TSAN
    return hash & __atomic_load_n(&sw__heap_filter_mask, __ATOMIC_RELAXED);
#else
    return hash & sw__heap_filter_mask; /* in place, as a relaxed load would not be */
#endif
}

/* Whether sw__heap_unsample is to be called. */
SW__INLINE bool sw__heap_may_be_sampled(const void *address)
{
    return SW__UNLIKELY(__atomic_load_n(&sw__heap_filter[sw__heap_place(address)],
                                        __ATOMIC_RELAXED) != 0);
}

SW__INLINE void sw__heap_leaves(const void *address)
{
    if (sw__heap_may_be_sampled(address)) {
        sw__heap_unsample(address);
    }
}

SW__INLINE void sw__heap_gave(struct sw__heap_thread *thread, unsigned part, size_t bytes)
{
    sw__heap_look(thread);
    (void)sw__heap_more(&thread->room, bytes);
    if (part == SW_HEAP_NATIVE) {
        sw__add(&thread->blocks_freed, 1);
    } else {
        sw__add(&thread->part[part].freed, bytes);
        sw__add(&thread->part[part].blocks_freed, 1);
    }
}

#endif
