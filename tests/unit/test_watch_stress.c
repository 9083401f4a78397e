/* Allocations and calls on files are counted while threads come and go, libraries too, handlers of signals allocate and read,
 * processes fork, and counting itself is switched on and off: nobody waits for ever, nothing is lost.
 *
 * The program runs once with the malloc of the C library and once with each other one that there is (STRESS_PRELOAD). With one
 * that may be called in a signal handler, handlers call it (STRESS_HANDLERS). */
#include "recorder_util.h"
#include "stress_plugin.h"
#include "watch/plt.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stepwatch/heap.h>
#include <stepwatch/watch.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child of a process with threads may not start one, or allocate, where a sanitizer holds locks. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { WORKERS = 4, ROUNDS = SANITIZED ? 60 : 400, FORKS = 8, SHORT = 60 };

static const struct stress_plugin *p;
static char plugin_path[4096];
static char file_path[4200];
static bool handlers_allocate;
static _Atomic bool stop;
static _Atomic unsigned finished;
static pthread_key_t key;

/* What all threads did, and what handlers did on top. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct stress_tally sum;
static _Atomic uint64_t handled;

static void add_up(const struct stress_tally *tally)
{
    pthread_mutex_lock(&lock);
    sum.blocks += tally->blocks;
    sum.freed += tally->freed;
    sum.maps += tally->maps;
    sum.opens += tally->opens;
    sum.reads += tally->reads;
    sum.bytes += tally->bytes;
    pthread_mutex_unlock(&lock);
}

static void on_signal(int number)
{
    const int error = errno;
    struct stress_tally mine = {0};
    (void)number;
    p->map(&mine);
    if (handlers_allocate) {
        p->block(&mine);
        p->churn(file_path, 7, 1, &mine);
    }
    atomic_fetch_add(&handled, 1);
    errno = error;
}

static void hold_signals(int how)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(how, &set, NULL);
}

/* Runs when a thread has ended as far as it knows. */
static void at_thread_end(void *arg)
{
    struct stress_tally mine = {0};
    p->block(&mine);
    p->churn(file_path, (uintptr_t)arg, 1, &mine);
    add_up(&mine);
    free(arg);
}

static void leave_something(void)
{
    pthread_setspecific(key, malloc(40));
}

static void *work(void *arg)
{
    const uint64_t seed = (uintptr_t)arg;
    struct stress_tally mine = {0};
    leave_something();
    for (unsigned i = 0; i < ROUNDS; i++) {
        SW_SECTION("work")
            ;
        p->churn(file_path, seed + i, 1, &mine);
    }
    hold_signals(SIG_BLOCK);
    add_up(&mine);
    hold_signals(SIG_UNBLOCK);
    atomic_fetch_add(&finished, 1);
    return NULL;
}

static void *short_life(void *arg)
{
    struct stress_tally mine = {0};
    leave_something();
    p->churn(file_path, (uintptr_t)arg, 1, &mine);
    hold_signals(SIG_BLOCK);
    add_up(&mine);
    return NULL;
}

/* Libraries come, are used, and go. */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;

static void *load(void *arg)
{
    (void)arg;
    hold_signals(SIG_BLOCK);
    static const char *const names[] = {"lazy", "now", "noplt", "gnu"};
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        char path[4200];
        const char *slash = strrchr(plugin_path, '/');
        snprintf(path, sizeof path, "%.*s/libplt_%s.so", (int)(slash - plugin_path),
                 plugin_path, names[i % 4]);
        pthread_mutex_lock(&loading);
        void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
        ru_must(library != NULL);
        pid_t (*ppid)(void);
        *(void **)&ppid = dlsym(library, "plugin_ppid");
        ru_must(ppid() == getppid());
        sw__plt_refresh();
        dlclose(library);
        pthread_mutex_unlock(&loading);
        usleep(500);
    }
    return NULL;
}

