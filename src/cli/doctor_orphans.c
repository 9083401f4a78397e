/* Recording memory of programs that were killed and never reported on. A living writer holds a lock on its
 * file, which also tells across containers; its pid is in the name. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <stepwatch/write.h>

#include "cli/doctor.h"

static bool writer_is_dead(int folder, const char *name, uint64_t *bytes)
{
    char *rest;
    long pid = strtol(name, &rest, 10);
    size_t length = strlen(name);
    if (rest == name || *rest != '-' || pid <= 0 || length < 5 ||
        strcmp(name + length - 4, ".hot") != 0) {
        return false;
    }
    int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return false;
    }
    struct stat facts;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    bool dead = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) &&
                facts.st_uid == geteuid() && fcntl(fd, F_GETLK, &lock) == 0 &&
                lock.l_type == F_UNLCK && kill((pid_t)pid, 0) != 0 && errno == ESRCH;
    *bytes = dead ? (uint64_t)facts.st_blocks * 512 : 0;
    close(fd);
    return dead;
}

void check_orphans(struct checks *checks, bool clean)
{
    char path[64];
    snprintf(path, sizeof path, "/dev/shm/stepwatch-%u", (unsigned)geteuid());
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (!stream) {
        if (fd >= 0) {
            close(fd);
        }
        check_add(checks, "left behind", CHECK_OK,
                  "No recording memory was left in /dev/shm.");
        return;
    }
    const struct dirent *entry;
    uint64_t count = 0;
    uint64_t total = 0;
    uint64_t removed = 0;
    while ((entry = readdir(stream)) != NULL) {
        uint64_t bytes;
        if (writer_is_dead(fd, entry->d_name, &bytes)) {
            count++;
            total += bytes;
            removed += clean && unlinkat(fd, entry->d_name, 0) == 0;
        }
    }
    closedir(stream);
    char number[32];
    char size[24];
    sw_text_count(number, count);
    sw_text_bytes(size, total);
    const char *files = count == 1 ? "file" : "files";
    if (count == 0) {
        check_add(checks, "left behind", CHECK_OK, "No recording memory was left in %s.",
                  path);
    } else if (removed == count) {
        check_add(checks, "left behind", CHECK_OK,
                  "%s %s of dead processes (%s) removed from %s.", number, files, size,
                  path);
    } else {
        check_add(
            checks, "left behind", CHECK_WARN,
            "%s %s of dead processes (%s) in %s; 'stepwatch report RUN' on their run "
            "takes them in, 'stepwatch doctor --clean' removes them.",
            number, files, size, path);
    }
}
