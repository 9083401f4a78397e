/* Calls that read and write by a descriptor. */
#include "watch/io_hooks.h"

ssize_t sw__io_read(int fd, void *to, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(read)(fd, to, size);
    ended(SW_IO_READ, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_write(int fd, const void *from, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(write)(fd, from, size);
    ended(SW_IO_WRITE, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io___read_chk(int fd, void *to, size_t size, size_t room)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(__read_chk)(fd, to, size, room);
    ended(SW_IO_READ, fd, begin, result, HERE, false);
    return result;
}

#define POSITIONED(name, operation, pointer)                                             \
    ssize_t sw__io_##name(int fd, pointer at, size_t size, off_t offset)                 \
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
    ssize_t sw__io_##name(int fd, void *to, size_t size, off_t offset, size_t room)      \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, to, size, offset, room);               \
        ended(SW_IO_READ, fd, begin, result, (uint64_t)offset, false);                   \
        return result;                                                                   \
    }
POSITIONED_CHECKED(__pread_chk)
POSITIONED_CHECKED(__pread64_chk)

#define SCATTERED(name, operation)                                                       \
    ssize_t sw__io_##name(int fd, const struct iovec *parts, int count)                  \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const ssize_t result = ORIGINAL(name)(fd, parts, count);                         \
        ended(operation, fd, begin, result, HERE, false);                                \
        return result;                                                                   \
    }
SCATTERED(readv, SW_IO_READ)
SCATTERED(writev, SW_IO_WRITE)

#define SCATTERED_POSITIONED(name, operation)                                            \
    ssize_t sw__io_##name(int fd, const struct iovec *parts, int count, off_t offset)    \
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
    ssize_t sw__io_##name(int fd, const struct iovec *parts, int count, off_t offset,    \
                          int flags)                                                     \
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

ssize_t sw__io_sendfile(int to, int from, off_t *offset, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendfile)(to, from, offset, size);
    copied(from, to, begin, result);
    return result;
}

ssize_t sw__io_sendfile64(int to, int from, off64_t *offset, size_t size)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendfile64)(to, from, offset, size);
    copied(from, to, begin, result);
    return result;
}

ssize_t sw__io_copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at,
                               size_t size, unsigned flags)
{
    const uint64_t begin = began();
    const ssize_t result =
        ORIGINAL(copy_file_range)(from, from_at, to, to_at, size, flags);
    copied(from, to, begin, result);
    return result;
}
