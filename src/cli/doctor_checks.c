/* Checks of the machine. Each tries the thing itself; what a kernel says it can do is not evidence. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/clock.h>
#include <stepwatch/history.h>
#include <stepwatch/watch.h>
#include <stepwatch/write.h>

#include "cli/doctor.h"
#include "cli/python.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif

#define MIB ((uint64_t)1024 * 1024)
#define TRACE_USUAL (256 * MIB)

void check_add(struct checks *checks, const char *name, enum check_status status,
               const char *format, ...)
{
    if (checks->count == CHECKS_MOST) {
        return;
    }
    struct check *check = &checks->list[checks->count++];
    check->name = name;
    check->status = status;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->text, sizeof check->text, format, arguments);
    va_end(arguments);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- clock --- */

#define READS 2000
#define ROUNDS 20

void check_clock(struct checks *checks)
{
    enum sw_clock_kind kind = sw_clock_get_kind();
    if (kind == SW_CLOCK_NONE) {
        check_add(checks, "clock", CHECK_FAIL, "There is no clock to record with: %s.",
                  sw_clock_why());
        return;
    }
    check_add(checks, "clock", kind == SW_CLOCK_MONOTONIC ? CHECK_WARN : CHECK_OK,
              "Records are stamped by %s: %s.", sw_clock_kind_name(kind), sw_clock_why());
    double best = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t begin = now_ns();
        for (int i = 0; i < READS; i++) {
            (void)sw_clock_ticks();
        }
        double cost = (double)(now_ns() - begin) / READS;
        best = cost < best ? cost : best;
    }
    char text[24];
    sw_text_duration(text, best, true);
    check_add(checks, "clock read", best > 200 ? CHECK_WARN : CHECK_OK,
              "One read of the clock takes %s; a section takes two%s.", text,
              best > 200 ? ", which is dear: short sections will look longer" : "");
}

/* --- folders --- */

static uint64_t saturated(uint64_t blocks, uint64_t size)
{
    uint64_t bytes;
    return __builtin_mul_overflow(blocks, size, &bytes) ? UINT64_MAX : bytes;
}

/* How long allocating 4 MiB in a folder takes, in ns; or -errno. */
static int64_t try_allocate(const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/.stepwatch-doctor-XXXXXX", folder);
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    unlink(path);
    uint64_t begin = now_ns();
    int error = fallocate(fd, 0, 0, (off_t)(4 * MIB)) == 0 ? 0 : errno;
    int64_t taken = (int64_t)(now_ns() - begin);
    close(fd);
    return error ? -error : taken;
}

void check_memory_folder(struct checks *checks)
{
    static const char folder[] = "/dev/shm";
    struct statfs facts;
    if (statfs(folder, &facts) != 0) {
        check_add(
            checks, "shared memory", CHECK_WARN,
            "%s cannot be used (%s); recording memory will lie on a disk or be lost when "
            "a program is killed.",
            folder, strerror(errno));
        return;
    }
    uint64_t block = (uint64_t)facts.f_bsize;
    char size[24];
    char room[24];
    sw_text_bytes(size, saturated(facts.f_blocks, block));
    sw_text_bytes(room, saturated(facts.f_bavail, block));
    uint64_t available = saturated(facts.f_bavail, block);
    bool small = available < 64 * MIB;
    check_add(
        checks, "shared memory", small ? CHECK_WARN : CHECK_OK,
        "%s has %s, %s of it free%s.", folder, size, room,
        small ? "; less than 64 MiB leaves little room for events (docker: --shm-size)"
              : "");
    int64_t taken = try_allocate(folder);
    if (taken < 0) {
        check_add(checks, "allocation", CHECK_WARN, "Allocating 4 MiB in %s fails: %s.",
                  folder, strerror((int)-taken));
        return;
    }
    char text[24];
    sw_text_duration(text, (double)taken, true);
    check_add(checks, "allocation", CHECK_OK, "Allocating 4 MiB in %s takes %s.", folder,
              text);
}

/* Name of a network file system, or NULL. */
static const char *network_name(unsigned long type)
{
    static const struct {
        unsigned long type;
        const char *name;
    } known[] = {{0x6969, "NFS"},        {0xff534d42, "CIFS"},   {0xfe534d42, "SMB"},
                 {0x517b, "SMB"},        {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"},
                 {0x00c36400, "Ceph"},   {0x5346414f, "AFS"},    {0x01021997, "9P"},
                 {0x19830326, "BeeGFS"}, {0x7461636f, "OCFS2"},  {0x65735546, "FUSE"}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].type == type) {
            return known[i].name;
        }
    }
    return NULL;
}

/* The nearest folder that exists: the last parts of the path may not have been made yet. */
static void existing_part(char *path)
{
    while (access(path, F_OK) != 0) {
        char *slash = strrchr(path, '/');
        if (!slash) {
            path[0] = '.'; /* the path is not empty */
            path[1] = '\0';
            return;
        }
        slash[slash == path ? 1 : 0] = '\0';
        if (slash == path) {
            return;
        }
    }
}

