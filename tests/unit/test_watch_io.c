/* Calls on files and sockets are counted exactly, whatever happens around them, and change nothing. */
#include "io_plugin.h"
#include "recorder_util.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_THREAD__
#define IS_TSAN 1
#else
#define IS_TSAN 0
#endif

static const struct io_plugin *p;
static char data[100000];

static void start_with(const char *more)
{
    const char *const set[] = {"io=on", more ? more : "io=on", NULL};
    ru_start((sw_config){.set = set});
}

/* Sums of a path and an operation, over the rows of one trace. Any path where it is NULL. */
static sw_row thing(const struct ru_trace *trace, const char *path, unsigned operation)
{
    sw_row sum = {.table = SW_TABLE_THING};
    for (size_t i = 0; i < sw_trace_row_count(trace->trace, SW_TABLE_THING); i++) {
        const sw_row *row = sw_trace_get_row(trace->trace, SW_TABLE_THING, i);
        if (row->key[2] == operation &&
            (!path || strcmp(ru_name(trace, row->key[0]), path) == 0)) {
            sum.key[1] = row->key[1];
            for (unsigned v = 0; v < 4; v++) {
                sum.value[v] += row->value[v];
            }
        }
    }
    return sum;
}

/* The same by section and phase, of files. */
static sw_row section(const struct ru_trace *trace, const char *name, unsigned phase,
                      unsigned operation)
{
    sw_row sum = {.table = SW_TABLE_IO};
    for (size_t i = 0; i < sw_trace_row_count(trace->trace, SW_TABLE_IO); i++) {
        const sw_row *row = sw_trace_get_row(trace->trace, SW_TABLE_IO, i);
        const char *found = row->key[0] ? ru_name(trace, row->key[0]) : "";
        if (row->key[3] == operation && row->key[1] == phase &&
            row->key[2] == SW_IO_KIND_FILE && strcmp(found, name) == 0) {
            for (unsigned v = 0; v < 4; v++) {
                sum.value[v] += row->value[v];
            }
        }
    }
    return sum;
}

/* Both tables say the same in all. */
static void check_agreement(const struct ru_trace *trace)
{
    for (unsigned op = 1; op < SW_IO_OPERATIONS; op++) {
        const sw_row things = thing(trace, NULL, op);
        uint64_t calls = 0, bytes = 0;
        for (size_t i = 0; i < sw_trace_row_count(trace->trace, SW_TABLE_IO); i++) {
            const sw_row *row = sw_trace_get_row(trace->trace, SW_TABLE_IO, i);
            calls += row->key[3] == op ? row->value[0] : 0;
            bytes += row->key[3] == op ? row->value[1] : 0;
        }
        assert_int_equal(calls, things.value[0]);
        assert_int_equal(bytes, things.value[1]);
    }
}

/* In the test's folder, as the kernel calls it. */
static const char *path_of(const char *name)
{
    static char paths[8][4200];
    static int next;
    char *out = paths[next++ % 8];
    char folder[4096];
    assert_non_null(realpath(ru_folder, folder));
    snprintf(out, sizeof paths[0], "%s/%s", folder, name);
    return out;
}

static void make_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void read_all(const char *path, size_t piece)
{
    char buffer[65536];
    const int fd = p->open(path, O_RDONLY, 0);
    if (fd < 0) {
        abort();
    }
    while (p->read(fd, buffer, piece) > 0) {
    }
    p->close(fd);
}

