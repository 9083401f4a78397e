/* What a run leaves: files in its directory, and words on stderr. */
#ifndef SW_CLI_RUN_RESULTS_H
#define SW_CLI_RUN_RESULTS_H

#include <stdbool.h>
#include <stepwatch/write.h>

#include "cli/run_dir.h"
#include "cli/run_origin.h"
#include "cli/supervise.h"

struct run_results {
    const struct run_dir *dir;
    const struct outcome *outcome;
    const struct run_origin *origin;
    const char *name;       /* of the run */
    char *const *command;   /* what was started, ends with NULL */
    const char *shown_name; /* what the user calls it */
    bool python;            /* it is a Python */
    bool told;              /* that nothing will be recorded has been said already */
    bool report;
    bool history;
    bool functions; /* a function profile was asked for */
};

void run_results_leave(const struct run_results *results);

/* Says on stderr how the run compares with the previous one of the same program, if there is one in the history. */
void run_compare_previous(const struct run_dir *dir, const sw_summary *now,
                          sw_writer *writer, bool ascii, size_t columns);

#endif
