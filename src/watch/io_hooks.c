/* The functions that stand in the place of those of the C library. Each calls the original with what it was given and gives
 * back its result and its errno; what is counted in between is counted by sw__io_count. */
#include "watch/io.h"

#include "base/clock_read.h"
#include "watch/plt.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Variants that check the size of buffers, where a program was compiled to have it checked. */
typedef ssize_t chk_read(int, void *, size_t, size_t);
typedef ssize_t chk_pread(int, void *, size_t, off_t, size_t);
typedef ssize_t chk_recv(int, void *, size_t, size_t, int);
typedef ssize_t chk_recvfrom(int, void *, size_t, size_t, int, struct sockaddr *,
                             socklen_t *);
typedef size_t chk_fread(void *, size_t, size_t, size_t, FILE *);
typedef char *chk_fgets(char *, size_t, int, FILE *);
typedef int chk_open(const char *, int);
typedef int chk_openat(int, const char *, int);
typedef int chk_poll(struct pollfd *, nfds_t, int, size_t);
typedef int chk_ppoll(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *,
                      size_t);
typedef int range_close(unsigned, unsigned, int);
typedef void from_close(int);

/* Name and type of every function that is replaced, by io_NAME. */
#define HOOK_TABLE(X)                                                                    \
    X(read, __typeof__(read))                                                            \
    X(write, __typeof__(write))                                                          \
    X(pread, __typeof__(pread))                                                          \
    X(pread64, __typeof__(pread64))                                                      \
    X(pwrite, __typeof__(pwrite))                                                        \
    X(pwrite64, __typeof__(pwrite64))                                                    \
    X(readv, __typeof__(readv))                                                          \
    X(writev, __typeof__(writev))                                                        \
    X(preadv, __typeof__(preadv))                                                        \
    X(preadv64, __typeof__(preadv64))                                                    \
    X(pwritev, __typeof__(pwritev))                                                      \
    X(pwritev64, __typeof__(pwritev64))                                                  \
    X(preadv2, __typeof__(preadv2))                                                      \
    X(preadv64v2, __typeof__(preadv64v2))                                                \
    X(pwritev2, __typeof__(pwritev2))                                                    \
    X(pwritev64v2, __typeof__(pwritev64v2))                                              \
    X(open, __typeof__(open))                                                            \
    X(open64, __typeof__(open64))                                                        \
    X(openat, __typeof__(openat))                                                        \
    X(openat64, __typeof__(openat64))                                                    \
    X(creat, __typeof__(creat))                                                          \
    X(creat64, __typeof__(creat64))                                                      \
    X(close, __typeof__(close))                                                          \
    X(close_range, range_close)                                                          \
    X(closefrom, from_close)                                                             \
    X(dup2, __typeof__(dup2))                                                            \
    X(dup3, __typeof__(dup3))                                                            \
    X(fsync, __typeof__(fsync))                                                          \
    X(fdatasync, __typeof__(fdatasync))                                                  \
    X(syncfs, __typeof__(syncfs))                                                        \
    X(sync_file_range, __typeof__(sync_file_range))                                      \
    X(mmap, __typeof__(mmap))                                                            \
    X(mmap64, __typeof__(mmap64))                                                        \
    X(send, __typeof__(send))                                                            \
    X(sendto, __typeof__(sendto))                                                        \
    X(sendmsg, __typeof__(sendmsg))                                                      \
    X(recv, __typeof__(recv))                                                            \
    X(recvfrom, __typeof__(recvfrom))                                                    \
    X(recvmsg, __typeof__(recvmsg))                                                      \
    X(connect, __typeof__(connect))                                                      \
    X(accept, __typeof__(accept))                                                        \
    X(accept4, __typeof__(accept4))                                                      \
    X(poll, __typeof__(poll))                                                            \
    X(ppoll, __typeof__(ppoll))                                                          \
    X(select, __typeof__(select))                                                        \
    X(pselect, __typeof__(pselect))                                                      \
    X(epoll_wait, __typeof__(epoll_wait))                                                \
    X(epoll_pwait, __typeof__(epoll_pwait))                                              \
    X(sendfile, __typeof__(sendfile))                                                    \
    X(sendfile64, __typeof__(sendfile64))                                                \
    X(copy_file_range, __typeof__(copy_file_range))                                      \
    X(rename, __typeof__(rename))                                                        \
    X(renameat, __typeof__(renameat))                                                    \
    X(renameat2, __typeof__(renameat2))                                                  \
    X(fopen, __typeof__(fopen))                                                          \
    X(fopen64, __typeof__(fopen64))                                                      \
    X(freopen, __typeof__(freopen))                                                      \
    X(freopen64, __typeof__(freopen64))                                                  \
    X(fclose, __typeof__(fclose))                                                        \
    X(fflush, __typeof__(fflush))                                                        \
    X(fread, __typeof__(fread))                                                          \
    X(fread_unlocked, __typeof__(fread_unlocked))                                        \
    X(fwrite, __typeof__(fwrite))                                                        \
    X(fwrite_unlocked, __typeof__(fwrite_unlocked))                                      \
    X(fgets, __typeof__(fgets))                                                          \
    X(fputs, __typeof__(fputs))                                                          \
    X(getline, __typeof__(getline))                                                      \
    X(getdelim, __typeof__(getdelim))                                                    \
    X(__read_chk, chk_read)                                                              \
    X(__pread_chk, chk_pread)                                                            \
    X(__pread64_chk, chk_pread)                                                          \
    X(__recv_chk, chk_recv)                                                              \
    X(__recvfrom_chk, chk_recvfrom)                                                      \
    X(__fread_chk, chk_fread)                                                            \
    X(__fgets_chk, chk_fgets)                                                            \
    X(__open_2, chk_open)                                                                \
    X(__open64_2, chk_open)                                                              \
    X(__openat_2, chk_openat)                                                            \
    X(__openat64_2, chk_openat)                                                          \
    X(__poll_chk, chk_poll)                                                              \
    X(__ppoll_chk, chk_ppoll)

