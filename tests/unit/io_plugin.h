/* Calls of the C library as a library makes them: through its import entries. */
#ifndef IO_PLUGIN_H
#define IO_PLUGIN_H

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

struct io_plugin {
    int (*open)(const char *path, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*read)(int fd, void *to, size_t size);
    ssize_t (*write)(int fd, const void *from, size_t size);
    ssize_t (*pread)(int fd, void *to, size_t size, off_t offset);
    ssize_t (*pwrite)(int fd, const void *from, size_t size, off_t offset);
    ssize_t (*readv)(int fd, const struct iovec *parts, int count);
    int (*fsync)(int fd);
    void *(*mmap)(void *at, size_t size, int protection, int flags, int fd, off_t offset);
    ssize_t (*send)(int fd, const void *from, size_t size, int flags);
    ssize_t (*recv)(int fd, void *to, size_t size, int flags);
    int (*connect)(int fd, const struct sockaddr *to, socklen_t length);
    int (*accept)(int fd, struct sockaddr *from, socklen_t *length);
    int (*poll)(struct pollfd *fds, nfds_t count, int timeout);
    ssize_t (*sendfile)(int to, int from, off_t *offset, size_t size);
    int (*rename)(const char *from, const char *to);
    int (*dup2)(int from, int to);
    FILE *(*fopen)(const char *path, const char *mode);
    size_t (*fread)(void *to, size_t size, size_t count, FILE *stream);
    size_t (*fwrite)(const void *from, size_t size, size_t count, FILE *stream);
    char *(*fgets)(char *to, int size, FILE *stream);
    int (*fclose)(FILE *stream);
};

#endif
