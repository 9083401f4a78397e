/* Watchers: threads of the recorder that look at the process and the machine while the program runs.
 *
 * The monitor reads counters of the kernel at a true period, without any lock of the program, and writes series of
 * values into the trace (docs/monitor.md). It starts with the recording where monitor_interval_s is above 0. */
#ifndef STEPWATCH_WATCH_H
#define STEPWATCH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SW_MONITOR_LEAST_S 0.01  /* shortest period, in seconds */
#define SW_MONITOR_MOST_S 3600.0 /* longest */

/* Starts the monitor of this recording. It looks at once and then every `interval_s` seconds; 0 means the option
 * monitor_interval_s, or 1 s where that is 0. 0 is returned, also when it runs already (then with the period it had).
 * SW_ESTATE: nothing is recorded; SW_EINVAL: no such period. */
SW_API int sw_monitor_start(double interval_s, sw_error_info *info);
/* Looks once more and stops. Fine when it does not run. The end of the recording does the same. */
SW_API void sw_monitor_stop(void);
/* Looks now, beside its period, and waits until it has (half a second at most). False: it does not run. Any thread. */
SW_API bool sw_monitor_look(void);
/* Seconds between two looks; 0: it does not run. */
SW_API double sw_monitor_interval(void);
/* Says that a child process makes batches for the training: its CPU time and memory are counted apart from those of
 * other children. Any thread. */
SW_API void sw_monitor_worker(long pid);

/* Puts what was counted of calls on files and sockets into the trace now; it happens four times a second anyway. Fine where
 * they are not watched. Any thread. */
SW_API void sw_io_flush(void);

/* A source of series. */
typedef struct sw_monitor_source {
    const char *name; /* static */
    double period_s;  /* it is looked at no more often than that; 0: at every look */
    bool there;
    char why[160]; /* a sentence, where it is not there */
} sw_monitor_source;
/* What could be seen here: fills at most `most` and returns how many sources there are. Opens each for a moment. */
SW_API size_t sw_monitor_sources(sw_monitor_source *out, size_t most);

/* Starts own threads again that stopped for a fork. They come back by themselves at the next step; this is for
 * programs that have none. */
SW_API void sw_watch_resume(void);

#ifdef __cplusplus
}
#endif
#endif
