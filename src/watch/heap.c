/* Counting allocations: switching it on and off, threads, totals and peaks. */
#include "watch/heap.h"

#include "record/watchers.h"
#include "watch/heap_watcher.h"
#include "watch/plt.h"
#include <string.h>
#include <sys/mman.h>

struct sw__heap_thread sw__heap_nobody = {.room = -SW__HEAP_TRAP};
SW__TLS struct sw__heap_thread *sw__heap_self = &sw__heap_nobody;
_Atomic bool sw__heap_on;

/* For threads whose end has begun: what it counts goes to `late`. */
static struct sw__heap_thread sw__heap_closed = {
    .room = -SW__HEAP_TRAP, .within = SW__HEAP_LATE, .busy = 1};

static bool is_closed(const struct sw__heap_thread *thread)
{
    return thread == &sw__heap_closed;
}

struct sw__heap_open {
    _Atomic int64_t begin, peak;
};

static struct {
    pthread_mutex_t lock; /* who wants it; held by nothing that a hook calls */
    unsigned wanted;
    pthread_once_t once;
    pthread_key_t key;
    bool key_made;
    struct sw__heap_thread *_Atomic threads; /* only grows */
    _Atomic uint64_t late[SW_HEAP_PARTS][4];
    _Atomic int64_t in_use; /* what threads have told */
    _Atomic uint32_t windows;
    struct sw__heap_open window[SW__HEAP_WINDOWS];
    /* Of the recording: what there was at its begin, and its window. */
    sw_heap_stats base;
    int recording;
    uint64_t row[SW_HEAP_PARTS + 1]; /* handles; the last one is that of all parts */
    struct sw__heap_thread *forking; /* under lock */
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .recording = -1};

struct sw__heap_thread *sw__heap_threads(void)
{
    return atomic_load_explicit(&heap.threads, memory_order_acquire);
}

/* --- threads --- */

static void thread_ended(void *value)
{
    struct sw__heap_thread *thread = value;
    thread->busy++;
    sw__heap_flush(thread);
    sw__heap_self = &sw__heap_closed;
    __atomic_store_n(&thread->used, false, __ATOMIC_RELEASE);
}

static void make_key(void)
{
    heap.key_made = pthread_key_create(&heap.key, thread_ended) == 0;
}

/* A place that an ended thread left, but for those that still have sections to tell of. */
static struct sw__heap_thread *find_left(void)
{
    unsigned told = 0;
    for (struct sw__heap_thread *at = sw__heap_threads(); at; at = at->next) {
        const bool tells = __atomic_load_n(&at->nodes, __ATOMIC_RELAXED) != NULL;
        told += tells;
        bool used = false;
        if ((!tells || told > SW__THREADS_APART) &&
            __atomic_compare_exchange_n(&at->used, &used, true, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return at;
        }
    }
    return NULL;
}

struct sw__heap_thread *sw__heap_attach(void)
{
    struct sw__heap_thread *thread = find_left();
    if (!thread) {
        /* Pages of the kernel: the heap is what is being asked for. */
        thread = mmap(NULL, sizeof(*thread), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (thread == MAP_FAILED) {
            return &sw__heap_closed;
        }
        thread->used = true;
        thread->next = atomic_load_explicit(&heap.threads, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&heap.threads, &thread->next,
                                                      thread, memory_order_release,
                                                      memory_order_relaxed)) {
        }
    }
    sw__heap_trap(thread);
    sw__heap_level(thread);
    thread->within = SW_HEAP_NATIVE;
    thread->told = sw__heap_net(thread);
    thread->random =
        (uint64_t)(uintptr_t)&thread * 0x9E3779B97F4A7C15ull ^ sw__clock_now();
    sw__heap_samples_begin(thread);
    thread->depth = 0;
    thread->start = 0;
    thread->busy = 1;
    sw__heap_self = thread;
    /* This may allocate, which finds the thread attached and busy. */
    if (heap.key_made) {
        (void)pthread_setspecific(heap.key, thread);
    }
    thread->busy = 0;
    return thread;
}

unsigned sw_heap_within(void)
{
    return sw__heap_here_now()->within;
}

void sw_heap_set_within(unsigned part)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    /* What threads that are ending share is not to be changed. */
    if (!is_closed(thread)) {
        /* In this order, for a handler that allocates in between takes the trap away if it can. */
        thread->within = part;
        atomic_signal_fence(memory_order_seq_cst);
        if (part != SW_HEAP_NATIVE) {
            sw__heap_trap(thread);
        } else if (sw__heap_is_settled(thread)) {
            sw__heap_untrap(thread);
        }
    }
}

