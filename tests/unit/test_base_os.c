/* Files that fill up, links that lead astray, pages, threads and the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stepwatch/host.h>

#include "base/memory.h"
#include "base/os.h"

static char folder[] = "/tmp/stepwatch-os-XXXXXX";
static char path[128];

static const char *in_folder(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    char command[160];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

static int in_child(int (*check)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(check());
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status)); /* not killed by SIGXFSZ */
    return WEXITSTATUS(status);
}

static void files_are_private_and_out_of_the_way(void **state)
{
    (void)state;
    struct stat status;
    int fd = sw__os_create_private(in_folder("new"));
    assert_true(fd >= 200);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    close(fd);
    assert_int_equal(sw__os_create_private(path), -EEXIST);
    fd = sw__os_open_read(path);
    assert_true(fd >= 200);
    close(fd);
    assert_int_equal(sw__os_open_read(in_folder("missing")), -ENOENT);
}

static int check_few_descriptors(void)
{
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    int fd = sw__os_open_read("/dev/null");
    return !(fd >= 0 && fd < 64);
}

static void few_descriptors_are_enough(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_few_descriptors), 0);
}

static void links_are_refused(void **state)
{
    (void)state;
    char link_path[128];
    int fd = sw__os_create_private(in_folder("target"));
    assert_true(fd >= 0);
    close(fd);
    snprintf(link_path, sizeof link_path, "%s/link", folder);
    assert_int_equal(symlink(path, link_path), 0);
    assert_int_equal(sw__os_open_read(link_path), -ELOOP);
    assert_int_equal(sw__os_create_private(link_path), -EEXIST);
    char text[8];
    assert_int_equal(sw__os_read_file(link_path, text, sizeof text), -ELOOP);
    /* A link to nowhere must not create what it points to. */
    snprintf(link_path, sizeof link_path, "%s/dangling", folder);
    assert_int_equal(symlink(in_folder("nowhere"), link_path), 0);
    assert_int_equal(sw__os_create_private(link_path), -EEXIST);
    assert_int_equal(access(in_folder("nowhere"), F_OK), -1);
}

static void pipes_do_not_hang_the_reader(void **state)
{
    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    int fd = sw__os_open_read(path);
    assert_true(fd >= 0);
    close(fd);
}

static void folders_are_private(void **state)
{
    (void)state;
    struct stat status;
    mode_t old = umask(0);
    assert_int_equal(sw__os_mkdirs_private(in_folder("a//b/c/")), 0);
    umask(old);
    static const char *const names[] = {"a", "a/b", "a/b/c"};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(stat(in_folder(names[i]), &status), 0);
        assert_int_equal(status.st_mode & 07777, 0700);
    }
    assert_int_equal(sw__os_mkdirs_private(path), 0); /* again */
    assert_int_equal(sw__os_mkdirs_private("/"), 0);
    assert_int_equal(sw__os_mkdirs_private(""), -ENOENT);
    int fd = sw__os_create_private(in_folder("file"));
    close(fd);
    assert_int_equal(sw__os_mkdirs_private(path), -ENOTDIR);
    assert_int_equal(sw__os_mkdirs_private(in_folder("file/below")), -ENOTDIR);
    char *endless = sw__alloc(10000);
    memset(endless, 'x', 9999);
    endless[9999] = '\0';
    assert_int_equal(sw__os_mkdirs_private(endless), -ENAMETOOLONG);
    sw__free(endless);
}

static void bytes_come_back(void **state)
{
    (void)state;
    int fd = sw__os_create_private(in_folder("bytes"));
    assert_int_equal(sw__os_pwrite_all(fd, "hello", 5, 100), 0);
    assert_int_equal(sw__os_pwrite_all(fd, NULL, 0, 0), 0);
    char got[8] = {0};
    size_t length;
    assert_int_equal(sw__os_pread_all(fd, got, sizeof got, 100, &length), 0);
    assert_int_equal(length, 5);
    assert_string_equal(got, "hello");
    assert_int_equal(sw__os_pread_all(fd, got, sizeof got, UINT64_MAX - 2, &length), 0);
    assert_int_equal(length, 0);
    assert_int_equal(sw__os_pread_all(-1, got, 1, 0, NULL), -EBADF);
    assert_int_equal(sw__os_pwrite_all(fd, "x", 1, UINT64_MAX), -EFBIG);
    assert_int_equal(sw__os_pwrite_all(fd, "x", 1, INT64_MAX), -EFBIG);
    close(fd);
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_int_equal(sw__os_pwrite_all(full, "x", 1, 0), -ENOSPC);
    close(full);
    char small[4];
    fd = sw__os_create_private(in_folder("small"));
    assert_int_equal(sw__os_pwrite_all(fd, "abcdef", 6, 0), 0);
    close(fd);
    assert_int_equal(sw__os_read_file(path, small, sizeof small), 3);
    assert_string_equal(small, "abc");
    assert_int_equal(sw__os_read_file("/nowhere", small, sizeof small), -ENOENT);
}

