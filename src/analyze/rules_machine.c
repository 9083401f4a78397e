/* Rules: the machine. Cores that are too few for the threads that want them, and what watchers would have to tell. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/rules.h"
#include "analyze/summary.h"

/* Time of the step thread that it was runnable and had no core, as share of the steps' time. */
#define DELAY_OVERSUBSCRIBED 0.05
#define DELAY_STARVED 0.5
#define DELAY_REMARK                                                                     \
    0.2 /* worth a sentence, for figures are not those of the program alone */
/* What takes cores away: share of the quota's periods with a stop, of the machine's time, and cores of other programs. */
#define THROTTLED 0.25
#define STOLEN 0.1
#define OTHERS 0.5
/* The process is held to whole cores: its use is so close to their number, at all times, while its threads wait. */
#define BOUND_WITHIN 0.03
#define BOUND_MOST 0.06
#define BOUND_LOOKS 5
#define BOUND_DELAY 0.3
/* Operations of less than this are not divided among threads; a thread that keeps its core for longer than SLICE_NS at a time
 * is put aside by the clock. */
#define DIVIDED_NS 15e3
#define SLICE_NS 1e6
/* Of what is left, what waiting for the last thread may be. */
#define BARRIERS 0.4
/* A backward computes about twice what the forward does. Where it takes twice that again, its threads wait for each other. The forward
 * has fewer and longer operations: in eleven recorded programs with 2 to 64 threads for a core it took as many times as long as in
 * their twins as this times the root of that number says (0.8 to 5.7 times). */
#define BACKWARD_TIMES 2
#define FORWARD_SLOWER 0.6
/* Share of the limit on descriptors from which on it is worth a sentence. */
#define DESCRIPTORS_FULL 0.8

/* --- who wants the cores --- */

/* What the step thread waited for a core, and how often it was put aside. Usage stands for several steps at once. */
struct pressure {
    struct sw__estimate delay; /* share of time */
    double involuntary_per_s;
    bool known;
};

enum { GROUPS = 20 };

/* The share of delay in stretches of the run, whose spread gives the interval. */
static struct pressure find_pressure(const struct sw__case *it)
{
    struct pressure found = {.delay = {.mean = NAN, .low = NAN, .high = NAN}};
    double delay[GROUPS] = {0};
    double wall[GROUPS] = {0};
    double delays = 0;
    double walls = 0;
    double switches = 0;
    double pending = 0; /* wall time since usage was read last */
    for (size_t i = 0; i < it->count; i++) {
        const sw_summary_step *step = &it->step[i];
        pending += (double)(step->end_ns - step->begin_ns);
        if (step->usage_steps == 0 || step->run_delay_ns == SW_UNKNOWN) {
            continue;
        }
        const size_t group = i * GROUPS / it->count;
        /* The first usage may reach back into the warm-up. */
        const double waited =
            (double)step->run_delay_ns < pending ? (double)step->run_delay_ns : pending;
        delay[group] += waited;
        wall[group] += pending;
        delays += waited;
        walls += pending;
        switches += step->involuntary;
        pending = 0;
    }
    if (!(walls > 0)) {
        return found;
    }
    const double mean = delays / walls;
    double squares = 0;
    double groups = 0;
    for (size_t i = 0; i < GROUPS; i++) {
        if (wall[i] > 0) {
            const double off = delay[i] - mean * wall[i];
            squares += off * off;
            groups++;
        }
    }
    if (groups < 4) {
        return found;
    }
    const double error = 2.1 * sqrt(squares * groups / (groups - 1)) / walls;
    found.delay = (struct sw__estimate){
        .mean = mean, .low = mean - error, .high = mean + error, .count = it->count};
    found.involuntary_per_s = switches / (walls / 1e9);
    found.known = true;
    return found;
}

double sw__core_wait(const sw_findings *all)
{
    return find_pressure(&all->it).delay.mean;
}

static double number_of(const char *text)
{
    char *end = NULL;
    const double number = text ? strtod(text, &end) : NAN;
    return text && end != text && number > 0 ? number : NAN;
}

