/* The recorder's inner structures. Glossary:
 *   session    one recording of this process: from sw_init to sw_shutdown. Its number is the generation.
 *   thread     a thread that records in the current session (struct sw__thread).
 *   lane       a thread in a domain: stack of open sections, call tree, step (struct sw__lane).
 *   gate       first word of a section: its domain's number while that records, else 0.
 *
 * Threading: a lane and a thread belong to their thread alone. What the session owns is changed under
 * session.lock, names under names.lock; order: session, names, then the store's own locks. The hot
 * path takes none. */
#ifndef SW_RECORD_RECORDER_H
#define SW_RECORD_RECORDER_H

#include "base/clock_read.h"
#include "base/compiler.h"
#include "record/config.h"
#include "store/home.h"
#include "store/hot.h"
#include "store/mirror.h"
#include "store/pool.h"
#include <pthread.h>
#include <stepwatch/later.h>

#define SW__DOMAINS 64
#define SW__NODES_MOST 4096         /* nodes a lane, families and (more) not counted */
#define SW__NODES_HARD (4096 + 256) /* with them */
#define SW__NAMES_MOST 65536
#define SW__NAMES_HARD (65536 + 4096)
#define SW__THREADS_APART 256 /* threads that keep a slot of their own after they ended */
#define SW__THREADS_MOST 4096
#define SW__DEPTH_FIRST 190  /* frames in a lane's first block */
#define SW__LATER_ROOM 32    /* notes, behind these */
#define SW__DEPTH_MOST 65536 /* a record has 16 bits for the depth */
#define SW__LANE_BLOCK 8192u
#define SW__NODES_BLOCK 16384u
#define SW__HIST_BLOCK 16384u
#define SW__DEFS_BLOCK 16384u
/* A gate is a number that no recording and no switching on of a domain had before, below these bits. It has the first
 * where the domain is not the default one, so that the default domain's lane never fits; a lane has the second where no
 * section may take the fast path, and the third where one may take it that tells of changes (SW__GATE_OF is what is left). */
#define SW__GATE_DOMAIN 0x40000000u
#define SW__GATE_SLOW 0x80000000u
#define SW__GATE_WATCHED 0x20000000u
#define SW__GATE_OF(idle) ((idle) & ~(SW__GATE_SLOW | SW__GATE_WATCHED))
#define SW__FRAME_PHASED 1 /* frame.flags: its end restores phase_before */
#define SW__FRAME_KEYED 2  /* frame.flags: its key counts */
#define SW__FRAME_CHILD 4  /* frame.flags: child_before counts */

/* The phase that counts when a section with phase `inner` begins while `running` does: what runs within a validation or
 * a checkpoint belongs to it, whatever it is; and a compiler that traces the program's functions enters their sections. */
SW__INLINE uint8_t sw__phase_within(uint8_t running, uint8_t inner)
{
    return running == SW_PHASE_VALIDATION || running == SW_PHASE_CHECKPOINT ||
                   running == SW_PHASE_COMPILE
               ? running
               : inner;
}

/* A named stretch of code. Lives for ever, also across fork; `gate` is the only part that changes. */
struct sw_section {
    _Atomic uint32_t gate; /* that of its domain while it records, 0 otherwise */
    uint32_t id;
    uint64_t head; /* first 8 bytes of its SPAN records, without flags */
    uint16_t domain;
    uint8_t phase; /* SW_PHASE_INHERIT: none */
    uint8_t use;   /* enum sw__fmt_name_use */
    uint32_t length;
    const char *text;
    struct sw_section
        *_Atomic family; /* where it goes when there is no room; NULL: not looked up */
    struct sw_section *next; /* of the same domain */
};

struct sw_domain {
    uint16_t index;
    _Atomic bool enabled;
    _Atomic uint32_t gate; /* of its sections while it records, else 0 */
    _Atomic uint64_t next_step;
    _Atomic uint32_t epoch;
    const char *name;
    struct sw_section *sections; /* under names.lock */
    struct sw_section *more;     /* "(more)" */
};

/* An entry of a lane's table of nodes by (parent, section). parent NULL: empty. */
struct sw__slot {
    const struct sw__fmt_node *parent;
    uint32_t section;
    uint32_t node; /* reference: address / 64 */
};