void check_run_folder(struct checks *checks, const char *folder)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", folder);
    existing_part(path);
    struct statfs facts;
    int64_t tried = try_allocate(path);
    int error = tried < 0 ? (int)-tried : 0;
    if (error == EOPNOTSUPP || error == ENOSYS) {
        error = 0; /* it can be written, which is all that a home file needs */
    }
    if (error || statfs(path, &facts) != 0) {
        check_add(checks, "run folder", CHECK_FAIL, "%.200s cannot be written to: %s.",
                  path, strerror(error ? error : errno));
        return;
    }
    const char *network = network_name((unsigned long)facts.f_type & 0xffffffffu);
    uint64_t available = saturated(facts.f_bavail, (uint64_t)facts.f_bsize);
    char room[24];
    sw_text_bytes(room, available);
    char where[128] = "on a local file system";
    if (network) {
        snprintf(where, sizeof where,
                 "on %s, which is written to with plain writes and never mapped",
                 network);
    }
    bool small = available < TRACE_USUAL;
    check_add(checks, "run folder", small ? CHECK_WARN : CHECK_OK,
              "%.150s is %s with %s free%s.", path, where, room,
              small ? ", less than one trace may take (256 MiB)" : "");
}

/* --- limits and processors --- */

static void check_limit(struct checks *checks, const char *name, int resource,
                        uint64_t enough, bool bytes, const char *consequence)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur == RLIM_INFINITY) {
        check_add(checks, name, CHECK_OK, "No limit is set.");
        return;
    }
    char text[32];
    if (bytes) {
        sw_text_bytes(text, limit.rlim_cur);
    } else {
        sw_text_count(text, limit.rlim_cur);
    }
    bool low = limit.rlim_cur < enough;
    check_add(checks, name, low ? CHECK_WARN : CHECK_OK, "The limit is %s%s%s.", text,
              low ? ": " : "", low ? consequence : "");
}

void check_limits(struct checks *checks)
{
    check_limit(checks, "file size", RLIMIT_FSIZE, TRACE_USUAL, true,
                "traces stop growing there, and what does not fit is counted");
    check_limit(checks, "address space", RLIMIT_AS, 1024 * MIB, true,
                "recording memory may not fit, and events are dropped");
    check_limit(checks, "open files", RLIMIT_NOFILE, 64, false,
                "a program that uses them all leaves none for its trace");
}

/* Hundredths of a CPU that the cgroup allows; 0: no limit known. */
static unsigned cgroup_percent(void)
{
    char text[64] = "";
    int fd = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    char *rest = text;
    unsigned long quota =
        got > 0 ? strtoul(text, &rest, 10) : 0; /* "max 100000": no limit */
    unsigned long period = strtoul(rest, NULL, 10);
    return quota > 0 && quota < ULONG_MAX / 100 && period > 0
               ? (unsigned)(100 * quota / period)
               : 0;
}

void check_cpus(struct checks *checks)
{
    cpu_set_t set;
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    int usable =
        sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)online;
    unsigned quota = cgroup_percent();
    char limit[64] = "";
    bool narrow = usable < 2;
    if (quota && quota < 100u * (unsigned)usable) {
        snprintf(limit, sizeof limit,
                 ", and the control group allows the time of %u.%02u", quota / 100,
                 quota % 100);
        narrow = narrow || quota < 200;
    }
    check_add(checks, "processors", narrow ? CHECK_WARN : CHECK_OK,
              "%d of %ld processors may be used%s%s.", usable, online, limit,
              narrow ? "; the recorder's helper thread competes with the program" : "");
}

/* --- kernel --- */

static void check_advice(struct checks *checks, const char *name, int advice,
                         const char *without)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void *page =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        check_add(checks, name, CHECK_WARN, "Could not be tried: %s.", strerror(errno));
        return;
    }
    int error = madvise(page, size, advice) == 0 ? 0 : errno;
    munmap(page, size);
    if (error) {
        check_add(checks, name, CHECK_WARN, "Not available (%s): %s.", strerror(error),
                  without);
    } else {
        check_add(checks, name, CHECK_OK, "Works.");
    }
}

/* What the sampler needs to look at a stack that changes: reading its own memory without ever faulting. */
static void check_sampling(struct checks *checks)
{
    static const char from[] = "stepwatch";
    char to[sizeof from] = "";
    const struct iovec there = {(void *)(uintptr_t)from, sizeof from};
    const struct iovec here = {to, sizeof to};
    const bool read_itself =
        process_vm_readv(getpid(), &here, 1, &there, 1, 0) == (ssize_t)sizeof from &&
        memcmp(to, from, sizeof from) == 0;
    if (read_itself) {
        check_add(checks, "process_vm_readv", CHECK_OK, "Works.");
        return;
    }
    const int error = errno;
    int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    const bool other =
        fd >= 0 && pread(fd, to, sizeof to, (off_t)(uintptr_t)from) == (ssize_t)sizeof to;
    if (fd >= 0) {
        close(fd);
    }
    check_add(checks, "process_vm_readv", CHECK_WARN, "Not available (%s): %s.",
              strerror(error),
              other ? "samples are read through /proc/self/mem instead"
                    : "stacks can be sampled only while Python stands still");
}

