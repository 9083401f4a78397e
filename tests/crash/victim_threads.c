/* Threads that come, go, are cancelled, and record on their way out. */
#include "victim.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static sw_section *section;

static void *few(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    (void)many(section, slot, 5);
    return NULL;
}

static void *lots(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    (void)many(section, slot, 2000);
    return NULL;
}

static pthread_barrier_t barrier;

/* All threads make the first records of the process at the same moment, each under a new name too. */
static void *rush(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    char name[32];
    snprintf(name, sizeof(name), "thread %u", slot);
    pthread_barrier_wait(&barrier);
    (void)many(section, slot, 5);
    (void)many(sw_section_get(name), slot, 5);
    return NULL;
}

/* Ends inside three sections: they are cut, which makes three records more. */
static void *leave_inside(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    (void)many(section, slot, 10);
    for (unsigned i = 0; i < 3; i++) {
        sw_begin(section);
    }
    atomic_fetch_add(&page->extra, 3);
    pthread_exit(NULL);
}

/* Is cancelled inside sections that unwinding closes. */
static void *be_cancelled(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    (void)many(section, slot, 10);
    SW_SCOPE("scope");
    SW_SECTION("block") {
        atomic_fetch_add(&page->facts[0], 1);
        for (;;) {
            pause();
        }
    }
    return NULL;
}

static pthread_key_t early, late;

/* The destructors of C's threads may run before or after the recorder's own. */
static void record_at_end(void *value)
{
    (void)many(section, (unsigned)(uintptr_t)value, 3);
}

static void *with_keys(void *arg)
{
    pthread_setspecific(early, arg);
    pthread_setspecific(late, arg);
    return few(arg);
}

static void round_of(unsigned count, void *(*run)(void *arg), unsigned cancel_after)
{
    pthread_t threads[64];
    unsigned made = 0;
    for (; made < count; made++) {
        if (pthread_create(&threads[made], NULL, run, (void *)(uintptr_t)(made + 1))) {
            exit(1);
        }
    }
    while (cancel_after && atomic_load(&page->facts[0]) < cancel_after) {
        sleep_us(100);
    }
    for (unsigned i = 0; i < made; i++) {
        if (cancel_after) {
            pthread_cancel(threads[i]);
        }
        pthread_join(threads[i], NULL);
    }
}

int victim_threads(int argc, char **argv)
{
    const char *mode = argc > 0 ? argv[0] : "";
    pthread_key_create(&early, record_at_end);
    sw_init(NULL);
    section = sw_section_get("work");
    if (strcmp(mode, "rush") == 0) {
        pthread_barrier_init(&barrier, NULL, 16);
        round_of(16, rush, 0);
        print_result(1);
        return CODE;
    }
    (void)one(section, 0, 0);
    pthread_key_create(&late, record_at_end);
    if (strcmp(mode, "thousand") == 0) {
        for (unsigned i = 0; i < 125; i++) {
            round_of(8, few, 0);
        }
    } else if (strcmp(mode, "crowd") == 0) {
        round_of(64, lots, 0);
    } else if (strcmp(mode, "inside") == 0) {
        round_of(32, leave_inside, 0);
    } else if (strcmp(mode, "cancel") == 0) {
        round_of(32, be_cancelled, 32);
        atomic_fetch_add(&page->extra, 64);
    } else if (strcmp(mode, "keys") == 0) {
        for (unsigned i = 0; i < 8; i++) {
            round_of(8, with_keys, 0);
        }
    }
    print_result(1);
    return CODE;
}
