/* Which steps are watched in brief: see brief.h.
 *
 * What a looked-at step costs is reckoned from the hooks that it called; what the steps take is measured. From both follows the
 * share of steps that may be looked at. They come in bursts, for the first one after a pause finds cold caches, and at places that
 * differ from period to period, so that work done every so many steps is neither always seen nor always missed. */
#include "brief.h"
#include "modules.h"
#include "quick.h"
#include "resting.h"
#include "ticks.h"
#include "training_state.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* What watching takes, in ns: of a call of a hook, of a call of a module, of a step beside these (docs/OVERHEAD.md). */
#define HOOK_NS 2200.0
#define MODULE_NS 800.0
#define STEP_NS 8000.0
/* The part of the time that looking at steps in full may take; less where only statistics are wanted. */
#define SHARE 0.001
#define SHARE_STATISTICS 0.0005
/* Of a thousand steps, looking at the first ones in full takes no more than so many times that, but for the least of them. */
#define SHARE_FIRST 2.0
/* Looking at more than so many steps in full is as well as looking at all of them. */
#define ALL_ABOVE 0.75

enum {
    /* Steps that are looked at before any is not, so that a short run is exact: at least and at most, and where only statistics are
     * wanted at least. */
    FIRST = 100,
    FIRST_MOST = 200,
    FIRST_STATISTICS = 50,
    LEARNS = 32, /* of these the last so many say what a step takes */
    AGAIN = 64,  /* where all are looked at, how many go by before that is thought over */
    PERIOD = 100, /* steps from one burst to the next, at least */
    BURST = 4,    /* steps in a burst, at least */
    /* More than one in so many steps in brief that are ended early, and more than a few: then all are looked at. */
    ENDED_PART = 8,
    ENDED_MOST = 8
};

bool core_brief;
struct core_brief_calls core_brief_calls;

bool core_brief_may = true;

static struct {
    uint32_t recording;
    const train_state *state; /* of the thread that trains, to be compared only */
    uint32_t looked;          /* steps that were looked at in a row */
    uint32_t first;           /* so many of them before any is watched in brief */
    uint64_t since;           /* when the stretch began that is measured, in ticks */
    uint32_t steps;           /* in it, */
    uint32_t watched;         /* and those of them that were looked at */
    bool wanted;              /* the options let steps be watched in brief */
    bool statistics;          /* single events are not recorded */
    uint32_t
        ended; /* steps that were to be watched in brief, but were not to their end */
    struct core_brief_calls calls,
        before;      /* in steps that were looked at; when the open one began */
    bool counting;   /* the open step was looked at so far */
    bool look;       /* the next step is looked at */
    uint32_t bare;   /* steps of the stretch that were looked at and had no update */
    bool gathers;    /* there are such */
    uint32_t period; /* 0: all steps are looked at */
    uint32_t burst, place, begins;
    uint32_t random;
} now;

static bool option_is(const char *name, const char *value)
{
    char text[16] = "";
    (void)sw_option_value(name, text, sizeof text);
    return strcmp(text, value) == 0;
}

/* Whether the program has no other ranks; it may say so only after its first steps. */
static bool is_alone(void)
{
    sw_rank rank;
    sw_rank_get(&rank);
    return rank.world_size <= 1;
}

/* What needs every step whole: a schedule's own choice of steps, operators and allocations by section, and several ranks, whose steps
 * are compared one by one. */
static bool wanted_now(void)
{
    return option_is("brief", "on") && option_is("schedule", "always") &&
           option_is("operators", "off") && option_is("memory", "off") &&
           option_is("io", "off") && is_alone();
}

static void begin_anew(const train_state *state)
{
    memset(&now, 0, sizeof now);
    now.recording = sw_recording_number();
    now.state = state;
    now.wanted = wanted_now();
    now.statistics = option_is("events", "off");
    now.first = now.statistics ? FIRST_STATISTICS : FIRST;
    now.random = 1;
}

/* Calls up to here belong to the step that is looked at. */
static void count_end(const train_state *state)
{
    if (now.counting) {
        now.counting = false;
        now.bare += !state || state->updates == 0;
        now.calls.hooks += core_brief_calls.hooks - now.before.hooks;
        now.calls.modules += core_brief_calls.modules - now.before.modules;
    }
}

/* Numbers without a pattern; the program's own generators are none of ours. */
static uint32_t random_below(uint32_t limit)
{
    now.random ^= now.random << 13;
    now.random ^= now.random >> 17;
    now.random ^= now.random << 5;
    return limit ? now.random % limit : 0;
}

static void stretch_begin(void)
{
    now.since = core_ticks();
    now.steps = now.watched = now.ended = now.bare = 0;
    now.calls = (struct core_brief_calls){0, 0};
}

/* Decides how many steps are looked at from now on, by the stretch that is over. */
static void plan(void)
{
    const double took = (double)(core_ticks() - now.since) * core_ticks_ns();
    const double watched = now.watched ? now.watched : 1;
    const double cost = STEP_NS + HOOK_NS * now.calls.hooks / watched +
                        MODULE_NS * now.calls.modules / watched;
    const double share = now.statistics ? SHARE_STATISTICS : SHARE;
    const double part = share * took / (now.steps ? now.steps : 1) / cost;
    const bool torch = now.calls.hooks >= now.watched; /* else nobody would leave early */
    now.period = 0;
    now.gathers = now.bare > 0;
    now.wanted = now.wanted && is_alone();
    if (now.wanted && torch && now.steps && part < ALL_ABOVE) {
        now.period = part * PERIOD >= BURST ? PERIOD
                     : part * 1e6 > 1       ? (uint32_t)(BURST / part)
                                            : 1000000 * BURST;
        now.burst = part * PERIOD >= BURST ? (uint32_t)(part * PERIOD) : BURST;
        now.place = 0;
        now.begins = random_below(now.period - now.burst + 1);
    }
    if (now.looked < FIRST_MOST && part * SHARE_FIRST * 1000 >= FIRST_MOST) {
        now.first = FIRST_MOST; /* They are long enough for more. */
    }
    stretch_begin();
}