/* What the program has opened under the number of ours gets no byte of ours. */
static void one_file_is_written_alone(void **state)
{
    (void)state;
    struct stat facts;
    int fd = sw__os_create_private(in_folder("ours"));
    int theirs = sw__os_create_private(in_folder("theirs"));
    assert_int_equal(fstat(fd, &facts), 0);
    assert_int_equal(sw__os_pwrite_file(fd, facts.st_dev, facts.st_ino, "hello", 5, 100),
                     0);
    assert_int_equal(fstat(fd, &facts), 0);
    assert_int_equal(facts.st_size, 105);
    assert_int_equal(
        sw__os_pwrite_file(fd, facts.st_dev, facts.st_ino, "x", 1, UINT64_MAX), -EFBIG);
    const dev_t device = facts.st_dev;
    const ino_t inode = facts.st_ino;
    assert_int_equal(sw__os_allocate_file(fd, device, inode, 0, 4096), 0);
    assert_int_equal(dup2(theirs, fd), fd);
    assert_int_equal(sw__os_pwrite_file(fd, device, inode, "hello", 5, 0), -EBADF);
    assert_int_equal(sw__os_allocate_file(fd, device, inode, 0, 4096), -EBADF);
    assert_int_equal(fstat(theirs, &facts), 0);
    assert_int_equal(facts.st_size, 0);
    close(fd);
    assert_int_equal(sw__os_pwrite_file(fd, device, inode, "hello", 5, 0), -EBADF);
    close(theirs);
}

static bool xfsz_is_pending(void)
{
    sigset_t set;
    sigpending(&set);
    return sigismember(&set, SIGXFSZ);
}

static bool xfsz_is_blocked(void)
{
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    return sigismember(&set, SIGXFSZ);
}

static int limited_fd(rlim_t size)
{
    struct rlimit limit = {.rlim_cur = size, .rlim_max = size};
    signal(SIGXFSZ, SIG_DFL);
    setrlimit(RLIMIT_FSIZE, &limit);
    return open(path, O_RDWR | O_CLOEXEC);
}

static int check_pwrite_at_limit(void)
{
    int fd = limited_fd(4096);
    char block[4096] = {1};
    struct stat status;
    if (sw__os_file_size_limit() != 4096 || sw__os_pwrite_all(fd, block, 4096, 0) != 0) {
        return 1;
    }
    if (sw__os_pwrite_all(fd, block, 1, 4096) != -EFBIG ||
        sw__os_pwrite_all(fd, block, 4096, 2048) != -EFBIG ||
        sw__os_pwrite_all(fd, block, 100, 1000000) != -EFBIG) {
        return 2;
    }
    if (fstat(fd, &status) != 0 || status.st_size != 4096) {
        return 3; /* nothing of what does not fit is written */
    }
    return xfsz_is_pending() || xfsz_is_blocked() ? 4 : 0;
}

static int check_allocate_at_limit(void)
{
    int fd = limited_fd(65536);
    struct stat status;
    if (sw__os_allocate(fd, 0, 65537, true) != -EFBIG ||
        sw__os_allocate(fd, 0, 65536, true) != 0) {
        return 1;
    }
    if (fstat(fd, &status) != 0 || status.st_size != 65536) {
        return 2;
    }
    return xfsz_is_pending() || xfsz_is_blocked() ? 3 : 0;
}

/* sw__os_write_all does not look at the limit, so here the kernel raises the signal. */
static int check_write_beyond_limit(void)
{
    int fd = limited_fd(10);
    if (sw__os_write_all(fd, "0123456789abc", 13) != -EFBIG) {
        return 1;
    }
    if (xfsz_is_pending() || xfsz_is_blocked()) {
        return 2;
    }
    /* A signal that was the program's own is left to it. */
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    raise(SIGXFSZ);
    if (sw__os_write_all(fd, "more", 4) != -EFBIG) {
        return 3;
    }
    return xfsz_is_pending() && xfsz_is_blocked() ? 0 : 4;
}

