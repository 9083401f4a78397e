/* The sampler's thread: its pace, the threads it looks at, and what becomes of it when the program forks or ends.
 *
 * It never takes the GIL and never follows a pointer of the interpreter itself. Where memory can only be read with the GIL,
 * it asks the main thread to look (a pending call) and goes on counting time.
 *
 * Lifetime: `lifecycle` is held to start and to stop it, after the GIL where the caller has that, and from before a fork
 * until after it. The thread takes neither, so whoever holds them may wait for its end. */
#include "core.h"

#include "sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <stepwatch/stepwatch.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((uint64_t)1000000000)
#define STACK_SIZE ((size_t)512 * 1024)
#define THREADS_MOST 1024u
#define STATE_BYTES 1024u
#define PATIENCE_MS 500 /* for the thread's end before a fork */
#define FIRST_ROUND_MS 50

/* A thread that is looked at. */
typedef struct watched {
    walk_thread walk;
    uint32_t tid;
    uint64_t pthread, state_tid; /* what its thread state said when `tid` was found */
    int stat;                    /* descriptor of its /proc/self/task/TID/stat, -1 none */
    uint64_t device, inode;
    uint64_t cpu_ns; /* at the last look */
    walk_stack last; /* depth 0: none */
    tree_frame frames[WALK_FRAMES];
    size_t depth;
    tree_tag tag;
} watched;

/* What one run of the thread works with; made and freed by it. */
typedef struct sampler_work {
    core_memory reader;
    sampler_walker *walker;
    sampler_codes *codes;
    watched **threads; /* in the order of the interpreter's list */
    watched **spare;   /* the same room again */
    uint32_t count;
    size_t tid_offset; /* of the kernel's id in what a pthread_t points to; 0 unknown */
    walk_stack stack;
    core_extent plan[THREADS_MOST + 1];
    uint8_t states[THREADS_MOST][STATE_BYTES];
    struct {
        uint64_t address;
        layout_thread state;
    } list[THREADS_MOST];
} sampler_work;

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

static int32_t own_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

/* CPU time of any thread of the process: the kernel's own naming of such clocks. */
static uint64_t thread_cpu_ns(uint32_t tid)
{
    return clock_ns((clockid_t)(~tid << 3 | 6));
}

/* --- States of threads ------------------------------------------------------------------- */

static void stat_open(watched *thread)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof path, "/proc/self/task/%u/stat", thread->tid);
    thread->stat = open(path, O_RDONLY | O_CLOEXEC);
    if (thread->stat >= 0 && fstat(thread->stat, &status) == 0) {
        thread->device = status.st_dev;
        thread->inode = status.st_ino;
    }
}

static void stat_close(watched *thread)
{
    struct stat status;
    /* A program that closed all descriptors may have this number for a file of its own now. */
    if (thread->stat >= 0 && fstat(thread->stat, &status) == 0 &&
        status.st_dev == thread->device && status.st_ino == thread->inode) {
        close(thread->stat);
    }
    thread->stat = -1;
}

/* 'R', 'S', 'D' …; 0 unknown. "TID (name) S …": the name may hold anything, parentheses too. */
static char stat_read(watched *thread)
{
    char text[128], *end;
    const ssize_t size = pread(thread->stat, text, sizeof text - 1, 0);
    if (size <= 0) {
        return 0;
    }
    text[size] = '\0';
    if (strtoul(text, &end, 10) != thread->tid) {
        return 0;
    }
    end = strrchr(text, ')');
    return end && end[1] == ' ' ? end[2] : 0;
}

/* --- The list of threads ----------------------------------------------------------------- */

static void watched_free(watched *thread)
{
    if (thread) {
        stat_close(thread);
        walk_thread_clear(&thread->walk);
        free(thread);
    }
}

