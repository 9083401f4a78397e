/* Reading the memory of the process without trusting it: an address that is gone gives an error, not a fault. */
#ifndef STEPWATCH_EXT_MEMORY_READ_H
#define STEPWATCH_EXT_MEMORY_READ_H

#include <stddef.h>
#include <stdint.h>

/* How memory is read, best first. CORE_READ_GIL copies directly and is right only while the GIL is held. */
enum core_read_mode { CORE_READ_VM, CORE_READ_MEM, CORE_READ_GIL, CORE_READ_MODES };

typedef struct core_memory {
    enum core_read_mode mode;
    int fd; /* of /proc/self/mem, else -1 */
    uint64_t device, inode;
    int pid;
} core_memory;

/* A stretch of memory and where its copy goes. */
typedef struct core_extent {
    uint64_t address;
    uint32_t size;
    void *to;
} core_extent;

/* Most extents that one call takes. */
#define CORE_EXTENTS 1000

/* Finds the best way that works here, no better than `best`. `*why` is set to a sentence when it is not the first one. */
void core_memory_open(core_memory *reader, enum core_read_mode best, const char **why);
void core_memory_close(core_memory *reader);
/* Copies the extents in order. The number of extents that were copied whole: fewer than `count` when one cannot be read. */
size_t core_read_all(core_memory *reader, const core_extent *extents, size_t count);
/* One stretch. 0 or -1. */
int core_read(core_memory *reader, uint64_t address, void *to, size_t size);
const char *core_read_mode_name(enum core_read_mode mode);

#endif
