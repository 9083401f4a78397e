/* Rules: several ranks. One that makes the others wait, and the time of collectives. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/hot_code.h"
#include "analyze/rules.h"
#include "analyze/summary.h"

#define COMMUNICATION_LEAST 0.3
/* … where one rank makes the others wait, if they talk for so many times as long as that. */
#define EXCHANGED_TIMES 3.0
#define DDP_LEAST 0.4
#define ADDING_SHARE 0.2             /* of exchanges that nobody needs */
#define ADDING_LEAST 6               /* steps with an update, and without */
#define COMMUNICATION_MANY_LEAST 0.1 /* of collectives that could be one */
#define MANY_COLLECTIVES 8
#define STRAGGLER_LEAST 0.05 /* of the step */
#define STRAGGLER_TIMES 1.2
enum { RANKS_MOST = 64, GROUPS = 12, STEPS_MOST = 20000 };

/* Mean time of each phase in the steps of a rank, with what it may be off. */
struct rank {
    double number; /* as it calls itself */
    size_t trace;
    uint64_t steps;
    double mean[SW_PHASE_COUNT], error[SW_PHASE_COUNT];
    double cpu_ns, delay_ns; /* of a step: it ran, and it was ready to and had no core */
    /* The median step, and where it may lie: what happens now and then does not move it, nor does a busy machine. */
    double median[SW_PHASE_COUNT], low[SW_PHASE_COUNT], high[SW_PHASE_COUNT];
};

/* Times of single steps of a rank, by phase. */
struct times {
    double *ns[SW_PHASE_COUNT];
    size_t count, room;
};

static int by_value(const void *left, const void *right)
{
    const double *a = left;
    const double *b = right;
    return (*a > *b) - (*a < *b);
}

/* The interval of 95 % of a median lies between two of the values: a matter of counting alone. */
static void find_medians(struct rank *rank, struct times *times)
{
    const double n = (double)times->count;
    const double off = 0.98 * sqrt(n);
    const double low = n / 2 - off;
    const double high = n / 2 + off;
    for (unsigned p = 0; p < SW_PHASE_COUNT && times->count >= SW__CASE_LEAST; p++) {
        qsort(times->ns[p], times->count, sizeof(double), by_value);
        rank->median[p] = times->ns[p][times->count / 2];
        rank->low[p] = times->ns[p][low > 0 ? (size_t)low : 0];
        rank->high[p] = times->ns[p][high < n - 1 ? (size_t)high : times->count - 1];
    }
}

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
    struct times times = {.room = total < STEPS_MOST ? (size_t)total : STEPS_MOST};
    bool room = true;
    double cpu = 0;
    double delay = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        times.ns[p] = sw__alloc_zero(times.room + 1, sizeof(double));
        room = room && times.ns[p];
    }
    if (room && total > skipped &&
        sw_cursor_open(&cursor, &trace, 1, &filter, NULL) == SW_OK) {
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
            if (step->usage_steps && step->run_delay_ns != UINT64_MAX) {
                cpu += (double)step->cpu_ns;
                delay += (double)step->run_delay_ns;
            }
            for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
                const double time = (double)step->phase_ticks[p] * ns;
                sum[group][p] += time;
                if (times.count < times.room) {
                    times.ns[p][times.count] = time;
                }
            }
            times.count += times.count < times.room;
        }
        sw_cursor_free(cursor);
    }
    if (room) {
        find_medians(rank, &times);
    }
    rank->cpu_ns = seen ? cpu / (double)seen : 0;
    rank->delay_ns = seen ? delay / (double)seen : 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        sw__free(times.ns[p]);
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

/* By how much a rank is slower in a phase than every other one, if that is sure, on the average or in the median step; 0: it
 * is not. */
static double slower(const struct rank *ranks, size_t count, size_t which, unsigned phase)
{
    double most = 0;
    double most_mean = 0;
    double most_median = 0;
    for (size_t i = 0; i < count; i++) {
        if (i != which) {
            const double high = ranks[i].mean[phase] + ranks[i].error[phase];
            most = high > most ? high : most;
            most_mean =
                ranks[i].mean[phase] > most_mean ? ranks[i].mean[phase] : most_mean;
            most_median =
                ranks[i].high[phase] > most_median ? ranks[i].high[phase] : most_median;
        }
    }
    const struct rank *slow = &ranks[which];
    const bool by_mean = slow->mean[phase] - slow->error[phase] > most &&
                         slow->mean[phase] > STRAGGLER_TIMES * most_mean;
    const bool by_median = slow->low[phase] > most_median &&
                           slow->median[phase] > STRAGGLER_TIMES * most_median;
    return by_mean     ? slow->mean[phase] - most_mean
           : by_median ? slow->median[phase] - most_median
                       : 0;
}