enum hook {
#define HOOK_ENUM(name, type) HOOK_##name,
    HOOK_TABLE(HOOK_ENUM)
#undef HOOK_ENUM
        HOOKS
};
#define HOOK_TYPE(name, type) typedef __typeof__(type) *type_##name;
HOOK_TABLE(HOOK_TYPE)
#undef HOOK_TYPE

static struct sw__plt_hook hooks[HOOKS];
#define ORIGINAL(name) ((type_##name)sw__plt_original(&hooks[HOOK_##name]))

/* Ticks before the call; 0: it is not counted. */
SW__INLINE uint64_t began(void)
{
    return SW__LIKELY(sw__io_active()) ? sw__clock_now() : 0;
}

/* After the call, with errno as it left it. */
SW__INLINE void ended(enum sw_io_operation operation, int fd, uint64_t begin,
                      int64_t result, uint64_t offset, bool buffered)
{
    if (begin == 0) {
        return;
    }
    const uint64_t now = sw__clock_now();
    const int error = errno;
    const struct sw__io_call call = {.operation = operation,
                                     .begin = begin,
                                     .end = now,
                                     .result = result,
                                     .error = error,
                                     .offset = offset,
                                     .buffered = buffered};
    sw__io_count(sw__io_thing_of(fd), &call);
    errno = error;
}

#define HERE UINT64_MAX /* the descriptor's own position */

/* ---- reading and writing ---- */

