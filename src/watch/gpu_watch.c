/* The thread that asks NVML. Whoever is in a call of NVML holds no lock of ours. */
#include "watch/gpu_watch.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/memory.h"
#include "base/os.h"
#include "record/watchers.h"
#include "watch/gpu_visible.h"

#define NS 1000000000u
/* How long the end of a recording, and a fork, wait for a driver that does not answer. */
#define END_PATIENCE_NS ((uint64_t)2 * NS)
#define FORK_PATIENCE_NS ((uint64_t)NS / 2)
#define STACK_BYTES ((size_t)512 * 1024)
#define NOTES_MOST 64
#define NOTE_BYTES 400

struct box {
    double value[SW_GPU_VALUES];
    bool fresh[SW_GPU_VALUES];
    const char *missing[SW_GPU_VALUES]; /* static texts */
};

struct sw__gpu_watch {
    struct sw__gpu_wish wish;
    /* The thread's own. */
    sw__nvml *nvml;
    /* Under the lock. */
    pthread_mutex_t lock;
    pthread_cond_t rung, answered;
    pthread_t thread;
    bool running;                 /* there is a thread */
    bool ended;                   /* … which is done */
    bool stop, last, forever;     /* what it is to do; forever: NVML is shut down too */
    uint64_t rings, cheap, whole; /* looks asked for, half done, done */
    enum sw__gpu_state state;
    char why[300];
    char driver[80];
    struct sw__nvml_info *device;
    bool *aside;
    struct box *box;
    size_t count;
    char notes[NOTES_MOST][NOTE_BYTES];
    size_t notes_in, notes_out;
    int32_t tid;
    bool over; /* the process ends: no thread is started any more */
    pid_t pid;
};

/* The one that exit has to end, see end_at_exit. */
static struct {
    pthread_mutex_t lock;
    struct sw__gpu_watch *watch;
    bool registered;
} leaving = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool thread_stop(struct sw__gpu_watch *watch, bool forever, uint64_t patience_ns);

static void wait_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &attributes);
    pthread_condattr_destroy(&attributes);
}

struct sw__gpu_watch *sw__gpu_watch_create(const struct sw__gpu_wish *wish)
{
    struct sw__gpu_watch *watch = sw__alloc_zero(1, sizeof *watch);
    if (watch) {
        watch->device = sw__alloc_zero(SW__NVML_MOST, sizeof *watch->device);
        watch->aside = sw__alloc_zero(SW__NVML_MOST, sizeof *watch->aside);
        watch->box = sw__alloc_zero(SW__NVML_MOST, sizeof *watch->box);
    }
    if (!watch || !watch->device || !watch->box || !watch->aside) {
        if (watch) {
            sw__free(watch->device);
            sw__free(watch->aside);
            sw__free(watch->box);
        }
        sw__free(watch);
        return NULL;
    }
    watch->wish = *wish;
    watch->pid = getpid();
    pthread_mutex_init(&watch->lock, NULL);
    wait_init(&watch->rung);
    wait_init(&watch->answered);
    return watch;
}

/* --- the end of the process --- */

/* What a library registers for exit runs before what was registered before it was loaded: at the end of a program in C, NVML
 * would be gone when the recorder ends. So this is registered after NVML, and ends it in time. */
static void end_at_exit(void)
{
    pthread_mutex_lock(&leaving.lock);
    struct sw__gpu_watch *watch = leaving.watch;
    if (watch && watch->pid == getpid()) {
        sw__gpu_watch_look(watch, true, NS);
        (void)thread_stop(watch, true, END_PATIENCE_NS);
        pthread_mutex_lock(&watch->lock);
        watch->over = true;
        pthread_mutex_unlock(&watch->lock);
    }
    pthread_mutex_unlock(&leaving.lock);
}

static void leave_with(struct sw__gpu_watch *watch)
{
    pthread_mutex_lock(&leaving.lock);
    if (!leaving.registered) {
        leaving.registered = atexit(end_at_exit) == 0;
    }
    leaving.watch = watch;
    pthread_mutex_unlock(&leaving.lock);
}

