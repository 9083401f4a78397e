/* How batches are made: from stages, batches, steps and samples of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/batches.h"
#include "analyze/quantiles.h"
#include "analyze/rules_loader.h"
#include "analyze/summary.h"

#define INSIDE                                                                           \
    (SW__PHASE_BIT(SW_PHASE_PREPROCESS) | SW__PHASE_BIT(SW_PHASE_AUGMENT) |              \
     SW__PHASE_BIT(SW_PHASE_COLLATE))
/* Time of a step in which the training thread needs no core. */
#define ASIDE (SW__PHASE_BIT(SW_PHASE_SYNC) | SW__PHASE_BIT(SW_PHASE_COMMUNICATION))

static double in_phases(const sw_summary_step *step, uint64_t phases)
{
    double sum = 0;
    for (unsigned p = 0; p < SW_PHASE_COUNT; p++) {
        sum += phases & SW__PHASE_BIT(p) ? (double)step->phase_ns[p] : 0;
    }
    return sum;
}

static double length(const sw_summary_step *step)
{
    return (double)(step->end_ns - step->begin_ns);
}

static bool first_of_epoch(const struct sw__case *it, size_t i)
{
    return it->step[i].epoch != UINT32_MAX &&
           (i == 0 ? it->step[i].number == 0
                   : it->step[i].epoch != it->step[i - 1].epoch);
}

/* --- how long the loop waits --- */

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* An epoch's first batch waits for workers to begin, which is another matter. */
static bool measure_waits(sw_findings *all, struct sw__loader_facts *facts)
{
    struct sw__case rest = all->it;
    double *waits = sw__alloc_zero(all->it.count, sizeof *waits);
    rest.step = sw__alloc_zero(all->it.count, sizeof *rest.step);
    rest.count = 0;
    if (!waits || !rest.step) {
        all->failed = true;
        sw__free(waits);
        sw__free(rest.step);
        return false;
    }
    for (size_t i = 0; i < all->it.count; i++) {
        if (facts->way != SW__LOADER_WORKERS || !first_of_epoch(&all->it, i)) {
            rest.step[rest.count++] = all->it.step[i];
        }
    }
    facts->steady = rest.count >= SW__CASE_LEAST;
    if (!facts->steady) { /* short epochs: as good as it gets */
        rest.count = all->it.count;
        memcpy(rest.step, all->it.step, rest.count * sizeof *rest.step);
    }
    rest.looked = all->it.looked == all->it.step ? rest.step : all->it.looked;
    double compute = 0;
    facts->share = sw__case_share(&rest, facts->phases);
    facts->wait = sw__case_phases(&rest, facts->phases);
    for (size_t i = 0; i < rest.count; i++) {
        waits[i] = in_phases(&rest.step[i], facts->phases);
        compute += length(&rest.step[i]) - waits[i];
    }
    facts->compute_ns = compute / (double)rest.count;
    qsort(waits, rest.count, sizeof *waits, ascending);
    facts->wait_p50 = waits[sw__rank(rest.count, 0.5)];
    facts->wait_p95 = waits[sw__rank(rest.count, 0.95)];
    double long_ns = 0, all_ns = 0;
    for (size_t i = 0; i < rest.count; i++) {
        all_ns += waits[i];
        long_ns += waits[i] > 3 * facts->wait_p50 ? waits[i] - facts->wait_p50 : 0;
    }
    facts->bursts = all_ns > 0 ? long_ns / all_ns : 0;
    sw__free(waits);
    sw__free(rest.step);
    return true;
}

/* --- what making a batch takes --- */

static void measure_delay(const struct sw__case *it, struct sw__loader_facts *facts)
{
    double delay = 0, cpu = 0, steps = 0;
    for (size_t i = 0; i < it->count; i++) {
        if (it->step[i].cpu_ns != SW_UNKNOWN && it->step[i].run_delay_ns != SW_UNKNOWN) {
            delay += (double)it->step[i].run_delay_ns;
            cpu += (double)it->step[i].cpu_ns;
            steps += it->step[i].usage_steps;
        }
    }
    facts->used_ns = steps > 0 ? cpu / steps : NAN;
    facts->delay = cpu > 0 ? delay / cpu : NAN;
    facts->delay_ns = steps > 0 ? delay / steps : NAN;
}

/* The part of compute in which the training thread neither runs nor wants to: it waits for a device, or sleeps. */
static double idle_share(const struct sw__loader_facts *facts)
{
    if (!(facts->used_ns > 0) || !(facts->compute_ns > 0)) {
        return 0;
    }
    const bool itself = facts->way == SW__LOADER_ITSELF;
    const double made = itself && facts->cpu_ns > 0 ? facts->cpu_ns : 0;
    const double used = facts->used_ns > made ? facts->used_ns - made : 0;
    const double idle =
        1 - used * (1 + (facts->delay > 0 ? facts->delay : 0)) / facts->compute_ns;
    return idle > 0.1 ? idle : 0;
}