static void test_exact_counts(void **state)
{
    (void)state;
    const char *in = path_of("in.bin"), *out = path_of("out.bin"),
               *last = path_of("last");
    make_file(in, 10000);
    start_with(NULL);
    sw_section *load = sw_section_get("load");
    sw_section *save = sw_section_get("save");
    sw_begin(load);
    for (int i = 0; i < 3; i++) {
        read_all(in, 1000); /* 10 and an empty one */
    }
    sw_end(load);
    sw_begin(save);
    const int fd = p->open(out, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(p->write(fd, data, 50000), 50000);
    assert_int_equal(p->pwrite(fd, data, 10, 0), 10);
    assert_int_equal(p->fsync(fd), 0);
    p->close(fd);
    assert_int_equal(p->rename(out, last), 0);
    sw_end(save);
    struct ru_trace trace = ru_finish();
    sw_row row = thing(&trace, in, SW_IO_READ);
    assert_int_equal(row.key[1], SW_IO_KIND_FILE);
    assert_int_equal(row.value[0], 33);
    assert_int_equal(row.value[1], 30000);
    assert_true(row.value[2] > 0);
    assert_int_equal(row.value[3], 30);
    assert_int_equal(thing(&trace, in, SW_IO_OPEN).value[0], 3);
    assert_int_equal(thing(&trace, in, SW_IO_CLOSE).value[0], 3);
    assert_int_equal(thing(&trace, in, 0).value[0], 10000); /* its size */
    row = thing(&trace, out, SW_IO_WRITE);
    assert_int_equal(row.value[0], 2);
    assert_int_equal(row.value[1], 50010);
    assert_int_equal(row.value[3], 1);
    assert_int_equal(thing(&trace, out, SW_IO_SYNC).value[0], 1);
    assert_int_equal(thing(&trace, last, SW_IO_RENAME).value[0], 1);
    assert_int_equal(section(&trace, "load", SW_PHASE_INHERIT, SW_IO_READ).value[0], 33);
    assert_int_equal(section(&trace, "save", SW_PHASE_INHERIT, SW_IO_WRITE).value[1],
                     50010);
    assert_int_equal(section(&trace, "save", SW_PHASE_INHERIT, SW_IO_READ).value[0], 0);
    check_agreement(&trace);
    const sw_row *watched = sw_trace_get_row(trace.trace, SW_TABLE_WATCHED, 0);
    assert_non_null(watched);
    assert_true(watched->value[0] > 0);
    assert_int_equal(watched->value[1], 0);
    assert_int_equal(watched->value[2], 0);
    /* A sync is worth a record of its own. */
    struct ru_records records = ru_read(&trace, 1u << SW_RECORD_IO);
    size_t syncs = 0;
    for (size_t i = 0; i < records.count; i++) {
        const sw_record_io *record = (const void *)records.at[i].record;
        if (record->operation == SW_IO_SYNC) {
            assert_string_equal(ru_name(&trace, record->head.id), out);
            assert_true(records.at[i].end_ns > records.at[i].begin_ns);
            syncs++;
        }
    }
    assert_int_equal(syncs, 1);
    ru_records_free(&records);
    ru_free(&trace);
}

static void test_phases_of_steps(void **state)
{
    (void)state;
    const char *in = path_of("in.bin");
    make_file(in, 100);
    start_with(NULL);
    sw_section *wait = sw_section_get_n("data", 4, SW_PHASE_DATA_WAIT);
    for (int i = 0; i < 5; i++) {
        sw_step_begin();
        sw_begin(wait);
        read_all(in, 100);
        sw_end(wait);
        read_all(in, 50);
        sw_step_end();
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(section(&trace, "data", SW_PHASE_DATA_WAIT, SW_IO_READ).value[0],
                     10);
    assert_int_equal(section(&trace, "", SW_PHASE_OTHER, SW_IO_READ).value[0], 15);
    check_agreement(&trace);
    ru_free(&trace);
}

static void test_streams_and_vectors(void **state)
{
    (void)state;
    const char *in = path_of("in.txt"), *out = path_of("out.txt");
    memset(data, 'x', sizeof data);
    data[99] = '\n';
    make_file(in, 100);
    start_with(NULL);
    char line[200];
    FILE *file = p->fopen(in, "r");
    assert_non_null(p->fgets(line, sizeof line, file));
    assert_int_equal(strlen(line), 100);
    assert_int_equal(p->fread(line, 1, 10, file), 0);
    p->fclose(file);
    file = p->fopen(out, "w");
    for (int i = 0; i < 100; i++) {
        assert_int_equal(p->fwrite(data, 4, 5, file), 5);
    }
    assert_int_equal(p->fclose(file), 0);
    const int fd = p->open(in, O_RDONLY, 0);
    struct iovec parts[2] = {{line, 30}, {line + 30, 40}};
    assert_int_equal(p->readv(fd, parts, 2), 70);
    assert_int_equal(p->pread(fd, line, 200, 90), 10);
    void *mapped = p->mmap(NULL, 100, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(mapped != MAP_FAILED);
    munmap(mapped, 100);
    mapped = p->mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(mapped, 4096);
    const int copy = p->open(out, O_WRONLY, 0);
    assert_int_equal(p->sendfile(copy, fd, NULL, 30), 30);
    p->close(copy);
    p->close(fd);
    struct ru_trace trace = ru_finish();
    sw_row row = thing(&trace, in, SW_IO_READ);
    assert_int_equal(row.value[0], 5);
    assert_int_equal(row.value[1], 100 + 70 + 10 + 30);
    assert_int_equal(row.value[3], 3); /* what the C library buffers is not small */
    assert_int_equal(thing(&trace, in, SW_IO_MAP).value[1], 100);
    assert_int_equal(thing(&trace, in, SW_IO_OPEN).value[0], 2);
    row = thing(&trace, out, SW_IO_WRITE);
    assert_int_equal(row.value[0], 101);
    assert_int_equal(row.value[1], 2030);
    check_agreement(&trace);
    ru_free(&trace);
    memset(data, 0, sizeof data);
}

static void test_sockets_and_pipes(void **state)
{
    (void)state;
    start_with(NULL);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int server = socket(AF_INET, SOCK_STREAM, 0);
    /* A port of a service, so that the peer is told with it. */
    for (unsigned port = 20000; port < 20100; port++) {
        address.sin_port = htons((uint16_t)port);
        if (bind(server, (struct sockaddr *)&address, sizeof address) == 0) {
            break;
        }
    }
    assert_int_equal(listen(server, 1), 0);
    const int client = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(p->connect(client, (struct sockaddr *)&address, sizeof address), 0);
    const int peer = p->accept(server, (struct sockaddr *)&address, &length);
    assert_true(peer >= 0);
    char buffer[100];
    assert_int_equal(p->send(client, data, 5000, 0), 5000);
    size_t got = 0;
    while (got < 5000) {
        struct pollfd wait = {.fd = peer, .events = POLLIN};
        assert_int_equal(p->poll(&wait, 1, -1), 1);
        const ssize_t more = p->recv(peer, buffer, 100, 0);
        assert_int_equal(more, 100);
        got += (size_t)more;
    }
    getpeername(client, (struct sockaddr *)&address, &length);
    char name[64];
    snprintf(name, sizeof name, "127.0.0.1:%u", ntohs(address.sin_port));
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(p->write(ends[1], data, 7), 7);
    assert_int_equal(p->read(ends[0], buffer, 100), 7);
    p->close(ends[0]);
    p->close(ends[1]);
    p->close(client);
    p->close(peer);
    close(server);
    struct ru_trace trace = ru_finish();
    sw_row row = thing(&trace, name, SW_IO_SEND);
    assert_int_equal(row.key[1], SW_IO_KIND_SOCKET);
    assert_int_equal(row.value[1], 5000);
    assert_int_equal(thing(&trace, name, SW_IO_CONNECT).value[0], 1);
    row = thing(&trace, "127.0.0.1", SW_IO_RECEIVE); /* the client's port is chance */
    assert_int_equal(row.value[0], 50);
    assert_int_equal(row.value[1], 5000);
    assert_int_equal(row.value[3], 50);
    assert_int_equal(thing(&trace, "127.0.0.1", SW_IO_WAIT).value[0], 50);
    assert_int_equal(thing(&trace, "(pipes)", SW_IO_READ).value[1], 7);
    assert_int_equal(thing(&trace, "(pipes)", SW_IO_WRITE).value[1], 7);
    check_agreement(&trace);
    ru_free(&trace);
}

/* A number that stands for another file later, by every way that this can happen. */
static void test_numbers_change_hands(void **state)
{
    (void)state;
    const char *a = path_of("a"), *b = path_of("b"), *c = path_of("c");
    make_file(a, 10);
    make_file(b, 20);
    make_file(c, 30);
    start_with(NULL);
    char buffer[64];
    const int fd = p->open(a, O_RDONLY, 0);
    assert_int_equal(p->read(fd, buffer, 64), 10);
    const int other = p->open(b, O_RDONLY, 0);
    assert_int_equal(p->dup2(other, fd), fd);
    assert_int_equal(p->read(fd, buffer, 64), 20);
    p->close(fd);
    p->close(other);
    const int again = p->open(c, O_RDONLY, 0);
    assert_int_equal(again, fd);
    assert_int_equal(p->read(again, buffer, 64), 30);
    p->close(again);
    struct ru_trace trace = ru_finish();
    assert_int_equal(thing(&trace, a, SW_IO_READ).value[1], 10);
    assert_int_equal(thing(&trace, b, SW_IO_READ).value[1], 20);
    assert_int_equal(thing(&trace, c, SW_IO_READ).value[1], 30);
    ru_free(&trace);
}

static void test_errors_are_the_programs(void **state)
{
    (void)state;
    start_with(NULL);
    char byte;
    errno = 0;
    assert_int_equal(p->read(-1, &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(p->read(70000, &byte, 1), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(p->open(path_of("not there"), O_RDONLY, 0), -1);
    assert_int_equal(errno, ENOENT);
    const char *volatile nowhere = (const char *)(uintptr_t)8;
    assert_int_equal(p->open(nowhere, O_RDONLY, 0), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(p->rename(nowhere, nowhere), -1);
    assert_int_equal(errno, EFAULT);
    assert_null(p->fopen(path_of("not there"), "r"));
    assert_int_equal(errno, ENOENT);
    assert_int_equal(p->close(-5), -1);
    assert_int_equal(errno, EBADF);
    assert_int_equal(p->rename(path_of("x"), path_of("y")), -1);
    assert_int_equal(errno, ENOENT);
    /* A call that succeeds leaves errno alone. */
    const char *a = path_of("a");
    make_file(a, 10);
    errno = 4711;
    const int fd = p->open(a, O_RDONLY, 0);
    assert_int_equal(p->read(fd, &byte, 1), 1);
    assert_int_equal(p->close(fd), 0);
    assert_int_equal(errno, 4711);
    struct ru_trace trace = ru_finish();
    assert_int_equal(thing(&trace, path_of("not there"), SW_IO_OPEN).value[0], 2);
    assert_int_equal(thing(&trace, path_of("not there"), 0).value[1], 2); /* failed */
    ru_free(&trace);
}

static atomic_int signals;
static int signal_fd;

static void on_signal(int number)
{
    (void)number;
    const int error = errno;
    if (p->write(signal_fd, "!", 1) == 1) {
        signals++;
    }
    errno = error;
}

static atomic_int stop_threads;

static void *churn(void *arg)
{
    const char *path = arg;
    while (!atomic_load(&stop_threads)) {
        read_all(path, 100);
        free(malloc(1000));
    }
    return NULL;
}

/* Handlers write, threads come and go, libraries too, and the sampler of nothing gets in the way. */
static void test_signals_and_threads(void **state)
{
    (void)state;
    const char *a = path_of("a"), *log = path_of("log");
    make_file(a, 1000);
    signal_fd = open(log, O_WRONLY | O_CREAT, 0600);
    start_with(NULL);
    struct sigaction action = {.sa_handler = on_signal}, before;
    sigaction(SIGALRM, &action, &before); /* no SA_RESTART: calls end with EINTR */
    const struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    atomic_store(&stop_threads, 0);
    for (int round = 0; round < 10; round++) {
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            assert_int_equal(
                pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)a), 0);
        }
        usleep(20000);
        atomic_store(&stop_threads, 1);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        atomic_store(&stop_threads, 0);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    struct ru_trace trace = ru_finish();
    const sw_row *watched = sw_trace_get_row(trace.trace, SW_TABLE_WATCHED, 0);
    const sw_row wrote = thing(&trace, log, SW_IO_WRITE);
    /* Each was counted, or was told to be missing. */
    assert_true(signals > 0);
    assert_true(wrote.value[0] <= (uint64_t)signals);
    assert_true(wrote.value[0] + watched->value[2] >= (uint64_t)signals);
    const sw_row opened = thing(&trace, a, SW_IO_OPEN),
                 read = thing(&trace, a, SW_IO_READ);
    assert_true(opened.value[0] > 0);
    assert_true(read.value[0] <= opened.value[0] * 11 + watched->value[2]);
    check_agreement(&trace);
    ru_free(&trace);
    close(signal_fd);
}

static void *blocked(void *arg)
{
    char byte;
    (void)p->read(*(int *)arg, &byte, 1); /* for ever */
    return NULL;
}

static void test_cancelled_inside(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    start_with(NULL);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, blocked, &ends[0]), 0);
        usleep(1000);
        assert_int_equal(pthread_cancel(thread), 0);
        void *result;
        pthread_join(thread, &result);
        assert_true(result == PTHREAD_CANCELED);
    }
    assert_int_equal(p->write(ends[1], "x", 1), 1);
    struct ru_trace trace = ru_finish();
    assert_int_equal(thing(&trace, "(pipes)", SW_IO_WRITE).value[0], 1);
    assert_int_equal(thing(&trace, "(pipes)", SW_IO_READ).value[0], 0);
    ru_free(&trace);
    close(ends[0]);
    close(ends[1]);
}

/* Children: forked with threads running, by vfork and exec, spawned. */
static void test_children(void **state)
{
    (void)state;
    const char *a = path_of("a");
    make_file(a, 1000);
    start_with(NULL);
    pthread_t threads[2];
    atomic_store(&stop_threads, 0);
    /* A child of several threads must not start one where threads are checked for races. */
    const int churning = IS_TSAN ? 0 : 2;
    for (int i = 0; i < churning; i++) {
        pthread_create(&threads[i], NULL, churn, (void *)(uintptr_t)a);
    }
    const char *mine = path_of("mine");
    make_file(mine, 500);
    for (int i = 0; i < 10; i++) {
        const pid_t child = fork();
        if (child == 0) {
            /* Not recorded yet, then recorded. */
            read_all(mine, 100);
            if (i % 2) {
                sw_mark("child");
                read_all(mine, 100);
                sw_shutdown();
            }
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        read_all(mine, 100);
    }
    for (int i = 0; i < 10; i++) {
        const pid_t child = vfork();
        if (child == 0) {
            const int fd = p->open(a, O_RDONLY, 0);
            p->dup2(fd, 0);
            execl("/bin/true", "true", (char *)NULL);
            _exit(1);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        char *const arguments[] = {(char *)(uintptr_t) "true", NULL};
        pid_t spawned;
        assert_int_equal(
            posix_spawn(&spawned, "/bin/true", NULL, NULL, arguments, environ), 0);
        assert_int_equal(waitpid(spawned, &status, 0), spawned);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop_threads, 1);
    for (int i = 0; i < churning; i++) {
        pthread_join(threads[i], NULL);
    }
    char file[4096];
    sw_trace_path(file, sizeof file);
    sw_shutdown();
    /* This process's own trace has its own calls only. */
    sw_trace *trace;
    assert_int_equal(sw_trace_open(&trace, file, NULL), 0);
    struct ru_trace of = {.trace = trace};
    assert_int_equal(thing(&of, mine, SW_IO_OPEN).value[0], 10);
    sw_trace_free(trace);
}

static void test_limits(void **state)
{
    (void)state;
    const char *a = path_of("a");
    make_file(a, 1000);
    start_with(NULL);
    struct rlimit before, small;
    getrlimit(RLIMIT_NOFILE, &before);
    small = before;
    small.rlim_cur = 16;
    setrlimit(RLIMIT_NOFILE, &small);
    int fds[32];
    int opened = 0;
    for (int i = 0; i < 32; i++) {
        fds[i] = p->open(a, O_RDONLY, 0);
        opened += fds[i] >= 0;
        if (fds[i] < 0) {
            assert_int_equal(errno, EMFILE);
        }
    }
    for (int i = 0; i < 32; i++) {
        if (fds[i] >= 0) {
            p->close(fds[i]);
        }
    }
    setrlimit(RLIMIT_NOFILE, &before);
    struct ru_trace trace = ru_finish();
    const sw_row row = thing(&trace, a, SW_IO_OPEN);
    assert_int_equal(row.value[0], 32);
    assert_int_equal(thing(&trace, a, 0).value[1], 32 - opened);
    ru_free(&trace);
}

/* More files than there is room for count for their folder; nothing is lost of the sum. */
static void test_many_files(void **state)
{
    (void)state;
    char path[4300];
    const char *folder = path_of("many");
    assert_int_equal(mkdir(folder, 0700), 0);
    enum { FILES = 3000 };
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        make_file(path, 100);
    }
    start_with(NULL);
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%d", folder, i);
        read_all(path, 1000);
    }
    struct ru_trace trace = ru_finish();
    assert_int_equal(thing(&trace, NULL, SW_IO_OPEN).value[0], FILES);
    assert_int_equal(thing(&trace, NULL, SW_IO_READ).value[1], FILES * 100);
    snprintf(path, sizeof path, "%s/*", folder);
    const sw_row rest = thing(&trace, path, SW_IO_OPEN);
    assert_int_equal(rest.key[1], SW_IO_KIND_FOLDER);
    const sw_row *watched = sw_trace_get_row(trace.trace, SW_TABLE_WATCHED, 0);
    assert_true(rest.value[0] >= FILES - 2048);
    assert_int_equal(watched->value[3], rest.value[0]);
    check_agreement(&trace);
    ru_free(&trace);
}

/* More sections than a thread has room for: the rest counts as (more), and nothing is lost of the sum. */
static void test_many_sections(void **state)
{
    (void)state;
    const char *a = path_of("a");
    make_file(a, 10);
    start_with(NULL);
    const int fd = p->open(a, O_RDONLY, 0);
    char byte;
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "%c%c section", 'a' + i % 26, 'a' + i / 26);
        sw_section *around = sw_section_get(name);
        sw_begin(around);
        assert_int_equal(p->pread(fd, &byte, 1, 0), 1);
        sw_end(around);
    }
    p->close(fd);
    struct ru_trace trace = ru_finish();
    assert_int_equal(thing(&trace, a, SW_IO_READ).value[0], 300);
    const sw_row rest = section(&trace, "(more)", SW_PHASE_INHERIT, SW_IO_READ);
    assert_true(rest.value[0] > 0 && rest.value[0] < 300);
    assert_int_equal(section(&trace, "aa section", SW_PHASE_INHERIT, SW_IO_READ).value[0],
                     1);
    check_agreement(&trace);
    ru_free(&trace);
}

