/* The tracepoints of rival.c: a section as LTTng users write it, an event at either end. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stepwatch_bench
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "rival_tracepoints.h"

#if !defined(RIVAL_TRACEPOINTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define RIVAL_TRACEPOINTS_H

#include <lttng/tracepoint.h>

/* clang-format off */
LTTNG_UST_TRACEPOINT_EVENT(
    stepwatch_bench, begin,
    LTTNG_UST_TP_ARGS(unsigned, section),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, section, section))
)

LTTNG_UST_TRACEPOINT_EVENT(
    stepwatch_bench, end,
    LTTNG_UST_TP_ARGS(unsigned, section),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned, section, section))
)
/* clang-format on */

#endif

#include <lttng/tracepoint-event.h>
