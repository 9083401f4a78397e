/* The monitor: a thread that looks at its sources at a true period (monitor.c), and what one look is made of
 * (monitor_look.c). */
#ifndef SW_WATCH_MONITOR_H
#define SW_WATCH_MONITOR_H

#include "record/watchers.h"
#include "watch/sources.h"
#include <stdbool.h>
#include <stepwatch/watch.h>

extern const struct sw__watcher sw__monitor_watcher;

/* Sources and series of a monitor that runs. One at a time, used by its thread; it outlives the thread while that has
 * stopped for a fork. */
struct sw__looker;
/* Opens the sources; NULL: no memory. */
struct sw__looker *sw__looker_open(const struct sw__source *const *sources,
                                   const struct sw__source_setting *setting,
                                   double interval_s);
/* Closes them. NULL is fine. */
void sw__looker_close(struct sw__looker *looker);
/* The thread that looks from now on is the calling one. */
void sw__looker_thread(struct sw__looker *looker);
/* Counts the CPU time of the thread that looks, up to now: before it ends. */
void sw__looker_count(struct sw__looker *looker);
/* Looks: asks the sources that are due, or all, and writes what they say. `edge`: SW_LOOK_…; `late`: it was. */
void sw__looker_look(struct sw__looker *looker, unsigned edge, bool late, bool all);

/* source_children.c, in a forked child: forgets what was said of workers. */
void sw__workers_forget(void);

#endif