/* What watching calls on files needs: a page that is read-only can be written to for a moment, and the kernel says which are. */
static void check_calls(struct checks *checks)
{
    static const char *const name = "calls on files";
#if !defined(__x86_64__) && !defined(__aarch64__)
    check_add(checks, name, CHECK_WARN,
              "Cannot be watched on this processor (run --io).");
    return;
#endif
    const size_t size = (size_t)sysconf(_SC_PAGESIZE);
    char *page = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        check_add(checks, name, CHECK_WARN, "Could not be tried: %s.", strerror(errno));
        return;
    }
    char byte = 1;
    const struct iovec here = {&byte, 1};
    const struct iovec there = {page, 1};
    const bool told =
        process_vm_writev(getpid(), &here, 1, &there, 1, 0) < 0 && errno == EFAULT;
    const bool opened = mprotect(page, size, PROT_READ | PROT_WRITE) == 0;
    const int error = errno;
    if (!opened) {
        check_add(checks, name, CHECK_WARN, "Can be watched in part only (run --io): %s.",
                  strerror(error));
    } else if (!told) {
        check_add(
            checks, name, CHECK_OK,
            "Can be watched (run --io); tables of imports stay writable meanwhile.");
    } else {
        check_add(checks, name, CHECK_OK, "Can be watched (run --io).");
    }
    munmap(page, size);
}

void check_kernel(struct checks *checks)
{
    check_advice(checks, "MADV_POPULATE_WRITE", MADV_POPULATE_WRITE,
                 "pages are touched one by one instead");
    check_advice(checks, "MADV_WIPEONFORK", MADV_WIPEONFORK,
                 "children made by a raw clone are noticed by their pid only");
    int fd = memfd_create("stepwatch-doctor", MFD_CLOEXEC);
    if (fd < 0) {
        check_add(checks, "memfd", CHECK_WARN, "Not available (%s).", strerror(errno));
    } else {
        close(fd);
        check_add(checks, "memfd", CHECK_OK, "Works.");
    }
    check_sampling(checks);
    check_calls(checks);
}

/* --- monitor --- */

/* One line: what can be seen, and the first of what cannot. The monitor does without, so nothing fails. */
void check_monitor(struct checks *checks)
{
    sw_monitor_source sources[32];
    size_t count = sw_monitor_sources(sources, sizeof sources / sizeof sources[0]);
    count = count < sizeof sources / sizeof sources[0]
                ? count
                : sizeof sources / sizeof sources[0];
    char seen[256] = "";
    char missing[256] = "";
    for (size_t i = 0; i < count; i++) {
        char *list = sources[i].there ? seen : missing;
        const size_t used = strlen(list);
        if (sources[i].there) {
            snprintf(seen + used, sizeof seen - used, "%s%s", used ? ", " : "",
                     sources[i].name);
        } else if (!used) {
            snprintf(missing, sizeof missing, "; not %s: %s", sources[i].name,
                     sources[i].why);
        }
    }
    check_add(checks, "monitor", *missing ? CHECK_WARN : CHECK_OK, "It sees %s%s.",
              *seen ? seen : "nothing", missing);
}

/* --- history --- */

void check_history(struct checks *checks)
{
    sw_error_info info = {0};
    if (sw_history_check(&info) == SW_OK) {
        check_add(checks, "history", CHECK_OK, "SQLite is here to keep earlier runs.");
    } else {
        check_add(checks, "history", CHECK_WARN,
                  "Runs are recorded, but not kept in a history: %s.", info.message);
    }
}

/* --- Python --- */

void check_python(struct checks *checks)
{
    static const char version[] =
        "import sys; print('%d.%d.%d' % tuple(sys.version_info[:3]))";
    static const char load[] = "import os, sys; sys.path.insert(0, "
                               "os.path.dirname(sys.argv[1])); import stepwatch._core; "
                               "print(stepwatch.__version__)";
    struct python python;
    char number[64];
    char loaded[64];
    python_find(&python);
    if (!python_ask(python.program, version, "", number, sizeof number)) {
        check_add(checks, "python", CHECK_WARN,
                  "There is no Python for scripts (%s does not start); 'run -- PROGRAM' "
                  "needs none.",
                  python.whose);
    } else if (!*python.package) {
        check_add(checks, "python", CHECK_WARN,
                  "Scripts run in Python %s, %s, unrecorded: it has no package "
                  "'stepwatch'.",
                  number, python.whose);
    } else if (!python_ask(python.program, load, python.package, loaded, sizeof loaded)) {
        check_add(checks, "python", CHECK_WARN,
                  "Scripts run in Python %s, %s, unrecorded: the package of this command "
                  "is not for that version.",
                  number, python.whose);
    } else {
        check_add(checks, "python", CHECK_OK,
                  "Scripts run in Python %s, %s, and are recorded.", number,
                  python.whose);
    }
}
