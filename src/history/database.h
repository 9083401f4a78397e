/* history.db: a table with a row for each run.
 *
 * Version 1 has one table, `runs`, whose key is the name of the run directory. The file says that it is ours by its
 * application_id and which version it has by its user_version. Its journal is a write-ahead log, or a
 * rollback journal where the file system is shared between machines or has no memory for processes to share. */
#ifndef SW_HISTORY_DATABASE_H
#define SW_HISTORY_DATABASE_H

#include <limits.h>
#include <stdbool.h>
#include <stepwatch/history.h>

#include "base/memory.h"
#include "history/sqlite_calls.h"

#define SW__HISTORY_APPLICATION 0x73774831 /* "swH1" */

struct sw__database {
    const struct sw__sqlite *call;
    sqlite3 *handle;
    char path[PATH_MAX];
    bool fresh; /* it had nothing in it when it was opened */
    bool newer; /* a later version wrote it; it is only read */
};

/* How a database is opened. All zero: to be written, made where there is none, with the schema of this version. */
struct sw__database_manner {
    bool read_only;
    int wait_ms;     /* for others who write */
    const char *vfs; /* NULL: SQLite's usual one */
    const char *const
        *migration; /* SQL from version i to i + 1; NULL: those of this version */
    int version;    /* how many there are */
};

/* Opens FOLDER/history.db. SW_ECORRUPT: it is damaged. SW_EFORMAT: it is of another program. SW_EVERSION: a later version
 * wrote it, so that it can only be read. SW_ENOTFOUND: there is none to read. SW_ESTATE: others held it too long. */
int sw__database_open(struct sw__database *out, const char *folder,
                      const struct sw__database_manner *manner, sw_error_info *info);
void sw__database_close(struct sw__database *database);

/* Which file FOLDER/history.db is now; zeros: none. Another process may move a damaged one aside at any time. */
struct sw__database_file {
    uint64_t device, number;
};
struct sw__database_file sw__database_file(const char *folder);

/* Moves a damaged database aside, with what belongs to it, unless it is whole again because somebody else has been here. `moved` is
 * its new name, or "". */
int sw__database_set_aside(const char *folder, char *moved, size_t size,
                           sw_error_info *info);

/* Rows that are read: a growing list. Texts lie in the arena. */
struct sw__runs {
    sw__arena *arena;
    sw_history_run *run;
    size_t count, room;
};
int sw__runs_add(struct sw__runs *runs, const sw_history_run *run);
void sw__runs_free(struct sw__runs *runs); /* the list, not the arena */

/* Every row, newest first. */
int sw__database_read(const struct sw__database *database, struct sw__runs *runs,
                      sw_error_info *info);
/* Writes rows in one transaction: all or none. `replace` false: those that are there stay. */
int sw__database_write(const struct sw__database *database, const sw_history_run *runs,
                       size_t count, bool replace, sw_error_info *info);
/* Removes rows by directory, in one transaction. */
int sw__database_forget(const struct sw__database *database, const char *directory,
                        sw_error_info *info);

/* Parts of the above. */
int sw__database_error(const struct sw__database *database, int code, const char *doing,
                       sw_error_info *info);
int sw__database_run(const struct sw__database *database, const char *sql,
                     const char *doing, sw_error_info *info);
/* The one number that a statement gives. */
int sw__database_number(const struct sw__database *database, const char *sql,
                        int64_t *out, sw_error_info *info);

#endif
