/* Descriptors and files that are taken away in the middle, and SIGBUS. */
#include "victim.h"
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static sw_section *section;

/* Numbers of the descriptors that the program has taken over. */
static int owned[64];
static unsigned owned_count;

/* Closes everything, as daemons do, and gives all numbers that were in use to files of its own, whose every
 * byte is known. */
static int take_numbers(const char *folder)
{
    int bad = 0;
    DIR *all = opendir("/proc/self/fd");
    for (struct dirent *at; all && (at = readdir(all));) {
        int fd = atoi(at->d_name);
        if (fd >= 3 && fd != dirfd(all) && owned_count < 64) {
            owned[owned_count++] = fd;
        }
    }
    closedir(all);
    for (unsigned i = 0; i < owned_count; i++) {
        close(owned[i]);
    }
    for (unsigned i = 0; i < owned_count; i++) {
        char path[300];
        snprintf(path, sizeof(path), "%s/own-%u", folder, i);
        int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        bad += fd < 0 || pwrite(fd, "mine\n", 5, 0) != 5;
        if (fd != owned[i]) {
            bad += dup2(fd, owned[i]) != owned[i];
        }
    }
    return bad;
}

static int look_at_numbers(void)
{
    int bad = 0;
    for (unsigned i = 0; i < owned_count; i++) {
        char text[16] = "";
        struct stat facts;
        if (fstat(owned[i], &facts) || facts.st_size != 5 ||
            pread(owned[i], text, 15, 0) != 5 || strcmp(text, "mine\n") != 0) {
            atomic_store(&page->facts[2], (uint64_t)owned[i]);
            bad++;
        }
    }
    return bad;
}

/* Whether the program's files are still open and unchanged when the recorder has ended. */
static void look_at_end(void)
{
    atomic_store(&page->facts[0], (uint64_t)look_at_numbers() + 1);
    atomic_store(&page->facts[1], owned_count);
}

static int close_all(const char *folder)
{
    uint64_t value = many(section, 0, 20000);
    int bad = 0;
    for (unsigned i = 0; i < 20; i++) {
        if (i == 1) {
            bad += take_numbers(folder);
        }
        /* Usage is read at steps, through a descriptor of ours. */
        sw_step_begin();
        value += many(section, 0, 20000);
        sleep_us(3000);
        sw_step_end();
    }
    bad += look_at_numbers();
    print_result(value + (uint64_t)bad);
    return CODE;
}

/* Lowers RLIMIT_FSIZE, records, and writes as much itself as it may. */
static int lower_limit(uint64_t limit)
{
    const struct rlimit both = {.rlim_cur = limit, .rlim_max = limit};
    uint64_t value = many(section, 0, 20000);
    if (setrlimit(RLIMIT_FSIZE, &both)) {
        return 1;
    }
    for (unsigned i = 0; i < 10; i++) {
        value += many(section, 0, 20000);
        sleep_us(2000);
    }
    print_result(value);
    return CODE;
}

/* Uses up all descriptors. */
static void use_up(void)
{
    const struct rlimit few = {.rlim_cur = 100, .rlim_max = 100};
    setrlimit(RLIMIT_NOFILE, &few);
    while (open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0) {
    }
}

/* Leaves so many MiB of address space. */
static void shrink(unsigned long mib)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1) {
        exit(1);
    }
    fclose(file);
    const rlim_t limit = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (mib << 20);
    const struct rlimit both = {.rlim_cur = limit, .rlim_max = limit};
    setrlimit(RLIMIT_AS, &both);
}

/* No further thread can be made from now on. */
static void stay_alone(void)
{
    const struct rlimit one_only = {.rlim_cur = 1, .rlim_max = 1};
    setrlimit(RLIMIT_NPROC, &one_only);
}

/* Something is missing already when recording starts. */
static int without(void)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 20; i++) {
        sw_step_begin();
        value += many(section, 0, 5000);
        sw_step_end();
        atomic_fetch_add(&page->steps[0], 1);
    }
    atomic_store(&page->facts[0], sw_is_recording());
    atomic_store(&page->facts[1], count_threads());
    print_result(value);
    return CODE;
}

int victim_files(int argc, char **argv)
{
    const char *mode = argc > 0 ? argv[0] : "";
    if (strcmp(mode, "close") == 0) {
        atexit(look_at_end); /* Runs after the recorder's own. */
    } else if (strcmp(mode, "no-descriptors") == 0) {
        use_up();
    } else if (strcmp(mode, "address-space") == 0) {
        shrink(strtoul(argv[1], NULL, 10));
    } else if (strcmp(mode, "no-threads") == 0) {
        stay_alone();
    }
    sw_init(NULL);
    if (strcmp(mode, "no-descriptors-later") == 0) {
        use_up();
    }
    section = sw_section_get("work");
    if (strcmp(mode, "close") == 0) {
        return close_all(argv[1]);
    }
    if (strcmp(mode, "lower") == 0) {
        return lower_limit(strtoull(argv[1], NULL, 10));
    }
    return without();
}

static sigjmp_buf back;
static _Atomic unsigned caught;

static void catch_bus(int number)
{
    (void)number;
    atomic_fetch_add(&caught, 1);
    siglongjmp(back, 1);
}

/* A fault of the program's own making: beyond the end of a file that it has mapped itself. */
static void fault(const char *folder)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/own-map", folder);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || ftruncate(fd, 4096)) {
        exit(1);
    }
    volatile char *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED || ftruncate(fd, 0)) {
        exit(1);
    }
    memory[0] = 1;
}

/* bus MODE FOLDER: "own" has a handler of its own, "default" none. Between two halves of recording the
 * driver may truncate the hot file. */
int victim_bus(int argc, char **argv)
{
    bool own = argc > 0 && strcmp(argv[0], "own") == 0;
    bool fall = argc > 0 && strcmp(argv[0], "default") == 0;
    if (own) {
        struct sigaction action = {.sa_handler = catch_bus};
        sigaction(SIGBUS, &action, NULL);
    }
    sw_init(NULL);
    section = sw_section_get("work");
    sw_section *around = sw_section_get("around");
    sw_begin(around);
    uint64_t value = many(section, 0, 5000);
    sw_step_begin();
    meet_driver();
    for (unsigned i = 0; i < 10; i++) {
        value += many(section, 0, 5000);
        sw_section *fresh = sw_section_get(i % 2 ? "forward" : "backward");
        value += many(fresh, 0, 50);
        sleep_us(1000);
    }
    sw_step_end();
    sw_end(around);
    count_record(0);
    if (own && sigsetjmp(back, 1) == 0) {
        fault(argv[1]);
    }
    value += many(section, 0, 1000);
    print_result(value + atomic_load(&caught));
    if (fall) {
        fault(argv[1]);
    }
    return CODE;
}