/* --- counting --- */

void sw__heap_late(unsigned part, uint64_t allocated, uint64_t freed)
{
    atomic_fetch_add_explicit(&heap.late[part][0], allocated, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap.late[part][1], allocated ? 1 : 0,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&heap.late[part][2], freed, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap.late[part][3], freed ? 1 : 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap.in_use, (int64_t)(allocated - freed),
                              memory_order_relaxed);
}

static void raise_to(_Atomic int64_t *place, int64_t value)
{
    int64_t before = atomic_load_explicit(place, memory_order_relaxed);
    while (before < value &&
           !atomic_compare_exchange_weak_explicit(
               place, &before, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* What a thread has counted, also while it runs. Its words change one by one: what was read belongs together when nothing was
 * allocated meanwhile. Not for ever: a thread that was stopped in the middle never gets further. */
static void read_thread(const struct sw__heap_thread *thread, sw_heap_totals *out,
                        int64_t *net)
{
    int64_t allocated = 0, until;
    uint64_t change;
    unsigned rounds = 0;
    do {
        change = __atomic_load_n(&thread->change, __ATOMIC_ACQUIRE);
        for (unsigned part = 0; out && part < SW_HEAP_PARTS; part++) {
            const struct sw__heap_count *from = &thread->part[part];
            out[part].allocated = __atomic_load_n(&from->allocated, __ATOMIC_RELAXED);
            out[part].blocks = __atomic_load_n(&from->blocks, __ATOMIC_RELAXED);
            out[part].freed = __atomic_load_n(&from->freed, __ATOMIC_RELAXED);
            out[part].blocks_freed =
                __atomic_load_n(&from->blocks_freed, __ATOMIC_RELAXED);
        }
        sw__heap_order();
        until = sw__heap_word(&thread->until);
        sw__heap_order();
        allocated = sw__heap_word(&thread->end) - until;
        *net = sw__heap_net(thread);
        sw__heap_order();
    } while ((until != sw__heap_word(&thread->until) || change % 2 ||
              change != __atomic_load_n(&thread->change, __ATOMIC_RELAXED)) &&
             ++rounds < 1000);
    if (out) {
        sw_heap_totals *native = &out[SW_HEAP_NATIVE];
        *native = (sw_heap_totals){
            .allocated = (uint64_t)allocated,
            .freed = (uint64_t)(allocated - *net),
            .blocks = __atomic_load_n(&thread->blocks, __ATOMIC_RELAXED),
            .blocks_freed = __atomic_load_n(&thread->blocks_freed, __ATOMIC_RELAXED)};
        for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
            if (part != SW_HEAP_NATIVE) {
                native->allocated -= out[part].allocated;
                native->freed -= out[part].freed;
            }
        }
    }
}

/* What all threads have, as they count it. */
static int64_t in_use_exactly(void)
{
    uint64_t sum = 0;
    int64_t net;
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        sum += atomic_load_explicit(&heap.late[part][0], memory_order_relaxed) -
               atomic_load_explicit(&heap.late[part][2], memory_order_relaxed);
    }
    for (struct sw__heap_thread *at = sw__heap_threads(); at; at = at->next) {
        read_thread(at, NULL, &net);
        sum += (uint64_t)net;
    }
    return (int64_t)sum;
}

void sw__heap_flush(struct sw__heap_thread *thread)
{
    const int64_t net = sw__heap_net(thread);
    const int64_t change = net - thread->told;
    if (is_closed(thread) || change == 0) {
        return;
    }
    thread->told = net;
    const int64_t now =
        atomic_fetch_add_explicit(&heap.in_use, change, memory_order_relaxed) + change;
    if (change <= 0) {
        return;
    }
    /* Others may have freed what they told of: it may be a peak, and then it is added up how much there is. */
    int64_t exactly = INT64_MIN;
    for (uint32_t left = atomic_load_explicit(&heap.windows, memory_order_relaxed); left;
         left &= left - 1) {
        _Atomic int64_t *peak = &heap.window[__builtin_ctz(left)].peak;
        if (now > atomic_load_explicit(peak, memory_order_relaxed)) {
            exactly = exactly == INT64_MIN ? in_use_exactly() : exactly;
            raise_to(peak, exactly);
        }
    }
}

void sw__heap_ahead(struct sw__heap_thread *thread)
{
    const int64_t stretch =
        thread->sample < SW__HEAP_FLUSH ? thread->sample : (int64_t)SW__HEAP_FLUSH;
    thread->sample -= stretch;
    sw__heap_shift(thread, &thread->end, &thread->until,
                   stretch - sw__heap_word(&thread->until));
}

void sw__heap_slow(struct sw__heap_thread *thread, const void *address, size_t bytes,
                   const void *caller)
{
    if (thread->busy) {
        return;
    }
    thread->busy = 1;
    sw__heap_flush(thread);
    /* `until` went below 0 by this block; what it is below counts against the next sample. */
    thread->sample += sw__heap_word(&thread->until);
    if (thread->sample < 0) {
        sw__heap_sample(thread, address, bytes, caller);
    }
    sw__heap_ahead(thread);
    thread->busy = 0;
}

/* --- totals --- */

void sw_heap_read(sw_heap_stats *out)
{
    memset(out, 0, sizeof(*out));
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        sw_heap_totals *to = &out->part[part];
        to->allocated = atomic_load_explicit(&heap.late[part][0], memory_order_relaxed);
        to->blocks = atomic_load_explicit(&heap.late[part][1], memory_order_relaxed);
        to->freed = atomic_load_explicit(&heap.late[part][2], memory_order_relaxed);
        to->blocks_freed =
            atomic_load_explicit(&heap.late[part][3], memory_order_relaxed);
    }
    for (struct sw__heap_thread *at = sw__heap_threads(); at; at = at->next) {
        sw_heap_totals of[SW_HEAP_PARTS];
        int64_t net;
        read_thread(at, of, &net);
        for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
            sw_heap_totals *to = &out->part[part];
            to->allocated += of[part].allocated;
            to->blocks += of[part].blocks;
            to->freed += of[part].freed;
            to->blocks_freed += of[part].blocks_freed;
        }
    }
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        const sw_heap_totals *to = &out->part[part];
        out->all.allocated += to->allocated;
        out->all.blocks += to->blocks;
        out->all.freed += to->freed;
        out->all.blocks_freed += to->blocks_freed;
    }
}

