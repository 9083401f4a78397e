/* The monitors of a run, and what a reader should know of them. */
#include <string.h>

#include "analyze/summary.h"

/* One sentence for each source that had nothing to say: the same in all processes, so it is said once. */
static int note_missing(sw_summary *summary, const sw_monitor *monitor)
{
    int error = SW_OK;
    for (size_t i = 0; i < sw_monitor_seen_count(monitor) && !error; i++) {
        const sw_monitor_seen *seen = sw_monitor_get_seen(monitor, i);
        if (seen->why) {
            error = sw__summary_note(summary, "The monitor sees %s of \"%s\": %s.",
                                     seen->looks ? "only a part" : "nothing", seen->name,
                                     seen->why);
        }
    }
    return error;
}

int sw__summary_monitors(sw_summary *summary)
{
    int error = SW_OK;
    summary->monitors =
        sw__summary_take(summary, summary->traces, sizeof *summary->monitors);
    if (!summary->monitors) {
        return SW_ENOMEM;
    }
    for (size_t i = 0; i < summary->traces && !error; i++) {
        sw_monitor *monitor = NULL;
        error = sw_monitor_of_trace(&monitor, sw_run_trace(summary->source, i), NULL);
        if (error || !monitor) {
            error = error == SW_ENOMEM ? error : SW_OK;
            continue;
        }
        size_t place = summary->monitor_count++;
        summary->monitors[place] = monitor;
        if (summary->has_steps && i == summary->step_trace) {
            memmove(summary->monitors + 1, summary->monitors,
                    place * sizeof *summary->monitors);
            summary->monitors[0] = monitor;
        }
    }
    return error || !summary->monitor_count ? error
                                            : note_missing(summary, summary->monitors[0]);
}

const sw_monitor *sw_summary_monitor(const sw_summary *summary, size_t index)
{
    return index < summary->monitor_count ? summary->monitors[index] : NULL;
}
