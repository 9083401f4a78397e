/* Traces for viewers: one file, or for Kineto a folder with one a rank. */
#ifndef SW_CLI_EXPORT_TRACE_H
#define SW_CLI_EXPORT_TRACE_H

#include <stepwatch/export.h>

/* "3", "3-7": false when it is neither, which has been complained of. */
bool export_steps(const char *text, sw_trace_options *options);
/* Opens the run and writes it; what to exit with. `out` NULL: stdout. Kineto's files go into the folder `out`, which is made where
 * there is none, unless it ends in ".json". */
int export_trace(const char *path, sw_trace_options *options, const char *out);

#endif