/* Threads that one process computes with: what torch says, or the variable that sets it; NaN: unknown. */
static double compute_threads(const sw_findings *all)
{
    const double torch = sw__setting_number(all, "threads", "intraop");
    return torch > 0 ? torch : number_of(sw__fact(all, "env.OMP_NUM_THREADS"));
}

double sw__core_wait_of_own(const sw_findings *all)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *user = sw_monitor_find(monitor, "process.cpu_user");
    const sw_monitor_series *system = sw_monitor_find(monitor, "process.cpu_system");
    const sw_monitor_series *training = sw_monitor_find(monitor, "training.cpu");
    const double wait = sw__core_wait(all);
    const double threads = compute_threads(all);
    if (!user || !system || !training || training->steps.samples < 2 || !(wait > 0) ||
        !(threads > 0)) {
        return 0;
    }
    /* Those that a framework computes with are there for what is computed. */
    const double beside = user->steps.mean + system->steps.mean - training->steps.mean;
    return fmax(0, fmin(wait, beside - (threads - 1)));
}

static double busy_workers(const sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    double busy = 0;
    for (size_t i = 0; loader && i < loader->worker_count; i++) {
        const double share = loader->workers[i].busy_share;
        busy += isnan(share) ? 1 : share;
    }
    return busy;
}

/* Ranks on this machine, which all compute at the same time. */
static double ranks_here(const sw_findings *all)
{
    const double local = number_of(sw__fact(all, "env.LOCAL_WORLD_SIZE"));
    const double ranks = (double)sw_summary_get_run(all->it.summary)->ranks;
    return local > 0 ? local : ranks > 1 ? ranks : 1;
}

/* What the monitor says of the cores; NaN: not known. */
struct cores_seen {
    double
        throttled; /* share of the periods of the CPU quota in which it stopped the program */
    double steal;  /* share of the machine's cores that the hypervisor gave to others */
    double others; /* cores that other programs of the machine used */
};

static double mean_of(const sw_monitor *monitor, const char *name)
{
    const sw_monitor_series *series = sw_monitor_find(monitor, name);
    return series ? series->all.mean : NAN;
}

static double growth_of(const sw_monitor *monitor, const char *name)
{
    const sw_monitor_series *series = sw_monitor_find(monitor, name);
    return series ? series->growth : NAN;
}

static struct cores_seen see_cores(const sw_findings *all)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    struct cores_seen seen = {NAN, NAN, NAN};
    if (!monitor) {
        return seen;
    }
    const double periods = growth_of(monitor, "cgroup.periods");
    if (periods > 0) {
        seen.throttled = growth_of(monitor, "cgroup.periods_throttled") / periods;
    }
    double cores = 0;
    for (size_t i = 0; i < sw_monitor_series_count(monitor); i++) {
        cores += strncmp(sw_monitor_get_series(monitor, i)->name, "core.", 5) == 0;
    }
    if (cores > 0) {
        seen.steal = mean_of(monitor, "system.steal") / cores;
    }
    const double others =
        mean_of(monitor, "system.cpu") - mean_of(monitor, "process.cpu_user") -
        mean_of(monitor, "process.cpu_system") - mean_of(monitor, "children.cpu");
    seen.others = others < 0 ? 0 : others;
    return seen;
}

static void put_seen(struct sw__draft *draft, const struct cores_seen *seen)
{
    if (!isnan(seen->throttled)) {
        sw__draft_number(draft, "throttled_share", seen->throttled);
    }
    if (!isnan(seen->steal)) {
        sw__draft_number(draft, "steal_share", seen->steal);
    }
    if (!isnan(seen->others)) {
        sw__draft_number(draft, "cores_of_others", seen->others);
    }
}

/* Cores that the process may use while it trains. It may have bound itself to fewer than it had at its start: it says so, or
 * the monitor saw that it never got more than a whole number of them while its threads waited for one. */
