/* Writing and growing files without being killed for it. A write beyond RLIMIT_FSIZE
 * raises SIGXFSZ, whose default is death; a profiler must not do that to the program it
 * watches. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif
#define MOST_RETRIES 1000

void sw__os_guard_begin(struct sw__os_guard *guard)
{
    sigset_t pending;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    guard->was_pending = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    guard->active = pthread_sigmask(SIG_BLOCK, &set, &guard->old) == 0;
}

void sw__os_guard_end(struct sw__os_guard *guard, bool raised)
{
    if (!guard->active) {
        return;
    }
    if (raised && !guard->was_pending) {
        const struct timespec at_once = {0};
        sigset_t set;
        sigemptyset(&set);
        sigaddset(&set, SIGXFSZ);
        while (sigtimedwait(&set, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &guard->old, NULL);
}

uint64_t sw__os_file_size_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return (uint64_t)limit.rlim_cur;
}

static bool fits(uint64_t offset, uint64_t length)
{
    uint64_t end;
    return !__builtin_add_overflow(offset, length, &end) && end <= INT64_MAX &&
           end <= sw__os_file_size_limit();
}

struct identity {
    dev_t device;
    ino_t inode;
};

static bool is(int fd, const struct identity *file)
{
    return !file || sw__os_is_file(fd, file->device, file->inode);
}

/* `file` NULL: whatever it is. */
static int pwrite_into(int fd, const struct identity *file, const void *from,
                       size_t length, uint64_t offset)
{
    if (length == 0) {
        return 0;
    }
    if (!fits(offset, length)) {
        return -EFBIG;
    }
    struct sw__os_guard guard;
    sw__os_guard_begin(&guard);
    int result = 0;
    for (size_t done = 0; done < length;) {
        if (!is(fd, file)) {
            result = -EBADF;
            break;
        }
        ssize_t part =
            pwrite(fd, (const char *)from + done, length - done, (off_t)(offset + done));
        if (part > 0) {
            done += (size_t)part;
        } else if (part == 0) {
            result = -EIO; /* nothing written and no reason given: trying on could last */
            break;
        } else if (errno != EINTR) {
            result = -errno;
            break;
        }
    }
    sw__os_guard_end(&guard, result == -EFBIG);
    return is(fd, file) ? result : -EBADF;
}

int sw__os_pwrite_all(int fd, const void *from, size_t length, uint64_t offset)
{
    return pwrite_into(fd, NULL, from, length, offset);
}

int sw__os_pwrite_file(int fd, dev_t device, ino_t inode, const void *from, size_t length,
                       uint64_t offset)
{
    const struct identity file = {.device = device, .inode = inode};
    return pwrite_into(fd, &file, from, length, offset);
}

/* Waits until a descriptor that somebody made non-blocking takes more. */
static int wait_writable(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLOUT};
    int ready = poll(&one, 1, -1);
    return ready < 0 && errno != EINTR ? -errno : 0;
}

int sw__os_write_all(int fd, const void *from, size_t length)
{
    struct sw__os_guard guard;
    sw__os_guard_begin(&guard);
    int result = 0;
    for (size_t done = 0; done < length && !result;) {
        ssize_t part = write(fd, (const char *)from + done, length - done);
        if (part > 0) {
            done += (size_t)part;
        } else if (part == 0) {
            result = -EIO;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            result = wait_writable(fd);
        } else if (errno != EINTR) {
            result = -errno;
        }
    }
    sw__os_guard_end(&guard, result == -EFBIG);
    return result;
}

/* The sparse way to the same size, which a file that is already larger keeps. */
static int extend(int fd, uint64_t size)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    if ((uint64_t)status.st_size >= size) {
        return 0;
    }
    int failed;
    do {
        failed = ftruncate(fd, (off_t)size);
    } while (failed && errno == EINTR);
    return failed ? -errno : 0;
}

static int allocate_in(int fd, const struct identity *file, uint64_t from, uint64_t to,
                       bool sparse_ok)
{
    if (to <= from) {
        return 0;
    }
    if (!fits(from, to - from)) {
        return -EFBIG;
    }
    struct sw__os_guard guard;
    sw__os_guard_begin(&guard);
    /* tmpfs gives back everything when a signal comes and starts anew: a program with a
     * fast interval timer would keep us here for ever, hence a bound. */
    int result = -EINTR;
    for (int i = 0; i < MOST_RETRIES && result == -EINTR; i++) {
        if (!is(fd, file)) {
            result = -EBADF;
        } else {
            result = fallocate(fd, 0, (off_t)from, (off_t)(to - from)) ? -errno : 0;
        }
    }
    if ((result == -EOPNOTSUPP || result == -ENOSYS) && sparse_ok) {
        result = extend(fd, to);
    }
    sw__os_guard_end(&guard, result == -EFBIG);
    return is(fd, file) ? result : -EBADF;
}

int sw__os_allocate(int fd, uint64_t from, uint64_t to, bool sparse_ok)
{
    return allocate_in(fd, NULL, from, to, sparse_ok);
}

int sw__os_allocate_file(int fd, dev_t device, ino_t inode, uint64_t from, uint64_t to)
{
    const struct identity file = {.device = device, .inode = inode};
    return allocate_in(fd, &file, from, to, false);
}

int sw__os_populate(void *address, size_t length)
{
    if (length == 0) {
        return 0;
    }
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = (uintptr_t)address & ~(page - 1);
    uintptr_t end;
    if (__builtin_add_overflow((uintptr_t)address, length, &end)) {
        return -EINVAL;
    }
    int result = -EINTR;
    for (int i = 0; i < MOST_RETRIES && (result == -EINTR || result == -EAGAIN); i++) {
        result = madvise((void *)start, end - start, MADV_POPULATE_WRITE) ? -errno : 0;
    }
    /* A kernel that accepts the advice for no pages knows it: then the mapping is at
     * fault. */
    if (result != -EINVAL || madvise((void *)start, 0, MADV_POPULATE_WRITE) == 0) {
        return result;
    }
    /* An older kernel. Or-ing nothing makes the page writable and leaves it as it is,
     * even if another thread writes to it meanwhile. */
    for (uintptr_t at = (uintptr_t)address; at < end; at = (at & ~(page - 1)) + page) {
        atomic_fetch_or_explicit((_Atomic unsigned char *)at, 0, memory_order_relaxed);
    }
    return 0;
}