static ssize_t io_read(int fd, void *to, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(read)(fd, to, size);
    ended(SW_IO_READ, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_write(int fd, const void *from, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(write)(fd, from, size);
    ended(SW_IO_WRITE, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io___read_chk(int fd, void *to, size_t size, size_t room)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(__read_chk)(fd, to, size, room);
    ended(SW_IO_READ, fd, begin, result, HERE, false);
    return result;
}

#define POSITIONED(name, operation, pointer)                                             \
    static ssize_t io_##name(int fd, pointer at, size_t size, off_t offset)              \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, at, size, offset);                     \
        ended(operation, fd, begin, result, (uint64_t)offset, false);                    \
        return result;                                                                   \
    }
POSITIONED(pread, SW_IO_READ, void *)
POSITIONED(pread64, SW_IO_READ, void *)
POSITIONED(pwrite, SW_IO_WRITE, const void *)
POSITIONED(pwrite64, SW_IO_WRITE, const void *)

#define POSITIONED_CHECKED(name)                                                         \
    static ssize_t io_##name(int fd, void *to, size_t size, off_t offset, size_t room)   \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, to, size, offset, room);               \
        ended(SW_IO_READ, fd, begin, result, (uint64_t)offset, false);                   \
        return result;                                                                   \
    }
POSITIONED_CHECKED(__pread_chk)
POSITIONED_CHECKED(__pread64_chk)

#define SCATTERED(name, operation)                                                       \
    static ssize_t io_##name(int fd, const struct iovec *parts, int count)               \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, parts, count);                         \
        ended(operation, fd, begin, result, HERE, false);                                \
        return result;                                                                   \
    }
SCATTERED(readv, SW_IO_READ)
SCATTERED(writev, SW_IO_WRITE)

#define SCATTERED_POSITIONED(name, operation)                                            \
    static ssize_t io_##name(int fd, const struct iovec *parts, int count, off_t offset) \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, parts, count, offset);                 \
        ended(operation, fd, begin, result, (uint64_t)offset, false);                    \
        return result;                                                                   \
    }
SCATTERED_POSITIONED(preadv, SW_IO_READ)
SCATTERED_POSITIONED(preadv64, SW_IO_READ)
SCATTERED_POSITIONED(pwritev, SW_IO_WRITE)
SCATTERED_POSITIONED(pwritev64, SW_IO_WRITE)

#define SCATTERED_FLAGGED(name, operation)                                               \
    static ssize_t io_##name(int fd, const struct iovec *parts, int count, off_t offset, \
                             int flags)                                                  \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, parts, count, offset, flags);          \
        ended(operation, fd, begin, result, (uint64_t)offset, false);                    \
        return result;                                                                   \
    }
SCATTERED_FLAGGED(preadv2, SW_IO_READ)
SCATTERED_FLAGGED(preadv64v2, SW_IO_READ)
SCATTERED_FLAGGED(pwritev2, SW_IO_WRITE)
SCATTERED_FLAGGED(pwritev64v2, SW_IO_WRITE)

/* One call, two things: the time counts for the one that is read. */
static void copied(int from, int to, uint64_t begin, ssize_t result)
{
    if (begin) {
        ended(SW_IO_READ, from, begin, result, HERE, false);
        ended(SW_IO_WRITE, to, sw__clock_now(), result, HERE, false);
    }
}

static ssize_t io_sendfile(int to, int from, off_t *offset, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendfile)(to, from, offset, size);
    copied(from, to, begin, result);
    return result;
}

static ssize_t io_sendfile64(int to, int from, off64_t *offset, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendfile64)(to, from, offset, size);
    copied(from, to, begin, result);
    return result;
}

static ssize_t io_copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at,
                                  size_t size, unsigned flags)
{
    const uint64_t begin = began();
    const ssize_t result =
        ORIGINAL(copy_file_range)(from, from_at, to, to_at, size, flags);
    copied(from, to, begin, result);
    return result;
}

/* ---- opening and closing ---- */

/* A descriptor came into being, or not: then the path is all there is. */
static SW__NOINLINE void opened(int folder, const char *path, uint64_t begin, int fd)
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
    static int io_##name(const char *path, int flags, ...)                               \
    {                                                                                    \
        mode_t mode = 0;                                                                 \
        MODE_OF(flags, mode)                                                             \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, flags, mode);                                \
        opened(AT_FDCWD, path, begin, fd);                                               \
        return fd;                                                                       \
    }
OPEN(open)
OPEN(open64)

