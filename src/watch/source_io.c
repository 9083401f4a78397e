/* What the process itself read and wrote: /proc/self/io. "storage" is what reached or came from a device, the others are what
 * calls asked for, pipes and sockets among them. */
#include <stepwatch/error.h>

#include "base/memory.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

static const struct {
    const char *key, *name, *unit;
} fields[] = {
    {"rchar:", "process.read", "B"},
    {"wchar:", "process.written", "B"},
    {"syscr:", "process.read_calls", "1"},
    {"syscw:", "process.write_calls", "1"},
    {"read_bytes:", "process.storage_read", "B"},
    {"write_bytes:", "process.storage_written", "B"},
};
#define FIELDS (sizeof fields / sizeof fields[0])

struct io {
    struct sw__proc_file file;
    uint32_t hint[FIELDS];
};

static void io_close(void *state)
{
    struct io *io = state;
    sw__proc_close(&io->file);
    sw__free(io);
}

static int io_open(const struct sw__source_setting *setting, void **state, char *why,
                   size_t size)
{
    struct io *io = sw__alloc_zero(1, sizeof *io);
    if (!io) {
        return SW_ENOMEM;
    }
    const int result =
        sw__proc_open(&io->file, setting->root, "/proc/self/io", why, size);
    if (result != SW_OK) {
        sw__free(io);
        return result;
    }
    *state = io;
    return SW_OK;
}

static int io_sample(void *state, struct sw__look *look)
{
    struct io *io = state;
    char text[512];
    uint64_t calls, bytes;
    sw__proc_own_reads(&calls, &bytes);
    if (sw__proc_read(&io->file, text, sizeof text) <= 0) {
        return SW_EREAD;
    }
    /* The kernel counts the monitor's own reads too. */
    const uint64_t own[FIELDS] = {bytes, 0, calls};
    for (size_t i = 0; i < FIELDS; i++) {
        const uint64_t number = sw__proc_field(text, fields[i].key);
        const bool known = number != SW__UNKNOWN && number >= own[i];
        sw__look_hint(look, &io->hint[i], fields[i].name, fields[i].unit, SW_SERIES_TOTAL,
                      sw__proc_value(known ? number - own[i] : SW__UNKNOWN, 1));
    }
    return SW_OK;
}

const struct sw__source sw__source_io = {
    .name = "io",
    .open = io_open,
    .sample = io_sample,
    .close = io_close,
};