/* Whoever looks: totals, windows, snapshots, rows of I/O, and a second one who wants it counted. */
static void *look(void *arg)
{
    (void)arg;
    hold_signals(SIG_BLOCK);
    while (!atomic_load(&stop)) {
        sw_heap_stats stats;
        sw_heap_snapshot snapshot;
        sw_heap_window window;
        const int number = sw_heap_window_open();
        ru_must(sw_heap_start(4096, NULL) == 0);
        sw_heap_read(&stats);
        ru_must(sw_heap_snapshot_take(&snapshot) == 0);
        sw_heap_snapshot_free(&snapshot);
        sw_io_flush();
        sw_heap_stop();
        sw_heap_window_read(number, &window);
        sw_heap_window_close(number);
        usleep(1000);
    }
    return NULL;
}

static pthread_t workers[WORKERS];
static _Atomic unsigned alive;

static void *pester(void *arg)
{
    (void)arg;
    hold_signals(SIG_BLOCK);
    for (unsigned i = 0; !atomic_load(&stop); i++) {
        if (i % (WORKERS + 1) == WORKERS) {
            kill(getpid(), SIGUSR1); /* whoever has it open; the first thread as a rule */
        } else if (i % (WORKERS + 1) < atomic_load(&alive)) {
            pthread_kill(workers[i % (WORKERS + 1)], SIGUSR1);
        }
        usleep(100);
    }
    return NULL;
}

static void allocate_at_exit(void)
{
    struct stress_tally mine = {0};
    p->churn(file_path, 3, 2, &mine);
}

static void fork_once(unsigned number)
{
    /* A child of a process that was loading a library cannot call exit: the C library holds a lock. */
    const bool exits = number % 3 == 2 && !SANITIZED;
    if (exits) {
        pthread_mutex_lock(&loading);
    }
    const pid_t child = fork();
    if (child == 0) {
        struct stress_tally mine = {0};
        alarm(15); /* waits for ever: killed */
        if (!SANITIZED) {
            p->churn(file_path, number, 3, &mine);
        }
        if (number % 3 == 1 && !SANITIZED && sw_is_recording()) {
            sw_mark("child");
            p->churn(file_path, number, 3, &mine);
            sw_shutdown();
        }
        if (exits) {
            atexit(allocate_at_exit);
            exit(0);
        }
        _exit(0);
    }
    if (exits) {
        pthread_mutex_unlock(&loading);
    }
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    assert_int_equal(status, 0);
}

/* Calls of an operation on the file, in the rows of the trace. */
static uint64_t calls(const sw_trace *trace, const char *path, unsigned operation,
                      uint64_t *bytes)
{
    uint64_t found = 0;
    struct ru_trace of = {.trace = (sw_trace *)(uintptr_t)trace};
    for (size_t i = 0; i < sw_trace_row_count(trace, SW_TABLE_THING); i++) {
        const sw_row *row = sw_trace_get_row(trace, SW_TABLE_THING, i);
        if (row->key[2] == operation && strcmp(ru_name(&of, row->key[0]), path) == 0) {
            found += row->value[0];
            *bytes += row->value[1];
        }
    }
    return found;
}

static void start_all(pthread_t *others)
{
    void *(*const bodies[])(void *) = {load, look, pester};
    for (unsigned i = 0; i < WORKERS; i++) {
        assert_int_equal(
            pthread_create(&workers[i], NULL, work, (void *)(uintptr_t)(i * 1000 + 1)),
            0);
        atomic_store(&alive, i + 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&others[i], NULL, bodies[i], NULL), 0);
    }
}

/* Threads, libraries, signals and forks, until the workers are done. */
static void run_all(void)
{
    pthread_t others[3];
    atomic_store(&stop, false);
    atomic_store(&finished, 0);
    atomic_store(&alive, 0);
    atomic_store(&handled, 0);
    sum = (struct stress_tally){0};
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigaction(SIGUSR1, &action, &old); /* no SA_RESTART */
    assert_int_equal(pthread_key_create(&key, at_thread_end), 0);
    start_all(others);
    for (unsigned i = 0; i < SHORT; i++) {
        pthread_t thread;
        assert_int_equal(
            pthread_create(&thread, NULL, short_life, (void *)(uintptr_t)(i + 1)), 0);
        if (i % (SHORT / FORKS) == 0) {
            fork_once(i / (SHORT / FORKS));
        }
        pthread_join(thread, NULL);
    }
    while (atomic_load(&finished) < WORKERS) {
        usleep(1000);
    }
    /* Nobody sends signals any more once they are joined. */
    atomic_store(&stop, true);
    for (unsigned i = 0; i < 3; i++) {
        pthread_join(others[i], NULL);
    }
    for (unsigned i = 0; i < WORKERS; i++) {
        pthread_join(workers[i], NULL);
    }
    sigaction(SIGUSR1, &old, NULL);
    pthread_key_delete(key);
    assert_true(atomic_load(&handled) > 0);
}

