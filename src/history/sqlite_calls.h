/* SQLite, loaded when it is needed. It is not linked: the library of the recorder goes into programs that may bring an
 * SQLite of their own, and two of them under one name, the older one first, would break the program. */
#ifndef SW_HISTORY_SQLITE_CALLS_H
#define SW_HISTORY_SQLITE_CALLS_H

#include <sqlite3.h>
#include <stepwatch/error.h>

#define SW__SQLITE_CALLS(X)                                                              \
    X(open_v2)                                                                           \
    X(close_v2)                                                                          \
    X(busy_timeout)                                                                      \
    X(exec)                                                                              \
    X(prepare_v2)                                                                        \
    X(step)                                                                              \
    X(reset)                                                                             \
    X(finalize)                                                                          \
    X(bind_text)                                                                         \
    X(bind_int64)                                                                        \
    X(bind_double)                                                                       \
    X(bind_null)                                                                         \
    X(column_type)                                                                       \
    X(column_text)                                                                       \
    X(column_bytes)                                                                      \
    X(column_int64)                                                                      \
    X(column_double)                                                                     \
    X(extended_errcode)                                                                  \
    X(system_errno)                                                                      \
    X(errmsg)

struct sw__sqlite {
#define SW__SQLITE_FIELD(name) __typeof__(&sqlite3_##name) name;
    SW__SQLITE_CALLS(SW__SQLITE_FIELD)
#undef SW__SQLITE_FIELD
};

/* The calls, or NULL with a sentence when there is no SQLite here. */
const struct sw__sqlite *sw__sqlite(sw_error_info *info);

#endif
