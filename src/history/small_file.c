#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/os.h"
#include "history/small_file.h"

char *sw__small_file(const char *path, size_t most, size_t *length)
{
    int fd = sw__os_open_read(path);
    if (fd < 0) {
        return NULL;
    }
    struct stat status;
    char *bytes = NULL;
    size_t got = 0;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size >= 0 &&
        (unsigned long long)status.st_size <= most) {
        const size_t size = (size_t)status.st_size;
        bytes = sw__alloc(size + 1);
        if (bytes && sw__os_pread_all(fd, bytes, size, 0, &got) != 0) {
            sw__free(bytes);
            bytes = NULL;
        }
    }
    close(fd);
    if (bytes) {
        bytes[got] = '\0';
        *length = got;
    }
    return bytes;
}

bool sw__join_path(char *out, size_t size, const char *folder, const char *name)
{
    const int length = snprintf(out, size, "%s/%s", folder, name);
    return length > 0 && (size_t)length < size;
}
