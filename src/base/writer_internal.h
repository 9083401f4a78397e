/* What the text and the JSON half of the writer share. */
#ifndef SW_BASE_WRITER_INTERNAL_H
#define SW_BASE_WRITER_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <stepwatch/write.h>

#define SW__JSON_DEPTH 64

enum sw__writer_sink { SW__SINK_MEMORY, SW__SINK_FD, SW__SINK_CALLBACK };

/* Where the JSON document stands. Levels are counted from 0 outside of everything; bit k
 * of `objects` says that level k + 1 is an object, of `filled` that it holds
 * something. */
struct sw__json {
    uint64_t objects;
    uint64_t filled;
    unsigned depth; /* ≤ SW__JSON_DEPTH */
    bool pretty;
    bool after_key; /* a key was written, its value was not */
    bool complete;  /* the outermost value is there */
};

struct sw_writer {
    enum sw__writer_sink sink;
    int fd;
    int (*call)(void *arg, const char *bytes, size_t length);
    void *arg;
    char *buffer;
    size_t used; /* < capacity: there is always room for a final NUL */
    size_t capacity;
    int error;    /* the first one; nothing is written after it */
    int os_errno; /* that came with it */
    struct sw__json json;
};

/* Whether there is a point in writing on: NULL and failed writers take nothing. */
static inline bool sw__writer_is_good(const sw_writer *writer)
{
    return writer && !writer->error;
}

void sw__writer_fail(sw_writer *writer, int error, int os_errno);

/* Puts text that is a JSON value already. */
void sw__json_raw(sw_writer *writer, const char *text, size_t length);

#endif
