/* Ways out of a process. */
#include "victim.h"
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *record_for_ever(void *arg)
{
    sw_section *section = sw_section_get("busy");
    unsigned slot = (unsigned)(uintptr_t)arg;
    uint64_t value = slot;
    for (;;) {
        value = one(section, slot, value);
    }
    return (void *)(uintptr_t)value;
}

static void start(void *(*run)(void *arg), unsigned slot)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, (void *)(uintptr_t)slot)) {
        exit(1);
    }
    pthread_detach(thread);
}

/* Lets the others record for a moment, then keeps what they had done by now. */
static void note_before(void)
{
    uint64_t sum = 0;
    while (atomic_load(&page->done[1]) < 20000 || atomic_load(&page->done[2]) < 20000) {
        sleep_us(200);
    }
    for (unsigned i = 0; i < PAGE_THREADS; i++) {
        sum += atomic_load(&page->done[i]);
    }
    atomic_store(&page->before, sum);
}

static void *exit_from_here(void *arg)
{
    sw_section *section = sw_section_get("second");
    uint64_t value = many(section, 1, 100);
    while (atomic_load(&page->done[0]) < 20000) {
        sleep_us(200);
    }
    atomic_store(&page->before, atomic_load(&page->done[0]) + 100);
    print_result(value);
    exit(CODE);
    return arg;
}

static void *outlive_main(void *arg)
{
    meet_driver();
    sleep_us(20000); /* Main is gone by now, or the test is a weaker one. */
    print_result(many(sw_section_get("survivor"), 1, 1000));
    return arg;
}

/* Replaces the process by `count`. */
static void become_another(void)
{
    char *const arguments[] = {"victim", "count", "100", NULL};
    execv("/proc/self/exe", arguments);
}

int victim_exit(int argc, char **argv)
{
    const char *mode = argc > 0 ? argv[0] : "";
    sw_init(NULL);
    sw_section *a = sw_section_get("a");
    sw_section *b = sw_section_get("b");
    sw_section *c = sw_section_get("c");
    uint64_t value = many(a, 0, 1000);
    sw_begin(a);
    sw_begin(b);
    sw_begin(c);
    if (strcmp(mode, "return") == 0) {
        start(record_for_ever, 1);
        start(record_for_ever, 2);
        note_before();
        print_result(value);
        return CODE;
    }
    if (strcmp(mode, "second") == 0) {
        start(exit_from_here, 0);
        record_for_ever(NULL);
    }
    if (strcmp(mode, "main-leaves") == 0) {
        start(outlive_main, 0);
        pthread_exit(NULL);
    }
    print_result(value);
    if (strcmp(mode, "_exit") == 0) {
        _exit(CODE);
    } else if (strcmp(mode, "quick") == 0) {
        quick_exit(CODE);
    } else if (strcmp(mode, "abort") == 0) {
        abort();
    } else if (strcmp(mode, "segv") == 0) {
        /* A page that may not be touched, rather than NULL, which sanitizers look for. */
        volatile char *nowhere =
            mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        *nowhere = 1;
    } else if (strcmp(mode, "term") == 0) {
        raise(SIGTERM);
    } else if (strcmp(mode, "exec") == 0) {
        become_another();
    }
    exit(CODE);
}
