/* A file of /proc or /sys that stays open: reading it again costs a microsecond, opening it ten. */
#ifndef SW_WATCH_PROC_FILE_H
#define SW_WATCH_PROC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sw__proc_file {
    int fd; /* -1: not open */
    dev_t device;
    ino_t inode;
    unsigned place; /* among those that are open */
};

/* Opens `root` + `path`. 0, or a negative sw_error with a sentence in `why` (may be NULL). */
int sw__proc_open(struct sw__proc_file *file, const char *root, const char *path,
                  char *why, size_t size);
/* Reads it from its beginning, NUL-terminated and cut to the buffer: bytes, or -errno. */
int sw__proc_read(const struct sw__proc_file *file, char *to, size_t size);
/* What was read so in all, and what was read otherwise for the same purpose: no work of the program's. */
void sw__proc_own_reads(uint64_t *calls, uint64_t *bytes);
void sw__proc_own_add(uint64_t calls, uint64_t bytes);
/* Closes it, unless the program has closed that descriptor and another file has its number now. */
void sw__proc_close(struct sw__proc_file *file);
/* In a forked child: closes all that are open here, and touches nothing else. */
void sw__proc_close_all(void);

#endif
