/* What it costs to look at a step in full, where most are watched in brief. */
#ifndef SW_ANALYZE_LOOKING_H
#define SW_ANALYZE_LOOKING_H

#include "analyze/summary.h"

/* Of one step, in ns, with an interval of 95 %; none of it below 0. */
struct sw__looking {
    double ns, low, high;
    size_t looked, brief; /* steps that it was told from */
};

/* From the steps that were looked at and those beside them. NaN where there are too few. 0 or SW_ENOMEM. */
int sw__looking_cost(const sw_summary *summary, struct sw__looking *out);

#endif
