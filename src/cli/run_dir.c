#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/run_dir.h"

#define TRIES 1000

/* mkdir -p of all but the last part. 0 or errno. */
static int make_parents(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
        if (mkdir(part, 0700) != 0 && errno != EEXIST && errno != EISDIR) {
            struct stat
                status; /* a folder that we may not write to, or on a read-only disk */
            int error = errno;
            if (stat(part, &status) != 0) {
                return error;
            }
        }
    }
    return 0;
}

/* The name as part of a path: nothing that a shell or a file system could mind. */
static void safe_name(char *out, size_t size, const char *name)
{
    size_t used = 0;
    for (; *name && used < size - 1; name++) {
        char c = *name;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || c == '_' || c == '-' ||
                     (c == '.' && used > 0);
        out[used] = '_';
        if (plain) {
            out[used] = c;
        }
        used++;
    }
    out[used] = '\0';
}

static void make_id(struct run_dir *dir, const char *utc)
{
    unsigned char bytes[6];
    if (getrandom(bytes, sizeof bytes, GRND_NONBLOCK) != (ssize_t)sizeof bytes) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t mixed = (uint64_t)now.tv_nsec * 2654435761u + (uint64_t)getpid();
        memcpy(bytes, &mixed, sizeof bytes);
    }
    snprintf(dir->id, sizeof dir->id, "%s-%02x%02x%02x%02x%02x%02x", utc, bytes[0],
             bytes[1], bytes[2], bytes[3], bytes[4], bytes[5]);
}

static int complete(struct run_dir *dir, const char *path, sw_error_info *info)
{
    if (!realpath(path, dir->path)) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be used: %s.", path,
                            strerror(errno));
    }
    if (access(dir->path, W_OK | X_OK) != 0) {
        return sw_error_set(info, SW_EWRITE, "%.300s cannot be written to: %s.", path,
                            strerror(errno));
    }
    return SW_OK;
}

static int use_asked(struct run_dir *dir, const char *asked, sw_error_info *info)
{
    if (strlen(asked) >= PATH_MAX) {
        return sw_error_set(info, SW_EINVAL, "'%.60s' cannot be a run directory.", asked);
    }
    int error = make_parents(asked);
    if (error == 0 && mkdir(asked, 0700) == 0) {
        dir->made = true;
        return complete(dir, asked, info);
    }
    error = error ? error : errno;
    struct stat status;
    if (error != EEXIST || stat(asked, &status) != 0) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be made: %s.", asked,
                            strerror(error));
    }
    if (!S_ISDIR(status.st_mode)) {
        return sw_error_set(info, SW_EOPEN, "%.300s is not a folder.", asked);
    }
    if (run_dir_has_traces(asked)) {
        return sw_error_set(info, SW_ESTATE,
                            "%.300s already holds a run; choose another folder.", asked);
    }
    return complete(dir, asked, info);
}

int run_dir_home(const char *folder, char *out, size_t size, sw_error_info *info)
{
    char path[PATH_MAX];
    if (!*folder || strlen(folder) >= PATH_MAX) {
        return sw_error_set(info, SW_EINVAL, "'%.60s' cannot be a run directory.",
                            folder);
    }
    int error = make_parents(folder);
    if (error == 0 && mkdir(folder, 0700) != 0 && errno != EEXIST) {
        error = errno;
    }
    if (error || !realpath(folder, path)) {
        return sw_error_set(info, SW_EOPEN, "%.300s cannot be made: %s.", folder,
                            strerror(error ? error : errno));
    }
    snprintf(out, size, "%s", path);
    return SW_OK;
}

int run_dir_create(struct run_dir *dir, const char *asked, const char *folder,
                   const char *name, sw_error_info *info)
{
    char utc[32];
    char plain[65];
    time_t now = time(NULL);
    struct tm parts;
    memset(dir, 0, sizeof *dir);
    gmtime_r(&now, &parts);
    strftime(utc, sizeof utc, "%Y%m%dT%H%M%SZ", &parts);
    make_id(dir, utc);
    if (*asked) {
        return use_asked(dir, asked, info);
    }
    safe_name(plain, sizeof plain, name);
    for (int try = 1; try <= TRIES; try++) {
        char path[1024];
        int length = snprintf(path, sizeof path - 16, "%s/%s-%s", folder, utc, plain);
        if (try > 1) {
            snprintf(path + length, sizeof path - (size_t)length, "-%d", try);
        }
        int error = make_parents(path);
        if (error == 0 && mkdir(path, 0700) == 0) {
            dir->made = true;
            return complete(dir, path, info);
        }
        error = error ? error : errno;
        if (error != EEXIST) {
            return sw_error_set(info, SW_EOPEN,
                                "%s cannot be made here: %s; choose a folder with -o.",
                                path, strerror(error));
        }
    }
    return sw_error_set(info, SW_EOPEN, "too many runs within one second.");
}

void run_dir_discard(const struct run_dir *dir)
{
    if (dir->made) {
        rmdir(dir->path);
    }
}

bool run_dir_has_traces(const char *path)
{
    DIR *stream = opendir(path);
    const struct dirent *entry;
    bool found = false;
    while (stream && !found && (entry = readdir(stream)) != NULL) {
        found = fnmatch("?*.stepwatch", entry->d_name, FNM_PERIOD) == 0;
    }
    if (stream) {
        closedir(stream);
    }
    return found;
}
