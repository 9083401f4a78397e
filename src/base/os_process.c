/* What the kernel knows of this process, its threads and other processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/intern.h"
#include "base/os.h"

int32_t sw__os_tid(void)
{
    return (int32_t)syscall(SYS_gettid);
}

bool sw__os_thread_exists(int32_t tid)
{
    int saved = errno;
    bool exists =
        tid > 0 && (syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH);
    errno = saved;
    return exists;
}

void sw__os_thread_name(uint32_t tid, char *out, size_t size)
{
    char path[64];
    int saved = errno;
    out[0] = '\0';
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        ssize_t got = read(fd, out, size - 1);
        out[got > 0 ? got : 0] = '\0';
        out[strcspn(out, "\n")] = '\0';
        close(fd);
    }
    errno = saved;
}

static uint64_t read_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        return UINT64_MAX;
    }
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t sw__os_thread_cpu_ns(void)
{
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t sw__os_process_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t sw__os_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

void sw__os_sleep_ns(uint64_t ns)
{
    /* Until a moment, not for a while: signals that come all the time would make it last for ever. */
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {
    }
}

void sw__os_random(uint8_t out[16])
{
    int saved = errno;
    if (getrandom(out, 16, GRND_NONBLOCK) != 16) {
        /* Early at boot, or forbidden. These ids need to differ, not to be secret. */
        uint64_t seeds[4] = {read_ns(CLOCK_MONOTONIC), read_ns(CLOCK_REALTIME),
                             (uint64_t)(uintptr_t)&seeds, (uint64_t)sw__os_tid()};
        for (size_t i = 0; i < 2; i++) {
            uint64_t half = sw__hash_seeded(seeds, sizeof seeds, i + 1);
            memcpy(out + 8 * i, &half, sizeof half);
        }
    }
    errno = saved;
}

/* schedstat is "<ns on CPU> <ns waiting for one> <time slices>". */
static uint64_t read_run_delay(int schedstat_fd)
{
    char text[96];
    const ssize_t got =
        schedstat_fd < 0 ? -1 : pread(schedstat_fd, text, sizeof text - 1, 0);
    if (got <= 0) {
        return UINT64_MAX;
    }
    text[got] = '\0';
    const char *second = strchr(text, ' ');
    if (!second || second[1] < '0' || second[1] > '9') {
        return UINT64_MAX;
    }
    return strtoull(second + 1, NULL, 10);
}

void sw__os_thread_usage(struct sw__os_usage *out, int schedstat_fd)
{
    struct rusage usage;
    out->cpu_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
    out->run_delay_ns = read_run_delay(schedstat_fd);
    if (getrusage(RUSAGE_THREAD, &usage) == 0) {
        out->voluntary = (uint64_t)usage.ru_nvcsw;
        out->involuntary = (uint64_t)usage.ru_nivcsw;
        out->minor_faults = (uint64_t)usage.ru_minflt;
        out->major_faults = (uint64_t)usage.ru_majflt;
    } else {
        out->voluntary = UINT64_MAX;
        out->involuntary = UINT64_MAX;
        out->minor_faults = UINT64_MAX;
        out->major_faults = UINT64_MAX;
    }
}

/* statm is "<size> <resident> <resident and shared> …" in pages. */
void sw__os_process_memory(struct sw__os_memory *out, int statm_fd)
{
    char text[128];
    *out = (struct sw__os_memory){UINT64_MAX, UINT64_MAX};
    /* One call: what is short is the end of the file. */
    const ssize_t got = statm_fd < 0 ? -1 : pread(statm_fd, text, sizeof text - 1, 0);
    if (got <= 0) {
        return;
    }
    text[got] = '\0';
    uint64_t pages[3] = {0};
    const char *at = text;
    for (unsigned i = 0; i < 3; i++) {
        if (*at < '0' || *at > '9') {
            return;
        }
        for (; *at >= '0' && *at <= '9'; at++) {
            pages[i] = pages[i] * 10 + (uint64_t)(*at - '0');
        }
        at += *at == ' ';
    }
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    out->resident = pages[1] * page;
    out->anonymous = (pages[1] > pages[2] ? pages[1] - pages[2] : 0) * page;
}

/* "rchar: <bytes>\nwchar: …\nsyscr: …\nsyscw: …\n…", in this order since it exists. */
void sw__os_process_io(struct sw__os_io *out, int io_fd)
{
    static const char *const keys[] = {"rchar: ", "wchar: ", "syscr: ", "syscw: "};
    char text[256];
    uint64_t numbers[4] = {0};
    *out = (struct sw__os_io){UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    const ssize_t got = io_fd < 0 ? -1 : pread(io_fd, text, sizeof text - 1, 0);
    if (got <= 0) {
        return;
    }
    text[got] = '\0';
    const char *at = text;
    for (unsigned i = 0; i < 4; i++) {
        if (strncmp(at, keys[i], 7) != 0 || at[7] < '0' || at[7] > '9') {
            return;
        }
        for (at += 7; *at >= '0' && *at <= '9'; at++) {
            numbers[i] = numbers[i] * 10 + (uint64_t)(*at - '0');
        }
        at += *at == '\n';
    }
    *out = (struct sw__os_io){numbers[0], numbers[1], numbers[2], numbers[3]};
}

uint64_t sw__os_process_start(pid_t pid)
{
    char path[48];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    if (sw__os_read_file(path, text, sizeof text) <= 0) {
        return 0;
    }
    /* The command's name, field 2, may hold spaces and parentheses: count from its
     * end. */
    const char *at = strrchr(text, ')');
    if (at && (strncmp(at, ") Z", 3) == 0 || strncmp(at, ") X", 3) == 0)) {
        return 0; /* It has ended; only its parent has not asked yet. */
    }
    for (int field = 2; at && field < 22; field++) {
        at = strchr(at + 1, ' ');
    }
    return at ? strtoull(at + 1, NULL, 10) : 0;
}

bool sw__os_only_thread_left(unsigned others)
{
    struct stat tasks;
    char path[64];
    char text[512];
    /* A folder has a link for itself, its name and each folder in it: one a thread. */
    if (stat("/proc/self/task", &tasks) || tasks.st_nlink != 2 + 2 + others) {
        return false;
    }
    snprintf(path, sizeof path, "/proc/self/task/%ld/stat", (long)getpid());
    if (sw__os_read_file(path, text, sizeof text) <= 0) {
        return false;
    }
    const char *name_end = strrchr(text, ')');
    return name_end && strncmp(name_end, ") Z", 3) == 0;
}

uint64_t sw__os_address_space_left(void)
{
    struct rlimit limit;
    char text[128];
    if (getrlimit(RLIMIT_AS, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        sw__os_read_file("/proc/self/statm", text, sizeof text) <= 0) {
        return UINT64_MAX;
    }
    uint64_t taken = strtoull(text, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > taken ? limit.rlim_cur - taken : 0;
}