/* What the hot path touches. Lanes lie in pages that the kernel wipes on fork: a wiped lane has
 * generation 0, so that a child made behind our back falls into the slow path by itself.
 *
 * Reading the time stamp counter waits for everything before it, so the hot path is as fast as its longest chain of
 * loads is short. That is why the lane repeats what the newest frame holds (node, start), and why `quick` is indexed
 * by the section alone.
 *
 * Invariants: bottom ≤ top ≤ limit; bottom[-1] stands for the root; node and start are those of top[-1]; a frame at or
 * above top has node 0, so that a reader of the memory sees where the stack ends; generation is `idle`, or 0 while the
 * thread is inside the recorder (a signal handler then finds it so). `idle` is the gate of the lane's sections, with
 * SW__GATE_SLOW where the clock is not a register, sections are open beyond the deepest frame or steps are noted: then every section takes
 * the slow path; with SW__GATE_WATCHED where `resident` is there or somebody wants to know of changes: then they take one that is nearly as
 * fast as the usual one, unless memory is to be read. */
struct sw__lane {
    _Atomic uint32_t generation;
    uint32_t quick_mask;
    struct sw__fmt_node *node;
    uint64_t start;
    struct sw__fmt_frame *top;
    struct sw__slot *quick; /* the node last used for a section: slots[id & quick_mask] */
    uint8_t *base;          /* of the hot file */
    struct sw__fmt_frame *limit;
    uint32_t idle;
    uint16_t domain;
    uint8_t phase_gate; /* SW_PHASE_COUNT within a step, else 0: phases below it switch */
    uint8_t phase;      /* running phase, within a step */
    uint8_t *
        cursor; /* lane of the default domain only: where the thread's next record goes */
    uint8_t *end;  /* of its chunk; cursor == end: full, or there is none */
    uint8_t *data; /* its first record; the header is before it */
    uint64_t
        span_bits; /* what makes the last 8 bytes of a SPAN out of a frame's address and a node's index */
    struct sw__thread *thread;
    uint8_t step_unit;
    uint8_t slots_bits; /* log2 of the number of slots */
    uint16_t step_flags;
    uint32_t phases; /* those that phase_ticks may have time for, a bit each */
    uint64_t phase_since;
    uint64_t phase_ticks[SW_PHASE_SLOTS];
    struct sw__fmt_frame *bottom;
    struct sw__slot *slots; /* all nodes, by hash */
    struct sw__fmt_lane *file;
    uint32_t node_count;
    uint32_t overflow;        /* sections open beyond the deepest frame */
    _Atomic uint32_t samples; /* that a sampler took within the open step */
    uint32_t epoch; /* that this thread said last, plus 1; 0: none that is known */
    uint64_t step_start, step_number;
    uint64_t
        mark; /* ticks of no phase when sw_phase_mark was called in this step; UINT64_MAX: it was not */
    struct sw__fmt_node *root;
    struct sw__fmt_node *more;         /* for paths that there is no room for */
    struct sw__fmt_block *nodes_block; /* the one with room */
    struct sw__fmt_block *hist_block;
    struct sw__resident *resident; /* NULL: memory of sections is not read */
    uint64_t
        resident_due; /* ticks from which on a section that begins is read; else UINT64_MAX */
    uint64_t
        resident_open; /* begin of the newest section that was read; UINT64_MAX: none is open */
    struct sw__fmt_later *notes; /* where steps may be noted; NULL: nowhere */
    sw_section *later_wait;      /* of the steps that are noted */
    struct sw__fmt_node
        *later_parent;   /* under this its node is `later_node`; NULL: not known */
    uint32_t later_node; /* a reference */
    sw_later later;      /* room 0: none are */
};

/* A file that stays open. Others may close it and have another file under its number: it is known by what it is. */
struct sw__kept_file {
    int fd; /* -1 not opened yet, -2 not to be had */
    dev_t device;
    ino_t inode;
};

