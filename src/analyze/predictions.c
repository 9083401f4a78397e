/* What a change gains: from the time that it saves to a speed-up with its range. */
#include <math.h>

#include "analyze/rules.h"

double sw__saved_per_step(const sw_findings *all, double ns)
{
    return ns * (double)all->it.steps->counted;
}

/* What a page costs that the kernel has to give out again, and the share of the time from which on that is much. */
#define FAULT_NS 2e3
#define FAULTS_LEAST 0.02
/* A change never saves all of it. */
#define SAVED_MOST 0.998
/* Two runs of one program on one machine differ by so much. */
#define RUNS_DIFFER 0.07
/* A speed-up below this, of which the range holds none at all, shows little. */
#define DOUBTFUL 1.15
/* What is taken out of the training thread has also driven the rest from the caches, and its memory from the allocator: steps
 * right after a validation or a checkpoint take some percent longer than others. So the rest gets faster too, by so much of the
 * share that was taken out; more where the thread slept meanwhile, for its core then slows down, and others use it. One that
 * sleeps most of the time gets no slower: `until`. */
struct relief {
    double usual, most, until;
};

/* Whether steps pay for memory that the allocator gives back and takes again. True also where that is not known. */
static bool takes_memory_again(const sw_findings *all)
{
    const struct sw__case *it = &all->it;
    double faults = 0, steps = 0;
    for (size_t i = 0; i < it->count; i++) {
        faults += (double)it->step[i].minor_faults;
        steps += (double)it->step[i].usage_steps;
    }
    return !(steps > 0) || faults / steps * FAULT_NS > FAULTS_LEAST * it->mean_ns;
}

/* Where the allocator keeps what the steps need, a change may make that worse: batches that are made in another way leave other gaps in
 * the heap. Of recorded programs of that kind the rest of about half got faster, and of the others it did not. */
static struct relief of_batches(const sw_findings *all, struct relief relief)
{
    relief.usual *= takes_memory_again(all) ? 1 : 0.5;
    return relief;
}

static struct relief relief_of(const sw_findings *all, const struct sw__draft *draft)
{
    static const struct relief none = {0, 0.1, 1}, less = {0.15, 0.4, 1},
                               asleep = {0.3, 0.5, 0.6},
                               seldom = {0, 0.4, 1}; /* now and then */
    if (sw__has_device(all)) {
        return none;
    }
    if (draft->apart) {
        return seldom;
    }
    switch (draft->finding.kind) {
    case SW_FINDING_PYTHON_OVERHEAD:
    case SW_FINDING_LOGGING:
    case SW_FINDING_GC:
    case SW_FINDING_CHECKPOINT:
    case SW_FINDING_VALIDATION:
    case SW_FINDING_OPTIMIZER:
    case SW_FINDING_SLOW_MODULE:
    case SW_FINDING_REDUNDANT_WORK:
    case SW_FINDING_LAUNCH_BOUND:
    case SW_FINDING_VARIANCE:
    case SW_FINDING_MEMORY_GROWTH:
    case SW_FINDING_COMMUNICATION:
        return less;
    case SW_FINDING_LOADER_TRANSFORM:
    case SW_FINDING_LOADER_COLLATE:
    case SW_FINDING_LOADER_WORKERS:
        return of_batches(all, less);
    case SW_FINDING_LOADER_IO:
        return of_batches(all, asleep);
    case SW_FINDING_LOADER_BURSTY:
        return seldom;
    default:
        return none; /* work that goes elsewhere, or is only scaled */
    }
}

/* Old time over new, when `saved` goes and the rest gets faster by `relief` of that share, as far as that counts; never below
 * `least` of the time. */
static double speedup_of(double base, double saved, double relief, double until,
                         double least)
{
    const double share = saved < base * SAVED_MOST ? saved / base : SAVED_MOST;
    const double left = (1 - share) * (1 - relief * (share < until ? share : until));
    const double bound = least / base < 1 - share ? least / base : 1 - share;
    return 1 / (left > bound ? left : bound);
}

void sw__draft_saves_down_to(sw_findings *all, struct sw__draft *draft, double saved_ns,
                             double low_ns, double high_ns, double least_ns)
{
    sw_finding *finding = &draft->finding;
    const double base = (double)all->it.base_ns;
    const double counted = (double)all->it.steps->counted;
    if (!(base > 0) || !(saved_ns > 0) || counted <= 0) {
        return;
    }
    low_ns = low_ns < saved_ns ? low_ns : saved_ns;
    high_ns = high_ns > saved_ns ? high_ns : saved_ns;
    const struct relief relief = relief_of(all, draft);
    finding->predicted = true;
    finding->speedup = speedup_of(base, saved_ns, relief.usual, relief.until, least_ns);
    const double low =
        speedup_of(base, low_ns > 0 ? low_ns : 0, 0, 1, 0) * (1 - RUNS_DIFFER);
    finding->low = low > 1 ? low : 1;
    finding->high = speedup_of(base, high_ns, relief.most, 1, 0) * (1 + RUNS_DIFFER);
    const double step =
        all->it.steps->mean_ns - base * (1 - 1 / finding->speedup) / counted;
    finding->step_ns = step > 0 ? (uint64_t)step : 0;
    const double gain = saved_ns / base;
    /* What is little and may be nothing is a remark. */
    const bool doubtful = finding->low <= 1 && finding->speedup < DOUBTFUL;
    finding->severity = gain >= 0.5                ? SW_SEVERITY_CRITICAL
                        : gain >= 0.2              ? SW_SEVERITY_HIGH
                        : gain >= 0.1 && !doubtful ? SW_SEVERITY_MEDIUM
                                                   : SW_SEVERITY_LOW;
    if (isnan(finding->share)) {
        finding->share = gain;
    }
}

void sw__draft_saves(sw_findings *all, struct sw__draft *draft, double saved_ns,
                     double low_ns, double high_ns)
{
    sw__draft_saves_down_to(all, draft, saved_ns, low_ns, high_ns, 0);
}