#define OPENAT(name)                                                                     \
    static int io_##name(int folder, const char *path, int flags, ...)                   \
    {                                                                                    \
        mode_t mode = 0;                                                                 \
        MODE_OF(flags, mode)                                                             \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(folder, path, flags, mode);                        \
        opened(folder, path, begin, fd);                                                 \
        return fd;                                                                       \
    }
OPENAT(openat)
OPENAT(openat64)

#define CREAT(name)                                                                      \
    static int io_##name(const char *path, mode_t mode)                                  \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, mode);                                       \
        opened(AT_FDCWD, path, begin, fd);                                               \
        return fd;                                                                       \
    }
CREAT(creat)
CREAT(creat64)

#define OPEN_CHECKED(name)                                                               \
    static int io_##name(const char *path, int flags)                                    \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(path, flags);                                      \
        opened(AT_FDCWD, path, begin, fd);                                               \
        return fd;                                                                       \
    }
OPEN_CHECKED(__open_2)
OPEN_CHECKED(__open64_2)

#define OPENAT_CHECKED(name)                                                             \
    static int io_##name(int folder, const char *path, int flags)                        \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int fd = ORIGINAL(name)(folder, path, flags);                              \
        opened(folder, path, begin, fd);                                                 \
        return fd;                                                                       \
    }
OPENAT_CHECKED(__openat_2)
OPENAT_CHECKED(__openat64_2)

/* What a descriptor stands for, before it is closed. NULL: nobody has asked, and then nothing is counted. */
static struct sw__thing *closing(int fd, uint64_t begin)
{
    struct sw__thing *thing = begin ? sw__io_thing_known(fd) : NULL;
    /* Before it is free: another thread may get the number at once. */
    sw__io_forget(fd);
    return thing;
}

static void closed(struct sw__thing *thing, uint64_t begin, int result)
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

static int io_close(int fd)
{
    const uint64_t begin = began();
    struct sw__thing *thing = closing(fd, begin);
    const int result = ORIGINAL(close)(fd);
    closed(thing, begin, result);
    return result;
}

static int io_close_range(unsigned first, unsigned last, int flags)
{
    sw__io_forget_from(first, last);
    return ORIGINAL(close_range)(first, last, flags);
}

static void io_closefrom(int first)
{
    sw__io_forget_from(first < 0 ? 0 : (unsigned)first, UINT32_MAX);
    ORIGINAL(closefrom)(first);
}

static int io_dup2(int from, int to)
{
    const int result = ORIGINAL(dup2)(from, to);
    sw__io_forget(result >= 0 && from != to ? to : -1);
    return result;
}

static int io_dup3(int from, int to, int flags)
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

static int io_rename(const char *from, const char *to)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(rename)(from, to);
    renamed(AT_FDCWD, to, begin, result);
    return result;
}

static int io_renameat(int from_folder, const char *from, int to_folder, const char *to)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(renameat)(from_folder, from, to_folder, to);
    renamed(to_folder, to, begin, result);
    return result;
}

static int io_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                        unsigned flags)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(renameat2)(from_folder, from, to_folder, to, flags);
    renamed(to_folder, to, begin, result);
    return result;
}

/* ---- to the disk, into memory ---- */

#define SYNC(name)                                                                       \
    static int io_##name(int fd)                                                         \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const int result = ORIGINAL(name)(fd);                                           \
        ended(SW_IO_SYNC, fd, begin, result, HERE, false);                               \
        return result;                                                                   \
    }
SYNC(fsync)
SYNC(fdatasync)
SYNC(syncfs)

static int io_sync_file_range(int fd, off64_t from, off64_t size, unsigned flags)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(sync_file_range)(fd, from, size, flags);
    ended(SW_IO_SYNC, fd, begin, result, (uint64_t)from, false);
    return result;
}

#define MAP(name)                                                                        \
    static void *io_##name(void *at, size_t size, int protection, int flags, int fd,     \
                           off_t offset)                                                 \
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

/* ---- sockets ---- */

