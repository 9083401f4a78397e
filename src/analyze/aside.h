/* What a thread does beside its steps: validation and checkpoints. */
#ifndef SW_ANALYZE_ASIDE_H
#define SW_ANALYZE_ASIDE_H

#include "analyze/summary.h"

enum sw__aside_kind { SW__ASIDE_VALIDATION, SW__ASIDE_CHECKPOINT, SW__ASIDES };

struct sw__aside {
    const sw_trace *trace;
    const sw_trace_lane *lane;
    uint8_t *node; /* by node: kind + 1 of a topmost section, 0 others */
    uint64_t ns[SW__ASIDES];
    uint64_t nested_ns; /* checkpoints within validations: in ns[] they are validation */
};

/* A stretch of the run outside steps. */
struct sw__gap {
    uint64_t begin, end;
    unsigned part;
    uint64_t aside[SW__ASIDES]; /* how much of it is known to be that */
};

/* 0 or SW_ENOMEM; the caller frees in both cases. */
int sw__aside_find(struct sw__aside *aside, const sw_trace *trace,
                   const sw_trace_lane *lane);
void sw__aside_free(struct sw__aside *aside);
/* Looks where it was. The gaps rise and do not overlap. */
void sw__aside_place(const struct sw__aside *aside, struct sw__gap *gaps, size_t count);

#endif
