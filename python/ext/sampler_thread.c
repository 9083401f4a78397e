/* The sampler's thread: its pace, and what becomes of it when the program forks or ends.
 *
 * It never takes the GIL and never follows a pointer of the interpreter itself. Where memory can only be read with the GIL,
 * it asks the main thread to look (a pending call) and goes on counting time.
 *
 * Lifetime: `lifecycle` is held to start and to stop it, after the GIL where the caller has that, and from before a fork
 * until after it. The thread takes neither, so whoever holds them may wait for its end. */
#include "core.h"

#include "sampler_round.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STACK_SIZE ((size_t)512 * 1024)
#define PATIENCE_MS 500 /* for the thread's end before a fork */
#define FIRST_ROUND_MS 50

static struct {
    pthread_mutex_t lifecycle;
    pthread_t thread;
    bool running;            /* there is a thread to be joined */
    bool again;              /* it was stopped by a fork only */
    int32_t forking;         /* thread that is about to fork, 0 none */
    _Atomic uint32_t stop;   /* futex: 1 ends the thread */
    _Atomic uint32_t rounds; /* futex: finished rounds */
    _Atomic bool pending;    /* the main thread has been asked to look */
    double hz;
    PyInterpreterState *interpreter;
    sampler_tree *tree;
    uint64_t number;
    enum core_read_mode mode;
    const char *note;
    sampler_work *work;
    tree_totals totals;
    bool registered, registered_recording;
    bool tree_locked; /* over a fork */
    pthread_t main;   /* the process's first thread, if `main_known` */
    bool main_known;
} sampler = {.lifecycle = PTHREAD_MUTEX_INITIALIZER};

/* --- The thread -------------------------------------------------------------------------- */

static int forks_watch(void);