static void size_limit_does_not_kill(void **state)
{
    (void)state;
    close(sw__os_create_private(in_folder("limited")));
    assert_int_equal(in_child(check_pwrite_at_limit), 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(in_child(check_allocate_at_limit), 0);
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(in_child(check_write_beyond_limit), 0);
}

static void allocation_grows_only(void **state)
{
    (void)state;
    struct stat status;
    int fd = sw__os_create_private(in_folder("grow"));
    assert_int_equal(sw__os_allocate(fd, 0, 100000, true), 0);
    assert_int_equal(sw__os_allocate(fd, 0, 50000, true), 0);
    assert_int_equal(sw__os_allocate(fd, 7, 7, true), 0);
    assert_int_equal(sw__os_allocate(fd, 7, 3, true), 0);
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_size, 100000);
    assert_int_equal(sw__os_allocate(fd, 0, UINT64_MAX, true), -EFBIG);
    close(fd);
    assert_true(sw__os_allocate(-1, 0, 10, true) < 0);
}

static void pages_become_present_unchanged(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t length = 16 * page;
    int fd = sw__os_create_private(in_folder("pages"));
    assert_int_equal(sw__os_allocate(fd, 0, length, true), 0);
    char *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(memory != MAP_FAILED);
    memory[3 * page] = 'x';
    assert_int_equal(sw__os_populate(memory + 10, length - 10), 0);
    assert_int_equal(sw__os_populate(memory, 0), 0);
    unsigned char present[16];
    assert_int_equal(mincore(memory, length, present), 0);
    for (size_t i = 0; i < 16; i++) {
        assert_true(present[i] & 1);
        assert_int_equal(memory[i * page], i == 3 ? 'x' : 0);
    }
    munmap(memory, length);
    close(fd);
    if (getenv("TEST_EMULATED")) {
        skip(); /* nobody there looks at protections for the kernel */
    }
    /* What cannot be written is an error, not a crash. */
    memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int result = sw__os_populate(memory, page);
    assert_true(result < 0);
    munmap(memory, page);
}

static void *exchange_tid(void *arg)
{
    *(int32_t *)arg = sw__os_tid();
    return NULL;
}

static void threads_are_told_apart(void **state)
{
    (void)state;
    assert_int_equal(sw__os_tid(), getpid());
    assert_true(sw__os_thread_exists(sw__os_tid()));
    assert_false(sw__os_thread_exists(0));
    assert_false(sw__os_thread_exists(-5));
    pthread_t thread;
    int32_t other = 0;
    assert_int_equal(pthread_create(&thread, NULL, exchange_tid, &other), 0);
    pthread_join(thread, NULL);
    assert_true(other > 0 && other != sw__os_tid());
}

static void usage_grows(void **state)
{
    (void)state;
    struct sw__os_usage before;
    struct sw__os_usage after;
    int fd = sw__os_open_read("/proc/thread-self/schedstat");
    sw__os_thread_usage(&before, fd);
    sw__os_sleep_ns(1000000);
    sw__os_thread_usage(&after, fd);
    assert_true(after.cpu_ns >= before.cpu_ns);
    assert_true(after.voluntary >= before.voluntary);
    assert_true(after.involuntary >= before.involuntary);
    assert_true(after.minor_faults >= before.minor_faults);
    assert_true(fd < 0 || after.run_delay_ns >= before.run_delay_ns);
    sw__os_thread_usage(&after, -1);
    assert_true(after.run_delay_ns == UINT64_MAX);
    if (fd >= 0) {
        close(fd);
    }
    assert_true(sw__os_process_cpu_ns() > 0);
    assert_true(sw__os_thread_cpu_ns() > 0);
}

static void random_bytes_differ(void **state)
{
    (void)state;
    uint8_t one[16] = {0};
    uint8_t two[16] = {0};
    sw__os_random(one);
    sw__os_random(two);
    assert_memory_not_equal(one, two, 16);
}

static void file_systems_are_known(void **state)
{
    (void)state;
    uint64_t free_bytes = 1;
    const char *name = NULL;
    assert_int_equal(sw__os_fs_kind("/nowhere/at/all", &free_bytes, &name),
                     SW__FS_UNKNOWN);
    assert_int_equal(free_bytes, 0);
    assert_non_null(name);
    (void)sw__os_fs_kind(folder, NULL, NULL);
    if (access("/dev/shm", F_OK) == 0 &&
        sw__os_fs_kind("/dev/shm", &free_bytes, &name) != SW__FS_UNKNOWN) {
        assert_true(strlen(name) > 0);
    }
}

