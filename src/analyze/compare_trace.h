/* A trace in Chrome's format as it is compared. */
#ifndef SW_ANALYZE_COMPARE_TRACE_H
#define SW_ANALYZE_COMPARE_TRACE_H

#include "analyze/compare.h"
#include "analyze/json_scan.h"

/* Reads the list of events that stands next: spans by name, and how long all of it took. Nothing in it is trusted;
 * mistakes of the text stick to `json`. `*spans` counts those that were read. 0 or SW_ENOMEM. */
int sw__compare_trace(sw_compare_input *input, struct sw__scan *json, uint64_t *spans);

#endif
