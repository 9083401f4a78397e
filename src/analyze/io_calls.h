/* Joining the tables of calls on files and sockets. */
#ifndef SW_ANALYZE_IO_CALLS_H
#define SW_ANALYZE_IO_CALLS_H

#include <stepwatch/io.h>

/* What the traces say together; `*out` stays NULL when none was watched. `training` says which of them have steps. 0 or
 * SW_ENOMEM. The caller frees it. */
int sw__io_of_traces(sw_io **out, const sw_trace *const *traces, const bool *training,
                     size_t count);
void sw__io_free(sw_io *io); /* NULL is fine */

#endif
