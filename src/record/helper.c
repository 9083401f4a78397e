/* The helper thread: keeps empty chunks ready, writes full ones out, refreshes the clock snapshot and
 * copies statistics to the home file. It takes no lock that a recording thread waits for. */
#include "base/os.h"
#include "record/recorder.h"
#include "record/watchers.h"
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SW__MS ((uint64_t)1000000)
/* Each time the helper wakes costs somebody a moment; of a program that has run for a while less is new. */
#define SW__YOUNG_PERIOD (100 * SW__MS)
#define SW__CLOCK_PERIOD (500 * SW__MS)
#define SW__YOUNG (3000 * SW__MS)
#define SW__COPY_PERIOD (2000 * SW__MS)
#define SW__BUSY_PERIOD (1 * SW__MS)
#define SW__BUSY_ROUNDS 20
#define SW__STOP_PATIENCE_MS 500
#define SW__STACK ((size_t)256 * 1024)

static struct {
    pthread_t thread;
    bool running;            /* under session.lock */
    _Atomic bool wanted;     /* it was stopped for a fork and should run again */
    _Atomic uint32_t bell;   /* futex: rises to wake it */
    _Atomic uint32_t asleep; /* 1: in a long sleep, worth waking */
    _Atomic bool stop;
    _Atomic int32_t tid;
} sw__helper;

static uint64_t sw__mono_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void sw__helper_wake(void)
{
    if (atomic_exchange_explicit(&sw__helper.asleep, 0, memory_order_acq_rel)) {
        atomic_fetch_add_explicit(&sw__helper.bell, 1, memory_order_release);
        (void)syscall(SYS_futex, &sw__helper.bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

static void sw__helper_sleep(uint64_t ns, bool long_one)
{
    uint32_t bell = atomic_load_explicit(&sw__helper.bell, memory_order_acquire);
    struct timespec wait = {.tv_sec = (time_t)(ns / 1000000000u),
                            .tv_nsec = (long)(ns % 1000000000u)};
    if (long_one) {
        atomic_store_explicit(&sw__helper.asleep, 1, memory_order_release);
    }
    if (!atomic_load_explicit(&sw__helper.stop, memory_order_acquire)) {
        (void)syscall(SYS_futex, &sw__helper.bell, FUTEX_WAIT_PRIVATE, bell, &wait, NULL,
                      0);
    }
    atomic_store_explicit(&sw__helper.asleep, 0, memory_order_release);
}

static void sw__helper_clock(struct sw__fmt_super *super)
{
    uint32_t next = 1 - atomic_load_explicit(&super->latest, memory_order_relaxed);
    sw_clock_snap(&super->latest_snapshot[next & 1]);
    atomic_store_explicit(&super->latest, next & 1, memory_order_release);
}

/* Copies names, statistics and the superblock to the home file. */
static void sw__helper_copy(void)
{
    struct sw__session *session = &sw__session;
    pthread_mutex_lock(&session->pool.serve_lock);
    if (sw__home_check(&session->home)) {
        sw__session_repair_super();
        (void)sw__mirror_copy(&session->mirror, false);
        session->super->revision++;
        (void)sw__home_put_super(&session->home, session->super, SW__STATE_OPEN,
                                 session->hot.path);
    }
    pthread_mutex_unlock(&session->pool.serve_lock);
}

static void *sw__helper_main(void *arg)
{
    struct sw__session *session = &sw__session;
    unsigned quiet = SW__BUSY_ROUNDS;
    const uint64_t began = sw__mono_ns();
    uint64_t clock_at = 0, copy_at = began + SW__COPY_PERIOD;
    (void)arg;
    (void)prctl(PR_SET_NAME, "stepwatch", 0, 0, 0);
    atomic_store(&sw__helper.tid, sw__os_tid());
    uint64_t cpu_before = atomic_load(&session->super->total[SW__TOTAL_HELPER_NS]);
    while (!atomic_load_explicit(&sw__helper.stop, memory_order_acquire)) {
        bool any = sw__pool_serve(&session->pool);
        const uint64_t now = sw__mono_ns();
        const uint64_t period =
            now - began < SW__YOUNG ? SW__YOUNG_PERIOD : SW__CLOCK_PERIOD;
        if (now >= clock_at) {
            sw__helper_clock(session->super);
            sw__memory_look(false);
            clock_at = now + period;
        }
        if (now >= copy_at) {
            sw__helper_copy();
            copy_at = now + SW__COPY_PERIOD;
        }
        atomic_store_explicit(&session->super->total[SW__TOTAL_HELPER_NS],
                              cpu_before + sw__os_thread_cpu_ns(), memory_order_relaxed);
        /* A program may end by its last thread's end; the helper is not to keep it alive. */
        if (quiet > SW__BUSY_ROUNDS &&
            sw__os_only_thread_left(atomic_load(&sw__watcher_threads))) {
            sw__watchers_end();
            break;
        }
        /* It looks often for a while after the last full chunk: then no thread has to wake it. */
        quiet = any ? 0 : quiet + 1;
        bool long_one = quiet > SW__BUSY_ROUNDS;
        sw__helper_sleep(long_one ? period : SW__BUSY_PERIOD, long_one);
    }
    return NULL;
}

/* session.lock held. Without the helper recording goes on: threads then serve themselves. */
int sw__helper_start(void)
{
    if (sw__helper.running) {
        return 0;
    }
    atomic_store(&sw__helper.stop, false);
    atomic_store(&sw__helper.wanted, false);
    atomic_store(&sw__helper.tid, 0);
    const int result =
        sw__os_thread_start(&sw__helper.thread, SW__STACK, sw__helper_main, NULL);
    sw__helper.running = result == SW_OK;
    atomic_store(&sw__session.pool.attended, result == SW_OK);
    return result;
}

/* session.lock held. `bounded`: gives up after half a second, as before a fork. */
void sw__helper_stop(bool bounded)
{
    if (!sw__helper.running) {
        return;
    }
    atomic_store(&sw__helper.stop, true);
    atomic_fetch_add(&sw__helper.bell, 1);
    (void)syscall(SYS_futex, &sw__helper.bell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (!sw__os_thread_join(sw__helper.thread,
                            bounded ? SW__STOP_PATIENCE_MS * UINT64_C(1000000) : 0)) {
        /* It is held up by a slow disk. Let it go on; the child will not have it anyway. */
        atomic_store(&sw__helper.stop, false);
        return;
    }
    sw__helper.running = false;
    atomic_store(&sw__session.pool.attended, false);
    sw__os_thread_wait_gone(atomic_load(&sw__helper.tid));
    atomic_store(&sw__helper.wanted, bounded);
}

void sw__helper_ensure(void)
{
    if (SW__UNLIKELY(atomic_load_explicit(&sw__watchers_wait, memory_order_relaxed)) &&
        !sw__holding) {
        sw__watchers_resume();
    }
    if (SW__LIKELY(!atomic_load_explicit(&sw__helper.wanted, memory_order_relaxed))) {
        return;
    }
    /* Whoever holds the lock may be this very thread, on its way out; the next one will do it. */
    if (sw__holding || pthread_mutex_trylock(&sw__session.lock)) {
        return;
    }
    sw__holding++;
    if (atomic_load(&sw__helper.wanted) &&
        atomic_load(&sw__session.state) == SW__SESSION_ON) {
        (void)sw__helper_start();
    }
    sw__unlock(&sw__session.lock);
}

void sw__helper_forget(void)
{
    sw__helper.running = false;
    atomic_store(&sw__helper.wanted, false);
    atomic_store(&sw__helper.asleep, 0);
    atomic_store(&sw__helper.stop, false);
}
