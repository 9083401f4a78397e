/* Rows of the table `runs`, and what they are here. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "history/database.h"
#include "history/pairs.h"
#include "history/run_files.h"

#define ROWS_MOST 100000

enum kind { TEXT, INT, LONG, COUNT, DOUBLE, UTC, PAIRS };

/* The columns in the order of the statements. Names of the first version stay for ever. */
static const struct column {
    const char *name;
    enum kind kind;
    size_t offset;
} columns[] = {
#define COLUMN(name, kind, field)                                                        \
    {                                                                                    \
        name, kind, offsetof(sw_history_run, field)                                      \
    }
    COLUMN("directory", TEXT, directory),
    COLUMN("id", TEXT, id),
    COLUMN("name", TEXT, name),
    COLUMN("program", TEXT, program),
    COLUMN("arguments", TEXT, arguments),
    COLUMN("command", TEXT, command),
    COLUMN("started_utc", UTC, started_s),
    COLUMN("duration_s", DOUBLE, duration_s),
    COLUMN("exit_code", INT, exit_code),
    COLUMN("exit_signal", INT, exit_signal),
    COLUMN("complete", INT, complete),
    COLUMN("host", TEXT, host),
    COLUMN("python", TEXT, python),
    COLUMN("frameworks", PAIRS, frameworks),
    COLUMN("git_commit", TEXT, commit),
    COLUMN("git_dirty", INT, dirty),
    COLUMN("config", PAIRS, config),
    COLUMN("batch_size", LONG, batch_size),
    COLUMN("workers", LONG, workers),
    COLUMN("steps", COUNT, steps),
    COLUMN("step_mean_ms", DOUBLE, step_mean_ms),
    COLUMN("step_p50_ms", DOUBLE, step_p50_ms),
    COLUMN("step_p99_ms", DOUBLE, step_p99_ms),
    COLUMN("steps_per_s", DOUBLE, steps_per_s),
    COLUMN("samples_per_s", DOUBLE, samples_per_s),
    COLUMN("shares", PAIRS, shares),
    COLUMN("overhead_percent", DOUBLE, overhead_percent),
    COLUMN("finding", TEXT, finding),
    COLUMN("speedup", DOUBLE, speedup),
    COLUMN("report", TEXT, report),
#undef COLUMN
};
#define COLUMNS SW__COUNTOF(columns)

/* --- lists --- */

int sw__runs_add(struct sw__runs *runs, const sw_history_run *run)
{
    if (runs->count == runs->room) {
        const size_t room = runs->room ? runs->room * 2 : 64;
        sw_history_run *grown = sw__realloc(runs->run, room, sizeof *grown);
        if (!grown) {
            return SW_ENOMEM;
        }
        runs->run = grown;
        runs->room = room;
    }
    runs->run[runs->count++] = *run;
    return SW_OK;
}

void sw__runs_free(struct sw__runs *runs)
{
    sw__free(runs->run);
    runs->run = NULL;
    runs->count = runs->room = 0;
}

/* --- reading --- */

static const char *column_text(const struct sw__sqlite *call, sqlite3_stmt *row,
                               int index, sw__arena *arena)
{
    const char *text = (const char *)call->column_text(row, index);
    return text ? sw__arena_copy(arena, text, strlen(text)) : NULL;
}

/* A value of another type than this version writes is not known. */
static void read_column(const struct sw__sqlite *call, sqlite3_stmt *row, int index,
                        sw_history_run *out, sw__arena *arena)
{
    const struct column *column = &columns[index];
    void *field = (char *)out + column->offset;
    const int type = call->column_type(row, index);
    const bool number = type == SQLITE_INTEGER || type == SQLITE_FLOAT;
    const int64_t value = type == SQLITE_INTEGER ? call->column_int64(row, index) : -1;
    const char *text = NULL;
    if (type == SQLITE_TEXT) {
        text = column_text(call, row, index, arena);
    }
    switch (column->kind) {
    case TEXT:
        *(const char **)field = text;
        break;
    case INT:
        *(int *)field = value >= 0 && value <= INT_MAX ? (int)value : -1;
        break;
    case LONG:
        *(int64_t *)field = value;
        break;
    case COUNT:
        *(uint64_t *)field = value >= 0 ? (uint64_t)value : SW_UNKNOWN;
        break;
    case DOUBLE:
        *(double *)field = number ? call->column_double(row, index) : NAN;
        break;
    case UTC:
        *(double *)field = sw__utc_read(text);
        break;
    case PAIRS:
        if (text) {
            struct sw__scan json = {.at = text, .end = text + strlen(text)};
            *(sw_history_pairs *)field = sw__pairs_scan(&json, arena);
        }
        break;
    }
}

/* "SELECT a, b, …" with what stands before and behind the names. */
static void name_columns(char *out, size_t size, const char *before, const char *behind)
{
    size_t used = (size_t)snprintf(out, size, "%s", before);
    for (size_t i = 0; i < COLUMNS && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%s", i ? "," : "",
                                 columns[i].name);
    }
    if (used < size) {
        snprintf(out + used, size - used, "%s", behind);
    }
}