/* glibc keeps the kernel's id of a thread behind its pthread_t: found by looking for our own. */
static size_t find_tid_offset(core_memory *reader)
{
    int32_t words[512];
    const int32_t own = own_tid();
    const uint64_t self = (uint64_t)(uintptr_t)pthread_self();
    if (reader->mode == CORE_READ_GIL || core_read(reader, self, words, sizeof words)) {
        return 0;
    }
    size_t found = 0;
    for (size_t i = 16; i < sizeof words / sizeof words[0]; i++) {
        if (words[i] == own) {
            if (found) {
                return 0; /* twice: it cannot be told which */
            }
            found = i * sizeof words[0];
        }
    }
    return found;
}

static uint32_t kernel_id(sampler_work *work, const layout_thread *state)
{
    int32_t tid = 0;
    if (state->tid) {
        return state->tid;
    }
    if (work->tid_offset &&
        core_read(&work->reader, state->pthread + work->tid_offset, &tid, sizeof tid) ==
            0 &&
        tid > 0) {
        return (uint32_t)tid;
    }
    if (sampler.main_known && state->pthread == (uint64_t)(uintptr_t)sampler.main) {
        return (uint32_t)work->reader.pid;
    }
    return 0;
}

static watched *watched_new(sampler_work *work, uint64_t address,
                            const layout_thread *state)
{
    const uint32_t tid = kernel_id(work, state);
    watched *made = tid ? calloc(1, sizeof *made) : NULL;
    if (!made) {
        return NULL;
    }
    made->walk.state = address;
    made->walk.id = state->id;
    made->tid = tid;
    made->pthread = state->pthread;
    made->state_tid = state->tid;
    made->cpu_ns = UINT64_MAX;
    stat_open(made);
    return made;
}

/* A thread state is made by another thread, and says for a moment that it belongs to that one. */
static void watched_check(sampler_work *work, watched *thread, const layout_thread *state)
{
    if (thread->pthread == state->pthread && thread->state_tid == state->tid) {
        return;
    }
    const uint32_t tid = kernel_id(work, state);
    if (tid) {
        stat_close(thread);
        thread->tid = tid;
        thread->pthread = state->pthread;
        thread->state_tid = state->tid;
        thread->cpu_ns = UINT64_MAX;
        stat_open(thread);
    }
}

/* --- One look ---------------------------------------------------------------------------- */

static void keep(watched *thread, bool fresh)
{
    sw_peek peek;
    tree_tag *tag = &thread->tag;
    if (sw_peek_thread(thread->tid, true, &peek) == SW_ENOTFOUND &&
        sw_thread_adopt(thread->tid) == SW_OK) {
        (void)sw_peek_thread(thread->tid, true, &peek);
    }
    tag->thread = peek.thread;
    tag->tid = thread->tid;
    tag->section = peek.section;
    tag->node = peek.node;
    tag->domain = peek.domain;
    tag->phase = peek.phase;
    tag->step = peek.step;
    if (fresh) {
        sampler.totals.leaf_only += tag->leaf_only;
        sampler.totals.outer_only += tag->outer_only;
    }
    if (tree_add(sampler.tree, tag, thread->frames, thread->depth) == TREE_NONE) {
        sampler.totals.given_up++;
    } else {
        sampler.totals.kept++;
    }
}

/* Functions and lines of work->stack. The tree's lock is held. */
static bool resolve(sampler_work *work, watched *thread)
{
    walk_stack *stack = &work->stack;
    tree_frame *frames = thread->frames;
    bool native = false;
    if (codes_resolve(work->codes, &work->reader, stack,
                      thread->last.depth ? &thread->last : NULL, frames, &native) != 0) {
        thread->depth = 0;
        thread->last.depth = 0;
        return false;
    }
    thread->depth = stack->depth;
    if (stack->cut_at) {
        memmove(frames + stack->cut_at + 1, frames + stack->cut_at,
                (stack->depth - stack->cut_at) * sizeof *frames);
        frames[stack->cut_at] = (tree_frame){codes_left_out(work->codes), 0};
        thread->depth++;
    }
    thread->tag.native = native;
    thread->last.depth = stack->depth;
    memcpy(thread->last.frames, stack->frames, stack->depth * sizeof stack->frames[0]);
    return true;
}

