/* Reading the tables of memory. */
#ifndef SW_ANALYZE_MEMORY_H
#define SW_ANALYZE_MEMORY_H

#include "analyze/summary.h"
#include <stepwatch/memory.h>

/* A place in the tree of stacks: index in BLOCKS. */
struct sw__memory_node {
    uint32_t parent; /* index plus 1; 0: none, or damaged */
    const char *file, *name;
    uint32_t line, first_line;
    bool native;
    uint64_t allocated, blocks, live, peak, samples;
};

struct sw_memory {
    sw_memory_process *processes;
    size_t process_count;
    sw_memory_section *sections;
    size_t section_count;
    sw_memory_resident *residents;
    size_t resident_count;
    sw_memory_holder *holders;
    size_t holder_count;
    sw_memory_site *sites;
    size_t site_count;
    sw_memory_allocator *allocators;
    size_t allocator_count;
    struct sw__memory_node *nodes;
    size_t node_count;
};

/* memory.c: the section of a node, its names, thread and calls; false: damaged. */
bool sw__memory_place(sw_summary *summary, const sw_trace *trace, uint32_t thread,
                      uint32_t node, sw_memory_section *out);
/* memory_resident.c: after the sections */
int sw__memory_residents(sw_summary *summary, sw_memory *memory, const sw_trace *trace);
/* memory_holders.c */
int sw__memory_holders(sw_summary *summary, sw_memory *memory, const sw_trace *trace);
/* memory_sites.c */
int sw__memory_sites(sw_summary *summary, sw_memory *memory, const sw_trace *trace);

#endif
