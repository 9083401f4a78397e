/* The sinks: memory that grows, or a buffer that is passed on when full. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/os.h"
#include "base/writer_internal.h"

#define BUFFER_SIZE ((size_t)65536)

void sw__writer_fail(sw_writer *writer, int error, int os_errno)
{
    if (!writer->error) {
        writer->error = error;
        writer->os_errno = os_errno;
    }
}

static sw_writer *create(enum sw__writer_sink sink)
{
    sw_writer *writer = sw__alloc_zero(1, sizeof *writer);
    if (!writer) {
        return NULL;
    }
    writer->sink = sink;
    writer->fd = -1;
    writer->capacity = sink == SW__SINK_MEMORY ? 256 : BUFFER_SIZE;
    writer->buffer = sw__alloc(writer->capacity);
    if (!writer->buffer) {
        sw__free(writer);
        return NULL;
    }
    return writer;
}

sw_writer *sw_writer_to_fd(int fd)
{
    sw_writer *writer = create(SW__SINK_FD);
    if (writer) {
        writer->fd = fd;
    }
    return writer;
}

sw_writer *sw_writer_to_callback(int (*call)(void *arg, const char *bytes, size_t length),
                                 void *arg)
{
    sw_writer *writer = create(SW__SINK_CALLBACK);
    if (writer) {
        writer->call = call;
        writer->arg = arg;
    }
    return writer;
}

sw_writer *sw_writer_to_memory(void)
{
    return create(SW__SINK_MEMORY);
}

const char *sw_writer_text(sw_writer *writer, size_t *length)
{
    bool has_text = writer && writer->sink == SW__SINK_MEMORY;
    if (length) {
        *length = has_text ? writer->used : 0;
    }
    if (!has_text) {
        return "";
    }
    writer->buffer[writer->used] = '\0';
    return writer->buffer;
}

/* Hands bytes to the descriptor or the callback. */
static void pass_on(sw_writer *writer, const char *bytes, size_t length)
{
    if (writer->sink == SW__SINK_CALLBACK) {
        int result = writer->call(writer->arg, bytes, length);
        if (result < 0) {
            sw__writer_fail(writer, result, 0);
        }
        return;
    }
    int result = sw__os_write_all(writer->fd, bytes, length);
    if (result) {
        bool full = result == -ENOSPC || result == -EDQUOT || result == -EFBIG;
        sw__writer_fail(writer, full ? SW_ENOSPACE : SW_EWRITE, -result);
    }
}

int sw_writer_flush(sw_writer *writer)
{
    if (!writer) {
        return SW_OK;
    }
    if (!writer->error && writer->sink != SW__SINK_MEMORY && writer->used) {
        pass_on(writer, writer->buffer, writer->used);
        writer->used = 0;
    }
    return writer->error;
}

int sw_writer_close(sw_writer *writer, sw_error_info *info)
{
    if (!writer) {
        return SW_OK;
    }
    if (writer->json.depth) {
        sw__writer_fail(writer, SW_EINVAL, 0);
    }
    (void)sw_writer_flush(writer);
    int error = writer->error;
    int os_errno = writer->os_errno;
    sw__free(writer->buffer);
    sw__free(writer);
    if (!error) {
        return SW_OK;
    }
    errno = os_errno;
    if (os_errno) {
        return sw_error_set(info, error, "the output could not be written: %m");
    }
    if (error == SW_EINVAL) {
        return sw_error_set(info, error,
                            "the JSON document was not put together properly");
    }
    return sw_error_set(info, error, "%s", sw_error_text(error));
}

/* Grows the memory sink to hold `more` bytes and a NUL. */
static bool grow(sw_writer *writer, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(writer->used, more, &need) || need > SIZE_MAX / 4) {
        sw__writer_fail(writer, SW_ENOMEM, 0);
        return false;
    }
    size_t capacity = writer->capacity;
    while (capacity <= need) {
        capacity *= 2;
    }
    char *buffer = sw__realloc(writer->buffer, capacity, 1);
    if (!buffer) {
        sw__writer_fail(writer, SW_ENOMEM, 0);
        return false;
    }
    writer->buffer = buffer;
    writer->capacity = capacity;
    return true;
}

void sw_write_bytes(sw_writer *writer, const char *bytes, size_t length)
{
    if (!sw__writer_is_good(writer) || length == 0) {
        return;
    }
    if (length >= writer->capacity - writer->used) {
        if (writer->sink == SW__SINK_MEMORY) {
            if (!grow(writer, length)) {
                return;
            }
        } else {
            if (sw_writer_flush(writer)) {
                return;
            }
            if (length >= writer->capacity) {
                pass_on(writer, bytes, length);
                return;
            }
        }
    }
    memcpy(writer->buffer + writer->used, bytes, length);
    writer->used += length;
}

void sw_write_text(sw_writer *writer, const char *text)
{
    sw_write_bytes(writer, text, strlen(text));
}

void sw_write_format(sw_writer *writer, const char *format, ...)
{
    if (!sw__writer_is_good(writer)) {
        return;
    }
    char small[512];
    va_list args;
    va_list again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(small, sizeof small, format, args);
    if (length < 0) {
        sw__writer_fail(writer, SW_EINVAL, 0);
    } else if ((size_t)length < sizeof small) {
        sw_write_bytes(writer, small, (size_t)length);
    } else {
        char *large = sw__alloc((size_t)length + 1);
        if (large) {
            vsnprintf(large, (size_t)length + 1, format, again);
            sw_write_bytes(writer, large, (size_t)length);
        } else {
            sw__writer_fail(writer, SW_ENOMEM, 0);
        }
        sw__free(large);
    }
    va_end(again);
    va_end(args);
}

void sw_write_repeat(sw_writer *writer, const char *text, size_t times)
{
    size_t length = strlen(text);
    if (length == 0) {
        return;
    }
    for (size_t i = 0; i < times && sw__writer_is_good(writer); i++) {
        sw_write_bytes(writer, text, length);
    }
}
