/* Child processes, and among them those that make batches: CPU time, memory, number. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stepwatch/error.h>
#include <stepwatch/watch.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/os.h"
#include "watch/monitor.h"
#include "watch/proc_file.h"
#include "watch/proc_parse.h"
#include "watch/sources.h"

#define CHILDREN_MOST 256u
/* Where the kernel has no list of children, looking for those that nobody spoke of means to look at every process of the
 * machine, which takes milliseconds: seldom, and not at once. */
#define SEARCH_NS 30000000000u
#define SEARCH_FIRST_NS 3000000000u

struct child {
    uint32_t pid;
    bool worker;
    struct sw__proc_file stat;
    double cpu, rss;
};

struct children {
    const char *root;
    double tick, page;
    struct sw__proc_file list; /* of the first thread's children */
    uint64_t search_at;
    struct child child[CHILDREN_MOST];
    unsigned count;
    double workers_gone; /* CPU time of workers that have ended */
    double waited;       /* CPU time of all that were waited for, at the last look */
    uint32_t hint[6];
};

/* Pids that were said to be of workers and are not known to the source yet. The monitor's thread takes them. */
static struct {
    pthread_mutex_t lock;
    uint32_t pid[CHILDREN_MOST];
    unsigned count;
} told = {.lock = PTHREAD_MUTEX_INITIALIZER};

void sw_monitor_worker(long pid)
{
    if (pid <= 0 || pid > INT_MAX || pthread_mutex_trylock(&told.lock)) {
        return; /* Held for a moment only; a worker that is missed is found as a child. */
    }
    if (told.count < CHILDREN_MOST) {
        told.pid[told.count++] = (uint32_t)pid;
    }
    pthread_mutex_unlock(&told.lock);
}

void sw__workers_forget(void)
{
    pthread_mutex_init(&told.lock, NULL);
    told.count = 0;
}

