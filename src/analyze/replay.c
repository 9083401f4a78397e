/* Discrete simulation of a training loop and its loader. Between two events every thread runs at one rate. */
#include "analyze/replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static double fair(double cores, double others, double running)
{
    const double wanted = running + others;
    return wanted > cores && wanted > 0 ? cores / wanted : 1;
}

double sw__replay_rate(const struct sw__replay_setting *setting, double running)
{
    const double threads = fair(setting->cores, setting->others, running);
    const double groups =
        setting->grouped > 0 ? fair(setting->group_cores, 0, running) : 0;
    return (1 - setting->grouped) * threads + setting->grouped * groups;
}

enum doing { IDLE, BLOCKED, WORKING };

struct worker {
    enum doing doing;
    double left;
    size_t batch; /* the one it makes, or will make next */
};

struct replay {
    const struct sw__replay_step *steps;
    const struct sw__replay_setting *set;
    size_t begin, end; /* steps of this epoch */
    size_t taken;      /* batches that the loop has, counted from `begin` */
    struct worker worker[SW__REPLAY_WORKERS];
    /* The training thread. */
    enum { TRAIN_WAITS, TRAIN_TAKES, TRAIN_COMPUTES, TRAIN_ASIDE } train;
    double left;
    double now, waited;
};

static double make_ns(const struct replay *it, size_t batch)
{
    const struct sw__replay_setting *set = it->set;
    return it->steps[batch].make_ns * set->make_scale + set->send_ns;
}

/* Gives idle workers what has been asked for by now. A worker blocks first and works then; which comes first makes no
 * difference to how long a batch takes. */
static void dispatch(struct replay *it)
{
    const size_t asked =
        it->begin + it->taken + (size_t)it->set->workers * it->set->prefetch;
    for (unsigned i = 0; i < it->set->workers; i++) {
        struct worker *worker = &it->worker[i];
        if (worker->doing == IDLE && worker->batch < it->end && worker->batch < asked) {
            worker->doing = BLOCKED;
            worker->left = it->steps[worker->batch].block_ns * it->set->block_scale;
        }
    }
}

/* A batch is there when its worker has gone on to a later one. */
static bool there(const struct replay *it, size_t batch)
{
    return it->worker[(batch - it->begin) % it->set->workers].batch > batch;
}

static double running(const struct replay *it)
{
    double threads = it->train == TRAIN_COMPUTES ? it->set->threads
                     : it->train == TRAIN_TAKES  ? 1
                                                 : 0;
    for (unsigned i = 0; i < it->set->workers; i++) {
        threads += it->worker[i].doing == WORKING;
    }
    return threads;
}

/* How long until something happens, and what is left of everything then. */
static void advance(struct replay *it)
{
    const double rate = sw__replay_rate(it->set, running(it));
    const double train_rate = it->train == TRAIN_ASIDE ? 1 : rate;
    double time = it->train == TRAIN_WAITS ? INFINITY : it->left / train_rate;
    for (unsigned i = 0; i < it->set->workers; i++) {
        const struct worker *worker = &it->worker[i];
        const double needs = worker->doing == IDLE      ? INFINITY
                             : worker->doing == BLOCKED ? worker->left
                                                        : worker->left / rate;
        time = needs < time ? needs : time;
    }
    time = time > 0 && time < INFINITY ? time : 0;
    it->now += time;
    it->waited += it->train == TRAIN_WAITS || it->train == TRAIN_TAKES ? time : 0;
    it->left -= it->train == TRAIN_WAITS ? 0 : time * train_rate;
    for (unsigned i = 0; i < it->set->workers; i++) {
        struct worker *worker = &it->worker[i];
        worker->left -= time * (worker->doing == WORKING ? rate : 1);
    }
}

/* Less than this is nothing: half a nanosecond. */
#define NOTHING 0.5

static void workers_go_on(struct replay *it)
{
    for (unsigned i = 0; i < it->set->workers; i++) {
        struct worker *worker = &it->worker[i];
        if (worker->doing == BLOCKED && worker->left < NOTHING) {
            worker->doing = WORKING;
            worker->left = make_ns(it, worker->batch);
        }
        if (worker->doing == WORKING && worker->left < NOTHING) {
            worker->doing = IDLE;
            worker->batch += it->set->workers;
        }
    }
}