static void round_locked(sampler_work *work, uint64_t cpu_before)
{
    tree_lock(sampler.tree);
    round_look(work);
    sampler.totals.cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    tree_put_totals(sampler.tree, sampler.hz, &sampler.totals);
    tree_unlock(sampler.tree);
    atomic_fetch_add(&sampler.rounds, 1);
    (void)syscall(SYS_futex, &sampler.rounds, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* On the main thread, with the GIL. */
static int round_pending(void *arg)
{
    (void)arg;
    if (atomic_exchange(&sampler.pending, false) && sampler.running && sampler.work) {
        round_locked(sampler.work, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    }
    return 0;
}

static bool finalizing(void)
{
#if PY_VERSION_HEX >= 0x030d0000
    return Py_IsFinalizing() != 0;
#else
    return _Py_IsFinalizing() != 0;
#endif
}

/* Waits until a moment of CLOCK_MONOTONIC or the end. */
static void sleep_until(uint64_t when)
{
    const struct timespec at = {.tv_sec = (time_t)(when / SECOND),
                                .tv_nsec = (long)(when % SECOND)};
    while (!atomic_load(&sampler.stop)) {
        const long result =
            syscall(SYS_futex, &sampler.stop, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, 0,
                    &at, NULL, FUTEX_BITSET_MATCH_ANY);
        if (result != 0 && errno == ETIMEDOUT) {
            break;
        }
    }
}

/* Numbers in [0, 1) for the moments within a period: not good ones, but none of the program's. */
static double jitter(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void *thread_main(void *arg)
{
    sampler_work *work = arg;
    (void)prctl(PR_SET_NAME, "stepwatch-samp", 0, 0, 0);
    round_begin(work);
    const uint64_t period = (uint64_t)((double)SECOND / sampler.hz);
    uint64_t grid = clock_ns(CLOCK_MONOTONIC);
    uint64_t random = grid | 1;
    uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (!atomic_load(&sampler.stop) && !finalizing()) {
        if (!sampler.registered_recording && sw_is_recording()) {
            /* The recorder watches forks by now: from here on we hear of a fork before it does. */
            sampler.registered_recording = true;
            (void)forks_watch();
        }
        if (round_reader(work) != CORE_READ_GIL) {
            const uint64_t cpu_before = cpu;
            round_locked(work, cpu_before);
            cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        } else if (!atomic_exchange(&sampler.pending, true)) {
            if (Py_AddPendingCall(round_pending, NULL) != 0) {
                atomic_store(&sampler.pending, false);
            }
            layout_wake_main(sampler.interpreter);
        }
        if (core_memory_tick()) {
            layout_wake_main(sampler.interpreter);
        }
        /* Each period has one round, at a moment of its first half that is not always the same: a program that has the
         * same period is seen at all its moments. A period that was slept through is left out. */
        const uint64_t now = clock_ns(CLOCK_MONOTONIC);
        grid += period;
        if (now > grid + period) {
            const uint64_t missed = (now - grid) / period;
            sampler.totals.late += missed;
            grid += missed * period;
        }
        sleep_until(grid + (uint64_t)(jitter(&random) * 0.5 * (double)period));
    }
    return NULL;
}

/* lifecycle held. */
static int thread_start(void)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    atomic_store(&sampler.stop, 0);
    atomic_store(&sampler.rounds, 0);
    const sampler_subject subject = {
        .interpreter = (uint64_t)(uintptr_t)sampler.interpreter,
        .main = sampler.main_known ? (uint64_t)(uintptr_t)sampler.main : 0,
        .tree = sampler.tree,
        .totals = &sampler.totals};
    sampler.work = round_new(&subject, &sampler.note);
    if (!sampler.work) {
        return -1;
    }
    sampler.mode = round_reader(sampler.work);
    /* The program's signals are not for this thread; its own faults are. */
    static const int own[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    sigfillset(&all);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        sigdelset(&all, own[i]);
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    const int failed =
        pthread_create(&sampler.thread, &attributes, thread_main, sampler.work);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    sampler.running = !failed;
    if (failed) {
        round_free(sampler.work);
        sampler.work = NULL;
        return -1;
    }
    return 0;
}

/* lifecycle held. `patience_ms` 0: as long as it takes. False: it did not end. */
static bool thread_stop(int patience_ms)
{
    int failed = 0;
    if (!sampler.running) {
        return true;
    }
    atomic_store(&sampler.stop, 1);
    (void)syscall(SYS_futex, &sampler.stop, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    if (patience_ms) {
        const uint64_t end = clock_ns(CLOCK_REALTIME) + (uint64_t)patience_ms * 1000000;
        const struct timespec until = {.tv_sec = (time_t)(end / SECOND),
                                       .tv_nsec = (long)(end % SECOND)};
        failed = pthread_timedjoin_np(sampler.thread, NULL, &until);
    } else {
        pthread_join(sampler.thread, NULL);
    }
    if (failed) {
        return false;
    }
    sampler.running = false;
    round_free(sampler.work);
    sampler.work = NULL;
    return true;
}

/* --- Forks ------------------------------------------------------------------------------- */

/* After a fork, on the main thread, when os.fork has returned: Python counts threads before that. */
static int restart(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&sampler.lifecycle);
    if (sampler.again && !sampler.running && !finalizing()) {
        sampler.again = false;
        (void)thread_start();
    }
    pthread_mutex_unlock(&sampler.lifecycle);
    return 0;
}

/* The handlers may be registered twice (see thread_main); the first call of a fork counts. */
static void fork_prepare(void)
{
    const int32_t self = own_tid();
    if (sampler.forking == self) {
        return;
    }
    pthread_mutex_lock(&sampler.lifecycle);
    sampler.forking = self;
    bool stopped = true;
    if (sampler.running) {
        sampler.again = true;
        stopped = thread_stop(PATIENCE_MS);
    }
    sampler.tree_locked = stopped && sampler.tree;
    if (sampler.tree_locked) {
        tree_lock(sampler.tree);
    }
}

static void fork_parent(void)
{
    if (sampler.forking != own_tid()) {
        return;
    }
    if (sampler.tree_locked) {
        tree_unlock(sampler.tree);
    }
    if (sampler.running) {
        (void)thread_stop(
            0); /* it was late before the fork; it may have needed a lock held there */
    }
    sampler.forking = 0;
    if (sampler.again) {
        (void)Py_AddPendingCall(restart, NULL);
        layout_wake_main(sampler.interpreter);
    }
    pthread_mutex_unlock(&sampler.lifecycle);
}

static void fork_child(void)
{
    if (sampler.forking == 0) {
        return;
    }
    sampler.forking = 0;
    pthread_mutex_init(&sampler.lifecycle, NULL);
    if (sampler.tree) {
        /* What was seen is the parent's. */
        tree_after_fork(sampler.tree);
        tree_drop(sampler.tree);
        sampler.tree = NULL;
    }
    sampler.running = false; /* a thread that was late is not here */
    sampler.work = NULL;
    sampler.totals = (tree_totals){0};
    sampler.registered_recording = false;
    atomic_store(&sampler.pending, false);
}

static int forks_watch(void)
{
    return pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* --- Start and stop ---------------------------------------------------------------------- */

/* Whether frames are where we believe they are: our own stack shows it. */
static bool layout_holds(core_memory *reader, PyThreadState *state)
{
    uint8_t bytes[STATE_BYTES];
    uint64_t head = 0;
    layout_thread thread;
    layout_frame frame = {0};
    const uint64_t interpreter = (uint64_t)(uintptr_t)sampler.interpreter;
    if (layout_thread_size > sizeof bytes ||
        core_read(reader, layout_threads_head(interpreter), &head, sizeof head) != 0 ||
        head != (uint64_t)(uintptr_t)PyInterpreterState_ThreadHead(sampler.interpreter) ||
        core_read(reader, (uint64_t)(uintptr_t)state, bytes, layout_thread_size) != 0) {
        return false;
    }
    layout_thread_parse(bytes, &thread);
    PyFrameObject *now = PyThreadState_GetFrame(state);
    if (!now) {
        return thread.interpreter == interpreter;
    }
    PyCodeObject *code = PyFrame_GetCode(now);
    uint64_t address = thread.frame;
    if (layout_cframe_size &&
        core_read(reader, thread.cframe, bytes, layout_cframe_size) == 0) {
        address = layout_cframe_parse(bytes);
    }
    for (int i = 0; i < 4 && address; i++) {
        if (core_read(reader, address, bytes, layout_frame_size) != 0) {
            break;
        }
        layout_frame_parse(bytes, &frame);
        if (frame.kind != LAYOUT_SHIM) {
            break;
        }
        address = frame.previous;
    }
    const bool holds = thread.interpreter == interpreter && frame.kind == LAYOUT_PYTHON &&
                       frame.code == (uint64_t)(uintptr_t)code;
    Py_DECREF(code);
    Py_DECREF(now);
    return holds;
}

static void first_round_wait(void)
{
    const uint64_t end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)FIRST_ROUND_MS * 1000000;
    uint64_t now;
    while (atomic_load(&sampler.rounds) == 0 && (now = clock_ns(CLOCK_MONOTONIC)) < end) {
        const struct timespec left = {.tv_nsec = (long)(end - now)};
        (void)syscall(SYS_futex, &sampler.rounds, FUTEX_WAIT_PRIVATE, 0, &left, NULL, 0);
    }
}

/* lifecycle and GIL held. */
static const char *start_locked(double hz)
{
    PyThreadState *state = PyThreadState_Get();
    core_memory probe;
    const char *why;
    sampler.interpreter = PyThreadState_GetInterpreter(state);
    if (own_tid() == (int32_t)getpid()) {
        sampler.main = pthread_self();
        sampler.main_known = true;
    }
    core_memory_open(&probe, CORE_READ_VM, &why);
    const bool holds = layout_holds(&probe, state);
    core_memory_close(&probe);
    if (!holds) {
        return "the sampler does not know how this build of Python lays out its frames";
    }
    sampler_tree *tree = tree_new();
    if (!tree) {
        return "no memory for the sampler";
    }
    tree_drop(sampler.tree);
    sampler.tree = tree;
    sampler.number++;
    sampler.hz = hz;
    sampler.totals = (tree_totals){0};
    sampler.again = false;
    if (!sampler.registered) {
        sampler.registered_recording = sw_is_recording();
        if (forks_watch() != 0) {
            return "no memory for the sampler";
        }
        sampler.registered = true;
    }
    if (thread_start() != 0) {
        return "the sampler's thread could not be started";
    }
    if (sampler.mode != CORE_READ_GIL) {
        first_round_wait();
    }
    return NULL;
}

int sampler_start(double hz, const char **why)
{
#ifdef Py_GIL_DISABLED
    (void)hz;
    *why = "the sampler does not support free-threaded Python";
    return -1;
#else
    PyInterpreterState *interpreter = PyThreadState_GetInterpreter(PyThreadState_Get());
    int result = 0;
    *why = NULL;
    if (finalizing()) {
        *why = "Python is about to end";
        return -1;
    }
    pthread_mutex_lock(&sampler.lifecycle);
    if (sampler.running || sampler.again) {
        if (sampler.interpreter != interpreter) {
            *why = "the sampler looks at another interpreter of this process";
            result = -1;
        } else if (!sampler.running) {
            sampler.again = false;
            (void)thread_start();
        }
    } else {
        *why = start_locked(hz);
        result = *why ? -1 : 0;
    }
    if (result == 0) {
        *why = sampler.note;
    }
    pthread_mutex_unlock(&sampler.lifecycle);
    return result;
#endif
}

void sampler_stop(void)
{
    pthread_mutex_lock(&sampler.lifecycle);
    sampler.again = false;
    (void)thread_stop(0);
    pthread_mutex_unlock(&sampler.lifecycle);
}

void sampler_forked_child(void)
{
    const char *why;
    if (sampler.again) {
        sampler.again = false;
        (void)sampler_start(sampler.hz, &why);
    }
}

bool sampler_is_running(void)
{
    return sampler.running || sampler.again;
}

sampler_tree *sampler_tree_now(void)
{
    if (sampler.tree) {
        tree_keep(sampler.tree);
    }
    return sampler.tree;
}

void sampler_forget_steps(void)
{
    if (sampler.tree) {
        tree_lock(sampler.tree);
        tree_forget_steps(sampler.tree, (uint32_t)own_tid());
        tree_unlock(sampler.tree);
    }
}

void sampler_forget_step(void)
{
    if (sampler.tree) {
        tree_lock(sampler.tree);
        tree_forget_step(sampler.tree, (uint32_t)own_tid());
        tree_unlock(sampler.tree);
    }
}

uint64_t sampler_tree_number(void)
{
    return sampler.number;
}

double sampler_hz(void)
{
    return sampler.hz;
}

enum core_read_mode sampler_reader(void)
{
    return sampler.mode;
}

const char *sampler_note(void)
{
    return sampler.note;
}
