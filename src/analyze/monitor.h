/* The monitor's looks and values while they are being counted. */
#ifndef SW_ANALYZE_MONITOR_H
#define SW_ANALYZE_MONITOR_H

#include <stepwatch/monitor.h>

#include "base/memory.h"

/* A look that is kept. Sections are places in the monitor's list, with the bit of those open since the look before. */
struct sw__look_seen {
    uint64_t ns, ticks;
    uint64_t sources;          /* asked, one bit each */
    bool first;                /* nothing is known of the time before */
    bool in_step, step_before; /* now; and at the look before */
    uint8_t phase;             /* SW_PHASE_INHERIT: outside steps */
    bool phase_whole;          /* it lasted from the look before */
    uint32_t open, whole;      /* sections: bits */
};

/* A value that was written. */
struct sw__value_seen {
    uint32_t series; /* place */
    uint32_t look;   /* place */
    double value;
};

struct sw_monitor {
    sw__arena *arena;
    sw_monitor_totals totals;
    struct sw__look_seen *looks;
    size_t look_count;
    struct sw__value_seen *values; /* by series, then by look */
    size_t value_count;
    sw_monitor_series *series;
    size_t *first_value; /* of each series, and one more */
    uint32_t *bit;       /* of the source of each series; 64: unknown */
    size_t series_count;
    sw_monitor_section *sections;
    size_t section_count;
    sw_monitor_stats *in_section; /* series × sections */
    sw_monitor_seen *seen;
    size_t seen_count;
};

/* Fills the statistics of all series. `step_s`: mean length of a step, NaN unknown. 0 or SW_ENOMEM. */
int sw__monitor_count(sw_monitor *monitor, double step_s);

#endif
