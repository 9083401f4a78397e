/* The monitor's thread: its period, its start and its end, and forks. */
#include "watch/monitor.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stepwatch/record.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/os.h"
#include "record/recorder.h"
#include "watch/proc_file.h"

#define NS 1000000000u
#define STOP_PATIENCE_NS 500000000u
#define LOOK_PATIENCE_NS 500000000u
#define STACK_BYTES ((size_t)1024 * 1024) /* libraries of others may be asked, too */

/* `lock` comes before all locks of the recorder, and the monitor's thread never takes it. */
static struct {
    pthread_mutex_t lock;
    pthread_t thread;
    bool running;              /* there is a thread */
    struct sw__looker *looker; /* there while it runs, or waits for the end of a fork */
    uint32_t recording;        /* number of the recording that it belongs to */
    uint64_t period_ns;
    uint64_t next_ns; /* when the next look is due; the thread's own, also over a fork */
    bool begun;       /* it has looked for the first time; likewise */
    _Atomic uint32_t bell;   /* futex: rises when it is to stop or to look */
    _Atomic uint32_t wanted; /* looks that somebody asked for beside its period */
    _Atomic uint32_t given;  /* futex: those that were done */
    _Atomic bool stop;
    _Atomic bool pause; /* … for a fork only */
    _Atomic int32_t tid;
    struct sw__source_setting setting;
} monitor = {.lock = PTHREAD_MUTEX_INITIALIZER, .setting = {.root = ""}};

