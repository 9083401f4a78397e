/* The home file: what the user keeps. It is written with pwrite only, never mapped, so any file system
 * will do and a full one is an error code. */
#ifndef SW_STORE_HOME_H
#define SW_STORE_HOME_H

#include "store/format.h"
#include <stdbool.h>
#include <sys/types.h>

/* An EVENTS block in the file: how many records are lost if it is. */
struct sw__home_chunk {
    uint64_t slot;
    uint32_t size, records;
};

/* Invariants: `end` is a multiple of SW__FMT_PAGE and beyond every block; slots in `free_slots` are
 * SW__FMT_CHUNK long, below `end`, and hold nothing that counts. One thread at a time uses it. */
struct sw__home {
    int fd; /* -1: closed */
    dev_t device;
    ino_t inode;
    uint64_t end;
    uint64_t max_bytes;   /* that EVENTS blocks may take; 0: no cap */
    uint64_t event_bytes; /* that they have taken */
    uint64_t *free_slots;
    size_t free_count, free_capacity;
    bool started;    /* the superblock was written */
    int error;       /* first errno of a failed write, 0 none */
    uint64_t errors; /* failed writes */
    bool gone;       /* the descriptor is not ours any more, or the file was removed */
    uint32_t cuts;   /* times the file was found shorter than it should be */
    uint64_t cut_records;          /* event records that were lost by that */
    struct sw__home_chunk *chunks; /* EVENTS blocks in the file */
    size_t chunk_count, chunk_capacity;
    char path[1024];
};

/* Creates `<folder>/<stem>.stepwatch` (0600, O_EXCL, a number is appended when the name is taken). */
int sw__home_create(struct sw__home *home, const char *folder, const char *stem,
                    uint64_t max_bytes, sw_error_info *info);
/* Writes a block: body first, header last. `*slot` is its place: 0 means "give it one", and it stays the same
 * from then on. `body` is `used` bytes. The copy's size is cut to what is used when `shrink`. An EVENTS block that
 * would exceed the cap is refused (SW_ELIMIT). 0, or a negative error; the file stays sound. */
int sw__home_put(struct sw__home *home, const struct sw__fmt_block *header,
                 const void *body, uint32_t used, uint64_t *slot, bool shrink);
/* Gives up a chunk's slot: its header is overwritten and the slot used again. False for an EVENTS block that was lost
 * before (the file was cut), and for other kinds. */
bool sw__home_release(struct sw__home *home, uint64_t slot);
/* Makes a block of an open file room that readers skip. 0 or a negative errno. */
int sw__home_write_free(int fd, uint64_t slot, uint32_t size);
/* Whether an EVENTS block is in that slot, and was not lost with the end of a file that was cut. */
bool sw__home_knows(const struct sw__home *home, uint64_t slot);
/* Writes the superblock. `from` is the hot one; role, paths and state are set here. */
int sw__home_put_super(struct sw__home *home, const struct sw__fmt_super *from,
                       enum sw__fmt_state state, const char *hot_path);
/* Whether the descriptor still is our file, which is asked before every write: programs that close all descriptors
 * and open their own must not find our bytes in their files. If it is not, the file is opened again by its name. Notices also when somebody cut the file: then what was
 * beyond the cut is counted as lost, and copies of state are due again (`cuts` rises). */
bool sw__home_check(struct sw__home *home);
void sw__home_close(struct sw__home *home);

/* Copies `length` bytes that another thread may be storing into, eight at a time, without tearing a
 * field and without a data race in the sense of C11. Both ends are aligned to 8. */
void sw__copy_shared(void *to, const void *from, size_t length);
/* The other way: into memory that another thread may be copying out of. */
void sw__copy_to_shared(void *to, const void *from, size_t length);

#endif