/* The share of waiting were the machine quiet, where the training thread makes the batches itself: what it waited for a
 * processor is taken off, from making as far as its processor time tells, the rest from the rest of the step. */
static double quiet_share(const struct sw__loader_facts *facts)
{
    if (facts->way != SW__LOADER_ITSELF || !(facts->delay > 0.05) ||
        !(facts->cpu_ns >= 0) || !(facts->made_ns > 0)) {
        return facts->share.low;
    }
    const double blocked = facts->blocked > 0 ? facts->blocked * facts->made_ns : 0;
    const double made = facts->cpu_ns + blocked;
    const double off = facts->made_ns > made ? facts->made_ns - made : 0;
    const double rest = facts->delay_ns > off ? facts->delay_ns - off : 0;
    const double compute = facts->compute_ns > rest ? facts->compute_ns - rest : 0;
    const double share = made + compute > 0 ? made / (made + compute) : 0;
    return share < facts->share.low ? share : facts->share.low;
}

static const sw_training_stage *dearest(const sw_training_loader *loader, unsigned kind)
{
    const sw_training_stage *best = NULL;
    for (size_t i = 0; i < loader->stage_count; i++) {
        const sw_training_stage *stage = &loader->stages[i];
        if (stage->kind == kind && stage->calls && (!best || stage->ns > best->ns)) {
            best = stage;
        }
    }
    return best;
}

static double a_call(const sw_training_loader *loader, unsigned kind)
{
    const sw_training_stage *stage = dearest(loader, kind);
    return stage ? (double)stage->ns / (double)stage->calls : NAN;
}

/* Processor time of a call where it is known. */
static double work_of(const sw_training_stage *stage)
{
    return !stage                        ? NAN
           : stage->cpu_ns == SW_UNKNOWN ? (double)stage->ns / (double)stage->calls
                                         : (double)stage->cpu_ns / (double)stage->calls;
}

static struct sw__loader_stage stage_of(const sw_training_loader *loader, unsigned kind,
                                        double whole)
{
    const sw_training_stage *stage = dearest(loader, kind);
    return (struct sw__loader_stage){stage,
                                     stage && whole > 0 ? (double)stage->ns / whole : 0};
}

/* The share of its time in which a stage waits, by its own figures. What it waits for a processor looks the same as what it
 * waits for a disk; the training thread knows how long it waits for a processor, and the shortest call has waited least. */
static double blocked_by_time(const sw_training_stage *stage, double delay)
{
    if (stage->cpu_ns == SW_UNKNOWN || stage->ns == 0 || stage->calls == 0) {
        return NAN;
    }
    const double wall = (double)stage->ns, cpu = (double)stage->cpu_ns;
    const double by_delay = 1 - cpu * (1 + (delay > 0 ? delay : 0)) / wall;
    const double calls = (double)stage->calls;
    const double by_least = ((double)stage->min_ns - cpu / calls) * calls / wall;
    const bool quiet = delay < 0.1;
    const double blocked = quiet || by_delay < by_least ? by_delay : by_least;
    return blocked > 0.1 ? blocked : 0;
}

/* Samples say whether the thread that was making batches wanted a processor. */
#define SAMPLES_LEAST 30
static double blocked_by_samples(const sw_summary *summary)
{
    const sw_stacks *stacks = sw_summary_stacks(summary);
    size_t count = 0;
    sw_stacks_place *places = stacks ? sw_stacks_functions(stacks, NULL, &count) : NULL;
    uint64_t running = 0, waiting = 0;
    for (size_t i = 0; places && i < count; i++) {
        const sw_stack_frame *frame = &places[i].frame;
        if (strstr(frame->name, "DatasetFetcher.fetch") &&
            strstr(frame->file, "/data/_utils/fetch.py")) {
            running = sw__add(running, places[i].total_running);
            waiting = sw__add(waiting, places[i].total_waiting);
        }
    }
    sw_stacks_release(places);
    const double all = (double)running + (double)waiting;
    const double blocked = all >= SAMPLES_LEAST ? (double)waiting / all : NAN;
    return blocked > 0.1 ? blocked : blocked >= 0 ? 0 : NAN;
}

