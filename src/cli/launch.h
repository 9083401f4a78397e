/* Several `stepwatch run` that a launcher started together (torchrun, mpirun, srun): one run directory for all. */
#ifndef SW_CLI_LAUNCH_H
#define SW_CLI_LAUNCH_H

#include "cli/run_dir.h"
#include "cli/supervise.h"

struct launch {
    bool shared;   /* there are others, and the fields below count */
    bool leads;    /* rank 0 */
    char key[256]; /* what all of them have in common */
    char host
        [128]; /* with the next two: the process that started them, as far as this machine knows */
    long launcher;
    uint64_t launcher_start;
    char marker[PATH_MAX]; /* the file that they agree by */
    char folder[PATH_MAX]; /* where it lies */
    int fd;                /* of the marker; locked while we run */
};

/* Whether a launcher started this process as one of several. */
void launch_find(struct launch *launch);

/* As run_dir_create, for one of several: the first makes the directory, the others find it. */
int launch_join(struct launch *launch, struct run_dir *dir, const char *asked,
                const char *runs, const char *name, sw_error_info *info);

/* Tells how the program ended. True for the last of them, which reports: then `outcome` is that of all together, the code of
 * the first that failed. */
bool launch_leave(struct launch *launch, struct outcome *outcome);

#endif
