/* The parts of the sampler and what they hand to each other.
 *
 *   sampler_thread.c  the thread: pace, fork, end                             sampler.c  stepwatch.sample, the Python face
 *   sampler_round.c   one round: list of threads, a look at each
 *   sampler_walk.c    one look at one stack: copying, checking                memory_read.c   reading memory safely
 *   sampler_code.c    code objects: who they are, which line it is            frame_layout*.c where fields are
 *   sampler_tree.c    what was seen, put together; rows of the trace           sampler_export.c  text for other tools
 *
 * Glossary: a *look* is the attempt to see the stack of one thread; a *sample* is a look that was kept. A *round* is one
 * look at each thread. A *function* is what a code object says of itself, texts and first line: many code objects may be
 * one function, and a code object may be freed while its function stays. */
#ifndef STEPWATCH_EXT_SAMPLER_H
#define STEPWATCH_EXT_SAMPLER_H

#include "frame_layout.h"
#include "memory_read.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- sampler_tree.c ---------------------------------------------------------------- */

#define TREE_NODES 65536u
#define TREE_FUNCTIONS 32768u
#define TREE_CONTEXTS 4096u
#define TREE_NONE UINT32_MAX

typedef struct sampler_tree sampler_tree;

/* A text of the tree; lives as long as the tree. */
typedef struct tree_text {
    const char *data;
    uint32_t length;
} tree_text;

typedef struct tree_function {
    tree_text file, qualname, name;
    uint32_t first_line;
    uint32_t row; /* of table CODE in recording `number` */
    uint32_t number;
} tree_function;

/* What a thread was doing for the program. */
typedef struct tree_context {
    uint32_t thread; /* index in the trace, UINT32_MAX: none */
    uint32_t tid;
    uint32_t section; /* name id, 0 none */
    uint16_t domain;
    uint8_t phase;
    bool no_step; /* its steps turned out to be none; nothing is added to it any more */
    uint64_t running, waiting; /* in recording `number` */
    uint32_t row, number;
    uint64_t handle;
} tree_context;

typedef struct tree_counts {
    uint64_t running, waiting, native;
} tree_counts;

/* A call path: `parent` is a node, or a context when `top`. parent < the node's own index unless `top`. */
typedef struct tree_node {
    uint32_t parent, function, line;
    bool top;
    tree_counts all;  /* since the tree was made */
    tree_counts here; /* in recording `number` */
    uint32_t row, number;
    uint64_t handle;
} tree_node;

/* A frame of a sample: function and line. */
typedef struct tree_frame {
    uint32_t function, line;
} tree_frame;

typedef struct tree_tag {
    uint32_t thread, tid, section, node;
    int64_t step; /* number of the open step, -1 none */
    uint16_t domain;
    uint8_t phase;
    char state; /* of /proc; 0 unknown */
    bool running, native, leaf_only, outer_only;
} tree_tag;

/* Counters of the sampler itself. looks = kept + given_up + empty. */
typedef struct tree_totals {
    uint64_t looks, kept, leaf_only, outer_only, given_up, empty, retries, left_out, late,
        rounds, cpu_ns, folded;
} tree_totals;

sampler_tree *tree_new(void); /* with one owner; NULL: no memory */
void tree_keep(sampler_tree *tree);
void tree_drop(sampler_tree *tree);
/* All below are called with the lock held. */
void tree_lock(sampler_tree *tree);
void tree_unlock(sampler_tree *tree);
/* In a child of fork: no other thread is there, whoever held the lock. */
void tree_after_fork(sampler_tree *tree);
/* The function with these texts; TREE_NONE when there is no memory. Too many become one, "(more)". */
uint32_t tree_function_get(sampler_tree *tree, tree_text file, tree_text qualname,
                           tree_text name, uint32_t first_line);
/* Counts a sample, `depth` frames, leaf first, and records it. Returns its node. */
uint32_t tree_add(sampler_tree *tree, const tree_tag *tag, const tree_frame *frames,
                  size_t depth);
/* What was seen within steps of this thread until now was outside of them. */
void tree_forget_steps(sampler_tree *tree, uint32_t tid);
/* What was seen of this thread since its open step began was outside of steps. */
void tree_forget_step(sampler_tree *tree, uint32_t tid);
/* Takes the counters over, and into the trace. */
void tree_put_totals(sampler_tree *tree, double hz, const tree_totals *totals);
tree_totals tree_get_totals(const sampler_tree *tree);
/* A copy of all that the tree knows, for reading in peace; texts stay the tree's. False: no memory. */
typedef struct tree_copy {
    tree_node *nodes;
    tree_context *contexts;
    tree_function *functions;
    size_t node_count, context_count, function_count;
    tree_totals totals;
} tree_copy;
bool tree_copy_take(const sampler_tree *tree, tree_copy *out);
void tree_copy_free(tree_copy *copy);

