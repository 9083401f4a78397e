/* Where the samples of the step thread lie in the program's own code. */
#ifndef SW_ANALYZE_HOT_CODE_H
#define SW_ANALYZE_HOT_CODE_H

#include "analyze/findings.h"

/* Where a line stands among the work of a step, told from the source of the function that calls both. */
enum sw__hot_when {
    SW__HOT_UNKNOWN = 1,
    SW__HOT_BEFORE = 2,  /* the model is called after it */
    SW__HOT_BETWEEN = 4, /* after that, and before the backward */
    SW__HOT_AFTER = 8,   /* after the backward, or after the model where there is none */
    SW__HOT_ANY = 15
};

/* In place of a phase: a finding tells of this line already. */
#define SW__HOT_TOLD SW_PHASE_COUNT

/* Samples whose innermost frame of the user's own code is this line. */
struct sw__hot_line {
    const sw_stack_frame *frame;
    const sw_stack_frame *entry; /* what the loop called to get there; NULL: unknown */
    const sw_stack_frame *loop;  /* the line of the loop that did; NULL: unknown */
    const sw_stack_frame
        *caller; /* the user's line that called its function; NULL: none */
    int phase;   /* enum sw_phase, whose time it is part of */
    int as; /* the same, but `other` for what a closure does inside the optimizer, and
               `logging` for what loggers do that no section tells of */
    bool outside; /* of steps: validation or a checkpoint between them */
    enum sw__hot_when when;
    uint64_t samples;
    uint64_t own;         /* the line itself, or the standard library called from it */
    uint64_t interpreted; /* of `own`, outside native calls */
    uint64_t copied;      /* of `samples`, in copy.deepcopy */
    uint64_t waiting;     /* of `samples`, without wanting a core */
    uint64_t pooled;  /* of `waiting`, for threads or processes of the program itself */
    uint64_t logged;  /* of `samples` of validation, in packages that draw or keep logs */
    uint64_t follows; /* of `samples`, for what the model gave within the same step */
    uint64_t
        repeated; /* of `own`, where a loop inside the step comes to it, or may do so */
};

/* Samples of the step thread. */
struct sw__hot {
    uint64_t samples; /* within steps */
    uint64_t phase_samples[SW_PHASE_COUNT];
    uint64_t phase_interpreted[SW_PHASE_COUNT]; /* outside native calls, whoever's code */
    uint64_t phase_waiting[SW_PHASE_COUNT];     /* not running */
    uint64_t eager;      /* in JAX, outside of steps that it compiled */
    uint64_t torn;       /* beside all of these: only the innermost frames were seen */
    uint64_t torn_eager; /* of `torn`, as `eager` */
    uint64_t closure;    /* of the optimizer's, in its closure and not updating */
    uint64_t
        saving; /* of `other`, in functions of packages that save, beside the saving */
    struct sw__hot_line *lines;
    size_t count;
    /* Of the user's own frames from which the backward (or else the model) is called. */
    const sw_stack_frame **callers;
    size_t caller_count;
};

/* A function of the user's, over some phases. */
struct sw__hot_function {
    sw_stack_frame frame; /* its line with most samples */
    const sw_stack_frame *entry, *caller;
    uint64_t samples, own, interpreted, copied;
    uint64_t repeated; /* of `own`, in a loop inside the step */
    uint64_t plain;    /* of `interpreted`, on lines that are mostly that */
    uint64_t
        between; /* of `own`, between the model and the backward, or where is not known */
    uint64_t line_samples; /* of frame.line */
    uint64_t by_phase[SW_PHASE_COUNT], own_by_phase[SW_PHASE_COUNT];
};

/* Where a line stands in its function, as the source reads. */
enum sw__hot_loop {
    SW__LOOP_UNKNOWN,
    SW__LOOP_NONE,
    SW__LOOP_TRAINING, /* in the one that makes the steps */
    SW__LOOP_INNER     /* in another one, inside of a step */
};
enum sw__hot_loop sw__hot_loop(sw_findings *all, const sw_stack_frame *frame);
/* Whether what makes batches spends its time on things that it does over and over for each of them: in the interpreter, or in a
 * loop inside. One call for a whole batch is as fast as it is. */
bool sw__hot_by_pieces(sw_findings *all, const struct sw__hot_function *function);
/* Whether a line calls what it is given many times without a loop in its source: map, sort by a key, apply. */
bool sw__hot_hands_over(const sw_stack_frame *frame);

/* Never NULL; without a sampler it has no samples. Made once, lives as long as the findings. */
const struct sw__hot *sw__hot_code(sw_findings *all);
/* Functions with samples in a set of phases (bits), most samples first; NULL: none. `outside`: those between steps too. */
struct sw__hot_function *sw__hot_functions(sw_findings *all, uint64_t phases,
                                           unsigned when, bool outside, size_t *count);
/* The time of samples, in ns a step: their part of the time of each phase. */
struct sw__estimate sw__hot_time(sw_findings *all,
                                 const uint64_t by_phase[SW_PHASE_COUNT]);
/* Whether a function spends its own time in the interpreter: in Python itself, or in calls so short that the interpreter
 * shows between them. The training loop itself is not meant; loops inside it are. */
bool sw__hot_interpreted(sw_findings *all, const struct sw__hot_function *function);
/* Puts the place with most samples in these phases into the draft, unless nothing is known of it. */
const struct sw__hot_function *sw__hot_where(sw_findings *all, struct sw__draft *draft,
                                             uint64_t phases, bool outside);
/* The same, but rather a function that the training loop calls than the loop itself. */
const struct sw__hot_function *
sw__hot_where_called(sw_findings *all, struct sw__draft *draft, uint64_t phases);
/* The innermost of the user's functions from which the training is run. */
void sw__hot_where_loop(sw_findings *all, struct sw__draft *draft);
bool sw__user_file(const char *file);
/* Whether the training is run from a function, at any of its lines. */
bool sw__hot_trains(const struct sw__hot *hot, const sw_stack_frame *frame);
bool sw__same_function(const sw_stack_frame *a, const sw_stack_frame *b);

#endif
