/* What watchers (src/watch) are told by the recorder. The table of them lies above this layer: it is declared here and
 * defined in src/watch/watchers.c, so that nothing of record includes anything of watch. */
#ifndef SW_RECORD_WATCHERS_H
#define SW_RECORD_WATCHERS_H

#include "record/config.h"
#include <stdatomic.h>
#include <stdbool.h>

/* Each may be NULL. None is called with a lock of the recorder held. */
struct sw__watcher {
    /* Recording began, with these settings, which hold during the call. `child`: in a forked process, by itself
     * or because what made it says so at its start, as workers of multiprocessing do. */
    void (*begin)(const struct sw__settings *settings, bool child);
    /* Recording is about to end; what is written now is still recorded. Also when nothing is recorded. */
    void (*end)(void);
    /* A fork is coming: own threads are to stop, own locks to be held. */
    void (*before_fork)(void);
    /* It is over. The child has no threads but its own, and may have come about without before_fork. */
    void (*after_fork)(bool child);
    /* The time has come to start own threads again that stopped for a fork; sw__watchers_wait was set. */
    void (*resume)(void);
};

/* Ends with NULL. */
extern const struct sw__watcher *const sw__watchers[];
/* Set by a watcher that wants to be resumed. */
extern _Atomic bool sw__watchers_wait;
/* Threads of watchers that run now: a program whose own threads are all gone is not kept alive by them. */
extern _Atomic unsigned sw__watcher_threads;

void sw__watchers_begin(const struct sw__settings *settings, bool child);
void sw__watchers_end(void);
void sw__watchers_before_fork(void);
void sw__watchers_after_fork(bool child);
/* Resumes those that wait. */
void sw__watchers_resume(void);

#endif
