/* Ways to become more. */
#include "victim.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static sw_section *section;
static atomic_bool stop;

/* Waits for a child; anything but CODE makes the result another one. */
static uint64_t reap(pid_t child)
{
    int status = 0;
    if (child <= 0 || waitpid(child, &status, 0) != child) {
        return 1000;
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == CODE ? 0 : 1;
}

static void child_records(unsigned slot, unsigned count)
{
    (void)many(section, slot, count);
    exit(CODE);
}

static uint64_t storm(unsigned forks, unsigned slot)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < forks; i++) {
        (void)one(section, 0, i);
        pid_t child = fork();
        if (child == 0) {
            child_records(slot, 20);
        }
        bad += reap(child);
    }
    return bad;
}

static void *record_till_stop(void *arg)
{
    sw_section *busy = sw_section_get("busy");
    uint64_t value = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        value = one(busy, (unsigned)(uintptr_t)arg, value);
    }
    return NULL;
}

static uint64_t with_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, record_till_stop, (void *)(uintptr_t)2)) {
        return 1;
    }
    uint64_t bad = storm(50, 1);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    return bad;
}

static void *storm_thread(void *arg)
{
    return (void *)(uintptr_t)storm(25, (unsigned)(uintptr_t)arg);
}

static uint64_t two_storms(void)
{
    pthread_t threads[2];
    uint64_t bad = 0;
    for (unsigned i = 0; i < 2; i++) {
        if (pthread_create(&threads[i], NULL, storm_thread, (void *)(uintptr_t)(i + 1))) {
            return 1;
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        void *result;
        pthread_join(threads[i], &result);
        bad += (uintptr_t)result;
    }
    return bad;
}

static uint64_t silent(void)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < 5; i++) {
        (void)one(section, 0, i);
        pid_t child = fork();
        if (child == 0) {
            exit(CODE);
        }
        bad += reap(child);
    }
    return bad;
}

static uint64_t descend(unsigned depth)
{
    (void)many(section, depth, 10 + depth);
    if (depth == 4) {
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        exit(descend(depth + 1) ? 1 : CODE);
    }
    return reap(child);
}

/* The child ends what its parent began. */
static uint64_t inside(void)
{
    sw_section *around = sw_section_get("around");
    sw_begin(around);
    sw_step_begin();
    pid_t child = fork();
    if (child == 0) {
        sw_end(around);
        sw_step_end();
        child_records(1, 10);
    }
    uint64_t bad = reap(child);
    (void)many(section, 0, 10);
    sw_step_end();
    atomic_fetch_add(&page->steps[0], 1);
    sw_end(around);
    count_record(0);
    return bad;
}

static uint64_t leave_at_once(void)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < 10; i++) {
        (void)one(section, 0, i);
        pid_t child = fork();
        if (child == 0) {
            (void)many(section, 1, 30);
            _exit(CODE);
        }
        bad += reap(child);
    }
    return bad;
}

static char *const count_arguments[] = {"victim", "count", "100", NULL};

static uint64_t vfork_exec(void)
{
    (void)many(section, 0, 10);
    pid_t child = vfork();
    if (child == 0) {
        execv("/proc/self/exe", count_arguments);
        _exit(1);
    }
    uint64_t bad = reap(child);
    (void)many(section, 0, 10);
    return bad;
}

static uint64_t spawn(void)
{
    pid_t child = 0;
    (void)many(section, 0, 10);
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, count_arguments, environ)) {
        return 1;
    }
    uint64_t bad = reap(child);
    (void)many(section, 0, 10);
    return bad;
}

/* A child that the C library does not know of. */
static uint64_t raw_clone(void)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < 5; i++) {
        sw_begin(section);
        long child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (child == 0) {
            (void)many(section, 1, 10);
            sw_shutdown();
            syscall(SYS_exit_group, CODE);
        }
        bad += reap((pid_t)child);
        sw_end(section);
        count_record(0);
    }
    return bad;
}

static void see_prepare(void)
{
    atomic_store(&page->facts[1], count_threads());
}
static void see_parent(void)
{
    atomic_store(&page->facts[2], count_threads());
}

/* How many threads there are at the moment of a fork; the handlers were registered before ours. */
static uint64_t alone(void)
{
    uint64_t bad = 0;
    for (unsigned i = 0; i < 20; i++) {
        /* Steps bring the helper back. */
        sw_step_begin();
        (void)one(section, 0, i);
        sw_step_end();
        atomic_store(&page->facts[3], count_threads());
        pid_t child = fork();
        if (child == 0) {
            _exit(CODE);
        }
        bad += reap(child);
        bad += atomic_load(&page->facts[1]) != atomic_load(&page->facts[0]);
        bad += atomic_load(&page->facts[2]) != atomic_load(&page->facts[0]);
    }
    return bad;
}

int victim_fork(int argc, char **argv)
{
    const char *mode = argc > 0 ? argv[0] : "";
    uint64_t bad = 1;
    /* What the process has without us: sanitizers bring threads of their own. */
    atomic_store(&page->facts[0], count_threads());
    if (strcmp(mode, "alone") == 0) {
        pthread_atfork(see_prepare, see_parent, NULL);
    }
    sw_init(NULL);
    section = sw_section_get("work");
    if (strcmp(mode, "storm") == 0) {
        bad = storm(50, 1);
    } else if (strcmp(mode, "thread") == 0) {
        bad = with_thread();
    } else if (strcmp(mode, "two-storms") == 0) {
        bad = two_storms();
    } else if (strcmp(mode, "silent") == 0) {
        bad = silent();
    } else if (strcmp(mode, "descend") == 0) {
        bad = descend(0);
    } else if (strcmp(mode, "inside") == 0) {
        bad = inside();
    } else if (strcmp(mode, "_exit") == 0) {
        bad = leave_at_once();
    } else if (strcmp(mode, "vfork") == 0) {
        bad = vfork_exec();
    } else if (strcmp(mode, "spawn") == 0) {
        bad = spawn();
    } else if (strcmp(mode, "clone") == 0) {
        bad = raw_clone();
    } else if (strcmp(mode, "alone") == 0) {
        bad = alone();
    }
    print_result(bad);
    return CODE;
}