static double others_mean(const struct rank *ranks, size_t count, size_t which,
                          unsigned phase)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += i == which ? 0 : ranks[i].mean[phase];
    }
    return sum / (double)(count - 1);
}

/* What the others wait for in a step. A backward is as much longer than its forward everywhere; where it seems to be longer
 * on a rank that has less to do, it waits there. */
static double waited_for(const struct rank *ranks, size_t count, size_t which,
                         unsigned phase)
{
    const struct rank *slow = &ranks[which];
    const double usual = others_mean(ranks, count, which, phase);
    const double by = slow->mean[phase] - usual;
    if (phase == SW_PHASE_FORWARD && slow->mean[phase] > 0) {
        return by * (1 + (slow->mean[SW_PHASE_BACKWARD] + slow->mean[SW_PHASE_LOSS]) /
                             slow->mean[phase]);
    }
    return by;
}

/* Whether a rank is slow for want of a core: then it has no more to do than the others, and which rank it is, is chance. */
static bool starves(const struct rank *ranks, size_t count, size_t which, double step_ns)
{
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = i != which && ranks[i].cpu_ns > most ? ranks[i].cpu_ns : most;
    }
    return ranks[which].delay_ns > 0.2 * step_ns && ranks[which].cpu_ns < 1.15 * most;
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

/* What the rank whose steps are looked at waits for another, in ns a step; 0: it does not, and may be the one that is waited for. */
static double straggler(sw_findings *all, const struct rank *ranks, size_t count)
{
    double worst = 0;
    size_t which = 0;
    unsigned phase = 0;
    for (size_t i = 0; i < count; i++) {
        for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
            if (p == SW_PHASE_COMMUNICATION || p == SW_PHASE_SYNC ||
                p == SW_PHASE_BACKWARD) {
                continue; /* there the others wait; DDP exchanges gradients in the backward */
            }
            const double by = slower(ranks, count, i, p);
            if (by > worst) {
                worst = by;
                which = i;
                phase = p;
            }
        }
    }
    if (!(worst / all->it.mean_ns > STRAGGLER_LEAST) ||
        starves(ranks, count, which, all->it.mean_ns)) {
        return 0;
    }
    const struct rank *slow = &ranks[which];
    const double usual = others_mean(ranks, count, which, phase);
    const double by = waited_for(ranks, count, which, phase);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_STRAGGLER, "RULE-65");
    draft->group = SW__GROUP_RANKS;
    draft->specific = 1;
    sw__draft_where(all, draft, NULL, 0,
                    sw__findings_format(all, "rank %.0f", slow->number));
    sw__draft_title(
        all, draft,
        "Rank %.0f makes the others wait: phase %s takes it %.1f ms, them %.1f ms",
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
    /* Work that comes with the data is still there when it is dealt out evenly; other work is that rank's alone. */
    const uint64_t dealt =
        SW__COMPUTE_PHASES | SW__BATCH_PHASES | SW__PHASE_BIT(SW_PHASE_DATA_WAIT);
    const double n = (double)count;
    const bool evenly = (dealt & SW__PHASE_BIT(phase)) != 0;
    const struct sw__estimate saved = {.mean = evenly ? by * (n - 1) / n : by,
                                       .low = (worst < by ? worst : by) *
                                              (evenly ? (n - 1) / n : 1),
                                       .high = by + slow->error[phase]};
    sw__draft_saves_in_steps(all, draft, saved, 1, 0.7, 1);
    place_straggler(all, draft, slow, phase);
    /* The others wait for it in collectives. */
    draft->finding.also |= (uint64_t)1 << SW_FINDING_COMMUNICATION;
    return slow->trace == all->it.summary->step_trace ? 0 : by;
}

/* What DDP's own measurements say of one exchange of gradients, in ns. All 0: unknown. */
struct exchange {
    double all, exposed; /* exposed: the backward did not hide it */
};

static struct exchange find_exchange(const sw_findings *all)
{
    const double communication = sw__setting_number(all, "ddp", "avg_backward_comm_time");
    const double overlap =
        sw__setting_number(all, "ddp", "avg_backward_compute_comm_overlap_time");
    struct exchange found = {0};
    if (communication > 0 && overlap >= 0 && communication > overlap) {
        found = (struct exchange){communication, communication - overlap};
    }
    return found;
}

/* Gradients that are added up need one exchange for each update. How many backward passes there are for one, and in a step;
 * and whether each of them exchanges. */
struct adding {
    double passes, passes_a_step;
    bool each;
};

/* Where steps are batches, the backward of those without an update tells whether it exchanges: it is shorter by that, or not.
 * NaN: there are no such steps. */
