/* A whole file in memory. */
#ifndef SW_ANALYZE_FILE_LOAD_H
#define SW_ANALYZE_FILE_LOAD_H

#include <stddef.h>
#include <stepwatch/error.h>

/* Reads a regular file of at most `most_mib` MiB. The caller frees `*bytes` with sw__free, also after an error. */
int sw__file_load(const char *path, size_t most_mib, char **bytes, size_t *length,
                  sw_error_info *info);

#endif
