/* Rules: several ranks. One that makes the others wait, and the time of collectives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define COMMUNICATION_LEAST 0.1
#define MANY_COLLECTIVES 8
#define STRAGGLER_LEAST 0.05 /* of the step */
#define STRAGGLER_TIMES 1.2
enum { RANKS_MOST = 64, GROUPS = 12 };

/* Mean time of each phase in the steps of a rank, with what it may be off. */
struct rank {
    double number; /* as it calls itself */
    size_t trace;
    uint64_t steps;
    double mean[SW_PHASE_COUNT], error[SW_PHASE_COUNT];
};

/* Steps of a trace are dealt to groups in order; means of groups give the spread. The first tenth is left out as warm-up. */
static void read_rank(sw_trace *trace, struct rank *rank)
{
    double sum[GROUPS][SW_PHASE_COUNT] = {{0}};
    uint64_t counts[GROUPS] = {0};
    uint64_t total = 0;
    for (size_t i = 0; i < sw_trace_lane_count(trace); i++) {
        total = sw__add(total, sw_trace_get_lane(trace, i)->steps);
    }
    const uint64_t skipped = total / 10 + 1;
    const double ns = sw_trace_ns_per_tick(trace);
    sw_cursor *cursor = NULL;
    const sw_cursor_filter filter = {.kinds = 1u << SW_RECORD_STEP};
    uint64_t seen = 0;
    if (total > skipped && sw_cursor_open(&cursor, &trace, 1, &filter, NULL) == SW_OK) {
        sw_event event;
        while (sw_cursor_next(cursor, &event) == SW_OK) {
            const sw_record_step *step =
                (const sw_record_step *)(const void *)event.record;
            if (seen++ < skipped || event.record->flags & SW_STEP_INCOMPLETE) {
                continue;
            }
            const size_t group =
                (size_t)((seen - skipped) * GROUPS / (total - skipped + 1));
            if (group >= GROUPS) {
                break;
            }
            counts[group]++;
            for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
                sum[group][p] += (double)step->phase_ticks[p] * ns;
            }
        }
        sw_cursor_free(cursor);
    }
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        double all = 0;
        double squares = 0;
        double groups = 0;
        rank->steps = 0;
        for (size_t g = 0; g < GROUPS; g++) {
            all += sum[g][p];
            rank->steps += counts[g];
        }
        rank->mean[p] = rank->steps ? all / (double)rank->steps : 0;
        for (size_t g = 0; g < GROUPS; g++) {
            if (counts[g]) {
                const double off = sum[g][p] / (double)counts[g] - rank->mean[p];
                squares += off * off;
                groups++;
            }
        }
        rank->error[p] =
            groups > 2 ? 2.2 * sqrt(squares / (groups - 1) / groups) : INFINITY;
    }
}

static double rank_number(const sw_trace *trace)
{
    const char *text = sw_trace_fact(trace, "rank");
    text = text ? text : sw_trace_fact(trace, "env.RANK");
    char *end = NULL;
    const double number = text ? strtod(text, &end) : NAN;
    return text && end != text ? number : NAN;
}

static size_t read_ranks(const sw_summary *summary, struct rank *ranks)
{
    size_t count = 0;
    for (size_t i = 0; i < summary->traces && count < RANKS_MOST; i++) {
        sw_trace *trace = sw_run_trace(summary->source, i);
        const double number = rank_number(trace);
        if (isnan(number)) {
            continue;
        }
        ranks[count] = (struct rank){.number = number, .trace = i};
        read_rank(trace, &ranks[count]);
        count += ranks[count].steps >= SW__CASE_LEAST;
    }
    return count;
}

/* By how much a rank is surely slower in a phase than every other one; 0: it is not. */
static double slower(const struct rank *ranks, size_t count, size_t which, unsigned phase,
                     double *others)
{
    double most = 0;
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != which) {
            const double high = ranks[i].mean[phase] + ranks[i].error[phase];
            most = high > most ? high : most;
            sum += ranks[i].mean[phase];
        }
    }
    *others = sum / (double)(count - 1);
    const double low = ranks[which].mean[phase] - ranks[which].error[phase];
    return low > STRAGGLER_TIMES * most ? low - most : 0;
}

/* What the slow rank does there is known if it is the one whose steps are looked at. What else explains that time is of the
 * same group. */
static void place_straggler(sw_findings *all, struct sw__draft *draft,
                            const struct rank *slow, unsigned phase)
{
    if (slow->trace != all->it.summary->step_trace) {
        return;
    }
    (void)sw__hot_where_called(all, draft, SW__PHASE_BIT(phase));
    for (struct sw__draft *other = all->first; other; other = other->next) {
        const enum sw_finding_kind kind = other->finding.kind;
        if (phase == SW_PHASE_OTHER &&
            (kind == SW_FINDING_PYTHON_OVERHEAD || kind == SW_FINDING_LOGGING ||
             kind == SW_FINDING_LOADER_MAIN_PROCESS || kind == SW_FINDING_VARIANCE)) {
            other->group = SW__GROUP_RANKS;
            if (other->finding.predicted &&
                !(other->finding.speedup < draft->finding.speedup)) {
                /* Samples know better than the difference of means what that code takes. */
                draft->finding.predicted = true;
                draft->finding.speedup = other->finding.speedup;
                draft->finding.low = other->finding.low;
                draft->finding.high = other->finding.high;
                draft->finding.step_ns = other->finding.step_ns;
                draft->finding.severity = other->finding.severity;
            }
        }
    }
}

