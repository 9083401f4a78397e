/* Calls on sockets, and those that wait for descriptors. */
#include "watch/io_hooks.h"

ssize_t sw__io_send(int fd, const void *from, size_t size, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(send)(fd, from, size, flags);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_sendto(int fd, const void *from, size_t size, int flags,
                      const struct sockaddr *to, socklen_t length)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendto)(fd, from, size, flags, to, length);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_sendmsg(int fd, const struct msghdr *message, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(sendmsg)(fd, message, flags);
    ended(SW_IO_SEND, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_recv(int fd, void *to, size_t size, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recv)(fd, to, size, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_recvfrom(int fd, void *to, size_t size, int flags, struct sockaddr *from,
                        socklen_t *length)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recvfrom)(fd, to, size, flags, from, length);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io_recvmsg(int fd, struct msghdr *message, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(recvmsg)(fd, message, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io___recv_chk(int fd, void *to, size_t size, size_t room, int flags)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(__recv_chk)(fd, to, size, room, flags);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

ssize_t sw__io___recvfrom_chk(int fd, void *to, size_t size, size_t room, int flags,
                              struct sockaddr *from, socklen_t *length)
{
    const uint64_t begin = began();
    const ssize_t result =
        ORIGINAL(__recvfrom_chk)(fd, to, size, room, flags, from, length);
    ended(SW_IO_RECEIVE, fd, begin, result, HERE, false);
    return result;
}

int sw__io_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(connect)(fd, to, length);
    sw__io_forget(fd); /* It has a peer now. */
    ended(SW_IO_CONNECT, fd, begin, result, HERE, false);
    return result;
}

int sw__io_accept(int fd, struct sockaddr *from, socklen_t *length)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(accept)(fd, from, length);
    sw__io_forget(result);
    ended(SW_IO_ACCEPT, fd, begin, result, HERE, false);
    return result;
}

int sw__io_accept4(int fd, struct sockaddr *from, socklen_t *length, int flags)
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

int sw__io_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(poll)(fds, count, timeout);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

int sw__io___poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t room)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(__poll_chk)(fds, count, timeout, room);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

int sw__io_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                 const sigset_t *mask)
{
    const uint64_t begin = is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(ppoll)(fds, count, timeout, mask);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

int sw__io___ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
                       const sigset_t *mask, size_t room)
{
    const uint64_t begin = is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(__ppoll_chk)(fds, count, timeout, mask, room);
    waited(one_of(fds, count, begin, result), begin, result);
    return result;
}

int sw__io_select(int most, fd_set *readers, fd_set *writers, fd_set *others,
                  struct timeval *timeout)
{
    const bool waits = most > 0 && (!timeout || timeout->tv_sec || timeout->tv_usec);
    const uint64_t begin = waits ? began() : 0;
    const int result = ORIGINAL(select)(most, readers, writers, others, timeout);
    waited(-1, begin, result);
    return result;
}

int sw__io_pselect(int most, fd_set *readers, fd_set *writers, fd_set *others,
                   const struct timespec *timeout, const sigset_t *mask)
{
    const uint64_t begin = most > 0 && is_pause(timeout) ? began() : 0;
    const int result = ORIGINAL(pselect)(most, readers, writers, others, timeout, mask);
    waited(-1, begin, result);
    return result;
}

int sw__io_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(epoll_wait)(fd, events, most, timeout);
    waited(fd, begin, result);
    return result;
}

int sw__io_epoll_pwait(int fd, struct epoll_event *events, int most, int timeout,
                       const sigset_t *mask)
{
    const uint64_t begin = timeout ? began() : 0;
    const int result = ORIGINAL(epoll_pwait)(fd, events, most, timeout, mask);
    waited(fd, begin, result);
    return result;
}
