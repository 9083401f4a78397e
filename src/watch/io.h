/* Calls on files and sockets: what the program reads, writes, opens and waits for, by path or peer and by section.
 *
 * Glossary: a *call* is one call of a wrapped function of the C library. A *thing* is what a descriptor stands for: a
 * file by its path, a socket by its peer, all pipes together. A *cell* adds up calls of one thread in one section and phase.
 *
 *   io_hook*.c    the functions that stand in the place of read, write, …
 *   io_things.c   things, and which descriptor stands for which
 *   io_count.c    adding a call up, threads and their cells
 *   io.c          start and end, and the thread that puts sums into the trace
 *
 * A hook may be called anywhere: in a signal handler, with any lock of the program's held, in a thread that dies. So hooks take no lock
 * and no memory from the heap; what they need is mapped when watching begins. Names are made by the thread of io.c. While the
 * original function runs nothing of ours is held, so that a thread may be cancelled or jump out of it. */
#ifndef SW_WATCH_IO_H
#define SW_WATCH_IO_H

#include "base/compiler.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/records.h>
#include <sys/types.h>

#define SW__IO_SMALL 4096 /* bytes; what moves fewer is a small call */

/* What is added up of calls; all of it only grows. */
struct sw__io_sum {
    _Atomic uint64_t calls, bytes, ticks, small, longest;
};

/* ---- things ---- */

struct sw__io_thread;

#define SW__IO_FILES                                                                     \
    2048 /* files with an entry of their own; the others count for their folder */
#define SW__IO_FOLDERS                                                                   \
    1024 /* and as many folders and peers; the others count as "(more)" */
#define SW__IO_THINGS (SW__IO_FILES + SW__IO_FOLDERS)
#define SW__IO_DESCRIPTORS 65536u

struct sw__thing {
    uint64_t hash;
    const char *text;
    uint32_t length;
    uint8_t kind;          /* enum sw_io_kind */
    bool own;              /* ours: not counted */
    _Atomic bool changed;  /* since the thread of io.c looked */
    _Atomic uint32_t name; /* name id, 0 not made yet */
    _Atomic uint64_t size; /* of the file, the largest seen; UINT64_MAX unknown */
    _Atomic uint64_t
        first; /* size and one that it had when it was seen first; 0 unknown */
    _Atomic uint64_t failed; /* calls */
    /* Which file it was when its path was looked up: as long as these are the same, the path is too. */
    _Atomic uint64_t device, inode, changed_ns;
    /* The thread that came first adds up without atomic operations, in sums of its own. */
    struct sw__io_thread *_Atomic owner;
    struct sw__io_sum sum[SW_IO_OPERATIONS], shared[SW_IO_OPERATIONS];
    /* Of the thread of io.c: rows, and what they said last. */
    uint64_t row[SW_IO_OPERATIONS];
    uint64_t told[SW_IO_OPERATIONS];
};

/* Things that are not told apart. */
enum {
    SW__THING_MORE = 1,
    SW__THING_SEVERAL,
    SW__THING_PIPES,
    SW__THING_MODULES,
    SW__THING_OWN,
    SW__THING_FIRST
};

/* Maps the tables. 0 or SW_ENOMEM. */
int sw__io_things_open(void);
/* What belongs to the recorder and is not counted: what lies in the run directory. */
void sw__io_things_own(const char *run_dir);
/* The thing of a descriptor, looked up once. Never NULL while the tables are there. Changes errno. */
struct sw__thing *sw__io_thing_of(int fd);
/* The same where it was looked up before, else NULL. */
struct sw__thing *sw__io_thing_known(int fd);
/* The thing of a path that a call was given. Changes errno. */
struct sw__thing *sw__io_thing_at(int folder, const char *path);
struct sw__thing *sw__io_thing_number(uint32_t number);
/* The descriptor may stand for something else from now on. */
void sw__io_forget(int fd);
void sw__io_forget_from(unsigned first, unsigned last);
void sw__io_forget_all(void); /* sums stay */
size_t sw__io_thing_count(void);
/* Calls on files that had no room for an entry of their own and count for their folder. */
uint64_t sw__io_folded(void);
/* Sums of all things become 0. Nobody else is counting. */
void sw__io_things_clear(void);

/* ---- counting ---- */

/* Whether calls are counted. */
extern _Atomic bool sw__io_on;
/* The process that began; another one that shares our memory (vfork) is not watched. */
extern _Atomic int32_t sw__io_pid;

SW__INLINE bool sw__io_active(void)
{
    return atomic_load_explicit(&sw__io_on, memory_order_relaxed);
}

/* One call that is over. */
struct sw__io_call {
    enum sw_io_operation operation;
    uint64_t begin, end; /* ticks */
    int64_t result;      /* bytes, or below 0 */
    int error;           /* errno where the result is below 0 */
    uint64_t offset;     /* UINT64_MAX: at the descriptor's own position */
    bool buffered;       /* by the C library: small ones cost nothing */
};
/* Adds it up. Changes errno. */
void sw__io_count(struct sw__thing *thing, const struct sw__io_call *call);

#define SW__IO_CELLS 256 /* a thread; a power of two */
struct sw__cell {
    uint64_t key; /* section, phase, operation, kind; 0: free */
    struct sw__io_sum sum;
    uint64_t told[4]; /* of the thread of io.c */
};
/* The cells of one thread, or of several one after the other. */
struct sw__io_thread {
    _Atomic int32_t tid;        /* of the kernel; 0: nobody's */
    _Atomic bool busy;          /* inside: a signal handler counts nothing */
    _Atomic uint32_t recording; /* that the cells belong to */
    uint32_t cell_count;
    uint32_t pending_count;
    sw_record_io
        pending[8]; /* records whose thing has no name yet; head.id is its number */
    struct sw__cell cell[SW__IO_CELLS];
};
#define SW__IO_THREADS 1024
extern struct sw__io_thread *_Atomic sw__io_threads[SW__IO_THREADS];
#define SW__IO_MORE UINT32_MAX /* as a section: of all those that have no cell */
extern _Atomic uint32_t sw__io_recording; /* whose cells count */
extern _Atomic uint64_t sw__io_slow;      /* ticks from which a call gets a record */
/* Calls that were not counted: a signal handler at a bad moment, no memory. */
extern _Atomic uint64_t sw__io_missed;
/* Writes the calling thread's own records that waited for a name. */
void sw__io_settle(void);
/* In the child of a fork. */
void sw__io_threads_forked(void);

SW__INLINE uint64_t sw__cell_key(uint32_t section, unsigned phase, unsigned operation,
                                 unsigned kind)
{
    return (uint64_t)section << 32 | (uint64_t)(phase & 0xFF) << 16 |
           (uint64_t)(operation & 0xFF) << 8 | (kind & 0xFF);
}

/* ---- hooks ---- */

struct sw__plt_set;
extern struct sw__plt_set sw__io_set;

/* ---- start and end ---- */

struct sw__watcher;
extern const struct sw__watcher sw__io_watcher;

#endif
