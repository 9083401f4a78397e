/* Files that are there whole or not at all. */
#ifndef STEPWATCH_EXT_PUT_FILE_H
#define STEPWATCH_EXT_PUT_FILE_H

#include <stddef.h>
#include <sys/types.h>

/* Write a file; one that is there is replaced when the new one is complete, and keeps its mode. A link stays a link, and what
 * is no file (a pipe, a device) is written to. Needs no GIL. 0 or errno. */
int put_file(const char *path, const char *bytes, size_t length, mode_t mode);

#endif