static ssize_t io_send(int fd, const void *from, size_t size, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(send)(fd, from, size, flags);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_sendto(int fd, const void *from, size_t size, int flags,
                         const struct sockaddr *to, socklen_t length)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendto)(fd, from, size, flags, to, length);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_sendmsg(int fd, const struct msghdr *message, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendmsg)(fd, message, flags);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_recv(int fd, void *to, size_t size, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recv)(fd, to, size, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_recvfrom(int fd, void *to, size_t size, int flags,
                           struct sockaddr *from, socklen_t *length)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recvfrom)(fd, to, size, flags, from, length);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io_recvmsg(int fd, struct msghdr *message, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recvmsg)(fd, message, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io___recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(__recv_chk)(fd, to, size, room, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

static ssize_t io___recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                                 struct sockaddr *from, socklen_t *length)
{
    const uint64_t begin = began();
    const ssize_t result =
        ORIGINAL(__recvfrom_chk)(fd, to, size, room, flags, from, length);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

static int io_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(connect)(fd, to, length);
    sw__io_forget(fd); /* It has a peer now. */
    ended(SW_IO_CONNECT, fd, begin, result, HERE, false);
    return result;
}

static int io_accept(int fd, struct sockaddr *from, socklen_t *length)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(accept)(fd, from, length);
    sw__io_forget(result);
    ended(SW_IO_ACCEPT, fd, begin, result, HERE, false);
    return result;
}

static int io_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(accept4)(fd, from, length, flags);
    sw__io_forget(result);
    ended(SW_IO_ACCEPT, fd, begin, result, HERE, false);
    return result;
}

/* ---- waiting ---- */

/* `fd` below 0: for several. One that does not wait is not counted. */
static void waited(int fd, uint64_t begin, int result)
{
    if (begin) {
        const uint64_t now = sw__clock_now();
        const int error = errno;
        const struct sw__io_call call = {.operation = SW_IO_WAIT,
                                         .begin = begin,
                                         .end = now,
                                         .result = result,
                                         .error = error,
                                         .offset = HERE};
        sw__io_count(fd >= 0 ? sw__io_thing_of(fd)
                             : sw__io_thing_number(SW__THING_SEVERAL),
                     &call);
        errno = error;
    }
}

/* The descriptor that a call waited for, if it was one. What could not be read is not looked at. */
static int one_of(const struct pollfd *fds, nfds_t count, uint64_t begin, int result)
{
    const bool readable = result >= 0 || errno != EFAULT;
    return begin && count == 1 && readable ? fds[0].fd : -1;
}

static bool is_pause(const struct timespec *timeout)
{
    return !timeout || timeout->tv_sec || timeout->tv_nsec;
}

static int io_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(poll)(fds, count, timeout);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

static int io___poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(__poll_chk)(fds, count, timeout, room);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

static int io_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                    const sigset_t *mask)
{
    const uint64_t begin = is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(ppoll)(fds, count, timeout, mask);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

static int io___ppoll_chk(struct pollfd *fds, nfds_t count,
                          const struct timespec *timeout, const sigset_t *mask,
                          size_t room)
{
    const uint64_t begin = is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(__ppoll_chk)(fds, count, timeout, mask, room);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

static int io_select(int most, fd_set *readers, fd_set *writers, fd_set *others,
                     struct timeval *timeout)
{
    const bool waits = most > 0 && (!timeout || timeout->tv_sec || timeout->tv_usec);
    const uint64_t begin = waits ? began() : 0;
    const int result = ORIGINAL(select)(most, readers, writers, others, timeout);
    waited(-1, begin, result);
    return result;
}

static int io_pselect(int most, fd_set *readers, fd_set *writers, fd_set *others,
                      const struct timespec *timeout, const sigset_t *mask)
{
    const uint64_t begin = most > 0 && is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(pselect)(most, readers, writers, others, timeout, mask);
    waited(-1, begin, result);
    return result;
}

static int io_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(epoll_wait)(fd, events, most, timeout);
    waited(fd, begin, result);
    return result;
}

static int io_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
                          const sigset_t *mask)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(epoll_pwait)(fd, events, most, timeout, mask);
    waited(fd, begin, result);
    return result;
}

