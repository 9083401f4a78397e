/* A place: the folder in which runs lie, beside their history. */
#ifndef SW_HISTORY_PLACE_H
#define SW_HISTORY_PLACE_H

#include "history/database.h"

struct sw__place {
    char **
        folder; /* names of the folders in it, last in the alphabet first: that is newest first for runs */
    size_t count, room;
    bool others; /* it holds something else that can be seen */
};

int sw__place_list(struct sw__place *out, const char *path, sw_error_info *info);
void sw__place_free(struct sw__place *place);

/* Reads the runs of a place whose directories are not among the first `known` of `runs`, and adds them. Stops after
 * `most_ns` (0: never). Directories that hold no run, or one that goes on, or that cannot be read, are passed over;
 * `*unreadable` (may be NULL) counts the last. */
int sw__place_gather(const struct sw__place *place, const char *path,
                     struct sw__runs *runs, size_t known, uint64_t most_ns,
                     size_t *unreadable);

/* Splits the path of a run directory: the absolute path of the place, and the name of the directory in it. */
int sw__place_of(const char *directory, char *place, size_t size, char *name,
                 size_t name_size, sw_error_info *info);

#endif
