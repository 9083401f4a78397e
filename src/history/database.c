/* Statements and errors. */
#include <errno.h>
#include <string.h>

#include "history/database.h"

/* The sentence names the file and what failed; it must be of use to somebody who never heard of SQLite. */
int sw__database_error(const struct sw__database *database, int code, const char *doing,
                       sw_error_info *info)
{
    const int os_error =
        database->handle ? database->call->system_errno(database->handle) : 0;
    int result;
    switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return sw_error_set(info, SW_ECORRUPT, "%.300s is damaged", database->path);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return sw_error_set(info, SW_ESTATE, "%.300s is locked by another process",
                            database->path);
    case SQLITE_FULL:
        return sw_error_set(info, SW_ENOSPACE, "no space is left for %.300s",
                            database->path);
    case SQLITE_NOMEM:
        return sw_error_set(info, SW_ENOMEM, "%s", sw_error_text(SW_ENOMEM));
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        result = SW_EWRITE;
        break;
    case SQLITE_CANTOPEN:
        result = SW_EOPEN;
        break;
    case SQLITE_IOERR:
        result = os_error == ENOSPC || os_error == EDQUOT || os_error == EFBIG
                     ? SW_ENOSPACE
                     : SW_EWRITE;
        break;
    default:
        result = SW_ESYS;
        break;
    }
    sw_error_set(info, result, "%.300s cannot be %s: %.120s", database->path, doing,
                 os_error           ? strerror(os_error)
                 : database->handle ? database->call->errmsg(database->handle)
                                    : sw_error_text(result));
    if (info) {
        info->os_errno = os_error;
    }
    return result;
}

int sw__database_run(const struct sw__database *database, const char *sql,
                     const char *doing, sw_error_info *info)
{
    const int code = database->call->exec(database->handle, sql, NULL, NULL, NULL);
    return code == SQLITE_OK ? SW_OK : sw__database_error(database, code, doing, info);
}

int sw__database_number(const struct sw__database *database, const char *sql,
                        int64_t *out, sw_error_info *info)
{
    const struct sw__sqlite *call = database->call;
    sqlite3_stmt *statement = NULL;
    int code = call->prepare_v2(database->handle, sql, -1, &statement, NULL);
    if (code == SQLITE_OK) {
        code = call->step(statement);
    }
    const bool found = code == SQLITE_ROW;
    if (found) {
        *out = call->column_int64(statement, 0);
    }
    call->finalize(statement);
    if (!found) {
        return sw__database_error(database, code, "read", info);
    }
    return SW_OK;
}
