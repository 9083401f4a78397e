/* What samplers saw and profilers counted, and what a reader should know before believing it. */
#include <stepwatch/write.h>

#include "analyze/summary.h"

/* More looks than this given up, in hundredths, are worth a sentence. */
#define GIVEN_UP_PERCENT 1

int sw__summary_samples(sw_summary *summary)
{
    int error = sw_stacks_of_run(&summary->stacks, summary->source, NULL);
    if (error) {
        return error;
    }
    const sw_stacks_totals *totals = sw_stacks_get_totals(summary->stacks);
    char count[32];
    char looks[32];
    if (totals->damaged) {
        sw_text_count(count, totals->damaged);
        error = sw__summary_note(
            summary,
            "Samples are left out (%s), for their stacks are damaged in the file.",
            count);
    }
    const double share =
        totals->looks ? (double)totals->given_up / (double)totals->looks : 0;
    if (!error && share * 100 > GIVEN_UP_PERCENT) {
        sw_text_count(count, totals->given_up);
        sw_text_count(looks, totals->looks);
        error = sw__summary_note(summary,
                                 "The sampler gave up %s of its %s looks (%.1f %%), for "
                                 "the stacks changed while "
                                 "they were read; shares are those of the others.",
                                 count, looks, share * 100);
    }
    if (totals->samplers == 0) {
        sw_stacks_free(summary->stacks);
        summary->stacks = NULL;
    }
    return error;
}

int sw__summary_profiles(sw_summary *summary)
{
    int error = sw_functions_of_run(&summary->functions, summary->source, NULL);
    if (!error && sw_functions_count(summary->functions) == 0) {
        sw_functions_free(summary->functions);
        summary->functions = NULL;
    }
    error = error ? error : sw_lines_of_run(&summary->lines, summary->source, NULL);
    if (!error && sw_lines_count(summary->lines) == 0) {
        sw_lines_free(summary->lines);
        summary->lines = NULL;
    }
    return error;
}
