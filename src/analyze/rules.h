/* What rules share. */
#ifndef SW_ANALYZE_RULES_H
#define SW_ANALYZE_RULES_H

#include <stepwatch/gpu.h>

#include "analyze/findings.h"

struct sw__hot_function;

#define SW__COMPUTE_PHASES                                                               \
    (SW__PHASE_BIT(SW_PHASE_FORWARD) | SW__PHASE_BIT(SW_PHASE_LOSS) |                    \
     SW__PHASE_BIT(SW_PHASE_BACKWARD))
#define SW__BATCH_PHASES                                                                 \
    (SW__PHASE_BIT(SW_PHASE_PREPROCESS) | SW__PHASE_BIT(SW_PHASE_AUGMENT) |              \
     SW__PHASE_BIT(SW_PHASE_COLLATE))

/* A share of the time that validation may have. */
#define SW__VALIDATION_LEAST 0.2
/* Files or answers that are waited for at once, where they were waited for one after the other. */
#define SW__IO_AT_ONCE 8

/* Of autograd's graph: so many nodes are many, the same function comes so often again where something goes round, and a node
 * takes no longer than this to go back through, or to be made, where the call of an operation is most of it. */
#define SW__NODES_LEAST 200
#define SW__AGAIN_LEAST 15
#define SW__NODE_MOST_NS 25e3
/* … or this, where there are so many that nobody means each of them to be large. */
#define SW__NODES_MANY 2000
#define SW__NODE_OF_MANY_NS 40e3
#define SW__NODE_MADE_NS 12e3

/* Parts of the rules of findings.h that have files of their own. */
void sw__rules_waits(sw_findings *all);   /* host_sync, transfer */
void sw__rules_modules(sw_findings *all); /* slow_module, launch_bound */
void sw__rules_graph(sw_findings *all); /* launch_bound: outside of the model's forward */
void sw__rules_asked(sw_findings *all); /* launch_bound: for one element at a time */
void sw__rules_picked(sw_findings *all); /* slow_module: of whose result little is used */
bool sw__rules_alike(
    sw_findings *all); /* launch_bound: parts that are alike; whether there are some */
void sw__rules_redundant(sw_findings *all);
bool sw__rules_frozen(sw_findings *all); /* redundant_work; whether there is some */
/* Parameters of a module and of its parts, and how many of them may learn; how often somebody went back through one of these; and
 * whether what they give may differ while they train. */
struct sw__learning {
    uint64_t parameters, trainable, backward;
    bool moody;
};
struct sw__learning sw__learning_of(const sw_training_module *modules, size_t count,
                                    const sw_training_module *root);
/* Whether a part with dropout or batch norm is known to have neither at work: it stands still while the model trains. */
bool sw__stands_still(const sw_findings *all, const char *part);
bool sw__rules_again(sw_findings *all); /* the same */
bool sw__rules_held(sw_findings *all);  /* the same */
/* redundant_work: what `at` does is computed from the same in every step, as `line` reads. Advice and gain are the caller's. */
struct sw__draft *sw__draft_again(sw_findings *all, const sw_stack_frame *at,
                                  const sw_stack_frame *line, struct sw__estimate time);
/* What is told is what makes a part slow, and what to change: the part need not be told of as well. */
void sw__explains_slow(sw_findings *all, struct sw__draft *draft);
void sw__rules_ranks(sw_findings *all);  /* straggler, communication */
void sw__rules_gpu(sw_findings *all);    /* gpu_throttle */
void sw__rules_memory(sw_findings *all); /* memory_growth, memory_pressure */
/* memory_growth: steps that get longer with what is kept. `growth`: what is told of memory, NULL: that it does not grow, or
 * too little. */
enum sw__kept {
    SW__KEPT_UNKNOWN,
    SW__KEPT_GUESSED, /* the source shows what is kept */
    SW__KEPT_SEEN     /* it was found in memory */
};
void sw__rules_piles(sw_findings *all, struct sw__draft *growth, enum sw__kept kept);
void sw__rules_metrics(sw_findings *all); /* logging: work after the update */
/* optimizer: a function whose loop goes through parameters, as its source reads, and takes `time`; whether it is one. */
struct sw__hot_function;
bool sw__update_by_hand(sw_findings *all, const struct sw__hot_function *top,
                        struct sw__estimate time);

/* optimizer: an update that goes through all rows of tables of which a batch uses few. `share` and `time`: those of the update, `kind` the
 * class that makes it; `mixed`: there are several, and some of them are fused. Whether there is one. */
bool sw__rules_tables(sw_findings *all, struct sw__estimate share,
                      struct sw__estimate time, const char *kind, bool mixed);

/* Small reads, reading again, fsync: what watched calls say. */
void sw__rules_io(sw_findings *all);
/* What watched calls add to a finding; nothing where they were not. */
void sw__checkpoint_calls(sw_findings *all, struct sw__draft *draft);

/* A change takes `part` (and between `low` and `high`) of `ns` off every step. Where workers produce the batches, a step never
 * gets shorter than they need for one. */
