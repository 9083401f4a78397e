/* Signals that record, recordings that start and stop, plugins that come and go. */
#include "victim.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static sw_section *section, *handler_section;
static _Atomic uint64_t handled;

static void on_alarm(int number)
{
    (void)number;
    sw_begin(handler_section);
    sw_end(handler_section);
    atomic_fetch_add_explicit(&handled, 1, memory_order_relaxed);
}

static void set_timer(long microseconds)
{
    const struct itimerval timer = {.it_interval = {.tv_usec = microseconds},
                                    .it_value = {.tv_usec = microseconds}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

/* signal MODE: an interval timer whose handler records. "late": it starts when recording runs; "early": it
 * runs while recording starts, so that signals meet the recorder in every state. */
int victim_signal(int argc, char **argv)
{
    const char *mode = argc > 0 ? argv[0] : "";
    bool early = strcmp(mode, "early") == 0;
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    section = sw_section_get("work");
    handler_section = sw_section_get("handler");
    sigaction(SIGALRM, &action, NULL);
    uint64_t value = 0;
    for (unsigned round = 0; round < (early ? 40 : 1); round++) {
        if (early) {
            set_timer(20);
        }
        sw_init(NULL);
        if (!early) {
            (void)one(section, 0, 0);
            set_timer(20);
        }
        sw_section *outer = sw_section_get("outer");
        uint64_t enough = atomic_load(&handled) + (early ? 20 : 3000);
        for (unsigned i = 0; i < 100 || atomic_load(&handled) < enough; i++) {
            sw_begin(outer);
            value = one(section, 0, value);
            sw_end(outer);
            count_record(0);
        }
        if (early) {
            sw_shutdown();
        }
        set_timer(0);
    }
    /* A signal that is still under way finds its handler. */
    sleep_us(1000);
    atomic_store(&page->facts[0], atomic_load(&handled));
    print_result(1);
    return CODE;
}

static atomic_bool stop;

static void *record_till_stop(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    sw_section *outer = sw_section_get("outer");
    uint64_t value = 0;
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        sw_begin(outer);
        value = one(section, slot, value);
        sw_end(outer);
        count_record(slot);
    }
    return NULL;
}

/* The same with a new name every time, as long as there may be more. */
static void *name_till_stop(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    for (unsigned i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        char name[32];
        snprintf(name, sizeof(name), "name %c of %u", 'a' + (int)(i % 26), i);
        if (i < 4000) {
            sw_section *fresh = sw_section_get_n(name, strlen(name), SW_PHASE_INHERIT);
            (void)one(fresh, slot, i);
        }
        sleep_us(10);
    }
    return NULL;
}

/* restart N THREADS: starts and stops N times, while so many other threads record all the time. */
int victim_restart(int argc, char **argv)
{
    unsigned rounds = argc > 0 ? (unsigned)atoi(argv[0]) : 200;
    unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    bool open = argc > 2 && strcmp(argv[2], "open") == 0;
    bool names = argc > 2 && strcmp(argv[2], "names") == 0;
    pthread_t ids[8];
    section = sw_section_get("work");
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, names ? name_till_stop : record_till_stop,
                           (void *)(uintptr_t)(i + 1))) {
            return 1;
        }
    }
    uint64_t value = 0;
    for (unsigned i = 0; i < rounds; i++) {
        sw_init(NULL);
        atomic_fetch_add(&page->facts[0], sw_is_recording());
        value += many(section, 0, 10);
        if (open) {
            /* Stopped inside three sections and a step; the ends come when nothing records. */
            sw_step_begin();
            for (unsigned depth = 0; depth < 3; depth++) {
                sw_begin(section);
            }
            atomic_fetch_add(&page->extra, 3);
        }
        if (threads) {
            sleep_us(500);
        }
        sw_shutdown();
        atomic_fetch_add(&page->facts[1], sw_is_recording());
        for (unsigned depth = 0; open && depth < 3; depth++) {
            sw_end(section);
        }
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
    }
    print_result(value);
    return CODE;
}

/* plugin PATH: loads, uses and unloads a library that records, three times. */
int victim_plugin(int argc, char **argv)
{
    uint64_t value = 0;
    if (argc < 1) {
        return 2;
    }
    sw_init(NULL);
    for (unsigned i = 0; i < 3; i++) {
        void *library = dlopen(argv[0], RTLD_NOW | RTLD_LOCAL);
        if (!library) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
        uint64_t (*run)(unsigned count);
        *(void **)&run = dlsym(library, "plugin_run");
        value += run ? run(100) : 0;
        atomic_fetch_add(&page->done[0], 100);
        if (dlclose(library)) {
            return 1;
        }
        value += many(sw_section_get("host"), 0, 10);
    }
    print_result(value);
    return CODE;
}
