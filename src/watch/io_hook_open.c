/* Calls on descriptors and paths: opening, closing, renaming; what goes to the disk, what is mapped into memory. */
#include "watch/io_hooks.h"

#include <stdarg.h>

SW__NOINLINE void sw__io_opened(int folder, const char *path, uint64_t begin, int fd)
{
    if (begin == 0) {
        return;
    }
    const uint64_t now = sw__clock_now();
    const int error = errno;
    const struct sw__io_call call = {.operation = SW_IO_OPEN,
                                     .begin = begin,
                                     .end = now,
                                     .result = fd,
                                     .error = error,
                                     .offset = HERE};
    /* A child of vfork has our memory but descriptors of its own. */
    if (getpid() == atomic_load_explicit(&sw__io_pid, memory_order_relaxed)) {
        sw__io_forget(fd);
        if (fd >= 0) {
            sw__io_count(sw__io_thing_of(fd), &call);
        } else if (path && error != EFAULT) { /* A path that can be read. */
            sw__io_count(sw__io_thing_at(folder, path), &call);
        }
    }
    errno = error;
}

#define NEEDS_MODE(flags) (((flags)&O_CREAT) || ((flags)&O_TMPFILE) == O_TMPFILE)
#define MODE_OF(flags, mode)                                                             \
    if (NEEDS_MODE(flags)) {                                                             \
        va_list arguments;                                                               \
        va_start(arguments, flags);                                                      \
        (mode) = va_arg(arguments, mode_t);                                              \
        va_end(arguments);                                                               \
    }

#define OPEN(name)                                                                       \
    int sw__io_##name(const char *path, int flags, ...)                                  \
    {                                                                                    \
        mode_t mode = 0;                                                                 \
        MODE_OF(flags, mode)                                                             \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, flags, mode);                                \
        sw__io_opened(AT_FDCWD, path, begin, fd);                                        \
        return fd;                                                                       \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                     \
    int sw__io_##name(int folder, const char *path, int flags, ...)                      \
    {                                                                                    \
        mode_t mode = 0;                                                                 \
        MODE_OF(flags, mode)                                                             \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(folder, path, flags, mode);                        \
        sw__io_opened(folder, path, begin, fd);                                          \
        return fd;                                                                       \
    }
OPENAT(openat)
OPENAT(openat64)

#define CREAT(name)                                                                      \
    int sw__io_##name(const char *path, mode_t mode)                                     \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, mode);                                       \
        sw__io_opened(AT_FDCWD, path, begin, fd);                                        \
        return fd;                                                                       \
    }
CREAT(creat)
CREAT(creat64)

#define OPEN_CHECKED(name)                                                               \
    int sw__io_##name(const char *path, int flags)                                       \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, flags);                                      \
        sw__io_opened(AT_FDCWD, path, begin, fd);                                        \
        return fd;                                                                       \
    }
OPEN_CHECKED(__open_2)
OPEN_CHECKED(__open64_2)

#define OPENAT_CHECKED(name)                                                             \
    int sw__io_##name(int folder, const char *path, int flags)                           \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(folder, path, flags);                              \
        sw__io_opened(folder, path, begin, fd);                                          \
        return fd;                                                                       \
    }
OPENAT_CHECKED(__openat_2)
OPENAT_CHECKED(__openat64_2)

struct sw__thing *sw__io_closing(int fd, uint64_t begin)
{
    struct sw__thing *thing = begin ? sw__io_thing_known(fd) : NULL;
    /* Before it is free: another thread may get the number at once. */
    sw__io_forget(fd);
    return thing;
}

void sw__io_closed(struct sw__thing *thing, uint64_t begin, int result)
{
    if (thing) {
        const uint64_t now = sw__clock_now();
        const int error = errno;
        const struct sw__io_call call = {.operation = SW_IO_CLOSE,
                                         .begin = begin,
                                         .end = now,
                                         .result = result,
                                         .error = error,
                                         .offset = HERE};
        sw__io_count(thing, &call);
        errno = error;
    }
}

int sw__io_close(int fd)
{
    const uint64_t begin = began();
    struct sw__thing *thing = sw__io_closing(fd, begin);
    const int result = ORIGINAL(close)(fd);
    sw__io_closed(thing, begin, result);
    return result;
}

int sw__io_close_range(unsigned first, unsigned last, int flags)
{
    sw__io_forget_from(first, last);
    return ORIGINAL(close_range)(first, last, flags);
}

void sw__io_closefrom(int first)
{
    sw__io_forget_from(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    ORIGINAL(closefrom)(first);
}

int sw__io_dup2(int from, int to)
{
    const int result = ORIGINAL(dup2)(from, to);
    sw__io_forget(result >= 0 && from != to ? to : -1);
    return result;
}

int sw__io_dup3(int from, int to, int flags)
{
    const int result = ORIGINAL(dup3)(from, to, flags);
    sw__io_forget(result >= 0 ? to : -1);
    return result;
}

static void renamed(int folder, const char *path, uint64_t begin, int result)
{
    if (begin && (result == 0 || errno != EFAULT)) {
        const uint64_t now = sw__clock_now();
        const int error = errno;
        const struct sw__io_call call = {.operation = SW_IO_RENAME,
                                         .begin = begin,
                                         .end = now,
                                         .result = result,
                                         .error = error,
                                         .offset = HERE};
        sw__io_count(sw__io_thing_at(folder, path), &call);
        errno = error;
    }
}

int sw__io_rename(const char *from, const char *to)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(rename)(from, to);
    renamed(AT_FDCWD, to, begin, result);
    return result;
}

int sw__io_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(renameat)(from_folder, from, to_folder, to);
    renamed(to_folder, to, begin, result);
    return result;
}

int sw__io_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(renameat2)(from_folder, from, to_folder, to, flags);
    renamed(to_folder, to, begin, result);
    return result;
}

/* ---- to the disk, into memory ---- */

#define SYNC(name)                                                                       \
    int sw__io_##name(int fd)                                                            \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int result = ORIGINAL(name)(fd);                                           \
        ended(SW_IO_SYNC, fd, begin, result, HERE, false);                               \
        return result;                                                                   \
    }
SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

int sw__io_sync_file_range(int fd, off64_t from, off64_t size, unsigned flags)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(sync_file_range)(fd, from, size, flags);
    ended(SW_IO_SYNC, fd, begin, result, (uint64_t)from, false);
    return result;
}

#define MAP(name)                                                                        \
    void *sw__io_##name(void *at, size_t size, int protection, int flags, int fd,        \
                        off_t offset)                                                    \
    {                                                                                    \
        const bool is_file = !(flags & MAP_ANONYMOUS) && fd >= 0;                        \
        const uint64_t begin = is_file ? began() : 0;                                    \
        void *result = ORIGINAL(name)(at, size, protection, flags, fd, offset);          \
        ended(SW_IO_MAP, fd, begin, result == MAP_FAILED ? -1 : (int64_t)size,           \
              (uint64_t)offset, false);                                                  \
        return result;                                                                   \
    }
MAP(mmap)
MAP(mmap64)