/* Nothing is replaced when nobody asked, and recordings may follow one another. */
static void test_off_and_again(void **state)
{
    (void)state;
    const char *a = path_of("a");
    make_file(a, 1000);
    ru_start((sw_config){0});
    read_all(a, 1000);
    struct ru_trace trace = ru_finish();
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_WATCHED), 0);
    assert_int_equal(sw_trace_row_count(trace.trace, SW_TABLE_THING), 0);
    ru_free(&trace);
    for (unsigned i = 1; i < 4; i++) {
        char out[128];
        snprintf(out, sizeof out, "out=%s/run%u", ru_folder, i);
        const int fd = p->open(a, O_RDONLY, 0); /* before it begins */
        start_with(out);
        char byte;
        for (unsigned k = 0; k < i; k++) {
            assert_int_equal(p->read(fd, &byte, 1), 1);
        }
        p->close(fd);
        trace = ru_finish();
        assert_int_equal(thing(&trace, a, SW_IO_READ).value[0], i);
        assert_int_equal(thing(&trace, a, SW_IO_OPEN).value[0], 0);
        ru_free(&trace);
        read_all(a, 1000); /* after it ended */
    }
}

static void killed_child(void *arg)
{
    const char *a = arg;
    start_with(NULL);
    read_all(a, 100);
    usleep(1500000); /* sums go to the trace four times a second */
    kill(getpid(), SIGKILL);
}

