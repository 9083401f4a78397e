#include "watch/proc_file.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

int sw__proc_open(struct sw__proc_file *file, const char *root, const char *path,
                  char *why, size_t size)
{
    char whole[PATH_MAX];
    struct stat facts;
    snprintf(whole, sizeof whole, "%s%s", root, path);
    file->fd = -1;
    int fd = sw__os_open_read(whole);
    if (fd >= 0 && fstat(fd, &facts)) {
        const int error = errno;
        close(fd);
        fd = -error;
    }
    if (fd < 0) {
        if (why) {
            snprintf(why, size, "%.100s cannot be read: %s", path, strerror(-fd));
        }
        return SW_EOPEN;
    }
    file->fd = fd;
    file->device = facts.st_dev;
    file->inode = facts.st_ino;
    return SW_OK;
}

int sw__proc_read(const struct sw__proc_file *file, char *to, size_t size)
{
    *to = '\0';
    if (file->fd < 0) {
        return -EBADF;
    }
    ssize_t got;
    do {
        got = pread(file->fd, to, size - 1, 0);
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return -errno;
    }
    to[got] = '\0';
    return (int)got;
}

void sw__proc_close(struct sw__proc_file *file)
{
    if (file->fd >= 0 && sw__os_is_file(file->fd, file->device, file->inode)) {
        close(file->fd);
    }
    file->fd = -1;
}
