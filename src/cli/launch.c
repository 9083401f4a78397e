/* Ranks that a launcher starts one by one share a run directory. They agree by a small file, the marker: whoever comes
 * first makes the directory and says in the marker where it is and who the launcher was, so that a later launch
 * of the same name is not taken for this one. All hold a shared lock on it while they run; the last to leave gets it
 * alone, and makes the report. Locks on the folder make coming and leaving one at a time. Where a file system has no locks
 * the worst that can happen is two directories, or two reports. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <stepwatch/record.h>

#include "cli/launch.h"

#define TITLE "stepwatch.launch/1"
#define MARKER ".launch"
#define ANCESTORS_MOST 32
#define ELSEWHERE_S 900 /* how old the marker of a launcher on another machine may be */

/* --- who started us --- */

static ssize_t read_small(const char *path, char *out, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t length = fd >= 0 ? read(fd, out, size - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    out[length > 0 ? length : 0] = '\0';
    return length;
}

/* Parent and start of a process; false when it is gone. */
static bool stat_of(long pid, long *parent, uint64_t *start)
{
    char path[64];
    char text[1024];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (read_small(path, text, sizeof text) <= 0) {
        return false;
    }
    const char *rest = strrchr(text, ')'); /* the name before it may hold anything */
    unsigned long long ticks = 0;
    long above = 0;
    if (!rest || sscanf(rest,
                        ") %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                        "%*d %*d %*d %*d %*d %*d %llu",
                        &above, &ticks) != 2) {
        return false;
    }
    *parent = above;
    *start = ticks;
    return true;
}

/* Whether the process was started with a variable. */
static bool has_variable(long pid, const char *variable)
{
    char path[64];
    static char text[262144];
    snprintf(path, sizeof path, "/proc/%ld/environ", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t got = 0;
    while (fd >= 0 && used + 1 < sizeof text &&
           (got = read(fd, text + used, sizeof text - 1 - used)) > 0) {
        used += (size_t)got;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[used] = '\0';
    size_t length = strlen(variable);
    for (const char *at = text; at < text + used; at += strlen(at) + 1) {
        if (strncmp(at, variable, length) == 0 && at[length] == '=') {
            return true;
        }
    }
    return false;
}

/* The launcher is the nearest process above us that has no rank itself; shells may stand in between. */
static void find_launcher(struct launch *launch, const char *variable)
{
    long pid = (long)getppid();
    for (int i = 0; i < ANCESTORS_MOST && pid > 1; i++) {
        long parent;
        uint64_t start;
        if (!stat_of(pid, &parent, &start)) {
            break;
        }
        launch->launcher = pid;
        launch->launcher_start = start;
        if (!has_variable(pid, variable)) {
            break;
        }
        pid = parent;
    }
}

static const char *text_of(const char *variable)
{
    const char *text = getenv(variable);
    return text && *text ? text : NULL;
}

void launch_find(struct launch *launch)
{
    sw_rank rank;
    *launch = (struct launch){.fd = -1};
    if (!sw_rank_get(&rank) || rank.world_size < 2) {
        return;
    }
    launch->shared = true;
    launch->leads = rank.rank == 0;
    if (gethostname(launch->host, sizeof launch->host) != 0) {
        launch->host[0] = '\0';
    }
    launch->host[sizeof launch->host - 1] = '\0';
    launch->host[strcspn(launch->host, " \n")] = '\0';
    find_launcher(launch, rank.variable);
    /* The ids of launchers that work across machines; "none" is what torchrun says where nobody named one. */
    const char *id = text_of("TORCHELASTIC_RUN_ID");
    const char *job = text_of("SLURM_JOB_ID");
    const char *step = text_of("SLURM_STEP_ID");
    const char *space = text_of("PMIX_NAMESPACE");
    if (id && strcmp(id, "none") != 0) {
        snprintf(launch->key, sizeof launch->key, "torchrun %.200s", id);
    } else if (rank.variable[0] == 'S' && job && step) {
        snprintf(launch->key, sizeof launch->key, "slurm %.100s %.100s", job, step);
    } else if (space) {
        snprintf(launch->key, sizeof launch->key, "pmix %.200s", space);
    } else {
        snprintf(launch->key, sizeof launch->key, "%s %ld %llu",
                 launch->host[0] ? launch->host : "?", launch->launcher,
                 (unsigned long long)launch->launcher_start);
    }
}

/* --- the marker --- */

struct mark {
    unsigned long long key;
    char path[PATH_MAX];
    char id[64];
    char host[128];
    long launcher;
    unsigned long long launcher_start;
    unsigned long long started_real_ns, started_mono_ns;
    int code, signal;
};

static uint64_t hash_of(const char *text)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a */
    for (; *text; text++) {
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    }
    return hash;
}

static bool read_mark(int fd, struct mark *mark)
{
    char text[PATH_MAX + 512];
    ssize_t length = pread(fd, text, sizeof text - 1, 0);
    if (length <= 0) {
        return false;
    }
    text[length] = '\0';
    /* The path last: it may hold anything but a newline. */
    int at = 0;
    int got = sscanf(text, TITLE "\n%llx %63s\n%127s %ld %llu\n%llu %llu\n%d %d\n%n",
                     &mark->key, mark->id, mark->host, &mark->launcher,
                     &mark->launcher_start, &mark->started_real_ns,
                     &mark->started_mono_ns, &mark->code, &mark->signal, &at);
    if (got != 9 || at == 0 || text[at] != '/') {
        return false;
    }
    snprintf(mark->path, sizeof mark->path, "%s", text + at);
    mark->path[strcspn(mark->path, "\n")] = '\0';
    return access(mark->path, W_OK | X_OK) == 0;
}

static bool write_mark(int fd, const struct mark *mark)
{
    char text[PATH_MAX + 512];
    int length = snprintf(text, sizeof text,
                          TITLE "\n%llx %s\n%s %ld %llu\n%llu %llu\n%d %d\n%s\n",
                          mark->key, mark->id, mark->host[0] ? mark->host : "?",
                          mark->launcher, mark->launcher_start, mark->started_real_ns,
                          mark->started_mono_ns, mark->code, mark->signal, mark->path);
    return length > 0 && (size_t)length < sizeof text &&
           pwrite(fd, text, (size_t)length, 0) == (ssize_t)length &&
           ftruncate(fd, length) == 0;
}

static bool is_alive(const struct mark *mark)
{
    long parent;
    uint64_t start;
    return mark->launcher > 0 && stat_of(mark->launcher, &parent, &start) &&
           start == mark->launcher_start;
}

/* Whether a marker is of the launch that started us, and not of an earlier one of the same name. */
static bool is_ours(const struct launch *launch, const struct mark *mark, int fd)
{
    const char *host = launch->host[0] ? launch->host : "?";
    if (mark->key != hash_of(launch->key)) {
        return false; /* somebody else's, in a folder that was asked for */
    }
    if (strcmp(mark->host, host) == 0) {
        return is_alive(mark); /* also another launcher: two "nodes" of one machine */
    }
    struct stat status;
    return fstat(fd, &status) == 0 && time(NULL) - status.st_mtime < ELSEWHERE_S;
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Removes markers that launches of this machine left in the folder of all runs. */
static void clean_up(const struct launch *launch)
{
    DIR *folder = opendir(launch->folder);
    for (const struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
        if (strncmp(entry->d_name, MARKER "-", strlen(MARKER "-")) != 0) {
            continue;
        }
        int fd = openat(dirfd(folder), entry->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct mark mark = {0};
        if (fd >= 0 && read_mark(fd, &mark) && strcmp(mark.host, launch->host) == 0 &&
            !is_alive(&mark)) {
            unlinkat(dirfd(folder), entry->d_name, 0);
        }
        if (fd >= 0) {
            close(fd);
        }
    }
    if (folder) {
        closedir(folder);
    }
}

static int lock_folder(const struct launch *launch)
{
    int fd = open(launch->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0 && flock(fd, LOCK_EX) != 0 && errno == EINTR) {
    }
    return fd;
}

/* Makes the directory and the marker that leads to it. */
static int found(struct launch *launch, struct run_dir *dir, const char *asked,
                 const char *runs, const char *name, sw_error_info *info)
{
    int error = run_dir_create(dir, asked, runs, name, info);
    if (error) {
        return error;
    }
    struct mark mark = {.key = hash_of(launch->key),
                        .launcher = launch->launcher,
                        .launcher_start = launch->launcher_start,
                        .started_real_ns = now_ns(CLOCK_REALTIME),
                        .started_mono_ns = now_ns(CLOCK_MONOTONIC)};
    snprintf(mark.path, sizeof mark.path, "%s", dir->path);
    snprintf(mark.id, sizeof mark.id, "%s", dir->id);
    snprintf(mark.host, sizeof mark.host, "%s", launch->host);
    if (!*asked) {
        clean_up(launch);
    }
    unlink(launch->marker);
    int fd =
        open(launch->marker, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && !write_mark(fd, &mark)) {
        unlink(launch->marker);
        close(fd);
        fd = -1;
    }
    launch->fd = fd;
    return SW_OK;
}

int launch_join(struct launch *launch, struct run_dir *dir, const char *asked,
                const char *runs, const char *name, sw_error_info *info)
{
    int error =
        run_dir_home(*asked ? asked : runs, launch->folder, sizeof launch->folder, info);
    if (error) {
        return error;
    }
    if (*asked) {
        snprintf(launch->marker, sizeof launch->marker, "%.4000s/" MARKER,
                 launch->folder);
    } else {
        snprintf(launch->marker, sizeof launch->marker, "%.4000s/" MARKER "-%016llx",
                 launch->folder, (unsigned long long)hash_of(launch->key));
    }
    int folder = lock_folder(launch);
    int fd = open(launch->marker, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    struct mark mark = {0};
    if (fd >= 0 && read_mark(fd, &mark) && is_ours(launch, &mark, fd)) {
        memset(dir, 0, sizeof *dir);
        snprintf(dir->path, sizeof dir->path, "%s", mark.path);
        snprintf(dir->id, sizeof dir->id, "%s", mark.id);
        launch->fd = fd;
    } else {
        if (fd >= 0) {
            close(fd);
        }
        error = found(launch, dir, asked, runs, name, info);
    }
    if (launch->fd >= 0) {
        (void)flock(launch->fd, LOCK_SH);
    }
    if (folder >= 0) {
        close(folder);
    }
    return error;
}

bool launch_leave(struct launch *launch, struct outcome *outcome)
{
    if (launch->fd < 0) {
        return true; /* nothing could be agreed on */
    }
    int folder = lock_folder(launch);
    struct mark mark = {0};
    bool known = read_mark(launch->fd, &mark);
    if (known && mark.code == 0 && mark.signal == 0) {
        mark.code = outcome->code > 0 ? outcome->code : 0;
        mark.signal = outcome->signal;
        (void)write_mark(launch->fd, &mark);
    }
    (void)flock(launch->fd, LOCK_UN);
    bool last = flock(launch->fd, LOCK_EX | LOCK_NB) == 0;
    if (folder >= 0) {
        close(folder);
    }
    close(launch->fd);
    launch->fd = -1;
    if (last && known) {
        uint64_t end = outcome->started_mono_ns + outcome->duration_ns;
        outcome->signal = mark.signal;
        outcome->code = mark.signal ? -1 : mark.code;
        if (strcmp(mark.host, launch->host) == 0 && mark.started_mono_ns <= end) {
            outcome->started_real_ns = mark.started_real_ns;
            outcome->started_mono_ns = mark.started_mono_ns;
            outcome->duration_ns = end - mark.started_mono_ns;
        }
    }
    return last;
}
