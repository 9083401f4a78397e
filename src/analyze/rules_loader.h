/* What the rules about loaders look at, and how they say it. */
#ifndef SW_ANALYZE_RULES_LOADER_H
#define SW_ANALYZE_RULES_LOADER_H

#include <stepwatch/stacks.h>

#include "analyze/findings.h"
#include "analyze/replay.h"

/* Less waiting than this is fine. */
#define SW__LOADER_LEAST 0.05
/* A change that saves less is not worth telling. */
#define SW__LOADER_GAIN 0.03
/* … nor is it to write code anew for less than this; a setting is changed more easily. */
#define SW__LOADER_REWRITE 0.15
/* Where workers make batches in time but for so little, it must gain this much: what it does to the cores is a guess. */
#define SW__LOADER_LATE 0.15
#define SW__LOADER_REWRITE_BESIDE 0.35

/* How the batches were made, as far as it is known. */
enum sw__loader_way {
    SW__LOADER_WORKERS, /* by worker processes */
    SW__LOADER_ITSELF,  /* by the training thread, the loader says so */
    SW__LOADER_UNKNOWN  /* of this loader no settings are known */
};

/* One stage of making batches. */
struct sw__loader_stage {
    const sw_training_stage *stage; /* NULL: none */
    double share;                   /* of making a batch */
};

/* Times are mean ns a batch; NaN is unknown. */
struct sw__loader_facts {
    enum sw__loader_way way;
    unsigned workers, prefetch;
    unsigned cores;  /* whole ones, at least 1; 1 also where they are not known */
    bool gpu;        /* copies to a device were seen */
    uint64_t phases; /* of a step that asking for a batch takes */

    struct sw__estimate share; /* of it in the steps, the first of an epoch left out */
    struct sw__estimate wait;  /* ns */
    bool steady;               /* there were enough such steps */
    double late; /* the lower end of the share, less taking over what is there */
    double wait_p50, wait_p95;
    double
        bursts; /* share of the waiting that lies in waits of more than three usual ones */
    double compute_ns; /* of a step, without waiting */
    double made_ns;    /* from begin to end of making a batch */
    double gc;      /* share of the garbage collector's time in steps that making takes */
    double cpu_ns;  /* of these, time on a processor */
    double blocked; /* share of made_ns in which it waits for files, network, locks */
    double delay;   /* time runnable without a processor, against time on one */
    double delay_ns; /* the same, of a step */
    double used_ns;  /* time of the training thread on a processor, of a step */
    double crowd; /* the same, of whichever waits more: the training thread or workers */
    double unpack_ns, send_ns, bytes;
    double unpack_more_ns; /* what taking a batch over takes beyond what it needs */
    double pin_ns; /* of a batch in the thread that pins them; NaN where there is none */
    struct sw__loader_stage transform, collate, getitem; /* the dearest of each kind */

    /* Work in workers that make batches, at any one moment. */
    double making;
    struct sw__replay_step *steps;
    size_t count;
    bool distinct; /* times of single batches were recorded */
};

/* Whether there is anything to look at; if not, `*why` says so. `facts->steps` is freed by sw__loader_end. */
bool sw__loader_begin(sw_findings *all, struct sw__loader_facts *facts, const char **why);
void sw__loader_end(struct sw__loader_facts *facts);

/* What is not known, both ways. */
enum sw__guess { SW__GUESS_LOW, SW__GUESS_MIDDLE, SW__GUESS_HIGH };

/* How many times as long everything takes where so many want to compute on these cores, which have caches, memory or units in common. */
double sw__loader_sharing(double wanted, double cores, enum sw__guess guess);

/* The setting of the run, and another number of workers, under a guess about what is not known. */
struct sw__replay_setting sw__loader_setting(const sw_findings *all,
                                             const struct sw__loader_facts *facts,
                                             unsigned workers, unsigned prefetch,
                                             enum sw__guess guess);

/* A change of the loader: other settings, stages that take another share of their time. */
struct sw__loader_change {
    unsigned workers, prefetch;
    double make_scale[3]; /* by guess */
};
/* Share of the steps' time that a change saves; 0 where only other programs on the machine make it worth while. */
struct sw__replay_range sw__loader_saves(const sw_findings *all,
                                         const struct sw__loader_facts *facts,
                                         const struct sw__loader_change *change);
