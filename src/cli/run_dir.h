/* The directory of a run. */
#ifndef SW_CLI_RUN_DIR_H
#define SW_CLI_RUN_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stepwatch/error.h>

struct run_dir {
    char path[PATH_MAX]; /* absolute */
    char id[64];
    bool made; /* by us, and to be removed when nothing comes of it */
};

/* Makes `asked` or, when that is empty, <UTC time>-<name> in `folder`. */
int run_dir_create(struct run_dir *dir, const char *asked, const char *folder,
                   const char *name, sw_error_info *info);
/* Makes a folder, such as that in which this happens, and gives its absolute path. */
int run_dir_home(const char *folder, char *out, size_t size, sw_error_info *info);
/* Removes it again if it is empty and was made by us. */
void run_dir_discard(const struct run_dir *dir);
/* Whether it holds traces. */
bool run_dir_has_traces(const char *path);

#endif