static double cores_in_training(const sw_findings *all, const struct pressure *pressure,
                                double threads)
{
    const double start = all->it.cores;
    const double said = sw__setting_number(all, "threads", "cores");
    if (said > 0) {
        return said < start ? said : start;
    }
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *user = sw_monitor_find(monitor, "process.cpu_user");
    const sw_monitor_series *system = sw_monitor_find(monitor, "process.cpu_system");
    if (!user || !system || user->steps.samples < BOUND_LOOKS ||
        !(pressure->delay.low > BOUND_DELAY)) {
        return start;
    }
    const double used = user->steps.mean + system->steps.mean;
    const double whole = round(used);
    const bool held = whole >= 1 && fabs(used - whole) < BOUND_WITHIN &&
                      user->steps.max < whole + BOUND_MOST;
    return held && whole < start && whole < threads ? whole : start;
}

/* Threads of the process that want a core at the same time, told by what they get: who is ready gets an equal share, and the
 * training thread shows how much that is. NaN: not known, or it is others that have the cores. */
static double threads_seen(const sw_findings *all, const struct pressure *pressure,
                           const struct cores_seen *seen)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *user = sw_monitor_find(monitor, "process.cpu_user");
    const sw_monitor_series *system = sw_monitor_find(monitor, "process.cpu_system");
    const sw_monitor_series *training = sw_monitor_find(monitor, "training.cpu");
    if (!user || !system || !training || training->steps.samples < BOUND_LOOKS ||
        !(pressure->delay.low > DELAY_REMARK) || seen->throttled > THROTTLED) {
        return NAN;
    }
    const double used = user->steps.mean + system->steps.mean;
    const double beside = used - training->steps.mean;
    const double others = isnan(seen->others) ? 0 : seen->others;
    return beside > others ? used / (1 - pressure->delay.mean) : NAN;
}

/* Threads that the program itself has beside those of a framework. What they do may be needed, so nothing is predicted. */
static void own_threads(sw_findings *all, const struct pressure *pressure,
                        const struct cores_seen *seen, double threads, double cores)
{
    struct sw__draft *draft = sw__draft(all, SW_FINDING_CPU_OVERSUBSCRIBED, "RULE-29");
    draft->group = SW__GROUP_CPU;
    draft->specific = 1;
    sw__draft_title(all, draft, "About %.0f threads of the program want %.3g core%s",
                    threads, cores, cores > 1 ? "s" : "");
    sw__draft_number(draft, "threads_wanted", threads);
    sw__draft_number(draft, "cores_usable", cores);
    sw__draft_number(draft, "waiting_for_core_share", pressure->delay.mean);
    sw__draft_number(draft, "involuntary_switches_per_s", pressure->involuntary_per_s);
    put_seen(draft, seen);
    draft->finding.share = pressure->delay.mean;
    draft->finding.confidence = 0.7;
    draft->finding.severity = SW_SEVERITY_MEDIUM;
    sw__draft_advise(
        all, draft,
        "%.0f %% of the time the training thread is ready to run and has no "
        "core, for other threads of the program have them: let fewer compute "
        "at the same time (sizes of thread pools, threads of libraries beside "
        "the framework), or let them work while training waits.",
        pressure->delay.mean * 100);
}

/* Threads on one core: each that waits for another keeps the core until the clock takes it away, so that an operation takes as
 * many slices as there are threads, however little there is to compute. What there is lies between the least that is
 * divided and a slice; with nothing else known, every order of magnitude between them is as likely. */
static void one_core(sw_findings *all, struct sw__draft *draft,
                     const struct pressure *pressure, double threads, double slice_ns)
{
    const double step = all->it.mean_ns;
    const double orders = log(slice_ns / DIVIDED_NS);
    const double ran = (1 - pressure->delay.mean) * step;
    /* Its own threads get as much as it does; what it waited beyond that, others had the core. */
    const double own = fmin(pressure->delay.mean * step, (threads - 1) * ran);
    sw__draft_number(draft, "slice_ms", slice_ns / 1e6);
    const struct sw__estimate saved = {
        .mean = own + ran - ran / orders,
        .low = own * pressure->delay.low / pressure->delay.mean,
        .high = own + ran - ran * sqrt(DIVIDED_NS / slice_ns)};
    sw__draft_saves_in_steps(all, draft, saved, 1, 1, 1);
}

/* Workers that take turns with the training on the cores that the process has left itself: with all that it had at its start
 * the slowest of training, producing, and all cores together is what a step takes. */