static void host_is_described(void **state)
{
    (void)state;
    char text[256];
    sw__os_host_name(text, sizeof text);
    assert_true(strlen(text) > 0);
    sw__os_kernel(text, sizeof text);
    assert_true(strlen(text) > 0);
    sw__os_cpu_model(text, sizeof text);
    assert_true(strlen(text) > 0);
    assert_null(strchr(text, '\n'));
    sw__os_cpu_model(text, 4);
    assert_true(strlen(text) < 4);
    sw__os_host_name(text, 0);
    assert_true(sw__os_cpus_online() >= 1);
    assert_true(sw__os_cpus_usable_percent() >= 1);
    assert_true(sw__os_memory_bytes() > 1000000);
}

static void memory_is_counted(void **state)
{
    (void)state;
    assert_true(sw_host_cpus_percent() == sw__os_cpus_usable_percent());
    const uint64_t available = sw_host_memory_available();
    assert_true(available > 0 && available <= sw__os_memory_bytes());
    const uint64_t before = sw_host_resident(0);
    assert_true(before > 0 && before != UINT64_MAX);
    const size_t size = (size_t)64 << 20;
    void *block =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 1, size);
    const uint64_t with = sw_host_resident(getpid());
    /* The kernel's count may be some pages behind for each CPU. */
    assert_true(with >= before + size / 2);
    munmap(block, size);
    assert_true(sw_host_resident(0) < with);
    assert_true(sw_host_resident_peak() >= before + size / 2);
    /* Asked again it may be told in a quicker way: the same, and what comes later. */
    const uint64_t peak = sw_host_resident_peak();
    assert_true(sw_host_resident_peak() == peak);
    block =
        mmap(NULL, 4 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(block != MAP_FAILED);
    memset(block, 1, 4 * size);
    munmap(block, 4 * size);
    assert_true(sw_host_resident_peak() >= peak + size);
    assert_true(sw_host_resident_peak() <= before + 6 * size);
    assert_true(sw_host_resident(INT32_MAX) == UINT64_MAX);
}

static void what_is_read_and_written_is_counted(void **state)
{
    (void)state;
    sw_host_io before, after;
    sw_host_io_read(&before);
    char text[256];
    const int got = sw__os_read_file("/proc/self/statm", text, sizeof text);
    assert_true(got > 0);
    const int null = open("/dev/null", O_WRONLY);
    assert_int_equal(write(null, text, 100), 100);
    close(null);
    sw_host_io_read(&after);
    assert_true(after.read_bytes >= before.read_bytes + (uint64_t)got);
    assert_true(after.written_bytes >= before.written_bytes + 100);
    assert_true(after.read_calls > before.read_calls);
    assert_true(after.write_calls > before.write_calls);
    assert_true(after.device_read_bytes != UINT64_MAX);
    assert_true(after.device_written_bytes != UINT64_MAX);
}

static void address_space_limits_what_is_available(void **state)
{
    (void)state;
    if (getenv("TEST_EMULATED")) {
        skip(); /* the limit would be the emulator's */
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit limit = {(rlim_t)1 << 31, (rlim_t)1 << 31};
        const bool set = setrlimit(RLIMIT_AS, &limit) == 0;
        _exit(set && sw_host_memory_available() <= (uint64_t)1 << 31 ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void start_tells_processes_apart(void **state)
{
    (void)state;
    assert_true(sw__os_process_start(getpid()) > 0);
    assert_true(sw__os_process_start(getpid()) >= sw__os_process_start(1));
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    waitpid(child, NULL, 0);
    assert_true(sw__os_process_start(child) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_private_and_out_of_the_way),
        cmocka_unit_test(few_descriptors_are_enough),
        cmocka_unit_test(links_are_refused),
        cmocka_unit_test(pipes_do_not_hang_the_reader),
        cmocka_unit_test(folders_are_private),
        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(one_file_is_written_alone),
        cmocka_unit_test(size_limit_does_not_kill),
        cmocka_unit_test(allocation_grows_only),
        cmocka_unit_test(pages_become_present_unchanged),
        cmocka_unit_test(threads_are_told_apart),
        cmocka_unit_test(usage_grows),
        cmocka_unit_test(random_bytes_differ),
        cmocka_unit_test(file_systems_are_known),
        cmocka_unit_test(host_is_described),
        cmocka_unit_test(memory_is_counted),
        cmocka_unit_test(what_is_read_and_written_is_counted),
        cmocka_unit_test(address_space_limits_what_is_available),
        cmocka_unit_test(start_tells_processes_apart),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
