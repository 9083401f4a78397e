/* Findings that tests compose over the summary of a run. */
#ifndef FINDINGS_FIXTURE_H
#define FINDINGS_FIXTURE_H

#include "analyze/findings.h"

/* What rules find by themselves is set aside: a test knows what it drafts. */
static inline sw_findings *findings_empty(const sw_summary *summary)
{
    sw_findings *all;
    assert_int_equal(sw_findings_of_summary(&all, summary, NULL), 0);
    all->first = NULL;
    all->first_note = NULL;
    all->list = NULL;
    all->count = 0;
    all->bound = NULL;
    for (unsigned i = 0; i < SW_FINDING_KINDS; i++) {
        all->unchecked[i] = NULL;
    }
    return all;
}

/* Makes the drafts the list, in the order in which they were drafted. */
static inline void findings_list(sw_findings *all)
{
    size_t count = 0;
    for (const struct sw__draft *draft = all->first; draft; draft = draft->next) {
        count++;
    }
    all->list =
        sw__arena_take(all->arena, (count + 1) * sizeof *all->list, _Alignof(sw_finding));
    assert_non_null(all->list);
    all->count = count;
    for (const struct sw__draft *draft = all->first; draft; draft = draft->next) {
        all->list[--count] = draft->finding; /* the newest draft comes first */
        all->list[count].id = sw_finding_kind_name(draft->finding.kind);
    }
}

/* A finding with everything, one with the least, and remarks. */
static inline sw_findings *findings_example(const sw_summary *summary)
{
    sw_findings *all = findings_empty(summary);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_LOADER_WORKERS, "RULE-02");
    sw__draft_rule(draft, "RULE-03");
    draft->finding.also =
        (uint64_t)1 << SW_FINDING_LOADER_COLLATE | (uint64_t)1 << SW_FINDING_VARIANCE;
    sw__draft_title(all, draft, "38 %% of each step waits for data");
    sw__draft_where(all, draft, "/home/user/train.py", 31, "main");
    sw__draft_advise(all, draft, "Set num_workers=2 in DataLoader (train.py:31).");
    sw__draft_advise(all, draft, "Keep the workers: persistent_workers=True.");
    sw__draft_number(draft, "wait_share", 0.38);
    sw__draft_number(draft, "batches_per_s", NAN);
    draft->finding.severity = SW_SEVERITY_HIGH;
    draft->finding.confidence = 0.9;
    draft->finding.share = 0.38;
    draft->finding.predicted = true;
    draft->finding.step_ns = 5500000;
    draft->finding.speedup = 1.5;
    draft->finding.low = 1.25;
    draft->finding.high = 1.75;

    draft = sw__draft(all, SW_FINDING_GC, NULL);
    sw__draft_title(all, draft, "Collections of garbage take time");
    findings_list(all);

    all->bound = "data: 38 % of a step waits for batches";
    sw__findings_unchecked(all, SW_FINDING_GPU_THROTTLE, "there is no device");
    sw__findings_note(all, "The steps are short.");
    return all;
}

#endif