/* A thread in the current session. It always has a lane in the default domain, which holds its place in its chunk. */
struct sw__thread {
    struct sw__lane *lane[SW__DOMAINS];
    _Atomic uint32_t chunk; /* index in the pool, UINT32_MAX none */
    uint32_t extra_units;   /* units of the chunk's records beyond one each */
    uint32_t backoff;       /* records to drop before asking for a chunk again */
    uint32_t patience;      /* how many that were the last time */
    uint32_t generation;
    uint64_t sequence; /* of the next EVENTS chunk */
    uint64_t steps_sequence;
    _Atomic uint32_t steps_chunk;
    struct sw__kept_file schedstat, statm, io; /* of /proc */
    sw_step_io io_before;                      /* what they said at the last reading */
    struct sw__fmt_thread *slot;
    uint64_t usage_ticks;                /* when usage was last read; 0 never */
    uint64_t usage_took;                 /* ticks of reading it */
    uint32_t usage_steps;                /* steps since */
    uint64_t memory_first, memory_ticks; /* when memory was first and last read */
    bool dead;
    bool wanted;    /* what it records was asked for: its chunks are marked */
    bool stands;    /* for something that is no thread, see sw_thread_stand_for */
    bool adopted;   /* it has a slot, but has recorded nothing and does not know of it */
    uint32_t emits; /* calls that write records other than spans */
    uint64_t usage[6];       /* at that time, struct sw__os_usage */
    struct sw__thread *next; /* in the session's list */
};

enum sw__session_state {
    SW__SESSION_NEVER = 0, /* nothing asked for yet */
    SW__SESSION_ON,
    SW__SESSION_ENDING, /* gates are closed, the rest is being written */
    SW__SESSION_OFF,    /* ended, or it could not start */
    SW__SESSION_FORKED /* this is a child; its own session starts with its first record */
};

struct sw__session {
    pthread_mutex_t lock;
    _Atomic uint32_t state;
    _Atomic uint32_t generation;
    struct sw__settings settings;
    struct sw__hot hot;
    struct sw__home home;
    struct sw__mirror mirror;
    struct sw__pool pool;
    struct sw__fmt_super *super;
    struct sw__fmt_super first_super; /* as it was at the start */
    struct sw__thread *threads;
    struct sw__thread *watchers; /* one of them; NULL: nothing was watched yet */
    uint32_t thread_count;
    uint32_t threads_dead;
    struct sw__fmt_block *threads_block;
    struct sw__fmt_block *defs_block;
    struct sw__fmt_block *rows_block;
    uint32_t rows_done[SW_TABLES]; /* rows of each table, under lock */
    uint32_t defs_done;            /* names written to this session's definitions */
    uint32_t domains_done;
    uint64_t ticks_per_ms;
    uint64_t retry_at; /* ticks before which no thread tries to attach again */
    char run_dir[1024];
    char loss[256]; /* what went wrong first, for the closing line */
    bool brief;     /* it lies in memory alone, see sw_init_brief */
    bool quiet_end; /* all threads were seen outside the recorder at its end */
    pid_t pid;
};

extern struct sw__session sw__session;
/* Whether events are written now: the tier and the schedule joined. */
extern _Atomic bool sw__events_on;
/* The calling thread, or sw__detached. */
extern SW__TLS struct sw__thread *sw__self;
/* Its lane in the default domain, sw__self->lane[0]: one load less for nearly all sections. */
extern SW__TLS struct sw__lane *sw__self_lane;
void sw__become(struct sw__thread *thread); /* sets both */
extern struct sw__thread sw__detached;
extern struct sw__lane
    sw__no_lane; /* what threads without a lane of their own have: always busy */

/* How many of session.lock and names.lock this thread holds. A signal handler that records must not wait for what the
 * thread it interrupted holds. */
extern SW__TLS int sw__holding;
SW__INLINE void sw__lock(pthread_mutex_t *lock)
{
    sw__holding++;
    atomic_signal_fence(memory_order_seq_cst);
    pthread_mutex_lock(lock);
}
SW__INLINE bool sw__try_lock(pthread_mutex_t *lock)
{
    sw__holding++;
    atomic_signal_fence(memory_order_seq_cst);
    const bool locked = pthread_mutex_trylock(lock) == 0;
    sw__holding -= locked ? 0 : 1;
    return locked;
}
SW__INLINE void sw__unlock(pthread_mutex_t *lock)
{
    pthread_mutex_unlock(lock);
    atomic_signal_fence(memory_order_seq_cst);
    sw__holding--;
}