static double longer_with_update(const sw_findings *all)
{
    double sum[2] = {0}, steps[2] = {0};
    for (size_t i = 0; i < all->it.looked_count; i++) {
        const sw_summary_step *step = &all->it.looked[i];
        if (!step->phase_ns[SW_PHASE_BACKWARD]) {
            continue;
        }
        const bool update = step->phase_ns[SW_PHASE_OPTIMIZER] > 0;
        sum[update] += (double)step->phase_ns[SW_PHASE_BACKWARD];
        steps[update]++;
    }
    return steps[0] >= ADDING_LEAST && steps[1] >= ADDING_LEAST
               ? sum[1] / steps[1] - sum[0] / steps[0]
               : NAN;
}

/* What DDP counts of exchanges: the first ten, and then one in a hundred. */
enum counted { COUNT_UNKNOWN, COUNT_EACH, COUNT_SOME };

/* Whether each of so many backward passes for an update exchanges, by that count. */
static enum counted counted_by_ddp(const sw_findings *all, double updates, double passes)
{
    const double count = sw__setting_number(all, "ddp", "iteration");
    const double each = updates * passes;
    const double seen = each >= 100 ? 100 * floor(each / 100) : fmin(each, 10);
    if (!(count > 0)) {
        return COUNT_UNKNOWN;
    }
    return count > updates + 1  ? COUNT_EACH
           : seen > updates + 1 ? COUNT_SOME
                                : COUNT_UNKNOWN;
}

static struct adding find_adding(const sw_findings *all, double exposed)
{
    const char *name;
    const uint64_t ranks = sw_summary_get_run(all->it.summary)->ranks;
    const double steps = (double)all->it.steps->count;
    const double updates = (double)all->it.steps->updates;
    const double backwards = (double)sw__phase_calls(all, SW_PHASE_BACKWARD, &name) /
                             (double)(ranks > 1 ? ranks : 1) / sw__steps_looked(all);
    struct adding adding = {1, backwards > 1 ? backwards : 1, true};
    if (backwards > 1.9 && backwards < 1e4) {
        adding.passes = backwards; /* a step is an update */
        adding.each = counted_by_ddp(all, steps, backwards) != COUNT_SOME;
        return adding;
    }
    const double longer = longer_with_update(all);
    const double passes = updates > 0 ? steps / updates : 0;
    const enum counted counted = counted_by_ddp(all, updates, passes);
    if (passes > 1.9 && (!isnan(longer) || counted != COUNT_UNKNOWN)) {
        adding.passes = passes;
        adding.each = isnan(longer) ? counted == COUNT_EACH : longer < exposed / 2;
    }
    return adding;
}

/* DDP measures its first ten exchanges, when ranks may still wait for each other. A backward computes at least as long as its
 * forward, as a rule longer: what is left of it is all that exchanges can take, if each has one. */
#define BACKWARD_USUAL 1.5
static struct exchange within_backward(const sw_findings *all, struct exchange exchange,
                                       const struct adding *adding)
{
    const double forward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD)).mean;
    const double backward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD)).mean;
    const double most = (backward - forward) / adding->passes_a_step;
    const double usual = (backward - BACKWARD_USUAL * forward) / adding->passes_a_step;
    if (adding->each && usual > 0) {
        exchange.all = fmin(exchange.all, most);
        exchange.exposed = fmin(exchange.exposed, usual);
    }
    return exchange;
}

/* Each of several backward passes exchanges gradients, of which one has to. */
static void too_often(sw_findings *all, struct sw__draft *draft,
                      const struct exchange *exchange, const struct adding *adding)
{
    sw__draft_number(draft, "backwards_per_update", adding->passes);
    sw__draft_advise(all, draft,
                     "Each of the %.0f backward passes of an update exchanges "
                     "gradients: put all but the last under model.no_sync().",
                     adding->passes);
    /* Threads that exchange while the backward computes take cores from it, unless there are some to spare. */
    const double times = adding->passes_a_step * (1 - 1 / adding->passes);
    const struct sw__estimate saved = {.mean = times *
                                               (exchange->exposed + exchange->all) / 2,
                                       .low = times * exchange->exposed,
                                       .high = times * exchange->all};
    sw__draft_saves_in_steps(all, draft, saved, 1, 0.5, 1);
}

/* What a function of the user's that calls one collective after the other does around them, in ns a step: it goes with the calls. */
static struct sw__estimate around_calls(sw_findings *all,
                                        const struct sw__hot_function *caller)
{
    size_t count;
    const struct sw__hot_function *list =
        sw__hot_functions(all, SW__PHASE_BIT(SW_PHASE_OTHER), SW__HOT_ANY, false, &count);
    for (size_t i = 0; i < count; i++) {
        if (sw__same_function(&list[i].frame, &caller->frame) &&
            !sw__hot_trains(sw__hot_code(all), &caller->frame)) {
            return sw__hot_time(all, list[i].by_phase);
        }
    }
    return (struct sw__estimate){.mean = 0};
}

