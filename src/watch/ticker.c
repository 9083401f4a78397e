#include "watch/ticker.h"

#include "base/compiler.h"
#include "base/os.h"
#include "record/watchers.h"
#include <linux/futex.h>
#include <stepwatch/error.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NS 1000000000u
#define STOP_PATIENCE_NS 500000000
#define STACK_BYTES ((size_t)256 * 1024)

static void *ticker_main(void *arg)
{
    struct sw__ticker *ticker = arg;
    const struct timespec period = {.tv_sec = (time_t)(ticker->period_ns / NS),
                                    .tv_nsec = (long)(ticker->period_ns % NS)};
    (void)prctl(PR_SET_NAME, ticker->name, 0, 0, 0);
    atomic_store(&ticker->tid, sw__os_tid());
    for (;;) {
        const uint32_t bell = atomic_load(&ticker->bell);
        if (!atomic_load(&ticker->stop)) {
            (void)syscall(SYS_futex, &ticker->bell, FUTEX_WAIT_PRIVATE, bell, &period,
                          NULL, 0);
        }
        if (atomic_load(&ticker->stop)) {
            return NULL;
        }
        ticker->tick();
    }
}

int sw__ticker_start(struct sw__ticker *ticker)
{
    if (ticker->running) {
        return SW_OK;
    }
    atomic_store(&ticker->stop, false);
    atomic_store(&ticker->tid, 0);
    /* Counted before it is there, so that nobody takes it for the program's. */
    atomic_fetch_add(&sw__watcher_threads, 1);
    const int result =
        sw__os_thread_start(&ticker->thread, STACK_BYTES, ticker_main, ticker);
    ticker->running = result == SW_OK;
    if (!ticker->running) {
        atomic_fetch_sub(&sw__watcher_threads, 1);
    }
    return result;
}

bool sw__ticker_stop(struct sw__ticker *ticker, bool bounded)
{
    if (!ticker->running) {
        return true;
    }
    atomic_store(&ticker->stop, true);
    atomic_fetch_add(&ticker->bell, 1);
    (void)syscall(SYS_futex, &ticker->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (!sw__os_thread_join(ticker->thread, bounded ? STOP_PATIENCE_NS : 0)) {
        return false;
    }
    ticker->running = false;
    atomic_fetch_sub(&sw__watcher_threads, 1);
    sw__os_thread_wait_gone(atomic_load(&ticker->tid));
    return true;
}

void sw__ticker_forget(struct sw__ticker *ticker)
{
    ticker->running = false;
    atomic_store(&ticker->stop, false);
}
