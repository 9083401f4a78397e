/* What follows from comparing the runs of a place with each other. */
#ifndef SW_HISTORY_RELATIONS_H
#define SW_HISTORY_RELATIONS_H

#include "history/database.h"

/* Newest first; runs whose start is not known come last. */
void sw__runs_sort(struct sw__runs *runs);
/* Whether a run is worth comparing others with: it came to its end, or at least to steps. */
bool sw__run_counts(const sw_history_run *run);

struct sw__trends {
    sw_history_trend *trend;
    size_t count;
};
/* Fills in `best`, `previous` and `change` of sorted runs, and gives the trends. Everything lies in the arena of the runs. */
int sw__runs_relate(struct sw__runs *runs, struct sw__trends *trends);

#endif
