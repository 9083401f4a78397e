/* Calls into the operating system that more than one file needs. Everything here is for
 * cold paths; nothing allocates unless it says so. Functions return 0 or a negative
 * sw_error with errno left as the system set it, unless stated otherwise. */
#ifndef SW_BASE_OS_H
#define SW_BASE_OS_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pthread.h>

/* Kernel thread id of the caller. */
int32_t sw__os_tid(void);
/* Starts a thread that has its own faults as signals and none of the program's. 0 or SW_ESYS. */
int sw__os_thread_start(pthread_t *thread, size_t stack_bytes, void *(*main)(void *),
                        void *arg);
/* Waits for its end, `patience_ns` at most, 0: as long as it takes (not at all, if it is the caller). False: it goes on. */
bool sw__os_thread_join(pthread_t thread, uint64_t patience_ns);
/* Joined is not gone: the kernel counts a thread a moment longer, and programs that count threads around a fork (Python
 * warns) would see it. Waits 20 ms at most; 0 is no thread. */
void sw__os_thread_wait_gone(int32_t tid);
/* Whether the thread `tid` of this process still exists for the kernel (tgkill with
 * signal 0). */
bool sw__os_thread_exists(int32_t tid);
/* The name that the kernel has for a thread of this process; empty where it is not known. */
void sw__os_thread_name(uint32_t tid, char *out, size_t size);
/* Whether the first thread of the process has ended and there is no other but the calling one and `others`. */
bool sw__os_only_thread_left(unsigned others);
/* CPU time of the calling thread and of the process, in ns. */
uint64_t sw__os_thread_cpu_ns(void);
uint64_t sw__os_process_cpu_ns(void);
uint64_t sw__os_now_ns(void); /* CLOCK_MONOTONIC */
void sw__os_sleep_ns(uint64_t ns);
/* 16 random bytes (getrandom; clock and address bits where that fails). */
void sw__os_random(uint8_t out[16]);

/* What getrusage(RUSAGE_THREAD) and schedstat tell of the calling thread. Fields that
 * could not be read are UINT64_MAX. `schedstat_fd` is an open /proc/thread-self/schedstat
 * or -1. */
struct sw__os_usage {
    uint64_t cpu_ns;
    uint64_t run_delay_ns;
    uint64_t voluntary;   /* context switches */
    uint64_t involuntary; /* context switches */
    uint64_t minor_faults;
    uint64_t major_faults;
};
void sw__os_thread_usage(struct sw__os_usage *out, int schedstat_fd);

/* Memory of this process that is present, and the part of it that no file stands behind, in bytes; UINT64_MAX: unknown.
 * `statm_fd` is an open /proc/self/statm or negative. */
struct sw__os_memory {
    uint64_t resident, anonymous;
};
void sw__os_process_memory(struct sw__os_memory *out, int statm_fd);

/* What this process read and wrote so far, pipes and sockets too; all UINT64_MAX: unknown. `io_fd` is an open /proc/self/io or
 * negative. */
struct sw__os_io {
    uint64_t read_bytes, written_bytes, read_calls, write_calls;
};
void sw__os_process_io(struct sw__os_io *out, int io_fd);

/* Files. All are opened O_CLOEXEC | O_NOFOLLOW and moved to a descriptor of at least 200
 * where the limit allows, out of the way of programs that use fixed small numbers. */
int sw__os_create_private(const char *path); /* O_EXCL, mode 0600: fd, or -errno */
int sw__os_open_write(const char *path);     /* a file that is there: fd, or -errno */
int sw__os_open_read(const char *path);      /* O_RDONLY: fd, or -errno */
int sw__os_duplicate(int fd);                /* out of the way: fd, or -errno */
int sw__os_memory_file(void); /* in memory, without a name: fd, or -errno */
/* mkdir -p, mode 0700 for new ones: 0 or -errno. */
int sw__os_mkdirs_private(const char *path);
/* 0 or -errno; `*got` is short at the end of the file. */
int sw__os_pread_all(int fd, void *to, size_t length, uint64_t offset, size_t *got);
/* A whole small file (/proc), NUL-terminated, cut to the buffer: bytes, or -errno. */
int sw__os_read_file(const char *path, char *to, size_t size);
/* While a guard stands, a file that would grow beyond RLIMIT_FSIZE is an error in the calling thread, and no signal. The end
 * takes back the signal if one may have been raised; one that the program had pending before stays. */
