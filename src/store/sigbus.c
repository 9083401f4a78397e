/* A SIGBUS handler that claims faults in our own mappings only.
 *
 * A mapped file that another process truncates turns the next store into SIGBUS, which would kill the
 * program that we only watch. The handler maps an empty page over the hole, counts it, and lets the store
 * happen again. Faults elsewhere go to the handler that was there before. */
#include "base/compiler.h"
#include "store/hot.h"
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SW__WATCHED 16

/* A watched range; `length` 0 means that the entry is free. Written under the lock, read by the handler. */
struct sw__watched {
    _Atomic uintptr_t base;
    _Atomic size_t length;
    _Atomic uint64_t count;
    _Atomic(_Atomic uint64_t *) mirror; /* a second count, in the file */
};

static struct sw__watched sw__watched[SW__WATCHED];
static pthread_mutex_t sw__watched_lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction sw__previous;
/* How often the handler was called from within itself, each time deeper in the stack: the previous handler may have
 * saved ours as its own previous one. One that jumps out of itself leaves a trace, which the next fault wipes out. */
static SW__TLS uintptr_t sw__chain_frame;
static SW__TLS unsigned sw__chain_depth;
#define SW__CHAIN_MOST 16

static bool sw__sigbus_in_circle(void)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    if (frame >= sw__chain_frame) {
        sw__chain_depth = 0;
    }
    sw__chain_frame = frame;
    return ++sw__chain_depth > SW__CHAIN_MOST;
}

static bool sw__sigbus_claim(uintptr_t address)
{
    const uintptr_t page = (uintptr_t)SW__FMT_PAGE;
    for (size_t i = 0; i < SW__WATCHED; i++) {
        struct sw__watched *range = &sw__watched[i];
        uintptr_t base = atomic_load_explicit(&range->base, memory_order_acquire);
        size_t length = atomic_load_explicit(&range->length, memory_order_acquire);
        if (length == 0 || address < base || address - base >= length) {
            continue;
        }
        void *hole = (void *)(address & ~(page - 1));
        if (mmap(hole, page, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
            return false;
        }
        atomic_fetch_add_explicit(&range->count, 1, memory_order_relaxed);
        _Atomic uint64_t *mirror =
            atomic_load_explicit(&range->mirror, memory_order_acquire);
        /* One that lies in the range may be lost itself; its owner asks for the count. */
        if (mirror && ((uintptr_t)mirror < base || (uintptr_t)mirror - base >= length)) {
            atomic_fetch_add_explicit(mirror, 1, memory_order_relaxed);
        }
        return true;
    }
    return false;
}

static void sw__sigbus_handle(int number, siginfo_t *info, void *context)
{
    if (info && info->si_code > 0 && sw__sigbus_claim((uintptr_t)info->si_addr)) {
        return;
    }
    if (sw__sigbus_in_circle()) {
        /* It came back to us again and again: nobody wants it. */
    } else if (sw__previous.sa_flags & SA_SIGINFO) {
        if (sw__previous.sa_sigaction) {
            sw__previous.sa_sigaction(number, info, context);
            return;
        }
    } else if (sw__previous.sa_handler != SIG_DFL && sw__previous.sa_handler != SIG_IGN) {
        sw__previous.sa_handler(number);
        return;
    } else if (sw__previous.sa_handler == SIG_IGN && info && info->si_code <= 0) {
        return;
    }
    /* Nobody else wants it: the default action, on the very instruction that faulted. */
    struct sigaction normal;
    memset(&normal, 0, sizeof(normal));
    normal.sa_handler = SIG_DFL;
    sigaction(SIGBUS, &normal, NULL);
    if (!info || info->si_code <= 0) {
        raise(number);
    }
}

int sw__sigbus_watch(const void *base, size_t length, _Atomic uint64_t *count)
{
    int result = SW_ELIMIT;
    pthread_mutex_lock(&sw__watched_lock);
    for (size_t i = 0; i < SW__WATCHED && result; i++) {
        struct sw__watched *range = &sw__watched[i];
        if (atomic_load_explicit(&range->length, memory_order_relaxed) == 0) {
            atomic_store_explicit(&range->count, 0, memory_order_relaxed);
            atomic_store_explicit(&range->mirror, count, memory_order_relaxed);
            atomic_store_explicit(&range->base, (uintptr_t)base, memory_order_release);
            atomic_store_explicit(&range->length, length, memory_order_release);
            result = 0;
        }
    }
    struct sigaction now;
    if (!result && sigaction(SIGBUS, NULL, &now) == 0 &&
        !((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == sw__sigbus_handle)) {
        struct sigaction action;
        memset(&action, 0, sizeof(action));
        action.sa_sigaction = sw__sigbus_handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
        sigemptyset(&action.sa_mask);
        sw__previous = now;
        (void)sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&sw__watched_lock);
    return result;
}

static struct sw__watched *sw__sigbus_find(const void *base)
{
    for (size_t i = 0; i < SW__WATCHED; i++) {
        if (atomic_load_explicit(&sw__watched[i].base, memory_order_relaxed) ==
                (uintptr_t)base &&
            atomic_load_explicit(&sw__watched[i].length, memory_order_relaxed)) {
            return &sw__watched[i];
        }
    }
    return NULL;
}

void sw__sigbus_unwatch(const void *base)
{
    /* No lock: a forked child calls this too, and then the lock may be held by nobody. */
    struct sw__watched *range = sw__sigbus_find(base);
    if (range) {
        atomic_store_explicit(&range->length, 0, memory_order_release);
        atomic_store_explicit(&range->mirror, NULL, memory_order_release);
        atomic_store_explicit(&range->base, 0, memory_order_release);
    }
}

uint64_t sw__sigbus_count(const void *base)
{
    struct sw__watched *range = sw__sigbus_find(base);
    return range ? atomic_load_explicit(&range->count, memory_order_relaxed) : 0;
}
