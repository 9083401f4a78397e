#include "analyze/file_load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/os.h"

static int load(int fd, const char *path, size_t most_mib, char **bytes, size_t *length,
                sw_error_info *info)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return sw_error_set(info, SW_EREAD, "%s cannot be read: %s", path,
                            strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return sw_error_set(info, SW_EOPEN, "%s is not a regular file", path);
    }
    if ((uint64_t)status.st_size > (uint64_t)most_mib << 20) {
        return sw_error_set(info, SW_ELIMIT, "%s is larger than %zu MiB", path, most_mib);
    }
    *bytes = sw__alloc((size_t)status.st_size + 1);
    if (!*bytes) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    const int error = sw__os_pread_all(fd, *bytes, (size_t)status.st_size, 0, length);
    if (error) {
        return sw_error_set(info, SW_EREAD, "%s cannot be read: %s", path,
                            strerror(-error));
    }
    return SW_OK;
}

int sw__file_load(const char *path, size_t most_mib, char **bytes, size_t *length,
                  sw_error_info *info)
{
    *bytes = NULL;
    *length = 0;
    /* Symbolic links are followed: the path is the user's. A named pipe must not hang us. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return sw_error_set(info, SW_EOPEN, "%s cannot be opened: %s", path,
                            strerror(errno));
    }
    const int error = load(fd, path, most_mib, bytes, length, info);
    close(fd);
    return error;
}