static void beside_workers(sw_findings *all, struct sw__draft *draft, double cores)
{
    const double step = all->it.mean_ns;
    double own = 0;
    double steps = 0;
    for (size_t i = 0; i < all->it.count; i++) {
        own += all->it.step[i].usage_steps ? (double)all->it.step[i].cpu_ns : 0;
        steps += all->it.step[i].usage_steps;
    }
    own = steps > 0 ? fmin(own / steps, step) : step;
    const double workers = (double)all->it.loader->worker_count;
    const double produced = fmax(cores * step - own, 0) / workers;
    const double after = fmax(fmax(own, produced), cores * step / all->it.cores);
    const double saved = fmax(step - after, 0);
    sw__draft_number(draft, "own_cpu_ms", own / 1e6);
    sw__draft_saves(all, draft, sw__saved_per_step(all, saved),
                    sw__saved_per_step(all, 0.5 * saved),
                    sw__saved_per_step(all, fmin(1.3 * saved, step - own / 2)));
}

/* What a step takes once no threads wait for each other, by its forward; `otherwise` where the backward is not that much longer, or
 * that is less. `crowd`: threads for a core. */
static double without_barriers(const sw_findings *all, double otherwise, double crowd)
{
    const double forward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_FORWARD)).mean;
    const double backward = sw__phase_time(all, SW__PHASE_BIT(SW_PHASE_BACKWARD)).mean;
    const double usual = BACKWARD_TIMES * forward;
    const double left =
        (all->it.mean_ns - backward + usual) / (FORWARD_SLOWER * sqrt(crowd));
    return forward > 0 && backward > 2 * usual && left < otherwise ? left : otherwise;
}

/* CPU time that a worker needs for a batch, in ns: how long it took says little where it had to wait for cores. NaN: not known. */
static double worker_cpu(const sw_findings *all)
{
    const sw_training_loader *loader = all->it.loader;
    for (size_t i = 0; loader && loader->worker_count && i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        if (stage->kind == SW_STAGE_FETCH && stage->calls &&
            stage->cpu_ns != SW_UNKNOWN) {
            return (double)stage->cpu_ns / (double)stage->calls;
        }
    }
    return NAN;
}

