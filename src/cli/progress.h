/* One line about the steps of a running program, on a terminal. */
#ifndef SW_CLI_PROGRESS_H
#define SW_CLI_PROGRESS_H

#include <stdbool.h>

struct progress;

/* For the run in a directory; NULL when there is no terminal to show it on. */
struct progress *progress_start(const char *run_dir);
/* About once a second. */
void progress_tick(struct progress *progress);
/* Takes the line away: the program stops, or has ended. The next tick may show it again. */
void progress_pause(struct progress *progress);
void progress_free(struct progress *progress); /* NULL is fine */

#endif
