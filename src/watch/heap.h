/* Between the files that count allocations.
 *
 *   heap.c           switching on and off, threads, totals, windows, what the recorder tells
 *   heap_hooks.c     what is called in place of malloc and its kin
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
#define SW__HEAP_LATE 14u         /* `within`: counts, but not for the thread */
#define SW__HEAP_NEVER UINT64_MAX /* no section begins then */
#define SW__HEAP_MARKS 64         /* sections that are open one inside the other */
#define SW__HEAP_WINDOWS 16

struct sw__heap_count {
    uint64_t allocated, blocks, freed, blocks_freed;
};

/* What was counted for a node of the call tree. */
struct sw__heap_node {
    struct sw__heap_count count;
    uint64_t peak;
    uint64_t calls; /* 0: never seen */
};

/* An open section as the thread last saw it. */
struct sw__heap_mark {
    uint64_t start;
    uint32_t node;  /* reference */
    uint32_t index; /* in the call tree */
    int64_t net;    /* of the thread when it was seen first */
    int64_t
        peak; /* most of `net` while it was open, but for what sw__heap_thread.room tells */
    struct sw__heap_count at; /* counters then */
};

/* A thread that allocates. What every hook touches comes first, to lie in few lines of the cache.
 *
 * Invariants: net = allocated - freed over all parts; net + room is the most of `net` since the marks last changed;
 * marks[0…depth) are the sections that were open then. `within` is SW__HEAP_LATE in the one that threads have which are
 * ending. */
struct sw__heap_thread {
    /* When the newest section began, if a hook may count without looking any further: the thread is attached, malloc is called
     * for nobody in particular, and blocks have a head that is known. Else SW__HEAP_NEVER. */
    uint64_t expect;
    int64_t until; /* bytes to allocate until the thread tells what it has, or samples */
    int64_t room;
    uint32_t within; /* the part that malloc is called for */
    uint32_t busy;
    struct sw__heap_count part[SW_HEAP_PARTS];
    uint64_t start; /* of the newest section, when sections were last looked at */
    bool
        hasty; /* inside a hook of mmap: it may hold a lock of malloc, so it does not wait for who forks */
    int64_t told;    /* of net */
    int64_t sample;  /* bytes until the next sample, beyond what `until` stands for */
    int64_t stretch; /* what `until` began with */
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

/* Never NULL: sw__heap_nobody, which expects nothing, until the thread is attached. */
extern SW__TLS struct sw__heap_thread *sw__heap_self;
extern SW__HIDDEN struct sw__heap_thread sw__heap_nobody;
extern _Atomic bool sw__heap_on;

/* heap.c */
struct sw__heap_thread *sw__heap_attach(void); /* never NULL */
void sw__heap_flush(struct sw__heap_thread *thread);
void sw__heap_late(unsigned part, uint64_t allocated, uint64_t freed);
int64_t sw__heap_net(const struct sw__heap_thread *thread);
/* heap_hooks.c */
/* Blocks have heads that can be read (heap_hooks.c). */
extern SW__HIDDEN bool sw__heap_heads;
int sw__heap_hooks_add(sw_error_info *info);
void sw__heap_hooks_remove(void);
void sw__heap_hooks_forked(void);
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
extern SW__HIDDEN uint8_t sw__heap_filter[8192];
extern SW__HIDDEN uint32_t sw__heap_sampled; /* blocks in the table; 0: no need to look */
extern uint64_t sw__heap_period;             /* 0: no samples */

struct sw__heap_thread *
sw__heap_threads(void); /* list of all, newest first; only grows */

/* --- on the way of every allocation --- */

SW__INLINE struct sw__heap_thread *sw__heap_here_now(void)
{
    struct sw__heap_thread *thread = sw__heap_self;
    return SW__LIKELY(thread != &sw__heap_nobody) ? thread : sw__heap_attach();
}

/* Whether nothing but counting is to be done. */
SW__INLINE bool sw__heap_is_plain(const struct sw__heap_thread *thread)
{
    return SW__LIKELY(sw__self_lane->start == thread->expect);
}

/* Whether the sections that are open are those that were open at the last look; they are looked at before counting. The moment
 * when the newest one began tells it from all others. */
SW__INLINE void sw__heap_look(struct sw__heap_thread *thread)
{
    const struct sw__lane *lane = sw__self_lane;
    if (SW__UNLIKELY(lane->start != thread->start)) {
        sw__heap_sections(thread, lane);
    }
    const bool plain = thread->within == SW_HEAP_NATIVE && sw__heap_heads;
    thread->expect = plain ? thread->start : SW__HEAP_NEVER;
}

SW__COLD void sw__heap_slow(struct sw__heap_thread *thread, const void *address,
                            size_t bytes, const void *caller);

/* Whether sw__heap_slow is to be called. `part` is one that counts. */
SW__INLINE bool sw__heap_add(struct sw__heap_thread *thread, unsigned part, size_t bytes)
{
    sw__add(&thread->part[part].allocated, bytes);
    sw__add(&thread->part[part].blocks, 1);
    thread->room -= (int64_t)bytes;
    if (SW__UNLIKELY(thread->room < 0)) {
        __asm__(""); /* a jump, which is seldom taken, and no second store */
        thread->room = 0;
    }
    thread->until -= (int64_t)bytes;
    return SW__UNLIKELY(thread->until < 0);
}

SW__INLINE void sw__heap_took(struct sw__heap_thread *thread, unsigned part,
                              const void *address, size_t bytes, const void *caller)
{
    sw__heap_look(thread);
    if (sw__heap_add(thread, part, bytes)) {
        sw__heap_slow(thread, address, bytes, caller);
    }
}

SW__INLINE uint32_t sw__heap_place(const void *address)
{
    return (uint32_t)(uintptr_t)address * 0x9E3779B1u >> 19;
}

/* Whether sw__heap_unsample is to be called. */
SW__INLINE bool sw__heap_may_be_sampled(const void *address)
{
#if SW__TSAN
    const bool some = __atomic_load_n(&sw__heap_sampled, __ATOMIC_RELAXED) != 0;
#else
    const bool some =
        sw__heap_sampled != 0; /* compared in place, as a relaxed load would not be */
#endif
    return SW__UNLIKELY(some) &&
           SW__UNLIKELY(__atomic_load_n(&sw__heap_filter[sw__heap_place(address)],
                                        __ATOMIC_RELAXED) != 0);
}

SW__INLINE void sw__heap_leaves(const void *address)
{
    if (sw__heap_may_be_sampled(address)) {
        sw__heap_unsample(address);
    }
}

SW__INLINE void sw__heap_sub(struct sw__heap_thread *thread, unsigned part, size_t bytes)
{
    sw__add(&thread->part[part].freed, bytes);
    sw__add(&thread->part[part].blocks_freed, 1);
    thread->room += (int64_t)bytes;
}

SW__INLINE void sw__heap_gave(struct sw__heap_thread *thread, unsigned part, size_t bytes)
{
    sw__heap_look(thread);
    sw__heap_sub(thread, part, bytes);
    if (SW__UNLIKELY(bytes >= SW__HEAP_FLUSH)) {
        sw__heap_flush(thread);
    }
}

#endif