static double waited_for(void)
{
    struct rusage used;
    if (getrusage(RUSAGE_CHILDREN, &used)) {
        return NAN;
    }
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

static void children_close(void *state)
{
    struct children *children = state;
    for (unsigned i = 0; i < children->count; i++) {
        sw__proc_close(&children->child[i].stat);
    }
    sw__proc_close(&children->list);
    sw__free(children);
}

static int children_open(const struct sw__source_setting *setting, void **state,
                         char *why, size_t size)
{
    struct children *children = sw__alloc_zero(1, sizeof *children);
    if (!children) {
        return SW_ENOMEM;
    }
    /* Whether processes can be seen at all: the own one is there or none is. */
    struct sw__proc_file own;
    const int result = sw__proc_open(&own, setting->root, "/proc/self/stat", why, size);
    if (result != SW_OK) {
        sw__free(children);
        return result;
    }
    sw__proc_close(&own);
    children->root = setting->root;
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    (void)sw__proc_open(&children->list, setting->root, path, NULL, 0);
    children->search_at = sw__os_now_ns() + SEARCH_FIRST_NS;
    children->tick = 1.0 / (double)sysconf(_SC_CLK_TCK);
    children->page = (double)sysconf(_SC_PAGESIZE);
    children->waited = waited_for();
    *state = children;
    return SW_OK;
}

/* Parent, CPU time with that of its own children, and pages, of "pid (name) state ppid …". */
static bool read_stat(const char *text, uint64_t *parent, uint64_t *ticks,
                      uint64_t *pages, bool *names_worker)
{
    const char *name = strchr(text, '(');
    const char *at = strrchr(text, ')');
    uint64_t field[24];
    if (!name || !at || at < name || at[1] != ' ' || !at[2] || at[3] != ' ') {
        return false;
    }
    /* What torch calls its workers. */
    *names_worker = (size_t)(at - name) == sizeof "(pt_data_worker" - 1 &&
                    strncmp(name, "(pt_data_worker", (size_t)(at - name)) == 0;
    const char *rest = at + 3;
    for (unsigned i = 4; i <= 24; i++) {
        /* Some are negative (group of the terminal, nice); their sign is of no interest. */
        rest += strspn(rest, " -");
        if (!sw__proc_number(&rest, &field[i - 1])) {
            return false;
        }
    }
    *parent = field[3];
    *ticks = field[13] + field[14] + field[15] + field[16];
    *pages = field[23];
    return true;
}

static struct child *add(struct children *children, uint32_t pid, bool worker)
{
    char path[64];
    for (unsigned i = 0; i < children->count; i++) {
        if (children->child[i].pid == pid) {
            children->child[i].worker |= worker;
            return &children->child[i];
        }
    }
    if (children->count == CHILDREN_MOST) {
        return NULL;
    }
    struct child *child = &children->child[children->count];
    *child = (struct child){.pid = pid, .worker = worker, .rss = NAN};
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    if (sw__proc_open(&child->stat, children->root, path, NULL, 0) != SW_OK) {
        return NULL;
    }
    children->count++;
    return child;
}

static void search(struct children *children)
{
    char path[PATH_MAX];
    const uint64_t self = (uint64_t)getpid();
    snprintf(path, sizeof path, "%s/proc", children->root);
    DIR *folder = opendir(path);
    if (!folder) {
        return;
    }
    for (const struct dirent *at; (at = readdir(folder));) {
        char text[1024];
        uint64_t parent, ticks, pages;
        bool worker;
        if (!isdigit((unsigned char)at->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof path, "%s/proc/%.20s/stat", children->root, at->d_name);
        const int got = sw__os_read_file(path, text, sizeof text);
        sw__proc_own_add(2, got > 0 ? (uint64_t)got : 0);
        if (got > 0 && read_stat(text, &parent, &ticks, &pages, &worker) &&
            parent == self) {
            (void)add(children, (uint32_t)strtoul(at->d_name, NULL, 10), worker);
        }
    }
    closedir(folder);
}

/* Threads other than the first seldom have children, so that what is listed here is nearly all. */
static void read_list(struct children *children)
{
    char text[4096];
    uint64_t pid;
    if (sw__proc_read(&children->list, text, sizeof text) < 0) {
        return;
    }
    for (const char *at = text; sw__proc_number(&at, &pid);) {
        if (pid <= INT_MAX) {
            (void)add(children, (uint32_t)pid, false);
        }
    }
}

/* Children that have ended since the last look. */
struct gone {
    double cpu; /* as they were last seen */
    unsigned count, workers;
};

static void take_told(struct children *children, struct gone *gone)
{
    if (pthread_mutex_trylock(&told.lock)) {
        return;
    }
    for (unsigned i = 0; i < told.count; i++) {
        if (!add(children, told.pid[i], true) && kill((pid_t)told.pid[i], 0) != 0 &&
            errno == ESRCH) {
            gone->count++;
            gone->workers++;
        }
    }
    told.count = 0;
    pthread_mutex_unlock(&told.lock);
}

/* False: it has ended. A dead one that nobody waited for yet still has its times. */
static bool refresh(const struct children *children, struct child *child)
{
    char text[1024];
    uint64_t parent, ticks, pages;
    bool worker = false;
    if (sw__proc_read(&child->stat, text, sizeof text) <= 0 ||
        !read_stat(text, &parent, &ticks, &pages, &worker)) {
        return false;
    }
    child->worker |= worker;
    child->cpu = (double)ticks * children->tick;
    child->rss = (double)pages * children->page;
    return true;
}

/* What children that ended took after they were last seen is in what the kernel adds up for those that were waited for. It is
 * shared out by number; a child that came and went unseen beside them is taken for one of them. */
static void workers_end(struct children *children, const struct gone *gone, double waited)
{
    const double rest = waited - children->waited - gone->cpu;
    if (gone->workers && rest > 0) {
        children->workers_gone += rest * gone->workers / gone->count;
    }
    children->waited = waited;
}

static int children_sample(void *state, struct sw__look *look)
{
    struct children *children = state;
    const uint64_t now = sw__os_now_ns();
    if (children->list.fd >= 0) {
        read_list(children);
    } else if (now >= children->search_at) {
        search(children);
        children->search_at = now + SEARCH_NS;
    }
    struct gone gone = {0};
    take_told(children, &gone);
    double cpu = 0, rss = 0, workers_cpu = 0, workers_rss = 0, workers = 0;
    unsigned kept = 0;
    for (unsigned i = 0; i < children->count; i++) {
        struct child *child = &children->child[i];
        if (!refresh(children, child)) {
            children->workers_gone += child->worker ? child->cpu : 0;
            gone.cpu += child->cpu;
            gone.workers += child->worker;
            gone.count++;
            sw__proc_close(&child->stat);
            continue;
        }
        cpu += child->cpu;
        rss += child->rss;
        workers += child->worker;
        workers_cpu += child->worker ? child->cpu : 0;
        workers_rss += child->worker ? child->rss : 0;
        children->child[kept++] = *child;
    }
    children->count = kept;
    const double waited = waited_for();
    workers_end(children, &gone, waited);
    /* A child that was waited for has its time in what the kernel adds up, so that the sum goes on. */
    sw__look_hint(look, &children->hint[0], "children.cpu", "s", SW_SERIES_TOTAL,
                  cpu + waited);
    sw__look_hint(look, &children->hint[1], "children.rss", "B", SW_SERIES_GAUGE, rss);
    sw__look_hint(look, &children->hint[2], "children.count", "1", SW_SERIES_GAUGE, kept);
    sw__look_hint(look, &children->hint[3], "workers.cpu", "s", SW_SERIES_TOTAL,
                  workers_cpu + children->workers_gone);
    sw__look_hint(look, &children->hint[4], "workers.rss", "B", SW_SERIES_GAUGE,
                  workers_rss);
    sw__look_hint(look, &children->hint[5], "workers.count", "1", SW_SERIES_GAUGE,
                  workers);
    return SW_OK;
}

const struct sw__source sw__source_children = {
    .name = "children",
    .period_s = 1,
    .open = children_open,
    .sample = children_sample,
    .close = children_close,
};
