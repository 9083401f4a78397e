/* Event files: records of a length, its check sum, a message and its check sum; messages as protocol buffers, written by hand.
 * Fields are those of tensorflow's event.proto and summary.proto. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/tensorboard.h>

#include "base/crc.h"
#include "base/memory.h"
#include "base/os.h"
#include "base/utf8.h"
#include "base/writer_internal.h"

struct sw_events {
    int fd;
    char path[PATH_MAX];
    pthread_mutex_t guard; /* of what is below */
    int error;             /* the first one */
    sw_error_info info;    /* that came with it */
};

/* --- protocol buffers --- */

enum wire { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static void put_varint(sw_writer *w, uint64_t value)
{
    char bytes[10];
    size_t used = 0;
    do {
        bytes[used] = (char)((value & 0x7F) | (value > 0x7F ? 0x80 : 0));
        used++;
        value >>= 7;
    } while (value > 0);
    sw_write_bytes(w, bytes, used);
}

static void put_key(sw_writer *w, unsigned field, enum wire wire)
{
    put_varint(w, field << 3 | wire);
}

static void put_fixed(sw_writer *w, uint64_t value, size_t size)
{
    char bytes[8];
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (char)(value >> (8 * i) & 0xFF);
    }
    sw_write_bytes(w, bytes, size);
}

static void put_double(sw_writer *w, unsigned field, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, field, WIRE_64);
    put_fixed(w, bits, 8);
}

static void put_float(sw_writer *w, unsigned field, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_key(w, field, WIRE_32);
    put_fixed(w, bits, 4);
}

static void put_integer(sw_writer *w, unsigned field, int64_t value)
{
    put_key(w, field, WIRE_VARINT);
    put_varint(w, (uint64_t)value);
}

static void put_bytes(sw_writer *w, unsigned field, const void *bytes, size_t length)
{
    put_key(w, field, WIRE_BYTES);
    put_varint(w, length);
    sw_write_bytes(w, bytes, length);
}

/* A message within another. `part` is used up. */
static void put_message(sw_writer *w, unsigned field, sw_writer *part)
{
    size_t length;
    const char *bytes = sw_writer_text(part, &length);
    put_bytes(w, field, bytes, length);
    if (w && (!part || sw_writer_flush(part))) {
        sw__writer_fail(w, SW_ENOMEM, 0);
    }
    sw_writer_close(part, NULL);
}

/* Strings of a message have to be UTF-8. */
static void put_text(sw_writer *w, unsigned field, const char *bytes, size_t length)
{
    sw_writer *clean = sw_writer_to_memory();
    while (length > 0) {
        uint32_t code;
        const size_t taken = sw__utf8_decode(bytes, length, &code);
        if (code == SW__UTF8_INVALID) {
            sw_write_text(clean, "\xEF\xBF\xBD");
        } else {
            sw_write_bytes(clean, bytes, taken);
        }
        bytes += taken;
        length -= taken;
    }
    put_message(w, field, clean);
}

/* --- records --- */

/* So that a check sum of data that holds check sums is not 0. */
static uint32_t masked(const void *bytes, size_t length)
{
    const uint32_t sum = sw__crc(SW__CRC32C, 0, bytes, length);
    return (sum >> 15 | sum << 17) + 0xA282EAD8u;
}

static int remember(sw_events *events, int error, sw_error_info *info)
{
    if (error && !events->error) {
        events->error = error;
        events->info.code = error;
        if (info) {
            events->info = *info;
        }
    }
    return error;
}

/* All of it or nothing: what came after half a record could not be read. 0 or -errno. */
static int append(int fd, const char *bytes, size_t length)
{
    struct stat before;
    const bool known = fstat(fd, &before) == 0;
    const int result = sw__os_write_all(fd, bytes, length);
    if (result && known && ftruncate(fd, before.st_size) != 0) {
        return result; /* of the write: that is what went wrong first */
    }
    return result;
}

