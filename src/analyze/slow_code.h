/* What slow steps do that others do not. */
#ifndef SW_ANALYZE_SLOW_CODE_H
#define SW_ANALYZE_SLOW_CODE_H

#include "analyze/findings.h"

struct sw__slow_code {
    const char *file, *name;
    uint32_t line;
    double slow_share;  /* of the samples in slow steps that have it on their stack */
    double usual_share; /* the same of the other steps */
};

/* The user's function that is on the stack far oftener in steps longer than `bound_ns` than in others. False: the samples
 * show none, or there are too few. */
bool sw__slow_code(sw_findings *all, double bound_ns, struct sw__slow_code *out);

#endif