/* The tree's lock is held. */
static enum walk_result look_anew(sampler_work *work, watched *thread)
{
    enum walk_result result = WALK_FAILED;
    for (int i = 0; i < 2 && result == WALK_FAILED; i++) {
        result = walker_look(work->walker, &thread->walk, &work->stack);
        sampler.totals.retries += work->stack.retries + (i > 0);
        if ((result == WALK_WHOLE || result == WALK_OUTER_ONLY) &&
            !resolve(work, thread)) {
            result = WALK_FAILED;
        }
    }
    if (result == WALK_FAILED) {
        result = walker_leaf(work->walker, &thread->walk, &work->stack);
        if (result == WALK_LEAF_ONLY && !resolve(work, thread)) {
            result = WALK_FAILED;
        }
    }
    return result;
}

static void look(sampler_work *work, watched *thread)
{
    const uint64_t cpu = thread_cpu_ns(thread->tid);
    tree_totals *totals = &sampler.totals;
    tree_tag *tag = &thread->tag;
    totals->looks++;
    /* A thread that has not run since, and was asleep, is where it was. */
    if (cpu != UINT64_MAX && cpu == thread->cpu_ns && thread->depth > 0 && tag->state &&
        tag->state != 'R') {
        keep(thread, false);
        return;
    }
    const enum walk_result result = look_anew(work, thread);
    tag->state = stat_read(thread);
    tag->running =
        tag->state ? tag->state == 'R' : (cpu != thread->cpu_ns || cpu == UINT64_MAX);
    thread->cpu_ns = cpu;
    tag->leaf_only = result == WALK_LEAF_ONLY;
    tag->outer_only = result == WALK_OUTER_ONLY;
    switch (result) {
    case WALK_WHOLE:
    case WALK_OUTER_ONLY:
    case WALK_LEAF_ONLY:
        keep(thread, true);
        break;
    case WALK_EMPTY:
    case WALK_GONE:
        totals->empty++;
        thread->depth = 0;
        break;
    case WALK_FAILED:
        totals->given_up++;
        thread->depth = 0;
        break;
    }
}

/* --- One round --------------------------------------------------------------------------- */

/* Reads the thread states that were there in the last round, and the head of the list, at once. */
static uint64_t read_states(sampler_work *work, uint32_t *usable)
{
    uint64_t head = 0;
    work->plan[0] =
        (core_extent){layout_threads_head((uint64_t)(uintptr_t)sampler.interpreter),
                      sizeof head, &head};
    uint32_t count = 1;
    /* With the GIL only what is known to be there may be read. */
    if (work->reader.mode != CORE_READ_GIL) {
        for (uint32_t i = 0; i < work->count && count < CORE_EXTENTS; i++) {
            work->plan[count++] =
                (core_extent){work->threads[i]->walk.state, (uint32_t)layout_thread_size,
                              work->states[i]};
        }
    }
    const size_t done = core_read_all(&work->reader, work->plan, count);
    *usable = done > 0 ? (uint32_t)done - 1 : 0;
    return done > 0 ? head : 0;
}

/* Reads the list of threads into work->list. How many; UINT32_MAX: it changed meanwhile. */
static uint32_t list_threads(sampler_work *work)
{
    uint8_t bytes[STATE_BYTES];
    uint32_t known = 0, count = 0;
    uint64_t address = read_states(work, &known), before = 0;
    for (; address && count < THREADS_MOST; count++) {
        layout_thread *state = &work->list[count].state;
        const uint8_t *copy = bytes;
        if (count < known && work->threads[count]->walk.state == address) {
            copy = work->states[count];
        } else if (core_read(&work->reader, address, bytes, layout_thread_size) != 0) {
            return UINT32_MAX;
        }
        layout_thread_parse(copy, state);
        if (state->interpreter != (uint64_t)(uintptr_t)sampler.interpreter ||
            state->previous != before) {
            return UINT32_MAX;
        }
        work->list[count].address = address;
        before = address;
        address = state->next;
    }
    sampler.totals.left_out += address != 0;
    return count;
}

