/* A file that is there whole or not at all: it is written beside the old one and takes its place at the end. */
#ifndef SW_CLI_OUT_FILE_H
#define SW_CLI_OUT_FILE_H

#include <limits.h>
#include <stepwatch/error.h>
#include <stepwatch/write.h>

struct out_file {
    int fd;
    const char *shown;        /* what messages call it */
    char path[PATH_MAX];      /* where it should be; empty: written in place */
    char meanwhile[PATH_MAX]; /* where it is until then */
};

/* Begins the file. NULL and "-" are stdout; devices and pipes are written as they are. 0 or an error, with a sentence. */
int out_file_open(struct out_file *file, const char *path, sw_error_info *info);
/* Puts the file in its place. Either call ends it. */
int out_file_close(struct out_file *file, sw_error_info *info);
void out_file_discard(struct out_file *file);

/* Writes what `write` gives to such a file, from begin to end. Complains where something fails, and returns the exit code. A reader
 * of a pipe who has seen enough is no failure. `write` returns 0 or an error, with a sentence. */
int out_file_write(const char *path,
                   int (*write)(sw_writer *writer, const void *context,
                                sw_error_info *info),
                   const void *context);

#endif