static void test_outlives_a_kill(void **state)
{
    (void)state;
    if (IS_TSAN) {
        skip(); /* It does not know that a child makes its locks anew. */
    }
    const char *a = path_of("a");
    make_file(a, 1000);
    const pid_t child = fork();
    if (child == 0) {
        killed_child((void *)(uintptr_t)a);
        _exit(1);
    }
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    sw_run *run;
    assert_int_equal(sw_run_open(&run, ru_path("run"), NULL), 0);
    assert_int_equal(sw_run_count(run), 1);
    struct ru_trace of = {.trace = sw_run_trace(run, 0)};
    assert_int_equal(thing(&of, a, SW_IO_READ).value[0], 11);
    sw_run_free(run);
}

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    p = library ? dlsym(library, "io_plugin") : NULL;
    if (!p) {
        fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        ru_test(test_exact_counts),
        ru_test(test_phases_of_steps),
        ru_test(test_streams_and_vectors),
        ru_test(test_sockets_and_pipes),
        ru_test(test_numbers_change_hands),
        ru_test(test_errors_are_the_programs),
        ru_test(test_signals_and_threads),
        ru_test(test_cancelled_inside),
        ru_test(test_children),
        ru_test(test_limits),
        ru_test(test_many_sections),
        ru_test(test_off_and_again),
        ru_test(test_outlives_a_kill),
        ru_test(test_many_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