/* --- sampler_code.c ---------------------------------------------------------------- */

typedef struct sampler_codes sampler_codes;

sampler_codes *codes_new(sampler_tree *tree);
void codes_free(sampler_codes *codes);
/* The function that stands for frames left out of a very deep stack. */
uint32_t codes_left_out(sampler_codes *codes);

/* --- sampler_walk.c ---------------------------------------------------------------- */

#define WALK_INNER 440u /* innermost frames kept of a very deep stack */
#define WALK_OUTER 64u  /* and outermost ones */
#define WALK_FRAMES (WALK_INNER + WALK_OUTER + 8)
#define WALK_EXTENTS 490u

/* A frame as it was found. */
typedef struct walk_frame {
    uint64_t address;
    layout_frame frame;
} walk_frame;

/* Memory that the next look will copy, because earlier ones needed it. */
typedef struct walk_extent {
    uint64_t address;
    uint32_t size, offset; /* where its copy lies */
    uint32_t used;         /* look that last needed it */
} walk_extent;

/* What is known of a thread from earlier looks. */
typedef struct walk_thread {
    uint64_t state, id; /* address and number of its PyThreadState */
    uint64_t cframe;
    uint64_t root; /* outermost frame at the last walk that reached it */
    walk_extent *extents;
    uint32_t count, looks;
    uint64_t outer[WALK_OUTER]; /* outermost frames, root last; of the last whole walk */
    uint32_t outer_count;
} walk_thread;

enum walk_result {
    WALK_WHOLE,      /* the stack */
    WALK_OUTER_ONLY, /* its outer frames, which stood still; the inner ones changed */
    WALK_LEAF_ONLY,
    WALK_EMPTY, /* no Python code runs */
    WALK_FAILED,
    WALK_GONE /* the thread state is not there any more */
};

typedef struct walk_stack {
    walk_frame frames[WALK_FRAMES]; /* leaf first */
    uint32_t depth;
    uint32_t cut_at; /* frames were left out before this one; 0: none were */
    bool still;      /* the leaf's instruction was the same before and after */
    uint32_t retries;
} walk_stack;

typedef struct sampler_walker sampler_walker;

sampler_walker *walker_new(core_memory *reader, uint64_t interpreter);
void walker_free(sampler_walker *walker);
enum walk_result walker_look(sampler_walker *walker, walk_thread *thread,
                             walk_stack *out);
/* The leaf alone, for a stack that would not stand still. */
enum walk_result walker_leaf(sampler_walker *walker, walk_thread *thread,
                             walk_stack *out);
void walk_thread_clear(walk_thread *thread);

/* Resolves the frames of a stack to functions and lines, reading code objects where they are new or may have changed.
 * `last`: of the same thread's look before (may be NULL). `*native`: the leaf is inside native code. 0, or -1: a frame
 * has no code object, so the stack is none. The tree's lock is held. */
int codes_resolve(sampler_codes *codes, core_memory *reader, const walk_stack *stack,
                  const walk_stack *last, tree_frame *out, bool *native);

/* --- sampler_export.c -------------------------------------------------------------- */

struct _object;
struct sw_stack_options;
/* Name of a thread as a new str; NULL with an exception. */
typedef struct _object *(*sampler_thread_name)(void *arg, uint32_t tid);
/* All samples as collapsed stacks, or for speedscope, as new bytes; NULL with an exception. With the GIL. */
struct _object *sampler_export(const tree_copy *copy, double period,
                               sampler_thread_name name, void *arg, bool speedscope,
                               const struct sw_stack_options *options);

/* --- sampler_thread.c -------------------------------------------------------------- */

/* Starts the sampler in this process. 0 and `*why` a note or NULL; or -1 and why not. With the GIL. */
int sampler_start(double hz, const char **why);
/* Stops it and waits for its end, at most for the time of a round. With the GIL. */
void sampler_stop(void);
bool sampler_is_running(void);
/* In a child of fork, when Python is in order again: starts anew if there was one. */
void sampler_forked_child(void);
/* The tree of the running sampler, or of the last one; NULL when there was none. The caller owns a share of it. */
sampler_tree *sampler_tree_now(void);
/* The steps of the calling thread until now were none. */
void sampler_forget_steps(void);
/* The open step of the calling thread is none, such as what follows the last update of a program. */
void sampler_forget_step(void);
/* A number that changes with every tree. */
uint64_t sampler_tree_number(void);
double sampler_hz(void);
enum core_read_mode sampler_reader(void);
const char *sampler_note(void); /* what is not as good as it could be, or NULL */

#endif
