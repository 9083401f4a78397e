/* The program that suffers: its first argument says how. */
#include "victim.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct page private_page;
struct page *page = &private_page;

uint64_t work(uint64_t seed, unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
    }
    return seed;
}

void count_record(unsigned slot)
{
    atomic_fetch_add_explicit(&page->done[slot], 1, memory_order_release);
}

uint64_t one(sw_section *section, unsigned slot, uint64_t seed)
{
    sw_begin(section);
    seed = work(seed, 8);
    sw_end(section);
    count_record(slot);
    return seed;
}

uint64_t many(sw_section *section, unsigned slot, unsigned count)
{
    uint64_t value = slot;
    for (unsigned i = 0; i < count; i++) {
        value = one(section, slot, value);
    }
    return value;
}

void sleep_us(unsigned microseconds)
{
    struct timespec left = {.tv_sec = microseconds / 1000000,
                            .tv_nsec = (long)(microseconds % 1000000) * 1000};
    while (nanosleep(&left, &left) && errno == EINTR) {
    }
}

void tell_ready(void)
{
    atomic_store(&page->ready, 1);
}

void meet_driver(void)
{
    tell_ready();
    while (!atomic_load(&page->go)) {
        sleep_us(100);
    }
}

void print_result(uint64_t value)
{
    printf("result %016llx\n", (unsigned long long)value);
    fflush(stdout);
}

unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *all = opendir("/proc/self/task");
    for (struct dirent *at; all && (at = readdir(all));) {
        count += at->d_name[0] != '.';
    }
    if (all) {
        closedir(all);
    }
    return count;
}

/* spin THREADS: records until it is killed. Every thread has one section open from its first moment on. */
static void *spin(void *arg)
{
    unsigned slot = (unsigned)(uintptr_t)arg;
    sw_section *epoch = sw_section_get("epoch");
    sw_section *forward = sw_section_get("forward");
    sw_section *layer = sw_section_get("layer");
    uint64_t value = slot;
    sw_begin(epoch);
    atomic_fetch_add(&page->facts[0], 1);
    if (slot == 0) {
        tell_ready();
    }
    for (;;) {
        sw_step_begin();
        for (unsigned i = 0; i < 40; i++) {
            sw_begin(forward);
            value = one(layer, slot, value);
            sw_end(forward);
            count_record(slot);
        }
        sw_counter("loss", (double)value);
        count_record(slot);
        sw_step_end();
        atomic_fetch_add_explicit(&page->steps[slot], 1, memory_order_release);
    }
    return NULL;
}

int victim_spin(int argc, char **argv)
{
    unsigned threads = argc > 0 ? (unsigned)atoi(argv[0]) : 1;
    sw_init(NULL);
    for (unsigned i = 1; i < threads; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, spin, (void *)(uintptr_t)i)) {
            return 1;
        }
    }
    while (atomic_load(&page->facts[0]) + 1 < threads) {
        sleep_us(50);
    }
    spin(NULL);
    return 1;
}

/* rows: makes rows and raises the values of one of them, with events in between, until it is killed. Slot 0 counts rows,
 * slot 1 raises, slot 2 records. */
int victim_rows(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    sw_init(NULL);
    sw_section *section = sw_section_get("layer");
    sw_row raised = {.table = SW_TABLE_STACK, .key = {7, 8, 9}};
    uint64_t handle = sw_row_put(0, &raised);
    uint64_t value = many(section, 2, 10);
    tell_ready();
    for (uint32_t i = 0;; i++) {
        sw_row row = {.table = SW_TABLE_CODE, .key = {i, ~i}, .value = {i * 3u}};
        if (i < 5000) { /* there is room for these */
            if (sw_row_put(0, &row) == 0 || row.index != i) {
                return 1;
            }
            count_record(0);
        }
        raised.value[0]++;
        if (sw_row_put(handle, &raised) != handle) {
            return 1;
        }
        count_record(1);
        value += many(section, 2, 20);
    }
    return value != 0;
}

/* count N: N pairs of sections with a meeting in the middle. */
int victim_count(int argc, char **argv)
{
    unsigned count = argc > 0 ? (unsigned)atoi(argv[0]) : 1000;
    sw_init(NULL);
    sw_section *outer = sw_section_get("outer");
    sw_section *inner = sw_section_get("inner");
    uint64_t value = 1;
    for (unsigned i = 0; i < count; i++) {
        if (i == count / 2) {
            atomic_store(&page->before, atomic_load(&page->done[0]));
            meet_driver();
        }
        if (i % 100 == 0) {
            sw_step_begin();
        }
        sw_begin(outer);
        value = one(inner, 0, value);
        sw_end(outer);
        count_record(0);
        if (i % 100 == 99) {
            sw_step_end();
            atomic_fetch_add(&page->steps[0], 1);
        }
    }
    print_result(value);
    return CODE;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
    } commands[] = {
        {"spin", victim_spin},     {"count", victim_count},
        {"rows", victim_rows},     {"exit", victim_exit},
        {"fork", victim_fork},     {"threads", victim_threads},
        {"files", victim_files},   {"bus", victim_bus},
        {"signal", victim_signal}, {"restart", victim_restart},
        {"plugin", victim_plugin},
    };
    struct stat facts;
    if (fstat(PAGE_FD, &facts) == 0 && facts.st_size == sizeof(*page)) {
        void *memory =
            mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, PAGE_FD, 0);
        page = memory != MAP_FAILED ? memory : page;
    }
    for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 2, argv + 2);
        }
    }
    fprintf(stderr, "victim: what?\n");
    return 2;
}
