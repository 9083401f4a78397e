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

/* Whether a folder can be a place: one that is something else is told from one without runs. */
int sw__place_check(const char *folder, sw_error_info *info);
int sw__place_list(struct sw__place *out, const char *path, sw_error_info *info);
void sw__place_free(struct sw__place *place);

/* Run directories that gave no row. */
struct sw__passed {
    size_t unwanted; /* they go on, or whoever started them wanted them in no history */
    size_t unreadable;
};

/* Reads the runs of a place whose directories are not among the first `known` of `runs`, and adds them. Stops after
 * `most_ns` (0: never); where time matters, runs without a report are left out, for making one may take seconds. `passed` may
 * be NULL. */
int sw__place_gather(const struct sw__place *place, const char *path,
                     struct sw__runs *runs, size_t known, uint64_t most_ns,
                     struct sw__passed *passed);

/* Splits the path of a run directory: the absolute path of the place, and the name of the directory in it. */
int sw__place_of(const char *directory, char *place, size_t size, char *name,
                 size_t name_size, sw_error_info *info);

#endif