/* The fewest workers that gain nearly as much as any number does; `facts->workers` when none gains anything. */
unsigned sw__loader_best(const sw_findings *all, const struct sw__loader_facts *facts,
                         unsigned *prefetch);

/* --- drafts --- */

/* One stage dominates from this share of making a batch on (RULE-38), waiting from this one. */
#define SW__DOMINATES 0.5
/* The share of its time that the training thread is without a core, from which on the machine is busy with others. */
#define SW__LOADER_BUSY 0.2
/* Of two causes of the same waiting, the more specific one is told: the later in this list. */
enum sw__loader_specific {
    SW__ANY_WORKERS = 1,
    SW__WAITS_FOR_FILES,
    SW__BURSTY,
    SW__TRANSFORMS,
    SW__COLLATES,
    SW__RESTARTS
};
struct sw__draft *sw__loader_draft(sw_findings *all, enum sw_finding_kind kind,
                                   const char *rule, enum sw__loader_specific specific);
/* What a share of the steps' time, saved, predicts; and how much that matters. */
void sw__loader_draft_saves(sw_findings *all, struct sw__draft *draft,
                            const struct sw__replay_range *range);
/* What cheaper code would gain: a tenth of the time is usual, a half is little, nothing is the most. */
struct sw__replay_range sw__loader_cheaper(const sw_findings *all,
                                           const struct sw__loader_facts *facts,
                                           double share);

/* A stage that dominates making batches, if one does; whether it was told. */
bool sw__loader_stages(sw_findings *all, const struct sw__loader_facts *facts,
                       unsigned workers);
/* The samples themselves, where nothing else explains the waiting. */
void sw__loader_samples(sw_findings *all, const struct sw__loader_facts *facts);
/* Workers that every epoch starts again. */
void sw__loader_restart(sw_findings *all, const struct sw__loader_facts *facts);

/* --- code --- */

/* The innermost of the user's functions in most samples of those who make batches. */
struct sw__loader_code {
    const sw_stack_frame *frame; /* its line with most samples */
    sw_share share;              /* of making a batch, what it calls included */
    sw_share python;             /* of its own samples, outside native calls */
    uint64_t samples;            /* of making */
    bool stage;  /* the dataset calls it: it is a stage, and not all of a sample */
    bool pieces; /* it makes many short calls in a loop of its own */
    bool listed; /* that line makes a tensor of a list */
};
/* Whether one has a good part of them; else only their number is known. */
bool sw__loader_code(const sw_findings *all, struct sw__loader_code *out);

/* The function of the user's that takes most of making batches and gives the same each time it is given the same, as its source
 * and that of its callers read: what it gives can be kept. `frame` is its line with most samples. False: there is none. */
bool sw__loader_repeats(const sw_findings *all, struct sw__loader_code *out);

/* The line of the user's that takes most of making batches and computes the same for each sample, as its source reads: it is given
 * nothing that differs, and nothing that it calls draws. False: there is none. */
bool sw__loader_same(const sw_findings *all, struct sw__loader_code *out);

/* --- words --- */

/* The line that builds the loader: "train.py:41", or NULL. */
const char *sw__loader_place(sw_findings *all);
/* "train.py:41: DataLoader(num_workers=0) → num_workers=2", persistent workers where they help. */
void sw__loader_advise_workers(sw_findings *all, struct sw__draft *draft,
                               const struct sw__loader_facts *facts, unsigned workers,
                               unsigned prefetch);
/* What calls on files and sockets say of making batches; nothing where they were not watched. */
void sw__loader_calls(sw_findings *all, struct sw__draft *draft);
/* Their share of the time that a training thread takes for making batches itself; NaN where they were not watched. */
double sw__loader_calls_share(const sw_findings *all,
                              const struct sw__loader_facts *facts);
/* What goes with every finding about a loader: rules, pinned memory, measuring it alone. */
void sw__loader_common(sw_findings *all, struct sw__draft *draft,
                       const struct sw__loader_facts *facts);
/* Where a stage's code is, from samples, else where the loader is built. */
void sw__loader_where(sw_findings *all, struct sw__draft *draft, const char *stage);

#endif
