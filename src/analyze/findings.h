/* Findings while they are being made: rules draft them here. */
#ifndef SW_ANALYZE_FINDINGS_H
#define SW_ANALYZE_FINDINGS_H

#include <stepwatch/findings.h>

#include "analyze/case.h"
#include "base/memory.h"

/* Findings of one group explain the same time: one of them is told, the others are named in `also`. In a group the most
 * specific one wins, among equals the one that gains most. */
enum sw__finding_group {
    SW__GROUP_NONE, /* by itself */
    SW__GROUP_LOADER,
    SW__GROUP_COMPUTE,
    SW__GROUP_HOST,
    SW__GROUP_AFTER, /* what comes after the backward */
    SW__GROUP_CPU,
    SW__GROUP_RANKS,
    SW__GROUP_GC,
    SW__GROUP_MEMORY
};

struct sw__draft {
    sw_finding finding;
    enum sw__finding_group group;
    int specific; /* higher wins within its group */
    bool apart;   /* in some steps only: the others show what they take without */
    struct sw__draft *next;
};

struct sw__hot;

struct sw_findings {
    sw__arena *arena;
    struct sw__case it;
    struct sw__hot *hot; /* of hot_code.h; NULL until somebody asks */
    struct sw__draft *first;
    sw_finding *list;
    size_t count;
    const char *bound;
    const char *unchecked[SW_FINDING_KINDS]; /* why; NULL: it was checked */
    struct sw__finding_note {
        struct sw__finding_note *next;
        const char *text;
    } * first_note;
    bool failed; /* memory ran out: no finding is better than half a one */
};

/* A new draft with its rule; never NULL: where memory is short a scratch one is given, and `failed` is set. */
struct sw__draft *sw__draft(sw_findings *all, enum sw_finding_kind kind,
                            const char *rule);
void sw__draft_rule(struct sw__draft *draft, const char *rule);
void sw__draft_title(sw_findings *all, struct sw__draft *draft, const char *format, ...)
    SW_PRINTF(3, 4);
void sw__draft_advise(sw_findings *all, struct sw__draft *draft, const char *format, ...)
    SW_PRINTF(3, 4);
/* `name` is a literal. */
void sw__draft_number(struct sw__draft *draft, const char *name, double value);
/* Strings are copied; NULL and 0 are fine. */
void sw__draft_where(sw_findings *all, struct sw__draft *draft, const char *file,
                     uint32_t line, const char *name);
/* The change saves `saved_ns` of the base time, between `low_ns` and `high_ns`; sets the prediction, and severity by what it
 * gains: critical from 50 % of the time, high from 20 %, medium from 10 %. What the rest gains by it, and how runs differ, is
 * added here. */
void sw__draft_saves(sw_findings *all, struct sw__draft *draft, double saved_ns,
                     double low_ns, double high_ns);
/* The same, where the run takes `least_ns` in any case. */
void sw__draft_saves_down_to(sw_findings *all, struct sw__draft *draft, double saved_ns,
                             double low_ns, double high_ns, double least_ns);
/* What is saved in each step that counts, in ns, over all of them. */
double sw__saved_per_step(const sw_findings *all, double ns);

void sw__findings_unchecked(sw_findings *all, enum sw_finding_kind kind,
                            const char *format, ...) SW_PRINTF(3, 4);
void sw__findings_note(sw_findings *all, const char *format, ...) SW_PRINTF(2, 3);
const char *sw__findings_format(sw_findings *all, const char *format, ...)
    SW_PRINTF(2, 3);

/* The rules, by what they look at. Each adds drafts, notes, and says which kinds it could not check. */
void sw__rules_loader(sw_findings *all); /* loader_* */
void sw__rules_compute(
    sw_findings *
        all); /* slow_module, optimizer, dtype, recompile, launch_bound, amp, redundant_work */
void sw__rules_host(
    sw_findings *
        all); /* python_overhead, logging, gc, host_sync, transfer, loader_main_process */
void sw__rules_gathers(sw_findings *all); /* what of loader_main_process is little */
void sw__rules_aside(sw_findings *all);   /* validation, checkpoint, variance */
void sw__rules_machine(
    sw_findings *all); /* cpu_*, memory_*, gpu_throttle, straggler, communication */
/* dtype: of NumPy's arrays. After all others: it is told where nothing else is. */
void sw__rules_wide_arrays(sw_findings *all);
void sw__rules_notes(sw_findings *all); /* what bounds the run, and remarks */

#endif