/* thread.c */
struct sw__lane *sw__lane_here(uint16_t domain); /* attaches; NULL: cannot record */
bool sw__lane_missing(
    uint16_t domain); /* after that: for lack of memory, so what it was for is dropped */
bool sw__thread_new_chunk(struct sw__thread *thread);
void sw__thread_forget(void); /* in a forked child */
/* session.lock held, gates closed: waits until no thread is inside the recorder; false: one stayed. */
bool sw__threads_settle(void);
void sw__threads_end(
    void); /* session.lock held: closes the calling thread's sections, forgets all */
/* Chunks that threads have open, at most `most` of them. */
size_t sw__threads_open_chunks(uint32_t *out, size_t most);
void sw__threads_release(
    void); /* session.lock held: forgets all threads, frees the ended ones */
/* The place of the watchers in this trace, made if need be, or NULL. It is no thread of the program, and outlives the
 * threads of the watchers. session.lock held. */
struct sw__thread *sw__thread_of_watchers(void);
bool sw__wiped(void); /* whether this process came about without fork() */

/* lane.c */
bool sw__lane_open(struct sw__lane *lane, struct sw__thread *thread, uint16_t domain);
bool sw__lane_grow_stack(struct sw__lane *lane);
struct sw__fmt_node *sw__lane_node(struct sw__lane *lane, struct sw__fmt_node *parent,
                                   struct sw_section *section);
uint32_t sw__lane_page(struct sw__lane *lane, uint32_t *refs, unsigned octave);
/* Adds a duration to the histogram whose page references are `refs`. */
void sw__hist_add(struct sw__lane *lane, uint32_t *refs, uint64_t value);
void sw__lane_reset(struct sw__lane *lane); /* forgets what is open, keeps the tree */
void sw__lane_add_slot(struct sw__lane *lane, struct sw__slot slot);
SW__INLINE struct sw__fmt_node *sw__node_at(const struct sw__lane *lane,
                                            uint32_t reference)
{
    return (struct sw__fmt_node *)(void *)(lane->base + (uint64_t)reference * 64);
}
SW__INLINE uint32_t sw__node_reference(const struct sw__lane *lane,
                                       const struct sw__fmt_node *node)
{
    return (uint32_t)((uint64_t)((const uint8_t *)node - lane->base) / 64);
}
/* Tells the chunk that it is whole up to the cursor. */
SW__INLINE void sw__chunk_publish(struct sw__lane *main, uint8_t *cursor)
{
    const size_t back =
        sizeof(struct sw__fmt_block) - offsetof(struct sw__fmt_block, used);
    main->cursor = cursor;
    atomic_store_explicit((_Atomic uint32_t *)(void *)(main->data - back),
                          (uint32_t)(cursor - main->data), memory_order_release);
}
/* Whoever wants to know, on a thread itself, that the sections of the default domain that are open on it may be others
 * (src/watch/heap.c). It is not told in the fast path, so as long as it is wanted lanes are watched: new ones by themselves, others
 * when they next come by, or when whoever it is makes them so, on their own thread. NULL: nobody ever wanted to know. */
extern void (*_Atomic sw__sections_tell)(void);
extern _Atomic bool sw__sections_watched;
SW__INLINE void sw__sections_changed(void)
{
    void (*tell)(void) = atomic_load_explicit(&sw__sections_tell, memory_order_relaxed);
    if (SW__UNLIKELY(tell != NULL)) {
        tell();
    }
}
SW__INLINE bool sw__lane_is_watched(const struct sw__lane *lane)
{
    return lane->resident ||
           (lane->domain == 0 &&
            atomic_load_explicit(&sw__sections_watched, memory_order_relaxed));
}
/* What the lane's gate has beyond the domain's. */
SW__INLINE uint32_t sw__lane_slow(const struct sw__lane *lane)
{
    return (sw__clock_is_register() && !lane->later.room ? 0 : SW__GATE_SLOW) |
           (sw__lane_is_watched(lane) ? SW__GATE_WATCHED : 0);
}
/* Entering the recorder: from here on a signal handler of this thread finds the lane busy, and so does
 * whoever ends the session. What follows must look at the gate after this, not before. */