/* ---- streams: what the C library does for them is out of sight, so its own functions are hooked ---- */

/* `stream` NULL: fflush of all. */
static int number_of(FILE *stream)
{
    const int error = errno;
    const int fd = stream ? fileno(stream) : -1;
    errno = error;
    return fd;
}

#define FOPEN(name)                                                                      \
    static FILE *io_##name(const char *path, const char *mode)                           \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        FILE *result = ORIGINAL(name)(path, mode);                                       \
        opened(AT_FDCWD, path, begin, number_of(result));                                \
        return result;                                                                   \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                                    \
    static FILE *io_##name(const char *path, const char *mode, FILE *stream)             \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        sw__io_forget(number_of(stream));                                                \
        FILE *result = ORIGINAL(name)(path, mode, stream);                               \
        opened(AT_FDCWD, path, begin, number_of(result));                                \
        return result;                                                                   \
    }
FREOPEN(freopen)
FREOPEN(freopen64)

static int io_fclose(FILE *stream)
{
    const uint64_t begin = began();
    struct sw__thing *thing = closing(number_of(stream), begin);
    const int result = ORIGINAL(fclose)(stream);
    closed(thing, begin, result);
    return result;
}

static int io_fflush(FILE *stream)
{
    const uint64_t begin = stream ? began() : 0;
    const int result = ORIGINAL(fflush)(stream);
    ended(SW_IO_WRITE, begin ? number_of(stream) : -1, begin, result ? -1 : 0, HERE,
          true);
    return result;
}

#define STREAM(name, operation, pointer)                                                 \
    static size_t io_##name(pointer at, size_t size, size_t count, FILE *stream)         \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const size_t result = ORIGINAL(name)(at, size, count, stream);                   \
        ended(operation, begin ? number_of(stream) : -1, begin,                          \
              (int64_t)(result * size), HERE, true);                                     \
        return result;                                                                   \
    }
STREAM(fread, SW_IO_READ, void *)
STREAM(fread_unlocked, SW_IO_READ, void *)
STREAM(fwrite, SW_IO_WRITE, const void *)
STREAM(fwrite_unlocked, SW_IO_WRITE, const void *)

static size_t io___fread_chk(void *to, size_t room, size_t size, size_t count,
                             FILE *stream)
{
    const uint64_t begin = began();
    const size_t result = ORIGINAL(__fread_chk)(to, room, size, count, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, (int64_t)(result * size),
          HERE, true);
    return result;
}

static char *io_fgets(char *to, int size, FILE *stream)
{
    const uint64_t begin = began();
    char *result = ORIGINAL(fgets)(to, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin,
          begin && result ? (int64_t)strlen(result) : 0, HERE, true);
    return result;
}

static char *io___fgets_chk(char *to, size_t room, int size, FILE *stream)
{
    const uint64_t begin = began();
    char *result = ORIGINAL(__fgets_chk)(to, room, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin,
          begin && result ? (int64_t)strlen(result) : 0, HERE, true);
    return result;
}

static int io_fputs(const char *from, FILE *stream)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(fputs)(from, stream);
    ended(SW_IO_WRITE, begin ? number_of(stream) : -1, begin,
          begin && result >= 0 ? (int64_t)strlen(from) : 0, HERE, true);
    return result;
}

static ssize_t io_getline(char **line, size_t *size, FILE *stream)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(getline)(line, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, result > 0 ? result : 0,
          HERE, true);
    return result;
}

static ssize_t io_getdelim(char **line, size_t *size, int end, FILE *stream)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(getdelim)(line, size, end, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, result > 0 ? result : 0,
          HERE, true);
    return result;
}

static struct sw__plt_hook hooks[HOOKS] = {
#define HOOK_ENTRY(function, type)                                                       \
    [HOOK_##function] = {.name = #function, .replacement = (void *)io_##function},
    HOOK_TABLE(HOOK_ENTRY)
#undef HOOK_ENTRY
};

struct sw__plt_set sw__io_set = {.hooks = hooks, .count = HOOKS};
