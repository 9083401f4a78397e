/* What a framework's profiler saw, on its way into the trace. */
#ifndef STEPWATCH_EXT_OPERATORS_H
#define STEPWATCH_EXT_OPERATORS_H

#include "core.h"
#include <stdbool.h>
#include <stepwatch/stepwatch.h>

typedef union operator_record {
    sw_record head;
    sw_record_operator call;
    sw_record_gpu gpu;
    sw_record_alloc alloc;
} operator_record;

typedef struct operator_list {
    const char *thread; /* what the thread in the trace is called */
    operator_record *records;
    size_t count;
} operator_list;

/* What all records begin with. */
sw_record core_operator_head(unsigned kind, size_t size, unsigned flags,
                             unsigned long long ticks);
/* Whether a record would go anywhere. */
bool core_operators_wanted(void);
/* Puts the records into the trace, in the order of their ends, which they have afterwards. Without the GIL. False: they are not
 * there. */
bool core_operators_put(operator_list *list);

#endif