SW__INLINE bool sw__lane_is_busy(const struct sw__lane *lane)
{
    return atomic_load_explicit(&lane->generation, memory_order_relaxed) == 0;
}
SW__INLINE void sw__lane_busy(struct sw__lane *lane)
{
    atomic_store_explicit(&lane->generation, 0, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}
SW__INLINE void sw__lane_idle(struct sw__lane *lane)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&lane->generation, lane->idle, memory_order_release);
}
/* The same on the hot path, which finds out afterwards whether the lane was busy already (0 came back) and
 * then gives back what was there. */
SW__INLINE uint32_t sw__lane_seize(struct sw__lane *lane)
{
    uint32_t before = atomic_load_explicit(&lane->generation, memory_order_relaxed);
    sw__lane_busy(lane);
    return before;
}
SW__INLINE void sw__lane_give(struct sw__lane *lane, uint32_t before)
{
    atomic_signal_fence(memory_order_seq_cst);
    atomic_store_explicit(&lane->generation, before, memory_order_release);
}
/* Plain additions that another thread may read at any time: relaxed, so no cost and no race. */
SW__INLINE void sw__add(uint64_t *to, uint64_t amount)
{
#if defined(__x86_64__) && !SW__TSAN
    /* One instruction, as a compiler would not make it of relaxed atomics. */
    __asm__("addq %1, %0" : "+m"(*to) : "er"(amount) : "cc");
#else
    __atomic_store_n(to, __atomic_load_n(to, __ATOMIC_RELAXED) + amount,
                     __ATOMIC_RELAXED);
#endif
}

/* names.c */
void sw__names_after_fork(bool child);
void sw__names_before_fork(void);
void sw__names_restart_steps(void);
void sw__names_open_gates(bool open); /* of all sections of enabled domains */
bool sw__names_define(
    void); /* session.lock or names.lock not held: writes missing definitions */
struct sw_section *sw__section_family(struct sw_section *section);
struct sw_section *sw__section_more(uint16_t domain);
struct sw_section *sw__section_by_id(uint32_t id);
struct sw_domain *sw__domain_at(uint16_t index);
struct sw_section *sw__name_get(uint16_t domain, const char *text, size_t length,
                                int phase, unsigned use);
/* The session starts and has no other threads yet; later sw__names_fact. */
void sw__fact_put(void *arg, const char *key, const char *value);
void sw__names_fact(const char *key, const char *value); /* session.lock held */

/* given_facts.c */
void sw__given_facts_put(void); /* into a session that starts; session.lock held */

/* session.c */
bool sw__session_lazy(
    void); /* whether the environment asks for a session at the first record */
bool sw__session_ready(
    void); /* starts lazily where that is asked for; false: do not record */
void sw__session_repair_super(void);
void sw__total_add(enum sw__fmt_total which, uint64_t amount);
void sw__say(const char *format, ...) SW_PRINTF(1, 2);
void sw__loss_note(const char *format, ...) SW_PRINTF(1, 2);

/* helper.c: the helper thread */
int sw__helper_start(void);
void sw__helper_stop(bool bounded);
void sw__helper_wake(void);
void sw__helper_ensure(void); /* starts it again after a fork */
void sw__helper_forget(void); /* in a child */

/* peek.c: what the training thread is doing: the one with an open step, else the one with most steps, else the first.
 * tid 0: none has recorded anything. No lock held. */
struct sw__peeked {
    uint32_t tid;
    sw_record_look look; /* without head */
    sw_look_frame frames[SW_LOOK_FRAMES];
};
void sw__peek_training(struct sw__peeked *out);

/* fork.c */
void sw__fork_register(void);
void sw__forked_child(void);

/* memory.c: session.lock held, but sw__memory_look, which the helper calls; `dear`: all of it, though it is not time */
void sw__memory_begin(void);
void sw__memory_look(bool dear);
void sw__memory_end(void);
void sw__memory_forget(void); /* in a child */

/* rows.c: a new row whose place stays, or NULL; session.lock held */
sw_row *sw__row_keep(sw_row *row);

