/* Opening the file: whose it is, which version it has, how it is locked, and what happens when it is damaged. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/os.h"
#include "history/database.h"
#include "history/small_file.h"

#define WAIT_USUAL_MS 3000
#define PAUSE_MS 10

/* Each leads from one version to the next and is never changed once it has been released. */
static const char *const migrations[] = {
    "CREATE TABLE runs ("
    "directory TEXT PRIMARY KEY NOT NULL, id TEXT, name TEXT, program TEXT, arguments "
    "TEXT, "
    "command TEXT, started_utc TEXT, duration_s REAL, exit_code INTEGER, "
    "exit_signal INTEGER, complete INTEGER, host TEXT, python TEXT, frameworks TEXT, "
    "git_commit TEXT, git_dirty INTEGER, config TEXT, batch_size INTEGER, "
    "workers INTEGER, steps INTEGER, step_mean_ms REAL, step_p50_ms REAL, "
    "step_p99_ms REAL, steps_per_s REAL, samples_per_s REAL, shares TEXT, "
    "overhead_percent REAL, finding TEXT, speedup REAL, report TEXT)",
};

static void pause_ms(int milliseconds)
{
    sw__os_sleep_ns((uint64_t)milliseconds * 1000000u);
}

void sw__database_close(struct sw__database *database)
{
    if (database->handle) {
        database->call->close_v2(database->handle);
        database->handle = NULL;
    }
}

/* The path as a URI that says the file does not change, for folders in which SQLite cannot put its helpers. */
static bool frozen_uri(char *out, size_t size, const char *path)
{
    size_t used = (size_t)snprintf(out, size, "file:");
    for (; *path && used + 4 < size; path++) {
        used += (size_t)snprintf(out + used, size - used,
                                 strchr("%?#", *path) ? "%%%02X" : "%c", *path);
    }
    return !*path &&
           snprintf(out + used, size - used, "?immutable=1") < (int)(size - used);
}

/* Makes the connection; SQLite looks at the file only when it is asked something. */
static int connect(struct sw__database *database, const char *name, int flags,
                   const struct sw__database_manner *manner, sw_error_info *info)
{
    sw__database_close(database);
    const int code = database->call->open_v2(name, &database->handle, flags, manner->vfs);
    if (code != SQLITE_OK) {
        return sw__database_error(database, code, "opened", info);
    }
    database->call->busy_timeout(database->handle,
                                 manner->wait_ms ? manner->wait_ms : WAIT_USUAL_MS);
    return SW_OK;
}

/* Whose the file is. */
static int identify(struct sw__database *database, int64_t *version, sw_error_info *info)
{
    int64_t application = 0;
    int64_t tables = 0;
    /* At one moment: another process may just be making the tables. */
    int result = sw__database_run(database, "BEGIN", "read", info);
    if (result != SW_OK) {
        return result;
    }
    result = sw__database_number(database, "SELECT count(*) FROM sqlite_master", &tables,
                                 info);
    if (result == SW_OK) {
        result =
            sw__database_number(database, "PRAGMA application_id", &application, info);
    }
    if (result == SW_OK) {
        result = sw__database_number(database, "PRAGMA user_version", version, info);
    }
    database->call->exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    if (result != SW_OK) {
        return result;
    }
    database->fresh = tables == 0 && application == 0 && *version == 0;
    if (!database->fresh && application != SW__HISTORY_APPLICATION) {
        return sw_error_set(info, SW_EFORMAT,
                            "%.300s belongs to another program and was left alone",
                            database->path);
    }
    return SW_OK;
}

/* A write-ahead log lets readers and a writer work at once. It needs memory that processes share: not on file systems of
 * several machines. Where it cannot be had, SQLite stays with its rollback journal, which is as safe. Two processes that
 * make the same file may meet here, and SQLite does not wait then by itself. */