/* Whether anything happened that needs no time. */
static bool train_goes_on(struct replay *it)
{
    const struct sw__replay_step *step = &it->steps[it->begin + it->taken];
    switch (it->train) {
    case TRAIN_WAITS:
        if (!there(it, it->begin + it->taken)) {
            return false;
        }
        it->train = TRAIN_TAKES;
        it->left = it->set->hand_ns;
        return true;
    case TRAIN_TAKES:
        if (it->left >= NOTHING) {
            return false;
        }
        it->taken++; /* asks for one more */
        it->train = TRAIN_COMPUTES;
        it->left = step->compute_ns * it->set->compute_scale;
        return true;
    case TRAIN_COMPUTES:
        if (it->left >= NOTHING) {
            return false;
        }
        it->train = TRAIN_ASIDE;
        it->left = it->steps[it->begin + it->taken - 1].aside_ns;
        return true;
    case TRAIN_ASIDE:
        if (it->left >= NOTHING) {
            return false;
        }
        it->train = TRAIN_WAITS;
        return true;
    }
    return false;
}

static bool ended(const struct replay *it)
{
    return it->train == TRAIN_WAITS && it->begin + it->taken == it->end;
}

static void epoch(struct replay *it)
{
    it->taken = 0;
    it->train = TRAIN_WAITS;
    it->now += it->set->start_ns;
    it->waited += it->set->start_ns;
    for (unsigned i = 0; i < it->set->workers; i++) {
        it->worker[i] = (struct worker){.doing = IDLE, .batch = it->begin + i};
    }
    while (!ended(it)) {
        do {
            workers_go_on(it);
            dispatch(it);
        } while (!ended(it) && train_goes_on(it));
        if (!ended(it)) {
            advance(it);
        }
    }
}

static double alone(const struct sw__replay_step *steps, size_t count,
                    const struct sw__replay_setting *set, double *wait_ns)
{
    const double compute = sw__replay_rate(set, set->threads);
    const double make = sw__replay_rate(set, 1);
    double time = 0, waited = 0;
    for (size_t i = 0; i < count; i++) {
        waited += steps[i].make_ns * set->make_scale / make +
                  steps[i].block_ns * set->block_scale;
        time += steps[i].compute_ns * set->compute_scale / compute + steps[i].aside_ns;
    }
    *wait_ns = waited;
    return time + waited;
}

double sw__replay(const struct sw__replay_step *steps, size_t count,
                  const struct sw__replay_setting *setting, double *wait_ns)
{
    double ignored;
    wait_ns = wait_ns ? wait_ns : &ignored;
    struct sw__replay_setting set = *setting;
    set.workers = set.workers < SW__REPLAY_WORKERS ? set.workers : SW__REPLAY_WORKERS;
    set.prefetch = set.prefetch ? set.prefetch : 1;
    if (set.workers == 0) {
        return alone(steps, count, &set, wait_ns);
    }
    struct replay it = {.steps = steps, .set = &set};
    while (it.end < count) {
        it.begin = it.end++;
        while (it.end < count && !steps[it.end].first) {
            it.end++;
        }
        epoch(&it);
    }
    *wait_ns = it.waited;
    return it.now;
}

/* --- what chance may have done --- */

#define ROUNDS 40
#define STRETCHES 8 /* at least so many; else there is nothing to draw from */
#define STEPS_MOST 2000

static uint64_t draw(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return *state = x;
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double saved_share(const struct sw__replay_step *steps, size_t count,
                          const struct sw__replay_setting *now,
                          const struct sw__replay_setting *then)
{
    const double before = sw__replay(steps, count, now, NULL);
    return before > 0 ? 1 - sw__replay(steps, count, then, NULL) / before : 0;
}

/* Neighbouring steps are alike and queues remember, so whole stretches are drawn. */
struct sw__replay_range sw__replay_saves(const struct sw__replay_step *steps,
                                         size_t count,
                                         const struct sw__replay_setting *now,
                                         const struct sw__replay_setting *then)
{
    struct sw__replay_range range = {.mean = saved_share(steps, count, now, then)};
    range.low = range.high = range.mean;
    size_t stretch = count / STRETCHES;
    stretch = stretch < 50 ? stretch : 50;
    const size_t drawn = count < STEPS_MOST ? count : STEPS_MOST;
    struct sw__replay_step *again = stretch ? sw__alloc_zero(drawn, sizeof *again) : NULL;
    if (!again) {
        range.low = 0;
        return range;
    }
    double share[ROUNDS];
    uint64_t state = 88172645463325252u;
    for (size_t round = 0; round < ROUNDS; round++) {
        for (size_t used = 0; used < drawn;) {
            const size_t from = (size_t)(draw(&state) % (count - stretch + 1));
            const size_t part = stretch < drawn - used ? stretch : drawn - used;
            memcpy(again + used, steps + from, part * sizeof *again);
            used += part;
        }
        share[round] = saved_share(again, drawn, now, then);
    }
    sw__free(again);
    qsort(share, ROUNDS, sizeof share[0], ascending);
    range.low = share[0] < range.mean ? share[0] : range.mean;
    range.high = share[ROUNDS - 1] > range.mean ? share[ROUNDS - 1] : range.mean;
    return range;
}
