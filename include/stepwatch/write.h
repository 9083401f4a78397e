/* Text and JSON output into one kind of sink: a file descriptor, a growing buffer or a
 * callback.
 *
 * Writing never fails midway with half a state: the first error sticks, later calls do
 * nothing, and sw_writer_close reports it. */
#ifndef STEPWATCH_WRITE_H
#define STEPWATCH_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stepwatch/error.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sw_writer sw_writer;

/* Writes to a descriptor, which the caller keeps and closes. NULL when out of memory. */
SW_API sw_writer *sw_writer_to_fd(int fd);
/* Collects in memory; sw_writer_text gives the NUL-terminated result, owned by the
 * writer. */
SW_API sw_writer *sw_writer_to_memory(void);
SW_API const char *sw_writer_text(sw_writer *writer, size_t *length);
/* Passes full buffers to `call`, which returns 0 or a negative sw_error. */
SW_API sw_writer *sw_writer_to_callback(int (*call)(void *arg, const char *bytes,
                                                    size_t length),
                                        void *arg);
/* Flushes, frees the writer and returns the first error: SW_ENOMEM, SW_EWRITE or
 * SW_ENOSPACE; SW_EINVAL when a JSON document was not complete. NULL is fine and gives
 * 0. */
SW_API int sw_writer_close(sw_writer *writer, sw_error_info *info);
SW_API int sw_writer_flush(sw_writer *writer);

/* Plain text. */
SW_API void sw_write_bytes(sw_writer *writer, const char *bytes, size_t length);
SW_API void sw_write_text(sw_writer *writer, const char *text);
SW_API void sw_write_format(sw_writer *writer, const char *format, ...) SW_PRINTF(2, 3);
SW_API void sw_write_repeat(sw_writer *writer, const char *text, size_t times);
/* Text from a program, made safe for a terminal: the bytes of control characters (also
 * C1, bidirectional marks, line separators) and of invalid UTF-8 appear as \xNN, newlines
 * as \n; cut to `columns` display columns (0: no limit) with an ellipsis, `ascii` chooses
 * "..." for it. Returns the columns used. Wide characters count as two. */
SW_API size_t sw_write_visible(sw_writer *writer, const char *bytes, size_t length,
                               size_t columns, bool ascii);
SW_API size_t sw_text_columns(const char *bytes, size_t length);
/* A duration in nanoseconds as people read it: "812 ns", "3.41 µs", "12.3 ms", "2.04 s",
 * "1 h 03 min"; `ascii` writes "us". Three significant digits, at most 12 columns. */
SW_API void sw_text_duration(char out[24], double nanoseconds, bool ascii);
/* A count with thousands separators ("1,234,567"). */
SW_API void sw_text_count(char out[32], uint64_t value);
/* Bytes with a binary unit ("1.5 MiB"). */
SW_API void sw_text_bytes(char out[24], uint64_t bytes);

/* JSON. Values are put one after the other; commas, colons and indentation come by
 * themselves. Strings may hold any bytes: control characters are escaped, invalid UTF-8
 * becomes U+FFFD, also lone surrogates and overlong forms; U+2028/2029 and </ are escaped
 * so that the text may stand in a script element. NaN and infinities become null. Doubles
 * are written in the shortest form that reads back the same and never in the locale's
 * form. `pretty` indents by two. */
SW_API void sw_json_start(sw_writer *writer, bool pretty); /* before the first value */
SW_API void sw_json_object_begin(sw_writer *writer);
SW_API void sw_json_object_end(sw_writer *writer);
SW_API void sw_json_array_begin(sw_writer *writer);
SW_API void sw_json_array_end(sw_writer *writer);
SW_API void sw_json_key(sw_writer *writer, const char *key);
SW_API void sw_json_string(sw_writer *writer, const char *text); /* NULL gives null */
SW_API void sw_json_string_n(sw_writer *writer, const char *bytes, size_t length);
SW_API void sw_json_int(sw_writer *writer, int64_t value);
SW_API void sw_json_uint(sw_writer *writer, uint64_t value);
SW_API void sw_json_double(sw_writer *writer, double value);
SW_API void sw_json_bool(sw_writer *writer, bool value);
SW_API void sw_json_null(sw_writer *writer);

#ifdef __cplusplus
}
#endif
#endif
