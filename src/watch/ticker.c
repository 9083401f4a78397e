#include "watch/ticker.h"

#include "base/compiler.h"
#include "base/os.h"
#include "record/watchers.h"
#include <linux/futex.h>
#include <signal.h>
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
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    if (ticker->running) {
        return SW_OK;
    }
    atomic_store(&ticker->stop, false);
    atomic_store(&ticker->tid, 0);
    /* The program's signals are not for this thread; its own faults are. */
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < SW__COUNTOF(own); i++) {
        sigdelset(&all, own[i]);
    }
    pthread_attr_t attributes;
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* Counted before it is there, so that nobody takes it for the program's. */
    atomic_fetch_add(&sw__watcher_threads, 1);
    const int failed = pthread_create(&ticker->thread, &attributes, ticker_main, ticker);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed) {
        atomic_fetch_sub(&sw__watcher_threads, 1);
    }
    ticker->running = !failed;
    return failed ? SW_ESYS : SW_OK;
}

bool sw__ticker_stop(struct sw__ticker *ticker, bool bounded)
{
    if (!ticker->running) {
        return true;
    }
    atomic_store(&ticker->stop, true);
    atomic_fetch_add(&ticker->bell, 1);
    (void)syscall(SYS_futex, &ticker->bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (bounded) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += STOP_PATIENCE_NS;
        until.tv_sec += until.tv_nsec / (long)NS;
        until.tv_nsec %= (long)NS;
        if (pthread_timedjoin_np(ticker->thread, NULL, &until)) {
            return false;
        }
    } else if (!pthread_equal(pthread_self(), ticker->thread)) {
        pthread_join(ticker->thread, NULL);
    }
    ticker->running = false;
    atomic_fetch_sub(&sw__watcher_threads, 1);
    /* Joined is not gone: the kernel counts the thread a moment longer, and programs that count threads around a
     * fork (Python warns) would see it. */
    const int32_t tid = atomic_load(&ticker->tid);
    for (unsigned i = 0; tid && i < 1000 && sw__os_thread_exists(tid); i++) {
        sw__os_sleep_ns(20000);
    }
    return true;
}

void sw__ticker_forget(struct sw__ticker *ticker)
{
    ticker->running = false;
    atomic_store(&ticker->stop, false);
}
