/* What a library does all day: allocates, maps, reads and writes, through its import entries. */
#ifndef STRESS_PLUGIN_H
#define STRESS_PLUGIN_H

#include <stdint.h>

/* Calls that were made. */
struct stress_tally {
    uint64_t blocks, freed; /* of malloc and its kin */
    uint64_t maps, unmaps;  /* anonymous */
    uint64_t reads, bytes;  /* of `path`; bytes that were read */
    uint64_t opens, closes;
};

struct stress_plugin {
    /* Some of everything, `rounds` times; all of it is freed again. `path` is a file of 4096 bytes. */
    void (*churn)(const char *path, uint64_t seed, unsigned rounds,
                  struct stress_tally *tally);
    /* Maps and unmaps a page; for signal handlers too. */
    void (*map)(struct stress_tally *tally);
    /* Allocates and frees a block. */
    void (*block)(struct stress_tally *tally);
};

#endif
