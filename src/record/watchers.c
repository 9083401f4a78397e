/* Telling watchers what happens to the recording. */
#include "record/watchers.h"
#include <stddef.h>

_Atomic bool sw__watchers_wait;
_Atomic unsigned sw__watcher_threads;

void sw__watchers_begin(const struct sw__settings *settings, bool child)
{
    for (const struct sw__watcher *const *at = sw__watchers; *at; at++) {
        if ((*at)->begin) {
            (*at)->begin(settings, child);
        }
    }
}

void sw__watchers_end(void)
{
    for (const struct sw__watcher *const *at = sw__watchers; *at; at++) {
        if ((*at)->end) {
            (*at)->end();
        }
    }
}

void sw__watchers_before_fork(void)
{
    for (const struct sw__watcher *const *at = sw__watchers; *at; at++) {
        if ((*at)->before_fork) {
            (*at)->before_fork();
        }
    }
}

/* In the order of the table turned round, for those before may hold locks that come first. */
void sw__watchers_after_fork(bool child)
{
    size_t count = 0;
    while (sw__watchers[count]) {
        count++;
    }
    if (child) {
        atomic_store(&sw__watcher_threads, 0);
    }
    while (count-- > 0) {
        if (sw__watchers[count]->after_fork) {
            sw__watchers[count]->after_fork(child);
        }
    }
}

void sw__watchers_resume(void)
{
    if (!atomic_exchange(&sw__watchers_wait, false)) {
        return;
    }
    for (const struct sw__watcher *const *at = sw__watchers; *at; at++) {
        if ((*at)->resume) {
            (*at)->resume();
        }
    }
}