/* Sleeps until the moment `at` of CLOCK_MONOTONIC or until the bell rises from what it was. */
static void sleep_until(_Atomic uint32_t *bell, uint32_t was, uint64_t at)
{
    const struct timespec when = {.tv_sec = (time_t)(at / NS),
                                  .tv_nsec = (long)(at % NS)};
    (void)syscall(SYS_futex, bell, FUTEX_WAIT_BITSET_PRIVATE, was, &when, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

static void ring(_Atomic uint32_t *bell, int most)
{
    (void)syscall(SYS_futex, bell, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

static bool is_wanted(void)
{
    return atomic_load(&monitor.wanted) != atomic_load(&monitor.given);
}

static void *monitor_main(void *arg)
{
    struct sw__looker *looker = arg;
    const uint64_t period = monitor.period_ns;
    (void)prctl(PR_SET_NAME, "stepwatch-mon", 0, 0, 0);
    atomic_store(&monitor.tid, sw__os_tid());
    sw__looker_thread(looker);
    if (!monitor.begun) {
        monitor.begun = true;
        monitor.next_ns = sw__os_now_ns() + period;
        sw__looker_look(looker, SW_LOOK_FIRST, false, false);
    }
    for (;;) {
        const uint32_t bell = atomic_load_explicit(&monitor.bell, memory_order_acquire);
        if (!atomic_load_explicit(&monitor.stop, memory_order_acquire) && !is_wanted()) {
            sleep_until(&monitor.bell, bell, monitor.next_ns);
        }
        if (atomic_load_explicit(&monitor.stop, memory_order_acquire)) {
            break;
        }
        if (is_wanted()) {
            const uint32_t wanted = atomic_load(&monitor.wanted);
            sw__looker_look(looker, SW_LOOK_ASKED, false, false);
            atomic_store(&monitor.given, wanted);
            ring(&monitor.given, INT_MAX);
        }
        const uint64_t now = sw__os_now_ns();
        if (now < monitor.next_ns) {
            continue;
        }
        sw__looker_look(looker, 0, now - monitor.next_ns > period / 10, false);
        /* Moments that were slept through are left out, those to come stay where they are. */
        monitor.next_ns += period;
        if (monitor.next_ns <= now) {
            monitor.next_ns += (now - monitor.next_ns) / period * period + period;
        }
    }
    /* For a fork it ends without a look: that should be short, and counters of the kernel go on meanwhile. */
    if (!atomic_load(&monitor.pause)) {
        sw__looker_look(looker, SW_LOOK_LAST, false, true);
        monitor.begun = false;
    }
    sw__looker_count(looker);
    return NULL;
}

/* lock held. */
static int thread_start(void)
{
    atomic_store(&monitor.stop, false);
    atomic_store(&monitor.given, atomic_load(&monitor.wanted));
    atomic_store(&monitor.tid, 0);
    /* Counted before it is there: a helper that looks meanwhile is not to think that it is the program's. */
    atomic_fetch_add(&sw__watcher_threads, 1);
    const int result =
        sw__os_thread_start(&monitor.thread, STACK_BYTES, monitor_main, monitor.looker);
    monitor.running = result == SW_OK;
    if (!monitor.running) {
        atomic_fetch_sub(&sw__watcher_threads, 1);
    }
    return result;
}

/* lock held. `bounded`: gives up after half a second, as before a fork; false: the thread is still there. */
static bool thread_stop(bool bounded)
{
    if (!monitor.running) {
        return true;
    }
    atomic_store(&monitor.pause, bounded);
    atomic_store(&monitor.stop, true);
    atomic_fetch_add(&monitor.bell, 1);
    ring(&monitor.bell, 1);
    if (!sw__os_thread_join(monitor.thread, bounded ? STOP_PATIENCE_NS : 0)) {
        /* A source holds it up. It ends when it can; the child will not have it anyway. */
        return false;
    }
    monitor.running = false;
    atomic_fetch_sub(&sw__watcher_threads, 1);
    sw__os_thread_wait_gone(atomic_load(&monitor.tid));
    return true;
}

/* lock held. */
static void stop_all(void)
{
    (void)thread_stop(false);
    if (monitor.looker && monitor.begun) {
        /* Its thread has not come back since a fork, or ended for another one. */
        sw__looker_thread(monitor.looker);
        sw__looker_look(monitor.looker, SW_LOOK_LAST, false, true);
    }
    monitor.begun = false;
    sw__looker_close(monitor.looker);
    monitor.looker = NULL;
    monitor.period_ns = 0;
}

int sw_monitor_start(double interval_s, sw_error_info *info)
{
    const struct sw__settings *settings = &sw__session.settings;
    int result = SW_OK;
    if (!sw_is_recording()) {
        return sw_error_set(info, SW_ESTATE,
                            "nothing is recorded, so there is nothing to monitor into");
    }
    const double asked = interval_s != 0 ? interval_s
                         : settings->monitor_interval_s != 0
                             ? settings->monitor_interval_s
                             : 1.0;
    if (!(asked >= SW_MONITOR_LEAST_S && asked <= SW_MONITOR_MOST_S)) {
        return sw_error_set(info, SW_EINVAL,
                            "the monitor's interval should be from 0.01 to 3600 seconds");
    }
    pthread_mutex_lock(&monitor.lock);
    const uint32_t recording = sw_recording_number();
    if (monitor.looker && monitor.recording != recording) {
        stop_all();
    }
    if (!monitor.looker) {
        monitor.setting.pss_s = settings->monitor_pss_s;
        monitor.looker = sw__looker_open(sw__sources, &monitor.setting, asked);
        monitor.recording = recording;
        monitor.period_ns = (uint64_t)(asked * NS);
        result = monitor.looker ? thread_start() : SW_ENOMEM;
        if (result != SW_OK) {
            sw__looker_close(monitor.looker);
            monitor.looker = NULL;
            monitor.period_ns = 0;
            (void)sw_error_set(info, result, "the monitor's thread cannot be started");
        }
    } else if (!monitor.running) {
        (void)thread_start();
    }
    pthread_mutex_unlock(&monitor.lock);
    return result;
}

void sw_monitor_stop(void)
{
    pthread_mutex_lock(&monitor.lock);
    stop_all();
    pthread_mutex_unlock(&monitor.lock);
}

bool sw_monitor_look(void)
{
    pthread_mutex_lock(&monitor.lock);
    if (monitor.looker && !monitor.running) {
        (void)thread_start(); /* It has not come back since a fork. */
    }
    const bool runs = monitor.running && !atomic_load(&monitor.stop);
    if (runs) {
        const uint32_t wanted = atomic_fetch_add(&monitor.wanted, 1) + 1;
        const uint64_t until = sw__os_now_ns() + LOOK_PATIENCE_NS;
        atomic_fetch_add(&monitor.bell, 1);
        ring(&monitor.bell, 1);
        uint32_t given = atomic_load(&monitor.given);
        while (given != wanted && sw__os_now_ns() < until) {
            sleep_until(&monitor.given, given, until);
            given = atomic_load(&monitor.given);
        }
    }
    pthread_mutex_unlock(&monitor.lock);
    return runs;
}

double sw_monitor_interval(void)
{
    pthread_mutex_lock(&monitor.lock);
    const double interval = (double)monitor.period_ns / NS;
    pthread_mutex_unlock(&monitor.lock);
    return interval;
}

static void on_begin(const struct sw__settings *settings, bool child)
{
    /* A forked process is seen by the monitor of its parent. */
    if (settings->monitor_interval_s > 0 && !child) {
        (void)sw_monitor_start(settings->monitor_interval_s, NULL);
    }
}

static void on_before_fork(void)
{
    pthread_mutex_lock(&monitor.lock);
    (void)thread_stop(true);
}

static void on_after_fork(bool child)
{
    if (child) {
        pthread_mutex_init(&monitor.lock, NULL);
        /* Its memory stays where it is: the thread may have been in the middle of changing it. */
        sw__proc_close_all();
        sw__workers_forget();
        monitor.looker = NULL;
        monitor.running = false;
        monitor.begun = false;
        monitor.period_ns = 0;
        return;
    }
    if (monitor.looker) {
        atomic_store(&sw__watchers_wait, true);
    }
    pthread_mutex_unlock(&monitor.lock);
}

static void on_resume(void)
{
    /* Whoever holds the lock starts or stops it anyway. */
    if (pthread_mutex_trylock(&monitor.lock)) {
        atomic_store(&sw__watchers_wait, true);
        return;
    }
    if (monitor.looker && monitor.running && atomic_load(&monitor.stop)) {
        (void)thread_stop(true); /* It had no time to end before the fork. */
    }
    if (monitor.looker && !monitor.running) {
        (void)thread_start();
    }
    pthread_mutex_unlock(&monitor.lock);
}

const struct sw__watcher sw__monitor_watcher = {
    .begin = on_begin,
    .end = sw_monitor_stop,
    .before_fork = on_before_fork,
    .after_fork = on_after_fork,
    .resume = on_resume,
};