/* Exchanges, and what is waited for in them, `waited_ns` of a step: that is no part of what they cost, or goes with them at best. */
static void communication(sw_findings *all, double waited_ns)
{
    const uint64_t phase = SW__PHASE_BIT(SW_PHASE_COMMUNICATION);
    const double step = all->it.mean_ns;
    struct sw__estimate share = sw__case_share(&all->it, phase);
    struct sw__estimate time = sw__phase_time(all, phase);
    if (waited_ns > 0 && !(time.mean > EXCHANGED_TIMES * waited_ns)) {
        return; /* What is left of it without the waiting shows once that is gone. */
    }
    share.low -= waited_ns / step;
    time.mean -= waited_ns;
    time.low = fmax(time.low - waited_ns, 0);
    const char *name;
    const struct exchange measured = find_exchange(all);
    const struct adding adding = find_adding(all, measured.exposed);
    const struct exchange exchange = within_backward(all, measured, &adding);
    const bool again = adding.passes > 1.9 && adding.each;
    const double hidden =
        exchange.exposed * (adding.each ? adding.passes_a_step : 1 / adding.passes);
    const double calls = (double)sw__phase_calls(all, SW_PHASE_COMMUNICATION, &name) /
                         (double)all->it.steps->count;
    const bool many = calls >= MANY_COLLECTIVES;
    /* Ranks that wait for cores wait for each other. */
    const double least = (many ? COMMUNICATION_MANY_LEAST : COMMUNICATION_LEAST) *
                         (sw__core_wait(all) > 0.3 ? 2 : 1);
    const bool called = share.low > least;
    /* DDP hides what it can; the rest has to be much, unless it need not be. */
    const double ddp_least = again ? ADDING_SHARE : DDP_LEAST;
    if (!called && !(hidden / step > (least > DDP_LEAST ? least : ddp_least))) {
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
    sw__draft_number(draft, "collectives_per_step", called ? calls : NAN);
    draft->finding.share = time.mean / step;
    draft->finding.confidence = called ? 0.8 : 0.6;
    const struct sw__hot_function *at =
        called ? sw__hot_where_called(all, draft, phase) : NULL;
    if (at && many) {
        sw__draft_advise(all, draft,
                         "%s, line %u of %s, calls %.0f collectives in a step: put the "
                         "tensors into one and send that, or let "
                         "DistributedDataParallel do it.",
                         at->frame.name, at->frame.line, sw__file_name(at->frame.file),
                         calls);
    }
    if (again && !called) {
        too_often(all, draft, &exchange, &adding);
        return;
    }
    sw__draft_advise(all, draft,
                     "Exchange gradients less often: accumulate four steps under "
                     "model.no_sync(), or use larger batches.");
    sw__draft_advise(all, draft,
                     "Compress gradients to bfloat16 (a DDP communication hook), or use "
                     "larger buckets.");
    /* A few calls instead of many: each costs a meeting of all ranks. */
    const double few = calls > 40 ? 1 - 4 / calls : 0.9;
    if (at && many) {
        const struct sw__estimate around = around_calls(all, at);
        sw__draft_number(draft, "around_collectives_ms", around.mean / 1e6);
        time.mean += around.mean;
        time.high += around.high;
    }
    sw__draft_saves_in_steps(all, draft, time, many ? few : 0.7, many ? 0.5 : 0.3,
                             many ? 0.99 : 0.9);
}

void sw__rules_ranks(sw_findings *all)
{
    struct rank *ranks = sw__alloc_zero(RANKS_MOST + 1, sizeof *ranks);
    if (!ranks) {
        all->failed = true;
        return;
    }
    const size_t count = read_ranks(all->it.summary, ranks);
    double waited_ns = 0;
    if (count < 2) {
        sw__findings_unchecked(all, SW_FINDING_STRAGGLER,
                               "steps of one rank alone were recorded");
    } else {
        waited_ns = straggler(all, ranks, count);
    }
    if (!(waited_ns > 0) && sw_summary_get_run(all->it.summary)->ranks < 2 &&
        !all->it.steps->phase[SW_PHASE_COMMUNICATION].measured) {
        sw__findings_unchecked(all, SW_FINDING_COMMUNICATION,
                               "there is one rank, which has nobody to talk to");
    } else {
        communication(all, waited_ns);
    }
    sw__free(ranks);
}