/* Brings work->threads into line with the list; what is known of a thread stays with it. */
static void follow_list(sampler_work *work, uint32_t count)
{
    watched **next = work->spare;
    uint32_t kept = 0, hint = 0;
    for (uint32_t i = 0; i < count; i++) {
        watched *found = NULL;
        for (uint32_t k = 0; k < work->count && !found; k++) {
            const uint32_t at = (hint + k) % work->count;
            watched *known = work->threads[at];
            if (known && known->walk.state == work->list[i].address &&
                known->walk.id == work->list[i].state.id) {
                found = known;
                work->threads[at] = NULL;
                hint = at + 1;
            }
        }
        if (found) {
            watched_check(work, found, &work->list[i].state);
        } else {
            found = watched_new(work, work->list[i].address, &work->list[i].state);
        }
        if (found) {
            next[kept++] = found;
        } else {
            sampler.totals.left_out++;
        }
    }
    for (uint32_t i = 0; i < work->count; i++) {
        watched_free(work->threads[i]);
    }
    work->spare = work->threads;
    work->threads = next;
    work->count = kept;
}

static void round_of_looks(sampler_work *work)
{
    const uint32_t self = (uint32_t)own_tid();
    uint32_t count = UINT32_MAX;
    for (int i = 0; i < 4 && count == UINT32_MAX; i++) {
        count = list_threads(work);
    }
    if (count != UINT32_MAX) {
        follow_list(work, count);
    }
    for (uint32_t i = 0; i < work->count; i++) {
        if (work->threads[i]->tid != self || work->reader.mode == CORE_READ_GIL) {
            look(work, work->threads[i]);
        }
    }
    sampler.totals.rounds++;
}

static void work_free(sampler_work *work)
{
    if (work) {
        for (uint32_t i = 0; work->threads && i < work->count; i++) {
            watched_free(work->threads[i]);
        }
        free(work->threads);
        free(work->spare);
        walker_free(work->walker);
        codes_free(work->codes);
        core_memory_close(&work->reader);
        free(work);
    }
}

static sampler_work *work_new(const char **why)
{
    const char *wanted = getenv("_STEPWATCH_SAMPLER_READER");
    enum core_read_mode best = CORE_READ_VM;
    if (wanted && strcmp(wanted, "mem") == 0) {
        best = CORE_READ_MEM;
    } else if (wanted && strcmp(wanted, "gil") == 0) {
        best = CORE_READ_GIL;
    }
    sampler_work *work = calloc(1, sizeof *work);
    if (!work) {
        return NULL;
    }
    core_memory_open(&work->reader, best, why);
    work->threads = calloc(THREADS_MOST, sizeof *work->threads);
    work->spare = calloc(THREADS_MOST, sizeof *work->spare);
    work->codes = codes_new(sampler.tree);
    work->walker = walker_new(&work->reader, (uint64_t)(uintptr_t)sampler.interpreter);
    if (!work->threads || !work->spare || !work->codes || !work->walker ||
        layout_thread_size > STATE_BYTES) {
        work_free(work);
        return NULL;
    }
    return work;
}

/* --- The thread -------------------------------------------------------------------------- */

static int forks_watch(void);

static void round_locked(sampler_work *work, uint64_t cpu_before)
{
    tree_lock(sampler.tree);
    round_of_looks(work);
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
    work->tid_offset = find_tid_offset(&work->reader);
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
        if (work->reader.mode != CORE_READ_GIL) {
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
    sampler.work = work_new(&sampler.note);
    if (!sampler.work) {
        return -1;
    }
    sampler.mode = sampler.work->reader.mode;
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
        work_free(sampler.work);
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
    work_free(sampler.work);
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
