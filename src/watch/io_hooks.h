/* Between the files with the functions that stand in the place of those of the C library. Each calls the original with what it
 * was given and gives back its result and its errno; what is counted in between is counted by sw__io_count.
 *
 *   io_hook_move.c     reading and writing
 *   io_hook_open.c     descriptors and paths: opening, closing, renaming; to the disk, into memory
 *   io_hook_socket.c   sockets, and waiting
 *   io_hook_stream.c   streams of the C library
 *   io_hooks.c         all of them as one set */
#ifndef SW_WATCH_IO_HOOKS_H
#define SW_WATCH_IO_HOOKS_H

#include "base/clock_read.h"
#include "watch/io.h"
#include "watch/plt.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
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

/* Name and type of every function that is replaced, by sw__io_NAME. */
#define SW__IO_HOOKS(X)                                                                  \
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

enum sw__io_hook {
#define SW__IO_NUMBER(name, type) SW__IO_HOOK_##name,
    SW__IO_HOOKS(SW__IO_NUMBER)
#undef SW__IO_NUMBER
        SW__IO_HOOK_COUNT
};
#define SW__IO_DECLARE(name, type)                                                       \
    typedef __typeof__(type) *sw__io_type_##name;                                        \
    __typeof__(type) sw__io_##name;
SW__IO_HOOKS(SW__IO_DECLARE)
#undef SW__IO_DECLARE

extern struct sw__plt_hook sw__io_hook[SW__IO_HOOK_COUNT];
#define ORIGINAL(name)                                                                   \
    ((sw__io_type_##name)sw__plt_original(&sw__io_hook[SW__IO_HOOK_##name]))

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

/* A descriptor came into being, or not: then the path is all there is. */
void sw__io_opened(int folder, const char *path, uint64_t begin, int fd);
/* What a descriptor stands for, before it is closed. NULL: nobody has asked, and then nothing is counted. */
struct sw__thing *sw__io_closing(int fd, uint64_t begin);
void sw__io_closed(struct sw__thing *thing, uint64_t begin, int result);

#endif