static void measure_stages(sw_findings *all, struct sw__loader_facts *facts)
{
    const sw_training_loader *loader = all->it.loader;
    const sw_training_stage *fetch = dearest(loader, SW_STAGE_FETCH);
    if (!fetch) {
        return;
    }
    const double calls = (double)fetch->calls, whole = (double)fetch->ns;
    facts->made_ns = whole / calls;
    facts->cpu_ns = fetch->cpu_ns == SW_UNKNOWN ? NAN : (double)fetch->cpu_ns / calls;
    facts->transform = stage_of(loader, SW_STAGE_TRANSFORM, whole);
    facts->collate = stage_of(loader, SW_STAGE_COLLATE, whole);
    facts->getitem = stage_of(loader, SW_STAGE_GETITEM, whole);
    facts->send_ns = work_of(dearest(loader, SW_STAGE_SERIALISE));
    facts->unpack_ns = a_call(loader, SW_STAGE_UNPICKLE);
    const sw_training_stage *unpack = dearest(loader, SW_STAGE_UNPICKLE);
    facts->unpack_more_ns = unpack ? facts->unpack_ns - (double)unpack->min_ns : NAN;
    /* One thread takes over and pins one batch after the other; the training thread finds them ready. */
    facts->pin_ns = a_call(loader, SW_STAGE_PIN);
    if (facts->pin_ns > 0 && facts->way == SW__LOADER_WORKERS) {
        facts->pin_ns += facts->unpack_ns > 0 ? facts->unpack_ns : 0;
        facts->unpack_ns = NAN;
    }
    facts->blocked = blocked_by_samples(all->it.summary);
    if (isnan(facts->blocked)) {
        facts->blocked = blocked_by_time(fetch, facts->delay);
    }
    /* Waiting is at most what is left beside the processor's time. */
    const double most = isnan(facts->cpu_ns) ? 1 : 1 - facts->cpu_ns / facts->made_ns;
    facts->blocked = facts->blocked > most ? (most > 0 ? most : 0) : facts->blocked;
}

/* What the training thread makes batches with, it also collects the garbage of: the clock of the loader goes on meanwhile, that
 * of the phases does not. */
static void measure_gc(const struct sw__case *it, struct sw__loader_facts *facts)
{
    const double gc = sw__case_phases(it, SW__PHASE_BIT(SW_PHASE_GC)).mean;
    const double beyond = facts->made_ns - facts->wait.mean;
    if (facts->way == SW__LOADER_ITSELF && gc > 0 && beyond > 0) {
        facts->gc = beyond < gc ? beyond / gc : 1;
    }
}

/* --- the steps to replay --- */

/* Work of making the batch of a step, and waiting within. */
static void split(const struct sw__loader_facts *facts, double made, double cpu,
                  struct sw__replay_step *step)
{
    const double blocked = facts->blocked >= 0 ? facts->blocked : 0;
    step->block_ns = made * blocked;
    step->make_ns = cpu >= 0 ? cpu : made - step->block_ns;
    /* A batch that took longer than others on the same processor time waited for it longer. */
    const double rest = made - step->make_ns;
    step->block_ns = step->block_ns < rest ? step->block_ns : rest > 0 ? rest : 0;
}

static double median_unpack(struct sw__batch *list, size_t count, double *bytes)
{
    double *values = sw__alloc_zero(count + 1, sizeof *values);
    double sum = 0, sums = 0;
    size_t known = 0;
    for (size_t i = 0; values && i < count; i++) {
        if (list[i].unpack_ns != SW_UNKNOWN) {
            values[known++] = (double)list[i].unpack_ns;
        }
        sum += list[i].bytes != SW_UNKNOWN ? (double)list[i].bytes : 0;
        sums += list[i].bytes != SW_UNKNOWN;
    }
    *bytes = sums > 0 ? sum / sums : NAN;
    double median = NAN;
    if (known) {
        qsort(values, known, sizeof *values, ascending);
        median = values[sw__rank(known, 0.5)];
    }
    sw__free(values);
    return median;
}

/* The newest steps; more tell nothing new. */
#define REPLAYED_MOST 4000

/* Without workers a step's own phases say what its batch took; with workers, the worker's record of it. */
static bool make_steps(sw_findings *all, struct sw__loader_facts *facts)
{
    const struct sw__case *it = &all->it;
    struct sw__batch *list = NULL;
    size_t known = 0, found = 0;
    facts->count = it->count < REPLAYED_MOST ? it->count : REPLAYED_MOST;
    const size_t begin = it->count - facts->count;
    facts->steps = sw__alloc_zero(facts->count, sizeof *facts->steps);
    all->failed |= !facts->steps;
    if (!facts->steps ||
        (it->loader && sw__batches_read(it->summary, it->loader, &list, &known))) {
        all->failed = true;
        return false;
    }
    const double unpack = median_unpack(list, known, &facts->bytes);
    facts->unpack_ns = unpack >= 0 ? unpack : facts->unpack_ns;
    sw__batches_by_step(list, known);
    const double idle = idle_share(facts);
    const double on_cpu = facts->way == SW__LOADER_WORKERS ? 1 : 0;
    for (size_t i = begin; i < it->count; i++) {
        struct sw__replay_step *step = &facts->steps[i - begin];
        const double wait = in_phases(&it->step[i], facts->phases) +
                            facts->gc * (double)it->step[i].phase_ns[SW_PHASE_GC];
        const struct sw__batch *batch =
            sw__batches_of_step(list, known, it->step[i].number);
        step->first = first_of_epoch(it, i);
        step->aside_ns = in_phases(&it->step[i], ASIDE);
        const double compute = length(&it->step[i]) - wait - step->aside_ns;
        step->compute_ns = compute * (1 - idle);
        step->aside_ns += compute * idle;
        if (on_cpu > 0 && batch && batch->make_ns != SW_UNKNOWN) {
            const double cpu = batch->cpu_ns == SW_UNKNOWN ? NAN : (double)batch->cpu_ns;
            split(facts, (double)batch->make_ns, cpu, step);
            found++;
        } else if (on_cpu > 0) {
            split(facts, facts->made_ns, facts->cpu_ns, step);
        } else {
            split(facts, wait, NAN, step);
        }
    }
    sw__free(list);
    facts->distinct = on_cpu == 0 || 2 * found >= facts->count;
    return true;
}