static void oversubscribed(sw_findings *all, const struct pressure *pressure,
                           const struct cores_seen *seen, double threads, double wanted,
                           double cores)
{
    const bool bound = cores < all->it.cores - 0.5;
    const double ranks = ranks_here(all);
    struct sw__draft *draft = sw__draft(all, SW_FINDING_CPU_OVERSUBSCRIBED, "RULE-29");
    draft->group = SW__GROUP_CPU;
    draft->specific = 1;
    sw__draft_title(all, draft, "%.0f threads want %.3g core%s", wanted, cores,
                    cores > 1 ? "s" : "");
    sw__draft_number(draft, "threads_wanted", wanted);
    sw__draft_number(draft, "cores_usable", cores);
    sw__draft_number(draft, "threads_per_process", threads);
    sw__draft_number(draft, "processes", ranks);
    sw__draft_number(draft, "busy_workers", busy_workers(all));
    sw__draft_number(draft, "waiting_for_core_share", pressure->delay.mean);
    sw__draft_number(draft, "involuntary_switches_per_s", pressure->involuntary_per_s);
    put_seen(draft, seen);
    draft->finding.share = pressure->delay.mean;
    draft->finding.confidence = 0.75;
    if (bound) {
        sw__draft_number(draft, "cores_at_start", all->it.cores);
        sw__draft_advise(
            all, draft,
            "The process has bound itself to %.3g of %.3g cores: give it as "
            "many as it has threads and workers (os.sched_setaffinity, taskset, the "
            "launcher's binding).",
            cores, all->it.cores);
    }
    /* What each process is bound to is its own. */
    const double each = bound ? floor(cores) : floor(cores / ranks);
    const double fitting = each > 1 ? each : 1;
    if (threads > fitting) {
        sw__draft_advise(
            all, draft,
            "Compute with %.0f thread%s a process: torch.set_num_threads(%.0f), "
            "or OMP_NUM_THREADS=%.0f before the start.",
            fitting, fitting > 1 ? "s" : "", fitting, fitting);
    }
    if (busy_workers(all) > cores) {
        sw__draft_advise(all, draft,
                         "Give the loader no more workers than there are cores (%.0f).",
                         floor(cores));
    }
    if (bound && threads <= cores && all->it.loader && all->it.loader->worker_count) {
        beside_workers(all, draft, cores);
        return;
    }
    /* Threads that wait for each other at the end of each operation lose more than the one that is looked at. */
    const double step = all->it.mean_ns;
    const double slice =
        (1 - pressure->delay.mean) * 1e9 / (pressure->involuntary_per_s + 1e-9);
    if (cores < 1.5 && threads > 1 && slice > SLICE_NS && slice < 1e9) {
        one_core(all, draft, pressure, threads, slice);
        return;
    }
    const struct sw__estimate compute =
        sw__phase_time(all, SW__COMPUTE_PHASES | SW__PHASE_BIT(SW_PHASE_OPTIMIZER));
    const double most = compute.mean * (1 - cores / wanted);
    const double waited = pressure->delay.mean * step;
    const double less = waited < most ? waited : most;
    const double left = without_barriers(
        all, cbrt((step - less) * (step - less) * (step - most)), threads / fitting);
    /* An operation ends when the last of its threads had a core, which may be much later than its share of the cores says. */
    const double beyond = most > waited ? most : waited;
    const struct sw__estimate saved = {.mean = most > 0 ? step - left : less,
                                       .low = pressure->delay.low * step,
                                       .high = beyond + BARRIERS * (step - beyond)};
    const double batch = worker_cpu(all);
    if (!(batch > 0)) {
        sw__draft_saves_in_steps(all, draft, saved, 1, 0.5, 1);
        return;
    }
    /* Workers have the cores in turn with the training; a step is no shorter than they need for a batch. */
    const double workers = (double)all->it.loader->worker_count;
    const double usual = fmax(step - saved.mean + batch / cores, batch / workers);
    const double best = fmax(step - saved.high, batch / fmax(workers, cores));
    sw__draft_number(draft, "worker_cpu_ms", batch / 1e6);
    sw__draft_saves(all, draft, sw__saved_per_step(all, fmax(step - usual, 0)),
                    sw__saved_per_step(all, fmax(fmin(0.5 * saved.low, step - usual), 0)),
                    sw__saved_per_step(all, fmax(step - best, 0)));
}

/* Why, where the monitor knows; the first that is enough to explain it. */
static void advise_starved(sw_findings *all, struct sw__draft *draft,
                           const struct cores_seen *seen)
{
    if (seen->throttled > THROTTLED) {
        /* A setting of the user's own, which can be changed. */
        draft->finding.severity = SW_SEVERITY_MEDIUM;
        draft->finding.confidence = 0.85;
        sw__draft_advise(all, draft,
                         "The CPU limit of its container stops the program in %.0f %% of "
                         "the limit's periods: raise the limit, or compute with fewer "
                         "threads and workers.",
                         seen->throttled * 100);
    } else if (seen->steal > STOLEN) {
        draft->finding.confidence = 0.85;
        sw__draft_advise(all, draft,
                         "The host of this virtual machine gives %.0f %% of its cores' "
                         "time to others: go to another machine, or to a type whose "
                         "cores are not shared.",
                         seen->steal * 100);
    } else if (seen->others > OTHERS) {
        draft->finding.confidence = 0.85;
        sw__draft_advise(
            all, draft,
            "Other programs on this machine use %.1f cores: stop them, or go "
            "elsewhere.",
            seen->others);
    } else {
        sw__draft_advise(
            all, draft,
            "Other programs on this machine, or the CPU limit of its container, "
            "keep it from running: stop them, raise the limit, or go elsewhere.");
    }
}

