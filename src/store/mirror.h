/* State blocks and their copies in the home file.
 *
 * The hot file survives the death of its process, not that of its machine or container. So the state
 * (names, threads, trees) is copied to the home file now and then, and names before every chunk that may
 * use them: what has reached the home file can be read on its own. */
#ifndef SW_STORE_MIRROR_H
#define SW_STORE_MIRROR_H

#include "store/home.h"
#include "store/hot.h"
#include <pthread.h>

struct sw__mirrored {
    struct sw__fmt_block *block;
    uint64_t slot;                 /* in the home file, 0 none yet */
    uint64_t hash;                 /* of what was copied */
    uint32_t cuts;                 /* of the home file by then */
    uint64_t dropped, overwritten; /* THREADS: sums of what was copied */
};

/* `entries` grows under `lock`; slots and hashes belong to the one thread that copies. */
struct sw__mirror {
    struct sw__hot *hot;
    struct sw__home *home;
    struct sw__mirrored *entries;
    size_t count, capacity;
    pthread_mutex_t lock;
    uint8_t *buffer; /* of the copying thread */
    size_t buffer_size;
};

int sw__mirror_init(struct sw__mirror *mirror, struct sw__hot *hot,
                    struct sw__home *home);
void sw__mirror_free(struct sw__mirror *mirror);
/* A state block of the hot file, registered for copying; NULL when there is no room. */
struct sw__fmt_block *sw__mirror_take(struct sw__mirror *mirror, enum sw__fmt_kind kind,
                                      uint32_t size);
/* Copies all state blocks that changed since they were last copied; only definitions when `names_only`. Returns
 * the first error, having tried the rest. */
int sw__mirror_copy(struct sw__mirror *mirror, bool names_only);
/* Losses that threads counted and that did not reach the home file, for the superblock to carry. */
void sw__mirror_unsaved(struct sw__mirror *mirror, uint64_t *dropped,
                        uint64_t *overwritten);

#endif
