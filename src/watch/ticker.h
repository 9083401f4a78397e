/* A thread of the recorder that calls a function again and again, and stops for forks. The caller's lock is held in each of
 * these; the function must not take it. */
#ifndef SW_WATCH_TICKER_H
#define SW_WATCH_TICKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct sw__ticker {
    const char *name; /* of the thread, at most 15 bytes */
    uint64_t period_ns;
    void (*tick)(void);
    pthread_t thread;
    bool running;
    _Atomic uint32_t bell; /* futex: rises when it is to stop */
    _Atomic bool stop;
    _Atomic int32_t tid;
};

/* 0 (also when it runs), or SW_ESYS. The first tick comes after a period. */
int sw__ticker_start(struct sw__ticker *ticker);
/* `bounded`: gives up after half a second, as before a fork; false: the thread is still there. */
bool sw__ticker_stop(struct sw__ticker *ticker, bool bounded);
/* In a forked child, which has no such thread. */
void sw__ticker_forget(struct sw__ticker *ticker);

#endif