void sw__gpu_watch_forked(void)
{
    pthread_mutex_init(&leaving.lock, NULL);
    leaving.watch = NULL;
}

/* --- the thread --- */

static void put_value(void *context, size_t device, enum sw_gpu_value value,
                      double number)
{
    struct sw__gpu_watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    watch->box[device].value[value] = number;
    watch->box[device].fresh[value] = true;
    pthread_mutex_unlock(&watch->lock);
}

static void put_note(void *context, const char *text)
{
    struct sw__gpu_watch *watch = context;
    pthread_mutex_lock(&watch->lock);
    if (watch->notes_in < NOTES_MOST) {
        snprintf(watch->notes[watch->notes_in++], NOTE_BYTES, "%s", text);
    }
    pthread_mutex_unlock(&watch->lock);
}

/* Several processes of a launcher share the devices of a machine: the first watches them all, each other the one it
 * usually has, so that no device is asked by all of them. */
static void share(struct sw__gpu_watch *watch)
{
    bool wanted[SW__NVML_MOST] = {false};
    const size_t count = sw__nvml_count(watch->nvml);
    long place = 0;
    if (watch->wish.local_rank <= 0) {
        return;
    }
    long seen = 0;
    for (size_t i = 0; i < count; i++) {
        const struct sw__nvml_info *info = sw__nvml_get(watch->nvml, i);
        seen += info->parent == SW__NVML_NO_PARENT && info->visible != 0;
    }
    for (size_t i = 0; i < count; i++) {
        const struct sw__nvml_info *info = sw__nvml_get(watch->nvml, i);
        if (info->parent == SW__NVML_NO_PARENT) {
            wanted[i] =
                info->visible != 0 && (seen == 1 || place == watch->wish.local_rank);
            place += info->visible != 0;
        } else {
            wanted[i] = wanted[info->parent];
        }
    }
    sw__nvml_select(watch->nvml, wanted);
    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < count; i++) {
        watch->aside[i] = !wanted[i];
    }
    pthread_mutex_unlock(&watch->lock);
}

static void start_nvml(struct sw__gpu_watch *watch)
{
    const struct sw__nvml_sink sink = {put_value, put_note, watch};
    sw_error_info info = {0};
    const int error = sw__nvml_open(&watch->nvml, watch->wish.library, &sink, &info);
    if (!error) {
        leave_with(watch);
        sw__nvml_see(watch->nvml, watch->wish.has_visible ? watch->wish.visible : NULL,
                     watch->wish.by_bus);
        share(watch);
    }
    pthread_mutex_lock(&watch->lock);
    if (error) {
        watch->state = SW__GPU_FAILED;
        snprintf(watch->why, sizeof watch->why, "%s", info.message);
    } else {
        watch->count = sw__nvml_count(watch->nvml);
        for (size_t i = 0; i < watch->count; i++) {
            watch->device[i] = *sw__nvml_get(watch->nvml, i);
        }
        snprintf(watch->driver, sizeof watch->driver, "%s", sw__nvml_driver(watch->nvml));
        watch->state = SW__GPU_WATCHING;
    }
    pthread_mutex_unlock(&watch->lock);
}

static void note_missing(struct sw__gpu_watch *watch)
{
    for (size_t i = 0; i < watch->count; i++) {
        for (unsigned value = 0; value < SW_GPU_VALUES; value++) {
            const enum sw__nvml_group group = sw__nvml_group_of((enum sw_gpu_value)value);
            const char *why = sw__nvml_missing(watch->nvml, i, group);
            pthread_mutex_lock(&watch->lock);
            watch->box[i].missing[value] = why;
            pthread_mutex_unlock(&watch->lock);
        }
    }
}