int sw__database_read(const struct sw__database *database, struct sw__runs *runs,
                      sw_error_info *info)
{
    const struct sw__sqlite *call = database->call;
    sqlite3_stmt *row = NULL;
    char sql[1024];
    char end[64];
    snprintf(end, sizeof end, " FROM runs ORDER BY started_utc DESC LIMIT %d", ROWS_MOST);
    name_columns(sql, sizeof sql, "SELECT ", end);
    int result = SW_OK;
    int code = call->prepare_v2(database->handle, sql, -1, &row, NULL);
    if (code == SQLITE_OK) {
        while (result == SW_OK && (code = call->step(row)) == SQLITE_ROW) {
            sw_history_run run;
            sw__run_unknown(&run);
            for (size_t i = 0; i < COLUMNS; i++) {
                read_column(call, row, (int)i, &run, runs->arena);
            }
            if (run.directory) { /* also NULL when out of memory: the next one fails too */
                result = sw__runs_add(runs, &run);
            }
        }
    }
    if (result == SW_OK && code != SQLITE_DONE) {
        result = sw__database_error(database, code, "read", info);
    }
    call->finalize(row);
    return result;
}

/* --- writing --- */

static int bind_pairs(const struct sw__sqlite *call, sqlite3_stmt *row, int index,
                      sw_history_pairs pairs)
{
    if (!pairs.pair) {
        return call->bind_null(row, index);
    }
    sw_writer *writer = sw_writer_to_memory();
    int code = SQLITE_NOMEM;
    if (writer) {
        size_t length = 0;
        sw_json_start(writer, false);
        sw__pairs_write(writer, pairs);
        const char *text = sw_writer_text(writer, &length);
        if (text) {
            code = call->bind_text(row, index, text, (int)length, SQLITE_TRANSIENT);
        }
    }
    sw_writer_close(writer, NULL);
    return code;
}

static int bind_utc(const struct sw__sqlite *call, sqlite3_stmt *row, int index,
                    double seconds)
{
    char text[SW__UTC];
    sw__utc_write(text, seconds);
    return *text ? call->bind_text(row, index, text, -1, SQLITE_TRANSIENT)
                 : call->bind_null(row, index);
}

static int bind_column(const struct sw__sqlite *call, sqlite3_stmt *row, size_t number,
                       const sw_history_run *run)
{
    const struct column *column = &columns[number];
    const void *field = (const char *)run + column->offset;
    const int index = (int)number + 1;
    int64_t value = -1;
    switch (column->kind) {
    case TEXT:
        return call->bind_text(row, index, *(const char *const *)field, -1,
                               SQLITE_TRANSIENT);
    case DOUBLE:
        return isfinite(*(const double *)field)
                   ? call->bind_double(row, index, *(const double *)field)
                   : call->bind_null(row, index);
    case UTC:
        return bind_utc(call, row, index, *(const double *)field);
    case PAIRS:
        return bind_pairs(call, row, index, *(const sw_history_pairs *)field);
    case INT:
        value = *(const int *)field;
        break;
    case LONG:
        value = *(const int64_t *)field;
        break;
    case COUNT:
        value = *(const uint64_t *)field <= INT64_MAX
                    ? (int64_t) * (const uint64_t *)field
                    : -1;
        break;
    }
    return value >= 0 ? call->bind_int64(row, index, value) : call->bind_null(row, index);
}

static int write_row(const struct sw__database *database, sqlite3_stmt *row,
                     const sw_history_run *run)
{
    int code = SQLITE_OK;
    for (size_t i = 0; i < COLUMNS && code == SQLITE_OK; i++) {
        code = bind_column(database->call, row, i, run);
    }
    if (code == SQLITE_OK) {
        code = database->call->step(row);
    }
    database->call->reset(row);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* Ends a transaction: what was done stays if all went well. */
static int end(const struct sw__database *database, int code, sw_error_info *info)
{
    int result = SW_OK;
    if (code != SQLITE_OK) {
        result = sw__database_error(database, code, "written", info);
    } else {
        result = sw__database_run(database, "COMMIT", "written", info);
    }
    if (result != SW_OK) {
        database->call->exec(database->handle, "ROLLBACK", NULL, NULL, NULL);
    }
    return result;
}

int sw__database_write(const struct sw__database *database, const sw_history_run *runs,
                       size_t count, bool replace, sw_error_info *info)
{
    sqlite3_stmt *row = NULL;
    char sql[1024];
    char values[2 * COLUMNS + 16] = ") VALUES (";
    for (size_t i = 0; i < COLUMNS; i++) {
        strcat(values, i ? ",?" : "?");
    }
    strcat(values, ")");
    name_columns(sql, sizeof sql,
                 replace ? "INSERT OR REPLACE INTO runs ("
                         : "INSERT OR IGNORE INTO runs (",
                 values);
    int result = sw__database_run(database, "BEGIN IMMEDIATE", "written", info);
    if (result != SW_OK) {
        return result;
    }
    int code = database->call->prepare_v2(database->handle, sql, -1, &row, NULL);
    for (size_t i = 0; i < count && code == SQLITE_OK; i++) {
        code = write_row(database, row, &runs[i]);
    }
    database->call->finalize(row);
    return end(database, code, info);
}

int sw__database_forget(const struct sw__database *database, const char *directory,
                        sw_error_info *info)
{
    const struct sw__sqlite *call = database->call;
    sqlite3_stmt *row = NULL;
    int result = sw__database_run(database, "BEGIN IMMEDIATE", "written", info);
    if (result != SW_OK) {
        return result;
    }
    int code = call->prepare_v2(database->handle, "DELETE FROM runs WHERE directory = ?",
                                -1, &row, NULL);
    if (code == SQLITE_OK) {
        code = call->bind_text(row, 1, directory, -1, SQLITE_TRANSIENT);
    }
    if (code == SQLITE_OK) {
        code = call->step(row);
        code = code == SQLITE_DONE ? SQLITE_OK : code;
    }
    call->finalize(row);
    return end(database, code, info);
}