void sw__draft_saves_in_steps(sw_findings *all, struct sw__draft *draft,
                              struct sw__estimate ns, double part, double low,
                              double high);
/* Time of a set of phases in ns a step; its interval is that of their share, for a speed is a ratio. */
struct sw__estimate sw__phase_time(const sw_findings *all, uint64_t phases);
/* Time between two batches that the workers of the loader can keep up, in ns; 0: there are no workers. */
double sw__worker_period(const sw_findings *all);
/* Whether phases of making batches lie in asking the loader, which has no workers. */
bool sw__batches_made_inside(const sw_findings *all);

/* Text of a setting, or NULL; its number, or NaN. */
const char *sw__setting_text(const sw_findings *all, const char *what, const char *name);
double sw__setting_number(const sw_findings *all, const char *what, const char *name);
const sw_training_site *sw__site_of(const sw_findings *all, unsigned what);
/* A fact of the step thread's process; NULL: unknown. */
const char *sw__fact(const sw_findings *all, const char *key);
/* Calls of the sections that have a phase and lie in none with the same; `*name`: the one with most time. */
uint64_t sw__phase_calls(const sw_findings *all, unsigned phase, const char **name);
/* All steps but those that were watched in brief: what calls are counted in of sections whose phase these leave out. */
double sw__steps_looked(const sw_findings *all);
/* Whether an accelerator was seen at work. */
bool sw__has_device(const sw_findings *all);
/* Whether calls return before their results are there: with an accelerator, and always in JAX. */
bool sw__is_asynchronous(const sw_findings *all);
/* What other threads compute in a step, in ns of a core, where calls return before their results are there and no device has
 * them: a step never takes less, however fast the program's own code gets. 0: unknown, or there are none. */
double sw__computed_beside(const sw_findings *all);
/* What a step takes to compute, in ns, where calls return before their results are there: between a step that was handed out when
 * there was nothing else to compute, after a wait or a compilation, and the end of the next wait so many were. 0: unknown. */
double sw__computed_in_queue(const sw_findings *all);
/* The larger of both: a step takes that much, whoever does what beside it. */
double sw__computed_meanwhile(const sw_findings *all);
/* Whether what was handed out takes as long to compute as the steps do: whatever the program does or waits for meanwhile takes
 * nothing away. */
bool sw__computes_throughout(const sw_findings *all);
/* How busy the accelerator is while steps are made, as shares; of several the busiest. NaN: unknown. The most is over the looks
 * of the monitor, a second apart as a rule. */
struct sw__device_use {
    uint64_t looks;
    double busy, busy_most;     /* any kernel runs */
    double sm, sm_most;         /* multiprocessors that work */
    double tensor, tensor_most; /* matrix units that work */
};
struct sw__device_use sw__device_use(const sw_findings *all);
/* So many looks within steps are enough to speak of all of them. */
#define SW__DEVICE_LOOKS 3
/* Whether it is known to wait for the host most of the time. */
bool sw__device_idles(const sw_findings *all);
/* Whether the program computes on it: its memory says so, or else that something does during steps. */
bool sw__gpu_is_used(const sw_gpu *gpu);
/* The user's function from which values are asked for that the device has yet to compute, and the time of its own code around
 * the waits, in ns a step. NULL: there is none, or the samples do not know it. */
const struct sw__hot_function *sw__wait_function(sw_findings *all,
                                                 struct sw__estimate *around);
/* Whether a function is told of already, for the values that it asks of the device: its code is there for them. */
bool sw__asks_device(sw_findings *all, const sw_stack_frame *frame);
/* Every how many steps to log what takes a share of each, so that no more than 1 % is left. */
double sw__log_every(double share);
/* Whether a line of a file copies to the device. */
bool sw__copies_to_device(const sw_findings *all, const sw_stack_frame *frame);
/* Share of the time that the step thread was ready to run and had no core; NaN: unknown. */
double sw__core_wait(const sw_findings *all);
/* … while threads of the program itself had the cores that no framework computes with: those of a logger, of libraries. 0: unknown. */
double sw__core_wait_of_own(const sw_findings *all);
bool sw__has_draft(const sw_findings *all, enum sw_finding_kind kind);
/* What a function is about, by the words of its own name: validation, checkpoint, logging; SW_FINDING_VARIANCE: they do not
 * say. */
enum sw_finding_kind sw__kind_by_name(const char *function);
/* The trace of the step thread. */
sw_trace *sw__step_trace(const sw_summary *summary);
/* For texts: "?" for NULL. */
static inline const char *sw__text(const char *text)
{
    return text ? text : "?";
}
/* The user's function that is a module's forward, by the name of its class; NULL: the samples know none. */
const struct sw__hot_function *sw__module_code(sw_findings *all,
                                               const sw_training_module *module);
/* Whether a class is one of torch.nn, by its name without the number of dimensions. */
bool sw__of_torch(const char *type);
/* File name without folders; "?" for NULL. */
const char *sw__file_name(const char *path);

#endif
