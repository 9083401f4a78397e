/* What this process may use of the machine, and what it uses: processors and memory. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <stepwatch/host.h>

#include "base/compiler.h"
#include "base/os.h"

unsigned sw_host_cpus_percent(void)
{
    return sw__os_cpus_usable_percent();
}

/* The number after `key` at the beginning of a line; UINT64_MAX when it is not there. */
static uint64_t number_after(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line && *line;) {
        if (strncmp(line, key, length) == 0) {
            char *end;
            const char *digits = line + length + strspn(line + length, " \t");
            unsigned long long number = strtoull(digits, &end, 10);
            return end == digits ? UINT64_MAX : number;
        }
        line = strchr(line, '\n');
        line += line != NULL;
    }
    return UINT64_MAX;
}

static uint64_t kilobytes(const char *path, const char *key)
{
    char text[8192];
    if (sw__os_read_file(path, text, sizeof text) <= 0) {
        return UINT64_MAX;
    }
    uint64_t found = number_after(text, key);
    return found > UINT64_MAX / 1024 ? UINT64_MAX : found * 1024;
}

static uint64_t number_in(const char *folder, const char *file)
{
    char text[64];
    if (sw__os_cgroup_text(folder, file, text, sizeof text) <= 0) {
        return UINT64_MAX;
    }
    return number_after(text, ""); /* "max" is no number */
}

/* What a group may still take; pages of files that nobody uses give way. */
static uint64_t room_of(const char *folder, const char *limit_file,
                        const char *usage_file, const char *inactive)
{
    uint64_t limit = number_in(folder, limit_file);
    uint64_t usage = number_in(folder, usage_file);
    /* Without a limit, version 1 has one of nearly 2^63. */
    if (limit >= (uint64_t)1 << 60 || usage == UINT64_MAX) {
        return UINT64_MAX;
    }
    char text[8192];
    uint64_t files = 0;
    if (sw__os_cgroup_text(folder, "memory.stat", text, sizeof text) > 0) {
        files = number_after(text, inactive);
        files = files == UINT64_MAX ? 0 : files;
    }
    usage -= files < usage ? files : usage;
    return limit > usage ? limit - usage : 0;
}

static uint64_t room_v2(const char *folder)
{
    return room_of(folder, "memory.max", "memory.current", "inactive_file ");
}

static uint64_t room_v1(const char *folder)
{
    return room_of(folder, "memory.limit_in_bytes", "memory.usage_in_bytes",
                   "total_inactive_file ");
}

uint64_t sw_host_memory_available(void)
{
    int saved = errno;
    uint64_t machine = kilobytes("/proc/meminfo", "MemAvailable:");
    uint64_t group = sw__os_cgroup_least("memory", room_v2, room_v1);
    uint64_t space = sw__os_address_space_left();
    errno = saved;
    uint64_t least = machine < group ? machine : group;
    return space < least ? space : least;
}

uint64_t sw_host_resident(int64_t pid)
{
    char path[64];
    char text[128];
    if (pid > 0) {
        snprintf(path, sizeof path, "/proc/%lld/statm", (long long)pid);
    } else {
        snprintf(path, sizeof path, "/proc/self/statm");
    }
    int saved = errno;
    int got = sw__os_read_file(path, text, sizeof text);
    errno = saved;
    const char *space = got > 0 ? strchr(text, ' ') : NULL;
    long size = sysconf(_SC_PAGESIZE);
    if (!space || size <= 0) {
        return UINT64_MAX;
    }
    /* A process that has ended and was not waited for has no pages. */
    return strtoull(space + 1, NULL, 10) * (uint64_t)size;
}

void sw_host_io_read(sw_host_io *io)
{
    char text[512];
    int saved = errno;
    if (sw__os_read_file("/proc/self/io", text, sizeof text) <= 0) {
        text[0] = '\0';
    }
    errno = saved;
    *io = (sw_host_io){
        .read_bytes = number_after(text, "rchar:"),
        .written_bytes = number_after(text, "wchar:"),
        .read_calls = number_after(text, "syscr:"),
        .write_calls = number_after(text, "syscw:"),
        .device_read_bytes = number_after(text, "read_bytes:"),
        .device_written_bytes = number_after(text, "write_bytes:"),
    };
}

uint64_t sw_host_swapped(void)
{
    int saved = errno;
    uint64_t swapped = kilobytes("/proc/self/status", "VmSwap:");
    errno = saved;
    return swapped;
}

/* getrusage says the same for a hundredth of the price, but for what an earlier program of this process had in memory before
 * exec(): it counts, until this one has had more. From then on it is enough to ask getrusage. */
uint64_t sw_host_resident_peak(void)
{
    static _Atomic bool same;
    int saved = errno;
    struct rusage usage;
    const bool asked = getrusage(RUSAGE_SELF, &usage) == 0 && usage.ru_maxrss > 0;
    const uint64_t quick = asked ? (uint64_t)usage.ru_maxrss * 1024 : UINT64_MAX;
    if (asked && atomic_load_explicit(&same, memory_order_relaxed)) {
        errno = saved;
        return quick;
    }
    const uint64_t peak = kilobytes("/proc/self/status", "VmHWM:");
    if (asked && peak == quick) {
        atomic_store_explicit(&same, true, memory_order_relaxed);
    }
    errno = saved;
    return peak;
}