/* Whether steps of this kind may be watched in brief: something is trained with each, and hooks that leave early take nothing away that
 * decides what a step is. */
static bool may(const train_state *state, int rank)
{
    const bool known = rank == TRAIN_FRAMEWORK || rank == TRAIN_UPDATE ||
                       (rank == TRAIN_LOADER &&
                        (state->trains || core_group_kind((train_groups *)&state->groups,
                                                          state->group) == GROUP_TRAINS));
    return now.wanted && core_brief_may && known && state->rank == rank &&
           state->updated && core_optimizer_known && !core_updates_by_hand &&
           !state->validating && !state->hosted && !state->awaited && !state->spared;
}

static void brief_over(void)
{
    core_brief = false;
    core_quick_stop();
    sw_later_close();
    core_module_slots_rest(false);
    core_rests(CORE_REST_ENDS);
}

void core_brief_end(void)
{
    if (core_brief) {
        now.ended++;
        brief_over();
    }
}

void core_brief_apart(void)
{
    count_end(NULL);
    core_brief_end();
}

void core_brief_look(void)
{
    now.look = true;
}

bool core_brief_is_trainer(const train_state *state)
{
    return state && now.state == state;
}

/* The step that has begun is looked at in full. */
static void look(void)
{
    if (core_brief) {
        brief_over();
    }
    sw_later_close(); /* Another thread may have ended what is brief. */
    now.look = false;
    now.looked++;
    now.watched++;
    now.before = core_brief_calls;
    now.counting = true;
}

/* Whether the step that has begun is one of a burst. */
static bool in_burst(void)
{
    if (now.place == now.period) {
        plan();
    }
    const uint32_t place = now.place++;
    return now.period == 0 || (place >= now.begins && place - now.begins < now.burst);
}

void core_brief_next(const train_state *state, int rank, bool anew)
{
    if (now.recording != sw_recording_number()) {
        core_brief_end();
        begin_anew(state);
    }
    if (now.state != state) {
        now.wanted = false; /* hooks leave early in any thread, and two of them train */
    }
    if (!now.wanted) {
        core_brief_end();
        return;
    }
    count_end(state);
    /* Where something ends it in every other step, being brief only makes them differ. */
    if (now.ended > ENDED_MOST && now.ended > now.steps / ENDED_PART) {
        now.wanted = false;
        core_brief_end();
        return;
    }
    if (!may(state, rank) || anew || now.look) {
        /* Others than before: what comes first with them is seen, and then what was known holds again. */
        look();
        now.steps++;
        return;
    }
    if (now.looked < now.first) {
        if (now.looked >= now.first - LEARNS && !now.since) {
            stretch_begin();
        }
        look();
        now.steps++;
        if (now.looked >= now.first) {
            plan();
        }
        return;
    }
    const bool watched =
        now.period ? in_burst() : now.steps < AGAIN || (plan(), !now.period);
    now.steps++;
    if (watched) {
        look();
        return;
    }
    sw_step_brief();
    if (!core_brief) {
        core_brief = true;
        core_module_slots_rest(true);
        core_rests(now.gathers ? CORE_REST_BUT_BACKWARD : CORE_REST_ALL);
    }
}

uint32_t core_brief_left(const train_state *state)
{
    const uint32_t place = now.place, end = now.begins + now.burst;
    const uint32_t until = place < now.begins ? now.begins : now.period;
    const bool usual = core_brief && now.state == state && !now.look && place < until &&
                       (place < now.begins || place >= end) && state->updated &&
                       now.recording == state->recording;
    return usual ? until - place : 0;
}

void core_brief_went_on(uint32_t steps)
{
    now.place += steps;
    now.steps += steps;
}

bool core_brief_goes_on(const train_state *state)
{
    const bool usual = core_brief_left(state) > 0;
    if (usual) {
        core_brief_went_on(1);
    }
    return usual;
}

bool core_brief_sees(PyObject *module)
{
    /* A model that was trained is asked in eval mode: that is a validation. So may one be that is not known. */
    const module_entry *entry = module_find(module);
    return (!entry || entry->flags & MODULE_TRAINED) && !core_gradients_wanted();
}

void core_brief_never(void)
{
    core_brief_may = false;
    core_brief_end();
}

/* With the GIL, if it was Python that forked; then the slots are put back, too. Else the child calls no modules. */
static void forked_child(void)
{
    core_quick_now = (core_quick){0};
    if (core_brief && PyGILState_Check()) {
        brief_over();
    }
    core_brief = false;
}

int core_brief_add(PyObject *Py_UNUSED(module))
{
    static bool registered;
    if (!registered && core_in_main_interpreter()) {
        registered = pthread_atfork(NULL, NULL, forked_child) == 0;
    }
    return 0;
}
