/* Findings about loaders, as they are begun and weighed. */
#include "analyze/rules.h"
#include "analyze/rules_loader.h"

struct sw__draft *sw__loader_draft(sw_findings *all, enum sw_finding_kind kind,
                                   const char *rule, enum sw__loader_specific specific)
{
    struct sw__draft *draft = sw__draft(all, kind, rule);
    draft->group = SW__GROUP_LOADER;
    draft->specific = specific;
    return draft;
}

void sw__loader_draft_saves(sw_findings *all, struct sw__draft *draft,
                            const struct sw__replay_range *range)
{
    const double all_ns = (double)all->it.steps->total_ns;
    sw__draft_saves_down_to(all, draft, range->mean * all_ns, range->low * all_ns,
                            range->high * all_ns, range->least * all_ns);
    const bool little = draft->finding.severity == SW_SEVERITY_MEDIUM;
    const bool much = draft->finding.severity == SW_SEVERITY_HIGH;
    const bool alone = !all->it.loader || all->it.loader->worker_count == 0;
    /* Little, and maybe nothing; and where others than the loader's workers have the cores, what looks like more may be nothing,
     * too. */
    if ((little && range->low <= 0) || ((little || much) && draft->finding.low <= 1 &&
                                        alone && sw__core_wait(all) > SW__LOADER_BUSY)) {
        draft->finding.severity = SW_SEVERITY_LOW;
    }
}

struct sw__replay_range sw__loader_cheaper(const sw_findings *all,
                                           const struct sw__loader_facts *facts,
                                           double share)
{
    share = share < 1 ? share : 1;
    const struct sw__loader_change change = {
        .workers = facts->workers,
        .prefetch = facts->prefetch,
        .make_scale = {1 - share * 0.5, 1 - share * 0.9, 1 - share}};
    return sw__loader_saves(all, facts, &change);
}
