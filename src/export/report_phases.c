/* The phases of a step as all reports list them. */
#include <stdio.h>

#include "analyze/shares.h"
#include "export/report_parts.h"

size_t sw__phase_lines(const sw_summary_steps *steps,
                       struct sw__phase_line out[SW_PHASE_COUNT])
{
    uint64_t amounts[SW_PHASE_COUNT];
    uint64_t tenths[SW_PHASE_COUNT];
    size_t count = 0;
    if (steps->counted == 0) {
        return 0;
    }
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        amounts[p] = steps->phase[p].total_ns;
    }
    sw__shares(amounts, SW_PHASE_COUNT, 1000, tenths);
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        if (!steps->phase[p].measured || amounts[p] == 0) {
            continue;
        }
        size_t at = count++;
        for (; at > 0 && out[at - 1].total_ns < amounts[p]; at--) {
            out[at] = out[at - 1];
        }
        out[at] = (struct sw__phase_line){.phase = p,
                                          .total_ns = amounts[p],
                                          .mean_ns =
                                              (double)amounts[p] / (double)steps->counted,
                                          .tenths = (unsigned)tenths[p]};
    }
    return count;
}

bool sw__phases_note(const sw_summary_steps *steps, char *out, size_t size)
{
    char looked[32], counted[32];
    if (steps->looked >= steps->counted) {
        return false;
    }
    sw_text_count(looked, steps->looked);
    sw_text_count(counted, steps->counted);
    snprintf(
        out, size,
        "Phases are of %s%s of %s steps that were looked at in full; the others were "
        "watched in brief (option brief).",
        steps->thinned ? "about " : "", looked, counted);
    return true;
}
