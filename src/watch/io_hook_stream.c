/* Streams: what the C library does for them is out of sight, so its own functions are hooked. */
#include "watch/io_hooks.h"

#include <string.h>

/* `stream` NULL: fflush of all. */
static int number_of(FILE *stream)
{
    const int error = errno;
    const int fd = stream ? fileno(stream) : -1;
    errno = error;
    return fd;
}

#define FOPEN(name)                                                                      \
    FILE *sw__io_##name(const char *path, const char *mode)                              \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        FILE *result = ORIGINAL(name)(path, mode);                                       \
        sw__io_opened(AT_FDCWD, path, begin, number_of(result));                         \
        return result;                                                                   \
    }
FOPEN(fopen)
FOPEN(fopen64)

#define FREOPEN(name)                                                                    \
    FILE *sw__io_##name(const char *path, const char *mode, FILE *stream)                \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        sw__io_forget(number_of(stream));                                                \
        FILE *result = ORIGINAL(name)(path, mode, stream);                               \
        sw__io_opened(AT_FDCWD, path, begin, number_of(result));                         \
        return result;                                                                   \
    }
FREOPEN(freopen)
FREOPEN(freopen64)

int sw__io_fclose(FILE *stream)
{
    const uint64_t begin = began();
    struct sw__thing *thing = sw__io_closing(number_of(stream), begin);
    const int result = ORIGINAL(fclose)(stream);
    sw__io_closed(thing, begin, result);
    return result;
}

int sw__io_fflush(FILE *stream)
{
    const uint64_t begin = stream ? began() : 0;
    const int result = ORIGINAL(fflush)(stream);
    ended(SW_IO_WRITE, begin ? number_of(stream) : -1, begin, result ? -1 : 0, HERE,
          true);
    return result;
}

#define STREAM(name, operation, pointer)                                                 \
    size_t sw__io_##name(pointer at, size_t size, size_t count, FILE *stream)            \
    {                                                                                    \
        const uint64_t begin = began();                                                  \
        const size_t result = ORIGINAL(name)(at, size, count, stream);                   \
        ended(operation, begin ? number_of(stream) : -1, begin,                          \
              (int64_t)(result * size), HERE, true);                                     \
        return result;                                                                   \
    }
STREAM(fread, SW_IO_READ, void *)
STREAM(fread_unlocked, SW_IO_READ, void *)
STREAM(fwrite, SW_IO_WRITE, const void *)
STREAM(fwrite_unlocked, SW_IO_WRITE, const void *)

size_t sw__io___fread_chk(void *to, size_t room, size_t size, size_t count, FILE *stream)
{
    const uint64_t begin = began();
    const size_t result = ORIGINAL(__fread_chk)(to, room, size, count, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, (int64_t)(result * size),
          HERE, true);
    return result;
}

char *sw__io_fgets(char *to, int size, FILE *stream)
{
    const uint64_t begin = began();
    char *result = ORIGINAL(fgets)(to, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin,
          begin && result ? (int64_t)strlen(result) : 0, HERE, true);
    return result;
}

char *sw__io___fgets_chk(char *to, size_t room, int size, FILE *stream)
{
    const uint64_t begin = began();
    char *result = ORIGINAL(__fgets_chk)(to, room, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin,
          begin && result ? (int64_t)strlen(result) : 0, HERE, true);
    return result;
}

int sw__io_fputs(const char *from, FILE *stream)
{
    const uint64_t begin = began();
    const int result = ORIGINAL(fputs)(from, stream);
    ended(SW_IO_WRITE, begin ? number_of(stream) : -1, begin,
          begin && result >= 0 ? (int64_t)strlen(from) : 0, HERE, true);
    return result;
}

ssize_t sw__io_getline(char **line, size_t *size, FILE *stream)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(getline)(line, size, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, result > 0 ? result : 0,
          HERE, true);
    return result;
}

ssize_t sw__io_getdelim(char **line, size_t *size, int end, FILE *stream)
{
    const uint64_t begin = began();
    const ssize_t result = ORIGINAL(getdelim)(line, size, end, stream);
    ended(SW_IO_READ, begin ? number_of(stream) : -1, begin, result > 0 ? result : 0,
          HERE, true);
    return result;
}
