/* How a run that has just ended compares with the one before it. */
#include <stdio.h>
#include <string.h>

#include <stepwatch/compare.h>
#include <stepwatch/history.h>

#include "cli/cli.h"
#include "cli/look.h"
#include "cli/run_results.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

/* A run that cannot be compared is none that anybody asked about: silence. */
void run_compare_previous(const struct run_dir *dir, const sw_summary *now,
                          sw_writer *writer, bool ascii, size_t columns)
{
    sw_history_earlier earlier;
    sw_run *run = NULL;
    sw_summary *before = NULL;
    sw_comparison *comparison = NULL;
    char sentence[600];
    if (!sw_summary_get_steps(now) ||
        sw_history_previous(dir->path, &earlier, NULL) != SW_OK ||
        cli_summarise(earlier.directory, &run, &before, NULL) != SW_OK) {
        return;
    }
    if (sw_summary_get_steps(before) &&
        sw_compare_summaries(&comparison, before, now, NULL, NULL) == SW_OK &&
        sw_comparison_sentence(comparison, 0, ascii, sentence, sizeof sentence) > 0) {
        char text[sizeof sentence + 400];
        snprintf(text, sizeof text, "Against the previous run (%.255s%s): %s.",
                 last_part(earlier.directory),
                 earlier.same_arguments ? "" : ", other arguments", sentence);
        look_wrap(writer, text, columns);
    }
    sw_comparison_free(comparison);
    sw_summary_free(before);
    sw_run_free(run);
}
