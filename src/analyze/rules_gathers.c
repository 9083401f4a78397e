/* Rules: work on the batch that is no more than picking rows of tensors in memory, by a program that has no loader. Somebody has to
 * pick them, and that takes as long as memory does: a loader, its workers and the copy between processes would be written for
 * it, so it is a remark. */
#include <string.h>

#include "analyze/frame_source.h"
#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/source_gathers.h"
#include "analyze/summary.h"

/* Of the work that is told. */
#define GATHERS_LEAST 0.8

static bool only_gathers(const sw_stack_frame *at)
{
    struct sw__frame_source source = sw__frame_source(at);
    const bool only =
        source.text && sw__source_only_gathers(source.text, source.length, at->line);
    sw__frame_source_free(&source);
    return only;
}

/* Samples of the work on batches that lie in lines which only pick rows. */
static double gathered(sw_findings *all)
{
    const struct sw__hot *hot = sw__hot_code(all);
    const uint64_t phases = SW__BATCH_PHASES | SW__PHASE_BIT(SW_PHASE_OTHER);
    double samples = 0;
    for (size_t i = 0; i < hot->count; i++) {
        const struct sw__hot_line *line = &hot->lines[i];
        if (!line->outside && line->phase >= 0 && line->phase < SW_PHASE_COUNT &&
            phases & SW__PHASE_BIT(line->phase) && line->when != SW__HOT_AFTER &&
            only_gathers(line->frame)) {
            samples += (double)line->samples;
        }
    }
    return samples;
}

void sw__rules_gathers(sw_findings *all)
{
    if (all->it.loader || sw__has_device(all)) {
        return;
    }
    for (struct sw__draft *draft = all->first; draft; draft = draft->next) {
        sw_finding *finding = &draft->finding;
        if (finding->kind != SW_FINDING_LOADER_MAIN_PROCESS) {
            continue;
        }
        for (size_t i = 0; i < finding->evidence_count; i++) {
            if (strcmp(finding->evidence[i].name, "samples") == 0 &&
                gathered(all) >= GATHERS_LEAST * finding->evidence[i].value) {
                finding->severity = SW_SEVERITY_LOW;
            }
        }
    }
}
