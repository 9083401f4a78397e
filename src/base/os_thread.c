/* Threads of our own in somebody else's program. */
#include "base/os.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include <stepwatch/error.h>

#include "base/compiler.h"

int sw__os_thread_start(pthread_t *thread, size_t stack_bytes, void *(*main)(void *),
                        void *arg)
{
    /* The program's signals are not for this thread; its own faults are. */
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    for (size_t i = 0; i < SW__COUNTOF(own); i++) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    const int failed = pthread_create(thread, &attributes, main, arg);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed ? SW_ESYS : SW_OK;
}

bool sw__os_thread_join(pthread_t thread, uint64_t patience_ns)
{
    if (patience_ns == 0) {
        if (!pthread_equal(pthread_self(), thread)) {
            pthread_join(thread, NULL);
        }
        return true;
    }
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const uint64_t ns = (uint64_t)until.tv_nsec + patience_ns;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    return pthread_timedjoin_np(thread, NULL, &until) == 0;
}

void sw__os_thread_wait_gone(int32_t tid)
{
    for (unsigned i = 0; tid && i < 1000 && sw__os_thread_exists(tid); i++) {
        sw__os_sleep_ns(20000);
    }
}