static int64_t in_use_now(void)
{
    sw__heap_flush(sw__heap_here_now());
    return in_use_exactly();
}

int sw_heap_window_open(void)
{
    const int64_t now = in_use_now();
    uint32_t open = atomic_load(&heap.windows);
    for (;;) {
        if (open == (1u << SW__HEAP_WINDOWS) - 1) {
            return -1;
        }
        const int number = __builtin_ctz(~open);
        struct sw__heap_open *window = &heap.window[number];
        atomic_store(&window->begin, now);
        atomic_store(&window->peak, now);
        if (atomic_compare_exchange_weak(&heap.windows, &open, open | 1u << number)) {
            return number;
        }
    }
}

void sw_heap_window_read(int number, sw_heap_window *out)
{
    *out = (sw_heap_window){0};
    if (number >= 0 && number < SW__HEAP_WINDOWS) {
        out->now = in_use_now();
        out->begin = atomic_load(&heap.window[number].begin);
        out->peak = atomic_load(&heap.window[number].peak);
        out->peak = out->peak < out->now ? out->now : out->peak;
    }
}

void sw_heap_window_close(int number)
{
    if (number >= 0 && number < SW__HEAP_WINDOWS) {
        atomic_fetch_and(&heap.windows, ~(1u << number));
    }
}

/* --- on and off --- */

bool sw_heap_is_on(void)
{
    return atomic_load_explicit(&sw__heap_on, memory_order_relaxed);
}

/* The window of the recording begins now. */
static void recording_begins(void)
{
    sw_heap_window_close(heap.recording);
    heap.recording = sw_heap_window_open();
    sw_heap_read(&heap.base);
    memset(heap.row, 0, sizeof heap.row);
}

/* On the thread itself, also while nothing counts: a lane that is not watched any more does not tell. Threads that are not attached
 * and those that are ending have a trap for ever. */
static void sections_changed(void)
{
    sw__heap_trap(sw__heap_self);
}