static void look(struct sw__gpu_watch *watch, uint64_t ring, unsigned which)
{
    const uint64_t now = sw__os_now_ns();
    if (watch->nvml) {
        sw__nvml_look(watch->nvml, now, SW__NVML_CHEAP | which);
    }
    pthread_mutex_lock(&watch->lock);
    watch->cheap = ring;
    pthread_cond_broadcast(&watch->answered);
    pthread_mutex_unlock(&watch->lock);
    if (watch->nvml) {
        sw__nvml_look(watch->nvml, now, SW__NVML_DEAR | which);
        note_missing(watch);
    }
    pthread_mutex_lock(&watch->lock);
    watch->whole = ring;
    pthread_cond_broadcast(&watch->answered);
    pthread_mutex_unlock(&watch->lock);
}

static void *watch_main(void *arg)
{
    struct sw__gpu_watch *watch = arg;
    (void)prctl(PR_SET_NAME, "stepwatch-gpu", 0, 0, 0);
    pthread_mutex_lock(&watch->lock);
    watch->tid = sw__os_tid();
    for (;;) {
        while (watch->rings == watch->whole && !watch->stop) {
            pthread_cond_wait(&watch->rung, &watch->lock);
        }
        if (watch->rings == watch->whole) {
            break;
        }
        const uint64_t ring = watch->rings;
        const unsigned which = watch->last ? SW__NVML_ALL : 0;
        const bool start = watch->state == SW__GPU_STARTING;
        pthread_mutex_unlock(&watch->lock);
        if (start) {
            start_nvml(watch);
        }
        look(watch, ring, which);
        pthread_mutex_lock(&watch->lock);
    }
    const bool forever = watch->forever;
    pthread_mutex_unlock(&watch->lock);
    if (forever) {
        sw__nvml_close(watch->nvml);
        watch->nvml = NULL;
    }
    pthread_mutex_lock(&watch->lock);
    watch->ended = true;
    pthread_cond_broadcast(&watch->answered);
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* --- those who ask --- */

/* lock held. */
static void thread_start(struct sw__gpu_watch *watch)
{
    watch->stop = watch->ended = watch->forever = false;
    watch->tid = 0;
    atomic_fetch_add(&sw__watcher_threads, 1);
    watch->running =
        sw__os_thread_start(&watch->thread, STACK_BYTES, watch_main, watch) == SW_OK;
    if (!watch->running) {
        atomic_fetch_sub(&sw__watcher_threads, 1);
        watch->state = SW__GPU_FAILED;
        snprintf(watch->why, sizeof watch->why, "a thread cannot be started");
    }
}

static struct timespec moment_in(uint64_t ns)
{
    const uint64_t at = sw__os_now_ns() + ns;
    return (struct timespec){.tv_sec = (time_t)(at / NS), .tv_nsec = (long)(at % NS)};
}

void sw__gpu_watch_look(struct sw__gpu_watch *watch, bool last, uint64_t patience_ns)
{
    const struct timespec until = moment_in(patience_ns);
    pthread_mutex_lock(&watch->lock);
    if (watch->running && watch->ended) {
        watch->running = false; /* whoever says so joins it */
        pthread_join(watch->thread, NULL);
        atomic_fetch_sub(&sw__watcher_threads, 1);
    }
    if (!watch->running && !watch->over && watch->state != SW__GPU_FAILED) {
        thread_start(watch);
    }
    if (watch->running && !watch->stop) {
        /* A thread that has not come back from the last look is not asked again; it looks when it can. */
        watch->rings += last || watch->rings == watch->whole;
        watch->last = last;
        pthread_cond_signal(&watch->rung);
        while ((last ? watch->whole : watch->cheap) < watch->rings && !watch->ended &&
               pthread_cond_timedwait(&watch->answered, &watch->lock, &until) == 0) {
        }
    }
    pthread_mutex_unlock(&watch->lock);
}

/* False: the thread is still there. */
static bool thread_stop(struct sw__gpu_watch *watch, bool forever, uint64_t patience_ns)
{
    const struct timespec until = moment_in(patience_ns);
    pthread_mutex_lock(&watch->lock);
    if (!watch->running) {
        pthread_mutex_unlock(&watch->lock);
        return true;
    }
    watch->stop = true;
    watch->forever = forever;
    pthread_cond_signal(&watch->rung);
    while (!watch->ended &&
           pthread_cond_timedwait(&watch->answered, &watch->lock, &until) == 0) {
    }
    const bool ended = watch->ended;
    const bool ours = ended && watch->running;
    const int32_t tid = watch->tid;
    watch->running = watch->running && !ours; /* whoever says so joins it */
    pthread_mutex_unlock(&watch->lock);
    if (!ours) {
        return ended;
    }
    pthread_join(watch->thread, NULL);
    atomic_fetch_sub(&sw__watcher_threads, 1);
    sw__os_thread_wait_gone(tid);
    return true;
}

void sw__gpu_watch_pause(struct sw__gpu_watch *watch)
{
    /* If the driver holds it up, it ends when it can, and the look after that starts another. */
    (void)thread_stop(watch, false, FORK_PATIENCE_NS);
}

void sw__gpu_watch_free(struct sw__gpu_watch *watch, bool child)
{
    if (!watch || child) {
        return;
    }
    pthread_mutex_lock(&leaving.lock);
    leaving.watch = leaving.watch == watch ? NULL : leaving.watch;
    pthread_mutex_unlock(&leaving.lock);
    /* At exit it has been waited for already. */
    if (!thread_stop(watch, true, watch->over ? 0 : END_PATIENCE_NS)) {
        pthread_detach(watch->thread);
        return;
    }
    /* Where the thread had ended before, for a fork, it left NVML open. */
    sw__nvml_close(watch->nvml);
    pthread_cond_destroy(&watch->rung);
    pthread_cond_destroy(&watch->answered);
    pthread_mutex_destroy(&watch->lock);
    sw__free(watch->device);
    sw__free(watch->aside);
    sw__free(watch->box);
    sw__free(watch);
}

enum sw__gpu_state sw__gpu_watch_state(struct sw__gpu_watch *watch, char *why,
                                       size_t size)
{
    pthread_mutex_lock(&watch->lock);
    const enum sw__gpu_state state = watch->state;
    snprintf(why, size, "%s", watch->why);
    pthread_mutex_unlock(&watch->lock);
    return state;
}

size_t sw__gpu_watch_devices(struct sw__gpu_watch *watch, struct sw__nvml_info *out,
                             bool *aside, size_t most)
{
    pthread_mutex_lock(&watch->lock);
    const size_t count = watch->count < most ? watch->count : most;
    memcpy(out, watch->device, count * sizeof *out);
    memcpy(aside, watch->aside, count * sizeof *aside);
    pthread_mutex_unlock(&watch->lock);
    return count;
}

void sw__gpu_watch_driver(struct sw__gpu_watch *watch, char *out, size_t size)
{
    pthread_mutex_lock(&watch->lock);
    snprintf(out, size, "%s", watch->driver);
    pthread_mutex_unlock(&watch->lock);
}

bool sw__gpu_watch_take(struct sw__gpu_watch *watch, size_t device,
                        enum sw_gpu_value value, double *out)
{
    pthread_mutex_lock(&watch->lock);
    struct box *box = &watch->box[device];
    const bool fresh = box->fresh[value];
    *out = box->value[value];
    box->fresh[value] = false;
    pthread_mutex_unlock(&watch->lock);
    return fresh;
}

bool sw__gpu_watch_note(struct sw__gpu_watch *watch, char *out, size_t size)
{
    pthread_mutex_lock(&watch->lock);
    const bool there = watch->notes_out < watch->notes_in;
    if (there) {
        snprintf(out, size, "%s", watch->notes[watch->notes_out++]);
    }
    pthread_mutex_unlock(&watch->lock);
    return there;
}

bool sw__gpu_watch_missing(struct sw__gpu_watch *watch, size_t device,
                           enum sw_gpu_value value, char *out, size_t size)
{
    pthread_mutex_lock(&watch->lock);
    const char *why = watch->box[device].missing[value];
    snprintf(out, size, "%s", why ? why : "");
    pthread_mutex_unlock(&watch->lock);
    return why != NULL;
}