static void starved(sw_findings *all, const struct pressure *pressure,
                    const struct cores_seen *seen)
{
    struct sw__draft *draft = sw__draft(all, SW_FINDING_CPU_STARVED, "RULE-29");
    draft->group = SW__GROUP_CPU;
    sw__draft_title(all, draft,
                    "%.0f %% of the time the training thread is ready to run and has no "
                    "core",
                    pressure->delay.mean * 100);
    sw__draft_number(draft, "waiting_for_core_share", pressure->delay.mean);
    sw__draft_number(draft, "waiting_for_core_share_low", pressure->delay.low);
    sw__draft_number(draft, "involuntary_switches_per_s", pressure->involuntary_per_s);
    sw__draft_number(draft, "cores_usable", all->it.cores);
    draft->finding.share = pressure->delay.mean;
    draft->finding.confidence = 0.7;
    /* Nothing in the program causes it, and no change of the program gains anything. */
    draft->finding.severity = SW_SEVERITY_LOW;
    put_seen(draft, seen);
    advise_starved(all, draft, seen);
}

static void cpu(sw_findings *all)
{
    const struct pressure pressure = find_pressure(&all->it);
    if (!pressure.known || isnan(all->it.cores)) {
        const char *why = "the kernel does not say how long threads waited for a core";
        sw__findings_unchecked(all, SW_FINDING_CPU_OVERSUBSCRIBED, "%s", why);
        sw__findings_unchecked(all, SW_FINDING_CPU_STARVED, "%s", why);
        return;
    }
    const double threads = compute_threads(all);
    const double cores = cores_in_training(all, &pressure, threads);
    const bool bound = cores < all->it.cores - 0.5;
    const double here = bound ? 1 : ranks_here(all);
    const double own = (isnan(threads) ? 1 : threads) * here;
    const double wanted = own + busy_workers(all);
    const struct cores_seen seen = see_cores(all);
    /* Where something is known to take cores away, less waiting is enough to say so. */
    const double enough = seen.throttled > THROTTLED || seen.steal > STOLEN
                              ? DELAY_OVERSUBSCRIBED
                              : DELAY_STARVED;
    /* Workers are busy beside the training as a rule, and share cores with it; one that bound itself to few has left others unused. */
    /* One thread is not too many, however little of a core a quota leaves it. */
    const double room = fmax(cores, 1);
    const bool too_many = own > room + 0.5 || wanted > (bound ? room : 2 * room) + 0.5;
    const double counted = threads_seen(all, &pressure, &seen);
    if (too_many && pressure.delay.low > DELAY_OVERSUBSCRIBED) {
        oversubscribed(all, &pressure, &seen, isnan(threads) ? 1 : threads, wanted,
                       cores);
    } else if (counted > room + 0.5) {
        own_threads(all, &pressure, &seen, counted, cores);
    } else if (wanted <= room + 0.5 && pressure.delay.low > enough) {
        starved(all, &pressure, &seen);
    } else if (pressure.delay.low > DELAY_REMARK) {
        const bool by_own = 2 * sw__core_wait_of_own(all) > pressure.delay.mean;
        sw__findings_note(all,
                          "%.0f %% of the time the training thread was ready to run and "
                          "had no core: %s.",
                          pressure.delay.mean * 100,
                          by_own ? "other threads of the program were busy"
                                 : "other processes were busy, and on a quiet machine "
                                   "figures may be different");
    }
    if (isnan(threads) && !too_many && isnan(counted)) {
        sw__findings_unchecked(all, SW_FINDING_CPU_OVERSUBSCRIBED,
                               "how many threads the framework computes with is not "
                               "recorded");
    }
}

/* RULE-64. A remark, for nothing is slower by it until the program fails. */
static void descriptors(sw_findings *all)
{
    const sw_monitor *monitor = sw_summary_monitor(all->it.summary, 0);
    const sw_monitor_series *used = sw_monitor_find(monitor, "process.descriptors");
    const sw_monitor_series *limit =
        sw_monitor_find(monitor, "process.descriptors_limit");
    if (used && limit && used->all.max > DESCRIPTORS_FULL * limit->last) {
        sw__findings_note(
            all,
            "%.0f of %.0f file descriptors were in use: before they run out "
            "(\"Too many open files\"), use fewer workers, close what is "
            "not needed, or raise the limit (ulimit -n).",
            used->all.max, limit->last);
    }
}

void sw__rules_machine(sw_findings *all)
{
    cpu(all);
    descriptors(all);
    sw__rules_ranks(all);
    sw__rules_memory(all);
    sw__rules_gpu(all);
}
