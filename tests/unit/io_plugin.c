#define _GNU_SOURCE
#include "io_plugin.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>

extern const struct io_plugin io_plugin;

static int p_open(const char *path, int flags, mode_t mode)
{
    return open(path, flags, mode);
}
static int p_close(int fd)
{
    return close(fd);
}
static ssize_t p_read(int fd, void *to, size_t size)
{
    return read(fd, to, size);
}
static ssize_t p_write(int fd, const void *from, size_t size)
{
    return write(fd, from, size);
}
static ssize_t p_pread(int fd, void *to, size_t size, off_t offset)
{
    return pread(fd, to, size, offset);
}
static ssize_t p_pwrite(int fd, const void *from, size_t size, off_t offset)
{
    return pwrite(fd, from, size, offset);
}
static ssize_t p_readv(int fd, const struct iovec *parts, int count)
{
    return readv(fd, parts, count);
}
static int p_fsync(int fd)
{
    return fsync(fd);
}
static void *p_mmap(void *at, size_t size, int protection, int flags, int fd,
                    off_t offset)
{
    return mmap(at, size, protection, flags, fd, offset);
}
static ssize_t p_send(int fd, const void *from, size_t size, int flags)
{
    return send(fd, from, size, flags);
}
static ssize_t p_recv(int fd, void *to, size_t size, int flags)
{
    return recv(fd, to, size, flags);
}
static int p_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    return connect(fd, to, length);
}
static int p_accept(int fd, struct sockaddr *from, socklen_t *length)
{
    return accept(fd, from, length);
}
static int p_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    return poll(fds, count, timeout);
}
static ssize_t p_sendfile(int to, int from, off_t *offset, size_t size)
{
    return sendfile(to, from, offset, size);
}
static int p_rename(const char *from, const char *to)
{
    return rename(from, to);
}
static int p_dup2(int from, int to)
{
    return dup2(from, to);
}
static FILE *p_fopen(const char *path, const char *mode)
{
    return fopen(path, mode);
}
static size_t p_fread(void *to, size_t size, size_t count, FILE *stream)
{
    return fread(to, size, count, stream);
}
static size_t p_fwrite(const void *from, size_t size, size_t count, FILE *stream)
{
    return fwrite(from, size, count, stream);
}
static char *p_fgets(char *to, int size, FILE *stream)
{
    return fgets(to, size, stream);
}
static int p_fclose(FILE *stream)
{
    return fclose(stream);
}

const struct io_plugin io_plugin = {
    .open = p_open,
    .close = p_close,
    .read = p_read,
    .write = p_write,
    .pread = p_pread,
    .pwrite = p_pwrite,
    .readv = p_readv,
    .fsync = p_fsync,
    .mmap = p_mmap,
    .send = p_send,
    .recv = p_recv,
    .connect = p_connect,
    .accept = p_accept,
    .poll = p_poll,
    .sendfile = p_sendfile,
    .rename = p_rename,
    .dup2 = p_dup2,
    .fopen = p_fopen,
    .fread = p_fread,
    .fwrite = p_fwrite,
    .fgets = p_fgets,
    .fclose = p_fclose,
};