/* calibrate.c */
/* `known`: what an earlier recording of the process measured will do. */
void sw__calibrate(struct sw__fmt_super *super, bool known);

/* What calls that are dearer than sections cost is measured while they run; 0: not this one. A thread that loses its CPU
 * meanwhile waits for others, which is no cost of ours: what is longer than any such call counts as the longest. */
SW__INLINE void sw__cost_add(enum sw__fmt_total which, uint64_t begin, uint64_t weight)
{
    uint64_t now = begin ? sw__clock_now() : 0;
    if (now > begin) {
        const uint64_t longest = sw__session.ticks_per_ms / (weight > 1 ? 200 : 20);
        const uint64_t spent = now - begin;
        sw__total_add(which, (spent < longest ? spent : longest) * weight);
    }
}

/* emit.c: a lane of the calling thread, busy, or NULL */
struct sw__lane *sw__lane_enter(uint16_t domain);
void sw__lane_leave(struct sw__lane *lane);

/* resident.c: resident memory of sections, on lanes that have `resident`; the lane is busy */
void sw__resident_open(struct sw__lane *lane); /* where that is wanted */
void sw__resident_close(struct sw__lane *lane);
void sw__resident_reset(struct sw__lane *lane); /* nothing is open any more */
/* Bytes before a section begins, for sw__resident_begin once its frame is there; UINT64_MAX: not read. */
uint64_t sw__resident_before(struct sw__lane *lane);
void sw__resident_begin(struct sw__lane *lane, const struct sw__fmt_frame *frame,
                        uint64_t bytes);
/* Its frame is still there. `part`: it goes on later. */
void sw__resident_end(struct sw__lane *lane, const struct sw__fmt_frame *frame,
                      bool part);

/* later.c: the lane is busy. Makes steps of what is noted on the lane; tells the trace what the open step has so far; lets nothing more
 * be noted */
void sw__later_flush(struct sw__lane *lane);
void sw__later_tell(struct sw__lane *lane);
void sw__later_end(struct sw__lane *lane);
SW__INLINE void sw__later_settle(struct sw__lane *lane)
{
    /* In a signal handler that has interrupted a thread with a lock: later still. */
    if (SW__UNLIKELY(lane->later.count != 0 && !sw__holding)) {
        sw__later_flush(lane);
    }
}

/* section.c: a section with a phase or without that began, and ended, at those ticks */
void sw__section_later(struct sw__lane *lane, struct sw__fmt_node *node,
                       const sw_section *section, uint64_t begin, uint64_t end);

/* step.c */
/* Ends the step that is open at `now`; tells whether usage was read, which is not for one that is `past`. */
bool sw__step_end_at(struct sw__lane *lane, unsigned flags, uint64_t now, bool past);
void sw__step_open_at(struct sw__lane *lane, int unit, uint64_t now);
/* Tick from which on a step of about that length reads what was used. */
uint64_t sw__usage_due(const struct sw__thread *thread, uint64_t step, uint64_t now);
struct sw__lane *sw__step_lane(sw_domain *domain);
int sw__kept_open(struct sw__kept_file *file, const char *path); /* once; -2: cannot be */
void sw__step_close(struct sw__lane *lane, unsigned flags);      /* ends an open step */

/* kept.c: records that no policy gives up. Where the next record of a thread goes, or NULL: there is no room, and it is
 * counted so; then that it is whole; then that its chunk takes no more. */
void *sw__kept_room(struct sw__thread *thread, uint32_t bytes);
void sw__kept_publish(struct sw__thread *thread, uint32_t bytes);
void sw__kept_seal(uint32_t chunk);
/* Appends `bytes` of whole records, at most SW__KEPT_MOST, in the name of the watchers. No lock held. False: nothing is
 * recorded, or there is no room. */
#define SW__KEPT_MOST 32768u
bool sw__kept_put(const sw_record *records, uint32_t bytes);

/* section.c */
void sw__frame_end(struct sw__lane *lane, struct sw__fmt_frame *frame, uint64_t now,
                   unsigned flags, uint64_t *spent);
void sw__put_record(struct sw__thread *thread, const sw_record *record);

#endif
