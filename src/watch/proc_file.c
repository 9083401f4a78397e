#include "watch/proc_file.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stepwatch/error.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/os.h"

/* Those that are open, for a child to close: it cannot ask whoever was in the middle of something. A few more than any
 * monitor has; what finds no place stays open in children. */
static struct {
    _Atomic int fd; /* 1 + descriptor; 0: free */
    dev_t device;
    ino_t inode;
} opened[512];

static unsigned note_open(int fd, const struct stat *facts)
{
    for (unsigned i = 0; i < SW__COUNTOF(opened); i++) {
        int nobody = 0;
        /* Taken before it is filled: a child that sees it so finds another file and leaves it alone. */
        if (atomic_compare_exchange_strong(&opened[i].fd, &nobody, fd + 1)) {
            opened[i].device = facts->st_dev;
            opened[i].inode = facts->st_ino;
            return i;
        }
    }
    return SW__COUNTOF(opened);
}

/* How many may be open here: a quarter of what the process may have, for the rest is the program's. */
static unsigned most_open(void)
{
    struct rlimit limit;
    const bool few = getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
                     limit.rlim_cur / 4 < (rlim_t)SW__COUNTOF(opened);
    return few ? (unsigned)(limit.rlim_cur / 4) : UINT_MAX;
}

void sw__proc_close_all(void)
{
    for (unsigned i = 0; i < SW__COUNTOF(opened); i++) {
        const int fd = atomic_exchange(&opened[i].fd, 0) - 1;
        if (fd >= 0 && sw__os_is_file(fd, opened[i].device, opened[i].inode)) {
            close(fd);
        }
    }
}

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
    file->place = note_open(fd, &facts);
    if (file->place >= most_open()) {
        file->fd = fd;
        file->device = facts.st_dev;
        file->inode = facts.st_ino;
        sw__proc_close(file);
        if (why) {
            snprintf(why, size,
                     "%.100s is left alone: the program may have few files open "
                     "(ulimit -n)",
                     path);
        }
        return SW_ELIMIT;
    }
    file->fd = fd;
    file->device = facts.st_dev;
    file->inode = facts.st_ino;
    return SW_OK;
}

/* Of the thread that looks, of which there is one at a time. */
static _Atomic uint64_t own_calls, own_bytes;

void sw__proc_own_reads(uint64_t *calls, uint64_t *bytes)
{
    *calls = own_calls;
    *bytes = own_bytes;
}

void sw__proc_own_add(uint64_t calls, uint64_t bytes)
{
    own_calls += calls;
    own_bytes += bytes;
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
        own_calls++;
    } while (got < 0 && errno == EINTR);
    if (got < 0) {
        return -errno;
    }
    own_bytes += (uint64_t)got;
    to[got] = '\0';
    return (int)got;
}

void sw__proc_close(struct sw__proc_file *file)
{
    if (file->fd < 0) {
        return;
    }
    if (sw__os_is_file(file->fd, file->device, file->inode)) {
        close(file->fd);
    }
    if (file->place < SW__COUNTOF(opened)) {
        atomic_store(&opened[file->place].fd, 0);
    }
    file->fd = -1;
}