static void choose_journal(const struct sw__database *database, const char *folder,
                           int wait_ms)
{
    if (sw__os_fs_kind(folder, NULL, NULL) == SW__FS_NETWORK) {
        return;
    }
    for (int waited = 0; waited <= wait_ms; waited += PAUSE_MS) {
        const int code = database->call->exec(
            database->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
        if ((code & 0xff) != SQLITE_BUSY) {
            return;
        }
        pause_ms(PAUSE_MS);
    }
}

/* Takes a file back from its write-ahead log, where that cannot be shared here: in exclusive mode it need not be. */
static int leave_log(const struct sw__database *database, sw_error_info *info)
{
    int result =
        sw__database_run(database, "PRAGMA locking_mode = EXCLUSIVE", "opened", info);
    if (result == SW_OK) {
        result =
            sw__database_run(database, "PRAGMA journal_mode = DELETE", "opened", info);
    }
    return result;
}

/* All steps to the version of this program, or none. Another process may have been quicker. */
static int migrate(const struct sw__database *database, const char *const *step,
                   int target, sw_error_info *info)
{
    char sql[128];
    int64_t version = 0;
    int result = sw__database_run(database, "BEGIN IMMEDIATE", "written", info);
    if (result != SW_OK) {
        return result;
    }
    result = sw__database_number(database, "PRAGMA user_version", &version, info);
    for (; result == SW_OK && version < target; version++) {
        result = sw__database_run(database, step[version], "written", info);
    }
    if (result == SW_OK && version == target) {
        snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %d",
                 SW__HISTORY_APPLICATION, target);
        result = sw__database_run(database, sql, "written", info);
    }
    if (result == SW_OK) {
        result = sw__database_run(database, "COMMIT", "written", info);
    }
    if (result != SW_OK) {
        database->call->exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    return result;
}

/* The file itself: private where we make it, and never a link to somewhere else. */
static int prepare_file(const char *path, bool read_only, sw_error_info *info)
{
    struct stat status;
    if (lstat(path, &status) == 0) {
        if (!S_ISREG(status.st_mode)) {
            return sw_error_set(info, SW_EFORMAT, "%.300s is not a regular file", path);
        }
        return SW_OK;
    }
    if (read_only) {
        return sw_error_set(info, SW_ENOTFOUND, "there is no %.300s", path);
    }
    const int fd = sw__os_create_private(path);
    if (fd >= 0) {
        close(fd);
    } else if (fd != -EEXIST) {
        const int result = sw_error_set(info, fd == -ENOSPC ? SW_ENOSPACE : SW_EWRITE,
                                        "%.300s cannot be made: %s", path, strerror(-fd));
        if (info) {
            info->os_errno = -fd;
        }
        return result;
    }
    return SW_OK;
}

static int open_to_read(struct sw__database *database,
                        const struct sw__database_manner *manner, int64_t *version,
                        sw_error_info *info)
{
    char uri[3 * PATH_MAX];
    int result = connect(database, database->path, SQLITE_OPEN_READONLY, manner, info);
    if (result == SW_OK) {
        result = identify(database, version, info);
    }
    if ((result == SW_EOPEN || result == SW_EWRITE) &&
        frozen_uri(uri, sizeof uri, database->path)) {
        result =
            connect(database, uri, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, manner, info);
        if (result == SW_OK) {
            result = identify(database, version, info);
        }
    }
    if (result == SW_OK && database->fresh) {
        result = sw_error_set(info, SW_ENOTFOUND, "%.300s is empty", database->path);
    }
    return result;
}

static int open_to_write(struct sw__database *database, const char *folder,
                         const struct sw__database_manner *manner, int64_t *version,
                         sw_error_info *info)
{
    int result = connect(database, database->path, SQLITE_OPEN_READWRITE, manner, info);
    if (result == SW_OK) {
        result = identify(database, version, info);
    }
    if (result == SW_EOPEN || result == SW_EWRITE) {
        result = connect(database, database->path, SQLITE_OPEN_READWRITE, manner, info);
        if (result == SW_OK) {
            result = leave_log(database, info);
        }
        if (result == SW_OK) {
            result =
                connect(database, database->path, SQLITE_OPEN_READWRITE, manner, info);
        }
        if (result == SW_OK) {
            result = identify(database, version, info);
        }
    }
    if (result != SW_OK) {
        return result;
    }
    if (database->fresh) {
        choose_journal(database, folder,
                       manner->wait_ms ? manner->wait_ms : WAIT_USUAL_MS);
    }
    /* A power cut may take the last rows with it; they are in the run directories. */
    return sw__database_run(database, "PRAGMA synchronous = NORMAL", "opened", info);
}

int sw__database_open(struct sw__database *out, const char *folder,
                      const struct sw__database_manner *manner, sw_error_info *info)
{
    const char *const *steps = manner->migration ? manner->migration : migrations;
    const int target = manner->migration ? manner->version : (int)SW__COUNTOF(migrations);
    int64_t version = 0;
    *out = (struct sw__database){.call = sw__sqlite(info)};
    if (!out->call) {
        return SW_EUNSUPPORTED;
    }
    if (!sw__join_path(out->path, sizeof out->path, folder, SW_HISTORY_FILE)) {
        return sw_error_set(info, SW_EINVAL, "the path %.100s is too long", folder);
    }
    int result = prepare_file(out->path, manner->read_only, info);
    if (result == SW_OK) {
        result = manner->read_only ? open_to_read(out, manner, &version, info)
                                   : open_to_write(out, folder, manner, &version, info);
    }
    out->newer = version > target;
    if (result == SW_OK && !manner->read_only) {
        if (out->newer) {
            result = sw_error_set(info, SW_EVERSION,
                                  "%.300s was written by a later version of stepwatch, "
                                  "so this one only reads it",
                                  out->path);
        } else if (version < target) {
            result = migrate(out, steps, target, info);
        }
    }
    if (result != SW_OK) {
        sw__database_close(out);
    }
    return result;
}

/* --- damage --- */

struct sw__database_file sw__database_file(const char *folder)
{
    char path[PATH_MAX];
    struct stat status;
    if (!sw__join_path(path, sizeof path, folder, SW_HISTORY_FILE) ||
        lstat(path, &status) != 0) {
        return (struct sw__database_file){0};
    }
    return (struct sw__database_file){(uint64_t)status.st_dev, (uint64_t)status.st_ino};
}

/* Holds the folder, so that of several who find the damage one moves the file, and the others find the new one. Where a folder
 * cannot be locked, that is left to luck. */
static int hold(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int waited = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;
         waited += PAUSE_MS) {
        if (errno != EWOULDBLOCK || waited >= WAIT_USUAL_MS) {
            break;
        }
        pause_ms(PAUSE_MS);
    }
    return fd;
}

