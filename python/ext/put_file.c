#include "put_file.h"
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stepwatch/write.h>

/* Closes `fd`. 0 or errno. */
static int put_bytes(int fd, const char *bytes, size_t length)
{
    sw_error_info info = {0};
    sw_writer *writer = sw_writer_to_fd(fd);
    sw_write_bytes(writer, bytes, length);
    int error = writer ? 0 : ENOMEM;
    if (sw_writer_close(writer, &info)) {
        error = info.os_errno ? info.os_errno : EIO;
    }
    if (close(fd) != 0 && !error) {
        error = errno;
    }
    return error;
}

static int replace(const char *path, const char *bytes, size_t length, mode_t mode,
                   bool keep_mode)
{
    static _Atomic unsigned number;
    const size_t size = strlen(path) + 48;
    char *meanwhile = malloc(size);
    if (!meanwhile) {
        return ENOMEM;
    }
    snprintf(meanwhile, size, "%s.%d-%u.part", path, (int)getpid(), number++);
    const int fd = open(meanwhile, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) {
        const int error = errno;
        free(meanwhile);
        return error;
    }
    if (keep_mode && fchmod(fd, mode) != 0) {
        errno = 0; /* some file systems have no modes */
    }
    int error = put_bytes(fd, bytes, length);
    if (!error && rename(meanwhile, path) != 0) {
        error = errno;
    }
    if (error) {
        unlink(meanwhile);
    }
    free(meanwhile);
    return error;
}

int put_file(const char *path, const char *bytes, size_t length, mode_t mode)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return replace(path, bytes, length, mode, false);
    }
    if (!S_ISREG(status.st_mode)) {
        const int fd = open(path, O_WRONLY | O_CLOEXEC);
        return fd < 0 ? errno : put_bytes(fd, bytes, length);
    }
    char *real = realpath(path, NULL);
    const int error =
        real ? replace(real, bytes, length, status.st_mode & 0777, true) : errno;
    free(real);
    return error;
}
