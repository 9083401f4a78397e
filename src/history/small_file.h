/* Files that are read whole, and that anybody may have put there. */
#ifndef SW_HISTORY_SMALL_FILE_H
#define SW_HISTORY_SMALL_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of a regular file of at most `most` bytes, with a NUL behind them, or NULL: there is none, it is larger, or out
 * of memory. The caller frees them by sw__free. */
char *sw__small_file(const char *path, size_t most, size_t *length);
/* "FOLDER/NAME"; false when that does not fit. */
bool sw__join_path(char *out, size_t size, const char *folder, const char *name);

#endif