/* One that cannot be looked at, for others hold it, is not damaged by that. */
static bool is_whole(const char *folder)
{
    struct sw__database database;
    const struct sw__database_manner manner = {.read_only = true};
    const int result = sw__database_open(&database, folder, &manner, NULL);
    if (result != SW_OK) {
        return result != SW_ECORRUPT;
    }
    sqlite3_stmt *row = NULL;
    const struct sw__sqlite *call = database.call;
    int code =
        call->prepare_v2(database.handle, "PRAGMA integrity_check(1)", -1, &row, NULL);
    if (code == SQLITE_OK) {
        code = call->step(row);
    }
    bool whole = (code & 0xff) != SQLITE_CORRUPT && (code & 0xff) != SQLITE_NOTADB;
    if (code == SQLITE_ROW) {
        const char *text = (const char *)call->column_text(row, 0);
        whole = text && strcmp(text, "ok") == 0;
    }
    call->finalize(row);
    sw__database_close(&database);
    return whole;
}

int sw__database_set_aside(const char *folder, char *moved, size_t size,
                           sw_error_info *info)
{
    static const char *const parts[] = {"-wal", "-shm", "-journal", ""};
    char utc[32];
    char name[PATH_MAX];
    time_t now = time(NULL);
    struct tm fields;
    int result = SW_OK;
    moved[0] = '\0';
    const int lock = hold(folder);
    if (is_whole(folder)) {
        goto out;
    }
    gmtime_r(&now, &fields);
    strftime(utc, sizeof utc, "%Y%m%dT%H%M%SZ", &fields);
    if (snprintf(name, sizeof name, "%s/" SW_HISTORY_FILE ".damaged-%s-%ld", folder, utc,
                 (long)getpid()) >= (int)sizeof name) {
        result = SW_EINVAL;
        goto out;
    }
    for (size_t i = 0; i < SW__COUNTOF(parts) && result == SW_OK; i++) {
        char from[PATH_MAX + 16];
        char to[PATH_MAX + 16];
        snprintf(from, sizeof from, "%s/" SW_HISTORY_FILE "%s", folder, parts[i]);
        snprintf(to, sizeof to, "%s%s", name, parts[i]);
        if (rename(from, to) != 0 && errno != ENOENT) {
            result = sw_error_set(info, SW_EWRITE,
                                  "%.300s is damaged and cannot be moved aside: %s", from,
                                  strerror(errno));
        }
    }
    if (result == SW_OK) {
        snprintf(moved, size, "%s", strrchr(name, '/') + 1);
    }
out:
    if (lock >= 0) {
        close(lock);
    }
    return result;
}
