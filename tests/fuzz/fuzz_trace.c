/* The reader of traces on arbitrary bytes. An input is a home file; one that ends
 * with the eight bytes "SW__PAIR" and a length is a home file of that length,
 * followed by its hot file. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analyze/stacks.h"
#include "read/trace_internal.h"
#include "trace_walk.h"

#define TRAILER 16u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int make_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("trace", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data, size) != (ssize_t)size) {
        abort();
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int hot = -1;
    size_t home_size = size;
    if (size >= TRAILER && memcmp(data + size - TRAILER, "SW__PAIR", 8) == 0) {
        uint64_t split;
        memcpy(&split, data + size - 8, sizeof split);
        if (split <= size - TRAILER) {
            home_size = (size_t)split;
            hot = make_file(data + home_size, size - TRAILER - home_size);
        }
    }
    int home = make_file(data, home_size);
    sw_trace *trace;
    sw_error_info info;
    if (sw__trace_open_fds(&trace, home, hot, false, "input", &info) == SW_OK) {
        struct trace_walk walk = {0};
        walk_trace(&walk, trace);
        sw_stacks *stacks;
        if (sw_stacks_create(&stacks) == SW_OK) {
            walk_check(sw__stacks_add_trace(stacks, trace) == SW_OK);
            walk_stacks(&walk, stacks);
            sw_stacks_free(stacks);
        }
        sw_trace_free(trace);
    }
    return 0;
}
