/* What the recorder tells the counters of allocations. */
#ifndef SW_WATCH_HEAP_WATCHER_H
#define SW_WATCH_HEAP_WATCHER_H

#include "record/watchers.h"

extern const struct sw__watcher sw__heap_watcher;

#endif