static bool straggler(sw_findings *all, const struct rank *ranks, size_t count)
{
    double worst = 0;
    double usual = 0;
    size_t which = 0;
    unsigned phase = 0;
    for (size_t i = 0; i < count; i++) {
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            if (p == SW_PHASE_COMMUNICATION || p == SW_PHASE_SYNC) {
                continue; /* there the others wait */
            }
            double others;
            const double by = slower(ranks, count, i, p, &others);
            if (by > worst) {
                worst = by;
                usual = others;
                which = i;
                phase = p;
            }
        }
    }
    if (!(worst / all->it.mean_ns > STRAGGLER_LEAST)) {
        return false;
    }
    const struct rank *slow = &ranks[which];
    const double by = slow->mean[phase] - usual;
    struct sw__draft *draft = sw__draft(all, SW_FINDING_STRAGGLER, "RULE-65");
    draft->group = SW__GROUP_RANKS;
    draft->specific = 1;
    sw__draft_where(all, draft, NULL, 0,
                    sw__findings_format(all, "rank %.0f", slow->number));
    sw__draft_title(
        all, draft,
        "Rank %.0f makes the others wait: its %s takes %.1f ms, theirs %.1f ms",
        slow->number, sw_phase_name(phase), slow->mean[phase] / 1e6, usual / 1e6);
    sw__draft_number(draft, "rank", slow->number);
    sw__draft_number(draft, "ranks", (double)count);
    sw__draft_number(draft, "phase_ms", slow->mean[phase] / 1e6);
    sw__draft_number(draft, "others_ms", usual / 1e6);
    draft->finding.share = by / all->it.mean_ns;
    draft->finding.confidence = 0.8;
    sw__draft_advise(
        all, draft,
        "Find out why %s takes longer on rank %.0f: more or longer samples, a "
        "slower disk, work that only this rank does.",
        sw_phase_name(phase), slow->number);
    const struct sw__estimate saved = {
        .mean = by, .low = worst, .high = by + slow->error[phase]};
    sw__draft_saves_in_steps(all, draft, saved, 1, 0.7, 1);
    place_straggler(all, draft, slow, phase);
    /* The others wait for it in collectives. */
    draft->finding.also |= (uint64_t)1 << SW_FINDING_COMMUNICATION;
    return true;
}

/* Communication that DDP did not hide behind the backward, in ns a step, by its own measurements; 0: unknown. */
static double ddp_exposed(const sw_findings *all)
{
    const double communication = sw__setting_number(all, "ddp", "avg_backward_comm_time");
    const double overlap =
        sw__setting_number(all, "ddp", "avg_backward_compute_comm_overlap_time");
    return communication > 0 && overlap >= 0 && communication > overlap
               ? communication - overlap
               : 0;
}

static void communication(sw_findings *all)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_COMMUNICATION);
    const struct sw__estimate share = sw__case_share(&all->it, phase);
    struct sw__estimate time = sw__phase_time(all, phase);
    const double hidden = ddp_exposed(all);
    const double step = all->it.mean_ns;
    const bool called = share.low > COMMUNICATION_LEAST;
    if (!called && !(hidden / step > COMMUNICATION_LEAST)) {
        return;
    }
    if (!called) {
        time = (struct sw__estimate){
            .mean = hidden, .low = 0.7 * hidden, .high = 1.2 * hidden};
    }
    struct sw__draft *draft = sw__draft(all, SW_FINDING_COMMUNICATION, "RULE-65");
    sw__draft_rule(draft, "RULE-24");
    draft->group = SW__GROUP_RANKS;
    sw__draft_title(all, draft, "%.0f %% of a step is communication between ranks%s",
                    100 * time.mean / step,
                    called ? "" : " that the backward does not hide");
    sw__draft_number(draft, "communication_ms", time.mean / 1e6);
    sw__draft_number(draft, "communication_share", time.mean / step);
    sw__draft_number(draft, "ranks", (double)sw_summary_get_run(all->it.summary)->ranks);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = called ? 0.8 : 0.6;
    sw__draft_advise(all, draft,
                     "Exchange gradients less often: accumulate four steps under "
                     "model.no_sync(), or use larger batches.");
    sw__draft_advise(all, draft,
                     "Compress gradients to bfloat16 (a DDP communication hook), or use "
                     "larger buckets.");
    sw__draft_saves_in_steps(all, draft, time, calls >= MANY_COLLECTIVES ? 0.8 : 0.7, 0.3,
                             calls >= MANY_COLLECTIVES ? 0.98 : 0.9);
}

void sw__rules_ranks(sw_findings *all)
{
    struct rank *ranks = sw__alloc_zero(RANKS_MOST + 1, sizeof *ranks);
    if (!ranks) {
        all->failed = true;
        return;
    }
    const size_t count = read_ranks(all->it.summary, ranks);
    bool waits = false;
    if (count < 2) {
        sw__findings_unchecked(all, SW_FINDING_STRAGGLER,
                               "steps of one rank alone were recorded");
    } else {
        waits = straggler(all, ranks, count);
    }
    if (waits) {
        /* What is left of communication without the waiting shows once that is gone. */
    } else if (sw_summary_get_run(all->it.summary)->ranks < 2 &&
               !all->it.steps->phase[SW_PHASE_COMMUNICATION].measured) {
        sw__findings_unchecked(all, SW_FINDING_COMMUNICATION,
                               "there is one rank, which has nobody to talk to");
    } else {
        communication(all);
    }
    sw__free(ranks);
}