int sw_heap_start(uint64_t sample_bytes, sw_error_info *info)
{
    pthread_once(&heap.once, make_key);
    sw__fork_register(); /* also where nothing is recorded */
    pthread_mutex_lock(&heap.lock);
    int result = 0;
    if (heap.wanted == 0) {
        /* Before the first hook looks at sections. */
        atomic_store(&sw__sections_tell, sections_changed);
        atomic_store(&sw__sections_watched, true);
        result = sw__heap_hooks_add(info);
    }
    if (!result && sample_bytes && !__atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED) &&
        !sw__heap_samples_start(sample_bytes)) {
        result = sw_error_set(info, SW_ENOMEM, "there is no memory for sampled blocks");
        if (heap.wanted == 0) {
            sw__heap_hooks_remove();
        }
    }
    if (!result && heap.wanted++ == 0) {
        atomic_store(&sw__heap_on, true);
        recording_begins();
    }
    atomic_store(&sw__sections_watched, heap.wanted != 0);
    pthread_mutex_unlock(&heap.lock);
    return result;
}

void sw_heap_stop(void)
{
    pthread_mutex_lock(&heap.lock);
    if (heap.wanted && --heap.wanted == 0) {
        sw__heap_hooks_remove();
        atomic_store(&sw__heap_on, false);
        atomic_store(&sw__sections_watched, false);
        (void)sw__heap_samples_start(0);
    }
    pthread_mutex_unlock(&heap.lock);
}

/* --- the recording --- */

static void put_totals(unsigned part, const sw_heap_totals *now,
                       const sw_heap_totals *before, uint64_t peak)
{
    const uint64_t period = __atomic_load_n(&sw__heap_period, __ATOMIC_RELAXED);
    sw_row row = {.table = SW_TABLE_HEAP,
                  .key = {part, period > UINT32_MAX ? UINT32_MAX : (uint32_t)period},
                  .value = {now->allocated - before->allocated,
                            now->blocks - before->blocks, now->freed - before->freed,
                            now->blocks_freed - before->blocks_freed, peak}};
    uint64_t *handle = &heap.row[part == SW_HEAP_ALL ? SW_HEAP_PARTS : part];
    *handle = sw_row_put(*handle, &row);
}

static void on_begin(const struct sw__settings *settings, bool child)
{
    (void)settings;
    (void)child;
    if (sw_heap_is_on()) {
        pthread_mutex_lock(&heap.lock);
        recording_begins();
        pthread_mutex_unlock(&heap.lock);
    }
}

/* `lock` held. */
static void write_totals(void)
{
    sw_heap_stats now;
    sw_heap_window window;
    sw_heap_read(&now);
    sw_heap_window_read(heap.recording, &window);
    const int64_t peak = window.peak - window.begin;
    for (unsigned part = 0; part < SW_HEAP_PARTS; part++) {
        put_totals(part, &now.part[part], &heap.base.part[part], 0);
    }
    put_totals(SW_HEAP_ALL, &now.all, &heap.base.all, peak > 0 ? (uint64_t)peak : 0);
}

void sw_heap_totals_write(void)
{
    if (sw_heap_is_on() && sw_is_recording()) {
        pthread_mutex_lock(&heap.lock);
        write_totals();
        pthread_mutex_unlock(&heap.lock);
    }
}

static void on_end(void)
{
    if (sw_heap_is_on() && sw_is_recording()) {
        pthread_mutex_lock(&heap.lock);
        write_totals();
        sw__heap_sections_write();
        pthread_mutex_unlock(&heap.lock);
    }
}

/* What other handlers of the fork allocate on this thread is counted, no more: locks are held. */
static void on_before_fork(void)
{
    struct sw__heap_thread *thread = sw__heap_here_now();
    thread->busy++;
    pthread_mutex_lock(&heap.lock);
    sw__heap_samples_before_fork();
    heap.forking = thread;
}

static void fork_is_over(void)
{
    if (heap.forking && heap.forking == sw__heap_self) {
        heap.forking->busy--;
    }
    heap.forking = NULL;
}

static void on_after_fork(bool child)
{
    /* Busy until the locks are given back: a signal handler that allocates would wait for its own thread. */
    if (!child) {
        sw__heap_samples_unlock();
        fork_is_over();
        pthread_mutex_unlock(&heap.lock);
        return;
    }
    sw__heap_samples_forked();
    sw__heap_hooks_forked();
    fork_is_over();
    pthread_mutex_init(&heap.lock, NULL);
    /* Of the threads only this one is left; sections are those of the parent's recording. */
    for (struct sw__heap_thread *at = sw__heap_threads(); at; at = at->next) {
        at->depth = 0;
        at->start = 0;
        at->gate = 0;
        sw__heap_trap(at);
        if (at != sw__heap_self) {
            at->used = false;
        }
    }
}

const struct sw__watcher sw__heap_watcher = {
    .begin = on_begin,
    .end = on_end,
    .before_fork = on_before_fork,
    .after_fork = on_after_fork,
};