static void make_data(void)
{
    static const char data[4096];
    char folder[4096];
    assert_non_null(realpath(ru_folder, folder));
    snprintf(file_path, sizeof file_path, "%s/data", folder);
    FILE *file = fopen(file_path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, sizeof data, file), sizeof data);
    fclose(file);
}

/* Counts allocations meanwhile, and looks whether none is missing. */
static void count_all(void)
{
    sw_error_info info = {0};
    sw_heap_stats before, after;
    /* Samples come with whoever looks (below), while threads run. */
    assert_int_equal(sw_heap_start(0, &info), 0);
    sw_heap_read(&before);
    run_all();
    sw_heap_read(&after);
    sw_heap_stop();
    const sw_heap_totals *from = &before.part[SW_HEAP_NATIVE];
    const sw_heap_totals *to = &after.part[SW_HEAP_NATIVE];
    /* A handler that allocates between the two halves of an addition undoes what it interrupts, or is undone. What the C
     * library allocates itself, for threads and libraries, comes on top. */
    const uint64_t lost = handlers_allocate ? 80 * atomic_load(&handled) : 0;
    assert_true(to->blocks - from->blocks + lost >= sum.blocks);
    assert_true(to->blocks_freed - from->blocks_freed + lost >= sum.freed);
    assert_true(to->blocks - from->blocks <= sum.blocks + lost + sum.blocks / 2);
}

static void test_without_recording(void **state)
{
    (void)state;
    make_data();
    count_all();
}

static void test_recording(void **state)
{
    (void)state;
    make_data();
    const char *const set[] = {"io=on", NULL};
    ru_start((sw_config){.set = set});
    count_all();
    struct ru_trace trace = ru_finish();
    const sw_row *watched = sw_trace_get_row(trace.trace, SW_TABLE_WATCHED, 0);
    uint64_t bytes = 0, none = 0;
    const uint64_t opens = calls(trace.trace, file_path, SW_IO_OPEN, &none);
    const uint64_t reads = calls(trace.trace, file_path, SW_IO_READ, &bytes);
    /* Each was counted, or was told to be missing. */
    assert_true(opens + watched->value[2] >= sum.opens);
    assert_true(reads + watched->value[2] >= sum.reads);
    if (!handlers_allocate) {
        assert_int_equal(opens, sum.opens);
        assert_int_equal(bytes, sum.bytes);
    }
    ru_free(&trace);
}

/* Starts this program again with the malloc that is asked for; 77: there is none. */
static int preload(const char *name, char **argv)
{
    if (getenv("TEST_EMULATED")) {
        return 77; /* the kernel cannot start such a program */
    }
    unsetenv("STRESS_PRELOAD");
    setenv("LD_PRELOAD", name, 1);
    FILE *said = popen("/bin/true 2>&1", "r");
    char text[256] = "";
    const bool refused = said && fgets(text, sizeof text, said);
    if (said) {
        pclose(said);
    }
    if (refused) {
        fprintf(stderr, "skipped: %s is not here\n", name);
        return 77;
    }
    execv("/proc/self/exe", argv);
    return 1;
}

int main(int argc, char **argv)
{
    const char *name = getenv("STRESS_PRELOAD");
    if (name) {
        return preload(name, argv);
    }
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "there is no plugin\n");
        return 1;
    }
    snprintf(plugin_path, sizeof plugin_path, "%s", argv[1]);
    p = dlsym(library, "stress_plugin");
    handlers_allocate = getenv("STRESS_HANDLERS") != NULL;
    const struct CMUnitTest tests[] = {
        /* First, for a recording leaves handlers of forks behind. */
        ru_test(test_without_recording),
        ru_test(test_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
