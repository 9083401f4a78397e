/* The two files of a trace. They are read, never mapped: a file that shrinks under a
 * mapping kills its reader.
 *
 * A run may have more files than a process may have descriptors. The first few
 * hundred stay open; the others are opened for each read, which is one chunk at a
 * time. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "read/trace_internal.h"

#define KEPT_OPEN 256

static atomic_int kept_open;

static int open_path(const char *path)
{
    /* Symbolic links are followed: the path is the user's. Without O_NONBLOCK a
     * named pipe would hang us. */
    int fd;
    do {
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    return fd;
}

int sw__source_adopt(struct sw__source *source, int fd, const char *path,
                     sw_error_info *info)
{
    struct stat status;
    source->fd = fd;
    if (fstat(fd, &status) != 0) {
        return sw_error_set(info, SW_EREAD, "%s cannot be read: %s", path,
                            strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return sw_error_set(info, SW_EOPEN, "%s is %s, not a trace file", path,
                            S_ISDIR(status.st_mode) ? "a folder" : "not a regular file");
    }
    source->path = sw__strndup(path, strlen(path));
    if (!source->path) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    source->device = status.st_dev;
    source->inode = status.st_ino;
    source->uid = status.st_uid;
    source->size = (uint64_t)status.st_size;
    return SW_OK;
}

int sw__source_open(struct sw__source *source, const char *path, sw_error_info *info)
{
    int fd = open_path(path);
    if (fd >= 0) {
        return sw__source_adopt(source, fd, path, info);
    }
    int error = errno;
    int result = error == ENOENT || error == ENOTDIR
                     ? sw_error_set(info, SW_EOPEN, "%s does not exist", path)
                     : sw_error_set(info, SW_EOPEN, "%s cannot be opened: %s", path,
                                    strerror(error));
    if (info) {
        info->os_errno = error;
    }
    return result;
}

void sw__source_refresh(struct sw__source *source)
{
    struct stat status;
    if (source->fd >= 0 && fstat(source->fd, &status) == 0) {
        source->size = (uint64_t)status.st_size;
    }
}

void sw__source_close(struct sw__source *source)
{
    if (source->fd >= 0) {
        close(source->fd);
    }
    if (source->counted) {
        atomic_fetch_sub(&kept_open, 1);
    }
    sw__free(source->path);
    source->fd = -1;
    source->counted = false;
    source->path = NULL;
}

void sw__source_settle(struct sw__source *source)
{
    if (source->fd < 0 || source->counted) {
        return;
    }
    if (atomic_fetch_add(&kept_open, 1) < KEPT_OPEN) {
        source->counted = true;
        return;
    }
    atomic_fetch_sub(&kept_open, 1);
    /* Only a file that its path still leads to can be opened again. */
    struct stat status;
    if (stat(source->path, &status) == 0 && status.st_dev == source->device &&
        status.st_ino == source->inode) {
        close(source->fd);
        source->fd = -1;
    }
}

static int open_again(const struct sw__source *source)
{
    struct stat status;
    int fd = open_path(source->path);
    if (fd >= 0 && (fstat(fd, &status) != 0 || status.st_dev != source->device ||
                    status.st_ino != source->inode)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

size_t sw__source_read(const struct sw__source *source, void *to, size_t length,
                       uint64_t offset)
{
    size_t got = 0;
    int fd = source->fd >= 0 ? source->fd : open_again(source);
    if (fd >= 0) {
        sw__os_pread_all(fd, to, length, offset, &got);
    }
    if (fd >= 0 && source->fd < 0) {
        close(fd);
    }
    return got;
}

uint64_t sw__source_next_data(const struct sw__source *source, uint64_t offset)
{
    if (source->fd < 0 || offset > INT64_MAX) {
        return offset;
    }
    off_t next = lseek(source->fd, (off_t)offset, SEEK_DATA);
    if (next < 0) {
        return errno == ENXIO ? source->size : offset; /* a hole up to the end */
    }
    return (uint64_t)next;
}
