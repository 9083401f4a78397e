/* What a victim tells its driver while it runs: one shared page, which outlives both. */
#ifndef CRASH_PAGE_H
#define CRASH_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define PAGE_THREADS 80

/* The descriptor under which a victim finds its page. */
#define PAGE_FD 60

struct page {
    _Atomic uint32_t ready;  /* the victim has come to where the driver acts */
    _Atomic uint32_t go;     /* the driver has acted: the victim may go on */
    _Atomic uint64_t before; /* sections ended before some moment, see the victim */
    _Atomic uint64_t
        extra; /* records that are no section's end: marks, counters, cut sections */
    _Atomic uint64_t facts[8]; /* a victim's own figures */
    _Atomic uint64_t
        done[PAGE_THREADS]; /* sections whose sw_end has returned, per thread */
    _Atomic uint64_t steps[PAGE_THREADS]; /* steps whose sw_step_end has returned */
};

#endif
