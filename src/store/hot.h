/* The hot file: the mapped memory that a process records into.
 *
 * It lies in memory (tmpfs) where there is one, so that a store never waits for a disk, and its
 * pages are allocated before they are touched, so that a full file system is an error here and not
 * a SIGBUS in the program. Blocks are taken from it in order and never move. */
#ifndef SW_STORE_HOT_H
#define SW_STORE_HOT_H

#include "store/format.h"
#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

/* Invariants: SW__FMT_PAGE ≤ next ≤ committed ≤ limit ≤ reserved; every byte below `committed` is
 * allocated and may be touched; `next` and `committed` change under `lock`. */
struct sw__hot {
    uint8_t *base;              /* start of the mapping; NULL when closed */
    size_t reserved;            /* bytes of address space */
    uint64_t limit;             /* bytes it may have */
    uint64_t reserve;           /* the last bytes of them, which are not for chunks */
    _Atomic uint64_t committed; /* bytes it has */
    _Atomic uint64_t next;      /* first byte not given out */
    int fd;                     /* -1: anonymous memory, lost when the process dies */
    dev_t device;               /* identity of the file behind fd */
    ino_t inode;
    bool nameless;    /* no folder knows the file (sw__hot_create_nameless) */
    bool in_memory;   /* on tmpfs, which counts the blocks of a file exactly */
    bool lost;        /* fd was closed by someone else: no more growth */
    bool cut;         /* the file was found shorter than it should be */
    uint64_t file_id; /* what blocks carry */
    pthread_mutex_t lock;
    char path[1024]; /* empty: anonymous */
    char where[96];  /* "tmpfs /dev/shm", for notes */
};

/* Where a hot file may be put, best first; NULL entries are skipped. */
struct sw__hot_place {
    const char *asked;   /* the user's own choice */
    const char *run_dir; /* folder of the home file */
};

/* Creates the file and maps it, with room for `limit` bytes at most and `first` bytes at once. Tries the
 * places of design: the asked one, /dev/shm, XDG_RUNTIME_DIR, the run directory if its file system is
 * local, /tmp, /var/tmp; then anonymous memory. Less address space or room than asked for is accepted down
 * to `first`. Returns 0, SW_ENOMEM (not even anonymous memory), and fills `info`. */
int sw__hot_create(struct sw__hot *hot, const struct sw__hot_place *place, uint64_t limit,
                   uint64_t first, sw_error_info *info);
/* The same in a file that has no name: its path leads to it in this process alone. */
int sw__hot_create_nameless(struct sw__hot *hot, uint64_t limit, uint64_t first,
                            sw_error_info *info);
/* A block of `size` bytes (a multiple of SW__FMT_PAGE), zeroed but for its header; NULL when there is no
 * room. Takes the lock. */
struct sw__fmt_block *sw__hot_take(struct sw__hot *hot, enum sw__fmt_kind kind,
                                   uint32_t size);
/* As sw__hot_take, but leaves the reserve alone and gives up at once (NULL, `*busy` true) when another thread
 * holds the lock. */
struct sw__fmt_block *sw__hot_try_take(struct sw__hot *hot, enum sw__fmt_kind kind,
                                       uint32_t size, bool *busy);
/* Whether the file still is ours and as long as it should be; sets `lost` and `cut`. */
void sw__hot_check(struct sw__hot *hot);
/* Whether another `size` bytes may be had for a chunk. */
bool sw__hot_has_room(const struct sw__hot *hot, uint64_t size);
/* Gives back what a file holds beyond its last block. Nobody takes any more. */
void sw__hot_trim(struct sw__hot *hot);
/* Ends the life of the file and removes it (unless `keep`). When a thread may still be about to store something
 * (`settled` false), the mapping is replaced by empty memory rather than removed. */
void sw__hot_close(struct sw__hot *hot, bool settled, bool keep);
/* In a forked child: forgets the parent's file without touching it. */
void sw__hot_abandon(struct sw__hot *hot);

static inline struct sw__fmt_super *sw__hot_super(const struct sw__hot *hot)
{
    return (struct sw__fmt_super *)(void *)hot->base;
}

/* SIGBUS: a page of a watched range that vanished (its file was truncated) is replaced by an empty one
 * and counted; every other SIGBUS goes where it would have gone. */
int sw__sigbus_watch(const void *base, size_t length, _Atomic uint64_t *count);
void sw__sigbus_unwatch(const void *base);
uint64_t sw__sigbus_count(const void *base);

#endif