/* --- all of it --- */

static bool copies_to_device(const sw_training *training)
{
    size_t count;
    const sw_training_wait *waits = sw_training_waits(training, &count);
    for (size_t i = 0; i < count; i++) {
        if (waits[i].kind == SW_WAIT_H2D && waits[i].calls) {
            return true;
        }
    }
    return false;
}

static void find_way(const struct sw__case *it, struct sw__loader_facts *facts)
{
    const sw_training_loader *loader = it->loader;
    const bool own = loader && loader->known && !(loader->bits & SW_LOADER_FOREIGN) &&
                     loader->worker_setting != SW_UNKNOWN;
    facts->way = !own                          ? SW__LOADER_UNKNOWN
                 : loader->worker_setting == 0 ? SW__LOADER_ITSELF
                                               : SW__LOADER_WORKERS;
    facts->phases = SW__PHASE_BIT(SW_PHASE_DATA_WAIT);
    if (facts->way == SW__LOADER_ITSELF) {
        facts->phases |= INSIDE;
    }
    if (facts->way == SW__LOADER_WORKERS) {
        facts->workers = loader->worker_setting < SW__REPLAY_WORKERS
                             ? (unsigned)loader->worker_setting
                             : SW__REPLAY_WORKERS;
        facts->prefetch =
            loader->prefetch_factor < 1000 ? (unsigned)loader->prefetch_factor : 2;
    }
}

bool sw__loader_begin(sw_findings *all, struct sw__loader_facts *facts, const char **why)
{
    const struct sw__case *it = &all->it;
    *facts = (struct sw__loader_facts){.made_ns = NAN,
                                       .cpu_ns = NAN,
                                       .blocked = NAN,
                                       .delay = NAN,
                                       .unpack_ns = NAN,
                                       .unpack_more_ns = NAN,
                                       .pin_ns = NAN,
                                       .send_ns = NAN,
                                       .bytes = NAN,
                                       .prefetch = 2};
    *why = "waiting for batches was not recorded";
    if (!it->steps->phase[SW_PHASE_DATA_WAIT].measured) {
        return false;
    }
    facts->cores = it->cores >= 1 && it->cores < 1e6 ? (unsigned)(it->cores + 0.01) : 1;
    facts->gpu = copies_to_device(it->training);
    find_way(it, facts);
    measure_delay(it, facts);
    if (!measure_waits(all, facts)) {
        return false;
    }
    if (it->loader) {
        measure_stages(all, facts);
        measure_gc(it, facts);
    }
    if (facts->way == SW__LOADER_WORKERS && !(facts->made_ns > 0)) {
        *why = "what workers do was not recorded";
        return false;
    }
    const double elapsed = facts->compute_ns + facts->wait.mean;
    facts->making =
        facts->way == SW__LOADER_WORKERS && elapsed > 0
            ? facts->made_ns * (1 - (facts->blocked > 0 ? facts->blocked : 0)) / elapsed
            : 0;
    /* Workers that compute all the time wait for a core longer than a thread that sleeps most of it. Those that compute less than
     * the training thread say less of the cores than that does: what they wait is waking up. */
    const double stretch = facts->cpu_ns > 0 && !(facts->cpu_ns < facts->used_ns)
                               ? facts->making * elapsed / facts->cpu_ns - 1
                               : 0;
    facts->crowd = stretch > 0 && !(facts->delay > stretch) ? stretch : facts->delay;
    if (!make_steps(all, facts)) {
        return false;
    }
    /* A batch that is there in time has to be taken over all the same. */
    facts->late = quiet_share(facts) -
                  (facts->unpack_ns > 0 && elapsed > 0 ? facts->unpack_ns / elapsed : 0);
    return true;
}

void sw__loader_end(struct sw__loader_facts *facts)
{
    sw__free(facts->steps);
    facts->steps = NULL;
}
