/* Opening and reading files, and making folders. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"

#define LOWEST_FD 200

/* Programs and shells use small descriptors by number (dup2 onto 3, 9, …): ours move out
 * of the way. Where the limit is lower than that, the first one is as good. */
int sw__os_duplicate(int fd)
{
    const int other = fcntl(fd, F_DUPFD_CLOEXEC, LOWEST_FD);
    return other < 0 ? -errno : other;
}

static int move_up(int fd)
{
    const int moved = sw__os_duplicate(fd);
    if (moved < 0) {
        return fd;
    }
    close(fd);
    return moved;
}

static int open_retrying(const char *path, int flags, mode_t mode)
{
    int fd;
    do {
        fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, mode);
    } while (fd < 0 && errno == EINTR);
    return fd < 0 ? -errno : fd;
}

int sw__os_create_private(const char *path)
{
    int fd = open_retrying(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    return fd < 0 ? fd : move_up(fd);
}

int sw__os_open_write(const char *path)
{
    int fd = open_retrying(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW, 0);
    return fd < 0 ? fd : move_up(fd);
}

int sw__os_open_read(const char *path)
{
    /* Without O_NONBLOCK a named pipe in the place of a file would hang the reader. */
    int fd = open_retrying(path, O_RDONLY | O_NONBLOCK, 0);
    return fd < 0 ? fd : move_up(fd);
}

int sw__os_memory_file(void)
{
    int fd = memfd_create("stepwatch", MFD_CLOEXEC);
    if (fd < 0) {
        fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    }
    return fd < 0 ? -errno : move_up(fd);
}

/* mkdir fails with all kinds of errors for folders that exist (read-only, automounted):
 * only what stands there afterwards counts. */
static int make_one(const char *path)
{
    if (mkdir(path, 0700) == 0) {
        return 0;
    }
    int error = errno;
    struct stat status;
    if (stat(path, &status) != 0) {
        return -error;
    }
    return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}

int sw__os_mkdirs_private(const char *path)
{
    char partial[PATH_MAX];
    size_t length = strlen(path);
    if (length == 0) {
        return -ENOENT;
    }
    if (length >= sizeof partial) {
        return -ENAMETOOLONG;
    }
    memcpy(partial, path, length + 1);
    for (size_t i = 1; i < length; i++) {
        if (partial[i] == '/' && partial[i - 1] != '/') {
            partial[i] = '\0';
            int result = make_one(partial);
            if (result) {
                return result;
            }
            partial[i] = '/';
        }
    }
    return make_one(partial);
}

int sw__os_pread_all(int fd, void *to, size_t length, uint64_t offset, size_t *got)
{
    size_t done = 0;
    int result = 0;
    while (done < length) {
        uint64_t at;
        if (__builtin_add_overflow(offset, done, &at) || at > INT64_MAX) {
            break; /* no file reaches that far */
        }
        ssize_t part = pread(fd, (char *)to + done, length - done, (off_t)at);
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part < 0) {
            result = -errno;
            break;
        }
        if (part == 0) {
            break;
        }
        done += (size_t)part;
    }
    if (got) {
        *got = done;
    }
    return result;
}

int sw__os_read_file(const char *path, char *to, size_t size)
{
    if (size == 0) {
        return -EINVAL;
    }
    to[0] = '\0';
    int fd = open_retrying(path, O_RDONLY, 0);
    if (fd < 0) {
        return fd;
    }
    size_t most = size - 1 < INT_MAX ? size - 1 : INT_MAX;
    size_t done = 0;
    int result = 0;
    while (done < most) {
        ssize_t part = read(fd, to + done, most - done);
        if (part < 0 && errno == EINTR) {
            continue;
        }
        if (part < 0) {
            result = -errno;
            break;
        }
        if (part == 0) {
            break;
        }
        done += (size_t)part;
    }
    close(fd);
    to[done] = '\0';
    return result ? result : (int)done;
}

bool sw__os_is_file(int fd, dev_t device, ino_t inode)
{
    struct stat facts;
    return fd >= 0 && fstat(fd, &facts) == 0 && facts.st_dev == device &&
           facts.st_ino == inode;
}