struct sw__os_guard {
    sigset_t old;
    bool was_pending;
    bool active;
};
void sw__os_guard_begin(struct sw__os_guard *guard);
void sw__os_guard_end(struct sw__os_guard *guard, bool raised);
/* Writes all of it; SIGXFSZ is blocked and consumed meanwhile, and the limit RLIMIT_FSIZE
 * is checked first. 0, -ENOSPC, -EFBIG, -EDQUOT, … */
int sw__os_pwrite_all(int fd, const void *from, size_t length, uint64_t offset);
/* The same into one file only: programs close descriptors that are not theirs and open files that get their numbers. It is
 * looked at right before a write, with nothing in between, and after the last. -EBADF: the descriptor is none of that file
 * (any more), and what was written of it is not known. */
int sw__os_pwrite_file(int fd, dev_t device, ino_t inode, const void *from, size_t length,
                       uint64_t offset);
/* The same at the descriptor's own position, also for pipes and terminals; waits where it
 * is non-blocking. Without the check of the limit, so that what fits is written. */
int sw__os_write_all(int fd, const void *from, size_t length);
/* Grows (never shrinks) a file to `size` with its blocks allocated; falls back to
 * ftruncate where the file system has no fallocate only if `sparse_ok`. Same care for
 * SIGXFSZ. 0 or -errno. */
int sw__os_allocate(int fd, uint64_t from, uint64_t to, bool sparse_ok);
/* The same of one file only, never sparse. -EBADF as sw__os_pwrite_file. */
int sw__os_allocate_file(int fd, dev_t device, ino_t inode, uint64_t from, uint64_t to);
/* Makes the pages of a mapping present and writable (MADV_POPULATE_WRITE; touches each
 * page without changing it where the kernel is older). 0 or -errno. */
int sw__os_populate(void *address, size_t length);
/* Address space that this process may still take (RLIMIT_AS), UINT64_MAX without a limit. */
uint64_t sw__os_address_space_left(void);
/* Smallest of the soft RLIMIT_FSIZE and UINT64_MAX. */
uint64_t sw__os_file_size_limit(void);

/* Whether a descriptor still is the file it was: programs close descriptors that are not theirs. */
bool sw__os_is_file(int fd, dev_t device, ino_t inode);

/* What kind of file system holds `path` (which must exist). */
enum sw__os_fs { SW__FS_UNKNOWN, SW__FS_MEMORY, SW__FS_LOCAL, SW__FS_NETWORK };
enum sw__os_fs sw__os_fs_kind(const char *path, uint64_t *free_bytes, const char **name);

/* Host name, kernel release, CPU model and usable CPUs (affinity and cgroup quota, in
 * hundredths of a CPU), total memory. Strings are cut to the buffer. */
void sw__os_host_name(char *out, size_t size);
void sw__os_kernel(char *out, size_t size);
void sw__os_cpu_model(char *out, size_t size);
unsigned sw__os_cpus_online(void);
unsigned sw__os_cpus_usable_percent(void);
uint64_t sw__os_memory_bytes(void);
/* A file of a control group's folder, as sw__os_read_file. */
int sw__os_cgroup_text(const char *folder, const char *file, char *to, size_t size);
/* A group of this process, as a line of /proc/self/cgroup says it. */
struct sw__os_cgroup {
    bool v2;
    const char *group;  /* its path below a mount, within the line */
    char mount[2][256]; /* where that may be mounted */
};
/* Takes a line apart, which is changed; false where it is none, or of other controllers. */
bool sw__os_cgroup_parse(struct sw__os_cgroup *out, char *line, const char *controller);
/* The least that `v2` or `v1` say of the folders of this process's groups with that controller, from its own up to the
 * root; UINT64_MAX: no limit. */
uint64_t sw__os_cgroup_least(const char *controller, uint64_t (*v2)(const char *),
                             uint64_t (*v1)(const char *));
/* Start time of a process in clock ticks since boot (field 22 of its stat), 0 when it is
 * gone: tells a live writer from a recycled pid. */
uint64_t sw__os_process_start(pid_t pid);

#endif