/* One record in one write: readers that follow the file see it whole. `event` is used up. */
static int put_record(sw_events *events, sw_writer *event, sw_error_info *info)
{
    size_t length = 0;
    const char *bytes = sw_writer_text(event, &length);
    sw_writer *record = sw_writer_to_memory();
    int error = event && record ? sw_writer_flush(event) : SW_ENOMEM;
    put_fixed(record, length, 8);
    if (!error) {
        put_fixed(record, masked(sw_writer_text(record, NULL), 8), 4);
        sw_write_bytes(record, bytes, length);
        put_fixed(record, masked(bytes, length), 4);
        error = sw_writer_flush(record);
    }
    if (error) {
        sw_error_set(info, error, "%s", sw_error_text(error));
    } else {
        size_t whole;
        const char *data = sw_writer_text(record, &whole);
        const int wrote = append(events->fd, data, whole);
        if (wrote) {
            const bool full = wrote == -ENOSPC || wrote == -EDQUOT || wrote == -EFBIG;
            errno = -wrote;
            error = full ? SW_ENOSPACE : SW_EWRITE;
            sw_error_set(info, error, "%.300s could not be written: %m", events->path);
        }
    }
    sw_writer_close(record, NULL);
    sw_writer_close(event, NULL);
    return error;
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* An event with the one value that `value` holds, which is used up. */
static int put_value(sw_events *events, sw_event_time time, sw_writer *value,
                     sw_error_info *info)
{
    sw_error_info own = {0};
    sw_writer *event = sw_writer_to_memory();
    sw_writer *summary = sw_writer_to_memory();
    int error = event && summary && value ? SW_OK : SW_ENOMEM;
    put_double(event, 1, isfinite(time.wall_s) ? time.wall_s : now_s());
    put_integer(event, 2, time.step);
    put_message(summary, 1, value);
    put_message(event, 5, summary);
    pthread_mutex_lock(&events->guard);
    if (error) {
        sw_writer_close(event, NULL);
        sw_error_set(&own, error, "%s", sw_error_text(error));
    } else {
        error = put_record(events, event, &own);
    }
    remember(events, error, &own);
    pthread_mutex_unlock(&events->guard);
    if (info && error) {
        *info = own;
    }
    return error;
}

/* A value begins with its tag. NULL when out of memory. */
static sw_writer *value_begin(const char *tag)
{
    sw_writer *value = sw_writer_to_memory();
    put_text(value, 1, tag, strlen(tag));
    return value;
}

/* --- kinds of values --- */

int sw_events_scalar(sw_events *events, const char *tag, sw_event_time time, double value,
                     sw_error_info *info)
{
    sw_writer *message = value_begin(tag);
    put_float(message, 2, (float)value);
    return put_value(events, time, message, info);
}

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

int sw_events_image(sw_events *events, const char *tag, sw_event_time time,
                    const void *png, size_t length, sw_error_info *info)
{
    const unsigned char *bytes = png;
    if (length < 33 || memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) != 0 ||
        memcmp(bytes + 12, "IHDR", 4) != 0) {
        return sw_error_set(info, SW_EINVAL, "the image is not a PNG file");
    }
    /* Channels by the kind of colour: grey, -, colours, palette, grey and alpha, -, colours and alpha. */
    static const uint8_t channels[] = {1, 0, 3, 3, 2, 0, 4};
    sw_writer *image = sw_writer_to_memory();
    sw_writer *message = value_begin(tag);
    put_integer(image, 1, big_endian(bytes + 20));
    put_integer(image, 2, big_endian(bytes + 16));
    put_integer(image, 3, bytes[25] < sizeof channels ? channels[bytes[25]] : 0);
    put_bytes(image, 4, png, length);
    put_message(message, 4, image);
    return put_value(events, time, message, info);
}

int sw_events_text(sw_events *events, const char *tag, sw_event_time time,
                   const char *text, size_t length, sw_error_info *info)
{
    enum { DT_STRING = 7 };
    sw_writer *message = value_begin(tag);
    sw_writer *tensor = sw_writer_to_memory();
    sw_writer *shape = sw_writer_to_memory();
    sw_writer *dimension = sw_writer_to_memory();
    sw_writer *metadata = sw_writer_to_memory();
    sw_writer *plugin = sw_writer_to_memory();
    put_integer(dimension, 1, 1);
    put_message(shape, 2, dimension);
    put_integer(tensor, 1, DT_STRING);
    put_message(tensor, 2, shape);
    put_text(tensor, 8, text, length);
    put_message(message, 8, tensor);
    put_text(plugin, 1, "text", 4);
    put_message(metadata, 1, plugin);
    put_message(message, 9, metadata);
    return put_value(events, time, message, info);
}

/* --- the file --- */

static int open_new(sw_events *events, const char *folder)
{
    static _Atomic unsigned number;
    char host[256] = "";
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0' || strchr(host, '/')) {
        strcpy(host, "localhost");
    }
    do {
        const int length = snprintf(events->path, sizeof events->path,
                                    "%s/events.out.tfevents.%lld.%s.%d.%u", folder,
                                    (long long)time(NULL), host, (int)getpid(), number++);
        if (length < 0 || (size_t)length >= sizeof events->path) {
            return -ENAMETOOLONG;
        }
        events->fd =
            open(events->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    } while (events->fd < 0 && errno == EEXIST);
    return events->fd < 0 ? -errno : 0;
}

int sw_events_create(sw_events **out, const char *folder, sw_error_info *info)
{
    *out = NULL;
    sw_events *events = sw__alloc_zero(1, sizeof *events);
    if (!events) {
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    }
    int result = sw__os_mkdirs_private(folder);
    result = result ? result : open_new(events, folder);
    if (result) {
        sw__free(events);
        errno = -result;
        return sw_error_set(info, SW_EWRITE, "no file can be made in %.300s: %m", folder);
    }
    pthread_mutex_init(&events->guard, NULL);
    sw_writer *event = sw_writer_to_memory();
    put_double(event, 1, now_s());
    put_text(event, 3, "brain.Event:2", 13);
    const int error = put_record(events, event, info);
    if (error) {
        remember(events, error, info);
        sw_events_close(events, NULL);
        return error;
    }
    *out = events;
    return SW_OK;
}

const char *sw_events_path(const sw_events *events)
{
    return events->path;
}

int sw_events_close(sw_events *events, sw_error_info *info)
{
    if (!events) {
        return SW_OK;
    }
    sw_error_info own = {0};
    if (close(events->fd) != 0) {
        sw_error_set(&own, SW_EWRITE, "%.300s could not be written: %m", events->path);
        remember(events, SW_EWRITE, &own);
    }
    const int error = events->error;
    if (error && info) {
        *info = events->info;
    }
    pthread_mutex_destroy(&events->guard);
    sw__free(events);
    return error;
}
